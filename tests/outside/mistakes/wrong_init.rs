//! The constructor takes something else.
use chares::prelude::*;

#[chare]
struct Strip(f64);

#[chare]
impl Strip {
    fn new(ctx: &mut Ctx<Self>, warmth: f64) -> Self {
        Self(warmth * f64::from(ctx.index()))
    }
}

fn drive(main: &mut Driver) {
    main.array::<Strip>(4, ()); //~ mismatched types
}

fn main() {}
