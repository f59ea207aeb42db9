//! The tables of the report, for people.

use super::recorded;
use super::results::{Collective, CollectiveSize, Kind, Link, LinkSize, Results};
use crate::statistics::{Summary, figure};
use chares::Size;
use std::fmt::Write as _;

/// Width of a column.
const WIDTH: usize = 10;

/// All tables.
pub(super) fn printed(results: &Results) -> String {
    let mut out = links(&results.links);
    out += &latencies(&results.links);
    let recorded = recorded::COLLECTIVES.iter();
    out.extend(results.collectives.iter().zip(recorded).map(|(measured, then)| collective(measured, then)));
    out.extend(results.links.iter().enumerate().map(|(at, link)| detail(at, link)));
    out + "\n"
}

/// What the numbers of links stand for, and each link in two numbers.
fn links(links: &[Link]) -> String {
    let mut out = String::from(
        "Links: a message of s bytes takes about latency + s / bandwidth (inside a node nothing is copied)\n",
    );
    let names: Vec<String> = links.iter().map(name).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    for (at, (name, link)) in names.iter().zip(links).enumerate() {
        let number = format!("[{}]", at + 1);
        let latency = figure(link.fit.latency_s * 1e6);
        let rate = match link.fit.bytes_per_s {
            Some(rate) => format!("{} MB/s", figure(rate * 1e-6)),
            None => "-".into(),
        };
        let error = 100.0 * link.fit.fit_error;
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {number:<5}{name:<width$}  {latency:>8} µs  {rate:>12}  (± {error:.0} %)");
    }
    out
}

/// The ends of a link.
pub(super) fn name(Link { kind, from, to, .. }: &Link) -> String {
    match kind {
        Kind::OnePe => format!("{from}, one PE"),
        Kind::TwoPes => format!("{from}, two PEs"),
        Kind::TwoNodes => format!("{from} – {to}"),
    }
}

fn latencies(links: &[Link]) -> String {
    let mut out = String::from("\nTable 5.14  Latency: half of a round trip, median, µs\n");
    let numbers = (1..=links.len()).map(|at| format!("[{at}]"));
    let then = recorded::LATENCIES.iter().map(|(pair, _)| pair.to_string());
    let columns: Vec<String> = numbers.chain(then).collect();
    let widths: Vec<usize> = columns.iter().map(|column| WIDTH.max(column.chars().count() + 2)).collect();
    let line = |first: &str, cells: &[String]| {
        let cells = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}"));
        format!("{first:>WIDTH$}{}\n", cells.collect::<String>())
    };
    let blank = WIDTH * (1 + links.len());
    let _ = writeln!(
        out,
        "{:blank$}  1995 (one processor with itself: {})",
        "",
        micros(recorded::ONE_PROCESSOR_S)
    );
    out += &line("", &columns);
    for (row, LinkSize { bytes, .. }) in links.first().map_or(&[][..], |link| &link.sizes).iter().enumerate()
    {
        let now = links.iter().map(|link| micros(link.sizes[row].latency_s.p50));
        let then = recorded::LATENCIES.iter().map(|(_, rows)| recorded_at(rows, *bytes));
        out += &line(&length(*bytes), &now.chain(then).collect::<Vec<_>>());
    }
    out
}

fn collective(measured: &Collective, then: &recorded::Collective) -> String {
    let (pes, name) = (measured.pes, measured.operation.name());
    let plural = if pes == 1 { "" } else { "s" };
    let mut out = format!("\nTable {}  {} over {pes} PE{plural}, µs\n", then.table, capitalised(name));
    out += &row("", ["p5", "p50", "p95", "p99", "mean", "one PE", "1995"].map(String::from));
    for CollectiveSize { bytes, all_s, one_pe_s } in &measured.sizes {
        let [p5, p50, p95, p99, mean] = percentiles(all_s);
        let cells = [p5, p50, p95, p99, mean, micros(one_pe_s.p50), recorded_at(&then.rows, *bytes)];
        out += &row(&length(*bytes), cells);
    }
    let one = micros(then.one_processor_s);
    let _ = writeln!(out, "{:WIDTH$}1995: four PEs of three kinds; on one processor {one}", "");
    out
}

fn detail(at: usize, link: &Link) -> String {
    let mut out = format!("\n[{}]  {}: latency, µs, and messages one after the other\n", at + 1, name(link));
    out += &row("", ["p5", "p50", "p95", "p99", "mean", "MB/s", "1000/s"].map(String::from));
    for LinkSize { bytes, latency_s, stream } in &link.sizes {
        let [p5, p50, p95, p99, mean] = percentiles(latency_s);
        // Inside a process bytes are not copied, so they have no rate.
        let rate = (link.kind == Kind::TwoNodes).then(|| figure(stream.bytes_per_s * 1e-6));
        let (rate, count) = (rate.unwrap_or_else(|| "-".into()), figure(stream.messages_per_s.p50 * 1e-3));
        out += &row(&length(*bytes), [p5, p50, p95, p99, mean, rate, count]);
    }
    out
}

fn percentiles(Summary { p5, p50, p95, p99, mean, .. }: &Summary) -> [String; 5] {
    [p5, p50, p95, p99, mean].map(|&seconds| micros(seconds))
}

fn row<const N: usize>(first: &str, cells: [String; N]) -> String {
    let cells: String = cells.iter().map(|cell| format!("{cell:>WIDTH$}")).collect();
    format!("{first:>WIDTH$}{cells}\n")
}

fn micros(seconds: f64) -> String {
    figure(seconds * 1e6)
}

fn recorded_at(rows: &[recorded::Row], bytes: u64) -> String {
    recorded::at(rows, bytes).map_or_else(|| "-".into(), micros)
}

/// A length with its unit, exact.
fn length(bytes: u64) -> String {
    format!("{:#}", Size(bytes))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}
