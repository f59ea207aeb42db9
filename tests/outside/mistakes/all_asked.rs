//! Many are asked, and each would give an answer.
use chares::prelude::*;

#[chare]
struct Strip(f64);

#[chare]
impl Strip {
    fn new() -> Self {
        Self(0.0)
    }

    #[entry]
    fn heat(&self) -> f64 {
        self.0
    }
}

fn drive(main: &mut Driver, strips: Array<Strip>) -> Result<f64, RunError> {
    strips.heat().ask(main) //~ is not the address of one chare
}

fn main() {}
