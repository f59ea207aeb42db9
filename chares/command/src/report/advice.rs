//! What could have been done better, as far as the counters and speeds of a run say it.

use chares::Timeline;
use runtime::monitor::hosts::{equivalents, fastest};
use runtime::monitor::wire::{NodeSnapshot, RunInfo};
use std::collections::BTreeSet;

/// Measured speeds are known no better than this, and no node reaches all of its own in a run.
const SPREAD: f64 = 0.1;
/// Seconds that nobody would run anything again for.
const WORTH_S: f64 = 0.1;
const NOTHING: &str = "PEs had nothing to compute";

/// Sentences for whoever runs the same again.
pub(super) fn advice(
    info: &RunInfo,
    timeline: &Timeline,
    after: &[NodeSnapshot],
) -> impl Iterator<Item = String> {
    // A recording holds what was said at the end of its run.
    let is_said = timeline.remarks.iter().any(|remark| remark.contains(NOTHING));
    unused(info, after).filter(|_| !is_said).into_iter().chain(alone(info, timeline))
}

/// That the fastest node alone would have been quicker, where its measured speed says so by more than speeds are unsure.
fn alone(info: &RunInfo, timeline: &Timeline) -> Option<String> {
    // Of nodes that came or went nobody knows what they were worth.
    let has_changed = info.nodes.iter().any(|node| node.joined_s.is_some() || node.left.is_some());
    let (fastest, equivalents) = (fastest(&info.nodes)?, equivalents(&info.nodes)?);
    let (timed_s, ideal_s) = (timeline.timed()?.as_secs_f64(), timeline.ideal_seconds()?);
    // Alone it would work at no other pace than all did together.
    let alone_s = ideal_s * equivalents / timeline.pace.unwrap_or(1.0).min(1.0);
    let drift = timeline.earlier_speeds.and_then(|earlier| earlier.drift).unwrap_or_default();
    let unsure = SPREAD + drift + timeline.speeds_taken.unwrap_or_default();
    let is_quicker = info.nodes.len() > 1 && !has_changed && alone_s * (1.0 + unsure) + WORTH_S < timed_s;
    is_quicker.then(|| {
        let name = &fastest.name;
        format!(
            "{name} alone would be quicker: by its speed about {alone_s:.2} s, where the timed part took {timed_s:.2} s; \
             --only {name} tries it"
        )
    })
}

/// A sentence on PEs that have had nothing to compute wherever they were, if there are any.
fn unused(info: &RunInfo, after: &[NodeSnapshot]) -> Option<String> {
    let of_pes = || {
        let nodes = after.iter().filter(|node| node.node != 0);
        nodes.flat_map(|node| node.pes.iter().map(|pe| (node.node, pe)))
    };
    let chares = of_pes().fold(0_u64, |sum, (_, pe)| sum.saturating_add(pe.chares));
    let all: BTreeSet<u32> = of_pes().map(|(_, pe)| pe.pe).collect();
    let used: BTreeSet<u32> =
        of_pes().filter(|(_, pe)| pe.chares > 0 || pe.entries > 0).map(|(_, pe)| pe.pe).collect();
    let unused = all.len() - used.len();
    let nodes: BTreeSet<u16> =
        of_pes().filter(|(_, pe)| !used.contains(&pe.pe)).map(|(node, _)| node).collect();
    let names = info.nodes.iter().filter(|node| nodes.contains(&node.node));
    let names: Vec<&str> = names.map(|node| node.name.as_str()).collect();
    (unused > 0 && !used.is_empty()).then(|| {
        format!("{unused} of {} {NOTHING} ({}): there were {chares} chares", all.len(), names.join(", "))
    })
}
