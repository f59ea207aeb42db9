//! What a run spent its time on, as one page for a browser: no other file, no script.

use super::causes::causes;
use super::text::last_of;
use super::{LINES, NOT_RECORDED, REASONS, list, name_of, percent, percents_of};
use crate::plot::escaped;
use runtime::monitor::text::clean_line;
use serde_json::Value;
use std::fmt::Write as _;

const STYLE: &str = "\
body{font:15px/1.45 system-ui,sans-serif;max-width:74rem;margin:2rem auto;padding:0 1rem;color:#1d2329;background:#fff}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #8883}th{font-weight:600}\
th:first-child,td:first-child,.left{text-align:left}\
.bar{display:flex;width:22rem;height:1rem;background:#8882}.bar i{display:block}\
.key i{display:inline-block;width:.8rem;height:.8rem;margin:0 .3rem 0 1rem}\
.failed{color:#c0392b;font-weight:600}.wide{overflow-x:auto}\
@media(prefers-color-scheme:dark){body{color:#d6dbe1;background:#16181c}svg{background:#fff}}";

/// The page. `chart`: a picture of the whole run as SVG, where there is a recording.
pub(super) fn page(report: &Value, chart: Option<&str>) -> String {
    let title = format!("{} {}", name_of(&report["app"]), name_of(&report["run_id"]));
    let title = escaped(&title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         <h1>{title}</h1>\n"
    );
    head(&mut out, report);
    lost_to(&mut out, report);
    critical_path(&mut out, report);
    time_by_reason(&mut out, report);
    time_by_entry(&mut out, report);
    collectives(&mut out, report);
    traffic(&mut out, report);
    balance(&mut out, report);
    remarks(&mut out, report);
    if let Some(chart) = chart {
        let _ = write!(out, "<h2>Over time</h2>\n<div class=\"wide\">{chart}</div>\n");
    }
    out + "</html>\n"
}

fn head(out: &mut String, report: &Value) {
    let mut words = vec![format!("started {}", text_of(&report["started"]))];
    let nodes = list(&report["nodes"]);
    let pes: usize = nodes.iter().map(|node| list(&node["pes"]).len()).sum();
    words.push(format!("{pes} PEs on {} nodes", nodes.len()));
    if let Some(timed) = report["timed_s"].as_f64() {
        words.push(format!("timed {timed:.3} s"));
    }
    if let Some(efficiency) = report["efficiency"].as_f64() {
        words.push(format!("efficiency {:.1}%", 100.0 * efficiency));
    }
    let _ = writeln!(out, "<p>{}</p>", words.join(", "));
    if let Some(error) = report["error"].as_str() {
        let _ = writeln!(out, "<p class=\"failed\">failed: {}</p>", escaped(&clean_line(error, 400)));
    }
    if let Some(why) = report["incomplete"].as_str() {
        let _ = writeln!(out, "<p class=\"failed\">incomplete: {}</p>", escaped(why));
    }
}

fn lost_to(out: &mut String, report: &Value) {
    let causes = causes(report);
    let _ = writeln!(out, "<h2>What it lost time to</h2>");
    if causes.is_empty() {
        let _ = writeln!(out, "<p>Nothing that would be worth a word.</p>");
    } else {
        let _ = writeln!(out, "<table><tr><th>% of all<th class=\"left\">why</tr>");
        for cause in causes {
            let sentence = escaped(&cause.sentence);
            let _ = writeln!(out, "<tr><td>{:.1}<td class=\"left\">{sentence}</tr>", 100.0 * cause.part);
        }
        let _ = writeln!(out, "</table>");
    }
    if report["waits"].is_null() {
        let _ = writeln!(out, "<p>Besides, {NOT_RECORDED}.</p>");
    }
}

fn critical_path(out: &mut String, report: &Value) {
    let parts = list(&report["critical_path"]);
    if parts.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "<h2>Critical path</h2>\n<p>The chain of entry methods and messages that the last ones waited for: whoever is not on \
         it delays nobody.</p>\n<table><tr><th>% of its time<th class=\"left\">part<th class=\"left\">what</tr>"
    );
    for part in parts.iter().take(4 * LINES) {
        let percent = 100.0 * number(&part["part"]);
        let _ = writeln!(
            out,
            "<tr><td>{percent:.1}<td><div class=\"bar\"><i style=\"width:{percent:.2}%;background:{}\"></i></div><td \
             class=\"left\">{}</tr>",
            REASONS[0].2,
            text_of(&part["what"])
        );
    }
    let _ = writeln!(out, "</table>");
    the_rest(out, parts.len());
}

fn time_by_reason(out: &mut String, report: &Value) {
    let _ = write!(out, "<h2>Time of PEs</h2>\n<p class=\"key\">");
    for (_, title, color) in REASONS {
        let _ = write!(out, "<i style=\"background:{color}\"></i>{title}");
    }
    let _ = write!(out, "</p>\n<table><tr><th>node<th>PEs<th>speed<th class=\"left\">time");
    for (_, title, _) in REASONS {
        let _ = write!(out, "<th>{title} %");
    }
    let _ = writeln!(out, "<th>chares</tr>");
    for node in list(&report["nodes"]) {
        let percents = percents_of(node);
        let _ = write!(
            out,
            "<tr><td>{}<td>{}<td>{:.2}<td><div class=\"bar\">",
            escaped(&name_of(&node["name"])),
            list(&node["pes"]).len(),
            number(&node["speed"])
        );
        for ((_, title, color), percent) in REASONS.iter().zip(percents) {
            let Some(percent) = percent else { continue };
            let _ = write!(
                out,
                "<i style=\"width:{percent:.2}%;background:{color}\" title=\"{title} {percent:.1}%\"></i>"
            );
        }
        let _ = write!(out, "</div>");
        for part in percents {
            let _ = write!(out, "<td>{}", percent(part));
        }
        let _ = writeln!(out, "<td>{}</tr>", node["chares"].as_u64().unwrap_or(0));
    }
    let _ = writeln!(out, "</table>");
}

fn time_by_entry(out: &mut String, report: &Value) {
    let entries = list(&report["entries"]);
    let all: f64 = entries.iter().map(|entry| number(&entry["time_s"])).sum();
    let _ = writeln!(
        out,
        "<h2>Time by entry method</h2>\n<table><tr><th>entry method<th>calls<th>s<th class=\"left\">part<th>mean ms<th>most \
         ms<th class=\"left\">on PE, element</tr>"
    );
    for entry in entries.iter().take(4 * LINES) {
        let (time, calls) = (number(&entry["time_s"]), number(&entry["calls"]));
        let percent = if all > 0.0 { 100.0 * time / all } else { 0.0 };
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{calls}<td>{time:.3}<td><div class=\"bar\"><i style=\"width:{percent:.2}%;background:{}\" \
             title=\"{percent:.1}%\"></i></div><td>{:.3}<td>{:.3}<td class=\"left\">{} {}</tr>",
            escaped(&name_of(&entry["name"])),
            REASONS[0].2,
            1e3 * time / calls.max(1.0),
            1e3 * number(&entry["slowest_s"]),
            entry["slowest_pe"].as_u64().unwrap_or(0),
            escaped(&name_of(&entry["slowest_element"]))
        );
    }
    let _ = writeln!(out, "</table>");
    the_rest(out, entries.len());
}

/// What reductions, exchanges and broadcasts took, and who held them up.
fn collectives(out: &mut String, report: &Value) {
    let all = list(&report["collectives"]);
    if all.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "<h2>Reductions, exchanges and broadcasts</h2>\n<p>From the first contribution to the result, or from who sent to the last \
         who got it, of those that are told of one by one.</p>\n<table>\
         <tr><th>what<th>told<th>mean ms<th>most ms<th class=\"left\">last most often</tr>"
    );
    for one in all.iter().take(4 * LINES) {
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td>{:.3}<td>{:.3}<td class=\"left\">{}</tr>",
            escaped(&name_of(&one["what"])),
            one["told"],
            1e3 * number(&one["mean_s"]),
            1e3 * number(&one["most_s"]),
            escaped(&last_of(one))
        );
    }
    let _ = writeln!(out, "</table>");
    the_rest(out, all.len());
}

/// A line for each sender, a column for each receiver, darker where more went.
fn traffic(out: &mut String, report: &Value) {
    let nodes = list(&report["nodes"]);
    let links = |node: &Value| -> Vec<(String, f64, u64)> {
        let link =
            |to: &Value| (name_of(&to["node"]), number(&to["bytes"]), to["messages"].as_u64().unwrap_or(0));
        list(&node["sent_to"]).iter().map(link).collect()
    };
    let mut receivers: Vec<String> = nodes.iter().map(|node| name_of(&node["name"])).collect();
    let others = nodes.iter().flat_map(links).map(|(to, ..)| to).filter(|to| !receivers.contains(to));
    let others: Vec<String> = others.collect::<std::collections::BTreeSet<_>>().into_iter().collect();
    receivers.extend(others);
    let most = nodes.iter().flat_map(links).map(|(_, bytes, _)| bytes).fold(0.0, f64::max);
    let _ = write!(out, "<h2>Traffic, MB</h2>\n<div class=\"wide\"><table><tr><th>from, to");
    for to in &receivers {
        let _ = write!(out, "<th>{}", escaped(to));
    }
    let _ = writeln!(out, "</tr>");
    for node in nodes {
        let _ = write!(out, "<tr><td>{}", escaped(&name_of(&node["name"])));
        let links = links(node);
        for to in &receivers {
            let Some((_, bytes, messages)) = links.iter().find(|(receiver, ..)| receiver == to) else {
                let _ = write!(out, "<td>");
                continue;
            };
            let shade = if most > 0.0 { 0.6 * bytes / most } else { 0.0 };
            let _ = write!(
                out,
                "<td style=\"background:rgba(42,157,180,{shade:.3})\" title=\"{messages} messages\">{:.3}",
                bytes / 1e6
            );
        }
        let _ = writeln!(out, "</tr>");
    }
    let _ = writeln!(out, "</table></div>");
}

fn balance(out: &mut String, report: &Value) {
    let Some(balance) = report["balance"].as_str() else { return };
    let decisions = list(&report["balanced"]);
    let _ = writeln!(
        out,
        "<h2>Balance</h2>\n<p>{}, {} decisions</p>\n<table><tr><th>at s<th>chares moved<th>MB<th>imbalance \
         before<th>expected<th>found</tr>",
        escaped(&clean_line(balance, 80)),
        decisions.len()
    );
    for decision in decisions.iter().rev().take(4 * LINES).rev() {
        let figure = |key: &str| decision[key].as_f64().map_or("?".into(), |figure| format!("{figure:.2}"));
        let _ = writeln!(
            out,
            "<tr><td>{:.1}<td>{}<td>{:.3}<td>{}<td>{}<td>{}</tr>",
            number(&decision["at_s"]),
            decision["moves"].as_u64().unwrap_or(0),
            number(&decision["bytes"]) / 1e6,
            figure("before"),
            figure("expected"),
            figure("after")
        );
    }
    let _ = writeln!(out, "</table>");
    if let Some(cost) = super::text::cost_of_balancing(report) {
        let _ = writeln!(out, "<p>{cost}</p>");
    }
}

fn remarks(out: &mut String, report: &Value) {
    let slowdowns = list(&report["slowdowns"]).iter().map(|slow| &slow["sentence"]);
    let remarks: Vec<String> = slowdowns.chain(list(&report["remarks"])).map(text_of).collect();
    if remarks.is_empty() {
        return;
    }
    let _ = writeln!(out, "<h2>Remarks</h2>\n<ul>");
    for remark in remarks {
        let _ = writeln!(out, "<li>{remark}</li>");
    }
    let _ = writeln!(out, "</ul>");
}

fn the_rest(out: &mut String, count: usize) {
    if count > 4 * LINES {
        let _ = writeln!(out, "<p>and {} more</p>", count - 4 * LINES);
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().filter(|number| number.is_finite()).unwrap_or(0.0)
}

fn text_of(value: &Value) -> String {
    escaped(&clean_line(value.as_str().unwrap_or("?"), 200))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_page_holds_what_the_report_says_and_no_markup_of_others() {
        let report = json!({
            "app": "gauss", "run_id": "<script>alert(1)</script>", "timed_s": 2.0, "efficiency": 0.5,
            "error": "\"a\" & b", "balance": "refine",
            "balancing": {"looks": 20, "seconds": 0.01, "longest_s": 0.002, "messages": 45, "bytes": 90_000},
            "balanced": [{"at_s": 2.5, "moves": 7, "before": 1.8, "expected": 1.05, "after": null}],
            "entries": [{"name": "Row: Pivot", "calls": 200, "time_s": 3.0, "slowest_s": 0.2, "slowest_pe": 1}],
            "remarks": ["<b>"], "critical_path": [{"part": 0.625, "what": "Row: <Pivot> on PE 1"}],
            "nodes": [
                {"name": "fast", "compute_s": 3.0, "idle_s": 1.0, "chares": 5, "pes": [{}],
                 "sent_to": [{"node": "launcher", "messages": 10, "bytes": 6_000_000}]},
                {"name": "old", "sent_to": []},
            ],
        });
        let page = page(&report, Some("<svg></svg>"));
        assert!(!page.contains("<script") && !page.contains("<b>") && page.contains("&lt;script"), "{page}");
        for part in [
            "efficiency 50.0%",
            "failed: &quot;a&quot; &amp; b",
            "<td>75.0",
            "width:25.00%",
            "<td>Row: Pivot<td>200<td>3.000",
            "<th>launcher",
            "title=\"10 messages\">6.000",
            "<td>2.5<td>7<td>0.000<td>1.80<td>1.05<td>?",
            "it cost 0.500 ms for each of 20 looks at the loads, and 0.090 MB of messages",
            "<svg></svg>",
            "62.5<td><div class=\"bar\"><i style=\"width:62.50%",
            "Row: &lt;Pivot&gt; on PE 1",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let (opened, closed) = (page.matches("<table").count(), page.matches("</table>").count());
        assert_eq!(opened, closed);
    }

    #[test]
    fn a_page_of_other_things_is_written_without_a_panic() {
        for other in
            [json!({}), json!([]), json!({"nodes": 5, "entries": [{"name": "a\u{1b}[2J"}], "balanced": 3})]
        {
            assert!(!page(&other, None).contains('\u{1b}'));
        }
    }
}
