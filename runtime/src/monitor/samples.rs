//! What PEs ran and which message started it: of few entry methods and messages, chosen by time, so that however many there
//! are a PE tells of no more than some a second. An arrow is a message that is among those that its sender [sent](Sent) and
//! that [started](Cause) an entry method.
//!
//! A message is chosen by its sender, among those that an entry method sends which is timed, and carries the sender's number
//! for it; its receiver then times what it starts. So both ends of an arrow are known without a word between them. Of what
//! is scattered, the first message for each node may be chosen. What a PE sends to itself, and what is said to elements that
//! have moved, is never: a PE that has something to do waits for nobody.

use serde::{Deserialize, Serialize};

/// Entry methods, and messages, that a node tells of at once at most.
pub const SAMPLES_MAX: usize = 4096;
/// Over all PEs of a run so many of either a second, as far as the next two permit.
const OF_RUN_PER_S: u32 = 4000;
/// Of one PE at least so many a second.
const OF_PE_MIN_PER_S: u32 = 16;
/// Of one PE at most so many a second.
const OF_PE_MAX_PER_S: u32 = 200;

/// How many a second each PE tells of, of a run with so many PEs.
#[must_use]
pub fn per_second(pe_count: u32) -> u32 {
    (OF_RUN_PER_S / pe_count.max(1)).clamp(OF_PE_MIN_PER_S, OF_PE_MAX_PER_S)
}

/// What a node's PEs ran and sent since it told of that last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Samples {
    /// The node.
    pub node: u16,
    /// Entry methods that were run, at most [`SAMPLES_MAX`]; those of each PE in order.
    pub ran: Vec<Ran>,
    /// Messages that were sent, at most [`SAMPLES_MAX`]; those of each PE in order.
    pub sent: Vec<Sent>,
}

/// A call of an entry method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// The PE.
    pub pe: u32,
    /// Place of its name in [`RunInfo::entry_names`](super::wire::RunInfo::entry_names).
    pub name: u16,
    /// Age of the node process when it began, nanoseconds.
    pub began_ns: u64,
    /// How long it took by the wall's clock, or had taken when the node was asked in the middle of it.
    pub took_ns: u64,
    /// How long the PE had been without a message until just before; 0 if it had not.
    pub idle_ns: u64,
    /// The message that started it, if that was one of those that are followed.
    pub cause: Option<Cause>,
}

/// A message that started an entry method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The PE that sent it; `u32::MAX` is the driver.
    pub pe: u32,
    /// Its number there.
    pub number: u32,
    /// Bytes that came by a link; 0 if it came from the same process, in which messages are moved.
    pub bytes: u64,
}

/// A message that is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The PE that sent it.
    pub pe: u32,
    /// Its number there.
    pub number: u32,
    /// Age of the node process then, nanoseconds.
    pub at_ns: u64,
}
