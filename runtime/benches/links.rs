//! Links between two nodes of one machine, each with its own network thread: round trips, the rate of small
//! messages, and bandwidth. `cargo bench -p metachare-runtime --bench links`.
//!
//! A plain program and not a statistics framework: one number per line, comparable with the table of other
//! systems that the design rests on. Without `--bench` (as in `cargo test --benches`) it only goes through.

use runtime::buffer::Buffer;
use runtime::frame::{Class, Fabric, Frame, Receiver};
use runtime::ids::NodeId;
use runtime::transport::quic::{LinkSettings, QuicFabric};
use runtime::transport::tls::{NodeIdentity, RunAuthority};
use std::sync::mpsc::{Receiver as Events, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(60);

/// Passes frames on to the measuring thread, or sends them straight back.
struct Ear {
    heard: Sender<usize>,
    echo: OnceLock<Arc<QuicFabric>>,
}

impl Receiver for Ear {
    fn receive(&self, from: NodeId, class: Class, frame: Frame) {
        match self.echo.get() {
            Some(fabric) => fabric.send(from, class, frame).expect("within the limits"),
            None => drop(self.heard.send(frame.len_bytes())),
        }
    }

    fn backlog_bytes(&self) -> u64 {
        0
    }

    fn link_lost(&self, peer: NodeId, reason: String) {
        panic!("the link to {peer:?} broke: {reason}");
    }
}

struct End {
    fabric: Arc<QuicFabric>,
    ear: Arc<Ear>,
    heard: Events<usize>,
}

fn end(identity: NodeIdentity, me: u16, settings: LinkSettings) -> End {
    let (heard, events) = channel();
    let ear = Arc::new(Ear { heard, echo: OnceLock::new() });
    let (ready, made) = channel();
    let receiver = Arc::clone(&ear);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let address = "127.0.0.1:0".parse().expect("an address");
            let fabric = QuicFabric::bind(address, &identity, NodeId(me), receiver, settings);
            ready.send(fabric.expect("a socket")).expect("somebody waits");
            std::future::pending::<()>().await;
        });
    });
    End { fabric: made.recv_timeout(WAIT).expect("an end"), ear, heard: events }
}

/// Two connected ends, warm: path MTU found, congestion window open.
fn pair(settings: &LinkSettings, is_echo: bool) -> [End; 2] {
    let authority = RunAuthority::new("bench").expect("randomness");
    let ends = [0, 1].map(|n| end(authority.issue(NodeId(n)).expect("randomness"), n, settings.clone()));
    let addresses: Vec<_> = ends.iter().map(|e| Some(e.fabric.local_addr())).collect();
    ends.iter().for_each(|e| e.fabric.set_addresses(addresses.clone()));
    if is_echo {
        ends[1].ear.echo.get_or_init(|| Arc::clone(&ends[1].fabric));
    }
    ends
}

fn frame(len: usize) -> (Class, Frame) {
    if len < 4096 {
        return (Class::Small, Frame { body: vec![7; len].into(), attachments: Vec::new() });
    }
    (Class::Bulk, Frame { body: vec![7; 16].into(), attachments: vec![Buffer::zeroed(len)] })
}

fn wait(end: &End) {
    end.heard.recv_timeout(WAIT).expect("a frame");
}

/// Median round trip of a frame of `len` bytes.
fn round_trip(ends: &[End; 2], len: usize, count: usize) -> Duration {
    let (class, frame) = frame(len);
    let trip = || {
        let start = Instant::now();
        ends[0].fabric.send(NodeId(1), class, frame.clone()).expect("within the limits");
        wait(&ends[0]);
        start.elapsed()
    };
    let mut times: Vec<Duration> = (0..count).map(|_| trip()).collect();
    times.sort_unstable();
    times[count / 2]
}

/// Seconds from sending the first of `count` frames of `len` bytes to receiving the last.
fn one_way(ends: &[End; 2], len: usize, count: usize) -> f64 {
    let (class, frame) = frame(len);
    let start = Instant::now();
    for _ in 0..count {
        ends[0].fabric.send(NodeId(1), class, frame.clone()).expect("within the limits");
    }
    (0..count).for_each(|_| wait(&ends[1]));
    start.elapsed().as_secs_f64()
}

fn main() {
    let is_measuring = std::env::args().any(|arg| arg == "--bench");
    let scale = if is_measuring { 1 } else { 100 };
    for datagram in [1452, 6500] {
        let settings = LinkSettings { datagram_max_bytes: datagram, ..LinkSettings::default() };
        let echo = pair(&settings, true);
        round_trip(&echo, 1 << 20, 200 / scale);
        for (len, count) in [(64, 10_000), (64 << 10, 1_000), (1 << 20, 300), (16 << 20, 100)] {
            let median = round_trip(&echo, len, count / scale);
            println!(
                "datagrams {datagram:>5}: round trip of {len:>8} B {:>10.1} us",
                median.as_secs_f64() * 1e6
            );
        }
        let ends = pair(&settings, false);
        one_way(&ends, 1 << 20, 300 / scale);
        let stats = ends[0].fabric.stats(NodeId(1));
        println!("datagrams {datagram:>5}: {} B found", stats.datagram_bytes.unwrap_or_default());
        let count = 1_000_000 / scale;
        let rate = count as f64 / one_way(&ends, 64, count) / 1e6;
        println!("datagrams {datagram:>5}: messages of 64 B, one way {rate:>6.2} million/s");
        for (len, count) in [(64 << 10, 16_000), (1 << 20, 2_000), (16 << 20, 100)] {
            let count = count / scale;
            let rate = (count * len) as f64 / one_way(&ends, len, count) / 1e9;
            println!("datagrams {datagram:>5}: frames of {len:>8} B, one way {rate:>6.2} GB/s");
        }
    }
}
