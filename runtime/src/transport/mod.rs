//! What carries frames between nodes: QUIC between processes, memory that two processes of one host share beside it, and
//! calls inside one process.

pub mod framing;
pub mod loopback;
mod mark;
mod ports;
pub mod quic;
mod shared;
pub mod tls;

pub use ports::Ports;

#[cfg(test)]
mod tests;
