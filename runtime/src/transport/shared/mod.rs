//! Memory that two processes of one host and one user share: rings for what they send each other, and how they come to
//! have it.

mod handshake;
mod mapping;
mod pair;
mod ring;

pub(super) use handshake::{HandshakeError, Listening, NAME_BYTES, answer};
pub(super) use pair::{Event, Pair};
pub(super) use ring::{Consumer, Damaged, Producer};
