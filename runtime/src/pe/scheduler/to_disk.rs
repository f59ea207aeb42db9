//! A thread that writes what a PE has filled, while the PE's other thread fills the next.

use crate::codec::ControlToLauncher;
use crate::digest::{CHUNK_BYTES, WrittenChunk, chunk_of};
use crate::ids::PeId;
use crate::node::Node;
use crate::saved::{FoundWriting, PAGE_BYTES, StoreChunks, WriteHere};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// So much is written at once: long beside what it takes to ask for room, short beside the memory of any host.
pub(super) const BATCH_BYTES: usize = 4 << 20;

/// Bytes that go to one extent.
#[derive(Default)]
pub(super) struct Batch {
    /// What it consists of begins at a page.
    memory: Vec<u8>,
    begin: usize,
    /// Which record and which value of it each chunk is of; offsets are in these bytes.
    pub(super) chunks: Vec<(u64, usize, WrittenChunk)>,
}

impl Batch {
    /// Adds a chunk of a value of a record, as it is stored.
    pub(super) fn add(
        &mut self,
        record: u64,
        (value, number): (usize, u32),
        bytes: &[u8],
        stored: &mut dyn StoreChunks,
    ) {
        if self.memory.is_empty() {
            // All of it at once, because what has been moved begins elsewhere.
            self.memory.reserve_exact(BATCH_BYTES + CHUNK_BYTES + 2 * PAGE_BYTES);
            self.begin = self.memory.as_ptr().align_offset(PAGE_BYTES);
            self.memory.resize(self.begin, 0);
        }
        let Range { start, end } = chunk_of(bytes.len() as u64, number);
        let offset = self.bytes().len();
        let is_compressed = stored.append(&bytes[start as usize..end as usize], &mut self.memory);
        let stored_bytes = (self.bytes().len() - offset) as u32;
        let written = WrittenChunk { number, offset: offset as u64, stored_bytes, is_compressed };
        self.chunks.push((record, value, written));
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.begin..]
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes().len() >= BATCH_BYTES
    }

    /// Makes whole pages of it.
    fn pad(&mut self) {
        let padded = self.begin + self.bytes().len().next_multiple_of(PAGE_BYTES);
        self.memory.resize(padded, 0);
    }

    /// Its memory, for another one.
    pub(super) fn emptied(mut self) -> Self {
        self.memory.clear();
        self.chunks.clear();
        Self { begin: 0, ..self }
    }
}

/// Where a batch was written; or why it could not be, and nothing if it may not.
type Written = Result<u64, Option<String>>;

/// The thread that writes to the file.
pub(super) struct ToDisk {
    /// How what is to be written is stored.
    pub(super) stored: Box<dyn StoreChunks>,
    batches: Sender<Batch>,
    written: Receiver<(Batch, Written)>,
    is_writing: bool,
    thread: JoinHandle<bool>,
}

impl ToDisk {
    /// For one PE and one checkpoint; nothing if the system has no thread for it.
    pub(super) fn begin(
        node: &Arc<Node>,
        (pe, checkpoint): (PeId, u32),
        (stored, mut file): FoundWriting,
    ) -> Option<Self> {
        let ((batches, given), (to_tell, written)) = (channel::<Batch>(), channel());
        let node = Arc::clone(node);
        let work = move || {
            let mut has_written = false;
            for mut batch in given {
                batch.pad();
                let done = write(&node, (pe, checkpoint), batch.bytes(), &mut *file);
                has_written |= done.is_ok();
                if to_tell.send((batch, done)).is_err() {
                    break;
                }
            }
            let synced = if has_written { file.sync().map_err(|error| error.to_string()) } else { Ok(()) };
            let is_there = synced.is_ok();
            if has_written {
                node.tell_launcher(ControlToLauncher::Wrote(pe, checkpoint, synced));
            }
            is_there
        };
        let thread = thread::Builder::new().name("to disk".into()).spawn(work).ok()?;
        Some(Self { stored, batches, written, is_writing: false, thread })
    }

    /// Has a batch written, of which then is to be [asked](Self::written).
    pub(super) fn write(&mut self, batch: Batch) {
        self.is_writing = self.batches.send(batch).is_ok();
    }

    /// The batch that is being written, as soon as it is; nothing if there is none.
    pub(super) fn written(&mut self) -> Option<(Batch, Written)> {
        let was_writing = std::mem::take(&mut self.is_writing);
        // A thread that has panicked has written nothing.
        let failed = || (Batch::default(), Err(Some("the thread that writes panicked".into())));
        was_writing.then(|| self.written.recv().unwrap_or_else(|_| failed()))
    }

    /// Nothing more comes: waits until what was written outlasts a crash, and the launcher has been told; whether it does.
    pub(super) fn end(self) -> bool {
        drop(self.batches);
        self.thread.join().unwrap_or(false)
    }
}

fn write(node: &Node, (pe, checkpoint): (PeId, u32), bytes: &[u8], file: &mut dyn WriteHere) -> Written {
    node.ask_for_extent(pe, checkpoint, bytes.len() as u64);
    let extent = node.extent(pe).ok_or(None)?;
    if extent.bytes != bytes.len() as u64 {
        return Err(Some("the launcher gave other room than was asked for".into()));
    }
    file.write_at(extent.offset, bytes).map_err(|error| Some(error.to_string()))?;
    Ok(extent.offset)
}
