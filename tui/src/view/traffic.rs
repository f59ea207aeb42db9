//! The screen of traffic between nodes: a matrix with numbers where it fits, else one of shades, and the busiest links.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use std::collections::BTreeMap;

use super::look::Look;
use super::{put, rows_of, split};
use crate::app::App;
use crate::figures;
use crate::input::Spot;
use crate::model::Model;
use crate::model::profile::Link;

/// Columns of a node's name.
const NAME: usize = 9;
/// Columns of a number and its mark.
const CELL: usize = 9;
/// Columns that a list of links needs to say also how long messages are on their way.
const WITH_WAYS: u16 = 72;
/// Lines that the list of links gets at least.
const LIST: usize = 5;

/// What cells and lists are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unit {
    #[default]
    BytesPerSecond,
    MessagesPerSecond,
    Bytes,
    Messages,
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BytesPerSecond => "bytes/s",
            Self::MessagesPerSecond => "msg/s",
            Self::Bytes => "bytes in all",
            Self::Messages => "messages in all",
        }
    }

    pub(crate) fn next(self) -> Self {
        match self {
            Self::BytesPerSecond => Self::MessagesPerSecond,
            Self::MessagesPerSecond => Self::Bytes,
            Self::Bytes => Self::Messages,
            Self::Messages => Self::BytesPerSecond,
        }
    }

    fn of(self, link: &Link) -> f64 {
        match self {
            Self::BytesPerSecond => link.bytes_per_s,
            Self::MessagesPerSecond => link.messages_per_s,
            Self::Bytes => link.bytes as f64,
            Self::Messages => link.messages as f64,
        }
    }

    fn figure(self, value: f64) -> String {
        match self {
            Self::BytesPerSecond | Self::Bytes => figures::bytes(value),
            Self::MessagesPerSecond | Self::Messages => figures::count(value),
        }
    }
}

/// Says where a click chooses a line.
pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) -> Vec<Spot> {
    let (model, unit) = (app.model(), app.choice.unit);
    let mut links = model.links(&app.nodes());
    links.sort_by(|one, other| unit.of(other).total_cmp(&unit.of(one)));
    let most = links.first().map_or(0.0, |link| unit.of(link));
    let senders: Vec<u16> = app.nodes().iter().map(|node| node.last.node).collect();
    let mut receivers: Vec<u16> = model.nodes.keys().copied().collect();
    if links.iter().any(|link| link.to == 0) && !receivers.contains(&0) {
        receivers.push(0);
    }
    let matrix = Matrix { model, senders, receivers, links: &links, most, unit, look };
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let room = height.saturating_sub(LIST + 2);
    let lines = if links.is_empty() || matrix.senders.len() > room {
        Vec::new()
    } else if NAME + CELL * matrix.receivers.len() <= width {
        matrix.numbers()
    } else if NAME + matrix.receivers.len() <= width {
        matrix.shades()
    } else {
        Vec::new()
    };
    let above = u16::try_from(lines.len()).unwrap_or(0);
    let (top, rest) = split(area, above);
    for (number, line) in lines.into_iter().enumerate() {
        put(frame, top, number, line);
    }
    draw_list(frame, split(rest, u16::from(above > 0)).1, app, &links, look)
}

struct Matrix<'a> {
    model: &'a Model,
    senders: Vec<u16>,
    receivers: Vec<u16>,
    links: &'a [Link],
    most: f64,
    unit: Unit,
    look: Look,
}

impl Matrix<'_> {
    /// The value of each link there is.
    fn values(&self) -> BTreeMap<(u16, u16), f64> {
        self.links.iter().map(|link| ((link.from, link.to), self.unit.of(link))).collect()
    }

    fn label(&self, node: u16) -> Span<'static> {
        let name = figures::fit(&self.model.name_of(node), NAME - 2);
        Span::styled(format!(" {name} "), self.look.strong())
    }

    /// A line of titles and one for each sender, with a figure for each receiver.
    fn numbers(&self) -> Vec<Line<'static>> {
        let values = self.values();
        let mut titles = format!(" {:<width$}", "to:", width = NAME - 1);
        for node in &self.receivers {
            titles.push_str(&format!(
                "{:>width$} ",
                figures::fit(&self.model.name_of(*node), CELL - 1).trim_end(),
                width = CELL - 1
            ));
        }
        let cell = |from: u16, to: u16| match values.get(&(from, to)).copied().unwrap_or(0.0) {
            _ if from == to => Span::styled(format!("{:>width$} ", "-", width = CELL - 1), self.look.faint()),
            0.0 => Span::styled(
                format!("{:>width$} ", self.look.pick("·", "."), width = CELL - 1),
                self.look.faint(),
            ),
            value => {
                // Half of the busiest link's and more.
                let is_busy = value >= self.most / 2.0;
                let (mark, style) =
                    if is_busy { ("*", self.look.core_wait()) } else { (" ", self.look.accent()) };
                Span::styled(format!("{:>width$}{mark}", self.unit.figure(value), width = CELL - 1), style)
            }
        };
        let row = |from: &u16| {
            let mut line = Line::from(self.label(*from));
            self.receivers.iter().for_each(|to| line.push_span(cell(*from, *to)));
            line
        };
        std::iter::once(Line::styled(titles, self.look.faint())).chain(self.senders.iter().map(row)).collect()
    }

    /// The same with one shade for each receiver.
    fn shades(&self) -> Vec<Line<'static>> {
        let values = self.values();
        let shade = |from: u16, to: u16| {
            let value = values.get(&(from, to)).copied().unwrap_or(0.0);
            let share = if self.most > 0.0 { value / self.most } else { 0.0 };
            if from == to { Span::styled("-", self.look.faint()) } else { self.look.shade(share) }
        };
        let row = |from: &u16| {
            let mut line = Line::from(self.label(*from));
            self.receivers.iter().for_each(|to| line.push_span(shade(*from, *to)));
            line
        };
        let title = format!(" from     to each of {} nodes, in their order", self.receivers.len());
        std::iter::once(Line::styled(title, self.look.faint())).chain(self.senders.iter().map(row)).collect()
    }
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, app: &App, links: &[Link], look: Look) -> Vec<Spot> {
    let unit = app.choice.unit;
    let model = app.model();
    let ways = if area.width >= WITH_WAYS { model.ways() } else { Vec::new() };
    let has_ways = !ways.is_empty();
    let name = usize::from(area.width).saturating_sub(37).clamp(15, 26);
    let title = format!(
        " {}{:>9}{:>9}{:>9}{:>9}{}",
        figures::fit(&format!("busiest by {}", unit.name()), name),
        "bytes/s",
        "msg/s",
        "bytes",
        "messages",
        if has_ways { "   on way" } else { "" }
    );
    // Of both directions together: the clocks of two nodes say no more.
    let way = |link: &Link| {
        let between = (link.from.min(link.to), link.from.max(link.to));
        let way = ways.iter().find(|way| way.nodes == between);
        way.map_or_else(String::new, |way| format!("{:.2}ms", way.ns as f64 / 1e6))
    };
    put(frame, area, 0, Line::styled(title, look.faint()));
    let rest = split(area, 1).1;
    if links.is_empty() {
        put(frame, rest, 0, Line::styled(" nothing has been sent between nodes yet", look.faint()));
        return Vec::new();
    }
    let most = links.first().map_or(0.0, |link| unit.of(link));
    let bar = usize::from(area.width).saturating_sub(if has_ways { 73 } else { 64 }).min(40);
    let line = |link: &Link| {
        let (from, to) = (model.name_of(link.from), model.name_of(link.to));
        let arrow = look.pick("→", "->");
        let mut line = Line::from(format!(
            " {}{:>9}{:>9}{:>9}{:>9}{}",
            figures::fit(&format!("{from} {arrow} {to}"), name),
            figures::bytes(link.bytes_per_s),
            figures::count(link.messages_per_s),
            figures::bytes(link.bytes as f64),
            figures::count(link.messages as f64),
            if has_ways { format!("{:>9} ", way(link)) } else { " ".into() }
        ));
        if bar > 5 && most > 0.0 {
            line.extend(look.bar(unit.of(link) / most, bar, look.accent()));
        }
        line
    };
    rows_of(frame, rest, links.iter().map(line).collect(), app.choice.row, "links", look)
}
