//! Quinn by itself, made of the same parts as a fabric's links: what the fabric puts on top is measured against it.
//!
//! One stream each way. Whoever writes hands over its bytes without a copy, from within the network thread; whoever
//! reads gets no messages, only bytes, and knows how many there are.

use bytes::Bytes;
use quinn::{Connection, Endpoint, RecvStream, SendStream, TokioRuntime};
use runtime::buffer::Buffer;
use runtime::ids::NodeId;
use runtime::transport::quic::LinkSettings;
use runtime::transport::tls::RunAuthority;
use std::sync::Arc;
use std::sync::mpsc::{Receiver as Events, Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Most chunks taken from a stream at once, as the fabric does.
const CHUNKS: usize = 64;

/// What a reader does with what it reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Nothing.
    Drop,
    /// Brings the bytes of each message together, as somebody needs them who computes with them.
    Copy,
}

enum Order {
    Write(Bytes, usize),
    Read(usize, usize, Reading),
    /// Writes first, then reads, so often.
    Ask(Bytes, usize),
    /// Reads first and writes back what it has read.
    Answer(usize, usize),
}

/// Two connected endpoints, each with its own thread.
pub(crate) struct Bare {
    orders: [UnboundedSender<Order>; 2],
    done: [Events<Vec<Duration>>; 2],
}

impl Bare {
    pub(crate) fn pair(settings: &LinkSettings) -> Self {
        let authority = RunAuthority::new("bare").expect("randomness");
        let (address, addresses) = channel();
        let ends = [1, 0].map(|me| {
            let identity = authority.issue(NodeId(me)).expect("randomness");
            let (order, orders) = unbounded_channel();
            let (done, results) = channel();
            let name = identity.name_of(NodeId(1 - me));
            let listen = "127.0.0.1:0".parse().expect("an address");
            let (settings, address) = (settings.clone(), address.clone());
            let to = (me == 0).then(|| addresses.recv().expect("the other end's"));
            let thread = std::thread::Builder::new().name(format!("bare {me}"));
            let run = move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime").block_on(async {
                    let parts = settings.quinn(listen, &identity).expect("a socket");
                    let (server, runtime) = (Some(parts.server), Arc::new(TokioRuntime));
                    let endpoint =
                        Endpoint::new(parts.endpoint, server, parts.socket, runtime).expect("an endpoint");
                    let connection = match to {
                        None => {
                            address.send(endpoint.local_addr().expect("one")).expect("somebody waits");
                            endpoint.accept().await.expect("a dial").await
                        }
                        Some(to) => endpoint.connect_with(parts.client, to, &name).expect("sound").await,
                    };
                    obey(connection.expect("a connection"), orders, done).await;
                });
            };
            thread.spawn(run).expect("a thread");
            (order, results)
        });
        let [(order_1, done_1), (order_0, done_0)] = ends;
        Self { orders: [order_0, order_1], done: [done_0, done_1] }
    }

    /// Seconds from handing over the first of `count` messages to having read the last.
    pub(crate) fn one_way(&self, len: usize, count: usize, reading: Reading) -> f64 {
        let message = message(len);
        let start = Instant::now();
        self.order(1, Order::Read(len, count, reading));
        self.order(0, Order::Write(message, count));
        self.wait(1);
        let taken = start.elapsed().as_secs_f64();
        self.wait(0);
        taken
    }

    /// Round trips of messages that are brought together at both ends, as the network thread sees them.
    pub(crate) fn round_trips(&self, len: usize, count: usize) -> Vec<Duration> {
        self.order(1, Order::Answer(len, count));
        self.order(0, Order::Ask(message(len), count));
        self.wait(1);
        self.wait(0)
    }

    /// The same for a thread that computes, and has the network thread send and tell it of the answer.
    pub(crate) fn round_trips_from_outside(&self, len: usize, count: usize) -> Vec<Duration> {
        let message = message(len);
        self.order(1, Order::Answer(len, count));
        let trip = |_| {
            let start = Instant::now();
            self.order(0, Order::Ask(message.clone(), 1));
            self.wait(0);
            start.elapsed()
        };
        let times = (0..count).map(trip).collect();
        self.wait(1);
        times
    }

    fn order(&self, end: usize, order: Order) {
        self.orders[end].send(order).expect("its thread runs");
    }

    fn wait(&self, end: usize) -> Vec<Duration> {
        self.done[end].recv_timeout(super::WAIT).expect("an end")
    }
}

/// In the same kind of memory as the fabric's: huge pages, if it is long.
fn message(len: usize) -> Bytes {
    Bytes::from_owner(Buffer::zeroed(len))
}

async fn obey(connection: Connection, mut orders: UnboundedReceiver<Order>, done: Sender<Vec<Duration>>) {
    let mut out = connection.open_uni().await.expect("a stream");
    // The other end hears of a stream with its first byte.
    out.write_all(&[0]).await.expect("a connection");
    let stream = connection.accept_uni().await.expect("a stream");
    let mut incoming = Incoming { stream, chunks: [const { Bytes::new() }; CHUNKS], at: 0, count: 0 };
    incoming.skip(1).await;
    while let Some(order) = orders.recv().await {
        let mut times = Vec::new();
        match order {
            Order::Write(message, count) => {
                for _ in 0..count {
                    write(&mut out, message.clone()).await;
                }
            }
            Order::Read(len, count, Reading::Drop) => incoming.skip(len * count).await,
            Order::Read(len, count, Reading::Copy) => {
                for _ in 0..count {
                    drop(incoming.message(len).await);
                }
            }
            Order::Ask(message, count) => {
                for _ in 0..count {
                    let start = Instant::now();
                    write(&mut out, message.clone()).await;
                    drop(incoming.message(message.len()).await);
                    times.push(start.elapsed());
                }
            }
            Order::Answer(len, count) => {
                for _ in 0..count {
                    let message = incoming.message(len).await;
                    write(&mut out, message.into()).await;
                }
            }
        }
        done.send(times).expect("somebody waits");
    }
}

async fn write(stream: &mut SendStream, message: Bytes) {
    stream.write_chunk(message).await.expect("a connection");
}

struct Incoming {
    stream: RecvStream,
    /// Of what was read last, those from `at` on are not taken.
    chunks: [Bytes; CHUNKS],
    at: usize,
    count: usize,
}

impl Incoming {
    async fn skip(&mut self, len: usize) {
        self.take(len, drop).await;
    }

    async fn message(&mut self, len: usize) -> Vec<u8> {
        let mut message = Vec::with_capacity(len);
        self.take(len, |part| message.extend_from_slice(&part)).await;
        message
    }

    async fn take(&mut self, mut len: usize, mut take: impl FnMut(Bytes)) {
        while len > 0 {
            if self.at == self.count {
                let count = self.stream.read_chunks(&mut self.chunks).await.expect("a connection");
                (self.at, self.count) = (0, count.expect("more"));
            }
            let chunk = &mut self.chunks[self.at];
            let part = chunk.split_to(chunk.len().min(len));
            len -= part.len();
            take(part);
            if chunk.is_empty() {
                self.at += 1;
            }
        }
    }
}
