//! Whether this process itself stood still: stopped by its user, suspended with its machine, or starved.
//!
//! Silence tells a dead node from a live one only while the observer runs. One that stood still finds its links
//! timed out when it goes on, and its nodes gone, which waited for it in vain; what it then says of them is true
//! of itself. So it compares the times of its own looks at the clock, before it accuses anybody.

use std::time::Duration;

/// How often to look when nothing else happens.
pub const LOOK_PERIOD: Duration = Duration::from_millis(250);

/// A gap between two looks from here on is a standstill that can cost nodes: they wait less than twice as long.
const STANDSTILL: Duration = Duration::from_secs(3);

/// What a standstill broke shows itself so soon after it; what breaks later has another cause.
const AFTERMATH: Duration = Duration::from_secs(5);

/// The gaps between looks at the clock.
#[derive(Clone, Debug)]
pub struct Standstill {
    last_look: Duration,
    /// The latest standstill: when it ended, and how long it was.
    latest: Option<(Duration, Duration)>,
}

impl Standstill {
    /// Begins to watch at `now`.
    #[must_use]
    pub fn new(now: Duration) -> Self {
        Self { last_look: now, latest: None }
    }

    /// Looks at the clock; to be called at least every [`LOOK_PERIOD`], and before [`explains`](Self::explains).
    pub fn look(&mut self, now: Duration) {
        let gap = now.saturating_sub(self.last_look);
        if gap >= STANDSTILL {
            self.latest = Some((now, gap));
        }
        self.last_look = now;
    }

    /// The length of a standstill that explains why links break at `now`, if there was one just before.
    #[must_use]
    pub fn explains(&self, now: Duration) -> Option<Duration> {
        let (ended, length) = self.latest?;
        (now.saturating_sub(ended) <= AFTERMATH).then_some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;
    use crate::ids::NodeId;
    use crate::proto::sim::{Machine, Network, Outbox, Random, Simulation};

    const MS: Duration = Duration::from_millis(1);
    /// As links do: a word every 250 ms, and silence is taken for death after 3.75 s.
    const PERIOD: Duration = Duration::from_millis(250);
    const SILENCE: Duration = Duration::from_millis(3750);

    /// A launcher and nodes that give each other up when they hear nothing.
    struct Process {
        own: Standstill,
        heard: Vec<Duration>,
        next: Duration,
        /// Whom it gave up, and whether it took the blame itself.
        verdicts: Vec<(NodeId, bool)>,
        is_launcher: bool,
        has_left: bool,
    }

    impl Machine for Process {
        type Message = ();

        fn receive(&mut self, from: NodeId, (): (), out: &mut Outbox<()>) {
            self.own.look(out.now());
            self.heard[from.as_usize()] = out.now();
        }

        fn wake(&mut self, out: &mut Outbox<()>) {
            let now = out.now();
            self.own.look(now);
            self.next = now + PERIOD;
            let others = if self.is_launcher { 1..self.heard.len() } else { 0..1 };
            for other in others {
                let id = NodeId(u16::try_from(other).unwrap());
                if !self.has_left {
                    out.send(id, Class::Control, ());
                }
                if now.saturating_sub(self.heard[other]) >= SILENCE && self.verdicts.iter().all(|v| v.0 != id)
                {
                    self.verdicts.push((id, self.own.explains(now).is_some()));
                    self.has_left |= !self.is_launcher;
                }
            }
        }

        fn timeout(&self) -> Option<Duration> {
            Some(self.next)
        }
    }

    /// The launcher's verdicts after a minute.
    fn verdicts(seed: u64, prepare: impl FnOnce(&mut Simulation<Process>, u16)) -> Vec<(NodeId, bool)> {
        let count = 2 + Random::new(seed).node(9).0;
        let machine = |n: u16| Process {
            own: Standstill::new(Duration::ZERO),
            heard: vec![Duration::ZERO; usize::from(count)],
            next: u32::from(n) * MS,
            verdicts: Vec::new(),
            is_launcher: n == 0,
            has_left: false,
        };
        let network =
            Network { delay_min: MS, delay_max: 30 * MS, lost_per_mille: 20, retransmission: 90 * MS };
        let mut sim = Simulation::new(seed, network, (0..count).map(machine));
        prepare(&mut sim, count);
        sim.run(Duration::from_secs(60), |_| false);
        sim.machine(NodeId::LAUNCHER).verdicts.clone()
    }

    #[test]
    fn a_launcher_that_stood_still_takes_the_blame_itself() {
        for seed in 0..100 {
            let mut all = 0;
            let found = verdicts(seed, |sim, count| {
                all = usize::from(count - 1);
                sim.freeze(NodeId::LAUNCHER, 10_000 * MS, Duration::from_secs(5 + seed % 20));
            });
            assert_eq!(found.len(), all, "seed {seed}: they waited in vain: {found:?}");
            assert!(found.iter().all(|(_, is_own)| *is_own), "seed {seed}: {found:?}");
        }
    }

    #[test]
    fn a_node_that_dies_or_freezes_is_blamed_and_no_other() {
        for seed in 0..100 {
            let found = verdicts(seed, |sim, _| match seed % 2 {
                0 => sim.kill(NodeId(1), 10_000 * MS),
                _ => sim.freeze(NodeId(1), 10_000 * MS, Duration::from_secs(20)),
            });
            assert_eq!(found, [(NodeId(1), false)], "seed {seed}");
        }
    }

    #[test]
    fn hiccups_of_three_seconds_cost_nobody() {
        for seed in 0..100 {
            let found = verdicts(seed, |sim, count| {
                sim.freeze(NodeId::LAUNCHER, 5000 * MS, 2900 * MS);
                sim.freeze(NodeId(count - 1), 20_000 * MS, 2900 * MS);
            });
            assert_eq!(found, [], "seed {seed}");
        }
    }

    #[test]
    fn a_standstill_explains_what_breaks_right_after_it_and_nothing_later() {
        let mut own = Standstill::new(Duration::ZERO);
        (0..40).for_each(|tick| own.look(tick * LOOK_PERIOD));
        assert_eq!(own.explains(10_000 * MS), None);
        own.look(16_750 * MS);
        assert_eq!(own.explains(16_800 * MS), Some(7000 * MS));
        own.look(16_000 * MS);
        assert_eq!(own.explains(16_800 * MS), Some(7000 * MS), "a clock that steps back does no harm");
        assert_eq!(own.explains(21_800 * MS), None);
    }
}
