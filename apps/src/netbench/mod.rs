//! `run netbench`: what messages cost between the nodes of a mix, as the report of 1995 measured it, and more.
//!
//! Latency, scatter, gather and all-to-all broadcast are defined as in the report (its tables 5.14 to 5.17): *latency* is
//! half of a round trip; in a *scatter* one PE sends a message of its own to each PE, and each answers with a receipt; in a
//! *gather* one PE broadcasts a request, and each sends its message back; in an *all-to-all broadcast* a request goes out,
//! every PE's data are collected, the collection is broadcast, and all answer with receipts. Beside these: how many
//! messages and bytes go one way in a second, and the two numbers (Hockney, 1994) by which a link is planned with: a time
//! for each message, and a rate for its bytes.
#![doc = include_str!("README.md")]
#![doc = include_str!("schema.md")]

mod arguments;
mod fit;
mod links;
mod measure;
mod plots;
mod recorded;
mod results;
mod station;
mod table;
#[cfg(test)]
mod tests;

use crate::output::{write, write_json, written};
use arguments::Netbench;
use chares::{Driver, RunError};
use command::{App, CommandLine};

/// Adds the application and its chare type to a program.
#[must_use]
pub fn add_to(program: CommandLine) -> CommandLine {
    let about = "Measure latency, bandwidth, scatter, gather and all-to-all broadcast between the nodes";
    program.chare::<station::Station>().app(
        App::new("netbench", about, drive)
            .check(arguments::check)
            .complete(|arguments: Netbench| Ok(arguments.completed()))
            .files(|arguments: &Netbench| written([("--json", &arguments.json)]).collect()),
    )
}

fn drive(main: &mut Driver, arguments: Netbench) -> Result<(), RunError> {
    let results = measure::measure(main, &arguments)?;
    main.outcome().print(&table::printed(&results));
    main.outcome().fact("links", results.figures()?);
    if let Some(path) = &arguments.json {
        write_json(path, &results)?;
    }
    if let Some(folder) = &arguments.svg {
        for (name, chart) in plots::charts(&results) {
            write(&folder.join(name), &chart.to_svg())?;
        }
    }
    Ok(())
}
