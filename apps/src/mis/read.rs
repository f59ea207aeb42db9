//! Graphs from files: DIMACS `.col` and `.clq` here; edge lists and MatrixMarket files by the reader of `apsp`.
//!
//! Source: "Clique and coloring problems: graph format" (DIMACS, 1993). Nothing in a file is trusted.

use super::graph::{Graph, VERTICES_MAX};
use crate::apsp::read::{self, GraphReadError, Wanted};
use crate::matrix::lines::{LineError, Lines, TextError, Wrong, shortened, whole};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Why a graph could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read, or a line is wrong.
    #[error(transparent)]
    Text(#[from] TextError<Bad>),
    /// An edge list or a MatrixMarket file is wrong.
    #[error(transparent)]
    Other(#[from] GraphReadError),
    /// The name does not say what the file is.
    #[error("cannot tell what {} is by its name: it must end in .col or .clq (DIMACS), .txt, .tsv, .el or .edges \
        (an edge list) or .mtx (MatrixMarket)", path.display())]
    UnknownKind {
        /// The file.
        path: PathBuf,
    },
    /// More vertices than fit.
    #[error("{} has {vertices} vertices, and at most {VERTICES_MAX} fit", path.display())]
    TooMany {
        /// The file.
        path: PathBuf,
        /// Its vertices.
        vertices: usize,
    },
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Bad {
    /// A line that does not begin as one of the format does.
    #[error("a line begins with 'c', 'p' or 'e', not with '{0}'")]
    Kind(String),
    /// An edge before the line `p`, or none such line.
    #[error("the line 'p edge VERTICES EDGES' is missing before this one")]
    NoProblem,
    /// A second line `p`.
    #[error("there is a second line 'p'")]
    SecondProblem,
    /// A vertex that the graph does not have.
    #[error("vertex {0} is not one of 1 to {1}")]
    Vertex(u64, usize),
    /// Not as many edges as the line `p` says, however it counts.
    #[error("the line 'p' says {0} edges, and there are {1} lines of edges: has the file been cut off?")]
    Edges(u64, u64),
    /// More vertices than fit.
    #[error("{0} vertices are more than the {VERTICES_MAX} that fit")]
    TooMany(u64),
    /// What can be wrong with a line of any format.
    #[error(transparent)]
    Line(#[from] LineError),
}

/// Reads a graph; directions, weights, loops and edges that are named again make no difference. Vertices keep the names that
/// they have in the file.
///
/// # Errors
/// If the file cannot be read, is of none of the kinds, or a line is wrong; then with its number.
pub fn read(path: &Path) -> Result<Graph, ReadError> {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref() {
        Some("col" | "clq") => {
            let file = File::open(path).map_err(|source| Wrong::Io(source).of(path))?;
            Ok(dimacs(BufReader::with_capacity(256 * 1024, file)).map_err(|wrong| wrong.of(path))?)
        }
        Some(ending @ ("txt" | "tsv" | "el" | "edges" | "mtx")) => {
            let edges = read::read(path, Wanted::Real)?;
            let vertices = edges.vertices;
            if vertices > VERTICES_MAX {
                return Err(ReadError::TooMany { path: path.to_owned(), vertices });
            }
            let mut graph = Graph::new(vertices);
            edges.from.iter().zip(&edges.to).for_each(|(from, to)| graph.join(*from as usize, *to as usize));
            graph.first = u64::from(ending == "mtx");
            graph.names = edges.names;
            Ok(graph)
        }
        _ => Err(ReadError::UnknownKind { path: path.to_owned() }),
    }
}

fn dimacs(source: impl BufRead) -> Result<Graph, Wrong<Bad>> {
    let mut lines = Lines::new(source);
    let mut graph: Option<Graph> = None;
    let (mut announced, mut edges) = (0, 0_u64);
    while let Some((line, text)) = lines.next()? {
        let wrong = |bad: Bad| Wrong::Line(line, bad);
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        match (words.first().copied(), &mut graph) {
            (None | Some("c"), _) => {}
            (Some("p"), Some(_)) => return Err(wrong(Bad::SecondProblem)),
            (Some("p"), None) => {
                let (said, empty) = problem(&words).map_err(wrong)?;
                (announced, graph) = (said, Some(empty));
            }
            (Some("e"), None) => return Err(wrong(Bad::NoProblem)),
            (Some("e"), Some(graph)) => {
                edge(graph, &words).map_err(wrong)?;
                edges += 1;
            }
            // Names and colours of vertices, in some files.
            (Some("n" | "d" | "v" | "x"), _) => {}
            (Some(word), _) if word.starts_with('c') => {}
            (Some(word), _) => return Err(wrong(Bad::Kind(shortened(word)))),
        }
    }
    // Files count edges once or twice, and name them once or twice; who did not know how many there would be said 0.
    if announced > 0 && (edges > announced.saturating_mul(2) || announced > edges.saturating_mul(2)) {
        return Err(lines.wrong(Bad::Edges(announced, edges)));
    }
    graph.ok_or_else(|| lines.wrong(Bad::NoProblem))
}

/// How many edges a line `p edge VERTICES EDGES` says, and the graph, as yet without edges.
fn problem(words: &[&str]) -> Result<(u64, Graph), Bad> {
    let ["p", _, vertices, edges] = words else {
        return Err(LineError::Words { expected: "'p edge VERTICES EDGES'", got: words.len() }.into());
    };
    let edges = whole(edges, "a count of edges")?;
    let vertices = whole(vertices, "a count of vertices")?;
    let fits = usize::try_from(vertices).ok().filter(|&few| few <= VERTICES_MAX);
    let mut graph = Graph::new(fits.ok_or(Bad::TooMany(vertices))?);
    graph.first = 1;
    Ok((edges, graph))
}

/// A line `e ONE OTHER`.
fn edge(graph: &mut Graph, words: &[&str]) -> Result<(), Bad> {
    let ["e", one, other] = words else {
        return Err(LineError::Words { expected: "'e ONE OTHER'", got: words.len() }.into());
    };
    let vertices = graph.vertices;
    let vertex = |word| {
        let name = whole(word, "a vertex")?;
        let place = usize::try_from(name).ok().and_then(|name| name.checked_sub(1));
        place.filter(|&place| place < vertices).ok_or(Bad::Vertex(name, vertices))
    };
    let (one, other) = (vertex(one)?, vertex(other)?);
    graph.join(one, other);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(name: &str, text: &str) -> Result<Graph, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        read(&path).map_err(|e| e.to_string().replace(&format!("{}/", folder.path().display()), ""))
    }

    #[test]
    fn a_graph_is_the_same_from_a_file_of_any_kind() {
        let graph =
            from("g.col", "c a path\np edge 4 3\ne 1 2\ne 2 3\ne 3 2\nn 1 5\ne 3 3\ne 4 3\n").unwrap();
        let edges: Vec<_> = (0..4).flat_map(|one| (0..one).map(move |other| (other, one))).collect();
        let of =
            |graph: &Graph| edges.iter().copied().filter(|e| graph.has_edge(e.0, e.1)).collect::<Vec<_>>();
        assert_eq!((of(&graph), graph.name(0)), (vec![(0, 1), (1, 2), (2, 3)], 1));
        let list = from("g.txt", "# names have gaps\n10 20\n20 30 \n30 70\n").unwrap();
        assert_eq!((of(&list), list.name(3)), (of(&graph), 70));
        let market = "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 3\n2 1\n3 2\n4 3\n";
        let market = from("g.mtx", market).unwrap();
        assert_eq!((of(&market), market.name(3)), (of(&graph), 4));
    }

    #[test]
    fn whatever_is_wrong_is_named_with_its_line() {
        let said = |name, text| from(name, text).unwrap_err();
        assert_eq!(said("g.clq", "p col 2 1\ne 1 3\n"), "g.clq:2: vertex 3 is not one of 1 to 2");
        assert_eq!(said("g.clq", "p col 2 1\ne 0 1\n"), "g.clq:2: vertex 0 is not one of 1 to 2");
        assert!(said("g.col", "e 1 2\n").starts_with("g.col:1: the line 'p edge VERTICES EDGES' is missing"));
        assert!(said("g.col", "").contains("is missing"));
        assert_eq!(said("g.col", "p edge 2 1\np edge 2 1\n"), "g.col:2: there is a second line 'p'");
        assert_eq!(said("g.col", "p edge 2\n"), "g.col:1: expected 'p edge VERTICES EDGES', got 3 words");
        assert_eq!(said("g.col", "p edge 2 1\ne 1\n"), "g.col:2: expected 'e ONE OTHER', got 2 words");
        let cut =
            "g.col:3: the line 'p' says 5 edges, and there are 2 lines of edges: has the file been cut off?";
        assert_eq!(said("g.col", "p edge 3 5\ne 1 2\ne 2 3\n"), cut);
        assert!(said("g.col", "p edge 3 1\ne 1 2\ne 2 3\ne 1 3\n").contains("says 1 edges, and there are 3"));
        assert!(from("g.col", "p edge 3 0\ne 1 2\ne 2 3\n").is_ok());
        assert_eq!(said("g.col", "p edge 2 x\n"), "g.col:1: 'x' is not a count of edges");
        assert!(said("g.col", "q\n").contains("begins with 'c', 'p' or 'e', not with 'q'"));
        assert!(said("g.col", "p edge 99999999 1\n").contains("99999999 vertices are more than the 65536"));
        assert!(said("g.txt", "1 2\n3\n").starts_with("g.txt:2: "));
        assert!(said("g.gr", "").contains("it must end in .col or .clq (DIMACS)"));
    }
}
