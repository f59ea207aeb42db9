//! Starts programs, nodes, hosts and networks for the tests, and sees to it that nothing is left of them.

pub mod json;
pub mod terminal;
pub mod testbed;

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// No wait of a test is longer.
pub const LIMIT: Duration = Duration::from_secs(120);

/// How a line begins that says which nodes are used.
const NAMES_NODES: [&str; 3] =
    ["note: on the nodes of ", "note: on the built-in local nodes ", "note: there is no nodes file: "];

/// Says why tests are skipped that need what this machine does not have.
///
/// # Panics
/// In CI (`CI=true`), where they must run.
pub fn skipped(what: &str) {
    let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!is_ci, "what must run in CI is skipped: {what}");
    // Written past the test's own output, which is shown only when a test fails.
    let _ = writeln!(std::io::stderr(), "skipped: {what}");
}

/// How a program ended.
#[derive(Debug)]
pub struct Done {
    /// Exit code; 128 and the signal's number if a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// The first line of standard error, if it says which nodes are used, without the end of the line.
    pub nodes: String,
    /// Standard error, but for that line.
    pub stderr: String,
}

impl Done {
    /// The last line of standard error.
    #[must_use]
    pub fn last_error(&self) -> &str {
        self.stderr.lines().last().unwrap_or_default()
    }
}

/// A running program; killed if the test ends before it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

/// Starts a program in a folder.
///
/// # Panics
/// If it cannot be started.
#[must_use]
pub fn start(command: &mut Command) -> Running {
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    start_into(command, Stdio::piped())
}

/// Starts a program whose standard output goes somewhere, and whose other streams are set.
///
/// # Panics
/// If it cannot be started.
#[must_use]
pub fn start_into(command: &mut Command, stdout: impl Into<Stdio>) -> Running {
    if command.get_envs().all(|(name, _)| name != "XDG_CONFIG_HOME") {
        // The nodes file of whoever runs the tests is none of theirs.
        command.env("XDG_CONFIG_HOME", "/nonexistent");
    }
    let mut child = command.stdout(stdout).spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    // Else the command would hold the other end of a pipe.
    command.stdout(Stdio::null());
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    Running { child, stdout, stderr }
}

/// Reads everything on a thread of its own, so that a full pipe never stops a program.
fn drain(from: Option<impl std::io::Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    // What is not piped is not read; its text is empty.
    let Some(mut from) = from else { return receiver };
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

impl Running {
    /// Its process.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("process numbers are small")
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not end within [`LIMIT`].
    pub fn done(mut self) -> Done {
        use std::os::unix::process::ExitStatusExt as _;
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                break status;
            }
            assert!(started.elapsed() < LIMIT, "the program did not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        let read = |from: &Receiver<String>| from.recv_timeout(LIMIT).unwrap_or_default();
        let said = read(&self.stderr);
        let (nodes, stderr) = match said.split_once('\n') {
            Some((first, rest)) if NAMES_NODES.iter().any(|words| first.starts_with(words)) => (first, rest),
            _ => ("", said.as_str()),
        };
        Done { code, stdout: read(&self.stdout), nodes: nodes.into(), stderr: stderr.into() }
    }

    /// Waits until `count` of its local nodes run; their processes.
    ///
    /// # Panics
    /// If they do not come within [`LIMIT`].
    #[must_use]
    pub fn nodes(&self, count: usize) -> Vec<i32> {
        wait_for("nodes to start", || {
            let nodes = children(self.pid());
            (nodes.len() == count).then_some(nodes)
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `ready` gives something.
///
/// # Panics
/// If that takes longer than [`LIMIT`].
pub fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(started.elapsed() < LIMIT, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a run whose `XDG_RUNTIME_DIR` is `folder` has all its nodes and can be watched.
///
/// # Panics
/// If that takes longer than [`LIMIT`].
pub fn wait_for_work(folder: &Path) {
    wait_for("the run to begin", || {
        let mut sockets = fs::read_dir(folder.join("metachare")).ok()?.flatten().map(|file| file.path());
        // That of a launcher which was killed is there, but nobody answers.
        sockets.find(|path| {
            path.extension().is_some_and(|end| end == "sock") && UnixStream::connect(path).is_ok()
        })
    });
}

/// Lets a disturbance last: how long it does is what is tested. What can be waited for is waited for with
/// [`wait_for`].
pub fn let_pass(time: Duration) {
    std::thread::sleep(time);
}

/// Sends a signal, such as `KILL`.
///
/// # Panics
/// If `kill` cannot be run.
pub fn signal(pid: i32, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).status();
    assert!(sent.is_ok(), "kill is not installed");
}

/// Whether a process is there and not a zombie.
#[must_use]
pub fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Node processes whose parent is `parent`.
fn children(parent: i32) -> Vec<i32> {
    with_command_line(|pid, words| self::parent(pid) == parent && words.iter().any(|word| word == "__node"))
}

/// The parent of a process; 0 if there is no such process.
#[must_use]
pub fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    rest.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Node processes, of any host of this machine, whose executable's path contains `part`.
#[must_use]
pub fn nodes_at(part: &str) -> Vec<i32> {
    with_command_line(|_, words| words.len() == 2 && words[0].contains(part) && words[1] == "__node")
}

/// Processes of any kind whose command line contains `part`, this one excluded.
#[must_use]
pub fn processes_with(part: &str) -> Vec<i32> {
    let own = i32::try_from(std::process::id()).expect("process numbers are small");
    with_command_line(|pid, words| pid != own && words.iter().any(|word| word.contains(part)))
}

fn with_command_line(wanted: impl Fn(i32, &[String]) -> bool) -> Vec<i32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_string_lossy().parse::<i32>().ok())
        .filter(|&pid| {
            let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<String> = bytes
                .split(|b| *b == 0)
                .filter(|w| !w.is_empty())
                .map(|w| String::from_utf8_lossy(w).into())
                .collect();
            is_alive(pid) && wanted(pid, &words)
        })
        .collect()
}

/// Writes a file into a folder; its path.
///
/// # Panics
/// If it cannot be written.
pub fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    path
}

/// Writes a program, such as a script, into a folder; its path. Everybody may run it.
///
/// Another process writes it: of a file that this one has open, a copy is open in whatever another test of it starts at the same
/// moment, and nobody can run a program that is open for writing.
///
/// # Panics
/// If it cannot be written.
pub fn write_program(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"]).arg(&path).stdin(Stdio::piped());
    let mut child = shell.spawn().unwrap_or_else(|e| panic!("{shell:?}: {e}"));
    let written = child.stdin.take().map(|mut to| to.write_all(content.as_ref()));
    assert!(child.wait().is_ok_and(|status| status.success()), "{path:?}: {written:?}");
    path
}

/// Copies a program into a folder, as [`write_program`] writes one; its path.
///
/// # Panics
/// If it cannot be copied.
pub fn copy_program(program: &str, folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let mut copy = Command::new("cp");
    let status = copy.arg(program).arg(&path).status();
    assert!(status.as_ref().is_ok_and(std::process::ExitStatus::success), "{copy:?}: {status:?}");
    path
}

/// A nodes file with local nodes of so many PEs each, named `a`, `b`, ….
///
/// # Panics
/// If it cannot be written.
pub fn local_nodes(folder: &Path, pes: &[u32]) -> PathBuf {
    let node = |(at, pes): (usize, &u32)| {
        let name = char::from(b'a' + u8::try_from(at).expect("tests have few nodes"));
        format!("[[node]]\nname = \"{name}\"\npes = {pes}\n")
    };
    write(folder, "nodes.toml", &pes.iter().enumerate().map(node).collect::<String>())
}

/// The number after `words` in a text, such as a result that a program printed.
#[must_use]
pub fn after<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    text.split_once(words)?.1.split_whitespace().next()
}
