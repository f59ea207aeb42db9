//! What carries frames between nodes: QUIC between processes, calls inside one process.

pub mod framing;
pub mod loopback;
pub mod quic;
pub mod tls;

#[cfg(test)]
mod tests;
