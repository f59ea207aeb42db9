//! Watching a run from outside: counters in, events out.

pub mod wire;
