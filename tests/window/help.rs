//! What the command line says of itself.

use crate::{METACHARE, STENCIL, inside};
use harness::{Done, start};
use std::path::Path;
use std::process::Command;

const APPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../apps/src");
const README: &str = include_str!("../../README.md");

fn run(program: &str, words: &[&str]) -> Done {
    let mut command = Command::new(program);
    inside(Path::new("."), command.args(words));
    start(&mut command).done()
}

/// The lines of a page between the words `Commands:` and the next empty line: names and what they are for.
fn commands(page: &str) -> Vec<(String, String)> {
    let lines = page.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let pairs = lines.filter_map(|line| line.trim().split_once(' '));
    pairs.map(|(name, about)| (name.to_string(), about.trim().to_string())).collect()
}

/// Checks a page and those of its subcommands; how many there were.
fn check(program: &str, words: &[&str], about: Option<&str>) -> usize {
    let page = run(program, &[words, &["--help"]].concat());
    assert_eq!(page.code, 0, "{page:?}");
    let first = page.stdout.lines().next().unwrap();
    assert!(about.is_none_or(|about| about == first), "{words:?}: {about:?} is {first:?}");
    let found = commands(&page.stdout).into_iter().filter(|(name, _)| name != "help");
    1 + found.map(|(name, about)| check(program, &[words, &[&name]].concat(), Some(&about))).sum::<usize>()
}

#[test]
fn every_help_page_says_what_its_command_is_for() {
    // run, compare, plan, report, nodes and its five, cache and its two, watch, restart, migrate, replay, checkpoint and its ten,
    // completions, man;
    // and of `metachare` demo, bench, and two of each application.
    assert!(check(METACHARE, &[], None) >= 12);
    assert_eq!(check(STENCIL, &[], None), 31);
    let page = run(METACHARE, &["run", "matmul", "--help"]).stdout;
    assert!(page.starts_with("Multiply two matrices\n"), "{page}");
}

#[test]
fn the_manual_has_a_page_for_every_application_and_help_for_every_command() {
    let applications = commands(&run(METACHARE, &["run", "--help"]).stdout);
    assert!(applications.len() >= 6, "{applications:?}");
    for (name, _) in applications {
        let page = std::fs::read_to_string(Path::new(APPS).join(&name).join("README.md")).unwrap();
        let shown = run(METACHARE, &["help", &name]);
        assert_eq!((shown.code, shown.stdout.starts_with(&page)), (0, true), "{shown:?}");
        assert!(shown.stdout.contains(&format!("metachare run {name} --help")), "{shown:?}");
    }
    // What clap says of a command stays, and a page of the same name follows it.
    for words in [&["run"][..], &["run", "matmul"], &["nodes", "check"], &["compare"], &["help"], &[]] {
        let help = run(METACHARE, &[words, &["--help"]].concat());
        let shown = run(METACHARE, &[&["help"], words].concat());
        assert_eq!((shown.code, shown.stdout.starts_with(&help.stdout)), (0, true), "{shown:?}");
    }
    let compare = run(METACHARE, &["help", "compare"]).stdout;
    assert!(compare.contains("\n# Compare: which of my nodes help?\n"), "{compare}");
}

#[test]
fn every_page_of_the_manual_is_in_the_readme() {
    let help = run(METACHARE, &["help"]).stdout;
    let (_, pages) = help.split_once("Pages of the manual").unwrap();
    let names = pages.lines().skip(1).filter_map(|line| line.split([' ', ',']).find(|word| !word.is_empty()));
    let names: Vec<&str> = names.collect();
    assert!(names.contains(&"exit-codes") && names.contains(&"measured"), "{help}");
    for name in names {
        assert!(README.contains(&format!("[`{name}`](")), "{name} is not in the README");
        assert_eq!(run(METACHARE, &["help", name]).code, 0, "{name}");
    }
}

#[test]
fn the_manual_explains_every_key_of_the_nodes_file() {
    let folder = tempfile::tempdir().unwrap();
    for (table, page) in
        [("[[node]]\nname = \"a\"", "nodes"), ("[[node]]\nname = \"a\"\n[network]", "network")]
    {
        harness::write(folder.path(), "nodes.toml", &format!("{table}\nzebrastripes = 1\n"));
        let mut command = Command::new(METACHARE);
        inside(folder.path(), command.args(["nodes", "list"]));
        let refused = start(&mut command).done();
        let (_, known) =
            refused.stderr.trim_end().split_once("it knows ").unwrap_or_else(|| panic!("{refused:?}"));
        let page = run(METACHARE, &["help", page]).stdout;
        let unexplained: Vec<&str> =
            known.split(", ").filter(|key| !page.contains(&format!("`{key}`"))).collect();
        assert!(unexplained.is_empty() && known.contains(", "), "{unexplained:?} of {known}");
    }
}

#[test]
fn what_the_manual_does_not_have_is_named_with_what_is_near() {
    for (words, sentence) in [
        (
            &["help", "matmull"][..],
            "no page or command \"matmull\"; did you mean `matmul`? `metachare help` lists them",
        ),
        (&["help", "nodes", "chekc"], "did you mean `nodes check`?"),
        (&["help", "zebra"], "error: there is no page or command \"zebra\"; `metachare help` lists them\n"),
    ] {
        let done = run(METACHARE, words);
        assert_eq!((done.code, done.stderr.lines().count()), (64, 1), "{done:?}");
        assert!(done.stderr.contains(sentence) && done.stdout.is_empty(), "{done:?}");
    }
}

#[test]
fn the_demo_can_be_changed_by_any_of_its_options() {
    let page = run(METACHARE, &["demo", "--help"]).stdout;
    assert!(page.starts_with("A first look: `metachare run matmul --seconds 5 "), "{page}");
    assert!(page.contains(" demo [OPTIONS]") && page.contains("[default: 5]"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    let nodes = harness::local_nodes(folder.path(), &[1]);
    let nodes = nodes.to_str().unwrap();
    for (words, count) in [(&[][..], 3), (&["--nodes", nodes], 1)] {
        let all = [&["demo", "--n", "64", "--speed", "equal", "--report", "run.json"], words].concat();
        let mut command = Command::new(METACHARE);
        // A first look does not depend on what the user has set up.
        inside(folder.path(), command.args(all));
        command.env("METACHARE_NODES", "/no/such/file");
        let done = start(&mut command).done();
        assert!(done.code == 0 && done.stdout.contains("result verified"), "{done:?}");
        let report = std::fs::read(folder.path().join("run.json")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["nodes"].as_array().unwrap().len(), count, "{report}");
        let arguments = &report["arguments"];
        assert_eq!((&arguments["n"], &arguments["q"]), (&64.into(), &12.into()), "{report}");
    }
    let both = run(METACHARE, &["run", "matmul", "--built-in-nodes", "--nodes", nodes]);
    assert_eq!(both.code, 64, "{both:?}");
}
