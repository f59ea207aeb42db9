//! What came of decisions: whether the chares of the run do more work in a second than before, for what its PEs deliver.

use super::speed::Speed;
use super::{Level, Record, Sample};

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
    speeds: Vec<f64>,
    /// When its moves were seen to have been made.
    made_s: Option<f64>,
}

/// What came of a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Brought {
    /// Nobody knows, as speeds have changed meanwhile.
    Unknown,
    /// It did no harm.
    Gain,
    /// This part of each second is lost by it.
    Loss(f64),
}

/// Moves are taken back if by this part less is done, and if noise cannot be the reason.
const WORSE: f64 = 0.03;
/// Of moves for more than this imbalance it is not judged: what is done in a second has often not yet fallen when they are made.
const SMALL: f64 = 1.15;
/// For so many seconds nothing moves again for an imbalance that is not so many times as large.
const FUTILE_S: f64 = 60.0;
const LARGER: f64 = 1.5;
const ERRORS: f64 = 3.0;
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

    /// Chares begin to move, at these speeds, because of this imbalance.
    pub(super) fn begin(&mut self, speeds: &[Speed], imbalance: f64) {
        let speeds = speeds.iter().map(Speed::value).collect();
        self.waiting = Some(Waiting { before: self.efficiency.value(), imbalance, speeds, made_s: None });
    }

    /// Takes a measurement in which no chare is on its way, and writes down what the last decision brought once that is known,
    /// which it then returns.
    pub(super) fn observe(
        &mut self,
        sample: &Sample<'_>,
        imbalance: f64,
        speeds: &[Speed],
        records: &mut [Record],
    ) -> Option<Brought> {
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
        let (before, now) = (waiting.before, self.efficiency.value());
        // What would be done in a second if all PEs had as much to do as their speeds earn.
        let imbalance_before = waiting.imbalance;
        let even = now * imbalance / (before * imbalance_before);
        let is_as_it_was = speeds.iter().zip(&waiting.speeds).all(|(now, then)| !now.is_another(*then));
        self.waiting = None;
        let record = records.last_mut()?;
        let gained = if now > 0.0 { 1.0 - before / now } else { 0.0 };
        record.settle(imbalance, gained);
        // If speeds have changed meanwhile, nobody knows what would have been.
        if !is_as_it_was || record.gain_expected <= 0.0 {
            return Some(Brought::Unknown);
        }
        self.learn(record.gain_expected, gained);
        // What loads have done since is no fault of the moves.
        let was_small = imbalance_before <= SMALL;
        let is_worse = was_small && gained < 0.0 && even < 1.0 - WORSE.max(ERRORS * self.noise());
        if !is_worse {
            return Some(Brought::Gain);
        }
        self.futile = Some((LARGER * (imbalance_before - 1.0), sample.now_s + FUTILE_S));
        Some(Brought::Loss(-gained))
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
