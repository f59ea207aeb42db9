//! Moves envelopes between PEs and nodes; knows no user type.

pub mod buffer;
pub mod frame;
pub mod ids;
pub mod monitor;
