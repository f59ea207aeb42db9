//! The runtime's protocols as pure state machines: messages and a time go in, messages come out.
//!
//! Nothing here knows a clock, a socket or a thread, so that the same code runs over QUIC, inside one
//! process, and in virtual time under a seeded simulator. Times are durations since any fixed moment.
#![doc = include_str!("scale.md")]
#![deny(clippy::disallowed_methods)]

pub mod contributors;
pub mod head_count;
pub mod location;
pub mod lost_node;
pub mod membership;
pub mod number_set;
pub mod parting;
pub mod quiescence;
pub mod reduction;
pub mod sim;
pub mod snapshot;
pub mod standstill;
pub mod tree;

/// A message that does not fit the protocol's state; its sender is broken or of another build.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProtocolError(pub String);
