//! Words from other machines and from files of other people: none of their escape sequences reaches the terminal.

use crate::remote::Bed;
use crate::{METACHARE, MISBEHAVING, run};
use harness::{Done, local_nodes, write};

/// What a terminal would act on: a title, a colour, a cleared screen, and the same in eight bits.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[31m\u{1b}[2J\u{9b}1m";

fn assert_harmless(way: &str, text: &str) {
    let found = text.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(found, None, "{way}: {text:?}");
}

fn assert_said(way: &str, done: &Done, words: &str) {
    assert!(done.stdout.contains(words) || done.stderr.contains(words), "{way}: {done:?}");
    assert_harmless(way, &done.stdout);
    assert_harmless(way, &done.stderr);
}

#[test]
fn nodes_files_are_shown_without_escape_sequences() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path();
    let quoted =
        HOSTILE.replace('\u{1b}', "\\u001b").replace('\u{7}', "\\u0007").replace('\u{9b}', "\\u009b");
    let cases = [
        (format!("\"a{quoted}b\" = 1"), "has no key `a"),
        (format!("host = \"a{quoted}b\""), "without control characters"),
        (format!("binary = \"a{quoted}b\""), "without control characters"),
        (format!("user = \"a{quoted}b\""), "without control characters"),
    ];
    for (line, words) in cases {
        write(path, "n.toml", &format!("[[node]]\nname = \"a\"\n{line}\n"));
        assert_said(&line, &run(METACHARE, path, &["nodes", "list", "--nodes", "n.toml"]), words);
    }
    write(
        path,
        "n.toml",
        &format!("[[node]]\nname = \"a\"\n[binaries]\n\"{quoted}\" = \"x\"\n[network]\n\"{quoted}\" = 1\n"),
    );
    assert_said("network", &run(METACHARE, path, &["nodes", "list", "--nodes", "n.toml"]), "has no key");
}

#[test]
fn input_files_are_refused_without_escape_sequences() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path();
    let header = format!("{{'descr': '{HOSTILE}', 'fortran_order': False, 'shape': (2, 2), }}");
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend(u16::try_from(header.len()).expect("a short header").to_le_bytes());
    npy.extend(header.as_bytes());
    std::fs::write(path.join("a.npy"), npy).expect("a file in the folder");
    write(path, "a.mtx", &format!("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 a{HOSTILE}b\n"));
    write(path, "banner.mtx", &format!("%%MatrixMarket matrix {HOSTILE} real general\n1 1 1\n"));
    write(path, "a.gr", &format!("p sp 2 1\na 1 2 x{HOSTILE}y\n"));
    write(path, "b.gr", &format!("p sp 2 1\n{HOSTILE} 1 2\n"));
    write(
        path,
        "s.toml",
        &format!("[crystal]\nlattice = 'a{}b'\n", HOSTILE.replace(['\u{7}', '\u{1b}'], "")),
    );
    let cases: [&[&str]; 6] = [
        &["matmul", "--a", "a.npy", "--b", "a.npy"],
        &["matmul", "--a", "a.mtx", "--b", "a.mtx"],
        &["matmul", "--a", "banner.mtx", "--b", "a.mtx"],
        &["apsp", "--graph", "a.gr"],
        &["apsp", "--graph", "b.gr"],
        &["statics", "s.toml"],
    ];
    for words in cases {
        let done = run(METACHARE, path, &[&["run"], words, &["--report", "/dev/stdout"]].concat());
        assert_eq!(done.code, 65, "{words:?}: {done:?}");
        assert_said(&words.join(" "), &done, "error: ");
    }
}

#[test]
fn reports_are_compared_without_escape_sequences_in_any_form() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path();
    let words = "run matmul --built-in-nodes --only medium --n 32 --quiet --speed equal --report a.json";
    assert_eq!(run(METACHARE, path, &words.split(' ').collect::<Vec<_>>()).code, 0);
    let read = |name: &str| std::fs::read_to_string(path.join(name)).expect("a file that was written");
    let mut report: serde_json::Value = serde_json::from_str(&read("a.json")).expect("a report is JSON");
    for key in ["program", "version", "commit", "app"] {
        report[key] = format!("{HOSTILE}{key}").into();
    }
    for key in ["name", "host", "cpu"] {
        report["nodes"][0][key] = format!("{HOSTILE}{key}|\n").into();
    }
    write(path, "b.json", &report.to_string());
    let words = "compare --csv c.csv --json c.json --markdown c.md --svg c.svg b.json";
    let done = run(METACHARE, path, &words.split(' ').collect::<Vec<_>>());
    assert_said("compare", &done, "speedup over");
    for file in ["c.csv", "c.json", "c.md", "c.svg"] {
        assert_harmless(file, &read(file));
    }
    assert_eq!(read("c.csv").lines().count(), 2);
    report["error"] = format!("{HOSTILE}it\nfell").into();
    write(path, "b.json", &report.to_string());
    assert_said("a failed run", &run(METACHARE, path, &["compare", "b.json"]), "is of a run that failed: ");
    write(path, "b.json", &format!("{{\"schema\": \"{}\"}}", "\\u001b[31m"));
    assert_said("another schema", &run(METACHARE, path, &["compare", "b.json"]), "is of the schema");
    assert_said("a name", &run(METACHARE, path, &["compare", &format!("{HOSTILE}.json")]), "cannot be read");
}

#[test]
fn what_ssh_and_hosts_say_is_repeated_without_escape_sequences() {
    let bed = Bed::new();
    write(bed.path(), "nodes.toml", &bed.node("hostile", ""));
    for words in [&["nodes", "check"][..], &["run", "matmul", "--n", "16"]] {
        let done = bed.run(METACHARE, words);
        assert_eq!(done.code, 69, "{done:?}");
        assert_said(&words.join(" "), &done, "go away");
    }
    bed.assert_nothing_left();
}

#[test]
fn what_nodes_print_is_shown_without_escape_sequences() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    local_nodes(folder.path(), &[1]);
    let done = run(MISBEHAVING, folder.path(), &["run", "talking", "--lines", "2", "--escapes"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("[a] line 1\n") && done.stderr.contains("[a] error 1"), "{done:?}");
    assert_said("a node's output", &done, "line 0");
}
