//! Viewers from other terminals: a private unix socket beside the launcher.
//!
//! The socket lies in a directory that only its owner may enter; events are postcard behind a length.

use super::hub::Hub;
use super::wire::{MONITOR_VERSION, MonitorEvent};
use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The longest event that a viewer accepts.
const EVENT_MAX_BYTES: u32 = 16 << 20;
/// A viewer that takes nothing for so long is let go.
const STALL_MAX: Duration = Duration::from_secs(10);

/// Sockets of this process that are there now.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Why a job cannot be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// No socket directory.
    #[error("the directory for sockets {path:?} is not usable: {source}")]
    Directory {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No such job.
    #[error("no running job is called {0:?}; `watch` without a name lists them")]
    Unknown(String),
    /// Nothing to watch.
    #[error("no job is running here; start one with `run`")]
    None,
    /// Several jobs.
    #[error("several jobs are running: {0}; name one")]
    Several(String),
    /// The job speaks another version.
    #[error(
        "the job speaks monitor version {theirs}, this program {MONITOR_VERSION}; use the job's own program"
    )]
    Version {
        /// Its version.
        theirs: u16,
    },
    /// The socket failed.
    #[error("the job {name:?} cannot be reached: {source}")]
    Socket {
        /// Which job.
        name: String,
        /// Why.
        source: io::Error,
    },
}

/// A job's socket; it is removed when this is dropped.
#[derive(Debug)]
pub struct MonitorSocket {
    path: PathBuf,
}

impl MonitorSocket {
    /// Serves the events of `hub` under the run's name.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn serve(hub: &Arc<Hub>) -> Result<Self, WatchError> {
        let name = hub.info().run_id;
        let path = directory()?.join(format!("{name}.sock"));
        let failed = |source| WatchError::Socket { name: name.clone(), source };
        let listener = UnixListener::bind(&path).map_err(failed)?;
        let hub = Arc::clone(hub);
        std::thread::Builder::new()
            .name("monitor".into())
            .spawn(move || {
                for viewer in listener.incoming().flatten() {
                    let events = hub.subscribe();
                    let serve = move || {
                        // A viewer may leave at any moment; that ends its thread and nothing else.
                        let _ = send_all(viewer, &events);
                    };
                    if std::thread::Builder::new().name("viewer".into()).spawn(serve).is_err() {
                        tracing::warn!("no thread for another viewer");
                    }
                }
            })
            .map_err(failed)?;
        OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
        Ok(Self { path })
    }
}

impl Drop for MonitorSocket {
    fn drop(&mut self) {
        OPEN.lock().unwrap_or_else(PoisonError::into_inner).retain(|open| *open != self.path);
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes the sockets of a process that is about to end without dropping them.
pub(crate) fn remove_all() {
    for path in OPEN.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = fs::remove_file(path);
    }
}

/// Names of the jobs of this user on this machine. Sockets of jobs that died are removed.
///
/// # Errors
/// If the directory cannot be read.
pub fn jobs() -> Result<Vec<String>, WatchError> {
    let path = directory()?;
    let failed = |source| WatchError::Directory { path: path.clone(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(&path).map_err(failed)?.flatten() {
        let file = entry.path();
        if file.extension().is_none_or(|e| e != "sock") {
            continue;
        }
        match UnixStream::connect(&file) {
            Ok(_) => names.extend(file.file_stem().map(|name| name.to_string_lossy().into_owned())),
            Err(_) => {
                let _ = fs::remove_file(&file);
            }
        }
    }
    names.sort();
    Ok(names)
}

/// The events of a running job; of the only one, if no name is given. The channel closes with the job.
///
/// # Errors
/// If there is no such job, or it cannot be watched.
pub fn watch(name: Option<&str>) -> Result<Receiver<MonitorEvent>, WatchError> {
    let name = match name {
        Some(name) => name.to_string(),
        None => match jobs()?.as_slice() {
            [] => return Err(WatchError::None),
            [only] => only.clone(),
            several => return Err(WatchError::Several(several.join(", "))),
        },
    };
    if name.contains('/') {
        return Err(WatchError::Unknown(name));
    }
    let stream = UnixStream::connect(directory()?.join(format!("{name}.sock")));
    let stream = stream.map_err(|_| WatchError::Unknown(name.clone()))?;
    let mut stream = BufReader::new(stream);
    let failed = |source| WatchError::Socket { name: name.clone(), source };
    let first = receive(&mut stream).map_err(failed)?;
    if let MonitorEvent::Run(info) = &first
        && info.version != MONITOR_VERSION
    {
        return Err(WatchError::Version { theirs: info.version });
    }
    let (events, receiver) = sync_channel(4096);
    let forward = move || {
        let mut next = Ok(first);
        while let Ok(event) = next {
            if events.send(event).is_err() {
                return;
            }
            next = receive(&mut stream);
        }
    };
    std::thread::Builder::new().name("feed".into()).spawn(forward).map_err(failed)?;
    Ok(receiver)
}

fn send_all(mut viewer: UnixStream, events: &Receiver<MonitorEvent>) -> io::Result<()> {
    viewer.set_write_timeout(Some(STALL_MAX))?;
    for event in events {
        let bytes = postcard::to_stdvec(&event).map_err(io::Error::other)?;
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        viewer.write_all(&length.to_le_bytes())?;
        viewer.write_all(&bytes)?;
        if matches!(event, MonitorEvent::Ended { .. }) {
            break;
        }
    }
    Ok(())
}

fn receive(stream: &mut impl Read) -> io::Result<MonitorEvent> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > EVENT_MAX_BYTES {
        return Err(io::Error::other("an event is longer than any can be"));
    }
    let mut bytes = vec![0; length as usize];
    stream.read_exact(&mut bytes)?;
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}

/// The directory of this user's sockets and locks: made if missing, refused if others may enter it.
pub(crate) fn directory() -> Result<PathBuf, WatchError> {
    let base = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|p| p.is_dir());
    let user = nix::unistd::getuid();
    let path = base.map_or_else(
        || std::env::temp_dir().join(format!("metachare-{user}")),
        |base| base.join("metachare"),
    );
    let failed = |source| WatchError::Directory { path: path.clone(), source };
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    check_private(&path, user.as_raw()).map_err(failed)?;
    Ok(path)
}

fn check_private(path: &Path, user: u32) -> io::Result<()> {
    let data = fs::symlink_metadata(path)?;
    if data.is_dir() && data.uid() == user && data.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::other("it must be a directory of mode 700 that belongs to you"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::wire::RunInfo;

    #[test]
    fn several_viewers_see_a_job_from_the_start_to_the_end() {
        let run_id = format!("test-{}", std::process::id());
        let info = RunInfo { version: MONITOR_VERSION, run_id: run_id.clone(), ..RunInfo::default() };
        let hub = Arc::new(Hub::new(info));
        let socket = MonitorSocket::serve(&hub).unwrap();
        let (one, two) = (watch(Some(&run_id)).unwrap(), watch(Some(&run_id)).unwrap());
        drop(watch(Some(&run_id)).unwrap());
        assert!(jobs().unwrap().contains(&run_id));
        let ended = MonitorEvent::Ended { code: 0, summary: "well".into() };
        hub.publish(ended.clone());
        for viewer in [one, two] {
            let all: Vec<_> = viewer.iter().collect();
            assert!(matches!(all.first(), Some(MonitorEvent::Run(_))));
            assert_eq!(all.last(), Some(&ended));
        }
        drop(socket);
        assert!(matches!(watch(Some(&run_id)), Err(WatchError::Unknown(_))));
    }

    #[test]
    fn garbage_is_an_error_without_a_huge_allocation() {
        assert!(receive(&mut &[0xff; 64][..]).is_err());
        assert!(receive(&mut &[3, 0, 0, 0, 0xff, 0xff, 0xff][..]).is_err());
        assert!(receive(&mut &[3, 0][..]).is_err());
    }
}
