//! Which cores a node pins its threads to: such as no other run on this machine has taken, whoever's it is.
//!
//! A core is taken by a unix socket whose abstract name says which it is: one namespace of the network has such a name once,
//! for all users. A lock on a file in the user's own directory takes it, too, for those runs of that user that are in
//! other namespaces. The system lets go of both when the process ends, however it ends.
//!
//! Where every core has a PE, the network thread of a node may run on the cores of the node's own PEs only. Left to
//! the system, the network threads of two nodes often met on one core, and everybody waited for the PE there:
//! Cannon's product with n = 4096 on four local nodes took 0.43 s, and takes 0.37 so.

use super::near;
use crate::monitor::socket;
use std::fs::{File, TryLockError};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

/// Cores that no other node takes as long as this lives.
#[derive(Debug, Default)]
pub(super) struct Cores {
    /// Their numbers.
    pub(super) numbers: Vec<usize>,
    claims: Vec<Claim>,
}

/// One core that nobody else takes as long as this lives.
#[derive(Debug)]
struct Claim {
    _lock: File,
    _name: UnixDatagram,
}

/// Takes `count` of the cores `allowed`, which are near each other as far as that is known, looking from the one at
/// position `first` on; `None` if so many are not free. Where locks are not possible the cores from `first` on are taken unseen.
pub(super) fn take(allowed: &[usize], first: usize, count: usize) -> Option<Cores> {
    if count == 0 || first.saturating_add(count) > allowed.len() {
        return None;
    }
    let directory = socket::directory().map_err(io::Error::other);
    let taken = directory.and_then(|directory| {
        // One at a time, or two nodes could each get half of what one of them needs.
        let turn = File::create(directory.join("cores.lock"))?;
        turn.lock()?;
        take_in(&directory, &near::order(&directory, allowed), first, count)
    });
    taken.unwrap_or_else(|error| {
        tracing::debug!("other runs may pin PEs to the same cores: {error}");
        Some(Cores { numbers: allowed[first..first + count].to_vec(), claims: Vec::new() })
    })
}

fn take_in(directory: &Path, ordered: &[usize], first: usize, count: usize) -> io::Result<Option<Cores>> {
    let mut cores = Cores::default();
    let (before, from_first) = ordered.split_at(first);
    for &core in from_first.iter().chain(before) {
        if cores.numbers.len() == count {
            break;
        }
        if let Some(claim) = claim(directory, core)? {
            cores.numbers.push(core);
            cores.claims.push(claim);
        }
    }
    Ok((cores.numbers.len() == count).then_some(cores))
}

/// Takes one core; `None` if another run has it.
fn claim(directory: &Path, core: usize) -> io::Result<Option<Claim>> {
    let lock = File::create(directory.join(format!("core-{core}.lock")))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let name = SocketAddr::from_abstract_name(format!("metachare-core-{core}"))?;
    match UnixDatagram::bind_addr(&name) {
        Ok(name) => Ok(Some(Claim { _lock: lock, _name: name })),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn numbers(cores: Option<&Cores>) -> Option<&[usize]> {
        cores.map(|cores| cores.numbers.as_slice())
    }

    /// Numbers that no test besides uses, and no machine has.
    fn unused() -> [usize; 4] {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let first = (std::process::id() as usize + 1) * 100_000 + NEXT.fetch_add(4, Ordering::Relaxed);
        [first, first + 1, first + 2, first + 3]
    }

    #[test]
    fn no_core_is_taken_twice_and_all_that_are_free_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let [a, b, c, d] = unused();
        let take = |first, count| take_in(directory.path(), &[a, b, c, d], first, count).unwrap();
        let first_run = take(0, 2);
        assert_eq!(numbers(first_run.as_ref()), Some(&[a, b][..]));
        let second_run = take(0, 1);
        assert_eq!(numbers(second_run.as_ref()), Some(&[c][..]), "the next that is free");
        assert_eq!(numbers(take(0, 2).as_ref()), None, "one is left");
        assert_eq!(numbers(take(0, 1).as_ref()), Some(&[d][..]), "who got too few has given them back");
        drop(first_run);
        assert_eq!(numbers(take(2, 3).as_ref()), Some(&[d, a, b][..]), "from the first on and around");
    }

    #[test]
    fn a_core_of_a_run_of_somebody_else_is_not_taken() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [a, b, c, d] = unused();
        let take = |user: usize, count| take_in(folders[user].path(), &[a, b, c, d], 0, count).unwrap();
        let one = take(0, 3);
        assert_eq!(numbers(one.as_ref()), Some(&[a, b, c][..]));
        assert_eq!(numbers(take(1, 2).as_ref()), None, "one is left");
        assert_eq!(numbers(take(1, 1).as_ref()), Some(&[d][..]));
        drop(one);
        assert_eq!(numbers(take(1, 4).as_ref()), Some(&[a, b, c, d][..]));
    }

    #[test]
    fn more_than_there_are_is_never_asked_for() {
        for (first, count) in [(0, 3), (2, 1), (1, usize::MAX), (0, 0)] {
            assert!(take(&[0, 1], first, count).is_none(), "{count} from {first} on");
        }
    }
}
