//! Answers that cannot become one.
use chares::prelude::*;

#[chare]
struct Strip(f64);

#[chare]
impl Strip {
    fn new() -> Self {
        Self(0.0)
    }

    #[reduce]
    fn heat(&self) -> f64 { //~ `f64` cannot be combined with others of its kind
        self.0
    }
}

fn main() {}
