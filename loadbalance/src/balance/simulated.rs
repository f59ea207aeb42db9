//! A machine in virtual time that computes step after step, to try [`Auto`] with: its PEs change their speeds, its chares
//! their loads, and all measurements are noisy. A step ends with its last PE. What a chare did is known when it is done, and
//! measurements come when they come, in the middle of a step as well. To send and to receive chares takes processor time, as
//! computing does.

use super::Move;
use super::auto::transfer::PROCESSORS;
use super::auto::{Answer, Auto, Sample};
use super::patterns::{Course, Pattern};
use super::random::Random;
use super::span::Span;
use super::view::{Chare, Pe, View, ViewError};
use crate::plan::Part;
use std::collections::BTreeMap;

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
    /// Bytes per second between nodes that `auto` is told; a PE of the fastest at the beginning sends [`BYTES_PER_S`].
    pub told_bytes_per_s: f64,
    /// The standard deviation of each speed in each step, and of each measured load, as a part of it.
    pub noise: f64,
    /// Seconds after which a speed has forgotten what it was: 0 if that of each step has nothing to do with the last one.
    pub noise_lasts_s: f64,
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
            told_bytes_per_s: BYTES_PER_S,
            noise: 0.02,
            noise_lasts_s: 0.0,
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
    /// Moves of chares back to a PE that they had left in the last [`RECENT_S`] seconds.
    pub returns: u64,
    /// When chares moved last, in seconds.
    pub last_s: f64,
}

/// Who comes back after so many seconds does not come back at once.
pub const RECENT_S: f64 = 10.0;

impl Run {
    /// The time over the ideal one; 1 is perfect.
    #[must_use]
    pub fn over_ideal(&self) -> f64 {
        self.seconds / self.ideal_s
    }
}

/// Bytes per second that a PE of the fastest at the beginning sends, and receives at the same time.
pub const BYTES_PER_S: f64 = 1e8;
/// Seconds that a chare is away besides those of its bytes.
const AWAY_S: f64 = 1e-3;

/// Runs it, with moves if `auto` says so.
///
/// # Errors
/// If the settings make no sense.
pub fn run(settings: &Simulated, mut auto: Option<&mut Auto>) -> Result<Run, ViewError> {
    let mut running = Running::new(settings);
    for step in 1..=settings.steps {
        running.step();
        let Some(auto) = auto.as_deref_mut() else { continue };
        running.watch(auto, step)?;
        // Until they have come, views show moving chares where they were.
        let moves = std::mem::take(&mut running.ordered);
        running.send(&moves);
        running.watch(auto, step)?;
        running.receive(&moves);
    }
    running.run.seconds = running.now_s;
    running.run.ideal_s = running.ideal_s();
    Ok(running.run)
}

/// A chare that has done its work of a step.
#[derive(Clone, Copy)]
struct Done {
    end_s: f64,
    busy_s: f64,
    pe: u32,
    chare: u32,
    work: f64,
    measured: f64,
}

struct Running<'a> {
    settings: &'a Simulated,
    random: Random,
    courses: Vec<Course>,
    owners: Vec<u32>,
    now_s: f64,
    sampled_s: f64,
    /// What was done and has not been measured, by time.
    done: Vec<Done>,
    span: Span,
    /// The work of chares in the span.
    loads: Vec<f64>,
    /// The speeds that were measured last.
    speeds: Vec<f64>,
    /// By how much speeds differ from what they should be, in standard deviations.
    noise: Vec<f64>,
    /// Moves that have not been made.
    ordered: Vec<Move>,
    left: BTreeMap<(u32, u32), f64>,
    /// PEs that are to compute for nothing.
    asked: Vec<u32>,
    total: f64,
    run: Run,
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
            done: Vec::new(),
            span: Span::default(),
            loads: vec![0.0; settings.chares as usize],
            speeds: settings.parts.iter().map(|part| part.speed).collect(),
            noise: vec![0.0; pes],
            ordered: Vec::new(),
            left: BTreeMap::new(),
            asked: Vec::new(),
            total: 0.0,
            run: Run::default(),
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
        self.sway();
        let mut ends_s = vec![self.now_s; self.speeds.len()];
        for chare in 0..self.settings.chares {
            let of_step = self.courses[chare as usize].next().unwrap_or(1.0);
            let work = if self.settings.pattern.is_some() { of_step * unit } else { unit };
            let measured = work * (1.0 + self.settings.noise * self.random.normal());
            let pe = self.owners[chare as usize];
            let begin_s = ends_s[pe as usize];
            let end_s = self.end_of(pe, begin_s, work);
            ends_s[pe as usize] = end_s;
            self.done.push(Done { end_s, busy_s: end_s - begin_s, pe, chare, work, measured });
            self.total += work;
        }
        self.now_s = ends_s.into_iter().fold(self.now_s, f64::max);
    }

    /// Speeds go a bit up and down.
    fn sway(&mut self) {
        let lasts_s = self.settings.noise_lasts_s;
        let kept = if lasts_s > 0.0 { f64::exp(-self.settings.step_s / lasts_s) } else { 0.0 };
        for noise in &mut self.noise {
            *noise = kept * *noise + (1.0 - kept * kept).sqrt() * self.random.normal();
        }
    }

    /// When a PE that begins a piece of work at that time has done it.
    fn end_of(&self, pe: u32, begin_s: f64, work: f64) -> f64 {
        let noise = (1.0 + self.settings.noise * self.noise[pe as usize]).max(0.1);
        let (mut now_s, mut left) = (begin_s, work);
        loop {
            let (speed, until_s) = self.speed(pe, now_s);
            let end_s = now_s + left / (speed * noise);
            if end_s <= until_s {
                return end_s;
            }
            left -= (until_s - now_s) * speed * noise;
            now_s = until_s;
        }
    }

    /// What is measured at the next time to do so.
    fn sample(&mut self) -> View {
        let since_s = self.settings.sample_s;
        self.sampled_s += since_s;
        let (done, later) = self.done.drain(..).partition(|done| done.end_s <= self.sampled_s);
        self.done = later;
        let done: Vec<Done> = done;
        let mut of_pe = vec![(0.0, 0.0); self.speeds.len()];
        let mut of_chare = vec![0.0; self.loads.len()];
        for one in done {
            let (work, busy_s) = &mut of_pe[one.pe as usize];
            *work += one.work;
            *busy_s += one.busy_s;
            of_chare[one.chare as usize] += one.measured.max(0.0);
        }
        for (speed, (work, busy_s)) in self.speeds.iter_mut().zip(of_pe).filter(|(_, of)| of.1 > 0.0) {
            *speed = work / busy_s;
        }
        let heard = of_chare.iter().filter(|work| **work > 0.0).count();
        let kept = self.span.passes(since_s, heard, self.loads.len());
        self.loads.iter_mut().zip(of_chare).for_each(|(load, now)| *load = *load * kept + now);
        let mut view = self.view();
        for pe in std::mem::take(&mut self.asked) {
            let noise = 1.0 + self.settings.noise * self.random.normal();
            view.pes[pe as usize].probed = Some(self.speed(pe, self.sampled_s).0 * noise.max(0.1));
        }
        view
    }

    /// Loads are work in a second.
    fn view(&self) -> View {
        let pe = |(part, speed): (&Part, &f64)| Pe::from(Part { node: part.node, speed: *speed });
        let chare = |(pe, load): (&u32, &f64)| Chare {
            pe: *pe,
            load: load / self.span.seconds(),
            bytes: self.settings.bytes,
            ..Chare::default()
        };
        View {
            pes: self.settings.parts.iter().zip(&self.speeds).map(pe).collect(),
            chares: self.owners.iter().zip(&self.loads).map(chare).collect(),
            ..View::default()
        }
    }

    /// Has `auto` look at all measurements up to now, after so many steps.
    fn watch(&mut self, auto: &mut Auto, steps: u32) -> Result<(), ViewError> {
        while self.sampled_s + self.settings.sample_s <= self.now_s {
            let view = self.sample();
            let now_s = self.sampled_s;
            let sample = Sample {
                now_s,
                view: &view,
                gone: &[],
                span_s: self.span.seconds(),
                left_s: Some(now_s * f64::from(self.settings.steps - steps) / f64::from(steps)),
                left_work: None,
                bytes_per_s: self.settings.told_bytes_per_s,
                away_s: AWAY_S,
                decide_s: 0.0,
            };
            let answer = auto.observe(&sample)?;
            self.asked = auto.pes_to_probe();
            if let Answer::Move(decision, _) = answer {
                self.ordered.extend(decision.moves);
                self.run.decisions += 1;
            }
        }
        Ok(())
    }

    /// Sends chares while all wait: PEs send and receive at the same time, each one chare after the other, as fast as they
    /// compute and as their line carries.
    fn send(&mut self, moves: &[Move]) {
        let mut of_pe = vec![[0u32; 2]; self.speeds.len()];
        for step in moves {
            of_pe[step.from as usize][0] += 1;
            of_pe[step.to as usize][1] += 1;
        }
        let fastest = self.settings.parts.iter().map(|part| part.speed).fold(0.0, f64::max);
        let end_of = |(pe, [out, come]): (u32, &[u32; 2])| {
            let on_line_s = f64::from(*out.max(come)) * self.settings.bytes as f64 / BYTES_PER_S;
            let computed_s = self.end_of(pe, self.now_s, on_line_s * fastest / PROCESSORS);
            computed_s.max(self.now_s + on_line_s) + f64::from(out + come) * AWAY_S
        };
        self.now_s = (0..).zip(&of_pe).map(end_of).fold(self.now_s, f64::max);
    }

    /// The chares have come.
    fn receive(&mut self, moves: &[Move]) {
        for Move { chare, from, to } in moves.iter().copied() {
            self.owners[chare as usize] = to;
            let was_there = self.left.get(&(chare, to)).is_some_and(|s| self.now_s - s < RECENT_S);
            self.run.returns += u64::from(was_there);
            self.run.moves += 1;
            self.run.last_s = self.now_s;
            self.left.insert((chare, from), self.now_s);
        }
    }

    fn ideal_s(&self) -> f64 {
        let mut times: Vec<f64> = self.settings.changes.iter().map(|change| change.at_s).collect();
        times.push(f64::INFINITY);
        let (mut now_s, mut left) = (0.0, self.total);
        for next_s in times {
            let speed: f64 = (0..self.speeds.len() as u32).map(|pe| self.speed(pe, now_s).0).sum();
            if left <= speed * (next_s - now_s) {
                return now_s + left / speed;
            }
            left -= speed * (next_s - now_s);
            now_s = next_s;
        }
        now_s
    }
}
