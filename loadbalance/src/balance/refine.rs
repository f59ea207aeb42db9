//! Refine: only PEs that end late give, and as few chares as will do.

use super::earliest::Earliest;
use super::greedy::soonest;
use super::view::{Checked, Mobility, Times, key};
use super::{Balancer, Wanted};

/// From the latest PE on, each that ends late gives its chares to PEs that stay in time with them: one that is just
/// heavy enough, or the heaviest ones.
#[derive(Clone, Copy, Debug)]
pub struct Refine {
    /// How much later than the ideal a PE may end, as a part of it.
    pub tolerance: f64,
}

impl Balancer for Refine {
    fn name(&self) -> &'static str {
        "refine"
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        let mut owners = view.owners();
        let mut times = view.times.clone();
        let level = view.times.level();
        let limit = level * (1.0 + self.tolerance);
        let is_late = |pe: &u32| times.seconds(*pe) > limit;
        let (mut late, others): (Vec<u32>, Vec<u32>) = (0..times.work.len() as u32).partition(is_late);
        late.sort_by_key(|pe| (!key(times.seconds(*pe)), *pe));
        let mut takers = Earliest::new(&times, others);
        let mut of_pe = vec![Vec::new(); times.work.len()];
        for chare in view.heaviest_first().into_iter().rev() {
            let told = &view.chares[chare as usize];
            if told.mobility != Mobility::Pinned && told.load > 0.0 {
                of_pe[told.pe as usize].push(chare);
            }
        }
        for pe in late {
            // What is too much is counted down to the ideal, so that the next noise does not make the PE late again.
            let mut giving =
                Giving { view, pe, limit, level, chares: std::mem::take(&mut of_pe[pe as usize]) };
            giving.give(&mut times, &mut takers, &mut owners);
        }
        owners.into()
    }
}

/// A PE that ends late, and its chares that may move, the lightest first.
struct Giving<'a> {
    view: &'a Checked<'a>,
    pe: u32,
    limit: f64,
    level: f64,
    chares: Vec<u32>,
}

impl Giving<'_> {
    fn give(&mut self, times: &mut Times, takers: &mut Earliest, owners: &mut [u32]) {
        // What nobody took once, nobody takes later: takers only get fuller.
        let mut refused = Vec::new();
        while times.seconds(self.pe) > self.limit {
            let excess = times.work[self.pe as usize] - self.level * times.speed[self.pe as usize];
            let enough = self.chares.partition_point(|chare| self.view.chares[*chare as usize].load < excess);
            // The lightest that is enough, or the heaviest.
            let at = enough.min(self.chares.len().saturating_sub(1));
            if at >= self.chares.len() {
                break;
            }
            let (is_heavy, chare) = (enough < self.chares.len(), self.chares[at]);
            if let Some(to) = self.taker(chare, times, takers) {
                times.shift(self.view.chares[chare as usize].load, self.pe, to);
                owners[chare as usize] = to;
                self.chares.remove(at);
            } else if is_heavy {
                // Heavier ones find no room either, unless theirs is another set of PEs.
                refused.extend(self.chares.drain(at..));
            } else {
                refused.push(self.chares.remove(at));
            }
        }
        self.relieve(refused, times, takers, owners);
    }

    /// If the PE is still late, chares that nobody can take in time go where they end sooner at least.
    fn relieve(&self, refused: Vec<u32>, times: &mut Times, takers: &mut Earliest, owners: &mut [u32]) {
        for chare in refused {
            let load = self.view.chares[chare as usize].load;
            if times.seconds(self.pe) <= self.limit {
                return;
            }
            if let Some(to) = self.best(chare, times, takers)
                && times.seconds_with(to, load) < times.seconds(self.pe)
            {
                times.shift(load, self.pe, to);
                owners[chare as usize] = to;
            }
        }
    }

    fn taker(&self, chare: u32, times: &Times, takers: &mut Earliest) -> Option<u32> {
        let load = self.view.chares[chare as usize].load;
        self.best(chare, times, takers).filter(|to| times.seconds_with(*to, load) <= self.limit)
    }

    fn best(&self, chare: u32, times: &Times, takers: &mut Earliest) -> Option<u32> {
        let told = &self.view.chares[chare as usize];
        match &told.mobility {
            Mobility::Anywhere => takers.for_load(times, told.load),
            Mobility::OneOf(set) => {
                let others = set.iter().copied().filter(|pe| *pe != self.pe);
                soonest(times, others, told.load)
            }
            Mobility::Pinned => None,
        }
    }
}
