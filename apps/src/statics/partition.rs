//! A crystal cut into blocks. The cut depends on the crystal alone, never on the machines.

use super::crystal::{Atom, Crystal};
use std::ops::Range;

/// Atoms of a block unless asked otherwise: with ghosts and lists 1.3 to 2 MB, about what a second-level cache holds.
pub const ATOMS_PER_BLOCK: usize = 4096;

/// Blocks of whole cells, numbered with x running fastest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Partition {
    cells: [usize; 3],
    blocks: [usize; 3],
}

impl Partition {
    /// Blocks of about `atoms` atoms, as near to cubes as whole cells allow.
    pub fn of(crystal: &Crystal, atoms: usize) -> Self {
        let (cells, edges) = (crystal.cells(), crystal.cell().edges);
        let mut blocks = [1; 3];
        // The longest side takes the next cut; an axis that is thin takes none.
        loop {
            let per_block = crystal.atoms() as f64 / blocks.iter().product::<usize>() as f64;
            if per_block <= 1.5 * atoms.max(1) as f64 {
                break;
            }
            let side = |k: usize| cells[k] as f64 * edges[k] / blocks[k] as f64;
            let longest = (0..3)
                .filter(|&k| blocks[k] < cells[k])
                .max_by(|&a, &b| side(a).total_cmp(&side(b)).then(b.cmp(&a)));
            let Some(longest) = longest else { break };
            blocks[longest] += 1;
        }
        Self { cells, blocks }
    }

    /// Atoms of a block by which there are about `parts` of them, if there can be more than now: cells are not cut.
    pub fn finer(&self, crystal: &Crystal, parts: u64) -> Option<usize> {
        let exact = crystal.atoms() / parts.max(1);
        // Two digits are easier to type.
        let step = 10_u64.pow(exact.max(1).ilog10().saturating_sub(1));
        let atoms = usize::try_from(exact / step * step).ok()?.max(1);
        (Self::of(crystal, atoms).len() > self.len()).then_some(atoms)
    }

    /// Blocks along each axis; each axis has at least as many cells as blocks.
    pub fn with_blocks(crystal: &Crystal, blocks: [usize; 3]) -> Option<Self> {
        let cells = crystal.cells();
        let fits = (0..3).all(|k| (1..=cells[k]).contains(&blocks[k]));
        fits.then_some(Self { cells, blocks })
    }

    /// Blocks along each axis.
    pub fn grid(&self) -> [usize; 3] {
        self.blocks
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.blocks.iter().product()
    }

    /// Never: a crystal has at least one block.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Cells of a block.
    pub fn cells(&self, block: usize) -> [Range<usize>; 3] {
        let [nx, ny, _] = self.blocks;
        let place = [block % nx, block / nx % ny, block / (nx * ny)];
        std::array::from_fn(|k| {
            let at = |n: usize| n * self.cells[k] / self.blocks[k];
            at(place[k])..at(place[k] + 1)
        })
    }

    /// The block of a cell.
    pub fn block_of(&self, cell: [usize; 3]) -> usize {
        let [x, y, z] = std::array::from_fn(|k| ((cell[k] + 1) * self.blocks[k] - 1) / self.cells[k]);
        (z * self.blocks[1] + y) * self.blocks[0] + x
    }

    /// Atoms of a block.
    pub fn atoms<'a>(&self, crystal: &'a Crystal, block: usize) -> impl Iterator<Item = Atom> + 'a {
        crystal.part(self.cells(block))
    }
}
