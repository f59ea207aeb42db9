//! Sending to chares that have moved, and from them.
//!
//! [`Locations`] says what has to be done. Messages that it holds are counted as processed, for quiescence, and as
//! created anew when they go on; whatever they wait for is under way meanwhile, and is counted.

use super::Pe;
use super::parked::{Parked, Stamp};
use crate::class::Class;
use crate::envelope::{CollectionId, ElementId, ElementIndex, Envelope, Packed, Payload, Target, ToPe};
use crate::frame::LARGE_BYTES;
use crate::ids::PeId;
use crate::moving::{Audience, Heading, Letter, Moving, What};
use crate::object::PupError;
use crate::payload::Unsent;
use crate::priority::Priority;
use crate::proto::location::{Load, Locations, Output, Parcel};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How the messages of a chare are numbered that has moved. It moves with the chare.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mover {
    /// Who it is.
    pub chare: ElementId,
    /// The PE that it left first, which is its home.
    pub home: PeId,
    /// How many messages it has sent to each element since.
    sent: FxHashMap<ElementId, u64>,
    /// How many it has sent to many at once.
    pub(super) spoken: u64,
}

impl Mover {
    /// Of a chare that leaves its home for the first time.
    #[must_use]
    pub fn new(chare: ElementId, home: PeId) -> Self {
        Self { chare, home, sent: FxHashMap::default(), spoken: 0 }
    }
}

/// What a PE knows of chares that have moved.
#[derive(Serialize, Deserialize)]
pub(super) struct Moved {
    pub(super) locations: Locations<ElementId, Letter>,
    /// Elements that are at home here and have moved, wherever they are now.
    pub(super) movers: FxHashMap<CollectionId, BTreeSet<ElementIndex>>,
    /// The chare that runs, if it has moved.
    pub(super) mover: Option<Box<Mover>>,
    /// What chares that are at home here and somewhere else say to many.
    speeches: FxHashMap<ElementId, Speech>,
    /// Who goes where when the present message has been dealt with.
    pub(super) leaving: Vec<(ElementId, PeId)>,
}

/// What came of a chare's words to many: the number of the next, and those that came before it.
#[derive(Default, Serialize, Deserialize)]
struct Speech {
    next: u64,
    early: BTreeMap<u64, (Audience, Packed)>,
}

impl Moved {
    /// The next number of the chare that runs, if it has moved, for a message to an element.
    fn stamp(&mut self, element: ElementId) -> Option<Stamp> {
        let mover = self.mover.as_mut()?;
        let sent = mover.sent.entry(element).or_default();
        *sent += 1;
        Some(Stamp { chare: mover.chare, chare_home: mover.home, number: *sent - 1 })
    }

    pub(super) fn new(me: PeId) -> Self {
        Self {
            locations: Locations::new(me),
            movers: FxHashMap::default(),
            mover: None,
            speeches: FxHashMap::default(),
            leaving: Vec::new(),
        }
    }
}

type Outputs = Vec<Output<ElementId, Letter>>;

impl Pe {
    /// The element whose entry method runs goes to another PE when that is over. A PE that does not exist ends the run,
    /// named.
    pub fn leave_for(&mut self, element: ElementId, to: PeId) {
        if self.can_go(element, to) {
            self.will_leave(element, to);
        }
    }

    /// An element goes to another PE when the present message has been dealt with. Until then that counts as under way.
    pub(super) fn will_leave(&mut self, element: ElementId, to: PeId) {
        self.account().goes_on(1);
        self.moved.leaving.push((element, to));
        self.has_more_to_do = true;
    }

    /// Has an element move to another PE, behind what was sent to it before.
    pub fn migrate(
        &mut self,
        (collection, index, home): (CollectionId, ElementIndex, Option<PeId>),
        to: PeId,
    ) {
        let element = ElementId { collection, index };
        if !self.can_go(element, to) {
            return;
        }
        let Some(home) = self.home_of(element, home) else { return };
        self.account().created(1);
        let heading = Heading { what: What::Migrate(to), priority: Priority::ORDINARY };
        let letter = Letter { heading, payload: Payload::packed(Packed::default()) };
        let mut outputs = Vec::new();
        if let Err(letter) = self.moved.locations.send((element, home), letter, &mut outputs) {
            let parcel =
                Parcel { key: element, origin: self.id, epoch: 0, stamp: None, load: Load::Message(letter) };
            outputs.push(Output::Send(home, parcel));
        }
        self.carry_out(outputs);
        self.account().processed();
    }

    fn can_go(&mut self, element: ElementId, to: PeId) -> bool {
        if to.0 >= self.node.topology().pe_count() {
            self.fail(format!("a chare was to move to {to:?}, which does not exist"));
            return false;
        }
        if self.collection(element.collection).is_some_and(|known| known.is_fixed) {
            self.fail(
                "an element of a group was to move: there is one for each PE or node, which stays there"
                    .into(),
            );
            return false;
        }
        true
    }

    /// Where an element was made; `None` if its collection is not known here, or has no such element.
    fn home_of(&mut self, element: ElementId, home: Option<PeId>) -> Option<PeId> {
        home.or_else(|| self.place_of(element.collection, element.index).flatten())
    }

    /// Whether messages to the element have to be numbered here.
    #[inline]
    pub(super) fn numbers(&self, element: ElementId) -> bool {
        self.moved.mover.is_some() || self.moved.locations.knows(element)
    }

    /// Sends to an element that has moved, or from a chare that has. `false` if neither is so, or the element is none, or is
    /// not known and the chare has not moved: then the message is as it was, and goes the ordinary way.
    #[cold]
    #[inline(never)]
    pub(super) fn send_numbered(
        &mut self,
        (element, home): (ElementId, Option<PeId>),
        entry: u16,
        priority: &Priority,
        message: &mut dyn Unsent,
    ) -> bool {
        let Some(home) = self.home_to_number(element, home) else { return false };
        let place = self.moved.locations.place(element).or(home);
        let payload = message.payload(place.is_some_and(|place| self.moves_to(place)));
        let heading = Heading { what: What::Run(entry), priority: priority.clone() };
        self.send_letter((element, home), Letter { heading, payload });
        true
    }

    /// The home of an element to which messages are numbered, as far as it is known; `None` if they are not numbered.
    fn home_to_number(&mut self, element: ElementId, home: Option<PeId>) -> Option<Option<PeId>> {
        let ElementId { collection, index } = element;
        let is_mover = self.moved.mover.is_some();
        if !self.numbers(element) || (!is_mover && self.is_waited_for(collection)) {
            return None;
        }
        match home.map(Some).or_else(|| self.place_of(collection, index)) {
            Some(Some(home)) => Some(Some(home)),
            None if is_mover && self.node.checks().check_id(collection).is_ok() => Some(None),
            _ => None,
        }
    }

    fn send_letter(&mut self, (element, home): (ElementId, Option<PeId>), letter: Letter) {
        self.account().created(1);
        let Some(home) = home else {
            if let Some(stamp) = self.moved.stamp(element) {
                self.park(element.collection, Parked::Numbered(element, stamp, letter));
            }
            return;
        };
        let mut outputs = Vec::new();
        self.number((element, home), letter, &mut outputs);
        self.carry_out(outputs);
        self.account().processed();
    }

    /// Gives a message its number, and says which way it goes.
    fn number(&mut self, to: (ElementId, PeId), letter: Letter, outputs: &mut Outputs) {
        match self.moved.stamp(to.0) {
            Some(stamp) => self.find_way((to, stamp), letter, outputs),
            None if self.moved.locations.send(to, letter, outputs).is_err() => {
                tracing::error!("what is known of an element was forgotten");
            }
            None => {}
        }
    }

    /// Sends what a chare that has moved has numbered.
    pub(super) fn send_stamped(&mut self, to: (ElementId, PeId), stamp: Stamp, letter: Letter) {
        let mut outputs = Vec::new();
        self.find_way((to, stamp), letter, &mut outputs);
        self.carry_out(outputs);
        self.account().processed();
    }

    /// Says which way a message goes that a chare which has moved has numbered.
    fn find_way(
        &mut self,
        ((element, home), stamp): ((ElementId, PeId), Stamp),
        letter: Letter,
        outputs: &mut Outputs,
    ) {
        let Stamp { chare, chare_home, number } = stamp;
        self.moved.locations.send_of_chare((element, home), (chare, number), letter, outputs);
        if number == 0 {
            self.account().goes_on(1);
            let introduce = Moving::Introduce { element, home, chare };
            self.say(chare_home, introduce, Payload::packed(Packed::default()));
        }
    }

    /// Sends a message to several elements that have moved, or from a chare that has, straight to where they are: once to
    /// each PE. Each element is given with its home.
    pub(super) fn send_numbered_to_all(
        &mut self,
        elements: &[(ElementId, PeId)],
        heading: &Heading,
        packed: Packed,
    ) {
        if elements.is_empty() {
            return;
        }
        let (packed, mut outputs) = (Arc::new(packed), Vec::new());
        self.account().created(1);
        for &to in elements {
            let payload = Payload::Packed(Arc::clone(&packed));
            self.number(to, Letter { heading: heading.clone(), payload }, &mut outputs);
        }
        let mut together: BTreeMap<PeId, Vec<Parcel<ElementId, Heading>>> = BTreeMap::new();
        let mut others = Vec::new();
        for output in outputs {
            match output {
                Output::Send(to, parcel) if matches!(parcel.load, Load::Message(_)) => {
                    together.entry(to).or_default().push(parcel.split(|letter| (letter.heading, ())).0);
                }
                other => others.push(other),
            }
        }
        self.carry_out(others);
        for (to, parcels) in together {
            self.account().goes_on(1);
            self.say(to, Moving::Parcels(parcels), Payload::Packed(Arc::clone(&packed)));
        }
        self.account().processed();
    }

    /// Says to an element, behind all that was sent to it from here, that a chare which was here sends from elsewhere now.
    pub(super) fn introduce(&mut self, (element, home): (ElementId, PeId), chare: ElementId) {
        if self.is_waited_for(element.collection) {
            self.account().goes_on(1);
            return self.park(element.collection, Parked::Introduction(element, chare));
        }
        self.introduce_now((element, home), chare);
    }

    pub(super) fn introduce_now(&mut self, to: (ElementId, PeId), chare: ElementId) {
        let mut outputs = Vec::new();
        self.moved.locations.introduce(to, chare, &mut outputs);
        self.carry_out(outputs);
    }

    /// Sends a message to many for a chare that has moved: by way of its home.
    ///
    /// # Errors
    /// The message, if the chare that runs has not moved.
    pub(super) fn speak(
        &mut self,
        audience: impl FnOnce() -> Audience,
        packed: Packed,
    ) -> Result<(), Packed> {
        let Some(mover) = &mut self.moved.mover else { return Err(packed) };
        let (home, chare, number) = (mover.home, mover.chare, mover.spoken);
        mover.spoken += 1;
        self.account().created(1);
        self.say(home, Moving::Spoken { chare, number, audience: audience() }, Payload::packed(packed));
        Ok(())
    }

    /// Takes what a chare that is at home here says to many, and says it in the order in which the chare did.
    pub(super) fn take_spoken(&mut self, chare: ElementId, number: u64, audience: Audience, packed: Packed) {
        let speech = self.moved.speeches.entry(chare).or_default();
        if number < speech.next {
            return;
        }
        speech.early.insert(number, (audience, packed));
        while let Some(speech) = self.moved.speeches.get_mut(&chare)
            && let Some((audience, packed)) = speech.early.remove(&speech.next)
        {
            speech.next += 1;
            let Audience { collection, members, entry, priority } = audience;
            match members {
                None => self.broadcast(collection, entry, priority, packed),
                Some(members) => {
                    if self.multicast(collection, &members, entry, priority.clone(), &packed).is_ok() {
                        continue;
                    }
                    // The collection is not known here yet, and each message waits for that.
                    for index in members {
                        let copy = Payload::packed(packed.clone());
                        self.send_element((collection, index, None), entry, priority.clone(), |_| copy);
                    }
                }
            }
        }
    }

    /// A single chare that has moved has ended here, and has sent so many messages to many.
    pub(super) fn tell_gone(&mut self, chare: ElementId, home: PeId, spoken: u64) {
        if home == self.id {
            return self.forget_speech(chare, spoken);
        }
        let Some((epoch, taken)) = self.moved.locations.last_word(chare, home) else { return };
        self.account().goes_on(1);
        let gone = Moving::Gone { chare, epoch, taken, spoken };
        self.say(home, gone, Payload::packed(Packed::default()));
    }

    /// A single chare that is at home here has ended elsewhere: what is known of it goes if nobody can need it.
    pub(super) fn take_gone(&mut self, chare: ElementId, (epoch, taken): (u32, u64), spoken: u64) {
        self.forget_speech(chare, spoken);
        if let Some(at) = self.moved.locations.gone(chare, epoch, taken) {
            self.look_around();
            self.account().goes_on(1);
            let forget = ToPe::Moving(Box::new(Moving::Forget { chare, epoch }));
            // What waits there for the chare has its turn before: who knows nothing of it would keep that.
            self.dispatch(at, forget, i32::MAX.into(), Payload::packed(Packed::default()));
        }
    }

    /// Nothing comes any more for a chare that has ended here.
    pub(super) fn forget(&mut self, chare: ElementId, epoch: u32) {
        self.moved.locations.forget(chare, epoch);
        self.look_around();
    }

    /// A chare has said so much to many, and says no more.
    fn forget_speech(&mut self, chare: ElementId, spoken: u64) {
        if self.moved.speeches.get(&chare).is_some_and(|speech| speech.next == spoken) {
            self.moved.speeches.remove(&chare);
        }
    }

    /// Does what has to be done so that messages find their elements. Each is counted as going on.
    pub(super) fn carry_out(&mut self, outputs: Outputs) {
        self.look_around();
        for output in outputs {
            self.account().goes_on(1);
            match output {
                Output::Deliver(element, letter) => self.receives(element, letter),
                Output::Tell(to, element, at, epoch) => {
                    self.say(to, Moving::Tell { element, at, epoch }, Payload::packed(Packed::default()));
                }
                Output::Send(to, parcel) => {
                    let element = parcel.key;
                    let is_long = matches!(parcel.load, Load::Begin(_, Class::Large));
                    let (parcel, letter) = parcel
                        .split(|Letter { heading, payload }| (heading.clone(), (heading.what, payload)));
                    let payload = match letter {
                        Some((what, payload)) if !self.moves_to(to) => self.packed(element, what, payload),
                        Some((_, payload)) => Ok(payload),
                        // It has to travel as long messages do, behind those that were sent before.
                        None if is_long => Ok(Payload::packed(Packed {
                            body: vec![0; LARGE_BYTES].into(),
                            attachments: Vec::new(),
                        })),
                        None => Ok(Payload::packed(Packed::default())),
                    };
                    match payload {
                        Ok(payload) => self.say(to, Moving::Parcel(parcel), payload),
                        Err(error) => self.fail(error.to_string()),
                    }
                }
            }
        }
    }

    /// Puts a message for an element that is here behind those that it has.
    pub(super) fn receives(&mut self, element: ElementId, letter: Letter) {
        self.queue.push(envelope(element, letter, self.id));
    }

    /// Sends what has to do with moving to a PE, which may be this one.
    pub(super) fn say(&mut self, to: PeId, moving: Moving, payload: Payload) {
        // Whoever waits for it should not wait for what is less urgent.
        self.dispatch(to, ToPe::Moving(Box::new(moving)), Priority::first(), payload);
    }

    /// A message as bytes.
    pub(super) fn packed(
        &mut self,
        element: ElementId,
        what: What,
        payload: Payload,
    ) -> Result<Payload, PupError> {
        let (value, What::Run(entry) | What::Copy(entry)) = (payload, what) else {
            return Ok(Payload::packed(Packed::default()));
        };
        let Payload::Value(value) = value else { return Ok(value) };
        let chare_type = self.node.chare_type_of(element.collection);
        let Some(chare_type) = chare_type else {
            return Err(PupError::new("a message", "its receiver's collection is not known"));
        };
        (chare_type.pack_message)(entry, &value).map(Payload::packed)
    }

    /// Takes a plain message that came from a link or another PE for an element that is at home here.
    ///
    /// # Errors
    /// The payload, if nothing is known of the element but that.
    #[inline]
    pub(super) fn take_plain(
        &mut self,
        element: ElementId,
        from: PeId,
        heading: Heading,
        payload: Payload,
    ) -> Result<(), Payload> {
        if self.moved.locations.is_empty() {
            return Err(payload);
        }
        let mut outputs = Vec::new();
        let letter = Letter { heading, payload };
        let taken = self.moved.locations.take_plain(element, from, letter, &mut outputs);
        taken.map_err(|letter| letter.payload)?;
        self.carry_out(outputs);
        Ok(())
    }

    /// Has the next element be made at the place of one that is at home here and has been destroyed: behind what was said here
    /// to all while that was there, and may still be on its way after it.
    pub(super) fn will_replace(&mut self, element: ElementId, priority: Priority) {
        let heading = Heading { what: What::Replace, priority };
        let nothing = Payload::packed(Packed::default());
        if let Err(payload) = self.take_plain(element, self.id, heading.clone(), nothing) {
            self.account().goes_on(1);
            self.receives(element, Letter { heading, payload });
        }
    }

    /// Elements of a collection that are at home here and have moved.
    pub(super) fn movers(&self, collection: CollectionId) -> Vec<ElementIndex> {
        self.moved.movers.get(&collection).map(|movers| movers.iter().copied().collect()).unwrap_or_default()
    }

    /// The chare that runs has moved: what it sends is numbered as its own until this is taken back.
    pub fn lend_mover(&mut self, mover: Option<Box<Mover>>) {
        self.moved.mover = mover;
    }

    /// What was lent.
    pub fn take_mover(&mut self) -> Option<Box<Mover>> {
        self.moved.mover.take()
    }
}

/// What a PE puts on its queue for an element.
fn envelope(element: ElementId, letter: Letter, from: PeId) -> Envelope {
    let ElementId { collection, index } = element;
    let Letter { heading: Heading { what, priority }, payload } = letter;
    match what {
        What::Run(entry) => {
            Envelope::new(ToPe::Element { collection, index, entry, from, number: 0 }, priority, payload)
        }
        What::Migrate(to) => Envelope::new(Target::Depart { collection, index, to }, priority, payload),
        What::Copy(entry) => Envelope::new(Target::Copy { collection, index, entry }, priority, payload),
        What::Replace => Envelope::new(Target::Replace { collection, index }, priority, payload),
    }
}
