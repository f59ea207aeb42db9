//! What is sent cannot be packed.
use chares::prelude::*;

struct Ghost {
    row: Vec<f64>,
}

#[chare]
struct Strip(Vec<f64>);

#[chare]
impl Strip {
    fn new() -> Self {
        Self(Vec::new())
    }

    #[entry]
    fn ghost(&mut self, step: u32, ghost: Ghost) { //~ `Ghost` is not a message
        self.0 = ghost.row;
    }
}

fn main() {}
