//! A launcher and a node whose PEs do nothing, joined by calls.

use super::*;
use crate::frame::Receiver;
use crate::transport::loopback::LoopbackNet;
use std::sync::mpsc::{Receiver as Events, channel};

fn launcher_and_node() -> (Vec<Arc<Node>>, Events<DriverEvent>) {
    let topology = Topology::new(&[0, 1]);
    let net = LoopbackNet::new();
    let nodes: Vec<Arc<Node>> = (0..2)
        .map(|id| Node::new(NodeId(id), topology.clone(), Arc::default(), NodeSettings::default()))
        .collect();
    for node in &nodes {
        let receiver: Arc<dyn Receiver> = Arc::clone(node) as _;
        net.register(node.id(), &receiver);
        node.connect(net.fabric(node.id()));
    }
    let (driver, events) = channel();
    nodes[0].listen(Listeners { driver, supervision: None, balancing: None });
    (nodes, events)
}

/// The driver sleeps while a wave is under way; when its end comes by a link, somebody has to wake it.
#[test]
fn the_driver_is_woken_when_the_next_wave_is_due() {
    let (nodes, events) = launcher_and_node();
    nodes[0].pes().account(PeId::DRIVER).created(1);
    let search = nodes[0].start_quiescence(true);
    assert!(matches!(events.try_recv(), Ok(DriverEvent::QuiescenceDue)), "a message is under way");
    nodes[1].pes().account(PeId(0)).processed();
    // Waves without end would be an error here; the search needs two after the message was processed.
    let found = (0..1000).find_map(|_| {
        std::thread::sleep(nodes[0].pump_quiescence().unwrap_or_default());
        match events.try_recv() {
            Ok(DriverEvent::Quiescent { search, .. }) => Some(search),
            _ => None,
        }
    });
    assert_eq!(found, Some(search));
}
