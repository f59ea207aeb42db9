//! Both exports of an invented run: the picture as golden text, the trace against the rules of its format.

mod collectives;

use super::series::Series;
use super::{chart, trace, waits_of};
use runtime::monitor::collectives::{Collectives, Gathered, Stage};
use runtime::monitor::recording::{Recorded, Recorder, Recording};
use runtime::monitor::samples::{Cause, Ran, Samples, Sent};
use runtime::monitor::wire::{
    Balanced, ClockReading, MonitorEvent, NodeInfo, NodeSnapshot, OutputLine, PeSnapshot, PeState, Phase,
    RunInfo,
};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

const TENTH: u64 = 100_000_000;

fn info(node: u16) -> NodeInfo {
    let name = ["fast", "old & <slow>"][usize::from(node) - 1].into();
    NodeInfo { node, name, host: format!("host{node}"), ..NodeInfo::default() }
}

/// Initialises for a second, then computes two thirds of the time; the second PE of a node one third.
fn pe(number: u32, tenths: u64) -> PeSnapshot {
    let (init, rest) = (tenths.min(10) * TENTH, tenths.saturating_sub(10) * TENTH);
    let overhead = rest / 10;
    let compute = (rest - overhead) * 3 / 4 / (u64::from(number % 2) + 1);
    PeSnapshot {
        pe: number,
        state: PeState::Compute,
        init_ns: init,
        overhead_ns: overhead,
        compute_ns: compute,
        idle_ns: rest - overhead - compute,
        entries: tenths.saturating_sub(10) * 7 / (u64::from(number) + 1),
        queue_messages: tenths % 3,
        entry: "Rows: Pivot".into(),
        ..PeSnapshot::default()
    }
}

/// Four seconds of two nodes with two PEs; the second node began half a second after the first.
fn recording() -> Recording {
    let mut events = Vec::new();
    let mut put = |ms, event| events.push(Recorded { at: Duration::from_millis(ms), event });
    let run = RunInfo {
        run_id: "gauss-1a2b3c".into(),
        program: "metachare".into(),
        app: "gauss".into(),
        nodes: vec![info(1), info(2)],
        entry_names: vec!["Rows: Pivot".into(), "Rows: Reduce".into()],
        chare_types: vec!["Row".into()],
        ..RunInfo::default()
    };
    put(0, MonitorEvent::Run(run));
    let uptimes = vec![(1, 2 * TENTH - 1000), (2, 1000)];
    put(
        510,
        MonitorEvent::Clocks(ClockReading { asked_ns: 5 * TENTH, answered_ns: 5 * TENTH + 40_000, uptimes }),
    );
    for tenths in 1..=40 {
        for node in [1u16, 2] {
            let tenths = if node == 1 { tenths + 2 } else { tenths };
            let first = u32::from(node - 1) * 2;
            let snapshot = NodeSnapshot {
                node,
                sequence: tenths,
                uptime_ns: tenths * TENTH,
                sent_bytes: tenths * 1_000_000,
                memory_bytes: 50_000_000,
                pes: vec![pe(first, tenths), pe(first + 1, tenths)],
                ..NodeSnapshot::default()
            };
            put(505 + tenths * 100, MonitorEvent::Snapshot(snapshot));
        }
        let phase = |name: &str, done, total| {
            MonitorEvent::Phase(Phase { name: name.into(), done, total, ..Phase::default() })
        };
        match tenths {
            5 => put(1005, phase("reading", 0, 0)),
            10.. => put(505 + tenths * 100, phase("column", (tenths - 10) * 50, 2048)),
            _ => {}
        }
    }
    // PE 3 waits for what PE 0 sends 90 ms after it began, 2 s after the start of node 1.
    let ran = |pe, name, began_ns, idle_ns, cause| Ran { pe, name, began_ns, took_ns: TENTH, idle_ns, cause };
    let cause = Cause { pe: 0, number: 7, bytes: 4000 };
    let sent = vec![Sent { pe: 0, number: 7, at_ns: 20 * TENTH + 90_000_000 }];
    let of = |node, ran, sent| MonitorEvent::Samples(Samples { node, ran, sent });
    put(4200, of(1, vec![ran(0, 0, 20 * TENTH, 0, None)], sent));
    put(4200, of(2, vec![ran(3, 1, 19 * TENTH, 5 * TENTH, Some(cause))], Vec::new()));
    // Elements on PE 0 contribute within 10 ms, those on PE 3 later; the result is on PE 0.
    let gathered = |pe, stage, began_ns, took_ns| Gathered {
        pe,
        over: 77,
        number: 5,
        stage,
        began_ns,
        took_ns,
        ..Gathered::default()
    };
    let of = |node, gathered| MonitorEvent::Collectives(Collectives { node, gathered });
    let own = gathered(0, Stage::Own, 21 * TENTH, 10_000_000);
    put(4200, of(1, vec![own, gathered(0, Stage::Result, 21 * TENTH + 10_000_000, 90_000_000)]));
    put(4200, of(2, vec![gathered(3, Stage::Own, 21 * TENTH, 50_000_000)]));
    put(4500, MonitorEvent::NodeLost { node: 2, reason: "no sign of life".into() });
    put(4600, MonitorEvent::Ended { code: 69, summary: "node \"old\" was lost".into() });
    Recording { events, broken: None }
}

fn trace_of(recording: &Recording) -> Value {
    serde_json::from_str(&trace::written(&Series::of(recording))).unwrap()
}

#[test]
fn the_picture_is_as_it_was_looked_at() {
    let shown = chart::drawing(&Series::of(&recording())).svg();
    let path = format!("{}/tests/replay/run.svg", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &shown).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(wanted == shown, "{path} differs (BLESS=1 rewrites it); look at it in a browser");
}

#[test]
fn the_picture_shows_every_pe_and_every_state() {
    let shown = chart::drawing(&Series::of(&recording())).svg();
    for words in [
        "computation over time",
        "idle, of its life",
        "entry methods run",
        "seconds since the start",
        ">column<",
        "old &amp; &lt;slow&gt; on host2, lost at ",
        "failed with code 69: node &quot;old&quot; was lost",
    ] {
        assert!(shown.contains(words), "{words}");
    }
}

/// A time of an event, nanoseconds.
fn ns(event: &Value, key: &str) -> i64 {
    (event[key].as_f64().unwrap_or_else(|| panic!("{key} of {event}")) * 1e3).round() as i64
}

/// The rules of the trace event format, for the kinds of events that are used: "Trace Event Format" (Google, 2016), its
/// sections on the JSON object format, on complete, counter, instant and metadata events.
fn check(trace: &Value) {
    let of_object = ["traceEvents", "displayTimeUnit", "otherData"];
    assert!(trace.as_object().unwrap().keys().all(|key| of_object.contains(&key.as_str())));
    assert!(["ms", "ns"].contains(&trace["displayTimeUnit"].as_str().unwrap()));
    let events = trace["traceEvents"].as_array().unwrap();
    assert!(!events.is_empty());
    let mut named: HashSet<(&str, u64, u64)> = HashSet::new();
    let (mut slices, mut counters) = (HashMap::new(), HashMap::new());
    for event in events {
        let name = event["name"].as_str().unwrap();
        let args = event["args"].as_object().unwrap();
        let id = |of: &str| event[of].as_u64().unwrap_or_else(|| panic!("{of} of {event}"));
        let (process, thread) = (id("pid"), id("tid"));
        assert!(process != thread, "Perfetto shows it first, as the main thread: {event}");
        assert!(process > 0 && [process, thread].iter().all(|id| *id <= u64::from(u32::MAX)), "{event}");
        let time = || Some(ns(event, "ts")).filter(|at| *at >= 0).unwrap_or_else(|| panic!("ts of {event}"));
        let own: &[&str] = match event["ph"].as_str().unwrap() {
            "M" => {
                let key = match name {
                    "process_name" | "thread_name" => "name",
                    "process_sort_index" => "sort_index",
                    "process_labels" => "labels",
                    other => panic!("{other} is no metadata: {event}"),
                };
                assert!(args.len() == 1 && (args[key].is_string() || args[key].is_u64()), "{event}");
                assert!(named.insert((name, process, thread)), "said twice: {event}");
                &[]
            }
            "X" => {
                let length = Some(ns(event, "dur")).filter(|length| *length >= 0).unwrap();
                assert!(event["cat"].is_string(), "{event}");
                slices.entry((process, thread)).or_insert_with(Vec::new).push([time(), time() + length]);
                &["cat", "ts", "dur"]
            }
            "C" => {
                assert!(args.values().all(|value| value.as_f64().is_some_and(f64::is_finite)), "{event}");
                let series: Vec<&String> = args.keys().collect();
                let track = counters.entry((process, name)).or_insert_with(|| (series.clone(), i64::MIN));
                assert!(track.0 == series && track.1 <= time(), "another series or order: {event}");
                track.1 = time();
                &["ts"]
            }
            "b" | "e" => {
                assert!(time() >= 0 && thread == 0 && event["id2"]["local"].is_string(), "{event}");
                &["cat", "ts", "id2"]
            }
            "s" => &["cat", "ts", "id"],
            "f" => &["cat", "ts", "id", "bp"],
            "i" => {
                assert!(["g", "p", "t"].contains(&event["s"].as_str().unwrap()), "{event}");
                assert!(time() >= 0);
                &["ts", "s"]
            }
            other => panic!("{other} is not used: {event}"),
        };
        let allowed = |key: &&String| {
            ["ph", "name", "pid", "tid", "args"].contains(&key.as_str()) || own.contains(&key.as_str())
        };
        assert_eq!(event.as_object().unwrap().keys().find(|key| !allowed(key)), None, "{event}");
        // Names come first, so that a viewer that reads once knows them.
        assert!(named.contains(&("process_name", process, 0)), "no process has that number: {event}");
        let is_on_thread = event["ph"] == "X" || event["ph"] == "i";
        assert!(
            !is_on_thread || named.contains(&("thread_name", process, thread)),
            "no such thread: {event}"
        );
    }
    check_arrows(events);
    // Slices of a thread that overlap must lie within each other; these come in order and do not overlap.
    for (thread, slices) in &slices {
        assert!(slices.windows(2).all(|pair| pair[0][1] <= pair[1][0]), "{thread:?}: {slices:?}");
    }
}

/// Arrows have two ends, the second not before the first, and each is in a slice, or viewers do not draw it.
fn check_arrows(events: &[Value]) {
    let on = |event: &Value| (event["pid"].as_u64(), event["tid"].as_u64());
    let is_in_slice = |end: &Value| {
        let at = ns(end, "ts");
        events.iter().filter(|event| event["ph"] == "X" && on(event) == on(end)).any(|slice| {
            let (from, length) = (ns(slice, "ts"), ns(slice, "dur"));
            (from..from + length).contains(&at)
        })
    };
    let mut arrows: HashMap<u64, [Option<i64>; 2]> = HashMap::new();
    for end in events.iter().filter(|event| event["ph"] == "s" || event["ph"] == "f") {
        assert!(is_in_slice(end), "{end}");
        let ends = arrows.entry(end["id"].as_u64().unwrap()).or_default();
        assert!(ends[usize::from(end["ph"] == "f")].replace(ns(end, "ts")).is_none(), "{end}");
    }
    assert!(arrows.values().all(|[begin, end]| begin.is_some() && begin <= end), "{arrows:?}");
}

#[test]
fn the_trace_obeys_the_rules_of_its_format() {
    check(&trace_of(&recording()));
}

#[test]
fn the_trace_has_a_process_for_each_node_and_a_thread_for_each_pe() {
    let trace = trace_of(&recording());
    let events = trace["traceEvents"].as_array().unwrap();
    let named = |what: &str| -> BTreeMap<(u64, u64), &str> {
        let named = events.iter().filter(|event| event["name"] == what);
        let id = |event: &Value| (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        named.map(|event| (id(event), event["args"]["name"].as_str().unwrap())).collect()
    };
    let processes: Vec<_> = named("process_name").into_values().collect();
    assert_eq!(processes, ["run gauss-1a2b3c", "node fast", "node old & <slow>"]);
    let threads: Vec<_> = named("thread_name").into_iter().collect();
    assert_eq!(
        threads,
        [
            ((1_000_000, 1), "phases"),
            ((1_000_001, 1), "PE 0"),
            ((1_000_001, 2), "PE 1"),
            ((1_000_001, 100_000), "PE 0 entry methods"),
            ((1_000_002, 3), "PE 2"),
            ((1_000_002, 4), "PE 3"),
            ((1_000_002, 100_003), "PE 3 entry methods")
        ]
    );
    let slices: Vec<&str> = events
        .iter()
        .filter(|event| event["ph"] == "X" && event["pid"] == 1_000_001 && event["tid"] == 1)
        .map(|event| event["name"].as_str().unwrap())
        .collect();
    assert_eq!(slices[..2], ["initialising", "computing"]);
    let phases: Vec<&Value> =
        events.iter().filter(|event| event["ph"] == "X" && event["pid"] == 1_000_000).collect();
    assert_eq!((&phases[0]["name"], &phases[1]["name"]), (&"reading".into(), &"column".into()));
    assert_eq!(phases[1]["args"]["done"], 1500);
}

#[test]
fn a_message_is_an_arrow_from_the_entry_method_that_sent_it_to_the_one_that_it_started() {
    let trace = trace_of(&recording());
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |kind: &str, on: u64| {
        let is_it = |event: &&Value| event["ph"] == kind && event["tid"] == on;
        events.iter().find(is_it).unwrap_or_else(|| panic!("{kind} on {on}"))
    };
    let (sender, receiver) = (of("X", 100_000), of("X", 100_003));
    assert_eq!((&sender["name"], &receiver["name"]), (&"Rows: Pivot".into(), &"Rows: Reduce".into()));
    assert_eq!(receiver["args"]["waited_ms"], 500.0);
    let (begin, end) = (of("s", 100_000), of("f", 100_003));
    assert_eq!((&begin["id"], &begin["args"]["bytes"]), (&end["id"], &4000.into()));
    assert_eq!(ns(begin, "ts"), ns(sender, "ts") + 90_000_000);
    assert_eq!(end["ts"], receiver["ts"]);
    let [(all, first), (_, second), (_, third)] = &waits_of(&recording()).path[..] else {
        panic!("three links")
    };
    assert!((0.49..0.51).contains(all), "{all}");
    assert_eq!(first, "Rows: Reduce on PE 3 (old & <slow>)");
    assert_eq!(second, "Rows: Pivot on PE 0 (fast)");
    assert_eq!(third, "messages from PE 0 (fast) to PE 3 (old & <slow>)");
}

/// PE 0 runs two calls that are told of, and sleeps in between for its share, as its counters say.
#[test]
fn what_kept_a_pe_from_its_core_between_two_calls_is_on_the_critical_path() {
    let mut recording = recording();
    for event in &mut recording.events {
        if let MonitorEvent::Snapshot(NodeSnapshot { node: 1, pes, .. }) = &mut event.event {
            (pes[0].throttled_ns, pes[0].idle_ns) = (pes[0].idle_ns, 0);
        }
    }
    let ran = vec![Ran { pe: 0, name: 1, began_ns: 30 * TENTH, took_ns: TENTH, ..Ran::default() }];
    let event = MonitorEvent::Samples(Samples { node: 1, ran, sent: Vec::new() });
    recording.events.push(Recorded { at: Duration::from_millis(4700), event });
    let path = waits_of(&recording).path;
    let part = |what: &str| path.iter().find(|(_, said)| said == what).map_or(0.0, |(part, _)| *part);
    // 0.9 of 1.1 s lie between the calls, with nine of forty parts asleep.
    let asleep = part("PE 0 (fast) was held back by its cpu_share");
    let worked = part("short entry methods, or the runtime, on PE 0 (fast)");
    assert!(
        (asleep - 0.9 / 1.1 * 0.225).abs() < 0.01 && (worked - 0.9 / 1.1 * 0.775).abs() < 0.01,
        "{path:?}"
    );
}

#[test]
fn a_phase_whose_end_is_foretold_anew_is_one_slice() {
    let mut recording = recording();
    let (mut expected, mut percents) = (100, Vec::new());
    for event in &mut recording.events {
        if let MonitorEvent::Phase(phase) = &mut event.event
            && phase.name == "column"
        {
            expected += 7;
            percents.push((phase.done as f64 / (phase.done + expected) as f64 * 1000.0).round() / 10.0);
            (phase.total, phase.is_forecast) = (phase.done + expected, true);
            phase.detail = format!("off by {expected}");
        }
    }
    let trace = trace_of(&recording);
    check(&trace);
    let events = trace["traceEvents"].as_array().unwrap();
    let phases: Vec<&Value> =
        events.iter().filter(|event| event["ph"] == "X" && event["pid"] == 1_000_000).collect();
    assert_eq!((phases.len(), &phases[1]["name"]), (2, &"column".into()));
    let args = &phases[1]["args"];
    assert_eq!((&args["done"], &args["total"]), (&1500.into(), &(1500 + expected).into()));
    assert_eq!(args["detail"], format!("off by {expected}"));
    let progress = events.iter().filter(|event| event["name"] == "progress");
    assert!(progress.map(|event| event["args"]["percent"].as_f64().unwrap()).eq(percents));
}

/// It is told when it is made, and again when it is known what came of it.
#[test]
fn a_decision_to_move_chares_is_one_instant_with_what_was_expected_and_found() {
    let mut recording = recording();
    let run = recording.events[0].event.clone();
    let MonitorEvent::Run(run) = run else { panic!("a recording begins with the run") };
    let decision = |at_s, after| Balanced {
        at_s,
        by: "refine".into(),
        moves: 12,
        bytes: 4096,
        before: 1.5,
        expected: 1.1,
        after,
    };
    let mut put = |ms, balanced| {
        let event = MonitorEvent::Run(RunInfo { balanced, ..run.clone() });
        recording.events.push(Recorded { at: Duration::from_millis(ms), event });
    };
    put(2001, vec![decision(2.0, None)]);
    put(3001, vec![decision(2.0, Some(1.2)), decision(3.0, None)]);
    recording.events.sort_by_key(|recorded| recorded.at);
    let trace = trace_of(&recording);
    check(&trace);
    let events = trace["traceEvents"].as_array().unwrap();
    let instants: Vec<&Value> = events.iter().filter(|event| event["name"] == "chares move").collect();
    assert_eq!(instants.len(), 2, "{instants:?}");
    let args = &instants[0]["args"];
    assert_eq!((&args["by"], &args["moves"], &args["bytes"]), (&"refine".into(), &12.into(), &4096.into()));
    let found = [&args["imbalance before"], &args["expected"], &args["found"], &instants[1]["args"]["found"]];
    assert_eq!(found, [&1.5.into(), &1.1.into(), &1.2.into(), &Value::Null]);
    // Both nodes began behind the recording, so that its time is that of the trace.
    let times: Vec<i64> = instants.iter().map(|event| ns(event, "ts")).collect();
    assert_eq!(times, [2_000_000_000, 3_000_000_000]);
}

#[test]
fn all_nodes_are_on_one_clock() {
    let trace = trace_of(&recording());
    let events = trace["traceEvents"].as_array().unwrap();
    let end = events.iter().find(|event| event["name"] == "ended").unwrap();
    let end = ns(end, "ts");
    let length = |event: &Value| if event["ph"] == "X" { ns(event, "dur") } else { 0 };
    let timed = events.iter().filter(|event| event["ph"] != "M");
    let mut ends = timed.map(|event| ns(event, "ts") + length(event));
    assert!(ends.all(|at| at <= end), "nothing is after the end");
    let first = |process: u64| {
        let events = trace["traceEvents"].as_array().unwrap().iter();
        let slices = events.filter(|event| event["ph"] == "X" && event["pid"] == process);
        slices.map(|event| event["ts"].as_f64().unwrap()).fold(f64::INFINITY, f64::min)
    };
    // Asked at 500 ms and answered 40 us later, when they were 199.999 and 0.001 ms old.
    let between = first(1_000_002) - first(1_000_001);
    assert!((between - 199_998.0).abs() <= 1.0, "{between}");
    let precision = &trace["otherData"]["clock_precision_us"];
    assert_eq!((&precision["fast"], &precision["old & <slow>"]), (&20.0.into(), &20.0.into()));
}

#[test]
fn times_that_cannot_be_break_nothing() {
    let mut events = recording().events;
    for (number, event) in events.iter_mut().enumerate() {
        if let MonitorEvent::Snapshot(snapshot) = &mut event.event {
            snapshot.uptime_ns = [u64::MAX, 0, snapshot.uptime_ns][number % 3];
            for pe in &mut snapshot.pes {
                (pe.compute_ns, pe.entries, pe.pe) = (u64::MAX, u64::MAX - number as u64, u32::MAX);
            }
        }
    }
    let recording = Recording { events, broken: None };
    check(&trace_of(&recording));
    assert!(chart::drawing(&Series::of(&recording)).svg().ends_with("</svg>\n"));
    let nothing = Recording { events: recording.events[..1].to_vec(), broken: None };
    check(&trace_of(&nothing));
    assert!(chart::drawing(&Series::of(&nothing)).svg().contains("0 PEs on 0 nodes"));
}

/// A short recording as a file, with every kind of event.
fn file() -> Vec<u8> {
    let whole = recording().events;
    let is_kept = |at: &usize| *at < 6 || *at > whole.len() - 10;
    let mut bytes = Vec::new();
    let mut recorder = Recorder::begin(&mut bytes).unwrap();
    let line = OutputLine { node: 1, is_error: true, text: "out \u{1b}[31mof\u{1b}[0m paper".into() };
    recorder.take(Duration::ZERO, &whole[0].event).unwrap();
    recorder.take(Duration::ZERO, &MonitorEvent::Output(line)).unwrap();
    recorder.take(Duration::ZERO, &MonitorEvent::Dropped(3)).unwrap();
    for at in (1..whole.len()).filter(is_kept) {
        recorder.take(whole[at].at, &whole[at].event).unwrap();
    }
    drop(recorder);
    bytes
}

/// Where records begin, after the header: eight bytes of length and sum come before what they hold.
fn records(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    let mut place = 12;
    while let Some(head) = bytes.get(place..place + 4) {
        let length = u32::from_le_bytes(head.try_into().unwrap()) as usize;
        all.push((place, length));
        place += 8 + length;
    }
    all
}

/// Changes some bytes, or drops, repeats or moves some.
fn mutate(bytes: &mut Vec<u8>, below: &mut impl FnMut(usize) -> usize) {
    for _ in 0..=below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = below(bytes.len());
        let end = (at + below(12)).min(bytes.len());
        match below(5) {
            0 => bytes[at] = u8::try_from(below(256)).unwrap(),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][below(5)],
            2 => drop(bytes.drain(at..end)),
            3 => bytes.extend_from_within(at..end),
            _ => bytes.insert(at, [0, 0x80, 0xff][below(3)]),
        }
    }
}

#[test]
fn mutated_recordings_give_a_sentence_or_what_can_be_shown_of_them() {
    let mut random = runtime::proto::sim::Random::new(1995);
    let mut below = |count: usize| (random.bits() % count as u64) as usize;
    let good = file();
    let places = records(&good);
    let (mut read, mut refused) = (0, 0);
    for case in 0..10_000 {
        let mut bytes = good.clone();
        if case % 2 == 0 {
            mutate(&mut bytes, &mut below);
        } else {
            // A record that somebody forged: its length and sum are right, what it holds is not.
            let (place, length) = places[below(places.len())];
            let mut held = good[place + 8..place + 8 + length].to_vec();
            mutate(&mut held, &mut below);
            let sum = held
                .iter()
                .fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
            let length_now = u32::try_from(held.len()).unwrap().to_le_bytes();
            let record = [&length_now[..], &sum.to_le_bytes(), &held].concat();
            bytes.splice(place..place + 8 + length, record);
        }
        match Recording::read(&mut bytes.as_slice()) {
            Ok(recording) => {
                read += 1;
                assert!(recording.events.len() <= places.len() + 4, "case {case}");
                let series = Series::of(&recording);
                let (picture, trace) = (chart::drawing(&series).svg(), trace::written(&series));
                assert!(
                    picture.len() < 1 << 20 && trace.len() < 1 << 20,
                    "case {case}: from {} bytes",
                    bytes.len()
                );
                assert!(!picture.contains("NaN") && !picture.contains("inf"), "case {case}");
                assert!(serde_json::from_str::<Value>(&trace).is_ok(), "case {case}");
                if case % 16 < 2 {
                    let at = recording.duration();
                    let shown =
                        tui::Still::of_moment(recording, at, &tui::WindowOptions::default()).text(100, 30);
                    assert!(!shown.contains('\u{1b}'), "case {case}");
                }
            }
            Err(error) => {
                refused += 1;
                let sentence = error.to_string();
                assert!(!sentence.is_empty() && !sentence.contains('\n'), "case {case}: {sentence}");
            }
        }
    }
    assert!(read > 1000 && refused > 100, "{read} read, {refused} refused");
}
