//! The driver on a thread of its own: the user may end the run while it computes, and what it does wrong ends
//! the run in order.

use chares::Driver;
use chares::RunError;
use chares::Timeline;
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
/// What the standard library says when `println!` fails.
const UNSAID: &str = "failed printing to stdout: ";

/// How a driver came to its end.
pub(crate) enum Driven {
    /// It returned.
    Returned(Result<(), RunError>),
    /// It printed to an output whose reader has gone, as in `… | head -1`.
    Unheard,
    /// The run failed, and the driver took no notice.
    Overdue,
}

/// Runs `drive` with the driver of `job` until it returns, or the run has failed and it does not.
pub(crate) fn run(
    job: &mut Job,
    timeline: Timeline,
    drive: impl FnOnce(&mut Driver) -> Result<(), RunError> + Send + 'static,
) -> (Driven, Option<Timeline>) {
    let failed = |sentence: &str| (Driven::Returned(Err(RunError::Failed(sentence.into()))), None);
    let Some(events) = job.take_events() else { return failed("the run has no driver") };
    keep_quiet_about_closed_output();
    let node = std::sync::Arc::clone(job.node());
    let (done, outcome) = channel();
    let thread = std::thread::Builder::new().name("driver".into()).stack_size(STACK_BYTES);
    let thread = thread.spawn(move || {
        let mut main = Driver::new(&node, events, timeline);
        // After a panic nothing of the driver is used but its times.
        let driven = catch_unwind(AssertUnwindSafe(|| drive(&mut main)));
        let driven = driven.map_or_else(|panic| of_panic(panic.as_ref()), Driven::Returned);
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
            return (Driven::Overdue, None);
        }
    }
}

fn of_panic(panic: &(dyn Any + Send)) -> Driven {
    let words = panic_text(panic);
    match words.strip_prefix(UNSAID) {
        Some(why) if is_closed(why) => Driven::Unheard,
        Some(why) => {
            Driven::Returned(Err(RunError::Output(format!("standard output cannot be written: {why}"))))
        }
        None => Driven::Returned(Err(RunError::Failed(format!("the driver panicked: {words}")))),
    }
}

fn is_closed(why: &str) -> bool {
    why.contains("Broken pipe")
}

/// `println!` panics when its output fails. What is to be said about that is said at the end of the run.
fn keep_quiet_about_closed_output() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !panic_text(info.payload()).starts_with(UNSAID) {
            before(info);
        }
    }));
}
