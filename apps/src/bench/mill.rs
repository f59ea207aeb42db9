//! What watching and measuring cost: a fine-grained program on every core, with a load window and without.
//!
//! Stretches of the same work are timed alternately with nobody watching and with a window, attached with `watch`
//! from a terminal of 160 x 50 on this machine; `script` (util-linux) makes the terminal. Each stretch with it is
//! compared with the mean of its two neighbours without. As the difference is smaller than the noise of most
//! machines, the processor time that the windows took is measured too: from it follows what they can have cost at
//! most. What a run takes that does not even measure itself is found by runs of the same work with `--no-measuring`.

use super::measure::{Arguments, Figures};
use chares::prelude::*;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a stretch of work is to take.
const STRETCH: Duration = Duration::from_millis(600);
/// Rounds of arithmetic in an entry method, about half a microsecond.
const ROUNDS: u64 = 200;
/// How long a window may take to draw its first picture, and how many bytes that has at least.
const PATIENCE: Duration = Duration::from_secs(10);
const PICTURE_BYTES: u64 = 2000;

/// Works in small steps, each of which is a message to itself.
#[derive(Serialize, Deserialize)]
pub(super) struct Mill {
    grain: u64,
}

/// So many steps are left; who wants to know when there are none.
#[derive(Serialize, Deserialize)]
pub(super) struct Grind(u64, Callback<u64>);

chares::entries!(Mill as "bench::Mill": Grind);

impl Chare for Mill {
    type Index = u32;
    type Init = ();
    fn new((): (), ctx: &mut Ctx<'_, Self>) -> Self {
        Self { grain: u64::from(ctx.index()) }
    }
}

impl Entry<Grind> for Mill {
    fn receive(&mut self, Grind(left, done): Grind, ctx: &mut Ctx<'_, Self>) {
        for _ in 0..ROUNDS {
            self.grain = black_box(self.grain.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23));
        }
        match left {
            0 => done.send(ctx, self.grain),
            left => ctx.this().send(ctx, Grind(left - 1, done)),
        }
    }
}

/// A mill on each PE.
struct Mills {
    all: Array<Mill>,
    count: u32,
}

impl Mills {
    fn new(main: &mut Driver) -> Result<Self, RunError> {
        let count = main.pe_count();
        let all = main.array(count, ());
        main.init_over()?;
        Ok(Self { all, count })
    }

    /// How long so many steps of each take.
    fn stretch(&self, main: &mut Driver, steps: u64) -> Result<Duration, RunError> {
        let (done, ground) = main.pending();
        let start = Instant::now();
        self.all.broadcast(main, Grind(steps, done));
        (0..self.count).try_for_each(|_| ground.wait(main).map(drop))?;
        Ok(start.elapsed())
    }

    /// How many steps make a stretch.
    fn steps(&self, main: &mut Driver, is_brief: bool) -> Result<u64, RunError> {
        let (mut steps, mut took) = (1000, self.stretch(main, 1000)?);
        while !is_brief && took < STRETCH {
            steps *= 2;
            took = self.stretch(main, steps)?;
        }
        Ok(steps)
    }
}

/// The key under which [`work`] says how many steps it did.
pub(super) const STEPS: &str = "steps";

/// Some stretches of work, or as many steps as it is told.
pub(super) fn work(main: &mut Driver, arguments: &Arguments) -> Result<Figures, RunError> {
    let mills = Mills::new(main)?;
    let steps = match arguments.steps {
        Some(steps) => {
            mills.stretch(main, steps)?;
            steps
        }
        None => mills.steps(main, arguments.brief)?,
    };
    main.timed_over()?;
    Ok(Figures::from([(STEPS.into(), vec![steps as f64])]))
}

pub(super) fn measure(main: &mut Driver, arguments: &Arguments) -> Result<Figures, RunError> {
    let mills = Mills::new(main)?;
    let stretch = |main: &mut Driver, steps| mills.stretch(main, steps);
    let steps = mills.steps(main, arguments.brief)?;
    let repeats = if arguments.brief { 1 } else { arguments.repeats };
    let (mut longer, mut taken) = (Vec::new(), Vec::new());
    let mut before = stretch(main, steps)?;
    for _ in 0..repeats {
        let (attached, used) = (Instant::now(), children_ns().map_err(failed)?);
        let viewer = Viewer::attach().map_err(failed)?;
        let with = stretch(main, steps)?;
        viewer.leave().map_err(failed)?;
        let used = children_ns().map_err(failed)? - used;
        taken.push(used / attached.elapsed().as_nanos() as f64 * 100.0);
        let after = stretch(main, steps)?;
        longer.push(200.0 * with.as_secs_f64() / (before + after).as_secs_f64());
        before = after;
    }
    main.timed_over()?;
    Ok([("monitor/run", longer), ("monitor/window", taken)]
        .map(|(key, figures)| (key.to_string(), figures))
        .into())
}

fn failed(error: io::Error) -> RunError {
    RunError::Failed(format!("the window cannot be measured: {error}"))
}

/// Processor time of all children that have ended, and of theirs.
pub(super) fn children_ns() -> io::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64 * 1e3)
}

/// A window in a terminal of its own; it ends with this.
struct Viewer {
    terminal: Child,
}

impl Viewer {
    /// Attaches to this run; it has drawn its first picture.
    fn attach() -> io::Result<Self> {
        let exe = std::env::current_exe()?;
        let quoted = exe.display().to_string().replace('\'', r"'\''");
        let watch = format!("stty cols 160 rows 50; exec '{quoted}' watch {}", own_job(&exe)?);
        let terminal = Command::new("script")
            .args(["--quiet", "--flush", "--command", &watch, "/dev/null"])
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| io::Error::other(format!("`script` (util-linux) cannot be run: {e}")))?;
        let mut viewer = Self { terminal };
        let drawn_bytes = Arc::new(AtomicU64::new(0));
        if let Some(mut screen) = viewer.terminal.stdout.take() {
            let count = Arc::clone(&drawn_bytes);
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(read @ 1..) = screen.read(&mut bytes) {
                    count.fetch_add(read as u64, Ordering::Relaxed);
                }
            });
        }
        let until = Instant::now() + PATIENCE;
        while drawn_bytes.load(Ordering::Relaxed) < PICTURE_BYTES {
            if Instant::now() > until {
                return Err(io::Error::other("it draws nothing"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(viewer)
    }

    /// Leaves the window as a user does.
    fn leave(mut self) -> io::Result<()> {
        if let Some(mut keys) = self.terminal.stdin.take() {
            keys.write_all(b"q")?;
        }
        self.terminal.wait().map(drop)
    }
}

/// The name of this run, which is the only benchmark.
fn own_job(exe: &Path) -> io::Result<String> {
    let listed = Command::new(exe).args(["watch", "--list"]).output()?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let mut jobs = listed.lines().filter(|job| job.starts_with("bench-"));
    match (jobs.next(), jobs.next()) {
        (Some(job), None) => Ok(job.into()),
        (None, _) => Err(io::Error::other("`watch --list` does not show this run")),
        _ => Err(io::Error::other("another benchmark is running here; let it end first")),
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        // One that has left is gone already.
        let _ = self.terminal.kill();
        let _ = self.terminal.wait();
    }
}
