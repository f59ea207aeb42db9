//! Tests of the whole window: screens as text, arithmetic of rates, and anything at any size without a panic.

mod arithmetic;
mod heat;
mod maps;
mod questions;
mod random;
mod replay;
mod screens;
mod why;

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use runtime::monitor::wire::{
    MonitorEvent, NodeInfo, NodeSnapshot, PeSnapshot, PeState, Phase, Processors, RunInfo,
};

use crate::app::{App, Event};
use crate::still::screen;
use crate::{Left, WindowOptions};

const NAMES: [&str; 3] = ["fast", "middle", "old"];
const SPEEDS: [f64; 3] = [1.0, 0.55, 0.25];

fn run_info(nodes: u16, pes: u32) -> MonitorEvent {
    let info = |place: u16| NodeInfo {
        node: place + 1,
        name: if nodes == 3 { NAMES[usize::from(place)].into() } else { format!("node{:03}", place + 1) },
        host: format!("host{place}.lan"),
        cpu: "Invented CPU".into(),
        cores: pes,
        allowed_cores: String::new(),
        first_pe: u32::from(place) * pes,
        pe_count: pes,
        pe_speeds: vec![SPEEDS[usize::from(place) % 3]; pes as usize],
        pe_parts: Vec::new(),
        cpu_share: 1.0,
        architecture: Default::default(),
        share: Some(1.0 / f64::from(nodes)),
        holds: String::new(),
        memory_limit_bytes: (place == 2).then_some(2 << 30),
        joined_s: None,
        left: None,
    };
    MonitorEvent::Run(RunInfo {
        run_id: "matmul-1a2b3c".into(),
        program: "metachare".into(),
        app: "matmul".into(),
        nodes: (0..nodes).map(info).collect(),
        ..RunInfo::default()
    })
}

/// Node `place` at that age: a second of initialising, then computing with a pause every fourth second.
fn snapshot(place: u16, pes: u32, tenths: u64) -> NodeSnapshot {
    let pe = |number: u32| {
        let init = tenths.min(10);
        let rest = tenths - init;
        let idle = rest / 40 * 9 + (rest % 40).saturating_sub(30);
        let overhead = rest / 40;
        PeSnapshot {
            pe: u32::from(place) * pes + number,
            state: PeState::Compute,
            in_state_ns: u64::from(number) * 40_000_000 + 1_234,
            init_ns: init * 100_000_000,
            idle_ns: idle * 100_000_000,
            overhead_ns: overhead * 100_000_000,
            core_wait_ns: 0,
            quota_ns: 0,
            throttled_ns: 0,
            compute_ns: (rest - idle - overhead) * 100_000_000,
            entries: rest * 10 / (u64::from(place) + 1) + u64::from(number),
            migrations: u64::from(number),
            arrived: u64::from(place),
            chares: 12,
            sent_messages: rest * 3,
            sent_bytes: rest * 9000,
            queue_messages: u64::from(number) % 5,
            queue_bytes: 4096,
            progress: rest,
            entry: "Block: Shift".into(),
        }
    };
    NodeSnapshot {
        node: place + 1,
        sequence: tenths,
        uptime_ns: tenths * 100_000_000,
        memory_bytes: 300 << 20,
        host_memory_bytes: 8 << 30,
        sent_messages: tenths * 50,
        sent_bytes: tenths * 1_000_000,
        received_messages: tenths * 40,
        received_bytes: tenths * 800_000,
        spins: true,
        shares_memory_with: vec![0],
        processors: Processors::default(),
        clock_mhz: 0,
        pes: (0..pes).map(pe).collect(),
        profile: None,
    }
}

fn tell(app: &mut App, event: MonitorEvent, tenths: u64) -> Option<Left> {
    app.update(Event::Monitor(Box::new(event)), Duration::from_millis(tenths * 100))
}

fn press(app: &mut App, code: KeyCode) -> Option<Left> {
    app.update(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)), Duration::from_secs(13))
}

/// A run of that size after twelve seconds.
fn running(nodes: u16, pes: u32, options: &WindowOptions) -> App {
    let mut app = App::new(options);
    tell(&mut app, run_info(nodes, pes), 0);
    for tenths in 1..=120 {
        for place in 0..nodes {
            tell(&mut app, MonitorEvent::Snapshot(snapshot(place, pes, tenths)), tenths);
        }
    }
    let phase = Phase { name: "multiplying".into(), done: 620, total: 1000, ..Phase::default() };
    tell(&mut app, MonitorEvent::Phase(phase), 120);
    app
}

/// Compares screens with the texts in `tests/screens`; `BLESS=1` writes them anew.
fn same(name: &str, app: &App) {
    for (width, height) in [(80, 24), (140, 45)] {
        same_text(&format!("{name}-{width}x{height}"), &screen(app, width, height));
    }
}

/// The same at the sizes that terminals have.
fn same_at_all_sizes(name: &str, app: &App) {
    for (width, height) in [(60, 15), (80, 24), (120, 40), (200, 50)] {
        let shown = screen(app, width, height);
        assert!(shown.lines().all(|line| line.chars().count() <= usize::from(width)), "{shown}");
        same_text(&format!("{name}-{width}x{height}"), &shown);
    }
}

fn same_text(name: &str, shown: &str) {
    let path = format!("{}/tests/screens/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, shown).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(wanted == shown, "{path} differs (BLESS=1 rewrites it); shown:\n{shown}");
}
