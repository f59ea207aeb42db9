//! How the rows of each PE are cut into blocks, each of which can move: into several, as far as the machines do not
//! notice.
//!
//! A block gets numbers of x of the others in each iteration, in messages. It is too small if it computes so few entries
//! for each of them that they take more than about 3 % of its time, or if it is so short that its memory is in small pages:
//! dense blocks of 2 MiB took 1.4 to 1.9 times as long for an iteration, those of 4 MiB no longer than before.

use super::arguments::Jacobi;
use super::generated::Kind;
use chares::loadbalance::{Items, Part, PartitionError, placement};

/// Blocks of each PE, if they are not too small: one that leaves takes an eighth of the work along.
const BLOCKS_OF_PE: u64 = 8;
/// Entries that a block computes for each number that comes to it, at least: a dense block has so many rows. An entry
/// takes longer in a sparse block, and there are fewer messages for the same numbers.
const DENSE_FOR_EACH: u64 = 512;
const SPARSE_FOR_EACH: u64 = 48;
/// Entries of a block, at least: 4 MiB of numbers of 32 bits.
const ENTRIES_MIN: u64 = 1 << 20;

/// Blocks of adjoining rows, and where they are at home.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blocks {
    /// Block `i` has the rows `rows[i]..rows[i + 1]`.
    pub(super) rows: Vec<u64>,
    /// PE `p` has the blocks `of_pes[p]..of_pes[p + 1]`.
    pub(super) of_pes: Vec<u64>,
}

impl Blocks {
    /// Cuts rows, of which PE `p` has `bounds[p]..bounds[p + 1]` and that share of the work: into `each` blocks for a PE on
    /// average, all of about as much work. A row costs as much as `costs` says, or if that is empty, as every other.
    ///
    /// # Errors
    /// If rows cost more than can be added up.
    pub(super) fn cut(
        bounds: &[u64],
        shares: &[f64],
        each: u64,
        costs: &[u64],
    ) -> Result<Self, PartitionError> {
        let (mut rows, mut of_pes) = (vec![0], vec![0]);
        for (ends, share) in bounds.windows(2).zip(shares) {
            let earned = (share * (each * shares.len() as u64) as f64).round() as u64;
            let count = earned.clamp(1, (ends[1] - ends[0]).max(1));
            let items = match costs {
                [] => Items::alike(ends[1] - ends[0]),
                costs => Items::with_costs(&costs[index(ends[0])..index(ends[1])]),
            };
            let cuts = placement::contiguous(&items, &Part::each(&vec![1.0; index(count)]))?;
            rows.extend(cuts[1..].iter().map(|cut| ends[0] + cut));
            // Where a row costs as much as many others, blocks beside it may be empty.
            rows.dedup();
            of_pes.push(rows.len() as u64 - 1);
        }
        Ok(Self { rows, of_pes })
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("rows of a matrix in memory")
}

impl Jacobi {
    /// Blocks of a PE on average, of so many PEs: as asked for, or as many as are not too small.
    pub(super) fn blocks_per_pe(&self, pes: usize) -> u64 {
        let for_each = if self.is_dense() { DENSE_FOR_EACH } else { SPARSE_FOR_EACH };
        let least = ENTRIES_MIN.max(self.needed_of_others().saturating_mul(for_each));
        let chosen = self.entries() / least / (pes as u64).max(1);
        self.blocks_per_pe.map_or_else(|| chosen.clamp(1, BLOCKS_OF_PE), u64::from)
    }

    /// Numbers of x that a block needs of others for a right-hand side, at most; of a matrix from a file, all.
    pub(super) fn needed_of_others(&self) -> u64 {
        let n = self.system.n as u64;
        // Of a Laplacian a layer of the grid on each side.
        self.layer().map_or(n, |layer| n.min(2 * layer.ceil() as u64))
    }

    /// Unknowns in a layer of the grid of a Laplacian.
    pub(super) fn layer(&self) -> Option<f64> {
        let n = self.system.n as f64;
        match self.generated()?.kind {
            Kind::Laplace2d => Some(n.sqrt()),
            Kind::Laplace3d => Some(n.powf(2.0 / 3.0)),
            Kind::Dense | Kind::Random => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, Command, FromArgMatches as _};

    #[test]
    fn a_pe_has_blocks_by_its_share_and_each_has_rows() {
        let cut = |bounds: &[u64], shares: &[f64], each, costs: &[u64]| {
            let Blocks { rows, of_pes } = Blocks::cut(bounds, shares, each, costs).unwrap();
            (rows, of_pes)
        };
        assert_eq!(cut(&[0, 9, 12], &[0.75, 0.25], 2, &[]), (vec![0, 3, 6, 9, 12], vec![0, 3, 4]));
        assert_eq!(cut(&[0, 2, 2, 3], &[0.9, 0.0, 0.1], 4, &[]), (vec![0, 1, 2, 3], vec![0, 2, 2, 3]));
        assert_eq!(cut(&[0, 4], &[1.0], 2, &[1, 1, 1, 9]), (vec![0, 3, 4], vec![0, 2]));
        assert_eq!(cut(&[0, 2], &[1.0], 2, &[90, 0]).0, [0, 1, 2]);
    }

    #[test]
    fn small_blocks_are_not_made() {
        let per_pe = |words: &[&str], pes| {
            let command = Jacobi::augment_args(Command::new("jacobi"));
            let matches = command.get_matches_from([&["jacobi"], words].concat());
            Jacobi::from_arg_matches(&matches).unwrap().blocks_per_pe(pes)
        };
        assert_eq!(per_pe(&["--n", "100"], 3), 1);
        assert_eq!(per_pe(&["--n", "100", "--blocks-per-pe", "5"], 3), 5);
        assert_eq!(per_pe(&["--n", "4096"], 2), 4);
        assert_eq!(per_pe(&["--n", "1000000", "--generate", "laplace2d"], 2), 2);
        assert_eq!(per_pe(&["--n", "40000"], 2), BLOCKS_OF_PE);
        assert_eq!(per_pe(&["--n", "4000000", "--generate", "laplace2d"], 2), BLOCKS_OF_PE);
        assert_eq!(per_pe(&["--n", "4000000", "--generate", "random"], 2), 1);
    }
}
