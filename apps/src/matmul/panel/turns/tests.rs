//! The order of turns, and plans in virtual time: PEs that are not as fast as was said.

use super::super::{URGENT, default_grain};
use super::*;
use crate::kernels::gemm::Kernel;
use crate::matmul::problem::Problem;
use chares::loadbalance::{Items, Part, placement};
use proptest::prelude::*;
use std::collections::{BTreeMap, BinaryHeap};

fn setup(sides: [usize; 3], grain: usize, speeds: &[f64]) -> PanelInit {
    let [m, k, n] = sides;
    let problem = Problem { m, k, n, kernel: Kernel::Fast, seeds: None };
    let strips = |count| placement::contiguous(&Items::alike(count as u64), &Part::each(speeds)).unwrap();
    let (columns, groups) = (strips(n), strips(m.div_ceil(grain)));
    PanelInit { problem, grain, per_pe: 1, columns, groups, room: vec![n as u64; speeds.len()] }
}

#[test]
fn owners_take_turns_in_proportion_to_what_they_have() {
    assert_eq!(order(&[0, 4, 6, 8]), [0, 4, 6, 1, 2, 5, 7, 3]);
    let setup = setup([8, 1, 1], 1, &[2.0, 1.0, 1.0]);
    assert_eq!((setup.groups.clone(), setup.owner(5)), (vec![0, 4, 6, 8], 1));
}

/// What happens at a time, in units of 1 ns; of things at the same time, the first that was said.
type Event = std::cmp::Reverse<(u64, u64, usize, Word)>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Request(u32, u32),
    Rows(u32, u32),
    /// Group, elements of C, and for how long.
    Finished(usize, u32, u64, u64),
    Replan(u32, Vec<(u32, u32, u64)>),
    Columns(u64),
    /// The PE is done with a product.
    Free,
}

/// PEs that handle one word at a time, urgent ones first, as the runtime does.
struct World<'a> {
    setup: &'a PanelInit,
    turns: Turns,
    now: u64,
    said: u64,
    events: BinaryHeap<Event>,
    pes: Vec<Pe>,
    /// Seconds for an element of C, by PE and time.
    cost: Box<dyn Fn(usize, f64) -> f64 + 'a>,
    plans: usize,
}

#[derive(Default)]
struct Pe {
    is_busy: bool,
    /// Words by priority and number.
    inbox: BTreeMap<(i32, u64), Word>,
    held: Vec<(u32, u32)>,
    columns: Vec<u64>,
    plan: u32,
    due: Option<u64>,
    come: u64,
    area: u64,
    ended: f64,
}

const LATENCY: u64 = 200_000;
/// Wires of 1 Gbit/s.
const NS_PER_BYTE: u64 = 8;
const NUMBER_BYTES: u64 = 4;

impl<'a> World<'a> {
    /// Runs the product; when each PE ended, and how many plans were made.
    fn run(setup: &'a PanelInit, cost: impl Fn(usize, f64) -> f64 + 'a) -> Self {
        let columns = setup.columns.windows(2).map(|w| Pe { columns: vec![w[1] - w[0]], ..Pe::default() });
        let mut world = Self {
            setup,
            turns: Turns::new(setup),
            now: 0,
            said: 0,
            events: BinaryHeap::new(),
            pes: columns.collect(),
            cost: Box::new(cost),
            plans: 0,
        };
        for Request { group, plan } in world.turns.begin(setup) {
            world.say(0, setup.owner(group) as usize, Word::Request(group, plan));
        }
        while let Some(std::cmp::Reverse((time, number, pe, word))) = world.events.pop() {
            world.now = time;
            match word {
                Word::Free => world.pes[pe].is_busy = false,
                Word::Rows(..) => drop(world.pes[pe].inbox.insert((super::super::ROWS, number), word)),
                _ => drop(world.pes[pe].inbox.insert((URGENT, number), word)),
            }
            while !world.pes[pe].is_busy
                && let Some((_, word)) = world.pes[pe].inbox.pop_first()
            {
                world.handle(pe, word);
            }
        }
        let (m, n) = (setup.problem.m as u64, setup.problem.n as u64);
        assert_eq!(world.pes.iter().map(|pe| pe.area).sum::<u64>(), m * n, "each element once");
        assert!(world.pes.iter().all(|pe| pe.held.is_empty() && pe.inbox.is_empty()));
        world
    }

    fn say(&mut self, bytes: u64, to: usize, word: Word) {
        self.said += 1;
        self.events.push(std::cmp::Reverse((self.now + LATENCY + bytes * NS_PER_BYTE, self.said, to, word)));
    }

    fn handle(&mut self, pe: usize, word: Word) {
        let k = self.setup.problem.k as u64;
        match word {
            Word::Request(group, plan) => {
                let bytes = self.setup.rows_of(group).len() as u64 * k * NUMBER_BYTES;
                for to in 0..self.pes.len() {
                    self.say(if to == pe { 0 } else { bytes }, to, Word::Rows(group, plan));
                }
            }
            Word::Rows(group, plan) if plan > self.pes[pe].plan => self.pes[pe].held.push((group, plan)),
            Word::Rows(group, plan) => {
                let rows = self.setup.rows_of(group).len() as u64;
                let columns = self.pes[pe].columns[plan as usize];
                let area = rows * columns;
                let took = ((self.cost)(pe, self.now as f64 / 1e9) * area as f64 * 1e9) as u64;
                self.pes[pe].is_busy = true;
                self.pes[pe].area += area;
                let began = self.now;
                self.now += took;
                self.pes[pe].ended = self.now as f64 / 1e9;
                self.say(0, 0, Word::Finished(pe, group, area, took));
                self.events.push(std::cmp::Reverse((self.now, 0, pe, Word::Free)));
                self.now = began;
            }
            Word::Finished(from, group, area, took) => {
                let report =
                    Finished { group, panel: from as u32, pe: from as u32, area, seconds: took as f64 / 1e9 };
                let column_bytes = self.setup.problem.k * NUMBER_BYTES as usize;
                let (request, plan) = self.turns.finished(self.setup, &report, column_bytes);
                if let Some(Request { group, plan }) = request {
                    self.say(0, self.setup.owner(group) as usize, Word::Request(group, plan));
                }
                if let Some(Replan { plan, moves }) = plan {
                    self.plans += 1;
                    (0..self.pes.len()).for_each(|to| self.say(0, to, Word::Replan(plan, moves.clone())));
                }
            }
            Word::Replan(plan, moves) => {
                let mut columns = self.pes[pe].columns[plan as usize - 1];
                let mut due = 0;
                for (from, to, count) in moves {
                    if from as usize == pe {
                        columns -= count;
                        self.say(count * k * NUMBER_BYTES, to as usize, Word::Columns(count));
                    }
                    due += if to as usize == pe { count } else { 0 };
                }
                self.pes[pe].columns.push(columns + due);
                self.pes[pe].due = Some(due);
                self.complete(pe);
            }
            Word::Columns(count) => {
                self.pes[pe].come += count;
                self.complete(pe);
            }
            Word::Free => {}
        }
    }

    fn complete(&mut self, pe: usize) {
        let state = &mut self.pes[pe];
        if state.due == Some(state.come) {
            (state.due, state.come) = (None, 0);
            state.plan += 1;
            for (group, plan) in std::mem::take(&mut state.held) {
                self.say(0, pe, Word::Rows(group, plan));
            }
        }
    }

    fn last(&self) -> f64 {
        self.pes.iter().map(|pe| pe.ended).fold(0.0, f64::max)
    }

    fn first(&self) -> f64 {
        self.pes.iter().map(|pe| pe.ended).fold(f64::INFINITY, f64::min)
    }

    fn moved(&self) -> u64 {
        self.pes.iter().flat_map(|pe| pe.columns.windows(2).map(|w| w[1].saturating_sub(w[0]))).sum()
    }
}

/// Elements of C in a second on the fastest PE where k is 28,000.
const FASTEST: f64 = 3.4e6;
const BIG: [usize; 3] = [28_000; 3];

fn ideal(sides: [usize; 3], speeds: &[f64]) -> f64 {
    sides[0] as f64 * sides[2] as f64 / (FASTEST * speeds.iter().sum::<f64>())
}

/// The product on PEs of one speed, where shares follow another.
fn run(truth: &[f64], said: &[f64]) -> (f64, f64, u64) {
    let setup = setup(BIG, default_grain(BIG[0]), said);
    let cost = |pe: usize, _: f64| 1.0 / (FASTEST * truth[pe]);
    let world = World::run(&setup, cost);
    (world.first() / ideal(BIG, truth), world.last() / ideal(BIG, truth), world.moved())
}

#[test]
fn pes_that_are_slower_or_faster_than_was_said_end_together() {
    let truth = [1.0, 0.55, 0.25];
    for said in [[1.0, 0.55, 0.28], [1.0, 0.55, 0.22], [0.9, 0.6, 0.25], [1.0, 0.5, 0.24], [1.1, 0.55, 0.25]]
    {
        let (first, last, moved) = run(&truth, &said);
        // A group of rows is 2 % of the work.
        assert!(first > 0.98 && last < 1.02, "{said:?}: {first} to {last}");
        // Few columns more than those that were wrong.
        let total: f64 = said.iter().sum::<f64>() / truth.iter().sum::<f64>();
        let wrong: f64 = said.iter().zip(truth).map(|(said, truth)| (said / total - truth).abs()).sum();
        let share = wrong / 2.0 / truth.iter().sum::<f64>();
        assert!(moved > 0 && moved as f64 <= 4.0 * share * 28_000.0, "{said:?}: {moved}, {share} were wrong");
    }
    for said in [[1.0, 0.4, 0.4], [1.0, 1.0, 1.0], [0.25, 0.55, 1.0]] {
        let without = (0..3).map(|pe| said[pe] / truth[pe]).fold(0.0, f64::max) * truth.iter().sum::<f64>()
            / said.iter().sum::<f64>();
        let (first, last, _) = run(&truth, &said);
        assert!(last < 1.0 + 0.35 * (without - 1.0) && first > 0.97 * last, "{said:?}: {first} to {last}");
    }
}

#[test]
fn where_all_is_as_was_said_hardly_anything_moves() {
    for speeds in [&[1.0, 0.55, 0.25][..], &[1.0; 8], &[1.0]] {
        let (_, last, moved) = run(speeds, speeds);
        // Somebody is always in the middle of a group, which is rounded up.
        assert!(moved <= 280 && last < 1.02, "{speeds:?}: {last}, {moved}");
    }
}

#[test]
fn a_pe_that_gets_slower_on_the_way_is_relieved() {
    let setup = setup(BIG, default_grain(BIG[0]), &[1.0, 0.5, 0.5]);
    let slower = |pe: usize, now: f64| if pe == 2 && now > 60.0 { 0.35 } else { [1.0, 0.5, 0.5][pe] };
    let cost = |pe: usize, now: f64| 1.0 / (FASTEST * slower(pe, now));
    let world = World::run(&setup, cost);
    let all = 28_000.0 * 28_000.0 / FASTEST;
    let ideal = 60.0 + (all - 60.0 * 2.0) / 1.85;
    let without = 60.0 + (all - 60.0 * 2.0) / 4.0 / 0.35;
    assert!(world.last() < ideal + 0.2 * (without - ideal), "{} of {ideal}, {without}", world.last());
}

#[test]
fn in_tiny_products_nothing_moves() {
    let said = [1.0, 0.1];
    for n in [1, 2, 40, 200] {
        let setup = setup([n; 3], default_grain(n), &said);
        let world = World::run(&setup, |_, _| n as f64 / 28_000.0 / FASTEST);
        assert_eq!(world.moved(), 0, "{n}");
    }
}

#[test]
fn nobody_takes_or_gives_more_than_there_is_memory_for() {
    for room in [0, 500] {
        let mut setup = setup(BIG, default_grain(BIG[0]), &[1.0, 1.0, 1.0]);
        setup.room = vec![28_000, room, 28_000];
        // The second could take thousands of columns.
        let world = World::run(&setup, |pe, _| [1.0, 0.3, 1.0][pe] / FASTEST);
        let most = world.pes[1].columns.iter().copied().max().unwrap();
        assert!(most <= 9_333 + room && (most == 9_333) == (room == 0), "{most}");
        // Now it should give them, and may not give so many at once.
        let world = World::run(&setup, |pe, _| [1.0, 2.0, 1.0][pe] / FASTEST);
        assert!(world.pes[1].columns.windows(2).all(|pair| pair[0] <= pair[1] + room), "{room}");
    }
}

#[test]
fn a_pe_without_columns_stays_without_and_a_stalled_one_keeps_some() {
    let mut setup = setup(BIG, default_grain(BIG[0]), &[1.0, 1.0, 1.0]);
    setup.columns = vec![0, 14_000, 14_000, 28_000];
    let world = World::run(&setup, |pe, _| [1.0, 1.0, 1e3][pe] / FASTEST);
    assert!(world.plans > 0 && world.pes[1].columns.iter().all(|columns| *columns == 0));
    assert!(world.pes[2].columns.windows(2).all(|pair| 4 * pair[1] >= pair[0] && pair[1] > 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn each_element_is_computed_once_however_the_speeds_are_wrong(
        pes in prop::collection::vec((0.1f64..1.0, 0.1f64..1.0, 0u64..400), 1..9),
        sides in (1usize..3000, 1usize..9000, 1usize..3000),
        grain in 1usize..400,
        slowness in 1.0f64..1000.0,
    ) {
        let (m, k, n) = sides;
        let said: Vec<f64> = pes.iter().map(|pe| pe.0).collect();
        let mut setup = setup([m, k, n], grain, &said);
        setup.room = pes.iter().map(|pe| pe.2).collect();
        let cost = |pe: usize, now: f64| {
            let swing = 1.0 + 0.5 * (now / slowness + pe as f64).sin();
            slowness * swing / pes[pe].1 / FASTEST
        };
        // It checks that itself.
        let world = World::run(&setup, cost);
        for (pe, (_, _, room)) in world.pes.iter().zip(&pes) {
            let taken: u64 = pe.columns.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).sum();
            prop_assert!(taken <= *room);
        }
    }
}
