//! Watching a run from outside: counters in, events out.

pub mod hosts;
pub mod hub;
mod pace;
pub mod recording;
pub mod socket;
pub mod text;
pub mod wire;
