//! What a node process is told on its standard input before anything else. It holds the node's key, so it
//! never appears on a command line, in the environment or in a file.

use crate::ids::NodeId;
use crate::transport::tls::NodeIdentity;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Everything that a node has to know before it can be reached.
#[derive(Serialize, Deserialize)]
pub(super) struct Bootstrap {
    /// Its number.
    pub(super) node: NodeId,
    /// Count of all nodes, launcher included.
    pub(super) node_count: u16,
    /// Its certificate and key, and the run's authority.
    pub(super) identity: NodeIdentity,
    /// The address to listen on, if the nodes file or the launcher says so.
    pub(super) listen: Option<IpAddr>,
    /// All nodes are on this machine.
    pub(super) is_all_local: bool,
    /// The first of the cores that its PEs are pinned to; `None` leaves them to the system.
    pub(super) first_core: Option<u32>,
    /// PEs and network threads of this run on its host, as far as the launcher knows.
    pub(super) threads_on_host: u32,
    /// See the nodes file.
    pub(super) cpu_share: f64,
    /// See the nodes file.
    pub(super) memory_bytes: Option<u64>,
    /// Pack every message.
    pub(super) always_pup: bool,
    /// The application's arguments, for its kernel.
    pub(super) kernel_arguments: Vec<u8>,
}
