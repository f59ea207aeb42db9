//! The PE screen: per PE the three bars of 1995 - computation over time, cumulative idle time, entries processed -
//! under a line with its node's figures (metacomputer report 1995, "load window").

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::{nodes, page, put};
use crate::app::{App, Sort};
use crate::figures;
use crate::input::Spot;
use crate::model::Model;
use crate::model::history::Times;
use crate::model::node::{Node, Pe};

/// Most lines of a computation bar.
const TALLEST: usize = 4;
/// Columns of a node's name where there is not much room: `localhost` fits.
pub(crate) const NAME: usize = 9;

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
            NAME
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

/// Says where a click chooses a PE.
pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) -> Vec<Spot> {
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
        return Vec::new();
    }
    let most = pes.iter().map(|(_, pe)| pe.last.entries).max().unwrap_or(0);
    let selected = app.choice.selected.min(pes.len() - 1);
    let lines = usize::from(area.height);
    let is_first = |place: usize| place == 0 || pes[place - 1].0.last.node != pes[place].0.last.node;
    let count = (0..pes.len()).filter(|place| is_first(*place)).count();
    // Where there is no room for the figures of nodes, one with a single PE does without them.
    let is_crowded = columns.name > 0 && pes.len() + count > lines;
    let is_headed = |place: usize| {
        let node = pes[place].0;
        grouped && !(is_crowded && node.pes.len() == 1 && node.loss.is_none())
    };
    let begins = |place: usize| is_headed(place) && is_first(place);
    let tall = tall(lines, pes.len(), (0..pes.len()).filter(|place| begins(*place)).count());
    let heights: Vec<usize> =
        (0..pes.len()).map(|place| tall + usize::from(tall > 1) + usize::from(begins(place))).collect();
    let paged = heights.iter().sum::<usize>() > lines;
    // A page may begin in the middle of a node, whose line is then repeated.
    let range = page(
        &heights,
        selected,
        lines.saturating_sub(usize::from(paged) + usize::from(paged && grouped && lines > 4)).max(1),
    );
    let (begin, end) = (range.start, range.end);
    let (mut line, mut spots) = (0, Vec::new());
    for place in range {
        let (node, pe) = pes[place];
        if begins(place) || (is_headed(place) && place == begin && lines > 4) {
            put(frame, area, line, nodes::figures_line(app, node, look, area.width));
            line += 1;
        }
        spots.push(super::item(area, line, tall, place));
        for content in rows(app, (node, pe), most, &columns, place == selected, tall, look) {
            put(frame, area, line, content);
            line += 1;
        }
        line += usize::from(tall > 1);
    }
    if paged && lines > 1 {
        let text = format!(" PEs {}-{} of {}: PgUp PgDn", begin + 1, end, pes.len());
        put(frame, area, lines - 1, Line::styled(text, look.faint()));
    }
    spots
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

/// Lines of a computation bar: more than one where all items, with `fixed` other lines, leave room for two and a gap.
pub(crate) fn tall(lines: usize, items: usize, fixed: usize) -> usize {
    let room = lines.saturating_sub(fixed) / items.max(1);
    if room >= 3 { (room - 1).min(TALLEST) } else { 1 }
}

fn gap(text: &mut String, bar: usize) {
    if bar > 0 {
        text.push_str(&" ".repeat(bar + 1));
    }
}

/// The lines of one PE, from the top: only the computation bar is on all of them.
fn rows(
    app: &App,
    (node, pe): (&Node, &Pe),
    most: u64,
    columns: &Columns,
    chosen: bool,
    tall: usize,
    look: Look,
) -> Vec<Line<'static>> {
    let mark = if chosen { look.pick("▸", ">") } else { " " };
    let number = format!("{mark}{:>4} ", pe.last.pe);
    let mut spans = vec![Span::styled(number, if chosen { look.selected() } else { look.strong() })];
    if columns.name > 0 {
        spans.push(Span::raw(figures::fit(&node.name(), columns.name) + " "));
    }
    let (letter, style) = match &node.loss {
        Some(loss) if loss.is_meant => ("-", look.faint()),
        Some(_) => ("X", look.alarm()),
        None => look.state(pe.last.state),
    };
    spans.push(Span::styled(letter, style));
    spans.push(Span::raw(" "));
    let indent = " ".repeat(spans.iter().map(Span::width).sum());
    let history = |from, to| pe.history.between(from, to);
    let mut strips =
        strips(app.model(), app.column(columns.strip), columns.strip, tall, history, look).into_iter();
    spans.extend(strips.next().unwrap_or_default());
    let life = pe.lifetime();
    let idle = life.share(life.idle);
    let share = if most == 0 { 0.0 } else { pe.last.entries as f64 / most as f64 };
    if columns.numbers() {
        let entries = figures::count(pe.last.entries as f64);
        spans.extend(numbered(&figures::percent(idle), idle, columns.bar, look.idle(), look));
        spans.extend(numbered(&entries, share, columns.bar, look.accent(), look));
    }
    if columns.queue > 0 {
        spans.push(Span::raw(format!("{:>6}", figures::count(pe.last.queue_messages as f64))));
    }
    if columns.entry > 0 {
        spans.push(Span::raw(format!(" {}", figures::fit(&pe.last.entry, columns.entry))));
    }
    let mut lines = vec![Line::from(spans)];
    for strip in strips {
        let mut line = Line::raw(indent.clone());
        line.extend(strip);
        lines.push(line);
    }
    lines
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

/// The computation bar, its lines from the top: one column per `column` nanoseconds, the newest on the right.
pub(crate) fn strips(
    model: &Model,
    column: i64,
    width: usize,
    tall: usize,
    between: impl Fn(i64, i64) -> Times,
    look: Look,
) -> Vec<Vec<Span<'static>>> {
    let newest = (model.edge() - 1).div_euclid(column);
    let count = i64::try_from(width).unwrap_or(0);
    let times: Vec<Times> =
        (newest - count + 1..=newest).map(|number| between(number * column, (number + 1) * column)).collect();
    let rows = u16::try_from(tall).unwrap_or(1).max(1);
    let glyph = |times: &Times, row| {
        let (glyph, style) = if rows == 1 { look.cell(*times) } else { look.stacked(*times, row, rows) };
        Span::styled(glyph, style)
    };
    (0..rows).rev().map(|row| times.iter().map(|times| glyph(times, row)).collect()).collect()
}
