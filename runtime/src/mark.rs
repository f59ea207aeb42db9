//! Which messages are followed on their way, so that it is known what started an entry method. Few are: see
//! [`samples`](crate::monitor::samples).

use crate::ids::PeId;
use serde::{Deserialize, Serialize};

/// One of the messages of a PE that are followed, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The PE that sent it.
    pub from: PeId,
    /// Which of those that are followed from there, counted from 1; 0 is a message that is not followed.
    pub number: u32,
}

impl Default for Mark {
    fn default() -> Self {
        Self::NONE
    }
}

impl Mark {
    /// Nobody follows the message.
    pub const NONE: Self = Self { from: PeId::DRIVER, number: 0 };

    /// Whether the message is not followed.
    #[must_use]
    pub fn is_none(self) -> bool {
        self.number == 0
    }
}
