//! What comes out of a relaxation: atoms with their final places, and a checksum over them.

use super::block::{Block, Class};
use super::problem::Problem;
use super::structure;
use chares::{Bulk, Reduce};
use serde::{Deserialize, Serialize};

/// The atoms of a block, removed ones left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// Number of the block.
    pub block: u32,
    /// Global ids, ascending.
    pub ids: Bulk<u64>,
    /// Species of each.
    pub species: Bulk<u8>,
    /// Class of each: 0 free, 1 buffer, 2 fixed.
    pub classes: Bulk<u8>,
    /// Place in A, force in eV/A and energy in eV, density, centro-symmetry in A^2: nine numbers for each.
    pub values: Bulk<f64>,
    /// Structure of each: 0 other, 1 fcc, 2 hcp, 3 bcc.
    pub structures: Bulk<u8>,
}

impl Piece {
    /// How many numbers each atom has in `values`.
    pub const VALUES: usize = 9;

    /// The atoms of a block after an evaluation.
    pub fn of(number: u32, block: &Block, problem: &Problem) -> Self {
        let found = structure::of_block(block, problem.reach(), problem.opposite);
        let there: Vec<usize> = (0..block.own()).filter(|&i| block.classes[i] != Class::Removed).collect();
        let mut values = Vec::with_capacity(Self::VALUES * there.len());
        for &i in &there {
            values.extend(block.at[i].iter().chain(&block.force[i]));
            values.extend([block.density[i], found[i].0]);
        }
        Self {
            block: number,
            ids: there.iter().map(|&i| block.ids[i]).collect::<Vec<_>>().into(),
            species: there.iter().map(|&i| block.species[i]).collect::<Vec<_>>().into(),
            classes: there.iter().map(|&i| block.classes[i] as u8).collect::<Vec<_>>().into(),
            values: values.into(),
            structures: there.iter().map(|&i| found[i].1 as u8).collect::<Vec<_>>().into(),
        }
    }
}

/// A checksum over ids, places, forces and energies of blocks, in the order of their numbers, to the last bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest(pub u64);

/// The checksum is FNV-1a over 64-bit words.
const SEED: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

impl Digest {
    /// Of one block.
    pub fn of(block: &Block) -> Self {
        let mut hash = SEED;
        let mut take = |word: u64| hash = (hash ^ word).wrapping_mul(PRIME).rotate_left(23);
        for i in 0..block.own() {
            take(block.ids[i]);
            block.at[i].iter().chain(&block.force[i]).for_each(|x| take(x.to_bits()));
        }
        Self(hash)
    }

    /// Of several, in this order.
    pub fn of_all<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> Self {
        Self::joined(blocks.into_iter().map(Self::of))
    }

    /// Several in one, in this order.
    pub fn joined(digests: impl IntoIterator<Item = Self>) -> Self {
        let mut digests = digests.into_iter();
        let first = digests.next().unwrap_or(Self(SEED));
        digests.fold(first, |mut all, next| {
            all.combine(next);
            all
        })
    }
}

impl Reduce for Digest {
    fn combine(&mut self, other: Self) {
        self.0 = (self.0 ^ other.0).wrapping_mul(PRIME).rotate_left(23);
    }
}
