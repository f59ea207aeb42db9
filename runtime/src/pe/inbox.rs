//! Where other threads put envelopes for a PE, and where the PE sleeps when there are none.

use crate::envelope::{Envelope, Packed, Payload, Target};
use crate::priority::Priority;
use crate::proto::snapshot::Colour;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    arrivals: VecDeque<Arrival>,
    /// How many messages there are in all arrivals together.
    count: usize,
    is_asleep: bool,
    /// Whether the PE is to look at the clock.
    is_asked_to_look: bool,
    /// The colour of the message that was put in last.
    colour: Colour,
}

/// What is put into an inbox at once.
#[derive(Debug)]
pub enum Arrival {
    /// One envelope.
    One(Envelope),
    /// Several messages from a link.
    Run(Vec<Incoming>),
    /// No message: the PE is to look at the clock.
    Look,
    /// No message: those behind this have another colour than those before.
    Colour(Colour),
}

/// A message as a link brought it. It becomes an envelope on the thread of its PE: memory that one thread takes and
/// another gives back costs several times as much.
#[derive(Debug)]
pub struct Incoming {
    /// What to do.
    pub target: Target,
    /// How urgent it is.
    pub priority: Priority,
    /// What the message says.
    pub packed: Packed,
    /// Bytes counted in the node's backlog until the PE has dealt with this.
    pub backlog_bytes: u64,
}

impl Arrival {
    /// Passes the envelopes on in their order.
    pub fn open(self, mut take: impl FnMut(Envelope)) {
        match self {
            Self::One(envelope) => take(envelope),
            Self::Run(messages) => messages.into_iter().for_each(|message| take(message.into_envelope())),
            Self::Look | Self::Colour(_) => {}
        }
    }
}

impl Incoming {
    /// Turns the message into the envelope that the PE keeps.
    #[must_use]
    pub fn into_envelope(self) -> Envelope {
        let Self { target, priority, packed, backlog_bytes } = self;
        Envelope { target, priority, payload: Payload::packed(packed), backlog_bytes }
    }
}

impl Inbox {
    /// Somebody else takes what arrives from now on, who expects messages to be white until he is told something else.
    pub fn begins(&self) {
        let mut state = self.lock();
        if state.colour != Colour::default() {
            let colour = state.colour;
            state.arrivals.push_back(Arrival::Colour(colour));
            self.waiting.store(state.count.max(1), Ordering::Release);
        }
    }

    /// Adds an envelope of who sent it in that colour, or of nobody, and wakes the PE if it sleeps.
    pub fn push(&self, colour: Option<Colour>, envelope: Envelope) {
        if envelope.backlog_bytes > 0 {
            self.backlog_bytes.fetch_add(envelope.backlog_bytes, Ordering::Relaxed);
        }
        self.add(colour, Arrival::One(envelope), 1);
    }

    /// Adds messages of one colour in their order, and wakes the PE if it sleeps.
    pub fn push_run(&self, colour: Option<Colour>, messages: Vec<Incoming>) {
        let backlog_bytes = messages.iter().map(|message| message.backlog_bytes).sum();
        self.backlog_bytes.fetch_add(backlog_bytes, Ordering::Relaxed);
        let count = messages.len();
        self.add(colour, Arrival::Run(messages), count);
    }

    /// Has the PE look at the clock before its next message, however few looks it takes of its own accord.
    pub fn ask_to_look(&self) {
        let mut state = self.lock();
        if !std::mem::replace(&mut state.is_asked_to_look, true) {
            state.arrivals.push_back(Arrival::Look);
            self.waiting.store(state.count.max(1), Ordering::Release);
        }
    }

    fn add(&self, colour: Option<Colour>, arrival: Arrival, count: usize) {
        let mut state = self.lock();
        if let Some(colour) = colour.filter(|colour| *colour != state.colour) {
            state.colour = colour;
            state.arrivals.push_back(Arrival::Colour(colour));
        }
        state.arrivals.push_back(arrival);
        state.count += count;
        self.waiting.store(state.count, Ordering::Release);
        if std::mem::take(&mut state.is_asleep) {
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Moves all that has arrived into `into`, in order of arrival; false if there was nothing.
    pub fn take(&self, into: &mut VecDeque<Arrival>) -> bool {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut state = self.lock();
        std::mem::swap(&mut state.arrivals, into);
        (state.count, state.is_asked_to_look) = (0, false);
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

    /// Sleeps until something arrives, for at most `sleep`.
    pub fn sleep(&self, sleep: Duration) {
        let mut state = self.lock();
        if state.arrivals.is_empty() {
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
    use crate::envelope::CollectionId;
    use std::sync::Arc;

    #[test]
    fn who_is_asked_to_look_is_asked_once_and_finds_no_message_more() {
        let (inbox, mut taken) = (Inbox::default(), VecDeque::new());
        (0..3).for_each(|_| inbox.ask_to_look());
        assert!(inbox.take(&mut taken) && matches!(taken.pop_front(), Some(Arrival::Look)));
        assert!(taken.is_empty() && !inbox.take(&mut taken));
        let target = Target::Create(CollectionId(7));
        inbox.push(None, Envelope::new(target, 0, Payload::packed(Packed::default())));
        inbox.ask_to_look();
        assert!(inbox.len() == 1 && inbox.take(&mut taken));
        let mut opened = 0;
        taken.drain(..).for_each(|arrival| arrival.open(|_| opened += 1));
        assert!(opened == 1 && inbox.is_empty());
    }

    #[test]
    fn where_the_colour_changes_is_between_the_messages() {
        let (inbox, mut taken) = (Inbox::default(), VecDeque::new());
        let put = |colour| {
            let target = Target::Create(CollectionId(7));
            inbox.push(colour, Envelope::new(target, 0, Payload::packed(Packed::default())));
        };
        // What has none stands anywhere.
        let (white, red) = (Some(Colour::White), Some(Colour::Red));
        [white, None, red, None, red, white, red].into_iter().for_each(put);
        assert!(inbox.len() == 7 && inbox.take(&mut taken));
        let seen = |arrival: &Arrival| match arrival {
            Arrival::Colour(colour) => Some(*colour),
            _ => None,
        };
        let all: Vec<_> = taken.drain(..).map(|arrival| seen(&arrival)).collect();
        assert_eq!(all, [None, None, red, None, None, None, white, None, red, None]);
        inbox.begins();
        put(red);
        assert!(inbox.take(&mut taken));
        assert_eq!(taken.iter().map(seen).collect::<Vec<_>>(), [red, None]);
    }

    #[test]
    fn nothing_is_lost_and_each_producer_keeps_its_order() {
        const EACH: u64 = 20_000;
        let inbox = Arc::new(Inbox::default());
        let producers: Vec<_> = (0..4u64)
            .map(|p| {
                let inbox = Arc::clone(&inbox);
                std::thread::spawn(move || {
                    let target = |n| Target::Create(CollectionId(p << 32 | n));
                    let incoming = |n| Incoming {
                        target: target(n),
                        priority: Priority::ORDINARY,
                        packed: Packed::default(),
                        backlog_bytes: 1,
                    };
                    for n in (0..EACH).step_by(5) {
                        let payload = Payload::packed(Packed::default());
                        inbox.push(None, Envelope::new(target(n), 0, payload));
                        inbox.push_run(None, (n + 1..n + 5).map(incoming).collect());
                    }
                })
            })
            .collect();
        let (mut next, mut batch, mut total) = ([0; 4], VecDeque::new(), 0);
        while total < 4 * EACH {
            inbox.sleep(Duration::from_secs(5));
            assert!(inbox.take(&mut batch), "woken or timed out without an envelope");
            let before = total;
            batch.drain(..).for_each(|arrival: Arrival| {
                arrival.open(|envelope| {
                    let Target::Create(CollectionId(slot)) = envelope.target else {
                        panic!("another target came out")
                    };
                    let producer = usize::try_from(slot >> 32).unwrap();
                    assert_eq!(slot & 0xffff_ffff, next[producer]);
                    next[producer] += 1;
                    total += 1;
                });
            });
            assert!(total > before, "what was taken holds something");
        }
        producers.into_iter().for_each(|p| p.join().unwrap());
        assert_eq!((inbox.len(), inbox.backlog_bytes()), (0, 4 * EACH / 5 * 4));
    }
}
