//! Whole runs inside one process, and the physics of those of one thread.

use super::arguments::Pic;
use super::field::{Solver, Wave};
use super::figures::Figures;
use super::particles::Pushing;
use super::problem::{Problem, Scheme, Strip};
use super::region::around;
use super::serial::Serial;
use super::{add_to, drive, theory};
use chares::{InProcess, Program, RunError};
use clap::{Args as _, Command, FromArgMatches as _};
use command::CommandLine;
use std::f64::consts::TAU;
use std::path::Path;

fn of(words: &[&str]) -> Pic {
    let command = Pic::augment_args(Command::new("pic"));
    Pic::from_arg_matches(&command.get_matches_from([&["pic"], words].concat())).unwrap()
}

fn problem(words: &[&str]) -> Problem {
    let mut problem = of(words).problem().unwrap();
    problem.bounds = vec![0, problem.particles()];
    problem
}

fn run(mix: &InProcess, words: &[&str]) -> Result<(), RunError> {
    let pic = of(words).completed()?;
    add_to(CommandLine::new(Program::new("test", "1"))).into_program().run_in_process(mix, |main| drive::drive(main, pic))
}

/// What a run writes.
fn written(mix: &InProcess, folder: &Path, words: &[&str]) -> [Vec<u8>; 4] {
    let names = ["t.csv", "p.npy", "s.npy", "d.npy"].map(|name| folder.join(name).to_str().unwrap().to_string());
    let options = ["--trace", "--out", "--phase-space", "--density"];
    let files: Vec<&str> = options.into_iter().zip(&names).flat_map(|(option, name)| [option, name]).collect();
    run(mix, &[words, &["--verify"], &files].concat()).unwrap();
    names.map(|name| std::fs::read(name).unwrap())
}

/// Whoever has the particles and the grid, on whatever machines, and though chares move: the same bits.
#[test]
fn schemes_and_mixes_compute_what_one_thread_does() {
    let folder = tempfile::tempdir().unwrap();
    // The fastest go through some columns in a step.
    let works: [&[&str]; 3] = [
        &["--particles", "3000", "--cells", "24x6", "--steps", "30", "--thermal", "0.02", "--dt", "0.2"],
        &["--setup", "landau", "--particles", "999", "--cells", "9x5", "--steps", "12", "--length", "3", "--dt", "0.3"],
        &["--setup", "two-streams", "--particles", "2000", "--cells", "12x8", "--steps", "26", "--length", "1,2"],
    ];
    for words in works {
        let mut all = Vec::new();
        for scheme in [&["--scheme", "fixed"][..], &["--scheme", "regions"], &["--grid", "distributed"], &[]] {
            let mixes = [
                (InProcess::new(&[1]), "1"),
                (InProcess::new(&[2, 1]).always_pup(), "2"),
                (InProcess::new(&[1, 1, 2]).speeds(&[1.0, 0.3, 0.55, 0.05]).wander(3), "3"),
            ];
            for (mix, regions) in mixes {
                all.push(written(&mix, folder.path(), &[words, scheme, &["--regions", regions]].concat()));
            }
        }
        assert!(all.iter().all(|other| *other == all[0]), "{words:?}");
    }
}
