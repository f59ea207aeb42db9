//! The map of many nodes: a cell for each PE or, where these have no room, for one or several nodes. A cell is a colour by
//! how much was computed in the last seconds, and a character that says the same without colours.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::pes::NAME;
use super::{nodes, put, spread};
use crate::app::{App, RECENT};
use crate::figures;
use crate::input::{Command, Spot};
use crate::model::history::Times;
use crate::model::node::{Node, Pe};

/// Columns of a node's mark and name, with the gap behind them.
const LABEL: usize = 1 + NAME + 1;
/// Columns of the percentage of a node, and the gap to the next one.
const PERCENT: usize = 5 + 2;

/// How nodes are laid out.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    what: Cells,
    /// Nodes in a line.
    in_line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Cells {
    /// Each node has a name, a cell for each PE, and a percentage.
    Named(usize),
    /// Each line begins with the name of its first node, and each node has a cell for each PE.
    Pes(usize),
    /// The same with a cell for so many nodes.
    Nodes(usize),
}

impl Layout {
    /// The first that has room for so many nodes, of which the largest has so many PEs.
    fn new(count: usize, pes: usize, width: usize, lines: usize) -> Self {
        let pes = pes.max(1);
        let cells = width.saturating_sub(LABEL + 1).max(1);
        let layout = |what, in_line| Self { what, in_line };
        let named = layout(Cells::Named(pes), width / (LABEL + pes + PERCENT));
        let by_pe = layout(Cells::Pes(pes), tens(count, (cells + 1) / (pes + 1), lines));
        let each = |nodes: usize| {
            layout(Cells::Nodes(nodes), tens(count.div_ceil(nodes), cells, lines).saturating_mul(nodes))
        };
        let all = [named, by_pe].into_iter().chain((1..=count.max(1)).map(each));
        let fits = |layout: &Self| layout.in_line > 0 && count.div_ceil(layout.in_line) <= lines;
        all.into_iter().find(fits).unwrap_or(each(count.max(1)))
    }

    /// What a cell is, in words.
    fn words(self, nodes: usize) -> String {
        match self.what {
            Cells::Named(_) | Cells::Pes(_) => "each cell is a PE".into(),
            Cells::Nodes(1) => "each cell is a node: its PEs have no room".into(),
            Cells::Nodes(of) => format!("each cell is {of} nodes: {nodes} have no room"),
        }
    }
}

/// Of cells in a line a multiple of ten if all have room so, for people who count.
fn tens(count: usize, in_line: usize, lines: usize) -> usize {
    let round = in_line / 10 * 10;
    if round > 0 && count.div_ceil(round) <= lines { round } else { in_line }
}

/// Says where a click chooses a node.
pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) -> Vec<Spot> {
    let nodes = app.nodes();
    let Some(last) = nodes.len().checked_sub(1) else {
        put(frame, area, 0, Line::styled(" no node to show", look.faint()));
        return Vec::new();
    };
    let selected = app.choice.selected.min(last);
    let (title, rest) = super::split(area, 1);
    let (body, foot) = super::split(rest, rest.height.saturating_sub(1));
    let most = nodes.iter().map(|node| node.pes.len()).max().unwrap_or(0);
    let layout = Layout::new(nodes.len(), most, area.width.into(), body.height.into());
    put(frame, title, 0, titles(layout.words(nodes.len()), area.width, look));
    put(frame, foot, 0, nodes::figures_line(app, nodes[selected], look, area.width));
    let map = Map { nodes: &nodes, selected, look, edge: app.model().edge() };
    let mut spots = Vec::new();
    for (number, first) in (0..nodes.len()).step_by(layout.in_line.max(1)).enumerate() {
        let (line, placed) = map.line(layout, first);
        put(frame, body, number, line);
        spots.extend(placed.into_iter().filter_map(|(columns, place)| {
            let y = body.y.checked_add(u16::try_from(number).ok()?)?;
            let x = body.x.checked_add(u16::try_from(columns.start).ok()?)?;
            let area = Rect::new(x, y, u16::try_from(columns.len()).ok()?, 1).intersection(body);
            Some(Spot { area, does: Command::Choose(place) })
        }));
    }
    spots
}

/// What a cell is, and what its colours are.
fn titles(what: String, width: u16, look: Look) -> Line<'static> {
    let left = vec![Span::styled(format!(" {what}; Enter opens the node"), look.faint())];
    let scale = [0, 85, 170, 255].map(|step| look.heated(" ", f64::from(step) / 255.0));
    if scale.iter().any(|cell| cell.style.bg.is_none()) {
        return Line::from(left);
    }
    let mut right = vec![Span::styled("computing 0% ", look.faint())];
    right.extend(scale);
    right.push(Span::styled(" 100% ", look.faint()));
    spread(left, right, width)
}

struct Map<'a> {
    nodes: &'a [&'a Node],
    selected: usize,
    look: Look,
    edge: i64,
}

impl Map<'_> {
    /// A line from this node on, and at which columns a click chooses which node.
    fn line(&self, layout: Layout, first: usize) -> (Line<'static>, Vec<(std::ops::Range<usize>, usize)>) {
        let all = first..(first + layout.in_line).min(self.nodes.len());
        let (mut line, mut placed) = (Line::default(), Vec::new());
        if !matches!(layout.what, Cells::Named(_)) {
            line.push_span(self.label(first, all.contains(&self.selected)));
        }
        let step = if let Cells::Nodes(of) = layout.what { of } else { 1 };
        for place in all.clone().step_by(step) {
            let begin = line.width();
            match layout.what {
                Cells::Named(pes) => self.named(place, pes, &mut line),
                Cells::Pes(pes) => {
                    self.cells(place, pes, &mut line);
                    line.push_span(Span::raw(" "));
                }
                Cells::Nodes(of) => line.push_span(self.cell_of(place..(place + of).min(all.end))),
            }
            placed.push((begin..line.width(), place));
        }
        (line, placed)
    }

    fn label(&self, place: usize, is_marked: bool) -> Span<'static> {
        let mark = if is_marked { self.look.pick("▸", ">") } else { " " };
        let style = if is_marked { self.look.strong() } else { self.look.faint() };
        Span::styled(format!("{mark}{} ", figures::fit(&self.nodes[place].name(), NAME)), style)
    }

    fn named(&self, place: usize, pes: usize, line: &mut Line<'static>) {
        let node = self.nodes[place];
        line.push_span(self.label(place, place == self.selected));
        self.cells(place, pes, line);
        let times = node.between(self.edge - RECENT, self.edge);
        let percent =
            if node.loss.is_some() { "-".into() } else { figures::percent(times.share(times.working())) };
        line.push_span(Span::styled(format!("{percent:>5}  "), self.look.faint()));
    }

    /// The cells of a node's PEs, as wide as those of the largest node.
    fn cells(&self, place: usize, width: usize, line: &mut Line<'static>) {
        let node = self.nodes[place];
        let cells =
            node.pes.iter().map(|pe| self.cell(self.times(pe), node.loss.as_ref().map(|loss| loss.is_meant)));
        let cells: Vec<Span<'static>> = cells.map(|cell| self.marked(cell, place == self.selected)).collect();
        let rest = width.saturating_sub(cells.len());
        line.extend(cells);
        line.push_span(Span::raw(" ".repeat(rest)));
    }

    /// A cell of all PEs of these nodes; a lost one is not hidden behind the others.
    fn cell_of(&self, places: std::ops::Range<usize>) -> Span<'static> {
        let nodes = &self.nodes[places.clone()];
        let times = nodes.iter().map(|node| node.between(self.edge - RECENT, self.edge));
        let is_lost = nodes.iter().any(|node| node.loss.as_ref().is_some_and(|loss| !loss.is_meant));
        let has_left = nodes.iter().all(|node| node.has_left());
        let cell =
            self.cell(times.fold(Times::default(), Times::plus), (is_lost || has_left).then_some(!is_lost));
        self.marked(cell, places.contains(&self.selected))
    }

    fn times(&self, pe: &Pe) -> Times {
        pe.history.between(self.edge - RECENT, self.edge)
    }

    /// The character and colour of what was done; `loss` says of a node that is gone whether that was meant.
    fn cell(&self, times: Times, loss: Option<bool>) -> Span<'static> {
        match loss {
            Some(true) => Span::styled("-", self.look.faint()),
            Some(false) => Span::styled("X", self.look.alarm()),
            None if times.total() == 0 => Span::styled("?", self.look.faint()),
            None => {
                let times = self.look.told(times);
                let (letter, style) = self.look.letters().cell(times);
                let cell = self.look.heated(letter, times.share(times.compute));
                if cell.style.bg.is_none() { Span::styled(letter, style) } else { cell }
            }
        }
    }

    fn marked(&self, cell: Span<'static>, is_selected: bool) -> Span<'static> {
        if is_selected { cell.patch_style(self.look.selected()) } else { cell }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_has_room_is_shown_of_each_node() {
        let of = |count, pes, width, lines| {
            let Layout { what, in_line } = Layout::new(count, pes, width, lines);
            (what, in_line)
        };
        assert_eq!(of(20, 4, 80, 17), (Cells::Named(4), 3));
        assert_eq!(of(100, 1, 80, 17), (Cells::Pes(1), 30));
        assert_eq!(of(100, 8, 80, 17), (Cells::Pes(8), 7));
        assert_eq!(of(1000, 4, 80, 17), (Cells::Nodes(1), 60));
        assert_eq!(of(1000, 4, 200, 43), (Cells::Pes(4), 30));
        assert_eq!(of(4000, 4, 80, 17), (Cells::Nodes(4), 240));
        for (count, pes, width, lines) in
            (0..9).flat_map(|at| (0..9).map(move |by| (at * 97, at, by * 13, by * 7)))
        {
            let Layout { what, in_line } = Layout::new(count, pes, width, lines);
            assert!(in_line >= 1 && (lines == 0 || count.div_ceil(in_line) <= lines), "{what:?} {in_line}");
        }
    }
}
