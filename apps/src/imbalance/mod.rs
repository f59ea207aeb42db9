//! Work that is unevenly divided and changes, from a seed: what balancers are tried with.
//!
//! The loads are those of [`chares::loadbalance::balance::patterns`]. The ring of chares that exchange messages with their
//! neighbours and reduce now and then is after Charm++'s `lb_test`.
#![doc = include_str!("README.md")]

mod arguments;
pub mod chain;
mod cost;
mod division;
mod drive;
pub mod problem;
pub mod serial;
pub mod walker;

pub use arguments::{Imbalance, Loads};

use command::{App, CommandLine};

/// Units of one call by which a speed is measured: a few milliseconds.
const CALL_UNITS: u64 = 1 << 20;

/// Adds the application and its chare type to a program.
#[must_use]
pub fn add_to(program: CommandLine) -> CommandLine {
    program.chare::<walker::Walker>().app(
        App::new("imbalance", "Work whose loads differ and change, for balancers", drive::drive)
            .kernel(|_| Box::new(kernel_call(CALL_UNITS)))
            .kernel_key(|_| "chain".into())
            .kernel_unit(|_| "links")
            .work(Imbalance::work)
            .settled("seconds", |imbalance| {
                imbalance.work.iter().map(|work| ("work", work.to_string())).collect()
            })
            .check(arguments::check)
            .complete(|arguments: Imbalance| Ok(arguments.completed()))
            .files(Imbalance::files)
            .aside(&["out", "verify"])
            .cost(cost::MODEL, cost::cost),
    )
}

/// Walks so many links of a chain at a call.
fn kernel_call(units: u64) -> impl FnMut() -> f64 {
    let mut number = 1;
    move || {
        number = std::hint::black_box(chain::walk(number, units));
        units as f64
    }
}

#[cfg(test)]
mod tests;
