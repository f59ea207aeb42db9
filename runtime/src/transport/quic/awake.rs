//! Keeps the network thread awake for a moment after traffic, while nobody else wants its core.
//!
//! To wake a sleeping thread takes longer than all else that happens to a short message on its way; an answer mostly
//! comes soon after its question.

use crate::spin::{Spin, Watch};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;
use tokio::sync::Notify;

/// The socket reports traffic here.
#[derive(Debug, Default)]
pub(super) struct Awake {
    spin: OnceLock<Arc<Spin>>,
    has_traffic: AtomicBool,
    is_asleep: AtomicBool,
    began: Arc<Notify>,
}

impl Awake {
    /// Begins to look after the network thread, in whose runtime this must be called; until it is told for how long,
    /// the thread sleeps as soon as it can.
    pub(super) fn start() -> Arc<Self> {
        let this = Arc::new(Self::default());
        tokio::spawn(keep(Arc::downgrade(&this), Arc::clone(&this.began)));
        this
    }

    /// Sets how long the thread stays awake after the last traffic.
    pub(super) fn stay_for(&self, spin: &Arc<Spin>) {
        if self.spin.set(Arc::clone(spin)).is_err() {
            tracing::error!("the network thread was told twice for how long it stays awake");
        }
    }

    /// Reports that a packet has arrived or left.
    pub(super) fn traffic(&self) {
        if self.spin.get().is_some_and(|spin| spin.is_ever()) {
            self.has_traffic.store(true, Ordering::Relaxed);
            if self.is_asleep.load(Ordering::Relaxed) {
                self.began.notify_one();
            }
        }
    }

    /// Whether the thread is to stay awake, as the last traffic was at `last`.
    fn stays(&self, last: &mut Instant, watch: &mut Option<Watch>) -> bool {
        if self.has_traffic.swap(false, Ordering::Relaxed) {
            *last = Instant::now();
        }
        if watch.is_none() {
            *watch = self.spin.get().map(Watch::new);
        }
        watch.as_mut().is_some_and(|watch| watch.stays_awake(*last))
    }

    fn sleeps(&self, is_asleep: bool) {
        self.is_asleep.store(is_asleep, Ordering::Relaxed);
    }
}

/// Runs until nobody can report traffic any more.
async fn keep(awake: Weak<Awake>, began: Arc<Notify>) {
    let set_asleep = |is_asleep| awake.upgrade().map(|awake| awake.sleeps(is_asleep));
    let mut watch = None;
    while set_asleep(true).is_some() {
        began.notified().await;
        set_asleep(false);
        let mut last = Instant::now();
        while awake.upgrade().is_some_and(|awake| awake.stays(&mut last, &mut watch)) {
            // Whatever is ready runs, and the system is asked for packets without waiting for any.
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.began.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn it_sleeps_unless_it_was_told_and_there_is_traffic() {
        let awake = Awake::start();
        tokio::task::yield_now().await;
        let is_asleep = || awake.is_asleep.load(Ordering::Relaxed);
        awake.traffic();
        tokio::task::yield_now().await;
        assert!(is_asleep(), "it was not told for how long");
        awake.stay_for(&Spin::new(Duration::from_millis(100)));
        tokio::task::yield_now().await;
        assert!(is_asleep(), "there was no traffic");
        awake.traffic();
        while is_asleep() {
            tokio::task::yield_now().await;
        }
        while !is_asleep() {
            tokio::task::yield_now().await;
        }
    }
}
