//! The course of relaxations as every holder of blocks takes it: step after step, each evaluation followed by the next
//! order, with word to who watches.

use super::problem::Problem;
use super::relax::{Measured, Order, Relaxation, Spent, Stop};
use chares::{Callback, Cx};
use serde::{Deserialize, Serialize};

/// A step, or one more box of it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Leg {
    /// Number of the step.
    pub step: u32,
    /// By what factors the box and all in it are stretched first; none where the step begins, with its changes.
    pub stretch: Option<[f64; 3]>,
    /// What the step has taken so far.
    pub spent: Spent,
}

impl Leg {
    /// The begin of a step.
    pub fn of_step(step: usize) -> Self {
        Self { step: step as u32, stretch: None, spent: Spent::default() }
    }
}

/// Relax; one holder tells `watcher` after each evaluation how far it is.
#[derive(Clone, Serialize, Deserialize)]
pub struct Begin {
    /// What comes before that.
    pub leg: Leg,
    /// Who is told.
    pub watcher: Callback<Watch>,
}

/// How far a relaxation is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watch {
    /// Evaluations so far.
    pub evaluations: u64,
    /// Lines searched.
    pub iterations: u64,
    /// Energy in eV.
    pub energy: f64,
    /// Largest component of a force, in eV/A.
    pub max_force: f64,
    /// Virial in eV, where the box is stretched.
    pub virial: [f64; 6],
    /// What ended it, at the end.
    pub stop: Option<Stop>,
}

impl Watch {
    /// After an evaluation that measured so, and what is to be done next.
    pub fn of(machine: &Relaxation, measured: &Measured, order: &Order) -> Self {
        Self {
            evaluations: machine.evaluations(),
            iterations: machine.iterations(),
            energy: measured.energy,
            max_force: measured.max_f,
            virial: measured.virial,
            stop: if let Order::Stop(stop) = order { Some(*stop) } else { None },
        }
    }
}

/// The relaxation under way, and the step that follows it. All holders are told the same sums, so all take the same
/// course. Part of a chare's state.
#[derive(Default, Serialize, Deserialize)]
pub struct Course {
    relaxation: Option<(Relaxation, Callback<Watch>)>,
    with_virial: bool,
    /// A step that was told before the end of the last.
    next: Option<Begin>,
}

/// What a holder of blocks does next.
pub enum Next {
    /// Obeys, and evaluates.
    Obey(Order),
    /// Prepares its blocks for this, then calls [`Course::begin`].
    Begin(Begin),
    /// Waits for a step.
    Wait,
}

impl Course {
    /// A step was told. It is to be begun at once, or after the end of the last.
    pub fn told(&mut self, begin: Begin) -> Next {
        if self.relaxation.is_none() {
            return Next::Begin(begin);
        }
        self.next = Some(begin);
        Next::Wait
    }

    /// The first order, for blocks that are prepared.
    pub fn begin(&mut self, begin: Begin, problem: &Problem) -> Order {
        let (machine, order) = problem.begin(&begin.leg);
        self.with_virial = problem.steps[begin.leg.step as usize].stretches();
        self.relaxation = Some((machine, begin.watcher));
        order
    }

    /// Whether evaluations have to give the virial.
    pub fn with_virial(&self) -> bool {
        self.with_virial
    }

    /// What follows an evaluation in which all blocks together measured so. `tells` of one holder only: it tells who
    /// watches.
    pub fn next(&mut self, cx: &mut impl Cx, measured: &Measured, tells: bool) -> Next {
        let Some((machine, watcher)) = &mut self.relaxation else { return Next::Wait };
        let order = machine.next(measured);
        if tells {
            watcher.send(cx, Watch::of(machine, measured, &order));
        }
        if let Order::Go { .. } = order {
            return Next::Obey(order);
        }
        self.relaxation = None;
        self.next.take().map_or(Next::Wait, Next::Begin)
    }
}
