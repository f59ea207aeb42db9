//! Where other threads put envelopes for a PE, and where the PE sleeps when there are none.

use crate::envelope::Envelope;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a spinning PE looks for envelopes between two looks at the clock, which take longer.
const LOOKS: u32 = 16;

/// Many producers, one consumer. A lock held for a push or a swap is cheaper here than it looks: the
/// consumer takes everything at once, so that under load one lock serves many messages. Its own cache lines keep
/// it apart from the inbox of the next PE.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Inbox {
    waiting: AtomicUsize,
    /// Bytes that came by links and that the PE has not dealt with.
    backlog_bytes: AtomicU64,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    envelopes: VecDeque<Envelope>,
    is_asleep: bool,
}

impl Inbox {
    /// Adds an envelope and wakes the PE if it sleeps.
    pub fn push(&self, envelope: Envelope) {
        if envelope.backlog_bytes > 0 {
            self.backlog_bytes.fetch_add(envelope.backlog_bytes, Ordering::Relaxed);
        }
        let mut state = self.lock();
        state.envelopes.push_back(envelope);
        self.waiting.store(state.envelopes.len(), Ordering::Release);
        if std::mem::take(&mut state.is_asleep) {
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Adds envelopes in their order, and wakes the PE if it sleeps.
    pub fn push_all(&self, envelopes: &mut Vec<Envelope>) {
        let backlog_bytes = envelopes.iter().map(|envelope| envelope.backlog_bytes).sum();
        self.backlog_bytes.fetch_add(backlog_bytes, Ordering::Relaxed);
        let mut state = self.lock();
        state.envelopes.extend(envelopes.drain(..));
        self.waiting.store(state.envelopes.len(), Ordering::Release);
        if std::mem::take(&mut state.is_asleep) {
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Moves all that has arrived into `into`, in order of arrival; false if there was nothing.
    pub fn take(&self, into: &mut VecDeque<Envelope>) -> bool {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut state = self.lock();
        std::mem::swap(&mut state.envelopes, into);
        self.waiting.store(0, Ordering::Release);
        true
    }

    /// Bytes that came by links and that the PE has not dealt with, taken or not.
    #[must_use]
    pub fn backlog_bytes(&self) -> u64 {
        self.backlog_bytes.load(Ordering::Relaxed)
    }

    /// The PE has dealt with an envelope of so many bytes that came by a link.
    pub fn dealt_with(&self, backlog_bytes: u64) {
        self.backlog_bytes.fetch_sub(backlog_bytes, Ordering::Relaxed);
    }

    /// Count of envelopes not yet taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Whether nothing has arrived.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Spins for `spin`, then sleeps for at most `sleep`, until something arrives.
    pub fn wait(&self, spin: Duration, sleep: Duration) {
        if !spin.is_zero() {
            let start = Instant::now();
            while start.elapsed() < spin {
                for _ in 0..LOOKS {
                    if !self.is_empty() {
                        return;
                    }
                    std::hint::spin_loop();
                }
            }
        }
        let mut state = self.lock();
        if state.envelopes.is_empty() {
            state.is_asleep = true;
            let (mut state, _) = self.wake.wait_timeout(state, sleep).unwrap_or_else(PoisonError::into_inner);
            state.is_asleep = false;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{Packed, Payload, Target};
    use std::sync::Arc;

    #[test]
    fn nothing_is_lost_and_each_producer_keeps_its_order() {
        const EACH: u64 = 20_000;
        let inbox = Arc::new(Inbox::default());
        let producers: Vec<_> = (0..4u64)
            .map(|p| {
                let inbox = Arc::clone(&inbox);
                std::thread::spawn(move || {
                    for n in 0..EACH {
                        let payload = Payload::packed(Packed::default());
                        inbox.push(Envelope::new(Target::Slot(p << 32 | n), 0, payload));
                    }
                })
            })
            .collect();
        let (mut next, mut batch, mut total) = ([0; 4], VecDeque::new(), 0);
        while total < 4 * EACH {
            inbox.wait(Duration::ZERO, Duration::from_secs(5));
            assert!(inbox.take(&mut batch), "woken or timed out without an envelope");
            for envelope in batch.drain(..) {
                let Target::Slot(slot) = envelope.target else { panic!("another target came out") };
                let producer = usize::try_from(slot >> 32).unwrap();
                assert_eq!(slot & 0xffff_ffff, next[producer]);
                next[producer] += 1;
                total += 1;
            }
        }
        producers.into_iter().for_each(|p| p.join().unwrap());
    }
}
