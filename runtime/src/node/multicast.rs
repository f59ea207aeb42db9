//! Messages to sections on their way: each node keeps what is for its own PEs and passes the rest on.
//!
//! The sender says where every member lives, so that a node on the way need not know the collection, and the
//! network thread passes the message on while the PEs compute. The nodes that are left are dealt out in at
//! most [`ARITY`] runs; the first node of a run gets the message for all of it.

use super::Node;
use crate::codec::{MembersByPe, WorkToNode};
use crate::envelope::{CollectionId, ElementIndex, Envelope, MembersHere, Packed, Payload, Target};
use crate::ids::PeId;
use crate::mark::Mark;
use crate::priority::Priority;
use crate::proto::snapshot::Colour;
use crate::proto::tree::ARITY;
use std::sync::Arc;

impl Node {
    /// Sends a message to members of a section, in the colour of who says it; gives the bytes that leave this node.
    pub(crate) fn multicast(
        &self,
        colour: Option<Colour>,
        (collection, entry, mark): (CollectionId, u16, Mark),
        priority: Priority,
        members: MembersByPe,
        payload: &Packed,
    ) -> u64 {
        let mut bytes = 0;
        let (here, elsewhere): (MembersByPe, MembersByPe) =
            members.into_iter().partition(|(pe, _)| self.topology().node_of(*pe) == self.id);
        let shared = Arc::new(payload.clone());
        for (pe, members) in here {
            let target = Target::Section(Box::new(MembersHere { collection, members, entry, mark }));
            let envelope = Envelope::new(target, priority.clone(), Payload::Packed(Arc::clone(&shared)));
            self.pes.push_arrived(pe, colour, envelope, payload.len_bytes() as u64);
        }
        let node_of = |part: &(PeId, Vec<ElementIndex>)| self.topology().node_of(part.0);
        let by_node: Vec<&[_]> = elsewhere.chunk_by(|a, b| node_of(a) == node_of(b)).collect();
        let nodes_each = by_node.len().div_ceil(ARITY as usize).max(1);
        for run in by_node.chunks(nodes_each) {
            let header = WorkToNode::Multicast {
                collection,
                entry,
                priority: priority.clone(),
                mark,
                members: run.concat(),
            };
            bytes += self.send_frame((node_of(&run[0][0]), colour), &header, payload.clone());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::{Collection, Placement};
    use crate::frame::{Class, Fabric, Frame, Receiver as _, SendError};
    use crate::ids::NodeId;
    use crate::node::NodeSettings;
    use crate::object::{ChareType, ProgramTable};
    use crate::pe::Pe;
    use crate::pe::inbox::Arrival;
    use crate::topology::Topology;
    use std::collections::{BTreeMap, BTreeSet, VecDeque};
    use std::sync::{Arc, Mutex, OnceLock};

    /// Hands frames on at once and counts those of each node.
    #[derive(Default)]
    struct Net {
        nodes: OnceLock<Vec<Arc<Node>>>,
        sent: Mutex<BTreeMap<NodeId, u32>>,
    }

    struct Sender(NodeId, Arc<Net>);

    impl Fabric for Sender {
        fn send(&self, to: NodeId, class: Class, frame: Frame) -> Result<(), SendError> {
            *self.1.sent.lock().unwrap().entry(self.0).or_default() += 1;
            self.1.nodes.get().unwrap()[to.as_usize()].receive(self.0, class, frame);
            Ok(())
        }
    }

    /// A launcher and 30 nodes with one to three PEs, which know an array of 200 elements dealt out in turn.
    fn nodes() -> (Arc<Net>, CollectionId) {
        let net = Arc::new(Net::default());
        let counts: Vec<u32> = std::iter::once(0).chain((0..30).map(|n| 1 + n % 3)).collect();
        let topology = Topology::new(&counts);
        let chare_type = ChareType::of_test("Member", &["Hear"], |_| unreachable!("no PE runs"));
        let program = Arc::new(ProgramTable { chare_types: vec![chare_type], ..ProgramTable::default() });
        let node = |id| Node::new(id, topology.clone(), Arc::clone(&program), NodeSettings::default());
        let nodes: Vec<_> = (0..topology.node_count()).map(|id| node(NodeId(id))).collect();
        nodes.iter().for_each(|node| node.connect(Arc::new(Sender(node.id(), Arc::clone(&net)))));
        let launcher = Arc::clone(&nodes[0]);
        assert!(net.nodes.set(nodes).is_ok());
        let pe_count = topology.pe_count();
        let id = CollectionId::made_by(PeId::DRIVER, 1);
        let placement = Placement::Cyclic { pe_count };
        let array = Collection::new(id, 0, [200, 1, 1], placement, false, pe_count).unwrap();
        launcher.create(Colour::White, array, Packed::default());
        (net, id)
    }

    fn elements(step: usize) -> Vec<ElementIndex> {
        (0..200).step_by(step).map(|n| ElementIndex([n, 0, 0])).collect()
    }

    #[test]
    fn a_multicast_comes_once_to_each_member_and_costs_no_node_more_than_a_few_frames() {
        let (net, id) = nodes();
        let all = net.nodes.get().unwrap();
        for (from, step) in [(0, 1), (0, 3), (7, 1), (30, 11), (12, 190)] {
            let node = &all[from];
            let pe = if from == 0 { PeId::DRIVER } else { PeId(node.topology().pes(node.id())[0]) };
            net.sent.lock().unwrap().clear();
            all.iter().for_each(|node| drop(received(node)));
            let members = elements(step);
            Pe::new(pe, Arc::clone(node)).multicast(id, &members, 0, 0, &Packed::default()).unwrap();
            let mut reached: Vec<ElementIndex> = all.iter().flat_map(received).collect();
            reached.sort_unstable();
            assert_eq!(reached, members, "from node {from}, every {step}");
            let sent = net.sent.lock().unwrap();
            assert!(sent.values().all(|frames| *frames <= ARITY), "{sent:?}");
        }
    }

    #[test]
    fn a_multicast_that_is_followed_is_so_wherever_it_comes() {
        let (net, id) = nodes();
        let all = net.nodes.get().unwrap();
        let known = all[3].collection(id).unwrap();
        let mut members = BTreeMap::<PeId, Vec<ElementIndex>>::new();
        let with_home = |element| (known.pe_of(element).unwrap(), element);
        elements(1).into_iter().map(with_home).for_each(|(pe, at)| members.entry(pe).or_default().push(at));
        let mark = Mark { from: PeId(4), number: 77 };
        let what = (id, 0, mark);
        all[3].multicast(None, what, Priority::ORDINARY, members.into_iter().collect(), &Packed::default());
        let sections: Vec<MembersHere> = all.iter().flat_map(sections).collect();
        assert!(sections.len() > 50 && sections.iter().all(|section| section.mark == mark), "{sections:?}");
    }

    /// Members in what has arrived at the PEs of a node, which must be the PEs where they live.
    fn received(node: &Arc<Node>) -> Vec<ElementIndex> {
        sections(node).into_iter().flat_map(|section| section.members).collect()
    }

    /// What has arrived at the PEs of a node for members that must live there.
    fn sections(node: &Arc<Node>) -> Vec<MembersHere> {
        let mut found = Vec::new();
        for pe in node.topology().pes(node.id()).iter().copied() {
            let (mut arrivals, mut envelopes) = (VecDeque::new(), Vec::new());
            node.pes().inbox(PeId(pe)).take(&mut arrivals);
            arrivals
                .into_iter()
                .for_each(|arrival: Arrival| arrival.open(|envelope| envelopes.push(envelope)));
            for envelope in envelopes {
                let Target::Section(section) = envelope.target else { continue };
                let known = node.collection(section.collection).unwrap();
                assert!(section.members.iter().all(|member| known.pe_of(*member) == Some(PeId(pe))));
                found.push(*section);
            }
        }
        found
    }

    #[test]
    fn a_reduction_over_a_section_climbs_a_tree_to_one_root() {
        let (net, id) = nodes();
        for (section, step) in [(1, 1), (2, 3), (77, 7), (1 << 40, 150)] {
            let (members, mut total, mut roots, mut above) =
                (elements(step), 0, BTreeSet::new(), BTreeMap::<PeId, BTreeSet<PeId>>::new());
            for node in &net.nodes.get().unwrap()[1..] {
                for pe in node.topology().pes(node.id()).iter().copied() {
                    let plan = Pe::new(PeId(pe), Arc::clone(node)).section_plan(
                        section,
                        id,
                        &Arc::new(members.clone()),
                        PeId(pe),
                    );
                    let Some(plan) = plan else { continue };
                    total += plan.here;
                    roots.insert(*plan.path.last().unwrap());
                    for pair in plan.path.windows(2) {
                        above.entry(pair[1].0).or_default().insert(pair[0].0);
                        assert!(pair[0].1 < pair[1].1, "more come together above: {:?}", plan.path);
                    }
                }
            }
            assert_eq!(total, members.len() as u64);
            assert_eq!(roots.len(), 1, "{roots:?}");
            assert_eq!(roots.first().unwrap().1, total);
            assert!(above.values().all(|below| below.len() <= ARITY as usize), "{above:?}");
        }
    }

    #[test]
    fn members_outside_the_run_or_the_array_are_refused() {
        let (net, id) = nodes();
        let node = &net.nodes.get().unwrap()[3];
        let check = |pe, index, entry| {
            let members = vec![(PeId(pe), vec![ElementIndex([index, 0, 0])])];
            let (priority, mark) = (Priority::ORDINARY, Mark::NONE);
            let header = WorkToNode::Multicast { collection: id, entry, priority, mark, members };
            node.checks().check_work(NodeId(1), &header).is_ok()
        };
        assert!(check(19, 199, 0) && !check(1, 199, 0));
        assert!(!check(60, 199, 0) && !check(20, 200, 0) && !check(19, 199, 1));
    }
}
