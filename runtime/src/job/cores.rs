//! Which cores a node pins its threads to: such as no other run of this user on this machine has taken.
//!
//! A core is taken by a lock on a file in the user's own directory; the system lets go of it when the process
//! ends, however it ends.
//!
//! Where every core has a PE, the network thread of a node may run on the cores of the node's own PEs only. Left to
//! the system, the network threads of two nodes often met on one core, and everybody waited for the PE there:
//! Cannon's product with n = 4096 on four local nodes took 0.43 s, and takes 0.37 so.

use super::near;
use crate::monitor::socket;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// Cores that no other node takes as long as this lives.
#[derive(Debug, Default)]
pub(super) struct Cores {
    /// Their numbers.
    pub(super) numbers: Vec<usize>,
    locks: Vec<File>,
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
        Some(Cores { numbers: allowed[first..first + count].to_vec(), locks: Vec::new() })
    })
}

fn take_in(directory: &Path, ordered: &[usize], first: usize, count: usize) -> io::Result<Option<Cores>> {
    let mut cores = Cores::default();
    let (before, from_first) = ordered.split_at(first);
    for &core in from_first.iter().chain(before) {
        if cores.numbers.len() == count {
            break;
        }
        let lock = File::create(directory.join(format!("core-{core}.lock")))?;
        match lock.try_lock() {
            Ok(()) => {
                cores.numbers.push(core);
                cores.locks.push(lock);
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok((cores.numbers.len() == count).then_some(cores))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(cores: Option<&Cores>) -> Option<&[usize]> {
        cores.map(|cores| cores.numbers.as_slice())
    }

    #[test]
    fn no_core_is_taken_twice_and_all_that_are_free_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let take = |first, count| take_in(directory.path(), &[2, 3, 5, 7], first, count).unwrap();
        let first_run = take(0, 2);
        assert_eq!(numbers(first_run.as_ref()), Some(&[2, 3][..]));
        let second_run = take(0, 1);
        assert_eq!(numbers(second_run.as_ref()), Some(&[5][..]), "the next that is free");
        assert_eq!(numbers(take(0, 2).as_ref()), None, "one is left");
        assert_eq!(numbers(take(0, 1).as_ref()), Some(&[7][..]), "who got too few has given them back");
        drop(first_run);
        assert_eq!(numbers(take(2, 3).as_ref()), Some(&[7, 2, 3][..]), "from the first on and around");
    }

    #[test]
    fn more_than_there_are_is_never_asked_for() {
        for (first, count) in [(0, 3), (2, 1), (1, usize::MAX), (0, 0)] {
            assert!(take(&[0, 1], first, count).is_none(), "{count} from {first} on");
        }
    }
}
