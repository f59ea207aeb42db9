//! Nodes of one run inside the test, with links that can be listened to.

use crate::program::{self, Made};
use runtime::envelope::Payload;
use runtime::frame::{Class, Fabric, Frame, Receiver, SendError};
use runtime::ids::{NodeId, PeId};
use runtime::node::{DriverEvent, LauncherEvent, Listeners, Node, NodeSettings};
use runtime::pe::Pe;
use runtime::pe::scheduler::start_pes;
use runtime::topology::Topology;
use runtime::transport::loopback::LoopbackNet;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver as Events, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// PEs of the launcher and of three nodes.
const PES: [u32; 4] = [0, 2, 1, 1];
/// A run that does not get on in this time hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// A frame on its way.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) class: Class,
    pub(crate) frame: Frame,
}

struct Tap {
    me: NodeId,
    inner: Arc<dyn Fabric>,
    heard: Heard,
}

/// What has been sent, if somebody listens.
type Heard = Arc<Mutex<Option<Vec<Sent>>>>;

impl Fabric for Tap {
    fn send(&self, to: NodeId, class: Class, frame: Frame) -> Result<(), SendError> {
        if let Some(heard) = self.heard.lock().unwrap().as_mut() {
            heard.push(Sent { from: self.me, to, class, frame: frame.clone() });
        }
        self.inner.send(to, class, frame)
    }
}

/// A run under way.
pub(crate) struct Run {
    pub(crate) nodes: Vec<Arc<Node>>,
    pub(crate) main: Pe,
    pub(crate) launcher: UnboundedReceiver<LauncherEvent>,
    events: Events<DriverEvent>,
    heard: Heard,
}

impl Run {
    /// The nodes with their PEs, and nothing sent yet.
    pub(crate) fn new() -> Self {
        let (topology, table, net) = (Topology::new(&PES), Arc::new(program::table()), LoopbackNet::new());
        let settings = NodeSettings { always_pup: true, ..NodeSettings::default() };
        let heard = Heard::default();
        let nodes: Vec<Arc<Node>> = (0..topology.node_count())
            .map(|id| Node::new(NodeId(id), topology.clone(), Arc::clone(&table), settings.clone()))
            .collect();
        for node in &nodes {
            let receiver: Arc<dyn Receiver> = Arc::clone(node) as _;
            net.register(node.id(), &receiver);
            let (me, heard) = (node.id(), Arc::clone(&heard));
            node.connect(Arc::new(Tap { me, inner: net.fabric(me), heard }));
        }
        let ((driver, events), (ear, launcher)) = (channel(), unbounded_channel());
        nodes[0].listen(Listeners { driver, supervision: Some(ear), balancing: None });
        nodes.iter().for_each(|node| start_pes(node).unwrap());
        let main = Pe::new(PeId::DRIVER, Arc::clone(&nodes[0]));
        Self { nodes, main, launcher, events, heard }
    }

    pub(crate) fn begin(&mut self, hops: u32) -> Made {
        program::begin(&mut self.main, hops)
    }

    /// From here on all that nodes say to each other is kept.
    pub(crate) fn listen(&self) {
        *self.heard.lock().unwrap() = Some(Vec::new());
    }

    /// All that nodes have said to each other since [`listen`](Self::listen).
    pub(crate) fn heard(&self) -> Vec<Sent> {
        self.heard.lock().unwrap().take().unwrap_or_default()
    }

    /// Waits until no message is anywhere; the result of each slot.
    pub(crate) fn calm(&mut self) -> BTreeMap<u64, u64> {
        let (until, mut slots) = (Instant::now() + LIMIT, BTreeMap::new());
        self.nodes[0].start_quiescence(true);
        loop {
            assert!(Instant::now() < until, "the run does not come to rest: {slots:?}");
            let due = self.nodes[0].pump_quiescence().unwrap_or(LIMIT).min(Duration::from_millis(100));
            match self.events.recv_timeout(due) {
                Ok(DriverEvent::Quiescent { .. }) => return slots,
                Ok(DriverEvent::Slot(_, slot, Payload::Packed(packed))) => {
                    self.nodes[0].driver_processed();
                    slots.insert(slot, program::unpack(&packed).unwrap());
                }
                _ => {}
            }
            if let Ok(LauncherEvent::Fault(node, sentence)) = self.launcher.try_recv() {
                panic!("the run failed on {node:?}: {sentence}");
            }
        }
    }

    /// Waits until a result or a failure comes to the driver.
    pub(crate) fn next_result(&mut self) -> Result<u64, String> {
        let until = Instant::now() + LIMIT;
        while Instant::now() < until {
            if let Ok(LauncherEvent::Fault(_, sentence)) = self.launcher.try_recv() {
                return Err(sentence);
            }
            if let Ok(DriverEvent::Slot(_, slot, _)) = self.events.recv_timeout(Duration::from_millis(5)) {
                return Ok(slot);
            }
        }
        panic!("neither a result nor a failure within {LIMIT:?}")
    }

    /// Ends the PEs: none may be stuck.
    pub(crate) fn end(self) {
        let threads: Vec<_> = self.nodes.iter().flat_map(|node| node.stop_pes()).collect();
        let (ended, all_ended) = channel();
        std::thread::spawn(move || {
            let panicked = threads.into_iter().filter_map(|thread| thread.join().err()).count();
            let _ = ended.send(panicked);
        });
        assert_eq!(all_ended.recv_timeout(LIMIT).expect("a PE is stuck"), 0, "PEs panicked");
    }
}
