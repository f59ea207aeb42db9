//! Feeds the load window with an invented run of three unequal nodes, to look at it without a cluster:
//! `cargo run -p metachare-tui --example demo_feed [PEs per node] [seconds]`. One node is lost after 20 s when there
//! is time for it.

use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use runtime::monitor::wire::{
    MONITOR_VERSION, MonitorEvent, NodeInfo, NodeSnapshot, OutputLine, PeSnapshot, PeState, Phase, RunInfo,
};

const SPEEDS: [f64; 3] = [1.0, 0.55, 0.25];
const NAMES: [(&str, &str); 3] = [("fast", "alpha.lan"), ("middle", "beta.lan"), ("old", "gamma.lan")];
const STEP: Duration = Duration::from_millis(100);
const LOST_AFTER: u64 = 200;

fn main() -> Result<(), tui::TuiError> {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let pes: u32 = arguments.next().unwrap_or(2).clamp(1, 1000);
    let seconds = arguments.next().unwrap_or(60);
    let (sender, receiver) = channel();
    std::thread::spawn(move || feed(&sender, pes, u64::from(seconds) * 10));
    let left = tui::run(&receiver, &tui::WindowOptions::from_env())?;
    println!("left the window: {left:?}");
    Ok(())
}

fn run_info(pes: u32) -> RunInfo {
    let nodes = (0..3u16).zip(NAMES).zip(SPEEDS).map(|((place, (name, host)), speed)| NodeInfo {
        node: place + 1,
        name: name.into(),
        host: host.into(),
        cpu: "Invented CPU 9000".into(),
        cores: pes,
        allowed_cores: format!("0-{}", pes.saturating_sub(1)),
        first_pe: u32::from(place) * pes,
        pe_count: pes,
        pe_speeds: vec![speed; pes as usize],
        pe_parts: Vec::new(),
        cpu_share: 1.0,
        architecture: Default::default(),
        share: Some(speed / SPEEDS.iter().sum::<f64>()),
        holds: format!("{} blocks", 40.0 * speed),
        memory_limit_bytes: (place == 2).then_some(2 << 30),
        joined_s: None,
        left: None,
    });
    RunInfo {
        version: MONITOR_VERSION,
        run_id: "matmul-1a2b3c".into(),
        program: "metachare".into(),
        app: "matmul".into(),
        nodes: nodes.collect(),
        ..RunInfo::default()
    }
}

/// Sends until the run is over or nobody looks any more.
fn feed(sender: &Sender<MonitorEvent>, pes: u32, steps: u64) -> Option<()> {
    let begin = Instant::now();
    sender.send(MonitorEvent::Run(run_info(pes))).ok()?;
    let mut nodes: Vec<NodeSnapshot> = (0..3u16)
        .map(|place| NodeSnapshot {
            node: place + 1,
            pes: (0..pes)
                .map(|pe| PeSnapshot { pe: u32::from(place) * pes + pe, ..PeSnapshot::default() })
                .collect(),
            ..NodeSnapshot::default()
        })
        .collect();
    for step in 1..=steps {
        for node in &mut nodes {
            if node.node == 2 && step > LOST_AFTER {
                continue;
            }
            advance(node, step);
            sender.send(MonitorEvent::Snapshot(node.clone())).ok()?;
        }
        let name = if step < 30 { "distributing" } else { "multiplying" };
        sender
            .send(MonitorEvent::Phase(Phase {
                name: name.into(),
                done: step,
                total: steps,
                ..Phase::default()
            }))
            .ok()?;
        if step % 25 == 0 {
            let text = format!("step {} of the product is done", step / 25);
            sender
                .send(MonitorEvent::Output(OutputLine { node: (step % 3 + 1) as u16, is_error: false, text }))
                .ok()?;
        }
        if step == LOST_AFTER {
            let reason = "no sign of life for 5 s (beta.lan switched off?)".into();
            sender.send(MonitorEvent::NodeLost { node: 2, reason }).ok()?;
        }
        let next = begin + STEP * u32::try_from(step).ok()?;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    let summary = "product verified, 2.71 equivalents, efficiency 0.95".into();
    sender.send(MonitorEvent::Ended { code: 0, summary }).ok()
}

/// A tenth of a second in the life of a node: first initialising, then waves of work with gaps between them.
fn advance(node: &mut NodeSnapshot, step: u64) {
    node.sequence += 1;
    node.uptime_ns += 100_000_000;
    node.memory_bytes = 300_000_000 + step % 100 * 2_000_000;
    node.sent_messages += 40 + step % 17;
    node.sent_bytes += 900_000 * u64::from(4 - node.node);
    node.received_messages += 35 + step % 13;
    node.received_bytes += 700_000 * u64::from(node.node);
    for pe in &mut node.pes {
        let wave = (step + u64::from(pe.pe) * 13) % 120;
        let (compute, overhead) = if wave < 8 {
            (0, 0)
        } else if wave < 14 {
            (25, 60)
        } else {
            (70 + wave / 5, 2)
        };
        let init = if step < 30 { 85 } else { 0 };
        let (compute, overhead) = if init > 0 { (0, 5) } else { (compute, overhead) };
        pe.init_ns += init * 1_000_000;
        pe.compute_ns += compute * 1_000_000;
        pe.overhead_ns += overhead * 1_000_000;
        pe.idle_ns += (100 - compute - overhead - init) * 1_000_000;
        pe.state = match (init, compute, overhead) {
            (1.., ..) => PeState::Init,
            (0, 0, _) => PeState::Idle,
            (0, compute, overhead) if overhead > compute => PeState::Overhead,
            _ => PeState::Compute,
        };
        pe.entries += compute / u64::from(node.node);
        pe.sent_messages += compute / 10;
        pe.chares = 12;
        pe.queue_messages = wave % 9;
        pe.queue_bytes = pe.queue_messages * 131_072;
        pe.entry = "Block: Shift".into();
    }
}
