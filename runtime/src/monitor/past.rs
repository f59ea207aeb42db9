//! What happened in a run before a viewer came, in memory that does not grow with the run: of a longer one ever fewer
//! snapshots, and the latest of all else. Counters are never reset, so what is left out costs resolution only.

use super::wire::{MonitorEvent, NodeSnapshot};
use std::collections::VecDeque;
use std::time::Duration;

/// States of PEs that are kept, each about 200 bytes: of four PEs all of the first seven minutes.
const PES_MAX: usize = 16_384;
/// Lines, phases, losses and remarks that are kept.
const WORDS_MAX: usize = 1000;

/// Takes events with their times, and tells them again.
#[derive(Debug)]
pub(super) struct Past {
    snapshots: Vec<(Duration, NodeSnapshot)>,
    /// One of so many of each node is kept.
    every: u64,
    pes: usize,
    words: VecDeque<(Duration, MonitorEvent)>,
    phase: Option<String>,
}

impl Default for Past {
    fn default() -> Self {
        Self { snapshots: Vec::new(), every: 1, pes: 0, words: VecDeque::new(), phase: None }
    }
}

impl Past {
    /// Keeps what happened at that time, which is not before any other.
    pub(super) fn take(&mut self, at: Duration, event: &MonitorEvent) {
        match event {
            MonitorEvent::Snapshot(snapshot) => self.take_snapshot(at, snapshot),
            MonitorEvent::Phase(phase) if self.phase.as_ref() == Some(&phase.name) => {}
            MonitorEvent::Phase(_)
            | MonitorEvent::Output(_)
            | MonitorEvent::NodeLost { .. }
            | MonitorEvent::Remark(_)
            | MonitorEvent::Saving(_)
            | MonitorEvent::NotSaved(_) => {
                if let MonitorEvent::Phase(phase) = event {
                    self.phase = Some(phase.name.clone());
                }
                // The last cost is of all checkpoints; who failed before it, or before another failure, tells nothing more.
                let is_saving = |event: &MonitorEvent| matches!(event, MonitorEvent::Saving(_));
                let fails = |event: &MonitorEvent| matches!(event, MonitorEvent::NotSaved(_));
                if is_saving(event) || fails(event) {
                    self.words.retain(|(_, word)| !(fails(word) || is_saving(word) && is_saving(event)));
                }
                if self.words.len() >= WORDS_MAX {
                    self.words.pop_front();
                }
                self.words.push_back((at, event.clone()));
            }
            _ => {}
        }
    }

    fn take_snapshot(&mut self, at: Duration, snapshot: &NodeSnapshot) {
        if !snapshot.sequence.is_multiple_of(self.every) {
            return;
        }
        // Rates of entries and traffic are those of the last seconds, which viewers see for themselves.
        self.snapshots.push((at, NodeSnapshot { profile: None, ..snapshot.clone() }));
        self.pes += snapshot.pes.len();
        // More nodes than can be thinned out have no past.
        while self.pes > PES_MAX && self.every < 1 << 32 {
            self.every *= 2;
            self.snapshots.retain(|(_, kept)| kept.sequence.is_multiple_of(self.every));
            self.pes = self.snapshots.iter().map(|(_, kept)| kept.pes.len()).sum();
        }
    }

    /// All that is kept, by its time; [`MonitorEvent::At`] comes first wherever that changes.
    pub(super) fn events(&self) -> impl Iterator<Item = MonitorEvent> {
        let mut words = self.words.iter().peekable();
        let mut snapshots = self.snapshots.iter().peekable();
        let mut before = None;
        let next = move || {
            let is_word = match (words.peek(), snapshots.peek()) {
                (Some(word), Some(snapshot)) => word.0 <= snapshot.0,
                (word, _) => word.is_some(),
            };
            let next = if is_word { words.next().cloned() } else { None };
            next.or_else(|| snapshots.next().map(|(at, kept)| (*at, MonitorEvent::Snapshot(kept.clone()))))
        };
        std::iter::from_fn(next).flat_map(move |(at, event)| {
            let time = (before.replace(at) != Some(at)).then(|| MonitorEvent::at(at));
            time.into_iter().chain([event])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::wire::{OutputLine, PeSnapshot, Phase, SavingCost};

    const SECOND: Duration = Duration::from_secs(1);

    fn snapshot(node: u16, sequence: u64, pes: usize) -> MonitorEvent {
        let pes = vec![PeSnapshot::default(); pes];
        MonitorEvent::Snapshot(NodeSnapshot { node, sequence, pes, ..NodeSnapshot::default() })
    }

    fn line(text: &str) -> MonitorEvent {
        MonitorEvent::Output(OutputLine { text: text.into(), ..OutputLine::default() })
    }

    #[test]
    fn all_is_told_again_in_its_order_with_its_times() {
        let mut past = Past::default();
        let phase = |done| MonitorEvent::Phase(Phase { name: "solving".into(), done, ..Phase::default() });
        let said = [snapshot(1, 1, 2), line("a"), phase(0), phase(1), snapshot(2, 1, 2), line("b")];
        for (second, event) in (0..).zip(&said) {
            past.take(SECOND * (second / 2), event);
        }
        let [first, a, solving, _, second, b] = said;
        let at = |s| MonitorEvent::at(SECOND * s);
        let told: Vec<_> = past.events().collect();
        assert_eq!(
            told,
            [at(0), a, first, at(1), solving, at(2), b, second],
            "a phase that goes on is no news"
        );
    }

    #[test]
    fn a_long_past_takes_no_more_memory_and_keeps_its_ends() {
        let mut past = Past::default();
        for n in 0..200_000u64 {
            past.take(SECOND * n as u32, &snapshot((n % 2) as u16, n / 2, 4));
            past.take(SECOND * n as u32, &line("again"));
        }
        let pes: usize = past.snapshots.iter().map(|(_, kept)| kept.pes.len()).sum();
        assert!((PES_MAX / 2..=PES_MAX).contains(&pes), "{pes}");
        assert_eq!((past.pes, past.words.len()), (pes, WORDS_MAX));
        for node in 0..2 {
            let of_node =
                past.snapshots.iter().filter(|(_, kept)| kept.node == node).map(|(_, kept)| kept.sequence);
            let gaps: Vec<u64> =
                of_node.collect::<Vec<_>>().windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(gaps.iter().all(|gap| *gap == past.every), "{gaps:?}");
        }
        assert!(past.snapshots[0].0 < SECOND * 2 && past.snapshots.last().unwrap().0 > SECOND * 199_000);
    }

    #[test]
    fn of_what_checkpoints_cost_the_last_word_counts() {
        let mut past = Past::default();
        let saving = |all_s| MonitorEvent::Saving(SavingCost { last_s: 1.0, all_s });
        past.take(SECOND, &line("a"));
        (1..=3).for_each(|n: u32| past.take(SECOND * n, &saving(f64::from(n))));
        let told: Vec<_> = past.events().collect();
        assert_eq!(told, [MonitorEvent::at(SECOND), line("a"), MonitorEvent::at(SECOND * 3), saving(3.0)]);
        let fails = MonitorEvent::NotSaved("there is no room".into());
        (4..=5).for_each(|n| past.take(SECOND * n, &fails));
        let told: Vec<_> = past.events().skip(2).collect();
        let times = [3, 5].map(|n| MonitorEvent::at(SECOND * n));
        assert_eq!(told, [times[0].clone(), saving(3.0), times[1].clone(), fails]);
        past.take(SECOND * 6, &saving(6.0));
        assert_eq!(past.events().last(), Some(saving(6.0)));
        assert_eq!(past.events().count(), 4, "that one failed before counts no more");
    }

    #[test]
    fn nodes_of_more_pes_than_are_kept_have_no_past() {
        let mut past = Past::default();
        (1..100).for_each(|n| past.take(SECOND, &snapshot(1, n, PES_MAX + 1)));
        assert_eq!((past.events().count(), past.pes), (0, 0));
    }
}
