//! Each chare draws numbers; all together they make a histogram of them.
use chares::prelude::*;

#[chare]
struct Numbers(Vec<u64>);

#[chare]
impl Numbers {
    fn new(ctx: &mut Ctx<Self>, count: u64) -> Self {
        let first = u64::from(ctx.index()) * count;
        Self((first..first + count).map(|n| n * n % 9973).collect())
    }

    #[reduce]
    fn histogram(&self, bins: usize) -> Sums<u64> {
        let mut counts = vec![0; bins];
        self.0.iter().for_each(|n| counts[*n as usize * bins / 9973] += 1);
        Sums(counts)
    }
}

pub fn drive(main: &mut Driver) -> Result<(), RunError> {
    println!("{:?}", main.array::<Numbers>(12, 1000).histogram(10).ask(main)?.0);
    Ok(())
}

fn main() -> Result<(), RunError> {
    Program::new("histogram", "1.0").run_in_process(&InProcess::new(&[2, 1]), drive)
}
