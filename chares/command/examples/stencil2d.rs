//! A user's own program: heat flows over a plate that is cut into blocks, one chare each. Every step a
//! block sends its edges to its neighbours, and averages its cells when theirs have come.
use command::clap::{self, Args};
use command::prelude::*;
use serde::{Deserialize, Serialize};

/// One block of the plate, with a frame of one cell around it for the neighbours' edges.
#[derive(Serialize, Deserialize)]
struct Block {
    plate: Plate,
    cells: Vec<f64>,
    step: u32,
    last: u32,
    done: Callback<Max<f64>>,
    edges: Inbox<u32, Edge>,
}

#[derive(Args, Clone, Debug, Serialize, Deserialize)]
struct Plate {
    #[arg(long, default_value_t = 8, help = "Blocks along each side")]
    blocks: u32,
    #[arg(long, default_value_t = 64, help = "Cells along each side of a block")]
    cells: usize,
    #[arg(long, default_value_t = 100, help = "Steps to take")]
    steps: u32,
}

/// Take so many steps, then tell the largest change of the last one.
#[derive(Clone, Serialize, Deserialize)]
struct Advance(u32, Callback<Max<f64>>);

/// A neighbour's edge for a step, and on which side of the receiver it lies.
#[derive(Serialize, Deserialize)]
struct Edge(u32, usize, Bulk<f64>);

chares::entries!(Block: Advance, Edge; reduces Max<f64> as "Change");

impl Chare for Block {
    type Index = [u32; 2];
    type Init = Plate;
    fn new(plate: Plate, ctx: &mut Ctx<'_, Self>) -> Self {
        let (width, is_hot) = (plate.cells + 2, ctx.index()[0] == 0);
        let cells = (0..width * width).map(|at| if is_hot && at < width { 100.0 } else { 0.0 }).collect();
        Self { plate, cells, step: 0, last: 0, done: Callback::ignore(), edges: Inbox::default() }
    }
}

impl Entry<Advance> for Block {
    fn receive(&mut self, Advance(steps, done): Advance, ctx: &mut Ctx<'_, Self>) {
        (self.last, self.done) = (self.step + steps, done);
        self.send_edges(ctx);
        self.advance(ctx);
    }
}

impl Entry<Edge> for Block {
    fn receive(&mut self, edge: Edge, ctx: &mut Ctx<'_, Self>) {
        self.edges.hold(edge.0, edge);
        self.advance(ctx);
    }
}

impl Block {
    /// Neighbours above, below, left and right, as (that side's number, index).
    fn neighbours(&self, [i, j]: [u32; 2]) -> Vec<(usize, [u32; 2])> {
        let all = [[i.wrapping_sub(1), j], [i + 1, j], [i, j.wrapping_sub(1)], [i, j + 1]];
        all.into_iter().enumerate().filter(|(_, at)| at.iter().all(|&p| p < self.plate.blocks)).collect()
    }

    /// Places of the cells along a side: our own outermost ones, or the frame beyond them.
    fn edge(&self, side: usize, is_frame: bool) -> Vec<usize> {
        let (n, width, near) = (self.plate.cells, self.plate.cells + 2, usize::from(!is_frame));
        let line = if matches!(side, 0 | 2) { near } else { width - 1 - near };
        (1..=n).map(|k| if side < 2 { line * width + k } else { k * width + line }).collect()
    }

    fn send_edges(&self, ctx: &mut Ctx<'_, Self>) {
        for (side, at) in self.neighbours(ctx.index()) {
            let cells: Vec<f64> = self.edge(side, false).iter().map(|&at| self.cells[at]).collect();
            ctx.array().at(at).send(ctx, Edge(self.step, side ^ 1, cells.into()));
        }
    }

    fn advance(&mut self, ctx: &mut Ctx<'_, Self>) {
        let (n, width, count) = (self.plate.cells, self.plate.cells + 2, self.neighbours(ctx.index()).len());
        while self.step < self.last {
            let Some(edges) = self.edges.take(&self.step, count) else { return };
            for Edge(_, side, cells) in edges {
                self.edge(side, true).iter().zip(cells.iter()).for_each(|(&at, &cell)| self.cells[at] = cell);
            }
            let (old, mut change) = (self.cells.clone(), 0.0f64);
            for at in (1..=n).flat_map(|i| (1..=n).map(move |j| i * width + j)) {
                self.cells[at] = 0.25 * (old[at - 1] + old[at + 1] + old[at - width] + old[at + width]);
                change = change.max((self.cells[at] - old[at]).abs());
            }
            self.step += 1;
            ctx.progress(1);
            match self.step == self.last {
                true => ctx.contribute(Max(change), self.done),
                false => self.send_edges(ctx),
            }
        }
    }
}

fn drive(main: &mut Driver, plate: Plate) -> Result<(), RunError> {
    let (side, steps) = (plate.blocks, plate.steps);
    let blocks: Array<Block> = main.array_placed([side, side], plate, Placement::BySpeed);
    main.init_over()?;
    main.expect_progress("stepping", u64::from(side) * u64::from(side) * u64::from(steps))?;
    let (done, change) = main.pending();
    blocks.broadcast(main, Advance(steps, done));
    println!("largest change in step {steps}: {:e}", change.wait(main)?.0);
    main.timed_over()
}

fn main() -> std::process::ExitCode {
    Program::new("stencil2d", "1.0").chare::<Block>().app(App::new("stencil2d", "Heat", drive)).main()
}
