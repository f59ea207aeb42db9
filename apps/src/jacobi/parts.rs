//! The parts of x that one block of rows holds: its own, and from each other block what its rows need of it.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A part of x that comes from one block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Source {
    /// Whose it is.
    pub(super) block: u32,
    /// Where it lies among the numbers that are held.
    pub(super) place: Range<usize>,
}

/// Where the parts of x lie in a block.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Parts {
    /// By block, ascending; those without numbers are left out.
    sources: Vec<Source>,
    /// Unknowns of each source, if these are not all in order: place `i` has the unknown `unknowns[i]`.
    unknowns: Option<Unknowns>,
    len: usize,
}

/// The unknowns that a block holds if it does not hold all: its own first, then those of others, ascending.
#[derive(Debug, Serialize, Deserialize)]
struct Unknowns {
    own: Range<usize>,
    foreign: Vec<u32>,
}

impl Parts {
    /// All of x. Block `i` has the unknowns `bounds[i]..bounds[i + 1]`.
    pub(super) fn all(bounds: &[u64]) -> Self {
        let sources: Vec<Source> = (0..)
            .zip(bounds.windows(2))
            .map(|(block, ends)| Source { block, place: index(ends[0])..index(ends[1]) })
            .filter(|source| !source.place.is_empty())
            .collect();
        let len = sources.last().map_or(0, |source| source.place.end);
        Self { sources, unknowns: None, len }
    }

    /// The part of block `block`, and of others' the unknowns `foreign`, which ascend.
    pub(super) fn some(block: u32, bounds: &[u64], foreign: Vec<u32>) -> Self {
        let own = index(bounds[block as usize])..index(bounds[block as usize + 1]);
        let mut sources = vec![Source { block, place: 0..own.len() }];
        let mut next = own.len();
        for run in foreign.chunk_by(|&a, &b| owner(bounds, a) == owner(bounds, b)) {
            sources.push(Source { block: owner(bounds, run[0]), place: next..next + run.len() });
            next += run.len();
        }
        sources.sort_by_key(|source| source.block);
        sources.retain(|source| !source.place.is_empty());
        Self { sources, unknowns: Some(Unknowns { own, foreign }), len: next }
    }

    /// Numbers of x that are held, for each right-hand side.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The parts.
    pub(super) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The part of that block, if there is one.
    pub(super) fn source(&self, block: u32) -> Option<usize> {
        self.sources.binary_search_by_key(&block, |source| source.block).ok()
    }

    /// Where the unknowns of that block lie among the numbers that are held; nowhere if none of them are.
    pub(super) fn place_of(&self, block: u32) -> Range<usize> {
        self.source(block).map_or(0..0, |at| self.sources[at].place.clone())
    }

    /// The unknowns that source `at` stands for, unless it is the own part or all of its owner's.
    pub(super) fn wanted(&self, at: usize) -> Option<&[u32]> {
        let Unknowns { own, foreign } = self.unknowns.as_ref()?;
        let place = &self.sources[at].place;
        (place.start >= own.len() && !foreign.is_empty())
            .then(|| &foreign[place.start - own.len()..place.end - own.len()])
    }

    /// The source of an unknown, and its place.
    ///
    /// # Panics
    /// If it is not among those that are held.
    pub(super) fn locate(&self, unknown: u32) -> (u32, u32) {
        let place = match &self.unknowns {
            None => unknown as usize,
            Some(Unknowns { own, .. }) if own.contains(&(unknown as usize)) => unknown as usize - own.start,
            Some(Unknowns { own, foreign }) => {
                own.len() + foreign.binary_search(&unknown).expect("the columns of the rows are all held")
            }
        };
        let holds = |source: &Source| source.place.contains(&place);
        let source = self.sources.iter().position(holds).expect("places are in some part");
        let narrow = |number: usize| u32::try_from(number).expect("fewer unknowns than 2^32");
        (narrow(source), narrow(place))
    }

    /// The sources that have some of these places.
    pub(super) fn sources_of(&self, places: &Range<usize>) -> Vec<u32> {
        let meets = |source: &Source| source.place.start < places.end && places.start < source.place.end;
        (0..).zip(&self.sources).filter(|(_, source)| meets(source)).map(|(at, _)| at).collect()
    }
}

/// The block that has an unknown.
fn owner(bounds: &[u64], unknown: u32) -> u32 {
    let owner = chares::loadbalance::placement::owner(bounds, u64::from(unknown));
    u32::try_from(owner.expect("columns are checked to lie in the matrix")).expect("fewer blocks than 2^32")
}

fn index(bound: u64) -> usize {
    usize::try_from(bound).expect("unknowns of a system in memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dense_part_lies_where_its_unknowns_are() {
        let parts = Parts::all(&[0, 3, 3, 7]);
        assert_eq!(parts.len(), 7);
        assert_eq!(parts.sources(), [Source { block: 0, place: 0..3 }, Source { block: 2, place: 3..7 }]);
        assert_eq!((parts.source(2), parts.source(1)), (Some(1), None));
        assert_eq!(parts.sources_of(&(0..3)), [0]);
        assert_eq!(parts.sources_of(&(2..5)), [0, 1]);
        assert_eq!(parts.locate(4), (1, 4));
        assert_eq!(parts.wanted(0), None);
    }

    #[test]
    fn sparse_parts_are_the_own_one_and_what_is_needed_of_others() {
        let parts = Parts::some(1, &[0, 3, 6, 6, 10], vec![0, 2, 6, 7, 9]);
        assert_eq!(parts.len(), 8);
        let places: Vec<_> = parts.sources().iter().map(|s| (s.block, s.place.clone())).collect();
        assert_eq!(places, [(0, 3..5), (1, 0..3), (3, 5..8)]);
        assert_eq!(parts.wanted(0), Some(&[0, 2][..]));
        assert_eq!(parts.wanted(1), None);
        assert_eq!(parts.wanted(2), Some(&[6, 7, 9][..]));
        assert_eq!(parts.locate(2), (0, 4));
        assert_eq!(parts.locate(4), (1, 1));
        assert_eq!(parts.locate(9), (2, 7));
    }

    #[test]
    fn a_block_without_rows_holds_nothing() {
        let parts = Parts::some(2, &[0, 3, 6, 6, 10], Vec::new());
        assert_eq!((parts.len(), parts.sources().len()), (0, 0));
    }
}
