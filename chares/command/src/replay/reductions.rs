//! Single reductions of a recording, put together from what each PE tells of them, on the launcher's clock.

use super::clocks::Clock;
use runtime::monitor::collectives::{Gathered, Stage};
use runtime::monitor::recording::Recording;
use runtime::monitor::wire::{MonitorEvent, RunInfo};
use std::collections::BTreeMap;

/// A reduction whose result is known to have come; times in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reduction {
    /// What its elements are.
    pub(crate) over: Over,
    /// Which one over them, from 0.
    pub(crate) number: u32,
    /// When the first element contributed.
    pub(crate) from: i64,
    /// When the result was there.
    pub(crate) to: i64,
    /// What came together on its way, in order of the PEs.
    pub(crate) stages: Vec<Part>,
}

/// The elements that a reduction is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Over {
    chare_type: u16,
    is_section: bool,
    id: u64,
}

/// What came together on a PE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) pe: u32,
    pub(crate) stage: Stage,
    pub(crate) from: i64,
    pub(crate) to: i64,
}

/// All that is known of the reductions over the same elements.
#[derive(Debug, PartialEq)]
pub(crate) struct Sum {
    pub(crate) over: Over,
    /// How many are known one by one.
    pub(crate) told: usize,
    /// How long they took from the first contribution to the result, all together.
    pub(crate) ns: i64,
    pub(crate) most_ns: i64,
    /// The PE that contributed last most often, in how many of how many; none where only one PE contributes.
    pub(crate) last: Option<(u32, usize, usize)>,
}

impl Over {
    pub(crate) fn told(self, run: &RunInfo) -> String {
        let name = run.chare_types.get(usize::from(self.chare_type)).map_or("?", String::as_str);
        if self.is_section { format!("a section of {name}") } else { name.to_owned() }
    }
}

impl Reduction {
    /// Those of a recording whose nodes have these clocks, with `first` as the beginning of time, in the order in which they began.
    pub(super) fn all(recording: &Recording, clocks: &BTreeMap<u16, Clock>, first: i64) -> Vec<Self> {
        let mut parts: BTreeMap<(Over, u32), Vec<Part>> = BTreeMap::new();
        for recorded in &recording.events {
            let MonitorEvent::Collectives(told) = &recorded.event else { continue };
            let Some(clock) = clocks.get(&told.node) else { continue };
            for one in &told.gathered {
                let Gathered { pe, over: id, is_section, chare_type, number, stage, began_ns, took_ns } =
                    *one;
                let time = |uptime_ns: u64| clock.launcher_ns(uptime_ns) - first;
                let (from, to) = (time(began_ns), time(began_ns.saturating_add(took_ns)));
                let over = Over { chare_type, is_section, id };
                parts.entry((over, number)).or_default().push(Part { pe, stage, from, to });
            }
        }
        let mut all: Vec<Self> = parts.into_iter().filter_map(|(of, stages)| Self::of(of, stages)).collect();
        all.sort_by_key(|reduction| (reduction.from, reduction.over, reduction.number));
        all
    }

    fn of((over, number): (Over, u32), mut stages: Vec<Part>) -> Option<Self> {
        stages.sort_by_key(|part| (part.pe, part.from));
        let result = stages.iter().find(|part| part.stage == Stage::Result)?;
        let from = stages.iter().map(|part| part.from).min()?;
        // Clocks may be off by more than it took.
        Some(Self { over, number, from, to: result.to.max(from), stages })
    }

    fn own(&self) -> impl Iterator<Item = &Part> {
        self.stages.iter().filter(|part| part.stage == Stage::Own)
    }

    /// The PE whose elements contributed last.
    pub(crate) fn last(&self) -> Option<u32> {
        self.own().max_by_key(|part| part.to).map(|part| part.pe)
    }
}

impl Sum {
    /// Of all these, those first that took longest.
    pub(crate) fn all(reductions: &[Reduction]) -> Vec<Self> {
        let mut by_over: BTreeMap<Over, Vec<&Reduction>> = BTreeMap::new();
        reductions.iter().for_each(|one| by_over.entry(one.over).or_default().push(one));
        let mut all: Vec<Self> = by_over.into_iter().map(|(over, those)| Self::of(over, &those)).collect();
        all.sort_by_key(|sum| std::cmp::Reverse(sum.ns));
        all
    }

    fn of(over: Over, reductions: &[&Reduction]) -> Self {
        let took = reductions.iter().map(|one| one.to - one.from);
        // Of a reduction of which not all PEs told, nobody knows who was last.
        let pes = reductions.iter().map(|one| one.own().count()).max().unwrap_or(0);
        let whole = reductions.iter().filter(|one| pes > 1 && one.own().count() == pes);
        let mut last: BTreeMap<u32, usize> = BTreeMap::new();
        whole.clone().filter_map(|one| one.last()).for_each(|pe| *last.entry(pe).or_default() += 1);
        let whole = whole.count();
        Self {
            over,
            told: reductions.len(),
            ns: took.clone().sum(),
            most_ns: took.max().unwrap_or(0),
            last: last.into_iter().max_by_key(|(_, count)| *count).map(|(pe, count)| (pe, count, whole)),
        }
    }
}
