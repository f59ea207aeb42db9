//! Both algorithms on nodes inside this process, every message packed: against each other and against paths found
//! vertex by vertex.

use super::arguments::{Algorithm, Apsp, check};
use super::generate::Family;
use crate::matrix::generate::hash;
use chares::{InProcess, Program, RunError};
use clap::{Args as _, Command, FromArgMatches as _};
use command::CommandLine;
use proptest::prelude::*;
use std::path::Path;

fn of(words: &[&str]) -> Apsp {
    let matches = Apsp::augment_args(Command::new("apsp")).get_matches_from([&["apsp"], words].concat());
    Apsp::from_arg_matches(&matches).unwrap().completed()
}

fn run(mix: &InProcess, words: &[&str]) -> Result<(), RunError> {
    let apsp = of(words);
    check(&apsp)?;
    super::add_to(CommandLine::new(Program::new("apsp", "1")))
        .into_program()
        .run_in_process(mix, |main| super::drive::drive(main, apsp))
}

fn mixes() -> [InProcess; 3] {
    [
        InProcess::new(&[1]),
        InProcess::new(&[2, 1]).always_pup().speeds(&[1.0, 0.5, 0.25]),
        InProcess::new(&[1, 2, 2]).always_pup(),
    ]
}

/// The numbers of a `.npy` file, without its header.
fn bytes(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    bytes[10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]))..].to_vec()
}

fn whole(path: &Path) -> Vec<i32> {
    bytes(path).chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// Vertex by vertex, as in 1962.
fn naive(vertices: usize, edges: &[(usize, usize, i64)]) -> Vec<i32> {
    let mut near = vec![i64::MAX / 4; vertices * vertices];
    (0..vertices).for_each(|at| near[at * vertices + at] = 0);
    for &(from, to, weight) in edges {
        near[from * vertices + to] = near[from * vertices + to].min(weight);
    }
    for k in 0..vertices {
        for at in 0..near.len() {
            near[at] = near[at].min(near[at / vertices * vertices + k] + near[k * vertices + at % vertices]);
        }
    }
    near.into_iter().map(|d| if d > i64::MAX / 8 { i32::MAX } else { d as i32 }).collect()
}

/// Arcs between any vertices, loops and parallel ones too, some 0 long. With `potential`, some are negative, but no
/// cycle is: weights are differences of the vertices' heights and something.
fn random(vertices: usize, arcs: usize, seed: u64, potential: bool) -> Vec<(usize, usize, i64)> {
    let pick = |at: usize, of: u64, what: u64| (hash(seed, what, at as u64) % of) as i64;
    let height = |vertex: usize| if potential { pick(vertex, 40, 9) } else { 0 };
    (0..arcs)
        .map(|at| {
            let [from, to] = [1, 2].map(|what| pick(at, vertices as u64, what) as usize);
            (from, to, pick(at, 4, 3) * pick(at, 30, 4) + height(from) - height(to))
        })
        .collect()
}

fn dimacs(vertices: usize, edges: &[(usize, usize, i64)]) -> String {
    let lines: String =
        edges.iter().map(|(from, to, weight)| format!("a {} {} {weight}\n", from + 1, to + 1)).collect();
    format!("p sp {vertices} {}\n{lines}", edges.len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn both_algorithms_find_what_is_found_vertex_by_vertex(vertices in 1usize..40, density in 0usize..5, seed: u64, block in 1usize..20) {
        let edges = random(vertices, vertices * density, seed, false);
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("g.gr"), dimacs(vertices, &edges)).unwrap();
        let (expected, block) = (naive(vertices, &edges), block.to_string());
        for mix in &mixes()[..2] {
            for words in [&["--algorithm", "dijkstra"][..], &["--algorithm", "floyd-warshall", "--block", &block]] {
                let all = ["--graph", &path("g.gr"), "--verify", "--out", &path("d.npy"), "--predecessors", &path("p.npy")];
                run(mix, &[words, &all].concat()).unwrap();
                prop_assert_eq!(&whole(Path::new(&path("d.npy"))), &expected);
                for (at, before) in whole(Path::new(&path("p.npy"))).into_iter().enumerate() {
                    let is_start = at / vertices == at % vertices;
                    prop_assert_eq!(before == -1, is_start || expected[at] == i32::MAX);
                }
            }
        }
    }

    #[test]
    fn negative_weights_without_negative_cycles_are_taken(vertices in 2usize..40, seed: u64, block in 1usize..20) {
        let edges = random(vertices, vertices * 3, seed, true);
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("g.gr"), dimacs(vertices, &edges)).unwrap();
        let all = ["--algorithm", "floyd-warshall", "--block", &block.to_string(), "--graph", &path("g.gr"), "--verify",
            "--out", &path("d.npy"), "--predecessors", &path("p.npy")];
        run(&mixes()[1], &all).unwrap();
        prop_assert_eq!(whole(Path::new(&path("d.npy"))), naive(vertices, &edges));
    }
}

/// Vertices before others are mended by distances, which nobody has asked for here.
#[test]
fn predecessors_alone_lead_back_to_the_source_past_circles_of_weight_0() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for seed in 0..20 {
        let edges: Vec<_> =
            random(12, 60, seed, false).into_iter().map(|(from, to, _)| (from, to, 0)).collect();
        std::fs::write(path("g.gr"), dimacs(12, &edges)).unwrap();
        let words = ["--algorithm", "floyd-warshall", "--block", "3", "--graph", &path("g.gr")];
        run(&mixes()[1], &[&words[..], &["--predecessors", &path("p.npy")]].concat()).unwrap();
        let (before, expected) = (whole(Path::new(&path("p.npy"))), naive(12, &edges));
        for (at, distance) in expected.into_iter().enumerate() {
            let (source, end) = (at / 12, at % 12);
            let step = |place: usize| usize::try_from(before[source * 12 + place]).unwrap_or(place);
            assert_eq!(
                (0..12).fold(end, |place, _| step(place)) == source,
                distance < i32::MAX,
                "{seed}: {at}"
            );
        }
    }
}

#[test]
fn blocks_have_256_vertices_unless_the_graph_is_small_or_huge() {
    let sides = [1024, 1025, 2049, 1 << 19, 1 << 20].map(super::floyd::default_side);
    assert_eq!(sides, [64, 128, 256, 256, 512]);
}

/// The same bits whatever the nodes: of whole numbers, of sums from the source on, and of sums of sums.
#[test]
fn results_do_not_depend_on_the_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let runs: [&[&str]; 6] = [
        &["--generate", "road", "--n", "150"],
        &["--generate", "random", "--n", "90", "--degree", "2", "--weights", "float"],
        &["--generate", "grid", "--n", "90", "--dtype", "f32", "--sources", "17..60"],
        &["--algorithm", "floyd-warshall", "--n", "110", "--block", "16"],
        &["--algorithm", "floyd-warshall", "--n", "70", "--block", "9", "--weights", "float"],
        &[
            "--algorithm",
            "floyd-warshall",
            "--generate",
            "random",
            "--n",
            "70",
            "--dtype",
            "f32",
            "--undirected",
        ],
    ];
    for words in runs {
        let mut results = Vec::new();
        for mix in mixes() {
            let files = [
                "--verify",
                "--out",
                &path("d.npy"),
                "--predecessors",
                &path("p.npy"),
                "--statistics",
                &path("s.csv"),
            ];
            run(&mix, &[words, &files].concat()).unwrap();
            results.push(["d.npy", "p.npy", "s.csv"].map(|name| std::fs::read(path(name)).unwrap()));
        }
        assert!(results.windows(2).all(|two| two[0] == two[1]), "{words:?}");
    }
}

#[test]
fn statistics_are_those_of_the_distances() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("g.txt"), "7 8 1.5\n8 9 2\n3 7 1\n").unwrap();
    for words in [&[][..], &["--algorithm", "floyd-warshall", "--block", "2"]] {
        run(
            &mixes()[1],
            &[words, &["--graph", &path("g.txt"), "--statistics", &path("s.csv"), "--verify"]].concat(),
        )
        .unwrap();
        // From 3 it is 1, 2.5 and 4.5 to the others: three reached, at a mean of 8/3; from 8 only one of three.
        let expected = format!(
            "vertex,eccentricity,reached,closeness\n3,4.5,4,{}\n7,3.5,3,{}\n8,2,2,{}\n9,0,1,0\n",
            3.0 / 8.0 * 3.0 / 3.0,
            2.0 / 5.0 * 2.0 / 3.0,
            1.0 / 2.0 * 1.0 / 3.0
        );
        assert_eq!(std::fs::read_to_string(path("s.csv")).unwrap(), expected);
    }
}

#[test]
fn a_negative_cycle_is_shown_and_a_negative_weight_is_named_by_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.gr").display().to_string();
    let sentence =
        |words: &[&str]| run(&mixes()[1], &[words, &["--graph", &path]].concat()).unwrap_err().to_string();
    for block in ["1", "2", "4", "64"] {
        std::fs::write(&path, "p sp 6 6\na 1 2 4\na 2 3 -3\na 3 4 1\na 4 2 1\na 4 5 2\na 6 1 -7\n").unwrap();
        let said = sentence(&["--algorithm", "floyd-warshall", "--block", block]);
        let ways = ["1 -> 2 -> 3 -> 1", "2 -> 3 -> 1 -> 2", "3 -> 1 -> 2 -> 3"];
        assert!(ways.iter().any(|way| said.contains(way)) && said.contains("-1 in all"), "{said}");
        std::fs::write(&path, "p sp 2 1\na 2 2 -1\n").unwrap();
        let said = sentence(&["--algorithm", "floyd-warshall", "--block", block]);
        assert!(said.contains("1 -> 1 (vertices counted from 0), -1 in all"), "{said}");
    }
    let named = folder.path().join("g.txt").display().to_string();
    std::fs::write(&named, "700 90 1\n90 700 -4\n700 5 1\n").unwrap();
    let said =
        run(&mixes()[1], &["--algorithm", "floyd-warshall", "--graph", &named]).unwrap_err().to_string();
    assert!(said.contains("700 -> 90") && said.contains("(vertices by their names), -3 in all"), "{said}");
    std::fs::write(&path, "p sp 2 2\na 1 2 5\na 2 1 -2\n").unwrap();
    let said = sentence(&[]);
    assert!(said.contains("g.gr:3: the weight -2 is negative"), "{said}");
}

#[test]
fn weights_that_add_up_to_nothing_are_no_negative_cycle() {
    let folder = tempfile::tempdir().unwrap();
    let [graph, out, before] = ["g.gr", "d.npy", "p.npy"].map(|name| folder.path().join(name));
    let [path, to, last] = [&graph, &out, &before].map(|path| path.display().to_string());
    // 0.1 + 0.2 - 0.3 is 5.6e-17, and by way of the other order -2.8e-17; 0.1 + 0.7 - 0.8 is -1.1e-16.
    let cycles =
        ["a 1 2 0.1\na 2 3 0.2\na 3 1 -0.3\na 2 1 0.3\na 3 2 -0.2\n", "a 1 2 0.1\na 2 3 0.7\na 3 1 -0.8\n"];
    for (arcs, block) in cycles.iter().flat_map(|arcs| [(arcs, "1"), (arcs, "3")]) {
        std::fs::write(&graph, format!("p sp 3 {}\n{arcs}", arcs.lines().count())).unwrap();
        let words = ["--algorithm", "floyd-warshall", "--block", block, "--graph", &path, "--verify"];
        run(&mixes()[1], &[&words[..], &["--out", &to, "--predecessors", &last]].concat()).unwrap();
        let found: Vec<f64> = bytes(&out).as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        let own = [0, 4, 8].map(|at| (found[at], whole(&before)[at]));
        assert_eq!(own, [(0.0, -1); 3], "from a vertex to itself there is nothing to go");
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused_in_a_sentence() {
    let sentence = |words: &[&str]| run(&mixes()[0], words).unwrap_err().to_string();
    assert!(sentence(&["--n", "0"]).contains("--n 0: give 1 to"));
    assert!(sentence(&["--n", "100000", "--generate", "dense"]).contains("arcs are more than the"));
    assert!(sentence(&["--block", "7"]).contains("only floyd-warshall works on blocks"));
    assert!(sentence(&["--algorithm", "floyd-warshall", "--block", "0"]).contains("--block: give 1 to"));
    assert!(
        sentence(&["--algorithm", "floyd-warshall", "--sources", "3"]).contains("take --algorithm dijkstra")
    );
    assert!(sentence(&["--n", "9", "--sources", "3..10"]).contains("the graph has the vertices 0 to 8"));
    assert!(sentence(&["--weights", "float", "--dtype", "i32"]).contains("not whole"));
    let said = sentence(&["--algorithm", "floyd-warshall", "--undirected", "--n", "100000"]);
    assert!(said.contains("arcs are more than the"), "{said}");
    assert!(sentence(&["--out", "d.mtx"]).contains("--out d.mtx: it is written as .npy"));
    assert!(sentence(&["--graph", "no.gr"]).contains("cannot read no.gr"));
    assert!(sentence(&["--graph", "no.graph"]).contains("must end in .gr"));
    assert_eq!("5".parse::<super::arguments::Sources>().map(|s| s.0), Ok(5..6));
    assert!(
        "7..7".parse::<super::arguments::Sources>().is_err()
            && "a".parse::<super::arguments::Sources>().is_err()
    );
}

/// Weights as unlike as numbers can be, by the heap; whole ones of a matrix, exactly.
#[test]
fn weights_of_any_size_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let found = |name: &str, text: &str, words: &[&str]| {
        std::fs::write(path(name), text).unwrap();
        run(&mixes()[1], &[words, &["--graph", &path(name), "--verify", "--out", &path("d.npy")]].concat())
            .unwrap();
        bytes(Path::new(&path("d.npy")))
    };
    let row = found("g.gr", "p sp 3 2\na 1 2 1e-300\na 2 3 1e300\n", &["--sources", "0"]);
    assert_eq!(row, [0.0, 1e-300, 1e300].map(f64::to_le_bytes).concat());
    let row = found("g.gr", "p sp 3 2\na 1 2 5e-324\na 2 3 1e-320\n", &["--sources", "0"]);
    assert_eq!(row, [0.0, 5e-324, 1.0005e-320].map(f64::to_le_bytes).concat());
    let text = "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 2 7\n";
    for words in [&[][..], &["--dtype", "i32"]] {
        assert_eq!(found("g.mtx", text, words), [0, 7, i32::MAX, 0].map(i32::to_le_bytes).concat());
    }
    let real = text.replace("integer", "real");
    assert_eq!(found("g.mtx", &real, &["--sources", "0"]), [0.0, 7.0].map(f64::to_le_bytes).concat());
}

#[test]
fn what_a_type_may_not_hold_is_refused_with_one_that_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.gr").display().to_string();
    let of = |weight: &str, words: &[&str]| {
        std::fs::write(&path, format!("p sp 2 1\na 1 2 {weight}\n")).unwrap();
        run(&mixes()[0], &[words, &["--graph", &path, "--verify"]].concat())
    };
    for (weight, words, mend) in [
        ("268435456", &["--dtype", "i32"][..], ": take --dtype i64"),
        ("9223372036854775807", &[], ": take --dtype f64"),
        ("1e38", &["--dtype", "f32"], ": take --dtype f64"),
        ("1e308", &[], ": write the weights in a larger unit"),
    ] {
        let said = of(weight, words).unwrap_err().to_string();
        assert!(said.starts_with("a path may be ") && said.ends_with(mend), "{said}");
    }
    of("268435455", &["--dtype", "i32"]).unwrap();
    of("9223372036854775807", &["--dtype", "f64"]).unwrap();
}

#[test]
fn speeds_are_measured_with_a_graph_of_bounded_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.gr");
    for head in ["p sp 1000000000 1\n", "p sp 0 0\n"] {
        std::fs::write(&path, head).unwrap();
        let (sample, _) = super::sample(of(&["--graph", &path.display().to_string()]).recipe());
        assert!(sample.vertices >= 1 && sample.vertices + sample.arcs() <= super::KERNEL_SIZE, "{sample:?}");
    }
    let whole = of(&["--generate", "random", "--n", "10000000", "--degree", "83"]).recipe();
    let (sample, part) = super::sample(whole);
    let arcs = |recipe: super::Recipe| (recipe.arcs() + recipe.vertices) as f64;
    assert!((part - arcs(sample) / arcs(whole)).abs() < 1e-12 && part < 0.006, "{sample:?} {part}");
    let small = of(&["--n", "60000"]).recipe();
    assert_eq!(super::sample(small), (small, 1.0));
}

#[test]
fn nodes_measure_with_a_graph_like_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.gr");
    std::fs::write(&path, dimacs(300, &random(300, 900, 1, false))).unwrap();
    let apsp = of(&["--graph", &path.display().to_string()]);
    assert_eq!((apsp.recipe().family, apsp.recipe().vertices, apsp.work()), (Family::Road, 300, 300.0));
    let mut kernel = super::kernel(&apsp);
    assert!(kernel() >= 1.0);
    let floyd = of(&["--algorithm", "floyd-warshall", "--n", "100"]);
    assert_eq!(
        (floyd.algorithm, floyd.recipe().family, floyd.work()),
        (Algorithm::FloydWarshall, Family::Dense, 2e6)
    );
    assert!(super::kernel(&floyd)() >= 1e6);
    assert_ne!(floyd.kernel_key(), apsp.kernel_key());
}
