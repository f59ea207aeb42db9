//! Hosts in this process, each at a line with a rate and a queue, as at the socket of a narrow modem: QUIC itself runs
//! over it, in virtual time.

use super::*;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};

/// Bytes of headers below UDP's payload on Ethernet.
const HEADERS: usize = 42;
/// Longest payload that Ethernet takes.
const PAYLOAD_MAX: usize = 1472;

#[derive(Debug)]
pub(super) struct Datagram {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
    /// When it came to the line that it waits for.
    came: Instant,
}

/// What all lines have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// One way, between the lines.
    pub(super) delay: Duration,
    /// Datagrams lost of a thousand, queue or not.
    pub(super) lost_per_mille: u64,
    /// The queue before a line holds so much, or 50 ms if that is more.
    pub(super) queue_min_bytes: f64,
}

/// One direction of a line: what does not fit into its queue is lost.
#[derive(Debug)]
struct Way {
    into: UnboundedSender<Datagram>,
    queue_min_bytes: f64,
    state: Mutex<WayState>,
}

#[derive(Debug)]
struct WayState {
    bytes_per_s: f64,
    queue_bytes: usize,
    queued: usize,
    lost: u64,
}

impl Way {
    fn new(bits_per_s: f64, queue_min_bytes: f64) -> (Arc<Self>, UnboundedReceiver<Datagram>) {
        let (into, out) = unbounded_channel();
        let state = WayState { bytes_per_s: 0.0, queue_bytes: 0, queued: 0, lost: 0 };
        let way = Arc::new(Self { into, queue_min_bytes, state: Mutex::new(state) });
        way.set(bits_per_s);
        (way, out)
    }

    /// The queue holds 50 ms, and so much at least.
    fn set(&self, bits_per_s: f64) {
        let mut state = self.state.lock().unwrap();
        state.bytes_per_s = bits_per_s / 8.0;
        state.queue_bytes = (state.bytes_per_s * 0.05).max(self.queue_min_bytes) as usize;
    }

    fn take(&self, mut datagram: Datagram) {
        let mut state = self.state.lock().unwrap();
        let length = datagram.bytes.len() + HEADERS;
        if state.queued + length > state.queue_bytes {
            state.lost += 1;
        } else {
            state.queued += length;
            datagram.came = Instant::now();
            let _ = self.into.send(datagram);
        }
    }

    /// Lets out what was taken, at the line's rate.
    async fn carry(self: Arc<Self>, mut out: UnboundedReceiver<Datagram>, next: impl Fn(Datagram)) {
        let mut free_at = Instant::now();
        while let Some(datagram) = out.recv().await {
            let length = datagram.bytes.len() + HEADERS;
            let rate = self.state.lock().unwrap().bytes_per_s;
            free_at = free_at.max(datagram.came) + Duration::from_secs_f64(length as f64 / rate);
            sleep_until(free_at).await;
            self.state.lock().unwrap().queued -= length;
            next(datagram);
        }
    }
}

/// A host's socket.
#[derive(Debug)]
pub(super) struct Host {
    address: SocketAddr,
    out: Arc<Way>,
    inbox: Mutex<Inbox>,
    /// How late the next datagram comes to the line.
    late: Mutex<Option<Duration>>,
}

#[derive(Debug, Default)]
struct Inbox {
    arrived: VecDeque<Datagram>,
    waker: Option<Waker>,
}

/// Hosts that reach each other over a switch, each by a line of its own.
pub(super) struct Lines {
    pub(super) hosts: Vec<Arc<Host>>,
    ways: Vec<[Arc<Way>; 2]>,
}

impl Lines {
    /// Must be called inside the runtime.
    pub(super) fn new(rates: &[f64], path: Path) -> Self {
        let (mut hosts, mut ways, mut outs) = (Vec::new(), Vec::new(), Vec::new());
        for (n, rate) in (1u8..).zip(rates) {
            let (there, out) = Way::new(*rate, path.queue_min_bytes);
            let (back, arriving) = Way::new(*rate, path.queue_min_bytes);
            let address = SocketAddr::from(([10, 0, 0, n], 4000));
            let host = Arc::new(Host::new(address, &there));
            let end = Arc::clone(&host);
            tokio::spawn(Arc::clone(&back).carry(arriving, move |datagram| end.arrive(datagram)));
            hosts.push(host);
            outs.push(out);
            ways.push([there, back]);
        }
        for (way, out) in ways.iter().zip(outs) {
            let backs: Vec<_> =
                hosts.iter().zip(&ways).map(|(h, w)| (h.address, Arc::clone(&w[1]))).collect();
            let random = Mutex::new(Random::new(7));
            let (late, mut due) = unbounded_channel::<(Instant, Datagram)>();
            let switch = move |datagram: Datagram| {
                if random.lock().unwrap().below(1000) >= path.lost_per_mille {
                    let _ = late.send((Instant::now() + path.delay, datagram));
                }
            };
            tokio::spawn(async move {
                while let Some((at, datagram)) = due.recv().await {
                    sleep_until(at).await;
                    if let Some((_, back)) = backs.iter().find(|(address, _)| *address == datagram.to) {
                        back.take(datagram);
                    }
                }
            });
            tokio::spawn(Arc::clone(&way[0]).carry(out, switch));
        }
        Self { hosts, ways }
    }

    pub(super) fn set(&self, host: usize, bits_per_s: f64) {
        self.ways[host].iter().for_each(|way| way.set(bits_per_s));
    }

    /// Datagrams that found no room in a queue.
    pub(super) fn lost(&self) -> u64 {
        self.ways.iter().flatten().map(|way| way.state.lock().unwrap().lost).sum()
    }
}

impl Host {
    fn new(address: SocketAddr, out: &Arc<Way>) -> Self {
        Self { address, out: Arc::clone(out), inbox: Mutex::default(), late: Mutex::default() }
    }

    /// What quinn is given for links of this host that behave so.
    pub(super) fn parts(&self, settings: &LinkSettings, identity: &NodeIdentity) -> QuinnParts {
        let mut parts = settings.quinn("127.0.0.1:0".parse().unwrap(), identity).unwrap();
        // Datagrams as long as a loopback device takes do not pass these lines: a link that begins with them is first
        // silent until QUIC has found that out, for seconds at times.
        let far = settings.transport(self.address.ip());
        parts.client.transport_config(Arc::clone(&far));
        parts.server.transport_config(far);
        parts
    }

    /// Lets later ones overtake the next datagram from here.
    pub(super) fn hold_next(&self, time: Duration) {
        *self.late.lock().unwrap() = Some(time);
    }

    /// Gives a datagram to the line.
    fn leave(&self, datagram: Datagram) {
        let Some(time) = self.late.lock().unwrap().take() else { return self.out.take(datagram) };
        let out = Arc::clone(&self.out);
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            out.take(datagram);
        });
    }

    fn arrive(&self, datagram: Datagram) {
        let mut inbox = self.inbox.lock().unwrap();
        inbox.arrived.push_back(datagram);
        if let Some(waker) = inbox.waker.take() {
            waker.wake();
        }
    }
}

/// Nothing has to be waited for: what does not fit is lost.
#[derive(Debug)]
struct Always;

impl UdpPoller for Always {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncUdpSocket for Host {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Always)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let segment = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        for bytes in transmit.contents.chunks(segment).filter(|bytes| bytes.len() <= PAYLOAD_MAX) {
            let (from, to) = (self.address, transmit.destination);
            self.leave(Datagram { from, to, bytes: bytes.to_vec(), came: Instant::now() });
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut inbox = self.inbox.lock().unwrap();
        let Some(datagram) = inbox.arrived.pop_front() else {
            inbox.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let len = datagram.bytes.len();
        bufs[0][..len].copy_from_slice(&datagram.bytes);
        meta[0] = RecvMeta { addr: datagram.from, len, stride: len, ecn: None, dst_ip: None };
        Poll::Ready(Ok(1))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    fn max_transmit_segments(&self) -> usize {
        64
    }

    fn may_fragment(&self) -> bool {
        false
    }
}
