//! The screen that says why PEs do not compute: for each PE or node what it did in the last seconds and what it waits for, and
//! below, the chain of work that all waited for, and who else wants the cores of its host.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::pes::NAME;
use super::{put, rows_of, split};
use crate::app::App;
use crate::figures;
use crate::input::Spot;
use crate::model::Model;
use crate::model::history::{SECOND, Times};
use crate::model::node::{Node, Pe};
use crate::model::why::{Present, others_cores};

/// What counts as the last seconds.
const LAST: i64 = 5 * SECOND;
/// Most hosts that are listed.
const HOSTS: usize = 8;
/// Most parts of the critical path that are listed, and the least that is.
const PARTS: usize = 3;
const PART_MIN: f64 = 0.05;
/// Columns of a share.
const SHARE: usize = 6;

/// Says where a click chooses a line.
pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) -> Vec<Spot> {
    let model = app.model();
    let present = Present::of(model, LAST);
    let items = items(app, &present, area.width, look);
    let selected = app.choice.selected.min(items.len().saturating_sub(1));
    let mut below = path_lines(model);
    // What has no room behind the selected PE is said below.
    if let Some((line, reason)) = items.get(selected)
        && line.width() > usize::from(area.width)
    {
        below.insert(0, format!(" {:<13}{reason}", "selected:"));
    }
    below.extend(host_lines(model, &present));
    // That takes a third of the screen at most.
    let height = u16::try_from(below.len()).unwrap_or(u16::MAX).min(area.height / 3);
    let (rows, foot) = split(area, area.height - height);
    put(frame, rows, 0, titles(area.width, look));
    let rows = split(rows, 1).1;
    if items.is_empty() {
        put(frame, rows, 0, Line::styled(" no PE to show", look.faint()));
    }
    let items = items.into_iter().map(|(line, _)| line).collect();
    let spots = rows_of(frame, rows, items, selected, "rows", look);
    for (line, text) in below.into_iter().enumerate() {
        put(frame, foot, line, Line::styled(text, look.faint()));
    }
    spots
}

/// What a PE did in the last seconds, by columns.
const SHARES: [&str; 6] = ["comp", "runt", "core", "thro", "netw", "idle"];

/// Which of them have room beside the reason, which says more, and whether the queue has. Where the network has none it is a part
/// of being idle.
fn shown(width: u16) -> ([bool; 6], bool) {
    match width {
        0..74 => ([true, false, false, false, false, true], false),
        74..110 => ([true, false, true, false, false, true], true),
        _ => ([true; 6], true),
    }
}

fn titles(width: u16, look: Look) -> Line<'static> {
    let (shown, has_queue) = shown(width);
    let shares = SHARES.iter().zip(shown).filter_map(|(title, shown)| shown.then_some(*title));
    let titles = shares.chain(has_queue.then_some("queue"));
    let shares: String = titles.map(|title| format!("{title:>SHARE$}")).collect();
    let text = format!("   PE {} {shares}  waits for (last {} s)", figures::fit("node", NAME), LAST / SECOND);
    Line::styled(text, look.faint())
}

/// A line for each PE, or each node, and its reason again.
fn items(app: &App, present: &Present<'_>, width: u16, look: Look) -> Vec<(Line<'static>, String)> {
    let row = |place: usize, number: String, node: &Node, pes: &[Pe], times: Times| {
        let chosen = place == app.choice.selected;
        let reason = present.reason(app.model(), node, pes, times);
        let spent = (times, present.network(pes));
        (row(chosen, number, node, pes, (spent, &reason), (width, look)), reason)
    };
    if app.choice.is_by_node() {
        let nodes = app.nodes().into_iter().enumerate();
        return nodes
            .map(|(place, node)| {
                let count = figures::count(node.pes.len() as f64);
                row(place, count, node, &node.pes, present.times_of_all(node))
            })
            .collect();
    }
    let pes = app.pes().into_iter().enumerate();
    pes.map(|(place, (node, pe))| {
        row(place, pe.last.pe.to_string(), node, std::slice::from_ref(pe), present.times_of(pe))
    })
    .collect()
}

fn row(
    chosen: bool,
    number: String,
    node: &Node,
    pes: &[Pe],
    ((times, network), reason): ((Times, Option<u64>), &str),
    (width, look): (u16, Look),
) -> Line<'static> {
    let mark = if chosen { look.pick("▸", ">") } else { " " };
    let style = if chosen { look.selected() } else { look.strong() };
    let mut line = Line::from(Span::styled(format!("{mark}{number:>4} "), style));
    line.push_span(Span::raw(format!("{} ", figures::fit(&node.name(), NAME))));
    let (shown, has_queue) = shown(width);
    let [.., has_network, _] = shown;
    let on_way = network.filter(|_| has_network).unwrap_or_default();
    let shares = [
        (Some(times.compute.saturating_add(times.init)), look.compute()),
        (Some(times.overhead), look.overhead()),
        (Some(times.core_wait), look.core_wait()),
        (Some(times.throttled), look.throttled()),
        (network, look.accent()),
        (Some(times.idle.saturating_sub(on_way)), look.idle()),
    ];
    for ((time, style), _) in shares.into_iter().zip(shown).filter(|(_, shown)| *shown) {
        let text = time.map_or("-".into(), |time| figures::percent(times.share(time)));
        let style = if time.unwrap_or_default() == 0 { look.faint() } else { style };
        line.push_span(Span::styled(format!("{text:>SHARE$}"), style));
    }
    if has_queue {
        let queue = pes.iter().fold(0_u64, |sum, pe| sum.saturating_add(pe.last.queue_messages));
        line.push_span(Span::raw(format!("{:>SHARE$}", figures::count(queue as f64))));
    }
    line.push_span(Span::raw(format!("  {reason}")));
    line
}

/// What the critical path of the last seconds went through, and which link is slow if links were a good part of that.
fn path_lines(model: &Model) -> Vec<String> {
    let path = model.path(LAST);
    let parts = model.path_words(&path).into_iter().filter(|(part, _)| *part >= PART_MIN);
    let line = |(place, (part, words)): (usize, (f64, String))| {
        let title = if place == 0 { "all wait for:" } else { "" };
        format!(" {title:<13}{:>4} {words}", figures::percent(part))
    };
    let network = model.network_words(&path).map(|said| format!(" {:<13}{said}", "network:"));
    parts.take(PARTS).enumerate().map(line).chain(network).collect()
}

/// What each host has, and who uses it.
fn host_lines(model: &Model, present: &Present<'_>) -> Vec<String> {
    let line = |host: &runtime::monitor::hosts::Host<'_>| {
        let mut text = format!(" {}: ", if host.name.is_empty() { "this host" } else { host.name });
        let cores = host.cores as usize;
        let pes = figures::things(host.pes as usize, "PE");
        if cores > 0 {
            text.push_str(&format!("{pes} on {}", figures::things(cores, "core")));
        } else {
            text.push_str(&pes);
        }
        if let Some(others) = others_cores(model, host) {
            text.push_str(&format!(", others use {others:.1}"));
        }
        let nodes = || host.nodes.iter().filter_map(|info| model.nodes.get(&info.node));
        let mhz = nodes().map(|node| node.last.clock_mhz).max().unwrap_or_default();
        if mhz > 0 {
            text.push_str(&format!(", at {:.2} GHz", f64::from(mhz) / 1e3));
        }
        let free = nodes().map(|node| node.last.host_memory_bytes).filter(|bytes| *bytes > 0).min();
        if let Some(free) = free {
            text.push_str(&format!(", {} of memory free", figures::bytes(free as f64)));
        }
        text
    };
    present.hosts.iter().take(HOSTS).map(line).collect()
}
