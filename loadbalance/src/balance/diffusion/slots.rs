//! From fluxes to chares: each chare that may move is committed to one neighbour beforehand, so that what can flow over
//! links is never counted twice, and is sent there if it fits into what should flow.

use super::Neighbour;
use crate::balance::view::{Checked, Mobility, Times, key};

/// Items that were chosen for a budget.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spent {
    /// By their places in the list.
    pub taken: Vec<usize>,
    /// What is left; every item that was not taken is larger.
    pub left: f64,
}

/// Takes items in this order as long as they fit into what is left.
#[must_use]
pub fn spend(budget: f64, loads: impl IntoIterator<Item = f64>) -> Spent {
    let mut spent = Spent { left: budget, ..Spent::default() };
    for (at, load) in loads.into_iter().enumerate() {
        if load <= spent.left {
            spent.left -= load;
            spent.taken.push(at);
        }
    }
    spent
}

/// The share of a budget of one of several holders who are served in turn: what those `before` it hold is served first.
/// Each holder needs no more than a prefix sum to know its own share.
///
/// # Examples
///
/// ```
/// use loadbalance::balance::diffusion::slots::share;
/// // Holders of 10, 6 and 4 of a budget of 12.
/// assert_eq!([share(12, 0, 10), share(12, 10, 6), share(12, 16, 4)], [10, 2, 0]);
/// ```
#[must_use]
pub const fn share(budget: u64, before: u64, held: u64) -> u64 {
    let left = budget.saturating_sub(before);
    if left < held { left } else { held }
}

/// The neighbour that each chare of a PE may be sent to, in the order of `chares`: of those where it may live the one that
/// would end soonest with all that is committed to it from here; of equals the lowest number. `None` if it has to stay.
#[must_use]
pub(super) fn commit(
    view: &Checked<'_>,
    times: &Times,
    neighbours: &[Neighbour],
    chares: &[u32],
    has_block: impl Fn(u32, u32) -> bool,
) -> Vec<Option<u32>> {
    let mut committed = vec![0.0; neighbours.len()];
    let mut choose = |chare: u32| {
        let told = &view.chares[chare as usize];
        let may_go = |pe: u32| match &told.mobility {
            Mobility::Anywhere => has_block(chare, pe),
            Mobility::OneOf(set) => set.contains(&pe) && has_block(chare, pe),
            Mobility::Pinned => false,
        };
        let end = |at: &usize| {
            let pe = neighbours[*at].pe;
            (key(times.seconds_with(pe, committed[*at])), pe)
        };
        let best = (0..neighbours.len()).filter(|at| may_go(neighbours[*at].pe)).min_by_key(end)?;
        committed[best] += told.load;
        Some(neighbours[best].pe)
    };
    chares.iter().map(|chare| choose(*chare)).collect()
}
