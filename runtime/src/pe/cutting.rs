//! A PE in a [snapshot](crate::proto::snapshot): the colour of what it sends.

use super::Pe;
use crate::envelope::{CallbackTarget, Packed};
use crate::proto::snapshot::{Colour, Side};

impl Pe {
    /// Where it is in a snapshot.
    #[must_use]
    #[inline]
    pub fn side(&self) -> Side {
        self.side
    }

    /// The colour of what it sends.
    #[must_use]
    #[inline]
    pub fn colour(&self) -> Colour {
        self.side.colour()
    }

    /// All there is of it has been saved, and whom it will have told of variables is as if that were on its way: it goes on in
    /// the other colour. What is on its way so.
    pub fn cut(&mut self) -> Vec<(CallbackTarget, Packed)> {
        self.side.cut();
        self.node.variables().cut(self.id, self.side.colour())
    }

    /// Nothing comes any more that was on its way when it was cut.
    pub fn close(&mut self) {
        self.side.close();
    }
}
