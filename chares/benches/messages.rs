//! What chares pay for their messages, through the public interface and on real nodes of this machine:
//! `cargo bench -p metachare-chares --bench messages`.
//!
//! The benchmark is a program like any other. It runs itself on one PE, on two PEs of one node, and on two
//! nodes, and prints for each operation the median and the range of several stretches, each long enough that
//! the clock does not matter. `… --bench messages -- run --nodes FILE` does the same between the first and
//! the last PE of any other nodes. Without `--bench` (as in `cargo test --benches`) it only goes through.
//!
//! What limits the figures:
//!
//! - On one PE a message is one allocation for its value, one envelope written into a queue and read from it, and one
//!   look-up each of the collection and of the element. What is written piece by piece and then copied as a whole makes
//!   the processor wait; that is what the way from `Element::send` to `Entry::receive` avoids.
//! - Between PEs of one node a hop is the way of a few cache lines from core to core and a lock around the
//!   inbox; a PE that had gone to sleep would add a wake-up of tens of microseconds, so idle PEs spin first.
//!   A stream is cheaper than hops: the receiver takes all that has arrived at once.
//! - Between nodes that have a core for every thread, the network thread stays awake for a moment after traffic, as
//!   idle PEs do; elsewhere each thread that has to be woken adds 20 microseconds.
//! - Bulk data is handed over inside a process, so a hop costs the same for 64 KiB as for 16 MiB. Between nodes
//!   it is bandwidth: encryption, and two copies through the kernel.
//! - A broadcast is packed once and unpacked by every element, whose contribution is one more allocation.

use chares::{On, Sum, prelude::*};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Elements of the array that broadcasts and reductions go over.
const ELEMENTS: u32 = 10_000;
/// As often as a stretch needs.
const MANY: u64 = 1 << 40;
/// A stretch is long enough when it takes so many nanoseconds.
const STRETCH_NS: f64 = 30e6;

#[derive(Args, Clone, Debug, Serialize, Deserialize)]
struct Arguments {
    /// Stretches of each operation, after the one that finds its length
    #[arg(long, default_value_t = 9)]
    repeats: usize,
    /// Only operations with this in their name
    #[arg(long, default_value = "")]
    operation: String,
    /// Only go through every operation once
    #[arg(long)]
    brief: bool,
}

/// Throws things to its peer and back, and takes the time.
#[derive(Default, Serialize, Deserialize)]
struct Player {
    peer: Option<Element<Self>>,
    #[serde(skip)]
    start: Option<Instant>,
    done: Option<Callback<f64>>,
}

/// Plays with that one from now on.
#[derive(Serialize, Deserialize)]
struct Meet(Element<Player>);

/// What to throw, how often (an even number), and who wants to know how many nanoseconds that took.
#[derive(Serialize, Deserialize)]
struct Play(Throw, u64, Callback<f64>);

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Throw {
    /// 64 bytes to the peer and back.
    Ball,
    /// So many bytes of bulk data to the peer and back.
    Bulk(usize),
    /// 64 bytes, all in one direction; the peer answers the last one.
    Stream,
}

/// 64 bytes, the first eight of which say how many throws are left.
#[derive(Serialize, Deserialize)]
struct Ball([u64; 8]);

/// One of a stream, with how many follow.
#[derive(Serialize, Deserialize)]
struct Drip([u64; 8]);

#[derive(Serialize, Deserialize)]
struct Parcel(u64, Bulk<f64>);

/// The whole stream has arrived.
#[derive(Serialize, Deserialize)]
struct Caught;

/// Add one to a sum over the array.
#[derive(Serialize, Deserialize)]
struct Count(Callback<Sum<u64>>);

/// Say that you exist.
#[derive(Serialize, Deserialize)]
struct Exist(Callback<Existing>);

#[derive(Serialize, Deserialize)]
struct Existing;

chares::entries!(Player: Meet, Play, Ball, Drip, Parcel, Caught, Count, Exist; reduces Sum<u64> as "Count");

impl Chare for Player {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self::default()
    }
}

impl Player {
    fn throw<M: chares::Message>(&self, ctx: &mut Ctx<'_, Self>, message: M)
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
fn report(start: &mut Option<Instant>, done: &mut Option<Callback<f64>>, cx: &mut impl Cx) {
    let elapsed = start.take().expect("a clock runs").elapsed();
    done.take().expect("somebody waits").send(cx, elapsed.as_nanos() as f64);
}

impl Entry<Meet> for Player {
    fn receive(&mut self, Meet(peer): Meet, _: &mut Ctx<'_, Self>) {
        self.peer = Some(peer);
    }
}

impl Entry<Play> for Player {
    fn receive(&mut self, Play(throw, count, done): Play, ctx: &mut Ctx<'_, Self>) {
        (self.start, self.done) = (Some(Instant::now()), Some(done));
        match throw {
            Throw::Ball => self.throw(ctx, Ball([count - 1; 8])),
            Throw::Bulk(bytes) => self.throw(ctx, Parcel(count - 1, Bulk::zeros(bytes / 8))),
            Throw::Stream => (0..count).rev().for_each(|left| self.throw(ctx, Drip([left; 8]))),
        }
    }
}

impl Entry<Ball> for Player {
    fn receive(&mut self, mut ball: Ball, ctx: &mut Ctx<'_, Self>) {
        if ball.0[0] == 0 {
            return self.stop(ctx);
        }
        ball.0[0] -= 1;
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

impl Entry<Drip> for Player {
    fn receive(&mut self, drip: Drip, ctx: &mut Ctx<'_, Self>) {
        if drip.0[0] == 0 {
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

/// Makes and addresses many players at once, and takes the time.
#[derive(Default, Serialize, Deserialize)]
struct Conductor {
    everybody: Option<Array<Player>>,
    rounds: u64,
    awaited: u32,
    #[serde(skip)]
    start: Option<Instant>,
    done: Option<Callback<f64>>,
}

/// Broadcast and reduce over the array, so many times one after the other.
#[derive(Serialize, Deserialize)]
struct Rounds(Array<Player>, u64, Callback<f64>);

/// Make so many players, in an array or one by one.
#[derive(Serialize, Deserialize)]
struct Make(bool, u64, Callback<f64>);

chares::entries!(Conductor: Rounds, Sum<u64> as "Total", Make, Existing);

impl Chare for Conductor {
    type Index = ();
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self::default()
    }
}

impl Entry<Rounds> for Conductor {
    fn receive(&mut self, Rounds(everybody, rounds, done): Rounds, ctx: &mut Ctx<'_, Self>) {
        (self.start, self.done) = (Some(Instant::now()), Some(done));
        (self.everybody, self.rounds) = (Some(everybody), rounds);
        everybody.broadcast(ctx, Count(Callback::element(&ctx.this())));
    }
}

impl Entry<Sum<u64>> for Conductor {
    fn receive(&mut self, total: Sum<u64>, ctx: &mut Ctx<'_, Self>) {
        assert_eq!(total.0, u64::from(ELEMENTS), "a reduction counts every element once");
        self.rounds -= 1;
        if self.rounds == 0 {
            return report(&mut self.start, &mut self.done, ctx);
        }
        let everybody = self.everybody.expect("rounds go over an array");
        everybody.broadcast(ctx, Count(Callback::element(&ctx.this())));
    }
}

impl Entry<Make> for Conductor {
    fn receive(&mut self, Make(as_array, count, done): Make, ctx: &mut Ctx<'_, Self>) {
        (self.start, self.done) = (Some(Instant::now()), Some(done));
        let caller = Callback::element(&ctx.this());
        let count = u32::try_from(count).expect("counts of chares are capped");
        let last = if as_array {
            // The first lives on the first PE and the last on the last.
            let made: Array<Player> = ctx.array_placed(count, (), Placement::Block);
            made.at(0).send(ctx, Exist(caller));
            made.at(count - 1)
        } else {
            for _ in 1..count {
                ctx.chare::<Player>((), On::Here);
            }
            ctx.chare((), On::Here)
        };
        last.send(ctx, Exist(caller));
        self.awaited = if as_array { 2 } else { 1 };
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

/// Measures operations and prints a line for each.
struct Meter<'a> {
    main: &'a mut Driver,
    arguments: Arguments,
}

/// Something to measure.
struct Operation {
    name: &'static str,
    /// Operations that one of `count` stands for.
    each: u64,
    /// Largest count that memory allows.
    cap: u64,
    /// How many tell their time; it is the mean that counts.
    answers: u32,
}

impl Operation {
    fn new(name: &'static str) -> Self {
        Self { name, each: 1, cap: MANY, answers: 1 }
    }
}

impl Meter<'_> {
    /// Prints nanoseconds per operation of `run`, which is given how often to do it (an even number).
    fn line(
        &mut self,
        operation: Operation,
        run: impl Fn(&mut Driver, u64, Callback<f64>),
    ) -> Result<(), RunError> {
        let Operation { name, each, cap, answers } = operation;
        if !name.contains(&self.arguments.operation) {
            return Ok(());
        }
        let mut stretch = |count: u64| -> Result<f64, RunError> {
            let (done, ns) = self.main.pending();
            run(self.main, count, done);
            let all: Result<Vec<f64>, RunError> = (0..answers).map(|_| ns.wait(self.main)).collect();
            Ok(all?.iter().sum::<f64>() / f64::from(answers))
        };
        let (mut count, mut repeats) = (2, 1);
        if !self.arguments.brief {
            repeats = self.arguments.repeats.max(1);
            while stretch(count)? < STRETCH_NS && count < cap {
                count *= 2;
            }
        }
        let each = (count * each) as f64;
        let mut ns =
            (0..repeats).map(|_| Ok(stretch(count)? / each)).collect::<Result<Vec<_>, RunError>>()?;
        ns.sort_by(f64::total_cmp);
        let (least, median, most) = (ns[0], ns[repeats / 2], ns[repeats - 1]);
        println!("  {name:<46} {median:>12.1} ns   {least:>12.1} .. {most:<12.1}");
        Ok(())
    }
}

fn drive(main: &mut Driver, arguments: Arguments) -> Result<(), RunError> {
    let pes = main.pe_count();
    let single = (main.chare::<Player>((), On::Pe(0)), main.chare::<Player>((), On::Pe(pes - 1)));
    let array: Array<Player> = main.array_placed(2, (), Placement::on_pes([0, pes - 1]));
    let pair = (array.at(0), array.at(1));
    let neighbours: Array<Player> = main.array(2 * pes, ());
    let on_every_pe = (0..pes).map(|pe| (neighbours.at(2 * pe), neighbours.at(2 * pe + 1)));
    for (one, other) in on_every_pe.chain([single, pair]) {
        one.send(main, Meet(other));
        other.send(main, Meet(one));
    }
    let everybody: Array<Player> = main.array(ELEMENTS, ());
    let conductor: Element<Conductor> = main.chare((), On::Pe(0));
    main.init_over()?;
    let mut meter = Meter { main, arguments };
    let play = |(server, _): (Element<Player>, _), throw| {
        move |main: &mut Driver, count, done| server.send(main, Play(throw, count, done))
    };
    let named = Operation::new;
    meter.line(named("64 B to a single chare, a hop"), play(single, Throw::Ball))?;
    meter.line(named("64 B to an array element, a hop"), play(pair, Throw::Ball))?;
    meter.line(named("64 B to an array element, there and back"), |main, count, done| {
        play(pair, Throw::Ball)(main, 2 * count, done);
    })?;
    let stream = Operation { cap: 1 << 17, ..named("64 B to an array element, one of a stream") };
    meter.line(stream, play(pair, Throw::Stream))?;
    let at_once = Operation { answers: pes, ..named("64 B to a neighbour on all PEs at once, a hop") };
    meter.line(at_once, |main, count, done| {
        for pe in 0..pes {
            neighbours.at(2 * pe).send(main, Play(Throw::Ball, count, done));
        }
    })?;
    meter.line(named("64 KiB of bulk data, a hop"), play(pair, Throw::Bulk(64 << 10)))?;
    meter.line(named("16 MiB of bulk data, a hop"), play(pair, Throw::Bulk(16 << 20)))?;
    let rounds = Operation { each: u64::from(ELEMENTS), ..named("broadcast and reduction, an element") };
    meter.line(rounds, |main, count, done| conductor.send(main, Rounds(everybody, count, done)))?;
    let created = |name| Operation { cap: 1 << 15, ..named(name) };
    for (name, as_array) in
        [("creation of an array, an element", true), ("creation of a single chare", false)]
    {
        meter.line(created(name), |main, count, done| conductor.send(main, Make(as_array, count, done)))?;
    }
    main.timed_over()
}

fn program() -> Program {
    let app = App::new("messages", "What messages cost between the first and the last PE", drive);
    Program::new("messages", env!("CARGO_PKG_VERSION")).chare::<Player>().chare::<Conductor>().app(app)
}

/// Runs this program on nodes of this machine with that many PEs each.
fn run_on(pes: &[u32], is_measuring: bool) -> std::io::Result<bool> {
    let mut nodes = tempfile::NamedTempFile::new()?;
    for (at, pes) in pes.iter().enumerate() {
        writeln!(nodes, "[[node]]\nname = \"n{at}\"\npes = {pes}")?;
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("run").arg("--nodes").arg(nodes.path()).arg("--quiet");
    if !is_measuring {
        command.arg("--brief");
    }
    Ok(command.status()?.success())
}

fn main() -> ExitCode {
    let is_measuring = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--bench") => true,
        // A node of this program, or its command line.
        Some(_) => return program().main(),
    };
    for (title, pes) in [("one PE", &[1][..]), ("two PEs of one node", &[2]), ("two nodes", &[1, 1])] {
        println!("{title:<58}  median   range");
        match run_on(pes, is_measuring) {
            Ok(true) => {}
            Ok(false) => return ExitCode::FAILURE,
            Err(error) => {
                eprintln!("the benchmark cannot run itself: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
