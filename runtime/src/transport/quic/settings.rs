//! The knobs of a link, with defaults that were measured to be right on a LAN and on loopback.

use super::LinkError;
use super::congestion::Congestion;
use crate::frame::FrameLimits;
use crate::transport::Ports;
use crate::transport::tls::NodeIdentity;
use nix::sys::socket::{setsockopt, sockopt};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{
    AckFrequencyConfig, ClientConfig, EndpointConfig, IdleTimeout, MtuDiscoveryConfig, ServerConfig,
    TransportConfig, VarInt,
};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// How a node's links behave.
#[derive(Clone, Debug)]
pub struct LinkSettings {
    /// A peer that is silent for so long is lost. Default 3.75 s: longer than a hiccup of 3 s, short enough to
    /// end a run within 5 s.
    pub idle_timeout: Duration,
    /// Each end of a link says that it is alive so often. Default 125 ms.
    pub keep_alive: Duration,
    /// A connection to another node is closed when nothing has gone over it for so long, so that no node holds one to
    /// each other; the next frame opens it again. `None` keeps all. Default 60 s.
    pub close_idle_after: Option<Duration>,
    /// Bytes that one stream may have under way. Default 4 MiB: as much as the socket's buffer holds. With
    /// more, bursts overflow it, and QUIC takes the loss for a path that swallows big datagrams.
    pub stream_window_bytes: u32,
    /// Bytes that wait for this node's PEs before it stops reading. Default 1 GiB.
    pub backlog_limit_bytes: u64,
    /// Bytes that may wait for one peer. What is sent past it is refused, which ends the run: it names the message,
    /// its receiver and this limit. Default 8 GiB.
    pub send_limit_bytes: u64,
    /// Largest datagram that MTU discovery tries, 1,200 to 6,500 bytes. Default 6,500: good for jumbo frames
    /// and loopback.
    pub datagram_max_bytes: u16,
    /// How links share their path with others. Default: by distance.
    pub congestion: Congestion,
    /// How long messages may be. Default: 4 GiB, 64 MiB of it beside buffers, in up to 65,535 buffers.
    pub frames: FrameLimits,
    /// How long a handshake may take. Default 5 s.
    pub handshake_limit: Duration,
    /// Whether others may dial this node. A launcher only dials: nobody gets an answer from its port.
    pub is_dialled: bool,
    /// On which ports it may listen. Default: whichever the system gives.
    pub ports: Option<Ports>,
    /// Whether memory is shared with other processes of the same host and user, where both ends want it. Default: no.
    pub shares_memory: bool,
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_millis(3750),
            keep_alive: Duration::from_millis(125),
            close_idle_after: Some(Duration::from_secs(60)),
            stream_window_bytes: 4 << 20,
            backlog_limit_bytes: 1 << 30,
            send_limit_bytes: 8 << 30,
            datagram_max_bytes: DATAGRAM_MAX_BYTES,
            congestion: Congestion::default(),
            frames: FrameLimits::default(),
            handshake_limit: Duration::from_secs(5),
            is_dialled: true,
            ports: None,
            shares_memory: false,
        }
    }
}

/// Ten such datagrams fit into one call of the system, which takes 64 KiB; quinn hands it ten at a time. Any
/// larger ones the system refuses all together, without a word to anybody, and the link starves.
const DATAGRAM_MAX_BYTES: u16 = 6_500;
/// Every path of QUIC carries datagrams of this length.
const DATAGRAM_MIN_BYTES: u16 = 1_200;
/// How long a link stays with small datagrams after it took a burst of losses for a path that has become
/// narrower.
const MTU_AGAIN: Duration = Duration::from_secs(5);
/// The longest that an acknowledgement is held back.
pub(super) const ACK_DELAY_MAX: Duration = Duration::from_millis(5);
/// A packet that so many later ones have overtaken is acknowledged at once, as one that may be lost.
const ACK_REORDERED: u32 = 25;
/// A packet is lost when so many later ones have arrived, or when it is this late. QUIC's defaults, 3 and 9/8,
/// take a jitter of 2 ms on a path of 20 ms for constant loss, and the link falls to a hundredth of its rate;
/// judging by time alone, as TCP's RACK (RFC 8985) does, costs a lost packet half a round trip.
const REORDERED_MAX: u32 = 1_000;
const LOST_AFTER_ROUND_TRIPS: f32 = 1.5;
/// Size of the receive buffer that the kernel is asked for; it may give less.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;
/// The kernel's buffer for what leaves: small, so that the kernel uses the same memory again while caches hold it.
/// With 4 MiB the copies into the kernel took 4.9 % of a core at 1 Gbit/s, with 1 MiB 0.7 %. With 256 KiB a message
/// of 64 KiB on loopback takes twice as long.
const SEND_BUFFER_BYTES: usize = 1 << 20;

/// Where signs of life come and QUIC hears nothing at all, the path is given up after so many times the silence that is
/// taken for death.
const QUIC_PATIENCE: u32 = 4;

/// What quinn is given for the links of a node.
#[derive(Debug)]
pub struct QuinnParts {
    /// The open socket, with its buffers set.
    pub socket: UdpSocket,
    /// Settings of the endpoint, such as the longest datagram that it takes.
    pub endpoint: EndpointConfig,
    /// Settings for connections that others open.
    pub server: ServerConfig,
    /// Settings for connections that this node opens.
    pub client: ClientConfig,
}

impl LinkSettings {
    /// What quinn is given for links that behave so: [`QuicFabric::bind`](super::QuicFabric::bind) puts its work on top of
    /// this, and is measured against an endpoint made of the same.
    ///
    /// # Errors
    /// If the socket or the identity is not usable.
    pub fn quinn(&self, address: SocketAddr, identity: &NodeIdentity) -> Result<QuinnParts, LinkError> {
        let (client, server) = identity.configs()?;
        let socket = self.socket(address)?;
        let mut client = ClientConfig::new(Arc::new(client));
        client.transport_config(self.transport(address.ip()));
        Ok(QuinnParts {
            socket,
            endpoint: self.endpoint(),
            server: self.server(server, address.ip()),
            client,
        })
    }

    fn socket(&self, address: SocketAddr) -> io::Result<UdpSocket> {
        let socket = match address.port() {
            0 => Ports::bind(self.ports, address.ip())?,
            _ => UdpSocket::bind(address)?,
        };
        // A smaller buffer makes it slower, not wrong.
        let _ = setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES);
        let _ = setsockopt(&socket, sockopt::SndBuf, &SEND_BUFFER_BYTES);
        Ok(socket)
    }

    fn endpoint(&self) -> EndpointConfig {
        let mut endpoint = EndpointConfig::default();
        // What this end takes is also as far as the other's MTU discovery goes; by default an Ethernet frame.
        // Values below QUIC's least datagram are refused, and then the default is right.
        let _ = endpoint.max_udp_payload_size(self.datagram_bytes());
        // A bit that QUIC always sets tells its datagrams from signs of life.
        endpoint.grease_quic_bit(false);
        endpoint
    }

    fn datagram_bytes(&self) -> u16 {
        self.datagram_max_bytes.min(DATAGRAM_MAX_BYTES)
    }

    fn server(&self, crypto: QuicServerConfig, here: IpAddr) -> ServerConfig {
        let mut server = ServerConfig::with_crypto(Arc::new(crypto));
        server.transport_config(self.transport(here));
        server.migration(false);
        server
    }

    pub(super) fn transport(&self, here: IpAddr) -> Arc<TransportConfig> {
        let mut transport = TransportConfig::default();
        // Whoever is reached from a loopback address is on this host, where datagrams of any length pass. To find that out
        // takes several long probes, and both ends as much time as half of the handshake.
        if here.is_loopback() {
            transport.initial_mtu(self.datagram_bytes().max(DATAGRAM_MIN_BYTES));
        }
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(self.datagram_bytes()).black_hole_cooldown(MTU_AGAIN);
        // An acknowledgement per 2 packets, QUIC's default, costs both ends as much as the data at MTU 1500.
        let mut acknowledge = AckFrequencyConfig::default();
        acknowledge.ack_eliciting_threshold(VarInt::from_u32(25)).max_ack_delay(Some(ACK_DELAY_MAX));
        acknowledge.reordering_threshold(VarInt::from_u32(ACK_REORDERED));
        let window = VarInt::from_u32(self.stream_window_bytes);
        let all = self.stream_window_bytes.saturating_mul(3);
        transport
            .max_idle_timeout(IdleTimeout::try_from(QUIC_PATIENCE * self.idle_timeout).ok())
            .keep_alive_interval(Some(self.idle_timeout))
            .ack_frequency_config(Some(acknowledge))
            .packet_threshold(REORDERED_MAX)
            .time_threshold(LOST_AFTER_ROUND_TRIPS)
            .initial_rtt(Duration::from_millis(50))
            .mtu_discovery_config(Some(discovery))
            .stream_receive_window(window)
            .receive_window(VarInt::from_u32(all))
            .send_window(u64::from(all))
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .max_concurrent_uni_streams(VarInt::from_u32(8))
            .datagram_receive_buffer_size(None)
            .congestion_controller_factory(self.congestion.factory());
        Arc::new(transport)
    }
}
