//! Lines that are narrow, and become so, or are far and lose packets.

use super::line::{Lines, Path};
use super::*;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use tokio::time::{Instant, sleep};

#[derive(Default)]
struct Sink {
    bytes: AtomicU64,
    lost: Mutex<Vec<String>>,
}

impl Receiver for Sink {
    fn receive(&self, _: NodeId, _: Class, frame: Frame) {
        self.bytes.fetch_add(frame.len_bytes() as u64, Ordering::Relaxed);
    }
    fn backlog_bytes(&self) -> u64 {
        0
    }
    fn link_lost(&self, peer: NodeId, reason: String) {
        self.lost.lock().unwrap().push(format!("{peer:?}: {reason}"));
    }
}

struct Nodes {
    lines: Lines,
    fabrics: Vec<Arc<QuicFabric>>,
    sinks: Vec<Arc<Sink>>,
    /// Of each connection's ends: frames and signs of life heard, when the last was found, and the longest silence.
    heard: HashMap<(NodeId, NodeId, usize), (u64, Instant, Duration)>,
}

/// How often it is looked whether something was heard.
const LOOK: Duration = Duration::from_millis(20);

impl Nodes {
    /// Node 0 is a launcher at a fast line, with links to all, over which nothing goes but signs of life.
    fn new(rate: f64, count: u16, path: Path, settings: &LinkSettings) -> Self {
        let authority = RunAuthority::new("test").unwrap();
        let rates: Vec<f64> = std::iter::once(1e9).chain((0..count).map(|_| rate)).collect();
        let lines = Lines::new(&rates, path);
        let sinks: Vec<Arc<Sink>> = rates.iter().map(|_| Arc::default()).collect();
        let fabric = |(n, host): (u16, &Arc<line::Host>)| {
            let identity = authority.issue(NodeId(n)).unwrap();
            let parts = host.parts(settings, &identity);
            let parts = (parts.endpoint, parts.server, parts.client);
            let (host, sink) = (Arc::clone(host), Arc::clone(&sinks[usize::from(n)]));
            QuicFabric::bind_on(host, parts, &identity, NodeId(n), sink, settings.clone()).unwrap()
        };
        let fabrics: Vec<_> = (0..).zip(&lines.hosts).map(fabric).collect();
        let addresses: Vec<_> = fabrics.iter().map(|f| Some(f.local_addr())).collect();
        fabrics.iter().for_each(|f| f.set_addresses(addresses.clone()));
        Self { lines, fabrics, sinks, heard: HashMap::new() }
    }

    fn send(&self, from: u16, to: u16, class: Class, frame: Frame) {
        self.fabrics[usize::from(from)].send(NodeId(to), class, frame).unwrap();
    }

    /// Lets time pass.
    async fn wait(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            sleep(LOOK).await;
            for fabric in &self.fabrics {
                for peer in &fabric.peers {
                    for connection in &peer.lock().connections {
                        let key = (fabric.me, peer.id, connection.stable_id());
                        let count = life::tests::heard(fabric, connection);
                        let (known, at, longest) =
                            self.heard.entry(key).or_insert((count, Instant::now(), Duration::ZERO));
                        *longest = at.elapsed().max(*longest);
                        if *known != count {
                            (*known, *at) = (count, Instant::now());
                        }
                    }
                }
            }
        }
    }

    fn longest_silence(&self) -> Duration {
        self.heard.values().map(|(_, _, longest)| *longest).max().unwrap_or_default()
    }

    fn lost(&self) -> Vec<String> {
        self.sinks.iter().flat_map(|sink| sink.lost.lock().unwrap().clone()).collect()
    }
}

/// Inside a runtime whose time passes when nothing else is left to do.
pub(super) fn in_virtual_time<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(test)
}

/// All workers send to all others, the first of them earlier than the next; how long that took, and the silence.
async fn exchange(nodes: &mut Nodes, bytes: usize, later: Option<f64>) -> Option<(Duration, Duration)> {
    let workers = 1..u16::try_from(nodes.fabrics.len()).unwrap();
    for to in workers.clone() {
        nodes.send(0, to, Class::Control, small(1));
    }
    nodes.wait(Duration::from_secs(1)).await;
    let started = Instant::now();
    for from in workers.clone() {
        for to in workers.clone().filter(|to| *to != from) {
            nodes.send(from, to, Class::Large, bulk(bytes));
            nodes.wait(Duration::from_millis(300)).await;
        }
    }
    if let Some(rate) = later {
        workers.clone().for_each(|host| nodes.lines.set(usize::from(host), rate));
    }
    let all = (workers.len() - 1) as u64 * bytes as u64;
    while nodes.sinks[1..].iter().any(|sink| sink.bytes.load(Ordering::Relaxed) < all) {
        nodes.wait(Duration::from_millis(500)).await;
        if !nodes.lost().is_empty() || started.elapsed() > Duration::from_secs(1000) {
            return None;
        }
    }
    Some((started.elapsed(), nodes.longest_silence()))
}

const MS: Duration = Duration::from_millis(1);
/// As much as routers hold that were made for short queues.
const SHORT: Path = Path { delay: MS, lost_per_mille: 0, queue_min_bytes: 33_000.0 };

/// About a quarter of the silence that is taken for death. QUIC draws random numbers that no seed fixes, and about one run
/// of seventy at the narrowest lines is silent for a little longer; the next one must not be.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// Everything comes, signs of life too, and few packets are sent in vain.
fn assert_sound(rate: f64, count: u16, path: Path, bytes: usize, later: Option<f64>) {
    let what = format!("{count} nodes at {rate} bit/s, then {later:?}, {path:?}");
    let longest_silence = || {
        in_virtual_time(async {
            let mut nodes = Nodes::new(rate, count, path, &LinkSettings::default());
            let done = exchange(&mut nodes, bytes, later).await;
            assert!(done.is_some(), "{what}: {:?}", nodes.lost());
            let (lost, needed) =
                (nodes.lines.lost(), bytes as u64 / 1200 * u64::from(count) * u64::from(count - 1));
            assert!(lost < needed / 3, "{what}: {lost} datagrams were lost where {needed} are enough");
            nodes.longest_silence()
        })
    };
    let first = longest_silence();
    if first >= SILENCE_MAX {
        let second = longest_silence();
        assert!(second < SILENCE_MAX, "{what}: {first:?}, and again {second:?}");
    }
}

#[test]
fn nodes_at_narrow_lines_hear_of_each_other() {
    let mut random = Random::new(15);
    for (rate, count) in [(2e6, 2), (2e6, 4), (4e6, 3), (8e6, 3), (20e6, 4)] {
        for _ in 0..3 {
            let rate = rate + random.below(1 << 20) as f64;
            assert_sound(rate, count, SHORT, 1_000_000 + random.below(1 << 20) as usize, None);
        }
    }
}

#[test]
fn a_long_queue_is_not_filled() {
    assert_sound(4e6, 3, Path { queue_min_bytes: 1e6, ..SHORT }, 1_000_000, None);
}

#[test]
fn a_line_that_becomes_narrow_stays_alive() {
    assert_sound(100e6, 3, SHORT, 10_000_000, Some(10e6));
}

#[test]
fn a_far_line_that_loses_packets_is_not_taken_for_a_narrow_one() {
    let took = |congestion| {
        let settings = LinkSettings { congestion, ..LinkSettings::default() };
        let far = Path { delay: 10 * MS, lost_per_mille: 10, ..SHORT };
        in_virtual_time(async {
            let mut nodes = Nodes::new(400e6, 2, far, &settings);
            exchange(&mut nodes, 30_000_000, None).await.expect("everything comes").0
        })
    };
    let (auto, cubic) = (took(Congestion::Auto), took(Congestion::Cubic));
    assert!(3 * auto < 2 * cubic, "{auto:?}, and with Cubic {cubic:?}");
}
