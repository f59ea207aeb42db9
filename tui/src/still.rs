//! The window without a terminal: drawn in memory, as plain text or as a picture.

use std::fmt::Write as _;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Modifier;
use runtime::monitor::recording::Recording;
use runtime::monitor::wire::MonitorEvent;

use crate::app::{App, Event};
use crate::palette::{self, Colors};
use crate::player::Player;
use crate::{AtEnd, PlayOptions, WindowOptions, view};

/// Most columns and lines.
const LARGEST: u16 = 500;
/// Of a character in a picture.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 17.0;
/// Around the window in a picture.
const MARGIN: f64 = 10.0;
const PAPER: (u8, u8, u8) = (0x16, 0x1b, 0x22);
const INK: (u8, u8, u8) = (0xd6, 0xdb, 0xe1);

/// The window at one moment. Sizes are columns and lines, 1 to 500 each.
pub struct Still {
    app: App,
}

impl Still {
    /// The window after these events; the time is taken from the snapshots.
    #[must_use]
    pub fn after(events: &[MonitorEvent], options: &WindowOptions) -> Self {
        let mut app = App::new(&WindowOptions { at_end: AtEnd::Stays, ..options.clone() });
        let mut now = Duration::ZERO;
        for event in events {
            match event {
                MonitorEvent::Snapshot(snapshot) => now = now.max(Duration::from_nanos(snapshot.uptime_ns)),
                MonitorEvent::At(nanos) => now = now.max(Duration::from_nanos(*nanos)),
                _ => {}
            }
            app.update(Event::Monitor(Box::new(event.clone())), now);
        }
        Self { app }
    }

    /// That moment of a recording, from its start; what is beyond its end is its end.
    #[must_use]
    pub fn of_moment(recording: Recording, at: Duration, options: &WindowOptions) -> Self {
        let play = PlayOptions { from: at, ..PlayOptions::default() };
        Self { app: App::of_player(Player::new(recording, &play), options) }
    }

    /// Plain text: `height` lines of at most `width` characters, without trailing blanks.
    #[must_use]
    pub fn text(&self, width: u16, height: u16) -> String {
        screen(&self.app, width, height)
    }

    /// A picture as SVG, in colours on a dark ground, of `width` columns and `height` lines.
    #[must_use]
    pub fn svg(mut self, width: u16, height: u16) -> String {
        self.app.options.colors = Colors::Full;
        svg(&drawn(&self.app, width, height))
    }
}

/// Draws into memory.
pub(crate) fn drawn(app: &App, width: u16, height: u16) -> Buffer {
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width.clamp(1, LARGEST), height.clamp(1, LARGEST)));
    let Ok(_) = terminal.draw(|frame| drop(view::draw(frame, app)));
    terminal.backend().buffer().clone()
}

/// The window as plain text.
pub(crate) fn screen(app: &App, width: u16, height: u16) -> String {
    let buffer = drawn(app, width, height);
    let mut text = String::new();
    for row in buffer.content().chunks(usize::from(buffer.area.width)) {
        let line: String = letters(row).map(|(_, cell)| cell.symbol()).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The cells of a line that show something of their own, with their columns: a wide character also takes the one after it.
fn letters(row: &[Cell]) -> impl Iterator<Item = (usize, &Cell)> {
    let mut next = 0;
    row.iter().enumerate().filter(move |(column, cell)| {
        let is_shown = *column >= next;
        if is_shown {
            next = column + ratatui::text::Span::raw(cell.symbol()).width().max(1);
        }
        is_shown
    })
}

/// How a cell looks in a picture.
#[derive(Clone, Copy, PartialEq)]
struct Paint {
    ink: (u8, u8, u8),
    paper: Option<(u8, u8, u8)>,
    is_bold: bool,
}

impl Paint {
    fn of(cell: &Cell) -> Self {
        let (ink, paper) = (palette::rgb(cell.fg).unwrap_or(INK), palette::rgb(cell.bg));
        let is_bold = cell.modifier.contains(Modifier::BOLD);
        if cell.modifier.contains(Modifier::REVERSED) {
            Self { ink: paper.unwrap_or(PAPER), paper: Some(ink), is_bold }
        } else {
            Self { ink, paper, is_bold }
        }
    }
}

fn svg(buffer: &Buffer) -> String {
    let (columns, lines) = (buffer.area.width, buffer.area.height);
    let (width, height) =
        (f64::from(columns) * WIDTH + 2.0 * MARGIN, f64::from(lines) * HEIGHT + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, \
         monospace\" font-size=\"14\">\n<title>The load window of metachare</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>\n",
        hex(PAPER)
    );
    for (line, row) in buffer.content().chunks(usize::from(columns)).enumerate() {
        let cells: Vec<_> =
            letters(row).map(|(column, cell)| (column, cell.symbol(), Paint::of(cell))).collect();
        for run in cells.chunk_by(|one, next| one.2 == next.2) {
            append(run, line, &mut svg);
        }
    }
    svg + "</svg>\n"
}

/// Characters in a row that look alike.
fn append(run: &[(usize, &str, Paint)], line: usize, svg: &mut String) {
    let [(column, _, paint), ..] = run else { return };
    let top = MARGIN + line as f64 * HEIGHT;
    // Writing to a string cannot fail.
    if let Some(paper) = paint.paper {
        let (left, wide) = place(*column, run.iter().map(|(_, symbol, _)| *symbol));
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{HEIGHT}\" fill=\"{}\"/>",
            hex(paper)
        );
    }
    let weight = if paint.is_bold { " font-weight=\"bold\"" } else { "" };
    // Viewers differ in what they make of blanks: each word stands for itself.
    for word in run.split(|(_, symbol, _)| *symbol == " ") {
        let [(column, ..), ..] = word else { continue };
        let symbols = word.iter().map(|(_, symbol, _)| *symbol);
        let (left, wide) = place(*column, symbols.clone());
        // Fonts differ in width: the length keeps every character in its column.
        let _ = writeln!(
            svg,
            "<text x=\"{left:.1}\" y=\"{:.1}\" textLength=\"{wide:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
             fill=\"{}\"{weight}>{}</text>",
            top + 0.78 * HEIGHT,
            hex(paint.ink),
            escaped(&symbols.collect::<String>())
        );
    }
}

/// Where text begins in a picture, and how wide it is.
fn place<'a>(column: usize, symbols: impl Iterator<Item = &'a str>) -> (f64, f64) {
    let columns: usize = symbols.map(|symbol| ratatui::text::Span::raw(symbol).width()).sum();
    (MARGIN + column as f64 * WIDTH, columns as f64 * WIDTH)
}

fn hex((red, green, blue): (u8, u8, u8)) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Names come from users; the window's own text has no control characters.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
