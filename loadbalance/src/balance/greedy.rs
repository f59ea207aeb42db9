//! Greedy: the heaviest chare first, each to the PE that ends it soonest; and the same with a preference for staying.
//!
//! R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 17 (1969): on equal PEs the longest
//! time is at most 4/3 − 1/(3P) of the best one. The names are those of Charm++.

use super::earliest::Earliest;
use super::view::{Checked, Mobility, Times};
use super::{Balancer, Wanted};

/// Places all chares anew, wherever they are: nearly the best times, nearly all chares move.
#[derive(Clone, Copy, Debug, Default)]
pub struct Greedy;

impl Balancer for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        let mut owners = view.owners();
        let (movable, mut times) = without_movable(view, &owners, |_| true);
        place(view, &movable, &mut times, &mut owners);
        owners.into()
    }
}

/// Leaves chares on each PE, the heaviest first, as long as it ends in time; places the others as [`Greedy`] does.
#[derive(Clone, Copy, Debug)]
pub struct GreedyRefine {
    /// How much later than the ideal a PE may end, as a part of it.
    pub tolerance: f64,
}

impl Balancer for GreedyRefine {
    fn name(&self) -> &'static str {
        "greedy-refine"
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        let mut owners = view.owners();
        let (movable, mut times) = without_movable(view, &owners, |_| true);
        let limit = view.times.level() * (1.0 + self.tolerance);
        let (stay, go): (Vec<u32>, Vec<u32>) = movable.into_iter().partition(|chare| {
            let (pe, load) = (owners[*chare as usize], view.chares[*chare as usize].load);
            let stays = load == 0.0 || times.seconds_with(pe, load) <= limit;
            if stays {
                times.work[pe as usize] += load;
            }
            stays
        });
        drop(stay);
        place(view, &go, &mut times, &mut owners);
        owners.into()
    }
}

/// The chares of some PEs that may move, the heaviest first, and what the PEs have besides.
pub(crate) fn without_movable(
    view: &Checked<'_>,
    owners: &[u32],
    is_from: impl Fn(u32) -> bool,
) -> (Vec<u32>, Times) {
    let is_movable = |chare: &u32| {
        is_from(owners[*chare as usize]) && view.chares[*chare as usize].mobility != Mobility::Pinned
    };
    let movable: Vec<u32> = view.heaviest_first().into_iter().filter(is_movable).collect();
    let mut is_placed = vec![true; owners.len()];
    movable.iter().for_each(|chare| is_placed[*chare as usize] = false);
    let mut times = Times::without_chares(view);
    for (at, chare) in view.chares.iter().enumerate().filter(|(at, _)| is_placed[*at]) {
        times.work[owners[at] as usize] += chare.load;
    }
    (movable, times)
}

/// Each of these chares, in this order, to the PE that has it soonest; of equals to the one where it is.
pub(crate) fn place(view: &Checked<'_>, chares: &[u32], times: &mut Times, owners: &mut [u32]) {
    let mut earliest = Earliest::new(times, 0..times.work.len() as u32);
    for &chare in chares {
        let (told, home) = (&view.chares[chare as usize], owners[chare as usize]);
        let best = match &told.mobility {
            Mobility::Anywhere => earliest.for_load(times, told.load).unwrap_or(home),
            Mobility::OneOf(set) => soonest(times, set.iter().copied(), told.load).unwrap_or(home),
            Mobility::Pinned => home,
        };
        let stays = times.seconds_with(home, told.load) <= times.seconds_with(best, told.load);
        let pe = if stays { home } else { best };
        owners[chare as usize] = pe;
        times.work[pe as usize] += told.load;
    }
}

/// Of these PEs the one that has the load soonest; of equals the lowest number.
pub(crate) fn soonest(times: &Times, pes: impl Iterator<Item = u32>, load: f64) -> Option<u32> {
    let end = |pe: &u32| (super::view::key(times.seconds_with(*pe, load)), *pe);
    pes.min_by_key(end)
}
