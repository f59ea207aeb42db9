//! Whole runs inside one process.

use super::arguments::{self, Imbalance};
use super::{add_to, drive};
use chares::{InProcess, Program, RunError};
use clap::{Args as _, Command, FromArgMatches as _};
use command::CommandLine;

pub(super) fn of(words: &[&str]) -> Imbalance {
    let command = Imbalance::augment_args(Command::new("imbalance"));
    Imbalance::from_arg_matches(&command.get_matches_from([&["imbalance"], words].concat())).unwrap()
}

fn run(mix: &InProcess, words: &[&str]) -> Result<(), RunError> {
    let imbalance = of(words);
    arguments::check(&imbalance).unwrap();
    add_to(CommandLine::new(Program::new("test", "1")))
        .into_program()
        .run_in_process(mix, |main| drive::drive(main, imbalance.completed()))
}

fn mixes() -> [InProcess; 4] {
    [
        InProcess::new(&[1]),
        InProcess::new(&[2, 1]).always_pup(),
        InProcess::new(&[1, 1, 2]).speeds(&[1.0, 0.3, 0.55, 0.01]).wander(3),
        InProcess::new(&[2, 1]).always_pup().wander(4),
    ]
}

/// Whatever the machines, and though chares move: every bit as computed serially.
#[test]
fn every_mix_computes_what_one_thread_does() {
    let works: [&[&str]; 8] = [
        &["--chares", "1", "--steps", "5"],
        &["--chares", "2", "--steps", "9", "--reduce-every", "1", "--barrier", "--state", "0"],
        &["--chares", "3", "--steps", "1", "--state", "7"],
        &["--chares", "17", "--steps", "40", "--pattern", "linear", "--state", "64"],
        &["--chares", "40", "--steps", "30", "--pattern", "hot-spot", "--reduce-every", "7", "--barrier"],
        &["--chares", "24", "--steps", "90", "--reduce-every", "4", "--state", "20KiB"],
        &["--chares", "12", "--steps", "50", "--pattern", "walk", "--seed", "9", "--reduce-every", "100"],
        &["--chares", "30", "--steps", "60", "--pattern", "slots", "--reduce-every", "20", "--barrier"],
    ];
    for words in works {
        for mix in mixes() {
            let done = run(&mix, &[words, &["--work", "50", "--verify"]].concat());
            assert!(done.is_ok(), "{words:?} on {mix:?}: {done:?}");
        }
    }
}

/// A task that is found where it may not go ends the run: none is, though balancers would like to move all.
#[test]
fn tasks_with_few_destinations_keep_to_them_under_any_balancer() {
    for balancer in ["rotate", "diffusion", "greedy", "auto"] {
        let mix = InProcess::new(&[2, 1, 1]).balance(balancer);
        let words = ["--pattern", "slots", "--chares", "48", "--steps", "150", "--seconds", "3", "--verify"];
        let done = run(&mix, &words);
        assert!(done.is_ok(), "{balancer}: {done:?}");
    }
}
