//! What every fabric promises, tested with each of them, and the nodes that tests of links are made of.
//! Every wait has a deadline.

use super::loopback::LoopbackNet;
use super::quic::{LinkSettings, QuicFabric};
use super::tls::{NodeIdentity, RunAuthority};
use crate::buffer::Buffer;
use crate::frame::{Class, Fabric, Frame, Receiver};
use crate::ids::NodeId;
use std::any::Any;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver as Events, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

pub(super) const LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) enum Event {
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

/// What a node hears.
pub(super) struct Hearing {
    events: Events<Event>,
    pub(super) backlog: Arc<AtomicU64>,
}

impl Hearing {
    fn new() -> (Arc<Ear>, Rc<Self>) {
        let (sender, events) = channel();
        let backlog = Arc::new(AtomicU64::new(0));
        let ear = Arc::new(Ear { events: sender, backlog: Arc::clone(&backlog) });
        (ear, Rc::new(Self { events, backlog }))
    }

    pub(super) fn next(&self) -> Event {
        self.events.recv_timeout(LIMIT).expect("an event within the deadline")
    }

    pub(super) fn frame(&self) -> (NodeId, Class, Frame) {
        match self.next() {
            Event::Frame(from, class, frame) => (from, class, frame),
            Event::Lost(peer, reason) => panic!("lost {peer:?}: {reason}"),
        }
    }

    pub(super) fn lost(&self, peer: NodeId) -> String {
        match self.next() {
            Event::Lost(lost, reason) if lost == peer => reason,
            other => panic!("instead of the loss of {peer:?}: {other:?}"),
        }
    }

    /// Whether nothing is heard for a while: as long as it would take to hear what must not come.
    pub(super) fn is_quiet(&self, span: Duration) -> bool {
        matches!(self.events.recv_timeout(span), Err(RecvTimeoutError::Timeout))
    }
}

/// A node on QUIC with a network thread of its own.
pub(super) struct End {
    pub(super) fabric: Arc<QuicFabric>,
    hears: Rc<Hearing>,
    pub(super) runtime: tokio::runtime::Handle,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Deref for End {
    type Target = Hearing;
    fn deref(&self) -> &Hearing {
        &self.hears
    }
}

impl End {
    pub(super) fn new(identity: &NodeIdentity, me: u16, settings: LinkSettings) -> Self {
        let (ready, made) = channel();
        let (ear, hears) = Hearing::new();
        let stop = Arc::new(Notify::new());
        let (stopped, identity) = (Arc::clone(&stop), identity.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let address = "127.0.0.1:0".parse().unwrap();
                let fabric = QuicFabric::bind(address, &identity, NodeId(me), ear, settings).unwrap();
                ready.send((Arc::clone(&fabric), tokio::runtime::Handle::current())).unwrap();
                stopped.notified().await;
            });
        });
        let (fabric, runtime) = made.recv_timeout(LIMIT).unwrap();
        Self { fabric, hears, runtime, stop, thread: Some(thread) }
    }
}

impl Drop for End {
    /// Without closing: what a killed process looks like from outside.
    fn drop(&mut self) {
        self.stop.notify_one();
        self.thread.take().map(JoinHandle::join);
    }
}

/// Nodes on QUIC that know each other's addresses.
pub(super) fn ends(count: u16, settings: &LinkSettings) -> Vec<End> {
    let authority = RunAuthority::new("test").unwrap();
    let ends: Vec<End> =
        (0..count).map(|n| End::new(&authority.issue(NodeId(n)).unwrap(), n, settings.clone())).collect();
    let addresses: Vec<_> = ends.iter().map(|e| Some(e.fabric.local_addr())).collect();
    ends.iter().for_each(|e| e.fabric.set_addresses(addresses.clone()));
    ends
}

/// Nodes on QUIC that share memory, all with all, before anything is sent.
pub(super) fn sharing(count: u16, settings: &LinkSettings) -> Vec<End> {
    let ends = ends(count, &LinkSettings { shares_memory: true, ..settings.clone() });
    share(&ends);
    ends
}

fn share(ends: &[End]) {
    let pairs = || (0..ends.len()).flat_map(|from| (0..ends.len()).map(move |to| (from, to)));
    let id = |at: usize| NodeId(u16::try_from(at).unwrap());
    for (from, to) in pairs().filter(|(from, to)| from < to) {
        let fabric = Arc::clone(&ends[from].fabric);
        let (connected, up) = channel();
        ends[from].runtime.spawn(async move { connected.send(fabric.connect(id(to)).await) });
        up.recv_timeout(LIMIT).unwrap().unwrap();
    }
    until("all share memory", || {
        pairs().filter(|(from, to)| from != to).all(|(from, to)| ends[from].fabric.stats(id(to)).is_shared)
    });
}

pub(super) fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < LIMIT, "not within the deadline: {what}");
        std::thread::yield_now();
    }
}

pub(super) fn small(n: u64) -> Frame {
    Frame { body: n.to_le_bytes().to_vec().into(), attachments: Vec::new() }
}

pub(super) fn bulk(len_bytes: usize) -> Frame {
    Frame { body: bytes::Bytes::new(), attachments: vec![Buffer::zeroed(len_bytes)] }
}

pub(super) fn number(frame: &Frame) -> u64 {
    u64::from_le_bytes(frame.body[..8].try_into().unwrap())
}

/// A node on any fabric.
struct Node {
    fabric: Arc<dyn Fabric>,
    hears: Rc<Hearing>,
    _kept: Box<dyn Any>,
}

fn nodes_on_each_fabric(count: u16) -> [Vec<Node>; 4] {
    let by_link = |settings: &LinkSettings, are_up: bool| {
        let ends = ends(count, settings);
        if are_up {
            share(&ends);
        }
        ends.into_iter()
            .map(|end| Node {
                fabric: Arc::clone(&end.fabric) as _,
                hears: Rc::clone(&end.hears),
                _kept: Box::new(end),
            })
            .collect()
    };
    let sharing = LinkSettings { shares_memory: true, ..LinkSettings::default() };
    let net = LoopbackNet::new();
    let inside = (0..count).map(NodeId).map(|id| {
        let (ear, hears) = Hearing::new();
        let receiver: Arc<dyn Receiver> = ear;
        net.register(id, &receiver);
        Node { fabric: net.fabric(id), hears, _kept: Box::new(receiver) }
    });
    let inside = inside.collect();
    // The third begins by QUIC, and goes over to memory on the way.
    [by_link(&LinkSettings::default(), false), by_link(&sharing, true), by_link(&sharing, false), inside]
}

#[test]
fn frames_of_a_class_arrive_in_order_from_every_thread() {
    let class_of = |n: u64| if n.is_multiple_of(3) { Class::Control } else { Class::Small };
    for nodes in nodes_on_each_fabric(3) {
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                let fabric = Arc::clone(&nodes[1].fabric);
                std::thread::spawn(move || {
                    for n in 0..5_000 {
                        fabric.send(NodeId(2), class_of(n), small(thread << 32 | n)).unwrap();
                    }
                })
            })
            .collect();
        let mut last = [[None; 2]; 4];
        for _ in 0..4 * 5_000 {
            let (from, class, frame) = nodes[2].hears.frame();
            let (thread, n) = (usize::try_from(number(&frame) >> 32).unwrap(), number(&frame) & 0xffff_ffff);
            assert_eq!((from, class), (NodeId(1), class_of(n)));
            let last = &mut last[thread][usize::from(class == Class::Small)];
            let expected = (last.map_or(0, |last| last + 1)..).find(|n| class_of(*n) == class);
            assert_eq!(Some(n), expected);
            *last = Some(n);
        }
        threads.into_iter().for_each(|t| t.join().unwrap());
    }
}

#[test]
fn a_hundred_thousand_small_frames_arrive_once_and_in_order() {
    for nodes in nodes_on_each_fabric(2) {
        (0..100_000).for_each(|n| nodes[0].fabric.send(NodeId(1), Class::Small, small(n)).unwrap());
        for n in 0..100_000 {
            assert_eq!(number(&nodes[1].hears.frame().2), n);
        }
        assert!(nodes[1].hears.is_quiet(Duration::from_millis(50)));
    }
}

#[test]
fn attachments_of_any_length_arrive_intact_and_aligned() {
    let sizes = [0usize, 1, 7, 4096, 4097, 100_003, 5_000_000];
    let attachments: Vec<Buffer> = sizes
        .iter()
        .map(|&n| Buffer::from_slice(&(0..n).map(|i| (i * 7 % 251) as u8).collect::<Vec<_>>()))
        .collect();
    let frame = Frame { body: vec![9; 300].into(), attachments };
    for nodes in nodes_on_each_fabric(2) {
        for class in [Class::Large, Class::Small, Class::Control] {
            nodes[0].fabric.send(NodeId(1), class, frame.clone()).unwrap();
            let (from, got_class, got) = nodes[1].hears.frame();
            assert_eq!((from, got_class), (NodeId(0), class));
            assert!(got == frame, "a frame changed on its way");
            assert!(got.attachments.iter().all(|a| (a.bytes().as_ptr() as usize).is_multiple_of(16)));
        }
    }
}

#[test]
fn everybody_may_talk_to_everybody_at_once() {
    for nodes in nodes_on_each_fabric(4) {
        let ids = || (0..4).map(NodeId);
        for n in 0..100 {
            for (me, node) in nodes.iter().enumerate() {
                for to in ids().filter(|to| to.as_usize() != me) {
                    node.fabric.send(to, Class::Small, small(n)).unwrap();
                    node.fabric.send(to, Class::Large, bulk(20_000)).unwrap();
                }
            }
        }
        for node in &nodes {
            let mut next = [0; 4];
            for _ in 0..3 * 200 {
                let (from, class, frame) = node.hears.frame();
                if class == Class::Small {
                    assert_eq!(number(&frame), next[from.as_usize()]);
                    next[from.as_usize()] += 1;
                }
            }
        }
    }
}
