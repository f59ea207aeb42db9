//! Which reductions a PE tells of: see [`collectives`](crate::monitor::collectives).

use super::Pe;
use super::combine::key;
use crate::envelope::PartialHeader;
use crate::monitor::collectives::{Gathered, Stage, is_told};
use rustc_hash::FxHashMap;

/// So many stages may be under way at once that are told of.
const UNDER_WAY_MAX: usize = 256;

/// When the stages began that are under way here.
#[derive(Debug)]
pub(super) struct Gathering {
    is_on: bool,
    began_ns: FxHashMap<(u64, u32, bool), u64>,
}

impl Gathering {
    pub(super) fn new(is_on: bool) -> Self {
        Self { is_on, began_ns: FxHashMap::default() }
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
}
