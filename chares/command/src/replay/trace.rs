//! A recording in the trace event format that Perfetto and Chrome's `about:tracing` open: a process for each node, a
//! thread for each PE, all on the launcher's clock.
//!
//! Format: "Trace Event Format" (Google, 2016), its JSON object form, with metadata, complete, counter, instant and flow
//! events, and asynchronous ones; times are microseconds, exact to the nanosecond. PE `p` is thread `p + 1`, for 0 means the idle process to viewers.
//! The entry methods that are told of one by one have a thread of their own beside that of their PE, and messages are arrows
//! between these. Reductions, exchanges and broadcasts overlap, so that they are asynchronous events: of the run from the first
//! contribution to the result or from who sent to the last who got it, and of each PE for its own part. Processes have numbers far from those of threads: Perfetto takes
//! a thread with the number of its process for the main one, and shows it first.

use super::sampled::Sampled;
use super::series::{NodeSeries, PeSeries, Series, Span};
use runtime::monitor::critical_path::Call;
use runtime::monitor::samples::Cause;
use runtime::monitor::wire::Balanced;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

/// The process of the run; node `n` of it is the process `RUN + n`.
const RUN: u32 = 1_000_000;
/// The thread of its phases, and of what happens to all of it.
const PHASES: (u32, u32) = (RUN, 1);
/// The thread of the single entry methods of PE `p` is `CALLS + p`, as far as numbers of processes do not follow.
const CALLS: u32 = 100_000;
/// PEs from this number on have no such thread.
const CALLS_MAX: u32 = 800_000;

/// A message is told to have left so much after what sent it, or before, nanoseconds: these look at the clock one after the other.
const OFF_NS: i64 = 2000;

/// The trace, one event a line.
pub(crate) fn written(series: &Series<'_>) -> String {
    let mut trace = Trace { text: String::new() };
    trace.of_run(series);
    series.nodes.iter().for_each(|node| trace.of_node(node));
    trace.of_calls(series);
    trace.of_collectives(series);
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
            "ts": micros(from), "dur": micros(to - from), "args": args}));
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
        let processes = processes(series);
        let mut tracks: BTreeMap<u32, Track> = BTreeMap::new();
        for call in calls {
            let Some(&process) = processes.get(&call.pe).filter(|_| call.pe < CALLS_MAX) else { continue };
            let track = tracks.entry(call.pe).or_insert_with(|| {
                let thread = (process, CALLS + call.pe);
                self.name("thread_name", thread.0, thread.1, &format!("PE {} entry methods", call.pe));
                Track { thread, slices: Vec::new() }
            });
            let Some(slice) = track.put(call) else { continue };
            let name = series.run.entry_names.get(usize::from(call.name)).map_or("?", String::as_str);
            let args = json!({"waited_ms": call.waited as f64 / 1e6});
            self.slice(track.thread, name, slice, &args);
        }
        let mut number = 0_u64;
        for call in calls {
            let left = |cause: Cause| Some((cause, sent.get(&(cause.pe, cause.number))?));
            let Some((cause, left)) = call.cause.and_then(left) else { continue };
            let (Some(from), Some(to)) = (tracks.get(&cause.pe), tracks.get(&call.pe)) else { continue };
            // Both ends lie in slices; what sent the message may not be told of.
            let (Some((begin, sender)), Some((end, receiver))) = (from.within(*left), to.of(call)) else {
                continue;
            };
            // Clocks may be off by more than a message took. Viewers take the slice that begins first for the one that sent it.
            let end = end.max(begin);
            if end >= receiver.1 || receiver.0 < sender.0 {
                continue;
            }
            number += 1;
            let args = json!({"bytes": cause.bytes});
            self.put(
                &json!({"ph": "s", "cat": "message", "name": "message", "id": number, "pid": from.thread.0,
                "tid": from.thread.1, "ts": micros(begin), "args": args}),
            );
            self.put(&json!({"ph": "f", "bp": "e", "cat": "message", "name": "message", "id": number,
                "pid": to.thread.0, "tid": to.thread.1, "ts": micros(end), "args": args}));
        }
    }

    /// Reductions, exchanges and broadcasts that are told of one by one, and what each PE had to do with them.
    fn of_collectives(&mut self, series: &Series<'_>) {
        let (mut number, processes) = (0_u64, processes(series));
        for one in &series.collectives {
            let name = one.of.told(&series.run);
            let args = json!({"number": one.number, "last_pe": one.last()});
            number += 1;
            self.asynchronous(number, RUN, &name, (one.from, one.to), &args);
            for part in &one.parts {
                let Some(&process) = processes.get(&part.pe) else { continue };
                let what = if part.is_own { "" } else { " from others" };
                let name = format!("{name}, PE {}{what}", part.pe);
                let args = json!({"number": one.number});
                number += 1;
                self.asynchronous(number, process, &name, (part.from, part.to), &args);
            }
        }
    }

    /// What may overlap others of its kind. Its number is of its process, or viewers would not show it there.
    fn asynchronous(&mut self, id: u64, process: u32, name: &str, (from, to): (i64, i64), args: &Value) {
        for (kind, at) in [("b", from), ("e", to.max(from))] {
            self.put(
                &json!({"ph": kind, "cat": "collective", "id2": {"local": id.to_string()}, "name": name, "pid": process, "tid": 0,
                "ts": micros(at), "args": args}),
            );
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

/// From when to when a slice is, nanoseconds.
type Slice = (i64, i64);

/// The single entry methods of a PE.
struct Track {
    thread: (u32, u32),
    /// One after the other, each with when its call began.
    slices: Vec<(i64, Slice)>,
}

impl Track {
    /// The slice of the next call. It begins no sooner than the one before it ended, whatever a recording says, and has a length:
    /// viewers would put one without under the next.
    fn put(&mut self, call: &Call) -> Option<Slice> {
        let before = self.slices.last().map_or(0, |(_, (_, end))| *end);
        let from = call.from.max(before);
        if from > call.to {
            return None;
        }
        let slice = (from, call.to.max(from + 1));
        self.slices.push((call.from, slice));
        Some(slice)
    }

    /// Where the slice of a call begins, and that slice, if it has one.
    fn of(&self, call: &Call) -> Option<(i64, Slice)> {
        let place = self.slices.partition_point(|(from, _)| *from < call.from);
        let (_, slice) = self.slices.get(place).filter(|(from, _)| *from == call.from)?;
        Some((slice.0, *slice))
    }

    /// The time, and the slice in which it lies, or next to which: what is at the end of one belongs to the next for viewers.
    fn within(&self, at: i64) -> Option<(i64, Slice)> {
        let next = self.slices.partition_point(|(_, (from, _))| *from <= at);
        let before = next.checked_sub(1).and_then(|place| self.slices.get(place));
        let is_near = |slice: &Slice| slice.0 - OFF_NS <= at && at <= slice.1 + OFF_NS;
        let [before, after] =
            [before, self.slices.get(next)].map(|slice| slice.map(|(_, slice)| *slice).filter(is_near));
        // One that has ended by then is as good as the next one, which has not begun.
        let slice = before.filter(|slice| at <= slice.1).or(after).or(before)?;
        Some((at.clamp(slice.0, slice.1 - 1), slice))
    }
}

/// The process of each PE: that of its node. Where several nodes tell of a PE, the first counts.
fn processes(series: &Series<'_>) -> HashMap<u32, u32> {
    let pes = series.nodes.iter().rev().flat_map(|node| node.pes.iter().map(move |pe| (pe.pe, node.node)));
    pes.map(|(pe, node)| (pe, RUN + u32::from(node))).collect()
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

/// Microseconds, exact to the nanosecond for a hundred days.
fn micros(ns: i64) -> f64 {
    ns as f64 / 1e3
}
