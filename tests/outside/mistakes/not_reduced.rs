//! A contribution that nobody has announced.
use chares::prelude::*;

#[chare]
struct Strip(f64);

#[chare(reduces(Sum<f64>))]
impl Strip {
    fn new() -> Self {
        Self(0.0)
    }

    #[entry]
    fn tell(&mut self, ctx: &mut Ctx<Self>, to: Callback<Max<f64>>) {
        ctx.contribute(Max(self.0), to); //~ `Strip` does not list
    }
}

fn main() {}
