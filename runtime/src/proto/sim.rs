//! A seeded simulator in virtual time: drives one state machine for each node over links that delay, lose
//! and reorder, while nodes freeze and die.
//!
//! Links behave as QUIC does: within a class of traffic between two nodes everything arrives once and in
//! order, and a lost packet shows as delay; across classes and links there is no order. The same seed gives
//! the same run, event by event, on every machine.

use crate::class::Class;
use crate::ids::NodeId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

/// Shortest time from a machine's wish to be woken until it is, and between two deliveries of a link.
const STEP: Duration = Duration::from_micros(1);

/// One node's protocols, driven by the simulator.
pub trait Machine {
    /// What nodes say to each other.
    type Message;

    /// A message arrived.
    fn receive(&mut self, from: NodeId, message: Self::Message, out: &mut Outbox<Self::Message>);

    /// The time that [`timeout`](Self::timeout) named has come.
    fn wake(&mut self, out: &mut Outbox<Self::Message>);

    /// When to wake it, if nothing arrives before.
    fn timeout(&self) -> Option<Duration>;
}

/// What a machine is given: the time, and a way to send.
#[derive(Debug)]
pub struct Outbox<T> {
    now: Duration,
    work: Duration,
    sent: Vec<(NodeId, Class, T)>,
}

impl<T> Outbox<T> {
    /// Time since the start of the simulation.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Sends `message` to `to`; what is sent to a node that does not exist is lost.
    pub fn send(&mut self, to: NodeId, class: Class, message: T) {
        self.sent.push((to, class, message));
    }

    /// Says that what the machine does now takes so long: what it sends leaves afterwards, and what arrives meanwhile
    /// waits. Without that nothing takes any time.
    pub fn work(&mut self, length: Duration) {
        self.work += length;
    }
}

/// How links behave.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Least time from sending to arrival.
    pub delay_min: Duration,
    /// Greatest time, without losses.
    pub delay_max: Duration,
    /// Packets lost of a thousand; below 1,000.
    pub lost_per_mille: u32,
    /// What each loss of a message adds to its delay.
    pub retransmission: Duration,
}

impl Network {
    /// Links that always take `delay`.
    #[must_use]
    pub fn steady(delay: Duration) -> Self {
        Self { delay_min: delay, delay_max: delay, lost_per_mille: 0, retransmission: delay }
    }

    /// Anything from a quick LAN to a bad long-distance line with up to 10 % of losses, by `random`.
    #[must_use]
    pub fn any(random: &mut Random) -> Self {
        let delay_min = Duration::from_micros(random.below(2000));
        let jitter = Duration::from_micros(random.below(50_000));
        let lost_per_mille = u32::try_from(random.below(100)).unwrap_or_default();
        Self {
            delay_min,
            delay_max: delay_min + jitter,
            lost_per_mille,
            retransmission: 3 * (delay_min + jitter),
        }
    }

    fn delay(&self, random: &mut Random) -> Duration {
        let mut delay = random.between(self.delay_min, self.delay_max);
        while random.below(1000) < u64::from(self.lost_per_mille.min(999)) {
            delay += self.retransmission;
        }
        delay
    }
}

/// Why [`Simulation::run`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// What the caller waited for is the case.
    Reached,
    /// Nothing is under way and nobody wants to be woken.
    Idle,
    /// The time is over.
    OutOfTime,
}

/// The nodes, their links and all that is under way between them.
#[derive(Debug)]
pub struct Simulation<M: Machine> {
    now: Duration,
    random: Random,
    network: Network,
    nodes: Vec<Node<M, M::Message>>,
    events: BinaryHeap<Event<M::Message>>,
    /// Count of events so far: the order of those that happen at the same time.
    ordinal: u64,
    /// Latest arrival on each link and class, to keep their order.
    arrivals: FxHashMap<(NodeId, NodeId, Class), Duration>,
}

#[derive(Debug)]
struct Node<M, T> {
    machine: M,
    is_dead: bool,
    frozen_until: Duration,
    /// What happens to it when it is not frozen any more, in order.
    put_off: VecDeque<Event<T>>,
    /// Until then it does what it has begun, and what arrives waits.
    busy_until: Duration,
    waiting: VecDeque<(NodeId, T)>,
    sent: u64,
    received: u64,
    /// Ordinal of the event that wakes it, if one is under way, and its time.
    alarm: Option<(u64, Duration)>,
}

#[derive(Debug)]
struct Event<T> {
    at: Duration,
    ordinal: u64,
    node: NodeId,
    what: What<T>,
}

#[derive(Debug)]
enum What<T> {
    Deliver(NodeId, T),
    /// It takes the first message that waits.
    TakeNext,
    Wake,
    Freeze(Duration),
    /// What was put off happens, if it is not frozen again.
    Thaw,
    Die,
}

impl<T> Event<T> {
    fn key(&self) -> (Duration, u64) {
        (self.at, self.ordinal)
    }
}

impl<T> PartialEq for Event<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Event<T> {}

impl<T> PartialOrd for Event<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Event<T> {
    /// Earliest first, in a heap that gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<M: Machine> Simulation<M> {
    /// Node `n` runs `machines[n]`; nodes beyond the 65,536th are left out.
    #[must_use]
    pub fn new(seed: u64, network: Network, machines: impl IntoIterator<Item = M>) -> Self {
        let node = |machine| Node {
            machine,
            is_dead: false,
            frozen_until: Duration::ZERO,
            put_off: VecDeque::new(),
            busy_until: Duration::ZERO,
            waiting: VecDeque::new(),
            sent: 0,
            received: 0,
            alarm: None,
        };
        let mut simulation = Self {
            now: Duration::ZERO,
            random: Random::new(seed),
            network,
            nodes: machines.into_iter().take(usize::from(u16::MAX) + 1).map(node).collect(),
            events: BinaryHeap::new(),
            ordinal: 0,
            arrivals: FxHashMap::default(),
        };
        for node in simulation.ids() {
            simulation.set_alarm(node);
        }
        simulation
    }

    /// Time since the start.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// All nodes.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<M> {
        (0..self.nodes.len()).map_while(|n| u16::try_from(n).ok().map(NodeId))
    }

    /// The machine of `node`.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn machine(&self, node: NodeId) -> &M {
        &self.nodes[node.as_usize()].machine
    }

    /// All machines, by node.
    pub fn machines(&self) -> impl Iterator<Item = &M> {
        self.nodes.iter().map(|node| &node.machine)
    }

    /// Messages that `node` has sent to others since the last [`reset_counts`](Self::reset_counts).
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn sent(&self, node: NodeId) -> u64 {
        self.nodes[node.as_usize()].sent
    }

    /// Messages that `node` has got since the last [`reset_counts`](Self::reset_counts).
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn received(&self, node: NodeId) -> u64 {
        self.nodes[node.as_usize()].received
    }

    /// How many other nodes each node has sent to or been sent something from, since the start.
    #[must_use]
    pub fn peers(&self) -> Vec<usize> {
        let mut known = vec![FxHashSet::default(); self.nodes.len()];
        for (from, to, _) in self.arrivals.keys().filter(|(from, to, _)| from != to) {
            known[from.as_usize()].insert(*to);
            known[to.as_usize()].insert(*from);
        }
        known.iter().map(FxHashSet::len).collect()
    }

    /// Begins to count messages anew.
    pub fn reset_counts(&mut self) {
        for node in &mut self.nodes {
            (node.sent, node.received) = (0, 0);
        }
    }

    /// Lets `node` do something now, as its caller would; what it sends goes out.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn act<R>(&mut self, node: NodeId, action: impl FnOnce(&mut M, &mut Outbox<M::Message>) -> R) -> R {
        let mut out = Outbox { now: self.now, work: Duration::ZERO, sent: Vec::new() };
        let place = &mut self.nodes[node.as_usize()];
        let result = action(&mut place.machine, &mut out);
        let done = self.now.max(place.busy_until) + out.work;
        if out.work > Duration::ZERO {
            place.busy_until = done;
        }
        for (to, class, message) in out.sent {
            self.send(node, done, to, class, message);
        }
        self.set_alarm(node);
        result
    }

    /// From `at` on `node` does nothing for `length`; what arrives meanwhile waits.
    pub fn freeze(&mut self, node: NodeId, at: Duration, length: Duration) {
        self.push(at, node, What::Freeze(length));
    }

    /// At `at` `node` is gone, with all that arrives later.
    pub fn kill(&mut self, node: NodeId, at: Duration) {
        self.push(at, node, What::Die);
    }

    /// Goes on until `is_reached`, asked after every event, or nothing is left to happen, or `limit` since
    /// the start of the simulation has passed.
    pub fn run(&mut self, limit: Duration, mut is_reached: impl FnMut(&Self) -> bool) -> Ended {
        loop {
            if is_reached(self) {
                return Ended::Reached;
            }
            match self.events.peek() {
                None => return Ended::Idle,
                Some(event) if event.at > limit => {
                    self.now = limit.max(self.now);
                    return Ended::OutOfTime;
                }
                Some(_) => self.step(),
            }
        }
    }

    fn step(&mut self) {
        let Some(event) = self.events.pop() else { return };
        self.now = event.at;
        let Some(node) = self.nodes.get_mut(event.node.as_usize()).filter(|node| !node.is_dead) else {
            return;
        };
        match event.what {
            What::Die => node.is_dead = true,
            What::Freeze(length) => {
                node.frozen_until = node.frozen_until.max(self.now + length);
                let at = node.frozen_until;
                self.push(at, event.node, What::Thaw);
            }
            What::Thaw if node.frozen_until > self.now => {}
            What::Thaw => {
                let first = node.put_off.pop_front();
                if !node.put_off.is_empty() {
                    self.push(event.at, event.node, What::Thaw);
                }
                first.into_iter().for_each(|event| self.happen(event));
            }
            _ if node.frozen_until > self.now || !node.put_off.is_empty() => node.put_off.push_back(event),
            _ => self.happen(event),
        }
    }

    /// What happens to a node that is not frozen.
    fn happen(&mut self, event: Event<M::Message>) {
        let node = &mut self.nodes[event.node.as_usize()];
        match event.what {
            What::Deliver(from, message) if node.busy_until > self.now || !node.waiting.is_empty() => {
                node.waiting.push_back((from, message));
                if node.waiting.len() == 1 {
                    let free = node.busy_until;
                    self.push(free, event.node, What::TakeNext);
                }
            }
            What::Deliver(from, message) => self.deliver(event.node, from, message),
            What::TakeNext => {
                let next = node.waiting.pop_front();
                if let Some((from, message)) = next {
                    self.deliver(event.node, from, message);
                }
                let node = &self.nodes[event.node.as_usize()];
                if !node.waiting.is_empty() {
                    let free = node.busy_until.max(self.now);
                    self.push(free, event.node, What::TakeNext);
                }
            }
            What::Wake if node.alarm.is_some_and(|(ordinal, _)| ordinal == event.ordinal) => {
                node.alarm = None;
                self.act(event.node, |machine, out| machine.wake(out));
            }
            // A wish that has been replaced since, or what is dealt with above.
            What::Wake | What::Freeze(_) | What::Thaw | What::Die => {}
        }
    }

    fn deliver(&mut self, to: NodeId, from: NodeId, message: M::Message) {
        self.nodes[to.as_usize()].received += 1;
        self.act(to, |machine, out| machine.receive(from, message, out));
    }

    /// `at` is when it leaves.
    fn send(&mut self, from: NodeId, at: Duration, to: NodeId, class: Class, message: M::Message) {
        if to.as_usize() >= self.nodes.len() {
            return;
        }
        self.nodes[from.as_usize()].sent += 1;
        let earliest = at + self.network.delay(&mut self.random);
        let last = self.arrivals.entry((from, to, class)).or_default();
        *last = earliest.max(*last + STEP);
        let at = *last;
        self.push(at, to, What::Deliver(from, message));
    }

    fn set_alarm(&mut self, node: NodeId) {
        let place = &self.nodes[node.as_usize()];
        let wish = place.machine.timeout().map(|at| at.max(self.now + STEP));
        if place.alarm.map(|(_, at)| at) == wish {
            return;
        }
        self.nodes[node.as_usize()].alarm = wish.map(|at| (self.push(at, node, What::Wake), at));
    }

    fn push(&mut self, at: Duration, node: NodeId, what: What<M::Message>) -> u64 {
        self.ordinal += 1;
        self.events.push(Event { at, ordinal: self.ordinal, node, what });
        self.ordinal
    }
}

/// Random numbers that are the same for the same seed everywhere (SplitMix64: Steele, Lea, Flood, "Fast
/// splittable pseudorandom number generators", 2014). Not for secrets.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed; near seeds give unlike numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits().checked_rem(end).unwrap_or_default()
    }

    /// Bytes of any value, fewer than `end`.
    pub fn bytes(&mut self, end: u64) -> Vec<u8> {
        (0..self.below(end)).map(|_| self.byte()).collect()
    }

    /// `bytes` with up to seven of them changed, inserted or left out, or the end cut off: what a broken or
    /// hostile sender makes of something sound.
    pub fn mutated(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut mutated = bytes.to_vec();
        for _ in 0..self.below(8) {
            let at = usize::try_from(self.below(mutated.len() as u64)).unwrap_or_default();
            match self.below(8) {
                _ if mutated.is_empty() => mutated.push(self.byte()),
                0 => mutated.insert(at, self.byte()),
                1 => drop(mutated.remove(at)),
                2 => mutated.truncate(at),
                3 => mutated[at] = mutated[at].wrapping_add(1),
                // Long numbers begin with these.
                4 => mutated[at] |= 0x80,
                _ => mutated[at] = self.byte(),
            }
        }
        mutated
    }

    fn byte(&mut self) -> u8 {
        self.bits().to_le_bytes()[0]
    }

    /// One of `count` nodes.
    pub fn node(&mut self, count: u16) -> NodeId {
        NodeId(u16::try_from(self.below(u64::from(count))).unwrap_or_default())
    }

    /// A class of traffic.
    pub fn class(&mut self) -> Class {
        if self.below(2) == 0 { Class::Small } else { Class::Large }
    }

    /// A time from `least` to `greatest`, in steps of a microsecond.
    pub fn between(&mut self, least: Duration, greatest: Duration) -> Duration {
        let width = u64::try_from(greatest.saturating_sub(least).as_micros()).unwrap_or(u64::MAX - 1);
        least + Duration::from_micros(self.below(width.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    mod collective;
    mod contributors;
    mod lost_node;
    mod membership;
    mod parting;
    mod quiescence;
    mod scale;
    mod simulator;
    mod snapshot;
}
