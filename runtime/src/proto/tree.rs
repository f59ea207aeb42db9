//! Spanning trees over the nodes, for broadcasts, reductions and detection waves.
//!
//! A tree needs no table: parent and children follow from the position, as in a heap with [`ARITY`] children
//! a place. Positions are rotated so that any member can be the root of an equally balanced tree.

use crate::ids::NodeId;

/// Children of a member; depth grows with the logarithm of the count to this base.
pub const ARITY: u32 = 4;

/// The member above `me` in the tree that begins at `root`, of `count` members; `None` for the root, and for
/// a position outside the tree.
#[must_use]
pub fn parent(root: u32, me: u32, count: u32) -> Option<u32> {
    let place = place(root, me, count).filter(|&place| place > 0)?;
    Some(member(root, (place - 1) / u64::from(ARITY), count))
}

/// The members below `me` in the tree that begins at `root`, of `count` members; none for a position outside
/// the tree.
pub fn children(root: u32, me: u32, count: u32) -> impl Iterator<Item = u32> {
    let range = place(root, me, count).map_or(0..0, |place| below(place..place + 1, count));
    range.map(move |place| member(root, place, count))
}

/// `me` and all members below it, level by level; none for a position outside the tree.
pub fn subtree(root: u32, me: u32, count: u32) -> impl Iterator<Item = u32> {
    let top = place(root, me, count).map_or(0..0, |place| place..place + 1);
    let levels = std::iter::successors(Some(top), move |level| Some(below(level.clone(), count)));
    levels.take_while(|level| !level.is_empty()).flatten().map(move |place| member(root, place, count))
}

/// The tree over some of the nodes, e.g. those that have PEs.
#[derive(Clone, Copy, Debug)]
pub struct TreeOver<'a> {
    members: &'a [NodeId],
    root: u32,
    count: u32,
}

impl<'a> TreeOver<'a> {
    /// The tree over `members`, ascending, that begins at `root`; `None` if `root` is not one of them.
    #[must_use]
    pub fn new(members: &'a [NodeId], root: NodeId) -> Option<Self> {
        let count = u32::try_from(members.len()).ok()?;
        Some(Self { members, root: position(members, root)?, count })
    }

    /// The node above `me`; `None` for the root and for a node that is not a member.
    #[must_use]
    pub fn parent(&self, me: NodeId) -> Option<NodeId> {
        parent(self.root, position(self.members, me)?, self.count).map(|at| self.members[at as usize])
    }

    /// The nodes below `me`; none for a node that is not a member.
    pub fn children(&self, me: NodeId) -> impl Iterator<Item = NodeId> + use<'a> {
        let (members, root, count) = (self.members, self.root, self.count);
        let all = position(members, me).into_iter().flat_map(move |me| children(root, me, count));
        all.map(|at| members[at as usize])
    }

    /// `me` and all nodes below it; none for a node that is not a member.
    pub fn subtree(&self, me: NodeId) -> impl Iterator<Item = NodeId> + use<'a> {
        let (members, root, count) = (self.members, self.root, self.count);
        let all = position(members, me).into_iter().flat_map(move |me| subtree(root, me, count));
        all.map(|at| members[at as usize])
    }
}

fn position(members: &[NodeId], node: NodeId) -> Option<u32> {
    members.binary_search(&node).ok().and_then(|at| u32::try_from(at).ok())
}

/// Distance of `me` from `root` round the circle of members: its place in the heap.
fn place(root: u32, me: u32, count: u32) -> Option<u64> {
    (root < count && me < count)
        .then(|| (u64::from(me) + u64::from(count) - u64::from(root)) % u64::from(count))
}

fn member(root: u32, place: u64, count: u32) -> u32 {
    u32::try_from((place + u64::from(root)) % u64::from(count)).expect("a remainder of a u32 fits")
}

/// Places of the children of adjacent places.
fn below(places: std::ops::Range<u64>, count: u32) -> std::ops::Range<u64> {
    let (arity, count) = (u64::from(ARITY), u64::from(count));
    (places.start * arity + 1).min(count)..(places.end * arity + 1).min(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_member_is_reached_once_in_logarithmic_depth(count in 1u32..2000, root_seed: u32) {
            let root = root_seed % count;
            let mut depth = vec![None; count as usize];
            depth[root as usize] = Some(0u32);
            let mut open = vec![root];
            while let Some(at) = open.pop() {
                prop_assert!(children(root, at, count).count() <= ARITY as usize);
                for child in children(root, at, count) {
                    prop_assert_eq!(parent(root, child, count), Some(at));
                    prop_assert_eq!(depth[child as usize], None);
                    depth[child as usize] = depth[at as usize].map(|d| d + 1);
                    open.push(child);
                }
            }
            prop_assert_eq!(parent(root, root, count), None);
            let bound = f64::from(count).log(f64::from(ARITY)).ceil() as u32 + 1;
            prop_assert!(depth.iter().all(|d| d.is_some_and(|d| d <= bound)));
        }

        #[test]
        fn a_subtree_is_its_top_and_the_subtrees_of_its_children(
            count in 1u32..300, root_seed: u32, me_seed: u32,
        ) {
            let (root, me) = (root_seed % count, me_seed % count);
            let mut whole: Vec<u32> = subtree(root, me, count).collect();
            prop_assert_eq!(whole[0], me);
            let below = children(root, me, count).flat_map(|child| subtree(root, child, count));
            let mut parts: Vec<u32> = std::iter::once(me).chain(below).collect();
            whole.sort_unstable();
            parts.sort_unstable();
            prop_assert_eq!(&whole, &parts);
            whole.dedup();
            prop_assert_eq!(whole, parts);
            prop_assert_eq!(subtree(root, root, count).count(), count as usize);
        }

        #[test]
        fn a_tree_over_some_nodes_has_exactly_those(
            members in prop::collection::btree_set(0u16..500, 1..60), root_seed: usize, stranger in 500u16..,
        ) {
            let members: Vec<NodeId> = members.into_iter().map(NodeId).collect();
            let root = members[root_seed % members.len()];
            let tree = TreeOver::new(&members, root).unwrap();
            let mut reached: Vec<NodeId> = tree.subtree(root).collect();
            reached.sort_unstable();
            prop_assert_eq!(&reached, &members);
            for &member in &members {
                prop_assert!(tree.children(member).all(|child| tree.parent(child) == Some(member)));
                prop_assert_eq!(tree.parent(member).is_none(), member == root);
            }
            let stranger = NodeId(stranger);
            prop_assert!(TreeOver::new(&members, stranger).is_none());
            prop_assert_eq!((tree.parent(stranger), tree.children(stranger).count()), (None, 0));
        }

        #[test]
        fn positions_outside_the_tree_have_no_neighbours(root: u32, me: u32, count: u32) {
            let is_inside = root < count && me < count;
            prop_assert!(is_inside || parent(root, me, count).is_none());
            prop_assert!(is_inside || children(root, me, count).count() == 0);
            prop_assert!(is_inside || subtree(root, me, count).count() == 0);
        }
    }
}
