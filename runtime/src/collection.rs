//! What every node knows of a chare collection: its type, shape and where each element lives.

use crate::envelope::{CollectionId, ElementIndex};
use crate::ids::PeId;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::OnceLock;

/// The most elements that a collection may have.
pub const ELEMENTS_MAX: u64 = 1 << 40;

/// The most elements of a collection that are constructed together on one PE. More can only be inserted.
pub const MADE_TOGETHER_MAX: u64 = 1 << 24;

/// Where the elements of a collection are created, by linear index. Grows with the PEs, not the elements,
/// except where the program lists a PE for each element.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Placement {
    /// PE `p` holds the linear indices `bounds[p]..bounds[p + 1]`.
    Bounds(Vec<u64>),
    /// Linear index `i` lives on PE `i % pe_count`.
    Cyclic {
        /// Count of PEs of the run.
        pe_count: u32,
    },
    /// Element by element.
    Explicit(Vec<PeId>),
}

/// Description of a collection; sent to every node once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Collection {
    /// Its identity.
    pub id: CollectionId,
    /// Index of the chare type in the program table.
    pub chare_type: u16,
    /// Elements along each dimension; unused dimensions are 1.
    pub shape: [u32; 3],
    /// Where elements live.
    pub placement: Placement,
    /// Elements are not made with the collection but inserted one by one.
    pub is_deferred: bool,
    /// Elements stay where they were made.
    pub is_fixed: bool,
    #[serde(skip)]
    counts: OnceLock<Vec<u64>>,
}

/// Why a collection's description is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectionError {
    /// Too many elements, or none.
    #[error("a collection of shape {0:?} has no or too many elements")]
    Shape([u32; 3]),
    /// The placement does not cover the elements.
    #[error("the placement does not give every element one of the {pe_count} PEs")]
    Placement {
        /// PEs of the run.
        pe_count: u32,
    },
    /// One PE would have to construct too many.
    #[error("{0} elements are too many to be constructed together on one PE; make fewer and larger ones")]
    Crowded(u64),
}

impl Collection {
    /// A description that has been checked against the run's `pe_count`.
    ///
    /// # Errors
    /// If the shape is empty or too large, or the placement does not fit it.
    pub fn new(
        id: CollectionId,
        chare_type: u16,
        shape: [u32; 3],
        placement: Placement,
        is_deferred: bool,
        pe_count: u32,
    ) -> Result<Self, CollectionError> {
        let made =
            Self { id, chare_type, shape, placement, is_deferred, is_fixed: false, counts: OnceLock::new() };
        made.check(pe_count)?;
        Ok(made)
    }

    /// Checks a description that came from elsewhere.
    ///
    /// # Errors
    /// If the shape is empty or too large, or the placement does not fit it.
    pub fn check(&self, pe_count: u32) -> Result<(), CollectionError> {
        let count = self.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::from(d)));
        let count =
            count.filter(|&n| n > 0 && n <= ELEMENTS_MAX).ok_or(CollectionError::Shape(self.shape))?;
        let fits = match &self.placement {
            Placement::Bounds(bounds) => {
                bounds.len() == pe_count as usize + 1
                    && bounds.first() == Some(&0)
                    && bounds.last() == Some(&count)
                    && bounds.is_sorted()
            }
            Placement::Cyclic { pe_count: p } => *p == pe_count && pe_count > 0,
            Placement::Explicit(pes) => pes.len() as u64 == count && pes.iter().all(|pe| pe.0 < pe_count),
        };
        if !fits {
            return Err(CollectionError::Placement { pe_count });
        }
        let most = (0..pe_count).map(|pe| self.count_on(PeId(pe))).max().unwrap_or_default();
        if most > MADE_TOGETHER_MAX && !self.is_deferred {
            return Err(CollectionError::Crowded(most));
        }
        Ok(())
    }

    /// Count of elements.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shape.iter().map(|&d| u64::from(d)).product()
    }

    /// Never: a collection has at least one element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Row-major position of `index`, if it lies inside the shape.
    #[must_use]
    #[inline]
    pub fn linear(&self, index: ElementIndex) -> Option<u64> {
        let [i, j, k] = index.0;
        let [rows, columns, layers] = self.shape;
        (i < rows && j < columns && k < layers)
            .then(|| (u64::from(i) * u64::from(columns) + u64::from(j)) * u64::from(layers) + u64::from(k))
    }

    /// The index at row-major position `linear`.
    #[must_use]
    pub fn index_at(&self, linear: u64) -> ElementIndex {
        let [_, columns, layers] = self.shape.map(u64::from);
        let place = [linear / layers / columns, linear / layers % columns, linear % layers];
        ElementIndex(
            place.map(|d| u32::try_from(d).expect("a position inside the shape fits its dimensions")),
        )
    }

    /// The PE where the element of that position is created.
    #[must_use]
    pub fn pe_of_linear(&self, linear: u64) -> PeId {
        match &self.placement {
            Placement::Bounds(bounds) => {
                let pe = bounds.partition_point(|&b| b <= linear) - 1;
                PeId(u32::try_from(pe).expect("there are fewer than 2^32 PEs"))
            }
            Placement::Cyclic { pe_count } => {
                PeId(u32::try_from(linear % u64::from(*pe_count)).expect("a remainder of a u32 fits"))
            }
            Placement::Explicit(pes) => {
                pes[usize::try_from(linear).expect("checked against the list's length")]
            }
        }
    }

    /// The PE where the element is created, if the index lies inside the shape.
    #[must_use]
    pub fn pe_of(&self, index: ElementIndex) -> Option<PeId> {
        self.linear(index).map(|linear| self.pe_of_linear(linear))
    }

    /// Whether the element is created on that PE; quicker than to ask where it is.
    #[must_use]
    #[inline]
    pub fn is_on(&self, pe: PeId, index: ElementIndex) -> bool {
        match (&self.placement, self.linear(index)) {
            (Placement::Bounds(bounds), Some(linear)) => range_of(bounds, pe).contains(&linear),
            (_, Some(linear)) => self.pe_of_linear(linear) == pe,
            (_, None) => false,
        }
    }

    /// The position of the element among those that are created on `pe`, if it is one of them and the placement says
    /// that without a search.
    #[must_use]
    #[inline]
    pub fn position_on(&self, pe: PeId, index: ElementIndex) -> Option<u64> {
        let linear = self.linear(index)?;
        match &self.placement {
            Placement::Bounds(bounds) => {
                let here = range_of(bounds, pe);
                here.contains(&linear).then(|| linear - here.start)
            }
            Placement::Cyclic { pe_count } => {
                let p = u64::from(*pe_count);
                (linear % p == u64::from(pe.0)).then_some(linear / p)
            }
            Placement::Explicit(_) => None,
        }
    }

    /// Linear positions of the elements that are created on `pe`, ascending.
    pub fn on_pe(&self, pe: PeId) -> Box<dyn Iterator<Item = u64> + '_> {
        match &self.placement {
            Placement::Bounds(bounds) => Box::new(range_of(bounds, pe)),
            Placement::Cyclic { pe_count } if pe.0 < *pe_count => {
                Box::new((u64::from(pe.0)..self.len()).step_by(*pe_count as usize))
            }
            Placement::Cyclic { .. } => Box::new(std::iter::empty()),
            Placement::Explicit(pes) => {
                Box::new(pes.iter().enumerate().filter(move |(_, p)| **p == pe).map(|(i, _)| i as u64))
            }
        }
    }

    /// How many elements are created on `pe`: none where the run did not have it when it began.
    #[must_use]
    pub fn count_on(&self, pe: PeId) -> u64 {
        match &self.placement {
            Placement::Bounds(bounds) => {
                let here = range_of(bounds, pe);
                here.end - here.start
            }
            Placement::Cyclic { pe_count } if pe.0 >= *pe_count => 0,
            Placement::Cyclic { pe_count } => {
                let p = u64::from(*pe_count);
                self.len() / p + u64::from(u64::from(pe.0) < self.len() % p)
            }
            Placement::Explicit(pes) => {
                let counts = self.counts.get_or_init(|| counts_of(pes));
                counts.get(pe.as_usize()).copied().unwrap_or(0)
            }
        }
    }
}

/// How many elements are listed for each PE, up to the last that has any.
fn counts_of(pes: &[PeId]) -> Vec<u64> {
    let mut counts = vec![0; pes.iter().max().map_or(0, |last| last.as_usize() + 1)];
    pes.iter().for_each(|pe| counts[pe.as_usize()] += 1);
    counts
}

#[inline]
fn range_of(bounds: &[u64], pe: PeId) -> Range<u64> {
    match bounds.get(pe.as_usize()..pe.as_usize() + 2) {
        Some(&[first, after]) => first..after,
        _ => 0..0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn collection(shape: [u32; 3], placement: Placement, pes: u32) -> Collection {
        Collection::new(CollectionId(1 << 32), 0, shape, placement, false, pes).unwrap()
    }

    proptest! {
        #[test]
        fn every_element_has_one_pe_and_counts_agree(
            shape in prop::array::uniform3(1u32..6), pes in 1u32..7, kind in 0..3, seed: u64,
        ) {
            let count: u64 = shape.iter().map(|&d| u64::from(d)).product();
            let placement = match kind {
                0 => {
                    let mut bounds: Vec<u64> =
                        (1..u64::from(pes)).map(|p| (seed.wrapping_mul(p * 77 + 1) >> 20) % (count + 1)).collect();
                    bounds.extend([0, count]);
                    bounds.sort_unstable();
                    Placement::Bounds(bounds)
                }
                1 => Placement::Cyclic { pe_count: pes },
                _ => Placement::Explicit(
                    (0..count).map(|i| PeId(u32::try_from((seed >> (i % 60)) % u64::from(pes)).unwrap())).collect()),
            };
            let c = collection(shape, placement, pes);
            let mut seen = vec![0; usize::try_from(count).unwrap()];
            for pe in 0..pes {
                let here: Vec<u64> = c.on_pe(PeId(pe)).collect();
                prop_assert_eq!(here.len() as u64, c.count_on(PeId(pe)));
                for (position, linear) in (0..).zip(here) {
                    let found = c.position_on(PeId(pe), c.index_at(linear));
                    prop_assert_eq!(found, (kind < 2).then_some(position));
                    prop_assert_eq!(c.position_on(PeId((pe + 1) % pes), c.index_at(linear)), found.filter(|_| pes == 1));
                    seen[usize::try_from(linear).unwrap()] += 1;
                    let index = c.index_at(linear);
                    prop_assert_eq!(c.linear(index), Some(linear));
                    prop_assert_eq!(c.pe_of(index), Some(PeId(pe)));
                    prop_assert!((0..pes).all(|other| c.is_on(PeId(other), index) == (other == pe)));
                }
            }
            prop_assert!(seen.iter().all(|&n| n == 1));
            // PEs that have come later.
            for pe in (pes..pes + 3).map(PeId) {
                prop_assert_eq!((c.count_on(pe), c.on_pe(pe).count()), (0, 0));
                prop_assert!((0..count).all(|linear| !c.is_on(pe, c.index_at(linear))));
                prop_assert!((0..count).all(|linear| c.position_on(pe, c.index_at(linear)).is_none()));
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let new = |shape, placement| Collection::new(CollectionId(9), 0, shape, placement, false, 2);
        assert!(new([0, 1, 1], Placement::Cyclic { pe_count: 2 }).is_err());
        assert!(new([u32::MAX; 3], Placement::Cyclic { pe_count: 2 }).is_err());
        assert!(new([4, 1, 1], Placement::Bounds(vec![0, 3, 2])).is_err());
        assert!(new([4, 1, 1], Placement::Bounds(vec![0, 4])).is_err());
        assert!(new([2, 1, 1], Placement::Explicit(vec![PeId(0), PeId(2)])).is_err());
        assert!(new([4, 1, 1], Placement::Bounds(vec![0, 1, 4])).is_ok());
    }
}
