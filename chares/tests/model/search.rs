//! Priorities that are vectors of bits, and queues that take the last first.

use chares::{
    Array, Bits, Callback, Chare, Ctx, Cx, Driver, Entry, InProcess, Placement, Program, QueueOrder, RunError,
};
use serde::{Deserialize, Serialize};

/// Expands nodes of a tree; the first of the array writes down in which order that is done.
#[derive(Default, Serialize, Deserialize)]
struct Seeker {
    expanded: Vec<Vec<u32>>,
}

/// A node of the tree, by the children on the way to it.
#[derive(Serialize, Deserialize)]
struct Expand(Vec<u32>, Bits);
#[derive(Serialize, Deserialize)]
struct Expanded(Vec<u32>);
#[derive(Serialize, Deserialize)]
struct Report(Callback<Vec<Vec<u32>>>);
/// Send that one numbers with these priorities, and then have it go to a PE.
#[derive(Serialize, Deserialize)]
struct Burst(u32, Vec<(i32, Bits)>, Option<u32>);
/// The same to all at once.
#[derive(Serialize, Deserialize)]
struct BurstToAll(Vec<Bits>);
#[derive(Serialize, Deserialize)]
struct Go(u32);

chares::entries!(Seeker: Expand, Expanded, Report, Burst, BurstToAll, Go);

impl Chare for Seeker {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self::default()
    }
}

/// How many children a node has: so many that the tree is small, and lopsided.
fn children(path: &[u32]) -> u32 {
    let mixed = path.iter().fold(7u32, |sum, at| sum.wrapping_mul(31).wrapping_add(*at + 1));
    if path.len() < 7 { mixed % 5 } else { 0 }
}

fn below(path: &[u32], at: u32) -> Vec<u32> {
    [path, &[at]].concat()
}

/// All nodes of the tree, depth first, from left to right.
fn depth_first(path: Vec<u32>, all: &mut Vec<Vec<u32>>) {
    let count = children(&path);
    all.push(path.clone());
    (0..count).for_each(|at| depth_first(below(&path, at), all));
}

impl Entry<Expand> for Seeker {
    fn receive(&mut self, Expand(path, bits): Expand, ctx: &mut Ctx<'_, Self>) {
        let (all, count) = (ctx.array(), children(&path));
        // Not from left to right, and not to one: only the bits say what is next.
        for at in (0..count).rev() {
            let child = bits.child(at, count);
            let to = all.at((ctx.index() + at + 1) % all.shape()[0]);
            to.send_with(ctx, &child, Expand(below(&path, at), child.clone()));
        }
        all.at(0).send_with(ctx, -1, Expanded(path));
    }
}
impl Entry<Expanded> for Seeker {
    fn receive(&mut self, Expanded(path): Expanded, _: &mut Ctx<'_, Self>) {
        self.expanded.push(path);
    }
}
impl Entry<Report> for Seeker {
    fn receive(&mut self, Report(to): Report, ctx: &mut Ctx<'_, Self>) {
        to.send(ctx, std::mem::take(&mut self.expanded));
    }
}
impl Entry<Burst> for Seeker {
    fn receive(&mut self, Burst(to, priorities, pe): Burst, ctx: &mut Ctx<'_, Self>) {
        let to = ctx.array().at(to);
        for (n, priority) in (0..).zip(priorities) {
            to.send_with(ctx, priority, Expanded(vec![n]));
        }
        pe.into_iter().for_each(|pe| to.send_with(ctx, i32::MIN, Go(pe)));
    }
}
impl Entry<BurstToAll> for Seeker {
    fn receive(&mut self, BurstToAll(all): BurstToAll, ctx: &mut Ctx<'_, Self>) {
        for (n, bits) in (0..).zip(&all) {
            ctx.array().broadcast_with(ctx, bits, Expanded(vec![n]));
        }
    }
}
impl Entry<Go> for Seeker {
    fn receive(&mut self, Go(pe): Go, ctx: &mut Ctx<'_, Self>) {
        ctx.migrate_to(pe);
    }
}

fn program() -> Program {
    Program::new("search", "1").chare::<Seeker>()
}

fn heard(main: &mut Driver, seekers: &Array<Seeker>, index: u32) -> Result<Vec<Vec<u32>>, RunError> {
    main.quiescence()?;
    let (to, heard) = main.pending();
    seekers.at(index).send(main, Report(to));
    heard.wait(main)
}

fn on_one_pe<R: Send>(
    program: impl Fn() -> Program,
    run: impl Fn(&mut Driver) -> Result<R, RunError>,
    check: impl Fn(R),
) {
    for always_pup in [false, true] {
        let mix = InProcess { always_pup, ..InProcess::new(&[1]) };
        check(program().run_in_process(&mix, |main: &mut Driver| run(main)).unwrap());
    }
}

/// Vectors of bits in no order, some of them alike or the begin of others.
fn vectors() -> Vec<Bits> {
    let numbers = [5, 0, 3, 3, 7, 1, 6, 0, 2, 4, 5];
    (0..).zip(numbers).map(|(n, number)| Bits::new().followed_by(number, 3).followed_by(0, n % 3)).collect()
}

/// Places of the most urgent first, equal ones in order.
fn sorted<P: Ord>(priorities: &[P]) -> Vec<Vec<u32>> {
    let mut places: Vec<u32> = (0..).zip(priorities).map(|(n, _)| n).collect();
    places.sort_by_key(|n| &priorities[*n as usize]);
    places.into_iter().map(|n| vec![n]).collect()
}

#[test]
fn with_vectors_of_bits_one_pe_expands_a_tree_depth_first_from_left_to_right() {
    let mut expected = Vec::new();
    depth_first(Vec::new(), &mut expected);
    assert!(expected.len() > 100, "{} nodes", expected.len());
    let run = |main: &mut Driver| {
        let seekers: Array<Seeker> = main.array(5, ());
        seekers.at(3).send(main, Expand(Vec::new(), Bits::new()));
        heard(main, &seekers, 0)
    };
    on_one_pe(program, run, |expanded| assert_eq!(expanded, expected));
}

#[test]
fn vectors_of_bits_order_messages_of_one_number_and_broadcasts() {
    let with_numbers: Vec<(i32, Bits)> = (0..).zip(vectors()).map(|(n, bits)| (n % 3 - 1, bits)).collect();
    let run = |main: &mut Driver| {
        let seekers: Array<Seeker> = main.array(2, ());
        seekers.at(0).send(main, Burst(1, with_numbers.clone(), None));
        let single = heard(main, &seekers, 1)?;
        seekers.at(0).send(main, BurstToAll(vectors()));
        Ok((single, heard(main, &seekers, 1)?))
    };
    on_one_pe(program, run, |heard| assert_eq!(heard, (sorted(&with_numbers), sorted(&vectors()))));
}

#[test]
fn a_mailbox_keeps_its_order_when_its_chare_moves() {
    for pes in [&[2][..], &[1, 1]] {
        for always_pup in [false, true] {
            let mix = InProcess { always_pup, ..InProcess::new(pes) };
            let run = |main: &mut Driver| {
                let seekers = main.array_placed::<Seeker>(2, (), Placement::on_pes([0, 0]));
                let priorities = vectors().into_iter().map(|bits| (0, bits)).collect();
                seekers.at(0).send(main, Burst(1, priorities, Some(1)));
                heard(main, &seekers, 1)
            };
            assert_eq!(program().run_in_process(&mix, run).unwrap(), sorted(&vectors()), "{mix:?}");
        }
    }
}

#[test]
fn a_queue_that_takes_the_last_first_does_so_among_equals() {
    let priorities: Vec<(i32, Bits)> = [0, 3, 0, -1, 3, 0].map(|number| (number, Bits::new())).into();
    let run = |main: &mut Driver| {
        let seekers: Array<Seeker> = main.array(2, ());
        seekers.at(0).send(main, Burst(1, priorities.clone(), None));
        heard(main, &seekers, 1)
    };
    let last_first = || program().queue_order(QueueOrder::Lifo);
    on_one_pe(last_first, run, |heard| assert_eq!(heard, [3, 5, 2, 0, 4, 1].map(|n| vec![n])));
}
