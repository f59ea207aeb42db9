//! What waits to be sent to a peer in one class, and the task that sends it.

use super::QuicFabric;
use super::peer::Peer;
use crate::frame::{Class, Frame};
use crate::transport::framing::{put_body, put_prefix};
use bytes::{Bytes, BytesMut};
use quinn::{Connection, SendStream, WriteError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Attachments up to this size are copied behind their body; larger ones are sent from where they are.
const COPY_MAX_BYTES: usize = 4096;

/// A batch that is longer has several messages: more are on their way, and go better together.
const ALONE_MAX_BYTES: usize = 256;
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
}

#[derive(Default)]
struct Queue {
    chunks: Vec<Bytes>,
    tail: BytesMut,
    /// How many bytes there are in `chunks`.
    chunk_bytes: u64,
}

impl Queue {
    fn len_bytes(&self) -> u64 {
        self.chunk_bytes + self.tail.len() as u64
    }

    fn cut(&mut self) {
        if !self.tail.is_empty() {
            let head = self.tail.split().freeze();
            self.put(head);
        }
    }

    fn put(&mut self, chunk: Bytes) {
        self.chunk_bytes += chunk.len() as u64;
        self.chunks.push(chunk);
    }
}

impl Lane {
    /// Adds a frame, and its bytes to the count `queued`; whether it is the first of a batch, and the task that sends is
    /// to be woken.
    #[must_use]
    pub(super) fn push(&self, frame: Frame, queued: &AtomicU64) -> bool {
        let mut queue = self.lock();
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
        before == 0
    }

    /// As [`push`](Self::push), for a frame without attachments.
    #[must_use]
    pub(super) fn push_body(&self, body: &[u8], queued: &AtomicU64) -> bool {
        let mut queue = self.lock();
        let before = queue.len_bytes();
        put_body(body, &mut queue.tail);
        queued.fetch_add(queue.len_bytes() - before, Ordering::Relaxed);
        before == 0
    }

    fn take<'a>(&self, queued: &'a AtomicU64) -> Batch<'a> {
        let mut queue = self.lock();
        queue.cut();
        queue.chunk_bytes = 0;
        Batch { chunks: std::mem::take(&mut queue.chunks), queued }
    }

    /// Forgets what waits; the task that sends ends.
    pub(super) fn drop_all(&self, queued: &AtomicU64) {
        let mut queue = self.lock();
        queued.fetch_sub(queue.len_bytes(), Ordering::Relaxed);
        *queue = Queue::default();
        drop(queue);
        self.is_finishing.store(true, Ordering::SeqCst);
        self.filled.notify_one();
    }

    /// Waits until everything queued has arrived at the other end. The lane takes no more.
    pub(super) async fn finish(&self) {
        let finished = self.finished.notified();
        self.is_finishing.store(true, Ordering::SeqCst);
        if !self.is_open.load(Ordering::SeqCst) && self.lock().len_bytes() == 0 {
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
