//! What went wrong with a node, in words: what happened, and what mends it.

use super::{reach, ssh};
use crate::config::{LaunchMethod, NodeConfig};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// Exit code of ssh when the connection failed.
const SSH_FAILED: i32 = 255;
/// Exit codes of a shell and of `env` for a program that cannot be run, and for one that is not there.
const NOT_RUNNABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// What the standard library says before it ends a process that gets no more memory, around the count of bytes.
const NO_MEMORY: (&str, &str) = ("memory allocation of ", " bytes failed");
/// How the line begins that says where a program found itself wrong, and what stands before the place; the next line says why.
const PANICKED: (&str, &str) = ("thread '", " panicked at ");
/// How a program ends then: with this code, as Rust has it, or by this signal, of which a shell makes a code.
pub(crate) const PANICKED_CODE: i32 = 101;
const ABORTED: i32 = Signal::SIGABRT as i32;
const ABORTED_CODE: i32 = 128 + ABORTED;
/// The reason that the system gives for not starting a thread or a process.
const NO_THREAD: &str = "Resource temporarily unavailable";

/// So much of what a host said is repeated.
const SAID_MAX_CHARS: usize = 240;

/// How far a start came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing has run on the host yet.
    Connect,
    /// The executable is being looked for or copied.
    Stage,
    /// The program was started and has not answered.
    Start,
}

impl Step {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Stage => "stage",
            Self::Start => "start",
        }
    }
}

/// What went wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Diagnosis {
    pub(super) reason: String,
    pub(super) mend: String,
}

fn diagnosis(reason: impl Into<String>, mend: impl Into<String>) -> Diagnosis {
    Diagnosis { reason: reason.into(), mend: mend.into() }
}

/// Why a process that was to become a node has ended: `status` if it is known, `tail` the last lines of its
/// standard error.
pub(super) fn of_exit(config: &NodeConfig, step: Step, status: Option<ExitStatus>, tail: &str) -> Diagnosis {
    let is_ssh = config.launch == LaunchMethod::Ssh;
    let code = status.and_then(|status| status.code());
    if is_ssh && (code == Some(SSH_FAILED) || code.is_none()) {
        return match step {
            Step::Connect => of_ssh(config, status, tail),
            Step::Stage => diagnosis(
                format!("the connection was lost while the program was copied{}", last_of(tail)),
                "try again, or copy the program there by hand and name it as `binary`",
            ),
            Step::Start => diagnosis(
                format!("the connection was lost before the program answered{}", last_of(tail)),
                format!("see that `{}` stays up", ssh::by_hand(config)),
            ),
        };
    }
    match step {
        Step::Connect if is_ssh => diagnosis(
            format!("{} before any command ran{}", ended(status), last_of(tail)),
            format!("make `{} true` work: the account must be allowed to run commands", ssh::by_hand(config)),
        ),
        Step::Stage => of_staging(code, tail),
        Step::Connect | Step::Start => of_program(config, status, tail),
    }
}

/// Failures of ssh itself, most telling words first: a changed host key also fails verification.
fn of_ssh(config: &NodeConfig, status: Option<ExitStatus>, tail: &str) -> Diagnosis {
    let (host, typed, by_hand) = (&config.host, ssh::typed(&config.host), ssh::by_hand(config));
    let table: [(&[&str], String); 6] = [
        (
            &["IDENTIFICATION HAS CHANGED"],
            format!(
                "ask whether {host} was installed anew; if so `ssh-keygen -R {typed}` and `{by_hand} true`, if not \
                 somebody is in between"
            ),
        ),
        (
            &["Host key verification failed"],
            format!("connect once by hand to accept its key: {by_hand} true"),
        ),
        (
            &["Permission denied", "Too many authentication failures"],
            format!("make `{by_hand} true` work without a password: {}", ssh::by_hand_to_copy_a_key(config)),
        ),
        (
            &["Could not resolve", "Name or service not known", "nodename nor servname"],
            format!("correct the name of the host, or add {host} to ~/.ssh/config"),
        ),
        (
            &["Connection refused", "timed out", "No route to host", "Network is unreachable"],
            format!("see that {host} is up and runs sshd, and that `port` is right"),
        ),
        (
            &["Connection reset", "Connection closed", "kex_exchange_identification"],
            format!("see that sshd on {host} lets you in: {by_hand} true"),
        ),
    ];
    for (words, mend) in table {
        let telling = tail.lines().find(|line| words.iter().any(|word| line.contains(word)));
        if let Some(line) = telling {
            return diagnosis(format!("ssh said: {}", last_line(line.trim().trim_matches('@'))), mend);
        }
    }
    diagnosis(format!("ssh {}{}", ended(status), last_of(tail)), format!("try by hand: {by_hand} true"))
}

fn of_staging(code: Option<i32>, tail: &str) -> Diagnosis {
    let is_full =
        ["No space left", "quota exceeded", "File too large"].iter().any(|word| tail.contains(word));
    let elsewhere = "set env = { XDG_CACHE_HOME = \"…\" } of the node to a folder";
    if is_full {
        return diagnosis(
            format!("there is no room for the program{}", last_of(tail)),
            format!("free some there, or {elsewhere} with room"),
        );
    }
    match code {
        Some(ssh::NOT_STORED) => diagnosis(
            format!("the program cannot be stored there{}", last_of(tail)),
            format!("{elsewhere} that can be written, or name a `binary` that is there"),
        ),
        Some(ssh::NOT_WHOLE) => diagnosis(
            format!("the program arrived damaged{}", last_of(tail)),
            "try again, or copy the program there by hand and name it as `binary`",
        ),
        Some(ssh::NOT_PRIVATE) => diagnosis(
            format!("the program could be exchanged there by another user{}", last_of(tail)),
            format!("chmod go-w that folder if it is yours, or {elsewhere} of your own"),
        ),
        code => diagnosis(
            format!("copying ended with exit code {}{}", code.unwrap_or(-1), last_of(tail)),
            "copy the program there by hand and name it as `binary`",
        ),
    }
}

fn of_program(config: &NodeConfig, status: Option<ExitStatus>, tail: &str) -> Diagnosis {
    let code = status.and_then(|status| status.code());
    if config.launch == LaunchMethod::Ssh && code == Some(ssh::NO_FOLDER) && tail.contains("no folder") {
        return no_folder(last_line(tail));
    }
    if let Some(diagnosis) = of_listening(tail) {
        return diagnosis;
    }
    if tail.contains("Exec format error") {
        return foreign(config);
    }
    if let Some(reason) = exhausted(tail) {
        return diagnosis(
            format!("it {reason}"),
            "raise the limit there, `ulimit -v`, or end other programs",
        );
    }
    if tail.contains(NO_THREAD) {
        return diagnosis(
            format!("its host has as many processes as it may{}", last_of(tail)),
            "end some there, or raise the limit: ulimit -u",
        );
    }
    if tail.contains("GLIBC") || tail.contains("libc.so") {
        return diagnosis(
            format!("the program does not fit its system{}", last_of(tail)),
            "start with a program that needs no libc, as `.ci/package` makes, or build one there and name it as `binary`",
        );
    }
    match code {
        Some(NOT_RUNNABLE) => not_executable(config, &last_of(tail)),
        Some(NOT_FOUND) => not_there(config, &last_of(tail)),
        _ => diagnosis(
            format!("it {} before it answered{}", ended(status), last_of(tail)),
            "see its last line; `binary` must be this very program",
        ),
    }
}

/// What a node says of itself that cannot listen: its sentence has what mends it behind its last semicolon.
fn of_listening(tail: &str) -> Option<Diagnosis> {
    let is_told = |line: &&str| [reach::CANNOT_LISTEN, reach::NO_ADDRESS].iter().any(|w| line.starts_with(w));
    let (reason, mend) = tail.lines().map(str::trim).rfind(is_told)?.rsplit_once("; ")?;
    let has = if reason.starts_with(reach::NO_ADDRESS) { "has " } else { "" };
    Some(diagnosis(format!("it {has}{}", last_line(reason)), last_line(mend)))
}

/// Why a local program or an ssh was not even started.
pub(super) fn of_spawn(config: &NodeConfig, error: &io::Error) -> Diagnosis {
    if let Some(diagnosis) = of_shortage(error) {
        return diagnosis;
    }
    if config.launch == LaunchMethod::Ssh {
        return diagnosis(format!("ssh cannot be run: {error}"), "install an ssh client");
    }
    let said = format!(": {error}");
    match &config.workdir {
        Some(folder) if !folder.is_dir() => no_folder(format!("it has no folder {}", folder.display())),
        _ if error.raw_os_error() == Some(Errno::ENOEXEC as i32) => foreign(config),
        _ if error.kind() == io::ErrorKind::PermissionDenied => not_executable(config, &said),
        _ if error.kind() == io::ErrorKind::NotFound => not_there(config, &said),
        _ => diagnosis(error.to_string(), "check `binary` and `workdir`"),
    }
}

/// Whether this machine has no room for one more process or pipe, and how to make some.
pub(super) fn of_shortage(error: &io::Error) -> Option<Diagnosis> {
    let (what, mend) = match Errno::from_raw(error.raw_os_error()?) {
        Errno::EMFILE => (
            "the launcher has as many files open as it may",
            "raise the limit in the shell that starts it: ulimit -n 4096 (each node needs 4)",
        ),
        Errno::ENFILE => (
            "this machine has as many files open as it can",
            "end other programs, or raise the limit: sysctl fs.file-max",
        ),
        Errno::EAGAIN => (
            "this machine has as many processes as it may",
            "end some, or raise the limit in the shell that starts the launcher: ulimit -u",
        ),
        Errno::ENOMEM => ("this machine has no memory for another process", "end other programs"),
        _ => return None,
    };
    Some(diagnosis(format!("{what} ({error})"), mend))
}

/// No executable for the node's architecture.
pub(super) fn of_architecture(arch: &str, here: &str, is_named: bool) -> Diagnosis {
    if is_named {
        return diagnosis(
            format!("the executable for {arch} cannot be read"),
            "correct its path under [binaries] in the nodes file",
        );
    }
    diagnosis(
        format!("its architecture is {arch}, this executable is for {here}"),
        "build the program for it and name the file under [binaries] in the nodes file",
    )
}

/// Nothing was heard for too long.
pub(super) fn of_silence(config: &NodeConfig, step: Step, seconds: u64) -> Diagnosis {
    let what = match step {
        Step::Connect => "connecting",
        Step::Stage => "the program was copied",
        Step::Start => "the program started",
    };
    let mend = match config.launch {
        LaunchMethod::Ssh => {
            format!("see how long `{} true` takes; --start-timeout gives it more time", ssh::by_hand(config))
        }
        LaunchMethod::Local => {
            "`binary` must be this very program; --start-timeout gives it more time".into()
        }
    };
    diagnosis(format!("no answer for {seconds} s while {what}"), mend)
}

/// Whether another try a little later may well succeed: sshd limits how many connect at once.
pub(super) fn is_transient(reason: &str) -> bool {
    ["Connection refused", "Connection reset", "kex_exchange_identification", "Connection closed by"]
        .iter()
        .any(|word| reason.contains(word))
}

/// How a node's process ended while it should have worked.
pub(super) fn of_end(status: ExitStatus, is_ssh: bool, tail: &str) -> String {
    if let Some(reason) = exhausted(tail).filter(|_| !status.success()) {
        return format!("{reason}; give it less work, or raise its limit (ulimit -v)");
    }
    let said = panicked(status, tail).unwrap_or_else(|| last_of(tail));
    match status.code() {
        Some(SSH_FAILED) if is_ssh => format!("lost its ssh connection{said}"),
        None if is_ssh => format!("lost its ssh connection: ssh {}{said}", ended(Some(status))),
        Some(code) if is_ssh && code > 128 => format!("was killed by signal {}{said}", code - 128),
        _ => format!("{}{said}", ended(Some(status))),
    }
}

/// What a process says of itself that had to end because it got no more memory.
fn exhausted(tail: &str) -> Option<String> {
    let asked = tail.lines().rev().find_map(|line| {
        let bytes = line.trim().strip_prefix(NO_MEMORY.0)?.strip_suffix(NO_MEMORY.1)?;
        bytes.parse::<u64>().ok()
    })?;
    Some(format!("ran out of memory: the system refused it {asked} bytes"))
}

/// What a program says that had to end because it found itself wrong. The first of such words counts: what follows them may be
/// no more than that cleaning up failed, too.
fn panicked(status: ExitStatus, tail: &str) -> Option<String> {
    let ended_so = matches!(status.code(), Some(PANICKED_CODE | ABORTED_CODE));
    if !ended_so && status.signal() != Some(ABORTED) {
        return None;
    }
    let mut lines = tail.lines();
    let place = lines.find_map(|line| line.strip_prefix(PANICKED.0)?.split_once(PANICKED.1))?.1;
    let words = lines.map(str::trim).find(|line| !line.is_empty()).unwrap_or("it does not say why");
    Some(format!(": {} (at {})", cut(words), cut(place.trim_end_matches(':'))))
}

/// Whether a line shows where in a program something happened, or how to see that: of use to whoever mends the program, but
/// it says nothing about why.
pub(super) fn is_backtrace(line: &str) -> bool {
    let line = line.trim_start();
    let frame = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_frame = frame.len() < line.len() && frame.starts_with(": ");
    is_frame
        || [
            "stack backtrace:",
            "at /",
            "at ./",
            "note: run with `RUST_BACKTRACE",
            "note: Some details are omitted",
        ]
        .iter()
        .any(|words| line.starts_with(words))
}

fn ended(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((_, Some(signal))) => format!("was killed by signal {signal}"),
        Some((Some(code), _)) => format!("ended with exit code {code}"),
        _ => "closed its output".into(),
    }
}

fn no_folder(reason: String) -> Diagnosis {
    diagnosis(reason, "correct `workdir` in the nodes file, or make that folder")
}

fn foreign(config: &NodeConfig) -> Diagnosis {
    let what = program_of(config);
    diagnosis(
        format!("{what} is for another architecture, or no program at all"),
        "build the program for that host and name it as `binary`",
    )
}

fn not_executable(config: &NodeConfig, said: &str) -> Diagnosis {
    let mend = match &config.binary {
        Some(path) => format!("chmod +x {} there, or correct `binary`", path.display()),
        None => "set env = { XDG_CACHE_HOME = \"…\" } of the node to a folder whose programs may run \
                 (not mounted noexec), or name a `binary`"
            .into(),
    };
    diagnosis(format!("{} cannot be executed{said}", program_of(config)), mend)
}

fn not_there(config: &NodeConfig, said: &str) -> Diagnosis {
    if config.binary.is_none() && config.launch == LaunchMethod::Ssh {
        return diagnosis(
            format!("the program has been copied there, but a library that it needs is not there{said}"),
            "launch with a program that needs none, such as that of the tarball, or name a `binary` for this host",
        );
    }
    diagnosis(
        format!("{} is not there, or what it needs to run is not{said}", program_of(config)),
        "correct `binary` in the nodes file, or leave it out: then the program is copied",
    )
}

fn program_of(config: &NodeConfig) -> String {
    config.binary.as_ref().map_or_else(|| "the program".into(), |path| path.display().to_string())
}

/// The last line that says something. A shell that refuses the command may quote all of it, which is our script and
/// helps nobody.
fn last_line(tail: &str) -> String {
    let line = tail.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let said = line.split_once(ssh::SCRIPT).map_or(line, |(before, _)| before);
    let mut words = cut(said);
    if said.len() < line.len() && !words.ends_with('…') {
        words.push('…');
    }
    words
}

/// As much of it as a sentence takes.
fn cut(said: &str) -> String {
    let mut words: String = said.chars().take(SAID_MAX_CHARS).collect();
    if words.len() < said.len() {
        words.push('…');
    }
    words
}

fn last_of(tail: &str) -> String {
    let last = last_line(tail);
    if last.is_empty() { last } else { format!(": {last}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote() -> NodeConfig {
        NodeConfig { host: "h".into(), launch: LaunchMethod::Ssh, ..NodeConfig::local("a", 1) }
    }

    fn exited(code: i32) -> Option<ExitStatus> {
        Some(ExitStatus::from_raw(code << 8))
    }

    #[test]
    fn a_changed_host_key_is_not_mistaken_for_an_unknown_one() {
        let tail = "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n@@@\nHost key verification failed.";
        let changed = of_exit(&remote(), Step::Connect, exited(255), tail);
        assert!(changed.mend.contains("ssh-keygen -R h"), "{changed:?}");
        assert!(changed.reason.ends_with("REMOTE HOST IDENTIFICATION HAS CHANGED!"), "{changed:?}");
        let unknown = of_exit(&remote(), Step::Connect, exited(255), "Host key verification failed.");
        assert!(unknown.mend.contains("accept its key: ssh h true"), "{unknown:?}");
    }

    #[test]
    fn words_of_ssh_mean_nothing_once_the_program_runs() {
        let tail = "Permission denied";
        assert!(of_exit(&remote(), Step::Connect, exited(255), tail).mend.contains("ssh-copy-id"));
        assert!(of_exit(&remote(), Step::Stage, exited(73), tail).mend.contains("XDG_CACHE_HOME"));
        assert!(of_exit(&remote(), Step::Start, exited(126), tail).reason.contains("cannot be executed"));
        let copied = of_exit(&remote(), Step::Start, exited(NOT_FOUND), tail);
        assert!(copied.mend.contains("that of the tarball"), "{copied:?}");
        let named = NodeConfig { binary: Some("/opt/metachare".into()), ..remote() };
        assert!(of_exit(&named, Step::Start, exited(NOT_FOUND), tail).mend.starts_with("correct `binary`"));
    }

    #[test]
    fn the_way_to_try_by_hand_is_the_configured_one() {
        let node = NodeConfig { port: Some(22), user: Some("ann".into()), ..remote() };
        let said = of_exit(&node, Step::Connect, exited(255), "who knows");
        assert_eq!(said.mend, "try by hand: ssh -l ann -p 22 h true");
    }

    #[test]
    fn commands_to_type_are_quoted_and_name_the_user() {
        let node =
            NodeConfig { host: "h; reboot".into(), user: Some("an n".into()), port: Some(22), ..remote() };
        let said = of_exit(&node, Step::Connect, exited(255), "who knows");
        assert_eq!(said.mend, "try by hand: ssh -l 'an n' -p 22 'h; reboot' true");
        let said = of_exit(&node, Step::Connect, exited(255), "Permission denied");
        assert!(said.mend.ends_with("without a password: ssh-copy-id -p 22 'an n@h; reboot'"), "{said:?}");
        let said = of_exit(&node, Step::Connect, exited(255), "IDENTIFICATION HAS CHANGED");
        assert!(said.mend.contains("`ssh-keygen -R 'h; reboot'`"), "{said:?}");
    }

    #[test]
    fn our_own_script_and_endless_lines_are_not_repeated() {
        let tail = "fatal: unrecognized command 'exec sh -c 'echo; exec env \"$p\" __node''";
        let said = of_exit(&remote(), Step::Connect, exited(128), tail);
        let reason = "ended with exit code 128 before any command ran: fatal: unrecognized command '…";
        assert_eq!(said.reason, reason);
        let said = of_exit(&remote(), Step::Start, exited(1), &"é".repeat(9_000));
        assert!(said.reason.ends_with("éé…") && said.reason.chars().count() < 300, "{said:?}");
    }

    #[test]
    fn a_process_without_memory_is_told_from_one_that_was_killed() {
        let tail = "12 atoms read\nmemory allocation of 65000 bytes failed\n";
        let said = of_end(ExitStatus::from_raw(6), false, tail);
        let expected = "ran out of memory: the system refused it 65000 bytes; give it less work, or raise its limit \
                        (ulimit -v)";
        assert_eq!(said, expected);
        assert_eq!(of_end(ExitStatus::from_raw(134 << 8), true, tail), expected);
        let said = of_exit(&remote(), Step::Start, exited(134), tail);
        assert!(
            said.reason.ends_with("refused it 65000 bytes") && said.mend.contains("ulimit -v"),
            "{said:?}"
        );
        let said = of_end(ExitStatus::from_raw(6), false, "memory allocation of x bytes failed");
        assert!(said.starts_with("was killed by signal 6"), "{said}");
    }

    /// As seen of a program that was built without optimisation, with a thread's number and without.
    #[test]
    fn of_a_program_that_found_itself_wrong_the_first_words_count() {
        for first in ["thread 'main' (29624) panicked at", "thread 'main' panicked at"] {
            let tail = format!(
                "{first} quic/paths.rs:376:9:\nattempt to subtract with overflow\n\n{first} mutex.rs:138:42:\n\
                 called `Result::unwrap()` on an `Err` value: PoisonError {{ .. }}\n\n\
                 thread caused non-unwinding panic. aborting.\n"
            );
            let why = ": attempt to subtract with overflow (at quic/paths.rs:376:9)";
            for (status, is_ssh, how) in [
                (6, false, "was killed by signal 6"),
                (134 << 8, true, "was killed by signal 6"),
                (101 << 8, false, "ended with exit code 101"),
            ] {
                assert_eq!(of_end(ExitStatus::from_raw(status), is_ssh, &tail), format!("{how}{why}"));
            }
            let killed = of_end(ExitStatus::from_raw(9), false, &tail);
            assert_eq!(killed, "was killed by signal 9: thread caused non-unwinding panic. aborting.");
        }
        let silent = of_end(ExitStatus::from_raw(6), false, "thread 'x' panicked at a.rs:1:2:\n");
        assert_eq!(silent, "was killed by signal 6: it does not say why (at a.rs:1:2)");
    }

    #[test]
    fn a_program_without_a_thread_is_told_what_lacks() {
        let tail = "no thread to watch over the start: Resource temporarily unavailable (os error 11)";
        let said = of_exit(&NodeConfig::local("a", 1), Step::Start, exited(70), tail);
        assert!(said.mend.contains("ulimit -u") && said.reason.contains("as many processes"), "{said:?}");
    }

    #[test]
    fn a_node_that_cannot_listen_says_itself_what_mends_it() {
        let ip = "10.0.0.5".parse().unwrap();
        let error = |kind, said: &str| io::Error::new(kind, said.to_string());
        let taken = error(
            io::ErrorKind::AddrInUse,
            "all of the ports 1-2 are taken; widen `ports` in the nodes file",
        );
        let foreign = error(io::ErrorKind::AddrNotAvailable, "it is of no device");
        let address = "set `address` of this node in the nodes file";
        for (sentence, reason, mend) in [
            (
                reach::cannot_listen(ip, &taken),
                "it cannot listen on 10.0.0.5: all of the ports 1-2 are taken",
                "widen `ports` in the nodes file",
            ),
            (reach::cannot_listen(ip, &foreign), "it cannot listen on 10.0.0.5: it is of no device", address),
            (
                reach::arrived_at("").unwrap_err().to_string(),
                "it has no address to listen on: ssh says that it arrived at \"\" (SSH_CONNECTION)",
                address,
            ),
        ] {
            for code in [0, 70] {
                let said = of_exit(&remote(), Step::Start, exited(code), &format!("Welcome\n{sentence}\n"));
                assert_eq!((said.reason.as_str(), said.mend.as_str()), (reason, mend));
            }
        }
    }

    #[test]
    fn lines_of_a_backtrace_explain_nothing() {
        for line in [
            "stack backtrace:",
            "   0: std::alloc::rust_oom",
            "             at /rustc/5980/library/std/src/alloc.rs:424:5",
            "  12: metachare::main",
            "             at ./apps/src/main.rs:9:5",
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
        ] {
            assert!(is_backtrace(line), "{line}");
        }
        for line in ["memory allocation of 8 bytes failed", "oh: no", ": no", "10 atoms: none", "at noon", ""]
        {
            assert!(!is_backtrace(line), "{line}");
        }
    }

    #[test]
    fn a_shortage_here_is_not_blamed_on_the_node_or_on_ssh() {
        let error = io::Error::from_raw_os_error(Errno::EMFILE as i32);
        for config in [remote(), NodeConfig::local("a", 1)] {
            let said = of_spawn(&config, &error);
            assert!(said.mend.contains("ulimit -n") && said.reason.contains("files open"), "{said:?}");
        }
        let absent = io::Error::from_raw_os_error(Errno::ENOENT as i32);
        assert_eq!(of_spawn(&remote(), &absent).mend, "install an ssh client");
    }

    #[test]
    fn a_signal_is_told_from_a_lost_connection() {
        let killed = |code| of_end(ExitStatus::from_raw(code), true, "");
        assert_eq!(killed(137 << 8), "was killed by signal 9");
        assert_eq!(killed(255 << 8), "lost its ssh connection");
        assert_eq!(killed(9), "lost its ssh connection: ssh was killed by signal 9");
        assert_eq!(killed(70 << 8), "ended with exit code 70");
        assert_eq!(of_end(ExitStatus::from_raw(9), false, "oh"), "was killed by signal 9: oh");
    }
}
