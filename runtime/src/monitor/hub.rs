//! Where a launcher's events meet its viewers. A viewer that is too slow loses events and is told how many.

use super::wire::{MonitorEvent, NodeSnapshot, RunInfo};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Events that a viewer may be behind before it loses some.
const BEHIND_MAX: usize = 4096;

/// Distributes the events of one run.
#[derive(Debug, Default)]
pub struct Hub {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    info: RunInfo,
    latest: BTreeMap<u16, NodeSnapshot>,
    ended: Option<MonitorEvent>,
    viewers: Vec<Viewer>,
}

#[derive(Debug)]
struct Viewer {
    events: SyncSender<MonitorEvent>,
    dropped: u64,
}

impl Hub {
    /// A hub for the run that `info` describes.
    #[must_use]
    pub fn new(info: RunInfo) -> Self {
        Self { state: Mutex::new(State { info, ..State::default() }) }
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

    /// Tells all viewers.
    pub fn publish(&self, event: MonitorEvent) {
        let mut state = self.lock();
        match &event {
            MonitorEvent::Snapshot(snapshot) => {
                state.latest.insert(snapshot.node, snapshot.clone());
            }
            MonitorEvent::Ended { .. } => state.ended = Some(event.clone()),
            _ => {}
        }
        state.distribute(&event);
        if state.ended.is_some() {
            // Nothing follows: a viewer that has no room for the last event learns it from its channel's end.
            state.viewers.clear();
        }
    }

    /// A new viewer's events: first what is known, then what happens.
    pub fn subscribe(&self) -> Receiver<MonitorEvent> {
        let (events, receiver) = sync_channel(BEHIND_MAX);
        let mut state = self.lock();
        let mut viewer = Viewer { events, dropped: 0 };
        viewer.tell(&MonitorEvent::Run(state.info.clone()));
        for snapshot in state.latest.values() {
            viewer.tell(&MonitorEvent::Snapshot(snapshot.clone()));
        }
        if let Some(ended) = &state.ended {
            viewer.tell(ended);
        } else {
            state.viewers.push(viewer);
        }
        receiver
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn distribute(&mut self, event: &MonitorEvent) {
        self.viewers.retain_mut(|viewer| viewer.tell(event));
    }
}

impl Viewer {
    /// False when the viewer has gone.
    fn tell(&mut self, event: &MonitorEvent) -> bool {
        if self.dropped > 0 {
            match self.events.try_send(MonitorEvent::Dropped(self.dropped)) {
                Ok(()) => self.dropped = 0,
                Err(TrySendError::Full(_)) => {}
                Err(TrySendError::Disconnected(_)) => return false,
            }
        }
        match self.events.try_send(event.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.dropped += 1;
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::wire::Phase;

    fn phase(done: u64) -> MonitorEvent {
        MonitorEvent::Phase(Phase { name: String::new(), done, total: 0 })
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
    fn a_viewer_that_left_is_forgotten() {
        let hub = Hub::new(RunInfo::default());
        drop(hub.subscribe());
        hub.publish(phase(0));
        assert!(hub.lock().viewers.is_empty());
    }
}
