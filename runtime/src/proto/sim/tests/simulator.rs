//! The simulator keeps its own promises: order within a link and class, no loss, nothing while frozen.

use crate::class::Class;
use crate::ids::NodeId;
use crate::proto::sim::{Ended, Machine, Network, Outbox, Random, Simulation};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Remembers what came and when.
#[derive(Default)]
struct Ear(Vec<(Duration, NodeId, (Class, u32))>);

impl Machine for Ear {
    type Message = (Class, u32);

    fn receive(&mut self, from: NodeId, message: (Class, u32), out: &mut Outbox<(Class, u32)>) {
        self.0.push((out.now(), from, message));
    }

    fn wake(&mut self, _: &mut Outbox<(Class, u32)>) {}

    fn timeout(&self) -> Option<Duration> {
        None
    }
}

fn network(seed: u64) -> Network {
    Network {
        lost_per_mille: 50,
        delay_max: Duration::from_millis(30),
        ..Network::any(&mut Random::new(seed))
    }
}

/// Two nodes send 50 messages of each class to a third.
fn heard(seed: u64, prepare: impl FnOnce(&mut Simulation<Ear>)) -> Vec<(Duration, NodeId, (Class, u32))> {
    let mut sim = Simulation::new(seed, network(seed), (0..3).map(|_| Ear::default()));
    prepare(&mut sim);
    for number in 0..50 {
        for sender in [NodeId(1), NodeId(2)] {
            sim.act(sender, |_, out| {
                for class in [Class::Large, Class::Small] {
                    out.send(NodeId(0), class, (class, number));
                }
            });
        }
    }
    assert_eq!(sim.run(100 * SECOND, |_| false), Ended::Idle);
    sim.machine(NodeId(0)).0.clone()
}

#[test]
fn links_keep_order_within_a_class_and_not_across() {
    let mut has_overtaken = false;
    for seed in 0..50 {
        let all = heard(seed, |_| {});
        assert_eq!(all.len(), 200, "seed {seed}: a loss is a delay");
        for sender in [NodeId(1), NodeId(2)] {
            for class in [Class::Large, Class::Small] {
                let link = all.iter().filter(|(_, from, m)| *from == sender && m.0 == class);
                assert!(link.map(|(_, _, m)| m.1).eq(0..50), "seed {seed}");
            }
        }
        has_overtaken |= !all.iter().map(|(_, _, m)| m.1).is_sorted();
    }
    assert!(has_overtaken, "different links and classes overtake each other");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    assert_eq!(heard(7, |_| {}), heard(7, |_| {}));
    assert_ne!(heard(7, |_| {}), heard(8, |_| {}));
}

#[test]
fn a_frozen_node_hears_all_later_and_a_dead_one_nothing() {
    let frozen = heard(1, |sim| sim.freeze(NodeId(0), Duration::ZERO, 10 * SECOND));
    assert!(frozen.iter().all(|(at, ..)| *at >= 10 * SECOND));
    assert_eq!(frozen.len(), 200);
    let order = |all: &[(Duration, NodeId, (Class, u32))]| all.iter().map(|x| (x.1, x.2)).collect::<Vec<_>>();
    assert_eq!(order(&frozen), order(&heard(1, |_| {})), "in the order in which it would have come");
    assert_eq!(heard(1, |sim| sim.kill(NodeId(0), Duration::ZERO)), []);
}

#[test]
fn a_node_that_is_frozen_again_before_it_can_do_anything_hears_all_in_order() {
    let last = heard(1, |_| {}).last().unwrap().0;
    let frozen = heard(1, |sim| {
        (0..10).for_each(|n| sim.freeze(NodeId(0), last * n / 10, last / 5));
    });
    let order = |all: &[(Duration, NodeId, (Class, u32))]| all.iter().map(|x| (x.1, x.2)).collect::<Vec<_>>();
    assert!(frozen[0].0 > last);
    assert_eq!(order(&frozen), order(&heard(1, |_| {})));
}

#[test]
fn a_loss_is_a_delay() {
    let last_arrival = |lost_per_mille| {
        let network = Network { lost_per_mille, retransmission: SECOND, ..Network::steady(SECOND / 1000) };
        let mut sim = Simulation::new(3, network, (0..2).map(|_| Ear::default()));
        sim.act(NodeId(1), |_, out| {
            (0..100).for_each(|n| out.send(NodeId(0), Class::Small, (Class::Small, n)))
        });
        assert_eq!(sim.run(1000 * SECOND, |_| false), Ended::Idle);
        assert_eq!(sim.received(NodeId(0)), 100);
        sim.now()
    };
    assert!(last_arrival(0) < SECOND / 100);
    assert!(last_arrival(300) > SECOND);
}

/// Says what it hears, each after some work.
struct Busy(Duration);

impl Machine for Busy {
    type Message = u32;

    fn receive(&mut self, _: NodeId, message: u32, out: &mut Outbox<u32>) {
        out.work(self.0);
        out.send(NodeId(1), Class::Small, message);
    }

    fn wake(&mut self, _: &mut Outbox<u32>) {}

    fn timeout(&self) -> Option<Duration> {
        None
    }
}

#[test]
fn who_works_takes_one_message_after_the_other_and_answers_when_done() {
    let delay = SECOND / 1000;
    let machines = [Busy(SECOND), Busy(Duration::ZERO), Busy(Duration::ZERO)];
    let mut sim = Simulation::new(5, Network::steady(delay), machines);
    for number in 0..10 {
        sim.act(NodeId(2), |_, out| out.send(NodeId(0), Class::Small, number));
    }
    let heard = |sim: &Simulation<Busy>| sim.received(NodeId(0));
    assert_eq!(sim.run(5 * SECOND + 2 * delay, |_| false), Ended::OutOfTime);
    assert_eq!((heard(&sim), sim.sent(NodeId(0))), (6, 6), "the sixth is being dealt with");
    assert_eq!(sim.run(SECOND * 11, |sim| heard(sim) == 10), Ended::Reached);
    assert!(sim.now() > SECOND * 9 && sim.now() < SECOND * 9 + 2 * delay, "{:?}", sim.now());
}
