//! The same bits on any mix, by any mode; both ends of every message agree; the thesis's own tables.

use super::account::{self, Figures};
use super::element::CBlock;
use super::halo::{Features, audiences, sources, take_features};
use super::{distribution, memory};
use crate::statics::aberration::Aberration;
use crate::statics::block::{Block, Bounds, Class};
use crate::statics::crystal::lattice::{Kind, Lattice};
use crate::statics::crystal::oriented::AS_IT_IS;
use crate::statics::crystal::{Atom, Crystal, Side};
use crate::statics::drive::{self, Outcome};
use crate::statics::neighbours::{Extent, influence};
use crate::statics::partition::Partition;
use crate::statics::potential::analytic::{self, Model};
use crate::statics::problem::{Problem, Step};
use crate::statics::relax::{Limits, Method};
use crate::statics::replicated::Replica;
use crate::statics::written::Written;
use chares::loadbalance::Part;
use chares::{Driver, InProcess, Program, RunError};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn problem(cells: [usize; 3], blocks: [usize; 3], sides: [Side; 3]) -> Problem {
    let crystal =
        Crystal::new(&Lattice::named(Kind::Fcc, 3.61, None).unwrap(), &AS_IT_IS, cells, sides).unwrap();
    Problem {
        potential: analytic::built_in(Model::SuttonChen, "Cu").unwrap(),
        partition: Partition::with_blocks(&crystal, blocks).unwrap(),
        crystal,
        skin: 0.4,
        method: Method::Cg,
        opposite: 12,
        steps: vec![Step::new(
            "1",
            vec![Aberration::Vacancy { ids: vec![17] }, Aberration::Shake { by: 0.06 }],
            Limits { max_force: 1e-6, evaluations: 12, ..Limits::default() },
        )],
    }
}

type Drive = fn(&mut Driver, &Problem, &Written<'_>) -> Result<Outcome, RunError>;

fn run(problem: &Problem, pes: &[u32], speeds: &[f64], drive: Drive) -> Outcome {
    let program = Program::new("statics", "1").chare::<CBlock>().chare::<Replica>();
    let mix = InProcess::new(pes).speeds(speeds).always_pup();
    program.run_in_process(&mix, |main| drive(main, problem, &Written::nothing(problem))).unwrap()
}

fn serial(problem: &Problem) -> Outcome {
    run(problem, &[1], &[1.0], drive::serial)
}

/// One to seven nodes of unequal PEs and speeds.
const MIXES: [(&[u32], &[f64]); 5] = [
    (&[2, 1], &[1.0, 0.8, 0.3]),
    (&[1; 7], &[1.0, 0.55, 0.25, 0.8, 0.37, 0.1, 0.63]),
    (&[1], &[1.0]),
    (&[1, 2, 1], &[0.25, 1.0, 1.0, 0.55]),
    (&[1, 1, 3, 1, 1], &[1.0, 0.1, 0.5, 0.5, 0.5, 0.9, 0.7]),
];

/// The first so many mixes give what one thread does, in both modes; what that is.
fn agrees(problem: &Problem, mixes: usize) -> Outcome {
    let expected = serial(problem);
    let last = &expected.taken.steps.last().unwrap().last;
    assert!(last.evaluations > 3 && last.energy < 0.0, "{expected:?}");
    for (pes, speeds) in MIXES.into_iter().take(mixes) {
        for drive in [drive::cblocks, drive::replicated] {
            let found = run(problem, pes, speeds, drive);
            assert_eq!(found.digest, expected.digest, "{pes:?}");
            assert!(found.taken == expected.taken, "{pes:?}: {found:?} and not {expected:?}");
        }
    }
    expected
}

#[test]
fn a_periodic_crystal_with_a_vacancy_relaxes_to_the_same_bits_on_any_mix() {
    agrees(&problem([6, 5, 4], [3, 2, 2], [Side::Periodic; 3]), MIXES.len());
}

/// Thin enough that atoms feel several images of their own block.
#[test]
fn so_does_a_thin_one_with_shells() {
    let shells = Side::Shells { buffer: 3.7, fixed: 3.7 };
    let mut problem = problem([8, 7, 1], [3, 2, 1], [shells, shells, Side::Periodic]);
    problem.steps[0].disturb[0] = Aberration::Vacancy { ids: vec![8 * 4 * 3 + 14] };
    agrees(&problem, 2);
}

#[test]
fn so_do_all_ways_down_with_lists_built_anew_often() {
    for method in [Method::Lbfgs, Method::Fire] {
        let mut problem = problem([4, 4, 4], [2, 2, 2], [Side::Periodic; 3]);
        (problem.method, problem.skin) = (method, 0.05);
        problem.steps[0].limits.evaluations = 25;
        agrees(&problem, 2);
        let found = run(&problem, &[1, 1], &[1.0, 1.0], drive::cblocks);
        assert!(found.tables.unwrap().rebuilds > 2, "{method:?}");
    }
}

/// Box after box, with an atom put into one that is no longer as long as the crystal was.
#[test]
fn so_do_boxes_that_are_stretched_until_there_is_no_pressure() {
    let mut problem = problem([4, 5, 4], [2, 2, 1], [Side::Periodic; 3]);
    let limits = Limits { max_force: 1e-3, ..Limits::default() };
    let interstitial = Aberration::Interstitial { at: [5.4, 9.0, 5.5], element: "Cu".into() };
    let mut steps = [
        Step::new("1", vec![Aberration::Vacancy { ids: vec![17] }], limits),
        Step::new("2", vec![interstitial], limits),
    ];
    (steps[0].groups, steps[0].max_pressure) = (vec![vec![0], vec![1, 2]], 0.01);
    (steps[1].groups, steps[1].max_pressure) = (vec![vec![0, 1, 2]], 0.01);
    problem.steps = steps.into();
    let found = agrees(&problem, 2).taken.steps;
    let volume = |n: usize| found[n].bounds.volume() / problem.crystal.bounds().volume();
    assert!(volume(0) > 1.001 && volume(1) > 1.001 * volume(0), "{found:?}");
    assert!(found.iter().all(|step| step.stop.is_minimum()), "{found:?}");
    let [x, y, ..] = found[0].pressure.unwrap();
    assert!(x.abs() < 0.01 && y.abs() < 0.01, "{found:?}");
}

/// What was expected of memory and pairs before, against what came.
#[test]
fn expected_memory_and_pairs_are_about_what_comes() {
    for (cells, blocks) in [([10, 10, 10], [2, 2, 2]), ([12, 6, 6], [4, 1, 1])] {
        let mut problem = problem(cells, blocks, [Side::Periodic; 3]);
        problem.steps[0].disturb.remove(0);
        let found = run(&problem, &[2], &[1.0, 1.0], drive::cblocks).tables.unwrap();
        let expected = memory::Needed::of(&problem).blocks;
        // When all have told what they hold, nothing is on the way.
        let kept = |block: &memory::Expected| block.bytes - block.ghosts * memory::ON_THE_WAY_BYTES;
        let bytes: u64 = expected.iter().map(kept).sum();
        let pairs: u64 = expected.iter().map(|block| block.pairs).sum();
        let ratio = bytes as f64 / found.nodes[0].bytes as f64;
        assert!((0.95..1.12).contains(&ratio), "{ratio} of the bytes");
        let ratio = pairs as f64 / found.pairs as f64;
        assert!((0.85..1.25).contains(&ratio), "{ratio} of the pairs");
    }
}

fn any_blocks() -> impl Strategy<Value = (Vec<Block>, Bounds, f64)> {
    let place = prop::array::uniform3(0.0f64..1.0);
    let atoms = prop::collection::vec((place, 0u8..4), 0..14);
    let bounds =
        (prop::array::uniform3(3.0f64..20.0), prop::array::uniform3(-2.0f64..2.0), any::<[bool; 3]>());
    (prop::collection::vec(atoms, 1..6), bounds, 1.0f64..7.0).prop_map(
        |(blocks, (lengths, tilt, periodic), reach)| {
            let bounds = Bounds { lengths, tilt, periodic };
            let mut id = 0;
            let mut atom = |(at, class): ([f64; 3], u8)| {
                id += 1;
                let class = [Class::Free, Class::Buffer, Class::Fixed, Class::Removed][usize::from(class)];
                Atom { id, at: std::array::from_fn(|k| at[k] * lengths[k]), species: (id % 3) as u8, class }
            };
            let blocks = blocks.into_iter().map(|atoms| Block::new(atoms.into_iter().map(&mut atom)));
            (blocks.collect(), bounds, reach)
        },
    )
}

proptest! {
    /// Whoever sends is expected, with as many numbers, and nobody else is; the ghosts are those of one thread; and no
    /// atom goes to a node twice.
    #[test]
    fn send_tables_are_receive_tables((mut blocks, bounds, reach) in any_blocks()) {
        let extents: Vec<Option<Extent>> = blocks.iter().map(Block::extent).collect();
        // Each atom is known by its slope.
        blocks.iter_mut().for_each(|block| block.slope = block.ids.iter().map(|&id| id as f64).collect());
        let all = |me| audiences(&blocks[me], me, &extents, (&bounds, reach), |block| block % 2);
        let sent: Vec<_> = (0..blocks.len()).map(all).collect();
        for (block, (audience, _)) in blocks.iter().zip(&sent).flat_map(|(b, to)| to.iter().map(move |to| (b, to))) {
            let slopes = audience.slopes(block).unwrap_or_default();
            prop_assert!(slopes.iter().map(|slope| slope.to_bits()).collect::<BTreeSet<_>>().len() == slopes.len());
        }
        for me in 0..blocks.len() {
            let mut mine = sources(me, &extents, &bounds, reach);
            let from: Vec<u32> = (0..blocks.len() as u32)
                .filter(|&from| sent[from as usize].iter().any(|to| to.0.blocks.contains(&(me as u32))))
                .collect();
            prop_assert_eq!(&from, &mine.iter().map(|source| source.block).collect::<Vec<_>>());
            let to_me = |from: u32| {
                let (to, told) = sent[from as usize].iter().find(|to| to.0.node == me as u32 % 2).unwrap();
                (to, told[to.blocks.binary_search(&(me as u32)).unwrap()].clone())
            };
            let told: Vec<Features> = from.iter().map(|&from| to_me(from).1).collect();
            let mut block = blocks[me].clone();
            prop_assert!(take_features(&mut block, &mut mine, told));
            let (mut ghosts, mut expected) = (Vec::new(), Vec::new());
            for (other, image) in influence(&extents, me, &bounds, reach) {
                let shift = bounds.shift(image);
                for i in blocks[other].felt_in(&extents[me].unwrap(), shift, reach) {
                    let i = i as usize;
                    let at: [f64; 3] = std::array::from_fn(|k| blocks[other].at[i][k] + shift[k]);
                    ghosts.push((at, blocks[other].species[i], blocks[other].classes[i]));
                    let is_computed = blocks[other].classes[i] < Class::Fixed;
                    expected.push(if is_computed { blocks[other].slope[i] } else { 0.0 });
                }
            }
            let own = block.own();
            let had: Vec<_> =
                (own..own + block.ghosts()).map(|i| (block.at[i], block.species[i], block.classes[i])).collect();
            prop_assert_eq!(had, ghosts);
            // An evaluation: what comes of places and slopes is what is awaited.
            let there = |block: &Block| block.at[own..].iter().flatten().map(|x| x.to_bits()).collect::<Vec<_>>();
            let before = there(&block);
            for (source, &from) in mine.iter().zip(&from) {
                let places = to_me(from).0.places(&blocks[from as usize]);
                prop_assert_eq!(places.is_some(), source.sends_places());
                prop_assert!(places.is_none_or(|places| source.take_places(&mut block, &places)));
                let slopes = to_me(from).0.slopes(&blocks[from as usize]);
                prop_assert_eq!(slopes.is_some(), source.sends_slopes());
                prop_assert!(slopes.is_none_or(|slopes| source.take_slopes(&mut block, &slopes)));
            }
            prop_assert_eq!(before, there(&block));
            prop_assert_eq!(block.ghost_slopes(), &expected[..]);
        }
        // A message of another length is noticed.
        if let Some(block) = blocks.first_mut() {
            let mut own = sources(0, &extents, &bounds, reach);
            let told: Vec<Features> = Vec::new();
            prop_assert_eq!(take_features(block, &mut own, told), own.is_empty());
        }
    }
}

/// Rows of table 5.6: free atoms, nodes, ratio, max owned, max needed (4946 is a misprint of 4956).
#[rustfmt::skip]
const TABLE_5_6: [(u64, usize, f64, u64, u64); 21] = [
    (320_000, 30, 0.31, 11_564, 4956), (320_000, 40, 0.41, 8673, 5782), (320_000, 50, 0.43, 7021, 4956),
    (320_000, 60, 0.51, 5782, 5782), (320_000, 70, 0.52, 4956, 4956), (320_000, 80, 0.67, 4543, 8673),
    (320_000, 90, 0.68, 4130, 7847), (405_000, 40, 0.34, 11_112, 5556), (405_000, 50, 0.42, 8797, 6019),
    (405_000, 60, 0.51, 7408, 7408), (405_000, 70, 0.52, 6482, 6482), (405_000, 80, 0.52, 5556, 5556),
    (405_000, 90, 0.68, 5093, 9723), (500_000, 50, 0.41, 10_773, 7182), (500_000, 60, 0.41, 9234, 6156),
    (500_000, 70, 0.53, 7695, 8208), (500_000, 80, 0.54, 6669, 7182), (500_000, 90, 0.52, 6156, 6156),
    (720_000, 70, 0.41, 11_034, 7356), (720_000, 80, 0.52, 9808, 9808), (720_000, 90, 0.52, 8582, 8582),
];

/// The thesis's geometry: 2 (m + 13) planes of m + 13 atoms, slabs of at least 5.4 planes, equally many on each node.
/// Who feels whom and how atoms are counted is what runs use.
#[test]
fn table_5_6_comes_out() {
    const REACH: f64 = 5.4;
    for (free, nodes, ratio, owned, needed) in TABLE_5_6 {
        let atoms = (free as f64 / 2.0).sqrt() as u64 + 13;
        let planes = 2 * atoms;
        let per_node = ((planes as f64 / nodes as f64 / REACH + 1e-9) as usize).max(1);
        let blocks = per_node * nodes;
        let thickness = planes as f64 / blocks as f64;
        let slab = |n: usize| Extent {
            low: [n as f64 * thickness + 1e-9, 0.0, 0.0],
            high: [(n + 1) as f64 * thickness - 1e-9, 1.0, 1.0],
        };
        let extents: Vec<Option<Extent>> = (0..blocks).map(|n| Some(slab(n))).collect();
        let bounds = Bounds { lengths: [planes as f64, 1.0, 1.0], tilt: [0.0; 3], periodic: [false; 3] };
        let mut figures: Vec<Figures> = (0..blocks)
            .map(|n| Figures {
                pe: (n / per_node) as u32,
                sources: sources(n, &extents, &bounds, REACH).iter().map(|s| s.block).collect(),
                ..Figures::default()
            })
            .collect();
        for plane in 0..planes {
            let slab = ((plane as f64 + 0.5) / thickness) as usize;
            figures[slab.min(blocks - 1)].atoms[0] += atoms;
        }
        let names: Vec<_> = (0..nodes as u32).map(|n| (n.to_string(), n..n + 1)).collect();
        let tables = account::tables(&figures, &names, Some(1.0));
        let most = |of: fn(&account::NodeFigures) -> u64| tables.nodes.iter().map(of).max().unwrap();
        assert_eq!((most(|n| n.owned), most(|n| n.needed)), (owned, needed), "{free} on {nodes}");
        let ratios = tables.nodes.iter().map(|n| n.needed as f64 / n.total as f64);
        let largest = ratios.fold(0.0, f64::max);
        assert!((largest - ratio).abs() < 0.0101, "{free} on {nodes}: {largest}");
    }
}

/// Memory per node falls as 1/p, but for the skin of blocks that each node needs.
#[test]
fn what_a_node_holds_falls_with_the_nodes() {
    let problem = problem([40, 40, 40], [4, 4, 4], [Side::Periodic; 3]);
    let needed = memory::Needed::of(&problem);
    let bytes = |nodes: usize| {
        let owners = distribution::distribute(&needed.load, &Part::each(&vec![1.0; nodes])).unwrap().owners;
        let blocks = || needed.blocks.iter().zip(&owners);
        let of = |node: u32| blocks().filter(|b| *b.1 == node).map(|b| b.0.bytes).sum::<u64>();
        (0..nodes as u32).map(of).max().unwrap() as f64
    };
    for nodes in [2, 4, 8, 16, 32] {
        let part = bytes(nodes) * nodes as f64 / bytes(1);
        assert!((0.99..1.07).contains(&part), "{nodes} nodes: {part}");
    }
}
