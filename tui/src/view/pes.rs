//! The PE screen: per PE the three bars of 1995 - computation over time, cumulative idle time, entries processed -
//! under a line with its node's figures (metacomputer report 1995, "load window").

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::{figures, nodes, page, put};
use crate::app::{App, Sort};
use crate::model::Model;
use crate::model::history::Times;
use crate::model::node::{Node, Pe};

/// Widths of the columns at the width of the window; 0 leaves a column out.
pub(crate) struct Columns {
    pub(crate) name: usize,
    pub(crate) strip: usize,
    pub(crate) bar: usize,
    pub(crate) entry: usize,
    pub(crate) queue: usize,
}

impl Columns {
    pub(crate) fn new(width: u16) -> Self {
        let width = usize::from(width);
        let name = if width >= 110 {
            14
        } else if width >= 60 {
            8
        } else {
            0
        };
        let bar = if width >= 160 {
            16
        } else if width >= 110 {
            12
        } else if width >= 60 {
            6
        } else {
            0
        };
        let queue = if width >= 70 { 6 } else { 0 };
        let entry = if width >= 120 { 22 } else { 0 };
        let spaces = [name, entry].iter().filter(|column| **column > 0).count() + if bar > 0 { 2 } else { 0 };
        // Mark, PE number, state, and the numbers of the two bars with the gaps before them.
        let fixed = 1 + 5 + 1 + 2 + if width >= 40 { 7 + 7 } else { 0 };
        let strip = width.saturating_sub(fixed + name + 2 * bar + queue + entry + spaces);
        Self { name, strip, bar, entry, queue }
    }

    fn numbers(&self) -> bool {
        self.strip > 0 && (self.bar > 0 || self.strip >= 14)
    }
}

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) {
    let columns = Columns::new(area.width);
    let pes = app.pes();
    let grouped = app.choice.sort == Sort::Pe;
    put(frame, area, 0, titles(&columns, look));
    let area = super::split(area, 1).1;
    if pes.is_empty() {
        let lost: Vec<&Node> = app.nodes();
        for (line, node) in lost.iter().enumerate() {
            put(frame, area, line, nodes::figures_line(app, node, look, area.width));
        }
        let text = if app.model().nodes.is_empty() { " no node has reported yet" } else { " no PE to show" };
        put(frame, area, lost.len(), Line::styled(text, look.faint()));
        return;
    }
    let most = pes.iter().map(|(_, pe)| pe.last.entries).max().unwrap_or(0);
    let selected = app.choice.selected.min(pes.len() - 1);
    let begins =
        |place: usize| grouped && (place == 0 || pes[place - 1].0.last.node != pes[place].0.last.node);
    let heights: Vec<usize> = (0..pes.len()).map(|place| if begins(place) { 2 } else { 1 }).collect();
    let lines = usize::from(area.height);
    let paged = heights.iter().sum::<usize>() > lines;
    // A page may begin in the middle of a node, whose line is then repeated.
    let range = page(
        &heights,
        selected,
        lines.saturating_sub(usize::from(paged) + usize::from(paged && grouped && lines > 4)).max(1),
    );
    let (begin, end) = (range.start, range.end);
    let mut line = 0;
    for place in range {
        let (node, pe) = pes[place];
        if begins(place) || (grouped && place == begin && lines > 4) {
            put(frame, area, line, nodes::figures_line(app, node, look, area.width));
            line += 1;
        }
        put(frame, area, line, row(app, (node, pe), most, &columns, place == selected, look));
        line += 1;
    }
    if paged && lines > 1 {
        let text = format!(" PEs {}-{} of {}: PgUp PgDn", begin + 1, end, pes.len());
        put(frame, area, lines - 1, Line::styled(text, look.faint()));
    }
}

/// Column titles above the rows.
fn titles(columns: &Columns, look: Look) -> Line<'static> {
    let mut text = String::from("   PE ");
    if columns.name > 0 {
        text.push_str(&figures::fit("node", columns.name + 1));
    }
    text.push_str("S ");
    text.push_str(&figures::fit("computation over time", columns.strip));
    if columns.numbers() {
        text.push_str("   idle");
        gap(&mut text, columns.bar);
        text.push_str("entries");
        gap(&mut text, columns.bar);
    }
    if columns.queue > 0 {
        text.push_str(" queue");
    }
    if columns.entry > 0 {
        text.push_str(" entry method");
    }
    Line::styled(text, look.faint())
}

fn gap(text: &mut String, bar: usize) {
    if bar > 0 {
        text.push_str(&" ".repeat(bar + 1));
    }
}

fn row(
    app: &App,
    (node, pe): (&Node, &Pe),
    most: u64,
    columns: &Columns,
    chosen: bool,
    look: Look,
) -> Line<'static> {
    let mark = if chosen { look.pick("▸", ">") } else { " " };
    let number = format!("{mark}{:>4} ", pe.last.pe);
    let mut spans = vec![Span::styled(number, if chosen { look.selected() } else { look.strong() })];
    if columns.name > 0 {
        spans.push(Span::raw(figures::fit(&node.name(), columns.name + 1)));
    }
    let (letter, style) = if node.loss.is_some() { ("X", look.alarm()) } else { look.state(pe.last.state) };
    spans.push(Span::styled(letter, style));
    spans.push(Span::raw(" "));
    let history = |from, to| pe.history.between(from, to);
    spans.extend(strip(app.model(), app.choice.column(), columns.strip, history, look));
    if columns.numbers() {
        let life = pe.lifetime();
        let idle = life.share(life.idle);
        spans.extend(numbered(&figures::percent(idle), idle, columns.bar, look.idle(), look));
        let share = if most == 0 { 0.0 } else { pe.last.entries as f64 / most as f64 };
        let text = figures::count(pe.last.entries as f64);
        spans.extend(numbered(&text, share, columns.bar, look.accent(), look));
    }
    if columns.queue > 0 {
        spans.push(Span::raw(format!("{:>6}", figures::count(pe.last.queue_messages as f64))));
    }
    if columns.entry > 0 {
        spans.push(Span::raw(format!(" {}", figures::fit(&pe.last.entry, columns.entry))));
    }
    Line::from(spans)
}

/// A number of seven columns and its bar.
pub(crate) fn numbered(
    number: &str,
    share: f64,
    bar: usize,
    style: ratatui::style::Style,
    look: Look,
) -> Vec<Span<'static>> {
    let mut spans = vec![Span::raw(format!("{number:>7}"))];
    if bar > 0 {
        spans.push(Span::raw(" "));
        spans.extend(look.bar(share, bar, style));
    }
    spans
}

/// The computation bar: one column per `column` nanoseconds, the newest on the right.
pub(crate) fn strip(
    model: &Model,
    column: i64,
    width: usize,
    between: impl Fn(i64, i64) -> Times,
    look: Look,
) -> Vec<Span<'static>> {
    let newest = (model.edge() - 1).div_euclid(column);
    let count = i64::try_from(width).unwrap_or(0);
    let cells = (newest - count + 1..=newest).map(|number| {
        let (glyph, style) = look.cell(between(number * column, (number + 1) * column));
        Span::styled(glyph, style)
    });
    cells.collect()
}
