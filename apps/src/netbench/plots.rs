//! The same as line charts, all axes logarithmic.

use super::recorded;
use super::results::{Collective, Kind, Link, LinkSize, Results};
use super::table::name;
use command::plot::{Axis, Chart, Scale, Series};

/// Charts with the names of their files.
pub(super) fn charts(results: &Results) -> [(&'static str, Chart); 4] {
    let latency = |size: &LinkSize| size.latency_s.p50 * 1e6;
    let bandwidth = |size: &LinkSize| size.stream.bytes_per_s * 1e-6;
    let rate = |size: &LinkSize| size.stream.messages_per_s.p50;
    let then =
        recorded::LATENCIES.iter().map(|(pair, rows)| Series::other(format!("1995: {pair}"), micros(rows)));
    let all = |_: &Link| true;
    let mut latencies = links(results, all, latency);
    latencies.extend(then);
    // Inside a process bytes are not copied, so they have no rate.
    let bandwidths = links(results, |link| link.kind == Kind::TwoNodes, bandwidth);
    [
        ("latency.svg", chart("Latency: half of a round trip", "µs", latencies)),
        ("bandwidth.svg", chart("Messages one after the other: bandwidth", "MB/s", bandwidths)),
        ("rate.svg", chart("Messages one after the other: rate", "messages/s", links(results, all, rate))),
        ("collectives.svg", chart("Collective operations", "µs", collectives(&results.collectives))),
    ]
}

fn chart(title: &str, unit: &str, series: Vec<Series>) -> Chart {
    let x = Axis::new("length of a message", Scale::Bytes);
    Chart { title: title.into(), x, y: Axis::new(unit, Scale::Log), series }
}

fn links(results: &Results, is_in: impl Fn(&Link) -> bool, of: impl Fn(&LinkSize) -> f64) -> Vec<Series> {
    let point = |size: &LinkSize| (size.bytes as f64, of(size));
    results
        .links
        .iter()
        .filter(|link| is_in(link))
        .map(|link| Series::measured(name(link), link.sizes.iter().map(point).collect()))
        .collect()
}

fn collectives(measured: &[Collective]) -> Vec<Series> {
    let now = measured.iter().map(|Collective { operation, pes, sizes }| {
        let points = sizes.iter().map(|size| (size.bytes as f64, size.all_s.p50 * 1e6));
        Series::measured(format!("{}, {pes} PEs", operation.name()), points.collect())
    });
    let then = measured.iter().zip(&recorded::COLLECTIVES).map(|(Collective { operation, .. }, then)| {
        Series::other(format!("1995: {}", operation.name()), micros(&then.rows))
    });
    now.chain(then).collect()
}

fn micros(rows: &[recorded::Row]) -> Vec<(f64, f64)> {
    rows.iter().map(|&(bytes, seconds)| (bytes as f64, seconds * 1e6)).collect()
}
