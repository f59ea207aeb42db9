//! What a balancer answers: [`Move`]s, with what they are predicted to bring. And the one way from where a balancer
//! wants chares to the moves that the limits permit, which all balancers share.

use super::view::{Checked, Edge, Times, View, key};

/// A chare that changes its PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Number of the chare.
    pub chare: u32,
    /// Where it is.
    pub from: u32,
    /// Where it goes; never where it is.
    pub to: u32,
}

/// The moves of one decision and what they are predicted to bring.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Each chare at most once. If they are carried out one after the other, no PE holds more than its memory on the way.
    pub moves: Vec<Move>,
    /// The longest time of a PE over the ideal one, as it is; 1 is perfect.
    pub before: f64,
    /// The same after the moves, if loads and speeds stay.
    pub after: f64,
    /// What travels, inside nodes too.
    pub bytes: u64,
    /// What the balancer wanted to move besides.
    pub left: Left,
}

/// What a balancer would have moved, had limits, sizes of chares or their mobility not been in the way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Left {
    /// Chares that should have moved and were refused.
    pub chares: u64,
    /// Work that should have moved and did not: that of those chares, and what no chare was small enough for.
    pub work: f64,
}

/// Where a balancer wants each chare, before limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// The PE of each chare.
    pub owners: Vec<u32>,
    /// Work that it would have moved besides, had chares been small enough.
    pub unspent: f64,
}

impl From<Vec<u32>> for Wanted {
    fn from(owners: Vec<u32>) -> Self {
        Self { owners, unspent: 0.0 }
    }
}

impl Decision {
    /// Nothing moves.
    #[must_use]
    pub fn stay(view: &Checked<'_>) -> Self {
        let imbalance = view.times.imbalance();
        Self { before: imbalance, after: imbalance, ..Self::default() }
    }

    /// Where each chare is afterwards.
    #[must_use]
    pub fn owners(&self, view: &View) -> Vec<u32> {
        let mut owners: Vec<u32> = view.chares.iter().map(|chare| chare.pe).collect();
        self.moves.iter().for_each(|step| owners[step.chare as usize] = step.to);
        owners
    }

    /// As much of what is wanted as the limits permit. If the longest time would rise, nothing moves, unless
    /// `may_worsen`; if it stays as it is, only what makes less cross between PEs does.
    #[must_use]
    pub fn carry_out(view: &Checked<'_>, wanted: &Wanted, may_worsen: bool) -> Self {
        let steps: Vec<Move> = (0..)
            .zip(view.chares.iter().zip(&wanted.owners))
            .filter(|(chare, (told, to))| told.pe != **to && view.may_live(*chare, **to))
            .map(|(chare, (told, to))| Move { chare, from: told.pe, to: *to })
            .collect();
        let load = |step: &Move| view.chares[step.chare as usize].load;
        let (moves, refused) =
            if is_limited(view) { admitted(view, steps, may_worsen) } else { (steps, Vec::new()) };
        let mut decision = Self::stay(view);
        decision.left.chares = refused.len() as u64;
        decision.left.work = wanted.unspent + refused.iter().map(load).sum::<f64>();
        if moves.is_empty() {
            return decision;
        }
        decision.moves = moves;
        let owners = decision.owners(view);
        let times = Times::with(view, &owners);
        let is_worth_it = may_worsen || {
            let (now, then) = (view.times.longest(), times.longest());
            then < now || (then <= now && cut_cost(view, &owners) < cut_cost(view, &view.owners()))
        };
        if is_worth_it {
            decision.after = times.imbalance();
            decision.bytes = decision.moves.iter().map(|step| view.chares[step.chare as usize].bytes).sum();
        } else {
            decision.moves.clear();
        }
        decision
    }
}

/// Bytes between chares on two PEs.
#[must_use]
pub fn cut_bytes(view: &View, owners: &[u32]) -> u64 {
    cut(view, owners, |edge| edge.bytes)
}

/// What crosses between two PEs costs so much.
pub(super) fn cut_cost(view: &View, owners: &[u32]) -> u64 {
    cut(view, owners, Edge::cost)
}

fn cut(view: &View, owners: &[u32], of: impl Fn(&Edge) -> u64) -> u64 {
    let is_cut = |edge: &&Edge| owners[edge.one as usize] != owners[edge.other as usize];
    view.edges.iter().filter(is_cut).fold(0, |sum: u64, edge| sum.saturating_add(of(edge)))
}

fn is_limited(view: &View) -> bool {
    let limits = view.limits;
    limits.node_bytes.is_some()
        || limits.flux.is_some()
        || limits.moves.is_some()
        || view.pes.iter().any(|pe| pe.memory_bytes.is_some())
}

/// What PEs and nodes can still take or give.
struct Room<'a> {
    view: &'a View,
    times: Times,
    /// The longest time that any PE may have, on the way too.
    longest: f64,
    held_bytes: Vec<u64>,
    can_give: Vec<f64>,
    node_of: Vec<usize>,
    leaves_node: Vec<u64>,
    enters_node: Vec<u64>,
    moves: u64,
}

impl<'a> Room<'a> {
    fn new(view: &Checked<'a>, may_worsen: bool) -> Self {
        let told = view.view();
        let mut held_bytes = vec![0u64; told.pes.len()];
        for chare in &told.chares {
            let held = &mut held_bytes[chare.pe as usize];
            *held = held.saturating_add(chare.bytes);
        }
        let node_of = told.nodes();
        let nodes = node_of.iter().max().map_or(0, |last| last + 1);
        let can_give = |work: &f64| told.limits.flux.map_or(f64::INFINITY, |flux| work * flux);
        let node_bytes = told.limits.node_bytes.unwrap_or(u64::MAX);
        Self {
            times: view.times.clone(),
            longest: if may_worsen { f64::INFINITY } else { view.times.longest() },
            held_bytes,
            can_give: view.times.work.iter().map(can_give).collect(),
            node_of,
            leaves_node: vec![node_bytes; nodes],
            enters_node: vec![node_bytes; nodes],
            moves: told.limits.moves.unwrap_or(u64::MAX),
            view: told,
        }
    }

    fn take(&mut self, step: &Move) -> bool {
        let chare = &self.view.chares[step.chare as usize];
        let (from, to) = (step.from as usize, step.to as usize);
        let nodes = [from, to].map(|pe| self.node_of[pe]);
        let crossing = if nodes[0] == nodes[1] { 0 } else { chare.bytes };
        let held = self.held_bytes[to].saturating_add(chare.bytes);
        let fits = self.moves > 0
            && self.view.pes[to].memory_bytes.is_none_or(|limit| held <= limit)
            && crossing <= self.leaves_node[nodes[0]].min(self.enters_node[nodes[1]])
            && chare.load <= self.can_give[from]
            && self.times.seconds_with(step.to, chare.load) <= self.longest;
        if fits {
            self.moves -= 1;
            self.held_bytes[to] = held;
            self.held_bytes[from] -= chare.bytes.min(self.held_bytes[from]);
            self.leaves_node[nodes[0]] -= crossing;
            self.enters_node[nodes[1]] -= crossing;
            self.can_give[from] -= chare.load;
            self.times.shift(chare.load, step.from, step.to);
        }
        fits
    }
}

/// The moves within the limits, in an order in which each of them is possible, and the others. Those come first that
/// relieve the PEs that take longest, and of these the heaviest.
fn admitted(view: &Checked<'_>, mut steps: Vec<Move>, may_worsen: bool) -> (Vec<Move>, Vec<Move>) {
    let load = |step: &Move| view.chares[step.chare as usize].load;
    steps.sort_by_key(|step| (!key(view.times.seconds(step.from)), !key(load(step)), step.chare));
    let mut room = Room::new(view, may_worsen);
    let mut moves = Vec::new();
    // A PE that has given can take; each round but the last brings a move, and few bring many.
    for _ in 0..ROUNDS_MAX {
        let before = moves.len();
        steps.retain(|step| {
            let fits = room.take(step);
            if fits {
                moves.push(*step);
            }
            !fits
        });
        if moves.len() == before {
            break;
        }
    }
    (moves, steps)
}

/// How often refused moves are tried again.
const ROUNDS_MAX: usize = 16;
