//! What PEs wait for: on the screen that says so, and beside the nodes.

use crossterm::event::KeyCode;
use runtime::monitor::samples::{Cause, Ran, Samples, Sent};
use runtime::monitor::wire::{
    MonitorEvent, NodeSnapshot, PeSnapshot, PeState, Processors, RunInfo, SavedAt, SavingCost, Slowdown,
};

use super::{press, run_info, same, same_at_all_sizes, snapshot, tell};
use crate::WindowOptions;
use crate::app::App;
use crate::still::screen;

const TENTH: u64 = 100_000_000;

/// What a PE did in each tenth of a second, in per cent: computing, waiting for a core, stopped by a quota, asleep for its
/// share; idle else.
fn pe(number: u32, tenths: u64, [compute, core_wait, quota, throttled]: [u64; 4], chares: u64) -> PeSnapshot {
    let time = |percent: u64| tenths * TENTH / 100 * percent;
    PeSnapshot {
        pe: number,
        state: PeState::Idle,
        compute_ns: time(compute),
        core_wait_ns: time(core_wait),
        quota_ns: time(quota),
        throttled_ns: time(throttled),
        idle_ns: time(100 - compute - core_wait - quota - throttled),
        chares,
        entries: tenths,
        queue_messages: if throttled > 0 { 12 } else { 0 },
        ..PeSnapshot::default()
    }
}

/// A run of three nodes with one PE each after twelve seconds.
fn run(change: impl FnOnce(&mut RunInfo), did: [[u64; 4]; 3], chares: [u64; 3]) -> App {
    let mut app = App::new(&WindowOptions::default());
    let MonitorEvent::Run(mut info) = run_info(3, 1) else { return app };
    change(&mut info);
    tell(&mut app, MonitorEvent::Run(info), 0);
    for tenths in 1..=120 {
        for place in 0..3 {
            let at = usize::from(place);
            let second_ns = tenths / 10 * 10 * TENTH;
            let snapshot = NodeSnapshot {
                pes: vec![pe(u32::from(place), tenths, did[at], chares[at])],
                processors: Processors {
                    uptime_ns: second_ns,
                    busy_ns: second_ns,
                    own_ns: second_ns / 100 * did[at][0],
                },
                ..snapshot(place, 1, tenths)
            };
            tell(&mut app, MonitorEvent::Snapshot(snapshot), tenths);
        }
    }
    app
}

/// The reasons on the screen, from the first PE on.
fn reasons(app: &mut App) -> Vec<String> {
    press(app, KeyCode::Char('w'));
    let shown = screen(app, 160, 30);
    press(app, KeyCode::Char('w'));
    let lines = shown.lines().skip_while(|line| !line.contains("waits for")).skip(1).take(3);
    lines.map(|line| line.chars().skip(58).collect::<String>().trim().to_string()).collect()
}

#[test]
fn a_node_that_delivers_a_tenth_is_the_first_thing_to_be_seen() {
    let slow = Slowdown { node: 1, since_s: 12.3, delivered: 0.11, is_of_speed: true, ..Slowdown::default() };
    let mut app =
        run(|info| info.slowdowns = vec![slow], [[10, 80, 0, 0], [10, 0, 0, 0], [30, 0, 0, 0]], [4, 4, 4]);
    same("slow-node", &app);
    let sentence = " fast delivers 0.11 of its measured speed since 00:12: it waits for its cores";
    assert!(screen(&app, 80, 24).contains(sentence));
    press(&mut app, KeyCode::Char('w'));
    same_at_all_sizes("why", &app);
    press(&mut app, KeyCode::Tab);
    assert!(screen(&app, 80, 24).contains("a core: others use 0.9"), "{}", screen(&app, 80, 24));
    press(&mut app, KeyCode::Esc);
    let worse = Slowdown { node: 2, delivered: 0.05, ..slow };
    tell(&mut app, MonitorEvent::Run(RunInfo { slowdowns: vec![worse, slow], ..RunInfo::default() }), 121);
    let shown = screen(&app, 80, 24);
    assert!(shown.contains(" middle delivers 0.05 ") && !shown.contains("fast delivers"), "{shown}");
    let over = Slowdown { until_s: Some(15.0), ..slow };
    tell(&mut app, MonitorEvent::Run(RunInfo { slowdowns: vec![over], ..RunInfo::default() }), 121);
    assert!(!screen(&app, 80, 24).contains("deliver"), "it is over");
}

#[test]
fn the_age_of_the_last_checkpoint_is_in_the_title() {
    let mut app = run(|_| {}, [[10, 0, 0, 0]; 3], [0, 0, 0]);
    assert!(!screen(&app, 120, 30).contains("saved"));
    let saved = Some(SavedAt { number: 3, at_s: 2.0, bytes: 5 << 20 });
    tell(&mut app, MonitorEvent::Run(RunInfo { saved, ..RunInfo::default() }), 121);
    let shown = screen(&app, 120, 30);
    let title = shown.lines().next().unwrap_or_default();
    assert!(title.contains(" saved 00:00:10 ago (5.0M) "), "{title}");
    tell(&mut app, MonitorEvent::Saving(SavingCost { last_s: 0.25, all_s: 0.36 }), 121);
    let shown = screen(&app, 120, 30);
    let title = shown.lines().next().unwrap_or_default();
    assert!(title.contains(" saved 00:00:10 ago (5.0M in 250ms, 3.0% of the run) "), "{title}");
    tell(&mut app, MonitorEvent::Saving(SavingCost { last_s: f64::NAN, all_s: f64::INFINITY }), 121);
    screen(&app, 120, 30);
}

#[test]
fn a_checkpoint_that_fails_is_told_on_every_screen_until_one_is_taken() {
    let mut app = run(|_| {}, [[10, 0, 0, 0]; 3], [0, 0, 0]);
    tell(&mut app, MonitorEvent::NotSaved("there is no room".into()), 121);
    for key in ['1', '6'] {
        press(&mut app, KeyCode::Char(key));
        for (width, height) in [(80, 24), (200, 50)] {
            let shown = screen(&app, width, height);
            assert!(shown.lines().next().unwrap_or_default().contains(" NOT SAVED "), "{shown}");
        }
    }
    tell(&mut app, MonitorEvent::Saving(SavingCost { last_s: 0.25, all_s: 0.36 }), 121);
    assert!(!screen(&app, 80, 24).contains("NOT SAVED"), "it is over");
}

#[test]
fn who_is_throttled_does_not_wait_for_messages() {
    let mut app = run(
        |info| info.nodes[1].cpu_share = 0.25,
        [[100, 0, 0, 0], [25, 0, 0, 75], [25, 0, 75, 0]],
        [1, 1, 1],
    );
    assert_eq!(reasons(&mut app), ["- (it computes)", "its cpu_share of 0.25", "a quota of CPU time"]);
    let shown = screen(&app, 80, 24);
    let middle = shown.lines().find(|line| line.contains("1 middle")).unwrap_or_default();
    assert!(
        middle.contains('≈') && middle.contains(" 0% ") && middle.ends_with("12"),
        "idle for none of it: {shown}"
    );
}

/// What a PE did adds up to all its time at any width that has room for more than two parts, and it is not said to want a core.
#[test]
fn who_is_throttled_has_a_column_for_it_and_is_what_others_wait_for() {
    let idle = [8, 0, 0, 0];
    for (throttled, words) in
        [([8, 1, 0, 91], "is held back by its cpu_share"), ([8, 1, 91, 0], "is held back by a quota")]
    {
        let mut app = run(|_| {}, [idle, throttled, idle], [1, 1, 1]);
        assert_eq!(reasons(&mut app)[0], format!("messages: PE 1 (middle) {words}"));
        press(&mut app, KeyCode::Char('w'));
        for width in [60, 80, 100, 120] {
            let shown = screen(&app, width, 24);
            let middle = shown.lines().find(|line| line.contains("1 middle")).unwrap_or_default();
            assert!(shown.contains(" thro ") && middle.contains(" 91% "), "{shown}");
        }
    }
    let both = [8, 0, 46, 46];
    let mut app = run(|_| {}, [idle, both, both], [1, 1, 1]);
    let words = "messages: PE 1 (middle) and PE 2 (old) are held back by their cpu_share";
    assert_eq!(reasons(&mut app)[0], words);
}

#[test]
fn a_column_of_counts_of_pes_is_headed_so() {
    let mut app = run(|_| {}, [[10, 0, 0, 0]; 3], [1, 1, 1]);
    press(&mut app, KeyCode::Char('w'));
    assert!(screen(&app, 80, 24).contains("   PE node "));
    press(&mut app, KeyCode::Tab);
    assert!(screen(&app, 80, 24).contains("  PEs node "), "{}", screen(&app, 80, 24));
}

#[test]
fn a_node_that_has_nothing_to_do_is_not_called_slow() {
    let slow = Slowdown { node: 1, since_s: 1.0, delivered: 0.3, is_of_speed: true, ..Slowdown::default() };
    let shown = |fast| {
        let app = run(|info| info.slowdowns = vec![slow], [fast, [50, 0, 0, 0], [50, 0, 0, 0]], [4, 4, 4]);
        screen(&app, 80, 24)
    };
    let busy = shown([3, 17, 0, 0]);
    assert!(busy.contains("fast delivers 0.30") && busy.contains(" x0.30 "), "{busy}");
    let idle = shown([1, 2, 0, 0]);
    assert!(!idle.contains("delivers") && !idle.contains("x0.30"), "{idle}");
}

#[test]
fn who_is_idle_is_told_what_is_known_and_no_more() {
    let idle = [0; 4];
    let busy = [95, 0, 0, 0];
    let mut app = run(|_| {}, [busy, idle, idle], [1, 1, 0]);
    assert_eq!(
        reasons(&mut app),
        ["- (it computes)", "messages: only PE 0 (fast) is busy", "work: it has no chares"]
    );
    let half = [60, 38, 0, 0];
    let mut app = run(|_| {}, [half, half, idle], [1, 1, 1]);
    assert_eq!(reasons(&mut app)[2], "messages: no PE is busy");
    let mut app = run(|_| {}, [busy, busy, idle], [1, 1, 1]);
    assert_eq!(reasons(&mut app)[2], "messages: only PEs 0 and 1 are busy");
    let mut app = run(|_| {}, [idle; 3], [1, 1, 1]);
    assert_eq!(reasons(&mut app), ["messages: no PE is busy"; 3]);
    let mut app = run(|_| {}, [idle, [10, 85, 0, 0], [20, 0, 0, 78]], [1, 1, 1]);
    let who = "messages: PE 1 (middle) has work, but no core, and PE 2 (old) is held back by its cpu_share";
    assert_eq!(reasons(&mut app)[0], who);
    let mut app = run(|_| {}, [idle, [10, 85, 0, 0], [20, 75, 0, 0]], [1, 1, 1]);
    let who = "messages: PE 1 (middle) and PE 2 (old) have work, but no core";
    assert_eq!(reasons(&mut app)[0], who);
    let mut app = run(|_| {}, [[20, 30, 0, 0]; 3], [1, 1, 1]);
    assert_eq!(reasons(&mut app), ["messages: all PEs wait for their cores too"; 3]);
}

/// PE 1 waits for what PE 2 sends, most of the time; PE 0 for a reduction, whoever sends that.
fn who_waits_for_pe_2(did: [u64; 4]) -> App {
    let names = ["Block: Shift", "Block: (reduction)", "Block: Done"].map(str::to_owned).to_vec();
    let mut app = run(|info| info.entry_names = names, [[0; 4], [1, 0, 0, 0], did], [1, 1, 1]);
    let ms = 1_000_000;
    for tenth in 60..120_u64 {
        let of = |pe: u32, name, wait_ms: u64, from: u32| Ran {
            pe,
            name,
            began_ns: tenth * TENTH,
            took_ns: ms,
            idle_ns: wait_ms * ms,
            cause: Some(Cause { pe: from, number: 1, bytes: 10 }),
        };
        let pe0 = vec![of(0, 1, 40, tenth as u32 % 3), of(0, 0, 10, 1)];
        let from = if tenth % 4 == 0 { 0 } else { 2 };
        let pe1 = vec![of(1, 0, 70, from), of(1, 2, 20, u32::MAX)];
        for (node, ran) in [(1, pe0), (2, pe1)] {
            tell(&mut app, MonitorEvent::Samples(Samples { node, ran, sent: Vec::new() }), 120);
        }
    }
    app
}

#[test]
fn what_ended_the_waiting_of_late_is_owed_by_who_sent_it() {
    let mut app = who_waits_for_pe_2([5, 0, 0, 95]);
    let owed = "Block: Shift from PE 2 (old), which is held back by its cpu_share";
    assert_eq!(reasons(&mut app)[1], owed);
    let mut app = who_waits_for_pe_2([95, 0, 0, 0]);
    let busy = "only PE 2 (old) is busy";
    assert_eq!(
        reasons(&mut app),
        [
            format!("a reduction of Block; {busy}"),
            "Block: Shift from PE 2 (old), which is busy".into(),
            "- (it computes)".into()
        ]
    );
    press(&mut app, KeyCode::Char('w'));
    same_at_all_sizes("why-owed", &app);
    press(&mut app, KeyCode::Char('1'));
    same_at_all_sizes("load", &app);
}

#[test]
fn more_pes_than_cores_are_worth_no_more_than_these_and_say_so() {
    let mut app = run(
        |info| {
            for node in &mut info.nodes {
                (node.host, node.allowed_cores, node.pe_speeds) = ("here".into(), "0-1".into(), vec![1.0]);
            }
        },
        [[60, 40, 0, 0], [40, 60, 0, 0], [40, 60, 0, 0]],
        [1, 1, 1],
    );
    assert!(screen(&app, 80, 24).contains("2.00x fastest"), "{}", screen(&app, 80, 24));
    assert_eq!(reasons(&mut app)[1..], ["a core: 3 PEs share 2"; 2]);
}

/// All PEs do nothing but wait for what each of the others sends, over links of which those of PE 2 are slow.
#[test]
fn a_slow_link_is_named_where_all_wait_for_messages() {
    let mut app = run(|info| info.entry_names = vec!["Cell: Halo".into()], [[1, 0, 0, 0]; 3], [1, 1, 1]);
    for (step, pe) in (0..400_u32).flat_map(|step| (0..3).map(move |pe| (step, pe))) {
        let at = u64::from(step) * TENTH / 5 + 4 * 10 * TENTH;
        let from = (pe + 1 + step % 2) % 3;
        let way = if pe == 2 || from == 2 { 19_500_000 } else { 200_000 };
        let ran = Ran {
            pe,
            began_ns: at + way,
            took_ns: 10_000,
            idle_ns: way,
            cause: Some(Cause { pe: from, number: 3 * step + pe, bytes: 100 }),
            ..Ran::default()
        };
        let node = |pe: u32| u16::try_from(pe).unwrap() + 1;
        tell(
            &mut app,
            MonitorEvent::Samples(Samples { node: node(pe), ran: vec![ran], sent: Vec::new() }),
            120,
        );
        let sent = vec![Sent { pe: from, number: 3 * step + pe, at_ns: at }];
        tell(&mut app, MonitorEvent::Samples(Samples { node: node(from), ran: Vec::new(), sent }), 120);
    }
    press(&mut app, KeyCode::Char('w'));
    let shown = screen(&app, 120, 30);
    let network = shown.lines().find(|line| line.starts_with(" network:")).unwrap_or_default();
    assert!(
        network.contains("between old and others is on its way for 20 ms, between the rest for 0.20 ms"),
        "{shown}"
    );
    // All of what they wait is the way of what they wait for.
    let line = |node: &str| {
        let mut lines = shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.find(|words| words.get(1) == Some(&node)).map(|words| words[2..].join(" ")).unwrap_or_default()
    };
    assert_eq!(line("old"), "1.0% 0% 0% 0% 99% 0% 0 Cell: Halo, on its way here", "{shown}");
    assert!(screen(&app, 100, 30).contains(" 99% "), "where it has no column it is a part of being idle");
}

/// PE 2 computes for 80 ms of each tenth of a second and sends; PE 0 waits for that, and computes for 10.
#[test]
fn the_chain_that_all_wait_for_is_named_with_what_it_went_through() {
    let names = |info: &mut RunInfo| info.entry_names = vec!["Block: Shift".into(), "Block: Done".into()];
    let mut app = run(names, [[10, 0, 0, 0], [5, 0, 0, 0], [80, 0, 0, 0]], [4, 4, 4]);
    press(&mut app, KeyCode::Char('w'));
    assert!(!screen(&app, 80, 24).contains("all wait for"), "nothing is told");
    for tenth in 20..120_u64 {
        let at = tenth * TENTH;
        let (ms, number) = (1_000_000, u32::try_from(tenth).unwrap());
        let of = |pe, name, began_ns, took_ns, idle_ns, from| {
            let cause = Some(Cause { pe: from, number, bytes: 10 });
            Ran { pe, name, began_ns, took_ns, idle_ns, cause }
        };
        let (slow, quick) = (of(2, 0, at, 80 * ms, 20 * ms, 0), of(0, 1, at + 85 * ms, 10 * ms, 90 * ms, 2));
        let sent = |pe, number, at_ns| vec![Sent { pe, number, at_ns }];
        let all = [(3, slow, sent(2, number, at + 79 * ms)), (1, quick, sent(0, number + 1, at + 94 * ms))];
        for (node, ran, sent) in all {
            tell(&mut app, MonitorEvent::Samples(Samples { node, ran: vec![ran], sent }), 120);
        }
    }
    let shown = screen(&app, 80, 24);
    assert!(shown.contains(" all wait for: 79% Block: Shift on PE 2 (old)"), "{shown}");
    assert!(shown.contains("Block: Done on PE 0 (fast)"), "{shown}");
    assert!(shown.contains("messages from PE 2 (old) to PE 0 (fast)"), "{shown}");
    same("path", &app);
}
