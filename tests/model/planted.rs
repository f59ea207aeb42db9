//! Runs that are slow for one reason each, which is planted, so that tests see whether it is named.

use chares::prelude::*;
use clap::Args;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

#[derive(Args, Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Planted {
    /// Why it is slow
    #[arg(long)]
    cause: String,
}

#[chare]
struct Part {
    /// How many there are.
    count: u32,
    steps: u32,
}

/// Uses a core for so long.
fn work(ms: u64) {
    let used = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::MAX, Duration::from);
    let end = used().saturating_add(Duration::from_millis(ms));
    while used() < end {
        std::hint::black_box((0..20_000u64).fold(0, |sum, n| sum ^ std::hint::black_box(n)));
    }
}

#[chare]
impl Part {
    fn new(_: &mut Ctx<'_, Self>, count: u32) -> Self {
        Self { count, steps: 0 }
    }

    /// Everybody takes so long, but the last one.
    #[reduce]
    fn step(&self, ctx: &mut Ctx<'_, Self>, ms: u64, last_ms: u64) -> Sum<u32> {
        let is_last = ctx.index() + 1 == self.count;
        work(if is_last { last_ms } else { ms });
        Sum(self.steps)
    }

    /// Answers long before it has ended.
    #[entry]
    fn answer(&self, ctx: &mut Ctx<'_, Self>, to: Callback<u32>) {
        work(250);
        to.send(ctx, self.steps);
        work(250);
    }

    /// One after the other.
    #[entry]
    fn pass(&mut self, ctx: &mut Ctx<'_, Self>, left: u32) {
        work(5);
        if left > 0 {
            let next = (ctx.index() + 1) % self.count;
            ctx.array().at(next).pass(ctx, left - 1);
        }
    }

    /// Nothing, again and again.
    #[entry]
    fn tick(&mut self, ctx: &mut Ctx<'_, Self>, left: u32) {
        self.steps += 1;
        if left > 0 {
            ctx.array().at(ctx.index()).tick(ctx, left - 1);
        }
    }
}

pub(crate) fn drive(main: &mut Driver, arguments: Planted) -> Result<(), RunError> {
    let pes = main.pe_count();
    let steps = |main: &mut Driver, count: u32, [ms, last_ms, driver_ms]: [u64; 3], steps: u32| {
        let parts = main.array::<Part>(count, count);
        for _ in 0..steps {
            parts.step(ms, last_ms).ask(main)?;
            std::thread::sleep(Duration::from_millis(driver_ms));
        }
        Ok(())
    };
    match arguments.cause.as_str() {
        "nothing" => steps(main, pes, [10, 10, 0], 20),
        "a hot chare" => steps(main, pes, [1, 15, 0], 30),
        "too few chares" => steps(main, 1, [15, 15, 0], 30),
        "one long call" => steps(main, pes, [1, 450, 0], 1),
        "a call that has not ended" => {
            let (to, answer) = main.pending();
            main.array::<Part>(pes, pes).at(pes - 1).answer(main, to);
            answer.wait(main).map(drop)
        }
        "a serial driver" => steps(main, pes, [1, 1, 20], 25),
        "one after the other" => {
            main.array::<Part>(pes, pes).at(0).pass(main, 80);
            main.quiescence()
        }
        "tiny messages" => {
            main.array::<Part>(pes, pes).tick(main, 5_000_000);
            main.quiescence()
        }
        other => Err(RunError::Input(format!("nobody has planted {other:?}"))),
    }
}
