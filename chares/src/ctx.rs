//! What an entry method may do, and what it shares with the driver.

use crate::callback::Callback;
use crate::chare::{Chare, Entry, Index, Message, Reduces};
use crate::placement::{On, Placement};
use crate::proxy::{Array, Element, Group, NodeGroup, Section};
use crate::pup;
use crate::reduce::{Gather, Reduce};
use crate::shared::WriteOnce;
use crate::site::Site;
use crate::type_name::type_name;
use loadbalance::balance::Mobility;
use runtime::buffer::Buffer;
use runtime::collection::Placement as RawPlacement;
use runtime::envelope::{
    CallbackTarget, CollectionId, ElementId, ElementIndex, Outgoing, Payload, ToPe, Value,
};
use runtime::ids::PeId;
use runtime::monitor::wire::Phase;
use runtime::pe::Pe;
use runtime::pe::combine::Contribution;
use runtime::priority::Priority;
use std::any::TypeId;
use std::marker::PhantomData;

/// Who can send and create: entry methods through [`Ctx`], and the [`Driver`](crate::Driver).
pub trait Cx: private::HasPe {
    /// Makes one chare of type `C` on the PE that `on` says. Returns at once. It is in no array: its
    /// [`index`](Ctx::index) says nothing, and it takes no part in reductions.
    fn chare<C: Chare>(&mut self, init: C::Init, on: On) -> Element<C> {
        let Some(chare_type) = registered::<C>(self.pe()) else { return Element::nowhere() };
        if matches!(on, On::BySpeed | On::AtRandom | On::ByLoad) {
            self.note_by_speed();
        }
        let pe = self.pe();
        let home = match on {
            On::Here | On::ByLoad if pe.id() != PeId::DRIVER => pe.id(),
            On::Pe(home) if home < pe.node().topology().begun().pe_count() => PeId(home),
            On::Pe(home) => {
                pe.fail(format!(
                    "a chare of type {} was to be made on PE {home}, which does not exist",
                    C::name()
                ));
                return Element::nowhere();
            }
            On::Here | On::BySpeed | On::ByLoad => self.home(Pe::next_by_speed),
            On::AtRandom => self.home(Pe::any_by_speed),
        };
        let (collection, pe) = (CollectionId::singles(chare_type), self.pe());
        let index = pe.fresh_single(chare_type, home);
        // A seed has to be there before its messages have their turn, so that it can go to who asks.
        let (index, priority) =
            if on == On::ByLoad { (index.seed(), Priority::first()) } else { (index, Priority::ORDINARY) };
        pe.send_to(home, ToPe::Insert { collection, index }, priority, Out(init));
        Element::new(collection, index, Some(home))
    }

    /// Makes an array of the given shape with equal shares of consecutive elements on every PE.
    ///
    /// # Examples
    /// The constructor's argument is what [`Chare::Init`] says.
    ///
    /// ```
    /// # #![allow(unused)]
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/block.rs"));
    /// fn plate(cx: &mut impl Cx) -> Array<Block> {
    ///     cx.array([4, 4], 64)
    /// }
    /// # fn main() {}
    /// ```
    ///
    /// Another type is refused: "type mismatch resolving `<Block as Chare>::Init == &str`".
    ///
    /// ```compile_fail,E0271
    /// # #![allow(unused)]
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/block.rs"));
    /// fn plate(cx: &mut impl Cx) -> Array<Block> {
    ///     cx.array([4, 4], "64")
    /// }
    /// # fn main() {}
    /// ```
    fn array<C: Chare>(&mut self, shape: C::Index, init: C::Init) -> Array<C> {
        self.array_placed(shape, init, Placement::Block)
    }

    /// Makes an array whose elements are constructed where `placement` says.
    fn array_placed<C: Chare>(&mut self, shape: C::Index, init: C::Init, placement: Placement) -> Array<C> {
        if placement == Placement::BySpeed {
            self.note_by_speed();
        }
        let id = create::<C>(self.pe(), shape.shape(), (&placement, false), Some(&init));
        Array::new(id, shape.shape())
    }

    /// Makes an array without elements; each is to be made with [`insert`](Cx::insert). Messages to an element
    /// wait until it is there, broadcasts on each PE until all elements there are, or have been. What waits in vain is an
    /// error at the driver's next [`quiescence`](crate::Driver::quiescence) or wait that cannot end.
    fn array_deferred<C: Chare>(&mut self, shape: C::Index, placement: Placement) -> Array<C> {
        if placement == Placement::BySpeed {
            self.note_by_speed();
        }
        let id = create::<C>(self.pe(), shape.shape(), (&placement, false), None);
        Array::new(id, shape.shape())
    }

    /// Constructs the element at `index` of an array, on the PE that its placement gives it: one that was made with
    /// [`array_deferred`](Cx::array_deferred), or that [has been destroyed](Ctx::destroy); see [what becomes of
    /// others](crate#elements-that-come-and-go). An element that is there already ends the run with a sentence.
    fn insert<C: Chare>(&mut self, array: &Array<C>, index: C::Index, init: C::Init) {
        self.pe().insert(array.id(), index.to_element(), Out(init));
    }

    /// Makes one element on every PE with which the run [began](Cx::pe_count) (the branch office chare of 1995). A chare may be
    /// on a PE that came later: [`Ctx::group_pe`] says whose element it turns to.
    fn group<C: Chare<Index = u32>>(&mut self, init: C::Init) -> Group<C> {
        let count = self.pe_count();
        let id = create::<C>(self.pe(), [count, 1, 1], (&Placement::Block, true), Some(&init));
        Group::new(Array::new(id, [count, 1, 1]))
    }

    /// Makes one element on every node, on the first PE there.
    fn node_group<C: Chare<Index = u32>>(&mut self, init: C::Init) -> NodeGroup<C> {
        let topology = self.pe().node().topology().begun();
        let first: Vec<PeId> = topology.compute_nodes().iter().map(|n| PeId(topology.pes(*n)[0])).collect();
        let count = u32::try_from(first.len()).expect("a run has fewer than 65,536 nodes");
        let id = create::<C>(self.pe(), [count, 1, 1], (&Placement::Explicit(first), true), Some(&init));
        NodeGroup::new(Array::new(id, [count, 1, 1]))
    }

    /// Makes a variable that all nodes will share, with the only value that it ever has: nothing can set it
    /// again. The handle may be sent at once; `ready` gets it when the value is in place everywhere.
    fn write_once<T: Message + Sync>(&mut self, value: T, ready: Callback<WriteOnce<T>>) -> WriteOnce<T> {
        let made = WriteOnce::spread(self.pe(), value, ready);
        self.note_variable::<T>(made.id());
        made
    }

    /// Has an element of an array, or a single chare, go on on another PE, when it has dealt with what it is sent before, and
    /// perhaps with some of what comes after it; see [`Ctx::migrate_to`].
    fn migrate<C: Chare>(&mut self, element: &Element<C>, pe: u32) {
        self.pe().migrate(element.parts(), PeId(pe));
    }

    /// Count of PEs with which the run began, before any joined or it went on from a checkpoint on more: others only hold
    /// chares that have moved there, and single ones.
    fn pe_count(&mut self) -> u32 {
        self.pe().node().topology().begun().pe_count()
    }

    /// Count of nodes that have PEs.
    fn node_count(&mut self) -> u32 {
        u32::try_from(self.pe().node().topology().begun().compute_nodes().len()).unwrap_or(u32::MAX)
    }

    /// Relative speeds of the PEs with which the run began; all 1.0 before they are measured. They change when nodes come and go, and
    /// where a run goes on elsewhere: a driver that decides something by them asks inside [`once`](crate::Driver::once).
    fn speeds(&mut self) -> Vec<f64> {
        let pes = self.pe_count() as usize;
        self.pe().node().speeds().iter().take(pes).copied().collect()
    }

    /// Which node a PE belongs to, counted from 0 over the nodes that have PEs. A PE that does not exist counts
    /// to the node after the last.
    fn node_of_pe(&mut self, pe: u32) -> u32 {
        u32::from(self.pe().node().topology().begun().node_of(PeId(pe)).0.saturating_sub(1))
    }

    /// Names what the application is doing, for the window and the progress bar: `done` of `total` units. Of work
    /// that many chares do, each says its part by [`Ctx::progress`].
    fn phase(&mut self, name: &str, done: u64, total: u64) {
        self.pe().node().phase(Phase { name: name.into(), done, total, ..Phase::default() });
    }

    /// As [`phase`](Self::phase), where nobody knows how many units there will be: `done` of about `expected`, which may
    /// change with every call, as may `detail`, a few words on how it goes. The window tells from how `done` grows how
    /// long the rest may take.
    fn forecast(&mut self, name: &str, done: u64, expected: Option<u64>, detail: &str) {
        let (name, detail) = (name.into(), detail.into());
        let total = expected.unwrap_or_default();
        self.pe().node().phase(Phase { name, done, total, is_forecast: true, detail });
    }

    /// Ends the run with one sentence, on all nodes, with a non-zero exit code.
    fn fail(&mut self, sentence: &str) {
        self.pe().fail(sentence.into());
    }
}

impl<T: private::HasPe> Cx for T {}

pub(crate) mod private {
    use crate::chare::Message;
    use runtime::ids::PeId;
    use runtime::pe::Pe;

    /// Keeps others from implementing `Cx`: only `Ctx` and `Driver` have a PE.
    pub trait HasPe {
        /// The PE.
        fn pe(&mut self) -> &mut Pe;

        /// Takes note that chares are placed by speed.
        fn note_by_speed(&mut self) {}

        /// Where a chare has its home, which is a part of its address.
        fn home(&mut self, choose: impl FnOnce(&mut Pe) -> PeId) -> PeId {
            choose(self.pe())
        }

        /// Takes note of the type of a shared variable that is made, so that checkpoints say it.
        fn note_variable<T: Message>(&mut self, id: u64) {
            let _ = id;
        }

        /// Looks at what others may change at any time. `what` is its name.
        fn witness<T: Message>(&mut self, what: &str, look: impl FnOnce(&mut Pe) -> Option<T>) -> Option<T> {
            let _ = what;
            look(self.pe())
        }
    }
}

/// What the entry method of a chare of type `C` can reach while it runs.
pub struct Ctx<'a, C> {
    pe: &'a mut Pe,
    site: &'a mut Site,
    chare: PhantomData<C>,
}

impl<C: Chare> private::HasPe for Ctx<'_, C> {
    fn pe(&mut self) -> &mut Pe {
        self.pe
    }
}

impl<'a, C: Chare> Ctx<'a, C> {
    pub(crate) fn new(pe: &'a mut Pe, site: &'a mut Site) -> Self {
        Self { pe, site, chare: PhantomData }
    }

    /// The place of this chare in its array or group.
    #[must_use]
    pub fn index(&self) -> C::Index {
        C::Index::from_element(self.site.index)
    }

    /// Says that so many units of work have been done here, of those that
    /// [`Driver::expect_progress`](crate::Driver::expect_progress) has announced. Costs a few nanoseconds: what all
    /// chares have done is added up ten times a second.
    pub fn progress(&mut self, units: u64) {
        self.pe.progressed(units);
    }

    /// Says how much work this chare still has to do, in units that are the same for all chares of the run, such as seconds or
    /// multiplications. Balancers then share out what remains, not what was done of late: chares that have got ahead of others
    /// count for less, and those that are at their end for nothing. It holds until it is said anew. Worth saying where
    /// each chare's work has an end; values that are no number of 0 or more are passed over. Costs some ten nanoseconds
    /// where somebody balances.
    pub fn work_remains(&mut self, units: f64) {
        self.pe.work_remains(self.element_id(), units);
    }

    /// Says that now is a good moment for a checkpoint, such as at the end of a step: of a run that is to be saved, one that
    /// is due in the next eighth of the time between two is taken now. A hint only: others take a checkpoint between any two
    /// entry methods, PEs may have gone on by the time that the launcher hears of it, and it is told so at most a hundred
    /// times a second. Where the driver knows such moments, [`Driver::checkpoint_point`](crate::Driver::checkpoint_point) is
    /// exact.
    pub fn checkpoint_point(&mut self) {
        self.pe.good_moment();
    }

    /// A proxy of this chare.
    #[must_use]
    pub fn this(&self) -> Element<C> {
        let home = self.site.collection.as_singles().map(|_| self.site.home);
        Element::new(self.site.collection, self.site.index, home)
    }

    /// The array that this chare is an element of.
    pub fn array(&mut self) -> Array<C> {
        let shape = self.pe.collection(self.site.collection).map_or([1; 3], |c| c.shape);
        Array::new(self.site.collection, shape)
    }

    /// The PE where this entry method runs.
    #[must_use]
    pub fn pe_id(&self) -> u32 {
        self.pe.id().0
    }

    /// The PE whose elements of [groups](Cx::group) chares here turn to: this one or, where it came after the run had begun and
    /// so has none, the last with which the run began.
    #[must_use]
    pub fn group_pe(&self) -> u32 {
        let last = self.pe.node().topology().begun().pe_count().saturating_sub(1);
        self.pe.id().0.min(last)
    }

    /// The node where this entry method runs, counted from 0 over the nodes that have PEs. Of a run that goes on from a
    /// checkpoint, the node that its PE was on when the run began: PEs that were together stay together for a program.
    #[must_use]
    pub fn node_id(&self) -> u32 {
        let begun = self.pe.node().topology().begun();
        u32::from(begun.node_of(PeId(self.group_pe())).0.saturating_sub(1))
    }

    /// The part of its core that this PE may use, above 0 to 1: where it is less, as the nodes file says, the PE sleeps
    /// between entry methods for the rest, so that what takes `t` by the clock has taken `t` over this part of the PE.
    #[must_use]
    pub fn cpu_share(&self) -> f64 {
        self.pe.node().settings().cpu_share
    }

    /// The PE on which the placement of `array` puts the element at `index`; `None` while the array is not known
    /// here, or if it has no such element.
    pub fn home_of<D: Chare>(&mut self, array: &Array<D>, index: D::Index) -> Option<u32> {
        self.pe.collection(array.id())?.pe_of(index.to_element()).map(|pe| pe.0)
    }

    /// Indices of the elements of `array` that belong on this PE: what each group element makes in the
    /// second step of a two-step creation. Empty while the array is not known here.
    pub fn indices_here<D: Chare>(&mut self, array: &Array<D>) -> Vec<D::Index> {
        let pe = self.pe.id();
        let Some(known) = self.pe.collection(array.id()) else { return Vec::new() };
        known.on_pe(pe).map(|linear| D::Index::from_element(known.index_at(linear))).collect()
    }

    /// Adds `value` to the next reduction of this chare's array; `callback` gets the result when every
    /// element has contributed. All elements contribute to the reductions of an array in the same order, each
    /// with the same type and callback; that one does not ends the run with a sentence.
    ///
    /// # Examples
    /// Only what the chare type lists under `reduces` can be contributed.
    ///
    /// ```
    /// # #![allow(unused)]
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/block.rs"));
    /// fn tell(ctx: &mut Ctx<'_, Block>) {
    ///     ctx.contribute(Max(1.0), Callback::ignore());
    /// }
    /// # fn main() {}
    /// ```
    ///
    /// Anything else is refused: "`Block` does not list `Min<f64>` under `reduces`".
    ///
    /// ```compile_fail,E0277
    /// # #![allow(unused)]
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/block.rs"));
    /// fn tell(ctx: &mut Ctx<'_, Block>) {
    ///     ctx.contribute(Min(1.0), Callback::ignore());
    /// }
    /// # fn main() {}
    /// ```
    pub fn contribute<R: Reduce>(&mut self, value: R, callback: Callback<R>)
    where
        C: Reduces<R>,
    {
        let (reducer, target) = (<C as Reduces<R>>::INDEX, callback.target());
        let mut value = Some(value);
        let add = |into: &mut Value| {
            // A reduction of that number has values of no other type.
            if let (Some(into), Some(value)) = (into.downcast_mut::<R>(), value.take()) {
                into.combine(value);
            }
        };
        let Site { collection, sequence, .. } = *self.site;
        let is_at_home = self.site.home == self.pe.id();
        if is_at_home && self.pe.join_reduction(collection, sequence, (reducer, &target), add) {
            self.site.sequence += 1;
        } else if let Some(value) = value {
            self.add(reducer, Box::new(value), target, false);
        }
    }

    /// As [`contribute`](Self::contribute), but values are kept apart on their way and combined in index
    /// order at the end: the result is the same, bit by bit, on any mix of machines. The root holds all
    /// values at once.
    pub fn contribute_ordered<R: Reduce>(&mut self, value: R, callback: Callback<R>)
    where
        C: Reduces<R>,
    {
        self.add(<C as Reduces<R>>::INDEX, Box::new(value), callback.target(), true);
    }

    /// Adds `value` to the next reduction of `section`, of which this chare is a member; values are combined
    /// in index order, as by [`contribute_ordered`](Self::contribute_ordered).
    pub fn contribute_in<R: Reduce>(&mut self, section: &Section<C>, value: R, callback: Callback<R>)
    where
        C: Reduces<R>,
    {
        let Some(position) = section.position(self) else { return };
        let Some(plan) = section.plan(self.pe, self.site.home) else { return };
        let sequence = self.site.next_in_section(plan.id);
        self.pe.contribute(Contribution {
            collection: self.site.collection,
            home: self.site.home,
            section: Some(plan),
            sequence,
            reducer: <C as Reduces<R>>::INDEX,
            callback: callback.target(),
            is_ordered: true,
            linear: position,
            value: Box::new(value),
        });
    }

    /// Adds `value` to the next reduction of this chare's array, of which every element gets all values, in index
    /// order, when every element has contributed. It is [`contribute_ordered`](Self::contribute_ordered) with
    /// [`Callback::broadcast`]: values climb the tree of nodes to one PE and come down it as one broadcast, in which
    /// elements of a node share [`Bulk`](crate::Bulk) data. So every node gets each value once, and the root holds all of
    /// them at once.
    pub fn all_gather<T: Message>(&mut self, value: T)
    where
        C: Reduces<Gather<T>> + Entry<Gather<T>>,
    {
        let everybody = Callback::broadcast(&self.array());
        self.contribute_ordered(Gather(vec![value]), everybody);
    }

    /// The same over `section`, of which this chare is a member: every member gets the values of all.
    pub fn all_gather_in<T: Message>(&mut self, section: &Section<C>, value: T)
    where
        C: Reduces<Gather<T>> + Entry<Gather<T>>,
    {
        self.contribute_in(section, Gather(vec![value]), Callback::multicast(section));
    }

    /// The collection of this chare, and its index there.
    pub(crate) fn place(&self) -> (CollectionId, ElementIndex) {
        (self.site.collection, self.site.index)
    }

    const fn element_id(&self) -> ElementId {
        ElementId { collection: self.site.collection, index: self.site.index }
    }

    /// Has this chare go on on another PE when the entry method returns, with its state and the messages that wait for it.
    /// All that is [guaranteed](crate#what-is-guaranteed-of-messages) holds as if it had stayed. It costs about as much as
    /// a message with its state; so does the first message from elsewhere that finds it gone. A PE that does not exist, or
    /// where its [mobility](Self::set_mobility) does not let it go, or an element of a group, ends the run with a sentence.
    pub fn migrate_to(&mut self, pe: u32) {
        if !self.site.mobility().permits(self.pe.id().0, pe) {
            let at = &self.site.index.0[..C::Index::DIMENSIONS];
            return self.pe.fail(format!(
                "{} {at:?} asked to move to PE {pe}, where its mobility does not let it: say another mobility before, or stay",
                C::name()
            ));
        }
        self.pe.leave_for(self.element_id(), PeId(pe));
    }

    /// Says that now is a good moment for this chare to move when the entry method returns, such as at the end of a step, when it
    /// holds least. A hint only, where others have to say `AtSync`: a move that a balancer decides is made between any two
    /// entry methods, but of a chare that has said so in the last second it waits for the next time that it does, for a second
    /// at most. Nobody waits for other chares. Without `--balance` nothing comes of it.
    pub fn migration_point(&mut self) {
        self.pe.may_move_now(self.element_id());
    }

    /// Says where this chare may go from now on; before it does, anywhere. To be called in the constructor or any entry
    /// method; it travels with the chare, and is in checkpoints. The chare stays where it is, even if that is none of the
    /// PEs named: it may not come back then. See [what keeps to it](crate#chares-that-move). A PE that does not exist ends the
    /// run with a sentence.
    ///
    /// ```
    /// use chares::{Mobility, prelude::*};
    ///
    /// /// Has something open that is on one machine only.
    /// #[chare]
    /// struct Keeper;
    ///
    /// #[chare]
    /// impl Keeper {
    ///     fn new(ctx: &mut Ctx<Self>) -> Self {
    ///         ctx.set_mobility(Mobility::Pinned);
    ///         Self
    ///     }
    ///
    ///     /// It may go to its own node's PEs.
    ///     #[entry]
    ///     fn close(&mut self, ctx: &mut Ctx<Self>) {
    ///         let (pes, node) = (ctx.pe_count(), ctx.node_id());
    ///         let own: Vec<u32> = (0..pes).filter(|pe| ctx.node_of_pe(*pe) == node).collect();
    ///         ctx.set_mobility(Mobility::one_of(own));
    ///     }
    /// }
    /// ```
    pub fn set_mobility(&mut self, mobility: Mobility) {
        let pe_count = self.pe.node().topology().pe_count();
        if let Some(pe) = mobility.named().iter().find(|pe| **pe >= pe_count) {
            let at = &self.site.index.0[..C::Index::DIMENSIONS];
            return self.pe.fail(format!(
                "{} {at:?} is to be on PE {pe}, which does not exist: there are PEs 0 to {}",
                C::name(),
                pe_count.saturating_sub(1)
            ));
        }
        if mobility != Mobility::Anywhere {
            self.pe.has_limited_chares();
        }
        self.site.set_mobility(mobility);
    }

    /// Where this chare may go.
    #[must_use]
    pub fn mobility(&self) -> &Mobility {
        self.site.mobility()
    }

    /// Ends this chare when the entry method or constructor returns (`ckDestroy` in Charm++), wherever it is then; a move
    /// that it has asked for does not take place. Messages that come for a single chare later are dropped. For an element
    /// of an array see [what becomes of others](crate#elements-that-come-and-go). An element of a group ends the run with a
    /// sentence.
    pub fn destroy(&mut self) {
        if self.pe.collection(self.site.collection).is_some_and(|known| known.is_fixed) {
            let at = &self.site.index.0[..C::Index::DIMENSIONS];
            return self.pe.fail(format!(
                "element {at:?} of a group of {} cannot be destroyed: there is one for each PE or node",
                C::name()
            ));
        }
        self.site.is_leaving = true;
    }

    fn add(&mut self, reducer: u16, value: Value, callback: CallbackTarget, is_ordered: bool) {
        let (collection, sequence) = (self.site.collection, self.site.sequence);
        if collection.as_singles().is_some() {
            return self
                .pe
                .fail(format!("a single {} contributed to a reduction; only arrays can", C::name()));
        }
        self.site.sequence += 1;
        let linear =
            self.pe.collection(collection).and_then(|c| c.linear(self.site.index)).unwrap_or_default();
        let section = None;
        self.pe.contribute(Contribution {
            collection,
            home: self.site.home,
            section,
            sequence,
            reducer,
            callback,
            is_ordered,
            linear,
            value,
        });
    }
}

/// A message of a chare, moved if it may be, packed if not.
pub(crate) struct Out<M>(pub(crate) M);

impl<M: Message> Outgoing for Out<M> {
    #[inline]
    fn payload(self, may_move: bool) -> Payload {
        if may_move { Payload::Value(Box::new(self.0)) } else { Payload::packed(pup::pack(&self.0)) }
    }

    fn packed_bytes(&self) -> (usize, usize) {
        pup::packed_bytes(&self.0)
    }

    fn write(self, out: &mut Vec<u8>) -> Result<Vec<Buffer>, Self> {
        Ok(pup::append_for_one(&self.0, out))
    }
}

/// Number of a chare type in the program, or the end of the run with a sentence that says what to add.
pub(crate) fn registered<C: Chare>(pe: &mut Pe) -> Option<u16> {
    let at = pe.node().program().chare_types.iter().position(|t| t.type_id == TypeId::of::<C>());
    if at.is_none() {
        pe.fail(format!(
            "chares of type {} were made, but the program does not list it: add `.chare::<{}>()`",
            C::name(),
            type_name::<C>()
        ));
    }
    at.and_then(|at| u16::try_from(at).ok())
}

fn create<C: Chare>(
    pe: &mut Pe,
    shape: [u32; 3],
    (placement, is_fixed): (&Placement, bool),
    init: Option<&C::Init>,
) -> CollectionId {
    let Some(chare_type) = registered::<C>(pe) else { return CollectionId(u64::MAX) };
    let count = shape.iter().map(|&d| u64::from(d)).product();
    let (pes, speeds) = (pe.node().topology().begun().pe_count(), pe.node().speeds());
    let speeds = &speeds[..speeds.len().min(pes as usize)];
    let placement: RawPlacement = placement.resolve(count, pes, speeds);
    match pe.create(chare_type, shape, (placement, is_fixed), init.map(pup::pack)) {
        Ok(id) => id,
        Err(error) => {
            pe.fail(format!("an array of {} cannot be made: {error}", C::name()));
            CollectionId(u64::MAX)
        }
    }
}
