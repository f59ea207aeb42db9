//! Who has which rows: shares by speed that fit into the nodes' memory. A node holds the rows of its PEs, and for each block
//! of them the parts of x that it needs.

use super::arguments::Jacobi;
use super::blocks::Blocks;
use super::work::AHEAD;
use crate::division::{self, Division, DivisionError, Shortage, Work, shares_of};
use chares::loadbalance::machines::{Bytes, Machines};
use chares::loadbalance::{Items, Part, PartitionError, placement};

/// A sparse entry's column, and a row's beginning, bytes.
const COLUMN_BYTES: u128 = 4;
const START_BYTES: u128 = 8;
/// A number is held as two 64-bit ones and a column while a file of entries is read.
const TRIPLET_BYTES: u128 = 28;

/// What a row of a sparse matrix costs beside its entries, in entries: its unknown, right-hand side and diagonal.
const ROW_COST: u64 = 3;

/// Divides the rows by speed, as far as they fit, and cuts them into blocks.
///
/// # Errors
/// Which node or host has too little memory, how much is needed there, and how to mend it.
pub(super) fn divide(jacobi: &Jacobi, machines: &Machines) -> Result<Division<Blocks>, DivisionError> {
    division::divide(jacobi, machines, machines.speeds())
}

impl Division<Blocks> {
    /// The same for a sparse matrix whose rows are known, where row `i` has the entries `starts[i]..starts[i + 1]`: by the
    /// entries of the rows instead of their count.
    ///
    /// # Errors
    /// If the work cannot be divided by speed.
    pub(super) fn by_entries(self, jacobi: &Jacobi, starts: &[u64]) -> Result<Self, DivisionError> {
        let costs: Vec<u64> = starts.windows(2).map(|ends| ends[1] - ends[0] + ROW_COST).collect();
        let bounds = placement::contiguous(&Items::with_costs(&costs), &Part::each(&self.weights))?;
        let before = |row: &u64| starts[usize::try_from(*row).expect("a row of a matrix in memory")];
        let shares = shares_of(&bounds.iter().map(before).collect::<Vec<u64>>());
        let owners = Blocks::cut(&bounds, &shares, jacobi.blocks_per_pe(shares.len()), &costs)?;
        Ok(Self { shares, owners, ..self })
    }
}

impl Jacobi {
    fn number_size(&self) -> u128 {
        self.system.dtype_or_default().size_bytes() as u128
    }

    /// Bytes of all rows of A.
    fn matrix_bytes(&self) -> u128 {
        let entries = u128::from(self.entries());
        if self.is_dense() {
            return entries * self.number_size();
        }
        entries * (self.number_size() + COLUMN_BYTES) + self.system.n as u128 * START_BYTES
    }

    /// Bytes of a number for each unknown and right-hand side.
    fn vector_bytes(&self) -> u128 {
        self.system.n as u128 * self.system.rhs as u128 * self.number_size()
    }

    /// Bytes that a node holds with so many rows in so many blocks.
    fn bytes_of_rows(&self, rows: u64, blocks: u64) -> u64 {
        let (rows, n) = (u128::from(rows), self.system.n.max(1) as u128);
        // Rows that were sent lie beside those that are made of them until they all are.
        let copies = if self.system.a.is_some() { 2 } else { 1 };
        let matrix = self.matrix_bytes() * rows / n * copies;
        // B, the diagonal, sums, and x of the last iterations.
        let own = (u128::from(AHEAD) + 8) * self.vector_bytes() * rows / n;
        // Every block has all of x that its rows need, of as many iterations; the parts of the next one, which blocks of a node
        // share, are here too.
        let foreign = self.vector_bytes() * u128::from(self.needed_of_others()) / n;
        let held = foreign * u128::from(blocks) * (u128::from(AHEAD) + 3);
        u64::try_from(matrix + own + held + self.vector_bytes()).unwrap_or(u64::MAX)
    }

    /// What a node with this share of the rows exchanges with so many others in an iteration.
    fn exchanged(&self, share: f64, others: f64) -> Bytes {
        let n = self.system.n.max(1) as f64;
        let own = share * n;
        // Of a Laplacian only what lies along the cuts is needed.
        let (sent, received) = match self.layer() {
            Some(layer) => (layer.min(own) * others.min(2.0), layer.min(n - own) * others.min(2.0)),
            None => (own * others, n - own),
        };
        let number_bytes = self.system.rhs as f64 * self.system.dtype_or_default().size_bytes() as f64;
        Bytes { sent: sent * number_bytes, received: received * number_bytes }
    }
}

impl Work for Jacobi {
    type Owners = Blocks;

    fn by(&self, machines: &Machines, weights: &[f64]) -> Result<Division<Blocks>, PartitionError> {
        let bounds = placement::contiguous(&Items::alike(self.system.n as u64), &machines.parts(weights))?;
        let (shares, pes) = (shares_of(&bounds), machines.pes());
        let others = pes.len().saturating_sub(1) as f64;
        let own = |pes: &std::ops::Range<u32>| pes.clone().map(|pe| shares[pe as usize]).sum();
        let owners = Blocks::cut(&bounds, &shares, self.blocks_per_pe(shares.len()), &[])?;
        let of = |bounds: &[u64], pes: &std::ops::Range<u32>| {
            bounds[pes.end as usize] - bounds[pes.start as usize]
        };
        let held = |pes| self.bytes_of_rows(of(&bounds, pes), of(&owners.of_pes, pes));
        Ok(Division {
            weights: weights.to_vec(),
            bytes: pes.iter().map(|pes| self.exchanged(own(pes), others)).collect(),
            memory: pes.iter().map(held).collect(),
            shares,
            owners,
        })
    }

    fn what(&self) -> String {
        let (n, sides, dtype) =
            (self.system.n, self.system.right_hand_sides(), self.system.dtype_or_default());
        if self.is_dense() {
            format!("a dense system of {n} unknowns with {sides} in {dtype}")
        } else {
            format!("a sparse system of {n} unknowns and {} entries with {sides} in {dtype}", self.entries())
        }
    }

    fn of_launcher(&self, sends_elsewhere: bool) -> u64 {
        let is_given = self.system.a.is_some();
        let read = match (is_given, self.is_dense()) {
            (false, _) => 0,
            (true, true) => self.matrix_bytes(),
            (true, false) => self.matrix_bytes() + u128::from(self.entries()) * TRIPLET_BYTES,
        };
        // What goes to the own host is counted where it arrives.
        let sent = if is_given && sends_elsewhere { self.matrix_bytes() } else { 0 };
        let collected = if self.verify || self.system.out.is_some() { 2 * self.vector_bytes() } else { 0 };
        u64::try_from(read + sent + collected).unwrap_or(u64::MAX)
    }

    fn advice(&self, place: Shortage) -> &'static str {
        match (place, self.is_dense()) {
            (Shortage::Node, _) => {
                "take a smaller system or more nodes, or raise its `memory` in the nodes file"
            }
            (_, true) => "take a smaller or a sparse system, `--dtype f32` or more hosts",
            (_, false) => "take a smaller system, `--dtype f32` or more hosts",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::loadbalance::machines::{Machine, Memory};
    use clap::{Args as _, Command, FromArgMatches as _};

    const MIB: u64 = 1 << 20;

    fn of(words: &[&str]) -> Jacobi {
        let command = Jacobi::augment_args(Command::new("jacobi"));
        Jacobi::from_arg_matches(&command.get_matches_from([&["jacobi"], words].concat())).unwrap()
    }

    /// Two nodes of one PE each on hosts of their own, with so many MiB.
    fn hosts(mib: [u64; 2]) -> Machines {
        let machine = |name: &str, pes, mib: u64| Machine {
            name: name.into(),
            host: name.into(),
            rates: vec![1.0; pes],
            memory: Memory { host_bytes: Some(mib * MIB), ..Memory::default() },
        };
        let nodes = vec![machine("one", 1, mib[0]), machine("two", 1, mib[1])];
        Machines { nodes, launcher: machine("launcher", 0, 4096), ..Machines::default() }
    }

    #[test]
    fn a_node_holds_its_rows_and_x() {
        let hosts = hosts([1000, 1000]);
        let needs = of(&["--n", "1000"]).by(&hosts, &[3.0, 1.0]).unwrap().memory;
        assert!(
            (6_000_000..6_200_000).contains(&needs[0]) && (2_000_000..2_100_000).contains(&needs[1]),
            "{needs:?}"
        );
        let sparse = of(&["--n", "1000000", "--generate", "laplace2d"]);
        let needs = divide(&sparse, &hosts).unwrap().memory;
        assert!((34_000_000..100_000_000).contains(&needs[0]), "{needs:?}");
    }

    #[test]
    fn a_small_host_gets_fewer_rows_and_what_fits_nowhere_is_refused() {
        let hosts = hosts([1000, 100]);
        let fits = divide(&of(&["--n", "8000"]), &hosts).unwrap();
        assert!(fits.weights[1] < 0.5 && fits.memory[1] < 76 * MIB, "{fits:?}");
        let refused = divide(&of(&["--n", "80000"]), &hosts).unwrap_err().to_string();
        assert!(
            refused.starts_with("a dense system of 80000 unknowns with one right-hand side in f64 needs "),
            "{refused}"
        );
        assert!(refused.contains("GiB on host \"two\"") && refused.ends_with("or more hosts"), "{refused}");
    }

    #[test]
    fn rows_of_a_file_are_divided_by_their_entries_and_by_what_fits() {
        let by = |weights: &[f64]| {
            let jacobi = of(&["--n", "4"]);
            let division = jacobi.by(&hosts([1000, 1000]), weights).unwrap();
            let Division { owners, shares, .. } = division.by_entries(&jacobi, &[0, 9, 10, 11, 12]).unwrap();
            (owners.rows, owners.of_pes, shares)
        };
        assert_eq!(by(&[1.0, 1.0]), (vec![0, 1, 4], vec![0, 1, 2], vec![0.75, 0.25]));
        assert_eq!(by(&[1.0, 0.1]), (vec![0, 1, 4], vec![0, 2, 2], vec![1.0, 0.0]));
    }
}
