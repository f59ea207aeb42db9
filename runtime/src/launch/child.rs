//! A child process with all that it starts, and the lines that it prints.

use super::diagnose;
use super::options::LogLine;
use crate::ids::NodeId;
use crate::monitor::wire::OutputLine;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::UnboundedSender;

/// The longest line that is passed on whole.
const LINE_MAX_BYTES: u64 = 64 << 10;
/// What a line of a node's standard error begins with if it is for the file of the node's log: the separator of records
/// in ASCII, which no other line begins with.
pub const LOG_MARK: char = '\x1e';
/// Lines of standard error that are remembered to explain an end.
const TAIL_LINES: usize = 24;

/// How long a process that has been killed is waited for, and how often somebody looks: only a broken kernel needs so long.
const DYING_MAX: Duration = Duration::from_millis(400);
const DYING_LOOK: Duration = Duration::from_millis(1);

/// A child process in a process group of its own, which is killed with all its members when this is dropped, and is gone then.
#[derive(Debug)]
pub(super) struct Group {
    child: Child,
}

/// Its three pipes.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

impl Group {
    /// Starts a command. The terminal's ctrl-C does not reach it: that is for the launcher alone, which then
    /// ends the nodes in order.
    pub(super) fn spawn(command: &mut Command) -> io::Result<(Self, Pipes)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("its pipes are missing"));
        };
        Ok((Self { child }, Pipes { stdin, stdout, stderr }))
    }

    /// Waits for the end of the child itself. May be called again after being dropped half-way.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends the whole group at once.
    pub(super) fn kill(&self) {
        // Its number is gone when it has been waited for, and then it may be another group's.
        let number = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(number) = number {
            // A group that has ended by itself meanwhile is what we want.
            let _ = killpg(Pid::from_raw(number), Signal::SIGKILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        // Whoever drops this may end the next moment, and then nothing may be left running.
        let until = Instant::now() + DYING_MAX;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(DYING_LOOK);
        }
    }
}

/// Lines of a pipe.
pub(super) struct Lines<R> {
    from: BufReader<R>,
    bytes: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from: BufReader::new(from), bytes: Vec::new() }
    }

    /// What has been read and was in no line, and the pipe itself.
    pub(super) fn into_rest(self) -> (Vec<u8>, R) {
        ([&self.bytes, self.from.buffer()].concat(), self.from.into_inner())
    }

    /// The next line, without its end; one that is too long comes in pieces. `None` at the end. May be called again
    /// after being dropped half-way.
    pub(super) async fn next(&mut self) -> Option<String> {
        let room = LINE_MAX_BYTES.saturating_sub(self.bytes.len() as u64);
        // A pipe that cannot be read has ended.
        let _ = (&mut self.from).take(room).read_until(b'\n', &mut self.bytes).await;
        let line = std::mem::take(&mut self.bytes);
        let is_line = !line.is_empty();
        is_line.then(|| String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_string())
    }
}

/// The last lines of a process's standard error.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    pub(super) fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Remembers a line that may explain an end.
    fn push(&self, line: &str) {
        if diagnose::is_backtrace(line) {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(line.to_string());
    }

    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Where the lines of a node's standard error go.
pub(super) struct Errors {
    pub(super) node: NodeId,
    pub(super) name: String,
    pub(super) output: UnboundedSender<OutputLine>,
    pub(super) log: Option<Sender<LogLine>>,
    pub(super) tail: Tail,
    /// The lines up to this one are a login's, and only remembered.
    pub(super) noise_until: Option<&'static str>,
}

impl Errors {
    /// Passes the lines on and remembers the last ones, except those that are for a log.
    pub(super) async fn pass_on(mut self, mut lines: Lines<impl AsyncRead + Unpin>) {
        while let Some(text) = lines.next().await {
            if self.noise_until == Some(text.as_str()) {
                self.noise_until = None;
                self.tail.clear();
                continue;
            }
            if let (Some(log), Some(line)) = (&self.log, text.strip_prefix(LOG_MARK)) {
                // Without a listener nobody wants it.
                let _ = log.send(LogLine { node: self.name.clone(), text: line.into() });
                continue;
            }
            self.tail.push(&text);
            if self.noise_until.is_none() {
                let _ = self.output.send(OutputLine { node: self.node.0, is_error: true, text });
            }
        }
    }
}

/// Passes on the lines of a node's standard output.
pub(super) async fn pass_on(
    mut lines: Lines<ChildStdout>,
    node: NodeId,
    output: UnboundedSender<OutputLine>,
) {
    while let Some(text) = lines.next().await {
        // Without a listener nobody wants it; the pipe must not fill all the same.
        let _ = output.send(OutputLine { node: node.0, is_error: false, text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::sim::Random;

    #[tokio::test]
    async fn lines_for_the_log_are_neither_output_nor_an_explanation() {
        let said = "login\nbegin\n\u{1e}for the log\nfor people\n";
        let (output, mut shown) = tokio::sync::mpsc::unbounded_channel();
        let (log, logged) = std::sync::mpsc::channel();
        let tail = Tail::default();
        let errors = |log| Errors {
            node: NodeId(3),
            name: "fast".into(),
            output: output.clone(),
            log,
            tail: tail.clone(),
            noise_until: Some("begin"),
        };
        errors(Some(log)).pass_on(Lines::new(said.as_bytes())).await;
        assert_eq!(tail.text(), "for people\n");
        assert_eq!(shown.recv().await.map(|line| line.text).as_deref(), Some("for people"));
        let line = LogLine { node: "fast".into(), text: "for the log".into() };
        assert_eq!(logged.iter().collect::<Vec<_>>(), [line]);
        // Where there is no log nothing is lost.
        errors(None).pass_on(Lines::new(said.as_bytes())).await;
        assert_eq!(tail.text(), "\u{1e}for the log\nfor people\n");
    }

    #[tokio::test]
    async fn a_process_is_gone_when_nobody_has_it_any_more() {
        let (group, pipes) = Group::spawn(Command::new("sleep").arg("1000")).unwrap();
        let number = group.child.id().expect("it has not ended");
        assert!(std::fs::exists(format!("/proc/{number}")).unwrap());
        drop(group);
        assert!(!std::fs::exists(format!("/proc/{number}")).unwrap(), "not even as a zombie");
        drop(pipes);
    }

    /// What a login or a program prints is anything, also a line without end.
    #[tokio::test]
    async fn output_of_any_content_comes_in_lines_of_limited_length() {
        let mut random = Random::new(81);
        for _ in 0..10_000 {
            let mut said = random.bytes(200);
            said.extend(random.mutated(b"first\nsecond\r\n\nlast"));
            let (mut lines, mut count) = (Lines::new(&said[..]), 0);
            while let Some(line) = lines.next().await {
                count += 1;
                assert!(!line.contains('\n'));
            }
            assert_eq!(count, said.split_inclusive(|byte| *byte == b'\n').count());
        }
        let endless = tokio::io::repeat(b'x').take(3 * LINE_MAX_BYTES);
        let mut lines = Lines::new(endless);
        for _ in 0..3 {
            assert_eq!(lines.next().await.unwrap().len() as u64, LINE_MAX_BYTES);
        }
        assert_eq!(lines.next().await, None);
    }
}
