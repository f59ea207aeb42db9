//! The rule of no new destination: data that a chare needs are on some PEs already, and it goes to no other.

use crate::balance::view::Checked;
use std::collections::BTreeSet;

/// On which PEs the data of chares are, as it was before anything moved.
pub(super) struct Destinations<'a> {
    view: &'a Checked<'a>,
    of_blocks: BTreeSet<(u32, u32)>,
    of_chares: BTreeSet<(u32, u32)>,
}

impl<'a> Destinations<'a> {
    pub(super) fn of(view: &'a Checked<'a>) -> Self {
        let blocks = view.blocks.iter().zip(&view.chares);
        let of_blocks = blocks.filter_map(|(block, chare)| block.map(|block| (block, chare.pe))).collect();
        let both = |edge: &super::super::Edge| {
            let pe = |chare: u32| view.chares[chare as usize].pe;
            [(edge.one, pe(edge.other)), (edge.other, pe(edge.one))]
        };
        Self { of_blocks, of_chares: view.edges.iter().flat_map(both).collect(), view }
    }

    /// Whether a PE has the block of a chare, or a chare that it talks to if it has no block.
    pub(super) fn has(&self, chare: u32, pe: u32) -> bool {
        match self.view.blocks.get(chare as usize).copied().flatten() {
            Some(block) => self.of_blocks.contains(&(block, pe)),
            None => self.of_chares.contains(&(chare, pe)),
        }
    }
}
