//! Checks of the repository itself: its layout, the arrows between its packages, and rules that neither the
//! compiler nor clippy holds.

mod documents;
mod rules;
mod source;

use documents::Document;
use rules::SourceFile;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const TOP_LEVEL: [&str; 10] = [
    "Cargo.toml",
    "Cargo.lock",
    "runtime",
    "chares",
    "loadbalance",
    "apps",
    "nodes.toml",
    "tui",
    "tests",
    "README.md",
];

/// Package and what it may depend on. To add an arrow is to change the architecture.
const ARROWS: [(&str, &[&str]); 9] = [
    ("loadbalance", &[]),
    ("runtime", &["loadbalance"]),
    ("tui", &["runtime"]),
    ("chares-macros", &[]),
    ("chares", &["chares-macros", "runtime", "loadbalance"]),
    ("command", &["chares", "runtime", "loadbalance", "tui"]),
    ("chares-tests", &["chares", "runtime"]),
    ("apps", &["chares", "command"]),
    ("tests", &["loadbalance", "runtime", "tui", "chares", "chares-tests", "command", "apps"]),
];

/// Modules that import each other in a circle because their types hold each other; the README says why.
const CIRCLES: [(&str, &[&[&str]]); 2] = [
    ("runtime/src/", &[&["node", "object", "pe"], &["transport::quic"], &["config"]]),
    (
        "chares/src/",
        &[&[
            "callback", "chare", "ctx", "driver", "entries", "program", "proxy", "reduce", "shared", "store",
        ]],
    ),
];

/// Roots of the sans-I/O cores.
const CORES: [&str; 2] = ["loadbalance/src/lib.rs", "runtime/src/proto/mod.rs"];

#[test]
fn the_top_level_is_as_agreed() {
    let names: Vec<String> = std::fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_none(rules::top_level(&names, &TOP_LEVEL));
}

#[test]
fn packages_depend_only_along_the_arrows() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata = serde_json::from_slice(&output.stdout).unwrap();
    assert_none(rules::arrows(&metadata, &BTreeMap::from(ARROWS)));
}

#[test]
fn sans_io_cores_touch_nothing_outside() {
    let files = sources();
    for core in CORES {
        let gate = files.iter().find(|file| file.path == core).unwrap_or_else(|| panic!("{core} is missing"));
        assert_none(rules::lint_gate(gate));
        let folder = &core[..=core.rfind('/').unwrap()];
        check(files.iter().filter(|file| file.path.starts_with(folder)), rules::sans_io);
    }
}

#[test]
fn the_protocol_does_not_know_what_carries_it() {
    check(below("runtime/src/proto/").iter(), rules::proto_stands_alone);
}

#[test]
fn files_import_each_other_in_no_circles_but_those_that_are_explained() {
    let files = sources();
    for (folder, permitted) in CIRCLES {
        assert_none(rules::circles(&files, folder, permitted));
        for group in permitted {
            let others: Vec<&[&str]> = permitted.iter().copied().filter(|other| other != group).collect();
            let found = rules::circles(&files, folder, &others);
            assert!(!found.is_empty(), "{group:?} is no circle any more: take it off the list");
        }
    }
}

#[test]
fn the_window_knows_the_runtime_by_its_monitor_only() {
    check(below("tui/src/").iter(), rules::only_monitor);
}

#[test]
fn every_file_says_what_it_is() {
    check(sources().iter(), rules::module_docs);
}

#[test]
fn no_file_is_too_long() {
    check(sources().iter(), rules::length);
}

#[test]
fn unwrap_stays_in_tests() {
    check(sources().iter(), rules::no_unwrap);
}

#[test]
fn no_test_has_a_program_open_for_writing() {
    check(sources().iter(), rules::programs_are_written_by_the_harness);
}

#[test]
fn nothing_is_left_over() {
    check(sources().iter(), rules::no_leftovers);
}

#[test]
fn scripts_say_what_they_do_without_building_anything() {
    let folder = tempfile::tempdir().unwrap();
    for tool in ["cargo", "apt-get", "python3"] {
        harness::write_program(folder.path(), tool, "#!/bin/sh\ntouch \"$0.was-run\"\nexit 1\n");
    }
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    for script in [
        "against_lammps",
        "against_numba",
        "against_numpy",
        "against_peers",
        "against_scipy",
        "efficiency",
        "slowed",
    ] {
        let mut command = Command::new(root().join("tests").join(script));
        let output = command.arg("--help").env("PATH", &path).env_remove("METACHARE").output().unwrap();
        let words = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && output.stderr.is_empty(), "{script}: {output:?}");
        assert!(
            words.contains("METACHARE names a program") && !words.contains("set -euo"),
            "{script}: {words}"
        );
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "something was run");
}

#[test]
fn state_of_chares_travels() {
    check(sources().iter(), rules::state_travels);
}

#[test]
fn chares_of_a_node_share_nothing() {
    check(sources().iter(), rules::chares_share_nothing);
}

#[test]
fn names_of_modules_say_something() {
    check(sources().iter(), rules::module_names);
}

#[test]
fn types_bear_the_words_of_the_model() {
    check(sources().iter(), rules::type_names);
}

#[test]
fn the_readme_can_be_read_in_one_go() {
    assert_none(documents::readme_length(&text_of("README.md").unwrap()));
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut found = vec![Document { path: "README.md".into(), text: text_of("README.md").unwrap() }];
    for package in folders() {
        collect(&root().join(package), package, ".md", &mut |path, text| found.push(Document { path, text }));
    }
    assert!(found.len() > 10, "the pages of the manual are missing");
    let exists = |path: &Path| root().join(path).exists();
    assert_none(found.iter().flat_map(|document| documents::links(document, exists)).collect());
}

#[test]
fn every_application_has_a_page_in_the_manual() {
    let main = text_of("apps/src/main.rs").unwrap();
    let applications = documents::applications(&main);
    assert!(applications.len() >= 7, "{applications:?}");
    assert_none(documents::pages(&applications, |path| text_of(&format!("apps/src/{path}"))));
}

/// A file of the repository.
fn text_of(path: &str) -> Option<String> {
    std::fs::read_to_string(root().join(path)).ok()
}

fn check<'a>(files: impl Iterator<Item = &'a SourceFile>, rule: fn(&SourceFile) -> Vec<String>) {
    assert_none(files.flat_map(rule).collect());
}

fn assert_none(findings: Vec<String>) {
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package is a folder of the repository")
        .to_owned()
}

/// The Rust files below a folder; a rule with nothing to look at would prove nothing.
fn below(folder: &str) -> Vec<SourceFile> {
    let files: Vec<_> = sources().into_iter().filter(|file| file.path.starts_with(folder)).collect();
    assert!(!files.is_empty(), "there are no Rust files below {folder}");
    files
}

/// The folders of the packages; those of the command line and of the attributes lie within the model's.
fn folders() -> impl Iterator<Item = &'static str> {
    ARROWS
        .iter()
        .map(|(package, _)| *package)
        .filter(|package| !["command", "chares-macros", "chares-tests"].contains(package))
}

/// All Rust files of the packages.
fn sources() -> Vec<SourceFile> {
    let mut files = Vec::new();
    for package in folders() {
        let before = files.len();
        collect(&root().join(package), package, ".rs", &mut |path, text| {
            files.push(SourceFile { path, text })
        });
        assert!(files.len() > before, "there are no Rust files in {package}");
    }
    files
}

/// Gives `take` the path from the root and the text of each file below a folder whose name ends so.
fn collect(folder: &Path, name: &str, ending: &str, take: &mut dyn FnMut(String, String)) {
    for entry in std::fs::read_dir(folder).expect("folders of the repository can be read") {
        let entry = entry.expect("folders of the repository can be read");
        let file_name = entry.file_name().into_string().expect("file names here are Unicode");
        let path = format!("{name}/{file_name}");
        if entry.path().is_dir() && !file_name.starts_with('.') && file_name != "target" {
            collect(&entry.path(), &path, ending, take);
        } else if file_name.ends_with(ending) {
            take(path, std::fs::read_to_string(entry.path()).expect("these are files of UTF-8 text"));
        }
    }
}
