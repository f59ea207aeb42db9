//! A node in a [snapshot](crate::proto::snapshot): it has its PEs cut, counts what it has carried, and knows when the last of its
//! PEs has been cut. Then what they share without messages is of their new colour.

use super::{DriverEvent, Node};
use crate::codec::Order;
use crate::envelope::{Envelope, Packed, PeOrder, Target};
use crate::ids::PeId;
use crate::proto::snapshot::{Carried, Colour};
use crate::saved::Save;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How far a node has come in a snapshot.
#[derive(Debug, Default)]
pub(super) struct Cutting {
    /// How many PEs have not been cut.
    left: AtomicUsize,
    /// What its PEs were told last of how they are to be saved.
    save: Mutex<Save>,
}

impl Node {
    /// The colour of all its PEs, while there is no snapshot; of those that have not been cut, until all have. On the launcher that
    /// of the driver.
    #[must_use]
    pub fn colour(&self) -> Colour {
        self.variables.colour()
    }

    /// Has a snapshot begin: the driver has been cut, which is the first, and all PEs are to be. Until it
    /// [ends](Self::end_snapshot) the launcher knows what that is shared is of it and what is not. Only there.
    pub fn begin_snapshot(&self, save: Save) {
        let new = self.colour().other();
        self.catalogue.set_later(Some(new));
        self.variables.set_later(Some(new));
        self.tell_in_place();
        self.order_all(&Order::Cut(save));
    }

    /// Has all nodes count what they have carried of a colour; the driver hears `Counted` from each, the launcher too. Only there.
    pub fn count_all(&self, round: u32, colour: Colour) {
        self.order_all(&Order::Count(round, colour));
        // By the same way as what it counts: who hears it has heard that.
        self.listeners.tell_driver(DriverEvent::Counted(self.id, round, self.carried(colour)));
    }

    /// Tells all PEs that nothing of the old colour comes any more; all that nodes share and that is of the snapshot is on the
    /// launcher, too.
    pub fn close_snapshot(&self) {
        self.sums.close(self.colour().other());
        self.order_all(&Order::Close);
    }

    /// The snapshot is over, and what was made meanwhile is as all the rest.
    pub fn end_snapshot(&self) {
        self.catalogue.set_later(None);
        self.variables.set_later(None);
        self.variables.close();
    }

    /// Frames of a colour that have left here and have arrived, and been passed on.
    #[must_use]
    pub fn carried(&self, colour: Colour) -> Carried {
        let (sent, received) = self.links.carried(colour);
        Carried { sent: sent + self.pes.small_sent_of(colour), received }
    }

    /// Has all its PEs cut.
    pub(super) fn cut_all(&self, save: Save) {
        let pes = self.topology().pes(self.id);
        self.cutting.left.store(pes.len(), Ordering::SeqCst);
        self.sums.begin(self.colour());
        *self.cutting.save.lock().unwrap_or_else(PoisonError::into_inner) = save;
        self.order_pes(PeOrder::Cut);
    }

    /// Has all its PEs know that nothing of the old colour comes any more.
    pub(super) fn close_all(&self) {
        self.sums.close(self.colour().other());
        self.variables.close();
        self.order_pes(PeOrder::Close);
    }

    fn order_pes(&self, order: PeOrder) {
        for pe in self.topology().pes(self.id) {
            self.pes.push(PeId(*pe), None, Envelope::urgent(Target::Order(order)));
        }
    }

    /// A PE of this node is being cut: how it is to be saved, and if it is the last, what had been added to accumulators before.
    pub(crate) fn one_is_cut(&self) -> (Save, Vec<(u64, Packed)>) {
        let save = *self.cutting.save.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = self.cutting.left.fetch_sub(1, Ordering::SeqCst) == 1;
        if !is_last {
            return (save, Vec::new());
        }
        let sums = self.sums.cut();
        self.tell_in_place();
        (save, sums)
    }

    /// Those of the new colour have their values in place.
    fn tell_in_place(&self) {
        self.variables.change_colour().into_iter().for_each(|(node, id)| self.acknowledge(node, id));
    }
}
