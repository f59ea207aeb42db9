//! What a decision takes of the memory of the node that makes it, reckoned beforehand.

use super::Balancer;
use super::view::{Chare, Edge, Pe, View};

/// Bytes for a balancer to decide on a view, about.
#[must_use]
pub fn of(balancer: &dyn Balancer, view: &View) -> u64 {
    balancer.bytes(view.pes.len() as u64, view.chares.len() as u64, view.edges.len() as u64)
}

/// What every balancer that sees the whole view needs: it grows with PEs, chares and edges, never with their products.
pub(super) const fn linear(pes: u64, chares: u64, edges: u64) -> u64 {
    let of_pe = size_of::<Pe>() as u64 + 256;
    let of_chare = size_of::<Chare>() as u64 + 48;
    let of_edge = size_of::<Edge>() as u64 + 48;
    pes.saturating_mul(of_pe)
        .saturating_add(chares.saturating_mul(of_chare))
        .saturating_add(edges.saturating_mul(of_edge))
}

/// A balancer that was passed over because a decision would take too much memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the balancer {name} needs {bytes} bytes for a decision, more than the {limit_bytes} that it may take"
)]
pub struct TooLarge {
    /// Which.
    pub name: &'static str,
    /// What it needs.
    pub bytes: u64,
    /// What it may take.
    pub limit_bytes: u64,
}

/// The first of these balancers that can decide within so many bytes, and those before it, for a report.
#[must_use]
pub fn affordable<'a>(
    balancers: &[&'a dyn Balancer],
    (pes, chares, edges): (u64, u64, u64),
    limit_bytes: u64,
) -> (Option<&'a dyn Balancer>, Vec<TooLarge>) {
    let mut passed_over = Vec::new();
    for balancer in balancers {
        let bytes = balancer.bytes(pes, chares, edges);
        if bytes <= limit_bytes {
            return (Some(*balancer), passed_over);
        }
        passed_over.push(TooLarge { name: balancer.name(), bytes, limit_bytes });
    }
    (None, passed_over)
}

/// A size as users write it: a whole number, with KiB, MiB or GiB behind it or nothing.
pub(super) fn read(text: &str) -> Option<u64> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let of = |(unit, bytes): &(&str, u64)| text.strip_suffix(unit).map(|number| (number, *bytes));
    let (number, unit) = units.iter().find_map(of).unwrap_or((text, 1));
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|bytes| *bytes > 0)
}
