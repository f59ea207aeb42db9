//! Where elements are that have left home, and how messages find them: once each, in the order in which they were sent.
//!
//! Each element has a *home*, a PE that everybody knows without asking. As long as it has never left, nothing here is
//! used, and messages go home as they are: *plain*. What is known of one that has moved is kept by the PEs concerned:
//!
//! - Its moves are counted: that is the *epoch* of its place. News of a place counts only if its epoch is later than what
//!   is known. Where it was last, and at home, a message is passed on to the place of the latest epoch known there, and
//!   carries that epoch on. So it never goes back, and who gets one with an epoch that has not begun here yet keeps it
//!   until the element arrives. Whoever's message had to be passed on is told the place, so that the next goes straight.
//! - Messages that take different ways must not overtake each other. All that are sent to an element which is known to
//!   have moved are numbered, one after the other for each [`Sender`]; the element takes each sender's in the order of
//!   their numbers, and its counts travel with it. Home numbers the plain ones that it passes on as its own. A sender that
//!   has sent plain ones before says so by a [`Load::Begin`] that goes the same way as they did, on each class of
//!   traffic; the numbered ones wait for it.
//! - A chare that moves is a sender of its own from then on, and its numbers travel with it. Its `Begin` goes from where
//!   it was before its first move, behind all that it sent from there.
//!
//! - What is known of one that has ended, and of which there will be no other, is forgotten where it can be known that nothing is
//!   on its way to it any more, and that nobody else would send it anything but plain: if it has left home once, home has told
//!   nobody where it was, has passed on only what it has numbered itself, and all of that had come. The last place says so to home
//!   and forgets when that answers; [`gone`](Locations::gone) decides. Of others it stays known where they ended.
//!
//! Who does not move pays for none of this. It is the home-based location management of Charm++ with numbers added
//! (Lawlor and Kalé, "Supporting dynamic parallel object arrays", 2003); there messages may overtake each other.

use super::ProtocolError;
use crate::class::Class;
use crate::ids::PeId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::Hash;

/// Who numbers messages to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Sender<K> {
    /// A PE, for the chares on it that have never moved, and for what it passes on as the element's home.
    Pe(PeId),
    /// A chare that has moved.
    Chare(K),
}

/// What is carried to an element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Load<K, M> {
    /// A message for it.
    Message(M),
    /// All that this sender sent plain in this class is before this. When that has come for each class, what it has
    /// numbered may be taken.
    Begin(Sender<K>, Class),
}

/// What goes from PE to PE for an element that is known to have moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parcel<K, M> {
    /// The element.
    pub key: K,
    /// The PE that sent it first.
    pub origin: PeId,
    /// The element comes, or came, to the receiving PE with its move of that number; 0 is home, before the first move.
    pub epoch: u32,
    /// Who has numbered it, and its number. Without one it is plain, and goes home.
    pub stamp: Option<(Sender<K>, u64)>,
    /// What is carried.
    pub load: Load<K, M>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<K, M> {
    /// The element, which is here, has a message: it is behind those that were delivered before.
    Deliver(K, M),
    /// Send this to another PE.
    Send(PeId, Parcel<K, M>),
    /// Tell a PE that the element is at that place since its move of that number.
    Tell(PeId, K, PeId, u32),
}

/// What an element takes along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Luggage<K: Hash + Eq, M> {
    /// Number of the move with which it comes.
    pub epoch: u32,
    streams: Vec<(Sender<K>, Stream<K, M>)>,
}

impl<K: Copy + Eq + Hash + Ord, M> Luggage<K, M> {
    /// Who has numbered messages for the element.
    pub fn senders(&self) -> impl Iterator<Item = Sender<K>> {
        let begun = |load: &Load<K, M>| match load {
            Load::Begin(sender, _) => Some(*sender),
            Load::Message(_) => None,
        };
        let early = self.streams.iter().flat_map(move |(_, stream)| stream.early.values().filter_map(begun));
        self.streams.iter().map(|(sender, _)| *sender).chain(early)
    }

    /// The messages in it.
    pub fn messages(&self) -> impl Iterator<Item = &M> {
        let loads = self.streams.iter().flat_map(|(_, stream)| stream.early.values());
        loads.filter_map(|load| match load {
            Load::Message(message) => Some(message),
            Load::Begin(..) => None,
        })
    }

    /// The same with each message made into something else; in an order that follows from the luggage alone.
    ///
    /// # Errors
    /// The first of `make`.
    pub fn try_map<N, E>(self, mut make: impl FnMut(M) -> Result<N, E>) -> Result<Luggage<K, N>, E> {
        let mut streams = Vec::with_capacity(self.streams.len());
        for (sender, Stream { next, begun, early }) in self.streams {
            let early: Result<_, E> = early
                .into_iter()
                .map(|(number, load)| match load {
                    Load::Message(message) => Ok((number, Load::Message(make(message)?))),
                    Load::Begin(sender, class) => Ok((number, Load::Begin(sender, class))),
                })
                .collect();
            streams.push((sender, Stream { next, begun, early: early? }));
        }
        Ok(Luggage { epoch: self.epoch, streams })
    }
}

impl<K, M> Parcel<K, M> {
    /// The parcel with its message, if it carries one, apart.
    pub fn split<N, P>(self, apart: impl FnOnce(M) -> (N, P)) -> (Parcel<K, N>, Option<P>) {
        let Self { key, origin, epoch, stamp, load } = self;
        let (load, message) = match load {
            Load::Message(message) => {
                let (rest, message) = apart(message);
                (Load::Message(rest), Some(message))
            }
            Load::Begin(sender, class) => (Load::Begin(sender, class), None),
        };
        (Parcel { key, origin, epoch, stamp, load }, message)
    }
}

/// What one sender has numbered for an element, as far as the element has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stream<K, M> {
    /// Number of the next to be taken.
    next: u64,
    /// The classes whose `Begin` has come.
    begun: [bool; 2],
    early: BTreeMap<u64, Load<K, M>>,
}

/// What one PE knows of an element that has moved, or is sent numbered messages.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "K: Deserialize<'de> + Eq + Hash, M: Deserialize<'de>"))]
struct Known<K, M> {
    at: PeId,
    epoch: u32,
    /// Number of the next message of this PE.
    sent: u64,
    has_begun: bool,
    /// What its senders have numbered, if it is here.
    here: Option<Streams<K, M>>,
    /// What came before the element.
    waiting: Vec<Parcel<K, M>>,
    /// Who has been told of this place.
    told: Vec<PeId>,
    /// All that was passed on from here was numbered here. Not so, as far as is known, of what was saved.
    #[serde(skip)]
    has_numbered_all: bool,
}

type Streams<K, M> = FxHashMap<Sender<K>, Stream<K, M>>;
type Outputs<K, M> = Vec<Output<K, M>>;

/// What one PE knows of elements that have moved.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "K: Deserialize<'de> + Eq + Hash, M: Deserialize<'de>"))]
pub struct Locations<K, M> {
    me: PeId,
    known: FxHashMap<K, Known<K, M>>,
}

impl<K: Copy + Eq + Hash + Ord, M> Locations<K, M> {
    /// Nothing has moved.
    #[must_use]
    pub fn new(me: PeId) -> Self {
        Self { me, known: FxHashMap::default() }
    }

    /// The messages that wait here for something, each with its element.
    pub fn messages_mut(&mut self) -> impl Iterator<Item = (K, &mut M)> {
        self.known.iter_mut().flat_map(|(key, known)| {
            let streams = known.here.iter_mut().flat_map(|here| here.values_mut());
            let early = streams.flat_map(|stream| stream.early.values_mut());
            let waiting = known.waiting.iter_mut().map(|parcel| &mut parcel.load);
            early.chain(waiting).filter_map(|load| match load {
                Load::Message(message) => Some((*key, message)),
                Load::Begin(..) => None,
            })
        })
    }

    /// Whether no element is known to have moved.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether more is known of an element than its home.
    #[must_use]
    #[inline]
    pub fn knows(&self, key: K) -> bool {
        self.known.contains_key(&key)
    }

    /// Where the element is, as far as is known here, if more is known than its home.
    #[must_use]
    pub fn place(&self, key: K) -> Option<PeId> {
        self.known.get(&key).map(|known| known.at)
    }

    /// Whether the element is known to have moved.
    #[must_use]
    pub fn knows_of_move(&self, key: K) -> bool {
        self.known.get(&key).is_some_and(|known| known.epoch > 0)
    }

    /// Whether the element came here from elsewhere and has not left again.
    #[must_use]
    pub fn has_arrived(&self, key: K) -> bool {
        self.known.get(&key).is_some_and(|known| known.here.is_some() && known.epoch > 0)
    }

    /// Whether an element is away from this PE, as far as is known here.
    #[must_use]
    pub fn is_away(&self, key: K) -> bool {
        self.known.get(&key).is_some_and(|known| known.here.is_none())
    }

    /// Sends a message of a chare on this PE that has never moved to an element with that home.
    ///
    /// # Errors
    /// The message, if nothing is known of the element: it goes home, plain.
    pub fn send(&mut self, (key, home): (K, PeId), message: M, out: &mut Outputs<K, M>) -> Result<(), M> {
        if !self.knows(key) {
            return Err(message);
        }
        self.send_numbered((key, home), Load::Message(message), out);
        Ok(())
    }

    fn send_numbered(&mut self, (key, home): (K, PeId), load: Load<K, M>, out: &mut Outputs<K, M>) {
        let me = self.me;
        let Some(known) = self.known.get_mut(&key) else { return };
        if home != me && !known.has_begun {
            known.has_begun = true;
            out.extend(CLASSES.map(|class| {
                let load = Load::Begin(Sender::Pe(me), class);
                Output::Send(home, Parcel { key, origin: me, epoch: 0, stamp: None, load })
            }));
        }
        let stamp = Some((Sender::Pe(me), known.sent));
        known.sent += 1;
        known.pass(me, Parcel { key, origin: me, epoch: 0, stamp, load }, out);
    }

    /// Sends message number `number`, counted from 0 for each receiver, of the chare `sender`, which is here and has
    /// moved. With number 0 the PE that the chare left first has to [`introduce`](Self::introduce) it.
    pub fn send_of_chare(
        &mut self,
        (key, home): (K, PeId),
        (sender, number): (K, u64),
        message: M,
        out: &mut Outputs<K, M>,
    ) {
        let stamp = Some((Sender::Chare(sender), number));
        let load = Load::Message(message);
        let parcel = Parcel { key, origin: self.me, epoch: 0, stamp, load };
        match self.known_or_at_home(key, home) {
            Some(known) => known.pass(parcel.origin, parcel, out),
            None => out.push(Output::Send(home, parcel)),
        }
    }

    /// Says to an element, behind all that was sent to it from this PE so far, that `chare` is a sender of its own.
    pub fn introduce(&mut self, (key, home): (K, PeId), chare: K, out: &mut Outputs<K, M>) {
        for class in CLASSES {
            let load = Load::Begin(Sender::Chare(chare), class);
            if self.known_or_at_home(key, home).is_some() {
                self.send_numbered((key, home), load, out);
            } else {
                let parcel = Parcel { key, origin: self.me, epoch: 0, stamp: None, load };
                out.push(Output::Send(home, parcel));
            }
        }
    }

    /// Takes a plain message that came here, which is the element's home.
    ///
    /// # Errors
    /// The message, if nothing is known of the element: it is here, or has not been made yet.
    pub fn take_plain(&mut self, key: K, origin: PeId, message: M, out: &mut Outputs<K, M>) -> Result<(), M> {
        let Some(known) = self.known.get_mut(&key) else { return Err(message) };
        known.number(self.me, key, (origin, Load::Message(message)), out);
        Ok(())
    }

    /// Takes what another PE sent for an element.
    pub fn take(&mut self, parcel: Parcel<K, M>, out: &mut Outputs<K, M>) {
        let me = self.me;
        let Parcel { key, origin, epoch, .. } = parcel;
        let known = self.known.entry(key).or_insert_with(|| match epoch {
            0 => Known::at_home(me),
            _ => Known::somewhere(me, epoch),
        });
        if parcel.stamp.is_none() {
            return known.number(me, key, (origin, parcel.load), out);
        }
        if known.here.is_none() && known.epoch < epoch {
            // It is on its way here; what was known of it is from before.
            known.move_to(me, epoch);
        }
        known.tell(me, key, origin, out);
        known.pass(me, parcel, out);
    }

    /// Takes news of where an element is.
    pub fn learn(&mut self, key: K, at: PeId, epoch: u32) {
        let me = self.me;
        let known = self.known.entry(key).or_insert_with(|| Known::somewhere(at, epoch));
        // Nobody can know of a later move of one that is here or on its way here.
        if known.at != me && known.epoch < epoch {
            known.move_to(at, epoch);
        }
    }

    /// The element, which is here, goes to another PE; what it is to take along. `None` if it is not here.
    pub fn depart(
        &mut self,
        (key, home): (K, PeId),
        to: PeId,
        out: &mut Outputs<K, M>,
    ) -> Option<Luggage<K, M>> {
        let me = self.me;
        let known = self.known.entry(key).or_insert_with(|| Known::at_home(me));
        let here = known.here.take()?;
        known.move_to(to, known.epoch + 1);
        if home != me {
            out.push(Output::Tell(home, key, to, known.epoch));
        }
        let mut streams: Vec<_> = here.into_iter().collect();
        streams.sort_unstable_by_key(|(sender, _)| *sender);
        Some(Luggage { epoch: known.epoch, streams })
    }

    /// The element is here, with what it took along; what waited for it is delivered.
    ///
    /// # Errors
    /// If what is known is from a later move, or it is here already.
    pub fn arrive(
        &mut self,
        key: K,
        luggage: Luggage<K, M>,
        out: &mut Outputs<K, M>,
    ) -> Result<(), ProtocolError> {
        let (me, Luggage { epoch, streams }) = (self.me, luggage);
        let known = self.known.entry(key).or_insert_with(|| Known::somewhere(me, epoch));
        let is_expected = known.epoch < epoch || (known.epoch, known.at) == (epoch, me);
        if known.here.is_some() || !is_expected {
            let later = known.epoch;
            return Err(ProtocolError(format!(
                "an element came with its move {epoch} after its move {later}"
            )));
        }
        known.move_to(me, epoch);
        known.here = Some(streams.into_iter().collect());
        for parcel in std::mem::take(&mut known.waiting) {
            known.pass(me, parcel, out);
        }
        Ok(())
    }

    /// What is to be told to the home of an element that has ended here, away from there: the number of the move with which it
    /// came, and how many messages it has taken that were numbered at home.
    #[must_use]
    pub fn last_word(&self, key: K, home: PeId) -> Option<(u32, u64)> {
        let known = self.known.get(&key)?;
        let stream = known.here.as_ref()?.get(&Sender::Pe(home));
        Some((known.epoch, stream.map_or(0, |stream| stream.next)))
    }

    /// The element, which is at home here, has ended where it was since that move, and has taken so many messages that were
    /// numbered here. Forgets it if nothing can be on its way to it, and says where it has to be [forgotten](Self::forget) too.
    pub fn gone(&mut self, key: K, epoch: u32, taken: u64) -> Option<PeId> {
        let known = self.known.get(&key)?;
        let is_alone = known.has_numbered_all && known.told.is_empty() && known.here.is_none();
        if (known.epoch, epoch, known.sent) != (1, 1, taken) || !is_alone {
            return None;
        }
        self.known.remove(&key).map(|known| known.at)
    }

    /// Its home has forgotten the element, which has ended here after that move.
    pub fn forget(&mut self, key: K, epoch: u32) {
        if self.known.get(&key).is_some_and(|known| known.here.is_some() && known.epoch == epoch) {
            self.known.remove(&key);
        }
    }

    fn known_or_at_home(&mut self, key: K, home: PeId) -> Option<&mut Known<K, M>> {
        if home == self.me {
            return Some(self.known.entry(key).or_insert_with(|| Known::at_home(home)));
        }
        self.known.get_mut(&key)
    }
}

impl<K: Copy + Eq + Hash + Ord, M> Known<K, M> {
    /// Of an element that is at `at` or on its way there.
    fn somewhere(at: PeId, epoch: u32) -> Self {
        Self {
            at,
            epoch,
            sent: 0,
            has_begun: false,
            here: None,
            waiting: Vec::new(),
            told: Vec::new(),
            has_numbered_all: false,
        }
    }

    /// Of one that is here, and has never been away. What was sent plain has been delivered.
    fn at_home(me: PeId) -> Self {
        let open = Stream { begun: [true; 2], ..Stream::default() };
        let here = Some([(Sender::Pe(me), open)].into_iter().collect());
        Self { here, has_numbered_all: true, ..Self::somewhere(me, 0) }
    }

    fn move_to(&mut self, at: PeId, epoch: u32) {
        (self.at, self.epoch) = (at, epoch);
        self.told.clear();
    }

    /// Gives what came plain a number of this PE, the element's home.
    fn number(&mut self, me: PeId, key: K, (origin, load): (PeId, Load<K, M>), out: &mut Outputs<K, M>) {
        self.tell(me, key, origin, out);
        let stamp = Some((Sender::Pe(me), self.sent));
        self.sent += 1;
        self.pass(me, Parcel { key, origin, epoch: 0, stamp, load }, out);
    }

    /// Gives a numbered parcel to the element, or to where it is, or keeps it until it comes.
    fn pass(&mut self, me: PeId, mut parcel: Parcel<K, M>, out: &mut Outputs<K, M>) {
        if let (Some(streams), Some(stamp)) = (&mut self.here, parcel.stamp) {
            admit(streams, parcel.key, stamp, parcel.load, out);
        } else if self.at == me {
            self.waiting.push(parcel);
        } else {
            self.has_numbered_all &= parcel.stamp.is_some_and(|(sender, _)| sender == Sender::Pe(me));
            parcel.epoch = self.epoch;
            out.push(Output::Send(self.at, parcel));
        }
    }

    /// Tells the PE where the element is whose message came to where it is not; once for each place.
    fn tell(&mut self, me: PeId, key: K, origin: PeId, out: &mut Outputs<K, M>) {
        let knows_better = self.at != me && self.at != origin;
        if knows_better && origin != me && origin != PeId::DRIVER && !self.told.contains(&origin) {
            self.told.push(origin);
            out.push(Output::Tell(origin, key, self.at, self.epoch));
        }
    }
}

impl<K, M> Default for Stream<K, M> {
    fn default() -> Self {
        Self { next: 0, begun: [false; 2], early: BTreeMap::new() }
    }
}

/// Takes what a sender has numbered, and all that is next then. What has come before is not taken again.
fn admit<K: Copy + Eq + Hash + Ord, M>(
    streams: &mut Streams<K, M>,
    key: K,
    (sender, number): (Sender<K>, u64),
    load: Load<K, M>,
    out: &mut Outputs<K, M>,
) {
    let stream = streams.entry(sender).or_default();
    if number < stream.next || stream.early.contains_key(&number) {
        return;
    }
    stream.early.insert(number, load);
    let mut open = vec![sender];
    while let Some(sender) = open.pop() {
        let Some(stream) = streams.get_mut(&sender).filter(|stream| stream.begun == [true; 2]) else {
            continue;
        };
        let Some(load) = stream.early.remove(&stream.next) else { continue };
        stream.next += 1;
        open.push(sender);
        match load {
            Load::Message(message) => out.push(Output::Deliver(key, message)),
            Load::Begin(other, class) => {
                streams.entry(other).or_default().begun[usize::from(class == Class::Large)] = true;
                open.push(other);
            }
        }
    }
}

/// The classes in which messages to elements travel.
const CLASSES: [Class; 2] = [Class::Small, Class::Large];

#[cfg(test)]
mod tests;
