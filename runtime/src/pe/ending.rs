//! Elements that are destroyed.
//!
//! What is left of one goes home, with the messages that waited for it and how far it had come with those who send to it,
//! as an element goes that moves. So what still comes for it finds its way there, each message once and in order, and waits
//! as for an element that has not been made yet; one that is inserted again at the same place takes it over. What was said to
//! all is not for the next: that is made behind what its home has passed on of this.

use super::Pe;
use super::moving::Mover;
use crate::ids::{ElementId, PeId};
use serde::{Deserialize, Serialize};

/// What is kept of an element that was destroyed, for one that is inserted again at its place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Remains {
    /// Number of its next reduction over the whole array: it takes part in none from there on.
    pub sequence: u32,
    /// Number of its next reduction over each section.
    pub sections: Vec<(u64, u32)>,
    /// How its messages were numbered, if it had moved: those of who comes after it are numbered on.
    pub mover: Option<Box<Mover>>,
}

/// An element that has been destroyed by the message that is being dealt with.
pub(super) struct Ended {
    pub(super) element: ElementId,
    pub(super) home: PeId,
    pub(super) remains: Remains,
}

/// A single chare that has been; if it had moved, its home, and how many messages it has sent to many since.
pub(super) struct EndedSingle {
    pub(super) element: ElementId,
    pub(super) moved: Option<(PeId, u64)>,
}

impl Pe {
    /// An element of an array, which was made on the PE `home`, has been destroyed here. Until the present message has been
    /// dealt with that counts as under way.
    pub fn element_ended(&mut self, element: ElementId, home: PeId, remains: Remains) {
        self.account().goes_on(1);
        self.ended.push(Ended { element, home, remains });
        self.has_more_to_do = true;
    }

    /// A single chare has been destroyed here. What it did in the present message is still to be counted; if it had moved, its
    /// home is told then, and until then that counts as under way.
    pub fn single_ended(&mut self, element: ElementId, mover: Option<&Mover>) {
        let moved = mover.map(|mover| (mover.home, mover.spoken));
        if moved.is_some() {
            self.account().goes_on(1);
        }
        if moved.is_some() || self.loads.is_on {
            self.ended_singles.push(EndedSingle { element, moved });
            self.has_more_to_do = true;
        }
    }
}
