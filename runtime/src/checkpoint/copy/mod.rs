//! Copies of generations in other folders, here or on other hosts, and in object stores; one that was cut off goes on where it
//! was.
//!
//! One end [gives](give()) a generation, the other [takes](take()) it. The giver says what it is, and which chunks it has. The
//! taker reads what there is in its folder, and asks for the chunks that it does not have whole. Each is compared with its
//! checksum and written to its place as it comes, so that a copy which is cut off has lost one chunk at most. When all is on
//! disk and has been read once more, `COMMIT` is written. The files are those of the giver, byte by byte, apart from
//! what the generation does not need of `chunks`.

mod error;
mod give;
mod messages;
mod objects;
mod take;

pub use error::CopyError;
pub(super) use give::give;
pub use messages::{Copied, Ends};
pub use objects::{Objects, list_objects, pull_from_objects, push_to_objects};
#[cfg(test)]
pub(super) use take::take_on;
use take::{take, take_here};

use super::saved::Saved;
use super::store::Store;
use messages::{Ask, Message};
use std::path::{Path, PathBuf};

/// Copies a generation into a folder of this machine. `tell` hears how many bytes have been copied, and of how many.
///
/// # Errors
/// If something of it is damaged, the folder cannot be written, or holds another generation of that number.
pub fn copy(saved: &Saved, to: &Path, tell: impl FnMut(u64, u64)) -> Result<Copied, CopyError> {
    take_here(to, tell, |ends| give(saved, ends, |_, _| ()).map(drop))
}

/// Copies a generation into the folder `to` of who [answers](answer) at the other end.
///
/// # Errors
/// As those of [`copy`], and if the other end is lost.
pub fn push(
    saved: &Saved,
    to: PathBuf,
    ends: &mut Ends<'_>,
    tell: impl FnMut(u64, u64),
) -> Result<Copied, CopyError> {
    ends.say(&Message::Ask(Ask::Take { dir: to }))?;
    give(saved, ends, tell)
}

/// Copies a generation of the folder `from` of who [answers](answer) at the other end into a folder of this machine; the
/// newest if no number is given.
///
/// # Errors
/// As those of [`push`].
pub fn pull(
    (from, generation): (PathBuf, Option<u32>),
    to: &Path,
    ends: &mut Ends<'_>,
    tell: impl FnMut(u64, u64),
) -> Result<Copied, CopyError> {
    ends.say(&Message::Ask(Ask::Give { dir: from, generation }))?;
    take(to, ends, tell)
}

/// Does what the other end asks for, which is told what goes wrong.
///
/// # Errors
/// As those of [`copy`], and if the other end is lost.
pub fn answer(ends: &mut Ends<'_>) -> Result<(), CopyError> {
    match ends.hear()? {
        Message::Ask(Ask::Take { dir }) => take(&dir, ends, |_, _| ()).map(drop),
        Message::Ask(Ask::Give { dir, generation }) => {
            let store = Store::open(&dir);
            let saved = store.and_then(|store| match generation {
                Some(number) => store.generation(number),
                None => store.latest(),
            });
            let saved = saved.map_err(CopyError::from);
            saved.inspect_err(|error| ends.explain(error)).and_then(|saved| give(&saved, ends, |_, _| ()))?;
            Ok(())
        }
        _ => Err(CopyError::Nonsense("it does not ask for anything")),
    }
}
