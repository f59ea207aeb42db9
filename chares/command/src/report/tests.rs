//! Reports of runs that did not get far, and the calendar.

use super::table::fitting;
use super::*;

fn report(timeline: &Timeline) -> Report {
    let node = |node, first_pe, pe_count| NodeInfo {
        node,
        first_pe,
        pe_count,
        pe_speeds: vec![0.5; pe_count as usize],
        ..NodeInfo::default()
    };
    let info = RunInfo { nodes: vec![node(1, 0, 2), node(2, 2, 1)], ..RunInfo::default() };
    let sources = Sources { info: &info, version: "1", arguments: Value::Null, exit_code: 70, error: None };
    Report::new(sources, timeline)
}

#[test]
fn a_run_that_was_lost_at_once_still_lists_its_pes_and_every_number_is_one() {
    let mut timeline = Timeline::new(Instant::now());
    timeline.finished = Some(Instant::now());
    let report = report(&timeline);
    assert_eq!(report.nodes.iter().map(|n| n.pes.len()).collect::<Vec<_>>(), [2, 1]);
    assert_eq!((report.equivalents, report.nodes[1].speed), (1.5, 0.5));
    assert!(!report.table().contains("NaN"), "{}", report.table());
    assert_eq!(report.timed_s, None);
}

/// What the launcher does by itself has no nodes, and is worth nothing, not less.
#[test]
fn no_nodes_are_worth_nothing() {
    let info = RunInfo::default();
    let sources = Sources { info: &info, version: "1", arguments: Value::Null, exit_code: 0, error: None };
    let report = Report::new(sources, &Timeline::new(Instant::now()));
    assert_eq!(report.equivalents.to_bits(), 0.0_f64.to_bits());
}

#[test]
fn the_table_fits_a_terminal_whatever_the_numbers_are() {
    let mut report = report(&Timeline::new(Instant::now()));
    let long = Some(1_234_567.890_1);
    (report.distribution_s, report.timed_s, report.collection_s, report.check_s) = (long, long, long, long);
    (report.startup_s, report.total_s, report.ideal_s, report.efficiency) = (9e5, 9e6, long, Some(0.987_65));
    (report.faster_than_measured, report.speeds_taken) = (Some(123.456), Some(0.99));
    (report.verified, report.equivalents) = (Some(true), 1234.5);
    report.measured = Some("scaled residual 9.48e-3, by row 1.20e-2; below 16 is right".into());
    for node in &mut report.nodes {
        node.name = "a-name-as-long-as-they-may-be-and-then-some".into();
        (node.speed, node.share, node.entries) = (1000.0, Some(1.0), 12_345_678_901);
        node.traffic.sent_bytes = u64::MAX;
        for pe in &mut node.pes {
            (pe.compute_s, pe.idle_s, pe.init_s, pe.overhead_s) = (1.5e8, 123_456.7, 99_999.994, 1e9);
        }
    }
    let table = report.table();
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(table.contains("a-name-as-"), "{table}");
    assert!(
        table.contains("\nresult verified (scaled residual 9.48e-3, by row 1.20e-2; below 16 is right)\n")
    );
    assert_eq!(
        ["1.25", "123456", "1e9"],
        [fitting(1.25, 2, 5), fitting(123_456.04, 2, 6), fitting(1_234_567_890.0, 0, 8)]
    );
}

#[test]
fn the_timed_part_is_what_happened_between_its_two_snapshots() {
    let pe =
        |n: u64| PeSnapshot { pe: 2, compute_ns: n * 1_000_000_000, entries: n, ..PeSnapshot::default() };
    let snapshot =
        |n: u64| NodeSnapshot { node: 2, sent_bytes: 10 * n, pes: vec![pe(n)], ..NodeSnapshot::default() };
    let mut timeline = Timeline::new(Instant::now());
    timeline.begin_timed(vec![snapshot(1)]);
    timeline.end_timed();
    timeline.set_after(vec![snapshot(4)]);
    timeline.end = vec![snapshot(9)];
    let report = report(&timeline);
    let node = &report.nodes[1];
    assert_eq!((node.compute_s, node.entries, node.traffic.sent_bytes), (3.0, 3, 30));
    assert_eq!((node.pes[0].whole.compute_s, node.whole.sent_bytes), (9.0, 90));
    assert_eq!(report.nodes[0].compute_s, 0.0);
}

/// A timed part of 10 s with PEs of these rates; what they did in it is `done`, and each had computed for a second before it
/// and had waited for its core for another.
fn worked(work: f64, rates: &[f64], mut done: Vec<PeSnapshot>, own_cores: &[bool]) -> Timeline {
    let mut timeline = Timeline::new(Instant::now());
    let second = 1_000_000_000;
    let before = |pe: &PeSnapshot| PeSnapshot {
        pe: pe.pe,
        compute_ns: second,
        core_wait_ns: second,
        ..PeSnapshot::default()
    };
    let before = done.iter().map(before).collect();
    done.iter_mut().for_each(|pe| {
        pe.compute_ns += second;
        pe.core_wait_ns += second;
    });
    timeline.before = vec![NodeSnapshot { node: 1, pes: before, ..NodeSnapshot::default() }];
    timeline.after = vec![NodeSnapshot { node: 1, pes: done, ..NodeSnapshot::default() }];
    timeline.init_over = Some(timeline.command);
    timeline.timed_over = timeline.command.checked_add(std::time::Duration::from_secs(10));
    (timeline.work, timeline.rates) = (Some(work), rates.to_vec());
    timeline.correct_rates(own_cores);
    timeline
}

/// A node whose PEs have cores of their own, and one whose PE takes turns with others.
#[test]
fn what_pes_did_beyond_their_measured_speeds_corrects_these_and_is_no_efficiency() {
    let pe = |pe, compute_ns| PeSnapshot { pe, compute_ns, ..PeSnapshot::default() };
    let timeline = |work, compute_s: [u64; 3]| {
        let done = (0..).zip(compute_s).map(|(at, s)| pe(at, s * 1_000_000_000)).collect();
        Timeline { speeds_taken: Some(0.3), ..worked(work, &[4.0, 4.0, 2.0], done, &[true, true, false]) }
    };
    let explained = timeline(96.0, [10, 10, 3]);
    assert_eq!((explained.faster_than_measured(), explained.efficiency()), (None, Some(0.96)));
    assert_eq!((explained.pace, explained.busy), (None, None), "nobody knows what the third left to others");
    let said = "efficiency 96.0%\nby speeds measured while others had 30% of the cores\n";
    assert!(report(&explained).table().contains(said), "{}", report(&explained).table());
    // The second PE was idle half of the time, the third may have left its core to others.
    let corrected = timeline(96.0, [10, 5, 3]);
    assert_eq!((corrected.faster_than_measured(), corrected.rates), (Some(1.2), vec![4.8, 4.8, 2.4]));
    let perfect = timeline(140.0, [10, 10, 3]);
    let table = report(&perfect).table();
    assert_eq!(perfect.efficiency(), Some(1.0));
    let said =
        "efficiency at most 100.0%\nby speeds 1.40x those measured while others had 30% of the cores\n";
    assert!(table.contains(said), "{table}");
}

/// Speeds are measured with what others take of the cores, so that PEs are not faster for waiting for these; and work that is
/// slower than the kernel is told apart from time in which there was nothing to do.
#[test]
fn what_pes_wait_for_their_cores_is_no_idleness_and_a_slow_pace_is_not_either() {
    let s = 1_000_000_000;
    let robbed = |pe, wait: u64| PeSnapshot {
        pe,
        compute_ns: (8 - wait) * s,
        core_wait_ns: wait * s,
        ..PeSnapshot::default()
    };
    let waits = worked(48.0, &[4.0, 2.0], vec![robbed(0, 0), robbed(1, 4)], &[true, true]);
    assert_eq!((waits.pace, waits.faster_than_measured(), waits.busy), (Some(1.0), None, Some(0.8)));
    assert!(report(&waits).table().contains("efficiency 80.0%\n"), "{}", report(&waits).table());
    let slow = worked(24.0, &[4.0, 2.0], vec![robbed(0, 0), robbed(1, 4)], &[true, true]);
    assert_eq!((slow.pace, slow.busy, slow.efficiency()), (Some(0.5), Some(0.8), Some(0.4)));
    let said = "efficiency 40.0%\nPEs had something to do for 80.0% of the time, and did it at 0.50x the speeds measured\n";
    assert!(report(&slow).table().contains(said), "{}", report(&slow).table());
}

/// A slowdown is told in the report and in the table, and so is what kept PEs from working.
#[test]
fn what_kept_pes_from_working_is_said() {
    let pe = |pe, chares| PeSnapshot { pe, chares, ..PeSnapshot::default() };
    let snapshot = |node, pes| NodeSnapshot { node, pes, ..NodeSnapshot::default() };
    let s = 1_000_000_000;
    let waits = PeSnapshot { compute_ns: 2 * s, core_wait_ns: 6 * s, throttled_ns: 2 * s, ..pe(2, 3) };
    let mut timeline = Timeline::new(Instant::now());
    timeline.begin_timed(vec![snapshot(1, vec![pe(0, 0), pe(1, 0)]), snapshot(2, vec![pe(2, 0)])]);
    timeline.end_timed();
    timeline.set_after(vec![snapshot(1, vec![pe(0, 5), pe(1, 0)]), snapshot(2, vec![waits])]);
    let node = |node, name: &str| NodeInfo { node, name: name.into(), first_pe: 0, ..NodeInfo::default() };
    let nodes =
        vec![NodeInfo { pe_count: 2, ..node(1, "a") }, NodeInfo { first_pe: 2, pe_count: 1, ..node(2, "b") }];
    let slow = Slowdown { node: 2, since_s: 72.5, delivered: 0.2, is_of_speed: true, ..Slowdown::default() };
    let info = RunInfo { nodes, slowdowns: vec![slow], ..RunInfo::default() };
    let sources = Sources { info: &info, version: "1", arguments: Value::Null, exit_code: 0, error: None };
    let report = Report::new(sources, &timeline);
    let table = report.table();
    for line in [
        "PEs of b: 60% of the timed part waiting for a core, 20% of the timed part asleep for their cpu_share",
        "b delivers 0.20 of its measured speed since 01:12: it waits for its cores",
        "1 of 3 PEs had nothing to compute (a): there were 8 chares",
    ] {
        assert!(table.contains(&format!("\n{line}\n")), "{line:?} in\n{table}");
    }
    // A PE that did something before its node left has not been idle where it went; who has left is worth nothing at the end.
    let mut info = info;
    info.nodes[1].left = Some(runtime::monitor::wire::LeftAt::default());
    info.nodes.iter_mut().for_each(|node| node.pe_speeds = vec![1.0; node.pe_count as usize]);
    timeline.set_after(vec![snapshot(1, vec![pe(0, 5), pe(1, 5), pe(2, 0)]), snapshot(2, vec![pe(2, 3)])]);
    let sources = Sources { info: &info, version: "1", arguments: Value::Null, exit_code: 0, error: None };
    let left = Report::new(sources, &timeline);
    assert!(!left.table().contains("had nothing to compute"), "{}", left.table());
    assert_eq!(serde_json::to_value(&left).unwrap()["equivalents"], 1.0);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((&json["slowdowns"][0]["node"], &json["slowdowns"][0]["by"]), (&"b".into(), &"cores".into()));
    assert_eq!(json["nodes"][1]["pes"][0]["core_wait_s"], 6.0);
}

#[test]
fn that_the_fastest_node_alone_would_be_quicker_is_said_if_speeds_are_sure_enough() {
    let node = |node, name: &str, speed, first_pe| NodeInfo {
        name: name.into(),
        pe_speeds: vec![speed],
        pe_count: 1,
        ..NodeInfo { node, first_pe, ..NodeInfo::default() }
    };
    let info = |changed: Option<f64>| {
        let slow = NodeInfo { joined_s: changed, ..node(2, "slow", 0.25, 1) };
        RunInfo { nodes: vec![node(1, "fast", 1.0, 0), slow], ..RunInfo::default() }
    };
    // Alone the fast one would take ten seconds.
    let remarks_at = |pace, timed_s: u64, taken, info: &RunInfo| {
        let mut timeline = Timeline::new(Instant::now());
        timeline.init_over = Some(timeline.command);
        timeline.timed_over = timeline.command.checked_add(std::time::Duration::from_secs(timed_s));
        (timeline.work, timeline.rates, timeline.speeds_taken) = (Some(40.0), vec![4.0, 1.0], taken);
        timeline.pace = pace;
        let sources = Sources { info, version: "1", arguments: Value::Null, exit_code: 0, error: None };
        let report = Report::new(sources, &timeline);
        assert!(report.told().all(|remark| remark.is_advice), "{report:?}");
        report.remarks
    };
    let remarks = |timed_s, taken, info: &RunInfo| remarks_at(None, timed_s, taken, info);
    let said = "fast alone would be quicker: by its speed about 10.00 s, where the timed part took 12.00 s; --only \
                fast tries it";
    assert_eq!(remarks(12, None, &info(None)), [said]);
    assert!(remarks_at(Some(0.8), 12, None, &info(None)).is_empty(), "alone it would be as slow at its work");
    assert!(remarks(11, None, &info(None)).is_empty(), "within what speeds are unsure by");
    assert!(remarks(12, Some(0.3), &info(None)).is_empty(), "others were there when speeds were measured");
    assert!(remarks(12, None, &info(Some(5.0))).is_empty(), "a node came");
}

#[test]
fn days_are_those_of_the_calendar() {
    let days = [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (951_868_799, "2000-02-29T23:59:59Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
        (1_798_761_599, "2026-12-31T23:59:59Z"),
        (1_798_761_600, "2027-01-01T00:00:00Z"),
        (u64::MAX, "9999-12-31T23:59:59Z"),
    ];
    for (unix_s, text) in days {
        assert_eq!(utc(unix_s), text);
    }
}

#[test]
fn counters_of_any_size_make_a_report() {
    let mut random = runtime::proto::sim::Random::new(61);
    for number in 0..10_000 {
        let mut any = || if number % 3 == 0 { u64::MAX } else { random.bits() };
        let pe = |pe, any: &mut dyn FnMut() -> u64| PeSnapshot {
            pe,
            compute_ns: any(),
            idle_ns: any(),
            init_ns: any(),
            overhead_ns: any(),
            entries: any(),
            chares: any(),
            sent_messages: any(),
            sent_bytes: any(),
            ..PeSnapshot::default()
        };
        let mut snapshot = || NodeSnapshot {
            node: 1,
            sent_bytes: any(),
            memory_bytes: any(),
            pes: vec![pe(0, &mut any), pe(1, &mut any)],
            ..NodeSnapshot::default()
        };
        let mut timeline = Timeline::new(Instant::now());
        timeline.begin_timed(vec![snapshot()]);
        timeline.end_timed();
        timeline.set_after(vec![snapshot()]);
        timeline.end = vec![snapshot()];
        let report = report(&timeline);
        assert!(report.nodes[0].compute_s >= 0.0 && !report.table().contains("NaN"));
    }
}
