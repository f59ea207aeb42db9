//! The flux solver against vectors worked out elsewhere, against the scheme that diverges, and against itself on many PEs.

use super::*;
use crate::balance::diffusion::cell::{Cell, Note};
use crate::balance::diffusion::flux::{End, Flux, Link, Shift, Until, difference};
use crate::balance::diffusion::slots::{share, spend};
use crate::balance::diffusion::{Diffusion, Topology};
use crate::balance::patterns::{clustered, grains};
use crate::balance::random::Random;
use proptest::prelude::*;
use std::collections::BTreeMap;

const RING_4: [(u32, u32); 4] = [(0, 1), (0, 3), (1, 2), (2, 3)];
const RING_8: [(u32, u32); 8] = [(0, 1), (0, 7), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7)];
const RING_8_LOADS: [f64; 8] = [40e3, 12e3, 30e3, 8e3, 2e3, 16e3, 9e3, 5e3];

fn flux(loads: &[f64], links: &[(u32, u32)]) -> Flux {
    let links = links.iter().map(|(low, high)| Link::free(*low, *high)).collect();
    Flux { loads: loads.to_vec(), speeds: vec![1.0; loads.len()], links }
}

/// Each PE may give a part of its load, spread evenly over its links, or over each.
fn limited(mut flux: Flux, part: f64, is_spread: bool) -> Flux {
    let degree = |pe: u32| flux.links.iter().filter(|link| link.low == pe || link.high == pe).count() as f64;
    let give = |pe: u32| part * flux.loads[pe as usize] / if is_spread { degree(pe) } else { 1.0 };
    let limits: Vec<(f64, f64)> = flux.links.iter().map(|link| (-give(link.high), give(link.low))).collect();
    flux.links.iter_mut().zip(limits).for_each(|(link, (least, most))| {
        (link.least, link.most) = (least, most);
    });
    flux
}

fn torus(sides: &[u32], coloured: bool) -> Flux {
    let loads: Vec<f64> = clustered(sides).into_iter().map(|load| load as f64).collect();
    flux(&loads, &Topology::Torus(sides.to_vec()).links(loads.len() as u32, coloured))
}

const EACH_ROUND: Until = Until { tolerance: 0.001, rounds: 100, check_every: 1 };

fn fluxes(flux: &Flux) -> Vec<f64> {
    flux.links.iter().map(|link| link.flux).collect()
}

fn most(flux: &Flux) -> f64 {
    flux.longest() / (flux.loads.iter().sum::<f64>() / flux.loads.len() as f64)
}

fn near(found: &[f64], expected: &[f64], by: f64) {
    let is_near = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() <= by);
    assert!(is_near, "{found:?} instead of {expected:?}");
}

/// The scheme that does not converge: all PEs see loads as they were before the round, except their own.
fn stale_round(flux: &mut Flux) -> Shift {
    let before = flux.loads.clone();
    let mut coming = vec![0.0; before.len()];
    let mut shift = Shift::default();
    for link in &mut flux.links {
        let (low, high) = (link.low as usize, link.high as usize);
        let work = link.level_out((flux.loads[low], 1.0), (before[high], 1.0));
        flux.loads[low] -= work;
        coming[high] += work;
        shift = shift.max(Shift::of(work, 1.0, 1.0));
    }
    flux.loads.iter_mut().zip(coming).for_each(|(load, coming)| *load += coming);
    shift
}

/// The same without the guard that finds it out: how many rounds there were.
fn stale(flux: &mut Flux, tolerance: f64) -> u32 {
    let mean = flux.loads.iter().sum::<f64>() / flux.loads.len() as f64;
    (1..=100).find(|_| stale_round(flux).work < tolerance * mean).unwrap_or(100)
}

#[test]
fn a_ring_of_four_is_solved_step_by_step() {
    let mut ring = flux(&[100.0, 20.0, 60.0, 20.0], &RING_4);
    ring.round();
    assert_eq!(
        (fluxes(&ring), &ring.loads[..]),
        (vec![40.0, 20.0, 0.0, 10.0], &[40.0, 60.0, 50.0, 50.0][..])
    );
    let mut ring = flux(&[100.0, 20.0, 60.0, 20.0], &RING_4);
    let ended = ring.solve(EACH_ROUND);
    assert_eq!((ended.rounds, ended.by), (3, End::Converged));
    assert_eq!((&ring.loads[..], fluxes(&ring)), (&[50.0; 4][..], vec![30.0, 20.0, 0.0, 10.0]));
    let mut bulk = flux(&[100.0, 20.0, 60.0, 20.0], &RING_4);
    assert_eq!(stale(&mut bulk, 0.001), 24);
}

#[test]
fn a_ring_of_four_keeps_its_limits() {
    let mut ring = flux(&[100.0, 20.0, 60.0, 20.0], &RING_4);
    let limits = [(-5.0, 30.0), (-5.0, 10.0), (-8.0, 5.0), (-5.0, 12.0)];
    ring.links.iter_mut().zip(limits).for_each(|(link, limits)| (link.least, link.most) = limits);
    let mut bulk = ring.clone();
    assert_eq!(ring.solve(EACH_ROUND).rounds, 3);
    assert_eq!(
        (&ring.loads[..], fluxes(&ring)),
        (&[60.0, 49.0, 49.0, 42.0][..], vec![30.0, 10.0, 1.0, 12.0])
    );
    assert_eq!(stale(&mut bulk, 0.001), 5);
}

#[test]
fn speeds_are_weights() {
    let start = Flux { speeds: vec![1.0, 2.0, 1.0, 4.0], ..flux(&[100.0, 20.0, 60.0, 20.0], &RING_4) };
    let mut ring = start.clone();
    let rounds = (1..).find(|_| ring.round().work < 0.001 * 50.0);
    assert_eq!(rounds, Some(7));
    near(&ring.loads, &[24.999, 50.005, 24.999, 99.997], 0.0005);
    near(&fluxes(&ring), &[30.458, 44.544, 0.453, 35.454], 0.0005);
    let mut ring = start;
    assert_eq!(ring.solve(EACH_ROUND).by, End::Converged);
    for (load, ideal) in ring.loads.iter().zip([25.0, 50.0, 25.0, 100.0]) {
        assert!((load - ideal).abs() <= 0.001 * ideal, "{:?}", ring.loads);
    }
}

#[test]
fn tolerance_decides_on_rounds() {
    let solved = |tolerance: f64| {
        let mut ring = flux(&RING_8_LOADS, &RING_8);
        (ring.solve(Until { tolerance, ..EACH_ROUND }).rounds, most(&ring))
    };
    let stale = |tolerance: f64| {
        let mut ring = flux(&RING_8_LOADS, &RING_8);
        stale(&mut ring, tolerance)
    };
    let ((fine, fine_most), (coarse, coarse_most)) = (solved(0.001), solved(0.005));
    assert_eq!((fine, coarse, stale(0.001), stale(0.005)), (13, 10, 63, 42));
    near(&[fine_most, coarse_most], &[1.00042, 1.00189], 5e-6);
}

#[test]
fn a_ring_of_eight_with_a_fifth_to_give() {
    let mut ring = limited(flux(&RING_8_LOADS, &RING_8), 0.2, false);
    assert_eq!(ring.solve(EACH_ROUND).rounds, 4);
    near(&ring.loads, &[24e3, 22e3, 22e3, 12.4e3, 6.8e3, 11.4e3, 11.4e3, 12e3], 1e-6);
    near(&fluxes(&ring), &[8e3, 8e3, -2e3, 6e3, 1.6e3, -3.2e3, 1.4e3, -1e3], 1e-6);
    near(&[most(&ring)], &[1.57377], 5e-6);
}

#[test]
fn a_torus_is_exact_by_colour_and_slower_by_number() {
    let mut coloured = torus(&[4, 4, 4], true);
    let ended = coloured.solve(EACH_ROUND);
    assert_eq!((ended.rounds, most(&coloured)), (2, 1.0), "one round, and one to see it");
    let mut listed = torus(&[4, 4, 4], false);
    let after: BTreeMap<u32, f64> =
        (1..=11).map(|round| (round, (listed.round(), most(&listed)).1)).collect();
    near(&[after[&1], after[&2], after[&3], after[&11]], &[2.734656, 1.637893, 1.291977, 1.000384], 5e-7);
    assert_eq!(torus(&[4, 4, 4], false).solve(EACH_ROUND).rounds, 11);
}

#[test]
fn colours_need_fewer_rounds() {
    let rounds = |sides: &[u32]| {
        let until = Until { rounds: 1000, ..EACH_ROUND };
        [false, true].map(|coloured| torus(sides, coloured).solve(until).rounds)
    };
    let found = [rounds(&[8]), rounds(&[8, 8]), rounds(&[8, 8, 8]), rounds(&[10, 10, 10])];
    assert_eq!(found, [[14, 11], [17, 11], [21, 10], [27, 16]]);
}

/// Loads of a torus of 4 by 4 by 4 within a tenth of each other.
const NEARLY_EVEN: [u16; 64] = [
    960, 1040, 963, 907, 1005, 1080, 1066, 978, 914, 905, 949, 1027, 1072, 1065, 1007, 920, 965, 958, 1070,
    1008, 994, 958, 1026, 908, 1078, 986, 1083, 1007, 992, 1074, 1001, 950, 901, 974, 1089, 1029, 917, 952,
    1026, 951, 979, 1096, 949, 959, 1019, 956, 967, 1094, 975, 927, 1059, 1026, 1056, 947, 957, 1024, 1006,
    1070, 914, 1052, 937, 1000, 913, 954,
];

#[test]
fn loads_of_before_the_round_make_it_diverge() {
    let mut ring = torus(&[8], false);
    assert_eq!(stale(&mut ring, 0.001), 28);
    near(&[most(&ring)], &[1.00091], 5e-6);
    let mut free = torus(&[4, 4, 4], false);
    let after: BTreeMap<u32, f64> =
        (1..=10).map(|round| (round, (stale_round(&mut free), most(&free)).1)).collect();
    near(&[after[&1], after[&2], after[&3], after[&5]], &[2.7327, 3.6152, 7.9752, 47.1743], 5e-5);
    near(&[after[&10]], &[11794.0008], 0.1);
    let loads = NEARLY_EVEN.map(f64::from);
    let links = Topology::Torus(vec![4; 3]).links(64, false);
    for (part, serial_ends, stale_ends) in [
        (0.1, (10, 1.0024), (100, 1.1550)),
        (0.05, (7, 1.0479), (100, 1.0479)),
        (0.02, (4, 1.0810), (12, 1.0810)),
    ] {
        let start = limited(flux(&loads, &links), part, true);
        let mut serial = start.clone();
        assert_eq!(serial.solve(EACH_ROUND).rounds, serial_ends.0);
        let mut bulk = start;
        assert_eq!(stale(&mut bulk, 0.001), stale_ends.0);
        near(&[most(&serial), most(&bulk)], &[serial_ends.1, stale_ends.1], 5e-5);
    }
}

#[test]
fn divergence_is_found_by_the_second_round_and_taken_back() {
    let start = torus(&[4, 4, 4], false);
    let mut guarded = start.clone();
    let ended = guarded.run(Until::default(), stale_round);
    assert_eq!((ended.rounds, ended.by), (2, End::Diverged));
    assert_eq!(guarded, start);
    // A shift with a wrong sign loses work or makes the late later: found at once.
    let mut wrong = start.clone();
    let ended = wrong.run(EACH_ROUND, |flux| {
        for link in &flux.links {
            let (low, high) = (link.low as usize, link.high as usize);
            let work = difference((flux.loads[low], 1.0), (flux.loads[high], 1.0));
            flux.loads[low] += work;
            flux.loads[high] -= work;
        }
        Shift::default()
    });
    assert_eq!((ended.rounds, ended.by, wrong), (1, End::Diverged, start));
}

#[test]
fn looking_seldom_saves_reductions() {
    let looks = |check_every: u32| {
        let mut flux = torus(&[4, 4, 4], false);
        let ended = flux.solve(Until { check_every, ..EACH_ROUND });
        assert_eq!(ended.by, End::Converged);
        // One more reduction for the mean.
        (ended.rounds, 11 * (ended.checks + 1))
    };
    assert_eq!((looks(1), looks(4), looks(8)), ((11, 132), (12, 44), (16, 33)));
}

#[test]
fn neighbours_are_those_of_the_grid() {
    let places = |sides: &[u32]| {
        let count = sides.iter().product();
        Topology::Torus(sides.to_vec()).neighbours(0, count).len() + 1
    };
    assert_eq!([places(&[5]), places(&[5, 5]), places(&[5, 5, 5])], [3, 5, 7]);
    assert_eq!([places(&[2]), places(&[2, 2, 2]), places(&[1]), places(&[1, 4])], [2, 4, 1, 3]);
    let links = |side: u32| Topology::Torus(vec![side; 3]).links(side * side * side, true).len();
    assert_eq!((links(4), links(10)), (192, 3000));
}

fn any_topology() -> impl Strategy<Value = (Topology, u32)> {
    let torus = prop::collection::vec(1u32..7, 1..4).prop_map(|sides| {
        let count = sides.iter().product();
        (Topology::Torus(sides), count)
    });
    prop_oneof![
        torus,
        (1u32..150).prop_map(|count| (Topology::Hypercube, count)),
        (1u32..600).prop_map(|count| (Topology::Circulant, count)),
    ]
}

/// All PEs solve it by messages, which arrive in any order: loads and fluxes.
fn by_messages(flux: &Flux, topology: &Topology, rounds: u32, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let count = flux.loads.len() as u32;
    let limits: BTreeMap<(u32, u32), (f64, f64)> =
        flux.links.iter().map(|link| ((link.low, link.high), (-link.least, link.most))).collect();
    let cell = |pe: u32| {
        let can_give = |other: u32| {
            if other > pe { limits[&(pe, other)].1 } else { limits[&(other, pe)].0 }
        };
        let ends: Vec<(u32, f64)> =
            topology.neighbours(pe, count).iter().map(|end| (end.pe, can_give(end.pe))).collect();
        Cell::new(pe, flux.loads[pe as usize], flux.speeds[pe as usize], &ends)
    };
    let mut cells: Vec<Cell> = (0..count).map(cell).collect();
    let mut random = Random::new(seed);
    let mut flying: Vec<(u32, u32, Note)> = Vec::new();
    for pe in 0..count {
        cells[pe as usize].begin(rounds, &mut |to, note| flying.push((pe, to, note)));
    }
    while !flying.is_empty() {
        let (from, to, note) = flying.swap_remove(random.below(flying.len() as u64) as usize);
        cells[to as usize].handle(from, note, &mut |next, note| flying.push((to, next, note)));
    }
    assert!(cells.iter().all(Cell::is_done));
    let of_link = |link: &Link| {
        let mut fluxes = cells[link.low as usize].fluxes();
        fluxes.find(|(other, _)| *other == link.high).unwrap().1
    };
    (cells.iter().map(Cell::load).collect(), flux.links.iter().map(of_link).collect())
}

proptest! {
    #[test]
    fn links_of_a_colour_have_no_pe_in_common((topology, count) in any_topology()) {
        let mut seen = BTreeSet::new();
        let mut links = 0;
        for pe in 0..count {
            let neighbours = topology.neighbours(pe, count);
            links += neighbours.len();
            prop_assert!(topology == Topology::Hypercube || neighbours.len() <= 6);
            for other in neighbours {
                prop_assert!(seen.insert((pe, other.colour)), "PE {} has two links of a colour", pe);
                let back = topology.neighbours(other.pe, count);
                prop_assert!(back.iter().any(|end| end.pe == pe && end.colour == other.colour));
            }
        }
        prop_assert_eq!(topology.links(count, true).len() * 2, links);
    }

    #[test]
    fn pes_that_exchange_messages_get_the_bits_of_the_serial_solver(
        (topology, count) in any_topology(),
        seed: u64,
        part in prop::option::of(0.05f64..1.0),
    ) {
        let mut random = Random::new(seed);
        let loads: Vec<f64> = (0..count).map(|_| (100 + random.below(1900)) as f64).collect();
        let mut start = flux(&loads, &topology.links(count, true));
        start.speeds = (0..count).map(|_| [0.25, 0.5, 1.0, 0.7][random.below(4) as usize]).collect();
        let start = part.map_or(start.clone(), |part| limited(start, part, true));
        let mut serial = start.clone();
        (0..5).for_each(|_| _ = serial.round());
        let (loads, found) = by_messages(&start, &topology, 5, seed);
        prop_assert_eq!(&loads, &serial.loads);
        prop_assert_eq!(found, fluxes(&serial));
        // Links of one colour in any order.
        let mut reversed = start;
        let colours = |link: &(u32, u32)| {
            topology.neighbours(link.0, count).into_iter().find(|end| end.pe == link.1).unwrap().colour
        };
        let mut order: Vec<usize> = (0..reversed.links.len()).collect();
        order.sort_by_key(|at| {
            let link = &reversed.links[*at];
            (colours(&(link.low, link.high)), std::cmp::Reverse(*at))
        });
        reversed.links = order.iter().map(|at| reversed.links[*at]).collect();
        (0..5).for_each(|_| _ = reversed.round());
        prop_assert_eq!(&loads, &reversed.loads);
    }

    #[test]
    fn work_is_conserved_and_limits_are_kept(seed: u64, part in 0.01f64..1.0, speeds: bool) {
        let mut random = Random::new(seed);
        let loads: Vec<f64> = (0..64).map(|_| random.below(2000) as f64).collect();
        let mut flux = limited(flux(&loads, &Topology::Circulant.links(64, seed % 2 == 0)), part, true);
        if speeds {
            flux.speeds.iter_mut().for_each(|speed| *speed = 0.1 + random.part());
        }
        let total: f64 = loads.iter().sum();
        for _ in 0..20 {
            let before = flux.longest();
            flux.round();
            prop_assert!(flux.longest() <= before * (1.0 + 1e-12));
            prop_assert!((flux.loads.iter().sum::<f64>() - total).abs() <= 1e-9 * total);
            let is_kept = |link: &Link| (link.least..=link.most).contains(&link.flux);
            prop_assert!(flux.links.iter().all(is_kept) && flux.loads.iter().all(|load| *load >= -1e-9));
        }
    }
}

#[test]
fn messages_in_a_hundred_orders_give_the_same_bits() {
    let mut serial = torus(&[4, 4, 4], true);
    let start = serial.clone();
    (0..10).for_each(|_| _ = serial.round());
    for seed in 0..100 {
        let found = by_messages(&start, &Topology::Torus(vec![4; 3]), 10, seed);
        assert_eq!(found, (serial.loads.clone(), fluxes(&serial)), "seed {seed}");
    }
}

/// The hand-out of budgets that gathers all that all hold, P times P numbers of it.
fn handed_out(locals: &[Vec<u64>], mut budget: Vec<u64>) -> Vec<Vec<u64>> {
    let mut of_one = |held: &Vec<u64>| {
        let take = |(left, held): (&mut u64, &u64)| {
            let taken = (*left).min(*held);
            *left -= taken;
            taken
        };
        budget.iter_mut().zip(held).map(take).collect()
    };
    locals.iter().map(&mut of_one).collect()
}

/// Each holder by itself, from the sum of those before it.
fn shared(locals: &[Vec<u64>], budget: &[u64]) -> Vec<Vec<u64>> {
    let mut before = vec![0; budget.len()];
    let mut of_one = |held: &Vec<u64>| {
        let own = (0..budget.len()).map(|slot| share(budget[slot], before[slot], held[slot])).collect();
        before.iter_mut().zip(held).for_each(|(before, held)| *before += held);
        own
    };
    locals.iter().map(&mut of_one).collect()
}

#[test]
fn shares_of_budgets_are_those_of_the_sequential_hand_out() {
    let locals = [vec![10, 4], vec![6, 0], vec![0, 8]];
    assert_eq!(shared(&locals, &[12, 6]), [[10, 4], [2, 0], [0, 2]]);
    assert_eq!(handed_out(&locals, vec![12, 6]), shared(&locals, &[12, 6]));
    let mut random = Random::new(3);
    for _ in 0..20_000 {
        let (holders, slots) = (1 + random.below(8), 1 + random.below(11));
        let locals: Vec<Vec<u64>> =
            (0..holders).map(|_| (0..slots).map(|_| random.below(50)).collect()).collect();
        let total = |slot: usize| locals.iter().map(|held| held[slot]).sum::<u64>();
        let budget: Vec<u64> = (0..slots as usize).map(|slot| random.below(total(slot) + 1)).collect();
        let found = shared(&locals, &budget);
        assert_eq!(found, handed_out(&locals, budget.clone()));
        let sums: Vec<u64> = (0..budget.len()).map(|slot| found.iter().map(|own| own[slot]).sum()).collect();
        assert_eq!(sums, budget);
    }
}

#[test]
fn the_heaviest_first_leaves_less_of_a_budget() {
    let mut random = Random::new(5);
    let trials = 20_000;
    let mut no_worse = 0;
    for _ in 0..trials {
        let mut loads: Vec<f64> = (0..3 + random.below(37)).map(|_| (1 + random.below(99)) as f64).collect();
        let budget = random.below(loads.iter().sum::<f64>() as u64) as f64;
        let given = spend(budget, loads.iter().copied());
        loads.sort_by(|one, other| other.total_cmp(one));
        let sorted = spend(budget, loads.iter().copied());
        let taken: f64 = sorted.taken.iter().map(|at| loads[*at]).sum();
        assert!(taken <= budget && (taken + sorted.left - budget).abs() < 1e-9);
        let refused = (0..loads.len()).filter(|at| !sorted.taken.contains(at)).map(|at| loads[at]);
        assert!(refused.fold(f64::INFINITY, f64::min) > sorted.left);
        no_worse += u32::from(sorted.left <= given.left);
    }
    assert!(f64::from(no_worse) >= 0.8 * f64::from(trials), "{no_worse} of {trials}");
}

#[test]
fn a_cluster_is_spread_over_a_torus() {
    let loads = clustered(&[4, 4, 4]);
    let values: BTreeSet<u64> = loads.iter().copied().collect();
    assert_eq!((loads.iter().sum::<u64>(), values), (16_880, [102, 116, 221, 997].into()));
    let mut view = View::new(&Part::each(&[1.0; 64]), []);
    for (pe, load) in (0..).zip(&loads) {
        let chare = |load: u64| Chare { pe, load: load as f64, ..Chare::default() };
        view.chares.extend(grains(*load, 10).map(chare));
    }
    let checked = view.check().unwrap();
    assert!((checked.times.imbalance() - 3.7801).abs() < 5e-5);
    for options in
        ["topology=4x4x4", "topology=circulant", "topology=hypercube", "topology=4x4x4,order=listed"]
    {
        let decision = balancer(&format!("diffusion:{options}")).decide(&view).unwrap();
        check(&view, &decision, false);
        assert!(decision.after <= 0.45 * decision.before, "{options}: {}", decision.after);
        assert!(decision.after <= 1.1, "{options}: {}", decision.after);
    }
    // A task may go to one neighbour only, as where halos of grids overlap: less can be done, and it says what not.
    let topology = Topology::Torus(vec![4; 3]);
    let mut random = Random::new(1);
    for chare in &mut view.chares {
        let ends = topology.neighbours(chare.pe, 64);
        chare.mobility = match random.below(3) {
            0 => Mobility::Pinned,
            _ => Mobility::OneOf([ends[random.below(ends.len() as u64) as usize].pe].into()),
        };
    }
    let decision = Diffusion { topology, ..Diffusion::default() }.decide(&view).unwrap();
    check(&view, &decision, false);
    assert!((1.0..3.0).contains(&decision.after) && decision.left.work > 0.0, "{}", decision.after);
}
