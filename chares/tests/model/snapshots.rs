//! Checkpoints for which nobody stands still.

use crate::checkpoints::{InMemory, go_on_elsewhere};
use chares::prelude::*;
use chares::{Accumulator, Array, InProcess, Program, WriteOnce};
use runtime::ids::PeId;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A PE computes.
static IS_COMPUTING: AtomicBool = AtomicBool::new(false);
/// A checkpoint has begun since.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
/// How often the token has gone on since.
static HOPS: AtomicU64 = AtomicU64::new(0);

/// How long nobody may have to wait.
const LIMIT: Duration = Duration::from_secs(60);
/// How often the token goes on while an entry method runs, and after it.
const AT_LEAST: u64 = 200;
/// How many gifts are sent at the end of that entry method.
const GIFTS: u64 = 50;

/// Counts what it gets, as does a sum that all add to.
#[derive(Serialize, Deserialize)]
struct Member {
    got: u64,
    sum: Accumulator<Sum<u64>>,
}

/// Run until the token has gone on for long enough; then give something to everybody, also by a variable that is set then.
#[derive(Clone, Serialize, Deserialize)]
struct Spin(Array<Member>, Callback<bool>, Callback<u64>);
/// Go on to the other one, so many times more as soon as a checkpoint has begun; how often it has.
#[derive(Clone, Serialize, Deserialize)]
struct Token(Array<Member>, u64, u64, Callback<u64>);
/// Say one thing more.
#[derive(Clone, Serialize, Deserialize)]
struct Again(Callback<u64>);
#[derive(Clone, Serialize, Deserialize)]
struct Gift(u64);
#[derive(Clone, Serialize, Deserialize)]
struct Tell(Callback<Sum<u64>>);

chares::entries!(Member: Spin, Token, Again, Gift, Tell, WriteOnce<u64> as "InPlace"; reduces Sum<u64>);

impl Member {
    fn gets(&mut self, count: u64, ctx: &mut Ctx<'_, Self>) {
        self.got += count;
        self.sum.add(ctx, Sum(count));
    }
}

impl Chare for Member {
    type Index = u32;
    type Init = Accumulator<Sum<u64>>;
    fn new(sum: Self::Init, _: &mut Ctx<'_, Self>) -> Self {
        Self { got: 0, sum }
    }
}
impl Entry<Spin> for Member {
    fn receive(&mut self, Spin(all, done, early): Spin, ctx: &mut Ctx<'_, Self>) {
        IS_COMPUTING.store(true, Ordering::SeqCst);
        let since = Instant::now();
        while HOPS.load(Ordering::SeqCst) < AT_LEAST && since.elapsed() < LIMIT {
            std::thread::yield_now();
        }
        for _ in 0..GIFTS {
            all.broadcast(ctx, Gift(1));
        }
        let ready = Callback::element(&all.at(2));
        ctx.write_once(7u64, ready);
        early.send(ctx, 11);
        ctx.this().send(ctx, Again(early));
        done.send(ctx, since.elapsed() < LIMIT);
    }
}
impl Entry<Token> for Member {
    fn receive(&mut self, Token(all, left, hops, done): Token, ctx: &mut Ctx<'_, Self>) {
        self.gets(1, ctx);
        let has_begun = HAS_BEGUN.load(Ordering::SeqCst);
        if has_begun {
            HOPS.fetch_add(1, Ordering::SeqCst);
        }
        if left == 0 {
            return done.send(ctx, hops + 1);
        }
        let other = if ctx.index() == 1 { 2 } else { 1 };
        all.at(other).send(ctx, Token(all, left - u64::from(has_begun), hops + 1, done));
    }
}
impl Entry<Again> for Member {
    fn receive(&mut self, Again(to): Again, ctx: &mut Ctx<'_, Self>) {
        to.send(ctx, 12);
    }
}
impl Entry<Gift> for Member {
    fn receive(&mut self, Gift(count): Gift, ctx: &mut Ctx<'_, Self>) {
        self.gets(count, ctx);
    }
}
impl Entry<WriteOnce<u64>> for Member {
    fn receive(&mut self, value: WriteOnce<u64>, ctx: &mut Ctx<'_, Self>) {
        let value = value.read(ctx).map_or(0, |value| *value);
        self.gets(value, ctx);
    }
}
impl Entry<Tell> for Member {
    fn receive(&mut self, Tell(to): Tell, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(Sum(self.got), to);
    }
}

/// One PE computes until the others have gone on for long enough: what is counted then is what was sent.
fn drive(main: &mut Driver) -> Result<(), RunError> {
    let sum = main.accumulator::<Sum<u64>>();
    let all = main.array::<Member>(3, sum);
    let (spun, has_spun) = main.pending();
    let (early, came_early) = main.pending();
    let (done, hops) = main.pending();
    main.quiescence()?;
    all.at(0).send(main, Spin(all, spun, early));
    all.at(1).send(main, Token(all, 2 * AT_LEAST, 0, done));
    let hops = hops.wait(main)?;
    assert!(has_spun.wait(main)?, "the others did not go on while one PE was computing");
    // What was on its way is not overtaken by what is said later.
    assert_eq!((came_early.wait(main)?, came_early.wait(main)?), (11, 12));
    main.quiescence()?;
    let (to, got) = main.pending();
    all.broadcast(main, Tell(to));
    let got = got.wait(main)?.0;
    assert_eq!(got, hops + 3 * GIFTS + 7);
    assert_eq!(main.collect(&sum)?.map(|sum| sum.0), Some(got));
    Ok(())
}

#[test]
fn nobody_waits_for_a_pe_that_computes_for_long_and_nothing_is_lost() {
    let program = || Program::new("spinning", "1").chare::<Member>();
    for pes in [&[2, 1][..], &[1, 1, 1]] {
        IS_COMPUTING.store(false, Ordering::SeqCst);
        HAS_BEGUN.store(false, Ordering::SeqCst);
        HOPS.store(0, Ordering::SeqCst);
        let mix = InProcess::new(pes);
        let (keeper, taken) = InMemory::by(|_| {
            let is_computing = IS_COMPUTING.load(Ordering::SeqCst);
            is_computing && !HAS_BEGUN.swap(true, Ordering::SeqCst)
        });
        let keeper = Mutex::new(Some(keeper.by_snapshot()));
        let ran = program().run_in_process(&mix, |main| {
            let keeper = keeper.lock().unwrap().take();
            keeper.into_iter().for_each(|keeper| main.keep_checkpoints(Box::new(keeper)));
            drive(main)
        });
        ran.unwrap_or_else(|error| panic!("{mix:?}: {error}"));
        let taken = std::mem::take(&mut *taken.lock().unwrap());
        assert_eq!(taken.len(), 1);
        let late = taken[0].late();
        // What the PE sent that was cut last came late to all others, the driver among them.
        assert!(
            late.contains(&PeId::DRIVER) && late.contains(&PeId(1)) && late.contains(&PeId(2)),
            "{late:?}"
        );
        for others in [&[3][..], &[1, 2], &[2, 2]] {
            let gone_on = go_on_elsewhere(program(), &mix, (taken[0].go_on(), None), others, drive);
            gone_on.unwrap_or_else(|error| panic!("{mix:?}, and then {others:?}: {error}"));
        }
    }
}
