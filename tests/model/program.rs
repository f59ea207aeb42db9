//! A program that tries what the programming model promises, for tests that run it on several processes.
//! What it prints does not depend on the nodes. The examples of the crate `chares` are applications of it too.

use chares::{
    Accumulator, Array, Bulk, Callback, Chare, Ctx, Cx, Driver, Element, Entry, Exchange, Gather, Inbox, Max,
    Min, Monotonic, NodeGroup, On, Part, Placement, Program, Readonly, RunError, Section, Sum, WriteOnce,
};
use clap::Args;
use command::{App, WithApps};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use std::time::Instant;

#[derive(Args, Clone, Debug, Serialize, Deserialize)]
struct Arguments {
    /// What to try: `all`, or a way to fail
    #[arg(long)]
    case: String,
}

#[allow(
    dead_code,
    elided_lifetimes_in_paths,
    unreachable_pub,
    reason = "as its user has written it, with a `main` of its own"
)]
#[path = "../../chares/examples/src/bin/heat.rs"]
mod heat;
#[allow(
    dead_code,
    elided_lifetimes_in_paths,
    unreachable_pub,
    reason = "as its user has written it, with a `main` of its own"
)]
#[path = "../../chares/examples/src/bin/histogram.rs"]
mod histogram;
mod long;
mod planted;
#[allow(dead_code, unreachable_pub, reason = "as its user has written it, with a `main` of its own")]
#[path = "../../chares/examples/src/bin/primes.rs"]
mod primes;
#[allow(
    dead_code,
    elided_lifetimes_in_paths,
    unreachable_pub,
    reason = "as its user has written it, with a `main` of its own"
)]
#[path = "../../chares/examples/src/bin/queens.rs"]
mod queens;

/// What the examples take.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
struct Nothing {}

/// How long nomads walk.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
struct Walk {
    /// How often each of the eight moves, 1 to 1000000
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=i64::from(nomads::LAST)))]
    steps: u32,
}

/// An element that does a little of everything.
#[derive(Serialize, Deserialize)]
struct Cell {
    heard: Vec<u32>,
    steps: Inbox<u32, u32>,
    step: u32,
    exchange: Exchange<u32>,
}

type Floats = Callback<Sum<f64>>;
/// Contribute a number whose sum shows in its last bits in which order it was made.
#[derive(Clone, Serialize, Deserialize)]
struct Give(Option<Section<Cell>>, Floats);
/// Hand this on over elements, then let the section meet.
#[derive(Clone, Serialize, Deserialize)]
struct Carry(Vec<Element<Cell>>, Section<Cell>, Floats);
#[derive(Clone, Serialize, Deserialize)]
struct Note(u32, Bulk<u8>);
#[derive(Clone, Serialize, Deserialize)]
struct Step(u32);
/// Send notes of these priorities to an element.
#[derive(Clone, Serialize, Deserialize)]
struct Burst(Element<Cell>, Vec<i32>);
#[derive(Clone, Serialize, Deserialize)]
struct Tell(Callback<Gather<Vec<u32>>>);
/// Send two on, and at the end count.
#[derive(Clone, Serialize, Deserialize)]
struct Fork(u32, Accumulator<Sum<u64>>, Monotonic<Min<u32>>);
/// How much do you see of what is shared?
#[derive(Clone, Serialize, Deserialize)]
struct Look(Readonly<Vec<f64>>, WriteOnce<String>, Monotonic<Min<u32>>, Callback<Sum<f64>>);
/// Give your number to all, or exchange with all: of the array, or of the section.
#[derive(Clone, Serialize, Deserialize)]
struct Collect(bool, Option<Section<Cell>>);
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Fault {
    Panic,
    Fail,
    /// Kill the node.
    Kill,
}
#[derive(Clone, Serialize, Deserialize)]
struct Break(Fault, [u32; 2]);

chares::entries!(Cell: Give, Carry, Note, Step, Burst, Tell, Fork, Look, Break, Collect,
    Gather<f64> as "Collected", Part<u32> as "Part";
    reduces Sum<f64> as "Sum", Gather<Vec<u32>> as "Heard", Gather<f64> as "Collected");

impl Chare for Cell {
    type Index = [u32; 2];
    type Init = bool;
    fn new(is_bad: bool, ctx: &mut Ctx<'_, Self>) -> Self {
        assert!(!is_bad || ctx.index() != [2, 3], "it was not to be made");
        Self { heard: Vec::new(), steps: Inbox::default(), step: 0, exchange: Exchange::default() }
    }
}

fn number([i, j]: [u32; 2]) -> f64 {
    1.0 / f64::from(1 + 7 * i + 3 * j) + f64::from(i) * 1e9
}

impl Entry<Give> for Cell {
    fn receive(&mut self, Give(section, to): Give, ctx: &mut Ctx<'_, Self>) {
        let value = Sum(number(ctx.index()));
        match section {
            Some(section) => ctx.contribute_in(&section, value, to),
            None => ctx.contribute_ordered(value, to),
        }
    }
}
impl Entry<Carry> for Cell {
    fn receive(&mut self, Carry(mut hops, section, to): Carry, ctx: &mut Ctx<'_, Self>) {
        match hops.pop() {
            Some(next) => next.send(ctx, Carry(hops, section, to)),
            None => section.send(ctx, Give(Some(section.clone()), to)),
        }
    }
}
impl Entry<Note> for Cell {
    fn receive(&mut self, Note(n, _): Note, _: &mut Ctx<'_, Self>) {
        self.heard.push(n);
    }
}
impl Entry<Step> for Cell {
    fn receive(&mut self, Step(step): Step, _: &mut Ctx<'_, Self>) {
        self.steps.hold(step, step);
        while let Some(of_step) = self.steps.take(&self.step, 2) {
            self.heard.extend(of_step);
            self.step += 1;
        }
    }
}
impl Entry<Burst> for Cell {
    fn receive(&mut self, Burst(to, priorities): Burst, ctx: &mut Ctx<'_, Self>) {
        for (n, priority) in (0..).zip(priorities) {
            to.send_with(ctx, priority, Note(n, Bulk::default()));
        }
    }
}
impl Entry<Tell> for Cell {
    fn receive(&mut self, Tell(to): Tell, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute_ordered(Gather(vec![std::mem::take(&mut self.heard)]), to);
    }
}
impl Entry<Fork> for Cell {
    fn receive(&mut self, Fork(depth, count, best): Fork, ctx: &mut Ctx<'_, Self>) {
        let [i, j] = ctx.index();
        best.propose(ctx, Min(1000 - 100 * i - j));
        if depth == 0 {
            return count.add(ctx, Sum(1));
        }
        for n in 1..3 {
            let next = [(i + n) % SHAPE[0], (j + depth * n) % SHAPE[1]];
            ctx.array().at(next).send(ctx, Fork(depth - 1, count, best));
        }
    }
}
impl Entry<Look> for Cell {
    fn receive(&mut self, Look(table, text, best, to): Look, ctx: &mut Ctx<'_, Self>) {
        let text = text.read(ctx).map_or(0, |text| text.len());
        let best = best.best(ctx).map_or(0, |best| best.0);
        let number = table.read(ctx)[5];
        ctx.contribute(Sum(number + text as f64 + f64::from(best)), to);
    }
}
impl Entry<Break> for Cell {
    fn receive(&mut self, Break(fault, at): Break, ctx: &mut Ctx<'_, Self>) {
        if at == ctx.index() {
            match fault {
                Fault::Panic => panic!("the cells ran out"),
                Fault::Fail => ctx.fail("the plate is too hot"),
                Fault::Kill => drop(kill(Pid::this(), Signal::SIGKILL)),
            }
        }
    }
}

impl Entry<Collect> for Cell {
    fn receive(&mut self, Collect(gathers, section): Collect, ctx: &mut Ctx<'_, Self>) {
        let [i, j] = ctx.index();
        let part = |to: [u32; 2]| 1000 * (6 * i + j) + 6 * to[0] + to[1];
        match (gathers, &section) {
            (true, None) => ctx.all_gather(number([i, j])),
            (true, Some(section)) => ctx.all_gather_in(section, number([i, j])),
            (false, None) => self.exchange.send(ctx, part),
            (false, Some(section)) => self.exchange.send_in(ctx, section, part),
        }
    }
}
impl Entry<Gather<f64>> for Cell {
    fn receive(&mut self, Gather(all): Gather<f64>, _: &mut Ctx<'_, Self>) {
        // All bits of all numbers in their order.
        let digest = |digest: u64, number: f64| digest.wrapping_mul(31) ^ number.to_bits();
        let digest = all.into_iter().fold(0, digest);
        self.heard.extend([(digest >> 32) as u32, (digest & 0xffff_ffff) as u32]);
    }
}
impl Entry<Part<u32>> for Cell {
    fn receive(&mut self, part: Part<u32>, ctx: &mut Ctx<'_, Self>) {
        self.exchange.hold(part);
        while let Some(parts) = self.exchange.take(ctx) {
            self.heard.extend(parts);
        }
    }
}

/// A single chare that makes two others, down to a depth, and adds up what they tell.
#[derive(Serialize, Deserialize)]
struct Twig {
    depth: u32,
    sum: u64,
    told: u32,
    parent: Callback<Sum<u64>>,
}
chares::entries!(Twig: Sum<u64> as "Told");
impl Chare for Twig {
    type Index = ();
    type Init = (u32, Callback<Sum<u64>>);
    fn new((depth, parent): Self::Init, ctx: &mut Ctx<'_, Self>) -> Self {
        let me = Callback::element(&ctx.this());
        let places = [[On::BySpeed, On::Here], [On::ByLoad, On::AtRandom]][depth as usize % 2];
        for on in places.into_iter().filter(|_| depth > 0) {
            let _: Element<Self> = ctx.chare((depth - 1, me), on);
        }
        if depth == 0 {
            parent.send(ctx, Sum(1));
            ctx.destroy();
        }
        Self { depth, sum: 0, told: 0, parent }
    }
}
impl Entry<Sum<u64>> for Twig {
    fn receive(&mut self, Sum(n): Sum<u64>, ctx: &mut Ctx<'_, Self>) {
        (self.sum, self.told) = (self.sum + n, self.told + 1);
        if self.told == 2 {
            self.parent.send(ctx, Sum(self.sum));
            ctx.destroy();
        }
    }
}

/// One on every node.
#[derive(Serialize, Deserialize)]
struct Warden;
#[derive(Clone, Serialize, Deserialize)]
struct Check(Callback<Max<u32>>);
chares::entries!(Warden: Check; reduces Max<u32> as "Wrong");
impl Chare for Warden {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self
    }
}
impl Entry<Check> for Warden {
    fn receive(&mut self, Check(to): Check, ctx: &mut Ctx<'_, Self>) {
        let is_wrong = ctx.index() != ctx.node_id();
        ctx.contribute(Max(u32::from(is_wrong)), to);
    }
}

const SHAPE: [u32; 2] = [4, 6];

/// All-gather and all-to-all, over an array and over a section of it.
fn collect(main: &mut Driver) -> Result<(), RunError> {
    let cells: Array<Cell> = main.array_placed(SHAPE, false, Placement::Cyclic);
    let some = cells.section(main, [[0, 5], [3, 0], [1, 2], [3, 5]]);
    for gathers in [true, false] {
        cells.scatter(main, |_| Collect(gathers, None));
        main.quiescence()?;
        some.scatter(main, |_| Collect(gathers, Some(some.clone())));
        main.quiescence()?;
        let (to, heard) = main.pending();
        cells.broadcast(main, Tell(to));
        println!("collected: {:?}", heard.wait(main)?.0);
    }
    for filling in [0, 60, 500, 4000, 5000, 50_000] {
        cells.scatter(main, |[i, j]| Note(filling + 10 * i + j, Bulk::zeros(filling as usize + 1)));
        main.quiescence()?;
    }
    let (to, heard) = main.pending();
    cells.broadcast(main, Tell(to));
    println!("scattered: {:?}", heard.wait(main)?.0);
    Ok(())
}

fn everything(main: &mut Driver) -> Result<(), RunError> {
    let table = main.readonly((0..50).map(f64::from).collect::<Vec<_>>())?;
    for placement in [Placement::Block, Placement::Cyclic, Placement::BySpeed] {
        let cells: Array<Cell> = main.array_placed(SHAPE, false, placement);
        let (to, sum) = main.pending();
        cells.broadcast(main, Give(None, to));
        println!("ordered sum: {:x}", sum.wait(main)?.0.to_bits());
        let corner = cells.section(main, [[0, 5], [3, 0], [1, 2], [3, 5], [2, 2], [0, 1]]);
        let hops = (0..SHAPE[1]).map(|j| cells.at([j % 4, j])).collect();
        cells.at([2, 2]).send(main, Carry(hops, corner, to));
        println!("section's sum: {:x}", sum.wait(main)?.0.to_bits());
    }
    let cells: Array<Cell> = main.array_deferred(SHAPE, Placement::Cyclic);
    (0..40).for_each(|n| cells.at([3, n % 6]).send(main, Note(n, Bulk::default())));
    (0..24).for_each(|n| main.insert(&cells, [n / 6, n % 6], false));
    (40..80).for_each(|n| cells.at([3, n % 6]).send(main, Note(n, Bulk::default())));
    (0..12).for_each(|n| cells.at([2, n % 6]).send(main, Note(n, Bulk::zeros(50_000))));
    for step in [4, 1, 3, 0, 2, 2, 0, 4, 3, 1] {
        cells.at([1, 1]).send(main, Step(step));
    }
    main.quiescence()?;
    let pair: Array<Cell> = main.array_placed(SHAPE, false, Placement::on_pes([0; 24]));
    pair.at([0, 0]).send(main, Burst(pair.at([0, 1]), vec![3, 0, -7, 3, 0, -7, 9]));
    main.quiescence()?;
    for array in [&cells, &pair] {
        let (to, heard) = main.pending();
        array.broadcast(main, Tell(to));
        println!("heard: {:?}", heard.wait(main)?.0);
    }
    main.init_over()?;
    let (count, best) = (main.accumulator(), main.monotonic());
    cells.broadcast(main, Fork(5, count, best));
    main.quiescence()?;
    println!("forks: {:?}, best: {:?}", main.collect(&count)?, best.best(main));
    main.timed_over()?;
    let (ready, text) = main.pending();
    main.write_once("written once".to_string(), ready);
    let text = text.wait(main)?;
    best.propose(main, Min(1));
    let (to, sum) = main.pending();
    // The best of all comes to each node in its own time: ask until all have it.
    let seen = loop {
        cells.broadcast(main, Look(table, text, best, to));
        let Sum(seen) = sum.wait(main)?;
        if seen <= 24.0 * 18.0 {
            break seen;
        }
    };
    println!("shared: {seen}");
    let (to, sum) = main.pending();
    let _: Element<Twig> = main.chare((7, to), On::BySpeed);
    println!("leaves: {:?}", sum.wait(main)?);
    let wardens: NodeGroup<Warden> = main.node_group(());
    let (to, wrong) = main.pending();
    wardens.broadcast(main, Check(to));
    println!("wardens in the wrong place: {}", wrong.wait(main)?.0);
    collect(main)
}

fn drive(main: &mut Driver, arguments: Arguments) -> Result<(), RunError> {
    let last = main.pe_count() - 1;
    // Row 2 on the last PE, which is on the last node.
    let places = (0..24).map(|n| if n / 6 == 2 { last } else { 0 });
    let places = Placement::on_pes(places);
    let case = arguments.case.as_str();
    if case == "all" {
        return everything(main);
    }
    if case == "constructor" {
        main.array_placed::<Cell>(SHAPE, true, places);
        return main.quiescence();
    }
    if case == "never-made" || case == "made-twice" {
        let cells: Array<Cell> = main.array_deferred(SHAPE, places);
        let times = if case == "never-made" { 0 } else { 2 };
        (0..times).for_each(|_| main.insert(&cells, [2, 3], false));
        cells.at([2, 3]).send(main, Step(0));
        return main.quiescence();
    }
    let cells: Array<Cell> = main.array_placed(SHAPE, false, places);
    match case {
        "panic" => cells.at([2, 3]).send(main, Break(Fault::Panic, [2, 3])),
        "panic-in-broadcast" => cells.broadcast(main, Break(Fault::Panic, [2, 3])),
        "panic-in-section" => {
            cells.section(main, [[0, 0], [2, 3]]).send(main, Break(Fault::Panic, [2, 3]));
        }
        "fail" => cells.at([2, 3]).send(main, Break(Fault::Fail, [2, 3])),
        "lost-node" => {
            cells.at([2, 3]).send(main, Break(Fault::Kill, [2, 3]));
            let lost = main.quiescence();
            if let Err(RunError::NodeLost { node, sentence }) = &lost {
                println!("the driver was told of {node}: {sentence}");
            }
            return lost;
        }
        "driver-error" => return Err(RunError::Input("the plate has no cells".into())),
        "driver-wrong" => return Err(RunError::Wrong("the sum is off by one".into())),
        "waits-for-nothing" => {
            let (_callback, never) = main.pending::<Sum<u64>>();
            return never.wait(main).map(drop);
        }
        other => return Err(RunError::Input(format!("there is no case {other:?}"))),
    }
    main.quiescence()
}

fn main() -> ExitCode {
    let program = Program::new("model", "1")
        .chare::<Cell>()
        .chare::<Twig>()
        .chare::<Warden>()
        .chare::<long::End>()
        .chare::<nomads::Nomad>();
    let example = |name, drive| App::<Nothing>::new(name, "An example", drive);
    let program = program.app(App::new("model", "What chares promise", drive));
    let program = program.app(App::new("nomads", "Elements that move in every step", |main, walk: Walk| {
        let began = Instant::now();
        nomads::walk(main, walk.steps)?;
        println!("{} moves, {:.2} s", 8 * walk.steps, began.elapsed().as_secs_f64());
        Ok(())
    }));
    let program = program.app(example("long", |main, _| long::drive(main)));
    let program = program.app(example("heat", |main, _| heat::drive(main)));
    let program = program.app(example("primes", |main, _| primes::drive(main)));
    let program = program.app(App::new("planted", "Runs that are slow for one reason", planted::drive));
    let program = program.app(example("queens", |main, _| queens::drive(main)));
    program.app(example("histogram", |main, _| histogram::drive(main))).main()
}
