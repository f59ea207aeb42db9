//! Single reductions, exchanges and broadcasts of a recording, put together from what each PE tells of them, on the launcher's
//! clock.

use super::clocks::Clock;
use super::sampled::Sampled;
use runtime::monitor::collectives::{Gathered, Stage};
use runtime::monitor::critical_path::Call;
use runtime::monitor::recording::Recording;
use runtime::monitor::wire::{MonitorEvent, RunInfo};
use std::collections::BTreeMap;

/// Something in which many PEs had a part; times in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Collective {
    pub(crate) of: Of,
    /// Which one of these, from 0; broadcasts have none that says it.
    pub(crate) number: Option<u32>,
    /// When the first element contributed, or sent.
    pub(crate) from: i64,
    /// When the result was there, or the last PE had all of it.
    pub(crate) to: i64,
    /// What became of it on each PE, in order of the PEs.
    pub(crate) parts: Vec<Part>,
}

/// What it is, and of whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Of {
    /// What these elements contributed came together.
    Reduction { chare_type: u16, is_section: bool, id: u64 },
    /// Each of these elements sent each other a part, which came to that entry method.
    Exchange { entry: u16, id: u64 },
    /// A message went to elements on many PEs, to that entry method.
    Broadcast { entry: u16 },
}

/// What it was on a PE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) pe: u32,
    /// It is what the PE's own elements did, not what others passed on to it.
    pub(crate) is_own: bool,
    pub(crate) from: i64,
    pub(crate) to: i64,
}

/// All that is known of those of the same elements, or to the same entry method.
#[derive(Debug, PartialEq)]
pub(crate) struct Sum {
    pub(crate) of: Of,
    /// How many are known one by one.
    pub(crate) told: usize,
    /// How long they took, all together.
    pub(crate) ns: i64,
    pub(crate) most_ns: i64,
    /// The PE that held it up most often, in how many of how many; none where only one PE has a part.
    pub(crate) last: Option<(u32, usize, usize)>,
}

impl Of {
    fn told_of(one: &Gathered) -> Self {
        let Gathered { over: id, is_section, chare_type, stage, .. } = *one;
        if stage == Stage::Exchange {
            return Self::Exchange { entry: chare_type, id };
        }
        Self::Reduction { chare_type, is_section, id }
    }

    pub(crate) fn told(self, run: &RunInfo) -> String {
        let name = |names: &[String], place: u16| {
            names.get(usize::from(place)).map_or_else(|| "?".into(), ToString::to_string)
        };
        match self {
            Self::Reduction { chare_type, is_section, .. } => {
                let section = if is_section { "a section of " } else { "" };
                format!("reduction over {section}{}", name(&run.chare_types, chare_type))
            }
            Self::Exchange { entry, .. } => format!("exchange by {}", name(&run.entry_names, entry)),
            Self::Broadcast { entry } => format!("broadcast to {}", name(&run.entry_names, entry)),
        }
    }
}

impl Collective {
    /// Those of a recording whose nodes have these clocks, with `first` as the beginning of time, in the order in which they began.
    pub(super) fn all(
        recording: &Recording,
        clocks: &BTreeMap<u16, Clock>,
        first: i64,
        sampled: &Sampled,
    ) -> Vec<Self> {
        let mut gathered: BTreeMap<(Of, u32), Vec<(Stage, Part)>> = BTreeMap::new();
        for recorded in &recording.events {
            let MonitorEvent::Collectives(told) = &recorded.event else { continue };
            let Some(clock) = clocks.get(&told.node) else { continue };
            for one in &told.gathered {
                let time = |uptime_ns: u64| clock.launcher_ns(uptime_ns) - first;
                let (from, to) = (time(one.began_ns), time(one.began_ns.saturating_add(one.took_ns)));
                let part = Part { pe: one.pe, is_own: one.stage != Stage::Others, from, to };
                gathered.entry((Of::told_of(one), one.number)).or_default().push((one.stage, part));
            }
        }
        let gathered =
            gathered.into_iter().filter_map(|((of, number), parts)| Self::gathered(of, number, &parts));
        let mut all: Vec<Self> = gathered.chain(Self::broadcasts(sampled)).collect();
        all.sort_by_key(|one| (one.from, one.of, one.number));
        all
    }

    /// A reduction whose result is known to have come, or an exchange.
    fn gathered(of: Of, number: u32, parts: &[(Stage, Part)]) -> Option<Self> {
        let end = |(stage, part): &(Stage, Part)| {
            (*stage != Stage::Own && *stage != Stage::Others).then_some(part.to)
        };
        let to = parts.iter().filter_map(end).max()?;
        let from = parts.iter().map(|(_, part)| part.from).min()?;
        let parts = parts.iter().filter(|(stage, _)| *stage != Stage::Result).map(|(_, part)| *part);
        // Clocks may be off by more than it took.
        Some(Self { of, number: Some(number), from, to: to.max(from), parts: parts.collect() }.in_order())
    }

    /// Messages that are known to have started something on more than one PE.
    fn broadcasts(Sampled { calls, sent }: &Sampled) -> impl Iterator<Item = Self> {
        let mut started: BTreeMap<(u32, u32), Vec<&Call>> = BTreeMap::new();
        for call in calls {
            if let Some(cause) = call.cause {
                started.entry((cause.pe, cause.number)).or_default().push(call);
            }
        }
        started.into_iter().filter_map(|(by, calls)| {
            let (first, rest) = calls.split_first()?;
            if rest.iter().all(|call| call.pe == first.pe) {
                return None;
            }
            // When the driver sends is not told.
            let began = calls.iter().map(|call| call.from).min()?;
            let from = sent.get(&by).map_or(began, |at| began.min(*at));
            let part = |call: &&Call| Part { pe: call.pe, is_own: true, from, to: call.from };
            let (of, to) = (Of::Broadcast { entry: first.name }, calls.iter().map(|call| call.from).max()?);
            Some(Self { of, number: None, from, to, parts: calls.iter().map(part).collect() }.in_order())
        })
    }

    fn in_order(mut self) -> Self {
        self.parts.sort_by_key(|part| (part.pe, part.from));
        self
    }

    fn own(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.is_own)
    }

    /// The PE for which the others waited: whose elements contributed last, sent last, or had the message last.
    pub(crate) fn last(&self) -> Option<u32> {
        let is_exchange = matches!(self.of, Of::Exchange { .. });
        self.own().max_by_key(|part| if is_exchange { part.from } else { part.to }).map(|part| part.pe)
    }
}

impl Sum {
    /// Of all these, those first that took longest.
    pub(crate) fn all(collectives: &[Collective]) -> Vec<Self> {
        let mut alike: BTreeMap<Of, Vec<&Collective>> = BTreeMap::new();
        collectives.iter().for_each(|one| alike.entry(one.of).or_default().push(one));
        let mut all: Vec<Self> = alike.into_iter().map(|(of, those)| Self::of(of, &those)).collect();
        all.sort_by_key(|sum| std::cmp::Reverse(sum.ns));
        all
    }

    fn of(of: Of, those: &[&Collective]) -> Self {
        let took = those.iter().map(|one| one.to - one.from);
        // Where not all PEs told of it, nobody knows who was last.
        let pes = those.iter().map(|one| one.own().count()).max().unwrap_or(0);
        let whole = those.iter().filter(|one| pes > 1 && one.own().count() == pes);
        let mut last: BTreeMap<u32, usize> = BTreeMap::new();
        whole.clone().filter_map(|one| one.last()).for_each(|pe| *last.entry(pe).or_default() += 1);
        let whole = whole.count();
        Self {
            of,
            told: those.len(),
            ns: took.clone().sum(),
            most_ns: took.max().unwrap_or(0),
            last: last.into_iter().max_by_key(|(_, count)| *count).map(|(pe, count)| (pe, count, whole)),
        }
    }
}
