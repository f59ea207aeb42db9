//! What chares that share a PE or a node have of that: messages that nobody packs, and a turn for each of them.

use chares::{
    Array, Callback, Chare, Ctx, Cx, Driver, Element, Entry, InProcess, Placement, Program, RunError,
};
use serde::{Deserialize, Serialize, Serializer};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How often a letter was packed, in the one test that sends any.
static PACKED: AtomicU32 = AtomicU32::new(0);
/// How often a chare has polled, in the one test where any does.
static POLLS: AtomicU64 = AtomicU64::new(0);

/// What says that it was packed.
#[derive(Clone, Deserialize)]
struct Letter(Vec<u8>);

impl Serialize for Letter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PACKED.fetch_add(1, Ordering::Relaxed);
        serializer.serialize_newtype_struct("Letter", &self.0)
    }
}

/// Polls until it is told to stop, works step by step, or sends letters.
#[derive(Default, Serialize, Deserialize)]
struct Busy {
    has_stopped: bool,
}

#[derive(Clone, Serialize, Deserialize)]
struct Poll;
#[derive(Clone, Serialize, Deserialize)]
struct Stop;
/// So many steps are left, each a message to the next of two; how many polls there had been before the last one, and the most
/// from one to the next.
#[derive(Clone, Serialize, Deserialize)]
struct Steps {
    left: u32,
    next: Element<Busy>,
    polls: Option<u64>,
    most: u64,
    done: Callback<u64>,
}
/// Send a letter there.
#[derive(Clone, Serialize, Deserialize)]
struct Write(Element<Busy>, Callback<bool>);
/// A letter, where its bytes lay when it was sent, and who wants to know whether they still lie there.
#[derive(Clone, Serialize, Deserialize)]
struct Read(Letter, usize, Callback<bool>);

chares::entries!(Busy: Poll, Stop, Steps, Write, Read);

impl Chare for Busy {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self::default()
    }
}
impl Entry<Poll> for Busy {
    fn receive(&mut self, Poll: Poll, ctx: &mut Ctx<'_, Self>) {
        POLLS.fetch_add(1, Ordering::Relaxed);
        if !self.has_stopped {
            ctx.this().send(ctx, Poll);
        }
    }
}
impl Entry<Stop> for Busy {
    fn receive(&mut self, Stop: Stop, _: &mut Ctx<'_, Self>) {
        self.has_stopped = true;
    }
}
impl Entry<Steps> for Busy {
    fn receive(&mut self, steps: Steps, ctx: &mut Ctx<'_, Self>) {
        let polls = POLLS.load(Ordering::Relaxed);
        let most = steps.polls.map_or(0, |before| steps.most.max(polls - before));
        if steps.left == 0 {
            return steps.done.send(ctx, most);
        }
        let this = ctx.this();
        steps.next.send(ctx, Steps { left: steps.left - 1, next: this, polls: Some(polls), most, ..steps });
    }
}
impl Entry<Write> for Busy {
    fn receive(&mut self, Write(to, kept): Write, ctx: &mut Ctx<'_, Self>) {
        let bytes = vec![7; 1000];
        let place = bytes.as_ptr().addr();
        to.send(ctx, Read(Letter(bytes), place, kept));
    }
}
impl Entry<Read> for Busy {
    fn receive(&mut self, Read(letter, place, kept): Read, ctx: &mut Ctx<'_, Self>) {
        kept.send(ctx, letter.0.as_ptr().addr() == place);
    }
}

fn program() -> Program {
    Program::new("turns", "1").chare::<Busy>()
}

#[test]
fn a_message_within_a_node_is_moved_and_nobody_packs_it() {
    let mix = InProcess { always_pup: false, ..InProcess::new(&[2, 1]) };
    let sent = |main: &mut Driver, busy: &Array<Busy>, from, to| {
        let (kept, is_same) = main.pending();
        let before = PACKED.load(Ordering::Relaxed);
        busy.at(from).send(main, Write(busy.at(to), kept));
        let is_same = is_same.wait(main)?;
        Ok::<_, RunError>((is_same, PACKED.load(Ordering::Relaxed) - before))
    };
    let run = |main: &mut Driver| {
        let busy = main.array_placed::<Busy>(4, (), Placement::on_pes([0, 0, 1, 2]));
        assert_eq!(sent(main, &busy, 0, 1)?, (true, 0), "to a chare of the same PE");
        assert_eq!(sent(main, &busy, 0, 2)?, (true, 0), "to another PE of the node");
        assert_eq!(sent(main, &busy, 0, 3)?, (false, 1), "to another node");
        Ok(())
    };
    program().run_in_process(&mix, run).unwrap();
}

/// The most polls from one step of two chares to the next, of which the first shares its PE with a chare that polls.
fn most_polls_between_steps(main: &mut Driver, second: u32) -> Result<u64, RunError> {
    let busy = main.array_placed::<Busy>(3, (), Placement::on_pes([0, 0, second]));
    busy.at(0).send(main, Poll);
    let (done, most) = main.pending();
    busy.at(1).send(main, Steps { left: 2000, next: busy.at(2), polls: None, most: 0, done });
    let most = most.wait(main)?;
    busy.at(0).send(main, Stop);
    main.quiescence()?;
    Ok(most)
}

#[test]
fn a_chare_that_polls_for_ever_leaves_each_of_the_others_its_turn() {
    for always_pup in [false, true] {
        for (pes, second) in [(&[2][..], 1), (&[1, 1], 1), (&[1], 0)] {
            let mix = InProcess { always_pup, ..InProcess::new(pes) };
            let run = |main: &mut Driver| most_polls_between_steps(main, second);
            let most = program().run_in_process(&mix, run).unwrap();
            // A step that comes from another PE is on its way for a while, and on one PE each waits for one poll.
            assert!(second != 0 || most == 1, "{most} polls between two steps: {mix:?}");
        }
    }
}
