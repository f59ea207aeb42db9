//! Molecular statics as its users run it: the same bits on any mix of processes and by any mode, figures that add up,
//! and refusals in one sentence.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod files;
mod xyz;

use harness::{Done, start};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const METACHARE: &str = env!("CARGO_BIN_EXE_metachare-under-test");

/// Nodes as (PEs, speed).
const MIXES: [&[(u32, f64)]; 4] = [
    &[(2, 1.0), (1, 0.3)],
    &[(1, 0.25), (2, 1.0), (1, 0.55)],
    &[(1, 1.0), (1, 0.5), (1, 0.5), (1, 0.2), (1, 0.9)],
    &[(1, 1.0), (1, 0.55), (2, 0.25), (1, 0.8), (1, 0.37), (2, 0.1), (1, 0.63)],
];

/// A copper crystal with a vacancy, in 12 blocks.
const CRYSTAL: [&str; 12] = [
    "--size",
    "9,8,8",
    "--block",
    "200",
    "--vacancy",
    "100",
    "--shake",
    "0.05",
    "--max-force",
    "0",
    "--evaluations",
    "30",
];

/// What each node may take, so that what is refused does not depend on the machine.
const LIMIT: &str = "memory = \"4 GiB\"";

fn run(folder: &Path, words: &[&str]) -> Done {
    let mut command = Command::new(METACHARE);
    command.args(words).current_dir(folder).env("XDG_CACHE_HOME", folder).env_remove("METACHARE_NODES");
    start(&mut command).done()
}

fn nodes(folder: &Path, nodes: &[(u32, f64)], more: &str) {
    let node = |(at, (pes, speed)): (usize, &(u32, f64))| {
        format!("[[node]]\nname = \"n{at}\"\npes = {pes}\nspeed = {speed:?}\n{more}\n")
    };
    harness::write(folder, "nodes.toml", &nodes.iter().enumerate().map(node).collect::<String>());
}

fn relaxed(folder: &Path, words: &[&str]) -> Value {
    let words =
        [&["run", "statics", "--speed", "file", "--report", "run.json"], &CRYSTAL[..], words].concat();
    let done = run(folder, &words);
    assert_eq!(done.code, 0, "{words:?}: {done:?}");
    serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap()
}

/// What must not depend on the nodes.
fn result(report: &Value) -> [Value; 5] {
    let facts = &report["facts"];
    ["digest", "energy_ev", "max_force_ev_per_a", "evaluations", "stop"].map(|key| facts[key].clone())
}

#[test]
fn any_mix_and_any_mode_give_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &[(1, 1.0)], "");
    let expected = relaxed(folder.path(), &["--mode", "serial"]);
    assert_eq!(expected["facts"]["atoms"], 2303, "{expected}");
    assert!(expected["facts"]["evaluations"].as_u64().unwrap() > 3, "{expected}");
    for mix in MIXES {
        nodes(folder.path(), mix, "");
        for mode in ["cblocks", "replicated"] {
            let report = relaxed(folder.path(), &["--mode", mode]);
            assert_eq!(result(&report), result(&expected), "{mode} on {mix:?}");
        }
    }
}

#[test]
fn figures_of_the_nodes_add_up() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &[(2, 1.0), (1, 0.5)], "");
    let report = relaxed(folder.path(), &[]);
    let tables = &report["facts"]["tables"];
    let nodes = tables["nodes"].as_array().unwrap();
    let sum = |key: &str| nodes.iter().map(|node| node[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("owned"), &tables["atoms"]), (2303, &2303.into()), "{tables}");
    assert_eq!(report["facts"]["blocks"], sum("blocks"), "{report}");
    assert_eq!(sum("total"), sum("owned") + sum("needed"));
    assert!(nodes.iter().all(|node| node["needed"].as_u64() > Some(0)), "{tables}");
    // Unlike speeds are given in the nodes file: the shares follow them.
    assert!(nodes[0]["owned"].as_u64() > nodes[1]["owned"].as_u64(), "{tables}");
    let number = |key: &str| tables[key].as_f64().unwrap();
    assert!(number("symmetry_loss_percent") > 5.0 && number("bytes_per_atom") > 100.0, "{tables}");
    assert!(number("unbalanced_seconds") >= number("balanced_seconds"), "{tables}");
    // A place is 24 bytes and a slope 8, for each ghost and evaluation; and there is little else.
    let evaluations = report["facts"]["evaluations"].as_u64().unwrap();
    let least = sum("received") * 32 * (evaluations - 1);
    let sent: f64 =
        report["nodes"].as_array().unwrap().iter().map(|node| node["sent_bytes"].as_f64().unwrap()).sum();
    assert!(sent > least as f64 && sent < 1.6 * least as f64 + 3e5, "{sent} bytes, at least {least}");
}

#[test]
fn what_does_not_fit_or_makes_no_sense_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &[(1, 1.0), (1, 1.0)], LIMIT);
    harness::write(folder.path(), "bad.eam.alloy", "a\nb\nc\n1 Cu\n5 x\n");
    let cases: [(&[&str], &str); 8] = [
        (&["--size", "400"], "a crystal of 256000000 atoms needs"),
        (&["--size", "3,4"], "give one number of cells, or three"),
        (&["--size", "0"], "each axis takes 1 to 1000000"),
        (&["--element", "Xx"], "no built-in Sutton-Chen parameters for Xx"),
        (&["--vacancy", "4000"], "ids run from 0 to 3999"),
        (&["--skin", "NaN"], "give 0 to 10 A"),
        (&["--ends", "xq"], "'q' is no axis"),
        (&["--potential", "bad.eam.alloy"], "bad.eam.alloy, line "),
    ];
    for (words, sentence) in cases {
        let done = run(folder.path(), &[&["run", "statics", "--speed", "equal"], words].concat());
        assert_eq!(done.code, 65, "{words:?}: {done:?}");
        assert_eq!(done.stderr.lines().filter(|line| line.starts_with("error:")).count(), 1, "{done:?}");
        assert!(done.last_error().contains(sentence), "{words:?}: {done:?}");
        assert!(!done.stderr.contains("panicked"), "{done:?}");
    }
}

#[test]
fn memory_is_stated_before_the_start_and_limits_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &[(1, 1.0), (1, 1.0)], "");
    let free = relaxed(folder.path(), &[]);
    let planned = |report: &Value| -> Vec<u64> {
        let planned = report["facts"]["planned_memory_bytes"].as_array().unwrap();
        planned.iter().map(|bytes| bytes.as_u64().unwrap()).collect()
    };
    let held =
        |report: &Value, node: usize| report["facts"]["tables"]["nodes"][node]["bytes"].as_u64().unwrap();
    let plan = planned(&free);
    assert!((0..2).all(|node| plan[node] > held(&free, node)), "{plan:?}: {free}");
    nodes(folder.path(), &[(1, 1.0), (1, 1.0)], LIMIT);
    let done = run(folder.path(), &["run", "statics", "--size", "400", "--speed", "equal"]);
    assert!(done.last_error().contains("GiB on node \"n0\", which may take 4 GiB"), "{done:?}");
}

/// A bar with held ends along x and y: a screw dislocation, then atoms taken out, put in and moved.
const STEPS: &str = r#"
[crystal]
a = 3.61
orient = { x = [1, 1, -2], y = [1, 1, 1], z = [1, -1, 0] }
size = [14, 8, 4]

[boundary]
x = { shells = { buffer = 4.0, fixed = 4.0 } }
y = { shells = { buffer = 4.0, fixed = 4.0 } }

[relaxation]
max_force = 0.0
iterations = 40
block = 300

[[step]]
name = "perfect"
relax = false

[[step]]
name = "screw"
disturb = [{ screw = { line = "z", through = [30.9, 25.1], burgers = 2.553 } }]

[[step]]
name = "points"
disturb = [
  { vacancy = { ids = [1300, 1301] } },
  { interstitial = { at = [31.0, 12.5, 5.0], element = "Cu" } },
]
repeat = 2

[output]
xyz = "end.xyz"
dump = "end.dump"
trace = "end.csv"
"#;

#[test]
fn an_input_file_of_steps_leaves_the_same_files_on_any_mix_and_by_any_mode() {
    let folder = tempfile::tempdir().unwrap();
    harness::write(folder.path(), "steps.toml", STEPS);
    let files = |mode: &str, mix: &[(u32, f64)]| {
        nodes(folder.path(), mix, "");
        let words =
            ["run", "statics", "steps.toml", "--speed", "file", "--report", "run.json", "--mode", mode];
        let done = run(folder.path(), &words);
        assert_eq!(done.code, 0, "{mode} on {mix:?}: {done:?}");
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let report: Value = serde_json::from_str(&read("run.json")).unwrap();
        let steps = report["facts"]["steps"].as_array().unwrap().clone();
        assert_eq!(steps.len(), 4, "{report}");
        // 14 x 8 x 4 cells of 6 atoms, two gone, two put in.
        assert_eq!(report["facts"]["atoms"], 14 * 8 * 4 * 6, "{report}");
        let all = ["end.xyz", "end.dump", "end.csv"].map(|name| {
            let text = read(name);
            std::fs::remove_file(folder.path().join(name)).unwrap();
            text
        });
        (all, steps)
    };
    let expected = files("serial", &[(1, 1.0)]);
    let ([xyz, dump, trace], _) = &expected;
    assert!(xyz.starts_with("2688\nLattice=\"") && xyz.lines().count() == 2690, "{xyz}");
    assert!(dump.lines().count() == 2688 + 9 && dump.contains("ITEM: BOX BOUNDS ff ff pp"), "{dump}");
    let ids: Vec<u64> =
        dump.lines().skip(9).map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    // LAMMPS counts from 1.
    assert!(ids.is_sorted() && !ids.contains(&1301) && ids.ends_with(&[2689, 2690]), "{ids:?}");
    assert!(xyz.contains(" hcp 2") && xyz.contains(" other 0"), "the core is there to be seen");
    assert!(
        trace.starts_with("step,evaluation,") && trace.lines().last().unwrap().starts_with("4,"),
        "{trace}"
    );
    for mix in MIXES {
        for mode in ["cblocks", "replicated"] {
            assert!(files(mode, mix) == expected, "{mode} on {mix:?}");
        }
    }
    // What was written can be read, and the atoms are where they were.
    harness::write(folder.path(), "again.xyz", xyz);
    harness::write(folder.path(), "again.toml", "[crystal]\nfile = \"again.xyz\"\n[[step]]\nrelax = false\n");
    nodes(folder.path(), MIXES[0], "");
    let again = run(folder.path(), &["run", "statics", "again.toml", "--speed", "equal", "--xyz", "end.xyz"]);
    assert_eq!(again.code, 0, "{again:?}");
    let places = |text: &str| -> Vec<String> {
        text.lines().skip(2).map(|line| line.splitn(6, ' ').take(4).collect::<Vec<_>>().join(" ")).collect()
    };
    let end = std::fs::read_to_string(folder.path().join("end.xyz")).unwrap();
    assert!(places(&end) == places(xyz), "{end}");
}

/// From a lattice constant that is too large, axes by themselves and together, to the one that the study finds.
#[test]
fn a_box_ends_without_pressure_alike_on_any_mix_and_by_any_mode() {
    let folder = tempfile::tempdir().unwrap();
    let report = |words: &[&str]| -> Value {
        let words = [&["run", "statics", "--speed", "file", "--report", "run.json"], words].concat();
        let done = run(folder.path(), &words);
        assert_eq!(done.code, 0, "{words:?}: {done:?}");
        serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap()
    };
    nodes(folder.path(), MIXES[0], "");
    let a = report(&["--study", "lattice"])["facts"]["a"].as_f64().unwrap();
    let crystal =
        ["--size", "5,4,4", "--a", "3.75", "--block", "60", "--shake", "0.04", "--max-force", "1e-6"];
    for axes in ["x,y,z", "xyz", "xz,y"] {
        let found = |mode: &str| report(&[&crystal[..], &["--box", axes, "--mode", mode]].concat());
        let serial = found("serial");
        let facts = &serial["facts"];
        for (length, cells) in facts["box_a"].as_array().unwrap().iter().zip([5.0, 4.0, 4.0]) {
            assert!((length.as_f64().unwrap() / cells - a).abs() < 1e-5, "{axes}: {facts} and {a}");
        }
        for mode in ["cblocks", "replicated"] {
            let report = found(mode);
            assert_eq!(
                (result(&report), &report["facts"]["box_a"]),
                (result(&serial), &facts["box_a"]),
                "{mode}"
            );
        }
    }
}

/// Two atoms at one place, far from the first block: all modes name the first of them by its number in the file.
#[test]
fn a_force_that_is_no_number_ends_the_run_with_the_atoms_number() {
    let folder = tempfile::tempdir().unwrap();
    let mut atoms = String::new();
    for n in 0..216 {
        let at = [n % 6, n / 6 % 6, n / 36].map(|k| 2.6 * f64::from(k));
        atoms += &format!("{} 1 {} {} {}\n", 1000 + n, at[0], at[1], at[2]);
    }
    atoms += "7 1 10.4 10.4 10.4\n";
    let header = "copper\n\n217 atoms\n1 atom types\n0 15.6 xlo xhi\n0 15.6 ylo yhi\n0 15.6 zlo zhi\n\nAtoms # atomic\n\n";
    harness::write(folder.path(), "two.data", &format!("{header}{atoms}"));
    harness::write(folder.path(), "two.toml", "[crystal]\nfile = \"two.data\"\n[relaxation]\nblock = 40\n");
    nodes(folder.path(), MIXES[1], "");
    for mode in ["cblocks", "replicated", "serial"] {
        let words = ["run", "statics", "two.toml", "--speed", "file", "--mode", mode, "--trace", "end.csv"];
        let done = run(folder.path(), &words);
        assert_eq!(done.code, 1, "{mode}: {done:?}");
        let sentence = "error: step 1: the place or the force of atom 7 is no finite number";
        assert!(done.last_error().starts_with(sentence), "{mode}: {done:?}");
        assert_eq!(done.stderr.lines().filter(|line| line.starts_with("error:")).count(), 1, "{done:?}");
        assert!(std::fs::read_to_string(folder.path().join("end.csv")).unwrap().lines().count() == 2);
    }
}

/// What the launcher does by itself starts no node: here none could be.
#[test]
fn studies_and_the_serial_mode_need_no_nodes() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &[(1, 1.0)], "host = \"no-such-host.invalid\"");
    for words in [&["--study", "lattice"][..], &["--mode", "serial", "--size", "3"]] {
        let words = [&["run", "statics", "--report", "run.json"], words].concat();
        let done = run(folder.path(), &words);
        assert_eq!(done.code, 0, "{words:?}: {done:?}");
        let report: Value =
            serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap();
        assert_eq!(report["nodes"].as_array().unwrap().len(), 0, "{report}");
    }
    let done = run(folder.path(), &["run", "statics", "--size", "3", "--start-timeout", "10"]);
    assert_eq!(done.code, 69, "{done:?}");
}

#[test]
fn studies_are_in_the_table_and_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &[(1, 1.0)], "");
    let words =
        ["run", "statics", "--study", "vacancy", "--size", "4", "--report", "run.json", "--speed", "equal"];
    let done = run(folder.path(), &words);
    assert_eq!(done.code, 0, "{done:?}");
    let report: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap();
    let vacancy = report["facts"]["vacancy_ev"].as_f64().unwrap();
    assert!((0.3..2.0).contains(&vacancy) && report["facts"]["study"] == "vacancy", "{report}");
    assert!(done.stdout.contains(&format!("{vacancy:.6} eV")), "{done:?}");
    let words =
        ["run", "statics", "--study", "pressure", "--size", "4", "--shake", "0.1", "--report", "run.json"];
    let done = run(folder.path(), &[&words[..], &["--speed", "equal"]].concat());
    assert_eq!(done.code, 0, "{done:?}");
    let report: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap();
    let fact = |name: &str| report["facts"][name].as_f64().unwrap();
    let mean = (fact("pressure_xx_gpa") + fact("pressure_yy_gpa") + fact("pressure_zz_gpa")) / 3.0;
    assert!((fact("pressure_gpa") - mean).abs() < 1e-12 && mean.abs() > 0.01, "{report}");
    let done =
        run(folder.path(), &["run", "statics", "--study", "fault", "--lattice", "bcc", "--element", "Fe"]);
    assert!(done.code == 65 && done.last_error().contains("is for fcc lattices"), "{done:?}");
    let done = run(folder.path(), &["run", "statics", "--study", "lattice", "--dump", "a.dump"]);
    assert!(done.code == 65 && done.last_error().starts_with("error: --dump: a study computes"), "{done:?}");
    // A file may be for runs, too.
    let file =
        harness::write(folder.path(), "both.toml", "[crystal]\na = 3.6\n[output]\ndump = \"a.dump\"\n");
    let done = run(folder.path(), &["run", "statics", "--study", "lattice", &file.to_string_lossy()]);
    assert_eq!(done.code, 0, "{done:?}");
}

/// What was stated before the start against what the processes took, less what each takes with hardly any atoms.
#[test]
fn a_node_takes_the_memory_that_was_stated() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &[(1, 1.0), (1, 0.5)], "");
    let taken = |size: &str| {
        let words = ["run", "statics", "--speed", "file", "--report", "run.json", "--evaluations", "2"];
        let done = run(folder.path(), &[&words[..], &["--a", "3.61", "--size", size]].concat());
        assert_eq!(done.code, 0, "{done:?}");
        let report: Value =
            serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap();
        let stated = report["facts"]["planned_memory_bytes"].as_array().unwrap();
        let node =
            |at: usize| (stated[at].as_f64().unwrap(), report["nodes"][at]["memory_bytes"].as_f64().unwrap());
        [node(0), node(1)]
    };
    for (few, many) in taken("4").iter().zip(taken("40")) {
        let ratio = many.0 / (many.1 - few.1);
        assert!((0.85..1.15).contains(&ratio), "{many:?}, alone {few:?}: {ratio}");
    }
}

#[test]
fn an_input_file_that_is_wrong_is_refused_by_line() {
    let folder = tempfile::tempdir().unwrap();
    for (text, code, sentence) in [
        ("[crystal]\nsise = [1, 1, 1]\n", 65, "in.toml:2: unknown field `sise`"),
        ("[crystal]\nfile = \"in.data\"\n", 65, "in.data:4: the header promises 1 atoms, and 0 are there"),
        ("[output]\nxyz = \"no/such/folder/a.xyz\"\n", 73, "cannot be written"),
    ] {
        harness::write(folder.path(), "in.toml", text);
        harness::write(folder.path(), "in.data", "t\n1 atoms\n0 9 xlo xhi\n0 9 ylo yhi\n");
        let done = run(folder.path(), &["run", "statics", "in.toml"]);
        assert!(done.code == code && done.last_error().contains(sentence), "{text}: {done:?}");
    }
}

/// A cap that is met before the tolerance leaves the files and a report, and exit code 1.
#[test]
fn a_relaxation_that_ends_at_a_cap_has_not_succeeded() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &[(1, 1.0)], "");
    for (cap, mode) in [("--evaluations", "serial"), ("--iterations", "cblocks")] {
        let words = ["run", "statics", "--size", "4", "--a", "3.61", "--shake", "0.1", "--speed", "equal"];
        let more = ["--report", "run.json", "--xyz", "end.xyz", "--mode", mode, cap, "2"];
        let done = run(folder.path(), &[&words[..], &more].concat());
        let sentence = format!("error: step 1: no minimum after 2 {}: the largest force is ", &cap[2..]);
        assert!(done.code == 1 && done.last_error().starts_with(&sentence), "{done:?}");
        let report: Value =
            serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap();
        assert_eq!((&report["exit_code"], &report["facts"]["atoms"]), (&1.into(), &256.into()), "{report}");
        assert!(report["facts"]["energy_ev"].as_f64().unwrap() < 0.0, "{report}");
        assert_eq!(std::fs::read_to_string(folder.path().join("end.xyz")).unwrap().lines().count(), 258);
        // Who asks for no tolerance asks for so many.
        let done = run(folder.path(), &[&words[..], &more, &["--max-force", "0"]].concat());
        assert_eq!(done.code, 0, "{done:?}");
    }
}

/// What a study cannot vouch for it says.
#[test]
fn studies_of_unstable_crystals_say_so() {
    let folder = tempfile::tempdir().unwrap();
    for (lattice, remark) in
        [("diamond", Some("this lattice is not stable with this potential")), ("fcc", None)]
    {
        let words = [
            "run",
            "statics",
            "--study",
            "vacancy",
            "--lattice",
            lattice,
            "--size",
            "2",
            "--report",
            "run.json",
        ];
        run(folder.path(), &words);
        let report: Value =
            serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap();
        let remarks: Vec<&str> =
            report["remarks"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(remark.is_some(), !remarks.is_empty(), "{lattice}: {remarks:?}");
        assert!(remark.is_none_or(|remark| remarks[0].starts_with(remark)), "{lattice}: {remarks:?}");
    }
}

#[test]
fn blocks_that_are_fewer_than_pes_are_advised_against_while_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    nodes(folder.path(), &[(2, 1.0), (2, 1.0)], "");
    let advice = |report: &Value| {
        let mut remarks = report["remarks"].as_array().unwrap().iter().filter_map(Value::as_str);
        remarks.find(|remark| remark.starts_with("only ")).map(String::from)
    };
    let more = ["--events", "events.ndjson", "--record", "run.mcr", "--block"];
    let words = [&CRYSTAL[..2], &CRYSTAL[4..]].concat();
    let relaxed = |block: &str| -> Value {
        let options = ["run", "statics", "--speed", "file", "--report", "run.json"];
        let done = run(folder.path(), &[&options[..], &words, &more, &[block]].concat());
        assert_eq!(done.code, 0, "{done:?}");
        serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap()
    };
    let said = advice(&relaxed("1500")).unwrap();
    let block =
        said.strip_prefix("only 2 blocks for 4 PEs; try --block ").unwrap_or_else(|| panic!("{said}"));
    // It is told before anything is computed, and not only at the end.
    let events = std::fs::read_to_string(folder.path().join("events.ndjson")).unwrap();
    let place = |words: &str| events.lines().position(|line| line.contains(words));
    let (told, computing) = (place(&said).unwrap(), place("\"name\":\"evaluation\"").unwrap());
    assert!(told < computing, "{told} {computing}");
    let report = run(folder.path(), &["report", "run.mcr"]);
    assert!(report.stdout.contains(&said), "{report:?}");
    assert_eq!(advice(&relaxed(block)), None, "{block}");
}
