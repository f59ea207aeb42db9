//! A machine in virtual time that computes step after step, to try [`Auto`] with: its PEs change their speeds, its chares
//! their loads, and all measurements are noisy. A step ends with its last PE.

use super::auto::{Answer, Auto, Sample};
use super::patterns::{Course, Pattern};
use super::random::Random;
use super::view::{Chare, Pe, View, ViewError};
use crate::plan::Part;

/// A PE that delivers a part of its speed from one time on until the next such entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Seconds since the run began.
    pub at_s: f64,
    /// The PE.
    pub pe: u32,
    /// Its speed from then on.
    pub speed: f64,
}

/// What is run, and where.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The PEs as the run begins.
    pub parts: Vec<Part>,
    /// How speeds change, by time.
    pub changes: Vec<Change>,
    /// Steps of the program.
    pub steps: u32,
    /// Seconds that a step would take if it were balanced on the PEs of the beginning.
    pub step_s: f64,
    /// How many chares there are; each PE begins with as many neighbours as its speed earns.
    pub chares: u32,
    /// How their loads change.
    pub pattern: Option<Pattern>,
    /// Bytes of each.
    pub bytes: u64,
    /// The standard deviation of each speed in each step, and of each measured load, as a part of it.
    pub noise: f64,
    /// Seconds between measurements.
    pub sample_s: f64,
    /// Of all random choices.
    pub seed: u64,
}

impl Simulated {
    /// A program of a minute on these PEs with 32 chares for each, measured four times a second with a noise of two
    /// hundredths.
    #[must_use]
    pub fn a_minute(speeds: &[f64], seed: u64) -> Self {
        Self {
            parts: Part::each(speeds),
            changes: Vec::new(),
            steps: 600,
            step_s: 0.1,
            chares: 32 * speeds.len() as u32,
            pattern: None,
            bytes: 1 << 20,
            noise: 0.02,
            sample_s: 0.25,
            seed,
        }
    }
}

/// How a run went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Seconds that it took.
    pub seconds: f64,
    /// Seconds that its work takes at the speed that was there.
    pub ideal_s: f64,
    /// Chares that moved.
    pub moves: u64,
    /// How often some did.
    pub decisions: u32,
}

impl Run {
    /// The time over the ideal one; 1 is perfect.
    #[must_use]
    pub fn over_ideal(&self) -> f64 {
        self.seconds / self.ideal_s
    }
}

/// Bytes per second between nodes, and seconds that a chare is away besides those of its bytes.
const BYTES_PER_S: f64 = 1e8;
const AWAY_S: f64 = 1e-3;

/// Runs it, with moves if `auto` says so.
///
/// # Errors
/// If the settings make no sense.
pub fn run(settings: &Simulated, mut auto: Option<&mut Auto>) -> Result<Run, ViewError> {
    let mut running = Running::new(settings);
    let mut run = Run::default();
    for step in 0..settings.steps {
        running.step();
        let Some(auto) = auto.as_deref_mut() else { continue };
        if running.now_s - running.sampled_s < settings.sample_s {
            continue;
        }
        let left = f64::from(settings.steps - step - 1) / f64::from(step + 1);
        let left_s = Some(running.now_s * left);
        let view = running.sample();
        let sample = Sample {
            now_s: running.now_s,
            view: &view,
            left_s,
            bytes_per_s: BYTES_PER_S,
            away_s: AWAY_S,
            decide_s: 0.0,
        };
        if let Answer::Move(decision, _) = auto.observe(&sample)? {
            running.carry_out(&decision.moves);
            run.moves += decision.moves.len() as u64;
            run.decisions += 1;
        }
    }
    run.seconds = running.now_s;
    run.ideal_s = running.ideal_s();
    Ok(run)
}

struct Running<'a> {
    settings: &'a Simulated,
    random: Random,
    courses: Vec<Course>,
    owners: Vec<u32>,
    now_s: f64,
    sampled_s: f64,
    /// Since the last sample: work and busy seconds of PEs, work of chares.
    done: Vec<f64>,
    busy_s: Vec<f64>,
    loads: Vec<f64>,
    /// The speeds that were measured last.
    speeds: Vec<f64>,
    total: f64,
}

impl<'a> Running<'a> {
    fn new(settings: &'a Simulated) -> Self {
        let pes = settings.parts.len();
        let total: f64 = settings.parts.iter().map(|part| part.speed).sum();
        let mut owners = Vec::new();
        let mut before = 0.0;
        for (pe, part) in (0..).zip(&settings.parts) {
            before += part.speed;
            let end = (f64::from(settings.chares) * before / total).round() as usize;
            owners.resize(end.min(settings.chares as usize), pe);
        }
        owners.resize(settings.chares as usize, pes as u32 - 1);
        let pattern =
            |chare| settings.pattern.unwrap_or(Pattern::Walk).course(chare, settings.chares, settings.seed);
        Self {
            random: Random::new(settings.seed),
            courses: (0..settings.chares).map(pattern).collect(),
            owners,
            now_s: 0.0,
            sampled_s: 0.0,
            done: vec![0.0; pes],
            busy_s: vec![0.0; pes],
            loads: vec![0.0; settings.chares as usize],
            speeds: settings.parts.iter().map(|part| part.speed).collect(),
            total: 0.0,
            settings,
        }
    }

    /// The speed of a PE at a time, and when it changes next.
    fn speed(&self, pe: u32, now_s: f64) -> (f64, f64) {
        let of_pe = || self.settings.changes.iter().filter(|change| change.pe == pe);
        let speed = of_pe().rfind(|change| change.at_s <= now_s);
        let next = of_pe().find(|change| change.at_s > now_s);
        let first = self.settings.parts[pe as usize].speed;
        (speed.map_or(first, |change| change.speed), next.map_or(f64::INFINITY, |change| change.at_s))
    }

    fn step(&mut self) {
        let speed: f64 = self.settings.parts.iter().map(|part| part.speed).sum();
        let unit = self.settings.step_s * speed / f64::from(self.settings.chares);
        let mut work = vec![0.0; self.done.len()];
        for (chare, course) in self.courses.iter_mut().enumerate() {
            let load = match self.settings.pattern {
                Some(_) => course.next().unwrap_or(1.0) * unit,
                None => unit,
            };
            work[self.owners[chare] as usize] += load;
            self.loads[chare] += load * (1.0 + self.settings.noise * self.random.normal());
        }
        let mut end_s = self.now_s;
        for (pe, work) in (0..).zip(work) {
            let noise = (1.0 + self.settings.noise * self.random.normal()).max(0.1);
            let (mut now_s, mut left) = (self.now_s, work);
            while left > 0.0 {
                let (speed, until_s) = self.speed(pe, now_s);
                let here_s = (left / (speed * noise)).min(until_s - now_s);
                left = if now_s + here_s < until_s { 0.0 } else { left - here_s * speed * noise };
                now_s += here_s;
            }
            self.done[pe as usize] += work;
            self.busy_s[pe as usize] += now_s - self.now_s;
            self.total += work;
            end_s = end_s.max(now_s);
        }
        self.now_s = end_s;
    }

    /// What is measured since the last sample.
    fn sample(&mut self) -> View {
        for (pe, speed) in self.speeds.iter_mut().enumerate() {
            if self.busy_s[pe] > 0.0 {
                *speed = self.done[pe] / self.busy_s[pe];
            }
        }
        let pe = |(part, speed): (&Part, &f64)| Pe::from(Part { node: part.node, speed: *speed });
        let chare = |(pe, load): (&u32, &f64)| Chare {
            pe: *pe,
            load: load.max(0.0),
            bytes: self.settings.bytes,
            ..Chare::default()
        };
        let view = View {
            pes: self.settings.parts.iter().zip(&self.speeds).map(pe).collect(),
            chares: self.owners.iter().zip(&self.loads).map(chare).collect(),
            ..View::default()
        };
        self.sampled_s = self.now_s;
        self.done.fill(0.0);
        self.busy_s.fill(0.0);
        self.loads.fill(0.0);
        view
    }

    /// Moves chares while all wait: PEs send and receive at the same time, each one chare after the other.
    fn carry_out(&mut self, moves: &[super::Move]) {
        let mut of_pe = vec![[0u32; 2]; self.done.len()];
        for step in moves {
            self.owners[step.chare as usize] = step.to;
            of_pe[step.from as usize][0] += 1;
            of_pe[step.to as usize][1] += 1;
        }
        let of_chare_s = self.settings.bytes as f64 / BYTES_PER_S;
        let of_pe_s =
            |[out, come]: &[u32; 2]| f64::from(*out.max(come)) * of_chare_s + f64::from(out + come) * AWAY_S;
        self.now_s += of_pe.iter().map(of_pe_s).fold(0.0, f64::max);
    }

    fn ideal_s(&self) -> f64 {
        let mut times: Vec<f64> = self.settings.changes.iter().map(|change| change.at_s).collect();
        times.push(f64::INFINITY);
        let (mut now_s, mut left) = (0.0, self.total);
        for next_s in times {
            let speed: f64 = (0..self.done.len() as u32).map(|pe| self.speed(pe, now_s).0).sum();
            if left <= speed * (next_s - now_s) {
                return now_s + left / speed;
            }
            left -= speed * (next_s - now_s);
            now_s = next_s;
        }
        now_s
    }
}
