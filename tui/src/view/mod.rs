//! Draws the window. Pure: the same state at the same size gives the same picture. One file per screen.
#![deny(clippy::disallowed_methods)]

mod detail;
mod entries;
mod header;
mod heat;
pub(crate) mod help;
mod log;
pub(crate) mod look;
mod maps;
mod nodes;
mod pes;
mod player;
mod remarks;
pub(crate) mod result;
pub(crate) mod traffic;
mod why;
mod work;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use self::look::Look;
use crate::app::{App, View};
use crate::input::{Command, Spot};
use crate::screen::Screen;

/// Draws everything, and says where a click does something.
pub(crate) fn draw(frame: &mut Frame<'_>, app: &App) -> Vec<Spot> {
    let look = Look::new(&app.options).of_program(app.model().is_init_over);
    let area = frame.area();
    let (header, rest) = split(area, if area.height >= 12 { 3 } else { area.height.min(1) });
    let (remark, rest) = split(rest, u16::from(rest.height >= 9 && !app.model().slowdowns().is_empty()));
    header::draw_slowdown(frame, remark, app.model(), look);
    let foot = if area.height >= 12 { 2 } else { rest.height.min(1) };
    let (rest, foot) = split(rest, rest.height - foot);
    let playing = u16::from(app.player.is_some()).min(rest.height);
    let (rest, playing) = split(rest, rest.height - playing);
    player::draw(frame, playing, app, look);
    header::draw(frame, header, app, look);
    let mut spots = draw_foot(frame, foot, app, look);
    let log = if app.choice.log { (rest.height / 3).clamp(rest.height.min(2), 14) } else { 0 };
    let (body, log) = split(rest, rest.height - log);
    log::draw(frame, log, app, look);
    let result = result::height(app, body);
    let (body, result) = split(body, body.height - result);
    if result.height > 0 {
        result::draw(frame, result, app, look);
    }
    if body.height == 0 {
        return spots;
    }
    if app.choice.help {
        help::draw(frame, body, app, look);
    } else if let Some(number) = app.choice.detail {
        detail::draw(frame, body, app, number, look);
    } else {
        match app.choice.screen {
            Screen::Load => spots.extend(match app.choice.view {
                View::Map => heat::draw(frame, body, app, look),
                View::Nodes => nodes::draw(frame, body, app, look),
                View::Pes => pes::draw(frame, body, app, look),
            }),
            Screen::Why => spots.extend(why::draw(frame, body, app, look)),
            Screen::Entries => spots.extend(entries::draw(frame, body, app, look)),
            Screen::Traffic => spots.extend(traffic::draw(frame, body, app, look)),
            Screen::Work => spots.extend(work::draw(frame, body, app, look)),
            Screen::Log => remarks::draw(frame, body, app, look),
            Screen::Maps => maps::draw(frame, body, app, look),
        }
    }
    spots
}

/// A click on these lines of the area, from `line` on, chooses that item.
fn item(area: Rect, line: usize, lines: usize, place: usize) -> Spot {
    let below = |lines: usize| u16::try_from(lines).unwrap_or(u16::MAX).min(area.height);
    let height = below(line + lines) - below(line);
    let area = Rect { y: area.y + below(line), height, ..area };
    Spot { area, does: Command::Choose(place) }
}

/// The first `height` lines, and the rest.
fn split(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    (Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area })
}

/// Line `number` of the area, cut off at its right edge.
fn put(frame: &mut Frame<'_>, area: Rect, number: usize, line: Line<'_>) {
    if let Ok(number) = u16::try_from(number)
        && number < area.height
        && area.width > 0
    {
        frame.render_widget(line, Rect { y: area.y + number, height: 1, ..area });
    }
}

/// `left`, and `right` at the right edge if both fit.
fn spread<'a>(left: Vec<Span<'a>>, right: Vec<Span<'a>>, width: u16) -> Line<'a> {
    let mut line = Line::from(left);
    let used = line.width() + right.iter().map(Span::width).sum::<usize>();
    if let Some(gap) = usize::from(width).checked_sub(used).filter(|gap| *gap > 0) {
        line.push_span(Span::raw(" ".repeat(gap)));
        line.extend(right);
    }
    line
}

/// The lines of a page: a list of items, each some lines high, cut into pages; the page with the selected item.
/// Gives the range of items.
fn page(heights: &[usize], selected: usize, lines: usize) -> std::ops::Range<usize> {
    let mut first = 0;
    let mut used = 0;
    for (place, height) in heights.iter().enumerate() {
        if used + height > lines && used > 0 {
            if place > selected {
                return first..place;
            }
            first = place;
            used = 0;
        }
        used += height;
    }
    first..heights.len()
}

/// The page of these lines with the selected one; a line below says which they are, if there are more. Says where a click
/// chooses one.
fn rows_of(
    frame: &mut Frame<'_>,
    area: Rect,
    rows: Vec<Line<'_>>,
    selected: usize,
    what: &str,
    look: Look,
) -> Vec<Spot> {
    let (lines, count) = (usize::from(area.height), rows.len());
    let is_paged = count > lines && lines > 1;
    let selected = selected.min(count.saturating_sub(1));
    let range = page(&vec![1; count], selected, lines.saturating_sub(usize::from(is_paged)).max(1));
    let text = format!(" {what} {}-{} of {count}: PgUp PgDn", range.start + 1, range.end);
    for (line, row) in rows.into_iter().skip(range.start).take(range.len()).enumerate() {
        put(frame, area, line, row);
    }
    if is_paged {
        put(frame, area, lines - 1, Line::styled(text, look.faint()));
    }
    range.clone().map(|place| item(area, place - range.start, 1, place)).collect()
}

/// The last lines of the window; says where a click shows another screen.
fn draw_foot(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) -> Vec<Spot> {
    if area.height >= 2 {
        put(frame, area, 0, legend(app, look, area.width));
    }
    let keys_at = usize::from(area.height.saturating_sub(1));
    if app.choice.typing {
        let text = format!(" filter by node or host: {}_   Enter keep  Esc clear", app.choice.filter);
        put(frame, area, keys_at, Line::styled(text, look.strong()));
    } else if let Some(end) = &app.model().end {
        let keys = if app.player.is_some() { "Home again, q leaves" } else { "q leaves" };
        let text = match end.code {
            Some(code) if code != 0 => format!(" ENDED with code {code}: {}  ({keys}) ", end.summary),
            _ => format!(" ENDED: {}  ({keys}) ", end.summary),
        };
        let style = if end.code == Some(0) { look.selected() } else { look.alarm() };
        put(frame, area, keys_at, Line::styled(text, style));
    } else {
        put(
            frame,
            area,
            keys_at,
            if app.player.is_some() { player::keys(app, look) } else { keys(app, look) },
        );
        return screen_spots(area, app);
    }
    Vec::new()
}

/// The screens stand first on the last line.
fn screen_spots(area: Rect, app: &App) -> Vec<Spot> {
    let mut x = area.x;
    let spot = |screen: Screen| {
        // A name has a few letters.
        let width = label(screen).len() as u16;
        let left = x;
        x = left.saturating_add(width);
        let area = Rect::new(left, area.bottom().saturating_sub(1), width, 1).intersection(area);
        Spot { area, does: Command::Show(screen) }
    };
    app.screens().map(spot).collect()
}

fn label(screen: Screen) -> String {
    format!(" {} {} ", screen.key(), screen.name())
}

fn legend(app: &App, look: Look, width: u16) -> Line<'static> {
    let is_map =
        app.choice.screen == Screen::Load && app.choice.view == View::Map && app.choice.detail.is_none();
    let look = if is_map { look.letters() } else { look };
    let left = vec![
        Span::raw(" "),
        Span::styled(look.pick("▂▅█", "1-9#"), look.compute()),
        Span::raw(" computing  "),
        Span::styled(look.pick("·", "."), look.idle()),
        Span::raw(" idle  "),
        Span::styled(look.pick("▒", "i"), look.init()),
        Span::raw(" init  "),
        Span::styled(look.pick("╳", "x"), look.overhead()),
        Span::raw(" runtime  "),
        Span::styled(look.pick("┊", "!"), look.core_wait()),
        Span::raw(" no core  "),
        Span::styled(look.pick("≈", "~"), look.throttled()),
        Span::raw(" throttled "),
    ];
    let mut right = Vec::new();
    if !app.choice.filter.is_empty() {
        right.push(Span::styled(format!("filter: {}  ", app.choice.filter), look.accent()));
    }
    if is_map {
        spread(left, right, width)
    } else if shows_strips(app) {
        right.push(Span::styled(format!("{}/column", column(app, width)), look.faint()));
        spread(left, right, width)
    } else {
        spread(Vec::new(), right, width)
    }
}

/// Whether the screen shows what was done over time.
fn shows_strips(app: &App) -> bool {
    (app.choice.screen == Screen::Load && app.choice.view != View::Map) || app.choice.detail.is_some()
}

/// Columns of the strips of the present screen in a window of that width.
pub(crate) fn strip_columns(app: &App, width: u16) -> usize {
    if app.choice.detail.is_some() {
        detail::columns(width)
    } else if app.choice.is_by_node() {
        nodes::strip_columns(width)
    } else {
        pes::Columns::new(width).strip
    }
}

/// Time per column in words.
fn column(app: &App, width: u16) -> String {
    match app.column(strip_columns(app, width)) {
        250_000_000 => "0.25 s".into(),
        500_000_000 => "0.5 s".into(),
        time => format!("{} s", time / crate::model::history::SECOND),
    }
}

/// The screens, and the most needed keys of the present one.
fn keys(app: &App, look: Look) -> Line<'static> {
    let mut line = screens(app, look);
    let sort = match app.choice.screen {
        Screen::Traffic => format!("by:{}", app.choice.unit.name()),
        _ => format!("sort:{}", app.choice.sort.name()),
    };
    let other = app.next_view().name();
    let more = [
        ("?", "help"),
        ("q", "quit"),
        ("Tab", other),
        ("s", &sort),
        ("+-", "scale"),
        ("/", "filter"),
        ("Spc", if app.paused() { "go on" } else { "pause" }),
        ("Enter", "open"),
        ("l", "output"),
        ("Esc", "back"),
    ];
    line.extend(hints(&more, look));
    line
}

/// The number keys of the screens, the present one marked.
fn screens(app: &App, look: Look) -> Line<'static> {
    let mut line = Line::default();
    for screen in app.screens() {
        let text = label(screen);
        line.push_span(if screen == app.choice.screen {
            Span::styled(text, look.selected())
        } else {
            Span::raw(text)
        });
    }
    line
}

/// Keys and what they do.
fn hints(hints: &[(&str, &str)], look: Look) -> Line<'static> {
    let mut line = Line::raw(" ");
    for (key, what) in hints {
        line.push_span(Span::styled((*key).to_owned(), look.accent().patch(look.strong())));
        line.push_span(Span::raw(format!(" {what}  ")));
    }
    line
}
