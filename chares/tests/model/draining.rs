//! Nodes that leave while a run goes on: every test of this folder does so too.

use super::checkpoints::{InMemory, go_on_elsewhere};
use chares::prelude::*;
use chares::{Accumulator, InProcess, Program};
use runtime::monitor::requests::{Answer, Asked, Request};
use runtime::monitor::wire::PeSnapshot;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

/// Has a node asked to leave; where its answer comes.
fn drain(main: &Driver) -> (impl Fn(&str) + Send + 'static, Receiver<Receiver<Answer>>) {
    let (ask, (tell, answers)) = (main.asker(), channel());
    let drain = move |node: &str| {
        let (asked, answer) = Asked::new(Request::Drain { node: node.into() });
        ask(asked);
        tell.send(answer).unwrap();
    };
    (drain, answers)
}

/// Has a node leave each time that the driver has waited so often.
const EVERY: u32 = 2;

/// Runs while one node after the other leaves, in another order on other mixes; the last is told to leave too, and stays. From
/// what is saved meanwhile it goes on elsewhere.
pub(crate) fn run_and_drain(
    program: impl Fn() -> Program,
    mix: &InProcess,
    drive: impl Fn(&mut Driver) -> Result<(), RunError>,
) {
    let mut nodes: Vec<String> = (1..=mix.pes.len()).map(|node| format!("node {node}")).collect();
    if mix.always_pup {
        nodes.reverse();
    }
    let mut taken = Arc::default();
    let ran = program().run_in_process(mix, |main| {
        let (ask, answers) = drain(main);
        let (mut waits, mut left) = (0u32, nodes.clone());
        let (keeper, kept) = InMemory::by(move |_| {
            waits += 1;
            if waits.is_multiple_of(EVERY)
                && let Some(node) = left.pop()
            {
                ask(&node);
            }
            // Whoever was asked last has left.
            waits > EVERY && waits % EVERY == EVERY - 1
        });
        taken = kept;
        let keeper = if mix.always_pup { keeper.by_snapshot() } else { keeper.meanwhile() };
        main.keep_checkpoints(Box::new(keeper));
        drive(main)?;
        let answers: Vec<Answer> = answers.try_iter().filter_map(|answer| answer.try_recv().ok()).collect();
        for (number, answer) in answers.iter().enumerate() {
            assert_eq!(answer.is_ok(), number + 1 < nodes.len(), "{answer:?}");
        }
        Ok(())
    });
    ran.unwrap_or_else(|e| panic!("{mix:?} while nodes leave: {e}"));
    if let Some(snapshot) = taken.lock().unwrap().pop() {
        let pes = mix.pes.iter().sum();
        let gone_on = go_on_elsewhere(program(), mix, (snapshot.go_on(), None), &[pes], drive);
        gone_on.unwrap_or_else(|e| panic!("{mix:?} from where nodes had left: {e}"));
    }
}

#[derive(Serialize, Deserialize)]
struct Adder;
#[derive(Clone, Serialize, Deserialize)]
struct Add(Accumulator<Sum<u64>>, Callback<Sum<u64>>);
chares::entries!(Adder: Add; reduces Sum<u64>);
impl Chare for Adder {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self
    }
}
impl Entry<Add> for Adder {
    fn receive(&mut self, Add(to, done): Add, ctx: &mut Ctx<'_, Self>) {
        to.add(ctx, Sum(1));
        ctx.progress(1);
        ctx.contribute(Sum(u64::from(ctx.pe_id())), done);
    }
}

/// What was added on a node that has left counts, its chares go on where they are numbered, and who may not leave stays.
#[test]
fn a_node_leaves_nothing_behind() {
    let program = Program::new("adding", "1").chare::<Adder>();
    let added = program.run_in_process(&InProcess::new(&[1, 2, 1]), |main| {
        let (ask, answers) = drain(main);
        let (adders, sum) = (main.array::<Adder>(4, ()), main.accumulator::<Sum<u64>>());
        // All chares are there.
        main.quiescence()?;
        let mut told = Vec::new();
        for leaving in ["node 2", "node 2", "x", "launcher", "node 3", "node 1"] {
            ask(leaving);
            let (to, pes) = main.pending();
            adders.broadcast(main, Add(sum, to));
            assert_eq!(pes.wait(main)?.0, 6);
            main.quiescence()?;
            told.push(answers.recv().unwrap().recv().unwrap());
        }
        assert!(main.has_other_nodes());
        let nodes = main.snapshots()?;
        let sums = |of: fn(&PeSnapshot) -> u64| {
            nodes.iter().map(|node| node.pes.iter().map(of).sum()).collect::<Vec<u64>>()
        };
        let there = "the launcher, the node that is left, and those that were";
        assert_eq!(sums(|pe| pe.chares), [0, 4, 0, 0], "{there}");
        assert_eq!(sums(|pe| pe.progress), [0, 4 * 6, 0, 0], "{there}: a checkpoint has what PEs have");
        Ok((told, main.collect(&sum)?.map(|sum| sum.0)))
    });
    let (told, sum) = added.unwrap();
    assert_eq!(sum, Some(4 * 6));
    let told: Vec<_> = told
        .into_iter()
        .map(|answer| answer.map_or_else(|refused| refused.sentence, |done| done.sentence))
        .collect();
    let beginnings = [
        "node 2 has left: its PEs went on (1 to node 1, 1 to node 3) with 2 chares, ",
        "node 2 has left; there are node 1, node 3",
        "no node of this run is called \"x\"; there are node 1, node 3",
        "the launcher stays until the run ends",
        "node 3 has left: its PEs went on (2 to node 1) with 2 chares, ",
        "node 1 is the last node of this run",
    ];
    for (told, beginning) in told.iter().zip(beginnings) {
        assert!(told.starts_with(beginning), "{told}");
    }
}
