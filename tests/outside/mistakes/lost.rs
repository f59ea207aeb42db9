//! A field that would be lost on a move.
use chares::prelude::*;

#[chare]
struct Strip {
    row: Vec<f64>,
    #[serde(skip)] //~ this field would be lost when the chare moves
    sums: Vec<f64>,
}

fn main() {}
