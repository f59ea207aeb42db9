//! Each thing that a node refuses, with the sentence that ends the run; and what merely comes early.

use crate::program::{ADD, ASK, Ask, Made, PASS, Pass, pack, table};
use crate::run::Run;
use loadbalance::balance::Mobility;
use runtime::codec::{
    Announcement, ControlToLauncher, ControlToNode, Header, Order, ScatterPart, Spread, VariableKind,
    WorkToLauncher, WorkToNode, decode, decode_in, encode, encode_in,
};
use runtime::collection::{Collection, Placement};
use runtime::envelope::{
    CallbackTarget, CollectionId, Contributors, ElementId, ElementIndex, Packed, PartialHeader, PeOrder, ToPe,
};
use runtime::frame::{Class, Fabric, Frame, Receiver as _, SendError};
use runtime::ids::{NodeId, PeId};
use runtime::loads::{Amount, ChareLoad, NodeLoads, PeLoads, Whereabouts};
use runtime::mark::Mark;
use runtime::monitor::collectives::{Collectives, GATHERED_MAX, Gathered};
use runtime::monitor::samples::{Ran, SAMPLES_MAX, Samples};
use runtime::monitor::wire::NodeSnapshot;
use runtime::moving::{Audience, Heading, Moving, What};
use runtime::node::{Node, NodeSettings};
use runtime::priority::Priority;
use runtime::proto::contributors::Change;
use runtime::proto::location::{Load, Parcel, Sender};
use runtime::proto::membership::{ClusterTable, JoinAnswer, NodeEntry, Welcome};
use runtime::proto::quiescence::QuiescenceMessage;
use runtime::proto::snapshot::Colour;
use runtime::saved::{RecordHeader, RecordOf, Sent};
use runtime::topology::Topology;
use std::sync::{Arc, Mutex};

const CELLS: CollectionId = CollectionId(1 << 63 | 1);
const ELSEWHERE: CollectionId = CollectionId(1 << 63 | 77 << 31 | 1);

/// Keeps the sentences with which a node ends the run.
#[derive(Default)]
struct Faults(Mutex<Vec<String>>);

impl Fabric for Faults {
    fn send(&self, _: NodeId, _: Class, frame: Frame) -> Result<(), SendError> {
        if let Ok((ControlToLauncher::Fault(sentence), _)) = decode(frame) {
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
fn answer<H: Header>(from: u16, header: &H) -> String {
    let (node, faults) = node(1);
    let known = announcement(1, Announcement::Collection(cells(CELLS)));
    node.receive(NodeId(0), Class::Small, encode(&known, Packed::default()));
    node.receive(NodeId(from), H::class(0), encode(header, Packed::default()));
    let mut said = faults.0.lock().unwrap();
    said.pop().unwrap_or_default()
}

fn announcement(root: u16, what: Announcement) -> WorkToNode {
    WorkToNode::Spread { root: NodeId(root), what: Spread::Announcement(what) }
}

/// Four elements, the first two of which live on node 1, one on each PE.
fn cells(id: CollectionId) -> Collection {
    // Made by the driver or PE 0, which both begin at node 1.
    let placement = Placement::Cyclic { pe_count: 4 };
    Collection::new(id, 0, [4, 1, 1], placement, false, 4).unwrap()
}

fn at(pe: u32, message: ToPe) -> WorkToNode {
    WorkToNode::to_pe(PeId(pe), Priority::ORDINARY, message)
}

fn element(collection: CollectionId, index: u32, entry: u16) -> ToPe {
    ToPe::Element { collection, index: ElementIndex([index, 0, 0]), entry, from: PeId(2), number: 0 }
}

/// A message of PE 3 for an element on PE 1.
fn pass_from_3(made: &Made) -> WorkToNode {
    let (collection, index, from) = (made.cells, ElementIndex([0, 1, 0]), PeId(3));
    at(1, ToPe::Element { collection, index, entry: PASS, from, number: 0 })
}

fn refused(from: u16, header: &impl Header, why: &str) {
    let said = answer(from, header);
    let beginning = format!("node {from} sent node 1 a message that it refuses: ");
    assert!(said.starts_with(&beginning) && said.contains(why), "{header:?} was answered by {said:?}");
}

fn taken(from: u16, header: &impl Header) {
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
    refused(3, &at(1, element(CELLS, 1, ADD)), "in the name of PE 2");
    // Not known yet: it waits.
    taken(2, &at(1, element(CollectionId::made_by(PeId(3), 5), 1, ADD)));
    let index = ElementIndex([1, 0, 0]);
    let elsewhere = ElementIndex([2, 0, 0]);
    refused(2, &at(1, ToPe::Insert { collection: CELLS, index: elsewhere }), "element [2] of Cell on PE 1");
    let singles = CollectionId::singles(0);
    taken(2, &at(1, ToPe::Insert { collection: singles, index }));
    let of_nobody = ElementIndex([44, 0, 1]);
    refused(2, &at(1, ToPe::Insert { collection: singles, index: of_nobody }), "[44, 0, 1] of Cell");
}

#[test]
fn scatters_to_others_or_of_other_lengths_are_refused() {
    let scatter = |collection, entry, parts: &[(u32, u32, u32)]| {
        let part = |&(pe, index, len_bytes)| ScatterPart {
            pe: PeId(pe),
            index: ElementIndex([index, 0, 0]),
            len_bytes,
        };
        let parts = parts.iter().map(part).collect();
        WorkToNode::Scatter { collection, entry, from: PeId(2), number: 0, parts }
    };
    taken(2, &scatter(CELLS, ADD, &[]));
    taken(2, &scatter(CELLS, ADD, &[(1, 1, 0), (0, 0, 0), (1, 1, 0)]));
    refused(0, &scatter(CELLS, ADD, &[]), "in the name of PE 2");
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
fn what_is_said_of_chares_that_move_is_refused_where_it_cannot_be() {
    let moving = |pe, moving| at(pe, ToPe::Moving(Box::new(moving)));
    let cell = |index| ElementId { collection: CELLS, index: ElementIndex([index, 0, 0]) };
    let (sound, outside, pe) = (cell(2), cell(9), Sender::Pe(PeId(3)));
    let run = |entry| Load::Message(Heading { what: What::Run(entry), priority: Priority::ORDINARY });
    let go = |to| Load::Message(Heading { what: What::Migrate(PeId(to)), priority: Priority::ORDINARY });
    let parcel = |key, origin, epoch, stamp, load| {
        moving(1, Moving::Parcel(Parcel { key, origin: PeId(origin), epoch, stamp, load }))
    };
    taken(2, &parcel(sound, 2, 1, Some((pe, 7)), run(ADD)));
    taken(2, &parcel(cell(1), 2, 0, None, go(3)));
    refused(2, &parcel(outside, 2, 1, Some((pe, 7)), run(ADD)), "element [9]");
    refused(2, &parcel(sound, 9, 1, Some((pe, 7)), run(ADD)), "PE 9");
    refused(2, &parcel(sound, 2, 1, Some((Sender::Pe(PeId(4)), 7)), run(ADD)), "PE 4");
    refused(2, &parcel(sound, 2, 1, Some((Sender::Chare(outside), 7)), run(ADD)), "element [9]");
    refused(2, &parcel(sound, 2, 1, Some((pe, 7)), run(99)), "entry method 99");
    refused(2, &parcel(sound, 2, 1, Some((pe, 7)), go(4)), "PE 4");
    refused(2, &parcel(sound, 2, 1, Some((pe, 7)), go(u32::MAX)), "driver");
    refused(2, &parcel(cell(1), 2, 1, None, run(ADD)), "without a number");
    refused(2, &parcel(sound, 2, 0, None, run(ADD)), "at home on PE 1");
    let begin = Load::Begin(Sender::Chare(outside), Class::Small);
    refused(2, &parcel(sound, 2, 1, Some((pe, 0)), begin), "element [9]");

    let tell = |element, at| moving(1, Moving::Tell { element, at: PeId(at), epoch: 3 });
    taken(2, &tell(sound, 3));
    refused(2, &tell(outside, 3), "element [9]");
    refused(2, &tell(sound, 4), "PE 4");
    let single = |creator| ElementId {
        collection: CollectionId::singles(0),
        index: ElementIndex::of_single(PeId(creator), PeId(1), 5),
    };
    let gone = |chare| moving(1, Moving::Gone { chare, epoch: 1, taken: 2, spoken: 0 });
    let forget = |chare| moving(1, Moving::Forget { chare, epoch: 1 });
    taken(2, &gone(single(3)));
    taken(2, &forget(single(3)));
    refused(2, &gone(single(9)), "element");
    refused(2, &forget(single(9)), "element");
    refused(2, &gone(cell(1)), "that is forgotten");
    refused(2, &forget(sound), "that is forgotten");
    let introduce = |element, home, chare| moving(1, Moving::Introduce { element, home: PeId(home), chare });
    taken(2, &introduce(sound, 2, cell(1)));
    refused(2, &introduce(sound, 1, cell(1)), "at home on PE 1");
    refused(2, &introduce(sound, 2, cell(3)), "at home on PE 1");
    let audience = |entry, member| Audience {
        collection: CELLS,
        members: Some(vec![ElementIndex([member, 0, 0])]),
        entry,
        priority: Priority::ORDINARY,
    };
    let spoken = |chare, audience| moving(1, Moving::Spoken { chare, number: 0, audience });
    taken(2, &spoken(cell(1), audience(ADD, 3)));
    refused(2, &spoken(cell(0), audience(ADD, 3)), "at home on PE 1");
    refused(2, &spoken(cell(1), audience(99, 3)), "entry method 99");
    refused(2, &spoken(cell(1), audience(ADD, 4)), "element [4]");
}

#[test]
fn impossible_news_of_elements_that_end_or_come_back_are_refused() {
    let said = |pe, change| at(pe, ToPe::Contributors(Box::new(Contributors { collection: CELLS, change })));
    let fewer = |count| said(0, Change::Fewer { from: 3, count });
    taken(2, &fewer(4));
    refused(2, &fewer(0), "0 elements of 4");
    refused(3, &fewer(5), "5 elements of 4");
    refused(0, &fewer(1), "not for this node");
    let places = |via: &[u32]| via.iter().map(|pe| (PeId(*pe), 3)).collect();
    let at_index = |index| ElementIndex([index, 0, 0]);
    let joins =
        |index, via: &[u32]| said(0, Change::Joins { index: at_index(index), from: 3, via: places(via) });
    taken(2, &joins(2, &[2, 2]));
    refused(0, &joins(2, &[2, 2]), "not for this node");
    refused(2, &joins(9, &[2, 2]), "element [9]");
    refused(2, &joins(2, &[1, 2]), "at home on PE 1");
    refused(2, &joins(2, &[2, 77]), "PE 77");
    refused(2, &joins(2, &[2, u32::MAX]), "driver");
    refused(2, &joins(2, &[]), "from nowhere");
    refused(2, &joins(2, &[2; 6]), "in a circle");
    let joined =
        |index, via: &[u32]| said(1, Change::Joined { index: at_index(index), from: 3, via: places(via) });
    taken(2, &joined(1, &[1, 1]));
    refused(2, &joined(1, &[1, 0]), "another way than by PE 1");
    refused(2, &joined(1, &[]), "another way than by PE 1");
    refused(2, &joined(0, &[1]), "at home on PE 1");
    let unknown = Contributors { collection: ELSEWHERE, change: Change::Fewer { from: 0, count: 1 } };
    refused(2, &at(0, ToPe::Contributors(Box::new(unknown))), "which this run does not have");
}

/// What a node tells its own PEs has no form in which it could come from outside.
#[test]
fn a_pe_takes_six_kinds_of_messages_from_outside() {
    let body = |kind: u8| {
        let relay = at(0, ToPe::Relay(Box::new(CallbackTarget::Ignore)));
        let mut body = encode(&relay, Packed::default()).body.to_vec();
        // The last two bytes are the kind of the message and the callback.
        let at = body.len() - 2;
        assert_eq!(body[at], 3);
        body[at] = kind;
        // Enough for any kind of message.
        body.extend([0; 64]);
        Frame { body: body.into(), attachments: Vec::new() }
    };
    for kind in 0..128 {
        assert_eq!(decode::<WorkToNode>(body(kind)).is_ok(), kind < 6, "{kind}");
    }
}

#[test]
fn work_has_one_of_two_colours_or_none_and_control_has_none() {
    let work = at(0, ToPe::Relay(Box::new(CallbackTarget::Ignore)));
    for (colour, bits) in [(None, 0), (Some(Colour::White), 4), (Some(Colour::Red), 8)] {
        let frame = encode_in(colour, &work, Packed::default());
        assert_eq!(frame.body[0], bits);
        assert_eq!(decode_in::<WorkToNode>(frame).unwrap().0, colour);
    }
    let with_first = |header: Frame, first: u8| {
        let mut body = header.body.to_vec();
        body[0] = first;
        Frame { body: body.into(), attachments: Vec::new() }
    };
    let plain = || encode(&work, Packed::default());
    let colours = (0..=u8::MAX).filter(|first| decode::<WorkToNode>(with_first(plain(), *first)).is_ok());
    assert_eq!(colours.collect::<Vec<_>>(), [0, 4, 8]);
    let control = || encode(&ControlToNode::VariableSet(1), Packed::default());
    let kinds = (0..=u8::MAX).filter(|first| decode::<ControlToNode>(with_first(control(), *first)).is_ok());
    assert_eq!(kinds.collect::<Vec<_>>(), [2]);
}

#[test]
fn orders_to_pes_are_taken_from_the_launcher_for_pes_of_this_node() {
    let order = |pe, order| ControlToNode::Order(Order::ToPe(PeId(pe), order));
    let measure = |budget_ms| order(0, PeOrder::Measure { budget_ms });
    refused(2, &order(0, PeOrder::NameHeld), "which only the launcher sends");
    refused(2, &measure(9), "which only the launcher sends");
    refused(0, &order(0, PeOrder::PrepareKernel { kernel: 0 }), "kernel 0");
    refused(0, &measure(60_001), "60001 ms");
    taken(0, &measure(9));
    taken(0, &order(1, PeOrder::NameHeld));
    taken(0, &order(1, PeOrder::HandOver { to: NodeId(3) }));
    for nowhere in [0, 1, 4] {
        refused(0, &order(1, PeOrder::HandOver { to: NodeId(nowhere) }), "on its way to");
    }
    refused(0, &order(1, PeOrder::Close), "an order that only all PEs of a node get");
    refused(0, &order(2, PeOrder::NameHeld), "PE 2 on node 1");
    refused(0, &order(u32::MAX, PeOrder::NameHeld), "driver on node 1");
}

#[test]
fn a_node_joins_under_the_next_number_with_pes_and_an_address() {
    let entry = |name: &str, address: &str, pe_count| NodeEntry {
        name: name.into(),
        address: address.into(),
        pe_count,
    };
    let admit = |node, entry| ControlToNode::Order(Order::Admit(NodeId(node), entry));
    let good = entry("d", "127.0.0.1:4000", 2);
    refused(2, &admit(4, good.clone()), "which only the launcher sends");
    let long = "x".repeat(256);
    let wrong = [
        (3, good.clone()),
        (u16::MAX, good.clone()),
        (4, entry("", "127.0.0.1:4000", 2)),
        (4, entry(&long, "127.0.0.1:4000", 2)),
        (4, entry("d", "nowhere", 2)),
        (4, entry("d", "127.0.0.1:4000", 0)),
        (4, entry("d", "127.0.0.1:4000", u32::MAX)),
    ];
    for (number, entry) in wrong {
        refused(0, &admit(number, entry), "as one more node");
    }
    let (node, faults) = node(1);
    let pes = node.topology().pe_count();
    for number in [4, 5] {
        node.receive(NodeId(0), Class::Control, encode(&admit(number, good.clone()), Packed::default()));
    }
    assert!(faults.0.lock().unwrap().is_empty());
    let now = node.topology();
    assert_eq!(
        (now.node_count(), now.pes(NodeId(4)), now.pes(NodeId(5))),
        (6, &[pes, pes + 1][..], &[pes + 2, pes + 3][..])
    );
    node.stop_pes().into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn pes_go_where_the_launcher_says_and_only_they_come() {
    let arrange = |pe, node| ControlToNode::Order(Order::Arrange(vec![(PeId(pe), NodeId(node))]));
    refused(2, &arrange(2, 1), "which only the launcher sends");
    for (pe, node) in [(4, 1), (u32::MAX, 1), (2, 0), (2, 4)] {
        refused(0, &arrange(pe, node), "on its way to");
    }
    let record =
        |pe, of| WorkToNode::Record(Sent { header: RecordHeader { pe: PeId(pe), of }, is_long: false });
    refused(2, &record(0, RecordOf::Pe), "a record, which only the launcher sends");
    let (node, faults) = node(1);
    node.receive(NodeId(0), Class::Control, encode(&arrange(2, 1), Packed::default()));
    assert_eq!((node.topology().pes(NodeId(1)), node.topology().pes(NodeId(2))), (&[0, 1, 2][..], &[][..]));
    let said = |from, pe, of| {
        node.receive(NodeId(from), Class::Small, encode(&record(pe, of), Packed::default()));
        std::mem::take(&mut *faults.0.lock().unwrap()).len()
    };
    assert_eq!(said(2, 2, RecordOf::Pe), 0, "it comes from where it was");
    assert_eq!(said(3, 2, RecordOf::Pe), 1, "not from anywhere else; more is not said");
    node.stop_pes().into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn callbacks_to_nobody_are_refused() {
    let relay = |callback| at(0, ToPe::Relay(Box::new(callback)));
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

fn partial(change: impl FnOnce(&mut PartialHeader)) -> WorkToNode {
    partial_at(1, change)
}

/// Nobody has a message followed in the name of another node's PE.
#[test]
fn a_mark_is_of_a_pe_of_the_sender() {
    let marked = |from| {
        let (pe, message) = (PeId(1), element(CELLS, 1, ADD));
        let mark = Some(Mark { from: PeId(from), number: 5 });
        WorkToNode::ToPe { pe, priority: Priority::ORDINARY, mark, message }
    };
    refused(2, &marked(3), "in the name of PE 3");
}

/// A part of a reduction for a PE.
fn partial_at(pe: u32, change: impl FnOnce(&mut PartialHeader)) -> WorkToNode {
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
        mark: Mark::NONE,
    };
    change(&mut header);
    at(pe, ToPe::Partial(Box::new(header)))
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
    let spread = |root, what| WorkToNode::Spread { root: NodeId(root), what };
    let all = |collection, entry| Spread::Broadcast {
        collection,
        entry,
        priority: Priority::ORDINARY,
        mark: Mark::NONE,
    };
    taken(0, &spread(1, all(CELLS, ADD)));
    taken(2, &spread(2, all(CELLS, ADD)));
    refused(3, &spread(2, all(CELLS, ADD)), "begins at node 2 and comes from node 3");
    refused(2, &spread(1, all(CELLS, ADD)), "begins at node 1 and comes from node 2");
    refused(2, &spread(0, all(CELLS, ADD)), "node 0 as the root");
    refused(2, &spread(999, all(CELLS, ADD)), "node 999 as the root");
    refused(2, &spread(2, all(CELLS, 50)), "entry method 50");
    taken(0, &ControlToNode::InitOver(true));
    refused(2, &ControlToNode::InitOver(true), "the end of initialisation from node 2");
    let collection = |id| announcement(2, Announcement::Collection(cells(id)));
    taken(2, &collection(CollectionId::made_by(PeId(2), 1)));
    refused(2, &collection(CollectionId::made_by(PeId(3), 1)), "in the name of PE 3");
    refused(2, &collection(CollectionId::singles(0)), "which this run does not have");
    refused(0, &announcement(1, Announcement::Collection(cells(CELLS))), "a second time");
    let mut huge = cells(CollectionId::made_by(PeId(2), 1));
    huge.shape = [1 << 20, 1 << 10, 1];
    refused(
        2,
        &announcement(2, Announcement::Collection(huge.clone())),
        "too many to be constructed together",
    );
    huge.shape = [u32::MAX; 3];
    refused(2, &announcement(2, Announcement::Collection(huge)), "no or too many elements");
    let mut other = cells(CollectionId::made_by(PeId(2), 1));
    other.chare_type = 60;
    refused(2, &announcement(2, Announcement::Collection(other)), "chare type 60");
}

#[test]
fn variables_are_set_by_who_made_them() {
    let variable = |id: CollectionId, kind, origin, acknowledge: Option<u16>| {
        let acknowledge = acknowledge.map(NodeId);
        announcement(2, Announcement::Variable { id: id.0, kind, origin, acknowledge })
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
fn what_only_the_launcher_says_is_refused_from_others() {
    let table = ClusterTable::new("r", Vec::new());
    let welcome =
        || Order::Welcome(Box::new(Welcome { wire_version: 1, fingerprint: 1, table: table.clone() }));
    let speeds = |speeds: &[f64]| Order::Speeds(speeds.to_vec());
    for order in [Order::Ask(1), speeds(&[1.0; 4]), Order::Collect(CELLS.0), Order::End, welcome()] {
        refused(2, &ControlToNode::Order(order), "which only the launcher sends");
    }
    taken(0, &ControlToNode::Order(speeds(&[1.0; 4])));
    refused(0, &ControlToNode::Order(welcome()), "a second welcome");
    refused(0, &ControlToNode::Order(Order::Collect(5)), "which this run does not have");
    for wrong in [&[1.0; 3][..], &[f64::NAN; 4], &[0.0; 4], &[-1.0; 4]] {
        refused(0, &ControlToNode::Order(speeds(wrong)), "a speed above 0 for each PE");
    }
    let stray = ControlToNode::Quiescence(QuiescenceMessage::Probe { wave: 1 });
    refused(2, &stray, "a quiescence probe came from node 2, not from above");
    refused(2, &ControlToNode::VariableSet(5), "which this run does not have");
}

/// Whatever comes to a kind of receiver or on a stream for which it is not is refused before it is read.
#[test]
fn what_is_for_others_or_came_another_way_is_not_read() {
    let refused = |to: u16, class, frame: Frame, why: &str| {
        let (node, faults) = node(to);
        let (driver, events) = std::sync::mpsc::channel();
        node.listen(runtime::node::Listeners { driver, supervision: None, balancing: None });
        node.receive(NodeId(2), class, frame);
        let to_driver = events.try_iter().find_map(|event| match event {
            runtime::node::DriverEvent::Failed(failure) => Some(failure.sentence),
            _ => None,
        });
        let said = faults.0.lock().unwrap().pop().or(to_driver).unwrap_or_default();
        let expected = format!("node 2 sent node {to} a message that it refuses: it is {why}");
        assert_eq!(said, expected);
    };
    let work = || encode(&at(1, element(CELLS, 1, ADD)), Packed::default());
    let result = || encode(&WorkToLauncher::Result(1), Packed::default());
    let control = || encode(&ControlToNode::VariableSet(1), Packed::default());
    let joined = || encode(&ControlToLauncher::Joining(JoinAnswer::Joined), Packed::default());
    let [to_node, to_launcher] = ["work for a node with PEs", "work for the launcher"];
    let [of_node, of_launcher] = ["control of a node with PEs", "control for the launcher"];
    let where_only = |found: &str, expected: &str| format!("{found}, where only {expected} comes");
    for class in [Class::Small, Class::Large] {
        refused(1, class, result(), &where_only(to_launcher, to_node));
        refused(1, class, control(), &where_only(of_node, to_node));
        refused(0, class, work(), &where_only(to_node, to_launcher));
        refused(0, class, joined(), &where_only(of_launcher, to_launcher));
    }
    // Nothing holds back what comes on this stream, so no work may.
    refused(1, Class::Control, work(), &where_only(to_node, of_node));
    refused(1, Class::Control, joined(), &where_only(of_launcher, of_node));
    refused(0, Class::Control, result(), &where_only(to_launcher, of_launcher));
    refused(0, Class::Control, control(), &where_only(of_node, of_launcher));
    let garbage = Frame { body: vec![99; 5].into(), attachments: Vec::new() };
    refused(1, Class::Small, garbage, &where_only("nothing that is known", to_node));
}

#[test]
fn the_launcher_believes_no_node_about_another() {
    let said = |control: ControlToLauncher| {
        let (node, _) = node(0);
        let (driver, events) = std::sync::mpsc::channel();
        node.listen(runtime::node::Listeners { driver, supervision: None, balancing: None });
        node.receive(NodeId(2), Class::Control, encode(&control, Packed::default()));
        events.try_iter().find_map(|event| match event {
            runtime::node::DriverEvent::Failed(failure) => Some(failure.sentence),
            _ => None,
        })
    };
    let snapshot = |node, pes: &[u32]| {
        let pe = |&pe| runtime::monitor::wire::PeSnapshot { pe, ..Default::default() };
        Box::new(NodeSnapshot { node, pes: pes.iter().map(pe).collect(), ..NodeSnapshot::default() })
    };
    assert_eq!(said(ControlToLauncher::Snapshot(snapshot(2, &[2]))), None);
    assert_eq!(said(ControlToLauncher::Speed(PeId(2), 3.0, 4.0)), None);
    let refused = |control| {
        let sentence = said(control).unwrap_or_default();
        assert!(sentence.starts_with("node 2 sent node 0 a message that it refuses: "), "{sentence}");
    };
    let samples = |node, pe| {
        let (ran, sent) = (vec![Ran { pe, ..Ran::default() }], Vec::new());
        ControlToLauncher::Samples(Box::new(Samples { node, ran, sent }))
    };
    assert_eq!(said(samples(2, 2)), None);
    refused(samples(3, 2));
    refused(samples(2, 900));
    let sent = vec![runtime::monitor::samples::Sent::default(); SAMPLES_MAX + 1];
    refused(ControlToLauncher::Samples(Box::new(Samples { node: 2, ran: Vec::new(), sent })));
    let collectives = |node, pe, count| {
        let gathered = vec![Gathered { pe, ..Gathered::default() }; count];
        ControlToLauncher::Collectives(Box::new(Collectives { node, gathered }))
    };
    assert_eq!(said(collectives(2, 2, 1)), None);
    refused(collectives(3, 2, 1));
    refused(collectives(2, 900, 1));
    refused(collectives(2, 2, GATHERED_MAX + 1));
    refused(ControlToLauncher::Snapshot(snapshot(3, &[3])));
    refused(ControlToLauncher::Snapshot(snapshot(2, &[])));
    refused(ControlToLauncher::Answer(1, snapshot(2, &[2, 3])));
    refused(ControlToLauncher::Speed(PeId(3), 3.0, 4.0));
    refused(ControlToLauncher::Speed(PeId(900), 3.0, 4.0));
    refused(ControlToLauncher::Speed(PeId(2), f64::NAN, 4.0));
    refused(ControlToLauncher::Speed(PeId(2), 3.0, -1.0));
    refused(ControlToLauncher::LinkLost(NodeId(4), String::new()));
    refused(ControlToLauncher::Collected(5));
    let faulty = said(ControlToLauncher::Fault(format!("\x1b[2J{}", "x".repeat(100_000)))).unwrap();
    assert!(faulty.len() < 3000 && !faulty.contains('\x1b'), "{} bytes", faulty.len());
}

#[test]
fn no_node_tells_of_loads_that_cannot_be() {
    let said = |loads: &[u8]| {
        let (node, _) = node(0);
        let ((driver, events), (balancing, told)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
        node.listen(runtime::node::Listeners { driver, supervision: None, balancing: Some(balancing) });
        let payload = Packed { body: loads.to_vec().into(), attachments: Vec::new() };
        node.receive(NodeId(2), Class::Small, encode(&WorkToLauncher::Loads, payload));
        let is_refused =
            events.try_iter().any(|event| matches!(event, runtime::node::DriverEvent::Failed(_)));
        assert_ne!(is_refused, told.try_recv().is_ok(), "it is taken or refused");
        !is_refused
    };
    let of_chares = |pe, wall_ns, cpu_part, messages, chares| {
        let (fixed_ns, traffic) = (0, Vec::new());
        let other_traffic = Amount { messages, bytes: 0 };
        let one = PeLoads {
            pe: PeId(pe),
            wall_ns,
            cpu_part,
            probed: cpu_part,
            fixed_ns,
            chares,
            traffic,
            other_traffic,
        };
        postcard::to_stdvec(&NodeLoads { bytes_per_s: 1.0, room_bytes: None, pes: vec![one] }).unwrap()
    };
    let with_messages =
        |pe, wall_ns, cpu_part, messages| of_chares(pe, wall_ns, cpu_part, messages, Vec::new());
    let says = |mobility, remaining| {
        let element = ElementId { collection: CELLS, index: ElementIndex([0; 3]) };
        let whereabouts = Whereabouts::Here;
        let chare = ChareLoad { element, cpu_ns: 1, bytes: 1, whereabouts, mobility, remaining };
        of_chares(2, 5, None, 3, vec![chare])
    };
    let remains = |units| says(Mobility::Anywhere, Some(units));
    assert!(said(&remains(0.0)) && said(&remains(1e12)));
    assert!([-1.0, 1e300, f64::NAN, f64::INFINITY].into_iter().all(|units| !said(&remains(units))));
    let may_go_to = |pe| says(Mobility::one_of([0, pe]), None);
    assert!(said(&may_go_to(3)) && !said(&may_go_to(4)), "there are four PEs");
    let loads = |pe, wall_ns, cpu_part| with_messages(pe, wall_ns, cpu_part, 3);
    assert!(!said(&with_messages(2, 5, None, u64::MAX)));
    assert!(said(&loads(2, 5, Some(0.5))) && said(&loads(2, 5, None)));
    assert!(!said(&loads(1, 5, None)), "the PE of another node");
    assert!(!said(&loads(2, u64::MAX, None)));
    for part in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
        assert!(!said(&loads(2, 5, Some(part))), "{part}");
    }
    assert!(!said(&[0xff; 30]));
}

/// A message that decodes, for an element that is there, with content that its entry method does not take.
#[test]
fn content_that_is_not_the_message_ends_the_run_with_the_entry_method_named() {
    let mut run = Run::new();
    let made = run.begin(0);
    run.calm();
    let garbage = Packed { body: vec![0xff; 40].into(), attachments: Vec::new() };
    let frame = encode(&pass_from_3(&made), garbage);
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
        let frame = encode(&pass_from_3(&made), pack(&Pass { hops: 0, done }));
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
    let frame = encode(&at(combiner.0, ToPe::Relay(Box::new(CallbackTarget::Slot(7)))), pack(&0u64));
    run.nodes[1].receive(NodeId(2), Class::Small, frame);
    assert_eq!(run.next_result(), Ok(7));
    let known = announcement(2, Announcement::Collection(cells(id)));
    run.nodes[1].receive(NodeId(2), Class::Small, encode(&known, pack(&1u64)));
    let ask = pack(&Ask { is_ordered: true, done: CallbackTarget::Slot(8) });
    for index in [0, 1] {
        let frame = encode(&at(index, element(id, index, ASK)), ask.clone());
        run.nodes[1].receive(NodeId(2), Class::Small, frame);
    }
    assert_eq!(run.next_result(), Ok(8));
    run.end();
}
