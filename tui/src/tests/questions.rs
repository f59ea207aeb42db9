//! The screens of entry methods, traffic, work and remarks, each at four sizes.

use std::time::Duration;

use crossterm::event::KeyCode;
use runtime::monitor::heavy::{Heaviest, HeavyChare};
use runtime::monitor::profile::{ChareCount, EntryTime, Profile, SentTo, SlowestCall};
use runtime::monitor::wire::{Balanced, MonitorEvent, NodeSnapshot, OutputLine, RunInfo, SavedAt, Slowdown};

use super::{press, run_info, same_at_all_sizes, same_text, snapshot, tell};
use crate::app::App;
use crate::still::screen;
use crate::{Colors, Screen, Still, WindowOptions};

const TENTH: u64 = 100_000_000;

/// What node `place` of so many has run and sent after so many tenths of a second. The last node's shifts are slow, and
/// most goes from each node to the next.
fn profile(place: u16, nodes: u16, tenths: u64) -> Profile {
    let entry = |name: u16, each_ns: u64, per_tenth: u64| EntryTime {
        name,
        calls: tenths * per_tenth,
        ns: tenths * per_tenth * each_ns,
        slowest: SlowestCall {
            ns: 3 * each_ns,
            at_ns: 73 * TENTH,
            pe: u32::from(place) * 2 + 1,
            element: if name == 2 { String::new() } else { format!("[{place}, 4]") },
        },
    };
    let sent = |to: u16| {
        let messages = tenths * if to == (place + 1) % nodes + 1 { 50 } else { 3 };
        SentTo { node: to, messages, bytes: messages * 4000 }
    };
    let slow = u64::from(place + 1 == nodes) * 3 + 1;
    let count =
        |pe: u32, chare_type, chares| ChareCount { pe: u32::from(place) * 2 + pe, chare_type, chares };
    Profile {
        at_ns: tenths * TENTH,
        entries: vec![
            entry(0, 1_500_000 * slow, 50),
            entry(1, 42_000, 30),
            entry(2, 800, 4000),
            entry(9, 1, 1),
        ],
        sent_to: (0..=nodes).filter(|to| *to != place + 1).map(sent).collect(),
        chares: vec![count(0, 0, 9), count(1, 0, 8), count(1, 1, 3)],
    }
}

/// A run of so many nodes after twelve seconds in which all that can be shown has been told.
fn run(nodes: u16, options: &WindowOptions) -> App {
    let mut app = App::new(options);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let MonitorEvent::Run(info) = run_info(nodes, 2) else { return app };
    let info = RunInfo {
        chare_types: names(&["Block", "Cell"]),
        entry_names: names(&["Block: Shift", "Block: (constructor)", "Cell: Tick"]),
        balance: "refine".into(),
        ..info
    };
    tell(&mut app, MonitorEvent::Run(info), 0);
    for tenths in 1..=120_u64 {
        for place in 0..nodes {
            let profile = tenths.is_multiple_of(5).then(|| profile(place, nodes, tenths));
            let snapshot = NodeSnapshot { profile, ..snapshot(place, 2, tenths) };
            tell(&mut app, MonitorEvent::Snapshot(snapshot), tenths);
        }
    }
    app
}

fn three_nodes() -> App {
    run(3, &WindowOptions::default())
}

#[test]
fn entries_are_shown_with_what_they_cost_and_what_runs_now() {
    let mut app = three_nodes();
    press(&mut app, KeyCode::Char('3'));
    same_at_all_sizes("entries", &app);
    let shown = screen(&app, 120, 40);
    let slow = shown.lines().skip_while(|line| !line.contains("slowest calls")).nth(1).unwrap_or_default();
    let said: Vec<_> = slow.split_whitespace().collect();
    assert_eq!(said, ["Block:", "Shift", "18ms", "5", "0:07.3", "old", "[2,", "4]"], "{shown}");
    let first = shown.lines().find(|line| line.contains("Block: Shift")).unwrap_or_default();
    // Of 50 calls in a tenth of a second two nodes take 1.5 ms for each, and the third 6 ms.
    for part in ["18k", "54s", "3.0ms", "18ms", "5   0:07.3"] {
        assert!(first.contains(part), "{part} in {first}");
    }
    press(&mut app, KeyCode::Down);
    assert!(
        screen(&app, 80, 24).lines().any(|line| line.starts_with("▸Cell: Tick")),
        "{}",
        screen(&app, 80, 24)
    );
}

#[test]
fn traffic_is_a_matrix_with_the_busiest_links_marked() {
    let mut app = three_nodes();
    press(&mut app, KeyCode::Char('4'));
    same_at_all_sizes("traffic", &app);
    let row = |app: &App, name: &str| {
        let shown = screen(app, 80, 24);
        shown.lines().find(|line| line.starts_with(&format!(" {name} "))).unwrap_or_default().to_owned()
    };
    // 500 messages of 4,000 bytes a second to the next node, 30 to the others.
    assert_eq!(
        row(&app, "fast").split_whitespace().collect::<Vec<_>>(),
        ["fast", "-", "1.9M*", "117K", "117K"]
    );
    press(&mut app, KeyCode::Char('s'));
    assert_eq!(row(&app, "fast").split_whitespace().collect::<Vec<_>>(), ["fast", "-", "500*", "30", "30"]);
    press(&mut app, KeyCode::Char('s'));
    press(&mut app, KeyCode::Char('s'));
    assert_eq!(
        row(&app, "fast").split_whitespace().collect::<Vec<_>>(),
        ["fast", "-", "6000*", "360", "360"]
    );
}

#[test]
fn of_many_nodes_traffic_is_shades_and_of_very_many_a_list() {
    let mut app = run(20, &WindowOptions::default());
    press(&mut app, KeyCode::Char('4'));
    same_text("traffic-20-nodes", &screen(&app, 80, 40));
    let mut app = run(300, &WindowOptions::default());
    press(&mut app, KeyCode::Char('4'));
    let shown = screen(&app, 120, 40);
    assert!(shown.contains(" busiest by bytes/s") && shown.contains("node001 → node002"), "{shown}");
    assert!(!shown.contains("in their order"), "{shown}");
}

#[test]
fn work_is_where_chares_are_and_what_was_moved() {
    let mut app = three_nodes();
    let decision = |at_s, after| Balanced {
        at_s,
        by: "refine".into(),
        moves: 7,
        bytes: 3 << 20,
        before: 1.8,
        expected: 1.05,
        after,
    };
    let MonitorEvent::Run(info) = run_info(3, 2) else { return };
    let chare_types = vec!["Block".into(), "Cell".into()];
    let balanced = vec![decision(4.5, Some(1.1)), decision(9.0, None)];
    tell(&mut app, MonitorEvent::Run(RunInfo { chare_types, balanced, ..info }), 121);
    press(&mut app, KeyCode::Char('5'));
    assert!(!screen(&app, 80, 24).contains("heaviest"), "nobody has measured them");
    for node in 1..=3_u16 {
        let chare = |pe: u32, at: u32, part| HeavyChare {
            pe: u32::from(node - 1) * 2 + pe,
            chare_type: (at % 2) as u16,
            element: format!("[{at}, {node}\u{7}]"),
            part: part / f64::from(node),
        };
        let chares = vec![chare(0, 3, 0.9), chare(0, 4, 0.02), chare(1, 6, 0.4), chare(1, 9, f64::NAN)];
        tell(&mut app, MonitorEvent::Heaviest(Heaviest { node, chares }), 121);
    }
    same_at_all_sizes("work", &app);
    let shown = screen(&app, 80, 24);
    let heavy = shown.lines().skip_while(|line| !line.contains("heaviest chares")).nth(1).unwrap_or_default();
    assert_eq!(
        heavy.split_whitespace().collect::<Vec<_>>(),
        ["0", "fast", "90%", "Cell", "[3,", "1]"],
        "{shown}"
    );
    assert!(!shown.contains("NaN"), "{shown}");
    assert!(shown.contains("0:04.5 refine moves 7 chares (3.0M): imbalance 1.80, expected 1.05, found 1.10"));
    assert!(shown.contains("8 Block, 3 Cell"), "{shown}");
    press(&mut app, KeyCode::Tab);
    assert!(screen(&app, 80, 24).contains("17 Block, 3 Cell"), "{}", screen(&app, 80, 24));
}

#[test]
fn the_log_keeps_remarks_with_their_times() {
    let mut app = three_nodes();
    let slow = Slowdown { node: 1, since_s: 12.3, delivered: 0.11, is_of_speed: true, ..Slowdown::default() };
    let run = |slowdowns, saved| MonitorEvent::Run(RunInfo { slowdowns, saved, ..RunInfo::default() });
    tell(&mut app, run(vec![slow], None), 125);
    tell(&mut app, run(vec![slow], None), 127);
    let saved = Some(SavedAt { number: 3, at_s: 13.0, bytes: 5 << 20 });
    tell(&mut app, run(vec![Slowdown { until_s: Some(13.5), ..slow }], saved), 135);
    let line = OutputLine { node: 2, is_error: true, text: "cannot \u{1b}[31mopen".into() };
    tell(&mut app, MonitorEvent::Output(line), 136);
    tell(&mut app, MonitorEvent::NodeLost { node: 3, reason: "no sign of life for 5 s".into() }, 140);
    tell(&mut app, MonitorEvent::Dropped(12), 141);
    press(&mut app, KeyCode::Char('6'));
    same_at_all_sizes("remarks", &app);
    for _ in 0..40 {
        press(&mut app, KeyCode::Up);
    }
    let shown = screen(&app, 80, 24);
    assert!(shown.contains("5 newer ones below") && !shown.contains("were missed"), "{shown}");
    // A long one is read to its end, and what is old makes room for it.
    let why = "no checkpoint was taken, and the run goes on: saved/generation-000002/chunks cannot be written: No space left on \
               device (os error 28); make room there";
    tell(&mut app, MonitorEvent::Output(OutputLine { node: 0, is_error: true, text: why.into() }), 142);
    for _ in 0..40 {
        press(&mut app, KeyCode::Down);
    }
    for (width, height) in [(80, 24), (60, 15), (24, 12)] {
        let shown = screen(&app, width, height);
        assert!(shown.contains("make room"), "{shown}");
    }
}

#[test]
fn the_help_is_about_the_present_screen_and_can_be_scrolled() {
    let mut app = three_nodes();
    for (key, word) in [('3', "slowest: of a call"), ('4', "half of the busiest"), ('5', "imbalance:")] {
        press(&mut app, KeyCode::Char(key));
        press(&mut app, KeyCode::Char('?'));
        assert!(screen(&app, 80, 24).contains(word), "{}", screen(&app, 80, 24));
    }
    let last = "output of the program";
    assert!(!screen(&app, 60, 15).contains(last));
    for _ in 0..8 {
        press(&mut app, KeyCode::Down);
    }
    assert!(screen(&app, 60, 15).contains(last), "{}", screen(&app, 60, 15));
}

#[test]
fn screens_without_unicode_are_ascii_and_one_can_be_asked_for_as_text() {
    for shown in Screen::ALL {
        let options =
            WindowOptions { unicode: false, colors: Colors::None, screen: shown, ..WindowOptions::default() };
        let app = run(20, &options);
        assert!(screen(&app, 200, 50).is_ascii(), "{}", screen(&app, 200, 50));
    }
    let options = WindowOptions { screen: Screen::Entries, ..WindowOptions::default() };
    assert!(
        Still::after(&[run_info(3, 1)], &options).text(80, 24).contains("no entry method has been timed")
    );
}

#[test]
fn a_profile_that_does_not_come_with_each_snapshot_stays() {
    let app = three_nodes();
    let entries = app.model().entries(&app.nodes());
    assert_eq!(entries[0].calls, 3 * 120 * 50);
    assert_eq!(Duration::from_nanos(entries[0].recent_ns).as_millis(), 2 * 10 * 50 * (2 * 15 + 60) / 10);
    assert_eq!(entries.last().map(|entry| entry.name.as_str()), Some("?"), "a name that is not known");
}

#[test]
fn a_node_of_one_pe_takes_one_line_where_two_do_not_fit() {
    let one_each = |nodes| super::running(nodes, 1, &WindowOptions::default());
    let lines = |app: &App| {
        let shown = screen(app, 80, 24);
        shown.lines().filter(|line| line.contains("node0") && !line.contains("PEs ")).count()
    };
    assert_eq!(lines(&one_each(8)), 16, "with the figures of each");
    let mut app = one_each(18);
    press(&mut app, KeyCode::BackTab);
    press(&mut app, KeyCode::BackTab);
    assert_eq!(lines(&app), 18, "{}", screen(&app, 80, 24));
    same_text("one-pe-nodes", &screen(&app, 80, 24));
}

#[test]
fn the_history_fits_the_run_until_a_scale_is_chosen() {
    let mut app = App::new(&WindowOptions::default());
    tell(&mut app, run_info(1, 1), 0);
    let until = |app: &mut App, from: u64, to: u64| {
        for tenths in from..=to {
            tell(app, MonitorEvent::Snapshot(snapshot(0, 1, tenths)), tenths);
        }
        let shown = screen(app, 80, 24);
        let column = shown.lines().find(|line| line.ends_with("/column")).unwrap_or_default();
        column.rsplit("throttled ").next().unwrap_or_default().trim().to_owned()
    };
    assert_eq!(until(&mut app, 1, 40), "0.25 s/column");
    assert_eq!(until(&mut app, 41, 200), "1 s/column");
    press(&mut app, KeyCode::Char('-'));
    assert_eq!(until(&mut app, 201, 400), "0.5 s/column", "it stays as it was chosen");
    press(&mut app, KeyCode::Char('+'));
    assert_eq!(until(&mut app, 401, 402), "1 s/column");
}
