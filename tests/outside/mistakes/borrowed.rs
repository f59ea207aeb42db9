//! What is sent is borrowed.
use chares::prelude::*;

#[chare]
struct Strip(Vec<f64>);

#[chare]
impl Strip {
    fn new() -> Self {
        Self(Vec::new())
    }

    #[entry]
    fn ghost(&mut self, row: &[f64]) { //~ what is sent cannot be borrowed: take `Vec<f64>` or `Bulk<f64>`
        self.0 = row.to_vec();
    }
}

fn main() {}
