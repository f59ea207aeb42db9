//! `auto`: whether to balance now, and by which balancer. It is told measurements and the time, and keeps what it needs;
//! it asks nobody and waits for nothing.
//!
//! Three questions stand between a measurement and a move:
//!
//! 1. *Is it real?* Each speed and each load has its own noise, seen in its own history ([`Level`]). Only an imbalance that
//!    the noise of all PEs cannot explain counts, and only if one measurement confirms another.
//! 2. *Does it pay?* A balancer predicts what its moves would gain in each second. They cost the time that their bytes take
//!    from or to the slowest node, as earlier moves have shown it, and the time that chares are away. What is left of the run
//!    must bring more.
//! 3. *Will it last?* Nobody knows. The moves are made at once if they bring much more than they cost should it last as long
//!    as what was before did on average ([`Lost`]). If not, then as with skis that can be rented or bought: when what
//!    was lost by not making them has reached what they cost meanwhile. In that way never more than twice the best is paid, whatever comes.
//!
//! After each decision it compares what the run got with what was expected ([`Record`]): whether its chares do more work in a
//! second, whatever loads and speeds promise. If they do not, it expects less of the next decision. If they do less, because
//! chares that were put elsewhere have others wait, those go back, and for a while nothing moves for so little.

mod answer;
mod level;
mod listed;
mod look;
mod lost;
mod outcome;
mod record;
mod sample;
mod settings;
mod speed;
#[cfg(test)]
mod tests;
pub(super) mod transfer;

pub use answer::{Answer, Why};
pub use level::Level;
pub use look::{Look, Weighed};
pub use lost::Lost;
pub use record::Record;
pub use sample::Sample;
pub use settings::Settings;

use super::communication::Communication;
use super::decision::Decision;
use super::exchange::Exchange;
use super::greedy::GreedyRefine;
use super::hierarchical::Hierarchical;
use super::refine::Refine;
use super::view::{Times, View, ViewError};
use super::{Balancer, memory};
use listed::Listed;
use outcome::{Loss, Outcome};
use speed::Speed;
use transfer::Transfer;

/// Decides when to balance, and by which balancer.
#[derive(Clone, Debug)]
pub struct Auto {
    settings: Settings,
    speeds: Vec<Speed>,
    /// The work of each PE that cannot move.
    background: Vec<Level>,
    /// The part of the work of all that each chare does.
    shares: Vec<Level>,
    /// Until when what is measured of each chare is about a time when it was away.
    away_s: Vec<f64>,
    /// Over how long the work of the last sample was measured.
    span_s: f64,
    /// When the first measurement was taken, and when the last one.
    began_s: Option<f64>,
    last_s: f64,
    /// What was lost since an imbalance was seen first, and in how many more samples it was seen than not.
    lost: Lost,
    seen: u32,
    outcome: Outcome,
    transfer: Transfer,
    /// Moves that were decided last, while they are not seen to have been made; and when that was.
    pending: Vec<super::Move>,
    decided_s: f64,
    /// A chare that was sent to a PE to try it, and how often that has been measured.
    tried: Option<(super::Move, u32)>,
    records: Vec<Record>,
    look: Look,
}

impl Auto {
    /// A controller that knows nothing yet.
    #[must_use]
    pub const fn new(settings: Settings) -> Self {
        Self {
            settings,
            speeds: Vec::new(),
            background: Vec::new(),
            shares: Vec::new(),
            away_s: Vec::new(),
            span_s: 0.0,
            began_s: None,
            last_s: 0.0,
            lost: Lost { seconds: 0.0, parts: 0.0 },
            seen: 0,
            outcome: Outcome::new(),
            transfer: Transfer::new(),
            pending: Vec::new(),
            decided_s: 0.0,
            tried: None,
            records: Vec::new(),
            look: Look { imbalance: 1.0, noise: 0.0, pes: Vec::new(), weighed: None },
        }
    }

    /// What the last measurement showed that was enough to judge by.
    #[must_use]
    pub const fn look(&self) -> &Look {
        &self.look
    }

    /// All decisions to move so far, with what came of them.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The PEs that are to compute for nothing for a moment, so that the next view says how fast they are: there is nothing
    /// else there that would show it.
    pub fn pes_to_probe(&mut self) -> Vec<u32> {
        let now_s = self.last_s;
        (0..).zip(&mut self.speeds).filter_map(|(pe, speed)| speed.asks(now_s).then_some(pe)).collect()
    }

    /// Takes a measurement and says what to do.
    ///
    /// # Errors
    /// If the view makes no sense.
    pub fn observe(&mut self, sample: &Sample<'_>) -> Result<Answer, ViewError> {
        let checked = sample.view.check()?;
        self.look.weighed = None;
        self.forget(sample.gone);
        let since_s = (sample.now_s - self.last_s).max(0.0);
        self.last_s = sample.now_s;
        self.began_s.get_or_insert(sample.now_s);
        let work: f64 = sample.view.chares.iter().map(|chare| chare.load).sum();
        if work <= 0.0 {
            return Ok(Answer::Wait(Why::NoWork));
        }
        self.learn(sample, work);
        if !self.has_moved(sample) {
            return Ok(Answer::Wait(Why::Moving));
        }
        if let Some(answer) = self.evacuate(sample)? {
            return Ok(answer);
        }
        let loss = self.outcome.observe(sample, checked.times.imbalance(), &self.speeds, &mut self.records);
        if let Some(answer) = self.undo(sample, loss)? {
            return Ok(answer);
        }
        if !self.has_seen_enough() {
            return Ok(Answer::Wait(Why::TooFew));
        }
        let (times, error) = self.expected(sample, since_s, work);
        if let Some(answer) = self.end_trial(sample, &times)? {
            return Ok(answer);
        }
        let unlikely = error * (expected_most(times.work.len()) + self.settings.errors);
        let unlikely = unlikely.max(FINEST).max(self.outcome.futile(sample.now_s));
        (self.look.imbalance, self.look.noise) = (times.imbalance(), unlikely);
        if times.imbalance() - 1.0 <= unlikely {
            (self.lost, self.seen) = (Lost::default(), self.seen.saturating_sub(1));
            return self.try_idle(sample, &times, Why::Even);
        }
        match self.weigh(sample, work, error, since_s)? {
            Answer::Wait(why) => self.try_idle(sample, &times, why),
            moves => Ok(moves),
        }
    }

    /// Nobody waits for chares that have ended, wherever they were to go; the others have other numbers.
    fn forget(&mut self, gone: &[u32]) {
        if gone.is_empty() {
            return;
        }
        self.outcome.forget_moves();
        let is_left = |number: usize| number_without(gone, number as u32).is_some();
        let mut numbers = 0..;
        self.shares.retain(|_| numbers.next().is_some_and(is_left));
        numbers = 0..;
        self.away_s.retain(|_| numbers.next().is_some_and(is_left));
        let renumbered =
            |step: super::Move| number_without(gone, step.chare).map(|chare| super::Move { chare, ..step });
        let moving = self.pending.len();
        self.pending = self.pending.drain(..).filter_map(renumbered).collect();
        if self.pending.len() < moving {
            self.transfer.forget();
        }
        self.tried = self.tried.and_then(|(step, samples)| Some((renumbered(step)?, samples)));
    }

    /// Where there is no other reason to move anything: sends one chare to a PE that has had none for a while, if that may
    /// bring more than it costs.
    fn try_idle(&mut self, sample: &Sample<'_>, times: &Times, why: Why) -> Result<Answer, ViewError> {
        let view = sample.view.check()?;
        let left_s = sample.left_s.unwrap_or(f64::INFINITY);
        for pe in 0..self.speeds.len() {
            if self.speeds[pe].worth_a_try(sample.now_s, 0.0).is_none() || sample.view.pes[pe].is_leaving {
                continue;
            }
            let Some(trial) = Listed::trial(pe as u32, &view, times) else { continue };
            let decision = trial.decide(sample.view)?;
            // In vain, it comes back.
            let cost_s = 2.0 * self.transfer.cost_s(sample.view, &decision.moves, sample);
            let Some(most) = self.speeds[pe].worth_a_try(sample.now_s, TRIALS * cost_s) else { continue };
            let gain = most / (times.total_speed() + most);
            if decision.moves.is_empty() || gain * left_s <= cost_s {
                continue;
            }
            self.speeds[pe].is_tried();
            self.tried = decision.moves.first().map(|step| (*step, 0));
            let trial = Candidate { by: trial.name(), gain: 0.0, cost_s, decision };
            return Ok(self.begin(sample.now_s, sample.view, trial));
        }
        Ok(Answer::Wait(why))
    }

    /// Takes the last moves back if they made the run slower, and what is lost by that is more than what going back costs.
    fn undo(&mut self, sample: &Sample<'_>, loss: Option<Loss>) -> Result<Option<Answer>, ViewError> {
        let Some(Loss { part, moves }) = loss else { return Ok(None) };
        let undo = Listed::undo(moves);
        let decision = undo.decide(sample.view)?;
        let cost_s = self.transfer.cost_s(sample.view, &decision.moves, sample);
        let left_s = sample.left_s.unwrap_or(sample.now_s);
        if decision.moves.is_empty() || part * left_s <= cost_s {
            return Ok(None);
        }
        let back = Candidate { by: undo.name(), gain: 0.0, cost_s, decision };
        Ok(Some(self.begin(sample.now_s, sample.view, back)))
    }

    /// Has a chare come back from a PE that is still so slow that all wait for it. No proof is asked for: it was sent to find out.
    fn end_trial(&mut self, sample: &Sample<'_>, times: &Times) -> Result<Option<Answer>, ViewError> {
        let Some((step, samples)) = &mut self.tried else { return Ok(None) };
        *samples += 1;
        if *samples < SAMPLES_MIN {
            return Ok(None);
        }
        let back = Listed::end_of_trial(*step);
        let (chare, to) = (step.chare as usize, step.to);
        self.tried = None;
        if sample.view.chares.get(chare).is_none_or(|chare| chare.pe != to) || times.last() != Some(to) {
            return Ok(None);
        }
        let decision = back.decide(sample.view)?;
        let cost_s = self.transfer.cost_s(sample.view, &decision.moves, sample);
        self.speeds[to as usize].gives_up();
        let back = Candidate { by: back.name(), gain: 0.0, cost_s, decision };
        Ok(Some(self.begin(sample.now_s, sample.view, back)))
    }

    /// Whether speeds and most of the work have been measured often enough to know what noise is.
    fn has_seen_enough(&self) -> bool {
        let is_known = |level: &&Level| level.samples() >= SAMPLES_MIN;
        let known: f64 = self.shares.iter().filter(is_known).map(Level::value).sum();
        let all: f64 = self.shares.iter().map(Level::value).sum();
        self.speeds.iter().all(|speed| speed.is_known(SAMPLES_MIN)) && known >= MOST * all
    }

    /// Takes what was measured of PEs and chares. While chares are packed, sent and unpacked they do nothing, and those who do
    /// that for them deliver less than they otherwise do: what is measured then says nothing of the time after it.
    fn learn(&mut self, sample: &Sample<'_>, work: f64) {
        let view = sample.view;
        if self.speeds.len() != view.pes.len() {
            self.speeds = vec![Speed::new(); view.pes.len()];
            self.background = vec![Level::new(); view.pes.len()];
        }
        if sample.span_s > LONGER * self.span_s {
            // Of a moment after the start it is only known who happened to run then, which is no noise of what comes later.
            self.shares.fill(Level::new());
            self.background.fill(Level::new());
        }
        self.span_s = sample.span_s;
        self.background.iter_mut().zip(&view.pes).for_each(|(level, pe)| level.observe(pe.background));
        if self.shares.len() > view.chares.len() {
            self.shares.clear();
            self.away_s.clear();
            self.pending.clear();
            self.outcome.forget_moves();
            self.transfer.forget();
        }
        self.shares.resize(view.chares.len(), Level::default());
        self.away_s.resize(view.chares.len(), 0.0);
        let mut is_busy_moving = vec![false; view.pes.len()];
        for step in &self.pending {
            self.away_s[step.chare as usize] = sample.now_s + sample.span_s;
            [step.from, step.to].iter().for_each(|pe| is_busy_moving[*pe as usize] = true);
        }
        let mut has_work = vec![false; view.pes.len()];
        let busy = view.chares.iter().filter(|chare| chare.load > 0.0);
        busy.for_each(|chare| has_work[chare.pe as usize] = true);
        for (pe, speed) in self.speeds.iter_mut().enumerate() {
            if !(has_work[pe] && is_busy_moving[pe]) {
                speed.observe(view.pes[pe].part.speed, has_work[pe], self.last_s);
            }
            if let Some(shown) = view.pes[pe].probed {
                speed.has_shown(shown);
            }
        }
        self.learn_shares(sample, work);
    }

    /// Of chares that have been away it is not known what they would have done: they count with their part of before.
    fn learn_shares(&mut self, sample: &Sample<'_>, work: f64) {
        let is_away = |level: &Level, away_s: f64| level.samples() > 0 && sample.now_s < away_s;
        let (mut part_of_others, mut done) = (1.0, work);
        for ((level, chare), away_s) in self.shares.iter().zip(&sample.view.chares).zip(&self.away_s) {
            if is_away(level, *away_s) {
                (part_of_others, done) = (part_of_others - level.value(), done - chare.load);
            }
        }
        for ((level, chare), away_s) in self.shares.iter_mut().zip(&sample.view.chares).zip(&self.away_s) {
            if !is_away(level, *away_s) && part_of_others > 0.0 && done > 0.0 {
                level.observe(chare.load / done * part_of_others);
            }
        }
    }

    /// Times as they are to be expected, and the largest relative error of one.
    fn expected(&mut self, sample: &Sample<'_>, since_s: f64, work: f64) -> (Times, f64) {
        let view = sample.view;
        let mut times = Times::without_chares(view);
        let mut variance = vec![0.0; times.work.len()];
        for (level, speed) in self.speeds.iter().zip(&mut times.speed) {
            *speed = level.value();
        }
        for (level, (work, variance)) in self.background.iter().zip(times.work.iter_mut().zip(&mut variance))
        {
            (*work, *variance) = (level.forecast().max(0.0), level.error() * level.error());
        }
        for (level, chare) in self.shares.iter().zip(&view.chares) {
            times.work[chare.pe as usize] += level.forecast().max(0.0) * work;
            variance[chare.pe as usize] += (level.error() * work) * (level.error() * work);
        }
        // Loads are told again and again until their span has passed, and their errors with them.
        let told = f64::exp(-2.0 * since_s / sample.span_s.max(f64::MIN_POSITIVE));
        let again = 1.0 / (1.0 - told).max(f64::EPSILON);
        // Errors of PEs that have little to do are not what decides who takes longest.
        let level = times.level();
        let work_error = |pe: usize| (variance[pe] * again).sqrt();
        let error_of = |pe: usize| {
            let speed = self.speeds[pe].error() * (times.work[pe] / times.speed[pe] / level).min(1.0);
            let work = work_error(pe) / (level * times.speed[pe]);
            (speed * speed + work * work).sqrt()
        };
        let error = (0..times.work.len()).map(error_of).fold(0.0, f64::max);
        let of_pe = |pe: usize| [times.speed[pe], self.speeds[pe].error(), times.work[pe], work_error(pe)];
        self.look.pes = (0..times.work.len()).map(of_pe).collect();
        (times, error)
    }

    /// Whether moves pay, now that an imbalance is real.
    fn weigh(
        &mut self,
        sample: &Sample<'_>,
        work: f64,
        error: f64,
        since_s: f64,
    ) -> Result<Answer, ViewError> {
        let view = self.smoothed(sample.view, work);
        let left_s = sample.left_work.and_then(|left| seconds_of(left, &view)).or(sample.left_s);
        let left_s = left_s.unwrap_or_else(|| sample.now_s.max(since_s));
        let Some(best) = self.best(&view, sample, error, left_s)? else {
            return Ok(Answer::Wait(Why::NoBetter));
        };
        self.seen = (self.seen + 1).min(SEEN_MIN);
        self.lost.add(best.gain * since_s, best.cost_s);
        let (moves, gain, cost_s) = (best.decision.moves.len(), best.gain, best.cost_s);
        let (bytes, lost) = (best.decision.bytes, self.lost);
        self.look.weighed = Some(Weighed { moves, bytes, gain, cost_s, lost, left_s });
        if self.seen < SEEN_MIN {
            return Ok(Answer::Wait(Why::Unconfirmed));
        }
        let is_obvious = best.is_sure(OBVIOUS * self.settings.errors * error);
        let likely_s = if is_obvious { best.gain * self.lasted_s(sample.now_s) } else { 0.0 };
        if !self.lost.is_enough(likely_s, best.cost_s) || best.gain * left_s <= best.cost_s {
            return Ok(Answer::Wait(Why::NotWorth));
        }
        self.lost = Lost::default();
        self.note_who_gives_up(&view, &best.decision);
        Ok(self.begin(sample.now_s, &view, best))
    }

    /// For how long things stayed as they were, on average from the beginning to now, until there was something to gain.
    fn lasted_s(&self, now_s: f64) -> f64 {
        let decisions = self.records.iter().filter(|record| record.gain_expected > 0.0).count();
        (now_s - self.began_s.unwrap_or(now_s)) / (decisions + 1) as f64
    }

    /// Notes the PE that ends last if all its chares go.
    fn note_who_gives_up(&mut self, view: &View, decision: &Decision) {
        let Some(pe) = Times::of(view).last() else { return };
        let held = view.chares.iter().filter(|chare| chare.pe == pe && chare.load > 0.0).count();
        let gone = decision.moves.iter().filter(|step| step.from == pe).count();
        if gone >= held && decision.moves.iter().all(|step| step.to != pe) {
            self.speeds[pe as usize].gives_up();
        }
    }

    /// Of all balancers the one whose moves bring most in the time that is left, after what they cost; with communication
    /// in mind if chares talk, and that brings no less and costs little more.
    fn best(
        &self,
        view: &View,
        sample: &Sample<'_>,
        error: f64,
        left_s: f64,
    ) -> Result<Option<Candidate>, ViewError> {
        let tolerance = error.max(FINEST);
        let net_s = |candidate: &Candidate| candidate.gain * left_s - candidate.cost_s;
        let moves = |candidate: &Candidate| candidate.decision.moves.len();
        let mut best: Option<(Candidate, Box<dyn Balancer>)> = None;
        for balancer in self.candidates(view, tolerance) {
            let candidate = self.candidate(balancer.as_ref(), view, sample)?;
            // Who moves more must bring more than what may be an error.
            let is_better = best.as_ref().is_none_or(|(best, _)| {
                let least = if moves(&candidate) > moves(best) { best.gain + tolerance } else { 0.0 };
                net_s(&candidate) > net_s(best) && candidate.gain > least
            });
            if candidate.is_sure(self.settings.errors * error) && is_better {
                best = Some((candidate, balancer));
            }
        }
        let Some((best, first)) = best else { return Ok(None) };
        let aware = Communication { first, tolerance, ..Communication::default() };
        let is_too_large = memory::of(&aware, view) > self.settings.memory_bytes;
        if !self.settings.comm || view.edges.is_empty() || is_too_large {
            return Ok(Some(best));
        }
        let aware = self.candidate(&aware, view, sample)?;
        let is_as_good = aware.gain >= best.gain - tolerance
            && aware.cost_s <= best.cost_s + FINEST * left_s
            && aware.is_sure(self.settings.errors * error);
        Ok(Some(if is_as_good { aware } else { best }))
    }

    fn candidate(
        &self,
        balancer: &dyn Balancer,
        view: &View,
        sample: &Sample<'_>,
    ) -> Result<Candidate, ViewError> {
        let decision = balancer.decide(view)?;
        let gain = self.outcome.trust() * (1.0 - decision.after / decision.before);
        Ok(Candidate {
            by: balancer.name(),
            gain,
            cost_s: self.transfer.cost_s(view, &decision.moves, sample),
            decision,
        })
    }

    /// From those that move least to those that move most.
    fn candidates(&self, view: &View, tolerance: f64) -> Vec<Box<dyn Balancer>> {
        let mut all: Vec<Box<dyn Balancer>> = Vec::new();
        if view.chares.len() <= FEW {
            all.push(Box::new(Exchange { tolerance }));
        }
        all.push(Box::new(Refine { tolerance }));
        let nodes = view.nodes().into_iter().max().map_or(0, |last| last + 1);
        if 1 < nodes && nodes < view.pes.len() {
            all.push(Box::new(Hierarchical { tolerance }));
        }
        all.push(Box::new(GreedyRefine { tolerance }));
        all.retain(|balancer| memory::of(balancer.as_ref(), view) <= self.settings.memory_bytes);
        all
    }

    /// The view with levels in place of the last measurements.
    fn smoothed(&self, view: &View, work: f64) -> View {
        let mut view = view.clone();
        for (pe, (speed, background)) in view.pes.iter_mut().zip(self.speeds.iter().zip(&self.background)) {
            pe.part.speed = speed.value();
            pe.background = background.forecast().max(0.0);
            if speed.is_too_slow() {
                // Whoever holds as much as he may takes nothing.
                pe.memory_bytes = Some(0);
            }
        }
        for (chare, level) in view.chares.iter_mut().zip(&self.shares) {
            chare.load = level.forecast().max(0.0) * work;
        }
        view
    }

    /// PEs that leave are emptied at once: no gain is asked for.
    fn evacuate(&mut self, sample: &Sample<'_>) -> Result<Option<Answer>, ViewError> {
        let (view, is_leaving) = (sample.view, |pe: u32| sample.view.pes[pe as usize].is_leaving);
        if !view.chares.iter().any(|chare| is_leaving(chare.pe)) {
            return Ok(None);
        }
        let decision = super::Stay.decide(view)?;
        if decision.moves.is_empty() {
            return Ok(None);
        }
        let cost_s = self.transfer.cost_s(view, &decision.moves, sample);
        let leaving = Candidate { by: "leaving", gain: 0.0, cost_s, decision };
        Ok(Some(self.begin(sample.now_s, view, leaving)))
    }

    /// Chares begin to move.
    fn begin(&mut self, now_s: f64, view: &View, chosen: Candidate) -> Answer {
        let Candidate { by, gain, cost_s, decision } = chosen;
        self.records.push(Record::new(now_s, by, &decision, gain, cost_s));
        self.pending.clone_from(&decision.moves);
        self.decided_s = now_s;
        self.outcome.begin(&self.speeds, &decision);
        self.transfer.begins(view, &decision.moves, now_s);
        Answer::Move(decision, by)
    }

    /// Whether all moves that were decided have been made, as far as this view shows, or will not be made any more: a chare may
    /// have been told to stay meanwhile.
    fn has_moved(&mut self, sample: &Sample<'_>) -> bool {
        self.pending.retain(|step| sample.view.chares[step.chare as usize].pe == step.from);
        if self.pending.is_empty() {
            self.transfer.have_come(sample);
            return true;
        }
        self.last_s - self.decided_s > MOVING_MAX_S
    }
}

/// Seconds until chares have done so much work if none of them moves, of which each has its part by its load; `None` if nobody has
/// any.
fn seconds_of(left_work: f64, view: &View) -> Option<f64> {
    let loads: f64 = view.chares.iter().map(|chare| chare.load).sum();
    Some(left_work * Times::of(view).longest() / loads).filter(|seconds| seconds.is_finite())
}

/// Moves that a balancer has found.
struct Candidate {
    by: &'static str,
    decision: Decision,
    /// The part of each second that is expected to be gained.
    gain: f64,
    /// Seconds that moving is expected to cost.
    cost_s: f64,
}

impl Candidate {
    /// Whether there is something to gain where times may be so far wrong, as a part of them: what ends much sooner does so
    /// even then.
    fn is_sure(&self, error: f64) -> bool {
        self.gain > error * self.decision.after / self.decision.before
    }
}

/// The number that a chare has when those with these numbers, which are in order, have gone: `None` if it is one of them.
fn number_without(gone: &[u32], number: u32) -> Option<u32> {
    gone.binary_search(&number).err().map(|before| number - before as u32)
}

/// By how many standard errors the largest of so many is above their mean: about the root of twice their logarithm.
fn expected_most(count: usize) -> f64 {
    (1.386 * f64::from(count.max(1).ilog2())).sqrt()
}

/// Measurements without which nobody knows what noise is.
const SAMPLES_MIN: u32 = 3;
/// Chares that do this part of the work have to be known; of programs that make new ones all the time never are all.
const MOST: f64 = 0.9;
/// An imbalance must be seen in so many samples more than it was not.
const SEEN_MIN: u32 = 2;
/// What is gained even if times are so many times as far wrong as they may be is not taken for real by mistake.
const OBVIOUS: f64 = 2.0;
/// A move that has not been made after so many seconds is not going to be.
const MOVING_MAX_S: f64 = 60.0;
/// What was measured over a span is forgotten when there is one so many times as long.
const LONGER: f64 = 2.0;
/// Trials take at most one part in so many of the time.
const TRIALS: f64 = 25.0;
/// No imbalance below this part is worth a thought.
const FINEST: f64 = 0.01;
/// So many chares are looked at one by one: of more, a decision would take too long and gain little.
const FEW: usize = 256;
