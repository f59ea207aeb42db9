//! The map of many nodes.

use crossterm::event::KeyCode;
use ratatui::style::Color;
use runtime::monitor::wire::{MonitorEvent, NodeSnapshot, PeSnapshot};

use super::screens::see;
use super::{press, run_info, running, same_text, snapshot, tell};
use crate::app::App;
use crate::still::{drawn, screen};
use crate::{Colors, WindowOptions};

/// A run after three seconds in which nodes computed for so many hundredths of the time as their number says, every 13th
/// waited for cores, and the ninth is lost.
fn run(nodes: u16, pes: u32) -> App {
    let mut app = App::new(&WindowOptions::default());
    tell(&mut app, run_info(nodes, pes), 0);
    for tenths in 1..=30_u64 {
        let mut one = |place: u16| {
            let before = snapshot(place, pes, tenths);
            let part = |percent: u64| tenths * 1_000_000 * percent;
            let pe = |pe: PeSnapshot| {
                let computed = u64::from(place % 101);
                let (core_wait_ns, idle_ns) = match place % 13 {
                    12 => (part(100 - computed), 0),
                    _ => (0, part(100 - computed)),
                };
                PeSnapshot {
                    compute_ns: part(computed),
                    init_ns: 0,
                    overhead_ns: 0,
                    core_wait_ns,
                    idle_ns,
                    ..pe
                }
            };
            let pes = before.pes.into_iter().map(pe).collect();
            tell(
                &mut app,
                MonitorEvent::Snapshot(NodeSnapshot { pes, ..before_without_pes(place, tenths) }),
                tenths,
            );
        };
        (0..nodes).for_each(&mut one);
    }
    tell(&mut app, MonitorEvent::NodeLost { node: 9, reason: "no sign of life for 5 s".into() }, 31);
    app
}

fn before_without_pes(place: u16, tenths: u64) -> NodeSnapshot {
    snapshot(place, 0, tenths)
}

#[test]
fn many_nodes_are_a_map_in_which_each_pe_has_a_cell_if_there_is_room() {
    for (nodes, pes) in [(20, 4), (100, 4), (1000, 4)] {
        let app = run(nodes, pes);
        for (width, height) in [(80, 24), (200, 50)] {
            let shown = screen(&app, width, height);
            same_text(&format!("map-{nodes}-nodes-{width}x{height}"), &shown);
            assert!(shown.contains("Tab nodes") && shown.lines().any(|line| line.contains('X')), "{shown}");
        }
    }
}

#[test]
fn sixteen_nodes_are_shown_in_full() {
    assert!(!screen(&running(16, 1, &WindowOptions::default()), 80, 24).contains("each cell"));
    let mut app = running(17, 1, &WindowOptions::default());
    assert!(screen(&app, 80, 24).contains("each cell is a PE"), "{}", screen(&app, 80, 24));
    press(&mut app, KeyCode::Tab);
    assert!(screen(&app, 80, 24).contains("computation over time, all its PEs"));
    press(&mut app, KeyCode::Tab);
    assert!(screen(&app, 80, 24).contains("   PE node "), "{}", screen(&app, 80, 24));
    press(&mut app, KeyCode::Tab);
    assert!(screen(&app, 80, 24).contains("each cell"));
    press(&mut app, KeyCode::Char('w'));
    assert!(screen(&app, 80, 24).contains("Tab PEs"), "other screens have lines by node");
}

/// The node of which the last line of the map tells.
fn told(app: &App) -> String {
    let shown = screen(app, 80, 24);
    let line = shown.lines().nth(21).unwrap_or_default();
    line.split_whitespace().next().unwrap_or_default().to_owned()
}

#[test]
fn arrows_go_over_the_map_and_enter_opens_the_node() {
    let mut app = run(1000, 4);
    let mut go = |code| {
        see(&mut app);
        press(&mut app, code);
        told(&app)
    };
    assert_eq!(go(KeyCode::Right), "node002");
    assert_eq!(go(KeyCode::Down), "node062", "sixty in a line");
    assert_eq!(go(KeyCode::Down), "node122");
    assert_eq!(go(KeyCode::Up), "node062");
    assert_eq!(go(KeyCode::Left), "node061");
    assert_eq!(go(KeyCode::Char('j')), "node062");
    assert_eq!(go(KeyCode::End), "node1000");
    assert_eq!(go(KeyCode::Down), "node1000", "there is nothing below");
    go(KeyCode::Enter);
    let shown = screen(&app, 80, 24);
    assert!(shown.contains(" node1000 speed ") && shown.contains(" 3999 node1000  "), "{shown}");
    press(&mut app, KeyCode::Left);
    assert!(screen(&app, 80, 24).contains("each cell is a node"));
}

#[test]
fn cells_have_colours_where_there_are_enough_and_say_the_same_without() {
    let mut app = run(20, 1);
    let papers = |app: &App| {
        let shown = drawn(app, 80, 24);
        let cells =
            shown.content().iter().filter(|cell| matches!(cell.bg, Color::Rgb(..) | Color::Indexed(_)));
        cells.map(|cell| cell.bg).collect::<std::collections::HashSet<_>>().len()
    };
    let text = |app: &App| screen(app, 80, 24).lines().skip(4).take(17).collect::<String>();
    let named = text(&app);
    assert_eq!(papers(&app), 0);
    app.options.colors = Colors::Full;
    assert!(papers(&app) > 10, "{}", papers(&app));
    assert_eq!(text(&app), named);
    app.options.colors = Colors::None;
    app.options.unicode = false;
    assert!(screen(&app, 80, 24).is_ascii());
    assert_eq!(text(&app), named.replace('▸', ">"));
}
