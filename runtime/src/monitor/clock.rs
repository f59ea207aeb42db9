//! Whether the clock of a node's cores falls while they compute: of a machine that is too hot, or saves power. No clock of its
//! own: the time is that of the counters.

use super::wire::NodeSnapshot;

/// A node reads its clock so often, and says little of it in shorter times.
const PIECE_NS: u64 = 1_000_000_000;
/// Cores that nobody wants are slow on purpose: what counts is while PEs compute for this part of a core's time.
const BUSY: f64 = 0.5;
/// Below this part of the most that was seen a clock has fallen, and above the second it is up again. What many busy cores take
/// from each other is less.
const FALLEN: f64 = 0.7;
const UP: f64 = 0.9;
/// For so many pieces in a row, before it is said.
const PIECES: u32 = 5;

/// What is known of the clock of a node.
#[derive(Debug, Default)]
pub(super) struct Clock {
    most_mhz: u32,
    /// When the present piece began, and how long PEs had computed then.
    began: Option<(u64, u64)>,
    fallen: u32,
    is_said: bool,
}

/// How the clock of a node fell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fall {
    from_mhz: u32,
    to_mhz: u32,
    at_ns: u64,
}

impl Clock {
    /// Takes in the counters of a node. Gives a fall once, as soon as it has lasted.
    pub(super) fn hears(&mut self, snapshot: &NodeSnapshot) -> Option<Fall> {
        let (now_ns, mhz) = (snapshot.uptime_ns, snapshot.clock_mhz);
        // What a node says may be anything.
        let computed = |sum: u64, ns: u64| sum.saturating_add(ns);
        let computed_ns = snapshot.pes.iter().flat_map(|pe| [pe.compute_ns, pe.init_ns]).fold(0, computed);
        let (began_ns, before_ns) = *self.began.get_or_insert((now_ns, computed_ns));
        if mhz == 0 || now_ns.saturating_sub(began_ns) < PIECE_NS {
            return None;
        }
        self.began = Some((now_ns, computed_ns));
        if (computed_ns.saturating_sub(before_ns) as f64) < BUSY * (now_ns - began_ns) as f64 {
            self.fallen = 0;
            return None;
        }
        self.most_mhz = self.most_mhz.max(mhz);
        let part = f64::from(mhz) / f64::from(self.most_mhz);
        if part >= FALLEN {
            self.fallen = 0;
            self.is_said &= part < UP;
            return None;
        }
        self.fallen += 1;
        let is_news = self.fallen >= PIECES && !self.is_said;
        self.is_said |= is_news;
        let at_ns = now_ns.saturating_sub(u64::from(PIECES) * PIECE_NS);
        is_news.then_some(Fall { from_mhz: self.most_mhz, to_mhz: mhz, at_ns })
    }
}

impl Fall {
    /// As a sentence about the node of that name.
    pub(super) fn sentence(self, node: &str) -> String {
        let ghz = |mhz: u32| f64::from(mhz) / 1e3;
        let seconds = self.at_ns / 1_000_000_000;
        format!(
            "the clock of {node}'s cores fell from {:.2} to {:.2} GHz at {:02}:{:02}: they are too hot, or save power",
            ghz(self.from_mhz),
            ghz(self.to_mhz),
            seconds / 60,
            seconds % 60
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::wire::PeSnapshot;

    /// The falls of a node whose clock and part of time in which it computes are these, second by second.
    fn falls(seconds: impl IntoIterator<Item = (u32, f64)>) -> Vec<String> {
        let (mut clock, mut pe) = (Clock::default(), PeSnapshot::default());
        let said = (0..).zip(seconds).filter_map(|(second, (clock_mhz, busy)): (u64, _)| {
            pe.compute_ns += (busy * 1e9) as u64;
            let uptime_ns = second * 1_000_000_000;
            let snapshot =
                NodeSnapshot { uptime_ns, clock_mhz, pes: vec![pe.clone()], ..NodeSnapshot::default() };
            clock.hears(&snapshot).map(|fall| fall.sentence("fast"))
        });
        said.collect()
    }

    #[test]
    fn a_clock_that_falls_while_the_node_computes_is_told_once_and_again_when_it_was_up() {
        let (fast, hot) = ([(3800, 1.0); 10], [(1200, 0.9); 20]);
        let said = falls(fast.into_iter().chain(hot));
        assert_eq!(
            said,
            [
                "the clock of fast's cores fell from 3.80 to 1.20 GHz at 00:09: they are too hot, or save power"
            ]
        );
        assert_eq!(falls(fast.into_iter().chain(hot).chain(fast).chain(hot)).len(), 2);
    }

    #[test]
    fn what_is_short_or_small_or_of_an_idle_node_or_not_known_is_no_fall() {
        let fast = [(3800, 1.0); 10];
        for other in [[(1200, 0.1); 20], [(2900, 1.0); 20], [(0, 1.0); 20]] {
            assert_eq!(falls(fast.into_iter().chain(other)), [""; 0], "{other:?}");
        }
        let short = fast.into_iter().chain([(1200, 1.0); 4]).chain(fast);
        assert_eq!(falls(short), [""; 0]);
    }
}
