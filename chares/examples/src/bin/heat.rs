//! Heat flows along a tube and around it. Each line of cells along the tube is a chare; before every step it sends them to
//! the lines on both sides, for which they are ghosts. The ends of the tube keep their temperature.
use chares::prelude::*;
const LINES: u32 = 12;

#[chare]
struct Line {
    cells: Vec<f64>,
    step: u32,
    ghosts: Inbox<u32, Vec<f64>>,
}

#[chare]
impl Line {
    fn new(ctx: &mut Ctx<Self>, length: usize) -> Self {
        let cells = vec![f64::from(ctx.index()); length];
        let line = Self { cells, step: 0, ghosts: Inbox::default() };
        line.send(ctx);
        line
    }

    fn send(&self, ctx: &mut Ctx<Self>) {
        for side in [1, LINES - 1] {
            ctx.array().at((ctx.index() + side) % LINES).ghost(ctx, self.step, self.cells.clone());
        }
    }

    #[collect(self.ghosts, self.step, 2 if self.step < 200)]
    fn ghost(&mut self, ctx: &mut Ctx<Self>, _step: u32, ghosts: Vec<Vec<f64>>) {
        let old = self.cells.clone();
        for at in 1..old.len() - 1 {
            let around = old[at - 1] + old[at + 1] + (ghosts[0][at] + ghosts[1][at]);
            self.cells[at] += 0.2 * (around - 4.0 * old[at]);
        }
        self.step += 1;
        self.send(ctx);
    }

    #[reduce(ordered)]
    fn heat(&self) -> Sum<f64> {
        Sum(self.cells.iter().sum())
    }
}

pub fn drive(main: &mut Driver) -> Result<(), RunError> {
    let lines = main.array::<Line>(LINES, 50);
    main.quiescence()?;
    println!("heat after 200 steps: {}", lines.heat().ask(main)?.0);
    Ok(())
}

fn main() -> Result<(), RunError> {
    Program::new("heat", "1.0").run_in_process(&InProcess::new(&[2, 1]), drive)
}
