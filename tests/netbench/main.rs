//! `run netbench` on several processes: tables, JSON as documented, plots, and one sentence for what cannot be meant.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use harness::{Done, json, local_nodes, start};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const METACHARE: &str = env!("CARGO_BIN_EXE_metachare-under-test");
const SCHEMA: &str = include_str!("../../apps/src/netbench/schema.md");

fn netbench(folder: &Path, options: &[&str]) -> Done {
    let mut command = Command::new(METACHARE);
    command.args(["run", "netbench", "--nodes", "nodes.toml", "--repeats", "3", "--warm-up", "0"]);
    command.args(options).current_dir(folder);
    command.env("XDG_CACHE_HOME", folder).env("XDG_RUNTIME_DIR", folder).env_remove("METACHARE_NODES");
    start(&mut command).done()
}

fn is_plausible(size: &Value) -> bool {
    let latency = &size["latency_s"];
    let ordered = ["p5", "p50", "p95", "p99"].map(|key| latency[key].as_f64().unwrap());
    ordered.is_sorted() && ordered[0] > 0.0 && latency["samples"] == 3
}

#[test]
fn nodes_are_measured_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[2, 1, 1]);
    let sizes = ["--sizes", "1,100,64KiB"];
    let outputs = ["--json", "net.json", "--svg", "plots/net", "--report", "report.json", "--quiet"];
    let done = netbench(folder.path(), &[&sizes[..], &outputs].concat());
    assert_eq!(done.code, 0, "{done:?}");
    for part in [
        "Table 5.14  Latency",
        "Table 5.15  Scatter over 4 PEs",
        "Table 5.16",
        "Table 5.17",
        "a – b",
        "900700",
    ] {
        assert!(done.stdout.contains(part), "{part} is not in {}", done.stdout);
    }
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(folder.path().join(name)).unwrap()).unwrap()
    };
    let results = read("net.json");
    let summaries = ["links[].sizes[].latency_s", "links[].sizes[].stream.messages_per_s"];
    let leaves = ["command_line", "collectives[].sizes[].all_s", "collectives[].sizes[].one_pe_s"];
    let found = json::keys(&results, &[summaries.as_slice(), &leaves].concat());
    assert_eq!(found, json::documented(SCHEMA));
    let links = results["links"].as_array().unwrap();
    let kinds: Vec<&str> = links.iter().map(|link| link["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["one-pe", "one-pe", "one-pe", "two-pes", "two-nodes", "two-nodes", "two-nodes"]);
    for link in links {
        assert!(link["latency_s"].as_f64().unwrap() > 0.0, "{link}");
        assert!(link["sizes"].as_array().unwrap().iter().all(is_plausible), "{link}");
    }
    let facts = &read("report.json")["facts"]["links"];
    assert_eq!(facts[4]["latency_s"], links[4]["latency_s"]);
    for name in ["latency.svg", "bandwidth.svg", "rate.svg", "collectives.svg"] {
        let svg = fs::read_to_string(folder.path().join("plots/net").join(name)).unwrap();
        assert!(
            svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains("<polyline"),
            "{name}: {svg}"
        );
    }
}

#[test]
fn only_the_nodes_that_are_named_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1, 1]);
    let done = netbench(folder.path(), &["--between", "c,a", "--sizes", "8", "--json", "net.json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("a – c") && !done.stdout.contains("b, one PE"), "{}", done.stdout);
    assert!(done.stdout.contains("Scatter over 2 PEs"), "{}", done.stdout);
}

#[test]
fn what_cannot_be_meant_is_refused_with_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    for (options, code, part) in [
        (&["--between", "a,shark"][..], 65, "--between names \"shark\", but the nodes of this run are a, b"),
        (&["--between", "a"], 64, "at least two different nodes"),
        (&["--sizes", "0"], 64, "from 1 to 1GiB"),
        (&["--repeats", "0"], 64, "--repeats"),
        (&["--json", "no/such/net.json"], 73, "net.json cannot be written"),
        (&["--svg", "nodes.toml"], 73, "the folder nodes.toml for plots cannot be made"),
    ] {
        let done = netbench(folder.path(), options);
        assert_eq!(done.code, code, "{options:?}: {done:?}");
        assert!(done.last_error().contains(part) || done.stderr.contains(part), "{options:?}: {done:?}");
        assert!(code == 64 || done.stderr.lines().count() == 1, "{options:?}: {done:?}");
    }
}
