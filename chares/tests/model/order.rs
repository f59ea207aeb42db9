//! In which order messages run: priorities, senders, and messages that come before their element.

use chares::{
    Accumulator, Array, Bulk, Callback, Chare, Ctx, Cx, Driver, Entry, InProcess, Inbox, Placement, Program,
    RunError, Sum,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex};

/// Writes down what it hears.
#[derive(Serialize, Deserialize)]
struct Recorder {
    heard: Vec<u32>,
    steps: Inbox<u32, u32>,
    step: u32,
}

#[derive(Clone, Serialize, Deserialize)]
struct Note(u32);
#[derive(Clone, Serialize, Deserialize)]
struct Report(Callback<Vec<u32>>);
/// Send notes with these priorities to `to`, while it holds on if there is a gate.
#[derive(Clone, Serialize, Deserialize)]
struct Burst {
    to: chares::Element<Recorder>,
    priorities: Vec<i32>,
    gate: Option<u32>,
}
/// Send such a number of broadcasts and one multicast to all others, each more urgent than the one before.
#[derive(Clone, Serialize, Deserialize)]
struct Proclaim(u32, chares::Section<Recorder>);
/// Let nothing else run until the burst has been sent.
#[derive(Clone, Serialize, Deserialize)]
struct Hold(u32);
/// Make the element, with notes before and after.
#[derive(Clone, Serialize, Deserialize)]
struct MakeLate(Array<Recorder>, u32);
#[derive(Clone, Serialize, Deserialize)]
struct Step(u32, u32);
/// Make two of the next depth, anywhere, and add 1 at the end.
#[derive(Clone, Serialize, Deserialize)]
struct Fork(u32, Accumulator<Sum<u64>>);
#[derive(Clone, Serialize, Deserialize)]
struct Load(u32, Bulk<u8>);

chares::entries!(Recorder: Note, Report, Burst, Proclaim, Hold, MakeLate, Step, Fork, Load);

impl Chare for Recorder {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self { heard: Vec::new(), steps: Inbox::default(), step: 0 }
    }
}

impl Entry<Note> for Recorder {
    fn receive(&mut self, Note(n): Note, _: &mut Ctx<'_, Self>) {
        self.heard.push(n);
    }
}
impl Entry<Report> for Recorder {
    fn receive(&mut self, Report(to): Report, ctx: &mut Ctx<'_, Self>) {
        to.send(ctx, std::mem::take(&mut self.heard));
    }
}
impl Entry<Burst> for Recorder {
    fn receive(&mut self, burst: Burst, ctx: &mut Ctx<'_, Self>) {
        if let Some(gate) = burst.gate {
            GATES.wait(gate * 2);
        }
        for (n, priority) in (0..).zip(burst.priorities) {
            burst.to.send_with(ctx, priority, Note(n));
        }
        if let Some(gate) = burst.gate {
            GATES.open(gate * 2 + 1);
        }
    }
}
impl Entry<Proclaim> for Recorder {
    fn receive(&mut self, Proclaim(count, section): Proclaim, ctx: &mut Ctx<'_, Self>) {
        for (n, priority) in (0..count).zip((0..).map(|n: i32| 5 - n)) {
            ctx.array().broadcast_with(ctx, priority, Note(n));
        }
        section.send_with(ctx, i32::MAX, Note(count));
    }
}
impl Entry<Hold> for Recorder {
    fn receive(&mut self, Hold(gate): Hold, _: &mut Ctx<'_, Self>) {
        GATES.open(gate * 2);
        GATES.wait(gate * 2 + 1);
    }
}
impl Entry<MakeLate> for Recorder {
    fn receive(&mut self, MakeLate(late, index): MakeLate, ctx: &mut Ctx<'_, Self>) {
        let send = |ctx: &mut Ctx<'_, Self>, n, priority| late.at(index).send_with(ctx, priority, Note(n));
        (0..3).for_each(|n| send(ctx, n, 0));
        (10..13).for_each(|n| send(ctx, n, 1));
        ctx.insert(&late, index, ());
        (3..6).for_each(|n| send(ctx, n, 0));
        (13..16).for_each(|n| send(ctx, n, 1));
    }
}
impl Entry<Step> for Recorder {
    fn receive(&mut self, Step(step, n): Step, _: &mut Ctx<'_, Self>) {
        self.steps.hold(step, n);
        while let Some(mut all) = self.steps.take(&self.step, 2) {
            all.sort_unstable();
            self.heard.extend(all);
            self.step += 1;
        }
    }
}
impl Entry<Fork> for Recorder {
    fn receive(&mut self, Fork(depth, sum): Fork, ctx: &mut Ctx<'_, Self>) {
        if depth == 0 {
            return sum.add(ctx, Sum(1));
        }
        let (array, index) = (ctx.array(), ctx.index());
        for n in 1..3 {
            let next = (index * 7 + depth * n) % array.shape()[0];
            array.at(next).send(ctx, Fork(depth - 1, sum));
        }
    }
}
impl Entry<Load> for Recorder {
    fn receive(&mut self, Load(n, bytes): Load, _: &mut Ctx<'_, Self>) {
        assert!(bytes.iter().all(|b| u32::from(*b) == n % 251));
        self.heard.push(n);
    }
}

/// Where entry methods of different PEs wait for each other, as only tests may.
struct Gates {
    open: Mutex<BTreeSet<u32>>,
    changed: Condvar,
}

static GATES: Gates = Gates { open: Mutex::new(BTreeSet::new()), changed: Condvar::new() };

impl Gates {
    fn open(&self, gate: u32) {
        self.open.lock().unwrap().insert(gate);
        self.changed.notify_all();
    }

    fn wait(&self, gate: u32) {
        let open = self.open.lock().unwrap();
        drop(self.changed.wait_while(open, |open| !open.contains(&gate)).unwrap());
    }
}

fn program() -> Program {
    Program::new("order", "1").chare::<Recorder>()
}

fn heard(main: &mut Driver, recorders: &Array<Recorder>, index: u32) -> Result<Vec<u32>, RunError> {
    let (to, heard) = main.pending();
    recorders.at(index).send_with(main, i32::MAX, Report(to));
    heard.wait(main)
}

/// Places of the smallest first, equal ones in order.
fn by_priority(priorities: &[i32]) -> Vec<u32> {
    let mut places: Vec<u32> = (0..).zip(priorities).map(|(n, _)| n).collect();
    places.sort_by_key(|n| priorities[*n as usize]);
    places
}

#[test]
fn what_waits_on_a_pe_runs_by_priority() {
    let priorities = vec![0, 5, -3, 5, 0, -3, i32::MAX, i32::MIN, 1, -1, 0, 5];
    // A chare that moves may wait on another PE than its messages, which then come to it one by one.
    crate::on_mixes_where_nothing_moves(program, |main| {
        // Sender and receiver on one PE: what an entry method sends waits until it has returned.
        let pair = main.array_placed::<Recorder>(2, (), Placement::on_pes([0, 0]));
        pair.at(0).send(main, Burst { to: pair.at(1), priorities: priorities.clone(), gate: None });
        main.quiescence()?;
        assert_eq!(heard(main, &pair, 1)?, by_priority(&priorities));
        Ok(())
    });
}

#[test]
fn an_urgent_message_overtakes_ten_thousand_that_wait() {
    let mut priorities = vec![0; 10_000];
    priorities.push(-1);
    let drive = |main: &mut Driver| {
        let pair = main.array_placed::<Recorder>(2, (), Placement::on_pes([0, 0]));
        pair.at(0).send(main, Burst { to: pair.at(1), priorities: priorities.clone(), gate: None });
        main.quiescence()?;
        assert!(
            heard(main, &pair, 1)? == by_priority(&priorities),
            "the urgent one first, the others in order"
        );
        Ok(())
    };
    program().run_in_process(&InProcess::new(&[2]), drive).unwrap();
}

#[test]
fn priorities_hold_for_what_came_from_other_pes_and_nodes() {
    let priorities = vec![3, 0, -2, 3, 7, -2, 0, -9];
    let mut gate = 0;
    for pes in [&[2][..], &[1, 1], &[1, 2]] {
        for always_pup in [false, true] {
            gate += 1;
            let mix = InProcess { always_pup, ..InProcess::new(pes) };
            let run = |main: &mut Driver| {
                let last = main.pe_count() - 1;
                let pair = main.array_placed::<Recorder>(2, (), Placement::on_pes([0, last]));
                pair.at(1).send(main, Hold(gate));
                let (to, priorities) = (pair.at(1), priorities.clone());
                pair.at(0).send(main, Burst { to, priorities, gate: Some(gate) });
                main.quiescence()?;
                heard(main, &pair, 1)
            };
            assert_eq!(program().run_in_process(&mix, run).unwrap(), by_priority(&priorities), "{mix:?}");
        }
    }
}

#[test]
fn broadcasts_and_multicasts_have_priorities_too() {
    for always_pup in [false, true] {
        // One PE: all have arrived before the next message is taken.
        let mix = InProcess { always_pup, ..InProcess::new(&[1]) };
        let run = |main: &mut Driver| {
            let recorders = main.array::<Recorder>(3, ());
            let section = recorders.section(main, [1, 2]);
            recorders.at(0).send(main, Proclaim(9, section));
            main.quiescence()?;
            (0..3).map(|index| heard(main, &recorders, index)).collect::<Result<Vec<_>, _>>()
        };
        let all: Vec<Vec<u32>> = program().run_in_process(&mix, run).unwrap();
        assert_eq!(
            all,
            [vec![8, 7, 6, 5, 4, 3, 2, 1, 0], vec![8, 7, 6, 5, 4, 3, 2, 1, 0, 9], all[1].clone()]
        );
    }
}

#[test]
fn what_came_before_the_element_is_not_overtaken_by_what_came_after_it() {
    crate::on_every_mix(program, |main| {
        for maker in 0..main.pe_count() {
            let makers = main.group::<Recorder>(());
            let late = main.array_deferred::<Recorder>(3, Placement::Cyclic);
            for index in 0..3 {
                makers.on(maker).send(main, MakeLate(late, index));
            }
            main.quiescence()?;
            for index in 0..3 {
                let heard = heard(main, &late, index)?;
                let (ordinary, later): (Vec<u32>, Vec<u32>) = heard.iter().partition(|n| **n < 10);
                assert_eq!(ordinary, [0, 1, 2, 3, 4, 5]);
                assert_eq!(later, [10, 11, 12, 13, 14, 15]);
            }
        }
        Ok(())
    });
}

#[test]
fn broadcasts_of_one_sender_keep_their_order_while_elements_are_made() {
    crate::on_every_mix(program, |main| {
        let late = main.array_deferred::<Recorder>(9, Placement::Block);
        for n in 0..9 {
            late.broadcast(main, Note(n));
            main.insert(&late, 8 - n, ());
            late.broadcast(main, Note(100 + n));
        }
        main.quiescence()?;
        let expected: Vec<u32> = (0..9).flat_map(|n| [n, 100 + n]).collect();
        for index in 0..9 {
            assert_eq!(heard(main, &late, index)?, expected);
        }
        Ok(())
    });
}

#[test]
fn big_messages_keep_their_order_among_themselves() {
    crate::on_every_mix(program, |main| {
        let recorders = main.array::<Recorder>(4, ());
        for n in 0..40 {
            let bytes = Bulk::from(vec![u8::try_from(n % 251).unwrap(); 20_000]);
            recorders.at(n % 4).send(main, Load(n, bytes));
        }
        main.quiescence()?;
        for index in 0..4 {
            let expected: Vec<u32> = (0..40).filter(|n| n % 4 == index).collect();
            assert_eq!(heard(main, &recorders, index)?, expected);
        }
        Ok(())
    });
}

#[test]
fn an_inbox_puts_steps_that_came_out_of_order_in_order() {
    crate::on_every_mix(program, |main| {
        let recorders = main.array::<Recorder>(2, ());
        for (step, n) in [(3, 6), (1, 2), (0, 1), (2, 5), (1, 3), (3, 7), (2, 4), (0, 0)] {
            recorders.at(1).send(main, Step(step, n));
        }
        main.quiescence()?;
        assert_eq!(heard(main, &recorders, 1)?, [0, 1, 2, 3, 4, 5, 6, 7]);
        Ok(())
    });
}

#[test]
fn quiescence_waits_for_everything_under_way() {
    crate::on_every_mix(program, |main| {
        let recorders = main.array::<Recorder>(10, ());
        let sum = main.accumulator::<Sum<u64>>();
        for round in 0..3 {
            (0..10).for_each(|index| recorders.at(index).send(main, Fork(4 + round, sum)));
            main.quiescence()?;
            assert_eq!(main.collect(&sum)?, Some(Sum(10 << (4 + round))));
        }
        main.quiescence() // at rest already
    });
}
