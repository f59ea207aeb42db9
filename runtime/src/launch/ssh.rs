//! Commands over the system's `ssh`: the user's own configuration, agents, keys and jump hosts just work,
//! and host keys are checked as the user has it.
//!
//! One connection does everything for a node. The script at its other end says so when it begins (what a login
//! prints before that is noise), reads a line with the node's environment if it has one, asks for the executable if
//! it is not there, and then runs it. It stays the program's parent and ends with its exit code: ssh would report a
//! program that a signal killed, if that had replaced the shell, as a lost connection.

use super::options::LaunchOptions;
use super::stage::Build;
use crate::config::NodeConfig;
use std::fmt::Write as _;
use tokio::process::Command;

/// The line, on both outputs, that ends a login's noise.
pub(super) const SHELL: &str = "metachare-shell";
/// The line that asks for the executable, followed by the architecture and [`PACKED`] or `plain`.
pub(super) const WANTS: &str = "metachare-wants ";
/// What the host adds to that line if it can unpack.
pub(super) const PACKED: &str = "gzip";
/// Begins lines, one each second, that say how many bytes of the executable are there.
pub(super) const HAS: &str = "metachare-has ";
/// The line that says that the executable is there.
pub(super) const STAGED: &str = "metachare-staged";
/// The line that says that no executable fits, followed by the architecture.
pub(super) const FOREIGN: &str = "metachare-foreign ";

/// How the command for a host's shell begins.
pub(super) const SCRIPT: &str = "exec sh -c ";

/// Exit codes of the script, beside those of the program.
pub(super) const NO_BUILD: i32 = 65;
pub(super) const NO_FOLDER: i32 = 66;
pub(super) const NOT_STORED: i32 = 73;
pub(super) const NOT_WHOLE: i32 = 74;
pub(super) const NOT_PRIVATE: i32 = 77;

/// Refuses an ELF file for another machine: a shell would take it for a script and stumble over its bytes.
const NATIVE: &str = "part() { od -An -tx1 -j \"$2\" -N \"$3\" \"$1\" 2>/dev/null; }; \
    if [ \"$(part \"$p\" 0 4)\" = ' 7f 45 4c 46' ] && [ \"$(part \"$p\" 18 2)\" != \"$(part /proc/self/exe 18 2)\" ]; \
    then echo 'Exec format error' >&2; exit 126; fi; ";

/// An `ssh` command to the node's host that runs `script` in its `sh`.
pub(super) fn command(node: &NodeConfig, options: &LaunchOptions, script: &str) -> Command {
    let mut words = options.ssh.clone();
    if words.is_empty() {
        words.push("ssh".into());
    }
    // The connection must fail by itself within seconds of being cut, and never ask anything. It gives up 4 to 5 s
    // after the last word of the host: with a count of 3, a host that hangs for 3 s could be given up.
    for option in [
        "BatchMode=yes",
        "ConnectTimeout=10",
        "ServerAliveInterval=1",
        "ServerAliveCountMax=4",
        "LogLevel=ERROR",
    ] {
        words.extend(["-o".into(), option.into()]);
    }
    words.push("-T".into());
    words.extend(way(node));
    words.extend(["--".into(), node.host.clone(), format!("{SCRIPT}{}", quoted(script))]);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// The command as a person would type it to try the connection.
pub(super) fn by_hand(node: &NodeConfig) -> String {
    let words: Vec<String> = way(node).iter().chain([&node.host]).map(|word| typed(word)).collect();
    format!("ssh {}", words.join(" "))
}

/// The command with which a person lets the host know a key.
pub(super) fn by_hand_to_copy_a_key(node: &NodeConfig) -> String {
    let port = node.port.map_or_else(String::new, |port| format!("-p {port} "));
    let at = node.user.as_ref().map_or_else(|| node.host.clone(), |user| format!("{user}@{}", node.host));
    format!("ssh-copy-id {port}{}", typed(&at))
}

/// What the nodes file says about the way to the host.
fn way(node: &NodeConfig) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(user) = &node.user {
        words.extend(["-l".into(), user.clone()]);
    }
    if let Some(port) = node.port {
        words.extend(["-p".into(), port.to_string()]);
    }
    if let Some(key) = &node.key {
        words.extend(["-i".into(), key.display().to_string()]);
    }
    words
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A word as a person would type it in a shell.
pub(super) fn typed(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.into() } else { quoted(word) }
}

/// The line in which the script is told the node's environment, if it has one. Words of a command can be read by every
/// user of both hosts, and these values may be secrets.
pub(super) fn environment(node: &NodeConfig) -> String {
    let set = |(name, value): (&String, &String)| {
        let lines: Vec<String> = value.split('\n').map(quoted).collect();
        format!("export {name}={}; ", lines.join("\"$n\""))
    };
    let line: String = node.env.iter().map(set).collect();
    if line.is_empty() { line } else { line + "\n" }
}

/// The part of a script that reads [`environment`] into `$e`.
fn read_environment(node: &NodeConfig) -> &'static str {
    if node.env.is_empty() { "" } else { "n=$(printf '\\n.'); n=${n%.}; read -r e; " }
}

/// The part that takes the place of staged executables from there, if it is said there.
fn own_cache(node: &NodeConfig) -> &'static str {
    let is_said = node.env.contains_key("XDG_CACHE_HOME");
    if is_said { "XDG_CACHE_HOME=$(eval \"$e\"; printf %s \"$XDG_CACHE_HOME\"); " } else { "" }
}

/// Both, for a script that only has to know where staged executables are.
pub(super) fn cache_home(node: &NodeConfig) -> String {
    [read_environment(node), own_cache(node)].concat()
}

/// A script that runs the program with `argument` in the node's folder and [`environment`]: its `binary`, or the
/// one of `builds` that fits, staged first if it is missing.
pub(super) fn script(node: &NodeConfig, builds: &[Build], program: &str, argument: &str) -> String {
    let mut script = format!("echo; echo {SHELL}; echo {SHELL} >&2; e=; ");
    script += read_environment(node);
    match &node.binary {
        Some(binary) => {
            let _ = write!(script, "p={}; {NATIVE}", quoted(&binary.display().to_string()));
        }
        None => {
            script += own_cache(node);
            script += &staging(builds, program);
        }
    }
    if let Some(workdir) = &node.workdir {
        let folder = quoted(&workdir.display().to_string());
        let _ = write!(
            script,
            "cd {folder} 2>/dev/null || {{ printf 'it has no folder %s\\n' {folder} >&2; exit {NO_FOLDER}; }}; "
        );
    }
    // The shell itself has nothing more to say: it would announce how the program was killed. What `env` is must not
    // depend on the node's PATH.
    let _ = write!(
        script,
        "v=$(command -v env); exec 3>&2 2>/dev/null; (eval \"$e\"; exec \"$v\" \"$p\" {argument} 2>&3 3>&-); exit $?"
    );
    script
}

/// Ends the script unless nobody but the user (and root) can change what is in the folder `$d`: neither it nor one that it
/// lies in belongs to somebody else, and none may be written by others, unless nobody but its owner may take away what is
/// there, as in /tmp, or others cannot get past a folder of the user's further up. The home is the last that is looked
/// at, as by sshd: who can replace that is the user already.
fn privacy() -> String {
    format!(
        "l() {{ LC_ALL=C ls -ldn \"$1\"; }}; u=$(id -u); o=; f=; q=$d; \
         while :; do \
           s=$(l \"$q\") || exit {NOT_STORED}; set -- $s; \
           case $3 in $u|0) ;; *) o=$q f=1;; esac; \
           case $1 in ?????????[tT]*) ;; ?????w*|????????w*) o=$q;; esac; \
           case $f$1 in d?????[-S]??[-T]*) o=;; esac; \
           [ \"$q\" = / ] || [ \"$q\" = \"$(cd 2>/dev/null && pwd -P)\" ] && break; \
           q=${{q%/*}}; q=${{q:-/}}; \
         done; \
         [ -z \"$o\" ] || {{ echo \"others may write to $o\" >&2; exit {NOT_PRIVATE}; }}; "
    )
}

/// Sets `$p` to the staged executable, in a folder that is the user's alone and named by the content's hash. A copy is
/// hashed when it is stored, and again if it was changed after that. The folder's time says when it was last asked for:
/// others stage and clean at the same time, so only what nobody has asked for since a day is cleaned, the newest five
/// excepted.
fn staging(builds: &[Build], program: &str) -> String {
    let mut cases = String::new();
    for Build { arch, hash, bytes, .. } in builds {
        let _ = write!(cases, "{}) h={hash} b={bytes};; ", quoted(arch));
    }
    format!(
        "a=$(uname -m)-$(uname -s | tr A-Z a-z); \
         case $a in {cases}*) echo {FOREIGN}$a; exit {NO_BUILD};; esac; \
         d=\"${{XDG_CACHE_HOME:-$HOME/.cache}}\"/metachare/bin/$h; \
         (umask 077; mkdir -p \"$d\") && d=$(cd \"$d\" && pwd -P) || exit {NOT_STORED}; {}p=\"$d\"/{}; \
         whole() {{ [ \"$(sha256sum < \"$1\" | cut -d' ' -f1)\" = $h ]; }}; \
         mine() {{ s=$(l \"$p\"); set -- $s; case $1:$3 in -????-??-*:$u|-????-??-*:0) ;; *) false;; esac; }}; \
         there() {{ mine && [ \"$(wc -c < \"$p\")\" -eq $b ] && [ -x \"$p\" ] && \
           {{ {{ [ -e \"$p.whole\" ] && ! [ \"$p\" -nt \"$p.whole\" ]; }} || whole \"$p\"; }}; }}; \
         touch -c \"$d\" 2>/dev/null; \
         if ! there 2>/dev/null; then \
           umask 077; t=\"$d\"/.new.$(uname -n).$$; \
           : > \"$t\" || exit {NOT_STORED}; \
           command -v gzip > /dev/null && g={PACKED} || g=plain; echo {WANTS}$a $g; read -r how m; \
           {{ while sleep 1 > /dev/null; do echo \"{HAS}$(wc -c < \"$t\")\" || exit; done; }} < /dev/null 2> /dev/null & w=$!; \
           trap 'rm -f \"$t\"' EXIT; \
           if [ \"$how\" = {PACKED} ]; then head -c \"$m\" | gzip -dc; else head -c \"$m\"; fi > \"$t\"; \
           kill $w; wait $w 2> /dev/null; \
           whole \"$t\" || {{ echo 'the copy did not arrive whole' >&2; exit {NOT_WHOLE}; }}; \
           chmod 700 \"$t\" && mv -f \"$t\" \"$p\" && : > \"$p.whole\" || exit {NOT_STORED}; trap - EXIT; \
           old() {{ find \"$@\" -mtime +0 2>/dev/null; }}; \
           ls -1td \"$d\"/../*/ | tail -n +6 | while read -r o; do [ -z \"$(old \"$o\" -prune)\" ] || rm -rf \"$o\"; done; \
           old \"$d\" -name '.new.*' -type f | while read -r o; do rm -f \"$o\"; done; \
         fi; echo {STAGED}; ",
        privacy(),
        quoted(program)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::ExitStatusExt as _;
    use std::path::Path;
    use std::process::{Output, Stdio};
    use std::time::{Duration, SystemTime};

    /// Runs a node's script here with its home in `home`, and says its environment and `input` to it.
    fn shell(node: &NodeConfig, script: &str, home: &Path, input: &[u8]) -> Output {
        use std::io::Write as _;
        let input = [environment(node).as_bytes(), input].concat();
        let mut command = std::process::Command::new("sh");
        command.arg("-c").arg(script).env("HOME", home).env_remove("XDG_CACHE_HOME");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(&input);
        child.wait_with_output().unwrap()
    }

    fn said(out: &Output) -> Vec<String> {
        String::from_utf8_lossy(&out.stdout).lines().map(ToString::to_string).collect()
    }

    /// What the script reads when nothing is packed.
    fn plain(content: &[u8]) -> Vec<u8> {
        [format!("plain {}\n", content.len()).as_bytes(), content].concat()
    }

    /// What the script is sent.
    fn packed(build: &Build, content: &[u8], folder: &Path) -> Vec<u8> {
        let file = folder.join("content");
        std::fs::write(&file, content).unwrap();
        let build = Build::of(&build.arch, file, content);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(build.parcel(true)).unwrap()
    }

    fn build(bytes: &[u8]) -> Build {
        Build::of(&super::super::stage::here(), "here".into(), bytes)
    }

    #[test]
    fn words_reach_the_other_shell_unchanged() {
        let home = tempfile::tempdir().unwrap();
        let mut node = NodeConfig::local("a", 1);
        let odd = home.path().join("it's here $HOME");
        std::fs::create_dir(&odd).unwrap();
        node.workdir = Some(odd.clone());
        node.binary = Some("/bin/sh".into());
        node.env.insert("A".into(), "x $HOME 'y'\n\n  z\\".into());
        node.env.insert("PATH".into(), "/no/such/folder".into());
        let script = script(&node, &[], "p", "-c 'pwd; echo \"$A\"'");
        let twice = format!("sh -c {}", quoted(&script));
        let lines = said(&shell(&node, &twice, home.path(), b""));
        assert_eq!(lines, ["", SHELL, &odd.display().to_string(), "x $HOME 'y'", "", "  z\\"]);
    }

    #[test]
    fn no_value_of_the_environment_stands_in_a_command() {
        let mut node = NodeConfig::local("a", 1);
        let cache = tempfile::tempdir().unwrap();
        node.env.insert("TOKEN".into(), "secret".into());
        node.env.insert("XDG_CACHE_HOME".into(), cache.path().join("secret too").display().to_string());
        let program = b"#!/bin/sh\necho it has $TOKEN\n";
        let builds = [build(program)];
        let script = script(&node, &builds, "p", "x");
        assert!(!script.contains("secret"), "{script}");
        let out = shell(&node, &script, Path::new("/no/home"), &plain(program));
        assert_eq!(said(&out).last().map(String::as_str), Some("it has secret"), "{out:?}");
        assert!(cache.path().join("secret too/metachare/bin").join(&builds[0].hash).join("p").is_file());
    }

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Stages a program in `cache`; the exit code, and what was said on standard error.
    fn staged_in(cache: &Path, program: &[u8]) -> (Option<i32>, String) {
        let mut node = NodeConfig::local("a", 1);
        node.env.insert("XDG_CACHE_HOME".into(), cache.display().to_string());
        let script = script(&node, &[build(program)], "p", "x");
        let out = shell(&node, &script, Path::new("/no/home"), &plain(program));
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    }

    #[test]
    fn nothing_is_staged_where_others_could_exchange_it() {
        let folder = tempfile::tempdir().unwrap();
        let [above, cache] = ["above", "above/cache"].map(|name| folder.path().join(name));
        std::fs::create_dir_all(&cache).unwrap();
        let program = b"#!/bin/sh\nexit 5\n";
        // The mode of the test's folder, of one in it, and of the cache in that; which of them others may write.
        let cases = [
            (0o755, 0o755, 0o755, None),
            (0o755, 0o777, 0o755, Some(&above)),
            (0o755, 0o755, 0o775, Some(&cache)),
            (0o755, 0o1777, 0o755, None),
            (0o755, 0o1777, 0o777, Some(&cache)),
            (0o755, 0o700, 0o777, None),
            (0o700, 0o777, 0o777, None),
            (0o777, 0o700, 0o777, Some(&folder.path().to_path_buf())),
        ];
        for (outer, middle, inner, bad) in cases {
            set_mode(folder.path(), outer);
            set_mode(&above, middle);
            set_mode(&cache, inner);
            let (code, said) = staged_in(&cache, program);
            let expected = if bad.is_some() { NOT_PRIVATE } else { 5 };
            assert_eq!(code, Some(expected), "{outer:o} {middle:o} {inner:o}: {said}");
            let bad = bad.map(|bad| format!("others may write to {}", bad.canonicalize().unwrap().display()));
            assert!(bad.is_none_or(|bad| said.contains(&bad)), "{said}");
        }
    }

    #[test]
    fn a_copy_that_others_may_write_is_made_anew() {
        let cache = tempfile::tempdir().unwrap();
        let program = b"#!/bin/sh\nexit 5\n";
        assert_eq!(staged_in(cache.path(), program).0, Some(5));
        let staged = cache.path().join("metachare/bin").join(build(program).hash).join("p");
        std::fs::write(&staged, b"#!/bin/sh\nexit 6\n").unwrap();
        let later = SystemTime::now() + Duration::from_secs(9);
        std::fs::File::open(staged.with_extension("whole")).unwrap().set_modified(later).unwrap();
        assert_eq!(staged_in(cache.path(), program).0, Some(6), "what only the user can write is believed");
        set_mode(&staged, 0o722);
        assert_eq!(staged_in(cache.path(), program).0, Some(5));
    }

    #[test]
    fn the_executable_is_asked_for_once_and_again_when_it_was_changed() {
        let home = tempfile::tempdir().unwrap();
        let program = b"#!/bin/sh\necho it runs with $1\n";
        let builds = [build(program)];
        let node = NodeConfig::local("a", 1);
        let run =
            |input: &[u8]| shell(&node, &script(&node, &builds, "p q", "__it"), home.path(), &plain(input));
        let wants = format!("{WANTS}{} {PACKED}", builds[0].arch);
        let (asked, unasked) = (
            vec!["", SHELL, &wants, STAGED, "it runs with __it"],
            vec!["", SHELL, STAGED, "it runs with __it"],
        );
        assert_eq!(said(&run(program)), asked);
        assert_eq!(said(&run(b"")), unasked);
        let staged = home.path().join(".cache/metachare/bin").join(&builds[0].hash).join("p q");
        let changed = [&program[..program.len() - 2], b"!\n"].concat();
        std::fs::write(&staged, changed).unwrap();
        assert_eq!(said(&run(program)), asked, "as long as before, but different");
        std::fs::write(&staged, "").unwrap();
        assert_eq!(said(&run(program)), asked);
        std::fs::remove_file(staged.with_extension("whole")).unwrap();
        assert_eq!(said(&run(b"")), unasked, "hashed again, because nothing says that it is whole");
    }

    #[test]
    fn a_copy_that_ends_early_is_neither_kept_nor_run() {
        let home = tempfile::tempdir().unwrap();
        let program = b"#!/bin/sh\necho it runs\n";
        let builds = [build(program)];
        let whole = [plain(program), packed(&builds[0], program, home.path())];
        for input in whole.iter().flat_map(|whole| [&whole[..0], &whole[..4], &whole[..whole.len() / 2]]) {
            let node = NodeConfig::local("a", 1);
            let out = shell(&node, &script(&node, &builds, "p", "x"), home.path(), input);
            assert_eq!(out.status.code(), Some(NOT_WHOLE), "{out:?}");
            let folder = home.path().join(".cache/metachare/bin").join(&builds[0].hash);
            assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
        }
    }

    #[test]
    fn an_executable_arrives_packed() {
        let home = tempfile::tempdir().unwrap();
        let program = [b"#!/bin/sh\necho it runs; exit\n", &[b'x'; 100_000][..]].concat();
        let builds = [build(&program)];
        let input = packed(&builds[0], &program, home.path());
        assert!(input.starts_with(PACKED.as_bytes()) && input.len() < 1000, "{} bytes", input.len());
        let node = NodeConfig::local("a", 1);
        let out = shell(&node, &script(&node, &builds, "p", "x"), home.path(), &input);
        assert_eq!(said(&out)[3..], [STAGED, "it runs"], "{out:?}");
    }

    #[test]
    fn only_builds_that_nobody_has_asked_for_since_a_day_are_cleaned() {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join(".cache/metachare/bin");
        let programs: Vec<Vec<u8>> = (0..12).map(|n| format!("#!/bin/sh\necho {n}\n").into_bytes()).collect();
        let run = |n: usize, input: &[u8]| {
            let node = NodeConfig::local("a", 1);
            let out = shell(&node, &script(&node, &[build(&programs[n])], "p", "x"), home.path(), input);
            assert_eq!(said(&out).last().map(String::as_str), Some(n.to_string().as_str()), "{out:?}");
        };
        let are_there =
            || (0..12).filter(|&n| bin.join(build(&programs[n]).hash).exists()).collect::<Vec<_>>();
        let age = |n: usize, hours: u64| {
            let folder = std::fs::File::open(bin.join(build(&programs[n]).hash)).unwrap();
            folder.set_modified(SystemTime::now() - Duration::from_secs(3600 * hours)).unwrap();
        };
        programs.iter().enumerate().take(10).for_each(|(n, program)| run(n, &plain(program)));
        assert_eq!(are_there(), (0..10).collect::<Vec<_>>(), "all were used today");
        (0..8).for_each(|n| age(n, 23 + n as u64));
        // Another launcher has found this one there and is about to start it.
        run(7, b"");
        run(10, &plain(&programs[10]));
        // The newest five are 10, 7, 9, 8 and 0; of the others 1 is 24 hours old and a little.
        assert_eq!(are_there(), [0, 7, 8, 9, 10]);
        run(11, &plain(&programs[11]));
        assert_eq!(are_there(), [0, 7, 8, 9, 10, 11], "one more than five, but used within a day");
    }

    #[test]
    fn another_architecture_is_named() {
        let home = tempfile::tempdir().unwrap();
        let builds = [Build::of("vax-vms", "there".into(), b"")];
        let node = NodeConfig::local("a", 1);
        let out = shell(&node, &script(&node, &builds, "p", "x"), home.path(), b"");
        assert!(said(&out).iter().any(|line| line.starts_with(FOREIGN)), "{out:?}");
        assert_eq!(out.status.code(), Some(NO_BUILD));
    }

    #[test]
    fn the_script_ends_with_the_programs_code_also_if_a_signal_killed_it() {
        let home = tempfile::tempdir().unwrap();
        let mut node = NodeConfig::local("a", 1);
        node.binary = Some("/bin/sh".into());
        for (program, code) in [("-c 'exit 7'", 7), ("-c 'kill -9 $$'", 137)] {
            let out = shell(&node, &script(&node, &[], "p", program), home.path(), b"");
            assert_eq!((out.status.code(), out.status.signal()), (Some(code), None));
            assert_eq!(String::from_utf8_lossy(&out.stderr), format!("{SHELL}\n"), "the shell says nothing");
        }
        node.workdir = Some("/no/such folder".into());
        let out = shell(&node, &script(&node, &[], "p", "x"), home.path(), b"");
        assert_eq!(out.status.code(), Some(NO_FOLDER));
        assert!(String::from_utf8_lossy(&out.stderr).contains("it has no folder /no/such folder"));
    }
}
