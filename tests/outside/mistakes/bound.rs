//! A field that no other machine can have.
use chares::prelude::*;

#[chare]
struct Strip {
    row: Vec<f64>,
    began: std::time::Instant, //~ `Instant` cannot travel with a chare
}

fn main() {}
