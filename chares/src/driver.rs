//! The main chare: a plain function that starts everything and may wait.

mod checkpoint;
mod draining;
mod joining;
mod keeping;
mod maps;
mod outcomes;
mod own_rates;
mod remarks;
mod requests;
mod restoring;
mod snapshot;
mod variables;

use crate::callback::Callback;
use crate::chare::Message;
use crate::ctx::private::HasPe;
use crate::entries::open;
use crate::program::RunError;
use crate::pup;
use crate::reduce::{Better, Reduce};
use crate::shared::{Accumulator, Monotonic, Readonly};
use crate::timeline::Timeline;
use crate::type_name::type_name;
use checkpoint::History;
pub use draining::Drained;
use draining::Nodes;
pub use joining::{Joined, Joining};
use loadbalance::machines::{Machine, Machines};
use own_rates::OwnRates;
use runtime::envelope::{CollectionId, Packed, Payload, PeOrder};
use runtime::failure::Failure;
use runtime::ids::{NodeId, PeId};
use runtime::monitor::requests::Asked;
use runtime::monitor::wire::NodeSnapshot;
use runtime::node::{DriverEvent, INIT_OVER, Node};
use runtime::pe::Pe;
use runtime::proto::snapshot::Carried;
use std::any::TypeId;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// A function that is told the share of the data of each PE, and what each node holds.
type OnShares = Box<dyn Fn(&[f64], &[String]) + Send>;

/// How long the driver sleeps at most before it looks again whether something is due.
const TICK: Duration = Duration::from_millis(100);
/// How long the driver waits for a result before it begins to ask whether anything still goes on.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the program's first function has in its hands. It runs on the launcher, where it may block, read
/// and write files; it has no PE and holds no chares.
pub struct Driver {
    pe: Pe,
    events: Receiver<DriverEvent>,
    slots: HashMap<u64, VecDeque<Payload>>,
    next_slot: u64,
    acknowledged: HashMap<u64, BTreeSet<NodeId>>,
    collected: HashMap<u64, BTreeMap<NodeId, Option<Packed>>>,
    /// What nodes have carried, where that is not asked for a snapshot.
    counted: BTreeMap<NodeId, Carried>,
    /// Counters that nodes have sent, by the mark of the question and the node.
    answers: HashMap<u32, BTreeMap<u16, NodeSnapshot>>,
    /// When each node answered last.
    answered: HashMap<u16, Instant>,
    next_mark: u32,
    /// The latest search for quiescence that has ended, and how many messages were held then.
    quiescent: (u64, u64),
    /// Why the run cannot go on; every wait says it.
    failed: Option<Failure>,
    rates: HashMap<PeId, f64>,
    machines: Machines,
    timeline: Timeline,
    /// Called when initialisation is over, for viewers.
    on_shares: Option<OnShares>,
    /// The part of the run that goes on, in the log.
    part: tracing::Span,
    history: History,
    shown: maps::Shown,
    remarks: remarks::Remarks,
    /// What was asked at other terminals and has not been granted.
    asked: VecDeque<Asked>,
    /// The nodes that are there, or were.
    nodes: Nodes,
    /// Who does tasks, by their types.
    pub(crate) crews: HashMap<TypeId, (CollectionId, [u32; 3])>,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Driver on {:?}", self.pe)
    }
}

impl HasPe for Driver {
    fn note_variable<T: Message>(&mut self, id: u64) {
        self.history.note_variable(id, variables::Made::of::<T>());
    }

    fn pe(&mut self) -> &mut Pe {
        &mut self.pe
    }

    fn note_by_speed(&mut self) {
        self.placed_by_speed();
    }

    fn home(&mut self, choose: impl FnOnce(&mut Pe) -> PeId) -> PeId {
        self.remembered_home(choose)
    }

    fn witness<T: Message>(&mut self, what: &str, look: impl FnOnce(&mut Pe) -> Option<T>) -> Option<T> {
        self.once(what, |main| Ok(look(&mut main.pe))).unwrap_or_else(|error| {
            self.pe.fail(error.to_string());
            None
        })
    }
}

impl Driver {
    /// The driver of a run whose launcher is `node`, which tells it `events`: for whoever starts runs.
    #[must_use]
    pub fn new(node: &Arc<Node>, events: Receiver<DriverEvent>, timeline: Timeline) -> Self {
        let topology = node.topology();
        let machine = |id: NodeId| Machine {
            name: format!("node {}", id.0),
            rates: vec![1.0; topology.pes(id).len()],
            ..Machine::default()
        };
        Self {
            pe: Pe::new(PeId::DRIVER, Arc::clone(node)),
            machines: Machines {
                nodes: topology.compute_nodes().iter().copied().map(machine).collect(),
                launcher: Machine { name: "launcher".into(), ..Machine::default() },
                ..Machines::default()
            },
            events,
            slots: HashMap::new(),
            next_slot: 0,
            acknowledged: HashMap::new(),
            collected: HashMap::new(),
            counted: BTreeMap::new(),
            answers: HashMap::new(),
            answered: HashMap::new(),
            next_mark: 0,
            quiescent: (0, 0),
            failed: None,
            rates: HashMap::new(),
            timeline,
            on_shares: None,
            part: tracing::info_span!("initialisation"),
            history: History::default(),
            shown: maps::Shown::default(),
            remarks: remarks::Remarks::default(),
            asked: VecDeque::new(),
            nodes: Nodes::of(topology),
            crews: HashMap::new(),
        }
    }

    /// A callback and the place where its results can be waited for.
    pub fn pending<M: Message>(&mut self) -> (Callback<M>, Pending<M>) {
        self.next_slot += 1;
        (Callback::slot(self.next_slot), Pending { slot: self.next_slot, message: PhantomData })
    }

    /// Waits until no entry method runs and no message is anywhere.
    ///
    /// # Errors
    /// If the run fails meanwhile, or if messages are left for elements that nobody has made: it names one.
    pub fn quiescence(&mut self) -> Result<(), RunError> {
        self.once("quiescence", |main| {
            main.pe.unpark_known();
            let search = main.pe.node().start_quiescence(true);
            let held = main.wait_long(|main| (main.quiescent.0 == search).then_some(main.quiescent.1))?;
            if held > 0 { main.name_held() } else { Ok(()) }
        })
    }

    /// Ends the run, in which nothing goes on any more, with the name of a message that is held somewhere.
    fn name_held<T>(&mut self) -> Result<T, RunError> {
        for pe in 0..self.all_pes() {
            self.pe.order(PeId(pe), PeOrder::NameHeld, Packed::default());
        }
        self.wait_until(|_| None)
    }

    /// Gives every node a value that its PEs share without copies; returns when all have it.
    ///
    /// # Errors
    /// If the run fails meanwhile.
    pub fn readonly<T: Message + Sync>(&mut self, value: T) -> Result<Readonly<T>, RunError> {
        Readonly::spread(self, value)
    }

    /// A variable that many add to.
    pub fn accumulator<T: Reduce>(&mut self) -> Accumulator<T> {
        Accumulator::new(self)
    }

    /// What has been added to an accumulator since the last time, combined in no order that is promised;
    /// `None` if nothing. Additions that are still being made are counted now or the next time; after
    /// [`quiescence`](Self::quiescence) all are.
    ///
    /// # Errors
    /// If the run fails meanwhile.
    pub fn collect<T: Reduce>(&mut self, accumulator: &Accumulator<T>) -> Result<Option<T>, RunError> {
        self.once("an accumulator", |main| main.collect_now(accumulator.id()))
    }

    fn collect_now<T: Reduce>(&mut self, id: u64) -> Result<Option<T>, RunError> {
        self.pe.node().collect_all(id);
        let nodes = self.pe.node().topology().compute_nodes().len();
        let parts = self.wait_until(|main| {
            let is_complete = main.collected.get(&id).map_or(0, BTreeMap::len) == nodes;
            is_complete.then(|| main.collected.remove(&id).unwrap_or_default())
        })?;
        let mut sum: Option<T> = self.pe.node().sums().collect(id).map(|p| pup::unpack(&p)).transpose()?;
        let earlier = self.history.sums.remove(&id).unwrap_or_default();
        for part in parts.into_values().flatten().chain(earlier) {
            let part: T = pup::unpack(&part)?;
            match &mut sum {
                Some(sum) => sum.combine(part),
                None => sum = Some(part),
            }
        }
        Ok(sum)
    }

    /// A variable that only gets better, known nearly everywhere at once.
    pub fn monotonic<T: Message + Sync + Better + Clone>(&mut self) -> Monotonic<T> {
        Monotonic::new(self)
    }

    /// Says that initialisation is over: waits until everything sent so far has been processed, then
    /// begins the timed part, which reports exclude initialisation from.
    ///
    /// # Errors
    /// If the run fails meanwhile.
    pub fn init_over(&mut self) -> Result<(), RunError> {
        if let Some(tell) = &self.on_shares {
            tell(&self.timeline.shares, &self.timeline.holdings);
        }
        self.quiescence()?;
        let before = self.snapshots()?;
        self.pe.node().set_init_over(true);
        self.wait_for_variable(INIT_OVER)?;
        // The part before it ends first.
        self.part = tracing::Span::none();
        self.part = tracing::info_span!("timed");
        self.timeline.begin_timed(before);
        Ok(())
    }

    /// Ends the timed part: the last result has been computed. What follows is collection of results.
    ///
    /// # Errors
    /// If the run fails meanwhile.
    pub fn timed_over(&mut self) -> Result<(), RunError> {
        self.timeline.end_timed();
        self.part = tracing::Span::none();
        self.part = tracing::info_span!("collection");
        let after = self.snapshots()?;
        self.timeline.set_after(after);
        Ok(())
    }

    /// Announces work of `total` units, whose progress the window and the progress bar show from now on, e.g. `column
    /// 412 of 2048` for the name `column`, and how long the rest may take at this rate: chares say what they have done
    /// with [`Ctx::progress`](crate::Ctx::progress). Takes a message to all nodes and back.
    ///
    /// # Errors
    /// If the run fails meanwhile.
    pub fn expect_progress(&mut self, name: &str, total: u64) -> Result<(), RunError> {
        let now = self.snapshots()?;
        let before =
            now.iter().flat_map(|node| &node.pes).fold(0, |sum: u64, pe| sum.wrapping_add(pe.progress));
        self.pe.node().count_progress(name.into(), total, before);
        self.history.counted = Some((name.into(), total, before));
        Ok(())
    }

    /// `tell` is called with the share of the data of each PE, and what each node holds, when initialisation is over.
    pub fn on_shares(&mut self, tell: impl Fn(&[f64], &[String]) + Send + 'static) {
        self.on_shares = Some(Box::new(tell));
    }

    /// States what the run computed and how well, for the report.
    pub fn outcome(&mut self) -> &mut Timeline {
        &mut self.timeline
    }

    /// The nodes that have PEs, in the order of their PEs, with their speeds and memory, and the process that the driver
    /// runs in: what work is divided by.
    #[must_use]
    pub fn machines(&self) -> &Machines {
        &self.machines
    }

    /// Takes over what is known of the machines, and tells all nodes the relative speeds.
    pub fn set_machines(&mut self, machines: Machines) {
        self.pe.node().set_speeds(machines.speeds());
        let topology = self.pe.node().topology();
        self.nodes.own_rates = OwnRates::new(&machines.rates(), machines.is_measured, topology);
        self.timeline.rates = if machines.is_measured { machines.rates() } else { Vec::new() };
        self.machines = machines;
    }

    /// Units of work per second of processor time of each PE; `None` unless it was measured in this run.
    #[must_use]
    pub fn cpu_rates(&self) -> Option<Vec<f64>> {
        self.pe.node().measured_cpu_rates()
    }

    /// What the run measured of itself, when the driver is done.
    #[must_use]
    pub fn into_timeline(self) -> Timeline {
        self.timeline
    }

    /// Makes the application's kernel ready on all PEs, to [`measure`](Self::measure) their speeds with it.
    ///
    /// # Errors
    /// If the run fails meanwhile.
    pub fn prepare_kernel(&mut self, kernel: u16, arguments: &[u8]) -> Result<(), RunError> {
        self.speeds(PeOrder::PrepareKernel { kernel }, arguments).map(drop)
    }

    /// Runs the kernel that has been made ready on all PEs at once; units of work per second of each.
    ///
    /// # Errors
    /// If the run fails meanwhile.
    pub fn measure(&mut self, budget: Duration) -> Result<Vec<f64>, RunError> {
        let _span = tracing::info_span!("measure", ?budget).entered();
        self.speeds(to_measure(budget), &[])
    }

    /// Gives back the memory of the kernel.
    pub fn drop_kernel(&mut self) {
        self.order_each(0..self.all_pes(), PeOrder::DropKernel, &[]);
    }

    /// Count of PEs that there are now.
    fn all_pes(&self) -> u32 {
        self.pe.node().topology().pe_count()
    }

    fn order_each(&mut self, pes: Range<u32>, order: PeOrder, payload: &[u8]) {
        for pe in pes {
            self.pe.order(PeId(pe), order, Packed { body: payload.to_vec().into(), attachments: Vec::new() });
        }
    }

    /// What each PE answers to an order with a speed.
    fn speeds(&mut self, order: PeOrder, payload: &[u8]) -> Result<Vec<f64>, RunError> {
        self.once("speeds", |main| main.speeds_of(0..main.all_pes(), order, payload))
    }

    /// What each of these PEs answers.
    fn speeds_of(&mut self, pes: Range<u32>, order: PeOrder, payload: &[u8]) -> Result<Vec<f64>, RunError> {
        self.rates.clear();
        self.order_each(pes.clone(), order, payload);
        self.wait_until(|main| pes.clone().map(|pe| main.rates.get(&PeId(pe)).copied()).collect())
    }

    /// Counters of all nodes, now; those of the launcher first. Nodes that have left are behind the others, with those that
    /// they had then.
    ///
    /// # Errors
    /// If the run fails meanwhile.
    pub fn snapshots(&mut self) -> Result<Vec<NodeSnapshot>, RunError> {
        self.once("counters", |main| {
            main.next_mark += 1;
            let mark = main.next_mark;
            main.pe.node().ask_all(mark);
            let nodes = main.pe.node().topology().compute_nodes().len();
            main.wait_until(|main| {
                let is_complete = main.answers.get(&mark).map_or(0, BTreeMap::len) == nodes;
                is_complete.then(|| {
                    let others = main.answers.remove(&mark).unwrap_or_default();
                    let here = std::iter::once(main.pe.node().snapshot());
                    here.chain(others.into_values()).chain(main.nodes.left()).collect()
                })
            })
        })
    }

    /// When the counters came of which this node told last; `None` if it has not told any.
    #[must_use]
    pub fn answered(&self, node: u16) -> Option<Instant> {
        self.answered.get(&node).copied()
    }

    pub(crate) fn wait_for_variable(&mut self, id: u64) -> Result<(), RunError> {
        self.once("a variable", |main| {
            let nodes = main.pe.node().topology().members().count();
            main.wait_until(|main| main.acknowledged.get(&id).filter(|by| by.len() == nodes).map(|_| ()))?;
            main.acknowledged.remove(&id);
            Ok(())
        })
    }

    /// The next result for a waiting place. While it does not come, looks now and then whether anything
    /// still goes on, so that a program that waits in vain ends with a sentence instead of never.
    fn result(&mut self, slot: u64) -> Result<Payload, RunError> {
        let started = Instant::now();
        let mut search = None;
        let result = self.wait_long(|main| {
            if let Entry::Occupied(mut waiting) = main.slots.entry(slot) {
                let result = waiting.get_mut().pop_front();
                if waiting.get().is_empty() {
                    waiting.remove();
                }
                if result.is_some() {
                    return Some(result);
                }
            }
            if search.is_none() && started.elapsed() > PATIENCE {
                search = Some(main.pe.node().start_quiescence(false));
            }
            (search == Some(main.quiescent.0)).then_some(None)
        })?;
        match result {
            Some(result) => Ok(result),
            None if self.quiescent.1 > 0 => self.name_held(),
            None => Err(RunError::Failed(
                "the driver waits for a result, but nothing is left anywhere that could give it".into(),
            )),
        }
    }

    /// Waits for what chares do: meanwhile a checkpoint may be taken, and what is asked for at other terminals is granted.
    fn wait_long<T>(&mut self, mut ready: impl FnMut(&mut Self) -> Option<T>) -> Result<T, RunError> {
        loop {
            if let Some(value) = self.wait_for_next(&mut ready)? {
                return Ok(value);
            }
            if self.history.is_outermost() {
                self.grant_requests()?;
                let is_good_moment = std::mem::take(&mut self.history.is_good_moment);
                self.checkpoint_if_due(is_good_moment)?;
            }
        }
    }

    /// Waits for what nodes answer at once.
    fn wait_until<T>(&mut self, mut ready: impl FnMut(&mut Self) -> Option<T>) -> Result<T, RunError> {
        loop {
            if let Some(value) = self.wait_for_next(&mut ready)? {
                return Ok(value);
            }
        }
    }

    /// Waits for the next event at most, or for a short time.
    fn wait_for_next<T>(
        &mut self,
        ready: &mut impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<Option<T>, RunError> {
        if let Some(failure) = &self.failed {
            return Err(failure.clone().into());
        }
        if let Some(value) = ready(self) {
            return Ok(Some(value));
        }
        if let Some(failure) = &self.failed {
            return Err(failure.clone().into());
        }
        self.pe.unpark_known();
        let dues = [self.pe.node().pump_quiescence(), self.go_on_with_snapshot()];
        let timeout = dues.into_iter().flatten().fold(TICK, Duration::min);
        match self.events.recv_timeout(timeout) {
            Ok(event) => self.take(event),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(RunError::Failed("the run has ended".into()));
            }
        }
        while let Ok(event) = self.events.try_recv() {
            self.take(event);
        }
        Ok(None)
    }

    fn take(&mut self, event: DriverEvent) {
        match event {
            DriverEvent::Slot(colour, slot, payload) => {
                self.pe.node().driver_processed();
                self.hear_late(colour, slot, &payload);
                if self.shown.is_over(slot) {
                    return;
                }
                self.slots.entry(slot).or_default().push_back(payload);
            }
            // `wait_until` asks for the moment after every event.
            DriverEvent::QuiescenceDue => {}
            DriverEvent::Quiescent { search, held } => self.quiescent = (search, held),
            // Answers are kept by node, so that one that repeats itself does not stand for another.
            DriverEvent::VariableSet(by, id) => {
                self.acknowledged.entry(id).or_default().insert(by);
            }
            DriverEvent::Collected(by, id, part) => {
                self.collected.entry(id).or_default().insert(by, part);
            }
            DriverEvent::Speed(pe, rate) => {
                self.rates.insert(pe, rate);
            }
            DriverEvent::Answer(mark, snapshot) => {
                self.answered.insert(snapshot.node, Instant::now());
                self.answers.entry(mark).or_default().insert(snapshot.node, *snapshot);
            }
            DriverEvent::Paused(pe, paused) => self.hear_paused(pe, paused),
            DriverEvent::HasCut(pe, cut) => self.hear_cut(pe, cut),
            DriverEvent::Counted(node, round, carried) => self.hear_counted(node, round, carried),
            DriverEvent::Closed(pe, records) => self.hear_closed(pe, records),
            DriverEvent::Reading(pe, bytes) => drop(self.history.checkpoint.read_bytes.insert(pe, bytes)),
            DriverEvent::GoodMoment => self.history.is_good_moment = true,
            DriverEvent::Record(from, record, packed) => self.hear_record(from, record, packed),
            DriverEvent::Wrote(pe, checkpoint, wrote) => self.hear_wrote(pe, checkpoint, wrote),
            DriverEvent::Kept => self.hear_kept(),
            DriverEvent::Left(node) => self.nodes.ended(node),
            DriverEvent::Recruited(recruited) => self.nodes.recruited = Some(recruited),
            DriverEvent::Asked(asked) => self.asked.push_back(asked),
            DriverEvent::Failed(failure) => {
                self.failed.get_or_insert(failure);
            }
        }
    }
}

/// The order to measure for so long.
fn to_measure(budget: Duration) -> PeOrder {
    PeOrder::Measure { budget_ms: u32::try_from(budget.as_millis()).unwrap_or(u32::MAX) }
}

/// A place where the driver waits for results of type `M`.
#[derive(Debug)]
pub struct Pending<M> {
    slot: u64,
    message: PhantomData<fn() -> M>,
}

impl<M: Message> Pending<M> {
    /// Waits for the next result.
    ///
    /// # Errors
    /// If the run fails meanwhile, or if nothing is left anywhere that could give the result.
    pub fn wait(&self, main: &mut Driver) -> Result<M, RunError> {
        let what = || format!("result {} ({})", self.slot, type_name::<M>());
        main.remember(what, |main| Ok(main.result(self.slot)?.open(open)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InProcess, Program};
    use runtime::failure::{Interruption, Kind, Sign};

    #[test]
    fn waits_say_why_the_run_failed_so_that_a_driver_can_match_on_it() {
        let wait = |kind| {
            let program = Program::new("waits", "1");
            let waited = program.run_in_process(&InProcess::new(&[1]), |main| {
                main.pe.node().tell_failed(Failure::new(kind, "why"));
                main.quiescence()
            });
            waited.unwrap_err()
        };
        let lost = wait(Kind::NodeLost { node: "b".into(), sign: Sign::Exit });
        assert_eq!((lost.to_string().as_str(), lost.exit_code()), ("why", 69));
        assert!(matches!(lost, RunError::NodeLost { node, .. } if node == "b"));
        assert!(matches!(wait(Kind::Failed), RunError::Failed(why) if why == "why"));
        for kind in [Kind::Timeout, Kind::Standstill, Kind::Interrupted(Interruption::Terminate)] {
            assert!(matches!(wait(kind.clone()), RunError::Ended(failure) if failure.kind == kind));
        }
    }
}
