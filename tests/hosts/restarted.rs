//! Runs that lose a host, and go on from their last checkpoint.

use super::applications::Applications;
use harness::wait_for;
use std::fs;

/// Over lines that delay, on two hosts in place of three: to the same bits.
#[test]
fn a_run_that_has_lost_a_host_goes_on_without_it() {
    let Some(bed) = Applications::new("g", &["a", "b", "c"]) else { return };
    bed.netem(&["delay=5ms", "jitter=1ms"]);
    let words = "statics --size 10 --max-force 1e-4 --shake 0.05 --xyz end.xyz";
    let whole = bed.start(3, words).done();
    assert_eq!(whole.code, 0, "{whole:?}");
    let result = fs::read(bed.path("end.xyz")).unwrap();
    fs::remove_file(bed.path("end.xyz")).unwrap();
    let running = bed.start(3, &format!("{words} --checkpoint saved --checkpoint-every 0.1"));
    wait_for("two checkpoints", || bed.path("saved/generation-000002/COMMIT").exists().then_some(()));
    bed.bed.act(&["kill", "c"]);
    let lost = running.done();
    assert_eq!(lost.code, 69, "{lost:?}");
    assert!(lost.stderr.contains("restart saved` goes on from checkpoint"), "{lost:?}");
    let done = bed.restart(2, "saved --checkpoint others");
    assert_eq!(done.code, 0, "{done:?}");
    assert!(fs::read(bed.path("end.xyz")).unwrap() == result, "other bits without the host");
    bed.assert_nothing_left();
}
