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
    let shown = Shown::new(app, &present, area.width);
    let items = items(app, &present, shown, look);
    let selected = app.choice.selected.min(items.len().saturating_sub(1));
    let mut below = Vec::new();
    // What has no room behind the selected PE is said below.
    if let Some((line, reason)) = items.get(selected)
        && line.width() > usize::from(area.width)
    {
        below = figures::wrap(&format!(" {:<13}{reason}", "selected:"), area.width.into());
    }
    below.extend(path_lines(model));
    below.extend(host_lines(model, &present));
    // That takes a third of the screen at most.
    let height = u16::try_from(below.len()).unwrap_or(u16::MAX).min(area.height / 3);
    let (rows, foot) = split(area, area.height - height);
    put(frame, rows, 0, titles(app, shown, look));
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

/// Which of them have room beside the reason, which says more, and whether the queue has.
#[derive(Clone, Copy)]
struct Shown {
    shares: [bool; 6],
    queue: bool,
}

impl Shown {
    /// Where the network has no column it is a part of being idle; being throttled has one wherever a PE is, whose other parts
    /// would add up to little.
    fn new(app: &App, present: &Present<'_>, width: u16) -> Self {
        let is_throttled = || app.nodes().iter().any(|node| present.times_of_all(node).throttled > 0);
        let shares = match width {
            0..74 => [true, false, false, is_throttled(), false, true],
            74..110 => [true, false, true, is_throttled(), false, true],
            _ => [true; 6],
        };
        Self { shares, queue: width >= 74 }
    }

    fn has_network(self) -> bool {
        let [.., has_network, _] = self.shares;
        has_network
    }
}

fn titles(app: &App, shown: Shown, look: Look) -> Line<'static> {
    let shares = SHARES.iter().zip(shown.shares).filter_map(|(title, shown)| shown.then_some(*title));
    let titles = shares.chain(shown.queue.then_some("queue"));
    let shares: String = titles.map(|title| format!("{title:>SHARE$}")).collect();
    let number = if app.choice.is_by_node() { "PEs" } else { "PE" };
    let node = figures::fit("node", NAME);
    Line::styled(format!(" {number:>4} {node} {shares}  waits for (last {} s)", LAST / SECOND), look.faint())
}

/// A line for each PE, or each node, and its reason again.
fn items(app: &App, present: &Present<'_>, shown: Shown, look: Look) -> Vec<(Line<'static>, String)> {
    let row = |place: usize, number: String, node: &Node, pes: &[Pe], times: Times| {
        let chosen = place == app.choice.selected;
        let reason = present.reason(app.model(), node, pes, times);
        let spent = (times, present.network(pes));
        (row(chosen, number, node, pes, (spent, &reason), (shown, look)), reason)
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
    (shown, look): (Shown, Look),
) -> Line<'static> {
    let mark = if chosen { look.pick("▸", ">") } else { " " };
    let style = if chosen { look.selected() } else { look.strong() };
    let mut line = Line::from(Span::styled(format!("{mark}{number:>4} "), style));
    line.push_span(Span::raw(format!("{} ", figures::fit(&node.name(), NAME))));
    let on_way = network.filter(|_| shown.has_network()).unwrap_or_default();
    let shares = [
        (Some(times.working()), look.compute()),
        (Some(times.overhead), look.overhead()),
        (Some(times.core_wait), look.core_wait()),
        (Some(times.throttled), look.throttled()),
        (network, look.accent()),
        (Some(times.idle.saturating_sub(on_way)), look.idle()),
    ];
    for ((time, style), _) in shares.into_iter().zip(shown.shares).filter(|(_, shown)| *shown) {
        let text = time.map_or("-".into(), |time| figures::percent(times.share(time)));
        let style = if time.unwrap_or_default() == 0 { look.faint() } else { style };
        line.push_span(Span::styled(format!("{text:>SHARE$}"), style));
    }
    if shown.queue {
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
