//! Signals to the launcher: the first ends the run in good order, the second at once. A signal when no run is on,
//! such as while a blocked terminal keeps the report from being written, ends the process.

use super::launcher::Order;
use crate::monitor::socket;
use std::io::{self, Write as _};
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;

/// How long an end at once may take.
const AT_ONCE: Duration = Duration::from_millis(1500);
/// How long the last words may take; whoever reads standard error may be stopped.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Whom signals are for: they belong to the process, and so does this.
static CURRENT: Mutex<Option<UnboundedSender<Order>>> = Mutex::new(None);
static LISTENING: Once = Once::new();
static BEFORE_EXIT: OnceLock<fn()> = OnceLock::new();

/// Has `restore` called before the process ends at once because the user insists, e.g. to give a terminal back.
/// Only the first call counts.
pub fn before_exit_at_once(restore: fn()) {
    let _ = BEFORE_EXIT.set(restore);
}

/// From now on signals are orders to this run.
pub(super) fn send_to(orders: UnboundedSender<Order>) -> io::Result<()> {
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(orders);
    let mut outcome = Ok(());
    LISTENING.call_once(|| outcome = listen());
    outcome
}

fn listen() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _inside = runtime.enter();
        [
            (130, signal(SignalKind::interrupt())?),
            (143, signal(SignalKind::terminate())?),
            (129, signal(SignalKind::hangup())?),
        ]
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(move || runtime.block_on(obey(signals))).map(drop)
}

async fn obey(mut signals: [(u8, Signal); 3]) {
    loop {
        let code = next(&mut signals).await;
        let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(orders) = current.filter(|orders| orders.send(Order::Interrupt(code)).is_ok()) else {
            exit(code);
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

/// The exit code for the next signal.
async fn next(signals: &mut [(u8, Signal); 3]) -> u8 {
    let [(interrupt, a), (terminate, b), (hangup, c)] = signals;
    tokio::select! {
        _ = a.recv() => *interrupt,
        _ = b.recv() => *terminate,
        _ = c.recv() => *hangup,
    }
}

/// Ends the process, whatever its other threads wait for.
fn exit(code: u8) -> ! {
    socket::remove_all();
    let last_words = std::thread::Builder::new().spawn(move || {
        if let Some(restore) = BEFORE_EXIT.get() {
            restore();
        }
        let _ = writeln!(io::stderr(), "error: {}", sentence(code));
        std::process::exit(i32::from(code));
    });
    if last_words.is_ok() {
        std::thread::sleep(LAST_WORDS);
    }
    std::process::exit(i32::from(code))
}

/// What a run that a signal ended says.
pub(super) fn sentence(code: u8) -> &'static str {
    match code {
        129 => "the terminal was closed (SIGHUP)",
        130 => "interrupted",
        _ => "ended by SIGTERM",
    }
}
