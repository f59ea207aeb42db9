//! Two PEs on the test's own thread. An element that is at home on the first ends on the second.

use super::*;
use crate::collection::{Collection, Placement};
use crate::envelope::{Arrived, Value};
use crate::ids::NodeId;
use crate::node::{Node, NodeSettings};
use crate::object::{ChareType, ProgramTable, Store};
use crate::pe::Pe;
use crate::pe::inbox::Arrival;
use crate::proto::snapshot::Colour;
use crate::topology::Topology;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

const ARRAY: CollectionId = CollectionId(1 << 63 | 1);
const ONE: ElementIndex = ElementIndex([0, 0, 0]);
const HEAR: u16 = 0;
const END: u16 = 1;

thread_local! {
    static DONE: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

fn done(what: &'static str) {
    DONE.with_borrow_mut(|all| all.push(what));
}

/// The only element of its array.
#[derive(Default)]
struct Only {
    is_here: bool,
    has_left: bool,
}

impl Store for Only {
    fn find(&self, _: ElementIndex) -> Option<usize> {
        self.is_here.then_some(0)
    }
    fn is_gone(&self, _: ElementIndex) -> bool {
        false
    }
    fn run(&mut self, _: usize, _: u16, _: Value, _: &mut Pe) -> Result<(), PupError> {
        unreachable!("all messages are packed")
    }
    fn run_packed(&mut self, _: usize, entry: u16, _: &Packed, pe: &mut Pe) -> Result<(), PupError> {
        if entry == HEAR {
            done("heard");
            return Ok(());
        }
        done("ended");
        self.is_here = false;
        let remains = Remains { sequence: 0, sections: Vec::new(), mover: None };
        pe.element_ended(ElementId { collection: ARRAY, index: ONE }, PeId(0), remains);
        Ok(())
    }
    fn run_all(&mut self, entry: u16, packed: &Packed, pe: &mut Pe) -> Result<u64, PupError> {
        // One that has left its home gets a copy.
        if self.has_left { Ok(0) } else { self.run_packed(0, entry, packed, pe).map(|()| 1) }
    }
    fn insert(
        &mut self,
        _: ElementIndex,
        _: Option<Remains>,
        _: Arrived<'_>,
        _: &mut Pe,
    ) -> Result<(), PupError> {
        done("made");
        self.is_here = true;
        Ok(())
    }
    fn take(&mut self, _: usize) -> Option<(PeId, Packed)> {
        self.has_left = true;
        std::mem::take(&mut self.is_here).then(|| (PeId(0), Packed::default()))
    }
    fn packed_bytes(&self, _: usize) -> u64 {
        0
    }
    fn put(&mut self, _: ElementIndex, _: &Packed) -> Result<(), PupError> {
        self.is_here = true;
        Ok(())
    }
    fn save(&self, _: &mut dyn FnMut(ElementIndex, Packed)) {}
    fn len(&self) -> usize {
        usize::from(self.is_here)
    }
}

fn node() -> Arc<Node> {
    let chare_type = ChareType::of_test("Only", &["Hear", "End"], |_| Box::new(Only::default()));
    let program = ProgramTable { chare_types: vec![chare_type], ..ProgramTable::default() };
    let node = Node::new(NodeId(1), Topology::new(&[0, 2]), Arc::new(program), NodeSettings::default());
    let array = Collection::new(ARRAY, 0, [1, 1, 1], Placement::Bounds(vec![0, 1, 1]), true, 2).unwrap();
    node.create(Colour::White, array, Packed::default());
    node
}

fn push(node: &Node, pe: u32, target: impl Into<Target>) {
    node.pes().push(PeId(pe), None, Envelope::new(target, 0, Payload::packed(Packed::default())));
}

/// Has a PE do all that there is to do; what it has done.
fn work(scheduler: &mut Scheduler) -> Vec<&'static str> {
    let node = Arc::clone(&scheduler.pe.node);
    // What it tells itself is behind the order to stop.
    for _ in 0..8 {
        push(&node, scheduler.pe.id.0, Target::Stop);
        scheduler.work(&mut VecDeque::new());
    }
    DONE.with_borrow_mut(std::mem::take)
}

fn insertion() -> ToPe {
    ToPe::Insert { collection: ARRAY, index: ONE }
}

fn message(entry: u16) -> ToPe {
    ToPe::Element { collection: ARRAY, index: ONE, entry, from: PeId(0), number: 0 }
}

fn to_all(entry: u16) -> Target {
    Target::All { collection: ARRAY, entry, mark: crate::mark::Mark::NONE }
}

#[test]
fn what_was_said_to_all_before_is_not_for_the_next_however_late_it_comes_home() {
    let node = node();
    let (mut home, mut away) = (Scheduler::new(&node, PeId(0)), Scheduler::new(&node, PeId(1)));
    push(&node, 0, insertion());
    push(&node, 0, Target::Depart { collection: ARRAY, index: ONE, to: PeId(1) });
    assert_eq!((work(&mut home), work(&mut away)), (vec!["made"], vec![]));
    // What home says to all is on its way while the element ends.
    push(&node, 0, to_all(HEAR));
    work(&mut home);
    let mut late: VecDeque<Arrival> = VecDeque::new();
    node.pes().inbox(PeId(1)).take(&mut late);
    // As one that was said to all before, so that nothing waits for it.
    push(&node, 1, Target::Copy { collection: ARRAY, index: ONE, entry: END });
    assert_eq!(work(&mut away), ["ended"]);
    // What is left of it has come home, and another is asked for, before that comes back.
    push(&node, 0, insertion());
    assert_eq!(work(&mut home), Vec::<&str>::new(), "what was said to all is still under way");
    late.into_iter().for_each(|arrival| arrival.open(|envelope| node.pes().push(PeId(1), None, envelope)));
    assert_eq!((work(&mut away), work(&mut home)), (vec![], vec!["made"]));
    push(&node, 0, to_all(HEAR));
    assert_eq!(work(&mut home), ["heard"]);
}

#[test]
fn what_waits_for_its_turn_and_was_said_to_all_before_is_not_for_the_next() {
    let node = node();
    let (mut home, mut combiner) = (Scheduler::new(&node, PeId(0)), Scheduler::new(&node, PeId(1)));
    push(&node, 0, insertion());
    push(&node, 0, message(END));
    assert_eq!((work(&mut home), work(&mut combiner)), (vec!["made", "ended"], vec![]));
    push(&node, 0, insertion());
    assert_eq!(work(&mut home), Vec::<&str>::new(), "it has to be counted first");
    push(&node, 0, to_all(HEAR));
    // The answer that it is counted comes behind that, and is more urgent.
    assert_eq!((work(&mut combiner), work(&mut home)), (vec![], vec!["made"]));
    push(&node, 0, to_all(HEAR));
    assert_eq!(work(&mut home), ["heard"]);
}
