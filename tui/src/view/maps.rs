//! The screen of maps: what the program shows of itself, numbers over a plane, as large as the window allows.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use runtime::monitor::map::{Axis, Map};
use runtime::monitor::text;

use super::look::Look;
use super::{put, spread};
use crate::app::App;
use crate::figures;

/// Columns and lines around the cells of a map: what is along its axes, and its title.
const AROUND: [u16; 2] = [9, 2];
/// So much of a title is there beside the range of the map, or it stands alone.
const TITLE: usize = 12;

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, look: Look) {
    let maps = &app.model().maps;
    if maps.is_empty() {
        put(frame, area, 0, Line::styled(" the program has shown nothing yet", look.faint()));
    }
    for (map, tile) in maps.iter().zip(tiles(maps, area, look)) {
        draw_map(frame, tile, map, look);
    }
}

/// Where each map is: beside or below one another, so that most cells are seen.
fn tiles(maps: &[Map], area: Rect, look: Look) -> Vec<Rect> {
    let count = u16::try_from(maps.len()).unwrap_or(u16::MAX).max(1);
    let of = |columns: u16| -> Vec<Rect> {
        let lines = count.div_ceil(columns);
        let place = |number: u16| {
            let [left, right] = [0, 1].map(|by| part(area.width, number % columns + by, columns));
            let [top, bottom] = [0, 1].map(|by| part(area.height, number / columns + by, lines));
            Rect { x: area.x + left, y: area.y + top, width: right - left, height: bottom - top }
        };
        (0..count).map(place).collect()
    };
    let seen = |tiles: &Vec<Rect>| -> usize {
        let of_map = |(map, tile): (&Map, &Rect)| {
            let Rect { width, height, .. } = plot(*tile);
            let dots = usize::from(height) * look.dots();
            usize::from(width).min(map.columns()) * dots.min(map.rows())
        };
        maps.iter().zip(tiles).map(of_map).sum()
    };
    let all = (1..=count).map(of);
    all.reduce(|best, next| if seen(&next) > seen(&best) { next } else { best }).unwrap_or_default()
}

/// The beginning of part `number` of a length that is divided into `count`.
fn part(length: u16, number: u16, count: u16) -> u16 {
    // No more than the length.
    (u32::from(length) * u32::from(number) / u32::from(count)) as u16
}

/// Where the cells of a map are in its tile.
fn plot(tile: Rect) -> Rect {
    let [beside, around] = AROUND;
    let width = tile.width.saturating_sub(beside + 1);
    Rect { x: tile.x + beside, y: tile.y + 1, width, height: tile.height.saturating_sub(around) }
        .intersection(tile)
}

fn draw_map(frame: &mut Frame<'_>, tile: Rect, map: &Map, look: Look) {
    let plot = plot(tile);
    let [low, high] = map.range().map(figures::value);
    let range = vec![
        Span::raw(format!(" {low} ")),
        look.heat(0, 0),
        look.heat(85, 85),
        look.heat(170, 170),
        look.heat(255, 255),
        Span::raw(format!(" {high} ")),
    ];
    let title = format!(" {}", text::clean_line(map.title(), 80));
    // A title is known by its beginning, and numbers are nothing without their end.
    let room = usize::from(tile.width).saturating_sub(range.iter().map(Span::width).sum::<usize>() + 1);
    let title = if room >= TITLE { figures::fit(&title, room).trim_end().to_owned() } else { title };
    let title = Span::styled(title, look.strong());
    put(frame, tile, 0, spread(vec![title], range, tile.width));
    if plot.width == 0 || plot.height == 0 {
        return;
    }
    for line in 0..plot.height {
        let spans = (0..plot.width).map(|column| {
            let dot = |dot: usize| mean(map, plot, (column, line), (dot, look.dots()));
            look.heat(dot(0), dot(look.dots() - 1))
        });
        put(frame, plot, line.into(), spans.collect::<Vec<_>>().into());
    }
    draw_axes(frame, tile, plot, map, look);
}

/// The mean of the cells that lie in a dot, which is one of those that a character has from its top.
fn mean(map: &Map, plot: Rect, (column, line): (u16, u16), (dot, dots): (usize, usize)) -> u8 {
    let within = |at: usize, shown: usize, all: usize| {
        let first = at * all / shown;
        first..((at + 1) * all / shown).max(first + 1)
    };
    let lines = usize::from(plot.height) * dots;
    let up = lines - 1 - (usize::from(line) * dots + dot);
    let (across, up) =
        (within(column.into(), plot.width.into(), map.columns()), within(up, lines, map.rows()));
    let count = across.len() * up.len();
    let cells = up.flat_map(|row| across.clone().map(move |column| usize::from(map.cell(column, row))));
    // No more than the largest of them.
    (cells.sum::<usize>() / count) as u8
}

fn draw_axes(frame: &mut Frame<'_>, tile: Rect, plot: Rect, map: &Map, look: Look) {
    let beside = usize::from(AROUND[0]) - 1;
    let words = |axis: &Axis| {
        let name = text::clean_line(&axis.name, 80);
        [figures::value(axis.low), name, figures::value(axis.high)]
    };
    let [low, name, high] = words(map.y());
    let last = usize::from(plot.height) - 1;
    // What is more important is written last.
    for (line, word) in [(last / 2, name), (last, low), (0, high)] {
        let word = format!("{:>beside$} ", figures::fit(&word, beside).trim_end());
        put(
            frame,
            Rect { width: AROUND[0].min(tile.width), ..tile },
            line + 1,
            Line::styled(word, look.faint()),
        );
    }
    let [low, name, high] = words(map.x());
    let width = usize::from(plot.width);
    let room = width.saturating_sub(low.chars().count() + high.chars().count());
    let name = figures::fit(&name, room.saturating_sub(2));
    let text = format!("{low}{:^room$}{high}", name.trim_end());
    put(
        frame,
        Rect { height: plot.height + 1, ..plot },
        last + 1,
        Line::styled(figures::fit(&text, width), look.faint()),
    );
}
