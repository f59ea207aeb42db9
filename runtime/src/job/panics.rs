//! What follows when a task of the network panics. Tokio goes on then, but the network would be dumb or deaf without that task, and
//! others would wait until they took its silence for death, or for ever.

use super::order::Order;
use crate::failure::{Failure, Kind};
use crate::{launch, progress};
use std::cell::RefCell;
use std::panic::PanicHookInfo;
use std::sync::Once;
use tokio::sync::mpsc::WeakUnboundedSender;

/// Ends this process, a node, whose launcher tells what it says. What chares do is not among that: a PE catches it.
pub(super) fn end_this_node() {
    hear(|_| {
        if progress::has_turn() {
            std::process::exit(launch::PANICKED_CODE);
        }
    });
}

thread_local! {
    /// Who ends the run whose network this thread is.
    static ENDS: RefCell<Option<WeakUnboundedSender<Order>>> = const { RefCell::new(None) };
}

/// Ends the run whose launcher has its network in this thread, in good order, when something panics in it.
pub(super) fn end_the_run_by(orders: WeakUnboundedSender<Order>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        hear(|info| {
            let orders = ENDS.try_with(|ends| ends.borrow().as_ref()?.upgrade());
            if let Ok(Some(orders)) = orders {
                let place = info.location().map_or_else(String::new, |place| format!(" at {place}"));
                let sentence = format!(
                    "the launcher's network panicked{place}, which is a fault of this program: it has printed why"
                );
                // Without anybody who takes orders, the run is ending already.
                let _ = orders.send(Order::Fail(Failure::new(Kind::Failed, sentence)));
            }
        });
    });
    ENDS.set(Some(orders));
}

/// Has what panics heard, after it has been printed.
fn hear(heard: impl Fn(&PanicHookInfo<'_>) + Send + Sync + 'static) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        before(info);
        heard(info);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::unbounded_channel;

    #[test]
    fn a_task_of_a_launchers_network_that_panics_ends_its_run_and_no_other() {
        let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let network = |panics: bool| {
            std::thread::spawn(move || {
                let (orders, mut inbox) = unbounded_channel();
                end_the_run_by(orders.downgrade());
                runtime().block_on(async {
                    let task =
                        tokio::spawn(async move { assert!(!panics, "a task of the network has panicked") });
                    assert_eq!(task.await.is_err(), panics);
                });
                inbox.try_recv().ok()
            })
        };
        let other = std::thread::spawn(|| panic!("a thread of no network has panicked"));
        assert!(other.join().is_err());
        assert!(network(false).join().unwrap().is_none());
        let Some(Order::Fail(failure)) = network(true).join().unwrap() else { panic!("the run goes on") };
        assert_eq!(failure.kind, Kind::Failed);
        assert!(failure.sentence.contains("panics.rs:"), "{failure}");
    }
}
