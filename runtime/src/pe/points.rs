//! Chares that say at which moments they would like to move. What a balancer has decided for such a chare waits for the next
//! of these moments, but not for long: nobody has to say so, and who once did may never say it again.

use crate::ids::{ElementId, PeId};
use rustc_hash::FxHashMap;

/// A chare is waited for that has said so in this time, and for so long at most.
const WAITS_NS: u64 = 1_000_000_000;

/// What a PE knows of them. Checkpoints have nothing of it: a move that has not been made is decided anew.
#[derive(Debug, Default)]
pub(super) struct Points {
    /// When each said so last.
    said_ns: FxHashMap<ElementId, u64>,
    /// Where those are to go that are waited for, and until when.
    wanted: FxHashMap<ElementId, (PeId, u64)>,
}

impl Points {
    /// A chare says that now is a good moment; where it is to go, if it has been waited for.
    pub(super) fn say(&mut self, element: ElementId, now_ns: u64) -> Option<PeId> {
        self.said_ns.insert(element, now_ns);
        self.wanted.remove(&element).map(|(to, _)| to)
    }

    /// A chare is to go to another PE: whether it is waited for.
    pub(super) fn wait(&mut self, element: ElementId, to: PeId, now_ns: u64) -> bool {
        let says_so = self.said_ns.get(&element).is_some_and(|said| now_ns.saturating_sub(*said) < WAITS_NS);
        if says_so {
            self.wanted.insert(element, (to, now_ns + WAITS_NS));
        }
        says_so
    }

    /// Those that are waited for no longer. None of them is again until it says so again.
    pub(super) fn given_up(&mut self, now_ns: u64) -> Vec<(ElementId, PeId)> {
        self.said_ns.retain(|_, said| now_ns.saturating_sub(*said) < WAITS_NS);
        let over = self.wanted.iter().filter(|(_, (_, until))| *until <= now_ns);
        let mut given_up: Vec<(ElementId, PeId)> = over.map(|(element, (to, _))| (*element, *to)).collect();
        given_up.sort_unstable();
        for (element, _) in &given_up {
            self.wanted.remove(element);
            self.said_ns.remove(element);
        }
        given_up
    }

    /// Whether any chare is waited for, or would be.
    pub(super) fn is_empty(&self) -> bool {
        self.said_ns.is_empty() && self.wanted.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CollectionId, ElementIndex};

    const SECOND: u64 = 1_000_000_000;

    fn element(at: u32) -> ElementId {
        ElementId { collection: CollectionId::made_by(PeId(0), 1), index: ElementIndex([at, 0, 0]) }
    }

    #[test]
    fn who_says_when_goes_then_and_all_others_at_once() {
        let mut points = Points::default();
        assert!(!points.wait(element(0), PeId(1), SECOND), "it has never said so");
        assert_eq!(points.say(element(0), SECOND), None);
        assert!(points.wait(element(0), PeId(1), 2 * SECOND - 1));
        assert!(!points.wait(element(1), PeId(1), 2 * SECOND - 1));
        assert!(points.wait(element(0), PeId(2), 2 * SECOND - 1), "the last decision counts");
        assert_eq!(points.given_up(2 * SECOND - 1), []);
        assert_eq!(points.say(element(0), 2 * SECOND), Some(PeId(2)));
        assert_eq!(points.say(element(0), 2 * SECOND), None, "it goes once");
    }

    #[test]
    fn nobody_is_waited_for_longer_than_a_second() {
        let mut points = Points::default();
        (0..3).for_each(|at| assert_eq!(points.say(element(at), 0), None));
        assert!(points.wait(element(2), PeId(1), 1) && points.wait(element(1), PeId(1), SECOND / 2));
        assert_eq!(points.given_up(SECOND + 1), [(element(2), PeId(1))]);
        assert_eq!(points.given_up(2 * SECOND), [(element(1), PeId(1))]);
        assert!(points.is_empty(), "what was said long ago is forgotten: {points:?}");
        assert!(!points.wait(element(2), PeId(1), 2 * SECOND));
    }
}
