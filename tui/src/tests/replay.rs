//! A recording in the window: the same model however a moment was reached, in virtual time; keys and screens.

use std::time::Duration;

use crossterm::event::KeyCode;
use proptest::prelude::*;
use runtime::monitor::recording::{Broken, Recorded, Recording};
use runtime::monitor::wire::{MonitorEvent, Phase};

use super::random::monitor;
use super::{press, run_info, same, snapshot};
use crate::app::{App, Event};
use crate::input::Command;
use crate::model::Model;
use crate::player::{Player, Wish};
use crate::still::screen;
use crate::{Colors, Left, PlayOptions, Still, WindowOptions};

/// A run of three nodes over 30 seconds, in which columns are eliminated from the fifth on.
fn recording() -> Recording {
    let at = |tenths| Duration::from_millis(tenths * 100);
    let mut events = vec![Recorded { at: at(0), event: run_info(3, 2) }];
    for tenths in 1..=300 {
        let snapshots = (0..3).map(|place| MonitorEvent::Snapshot(snapshot(place, 2, tenths)));
        let (name, done) = ("column".into(), tenths.saturating_sub(50) * 4);
        let phase = Phase { name, done, total: 2048, ..Phase::default() };
        let phase = (tenths >= 50).then_some(MonitorEvent::Phase(phase));
        events.extend(snapshots.chain(phase).map(|event| Recorded { at: at(tenths), event }));
    }
    let event = MonitorEvent::Ended { code: 0, summary: "finished".into() };
    events.push(Recorded { at: at(303), event });
    Recording { events, broken: None }
}

fn player(recording: Recording) -> Player {
    Player::new(recording, &PlayOptions::default())
}

/// The model of a viewer that saw the run until then.
fn seen_until(recording: &Recording, until: Duration) -> Model {
    let mut model = Model::default();
    for recorded in recording.events.iter().filter(|recorded| recorded.at <= until) {
        model.apply(recorded.event.clone(), recorded.at);
    }
    model.tick(until);
    model
}

fn tick(app: &mut App, seconds: f64) {
    assert_eq!(app.update(Event::Tick, Duration::from_secs_f64(seconds)), None);
}

#[test]
fn screens_of_a_replay() {
    let mut app = App::of_player(player(recording()), &WindowOptions::default());
    tick(&mut app, 17.3);
    same("replay", &app);
    press(&mut app, KeyCode::Char('?'));
    same("replay-help", &app);
    press(&mut app, KeyCode::Char('?'));
    press(&mut app, KeyCode::Char(' '));
    press(&mut app, KeyCode::Char('>'));
    same("replay-paused", &app);
    press(&mut app, KeyCode::End);
    same("replay-end", &app);
}

#[test]
fn without_unicode_a_replay_is_ascii() {
    let options = WindowOptions { unicode: false, colors: Colors::None, ..WindowOptions::default() };
    let shown = Still::of_moment(recording(), Duration::from_secs(12), &options).text(80, 24);
    assert!(
        shown.is_ascii() && shown.contains(" column 280 of 2048 ") && shown.contains(" 0:12.0 of 0:30.3 ")
    );
}

#[test]
fn keys_move_through_a_recording() {
    let mut app = App::of_player(player(recording()), &WindowOptions::default());
    let position = |app: &App| app.player.as_ref().unwrap().position().as_millis();
    tick(&mut app, 10.0);
    assert_eq!(position(&app), 10_000);
    for (key, place) in [
        (KeyCode::Right, 15_000),
        (KeyCode::Left, 10_000),
        (KeyCode::PageUp, 6_970),
        (KeyCode::PageDown, 10_000),
        (KeyCode::End, 30_300),
        (KeyCode::Right, 30_300),
        (KeyCode::Home, 0),
        (KeyCode::Left, 0),
    ] {
        assert_eq!(press(&mut app, key), None);
        assert_eq!(position(&app), place, "{key:?}");
    }
    press(&mut app, KeyCode::Char(' '));
    tick(&mut app, 20.0);
    assert_eq!(position(&app), 0, "paused");
    press(&mut app, KeyCode::Char(' '));
    press(&mut app, KeyCode::Char('>'));
    tick(&mut app, 25.0);
    assert_eq!(position(&app), 10_000, "twice as fast");
    press(&mut app, KeyCode::Char('<'));
    press(&mut app, KeyCode::Char('<'));
    tick(&mut app, 27.0);
    assert_eq!(position(&app), 11_000, "half as fast");
    tick(&mut app, 100.0);
    assert!(app.player.as_ref().unwrap().at_end());
    assert_eq!(press(&mut app, KeyCode::Char('x')), None, "only q leaves");
    press(&mut app, KeyCode::Char(' '));
    assert_eq!(position(&app), 0, "again");
    assert_eq!(press(&mut app, KeyCode::Char('q')), Some(Left::Ended));
}

#[test]
fn letters_of_a_filter_do_not_move() {
    let mut app = App::of_player(player(recording()), &WindowOptions::default());
    for key in ['/', 'o', ' ', '>', '<'] {
        press(&mut app, KeyCode::Char(key));
    }
    assert_eq!(app.choice.filter, "o ><");
    assert!(!app.paused());
}

#[test]
fn a_recording_that_breaks_off_says_so_at_its_end() {
    let mut cut = recording();
    cut.events.truncate(600);
    cut.broken = Some(Broken::Cut(4711));
    let end = cut.duration();
    let shown = Still::of_moment(cut.clone(), end, &WindowOptions::default()).text(100, 24);
    assert!(shown.contains(" ENDED: the file is cut off at byte 4711;"), "{shown}");
    let before = Still::of_moment(cut, end / 2, &WindowOptions::default()).text(100, 24);
    assert!(!before.contains("ENDED"), "{before}");
}

#[test]
fn a_long_recording_is_sought_from_key_frames_and_within_bounds() {
    let recording = recording();
    let mut player = player(recording.clone());
    player.obey(Wish::Ending);
    for tenth in (0..300).rev() {
        let moment = Duration::from_millis(tenth * 100 + 50);
        player.go_to(moment);
        assert!(*player.model() == seen_until(&recording, moment), "{moment:?}");
    }
}

fn wish() -> impl Strategy<Value = Wish> {
    use Wish::*;
    let all = vec![Pause, Slower, Faster, Earlier, Later, MuchEarlier, MuchLater, Beginning, Ending];
    proptest::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is in the recording, and however one came to a moment.
    #[test]
    fn a_moment_is_the_same_however_it_was_reached(
        events in proptest::collection::vec((0..500u64, monitor()), 0..80),
        way in proptest::collection::vec((wish(), 0..3_000u64), 0..30),
    ) {
        let mut at = Duration::ZERO;
        let events: Vec<Recorded> = events.into_iter().map(|(gap, event)| {
            at += Duration::from_millis(gap);
            Recorded { at, event }
        }).collect();
        let recording = Recording { events, broken: None };
        let mut player = player(recording.clone());
        let mut clock = Duration::ZERO;
        for (wish, passed) in way {
            player.obey(wish);
            clock += Duration::from_millis(passed);
            player.tick(clock);
            prop_assert!(player.position() <= player.duration());
            prop_assert!(*player.model() == seen_until(&recording, player.position()));
        }
    }
}

#[test]
fn no_key_is_lost_that_a_window_on_a_run_knows() {
    // What `wish` takes away from the window has another key: back, open, page up and down, first and last.
    use crossterm::event::{KeyEvent, KeyModifiers};
    let keys = [
        (KeyCode::Backspace, KeyModifiers::NONE, Command::FilterPop),
        (KeyCode::Enter, KeyModifiers::NONE, Command::Open),
        (KeyCode::Char('b'), KeyModifiers::CONTROL, Command::PageUp),
        (KeyCode::Char('f'), KeyModifiers::CONTROL, Command::PageDown),
        (KeyCode::Char('g'), KeyModifiers::NONE, Command::First),
        (KeyCode::Char('G'), KeyModifiers::NONE, Command::Last),
    ];
    for (code, modifiers, command) in keys {
        let key = KeyEvent::new(code, modifiers);
        assert_eq!(crate::input::wish(key, false), None);
        assert_eq!(crate::input::command(key, false), Some(command));
    }
}

#[test]
fn every_screen_of_a_replay_fits_every_size() {
    let mut app = App::of_player(player(recording()), &WindowOptions::default());
    tick(&mut app, 9.0);
    for key in [KeyCode::Tab, KeyCode::Char('?')] {
        press(&mut app, key);
        for width in 1..100 {
            for height in 1..30 {
                screen(&app, width, height);
            }
        }
    }
}
