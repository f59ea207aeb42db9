//! What places tell each other at which reductions come together, where elements are destroyed and inserted again.
//!
//! When an element has ended, each place on the way of a reduction, from its home up to the root, is told to wait for one
//! fewer from the reduction on to which it would have contributed next. So one that others had begun goes on without it.
//!
//! One that is to be inserted again is counted before it is made. On the way up each place waits for one more, from the
//! first reduction on that has begun neither there nor at a place before; where the root comes to is where the element
//! begins. On the way down each place is told that, and does not wait for it in the reductions between. So no reduction
//! can be complete anywhere that the new element takes part in, and none waits for it that had begun before.

use super::ProtocolError;
use super::reduction::{Partial, Reductions};
use crate::ids::{ElementIndex, PeId};
use serde::{Deserialize, Serialize};

/// How the count of elements changes that take part in reductions; said by one place to another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Change {
    /// Elements below the receiving place have been destroyed.
    Fewer {
        /// They take part in no reduction from this one on.
        from: u32,
        /// How many.
        count: u64,
    },
    /// An element that was destroyed is to be made again; it is told to each place from its home to the root.
    Joins {
        /// Which one.
        index: ElementIndex,
        /// It begins with no earlier reduction.
        from: u32,
        /// The places that have been told, and from which reduction on each counts it.
        via: Vec<(PeId, u32)>,
    },
    /// The answer, back the same way.
    Joined {
        /// Which one.
        index: ElementIndex,
        /// The reduction with which it begins.
        from: u32,
        /// The places that are to be told, the receiving one last.
        via: Vec<(PeId, u32)>,
    },
}

/// What follows from a change.
#[derive(Debug)]
pub struct Altered<V> {
    /// Reductions that had waited for no others, in order.
    pub full: Vec<(u32, Partial<V>)>,
    /// What another place is to be told, or this one at another level.
    pub say: Option<(PeId, Change)>,
    /// The element that may be made now, and the reduction with which it begins.
    pub begins: Option<(ElementIndex, u32)>,
}

impl<V> Reductions<V> {
    /// Takes what is said to this place, which is on `me`; reductions of `key` go on from here to `above`, or end here.
    ///
    /// # Errors
    /// If more have contributed to a reduction than take part.
    pub fn take(
        &mut self,
        key: u64,
        (me, above): (PeId, Option<PeId>),
        change: Change,
    ) -> Result<Altered<V>, ProtocolError> {
        let (mut full, mut begins) = (Vec::new(), None);
        let say = match change {
            Change::Fewer { from, count } => {
                let by = i64::try_from(count).map_or(i64::MIN, |count| -count);
                full = self.alter(key, from, by)?;
                above.map(|to| (to, Change::Fewer { from, count }))
            }
            Change::Joins { index, from, mut via } => {
                let from = from.max(self.first_not_begun(key));
                full = self.alter(key, from, 1)?;
                via.push((me, from));
                Some(match above {
                    Some(to) => (to, Change::Joins { index, from, via }),
                    None => (me, Change::Joined { index, from, via }),
                })
            }
            Change::Joined { index, from, mut via } => {
                if let Some((_, counted_from)) = via.pop() {
                    // First more and then fewer, so that nothing seems complete in between.
                    full = self.alter(key, from, 1)?;
                    full.extend(self.alter(key, counted_from, -1)?);
                }
                let to = via.last().map(|(to, _)| *to);
                begins = to.is_none().then_some((index, from));
                to.map(|to| (to, Change::Joined { index, from, via }))
            }
        };
        Ok(Altered { full, say, begins })
    }
}
