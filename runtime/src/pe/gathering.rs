//! Which reductions a PE tells of: see [`collectives`](crate::monitor::collectives).

use super::Pe;
use super::combine::key;
use crate::envelope::PartialHeader;
use crate::monitor::collectives::{Gathered, Stage, is_told};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

/// Where nobody takes what is kept, so much is kept. So many reductions may be under way that are told of, too.
const KEPT_MAX: usize = 256;

/// What is kept until somebody takes it.
#[derive(Debug, Default)]
pub(crate) struct KeptGathered(Mutex<Vec<Gathered>>);

impl KeptGathered {
    /// Takes it all.
    pub(crate) fn take(&self) -> Vec<Gathered> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn keep(&self, gathered: Gathered) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_MAX {
            kept.push(gathered);
        }
    }
}

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
        if began_ns.len() < KEPT_MAX {
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
        self.account.gathered().keep(Gathered {
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
