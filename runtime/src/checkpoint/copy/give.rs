//! The end of a copy that has the generation.

use super::super::saved::Saved;
use super::error::CopyError;
use super::messages::{Copied, Ends, Message, Offer};
use bytes::Bytes;

/// Gives a generation to the other end, which [takes](super::take()) it. `tell` hears how many bytes have been sent, and of how
/// many. No chunk is sent that is damaged.
///
/// # Errors
/// If something of the generation is damaged, the other end does not take it, or is lost.
pub(crate) fn give(
    saved: &Saved,
    ends: &mut Ends<'_>,
    tell: impl FnMut(u64, u64),
) -> Result<Copied, CopyError> {
    try_give(saved, ends, tell).inspect_err(|error| ends.explain(error))
}

fn try_give(saved: &Saved, ends: &mut Ends<'_>, mut tell: impl FnMut(u64, u64)) -> Result<Copied, CopyError> {
    let places = saved.places()?;
    let (manifest, index) = (saved.manifest_bytes().to_vec().into(), saved.index_bytes().into());
    ends.say(&Message::Offer(Offer { manifest, index, places: places.clone() }))?;
    let wanted = match ends.hear()? {
        Message::Wants(wanted) => wanted,
        other => return Err(other.unexpected()),
    };
    let wanted = wanted.into_iter().map(|number| places.get(number as usize));
    let wanted = wanted.collect::<Option<Vec<_>>>();
    let wanted = wanted.ok_or(CopyError::Nonsense("it wants a chunk that there is not"))?;
    let total = wanted.iter().map(|place| u64::from(place.stored_bytes)).sum();
    let mut sent = 0;
    for place in wanted {
        ends.say(&Message::Chunk(Bytes::from(saved.stored_chunk(place)?)))?;
        sent += u64::from(place.stored_bytes);
        tell(sent, total);
    }
    match ends.hear()? {
        Message::Done(copied) => Ok(copied),
        other => Err(other.unexpected()),
    }
}
