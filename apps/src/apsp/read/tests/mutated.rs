//! Ten thousand mutated files of each kind against readers that follow the formats' documents word for word, slowly and
//! without sentences; and graphs that are written and read again.

use super::*;
use crate::matrix::generate::hash;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// What a file says: vertices, names where they are not 0, 1, 2, …, and edges with their weights.
type Said = (usize, Option<Vec<u64>>, Vec<(u32, u32, f64)>);

/// Lines as words, without what is empty.
fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    text.split('\n').map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

fn digits(word: &str) -> Option<u64> {
    if word.chars().all(|c| c.is_ascii_digit()) { word.parse().ok() } else { None }
}

/// A weight that a graph whose type is not said may have.
fn weight(word: &str) -> Option<f64> {
    let number: f64 = word.parse().ok().filter(|number: &f64| number.is_finite())?;
    let is_whole = !word.contains(['.', 'e', 'E']);
    if is_whole { word.parse::<i64>().ok().map(|whole| whole as f64) } else { Some(number) }
}

/// What a DIMACS file says, if it is one.
fn said_by_dimacs(bytes: &[u8]) -> Option<Said> {
    let (mut head, mut edges) = (None, Vec::new());
    for line in lines(bytes).iter().filter(|line| !line.starts_with('c')) {
        match (line.split_ascii_whitespace().collect::<Vec<_>>().as_slice(), head) {
            (["p", "sp", vertices, arcs], None) => head = Some((digits(vertices)?, digits(arcs)?)),
            (["a", from, to, length], Some((vertices, _))) => {
                let end = |word| {
                    digits(word).filter(|end| (1..=vertices).contains(end)).map(|end| (end - 1) as u32)
                };
                edges.push((end(from)?, end(to)?, weight(length)?));
            }
            _ => return None,
        }
    }
    let (vertices, arcs) = head?;
    let vertices = usize::try_from(vertices).ok().filter(|vertices| *vertices <= VERTICES_MAX)?;
    (edges.len() as u64 == arcs).then_some((vertices, None, edges))
}

/// What an edge list says, if it is one.
fn said_by_list(bytes: &[u8]) -> Option<Said> {
    let (mut edges, mut counts) = (Vec::new(), BTreeSet::new());
    for line in lines(bytes).iter().filter(|line| !line.starts_with(['#', '%'])) {
        let words: Vec<&str> = line
            .split(|c: char| c.is_ascii_whitespace() || c == ',')
            .filter(|word| !word.is_empty())
            .collect();
        counts.insert(words.len());
        let [from, to, rest @ ..] = words.as_slice() else { return None };
        let length = match rest {
            [] => 1.0,
            [length] => weight(length)?,
            _ => return None,
        };
        edges.push((digits(from)?, digits(to)?, length));
    }
    if counts.len() > 1 {
        return None;
    }
    let names: BTreeSet<u64> = edges.iter().flat_map(|&(from, to, _)| [from, to]).collect();
    let names: Vec<u64> = names.into_iter().collect();
    let place = |name| names.binary_search(&name).unwrap() as u32;
    let edges = edges.into_iter().map(|(from, to, length)| (place(from), place(to), length)).collect();
    let is_counted = names.iter().enumerate().all(|(at, name)| *name == at as u64);
    Some((names.len(), (!is_counted).then_some(names), edges))
}

/// The same of what was read.
fn of_edges(edges: Edges) -> Said {
    let weights = match edges.weights {
        Weights::Whole(weights) => weights.into_iter().map(|weight| weight as f64).collect(),
        Weights::Real(weights) => weights,
    };
    let ends = edges.from.into_iter().zip(edges.to).zip(weights);
    (edges.vertices, edges.names, ends.map(|((from, to), weight)| (from, to, weight)).collect())
}

/// Some bytes others, more, fewer or gone, whole lines twice or elsewhere.
fn mutated(source: &str, step: u64) -> Vec<u8> {
    let alphabet = b"0123456789 \n\t-+.eEinfcpsa#%,\r\x00\xff\xc3";
    let random = |place: u64, below: usize| usize::try_from(hash(14, step, place) % below as u64).unwrap();
    let mut bytes = source.as_bytes().to_vec();
    for change in 0..1 + random(0, 4) as u64 {
        if bytes.is_empty() {
            break;
        }
        let at = random(10 + change, bytes.len());
        let byte = alphabet[random(20 + change, alphabet.len())];
        match random(30 + change, 8) {
            0 => bytes.insert(at, byte),
            1 => drop(bytes.remove(at)),
            2 => bytes.truncate(at),
            3 => {
                let lines: Vec<Vec<u8>> =
                    bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
                bytes.extend(&lines[random(40 + change, lines.len())]);
            }
            4 => {
                let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count().max(1);
                let which = random(50 + change, digits);
                let place =
                    (0..bytes.len()).filter(|&at| bytes[at].is_ascii_digit()).nth(which).unwrap_or(at);
                bytes.splice(
                    place..place,
                    b"9223372036854775807"[..1 + random(60 + change, 19)].iter().copied(),
                );
            }
            _ => bytes[at] = byte,
        }
    }
    bytes
}

/// Reads ten thousand mutations of some files, and compares all with what they say.
fn check(
    sources: &[&str],
    read: impl Fn(&[u8]) -> Result<Edges, Wrong>,
    said: impl Fn(&[u8]) -> Option<Said>,
) -> (u32, u32) {
    let (mut read_well, mut refused) = (0, 0);
    for step in 0..10_000u64 {
        let bytes = mutated(sources[(step % sources.len() as u64) as usize], step);
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        match read(&bytes) {
            Ok(edges) => {
                assert_eq!(Some(of_edges(edges)), said(&bytes), "{shown}");
                read_well += 1;
            }
            Err(Wrong::Line(line, bad)) => {
                assert_eq!(said(&bytes), None, "{bad}: {shown}");
                let lines = bytes.iter().filter(|&&b| b == b'\n').count() as u64 + 1;
                assert!((1..=lines).contains(&line), "line {line} of {lines}: {bad}");
                assert_eq!(bad.to_string().lines().count(), 1, "{bad}");
                refused += 1;
            }
            Err(Wrong::Io(error)) => panic!("{error}"),
        }
    }
    (read_well, refused)
}

#[test]
fn ten_thousand_mutated_dimacs_files_are_read_as_what_they_say_or_refused() {
    let sources = [
        GR,
        "c nothing but vertices\np sp 12 0\n",
        "p sp 3 3\r\na 1 2 -4\r\na 2 3 17\r\na 3 1 2.5e1\r\n",
        "c 9th challenge\nc\np sp 6 4\na 1 2 17\na 1 3 10\nc\na 2 4 2\na 6 5 9223372036854775807\n",
    ];
    let (read_well, refused) = check(&sources, |bytes| dimacs(bytes, Wanted::AsWritten), said_by_dimacs);
    assert!(read_well > 1000 && refused > 1000, "{read_well} read, {refused} refused");
}

#[test]
fn ten_thousand_mutated_edge_lists_are_read_as_what_they_say_or_refused() {
    let sources = [
        "# Directed graph\n# Nodes: 4 Edges: 4\n# FromNodeId\tToNodeId\n0\t1\n0\t2\n1\t3\n3\t0\n",
        "0 1 5\n1 2 -3\n2 0 9223372036854775807\n",
        "10,20,0.5\n20,1000000000000,2e3\n% konect\n7,10,4\n",
        "3 3\n",
    ];
    let (read_well, refused) = check(&sources, |bytes| list(bytes, Wanted::AsWritten), said_by_list);
    assert!(read_well > 1000 && refused > 1000, "{read_well} read, {refused} refused");
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        vertices in 1u32..50,
        edges in proptest::collection::vec((0u32..50, 0u32..50, any::<i64>()), 0..60),
        fractions: bool,
    ) {
        let edges: Vec<(u32, u32, i64)> =
            edges.into_iter().map(|(from, to, weight)| (from % vertices, to % vertices, weight)).collect();
        let length = |weight: i64| if fractions { format!("{:e}", weight as f64 / 7.0) } else { weight.to_string() };
        let weights = if fractions && !edges.is_empty() {
            Weights::Real(edges.iter().map(|edge| edge.2 as f64 / 7.0).collect())
        } else {
            Weights::Whole(edges.iter().map(|edge| edge.2).collect())
        };
        let arcs = edges.iter().map(|&(u, v, w)| format!("a {} {} {}\n", u + 1, v + 1, length(w)));
        let text = format!("p sp {vertices} {}\n{}", edges.len(), arcs.collect::<String>());
        let read = dimacs(text.as_bytes(), Wanted::AsWritten).unwrap();
        let ends = |edges: &[(u32, u32, i64)]| edges.iter().map(|edge| (edge.0, edge.1)).collect::<Vec<_>>();
        let read_ends = |read: &Edges| read.from.iter().copied().zip(read.to.iter().copied()).collect::<Vec<_>>();
        prop_assert_eq!((read.vertices, read_ends(&read), &read.weights), (vertices as usize, ends(&edges), &weights));
        // A loop at each vertex, for only what has an edge is in a list.
        let loops: Vec<_> = (0..vertices).map(|vertex| (vertex, vertex, 0)).chain(edges).collect();
        let text: String = loops.iter().map(|&(u, v, w)| format!("{u}\t{v}\t{}\n", length(w))).collect();
        let read = list(text.as_bytes(), Wanted::AsWritten).unwrap();
        prop_assert_eq!((read.vertices, read_ends(&read), &read.names), (vertices as usize, ends(&loops), &None));
    }
}
