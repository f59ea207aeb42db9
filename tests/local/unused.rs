//! Options that say nothing beside the others are refused before anything is started.

use super::{METACHARE, run};
use harness::local_nodes;

#[test]
fn an_option_that_would_not_be_used_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[1]);
    let cases = [
        ("matmul --grain 4", "--grain: only the algorithms conventional and fox have a grain; leave it out"),
        (
            "matmul --deterministic --kernel plain --algorithm fox --grain 4",
            "--kernel: --deterministic has its own; leave it out",
        ),
        (
            "matmul --n 90 --b b.npy",
            "--b: a right factor from a file goes with a left one from a file, which --a names; leave it out",
        ),
        (
            "jacobi --n 90 --b b.npy",
            "--b: right-hand sides from a file go with coefficients from one, which --a names; leave it out",
        ),
        (
            "gauss --seed 2 --b b.npy",
            "--b: right-hand sides from a file go with coefficients from one, which --a names; leave it out",
        ),
        (
            "apsp --n 90 --degree 3",
            "--degree: only graphs of the family random have a degree to be chosen, and this is of road; leave it out",
        ),
        (
            "fem --preconditioner ilu --coarsest 9",
            "--coarsest: only multigrid has a coarsest mesh, and the preconditioner is ilu; leave it out",
        ),
        (
            "statics --max-pressure 1",
            "--max-pressure: no axis of the box is stretched, which --box says; leave it out",
        ),
        (
            "statics --study vacancy --shake 0.1",
            "--shake: a study makes the crystals that it needs by itself; leave it out",
        ),
        (
            "statics --study elastic --size 9",
            "--size: a study makes the crystals that it needs by itself; leave it out",
        ),
        (
            "statics --study pressure --box xyz",
            "--box: this study stretches nothing and relaxes nothing; leave it out",
        ),
    ];
    for (words, sentence) in cases {
        let words: Vec<&str> = words.split(' ').collect();
        for first in ["run", "plan"] {
            let done = run(METACHARE, folder, &[&[first][..], &words].concat());
            assert_eq!(
                (done.code, done.last_error()),
                (65, format!("error: {sentence}").as_str()),
                "{words:?}: {done:?}"
            );
        }
    }
    // What the file of a run says is for other runs, too.
    let words = "run statics --study vacancy --size 3 --max-force 1e-4";
    let done = run(METACHARE, folder, &words.split(' ').collect::<Vec<_>>());
    assert_eq!(done.code, 0, "{done:?}");
}
