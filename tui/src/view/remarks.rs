//! The log screen: warnings and remarks with the age of the run at which they came, the newest at the bottom.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::{put, split};
use crate::app::App;
use crate::figures;
use crate::model::remarks::{Remark, Weight};

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) {
    let remarks = &app.model().remarks;
    // Rows are counted from the newest back.
    let back = app.choice.row.min(remarks.len().saturating_sub(1));
    let title = match back {
        0 => format!(" {}", figures::things(remarks.len(), "remark")),
        _ => format!(" {}, {back} newer ones below", figures::things(remarks.len(), "remark")),
    };
    put(frame, area, 0, Line::styled(title, look.faint()));
    let rest = split(area, 1).1;
    let room = usize::from(rest.height);
    let mut lines: Vec<Line<'_>> = Vec::new();
    // From the newest back, each from its last line back: where there is too little room, what is old is cut off.
    for remark in remarks.iter().rev().skip(back) {
        lines.extend(lines_of(remark, usize::from(rest.width), look).into_iter().rev());
        if lines.len() >= room {
            break;
        }
    }
    lines.truncate(room);
    lines.into_iter().rev().enumerate().for_each(|(number, line)| put(frame, rest, number, line));
}

/// A remark with its time before its first line.
fn lines_of(remark: &Remark, width: usize, look: Look) -> Vec<Line<'static>> {
    let (mark, style) = match remark.weight {
        Weight::Note => (" ", Style::new()),
        Weight::Warning => ("!", look.core_wait()),
    };
    let first = format!("{mark}{:>9} ", figures::moment(remark.at));
    let texts = figures::wrap(&remark.text, width.saturating_sub(first.len()).max(8));
    let others = std::iter::repeat_n(" ".repeat(first.len()), texts.len().saturating_sub(1));
    let befores = std::iter::once(first.clone()).chain(others);
    let line =
        |(before, text)| Line::from(vec![Span::styled(before, look.faint()), Span::styled(text, style)]);
    befores.zip(texts).map(line).collect()
}
