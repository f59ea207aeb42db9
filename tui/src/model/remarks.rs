//! What is worth a line in the log of the window, with its time.

use std::collections::VecDeque;
use std::time::Duration;

use runtime::monitor::text;
use runtime::monitor::wire::{Balanced, RunInfo, Slowdown};

use crate::figures;

/// Remarks kept.
const REMARKS_MAX: usize = 1000;
/// Characters kept of a remark.
const REMARK_MAX: usize = 400;

/// How much a remark matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Note,
    Warning,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Remark {
    /// Age of the run.
    pub(crate) at: Duration,
    pub(crate) weight: Weight,
    pub(crate) text: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Remarks(VecDeque<Remark>);

impl Remarks {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// From the oldest on.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Remark> {
        self.0.iter()
    }

    /// Adds one behind all of its time and before.
    pub(crate) fn push(&mut self, at: Duration, weight: Weight, text: &str) {
        if self.0.len() >= REMARKS_MAX {
            self.0.pop_front();
        }
        let place = self.0.partition_point(|other| other.at <= at);
        self.0.insert(place, Remark { at, weight, text: text::clean_line(text, REMARK_MAX) });
    }

    /// Takes in what a new description of the run says that the one before did not.
    pub(crate) fn compare(&mut self, before: &RunInfo, now: &RunInfo, name: impl Fn(u16) -> String) {
        for slow in &now.slowdowns {
            let same = |other: &&Slowdown| {
                (other.node, other.since_s.to_bits()) == (slow.node, slow.since_s.to_bits())
            };
            let known = before.slowdowns.iter().find(same);
            if known.is_none_or(|known| known.until_s.is_none() && slow.until_s.is_some()) {
                let weight = if slow.until_s.is_none() { Weight::Warning } else { Weight::Note };
                self.push(
                    after(slow.until_s.unwrap_or(slow.since_s)),
                    weight,
                    &slow.sentence(&name(slow.node)),
                );
            }
        }
        for decision in &now.balanced {
            let same = |other: &&Balanced| other.at_s.to_bits() == decision.at_s.to_bits();
            let known = before.balanced.iter().find(same);
            if known.is_none_or(|known| known.after.is_none() && decision.after.is_some()) {
                self.push(after(decision.at_s), Weight::Note, &said(decision));
            }
        }
        if let Some(saved) =
            now.saved.filter(|saved| before.saved.is_none_or(|before| before.number != saved.number))
        {
            let bytes = figures::bytes(saved.bytes as f64);
            self.push(
                after(saved.at_s),
                Weight::Note,
                &format!("saved as checkpoint {} ({bytes})", saved.number),
            );
        }
    }
}

/// That time of the run, whatever number was told.
fn after(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// A decision to move chares, and what came of it.
pub(crate) fn said(decision: &Balanced) -> String {
    let Balanced { by, moves, bytes, before, expected, after, .. } = decision;
    let moves = figures::things(usize::try_from(*moves).unwrap_or(usize::MAX), "chare");
    let bytes = figures::bytes(*bytes as f64);
    let found = after.map_or_else(String::new, |after| format!(", found {after:.2}"));
    format!("{by} moves {moves} ({bytes}): imbalance {before:.2}, expected {expected:.2}{found}")
}
