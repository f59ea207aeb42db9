//! A PE packs what is to be saved and goes on; another thread computes the checksums and writes or sends it.

use super::pin;
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
            // On the core of its PE, which it would inherit, it would have to share that with it even if others are free.
            pin(&here.settings().allowed_cores);
            let mut writing = Writing::new(&here, pe, save, is_blind.load(Ordering::Relaxed));
            let digests = save_all(&mut writing, &records, (&last, has_last));
            is_blind.store(writing.end(), Ordering::Relaxed);
            digests
        };
        let thread = thread::Builder::new().name(format!("saver {}", pe.0)).spawn(work);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;
    use crate::node::NodeSettings;
    use crate::node::processors::allowed_cores;
    use crate::topology::Topology;
    use std::time::{Duration, Instant};

    /// Cores of a thread of this process, as the system writes them.
    fn cores_of(name: &str) -> Option<String> {
        std::fs::read_dir("/proc/self/task").ok()?.flatten().find_map(|task| {
            let status = std::fs::read_to_string(task.path().join("status")).ok()?;
            let of = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
            (of("Name:") == Some(name)).then(|| of("Cpus_allowed_list:").map(String::from)).flatten()
        })
    }

    #[test]
    fn what_a_pinned_pe_saves_is_not_left_to_its_core() {
        let allowed_cores = allowed_cores();
        let settings = NodeSettings { allowed_cores: allowed_cores.clone(), ..NodeSettings::default() };
        let node = Node::new(NodeId(1), Topology::new(&[0, 1]), Arc::default(), settings);
        let save = Save { checkpoint: 1, since: None, sent_bytes_max: u64::MAX, may_write: true };
        let pe = thread::Builder::new().name("pinned".into()).spawn(move || {
            let before = cores_of("pinned");
            assert!(pin(&allowed_cores[..1]));
            let saver = Savers::default().begin(&node, PeId(4711), save);
            let deadline = Instant::now() + Duration::from_secs(60);
            let freed = || cores_of("saver 4711") == before;
            while !freed() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(1));
            }
            let is_free = freed();
            drop(saver);
            (is_free, cores_of("pinned"), allowed_cores[0].to_string())
        });
        let (is_free, pinned, first) = pe.unwrap().join().unwrap();
        assert!(is_free);
        assert_eq!(pinned, Some(first));
    }
}
