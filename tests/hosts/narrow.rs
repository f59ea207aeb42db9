//! All applications over lines of a few megabits a second.

use super::applications::{ALL, Applications};
use harness::let_pass;
use std::time::Duration;

#[test]
fn applications_end_right_over_narrow_lines() {
    let Some(bed) = Applications::new("w", &["a", "b", "c", "d"]) else { return };
    // Each application at one rate, all rates with several counts of hosts.
    let lines = ["4mbit", "8mbit", "2mbit", "20mbit"];
    for (at, words) in ALL.iter().enumerate() {
        let (rate, count) = (format!("rate={}", lines[at % lines.len()]), 2 + at % 3);
        bed.netem(&[&rate]);
        let done = bed.start(count, words).done();
        assert_eq!(done.code, 0, "{words}, {count} hosts, {rate}: {done:?}");
    }
    // What was taken for dead: much from all to all, over connections that come up while others fill the line.
    bed.netem(&["rate=4mbit"]);
    let done = bed.start(3, "matmul --n 900").done();
    assert_eq!(done.code, 0, "{done:?}");
    // A fresh line: one whose rate is lowered while it holds long packets never lets them out.
    bed.netem(&["none"]);
    let running = bed.start(3, "matmul --n 1400");
    let_pass(Duration::from_millis(1500));
    bed.netem(&["rate=10mbit"]);
    let done = running.done();
    assert_eq!(done.code, 0, "a line that became narrow: {done:?}");
}
