//! One PE writes to a folder that fails, or may not be written to any more, at any point: the checkpoint is whole all the same.

use super::*;
use crate::buffer::Buffer;
use crate::checkpoint::{About, Record, Sight, Store};
use crate::ids::NodeId;
use crate::node::{DriverEvent, Listeners, NodeSettings};
use crate::object::ProgramTable;
use crate::saved::{
    Extent, FindSaved, FoundWriting, GiveExtents, RecordHeader, SavedHere, SavedPlace, WriteHere,
    WritingPlace,
};
use crate::topology::Topology;
use crate::transport::loopback::LoopbackNet;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const PE: PeId = PeId(0);
/// So many writes stand for a disk that does not keep them.
const LOST: u32 = u32::MAX - 1;
const SAVE: Save = Save { checkpoint: 1, since: None, sent_bytes_max: u64::MAX, may_write: true };

/// Looks as nodes do, and finds a disk on which only so many writes succeed.
struct Failing(Sight, u32);

impl FindSaved for Failing {
    fn find(&self, _: &SavedPlace) -> Result<Arc<dyn SavedHere>, String> {
        Err("nobody goes on".into())
    }

    fn find_writing(&self, place: &WritingPlace) -> Result<FoundWriting, String> {
        let (stored, file) = self.0.find_writing(place)?;
        Ok((stored, Box::new(Full { file, left: self.1, is_lost: self.1 == LOST })))
    }
}

struct Full {
    file: Box<dyn WriteHere>,
    left: u32,
    /// Nothing of it is there for good.
    is_lost: bool,
}

impl WriteHere for Full {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
        self.file.write_at(offset, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.is_lost { Err(io::ErrorKind::StorageFull.into()) } else { self.file.sync() }
    }
}

/// Gives room so many times, and then nothing, as where a checkpoint has been given up.
struct Sparing(Arc<dyn GiveExtents>, AtomicU32);

impl GiveExtents for Sparing {
    fn give(&self, pe: PeId, bytes: u64) -> Option<Extent> {
        let left = self.1.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.ok().and_then(|_| self.0.give(pe, bytes))
    }
}

/// Of several batches: values that are long, short and alike, one that is shorter compressed, and a long body.
fn records() -> Vec<(RecordHeader, Packed)> {
    let numbers = |seed: u32, count: u32| -> Vec<u32> {
        (0..count).map(|at| (at ^ seed).wrapping_mul(0x9e37_79b9) ^ at.wrapping_mul(at)).collect()
    };
    let array = |seed, count| Buffer::from_slice(&numbers(seed, count));
    (0..14)
        .map(|n: u32| {
            let attachments = match n {
                3 => vec![array(1, 700_000), Buffer::default(), array(1, 700_000), array(3, 20)],
                4 => vec![Buffer::from_slice(&vec![n; 300_000])],
                7 => Vec::new(),
                _ => vec![array(n, 300_000 + n), array(n + 100, 1000 * n)],
            };
            let body = if n == 5 { vec![b'x'; 3 << 20] } else { vec![n as u8; n as usize * 100] };
            (RecordHeader { pe: PE, of: RecordOf::Pe }, Packed { body: body.into(), attachments })
        })
        .collect()
}

/// Has a PE save all records, in a folder where so many writes succeed and room is given so often; what nodes have written
/// themselves, and whether the PE will not look for the folder again.
fn saved(writes: u32, rooms: u32) -> (u64, bool) {
    let topology = Topology::new(&[0, 1]);
    let net = LoopbackNet::new();
    let nodes = [0, 1].map(|id| {
        let node = Node::new(NodeId(id), topology.clone(), Arc::default(), NodeSettings::default());
        let receiver: Arc<dyn crate::frame::Receiver> = Arc::clone(&node) as _;
        net.register(node.id(), &receiver);
        node.connect(net.fabric(node.id()));
        node
    });
    let (driver, events) = channel();
    nodes[0].listen(Listeners { driver, supervision: None, balancing: None });
    nodes[1].find_saved_by(Failing(Sight::new(Arc::new(ProgramTable::default())), writes));
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let mut writer = store.begin(About::default()).unwrap();
    let giver = Sparing(writer.extents().unwrap(), AtomicU32::new(rooms));
    nodes[0].give_extents_by(Some((SAVE.checkpoint, Arc::new(giver))));
    let node = Arc::clone(&nodes[1]);
    let pe = std::thread::spawn(move || {
        let (mut writing, mut digests) = (Writing::new(&node, PE, SAVE, false), Digests::default());
        for records in records().chunks(4) {
            let ready = records.iter().cloned().map(|(header, packed)| {
                let (sent, packed) = Sent::new(header, packed).unwrap();
                Ready::new(sent, packed, &mut digests, (&Digests::default(), false))
            });
            writing.put(ready.collect());
        }
        writing.end()
    });
    let wrote = collect(&events, |header, packed, digested| {
        writer.put_digested(&Record::of_run(header, "", packed), &digested).unwrap();
    });
    let is_blind = pe.join().unwrap();
    if writes == LOST {
        assert!(wrote.unwrap().unwrap_err().contains("no storage space"));
        return (0, is_blind);
    }
    let written = writer.commit().unwrap();
    assert_eq!(written.by_nodes_bytes > 0, wrote.is_some_and(|wrote| wrote.is_ok()));
    let there: Vec<Record> = store.latest().unwrap().records().map(Result::unwrap).collect();
    let all: Vec<Record> =
        records().into_iter().map(|(header, packed)| Record::of_run(header, "", packed)).collect();
    assert!(there == all, "{writes} writes, {rooms} times");
    (written.by_nodes_bytes, is_blind)
}

/// What the launcher hears up to the last record; and whether what was written is there for good, if a record says that any was.
fn collect(
    events: &Receiver<DriverEvent>,
    mut put: impl FnMut(RecordHeader, Packed, Vec<Digested>),
) -> Option<Result<(), String>> {
    let (mut left, mut is_written, mut said) = (records().len(), false, None);
    while left > 0 || is_written && said.is_none() {
        match events.recv_timeout(Duration::from_secs(60)).unwrap() {
            DriverEvent::Record(_, record, packed) => {
                is_written |= record.is_written();
                let (header, packed) = record.sent.open(packed);
                put(header, packed, record.digested);
                left -= 1;
            }
            DriverEvent::Wrote(PE, 1, wrote) => said = Some(wrote),
            other => panic!("{other:?}"),
        }
    }
    said.filter(|_| is_written)
}

#[test]
fn wherever_writing_ends_the_rest_is_sent_and_all_of_it_is_there() {
    let (all_bytes, is_blind) = saved(u32::MAX, u32::MAX);
    assert!(all_bytes > 12 << 20 && !is_blind, "{all_bytes} bytes");
    assert_eq!(saved(0, u32::MAX), (0, true), "nothing can be written");
    assert_eq!(saved(u32::MAX, 0), (0, false), "it is not said where");
    assert_eq!(saved(LOST, u32::MAX), (0, true), "nothing outlasts a crash");
    let mut before = 0;
    for times in 1..=3 {
        let (bytes, is_blind) = saved(times, u32::MAX);
        assert!(is_blind && bytes >= before && bytes < all_bytes, "{bytes} bytes of {times} writes");
        // Where the folder is takes one answer.
        let (of_rooms, is_blind) = saved(u32::MAX, times + 1);
        assert!(!is_blind && of_rooms == bytes, "{of_rooms} bytes of {times} rooms");
        before = bytes;
    }
    assert!(before > 4 << 20);
}

/// Many short values are not as long as so many chunks.
#[test]
fn what_can_be_written_of_a_record_is_its_long_values() {
    let bytes = |of| {
        let attachments = [70_000, 100, 2000].map(|length| Buffer::from_slice(&vec![length as u8; length]));
        let packed = Packed { body: vec![1; 3000].into(), attachments: attachments.into() };
        let (sent, packed) = Sent::new(RecordHeader { pe: PE, of }, packed).unwrap();
        Ready::new(sent, packed, &mut Digests::default(), (&Digests::default(), false)).new_bytes
    };
    assert_eq!(bytes(RecordOf::Pe), 70_000 + 2000 + 3000);
    assert_eq!(bytes(RecordOf::Sum(1)), 0, "that is of the node");
}
