//! Reductions over elements that end and are made again at any time, wherever they are, on links of every kind.

use crate::ids::{ElementIndex, NodeId, PeId};
use crate::proto::contributors::{Altered, Change};
use crate::proto::reduction::{Partial, PartialValue, Reductions};
use crate::proto::sim::{Ended, Machine, Network, Outbox, Random, Simulation};
use crate::proto::tree::TreeOver;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);
const KEY: u64 = 1 << 32;
/// All contribute to so many reductions, if they are there.
const REDUCTIONS: u32 = 25;

enum Message {
    /// What an element says to its home, which it has left; perhaps by way of others.
    Home(NodeId, FromElement),
    Part(u32, Partial<Vec<u32>>),
    Change(Change),
}

enum FromElement {
    Contributes(u32, u32),
    /// It has ended, and would have contributed to that reduction next.
    Ends(u32, u32),
}

#[derive(Clone, Copy, PartialEq)]
enum Element {
    /// It contributes to that reduction next.
    Lives(u32),
    Ending,
    Gone(u32),
    Joining,
}

/// A node with one PE, and the elements that are at home there.
struct Member {
    me: NodeId,
    members: Rc<Vec<NodeId>>,
    /// Elements at home on each node.
    counts: Rc<Vec<u64>>,
    elements: BTreeMap<u32, Element>,
    random: Random,
    own: Reductions<Vec<u32>>,
    node: Reductions<Vec<u32>>,
    /// Complete here before an earlier one.
    early: BTreeMap<u32, Partial<Vec<u32>>>,
    /// So often elements do what they like; then they contribute to what is left.
    whims: u32,
    next: Option<Duration>,
    contributed: BTreeSet<(u32, u32)>,
    /// How many elements have ended here, and were made again.
    ended: u32,
    joined: u32,
    /// At node 0: what came out.
    results: Vec<(u32, Vec<u32>)>,
}

impl Member {
    fn pe(&self) -> PeId {
        PeId(u32::from(self.me.0))
    }

    fn parent(&self) -> Option<NodeId> {
        TreeOver::new(&self.members, NodeId(0)).unwrap().parent(self.me)
    }

    /// An element does something, here or where it is.
    fn act(&mut self, element: u32, out: &mut Outbox<Message>) {
        let may_end = self.whims > 0;
        let (next, said) = match self.elements[&element] {
            Element::Lives(at) if may_end && self.random.below(5) == 0 => {
                (Element::Ending, FromElement::Ends(element, at))
            }
            Element::Lives(at) if at < REDUCTIONS => {
                self.contributed.insert((at, element));
                (Element::Lives(at + 1), FromElement::Contributes(element, at))
            }
            Element::Gone(from) if may_end => {
                self.elements.insert(element, Element::Joining);
                let index = ElementIndex([element, 0, 0]);
                return self.own(Change::Joins { index, from, via: Vec::new() }, out);
            }
            _ => return,
        };
        self.elements.insert(element, next);
        let way = self.random.node(u16::try_from(self.members.len()).unwrap());
        if way == self.me {
            return self.home(said, out);
        }
        out.send(way, self.random.class(), Message::Home(self.me, said));
    }

    fn home(&mut self, said: FromElement, out: &mut Outbox<Message>) {
        match said {
            FromElement::Contributes(element, sequence) => {
                let partial = Partial { count: 1, terms: 0, value: PartialValue::Combined(vec![element]) };
                let base = self.counts[self.me.as_usize()];
                if let Some(partial) = self.own.contribute(KEY, sequence, base, partial, &mut join).unwrap() {
                    self.own_are_in(sequence, partial, out);
                }
            }
            FromElement::Ends(element, from) => {
                self.elements.insert(element, Element::Gone(from));
                self.ended += 1;
                self.own(Change::Fewer { from, count: 1 }, out);
            }
        }
    }

    fn own(&mut self, change: Change, out: &mut Outbox<Message>) {
        let altered = self.own.take(KEY, (self.pe(), Some(self.pe())), change).unwrap();
        let Altered { full, say, begins } = altered;
        full.into_iter().for_each(|(sequence, partial)| self.own_are_in(sequence, partial, out));
        self.say(say, out);
        if let Some((ElementIndex([element, ..]), from)) = begins {
            let before = self.elements.insert(element, Element::Lives(from));
            assert!(before == Some(Element::Joining));
            self.joined += 1;
        }
    }

    fn own_are_in(&mut self, sequence: u32, partial: Partial<Vec<u32>>, out: &mut Outbox<Message>) {
        self.early.insert(sequence, partial);
        let base = self.counts[self.me.as_usize()];
        while let Some(first) = self.early.first_entry()
            && self.own.is_next(KEY, base, *first.key())
        {
            let (sequence, partial) = first.remove_entry();
            self.merge(sequence, partial, out);
        }
    }

    fn below(&self) -> u64 {
        let tree = TreeOver::new(&self.members, NodeId(0)).unwrap();
        tree.subtree(self.me).map(|node| self.counts[node.as_usize()]).sum()
    }

    fn merge(&mut self, sequence: u32, partial: Partial<Vec<u32>>, out: &mut Outbox<Message>) {
        let base = self.below();
        if let Some(partial) = self.node.contribute(KEY, sequence, base, partial, &mut join).unwrap() {
            self.pass(sequence, partial, out);
        }
    }

    fn pass(&mut self, sequence: u32, partial: Partial<Vec<u32>>, out: &mut Outbox<Message>) {
        let _ = self.node.is_next(KEY, self.below(), sequence);
        match (self.parent(), partial.value) {
            (Some(parent), value) => {
                let partial = Partial { count: partial.count, terms: 0, value };
                out.send(parent, self.random.class(), Message::Part(sequence, partial));
            }
            (None, PartialValue::Combined(values)) => self.results.push((sequence, values)),
            (None, PartialValue::Ordered(_)) => panic!("nobody contributes so"),
        }
    }

    fn change(&mut self, change: Change, out: &mut Outbox<Message>) {
        if matches!(&change, Change::Joined { via, .. } if via.len() == 1) {
            return self.own(change, out);
        }
        let above = self.parent().map(|parent| PeId(u32::from(parent.0)));
        let Altered { full, say, begins } = self.node.take(KEY, (self.pe(), above), change).unwrap();
        assert_eq!(begins, None);
        full.into_iter().for_each(|(sequence, partial)| self.pass(sequence, partial, out));
        self.say(say, out);
    }

    fn say(&mut self, say: Option<(PeId, Change)>, out: &mut Outbox<Message>) {
        let Some((PeId(to), change)) = say else { return };
        if to == u32::from(self.me.0) {
            return self.change(change, out);
        }
        out.send(NodeId(u16::try_from(to).unwrap()), self.random.class(), Message::Change(change));
    }

    /// Whether elements here have something to do.
    fn has_more(&self) -> bool {
        let has_more = |element: &Element| match element {
            Element::Lives(at) => *at < REDUCTIONS || self.whims > 0,
            Element::Gone(_) => self.whims > 0,
            Element::Ending | Element::Joining => false,
        };
        self.elements.values().any(has_more)
    }

    /// When elements do something next.
    fn plan(&mut self, out: &Outbox<Message>) {
        if self.next.is_none() && self.has_more() {
            self.next = Some(out.now() + Duration::from_micros(self.random.below(20_000)));
        }
    }
}

fn join(a: &mut Vec<u32>, b: Vec<u32>) {
    a.extend(b);
}

impl Machine for Member {
    type Message = Message;

    fn receive(&mut self, _: NodeId, message: Message, out: &mut Outbox<Message>) {
        match message {
            Message::Home(home, said) if home != self.me => {
                out.send(home, self.random.class(), Message::Home(home, said));
            }
            Message::Home(_, said) => self.home(said, out),
            Message::Part(sequence, partial) => self.merge(sequence, partial, out),
            Message::Change(change) => self.change(change, out),
        }
        self.plan(out);
    }

    fn wake(&mut self, out: &mut Outbox<Message>) {
        self.next = None;
        let all: Vec<u32> = self.elements.keys().copied().collect();
        let at = self.random.below(all.len() as u64);
        self.act(all[usize::try_from(at).unwrap()], out);
        self.whims = self.whims.saturating_sub(1);
        self.plan(out);
    }

    fn timeout(&self) -> Option<Duration> {
        self.next
    }
}

fn members(random: &mut Random) -> Vec<Member> {
    let count = u16::try_from(1 + random.below(20)).unwrap();
    let mut homes = vec![BTreeMap::new(); usize::from(count)];
    for element in 0..u32::try_from(1 + random.below(40)).unwrap() {
        homes[random.node(count).as_usize()].insert(element, Element::Lives(0));
    }
    let counts = Rc::new(homes.iter().map(|here| here.len() as u64).collect::<Vec<_>>());
    let members = Rc::new((0..count).map(NodeId).collect::<Vec<_>>());
    let whims = u32::try_from(random.below(200)).unwrap();
    let member = |(me, elements): (u16, BTreeMap<u32, Element>)| Member {
        me: NodeId(me),
        members: Rc::clone(&members),
        counts: Rc::clone(&counts),
        next: (!elements.is_empty()).then_some(Duration::ZERO),
        elements,
        random: Random::new(random.below(u64::MAX)),
        own: Reductions::default(),
        node: Reductions::default(),
        early: BTreeMap::new(),
        whims,
        contributed: BTreeSet::new(),
        ended: 0,
        joined: 0,
        results: Vec::new(),
    };
    (0..).zip(homes).map(member).collect()
}

#[test]
fn each_reduction_ends_once_with_all_that_was_contributed() {
    let (mut joined, mut ended) = (0, 0);
    for seed in 0..1000 {
        let mut random = Random::new(seed);
        let network = Network::any(&mut random);
        let mut sim = Simulation::new(seed, network, members(&mut random));
        assert_eq!(sim.run(LIMIT, |_| false), Ended::Idle, "seed {seed}");
        let mut contributed: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for member in sim.machines() {
            assert!(
                member.own.is_empty() && member.node.is_empty() && member.early.is_empty(),
                "seed {seed}"
            );
            for (sequence, element) in &member.contributed {
                contributed.entry(*sequence).or_default().insert(*element);
            }
            let settled = |element: &Element| matches!(element, Element::Lives(_) | Element::Gone(_));
            assert!(member.elements.values().all(settled), "seed {seed}: an answer is missing");
            ended += member.ended;
            joined += member.joined;
        }
        let mut results = sim.machine(NodeId(0)).results.clone();
        results.sort_unstable();
        results.iter_mut().for_each(|(_, values)| values.sort_unstable());
        let expected: Vec<_> =
            contributed.into_iter().map(|(at, elements)| (at, elements.into_iter().collect())).collect();
        assert_eq!(results, expected, "seed {seed}");
    }
    assert!(joined > 10_000 && ended > joined, "{ended} ended and {joined} were made again");
}
