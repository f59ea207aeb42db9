//! The panel with what the run came to, once it is over.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::look::Look;
use super::put;
use crate::app::App;
use crate::screen::Screen;

/// Lines that the load keeps where there is a result to be shown.
const LOAD_MIN: u16 = 4;

/// How many of these lines the panel takes: none before the end, nor where there is no room for what the run was.
pub(crate) fn height(app: &App, room: u16) -> u16 {
    let model = app.model();
    if model.end.is_none() || model.result.is_empty() {
        return 0;
    }
    if app.choice.screen != Screen::Load || app.choice.help || app.choice.detail.is_some() {
        return 0;
    }
    let wanted = u16::try_from(model.result.len() + 1).unwrap_or(u16::MAX);
    let left = room.saturating_sub(LOAD_MIN);
    if left < 2 { 0 } else { wanted.min(left) }
}

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) {
    let result = &app.model().result;
    let rule = look.pick("─", "-").repeat(usize::from(area.width));
    let title = format!("{rule:.2} result {rule}", rule = rule);
    put(frame, area, 0, Line::styled(title, look.faint()));
    let room = usize::from(area.height).saturating_sub(1);
    // Where not all lines have room the last ones say most: whether the result is right, and what there is to remark.
    let skipped = result.len().saturating_sub(room);
    for (line, text) in result.iter().skip(skipped).enumerate() {
        put(frame, area, line + 1, Line::raw(format!(" {text}")));
    }
}
