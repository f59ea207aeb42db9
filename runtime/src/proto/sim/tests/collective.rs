//! Broadcasts and reductions over trees of nodes, several at once, on links of every kind.

use crate::ids::NodeId;
use crate::proto::reduction::{Partial, PartialValue, Reductions};
use crate::proto::sim::{Ended, Machine, Network, Outbox, Random, Simulation};
use crate::proto::tree::{self, TreeOver};
use std::rc::Rc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);
const KEY: u64 = 1 << 32;

pub(super) enum Message {
    Broadcast { number: usize, root: u32, hops: u32 },
    Reduce { sequence: u32, partial: Partial<Vec<u64>> },
}

/// A node that passes broadcasts on and merges what elements contribute; reductions climb to node 0.
pub(super) struct Member {
    me: NodeId,
    members: Rc<Vec<NodeId>>,
    /// Elements on each node.
    elements: Rc<Vec<u64>>,
    random: Random,
    /// How often each broadcast came, and over how many hops at most.
    pub(super) heard: Vec<u32>,
    pub(super) hops: u32,
    reductions: Reductions<Vec<u64>>,
    /// The most that its reductions have held, bytes.
    pub(super) peak_bytes: usize,
    /// Contributions of elements here that are still to be made: when, and which.
    plan: Vec<(Duration, u32, u64)>,
    is_ordered: bool,
    /// At node 0: what came out.
    pub(super) results: Vec<(u32, PartialValue<Vec<u64>>)>,
}

impl Member {
    pub(super) fn broadcast(&mut self, number: usize, root: u32, hops: u32, out: &mut Outbox<Message>) {
        if self.heard.len() <= number {
            self.heard.resize(number + 1, 0);
        }
        self.heard[number] += 1;
        self.hops = self.hops.max(hops);
        let count = u32::try_from(self.members.len()).unwrap();
        for child in tree::children(root, u32::from(self.me.0), count) {
            let to = NodeId(u16::try_from(child).unwrap());
            let class = self.random.class();
            out.send(to, class, Message::Broadcast { number, root, hops: hops + 1 });
        }
    }

    /// What was planned for later is done at the beginning.
    pub(super) fn contribute_at_once(&mut self) {
        self.plan.iter_mut().for_each(|(at, ..)| *at = Duration::ZERO);
    }

    fn merge(&mut self, sequence: u32, partial: Partial<Vec<u64>>, out: &mut Outbox<Message>) {
        let tree = TreeOver::new(&self.members, NodeId(0)).unwrap();
        let expected = tree.subtree(self.me).map(|node| self.elements[node.as_usize()]).sum();
        let join = &mut |a: &mut Vec<u64>, b| a.extend::<Vec<u64>>(b);
        let merged = self.reductions.contribute(KEY, sequence, expected, partial, join).unwrap();
        self.peak_bytes = self.peak_bytes.max(self.reductions.state_bytes());
        let Some(partial) = merged else { return };
        match tree.parent(self.me) {
            Some(parent) => out.send(parent, self.random.class(), Message::Reduce { sequence, partial }),
            None => self.results.push((sequence, partial.value)),
        }
    }
}

impl Machine for Member {
    type Message = Message;

    fn receive(&mut self, _: NodeId, message: Message, out: &mut Outbox<Message>) {
        match message {
            Message::Broadcast { number, root, hops } => self.broadcast(number, root, hops, out),
            Message::Reduce { sequence, partial } => self.merge(sequence, partial, out),
        }
    }

    fn wake(&mut self, out: &mut Outbox<Message>) {
        while let Some((_, sequence, element)) = self.plan.pop_if(|(at, ..)| *at <= out.now()) {
            let value = vec![element];
            let value = if self.is_ordered {
                PartialValue::Ordered(vec![(element, value)])
            } else {
                PartialValue::Combined(value)
            };
            self.merge(sequence, Partial { count: 1, terms: 0, value }, out);
        }
    }

    fn timeout(&self) -> Option<Duration> {
        self.plan.last().map(|(at, ..)| *at)
    }
}

/// `elements` on random nodes, or one on each if that is as many; each contributes to all `sequences`.
pub(super) fn members(seed: u64, count: u16, elements: u64, sequences: u32, is_ordered: bool) -> Vec<Member> {
    let mut random = Random::new(!seed);
    let mut counts = vec![0; usize::from(count)];
    let mut plans = vec![Vec::new(); usize::from(count)];
    for element in 0..elements {
        let spread = random.node(count).as_usize();
        let at = if elements == u64::from(count) { usize::try_from(element).unwrap() } else { spread };
        counts[at] += 1;
        for sequence in 0..sequences {
            let time = Duration::from_millis(u64::from(sequence) * 5 + random.below(40));
            plans[at].push((time, sequence, element));
        }
    }
    let members = Rc::new((0..count).map(NodeId).collect::<Vec<_>>());
    let elements = Rc::new(counts);
    let member = |(me, mut plan): (u16, Vec<(Duration, u32, u64)>)| {
        plan.sort_unstable_by_key(|(at, ..)| std::cmp::Reverse(*at));
        Member {
            me: NodeId(me),
            members: Rc::clone(&members),
            elements: Rc::clone(&elements),
            random: Random::new(seed ^ u64::from(me) << 32),
            heard: Vec::new(),
            hops: 0,
            reductions: Reductions::default(),
            peak_bytes: 0,
            plan,
            is_ordered,
            results: Vec::new(),
        }
    };
    (0..).zip(plans).map(member).collect()
}

#[test]
fn a_broadcast_reaches_everyone_exactly_once_from_any_root() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let count = u16::try_from(1 + random.below(60)).unwrap();
        let network = Network::any(&mut random);
        let mut sim = Simulation::new(seed, network, members(seed, count, 0, 0, false));
        for number in 0..4 {
            let root = random.node(count);
            sim.act(root, |member, out| member.broadcast(number, u32::from(root.0), 0, out));
        }
        sim.freeze(random.node(count), Duration::from_millis(1), Duration::from_secs(3));
        assert_eq!(sim.run(LIMIT, |_| false), Ended::Idle);
        for node in sim.ids() {
            assert_eq!(sim.machine(node).heard, [1; 4], "seed {seed}, {node:?} of {count}");
            assert!(sim.sent(node) <= 4 * u64::from(tree::ARITY), "seed {seed}, {node:?}");
        }
    }
}

#[test]
fn an_ordered_reduction_is_the_fold_in_index_order() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let (count, elements) = (u16::try_from(1 + random.below(40)).unwrap(), 1 + random.below(100));
        let network = Network::any(&mut random);
        let is_ordered = seed % 2 == 0;
        let mut sim = Simulation::new(seed, network, members(seed, count, elements, 3, is_ordered));
        sim.freeze(random.node(count), Duration::from_millis(random.below(50)), Duration::from_secs(3));
        assert_eq!(sim.run(LIMIT, |_| false), Ended::Idle);
        assert!(sim.machines().all(|m| m.reductions.is_empty()), "seed {seed}");
        let results = &sim.machine(NodeId(0)).results;
        let mut sequences: Vec<u32> = results.iter().map(|(sequence, _)| *sequence).collect();
        sequences.sort_unstable();
        assert_eq!(sequences, [0, 1, 2], "seed {seed}: each once");
        for (sequence, result) in results {
            // Lists do not commute, so any other order than the elements' shows.
            let whole: Vec<u64> = match result.clone() {
                PartialValue::Ordered(parts) => parts.into_iter().flat_map(|(_, list)| list).collect(),
                PartialValue::Combined(mut list) => {
                    list.sort_unstable();
                    list
                }
            };
            assert!(whole.into_iter().eq(0..elements), "seed {seed}, sequence {sequence}");
        }
    }
}
