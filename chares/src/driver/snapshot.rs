//! Checkpoints for which nobody stands still, as the driver takes them: [snapshots](runtime::proto::snapshot). The driver is cut
//! first, where it waits for what may take long; then it goes on like all others, and hears how far they are.

use super::Driver;
use super::keeping::AllPacked;
use crate::checkpoint::SavedDriver;
use crate::program::RunError;
use runtime::envelope::{CallbackTarget, Packed, Payload};
use runtime::ids::{NodeId, PeId};
use runtime::pe::scheduler::late_relays;
use runtime::proto::snapshot::{Carried, Colour, Snapshot, Step, Turn};
use runtime::saved::{Cut, Paused, RecordHeader, RecordOf};
use std::sync::Arc;
use std::time::Duration;

/// A snapshot that has begun and is not over.
pub(super) struct Open {
    how_far: Snapshot,
    /// The driver's own part.
    driver: SavedDriver,
    /// What the driver has told when variables are in place, and nothing for each result that was on its way to it when it was cut:
    /// that stands behind those that it had, before whatever comes later, and only what was sent has to be balanced.
    late: Vec<(CallbackTarget, Packed)>,
    /// Records that PEs have packed so far.
    records: u64,
    /// How long the PE packed that took longest.
    packed: Duration,
    /// Why it cannot be kept.
    failed: Option<String>,
}

impl Open {
    fn fail(&mut self, why: String) {
        self.failed.get_or_insert(why);
    }
}

impl Driver {
    /// Has a snapshot begin, of what there is of the driver now.
    pub(super) fn begin_snapshot(&mut self, since: Option<u32>) {
        let driver = match self.saved_driver() {
            Ok(driver) => driver,
            Err(why) => return self.history.fail_keeping(why),
        };
        self.keep_sums_and_loads();
        let late = self.pe.cut();
        let save = self.order_to_save(since);
        let node = Arc::clone(self.pe.node());
        let pes = (0..self.all_pes()).map(PeId).collect();
        let left = self.nodes.left_carried[node.colour() as usize];
        let how_far = Snapshot::new(pes, node.topology().members().collect(), left);
        node.begin_snapshot(save);
        let (records, packed) = (0, Duration::ZERO);
        self.history.snapshot = Some(Open { how_far, driver, late, records, packed, failed: None });
    }

    /// A PE has been cut.
    pub(super) fn hear_cut(&mut self, pe: PeId, cut: Cut) {
        let Some(open) = &mut self.history.snapshot else { return };
        match cut {
            Ok((records, took_ns)) => {
                open.records = open.records.saturating_add(records);
                open.packed = open.packed.max(Duration::from_nanos(took_ns));
            }
            Err(why) => open.fail(why),
        }
        let step = open.how_far.has_cut(pe);
        self.step(step);
    }

    /// A node has counted what it has carried.
    pub(super) fn hear_counted(&mut self, node: NodeId, round: u32, carried: Carried) {
        let now = self.pe.node().now();
        let Some(open) = &mut self.history.snapshot else {
            self.counted.insert(node, carried);
            return;
        };
        let step = open.how_far.has_counted(node, round, carried, now);
        self.step(step);
    }

    /// A PE has said all that came late to it.
    pub(super) fn hear_closed(&mut self, pe: PeId, records: Paused) {
        let Some(open) = &mut self.history.snapshot else { return };
        match records {
            Ok(records) => open.records = open.records.saturating_add(records),
            Err(why) => open.fail(why),
        }
        let step = open.how_far.has_closed(pe);
        self.step(step);
    }

    /// A result has come: if it was on its way when the driver was cut, it is of the snapshot.
    pub(super) fn hear_late(&mut self, colour: Option<Colour>, slot: u64, result: &Payload) {
        let is_late = colour.is_some_and(|colour| self.pe.side().turn(colour) == Turn::Late);
        let Some(open) = self.history.snapshot.as_mut().filter(|_| is_late) else { return };
        match result {
            Payload::Packed(packed) => {
                open.driver.add_result(slot, Payload::Packed(Arc::clone(packed)));
                open.late.push((CallbackTarget::Ignore, Packed::default()));
            }
            Payload::Value(_) => open.fail(super::checkpoint::NOT_TAKEN.into()),
        }
    }

    /// Goes on with a snapshot if it is time; when to call this again, if nothing is heard before.
    pub(super) fn go_on_with_snapshot(&mut self) -> Option<Duration> {
        let open = self.history.snapshot.as_mut()?;
        let now = self.pe.node().now();
        let step = open.how_far.wake(now);
        self.step(step);
        let due = self.history.snapshot.as_ref()?.how_far.timeout()?;
        Some(due.saturating_sub(now))
    }

    fn step(&mut self, step: Option<Step>) {
        let node = Arc::clone(self.pe.node());
        match step {
            None => {}
            Some(Step::Count(round)) => node.count_all(round, node.colour().other()),
            Some(Step::Close) => {
                self.keep_what_has_come();
                node.close_snapshot();
            }
            Some(Step::Over) => {
                self.pe.close();
                node.end_snapshot();
                self.keep_snapshot();
            }
        }
    }

    /// All that was sent before its sender was cut has come: keeps what nodes share, and what was on its way to the driver.
    fn keep_what_has_come(&mut self) {
        let late = self.history.snapshot.as_mut().map(|open| std::mem::take(&mut open.late));
        let Some(keeping) = &self.history.keeping else { return };
        for (header, packed) in self.pe.node().shared_records() {
            keeping.keep_shared(header, packed);
        }
        if let Some(late) = late.filter(|late| !late.is_empty()) {
            // A PE passes it on when the run goes on from there: there is one in any run.
            let header = RecordHeader { pe: PeId(0), of: RecordOf::Late { by: PeId::DRIVER } };
            keeping.keep_shared(header, late_relays(late));
        }
    }

    /// All that is of the snapshot has been sent.
    fn keep_snapshot(&mut self) {
        let Some(Open { driver, records, packed, failed, .. }) = self.history.snapshot.take() else { return };
        let variables = self.history.variables.clone();
        let Some(keeping) = &mut self.history.keeping else { return };
        match failed {
            None => {
                keeping.all_packed(AllPacked { driver: driver.pack(), records, paused: packed, variables })
            }
            Some(why) => keeping.fail(why),
        }
    }

    /// To be called when nodes have left and nothing is on its way: what they had sent and received is missing in what the others
    /// have, and is known by that.
    ///
    /// # Errors
    /// If the run fails meanwhile.
    pub(super) fn note_who_has_left(&mut self) -> Result<(), RunError> {
        let node = Arc::clone(self.pe.node());
        let members = node.topology().members().count();
        for colour in [Colour::White, Colour::Red] {
            self.counted.clear();
            node.count_all(0, colour);
            let sum = self.wait_until(|main| {
                let is_complete = main.counted.len() == members;
                is_complete.then(|| main.counted.values().fold(Carried::default(), |sum, one| sum.with(*one)))
            })?;
            self.nodes.left_carried[colour as usize] =
                Carried { sent: sum.received.wrapping_sub(sum.sent), received: 0 };
        }
        Ok(())
    }
}
