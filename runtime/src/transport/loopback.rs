//! Links inside one process: a frame is delivered by a call.

use crate::frame::{Class, Fabric, Frame, FrameLimits, Receiver, SendError};
use crate::ids::NodeId;
use dashmap::DashMap;
use std::fmt;
use std::sync::{Arc, Weak};

/// The network of nodes that live in one process.
#[derive(Clone, Default)]
pub struct LoopbackNet {
    receivers: Arc<DashMap<NodeId, Weak<dyn Receiver>>>,
}

impl fmt::Debug for LoopbackNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoopbackNet of {} nodes", self.receivers.len())
    }
}

impl LoopbackNet {
    /// A network without nodes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node. The network does not keep it alive.
    pub fn register(&self, node: NodeId, receiver: &Arc<dyn Receiver>) {
        self.receivers.insert(node, Arc::downgrade(receiver));
    }

    /// What `me` sends with.
    #[must_use]
    pub fn fabric(&self, me: NodeId) -> Arc<dyn Fabric> {
        Arc::new(Loopback { me, net: self.clone() })
    }
}

struct Loopback {
    me: NodeId,
    net: LoopbackNet,
}

impl Fabric for Loopback {
    /// With the limits of real links, so that a program does not meet them only there.
    fn send(&self, to: NodeId, class: Class, frame: Frame) -> Result<(), SendError> {
        FrameLimits::default().check_frame(&frame)?;
        let receiver = self.net.receivers.get(&to).and_then(|r| r.upgrade());
        match receiver {
            Some(receiver) => receiver.receive(self.me, class, frame),
            None => tracing::debug!("{:?} sent to {to:?}, which is not there", self.me),
        }
        Ok(())
    }
}
