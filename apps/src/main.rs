//! The `metachare` command: applications on chares over mixed machines.

use chares::Program;
use std::process::ExitCode;

fn main() -> ExitCode {
    let program = Program::new("metachare", env!("CARGO_PKG_VERSION"))
        .about("One program over whatever machines you can reach, each with the share that its speed earns")
        .demo("matmul", &["--n", "10752", "--q", "12", "--dtype", "f32", "--verify", "--built-in-nodes"]);
    apps::bench::add_to(apps::netbench::add_to(apps::matmul::add_to(program))).main()
}
