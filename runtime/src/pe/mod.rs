//! A processing element: what an entry method can reach of the machine while it runs.

pub mod account;
pub mod combine;
mod contributors;
mod cutting;
mod departure;
mod doing;
pub mod ending;
pub(crate) mod gathering;
mod idle;
pub mod inbox;
pub(crate) mod loads;
pub mod moving;
mod on_core;
mod outbox;
mod parked;
mod points;
mod processor;
pub mod queue;
mod recent;
mod ring;
mod sampling;
pub(crate) mod saving;
mod scattering;
pub mod scheduler;
pub mod section;
mod seeds;
mod share;
pub(crate) mod tally;
pub mod timekeeper;
pub(crate) mod told;
pub(crate) mod traffic;

use crate::codec::{
    ControlToLauncher, Order, Refusal, Spread, VariableKind, WorkToLauncher, WorkToNode, append_header,
};
use crate::collection::{Collection, CollectionError, Placement};
use crate::envelope::{
    CallbackTarget, CollectionId, ElementId, ElementIndex, Envelope, Outgoing, Packed, Payload, PeOrder, ToPe,
};
use crate::frame::LARGE_BYTES;
use crate::ids::{NodeId, PeId};
use crate::monitor::samples::per_second;
use crate::moving::Audience;
use crate::node::Node;
use crate::node::naming::Named;
use crate::payload::Unsent;
use crate::priority::Priority;
use crate::proto::snapshot::Side;
use account::Account;
use bytes::Bytes;
use doing::Doing;
use ending::{Ended, EndedSingle};
use gathering::Gathering;
use loads::Loads;
use moving::Moved;
use outbox::Outbox;
use parked::Parked;
use points::Points;
use queue::{Queue, QueueOrder};
use recent::Recent;
use rustc_hash::FxHashMap;
use sampling::Sampling;
use seeds::Seeds;
use std::fmt;
use std::sync::Arc;
use timekeeper::Timekeeper;
use traffic::Counting;

/// The PE's side of sending, creating and contributing. Owned by one thread; the driver has one too.
pub struct Pe {
    id: PeId,
    /// Where it is in a snapshot, and the colour of what it sends.
    side: Side,
    node: Arc<Node>,
    account: Arc<Account>,
    queue: Queue,
    /// What it sends to itself may be moved, and goes behind what is there.
    delivers_here: bool,
    /// As long as that is so and nothing waits or has moved that messages would have to wait for or follow: one look for
    /// each message in place of several.
    is_direct: bool,
    /// Something is to be done when the present message has been dealt with.
    has_more_to_do: bool,
    known: Recent<Arc<Collection>>,
    /// Messages to collections whose description has not arrived here; kept in order.
    parked: FxHashMap<CollectionId, Vec<Parked>>,
    serial: u32,
    /// Single chares that were made from here, for each type and PE: the number of the next.
    singles: FxHashMap<(u16, PeId), u64>,
    /// Next PE for placement by speed: credit of each PE (smooth weighted round robin).
    credits: Vec<f64>,
    reductions: combine::Places,
    /// How reductions over sections go from here.
    plans: section::Plans,
    moved: Moved,
    seeds: Seeds,
    /// Elements that have been destroyed by the present message.
    ended: Vec<Ended>,
    ended_singles: Vec<EndedSingle>,
    /// The element whose entry method or constructor runs, or ran last for the current message.
    running: Option<ElementIndex>,
    doing: Doing,
    timekeeper: Timekeeper,
    loads: Loads,
    traffic: Counting,
    sampling: Sampling,
    gathering: Gathering,
    /// Where messages for other nodes are written before they leave.
    written: Vec<u8>,
    /// When the launcher may be told next that now is a good moment for a checkpoint.
    good_moment_from_ns: u64,
    points: Points,
    outbox: Outbox,
}

/// Most memory that is kept for the next message to another node.
const WRITTEN_KEPT_BYTES: usize = 64 << 10;
/// The launcher is not told more often.
const GOOD_MOMENT_EVERY_NS: u64 = 10_000_000;

impl fmt::Debug for Pe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.id, self.node)
    }
}

impl Pe {
    /// The PE numbered `id` of `node`; [`PeId::DRIVER`] on the launcher.
    #[must_use]
    pub fn new(id: PeId, node: Arc<Node>) -> Self {
        let balances = node.settings().balances && id != PeId::DRIVER;
        let look_ns = loads::look_ns(|| node.now_ns());
        let counts_traffic = balances && node.settings().counts_traffic;
        let (pe_count, own) = (node.topology().pe_count(), node.id());
        let detail = node.settings().detail;
        let samples_per_s = if detail.tells_single() { per_second(pe_count) } else { 0 };
        let mut timekeeper = if detail.times() {
            Timekeeper::timing(look_ns, samples_per_s > 0, balances)
        } else {
            Timekeeper::off()
        };
        if id == PeId::DRIVER {
            timekeeper.always_marks();
        }
        let order = node.program().queue_order;
        let delivers_here = id != PeId::DRIVER && !node.settings().always_pup && order == QueueOrder::Fifo;
        let outbox = Outbox::new(&node);
        Self {
            id,
            side: Side::new(node.colour()),
            account: Arc::clone(node.pes().account(id)),
            delivers_here,
            is_direct: delivers_here,
            has_more_to_do: false,
            node,
            queue: Queue::new(order),
            known: Recent::default(),
            parked: FxHashMap::default(),
            serial: 0,
            singles: FxHashMap::default(),
            credits: Vec::new(),
            reductions: combine::Places::default(),
            plans: section::Plans::default(),
            moved: Moved::new(id),
            seeds: Seeds::new(id),
            ended: Vec::new(),
            ended_singles: Vec::new(),
            running: None,
            doing: Doing::default(),
            timekeeper,
            loads: Loads::new(balances, look_ns),
            traffic: Counting::new(counts_traffic),
            sampling: Sampling::new(samples_per_s, own),
            gathering: Gathering::new(samples_per_s > 0),
            written: Vec::new(),
            good_moment_from_ns: 0,
            points: Points::default(),
            outbox,
        }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> PeId {
        self.id
    }

    /// Its node.
    #[must_use]
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// The element at `index` begins to run: it is named if it fails.
    pub fn runs(&mut self, index: ElementIndex) {
        self.running = Some(index);
    }

    /// The same for one of several that a message reaches one after the other.
    #[inline]
    pub fn runs_next(&mut self, element: ElementId) {
        self.running = Some(element.index);
        let Self { loads, node, outbox, .. } = self;
        outbox.passes();
        loads.next_of_many(element, || node.now_ns());
    }

    /// Whether messages must be packed even inside the process.
    #[must_use]
    pub fn always_pup(&self) -> bool {
        self.node.settings().always_pup
    }

    /// Whether a value for `pe` may be moved instead of packed.
    #[must_use]
    pub fn moves_to(&self, pe: PeId) -> bool {
        !self.always_pup() && (pe == self.id || self.node.topology().node_of(pe) == self.node.id())
    }

    /// A collection, if its description has arrived at this node.
    pub fn collection(&mut self, id: CollectionId) -> Option<Arc<Collection>> {
        if let Some(known) = self.known.get(id) {
            return Some(Arc::clone(known));
        }
        let collection = self.node.collection(id)?;
        self.known.insert(id, Arc::clone(&collection));
        Some(collection)
    }

    /// Sends to the element at `index`, which lives on `home`, or where its collection's placement says.
    /// An index outside the collection ends the run,
    /// named.
    #[inline]
    pub fn send_element(
        &mut self,
        (collection, index, home): (CollectionId, ElementIndex, Option<PeId>),
        entry: u16,
        priority: impl Into<Priority>,
        message: impl Outgoing,
    ) {
        let priority = priority.into();
        if self.traffic.is_next() {
            self.look_at(ElementId { collection, index }, &message);
        }
        let is_here = |this: &Self| match home {
            Some(home) => home == this.id,
            None => this.known.get(collection).is_some_and(|known| known.is_on(this.id, index)),
        };
        if priority.is_ordinary() && self.is_direct && is_here(self) {
            self.account().created(1);
            return match message.payload(true) {
                Payload::Value(message) => self.queue.push_moved(collection, index, entry, message),
                payload => {
                    let to = ToPe::Element { collection, index, entry, from: self.id, number: 0 };
                    self.queue.push(Envelope::new(to, priority, payload));
                }
            };
        }
        self.send_elsewhere((ElementId { collection, index }, home), entry, priority, &mut Some(message));
    }

    /// Sends to an element that may be anywhere. No generic code: there would be a copy of it for each type of message.
    fn send_elsewhere(
        &mut self,
        (element, home): (ElementId, Option<PeId>),
        entry: u16,
        priority: Priority,
        message: &mut dyn Unsent,
    ) {
        if !self.moved.locations.is_empty() && self.send_numbered((element, home), entry, &priority, message)
        {
            return;
        }
        let ElementId { collection, index } = element;
        let to = ToPe::Element { collection, index, entry, from: self.id, number: 0 };
        match home {
            Some(pe) => self.send_to_pe(pe, to, priority, message),
            None => self.send_by_place(collection, index, to, priority, message),
        }
    }

    /// Sends a constructor argument for the element at `index` of a deferred collection.
    pub fn insert(&mut self, collection: CollectionId, index: ElementIndex, message: impl Outgoing) {
        let to = ToPe::Insert { collection, index };
        self.send_by_place(collection, index, to, Priority::ORDINARY, &mut Some(message));
    }

    fn send_by_place(
        &mut self,
        collection: CollectionId,
        index: ElementIndex,
        to: ToPe,
        priority: Priority,
        message: &mut dyn Unsent,
    ) {
        // What waits must not be overtaken by what comes later.
        let known = if self.is_waited_for(collection) { None } else { self.place_of(collection, index) };
        match known {
            Some(Some(pe)) => self.send_to_pe(pe, to, priority, message),
            Some(None) => self.outside(collection, index),
            None => {
                if let Err(refusal) = self.node.checks().check_id(collection) {
                    return self.misdirected(&refusal);
                }
                self.account().created(1);
                self.park(collection, Parked::Plain(index, to, priority, message.payload(false)));
            }
        }
    }

    /// Where an element is created: `None` if its collection is not known here yet, `Some(None)` if the
    /// index lies outside.
    fn place_of(&mut self, collection: CollectionId, index: ElementIndex) -> Option<Option<PeId>> {
        if let Some(known) = self.known.get(collection) {
            return Some(known.pe_of(index));
        }
        self.collection(collection).map(|c| c.pe_of(index))
    }

    fn misdirected(&self, why: &Refusal) {
        self.node.fail(format!("{:?} would have sent a message to nobody: {why}", self.id));
    }

    fn outside(&self, collection: CollectionId, index: ElementIndex) {
        let Some(known) = self.known.get(collection) else { return };
        let program = self.node.program();
        let name = |index| program.index_name(known.chare_type, index);
        let (at, shape) = (name(index), name(ElementIndex(known.shape)));
        let of = program.chare_types.get(usize::from(known.chare_type)).map_or("?", |t| t.name.as_str());
        self.node.fail(format!("{:?} sent to element {at} of an array of {of} of shape {shape}", self.id));
    }

    /// Sends to a PE that is known.
    pub fn send_to(&mut self, pe: PeId, to: ToPe, priority: impl Into<Priority>, message: impl Outgoing) {
        self.send_to_pe(pe, to, priority.into(), &mut Some(message));
    }

    fn send_to_pe(&mut self, pe: PeId, mut to: ToPe, priority: Priority, message: &mut dyn Unsent) {
        self.account().created(1);
        if pe != self.id {
            to.set_mark(self.mark());
        }
        let topology = self.node.topology();
        // An address that is no PE can only have come inside a message; `dispatch` reports it.
        if pe.0 < topology.pe_count() {
            let node = topology.node_of(pe);
            if node != self.node.id() {
                return self.write_to(node, &WorkToNode::to_pe(pe, priority, to), message);
            }
        }
        let payload = message.payload(self.moves_to(pe));
        self.dispatch(pe, to, priority, payload);
    }

    /// Sends a result for which the driver waits under this number.
    fn send_result(&mut self, slot: u64, result: &mut dyn Unsent) {
        self.account().created(1);
        if self.node.id() == NodeId::LAUNCHER {
            let colour = Some(self.colour());
            self.node.take_result(colour, slot, result.payload(!self.always_pup()));
        } else {
            self.write_to(NodeId::LAUNCHER, &WorkToLauncher::Result(slot), result);
        }
    }

    /// Has a PE do what only the launcher may ask for: only there.
    pub fn order(&mut self, pe: PeId, order: PeOrder, payload: Packed) {
        self.account().created(1);
        self.node.order(self.node.topology().node_of(pe), Order::ToPe(pe, order), payload);
    }

    /// Sends to another node. Short messages are written once, behind their header, and copied to where they leave
    /// from.
    fn write_to(&mut self, node: NodeId, header: &impl Named, message: &mut dyn Unsent) {
        self.written.clear();
        let colour = self.side.colour();
        append_header(header, Some(colour), &mut self.written);
        let head = self.written.len();
        match message.write(&mut self.written) {
            Some(bulk) if bulk.is_empty() && self.written.len() - head < LARGE_BYTES => {
                let bytes = self.node.send_small(node, header, &self.written);
                self.account().left_small(node, colour, bytes);
            }
            Some(attachments) => {
                let body = Bytes::copy_from_slice(&self.written[head..]);
                // The buffer is emptied first, because memory that is still in use cannot be given back.
                self.written.clear();
                self.written.shrink_to(WRITTEN_KEPT_BYTES);
                self.transmit(node, header, Payload::packed(Packed { body, attachments }));
            }
            None => self.transmit(node, header, message.payload(false)),
        }
    }

    /// Sends to every element of a collection, over the tree of nodes.
    pub fn broadcast(
        &mut self,
        collection: CollectionId,
        entry: u16,
        priority: impl Into<Priority>,
        packed: Packed,
    ) {
        let priority = priority.into();
        let audience = || Audience { collection, members: None, entry, priority: priority.clone() };
        let packed = match self.speak(audience, packed) {
            Ok(()) => return,
            Err(packed) => packed,
        };
        self.account().created(u64::from(self.node.topology().pe_count()));
        let what = Spread::Broadcast { collection, entry, priority, mark: self.mark() };
        let bytes = self.node.spread(self.colour(), what, packed);
        self.account().left(bytes);
    }

    /// Makes a new collection; its elements are constructed from `init` unless it is deferred. Elements of one that
    /// `is_fixed` never move.
    ///
    /// # Errors
    /// If the shape or the placement is not possible.
    pub fn create(
        &mut self,
        chare_type: u16,
        shape: [u32; 3],
        (placement, is_fixed): (Placement, bool),
        init: Option<Packed>,
    ) -> Result<CollectionId, CollectionError> {
        let id = self.fresh_id();
        let topology = self.node.topology();
        let (pe_count, begun) = (topology.pe_count(), topology.begun().pe_count());
        let mut made = Collection::new(id, chare_type, shape, placement, init.is_none(), begun)?;
        made.is_fixed = is_fixed;
        self.account().created(u64::from(pe_count));
        let bytes = self.node.create(self.colour(), made, init.unwrap_or_default());
        self.account().left(bytes);
        Ok(id)
    }

    /// An identity that nobody else has, for a collection, section or variable.
    pub fn fresh_id(&mut self) -> CollectionId {
        self.serial += 1;
        CollectionId::made_by(self.id, self.serial)
    }

    /// An index for a new single chare that no other of its type on the PE `home` has: the PE that makes it, and how
    /// many it has made there before. So `home` knows which have been there without a list of all.
    pub fn fresh_single(&mut self, chare_type: u16, home: PeId) -> ElementIndex {
        let next = self.singles.entry((chare_type, home)).or_default();
        let index = ElementIndex::of_single(self.id, home, *next);
        *next += 1;
        index
    }

    /// The next PE when single chares are handed out in proportion to speed.
    pub fn next_by_speed(&mut self) -> PeId {
        let speeds = self.node.speeds();
        self.credits.resize(speeds.len(), 0.0);
        self.credits.iter_mut().zip(speeds.iter()).for_each(|(credit, speed)| *credit += speed);
        let credit = |at: &usize| self.credits[*at];
        // `max_by` would take the last of equal PEs; the first is wanted.
        let best = (0..speeds.len()).rev().max_by(|a, b| credit(a).total_cmp(&credit(b))).unwrap_or_default();
        self.credits[best] -= speeds.iter().sum::<f64>();
        PeId(u32::try_from(best).expect("there are fewer than 2^32 PEs"))
    }

    /// Sets a write-once variable on all nodes; `callback` gets `ready` when it is in place everywhere.
    pub fn set_write_once(
        &mut self,
        id: u64,
        value: Packed,
        callback: CallbackTarget,
        ready: impl FnOnce() -> Payload,
    ) {
        if callback != CallbackTarget::Ignore
            && let Payload::Packed(ready) = ready()
        {
            self.account().created(1);
            let by = (self.id, self.colour());
            self.node.expect_everywhere(by, id, callback, Arc::unwrap_or_clone(ready));
        }
        self.set_variable(id, VariableKind::Once, value, true);
    }

    /// Sets a variable on all nodes; the driver hears `VariableSet` from each if `acknowledge`.
    pub fn set_variable(&mut self, id: u64, kind: VariableKind, packed: Packed, acknowledge: bool) {
        self.node.set_variable((self.id, self.colour()), id, kind, packed, acknowledge);
    }

    /// Sends a result to whoever wants it. A callback that no run of this program can have made ends the run,
    /// named: it came inside a message.
    pub fn reply(&mut self, to: CallbackTarget, result: impl Outgoing) {
        if let Err(refusal) = self.node.checks().check_callback(&to) {
            return self.misdirected(&refusal);
        }
        match to {
            CallbackTarget::Ignore => {}
            CallbackTarget::Slot(slot) => self.send_result(slot, &mut Some(result)),
            CallbackTarget::Element { collection, index, entry, home } => {
                self.send_element((collection, index, home), entry, 0, result);
            }
            CallbackTarget::All { collection, entry } => match result.payload(false) {
                Payload::Packed(packed) => self.broadcast(collection, entry, 0, Arc::unwrap_or_clone(packed)),
                Payload::Value(_) => tracing::error!("a value was moved where it had to be packed"),
            },
            CallbackTarget::Members { .. } => self.fail(
                "a result for the members of a section did not come from a reduction over that section: only \
                 those know its members"
                    .into(),
            ),
        }
    }

    /// Ends the run with one sentence.
    pub fn fail(&self, sentence: String) {
        self.node.fail(sentence);
    }

    /// A chare has done so many units of what the driver counts.
    pub fn progressed(&self, units: u64) {
        self.account().progressed(units);
    }

    /// A chare says that now is a good moment for a checkpoint. The launcher is told so at most a hundred times a second.
    pub fn good_moment(&mut self) {
        let now_ns = self.node.now_ns();
        if now_ns >= self.good_moment_from_ns {
            self.good_moment_from_ns = now_ns + GOOD_MOMENT_EVERY_NS;
            self.node.tell_launcher(ControlToLauncher::GoodMoment);
        }
    }

    /// A chare says how much work it still has to do, in units that are the same for all.
    pub fn work_remains(&mut self, element: ElementId, units: f64) {
        self.loads.remains(element, units);
    }

    /// A chare says that now is a good moment for it to move, if somebody wants that.
    pub fn may_move_now(&mut self, element: ElementId) {
        if self.loads.is_on
            && let Some(to) = self.points.say(element, self.node.now_ns())
        {
            self.leave_for(element, to);
        }
    }

    /// A chare is here that may not go anywhere.
    pub fn has_limited_chares(&mut self) {
        self.loads.has_limited = true;
    }

    /// A chare that lived here is gone.
    pub fn chare_left(&self) {
        self.account().chares(-1);
    }

    #[inline]
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// To be called when something no longer waits, or may be known to have moved.
    fn look_around(&mut self) {
        self.is_direct = self.delivers_here && self.parked.is_empty() && self.moved.locations.is_empty();
    }

    fn dispatch(&mut self, pe: PeId, to: ToPe, priority: Priority, payload: Payload) {
        let topology = self.node.topology();
        if pe.0 >= topology.pe_count() {
            // Such an address can only have come inside a message.
            return self.misdirected(&Refusal::Unknown(format!("{pe:?}")));
        }
        let node = topology.node_of(pe);
        if pe == self.id {
            self.queue.push(Envelope::new(to, priority, payload));
        } else if node == self.node.id() {
            self.node.pes().push(pe, Some(self.colour()), Envelope::new(to, priority, payload));
        } else {
            self.transmit(node, &WorkToNode::to_pe(pe, priority, to), payload);
        }
    }

    fn transmit(&self, node: NodeId, header: &impl Named, payload: Payload) {
        let Payload::Packed(packed) = payload else {
            tracing::error!("a value for another process was not packed");
            return;
        };
        let bytes = self.node.send_frame((node, Some(self.colour())), header, Arc::unwrap_or_clone(packed));
        self.account().left(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::frame::{Class, Fabric, Frame, SendError};
    use crate::node::NodeSettings;
    use crate::object::ProgramTable;
    use crate::topology::Topology;
    use std::sync::Mutex;

    /// Keeps what is sent.
    #[derive(Default)]
    struct Sent(Mutex<Vec<(Class, usize)>>);

    impl Fabric for Sent {
        fn send(&self, _: NodeId, class: Class, frame: Frame) -> Result<(), SendError> {
            self.0.lock().unwrap().push((class, frame.body.len()));
            Ok(())
        }
    }

    struct Zeros(usize);

    impl Outgoing for Zeros {
        fn payload(self, _: bool) -> Payload {
            Payload::packed(Packed { body: vec![0; self.0].into(), attachments: Vec::new() })
        }

        fn write(self, out: &mut Vec<u8>) -> Result<Vec<Buffer>, Self> {
            out.resize(out.len() + self.0, 0);
            Ok(Vec::new())
        }
    }

    #[test]
    fn a_long_message_to_another_node_leaves_its_memory_to_others() {
        let program = Arc::new(ProgramTable::default());
        let node = Node::new(NodeId(1), Topology::new(&[0, 1, 1]), program, NodeSettings::default());
        let sent = Arc::new(Sent::default());
        node.connect(Arc::clone(&sent) as Arc<dyn Fabric>);
        let mut pe = Pe::new(PeId(0), node);
        for length in [100, 1 << 20, 100] {
            let to = ToPe::Relay(Box::new(CallbackTarget::Ignore));
            pe.send_to(PeId(1), to, 0, Zeros(length));
            assert!(pe.written.capacity() <= WRITTEN_KEPT_BYTES, "{} are kept", pe.written.capacity());
        }
        let sent = sent.0.lock().unwrap();
        let classes: Vec<Class> = sent.iter().map(|(class, _)| *class).collect();
        assert_eq!(classes, [Class::Small, Class::Large, Class::Small]);
        assert!(sent[0] == sent[2] && sent[1].1 - sent[0].1 == (1 << 20) - 100, "{sent:?}");
    }
}
