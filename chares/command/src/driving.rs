//! The driver on a thread of its own: the user may end the run while it computes, and what it does wrong ends
//! the run in order.

use chares::{Driver, RunError, Timeline};
use runtime::failure::{Failure, Kind};
use runtime::job::Job;
use runtime::pe::scheduler::panic_text;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a driver that does not wait for anything may go on after its run has failed.
const OVERTIME: Duration = Duration::from_secs(1);
/// How often the run is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(50);
/// The stack of a main thread, which is what a driver may expect.
const STACK_BYTES: usize = 8 << 20;

/// Runs `drive` with the driver of `job` until it returns, or the run has failed and it does not.
pub(crate) fn run(
    job: &mut Job,
    timeline: Timeline,
    drive: impl FnOnce(&mut Driver) -> Result<(), RunError> + Send + 'static,
) -> (Result<(), Failure>, Option<Timeline>) {
    let failed = |sentence: &str| (Err(Failure::new(Kind::Failed, sentence)), None);
    let Some(events) = job.take_events() else { return failed("the run has no driver") };
    keep_quiet_about_closed_output();
    let node = std::sync::Arc::clone(job.node());
    let (done, outcome) = channel();
    let thread = std::thread::Builder::new().name("driver".into()).stack_size(STACK_BYTES);
    let thread = thread.spawn(move || {
        let mut main = Driver::new(&node, events, timeline);
        // After a panic nothing of the driver is used but its times.
        let driven = catch_unwind(AssertUnwindSafe(|| drive(&mut main)));
        let driven = driven
            .map_or_else(|panic| Err(of_panic(panic.as_ref())), |returned| returned.map_err(Failure::from));
        // Nobody listens any more if it was overdue.
        let _ = done.send((driven, main.into_timeline()));
    });
    if let Err(error) = thread {
        return failed(&format!("the driver's thread cannot be started: {error}"));
    }
    let mut ended: Option<Instant> = None;
    loop {
        match outcome.recv_timeout(LOOK) {
            Ok((driven, timeline)) => return (driven, Some(timeline)),
            Err(RecvTimeoutError::Disconnected) => return failed("the driver's thread ended early"),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if job.has_ended() && ended.get_or_insert_with(Instant::now).elapsed() > OVERTIME {
            return failed("the run ended before its driver");
        }
    }
}

fn of_panic(panic: &(dyn Any + Send)) -> Failure {
    match unsaid(panic) {
        // The reader of the output has gone, as in `… | head -1`.
        Some(why) if why.contains("Broken pipe") => Failure::new(Kind::Unheard, "standard output was closed"),
        Some(why) => Failure::new(Kind::Output, format!("standard output cannot be written: {why}")),
        None => Failure::new(Kind::Failed, format!("the driver panicked: {}", panic_text(panic))),
    }
}

/// Why standard output could not be written, if that is why `println!` panicked. The standard library leaves no other
/// way to know than the text: the panic carries a string and not the error, no hook sees the error either, and another
/// write to find it out would stand in the output of a driver that panicked for a reason of its own.
fn unsaid(panic: &(dyn Any + Send)) -> Option<&str> {
    panic_text(panic).strip_prefix("failed printing to stdout: ")
}

/// `println!` panics when its output fails. What is to be said about that is said at the end of the run.
fn keep_quiet_about_closed_output() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if unsaid(info.payload()).is_none() {
            before(info);
        }
    }));
}
