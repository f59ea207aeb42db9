//! Screens of a run, compared with the texts in `tests/screens`.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use runtime::monitor::wire::{LeftAt, MonitorEvent, OutputLine, PeState, Phase};

use super::{press, run_info, running, same, same_at_all_sizes, same_text, snapshot, tell};
use crate::app::{App, Event};
use crate::still::screen;
use crate::{AtEnd, Colors, Left, Screen, Still, WindowOptions};

fn ordinary() -> App {
    running(3, 2, &WindowOptions::default())
}

#[test]
fn pes_under_their_nodes() {
    same("pes", &ordinary());
    same_at_all_sizes("load-of-two-each", &ordinary());
}

#[test]
fn nothing_yet() {
    same("waiting", &App::new(&WindowOptions::default()));
}

#[test]
fn without_unicode_every_character_is_ascii() {
    let mut app =
        running(3, 2, &WindowOptions { unicode: false, colors: Colors::None, ..WindowOptions::default() });
    same("ascii", &app);
    assert!(screen(&app, 140, 45).is_ascii());
    press(&mut app, KeyCode::Char('?'));
    let help = screen(&app, 80, 45);
    assert!(help.is_ascii() && help.contains(" out, in: ") && help.contains("its limit\n"), "{help}");
}

#[test]
fn three_hundred_pes_begin_by_node() {
    let mut app = running(16, 19, &WindowOptions::default());
    same("many-nodes", &app);
    press(&mut app, KeyCode::Tab);
    press(&mut app, KeyCode::End);
    same("many-pes", &app);
}

#[test]
fn node_screen_and_the_pes_of_one() {
    let mut app = ordinary();
    press(&mut app, KeyCode::Tab);
    same("nodes", &app);
    press(&mut app, KeyCode::Down);
    press(&mut app, KeyCode::Enter);
    same("one-node", &app);
}

/// What nodes hold, in words of the application's: beside the share where there is room, and on the node screen.
#[test]
fn what_nodes_hold_is_said() {
    let mut app = ordinary();
    let MonitorEvent::Run(mut run) = run_info(3, 2) else { return };
    for (node, holds) in run.nodes.iter_mut().zip(["24 blocks, 98k atoms", "13 blocks, \u{1b}53k atoms", ""])
    {
        node.holds = holds.into();
    }
    tell(&mut app, MonitorEvent::Run(run), 121);
    let narrow = screen(&app, 80, 24);
    assert!(narrow.contains("data ") && !narrow.contains("blocks"), "{narrow}");
    let wide = screen(&app, 140, 45);
    assert!(wide.contains("data 33% 24 blocks, 98k atoms ") && wide.contains("13 blocks,"), "{wide}");
    press(&mut app, KeyCode::Tab);
    let narrow = screen(&app, 80, 24);
    assert!(narrow.contains("speed 2.00 24 blocks, 98k atoms ") && narrow.contains("mem 300M"), "{narrow}");
    assert_eq!((narrow.matches("blocks").count(), narrow.matches("data 33%").count()), (2, 1), "{narrow}");
    press(&mut app, KeyCode::Enter);
    press(&mut app, KeyCode::Enter);
    assert!(screen(&app, 80, 24).contains("24 blocks, 98k atoms"), "{}", screen(&app, 80, 24));
}

#[test]
fn a_lost_node_stays_with_its_reason_and_age() {
    let mut app = ordinary();
    let reason = "no sign of life for 5 s".into();
    tell(&mut app, MonitorEvent::NodeLost { node: 2, reason }, 121);
    for tenths in 122..=160 {
        tell(&mut app, MonitorEvent::Snapshot(snapshot(0, 2, tenths)), tenths);
    }
    same("lost", &app);
}

#[test]
fn a_node_that_has_left_is_not_lost_and_its_pes_stand_where_they_are() {
    let (mut app, mut without) = (ordinary(), ordinary());
    let MonitorEvent::Run(mut run) = run_info(3, 2) else { return };
    run.nodes[1].left = Some(LeftAt { at_s: 12.1, how: "its PEs went on (2 to old)".into() });
    tell(&mut app, MonitorEvent::Run(run), 121);
    for tenths in 121..=125 {
        let mut on_old = snapshot(2, 2, tenths);
        tell(&mut without, MonitorEvent::Snapshot(on_old.clone()), tenths);
        on_old.pes.insert(0, snapshot(1, 2, tenths).pes.remove(0));
        tell(&mut app, MonitorEvent::Snapshot(on_old), tenths);
    }
    let rates = |app: &App| app.model().pe(4).map(|(_, pe)| pe.rates());
    assert_eq!(rates(&app), rates(&without), "each is compared with itself");
    let old: Vec<u32> = app.model().nodes[&3].pes.iter().map(|pe| pe.last.pe).collect();
    assert_eq!(old, [2, 4, 5]);
    press(&mut app, KeyCode::Tab);
    let shown = screen(&app, 140, 45);
    assert!(shown.contains("left 0s ago: its PEs went on (2 to old)"), "{shown}");
    assert!(!shown.contains("LOST") && shown.contains("5 PEs on 2 nodes"), "{shown}");
}

#[test]
fn a_forecast_is_marked_as_such_and_its_detail_is_the_first_to_give_way() {
    let mut app = ordinary();
    for second in 0..=20 {
        let (name, detail) = ("iteration".into(), "change 4.7e-2, wants 1e-10".into());
        let phase = Phase { name, done: 60 * second, total: 5000 - second, is_forecast: true, detail };
        tell(&mut app, MonitorEvent::Phase(phase), 121 + 10 * second);
    }
    let shown = |width| screen(&app, width, 24).lines().nth(1).unwrap().trim_end().to_string();
    for (width, beginning) in [
        (60, " iteration 1200 of ~4980 █"),
        (79, " iteration 1200 of ~4980 █"),
        (80, " iteration 1200 of ~4980 change 4.7e-2, wants 1e-10 █"),
        (140, " iteration 1200 of ~4980 change 4.7e-2, wants 1e-10 █"),
    ] {
        let line = shown(width);
        assert!(line.starts_with(beginning) && line.ends_with(" 24%  about 1m03s left"), "{width}: {line}");
    }
}

#[test]
fn missed_events_are_shown() {
    let mut app = ordinary();
    tell(&mut app, MonitorEvent::Dropped(1234), 121);
    same("dropped", &app);
}

#[test]
fn help_detail_log_and_filter() {
    let mut app = ordinary();
    press(&mut app, KeyCode::Char('?'));
    same("help", &app);
    let help = screen(&app, 80, 45);
    for column in ["idle:", "entries:", "queue, q:", "entry method:", "speed:", "data:", "↑ ↓:", "mem:"] {
        assert!(help.contains(column), "{column} is not explained: {help}");
    }
    press(&mut app, KeyCode::Esc);
    press(&mut app, KeyCode::Enter);
    same("detail", &app);
    press(&mut app, KeyCode::Esc);
    for (number, text) in ["one", "\u{1b}[2Jtwo", "three"].into_iter().enumerate() {
        let line = OutputLine { node: number as u16, is_error: number == 1, text: text.into() };
        tell(&mut app, MonitorEvent::Output(line), 121);
    }
    press(&mut app, KeyCode::Char('l'));
    same("log", &app);
    for key in ['/', 'm', 'i', 'd'] {
        press(&mut app, KeyCode::Char(key));
    }
    same("filter", &app);
}

#[test]
fn a_pause_freezes_the_picture_but_not_the_recording() {
    let mut app = ordinary();
    press(&mut app, KeyCode::Char(' '));
    let before = screen(&app, 80, 24);
    same("paused", &app);
    app.take_changed();
    for tenths in 121..=150 {
        tell(&mut app, MonitorEvent::Snapshot(snapshot(0, 2, tenths)), tenths);
    }
    assert!(!app.take_changed(), "a frozen picture is not drawn again");
    assert_eq!(screen(&app, 80, 24), before);
    press(&mut app, KeyCode::Char(' '));
    let edge = app.model().edge();
    let (_, pe) = app.model().pe(0).unwrap();
    assert_eq!(edge, 15_000_000_000);
    assert_eq!(pe.history.between(12_000_000_000, 15_000_000_000).total(), 3_000_000);
}

#[test]
fn the_end_is_said_and_any_other_key_leaves() {
    let mut app = ordinary();
    let end = MonitorEvent::Ended { code: 3, summary: "verification failed".into() };
    assert_eq!(tell(&mut app, end, 121), None);
    same("ended", &app);
    assert_eq!(press(&mut app, KeyCode::Char('x')), Some(Left::Ended));
    for (at_end, code, left) in [
        (AtEnd::Leaves, 0, Some(Left::Ended)),
        (AtEnd::StaysIfWell, 0, None),
        (AtEnd::StaysIfWell, 1, Some(Left::Ended)),
        (AtEnd::Stays, 1, None),
    ] {
        let mut app = running(3, 2, &WindowOptions { at_end, ..WindowOptions::default() });
        let end = MonitorEvent::Ended { code, summary: "over".into() };
        assert_eq!(tell(&mut app, end, 121), left, "{at_end:?} {code}");
    }
}

#[test]
fn what_the_run_came_to_stands_below_the_load_at_its_end() {
    let mut app = ordinary();
    let lines = ["node        PEs speed", "fast          2  1.00", "result verified"];
    let result = lines.map(|line| format!("{line}\n")).concat();
    tell(&mut app, MonitorEvent::Result(result), 121);
    tell(&mut app, MonitorEvent::Ended { code: 0, summary: "finished".into() }, 121);
    same("result", &app);
    let small = screen(&app, 40, 11);
    assert!(small.contains("result verified") && small.contains("fast"), "{small}");
    press(&mut app, KeyCode::Char('w'));
    assert!(!screen(&app, 80, 24).contains("verified"), "other screens keep their room");
}

/// The table that ends every run is 80 columns wide; what is longer goes on in the next line.
#[test]
fn all_columns_and_words_of_a_result_are_seen() {
    let mut app = ordinary();
    let title = format!("{:<10}{:>70}", "node", "entries  MB sent");
    let (row, words) = (format!("{:<10}{:>70}", "fast", "1234     5.67"), "word ".repeat(20));
    tell(&mut app, MonitorEvent::Result(format!("{title}\n{row}\nsum: {words}end\n")), 121);
    tell(&mut app, MonitorEvent::Ended { code: 0, summary: "finished".into() }, 121);
    let shown = screen(&app, 80, 24);
    assert!(shown.contains(&format!("\n{title}\n{row}\n")), "{shown}");
    let wrapped = format!("\nsum: {}\n  {}end\n", "word ".repeat(15).trim_end(), "word ".repeat(5));
    assert!(shown.contains(&wrapped), "{shown}");
    press(&mut app, KeyCode::Char('r'));
    let shown = screen(&app, 40, 12);
    assert!(shown.contains("result lines ") || shown.contains("end\n"), "{shown}");
}

#[test]
fn a_long_result_leaves_half_to_the_load_and_can_be_seen_whole() {
    let mut app = running(3, 4, &WindowOptions::default());
    let result: String =
        (1..=24).map(|number| format!("PEs of node{number:03}: 9% without a core\n")).collect();
    press(&mut app, KeyCode::Char('r'));
    tell(&mut app, MonitorEvent::Result(result), 121);
    tell(&mut app, MonitorEvent::Ended { code: 0, summary: "finished".into() }, 121);
    same("long-result", &app);
    let seen = |app: &App, number: &str| screen(app, 80, 24).contains(&format!("node{number}:"));
    assert!(seen(&app, "024") && !seen(&app, "010"));
    assert_eq!(press(&mut app, KeyCode::Char('r')), None);
    same("whole-result", &app);
    for _ in 0..9 {
        press(&mut app, KeyCode::Up);
    }
    assert!(seen(&app, "001") && !seen(&app, "024"), "{}", screen(&app, 80, 24));
    press(&mut app, KeyCode::Esc);
    assert!(!seen(&app, "001") && seen(&app, "024"), "{}", screen(&app, 80, 24));
}

#[test]
fn a_long_name_does_not_touch_what_is_beside_it() {
    let mut app = ordinary();
    let MonitorEvent::Run(mut run) = run_info(3, 2) else { return };
    for (node, name) in run.nodes.iter_mut().zip(["localhost", "workstation-of-ann", "b"]) {
        node.name = name.into();
    }
    tell(&mut app, MonitorEvent::Run(run), 121);
    let shown = screen(&app, 80, 24);
    assert!(shown.contains(" localhost C ") && shown.contains(" workstat~ C "), "{shown}");
    for key in ['w', 'e', 'c'] {
        press(&mut app, KeyCode::Char(key));
        let shown = screen(&app, 80, 24);
        assert!(shown.contains(" localhost ") && shown.contains(" workstat~ "), "{shown}");
    }
}

/// As in the README: such a program has no time that is not timed, and its PEs are busy all the same.
#[test]
fn a_program_that_never_says_that_its_initialisation_is_over_computes() {
    let shown = |has_said: bool| {
        let mut app = App::new(&WindowOptions::default());
        tell(&mut app, run_info(1, 1), 0);
        for tenths in 1..=60 {
            let mut snapshot = snapshot(0, 1, tenths);
            let pe = &mut snapshot.pes[0];
            let half = tenths * 50_000_000;
            (pe.state, pe.init_ns, pe.idle_ns) = (PeState::Init, half, half);
            (pe.compute_ns, pe.overhead_ns) = (u64::from(has_said && tenths == 60), 0);
            tell(&mut app, MonitorEvent::Snapshot(snapshot), tenths);
        }
        let load = screen(&app, 80, 24);
        press(&mut app, KeyCode::Enter);
        (load, screen(&app, 80, 24))
    };
    let busy = |load: &str| load.lines().nth(2).is_some_and(|line| line.ends_with(" 50%"));
    let pe = |load: &str| load.lines().find(|line| line.contains("   0 ")).unwrap_or_default().to_string();
    let (load, detail) = shown(false);
    assert!(busy(&load) && pe(&load).contains(" C "), "{load}");
    assert!(!load.lines().take(20).any(|line| line.contains('▒')), "{load}");
    assert!(detail.contains("computing          3.000 s   50%"), "{detail}");
    let (load, detail) = shown(true);
    assert!(busy(&load) && pe(&load).contains(" N "), "{load}");
    assert!(load.lines().take(20).any(|line| line.contains('▒')), "{load}");
    assert!(detail.contains("initialising       3.000 s   50%"), "{detail}");
}

#[test]
fn a_late_viewer_sees_what_an_early_one_does() {
    let mut early = App::new(&WindowOptions::default());
    let mut late = App::new(&WindowOptions::default());
    tell(&mut late, run_info(3, 2), 0);
    tell(&mut early, run_info(3, 2), 0);
    for tenths in 1..=400 {
        let mut events: Vec<_> =
            (0..3).map(|place| MonitorEvent::Snapshot(snapshot(place, 2, tenths))).collect();
        if tenths == 55 {
            let text = "something is odd".into();
            events.push(MonitorEvent::Output(OutputLine { node: 2, is_error: true, text }));
        }
        tell(&mut late, MonitorEvent::at(Duration::from_millis(tenths * 100)), 0);
        for event in events {
            tell(&mut early, event.clone(), tenths);
            tell(&mut late, event, 0);
        }
    }
    late.update(Event::Tick, Duration::ZERO);
    early.update(Event::Tick, Duration::from_secs(40));
    for key in ['1', '2', '3', '4', '5', '6'] {
        press(&mut early, KeyCode::Char(key));
        press(&mut late, KeyCode::Char(key));
        assert_eq!(screen(&late, 80, 24), screen(&early, 80, 24), "{key}");
    }
    assert!(screen(&late, 80, 24).contains("0:05.5"), "the log has the times of then");
    // Its clock goes on from there.
    late.update(Event::Tick, Duration::from_secs(1));
    assert_eq!(late.model().now, Duration::from_secs(41));
}

#[test]
fn render_text_needs_no_terminal() {
    let events: Vec<MonitorEvent> = std::iter::once(super::run_info(3, 1))
        .chain((1..50).flat_map(|t| (0..3).map(move |place| MonitorEvent::Snapshot(snapshot(place, 1, t)))))
        .collect();
    same_text("render-text", &Still::after(&events, &WindowOptions::default()).text(60, 12));
}

#[test]
fn the_selected_pe_is_on_the_page_wherever_it_is() {
    let mut app = running(10, 7, &WindowOptions::default());
    press(&mut app, KeyCode::Tab);
    for place in 0..70 {
        let shown = screen(&app, 80, 17);
        assert!(shown.contains(&format!("▸{place:>4} ")), "PE {place}:\n{shown}");
        press(&mut app, KeyCode::Down);
    }
}

/// The picture is drawn, and then clicked at this place.
fn click(app: &mut App, column: u16, row: u16) {
    see(app);
    point(app, MouseEventKind::Down(MouseButton::Left), (column, row));
}

pub(super) fn see(app: &mut App) {
    let mut terminal = ratatui::Terminal::new(ratatui::backend::TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| app.spots = crate::view::draw(frame, app)).unwrap();
}

fn point(app: &mut App, kind: MouseEventKind, (column, row): (u16, u16)) {
    let mouse = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
    assert_eq!(app.update(Event::Mouse(mouse), Duration::from_secs(30)), None);
}

#[test]
fn the_mouse_chooses_what_is_under_it() {
    let mut app = running(3, 2, &WindowOptions::default());
    let foot = screen(&app, 80, 24).lines().last().unwrap().to_string();
    for shown in [Screen::Traffic, Screen::Log, Screen::Entries, Screen::Load] {
        let column = foot.find(shown.name()).unwrap() as u16;
        click(&mut app, column, 23);
        assert_eq!(app.choice.screen, shown);
    }
    // Every line of a PE chooses it, and so says the mark in front of it.
    let line_of = |app: &App, pe: &str| {
        let shown = screen(app, 80, 24);
        shown.lines().position(|line| line.chars().skip(1).collect::<String>().starts_with(pe)).unwrap()
            as u16
    };
    for pe in ["   4 ", "   1 "] {
        let line = line_of(&app, pe);
        click(&mut app, 30, line);
        assert!(screen(&app, 80, 24).lines().nth(line.into()).unwrap().starts_with('▸'));
    }
    let line = line_of(&app, "   1 ");
    click(&mut app, 30, line);
    assert_eq!(app.choice.detail, Some(1), "clicked again it opens");
    point(&mut app, MouseEventKind::Down(MouseButton::Right), (0, 0));
    assert_eq!(app.choice.detail, None);
    point(&mut app, MouseEventKind::ScrollDown, (9, 9));
    assert_eq!(app.choice.selected, 2);
    click(&mut app, 79, 0);
    assert_eq!((app.choice.selected, app.choice.detail), (2, None), "nothing is there");
}

#[test]
fn a_picture_of_the_window_has_its_text_its_colours_and_nothing_that_xml_forbids() {
    let mut info = run_info(3, 1);
    if let MonitorEvent::Run(run) = &mut info {
        run.run_id = "a<b>&c".into();
    }
    let snapshot = MonitorEvent::Snapshot(snapshot(0, 1, 200));
    let svg = Still::after(&[info, snapshot], &WindowOptions::default()).svg(80, 24);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("a&lt;b&gt;&amp;c") && !svg.contains("a<b"), "{svg}");
    assert!(
        svg.contains("fill=\"#2ea05f\"") && ["computation", "over"].iter().all(|word| svg.contains(word)),
        "{svg}"
    );
    assert!(svg.matches("<text").count() == svg.matches("</text>").count());
}
