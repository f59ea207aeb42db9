//! A recording as series over the launcher's time: what each PE did between two snapshots, and the phases of the run.

use super::clocks::{Clock, clocks};
use super::collectives::Collective;
use super::sampled::Sampled;
use runtime::monitor::gaps;
use runtime::monitor::recording::Recording;
use runtime::monitor::wire::{Balanced, MonitorEvent, NodeInfo, NodeSnapshot, PeSnapshot, Phase, RunInfo};
use std::collections::BTreeMap;

/// All that a recording holds, with times in nanoseconds since the first that is known.
pub(crate) struct Series<'a> {
    pub(crate) run: RunInfo,
    pub(crate) nodes: Vec<NodeSeries<'a>>,
    pub(crate) phases: Vec<PhaseSeries<'a>>,
    /// The end of what is known.
    pub(crate) end_ns: i64,
    /// How the run ended: exit code and sentence; `None` if the recording breaks off.
    pub(crate) ended: Option<(i32, &'a str)>,
    /// Nodes that were lost: when, which, why.
    pub(crate) lost: Vec<(i64, u16, &'a str)>,
    /// Decisions to move chares, and when they were made.
    pub(crate) decisions: Vec<(i64, Balanced)>,
    pub(crate) sampled: Sampled,
    pub(crate) collectives: Vec<Collective>,
}

/// A node over time.
pub(crate) struct NodeSeries<'a> {
    pub(crate) node: u16,
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) clock: Clock,
    /// Snapshots and their times, without those that were overtaken.
    pub(crate) snapshots: Vec<(i64, &'a NodeSnapshot)>,
    pub(crate) pes: Vec<PeSeries<'a>>,
}

/// A PE over time.
pub(crate) struct PeSeries<'a> {
    pub(crate) pe: u32,
    pub(crate) spans: Vec<Span<'a>>,
}

/// What a PE did between two snapshots.
#[derive(Clone, Copy)]
pub(crate) struct Span<'a> {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) spent: Times,
    /// The snapshot at its end.
    pub(crate) last: &'a PeSnapshot,
}

/// Nanoseconds in each state; they may not add up to the whole time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Times {
    pub(crate) compute: u64,
    pub(crate) overhead: u64,
    pub(crate) init: u64,
    pub(crate) core_wait: u64,
    /// By its own share or a quota.
    pub(crate) throttled: u64,
    /// The part of that which was by a quota.
    pub(crate) quota: u64,
    pub(crate) idle: u64,
}

/// A phase of the application.
pub(crate) struct PhaseSeries<'a> {
    pub(crate) from: i64,
    pub(crate) to: i64,
    first: &'a Phase,
    /// When it was how far then.
    later: Vec<(i64, &'a Phase)>,
}

impl Times {
    pub(crate) fn of(pe: &PeSnapshot) -> Self {
        Self {
            compute: pe.compute_ns,
            overhead: pe.overhead_ns,
            init: pe.init_ns,
            core_wait: pe.core_wait_ns,
            throttled: pe.throttled_ns.saturating_add(pe.quota_ns),
            quota: pe.quota_ns,
            idle: pe.idle_ns,
        }
    }

    /// What was added since `earlier`; a counter that went backwards counts as standing still.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            compute: self.compute.saturating_sub(earlier.compute),
            overhead: self.overhead.saturating_sub(earlier.overhead),
            init: self.init.saturating_sub(earlier.init),
            core_wait: self.core_wait.saturating_sub(earlier.core_wait),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            quota: self.quota.saturating_sub(earlier.quota),
            idle: self.idle.saturating_sub(earlier.idle),
        }
    }

    /// Computing, runtime, initialising, waiting for a core, being throttled and idling as parts of all time; nothing if there
    /// was none.
    pub(crate) fn shares(self) -> [f64; 6] {
        let all = [self.compute, self.overhead, self.init, self.core_wait, self.throttled, self.idle];
        let all = all.map(|time| time as f64);
        let total: f64 = all.iter().sum();
        all.map(|time| if total > 0.0 { time / total } else { 0.0 })
    }
}

impl Span<'_> {
    fn in_gaps(&self) -> gaps::Span {
        let Times { compute, overhead, init, core_wait: no_core, throttled, quota, idle } = self.spent;
        let worked = compute.saturating_add(init).saturating_add(overhead);
        let spent = gaps::Spent { worked, no_core, quota, throttled: throttled.saturating_sub(quota), idle };
        gaps::Span { from: self.from, to: self.to, spent }
    }
}

impl<'a> Series<'a> {
    /// The series of a recording.
    pub(crate) fn of(recording: &'a Recording) -> Self {
        let clocks = clocks(&recording.events);
        // The nodes began before the first event, most likely.
        let first = clocks.values().map(|clock| clock.launcher_ns(0)).min().unwrap_or(0).min(0);
        let sampled = Sampled::of(recording, &clocks, first);
        let mut series = Self {
            run: RunInfo::default(),
            nodes: Vec::new(),
            phases: Vec::new(),
            end_ns: i64::try_from(recording.duration().as_nanos()).unwrap_or(i64::MAX / 4) - first,
            ended: None,
            lost: Vec::new(),
            decisions: Vec::new(),
            collectives: Collective::all(recording, &clocks, first, &sampled),
            sampled,
        };
        let mut snapshots: BTreeMap<u16, Vec<(i64, &NodeSnapshot)>> = BTreeMap::new();
        for recorded in &recording.events {
            let at = i64::try_from(recorded.at.as_nanos()).unwrap_or(i64::MAX / 4) - first;
            match &recorded.event {
                MonitorEvent::Run(run) => {
                    series.run = run.clone();
                    series.take_decisions(at, first, &run.balanced);
                }
                MonitorEvent::Snapshot(snapshot) => {
                    let time =
                        clocks.get(&snapshot.node).map_or(at, |c| c.launcher_ns(snapshot.uptime_ns) - first);
                    let all = snapshots.entry(snapshot.node).or_default();
                    if all.last().is_none_or(|(last, _)| *last < time) {
                        all.push((time, snapshot));
                    }
                }
                MonitorEvent::Phase(phase) => series.take_phase(at, phase),
                MonitorEvent::NodeLost { node, reason } => series.lost.push((at, *node, reason)),
                MonitorEvent::Ended { code, summary } => series.ended = Some((*code, summary)),
                MonitorEvent::Output(_)
                | MonitorEvent::Dropped(_)
                | MonitorEvent::Clocks(_)
                | MonitorEvent::Samples(_)
                | MonitorEvent::At(_)
                | MonitorEvent::Result(_)
                | MonitorEvent::Map(_)
                | MonitorEvent::Remark(_)
                | MonitorEvent::Heaviest(_)
                | MonitorEvent::Saving(_)
                | MonitorEvent::Collectives(_)
                | MonitorEvent::NotSaved(_) => {}
            }
        }
        for (node, snapshots) in snapshots {
            let clock = clocks.get(&node).copied().unwrap_or_default();
            let info = series.run.nodes.iter().find(|info| info.node == node);
            let begin = clock.launcher_ns(0) - first;
            series.nodes.push(NodeSeries::of(node, info, clock, begin, snapshots));
        }
        let newest = series.nodes.iter().filter_map(|node| node.snapshots.last()).map(|(at, _)| *at).max();
        series.end_ns = series.end_ns.max(newest.unwrap_or(0)).max(1);
        if let Some(phase) = series.phases.last_mut() {
            phase.to = series.end_ns;
        }
        series
    }

    /// What the PEs did between two snapshots.
    pub(super) fn spans(&self) -> impl Iterator<Item = (u32, Vec<gaps::Span>)> {
        let pes = self.nodes.iter().flat_map(|node| &node.pes);
        pes.map(|pe| (pe.pe, pe.spans.iter().map(Span::in_gaps).collect()))
    }

    /// Takes decisions that are told at some time, of which some may have been told before, without what came of them.
    fn take_decisions(&mut self, at: i64, first: i64, told: &[Balanced]) {
        for decision in told {
            let is_same = |(_, known): &&mut (i64, Balanced)| known.at_s.to_bits() == decision.at_s.to_bits();
            match self.decisions.iter_mut().rev().find(is_same) {
                Some((_, known)) => known.after = decision.after,
                // What is not a number is 0.
                None => {
                    let made = ((decision.at_s * 1e9) as i64).saturating_sub(first);
                    self.decisions.push((made.clamp(0, at.max(0)), decision.clone()));
                }
            }
        }
    }

    fn take_phase(&mut self, at: i64, phase: &'a Phase) {
        if let Some(last) = self.phases.last_mut() {
            last.to = at;
            if last.newest().goes_on(phase) {
                last.later.push((at, phase));
                return;
            }
        }
        self.phases.push(PhaseSeries { from: at, to: at, first: phase, later: Vec::new() });
    }
}

impl<'a> PhaseSeries<'a> {
    /// How far it got.
    pub(crate) fn newest(&self) -> &'a Phase {
        self.later.last().map_or(self.first, |(_, phase)| phase)
    }

    /// When it was how far.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (i64, &'a Phase)> {
        std::iter::once((self.from, self.first)).chain(self.later.iter().copied())
    }
}

impl<'a> NodeSeries<'a> {
    fn of(
        node: u16,
        info: Option<&NodeInfo>,
        clock: Clock,
        begin: i64,
        snapshots: Vec<(i64, &'a NodeSnapshot)>,
    ) -> Self {
        let mut pes: BTreeMap<u32, PeSeries<'a>> = BTreeMap::new();
        let mut before = begin;
        for (at, snapshot) in &snapshots {
            for pe in &snapshot.pes {
                let series = pes.entry(pe.pe).or_insert_with(|| PeSeries { pe: pe.pe, spans: Vec::new() });
                // A sound node lists each of its PEs once.
                if series.spans.last().is_some_and(|span| span.to >= *at) {
                    continue;
                }
                let earlier = series.spans.last().map(|span| Times::of(span.last)).unwrap_or_default();
                let spent = Times::of(pe).since(earlier);
                series.spans.push(Span { from: before.min(*at), to: *at, spent, last: pe });
            }
            before = *at;
        }
        let name = info.map(|info| info.name.clone()).filter(|name| !name.is_empty());
        Self {
            node,
            name: name.unwrap_or_else(|| format!("node{node}")),
            host: info.map(|info| info.host.clone()).unwrap_or_default(),
            clock,
            snapshots,
            pes: pes.into_values().collect(),
        }
    }
}
