//! Who has what at the beginning: columns of the grid or particles, as many as each PE's speed earns, in a few chares for each
//! PE so that they can move; as far as nodes have memory.

use super::arguments::Pic;
use super::problem::{Problem, Scheme};
use crate::division::{self, Division, DivisionError, Shortage, Work, shares_of};
use chares::loadbalance::machines::{Bytes, Machines};
use chares::loadbalance::{Items, PartitionError, placement};

/// Bytes for each particle: place and velocity, its cell and its new place while particles are sorted, a column of them twice,
/// and what room vectors have left.
const PARTICLE_BYTES: u64 = 32 + 8 + 8 + 16;
/// Bytes of a particle on its way.
const SENT_BYTES: f64 = 32.0;
/// Bytes for each point of a grid: a sum of charge, a potential, and two accelerations.
const CHARGE_BYTES: u64 = 8;
const POTENTIAL_BYTES: u64 = 8;
const FIELD_BYTES: u64 = 16;
/// Bytes for each point of the whole grid where the field is solved for: sums, a spectrum and potentials, those that are sent
/// among them.
const SOLVER_BYTES: u64 = 160;
/// Chares of each PE if nobody says how many, and the fewest columns of one.
const REGIONS: u64 = 4;
const COLUMNS: u64 = 4;
/// Particles for each point of the grid that make it worth a chare's own copy.
const WORTH_A_GRID: u64 = 4;

/// A plasma that is to be divided.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) problem: &'a Problem,
    /// Chares of each PE, if somebody says how many.
    pub(super) regions: Option<usize>,
    /// Whether the launcher has all particles at the end, to write or to check them.
    pub(super) is_collected: bool,
}

/// Who has what.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Owners {
    /// Chare `c` has the columns, or the particles that stay, from `bounds[c]` to `bounds[c + 1]`.
    pub(super) bounds: Vec<u64>,
    /// The PE of each chare.
    pub(super) pes: Vec<u32>,
    /// The PE that solves for the field, if one does.
    pub(super) solver: u32,
}

impl<'a> Plan<'a> {
    /// Of these arguments, for their problem with a scheme that is settled.
    pub(super) fn of(pic: &Pic, problem: &'a Problem) -> Self {
        Self { problem, regions: pic.regions, is_collected: pic.verify || pic.out.is_some() }
    }

    /// Divides it.
    ///
    /// # Errors
    /// Which node or host has too little memory, how much is needed there, and how to mend it.
    pub(super) fn divide(&self, machines: &Machines) -> Result<Division<Owners>, DivisionError> {
        division::divide(self, machines, machines.speeds())
    }

    /// Chares for so many columns or particles of a PE.
    fn chares(&self, units: u64) -> u64 {
        let usual = match self.problem.scheme {
            Scheme::Fixed => units / (WORTH_A_GRID * self.problem.grid() as u64),
            Scheme::Regions | Scheme::Distributed => units / COLUMNS,
        };
        self.regions.map_or(usual.clamp(1, REGIONS), |regions| regions as u64).min(units)
    }

    /// Bytes that a node exchanges in a step, which has this part of all columns or particles.
    fn exchanged(&self, part: f64, has_solver: bool) -> Bytes {
        let (problem, grid) = (self.problem, self.problem.grid() as f64);
        let (charge, field) = (CHARGE_BYTES as f64 * grid, POTENTIAL_BYTES as f64 * grid);
        if part == 0.0 || part == 1.0 {
            return Bytes::default();
        }
        let (charge, field) = match problem.scheme {
            Scheme::Fixed => (charge, field),
            // What others have, or its own.
            Scheme::Regions if has_solver => (charge * (1.0 - part), field * (1.0 - part)),
            Scheme::Regions => (charge * part, field * part),
            // Half a spectrum of pairs of numbers there, and one back.
            Scheme::Distributed => {
                let elsewhere = part * (1.0 - part);
                let bytes = 2.0 * elsewhere * field;
                return Bytes { sent: bytes + self.crossing(), received: bytes + self.crossing() };
            }
        };
        let crossing = if problem.scheme == Scheme::Fixed { 0.0 } else { self.crossing() };
        let (sent, received) = if has_solver { (field, charge) } else { (charge, field) };
        Bytes { sent: sent + crossing, received: received + crossing }
    }

    /// Bytes of particles that cross the two ends of neighbouring columns in a step, one way.
    fn crossing(&self) -> f64 {
        2.0 * crossing_part(self.problem) * self.problem.particles() as f64 * SENT_BYTES / 2.0
    }
}

/// The part of all particles that cross a given plane across x in a step, at the beginning.
pub(super) fn crossing_part(problem: &Problem) -> f64 {
    let all = problem.particles() as f64;
    let mean_speed = problem.species.iter().map(|kind| {
        // Of a normal distribution around 0; of a drift that is much faster, the drift.
        let thermal = kind.thermal * (2.0 / std::f64::consts::PI).sqrt();
        thermal.max(kind.drift.abs()) * kind.particles as f64 / all
    });
    mean_speed.sum::<f64>() * problem.dt / problem.length[0]
}

impl Work for Plan<'_> {
    type Owners = Owners;

    fn by(&self, machines: &Machines, weights: &[f64]) -> Result<Division<Owners>, PartitionError> {
        let problem = self.problem;
        let is_fixed = problem.scheme == Scheme::Fixed;
        let units = if is_fixed { problem.particles() } else { problem.cells[0] as u64 };
        let ends = placement::contiguous(&Items::alike(units), &machines.parts(weights))?;
        let (mut bounds, mut pes) = (vec![0], Vec::new());
        for (pe, end) in (0..).zip(ends.windows(2)) {
            let (first, here) = (end[0], end[1] - end[0]);
            let chares = self.chares(here);
            bounds.extend((1..=chares).map(|chare| first + chare * here / chares));
            pes.extend((0..chares).map(|_| pe));
        }
        let speeds = machines.speeds();
        let fastest = (0..)
            .zip(&speeds)
            .fold((0, 0.0), |best, (pe, speed)| if *speed > best.1 { (pe, *speed) } else { best });
        let (points, solver) = (problem.grid() as u64, fastest.0);
        let of_node = |node: &std::ops::Range<u32>| {
            let part = (ends[node.end as usize] - ends[node.start as usize]) as f64 / units as f64;
            let has_solver = problem.scheme != Scheme::Distributed && node.contains(&solver);
            let chares = pes.iter().filter(|pe| node.contains(pe)).count() as u64;
            let grids = if is_fixed {
                // Sums at the corners of cells and those that are on their way, and accelerations, for each chare; one potential
                // for all.
                points * ((6 * CHARGE_BYTES + FIELD_BYTES) * chares + 2 * POTENTIAL_BYTES)
            } else {
                (points as f64 * part) as u64 * 2 * (2 * CHARGE_BYTES + 4 * FIELD_BYTES)
            };
            let particles = (problem.particles() as f64 * part) as u64 * PARTICLE_BYTES;
            let memory = particles + grids + if has_solver { points * SOLVER_BYTES } else { 0 };
            (self.exchanged(part, has_solver), memory)
        };
        let (bytes, memory) = machines.pes().iter().map(of_node).unzip();
        Ok(Division {
            weights: weights.to_vec(),
            shares: shares_of(&ends),
            bytes,
            memory,
            owners: Owners { bounds, pes, solver },
        })
    }

    fn what(&self) -> String {
        let [nx, ny] = self.problem.cells;
        format!("a plasma of {} particles on {nx} x {ny} cells", self.problem.particles())
    }

    fn of_launcher(&self, _: bool) -> u64 {
        let particles = if self.is_collected { self.problem.particles() * PARTICLE_BYTES } else { 0 };
        particles + self.problem.grid() as u64 * SOLVER_BYTES
    }

    fn advice(&self, place: Shortage) -> &'static str {
        match place {
            Shortage::Node => "take fewer particles or cells, or raise its `memory` in the nodes file",
            Shortage::Host | Shortage::LaunchersHost => "take fewer particles or cells, or more hosts",
        }
    }
}
