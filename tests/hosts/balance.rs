//! Chares leave a host that has become slow.

use super::applications::Applications;

#[test]
fn chares_leave_a_host_that_becomes_slow_and_the_result_is_right() {
    let Some(bed) = Applications::new("u", &["a", "b"]) else { return };
    for words in [
        "imbalance --seconds 6 --verify --balance auto",
        "imbalance --seconds 4 --verify --balance greedy-refine",
    ] {
        let running = bed.start(2, &format!("{words} --report report.json"));
        bed.wait_for_work();
        bed.bed.act(&["slow", "a", "0.2"]);
        let done = running.done();
        bed.bed.act(&["slow", "a", "full"]);
        assert_eq!(done.code, 0, "{words}: {done:?}");
        let report = bed.read_json("report.json");
        assert_eq!(report["verified"], true, "{words}");
        assert!(report["balanced"].as_array().is_some_and(|all| !all.is_empty()), "{words}: {report}");
        let left = &report["nodes"][0]["pes"][0]["whole"]["migrations"];
        assert!(left.as_u64() > Some(0), "{words}: {left} chares left the slow host");
    }
    bed.assert_nothing_left();
}
