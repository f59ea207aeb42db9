//! What was found: for the report, for a file, and whether it is right.

use super::arguments::Mis;
use super::neighbours::{Neighbours, addable};
use super::subproblem::Tally;
use chares::{Cx as _, Driver, RunError};

/// An independent set, and what is known of it.
#[derive(Debug)]
pub(super) struct IndependentSet {
    /// Vertices of the graph, ascending.
    pub(super) set: Vec<u32>,
    /// No independent set has more vertices, by a colouring of the complement.
    pub(super) bound: usize,
    /// Whether all larger ones have been ruled out.
    pub(super) is_proven: bool,
    /// Seconds of the search until it was found; `None` if it was known before.
    pub(super) after: Option<f64>,
}

impl IndependentSet {
    /// No independent set has more vertices.
    fn upper_bound(&self) -> usize {
        if self.is_proven { self.set.len() } else { self.bound }
    }

    /// States work and result in the report.
    pub(super) fn state(
        &self,
        main: &mut Driver,
        mis: &Mis,
        (graph, edges): (&dyn Neighbours, u64),
        (tally, descent): (&Tally, &[u32]),
    ) {
        let (found, bound) = (self.set.len(), self.upper_bound());
        let outcome = main.outcome();
        let per_second = outcome.all_timed().map(|timed| tally.nodes as f64 / timed.as_secs_f64().max(1e-9));
        outcome.work(tally.work);
        outcome.fact("vertices", graph.vertices());
        outcome.fact("edges", edges);
        outcome.fact("found", found);
        outcome.fact("upper_bound", bound);
        outcome.fact("first_upper_bound", self.bound);
        outcome.fact("is_proven", found == bound);
        outcome.fact("nodes", tally.nodes);
        outcome.fact("nodes_per_s", per_second);
        outcome.fact("rows", tally.rows);
        outcome.fact("subproblems", tally.subproblems);
        outcome.fact("found_after_s", self.after);
        let how = match (found == bound, self.after) {
            (true, Some(after)) => format!("proven to be the largest, found after {after:.2} s"),
            (true, None) => "proven to be the largest, known before the search".into(),
            (false, _) => format!("not proven: none has more than {bound}"),
        };
        outcome.remark(&format!("an independent set of {found} vertices, {how}"));
        let rate = per_second.map_or(String::new(), |rate| format!(", {:.2} million nodes/s", 1e-6 * rate));
        outcome.remark(&format!("{} nodes in {} subproblems{rate}", tally.nodes, tally.subproblems));
        if mis.lim.is_some() {
            let said: Vec<String> = descent.iter().map(ToString::to_string).collect();
            outcome.remark(&format!("candidates along the first descent: {}", said.join(", ")));
            outcome.fact("candidates_of_first_descent", descent);
        }
    }

    /// A line of what it is, then the name of each vertex on a line.
    pub(super) fn text(&self, (graph, edges): (&dyn Neighbours, u64)) -> String {
        let (found, bound) = (self.set.len(), self.upper_bound());
        let known =
            if found == bound { "none is larger".into() } else { format!("none has more than {bound}") };
        let mut text = format!(
            "# an independent set of {found} of {} vertices, {edges} edges; {known}\n",
            graph.vertices()
        );
        self.set.iter().for_each(|&vertex| text += &format!("{}\n", graph.name(vertex as usize)));
        text
    }

    /// Checks it against the graph as it was read or made.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn verify(&self, main: &mut Driver, graph: &dyn Neighbours) -> Result<(), RunError> {
        main.phase("verifying", 0, 0);
        main.outcome().collected();
        let wrong = self.wrong(graph);
        main.outcome().verified_by(wrong.is_none(), "no edge in it, no vertex to be added".into());
        wrong.map_or(Ok(()), |sentence| Err(RunError::Wrong(sentence)))
    }

    /// What is wrong with it, if anything is.
    fn wrong(&self, graph: &dyn Neighbours) -> Option<String> {
        let name = |vertex: usize| graph.name(vertex);
        match addable(graph, &self.set) {
            Err((one, other)) => Some(format!(
                "the set has the vertices {} and {}, which are neighbours",
                name(one),
                name(other)
            )),
            Ok(free) => free.first().map(|&vertex| {
                format!("the set is not maximal: vertex {} has no neighbour in it", name(vertex))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::Graph;
    use super::*;

    #[test]
    fn sets_that_are_none_are_told_by_the_names_of_their_vertices() {
        let mut path = Graph::new(4);
        (0..3).for_each(|at| path.join(at, at + 1));
        path.first = 1;
        let of = |set: &[u32]| IndependentSet { set: set.to_vec(), bound: 2, is_proven: false, after: None };
        assert_eq!(of(&[0, 2]).wrong(&path), None);
        assert!(of(&[0, 1, 3]).wrong(&path).unwrap().contains("vertices 1 and 2, which are neighbours"));
        assert!(of(&[1]).wrong(&path).unwrap().contains("vertex 4 has no neighbour in it"));
        let expected = "# an independent set of 2 of 4 vertices, 3 edges; none is larger\n1\n4\n";
        assert_eq!(of(&[0, 3]).text((&path, 3)), expected);
        assert!(of(&[1]).text((&path, 3)).contains("none has more than 2\n"));
    }
}
