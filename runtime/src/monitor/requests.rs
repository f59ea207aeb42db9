//! What is asked of a run at other terminals: a second private socket beside the [one for viewers](super::socket).
//!
//! ```text
//!   a command ─► Request ─► a thread of the launcher ─► the driver, as soon as it waits ─► Answer ─► the command
//! ```
//!
//! The driver grants one after the other, but who waits long keeps no other waiting. The socket lies where only the run's user may enter, and who asks is looked at again.

use super::socket::{self, REQUESTS, WatchError};
use super::wire::{MONITOR_VERSION, read, write};
use crate::config::NodeConfig;
use crate::failure::{Failure, Kind};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::getuid;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// The longest request or answer, bytes.
const MAX_BYTES: u32 = 64 << 10;
/// Who has connected says what it wants within this time.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// All that is on this node goes to the other nodes, and its process ends.
    Drain {
        /// Its name.
        node: String,
    },
    /// This node joins the run.
    Add {
        /// What it is and how it is started.
        node: Box<NodeConfig>,
    },
    /// The run is saved now.
    Checkpoint {
        /// Then it ends.
        stop: bool,
    },
}

/// What became of a request: what was done, or why it was not.
pub type Answer = Result<Granted, Refused>;

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// In words.
    pub sentence: String,
    /// Where the run was saved, if that was asked for.
    pub saved: Option<SavedIn>,
}

impl From<String> for Granted {
    fn from(sentence: String) -> Self {
        Self { sentence, saved: None }
    }
}

/// Where a run was saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedIn {
    /// The folder of its checkpoints, from the root.
    pub dir: PathBuf,
    /// The folder in which the run was started, and from which it names its files.
    pub started_in: PathBuf,
    /// The program that can go on with it.
    pub program: String,
}

impl SavedIn {
    /// The command that goes on from there, as a shell reads it.
    #[must_use]
    pub fn restart_command(&self) -> String {
        restart_command(&self.program, &self.dir)
    }
}

/// The command of a program that goes on from a folder of checkpoints, as a shell reads it.
#[must_use]
pub fn restart_command(program: &str, dir: &Path) -> String {
    let dir = dir.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+=:,@%".contains(letter);
    let dir = if dir.chars().all(is_plain) { dir } else { format!("'{}'", dir.replace('\'', r"'\''")) };
    format!("{program} restart {dir}")
}

/// Why a request was not granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Exit code of a program that asked for it.
    pub code: u8,
    /// The reason, and how to mend it.
    pub sentence: String,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { code: failure.exit_code(), sentence: failure.sentence }
    }
}

/// A request that waits for its answer. Who drops it says that the run has ended.
#[derive(Debug)]
pub struct Asked {
    /// What is wanted.
    pub request: Request,
    answer: Sender<Answer>,
}

impl Asked {
    /// A request, and where its answer comes.
    #[must_use]
    pub fn new(request: Request) -> (Self, Receiver<Answer>) {
        let (answer, answered) = channel();
        (Self { request, answer }, answered)
    }

    /// Says what became of it.
    pub fn answer(self, answer: Answer) {
        // Who has gone meanwhile needs no answer.
        let _ = self.answer.send(answer);
    }
}

/// A run's socket for requests; it is removed when this is dropped.
#[derive(Debug)]
pub struct RequestSocket(PathBuf);

impl RequestSocket {
    /// Hands to `grant` whatever is asked of the run with that name. Who is answered late keeps no other waiting.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn serve(name: &str, grant: impl Fn(Asked) + Send + Sync + 'static) -> Result<Self, WatchError> {
        let (listener, path) = socket::listen(name, REQUESTS)?;
        let grant = Arc::new(grant);
        let serve = move || {
            for asking in socket::visitors(listener) {
                let grant = Arc::clone(&grant);
                let heard = std::thread::Builder::new().name("request".into()).spawn(move || {
                    if let Err(error) = hear(asking, &*grant) {
                        tracing::debug!("nobody was answered: {error}");
                    }
                });
                if let Err(error) = heard {
                    tracing::debug!("nobody was heard: {error}");
                }
            }
        };
        let started = std::thread::Builder::new().name("requests".into()).spawn(serve);
        started.map_err(|source| WatchError::Socket { name: name.into(), source })?;
        Ok(Self(path))
    }
}

impl Drop for RequestSocket {
    fn drop(&mut self) {
        socket::remove(&self.0);
    }
}

fn hear(mut asking: UnixStream, grant: &impl Fn(Asked)) -> io::Result<()> {
    if getsockopt(&asking, PeerCredentials)?.uid() != getuid().as_raw() {
        return Err(io::Error::other("another user asked"));
    }
    asking.set_read_timeout(Some(PATIENCE))?;
    asking.set_write_timeout(Some(PATIENCE))?;
    let theirs: u16 = read(&mut asking, MAX_BYTES)?;
    let answer: Answer = if theirs == MONITOR_VERSION {
        let (asked, answered) = Asked::new(read(&mut asking, MAX_BYTES)?);
        grant(asked);
        answered.recv().unwrap_or_else(|_| Err(ended()))
    } else {
        Err(Failure::new(Kind::Unavailable, WatchError::Version { run: MONITOR_VERSION, program: theirs })
            .into())
    };
    write(&mut asking, &answer)
}

fn ended() -> Refused {
    Failure::new(Kind::Unavailable, "the run has ended meanwhile").into()
}

/// Asks something of the run with that name, and waits for what becomes of it.
///
/// # Errors
/// If there is no such run, or it cannot be reached.
pub fn ask(name: &str, request: &Request) -> Result<Answer, WatchError> {
    let mut stream = socket::connect(name, REQUESTS)?;
    let failed = |source| WatchError::Socket { name: name.into(), source };
    write(&mut stream, &MONITOR_VERSION).map_err(failed)?;
    write(&mut stream, request).map_err(failed)?;
    match read(&mut stream, MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Err(ended())),
        answer => answer.map_err(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    #[test]
    fn the_command_that_goes_on_can_be_pasted_into_a_shell() {
        let command = |dir: &str| restart_command("metachare", Path::new(dir));
        assert_eq!(command("/data/säve_1.d"), "metachare restart /data/säve_1.d");
        assert_eq!(command("my run"), "metachare restart 'my run'");
        assert_eq!(command("it's"), r"metachare restart 'it'\''s'");
    }

    #[test]
    fn a_run_answers_whoever_asks_and_is_not_troubled_by_noise() {
        let name = format!("test-asked-{}", std::process::id());
        let (keep, later) = channel();
        let socket = RequestSocket::serve(&name, move |asked| match asked.request.clone() {
            Request::Drain { node } if node == "b" => asked.answer(Ok(String::from("done").into())),
            Request::Drain { node } if node == "c" => drop(asked),
            Request::Drain { node } => asked.answer(Err(Refused { code: 64, sentence: node })),
            Request::Checkpoint { .. } => keep.send(asked).unwrap(),
            Request::Add { .. } => {}
        });
        let socket = socket.unwrap();
        // One that is not answered, and one that says nothing.
        let (unanswered, silent) = (name.clone(), socket::connect(&name, REQUESTS).unwrap());
        let unanswered = std::thread::spawn(move || ask(&unanswered, &Request::Checkpoint { stop: true }));
        let kept = later.recv().unwrap();
        let drain = |node: &str| ask(&name, &Request::Drain { node: node.into() }).unwrap();
        assert_eq!(drain("b"), Ok(String::from("done").into()));
        assert_eq!(drain("c").unwrap_err().sentence, "the run has ended meanwhile");
        for noise in [&[0xff; 100][..], &[1, 0, 0, 0, MONITOR_VERSION as u8, 3, 0, 0, 0, 9, 9, 9]] {
            let mut rude = socket::connect(&name, REQUESTS).unwrap();
            rude.write_all(noise).unwrap();
            // It is shown the door.
            assert!(matches!(rude.read(&mut [0; 8]), Ok(0) | Err(_)));
        }
        let mut old = socket::connect(&name, REQUESTS).unwrap();
        write(&mut old, &(MONITOR_VERSION - 1)).unwrap();
        let refused: Answer = read(&mut old, MAX_BYTES).unwrap();
        let sentence = format!(
            "the run speaks monitor version {MONITOR_VERSION}, this program {}; use the run's own program",
            MONITOR_VERSION - 1
        );
        assert_eq!(refused.unwrap_err().sentence, sentence);
        assert_eq!(drain("x"), Err(Refused { code: 64, sentence: "x".into() }));
        drop((silent, kept));
        assert_eq!(unanswered.join().unwrap().unwrap().unwrap_err().sentence, "the run has ended meanwhile");
        drop(socket);
        assert!(matches!(ask(&name, &Request::Drain { node: "b".into() }), Err(WatchError::Unknown { .. })));
    }
}
