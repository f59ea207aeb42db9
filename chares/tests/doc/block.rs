// The chare type of the documentation's examples; they include it.

use chares::{Array, Callback, Chare, Ctx, Cx, Element, Entry, Max, Min, Sum};
use serde::{Deserialize, Serialize};

/// An element of a two-dimensional array, made with its count of cells.
#[derive(Serialize, Deserialize)]
struct Block {
    cells: Vec<f64>,
}

/// One message that it takes: go so many steps on, and tell the largest change.
#[derive(Clone, Serialize, Deserialize)]
struct Advance(u32, Callback<Max<f64>>);

/// The other: how many cells have you?
#[derive(Clone, Serialize, Deserialize)]
struct Count(Callback<Sum<u64>>);

/// A message that it does not take.
#[derive(Clone, Serialize, Deserialize)]
struct Rewind(u32, Callback<Max<f64>>);

chares::entries!(Block: Advance, Count; reduces Max<f64> as "Change", Sum<u64> as "Cells");

impl Chare for Block {
    type Index = [u32; 2];
    type Init = u32;
    fn new(count: u32, _: &mut Ctx<'_, Self>) -> Self {
        Block { cells: vec![0.0; count as usize] }
    }
}

impl Entry<Advance> for Block {
    fn receive(&mut self, Advance(steps, done): Advance, ctx: &mut Ctx<'_, Self>) {
        self.cells.fill(f64::from(steps));
        ctx.contribute(Max(self.cells[0]), done);
    }
}

impl Entry<Count> for Block {
    fn receive(&mut self, Count(total): Count, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(Sum(self.cells.len() as u64), total);
    }
}
