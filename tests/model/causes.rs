//! Runs that are slow for a reason that is known, recorded: `report` names it, in one line and on the critical path, and so does
//! the window's screen that says why PEs do not compute.

use crate::PROGRAM;
use harness::{Done, skipped, start};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

fn program(folder: &Path, words: &[&str]) -> Done {
    let mut command = Command::new(PROGRAM);
    command.args(words).current_dir(folder).env("XDG_CACHE_HOME", folder).env_remove("METACHARE_NODES");
    let done = start(&mut command).done();
    assert_eq!(done.code, 0, "{words:?}: {done:?}");
    done
}

/// What is said where all wait for the driver.
const SERIAL_DRIVER: &str = "PEs waited for the driver, which is";
/// What is said where all wait for one PE, then for the next.
const IN_TURN: &str = "PEs waited for each other, because steps follow one another";

/// What is told of a run.
struct Told {
    /// What time was lost to, by its report.
    lost: Vec<String>,
    /// What the critical path went through, by its report.
    path: Vec<String>,
    /// What the window says of its last seconds.
    window: Vec<String>,
}

/// Runs of a kind at most, until one has had its cores for nearly all of the time, or all is told that is expected.
const RUNS: usize = 5;
/// Part of the time for which cores may be missing so that a run counts whatever it tells; more of it makes another try worth it.
const UNDISTURBED_PERCENT: f64 = 10.0;
/// If others had the cores for longer, what else took time is not told.
const ROBBED_PERCENT: f64 = 50.0;

impl Told {
    /// Whether the report names a cause among what is dearest.
    fn names(&self, cause: &str) -> bool {
        dearest(&self.lost).any(|line| line.contains(cause))
    }

    /// Whether most of the critical path went through something, if others that wanted the cores do not count.
    fn goes_through(&self, what: &str) -> bool {
        self.path.iter().find(|line| !is_wait(line)).is_some_and(|line| line.contains(what))
    }

    /// Whether the window has it on the path, too, as one of the two longest.
    fn shows(&self, what: &str) -> bool {
        let path = self.window.iter().skip_while(|line| !line.starts_with(" all wait for:"));
        let path = path.take_while(|line| !line.starts_with(" localhost:"));
        // A PE that is kept from its core as a message comes does not know that it had waited for that.
        path.filter(|line| !is_wait(line)).take(2).any(|line| line.contains(what))
    }
}

/// Whether a line of a path says that a PE waited for its core.
fn is_wait(line: &str) -> bool {
    line.contains("waited for its core")
}

/// For which part of the time others had the cores.
fn robbed_percent(told: &Told) -> f64 {
    let waited = told.lost.iter().find(|line| line.contains("waited for their cores"));
    let percent = waited.and_then(|line| line.split_whitespace().next()?.parse().ok());
    percent.unwrap_or_default()
}

/// What is told of a run of that kind on nodes with so many PEs and such a share of their cores: of the first that has these or
/// of which all is told that is expected, or else of the last that was not robbed. `None` if there is none.
fn told_with_cores(
    cause: &str,
    nodes: &[(u32, f64)],
    is_as_expected: impl Fn(&Told) -> bool,
) -> Option<Told> {
    let mut doubtful = None;
    for told in (0..RUNS).map(|_| told(cause, nodes)) {
        let percent = robbed_percent(&told);
        if percent <= UNDISTURBED_PERCENT || is_as_expected(&told) {
            return Some(told);
        }
        doubtful = Some(told).filter(|_| percent <= ROBBED_PERCENT).or(doubtful);
    }
    if doubtful.is_none() {
        skipped(&format!("what is told of {cause}: others have the cores"));
    }
    doubtful
}

/// What is told of one run, whoever else has the cores meanwhile.
fn told(cause: &str, nodes: &[(u32, f64)]) -> Told {
    let folder = tempfile::tempdir().unwrap();
    let file = nodes.iter().zip(["a", "b"]).fold(String::new(), |mut file, ((pes, share), name)| {
        writeln!(file, "[[node]]\nname = \"{name}\"\npes = {pes}\ncpu_share = {share}").unwrap();
        file
    });
    fs::write(folder.path().join("nodes.toml"), file).unwrap();
    let run = ["run", "planted", "--cause", cause, "--nodes", "nodes.toml", "--speed", "equal", "--quiet"];
    program(folder.path(), &[&run[..], &["--record", "run.mcr"]].concat());
    let said = program(folder.path(), &["report", "run.mcr"]).stdout;
    let part = |title: &str| -> Vec<String> {
        let lines = said.lines().skip_while(|line| !line.starts_with(title)).skip(1);
        lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let why = ["replay", "run.mcr", "--once", "--screen", "why", "--size", "120x40"];
    let window = program(folder.path(), &why).stdout.lines().map(str::to_owned).collect();
    Told { lost: part("lost, %"), path: part("critical path"), window }
}

/// The two causes that are dearest, if others that wanted the cores do not count: tests run side by side. Two, for who sleeps is
/// also who others wait for.
fn dearest(lost: &[String]) -> impl Iterator<Item = &String> {
    lost.iter().filter(|line| !line.contains("waited for their cores")).take(2)
}

#[test]
fn whatever_makes_a_run_slow_is_named() {
    let (one, two) = (&[(1, 1.0)][..], &[(1, 1.0), (1, 1.0)][..]);
    for (cause, nodes, in_report, on_path) in [
        ("a hot chare", two, "others waited for PE 1 of b", "Part: Step on PE 1 (b)"),
        ("one long call", two, "one call of Part: Step", "Part: Step on PE 1 (b)"),
        (
            "a call that has not ended",
            two,
            "one call of Part: Answer (under way) took",
            "Part: Answer on PE 1 (b)",
        ),
        (
            "too few chares",
            two,
            "1 of 2 PEs had nothing to compute: there were 1 chares",
            "Part: Step on PE 0 (a)",
        ),
        ("a serial driver", two, SERIAL_DRIVER, "the driver, and what it waited for"),
        ("one after the other", two, IN_TURN, "Part: Pass on PE "),
        (
            "tiny messages",
            one,
            "the runtime itself took it",
            "short entry methods, or the runtime, on PE 0 (a)",
        ),
        (
            "nothing",
            &[(1, 1.0), (1, 0.2)],
            "the PEs of b slept, because their cpu_share says so",
            "PE 1 (b) was held back by its cpu_share",
        ),
    ] {
        let is_as_expected =
            |told: &Told| told.names(in_report) && told.goes_through(on_path) && told.shows(on_path);
        let Some(told) = told_with_cores(cause, nodes, is_as_expected) else { continue };
        let Told { lost, path, window } = &told;
        assert!(told.names(in_report), "{cause}: {lost:#?}");
        assert!(told.goes_through(on_path), "{cause}: {path:#?}");
        assert!(told.shows(on_path), "{cause}: {window:#?}");
        // Each of these two is told from the other.
        for other in [SERIAL_DRIVER, IN_TURN].into_iter().filter(|other| *other != in_report) {
            assert!(!lost.iter().any(|line| line.contains(other)), "{cause}: {lost:#?}");
        }
    }
    let cores = u32::try_from(std::thread::available_parallelism().unwrap().get()).unwrap();
    let Told { lost, window, .. } = told("nothing", &[(cores, 1.0), (2 * cores, 1.0)]);
    let begins = format!("{} PEs share ", 3 * cores);
    assert!(lost.first().is_some_and(|line| line.contains(&begins)), "{lost:#?}");
    let begins = format!("a core: {} PEs share {cores}", 3 * cores);
    assert!(window.iter().any(|line| line.contains(&begins)), "{window:#?}");
}
