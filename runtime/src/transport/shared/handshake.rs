//! How two processes come to share memory: one listens on a local socket without a file, the other brings the memory.
//!
//! The name of the socket is random, and told over the connection that the two have already. It belongs to the network
//! namespace: whoever lives in another one, such as a container with a network of its own, does not find it and counts as
//! another host. Both must be of one user, which the system says of each to the other, and both prove that they have the
//! key that only the two ends of that connection have. The socket stays, as a bell that wakes who sleeps.

use super::pair::Pair;
use crate::transport::mark::MarkKey;
use ring::rand::{SecureRandom as _, SystemRandom};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

/// Length of the random name of a socket.
pub(in crate::transport) const NAME_BYTES: usize = 16;
const PROOF_BYTES: usize = 32;
/// How long somebody who has connected may take for the first words.
const FIRST_WORDS: Duration = Duration::from_secs(1);
/// What the two ends prove to have the key with, so that neither proof serves for the other.
const BRINGS: &[u8] = b"brings";
const TAKES: &[u8] = b"takes";

type Name = [u8; NAME_BYTES];
type Key = MarkKey<PROOF_BYTES>;

/// Why two processes do not share memory.
#[derive(Debug, thiserror::Error)]
pub(in crate::transport) enum HandshakeError {
    /// The system does not permit it, or the other end is on another host.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The other process is another user's.
    #[error("the process at the other end is of user {0}")]
    User(u32),
    /// It does not have the key.
    #[error("the process at the other end does not prove who it is")]
    Proof,
    /// It did not take the memory.
    #[error("the other end did not take the memory")]
    Refused,
}

/// A socket that one other process is waited for at.
pub(in crate::transport) struct Listening {
    socket: UnixListener,
    name: Name,
}

impl Listening {
    /// Opens a socket with a random name.
    ///
    /// # Errors
    /// If the system does not permit it.
    pub(in crate::transport) fn new() -> io::Result<Self> {
        let mut name = Name::default();
        let random = SystemRandom::new().fill(&mut name);
        random.map_err(|_| io::Error::other("the system has no random numbers"))?;
        Ok(Self { socket: UnixListener::bind(path(&name))?, name })
    }

    /// What the other end has to be told.
    pub(in crate::transport) fn name(&self) -> Name {
        self.name
    }

    /// Takes the memory of whoever has the key. Others are turned away.
    pub(in crate::transport) async fn accept(
        self,
        secret: &[u8],
    ) -> Result<(Pair, UnixStream), HandshakeError> {
        let key = Key::new(secret);
        loop {
            let (stream, _) = self.socket.accept().await?;
            let brought = match check_user(&stream) {
                Ok(()) => timeout(FIRST_WORDS, self.first_words(&stream, &key)).await,
                Err(error) => Ok(Err(error)),
            };
            match brought {
                Ok(Ok(file)) => {
                    let pair = Pair::take(&file)?;
                    // The first words on a new socket fit into its buffer.
                    let said = stream.try_write(&proof(&key, TAKES, &self.name))?;
                    return if said == PROOF_BYTES {
                        Ok((pair, stream))
                    } else {
                        Err(HandshakeError::Refused)
                    };
                }
                Ok(Err(error)) => tracing::debug!("a process was turned away: {error}"),
                Err(_) => tracing::debug!("a process was turned away: it said nothing"),
            }
        }
    }

    /// What somebody brings who proves to have the key.
    async fn first_words(&self, stream: &UnixStream, key: &Key) -> Result<File, HandshakeError> {
        let mut words = [0; PROOF_BYTES + 1];
        let (count, file) = stream.async_io(Interest::READABLE, || receive(stream, &mut words)).await?;
        match file {
            Some(file) if key.is_mark(&said(BRINGS, &self.name), &words[..count]) => Ok(file),
            _ => Err(HandshakeError::Proof),
        }
    }
}

/// Brings memory to the process that listens at `name`.
pub(in crate::transport) async fn answer(
    name: &Name,
    secret: &[u8],
) -> Result<(Pair, UnixStream), HandshakeError> {
    let key = Key::new(secret);
    let mut stream = UnixStream::connect(path(name)).await?;
    check_user(&stream)?;
    let (pair, file) = Pair::make()?;
    let words = proof(&key, BRINGS, name);
    stream.async_io(Interest::WRITABLE, || send(&stream, &words, &file)).await?;
    let mut answer = [0; PROOF_BYTES];
    match stream.read_exact(&mut answer).await {
        Ok(_) if key.is_mark(&said(TAKES, name), &answer) => Ok((pair, stream)),
        Ok(_) => Err(HandshakeError::Proof),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(HandshakeError::Refused),
        Err(error) => Err(error.into()),
    }
}

/// An abstract address, which is no file.
fn path(name: &Name) -> String {
    let digits: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\0metachare-{digits}")
}

fn check_user(stream: &UnixStream) -> Result<(), HandshakeError> {
    let user = stream.peer_cred()?.uid();
    if user == nix::unistd::geteuid().as_raw() { Ok(()) } else { Err(HandshakeError::User(user)) }
}

fn said(role: &[u8], name: &Name) -> Vec<u8> {
    [role, name].concat()
}

fn proof(key: &Key, role: &[u8], name: &Name) -> [u8; PROOF_BYTES] {
    key.mark(&said(role, name))
}

fn send(stream: &UnixStream, words: &[u8], file: &File) -> io::Result<()> {
    let files = [file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    // There is space for just this.
    beside.push(SendAncillaryMessage::ScmRights(&files));
    let sent = sendmsg(stream, &[IoSlice::new(words)], &mut beside, SendFlags::NOSIGNAL)?;
    if sent == words.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

fn receive(stream: &UnixStream, words: &mut [u8]) -> io::Result<(usize, Option<File>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let message = recvmsg(stream, &mut [IoSliceMut::new(words)], &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    let mut files = beside.drain().filter_map(|one| match one {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    Ok((message.bytes, files.next().map(File::from)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::shared::Event;

    fn inside<T>(test: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { timeout(Duration::from_secs(30), test).await.expect("within the deadline") })
    }

    #[test]
    fn two_ends_with_the_key_come_to_share_memory_and_a_bell() {
        inside(async {
            let listening = Listening::new().unwrap();
            let name = listening.name();
            let (taken, brought) = tokio::join!(listening.accept(b"key"), answer(&name, b"key"));
            let ((one, bell), (two, mut rung)) = (taken.unwrap(), brought.unwrap());
            let [mut producer, ..] = one.producers();
            producer.put(b"hello").unwrap();
            producer.show();
            let ([mut consumer, ..], mut bytes) = (two.consumers(), [0; 5]);
            assert_eq!(consumer.take(&mut bytes), Ok(5));
            assert_eq!(&bytes, b"hello");
            two.sleeps_until(Event::Arrival);
            assert!(one.must_wake(Event::Arrival));
            bell.try_write(&[0]).unwrap();
            rung.read_exact(&mut [0]).await.unwrap();
            assert_eq!(
                answer(&name, b"key").await.err().map(|e| e.to_string().is_empty()),
                Some(false),
                "once"
            );
        });
    }

    #[test]
    fn who_has_another_key_or_none_gets_nowhere_and_keeps_nobody_off() {
        inside(async {
            let listening = Listening::new().unwrap();
            let name = listening.name();
            let tries = async {
                let (wrong, silent) =
                    (answer(&name, b"another").await, UnixStream::connect(path(&name)).await);
                assert!(matches!(wrong, Err(HandshakeError::Refused)), "{:?}", wrong.err());
                // The proof of the other role, with the memory that it needs.
                let (_, file) = Pair::make().unwrap();
                let mirror = UnixStream::connect(path(&name)).await.unwrap();
                let words = proof(&Key::new(b"key"), TAKES, &name);
                mirror.async_io(Interest::WRITABLE, || send(&mirror, &words, &file)).await.unwrap();
                drop(silent);
                answer(&name, b"key").await
            };
            let (taken, brought) = tokio::join!(listening.accept(b"key"), tries);
            assert!(taken.is_ok() && brought.is_ok(), "{:?} {:?}", taken.err(), brought.err());
        });
    }

    #[test]
    fn who_listens_without_the_key_gets_memory_that_nobody_uses() {
        inside(async {
            let listening = Listening::new().unwrap();
            let name = listening.name();
            let impostor = async {
                let (stream, _) = listening.socket.accept().await.unwrap();
                stream.readable().await.unwrap();
                stream.try_write(&proof(&Key::new(b"guessed"), TAKES, &name)).unwrap();
                stream
            };
            let (_kept, brought) = tokio::join!(impostor, answer(&name, b"key"));
            assert!(matches!(brought, Err(HandshakeError::Proof)), "{:?}", brought.err());
        });
    }

    #[test]
    fn what_is_no_memory_is_refused() {
        inside(async {
            let listening = Listening::new().unwrap();
            let name = listening.name();
            let brings_a_file = async {
                let mut stream = UnixStream::connect(path(&name)).await.unwrap();
                let (words, file) =
                    (proof(&Key::new(b"key"), BRINGS, &name), File::open("/dev/zero").unwrap());
                stream.async_io(Interest::WRITABLE, || send(&stream, &words, &file)).await.unwrap();
                stream.read_exact(&mut [0]).await.map(|_| ())
            };
            let (taken, answered) = tokio::join!(listening.accept(b"key"), brings_a_file);
            assert!(matches!(taken, Err(HandshakeError::System(_))) && answered.is_err());
        });
    }

    #[test]
    fn nobody_listens_on_another_host() {
        inside(async {
            let nowhere = answer(&[7; NAME_BYTES], b"key").await;
            assert!(
                matches!(nowhere, Err(HandshakeError::System(e)) if e.kind() == ErrorKind::ConnectionRefused)
            );
        });
    }
}
