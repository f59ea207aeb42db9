//! Something else is sent than the entry method takes.
use chares::prelude::*;

#[chare]
struct Strip(f64);

#[chare]
impl Strip {
    fn new() -> Self {
        Self(0.0)
    }

    #[entry]
    fn warm(&mut self, by: f64) {
        self.0 += by;
    }
}

fn drive(main: &mut Driver) {
    let strips = main.array::<Strip>(4, ());
    strips.at(2).warm(main, "much"); //~ mismatched types
}

fn main() {}
