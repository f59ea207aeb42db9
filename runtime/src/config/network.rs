//! What nodes may be told about their network.

use crate::transport::Ports;
use crate::transport::quic::{Congestion, LinkSettings};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// What carries messages between nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// Shared memory between processes of one host and one user where both can have it, QUIC elsewhere.
    #[default]
    Auto,
    /// QUIC everywhere.
    Quic,
}

/// The table `[network]` of the nodes file. The same for all nodes of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkConfig {
    /// What carries messages between nodes. Default: shared memory where it can be had.
    pub transport: Transport,
    /// How links share their path. Default: Cubic, and BBR where packets are lost and a round trip takes 5 ms.
    pub congestion: Congestion,
    /// Longest datagram, bytes, if the path takes such. Default 6,500.
    pub datagram_bytes: u16,
    /// Bytes that one class of messages may have under way to a node: no more in each round trip. Default 4 MiB.
    pub window_bytes: u32,
    /// How long threads stay awake after the last message while nobody else wants their cores, see [`crate::spin`];
    /// microseconds. Default 10,000.
    pub spin_us: u32,
    /// Connections between nodes are closed when idle for so long, seconds; `None` keeps them. Default 60.
    pub close_idle_s: Option<u32>,
    /// On which ports nodes listen, for firewalls. Default: whichever their systems give.
    pub ports: Option<Ports>,
}

/// What makes sense, for each of them.
pub(super) const DATAGRAM_BYTES: RangeInclusive<u16> = 1200..=6500;
pub(super) const WINDOW_BYTES: RangeInclusive<u32> = 64 << 10..=1 << 30;
pub(super) const SPIN_US: RangeInclusive<u32> = 0..=1_000_000;
pub(super) const CLOSE_IDLE_S: RangeInclusive<u32> = 1..=1_000_000;

impl Default for NetworkConfig {
    fn default() -> Self {
        let links = LinkSettings::default();
        Self {
            transport: Transport::default(),
            congestion: links.congestion,
            datagram_bytes: links.datagram_max_bytes,
            window_bytes: links.stream_window_bytes,
            spin_us: 10_000,
            close_idle_s: Some(60),
            ports: None,
        }
    }
}

impl NetworkConfig {
    /// Whether all values are such as a nodes file may have.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        DATAGRAM_BYTES.contains(&self.datagram_bytes)
            && WINDOW_BYTES.contains(&self.window_bytes)
            && SPIN_US.contains(&self.spin_us)
            && self.close_idle_s.is_none_or(|s| CLOSE_IDLE_S.contains(&s))
            && self.ports.is_none_or(Ports::is_sound)
    }

    /// How long threads stay awake after the last message while nobody else wants their cores.
    #[must_use]
    pub fn spin(&self) -> Duration {
        Duration::from_micros(self.spin_us.into())
    }

    /// As links take it.
    #[must_use]
    pub fn links(&self) -> LinkSettings {
        LinkSettings {
            congestion: self.congestion,
            datagram_max_bytes: self.datagram_bytes,
            stream_window_bytes: self.window_bytes,
            close_idle_after: self.close_idle_s.map(|s| Duration::from_secs(s.into())),
            shares_memory: self.transport == Transport::Auto,
            ports: self.ports,
            ..LinkSettings::default()
        }
    }
}

impl fmt::Display for NetworkConfig {
    /// What differs from the defaults, as it stands in the nodes file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = Self::default();
        let mut said = Vec::new();
        if self.transport != usual.transport {
            said.push(format!("transport {}", format!("{:?}", self.transport).to_lowercase()));
        }
        if self.congestion != usual.congestion {
            said.push(format!("congestion {}", format!("{:?}", self.congestion).to_lowercase()));
        }
        if self.datagram_bytes != usual.datagram_bytes {
            said.push(format!("datagram {}", self.datagram_bytes));
        }
        if self.window_bytes != usual.window_bytes {
            said.push(format!("window {} KiB", self.window_bytes >> 10));
        }
        if self.spin_us != usual.spin_us {
            said.push(format!("spin {} us", self.spin_us));
        }
        if self.close_idle_s != usual.close_idle_s {
            said.push(self.close_idle_s.map_or("close_idle never".into(), |s| format!("close_idle {s} s")));
        }
        if let Some(ports) = self.ports {
            said.push(format!("ports {ports}"));
        }
        f.write_str(&said.join(", "))
    }
}
