//! Room in the file of the checkpoint that is being written: on the launcher who gives it, on the other nodes who waits for it.

use super::Node;
use crate::codec::{ControlToLauncher, Order};
use crate::envelope::Packed;
use crate::ids::{NodeId, PeId};
use crate::saved::{Extent, GiveExtents};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The checkpoint of that number, and who gives room in it.
type Giver = (u32, Arc<dyn GiveExtents>);

#[derive(Default)]
pub(super) struct Extents {
    giver: Mutex<Option<Giver>>,
    answers: Mutex<Answers>,
    has_come: Condvar,
}

#[derive(Default)]
struct Answers {
    come: FxHashMap<PeId, Option<Box<Extent>>>,
    /// The run ends: nobody answers any more.
    is_over: bool,
}

impl Extents {
    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody waits any more.
    pub(super) fn end(&self) {
        self.answers().is_over = true;
        self.has_come.notify_all();
    }
}

impl Node {
    /// From whom PEs get room that see the folder of the checkpoint of that number, from now on; only on the launcher.
    pub fn give_extents_by(&self, giver: Option<(u32, Arc<dyn GiveExtents>)>) {
        *self.extents.giver.lock().unwrap_or_else(PoisonError::into_inner) = giver;
    }

    /// A node wants room for one of its PEs, and is answered in any case.
    pub(super) fn extent_is_wanted(&self, by: NodeId, (pe, checkpoint): (PeId, u32), bytes: u64) {
        let giver = self.extents.giver.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let giver = giver.filter(|(number, _)| *number == checkpoint);
        let extent = giver.and_then(|(_, giver)| giver.give(pe, bytes)).map(Box::new);
        self.order(by, Order::Extent(pe, extent), Packed::default());
    }

    /// Asks for room for a PE, which has asked for no other since it was [answered](Self::extent).
    pub(crate) fn ask_for_extent(&self, pe: PeId, checkpoint: u32, bytes: u64) {
        self.tell_launcher(ControlToLauncher::WantsExtent { pe, checkpoint, bytes });
    }

    /// Waits for the room that was asked for; nothing if there is none, or if the run ends.
    pub(crate) fn extent(&self, pe: PeId) -> Option<Extent> {
        let has_none = |answers: &mut Answers| !answers.is_over && !answers.come.contains_key(&pe);
        let answers = self.extents.has_come.wait_while(self.extents.answers(), has_none);
        let answer = answers.unwrap_or_else(PoisonError::into_inner).come.remove(&pe);
        answer.flatten().map(|extent| *extent)
    }

    /// The launcher has answered.
    pub(super) fn extent_came(&self, pe: PeId, extent: Option<Box<Extent>>) {
        self.extents.answers().come.insert(pe, extent);
        self.extents.has_come.notify_all();
    }
}
