//! Measures link by link, then the collective operations.

use super::arguments::Netbench;
use super::fit::{flat, hockney};
use super::links::{Ends, Plan, plan};
use super::results::{Collective, CollectiveSize, Kind, Link, LinkSize, Node, Operation, Results, Stream};
use super::station::{Join, Order, Station, Task};
use crate::statistics::Summary;
use chares::prelude::*;
use std::time::{Duration, Instant, SystemTime};

/// No figure takes longer, once it has as many samples as it needs.
const PATIENCE: Duration = Duration::from_millis(500);
/// So many samples a figure needs, if so many are asked for.
const SAMPLES_MIN: u64 = 11;
/// Over a slow network so many are enough after this time.
const SAMPLES_LEAST: u64 = 3;
const PATIENCE_AT_LAST: Duration = Duration::from_secs(5);
/// So many samples are taken between two looks at the clock.
const SAMPLES_ONCE: u64 = 20;
/// Samples before those that count.
const SAMPLES_WARM: u64 = 2;
/// A stream is so many bytes, or messages.
const STREAM_BYTES: u64 = 8 << 20;
const STREAM_MESSAGES: u64 = 4096;
/// Streams of a length are measured so often at most: each is long in itself.
const STREAMS_MAX: u64 = 25;
/// Messages by which a connection is warmed.
const WARM_BYTES: u64 = 1 << 20;
/// No operation moves more bytes to one place.
const COLLECTED_BYTES_MAX: u64 = 256 << 20;

/// Where the time is taken, and of what.
struct Figure<'a> {
    stations: &'a Array<Station>,
    /// Who begins.
    first: u32,
    task: Task,
    bytes: u64,
}

/// Measures everything.
pub(super) fn measure(main: &mut Driver, arguments: &Netbench) -> Result<Results, RunError> {
    let nodes = main.machines().nodes.clone();
    let planned = plan(main.machines(), &arguments.between);
    let Plan { nodes: chosen, pes, links } = planned.map_err(RunError::Input)?;
    let count = u32::try_from(pes.len()).map_err(|e| RunError::Failed(e.to_string()))?;
    let stations: Array<Station> = main.array_placed(count, (), Placement::on_pes(pes.iter().copied()));
    main.init_over()?;
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let operations = if arguments.links_only { &[][..] } else { &Operation::ALL };
    let mut steps = Steps { done: 0, total: (links.len() + operations.len()) as u64 };
    let mut measured = Vec::new();
    for ends in links {
        let [from, to] = ends.nodes.map(|node| nodes[node].name.clone());
        steps.next(main, &format!("{from} with {to}"));
        measured.push(link(main, &stations, ends, [from, to], arguments)?);
    }
    let mut collectives = Vec::new();
    for &operation in operations {
        steps.next(main, operation.name());
        collectives.push(collective(main, &stations, operation, arguments)?);
    }
    main.timed_over()?;
    let node = |&at: &usize| Node {
        name: nodes[at].name.clone(),
        host: nodes[at].host.clone(),
        pes: u32::try_from(nodes[at].rates.len()).unwrap_or(u32::MAX),
    };
    Ok(Results {
        schema: "metachare-netbench/1",
        version: env!("CARGO_PKG_VERSION"),
        commit: command::COMMIT,
        started_unix_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        command_line: std::env::args().collect(),
        repeats: arguments.repeats,
        warm_up_s: arguments.warm_up,
        nodes: chosen.iter().map(node).collect(),
        links: measured,
        collectives,
    })
}

/// How far it is, for the window.
struct Steps {
    done: u64,
    total: u64,
}

impl Steps {
    fn next(&mut self, main: &mut Driver, name: &str) {
        main.phase(name, self.done, self.total);
        self.done += 1;
    }
}

fn link(
    main: &mut Driver,
    stations: &Array<Station>,
    ends: Ends,
    [from, to]: [String; 2],
    arguments: &Netbench,
) -> Result<Link, RunError> {
    let [first, second] = ends.pes;
    // Reading the clock takes as long as a message inside a process.
    let trips_per_sample = match ends.kind {
        Kind::OnePe => 64,
        Kind::TwoPes => 16,
        Kind::TwoNodes => 1,
    };
    let figure = |task, bytes| Figure { stations, first, task, bytes };
    let begun = Instant::now();
    while ends.kind == Kind::TwoNodes && begun.elapsed() < arguments.warm_up() {
        figure(Task::Trips(second, 1), WARM_BYTES).seconds(main, SAMPLES_WARM)?;
    }
    let mut sizes = Vec::new();
    for &bytes in &arguments.sizes {
        let trips = figure(Task::Trips(second, trips_per_sample), bytes);
        let latencies = trips.samples(main, arguments.repeats, |s| one_way(s, trips_per_sample))?;
        // Inside a process bytes are not copied.
        let most = if ends.kind == Kind::TwoNodes { STREAM_BYTES / bytes } else { STREAM_MESSAGES };
        let messages = most.clamp(4, STREAM_MESSAGES);
        let streams = figure(Task::Stream(second, messages), bytes);
        let rates = streams.samples(main, arguments.repeats.min(STREAMS_MAX), |s| messages as f64 / s)?;
        let stream = Stream { messages, messages_per_s: rates, bytes_per_s: rates.p50 * bytes as f64 };
        sizes.push(LinkSize { bytes, latency_s: latencies, stream });
    }
    let times: Vec<(f64, f64)> = sizes.iter().map(|size| (size.bytes as f64, size.latency_s.p50)).collect();
    let fit = if ends.kind == Kind::TwoNodes { hockney(&times) } else { flat(&times) };
    let fit = fit.ok_or_else(|| RunError::Failed("no message took any time".into()))?;
    // Sizes are ascending.
    let stream_bytes_per_s =
        sizes.last().filter(|_| fit.bytes_per_s.is_some()).map(|size| size.stream.bytes_per_s);
    Ok(Link { kind: ends.kind, from, to, fit, stream_bytes_per_s, trips_per_sample, sizes })
}

/// The latency by the report's definition, where so many round trips took these seconds.
fn one_way(seconds: f64, round_trips: u64) -> f64 {
    seconds / (2 * round_trips) as f64
}

fn collective(
    main: &mut Driver,
    stations: &Array<Station>,
    operation: Operation,
    arguments: &Netbench,
) -> Result<Collective, RunError> {
    let task = match operation {
        Operation::Scatter => Task::Scatter,
        Operation::Gather => Task::Gather,
        Operation::AllToAllBroadcast => Task::AllToAllBroadcast,
    };
    let pes = stations.shape()[0];
    let fits = |bytes: &u64| bytes * u64::from(pes) <= COLLECTED_BYTES_MAX;
    let sizes: Vec<u64> = arguments.sizes.iter().copied().filter(fits).collect();
    let mut times_over = |count| {
        // A section, because that leaves PEs of other nodes in peace.
        let together = stations.section(main, 0..count);
        together.send(main, Join(together.clone()));
        main.quiescence()?;
        let time = |&bytes: &u64| {
            let figure = Figure { stations, first: 0, task, bytes };
            figure.samples(main, arguments.repeats, |seconds| seconds)
        };
        sizes.iter().map(time).collect::<Result<Vec<Summary>, RunError>>()
    };
    let times = times_over(pes)?.into_iter().zip(times_over(1)?);
    let size = |(&bytes, (all_s, one_pe_s))| CollectiveSize { bytes, all_s, one_pe_s };
    Ok(Collective { operation, pes: pes as usize, sizes: sizes.iter().zip(times).map(size).collect() })
}

impl Figure<'_> {
    /// As many samples as asked for, or as there is time for, each in a unit that `of` makes of its seconds.
    fn samples(&self, main: &mut Driver, repeats: u64, of: impl Fn(f64) -> f64) -> Result<Summary, RunError> {
        self.seconds(main, SAMPLES_WARM)?;
        let (mut seconds, begun) = (Vec::new(), Instant::now());
        while (seconds.len() as u64) < repeats {
            let taken = seconds.len() as u64;
            let needed = if begun.elapsed() > PATIENCE_AT_LAST { SAMPLES_LEAST } else { SAMPLES_MIN };
            if taken >= needed && begun.elapsed() > PATIENCE {
                break;
            }
            // Where samples are slow, the few that are needed should not become many.
            let once = if begun.elapsed() > PATIENCE { 1 } else { SAMPLES_ONCE.min(1 + taken) };
            seconds.extend(self.seconds(main, once.min(repeats - taken))?);
        }
        Summary::of(seconds.into_iter().map(of).collect())
            .ok_or_else(|| RunError::Failed("a figure without a sample".into()))
    }

    fn seconds(&self, main: &mut Driver, samples: u64) -> Result<Vec<f64>, RunError> {
        let (done, seconds) = main.pending();
        let order = Order { task: self.task, bytes: self.bytes, samples, done };
        self.stations.at(self.first).send(main, order);
        seconds.wait(main)
    }
}

#[cfg(test)]
mod tests {
    use super::one_way;

    #[test]
    fn latency_is_half_of_a_round_trip() {
        assert_eq!((one_way(6.0, 1), one_way(6.0, 4)), (3.0, 0.75));
    }
}
