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
    let mut below = path_lines(model);
    below.extend(host_lines(model, &present));
    // That takes a third of the screen at most.
    let height = u16::try_from(below.len()).unwrap_or(u16::MAX).min(area.height / 3);
    let (rows, foot) = split(area, area.height - height);
    put(frame, rows, 0, titles(look));
    let rows = split(rows, 1).1;
    let items = items(app, &present, look);
    if items.is_empty() {
        put(frame, rows, 0, Line::styled(" no PE to show", look.faint()));
    }
    let selected = app.choice.selected.min(items.len().saturating_sub(1));
    let spots = rows_of(frame, rows, items, selected, "rows", look);
    for (line, text) in below.into_iter().enumerate() {
        put(frame, foot, line, Line::styled(text, look.faint()));
    }
    spots
}

fn titles(look: Look) -> Line<'static> {
    let shares = ["comp", "runt", "core", "thro", "idle", "queue"];
    let shares: String = shares.iter().map(|title| format!("{title:>SHARE$}")).collect();
    let text = format!("   PE {} {shares}  waits for (last {} s)", figures::fit("node", NAME), LAST / SECOND);
    Line::styled(text, look.faint())
}

/// A line for each PE, or each node.
fn items(app: &App, present: &Present<'_>, look: Look) -> Vec<Line<'static>> {
    let row = |place: usize, number: String, node: &Node, pes: &[Pe], times: Times| {
        let chosen = place == app.choice.selected;
        row(chosen, number, node, pes, (times, present.reason(app.model(), node, pes, times)), look)
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
    (times, reason): (Times, String),
    look: Look,
) -> Line<'static> {
    let mark = if chosen { look.pick("▸", ">") } else { " " };
    let style = if chosen { look.selected() } else { look.strong() };
    let mut line = Line::from(Span::styled(format!("{mark}{number:>4} "), style));
    line.push_span(Span::raw(format!("{} ", figures::fit(&node.name(), NAME))));
    let shares = [
        (times.compute.saturating_add(times.init), look.compute()),
        (times.overhead, look.overhead()),
        (times.core_wait, look.core_wait()),
        (times.throttled, look.throttled()),
        (times.idle, look.idle()),
    ];
    for (time, style) in shares {
        let text = format!("{:>SHARE$}", figures::percent(times.share(time)));
        line.push_span(if time == 0 { Span::styled(text, look.faint()) } else { Span::styled(text, style) });
    }
    let queue = pes.iter().fold(0_u64, |sum, pe| sum.saturating_add(pe.last.queue_messages));
    line.push_span(Span::raw(format!("{:>SHARE$}  {reason}", figures::count(queue as f64))));
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
        let free = host.nodes.iter().filter_map(|info| model.nodes.get(&info.node));
        let free = free.map(|node| node.last.host_memory_bytes).filter(|bytes| *bytes > 0).min();
        if let Some(free) = free {
            text.push_str(&format!(", {} of memory free", figures::bytes(free as f64)));
        }
        text
    };
    present.hosts.iter().take(HOSTS).map(line).collect()
}
