//! A PE on the test's own thread, whose elements go to the next one.

use super::*;
use crate::envelope::{Arrived, Value};
use crate::ids::NodeId;
use crate::node::{Node, NodeSettings};
use crate::object::{ChareType, ProgramTable, Store};
use crate::pe::Pe;
use crate::pe::ending::Remains;
use crate::topology::Topology;
use std::collections::VecDeque;

/// Elements that do nothing: those that are here.
struct Crowd(Vec<ElementIndex>);

impl Store for Crowd {
    fn find(&self, index: ElementIndex) -> Option<usize> {
        self.0.iter().position(|here| *here == index)
    }
    fn is_gone(&self, _: ElementIndex) -> bool {
        false
    }
    fn run(&mut self, _: usize, _: u16, _: Value, _: &mut Pe) -> Result<(), PupError> {
        Ok(())
    }
    fn run_packed(&mut self, _: usize, _: u16, _: &Packed, _: &mut Pe) -> Result<(), PupError> {
        Ok(())
    }
    fn run_all(&mut self, _: u16, _: &Packed, _: &mut Pe) -> Result<u64, PupError> {
        Ok(0)
    }
    fn insert(
        &mut self,
        _: ElementIndex,
        _: Option<Remains>,
        _: Arrived<'_>,
        _: &mut Pe,
    ) -> Result<(), PupError> {
        Ok(())
    }
    fn take(&mut self, slot: usize) -> Option<(PeId, Packed)> {
        self.0.remove(slot);
        Some((PeId(0), Packed::default()))
    }
    fn packed_bytes(&self, _: usize) -> u64 {
        0
    }
    fn put(&mut self, _: ElementIndex, _: &Packed) -> Result<(), PupError> {
        Ok(())
    }
    fn save(&self, each: &mut dyn FnMut(ElementIndex, Packed)) {
        self.0.iter().for_each(|index| each(*index, Packed::default()));
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}

const ALL: CollectionId = CollectionId(0);
const COUNT: u64 = 100;

fn element(number: u64) -> ElementIndex {
    ElementIndex::of_single(PeId(0), PeId(0), number)
}

/// How often all that waits is looked through while a PE deals with this; all elements go to the next PE meanwhile, with
/// so many messages in each one's mailbox.
fn extractions(targets: Vec<Target>) -> (u64, Vec<usize>) {
    let chare_type =
        ChareType::of_test("Crowd", &["Hear"], |_| Box::new(Crowd((0..COUNT).map(element).collect())));
    let program = ProgramTable { chare_types: vec![chare_type], ..ProgramTable::default() };
    let node = Node::new(NodeId(1), Topology::new(&[0, 2]), Arc::new(program), NodeSettings::default());
    for target in targets.into_iter().chain([Target::Stop]) {
        node.pes().push(PeId(0), None, Envelope::new(target, 0, Payload::packed(Packed::default())));
    }
    let mut scheduler = Scheduler::new(&node, PeId(0));
    scheduler.work(&mut VecDeque::new());
    let (mut arrived, mut mailboxes) = (VecDeque::new(), Vec::new());
    node.pes().inbox(PeId(1)).take(&mut arrived);
    for arrival in arrived {
        arrival.open(|envelope| match envelope.target {
            Target::Message(ToPe::Moving(moving)) => match *moving {
                Moving::Arrive(record) => mailboxes.push(record.mailbox.len()),
                other => panic!("{other:?} was never said"),
            },
            other => panic!("{other:?} was never sent"),
        });
    }
    (scheduler.pe.queue.extractions(), mailboxes)
}

fn message(number: u64) -> Target {
    ToPe::Element { collection: ALL, index: element(number), entry: 0, from: PeId(0), number: 0 }.into()
}

fn departure(number: u64) -> Target {
    Target::Depart { collection: ALL, index: element(number), to: PeId(1) }
}

#[test]
fn elements_that_are_told_to_go_together_go_in_one_pass_over_the_queue() {
    let mut targets: Vec<Target> = (0..COUNT).map(message).collect();
    targets.extend((0..COUNT).map(departure));
    targets.extend((0..3 * COUNT).map(|n| message(n % COUNT)));
    assert_eq!(extractions(targets), (1, vec![3; COUNT as usize]));
}

#[test]
fn none_goes_later_than_the_next_message() {
    let targets = (0..COUNT).flat_map(|n| [departure(n), message(n)]).collect();
    assert_eq!(extractions(targets), (COUNT, vec![1; COUNT as usize]));
}
