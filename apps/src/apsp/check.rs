//! Are the distances right? Checked by other means than those that found them.
//!
//! A row of distances from a source is right if and only if (1) the source's own is 0, (2) no arc leads to a vertex
//! nearer than the row says, and none from a reachable vertex to one that is said to be unreachable, and (3) every
//! reachable vertex is reached from the source along arcs that are *tight*: whose ends' distances differ by just their
//! weight. So no row needs another algorithm to be trusted; some are compared with one all the same, that of Bellman
//! and Ford (R. Bellman, "On a routing problem", 1958).
//!
//! Whole numbers, and distances that are sums from the source on, must be right exactly. Those of Floyd and Warshall's
//! algorithm are sums of sums: they may be off by as many roundings as a path has arcs.

use super::dijkstra::NO_VERTEX;
use super::distance::Distance;
use super::graph::Graph;

/// Arcs that Bellman and Ford's algorithm looks at before it gives up.
const BELLMAN_FORD_ARCS: u64 = 2_000_000_000;

/// What is checked: a graph, the places of which stand for vertices.
pub(super) struct Check<'a, D> {
    graph: &'a Graph<D>,
    /// Whether distances are sums in the order of the path.
    is_in_order: bool,
}

impl<'a, D: Distance> Check<'a, D> {
    pub(super) fn new(graph: &'a Graph<D>, is_in_order: bool) -> Self {
        Self { graph, is_in_order }
    }

    fn arcs(&self, place: usize) -> impl Iterator<Item = (usize, D)> {
        let arcs = self.graph.first[place] as usize..self.graph.first[place + 1] as usize;
        self.graph.ends[arcs.clone()]
            .iter()
            .map(|&end| end as usize)
            .zip(self.graph.weights[arcs].iter().copied())
    }

    /// What rounding may do to a distance of this row.
    fn tolerance(&self, row: &[D]) -> f64 {
        if self.is_in_order {
            return 0.0;
        }
        let magnitudes = row.iter().filter(|d| !d.is_far()).map(|d| d.to_f64().abs());
        let heaviest = self.graph.weights.iter().map(|weight| weight.to_f64().abs()).fold(0.0, f64::max);
        2.0 * row.len() as f64 * D::ROUNDOFF * magnitudes.fold(heaviest, f64::max)
    }

    /// The largest relative error of the distances from a source, in the order of the vertices.
    ///
    /// # Errors
    /// What is wrong, in one sentence.
    pub(super) fn row(&self, source: u32, row: &[D]) -> Result<f64, String> {
        let n = self.graph.len();
        if row.len() != n {
            return Err(format!("the row of vertex {source} has {} distances of {n}", row.len()));
        }
        let near = self.by_place(row);
        let start = self.graph.places[source as usize] as usize;
        let (tolerance, vertex) = (self.tolerance(row), |place: usize| self.graph.vertices[place]);
        if near[start] != D::ZERO {
            return Err(format!("vertex {source} is {} from itself", near[start]));
        }
        let mut worst = 0.0f64;
        for (from, here) in near.iter().enumerate().filter(|(_, here)| !here.is_far()) {
            for (to, weight) in self.arcs(from) {
                let (there, sum) = (near[to].to_f64(), here.plus(weight).to_f64());
                if near[to].is_far() || there > sum + tolerance {
                    let (from, to) = (vertex(from), vertex(to));
                    return Err(format!(
                        "from vertex {source} it is {there} to vertex {to}, but {sum} by way of {from}"
                    ));
                }
                worst = worst.max((there - sum) / sum.abs().max(f64::MIN_POSITIVE));
            }
        }
        self.all_are_reached(source, &near, tolerance)?;
        Ok(worst)
    }

    fn all_are_reached(&self, source: u32, near: &[D], tolerance: f64) -> Result<(), String> {
        let before = self.tight_tree(self.graph.places[source as usize] as usize, near, tolerance);
        match (0..near.len()).find(|&place| before[place].is_none() && !near[place].is_far()) {
            None => Ok(()),
            Some(place) => {
                let (to, distance) = (self.graph.vertices[place], near[place]);
                Err(format!("no path of length {distance} leads from vertex {source} to vertex {to}"))
            }
        }
    }

    /// The place before each on a path of tight arcs from `start`, which is before itself; none where there is none.
    fn tight_tree(&self, start: usize, near: &[D], tolerance: f64) -> Vec<Option<usize>> {
        let mut before = vec![None; near.len()];
        before[start] = Some(start);
        let mut next = vec![start];
        while let Some(from) = next.pop() {
            for (to, weight) in self.arcs(from) {
                let is_tight = near[from].plus(weight).to_f64() <= near[to].to_f64() + tolerance;
                if is_tight && before[to].is_none() {
                    before[to] = Some(from);
                    next.push(to);
                }
            }
        }
        before
    }

    /// The vertices before each on shortest paths from a source whose distances are these.
    pub(super) fn tree(&self, source: u32, row: &[D]) -> Vec<i32> {
        let near = self.by_place(row);
        let start = self.graph.places[source as usize] as usize;
        let before = self.tight_tree(start, &near, self.tolerance(row));
        let mut tree = vec![NO_VERTEX; row.len()];
        for (place, from) in before.into_iter().enumerate().filter(|(place, _)| *place != start) {
            let from = from.map_or(NO_VERTEX, |from| self.graph.vertices[from].cast_signed());
            tree[self.graph.vertices[place] as usize] = from;
        }
        tree
    }

    fn by_place(&self, row: &[D]) -> Vec<D> {
        self.graph.vertices.iter().map(|&vertex| row[vertex as usize]).collect()
    }

    /// Compares a row with what Bellman and Ford's algorithm finds; false if that would take too long.
    ///
    /// # Errors
    /// Where they differ, in one sentence.
    pub(super) fn bellman_ford(&self, source: u32, row: &[D]) -> Result<bool, String> {
        let n = self.graph.len();
        let mut near = vec![D::UNREACHABLE; n];
        near[self.graph.places[source as usize] as usize] = D::ZERO;
        let mut looked_at = 0;
        // So many rounds are enough where no cycle is negative; those that rounding makes negative have no end.
        for _ in 0..n {
            let mut has_changed = false;
            for from in (0..n).filter(|&from| near[from] != D::UNREACHABLE).collect::<Vec<_>>() {
                for (to, weight) in self.arcs(from) {
                    let there = near[from].plus(weight);
                    if there < near[to] {
                        near[to] = there;
                        has_changed = true;
                    }
                }
            }
            looked_at += self.graph.arcs() as u64;
            if !has_changed {
                break;
            }
            if looked_at > BELLMAN_FORD_ARCS {
                return Ok(false);
            }
        }
        let tolerance = self.tolerance(row);
        for (place, near) in near.iter().enumerate() {
            let vertex = self.graph.vertices[place];
            let here = row[vertex as usize];
            let is_same = here == *near || (here.to_f64() - near.to_f64()).abs() <= tolerance;
            if !is_same {
                return Err(format!("from vertex {source} to vertex {vertex} it is {near}, not {here}"));
            }
        }
        Ok(true)
    }

    /// Checks that the vertices before each make paths of the row's lengths.
    ///
    /// # Errors
    /// Which does not, in one sentence.
    pub(super) fn predecessors(&self, source: u32, row: &[D], before: &[i32]) -> Result<(), String> {
        let tolerance = self.tolerance(row);
        let wrong = |vertex: usize| {
            Err(format!("{} is no predecessor of vertex {vertex} from {source}", before[vertex]))
        };
        for (vertex, (&here, &last)) in row.iter().zip(before).enumerate() {
            if here.is_far() || vertex == source as usize {
                if last != NO_VERTEX {
                    return wrong(vertex);
                }
                continue;
            }
            let Some(from) = usize::try_from(last).ok().filter(|&from| from < row.len()) else {
                return wrong(vertex);
            };
            let (place, end) = (self.graph.places[from] as usize, self.graph.places[vertex] as usize);
            let arc = self.arcs(place).find(|arc| arc.0 == end);
            let is_tight = |weight: D| (row[from].plus(weight).to_f64() - here.to_f64()).abs() <= tolerance;
            if !arc.is_some_and(|(_, weight)| is_tight(weight)) {
                return wrong(vertex);
            }
        }
        // Arcs of weight 0 are tight in a circle too.
        match circle(source, before) {
            None => Ok(()),
            Some(vertex) => {
                Err(format!("the predecessors of vertex {vertex} from {source} go round in a circle"))
            }
        }
    }
}

/// A vertex whose predecessors do not lead to the source but round in a circle.
pub(super) fn circle(source: u32, before: &[i32]) -> Option<usize> {
    let mut leads_home = vec![false; before.len()];
    leads_home[source as usize] = true;
    let mut path = Vec::new();
    for vertex in (0..before.len()).filter(|&vertex| before[vertex] != NO_VERTEX) {
        let mut at = vertex;
        while !leads_home[at] {
            path.push(at);
            // One that leads nowhere is no circle; others see that it is wrong.
            let Some(next) = usize::try_from(before[at]).ok().filter(|&next| next < before.len()) else {
                break;
            };
            if path.len() > before.len() {
                return Some(vertex);
            }
            at = next;
        }
        path.drain(..).for_each(|at| leads_home[at] = true);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apsp::graph::{Edges, Weights};

    /// 0 -> 1 -> 2 <-> 3, the last two ways of weight 0, and 4 by itself.
    fn graph() -> Graph<i32> {
        let edges = Edges {
            vertices: 5,
            from: vec![0, 1, 2, 3, 0],
            to: vec![1, 2, 3, 2, 2],
            weights: Weights::Whole(vec![2, 3, 0, 0, 9]),
            names: None,
            negative: None,
        };
        Graph::new(&edges)
    }

    #[test]
    fn right_rows_pass_and_every_wrong_one_is_found() {
        let (graph, far) = (graph(), i32::MAX);
        let check = Check::new(&graph, true);
        let right = [0, 2, 5, 5, far];
        assert_eq!(check.row(0, &right), Ok(0.0));
        assert_eq!(check.bellman_ford(0, &right), Ok(true));
        let far_ones =
            [[1, 2, 5, 5, far], [0, 3, 5, 5, far], [0, 1, 4, 4, far], [0, 2, far, far, far], [0, 2, 5, 5, 7]];
        // The last: in a circle of weight 0 every arc is tight, but nothing leads there.
        for wrong in far_ones.iter().chain(&[[0, 2, 4, 4, far]]) {
            assert!(check.row(0, wrong).is_err(), "{wrong:?}");
            assert!(check.bellman_ford(0, wrong).is_err(), "{wrong:?}");
        }
        assert!(check.row(0, &right[..4]).is_err());
    }

    #[test]
    fn predecessors_must_make_paths() {
        let graph = graph();
        let check = Check::new(&graph, true);
        let row = [0, 2, 5, 5, i32::MAX];
        assert_eq!(check.tree(0, &row), [-1, 0, 1, 2, -1]);
        assert_eq!(check.predecessors(0, &row, &[-1, 0, 1, 2, -1]), Ok(()));
        for wrong in [
            [-1, 0, 3, 2, -1],
            [-1, 0, 0, 2, -1],
            [-1, 0, 1, 2, 1],
            [0, 0, 1, 2, -1],
            [-1, 0, 1, 9, -1],
            [-1, -1, 1, 2, -1],
        ] {
            assert!(check.predecessors(0, &row, &wrong).is_err(), "{wrong:?}");
        }
        assert_eq!((circle(0, &[-1, 0, 3, 2, -1]), circle(0, &[-1, 0, 1, 2, -1])), (Some(2), None));
    }
}
