//! What the launcher's network thread is told.

use crate::failure::{Failure, Interruption};

/// What the launcher's network thread is told.
#[derive(Debug)]
pub(super) enum Order {
    /// End the nodes in good order.
    Finish,
    /// The user wants the end.
    Interrupt(Interruption),
    /// The run cannot go on.
    Fail(Failure),
    /// End at once.
    Abandon,
}
