//! One PE: its states over time as stacked columns, and all its counters.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::{put, split};
use crate::app::App;
use crate::figures;
use crate::model::history::Times;
use crate::model::node::{Node, Pe};

/// Lines of text below the chart.
const TEXT: u16 = 12;

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, number: u32, look: Look) {
    let Some((node, pe)) = app.model().pe(number) else {
        put(frame, area, 0, Line::styled(format!(" PE {number} is not known any more"), look.faint()));
        return;
    };
    let (title, rest) = split(area, 1);
    put(frame, title, 0, headline(node, pe, look));
    let (chart, text) = split(rest, rest.height.saturating_sub(TEXT));
    draw_chart(frame, chart, app, pe, look);
    for (line, content) in counters(node, pe, look).into_iter().enumerate() {
        put(frame, text, line, content);
    }
}

fn headline(node: &Node, pe: &Pe, look: Look) -> Line<'static> {
    let mut spans = vec![
        Span::styled(format!(" PE {} ", pe.last.pe), look.selected()),
        Span::styled(format!(" {} ", node.name()), look.strong()),
        Span::raw(format!("on {}  ", node.info.host)),
    ];
    if !node.info.holds.is_empty() {
        spans.push(Span::styled(format!("{}  ", node.info.holds), look.faint()));
    }
    if let Some(loss) = &node.loss {
        let (what, style) = if loss.is_meant { ("left", look.faint()) } else { ("LOST", look.alarm()) };
        spans.push(Span::styled(format!(" {what}: {} ", loss.reason), style));
    } else {
        let (letter, style) = look.state(pe.last.state);
        spans.push(Span::styled(letter, style));
        spans.push(Span::raw(format!("  {}", pe.last.entry)));
    }
    Line::from(spans)
}

/// Columns of the chart in a window of that width.
pub(crate) fn columns(width: u16) -> usize {
    usize::from(width.saturating_sub(6))
}

fn draw_chart(frame: &mut Frame<'_>, area: Rect, app: &App, pe: &Pe, look: Look) {
    if area.height == 0 || area.width < 8 {
        return;
    }
    let column = app.column(columns(area.width));
    let width = i64::try_from(columns(area.width)).unwrap_or(0);
    let newest = (app.model().edge() - 1).div_euclid(column);
    let times: Vec<Times> = (newest - width + 1..=newest)
        .map(|number| pe.history.between(number * column, (number + 1) * column))
        .collect();
    for line in 0..area.height {
        let label = match line {
            0 => " 100% ",
            line if line + 1 == area.height => "   0% ",
            _ => "      ",
        };
        let mut spans = vec![Span::styled(label, look.faint())];
        spans.extend(times.iter().map(|times| {
            let (glyph, style) = look.stacked(*times, area.height - 1 - line, area.height);
            Span::styled(glyph, style)
        }));
        put(frame, area, usize::from(line), Line::from(spans));
    }
}

fn counters(node: &Node, pe: &Pe, look: Look) -> Vec<Line<'static>> {
    let life = look.told(pe.lifetime());
    let parts = [
        ("computing", life.compute, look.compute()),
        ("idle", life.idle, look.idle()),
        ("initialising", life.init, look.init()),
        ("runtime", life.overhead, look.overhead()),
        ("no core", life.core_wait, look.core_wait()),
        ("throttled", life.throttled, look.throttled()),
    ];
    let mut lines = vec![Line::styled(" since the start", look.faint())];
    for (name, time, style) in parts {
        let share = life.share(time);
        let seconds = time as f64 / 1e6;
        let mut spans =
            vec![Span::raw(format!("  {name:<13}{seconds:>11.3} s {:>5} ", figures::percent(share)))];
        spans.extend(look.bar(share, 30, style));
        lines.push(Line::from(spans));
    }
    let (entries, sent) = pe.rates();
    let last = &pe.last;
    let place = last.pe.checked_sub(node.info.first_pe).and_then(|place| usize::try_from(place).ok());
    let speed = place.and_then(|place| node.info.pe_speeds.get(place)).filter(|speed| **speed > 0.0);
    let speed =
        speed.map_or_else(|| "not measured".to_owned(), |speed| format!("{speed:.3} of the fastest PE"));
    lines.push(Line::raw(format!("  entries      {:>11}   {}/s", last.entries, figures::count(entries))));
    lines.push(Line::raw(format!("  sent         {:>11}   {}/s", last.sent_messages, figures::count(sent))));
    let bytes = figures::bytes(last.queue_bytes as f64);
    lines.push(Line::raw(format!("  queue        {:>11}   {bytes}", last.queue_messages)));
    lines.push(Line::raw(format!("  chares       {:>11}   speed {speed}", last.chares)));
    lines.push(Line::raw(format!("  entry        {}", last.entry)));
    lines
}
