//! Comparisons of saved reports: figures, the table word by word, and what is refused.

mod mutated;

use super::lost::Lost;
use super::model::{Comparison, grouped};
use super::predict::{PlannedWork, Predictor};
use super::runner::{Progress, Turn, report_in, rounds};
use super::saved::{self, Run};
use super::verdict::Finding;
use crate::app::{CostModel, Phases};
use crate::command_line::CommandLine;
use crate::network::Network;
use chares::{Program, RunError};
use loadbalance::cost::Phase;
use loadbalance::machines::{Bytes, Machine};
use proptest::prelude::*;
use runtime::failure::{Failure, Kind};
use serde_json::{Value, json};

/// Work that all runs here do, and the rate of the fastest node.
const WORK: f64 = 1000.0;

/// A node: name, rate, and for each PE computing, idle and runtime seconds.
type Made<'a> = (&'a str, f64, &'a [[f64; 3]]);

/// A change of a report, and the words that it is refused with.
type Case<'a> = (&'a str, &'a dyn Fn(&mut Value));

fn report(seconds: f64, nodes: &[Made<'_>]) -> Value {
    let fastest = nodes.iter().map(|node| node.1).fold(0.0, f64::max);
    let node = |&(name, rate, pes): &Made<'_>| {
        let pe = |[compute, idle, overhead]: &[f64; 3]| json!({"speed": rate / fastest, "compute_s": compute, "idle_s": idle, "overhead_s": overhead});
        let pes: Vec<Value> = pes.iter().map(pe).collect();
        json!({"name": name, "host": "localhost", "cpu": "c", "speed": rate / fastest, "rate": rate, "pes": pes})
    };
    let nodes: Vec<Value> = nodes.iter().map(node).collect();
    json!({
        "schema": "metachare-run/1", "program": "metachare", "version": "0.1.0", "commit": "0123456789abcdef",
        "executable": "e", "app": "matmul", "arguments": {"n": 512, "out": null}, "exit_code": 0, "error": null,
        "verified": true, "timed_s": seconds, "work": WORK, "speed_source": "measured", "nodes": nodes,
    })
}

fn run(report: &Value) -> Result<Run, String> {
    Run::parse(report.to_string().as_bytes(), "a.json").map_err(|ended| ended.sentence)
}

fn compared(reports: &[Value]) -> Result<Comparison, String> {
    let runs = reports.iter().map(run).collect::<Result<Vec<_>, _>>()?;
    Comparison::of(&runs, &["out"]).map_err(|ended| ended.sentence)
}

/// Ten seconds alone, of which the node computes all but one, and a second node of half the speed.
fn two_mixes() -> Vec<Value> {
    let alone = |seconds: f64| report(seconds, &[("fast", 100.0, &[[seconds - 1.0, 0.5, 0.5]])]);
    let both = |seconds: f64| {
        let slow = [seconds - 0.5, 0.25, 0.25];
        report(seconds, &[("fast", 100.0, &[[seconds - 2.0, 1.0, 1.0]]), ("slow", 50.0, &[slow])])
    };
    vec![alone(10.0), both(8.0), alone(10.1), both(8.1), alone(9.9), both(7.9)]
}

#[test]
fn the_table_of_two_mixes() {
    let comparison = compared(&two_mixes()).unwrap();
    let expected = "\
matmul of metachare 0.1.0 (0123456789) on 2 mixes of 2 nodes, 3 runs each

mix              equiv.   seconds     +- speedup effic.     +-
fast               1.00     10.00   0.32    1.00  1.000  0.000
+ slow             1.50      8.00   0.28    1.25  0.833  0.040

where the time went, in % of the PEs' time by speed, beyond what the reference needs
mix                lost   idle  overhead  imbalance  compute  other
fast                0.0    0.0       0.0        0.0      0.0    0.0
+ slow             16.7   -1.0       5.2        6.2      6.2    0.0

speedup over fast alone (#), of the mix's equivalents (.)
fast             ########################### 1.00 of 1.00
+ slow           #################################....... 1.25 of 1.50

adding slow saves 20.0 % of the time (its speed promises 33.3 %, give or take 3.8 %)
worth having: slow
+-: where another such comparison is expected with 95 % certainty, here within 3.6 %
";
    assert_eq!(comparison.text(), expected, "{}", comparison.text());
}

/// A model by which work takes as long as it has to and everything else a tenth of a second.
fn model(phases: Phases) -> CostModel {
    CostModel { statement: "work and a tenth", phases }
}

#[test]
fn predictions_stand_beside_what_was_measured_with_their_error() {
    let runs: Vec<Run> = two_mixes().iter().map(|report| run(report).unwrap()).collect();
    let mut comparison = Comparison::of(&runs, &[]).unwrap();
    let model = model(Box::new(|arguments, machines, _| {
        assert_eq!(arguments["n"], 512);
        let rates = machines.rates();
        let total: f64 = rates.iter().sum();
        let work = rates.iter().map(|rate| rate / total * WORK).collect();
        Ok(vec![
            Phase { times: 1.0, work, ..Phase::default() },
            Phase { times: 10.0, rounds: 1.0, ..Phase::default() },
        ])
    }));
    let file = r#"{"links": [{"kind": "two-nodes", "from": "fast", "to": "slow", "latency_s": 0.02, "bytes_per_s": 1.0}]}"#;
    let network = Network::parse(file.as_bytes(), "net.json").unwrap();
    Predictor { model: &model, network: &network }.add_to(&mut comparison, &runs);
    let text = comparison.text();
    let rows: Vec<&str> = text.lines().skip(2).take(3).collect();
    assert_eq!(
        rows,
        [
            "mix              equiv.   seconds     +- speedup effic.     +-  predicted  error",
            "fast               1.00     10.00   0.32    1.00  1.000  0.000      10.00    +0%",
            "+ slow             1.50      8.00   0.28    1.25  0.833  0.040       6.87   -14%",
        ]
    );
    assert!(rows.iter().all(|row| row.len() == 80));
    let words =
        "prediction: off by at most 14 %; work and a tenth; the network as measured in net.json, 20000 µs";
    assert!(text.contains(words), "{text}");
    assert!(comparison.markdown().contains(" | 6.87 s (-14 %) |\n"), "{}", comparison.markdown());
    assert!(comparison.figure().to_svg().contains(">predicted<"));
}

#[test]
fn a_model_that_has_no_answer_is_named_and_speeds_that_were_not_measured_predict_nothing() {
    let predicted = |reports: &[Value], phases: Phases| {
        let runs: Vec<Run> = reports.iter().map(|report| run(report).unwrap()).collect();
        let mut comparison = Comparison::of(&runs, &[]).unwrap();
        Predictor { model: &model(phases), network: &Network::default() }.add_to(&mut comparison, &runs);
        assert!(comparison.mixes.iter().all(|mix| mix.predicted.is_none()) && comparison.model.is_none());
        comparison.warnings
    };
    let refused = || -> Phases { Box::new(|_, _, _| Err(RunError::Input("no such matrix".into()))) };
    assert_eq!(predicted(&two_mixes(), refused()), ["there is no prediction: no such matrix"]);
    let nothing = predicted(&two_mixes(), Box::new(|_, _, _| Ok(Vec::new())));
    assert_eq!(nothing, ["there is no prediction: with these speeds the time is beyond reckoning"]);
    let mut reports = two_mixes();
    reports.iter_mut().for_each(|report| {
        report["nodes"].as_array_mut().unwrap().iter_mut().for_each(|node| node["rate"] = Value::Null);
    });
    assert!(predicted(&reports, refused()).is_empty());
}

#[test]
fn a_plan_is_a_comparison_of_runs_that_were_not_made() {
    let model = model(Box::new(|_, machines, _| {
        let work = vec![WORK / machines.rates().len() as f64; machines.rates().len()];
        let bytes = vec![Bytes { sent: 1e8, received: 0.0 }; machines.nodes.len()];
        Ok(vec![Phase { times: 1.0, work, bytes, is_overlapped: true, ..Phase::default() }])
    }));
    let network = Network::default();
    let predictor = Predictor { model: &model, network: &network };
    let program = CommandLine::new(Program::new("metachare", "0.1.0"));
    let subject =
        PlannedWork { program: &program, app: "matmul", arguments: &json!({"n": 512}), work: Some(WORK) };
    let machine = |name: &str, rate: f64| {
        let (name, host, rates) = (name.into(), "h".into(), vec![rate]);
        (Machine { name, host, rates, ..Machine::default() }, "c".to_string())
    };
    let runs = [vec![machine("a", 100.0)], vec![machine("a", 100.0), machine("b", 50.0)]]
        .map(|nodes| predictor.run("x", &subject, nodes).unwrap());
    let comparison = Comparison::of_predictions(&runs, &predictor).unwrap();
    let [alone, both] = comparison.mixes.as_slice() else { panic!("{comparison:?}") };
    // Half of the work at half the speed, and 1e8 B of 0.5 ns each on a PE of half the speed.
    assert!((alone.seconds - 10.05).abs() < 1e-9 && (both.seconds - 10.1).abs() < 1e-9, "{comparison:?}");
    assert!((both.lost.sum() + both.efficiency - 1.0).abs() < 1e-12 && both.lost.imbalance > 0.3, "{both:?}");
    let text = comparison.text();
    assert!(text.starts_with("matmul of metachare 0.1.0 ("), "{text}");
    assert!(text.contains("on 2 mixes of 2 nodes, predicted, not run\n"), "{text}");
    let unclear = "\nadding b changes nothing that a prediction can tell (+0.5 % of the time, predicted, give or take 9.9 %)\n\
                   no difference shown: b\n";
    assert!(text.contains(unclear), "{text}");
    assert!(
        text.contains("+-: how far predictions were from what was measured, 7.0 % of the seconds"),
        "{text}"
    );
    assert!(!text.contains("repeats") && comparison.is_predicted && !comparison.is_guess, "{text}");
    assert!(!text.contains("guess"), "{text}");
    let mut guessed = runs;
    guessed.iter_mut().for_each(|run| run.is_guess = true);
    let text = Comparison::of_predictions(&guessed, &predictor).unwrap().text();
    assert!(
        text.contains("     10.10  guess ") && text.contains("; what mixes are to each other holds"),
        "{text}"
    );
    assert!(text.contains(unclear), "{text}");
}

#[test]
fn markdown_and_csv_and_json_say_the_same() {
    let comparison = compared(&two_mixes()).unwrap();
    let markdown = comparison.markdown();
    let row = "| fast, slow | 1.50 | 8.00 ± 0.28 | 1.25 | 0.833 ± 0.040 | -1.0 % | 5.2 % | 6.2 % | 6.2 % | 0.0 % | - |";
    assert!(markdown.contains(row), "{markdown}");
    let bars: Vec<usize> =
        markdown.lines().filter(|line| line.starts_with('|')).map(|line| line.matches('|').count()).collect();
    assert_eq!(bars, [12; 4], "every row has as many cells: {markdown}");
    let csv = comparison.csv();
    let cells: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert!(cells.iter().all(|row| row.len() == cells[0].len()), "{csv}");
    assert_eq!((cells[2][0], cells[2][4], cells[0][4]), ("fast slow", "8", "seconds"));
    let json = serde_json::to_value(&comparison).unwrap();
    assert_eq!(
        (&json["mixes"][1]["seconds"], &json["mixes"][1]["runs"]),
        (&json!(8.0), &json!([8.0, 8.1, 7.9]))
    );
    assert_eq!((&json["reference"]["node"], &json["steps"][0]["finding"]), (&json!("fast"), &json!("saves")));
    is_as_documented(&json);
}

/// Every key of the document is in the JSON, and every key of the JSON in the document.
fn is_as_documented(json: &Value) {
    let document = include_str!("schema.md");
    let documented: std::collections::BTreeSet<String> = document
        .lines()
        .filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_string()))
        .filter(|key| !["idle", "overhead", "imbalance", "compute", "other"].contains(&key.as_str()))
        .collect();
    let mut found = std::collections::BTreeSet::new();
    keys(json, "", &mut found);
    let absent = ["mixes[].predicted.seconds", "mixes[].predicted.error", "model.statement", "model.network"];
    found.extend(absent.map(String::from));
    assert_eq!(found, documented);
}

fn keys(value: &Value, path: &str, found: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Object(map) if path != "arguments" => map.iter().for_each(|(key, value)| {
            keys(value, &format!("{path}{}{key}", if path.is_empty() { "" } else { "." }), found);
        }),
        Value::Array(list) if list.iter().any(Value::is_object) => {
            list.iter().for_each(|value| keys(value, &format!("{path}[]"), found));
        }
        _ => {
            found.insert(path.to_string());
        }
    }
}

#[test]
fn a_difference_within_the_spread_is_claimed_by_nobody_and_a_loss_is_called_one() {
    let mut reports = two_mixes();
    let seconds = [10.05, 9.7, 10.3];
    let third = |seconds: f64| report(seconds, &[("fast", 100.0, &[[1.0; 3]]), ("old", 9.0, &[[1.0; 3]])]);
    reports.extend(seconds.map(third));
    let fourth = |seconds: f64| report(seconds, &[("fast", 100.0, &[[1.0; 3]]), ("far", 50.0, &[[1.0; 3]])]);
    reports.extend([13.0, 13.1, 12.9].map(fourth));
    let comparison = compared(&reports).unwrap();
    let findings: Vec<Finding> = comparison.steps.iter().map(|step| step.finding).collect();
    assert_eq!(findings, [Finding::Saves, Finding::Unclear, Finding::Costs]);
    assert_eq!(comparison.verdict, "worth having: slow; costs time: far; no difference shown: old");
    let sentences: Vec<&str> = comparison.steps.iter().map(|step| step.sentence.as_str()).collect();
    assert!(
        sentences[1].starts_with("adding old changes nothing that 3 repeats could show (+0.5 % of"),
        "{sentences:?}"
    );
    assert!(sentences[2].starts_with("adding far costs 30.0 % more time (give or take "), "{sentences:?}");
}

#[test]
fn without_a_run_of_the_fastest_alone_its_time_is_reckoned_and_said_to_be() {
    let comparison = compared(&two_mixes()[1..2]).unwrap();
    assert!(!comparison.reference.is_measured);
    assert_eq!((comparison.reference.seconds, comparison.mixes[0].equivalents), (10.0, 1.5));
    assert!(
        comparison.text().contains("its 10.00 s are reckoned from its measured rate"),
        "{}",
        comparison.text()
    );
    let sum = comparison.mixes[0].lost.sum() + comparison.mixes[0].efficiency;
    assert!((sum - 1.0).abs() < 1e-12, "{sum}");
}

/// What a comparison is with, the equivalents of `a` and `b`, and what is to be beware of.
fn reference(reports: &[Value]) -> (String, bool, Vec<f64>, Vec<String>) {
    let comparison = compared(reports).unwrap();
    let worths = comparison.nodes.iter().map(|node| node.equivalents).collect();
    (comparison.reference.node, comparison.reference.is_measured, worths, comparison.warnings)
}

#[test]
fn the_reference_is_the_node_that_takes_the_least_time_alone_whatever_noise_makes_of_speeds() {
    let pes: &[[f64; 3]] = &[[1.0; 3]];
    let alone = |name: &'static str, rate, seconds| report(seconds, &[(name, rate, pes)]);
    let both = |a, b| report(6.0, &[("a", a, pes), ("b", b, pes)]);
    // By its rate over all runs, b is the fastest node.
    let tried = [alone("a", 100.0, 10.0), alone("b", 103.0, 10.4), both(100.0, 101.0)];
    assert_eq!(reference(&tried), ("a".into(), true, vec![1.0, 1.0], vec![]));
    // Only a was tried alone, and b is as good as equal.
    assert_eq!(reference(&[alone("a", 100.0, 10.0), both(100.0, 101.0)]).0, "a");
    let (node, is_measured, worths, _) = reference(&[alone("a", 100.0, 10.0), both(100.0, 125.0)]);
    assert_eq!((node.as_str(), is_measured, worths), ("b", false, vec![0.8, 1.0]));
    // The rates of runs alone say that a is faster, and those of runs together the contrary.
    let (node, _, worths, _) =
        reference(&[alone("a", 130.0, 10.0), both(100.0, 120.0), alone("b", 110.0, 9.0)]);
    assert_eq!((node.as_str(), worths[1]), ("b", 1.0));
    assert!(worths[0] < 1.0, "{worths:?}");
    // A kernel that says something else than the run.
    let (node, _, worths, warnings) =
        reference(&[alone("a", 200.0, 12.0), alone("b", 100.0, 10.0), both(200.0, 100.0)]);
    assert_eq!((node.as_str(), worths), ("b", vec![1.0, 1.0]));
    assert!(
        warnings[0].starts_with("a has 2.00 times the measured speed of b, but takes longer alone"),
        "{warnings:?}"
    );
}

#[test]
fn a_run_counts_once_however_often_its_report_is_given() {
    let mut reports = two_mixes();
    for (at, report) in reports.iter_mut().enumerate() {
        (report["run_id"], report["started_unix_ms"]) = (json!("matmul-1"), json!(at));
    }
    reports.extend(reports[..2].to_vec());
    let runs: Vec<Run> = reports.iter().map(|report| run(report).unwrap()).collect();
    let (runs, remarks) = Run::once_each(runs);
    assert_eq!(runs.len(), 6);
    assert_eq!(remarks, ["a.json and a.json are reports of the same run, which counts once"; 2]);
    let unnamed: Vec<Run> = two_mixes().iter().map(|report| run(report).unwrap()).collect();
    assert_eq!(Run::once_each(unnamed).0.len(), 6, "reports that do not say which run they are of");
}

#[test]
fn speeds_that_were_not_measured_are_taken_from_runs_that_have_both_nodes() {
    let mut reports = two_mixes();
    for report in &mut reports {
        for node in report["nodes"].as_array_mut().unwrap() {
            node["rate"] = Value::Null;
        }
    }
    assert_eq!(compared(&reports).unwrap().mixes[1].equivalents, 1.5);
    let sentence = compared(&reports[1..2]).unwrap_err();
    assert!(sentence.contains("add a run with `--only fast`"), "{sentence}");
    let mut apart = reports[..1].to_vec();
    apart.push(report(9.0, &[("other", 1.0, &[[1.0; 3]])]));
    apart[1]["nodes"][0]["rate"] = Value::Null;
    let sentence = compared(&apart).unwrap_err();
    assert!(sentence.starts_with("it is not known what "), "{sentence}");
}

#[test]
fn what_is_not_the_same_work_is_refused_with_what_differs() {
    let refusal = |change: &dyn Fn(&mut Value)| {
        let mut reports = two_mixes();
        change(&mut reports[1]);
        compared(&reports).err()
    };
    let cases: [Case<'_>; 5] = [
        ("the application is matmul in the one and gauss in the other", &|r| r["app"] = json!("gauss")),
        ("the argument n is 512 in the one and 513 in the other", &|r| r["arguments"]["n"] = json!(513)),
        ("the argument q is null in the one and 4 in the other", &|r| r["arguments"]["q"] = json!(4)),
        ("the amount of work is 1000 in the one and not stated in the other", &|r| r["work"] = Value::Null),
        ("the node fast of a.json is another one than in a.json", &|r| r["nodes"][0]["cpu"] = json!("d")),
    ];
    for (expected, change) in cases {
        let sentence = refusal(change).unwrap_or_default();
        assert!(sentence.contains(expected), "{expected}: {sentence}");
    }
    assert_eq!(
        refusal(&|r| r["arguments"]["out"] = json!("c.npy")),
        None,
        "where the result goes is no work"
    );
    let mut reports = two_mixes();
    reports[1]["commit"] = json!("fedcba");
    assert_eq!(compared(&reports).unwrap().warnings, ["the runs are of several versions of the program"]);
}

#[test]
fn what_is_no_report_of_a_run_that_went_well_is_refused_with_a_reason() {
    let refusal = |change: &dyn Fn(&mut Value)| {
        let mut report = two_mixes().remove(1);
        change(&mut report);
        run(&report).map(drop).unwrap_err()
    };
    let cases: [Case<'_>; 10] = [
        ("a.json is of a run that failed: the node slow was lost", &|r| {
            r["error"] = json!("the node slow was lost")
        }),
        ("a.json is of a run that failed: it does not say why", &|r| r["exit_code"] = json!(1)),
        ("a.json is of a run whose result is wrong", &|r| r["verified"] = json!(false)),
        ("a.json has no timed part", &|r| r["timed_s"] = Value::Null),
        ("a.json has no timed part", &|r| r["timed_s"] = json!(0.0)),
        ("a.json is of the schema \"other/1\", not metachare-run/1", &|r| r["schema"] = json!("other/1")),
        ("missing field `nodes`", &|r| drop(r.as_object_mut().unwrap().remove("nodes"))),
        ("names no nodes", &|r| r["nodes"] = json!([])),
        ("a time, speed or amount of work below 0", &|r| r["nodes"][0]["pes"][0]["idle_s"] = json!(-1.0)),
        ("names a node twice", &|r| r["nodes"][1]["name"] = json!("fast")),
    ];
    for (expected, change) in cases {
        let sentence = refusal(change);
        assert!(sentence.contains(expected), "{expected}: {sentence}");
    }
    for text in ["", "{", "[1,2]", "{\"schema\": 3}", "{\"schema\": \"metachare-run/1\"}", "\u{0}\u{1}"] {
        let sentence = Run::parse(text.as_bytes(), "a.json").map(drop).unwrap_err().sentence;
        assert!(sentence.starts_with("a.json is ") && !sentence.contains('\n'), "{sentence}");
    }
    assert_eq!(Run::load(std::path::Path::new("/nowhere/a.json")).map(drop).unwrap_err().kind, Kind::NoInput);
}

#[test]
fn a_report_is_found_behind_what_the_application_printed() {
    let report = "{\n  \"schema\": \"metachare-run/1\"\n}\n";
    let printed = format!("hello\n{{ }}\n{report}");
    assert_eq!(report_in(printed.as_bytes()), Some(report.as_bytes()));
    assert_eq!(report_in(b"hello"), None);
    assert_eq!(report_in(&[0xff, 0xfe]), None);
}

#[test]
fn rounds_begin_with_another_mix_each_and_the_fastest_alone_is_added() {
    let rates = [("slow", 50.0), ("fast", 100.0)];
    let mut turns = Vec::new();
    let mut mixes = vec![vec!["slow".to_string()], vec!["slow".to_string(), "fast".to_string()]];
    let runs = rounds(&mut mixes, 3, &Progress::new(6), |nodes, Turn { repeat, .. }| {
        turns.push((nodes.join(","), repeat));
        let pes: &[[f64; 3]] = &[[1.0; 3]];
        let made: Vec<Made<'_>> = rates
            .iter()
            .filter(|(name, _)| nodes.iter().any(|node| node == name))
            .map(|&(name, rate)| (name, rate, pes))
            .collect();
        Ok(run(&report(3.0, &made)).unwrap())
    });
    let turns: Vec<(&str, usize)> = turns.iter().map(|(nodes, repeat)| (nodes.as_str(), *repeat)).collect();
    let [slow, both, fast] = ["slow", "slow,fast", "fast"];
    assert_eq!(
        turns,
        [(slow, 1), (both, 1), (fast, 1), (both, 2), (fast, 2), (slow, 2), (fast, 3), (slow, 3), (both, 3)]
    );
    let runs = runs.unwrap();
    assert_eq!(grouped(&runs).iter().map(Vec::len).collect::<Vec<_>>(), [3; 3]);
}

#[test]
fn where_the_first_round_was_mistaken_the_fastest_alone_is_run_after_the_last() {
    let mut mixes = vec![vec!["a".to_string()], vec!["a".to_string(), "b".to_string()]];
    let pes: &[[f64; 3]] = &[[1.0; 3]];
    let runs = rounds(&mut mixes, 3, &Progress::new(6), |nodes, Turn { repeat, .. }| {
        let b = if repeat == 1 { 90.0 } else { 130.0 };
        let made: Vec<Made<'_>> = nodes
            .iter()
            .map(|node| match node.as_str() {
                "a" => ("a", 100.0, pes),
                _ => ("b", b, pes),
            })
            .collect();
        Ok(run(&report(if nodes == ["b"] { 8.0 } else { 10.0 }, &made)).unwrap())
    })
    .unwrap();
    assert_eq!(mixes[2..], [["b".to_string()]]);
    assert_eq!(grouped(&runs).iter().map(Vec::len).collect::<Vec<_>>(), [3; 3]);
    let comparison = Comparison::of(&runs, &[]).unwrap();
    assert_eq!((comparison.reference.node.as_str(), comparison.reference.is_measured), ("b", true));
}

#[test]
fn the_first_run_that_fails_ends_it() {
    let mut mixes = vec![vec!["a".to_string()], vec!["b".to_string()]];
    let mut count = 0;
    let failed = rounds(&mut mixes, 3, &Progress::new(6), |_, _| {
        count += 1;
        Err(Failure::new(Kind::Unavailable, "lost"))
    });
    assert_eq!((failed.map(drop).unwrap_err().kind, count), (Kind::Unavailable, 1));
}

/// Nodes with their rates and their PEs' times, as parts of the timed part that are at most 1 together.
fn any_nodes() -> impl Strategy<Value = Vec<(f64, Vec<[f64; 3]>)>> {
    let pe = (0.0..0.6f64, 0.0..0.2f64, 0.0..0.2f64).prop_map(|(a, b, c)| [a, b, c]);
    prop::collection::vec((0.1f64..1000.0, prop::collection::vec(pe, 1..5)), 1..6)
}

proptest! {
    #[test]
    fn parts_add_up_to_what_was_lost(
        nodes in any_nodes(),
        seconds in 0.001f64..1e5,
        of_one in 0.001f64..1e5,
    ) {
        let names: Vec<String> = (0..nodes.len()).map(|at| format!("n{at}")).collect();
        let scaled: Vec<Vec<[f64; 3]>> =
            nodes.iter().map(|(_, pes)| pes.iter().map(|pe| pe.map(|part| part * seconds)).collect()).collect();
        let made: Vec<Made<'_>> =
            names.iter().zip(&nodes).zip(&scaled).map(|((name, node), pes)| (name.as_str(), node.0, pes.as_slice())).collect();
        let fastest = *made.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        let alone = report(of_one, &[(fastest.0, fastest.1, &vec![[0.5 * of_one, 0.2 * of_one, 0.1 * of_one]; fastest.2.len()])]);
        let comparison = compared(&[report(seconds, &made), alone]).unwrap();
        for mix in &comparison.mixes {
            prop_assert!((mix.lost.sum() + mix.efficiency - 1.0).abs() < 1e-9 * (1.0 + mix.efficiency), "{mix:?}");
        }
        let spent = Lost::spent(&run(&report(seconds, &made)).unwrap(), &nodes.iter().map(|node| node.0).collect::<Vec<_>>());
        prop_assert!((spent.sum() - 1.0).abs() < 1e-9);
        prop_assert!(spent.idle >= -1e-9 && spent.imbalance >= 0.0 && spent.overhead >= 0.0, "{spent:?}");
    }

    #[test]
    fn an_ideal_mix_has_efficiency_one_and_loses_nothing(rates in prop::collection::vec(0.1f64..1000.0, 1..6)) {
        let names: Vec<String> = (0..rates.len()).map(|at| format!("n{at}")).collect();
        let seconds = WORK / rates.iter().sum::<f64>();
        let busy = [[seconds, 0.0, 0.0]];
        let made: Vec<Made<'_>> = names.iter().zip(&rates).map(|(name, rate)| (name.as_str(), *rate, &busy[..])).collect();
        let fastest = *made.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        let of_one = WORK / fastest.1;
        let comparison = compared(&[report(seconds, &made), report(of_one, &[(fastest.0, fastest.1, &[[of_one, 0.0, 0.0]])])]).unwrap();
        let mix = &comparison.mixes[0];
        prop_assert!((mix.efficiency - 1.0).abs() < 1e-9, "{mix:?}");
        let Lost { idle, overhead, imbalance, compute, other } = mix.lost;
        prop_assert!([idle, overhead, imbalance, compute, other].iter().all(|part| part.abs() < 1e-9), "{mix:?}");
    }

    #[test]
    fn any_bytes_are_a_report_or_a_sentence(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(ended) = saved::Run::parse(&bytes, "x") {
            prop_assert!(ended.kind == Kind::Input);
        }
    }

    #[test]
    fn tables_of_any_mixes_are_text(seconds in prop::collection::vec(1e-6f64..1e9, 1..4), rate in 1e-9f64..1e15) {
        let reports: Vec<Value> = seconds
            .iter()
            .map(|s| report(*s, &[("a-name-as-long-as-names-may-be,really", rate, &[[*s, 0.0, 0.0]])]))
            .collect();
        let comparison = compared(&reports).unwrap();
        let text = comparison.text();
        prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        let table = text.lines().skip(2).take(2);
        prop_assert!(table.into_iter().all(|line| line.chars().count() <= 80), "{text}");
        prop_assert!(comparison.csv().lines().nth(1).unwrap().starts_with("\"a-name"));
        prop_assert!(comparison.figure().to_svg().ends_with("</svg>\n"));
    }
}
