//! Each thing that a node refuses, with the sentence that ends the run; and what merely comes early.

use crate::program::{ADD, ASK, Ask, PASS, Pass, pack, table};
use crate::run::Run;
use runtime::codec::{Control, Header, Spread, VariableKind, decode, encode};
use runtime::collection::{Collection, Placement};
use runtime::envelope::{CallbackTarget, CollectionId, ElementIndex, Packed, PartialHeader, Target};
use runtime::frame::{Class, Fabric, Frame, Receiver as _, SendError};
use runtime::ids::{NodeId, PeId};
use runtime::monitor::wire::NodeSnapshot;
use runtime::node::{Node, NodeSettings};
use runtime::proto::membership::MembershipMessage;
use runtime::proto::quiescence::QuiescenceMessage;
use runtime::scatter::ScatterPart;
use runtime::topology::Topology;
use std::sync::{Arc, Mutex};

const CELLS: CollectionId = CollectionId(1 << 63 | 1);
const ELSEWHERE: CollectionId = CollectionId(1 << 63 | 77 << 31 | 1);

/// Keeps the sentences with which a node ends the run.
#[derive(Default)]
struct Faults(Mutex<Vec<String>>);

impl Fabric for Faults {
    fn send(&self, _: NodeId, _: Class, frame: Frame) -> Result<(), SendError> {
        if let Ok((Header::Control(Control::Fault(sentence)), _)) = decode(frame) {
            self.0.lock().unwrap().push(sentence);
        }
        Ok(())
    }
}

/// Node 1 of a launcher and three nodes with 2, 1 and 1 PEs, none of which runs; it knows one array.
fn node(id: u16) -> (Arc<Node>, Arc<Faults>) {
    let node =
        Node::new(NodeId(id), Topology::new(&[0, 2, 1, 1]), Arc::new(table()), NodeSettings::default());
    let faults = Arc::new(Faults::default());
    node.connect(Arc::clone(&faults) as Arc<dyn Fabric>);
    (node, faults)
}

/// What node 1 says to a header from `from`; nothing if it takes it.
fn answer(from: u16, header: &Header) -> String {
    let (node, faults) = node(1);
    let known = Header::Spread { root: NodeId(1), what: Spread::Collection(cells(CELLS)) };
    node.receive(NodeId(0), Class::Small, encode(&known, Packed::default()));
    let is_control = matches!(header, Header::Control(_) | Header::Spread { what: Spread::InitOver(_), .. });
    let class = if is_control { Class::Control } else { Class::Small };
    node.receive(NodeId(from), class, encode(header, Packed::default()));
    let mut said = faults.0.lock().unwrap();
    said.pop().unwrap_or_default()
}

/// Four elements, the first two of which live on node 1, one on each PE.
fn cells(id: CollectionId) -> Collection {
    // Made by the driver or PE 0, which both begin at node 1.
    let placement = Placement::Cyclic { pe_count: 4 };
    Collection::new(id, 0, [4, 1, 1], placement, false, 4).unwrap()
}

fn at(pe: u32, target: Target) -> Header {
    Header::ToPe { pe: PeId(pe), priority: 0, target }
}

fn element(collection: CollectionId, index: u32, entry: u16) -> Target {
    Target::Element { collection, index: ElementIndex([index, 0, 0]), entry }
}

fn refused(from: u16, header: &Header, why: &str) {
    let said = answer(from, header);
    let beginning = format!("node {from} sent node 1 a message that it refuses: ");
    assert!(said.starts_with(&beginning) && said.contains(why), "{header:?} was answered by {said:?}");
}

fn taken(from: u16, header: &Header) {
    assert_eq!(answer(from, header), "", "{header:?}");
}

#[test]
fn messages_for_what_is_not_there_are_refused() {
    taken(2, &at(1, element(CELLS, 1, ADD)));
    refused(2, &at(1, element(CELLS, 0, ADD)), "element [0] of Cell on PE 1");
    refused(2, &at(1, element(CELLS, 9, ADD)), "element [9] of Cell on PE 1");
    refused(2, &at(1, element(CELLS, 1, 99)), "entry method 99 of Cell");
    refused(2, &at(2, element(CELLS, 2, ADD)), "PE 2 on node 1");
    refused(2, &at(77, element(CELLS, 1, ADD)), "PE 77 on node 1");
    refused(2, &at(1, element(ELSEWHERE, 1, ADD)), "which this run does not have");
    refused(2, &at(1, element(CollectionId(9), 1, ADD)), "chare type 9");
    refused(9, &at(1, element(CELLS, 1, ADD)), "node 9 as its sender");
    // Not known yet: it waits.
    taken(2, &at(1, element(CollectionId::made_by(PeId(3), 5), 1, ADD)));
    let members = [1, 2].map(|i| ElementIndex([i, 0, 0])).to_vec();
    refused(
        2,
        &at(1, Target::Section { collection: CELLS, members: members.into(), entry: ADD }),
        "element [2] of Cell on PE 1",
    );
    let index = ElementIndex([1, 0, 0]);
    let elsewhere = ElementIndex([2, 0, 0]);
    refused(2, &at(1, Target::Insert { collection: CELLS, index: elsewhere }), "element [2] of Cell on PE 1");
    let singles = CollectionId::singles(0);
    taken(2, &at(1, Target::Insert { collection: singles, index }));
    let of_nobody = ElementIndex([44, 0, 1]);
    refused(2, &at(1, Target::Insert { collection: singles, index: of_nobody }), "[44, 0, 1] of Cell");
}

#[test]
fn scatters_to_others_or_of_other_lengths_are_refused() {
    let scatter = |collection, entry, parts: &[(u32, u32, u32)]| {
        let part = |&(pe, index, len_bytes)| ScatterPart {
            pe: PeId(pe),
            index: ElementIndex([index, 0, 0]),
            len_bytes,
        };
        Header::Scatter { collection, entry, parts: parts.iter().map(part).collect() }
    };
    taken(2, &scatter(CELLS, ADD, &[]));
    taken(0, &scatter(CELLS, ADD, &[(1, 1, 0), (0, 0, 0), (1, 1, 0)]));
    refused(2, &scatter(CELLS, ADD, &[(0, 0, 0), (1, 0, 0)]), "element [0] of Cell on PE 1");
    refused(2, &scatter(CELLS, ADD, &[(0, 0, 0), (2, 2, 0)]), "PE 2 on node 1");
    refused(2, &scatter(CELLS, ADD, &[(u32::MAX, 0, 0)]), "on node 1");
    refused(2, &scatter(CELLS, 99, &[(0, 0, 0)]), "entry method 99 of Cell");
    refused(2, &scatter(ELSEWHERE, ADD, &[(0, 0, 0)]), "which this run does not have");
    refused(2, &scatter(CELLS, ADD, &[(0, 0, 0), (1, 1, 1)]), "a scatter of 1 bytes that has 0");
    refused(2, &scatter(CELLS, ADD, &[(0, 0, 0); 1025]), "a scatter to 1025 elements at once");
    // Not known yet: they wait.
    taken(2, &scatter(CollectionId::made_by(PeId(3), 5), ADD, &[(0, 0, 0), (1, 3, 0)]));
}

#[test]
fn orders_of_a_node_to_its_own_pes_are_refused_from_outside() {
    for target in [Target::Stop, Target::Create(CELLS), Target::All { collection: CELLS, entry: ADD }] {
        refused(0, &at(0, target), "its own PEs only");
    }
    refused(0, &at(0, Target::Slot(1)), "for PE 0, which takes no such message");
    refused(0, &at(u32::MAX, Target::Slot(1)), "driver on node 1");
    refused(2, &at(0, Target::NameHeld), "which only the launcher sends");
    refused(2, &at(0, Target::Measure { kernel: 0, budget_ms: 9 }), "which only the launcher sends");
    refused(0, &at(0, Target::Measure { kernel: 0, budget_ms: 9 }), "kernel 0");
}

#[test]
fn callbacks_to_nobody_are_refused() {
    let relay = |callback| at(0, Target::Relay(Box::new(callback)));
    let to = |collection, index, entry, home| {
        let index = ElementIndex([index, 0, 0]);
        relay(CallbackTarget::Element { collection, index, entry, home })
    };
    taken(2, &to(CELLS, 3, ADD, None));
    taken(2, &relay(CallbackTarget::Slot(4)));
    refused(2, &to(CELLS, 4, ADD, None), "element [4] for a callback");
    refused(2, &to(CELLS, 3, 70, None), "entry method 70");
    refused(2, &to(ELSEWHERE, 3, ADD, None), "which this run does not have");
    let singles = CollectionId::singles(1);
    taken(2, &to(singles, 3, ADD, Some(PeId(3))));
    refused(2, &to(singles, 3, ADD, Some(PeId(4))), "for a callback");
    refused(2, &to(singles, 3, ADD, Some(PeId::DRIVER)), "for a callback");
    refused(2, &to(singles, 3, ADD, None), "for a callback");
    refused(2, &relay(CallbackTarget::All { collection: singles, entry: ADD }), "single chares");
    let members = |section, entry| relay(CallbackTarget::Members { collection: CELLS, section, entry });
    taken(2, &members(CELLS.0, ADD));
    refused(2, &members(5, ADD), "which this run does not have");
    refused(2, &members(CELLS.0, 70), "entry method 70");
}

fn partial(change: impl FnOnce(&mut PartialHeader)) -> Header {
    partial_at(1, change)
}

/// A part of a reduction for a PE.
fn partial_at(pe: u32, change: impl FnOnce(&mut PartialHeader)) -> Header {
    let mut header = PartialHeader {
        collection: CELLS,
        section: 0,
        sequence: 0,
        reducer: 0,
        count: 1,
        expected: 0,
        then: Vec::new(),
        callback: CallbackTarget::Slot(1),
        parts: vec![(2, 1, 0)],
        ordered: false,
    };
    change(&mut header);
    at(pe, Target::Partial(Box::new(header)))
}

#[test]
fn impossible_parts_of_reductions_are_refused() {
    taken(2, &partial(|_| {}));
    refused(0, &partial(|_| {}), "not for this node");
    refused(2, &partial(|p| p.reducer = 1), "reduction 1 of Cell");
    refused(2, &partial(|p| p.count = 0), "for 0 elements");
    refused(2, &partial(|p| p.count = 5), "5 of 4 elements");
    refused(2, &partial(|p| p.parts.clear()), "0 values of a reduction");
    refused(2, &partial(|p| (p.ordered, p.count) = (true, 3)), "1 values of a reduction for 3 elements");
    refused(2, &partial(|p| p.then = vec![(PeId(9), 1)]), "on the way of a reduction");
    refused(2, &partial(|p| p.then = vec![(PeId(1), 1); 6]), "goes in a circle");
    refused(2, &partial(|p| p.section = 5), "which this run does not have");
    let for_members = |of: u64, collection| {
        partial(move |p| {
            p.section = CELLS.0;
            p.callback = CallbackTarget::Members { collection, section: of, entry: ADD };
        })
    };
    taken(2, &for_members(CELLS.0, CELLS));
    refused(2, &for_members(CELLS.0 + 1, CELLS), "members of another section");
    refused(2, &for_members(CELLS.0, ELSEWHERE), "members of another section");
    refused(2, &partial(|p| p.collection = CollectionId::singles(0)), "single chares");
    refused(2, &partial(|p| p.collection = ELSEWHERE), "which this run does not have");
}

#[test]
fn broadcasts_come_down_their_tree_and_in_nobody_elses_name() {
    let spread = |root, what| Header::Spread { root: NodeId(root), what };
    let all = |collection, entry| {
        let target = Target::All { collection, entry };
        Spread::Envelope { priority: 0, target }
    };
    taken(0, &spread(1, all(CELLS, ADD)));
    taken(2, &spread(2, all(CELLS, ADD)));
    refused(3, &spread(2, all(CELLS, ADD)), "begins at node 2 and comes from node 3");
    refused(2, &spread(1, all(CELLS, ADD)), "begins at node 1 and comes from node 2");
    refused(2, &spread(0, all(CELLS, ADD)), "node 0 as the root");
    refused(2, &spread(999, all(CELLS, ADD)), "node 999 as the root");
    refused(2, &spread(2, all(CELLS, 50)), "entry method 50");
    let one = Spread::Envelope { priority: 0, target: element(CELLS, 1, ADD) };
    refused(2, &spread(2, one), "not for all elements");
    refused(2, &spread(2, Spread::InitOver(true)), "the launcher alone");
    let collection = |id| spread(2, Spread::Collection(cells(id)));
    taken(2, &collection(CollectionId::made_by(PeId(2), 1)));
    refused(2, &collection(CollectionId::made_by(PeId(3), 1)), "in the name of PE 3");
    refused(2, &collection(CollectionId::singles(0)), "which this run does not have");
    refused(0, &spread(1, Spread::Collection(cells(CELLS))), "a second time");
    let mut huge = cells(CollectionId::made_by(PeId(2), 1));
    huge.shape = [1 << 20, 1 << 10, 1];
    refused(2, &spread(2, Spread::Collection(huge.clone())), "too many to be constructed together");
    huge.shape = [u32::MAX; 3];
    refused(2, &spread(2, Spread::Collection(huge)), "no or too many elements");
    let mut other = cells(CollectionId::made_by(PeId(2), 1));
    other.chare_type = 60;
    refused(2, &spread(2, Spread::Collection(other)), "chare type 60");
}

#[test]
fn variables_are_set_by_who_made_them() {
    let variable = |id: CollectionId, kind, origin, acknowledge: Option<u16>| {
        let acknowledge = acknowledge.map(NodeId);
        Header::Spread { root: NodeId(2), what: Spread::Variable { id: id.0, kind, origin, acknowledge } }
    };
    let (mine, ours) = (CollectionId::made_by(PeId(2), 1), CollectionId::made_by(PeId::DRIVER, 1));
    taken(2, &variable(mine, VariableKind::Once, PeId(2), Some(2)));
    taken(2, &variable(ours, VariableKind::Monotonic, PeId(2), None));
    refused(2, &variable(ours, VariableKind::Once, PeId(2), None), "PE 2 sets a variable that driver made");
    refused(2, &variable(ours, VariableKind::Monotonic, PeId(3), None), "in the name of PE 3");
    refused(2, &variable(ours, VariableKind::Monotonic, PeId(900), None), "in the name of PE 900");
    refused(2, &variable(mine, VariableKind::Once, PeId(2), Some(3)), "node 3");
    refused(2, &variable(CollectionId(0), VariableKind::Once, PeId(2), None), "which this run does not have");
}

#[test]
fn what_only_the_launcher_says_or_hears_is_refused_from_and_by_others() {
    let speeds = || Control::Speeds(vec![1.0; 4]);
    for control in [Control::Ask(1), speeds(), Control::Collect(CELLS.0), Control::End] {
        refused(2, &Header::Control(control), "which only the launcher sends");
    }
    taken(0, &Header::Control(speeds()));
    for wrong in [vec![1.0; 3], vec![f64::NAN; 4], vec![0.0; 4], vec![-1.0; 4]] {
        refused(0, &Header::Control(Control::Speeds(wrong)), "a speed above 0 for each PE");
    }
    let snapshot = || Box::new(NodeSnapshot { node: 2, ..NodeSnapshot::default() });
    for control in [
        Control::Snapshot(snapshot()),
        Control::Answer(1, snapshot()),
        Control::Fault("over".into()),
        Control::LinkLost(NodeId(3), "gone".into()),
        Control::Speed(PeId(2), 1.0),
        Control::Collected(CELLS.0),
        Control::Phase(Default::default()),
        Control::Membership(MembershipMessage::Joined),
    ] {
        refused(2, &Header::Control(control), "for the launcher");
    }
    let stray = Control::Quiescence(QuiescenceMessage::Probe { wave: 1 });
    refused(2, &Header::Control(stray), "a quiescence probe came from node 2, not from above");
    refused(2, &Header::Control(Control::VariableSet(5)), "which this run does not have");
}

#[test]
fn the_launcher_believes_no_node_about_another() {
    let said = |control: Control| {
        let (node, _) = node(0);
        let (driver, events) = std::sync::mpsc::channel();
        node.listen(runtime::node::Ears { driver, launcher: None });
        node.receive(NodeId(2), Class::Control, encode(&Header::Control(control), Packed::default()));
        events.try_iter().find_map(|event| match event {
            runtime::node::DriverEvent::Failed(failure) => Some(failure.sentence),
            _ => None,
        })
    };
    let snapshot = |node, pes: &[u32]| {
        let pe = |&pe| runtime::monitor::wire::PeSnapshot { pe, ..Default::default() };
        Box::new(NodeSnapshot { node, pes: pes.iter().map(pe).collect(), ..NodeSnapshot::default() })
    };
    assert_eq!(said(Control::Snapshot(snapshot(2, &[2]))), None);
    assert_eq!(said(Control::Speed(PeId(2), 3.0)), None);
    let refused = |control| {
        let sentence = said(control).unwrap_or_default();
        assert!(sentence.starts_with("node 2 sent node 0 a message that it refuses: "), "{sentence}");
    };
    refused(Control::Snapshot(snapshot(3, &[3])));
    refused(Control::Snapshot(snapshot(2, &[])));
    refused(Control::Answer(1, snapshot(2, &[2, 3])));
    refused(Control::Speed(PeId(3), 3.0));
    refused(Control::Speed(PeId(900), 3.0));
    refused(Control::Speed(PeId(2), f64::NAN));
    refused(Control::LinkLost(NodeId(4), String::new()));
    refused(Control::Ask(3));
    let faulty = said(Control::Fault(format!("\x1b[2J{}", "x".repeat(100_000)))).unwrap();
    assert!(faulty.len() < 3000 && !faulty.contains('\x1b'), "{} bytes", faulty.len());
}

#[test]
fn work_does_not_come_where_nothing_holds_it_back() {
    let (node, faults) = node(1);
    let frame = encode(&at(1, element(CollectionId::made_by(PeId(3), 5), 1, ADD)), Packed::default());
    node.receive(NodeId(2), Class::Control, frame);
    assert!(faults.0.lock().unwrap()[0].contains("does not belong on the Control stream"));
}

/// A message that decodes, for an element that is there, with content that its entry method does not take.
#[test]
fn content_that_is_not_the_message_ends_the_run_with_the_entry_method_named() {
    let mut run = Run::new();
    let made = run.begin(0);
    run.calm();
    let target = Target::Element { collection: made.cells, index: ElementIndex([0, 1, 0]), entry: PASS };
    let garbage = Packed { body: vec![0xff; 40].into(), attachments: Vec::new() };
    let frame = encode(&at(1, target), garbage);
    run.nodes[1].receive(NodeId(3), Class::Small, frame);
    let sentence = loop {
        match run.next_result() {
            Ok(_) => {}
            Err(sentence) => break sentence,
        }
    };
    assert!(sentence.contains("Cell: Pass of element [0, 1] on PE 1 of cells failed"), "{sentence}");
    assert!(sentence.contains("a message does not decode as"), "{sentence}");
    run.end();
}

/// A callback inside a message is checked when it is used.
#[test]
fn a_callback_to_nobody_inside_a_message_ends_the_run() {
    for done in [
        CallbackTarget::All { collection: ELSEWHERE, entry: ADD },
        CallbackTarget::Element {
            collection: CollectionId::singles(0),
            index: ElementIndex([1, 0, 0]),
            entry: ADD,
            home: Some(PeId(4000)),
        },
    ] {
        let mut run = Run::new();
        let made = run.begin(0);
        run.calm();
        let target = Target::Element { collection: made.cells, index: ElementIndex([0, 1, 0]), entry: PASS };
        let frame = encode(&at(1, target), pack(&Pass { hops: 0, done }));
        run.nodes[1].receive(NodeId(3), Class::Small, frame);
        let sentence = (0..50).find_map(|_| run.next_result().err()).unwrap();
        assert!(sentence.contains("PE 1 would have sent a message to nobody"), "{sentence}");
        run.end();
    }
}

/// Reductions climb another tree than descriptions of collections come down: their parts may be first.
#[test]
fn a_part_of_a_reduction_waits_for_its_collection() {
    let mut run = Run::new();
    let id = CollectionId::made_by(PeId(2), 99);
    // Elements 0, 1 live on node 1, whose PE 1 combines for this collection; 2 and 3 on the other nodes.
    let combiner = run.nodes[1].topology().combiner(NodeId(1), id.0).unwrap();
    for (from, linear) in [(2, 2), (3, 3)] {
        let part = partial_at(combiner.0, |header| {
            (header.collection, header.callback) = (id, CallbackTarget::Slot(8));
            (header.parts, header.ordered) = (vec![(linear, 1, 0)], true);
        });
        let frame = encode(&part, pack(&5u64));
        run.nodes[1].receive(NodeId(from), Class::Small, frame);
    }
    // When this has been answered, both parts have been looked at.
    let frame = encode(&at(combiner.0, Target::Relay(Box::new(CallbackTarget::Slot(7)))), pack(&0u64));
    run.nodes[1].receive(NodeId(2), Class::Small, frame);
    assert_eq!(run.next_result(), Ok(7));
    let known = Header::Spread { root: NodeId(2), what: Spread::Collection(cells(id)) };
    run.nodes[1].receive(NodeId(2), Class::Small, encode(&known, pack(&1u64)));
    let ask = pack(&Ask { is_ordered: true, done: CallbackTarget::Slot(8) });
    for index in [0, 1] {
        let frame = encode(&at(index, element(id, index, ASK)), ask.clone());
        run.nodes[1].receive(NodeId(2), Class::Small, frame);
    }
    assert_eq!(run.next_result(), Ok(8));
    run.end();
}
