//! Starts runs of this program for each set-up and reads their figures from their reports: everything goes the way
//! that it goes for any application.

use super::catalogue::{Arrangement, Operation};
use super::measure::{FACT, Figures, OperationKind};
use super::{Options, kernel, mill};
use chares::RunError;
use chares::failure::{Failure, Kind};
use serde_json::Value;
use std::cell::Cell;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// No run takes longer, seconds.
const TIME_LIMIT: &str = "900";
/// Stretches of an operation are of so many runs, because the cores that threads come to lie on differ from run to run
/// more than stretches of one run do.
const RUNS: usize = 3;
/// Runs whose processor time is compared take turns so often for each figure. What else a machine does makes some of them
/// longer and none shorter, so the shortest of each kind are compared.
const TURNS: usize = 8;

/// What a run has found out.
struct RunResult {
    figures: Figures,
    link: Option<&'static str>,
    /// From the command to the driver's first line, by its own report.
    startup_s: f64,
    /// From outside, the process's start and end included.
    whole_s: f64,
    /// Processor time of all its processes.
    used_ns: f64,
}

/// Figures of the stretches of all these operations, which are of one set-up, and what carried messages from the first to
/// the second node, if there is one.
///
/// # Errors
/// If a run fails.
pub(super) fn measure(
    setup: Arrangement,
    operations: &[&Operation],
    options: &Options,
) -> Result<(Figures, Option<&'static str>), RunError> {
    let link = Cell::new(None);
    let run = |pes: &[u32], part, repeats| {
        let nodes = options.nodes.as_deref().map_or_else(|| Nodes::Local(pes), Nodes::File);
        let is_quic = setup == Arrangement::AllCoresQuic;
        let request = Request { part, operations, repeats, is_brief: options.brief, is_quic, work: None };
        let found = run(&nodes, request);
        found.inspect(|found| link.set(found.link)).map_err(|Failure { kind, sentence }| {
            RunError::Ended(Failure::new(kind, format!("{setup} cannot be measured: {sentence}")))
        })
    };
    let repeats = if options.brief { 1 } else { options.repeats };
    let pes = setup.pes(cores());
    let each_in_a_run = std::iter::repeat_n(1, repeats);
    let figures = match setup {
        Arrangement::Monitor => Ok(run(&pes, OperationKind::Monitor, repeats)?.figures),
        Arrangement::Measuring => measuring(&Nodes::Local(&pes), operations, repeats, options.brief)
            .map_err(|Failure { kind, sentence }| RunError::Ended(Failure::new(kind, sentence))),
        Arrangement::Core => Ok(kernel::measure(repeats, options.brief)),
        Arrangement::Memory => {
            gathered(each_in_a_run.map(|one| Ok(run(&pes, OperationKind::Memory, one)?.figures)))
        }
        Arrangement::Start => {
            // The first reads the executable from disk.
            if !options.brief {
                run(&pes, OperationKind::Nothing, 1)?;
            }
            gathered(each_in_a_run.map(|one| {
                let found = run(&pes, OperationKind::Nothing, one)?;
                Ok([("start/8/ready", found.startup_s), ("start/8/run", found.whole_s)]
                    .map(|(key, seconds)| (key.to_string(), vec![seconds * 1e3]))
                    .into())
            }))
        }
        Arrangement::Default
        | Arrangement::AllCores
        | Arrangement::AllCoresQuic
        | Arrangement::OnePe
        | Arrangement::TwoPes
        | Arrangement::TwoNodes
        | Arrangement::Nodes(_) => {
            let runs = RUNS.min(repeats);
            let parts = (0..runs).map(|run| (repeats + run) / runs);
            // Of the first no one says how many PEs it has.
            let pes = if setup == Arrangement::Default { &[0][..] } else { &pes };
            gathered(parts.map(|part| Ok(run(pes, OperationKind::Paths, part)?.figures)))
        }
    };
    Ok((figures?, link.get()))
}

/// What runs take that measure themselves, as all do by default, of what they take that do not.
fn measuring(
    nodes: &Nodes<'_>,
    operations: &[&Operation],
    repeats: usize,
    is_brief: bool,
) -> Result<Figures, Failure> {
    let with = |work| {
        let part = OperationKind::Work;
        run(nodes, Request { part, operations, repeats: 1, is_brief, is_quic: false, work })
    };
    let found = with(None)?;
    let steps = found.figures.get(mill::STEPS).and_then(|steps| steps.first()).copied().unwrap_or(1.0) as u64;
    let used_ns = |measures| with(Some(Work { steps, measures })).map(|found| found.used_ns);
    let mut figures = Vec::new();
    for _ in 0..repeats {
        let mut least = [f64::INFINITY; 2];
        for _ in 0..if is_brief { 1 } else { TURNS } {
            for (least, measures) in least.iter_mut().zip([true, false]) {
                *least = least.min(used_ns(measures)?);
            }
        }
        let [measured, without] = least;
        figures.push(100.0 * measured / without);
    }
    Ok(operations.iter().map(|operation| (operation.key.clone(), figures.clone())).collect())
}

/// Figures of several runs.
fn gathered(runs: impl Iterator<Item = Result<Figures, RunError>>) -> Result<Figures, RunError> {
    let mut all = Figures::new();
    for figures in runs {
        for (key, figures) in figures? {
            all.entry(key).or_default().extend(figures);
        }
    }
    Ok(all)
}

/// What a run is to do.
struct Request<'a> {
    part: OperationKind,
    operations: &'a [&'a Operation],
    /// Stretches of each operation.
    repeats: usize,
    is_brief: bool,
    /// No memory is to be shared.
    is_quic: bool,
    /// What is to be worked, if it is said.
    work: Option<Work>,
}

/// So many steps, measured or not.
struct Work {
    steps: u64,
    measures: bool,
}

/// Where a run takes place.
enum Nodes<'a> {
    /// Nodes of this machine, with that many PEs each; 0 says nothing.
    Local(&'a [u32]),
    /// Those of a nodes file.
    File(&'a Path),
}

/// Runs the application with a nodes file on its standard input and a report from its standard output, so that nothing
/// is left behind whatever happens.
///
/// # Errors
/// Its exit code and last words.
fn run(nodes: &Nodes<'_>, request: Request<'_>) -> Result<RunResult, Failure> {
    let keys: Vec<&str> = request.operations.iter().map(|operation| operation.key.as_str()).collect();
    let said = |error: io::Error| Failure::new(Kind::Failed, error);
    let mut command = Command::new(std::env::current_exe().map_err(said)?);
    command.args(["run", super::NAME, "--quiet", "--report", "/dev/stdout", "--timeout", TIME_LIMIT]);
    command.args(["--part", request.part.name(), "--operations", &keys.join(",")]);
    command.args(["--repeats", &request.repeats.to_string()]);
    if request.is_brief {
        command.arg("--brief");
    }
    if request.is_quic {
        command.args(["--transport", "quic"]);
    }
    if let Some(Work { steps, measures }) = request.work {
        command.args(["--steps", &steps.to_string()]);
        command.args((!measures).then_some("--no-measuring"));
    }
    let text = match nodes {
        Nodes::Local(pes) => {
            command.args(["--nodes", "/dev/stdin"]);
            let node = |(at, pes): (usize, &u32)| {
                let said = if *pes == 0 { String::new() } else { format!("pes = {pes}\n") };
                format!("[[node]]\nname = \"n{at}\"\n{said}")
            };
            pes.iter().enumerate().map(node).collect()
        }
        Nodes::File(path) => {
            command.arg("--nodes").arg(path);
            String::new()
        }
    };
    let (started, used_ns) = (Instant::now(), mill::children_ns().map_err(said)?);
    let output = output(command, &text).map_err(said)?;
    let whole_s = started.elapsed().as_secs_f64();
    let used_ns = mill::children_ns().map_err(said)? - used_ns;
    let complaints = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let last = complaints.lines().last().unwrap_or("its run ended without a word");
        return Err(Failure::new(Kind::of_program(output.status.code()), last.trim_start_matches("error: ")));
    }
    // Warnings are for whoever measures.
    let _ = io::stderr().write_all(&output.stderr);
    found(&output.stdout, (whole_s, used_ns))
        .ok_or_else(|| Failure::new(Kind::Failed, "its report is not what was expected"))
}

fn output(mut command: Command, input: &str) -> io::Result<Output> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that has ended without reading says why by itself.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}

fn found(report: &[u8], (whole_s, used_ns): (f64, f64)) -> Option<RunResult> {
    let report: Value = serde_json::from_slice(report).ok()?;
    let figures = serde_json::from_value(report["facts"][FACT].clone()).ok()?;
    let link = report["nodes"][1]["name"].as_str().map(|second| {
        let sharers = report["nodes"][0]["shares_memory_with"].as_array();
        if sharers.is_some_and(|all| all.iter().any(|name| name == second)) {
            "shared memory"
        } else {
            "QUIC"
        }
    });
    Some(RunResult { figures, link, startup_s: report["startup_s"].as_f64()?, whole_s, used_ns })
}

/// Cores that this process may use.
pub(super) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
}
