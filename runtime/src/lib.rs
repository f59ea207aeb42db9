//! Moves envelopes between PEs and nodes; knows no user type.

pub mod buffer;
pub mod class;
pub mod codec;
pub mod collection;
pub mod config;
pub mod envelope;
pub mod failure;
pub mod frame;
pub mod ids;
pub mod job;
pub mod launch;
pub mod monitor;
pub mod moving;
pub mod node;
pub mod object;
pub mod ownership;
pub mod payload;
pub mod pe;
pub mod progress;
pub mod proto;
pub mod results;
pub mod scatter;
pub mod size;
pub mod spin;
pub mod topology;
pub mod transport;
