//! Heat flows out of a square plate whose edges are kept cold, on two nodes inside this process.
//!
//! The plate is cut into strips of rows, one chare each. In every step a strip sends its first and last row to the
//! strips above and below, and takes the step when theirs have come. A plate that begins as one hump of the sine keeps
//! that shape and only cools, so that the heat which is left is known beforehand.

use chares::prelude::*;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Strips of the plate.
const STRIPS: u32 = 6;
/// Rows of a strip.
const ROWS: usize = 8;
/// Cells along each side of the plate.
const SIDE: usize = STRIPS as usize * ROWS;
/// Cells in a row with the cold ones at both ends.
const WIDTH: usize = SIDE + 2;
/// Conductivity times the length of a step over the area of a cell; above 0.25 the scheme is unstable.
const FLOW: f64 = 0.2;

/// Rows of the plate, with the row above and the row below.
#[derive(Serialize, Deserialize)]
struct Strip {
    cells: Vec<f64>,
    step: u32,
    last: u32,
    done: Callback<Sum<f64>>,
    rows: Inbox<u32, Row>,
}

/// Take so many steps, then tell how much heat is left.
#[derive(Clone, Serialize, Deserialize)]
struct Advance(u32, Callback<Sum<f64>>);

/// A neighbour's outermost row as it is before a step.
#[derive(Serialize, Deserialize)]
struct Row {
    step: u32,
    is_above: bool,
    cells: Bulk<f64>,
}

chares::entries!(Strip: Advance, Row; reduces Sum<f64> as "Heat");

impl Chare for Strip {
    type Index = u32;
    type Init = ();
    fn new((): (), ctx: &mut Ctx<'_, Self>) -> Self {
        let first = ctx.index() as usize * ROWS;
        let cells = (0..ROWS + 2).flat_map(|row| (0..WIDTH).map(move |at| hump(first + row, at)));
        let (cells, done, rows) = (cells.collect(), Callback::ignore(), Inbox::default());
        Self { cells, step: 0, last: 0, done, rows }
    }
}

impl Entry<Advance> for Strip {
    fn receive(&mut self, Advance(steps, done): Advance, ctx: &mut Ctx<'_, Self>) {
        (self.last, self.done) = (self.step + steps, done);
        self.send_rows(ctx);
        self.advance(ctx);
    }
}

impl Entry<Row> for Strip {
    fn receive(&mut self, row: Row, ctx: &mut Ctx<'_, Self>) {
        self.rows.hold(row.step, row);
        self.advance(ctx);
    }
}

impl Strip {
    fn row(&self, row: usize) -> &[f64] {
        &self.cells[row * WIDTH..(row + 1) * WIDTH]
    }

    fn heat(&self) -> f64 {
        (1..=ROWS).flat_map(|row| self.row(row)).sum()
    }

    fn send_rows(&self, ctx: &mut Ctx<'_, Self>) {
        let (here, strips) = (ctx.index(), ctx.array());
        let row = |row, is_above| Row { step: self.step, is_above, cells: self.row(row).to_vec().into() };
        if here > 0 {
            strips.at(here - 1).send(ctx, row(1, false));
        }
        if here + 1 < STRIPS {
            strips.at(here + 1).send(ctx, row(ROWS, true));
        }
    }

    fn advance(&mut self, ctx: &mut Ctx<'_, Self>) {
        let neighbours = usize::from(ctx.index() > 0) + usize::from(ctx.index() + 1 < STRIPS);
        while self.step < self.last {
            let Some(rows) = self.rows.take(&self.step, neighbours) else { return };
            for row in rows {
                let start = if row.is_above { 0 } else { (ROWS + 1) * WIDTH };
                self.cells[start..start + WIDTH].copy_from_slice(&row.cells);
            }
            let old = self.cells.clone();
            for at in (1..=ROWS).flat_map(|row| (1..=SIDE).map(move |cell| row * WIDTH + cell)) {
                let around = old[at - 1] + old[at + 1] + old[at - WIDTH] + old[at + WIDTH];
                self.cells[at] += FLOW * (around - 4.0 * old[at]);
            }
            self.step += 1;
            if self.step < self.last {
                self.send_rows(ctx);
            } else {
                ctx.contribute(Sum(self.heat()), self.done);
            }
        }
    }
}

/// The plate at first: warmest in the middle, cold at the edges.
fn hump(row: usize, at: usize) -> f64 {
    let sine = |place: usize| (PI * place as f64 / (SIDE + 1) as f64).sin();
    sine(row) * sine(at)
}

fn main() -> Result<(), RunError> {
    let program = Program::new("heat", "1.0").chare::<Strip>();
    program.run_in_process(&InProcess::new(&[2, 1]), |main| {
        let strips = main.array::<Strip>(STRIPS, ());
        for round in 1..=4 {
            let (done, heat) = main.pending();
            strips.broadcast(main, Advance(50, done));
            println!("heat after {} steps: {:e}", 50 * round, heat.wait(main)?.0);
        }
        Ok(())
    })
}
