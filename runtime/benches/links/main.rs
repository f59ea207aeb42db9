//! Links between two nodes of one machine, each with its own network thread: round trips, the rate of small
//! messages, and bandwidth. `cargo bench -p metachare-runtime --bench links`.
//!
//! Then bandwidth and round trips of long frames against quinn by itself, made of the same parts, in turn: what the
//! fabric puts on top shows in the ratio. `cargo bench -p metachare-runtime --bench links -- bare` does only that.
//!
//! A plain program and not a statistics framework: one number per line, comparable with the table of other
//! systems that the design rests on. Without `--bench` (as in `cargo test --benches`) it only goes through.

mod bare;

use bare::{Bare, Reading};
use runtime::buffer::Buffer;
use runtime::config::NetworkConfig;
use runtime::frame::{Class, Fabric, Frame, Receiver};
use runtime::ids::NodeId;
use runtime::spin::Spin;
use runtime::transport::quic::{LinkSettings, QuicFabric};
use runtime::transport::tls::{NodeIdentity, RunAuthority};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver as Events, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(60);
/// Stretches of each side against the other.
const TURNS: usize = 9;
/// Of one stretch: about 0.3 s.
const STRETCH_BYTES: usize = 480 << 20;

/// Tells the measuring thread of the last frame that it expects, or sends all straight back.
struct Ear {
    heard: Sender<()>,
    expected: AtomicUsize,
    echo: OnceLock<Arc<QuicFabric>>,
}

impl Receiver for Ear {
    fn receive(&self, from: NodeId, class: Class, frame: Frame) {
        match self.echo.get() {
            Some(fabric) => fabric.send(from, class, frame).expect("within the limits"),
            None if self.expected.fetch_sub(1, Ordering::SeqCst) == 1 => drop(self.heard.send(())),
            None => {}
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
    heard: Events<()>,
}

fn end(identity: NodeIdentity, me: u16, settings: LinkSettings) -> End {
    let (heard, events) = channel();
    let ear = Arc::new(Ear { heard, expected: AtomicUsize::new(0), echo: OnceLock::new() });
    let (ready, made) = channel();
    let receiver = Arc::clone(&ear);
    // Named, so that a profile can tell who is who.
    let thread = std::thread::Builder::new().name(format!("fabric {me}"));
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let address = "127.0.0.1:0".parse().expect("an address");
            let fabric = QuicFabric::bind(address, &identity, NodeId(me), receiver, settings);
            ready.send(fabric.expect("a socket")).expect("somebody waits");
            std::future::pending::<()>().await;
        });
    };
    thread.spawn(run).expect("a thread");
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
    (Class::Large, Frame { body: vec![7; 16].into(), attachments: vec![Buffer::zeroed(len)] })
}

fn expect(end: &End, count: usize) {
    end.ear.expected.store(count, Ordering::SeqCst);
}

fn wait(end: &End) {
    end.heard.recv_timeout(WAIT).expect("a frame");
}

/// Round trips of a frame of `len` bytes.
fn round_trips(ends: &[End; 2], len: usize, count: usize) -> Vec<Duration> {
    let (class, frame) = frame(len);
    let trip = || {
        let start = Instant::now();
        expect(&ends[0], 1);
        ends[0].fabric.send(NodeId(1), class, frame.clone()).expect("within the limits");
        wait(&ends[0]);
        start.elapsed()
    };
    (0..count).map(|_| trip()).collect()
}

/// Seconds from sending the first of `count` frames of `len` bytes to receiving the last.
fn one_way(ends: &[End; 2], len: usize, count: usize) -> f64 {
    let (class, frame) = frame(len);
    let start = Instant::now();
    expect(&ends[1], count);
    for _ in 0..count {
        ends[0].fabric.send(NodeId(1), class, frame.clone()).expect("within the limits");
    }
    wait(&ends[1]);
    start.elapsed().as_secs_f64()
}

fn median<T: Copy + PartialOrd>(mut values: Vec<T>) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).expect("a number"));
    values[values.len() / 2]
}

/// One line: the median of what was measured, least and most.
fn show(what: &str, values: &[f64], unit: &str) -> f64 {
    let middle = median(values.to_vec());
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    println!("{what} {middle:>8.3} {unit} ({least:.3} to {most:.3})");
    middle
}

/// Links of the fabric against quinn by itself, a stretch of each in turn.
fn against_bare(settings: &LinkSettings, scale: usize) {
    let datagram = settings.datagram_max_bytes;
    let turns = if scale == 1 { TURNS } else { 1 };
    let (ends, echo, bare) = (pair(settings, false), pair(settings, true), Bare::pair(settings));
    // As in a run of its own.
    let spin = || Spin::new(NetworkConfig::default().spin());
    ends.iter().chain(&echo).for_each(|end| end.fabric.stay_awake_for(&spin()));
    for len in [64 << 10, 1 << 20, 16 << 20] {
        let count = STRETCH_BYTES / len / scale.min(10);
        let rate = |seconds: f64| (count * len) as f64 / seconds / 1e9;
        let [mut ours, mut dropped, mut copied] = [const { Vec::new() }; 3];
        // The first warms up: datagrams have their length, windows are open.
        for turn in 0..=turns {
            let rates = [
                rate(one_way(&ends, len, count)),
                rate(bare.one_way(len, count, Reading::Copy)),
                rate(bare.one_way(len, count, Reading::Drop)),
            ];
            if turn > 0 {
                ours.push(rates[0]);
                copied.push(rates[1]);
                dropped.push(rates[2]);
            }
        }
        let what = |who| format!("datagrams {datagram:>5}: {len:>8} B one way, {who}");
        let ours = show(&what("fabric               "), &ours, "GB/s");
        let copied = show(&what("bare, brought together"), &copied, "GB/s");
        let dropped = show(&what("bare, dropped         "), &dropped, "GB/s");
        println!("{} {:.2} and {:.2}", what("fabric to these"), ours / copied, ours / dropped);
    }
    let len = 1 << 20;
    let count = 200 / scale;
    let micros = |trips: Vec<Duration>| median(trips).as_secs_f64() * 1e6;
    let [mut ours, mut asked, mut inside] = [const { Vec::new() }; 3];
    for turn in 0..=turns {
        let times = [
            micros(round_trips(&echo, len, count)),
            micros(bare.round_trips_from_outside(len, count)),
            micros(bare.round_trips(len, count)),
        ];
        if turn > 0 {
            ours.push(times[0]);
            asked.push(times[1]);
            inside.push(times[2]);
        }
    }
    let what = |who| format!("datagrams {datagram:>5}: {len:>8} B there and back, {who}");
    let ours = show(&what("fabric                   "), &ours, "us");
    let asked = show(&what("bare, from another thread"), &asked, "us");
    let inside = show(&what("bare, from its own thread"), &inside, "us");
    println!("{} {:.2} and {:.2}", what("these to fabric"), asked / ours, inside / ours);
}

fn by_itself(settings: &LinkSettings, scale: usize) {
    let datagram = settings.datagram_max_bytes;
    let echo = pair(settings, true);
    round_trips(&echo, 1 << 20, 200 / scale);
    for (len, count) in [(64, 10_000), (64 << 10, 1_000), (1 << 20, 300), (16 << 20, 100)] {
        let trip = median(round_trips(&echo, len, count / scale));
        println!("datagrams {datagram:>5}: round trip of {len:>8} B {:>10.1} us", trip.as_secs_f64() * 1e6);
    }
    let ends = pair(settings, false);
    one_way(&ends, 1 << 20, 300 / scale);
    let stats = ends[0].fabric.stats(NodeId(1));
    println!("datagrams {datagram:>5}: {} B found", stats.datagram_bytes.unwrap_or_default());
    let count = 1_000_000 / scale;
    let rate = count as f64 / one_way(&ends, 64, count) / 1e6;
    println!("datagrams {datagram:>5}: messages of 64 B, one way {rate:>6.2} million/s");
}

fn main() {
    let is_asked = |word: &str| std::env::args().any(|arg| arg == word);
    let scale = if is_asked("--bench") { 1 } else { 100 };
    for datagram in [1452, 6500] {
        let settings = LinkSettings { datagram_max_bytes: datagram, ..LinkSettings::default() };
        if !is_asked("bare") {
            by_itself(&settings, scale);
        }
        against_bare(&settings, scale);
    }
}
