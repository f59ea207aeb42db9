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
}

/// A decision of which it is not known what it brought.
#[derive(Clone, Debug)]
struct Waiting {
    before: f64,
    speeds: Vec<f64>,
    /// When its moves were seen to have been made.
    made_s: Option<f64>,
}

/// After so many times the span of a measurement, what was before counts little in it.
const SPANS: f64 = 2.0;
/// The weight of the last decision in what is expected of the next.
const LEARNED: f64 = 0.5;
/// Seconds after which most of what did not come true is forgotten: the run may have changed.
const FORGOTTEN_S: f64 = 30.0;

impl Outcome {
    pub(super) const fn new() -> Self {
        Self { efficiency: Level::new(), waiting: None, trust: 1.0, last_s: 0.0 }
    }

    /// The part of an expected gain that comes true.
    pub(super) const fn trust(&self) -> f64 {
        self.trust
    }

    /// Chares begin to move, at these speeds.
    pub(super) fn begin(&mut self, speeds: &[Speed]) {
        let speeds = speeds.iter().map(Speed::value).collect();
        self.waiting = Some(Waiting { before: self.efficiency.value(), speeds, made_s: None });
    }

    /// Takes a measurement in which no chare is on its way, and writes down what the last decision brought once that is known.
    pub(super) fn observe(
        &mut self,
        sample: &Sample<'_>,
        imbalance: f64,
        speeds: &[Speed],
        records: &mut [Record],
    ) {
        let work: f64 = sample.view.chares.iter().map(|chare| chare.load).sum();
        let speed: f64 = sample.view.pes.iter().map(|pe| pe.part.speed).sum();
        self.efficiency.observe(work / speed);
        let forgotten = 1.0 - f64::exp(-(sample.now_s - self.last_s).max(0.0) / FORGOTTEN_S);
        self.last_s = sample.now_s;
        self.trust += (1.0 - self.trust) * forgotten;
        let Some(waiting) = &mut self.waiting else { return };
        let made_s = *waiting.made_s.get_or_insert(sample.now_s);
        let since_s = sample.now_s - made_s;
        if since_s < SPANS * sample.span_s {
            return;
        }
        let (before, now) = (waiting.before, self.efficiency.value());
        let is_as_it_was = speeds.iter().zip(&waiting.speeds).all(|(now, then)| !now.is_another(*then));
        self.waiting = None;
        let Some(record) = records.last_mut() else { return };
        let gained = if now > 0.0 { 1.0 - before / now } else { 0.0 };
        record.settle(imbalance, gained);
        // If speeds have changed meanwhile, nobody knows what would have been.
        if is_as_it_was && record.gain_expected > 0.0 {
            self.learn(record.gain_expected, gained);
        }
    }

    /// Of a gain that was expected, this was got.
    fn learn(&mut self, expected: f64, gained: f64) {
        let noise = self.efficiency.noise() / self.efficiency.value().max(f64::MIN_POSITIVE);
        // What noise hides teaches little.
        let weight = LEARNED * expected * expected / (expected * expected + noise * noise);
        let came_true = (gained / expected).clamp(0.0, 1.0);
        self.trust += weight * (came_true - self.trust);
    }
}
