//! `report`: what a run has spent its time on, from its report or its recording, as text or as a page for a browser.

mod causes;
mod page;
mod shares;
mod stops;
mod text;

use super::replay::{self, Waits};
use super::report::{Report, Sources};
use super::{output, say};
use crate::named_file::NamedFile;
use chares::Timeline;
use clap::{Arg, ArgMatches, Command, value_parser};
use runtime::failure::{Failure, Kind};
use runtime::monitor::recording::{MAGIC, Recording};
use runtime::monitor::ways::Way;
use runtime::monitor::wire::{MonitorEvent, NodeSnapshot, RunInfo};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Lines of a list at most.
const LINES: usize = 12;
/// What PEs spend their time on, as reports name it, in words, and as a colour.
const REASONS: [(&str, &str, &str); 7] = [
    ("compute", "compute", "#2e8b57"),
    ("overhead", "runtime", "#a03c8c"),
    ("core_wait", "no core", "#c0392b"),
    ("quota", "quota", "#d98880"),
    ("throttled", "share", "#e67e22"),
    ("network", "network", "#5b8db8"),
    ("idle", "idle", "#f2dfa8"),
];
/// Smaller parts of the critical path are left out.
const PATH_LEAST: f64 = 0.001;
/// What is said of a report that is not of a recording.
const NOT_RECORDED: &str =
    "a recording of the run (--record FILE) would tell what PEs waited for, and its critical path";
/// What a report of a run says of itself.
const SCHEMA: &str = "metachare-run/1";

pub(crate) fn command() -> Command {
    let file = |name: &'static str| Arg::new(name).value_parser(value_parser!(PathBuf));
    Command::new("report")
        .about("Say what a run spent its time on, from its report or its recording")
        .arg(
            file("file")
                .value_name("FILE")
                .required(true)
                .help("What `run --report FILE` or `run --record FILE` wrote"),
        )
        .arg(
            file("html").long("html").value_name("FILE").help(
                "Write it as one page for a browser; of a recording with a picture of each PE over time",
            ),
        )
}

pub(crate) fn report(matches: &ArgMatches) -> Result<u8, Failure> {
    let path = matches.get_one::<PathBuf>("file").map_or(Path::new(""), PathBuf::as_path);
    let name = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::new(Kind::NoInput, format!("{name} cannot be read: {error}")))?;
    let wrong = |why: String| Failure::new(Kind::Input, format!("{name} is no report of a run: {why}"));
    let html = matches.get_one::<PathBuf>("html");
    let written = html.map(|html| NamedFile::written("--html", html));
    output::check_files(
        &written.into_iter().chain([NamedFile::read("the report", path)]).collect::<Vec<_>>(),
    )?;
    let mut chart = None;
    let mut report = if bytes.starts_with(&MAGIC) {
        let recording = Recording::read(&mut bytes.as_slice()).map_err(|error| wrong(error.to_string()))?;
        replay::warn_if_broken(&recording, path);
        chart = html.map(|_| replay::chart_of(&recording));
        let mut report = of_recording(&recording).map_err(|error| wrong(error.to_string()))?;
        put_waits(&mut report, &replay::waits_of(&recording));
        report["incomplete"] = json!(recording.broken.as_ref().map(ToString::to_string));
        report
    } else {
        let report: Value = serde_json::from_slice(&bytes)
            .map_err(|error| wrong(format!("{error}; give it the FILE of --report or of --record")))?;
        if report["schema"] != SCHEMA {
            return Err(wrong(format!("it does not say \"schema\": \"{SCHEMA}\"")));
        }
        report
    };
    count_init(&mut report);
    match html {
        Some(html) => output::write("page", html, page::page(&report, chart.as_deref()))?,
        None => say(&text::text(&report))?,
    }
    Ok(0)
}

/// The report of a run that was recorded, as far as its last counters say it; the whole run counts as its timed part.
fn of_recording(recording: &Recording) -> serde_json::Result<Value> {
    let (mut info, mut last) = (RunInfo::default(), BTreeMap::<u16, NodeSnapshot>::new());
    let (mut exit_code, mut error, mut remarks) = (0, None, Vec::new());
    for recorded in &recording.events {
        match &recorded.event {
            MonitorEvent::Run(run) => info = run.clone(),
            MonitorEvent::Snapshot(snapshot) => {
                let before = last.remove(&snapshot.node);
                last.insert(snapshot.node, snapshot.clone().after(before));
            }
            MonitorEvent::Remark(remark) => remarks.push(remark.text.clone()),
            MonitorEvent::Ended { code, summary } => {
                exit_code = u8::try_from(*code).unwrap_or(u8::MAX);
                error = (*code != 0).then(|| summary.clone());
            }
            _ => {}
        }
    }
    let mut timeline = Timeline::new(Instant::now());
    timeline.remarks = remarks;
    timeline.end = last.into_values().collect();
    timeline.set_after(timeline.end.clone());
    timeline.speed_source = speed_source(&info);
    let sources = Sources { info: &info, version: "", arguments: Value::Null, exit_code, error };
    let mut report = serde_json::to_value(Report::new(sources, &timeline))?;
    // Of shares a recording has those of nodes.
    for (node, info) in report["nodes"].as_array_mut().into_iter().flatten().zip(&info.nodes) {
        node["share"] = json!(info.share);
    }
    Ok(report)
}

/// Where speeds came from, as far as they show it themselves.
fn speed_source(info: &RunInfo) -> Option<&'static str> {
    if info.nodes.iter().any(|node| !node.pe_parts.is_empty()) {
        return Some("measured");
    }
    let mut speeds = info.nodes.iter().flat_map(|node| &node.pe_speeds);
    let first = speeds.next()?;
    speeds.all(|speed| speed.to_bits() == first.to_bits()).then_some("equal")
}

/// Where no part of a run was timed, what PEs computed before the program said `init_over` is a part of the whole like all else:
/// many programs never say it.
fn count_init(report: &mut Value) {
    if !report["timed_s"].is_null() {
        return;
    }
    let add = |of: &mut Value| {
        if let Some(init_s) = of["init_s"].as_f64() {
            of["compute_s"] = json!(of["compute_s"].as_f64().unwrap_or(0.0) + init_s);
        }
    };
    for node in report["nodes"].as_array_mut().into_iter().flatten() {
        add(node);
        node["pes"].as_array_mut().into_iter().flatten().for_each(add);
    }
}

/// Percent of the time of a node's PEs that they spent on each of [`REASONS`]. Of being idle the network is a part; only
/// recordings tell it, and not of all nodes.
fn percents_of(node: &Value) -> [Option<f64>; REASONS.len()] {
    let of = |reason: &str| node[format!("{reason}_s")].as_f64();
    let seconds = REASONS.map(|(reason, ..)| match reason {
        "idle" => Some(of("idle").unwrap_or(0.0) - of("network").unwrap_or(0.0)),
        "network" => of("network"),
        _ => Some(of(reason).unwrap_or(0.0)),
    });
    let all: f64 = seconds.iter().flatten().sum();
    seconds.map(|part| part.map(|part| if all > 0.0 { 100.0 * part / all } else { 0.0 }))
}

/// A percentage for people.
fn percent(percent: Option<f64>) -> String {
    percent.map_or_else(|| "-".into(), |percent| format!("{percent:.1}"))
}

/// What the PEs of a recorded run waited for, as the texts and pages want it.
fn put_waits(report: &mut Value, waits: &Waits) {
    for node in report["nodes"].as_array_mut().into_iter().flatten() {
        let on_way = |pe: &Value| {
            let number = pe["pe"].as_u64().and_then(|number| u32::try_from(number).ok())?;
            Some(pe["idle_s"].as_f64()? * waits.on_way.get(&number)?)
        };
        let known: Vec<f64> = list(&node["pes"]).iter().filter_map(on_way).collect();
        node["network_s"] = json!((!known.is_empty()).then(|| known.iter().sum::<f64>()));
    }
    let part = |(part, what): &(f64, String)| json!({"part": part, "what": what});
    let path = waits.path.iter().filter(|(part, _)| *part >= PATH_LEAST);
    report["critical_path"] = path.map(part).collect();
    let way = |(nodes, way): &([String; 2], Way)| json!({"nodes": nodes, "ms": way.ns as f64 / 1e6});
    report["ways"] = waits.ways.iter().map(way).collect();
    let collectives = waits.collectives.iter().map(|one| {
        let last = one
            .last
            .as_ref()
            .map(|(pe, node, [last, of])| json!({"pe": pe, "node": node, "last": last, "of": of}));
        json!({"what": one.what, "told": one.told, "mean_s": one.mean_s, "most_s": one.most_s, "last": last})
    });
    report["collectives"] = collectives.collect();
    let Waits { under_way, driver, in_turn, said, .. } = waits;
    report["waits"] = json!({"under_way": under_way, "driver": driver, "in_turn": in_turn, "said": said});
}

fn name_of(value: &Value) -> String {
    runtime::monitor::text::clean_line(value.as_str().unwrap_or("?"), 60)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::monitor::profile::{EntryTime, Profile, SentTo, SlowestCall};
    use runtime::monitor::recording::Recorded;
    use runtime::monitor::wire::{Balanced, NodeInfo, PeSnapshot, Slowdown};
    use std::time::Duration;

    const S: u64 = 1_000_000_000;

    /// A run in which one node computes and the other waits for its core.
    fn recording() -> Recording {
        let node = |node: u16, name: &str| NodeInfo {
            node,
            name: name.into(),
            first_pe: u32::from(node) - 1,
            pe_count: 1,
            ..NodeInfo::default()
        };
        let decision = Balanced { at_s: 2.5, moves: 7, before: 1.8, expected: 1.05, ..Balanced::default() };
        let slow =
            Slowdown { node: 2, since_s: 12.0, delivered: 0.2, is_of_speed: true, ..Slowdown::default() };
        let run = RunInfo {
            app: "gauss".into(),
            run_id: "gauss-1".into(),
            nodes: vec![node(1, "fast"), node(2, "old")],
            entry_names: vec!["Row: Pivot".into(), "Row: (constructor)".into()],
            balance: "refine".into(),
            balanced: vec![decision],
            slowdowns: vec![slow],
            ..RunInfo::default()
        };
        let profile = |node: u16| Profile {
            at_ns: 9 * S,
            entries: vec![EntryTime {
                name: 0,
                calls: 100,
                ns: u64::from(node) * S,
                slowest: SlowestCall {
                    ns: u64::from(node) * S / 10,
                    at_ns: 8 * S,
                    pe: 1,
                    element: "[4]".into(),
                },
            }],
            sent_to: vec![SentTo { node: 3 - node, messages: 10, bytes: u64::from(node) * 3_000_000 }],
            chares: Vec::new(),
        };
        let snapshot = |node: u16, profile| {
            let (compute_ns, core_wait_ns) = if node == 1 { (9 * S, 0) } else { (2 * S, 6 * S) };
            let pe = PeSnapshot {
                pe: u32::from(node) - 1,
                compute_ns,
                core_wait_ns,
                idle_ns: S,
                chares: 5,
                ..PeSnapshot::default()
            };
            MonitorEvent::Snapshot(NodeSnapshot {
                node,
                uptime_ns: 10 * S,
                pes: vec![pe],
                profile,
                ..NodeSnapshot::default()
            })
        };
        let events = [
            MonitorEvent::Run(run),
            snapshot(1, Some(profile(1))),
            snapshot(2, Some(profile(2))),
            snapshot(2, None),
            MonitorEvent::Ended { code: 0, summary: "finished".into() },
        ];
        let events = (0..).zip(events).map(|(at, event)| Recorded { at: Duration::from_secs(at), event });
        Recording { events: events.collect(), broken: None }
    }

    #[test]
    fn a_recording_says_where_the_time_went() {
        let report = of_recording(&recording()).unwrap();
        let said = text::text(&report);
        let line = |beginning: &str| {
            let line = said.lines().find(|line| line.trim_start().starts_with(beginning)).unwrap_or_default();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("gauss"), "gauss gauss-1, started 1970-01-01T00:00:00Z");
        assert!(line("31.6").contains("67% of its time the PEs of old waited for their cores"), "{said}");
        assert_eq!(line("fast "), "fast 1 90.0 0.0 0.0 0.0 0.0 - 10.0 5", "{said}");
        assert_eq!(line("old "), "old 1 22.2 0.0 66.7 0.0 0.0 - 11.1 5", "{said}");
        assert_eq!(line("Row: Pivot"), "Row: Pivot 200 3.000 100.0 15.000 200.000 1 [4]", "{said}");
        assert_eq!(line("old ->"), "old -> fast 10 6.000", "{said}");
        assert_eq!(line("2.5 s"), "2.5 s 7 chares, imbalance 1.80, expected 1.05, found ?", "{said}");
        assert!(said.contains("old delivers 0.20 of its measured speed since 00:12"), "{said}");
    }

    #[test]
    fn of_being_idle_the_network_is_a_part_where_that_is_known() {
        let mut report = of_recording(&recording()).unwrap();
        assert!(text::text(&report).contains(NOT_RECORDED));
        let on_way = BTreeMap::from([(0, 0.75), (7, 0.5)]);
        put_waits(&mut report, &Waits { on_way, ..Waits::default() });
        let said = text::text(&report);
        let parts = |name: &str| {
            let line = said.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default();
            line.split_whitespace().rev().skip(1).take(2).map(String::from).collect::<Vec<_>>()
        };
        assert_eq!(
            (parts("fast "), parts("old ")),
            (vec!["2.5".into(), "7.5".into()], vec!["11.1".into(), "-".into()]),
            "{said}"
        );
        assert!(!said.contains(NOT_RECORDED), "{said}");
    }

    #[test]
    fn who_computed_before_the_end_of_initialising_was_not_idle_unless_a_part_was_timed() {
        let pe =
            |pe: u32, init_s: f64| json!({"pe": pe, "idle_s": 10.0 - init_s, "init_s": init_s, "chares": 1});
        let node = |name: &str, init_s: f64, number: u32| json!({"name": name, "idle_s": 10.0 - init_s, "init_s": init_s, "pes": [pe(number, init_s)]});
        for (timed_s, is_named) in [(Value::Null, true), (json!(10.0), false)] {
            let mut report = json!({"timed_s": timed_s, "nodes": [node("a", 0.0, 0), node("b", 9.0, 1)]});
            count_init(&mut report);
            let said = text::text(&report);
            assert_eq!(said.contains("others waited for PE 1 of b"), is_named, "{said}");
        }
    }

    #[test]
    fn the_critical_path_is_a_part_of_the_text() {
        let report = json!({"critical_path": [{"part": 0.625, "what": "Row: Pivot on PE 1 (old)\u{1b}"}]});
        let said = text::text(&report);
        assert!(said.contains("\ncritical path, % of its time\n  62.5  Row: Pivot on PE 1 (old)"), "{said}");
    }

    #[test]
    fn what_is_next_to_nothing_of_the_critical_path_is_left_out() {
        let mut report = of_recording(&recording()).unwrap();
        let path = [(0.9, "Row: Pivot"), (0.0006, "Row: Other"), (0.0001, "Row: Third")];
        let path = path.map(|(part, what)| (part, what.into())).to_vec();
        put_waits(&mut report, &Waits { path, ..Waits::default() });
        for said in [text::text(&report), page::page(&report, None)] {
            assert!(said.contains("Row: Pivot") && !said.contains("Row: Other"), "{said}");
        }
    }

    #[test]
    fn a_recording_says_of_shares_what_the_report_of_its_run_says() {
        let mut recording = recording();
        let MonitorEvent::Run(run) = &mut recording.events[0].event else { panic!("it begins with the run") };
        run.slowdowns.clear();
        for (node, share) in run.nodes.iter_mut().zip([0.5, 0.5]) {
            (node.share, node.pe_speeds, node.pe_parts) = (Some(share), vec![1.0], vec![0.9]);
        }
        for event in &mut recording.events {
            if let MonitorEvent::Snapshot(NodeSnapshot { node: 2, pes, .. }) = &mut event.event {
                (pes[0].core_wait_ns, pes[0].idle_ns) = (0, 7 * S);
            }
        }
        let said = text::text(&of_recording(&recording).unwrap());
        let begins = "shares by the speeds that this run has measured did not hold: ";
        assert!(said.contains(begins) && said.contains("had 50% of the work"), "{said}");
    }

    #[test]
    fn a_report_of_other_things_is_shown_without_a_panic_and_a_terminal_is_safe() {
        for text_of in ["{}", r#"{"nodes": 5, "entries": [{"name": "a\u001b[2J"}]}"#, "[]"] {
            let shown = text::text(&serde_json::from_str(text_of).unwrap());
            assert!(!shown.contains('\u{1b}'), "{shown}");
        }
    }
}
