//! What a node process is told on its standard input before anything else. It holds the node's key, so it
//! never appears on a command line, in the environment or in a file.

use crate::config::NetworkConfig;
use crate::ids::NodeId;
use crate::monitor::Detail;
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
    /// The address to listen on; where ssh arrived, if neither the nodes file nor the launcher says it.
    pub(super) listen: Option<IpAddr>,
    /// Where the search for cores begins that its PEs are pinned to; `None` leaves them to the system.
    pub(super) first_core: Option<u32>,
    /// Nodes of this run on its host whose cores come before its own.
    pub(super) nodes_before: u32,
    /// PEs and network threads of this run on its host, as far as the launcher knows.
    pub(super) threads_on_host: u32,
    /// Cores that the PEs of this run on its host can use up: each PE counts as much as its node's share of a core.
    pub(super) used_cores_on_host: f64,
    /// As the nodes file says.
    pub(super) cpu_share: f64,
    /// As the nodes file says.
    pub(super) memory_bytes: Option<u64>,
    /// As the nodes file says.
    pub(super) network: NetworkConfig,
    /// Whether to pack every message, also inside a process (for tests).
    pub(super) always_pup: bool,
    /// Whether to tell what chares cost.
    pub(super) balances: bool,
    pub(super) counts_traffic: bool,
    /// How much to find out about what PEs do.
    pub(super) detail: Detail,
    /// The seed from which chares move at random moments (for tests).
    pub(super) wander: Option<u64>,
    /// The application's arguments, for its kernel.
    pub(super) kernel_arguments: Vec<u8>,
}

impl Bootstrap {
    /// What the launcher said, if it can be meant.
    pub(super) fn decode(blob: &[u8]) -> Result<Self, String> {
        let said: Self = postcard::from_bytes(blob)
            .map_err(|e| format!("the launcher's first words are not understood: {e}"))?;
        let wrong = |what: &str| Err(format!("the launcher's first words hold {what}"));
        if said.node == NodeId::LAUNCHER || said.node.0 >= said.node_count {
            return wrong("a node that is none of the run's");
        }
        if !(said.cpu_share > 0.0 && said.cpu_share <= 1.0) {
            return wrong("a share of the CPU that is not above 0 and at most 1");
        }
        if !said.network.is_sound() {
            return wrong("settings of the network that no nodes file can have");
        }
        Ok(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::sim::Random;
    use crate::transport::tls::RunAuthority;

    fn said() -> Bootstrap {
        let authority = RunAuthority::new("test-1").unwrap();
        Bootstrap {
            node: NodeId(2),
            node_count: 4,
            identity: authority.issue(NodeId(2)).unwrap(),
            listen: Some(IpAddr::from([127, 0, 0, 1])),
            first_core: Some(3),
            nodes_before: 2,
            threads_on_host: 7,
            used_cores_on_host: 3.5,
            cpu_share: 0.5,
            memory_bytes: Some(1 << 30),
            network: NetworkConfig::default(),
            always_pup: false,
            balances: true,
            counts_traffic: true,
            detail: Detail::Single,
            wander: Some(4),
            kernel_arguments: vec![1, 2, 3],
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let refused = |change: fn(&mut Bootstrap)| {
            let mut said = said();
            change(&mut said);
            Bootstrap::decode(&postcard::to_stdvec(&said).unwrap()).err().unwrap_or_default()
        };
        assert_eq!(refused(|_| {}), "");
        assert!(refused(|said| said.node = NodeId::LAUNCHER).contains("none of the run's"));
        assert!(refused(|said| said.node = NodeId(4)).contains("none of the run's"));
        assert!(refused(|said| said.network.datagram_bytes = 100).contains("settings of the network"));
        for share in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
            let said = Bootstrap { cpu_share: share, ..said() };
            assert!(Bootstrap::decode(&postcard::to_stdvec(&said).unwrap()).is_err(), "{share}");
        }
    }

    /// Bytes that can be decoded hold only values that a launcher can mean.
    #[test]
    fn mutated_first_words_are_refused_or_sane() {
        let (mut random, good) = (Random::new(11), postcard::to_stdvec(&said()).unwrap());
        let mut decoded = 0;
        for number in 0..10_000 {
            let bytes = if number % 4 == 0 { random.bytes(512) } else { random.mutated(&good) };
            let Ok(said) = Bootstrap::decode(&bytes) else { continue };
            decoded += 1;
            assert!(said.node.0 > 0 && said.node.0 < said.node_count && said.cpu_share <= 1.0);
            assert!(said.network.is_sound());
        }
        assert!(decoded > 1000, "{decoded} decoded");
    }
}
