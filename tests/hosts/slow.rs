//! A host becomes slow in mid-run, and whoever looks at the run is told which.

use super::applications::Applications;
use harness::{signal, wait_for};

#[test]
fn a_host_that_falls_to_a_tenth_is_named_by_window_report_and_replay() {
    let Some(bed) = Applications::new("l", &["a", "b"]) else { return };
    let running = bed.start(2, "imbalance --seconds 120 --speed measured --record run.mcr --report run.json");
    bed.wait_for_work();
    wait_for("the speeds", || bed.says("watch --once").contains("x fastest").then_some(()));
    bed.bed.act(&["slow", "a", "0.1"]);
    let begin = " a delivers 0.";
    // It may have been slow before, on a machine that has other work, but not so.
    let is_named =
        |line: &&str| ["0", "1", "2", "3"].iter().any(|tenth| line.starts_with(&format!("{begin}{tenth}")));
    let said = wait_for("the window to name it", || {
        bed.says("watch --once").lines().find(is_named).map(str::to_string)
    });
    assert!(
        said.contains(" of its measured speed since ") && said.contains("it waits for its cores"),
        "{said}"
    );
    bed.bed.act(&["slow", "a", "full"]);
    signal(running.pid(), "INT");
    running.done();
    let report = bed.read_json("run.json");
    let slowdowns = report["slowdowns"].as_array().expect("a list");
    let named = slowdowns.iter().find(|one| one["node"] == "a" && one["delivered"].as_f64() < Some(0.4));
    assert!(named.is_some_and(|one| one["of"] == "speed"), "{report}");
    let replayed = bed.says("replay run.mcr --once");
    assert!(replayed.contains(begin), "{replayed}");
    bed.assert_nothing_left();
}
