//! What a run spent its time on, as text for people.

use super::causes::causes;
use super::{LINES, NOT_RECORDED, REASONS, list, name_of, percent, percents_of};
use serde_json::Value;
use std::fmt::Write as _;

/// The text for people.
pub(super) fn text(report: &Value) -> String {
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
    if let Some(why) = report["incomplete"].as_str() {
        let _ = writeln!(out, "incomplete: {why}");
    }
    if let (Some(timed), Some(efficiency)) = (report["timed_s"].as_f64(), report["efficiency"].as_f64()) {
        let _ = writeln!(out, "timed {timed:.3} s, efficiency {:.1}%", 100.0 * efficiency);
    }
    lost_to(&mut out, report);
    critical_path(&mut out, report);
    time_by_reason(&mut out, report);
    time_by_entry(&mut out, report);
    collectives(&mut out, report);
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

/// What kept PEs from computing.
fn lost_to(out: &mut String, report: &Value) {
    let causes = causes(report);
    let _ = writeln!(out, "\nlost, % of the time of all PEs");
    for cause in &causes {
        let _ = writeln!(out, "{:>6.1}  {}", 100.0 * cause.part, cause.sentence);
    }
    if causes.is_empty() {
        let _ = writeln!(out, "        nothing that would be worth a word");
    }
    if report["waits"].is_null() {
        let _ = writeln!(out, "        {NOT_RECORDED}");
    }
}

/// What the last entry methods waited for, one after the other back to the first; nothing where that is not known.
fn critical_path(out: &mut String, report: &Value) {
    let parts = list(&report["critical_path"]);
    if parts.is_empty() {
        return;
    }
    let _ = writeln!(out, "\ncritical path, % of its time");
    for part in parts.iter().take(LINES) {
        let what = runtime::monitor::text::clean_line(part["what"].as_str().unwrap_or("?"), 160);
        let _ = writeln!(out, "{:>6.1}  {what}", 100.0 * part["part"].as_f64().unwrap_or(0.0));
    }
    the_rest(out, parts.len());
}

/// Where the time of each node's PEs went, in the timed part if there was one.
fn time_by_reason(out: &mut String, report: &Value) {
    let _ = write!(out, "\n{:<16}{:>5}", "time of PEs, %", "PEs");
    let titles: String = REASONS.iter().map(|(_, title, _)| format!("{title:>9}")).collect();
    let _ = writeln!(out, "{titles}  chares");
    for node in list(&report["nodes"]) {
        let _ = write!(out, "  {:<14.14}{:>5}", name_of(&node["name"]), list(&node["pes"]).len());
        for part in percents_of(node) {
            let _ = write!(out, "{:>9}", percent(part));
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

/// What reductions, exchanges and broadcasts took, of those that are told of one by one, and who held them up.
fn collectives(out: &mut String, report: &Value) {
    let all = list(&report["collectives"]);
    if all.is_empty() {
        return;
    }
    let (title, last) = ("reductions, exchanges, broadcasts", "last most often");
    let _ = writeln!(out, "\n{title:<36}{:>10}{:>10}{:>10}  {last}", "told", "mean ms", "most ms");
    for one in all.iter().take(LINES) {
        let ms = |key: &str| 1e3 * one[key].as_f64().unwrap_or(0.0);
        let (what, told) = (name_of(&one["what"]), one["told"].as_u64().unwrap_or(0));
        let (mean, most, last) = (ms("mean_s"), ms("most_s"), last_of(one));
        let _ = writeln!(out, "  {what:<34.34}{told:>10}{mean:>10.3}{most:>10.3}  {last}");
    }
    the_rest(out, all.len());
}

/// Who was last most often, in words.
pub(super) fn last_of(collective: &Value) -> String {
    let last = &collective["last"];
    if last.is_null() {
        return "-".into();
    }
    format!("PE {} ({}), {} of {}", last["pe"], name_of(&last["node"]), last["last"], last["of"])
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
    let way = |from: &str, to: &str| {
        let is_it = |way: &&Value| {
            let nodes: Vec<String> = list(&way["nodes"]).iter().map(name_of).collect();
            nodes == [from, to] || nodes == [to, from]
        };
        let way = list(&report["ways"]).iter().find(is_it)?;
        way["ms"].as_f64().map(|ms| format!("{ms:>12.2}"))
    };
    let title = if list(&report["ways"]).is_empty() { "" } else { "  ms on way" };
    let _ = writeln!(out, "\n{:<36}{:>10}{:>10}{title}", "traffic between nodes", "messages", "MB");
    for (from, to, messages, bytes) in links.iter().take(LINES) {
        let (link, way) = (format!("{from} -> {to}"), way(from, to).unwrap_or_default());
        let _ = writeln!(out, "  {link:<34.34}{messages:>10}{:>10.3}{way}", *bytes as f64 / 1e6);
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
    if let Some(cost) = cost_of_balancing(report) {
        let _ = writeln!(out, "  {cost}");
    }
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

/// What balancing itself cost, if it has looked at anything.
pub(super) fn cost_of_balancing(report: &Value) -> Option<String> {
    let cost = &report["balancing"];
    let looks = cost["looks"].as_u64().filter(|looks| *looks > 0)?;
    let each_ms = 1e3 * cost["seconds"].as_f64()? / looks as f64;
    let megabytes = cost["bytes"].as_f64()? / 1e6;
    Some(format!(
        "it cost {each_ms:.3} ms for each of {looks} looks at the loads, and {megabytes:.3} MB of messages"
    ))
}

fn the_rest(out: &mut String, count: usize) {
    if count > LINES {
        let _ = writeln!(out, "  and {} more", count - LINES);
    }
}
