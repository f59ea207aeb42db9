//! Messages to sections on their way: each node keeps what is for its own PEs and passes the rest on.
//!
//! The sender says where every member lives, so that a node on the way need not know the collection, and the
//! network thread passes the message on while the PEs compute. The nodes that are left are dealt out in at
//! most [`ARITY`] runs; the first node of a run gets the message for all of it.

use super::{Node, class_of};
use crate::codec::{DecodeError, Header, check_target, encode};
use crate::envelope::{CollectionId, ElementIndex, Envelope, Packed, Payload, Target};
use crate::ids::PeId;
use crate::proto::tree::ARITY;

/// Members of a section by the PE where they live, in order.
pub(crate) type MembersByPe = Vec<(PeId, Vec<ElementIndex>)>;

impl Node {
    /// Sends a message to members of a section.
    pub(crate) fn multicast(
        &self,
        collection: CollectionId,
        entry: u16,
        priority: i32,
        members: MembersByPe,
        payload: &Packed,
    ) {
        let (here, elsewhere): (MembersByPe, MembersByPe) =
            members.into_iter().partition(|(pe, _)| self.topology.node_of(*pe) == self.id);
        for (pe, members) in here {
            let target = Target::Section { collection, members, entry };
            let envelope = Envelope::new(target, priority, Payload::Packed(payload.clone()));
            self.push_arrived(pe, envelope, payload.len_bytes() as u64);
        }
        let node_of = |part: &(PeId, Vec<ElementIndex>)| self.topology.node_of(part.0);
        let by_node: Vec<&[_]> = elsewhere.chunk_by(|a, b| node_of(a) == node_of(b)).collect();
        let nodes_each = by_node.len().div_ceil(ARITY as usize).max(1);
        for run in by_node.chunks(nodes_each) {
            let header = Header::Multicast { collection, entry, priority, members: run.concat() };
            let class = class_of(payload.len_bytes());
            self.send_frame(node_of(&run[0][0]), class, encode(&header, payload.clone()));
        }
    }

    /// Checks a message to a section that came by a link.
    pub(super) fn check_multicast(
        &self,
        collection: CollectionId,
        entry: u16,
        members: &MembersByPe,
    ) -> Result<(), DecodeError> {
        for (pe, members) in members {
            if pe.0 >= self.topology.pe_count() {
                return Err(DecodeError::Unknown(format!("{pe:?}")));
            }
            let target = Target::Section { collection, members: members.clone(), entry };
            check_target(&target, &self.program, |id| self.collection(id))?;
        }
        Ok(())
    }
}
