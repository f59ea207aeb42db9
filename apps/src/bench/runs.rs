//! Starts runs of this program for each set-up and reads their figures from their reports: everything goes the way
//! that it goes for any application.

use super::catalogue::{Operation, Setup};
use super::measure::{FACT, Figures, Part};
use super::{Options, kernel};
use chares::RunError;
use serde_json::Value;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// No run takes longer, seconds.
const TIME_LIMIT: &str = "900";
/// Exit code where a run gives none that says more.
const FAILED: u8 = 70;
/// Nodes of a start and of what memory is measured on.
const MANY_NODES: usize = 8;

/// What a run has found out.
struct Found {
    figures: Figures,
    /// From the command to the driver's first line, by its own report.
    startup_s: f64,
    /// From outside, the process's start and end included.
    whole_s: f64,
}

/// Figures of the stretches of all these operations, which are of one set-up.
///
/// # Errors
/// If a run fails.
pub(super) fn measure(
    setup: Setup,
    operations: &[&Operation],
    options: &Options,
) -> Result<Figures, RunError> {
    let run = |pes: &[u32], part| {
        let nodes = options.nodes.as_deref().map_or_else(|| Nodes::Local(pes), Nodes::File);
        let wrong = |(code, why)| {
            let sentence = format!("{setup} cannot be measured: {why}");
            RunError::Ended { code, sentence }
        };
        run(&nodes, part, operations, options).map_err(wrong)
    };
    let repeats = if options.brief { 1 } else { options.repeats };
    let many = [1; MANY_NODES];
    match setup {
        Setup::OnePe => Ok(run(&[1], Part::Paths)?.figures),
        Setup::TwoPes => Ok(run(&[2], Part::Paths)?.figures),
        Setup::TwoNodes => Ok(run(&[1, 1], Part::Paths)?.figures),
        Setup::Nodes(count) => Ok(run(&vec![1; count as usize], Part::Paths)?.figures),
        Setup::Monitor => Ok(run(&[cores()], Part::Monitor)?.figures),
        Setup::Core => Ok(kernel::measure(repeats, options.brief)),
        Setup::Memory => gathered(repeats, || Ok(run(&many, Part::Memory)?.figures)),
        Setup::Start => {
            // The first reads the executable from disk.
            if !options.brief {
                run(&many, Part::Nothing)?;
            }
            gathered(repeats, || {
                let found = run(&many, Part::Nothing)?;
                Ok([("start/8/ready", found.startup_s), ("start/8/run", found.whole_s)]
                    .map(|(key, seconds)| (key.to_string(), vec![seconds * 1e3]))
                    .into())
            })
        }
    }
}

/// Figures of several runs.
fn gathered(repeats: usize, mut run: impl FnMut() -> Result<Figures, RunError>) -> Result<Figures, RunError> {
    let mut all = Figures::new();
    for _ in 0..repeats {
        for (key, figures) in run()? {
            all.entry(key).or_default().extend(figures);
        }
    }
    Ok(all)
}

/// Where a run takes place.
enum Nodes<'a> {
    /// Nodes of this machine, with that many PEs each.
    Local(&'a [u32]),
    /// Those of a nodes file.
    File(&'a Path),
}

/// Runs the application with a nodes file on its standard input and a report from its standard output, so that nothing
/// is left behind whatever happens.
///
/// # Errors
/// Its exit code and last words.
fn run(
    nodes: &Nodes<'_>,
    part: Part,
    operations: &[&Operation],
    options: &Options,
) -> Result<Found, (u8, String)> {
    let keys: Vec<&str> = operations.iter().map(|operation| operation.key.as_str()).collect();
    let said = |error: io::Error| (FAILED, error.to_string());
    let mut command = Command::new(std::env::current_exe().map_err(said)?);
    command.args(["run", super::NAME, "--quiet", "--report", "/dev/stdout", "--timeout", TIME_LIMIT]);
    command.args(["--part", part.name(), "--operations", &keys.join(",")]);
    command.args(["--repeats", &options.repeats.to_string()]);
    if options.brief {
        command.arg("--brief");
    }
    let text = match nodes {
        Nodes::Local(pes) => {
            command.args(["--nodes", "/dev/stdin"]);
            let node = |(at, pes): (usize, &u32)| format!("[[node]]\nname = \"n{at}\"\npes = {pes}\n");
            pes.iter().enumerate().map(node).collect()
        }
        Nodes::File(path) => {
            command.arg("--nodes").arg(path);
            String::new()
        }
    };
    let started = Instant::now();
    let output = output(command, &text).map_err(said)?;
    let whole_s = started.elapsed().as_secs_f64();
    let complaints = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let last = complaints.lines().last().unwrap_or("its run ended without a word");
        let code = output.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED);
        return Err((code, last.trim_start_matches("error: ").into()));
    }
    // Warnings are for whoever measures.
    let _ = io::stderr().write_all(&output.stderr);
    found(&output.stdout, whole_s).ok_or_else(|| (FAILED, "its report is not what was expected".into()))
}

fn output(mut command: Command, input: &str) -> io::Result<Output> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that has ended without reading says why by itself.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}

fn found(report: &[u8], whole_s: f64) -> Option<Found> {
    let report: Value = serde_json::from_slice(report).ok()?;
    let figures = serde_json::from_value(report["facts"][FACT].clone()).ok()?;
    Some(Found { figures, startup_s: report["startup_s"].as_f64()?, whole_s })
}

fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
}
