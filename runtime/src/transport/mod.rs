//! What carries frames between nodes: QUIC between processes, calls inside one process.

pub mod loopback;
