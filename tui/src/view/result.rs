//! The panel with what the run came to, once it is over.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::look::Look;
use super::put;
use crate::app::App;
use crate::figures;
use crate::screen::Screen;

/// Lines that the load keeps where there is a result to be shown.
const LOAD_MIN: u16 = 4;

/// How many lines of this room the panel takes: none before the end, nor where there is no room for what the run was; where all
/// of the result does not leave some lines to the load, no more than half of them, unless it is asked for.
pub(crate) fn height(app: &App, room: Rect) -> u16 {
    let (width, room) = (room.width, room.height);
    if !is_there(app) || room < LOAD_MIN + 2 {
        return 0;
    }
    if app.choice.result {
        return room;
    }
    let wanted = u16::try_from(lines(app, width).len() + 1).unwrap_or(u16::MAX);
    if wanted + 2 * LOAD_MIN <= room {
        return wanted;
    }
    wanted.min((room - LOAD_MIN).min((room / 2).max(2)))
}

/// The lines of the panel in a window of that width. They begin at its edge: the table that ends every run is 80 columns wide.
pub(crate) fn lines(app: &App, width: u16) -> Vec<String> {
    app.model().result.iter().flat_map(|line| figures::wrap(line, width.into())).collect()
}

/// Whether the present screen has the panel.
pub(crate) fn is_there(app: &App) -> bool {
    let (model, choice) = (app.model(), &app.choice);
    let is_load = choice.screen == Screen::Load && !choice.help && choice.detail.is_none();
    is_load && model.end.is_some() && !model.result.is_empty()
}

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) {
    let result = lines(app, area.width);
    let room = usize::from(area.height).saturating_sub(1);
    // Where not all lines have room the last ones say most: whether the result is right, and what there is to remark.
    let hidden = result.len().saturating_sub(room);
    let up = if app.choice.result { app.choice.row.min(hidden) } else { 0 };
    let above = hidden - up;
    let rule = look.pick("─", "-").repeat(usize::from(area.width));
    let more = match (app.choice.result, hidden) {
        (_, 0) => String::new(),
        (false, _) => format!("{} {above} more above: r shows them ", look.pick("…", "...")),
        (true, _) => {
            format!("lines {}-{} of {}: up down ", above + 1, (above + room).min(result.len()), result.len())
        }
    };
    let title = format!("{rule:.2} result {more}{rule}");
    put(frame, area, 0, Line::styled(title, look.faint()));
    for (line, text) in result.iter().skip(above).take(room).enumerate() {
        put(frame, area, line + 1, Line::raw(text.as_str()));
    }
}
