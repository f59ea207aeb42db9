//! Bodies that swell: something diffuses in time through an elastic body, which grows where there is more of it, as heat makes it
//! grow, or water, or cells that divide. Steps in time are implicit ones of Euler; displacements follow in balance.
//!
//! The shape is that of the artery in the adaptive parallel thesis (section 3.2), whose model cannot be recovered: diffusion
//! and elasticity coupled, in time.

use super::adapt::{Judged, chosen, graded};
use super::exact::Exact;
use super::forest::Forest;
use super::input::{InputError, says};
use super::patch::error_squared;
use super::problem::{Boundary, Physics, Problem, Source};
use super::spot::Spot;
use serde::{Deserialize, Serialize};

/// Radii around a spot in which elements are no longer than its radius, whatever is there already.
const REACH: f64 = 2.0;

/// Iterations of a step by the root of the number of elements.
const GUESS: f64 = 1.0;
/// Elements that take as long in an iteration as what a block exchanges with one of its neighbours: messages, and not their
/// bytes. About 53 on machine I of the measurements.
const EXCHANGE: u64 = 50;

/// What swells a body, and how it is followed. The body and what holds it are those of its [`Problem`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Swelling {
    /// How well it is conducted.
    pub conductivity: f64,
    /// How much of it a volume holds, by its value.
    pub capacity: f64,
    /// The strain of a free body, by its value.
    pub expansion: f64,
    /// Its value everywhere at the beginning.
    pub initial: f64,
    /// Where it is put in.
    pub spot: Option<Spot>,
    /// Whether the solution is known: the spot's value itself.
    pub is_known: bool,
    /// What holds at the boundary.
    pub boundaries: Vec<Boundary>,
    /// Steps.
    pub steps: u32,
    /// How long all of them are.
    pub duration: f64,
    /// The blocks.
    pub forest: Forest,
    /// Elements, at most.
    pub most: usize,
    /// The error that it may have at a time by the estimate, relative to all of it, both as roots of integrated squares.
    pub accuracy: f64,
    /// After how many steps the driver is told all values, beside those of the end; nothing if it has no use for any.
    pub every: Option<u32>,
    /// Whether solutions are checked element by element.
    pub is_checked: bool,
    /// Levels of the blocks in the first step.
    pub levels: Vec<u8>,
}

impl Swelling {
    /// Length of a step.
    #[must_use]
    pub fn dt(&self) -> f64 {
        self.duration / f64::from(self.steps)
    }

    /// The spot after so many steps.
    fn spot_after(&self, step: u32) -> Option<Spot> {
        self.spot.map(|spot| spot.after(f64::from(step) * self.dt()))
    }

    /// What is solved for in a step, from 0: the value at its end. A load comes to it from the value before.
    #[must_use]
    pub fn diffusion(&self, body: &Problem, step: u32) -> Problem {
        let spot = self.spot_after(step + 1);
        let known = spot.filter(|_| self.is_known);
        let exact = known.map(|spot| Exact::Spot { spot, capacity: self.capacity });
        let rate = self.capacity / self.dt();
        let source = match (exact, spot) {
            (Some(_), _) => Source::Exact,
            (None, Some(spot)) => Source::Spot(spot),
            (None, None) => Source::Even([0.0; 3]),
        };
        let physics = Physics::Poisson { conductivity: self.conductivity, wind: [0.0; 3], rate };
        Problem {
            physics,
            source,
            exact,
            boundaries: self.boundaries.clone(),
            swelling: None,
            ..body.clone()
        }
    }

    /// The body at the end of a step. A load comes to it from what swells it.
    #[must_use]
    pub fn body(&self, body: &Problem, step: u32) -> Problem {
        let spot = self.spot_after(step + 1).filter(|_| self.is_known);
        let divergence = self.stress(body) / body.physics.of_divergence();
        let exact = spot.map(|spot| Exact::Swollen { spot, divergence });
        Problem { exact, swelling: None, ..body.clone() }
    }

    /// The stress of a body that may not grow, by the value of what swells it.
    #[must_use]
    pub fn stress(&self, body: &Problem) -> f64 {
        let Physics::Elasticity { lambda, mu } = body.physics else { return 0.0 };
        (3.0 * lambda + 2.0 * mu) * self.expansion
    }

    /// Whether nothing can leave but what is said to flow: then all of it can be accounted for.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        use super::problem::Condition::{Fixed, FixedExact};
        !self.boundaries.iter().any(|boundary| matches!(boundary.condition, Fixed(_) | FixedExact))
    }

    /// Area of an element.
    #[must_use]
    pub fn area(&self, level: u8) -> f64 {
        let lattice = &self.forest.lattice;
        (0..2).map(|k| lattice.lengths[k] / (lattice.elements[k] << level) as f64).product()
    }

    /// Values at the nodes of a block at the beginning.
    #[must_use]
    pub fn beginning(&self, block: u32, level: u8) -> Vec<f64> {
        let (along, place, fine) = (self.forest.along(level), self.forest.place(block), self.forest.fine());
        let nodes = (0..=along).flat_map(|y| (0..=along).map(move |x| [x, y]));
        let value = |at| match self.spot.filter(|_| self.is_known) {
            Some(spot) => spot.value(fine.point(self.forest.node(place, level, at))),
            None => self.initial,
        };
        nodes.map(value).collect()
    }

    /// The lowest level of each block in a step: near a spot, which a coarse mesh would not see.
    #[must_use]
    pub fn floors(&self, step: u32) -> Vec<u8> {
        let (Some(from), Some(to)) = (self.spot_after(step), self.spot_after(step + 1)) else {
            return vec![0; self.forest.blocks() as usize];
        };
        let lattice = &self.forest.lattice;
        let length = |k: usize| lattice.lengths[k] / lattice.elements[k] as f64;
        let needed =
            (length(0).max(length(1)) / from.radius).log2().ceil().clamp(0.0, self.forest.finest.into());
        let floor = |block: u32| {
            let place = self.forest.place(block);
            let is_near = (0..2).all(|k| {
                let side = length(k) * self.forest.side as f64;
                let (low, high) = (place[k] as f64 * side, (place[k] + 1) as f64 * side);
                let reach = REACH * from.radius;
                from.at[k].max(to.at[k]) + reach > low && from.at[k].min(to.at[k]) - reach < high
            });
            if is_near { needed as u8 } else { 0 }
        };
        (0..self.forest.blocks()).map(floor).collect()
    }

    /// Levels of a step by what came of the one before: the error of each block and the values of all, squared and integrated.
    #[must_use]
    pub fn chosen(&self, step: u32, levels: &[u8], errors: &[f64], square: f64) -> Vec<u8> {
        let allowed = self.accuracy * self.accuracy * square / levels.len() as f64;
        let floors = self.floors(step);
        chosen(&self.forest, Judged { levels, errors, floors: &floors, allowed, most: self.most })
    }

    /// Whether there may be as many elements as near the spot have to be, wherever it goes.
    ///
    /// # Errors
    /// How many there must be, and how to mend it.
    pub fn check_most(&self) -> Result<(), InputError> {
        let mut all: Vec<Vec<u8>> = (0..self.steps).map(|step| self.floors(step)).collect();
        all.dedup();
        let count = |floors: &Vec<u8>| self.forest.elements(&graded(&self.forest, floors));
        match all.iter().map(count).max().filter(|count| *count > self.most) {
            Some(count) => says(&format!(
                "--most-elements {}: near the spot elements are as long as its radius, which takes {count}: give as many, or \
                 fewer --levels",
                self.most
            )),
            None => Ok(()),
        }
    }

    /// The elements of each block in the first step.
    #[must_use]
    pub fn elements(&self) -> Vec<u64> {
        self.levels.iter().map(|&level| self.forest.along(level).pow(2) as u64).collect()
    }

    /// What each block costs in the first step, in elements.
    #[must_use]
    pub fn costs(&self) -> Vec<u64> {
        let exchanges = (0..).map(|block| self.forest.around(block).len() as u64);
        self.elements().into_iter().zip(exchanges).map(|(own, with)| own + EXCHANGE * with).collect()
    }

    /// Iterations for displacements with as many elements as may be that take about as long as all of a run will.
    #[must_use]
    pub fn iterations_guess(&self, body: &Problem) -> f64 {
        let elements = self.elements().iter().sum::<u64>() as f64;
        let of_step =
            Problem { swelling: None, ..body.clone() }.iterations_guess().min(GUESS * elements.sqrt());
        of_step.max(1.0) * f64::from(self.steps) * elements / self.most as f64
    }

    /// Levels of the first step, by the values at the beginning.
    #[must_use]
    pub fn first_levels(&self) -> Vec<u8> {
        let mut levels = vec![0; self.forest.blocks() as usize];
        for _ in 0..=self.forest.finest {
            let (mut errors, mut square) = (Vec::new(), 0.0);
            for (block, &level) in (0..).zip(&levels) {
                let (values, along) = (self.beginning(block, level), self.forest.along(level));
                errors.push(error_squared(&values, along, self.area(level)));
                square += self.area(level) * values.iter().map(|value| value * value).sum::<f64>();
            }
            levels = self.chosen(0, &levels, &errors, square);
        }
        levels
    }
}

impl Physics {
    /// The stress of a strain along one axis where the others may not give way, by that strain.
    fn of_divergence(&self) -> f64 {
        let Self::Elasticity { lambda, mu } = *self else { return 1.0 };
        lambda + 2.0 * mu
    }
}
