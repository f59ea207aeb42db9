//! A search through a part of the tree: depth first, with its stack in a value, so that it can stop after any node, travel,
//! and give a part of itself away.

use super::bound::{Bound, Branch, Choice};
use super::graph::{Complement, count, remove};
use chares::{Better, Bits};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A set that has been found, with its place in the tree: the number of the branch at each depth. Of equally large ones the
/// better is the one that a single search would have met first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Its vertices, as the graph numbers them.
    pub set: Vec<u32>,
    /// Its place in the tree.
    pub path: Vec<u32>,
    /// How long after the search began.
    pub after: Duration,
}

impl Better for Found {
    fn better_than(&self, other: &Self) -> bool {
        self.set.len() > other.set.len() || (self.set.len() == other.set.len() && self.path < other.path)
    }
}

/// What is known beforehand, and gets better while others search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Only larger sets than this count.
    pub beaten: usize,
    /// Only sets before this place in the tree count.
    pub before: Option<Vec<u32>>,
}

/// The branches of a node that are still to be tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Level {
    /// Vertices that may join the set: those to be tried, and those that need not be.
    candidates: Vec<u64>,
    /// To be tried from the last to the first.
    branches: Vec<Branch>,
    /// Count of branches that have been tried or are tried by somebody before these.
    tried: u32,
    /// Count of branches of the node.
    total: u32,
    /// What part of the tree each of them counts as.
    part: f64,
}

/// A search that is under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// Vertices of the graph.
    chosen: Vec<u32>,
    path: Vec<u32>,
    /// Where in the tree it began: at each depth which branch, of how many.
    begun: Vec<(u32, u32)>,
    levels: Vec<Level>,
    /// Nodes that have been searched.
    pub nodes: u64,
    /// The part of the tree that has been searched, 0 to 1.
    pub done: f64,
}

/// Where in the tree a search begins.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Start {
    /// Vertices that have been chosen.
    pub chosen: Vec<u32>,
    /// At each depth which branch that was,
    pub path: Vec<u32>,
    /// and of how many.
    pub begun: Vec<(u32, u32)>,
    /// What part of the tree is below.
    pub part: f64,
}

/// What a search works with that need not travel.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// Finds branches.
    pub bound: Bound,
    spare: Vec<Level>,
}

impl Search {
    /// Through all sets of these candidates.
    #[must_use]
    pub fn new(
        graph: &Complement,
        choice: &Choice,
        beaten: usize,
        candidates: Vec<u64>,
        work: &mut Workspace,
    ) -> Self {
        Self::below(Start { part: 1.0, ..Start::default() }, graph, choice, (beaten, candidates), work)
    }

    /// Through all sets of these candidates together with those that have been chosen before.
    #[must_use]
    pub fn below(
        start: Start,
        graph: &Complement,
        choice: &Choice,
        (beaten, candidates): (usize, Vec<u64>),
        work: &mut Workspace,
    ) -> Self {
        let Start { chosen, path, begun, part } = start;
        let (depth, mut root) = (chosen.len(), Level { candidates, ..Level::default() });
        let beaten = beaten.saturating_sub(depth);
        work.bound.branches(graph, choice, depth, (&root.candidates, beaten), &mut root.branches);
        root.set_parts(part);
        Self { chosen, path, begun, levels: vec![root], ..Self::default() }
    }

    /// Whether nothing is left of it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.levels.is_empty()
    }

    /// Where in the tree it began: at each depth which branch, of how many.
    #[must_use]
    pub fn begun(&self) -> &[(u32, u32)] {
        &self.begun
    }

    /// The same for a priority.
    #[must_use]
    pub fn bits(&self) -> Bits {
        self.begun.iter().fold(Bits::new(), |bits, &(branch, count)| bits.child(branch, count))
    }

    /// Goes on until it is over, about so many rows have been read, or a set has been found that counts.
    pub fn run(
        &mut self,
        graph: &Complement,
        choice: &Choice,
        known: &Known,
        rows: u64,
        work: &mut Workspace,
    ) -> Option<(Vec<u32>, Vec<u32>)> {
        let end = work.bound.rows + rows;
        while work.bound.rows < end
            && let Some(level) = self.levels.last_mut()
        {
            let size = self.chosen.len();
            let next = level.branches.last().filter(|next| size + next.bound as usize > known.beaten);
            let Some(&Branch { vertex, .. }) = next else {
                self.done += level.part * level.branches.len() as f64;
                work.spare.extend(self.levels.pop());
                if !self.levels.is_empty() {
                    self.chosen.pop();
                    self.path.pop();
                }
                continue;
            };
            if known.before.as_ref().is_some_and(|before| self.path.iter().chain([&level.tried]).gt(before)) {
                self.done +=
                    self.levels.iter().map(|level| level.part * level.branches.len() as f64).sum::<f64>();
                self.levels.clear();
                return None;
            }
            level.branches.pop();
            level.tried += 1;
            remove(&mut level.candidates, vertex as usize);
            self.nodes += 1;
            work.bound.rows += 1;
            let mut child = work.spare.pop().unwrap_or_default();
            child.candidates.clear();
            let both = level.candidates.iter().zip(graph.row(vertex as usize)).map(|(all, row)| all & row);
            child.candidates.extend(both);
            let most = size + 1 + count(&child.candidates);
            let (ordinal, part) = (level.tried - 1, level.part);
            if most > known.beaten {
                if most == size + 1 {
                    self.done += part;
                    let set = self.chosen.iter().copied().chain([graph.vertices[vertex as usize]]).collect();
                    return Some((set, self.path.iter().copied().chain([ordinal]).collect()));
                }
                let beaten = known.beaten.saturating_sub(size + 1);
                let Level { candidates, branches, .. } = &mut child;
                work.bound.branches(graph, choice, size + 1, (candidates, beaten), branches);
                if !child.branches.is_empty() {
                    child.set_parts(part);
                    self.chosen.push(graph.vertices[vertex as usize]);
                    self.path.push(ordinal);
                    self.levels.push(child);
                    continue;
                }
            }
            self.done += part;
            work.spare.push(child);
        }
        None
    }

    /// Gives half of its branches at the least depth that has some to spare to another search: those that would be tried
    /// next, which take longer than those behind them. None if it has too little.
    pub fn divide(&mut self, known: &Known) -> Option<Self> {
        let deepest = self.levels.len().checked_sub(1)?;
        let first = self.chosen.len() - deepest;
        let mut begun = self.begun.clone();
        for (depth, level) in self.levels.iter_mut().enumerate() {
            let size = first + depth;
            let hopeless =
                level.branches.partition_point(|branch| size + branch.bound as usize <= known.beaten);
            level.branches.drain(..hopeless);
            self.done += level.part * hopeless as f64;
            let left = level.branches.len();
            let given = if depth < deepest { left.div_ceil(2) } else { left / 2 };
            if given == 0 {
                begun.extend(self.path.get(size).map(|&branch| (branch, level.total)));
                continue;
            }
            let other = Level {
                branches: level.branches.split_off(left - given),
                candidates: level.candidates.clone(),
                tried: level.tried,
                total: level.total,
                part: level.part,
            };
            // What stays is tried without those that come before it.
            other.branches.iter().for_each(|branch| remove(&mut level.candidates, branch.vertex as usize));
            level.tried += u32::try_from(given).unwrap_or(u32::MAX);
            begun.push((other.tried, other.total));
            return Some(Self {
                chosen: self.chosen[..size].to_vec(),
                path: self.path[..size].to_vec(),
                begun,
                levels: vec![other],
                ..Self::default()
            });
        }
        None
    }
}

impl Level {
    /// Divides the part of the tree that the node counts as among its branches.
    fn set_parts(&mut self, part: f64) {
        (self.tried, self.total) = (0, u32::try_from(self.branches.len()).unwrap_or(u32::MAX));
        self.part = part / f64::from(self.total.max(1));
    }
}
