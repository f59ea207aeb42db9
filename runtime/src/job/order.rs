//! What the launcher's network thread is told.

use crate::failure::Interruption;

/// What the launcher's network thread is told.
#[derive(Debug)]
pub(super) enum Order {
    /// End the nodes in good order.
    Finish,
    /// The user wants the end.
    Interrupt(Interruption),
    /// End at once.
    Abandon,
}
