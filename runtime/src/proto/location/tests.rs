//! PEs whose elements send to each other at random and move all the time, over links that delay and reorder, while what
//! concerns all of them goes on: broadcasts, reductions and the search for quiescence.

mod collectives;
mod ending;

use super::*;
use crate::ids::NodeId;
use crate::proto::sim::{Ended, Machine, Network, Outbox, Random, Simulation};
use std::collections::VecDeque;
use std::hash::Hasher as _;
use std::time::Duration;

use collectives::{Collectives, ROOT, Word};
use ending::Mortal;

/// Number of an element; its home is the PE of that number modulo the count of PEs.
type Key = u32;

/// What elements send each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Note {
    from: Key,
    class: Class,
    /// Counted from 0 for each sender, receiver and class.
    number: u64,
    /// How many more messages may follow from it.
    budget: u32,
    /// How many PEs have passed it on.
    hops: u32,
}

#[derive(Clone, Debug, Default)]
struct Element {
    sent: BTreeMap<(Key, bool), u64>,
    got: BTreeMap<(Key, bool), u64>,
    /// The numbers of its own stream to each receiver, once it has moved.
    numbers: Option<BTreeMap<Key, u64>>,
    /// To how many reductions it has contributed.
    contributed: u32,
}

#[derive(Clone, Debug)]
enum Wire {
    Plain(Key, PeId, Note),
    Parcel(Parcel<Key, Note>),
    Tell(Key, PeId, u32),
    Introduce(Key, Key),
    Arrive(Key, Element, Luggage<Key, Note>, Vec<Note>),
    Collective(Word),
    /// An element has ended: since which move it was there, and how many messages that were numbered at home it has taken.
    Gone(Key, u32, u64),
    Forget(Key, u32),
}

/// What a careless programmer could have got wrong. Each is found by the same test that finds nothing otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// What is passed on does not arrive.
    LosesForwarded,
    /// What is passed on arrives twice, with a new number.
    PassesOnTwice,
    /// Late news of a place is believed.
    BelievesLateNews,
    /// The place that an element left keeps what it has not taken yet.
    KeepsStreams,
    /// What came before the element is lost.
    ForgetsWaiting,
    /// Messages that wait in the queue stay behind.
    KeepsMailbox,
    /// A sender that learns the place does not say so along the old way.
    NeverBegins,
    /// It says so in one class only.
    BeginsInOneClass,
    /// A chare that has moved sends as if it had not.
    SendsAsItsPe,
    /// Who introduces a chare does so on the direct way.
    IntroducesAhead,
    /// Home passes plain messages on without a number.
    HomeDoesNotNumber,
    /// Nobody is told.
    NeverTells,
    /// A contribution counts where its element is, and not where it is at home.
    ContributesWhereItIs,
    /// Home forgets what an element adds that has left.
    ForgetsContributionOfAway,
    /// An element that arrives no longer knows to which reductions it has contributed.
    ContributesAnew,
    /// A broadcast goes to the elements that are on a PE, and not to those that are at home there.
    TellsThoseHere,
    /// The search for quiescence does not count elements that are on their way.
    ForgetsTravellers,
    /// Home forgets an element that has ended while something is on its way to it.
    ForgetsTooSoon,
    /// Home forgets one of which it has told others.
    ForgetsWhatOthersKnow,
    /// Home forgets one for which it has passed on what others have numbered.
    ForgetsWhatOthersNumber,
}

const MISTAKES: [Mistake; 17] = [
    Mistake::LosesForwarded,
    Mistake::PassesOnTwice,
    Mistake::BelievesLateNews,
    Mistake::KeepsStreams,
    Mistake::ForgetsWaiting,
    Mistake::KeepsMailbox,
    Mistake::NeverBegins,
    Mistake::BeginsInOneClass,
    Mistake::SendsAsItsPe,
    Mistake::IntroducesAhead,
    Mistake::HomeDoesNotNumber,
    Mistake::NeverTells,
    Mistake::ContributesWhereItIs,
    Mistake::ForgetsContributionOfAway,
    Mistake::ContributesAnew,
    Mistake::TellsThoseHere,
    Mistake::ForgetsTravellers,
];

struct Pe {
    me: PeId,
    pes: u32,
    elements: u32,
    here: BTreeMap<Key, Element>,
    locations: Locations<Key, Note>,
    queue: VecDeque<(Key, Note)>,
    random: Random,
    now: Duration,
    /// One of so many messages makes its receiver move; 0 for never.
    moves_one_in: u64,
    moves: u64,
    sent: u64,
    delivered: u64,
    most_hops: u32,
    wrong: Option<String>,
    mistake: Option<Mistake>,
    collectives: Collectives,
    mortal: Option<Mortal>,
    trace: rustc_hash::FxHasher,
}

impl Pe {
    fn new(me: u32, pes: u32, elements: u32, seed: u64) -> Self {
        let mine = (0..elements).filter(|key| key % pes == me);
        Self {
            me: PeId(me),
            pes,
            elements,
            here: mine.map(|key| (key, Element::default())).collect(),
            locations: Locations::new(PeId(me)),
            queue: VecDeque::new(),
            random: Random::new(seed ^ u64::from(me) << 32),
            now: Duration::ZERO,
            moves_one_in: 3,
            moves: 0,
            sent: 0,
            delivered: 0,
            most_hops: 0,
            wrong: None,
            mistake: None,
            collectives: Collectives::new(PeId(me), pes),
            mortal: None,
            trace: rustc_hash::FxHasher::default(),
        }
    }

    fn home(&self, key: Key) -> PeId {
        PeId(key % self.pes)
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// `from`, which is here, sends to `to`.
    fn send(&mut self, from: Key, to: Key, budget: u32, out: &mut Outbox<Wire>) {
        let class = self.random.class();
        let home = self.home(to);
        self.note_sent(to);
        let element = self.here.get_mut(&from).unwrap();
        let count = element.sent.entry((to, class == Class::Large)).or_default();
        let note = Note { from, class, number: *count, budget, hops: 0 };
        *count += 1;
        self.sent += 1;
        let own = element.numbers.as_mut().filter(|_| self.mistake != Some(Mistake::SendsAsItsPe));
        let Some(numbers) = own else { return self.send_as_pe(to, note, out) };
        let number = numbers.entry(to).or_default();
        if *number == 0 {
            self.wire(self.home(from), Class::Small, Wire::Introduce(to, from), out);
        }
        let element = self.here.get_mut(&from).unwrap();
        let number = element.numbers.as_mut().unwrap().get_mut(&to).unwrap();
        *number += 1;
        let (stamp, mut outputs) = ((from, *number - 1), Vec::new());
        self.locations.send_of_chare((to, home), stamp, note, &mut outputs);
        self.carry_out(outputs, out);
    }

    /// Sends by the numbers of this PE, as for elements that have never moved.
    fn send_as_pe(&mut self, to: Key, note: Note, out: &mut Outbox<Wire>) {
        let (home, mut outputs) = (self.home(to), Vec::new());
        if let Err(note) = self.locations.send((to, home), note, &mut outputs) {
            self.wire(home, note.class, Wire::Plain(to, self.me, note), out);
        }
        self.carry_out(outputs, out);
    }

    /// Sends to a PE, which may be this one.
    fn wire(&mut self, to: PeId, class: Class, wire: Wire, out: &mut Outbox<Wire>) {
        if to == self.me {
            self.take(wire, out);
        } else {
            out.send(NodeId(u16::try_from(to.0).unwrap()), class, wire);
        }
    }

    fn carry_out(&mut self, outputs: Vec<Output<Key, Note>>, out: &mut Outbox<Wire>) {
        for output in outputs {
            match output {
                Output::Deliver(key, note) => self.queue.push_back((key, note)),
                Output::Tell(to, key, at, epoch) => {
                    if !self.makes(Mistake::NeverTells) || to == self.home(key) {
                        self.wire(to, Class::Small, Wire::Tell(key, at, epoch), out);
                    }
                }
                Output::Send(to, mut parcel) => {
                    let class = match &mut parcel.load {
                        Load::Message(note) => {
                            note.hops += 1;
                            note.class
                        }
                        Load::Begin(_, class) => *class,
                    };
                    if self.spoils(to, &mut parcel, out) {
                        self.wire(to, class, Wire::Parcel(parcel), out);
                    }
                }
            }
        }
    }

    /// Makes the planted mistake with a parcel; whether it is to be sent at all.
    fn spoils(&mut self, to: PeId, parcel: &mut Parcel<Key, Note>, out: &mut Outbox<Wire>) -> bool {
        let is_forwarded = parcel.origin != self.me && parcel.stamp.is_some();
        let plain_begin =
            |class| matches!(&parcel.load, Load::Begin(_, c) if parcel.stamp.is_none() && class == *c);
        match self.mistake {
            Some(Mistake::LosesForwarded) => !is_forwarded,
            Some(Mistake::PassesOnTwice) if is_forwarded => {
                let mut again = parcel.clone();
                again.stamp = again.stamp.map(|(sender, number)| (sender, number + 1));
                self.wire(to, Class::Small, Wire::Parcel(again), out);
                true
            }
            Some(Mistake::NeverBegins) => !plain_begin(Class::Small) && !plain_begin(Class::Large),
            Some(Mistake::BeginsInOneClass) => {
                if plain_begin(Class::Small)
                    && let Load::Begin(sender, _) = parcel.load
                {
                    // The receiver is to believe that both have come.
                    let load = Load::Begin(sender, Class::Large);
                    self.wire(to, Class::Small, Wire::Parcel(Parcel { load, ..parcel.clone() }), out);
                }
                !plain_begin(Class::Large)
            }
            Some(Mistake::HomeDoesNotNumber) if is_forwarded && self.home(parcel.key) == self.me => {
                // It arrives as what its sender would have numbered itself, whenever that is.
                parcel.stamp = Some((Sender::Chare(Key::MAX - parcel.origin.0), 0));
                true
            }
            _ => true,
        }
    }

    fn take(&mut self, wire: Wire, out: &mut Outbox<Wire>) {
        let mut outputs = Vec::new();
        match wire {
            Wire::Plain(key, origin, note) => {
                if let Err(note) = self.locations.take_plain(key, origin, note, &mut outputs) {
                    self.queue.push_back((key, note));
                }
            }
            Wire::Parcel(parcel) => self.locations.take(parcel, &mut outputs),
            Wire::Tell(key, at, epoch) => {
                let later = u32::from(self.makes(Mistake::BelievesLateNews)) * 1000;
                self.locations.learn(key, at, epoch + later);
            }
            Wire::Introduce(key, chare) => {
                if self.makes(Mistake::IntroducesAhead) {
                    // As if nothing could be under way in another class.
                    for class in CLASSES {
                        let load = Load::Begin(Sender::Chare(chare), class);
                        let stamp =
                            Some((Sender::Chare(Key::MAX / 2 + chare), u64::from(class == Class::Large)));
                        let parcel = Parcel { key, origin: self.me, epoch: 0, stamp, load };
                        self.wire(self.home(key), Class::Small, Wire::Parcel(parcel), out);
                    }
                } else {
                    self.locations.introduce((key, self.home(key)), chare, &mut outputs);
                }
            }
            Wire::Arrive(key, mut element, luggage, mailbox) => {
                if self.makes(Mistake::ContributesAnew) {
                    element.contributed = 0;
                }
                self.here.insert(key, element);
                if !self.makes(Mistake::ForgetsTravellers) {
                    self.collectives.processed();
                }
                self.queue.extend(mailbox.into_iter().map(|note| (key, note)));
                if self.makes(Mistake::ForgetsWaiting)
                    && let Some(known) = self.locations.known.get_mut(&key)
                {
                    known.waiting.clear();
                }
                if let Err(error) = self.locations.arrive(key, luggage, &mut outputs) {
                    self.wrong.get_or_insert(error.0);
                }
            }
            Wire::Collective(word) => self.hear(word, out),
            Wire::Gone(key, epoch, taken) => self.hear_of_end(key, (epoch, taken), out),
            Wire::Forget(key, epoch) => self.locations.forget(key, epoch),
        }
        self.carry_out(outputs, out);
    }

    /// Runs an entry method.
    fn run(&mut self, key: Key, note: Note, out: &mut Outbox<Wire>) {
        let Some(element) = self.here.get_mut(&key) else {
            if self.has_ended(key) {
                return;
            }
            self.wrong
                .get_or_insert(format!("a message for element {key} ran on {:?}, where it is not", self.me));
            return;
        };
        note.hash(&mut self.trace);
        self.delivered += 1;
        self.most_hops = self.most_hops.max(note.hops);
        let next = element.got.entry((note.from, note.class == Class::Large)).or_default();
        if *next != note.number {
            let wrong = format!("{} -> {key}: number {} came where {next} was next", note.from, note.number);
            self.wrong.get_or_insert(wrong);
        }
        *next += 1;
        if note.from == ROOT {
            self.contribute(key, out);
        }
        for _ in 0..note.budget.min(2) {
            let to = u32::try_from(self.random.below(u64::from(self.elements))).unwrap();
            self.send(key, to, note.budget / 2, out);
        }
        if self.ends(key, out) {
            return;
        }
        if self.moves_one_in > 0 && self.random.below(self.moves_one_in) == 0 {
            let to = PeId(u32::try_from(self.random.below(u64::from(self.pes))).unwrap());
            self.depart(key, to, out);
        }
    }

    fn depart(&mut self, key: Key, to: PeId, out: &mut Outbox<Wire>) {
        if to == self.me {
            return;
        }
        let mut outputs = Vec::new();
        let home = self.home(key);
        let mut luggage = self.locations.depart((key, home), to, &mut outputs).unwrap();
        let mut element = self.here.remove(&key).unwrap();
        element.numbers.get_or_insert_default();
        self.moves += 1;
        if !self.makes(Mistake::ForgetsTravellers) {
            self.collectives.created(1);
        }
        if self.makes(Mistake::KeepsStreams) {
            luggage.streams.iter_mut().for_each(|(_, stream)| stream.early.clear());
        }
        let (mut mailbox, queue) =
            std::mem::take(&mut self.queue).into_iter().partition::<Vec<_>, _>(|(to, _)| *to == key);
        self.queue = queue.into();
        if self.makes(Mistake::KeepsMailbox) {
            mailbox.clear();
        }
        let mailbox = mailbox.into_iter().map(|(_, note)| note).collect();
        self.carry_out(outputs, out);
        self.wire(to, self.random.clone().class(), Wire::Arrive(key, element, luggage, mailbox), out);
    }
}

impl Machine for Pe {
    type Message = Wire;

    fn receive(&mut self, _: NodeId, wire: Wire, out: &mut Outbox<Wire>) {
        self.now = out.now();
        self.take(wire, out);
    }

    fn wake(&mut self, out: &mut Outbox<Wire>) {
        self.now = out.now();
        if let Some((key, note)) = self.queue.pop_front() {
            self.run(key, note, out);
        }
        self.poll(out);
    }

    fn timeout(&self) -> Option<Duration> {
        let next = (!self.queue.is_empty()).then_some(self.now + Duration::from_micros(20));
        next.into_iter().chain(self.collectives.timeout()).min()
    }
}

/// What happened under a seed: the trace, or what went wrong.
fn wander(seed: u64, mistake: Option<Mistake>) -> Result<(u64, u64), String> {
    let mut random = Random::new(seed);
    let pes = 2 + u32::try_from(random.below(4)).unwrap();
    let elements = 1 + u32::try_from(random.below(8)).unwrap();
    let network = Network::any(&mut random);
    let pe = |me| Pe { mistake, ..Pe::new(me, pes, elements, seed) };
    let mut sim = Simulation::new(seed, network, (0..pes).map(pe));
    for key in 0..elements {
        let home = NodeId(u16::try_from(key % pes).unwrap());
        let budget = 8 + u32::try_from(random.below(24)).unwrap();
        for to in 0..elements {
            sim.act(home, |pe, out| pe.here.contains_key(&key).then(|| pe.send(key, to, budget, out)));
        }
    }
    let root = NodeId(0);
    for _ in 0..random.below(5) {
        let until = sim.now() + Duration::from_micros(random.below(200_000));
        sim.run(until, |sim| sim.machines().any(|pe| pe.wrong.is_some()));
        sim.act(root, |pe, out| pe.broadcast(3, out));
    }
    sim.act(root, |pe, out| pe.search(out));
    let mut is_early = false;
    let ended = sim.run(Duration::from_secs(1000), |sim| {
        is_early |= sim.machine(root).collectives.is_quiescent && !collectives::is_quiet(sim);
        is_early || sim.machines().any(|pe| pe.wrong.is_some())
    });
    if let Some(wrong) = sim.machines().find_map(|pe| pe.wrong.clone()) {
        return Err(wrong);
    }
    if is_early {
        return Err("quiescence was found while something was under way".into());
    }
    // Who looks for quiescence looks for ever where something never arrives.
    if ended == Ended::OutOfTime {
        return Err("it does not end".into());
    }
    let sum = |of: fn(&Pe) -> u64| sim.machines().map(of).sum::<u64>();
    let (sent, delivered) = (sum(|pe| pe.sent), sum(|pe| pe.delivered));
    if sent != delivered {
        return Err(format!("{delivered} of {sent} messages were delivered"));
    }
    collectives::check(sim.machine(root))?;
    let mut keys: Vec<Key> = sim.machines().flat_map(|pe| pe.here.keys().copied()).collect();
    keys.sort_unstable();
    assert_eq!(keys, (0..elements).collect::<Vec<_>>());
    Ok((sim.machines().fold(0, |sum, pe| sum ^ pe.trace.finish().rotate_left(pe.me.0)), sum(|pe| pe.moves)))
}

/// Each is a run of its own: this many take a few seconds.
const SEEDS: u64 = 2000;

#[test]
fn every_message_comes_once_and_in_order_and_nothing_is_forgotten_however_elements_move() {
    let mut moves = 0;
    for seed in 0..SEEDS {
        let (trace, moved) = wander(seed, None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        moves += moved;
        if seed % 100 == 0 {
            assert_eq!(wander(seed, None), Ok((trace, moved)), "the same seed gives the same run");
        }
    }
    assert!(moves > 10 * SEEDS, "{moves} moves");
}

#[test]
fn planted_mistakes_are_found() {
    for mistake in MISTAKES.into_iter().filter(|mistake| *mistake != Mistake::NeverTells) {
        let found = (0..20_000).find(|seed| wander(*seed, Some(mistake)).is_err());
        assert!(found.is_some(), "{mistake:?} makes no difference");
    }
}

/// The most PEs that a message passes when every element sends to every other, `rounds` times after elements have moved
/// so often without a word.
fn hops_after(moves: u32, rounds: u32, mistake: Option<Mistake>) -> u32 {
    let pe = |me| Pe { mistake, moves_one_in: 0, ..Pe::new(me, 6, 6, 5) };
    let mut sim = Simulation::new(7, Network::steady(Duration::from_micros(100)), (0..6).map(pe));
    let mut random = Random::new(9);
    let quiet = |sim: &mut Simulation<Pe>| {
        assert_eq!(sim.run(Duration::from_secs(1_000_000), |_| false), Ended::Idle);
    };
    for _ in 0..moves {
        for key in 0..6 {
            let at = sim.ids().find(|id| sim.machine(*id).here.contains_key(&key)).unwrap();
            let to = PeId(u32::from(random.node(6).0));
            sim.act(at, |pe, out| pe.depart(key, to, out));
        }
        quiet(&mut sim);
    }
    for _ in 0..rounds {
        for (from, to) in (0..6).flat_map(|from| (0..6).map(move |to| (from, to))) {
            let at = sim.ids().find(|id| sim.machine(*id).here.contains_key(&from)).unwrap();
            sim.act(at, |pe, out| {
                pe.most_hops = 0;
                pe.send(from, to, 0, out);
            });
        }
        for node in sim.ids() {
            sim.act(node, |pe, _| pe.most_hops = 0);
        }
        quiet(&mut sim);
    }
    assert!(sim.machines().all(|pe| pe.wrong.is_none()));
    sim.machines().map(|pe| pe.most_hops).max().unwrap()
}

#[test]
fn ways_do_not_get_longer_with_the_count_of_moves() {
    for moves in [1, 10, 1000] {
        assert_eq!(hops_after(moves, 2, None), 1, "straight after {moves} moves, the second time");
        assert!(hops_after(moves, 1, None) <= 6, "no PE is passed twice");
    }
    assert!(hops_after(10, 2, Some(Mistake::NeverTells)) > 1, "who is not told goes on by the long way");
}
