//! Whether a node delivers the speed that was measured: counters in, slowdowns out. No clock: the time is that of the counters.

use super::wire::{NodeInfo, NodeSnapshot, PeSnapshot, Slowdown};
use std::time::Duration;

/// A piece of time is at least so long.
const PIECE_NS: u64 = 500_000_000;
/// A PE that wanted its core for less than this part of a piece says nothing: nobody waits for it, and who only wakes now and then
/// waits for a core longer than it computes wherever cores are shared.
const WANTED_MIN: f64 = 0.5;
/// So many pieces in a row that are slow make a slowdown, and so many that are not end it: what passes sooner is noise.
const PIECES: usize = 5;
/// Who delivers less is slow; who is slow is so until it delivers more than the second.
const SLOW: f64 = 0.7;
const FAST: f64 = 0.9;
/// A slowdown ends with so many pieces in a row in which nobody wants a core.
const QUIET: u32 = 10;
/// A slowdown is said anew when it has changed by this part of itself.
const CHANGE: f64 = 0.2;

/// What the PEs of one node got of their cores.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When the present piece began, and the counters of each PE then.
    began: Option<(u64, Vec<Counters>)>,
    /// The part of their cores that the PEs got while they were measured.
    part: Option<f64>,
    /// Pieces in a row in which they hardly wanted their cores, and when the first of them began.
    quiet: u32,
    quiet_since_ns: u64,
    /// The latest pieces in a row that contradict the present state.
    contrary: Vec<Piece>,
    /// The latest pieces of a slowdown.
    slow: Vec<Piece>,
    /// What goes on.
    present: Option<Slowdown>,
}

/// Nanoseconds, of one PE or of several together.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    on_core: u64,
    waited: u64,
    by_quota: u64,
}

/// What was delivered in a piece of time.
#[derive(Clone, Copy, Debug)]
struct Piece {
    began_ns: u64,
    /// On a core, of what was wanted, of what was got when the speed was measured.
    delivered: f64,
    is_by_quota: bool,
}

impl Pace {
    /// Takes in the counters of a node. Gives the slowdown that goes on, or has just ended, if there is something new to say
    /// of it.
    pub(super) fn hears(&mut self, info: &NodeInfo, snapshot: &NodeSnapshot) -> Option<Slowdown> {
        // It is starting, or its speed is being found; or PEs of another node share its cores, and wait for each other.
        let is_crowded = snapshot.pes.len() > info.pe_speeds.len();
        if is_crowded || !info.pe_speeds.iter().any(|speed| *speed > 0.0) {
            return None;
        }
        // The clock of a node that joined began when it did.
        let joined = Duration::try_from_secs_f64(info.joined_s.unwrap_or_default()).unwrap_or_default();
        let now_ns = snapshot.uptime_ns.saturating_add(u64::try_from(joined.as_nanos()).unwrap_or_default());
        let Some((began_ns, _)) = self.began else {
            self.began = Some((now_ns, counters_of(snapshot)));
            return None;
        };
        if now_ns < began_ns {
            *self = Self::default();
            return None;
        }
        if now_ns - began_ns < PIECE_NS {
            return None;
        }
        let counters = counters_of(snapshot);
        let before =
            self.began.replace((now_ns, counters.clone())).map(|(_, before)| before).unwrap_or_default();
        let part = usual_part(&info.pe_parts);
        if part != self.part {
            // What was before is not comparable.
            let ended = self.ends(now_ns);
            self.part = part;
            return ended;
        }
        let spent = counters.iter().zip(before).map(|(now, before)| now.since(before));
        let busy = spent.filter(|spent| spent.wanted() as f64 >= WANTED_MIN * (now_ns - began_ns) as f64);
        let may_ns = (part_that_may_be_used(info.cpu_share) * (now_ns - began_ns) as f64) as u64;
        let Some(spent) = busy.map(|spent| spent.within(may_ns)).reduce(Counters::and) else {
            if self.quiet == 0 {
                self.quiet_since_ns = began_ns;
            }
            self.quiet += 1;
            return if self.quiet == QUIET { self.ends(self.quiet_since_ns) } else { None };
        };
        self.quiet = 0;
        let piece = Piece {
            began_ns,
            delivered: spent.on_core as f64 / spent.wanted() as f64 / part.unwrap_or(1.0),
            is_by_quota: spent.by_quota > spent.waited,
        };
        self.takes(piece, Slowdown { node: info.node, is_of_speed: part.is_some(), ..Slowdown::default() })
    }

    fn takes(&mut self, piece: Piece, kind: Slowdown) -> Option<Slowdown> {
        let is_contrary =
            if self.present.is_some() { piece.delivered > FAST } else { piece.delivered < SLOW };
        if is_contrary {
            self.contrary.push(piece);
        } else {
            self.contrary.clear();
        }
        let has_turned = self.contrary.len() >= PIECES;
        let Some(present) = &mut self.present else {
            if !has_turned {
                return None;
            }
            self.slow = std::mem::take(&mut self.contrary);
            let since_s = seconds(self.slow[0].began_ns);
            self.present = Some(Slowdown { since_s, ..described(&self.slow, kind) });
            return self.present;
        };
        if has_turned {
            let until_ns = self.contrary[0].began_ns;
            return self.ends(until_ns);
        }
        if is_contrary {
            return None;
        }
        self.slow.push(piece);
        self.slow.drain(..self.slow.len().saturating_sub(PIECES));
        let next = Slowdown { since_s: present.since_s, ..described(&self.slow, kind) };
        let is_news = (next.delivered - present.delivered).abs() > CHANGE * present.delivered;
        is_news.then(|| {
            *present = next;
            next
        })
    }

    /// Begins anew. Gives the slowdown that has ended, if there was one.
    fn ends(&mut self, at_ns: u64) -> Option<Slowdown> {
        let ended = self.present.map(|present| Slowdown { until_s: Some(seconds(at_ns)), ..present });
        *self = Self { began: self.began.take(), part: self.part, quiet: self.quiet, ..Self::default() };
        ended
    }
}

/// What the last pieces of a slowdown say of it.
fn described(pieces: &[Piece], kind: Slowdown) -> Slowdown {
    // The median: a piece in which a slowdown begins or ends is neither slow nor fast.
    let mut delivered: Vec<f64> = pieces.iter().map(|piece| piece.delivered).collect();
    delivered.sort_unstable_by(f64::total_cmp);
    let delivered = delivered.get(pieces.len() / 2).copied().unwrap_or_default();
    let is_by_quota = 2 * pieces.iter().filter(|piece| piece.is_by_quota).count() > pieces.len();
    Slowdown { delivered, is_by_quota, ..kind }
}

/// The part of their cores that PEs got on average while they were measured.
fn usual_part(parts: &[f64]) -> Option<f64> {
    let mean = parts.iter().sum::<f64>() / parts.len() as f64;
    (mean > 0.0 && mean <= 1.0).then_some(mean)
}

/// A node may say anything of its share, or nothing.
fn part_that_may_be_used(cpu_share: f64) -> f64 {
    if cpu_share > 0.0 && cpu_share < 1.0 { cpu_share } else { 1.0 }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn counters_of(snapshot: &NodeSnapshot) -> Vec<Counters> {
    // What a node says may be anything.
    let of = |pe: &PeSnapshot| Counters {
        on_core: pe.compute_ns.saturating_add(pe.init_ns).saturating_add(pe.overhead_ns),
        waited: pe.core_wait_ns,
        by_quota: pe.quota_ns,
    };
    snapshot.pes.iter().map(of).collect()
}

impl Counters {
    /// How long a core was wanted.
    fn wanted(&self) -> u64 {
        self.on_core.saturating_add(self.waited).saturating_add(self.by_quota)
    }

    /// The same of a PE that may have no more of its core than this: what it waits beyond that stands for its sleep.
    fn within(self, may_ns: u64) -> Self {
        let waits = self.waited.saturating_add(self.by_quota);
        let lacking = may_ns.saturating_sub(self.on_core).min(waits);
        let by_quota = (lacking as f64 * self.by_quota as f64 / waits.max(1) as f64) as u64;
        Self { waited: lacking.saturating_sub(by_quota), by_quota, ..self }
    }

    fn and(self, other: Self) -> Self {
        Self {
            on_core: self.on_core.saturating_add(other.on_core),
            waited: self.waited.saturating_add(other.waited),
            by_quota: self.by_quota.saturating_add(other.by_quota),
        }
    }

    fn since(self, before: Self) -> Self {
        let of = u64::saturating_sub;
        Self {
            on_core: of(self.on_core, before.on_core),
            waited: of(self.waited, before.waited),
            by_quota: of(self.by_quota, before.by_quota),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::sim::Random;

    /// A node that wants its one core for a part of each tenth of a second and gets a part of that.
    struct Simulated {
        info: NodeInfo,
        pace: Pace,
        tenth: u64,
        pe: PeSnapshot,
    }

    impl Simulated {
        fn measured_at(part: Option<f64>) -> Self {
            let pe_parts = part.into_iter().collect();
            let info = NodeInfo { node: 3, pe_speeds: vec![1.0], pe_parts, ..NodeInfo::default() };
            Self { info, pace: Pace::default(), tenth: 0, pe: PeSnapshot::default() }
        }

        /// Goes on for so many tenths of a second; what is said, and after how many tenths.
        fn goes_on(
            &mut self,
            tenths: u64,
            wants: f64,
            mut gets: impl FnMut() -> f64,
        ) -> Vec<(u64, Slowdown)> {
            let mut said = Vec::new();
            for _ in 0..tenths {
                let (wanted, got) = (wants * 1e8, gets());
                self.pe.compute_ns += (wanted * got) as u64;
                self.pe.core_wait_ns += (wanted * (1.0 - got)) as u64;
                self.tenth += 1;
                let uptime_ns = self.tenth * 100_000_000;
                let snapshot =
                    NodeSnapshot { uptime_ns, pes: vec![self.pe.clone()], ..NodeSnapshot::default() };
                said.extend(self.pace.hears(&self.info, &snapshot).map(|slow| (self.tenth, slow)));
            }
            said
        }
    }

    #[test]
    fn a_node_that_falls_to_a_tenth_is_named_within_three_seconds_and_so_is_its_end() {
        let mut node = Simulated::measured_at(Some(0.9));
        assert_eq!(node.goes_on(120, 1.0, || 0.9), []);
        let said = node.goes_on(200, 0.7, || 0.1);
        let (at, slow) = said[0];
        assert!(said.len() == 1 && at <= 150, "{said:?}");
        let sentence = slow.sentence("fast");
        assert_eq!(sentence, "fast delivers 0.11 of its measured speed since 00:12: it waits for its cores");
        let said = node.goes_on(200, 0.7, || 0.88);
        let (at, slow) = said[0];
        assert!(said.len() == 1 && at <= 350, "{said:?}");
        assert_eq!(slow.sentence("fast"), "fast delivered 0.11 of its measured speed from 00:12 to 00:32");
        assert_eq!(node.goes_on(500, 1.0, || 0.9), []);
    }

    #[test]
    fn the_time_of_a_node_that_joined_later_is_that_of_the_run() {
        let mut node = Simulated::measured_at(Some(0.9));
        node.info.joined_s = Some(60.0);
        node.goes_on(120, 1.0, || 0.9);
        let said = node.goes_on(200, 0.7, || 0.1);
        assert!(said[0].1.sentence("fast").ends_with(" since 01:12: it waits for its cores"), "{said:?}");
    }

    #[test]
    fn a_share_of_a_core_that_others_use_meanwhile_is_all_that_was_measured() {
        let mut node = Simulated::measured_at(Some(0.9));
        node.info.cpu_share = 0.5;
        // It waits where it would have slept.
        assert_eq!(node.goes_on(200, 1.0, || 0.52), []);
        let said = node.goes_on(200, 1.0, || 0.1);
        assert!(said.len() == 1 && (said[0].1.delivered - 0.1 / 0.5 / 0.9).abs() < 1e-3, "{said:?}");
        for cpu_share in [f64::NAN, -1.0, 7.0] {
            let mut node = Simulated::measured_at(Some(1.0));
            node.info.cpu_share = cpu_share;
            assert_eq!(node.goes_on(200, 1.0, || 0.5).len(), 1, "{cpu_share}");
        }
    }

    #[test]
    fn a_slowdown_that_becomes_worse_is_said_again_and_keeps_its_begin() {
        let mut node = Simulated::measured_at(Some(1.0));
        node.goes_on(100, 1.0, || 1.0);
        let first = node.goes_on(100, 1.0, || 0.5);
        let then = node.goes_on(100, 1.0, || 0.2);
        assert_eq!((first.len(), first[0].1.since_s), (1, then[0].1.since_s));
        let last = then.last().unwrap().1.delivered;
        assert!((0.2..0.25).contains(&last) && then.len() <= 4, "{then:?}");
    }

    #[test]
    fn noise_is_no_slowdown() {
        for seed in 0..200 {
            let (mut node, mut random) = (Simulated::measured_at(Some(0.95)), Random::new(seed));
            // Some of the time others take half of the core for a tenth of a second, or it is idle.
            let mut gets = || if random.bits() % 6 == 0 { 0.45 } else { 0.95 };
            assert_eq!(node.goes_on(1200, 1.0, &mut gets), [], "seed {seed}");
            assert_eq!(node.goes_on(1200, 0.3, &mut gets), [], "seed {seed}");
            // Once a minute somebody takes nearly all of it for a second.
            assert_eq!(node.goes_on(10, 1.0, || 0.1), [], "seed {seed}");
            assert_eq!(node.goes_on(600, 1.0, &mut gets), [], "seed {seed}");
        }
    }

    #[test]
    fn a_slowdown_that_wavers_around_the_limit_is_one() {
        let mut node = Simulated::measured_at(Some(1.0));
        node.goes_on(100, 1.0, || 1.0);
        let mut random = Random::new(7);
        let said = node.goes_on(3000, 1.0, || 0.6 + (random.bits() % 16) as f64 / 100.0);
        assert!(said.len() <= 2 && said.iter().all(|(_, slow)| slow.until_s.is_none()), "{said:?}");
    }

    #[test]
    fn a_node_that_has_nothing_to_do_delivers_nothing_and_is_not_slow() {
        let mut node = Simulated::measured_at(Some(1.0));
        assert_eq!(node.goes_on(600, 0.02, || 0.1), []);
    }

    #[test]
    fn who_wakes_now_and_then_on_a_crowded_core_is_not_slow_whatever_its_busy_neighbours_are() {
        let mut node = Simulated::measured_at(Some(1.0));
        assert_eq!(node.goes_on(600, 0.3, || 0.1), []);
        let busy = PeSnapshot::default();
        let mut pace = Pace::default();
        let info = NodeInfo { pe_speeds: vec![1.0; 17], pe_parts: vec![1.0; 17], ..NodeInfo::default() };
        let (mut idle, mut busy) = (busy.clone(), busy);
        for tenth in 1..600 {
            busy.compute_ns += 95_000_000;
            (idle.compute_ns, idle.core_wait_ns) =
                (idle.compute_ns + 1_000_000, idle.core_wait_ns + 20_000_000);
            let mut pes = vec![idle.clone(); 16];
            pes.push(busy.clone());
            let snapshot = NodeSnapshot { uptime_ns: tenth * 100_000_000, pes, ..NodeSnapshot::default() };
            assert_eq!(pace.hears(&info, &snapshot), None);
        }
    }

    #[test]
    fn a_slowdown_is_over_when_there_is_nothing_to_do_any_more_or_speeds_are_measured_anew() {
        let mut node = Simulated::measured_at(Some(1.0));
        node.goes_on(50, 1.0, || 0.5);
        let said = node.goes_on(100, 0.0, || 1.0);
        assert!(said.len() == 1 && said[0].1.until_s.is_some(), "{said:?}");
        let mut node = Simulated::measured_at(None);
        assert!(!node.goes_on(50, 1.0, || 0.5).is_empty());
        node.info.pe_parts = vec![0.5];
        let said = node.goes_on(100, 1.0, || 0.5);
        assert!(said.len() == 1 && said[0].1.until_s.is_some() && !said[0].1.is_of_speed, "{said:?}");
    }

    #[test]
    fn without_a_measured_speed_it_is_of_its_cores_and_a_quota_is_named() {
        let mut node = Simulated::measured_at(None);
        let said = node.goes_on(100, 1.0, || 0.25);
        assert_eq!(said[0].1.sentence("b"), "b gets 0.25 of its cores since 00:00: it waits for its cores");
        let quota = Slowdown { is_by_quota: true, ..said[0].1 };
        assert_eq!(quota.sentence("b"), "b gets 0.25 of its cores since 00:00: a quota stops it");
    }

    #[test]
    fn counters_of_any_size_do_no_harm() {
        let (mut random, mut pace, info) =
            (Random::new(3), Pace::default(), NodeInfo { pe_speeds: vec![1.0], ..NodeInfo::default() });
        for _ in 0..10_000 {
            let pe =
                PeSnapshot { compute_ns: random.bits(), core_wait_ns: random.bits(), ..Default::default() };
            let uptime_ns = random.bits() >> (random.bits() % 64);
            let snapshot = NodeSnapshot { uptime_ns, pes: vec![pe.clone(), pe], ..NodeSnapshot::default() };
            let said = pace.hears(&info, &snapshot);
            assert!(said.is_none_or(|slow| slow.delivered.is_finite()));
        }
    }
}
