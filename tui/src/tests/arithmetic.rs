//! Rates, history and sizes of bars.

use std::time::Duration;

use runtime::monitor::wire::{MonitorEvent, NodeSnapshot};

use super::{running, snapshot};
use crate::app::App;
use crate::figures;
use crate::model::Model;
use crate::model::history::Times;
use crate::view::look::Look;
use crate::{Colors, WindowOptions};

fn model(tenths: impl IntoIterator<Item = u64>) -> Model {
    let mut model = Model::default();
    for at in tenths {
        model.apply(MonitorEvent::Snapshot(snapshot(0, 1, at)), Duration::from_millis(at * 100));
    }
    model
}

#[test]
fn rates_come_from_two_snapshots() {
    let rates = model([10, 20]).nodes[&1].rates();
    assert!((rates.sent_messages - 500.0).abs() < 1e-6);
    assert!((rates.sent_bytes - 1e7).abs() < 1e-3);
    assert!((rates.received_messages - 400.0).abs() < 1e-6);
}

#[test]
fn missed_snapshots_do_not_distort_rates_or_history() {
    let all = model(1..=100);
    let some = model((1..=100).filter(|at| at % 7 == 1 || *at == 100));
    assert!((all.nodes[&1].rates().sent_bytes - some.nodes[&1].rates().sent_bytes).abs() < 1.0);
    let whole = |model: &Model| model.pe(0).unwrap().1.history.between(0, 10_000_000_000);
    assert!(whole(&all).total().abs_diff(whole(&some).total()) < 1000);
    assert!(whole(&all).total().abs_diff(10_000_000) < 1000);
}

#[test]
fn counters_that_go_backwards_stand_still() {
    let mut model = model(1..=50);
    let odd = NodeSnapshot { sequence: 51, uptime_ns: 5_100_000_000, ..snapshot(0, 1, 2) };
    model.apply(MonitorEvent::Snapshot(odd), Duration::from_millis(5100));
    assert!(model.nodes[&1].rates().sent_bytes >= 0.0);
    assert_eq!(model.pe(0).unwrap().1.history.between(5_000_000_000, 5_250_000_000).total(), 0);
}

#[test]
fn a_snapshot_overtaken_by_a_later_one_is_ignored() {
    let mut overtaken = model(1..=50);
    overtaken.apply(MonitorEvent::Snapshot(snapshot(0, 1, 45)), Duration::from_millis(5000));
    assert_eq!(overtaken.nodes[&1].last.sequence, 50);
}

#[test]
fn attaching_late_invents_no_history() {
    let late = model([1000, 1001]);
    let past = late.pe(0).unwrap().1.history.between(0, 99_000_000_000);
    assert_eq!(past.total(), 0);
}

#[test]
fn a_long_silence_costs_no_memory() {
    let far = model([1, 2, 3_000_000_000]);
    assert!(far.edge() > 0);
    let app = App::new(&WindowOptions::default());
    assert!(app.pes().is_empty());
}

#[test]
fn equivalents_are_speeds_over_the_fastest_node() {
    let app = running(3, 2, &WindowOptions::default());
    assert!((app.model().equivalents().unwrap() - 1.8).abs() < 1e-9);
}

#[test]
fn tiny_amounts_stay_visible() {
    for unicode in [true, false] {
        let look = Look::new(&WindowOptions { unicode, ..WindowOptions::default() });
        let filled = |share| look.bar(share, 10, look.idle())[0].content.chars().count();
        assert_eq!((filled(0.0), filled(1e-9), filled(1.0)), (0, 1, 10));
        let tiny = look.cell(Times { compute: 1, idle: 1_000_000, ..Times::default() }).0;
        let none = look.cell(Times { idle: 1_000_000, ..Times::default() }).0;
        assert_ne!(tiny, none);
    }
    assert_eq!(figures::percent(1e-9), "<.1%");
    assert_eq!(figures::percent(0.9999), "99%");
    assert_eq!(figures::percent(1.0), "100%");
}

#[test]
fn a_tall_column_stacks_the_states_in_proportion() {
    for unicode in [true, false] {
        let look = Look::new(&WindowOptions { unicode, ..WindowOptions::default() });
        let column = |times| (0..4).map(|row| look.stacked(times, row, 4).0).collect::<String>();
        let quarters = Times { compute: 1, overhead: 1, init: 1, idle: 1, ..Times::default() };
        assert_eq!(column(quarters), if unicode { "█╳▒·" } else { "#xi." });
        let kept = Times { compute: 1, core_wait: 1, throttled: 1, idle: 1, ..Times::default() };
        assert_eq!(column(kept), if unicode { "█┊≈·" } else { "#!~." });
        let cell = |core_wait| look.cell(Times { compute: 2, core_wait, ..Times::default() }).0;
        assert_eq!((cell(1), cell(3)), if unicode { ("▅", "┊") } else { ("7", "!") });
        let thin = Times { compute: 49, overhead: 2, idle: 149, ..Times::default() };
        assert!(!column(thin).contains(if unicode { '╳' } else { 'x' }));
        let tiny = Times { compute: 1, init: 1_000_000, ..Times::default() };
        assert_eq!(column(tiny), if unicode { "▁▒▒▒" } else { "1iii" });
        assert_eq!(column(Times::default()), "    ");
    }
}

#[test]
fn figures_are_short() {
    assert_eq!([1, 2].map(|count| figures::things(count, "PE")), ["1 PE", "2 PEs"]);
    assert_eq!(figures::count(0.4), "0.4");
    assert_eq!(figures::count(12_345.0), "12k");
    assert_eq!(figures::bytes(1536.0), "1.5K");
    assert!((0..64).all(|bit| figures::count((1u64 << bit) as f64).len() <= 6));
    assert!((0..64).all(|bit| figures::bytes((1u64 << bit) as f64).len() <= 6));
    assert_eq!(figures::fit("abcdef", 4), "abc~");
    assert_eq!(figures::wrap("one two", 7), ["one two"]);
    assert_eq!(figures::wrap("one two three", 7), ["one two", "three"]);
    let lines = figures::wrap("a word and another-one-that-is-long", 20);
    assert_eq!(lines, ["a word and", "  another-one-that-i", "  s-long"]);
    assert_eq!(
        (figures::wrap("", 9), figures::wrap("日本", 1)),
        (vec![String::new()], vec!["日".into(), "本".into()])
    );
    assert_eq!(figures::fit("日本語", 4).chars().next(), Some('日'));
}

#[test]
fn the_environment_decides_on_colour_and_characters() {
    let with = |set: &[(&str, &str)]| {
        WindowOptions::from_variables(|name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    };
    assert!(with(&[("LANG", "de_DE.UTF-8")]).unicode);
    assert!(!with(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")]).unicode);
    let colors = |set: &[(&str, &str)]| with(set).colors;
    assert_eq!(colors(&[]), Colors::Named);
    assert_eq!(colors(&[("TERM", "xterm-256color")]), Colors::Indexed);
    assert_eq!(colors(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), Colors::Full);
    for none in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        assert_eq!(colors(&[none, ("COLORTERM", "truecolor")]), Colors::None, "{none:?}");
    }
}
