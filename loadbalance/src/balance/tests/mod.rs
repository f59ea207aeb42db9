//! Tests that all balancers pass, and what theory promises of some.

mod conformance;
mod fluxes;
mod growth;
mod quality;

use super::*;
use crate::Part;
use std::collections::BTreeSet;

/// All balancers with their default options, some with others, and each again with communication in mind.
fn all() -> Vec<Box<dyn Balancer>> {
    let plain = BALANCERS.iter().map(|named| named.name.to_owned());
    let others = [
        "diffusion:order=listed,no-new-destination,hops=2",
        "diffusion:topology=hypercube,check-every=1",
        "gossip:known=1,fan=1,phases=1,seed=9",
        "refine:tolerance=0.5",
    ];
    let mut texts: Vec<String> = plain.chain(others.map(str::to_owned)).collect();
    let aware = |text: &String| format!("{text}{}comm", if text.contains(':') { "," } else { ":" });
    let has_it = |text: &&String| !matches!(text.as_str(), "none" | "rotate");
    let aware: Vec<String> = texts.iter().filter(has_it).map(aware).collect();
    texts.extend(aware);
    texts.iter().map(|text| balancer(text)).collect()
}

fn balancer(text: &str) -> Box<dyn Balancer> {
    match text.parse().unwrap() {
        Choice::Always(balancer) => balancer,
        Choice::Auto(_) => panic!("{text} is no single balancer"),
    }
}

/// A grid of chares that talk to their neighbours.
pub(super) fn grid(side: u32, pe_count: u32, pe: impl Fn(u32) -> u32) -> View {
    let mut view =
        View::new(&Part::each(&vec![1.0; pe_count as usize]), (0..side * side).map(|chare| (pe(chare), 1.0)));
    for chare in 0..side * side {
        let (row, col) = (chare / side, chare % side);
        view.places.push([f64::from(row), f64::from(col), 0.0]);
        let mut edge = |other| view.edges.push(Edge { one: chare, other, bytes: 1, messages: 1 });
        if col + 1 < side {
            edge(chare + 1);
        }
        if row + 1 < side {
            edge(chare + side);
        }
    }
    view
}

/// What every decision keeps to, whoever made it.
fn check(view: &View, decision: &Decision, may_worsen: bool) {
    let mut seen = BTreeSet::new();
    for step in &decision.moves {
        assert!(seen.insert(step.chare), "{step:?} moves twice");
        assert!((step.chare as usize) < view.chares.len() && (step.to as usize) < view.pes.len());
        let chare = &view.chares[step.chare as usize];
        assert_eq!(chare.pe, step.from, "{step:?} is not there");
        assert_ne!(step.from, step.to, "{step:?} goes nowhere");
        assert_ne!(chare.mobility, Mobility::Pinned, "{step:?} is pinned");
        assert!(view.may_live(step.chare, step.to), "{step:?} may not be there");
        assert!(!view.pes[step.to as usize].is_leaving, "{step:?} goes to a PE that leaves");
    }
    let owners = decision.owners(view);
    let times = view::Times::with(view, &owners);
    if view.pes.iter().all(|pe| !pe.is_leaving) {
        let now = view.check().unwrap().times;
        assert!(may_worsen || times.longest() <= now.longest() * (1.0 + 1e-12), "it got worse: {decision:?}");
        assert!((decision.before - now.imbalance()).abs() <= 1e-9 * now.imbalance());
        assert!((decision.after - times.imbalance()).abs() <= 1e-9 * times.imbalance());
        check_limits(view, decision, &now);
    }
    check_memory(view, decision);
    let bytes: u64 = decision.moves.iter().map(|step| view.chares[step.chare as usize].bytes).sum();
    assert_eq!(decision.bytes, bytes);
}

fn check_limits(view: &View, decision: &Decision, now: &view::Times) {
    let node_of = view.nodes();
    let (mut left, mut entered) = (vec![0; view.pes.len()], vec![0; view.pes.len()]);
    let mut given = vec![0.0; view.pes.len()];
    for step in &decision.moves {
        let chare = &view.chares[step.chare as usize];
        let (from, to) = (step.from as usize, step.to as usize);
        given[from] += chare.load;
        if node_of[from] != node_of[to] {
            left[node_of[from]] += chare.bytes;
            entered[node_of[to]] += chare.bytes;
        }
    }
    let most = view.limits.node_bytes.unwrap_or(u64::MAX);
    assert!(left.iter().chain(&entered).all(|bytes| *bytes <= most), "too much for the wire");
    assert!(decision.moves.len() as u64 <= view.limits.moves.unwrap_or(u64::MAX));
    let flux = view.limits.flux.unwrap_or(1.0);
    for (given, work) in given.iter().zip(&now.work) {
        assert!(*given <= flux * work * (1.0 + 1e-9), "{given} of {work} given");
    }
}

fn check_memory(view: &View, decision: &Decision) {
    let mut held = vec![0; view.pes.len()];
    view.chares.iter().for_each(|chare| held[chare.pe as usize] += chare.bytes);
    for step in &decision.moves {
        let (bytes, to) = (view.chares[step.chare as usize].bytes, step.to as usize);
        held[step.from as usize] -= bytes;
        held[to] += bytes;
        let limit = view.pes[to].memory_bytes.unwrap_or(u64::MAX);
        assert!(held[to] <= limit, "on the way PE {to} holds more than its memory");
    }
}
