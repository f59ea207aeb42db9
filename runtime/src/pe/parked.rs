//! Messages to collections whose description has not arrived here: they wait for it, each collection's in their order.

use super::Pe;
use crate::envelope::{CollectionId, ElementId, ElementIndex, Payload, ToPe};
use crate::ids::PeId;
use crate::moving::Letter;
use crate::priority::Priority;
use serde::{Deserialize, Serialize};

/// What waits for the description of a collection.
#[derive(Serialize, Deserialize)]
pub(super) enum Parked {
    /// For an element at home, wherever that is.
    Plain(ElementIndex, ToPe, Priority, Payload),
    /// From a chare that has moved. It has its number already: what the chare sends from elsewhere, or later, has others,
    /// and may go any other way.
    Numbered(ElementId, Stamp, Letter),
    /// That a chare which was here sends from elsewhere now: it is said behind what the chare sent from here.
    Introduction(ElementId, ElementId),
}

/// Who has sent a message, the PE that the chare left first, and the message's number.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Stamp {
    pub(super) chare: ElementId,
    pub(super) chare_home: PeId,
    pub(super) number: u64,
}

impl Pe {
    /// Whether something waits for the description of a collection.
    #[inline]
    pub(super) fn is_waited_for(&self, collection: CollectionId) -> bool {
        !self.parked.is_empty() && self.parked.contains_key(&collection)
    }

    /// Has something wait. It is counted as created, and not as processed.
    pub(super) fn park(&mut self, collection: CollectionId, parked: Parked) {
        self.parked.entry(collection).or_default().push(parked);
        self.is_direct = false;
    }

    /// Sends what waited for the description of a collection.
    pub(super) fn unpark(&mut self, collection: CollectionId) {
        for parked in self.parked.remove(&collection).unwrap_or_default() {
            let index = match &parked {
                Parked::Plain(index, ..) => *index,
                Parked::Numbered(element, ..) | Parked::Introduction(element, ..) => element.index,
            };
            let Some(home) = self.collection(collection).and_then(|known| known.pe_of(index)) else {
                self.outside(collection, index);
                continue;
            };
            match parked {
                Parked::Plain(_, to, priority, payload) => self.dispatch(home, to, priority, payload),
                Parked::Numbered(element, stamp, letter) => self.send_stamped((element, home), stamp, letter),
                Parked::Introduction(element, chare) => {
                    self.introduce_now((element, home), chare);
                    self.account().processed();
                }
            }
        }
        self.look_around();
    }

    /// Sends what waits for descriptions that have arrived meanwhile; the driver calls this when it waits.
    pub fn unpark_known(&mut self) {
        let waiting: Vec<CollectionId> = self.parked.keys().copied().collect();
        for id in waiting {
            if self.collection(id).is_some() {
                self.unpark(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::{Collection, Placement};
    use crate::envelope::{Envelope, Packed, Target};
    use crate::ids::NodeId;
    use crate::moving::Moving;
    use crate::node::{Node, NodeSettings};
    use crate::object::ProgramTable;
    use crate::pe::inbox::Arrival;
    use crate::pe::moving::Mover;
    use crate::proto::location::{Load, Sender};
    use crate::topology::Topology;
    use std::collections::VecDeque;
    use std::sync::Arc;

    const ARRAY: CollectionId = CollectionId(1 << 63 | 1);
    const ELEMENT: ElementId = ElementId { collection: ARRAY, index: ElementIndex([5, 0, 0]) };
    const CHARE: ElementId = ElementId { collection: CollectionId(0), index: ElementIndex([0, 0, 7]) };

    /// The last PE of a node with three, where nothing is known of the array.
    fn pe() -> Pe {
        let topology = Topology::new(&[0, 3]);
        let program = Arc::new(ProgramTable::default());
        Pe::new(PeId(2), Node::new(NodeId(1), topology, program, NodeSettings::default()))
    }

    /// Sends a message that says a number.
    fn send(pe: &mut Pe, number: u8) {
        let payload = |_| Payload::packed(Packed { body: vec![number].into(), attachments: Vec::new() });
        pe.send_element((ARRAY, ELEMENT.index, None), 0, 0, payload);
    }

    /// The description arrives: all elements are at home on the first PE.
    fn announce(pe: &mut Pe) {
        let placement = Placement::Bounds(vec![0, 9, 9, 9]);
        let array = Collection::new(ARRAY, 0, [9, 1, 1], placement, true, 3).unwrap();
        pe.node.create(pe.colour(), array, Packed::default());
        pe.unpark(ARRAY);
    }

    /// What has come for a PE, in order, in one word each.
    fn arrived(pe: &Pe, of: u32) -> Vec<String> {
        let (mut arrivals, mut said) = (VecDeque::new(), Vec::new());
        pe.node.pes().inbox(PeId(of)).take(&mut arrivals);
        let mut say = |Envelope { target, payload, .. }: Envelope| {
            let Payload::Packed(packed) = payload else { panic!("it was packed") };
            said.push(match target {
                Target::Message(ToPe::Element { .. }) => format!("plain {}", packed.body[0]),
                Target::Message(ToPe::Moving(moving)) => match *moving {
                    Moving::Parcel(parcel) => match (parcel.stamp, parcel.load) {
                        (Some((Sender::Chare(CHARE), number)), Load::Message(_)) => {
                            format!("{} as number {number}", packed.body[0])
                        }
                        (None, Load::Begin(Sender::Chare(CHARE), _)) => "begin".into(),
                        other => panic!("{other:?} was never sent"),
                    },
                    Moving::Introduce { element: ELEMENT, home: PeId(0), chare: CHARE } => "introduce".into(),
                    other => panic!("{other:?} was never said"),
                },
                Target::Create(_) => return,
                other => panic!("{other:?} was never sent"),
            });
        };
        arrivals.into_iter().for_each(|arrival: Arrival| arrival.open(&mut say));
        said
    }

    #[test]
    fn what_a_chare_that_has_moved_sends_keeps_its_number_until_its_receiver_is_known() {
        let mut pe = pe();
        pe.moved.locations.learn(CHARE, PeId(2), 1);
        pe.look_around();
        pe.lend_mover(Some(Box::new(Mover::new(CHARE, PeId(1)))));
        (0..3).for_each(|number| send(&mut pe, number));
        assert_eq!(arrived(&pe, 0), [""; 0], "nobody knows where it goes");
        let count = pe.account().counts();
        assert_eq!(count.created - count.processed, 3, "it is still under way");
        // The chare goes on elsewhere, and others send from here meanwhile.
        let mover = pe.take_mover();
        send(&mut pe, 10);
        pe.lend_mover(mover);
        announce(&mut pe);
        send(&mut pe, 3);
        let expected = ["0 as number 0", "1 as number 1", "2 as number 2", "plain 10", "3 as number 3"];
        assert_eq!(arrived(&pe, 0), expected);
        assert_eq!(arrived(&pe, 1), ["introduce"]);
        let count = pe.account().counts();
        assert_eq!(count.created - count.processed, 6, "what was passed on counts instead");
    }

    #[test]
    fn a_chare_is_introduced_behind_what_it_sent_before_it_moved() {
        let mut pe = pe();
        send(&mut pe, 1);
        pe.introduce((ELEMENT, PeId(0)), CHARE);
        announce(&mut pe);
        assert_eq!(arrived(&pe, 0), ["plain 1", "begin", "begin"]);
        let count = pe.account().counts();
        assert_eq!(count.created - count.processed, 3);
    }
}
