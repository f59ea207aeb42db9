//! A negative cycle, for the user to see.

use super::graph::{Edges, Weights};
use std::fmt::Display;
use std::ops::Add;

/// The vertices of a cycle whose weights add up to less than `-tolerance`, in order, and their sum; none if there is
/// none.
///
/// By Bellman and Ford's algorithm from all vertices at once: as long as distances get shorter, the arcs by which they
/// last did so form a forest, or hold a cycle, which then is negative (B. V. Cherkassky and A. V. Goldberg, "Negative-cycle
/// detection algorithms", 1999). That is looked for after each pass over the edges.
pub(super) fn negative_cycle(edges: &Edges, tolerance: f64) -> Option<(Vec<u32>, String)> {
    fn of<W: Display>((cycle, sum): (Vec<u32>, W)) -> (Vec<u32>, String) {
        (cycle, sum.to_string())
    }
    match &edges.weights {
        // Wide enough for any sum, so that none is rounded.
        Weights::Whole(weights) => found(edges, |at| i128::from(weights[at]), |sum| *sum < 0).map(of),
        Weights::Real(weights) => found(edges, |at| weights[at], |sum| *sum < -tolerance).map(of),
    }
}

fn found<W: Copy + Default + PartialOrd + Add<Output = W>>(
    edges: &Edges,
    weight: impl Fn(usize) -> W,
    is_negative: impl Fn(&W) -> bool,
) -> Option<(Vec<u32>, W)> {
    let mut near = vec![W::default(); edges.vertices];
    let mut last: Vec<Option<usize>> = vec![None; edges.vertices];
    for _ in 0..=edges.vertices {
        let mut has_changed = false;
        for at in 0..edges.len() {
            let there = near[edges.from[at] as usize] + weight(at);
            let to = edges.to[at] as usize;
            if there < near[to] {
                (near[to], last[to]) = (there, Some(at));
                has_changed = true;
            }
        }
        for cycle in cycles(edges, &last) {
            let sum = cycle.iter().map(|&at| weight(at)).fold(W::default(), W::add);
            if is_negative(&sum) {
                return Some((cycle.iter().map(|&at| edges.from[at]).collect(), sum));
            }
        }
        if !has_changed {
            break;
        }
    }
    None
}

/// The cycles of a graph in which each vertex has at most one edge that leads to it: their edges, in order.
fn cycles(edges: &Edges, last: &[Option<usize>]) -> Vec<Vec<usize>> {
    // 0: not seen; else the number of the walk that came by first.
    let mut seen = vec![0; last.len()];
    let mut found = Vec::new();
    for root in 0..last.len() {
        let (mut at, walk) = (root, root + 1);
        while seen[at] == 0 {
            seen[at] = walk;
            let Some(edge) = last[at] else { break };
            at = edges.from[edge] as usize;
        }
        if seen[at] == walk && last[at].is_some() {
            let (start, mut cycle) = (at, Vec::new());
            while let Some(edge) = last[at] {
                cycle.push(edge);
                at = edges.from[edge] as usize;
                if at == start {
                    break;
                }
            }
            cycle.reverse();
            found.push(cycle);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(list: &[(u32, u32, i64)]) -> Edges {
        Edges {
            vertices: 6,
            from: list.iter().map(|edge| edge.0).collect(),
            to: list.iter().map(|edge| edge.1).collect(),
            weights: Weights::Whole(list.iter().map(|edge| edge.2).collect()),
            names: None,
            negative: None,
        }
    }

    #[test]
    fn a_cycle_is_found_where_there_is_one() {
        let list = [(0, 1, 4), (1, 2, -3), (2, 3, 1), (3, 1, 1), (3, 4, 2), (5, 0, -7)];
        let (mut cycle, sum) = negative_cycle(&edges(&list), 0.0).unwrap();
        assert_eq!(sum, "-1");
        while cycle[0] != 1 {
            cycle.rotate_left(1);
        }
        assert_eq!(cycle, [1, 2, 3]);
        assert_eq!(negative_cycle(&edges(&list[..3]), 0.0), None);
        assert_eq!(negative_cycle(&edges(&[(2, 2, -1), (0, 2, 1)]), 0.0), Some((vec![2], "-1".into())));
        assert_eq!(negative_cycle(&edges(&[(2, 3, 0), (3, 2, 0)]), 0.0), None);
        let wide = [(0, 1, 1 << 60), (1, 0, -(1 << 60) - 1), (2, 3, 1 << 60), (3, 2, -(1 << 60))];
        assert_eq!(negative_cycle(&edges(&wide), 0.0).unwrap().1, "-1", "no number is rounded");
        assert_eq!(negative_cycle(&edges(&wide[2..]), 0.0), None);
    }

    #[test]
    fn what_rounding_may_do_is_no_cycle() {
        let mut real = edges(&[(0, 1, 4), (1, 2, -3), (2, 0, -2)]);
        real.weights = Weights::Real(vec![4.0, -3.0, -2.0]);
        assert_eq!(negative_cycle(&real, 1.5), None);
        assert_eq!(negative_cycle(&real, 0.5).unwrap().1, "-1");
    }
}
