//! The `metachare` command: applications on chares over mixed machines.

use command::prelude::*;
use std::process::ExitCode;

/// A message sent to another PE is memory that one thread takes and another gives back: under musl's one lock that took
/// twice as long.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let program = CommandLine::new(Program::new("metachare", env!("CARGO_PKG_VERSION")))
        .about("One program over whatever machines you can reach, each with the share that its speed earns")
        .demo("matmul", &["--seconds", "5", "--q", "12", "--dtype", "f32", "--verify", "--built-in-nodes"])
        .network("netbench", &["--links-only", "--sizes", "1,1MiB", "--repeats", "11", "--warm-up", "0.1"]);
    let program = apps::matmul::add_to(program);
    let program = apps::gauss::add_to(program);
    let program = apps::jacobi::add_to(program);
    let program = apps::apsp::add_to(program);
    let program = apps::statics::add_to(program);
    let program = apps::mis::add_to(program);
    let program = apps::fem::add_to(program);
    let program = apps::pic::add_to(program);
    let program = apps::imbalance::add_to(program);
    let program = apps::netbench::add_to(program);
    let program = apps::bench::add_to(program);
    apps::manual::add_to(program).main()
}
