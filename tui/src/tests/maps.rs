//! The screen of maps.

use crossterm::event::KeyCode;
use ratatui::style::Color;
use runtime::monitor::map::{Axis, Map};
use runtime::monitor::wire::MonitorEvent;

use super::{press, running, same_text, tell};
use crate::WindowOptions;
use crate::app::App;
use crate::palette::Colors;
use crate::screen::Screen;
use crate::still::{drawn, screen};

/// A hill in the middle, and a wave along x.
fn maps() -> [Map; 2] {
    let values = |columns: usize, rows: usize, of: fn(f64, f64) -> f64| -> Vec<f64> {
        let part = |at: usize, all: usize| (at as f64 + 0.5) / all as f64;
        (0..columns * rows).map(|at| of(part(at % columns, columns), part(at / columns, rows))).collect()
    };
    let hill = values(64, 32, |x, y| (-20.0 * ((x - 0.5).powi(2) + (y - 0.5).powi(2))).exp());
    let wave =
        values(96, 48, |x, y| (-(40.0 * (y - 0.5 - 0.2 * (6.3 * x).sin())).powi(2) / 20.0).exp() * 1e6);
    let x = || Axis::new("x", 0.0, 8.3776);
    [
        Map::new("density, relative to the mean", [x(), Axis::new("y", 0.0, 1.0)], 64, &hill),
        Map::new("particles by x and v_x", [x(), Axis::new("v_x", -0.25, 0.25)], 96, &wave),
    ]
}

fn shown(options: &WindowOptions) -> App {
    let mut app = running(3, 2, options);
    for map in maps() {
        tell(&mut app, MonitorEvent::Map(map), 121);
    }
    press(&mut app, KeyCode::Char('7'));
    app
}

#[test]
fn maps_fill_windows_of_all_sizes() {
    let app = shown(&WindowOptions::default());
    for (width, height) in [(60, 15), (80, 24), (120, 40), (200, 50)] {
        same_text(&format!("maps-{width}x{height}"), &screen(&app, width, height));
    }
    for (width, height) in [(1, 1), (9, 9), (11, 13), (30, 6), (500, 5), (5, 500)] {
        screen(&app, width, height);
    }
}

#[test]
fn maps_are_offered_only_where_there_are_some() {
    let mut app = running(3, 2, &WindowOptions::default());
    for key in ['7', 'm'] {
        press(&mut app, KeyCode::Char(key));
        assert_eq!(app.choice.screen, Screen::Load);
        assert!(!screen(&app, 80, 24).contains("7 maps"));
    }
    let [density, _] = maps();
    tell(&mut app, MonitorEvent::Map(density), 121);
    assert!(screen(&app, 80, 24).contains("7 maps"));
    press(&mut app, KeyCode::Char('m'));
    assert!(screen(&app, 80, 24).contains("density, relative to the mean"));
    press(&mut app, KeyCode::Char('m'));
    assert_eq!(app.choice.screen, Screen::Load);
    let early = running(3, 2, &WindowOptions { screen: Screen::Maps, ..WindowOptions::default() });
    assert!(screen(&early, 80, 24).contains("has shown nothing yet"));
}

#[test]
fn a_map_takes_the_place_of_the_one_before() {
    let mut app = shown(&WindowOptions::default());
    let axes = || [Axis::new("a\u{1b}[2J", 0.0, 1.0), Axis::new("b", 0.0, 1.0)];
    let next = Map::new(maps()[0].title(), axes(), 1, &[123.0]);
    tell(&mut app, MonitorEvent::Map(next), 122);
    let text = screen(&app, 120, 40);
    assert!(text.contains("123") && text.contains("particles by x and v_x"), "{text}");
    assert!(!text.contains("8.378\u{1b}"), "{text}");
}

#[test]
fn colours_are_used_where_there_are_enough() {
    let cells = |colors, unicode| {
        let options = WindowOptions { colors, unicode, ..WindowOptions::default() };
        drawn(&shown(&options), 120, 40).content().to_vec()
    };
    let full = cells(Colors::Full, true);
    let halves = full.iter().filter(|cell| cell.symbol() == "▀");
    let is_fine = |cell: &&ratatui::buffer::Cell| cell.fg != cell.bg;
    assert!(halves.clone().filter(is_fine).count() > 100, "two dots in a character");
    assert!(full.iter().any(|cell| cell.fg == Color::Rgb(253, 231, 37)), "the greatest");
    let indexed = cells(Colors::Indexed, true);
    assert!(indexed.iter().filter(|cell| matches!(cell.bg, Color::Indexed(_))).count() > 1000);
    let plain = cells(Colors::Full, false);
    assert!(plain.iter().all(|cell| cell.symbol().is_ascii()));
    assert!(plain.iter().filter(|cell| matches!(cell.bg, Color::Rgb(..))).count() > 1000);
    for colors in [Colors::Named, Colors::None] {
        let text: String = cells(colors, false).iter().map(|cell| cell.symbol().to_owned()).collect();
        assert!(text.is_ascii() && text.contains("@@") && text.contains("::"), "{text}");
    }
}
