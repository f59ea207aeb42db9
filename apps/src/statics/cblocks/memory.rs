//! What blocks will hold and cost, before any of them is made: from the crystal, the cut and the reach of the lists.

use super::distribution::{Distribution, Load, distribute};
use crate::division::{self, Division, DivisionError, Shortage, Work};
use crate::statics::block::Class;
use crate::statics::crystal::Side;
use crate::statics::neighbours::List;
use crate::statics::problem::Problem;
use crate::statics::relax::Method;
use chares::loadbalance::PartitionError;
use chares::loadbalance::machines::{Bytes, Machines};
use std::f64::consts::PI;

/// Bytes for each own atom: id, species, class, place, density, slope, force and energy, four vectors of the
/// relaxation, three starts of its row, its number among those that others feel.
const OWN_BYTES: u64 = 8 + 1 + 1 + 24 + 8 + 8 + 32 + 4 * 24 + 12 + 4;
/// More for each of the five steps that limited-memory BFGS keeps.
const KEPT_BYTES: u64 = 5 * 48;
/// Bytes for each ghost: species, class, place, slope; where it stands in what is sent.
const GHOST_BYTES: u64 = 1 + 1 + 24 + 8 + 4;
/// Bytes for each ghost while its place is on the way.
pub(super) const ON_THE_WAY_BYTES: u64 = 24;
/// Bytes of a ghost that are exchanged in an evaluation: its place and its slope.
const EXCHANGED_BYTES: f64 = 32.0;
/// Bytes for each PE: a list that is being built, and what the allocator has left over.
const WORKING_BYTES: u64 = 4 << 20;

/// What is expected of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Own atoms.
    pub atoms: u64,
    /// Those whose density is computed.
    pub computed: u64,
    /// Ghosts.
    pub ghosts: u64,
    /// Listed pairs.
    pub pairs: u64,
    /// Bytes of memory.
    pub bytes: u64,
}

/// A problem, and what is expected of it.
pub struct Needed<'a> {
    problem: &'a Problem,
    /// Of every block, by its number.
    pub blocks: Vec<Expected>,
    /// What decides where blocks live.
    pub load: Load,
}

impl<'a> Needed<'a> {
    /// Looks at every block; atom by atom only at those that hold atoms of shells.
    pub fn of(problem: &'a Problem) -> Self {
        let blocks: Vec<_> = (0..problem.partition.len()).map(|block| of_block(problem, block)).collect();
        Self { problem, load: load(problem, &blocks), blocks }
    }

    /// Bytes that a node holds whatever its share: tables of the potential, listed atoms, and what its PEs work with.
    fn whatever_share(&self, pes: usize) -> u64 {
        let read = self.problem.potential.bytes() + self.problem.crystal.bytes();
        read + pes as u64 * WORKING_BYTES
    }

    /// Where each block lives: by speed, as far as blocks fit.
    ///
    /// # Errors
    /// Which node or host has too little memory, how much is needed there, and how to mend it.
    pub(in crate::statics) fn divide(
        &self,
        machines: &Machines,
    ) -> Result<Division<Distribution>, DivisionError> {
        division::divide(self, machines, machines.speeds())
    }

    /// Atoms whose density is computed, of all blocks.
    pub fn computed_atoms(&self) -> f64 {
        self.blocks.iter().map(|block| block.computed as f64).sum()
    }
}

impl Work for Needed<'_> {
    type Owners = Distribution;

    fn by(&self, machines: &Machines, weights: &[f64]) -> Result<Division<Distribution>, PartitionError> {
        let parts = machines.parts(weights);
        let found = distribute(&self.load, &parts)?;
        let memory = machines.pes().into_iter().map(|pes| {
            let mine = self.blocks.iter().zip(&found.owners).filter(|(_, owner)| pes.contains(owner));
            mine.map(|(block, _)| block.bytes).sum::<u64>() + self.whatever_share(pes.len())
        });
        let cost: f64 = self.load.cost.iter().sum();
        let mut shares = vec![0.0; weights.len()];
        let costs = found.owners.iter().zip(&self.load.cost);
        costs.for_each(|(&pe, block)| shares[pe as usize] += block / cost);
        // As many ghosts go as come: influence is mutual.
        let ghosts = self.load.ghosts_from_elsewhere(&parts, &found.owners);
        let bytes = ghosts.into_iter().map(|ghosts| ghosts * EXCHANGED_BYTES);
        Ok(Division {
            weights: weights.to_vec(),
            shares,
            bytes: bytes.map(|bytes| Bytes { sent: bytes, received: bytes }).collect(),
            memory: memory.collect(),
            owners: found,
        })
    }

    fn what(&self) -> String {
        format!("a crystal of {} atoms", self.problem.crystal.atoms())
    }

    fn of_launcher(&self, _: bool) -> u64 {
        self.problem.potential.bytes()
    }

    fn advice(&self, place: Shortage) -> &'static str {
        match place {
            Shortage::Node => "take fewer atoms or more nodes, or raise its `memory` in the nodes file",
            Shortage::Host | Shortage::LaunchersHost => "take fewer atoms or more hosts",
        }
    }
}

fn load(problem: &Problem, blocks: &[Expected]) -> Load {
    let grid = problem.partition.grid();
    let bounds = problem.crystal.bounds();
    let inside = pairs_of_atom(problem);
    let sides: [f64; 3] = std::array::from_fn(|k| bounds.lengths[k] / grid[k] as f64);
    let density = problem.crystal.atoms() as f64 / bounds.volume();
    let face = |k: usize| density * problem.reach() * sides[(k + 1) % 3] * sides[(k + 2) % 3];
    Load {
        grid,
        periodic: bounds.periodic,
        cost: blocks.iter().map(|block| block.pairs as f64 / inside).collect(),
        faces: std::array::from_fn(face),
    }
}

/// Pairs of an atom inside the crystal, each counted for one of the two.
fn pairs_of_atom(problem: &Problem) -> f64 {
    let density = problem.crystal.atoms() as f64 / problem.crystal.bounds().volume();
    density * 2.0 / 3.0 * PI * problem.reach().powi(3)
}

fn of_block(problem: &Problem, block: usize) -> Expected {
    let (crystal, grid, reach) = (&problem.crystal, problem.partition.grid(), problem.reach());
    let cells = problem.partition.cells(block);
    let edges = crystal.cell().edges;
    let atoms = crystal.atoms_in(&cells);
    let low: [f64; 3] = std::array::from_fn(|k| cells[k].start as f64 * edges[k]);
    let high: [f64; 3] = std::array::from_fn(|k| cells[k].end as f64 * edges[k]);
    let lengths = crystal.lengths();
    let in_shell = |k: usize| match crystal.sides()[k] {
        Side::Periodic => false,
        Side::Shells { fixed, .. } => fixed > 0.0 && (low[k] < fixed || high[k] > lengths[k] - fixed),
    };
    let computed = if (0..3).any(in_shell) {
        problem.partition.atoms(crystal, block).filter(|atom| atom.class < Class::Fixed).count() as u64
    } else {
        atoms
    };
    let [nx, ny, _] = grid;
    let place = [block % nx, block / nx % ny, block / (nx * ny)];
    // How many faces across an axis have atoms beyond them.
    let open: [f64; 3] = std::array::from_fn(|k| {
        let is_periodic = crystal.sides()[k] == Side::Periodic;
        let open = [place[k] > 0 || is_periodic, place[k] + 1 < grid[k] || is_periodic];
        open.iter().filter(|&&open| open).count() as f64
    });
    // Neighbours are 3/8 of the reach away along an axis, on average.
    let parts: [f64; 3] = std::array::from_fn(|k| reach / (high[k] - low[k]));
    let leaving = |k: usize| (open[k] / 2.0 * 3.0 / 8.0 * parts[k]).min(1.0);
    let inside: f64 = (0..3).map(|k| 1.0 - leaving(k)).product();
    let pairs = computed as f64 * pairs_of_atom(problem) * (2.0 - inside);
    // The outer atoms lie a little inside the faces.
    let inset = 0.4 * (crystal.bounds().volume() / crystal.atoms() as f64).cbrt();
    let ghosts = (atoms as f64 * around(open, parts.map(|part| part * (reach - inset) / reach))) as u64;
    let kept = if problem.method == Method::Lbfgs { KEPT_BYTES } else { 0 };
    let pair_bytes = List::bytes_per_pair((atoms + ghosts) as usize) as f64;
    let bytes =
        atoms * (OWN_BYTES + kept) + ghosts * (GHOST_BYTES + ON_THE_WAY_BYTES) + (pairs * pair_bytes) as u64;
    Expected { atoms, computed, ghosts, pairs: pairs as u64, bytes }
}

/// How much is within reach of a box beyond its open faces, relative to the box: slabs on the faces, quarters of cylinders
/// along the edges, and eighths of a sphere at the corners. `parts` are the reach over the box's lengths.
fn around(open: [f64; 3], parts: [f64; 3]) -> f64 {
    let [x, y, z] = std::array::from_fn(|k| open[k] * parts[k]);
    x + y + z + PI / 4.0 * (x * y + y * z + z * x) + PI / 6.0 * x * y * z
}
