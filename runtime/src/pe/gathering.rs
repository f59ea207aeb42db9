//! Which reductions and exchanges a PE tells of: see [`collectives`](crate::monitor::collectives).

use super::Pe;
use super::combine::key;
use crate::envelope::{CollectionId, PartialHeader};
use crate::monitor::collectives::{Gathered, Stage, is_told};
use rustc_hash::FxHashMap;

/// So many stages may be under way at once that are told of.
const UNDER_WAY_MAX: usize = 256;

/// Exchanges of the same elements that are told of lie that far apart if one of them is over.
const KEPT: u32 = 2;

/// When the stages began that are under way here.
#[derive(Debug)]
pub(super) struct Gathering {
    is_on: bool,
    began_ns: FxHashMap<(u64, u32, bool), u64>,
    exchanges: FxHashMap<(CollectionId, u16, u32), Exchange>,
}

/// An exchange that is under way here.
#[derive(Debug)]
struct Exchange {
    began_ns: u64,
    /// Elements that have sent their parts and do not yet have all of theirs.
    waiting: u32,
}

impl Gathering {
    pub(super) fn new(is_on: bool) -> Self {
        Self { is_on, began_ns: FxHashMap::default(), exchanges: FxHashMap::default() }
    }
}

impl Pe {
    /// Something of a reduction has come to its own place on this PE, or to that where what others pass on comes together.
    #[inline]
    pub(super) fn gathers(&mut self, header: &PartialHeader, is_own: bool) {
        if self.gathering.is_on && is_told(header.sequence) {
            self.gathers_told(header, is_own);
        }
    }

    #[cold]
    fn gathers_told(&mut self, header: &PartialHeader, is_own: bool) {
        let began_ns = &mut self.gathering.began_ns;
        if began_ns.len() < UNDER_WAY_MAX {
            let node = &self.node;
            began_ns.entry((key(header), header.sequence, is_own)).or_insert_with(|| node.now_ns());
        }
    }

    /// All of a stage is there. What never began here is not told of, except for a result.
    #[inline]
    pub(super) fn has_gathered(&mut self, header: &PartialHeader, stage: Stage) {
        if self.gathering.is_on && is_told(header.sequence) {
            self.tell_gathered(header, stage);
        }
    }

    #[cold]
    fn tell_gathered(&mut self, header: &PartialHeader, stage: Stage) {
        let began_ns = self.gathering.began_ns.remove(&(key(header), header.sequence, stage == Stage::Own));
        if began_ns.is_none() && stage != Stage::Result {
            return;
        }
        let Some(known) = self.collection(header.collection) else { return };
        let now_ns = self.node.now_ns();
        let began_ns = began_ns.unwrap_or(now_ns);
        self.account.told().gathered.keep(Gathered {
            pe: self.id.0,
            over: key(header),
            is_section: header.section != 0,
            chare_type: known.chare_type,
            number: header.sequence,
            stage,
            began_ns,
            took_ns: now_ns.saturating_sub(began_ns),
        });
    }

    /// An element sends its parts of the exchange with that number, which come to that entry method of others.
    pub fn exchanges(&mut self, collection: CollectionId, entry: u16, number: u32) {
        if !self.gathering.is_on || !is_told(number) {
            return;
        }
        let now_ns = self.node.now_ns();
        let exchanges = &mut self.gathering.exchanges;
        // Of one long ago an element has moved away before it had all, and nobody here will see the end.
        exchanges.retain(|(of, to, before), _| {
            (*of, *to) != (collection, entry) || before.abs_diff(number) < KEPT
        });
        if exchanges.len() < UNDER_WAY_MAX {
            let new = Exchange { began_ns: now_ns, waiting: 0 };
            exchanges.entry((collection, entry, number)).or_insert(new).waiting += 1;
        }
    }

    /// An element has all parts of an exchange that are for it. It is told of once no other here waits.
    pub fn has_exchanged(&mut self, collection: CollectionId, entry: u16, number: u32) {
        let key = (collection, entry, number);
        let Some(exchange) = self.gathering.exchanges.get_mut(&key) else { return };
        // Its own part is one of them: that every element here has sent is known before the first has all.
        exchange.waiting = exchange.waiting.saturating_sub(1);
        if exchange.waiting > 0 {
            return;
        }
        let began_ns = exchange.began_ns;
        self.gathering.exchanges.remove(&key);
        let Some(known) = self.collection(collection) else { return };
        let Some(name) = self.account.tally().name(known.chare_type, entry) else { return };
        let took_ns = self.node.now_ns().saturating_sub(began_ns);
        let (pe, over, stage) = (self.id.0, collection.0, Stage::Exchange);
        let told =
            Gathered { pe, over, is_section: false, chare_type: name, number, stage, began_ns, took_ns };
        self.account.told().gathered.keep(told);
    }
}
