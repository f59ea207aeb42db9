//! Spanning trees over the nodes, for broadcasts, reductions and detection waves.
//!
//! A tree needs no table: parent and children follow from the position, as in a heap with [`ARITY`] children
//! a place. Any member can be the root. Of few members each root has a tree of its own, whose positions are rotated so
//! that it is equally balanced. Of many all roots share the edges of one tree: on its way a message may climb before it
//! descends, so that it takes up to twice as many hops, but no node ever talks with more than five others, whoever sends.

use crate::ids::NodeId;

/// Children of a member; depth grows with the logarithm of the count to this base.
pub const ARITY: u32 = 4;
/// The most members with a tree for each root: as many connections a node may have to hold when all of them send.
const ROTATED_MAX: u32 = 64;

/// The member above `me` in the tree that begins at `root`, of `count` members; `None` for the root, and for
/// a position outside the tree.
#[must_use]
pub fn parent(root: u32, me: u32, count: u32) -> Option<u32> {
    let tree = Tree::new(root, me, count)?;
    tree.above().map(|place| tree.member(place))
}

/// The members below `me` in the tree that begins at `root`, of `count` members; none for a position outside
/// the tree. At most [`ARITY`], or one more for the root.
pub fn children(root: u32, me: u32, count: u32) -> impl Iterator<Item = u32> {
    Tree::new(root, me, count).into_iter().flat_map(|tree| {
        let above = tree.above();
        let neighbours = heap_parent(tree.me).into_iter().chain(tree.below(tree.me..tree.me + 1));
        neighbours.filter(move |place| Some(*place) != above).map(move |place| tree.member(place))
    })
}

/// `me` and all members below it, `me` first; none for a position outside the tree.
pub fn subtree(root: u32, me: u32, count: u32) -> impl Iterator<Item = u32> {
    Tree::new(root, me, count).into_iter().flat_map(|tree| {
        let above = tree.above();
        let descends = above.map_or(tree.me == 0, |above| above < tree.me);
        let levels = std::iter::successors(descends.then_some(tree.me..tree.me + 1), move |level| {
            Some(tree.below(level.clone()))
        });
        let levels = levels.take_while(|level| !level.is_empty()).flatten();
        // Whose way to the root leads down holds all that does not lie down there.
        let is_mine =
            move |place: &u64| *place != tree.me && above.is_none_or(|above| !is_below(*place, above));
        let rest = (0..if descends { 0 } else { tree.count }).filter(is_mine);
        let first = (!descends).then_some(tree.me);
        first.into_iter().chain(levels).chain(rest).map(move |place| tree.member(place))
    })
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

    /// The tree over `members`, ascending, that begins at the first of them; `None` if there is none.
    #[must_use]
    pub fn at_first(members: &'a [NodeId]) -> Option<Self> {
        Self::new(members, *members.first()?)
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

/// A tree as seen from one place. Places are those of a heap.
#[derive(Clone, Copy)]
struct Tree {
    /// How far members are shifted against places.
    shift: u64,
    root: u64,
    me: u64,
    count: u64,
}

impl Tree {
    fn new(root: u32, me: u32, count: u32) -> Option<Self> {
        if root >= count || me >= count {
            return None;
        }
        let (shift, count) = (if count <= ROTATED_MAX { root } else { 0 }, u64::from(count));
        let place = |member: u32| (u64::from(member) + count - u64::from(shift)) % count;
        Some(Self { shift: shift.into(), root: place(root), me: place(me), count })
    }

    /// The place next to this one on the way to the root; `None` at the root.
    fn above(&self) -> Option<u64> {
        let down = ancestors(self.root).find(|place| heap_parent(*place) == Some(self.me));
        if self.me == self.root { None } else { down.or_else(|| heap_parent(self.me)) }
    }

    /// Places of the heap's children of adjacent places.
    fn below(&self, places: std::ops::Range<u64>) -> std::ops::Range<u64> {
        let arity = u64::from(ARITY);
        (places.start * arity + 1).min(self.count)..(places.end * arity + 1).min(self.count)
    }

    fn member(&self, place: u64) -> u32 {
        u32::try_from((place + self.shift) % self.count).expect("a remainder of a u32 fits")
    }
}

fn heap_parent(place: u64) -> Option<u64> {
    Some(place.checked_sub(1)? / u64::from(ARITY))
}

/// `place` and all above it in the heap.
fn ancestors(place: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(place), |place| heap_parent(*place))
}

fn is_below(place: u64, top: u64) -> bool {
    ancestors(place).any(|at| at == top)
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
                let most = ARITY + u32::from(at == root && count > ROTATED_MAX);
                prop_assert!(children(root, at, count).count() <= most as usize);
                for child in children(root, at, count) {
                    prop_assert_eq!(parent(root, child, count), Some(at));
                    prop_assert_eq!(depth[child as usize], None);
                    depth[child as usize] = depth[at as usize].map(|d| d + 1);
                    open.push(child);
                }
            }
            prop_assert_eq!(parent(root, root, count), None);
            let bound = f64::from(count).log(f64::from(ARITY)).ceil() as u32 + 1;
            let bound = if count > ROTATED_MAX { 2 * bound } else { bound };
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
        fn of_many_members_each_has_the_same_few_neighbours_whatever_the_root(
            count in ROTATED_MAX + 1..2000, me_seed: u32, roots: [u32; 20],
        ) {
            let me = me_seed % count;
            let mut neighbours = std::collections::BTreeSet::new();
            for root in roots.map(|root| root % count) {
                neighbours.extend(children(root, me, count).chain(parent(root, me, count)));
            }
            prop_assert!(neighbours.len() <= ARITY as usize + 1, "{:?}", neighbours);
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
