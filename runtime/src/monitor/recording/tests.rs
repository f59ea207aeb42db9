//! What is written is read back; whatever a file holds, reading it ends with a sentence and never with a panic.

use super::*;
use crate::monitor::map::Axis;
use crate::monitor::samples::Samples;
use crate::monitor::wire::{ClockReading, PeSnapshot, RunInfo};
use proptest::prelude::*;

fn snapshot(node: u16, sequence: u64) -> MonitorEvent {
    let pe = PeSnapshot {
        pe: 3,
        compute_ns: sequence * 1000,
        entry: "Block: Shift".into(),
        ..PeSnapshot::default()
    };
    let (uptime_ns, pes) = (sequence * 100_000_000, vec![pe]);
    MonitorEvent::Snapshot(NodeSnapshot { node, sequence, uptime_ns, pes, ..NodeSnapshot::default() })
}

fn run() -> MonitorEvent {
    MonitorEvent::Run(RunInfo { app: "matmul".into(), ..RunInfo::default() })
}

fn ended() -> MonitorEvent {
    MonitorEvent::Ended { code: 0, summary: "finished".into() }
}

fn recorded(events: &[MonitorEvent]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut recorder = Recorder::begin(&mut out).unwrap();
    for (tenth, event) in (0..).zip(events) {
        recorder.take(PERIOD * tenth, event).unwrap();
    }
    out
}

fn read(bytes: &[u8]) -> Result<Recording, RecordingError> {
    Recording::read(&mut &*bytes)
}

#[test]
fn what_was_recorded_is_read_with_its_times() {
    let phase = MonitorEvent::Phase(Phase { name: "column".into(), done: 1, total: 9, ..Phase::default() });
    let lost = MonitorEvent::NodeLost { node: 1, reason: "gone".into() };
    let events = [run(), snapshot(1, 1), phase, snapshot(1, 2), lost, ended()];
    let read = read(&recorded(&events)).unwrap();
    assert_eq!(read.broken, None);
    assert_eq!(read.duration(), PERIOD * 5);
    assert!(read.events.iter().map(|recorded| &recorded.event).eq(&events));
    assert_eq!(read.events[3].at, PERIOD * 3);
}

#[test]
fn what_is_no_recording_is_refused_with_a_sentence() {
    assert!(matches!(read(b""), Err(RecordingError::Empty)));
    for other in [&b"\x93"[..], b"\x93NUMPY\x01\x00v\x00{'descr'", b"{ \"a report\": 1 }", &[0; 4096]] {
        assert!(matches!(read(other), Err(RecordingError::Other)), "{other:?}");
    }
    let good = recorded(&[run(), ended()]);
    assert!(matches!(read(&good[..12]), Err(RecordingError::NoEvents)));
    for place in [8, 10] {
        let mut newer = good.clone();
        newer[place] += 1;
        let error = read(&newer).unwrap_err();
        assert!(matches!(error, RecordingError::Version { .. }));
        assert!(error.to_string().contains("another version of this program"), "{error}");
    }
    // Text that was carried over in text mode.
    let text: Vec<u8> = good.iter().copied().filter(|byte| *byte != b'\r').collect();
    assert!(matches!(read(&text), Err(RecordingError::Other)));
    assert!(matches!(read(&recorded(&[snapshot(1, 1)])), Err(RecordingError::Other)));
}

#[test]
fn recordings_without_single_messages_are_read_and_older_ones_refused() {
    let mut old = recorded(&[run(), snapshot(1, 1), ended()]);
    old[10..12].copy_from_slice(&OLDEST_RECORDED_VERSION.to_le_bytes());
    assert_eq!(read(&old).map(|read| read.events.len()).unwrap(), 3);
    old[10..12].copy_from_slice(&(OLDEST_RECORDED_VERSION - 1).to_le_bytes());
    assert!(matches!(read(&old), Err(RecordingError::Version { .. })));
}

#[test]
fn snapshots_that_end_before_the_clock_are_read() {
    let events = [run(), snapshot(1, 1), snapshot(2, 1), ended()];
    let mut old = recorded(&[])[..10].to_vec();
    old.extend((CLOCKED_VERSION - 1).to_le_bytes());
    for event in &events {
        let mut bytes = postcard::to_stdvec(&(0_u64, event)).unwrap();
        if matches!(event, MonitorEvent::Snapshot(_)) {
            assert_eq!(bytes.pop(), Some(0));
        }
        old.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
        old.extend(checksum(&bytes).to_le_bytes());
        old.extend(bytes);
    }
    let read = read(&old).unwrap();
    assert_eq!(read.broken, None);
    assert!(read.events.iter().map(|recorded| &recorded.event).eq(&events));
}

#[test]
fn of_a_long_recording_single_messages_are_kept_for_times_that_all_nodes_share() {
    let (mut recorder, mut kept) = (Recorder::begin(Vec::new()).unwrap(), Vec::new());
    recorder.written = 2 * SPAN_BYTES;
    for tenth in 0..320 {
        for node in [1, 2] {
            let before = recorder.written;
            let samples = Samples { node, ..Samples::default() };
            recorder.take(PERIOD * tenth, &MonitorEvent::Samples(samples)).unwrap();
            if recorder.written > before {
                kept.push((node, tenth / 20));
            }
        }
    }
    kept.dedup();
    kept.sort_unstable();
    kept.dedup();
    let of = |node| [0, 4, 8, 12].map(|time| (node, time));
    assert_eq!(kept, [of(1), of(2)].concat());
}

#[test]
fn an_announced_length_takes_no_memory() {
    let mut bytes = recorded(&[run()]);
    let whole = bytes.len() as u64;
    bytes.extend([0xff, 0xff, 0xff, 0x00, 1, 2, 3, 4, 5]);
    assert_eq!(read(&bytes).unwrap().broken, Some(Broken::Cut(whole)));
    bytes[usize::try_from(whole).unwrap() + 3] = 0xff;
    assert_eq!(read(&bytes).unwrap().broken, Some(Broken::Damaged(whole)));
}

#[test]
fn a_long_run_is_thinned_but_its_end_is_exact() {
    let mut out = Vec::new();
    let mut recorder = Recorder::begin(&mut out).unwrap();
    recorder.take(Duration::ZERO, &run()).unwrap();
    // As if so much had been written: one snapshot in eight is kept.
    recorder.written = 3 * SPAN_BYTES;
    let phase =
        |done| MonitorEvent::Phase(Phase { name: "column".into(), done, total: 1000, ..Phase::default() });
    for tenth in 0..100 {
        for node in [1, 2] {
            recorder.take(PERIOD * tenth, &snapshot(node, tenth.into())).unwrap();
        }
        recorder.take(PERIOD * tenth, &phase(u64::from(tenth))).unwrap();
    }
    recorder.take(PERIOD * 100, &ended()).unwrap();
    let read = read(&out).unwrap();
    let last = |node| {
        read.events.iter().rev().find_map(|recorded| match &recorded.event {
            MonitorEvent::Snapshot(snapshot) if snapshot.node == node => Some(snapshot.sequence),
            _ => None,
        })
    };
    assert_eq!((last(1), last(2)), (Some(99), Some(99)));
    assert_eq!(read.events.iter().filter(|recorded| recorded.event == phase(99)).count(), 1);
    // Thirteen of a hundred, and the last, for two nodes and the phase.
    assert_eq!(read.events.len(), 3 * 14 + 2);
}

#[test]
fn of_maps_one_a_second_is_kept_of_each_title_and_the_last() {
    let map = |title: &str, tenth: u32| {
        let axes = [Axis::new("x", 0.0, 1.0), Axis::new("y", 0.0, 1.0)];
        MonitorEvent::Map(Map::new(title, axes, 1, &[tenth.into()]))
    };
    let mut out = Vec::new();
    let mut recorder = Recorder::begin(&mut out).unwrap();
    recorder.take(Duration::ZERO, &run()).unwrap();
    for tenth in 0..25 {
        for title in ["a", "b"] {
            recorder.take(PERIOD * tenth, &map(title, tenth)).unwrap();
        }
    }
    (0..20).for_each(|title| recorder.take(PERIOD * 25, &map(&title.to_string(), 25)).unwrap());
    recorder.take(PERIOD * 25, &ended()).unwrap();
    let read = read(&out).unwrap();
    let kept: Vec<_> = read.events.into_iter().map(|recorded| recorded.event).collect();
    for title in ["a", "b"] {
        let expected = [0, 10, 20, 24].map(|tenth| map(title, tenth));
        let of_title =
            |event: &&MonitorEvent| matches!(event, MonitorEvent::Map(map) if map.title() == title);
        assert!(kept.iter().filter(of_title).eq(&expected), "{title}");
    }
    assert_eq!(kept.len(), 2 + 2 * 4 + MAPS_MAX - 2, "of more titles than a run has nothing is kept");
}

#[test]
fn output_without_end_is_counted_and_left_out() {
    let mut out = Vec::new();
    let mut recorder = Recorder::begin(&mut out).unwrap();
    recorder.take(Duration::ZERO, &run()).unwrap();
    recorder.lines = LINES_MAX_BYTES - 4;
    for text in ["four", "five!", ""] {
        let line = OutputLine { text: text.into(), ..OutputLine::default() };
        recorder.take(Duration::ZERO, &MonitorEvent::Output(line)).unwrap();
    }
    recorder.take(Duration::ZERO, &ended()).unwrap();
    let read = read(&out).unwrap();
    let lines = read.events.iter().filter(|recorded| matches!(recorded.event, MonitorEvent::Output(_)));
    assert_eq!(lines.count(), 2);
    assert!(read.events.iter().any(|recorded| recorded.event == MonitorEvent::Dropped(1)));
}

/// A recording of a few kinds of events.
fn sample() -> Vec<u8> {
    let events = (1..20).map(|n| snapshot((n % 3) as u16 + 1, n));
    recorded(&std::iter::once(run()).chain(events).chain([ended()]).collect::<Vec<_>>())
}

/// Anything that a run may tell, but its begin and its end.
fn any_event() -> impl Strategy<Value = MonitorEvent> {
    let pe = (any::<u32>(), any::<u64>(), any::<String>()).prop_map(|(pe, entries, entry)| PeSnapshot {
        pe,
        compute_ns: entries,
        entries,
        entry,
        ..PeSnapshot::default()
    });
    let snapshot = (any::<u16>(), any::<u64>(), proptest::collection::vec(pe, 0..4));
    prop_oneof![
        snapshot.prop_map(|(node, uptime_ns, pes)| {
            MonitorEvent::Snapshot(NodeSnapshot { node, uptime_ns, pes, ..NodeSnapshot::default() })
        }),
        (any::<String>(), any::<u64>(), any::<u64>()).prop_map(|(name, done, total)| {
            MonitorEvent::Phase(Phase { detail: name.clone(), name, done, total, ..Phase::default() })
        }),
        (any::<u16>(), any::<String>()).prop_map(|(node, text)| {
            MonitorEvent::Output(OutputLine { node, is_error: node % 2 == 0, text })
        }),
        (any::<u16>(), any::<String>()).prop_map(|(node, reason)| MonitorEvent::NodeLost { node, reason }),
        (any::<u64>(), proptest::collection::vec(any::<(u16, u64)>(), 0..4)).prop_map(
            |(asked_ns, uptimes)| {
                MonitorEvent::Clocks(ClockReading { asked_ns, answered_ns: asked_ns, uptimes })
            }
        ),
        any::<u64>().prop_map(MonitorEvent::Dropped),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cut_file_gives_what_is_whole(part in 0.0..1.0f64) {
        let (bytes, whole) = (sample(), read(&sample()).unwrap());
        let cut = read(&bytes[..(part * bytes.len() as f64) as usize]);
        if let Ok(cut) = cut {
            prop_assert!(cut.broken.is_some() && whole.events.starts_with(&cut.events));
        }
    }

    #[test]
    fn a_changed_byte_is_found(place in 12..sample().len(), change in 1..=255u8) {
        let (mut bytes, whole) = (sample(), read(&sample()).unwrap());
        bytes[place] ^= change;
        if let Ok(changed) = read(&bytes) {
            prop_assert!(changed.broken.is_some() && whole.events.starts_with(&changed.events));
        }
    }

    /// Whatever a run tells: what is kept is what was told, in its order, and its end is there.
    #[test]
    fn any_events_are_read_as_they_were_recorded(
        told in proptest::collection::vec((any_event(), 0..200_000_000u64), 0..60),
    ) {
        let mut out = Vec::new();
        let mut recorder = Recorder::begin(&mut out).unwrap();
        let mut now = Duration::ZERO;
        let mut expected = Vec::new();
        let rest = told.into_iter().chain([(ended(), 1)]);
        for (event, nanos) in std::iter::once((run(), 0)).chain(rest) {
            now += Duration::from_nanos(nanos);
            recorder.take(now, &event).unwrap();
            expected.push(Recorded { at: now, event });
        }
        drop(recorder);
        let read = read(&out).unwrap();
        prop_assert_eq!((read.broken, read.duration()), (None, now));
        // Of phases that follow one another within a tenth of a second only the last need be there.
        let of_others = |all: &[Recorded]| -> Vec<Recorded> {
            all.iter().filter(|recorded| !matches!(recorded.event, MonitorEvent::Phase(_))).cloned().collect()
        };
        prop_assert_eq!(of_others(&read.events), of_others(&expected));
        let last = |all: &[Recorded]| {
            let phases = all.iter().rev().filter(|recorded| matches!(recorded.event, MonitorEvent::Phase(_)));
            phases.map(|recorded| recorded.event.clone()).next()
        };
        prop_assert_eq!(last(&read.events), last(&expected));
    }

    /// Records with the right sum and any content.
    #[test]
    fn any_records_are_read_without_panic(
        records in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..8),
        rest in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut bytes = recorded(&[run()]);
        for record in records {
            bytes.extend(u32::try_from(record.len()).unwrap().to_le_bytes());
            bytes.extend(checksum(&record).to_le_bytes());
            bytes.extend(record);
        }
        bytes.extend(rest);
        let read = read(&bytes).unwrap();
        prop_assert!(read.events.is_sorted_by_key(|recorded| recorded.at));
    }
}
