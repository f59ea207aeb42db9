//! Viewers from other terminals: a private unix socket beside the launcher.
//!
//! The socket lies in a directory that only its owner may enter. A viewer only listens: the run reads nothing
//! from it, so there is nothing that it could say. Who wants something of the run says so on
//! [another socket](super::requests).

use super::hub::Hub;
use super::wire::{MONITOR_VERSION, MonitorEvent};
use nix::unistd::getuid;
use std::fs;
use std::io::{self, BufReader};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Viewers at a time; each costs the launcher a thread.
const VIEWERS_MAX: usize = 64;
/// How long the end of a run may wait for viewers that have not been told yet, and how often it looks.
const LAST_WORDS: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(2);
/// How long to wait when somebody could not be let in.
const BREATH: Duration = Duration::from_millis(200);
/// A viewer that takes nothing for so long is let go.
const STALL_MAX: Duration = Duration::from_secs(10);

/// What sockets are for, which is how their names end.
pub(super) const VIEWERS: &str = "sock";
pub(super) const REQUESTS: &str = "ask";

/// Sockets of this process that are there now.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Why a run cannot be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// No socket directory.
    #[error("the directory for sockets {path:?} is not usable: {source}; {mend}")]
    Directory {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// What to do about it.
        mend: String,
    },
    /// No such run.
    #[error("no run here is called {name:?}; {}", there_are(runs))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The runs that are running.
        runs: Vec<String>,
    },
    /// Nothing to watch.
    #[error("no run is going on here; start one with `run`")]
    None,
    /// Several runs.
    #[error("several runs are going on: {0}; name one")]
    Several(String),
    /// The run speaks another version.
    #[error("the run speaks monitor version {run}, this program {program}; use the run's own program")]
    Version {
        /// That of the run.
        run: u16,
        /// That of who wants something of it.
        program: u16,
    },
    /// The socket failed.
    #[error("the run {name:?} cannot be reached: {source}")]
    Socket {
        /// Which run.
        name: String,
        /// Why.
        source: io::Error,
    },
}

fn there_are(runs: &[String]) -> String {
    match runs {
        [] => "no run is going on here; start one with `run`".into(),
        [only] => format!("the only one is {only}"),
        several => format!("running are {}", several.join(", ")),
    }
}

/// A run's socket; it is removed when this is dropped.
#[derive(Debug)]
pub struct MonitorSocket {
    path: PathBuf,
    /// One for who lets viewers in, and one for each viewer.
    open: Weak<()>,
}

impl MonitorSocket {
    /// Serves the events of `hub` under the run's name.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn serve(hub: &Arc<Hub>) -> Result<Self, WatchError> {
        let name = hub.info().run_id;
        let failed = |source| WatchError::Socket { name: name.clone(), source };
        let (listener, path) = listen(&name, VIEWERS)?;
        let hub = Arc::clone(hub);
        let open = Arc::new(());
        let viewers = Arc::downgrade(&open);
        std::thread::Builder::new()
            .name("monitor".into())
            .spawn(move || {
                for viewer in visitors(listener) {
                    // Dropping the connection tells a viewer too many that there is nothing to see.
                    if Arc::strong_count(&open) > VIEWERS_MAX {
                        continue;
                    }
                    let (events, open) = (hub.subscribe_late(), Arc::clone(&open));
                    let serve = move || {
                        // A viewer may leave at any moment; that ends its thread and nothing else.
                        let _ = send_all(viewer, &events);
                        drop(open);
                    };
                    if std::thread::Builder::new().name("viewer".into()).spawn(serve).is_err() {
                        tracing::warn!("no thread for another viewer");
                    }
                }
            })
            .map_err(failed)?;
        Ok(Self { path, open: viewers })
    }
}

impl Drop for MonitorSocket {
    fn drop(&mut self) {
        remove(&self.path);
        // The process may end right after this, and viewers are to hear how the run ended.
        let limit = Instant::now() + LAST_WORDS;
        while self.open.strong_count() > 1 && Instant::now() < limit {
            std::thread::sleep(LOOK);
        }
    }
}

/// Listens on the socket of this kind of the run with that name; where that lies.
pub(super) fn listen(name: &str, kind: &str) -> Result<(UnixListener, PathBuf), WatchError> {
    let path = directory()?.join(format!("{name}.{kind}"));
    let failed = |source| WatchError::Socket { name: name.into(), source };
    // Between being bound and being listened to it looks like the socket of a dead run: so it comes under another
    // name, and gets its own when it answers.
    let unborn = path.with_extension(format!("{kind}.{}.new", std::process::id()));
    let _ = fs::remove_file(&unborn);
    let listener = UnixListener::bind(&unborn).map_err(failed)?;
    let born = give_name(&unborn, &path);
    let _ = fs::remove_file(&unborn);
    born.map_err(failed)?;
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
    Ok((listener, path))
}

/// Gives a socket its name, unless that is of a run that lives: another one may have been started under it at the same time.
fn give_name(unborn: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(unborn, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        linked => return linked,
    }
    match UnixStream::connect(path) {
        Err(error) if is_dead(&error) => fs::rename(unborn, path),
        _ => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another run has that name: give this one another by --name",
        )),
    }
}

/// All that connect, one after the other.
pub(super) fn visitors(listener: UnixListener) -> impl Iterator<Item = UnixStream> {
    std::iter::repeat_with(move || listener.accept()).filter_map(|accepted| match accepted {
        Ok((visitor, _)) => Some(visitor),
        Err(_) => {
            // Most likely too many files are open, and the next try would fail as fast.
            std::thread::sleep(BREATH);
            None
        }
    })
}

/// Removes a socket on which this process listened.
pub(super) fn remove(path: &Path) {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).retain(|open| open != path);
    let _ = fs::remove_file(path);
}

/// Connects to the socket of this kind of the run with that name.
pub(super) fn connect(name: &str, kind: &str) -> Result<UnixStream, WatchError> {
    let unknown = || Ok(WatchError::Unknown { name: name.into(), runs: runs()? });
    if name.contains('/') {
        return Err(unknown()?);
    }
    match UnixStream::connect(directory()?.join(format!("{name}.{kind}"))) {
        Err(error) if is_dead(&error) => Err(unknown()?),
        stream => stream.map_err(|source| WatchError::Socket { name: name.into(), source }),
    }
}

/// Removes the sockets of a process that is about to end without dropping them.
pub(crate) fn remove_all() {
    for path in OPEN.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = fs::remove_file(path);
    }
}

/// Names of the runs of this user on this machine. Sockets of runs that died are removed; a run that cannot be
/// reached just now is listed.
///
/// # Errors
/// If the directory cannot be read.
pub fn runs() -> Result<Vec<String>, WatchError> {
    let path = directory()?;
    let failed = |source| unusable(&path, getuid().as_raw(), source);
    let mut names = Vec::new();
    for entry in fs::read_dir(&path).map_err(failed)?.flatten() {
        let file = entry.path();
        if file.extension().is_none_or(|e| e != VIEWERS) {
            continue;
        }
        match UnixStream::connect(&file) {
            Err(error) if is_dead(&error) => {
                let _ = fs::remove_file(&file);
                let _ = fs::remove_file(file.with_extension(REQUESTS));
            }
            _ => names.extend(file.file_stem().map(|name| name.to_string_lossy().into_owned())),
        }
    }
    names.sort();
    Ok(names)
}

/// Whether nobody will ever answer there again; any other error says more about us than about the run.
fn is_dead(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
}

/// The events of a run; of the only one, if no name is given. The channel closes with the run.
///
/// # Errors
/// If there is no such run, or it cannot be watched.
pub fn watch(name: Option<&str>) -> Result<Receiver<MonitorEvent>, WatchError> {
    let name = match name {
        Some(name) => name.to_string(),
        None => match runs()?.as_slice() {
            [] => return Err(WatchError::None),
            [only] => only.clone(),
            several => return Err(WatchError::Several(several.join(", "))),
        },
    };
    let failed = |source| WatchError::Socket { name: name.clone(), source };
    let mut stream = BufReader::new(connect(&name, VIEWERS)?);
    let first = MonitorEvent::read_from(&mut stream).map_err(failed)?;
    match &first {
        MonitorEvent::Run(info) if info.version == MONITOR_VERSION => {}
        MonitorEvent::Run(info) => {
            return Err(WatchError::Version { run: info.version, program: MONITOR_VERSION });
        }
        _ => return Err(failed(io::Error::other("it does not begin as a run does"))),
    }
    let (events, receiver) = sync_channel(4096);
    let forward = move || {
        let mut next = Ok(first);
        while let Ok(event) = next {
            if events.send(event).is_err() {
                return;
            }
            next = MonitorEvent::read_from(&mut stream);
        }
    };
    std::thread::Builder::new().name("feed".into()).spawn(forward).map_err(failed)?;
    Ok(receiver)
}

fn send_all(mut viewer: UnixStream, events: &Receiver<MonitorEvent>) -> io::Result<()> {
    viewer.set_write_timeout(Some(STALL_MAX))?;
    for event in events {
        event.write_to(&mut viewer)?;
        if matches!(event, MonitorEvent::Ended { .. }) {
            break;
        }
    }
    Ok(())
}

/// The directory of this user's sockets and locks: made if missing, refused if others may enter it.
pub(crate) fn directory() -> Result<PathBuf, WatchError> {
    let base = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|p| p.is_dir());
    let user = getuid();
    let path = base.map_or_else(
        || std::env::temp_dir().join(format!("metachare-{user}")),
        |base| base.join("metachare"),
    );
    let failed = |source| unusable(&path, getuid().as_raw(), source);
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    check_private(&path, user.as_raw()).map_err(failed)?;
    Ok(path)
}

fn unusable(path: &Path, user: u32, source: io::Error) -> WatchError {
    let is_mine = fs::symlink_metadata(path).is_ok_and(|data| data.is_dir() && data.uid() == user);
    let mend = if is_mine {
        format!("chmod 700 {}", path.display())
    } else {
        "set XDG_RUNTIME_DIR to a folder of yours, for `run` and for `watch`".into()
    };
    WatchError::Directory { path: path.into(), source, mend }
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
    use std::io::Write as _;

    #[test]
    fn several_viewers_see_a_job_from_the_start_to_the_end() {
        let run_id = format!("test-{}", std::process::id());
        let info = RunInfo { version: MONITOR_VERSION, run_id: run_id.clone(), ..RunInfo::default() };
        let hub = Arc::new(Hub::new(info));
        let socket = MonitorSocket::serve(&hub).unwrap();
        let (one, two) = (watch(Some(&run_id)).unwrap(), watch(Some(&run_id)).unwrap());
        drop(watch(Some(&run_id)).unwrap());
        assert!(runs().unwrap().contains(&run_id));
        let ended = MonitorEvent::Ended { code: 0, summary: "well".into() };
        hub.publish(ended.clone());
        let open = socket.open.clone();
        drop(socket);
        assert_eq!(open.strong_count(), 1, "all have been told");
        for viewer in [one, two] {
            let all: Vec<_> = viewer.iter().collect();
            assert!(matches!(all.first(), Some(MonitorEvent::Run(_))));
            assert_eq!(all.last(), Some(&ended));
        }
        assert!(matches!(watch(Some(&run_id)), Err(WatchError::Unknown { .. })));
    }

    #[test]
    fn a_run_keeps_its_name_as_long_as_it_lives_and_who_died_does_not() {
        let name = format!("test-twin-{}", std::process::id());
        let dead = directory().unwrap().join(format!("{name}.{VIEWERS}"));
        drop(UnixListener::bind(&dead).unwrap());
        let (living, path) = listen(&name, VIEWERS).unwrap();
        let refused = listen(&name, VIEWERS).unwrap_err().to_string();
        assert!(refused.contains("another run has that name"), "{refused}");
        assert!(connect(&name, VIEWERS).is_ok());
        drop(living);
        remove(&path);
        assert!(!path.exists());
    }

    #[test]
    fn only_a_dead_jobs_socket_is_removed() {
        let folder = directory().unwrap();
        let name = |what: &str| format!("test-{what}-{}", std::process::id());
        let file = |what: &str| folder.join(format!("{}.sock", name(what)));
        drop(UnixListener::bind(file("dead")).unwrap());
        // Connecting fails for another reason: nothing is known about the run.
        std::os::unix::fs::symlink(file("strange"), file("strange")).unwrap();
        let listed = runs().unwrap();
        let strange = fs::remove_file(file("strange"));
        assert!(!listed.contains(&name("dead")) && !file("dead").exists());
        assert!(listed.contains(&name("strange")) && strange.is_ok());
    }

    #[test]
    fn a_directory_that_is_not_the_users_alone_is_refused_with_a_mend() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path, user: u32| {
            check_private(path, user).map_err(|source| unusable(path, user, source).to_string()).unwrap_err()
        };
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o750)).unwrap();
        let said = refused(folder.path(), getuid().as_raw());
        assert!(said.ends_with(&format!("; chmod 700 {}", folder.path().display())), "{said}");
        // As if another user had made it first.
        let said = refused(folder.path(), u32::MAX);
        let mend = "; set XDG_RUNTIME_DIR to a folder of yours, for `run` and for `watch`";
        assert!(said.ends_with(mend), "{said}");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        check_private(folder.path(), getuid().as_raw()).unwrap();
    }

    #[test]
    fn who_asks_for_a_job_that_is_not_there_learns_which_are() {
        let unknown = |runs: &[&str]| {
            let runs = runs.iter().map(ToString::to_string).collect();
            WatchError::Unknown { name: "x".into(), runs }.to_string()
        };
        let none = "no run here is called \"x\"; no run is going on here; start one with `run`";
        assert_eq!(unknown(&[]), none);
        assert!(unknown(&["a-1"]).ends_with("; the only one is a-1"));
        assert!(unknown(&["a-1", "b-2"]).ends_with("; running are a-1, b-2"));
    }

    /// One that talks, one that leaves at once and more than are served.
    #[test]
    fn viewers_that_misbehave_disturb_no_other() {
        let run_id = format!("test-rude-{}", std::process::id());
        let info = RunInfo { version: MONITOR_VERSION, run_id: run_id.clone(), ..RunInfo::default() };
        let hub = Arc::new(Hub::new(info));
        let _socket = MonitorSocket::serve(&hub).unwrap();
        let good = watch(Some(&run_id)).unwrap();
        let path = directory().unwrap().join(format!("{run_id}.sock"));
        let mut rude: Vec<UnixStream> =
            (1..VIEWERS_MAX).map(|_| UnixStream::connect(&path).unwrap()).collect();
        // Whoever lists the runs of this machine meanwhile takes a place for a moment, so one may not be served.
        rude.iter_mut().for_each(|viewer| drop(viewer.write_all(&[0xff; 4096])));
        let more: Vec<_> = (0..2 * VIEWERS_MAX).map_while(|_| watch(Some(&run_id)).ok()).collect();
        assert!(more.len() < VIEWERS_MAX, "{} too many", more.len());
        let ended = MonitorEvent::Ended { code: 0, summary: "well".into() };
        hub.publish(ended.clone());
        assert_eq!(good.iter().last(), Some(ended));
    }

    #[test]
    fn what_does_not_begin_as_a_job_does_is_not_watched() {
        let name = format!("test-strange-{}", std::process::id());
        let path = directory().unwrap().join(format!("{name}.sock"));
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || {
            for mut viewer in listener.incoming().flatten() {
                // Whoever only lists the runs of this machine has left already.
                let _ = MonitorEvent::Dropped(1).write_to(&mut viewer);
            }
        });
        assert!(matches!(watch(Some(&name)), Err(WatchError::Socket { .. })));
        fs::remove_file(path).unwrap();
    }
}
