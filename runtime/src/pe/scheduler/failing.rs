//! How a PE ends the run: with a sentence that names what it did, or what waits there in vain.

use super::Scheduler;
use super::ending::is_insertion;
use crate::node::naming::Brief;

impl Scheduler {
    /// Ends the run with a sentence about what is being done.
    #[cold]
    pub(super) fn failed(&self, why: &str) {
        let brief = &self.pe.doing.brief;
        let what =
            self.pe.node.catalogue().describe(&Brief { index: brief.index.or(self.pe.running), ..*brief });
        let name = &self.pe.node.program().name;
        self.pe.fail(format!("{what} on {:?} of {name} failed: {why}", self.pe.id));
    }

    /// Ends the run if a message is held here: nobody is left who could make its receiver.
    pub(super) fn name_held(&mut self) {
        let insertion = self.shelves.iter().flat_map(|(id, shelf)| {
            let early = shelf.early.iter().filter(|(_, held)| held.iter().any(is_insertion));
            early.map(move |(index, _)| (id, *index))
        });
        if let Some(element) = insertion.min() {
            // There is one at its place, which has moved.
            return self.made_twice(element);
        }
        let in_shelves = self.shelves.values().flat_map(|shelf| shelf.early.values());
        let briefs = in_shelves.chain(self.early.values()).flatten().map(|held| Brief::of(&held.target));
        if let Some(brief) = briefs.min_by_key(|brief| (brief.collection, brief.index)) {
            let (what, pe) = (self.pe.node.catalogue().describe(&brief), self.pe.id);
            let place = brief.collection.zip(brief.index);
            let waits_for = match place {
                Some((id, index)) if self.is_destroyed(id, index) => {
                    "an element that has been destroyed, and not inserted again"
                }
                Some(_) => "an element that nobody has made",
                None => "elements that nobody has made",
            };
            self.pe.fail(format!("{what} waits on {pe:?} for {waits_for}"));
        }
    }
}

/// What a panic said.
#[must_use]
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}
