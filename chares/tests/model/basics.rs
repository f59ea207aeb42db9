//! A little of everything.

use chares::{
    Array, Barrier, Bulk, Callback, Chare, Ctx, Cx, Driver, Element, Entry, Gather, Inbox, Max, Min, On,
    Placement, Program, Readonly, RunError, Section, Sum, WriteOnce,
};
use serde::{Deserialize, Serialize};

/// An array element that answers, counts and forwards.
#[derive(Serialize, Deserialize)]
struct Cell {
    start: u64,
    seen: Vec<u32>,
    held: Inbox<u32, u64>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Ask(Callback<Sum<u64>>);
#[derive(Clone, Serialize, Deserialize)]
struct AskOrdered(Callback<Gather<u32>>);
#[derive(Clone, Serialize, Deserialize)]
struct Token {
    hops: u32,
    done: Callback<u32>,
}
#[derive(Clone, Serialize, Deserialize)]
struct Number(u32);
#[derive(Clone, Serialize, Deserialize)]
struct Numbers(Callback<Gather<Vec<u32>>>);
#[derive(Clone, Serialize, Deserialize)]
struct Meet {
    section: Section<Cell>,
    done: Callback<Gather<u32>>,
}
#[derive(Clone, Serialize, Deserialize)]
struct Scale {
    factor: Readonly<Vec<u64>>,
    done: Callback<Sum<u64>>,
}
#[derive(Clone, Serialize, Deserialize)]
struct Data {
    numbers: Bulk<f64>,
    back: Callback<Bulk<f64>>,
}

chares::entries!(Cell: Ask, AskOrdered, Token, Number, Numbers, Meet, Scale, Data;
    reduces Sum<u64> as "Sum", Gather<u32> as "Gather", Gather<Vec<u32>> as "GatherLists");

impl Chare for Cell {
    type Index = [u32; 2];
    type Init = u64;
    fn new(start: u64, _: &mut Ctx<'_, Self>) -> Self {
        Self { start, seen: Vec::new(), held: Inbox::default() }
    }
}

fn place(index: [u32; 2]) -> u32 {
    index[0] * 100 + index[1]
}

impl Entry<Ask> for Cell {
    fn receive(&mut self, Ask(done): Ask, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(Sum(self.start + u64::from(place(ctx.index()))), done);
    }
}
impl Entry<AskOrdered> for Cell {
    fn receive(&mut self, AskOrdered(done): AskOrdered, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute_ordered(Gather(vec![place(ctx.index())]), done);
    }
}
impl Entry<Token> for Cell {
    fn receive(&mut self, token: Token, ctx: &mut Ctx<'_, Self>) {
        if token.hops == 0 {
            return token.done.send(ctx, place(ctx.index()));
        }
        let [rows, columns, _] = ctx.array().shape();
        let [i, j] = ctx.index();
        let next = if j + 1 < columns { [i, j + 1] } else { [(i + 1) % rows, 0] };
        ctx.array().at(next).send(ctx, Token { hops: token.hops - 1, ..token });
    }
}
impl Entry<Number> for Cell {
    fn receive(&mut self, Number(n): Number, _: &mut Ctx<'_, Self>) {
        self.seen.push(n);
        self.held.hold(n, u64::from(n));
    }
}
impl Entry<Numbers> for Cell {
    fn receive(&mut self, Numbers(done): Numbers, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute_ordered(Gather(vec![self.seen.clone()]), done);
    }
}
impl Entry<Meet> for Cell {
    fn receive(&mut self, meet: Meet, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute_in(&meet.section, Gather(vec![place(ctx.index())]), meet.done);
    }
}
impl Entry<Scale> for Cell {
    fn receive(&mut self, scale: Scale, ctx: &mut Ctx<'_, Self>) {
        let factor = scale.factor.read(ctx)[1];
        ctx.contribute(Sum(factor), scale.done);
    }
}
impl Entry<Data> for Cell {
    fn receive(&mut self, mut data: Data, ctx: &mut Ctx<'_, Self>) {
        data.numbers.as_mut_slice().iter_mut().for_each(|x| *x *= 2.0);
        data.back.send(ctx, data.numbers);
    }
}

fn program() -> Program {
    Program::new("model", "1").chare::<Cell>().chare::<Office>().chare::<Lone>()
}

fn on_every_mix(drive: impl Fn(&mut Driver) -> Result<(), RunError>) {
    crate::on_every_mix(program, drive);
}

fn cells(main: &mut Driver) -> Array<Cell> {
    main.array::<Cell>([4, 5], 1000)
}

#[test]
fn a_broadcast_reaches_all_and_a_reduction_collects_all() {
    on_every_mix(|main| {
        let cells = cells(main);
        for _ in 0..3 {
            let (done, sum) = main.pending();
            cells.broadcast(main, Ask(done));
            let places: u64 = (0..4).flat_map(|i| (0..5).map(move |j| u64::from(place([i, j])))).sum();
            assert_eq!(sum.wait(main)?.0, 20 * 1000 + places);
        }
        Ok(())
    });
}

#[test]
fn ordered_reductions_follow_the_index_on_any_placement() {
    on_every_mix(|main| {
        let expected: Vec<u32> = (0..4).flat_map(|i| (0..5).map(move |j| place([i, j]))).collect();
        for placement in [Placement::Block, Placement::Cyclic, Placement::BySpeed] {
            let cells = main.array_placed::<Cell>([4, 5], 0, placement);
            let (done, all) = main.pending();
            cells.broadcast(main, AskOrdered(done));
            assert_eq!(all.wait(main)?.0, expected);
        }
        Ok(())
    });
}

#[test]
fn a_token_goes_around_and_quiescence_is_after_it() {
    on_every_mix(|main| {
        let cells = cells(main);
        let (done, last) = main.pending();
        cells.at([0, 0]).send(main, Token { hops: 203, done });
        main.quiescence()?;
        assert_eq!(last.wait(main)?, place([0, 3]));
        Ok(())
    });
}

#[test]
fn messages_from_one_sender_keep_their_order() {
    on_every_mix(|main| {
        let cells = cells(main);
        for n in 0..200 {
            cells.at([n % 4, n % 5]).send(main, Number(n));
        }
        main.quiescence()?;
        let (done, all) = main.pending();
        cells.broadcast(main, Numbers(done));
        let lists = all.wait(main)?.0;
        assert_eq!(lists.iter().map(Vec::len).sum::<usize>(), 200);
        assert!(lists.iter().all(|list| list.is_sorted()), "{lists:?}");
        Ok(())
    });
}

#[test]
fn sections_are_multicast_to_and_reduce_in_index_order() {
    on_every_mix(|main| {
        let cells = cells(main);
        let section = cells.section(main, [[3, 4], [0, 1], [2, 2]]);
        for _ in 0..2 {
            let (done, all) = main.pending();
            section.send(main, Meet { section: section.clone(), done });
            assert_eq!(all.wait(main)?.0, [1, 202, 304]);
        }
        Ok(())
    });
}

#[test]
fn readonly_data_is_there_and_bulk_data_is_intact() {
    on_every_mix(|main| {
        let factor = main.readonly(vec![3u64, 5])?;
        let cells = cells(main);
        let (done, sum) = main.pending();
        cells.broadcast(main, Scale { factor, done });
        assert_eq!(sum.wait(main)?.0, 100);
        let numbers = Bulk::from((0..5000).map(f64::from).collect::<Vec<_>>());
        let (back, doubled) = main.pending();
        cells.at([3, 3]).send(main, Data { numbers: numbers.clone(), back });
        let doubled = doubled.wait(main)?;
        assert!(doubled.iter().zip(numbers.iter()).all(|(d, n)| *d == 2.0 * n));
        assert_eq!(numbers[7], 7.0, "the sender's own array must not change");
        Ok(())
    });
}

/// One on every PE: makes its share of an array, adds to shared variables.
#[derive(Serialize, Deserialize)]
struct Office;

#[derive(Clone, Serialize, Deserialize)]
struct Fill {
    cells: Array<Cell>,
}
#[derive(Clone, Serialize, Deserialize)]
struct Count {
    total: chares::Accumulator<Sum<u64>>,
    best: chares::Monotonic<Min<u32>>,
    done: Callback<Barrier>,
}
#[derive(Clone, Serialize, Deserialize)]
struct Best {
    best: chares::Monotonic<Min<u32>>,
    done: Callback<Max<u32>>,
}
#[derive(Clone, Serialize, Deserialize)]
struct Announce(Callback<u32>);
#[derive(Clone, Serialize, Deserialize)]
struct Heard {
    value: WriteOnce<String>,
    done: Callback<Sum<u64>>,
}

chares::entries!(Office: Fill, Count, Best, Announce, WriteOnce<String> as "Ready", Heard;
    reduces Barrier, Max<u32> as "Max", Sum<u64> as "Sum");

impl Chare for Office {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self
    }
}
impl Entry<Fill> for Office {
    fn receive(&mut self, fill: Fill, ctx: &mut Ctx<'_, Self>) {
        for index in ctx.indices_here(&fill.cells) {
            ctx.insert(&fill.cells, index, 7);
        }
    }
}
impl Entry<Count> for Office {
    fn receive(&mut self, count: Count, ctx: &mut Ctx<'_, Self>) {
        count.total.add(ctx, Sum(1));
        count.total.add(ctx, Sum(10));
        let mine = 50 - ctx.index();
        count.best.propose(ctx, Min(mine));
        ctx.contribute(Barrier, count.done);
    }
}
impl Entry<Best> for Office {
    fn receive(&mut self, best: Best, ctx: &mut Ctx<'_, Self>) {
        let known = best.best.best(ctx).map_or(u32::MAX, |b| b.0);
        ctx.contribute(Max(known), best.done);
    }
}
impl Entry<Announce> for Office {
    fn receive(&mut self, Announce(done): Announce, ctx: &mut Ctx<'_, Self>) {
        let ready = Callback::element(&ctx.this());
        ctx.write_once("said once".to_string(), ready);
        let index = ctx.index();
        done.send(ctx, index);
    }
}
impl Entry<WriteOnce<String>> for Office {
    fn receive(&mut self, value: WriteOnce<String>, ctx: &mut Ctx<'_, Self>) {
        // In place everywhere: the driver's accumulator of this test is the string's length on every PE.
        assert_eq!(*value.read(ctx).expect("it is ready"), "said once");
    }
}
impl Entry<Heard> for Office {
    fn receive(&mut self, heard: Heard, ctx: &mut Ctx<'_, Self>) {
        let length = heard.value.read(ctx).map_or(0, |text| text.len() as u64);
        ctx.contribute(Sum(length), heard.done);
    }
}

#[test]
fn two_step_creation_fills_an_array_where_its_elements_belong() {
    on_every_mix(|main| {
        let cells = main.array_deferred::<Cell>([4, 5], Placement::Cyclic);
        let (done, sum) = main.pending();
        cells.broadcast(main, Ask(done)); // waits for the elements
        let office = main.group::<Office>(());
        office.broadcast(main, Fill { cells });
        let places: u64 = (0..4).flat_map(|i| (0..5).map(move |j| u64::from(place([i, j])))).sum();
        assert_eq!(sum.wait(main)?.0, 20 * 7 + places);
        main.quiescence()
    });
}

#[test]
fn shared_variables_accumulate_improve_and_are_written_once() {
    on_every_mix(|main| {
        let office = main.group::<Office>(());
        let (total, best) = (main.accumulator::<Sum<u64>>(), main.monotonic::<Min<u32>>());
        let (done, counted) = main.pending();
        office.broadcast(main, Count { total, best, done });
        counted.wait(main)?;
        let pes = main.pe_count();
        assert_eq!(main.collect(&total)?, Some(Sum(11 * u64::from(pes))));
        assert_eq!(main.collect(&total)?, None);
        main.quiescence()?;
        let (done, known) = main.pending();
        office.broadcast(main, Best { best, done });
        assert_eq!(known.wait(main)?.0, 50 - (pes - 1));
        let (done, announced) = main.pending();
        office.on(0).send(main, Announce(done));
        announced.wait(main)?;
        let value = main.write_once("four".to_string(), Callback::ignore());
        main.quiescence()?;
        let (done, heard) = main.pending();
        office.broadcast(main, Heard { value, done });
        assert_eq!(heard.wait(main)?.0, 4 * u64::from(pes));
        Ok(())
    });
}

/// A single chare that makes another one and ends itself.
#[derive(Serialize, Deserialize)]
struct Lone {
    depth: u32,
    done: Callback<Sum<u64>>,
}
chares::entries!(Lone: Number);
impl Chare for Lone {
    type Index = ();
    type Init = (u32, Callback<Sum<u64>>);
    fn new((depth, done): Self::Init, ctx: &mut Ctx<'_, Self>) -> Self {
        if depth > 0 {
            let on = [On::BySpeed, On::ByLoad, On::AtRandom][depth as usize % 3];
            let child: Element<Self> = ctx.chare((depth - 1, done), on);
            child.send(ctx, Number(depth));
        } else {
            ctx.this().send(ctx, Number(0));
        }
        Self { depth, done }
    }
}
impl Entry<Number> for Lone {
    fn receive(&mut self, _: Number, ctx: &mut Ctx<'_, Self>) {
        self.done.send(ctx, Sum(u64::from(self.depth)));
        ctx.destroy();
    }
}

#[test]
fn single_chares_are_made_used_and_destroyed() {
    on_every_mix(|main| {
        let (done, depths) = main.pending();
        let first: Element<Lone> = main.chare((30, done), On::Pe(0));
        first.send(main, Number(31));
        main.quiescence()?;
        let mut all = Vec::new();
        for _ in 0..31 {
            all.push(depths.wait(main)?.0);
        }
        all.sort_unstable();
        assert_eq!(all, (0..=30).collect::<Vec<u64>>());
        first.send(main, Number(0)); // it is gone; the message is dropped, and quiescence still found
        main.quiescence()
    });
}
