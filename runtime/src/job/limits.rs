//! What the system lets this process take. Libraries that get nothing any more end a process without a word that helps
//! its user, so limits with which no run is possible are found before anything begins.

use crate::failure::Kind;
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::signal::Signal;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Open files that are enough for any run, and without which not even one node starts.
const FILES: rlim_t = 1 << 18;
const FILES_MIN: rlim_t = 24;
/// Address space without which threads cannot be started, bytes.
const SPACE_MIN: rlim_t = 64 << 20;

/// Takes what limits permit, and from now on survives a file that grows too large: writing fails then with a reason,
/// where the system would end the process without a word. To be called before any thread is started.
///
/// # Errors
/// The limit that permits no run, and how to raise it.
pub fn prepare_for_limits() -> Result<(), String> {
    // Handled by nobody it is ignored: only that it does not end the process matters.
    let survived = signal_hook::flag::register(Signal::SIGXFSZ as i32, Arc::default());
    survived.map_err(|e| format!("signals cannot be heard: {e}"))?;
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Usually it is a thousand, and a node needs four. Should it not be raised after all, it is named when it is
        // reached.
        let most = soft.max(hard.min(FILES));
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, hard);
        check(most, FILES_MIN, "files open", "ulimit -n 4096", 1)?;
    }
    match getrlimit(Resource::RLIMIT_AS) {
        Ok((space, _)) => check(space, SPACE_MIN, "KiB of address space", "ulimit -v unlimited", 1 << 10),
        Err(_) => Ok(()),
    }
}

/// From now on a lack of memory, of which the standard library says how much was asked for, ends this process with the
/// exit code of a failure.
///
/// # Errors
/// If the system does not permit that.
pub(super) fn fail_when_exhausted() -> std::io::Result<()> {
    let always = Arc::new(AtomicBool::new(true));
    let code = i32::from(Kind::Failed.exit_code());
    signal_hook::flag::register_conditional_shutdown(Signal::SIGABRT as i32, code, always).map(drop)
}

fn check(most: rlim_t, needed: rlim_t, what: &str, raise: &str, unit: rlim_t) -> Result<(), String> {
    if most >= needed {
        return Ok(());
    }
    let (most, needed) = (most / unit, needed / unit);
    Err(format!(
        "this process may have {most} {what}, and needs {needed} at least: raise the limit in the shell that starts it, \
         `{raise}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_permits_no_run_is_told_with_its_mend() {
        let said = check(40_000 << 10, SPACE_MIN, "KiB of address space", "ulimit -v unlimited", 1 << 10);
        let expected = "this process may have 40000 KiB of address space, and needs 65536 at least: raise the limit in \
                        the shell that starts it, `ulimit -v unlimited`";
        assert_eq!(said.unwrap_err(), expected);
        assert_eq!(check(FILES_MIN, FILES_MIN, "files open", "", 1), Ok(()));
        prepare_for_limits().unwrap();
    }
}
