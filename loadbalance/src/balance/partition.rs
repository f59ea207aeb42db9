//! Graph partitioning: the graph of who talks to whom is cut in two so that both halves weigh what their PEs are worth and
//! little crosses between them, and each half again.
//!
//! A half grows from one chare by the neighbour that adds least to the cut (G. Karypis and V. Kumar, "A fast and high quality
//! multilevel scheme for partitioning irregular graphs", SIAM J. Sci. Comput. 20, 1998), and is improved by moves that may
//! make it worse for a while (C. M. Fiduccia and R. M. Mattheyses, "A linear-time heuristic for improving network
//! partitions", 19th Design Automation Conference, 1982).

use super::communication::Talks;
use super::view::{Checked, Mobility};
use super::weighted::movable;
use super::{Balancer, Wanted};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// For chares that talk to each other; of chares that talk to nobody neighbours in the list come together. Chares that may not
/// go where their piece goes stay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Partition;

impl Balancer for Partition {
    fn name(&self) -> &'static str {
        "partition"
    }

    fn uses_edges(&self) -> bool {
        true
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        let (movable, costs, rooms) = movable(view);
        let takers: Vec<u32> = (0..).zip(&rooms).filter(|(_, room)| **room > 0.0).map(|(pe, _)| pe).collect();
        let mut of_chare = vec![1; view.chares.len()];
        movable.iter().zip(&costs).for_each(|(chare, cost)| of_chare[*chare as usize] = *cost);
        let mut cutting = Cutting {
            view,
            talks: Talks::of(view),
            costs: of_chare,
            rooms,
            places: vec![NOWHERE; view.chares.len()],
            owners: view.owners(),
        };
        cutting.cut(&movable, &takers);
        cutting.owners.into()
    }
}

/// A chare that is not in the present piece.
const NOWHERE: u32 = u32::MAX;

struct Cutting<'a> {
    view: &'a Checked<'a>,
    talks: Talks,
    /// Of each chare.
    costs: Vec<u64>,
    /// Of each PE.
    rooms: Vec<f64>,
    /// Of each chare its place in the piece that is cut now.
    places: Vec<u32>,
    owners: Vec<u32>,
}

impl Cutting<'_> {
    fn cut(&mut self, chares: &[u32], pes: &[u32]) {
        if chares.is_empty() || pes.is_empty() {
            return;
        }
        if let [pe] = pes {
            for &chare in chares {
                if self.view.may_live(chare, *pe) {
                    self.owners[chare as usize] = *pe;
                }
            }
            return;
        }
        let (low, high) = pes.split_at(self.middle(pes));
        let is_low = self.piece(chares, low, high).halved();
        let half = |side: bool| {
            chares.iter().zip(&is_low).filter(|(_, low)| **low == side).map(|(chare, _)| *chare).collect()
        };
        let (first, second): (Vec<u32>, Vec<u32>) = (half(true), half(false));
        self.cut(&first, low);
        self.cut(&second, high);
    }

    /// Where to part PEs so that both sides have about as much room; between two nodes if there are any.
    fn middle(&self, pes: &[u32]) -> usize {
        let node = |at: usize| self.view.pes[pes[at] as usize].part.node;
        let has_nodes = node(0) != node(pes.len() - 1);
        let room = |pes: &[u32]| pes.iter().map(|pe| self.rooms[*pe as usize]).sum::<f64>();
        let half = room(pes) / 2.0;
        let off = |at: usize| (room(&pes[..at]) - half).abs();
        let middles = (1..pes.len()).filter(|at| !has_nodes || node(at - 1) != node(*at));
        middles.min_by(|one, other| off(*one).total_cmp(&off(*other))).unwrap_or(1)
    }

    /// The graph of some chares, for halves that go to these PEs.
    fn piece(&mut self, chares: &[u32], low: &[u32], high: &[u32]) -> Piece {
        (0..).zip(chares).for_each(|(place, chare)| self.places[*chare as usize] = place);
        let mut piece = Piece { begins: vec![0], ..Piece::default() };
        for &chare in chares {
            let mut pull = 0;
            for &(other, cost) in self.talks.of_chare(chare) {
                let place = self.places[other as usize];
                let told = &self.view.chares[other as usize];
                if place != NOWHERE {
                    piece.talks.push((place, cost));
                } else if told.mobility == Mobility::Pinned {
                    // It draws its neighbours to where it is.
                    pull += cost * (i64::from(low.contains(&told.pe)) - i64::from(high.contains(&told.pe)));
                }
            }
            piece.begins.push(piece.talks.len());
            piece.costs.push(self.costs[chare as usize]);
            piece.pulls.push(pull);
        }
        chares.iter().for_each(|chare| self.places[*chare as usize] = NOWHERE);
        let room = |pes: &[u32]| pes.iter().map(|pe| self.rooms[*pe as usize]).sum::<f64>();
        let total: u64 = piece.costs.iter().sum();
        let (low, high) = (room(low), room(high));
        piece.target = (total as f64 * (low / (low + high))).round() as u64;
        piece.tolerance = (total as f64 * TOLERANCE) as u64;
        piece
    }
}

/// How far a half may be from its weight for the sake of the cut, as a part of both halves.
const TOLERANCE: f64 = 0.005;
/// Growing is tried from so many chares, fewer where there are many.
const TRIES: usize = 8;
/// All tries together look at so many chares, about.
const TRIED: usize = 40_000;
/// How often all moves are tried.
const PASSES: usize = 8;
/// A pass is over when so many moves, and this part of the chares, have brought nothing.
const IN_VAIN: (usize, usize) = (64, 50);

/// A graph that is cut in two: a low and a high half.
#[derive(Default)]
struct Piece {
    /// Whom each chare talks to and what that costs across the cut, one chare after the other, and where each begins.
    talks: Vec<(u32, i64)>,
    begins: Vec<usize>,
    costs: Vec<u64>,
    /// How much each is drawn to the low half by chares that stay where they are.
    pulls: Vec<i64>,
    /// What the low half should weigh, and how far it may be from that.
    target: u64,
    tolerance: u64,
}

/// Halves, and what moves would bring.
#[derive(Clone)]
struct Halves {
    is_low: Vec<bool>,
    weight: u64,
    /// How much less crosses if a chare changes its half.
    gains: Vec<i64>,
}

/// Who would bring most, with entries that may be out of date; of equals the first.
type Candidates = BinaryHeap<(i64, Reverse<u32>)>;

impl Piece {
    /// Whether each chare belongs to the low half.
    fn halved(&self) -> Vec<bool> {
        let tries = (TRIED / self.costs.len().max(1)).clamp(1, TRIES);
        let mut best: Option<(i64, Halves)> = None;
        for seed in self.seeds(tries) {
            let mut halves = self.grown(seed);
            for _ in 0..PASSES {
                if !self.improve(&mut halves) {
                    break;
                }
            }
            let crossing = self.crossing(&halves);
            if best.as_ref().is_none_or(|(least, _)| crossing < *least) {
                best = Some((crossing, halves));
            }
        }
        best.map_or_else(Vec::new, |(_, halves)| halves.is_low)
    }

    /// Where a half may begin: at the ends of the graph first, then anywhere.
    fn seeds(&self, count: usize) -> Vec<u32> {
        let chares = self.costs.len();
        let end = self.farthest(0);
        let mut seeds = vec![end];
        if count > 1 {
            seeds.push(self.farthest(end));
        }
        seeds.extend((2..count).map(|at| ((at - 2) * chares / count) as u32));
        seeds
    }

    /// A chare that is farthest from another, in steps from neighbour to neighbour.
    fn farthest(&self, from: u32) -> u32 {
        let mut is_seen = vec![false; self.costs.len()];
        let (mut order, mut next) = (vec![from], 0);
        is_seen[from as usize] = true;
        while let Some(&chare) = order.get(next) {
            next += 1;
            for &(other, _) in self.talks_of(chare) {
                if !std::mem::replace(&mut is_seen[other as usize], true) {
                    order.push(other);
                }
            }
        }
        order[order.len() - 1]
    }

    fn talks_of(&self, chare: u32) -> &[(u32, i64)] {
        &self.talks[self.begins[chare as usize]..self.begins[chare as usize + 1]]
    }

    /// A low half that has grown from one chare until it is heavy enough.
    fn grown(&self, seed: u32) -> Halves {
        let chares = self.costs.len() as u32;
        let all_high = |chare: u32| {
            self.pulls[chare as usize] - self.talks_of(chare).iter().map(|(_, cost)| cost).sum::<i64>()
        };
        let gains = (0..chares).map(all_high).collect();
        let mut halves = Halves { is_low: vec![false; chares as usize], weight: 0, gains };
        let mut near = Candidates::from([(0, Reverse(seed))]);
        let mut rest = 0..chares;
        loop {
            let next = near.pop().map(|(_, Reverse(chare))| chare).or_else(|| rest.next());
            let Some(chare) = next else { return halves };
            if halves.is_low[chare as usize] {
                continue;
            }
            let cost = self.costs[chare as usize];
            // Half of it above the weight is as good as half of it below.
            if halves.weight + cost / 2 + cost % 2 > self.target {
                return halves;
            }
            self.change(&mut halves, chare, |other, gain, _| near.push((gain, Reverse(other))));
        }
    }

    /// A chare changes its half; `hear` is told of each of its neighbours what that would bring now, and whether it is low.
    fn change(&self, halves: &mut Halves, chare: u32, mut hear: impl FnMut(u32, i64, bool)) {
        let at = chare as usize;
        let is_low = !halves.is_low[at];
        halves.is_low[at] = is_low;
        halves.weight = if is_low { halves.weight + self.costs[at] } else { halves.weight - self.costs[at] };
        halves.gains[at] = -halves.gains[at];
        for &(other, cost) in self.talks_of(chare) {
            let (gain, other_is_low) = (&mut halves.gains[other as usize], halves.is_low[other as usize]);
            *gain += if other_is_low == is_low { -2 * cost } else { 2 * cost };
            hear(other, *gain, other_is_low);
        }
    }

    /// What crosses, but for what does in any case.
    fn crossing(&self, halves: &Halves) -> i64 {
        let of = |chare: u32| {
            let is_low = halves.is_low[chare as usize];
            let across =
                self.talks_of(chare).iter().filter(|(other, _)| halves.is_low[*other as usize] != is_low);
            // Each pair is seen from both its ends.
            across.map(|(_, cost)| cost).sum::<i64>()
                + if is_low { 0 } else { 2 * self.pulls[chare as usize] }
        };
        (0..self.costs.len() as u32).map(of).sum()
    }

    /// Each chare changes its half at most once, those first that bring most; then those go back that did in vain. Whether
    /// any did not.
    fn improve(&self, halves: &mut Halves) -> bool {
        let off = |weight: u64| weight.abs_diff(self.target);
        let allowed = self.tolerance.max(off(halves.weight));
        let on_the_way = allowed + self.costs.iter().copied().max().unwrap_or(0);
        let mut turns = Turns { sides: Default::default(), is_done: vec![false; self.costs.len()] };
        for chare in 0..self.costs.len() as u32 {
            let is_low = halves.is_low[chare as usize];
            let crosses = |(other, _): &(u32, i64)| halves.is_low[*other as usize] != is_low;
            if self.pulls[chare as usize] != 0 || self.talks_of(chare).iter().any(crosses) {
                turns.hear(chare, halves.gains[chare as usize], is_low);
            }
        }
        let (mut moved, mut gained, mut kept) = (Vec::new(), 0, 0);
        let mut best = (0, Reverse(off(halves.weight)));
        while moved.len() - kept < IN_VAIN.0 + self.costs.len() / IN_VAIN.1 {
            let Some(chare) = turns.next(self, halves, on_the_way) else { break };
            gained += halves.gains[chare as usize];
            self.change(halves, chare, |other, gain, is_low| turns.hear(other, gain, is_low));
            moved.push(chare);
            let now = (gained, Reverse(off(halves.weight)));
            if off(halves.weight) <= allowed && now > best {
                (kept, best) = (moved.len(), now);
            }
        }
        moved.drain(kept..).for_each(|chare| self.change(halves, chare, |_, _, _| {}));
        kept > 0
    }
}

/// Whose turn it is to change its half.
struct Turns {
    /// Of the high half and of the low one.
    sides: [Candidates; 2],
    is_done: Vec<bool>,
}

impl Turns {
    fn hear(&mut self, chare: u32, gain: i64, is_low: bool) {
        if !self.is_done[chare as usize] {
            self.sides[usize::from(is_low)].push((gain, Reverse(chare)));
        }
    }

    /// Of the half that is too heavy, or of both, the one that brings most and leaves no half farther off than that.
    fn next(&mut self, piece: &Piece, halves: &Halves, off_max: u64) -> Option<u32> {
        loop {
            for (is_low, side) in [false, true].into_iter().zip(&mut self.sides) {
                while let Some((gain, Reverse(chare))) = side.peek().copied()
                    && let at = chare as usize
                    && (self.is_done[at] || halves.is_low[at] != is_low || halves.gains[at] != gain)
                {
                    side.pop();
                }
            }
            let [high, low] = self.sides.each_ref().map(|side| side.peek().copied());
            let is_heavy = halves.weight > piece.target.saturating_add(piece.tolerance);
            let is_light = halves.weight.saturating_add(piece.tolerance) < piece.target;
            let from_low = if is_heavy == is_light { low > high } else { is_heavy };
            let from_low = if from_low { low.is_some() } else { high.is_none() };
            let (_, Reverse(chare)) = self.sides[usize::from(from_low)].pop()?;
            self.is_done[chare as usize] = true;
            let cost = piece.costs[chare as usize];
            let weight = if from_low { halves.weight - cost } else { halves.weight + cost };
            if weight.abs_diff(piece.target) <= off_max {
                return Some(chare);
            }
        }
    }
}
