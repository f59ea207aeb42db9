//! What a run takes, reckoned beforehand from a sample of the tree.

use super::arguments::{Adjacency, Mis};
use super::bound::{Bound, Branch, Choice};
use super::drive::beginning;
use super::graph::{Complement, all, remove};
use super::walk::{AHEAD, local_vertices};
use crate::matrix::generate::hash;
use chares::RunError;
use chares::loadbalance::cost::Phase;
use chares::loadbalance::machines::Machines;

/// What is reckoned with, for people.
pub(super) const MODEL: &str = "a sample of the tree by random descents, which is right in the mean and may be several \
                                times too high or too low; subproblems go to PEs that ask for them, so that all end together; of \
                                a graph that is partitioned, the questions at the top of the tree besides";
/// Descents.
const DESCENTS: u64 = 2000;
/// More questions than this are as good as without end.
const QUESTIONS_MAX: f64 = 1e15;

/// The search as one phase.
///
/// # Errors
/// If the graph cannot be read.
pub(super) fn cost(mis: &Mis, machines: &Machines, known: Option<f64>) -> Result<Vec<Phase>, RunError> {
    let work = match known {
        Some(work) => work,
        None => {
            let choice = mis.choice();
            let graph = choice.complement(&mis.graph()?);
            let beaten = beginning(&graph, &choice).len();
            graph.work(1) * rows(&graph, &choice, beaten)
        }
    };
    let (work, is_guess) = (machines.divided_by_speed(work), known.is_none());
    let all = Phase { times: 1.0, work, rounds: 1.0, is_guess, ..Phase::default() };
    Ok(vec![match mis.adjacency {
        Adjacency::Basic => all,
        // Subproblems go on meanwhile. A question is a message, and so is what is answered.
        Adjacency::Partitioned => {
            Phase { rounds: 2.0 * questions(mis, machines.rates().len()), is_overlapped: true, ..all }
        }
    }])
}

/// Questions that walks ask one after the other, about: at each node above the subproblems one for degrees, one for the row of
/// each vertex that is tried, and one for each graph that is left, where a vertex leaves as many as in a random graph a
/// random one does. As soon as there are branches for all PEs as many are under way.
pub(super) fn questions(mis: &Mis, pes: usize) -> f64 {
    let (vertices, density, choice) = (mis.vertices(), mis.density(), mis.choice());
    let (mut left, mut nodes, mut questions) = (vertices as f64, 1.0, 0.0);
    let walks = pes as f64 * f64::from(AHEAD);
    let at_once = |nodes: f64| if nodes < walks { 1.0 } else { walks };
    for depth in 0..vertices {
        if left <= local_vertices(vertices) as f64 || nodes > QUESTIONS_MAX {
            break;
        }
        let tried = nodes * f64::from(choice.limit(depth)).min(left);
        questions += (nodes + tried) / at_once(nodes);
        nodes = tried;
        left = (left - 1.0) * (1.0 - density);
    }
    (questions + nodes / at_once(nodes)).min(QUESTIONS_MAX)
}

/// Rows that a search reads, about: the mean over random descents, of which each row stands for as many as there were ways to
/// choose from (D. E. Knuth, "Estimating the efficiency of backtrack programs", Mathematics of Computation 29, 1975).
pub(super) fn rows(graph: &Complement, choice: &Choice, beaten: usize) -> f64 {
    let (mut bound, mut branches, mut sum) = (Bound::default(), Vec::new(), 0.0);
    for descent in 0..DESCENTS {
        let (mut candidates, mut ways) = (all(graph.len()), 1.0);
        for depth in 0.. {
            let before = bound.rows;
            let left = beaten.saturating_sub(depth);
            bound.branches(graph, choice, depth, (&candidates, left), &mut branches);
            branches.retain(|branch: &Branch| branch.bound as usize > left);
            // Entering a branch reads a row, too.
            sum += ways * ((bound.rows - before) + branches.len() as u64) as f64;
            if branches.is_empty() {
                break;
            }
            let at = (hash(descent, depth as u64, 0) % branches.len() as u64) as usize;
            ways *= branches.len() as f64;
            branches[at..].iter().for_each(|branch| remove(&mut candidates, branch.vertex as usize));
            let row = graph.row(branches[at].vertex as usize);
            candidates.iter_mut().zip(row).for_each(|(all, row)| *all &= row);
        }
    }
    sum / DESCENTS as f64
}
