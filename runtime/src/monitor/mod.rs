//! Watching a run from outside: counters in, events out.

pub mod hub;
pub mod recording;
pub mod socket;
pub mod text;
pub mod wire;
