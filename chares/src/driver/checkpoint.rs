//! How a driver takes checkpoints, and how it is run again by its log.

use super::Driver;
use super::keeping::{AllPacked, Done, Keeping, count_kept};
use super::outcomes::{Compared, Outcomes};
use super::snapshot::Open;
use super::variables::{Made, Variables};
use crate::checkpoint::{
    GoOn, Keeper, Kept, Outcome, Placing, Protocol, Restored, SavedDriver, SavedRun, VERSION,
};
use crate::program::RunError;
use crate::pup;
use runtime::codec::Order;
use runtime::envelope::{Packed, Payload, PeOrder};
use runtime::failure::{Failure, Kind};
use runtime::frame::{Class, Fabric, Frame, SendError};
use runtime::ids::{NodeId, PeId};
use runtime::monitor::requests::{Answer, Granted};
use runtime::node::{Node, NodeSettings};
use runtime::pe::Pe;
use runtime::saved::{Paused, RecordHeader, RecordOf, Save, ToKeep};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What nodes together may have on its way that is not kept yet, each no less and no more than that: several chares, so that one
/// is written while the next is on its way and the one after it is read.
const SENT_BYTES: u64 = 1 << 30;
const SENT_NODE_BYTES: std::ops::RangeInclusive<u64> = 4 << 20..=512 << 20;
/// A node is told when so large a part of what it may hold has been kept.
const KEPT_PART: u64 = 4;
/// How long no message may arrive anywhere when all PEs stand still and some are on their way.
const FLUSH_MAX: Duration = Duration::from_secs(60);
/// The same of what nodes share, a single message of which may be large.
pub(super) const SHARED_MAX: Duration = Duration::from_secs(600);
/// Why a driver cannot be saved that has results which are no bytes.
pub(super) const NOT_TAKEN: &str = "the driver has not taken what it sent to itself";
/// How long to wait before it is looked again whether something is on its way.
const FLUSH_LOOK: Duration = Duration::from_millis(1);

/// What the driver has done so far.
#[derive(Default)]
pub(super) struct History {
    /// Who keeps checkpoints, if anybody does, and does not keep one now.
    keeper: Option<Box<dyn Keeper>>,
    /// The checkpoint that is being kept.
    pub(super) keeping: Option<Keeping>,
    /// The snapshot that it is of, until that is over.
    pub(super) snapshot: Option<Open>,
    /// What came of the last one.
    kept: Option<Result<Kept, String>>,
    pub(super) outcomes: Outcomes,
    /// How many [once](Driver::once) are inside each other now.
    depth: u32,
    /// What remains to be done again, while that is so.
    pub(super) replay: Option<Box<Replay>>,
    pub(super) checkpoint: Underway,
    /// A chare has said that a checkpoint would be welcome.
    pub(super) is_good_moment: bool,
    /// How many checkpoints have begun in this run, and the last one that was complete.
    begun: u32,
    complete: Option<u32>,
    /// Bytes that have been kept for each node, and it has not been told yet.
    pub(super) kept_bytes: BTreeMap<NodeId, u64>,
    pub(super) has_gone_on: bool,
    /// PEs go from node to node now.
    pub(super) is_moving: bool,
    /// What had been added to accumulators on nodes that are not there any more.
    pub(super) sums: BTreeMap<u64, Vec<Packed>>,
    /// What the variables are made of that the driver has made.
    pub(super) variables: BTreeMap<u64, Made>,
    /// The work that is counted, and how much had been done before.
    pub(super) counted: Option<(String, u64, u64)>,
}

pub(super) struct Replay {
    pub(super) left: VecDeque<Outcome>,
    pub(super) saved: SavedDriver,
    pub(super) compared: Compared,
    pub(super) run: Box<dyn SavedRun>,
    pub(super) variables: Variables,
    pub(super) placing: Option<Placing>,
    pub(super) tell: Box<dyn Fn(&Restored) + Send>,
    /// The driver's own, which sends to the nodes that there are.
    pub(super) pe: Pe,
}

/// What is known of a checkpoint that is being taken, or of one that comes back.
#[derive(Default)]
pub(super) struct Underway {
    pub(super) paused: BTreeMap<PeId, Paused>,
    /// Bytes that PEs have read themselves so far, of one that comes back.
    pub(super) read_bytes: BTreeMap<PeId, u64>,
}

/// Carries nothing: what a driver sends that is run again has been sent.
struct Nowhere;

impl Fabric for Nowhere {
    fn send(&self, _: NodeId, _: Class, _: Frame) -> Result<(), SendError> {
        Ok(())
    }

    fn send_small(&self, _: NodeId, _: &[u8]) -> Result<(), SendError> {
        Ok(())
    }
}

impl History {
    /// Whether checkpoints are kept. Otherwise nothing need be remembered.
    pub(super) fn is_kept(&self) -> bool {
        self.keeper.is_some() || self.keeping.is_some()
    }

    /// Whether a checkpoint has begun that is not complete, or was given up while PEs had not all been cut.
    pub(super) fn is_keeping(&self) -> bool {
        self.keeping.is_some() || self.snapshot.is_some()
    }

    /// The checkpoint that is being kept cannot be taken.
    pub(super) fn fail_keeping(&self, why: String) {
        self.keeping.iter().for_each(|keeping| keeping.fail(why.clone()));
    }

    /// Whether what the driver does now is inside something that is remembered as a whole.
    pub(super) fn is_inside(&self) -> bool {
        self.depth > 0
    }

    /// Whether what the driver does now is inside one wait only: then no other waits meanwhile.
    pub(super) fn is_outermost(&self) -> bool {
        self.depth == 1
    }
}

impl Driver {
    /// Has checkpoints taken of this run. To be said before anything else.
    pub fn keep_checkpoints(&mut self, keeper: Box<dyn Keeper>) {
        self.pe.node().variables().keep_bytes();
        self.history.keeper = Some(keeper);
    }

    /// Makes this run go on from a checkpoint. To be said before anything else, except who [keeps](Self::keep_checkpoints)
    /// more of them.
    ///
    /// # Errors
    /// If it is not of this program or version, or of a run with another count of PEs.
    pub fn go_on_from(&mut self, from: GoOn) -> Result<(), RunError> {
        let mut saved = SavedDriver::open(&from.driver)?;
        let node = self.pe.node();
        let topology = node.topology().clone();
        if topology.pe_count() < saved.pes || topology.begun().pe_counts() != saved.pe_counts {
            return Err(RunError::Input(format!(
                "the checkpoint is of a run with {} PEs, and this one has {}",
                saved.pes,
                topology.pe_count()
            )));
        }
        let settings = NodeSettings { always_pup: true, ..NodeSettings::default() };
        let again = Node::new(NodeId::LAUNCHER, topology, Arc::clone(node.program()), settings);
        again.connect(Arc::new(Nowhere));
        let pe = std::mem::replace(&mut self.pe, Pe::new(PeId::DRIVER, again));
        let left = std::mem::take(&mut saved.outcomes).into();
        let GoOn { run, variables, placing, tell, .. } = from;
        let variables = Variables::new(variables);
        self.history.replay = Some(Box::new(Replay {
            left,
            saved,
            compared: Compared::new(),
            run,
            variables,
            placing,
            tell,
            pe,
        }));
        Ok(())
    }

    /// Does something whose outcome may differ from run to run, such as to look at a clock or at the machines, to draw a
    /// random number or to read what others may change. A run that goes on from a checkpoint does not do it again: it gets
    /// the outcome of then. So no checkpoint is taken before it is over, and what is made and has a number (arrays, groups,
    /// variables, [places for results](Self::pending)) is made before it. `what` names it where a driver turns out to do other
    /// things than it did then. An error that `work` returns is not remembered: it has to end the driver.
    ///
    /// # Errors
    /// What `work` returns; if the driver does not do what it did before the checkpoint; or if the run fails meanwhile.
    pub fn once<T: crate::Message>(
        &mut self,
        what: &str,
        work: impl FnOnce(&mut Self) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        self.remember(|| what.to_string(), work)
    }

    /// Does something whose waits are not remembered one by one.
    pub(super) fn inside<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        self.history.depth += 1;
        let result = work(self);
        self.history.depth -= 1;
        result
    }

    /// To be asked when the driver is done: whether it has come as far as it was when it was saved.
    ///
    /// # Errors
    /// If it has not: what it gave is of a part of what it did then.
    pub fn has_caught_up(&self) -> Result<(), RunError> {
        let Some(replay) = &self.history.replay else { return Ok(()) };
        let what = replay.left.front().map_or("the rest of the run", |outcome| outcome.what.as_str());
        Err(RunError::Input(format!(
            "the driver does not do what it did before the checkpoint: it ended where it waited for {what} then"
        )))
    }

    /// Whether this run has gone on from a checkpoint.
    #[must_use]
    pub fn has_gone_on(&self) -> bool {
        self.history.has_gone_on
    }

    /// Says that now is a good moment for a checkpoint, such as between two steps, when chares hold little and few messages are
    /// on their way: of a run that is to be saved (`--checkpoint`), one that is due in the next eighth of the time or of the
    /// steps between two is taken before this returns, and kept while the run goes on. A hint only: checkpoints are taken in time wherever the program is.
    ///
    /// # Errors
    /// If the run fails meanwhile. A checkpoint that cannot be taken is no error: the run goes on without it.
    pub fn checkpoint_point(&mut self) -> Result<(), RunError> {
        self.once("a good moment for a checkpoint", |main| {
            if main.history.is_outermost() { main.checkpoint_if_due(true) } else { Ok(()) }
        })
    }

    /// Takes a checkpoint because somebody asks for it, and has the run end if he wants that; what is answered.
    pub(super) fn save_now(&mut self, stop: bool) -> Result<Answer, RunError> {
        if !self.history.is_kept() {
            let sentence = "this run keeps no checkpoints: start it with `--checkpoint DIR`";
            return Ok(Err(Failure::new(Kind::Unavailable, sentence).into()));
        }
        // A run that ends then needs not go on meanwhile.
        let protocol = match &self.history.keeper {
            Some(keeper) if !stop => keeper.protocol(),
            _ => Protocol::Barrier,
        };
        self.take_checkpoint(protocol)?;
        self.finish_keeping()?;
        let kept = match self.history.kept.clone() {
            Some(Ok(kept)) => kept,
            why => {
                let why = why.and_then(Result::err).unwrap_or_else(|| "nobody keeps it".into());
                let sentence = format!("no checkpoint was taken, and the run goes on: {why}");
                return Ok(Err(Failure::new(Kind::Output, sentence).into()));
            }
        };
        if stop {
            let sentence = format!("the run was ended after checkpoint {}, as was asked for", kept.number);
            self.failed.get_or_insert(Failure::new(Kind::Stopped, sentence));
        }
        let saved = self.history.keeper.as_ref().and_then(|keeper| keeper.place());
        let end = match &saved {
            Some(saved) if stop => {
                format!("; the run ends, and `{}` goes on from there", saved.restart_command())
            }
            _ => String::new(),
        };
        Ok(Ok(Granted { sentence: format!("{kept}{end}"), saved }))
    }

    /// Takes a checkpoint if one is due, and none is being kept. Only where the driver waits for what may take long.
    pub(super) fn checkpoint_if_due(&mut self, is_good_moment: bool) -> Result<(), RunError> {
        if self.history.is_keeping() {
            return Ok(());
        }
        let due = self.history.keeper.as_mut().and_then(|keeper| keeper.is_due(is_good_moment));
        due.map_or(Ok(()), |protocol| self.take_checkpoint(protocol))
    }

    /// Waits until the checkpoint is complete, or given up, that is being kept, if one is: to be called when the driver is done.
    ///
    /// # Errors
    /// If the run fails meanwhile.
    pub fn finish_keeping(&mut self) -> Result<(), RunError> {
        self.wait_until(|main| (!main.history.is_keeping()).then_some(()))
    }

    /// The same for so long at most; whether none is being kept any more.
    ///
    /// # Errors
    /// If the run fails meanwhile.
    pub fn finish_keeping_within(&mut self, time: Duration) -> Result<bool, RunError> {
        let began = Instant::now();
        self.wait_until(|main| match main.history.is_keeping() {
            false => Some(true),
            true => (began.elapsed() >= time).then_some(false),
        })
    }

    /// Takes a checkpoint: when this returns the driver is of it, and goes on; all PEs, too, or each as soon as it is of it. What
    /// they have packed is being kept, unless that cannot be done.
    fn take_checkpoint(&mut self, protocol: Protocol) -> Result<(), RunError> {
        let _span = tracing::info_span!("checkpoint").entered();
        let began = Instant::now();
        self.history.kept = None;
        let Some(mut keeper) = self.history.keeper.take() else { return Ok(()) };
        let is_awaited = keeper.is_awaited();
        let has_last = match keeper.begin() {
            Ok(has_last) => has_last,
            Err(why) => {
                self.give_up(keeper, why);
                return Ok(());
            }
        };
        self.history.begun += 1;
        let extents = keeper.extents();
        let may_write = extents.is_some();
        self.pe.node().give_extents_by(extents.map(|extents| (self.history.begun, extents)));
        let whom = (self.pe.node(), self.sent_bytes_max() / KEPT_PART);
        match Keeping::begin((self.history.begun, may_write), began, keeper, whom) {
            Ok(keeping) => self.history.keeping = Some(keeping),
            Err((keeper, why)) => {
                self.give_up(keeper, why);
                return Ok(());
            }
        }
        let since = self.history.complete.filter(|_| has_last);
        match protocol {
            // While PEs stand still, the driver's waits take no other.
            Protocol::Barrier => self.inside(|main| main.have_all_packed(since))?,
            Protocol::Snapshot => self.begin_snapshot(since),
        }
        if is_awaited { self.finish_keeping() } else { Ok(()) }
    }

    /// Has all PEs stand still, pack what they have, and go on.
    fn have_all_packed(&mut self, since: Option<u32>) -> Result<(), RunError> {
        let began = Instant::now();
        self.pause_all()?;
        let packed = self.save_all(since);
        self.order_all_paused(PeOrder::Resume);
        let paused = began.elapsed();
        let variables = self.history.variables.clone();
        let Some(keeping) = &mut self.history.keeping else { return Ok(()) };
        match packed? {
            Ok((driver, records)) => keeping.all_packed(AllPacked { driver, records, paused, variables }),
            Err(why) => keeping.fail(why),
        }
        Ok(())
    }

    /// The thread that keeps a checkpoint is done with it.
    pub(super) fn hear_kept(&mut self) {
        let Some(keeping) = self.history.keeping.take() else { return };
        let number = keeping.number;
        let Some(Done { keeper, kept, kept_bytes }) = keeping.done() else {
            let failure = Failure::new(Kind::Failed, "the thread that keeps checkpoints panicked");
            self.failed.get_or_insert(failure);
            return;
        };
        for (node, bytes) in kept_bytes {
            *self.history.kept_bytes.entry(node).or_default() += bytes;
        }
        self.has_kept(keeper, Some(number), kept);
    }

    /// A checkpoint is not even begun.
    fn give_up(&mut self, mut keeper: Box<dyn Keeper>, why: String) {
        keeper.discard(&why);
        self.has_kept(keeper, None, Some(Err(why)));
    }

    /// A checkpoint is complete, or was given up.
    fn has_kept(&mut self, keeper: Box<dyn Keeper>, number: Option<u32>, kept: Option<Result<Kept, String>>) {
        self.pe.node().give_extents_by(None);
        self.history.keeper = Some(keeper);
        self.history.complete = number.filter(|_| matches!(kept, Some(Ok(_))));
        match &kept {
            Some(Ok(kept)) => {
                tracing::info!("{kept:?}");
                self.outcome().checkpoints.push(*kept);
            }
            // The keeper has warned of it.
            Some(Err(why)) => tracing::info!("no checkpoint was taken: {why}"),
            None => {}
        }
        self.history.kept = kept;
    }

    /// The driver's own part, and how many records PEs have packed.
    fn save_all(&mut self, since: Option<u32>) -> Result<Result<(Packed, u64), String>, RunError> {
        if self.flush()?.is_none() {
            return Ok(Err(format!("messages were on their way for {} s", FLUSH_MAX.as_secs())));
        }
        if let Some(keeping) = &self.history.keeping {
            let shared = self.pe.node().shared_records();
            shared.into_iter().for_each(|(header, packed)| keeping.keep_shared(header, packed));
        }
        self.keep_sums_and_loads();
        self.history.checkpoint.paused.clear();
        let save = self.order_to_save(since);
        self.order_all_paused(PeOrder::Save(save));
        let pes = self.all_pes() as usize;
        self.wait_until(|main| (main.history.checkpoint.paused.len() == pes).then_some(()))?;
        let packed = std::mem::take(&mut self.history.checkpoint.paused).into_values();
        let records = packed.sum::<Result<u64, String>>();
        Ok(records.and_then(|records| Ok((self.saved_driver()?.pack(), records))))
    }

    /// Keeps what has been added to accumulators on the launcher, and what is known of loads.
    pub(super) fn keep_sums_and_loads(&self) {
        let header = |of| RecordHeader { pe: PeId::DRIVER, of };
        // What was added on nodes that have left, or before the checkpoint that this run has gone on from, is here.
        let earlier = self.history.sums.iter();
        let earlier = earlier.flat_map(|(id, parts)| parts.iter().map(|part| (*id, part.clone())));
        let sums = self.pe.node().sums().all().into_iter().chain(earlier);
        let sums = sums.map(|(id, packed)| (header(RecordOf::Sum(id)), packed));
        let loads = self.pe.node().known_loads().into_iter();
        let loads = loads.map(|known| (header(RecordOf::Loads), pup::pack(&known)));
        if let Some(keeping) = &self.history.keeping {
            sums.chain(loads).for_each(|(header, packed)| keeping.keep_shared(header, packed));
        }
    }

    /// What PEs are told that are to be saved.
    pub(super) fn order_to_save(&mut self, since: Option<u32>) -> Save {
        // What nodes still count as held could be as much as they may hold now.
        for (node, bytes) in std::mem::take(&mut self.history.kept_bytes) {
            self.pe.node().order(node, Order::Kept(bytes), Packed::default());
        }
        let may_write = self.history.keeping.as_ref().is_some_and(|keeping| keeping.may_write);
        Save { checkpoint: self.history.begun, since, sent_bytes_max: self.sent_bytes_max(), may_write }
    }

    /// How much a node may have on its way that is not kept yet.
    fn sent_bytes_max(&self) -> u64 {
        let nodes = self.pe.node().topology().compute_nodes().len().max(1) as u64;
        (SENT_BYTES / nodes).clamp(*SENT_NODE_BYTES.start(), *SENT_NODE_BYTES.end())
    }

    /// The driver's own part, as it is now.
    pub(super) fn saved_driver(&mut self) -> Result<SavedDriver, String> {
        let mut slots = Vec::new();
        for (slot, waiting) in &mut self.slots {
            let copy = |payload: &Payload| match payload {
                Payload::Packed(packed) => Ok(Payload::Packed(Arc::clone(packed))),
                Payload::Value(_) => Err(NOT_TAKEN.to_string()),
            };
            slots.push((*slot, waiting.iter().map(copy).collect::<Result<Vec<_>, _>>()?));
        }
        let pe = self.pe.save().map_err(|error| error.to_string())?;
        let node = self.pe.node();
        Ok(SavedDriver {
            version: VERSION,
            pe_counts: node.topology().begun().pe_counts(),
            pes: node.topology().pe_count(),
            outcomes: self.history.outcomes.all.clone(),
            slots,
            next_slot: self.next_slot,
            serial: self.pe.serial(),
            pe,
            is_init: node.is_init(),
            speeds: node.speeds().to_vec(),
            counted: self.history.counted.clone(),
            types: self.history.outcomes.types(),
        })
    }

    /// Tells a PE what it is to do about standing still, which is not counted among the messages of the run.
    pub(super) fn order_paused(&self, pe: PeId, order: PeOrder) {
        let node = self.pe.node();
        node.order_pe(pe, order, Packed::default());
    }

    pub(super) fn order_all_paused(&mut self, order: PeOrder) {
        (0..self.all_pes()).for_each(|pe| self.order_paused(PeId(pe), order));
    }

    /// Waits until all PEs stand still.
    pub(super) fn pause_all(&mut self) -> Result<(), RunError> {
        self.history.checkpoint = Underway::default();
        self.order_all_paused(PeOrder::Pause);
        let pes = self.all_pes() as usize;
        self.wait_until(|main| (main.history.checkpoint.paused.len() == pes).then_some(()))
    }

    /// Waits until nothing is on its way any more, while no PE sends: frames sent and received so far by all nodes; `None`
    /// if nothing arrives for too long. It is the double count of Mattern ("Algorithms for distributed termination detection",
    /// 1987).
    pub(super) fn flush(&mut self) -> Result<Option<(u64, u64)>, RunError> {
        self.flush_within(FLUSH_MAX)
    }

    /// The same, where `most` is how long nothing may arrive.
    pub(super) fn flush_within(&mut self, most: Duration) -> Result<Option<(u64, u64)>, RunError> {
        let (mut since, mut last) = (Instant::now(), None);
        while since.elapsed() < most {
            let now = self.carried()?;
            if last.is_some_and(|(_, received)| now.1 > received) {
                since = Instant::now();
            }
            // What a variable's maker waits for is said on the stream that is not counted.
            let is_told = self.pe.node().variables().are_acknowledged();
            if now.0 == now.1 && last == Some(now) && is_told {
                return Ok(Some(now));
            }
            if last.is_some() {
                std::thread::sleep(FLUSH_LOOK);
            }
            last = Some(now);
        }
        Ok(None)
    }

    fn carried(&mut self) -> Result<(u64, u64), RunError> {
        let nodes = self.snapshots()?;
        let sum = |of: fn(&runtime::monitor::wire::NodeSnapshot) -> u64| nodes.iter().map(of).sum();
        Ok((sum(|node| node.sent_messages), sum(|node| node.received_messages)))
    }

    /// Takes a record from a node. One of a checkpoint that was given up is nobody's.
    pub(super) fn hear_record(&mut self, from: NodeId, record: ToKeep, packed: Packed) {
        if record.checkpoint == 0 {
            // What a node leaves behind is added where all is added up.
            let (header, packed) = record.sent.open(packed);
            if let (RecordOf::Sum(id), true) = (header.of, self.history.is_moving) {
                self.history.sums.entry(id).or_default().push(packed);
            }
            return;
        }
        match &mut self.history.keeping {
            Some(keeping) if keeping.number == record.checkpoint => {
                keeping.keep_of_node(from, record, packed)
            }
            _ => {
                let (told_from, node) = (self.sent_bytes_max() / KEPT_PART, Arc::clone(self.pe.node()));
                let bytes = (from, packed.len_bytes() as u64);
                count_kept(&mut self.history.kept_bytes, bytes, told_from, &node);
            }
        }
    }

    /// What a PE has written itself is there for good, or why it is not.
    pub(super) fn hear_wrote(&mut self, pe: PeId, checkpoint: u32, wrote: Result<(), String>) {
        if let Some(keeping) = self.history.keeping.as_ref().filter(|keeping| keeping.number == checkpoint) {
            keeping.has_written(pe, wrote);
        }
    }

    /// A PE that stands still has done what it was told.
    pub(super) fn hear_paused(&mut self, pe: PeId, paused: Paused) {
        // What went wrong first is what counts.
        let last = self.history.checkpoint.paused.entry(pe).or_insert_with(|| paused.clone());
        if last.is_ok() {
            *last = paused;
        }
    }
}
