//! The screen of work: for each PE or node how many chares it has, how busy they keep it and how many came and went, and
//! below, the heaviest chares where these are measured, and what the balancer decided and what came of it.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use runtime::monitor::heavy::HeavyChare;
use std::time::Duration;

use super::look::Look;
use super::pes::NAME;
use super::{put, rows_of, split};
use crate::app::{App, RECENT};
use crate::figures;
use crate::input::Spot;
use crate::model::node::{Node, Pe};
use crate::model::remarks;

/// The heaviest chares have no fewer lines.
const HEAVY_MIN: u16 = 4;
/// Decisions that are shown.
const DECISIONS: usize = 8;

/// Says where a click chooses a line.
pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) -> Vec<Spot> {
    let decisions = decisions(app);
    let below = u16::try_from(decisions.len()).unwrap_or(u16::MAX).min(area.height / 3);
    let (rows, foot) = split(area, area.height - below);
    let heaviest = heaviest(app);
    let items = items(app);
    // They leave to the PEs what these need, or two thirds.
    let wanted = u16::try_from(heaviest.len() + 2).unwrap_or(u16::MAX);
    let needed = u16::try_from(items.len() + 1).unwrap_or(u16::MAX);
    let height = wanted.min(rows.height.saturating_sub(needed).max(rows.height / 3));
    let height = if heaviest.is_empty() || height < HEAVY_MIN { 0 } else { height };
    let (rows, heavy) = split(rows, rows.height - height);
    draw_heaviest(frame, heavy, app, &heaviest, look);
    let bar = usize::from(area.width).saturating_sub(76).min(60) / 2;
    put(frame, rows, 0, titles(app, bar, look));
    let rows = split(rows, 1).1;
    if items.is_empty() {
        put(frame, rows, 0, Line::styled(" no PE to show", look.faint()));
    }
    let most = items.iter().map(|item| item.chares).max().unwrap_or(0);
    let chosen = app.choice.selected.min(items.len().saturating_sub(1));
    let lines = items.iter().enumerate().map(|(place, item)| row(item, most, bar, place == chosen, look));
    let spots = rows_of(frame, rows, lines.collect(), chosen, "rows", look);
    let skipped = decisions.len() - usize::from(below);
    for (number, text) in decisions.into_iter().skip(skipped).enumerate() {
        put(frame, foot, number, Line::styled(text, look.faint()));
    }
    spots
}

/// The heaviest chares of the nodes that are shown and what they take of their PEs, the heaviest first.
fn heaviest(app: &App) -> Vec<(&Node, &HeavyChare)> {
    let nodes = app.nodes().into_iter().filter(|node| node.loss.is_none());
    let mut all: Vec<(&Node, &HeavyChare)> =
        nodes.flat_map(|node| node.heaviest.iter().map(move |chare| (node, chare))).collect();
    all.sort_by(|(_, one), (_, other)| other.part.total_cmp(&one.part));
    all
}

/// These under a blank line and a title.
fn draw_heaviest(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    heaviest: &[(&Node, &HeavyChare)],
    look: Look,
) {
    let title = format!("   PE {} of its time  heaviest chares, last 2 s", figures::fit("node", NAME));
    put(frame, area, 1, Line::styled(title, look.faint()));
    let types = &app.model().run.chare_types;
    for (line, (node, chare)) in heaviest.iter().take(area.height.into()).enumerate() {
        let name = types.get(usize::from(chare.chare_type)).map_or("?", String::as_str);
        let mut row = Line::raw(format!(" {:>4} {} ", chare.pe, figures::fit(&node.name(), NAME)));
        row.push_span(Span::styled(format!("{:>11}", figures::percent(chare.part)), look.compute()));
        row.push_span(Span::raw(format!("  {name} {}", chare.element)));
        put(frame, area, line + 2, row);
    }
}

/// A PE, or the PEs of a node.
struct Item {
    number: String,
    name: String,
    chares: u64,
    /// Part of the last seconds in which it worked.
    busy: f64,
    arrived: u64,
    left: u64,
    types: String,
}

fn items(app: &App) -> Vec<Item> {
    let model = app.model();
    let edge = model.edge();
    let item = |number: String, node: &Node, pes: &[Pe]| {
        let sum = |of: fn(&Pe) -> u64| pes.iter().map(of).fold(0, u64::saturating_add);
        let times = pes.iter().map(|pe| pe.history.between(edge - RECENT, edge));
        let times = times.fold(Default::default(), crate::model::history::Times::plus);
        let numbers: Vec<u32> = pes.iter().map(|pe| pe.last.pe).collect();
        Item {
            number,
            name: node.name(),
            chares: sum(|pe| pe.last.chares),
            busy: times.share(times.working()) + times.share(times.overhead),
            arrived: sum(|pe| pe.last.arrived),
            left: sum(|pe| pe.last.migrations),
            types: model.chares_of(node, |pe| numbers.contains(&pe)),
        }
    };
    if app.choice.is_by_node() {
        let nodes = app.nodes().into_iter();
        return nodes.map(|node| item(figures::count(node.pes.len() as f64), node, &node.pes)).collect();
    }
    let pes = app.pes().into_iter();
    pes.map(|(node, pe)| item(pe.last.pe.to_string(), node, std::slice::from_ref(pe))).collect()
}

fn titles(app: &App, bar: usize, look: Look) -> Line<'static> {
    let first = if app.choice.is_by_node() { " PEs" } else { "  PE" };
    let gap = " ".repeat(if bar > 0 { bar + 1 } else { 0 });
    let text =
        format!(" {first} {} chares{gap}   busy{gap}   came   went  of types", figures::fit("node", NAME));
    Line::styled(text, look.faint())
}

fn row(item: &Item, most: u64, bar: usize, chosen: bool, look: Look) -> Line<'static> {
    let mark = if chosen { look.pick("▸", ">") } else { " " };
    let style = if chosen { look.selected() } else { look.strong() };
    let mut line = Line::from(Span::styled(format!("{mark}{:>4} ", item.number), style));
    line.push_span(Span::raw(figures::fit(&item.name, NAME)));
    let share = if most == 0 { 0.0 } else { item.chares as f64 / most as f64 };
    let numbered = super::pes::numbered;
    line.extend(numbered(&figures::count(item.chares as f64), share, bar, look.accent(), look));
    line.extend(numbered(&figures::percent(item.busy), item.busy, bar, look.compute(), look));
    let (came, went) = (figures::count(item.arrived as f64), figures::count(item.left as f64));
    line.push_span(Span::raw(format!("{came:>7}{went:>7}  ")));
    line.push_span(Span::styled(item.types.clone(), look.faint()));
    line
}

/// What the balancer decided, the latest last.
fn decisions(app: &App) -> Vec<String> {
    let run = &app.model().run;
    let said = |decision: &runtime::monitor::wire::Balanced| {
        let at = Duration::try_from_secs_f64(decision.at_s.max(0.0)).unwrap_or_default();
        format!(" {} {}", figures::moment(at), remarks::said(decision))
    };
    let skipped = run.balanced.len().saturating_sub(DECISIONS);
    let mut lines: Vec<String> = run.balanced.iter().skip(skipped).map(said).collect();
    if lines.is_empty() {
        let balance = if run.balance.is_empty() { "nobody balances" } else { "nothing has been moved yet" };
        lines.push(format!(" {balance}"));
    }
    lines
}
