//! A program outside the workspace that depends on the model alone, by path: it compiles, it pulls in nothing of the command
//! line, and it is right, for which it is built as a program of the tests too, as that costs nearly nothing.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use harness::{after, start, write};
use std::f64::consts::PI;
use std::path::Path;
use std::process::Command;

/// What a program without a command line has no use for.
const UNWANTED: [&str; 6] =
    ["clap", "ratatui", "crossterm", "png", "tracing-subscriber", "metachare-command"];

/// What a command of Cargo says about the program, as its user would have it: in a folder of its own, with the versions of
/// libraries that are there.
fn cargo(words: &[&str]) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(here.join(path)).unwrap();
    let chares = here.parent().unwrap().join("chares").display().to_string();
    let manifest = read("outside/heat/Cargo.toml").replace("../../../chares", &chares);
    assert!(manifest.contains(&chares), "{manifest}");
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "Cargo.toml", &manifest);
    write(folder.path(), "Cargo.lock", &read("../Cargo.lock"));
    std::fs::create_dir(folder.path().join("src")).unwrap();
    write(&folder.path().join("src"), "main.rs", &read("outside/heat/src/main.rs"));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(words).arg("--offline").current_dir(folder.path());
    // What was built is kept for the next time.
    command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_program_on_the_model_alone_compiles_and_needs_no_command_line() {
    let tree = cargo(&["tree", "--prefix", "none"]);
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"metachare-chares") && names.contains(&"quinn"), "{tree}");
    assert!(!names.iter().any(|name| UNWANTED.contains(name)), "{tree}");
    cargo(&["check"]);
}

#[test]
fn the_heat_that_is_left_in_a_plate_is_what_mathematics_says() {
    let done = start(&mut Command::new(env!("CARGO_BIN_EXE_heat"))).done();
    assert_eq!(done.code, 0, "{done:?}");
    // A hump of the sine is an eigenvector of the scheme.
    let (side, flow) = (48u32, 0.2);
    let angle = PI / f64::from(side + 1);
    let at_first = (1..=side).map(|place| (angle * f64::from(place)).sin()).sum::<f64>().powi(2);
    let factor = 1.0 - 8.0 * flow * (angle / 2.0).sin().powi(2);
    for steps in [50, 100, 150, 200] {
        let heat: f64 = after(&done.stdout, &format!("heat after {steps} steps:")).unwrap().parse().unwrap();
        let exact = at_first * factor.powi(steps);
        assert!((heat / exact - 1.0).abs() < 1e-12, "after {steps} steps {heat:e}, not {exact:e}");
    }
}
