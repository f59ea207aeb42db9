//! What a run took, block by block and node by node: the figures of the tables of G. Pulla's thesis (Virginia Tech, 1999,
//! tables 5.2 to 5.9) for today's machines.

use crate::statics::block::{Block, Class};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What one block took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// PE that it lives on.
    pub pe: u32,
    /// Own atoms that are free, buffer and fixed.
    pub atoms: [u64; 3],
    /// Pairs listed with own atoms, with ghosts, with fixed atoms.
    pub pairs: [u64; 3],
    /// Numbers of the blocks that it feels.
    pub sources: Vec<u32>,
    /// Nodes with blocks that feel it, and how many atoms go there at each evaluation.
    pub audiences: Vec<(u32, u32)>,
    /// Bytes of memory.
    pub bytes: u64,
    /// Seconds of moving atoms and computing densities and forces, all evaluations together.
    pub seconds: f64,
    /// Seconds of building lists.
    pub list_seconds: f64,
    /// How often lists were built.
    pub rebuilds: u64,
}

impl Figures {
    /// Counts atoms and pairs of a block.
    pub fn of_block(&mut self, block: &Block) {
        self.atoms = [0; 3];
        for class in &block.classes[..block.own()] {
            match class {
                Class::Free => self.atoms[0] += 1,
                Class::Buffer => self.atoms[1] += 1,
                Class::Fixed => self.atoms[2] += 1,
                Class::Removed => {}
            }
        }
        self.pairs = block.pairs_by_part().map(|pairs| pairs as u64);
    }

    fn all_atoms(&self) -> u64 {
        self.atoms.iter().sum()
    }
}

/// What one node took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeFigures {
    /// Its name.
    pub node: String,
    /// Blocks that live there.
    pub blocks: u64,
    /// Atoms of these blocks.
    pub owned: u64,
    /// Atoms of blocks elsewhere that are felt there (whole blocks, as the thesis counts them).
    pub needed: u64,
    /// Both.
    pub total: u64,
    /// Atoms that come from other nodes at each evaluation, each counted once.
    pub received: u64,
    /// Bytes that the blocks hold.
    pub bytes: u64,
    /// Seconds of computing densities and forces, of its PEs together.
    pub seconds: f64,
}

/// What a run took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tables {
    /// Node by node.
    pub nodes: Vec<NodeFigures>,
    /// Atoms.
    pub atoms: u64,
    /// Bytes that all blocks hold, per atom.
    pub bytes_per_atom: f64,
    /// Pairs listed, those that two blocks compute counted twice.
    pub pairs: u64,
    /// Pairs that are computed a second time because the two atoms are in different blocks, in percent of all
    /// different ones (table 5.5).
    pub symmetry_loss_percent: f64,
    /// Mean seconds that a PE computed.
    pub balanced_seconds: f64,
    /// Seconds that the last PE computed.
    pub unbalanced_seconds: f64,
    /// How much longer the last computed than the mean, in percent (table 5.4).
    pub delay_percent: f64,
    /// Part of the PEs' time in which they neither computed nor built lists, in percent: messages and waiting (table
    /// 5.8). `None` in a run that goes on from a checkpoint, as they computed before it, too.
    pub communication_percent: Option<f64>,
    /// Seconds of building lists, of all PEs together.
    pub list_seconds: f64,
    /// How often lists were built.
    pub rebuilds: u64,
}

/// Adds up. `figures` are of all blocks, in the order of their numbers; `nodes` are names and PEs; `elapsed` the
/// seconds of the relaxation, where all of that is known.
pub fn tables(figures: &[Figures], nodes: &[(String, Range<u32>)], elapsed: Option<f64>) -> Tables {
    let node_of = |pe: u32| nodes.iter().position(|(_, pes)| pes.contains(&pe));
    let mut by_pe: BTreeMap<u32, f64> =
        nodes.iter().flat_map(|(_, pes)| pes.clone()).map(|pe| (pe, 0.0)).collect();
    for block in figures {
        *by_pe.entry(block.pe).or_default() += block.seconds;
    }
    let pes = by_pe.len().max(1) as f64;
    let balanced_seconds = by_pe.values().sum::<f64>() / pes;
    let unbalanced_seconds = by_pe.values().copied().fold(0.0, f64::max);
    let of_node = |(at, (name, _)): (usize, &(String, Range<u32>))| {
        let mine = || figures.iter().filter(|block| node_of(block.pe) == Some(at));
        let elsewhere =
            |block: u32| figures.get(block as usize).filter(|block| node_of(block.pe) != Some(at));
        let needed: BTreeSet<u32> = mine().flat_map(|block| block.sources.iter().copied()).collect();
        let others = figures.iter().filter(|block| node_of(block.pe) != Some(at));
        let received = others.flat_map(|block| &block.audiences).filter(|to| to.0 as usize == at);
        let owned = mine().map(Figures::all_atoms).sum();
        let needed = needed.iter().filter_map(|&block| elsewhere(block)).map(Figures::all_atoms).sum();
        NodeFigures {
            node: name.clone(),
            blocks: mine().count() as u64,
            owned,
            needed,
            total: owned + needed,
            received: received.map(|to| u64::from(to.1)).sum(),
            bytes: mine().map(|block| block.bytes).sum(),
            seconds: mine().map(|block| block.seconds).sum(),
        }
    };
    let atoms: u64 = figures.iter().map(Figures::all_atoms).sum();
    let part = |part: usize| figures.iter().map(|block| block.pairs[part]).sum::<u64>();
    let (pairs, across) = (part(0) + part(1) + part(2), part(1) as f64);
    let bytes: u64 = figures.iter().map(|block| block.bytes).sum();
    let list_seconds: f64 = figures.iter().map(|block| block.list_seconds).sum();
    let busy = balanced_seconds + list_seconds / pes;
    Tables {
        nodes: nodes.iter().enumerate().map(of_node).collect(),
        atoms,
        bytes_per_atom: bytes as f64 / atoms.max(1) as f64,
        pairs,
        symmetry_loss_percent: percent(across / 2.0, pairs as f64 - across / 2.0),
        balanced_seconds,
        unbalanced_seconds,
        delay_percent: percent(unbalanced_seconds - balanced_seconds, balanced_seconds),
        communication_percent: elapsed.map(|elapsed| percent(elapsed - busy, elapsed)),
        list_seconds,
        rebuilds: figures.iter().map(|block| block.rebuilds).max().unwrap_or(0),
    }
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { 100.0 * part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(pe: u32, free: u64, seconds: f64, sources: &[u32], audiences: &[(u32, u32)]) -> Figures {
        Figures {
            pe,
            atoms: [free, 0, 10],
            pairs: [60, 40, 0],
            sources: sources.to_vec(),
            audiences: audiences.to_vec(),
            bytes: 1000,
            seconds,
            ..Figures::default()
        }
    }

    #[test]
    fn figures_of_blocks_add_up() {
        let nodes = [("a".to_owned(), 0..2), ("b".to_owned(), 2..3)];
        let blocks = [
            block(0, 90, 1.0, &[1, 2], &[(0, 5), (1, 6)]),
            block(1, 90, 1.0, &[0, 2], &[(0, 5), (1, 8)]),
            block(2, 40, 4.0, &[0, 1], &[(0, 16)]),
        ];
        let tables = tables(&blocks, &nodes, Some(5.0));
        let sums: Vec<[u64; 5]> =
            tables.nodes.iter().map(|n| [n.blocks, n.owned, n.needed, n.total, n.received]).collect();
        assert_eq!(sums, [[2, 200, 50, 250, 16], [1, 50, 200, 250, 14]]);
        assert_eq!((tables.balanced_seconds, tables.unbalanced_seconds), (2.0, 4.0));
        assert_eq!((tables.delay_percent, tables.communication_percent), (100.0, Some(60.0)));
        assert_eq!((tables.atoms, tables.pairs, tables.symmetry_loss_percent), (250, 300, 25.0));
        assert_eq!(tables.bytes_per_atom, 12.0);
    }
}
