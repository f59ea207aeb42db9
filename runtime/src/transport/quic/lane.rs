//! What waits to be sent to a peer in one class, and the task that sends it.

use super::QuicFabric;
use super::near::Near;
use super::peer::Peer;
use crate::frame::{Class, Frame};
use crate::transport::framing::{body_prefix, put_prefix};
use crate::transport::shared::{Damaged, Producer};
use bytes::{Buf as _, Bytes, BytesMut};
use quinn::{Connection, SendStream, WriteError};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Attachments up to this size are copied behind their body; larger ones are sent from where they are.
const COPY_MAX_BYTES: usize = 4096;

/// A batch that is longer has several messages: more are on their way, and go better together.
const ALONE_MAX_BYTES: usize = 256;
/// Long chunks go into shared memory in such pieces, so that the other end takes the first while the next is put in.
const PIECE_BYTES: usize = 64 << 10;
/// Of a PE's short messages that follow each other within this time the other end is told together, or after so many
/// bytes: to tell it of each costs more than all else, since both then use one cache line.
const BURST: Duration = Duration::from_micros(1);
const BURST_BYTES: u64 = 2 << 10;
/// While messages wait for room in shared memory, whoever sends looks after each so many bytes whether there is some.
const PUMP_EVERY_BYTES: u64 = 16 << 10;
/// Turns of the network thread for which a stream of messages then gathers. A thread that does not sleep would send each
/// few of them by themselves, at half the rate.
const TURNS: usize = 8;

/// The queue of one class. Under load frames coalesce by themselves: whatever gathered while the last
/// write was under way goes out with the next.
#[derive(Default)]
pub(super) struct Lane {
    queue: Mutex<Queue>,
    /// The task that sends waits for this.
    pub(super) filled: Arc<Notify>,
    is_finishing: AtomicBool,
    finished: Notify,
    is_open: AtomicBool,
    is_parted: AtomicBool,
    /// What waits has no room in the memory that is shared with the other end.
    lacks_room: AtomicBool,
}

#[derive(Default)]
struct Queue {
    chunks: VecDeque<Bytes>,
    tail: BytesMut,
    /// How many bytes there are in `chunks`.
    chunk_bytes: u64,
    /// How many frames were ever put in.
    frames: u64,
    /// The way through shared memory, once there is one.
    near: Option<Out>,
    /// What was put in before, which goes by QUIC.
    first: Vec<Bytes>,
}

/// The end of a ring, and who is at its other one.
struct Out {
    ring: Producer,
    near: Arc<Near>,
    /// When the other end was last told of a message alone.
    told: Option<Instant>,
}

impl Out {
    fn show(&mut self) {
        self.ring.show();
        self.near.has_put();
    }

    /// Whether the other end need not be told yet of what was put in last.
    fn may_wait(&mut self) -> bool {
        let now = Instant::now();
        let is_burst = self.told.is_some_and(|told| now - told < BURST);
        let waits = is_burst && self.ring.unshown() < BURST_BYTES;
        if !waits {
            self.told = Some(now);
        }
        waits
    }
}

impl Queue {
    fn len_bytes(&self) -> u64 {
        self.chunk_bytes + self.tail.len() as u64
    }

    fn waits_for_quic(&self) -> usize {
        if self.near.is_some() { self.first.len() } else { self.chunks.len() + self.tail.len() }
    }

    fn cut(&mut self) {
        if !self.tail.is_empty() {
            let head = self.tail.split().freeze();
            self.put(head);
        }
    }

    fn put(&mut self, chunk: Bytes) {
        self.chunk_bytes += chunk.len() as u64;
        self.chunks.push_back(chunk);
    }

    /// What goes by QUIC.
    fn take(&mut self) -> Vec<Bytes> {
        if self.near.is_some() {
            return std::mem::take(&mut self.first);
        }
        self.cut();
        self.chunk_bytes = 0;
        std::mem::take(&mut self.chunks).into()
    }

    /// Whether a frame without attachments went into shared memory, because nothing waits and there is room.
    fn put_near(&mut self, body: &[u8], prefix: &[u8], may_wait: bool) -> bool {
        let len = prefix.len() + body.len();
        if self.len_bytes() > 0 {
            return false;
        }
        let Some(out) = &mut self.near else { return false };
        let put = out.ring.room(len).and_then(|room| {
            let fits = room >= len;
            if fits {
                out.ring.put(prefix)?;
                out.ring.put(body)?;
            }
            Ok(fits)
        });
        match put {
            Ok(true) if may_wait && out.may_wait() => out.near.has_untold(),
            Ok(true) => out.show(),
            Ok(false) => {}
            Err(damaged) => out.near.is_damaged(damaged),
        }
        matches!(put, Ok(true))
    }

    /// Puts as much of what waits into shared memory as there is room for; how many bytes.
    fn pump(&mut self) -> Result<u64, Damaged> {
        self.cut();
        let Some(out) = &mut self.near else { return Ok(0) };
        let mut moved = 0;
        while let Some(chunk) = self.chunks.front_mut() {
            let piece = chunk.len().min(PIECE_BYTES);
            let put = out.ring.put(&chunk[..piece])?;
            if put == 0 {
                break;
            }
            out.show();
            chunk.advance(put);
            moved += put as u64;
            if chunk.is_empty() {
                self.chunks.pop_front();
            }
        }
        self.chunk_bytes -= moved;
        Ok(moved)
    }
}

impl Lane {
    /// Adds a frame, and its bytes to the count `queued`; whether it is the first of a batch, and the task that sends is
    /// to be woken.
    #[must_use]
    pub(super) fn push(&self, frame: Frame, queued: &AtomicU64) -> bool {
        if frame.attachments.is_empty() {
            return self.push_body(&frame.body, queued, false);
        }
        let mut queue = self.lock();
        queue.frames += 1;
        let before = queue.len_bytes();
        put_prefix(&frame, &mut queue.tail);
        queue.tail.extend_from_slice(&frame.body);
        for attachment in frame.attachments {
            if attachment.len() <= COPY_MAX_BYTES {
                queue.tail.extend_from_slice(attachment.bytes());
            } else {
                queue.cut();
                queue.put(Bytes::from_owner(attachment));
            }
        }
        let added = queue.len_bytes() - before;
        // The count is raised while the queue is locked, so that nobody lowers it before.
        queued.fetch_add(added, Ordering::Relaxed);
        !self.goes_near(&mut queue, before, queued) && before == 0
    }

    /// As [`push`](Self::push), for a frame without attachments. If it `may_wait`, whoever calls this calls
    /// [`tell`](Self::tell) soon.
    #[must_use]
    pub(super) fn push_body(&self, body: &[u8], queued: &AtomicU64, may_wait: bool) -> bool {
        let mut queue = self.lock();
        queue.frames += 1;
        let prefix = body_prefix(body);
        if queue.put_near(body, &prefix, may_wait) {
            return false;
        }
        let before = queue.len_bytes();
        queue.tail.extend_from_slice(&prefix);
        queue.tail.extend_from_slice(body);
        queued.fetch_add(queue.len_bytes() - before, Ordering::Relaxed);
        !self.goes_near(&mut queue, before, queued) && before == 0
    }

    /// Puts into shared memory what has room there, now and then where nothing had `before`; false if the lane goes by QUIC.
    fn goes_near(&self, queue: &mut Queue, before: u64, queued: &AtomicU64) -> bool {
        let is_near = queue.near.is_some();
        let is_due = before == 0 || before / PUMP_EVERY_BYTES != queue.len_bytes() / PUMP_EVERY_BYTES;
        if is_near && is_due {
            self.pump_queue(queue, queued);
        }
        is_near
    }

    fn pump_queue(&self, queue: &mut Queue, queued: &AtomicU64) -> bool {
        let moved = match (queue.pump(), &queue.near) {
            (Ok(moved), _) => moved,
            (Err(damaged), Some(out)) => {
                out.near.is_damaged(damaged);
                0
            }
            (Err(_), None) => 0,
        };
        queued.fetch_sub(moved, Ordering::Relaxed);
        // Whoever is about to sleep has said so before it reads this, or is told afterwards.
        self.lacks_room.store(queue.len_bytes() > 0, Ordering::SeqCst);
        moved > 0
    }

    /// Tells the other end of all that is in shared memory.
    pub(super) fn tell(&self) {
        if let Some(out) = &mut self.lock().near
            && out.ring.unshown() > 0
        {
            out.show();
        }
    }

    /// Whether something waits for room in shared memory.
    pub(super) fn lacks_room(&self) -> bool {
        self.lacks_room.load(Ordering::SeqCst)
    }

    /// Puts what waits into shared memory, unless another thread is about it; whether anything had room.
    pub(super) fn pump(&self, queued: &AtomicU64) -> bool {
        match self.queue.try_lock() {
            Ok(mut queue) => self.pump_queue(&mut queue, queued),
            Err(_) => false,
        }
    }

    /// What is pushed from now on goes through shared memory. The first that the other end reads there is how many frames
    /// it gets by QUIC before.
    pub(super) fn go_near(&self, mut ring: Producer, near: &Arc<Near>) {
        let mut queue = self.lock();
        queue.first = queue.take();
        // The ring is empty, so there is room.
        if let Err(damaged) = ring.put(&queue.frames.to_le_bytes()) {
            near.is_damaged(damaged);
        }
        let mut out = Out { ring, near: Arc::clone(near), told: None };
        out.show();
        queue.near = Some(out);
    }

    /// Whether the other end has taken all that went through shared memory.
    pub(super) fn is_taken(&self) -> bool {
        let mut queue = self.lock();
        queue.len_bytes() == 0 && queue.near.as_mut().is_none_or(|out| out.ring.is_empty() != Ok(false))
    }

    fn take<'a>(&self, queued: &'a AtomicU64) -> Batch<'a> {
        Batch { chunks: self.lock().take(), queued }
    }

    /// Forgets what waits; the task that sends ends.
    pub(super) fn drop_all(&self, queued: &AtomicU64) {
        let mut queue = self.lock();
        let first: u64 = queue.first.iter().map(|chunk| chunk.len() as u64).sum();
        queued.fetch_sub(queue.len_bytes() + first, Ordering::Relaxed);
        *queue = Queue::default();
        self.lacks_room.store(false, Ordering::Relaxed);
        drop(queue);
        self.is_finishing.store(true, Ordering::SeqCst);
        self.filled.notify_one();
    }

    /// Waits until everything queued has arrived at the other end. The lane takes no more.
    pub(super) async fn finish(&self) {
        let finished = self.finished.notified();
        self.is_finishing.store(true, Ordering::SeqCst);
        if !self.is_open.load(Ordering::SeqCst) && self.lock().waits_for_quic() == 0 {
            return;
        }
        self.filled.notify_one();
        finished.await;
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its connection was closed as idle: the task that sends lets go of it, and of the memory that it takes.
    pub(super) fn part(&self) {
        self.is_parted.store(true, Ordering::SeqCst);
        self.filled.notify_one();
    }

    /// What gathered since the last time, when something has, or the connection was closed as idle; nothing once the
    /// lane is finished.
    async fn next<'a>(&self, queued: &'a AtomicU64) -> Option<Batch<'a>> {
        loop {
            let batch = self.take(queued);
            if !batch.chunks.is_empty() || self.is_parted.swap(false, Ordering::SeqCst) {
                return Some(batch);
            }
            if self.is_finishing.load(Ordering::SeqCst) {
                return None;
            }
            self.filled.notified().await;
        }
    }
}

/// Sends what comes into a lane, until the link breaks or the fabric closes.
pub(super) async fn empty(fabric: &Arc<QuicFabric>, peer: &Arc<Peer>, class: Class) {
    let lane = &peer.lanes[class as usize];
    if let Err(reason) = send_all(fabric, peer, lane, class).await {
        fabric.lost(peer, reason);
    }
    lane.is_open.store(false, Ordering::SeqCst);
    lane.finished.notify_waiters();
}

async fn send_all(
    fabric: &Arc<QuicFabric>,
    peer: &Arc<Peer>,
    lane: &Lane,
    class: Class,
) -> Result<(), String> {
    let (mut opened, mut doubts) = (None, 0);
    while let Some(mut batch) = lane.next(&peer.queued_bytes).await {
        if let Some((connection, _)) = &opened
            && !peer.keeps(connection, &mut doubts).await
        {
            opened = None;
        }
        if batch.chunks.is_empty() {
            continue;
        }
        if opened.is_none() {
            lane.is_open.store(true, Ordering::SeqCst);
            doubts = peer.doubts();
            opened = open(fabric, peer, class).await?;
            batch.begin_with(class as u8);
        }
        let Some((_, stream)) = &mut opened else { return Ok(()) };
        let is_stream = class == Class::Small && batch.len_bytes() > ALONE_MAX_BYTES;
        match batch.write(stream).await {
            Ok(()) => {}
            Err(WriteError::ConnectionLost(_)) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
        for _ in 0..if is_stream { TURNS } else { 0 } {
            tokio::task::yield_now().await;
        }
    }
    let Some((_, mut stream)) = opened else { return Ok(()) };
    // An error says that the connection is over, then nothing is left to wait for.
    let _ = stream.finish();
    let _ = stream.stopped().await;
    Ok(())
}

/// A stream for a class, on whatever connection there is or can be made; `None` if that has just ended.
async fn open(
    fabric: &Arc<QuicFabric>,
    peer: &Arc<Peer>,
    class: Class,
) -> Result<Option<(Connection, SendStream)>, String> {
    let connection = fabric.connection(peer).await.map_err(|e| e.to_string())?;
    // Why a connection ended is known to `read_all`, which reports it.
    let Ok(stream) = connection.open_uni().await else { return Ok(None) };
    // This fails only if the stream is closed, which the next write finds out.
    let _ = stream.set_priority(priority(class));
    Ok(Some((connection, stream)))
}

/// What was taken from a lane to be written together, counted off as it goes, or when it is given up.
struct Batch<'a> {
    chunks: Vec<Bytes>,
    queued: &'a AtomicU64,
}

impl Batch<'_> {
    fn begin_with(&mut self, byte: u8) {
        self.queued.fetch_add(1, Ordering::Relaxed);
        self.chunks.insert(0, Bytes::copy_from_slice(&[byte]));
    }

    fn len_bytes(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum()
    }

    /// Hands the chunks to QUIC as fast as its windows permit.
    async fn write(&mut self, stream: &mut SendStream) -> Result<(), WriteError> {
        let mut at = 0;
        while at < self.chunks.len() {
            // QUIC leaves in each chunk what it did not take.
            let written = stream.write_chunks(&mut self.chunks[at..]).await?;
            self.queued.fetch_sub(written.bytes as u64, Ordering::Relaxed);
            at += written.chunks;
        }
        Ok(())
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let left = self.chunks.iter().map(|chunk| chunk.len() as u64).sum();
        self.queued.fetch_sub(left, Ordering::Relaxed);
    }
}

fn priority(class: Class) -> i32 {
    match class {
        Class::Control => 2,
        Class::Small => 1,
        Class::Large => 0,
    }
}
