//! Signals to the launcher: the first ends the run in good order, the second at once. A signal when no run is on,
//! such as while inputs are read or a blocked terminal keeps the report from being written, ends the process. A run that
//! is saved on its way is saved once more before SIGTERM ends it.

use super::limits;
use super::order::Order;
use crate::failure::{Failure, Interruption};
use crate::monitor::socket;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// How long an end at once may take.
const AT_ONCE: Duration = Duration::from_millis(1500);
/// How long the last words may take; whoever reads standard error may be stopped.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How long SIGTERM waits for a run to be saved: who sends it sends SIGKILL in ten seconds or more.
const SAVE_MAX: Duration = Duration::from_secs(8);

/// The run that signals are passed on to. Signals belong to the process, so this is global.
static CURRENT: Mutex<Option<UnboundedSender<Order>>> = Mutex::new(None);
/// Who saves that run, if anybody does.
static SAVER: Mutex<Weak<SaveOrders>> = Mutex::new(Weak::new());
/// Who hears of orders to save a run that nobody keeps.
static REFUSED: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);
static LISTENING: Once = Once::new();
static BEFORE_EXIT: OnceLock<fn()> = OnceLock::new();

/// Has `restore` called before the process ends at once because the user insists, e.g. to give a terminal back.
/// Only the first call counts.
pub fn before_exit_at_once(restore: fn()) {
    let _ = BEFORE_EXIT.set(restore);
}

/// From now on signals end this process with a sentence and an exit code, or are orders to its run. The end of its
/// terminal stays ignored where it was, as by `nohup`.
///
/// # Errors
/// If the system has no thread or no descriptors for that.
pub fn hear_signals() -> io::Result<()> {
    let mut outcome = Ok(());
    LISTENING.call_once(|| outcome = listen());
    outcome
}

/// Why a run is to be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveOrder {
    /// Somebody wants it saved, and it goes on.
    InPassing,
    /// It is about to be ended.
    BeforeEnd,
}

/// Orders to this process to save its run: by SIGUSR1, and by SIGTERM before it ends the run.
#[derive(Debug, Default)]
pub struct SaveOrders {
    in_passing: Arc<AtomicBool>,
    before_end: AtomicBool,
    obeyed: Notify,
}

impl SaveOrders {
    /// The one that has come since this was asked last, if any has; of several, the gravest.
    #[must_use]
    pub fn take(&self) -> Option<SaveOrder> {
        let in_passing = self.in_passing.swap(false, Ordering::Relaxed).then_some(SaveOrder::InPassing);
        let before_end = self.before_end.swap(false, Ordering::Relaxed).then_some(SaveOrder::BeforeEnd);
        before_end.or(in_passing)
    }

    /// Somebody looks at them from now on: SIGTERM waits for that, as long as these are there.
    pub fn are_awaited(self: &Arc<Self>) {
        *SAVER.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(self);
    }

    /// Says that the run has been saved, or could not be: nobody need wait any more.
    pub fn obeyed(&self) {
        self.obeyed.notify_waiters();
    }
}

/// From now on SIGUSR1 ends nothing, but is an order: one that comes before [anybody looks](SaveOrders::are_awaited) is obeyed then.
///
/// # Errors
/// If the system does not let signals be heard.
pub fn hear_checkpoint_orders() -> io::Result<Arc<SaveOrders>> {
    let orders = Arc::new(SaveOrders::default());
    signal_hook::flag::register(signal_hook::consts::SIGUSR1, Arc::clone(&orders.in_passing))?;
    Ok(orders)
}

/// From now on `tell` is called whenever SIGUSR1 asks for a checkpoint, which this run does not keep; it ends nothing.
pub fn refuse_checkpoint_orders(tell: impl Fn() + Send + 'static) {
    *REFUSED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(tell));
}

fn cannot_save() {
    let refused = REFUSED.lock().unwrap_or_else(PoisonError::into_inner);
    refused.iter().for_each(|tell| tell());
}

/// Has the run saved before it is ended, if somebody does that. It takes no longer than [`SAVE_MAX`], and another signal ends it.
async fn save(signals: &mut Heard) {
    let saver = SAVER.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
    let Some(orders) = saver else { return };
    let obeyed = orders.obeyed.notified();
    orders.before_end.store(true, Ordering::Relaxed);
    tokio::select! {
        () = obeyed => {}
        () = tokio::time::sleep(SAVE_MAX) => {}
        _ = next(signals) => {}
    }
}

/// From now on signals are orders to this run.
pub(super) fn send_to(orders: UnboundedSender<Order>) -> io::Result<()> {
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(orders);
    hear_signals()
}

fn listen() -> io::Result<()> {
    limits::fail_when_exhausted()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _inside = runtime.enter();
        let mut asked = signal(SignalKind::user_defined1())?;
        drop(runtime.spawn(async move {
            while asked.recv().await.is_some() {
                cannot_save();
            }
        }));
        let hangup = if is_hangup_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
        // An interrupt is heard even so: a shell without job control has its background jobs ignore it, and who
        // sends one all the same means it.
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        [
            (Interruption::Interrupt, Some(interrupt)),
            (Interruption::Terminate, Some(terminate)),
            (Interruption::HangUp, hangup),
        ]
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(move || runtime.block_on(obey(signals))).map(drop)
}

/// Whether this process was told to outlive its terminal.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (SignalKind::hangup().as_raw_value() - 1) & 1 == 1)
}

/// Waits until the user wants the end, or the start cannot go on, and says which.
pub(super) async fn ended(orders: &mut UnboundedReceiver<Order>) -> Failure {
    match orders.recv().await {
        Some(Order::Interrupt(by)) => Failure::interrupted(by),
        Some(Order::Fail(failure)) => failure,
        Some(Order::Finish | Order::Abandon) | None => Failure::interrupted(Interruption::Interrupt),
    }
}

/// The three signals, each with what it means; none where it is ignored.
type Heard = [(Interruption, Option<Signal>); 3];

async fn obey(mut signals: Heard) {
    loop {
        let by = next(&mut signals).await;
        if by == Interruption::Terminate {
            save(&mut signals).await;
        }
        let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(orders) = current.filter(|orders| orders.send(Order::Interrupt(by)).is_ok()) else {
            exit(by);
        };
        tokio::select! {
            () = orders.closed() => {}
            again = next(&mut signals) => {
                let _ = orders.send(Order::Abandon);
                let _ = tokio::time::timeout(AT_ONCE, orders.closed()).await;
                exit(again);
            }
        }
    }
}

/// What the next signal means.
async fn next(signals: &mut Heard) -> Interruption {
    let [(interrupt, a), (terminate, b), (hangup, c)] = signals;
    tokio::select! {
        () = arrival(a) => *interrupt,
        () = arrival(b) => *terminate,
        () = arrival(c) => *hangup,
    }
}

async fn arrival(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Ends the process, whatever its other threads wait for.
fn exit(by: Interruption) -> ! {
    socket::remove_all();
    let failure = Failure::interrupted(by);
    let code = i32::from(failure.exit_code());
    let last_words = std::thread::Builder::new().spawn(move || {
        if let Some(restore) = BEFORE_EXIT.get() {
            restore();
        }
        // In one piece, because another thread may end the process meanwhile; and nobody else begins a line that would be cut off.
        let mut words = io::stderr().lock();
        let _ = words.write_all(format!("error: {failure}\n").as_bytes());
        std::process::exit(code);
    });
    if last_words.is_ok() {
        std::thread::sleep(LAST_WORDS);
    }
    std::process::exit(code)
}
