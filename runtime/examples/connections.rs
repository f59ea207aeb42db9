//! What many connections cost a node, as the launcher has one to each: `connections [COUNT]`, 500 by default.
//!
//! One node dials so many others, which share a second thread of this process.

use nix::time::{ClockId, clock_gettime};
use runtime::frame::{Class, Fabric, Frame, Receiver};
use runtime::ids::NodeId;
use runtime::transport::quic::{LinkSettings, QuicFabric};
use runtime::transport::tls::{NodeIdentity, RunAuthority};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle};

/// How long idle connections are watched.
const WATCH: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Ear(AtomicUsize);

impl Receiver for Ear {
    fn receive(&self, _: NodeId, _: Class, _: Frame) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn backlog_bytes(&self) -> u64 {
        0
    }

    fn link_lost(&self, peer: NodeId, reason: String) {
        eprintln!("{peer:?} was lost: {reason}");
    }
}

/// Memory of this process without pages of files, KiB.
fn memory_kib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("RssAnon"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0.0)
}

/// A thread with a runtime that lasts as long as the process.
fn thread() -> Result<Handle, Box<dyn Error>> {
    let (ready, made) = channel();
    std::thread::spawn(move || {
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
        let _ = ready.send(runtime.handle().clone());
        runtime.block_on(std::future::pending::<()>());
    });
    Ok(made.recv()?)
}

/// Runs something on a thread's runtime.
fn on<T: Send + 'static>(
    thread: &Handle,
    action: impl Future<Output = T> + Send + 'static,
) -> Result<T, Box<dyn Error>> {
    let (done, result) = channel();
    thread.spawn(async move { done.send(action.await) });
    Ok(result.recv()?)
}

/// Time that a thread has computed.
fn busy(thread: &Handle) -> Result<Duration, Box<dyn Error>> {
    let now = async { clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from) };
    Ok(on(thread, now)??)
}

fn bind(
    identity: &NodeIdentity,
    me: u16,
    ear: &Arc<Ear>,
    is_dialled: bool,
) -> Result<Arc<QuicFabric>, runtime::transport::quic::LinkError> {
    let settings = LinkSettings { is_dialled, ..LinkSettings::default() };
    let receiver: Arc<dyn Receiver> = Arc::clone(ear) as _;
    QuicFabric::bind(([127, 0, 0, 1], 0).into(), identity, NodeId(me), receiver, settings)
}

fn main() -> Result<(), Box<dyn Error>> {
    let count: u16 = std::env::args().nth(1).map_or(Ok(500), |word| word.parse())?;
    let each = |total: f64| total / f64::from(count);
    let (start, authority) = (Instant::now(), RunAuthority::new("connections")?);
    let identities = (0..=count).map(|n| authority.issue(NodeId(n))).collect::<Result<Vec<_>, _>>()?;
    println!("certificate: {:.0} us each", each(start.elapsed().as_secs_f64() * 1e6));
    let (hub_thread, thread, ear) = (thread()?, thread()?, Arc::new(Ear::default()));
    let (identity, heard) = (identities[0].clone(), Arc::clone(&ear));
    let hub = on(&hub_thread, async move { bind(&identity, 0, &heard, false) })??;
    let heard = Arc::clone(&ear);
    let bind_all = async move {
        let others = (1..).zip(&identities[1..]).map(|(n, identity)| bind(identity, n, &heard, true));
        others.collect::<Result<Vec<_>, _>>()
    };
    let others = on(&thread, bind_all)??;
    hub.set_addresses(std::iter::once(None).chain(others.iter().map(|o| Some(o.local_addr()))).collect());

    let (memory, before, start) = (memory_kib(), busy(&hub_thread)?, Instant::now());
    let word = || Frame { body: vec![7; 64].into(), attachments: Vec::new() };
    (1..=count).try_for_each(|n| hub.send(NodeId(n), Class::Control, word()))?;
    others.iter().try_for_each(|other| other.send(NodeId(0), Class::Control, word()))?;
    while ear.0.load(Ordering::Relaxed) < 2 * usize::from(count) && start.elapsed().as_secs() < 30 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let up = hub.total_stats().connections;
    let cost = each((busy(&hub_thread)? - before).as_secs_f64() * 1e6);
    println!(
        "{up} of {count} up after {:.2} s, {cost:.0} us of the dialling thread each",
        start.elapsed().as_secs_f64()
    );
    println!("memory: {:.0} KiB for each connection and end", each(memory_kib() - memory) / 2.0);

    let before = busy(&hub_thread)?;
    std::thread::sleep(WATCH);
    let cost = each((busy(&hub_thread)? - before).as_secs_f64() / WATCH.as_secs_f64());
    println!("idle: {:.3} % of a core for each connection", cost * 100.0);

    let (before, ticks) = (busy(&hub_thread)?, 50);
    let long = || Frame { body: vec![7; 1000].into(), attachments: Vec::new() };
    for _ in 0..ticks {
        others.iter().try_for_each(|other| other.send(NodeId(0), Class::Control, long()))?;
        std::thread::sleep(Duration::from_millis(100));
    }
    let cost = each((busy(&hub_thread)? - before).as_secs_f64() * 1e6) / f64::from(ticks);
    println!("a frame of 1,000 B from each ten times a second: {cost:.1} us of the dialling thread each");
    Ok(())
}
