//! A host or a link becomes slow, and whoever looks at the run is told which.

use super::applications::Applications;
use harness::{signal, wait_for};

/// What the report of a recording says of lost time, without others that want the cores of the other hosts: tests run side by side.
fn lost(bed: &Applications, recording: &str, culprit: &str) -> Vec<String> {
    let said = bed.says(&format!("report {recording}"));
    let lines = said.lines().skip_while(|line| !line.starts_with("lost, %")).skip(1);
    let lines = lines.take_while(|line| !line.is_empty()).map(str::to_owned);
    let of_other = |line: &String| line.contains("% of its time the PEs of") && !line.contains(culprit);
    lines.filter(|line| !of_other(line)).collect()
}

#[test]
fn a_host_that_falls_to_a_tenth_and_a_slow_link_are_named_by_window_report_and_replay() {
    let Some(bed) = Applications::new("l", &["a", "b", "c"]) else { return };
    let running = bed.start(3, "imbalance --seconds 120 --speed measured --record run.mcr --report run.json");
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
    let why = "messages: PE 0 (a)";
    wait_for("the window to say whom others wait for", || {
        bed.says("watch --once --screen why").contains(why).then_some(())
    });
    signal(running.pid(), "INT");
    running.done();
    bed.bed.act(&["slow", "a", "full"]);
    let report = bed.read_json("run.json");
    let slowdowns = report["slowdowns"].as_array().expect("a list");
    let named = slowdowns.iter().find(|one| one["node"] == "a" && one["delivered"].as_f64() < Some(0.4));
    assert!(named.is_some_and(|one| one["of"] == "speed"), "{report}");
    // The log: another host may be the slowest at the end, on a machine that has other work.
    let replayed = bed.says("replay run.mcr --once --screen log");
    assert!(replayed.contains(begin), "{replayed}");
    let lost_to = lost(&bed, "run.mcr", "PEs of a");
    // Whichever took more: what it could not do, or what the others waited for it.
    let is_it = |line: &String| {
        let is_host = line.contains("the PEs of a waited") || line.contains("others waited for PE 0 of a");
        is_host && line.contains("; a deliver") && line.contains(" of its measured speed ")
    };
    assert!(lost_to.first().is_some_and(is_it), "{lost_to:#?}");

    bed.bed.act(&["netem", "c", "delay=40ms"]);
    let link = "a message between c and others is on its way for ";
    // Where other work stops all hosts for seconds, that is what a run waited for: then it is run again.
    let mut said = String::new();
    let is_named = (0..3).any(|_| {
        let done = bed.start(3, "imbalance --chares 24 --steps 25 --work 2000 --record link.mcr").done();
        assert_eq!(done.code, 0, "{done:?}");
        let lost_to = lost(&bed, "link.mcr", "messages");
        let window = bed.says("replay link.mcr --once --screen why --size 160x40");
        let network = window.lines().find(|line| line.starts_with(" network:")).unwrap_or_default();
        said = format!("{lost_to:#?}\n{window}");
        lost_to.first().is_some_and(|line| line.contains(link)) && network.contains(link)
    });
    assert!(is_named, "{said}");
    bed.assert_nothing_left();
}
