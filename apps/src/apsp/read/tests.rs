//! Files of all kinds, right ones and wrong ones.

use super::*;

const GR: &str = "c a comment\np sp 4 5\n\na 1 2 7\na 2 3 0\ncomment\na 4 1 12\na 1 2 5\na 3 3 1\n";

fn from(name: &str, text: &[u8], wanted: Wanted) -> Result<Edges, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    read(&path, wanted).map_err(|e| {
        let sentence = e.to_string();
        let folder = folder.path().display().to_string();
        sentence.replace(&folder, "").replace('/', "")
    })
}

fn whole(edges: &Edges) -> Vec<(u32, u32, i64)> {
    let Weights::Whole(weights) = &edges.weights else { panic!("{edges:?}") };
    edges.from.iter().zip(&edges.to).zip(weights).map(|((from, to), weight)| (*from, *to, *weight)).collect()
}

#[test]
fn dimacs_files_are_read_with_loops_parallel_arcs_and_lone_vertices() {
    let edges = from("g.gr", GR.as_bytes(), Wanted::AsWritten).unwrap();
    assert_eq!((edges.vertices, edges.negative.clone()), (4, None));
    assert_eq!(whole(&edges), [(0, 1, 7), (1, 2, 0), (3, 0, 12), (0, 1, 5), (2, 2, 1)]);
    let real = from("g.gr", GR.replace(" 12", " 1.25e1").as_bytes(), Wanted::AsWritten).unwrap();
    assert_eq!(real.weights, Weights::Real(vec![7.0, 0.0, 12.5, 5.0, 1.0]));
    let real = from("g.GR", GR.as_bytes(), Wanted::Real).unwrap();
    assert_eq!(real.weights, Weights::Real(vec![7.0, 0.0, 12.0, 5.0, 1.0]));
    let negative = from("g.gr", GR.replace(" 12", " -12").as_bytes(), Wanted::AsWritten).unwrap();
    assert_eq!(negative.negative, Some(Negative { line: 7, weight: "-12".into() }));
    let nothing = from("g.gr", GR.replace(" 12", " -0.0").as_bytes(), Wanted::AsWritten).unwrap();
    assert_eq!(nothing.negative, None, "that is 0");
}

#[test]
fn wrong_lines_of_dimacs_files_are_named() {
    let refused = |old: &str, new: &str| {
        assert!(GR.contains(old));
        from("g.gr", GR.replace(old, new).as_bytes(), Wanted::Whole).unwrap_err()
    };
    assert_eq!(refused("a 2 3 0", "a 2 5 0"), "g.gr:5: vertex 5 is not one of 1 to 4");
    assert_eq!(refused("a 2 3 0", "a 0 3 0"), "g.gr:5: vertex 0 is not one of 1 to 4");
    assert_eq!(refused("a 2 3 0", "a 2 3"), "g.gr:5: expected 'a FROM TO WEIGHT', got 3 words");
    assert_eq!(refused("a 2 3 0", "a 2 3 0 9"), "g.gr:5: expected 'a FROM TO WEIGHT', got 5 words");
    assert_eq!(refused("a 2 3 0", "a 2 -3 0"), "g.gr:5: '-3' is not a vertex");
    assert_eq!(
        refused("a 2 3 0", "a 2 3 x"),
        "g.gr:5: 'x' is not a whole number of 64 bits, as --dtype i32 and i64 want it"
    );
    assert_eq!(refused("a 2 3 0", "e 2 3 0"), "g.gr:5: a line begins with 'c', 'p sp' or 'a', not with 'e'");
    assert_eq!(refused("p sp 4 5\n", ""), "g.gr:3: the line 'p sp VERTICES ARCS' is missing before this one");
    assert_eq!(refused("a 1 2 7", "p sp 4 5"), "g.gr:4: there is a second line 'p'");
    let other = "g.gr:2: the file is for the problem 'max', and only 'sp', shortest paths, can be read";
    assert_eq!(refused("p sp 4 5", "p max 4 5"), other);
    let large = "g.gr:5: '18446744073709551617' is 2^64 or more, and no such number is read";
    assert_eq!(refused("a 2 3 0", "a 2 18446744073709551617 0"), large);
    assert_eq!(refused("p sp 4 5", "p sp 4"), "g.gr:2: expected 'p sp VERTICES ARCS', got 3 words");
    assert_eq!(refused("p sp 4 5", "p sp 4 1"), "g.gr:9: 1 arc is announced, and the file has 5");
    assert_eq!(refused("p sp 4 5", "p sp 4 6"), "g.gr:9: 6 arcs are announced, and the file has 5");
    let many = "g.gr:2: 99999999999 vertices are more than the 1073741824 that fit";
    assert_eq!(refused("p sp 4 5", "p sp 99999999999 5"), many);
    for (weight, what) in [
        ("nan", "a finite number"),
        ("inf", "a finite number"),
        ("1e999", "a finite number"),
        ("1..2", "a number"),
    ] {
        let text = GR.replace(" 12", &format!(" {weight}"));
        let sentence = from("g.gr", text.as_bytes(), Wanted::AsWritten).unwrap_err();
        assert_eq!(sentence, format!("g.gr:7: '{weight}' is not {what}"));
    }
    assert!(
        from("g.gr", b"", Wanted::AsWritten)
            .unwrap_err()
            .contains("g.gr:1: the line 'p sp VERTICES ARCS' is missing")
    );
    assert!(
        from("g.gr", b"p sp 1 1\na 1 1 \xff\n", Wanted::AsWritten)
            .unwrap_err()
            .contains("g.gr:2: '\u{fffd}' is not a number")
    );
    let long = [b"c ".as_slice(), &[b'x'; 100_000]].concat();
    assert!(from("g.gr", &long, Wanted::AsWritten).unwrap_err().contains("g.gr:1: the line is longer"));
    assert!(
        from("g.graph", GR.as_bytes(), Wanted::AsWritten).unwrap_err().contains("must end in .gr (DIMACS)")
    );
}

#[test]
fn edge_lists_have_any_names_and_may_lack_weights() {
    let text = "# Nodes: 4 Edges: 3\n10\t30\n30 1000000000000 \n\n% more\n10,20\r\n";
    let edges = from("g.txt", text.as_bytes(), Wanted::AsWritten).unwrap();
    assert_eq!(whole(&edges), [(0, 2, 1), (2, 3, 1), (0, 1, 1)]);
    assert_eq!(edges.names, Some(vec![10, 20, 30, 1_000_000_000_000]));
    let plain = from("g.el", b"0 1 5\n1 2 -3\n", Wanted::AsWritten).unwrap();
    assert_eq!((whole(&plain), plain.names), (vec![(0, 1, 5), (1, 2, -3)], None));
    assert_eq!(plain.negative, Some(Negative { line: 2, weight: "-3".into() }));
    let refused = |text: &str| from("g.tsv", text.as_bytes(), Wanted::AsWritten).unwrap_err();
    assert_eq!(refused("0 1\n5\n"), "g.tsv:2: expected 'FROM TO' or 'FROM TO WEIGHT', got 1 word");
    assert_eq!(refused("0 1\n5 6 7 8\n"), "g.tsv:2: expected 'FROM TO' or 'FROM TO WEIGHT', got 4 words");
    assert_eq!(refused("0 1\n5 b\n"), "g.tsv:2: 'b' is not a vertex, named by a whole number");
    assert_eq!(refused("0 1 2\n5 6 b\n"), "g.tsv:2: 'b' is not a number");
    assert_eq!(refused("0 1 5\n5 6\n"), "g.tsv:2: this edge has no weight, unlike those before it");
    assert_eq!(refused("0 1\n5 6 5\n"), "g.tsv:2: this edge has a weight, unlike those before it");
    assert_eq!(refused("# nothing\n"), "g.tsv has no edges, and so no vertices");
}

#[test]
fn matrices_are_graphs_by_their_entries() {
    let text = "%%MatrixMarket matrix coordinate integer symmetric\n3 3 3\n2 1 5\n3 2 0\n3 3 4\n";
    let edges = from("g.mtx", text.as_bytes(), Wanted::AsWritten).unwrap();
    assert_eq!(whole(&edges), [(1, 0, 5), (0, 1, 5), (2, 1, 0), (1, 2, 0), (2, 2, 4)]);
    let array = "%%MatrixMarket matrix array real general\n2 2\n0\n2.5\n-1\n0\n";
    let edges = from("g.mtx", array.as_bytes(), Wanted::AsWritten).unwrap();
    assert_eq!((edges.from, edges.to), (vec![1, 0], vec![0, 1]));
    assert_eq!(edges.weights, Weights::Real(vec![2.5, -1.0]));
    assert_eq!(edges.negative.map(|negative| negative.line), Some(5));
    let pattern = "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n";
    assert_eq!(whole(&from("g.mtx", pattern.as_bytes(), Wanted::AsWritten).unwrap()), [(0, 1, 1)]);
    let real = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 3\n";
    assert_eq!(from("g.mtx", real.as_bytes(), Wanted::AsWritten).unwrap().weights, Weights::Real(vec![3.0]));
    assert_eq!(whole(&from("g.mtx", real.as_bytes(), Wanted::Whole).unwrap()), [(0, 1, 3)]);
    let refused = |text: &str| from("g.mtx", text.as_bytes(), Wanted::Whole).unwrap_err();
    let wide = "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 2 -9007199254740993\n";
    assert!(refused(wide).contains("g.mtx:3: '-9007199254740992' is not a whole weight below 2^53"));
    assert!(from("g.mtx", wide.as_bytes(), Wanted::Real).is_ok());
    assert!(refused(&real.replace(" 3", " 3.5")).contains("g.mtx:3: '3.5e0' is not a whole number"));
    assert!(
        refused(&real.replace("2 2 1", "2 3 1")).contains("is a 2 x 3 matrix: a graph's matrix is square")
    );
    assert!(refused(&real.replace("1 2 3", "1 9 3")).contains("g.mtx:3: position (1, 9) is outside"));
    assert!(refused(&text.replace("2 1 5", "1 2 5")).contains("g.mtx:3: position (1, 2) is above"));
}

#[test]
fn the_beginning_of_a_file_tells_about_how_big_its_graph_is() {
    let folder = tempfile::tempdir().unwrap();
    let announces = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        announced(&path).unwrap()
    };
    assert_eq!(announces("g.gr", GR).0, 4);
    assert_eq!(announces("g.mtx", "%%MatrixMarket matrix coordinate real general\n7 7 1\n1 2 3\n").0, 7);
    assert_eq!(announces("g.txt", &"1 2 3 4 5 6 \n".repeat(1400)), (162, 1300));
}

/// Whole weights that do not fit would silently make rounded numbers of all.
#[test]
fn whole_weights_of_more_than_64_bits_are_refused_unless_f64_is_asked_for() {
    for weight in
        ["9223372036854775808", "-9223372036854775809", "18446744073709551616", "+99999999999999999999"]
    {
        for before in ["0 1 3", "0 1 3.5"] {
            let text = format!("{before}\n1 2 {weight}\n");
            let said = from("g.txt", text.as_bytes(), Wanted::AsWritten).unwrap_err();
            let expected =
                format!("g.txt:2: '{weight}' is not a whole weight of 64 bits: --dtype f64 rounds it");
            assert_eq!(said, expected);
            let edges = from("g.txt", text.as_bytes(), Wanted::Real).unwrap();
            let Weights::Real(weights) = edges.weights else { panic!("whole") };
            assert_eq!(weights[1], weight.parse::<f64>().unwrap());
        }
    }
    let most =
        from("g.txt", b"0 1 9223372036854775807\n1 0 -9223372036854775808\n", Wanted::AsWritten).unwrap();
    assert_eq!(whole(&most), [(0, 1, i64::MAX), (1, 0, i64::MIN)]);
    let large = from("g.txt", b"0 1 1e300\n", Wanted::AsWritten).unwrap();
    assert_eq!(large.weights, Weights::Real(vec![1e300]));
}

mod mutated;
