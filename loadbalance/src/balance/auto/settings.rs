//! What a user may say about `auto`.

use crate::balance::choice::{ChoiceError, Options};
use crate::balance::memory;

/// What a user may say about `auto`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// An imbalance counts if it is more than so many standard errors above what noise makes likely.
    pub errors: f64,
    /// Bytes that a decision may take on the node that makes it; balancers that need more are passed over.
    pub memory_bytes: u64,
    /// Whether chares that talk to each other are brought together where that costs next to nothing. How much it brings is not
    /// known, but who waits for numbers from another node loses by it, and nobody does by what is near.
    pub comm: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { errors: 2.0, memory_bytes: 1 << 30, comm: true }
    }
}

impl Settings {
    pub(in crate::balance) fn from_options(options: &mut Options<'_>) -> Result<Self, ChoiceError> {
        let default = Self::default();
        let is_number = |errors: &f64| errors.is_finite() && *errors >= 0.0;
        let errors = |text: &str| text.parse().ok().filter(is_number);
        // All balancers have the first of them; here it is the default.
        let [comm, no_comm] = [options.flag("comm")?, options.flag("no-comm")?];
        if comm && no_comm {
            return Err(ChoiceError::Contrary { balancer: "auto", one: "comm", other: "no-comm" });
        }
        Ok(Self {
            errors: options.value("errors", default.errors, "a number of 0 or more", errors)?,
            memory_bytes: options.value(
                "memory",
                default.memory_bytes,
                "bytes, such as 64MiB",
                memory::read,
            )?,
            comm: !no_comm,
        })
    }
}
