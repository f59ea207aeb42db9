//! The command `compare` as its users run it: on the built-in nodes with every kind of output, on saved reports, and
//! when something goes wrong.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use harness::{Done, is_alive, processes_with, signal, start, wait_for, wait_for_work};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const METACHARE: &str = env!("CARGO_BIN_EXE_metachare-under-test");

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(METACHARE);
    command.args(words).current_dir(folder).env_remove("METACHARE_NODES");
    command.env("XDG_CACHE_HOME", folder).env("XDG_RUNTIME_DIR", folder);
    command
}

fn run(folder: &Path, words: &[&str]) -> Done {
    start(&mut command(folder, words)).done()
}

fn json(folder: &Path, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn all_prefixes_of_the_built_in_nodes_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Of nodes that share cores, measured speeds could name another one as the fastest, which would be compared with then.
    let words = "compare --built-in-nodes --repeats 2 --mixes all-prefixes --speed equal --csv c.csv --json c.json \
                 --markdown c.md --svg c.svg --png c.png --reports runs matmul --n 512 --verify";
    let done = run(folder, &words.split_whitespace().collect::<Vec<_>>());
    assert_eq!(done.code, 0, "{done:?}");
    for part in
        ["large  ", "+ medium  ", "+ small  ", "speedup over large alone", "\nadding medium ", "+-: where"]
    {
        assert!(done.stdout.contains(part), "{part} is not in {}", done.stdout);
    }
    assert!(done.stdout.lines().take(18).all(|line| line.chars().count() <= 90), "{}", done.stdout);
    let comparison = json(folder, "c.json");
    let mixes = comparison["mixes"].as_array().unwrap();
    let nodes = ["large", "medium", "small"];
    for (at, mix) in mixes.iter().enumerate() {
        assert_eq!(mix["nodes"], serde_json::to_value(&nodes[..=at]).unwrap());
        assert_eq!(mix["runs"].as_array().unwrap().len(), 2);
        let lost: f64 = mix["lost"].as_object().unwrap().values().map(number).sum();
        assert!((lost + number(&mix["efficiency"]) - 1.0).abs() < 1e-9, "{mix}");
        let speedup = number(&comparison["reference"]["seconds"]) / number(&mix["seconds"]);
        assert!((speedup / number(&mix["speedup"]) - 1.0).abs() < 1e-9, "{mix}");
    }
    assert_eq!((mixes.len(), number(&mixes[0]["efficiency"])), (3, 1.0));
    assert!(mixes.windows(2).all(|pair| number(&pair[0]["equivalents"]) < number(&pair[1]["equivalents"])));
    let csv = std::fs::read_to_string(folder.join("c.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((rows.len(), rows[3][0], rows[3][1]), (4, "large medium small", "4"), "{csv}");
    let markdown = std::fs::read_to_string(folder.join("c.md")).unwrap();
    assert!(markdown.contains("\n| large, medium, small | "), "{markdown}");
    let svg = std::fs::read_to_string(folder.join("c.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains(">measured<") && svg.contains(">ideal<"), "{svg}");
    let png = std::fs::read(folder.join("c.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.ends_with(b"IEND\xae\x42\x60\x82"));
    the_kept_reports_give_the_same_comparison(folder, &comparison);
}

fn kept_reports(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder.join("runs")).unwrap();
    let mut names: Vec<String> =
        files.map(|entry| format!("runs/{}", entry.unwrap().file_name().into_string().unwrap())).collect();
    names.sort();
    names
}

fn the_kept_reports_give_the_same_comparison(folder: &Path, first: &Value) {
    let files = kept_reports(folder);
    assert_eq!((files.len(), files[5].as_str()), (6, "runs/03-large+medium+small-2.json"));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let done = run(folder, &[&["compare", "--json", "again.json"], files.as_slice()].concat());
    assert_eq!(done.code, 0, "{done:?}");
    let mut again = json(folder, "again.json");
    for (mix, of_first) in
        again["mixes"].as_array_mut().unwrap().iter_mut().zip(first["mixes"].as_array().unwrap())
    {
        mix["sources"] = of_first["sources"].clone();
    }
    assert_eq!(again, *first);
}

#[test]
fn the_network_is_kept_among_the_reports_and_predicted_with_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = "compare --built-in-nodes --mix large,small --repeats 1 --reports runs matmul --n 256";
    let done = run(folder, &words.split_whitespace().collect::<Vec<_>>());
    assert_eq!(done.code, 0, "{done:?}");
    let files = kept_reports(folder);
    let words = ["compare", "--json", "again.json"].into_iter().chain(files.iter().map(String::as_str));
    let done = run(folder, &words.collect::<Vec<_>>());
    assert_eq!(done.code, 0, "{done:?}");
    let again = json(folder, "again.json");
    let network = again["model"]["network"].as_str().unwrap();
    assert!(network.contains("measured in runs/00-network.json, "), "{again}");
}

#[test]
fn a_plan_predicts_the_same_table_from_speeds_measured_now_or_before() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = ["plan", "--built-in-nodes", "--json", "p.json", "--csv", "p.csv", "matmul", "--n", "512"];
    let done = run(folder, &words);
    assert_eq!(done.code, 0, "{done:?}");
    let plan = json(folder, "p.json");
    let mixes = plan["mixes"].as_array().unwrap();
    assert_eq!((mixes.len(), &plan["is_predicted"]), (3, &true.into()));
    assert!(mixes.iter().all(|mix| number(&mix["seconds"]) > 0.0 && number(&mix["spread"]) > 0.0), "{plan}");
    assert!(done.stdout.contains("predicted, not run") && done.stdout.contains("\nprediction: "), "{done:?}");
    assert!(done.stdout.contains("; the network measured at the start, "), "{done:?}");
    let speeds = run(folder, &["nodes", "speed", "matmul", "--n", "512", "--built-in-nodes", "--json"]);
    assert_eq!(speeds.code, 0, "{speeds:?}");
    std::fs::write(folder.join("s.json"), speeds.stdout).unwrap();
    let net = r#"{"links": [{"kind": "two-nodes", "from": "large", "to": "small", "latency_s": 1, "bytes_per_s": 1e9}]}"#;
    std::fs::write(folder.join("net.json"), net).unwrap();
    let words = |n: &'static str| {
        let start = [
            "plan",
            "--built-in-nodes",
            "--speeds",
            "s.json",
            "--network",
            "net.json",
            "--mix",
            "small,large",
        ];
        [&start[..], &["--json", "q.json", "matmul", "--n", n]].concat()
    };
    let done = run(folder, &words("512"));
    assert_eq!(done.code, 0, "{done:?}");
    let plan = json(folder, "q.json");
    let nodes: Vec<&Value> = plan["mixes"].as_array().unwrap().iter().map(|mix| &mix["nodes"]).collect();
    assert_eq!(nodes, [&serde_json::json!(["large", "small"]), &serde_json::json!(["large"])]);
    let seconds = number(&plan["mixes"][0]["seconds"]);
    assert!((4.0..64.0).contains(&seconds), "some steps of a second's latency each: {seconds}");
    let done = run(folder, &words("64"));
    assert_eq!(done.code, 65, "{done:?}");
    assert!(done.last_error().contains("s.json has no speeds of large for `matmul: "), "{done:?}");
}

#[test]
fn a_plan_can_be_made_for_every_application_with_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let apps: [&[&str]; 9] = [
        &["matmul", "--n", "256"],
        &["gauss", "--n", "256"],
        &["jacobi", "--n", "256"],
        &["apsp", "--n", "200"],
        &["statics", "--size", "5"],
        &["mis", "--vertices", "60"],
        &["fem", "--elements", "30"],
        &["pic", "--particles", "5000", "--scheme", "regions"],
        &["imbalance", "--work", "1000"],
    ];
    for words in apps {
        let start = ["plan", "--built-in-nodes", "--mix", "medium", "--json", "p.json"];
        let done = run(folder.path(), &[&start, words].concat());
        assert_eq!(done.code, 0, "{words:?}: {done:?}");
        let plan = json(folder.path(), "p.json");
        assert!(number(&plan["mixes"][0]["seconds"]) > 0.0, "{words:?}: {plan}");
    }
    let help = run(folder.path(), &["plan", "--help"]).stdout;
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let listed: Vec<&str> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    let mut all: Vec<&str> = apps.iter().map(|words| words[0]).collect();
    all.sort_by_key(|name| listed.iter().position(|other| other == name));
    assert_eq!(all, listed, "{help}");
}

#[test]
fn an_application_without_a_kernel_is_compared_and_a_run_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words =
        ["compare", "--built-in-nodes", "--mix", "large,medium", "--repeats", "1", "--reports", "runs"];
    let of_app = ["netbench", "--links-only", "--sizes", "1", "--repeats", "1", "--warm-up", "0"];
    let done = run(folder, &[&words[..], &of_app].concat());
    assert!(!done.stderr.contains("--speed"), "{done:?}");
    let report = [
        "run",
        "matmul",
        "--built-in-nodes",
        "--only",
        "medium",
        "--n",
        "64",
        "--quiet",
        "--report",
        "a.json",
    ];
    assert_eq!(run(folder, &report).code, 0);
    std::fs::copy(folder.join("a.json"), folder.join("b.json")).unwrap();
    let done = run(folder, &["compare", "a.json", "b.json", "a.json"]);
    assert!(done.code == 0 && done.stdout.contains("on 1 mix of 1 node, 1 run each"), "{done:?}");
    let beware = "beware: a.json and b.json are reports of the same run, which counts once";
    assert!(done.stdout.contains(beware), "{done:?}");
}

#[test]
fn which_nodes_are_used_and_who_named_them_is_the_first_line() {
    let folder = tempfile::tempdir().unwrap();
    let note = "note: there is no nodes file: on the built-in local nodes large, medium, small; --nodes FILE";
    let run = |words: &[&str]| run(folder.path(), words);
    let of_run = ["run", "matmul", "--n", "0"];
    assert_eq!(run(&of_run).nodes, "");
    let of_run = ["run", "matmul", "--n", "16", "--speed", "equal"];
    let told = run(&of_run);
    assert!(told.nodes.starts_with(note) && told.stderr.is_empty(), "{told:?}");
    let quiet = run(&[&of_run[..], &["--quiet"]].concat());
    assert_eq!((quiet.nodes.as_str(), quiet.stderr.as_str()), ("", ""));
    let asked = run(&[&of_run[..], &["--built-in-nodes"]].concat());
    assert_eq!(asked.nodes, "note: on the built-in local nodes large, medium, small");
    assert!(run(&["plan", "--mix", "nobody", "matmul"]).nodes.starts_with(note));
    assert_eq!(run(&["nodes", "list"]).nodes, "");
    std::fs::create_dir_all(folder.path().join("metachare")).unwrap();
    let own = folder.path().join("metachare/nodes.toml");
    std::fs::write(&own, "[[node]]\nname = \"mine\"\npes = 1\n").unwrap();
    let told =
        |name: &str, value: &Path| start(command(folder.path(), &of_run).env(name, value)).done().nodes;
    let path = own.display();
    assert_eq!(told("XDG_CONFIG_HOME", folder.path()), format!("note: on the nodes of {path}: mine"));
    assert_eq!(
        told("METACHARE_NODES", &own),
        format!("note: on the nodes of {path} (METACHARE_NODES): mine")
    );
    let named = run(&[&of_run[..], &["--nodes", &path.to_string()]].concat());
    assert_eq!(named.nodes, format!("note: on the nodes of {path} (--nodes): mine"));
    let hosts = run(&[&of_run[..], &["--hosts", "localhost:1"]].concat());
    assert_eq!(hosts.nodes, "note: on the nodes of --hosts: localhost");
}

#[test]
fn reports_of_other_work_and_of_failed_runs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let report = |name: &str, words: &[&str], code| {
        let start = ["run", "matmul", "--built-in-nodes", "--only", "medium", "--quiet", "--report", name];
        assert_eq!(run(folder, &[&start, words].concat()).code, code);
    };
    report("a.json", &["--n", "64"], 0);
    report("b.json", &["--n", "65"], 0);
    report("c.json", &["--n", "64", "--out", "c.npy", "--verify"], 0);
    report("d.json", &["--n", "20000", "--timeout", "0.05"], 110);
    let refused = |files: [&str; 2]| {
        let done = run(folder, &[&["compare"], files.as_slice()].concat());
        assert_eq!((done.code, done.stdout.as_str(), done.stderr.lines().count()), (65, "", 1), "{done:?}");
        done.stderr
    };
    let sentence = refused(["a.json", "b.json"]);
    assert!(sentence.contains("not of the same work: the argument n is 64 in the one and 65"), "{sentence}");
    let sentence = refused(["a.json", "d.json"]);
    assert!(sentence.contains("d.json is of a run that failed: "), "{sentence}");
    std::fs::write(folder.join("e.json"), "{").unwrap();
    assert!(refused(["e.json", "a.json"]).contains("e.json is not JSON"));
    let done = run(folder, &["compare", "a.json", "c.json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("on 1 mix of 1 node, 2 runs each"), "{}", done.stdout);
}

#[test]
fn what_cannot_be_run_ends_with_one_sentence_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(folder.path(), &["plan", "--built-in-nodes", "netbench"]);
    assert_eq!((done.code, done.stdout.as_str()), (64, ""), "{done:?}");
    assert_eq!(done.last_error(), "error: netbench has no cost model to predict with");
    let cases: [(&[&str], i32, &str); 6] = [
        (&["--built-in-nodes", "matmul", "--n", "0"], 65, "sides must be 1 to"),
        (&["--built-in-nodes", "matmul", "--bogus"], 64, "matmul: unexpected argument '--bogus' found"),
        (&["--built-in-nodes", "--mix", "large,huge", "matmul"], 64, "there is no node \"huge\""),
        (
            &["--csv", "no/such/folder/c.csv", "matmul"],
            73,
            "the table no/such/folder/c.csv cannot be written",
        ),
        (&["mamul"], 64, "there is neither an application (matmul"),
        (&["nowhere.json"], 66, "nowhere.json cannot be read"),
    ];
    for (words, code, sentence) in cases {
        let done = run(folder.path(), &[&["compare"], words].concat());
        assert_eq!((done.code, done.stdout.as_str()), (code, ""), "{words:?}: {done:?}");
        assert!(done.last_error().contains(sentence), "{words:?}: {done:?}");
    }
}

#[test]
fn a_run_that_fails_ends_the_comparison_with_its_exit_code_and_words() {
    let folder = tempfile::tempdir().unwrap();
    let words =
        ["compare", "--built-in-nodes", "--mix", "large", "--timeout", "0.05", "matmul", "--n", "20000"];
    let done = run(folder.path(), &words);
    assert_eq!((done.code, done.stdout.as_str()), (110, ""), "{done:?}");
    assert!(done.last_error().starts_with("error: matmul on large, run 1: "), "{done:?}");
}

#[test]
fn a_comparison_that_a_signal_ends_leaves_no_run_behind() {
    for (name, code) in [("TERM", 143), ("KILL", 137)] {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("interrupted.npy").display().to_string();
        let words =
            ["compare", "--built-in-nodes", "matmul", "--n", "8000", "--kernel", "plain", "--out", &mark];
        let running = start(&mut command(folder.path(), &words));
        // The first run is that which measures the network.
        let both = || Some(processes_with(&mark)).filter(|processes| processes.len() >= 2);
        let with_mark = wait_for("the comparison and its run", both);
        wait_for_work(folder.path());
        signal(running.pid(), name);
        assert_eq!(running.done().code, code);
        wait_for("the run to end", || (!with_mark.iter().any(|&pid| is_alive(pid))).then_some(()));
    }
}

#[test]
fn work_that_a_trial_chooses_is_the_same_in_all_runs() {
    let folder = tempfile::tempdir().unwrap();
    let words = "compare --built-in-nodes --mix large --mix large,medium --repeats 1 --speed equal --csv c.csv imbalance \
         --seconds 0.2 --chares 8 --steps 20";
    let done = run(folder.path(), &words.split_whitespace().collect::<Vec<_>>());
    assert_eq!(done.code, 0, "{done:?}");
    let words = "compare --built-in-nodes --mix large --mix large,medium --repeats 1 --speed equal matmul --seconds 0.1";
    let done = run(folder.path(), &words.split_whitespace().collect::<Vec<_>>());
    assert_eq!(done.code, 0, "{done:?}");
}
