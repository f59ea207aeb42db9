//! Links over real sockets on this machine. Every wait has a deadline.

use super::*;
use crate::buffer::Buffer;
use crate::transport::framing::FrameLimits;
use crate::transport::tls::RunAuthority;
use std::sync::mpsc::{Receiver as Events, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::Notify;

const LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
enum Event {
    Frame(NodeId, Class, Frame),
    Lost(NodeId, String),
}

struct Ear {
    events: Sender<Event>,
    backlog: Arc<AtomicU64>,
}

impl Receiver for Ear {
    fn receive(&self, from: NodeId, class: Class, frame: Frame) {
        let _ = self.events.send(Event::Frame(from, class, frame));
    }
    fn backlog_bytes(&self) -> u64 {
        self.backlog.load(Ordering::SeqCst)
    }
    fn link_lost(&self, peer: NodeId, reason: String) {
        let _ = self.events.send(Event::Lost(peer, reason));
    }
}

/// A node's network thread and what it hears.
struct End {
    fabric: Arc<QuicFabric>,
    events: Events<Event>,
    backlog: Arc<AtomicU64>,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl End {
    fn new(identity: &NodeIdentity, me: u16, settings: LinkSettings) -> Self {
        let (ready, made) = channel();
        let (sender, events) = channel();
        let (stop, backlog) = (Arc::new(Notify::new()), Arc::new(AtomicU64::new(0)));
        let ear = Arc::new(Ear { events: sender, backlog: Arc::clone(&backlog) });
        let (stopped, identity) = (Arc::clone(&stop), identity.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let address = "127.0.0.1:0".parse().unwrap();
                let fabric = QuicFabric::bind(address, &identity, NodeId(me), ear, settings).unwrap();
                ready.send(Arc::clone(&fabric)).unwrap();
                stopped.notified().await;
            });
        });
        Self { fabric: made.recv().unwrap(), events, backlog, stop, thread: Some(thread) }
    }

    fn next(&self) -> Event {
        self.events.recv_timeout(LIMIT).expect("an event within the deadline")
    }

    fn frame(&self) -> (NodeId, Class, Frame) {
        match self.next() {
            Event::Frame(from, class, frame) => (from, class, frame),
            Event::Lost(peer, reason) => panic!("lost {peer:?}: {reason}"),
        }
    }
}

impl End {
    fn lost(&self, peer: NodeId) -> String {
        match self.next() {
            Event::Lost(lost, reason) if lost == peer => reason,
            other => panic!("instead of the loss of {peer:?}: {other:?}"),
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.stop.notify_one();
        self.thread.take().map(JoinHandle::join);
    }
}

fn ends(count: u16, settings: &LinkSettings) -> Vec<End> {
    let authority = RunAuthority::new("test").unwrap();
    let ends: Vec<End> =
        (0..count).map(|n| End::new(&authority.issue(NodeId(n)).unwrap(), n, settings.clone())).collect();
    let addresses: Vec<_> = ends.iter().map(|e| Some(e.fabric.local_addr())).collect();
    ends.iter().for_each(|e| e.fabric.set_addresses(addresses.clone()));
    ends
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < LIMIT, "not within the deadline: {what}");
        std::thread::yield_now();
    }
}

fn small(n: u64) -> Frame {
    Frame { body: n.to_le_bytes().to_vec().into(), attachments: Vec::new() }
}

fn number(frame: &Frame) -> u64 {
    u64::from_le_bytes(frame.body[..8].try_into().unwrap())
}

#[test]
fn frames_of_a_class_arrive_whole_and_in_order_from_all_threads() {
    let ends = ends(3, &LinkSettings::default());
    let threads: Vec<_> = (0..3u64)
        .map(|thread| {
            let fabric = Arc::clone(&ends[1].fabric);
            std::thread::spawn(move || {
                for n in 0..5_000 {
                    fabric.send(NodeId(2), Class::Small, small(thread << 32 | n));
                }
            })
        })
        .collect();
    let mut next = [0; 3];
    for _ in 0..15_000 {
        let (from, class, frame) = ends[2].frame();
        assert_eq!((from, class), (NodeId(1), Class::Small));
        let value = number(&frame);
        let thread = usize::try_from(value >> 32).unwrap();
        assert_eq!(value & 0xffff_ffff, next[thread]);
        next[thread] += 1;
    }
    threads.into_iter().for_each(|t| t.join().unwrap());
}

#[test]
fn attachments_of_any_length_arrive_intact_and_aligned() {
    let ends = ends(2, &LinkSettings::default());
    let sizes = [0usize, 1, 7, 4096, 4097, 100_003, 5_000_000];
    let attachments: Vec<Buffer> = sizes
        .iter()
        .map(|&n| Buffer::from_slice(&(0..n).map(|i| (i * 7 % 251) as u8).collect::<Vec<_>>()))
        .collect();
    let frame = Frame { body: vec![9; 300].into(), attachments };
    for class in [Class::Bulk, Class::Small, Class::Control] {
        ends[0].fabric.send(NodeId(1), class, frame.clone());
        let (from, got_class, got) = ends[1].frame();
        assert_eq!((from, got_class), (NodeId(0), class));
        assert!(got == frame, "a frame changed on its way");
        assert!(got.attachments.iter().all(|a| (a.bytes().as_ptr() as usize).is_multiple_of(16)));
    }
}

#[test]
fn bulk_does_not_hold_up_what_is_small() {
    let ends = ends(2, &LinkSettings::default());
    ends[0].fabric.send(NodeId(1), Class::Small, small(0));
    ends[1].frame();
    let bulk = Frame { body: bytes::Bytes::new(), attachments: vec![Buffer::zeroed(256 << 20)] };
    ends[0].fabric.send(NodeId(1), Class::Bulk, bulk);
    ends[0].fabric.send(NodeId(1), Class::Small, small(1));
    assert_eq!(ends[1].frame().1, Class::Small);
    assert_eq!(ends[1].frame().1, Class::Bulk);
}

#[test]
fn a_backlog_holds_the_sender_back_and_lets_go() {
    let ends = ends(2, &LinkSettings { backlog_limit_bytes: 10, ..LinkSettings::default() });
    // The backlog is there before anything is sent: a reader that already asks for more would take one chunk.
    ends[1].backlog.store(11, Ordering::SeqCst);
    ends[0].fabric.send(NodeId(1), Class::Small, small(2));
    ends[0].fabric.send(NodeId(1), Class::Control, small(3));
    assert_eq!(ends[1].frame().1, Class::Control);
    assert!(matches!(
        ends[1].events.recv_timeout(Duration::from_millis(200)),
        Err(RecvTimeoutError::Timeout)
    ));
    ends[1].backlog.store(0, Ordering::SeqCst);
    assert_eq!(number(&ends[1].frame().2), 2);
}

#[test]
fn both_may_dial_at_once() {
    for _ in 0..10 {
        let ends = ends(2, &LinkSettings::default());
        ends[0].fabric.send(NodeId(1), Class::Small, small(1));
        ends[1].fabric.send(NodeId(0), Class::Small, small(2));
        assert_eq!(number(&ends[1].frame().2), 1);
        assert_eq!(number(&ends[0].frame().2), 2);
        for n in 3..50 {
            ends[0].fabric.send(NodeId(1), Class::Small, small(n));
            assert_eq!(number(&ends[1].frame().2), n);
        }
    }
}

#[test]
fn a_peer_that_vanishes_is_reported_once_and_one_that_closes_is_not() {
    let settings = LinkSettings { idle_timeout: Duration::from_millis(600), ..LinkSettings::default() };
    let settings = LinkSettings { keep_alive: Duration::from_millis(100), ..settings };
    let mut ends = ends(3, &settings);
    for to in [1, 2] {
        ends[0].fabric.send(NodeId(to), Class::Small, small(0));
        ends[usize::from(to)].frame();
    }
    // Dropping the runtime without closing is what a killed process looks like from outside.
    drop(ends.remove(1));
    let reason = ends[0].lost(NodeId(1));
    assert!(reason.contains("nothing was heard"), "{reason}");
    assert!(matches!(
        ends[0].events.recv_timeout(Duration::from_millis(900)),
        Err(RecvTimeoutError::Timeout)
    ));
}

#[test]
fn strangers_get_nowhere_and_disturb_nothing() {
    let settings = LinkSettings { handshake_limit: Duration::from_millis(500), ..LinkSettings::default() };
    let ends = ends(2, &settings);
    let target = ends[1].fabric.local_addr();
    let garbage = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let foreign = RunAuthority::new("test").unwrap().issue(NodeId(0)).unwrap();
    let stranger = End::new(&foreign, 0, settings);
    stranger.fabric.set_addresses(vec![None, Some(target)]);
    stranger.fabric.send(NodeId(1), Class::Small, small(666));
    let started = Instant::now();
    for n in 0..2_000u64 {
        let noise: Vec<u8> = (0..(n % 1400)).map(|i| (n.wrapping_mul(31) ^ (i * 7)) as u8).collect();
        garbage.send_to(&noise, target).unwrap();
        if n % 20 == 0 {
            ends[0].fabric.send(NodeId(1), Class::Small, small(n));
            assert_eq!(number(&ends[1].frame().2), n, "only the run's own frames arrive");
        }
    }
    assert!(matches!(stranger.next(), Event::Lost(NodeId(1), _)), "a wrong certificate is refused");
    assert!(started.elapsed() < LIMIT);
    until("the refused handshake is counted", || ends[1].fabric.strangers() > 0);
}

#[test]
fn a_frame_over_the_limit_is_refused_at_home_and_abroad_by_name() {
    let over = || Frame { body: vec![0; 101].into(), attachments: vec![] };
    let frames = FrameLimits { body_bytes: 100, ..FrameLimits::default() };
    let strict = LinkSettings { frames, ..LinkSettings::default() };
    let home = ends(2, &strict);
    home[0].fabric.send(NodeId(1), Class::Small, over());
    let reason = home[0].lost(NodeId(1));
    assert!(reason.contains("node 0 cannot send to node 1: the body of a message has 101 bytes"), "{reason}");

    let authority = RunAuthority::new("test").unwrap();
    let issue = |n| authority.issue(NodeId(n)).unwrap();
    let (lax, strict) = (End::new(&issue(0), 0, LinkSettings::default()), End::new(&issue(1), 1, strict));
    lax.fabric.set_addresses(vec![None, Some(strict.fabric.local_addr())]);
    lax.fabric.send(NodeId(1), Class::Small, over());
    let reason = strict.lost(NodeId(0));
    assert!(reason.contains("node 0 sent what it must not: the body of a message has 101 bytes"), "{reason}");
    let reason = lax.lost(NodeId(1));
    assert!(reason.contains("it gave the link up: node 0 sent what it must not"), "{reason}");
}

#[test]
fn producing_faster_than_the_other_takes_is_named() {
    let ends = ends(2, &LinkSettings { send_limit_bytes: 1 << 20, ..LinkSettings::default() });
    let bulk = Frame { body: bytes::Bytes::new(), attachments: vec![Buffer::zeroed(2 << 20)] };
    ends[0].fabric.send(NodeId(1), Class::Bulk, bulk);
    let reason = ends[0].lost(NodeId(1));
    assert!(reason.contains("node 0 produces faster than node 1 takes: 2.0 MiB wait"), "{reason}");
    until("nothing is kept for a lost peer", || ends[0].fabric.stats(NodeId(1)).queued_bytes == 0);
}
