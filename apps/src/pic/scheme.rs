//! Which scheme costs less: the cost model of the adaptive thesis (M. V. Nibhanupudi, Rensselaer Polytechnic Institute, 1998),
//! section 3.3, with figures that are measured where there are PEs to measure.

use super::division::crossing_part;
use super::field::Solver;
use super::problem::{Problem, Scheme};
use chares::{Barrier, Bulk, Callback, Chare, Ctx, Cx as _, Driver, Entry, RunError};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Columns that border on a region, as the thesis counts them.
const GUARDS: f64 = 3.0;
/// Words of a point of the grid, and of a particle.
const GRID_WORDS: f64 = 1.0;
const PARTICLE_WORDS: f64 = 4.0;
/// How often each figure is measured; the least counts.
const TRIALS: usize = 3;

/// What a step depends on. All costs in the same unit, such as seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Processors (p).
    pub processors: f64,
    /// Particles (N_p).
    pub particles: f64,
    /// Points of the grid (N_g).
    pub points: f64,
    /// The part of all particles that cross a plane in a step (c_pm).
    pub crossing: f64,
    /// Of a particle and step (c_1).
    pub particle: f64,
    /// Of the field, for each point and binary digit of their number (c_2).
    pub solve: f64,
    /// Of adding two sums.
    pub addition: f64,
    /// Of a superstep, for each binary digit of the number of processors (L_0).
    pub latency: f64,
    /// Of a word on its way, for each processor (g_0).
    pub word: f64,
}

impl Costs {
    /// Of a step in which particles are redistributed (equation 3.3).
    #[must_use]
    pub fn regions(&self) -> f64 {
        let (p, points, log_p) = (self.processors, self.points, self.processors.log2());
        let guards = GUARDS * points.sqrt();
        self.alone()
            + self.addition * guards * (p - 1.0)
            + self.word * (points / p + guards + points) * GRID_WORDS * (p - 1.0)
            + self.word * self.particles * PARTICLE_WORDS * self.crossing * p
            + 3.0 * self.latency * log_p
    }

    /// Of a step in which they stay (equation 3.4).
    #[must_use]
    pub fn fixed(&self) -> f64 {
        let (p, points, log_p) = (self.processors, self.points, self.processors.log2());
        self.alone()
            + self.addition * points * log_p
            + 2.0 * self.word * points * GRID_WORDS * (p - 1.0)
            + self.latency * (log_p * log_p + log_p)
    }

    /// Of the particles and the field.
    fn alone(&self) -> f64 {
        self.particle * self.particles / self.processors + self.solve * self.points * self.points.log2()
    }

    /// The scheme that costs less (equation 3.5).
    #[must_use]
    pub fn cheaper(&self) -> Scheme {
        if self.fixed() > self.regions() { Scheme::Regions } else { Scheme::Fixed }
    }

    /// Particles for each point of the grid up to which, of many processors, it is worth it to redistribute them.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        GRID_WORDS / (PARTICLE_WORDS * self.crossing)
    }

    /// Those of a problem, of which nothing is measured yet.
    #[must_use]
    pub fn of(problem: &Problem, processors: usize) -> Self {
        Self {
            processors: processors as f64,
            particles: problem.particles() as f64,
            points: problem.grid() as f64,
            crossing: crossing_part(problem),
            particle: 0.0,
            solve: 0.0,
            addition: 0.0,
            latency: 0.0,
            word: 0.0,
        }
    }

    /// With what the field costs here, in seconds.
    #[must_use]
    pub fn with_field(mut self, problem: &Problem) -> Self {
        let mut solver = Solver::new(problem);
        let mut sums = vec![0i64; problem.grid()];
        let charge: Vec<i64> = (0..problem.grid() as i64).map(|point| point % 7).collect();
        let solve = least(|| drop(std::hint::black_box(solver.solve(&charge))));
        let add = least(|| {
            std::hint::black_box(&mut sums).iter_mut().zip(&charge).for_each(|(sum, of)| *sum += of)
        });
        self.solve = solve / (self.points * self.points.log2());
        self.addition = add / self.points;
        self
    }
}

/// The least time of a few trials, in seconds.
fn least(mut trial: impl FnMut()) -> f64 {
    let seconds = |trial: &mut dyn FnMut()| {
        let begun = Instant::now();
        trial();
        begun.elapsed().as_secs_f64()
    };
    (0..TRIALS).map(|_| seconds(&mut trial)).fold(f64::INFINITY, f64::min)
}

/// An element on each PE that hears of broadcasts and says so.
#[derive(Serialize, Deserialize)]
pub struct Probe;

/// Say that this has come.
#[derive(Clone, Serialize, Deserialize)]
pub struct Ping {
    words: Bulk<f64>,
    heard: Callback<Barrier>,
}

chares::entries!(Probe: Ping; reduces Barrier);

impl Chare for Probe {
    type Index = u32;
    type Init = ();

    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self
    }
}

impl Entry<Ping> for Probe {
    fn receive(&mut self, Ping { heard, .. }: Ping, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(Barrier, heard);
    }
}

/// What a step costs on the machines of this run: measured, if there are several PEs.
///
/// # Errors
/// What ends a run.
pub(super) fn measured(main: &mut Driver, problem: &Problem) -> Result<Costs, RunError> {
    let processors = main.machines().rates().len();
    let costs = Costs::of(problem, processors);
    if processors < 2 {
        return Ok(costs);
    }
    main.phase("measuring what the schemes cost", 0, 0);
    let probes = main.group::<Probe>(());
    let rates = main.machines().rates();
    let mean = rates.iter().sum::<f64>() / processors as f64;
    let is_measured = main.machines().is_measured;
    // A run that goes on does not measure again, and counts places for results as it did then.
    let (heard, all) = main.pending();
    main.once("what the schemes cost", |main| {
        let particle = if is_measured { 1.0 / mean } else { least_of_particles(problem) };
        let mut ping = |words: usize| -> Result<f64, RunError> {
            let mut least = f64::INFINITY;
            for _ in 0..TRIALS {
                let begun = Instant::now();
                probes.broadcast(main, Ping { words: Bulk::zeros(words), heard });
                all.wait(main)?;
                least = least.min(begun.elapsed().as_secs_f64());
            }
            Ok(least)
        };
        let (empty, full) = (ping(0)?, ping(problem.grid())?);
        let p = costs.processors;
        let latency = empty / (2.0 * p.log2());
        let word = (full - empty).max(0.0) / (costs.points * (p - 1.0));
        Ok(Costs { particle, latency, word, ..costs.with_field(problem) })
    })
}

/// Seconds of a particle and step here, where nobody has measured the PEs.
fn least_of_particles(problem: &Problem) -> f64 {
    let mut kernel = super::kernel::Kernel::new(problem);
    let mut work = 1.0;
    let seconds = least(|| work = kernel.call());
    seconds / work
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The case that the thesis plots; its costs of words and of supersteps are not stated.
    fn plotted(processors: f64, crossing: f64) -> Costs {
        Costs {
            processors,
            particles: 3_571_712.0,
            points: 32_768.0,
            crossing,
            particle: 458.0,
            solve: 33.0,
            addition: 1.0,
            latency: 1e4,
            word: 62.0,
        }
    }

    #[test]
    fn the_thresholds_are_those_of_the_thesis() {
        assert!((plotted(4.0, 0.002).threshold() - 125.0).abs() < 1e-9);
        assert!((plotted(4.0, 0.0009).threshold() - 277.777_777).abs() < 1e-5);
        let costs = plotted(1000.0, 0.0009);
        assert_eq!((costs.particles / costs.points, costs.cheaper()), (109.0, Scheme::Regions));
        // With more particles for each point than the threshold of many processors they stay.
        let more = Costs { particles: 400.0 * costs.points, ..costs };
        assert_eq!(more.cheaper(), Scheme::Fixed);
    }

    #[test]
    fn the_curve_of_fixed_particles_is_lowest_at_20_processors() {
        let cost = |p: &i32| plotted(f64::from(*p), 0.0009).fixed();
        let best = (2..64).min_by(|one, other| cost(one).total_cmp(&cost(other)));
        assert_eq!(best, Some(20));
    }

    #[test]
    fn what_two_schemes_differ_in_is_what_the_rule_says() {
        let costs = plotted(8.0, 0.0009);
        let (p, points, root) = (8.0, 32_768.0, 32_768f64.sqrt());
        let of_fixed = points * 3.0 + 1e4 * 9.0 + 62.0 * points * 7.0;
        let of_regions = 62.0 * (points / p + 3.0 * root) * 7.0
            + 3.0 * root * 7.0
            + 62.0 * 3_571_712.0 * 4.0 * 0.0009 * p
            + 2.0 * 1e4 * 3.0;
        let difference = costs.fixed() - costs.regions();
        assert!((difference / (of_fixed - of_regions) - 1.0).abs() < 1e-9);
    }
}
