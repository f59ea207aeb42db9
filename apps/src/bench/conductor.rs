//! The chare that makes and addresses many at once, and takes the time on its own clock.

use super::player::{Count, Exist, Existing, Player, report};
use chares::prelude::*;
use chares::{On, Stopwatch, Sum};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::Instant;

/// Makes and addresses many players.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Conductor {
    crowd: Option<(Array<Player>, How)>,
    rounds: u64,
    awaited: u32,
    start: Option<Stopwatch>,
    done: Option<Callback<f64>>,
}

/// How all players of an array are told to contribute.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum How {
    /// By one broadcast.
    Broadcast,
    /// By a message to each.
    Sends,
    /// By a scatter.
    Scatter,
}

/// Tell and reduce over the array, so many times one after the other; who wants to know how many nanoseconds that
/// took.
#[derive(Serialize, Deserialize)]
pub(super) struct Rounds(pub(super) Array<Player>, pub(super) How, pub(super) u64, pub(super) Callback<f64>);

/// What is made.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Kind {
    /// The elements of one array, over all PEs.
    Elements,
    /// Single chares on this PE.
    Chares,
    /// Chares of which nothing is wanted any more, also here.
    Idlers,
}

/// Make so many; who wants to know how many nanoseconds that took.
#[derive(Serialize, Deserialize)]
pub(super) struct Make(pub(super) Kind, pub(super) u64, pub(super) Callback<f64>);

/// Find out where elements live, so many times, one element after the other; who wants to know how many nanoseconds
/// that took.
#[derive(Serialize, Deserialize)]
pub(super) struct Find(pub(super) Array<Player>, pub(super) u64, pub(super) Callback<f64>);

/// How much memory does your node take?
#[derive(Serialize, Deserialize)]
pub(super) struct Weigh(pub(super) Callback<u64>);

chares::entries!(Conductor as "bench::Conductor": Rounds, Sum<u64> as "Total", Make, Existing, Find, Weigh);

impl Chare for Conductor {
    type Index = ();
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self::default()
    }
}

impl Conductor {
    fn tell(&self, ctx: &mut Ctx<'_, Self>) {
        let (everybody, how) = self.crowd.expect("rounds go over an array");
        let total = Callback::element(&ctx.this());
        match how {
            How::Broadcast => everybody.broadcast(ctx, Count(total)),
            How::Scatter => everybody.scatter(ctx, |_| Count(total)),
            How::Sends => (0..everybody.shape()[0]).for_each(|at| everybody.at(at).send(ctx, Count(total))),
        }
    }
}

impl Entry<Rounds> for Conductor {
    fn receive(&mut self, Rounds(everybody, how, rounds, done): Rounds, ctx: &mut Ctx<'_, Self>) {
        (self.start, self.done) = (Some(Stopwatch::start()), Some(done));
        (self.crowd, self.rounds) = (Some((everybody, how)), rounds);
        self.tell(ctx);
    }
}

impl Entry<Sum<u64>> for Conductor {
    fn receive(&mut self, total: Sum<u64>, ctx: &mut Ctx<'_, Self>) {
        let (everybody, _) = self.crowd.expect("rounds go over an array");
        assert_eq!(total.0, u64::from(everybody.shape()[0]), "a reduction counts every element once");
        self.rounds -= 1;
        if self.rounds == 0 {
            return report(&mut self.start, &mut self.done, ctx);
        }
        self.tell(ctx);
    }
}

impl Entry<Make> for Conductor {
    fn receive(&mut self, Make(kind, count, done): Make, ctx: &mut Ctx<'_, Self>) {
        (self.start, self.done) = (Some(Stopwatch::start()), Some(done));
        let caller = Callback::element(&ctx.this());
        let count = u32::try_from(count).expect("counts of chares are capped");
        self.awaited = 1;
        match kind {
            Kind::Elements => {
                // The first lives on the first PE and the last on the last.
                let made: Array<Player> = ctx.array_placed(count, (), Placement::Block);
                made.at(0).send(ctx, Exist(caller));
                made.at(count - 1).send(ctx, Exist(caller));
                self.awaited = 2;
            }
            Kind::Chares => {
                let last = (0..count).map(|_| ctx.chare::<Player>((), On::Here)).last();
                last.expect("some are made").send(ctx, Exist(caller));
            }
            Kind::Idlers => {
                let last = (0..count).map(|_| ctx.chare::<Idler>(7, On::Here)).last();
                last.expect("some are made").send(ctx, Exist(caller));
            }
        }
    }
}

impl Entry<Existing> for Conductor {
    fn receive(&mut self, _: Existing, ctx: &mut Ctx<'_, Self>) {
        self.awaited -= 1;
        if self.awaited == 0 {
            report(&mut self.start, &mut self.done, ctx);
        }
    }
}

impl Entry<Find> for Conductor {
    fn receive(&mut self, Find(everybody, count, done): Find, ctx: &mut Ctx<'_, Self>) {
        let len = everybody.shape()[0];
        let (start, mut at, mut sum) = (Instant::now(), 0, 0);
        for _ in 0..count {
            let home = ctx.home_of(&everybody, black_box(at)).expect("the array has this element");
            sum += u64::from(home);
            at = if at + 1 < len { at + 1 } else { 0 };
        }
        black_box(sum);
        done.send(ctx, start.elapsed().as_nanos() as f64);
    }
}

impl Entry<Weigh> for Conductor {
    fn receive(&mut self, Weigh(asker): Weigh, ctx: &mut Ctx<'_, Self>) {
        match taken_bytes() {
            Some(bytes) => asker.send(ctx, bytes),
            None => ctx.fail("the system does not tell how much memory a process has taken"),
        }
    }
}

/// Memory that this process has taken, without pages of files.
fn taken_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Does nothing; its state is 8 bytes.
#[derive(Serialize, Deserialize)]
pub(super) struct Idler(u64);

chares::entries!(Idler as "bench::Idler": Exist);

impl Chare for Idler {
    type Index = ();
    type Init = u64;
    fn new(state: u64, _: &mut Ctx<'_, Self>) -> Self {
        Self(state)
    }
}

impl Entry<Exist> for Idler {
    fn receive(&mut self, Exist(caller): Exist, ctx: &mut Ctx<'_, Self>) {
        caller.send(ctx, Existing);
    }
}
