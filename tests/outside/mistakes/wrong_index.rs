//! The array has two dimensions.
use chares::prelude::*;

#[chare]
struct Block;

#[chare(index = [u32; 2])]
impl Block {
    fn new() -> Self {
        Self
    }

    #[entry]
    fn go(&mut self) {}
}

fn drive(main: &mut Driver, blocks: Array<Block>) {
    blocks.at(7).go(main); //~ mismatched types
}

fn main() {}
