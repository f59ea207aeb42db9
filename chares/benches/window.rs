//! What the load window costs the run that it shows: `cargo bench -p metachare-chares --bench window`.
//!
//! A fine-grained program runs on one node that has a PE on every core of this machine, so that whoever watches
//! takes time from a PE. Stretches of the same work are timed alternately with nobody watching and with a window,
//! attached with `watch` from a terminal of 160 x 50 on this machine. Each stretch with it is compared with the
//! mean of its two neighbours without; the median of these is the cost. As it is smaller than the noise of most
//! machines, the processor time that the windows took is printed too: from it follows what they can have cost
//! at most. The terminal is made by `script` (util-linux).
//!
//! The monitor's other part is always on: the clock is read once for each entry method, and each node sends its
//! counters ten times a second. What these cost is measured by themselves.
//!
//! Without `--bench` (as in `cargo test --benches`) it only goes through.

use chares::prelude::*;
use clap::Args;
use runtime::ids::NodeId;
use runtime::monitor::wire::PeState;
use runtime::node::{Node, NodeSettings};
use runtime::object::ProgramTable;
use runtime::pe::account::{Account, Way};
use runtime::topology::Topology;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::io::{self, Read as _, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a stretch of work is to take.
const STRETCH: Duration = Duration::from_millis(800);
/// Of the system's accounting of processes; the same on all Linux machines.
const TICKS_PER_SECOND: f64 = 100.0;
/// Rounds of arithmetic in an entry method, about half a microsecond.
const ROUNDS: u64 = 200;

#[derive(Args, Clone, Debug, Serialize, Deserialize)]
struct Arguments {
    /// Stretches with the window
    #[arg(long, default_value_t = 31)]
    repeats: usize,
    /// Only go through it once
    #[arg(long)]
    brief: bool,
}

/// Works in small steps, each of which is a message to itself.
#[derive(Serialize, Deserialize)]
struct Mill {
    grain: u64,
}

/// So many steps are left; who wants to know when there are none.
#[derive(Serialize, Deserialize)]
struct Step(u64, Callback<u64>);

chares::entries!(Mill: Step);

impl Chare for Mill {
    type Index = u32;
    type Init = ();
    fn new((): (), ctx: &mut Ctx<'_, Self>) -> Self {
        Self { grain: u64::from(ctx.index()) }
    }
}

impl Entry<Step> for Mill {
    fn receive(&mut self, Step(left, done): Step, ctx: &mut Ctx<'_, Self>) {
        for _ in 0..ROUNDS {
            self.grain = black_box(self.grain.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23));
        }
        match left {
            0 => done.send(ctx, self.grain),
            left => ctx.this().send(ctx, Step(left - 1, done)),
        }
    }
}

/// A window in a terminal of its own.
struct Viewer {
    terminal: Child,
    drawn_bytes: Arc<AtomicU64>,
}

impl Viewer {
    /// Attaches to the only job in this process's socket directory.
    fn attach() -> io::Result<Self> {
        let exe = std::env::current_exe()?;
        let watch = format!("stty cols 160 rows 50; exec '{}' watch", exe.display());
        let mut terminal = Command::new("script")
            .args(["--quiet", "--flush", "--command", &watch, "/dev/null"])
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| io::Error::other(format!("`script` (util-linux) cannot be run: {e}")))?;
        let drawn_bytes = Arc::new(AtomicU64::new(0));
        if let Some(mut screen) = terminal.stdout.take() {
            let count = Arc::clone(&drawn_bytes);
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(read @ 1..) = screen.read(&mut bytes) {
                    count.fetch_add(read as u64, Ordering::Relaxed);
                }
            });
        }
        Ok(Self { terminal, drawn_bytes })
    }

    /// Waits for the first whole picture.
    fn is_drawing(&self) -> bool {
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until {
            if self.drawn_bytes.load(Ordering::Relaxed) > 2000 {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// Leaves the window as a user does; how many bytes it drew.
    fn leave(mut self) -> io::Result<u64> {
        if let Some(mut keys) = self.terminal.stdin.take() {
            keys.write_all(b"q")?;
        }
        self.terminal.wait()?;
        Ok(self.drawn_bytes.load(Ordering::Relaxed))
    }
}

fn failed(error: io::Error) -> RunError {
    RunError::Failed(format!("the window cannot be measured: {error}"))
}

fn drive(main: &mut Driver, arguments: Arguments) -> Result<(), RunError> {
    let pes = main.pe_count();
    let mills: Array<Mill> = main.array(pes, ());
    main.init_over()?;
    let stretch = |main: &mut Driver, steps: u64| -> Result<Duration, RunError> {
        let (done, ground) = main.pending();
        let start = Instant::now();
        mills.broadcast(main, Step(steps, done));
        (0..pes).try_for_each(|_| ground.wait(main).map(drop))?;
        Ok(start.elapsed())
    };
    let (mut steps, mut took) = (1000, stretch(main, 1000)?);
    while !arguments.brief && took < STRETCH {
        steps *= 2;
        took = stretch(main, steps)?;
    }
    let repeats = if arguments.brief { 1 } else { arguments.repeats.max(1) };
    let (mut longer, mut alone, mut drawn, mut shown) = (Vec::new(), Vec::new(), 0, Duration::ZERO);
    let mut before = stretch(main, steps)?.as_secs_f64();
    for _ in 0..repeats {
        let attached = Instant::now();
        let viewer = Viewer::attach().map_err(failed)?;
        if !viewer.is_drawing() {
            return Err(failed(io::Error::other("it draws nothing")));
        }
        let with = stretch(main, steps)?.as_secs_f64();
        drawn += viewer.leave().map_err(failed)?;
        shown += attached.elapsed();
        let after = stretch(main, steps)?.as_secs_f64();
        longer.push((with / (0.5 * (before + after)) - 1.0) * 100.0);
        alone.push(after / steps as f64 * 1e9);
        before = after;
    }
    let [least, median, most] = quartiles(longer);
    let taken = children_seconds().map_err(failed)? / shown.as_secs_f64() * 100.0;
    let rate = drawn as f64 / 1e3 / shown.as_secs_f64();
    println!("{pes} PEs, {repeats} stretches of {:.0} ms with a window", before * 1e3);
    println!("  an entry method with its message    {:>8.1} ns", quartiles(alone)[1]);
    println!("  the run is longer with a window by  {median:>8.2} %   quartiles {least:.2} .. {most:.2}");
    println!("  a window draws                      {rate:>8.1} kB/s");
    println!("  and takes, its start included       {taken:>8.2} %   of one core");
    println!("  which is, of all PEs                {:>8.2} %", taken / f64::from(pes));
    main.timed_over()
}

/// Processor time of all children that have ended, and of theirs, from the system's table of this process.
fn children_seconds() -> io::Result<f64> {
    let table = std::fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may hold blanks; the times are the 14th and 15th of the fields behind it.
    let fields = table.rsplit(')').next().unwrap_or_default().split_whitespace().skip(13).take(2);
    let ticks: f64 = fields.filter_map(|field| field.parse::<f64>().ok()).sum();
    Ok(ticks / TICKS_PER_SECOND)
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

/// The part of the monitor that is always on.
fn accounting(pes: u32, is_measuring: bool) {
    let (node, account) = (NodeId(1), Account::default());
    let topology = Topology::new(&[0, pes]);
    let node = Node::new(node, topology, Arc::new(ProgramTable::default()), NodeSettings::default());
    let count = if is_measuring { 1_000_000 } else { 10 };
    let time = |what: &mut dyn FnMut()| {
        let mut ns: Vec<f64> = (0..9)
            .map(|_| {
                let start = Instant::now();
                (0..count).for_each(|_| what());
                start.elapsed().as_secs_f64() * 1e9 / f64::from(count)
            })
            .collect();
        ns.sort_by(f64::total_cmp);
        ns[4]
    };
    let mut way = Way::default();
    let entry = time(&mut || {
        way.ends(&account, PeState::Compute, || node.now_ns());
        account.begins(1, 1);
        account.ran(1);
        way.begins(&account, || node.now_ns());
    });
    println!("always on");
    println!("  accounting of an entry method      {entry:>8.1} ns");
    let count = count / 100 + 1;
    let start = Instant::now();
    (0..count).for_each(|_| drop(black_box(node.snapshot())));
    let snapshot = start.elapsed().as_secs_f64() / f64::from(count);
    println!("  counters of {pes} PEs, once           {:>8.1} us", snapshot * 1e6);
    println!("  the same, ten times a second       {:>8.4} %   of one core", snapshot * 10.0 * 100.0);
}

fn program() -> Program {
    let app = App::new("window", "What the load window costs the run", drive);
    Program::new("window", env!("CARGO_PKG_VERSION")).chare::<Mill>().app(app)
}

fn run_on(pes: u32, is_measuring: bool) -> io::Result<bool> {
    // A directory of its own, so that `watch` finds this job only.
    let sockets = tempfile::tempdir()?;
    let nodes = sockets.path().join("nodes.toml");
    std::fs::write(&nodes, format!("[[node]]\nname = \"here\"\npes = {pes}\n"))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("run").arg("--nodes").arg(nodes).arg("--quiet").env("XDG_RUNTIME_DIR", sockets.path());
    if !is_measuring {
        command.arg("--brief");
    }
    Ok(command.status()?.success())
}

fn main() -> ExitCode {
    let is_measuring = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--bench") => true,
        // A node of this program, its window, or its command line.
        Some(_) => return program().main(),
    };
    let pes = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    match run_on(pes, is_measuring) {
        Ok(true) => {}
        Ok(false) => return ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the benchmark cannot run itself: {error}");
            return ExitCode::FAILURE;
        }
    }
    accounting(pes, is_measuring);
    ExitCode::SUCCESS
}
