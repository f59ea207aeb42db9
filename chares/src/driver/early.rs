//! Records of a checkpoint that come while PEs still stand still.

use runtime::envelope::Packed;
use runtime::ids::NodeId;
use runtime::saved::ToKeep;
use std::collections::{BTreeMap, VecDeque};

/// Records wait here, because to keep one takes as long as the disk, and what PEs say when they have packed all they have, after
/// which they may go on, would wait behind it.
#[derive(Default)]
pub(super) struct Early {
    records: VecDeque<(NodeId, ToKeep, Packed)>,
    /// Of the records of each node.
    bytes: BTreeMap<NodeId, u64>,
}

impl Early {
    /// A record has come from a node.
    pub(super) fn add(&mut self, from: NodeId, record: ToKeep, packed: Packed) {
        *self.bytes.entry(from).or_default() += packed.len_bytes() as u64;
        self.records.push_back((from, record, packed));
    }

    /// The next one, if more bytes than so many are here of any node.
    pub(super) fn next_above(&mut self, bytes: u64) -> Option<(NodeId, ToKeep, Packed)> {
        if self.bytes.values().all(|held| *held <= bytes) {
            return None;
        }
        let (from, record, packed) = self.records.pop_front()?;
        self.bytes.entry(from).and_modify(|held| *held -= packed.len_bytes() as u64);
        Some((from, record, packed))
    }

    /// All that are left, in the order in which they came.
    pub(super) fn all(self) -> impl Iterator<Item = (NodeId, ToKeep, Packed)> {
        self.records.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::ids::PeId;
    use runtime::saved::{RecordHeader, RecordOf, Sent};

    #[test]
    fn records_wait_unless_their_node_has_many_here() {
        let mut early = Early::default();
        for (number, (from, len)) in [(1, 10), (2, 30), (1, 20), (2, 40), (1, 1)].into_iter().enumerate() {
            let sent = Sent { header: RecordHeader { pe: PeId(0), of: RecordOf::Pe }, is_long: false };
            let record = ToKeep { checkpoint: number as u32, sent, digested: Vec::new() };
            early.add(NodeId(from), record, Packed { body: vec![0; len].into(), attachments: Vec::new() });
        }
        assert!(early.next_above(70).is_none());
        // Those before it go first; that one of node 2 is gone then is enough.
        let gone: Vec<_> =
            std::iter::from_fn(|| early.next_above(69)).map(|gone| gone.1.checkpoint).collect();
        assert_eq!(gone, [0, 1]);
        let gone: Vec<_> =
            std::iter::from_fn(|| early.next_above(20)).map(|gone| gone.1.checkpoint).collect();
        assert_eq!(gone, [2, 3]);
        assert_eq!(early.all().map(|left| left.1.checkpoint).collect::<Vec<_>>(), [4]);
    }
}
