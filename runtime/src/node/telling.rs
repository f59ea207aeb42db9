//! What a node tells the launcher by itself, several times a second.

use super::Node;
use crate::codec::{ControlToLauncher, WorkToLauncher};
use crate::envelope::Packed;
use crate::ids::{NodeId, PeId};
use crate::loads::NodeLoads;
use crate::monitor::collectives::{Collectives, GATHERED_MAX};
use crate::monitor::profile::EntryTime;
use crate::monitor::samples::{Ran, SAMPLES_MAX, Samples};
use std::sync::atomic::Ordering;

/// One of so many snapshots that a node sends has a profile.
const PROFILE_EVERY: u64 = 5;
/// After one of so many it tells of single entry methods, messages and reductions.
const SAMPLES_EVERY: u64 = 2;
/// A PE that has not looked at the clock for so long is asked to.
const UNSEEN_NS: u64 = 50_000_000;
/// The launcher is told loads no more often than this.
const LOADS_EVERY_NS: u64 = 200_000_000;

impl Node {
    /// Sends the counters to the launcher.
    pub fn publish(&self) {
        let snapshot = self.counters(|sequence| sequence.is_multiple_of(PROFILE_EVERY));
        if self.settings.detail.times() {
            // What is told of a PE that times few entry methods is no older than the last two snapshots, however long those are
            // that come after many short ones.
            let unseen = snapshot.pes.iter().filter(|pe| !pe.state.is_idle() && pe.in_state_ns >= UNSEEN_NS);
            unseen.for_each(|pe| self.pes.ask_to_look(PeId(pe.pe)));
        }
        let has_samples =
            self.settings.detail.tells_single() && snapshot.sequence.is_multiple_of(SAMPLES_EVERY);
        self.tell_launcher(ControlToLauncher::Snapshot(Box::new(snapshot)));
        if has_samples {
            self.tell_samples(std::iter::empty());
        }
    }

    /// Tells the launcher of single entry methods, messages and reductions, if there were any, and of these calls that are under
    /// way.
    pub(super) fn tell_samples(&self, under_way: impl Iterator<Item = EntryTime>) {
        let mut ran = self.pes.take_told(|told| told.ran.take(), SAMPLES_MAX);
        let room = SAMPLES_MAX - ran.len();
        ran.extend(under_way.take(room).map(|EntryTime { name, ns, slowest, .. }| Ran {
            pe: slowest.pe,
            name,
            began_ns: slowest.at_ns - ns,
            took_ns: ns,
            idle_ns: 0,
            cause: None,
        }));
        let sent = self.pes.take_told(|told| told.sent.take(), SAMPLES_MAX);
        if !ran.is_empty() || !sent.is_empty() {
            let samples = Samples { node: self.id.0, ran, sent };
            self.tell_launcher(ControlToLauncher::Samples(Box::new(samples)));
        }
        let gathered = self.pes.take_told(|told| told.gathered.take(), GATHERED_MAX);
        if !gathered.is_empty() {
            let collectives = Collectives { node: self.id.0, gathered };
            self.tell_launcher(ControlToLauncher::Collectives(Box::new(collectives)));
        }
    }

    /// Tells the launcher what chares cost, if somebody wants to know and it is time; to be called several times a second.
    pub fn tell_loads(&self) {
        let now_ns = self.now_ns();
        if !self.settings.balances
            || self.state.is_leaving()
            || now_ns - self.told_loads_ns.load(Ordering::Relaxed) < LOADS_EVERY_NS
        {
            return;
        }
        let Some(pes) = self.pes.take_loads(self.topology().pes(self.id), now_ns) else { return };
        let since_ns = now_ns - self.told_loads_ns.swap(now_ns, Ordering::Relaxed);
        let bytes_per_s = self.links.most_received(since_ns);
        let loads = NodeLoads { bytes_per_s, room_bytes: self.memory_room_bytes(), pes };
        match postcard::to_stdvec(&loads) {
            Ok(body) => {
                let payload = Packed { body: body.into(), attachments: Vec::new() };
                self.send_frame((NodeId::LAUNCHER, None), &WorkToLauncher::Loads, payload);
            }
            Err(error) => tracing::error!("loads cannot be told: {error}"),
        }
    }
}
