//! Commands over the system's `ssh`: the user's own configuration, agents, keys and jump hosts just work,
//! and host keys are checked as the user has it.

use super::process::LaunchOptions;
use crate::config::NodeConfig;
use tokio::process::Command;

/// An `ssh` command to the node's host that runs `script` in its `sh`.
pub(super) fn command(node: &NodeConfig, options: &LaunchOptions, script: &str) -> Command {
    let words = words(node, options, script);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// The command as a person would type it, without the script.
pub(super) fn spelled(node: &NodeConfig, options: &LaunchOptions) -> String {
    let mut words = words(node, options, "");
    words.pop();
    words.join(" ")
}

fn words(node: &NodeConfig, options: &LaunchOptions, script: &str) -> Vec<String> {
    let mut words = options.ssh.clone();
    if words.is_empty() {
        words.push("ssh".into());
    }
    // The connection must fail by itself within seconds of being cut, and never ask anything.
    for option in [
        "BatchMode=yes",
        "ConnectTimeout=10",
        "ServerAliveInterval=1",
        "ServerAliveCountMax=3",
        "LogLevel=ERROR",
    ] {
        words.extend(["-o".into(), option.into()]);
    }
    words.push("-T".into());
    if let Some(user) = &node.user {
        words.extend(["-l".into(), user.clone()]);
    }
    if let Some(port) = node.port {
        words.extend(["-p".into(), port.to_string()]);
    }
    if let Some(key) = &node.key {
        words.extend(["-i".into(), key.display().to_string()]);
    }
    words.extend(["--".into(), node.host.clone(), format!("exec sh -c {}", quoted(script))]);
    words
}

/// A word that a shell takes as it is.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A script that becomes `path arguments` in the node's directory and environment.
pub(super) fn start_script(node: &NodeConfig, path: &str, arguments: &str) -> String {
    let mut script = String::new();
    if let Some(workdir) = &node.workdir {
        script += &format!("cd {} || exit 66; ", quoted(&workdir.display().to_string()));
    }
    script += "exec env ";
    for (name, value) in &node.env {
        script += &format!("{name}={} ", quoted(value));
    }
    script + path + " " + arguments
}

/// Prints the architecture, and whether the staged executable is there and whole.
pub(super) fn probe_script(program: &str, hash: &str) -> String {
    let path = staged_path(program, hash);
    format!(
        "printf 'metachare-arch %s-%s\\n' \"$(uname -m)\" \"$(uname -s | tr A-Z a-z)\"; \
         if [ \"$(sha256sum < {path} 2>/dev/null | cut -d' ' -f1)\" = {hash} ]; \
         then echo metachare-staged; fi"
    )
}

/// Stores standard input as the staged executable, if it arrives whole; keeps the newest five builds.
pub(super) fn stage_script(program: &str, hash: &str) -> String {
    let path = staged_path(program, hash);
    let folder = staged_folder(hash);
    format!(
        "umask 077; mkdir -p {folder} && t={folder}/.new.$$ && cat > \"$t\" && \
         if [ \"$(sha256sum < \"$t\" | cut -d' ' -f1)\" = {hash} ]; \
         then chmod 700 \"$t\" && mv -f \"$t\" {path}; \
         else rm -f \"$t\"; echo 'the copy did not arrive whole' >&2; exit 74; fi && \
         ls -1td {folder}/../*/ | tail -n +6 | while read d; do rm -rf \"$d\"; done"
    )
}

pub(super) fn staged_path(program: &str, hash: &str) -> String {
    format!("{}/{}", staged_folder(hash), quoted(program))
}

fn staged_folder(hash: &str) -> String {
    format!("\"${{XDG_CACHE_HOME:-$HOME/.cache}}\"/metachare/bin/{hash}")
}

/// What a failed ssh most likely means, and what to do.
pub(super) fn mend(node: &NodeConfig, stderr: &str) -> (&'static str, String) {
    let says = |words: &[&str]| words.iter().any(|word| stderr.contains(word));
    let host = &node.host;
    if says(&["Permission denied", "Too many authentication failures"]) {
        ("authenticate", format!("make `ssh {host} true` work without a password: ssh-copy-id {host}"))
    } else if says(&["Host key verification failed", "REMOTE HOST IDENTIFICATION"]) {
        ("authenticate", format!("connect once by hand to accept its key: ssh {host} true"))
    } else if says(&["Could not resolve", "Name or service not known", "nodename nor servname"]) {
        ("resolve", format!("correct `host` in the nodes file, or add {host} to ~/.ssh/config"))
    } else if says(&["Connection refused", "Connection timed out", "No route to host", "Connection reset"]) {
        ("connect", format!("see that {host} is up and runs sshd, and that `port` is right"))
    } else {
        ("start", format!("try by hand: ssh {host} true"))
    }
}

/// Whether another try a little later may well succeed: sshd limits how many connect at once.
pub(super) fn is_transient(stderr: &str) -> bool {
    ["Connection refused", "Connection reset", "kex_exchange_identification", "Connection closed by"]
        .iter()
        .any(|word| stderr.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_other_shell_unchanged() {
        let mut node = NodeConfig::local("a", 1);
        node.host = "h".into();
        node.workdir = Some("/tmp/it's here".into());
        node.env.insert("A".into(), "x $HOME 'y'".into());
        let script = start_script(&node, "/bin/echo", "__node");
        let shell = |script: &str| {
            let out = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
            String::from_utf8(out.stdout).unwrap()
        };
        assert_eq!(shell(&format!("printf %s {}", quoted(&script))), script);
        node.workdir = None;
        let printing = start_script(&node, "sh", "-c 'printf %s \"$A\"'");
        assert_eq!(shell(&printing), "x $HOME 'y'");
    }
}
