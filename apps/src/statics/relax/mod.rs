//! Relaxation to a minimum of the energy, as a machine that is told sums and tells steps.
//!
//! The machine never sees an atom. After each evaluation it is told a few sums over all free atoms ([`Measured`], one
//! reduction), and answers what all blocks do next ([`Order`], one broadcast): [`vectors::Vectors`] is what a block
//! keeps and does for it. So the same machine runs in one thread and over many nodes, and takes the same steps.

mod cg;
mod fire;
mod lbfgs;
mod line;
#[cfg(test)]
mod tests;
pub mod vectors;

use serde::{Deserialize, Serialize};

/// The way down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum Method {
    /// Conjugate gradients (Polak-Ribiere with restart), the default.
    Cg,
    /// Damped dynamics (E. Bitzek et al., Phys. Rev. Lett. 97 (2006) 170201).
    Fire,
    /// Limited-memory BFGS, with the last five steps.
    Lbfgs,
}

/// When a relaxation is over. A tolerance of 0 is never met but by 0.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Largest component of a force, in eV/A.
    pub max_force: f64,
    /// Two-norm of all forces, in eV/A.
    pub force_norm: f64,
    /// Change of the energy in an iteration, over the energy.
    pub energy: f64,
    /// Iterations.
    pub iterations: u64,
    /// Evaluations of energy and forces.
    pub evaluations: u64,
    /// Largest change of a coordinate in a step, in A.
    pub max_step: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_force: 1e-8,
            force_norm: 0.0,
            energy: 0.0,
            iterations: 10_000,
            evaluations: 50_000,
            max_step: 0.1,
        }
    }
}

impl Limits {
    /// The same without tolerances: so many iterations and evaluations are taken, and no minimum is looked for.
    #[must_use]
    pub fn without_tolerances(self) -> Self {
        Self { max_force: 0.0, force_norm: 0.0, energy: 0.0, ..self }
    }

    /// Whether a minimum is looked for, so that a cap is met before it is found.
    pub fn has_tolerance(&self) -> bool {
        self.max_force > 0.0 || self.force_norm > 0.0 || self.energy > 0.0
    }

    /// Whether it is known beforehand that a relaxation makes all evaluations which it may make.
    pub fn takes_all(&self) -> bool {
        !self.has_tolerance() && self.evaluations <= self.iterations
    }

    /// How many evaluations a relaxation makes, if that is known, or else about.
    pub fn expected(&self) -> u64 {
        if self.takes_all() { self.evaluations } else { self.evaluations.min(USUAL_EVALUATIONS) }
    }
}

/// Evaluations after which most crystals with a defect are at rest.
const USUAL_EVALUATIONS: u64 = 50;

/// What ended a relaxation.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Stop {
    /// The largest force component is within its tolerance.
    MaxForce,
    /// The norm of the forces is within its tolerance.
    ForceNorm,
    /// The energy changes less than its tolerance.
    Energy,
    /// The cap on iterations.
    Iterations,
    /// The cap on evaluations.
    Evaluations,
    /// No step along the forces makes the energy smaller: rounding is all that is left.
    NoDescent,
    /// A place, force or energy is no finite number; the atom with the smallest id for which it is, if it is an atom's.
    NotFinite(Option<u64>),
}

impl std::fmt::Display for Stop {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::MaxForce => out.write_str("largest force within its tolerance"),
            Self::ForceNorm => out.write_str("norm of the forces within its tolerance"),
            Self::Energy => out.write_str("change of the energy within its tolerance"),
            Self::Iterations => out.write_str("cap on iterations"),
            Self::Evaluations => out.write_str("cap on evaluations"),
            Self::NoDescent => out.write_str("no step makes the energy smaller"),
            Self::NotFinite(None) => out.write_str("the energy is no finite number"),
            Self::NotFinite(Some(id)) => write!(out, "place or force of atom {id} is no finite number"),
        }
    }
}

impl Stop {
    /// Whether a minimum was found, within the tolerances or rounding.
    pub fn is_minimum(self) -> bool {
        matches!(self, Self::MaxForce | Self::ForceNorm | Self::Energy | Self::NoDescent)
    }
}

/// Sums over the free atoms after an evaluation. `f` is the force of now, `d` the direction, `g` the force at the origin
/// of the line that is being searched.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Energy in eV.
    pub energy: f64,
    /// f f, in (eV/A)^2.
    pub ff: f64,
    /// f g.
    pub fg: f64,
    /// f d.
    pub fd: f64,
    /// d d.
    pub dd: f64,
    /// Largest component of f, in eV/A.
    pub max_f: f64,
    /// Largest component of d.
    pub max_d: f64,
    /// Largest distance of an atom from its place when the lists were built, in A.
    pub moved: f64,
    /// Virial in eV, as in [`super::block::Total`]; 0 where nobody asks for it.
    pub virial: [f64; 6],
    /// Products that limited-memory BFGS needs.
    pub history: History,
    /// Smallest id of an atom whose place or force is no finite number.
    pub not_finite: Option<u64>,
}

/// With s the way from the origin and y the loss of force on it; products with the steps that are kept, oldest first.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
pub struct History {
    /// s y, y y, f s, f y of the step that would be kept next.
    pub new: [f64; 4],
    /// Largest components of s and y.
    pub largest: [f64; 2],
    /// For each step k that is kept: s y_k, y s_k, y y_k, f s_k, f y_k.
    pub kept: Vec<[f64; 5]>,
}

impl Measured {
    /// What all blocks measured, in the order of their numbers.
    pub fn all(blocks: &[Self]) -> Self {
        let mut sums = Self::default();
        blocks.iter().for_each(|block| sums.join(block));
        sums
    }

    /// Joins what another block measured. Sums are rounded, so blocks are joined in the order of their numbers.
    pub fn join(&mut self, other: &Self) {
        self.energy += other.energy;
        self.ff += other.ff;
        self.fg += other.fg;
        self.fd += other.fd;
        self.dd += other.dd;
        self.max_f = self.max_f.max(other.max_f);
        self.max_d = self.max_d.max(other.max_d);
        self.moved = self.moved.max(other.moved);
        add(&mut self.virial, &other.virial);
        self.history.join(&other.history);
        self.not_finite = self.not_finite.into_iter().chain(other.not_finite).min();
    }
}

impl History {
    fn join(&mut self, other: &Self) {
        add(&mut self.new, &other.new);
        for (largest, other) in self.largest.iter_mut().zip(other.largest) {
            *largest = largest.max(other);
        }
        if self.kept.len() < other.kept.len() {
            self.kept.resize(other.kept.len(), [0.0; 5]);
        }
        for (sums, other) in self.kept.iter_mut().zip(&other.kept) {
            add(sums, other);
        }
    }
}

fn add(sums: &mut [f64], others: &[f64]) {
    for (sum, other) in sums.iter_mut().zip(others) {
        *sum += other;
    }
}

/// A new direction from where the atoms are: d = force f + direction d + sum of the kept steps s_k and y_k by their
/// factors. The places of now become the origin of the next line.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
pub struct Turn {
    /// How much farther than the atoms the line is followed first, in parts of its step: there is where its minimum would
    /// be if the force changed evenly, and the force there is taken to be what that makes of it.
    pub beyond: f64,
    /// Factor of the force.
    pub force: f64,
    /// Factor of the last direction.
    pub direction: f64,
    /// How many steps are kept, the one that ends here included.
    pub keep: usize,
    /// Factors of s_k and y_k, oldest first, the one that ends here included.
    pub history: Vec<[f64; 2]>,
}

/// What all blocks do next.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Turn, if told; put every free atom at origin + step d; build the lists anew, if told; evaluate; measure.
    Go {
        /// A new direction first.
        turn: Option<Turn>,
        /// How far along the direction.
        step: f64,
        /// Whether atoms may be farther than half the skin from where the lists were built.
        rebuild: bool,
    },
    /// The atoms are where they should be.
    Stop(Stop),
}

/// Step and direction that a method chose.
enum Choice {
    /// Along the direction there is.
    Step(f64),
    /// A new direction; with the largest component that it can have, and the largest coordinate by which the new origin is
    /// away from the atoms.
    Turn { turn: Turn, step: f64, max_d: f64, away: f64 },
    /// Nothing leads down.
    Stuck,
}

#[derive(Debug, Serialize, Deserialize)]
enum State {
    Cg(cg::Cg),
    Fire(fire::Fire),
    Lbfgs(lbfgs::Lbfgs),
}

/// What a step has taken so far.
#[derive(Clone, Copy, Default, PartialEq, Debug, Serialize, Deserialize)]
pub struct Spent {
    /// Lines searched.
    pub iterations: u64,
    /// Evaluations of energy and forces.
    pub evaluations: u64,
}

/// Length of a vector whose components are 1.
const DIAGONAL: f64 = 1.732_050_807_568_877_2;

/// The machine.
#[derive(Debug, Serialize, Deserialize)]
pub struct Relaxation {
    limits: Limits,
    /// Half the skin: how far atoms may move before lists are built anew.
    slack: f64,
    state: State,
    iterations: u64,
    evaluations: u64,
    /// Energy where the last line began.
    energy: Option<f64>,
    /// Bounds: distance of an atom at the origin from where the lists were built, and components of the direction.
    origin_moved: f64,
    max_d: f64,
}

impl Relaxation {
    /// A relaxation that begins where the atoms are, with lists built there.
    pub fn new(method: Method, limits: Limits, skin: f64) -> Self {
        let state = match method {
            Method::Cg => State::Cg(cg::Cg::new(limits.max_step)),
            Method::Fire => State::Fire(fire::Fire::new(limits.max_step)),
            Method::Lbfgs => State::Lbfgs(lbfgs::Lbfgs::new(limits.max_step)),
        };
        Self {
            limits,
            slack: skin / 2.0,
            state,
            iterations: 0,
            evaluations: 0,
            energy: None,
            origin_moved: 0.0,
            max_d: 0.0,
        }
    }

    /// The same after so many iterations and evaluations, which count towards the caps.
    #[must_use]
    pub fn after(mut self, spent: Spent) -> Self {
        Spent { iterations: self.iterations, evaluations: self.evaluations } = spent;
        self
    }

    /// The first order: an evaluation where the atoms are, with the direction 0.
    pub fn start(&mut self) -> Order {
        Order::Go { turn: Some(Turn::default()), step: 0.0, rebuild: false }
    }

    /// Whether what it is told has to have a [`History`].
    pub fn needs_history(&self) -> bool {
        matches!(self.state, State::Lbfgs(_))
    }

    /// Iterations so far: lines searched to their end.
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    /// Evaluations so far.
    pub fn evaluations(&self) -> u64 {
        self.evaluations
    }

    /// What to do after an evaluation that gave `measured`.
    pub fn next(&mut self, measured: &Measured) -> Order {
        self.evaluations += 1;
        if let Some(stop) = self.broken(measured) {
            return Order::Stop(stop);
        }
        let choice = match &mut self.state {
            State::Cg(cg) => cg.next(measured),
            State::Fire(fire) => fire.next(measured),
            State::Lbfgs(lbfgs) => lbfgs.next(measured),
        };
        let (turn, step) = match choice {
            Choice::Stuck => return Order::Stop(self.satisfied(measured).unwrap_or(Stop::NoDescent)),
            Choice::Step(step) => (None, step),
            Choice::Turn { turn, step, max_d, away } => {
                if let Some(stop) = self.satisfied(measured) {
                    return Order::Stop(stop);
                }
                self.iterations += u64::from(self.energy.is_some());
                self.energy = Some(measured.energy);
                self.origin_moved = measured.moved + away * DIAGONAL;
                self.max_d = max_d;
                (Some(turn), step)
            }
        };
        if let Some(stop) = self.capped() {
            return Order::Stop(stop);
        }
        let reached = step.abs() * self.max_d * DIAGONAL;
        let rebuild = self.origin_moved + reached > self.slack;
        if rebuild {
            self.origin_moved = reached;
        }
        Order::Go { turn, step, rebuild }
    }

    fn broken(&self, measured: &Measured) -> Option<Stop> {
        let sums = [measured.energy, measured.ff, measured.fd];
        let finite = measured.not_finite.is_none() && sums.iter().all(|sum| sum.is_finite());
        (!finite).then_some(Stop::NotFinite(measured.not_finite))
    }

    /// Tolerances, at a point that a line search has accepted.
    fn satisfied(&self, measured: &Measured) -> Option<Stop> {
        if measured.max_f <= self.limits.max_force {
            return Some(Stop::MaxForce);
        }
        if measured.ff.sqrt() <= self.limits.force_norm {
            return Some(Stop::ForceNorm);
        }
        let change = (self.energy? - measured.energy).abs();
        (change <= self.limits.energy * measured.energy.abs() && self.limits.energy > 0.0)
            .then_some(Stop::Energy)
    }

    /// Caps. A cap may end a line before its search does.
    fn capped(&self) -> Option<Stop> {
        if self.iterations >= self.limits.iterations {
            return Some(Stop::Iterations);
        }
        (self.evaluations >= self.limits.evaluations).then_some(Stop::Evaluations)
    }
}
