//! What the PEs of a node share without messages, and how all nodes come to know it.

use super::Node;
use super::sums::Sums;
use super::variables::Variables;
use crate::codec::{Announcement, ControlToLauncher, ControlToNode, Spread, VariableKind, WorkToNode};
use crate::envelope::{CallbackTarget, Envelope, Packed, Payload, ToPe};
use crate::ids::{NodeId, PeId};
use crate::priority::Priority;
use crate::proto::snapshot::Colour;

impl Node {
    /// Values that its PEs share.
    #[must_use]
    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    /// What its PEs have added to accumulators.
    #[must_use]
    pub fn sums(&self) -> &Sums {
        &self.sums
    }

    /// Sets a variable on all nodes, for a PE of that colour; the driver hears `VariableSet` from each if `acknowledge`.
    pub fn set_variable(
        &self,
        (origin, colour): (PeId, Colour),
        id: u64,
        kind: VariableKind,
        packed: Packed,
        acknowledge: bool,
    ) {
        let acknowledge = acknowledge.then_some(self.id);
        let variable = Announcement::Variable { id, kind, origin, acknowledge };
        self.spread(colour, Spread::Announcement(variable), packed);
    }

    /// Relays `ready` to `callback` when every node has acknowledged the variable, which a PE of that colour has set.
    pub(crate) fn expect_everywhere(
        &self,
        by: (PeId, Colour),
        id: u64,
        callback: CallbackTarget,
        ready: Packed,
    ) {
        let missing = self.topology().members().collect();
        self.variables.expect(id, missing, (callback, ready), by);
    }

    /// A node has a variable in place; if it was the last, whoever waits for that is told.
    pub(super) fn acknowledged(&self, by: NodeId, id: u64) {
        self.variables.acknowledged(by, id, |callback, ready, colour| {
            let nodes = self.topology().compute_nodes();
            let Some(node) = nodes.iter().find(|node| **node == self.id).or(nodes.first()).copied() else {
                return;
            };
            let (pe, message) = (PeId(self.topology().pes(node)[0]), ToPe::Relay(Box::new(callback)));
            if node == self.id {
                self.pes.push(pe, Some(colour), Envelope::new(message, 0, Payload::packed(ready)));
            } else {
                let header = WorkToNode::to_pe(pe, Priority::ORDINARY, message);
                self.send_frame((node, Some(colour)), &header, ready);
            }
        });
    }

    /// Tells the node that waits for it that a variable is in place here.
    pub(super) fn acknowledge(&self, node: NodeId, id: u64) {
        match node {
            NodeId::LAUNCHER => self.tell_launcher(ControlToLauncher::VariableSet(id)),
            node if node == self.id => self.acknowledged(node, id),
            node => self.control(node, ControlToNode::VariableSet(id)),
        }
    }
}
