//! A message of its own for each of many elements.

use super::Pe;
use crate::codec::{WorkToNode, append_header};
use crate::envelope::{CollectionId, ElementId, ElementIndex, Outgoing, ToPe};
use crate::ids::{NodeId, PeId};
use crate::mark::Mark;
use crate::payload::Unsent;
use crate::priority::Priority;
use crate::scatter::Bundle;
use std::collections::BTreeMap;

/// What goes to other nodes together.
type Bundles = BTreeMap<NodeId, Bundle>;

impl Pe {
    /// Sends each of these elements of a collection a message of its own, ordinary ones. Short ones for the same other
    /// node go there together; nobody but the sender can tell.
    pub fn scatter<M: Outgoing>(
        &mut self,
        collection: CollectionId,
        entry: u16,
        messages: impl Iterator<Item = (ElementIndex, M)>,
    ) {
        let mut bundles = Bundles::new();
        for (index, message) in messages {
            match self.elsewhere(collection, index) {
                Some(at) => {
                    if self.traffic.is_next() {
                        self.look_at(ElementId { collection, index }, &message);
                    }
                    self.bundle(&mut bundles, at, (collection, index, entry), &mut Some(message));
                }
                None => self.send_element((collection, index, None), entry, 0, message),
            }
        }
        self.send_bundles(bundles, collection, entry);
    }

    /// Where an element lives, if that is known and is another node, and messages to it have no numbers.
    fn elsewhere(&mut self, collection: CollectionId, index: ElementIndex) -> Option<(NodeId, PeId)> {
        let is_numbered = !self.moved.locations.is_empty() && self.numbers(ElementId { collection, index });
        if is_numbered || self.is_waited_for(collection) {
            return None;
        }
        let pe = self.place_of(collection, index)??;
        let node = self.node.topology().node_of(pe);
        (node != self.node.id()).then_some((node, pe))
    }

    fn bundle(
        &mut self,
        bundles: &mut Bundles,
        (node, pe): (NodeId, PeId),
        (collection, index, entry): (CollectionId, ElementIndex, u16),
        message: &mut dyn Unsent,
    ) {
        self.account().created(1);
        let bundle = bundles.entry(node).or_default();
        if let Err(payload) = bundle.add(pe, index, message) {
            let Mark { from, number } = self.mark();
            let message = ToPe::Element { collection, index, entry, from, number };
            self.transmit(node, &WorkToNode::to_pe(pe, Priority::ORDINARY, message), payload);
        } else if bundle.is_full() {
            let mark = self.mark();
            self.send_bundle(node, bundle.take(collection, entry, mark));
        }
    }

    fn send_bundles(&mut self, bundles: Bundles, collection: CollectionId, entry: u16) {
        for (node, mut bundle) in bundles {
            if !bundle.is_empty() {
                let mark = self.mark();
                self.send_bundle(node, bundle.take(collection, entry, mark));
            }
        }
    }

    fn send_bundle(&mut self, node: NodeId, (header, body): (WorkToNode, Vec<u8>)) {
        self.written.clear();
        let colour = self.colour();
        append_header(&header, Some(colour), &mut self.written);
        self.written.extend_from_slice(&body);
        let bytes = self.node.send_small(node, &header, &self.written);
        self.account().left_small(node, colour, bytes);
    }
}
