//! The chare that throws messages to its peer and back, and takes the time on its own clock.

use chares::prelude::*;
use chares::{Message, Stopwatch, Sum};
use serde::{Deserialize, Serialize};

/// Throws things to its peer and back.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Player {
    peer: Option<Element<Self>>,
    start: Option<Stopwatch>,
    done: Option<Callback<f64>>,
}

/// Plays with that one from now on.
#[derive(Serialize, Deserialize)]
pub(super) struct Meet(pub(super) Element<Player>);

/// What to throw, how often, and who wants to know how many nanoseconds that took. What is thrown back comes home
/// after an even number.
#[derive(Serialize, Deserialize)]
pub(super) struct Play(pub(super) Throw, pub(super) u64, pub(super) Callback<f64>);

/// What is thrown.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Throw {
    /// So many bytes, to the peer and back.
    Back(usize),
    /// So many bytes of bulk data, all in one direction; the peer answers the last one.
    Flood(usize),
    /// 64 bytes, the same.
    Stream,
}

// Counts of throws that are left are in floating point, because only that has its full size when it is packed.

/// 8 bytes: how many throws are left.
#[derive(Serialize, Deserialize)]
struct Mote(f64);

/// 64 bytes that begin with the same.
#[derive(Serialize, Deserialize)]
struct Ball([f64; 8]);

/// Any other size.
#[derive(Serialize, Deserialize)]
struct Parcel(u64, Bulk<f64>);

/// One of a flood, with how many follow.
#[derive(Serialize, Deserialize)]
struct Load(u64, Bulk<f64>);

/// One of a stream, with how many follow.
#[derive(Serialize, Deserialize)]
struct Drip([f64; 8]);

/// All of it has arrived.
#[derive(Serialize, Deserialize)]
struct Caught;

/// Add one to a sum over the array.
#[derive(Serialize, Deserialize)]
pub(super) struct Count(pub(super) Callback<Sum<u64>>);

/// Say that you exist.
#[derive(Serialize, Deserialize)]
pub(super) struct Exist(pub(super) Callback<Existing>);

/// It exists.
#[derive(Serialize, Deserialize)]
pub(super) struct Existing;

chares::entries!(
    Player as "bench::Player": Meet, Play, Mote, Ball, Parcel, Load, Drip, Caught, Count, Exist;
    reduces Sum<u64> as "Count"
);

impl Chare for Player {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self::default()
    }
}

impl Player {
    fn throw<M: Message>(&self, ctx: &mut Ctx<'_, Self>, message: M)
    where
        Self: Entry<M>,
    {
        self.peer.expect("players meet first").send(ctx, message);
    }

    fn stop(&mut self, ctx: &mut Ctx<'_, Self>) {
        report(&mut self.start, &mut self.done, ctx);
    }
}

/// Tells how long it has been since the start.
pub(super) fn report(start: &mut Option<Stopwatch>, done: &mut Option<Callback<f64>>, cx: &mut impl Cx) {
    let elapsed = start.take().expect("a clock runs").elapsed();
    done.take().expect("somebody waits").send(cx, elapsed.as_nanos() as f64);
}

/// Numbers that are no zeros, which memory that was never written to would do for.
fn bulk(bytes: usize) -> Bulk<f64> {
    let mut numbers = Bulk::zeros(bytes / size_of::<f64>());
    numbers.as_mut_slice().fill(1.5);
    numbers
}

impl Entry<Meet> for Player {
    fn receive(&mut self, Meet(peer): Meet, _: &mut Ctx<'_, Self>) {
        self.peer = Some(peer);
    }
}

impl Entry<Play> for Player {
    fn receive(&mut self, Play(throw, count, done): Play, ctx: &mut Ctx<'_, Self>) {
        let data = match throw {
            Throw::Back(bytes) | Throw::Flood(bytes) if bytes > 64 => bulk(bytes),
            _ => Bulk::default(),
        };
        let left = (count - 1) as f64;
        (self.start, self.done) = (Some(Stopwatch::start()), Some(done));
        match throw {
            Throw::Back(8) => self.throw(ctx, Mote(left)),
            Throw::Back(64) => self.throw(ctx, Ball([left; 8])),
            Throw::Back(_) => self.throw(ctx, Parcel(count - 1, data)),
            Throw::Flood(_) => (0..count).rev().for_each(|left| self.throw(ctx, Load(left, data.clone()))),
            Throw::Stream => (0..count).rev().for_each(|left| self.throw(ctx, Drip([left as f64; 8]))),
        }
    }
}

impl Entry<Mote> for Player {
    fn receive(&mut self, Mote(left): Mote, ctx: &mut Ctx<'_, Self>) {
        if left == 0.0 {
            return self.stop(ctx);
        }
        self.throw(ctx, Mote(left - 1.0));
    }
}

impl Entry<Ball> for Player {
    fn receive(&mut self, mut ball: Ball, ctx: &mut Ctx<'_, Self>) {
        if ball.0[0] == 0.0 {
            return self.stop(ctx);
        }
        ball.0[0] -= 1.0;
        self.throw(ctx, ball);
    }
}

impl Entry<Parcel> for Player {
    fn receive(&mut self, Parcel(left, data): Parcel, ctx: &mut Ctx<'_, Self>) {
        match left {
            0 => self.stop(ctx),
            left => self.throw(ctx, Parcel(left - 1, data)),
        }
    }
}

impl Entry<Load> for Player {
    fn receive(&mut self, Load(left, _): Load, ctx: &mut Ctx<'_, Self>) {
        if left == 0 {
            self.throw(ctx, Caught);
        }
    }
}

impl Entry<Drip> for Player {
    fn receive(&mut self, drip: Drip, ctx: &mut Ctx<'_, Self>) {
        if drip.0[0] == 0.0 {
            self.throw(ctx, Caught);
        }
    }
}

impl Entry<Caught> for Player {
    fn receive(&mut self, _: Caught, ctx: &mut Ctx<'_, Self>) {
        self.stop(ctx);
    }
}

impl Entry<Count> for Player {
    fn receive(&mut self, Count(total): Count, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(Sum(1), total);
    }
}

impl Entry<Exist> for Player {
    fn receive(&mut self, Exist(caller): Exist, ctx: &mut Ctx<'_, Self>) {
        caller.send(ctx, Existing);
    }
}
