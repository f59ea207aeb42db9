//! The node screen: each node with the bars of all its PEs together and its figures; also the figures line that
//! heads a node's PEs on the PE screen.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::pes::{Columns, numbered, strips, tall};
use super::{page, put};
use crate::app::App;
use crate::figures;
use crate::input::Spot;
use crate::model::node::Node;

/// A node silent for longer is marked, seconds.
const SILENT: u64 = 3;

/// Says where a click chooses a node.
pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) -> Vec<Spot> {
    let nodes = app.nodes();
    if nodes.is_empty() {
        let text =
            if app.model().nodes.is_empty() { " no node has reported yet" } else { " no node to show" };
        put(frame, area, 0, Line::styled(text, look.faint()));
        return Vec::new();
    }
    let most = nodes.iter().map(|node| node.entries()).max().unwrap_or(0);
    let selected = app.choice.selected.min(nodes.len() - 1);
    let columns = Columns::new(area.width);
    put(frame, area, 0, titles(&columns, area.width, look));
    let area = super::split(area, 1).1;
    let lines = usize::from(area.height);
    let tall = tall(lines, nodes.len(), nodes.len());
    let height = tall + 1 + usize::from(tall > 1);
    let heights = vec![height; nodes.len()];
    let paged = height * nodes.len() > lines;
    let range = page(&heights, selected, lines.saturating_sub(usize::from(paged)).max(1));
    let text = format!(" nodes {}-{} of {}: PgUp PgDn", range.start + 1, range.end, nodes.len());
    let (mut line, mut spots) = (0, Vec::new());
    for place in range {
        spots.push(super::item(area, line, tall + 1, place));
        let shown = rows(app, nodes[place], most, place == selected, area.width, tall, look);
        for (number, content) in shown.into_iter().enumerate() {
            put(frame, area, line + number, content);
        }
        let figures = figures_after(Span::raw("  "), app, nodes[place], look, (area.width, Holds::InPlace));
        put(frame, area, line + tall, figures);
        line += height;
    }
    if paged && lines > 2 {
        put(frame, area, lines - 1, Line::styled(text, look.faint()));
    }
    spots
}

/// Columns of the name, and of the computation bar.
fn widths(columns: &Columns, width: u16) -> (usize, usize) {
    let name = columns.name.max(4) + 4;
    // The queue and entry columns of the PE screen belong to the strip here.
    let bars = 14 + if columns.bar > 0 { 2 * (columns.bar + 1) } else { 0 };
    (name, usize::from(width).saturating_sub(name + 2 + bars))
}

/// Columns of the computation bar in a window of that width.
pub(crate) fn strip_columns(width: u16) -> usize {
    widths(&Columns::new(width), width).1
}

fn titles(columns: &Columns, width: u16, look: Look) -> Line<'static> {
    let (name, strip) = widths(columns, width);
    let bar = " ".repeat(if columns.bar > 0 { columns.bar + 1 } else { 0 });
    let text = format!(
        " {} {}   idle{bar}entries",
        figures::fit("node", name),
        figures::fit("computation over time, all its PEs", strip)
    );
    Line::styled(text, look.faint())
}

/// The lines of a node, from the top: only the computation bar is on all of them.
fn rows(
    app: &App,
    node: &Node,
    most: u64,
    chosen: bool,
    width: u16,
    tall: usize,
    look: Look,
) -> Vec<Line<'static>> {
    let columns = Columns::new(width);
    let (wide, room) = widths(&columns, width);
    let mark = if chosen { look.pick("▸", ">") } else { " " };
    let name = format!("{mark}{} ", figures::fit(&node.name(), wide));
    let style = if chosen { look.selected() } else { look.strong() };
    let life = node.lifetime();
    let idle = life.share(life.idle);
    let share = if most == 0 { 0.0 } else { node.entries() as f64 / most as f64 };
    let between = |from, to| node.between(from, to);
    let strips = strips(app.model(), app.column(room), room, tall, between, look);
    let line = |(number, strip): (usize, Vec<Span<'static>>)| {
        let is_first = number == 0;
        let title =
            if is_first { Span::styled(name.clone(), style) } else { Span::raw(" ".repeat(wide + 2)) };
        let mut line = Line::from(title);
        line.extend(strip);
        if is_first {
            let entries = figures::count(node.entries() as f64);
            line.extend(numbered(&figures::percent(idle), idle, columns.bar, look.idle(), look));
            line.extend(numbered(&entries, share, columns.bar, look.accent(), look));
        }
        line
    };
    strips.into_iter().enumerate().map(line).collect()
}

/// Name, speed, share of the data, traffic, queue and memory of a node; for a lost one since when and why.
pub(crate) fn figures_line(app: &App, node: &Node, look: Look, width: u16) -> Line<'static> {
    let title = Span::styled(format!(" {} ", node.name()), look.accent().patch(look.strong()));
    figures_after(title, app, node, look, (width, Holds::IfWide))
}

/// Where what a node holds is said in words.
#[derive(PartialEq)]
enum Holds {
    /// Beside its share, where there is room for both.
    IfWide,
    /// The same, else in place of its share.
    InPlace,
}

fn figures_after(
    title: Span<'static>,
    app: &App,
    node: &Node,
    look: Look,
    (width, holds): (u16, Holds),
) -> Line<'static> {
    let model = app.model();
    if let Some(loss) = &node.loss {
        let age = figures::age(model.now.saturating_sub(loss.at));
        let (what, style) = if loss.is_meant { ("left", look.faint()) } else { ("LOST", look.alarm()) };
        let text = format!(" {what} {age} ago: {} ", loss.reason);
        return Line::from(vec![title, Span::styled(text, style)]);
    }
    let mut spans = vec![title];
    let silence = model.silence(node);
    if silence.as_secs() >= SILENT && model.end.is_none() {
        spans.push(Span::styled(format!(" silent for {} ", figures::age(silence)), look.alarm()));
        spans.push(Span::raw(" "));
    }
    let speed = node.speed();
    if speed > 0.0 {
        spans.push(Span::raw(format!("speed {speed:.2} ")));
    }
    if let Some(slowdown) = model.slowdown_of(node.last.node) {
        spans.push(Span::styled(format!("x{:.2}", slowdown.delivered), look.alarm()));
        spans.push(Span::raw(" "));
    }
    let is_wide = width >= 100;
    let says = !node.info.holds.is_empty() && (is_wide || holds == Holds::InPlace);
    if let Some(share) = node.info.share.filter(|_| is_wide || !says) {
        spans.push(Span::raw(format!("data {} ", figures::percent(share))));
    }
    if says {
        spans.push(Span::raw(format!("{} ", node.info.holds)));
    }
    let rates = node.rates();
    let (out, into) = (look.pick("↑", "out "), look.pick("↓", "in "));
    spans.push(Span::styled(out, look.faint()));
    let sent = figures::bytes(rates.sent_bytes);
    spans.push(Span::raw(format!("{}/s {sent}/s ", figures::count(rates.sent_messages))));
    spans.push(Span::styled(into, look.faint()));
    let received = figures::bytes(rates.received_bytes);
    spans.push(Span::raw(format!("{}/s {received}/s ", figures::count(rates.received_messages))));
    let queue = figures::count(node.queue() as f64);
    spans.push(Span::raw(format!("q {queue} ")));
    if width >= 120 {
        spans.push(Span::raw(format!("({}) ", figures::bytes(node.queue_bytes() as f64))));
    }
    let memory = figures::bytes(node.last.memory_bytes as f64);
    let limit = node.info.memory_limit_bytes;
    let tight = limit.is_some_and(|limit| node.last.memory_bytes as f64 > 0.9 * limit as f64);
    let limit = limit.map(|limit| format!("/{}", figures::bytes(limit as f64))).unwrap_or_default();
    let style = if tight { look.alarm() } else { ratatui::style::Style::new() };
    spans.push(Span::styled(format!("mem {memory}{limit} "), style));
    if is_wide {
        let host =
            format!("{}  {}  {}", figures::things(node.pes.len(), "PE"), node.info.host, node.info.cpu);
        spans.push(Span::styled(host, look.faint()));
    }
    Line::from(spans)
}
