//! What came of decisions: whether the chares of the run do more work in a second than before, for what its PEs deliver.

use super::speed::Speed;
use super::{Level, Record, Sample};
use crate::balance::{Decision, Move};

/// Compares what decisions brought with what they promised.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Work of all chares in a second over the speeds of all PEs.
    efficiency: Level,
    waiting: Option<Waiting>,
    trust: f64,
    last_s: f64,
    /// So much above 1 no imbalance is worth another try, until then.
    futile: Option<(f64, f64)>,
}

/// A decision of which it is not known what it brought.
#[derive(Clone, Debug)]
struct Waiting {
    before: f64,
    imbalance: f64,
    moves: Vec<Move>,
    speeds: Vec<f64>,
    /// When its moves were seen to have been made.
    made_s: Option<f64>,
}

/// What was lost by a decision.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    /// The part of each second.
    pub(super) part: f64,
    /// The moves that were made for it.
    pub(super) moves: Vec<Move>,
}

/// A decision is a loss if by this part less is done, and by so many times the noise.
const WORSE: f64 = 0.03;
const ERRORS: f64 = 3.0;
/// Of moves for more than this imbalance it is not judged: what is done in a second has often not yet fallen when they are made.
const SMALL: f64 = 1.15;
/// For so many seconds nothing moves again for an imbalance that is not so many times as large.
const FUTILE_S: f64 = 60.0;
const LARGER: f64 = 1.5;
/// After so many times the span of a measurement, what was before counts little in it.
const SPANS: f64 = 2.0;
/// The weight of the last decision in what is expected of the next.
const LEARNED: f64 = 0.5;
/// Seconds after which most of what did not come true is forgotten: the run may have changed.
const FORGOTTEN_S: f64 = 30.0;

impl Outcome {
    pub(super) const fn new() -> Self {
        Self { efficiency: Level::new(), waiting: None, trust: 1.0, last_s: 0.0, futile: None }
    }

    /// The part of an expected gain that comes true.
    pub(super) const fn trust(&self) -> f64 {
        self.trust
    }

    /// Chares begin to move, at these speeds.
    pub(super) fn begin(&mut self, speeds: &[Speed], decision: &Decision) {
        self.waiting = Some(Waiting {
            before: self.efficiency.value(),
            imbalance: decision.before,
            moves: decision.moves.clone(),
            speeds: speeds.iter().map(Speed::value).collect(),
            made_s: None,
        });
    }

    /// Chares have got other numbers: whatever comes of the last decision, its moves cannot be taken back.
    pub(super) fn forget_moves(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.moves.clear();
        }
    }

    /// Takes a measurement in which no chare is on its way, and writes down what the last decision brought once that is known;
    /// says so if it was a loss.
    pub(super) fn observe(
        &mut self,
        sample: &Sample<'_>,
        imbalance: f64,
        speeds: &[Speed],
        records: &mut [Record],
    ) -> Option<Loss> {
        let work: f64 = sample.view.chares.iter().map(|chare| chare.load).sum();
        let speed: f64 = sample.view.pes.iter().map(|pe| pe.part.speed).sum();
        self.efficiency.observe(work / speed);
        let forgotten = 1.0 - f64::exp(-(sample.now_s - self.last_s).max(0.0) / FORGOTTEN_S);
        self.last_s = sample.now_s;
        self.trust += (1.0 - self.trust) * forgotten;
        let waiting = self.waiting.as_mut()?;
        let made_s = *waiting.made_s.get_or_insert(sample.now_s);
        let since_s = sample.now_s - made_s;
        if since_s < SPANS * sample.span_s {
            return None;
        }
        let waiting = self.waiting.take()?;
        let (before, now) = (waiting.before, self.efficiency.value());
        let is_as_it_was = speeds.iter().zip(&waiting.speeds).all(|(now, then)| !now.is_another(*then));
        let record = records.last_mut()?;
        let gained = if now > 0.0 { 1.0 - before / now } else { 0.0 };
        record.settle(imbalance, gained);
        // If speeds have changed meanwhile, nobody knows what would have been.
        if !is_as_it_was || record.gain_expected <= 0.0 {
            return None;
        }
        self.learn(record.gain_expected, gained);
        // How much is done for the imbalance that there is: what loads have done since is no fault of the moves.
        let part_of_before = now * imbalance / (before * waiting.imbalance);
        let is_less = gained < 0.0 && part_of_before < 1.0 - WORSE.max(ERRORS * self.noise());
        if !is_less || waiting.imbalance > SMALL {
            return None;
        }
        self.futile = Some((LARGER * (waiting.imbalance - 1.0), sample.now_s + FUTILE_S));
        Some(Loss { part: -gained, moves: waiting.moves })
    }

    /// How far above 1 an imbalance must be now because moves that were made for less made the run slower.
    pub(super) fn futile(&self, now_s: f64) -> f64 {
        self.futile.filter(|(_, until_s)| now_s < *until_s).map_or(0.0, |(above, _)| above)
    }

    /// The noise of a measurement of the efficiency, as a part of it.
    fn noise(&self) -> f64 {
        self.efficiency.noise() / self.efficiency.value().max(f64::MIN_POSITIVE)
    }

    /// Of a gain that was expected, this was got.
    fn learn(&mut self, expected: f64, gained: f64) {
        let noise = self.noise();
        // What noise hides teaches little.
        let weight = LEARNED * expected * expected / (expected * expected + noise * noise);
        let came_true = (gained / expected).clamp(0.0, 1.0);
        self.trust += weight * (came_true - self.trust);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Part;
    use crate::balance::View;

    /// What is lost by moves that were made for that imbalance on two PEs, which did 1.9 units of work in a second until then and
    /// do so many since, at this imbalance; and what is futile then.
    fn lost(imbalance_before: f64, work: f64, imbalance: f64) -> (Option<f64>, f64) {
        let mut speed = Speed::new();
        (0..10).for_each(|at| speed.observe(1.0, true, f64::from(at)));
        let speeds = [speed; 2];
        let moves = vec![Move { chare: 0, from: 0, to: 1 }];
        let decision = Decision { before: imbalance_before, after: 1.0, moves, ..Decision::default() };
        let mut records = [Record::new(10.0, "refine", &decision, 1.0 - 1.0 / imbalance_before, 0.1)];
        let mut outcome = Outcome::new();
        let mut observe = |at: u32, work: f64, imbalance: f64| {
            if at == 10 {
                outcome.begin(&speeds, &decision);
            }
            let view = View::new(&Part::each(&[1.0, 1.0]), [(0, work / 2.0), (1, work / 2.0)]);
            let sample = Sample {
                now_s: f64::from(at),
                view: &view,
                gone: &[],
                span_s: 1.0,
                left_s: None,
                left_work: None,
                bytes_per_s: 1e8,
                away_s: 0.0,
                decide_s: 0.0,
            };
            outcome.observe(&sample, imbalance, &speeds, &mut records)
        };
        (0..10).for_each(|at| drop(observe(at, 1.9, imbalance_before)));
        let loss = (10..20).find_map(|at| observe(at, work, imbalance));
        (loss.map(|loss| loss.part), outcome.futile(19.0))
    }

    #[test]
    fn less_is_lost_by_moves_if_no_imbalance_explains_it() {
        let (part, futile) = lost(1.05, 1.6, 1.0);
        assert!(part.is_some_and(|part| (0.1..0.2).contains(&part)), "{part:?}");
        assert!((futile - LARGER * 0.05).abs() < 1e-9, "{futile}");
        assert_eq!(lost(1.05, 1.98, 1.0), (None, 0.0), "more is done");
        assert_eq!(lost(1.05, 1.6, 1.25), (None, 0.0), "loads have grown since");
        assert_eq!(lost(1.5, 1.6, 1.0), (None, 0.0), "it had not yet fallen when they were made");
        assert_eq!(lost(1.01, 1.88, 1.0), (None, 0.0), "too little to be sure");
    }
}
