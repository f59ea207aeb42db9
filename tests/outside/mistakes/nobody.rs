//! An entry method of nobody.
use chares::prelude::*;

#[chare]
struct Strip;

#[chare]
impl Strip {
    fn new() -> Self {
        Self
    }

    #[entry]
    fn ghost(step: u32) { //~ `ghost` is called on a chare: its first parameter is `&mut self` or `&self`
        println!("{step}");
    }
}

fn main() {}
