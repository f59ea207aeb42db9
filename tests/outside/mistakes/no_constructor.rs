//! Nobody makes the chare.
use chares::prelude::*;

#[chare]
struct Strip;

#[chare]
impl Strip { //~ `Strip` has no constructor: write `fn new(ctx: &mut Ctx<Self>) -> Self`
    #[entry]
    fn ghost(&mut self) {}
}

fn main() {}
