//! What waits is something else than what comes.
use chares::prelude::*;

#[chare]
struct Strip {
    step: u32,
    ghosts: Inbox<u32, f64>,
}

#[chare]
impl Strip {
    fn new() -> Self {
        Self { step: 0, ghosts: Inbox::default() }
    }

    #[collect(self.ghosts, self.step, 2)] //~ mismatched types
    fn ghost(&mut self, step: u32, rows: Vec<Vec<f64>>) {
        self.step = step + rows.len() as u32;
    }
}

fn main() {}
