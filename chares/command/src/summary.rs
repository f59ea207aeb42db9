//! `report`: what a run has spent its time on, as text, from its report or its recording.

use super::report::{Report, Sources};
use super::say;
use chares::Timeline;
use clap::{Arg, ArgMatches, Command, value_parser};
use runtime::failure::{Failure, Kind};
use runtime::monitor::recording::{MAGIC, Recording};
use runtime::monitor::wire::{MonitorEvent, NodeSnapshot, RunInfo};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Lines of a list at most.
const LINES: usize = 12;
/// What a report of a run says of itself.
const SCHEMA: &str = "metachare-run/1";

pub(crate) fn command() -> Command {
    Command::new("report").about("Say what a run spent its time on, from its report or its recording").arg(
        Arg::new("file")
            .value_name("FILE")
            .required(true)
            .value_parser(value_parser!(PathBuf))
            .help("What `run --report FILE` or `run --record FILE` wrote"),
    )
}

pub(crate) fn report(matches: &ArgMatches) -> Result<u8, Failure> {
    let path = matches.get_one::<PathBuf>("file").map_or(Path::new(""), PathBuf::as_path);
    let name = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::new(Kind::NoInput, format!("{name} cannot be read: {error}")))?;
    let wrong = |why: String| Failure::new(Kind::Input, format!("{name} is no report of a run: {why}"));
    let report = if bytes.starts_with(&MAGIC) {
        let recording = Recording::read(&mut bytes.as_slice()).map_err(|error| wrong(error.to_string()))?;
        serde_json::to_value(of_recording(&recording)).map_err(|error| wrong(error.to_string()))?
    } else {
        let report: Value = serde_json::from_slice(&bytes)
            .map_err(|error| wrong(format!("{error}; give it the FILE of --report or of --record")))?;
        if report["schema"] != SCHEMA {
            return Err(wrong(format!("it does not say \"schema\": \"{SCHEMA}\"")));
        }
        report
    };
    say(&text(&report))?;
    Ok(0)
}

/// The report of a run that was recorded, as far as its last counters say it; the whole run counts as its timed part.
fn of_recording(recording: &Recording) -> Report {
    let (mut info, mut last) = (RunInfo::default(), BTreeMap::<u16, NodeSnapshot>::new());
    let (mut exit_code, mut error) = (0, None);
    for recorded in &recording.events {
        match &recorded.event {
            MonitorEvent::Run(run) => info = run.clone(),
            MonitorEvent::Snapshot(snapshot) => {
                let before = last.remove(&snapshot.node);
                last.insert(snapshot.node, snapshot.clone().after(before));
            }
            MonitorEvent::Ended { code, summary } => {
                exit_code = u8::try_from(*code).unwrap_or(u8::MAX);
                error = (*code != 0).then(|| summary.clone());
            }
            _ => {}
        }
    }
    let mut timeline = Timeline::new(Instant::now());
    timeline.end = last.into_values().collect();
    timeline.set_after(timeline.end.clone());
    Report::new(Sources { info: &info, version: "", arguments: Value::Null, exit_code, error }, &timeline)
}

/// The text for people.
fn text(report: &Value) -> String {
    let mut out = String::new();
    let word = |value: &Value| runtime::monitor::text::clean_line(value.as_str().unwrap_or("?"), 200);
    let _ = writeln!(
        out,
        "{} {}, started {}",
        word(&report["app"]),
        word(&report["run_id"]),
        word(&report["started"])
    );
    if let Some(error) = report["error"].as_str() {
        let _ = writeln!(out, "failed: {}", runtime::monitor::text::clean_line(error, 400));
    }
    if let (Some(timed), Some(efficiency)) = (report["timed_s"].as_f64(), report["efficiency"].as_f64()) {
        let _ = writeln!(out, "timed {timed:.3} s, efficiency {:.1}%", 100.0 * efficiency);
    }
    time_by_reason(&mut out, report);
    time_by_entry(&mut out, report);
    traffic(&mut out, report);
    balance(&mut out, report);
    let remarks = list(&report["slowdowns"]).iter().map(|slow| &slow["sentence"]);
    let mut remarks = remarks.chain(list(&report["remarks"])).peekable();
    if remarks.peek().is_some() {
        let _ = writeln!(out, "\nremarks");
        for remark in remarks {
            let _ = writeln!(out, "  {}", word(remark));
        }
    }
    out
}

/// Where the time of each node's PEs went, in the timed part if there was one.
fn time_by_reason(out: &mut String, report: &Value) {
    let reasons = ["compute", "overhead", "core_wait", "quota", "throttled", "idle"];
    let _ = write!(out, "\n{:<16}{:>5}", "time of PEs, %", "PEs");
    let titles = ["compute", "runtime", "no core", "quota", "share", "idle"];
    let titles: String = titles.iter().map(|title| format!("{title:>9}")).collect();
    let _ = writeln!(out, "{titles}  chares");
    for node in list(&report["nodes"]) {
        let of = |reason: &str| node[format!("{reason}_s")].as_f64().unwrap_or(0.0);
        let all: f64 = reasons.iter().map(|reason| of(reason)).sum();
        let _ = write!(out, "  {:<14.14}{:>5}", name_of(&node["name"]), list(&node["pes"]).len());
        for reason in reasons {
            let share = if all > 0.0 { 100.0 * of(reason) / all } else { 0.0 };
            let _ = write!(out, "{share:>9.1}");
        }
        let _ = writeln!(out, "{:>8}", node["chares"].as_u64().unwrap_or(0));
    }
}

fn time_by_entry(out: &mut String, report: &Value) {
    let entries = list(&report["entries"]);
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let all: f64 = entries.iter().map(|entry| number(&entry["time_s"])).sum();
    let _ = writeln!(
        out,
        "\n{:<36}{:>10}{:>10}{:>7}{:>10}{:>10}  on PE",
        "time by entry method", "calls", "s", "%", "mean ms", "most ms"
    );
    for entry in entries.iter().take(LINES) {
        let (time, calls) = (number(&entry["time_s"]), number(&entry["calls"]));
        let element = name_of(&entry["slowest_element"]);
        let _ = writeln!(
            out,
            "  {:<34.34}{calls:>10}{time:>10.3}{:>7.1}{:>10.3}{:>10.3}  {} {element}",
            name_of(&entry["name"]),
            if all > 0.0 { 100.0 * time / all } else { 0.0 },
            1e3 * time / calls.max(1.0),
            1e3 * number(&entry["slowest_s"]),
            entry["slowest_pe"],
        );
    }
    the_rest(out, entries.len());
}

fn traffic(out: &mut String, report: &Value) {
    let mut links: Vec<(String, String, u64, u64)> = Vec::new();
    for node in list(&report["nodes"]) {
        for to in list(&node["sent_to"]) {
            let number = |key: &str| to[key].as_u64().unwrap_or(0);
            links.push((name_of(&node["name"]), name_of(&to["node"]), number("messages"), number("bytes")));
        }
    }
    links.sort_by_key(|(.., bytes)| std::cmp::Reverse(*bytes));
    let _ = writeln!(out, "\n{:<36}{:>10}{:>10}", "traffic between nodes", "messages", "MB");
    for (from, to, messages, bytes) in links.iter().take(LINES) {
        let link = format!("{from} -> {to}");
        let _ = writeln!(out, "  {link:<34.34}{messages:>10}{:>10.3}", *bytes as f64 / 1e6);
    }
    the_rest(out, links.len());
}

fn balance(out: &mut String, report: &Value) {
    let Some(balance) = report["balance"].as_str() else { return };
    let decisions = list(&report["balanced"]);
    let _ = writeln!(
        out,
        "\nbalance: {}, {} decisions",
        runtime::monitor::text::clean_line(balance, 80),
        decisions.len()
    );
    for decision in decisions.iter().rev().take(LINES).rev() {
        let figure = |key: &str| decision[key].as_f64().map_or("?".into(), |figure| format!("{figure:.2}"));
        let _ = writeln!(
            out,
            "  {:>8.1} s  {} chares, imbalance {}, expected {}, found {}",
            decision["at_s"].as_f64().unwrap_or(0.0),
            decision["moves"],
            figure("before"),
            figure("expected"),
            figure("after"),
        );
    }
}

fn the_rest(out: &mut String, count: usize) {
    if count > LINES {
        let _ = writeln!(out, "  and {} more", count - LINES);
    }
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
        let report = serde_json::to_value(of_recording(&recording())).unwrap();
        let said = text(&report);
        let line = |beginning: &str| {
            let line = said.lines().find(|line| line.trim_start().starts_with(beginning)).unwrap_or_default();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("gauss"), "gauss gauss-1, started 1970-01-01T00:00:00Z");
        assert_eq!(line("fast "), "fast 1 90.0 0.0 0.0 0.0 0.0 10.0 5", "{said}");
        assert_eq!(line("old "), "old 1 22.2 0.0 66.7 0.0 0.0 11.1 5", "{said}");
        assert_eq!(line("Row: Pivot"), "Row: Pivot 200 3.000 100.0 15.000 200.000 1 [4]", "{said}");
        assert_eq!(line("old ->"), "old -> fast 10 6.000", "{said}");
        assert_eq!(line("2.5 s"), "2.5 s 7 chares, imbalance 1.80, expected 1.05, found ?", "{said}");
        assert!(said.contains("old delivers 0.20 of its measured speed since 00:12"), "{said}");
    }

    #[test]
    fn a_report_of_other_things_is_shown_without_a_panic_and_a_terminal_is_safe() {
        for text_of in ["{}", r#"{"nodes": 5, "entries": [{"name": "a\u001b[2J"}]}"#, "[]"] {
            let shown = text(&serde_json::from_str(text_of).unwrap());
            assert!(!shown.contains('\u{1b}'), "{shown}");
        }
    }
}
