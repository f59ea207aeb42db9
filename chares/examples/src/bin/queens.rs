//! Counts the ways to place queens on a board so that none attacks another: a tree of chares, and nobody knows how large its
//! branches are. Each chare goes where there is least to do.
use chares::prelude::*;
use chares::{Accumulator, On};

/// Columns, and diagonals both ways, that a queen above attacks in the next row.
type Attacked = (u32, u32, u32);

fn free(n: u32, (columns, left, right): Attacked) -> impl Iterator<Item = Attacked> {
    let fields = (0..n).map(|column| 1 << column).filter(move |field| (columns | left | right) & field == 0);
    fields.map(move |field| (columns | field, (left | field) << 1, (right | field) >> 1))
}

fn count(n: u32, row: u32, attacked: Attacked) -> u64 {
    if row == n { 1 } else { free(n, attacked).map(|next| count(n, row + 1, next)).sum() }
}

#[chare]
struct Branch(Accumulator<Sum<u64>>);

#[chare]
impl Branch {
    fn new(_: &mut Ctx<Self>, found: Accumulator<Sum<u64>>) -> Self {
        Self(found)
    }

    #[entry]
    fn search(&mut self, ctx: &mut Ctx<Self>, n: u32, row: u32, attacked: Attacked) {
        if row == 3 {
            self.0.add(ctx, Sum(count(n, row, attacked)));
        } else {
            free(n, attacked).for_each(|next| begin(ctx, self.0, (n, row + 1, next)));
        }
        ctx.destroy();
    }
}

fn begin(cx: &mut impl Cx, found: Accumulator<Sum<u64>>, (n, row, attacked): (u32, u32, Attacked)) {
    cx.chare::<Branch>(found, On::ByLoad).search(cx, n, row, attacked);
}

pub fn drive(main: &mut Driver) -> Result<(), RunError> {
    let found = main.accumulator();
    begin(main, found, (10, 0, (0, 0, 0)));
    main.quiescence()?;
    println!("ways to place 10 queens: {}", main.collect(&found)?.map_or(0, |Sum(ways)| ways));
    Ok(())
}

fn main() -> Result<(), RunError> {
    Program::new("queens", "1.0").run_in_process(&InProcess::new(&[2, 1]), drive)
}
