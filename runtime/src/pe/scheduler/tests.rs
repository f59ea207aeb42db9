//! One PE on the test's own thread.

use super::*;
use crate::envelope::Packed;
use crate::ids::NodeId;
use crate::node::NodeSettings;
use crate::object::{Kernel, KernelCall, ProgramTable};
use crate::topology::Topology;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A node with one PE, which holds these envelopes and an order to stop.
fn node_with(program: ProgramTable, settings: NodeSettings, targets: &[Target]) -> Arc<Node> {
    let node = Node::new(NodeId(1), Topology::new(&[0, 1]), Arc::new(program), settings);
    for target in targets.iter().chain([&Target::Stop]) {
        push(&node, target.clone());
    }
    node
}

#[test]
fn measuring_with_a_kernel_of_long_calls_ends_with_its_budget() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let prepare = move |_: &[u8]| {
        let counted = Arc::clone(&counted);
        let spin: KernelCall = Box::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let start = std::time::Instant::now();
            while start.elapsed() < Duration::from_millis(30) {}
            1.0
        });
        Ok(spin)
    };
    let kernel = Kernel { name: "long".into(), prepare: Arc::new(prepare) };
    let program = ProgramTable { kernels: vec![kernel], ..ProgramTable::default() };
    let orders =
        [PeOrder::PrepareKernel { kernel: 0 }, PeOrder::Measure { budget_ms: 180 }, PeOrder::DropKernel];
    let node = node_with(program, NodeSettings::default(), &orders.map(Target::Order));
    Scheduler::new(&node, PeId(0)).run();
    // After the warm-up at most six of 30 ms, though 180 ms are divided into nine stretches.
    assert!((2..=7).contains(&calls.load(Ordering::Relaxed)), "{calls:?}");
}

/// A program whose kernel works for a millisecond at each call, and a fifth of a core for it.
fn with_a_share() -> (ProgramTable, NodeSettings) {
    let spin = || {
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_millis(1) {}
        1.0
    };
    let kernel = Kernel { name: "spin".into(), prepare: Arc::new(move |_| Ok(Box::new(spin))) };
    let program = ProgramTable { kernels: vec![kernel], ..ProgramTable::default() };
    (program, NodeSettings { cpu_share: 0.2, ..NodeSettings::default() })
}

#[test]
fn a_pe_with_a_share_of_the_core_that_has_waited_for_messages_does_not_sleep_for_as_long_again() {
    let (program, settings) = with_a_share();
    let node = Node::new(NodeId(1), Topology::new(&[0, 1]), Arc::new(program), settings);
    std::thread::scope(|scope| {
        scope.spawn(|| Scheduler::new(&node, PeId(0)).run());
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while !node.snapshot().pes[0].state.is_idle() && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(50));
        push(&node, Target::Order(PeOrder::PrepareKernel { kernel: 0 }));
        push(&node, Target::Stop);
    });
    let pe = &node.snapshot().pes[0];
    assert!(pe.init_ns > 0 && pe.throttled_ns == 0, "{pe:?}");
}

#[test]
fn measuring_with_a_share_of_the_core_is_paid_for_once_and_counts_as_initialising() {
    let (program, settings) = with_a_share();
    let orders =
        [PeOrder::PrepareKernel { kernel: 0 }, PeOrder::Measure { budget_ms: 140 }, PeOrder::DropKernel];
    let node = node_with(program, settings, &orders.map(Target::Order));
    Scheduler::new(&node, PeId(0)).run();
    let pe = &node.snapshot().pes[0];
    assert!(pe.init_ns >= 8_000_000, "the warm-up and one call in each of seven windows: {pe:?}");
    // Off its core for four times as long as on it, asleep or waiting; at the end it may be ahead by the last sleep's excess.
    let off_ns = pe.throttled_ns + pe.core_wait_ns;
    assert!(off_ns >= 4 * pe.init_ns - pe.init_ns / 4, "{pe:?}");
    assert!(pe.throttled_ns < 12 * pe.init_ns, "{pe:?}");
}

#[test]
fn what_chares_did_is_told_of_the_time_after_measuring() {
    let kernel = Kernel { name: "one".into(), prepare: Arc::new(|_| Ok(Box::new(|| 1.0))) };
    let program = ProgramTable { kernels: vec![kernel], ..ProgramTable::default() };
    let settings = NodeSettings { balances: true, ..NodeSettings::default() };
    let orders =
        [PeOrder::PrepareKernel { kernel: 0 }, PeOrder::Measure { budget_ms: 140 }, PeOrder::DropKernel];
    let node = node_with(program, settings, &orders.map(Target::Order));
    Scheduler::new(&node, PeId(0)).run();
    let now_ns = node.now_ns();
    let told = node.pes().said(PeId(0)).take(PeId(0), Some(now_ns));
    // It ends with the last stretch of 20 ms of which half or more is within the budget.
    assert!(told.wall_ns + 130_000_000 <= now_ns, "{told:?} at {now_ns} ns");
}

/// A node with one PE whose loads somebody wants to know.
fn balanced_node() -> Arc<Node> {
    let settings = NodeSettings { balances: true, ..NodeSettings::default() };
    Node::new(NodeId(1), Topology::new(&[0, 1]), Arc::new(ProgramTable::default()), settings)
}

fn push(node: &Node, target: Target) {
    node.pes().push(PeId(0), None, Envelope::new(target, 0, Payload::packed(Packed::default())));
}

#[test]
fn what_a_pe_shows_that_computes_for_nothing_is_told() {
    let node = balanced_node();
    push(&node, Target::Order(PeOrder::Probe));
    std::thread::scope(|scope| {
        scope.spawn(|| Scheduler::new(&node, PeId(0)).run());
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while !node.pes().said(PeId(0)).is_new() && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        push(&node, Target::Stop);
    });
    let part = node.pes().said(PeId(0)).take(PeId(0), None).probed.unwrap();
    assert!(part > 0.0 && part <= 1.0, "{part}");
}

#[test]
fn a_pe_computes_for_nothing_only_while_nothing_waits() {
    let shows = |waits: bool| {
        let node = balanced_node();
        if waits {
            push(&node, Target::Order(PeOrder::DropKernel));
        }
        let mut scheduler = Scheduler::new(&node, PeId(0));
        scheduler.probe();
        scheduler.pe.loads.probed
    };
    assert!(shows(false).is_some());
    assert_eq!(shows(true), None);
}
