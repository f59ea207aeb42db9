//! How what is held grows with the machine: on each PE not at all, on one node not faster than the machine.

use super::*;
use crate::balance::diffusion::Topology;
use crate::balance::diffusion::cell::Cell;
use crate::balance::gossip::{Gossip, Peer};
use crate::balance::view::Checked;

const SIZES: [u32; 5] = [64, 256, 1024, 4096, 16_384];
/// Chares on each PE: a million on the largest machine.
const CHARES_EACH: u32 = 62;

/// The slope of a straight line through the logarithms.
fn slope(bytes: impl Fn(u32) -> u64) -> f64 {
    let points = SIZES.map(|pes| (f64::from(pes).ln(), (bytes(pes) as f64).ln()));
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    both / points.iter().map(|point| (point.0 - x) * (point.0 - x)).sum::<f64>()
}

/// The balancer that the thesis began with, which gathers all slots of all from all.
#[derive(Debug)]
struct Reference;

impl Balancer for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        view.owners().into()
    }

    fn bytes(&self, pes: u64, _chares: u64, _edges: u64) -> u64 {
        let slots = 7;
        size_of::<u32>() as u64 * slots * pes * pes
    }
}

/// The most that a PE holds while all PEs of such a machine solve their fluxes by messages.
fn of_cells(pes: u32) -> u64 {
    let topology = Topology::Circulant;
    let cell = |pe: u32| {
        let ends: Vec<(u32, f64)> = topology.neighbours(pe, pes).iter().map(|end| (end.pe, 1e9)).collect();
        Cell::new(pe, f64::from(pe % 97), 1.0, &ends)
    };
    let mut cells: Vec<Cell> = (0..pes).map(cell).collect();
    let mut flying = std::collections::VecDeque::new();
    (0..pes).for_each(|pe| cells[pe as usize].begin(4, &mut |to, note| flying.push_back((pe, to, note))));
    while let Some((from, to, note)) = flying.pop_front() {
        cells[to as usize].handle(from, note, &mut |next, note| flying.push_back((to, next, note)));
    }
    let total: f64 = cells.iter().map(Cell::load).sum();
    let expected: f64 = (0..pes).map(|pe| f64::from(pe % 97)).sum();
    assert!(cells.iter().all(Cell::is_done) && (total - expected).abs() < 1e-6 * expected);
    let own = u64::from(CHARES_EACH) * size_of::<Chare>() as u64;
    cells.iter().map(Cell::bytes).max().unwrap() as u64 + own
}

/// The most that a PE holds after gossip on such a machine.
fn of_peers(pes: u32) -> u64 {
    let speeds = vec![1.0; pes as usize];
    let view = View::new(&Part::each(&speeds), (0..pes).map(|pe| (pe, f64::from(pe % 7))));
    let peers = Gossip::default().heard(&view.check().unwrap());
    assert!(peers.iter().filter(|peer| peer.knows() > 0).count() as u32 > pes / 2);
    let own = u64::from(CHARES_EACH) * size_of::<Chare>() as u64;
    peers.iter().map(Peer::bytes).max().unwrap() as u64 + own
}

#[test]
fn what_a_pe_holds_does_not_depend_on_how_many_there_are() {
    for (name, of_pe) in [("diffusion", of_cells as fn(u32) -> u64), ("gossip", of_peers)] {
        let slope = slope(of_pe);
        assert!(slope.abs() <= 0.1, "{name} grows by the power of {slope}");
        assert!(of_pe(16_384) < 8192, "{name} takes {} bytes", of_pe(16_384));
    }
}

#[test]
fn what_one_node_holds_grows_like_the_machine_and_a_square_is_found_out() {
    for balancer in all() {
        let bytes = |pes: u32| balancer.bytes(u64::from(pes), u64::from(pes * CHARES_EACH), 0);
        assert!(slope(bytes) <= 1.1, "{}", balancer.name());
        assert!(bytes(16_384) < 200 << 20);
    }
    let bytes = |pes: u32| Reference.bytes(u64::from(pes), 0, 0);
    assert_eq!((bytes(1024), bytes(10_112), bytes(16_384)), (29_360_128, 2_863_071_232, 7 << 30));
    assert!((slope(bytes) - 2.0).abs() < 0.01);
}

#[test]
fn who_needs_too_much_memory_is_passed_over_and_named() {
    let cheap = balancer("diffusion");
    let (found, passed_over) =
        memory::affordable(&[&Reference, cheap.as_ref()], (4096, 100_000, 0), 64 << 20);
    assert_eq!(found.unwrap().name(), "diffusion");
    let says: Vec<String> = passed_over.iter().map(ToString::to_string).collect();
    let why = "the balancer reference needs 469762048 bytes for a decision, more than the 67108864 that it may take";
    assert_eq!(says, [why]);
    let (found, passed_over) = memory::affordable(&[cheap.as_ref()], (4096, 100_000, 0), 1 << 20);
    assert!(found.is_none() && passed_over.len() == 1);
}

#[test]
fn a_large_machine_is_balanced_by_neighbours() {
    // 16,384 PEs, every hundredth of which has ten times the work.
    let speeds = vec![1.0; 16_384];
    let view = View::new(
        &Part::each(&speeds),
        (0..16_384u32).flat_map(|pe| (0..8).map(move |_| (pe, if pe % 100 == 0 { 10.0 } else { 1.0 }))),
    );
    for name in ["diffusion", "refine", "hierarchical"] {
        let decision = balancer(name).decide(&view).unwrap();
        check(&view, &decision, false);
        assert!(decision.before > 9.0 && decision.after < 3.0, "{name}: {}", decision.after);
    }
}
