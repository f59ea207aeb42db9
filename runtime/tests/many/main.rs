//! As many nodes as a small cluster has, each a process of this machine: all join, answer and end.
//!
//! This executable is launcher and node, so it does without the usual harness. `many COUNT` starts another count of nodes.

use runtime::config::ClusterConfig;
use runtime::job::{Job, JobPlan, node_process};
use runtime::launch::LaunchOptions;
use runtime::monitor::Detail;
use runtime::node::DriverEvent;
use runtime::object::ProgramTable;
use std::collections::BTreeSet;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

const NODES: usize = 512;
/// No wait is longer.
const LIMIT: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let program = ProgramTable { name: "many".into(), ..ProgramTable::default() };
    let argument = std::env::args().nth(1).unwrap_or_default();
    if argument == "__node" {
        return node_process(program);
    }
    // Other arguments are for the harness.
    let count = argument.parse().unwrap_or(NODES);
    let start = Instant::now();
    match run(program, count) {
        Ok(()) => {
            println!(
                "{count} nodes joined, answered and ended within {:.1} s",
                start.elapsed().as_secs_f64()
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(program: ProgramTable, count: usize) -> Result<(), Box<dyn Error>> {
    let node = |n: usize| format!("[[node]]\nname = \"n{n}\"\npes = 1\n");
    let nodes: String = (1..=count).map(node).collect();
    let mut job = Job::start(JobPlan {
        name: None,
        program: Arc::new(program),
        app: "many".into(),
        arguments: Vec::new(),
        kernel_arguments: Vec::new(),
        config: ClusterConfig::parse(&nodes, "nodes")?,
        launch: LaunchOptions::default(),
        always_pup: false,
        wander: None,
        detail: Detail::Single,
        begun: Vec::new(),
        balance: None,
        keeps_loads: false,
        timeout: Some(LIMIT),
    })?;
    let events = job.take_events().ok_or("no events")?;
    job.node().ask_all(7);
    let mut answered = BTreeSet::new();
    while answered.len() < count {
        match events.recv_timeout(LIMIT)? {
            DriverEvent::Answer(7, snapshot) => drop(answered.insert(snapshot.node)),
            DriverEvent::Failed(failure) => return Err(failure.into()),
            _ => {}
        }
    }
    job.finish().map_or(Ok(()), |failure| Err(failure.into()))
}
