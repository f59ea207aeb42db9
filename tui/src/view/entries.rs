//! The screen of entry methods: what each has cost on the nodes that are shown, the slowest single calls where there is room,
//! and below, what runs now on each PE.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use runtime::monitor::wire::PeState;
use std::time::Duration;

use super::look::Look;
use super::pes::NAME;
use super::{put, rows_of, split};
use crate::app::App;
use crate::figures;
use crate::input::Spot;
use crate::model::node::{Node, Pe};
use crate::model::profile::EntrySum;
use crate::model::slowest::SlowCall;

/// The slowest calls have no fewer lines.
const SLOW_MIN: u16 = 4;

/// Widths of the columns at the width of the window; 0 leaves a column out.
struct Columns {
    name: usize,
    bar: usize,
    /// Which PE, and when.
    place: usize,
    element: usize,
}

impl Columns {
    fn new(width: u16) -> Self {
        let width = usize::from(width);
        let bar = if width >= 160 { 24 } else { width.saturating_sub(80).min(16) };
        let (place, element) = (if width >= 74 { 14 } else { 0 }, if width >= 110 { 16 } else { 0 });
        // Mark, the numbers, and the gaps before the optional columns.
        let fixed = 1 + 7 + 8 + 6 + 7 + 8 + usize::from(bar > 0);
        Self { name: width.saturating_sub(fixed + bar + place + element).min(60), bar, place, element }
    }
}

/// Says where a click chooses a line.
pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) -> Vec<Spot> {
    let entries = app.model().entries(&app.nodes());
    let columns = Columns::new(area.width);
    let pes = running(app);
    // The entry methods take what they need, and no more than half where the PEs need the rest.
    let wanted = u16::try_from(entries.len().max(1) + 1).unwrap_or(u16::MAX);
    let below = u16::try_from(pes.len() + 2).unwrap_or(u16::MAX);
    let above = wanted.min(area.height.saturating_sub(below).max(area.height / 2 + 1));
    let (top, rest) = split(area, above);
    put(frame, top, 0, titles(&columns, look));
    let top = split(top, 1).1;
    if entries.is_empty() {
        put(frame, top, 0, Line::styled(" no entry method has been timed yet", look.faint()));
    }
    let all: u64 = entries.iter().fold(0, |sum, entry| sum.saturating_add(entry.ns));
    let recent: u64 = entries.iter().fold(0, |sum, entry| sum.saturating_add(entry.recent_ns));
    let lines = entries.iter().enumerate().map(|(place, entry)| {
        let chosen = place == app.choice.row.min(entries.len() - 1);
        row(entry, (all, recent), &columns, chosen, look)
    });
    let spots = rows_of(frame, top, lines.collect(), app.choice.row, "entry methods", look);
    let calls = app.model().slowest(&app.nodes());
    // They leave to the PEs what these need, or half.
    let wanted = u16::try_from(calls.len() + 2).unwrap_or(u16::MAX);
    let height = wanted.min(rest.height.saturating_sub(below).max(rest.height / 2));
    let (slow, rest) = split(rest, if height >= SLOW_MIN && !calls.is_empty() { height } else { 0 });
    draw_slowest(frame, slow, &calls, &columns, look);
    let rest = split(rest, u16::from(rest.height > 3)).1;
    put(
        frame,
        rest,
        0,
        Line::styled("   PE node      S runs now, or ran last              for", look.faint()),
    );
    let rest = split(rest, 1).1;
    rows_of(frame, rest, pes.into_iter().map(|pe| now(pe, look)).collect(), 0, "PEs", look);
    spots
}

/// The slowest calls, under a blank line and a title.
fn draw_slowest(
    frame: &mut Frame<'_>,
    area: Rect,
    calls: &[(&SlowCall, &str, String)],
    columns: &Columns,
    look: Look,
) {
    let name = figures::fit("slowest calls that are known", columns.name);
    let title = format!(" {name}{:>8}{:>6}{:>9}  {} element", "time", "PE", "at", figures::fit("node", NAME));
    put(frame, area, 1, Line::styled(title, look.faint()));
    for (line, (call, entry, node)) in calls.iter().enumerate() {
        let at = figures::moment(Duration::from_nanos(call.at_ns));
        let mut row = Line::raw(format!(
            " {}{:>8}{:>6}{at:>9}  {} ",
            figures::fit(entry, columns.name),
            look.time(call.ns),
            call.pe,
            figures::fit(node, NAME)
        ));
        let element = match call.element.as_deref() {
            None => "?",
            Some("") => "(several)",
            Some(element) => element,
        };
        row.push_span(Span::styled(element.to_owned(), look.faint()));
        put(frame, area, line + 2, row);
    }
}

fn titles(columns: &Columns, look: Look) -> Line<'static> {
    let mut text = format!(" {}", figures::fit("entry method", columns.name));
    text.push_str(&format!("{:>7}{:>8}{:>6}", "calls", "time", "part"));
    if columns.bar > 0 {
        text.push_str(&format!(" {}", figures::fit("last 2 s", columns.bar)));
    }
    text.push_str(&format!("{:>7}{:>8}", "mean", "slowest"));
    if columns.place > 0 {
        text.push_str(&format!("{:>5}{:>9}", "PE", "at"));
    }
    if columns.element > 0 {
        text.push_str("  element");
    }
    Line::styled(text, look.faint())
}

fn row(
    entry: &EntrySum,
    (all, recent): (u64, u64),
    columns: &Columns,
    chosen: bool,
    look: Look,
) -> Line<'static> {
    let mark = if chosen { look.pick("▸", ">") } else { " " };
    let style = if chosen { look.selected() } else { look.strong() };
    let mut line =
        Line::from(Span::styled(format!("{mark}{}", figures::fit(&entry.name, columns.name)), style));
    let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let part = figures::percent(share(entry.ns, all));
    line.push_span(Span::raw(format!(
        "{:>7}{:>8}{part:>6}",
        figures::count(entry.calls as f64),
        look.time(entry.ns)
    )));
    if columns.bar > 0 {
        line.push_span(Span::raw(" "));
        line.extend(look.bar(share(entry.recent_ns, recent), columns.bar, look.compute()));
    }
    let slowest = &entry.slowest;
    line.push_span(Span::raw(format!("{:>7}{:>8}", look.time(entry.mean_ns()), look.time(slowest.ns))));
    if columns.place > 0 {
        let at = figures::moment(Duration::from_nanos(slowest.at_ns));
        line.push_span(Span::raw(format!("{:>5}{at:>9}", slowest.pe)));
    }
    if columns.element > 0 {
        let element = if slowest.element.is_empty() { "(several)" } else { &slowest.element };
        line.push_span(Span::styled(format!("  {element}"), look.faint()));
    }
    line
}

/// The PEs that are shown, those first that have run something for longest.
fn running(app: &App) -> Vec<(&Node, &Pe)> {
    let mut pes: Vec<(&Node, &Pe)> = app.pes();
    pes.retain(|(node, _)| node.loss.is_none());
    let for_ns = |pe: &Pe| if runs(pe) { pe.last.in_state_ns } else { 0 };
    pes.sort_by_key(|(_, pe)| std::cmp::Reverse(for_ns(pe)));
    pes
}

fn runs(pe: &Pe) -> bool {
    matches!(pe.last.state, PeState::Compute | PeState::Init)
}

fn now((node, pe): (&Node, &Pe), look: Look) -> Line<'static> {
    let (letter, style) = look.state(pe.last.state);
    let text = format!(" {:>4} {} ", pe.last.pe, figures::fit(&node.name(), NAME));
    let mut line = Line::from(vec![Span::raw(text), Span::styled(letter, style)]);
    let entry = format!(" {} ", figures::fit(&pe.last.entry, 34));
    line.push_span(if runs(pe) { Span::raw(entry) } else { Span::styled(entry, look.faint()) });
    if runs(pe) {
        line.push_span(Span::raw(look.time(pe.last.in_state_ns)));
    }
    line
}
