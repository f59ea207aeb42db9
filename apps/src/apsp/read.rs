//! Graphs from files: DIMACS `.gr`, edge lists as SNAP has them, MatrixMarket `.mtx`.
//!
//! Sources: the 9th DIMACS implementation challenge, "Shortest paths" (file format); J. Leskovec and A. Krevl,
//! "SNAP datasets"; for MatrixMarket see [`market`]. Nothing in a file is trusted: every wrong line is named, and
//! nothing is allocated by a number that the file only announces.

use super::graph::{EDGES_MAX, Edges, Negative, VERTICES_MAX, Weights};
use crate::matrix::lines::{self, LineError, Lines, TextError, has_digits_only, shortened, there_are, whole};
use crate::matrix::market::{self, MarketReadError};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// From here on not every whole number is a 64-bit floating-point one: 2^53.
const WHOLE_MAX: f64 = (1u64 << 53) as f64;

/// Why a graph could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphReadError {
    /// The file cannot be read, or a line is wrong.
    #[error(transparent)]
    Text(#[from] TextError<GraphLineError>),
    /// A MatrixMarket file is wrong.
    #[error(transparent)]
    Market(#[from] MarketReadError),
    /// The name does not say what the file is.
    #[error("cannot tell what {} is by its name: it must end in .gr (DIMACS), .txt, .tsv, .el or .edges \
        (an edge list) or .mtx (MatrixMarket)", path.display())]
    UnknownKind {
        /// The file.
        path: PathBuf,
    },
    /// There are no vertices.
    #[error("{} has no edges, and so no vertices", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A MatrixMarket file that is no graph.
    #[error("{} is a {rows} x {cols} matrix: a graph's matrix is square", path.display())]
    NotSquare {
        /// The file.
        path: PathBuf,
        /// Its rows.
        rows: u64,
        /// Its columns.
        cols: u64,
    },
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphLineError {
    /// A vertex that the graph does not have.
    #[error("vertex {vertex} is not one of 1 to {vertices}")]
    Vertex {
        /// The vertex.
        vertex: u64,
        /// Vertices of the graph.
        vertices: usize,
    },
    /// More vertices or edges than fit.
    #[error("{count} {of} are more than the {most} that fit")]
    TooMany {
        /// How many.
        count: u64,
        /// Of what.
        of: &'static str,
        /// How many fit.
        most: usize,
    },
    /// A graph for another problem than shortest paths.
    #[error("the file is for the problem '{0}', and only 'sp', shortest paths, can be read")]
    Problem(String),
    /// A line that does not begin as one of the format does.
    #[error("a line begins with 'c', 'p sp' or 'a', not with '{0}'")]
    Kind(String),
    /// An arc before the line `p`, or none such line.
    #[error("the line 'p sp VERTICES ARCS' is missing before this one")]
    NoProblem,
    /// A second line `p`.
    #[error("there is a second line 'p'")]
    SecondProblem,
    /// Fewer or more arcs than announced.
    #[error("{} announced, and the file has {got}", there_are(*.expected, "arc", "arcs"))]
    Count {
        /// Arcs announced.
        expected: u64,
        /// Arcs found.
        got: u64,
    },
    /// An edge with a weight among others without one, or the other way round.
    #[error("this edge has {}, unlike those before it", if *.has_weight { "a weight" } else { "no weight" })]
    Mixed {
        /// Whether this one has a weight.
        has_weight: bool,
    },
    /// What can be wrong with a line of any format.
    #[error(transparent)]
    Line(#[from] LineError),
}

use GraphLineError as Bad;

/// What went wrong, and in which line.
type Wrong = lines::Wrong<GraphLineError>;

/// Which weights are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Whole ones if all are, else with fractions.
    AsWritten,
    /// Whole ones only; others are refused.
    Whole,
    /// As floating-point numbers.
    Real,
}

/// How a file is written, by the ending of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// DIMACS.
    Dimacs,
    /// Edge list.
    List,
    /// MatrixMarket.
    Market,
}

impl Format {
    /// That of a file.
    ///
    /// # Errors
    /// If the name does not say.
    pub fn of(path: &Path) -> Result<Self, GraphReadError> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("gr") => Ok(Self::Dimacs),
            Some("txt" | "tsv" | "el" | "edges") => Ok(Self::List),
            Some("mtx") => Ok(Self::Market),
            _ => Err(GraphReadError::UnknownKind { path: path.to_owned() }),
        }
    }
}

/// Reads a graph. Edges go from the first vertex of a line to the second, or from a row to a column; of a symmetric
/// matrix both ways. The vertices of an edge list are numbered by their names, ascending; without a weight an edge
/// is 1 long. An `array` matrix has an edge where it is not 0.
///
/// # Errors
/// If the file cannot be read, is of none of the kinds, or a line is wrong; then with its number.
pub fn read(path: &Path, wanted: Wanted) -> Result<Edges, GraphReadError> {
    let format = Format::of(path)?;
    if format == Format::Market {
        return market_graph(path, wanted);
    }
    let source = BufReader::with_capacity(256 * 1024, open(path)?);
    let edges = if format == Format::Dimacs { dimacs(source, wanted) } else { list(source, wanted) };
    let edges = edges.map_err(|wrong| wrong.of(path))?;
    if edges.vertices == 0 { Err(GraphReadError::Empty { path: path.to_owned() }) } else { Ok(edges) }
}

/// Vertices and edges that the beginning of a file announces; of an edge list, about.
///
/// # Errors
/// If the file cannot be read or its beginning is wrong.
pub fn announced(path: &Path) -> Result<(usize, usize), GraphReadError> {
    let bytes = std::fs::metadata(path).map_err(|source| Wrong::Io(source).of(path))?.len();
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    // An edge takes some 14 bytes of text.
    let by_size = bytes / 14;
    match Format::of(path)? {
        Format::List => Ok(((by_size / 8).max(1), by_size)),
        Format::Market => {
            let [rows, _] = market::sides(path)?;
            Ok((usize::try_from(rows).unwrap_or(usize::MAX), by_size))
        }
        Format::Dimacs => {
            let mut lines = Lines::new(BufReader::new(open(path)?));
            let mut vertices = 1;
            while let Ok(Some((_, text))) = lines.next::<Bad>() {
                if text.starts_with('p') {
                    vertices = problem(text).map_or(1, |(vertices, _)| vertices);
                    break;
                }
            }
            Ok((vertices, by_size))
        }
    }
}

fn open(path: &Path) -> Result<File, GraphReadError> {
    Ok(File::open(path).map_err(|source| Wrong::Io(source).of(path))?)
}

/// Edges as they come.
struct Taken {
    edges: Edges,
    wanted: Wanted,
}

impl Taken {
    fn new(wanted: Wanted) -> Self {
        let weights =
            if wanted == Wanted::Real { Weights::Real(Vec::new()) } else { Weights::Whole(Vec::new()) };
        let edges =
            Edges { vertices: 0, from: Vec::new(), to: Vec::new(), weights, names: None, negative: None };
        Self { edges, wanted }
    }

    fn edge(&mut self, from: u32, to: u32) -> Result<(), Bad> {
        // As many again for an undirected graph.
        if self.edges.len() >= EDGES_MAX / 2 {
            return Err(Bad::TooMany {
                count: self.edges.len() as u64 + 1,
                of: "edges",
                most: EDGES_MAX / 2,
            });
        }
        self.edges.from.push(from);
        self.edges.to.push(to);
        Ok(())
    }

    fn weight(&mut self, line: u64, word: &str) -> Result<(), Bad> {
        let wrong = |expected| Err(LineError::number(word, expected).into());
        if word.starts_with('-')
            && self.edges.negative.is_none()
            && word.parse::<f64>().is_ok_and(|w| w < 0.0)
        {
            self.edges.negative = Some(Negative { line, weight: shortened(word) });
        }
        if let Weights::Whole(weights) = &mut self.edges.weights {
            if let Ok(weight) = word.parse::<i64>() {
                weights.push(weight);
                return Ok(());
            }
            if self.wanted == Wanted::Whole {
                return wrong("a whole number of 64 bits, as --dtype i32 and i64 want it");
            }
            self.edges.weights = Weights::Real(weights.iter().map(|&weight| weight as f64).collect());
        }
        let Weights::Real(weights) = &mut self.edges.weights else { return Ok(()) };
        let is_whole = |word: &str| has_digits_only(word.trim_start_matches(['-', '+']));
        let does_not_fit = |word: &str| is_whole(word) && word.parse::<i64>().is_err();
        match word.parse::<f64>() {
            // Others of the graph would be rounded as well, and paths between them told as if they were exact.
            Ok(_) if self.wanted == Wanted::AsWritten && does_not_fit(word) => {
                return wrong("a whole weight of 64 bits: --dtype f64 rounds it");
            }
            Ok(weight) if weight.is_finite() => weights.push(weight),
            Ok(_) => return wrong("a finite number"),
            Err(_) => return wrong("a number"),
        }
        Ok(())
    }
}

fn dimacs(source: impl BufRead, wanted: Wanted) -> Result<Edges, Wrong> {
    let mut lines = Lines::new(source);
    let mut taken = Taken::new(wanted);
    let mut head: Option<(usize, u64)> = None;
    while let Some((line, text)) = lines.next()? {
        let wrong = |bad: Bad| Wrong::Line(line, bad);
        match text.split_ascii_whitespace().next() {
            None | Some("c") => {}
            Some("p") if head.is_some() => return Err(wrong(Bad::SecondProblem)),
            Some("p") => head = Some(problem(text).map_err(wrong)?),
            Some("a") => {
                let (vertices, _) = head.ok_or_else(|| wrong(Bad::NoProblem))?;
                arc(&mut taken, line, text, vertices).map_err(wrong)?;
            }
            Some(word) if word.starts_with('c') => {}
            Some(word) => return Err(wrong(Bad::Kind(shortened(word)))),
        }
    }
    let (vertices, expected) = head.ok_or_else(|| lines.wrong(Bad::NoProblem))?;
    let got = taken.edges.len() as u64;
    if got != expected {
        return Err(lines.wrong(Bad::Count { expected, got }));
    }
    taken.edges.vertices = vertices;
    Ok(taken.edges)
}

/// Vertices and arcs of a line `p sp VERTICES ARCS`.
fn problem(text: &str) -> Result<(usize, u64), Bad> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if let ["p", other, _, _] = words.as_slice()
        && *other != "sp"
    {
        return Err(Bad::Problem(shortened(other)));
    }
    let ["p", "sp", vertices, arcs] = words.as_slice() else {
        return Err(LineError::Words { expected: "'p sp VERTICES ARCS'", got: words.len() }.into());
    };
    let (vertices, arcs) = (whole(vertices, "a count of vertices")?, whole(arcs, "a count of arcs")?);
    match usize::try_from(vertices) {
        Ok(few) if few <= VERTICES_MAX => Ok((few, arcs)),
        _ => Err(Bad::TooMany { count: vertices, of: "vertices", most: VERTICES_MAX }),
    }
}

/// A line `a FROM TO WEIGHT`.
fn arc(taken: &mut Taken, line: u64, text: &str, vertices: usize) -> Result<(), Bad> {
    let mut words = text.split_ascii_whitespace().skip(1);
    let (Some(from), Some(to), Some(weight), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        let got = text.split_ascii_whitespace().count();
        return Err(LineError::Words { expected: "'a FROM TO WEIGHT'", got }.into());
    };
    let vertex = |word| {
        let vertex = whole(word, "a vertex")?;
        let place = vertex.checked_sub(1).filter(|&place| place < vertices as u64);
        place.and_then(|place| u32::try_from(place).ok()).ok_or(Bad::Vertex { vertex, vertices })
    };
    taken.edge(vertex(from)?, vertex(to)?)?;
    taken.weight(line, weight)
}

/// Lines `FROM TO`, or lines `FROM TO WEIGHT`, and comments after `#` or `%`.
fn list(source: impl BufRead, wanted: Wanted) -> Result<Edges, Wrong> {
    let mut lines = Lines::new(source);
    let mut taken = Taken::new(wanted);
    let mut ends: Vec<[u64; 2]> = Vec::new();
    let mut has_weights = None;
    while let Some((line, text)) = lines.next_data(&['#', '%'])? {
        let wrong = |bad: Bad| Wrong::Line(line, bad);
        let mut words =
            text.split(|c: char| c.is_ascii_whitespace() || c == ',').filter(|word| !word.is_empty());
        let (Some(from), Some(to)) = (words.next(), words.next()) else {
            return Err(wrong(LineError::Words { expected: "'FROM TO' or 'FROM TO WEIGHT'", got: 1 }.into()));
        };
        let vertex = |word| whole(word, "a vertex, named by a whole number").map_err(|bad| wrong(bad.into()));
        ends.push([vertex(from)?, vertex(to)?]);
        let weight = words.next();
        if let more @ 1.. = words.count() {
            return Err(wrong(
                LineError::Words { expected: "'FROM TO' or 'FROM TO WEIGHT'", got: 3 + more }.into(),
            ));
        }
        // A line that lost its end must not become an edge of weight 1.
        if *has_weights.get_or_insert(weight.is_some()) != weight.is_some() {
            return Err(wrong(Bad::Mixed { has_weight: weight.is_some() }));
        }
        taken.weight(line, weight.unwrap_or("1")).map_err(wrong)?;
    }
    let mut names: Vec<u64> = ends.iter().flatten().copied().collect();
    names.sort_unstable();
    names.dedup();
    let too_many = |count: usize, of, most| lines.wrong(Bad::TooMany { count: count as u64, of, most });
    if names.len() > VERTICES_MAX {
        return Err(too_many(names.len(), "vertices", VERTICES_MAX));
    }
    for [from, to] in ends {
        let place = |name| names.partition_point(|&known| known < name) as u32;
        taken.edge(place(from), place(to)).map_err(|bad| lines.wrong(bad))?;
    }
    taken.edges.vertices = names.len();
    let has_gaps = names.last().is_some_and(|&last| last != names.len() as u64 - 1);
    taken.edges.names = has_gaps.then_some(names);
    Ok(taken.edges)
}

fn market_graph(path: &Path, wanted: Wanted) -> Result<Edges, GraphReadError> {
    let [rows, cols] = market::sides(path)?;
    if rows != cols {
        return Err(GraphReadError::NotSquare { path: path.to_owned(), rows, cols });
    }
    let line_error = |line, bad| Wrong::Line(line, bad).of(path).into();
    let too_many = Bad::TooMany { count: rows, of: "vertices", most: VERTICES_MAX };
    let vertices = usize::try_from(rows).ok().filter(|&few| few <= VERTICES_MAX);
    let vertices = vertices.ok_or_else(|| line_error(1, too_many))?;
    let mut taken = Taken::new(wanted);
    let mut refused = None;
    market::entries(path, |entry| {
        if refused.is_some() || (!entry.is_sparse && entry.value == 0.0) {
            return;
        }
        if entry.is_whole && wanted != Wanted::Real && entry.value.abs() >= WHOLE_MAX {
            let expected =
                "a whole weight below 2^53, up to which .mtx files are read exactly: write it as .gr";
            let word = format!("{:.0}", entry.value);
            refused = Some((entry.line, LineError::number(&word, expected).into()));
            return;
        }
        // Words, because whole numbers stay whole so.
        let word = if entry.is_whole || (wanted == Wanted::Whole && entry.value.fract() == 0.0) {
            format!("{:.0}", entry.value)
        } else {
            format!("{:e}", entry.value)
        };
        let [from, to] = [entry.row, entry.col].map(|from_one| (from_one - 1) as u32);
        let done = taken.edge(from, to).and_then(|()| taken.weight(entry.line, &word));
        refused = done.err().map(|bad| (entry.line, bad));
    })?;
    if let Some((line, bad)) = refused {
        return Err(line_error(line, bad));
    }
    taken.edges.vertices = vertices;
    Ok(taken.edges)
}

#[cfg(test)]
mod tests;
