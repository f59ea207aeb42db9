//! Against brute force and known values, on one thread and on nodes inside one process.

use super::bound::Choice;
use super::graph::{Complement, Graph, all};
use super::neighbours::addable;
use super::search::{Found, Known, Search, Workspace};
use super::{Mis, add_to, arguments, drive};
use chares::{Better as _, InProcess, Program};
use clap::{Args as _, Command, FromArgMatches as _};
use command::CommandLine;
use std::path::Path;
use std::time::Duration;

pub(super) fn of(words: &[&str]) -> Mis {
    let command = Mis::augment_args(Command::new("mis"));
    Mis::from_arg_matches(&command.get_matches_from([&["mis"], words].concat())).unwrap()
}

/// The size of a largest independent set, by trying each vertex in it and out of it.
fn by_brute_force(graph: &Graph, candidates: u32) -> u32 {
    if candidates == 0 {
        return 0;
    }
    let first = candidates.trailing_zeros();
    let rest = candidates & (candidates - 1);
    let neighbours = graph.row(first as usize)[0] as u32;
    (1 + by_brute_force(graph, rest & !neighbours)).max(if rest & neighbours == 0 {
        0
    } else {
        by_brute_force(graph, rest)
    })
}

/// What one search finds, with what it is told beforehand; every few rows half of what is left is given to another.
fn searched(graph: &Complement, choice: &Choice, mut known: Known, rows: u64) -> Option<Found> {
    let mut work = Workspace::default();
    let mut waiting = vec![Search::new(graph, choice, known.beaten, all(graph.len()), &mut work)];
    let mut best: Option<Found> = None;
    let is_first = known.before.is_some();
    if is_first {
        known.before = None;
    }
    let mut parts = 0.0;
    while let Some(mut search) = waiting.pop() {
        while !search.is_over() {
            if let Some((set, path)) = search.run(graph, choice, &known, rows, &mut work) {
                let found = Found { set, path, after: Duration::ZERO };
                assert!(found.set.len() > known.beaten);
                if best.as_ref().is_none_or(|best| found.better_than(best)) {
                    if is_first {
                        known.before = Some(found.path.clone());
                    } else {
                        known.beaten = found.set.len();
                    }
                    best = Some(found);
                }
            }
            // The part that is given away is searched first, as another PE might.
            if let Some(part) = search.divide(&known) {
                waiting.push(std::mem::replace(&mut search, part));
            }
        }
        parts += search.done;
    }
    assert!(parts < 1.0 + 1e-9, "{parts}");
    best
}

#[test]
fn the_search_finds_what_brute_force_does_however_it_is_divided() {
    for seed in 0..200u64 {
        let (vertices, density) = (1 + (seed % 20) as usize, 0.1 + 0.8 * (seed % 7) as f64 / 6.0);
        let graph = Graph::random(vertices, density, seed);
        let expected = by_brute_force(&graph, u32::MAX >> (32 - vertices)) as usize;
        let complement = Complement::of(&graph);
        for rows in [1, 7, u64::MAX / 2] {
            let found = searched(&complement, &Choice::Bound, Known::default(), rows).unwrap();
            let right = (expected, Ok(vec![]));
            assert_eq!((found.set.len(), addable(&graph, &found.set)), right, "{seed}, {rows} rows");
            let known = Known { beaten: expected, before: None };
            assert_eq!(searched(&complement, &Choice::Bound, known, rows), None);
        }
    }
}

#[test]
fn the_first_of_the_largest_sets_is_the_same_however_the_search_is_divided() {
    for seed in 0..20 {
        let complement = Complement::of(&Graph::random(40, 0.3, seed));
        for choice in [Choice::Bound, Choice::Beam(vec![3, 2, 2, 1])] {
            let best = searched(&complement, &choice, Known::default(), 1000).unwrap().set.len();
            let known = Known { beaten: best - 1, before: Some(Vec::new()) };
            let found = [1, 20, u64::MAX / 2].map(|rows| searched(&complement, &choice, known.clone(), rows));
            assert!(found[0].is_some() && found.iter().all(|other| *other == found[0]), "{found:?}");
        }
    }
}

#[test]
fn a_beam_of_everything_is_exhaustive_and_narrower_ones_find_no_more() {
    for seed in 0..10 {
        let complement = Complement::of(&Graph::random(24, 0.4, seed));
        let size = |choice: &Choice| searched(&complement, choice, Known::default(), 50).unwrap().set.len();
        let sizes = [vec![24], vec![4, 2, 1], vec![1]].map(|limits| size(&Choice::Beam(limits)));
        assert_eq!(sizes[0], size(&Choice::Bound));
        assert!(sizes[0] >= sizes[1] && sizes[1] >= sizes[2], "{sizes:?}");
    }
}

/// Cliques of words of which any two differ in at least so many bits (DIMACS `hamming6-4`, `johnson8-4-4` and the like).
fn words(bits: u32, ones: Option<u32>, distance: u32) -> Graph {
    let words: Vec<u32> =
        (0..1u32 << bits).filter(|word| ones.is_none_or(|ones| word.count_ones() == ones)).collect();
    let mut graph = Graph::new(words.len());
    for (one, first) in words.iter().enumerate() {
        for (other, second) in words[..one].iter().enumerate() {
            if (first ^ second).count_ones() >= distance {
                graph.join(one, other);
            }
        }
    }
    graph
}

#[test]
fn known_cliques_of_codes_are_proven() {
    let known = [
        ((6, None, 2), 32),
        ((6, None, 4), 4),
        ((8, None, 4), 16),
        ((8, Some(4), 4), 14),
        ((8, Some(2), 4), 4),
    ];
    for ((bits, ones, distance), expected) in known {
        let complement = Complement::of(&words(bits, ones, distance).complement());
        let found = searched(&complement, &Choice::Bound, Known::default(), u64::MAX / 2).unwrap();
        assert_eq!(found.set.len(), expected, "{bits} {ones:?} {distance}");
    }
}

/// A run; what it writes.
fn run(mix: &InProcess, folder: &Path, words: &[&str]) -> String {
    let out = folder.join("set.txt");
    let mis = of(&[words, &["--verify", "--out", out.to_str().unwrap()]].concat());
    arguments::check(&mis).unwrap();
    let program = add_to(CommandLine::new(Program::new("test", "1"))).into_program();
    program.run_in_process(mix, |main| drive::drive(main, mis.completed()?)).unwrap();
    std::fs::read_to_string(out).unwrap()
}

/// Whatever the machines, and though subproblems move: as many vertices, and the same ones where that is asked for.
#[test]
fn every_mix_finds_the_same_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.txt");
    std::fs::write(&path, "1 2\n2 3\n3 4\n4 5\n5 1\n9 10\n").unwrap();
    let works: [&[&str]; 4] = [
        &["--vertices", "110", "--density", "0.2", "--deterministic"],
        &["--vertices", "300", "--density", "0.5", "--lim", "8,4,2,1", "--deterministic"],
        &["--graph", path.to_str().unwrap(), "--complement", "--deterministic"],
        &["--vertices", "1", "--deterministic"],
    ];
    for words in works {
        let mixes = [
            InProcess::new(&[1]),
            InProcess::new(&[2, 1]).always_pup(),
            InProcess::new(&[1, 1, 2]).speeds(&[1.0, 0.3, 0.55, 0.01]).wander(3),
        ];
        let found = mixes.map(|mix| run(&mix, folder.path(), words));
        assert!(found.iter().all(|other| *other == found[0]), "{words:?}: {found:?}");
    }
}

/// The same tree, whoever has the rows: the same sets are found, however many vertices are left to one PE.
#[test]
fn a_graph_in_parts_has_the_set_of_the_whole_on_every_mix() {
    let folder = tempfile::tempdir().unwrap();
    let (list, empty) = (folder.path().join("g.txt"), folder.path().join("e.col"));
    let edges: Vec<_> =
        (0..90u64).flat_map(|at| [(at, (7 * at + 3) % 90), (at, (at * at + 1) % 90)]).collect();
    let edges: String = edges.iter().map(|(one, other)| format!("{} {}\n", 10 + one, 10 + other)).collect();
    std::fs::write(&list, edges).unwrap();
    std::fs::write(&empty, "p edge 0 0\n").unwrap();
    let works: [&[&str]; 6] = [
        &["--vertices", "300", "--density", "0.5", "--lim", "6,4,2,1"],
        &["--vertices", "130", "--density", "0.3", "--lim", "3", "--seed", "5", "--complement"],
        &["--graph", list.to_str().unwrap(), "--lim", "4,3,2,1"],
        &["--graph", list.to_str().unwrap(), "--lim", "90,9", "--complement"],
        &["--graph", empty.to_str().unwrap(), "--lim", "1"],
        &["--vertices", "2", "--density", "1", "--lim", "2,1"],
    ];
    for words in works {
        let words = [words, &["--deterministic"]].concat();
        let whole = run(&InProcess::new(&[1]), folder.path(), &words);
        let vertices = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        let mixes = [
            InProcess::new(&[1]),
            InProcess::new(&[2, 1]).always_pup(),
            InProcess::new(&[1, 1, 2]).speeds(&[1.0, 0.3, 0.55, 0.01]).wander(3),
            InProcess::new(&[1; 5]),
        ];
        let words = [&words[..], &["--adjacency", "partitioned"]].concat();
        let found = mixes.map(|mix| run(&mix, folder.path(), &words));
        assert!(found.iter().all(|other| *other == found[0]), "{words:?}: {found:?}");
        assert_eq!(vertices(&found[0]), vertices(&whole), "{words:?}");
    }
}

#[test]
fn a_sample_of_the_tree_tells_about_how_much_work_it_is() {
    let graph = Complement::of(&Graph::random(60, 0.3, 4));
    let mut work = Workspace::default();
    let beaten = drive::beginning(&graph, &Choice::Bound).len();
    let known = Known { beaten, before: None };
    let mut search = Search::new(&graph, &Choice::Bound, beaten, all(graph.len()), &mut work);
    while !search.is_over() {
        search.run(&graph, &Choice::Bound, &known, u64::MAX / 2, &mut work);
    }
    let (told, rows) = (super::cost::rows(&graph, &Choice::Bound, beaten), work.bound.rows as f64);
    assert!((0.3..3.0).contains(&(told / rows)), "{told} of {rows}");
    assert!((search.done - 1.0).abs() < 1e-9, "{}", search.done);
}

/// 300, 149.5 and 74.3 vertices, 36.6 and 17.8: at the first four nodes of a path, and then at few that go on.
#[test]
fn the_questions_at_the_top_of_the_tree_are_counted() {
    let questions = |words: &[&str], pes| super::cost::questions(&of(words), pes);
    let words = ["--vertices", "300", "--density", "0.5"];
    assert_eq!(questions(&[&words[..], &["--lim", "1"]].concat(), 4), 4.0 * 2.0 + 1.0);
    let wide = 1.0 + 6.0 + 6.0 + 24.0 + 24.0 + 48.0 + 48.0 + 48.0 + 48.0;
    assert_eq!(questions(&[&words[..], &["--lim", "6,4,2,1"]].concat(), 100), wide);
    // On four PEs eight are under way as soon as there are as many branches.
    let in_parts = 1.0 + 6.0 + 6.0 + 24.0 + (24.0 + 48.0 + 48.0 + 48.0 + 48.0) / 8.0;
    assert_eq!(questions(&[&words[..], &["--lim", "6,4,2,1"]].concat(), 4), in_parts);
    assert_eq!(questions(&["--vertices", "16", "--lim", "1"], 1), 1.0, "all is searched in one place");
    let endless = questions(&["--vertices", "60000", "--density", "0", "--lim", "2"], 2);
    assert!(endless.is_finite(), "{endless}");
}
