//! Where the time of a mix went that an ideal one would not have needed.

use super::saved::Run;
use serde::Serialize;

/// Parts of the speed-weighted time of all PEs, 1 is all of it: what a mix spends in each more than the reference
/// does for the same work. They add up to 1 - efficiency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Lost {
    /// Even the busiest PE waited: for messages, or for each other at a barrier.
    pub(crate) idle: f64,
    /// The runtime itself worked: queues, packing, routing.
    pub(crate) overhead: f64,
    /// PEs waited because another one had more to do.
    pub(crate) imbalance: f64,
    /// Entry methods took longer for the same work.
    pub(crate) compute: f64,
    /// What no PE has accounted for.
    pub(crate) other: f64,
}

impl Lost {
    /// What the run of a mix lost against the reference at this efficiency; `speeds` are those of its nodes, in any
    /// unit and in its order.
    pub(super) fn of(run: &Run, speeds: &[f64], reference: &Self, efficiency: f64) -> Self {
        Self::spent(run, speeds).minus(&reference.times(efficiency))
    }

    /// All that one run spent: the sum is 1.
    pub(super) fn spent(run: &Run, speeds: &[f64]) -> Self {
        let seconds = run.seconds();
        let total: f64 = speeds.iter().sum();
        let pes = run.nodes.iter().zip(speeds).flat_map(|(node, speed)| {
            let of_node: f64 = node.pes.iter().map(|pe| pe.speed).sum();
            node.pes.iter().map(move |pe| (speed / total * pe.speed / of_node, pe))
        });
        let (mut compute, mut idle, mut runtime, mut longest) = (0.0, 0.0, 0.0, 0.0_f64);
        for (weight, pe) in pes {
            // Work takes longer where its PE cannot work all the time, and a share of a core is a slower core.
            let work_s = pe.compute_s + pe.core_wait_s + pe.quota_s;
            compute += weight * work_s / seconds;
            idle += weight * (pe.idle_s + pe.throttled_s) / seconds;
            runtime += weight * pe.overhead_s / seconds;
            longest = longest.max((work_s + pe.overhead_s) / seconds);
        }
        // A mean is not above its largest value, nor the idle time below what imbalance explains of it.
        let imbalance = (longest - compute - runtime).clamp(0.0, idle);
        Self {
            idle: idle - imbalance,
            overhead: runtime,
            imbalance,
            compute,
            other: 1.0 - compute - idle - runtime,
        }
    }

    /// What an ideal reference spends: all its time on the work.
    pub(super) fn all_work() -> Self {
        Self { compute: 1.0, ..Self::default() }
    }

    /// All parts together.
    pub(crate) fn sum(&self) -> f64 {
        self.idle + self.overhead + self.imbalance + self.compute + self.other
    }

    fn times(&self, factor: f64) -> Self {
        self.map(&Self::default(), |part, _| part * factor)
    }

    fn minus(&self, other: &Self) -> Self {
        self.map(other, |part, other| part - other)
    }

    fn map(&self, other: &Self, of: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            idle: of(self.idle, other.idle),
            overhead: of(self.overhead, other.overhead),
            imbalance: of(self.imbalance, other.imbalance),
            compute: of(self.compute, other.compute),
            other: of(self.other, other.other),
        }
    }
}
