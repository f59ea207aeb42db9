//! Quiescence under a random workload in which every message may create others.

use crate::class::Class;
use crate::ids::NodeId;
use crate::proto::quiescence::{Counts, Quiescence, QuiescenceMessage, QuiescenceOutput};
use crate::proto::sim::{Ended, Machine, Network, Outbox, Random, Simulation};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);

enum Message {
    /// Work, which makes others that are one smaller.
    Work(u64),
    Detect(QuiescenceMessage),
}

/// A node that queues work and does it one by one.
struct Busy {
    me: NodeId,
    count: u16,
    random: Random,
    detector: Quiescence,
    counts: Counts,
    queue: VecDeque<u64>,
    next_work: Option<Duration>,
    /// Messages created and not yet processed in the whole simulation: what no node can know.
    under_way: Rc<Cell<u64>>,
    /// When it was told of quiescence, and what was under way then.
    verdicts: Vec<(Duration, u64)>,
}

impl Busy {
    fn create(&mut self, to: NodeId, size: u64, out: &mut Outbox<Message>) {
        self.counts.created += 1;
        self.under_way.set(self.under_way.get() + 1);
        if to == self.me {
            self.enqueue(size, out);
        } else {
            let class = self.random.class();
            out.send(to, class, Message::Work(size));
        }
    }

    fn enqueue(&mut self, size: u64, out: &mut Outbox<Message>) {
        self.queue.push_back(size);
        let length = Duration::from_micros(self.random.below(3000));
        self.next_work.get_or_insert(out.now() + length);
    }

    fn work(&mut self, out: &mut Outbox<Message>) {
        let Some(size) = self.queue.pop_front() else { return };
        for _ in 0..self.random.below(3).min(size) {
            let to = self.random.node(self.count);
            self.create(to, size - 1, out);
        }
        self.counts.processed += 1;
        self.under_way.set(self.under_way.get() - 1);
        let length = Duration::from_micros(self.random.below(3000));
        self.next_work = (!self.queue.is_empty()).then(|| out.now() + length);
    }

    fn pump(&mut self, out: &mut Outbox<Message>) {
        while let Some(output) = self.detector.poll(out.now(), || self.counts) {
            match output {
                QuiescenceOutput::Send { to, message } => {
                    out.send(to, Class::Control, Message::Detect(message))
                }
                QuiescenceOutput::Quiescent { .. } => self.verdicts.push((out.now(), self.under_way.get())),
            }
        }
    }

    /// What a driver does: creates some work and asks for quiescence after it.
    fn drive(&mut self, messages: u64, out: &mut Outbox<Message>) {
        for _ in 0..messages {
            let (to, size) = (self.random.node(self.count), self.random.below(8));
            self.create(to, size, out);
        }
        self.detector.start();
        self.pump(out);
    }
}

impl Machine for Busy {
    type Message = Message;

    fn receive(&mut self, from: NodeId, message: Message, out: &mut Outbox<Message>) {
        match message {
            Message::Work(size) => self.enqueue(size, out),
            Message::Detect(message) => {
                self.detector.handle(from, message, out.now(), || self.counts).unwrap();
            }
        }
        self.pump(out);
    }

    fn wake(&mut self, out: &mut Outbox<Message>) {
        if self.next_work.is_some_and(|at| at <= out.now()) {
            self.work(out);
        }
        self.pump(out);
    }

    fn timeout(&self) -> Option<Duration> {
        [self.next_work, self.detector.timeout()].into_iter().flatten().min()
    }
}

fn simulation(seed: u64) -> (Simulation<Busy>, Random, Rc<Cell<u64>>) {
    let mut random = Random::new(seed);
    let count = u16::try_from(2 + random.below(39)).unwrap();
    let under_way = Rc::new(Cell::new(0));
    let network = Network::any(&mut random);
    let busy = |me: u16| Busy {
        me: NodeId(me),
        count,
        random: Random::new(seed.wrapping_mul(1000) + u64::from(me)),
        detector: Quiescence::new(NodeId(me), count),
        counts: Counts::default(),
        queue: VecDeque::new(),
        next_work: None,
        under_way: Rc::clone(&under_way),
        verdicts: Vec::new(),
    };
    let sim = Simulation::new(seed, network, (0..count).map(busy));
    (sim, random, under_way)
}

fn verdicts(sim: &Simulation<Busy>) -> usize {
    sim.machine(NodeId::LAUNCHER).verdicts.len()
}

#[test]
fn quiescence_is_found_after_the_work_and_never_before() {
    for seed in 0..2000 {
        let (mut sim, mut random, under_way) = simulation(seed);
        for round in 1..=2 {
            let messages = random.below(30);
            sim.act(NodeId::LAUNCHER, |root, out| root.drive(messages, out));
            if random.below(4) == 0 {
                let (node, at) = (random.node(40), sim.now() + Duration::from_millis(random.below(100)));
                sim.freeze(node, at, Duration::from_secs(3));
            }
            let ended = sim.run(LIMIT, |sim| verdicts(sim) == round);
            assert_eq!(ended, Ended::Reached, "seed {seed}, round {round}: no verdict");
            assert_eq!(
                under_way.get(),
                0,
                "seed {seed}, round {round}: a verdict while messages are under way"
            );
        }
        assert_eq!(sim.run(LIMIT, |_| false), Ended::Idle, "seed {seed}: waves go on after the verdict");
        assert_eq!(verdicts(&sim), 2, "seed {seed}: a verdict that nobody waits for");
    }
}

/// A second caller creates work and asks while the search for the first is under way.
#[test]
fn a_request_during_a_search_gets_a_later_moment() {
    for seed in 0..500 {
        let (mut sim, mut random, under_way) = simulation(seed);
        sim.act(NodeId::LAUNCHER, |root, out| root.drive(3, out));
        let steps = random.below(200);
        let mut step = 0;
        let ended = sim.run(LIMIT, |sim| {
            step += 1;
            step > steps || verdicts(sim) > 0
        });
        assert_eq!(ended, Ended::Reached, "seed {seed}");
        let (before, asked_at) = (verdicts(&sim), sim.now());
        sim.act(NodeId::LAUNCHER, |root, out| root.drive(5, out));
        assert_eq!(sim.run(LIMIT, |sim| verdicts(sim) > before), Ended::Reached, "seed {seed}: no verdict");
        assert_eq!(under_way.get(), 0, "seed {seed}: the verdict is older than the request");
        assert!(sim.now() >= asked_at);
        assert_eq!(sim.run(LIMIT, |_| false), Ended::Idle, "seed {seed}: one answer serves both");
    }
}
