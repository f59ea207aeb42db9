//! PEs that are about to leave the run: their chares go to those that stay, before anything is balanced.

use super::decision::{Decision, Move};
use super::earliest::Earliest;
use super::greedy::soonest;
use super::view::{Mobility, Times, View, ViewError, key};

/// Chares of PEs that leave go to others, the heaviest first, each to the PE that has it soonest and has memory for it;
/// then `decide` moves others among the PEs that stay. Chares that have no place to go stay and are counted as left.
///
/// Leaving counts against no limit but memory: what stays on the PE is lost time or lost altogether.
pub(super) fn decide(
    view: &View,
    decide: impl FnOnce(&View) -> Result<Decision, ViewError>,
) -> Result<Decision, ViewError> {
    let (owners, mut moves, left) = evacuated(view);
    let (rest, pes, chares) = remaining(view, &owners);
    // Moves that go elsewhere after all could need memory that is free later only: then the next decision makes them.
    let is_limited = view.pes.iter().any(|pe| pe.memory_bytes.is_some());
    let mut decision = if is_limited { Decision::stay(&rest.check()?) } else { decide(&rest)? };
    let by_chare = |chare: u32, moves: &[Move]| moves.binary_search_by_key(&chare, |step| step.chare);
    let out = moves.clone();
    for step in &decision.moves {
        let (chare, to) = (chares[step.chare as usize], pes[step.to as usize]);
        match by_chare(chare, &out) {
            Ok(at) => moves[at].to = to,
            Err(_) => moves.push(Move { chare, from: pes[step.from as usize], to }),
        }
    }
    decision.moves = moves;
    decision.before = Times::of(view).longest() / level_of_staying(view).max(f64::MIN_POSITIVE);
    decision.bytes = decision.moves.iter().map(|step| view.chares[step.chare as usize].bytes).sum();
    decision.left.chares += left.len() as u64;
    decision.left.work += left.iter().map(|chare| view.chares[*chare as usize].load).sum::<f64>();
    Ok(decision)
}

fn level_of_staying(view: &View) -> f64 {
    let speed: f64 = view.pes.iter().filter(|pe| !pe.is_leaving).map(|pe| pe.part.speed).sum();
    Times::of(view).work.iter().sum::<f64>() / speed
}

/// Where chares are once PEs that leave are empty, their moves by number of the chare, and the chares that found no place.
fn evacuated(view: &View) -> (Vec<u32>, Vec<Move>, Vec<u32>) {
    let mut owners: Vec<u32> = view.chares.iter().map(|chare| chare.pe).collect();
    let is_leaving = |pe: u32| view.pes[pe as usize].is_leaving;
    let mut go: Vec<u32> =
        (0..view.chares.len() as u32).filter(|chare| is_leaving(owners[*chare as usize])).collect();
    go.sort_by_key(|chare| (!key(view.chares[*chare as usize].load), *chare));
    let mut held = vec![0u64; view.pes.len()];
    view.chares.iter().for_each(|chare| {
        held[chare.pe as usize] = held[chare.pe as usize].saturating_add(chare.bytes);
    });
    let mut times = Times::of(view);
    let limited = view.pes.iter().any(|pe| pe.memory_bytes.is_some());
    let staying: Vec<u32> = (0..view.pes.len() as u32).filter(|pe| !is_leaving(*pe)).collect();
    let mut earliest = Earliest::new(&times, staying.iter().copied());
    let (mut moves, mut left) = (Vec::new(), Vec::new());
    for chare in go {
        let told = &view.chares[chare as usize];
        let fits = |pe: &u32| {
            let held = held[*pe as usize].saturating_add(told.bytes);
            !is_leaving(*pe) && view.pes[*pe as usize].memory_bytes.is_none_or(|limit| held <= limit)
        };
        let to = match &told.mobility {
            Mobility::Anywhere if !limited => earliest.for_load(&times, told.load),
            Mobility::Anywhere => soonest(&times, staying.iter().copied().filter(fits), told.load),
            Mobility::OneOf(set) => soonest(&times, set.iter().copied().filter(fits), told.load),
            Mobility::Pinned => None,
        };
        let Some(to) = to else {
            left.push(chare);
            continue;
        };
        times.work[to as usize] += told.load;
        held[to as usize] = held[to as usize].saturating_add(told.bytes);
        owners[chare as usize] = to;
        moves.push(Move { chare, from: told.pe, to });
    }
    moves.sort_by_key(|step| step.chare);
    (owners, moves, left)
}

/// The view without PEs that leave, and which of the PEs and chares it has: those that could not leave are not in it.
fn remaining(view: &View, owners: &[u32]) -> (View, Vec<u32>, Vec<u32>) {
    let pes: Vec<u32> = (0..).zip(&view.pes).filter(|(_, pe)| !pe.is_leaving).map(|(pe, _)| pe).collect();
    let chares: Vec<u32> = (0..view.chares.len() as u32)
        .filter(|chare| !view.pes[owners[*chare as usize] as usize].is_leaving)
        .collect();
    let new_pe = |pe: &u32| pes.binary_search(pe).ok().map(|at| at as u32);
    let new_chare = |chare: &u32| chares.binary_search(chare).ok().map(|at| at as u32);
    let mut rest = View {
        pes: pes.iter().map(|pe| view.pes[*pe as usize]).collect(),
        limits: view.limits,
        ..View::default()
    };
    for &chare in &chares {
        let mut told = view.chares[chare as usize].clone();
        told.pe = new_pe(&owners[chare as usize]).unwrap_or(0);
        if let Mobility::OneOf(set) = &told.mobility {
            told.mobility = Mobility::OneOf(set.iter().filter_map(new_pe).collect());
        }
        rest.chares.push(told);
        rest.places.extend(view.places.get(chare as usize));
        rest.blocks.extend(view.blocks.get(chare as usize));
    }
    let edge = |edge: &super::Edge| {
        Some(super::Edge { one: new_chare(&edge.one)?, other: new_chare(&edge.other)?, ..*edge })
    };
    rest.edges = view.edges.iter().filter_map(edge).collect();
    (rest, pes, chares)
}
