//! Where a launcher's events meet its viewers. A viewer that is too slow loses events and is told how many, but those in the
//! launcher lose no line that a node has printed.

use super::balancing_cost::BalancingCost;
use super::clock::Clock;
use super::map::{self, Map};
use super::pace::Pace;
use super::past::Past;
use super::wire::{MonitorEvent, NodeSnapshot, OutputLine, Phase, Remark, RunInfo, Slowdown};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Events that a viewer may be behind before it loses some.
const BEHIND_MAX: usize = 4096;
/// Lines that are kept while nobody is there to see them: a few panics with all of where they happened.
const UNSEEN_MAX: usize = 1024;
/// So many things are found out at most.
const FOUND_MAX: usize = 64;
/// The latest slowdowns that are kept.
const SLOWDOWNS_MAX: usize = 256;

/// Distributes the events of one run.
#[derive(Debug)]
pub struct Hub {
    state: Mutex<State>,
    begun: Instant,
}

#[derive(Debug, Default)]
struct State {
    info: RunInfo,
    latest: BTreeMap<u16, NodeSnapshot>,
    paces: BTreeMap<u16, Pace>,
    clocks: BTreeMap<u16, Clock>,
    past: Past,
    phase: Option<Phase>,
    /// In the log, from the first word of the phase to the first of the next.
    span: Option<tracing::Span>,
    /// Sum of the progress of all PEs when the phase began, if snapshots tell how far the phase is.
    counted_from: Option<u64>,
    /// When the phase began.
    phase_began: Duration,
    /// Sum of the progress of all PEs now.
    progress: u64,
    ended: Option<MonitorEvent>,
    /// What was remarked, and what of that the hub and the launcher have found out.
    remarks: BTreeSet<String>,
    found: Vec<String>,
    /// What the program shows, each as it was last.
    maps: Vec<Map>,
    balancing: BalancingCost,
    viewers: Vec<Viewer>,
    /// Lines that nodes printed when nobody was there to see them: a run begins before its viewers do.
    unseen: Vec<MonitorEvent>,
}

#[derive(Debug)]
struct Viewer {
    events: SyncSender<MonitorEvent>,
    dropped: u64,
    wants_maps: bool,
    /// Whether lines that nodes have printed wait for room, and those that do.
    keeps_lines: bool,
    waiting: VecDeque<MonitorEvent>,
}

impl Hub {
    /// A hub for the run that `info` describes.
    #[must_use]
    pub fn new(info: RunInfo) -> Self {
        Self { state: Mutex::new(State { info, ..State::default() }), begun: Instant::now() }
    }

    /// Time since the hub was made: the launcher's clock in [`ClockReading`](super::wire::ClockReading) and recordings.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The run as last described.
    #[must_use]
    pub fn info(&self) -> RunInfo {
        self.lock().info.clone()
    }

    /// Changes the description of the run and tells the viewers.
    pub fn describe(&self, change: impl FnOnce(&mut RunInfo)) {
        let mut state = self.lock();
        change(&mut state.info);
        let event = MonitorEvent::Run(state.info.clone());
        state.distribute(&event);
    }

    /// What balancing costs.
    pub fn set_balancing_cost(&self, cost: BalancingCost) {
        self.lock().balancing = cost;
    }

    /// What balancing has cost so far.
    #[must_use]
    pub fn balancing_cost(&self) -> BalancingCost {
        self.lock().balancing
    }

    /// Seconds until the phase will be over, if what is done is counted and goes on at this rate. `None` if nobody counts or
    /// nothing has been done yet.
    #[must_use]
    pub fn left_s(&self) -> Option<f64> {
        let state = self.lock();
        state.left_s(self.now())
    }

    /// Tells all viewers what there is to say of the run.
    pub fn note(&self, text: String) {
        self.publish(MonitorEvent::Output(OutputLine { node: 0, is_error: false, text }));
    }

    /// Tells all viewers what should be mended, though the run goes on without.
    pub fn warn(&self, text: String) {
        self.publish(MonitorEvent::Output(OutputLine { node: 0, is_error: true, text }));
    }

    /// Tells all viewers.
    pub fn publish(&self, event: MonitorEvent) {
        let mut state = self.lock();
        match &event {
            MonitorEvent::Snapshot(snapshot) => {
                // One that was asked for may overtake those that come by themselves.
                if state.latest.get(&snapshot.node).is_some_and(|last| last.sequence > snapshot.sequence) {
                    return;
                }
                let before = state.latest.remove(&snapshot.node);
                let progress_before = before.as_ref().map_or(0, progress);
                state.latest.insert(snapshot.node, snapshot.clone().after(before));
                // Counters of a node that is wrong may do anything, but not end the launcher.
                state.progress =
                    state.progress.wrapping_sub(progress_before).wrapping_add(progress(snapshot));
                state.follow(snapshot);
                state.follow_clock(snapshot, self.now());
            }
            MonitorEvent::Phase(phase) => {
                if state.phase.as_ref().is_none_or(|before| before.name != phase.name) {
                    // The one before it ends first.
                    state.span = None;
                    state.span = Some(tracing::info_span!("phase", title = phase.name));
                }
                (state.phase, state.counted_from) = (Some(phase.clone()), None);
                state.phase_began = self.now();
            }
            MonitorEvent::Ended { .. } => {
                state.span = None;
                state.ended = Some(event.clone());
            }
            // Nobody wants to hear the same twice: what was said at once belongs to the result, too.
            MonitorEvent::Remark(remark) if !state.remarks.insert(remark.text.clone()) => return,
            MonitorEvent::Map(map) => map::replace(&mut state.maps, map.clone()),
            _ => {}
        }
        state.past.take(self.now(), &event);
        state.distribute(&event);
        state.advance();
        if state.ended.is_some() {
            // Nothing follows: a viewer that has no room for the last event learns it from its channel's end.
            state.viewers.drain(..).for_each(Viewer::ends);
        }
    }

    /// Begins a phase of `total` units. How many are done is what snapshots say from now on of the progress of all
    /// PEs, which was `before` when it began.
    pub fn count(&self, name: String, total: u64, before: u64) {
        self.publish(MonitorEvent::Phase(Phase { name, total, ..Phase::default() }));
        self.lock().counted_from = Some(before);
    }

    /// A new viewer's events: first what is known, then what happens; no [maps](MonitorEvent::Map). Who is slow loses some, but no
    /// line that a node has printed: those wait for him, as those do that were printed before anybody was there.
    pub fn subscribe(&self) -> Receiver<MonitorEvent> {
        self.lock().subscribe(&[], (false, true))
    }

    /// The same with maps, those that were shown last among what is known. As long as the viewer is there the program is
    /// [asked for them](Self::shows_maps).
    pub fn subscribe_to_maps(&self) -> Receiver<MonitorEvent> {
        self.lock().subscribe(&[], (true, true))
    }

    /// Whether anybody would see a map now: otherwise none need be made.
    #[must_use]
    pub fn shows_maps(&self) -> bool {
        self.lock().viewers.iter().any(|viewer| viewer.wants_maps)
    }

    /// The same as with maps, and before that what has happened since the run began to be watched, as far as it is
    /// remembered: of a long run ever fewer snapshots. Who is slow loses lines, too, as it may be far away and not look at all.
    pub fn subscribe_late(&self) -> Receiver<MonitorEvent> {
        let mut state = self.lock();
        let past: Vec<_> = state.past.events().chain([MonitorEvent::at(self.now())]).collect();
        state.subscribe(&past, (true, false))
    }

    /// Tells all viewers and the report what the launcher has found out, in a sentence without its end.
    pub fn find(&self, text: String) {
        let now = self.now();
        self.lock().find(text, now);
    }

    /// What the hub and the launcher have found out, in sentences for the report.
    #[must_use]
    pub fn found(&self) -> Vec<String> {
        self.lock().found.clone()
    }

    /// How far the run is, in words such as `multiplying 12 of 40`; empty while nothing is known.
    #[must_use]
    pub fn progress(&self) -> String {
        match &self.lock().phase {
            Some(phase) if phase.total > 0 => format!("{} {} of {}", phase.name, phase.done, phase.total),
            Some(phase) => phase.name.clone(),
            None => String::new(),
        }
    }

    /// How much of the present phase is done, in its units; 0 while nothing is known.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.lock().phase.as_ref().map_or(0, |phase| phase.done)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The progress of the PEs of a node.
fn progress(snapshot: &NodeSnapshot) -> u64 {
    snapshot.pes.iter().fold(0, |sum: u64, pe| sum.wrapping_add(pe.progress))
}

impl State {
    /// Tells the viewers if a node delivers less than its speed, or does so no longer.
    fn follow(&mut self, snapshot: &NodeSnapshot) {
        let Some(info) = self.info.nodes.iter().find(|info| info.node == snapshot.node) else { return };
        let Some(said) = self.paces.entry(info.node).or_default().hears(info, snapshot) else { return };
        tracing::info!("{}", said.sentence(&info.name));
        let slowdowns = &mut self.info.slowdowns;
        let is_it = |one: &&mut Slowdown| one.node == said.node && one.until_s.is_none();
        match slowdowns.iter_mut().find(is_it) {
            Some(one) => *one = said,
            None => slowdowns.push(said),
        }
        slowdowns.drain(..slowdowns.len().saturating_sub(SLOWDOWNS_MAX));
        let event = MonitorEvent::Run(self.info.clone());
        self.distribute(&event);
    }

    /// Tells the viewers if the clock of a node's cores has fallen.
    fn follow_clock(&mut self, snapshot: &NodeSnapshot, now: Duration) {
        let Some(info) = self.info.nodes.iter().find(|info| info.node == snapshot.node) else { return };
        let Some(fall) = self.clocks.entry(info.node).or_default().hears(snapshot) else { return };
        let text = fall.sentence(&info.name);
        self.find(text, now);
    }

    /// Remarks what has been found out, once.
    fn find(&mut self, text: String, now: Duration) {
        tracing::info!("{text}");
        if self.found.len() < FOUND_MAX && self.remarks.insert(text.clone()) {
            self.found.push(text.clone());
            let event = MonitorEvent::Remark(Remark { is_advice: true, text });
            self.past.take(now, &event);
            self.distribute(&event);
        }
    }

    fn subscribe(
        &mut self,
        past: &[MonitorEvent],
        (wants_maps, keeps_lines): (bool, bool),
    ) -> Receiver<MonitorEvent> {
        let unseen = if keeps_lines { &self.unseen[..] } else { &[] };
        let (events, receiver) = sync_channel(BEHIND_MAX + past.len() + unseen.len());
        let mut viewer = Viewer { events, dropped: 0, wants_maps, keeps_lines, waiting: VecDeque::new() };
        viewer.tell(&MonitorEvent::Run(self.info.clone()));
        for event in past.iter().chain(unseen) {
            viewer.tell(event);
        }
        for snapshot in self.latest.values() {
            viewer.tell(&MonitorEvent::Snapshot(snapshot.clone()));
        }
        if let Some(phase) = &self.phase {
            viewer.tell(&MonitorEvent::Phase(phase.clone()));
        }
        for map in &self.maps {
            viewer.tell(&MonitorEvent::Map(map.clone()));
        }
        if let Some(ended) = &self.ended {
            viewer.tell(ended);
        } else {
            self.viewers.push(viewer);
        }
        receiver
    }

    fn left_s(&self, now: Duration) -> Option<f64> {
        let phase = self.phase.as_ref().filter(|phase| phase.done > 0)?;
        self.counted_from?;
        let since_s = now.saturating_sub(self.phase_began).as_secs_f64();
        Some(since_s * phase.total.saturating_sub(phase.done) as f64 / phase.done as f64)
    }

    /// Tells the viewers how far a phase is, if that is counted and has changed.
    fn advance(&mut self) {
        let (Some(phase), Some(before)) = (&mut self.phase, self.counted_from) else { return };
        let done = self.progress.saturating_sub(before).min(phase.total);
        if done != phase.done {
            phase.done = done;
            let event = MonitorEvent::Phase(phase.clone());
            self.distribute(&event);
        }
    }

    fn distribute(&mut self, event: &MonitorEvent) {
        if matches!(event, MonitorEvent::Output(_)) {
            self.keep_unseen(event);
        }
        self.viewers.retain_mut(|viewer| viewer.tell(event));
    }

    /// Keeps a line for whoever comes before the next one, if nobody sees it now.
    fn keep_unseen(&mut self, line: &MonitorEvent) {
        if self.viewers.iter().any(|viewer| viewer.keeps_lines) {
            self.unseen.clear();
        } else if self.unseen.len() < UNSEEN_MAX {
            self.unseen.push(line.clone());
        }
    }
}

impl Viewer {
    /// Returns false when the viewer has gone.
    fn tell(&mut self, event: &MonitorEvent) -> bool {
        if matches!(event, MonitorEvent::Map(_)) && !self.wants_maps {
            return true;
        }
        // Lines stay in their order, and before what comes behind them.
        while let Some(line) = self.waiting.pop_front() {
            match self.events.try_send(line) {
                Ok(()) => {}
                Err(TrySendError::Full(line)) => {
                    self.waiting.push_front(line);
                    break;
                }
                Err(TrySendError::Disconnected(_)) => return false,
            }
        }
        if !self.waiting.is_empty() {
            self.misses(event.clone());
            return true;
        }
        if self.dropped > 0 {
            match self.events.try_send(MonitorEvent::Dropped(self.dropped)) {
                Ok(()) => self.dropped = 0,
                Err(TrySendError::Full(_)) => {}
                Err(TrySendError::Disconnected(_)) => return false,
            }
        }
        match self.events.try_send(event.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(event)) => {
                self.misses(event);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    /// There is no room for an event.
    fn misses(&mut self, event: MonitorEvent) {
        if self.keeps_lines && matches!(event, MonitorEvent::Output(_)) {
            self.waiting.push_back(event);
        } else {
            self.dropped += 1;
        }
    }

    /// Nothing follows what waits for room.
    fn ends(self) {
        let Self { events, waiting, .. } = self;
        if !waiting.is_empty() {
            let tell = move || waiting.into_iter().all(|line| events.send(line).is_ok());
            // Without a thread those lines are lost, as the run must not wait for a viewer.
            let _ = thread::Builder::new().name("last lines".into()).spawn(tell);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::map::Axis;
    use crate::monitor::wire::{NodeInfo, OutputLine, PeSnapshot};

    fn phase(done: u64) -> MonitorEvent {
        MonitorEvent::Phase(Phase { done, ..Phase::default() })
    }

    #[test]
    fn a_late_viewer_gets_the_description_and_the_latest_counters_first() {
        let hub = Hub::new(RunInfo { run_id: "r".into(), ..RunInfo::default() });
        let snapshot = |sequence| NodeSnapshot { node: 1, sequence, ..NodeSnapshot::default() };
        hub.publish(MonitorEvent::Snapshot(snapshot(1)));
        hub.publish(MonitorEvent::Snapshot(snapshot(2)));
        let events = hub.subscribe();
        hub.publish(phase(9));
        let got: Vec<_> = events.try_iter().collect();
        assert!(matches!(&got[0], MonitorEvent::Run(info) if info.run_id == "r"));
        assert_eq!(got[1..], [MonitorEvent::Snapshot(snapshot(2)), phase(9)]);
        assert_eq!(hub.subscribe().try_iter().last(), Some(phase(9)));
    }

    #[test]
    fn no_line_that_a_node_has_printed_is_lost_however_slow_the_terminal_is() {
        let hub = Hub::new(RunInfo::default());
        let slow = hub.subscribe();
        let far_away = hub.subscribe_late();
        let line =
            |n: usize| MonitorEvent::Output(OutputLine { text: n.to_string(), ..OutputLine::default() });
        let all = 3 * BEHIND_MAX;
        (0..all).for_each(|n| {
            hub.publish(line(n));
            hub.publish(phase(n as u64));
        });
        let mut heard: Vec<MonitorEvent> = slow.try_iter().collect();
        hub.publish(line(all));
        hub.publish(MonitorEvent::Ended { code: 0, summary: String::new() });
        heard.extend(slow.iter());
        let lines: Vec<MonitorEvent> =
            heard.into_iter().filter(|event| matches!(event, MonitorEvent::Output(_))).collect();
        assert!(lines.into_iter().eq((0..=all).map(line)));
        assert!(far_away.iter().count() <= BEHIND_MAX + 1);
    }

    #[test]
    fn lines_that_were_printed_before_anybody_looked_are_not_lost() {
        let hub = Hub::new(RunInfo::default());
        let line =
            |text: &str| MonitorEvent::Output(OutputLine { text: text.into(), ..OutputLine::default() });
        let lines = |events: &Receiver<MonitorEvent>| -> Vec<MonitorEvent> {
            events.try_iter().filter(|event| matches!(event, MonitorEvent::Output(_))).collect()
        };
        let far_away = hub.subscribe_late();
        let early = [line("panicked at"), line("because")];
        early.iter().for_each(|event| hub.publish(event.clone()));
        let (terminal, recording) = (hub.subscribe(), hub.subscribe_to_maps());
        assert_eq!([lines(&terminal), lines(&recording)], [early.to_vec(), early.to_vec()]);
        assert_eq!(lines(&far_away), early, "it saw them at once");
        hub.publish(line("next"));
        assert_eq!([lines(&terminal), lines(&recording)], [[line("next")], [line("next")]]);
        assert_eq!(lines(&hub.subscribe()), [], "somebody has seen them");
    }

    #[test]
    fn a_late_viewer_may_have_the_past() {
        let hub = Hub::new(RunInfo { run_id: "r".into(), ..RunInfo::default() });
        let snapshot =
            |sequence| MonitorEvent::Snapshot(NodeSnapshot { node: 1, sequence, ..NodeSnapshot::default() });
        (1..=3).for_each(|sequence| hub.publish(snapshot(sequence)));
        let got: Vec<_> = hub.subscribe_late().try_iter().collect();
        assert!(matches!(&got[0], MonitorEvent::Run(_)));
        let times = got.iter().filter_map(|event| match event {
            MonitorEvent::At(nanos) => Some(*nanos),
            _ => None,
        });
        assert!(times.clone().is_sorted() && times.count() >= 2, "{got:?}");
        let told: Vec<_> = got[1..].iter().filter(|event| !matches!(event, MonitorEvent::At(_))).collect();
        assert_eq!(told, [&snapshot(1), &snapshot(2), &snapshot(3), &snapshot(3)]);
    }

    #[test]
    fn a_snapshot_that_was_overtaken_tells_nothing() {
        let hub = Hub::new(RunInfo::default());
        let events = hub.subscribe();
        let snapshot =
            |sequence| MonitorEvent::Snapshot(NodeSnapshot { node: 1, sequence, ..NodeSnapshot::default() });
        [4, 6, 5, 6, 7].into_iter().for_each(|sequence| hub.publish(snapshot(sequence)));
        assert!(events.try_iter().skip(1).eq([4, 6, 6, 7].map(snapshot)));
    }

    #[test]
    fn progress_is_that_of_all_nodes_since_the_phase_began() {
        let hub = Hub::new(RunInfo::default());
        let snapshot = |node, progress: [u64; 2]| {
            let pe = |progress| PeSnapshot { progress, ..PeSnapshot::default() };
            let snapshot = NodeSnapshot { node, pes: progress.map(pe).into(), ..NodeSnapshot::default() };
            MonitorEvent::Snapshot(snapshot)
        };
        hub.publish(snapshot(1, [5, 5]));
        let events = hub.subscribe();
        hub.count("multiplying".into(), 20, 13);
        // The last three of the phase before had not been heard of yet.
        hub.publish(snapshot(2, [3, 0]));
        hub.publish(snapshot(1, [9, 5]));
        hub.publish(snapshot(2, [3, 2]));
        hub.publish(snapshot(2, [3, 2]));
        assert_eq!(hub.done(), 6);
        hub.publish(snapshot(2, [u64::MAX, 2]));
        hub.publish(MonitorEvent::Phase(Phase::default()));
        hub.publish(snapshot(1, [12, 5]));
        let phases = events.try_iter().filter_map(|event| match event {
            MonitorEvent::Phase(phase) => Some(phase.done),
            _ => None,
        });
        assert_eq!(phases.collect::<Vec<_>>(), [0, 4, 6, 2, 0]);
    }

    #[test]
    fn what_is_left_of_a_phase_is_known_once_something_is_done() {
        let hub = Hub::new(RunInfo::default());
        let left_s = |at_s: u64| {
            let state = hub.lock();
            state.left_s(state.phase_began + Duration::from_secs(at_s))
        };
        let progress = |sequence, progress| {
            let pes = vec![PeSnapshot { progress, ..PeSnapshot::default() }];
            hub.publish(MonitorEvent::Snapshot(NodeSnapshot { sequence, pes, ..NodeSnapshot::default() }));
        };
        assert_eq!(left_s(5), None);
        progress(1, 10);
        hub.count("stepping".into(), 40, 10);
        assert_eq!((left_s(5), hub.left_s()), (None, None), "nothing has been done");
        progress(2, 20);
        assert_eq!(left_s(5), Some(15.0));
        progress(3, 60);
        assert_eq!((left_s(8), hub.left_s()), (Some(0.0), Some(0.0)));
        hub.publish(phase(3));
        assert_eq!(left_s(9), None, "nobody counts");
    }

    #[test]
    fn a_slow_viewer_is_told_what_it_missed_and_delays_nobody() {
        let hub = Hub::new(RunInfo::default());
        let slow = hub.subscribe();
        for n in 0..BEHIND_MAX as u64 + 9 {
            hub.publish(phase(n));
        }
        assert_eq!(slow.try_iter().count(), BEHIND_MAX);
        hub.publish(phase(0));
        assert_eq!(slow.try_iter().next(), Some(MonitorEvent::Dropped(10)));
    }

    #[test]
    fn the_end_closes_every_feed_even_of_a_viewer_too_slow_to_hear_of_it() {
        let hub = Hub::new(RunInfo::default());
        let slow = hub.subscribe();
        for n in 0..BEHIND_MAX as u64 + 9 {
            hub.publish(phase(n));
        }
        let ended = MonitorEvent::Ended { code: 0, summary: "well".into() };
        hub.publish(ended.clone());
        assert_eq!(slow.iter().count(), BEHIND_MAX);
        assert_eq!(hub.subscribe().iter().last(), Some(ended));
    }

    #[test]
    fn viewers_hear_of_a_node_that_delivers_less_and_late_ones_too() {
        let (pe_speeds, pe_parts) = (vec![1.0], vec![1.0]);
        let node = NodeInfo { node: 1, name: "fast".into(), pe_speeds, pe_parts, ..NodeInfo::default() };
        let hub = Hub::new(RunInfo { nodes: vec![node], ..RunInfo::default() });
        let events = hub.subscribe();
        let tenth = 100_000_000;
        let slow = |tenths: u64| tenths.clamp(50, 150) - 50;
        for tenths in 1..=200 {
            let (uptime_ns, waited) = (tenths * tenth, slow(tenths) * tenth * 3 / 4);
            let pe =
                PeSnapshot { compute_ns: uptime_ns - waited, core_wait_ns: waited, ..PeSnapshot::default() };
            let snapshot = NodeSnapshot {
                node: 1,
                sequence: tenths,
                uptime_ns,
                pes: vec![pe],
                ..NodeSnapshot::default()
            };
            hub.publish(MonitorEvent::Snapshot(snapshot));
        }
        let said = events.try_iter().filter_map(|event| match event {
            MonitorEvent::Run(info) => info.slowdowns.last().map(|slow| slow.sentence("fast")),
            _ => None,
        });
        let said: Vec<String> = said.collect();
        assert_eq!(said[0], "fast delivers 0.25 of its measured speed since 00:05: it waits for its cores");
        let last = "fast delivered 0.25 of its measured speed from 00:05 to 00:15";
        assert_eq!(said.last().map(String::as_str), Some(last), "{said:?}");
        assert_eq!(hub.info().slowdowns.len(), 1);
    }

    #[test]
    fn maps_are_wanted_while_somebody_sees_them_and_the_last_are_told_to_who_comes_late() {
        let hub = Hub::new(RunInfo::default());
        let axes = || [Axis::new("x", 0.0, 1.0), Axis::new("y", 0.0, 1.0)];
        let map = |title: &str, value| MonitorEvent::Map(Map::new(title, axes(), 1, &[value]));
        let plain = hub.subscribe();
        assert!(!hub.shows_maps());
        let early = hub.subscribe_to_maps();
        assert!(hub.shows_maps());
        [map("a", 1.0), map("b", 2.0), map("a", 3.0)].into_iter().for_each(|map| hub.publish(map));
        assert!(early.try_iter().skip(1).eq([map("a", 1.0), map("b", 2.0), map("a", 3.0)]));
        assert_eq!(plain.try_iter().count(), 1);
        drop(early);
        hub.publish(phase(1));
        assert!(!hub.shows_maps(), "nobody is there");
        let last = [phase(1), map("a", 3.0), map("b", 2.0)];
        assert!(hub.subscribe_to_maps().try_iter().skip(1).eq(last.clone()));
        let late: Vec<_> = hub.subscribe_late().try_iter().collect();
        assert!(late.ends_with(&last));
    }

    #[test]
    fn a_remark_is_told_once_and_late_viewers_hear_of_it() {
        let hub = Hub::new(RunInfo::default());
        let events = hub.subscribe();
        let remark = |text: &str, is_advice| MonitorEvent::Remark(Remark { is_advice, text: text.into() });
        hub.publish(remark("try --block 800", true));
        hub.publish(remark("try --block 800", false));
        hub.publish(remark("9 iterations", false));
        let told = [remark("try --block 800", true), remark("9 iterations", false)];
        assert!(events.try_iter().skip(1).eq(told.clone()));
        let late = hub.subscribe_late();
        assert!(late.try_iter().filter(|event| matches!(event, MonitorEvent::Remark(_))).eq(told));
    }

    #[test]
    fn a_viewer_that_left_is_forgotten() {
        let hub = Hub::new(RunInfo::default());
        drop(hub.subscribe());
        hub.publish(phase(0));
        assert!(hub.lock().viewers.is_empty());
    }
}
