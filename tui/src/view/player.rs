//! The line of a recording that is played: where it is, how long it is and how fast it goes; and its keys.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::{hints, put, screens};
use crate::app::App;
use crate::figures;

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) {
    let Some(player) = &app.player else { return };
    let state = if player.paused() {
        "paused "
    } else if player.at_end() {
        "at end "
    } else {
        "playing"
    };
    let (position, duration) = (player.position(), player.duration());
    let times = format!(
        " {} of {}  {} ",
        figures::moment(position),
        figures::moment(duration),
        speed(player.speed())
    );
    let mut line = Line::from(vec![Span::styled(format!(" {state} "), look.selected()), Span::raw(times)]);
    let share = if duration.is_zero() { 1.0 } else { position.as_secs_f64() / duration.as_secs_f64() };
    let room = usize::from(area.width).saturating_sub(line.width() + 1);
    line.extend(look.bar(share, room, look.accent()));
    put(frame, area, 0, line);
}

/// `1x`, `0.25x`, `64x`.
fn speed(speed: f64) -> String {
    let text = format!("{speed:.2}");
    format!("{}x", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The most needed keys.
pub(crate) fn keys(app: &App, look: Look) -> Line<'static> {
    let space = if app.paused() { "go on" } else { "pause" };
    let other = app.next_view().name();
    let (arrows, speeds) = (look.pick("←→", "left right"), "<>");
    let seek = [
        ("?", "help"),
        ("q", "quit"),
        ("Spc", space),
        (arrows, "5 s"),
        ("PgUp PgDn", "a tenth"),
        (speeds, "speed"),
    ];
    let mut line = screens(app, look);
    line.extend(hints(&[&seek[..], &[("Tab", other), ("+-", "scale"), ("l", "output")]].concat(), look));
    line
}
