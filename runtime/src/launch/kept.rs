//! The copies of executables that hosts keep from earlier runs: which there are, and taking them away.

use super::options::LaunchOptions;
use super::ssh;
use crate::config::{LaunchMethod, NodeConfig};
use serde::Serialize;
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;

/// Begins a line about one copy.
const COPY: &str = "metachare-copy ";

/// The copies on the host of a node.
#[derive(Clone, Debug, Serialize)]
pub struct KeptCopies {
    /// The node by which the host is reached.
    pub name: String,
    /// The host as `ssh` knows it.
    pub host: String,
    /// What it keeps, or has taken away; or why that is not known.
    pub outcome: Result<Vec<KeptCopy>, String>,
}

/// A copy of an executable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptCopy {
    /// The program's name.
    pub program: String,
    /// SHA-256 of its content, the name of its folder.
    pub hash: String,
    /// What it takes on disk.
    pub bytes: u64,
    /// When a run last asked for it, seconds before now by the host's clock.
    pub asked_s: u64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Tell what there is.
    List,
    /// Take away what nobody has asked for in so many seconds, and tell it.
    Remove {
        /// How long it must have been left alone.
        idle_s: u64,
    },
}

/// Asks the hosts of `nodes`, each once, side by side; those of local nodes keep no copies. The answers are in the order of
/// the nodes.
pub(crate) async fn kept_copies(
    nodes: &[NodeConfig],
    wanted: Wanted,
    options: &LaunchOptions,
) -> Vec<KeptCopies> {
    let mut asked: Vec<&NodeConfig> = Vec::new();
    for node in nodes.iter().filter(|node| node.launch == LaunchMethod::Ssh) {
        let is_same = |known: &&NodeConfig| {
            let place = |node: &NodeConfig| node.env.get("XDG_CACHE_HOME").cloned();
            (&known.host, &known.user, known.port, place(known))
                == (&node.host, &node.user, node.port, place(node))
        };
        if !asked.iter().any(is_same) {
            asked.push(node);
        }
    }
    let mut answers = JoinSet::new();
    for (at, node) in asked.iter().enumerate() {
        let (node, options) = ((*node).clone(), options.clone());
        answers.spawn(async move { (at, of_host(&node, wanted, &options).await) });
    }
    let mut all: Vec<(usize, Result<Vec<KeptCopy>, String>)> = answers.join_all().await;
    all.sort_by_key(|(at, _)| *at);
    let named = |(at, outcome): (usize, _)| KeptCopies {
        name: asked[at].name.clone(),
        host: asked[at].host.clone(),
        outcome,
    };
    all.into_iter().map(named).collect()
}

async fn of_host(
    node: &NodeConfig,
    wanted: Wanted,
    options: &LaunchOptions,
) -> Result<Vec<KeptCopy>, String> {
    let mut command = ssh::command(node, options, &script(node, wanted));
    let asked = ask(&mut command, node);
    let limit = options.start_deadline;
    let out = tokio::time::timeout(limit, asked).await;
    let out = out.map_err(|_| format!("no answer in {} s", limit.as_secs_f64()))?;
    let out = out.map_err(|error| format!("{} cannot be started: {error}", options.ssh.join(" ")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !out.status.success() {
        let said = text(&out.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it did not say why");
        return Err(format!("`{}` failed: {last}", ssh::by_hand(node)));
    }
    Ok(text(&out.stdout).lines().filter_map(copy_of_line).collect())
}

async fn ask(command: &mut tokio::process::Command, node: &NodeConfig) -> io::Result<std::process::Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A host that reads nothing says so on standard error.
        let _ = stdin.write_all(ssh::environment(node).as_bytes()).await;
    }
    child.wait_with_output().await
}

/// Only folders that are named by a hash are looked at. What cannot be removed is not told of.
fn script(node: &NodeConfig, wanted: Wanted) -> String {
    let cache = ssh::cache_home(node);
    let (idle_s, remove) = match wanted {
        Wanted::List => (0, "true"),
        Wanted::Remove { idle_s } => (idle_s, "rm -rf \"$h\""),
    };
    format!(
        "{cache}cd \"${{XDG_CACHE_HOME:-$HOME/.cache}}/metachare/bin\" 2>/dev/null || exit 0; now=$(date +%s); \
         for h in *; do \
           [ ${{#h}} -eq 64 ] && [ -d \"$h\" ] && ! [ -L \"$h\" ] || continue; \
           case $h in *[!0-9a-f]*) continue;; esac; \
           age=$((now - $(stat -c %Y \"$h\"))); [ $age -ge {idle_s} ] || continue; \
           k=$(du -sk \"$h\" | cut -f1); p=$(ls \"$h\" | head -n 1); \
           {remove} && echo \"{COPY}$k $age $h $p\"; \
         done; exit 0"
    )
}

fn copy_of_line(line: &str) -> Option<KeptCopy> {
    let mut words = line.strip_prefix(COPY)?.splitn(4, ' ');
    let kib: u64 = words.next()?.parse().ok()?;
    // A folder that was asked for by a clock ahead of the host's was asked for just now.
    let asked_s = words.next()?.parse::<i64>().ok()?.max(0).unsigned_abs();
    let hash = words.next()?.to_string();
    Some(KeptCopy { program: words.next()?.into(), hash, bytes: kib.checked_mul(1024)?, asked_s })
}

/// How long a copy is left alone that a run may be starting from.
pub const IN_USE: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// What a host with this home answers.
    fn answer(home: &Path, wanted: Wanted) -> Vec<KeptCopy> {
        let node = NodeConfig::local("a", 1);
        let mut command = std::process::Command::new("sh");
        command.arg("-c").arg(script(&node, wanted)).env("HOME", home).env_remove("XDG_CACHE_HOME");
        let out = command.output().unwrap();
        assert!(out.status.success(), "{out:?}");
        String::from_utf8_lossy(&out.stdout).lines().filter_map(copy_of_line).collect()
    }

    #[test]
    fn what_a_host_keeps_is_told_and_only_that_is_removed() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(answer(home.path(), Wanted::List), []);
        let bin = home.path().join(".cache/metachare/bin");
        let hashes = ["a".repeat(64), "b".repeat(64)];
        for hash in &hashes {
            std::fs::create_dir_all(bin.join(hash)).unwrap();
            std::fs::write(bin.join(hash).join("a program"), vec![1; 10_000]).unwrap();
        }
        std::fs::create_dir(bin.join("another")).unwrap();
        std::fs::write(home.path().join("precious"), "").unwrap();
        std::os::unix::fs::symlink(home.path(), bin.join("c".repeat(64))).unwrap();
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(7200);
        std::fs::File::open(bin.join(&hashes[0])).unwrap().set_modified(long_ago).unwrap();
        let listed = answer(home.path(), Wanted::List);
        assert_eq!(listed.iter().map(|copy| copy.hash.clone()).collect::<Vec<_>>(), hashes);
        assert!(listed.iter().all(|copy| copy.program == "a program" && copy.bytes >= 10_000), "{listed:?}");
        assert!(listed[0].asked_s >= 7200 && listed[1].asked_s < 3600, "{listed:?}");
        let removed = answer(home.path(), Wanted::Remove { idle_s: IN_USE.as_secs() });
        assert_eq!(removed.iter().map(|copy| &copy.hash).collect::<Vec<_>>(), [&listed[0].hash]);
        assert_eq!(answer(home.path(), Wanted::Remove { idle_s: 0 }).len(), 1);
        assert_eq!(answer(home.path(), Wanted::List), []);
        assert!(home.path().join("precious").exists() && bin.join("another").exists());
    }

    #[test]
    fn noise_is_no_copy() {
        for line in [
            "",
            "Welcome",
            COPY,
            "metachare-copy 1",
            "metachare-copy x 1 h p",
            "metachare-copy 18446744073709551615 1 h p",
        ] {
            assert_eq!(copy_of_line(line), None, "{line}");
        }
    }
}
