//! A checkpoint is written by a thread of its own, while the driver takes what comes.

use runtime::checkpoint::{Record, SavedVariable, Writer, Written};
use runtime::digest::Digested;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Records go to the thread in batches of so many bytes, or of so many records.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_RECORDS: usize = 1024;
/// As many batches wait for the thread at most.
const BATCHES: usize = 4;

type Batch = Vec<(Record, Vec<Digested>)>;

/// A checkpoint that is being written.
pub(super) struct Writing {
    batch: Batch,
    batch_bytes: usize,
    to_thread: SyncSender<Batch>,
    thread: JoinHandle<Result<Writer, String>>,
}

impl Writing {
    pub(super) fn begin(writer: Writer) -> Result<Self, String> {
        let (to_thread, batches) = sync_channel(BATCHES);
        let thread = thread::Builder::new().name("checkpoint".into()).spawn(|| write(writer, batches));
        let thread = thread.map_err(|error| format!("there is no thread to write it: {error}"))?;
        Ok(Self { batch: Batch::new(), batch_bytes: 0, to_thread, thread })
    }

    /// Adds a record.
    pub(super) fn put(&mut self, record: Record, digested: Vec<Digested>) {
        self.batch_bytes += record.packed.len_bytes();
        self.batch.push((record, digested));
        if self.batch_bytes >= BATCH_BYTES || self.batch.len() >= BATCH_RECORDS {
            self.pass_on();
        }
    }

    fn pass_on(&mut self) {
        self.batch_bytes = 0;
        // A thread that has ended has failed, and says so in the end.
        let _ = self.to_thread.send(std::mem::take(&mut self.batch));
    }

    /// Says what shared variables are made of, and waits until all of it is on disk.
    pub(super) fn commit(mut self, variables: Vec<SavedVariable>) -> Result<Written, String> {
        self.pass_on();
        drop(self.to_thread);
        let mut writer = self.thread.join().map_err(|_| "the thread that writes it has failed")??;
        variables.into_iter().for_each(|variable| writer.describe_variable(variable));
        writer.commit().map_err(|error| error.to_string())
    }

    /// Ends without a checkpoint; then another may begin.
    pub(super) fn give_up(self) {
        drop(self.to_thread);
        // What it gave is of no use to anybody.
        let _ = self.thread.join();
    }
}

fn write(mut writer: Writer, batches: Receiver<Batch>) -> Result<Writer, String> {
    for (record, digested) in batches.into_iter().flatten() {
        writer.put_digested(&record, &digested).map_err(|error| error.to_string())?;
    }
    Ok(writer)
}
