//! An entry method that would wait.
use chares::prelude::*;

#[chare]
struct Strip;

#[chare]
impl Strip {
    fn new() -> Self {
        Self
    }

    #[entry]
    async fn ghost(&mut self, step: u32) { //~ `ghost` cannot be async: entry methods run to their end
        println!("{step}");
    }
}

fn main() {}
