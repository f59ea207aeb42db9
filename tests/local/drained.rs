//! Nodes that leave a run, which goes on without them, and nodes that join it.

use super::remote::Bed;
use super::{METACHARE, MISBEHAVING, command, run};
use harness::{after, is_alive, local_nodes, signal, start, wait_for, wait_for_work, write, write_program};
use std::fs;

/// Prints what checkpoints hold, in the order of kinds and PEs.
const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/checkpoint/reader.py");

#[test]
fn a_node_leaves_and_the_result_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1, 2, 1]);
    let words =
        "run imbalance --chares 24 --steps 400 --work 20000 --reduce-every 3 --speed equal --out ends.npy";
    let words: Vec<&str> = words.split(' ').chain(["--report", "run.json"]).collect();
    assert_eq!(run(METACHARE, folder, &words).code, 0);
    let whole = fs::read(folder.join("ends.npy")).unwrap();
    fs::remove_file(folder.join("ends.npy")).unwrap();
    let running = start(&mut command(METACHARE, folder, &words));
    let nodes = running.nodes(3);
    wait_for_work(folder);
    let name = run(METACHARE, folder, &["watch", "--list"]).stdout;
    let drain = |node: &str| run(METACHARE, folder, &["nodes", "drain", name.trim(), node]);
    let unknown = drain("x");
    assert_eq!(
        unknown.last_error(),
        "error: no node of this run is called \"x\"; there are a, b, c",
        "{unknown:?}"
    );
    assert!(drain("launcher").last_error().starts_with("error: the launcher stays until the run ends"));
    let drained = drain("b");
    assert_eq!(drained.code, 0, "{drained:?}");
    assert!(drained.stdout.starts_with("b has left: its PEs went on (1 to a, 1 to c) with "), "{drained:?}");
    assert!(drained.stdout.ends_with("; its process has ended\n"), "{drained:?}");
    let alive = nodes.iter().filter(|node| is_alive(**node)).count();
    assert_eq!((drain("b").last_error(), alive), ("error: b has left; there are a, c", 2));
    let done = running.done();
    assert_eq!(done.code, 0, "{done:?}");
    assert!(fs::read(folder.join("ends.npy")).unwrap() == whole, "other bits after a node has left");
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("run.json")).unwrap()).unwrap();
    let nodes = report["nodes"].as_array().unwrap();
    let left: Vec<bool> = nodes.iter().map(|node| node["left_s"].is_number()).collect();
    assert_eq!(left, [false, true, false]);
    let pes: Vec<usize> = nodes.iter().map(|node| node["pes"].as_array().unwrap().len()).collect();
    assert_eq!(pes, [2, 2, 2], "{report}");
    assert!(done.stdout.contains("b has left: "), "the table says so: {done:?}");
}

#[test]
fn nodes_join_and_leave_and_the_result_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1, 1]);
    write(folder, "more.toml", "[[node]]\nname = \"c\"\npes = 2\n[[node]]\nname = \"a\"\npes = 1\n");
    write(folder, "none.toml", "[[node]]\nname = \"d\"\npes = 1\nbinary = \"/bin/false\"\n");
    let words = "run imbalance --chares 24 --steps 4800 --work 20000 --reduce-every 3 --balance auto --speed equal --out ends.npy";
    let words: Vec<&str> = words.split(' ').chain(["--report", "run.json"]).collect();
    let running = start(&mut command(METACHARE, folder, &words));
    assert_eq!(running.nodes(2).len(), 2);
    wait_for_work(folder);
    let name = run(METACHARE, folder, &["watch", "--list"]).stdout;
    let nodes = |what: &str, node: &str, file: &str| {
        let file: &[&str] = if file.is_empty() { &[] } else { &["--nodes", file] };
        run(METACHARE, folder, &[&["nodes", what, name.trim(), node], file].concat())
    };
    let twice = nodes("add", "a", "more.toml");
    assert_eq!(
        twice.last_error(),
        "error: this run has a node \"a\" already; give the new one another `name`"
    );
    let unknown = nodes("add", "x", "more.toml");
    assert_eq!(unknown.last_error(), "error: more.toml has no node \"x\"; there are c, a", "{unknown:?}");
    let unstarted = nodes("add", "d", "none.toml");
    assert_eq!(unstarted.code, 69, "{unstarted:?}");
    assert!(
        unstarted.last_error().starts_with("error: node \"d\" on localhost was not started"),
        "{unstarted:?}"
    );
    let joined = nodes("add", "c", "more.toml");
    assert!(
        joined.code == 0 && joined.stdout.starts_with("c has joined with 2 PEs, speed 2.00: "),
        "{joined:?}"
    );
    // The balancer gives the new node chares, and so it has some to give back when it leaves.
    assert_eq!(nodes("drain", "b", "").code, 0);
    let back = nodes("add", "b", "");
    assert!(back.stdout.starts_with("b has joined with 1 PE, "), "{back:?}");
    let drained = nodes("drain", "c", "");
    assert!(drained.stdout.starts_with("c has left: "), "{drained:?}");
    let done = running.done();
    assert_eq!(done.code, 0, "{done:?}");
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("run.json")).unwrap()).unwrap();
    let nodes = report["nodes"].as_array().unwrap();
    let of = |key: &str| nodes.iter().map(|node| node[key].is_number()).collect::<Vec<_>>();
    assert_eq!(
        (of("joined_s"), of("left_s")),
        (vec![false, false, true, true], vec![false, true, true, false])
    );
    // Those that shared a node's cores for a while count as fast as they are on the nodes that they came with; where they
    // are guests nobody says how fast they are.
    let pes = nodes.iter().flat_map(|node| node["pes"].as_array().unwrap());
    let speeds: Vec<f64> = pes.filter_map(|pe| pe["speed"].as_f64()).filter(|speed| *speed > 0.0).collect();
    assert_eq!(speeds, [1.0; 5], "{report}");
    let moved = fs::read(folder.join("ends.npy")).unwrap();
    fs::remove_file(folder.join("ends.npy")).unwrap();
    assert_eq!(run(METACHARE, folder, &words).code, 0);
    assert!(fs::read(folder.join("ends.npy")).unwrap() == moved, "other bits after nodes have joined");
}

/// Chares that were on a node which had joined are in the checkpoint, and go on wherever the run does.
#[test]
fn a_run_that_was_saved_after_a_node_had_joined_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1, 1]);
    write(folder, "more.toml", "[[node]]\nname = \"c\"\npes = 2\n");
    let words =
        "run imbalance --chares 24 --steps 4800 --work 20000 --reduce-every 3 --balance rotate --speed equal";
    let words: Vec<&str> = words.split(' ').chain(["--out", "ends.npy"]).collect();
    assert_eq!(run(METACHARE, folder, &words).code, 0);
    let whole = fs::read(folder.join("ends.npy")).unwrap();
    fs::remove_file(folder.join("ends.npy")).unwrap();
    let saving = [&words[..], &["--checkpoint", "saved", "--checkpoint-every", "1h"]].concat();
    let running = start(&mut command(METACHARE, folder, &saving));
    wait_for_work(folder);
    let name = run(METACHARE, folder, &["watch", "--list"]).stdout;
    let joined = run(METACHARE, folder, &["nodes", "add", name.trim(), "c", "--nodes", "more.toml"]);
    assert_eq!(joined.code, 0, "{joined:?}");
    // Some chares are there as soon as the balancer has sent them on.
    let records = || run("python3", folder, &[READER, "saved"]).stdout;
    wait_for("chares on the node that has joined", || {
        assert_eq!(run(METACHARE, folder, &["checkpoint", name.trim()]).code, 0);
        records().contains(r#""kind": "chare", "pe": 2"#).then_some(())
    });
    assert_eq!(run(METACHARE, folder, &["checkpoint", name.trim(), "--stop"]).code, 0);
    running.done();
    let shown = run(METACHARE, folder, &["checkpoint", "show", "saved"]).stdout;
    assert!(shown.contains("\nPEs         4\n") && shown.contains("\nnode        c: "), "{shown}");
    let done = run(METACHARE, folder, &["restart", "saved", "--speed", "equal"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(fs::read(folder.join("ends.npy")).unwrap() == whole, "other bits");
}

/// The host of the node that is to join does not answer.
#[test]
fn a_run_is_saved_and_stopped_while_a_node_that_is_to_join_starts() {
    let bed = Bed::new();
    let folder = bed.path();
    local_nodes(folder, &[1, 1]);
    write(folder, "more.toml", &bed.node("hangs", ""));
    let words = "run imbalance --chares 24 --steps 100000 --work 20000 --balance rotate --speed equal";
    let words: Vec<&str> = words.split(' ').chain(["--checkpoint", "saved"]).collect();
    let running = start(&mut bed.command(METACHARE, &words));
    wait_for_work(folder);
    let name = run(METACHARE, folder, &["watch", "--list"]).stdout;
    let adding = ["nodes", "add", name.trim(), "hangs", "--nodes", "more.toml"];
    let adding = start(&mut bed.command(METACHARE, &adding));
    wait_for("the host to be asked", || fs::read(folder.join("connections")).ok());
    let saved = run(METACHARE, folder, &["checkpoint", name.trim()]);
    assert!(saved.code == 0 && saved.stdout.starts_with("checkpoint 1: "), "{saved:?}");
    assert!(is_alive(adding.pid()), "the checkpoint waited for the node");
    let stopped = run(METACHARE, folder, &["checkpoint", name.trim(), "--stop"]);
    assert!(stopped.code == 0 && stopped.stdout.starts_with("checkpoint 2: "), "{stopped:?}");
    let (done, added) = (running.done(), adding.done());
    assert!(done.stderr.contains("ended after checkpoint 2, as was asked for"), "{done:?}");
    assert!(added.code != 0 && added.stderr.lines().count() == 1, "{added:?}");
    bed.assert_nothing_left();
}

/// While the PEs of the run do not yet stand still: until then nothing has been given to it.
#[test]
fn who_dies_before_it_has_joined_is_refused_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1, 1]);
    write(folder, "more.toml", "[[node]]\nname = \"c\"\npes = 1\n");
    let words = ["run", "sleeping", "--balance", "greedy", "--speed", "equal"];
    let running = start(&mut command(MISBEHAVING, folder, &words));
    let first = running.nodes(2);
    let name = wait_for("the run", || {
        let listed = run(MISBEHAVING, folder, &["watch", "--list"]).stdout;
        (!listed.trim().is_empty()).then(|| listed.trim().to_string())
    });
    let adding = ["nodes", "add", &name, "c", "--nodes", "more.toml"];
    let adding = start(&mut command(MISBEHAVING, folder, &adding));
    let new = running.nodes(3).into_iter().find(|node| !first.contains(node)).unwrap();
    // It has been reached by then, as a rule; if not, it is refused sooner.
    std::thread::sleep(std::time::Duration::from_secs(1));
    signal(new, "KILL");
    let refused = adding.done();
    assert_eq!(refused.code, 69, "{refused:?}");
    assert!(refused.last_error().starts_with("error: node \"c\""), "{refused:?}");
    let done = running.done();
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn the_driver_goes_on_while_the_process_of_a_node_starts() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1, 1]);
    let called = folder.join("called");
    let slow = format!("#!/bin/sh\ntouch {called:?}\nsleep 4\nexec {MISBEHAVING} \"$@\"\n");
    let slow = write_program(folder, "slow", &slow);
    write(folder, "more.toml", &format!("[[node]]\nname = \"c\"\npes = 1\nbinary = {slow:?}\n"));
    let words = ["run", "asking", "--seconds", "12", "--balance", "greedy", "--speed", "equal"];
    let running = start(&mut command(MISBEHAVING, folder, &words));
    wait_for_work(folder);
    let name = run(MISBEHAVING, folder, &["watch", "--list"]).stdout;
    let adding = ["nodes", "add", name.trim(), "c", "--nodes", "more.toml"];
    let adding = start(&mut command(MISBEHAVING, folder, &adding));
    wait_for("the node to be started", || called.exists().then_some(()));
    // What is asked meanwhile waits for its turn.
    let drained = run(MISBEHAVING, folder, &["nodes", "drain", name.trim(), "c"]);
    assert!(drained.code == 0 && drained.stdout.starts_with("c has left: "), "{drained:?}");
    let joined = adding.done();
    assert!(joined.code == 0 && joined.stdout.starts_with("c has joined with 1 PE, "), "{joined:?}");
    let done = running.done();
    let most = after(&done.stdout, "waited ").unwrap_or_else(|| panic!("{done:?}"));
    let most: u64 = most.parse().unwrap();
    assert!(most < 3000, "the driver waited for {most} ms: {done:?}");
}
