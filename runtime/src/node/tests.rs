//! A launcher and a node whose PEs do nothing, joined by calls.

use super::*;
use crate::digest::Digest;
use crate::envelope::{CallbackTarget, Envelope, PeOrder, Target, ToPe};
use crate::frame::Receiver;
use crate::pe::scheduler::Scheduler;
use crate::priority::Priority;
use crate::proto::snapshot::Colour;
use crate::saved::{
    FoundWriting, RecordHeader, RecordOf, Save, SavedHere, SavedPlace, SavedRecords, WritingPlace,
};
use crate::transport::loopback::LoopbackNet;
use std::sync::mpsc::{Receiver as Events, channel};
use std::time::Duration;

fn launcher_and_node() -> (Vec<Arc<Node>>, Events<DriverEvent>) {
    let topology = Topology::new(&[0, 1]);
    let net = LoopbackNet::new();
    let nodes: Vec<Arc<Node>> = (0..2)
        .map(|id| Node::new(NodeId(id), topology.clone(), Arc::default(), NodeSettings::default()))
        .collect();
    for node in &nodes {
        let receiver: Arc<dyn Receiver> = Arc::clone(node) as _;
        net.register(node.id(), &receiver);
        node.connect(net.fabric(node.id()));
    }
    let (driver, events) = channel();
    nodes[0].listen(Listeners { driver, supervision: None, balancing: None });
    (nodes, events)
}

/// The driver sleeps while a wave is under way; when its end comes by a link, somebody has to wake it.
#[test]
fn the_driver_is_woken_when_the_next_wave_is_due() {
    let (nodes, events) = launcher_and_node();
    nodes[0].pes().account(PeId::DRIVER).created(1);
    let search = nodes[0].start_quiescence(true);
    assert!(matches!(events.try_recv(), Ok(DriverEvent::QuiescenceDue)), "a message is under way");
    nodes[1].pes().account(PeId(0)).processed();
    // Waves without end would be an error here; the search needs two after the message was processed.
    let found = (0..1000).find_map(|_| {
        std::thread::sleep(nodes[0].pump_quiescence().unwrap_or_default());
        match events.try_recv() {
            Ok(DriverEvent::Quiescent { search, .. }) => Some(search),
            _ => None,
        }
    });
    assert_eq!(found, Some(search));
}

/// What a PE says that stands still, and the bytes of its record if it was saved.
fn said(events: &Events<DriverEvent>) -> Result<u64, Packed> {
    loop {
        match events.recv_timeout(Duration::from_secs(60)).unwrap() {
            DriverEvent::Paused(PeId(0), paused) => return Ok(paused.unwrap()),
            DriverEvent::Record(_, record, packed) if record.sent.header.of == RecordOf::Pe => {
                return Err(packed);
            }
            other => assert!(matches!(other, DriverEvent::Record(..)), "{other:?}"),
        }
    }
}

/// Who waits for a write-once variable is told by a message to its node's first PE, which no other record holds.
#[test]
fn a_pe_is_not_saved_before_whom_a_write_once_variable_is_ready_for_is_told() {
    let (nodes, events) = launcher_and_node();
    let order = |order| {
        let nothing = Payload::packed(Packed::default());
        nodes[1].pes().push(PeId(0), None, Envelope::new(Target::Order(order), Priority::ORDINARY, nothing));
    };
    let ready = Packed { body: b"it is everywhere".to_vec().into(), attachments: Vec::new() };
    nodes[1].expect_everywhere((PeId(0), Colour::White), 7, CallbackTarget::Ignore, ready.clone());
    order(PeOrder::Pause);
    let node = Arc::clone(&nodes[1]);
    let pe = std::thread::spawn(move || Scheduler::new(&node, PeId(0)).run());
    assert_eq!(said(&events), Ok(0), "it stands still");
    order(PeOrder::Save(Save { checkpoint: 1, since: None, sent_bytes_max: 1, may_write: false }));
    for _ in 0..2 {
        // It answers this at once, and would have been saved before it answers the second time.
        order(PeOrder::Restore { records: 0 });
        assert_eq!(said(&events), Ok(0));
    }
    nodes[1].acknowledged(NodeId(0), 7);
    order(PeOrder::Restore { records: 0 });
    assert_eq!(said(&events), Ok(0), "it is not in place on all nodes");
    nodes[1].acknowledged(NodeId(1), 7);
    // Another thread sends the record.
    let (records, counts): (Vec<_>, Vec<_>) =
        [said(&events), said(&events)].into_iter().partition(Result::is_err);
    assert_eq!(counts, [Ok(1)], "it is saved");
    let saved = records[0].as_ref().expect_err("its record");
    assert!(saved.body.windows(ready.body.len()).any(|part| part == &ready.body[..]), "the message is in it");
    let nothing = Payload::packed(Packed::default());
    nodes[1].pes().push(PeId(0), None, Envelope::new(Target::Stop, Priority::ORDINARY, nothing));
    pe.join().unwrap();
}

/// Whom a variable is ready for may be told by a PE that is only on its way here.
#[test]
fn what_comes_to_a_pe_before_its_record_is_not_lost() {
    let mut record = None;
    for _ in 0..2 {
        let (nodes, events) = launcher_and_node();
        let push = |target, body: &[u8]| {
            let packed = Packed { body: body.to_vec().into(), attachments: Vec::new() };
            nodes[1].pes().push(
                PeId(0),
                None,
                Envelope::new(target, Priority::ORDINARY, Payload::packed(packed)),
            );
        };
        push(Target::Order(PeOrder::Pause), &[]);
        let node = Arc::clone(&nodes[1]);
        let pe = std::thread::spawn(move || Scheduler::new(&node, PeId(0)).run());
        assert_eq!(said(&events), Ok(0), "it stands still");
        push(ToPe::Relay(Box::new(CallbackTarget::Ignore)).into(), b"early");
        if let Some(Packed { body, .. }) = record {
            push(Target::Record(Box::new(RecordHeader { pe: PeId(0), of: RecordOf::Pe })), &body);
            push(Target::Order(PeOrder::Restore { records: 1 }), &[]);
            assert_eq!(said(&events), Ok(1), "it has taken it in");
        }
        push(
            Target::Order(PeOrder::Save(Save {
                checkpoint: 1,
                since: None,
                sent_bytes_max: 1,
                may_write: false,
            })),
            &[],
        );
        // Another thread sends the record.
        let (records, counts): (Vec<_>, Vec<_>) =
            [said(&events), said(&events)].into_iter().partition(Result::is_err);
        assert_eq!(counts, [Ok(1)], "it is saved");
        record = records.into_iter().find_map(Result::err);
        push(Target::Stop, &[]);
        pe.join().unwrap();
    }
    let body = record.unwrap().body;
    assert_eq!(
        body.windows(5).filter(|part| *part == b"early").count(),
        2,
        "that of its record, and the other"
    );
}

/// Counts that are restored know nothing of what was ordered before.
#[test]
fn what_a_pe_was_told_before_it_stands_still_is_done_before() {
    let (nodes, events) = launcher_and_node();
    let order = |order| nodes[0].order(NodeId(1), Order::ToPe(PeId(0), order), Packed::default());
    order(PeOrder::DropKernel);
    order(PeOrder::Pause);
    let node = Arc::clone(&nodes[1]);
    let pe = std::thread::spawn(move || Scheduler::new(&node, PeId(0)).run());
    assert_eq!(said(&events), Ok(0), "it stands still");
    order(PeOrder::Restore { records: 0 });
    assert_eq!(said(&events), Ok(0), "it counts from the beginning");
    order(PeOrder::Resume);
    let nothing = Payload::packed(Packed::default());
    nodes[1].pes().push(PeId(0), None, Envelope::new(Target::Stop, Priority::ORDINARY, nothing));
    pe.join().unwrap();
    let counts = nodes[1].pes().counts();
    assert_eq!(counts.created, counts.processed);
}

/// What was saved of the PE, where its node finds that.
struct Found(Option<Packed>);
impl FindSaved for Found {
    fn find(&self, place: &SavedPlace) -> Result<Arc<dyn SavedHere>, String> {
        assert_eq!(place.dir, "/saved");
        let packed = self.0.clone().ok_or("it is of another run")?;
        Ok(Arc::new(Self(Some(packed))))
    }

    fn find_writing(&self, _: &WritingPlace) -> Result<FoundWriting, String> {
        Err("nobody writes here".into())
    }
}
impl SavedHere for Found {
    fn of_pe(&self, pe: PeId) -> SavedRecords<'_> {
        let header = RecordHeader { pe, of: RecordOf::Pe };
        Box::new(self.0.iter().map(move |packed| Ok((header.clone(), packed.clone()))))
    }
}

/// What a PE finds itself it takes in, and the rest is sent to it; it has been restored when both together are all.
#[test]
fn a_pe_reads_what_its_node_finds_and_says_how_much_that_is() {
    let mut record = None;
    for (finds, read) in [(false, 0), (true, 1), (false, 0)] {
        let (nodes, events) = launcher_and_node();
        let push = |target, packed: Packed| {
            nodes[1].pes().push(
                PeId(0),
                None,
                Envelope::new(target, Priority::ORDINARY, Payload::packed(packed)),
            );
        };
        let order = |order| push(Target::Order(order), Packed::default());
        nodes[1].find_saved_by(Found(record.clone().filter(|_| finds)));
        order(PeOrder::Pause);
        let node = Arc::clone(&nodes[1]);
        let pe = std::thread::spawn(move || Scheduler::new(&node, PeId(0)).run());
        assert_eq!(said(&events), Ok(0), "it stands still");
        let place =
            SavedPlace { dir: "/saved".into(), generation: 1, manifest_bytes: 1, manifest: Digest::of(b"1") };
        let body = postcard::to_stdvec(&place).unwrap().into();
        push(Target::Order(PeOrder::ReadSaved), Packed { body, attachments: Vec::new() });
        if finds {
            let told = events.recv_timeout(Duration::from_secs(60)).unwrap();
            let bytes = record.as_ref().unwrap().len_bytes() as u64;
            assert!(matches!(told, DriverEvent::Reading(PeId(0), told) if told == bytes), "{told:?}");
        }
        assert_eq!(said(&events), Ok(read));
        if let Some(packed) = record.clone().filter(|_| !finds) {
            push(Target::Record(Box::new(RecordHeader { pe: PeId(0), of: RecordOf::Pe })), packed);
        }
        let all = u64::from(record.is_some());
        order(PeOrder::Restore { records: all });
        assert_eq!(said(&events), Ok(all), "it has all");
        order(PeOrder::Save(Save { checkpoint: 1, since: None, sent_bytes_max: 1, may_write: false }));
        // Another thread sends the record.
        let (records, _): (Vec<_>, Vec<_>) =
            [said(&events), said(&events)].into_iter().partition(Result::is_err);
        record = records.into_iter().find_map(Result::err);
        order(PeOrder::ReadSaved);
        let refused = events.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(
            matches!(refused, DriverEvent::Paused(PeId(0), Err(_))),
            "an order without a place: {refused:?}"
        );
        push(Target::Stop, Packed::default());
        pe.join().unwrap();
    }
}
