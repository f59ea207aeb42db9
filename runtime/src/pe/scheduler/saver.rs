//! A PE packs what is to be saved and goes on; another thread computes the checksums and writes or sends it.

use super::to_disk::BATCH_BYTES;
use super::writing::{Ready, Writing};
use crate::digest::Digests;
use crate::envelope::Packed;
use crate::ids::PeId;
use crate::node::Node;
use crate::object::PupError;
use crate::saved::{Save, Sent};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// The threads that send what a PE has packed, one for each checkpoint.
#[derive(Default)]
pub(super) struct Savers {
    /// What is known of the last checkpoint, once all of it has been sent.
    last: Option<(u32, JoinHandle<Digests>)>,
    /// The PE has tried to write what is to be saved, and does not see the folder.
    is_blind: Arc<AtomicBool>,
}

/// Where records of one checkpoint go.
pub(super) struct Saver {
    node: Arc<Node>,
    records: Sender<(Sent, Packed)>,
    /// While more bytes of the node are packed and not kept, whoever has a record for it waits.
    packed_bytes_max: u64,
}

impl Saver {
    /// Takes a record that has been packed; how many that is, which is none if the run has ended.
    pub(super) fn send(&self, sent: Sent, packed: Packed) -> u64 {
        self.node.held().pack(packed.len_bytes() as u64, self.packed_bytes_max);
        u64::from(self.records.send((sent, packed)).is_ok())
    }
}

impl Savers {
    /// What is to be sent of the PE is to be given to this.
    ///
    /// # Errors
    /// If the system has no thread for it.
    pub(super) fn begin(&mut self, node: &Arc<Node>, pe: PeId, save: Save) -> Result<Saver, PupError> {
        let (number, last) = match self.last.take() {
            Some((number, saver)) => (Some(number), saver.join().unwrap_or_default()),
            None => (None, Digests::default()),
        };
        let has_last = number.is_some() && number == save.since;
        let (to_saver, records) = channel();
        let (here, is_blind) = (Arc::clone(node), Arc::clone(&self.is_blind));
        let work = move || {
            let mut writing = Writing::new(&here, pe, save, is_blind.load(Ordering::Relaxed));
            let digests = save_all(&mut writing, &records, (&last, has_last));
            is_blind.store(writing.end(), Ordering::Relaxed);
            digests
        };
        let thread = thread::Builder::new().name("saver".into()).spawn(work);
        let thread = thread.map_err(|error| PupError::new("what is to be saved", error.to_string()))?;
        self.last = Some((save.checkpoint, thread));
        let packed_bytes_max = node.packed_bytes_max().max(save.sent_bytes_max);
        Ok(Saver { node: Arc::clone(node), records: to_saver, packed_bytes_max })
    }
}

/// Has all records written or sent, without values that the launcher has from the last checkpoint if it still has that; what is known
/// of this one.
fn save_all(
    writing: &mut Writing<'_>,
    records: &Receiver<(Sent, Packed)>,
    last: (&Digests, bool),
) -> Digests {
    let mut digests = Digests::default();
    let (mut batch, mut bytes) = (Vec::new(), 0);
    loop {
        let next = records.try_recv().ok().or_else(|| {
            // None is there: the PE may wait until there is room for more.
            writing.put(std::mem::take(&mut batch));
            writing.settle();
            bytes = 0;
            records.recv().ok()
        });
        let Some((sent, packed)) = next else { return digests };
        let ready = Ready::new(sent, packed, &mut digests, last);
        bytes += ready.new_bytes;
        batch.push(ready);
        if bytes >= BATCH_BYTES as u64 {
            writing.put(std::mem::take(&mut batch));
            bytes = 0;
        }
    }
}
