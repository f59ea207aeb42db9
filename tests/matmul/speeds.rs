//! `--speed auto|measured|cached|equal|file`, what is kept of measurements, and `nodes speed`.

use super::{METACHARE, nodes_of_speed, report, run};
use harness::{after, write, write_program};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Rates that no measurement gives: one node three times as fast as the other.
const MADE_UP: [f64; 2] = [3e3, 1e3];
const DAY_S: u64 = 24 * 3600;

fn two_nodes() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    nodes_of_speed(folder.path(), &[(1, 1.0), (1, 0.25)]);
    folder
}

fn product(folder: &Path, source: &str, more: &[&str]) -> Value {
    let words = ["--algorithm", "conventional", "--n", "400", "--grain", "2", "--speed", source];
    report(folder, &[&words, more].concat())
}

fn shares(report: &Value) -> [f64; 2] {
    [0, 1].map(|at| report["nodes"][at]["share"].as_f64().unwrap())
}

fn rates(report: &Value) -> Option<[f64; 2]> {
    let rate = |at: usize| report["nodes"][at]["rate"].as_f64();
    Some([rate(0)?, rate(1)?])
}

/// Whether the rates are the made-up ones, as far as the run, which was faster by far, has not corrected them.
fn are_made_up(report: &Value) -> bool {
    let factor = report["faster_than_measured"].as_f64().unwrap_or(1.0);
    let is_near = |(rate, made_up): (f64, f64)| (rate / factor / made_up - 1.0).abs() < 1e-9;
    factor > 1.0 && rates(report).is_some_and(|rates| rates.into_iter().zip(MADE_UP).all(is_near))
}

fn cache(folder: &Path) -> PathBuf {
    folder.join("metachare/speeds.json")
}

/// What is kept, by key.
fn kept(folder: &Path) -> serde_json::Map<String, Value> {
    let all: Value = serde_json::from_slice(&std::fs::read(cache(folder)).unwrap()).unwrap();
    all["speeds"].as_object().unwrap().clone()
}

fn now_s() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()
}

/// Puts the made-up rates into the cache, as measured at that time.
fn doctor(folder: &Path, unix_s: u64, rates: [Value; 2]) {
    let mut speeds = kept(folder);
    assert_eq!(speeds.len(), 2, "{speeds:?}");
    for (key, kept) in &mut speeds {
        let [first, second] = rates.clone();
        kept["rates"] = vec![if key.contains("|n0|") { first } else { second }].into();
        kept["unix_s"] = unix_s.into();
    }
    std::fs::write(cache(folder), serde_json::json!({ "speeds": speeds }).to_string()).unwrap();
}

fn made_up() -> [Value; 2] {
    MADE_UP.map(Value::from)
}

#[test]
fn equal_speeds_share_equally_and_measure_nothing() {
    let folder = two_nodes();
    let report = product(folder.path(), "equal", &[]);
    assert_eq!(shares(&report), [0.5, 0.5]);
    assert_eq!((rates(&report), &report["efficiency"]), (None, &Value::Null));
    assert_eq!((&report["speed_source"], report["equivalents"].as_f64()), (&"equal".into(), Some(2.0)));
    assert!(!cache(folder.path()).exists());
}

#[test]
fn speeds_of_the_nodes_file_are_taken_as_they_stand() {
    let folder = two_nodes();
    let report = product(folder.path(), "file", &[]);
    assert_eq!(shares(&report), [0.8, 0.2]);
    assert_eq!((&report["speed_source"], report["nodes"][1]["speed"].as_f64()), (&"file".into(), Some(0.25)));
    assert!(!cache(folder.path()).exists());
    let one_has_none = "[[node]]\nname = \"n0\"\npes = 1\n\n[[node]]\nname = \"n1\"\npes = 1\nspeed = 0.25\n";
    write(folder.path(), "nodes.toml", one_has_none);
    assert_eq!(shares(&product(folder.path(), "file", &[])), [0.8, 0.2]);
}

#[test]
fn measured_speeds_are_kept_and_used_again_for_the_same_kernel_only() {
    let folder = two_nodes();
    let path = folder.path();
    let measured = product(path, "measured", &[]);
    assert_eq!(measured["speed_source"], "measured");
    assert!(rates(&measured).unwrap().iter().all(|rate| *rate > 0.0));
    assert!(kept(path).values().all(|kept| now_s() - kept["unix_s"].as_u64().unwrap() < 120));

    doctor(path, now_s(), made_up());
    let again = product(path, "cached", &["--out", "c.npy", "--verify", "--rows", "440", "--inner", "1000"]);
    assert!(are_made_up(&again) && again["speed_source"] == "cached", "{again}");
    // What the run has shown is kept for the next one.
    let kept_rates: Vec<_> = kept(path).values().map(|kept| kept["rates"][0].as_f64().unwrap()).collect();
    assert_eq!(kept_rates, rates(&again).unwrap());
    assert!(again["efficiency"].as_f64().unwrap() <= 1.0 + 1e-9);
    // A quarter, and somewhat less as what was measured may be wrong.
    let [large, small] = shares(&again);
    assert!(large + small == 1.0 && (0.23..0.25).contains(&small), "{again}");

    // Other numbers have another kernel.
    let single = product(path, "cached", &["--dtype", "f32"]);
    assert_eq!(single["speed_source"], "measured");
    assert_eq!(kept(path).len(), 4);
    // Another count of PEs is another node.
    nodes_of_speed(path, &[(2, 1.0), (1, 0.25)]);
    assert_eq!(product(path, "cached", &[])["speed_source"], "measured");
    // Measuring anew replaces what was kept.
    nodes_of_speed(path, &[(1, 1.0), (1, 0.25)]);
    assert_ne!(rates(&product(path, "measured", &[])), rates(&again));
    let replaced = product(path, "cached", &[]);
    assert!(replaced["speed_source"] == "cached" && rates(&replaced) != rates(&again), "{replaced}");
}

#[test]
fn another_executable_is_measured_anew() {
    let folder = two_nodes();
    let path = folder.path();
    product(path, "measured", &[]);
    doctor(path, now_s(), made_up());
    // The same program with one byte more is another one, as far as anybody can tell.
    let mut bytes = std::fs::read(METACHARE).unwrap();
    bytes.push(0);
    let other = write_program(path, "other", bytes);
    let words = ["run", "matmul", "--algorithm", "conventional", "--n", "400", "--speed", "cached"];
    let mut command = std::process::Command::new(other);
    command.args(words).args(["--report", "run.json"]).current_dir(path).env("XDG_CACHE_HOME", path);
    let done = harness::start(command.env_remove("METACHARE_NODES")).done();
    assert_eq!(done.code, 0, "{done:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(path.join("run.json")).unwrap()).unwrap();
    assert_eq!(report["speed_source"], "measured");
}

#[test]
fn what_is_old_or_of_the_future_or_no_speed_is_measured_anew() {
    let folder = two_nodes();
    let path = folder.path();
    product(path, "measured", &[]);
    let cases = [
        (now_s() - DAY_S - 60, made_up()),
        (now_s() + 3600, made_up()),
        (now_s(), [Value::from(-3e3), Value::from(1e3)]),
        (now_s(), [Value::from(0.0), Value::from(1e3)]),
    ];
    for (unix_s, rates_kept) in cases {
        doctor(path, unix_s, rates_kept.clone());
        let report = product(path, "cached", &[]);
        assert_eq!(report["speed_source"], "measured", "{unix_s}, {rates_kept:?}");
        let fresh = kept(path);
        assert!(fresh.len() == 2 && fresh.values().all(|k| now_s() - k["unix_s"].as_u64().unwrap() < 120));
    }
    doctor(path, now_s() - DAY_S + 600, made_up());
    assert!(are_made_up(&product(path, "cached", &[])));
}

#[test]
fn a_cache_that_is_none_is_replaced() {
    let folder = two_nodes();
    let path = folder.path();
    std::fs::create_dir_all(path.join("metachare")).unwrap();
    for garbage in
        ["", "{", "[1, 2]", "{\"speeds\": {\"a\": {\"rates\": [\"x\"], \"unix_s\": -1}}}", "\u{0}\u{1}"]
    {
        std::fs::write(cache(path), garbage).unwrap();
        assert_eq!(product(path, "cached", &[])["speed_source"], "measured", "{garbage:?}");
        assert_eq!(kept(path).len(), 2, "{garbage:?}");
    }
    // A folder in the place of the file: nothing can be kept, and the run does not mind.
    std::fs::remove_file(cache(path)).unwrap();
    std::fs::create_dir(cache(path)).unwrap();
    assert_eq!(product(path, "cached", &[])["speed_source"], "measured");
}

#[test]
fn nodes_speed_shows_rates_with_units_for_each_application_and_keeps_what_it_finds() {
    let folder = two_nodes();
    let path = folder.path();
    let done = run(path, &["nodes", "speed"]);
    assert_eq!(done.code, 0, "{done:?}");
    let lines: Vec<Vec<&str>> = done.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let (head, rates) = (&lines[0], &lines[1..lines.len() - 1]);
    assert_eq!(head[..], ["node", "PEs", "each", "PE", "the", "node", "speed"], "{done:?}");
    assert!(rates.len() > 2 && rates[0][0] == "matmul" && rates.len() % 2 == 0, "{done:?}");
    let number = |text: &str| text.parse::<f64>().unwrap();
    for pair in rates.chunks(2) {
        let [first, second] = pair else { panic!("{done:?}") };
        assert_eq!((first[0], first[1], first[2]), (second[0], "n0", "1"), "{done:?}");
        let speeds = [first, second].map(|line| number(line[line.len() - 1]));
        assert!((speeds[0].max(speeds[1]) - 1.0).abs() < 1e-9, "{done:?}");
        for line in pair {
            assert!(
                number(line[3]) > 0.0 && line.iter().filter(|word| word.ends_with("/s")).count() == 2,
                "{done:?}"
            );
        }
    }
    assert!(done.stdout.contains("FLOP/s") && done.stdout.contains(" atoms/s"), "{done:?}");

    // The application's defaults were measured: a run with blocks of that kind finds their speeds.
    let report = report(path, &["--speed", "cached", "--n", "1200"]);
    assert_eq!(report["speed_source"], "cached");
}

#[test]
fn nodes_speed_measures_one_node_or_one_application() {
    let folder = two_nodes();
    let path = folder.path();
    let one = run(path, &["nodes", "speed", "--only", "n1"]);
    assert!(one.code == 0 && after(&one.stdout, "n1").is_some() && !one.stdout.contains("n0"), "{one:?}");
    let with_arguments = run(path, &["nodes", "speed", "matmul", "--dtype", "f32", "--only", "n0"]);
    assert!(with_arguments.code == 0 && with_arguments.stdout.contains("n0"), "{with_arguments:?}");
    let ambiguous = run(path, &["nodes", "speed", "--only", "n0", "matmul"]);
    assert_eq!(ambiguous.code, 64, "{ambiguous:?}");
    let wrong = run(path, &["nodes", "speed", "matmul", "--q", "0"]);
    assert!(wrong.code == 65 && wrong.stderr.contains("--q 0"), "{wrong:?}");
}
