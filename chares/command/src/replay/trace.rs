//! A recording in the trace event format that Perfetto and Chrome's `about:tracing` open: a process for each node, a
//! thread for each PE, all on the launcher's clock.
//!
//! Format: "Trace Event Format" (Google, 2016), its JSON object form, with metadata, complete, counter, instant and flow
//! events; times are microseconds. PE `p` is thread `p + 1`, for 0 means the idle process to viewers. Processes have numbers
//! The entry methods that are told of one by one have a thread of their own beside that of their PE, and messages are arrows
//! between these. Processes have numbers far from those of threads: Perfetto takes a thread with the number of its process for the main one, and shows it first.

use super::sampled::Sampled;
use super::series::{NodeSeries, PeSeries, Series, Span};
use runtime::monitor::wire::Balanced;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The process of the run; node `n` of it is the process `RUN + n`.
const RUN: u32 = 1_000_000;
/// The thread of its phases, and of what happens to all of it.
const PHASES: (u32, u32) = (RUN, 1);
/// The thread of the single entry methods of PE `p` is `CALLS + p`, as far as numbers of processes do not follow.
const CALLS: u32 = 100_000;
/// PEs from this number on have no such thread.
const CALLS_MAX: u32 = 800_000;

/// Rounding moves times by so much, microseconds.
const OFF_US: i64 = 2;

/// The trace, one event a line.
pub(crate) fn written(series: &Series<'_>) -> String {
    let mut trace = Trace { text: String::new() };
    trace.of_run(series);
    series.nodes.iter().for_each(|node| trace.of_node(node));
    trace.of_calls(series);
    let precision: serde_json::Map<String, Value> = series
        .nodes
        .iter()
        .map(|node| (node.name.clone(), json!(node.clock.precision_ns.map(|ns| ns as f64 / 1e3))))
        .collect();
    let run = &series.run;
    let other = json!({
        "program": run.program,
        "app": run.app,
        "run_id": run.run_id,
        "arguments": run.arguments,
        "started_unix_ms": run.started_unix_ms,
        "clock_precision_us": precision,
    });
    let events = trace.text.trim_end_matches(",\n");
    format!("{{\"displayTimeUnit\":\"ms\",\"otherData\":{other},\"traceEvents\":[\n{events}\n]}}\n")
}

struct Trace {
    text: String,
}

impl Trace {
    fn put(&mut self, event: &Value) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{event},");
    }

    fn name(&mut self, what: &str, process: u32, thread: u32, name: &str) {
        self.put(&json!({"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}));
    }

    fn process(&mut self, process: u32, name: &str, labels: &str) {
        self.name("process_name", process, 0, name);
        self.put(&json!({"ph": "M", "name": "process_sort_index", "pid": process, "tid": 0,
            "args": {"sort_index": process}}));
        self.put(&json!({"ph": "M", "name": "process_labels", "pid": process, "tid": 0, "args": {"labels": labels}}));
    }

    fn counter(&mut self, process: u32, name: &str, at: i64, values: &Value) {
        self.put(
            &json!({"ph": "C", "name": name, "pid": process, "tid": 0, "ts": micros(at), "args": values}),
        );
    }

    fn slice(&mut self, (process, thread): (u32, u32), name: &str, (from, to): (i64, i64), args: &Value) {
        self.put(&json!({"ph": "X", "cat": "metachare", "name": name, "pid": process, "tid": thread,
            "ts": micros(from), "dur": micros(to) - micros(from), "args": args}));
    }

    /// Among the phases: Perfetto has no name for a track of what is said to be of all processes.
    fn instant(&mut self, name: &str, at: i64, args: &Value) {
        self.put(
            &json!({"ph": "i", "s": "t", "name": name, "pid": PHASES.0, "tid": PHASES.1, "ts": micros(at),
            "args": args}),
        );
    }

    /// Phases, how far they are, decisions to move chares, lost nodes and the end.
    fn of_run(&mut self, series: &Series<'_>) {
        self.process(RUN, &format!("run {}", series.run.run_id), &series.run.app);
        self.name("thread_name", PHASES.0, PHASES.1, "phases");
        for phase in &series.phases {
            let newest = phase.newest();
            let args = json!({"done": newest.done, "total": newest.total, "detail": newest.detail});
            self.slice(PHASES, &newest.name, (phase.from, phase.to), &args);
            for (at, step) in phase.steps().filter(|(_, step)| step.total > 0) {
                let percent = percent(step.done as f64 / step.total as f64);
                self.counter(RUN, "progress", at, &json!({"percent": percent}));
            }
        }
        for (at, decision) in &series.decisions {
            let Balanced { by, moves, bytes, before, expected, after, .. } = decision;
            let args = json!({"by": by, "moves": moves, "bytes": bytes, "imbalance before": before,
                "expected": expected, "found": after});
            self.instant("chares move", *at, &args);
        }
        for (at, node, reason) in &series.lost {
            let name = series.nodes.iter().find(|known| known.node == *node).map(|known| known.name.as_str());
            self.instant("node lost", *at, &json!({"node": name, "reason": reason}));
        }
        if let Some((code, summary)) = series.ended {
            self.instant("ended", series.end_ns, &json!({"code": code, "summary": summary}));
        }
    }

    fn of_node(&mut self, node: &NodeSeries<'_>) {
        let process = RUN + u32::from(node.node);
        let precision = node.clock.precision_ns;
        let clock = precision.map_or("unknown".into(), |ns| format!("within {:.3} ms", ns as f64 / 1e6));
        self.process(process, &format!("node {}", node.name), &format!("{}, clock {clock}", node.host));
        for pe in &node.pes {
            self.name("thread_name", process, pe.pe.saturating_add(1), &format!("PE {}", pe.pe));
            self.of_pe(process, pe);
        }
        let mut before = None;
        for (at, snapshot) in &node.snapshots {
            self.counter(process, "memory", *at, &json!({"MB": snapshot.memory_bytes as f64 / 1e6}));
            if let Some((from, sent, received)) =
                before.replace((*at, snapshot.sent_bytes, snapshot.received_bytes))
            {
                // Megabytes a second: bytes in a microsecond.
                let rate =
                    |old: u64, new: u64| new.saturating_sub(old) as f64 * 1e3 / (at - from).max(1) as f64;
                let rates = json!({"sent": rate(sent, snapshot.sent_bytes),
                    "received": rate(received, snapshot.received_bytes)});
                self.counter(process, "MB/s to and from other nodes", from, &rates);
            }
        }
    }

    /// Single entry methods as slices, and the messages that started them as arrows.
    fn of_calls(&mut self, series: &Series<'_>) {
        let Sampled { calls, sent } = &series.sampled;
        let process_of = |pe: u32| {
            let node = series.nodes.iter().find(|node| node.pes.iter().any(|own| own.pe == pe))?;
            (pe < CALLS_MAX).then(|| RUN + u32::from(node.node))
        };
        let mut tracks: BTreeMap<u32, Track> = BTreeMap::new();
        for call in calls {
            let Some(process) = process_of(call.pe) else { continue };
            let track = tracks.entry(call.pe).or_insert_with(|| {
                let thread = (process, CALLS + call.pe);
                self.name("thread_name", thread.0, thread.1, &format!("PE {} entry methods", call.pe));
                Track { thread, slices: Vec::new() }
            });
            // A slice begins no sooner than the one before it ended, whatever a recording says.
            let before = track.slices.last().map_or(0, |(_, end)| *end);
            let (from, to) = (micros(call.from).max(before), micros(call.to));
            if from > to {
                continue;
            }
            track.slices.push((from, to));
            let name = series.run.entry_names.get(usize::from(call.name)).map_or("?", String::as_str);
            let args = json!({"waited_ms": call.waited as f64 / 1e6});
            self.slice(track.thread, name, (from * 1000, to * 1000), &args);
        }
        let mut number = 0_u64;
        for call in calls {
            let Some((cause, left)) =
                call.cause.and_then(|cause| Some((cause, sent.get(&(cause.pe, cause.number))?)))
            else {
                continue;
            };
            let (Some(from), Some(to)) = (tracks.get(&cause.pe), tracks.get(&call.pe)) else { continue };
            // Both ends lie in slices; what sent the message may not be told of.
            let (Some((begin, _)), Some((end, ends))) =
                (from.within(micros(*left)), to.within(micros(call.from)))
            else {
                continue;
            };
            // Clocks may be off by more than a message took.
            let end = end.max(begin);
            if end > ends {
                continue;
            }
            number += 1;
            let args = json!({"bytes": cause.bytes});
            self.put(
                &json!({"ph": "s", "cat": "message", "name": "message", "id": number, "pid": from.thread.0,
                "tid": from.thread.1, "ts": begin, "args": args}),
            );
            self.put(&json!({"ph": "f", "bp": "e", "cat": "message", "name": "message", "id": number,
                "pid": to.thread.0, "tid": to.thread.1, "ts": end, "args": args}));
        }
    }

    /// Its load as a counter, and as slices what it did most of the time.
    fn of_pe(&mut self, process: u32, pe: &PeSeries<'_>) {
        let load = format!("PE {} load, %", pe.pe);
        let queue = format!("PE {} queue", pe.pe);
        for span in &pe.spans {
            let [compute, overhead, init, no_core, throttled, _] = span.spent.shares().map(percent);
            let loads = json!({"computing": compute, "runtime": overhead, "initialising": init,
                "waiting for a core": no_core, "throttled": throttled});
            self.counter(process, &load, span.from, &loads);
            self.counter(process, &queue, span.to, &json!({"messages": span.last.queue_messages}));
        }
        if let Some(last) = pe.spans.last() {
            let nothing = json!({"computing": 0, "runtime": 0, "initialising": 0,
                "waiting for a core": 0, "throttled": 0});
            self.counter(process, &load, last.to, &nothing);
        }
        let mut rest = pe.spans.as_slice();
        let mut entries = 0;
        while let Some(first) = rest.first() {
            let state = mostly(first);
            let same = rest.iter().take_while(|span| mostly(span) == state).count();
            let (spans, after) = rest.split_at(same);
            rest = after;
            let last = spans.last().unwrap_or(first);
            let spent =
                |of: fn(&Span<'_>) -> u64| spans.iter().map(of).fold(0, u64::saturating_add) as f64 / 1e6;
            let args = json!({
                "computing_ms": spent(|span| span.spent.compute),
                "runtime_ms": spent(|span| span.spent.overhead),
                "initialising_ms": spent(|span| span.spent.init),
                "core_wait_ms": spent(|span| span.spent.core_wait),
                "throttled_ms": spent(|span| span.spent.throttled),
                "idle_ms": spent(|span| span.spent.idle),
                "entries": last.last.entries.saturating_sub(entries),
                "last_entry": last.last.entry,
            });
            entries = last.last.entries;
            self.slice((process, pe.pe.saturating_add(1)), state, (first.from, last.to), &args);
        }
    }
}

/// The single entry methods of a PE.
struct Track {
    thread: (u32, u32),
    /// Begin and end of each, microseconds.
    slices: Vec<(i64, i64)>,
}

impl Track {
    /// The time, if it lies in a slice, and the end of that.
    fn within(&self, at: i64) -> Option<(i64, i64)> {
        let place = self.slices.partition_point(|(from, _)| *from <= at + OFF_US);
        let (from, to) = *self.slices.get(place.checked_sub(1)?)?;
        (at <= to + OFF_US).then(|| (at.clamp(from, to), to))
    }
}

/// The state in which a PE was longest.
fn mostly(span: &Span<'_>) -> &'static str {
    let spent = span.spent;
    let states = [
        (spent.idle, "idle"),
        (spent.overhead, "runtime"),
        (spent.init, "initialising"),
        (spent.throttled, "throttled"),
        (spent.core_wait, "waiting for a core"),
        (spent.compute, "computing"),
    ];
    states.into_iter().max_by_key(|(time, _)| *time).map_or("idle", |(_, name)| name)
}

/// A share in percent, to a tenth.
fn percent(share: f64) -> f64 {
    (share * 1000.0).round() / 10.0
}

/// Whole microseconds, so that a slice ends, to the bit, where the next begins: viewers stack what overlaps.
fn micros(ns: i64) -> i64 {
    ns.div_euclid(1000)
}
