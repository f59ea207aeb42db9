//! What waits to be sent to a peer in one class, and the task that sends it.

use super::{Peer, QuicFabric};
use crate::frame::{Class, Frame};
use crate::transport::framing::put_prefix;
use bytes::{Bytes, BytesMut};
use quinn::WriteError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Attachments up to this size are copied behind their body; larger ones are sent from where they are.
const COPY_MAX_BYTES: usize = 4096;

/// The queue of one class. Under load frames coalesce by themselves: whatever gathered while the last
/// write was under way goes out with the next.
#[derive(Default)]
pub(super) struct Lane {
    queue: Mutex<Queue>,
    filled: Notify,
    is_finishing: AtomicBool,
    finished: Notify,
    is_open: AtomicBool,
}

#[derive(Default)]
struct Queue {
    chunks: Vec<Bytes>,
    tail: BytesMut,
    bytes: u64,
}

impl Lane {
    /// Adds a frame; says how many bytes wait now.
    pub(super) fn push(&self, frame: Frame) -> u64 {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = queue.bytes == 0;
        queue.bytes += frame.len_bytes() as u64 + 6;
        put_prefix(&frame, &mut queue.tail);
        queue.tail.extend_from_slice(&frame.body);
        for attachment in frame.attachments {
            if attachment.len() <= COPY_MAX_BYTES {
                queue.tail.extend_from_slice(attachment.bytes());
            } else {
                let head = queue.tail.split().freeze();
                queue.chunks.push(head);
                queue.chunks.push(Bytes::from_owner(attachment));
            }
        }
        let bytes = queue.bytes;
        drop(queue);
        if was_empty {
            self.filled.notify_one();
        }
        bytes
    }

    fn take(&self) -> Vec<Bytes> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.bytes = 0;
        let mut chunks = std::mem::take(&mut queue.chunks);
        if !queue.tail.is_empty() {
            chunks.push(queue.tail.split().freeze());
        }
        chunks
    }

    /// Waits until everything queued has arrived at the other end. The lane takes no more.
    pub(super) async fn finish(&self) {
        self.is_finishing.store(true, Ordering::SeqCst);
        let finished = self.finished.notified();
        if !self.is_open.load(Ordering::SeqCst) && self.queue_is_empty() {
            return;
        }
        self.filled.notify_one();
        finished.await;
    }

    fn queue_is_empty(&self) -> bool {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).bytes == 0
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
    let mut chunks = lane.take();
    while chunks.is_empty() {
        if lane.is_finishing.load(Ordering::SeqCst) {
            return Ok(());
        }
        lane.filled.notified().await;
        chunks = lane.take();
    }
    lane.is_open.store(true, Ordering::SeqCst);
    let connection = fabric.connection(peer).await.map_err(|e| e.to_string())?;
    // Why a connection ended is known to `read_all`, which reports it.
    let Ok(mut stream) = connection.open_uni().await else { return Ok(()) };
    let _ = stream.set_priority(priority(class));
    chunks.insert(0, Bytes::copy_from_slice(&[class as u8]));
    loop {
        match stream.write_all_chunks(&mut chunks).await {
            Ok(()) => {}
            Err(WriteError::ConnectionLost(_)) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
        chunks = lane.take();
        while chunks.is_empty() {
            if lane.is_finishing.load(Ordering::SeqCst) {
                let _ = stream.finish();
                let _ = stream.stopped().await;
                return Ok(());
            }
            lane.filled.notified().await;
            chunks = lane.take();
        }
    }
}

fn priority(class: Class) -> i32 {
    match class {
        Class::Control => 2,
        Class::Small => 1,
        Class::Bulk => 0,
    }
}
