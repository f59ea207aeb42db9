//! What the viewer knows about the run. Pure: events and the time go in, questions are answered; no clock, no
//! terminal. Memory is bounded by the limits below whatever comes in.
#![deny(clippy::disallowed_methods)]

pub(crate) mod history;
pub(crate) mod node;
pub(crate) mod path;
pub(crate) mod profile;
pub(crate) mod progress;
pub(crate) mod remarks;
pub(crate) mod slowest;
mod waits;
pub(crate) mod why;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use runtime::monitor::map::{self, Map};
use runtime::monitor::wire::{
    LeftAt, MonitorEvent, NodeInfo, OutputLine, Phase, RunInfo, SavingCost, Slowdown,
};
use runtime::monitor::{hosts, text};

use self::history::SECOND;
use self::node::{Loss, Node, Pe};
use self::path::Recent;
use self::progress::Progress;
use self::remarks::{Remarks, Weight};

/// Nodes kept; more are counted as missed.
const NODES_MAX: usize = 4096;
/// PEs kept over all nodes.
const PES_MAX: usize = 16_384;
/// Lines of output kept.
const LINES_MAX: usize = 2000;
/// Lines kept of what a run came to.
const RESULT_MAX: usize = 200;
/// Characters kept of a line.
const LINE_MAX: usize = 400;
/// Names of entry methods, or of chare types, kept.
const NAMES_MAX: usize = 8192;

/// A node that is idle for more than this part of these last seconds has no work.
const IDLE: f64 = 0.9;
const IDLE_SPAN: i64 = 2 * SECOND;

/// How the run ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct End {
    /// Exit code; `None` when the feed broke off before the run told it.
    pub(crate) code: Option<i32>,
    pub(crate) summary: String,
    pub(crate) at: Duration,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Model {
    pub(crate) run: RunInfo,
    pub(crate) nodes: BTreeMap<u16, Node>,
    pub(crate) progress: Option<Progress>,
    /// Whether the program has said that its initialisation is over: something has been computed since. Many never say it, so
    /// until then initialising is not told from computing.
    pub(crate) is_init_over: bool,
    pub(crate) lines: VecDeque<OutputLine>,
    pub(crate) remarks: Remarks,
    /// Single entry methods and messages of the last seconds.
    pub(crate) recent: Recent,
    /// What checkpoints have cost so far.
    pub(crate) saving: Option<SavingCost>,
    /// Whether the checkpoint that was due last was not taken.
    pub(crate) is_not_saved: bool,
    /// Events that this viewer missed.
    pub(crate) dropped: u64,
    pub(crate) dropped_at: Option<Duration>,
    /// What the program shows.
    pub(crate) maps: Vec<Map>,
    /// What the run came to, by lines.
    pub(crate) result: Vec<String>,
    pub(crate) end: Option<End>,
    /// The viewer's clock.
    pub(crate) now: Duration,
}

impl Model {
    /// Takes one event in; `now` is the viewer's time since it began.
    pub(crate) fn apply(&mut self, event: MonitorEvent, now: Duration) {
        self.tick(now);
        match event {
            MonitorEvent::Run(run) => self.apply_run(run),
            MonitorEvent::Snapshot(snapshot) => {
                self.is_init_over |= snapshot.pes.iter().any(|pe| pe.compute_ns > 0);
                let allowed = PES_MAX.saturating_sub(self.pes_without(snapshot.node));
                if let Some(node) = self.node_mut(snapshot.node) {
                    node.apply(snapshot, now, allowed);
                }
            }
            MonitorEvent::Phase(phase) => {
                let (name, detail) = (text::clean_line(&phase.name, 80), text::clean_line(&phase.detail, 80));
                let phase = Phase { name, detail, ..phase };
                if self.progress.as_ref().is_none_or(|before| before.phase.name != phase.name) {
                    self.remark(Weight::Note, &format!("phase: {}", phase.name));
                }
                match &mut self.progress {
                    Some(progress) => progress.take(phase, now),
                    None => self.progress = Some(Progress::new(phase, now)),
                }
            }
            MonitorEvent::Output(line) => {
                if self.lines.len() >= LINES_MAX {
                    self.lines.pop_front();
                }
                if line.is_error {
                    self.remark(Weight::Warning, &format!("[{}] {}", self.name_of(line.node), line.text));
                }
                self.lines.push_back(OutputLine { text: text::clean_line(&line.text, LINE_MAX), ..line });
            }
            MonitorEvent::NodeLost { node, reason } => {
                let loss = Loss { at: now, reason: text::clean_line(&reason, LINE_MAX), is_meant: false };
                self.remark(Weight::Warning, &format!("{} is lost: {reason}", self.name_of(node)));
                if let Some(node) = self.node_mut(node) {
                    node.loss.get_or_insert(loss);
                }
            }
            MonitorEvent::Dropped(count) => {
                self.dropped = self.dropped.saturating_add(count);
                self.dropped_at = Some(now);
                self.remark(Weight::Warning, &format!("{count} events were missed"));
            }
            MonitorEvent::Samples(samples) => {
                if let Some(node) = self.nodes.get_mut(&samples.node) {
                    samples.ran.iter().for_each(|ran| node.slowest.take_sample(ran));
                    self.recent.apply(samples, node.offset);
                }
            }
            MonitorEvent::Clocks(_) | MonitorEvent::At(_) | MonitorEvent::Collectives(_) => {}
            MonitorEvent::Heaviest(heaviest) => {
                if let Some(node) = self.nodes.get_mut(&heaviest.node) {
                    node.take_heaviest(heaviest.chares);
                }
            }
            MonitorEvent::Remark(remark) => {
                let weight = if remark.is_advice { Weight::Warning } else { Weight::Note };
                self.remark(weight, &remark.text);
            }
            MonitorEvent::Saving(cost) => (self.saving, self.is_not_saved) = (Some(cost), false),
            // Why is said by a line of the launcher.
            MonitorEvent::NotSaved(_) => self.is_not_saved = true,
            MonitorEvent::Map(map) => map::replace(&mut self.maps, map),
            MonitorEvent::Result(result) => {
                // A table has a line for each node; what comes after it says most.
                let skipped = result.lines().count().saturating_sub(RESULT_MAX);
                let lines = result.lines().skip(skipped);
                self.result = lines.map(|line| text::clean_line(line, LINE_MAX)).collect();
            }
            MonitorEvent::Ended { code, summary } => self.finish(Some(code), &summary),
        }
    }

    /// The feed is at its end, with the exit code if the run told it.
    pub(crate) fn finish(&mut self, code: Option<i32>, summary: &str) {
        if self.end.is_none() {
            let weight = if code == Some(0) { Weight::Note } else { Weight::Warning };
            self.remark(weight, &format!("ended: {summary}"));
            let summary = text::clean_line(summary, LINE_MAX);
            self.end = Some(End { code, summary, at: self.now });
        }
    }

    fn remark(&mut self, weight: Weight, text: &str) {
        let at = self.elapsed();
        self.remarks.push(at, weight, text);
    }

    /// Time goes on; it stands still once the run is over.
    pub(crate) fn tick(&mut self, now: Duration) {
        if self.end.is_none() {
            self.now = self.now.max(now);
        }
    }

    /// Right end of the time axis, nanoseconds: the newest that is known, or a second ago when all nodes are silent.
    pub(crate) fn edge(&self) -> i64 {
        let now = i64::try_from(self.now.as_nanos()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
        let newest = self.nodes.values().filter_map(Node::newest).max();
        newest.unwrap_or(now).max(now.saturating_sub(SECOND)).min(now.max(1))
    }

    /// How long the run has lasted: the age of its oldest node.
    pub(crate) fn elapsed(&self) -> Duration {
        let oldest = self.nodes.values().filter(|node| node.heard.is_some()).map(|node| {
            let silent = if node.loss.is_some() { Duration::ZERO } else { self.silence(node) };
            Duration::from_nanos(u64::try_from(node.uptime()).unwrap_or(0)).saturating_add(silent)
        });
        oldest.max().unwrap_or(self.now)
    }

    /// Time since the last sign of life of that node.
    pub(crate) fn silence(&self, node: &Node) -> Duration {
        node.heard.map_or(Duration::ZERO, |heard| self.now.saturating_sub(heard))
    }

    /// Sum of node speeds over that of the fastest node, no more than their cores are worth; `None` until speeds are measured.
    pub(crate) fn equivalents(&self) -> Option<f64> {
        hosts::equivalents(self.nodes.values().filter(|node| !node.has_left()).map(|node| &node.info))
    }

    /// Messages and bytes per second between nodes, counted where they leave.
    pub(crate) fn traffic(&self) -> (f64, f64) {
        self.nodes.values().filter(|node| node.loss.is_none()).fold((0.0, 0.0), |sum, node| {
            let rates = node.rates();
            (sum.0 + rates.sent_messages, sum.1 + rates.sent_bytes)
        })
    }

    /// The slowdowns that go on, the worst first. A node that has hardly anything to do slows nobody down.
    pub(crate) fn slowdowns(&self) -> Vec<&Slowdown> {
        let goes_on = |one: &&Slowdown| one.until_s.is_none() && !self.is_without_work(one.node);
        let mut slowdowns: Vec<_> = self.run.slowdowns.iter().filter(goes_on).collect();
        slowdowns.sort_by(|one, other| one.delivered.total_cmp(&other.delivered));
        slowdowns
    }

    /// That of a node.
    pub(crate) fn slowdown_of(&self, node: u16) -> Option<&Slowdown> {
        self.slowdowns().into_iter().find(|one| one.node == node)
    }

    /// Whether the PEs of a node were idle for nearly all of the last seconds.
    fn is_without_work(&self, node: u16) -> bool {
        let edge = self.edge();
        let recent = self.nodes.get(&node).map(|node| node.between(edge - IDLE_SPAN, edge));
        recent.is_some_and(|times| times.share(times.idle) > IDLE)
    }

    pub(crate) fn pe_count(&self) -> usize {
        self.nodes.values().map(|node| node.pes.len()).sum()
    }

    /// A PE by its number.
    pub(crate) fn pe(&self, number: u32) -> Option<(&Node, &Pe)> {
        self.nodes
            .values()
            .find_map(|node| node.pes.iter().find(|pe| pe.last.pe == number).map(|pe| (node, pe)))
    }

    fn apply_run(&mut self, run: RunInfo) {
        for info in run.nodes.iter().take(NODES_MAX) {
            let info = NodeInfo {
                name: text::clean_line(&info.name, 64),
                host: text::clean_line(&info.host, 64),
                cpu: text::clean_line(&info.cpu, 64),
                allowed_cores: text::clean_line(&info.allowed_cores, 64),
                pe_speeds: info.pe_speeds.iter().copied().take(PES_MAX).collect(),
                pe_parts: info.pe_parts.iter().copied().take(PES_MAX).collect(),
                share: info.share.filter(|share| share.is_finite()),
                holds: text::clean_line(&info.holds, 40),
                ..info.clone()
            };
            let (number, now) = (info.node, self.now);
            if let Some(node) = self.node_mut(number) {
                let loss = |left: &LeftAt| Loss {
                    at: Duration::try_from_secs_f64(left.at_s).unwrap_or(now),
                    reason: text::clean_line(&left.how, LINE_MAX),
                    is_meant: true,
                };
                let leaves = node.loss.is_none().then_some(info.left.as_ref()).flatten();
                let said = leaves.map(|left| format!("{} has left: {}", info.name, left.how));
                node.loss = node.loss.take().or_else(|| info.left.as_ref().map(loss));
                node.info = info;
                said.into_iter().for_each(|text| self.remark(Weight::Note, &text));
            }
        }
        let nodes = &self.nodes;
        let name = |node| nodes.get(&node).map_or_else(|| format!("node{node}"), Node::name);
        self.remarks.compare(&self.run, &run, name);
        let names = |names: &[String]| -> Vec<String> {
            names.iter().take(NAMES_MAX).map(|name| text::clean_line(name, 80)).collect()
        };
        self.run = RunInfo {
            chare_types: names(&run.chare_types),
            entry_names: names(&run.entry_names),
            run_id: text::clean_line(&run.run_id, 64),
            program: text::clean_line(&run.program, 64),
            app: text::clean_line(&run.app, 64),
            arguments: run
                .arguments
                .iter()
                .take(64)
                .map(|argument| text::clean_line(argument, 200))
                .collect(),
            balance: text::clean_line(&run.balance, 64),
            nodes: Vec::new(),
            ..run
        };
    }

    fn node_mut(&mut self, number: u16) -> Option<&mut Node> {
        if self.nodes.len() >= NODES_MAX && !self.nodes.contains_key(&number) {
            self.dropped = self.dropped.saturating_add(1);
            return None;
        }
        let node = self.nodes.entry(number).or_default();
        node.last.node = number;
        Some(node)
    }

    fn pes_without(&self, number: u16) -> usize {
        self.nodes.iter().filter(|(other, _)| **other != number).map(|(_, node)| node.pes.len()).sum()
    }
}
