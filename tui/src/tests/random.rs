//! Whatever comes in, from the run or from the keyboard, at whatever size: no panic.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use runtime::monitor::map::{Axis, Map};
use runtime::monitor::profile::{ChareCount, EntryTime, Profile, SentTo, SlowestCall};
use runtime::monitor::samples::{Cause, Ran, Samples, Sent};
use runtime::monitor::wire::{
    ClockReading, MonitorEvent, NodeSnapshot, OutputLine, PeSnapshot, Phase, Processors, Remark, RunInfo,
    Slowdown,
};

use crate::WindowOptions;
use crate::app::{App, Event};
use crate::still::screen;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..20u64, 0..20_000_000_000u64, any::<u64>()]
}

fn pe() -> impl Strategy<Value = PeSnapshot> {
    (prop_oneof![0..8u32, any::<u32>()], proptest::array::uniform10(number()), any::<String>()).prop_map(
        |(pe, n, entry)| PeSnapshot {
            pe,
            compute_ns: n[0],
            idle_ns: n[1],
            init_ns: n[2],
            overhead_ns: n[3],
            entries: n[4],
            chares: n[5],
            sent_messages: n[6],
            queue_messages: n[7],
            queue_bytes: n[8],
            sent_bytes: n[9],
            core_wait_ns: n[4],
            throttled_ns: n[5],
            entry,
            ..PeSnapshot::default()
        },
    )
}

pub(crate) fn monitor() -> impl Strategy<Value = MonitorEvent> {
    let node = || prop_oneof![4 => 0..4u16, 1 => any::<u16>()];
    let snapshot = (node(), proptest::array::uniform8(number()), proptest::collection::vec(pe(), 0..5));
    prop_oneof![
        5 => snapshot.prop_map(|(node, n, pes)| MonitorEvent::Snapshot(NodeSnapshot {
            node,
            sequence: n[0],
            uptime_ns: n[1],
            memory_bytes: n[2],
            host_memory_bytes: n[3],
            sent_messages: n[4],
            sent_bytes: n[5],
            received_messages: n[6],
            received_bytes: n[7],
            spins: n[7] % 2 == 0,
            clock_mhz: n[0] as u32 % 6000,
            shares_memory_with: vec![node],
            processors: Processors { uptime_ns: n[0], busy_ns: n[1], own_ns: n[2] },
            pes,
            profile: (n[1] % 3 > 0).then(|| profile(node, n)),
        })),
        1 => (any::<String>(), number(), number())
            .prop_map(|(name, done, total)| {
                let phase = Phase { name, done, total, ..Phase::default() };
                MonitorEvent::Phase(phase)
            }),
        1 => (node(), any::<bool>(), any::<String>())
            .prop_map(|(node, is_error, text)| MonitorEvent::Output(OutputLine { node, is_error, text })),
        1 => (node(), any::<String>()).prop_map(|(node, reason)| MonitorEvent::NodeLost { node, reason }),
        1 => (".{0,3}", 0..9u64).prop_map(|(name, done)| {
            let (is_forecast, detail) = (done % 2 == 0, name.clone());
            MonitorEvent::Phase(Phase { name, done, total: 9, is_forecast, detail })
        }),
        1 => number().prop_map(MonitorEvent::Dropped),
        1 => Just(MonitorEvent::Clocks(ClockReading::default())),
        1 => (node(), proptest::array::uniform8(number()), any::<bool>()).prop_map(|(node, n, is_caused)| {
            let [pe, name, began_ns, took_ns, idle_ns, from, number, at_ns] = n;
            let cause = is_caused.then_some(Cause { pe: from as u32 % 9, number: number as u32 % 3, bytes: pe });
            let ran = Ran { pe: pe as u32 % 9, name: name as u16 % 9, began_ns, took_ns, idle_ns, cause };
            let sent = Sent { pe: from as u32 % 9, number: number as u32 % 3, at_ns };
            MonitorEvent::Samples(Samples { node, ran: vec![ran], sent: vec![sent] })
        }),
        1 => any::<String>().prop_map(|summary| MonitorEvent::Ended { code: 1, summary }),
        1 => any::<String>().prop_map(MonitorEvent::Result),
        1 => (any::<String>(), any::<bool>())
            .prop_map(|(text, is_advice)| MonitorEvent::Remark(Remark { is_advice, text })),
        1 => (".{0,3}", any::<[f64; 4]>(), 0..150usize, proptest::collection::vec(any::<f64>(), 0..300)).prop_map(
            |(name, [a, b, c, d], columns, values)| {
                let axes = [Axis::new(&name, a, b), Axis::new(&name, c, d)];
                MonitorEvent::Map(Map::new(&name, axes, columns, &values))
            }
        ),
        1 => (any::<String>(), proptest::collection::vec((node(), any::<f64>(), any::<u32>()), 0..4)).prop_map(
            |(app, nodes)| {
                let nodes = nodes.into_iter().map(|(node, speed, pe_count)| runtime::monitor::wire::NodeInfo {
                    node,
                    name: app.clone(),
                    pe_count,
                    pe_speeds: vec![speed; 3],
                    share: Some(speed),
                    ..Default::default()
                });
                let nodes: Vec<_> = nodes.collect();
                let slowdown = |node: &runtime::monitor::wire::NodeInfo| Slowdown { node: node.node, delivered: 0.1, ..Slowdown::default() };
                let slowdowns = nodes.iter().map(slowdown).collect();
                MonitorEvent::Run(RunInfo { app: app.clone(), nodes, slowdowns, ..RunInfo::default() })
            }
        ),
    ]
}

/// Counters of any size, of nodes, PEs and names that there are and others.
fn profile(node: u16, n: [u64; 8]) -> Profile {
    let slowest =
        SlowestCall { ns: n[3], at_ns: n[4], pe: n[5] as u32, element: format!("[{}]\u{1b}", n[6]) };
    let entry = |place: u16| EntryTime { name: place, calls: n[5], ns: n[6], slowest: slowest.clone() };
    let sent = |to: u16| SentTo { node: to, messages: n[2], bytes: n[usize::from(to % 8)] };
    Profile {
        at_ns: n[1],
        entries: (0..n[0] as u16 % 5).map(entry).collect(),
        sent_to: (0..n[7] as u16 % 9).chain([node]).map(sent).collect(),
        chares: vec![ChareCount { pe: n[4] as u32, chare_type: n[2] as u16, chares: n[7] }],
    }
}

fn key() -> impl Strategy<Value = Input> {
    let codes = vec![
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Tab,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::PageDown,
        KeyCode::End,
        KeyCode::Home,
        KeyCode::Backspace,
    ];
    prop_oneof![
        proptest::sample::select(codes).prop_map(Input::Key),
        proptest::sample::select("slw+-[]/? abgGhjk1234567etcm".chars().collect::<Vec<_>>())
            .prop_map(|c| Input::Key(KeyCode::Char(c))),
    ]
}

#[derive(Clone, Debug)]
enum Input {
    Key(KeyCode),
    Monitor(Box<MonitorEvent>),
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_makes_it_panic(
        events in proptest::collection::vec(
            (prop_oneof![3 => monitor().prop_map(|event| Input::Monitor(Box::new(event))), 2 => key()], number()), 0..60),
        sizes in proptest::collection::vec((1..220u16, 1..60u16), 3),
        unicode: bool,
    ) {
        let mut app = App::new(&WindowOptions { unicode, ..WindowOptions::default() });
        for (event, now) in events {
            let event = match event {
                Input::Key(code) => Event::Key(KeyEvent::new(code, KeyModifiers::NONE)),
                Input::Monitor(event) => Event::Monitor(event),
            };
            app.update(event, Duration::from_nanos(now));
            for (width, height) in [(1, 1), (20, 5)] {
                screen(&app, width, height);
            }
        }
        for (width, height) in sizes {
            screen(&app, width, height);
        }
    }
}

#[test]
fn every_screen_fits_every_size() {
    let mut app = super::running(3, 2, &WindowOptions::default());
    for key in [
        KeyCode::Char('w'),
        KeyCode::Tab,
        KeyCode::Char('l'),
        KeyCode::Enter,
        KeyCode::Enter,
        KeyCode::Char('3'),
        KeyCode::Char('4'),
        KeyCode::Char('5'),
        KeyCode::Char('6'),
        KeyCode::Char('?'),
    ] {
        super::press(&mut app, key);
        for width in 1..100 {
            for height in 1..30 {
                screen(&app, width, height);
            }
        }
    }
}
