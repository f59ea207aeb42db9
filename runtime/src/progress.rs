//! Who makes progress on the network: idle PEs in turn, and the network's own thread when no PE is idle.
//!
//! A message for a PE that waits for it should not have to wake a thread, and where every core has a PE no thread but
//! an idle PE can stay awake for it without taking a core from somebody. So the tasks of the network run on whichever
//! thread has the turn, one at a time:
//!
//! - An idle PE takes the turn when it is free, and gives it back, without a call of the system, when a message has come
//!   for it or it goes to sleep.
//! - The network's thread looks every millisecond whether PEs have had the turn since it looked last. If not, all of
//!   them compute or sleep: it takes the turn and sleeps in it until packets come. An idle PE asks it to leave.
//!
//! What a PE sends while no thread sleeps in the turn needs no system call either: it is kept for whoever has the turn
//! next, which is the PE itself before it goes idle, or the network's thread two milliseconds later at most.

use std::cell::Cell;
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::thread::Thread;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// Time between two looks of the network's thread at whether PEs have the turn.
const LOOK: Duration = Duration::from_millis(1);

/// Nobody has the turn.
const FREE: u8 = 0;
/// A PE has it; it does not sleep as long as it has.
const PE: u8 = 1;
/// The network's thread has it, and may sleep.
const THREAD: u8 = 2;

thread_local! {
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread runs the network's tasks now.
#[must_use]
pub fn has_turn() -> bool {
    HAS_TURN.get()
}

/// Runs tasks of the network, and knows of it meanwhile.
fn in_turn<T>(run: impl FnOnce() -> T) -> T {
    HAS_TURN.set(true);
    let outcome = run();
    HAS_TURN.set(false);
    outcome
}

/// The network's tasks, and who runs them.
pub struct Progress {
    runtime: Runtime,
    /// Who has the turn.
    turn: AtomicU8,
    /// How often PEs have taken it.
    taken: AtomicU32,
    /// Tasks to be woken by whoever has the turn next.
    kept: Mutex<Vec<Arc<Notify>>>,
    has_kept: AtomicBool,
    /// The network's thread is asked to give the turn back.
    leave: Notify,
    is_asked: AtomicBool,
    /// The network's thread is told that the last PE which had the turn sleeps.
    is_left: AtomicBool,
    thread: OnceLock<Thread>,
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Progress with turn {}", self.turn.load(Ordering::Relaxed))
    }
}

impl Progress {
    /// For the tasks of `runtime`, which has one thread.
    #[must_use]
    pub fn new(runtime: Runtime) -> Arc<Self> {
        Arc::new(Self {
            runtime,
            turn: AtomicU8::new(FREE),
            taken: AtomicU32::new(0),
            kept: Mutex::default(),
            has_kept: AtomicBool::new(false),
            leave: Notify::new(),
            is_asked: AtomicBool::new(false),
            is_left: AtomicBool::new(false),
            thread: OnceLock::new(),
        })
    }

    /// Where the tasks are started.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Runs the network's tasks on the calling thread, the network's, whenever no PE does, until `end` is ready.
    pub fn serve<T>(&self, end: impl Future<Output = T>) -> T {
        let mut end = pin!(end);
        // This is the only thread that does it, so there is no other yet.
        let _ = self.thread.set(std::thread::current());
        loop {
            if self.take(THREAD) {
                let tasks = async {
                    // Who has sent something since sees that this thread has the turn, or it is passed on here.
                    self.pass_kept();
                    tokio::select! {
                        over = end.as_mut() => Some(over),
                        () = self.leave.notified() => None,
                    }
                };
                let over = in_turn(|| self.runtime.block_on(tasks));
                self.turn.store(FREE, Ordering::SeqCst);
                self.is_asked.store(false, Ordering::SeqCst);
                if let Some(over) = over {
                    return over;
                }
            }
            self.rest();
        }
    }

    /// Returns when no PE has had the turn for some time.
    fn rest(&self) {
        let mut seen = self.taken.load(Ordering::Relaxed);
        loop {
            std::thread::park_timeout(LOOK);
            let taken = self.taken.load(Ordering::Relaxed);
            let is_free = self.turn.load(Ordering::Relaxed) == FREE;
            if is_free && (self.is_left.swap(false, Ordering::Acquire) || taken == seen) {
                return;
            }
            seen = taken;
        }
    }

    fn take(&self, who: u8) -> bool {
        self.turn.compare_exchange(FREE, who, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// The turn for a PE; `None` if another thread has it.
    #[must_use]
    pub fn turn(&self) -> Option<Turn<'_>> {
        let is_taken = self.turn.load(Ordering::Relaxed) == FREE && self.take(PE);
        is_taken.then(|| {
            self.taken.fetch_add(1, Ordering::Relaxed);
            Turn(self)
        })
    }

    /// The same for a PE that is going to stay awake: if the network's thread has the turn it is asked to give it back.
    #[must_use]
    pub fn turn_soon(&self) -> Option<Turn<'_>> {
        if self.turn.load(Ordering::Relaxed) == THREAD && !self.is_asked.swap(true, Ordering::SeqCst) {
            self.leave.notify_one();
        }
        self.turn()
    }

    /// A PE that may have had the turn goes to sleep.
    pub fn leave(&self) {
        if self.turn.load(Ordering::SeqCst) == FREE
            && let Some(thread) = self.thread.get()
        {
            self.is_left.store(true, Ordering::Release);
            thread.unpark();
        }
    }

    /// Wakes the task that waits for `notify`: at once if that can wake a thread, or else in the next turn.
    pub fn wake(&self, notify: &Arc<Notify>) {
        if self.may_sleep() {
            notify.notify_one();
        } else {
            self.keep(notify);
        }
    }

    fn keep(&self, notify: &Arc<Notify>) {
        self.lock().push(Arc::clone(notify));
        self.has_kept.store(true, Ordering::SeqCst);
        // If the network's thread has taken the turn in between, it may have passed on what is kept before that.
        if self.may_sleep() {
            self.pass_kept();
        }
    }

    /// Whether the network's thread has the turn.
    fn may_sleep(&self) -> bool {
        self.turn.load(Ordering::SeqCst) == THREAD
    }

    /// Whether tasks wait to be woken in the next turn.
    #[inline]
    #[must_use]
    pub fn has_kept(&self) -> bool {
        self.has_kept.load(Ordering::Relaxed)
    }

    fn pass_kept(&self) {
        // The swap takes the memory for itself, and mostly there is nothing to take.
        if self.has_kept.load(Ordering::SeqCst) && self.has_kept.swap(false, Ordering::SeqCst) {
            self.lock().drain(..).for_each(|notify| notify.notify_one());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Notify>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The calling thread may run the network's tasks.
#[derive(Debug)]
pub struct Turn<'a>(&'a Progress);

impl Turn<'_> {
    /// Runs all tasks that are ready, over and over, asking the system for packets without waiting for any, until
    /// `is_over`. What was sent before is on its way then.
    pub fn run(self, mut is_over: impl FnMut() -> bool) {
        let mut is_first = true;
        let once = |cx: &mut Context<'_>| {
            // Tasks that are woken here have to run before the turn is given back, or they would wait for the next.
            if !is_first && is_over() {
                return Poll::Ready(());
            }
            is_first = false;
            self.0.pass_kept();
            cx.waker().wake_by_ref();
            Poll::Pending
        };
        in_turn(|| self.0.runtime.block_on(std::future::poll_fn(once)));
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.turn.store(FREE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
