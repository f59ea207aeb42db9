//! Frames between processes of one host and one user go through memory that both have mapped.
//!
//! The connection by QUIC comes first. Over it the node with the smaller number tells the other where it waits for it, see
//! `transport::shared`; whatever fails there, frames go on by QUIC. Once both have the memory, each lane
//! sends through it what is pushed from then on, and says first how many frames of its class it has given to QUIC: the
//! other end delivers those before.
//!
//! Idle PEs look for what has come, each as often as it can; one at a time reads from a peer. While no PE looks, the task
//! [`attend`] does it: every millisecond at first, then it says in the memory that it sleeps until the bell rings, a socket
//! that the other end writes to.

use super::QuicFabric;
use super::accept::is_behind;
use super::peer::Peer;
use crate::frame::{Class, Frame, FrameLimits};
use crate::ids::NodeId;
use crate::transport::framing::Decoder;
use crate::transport::shared::{
    self, Consumer, Damaged, Event, HandshakeError, Listening, NAME_BYTES, Pair, Producer,
};
use bytes::BytesMut;
use quinn::Connection;
use std::io::Write as _;
use std::net::Shutdown;
use std::os::unix::net::UnixStream as Bell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// The longest offer is a name.
pub(super) const OFFER_BYTES_MAX: usize = NAME_BYTES;
/// Most processes that one shares memory with; what it takes is bounded by that. Others are talked to by QUIC.
const MOST: usize = 64;
/// Label under which TLS derives the key with which both ends prove who they are.
const LABEL: &[u8] = b"metachare shared memory";
const KEY_BYTES: usize = 32;
/// How long an offer waits for the other end.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two looks while PEs look as well, or nothing may be read.
const LOOK: Duration = Duration::from_millis(1);
/// Most bytes that are taken out of a ring at once, and in one look.
const PIECE_BYTES: usize = 64 << 10;
const LOOK_BYTES: usize = 256 << 10;
/// Bytes that are taken at once where the length of what follows is not known: small messages together; of a large one no
/// more than its beginning, because the rest goes straight to its place.
const SMALL_BYTES: usize = 16 << 10;
const BEGINNING_BYTES: usize = 512;
const CLASSES: [Class; 3] = [Class::Control, Class::Small, Class::Large];

/// Those that a node shares memory with. None is ever taken out, so that all threads can read the list at once.
pub(super) struct Neighbours {
    all: Box<[OnceLock<Neighbour>; MOST]>,
    count: AtomicUsize,
    adding: Mutex<()>,
    /// Those that have been added, or may be.
    places_taken: AtomicUsize,
    /// PEs that look.
    looking: AtomicUsize,
    rest: Arc<Rest>,
}

/// Whether somebody has to see to something.
#[derive(Default)]
struct Rest {
    /// Nobody looks, and the others have been told.
    is_asleep: AtomicBool,
    /// Something was put in that others have not been told of.
    has_untold: Arc<AtomicBool>,
    /// Wakes the task that attends to all.
    call: Notify,
}

impl Rest {
    fn call(&self) {
        self.call.notify_one();
    }

    /// Calls if nobody comes by himself within a millisecond.
    fn call_if_asleep(&self) {
        if self.is_asleep.load(Ordering::SeqCst) {
            self.call();
        }
    }
}

struct Neighbour {
    peer: Arc<Peer>,
    near: Arc<Near>,
}

/// The memory that is shared with a peer.
pub(super) struct Near {
    pair: Pair,
    bell: Bell,
    reader: Mutex<Option<Reader>>,
    /// What has come may not be read yet.
    is_held: AtomicBool,
    is_over: AtomicBool,
    damage: OnceLock<String>,
    rest: Arc<Rest>,
}

struct Reader {
    inflows: [Inflow; 3],
    frames: Vec<Frame>,
}

/// What comes in one class.
struct Inflow {
    ring: Consumer,
    decoder: Decoder,
    /// How many frames of the class come by QUIC before; the first that is read here.
    by_quic: Option<u64>,
}

impl Default for Neighbours {
    fn default() -> Self {
        Self {
            all: Box::new([const { OnceLock::new() }; MOST]),
            count: AtomicUsize::new(0),
            adding: Mutex::default(),
            places_taken: AtomicUsize::new(0),
            looking: AtomicUsize::new(0),
            rest: Arc::default(),
        }
    }
}

impl Neighbours {
    fn iter(&self) -> impl Iterator<Item = &Neighbour> {
        self.all[..self.count.load(Ordering::Acquire)].iter().filter_map(OnceLock::get)
    }

    /// Adds one for which a place was taken.
    fn add(&self, neighbour: Neighbour) {
        let _one = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let count = self.count.load(Ordering::Relaxed);
        let is_added = self.all.get(count).is_some_and(|place| place.set(neighbour).is_ok());
        self.count.store(count + usize::from(is_added), Ordering::Release);
    }

    /// Takes a place for one that is going to be added; false if there are too many.
    fn take_place(&self) -> bool {
        let is_taken = self.places_taken.fetch_add(1, Ordering::Relaxed) < MOST;
        if !is_taken {
            self.give_place_back();
        }
        is_taken
    }

    fn give_place_back(&self) {
        self.places_taken.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn ids(&self) -> Vec<NodeId> {
        self.iter().filter(|one| !one.near.is_over()).map(|one| one.peer.id).collect()
    }

    #[inline]
    pub(super) fn are_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    pub(super) fn begin_looking(&self) {
        self.looking.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn end_looking(&self, sleeps: bool) {
        let is_last = self.looking.fetch_sub(1, Ordering::SeqCst) == 1;
        // Who works again may look again soon; that all PEs do so is noticed within a millisecond.
        if is_last && sleeps && self.are_any() {
            self.rest.call();
        }
    }

    /// Something waits for room: who sleeps has to say that it waits for that, too.
    pub(super) fn lacks_room(&self) {
        self.rest.call_if_asleep();
    }

    pub(super) fn untold(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.rest.has_untold)
    }

    /// Tells all others of what they have not been told of; whether there was anything.
    pub(super) fn tell(&self) -> bool {
        let has_untold = &self.rest.has_untold;
        let is_any = has_untold.load(Ordering::SeqCst) && has_untold.swap(false, Ordering::SeqCst);
        if is_any {
            self.iter().for_each(|one| one.peer.lanes[Class::Small as usize].tell());
        }
        is_any
    }

    /// Tells all others that nobody looks here.
    fn sleeps(&self) {
        self.rest.is_asleep.store(true, Ordering::SeqCst);
        for Neighbour { peer, near } in self.iter() {
            let waits_for_room = peer.lanes.iter().any(|lane| lane.lacks_room());
            near.pair.sleeps_until(if waits_for_room { Event::Room } else { Event::Arrival });
        }
    }

    /// Tells all others that somebody looks here again; false if they know.
    fn wakes(&self) -> bool {
        let was_asleep = self.rest.is_asleep.swap(false, Ordering::SeqCst);
        if was_asleep {
            self.iter().for_each(|one| one.near.pair.looks());
        }
        was_asleep
    }
}

impl Near {
    /// Memory that is used from now on, and the socket that rings for this end.
    fn new(
        pair: Pair,
        stream: UnixStream,
        limits: FrameLimits,
        rest: &Arc<Rest>,
    ) -> std::io::Result<(Self, UnixStream)> {
        let bell = stream.into_std()?;
        let rung = UnixStream::from_std(bell.try_clone()?)?;
        let inflows =
            pair.consumers().map(|ring| Inflow { ring, decoder: Decoder::new(limits), by_quic: None });
        let near = Self {
            pair,
            bell,
            reader: Mutex::new(Some(Reader { inflows, frames: Vec::new() })),
            is_held: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            damage: OnceLock::new(),
            rest: Arc::clone(rest),
        };
        Ok((near, rung))
    }

    /// Something was put in: who sleeps at the other end is woken.
    #[inline]
    pub(super) fn has_put(&self) {
        self.ring_for(Event::Arrival);
    }

    /// Something was put in that the other end is told of later.
    #[inline]
    pub(super) fn has_untold(&self) {
        let has_untold = &self.rest.has_untold;
        if !has_untold.load(Ordering::Relaxed) && !has_untold.swap(true, Ordering::SeqCst) {
            self.rest.call_if_asleep();
        }
    }

    #[inline]
    fn ring_for(&self, event: Event) {
        if self.pair.must_wake(event) {
            // A bell that is full of rings rings already, and one without another end wakes nobody.
            let _ = (&self.bell).write(&[0]);
        }
    }

    /// The link cannot go on; whoever looks next reports it.
    pub(super) fn is_damaged(&self, damaged: Damaged) {
        self.fails(damaged.to_string());
    }

    fn fails(&self, reason: String) {
        // The first reason is the one.
        let _ = self.damage.set(reason);
        self.rest.call();
    }

    #[cfg(test)]
    pub(super) fn damage_memory(&self, random: &mut crate::proto::sim::Random) {
        self.pair.damage(random);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Nothing is sent or read any more.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = self.bell.shutdown(Shutdown::Both);
        self.rest.call();
    }
}

impl Reader {
    /// Reads what has come, the most urgent first; whether there was anything.
    fn read(&mut self, fabric: &QuicFabric, peer: &Peer, near: &Near) -> Result<bool, String> {
        let (mut has_read, mut is_held) = (false, false);
        for (class, inflow) in CLASSES.into_iter().zip(&mut self.inflows) {
            if inflow.ring.count().map_err(|e| e.to_string())? == 0 {
                continue;
            }
            let is_next = inflow.is_next(peer.by_quic[class as usize].load(Ordering::Acquire));
            if !is_next.map_err(|reason| format!("{:?} {reason}", peer.id))?
                || class != Class::Control && is_behind(fabric)
            {
                is_held = true;
                continue;
            }
            let taken = inflow.read(class, near, &mut self.frames);
            has_read |= taken != Ok(0);
            // Frames that came before one that is too long are delivered all the same.
            if !self.frames.is_empty() {
                peer.received.add(self.frames.len(), self.frames.iter().map(Frame::len_bytes).sum());
                fabric.receiver.receive_all(peer.id, class, &mut self.frames);
            }
            taken.map_err(|reason| format!("{:?} {reason}", peer.id))?;
        }
        near.is_held.store(is_held, Ordering::Relaxed);
        Ok(has_read)
    }
}

impl Inflow {
    /// Whether all frames of the class that were sent by QUIC before have come, of which there are `come` so far.
    fn is_next(&mut self, come: u64) -> Result<bool, String> {
        if self.by_quic.is_none() {
            let mut number = [0; 8];
            if self.ring.count().map_err(|e| e.to_string())? < number.len() {
                return Ok(false);
            }
            self.ring.take(&mut number).map_err(|e| e.to_string())?;
            self.by_quic = Some(u64::from_le_bytes(number));
        }
        match self.by_quic {
            Some(sent) if come > sent => {
                Err(format!("said that it sent {sent} messages where {come} have come"))
            }
            sent => Ok(sent == Some(come)),
        }
    }

    /// Takes bytes out of the ring, and puts the frames that they complete into `frames`; how many bytes.
    fn read(&mut self, class: Class, near: &Near, frames: &mut Vec<Frame>) -> Result<usize, String> {
        let Self { ring, decoder, .. } = self;
        let mut all = 0;
        let too_long = |e| format!("sent a message that is too long: {e}");
        let damaged = |e: Damaged| e.to_string();
        while all < LOOK_BYTES {
            let taken = if let Some(space) = decoder.space() {
                let len = space.len().min(PIECE_BYTES);
                let taken = ring.take(&mut space[..len]).map_err(damaged)?;
                decoder.filled(taken, |frame| frames.push(frame)).map_err(too_long)?;
                taken
            } else {
                let least = if class == Class::Large { BEGINNING_BYTES } else { SMALL_BYTES };
                let wanted = decoder.missing_body().clamp(least, PIECE_BYTES);
                let mut chunk = BytesMut::zeroed(ring.count().map_err(damaged)?.min(wanted));
                let taken = ring.take(&mut chunk).map_err(damaged)?;
                decoder.take(chunk.freeze(), |frame| frames.push(frame)).map_err(too_long)?;
                taken
            };
            if taken == 0 {
                break;
            }
            near.ring_for(Event::Room);
            all += taken;
        }
        Ok(all)
    }
}

impl QuicFabric {
    /// Delivers what has come from all neighbours, and puts in what waits for them; whether there was anything.
    pub(super) fn look_near(&self) -> bool {
        let rest = &self.neighbours.rest;
        if rest.is_asleep.load(Ordering::Relaxed) && self.neighbours.wakes() {
            rest.call();
        }
        self.neighbours.tell();
        self.look_at_all()
    }

    fn look_at_all(&self) -> bool {
        let mut has_moved = false;
        for neighbour in self.neighbours.iter() {
            has_moved |= self.look_at(neighbour);
        }
        has_moved
    }

    fn look_at(&self, Neighbour { peer, near }: &Neighbour) -> bool {
        if near.is_over() {
            if let Ok(mut reader) = near.reader.try_lock() {
                *reader = None;
            }
            return false;
        }
        let mut has_moved = false;
        // Another thread that reads reads all.
        if near.pair.has_arrivals()
            && let Ok(mut reader) = near.reader.try_lock()
            && let Some(reader) = &mut *reader
        {
            match reader.read(self, peer, near) {
                Ok(has_read) => has_moved = has_read,
                Err(reason) => near.fails(reason),
            }
        }
        for lane in peer.lanes.iter().filter(|lane| lane.lacks_room()) {
            has_moved |= lane.pump(&peer.queued_bytes);
        }
        if let Some(reason) = near.damage.get() {
            self.lost(peer, reason.clone());
            near.end();
        }
        has_moved
    }

    /// From now on frames to and from `peer` go through memory.
    fn share(self: &Arc<Self>, peer: &Arc<Peer>, pair: Pair, stream: UnixStream) -> std::io::Result<()> {
        let (near, rung) = Near::new(pair, stream, self.settings.frames, &self.neighbours.rest)?;
        let near = Arc::new(near);
        let producers: [Producer; 3] = near.pair.producers();
        // Memory is offered and brought once for each peer.
        let _ = peer.near.set(Arc::clone(&near));
        for (lane, ring) in peer.lanes.iter().zip(producers) {
            lane.go_near(ring, &near);
        }
        if peer.is_lost() {
            near.end();
        }
        self.neighbours.add(Neighbour { peer: Arc::clone(peer), near: Arc::clone(&near) });
        self.runtime.spawn(hear(near, rung));
        self.neighbours.rest.call();
        tracing::info!("messages to and from {:?} go through shared memory", peer.id);
        Ok(())
    }

    /// Waits until the other end has taken all that was sent through memory.
    pub(super) async fn finish_near(&self, peer: &Peer) {
        while !peer.is_lost() && !peer.lanes.iter().all(|lane| lane.is_taken()) {
            self.neighbours.tell();
            self.look_at_all();
            sleep(LOOK).await;
        }
    }
}

/// Offers the other end of a connection to share memory.
pub(super) async fn offer(fabric: Arc<QuicFabric>, peer: Arc<Peer>, connection: Connection) {
    if !begin(&fabric, &peer) {
        return;
    }
    let offered = async {
        let (listening, key) = (Listening::new()?, key(&connection)?);
        let said = async {
            let mut stream = connection.open_uni().await?;
            stream.write_all(&[&[super::NEAR][..], &listening.name()].concat()).await?;
            stream.finish()?;
            Ok::<_, std::io::Error>(())
        };
        said.await?;
        listening.accept(&key).await
    };
    let outcome = match timeout(PATIENCE, offered).await {
        Ok(outcome) => outcome,
        Err(_) => {
            return not_shared(&fabric, &peer, "it is on another host, or of another user, or has none");
        }
    };
    shares(&fabric, &peer, outcome);
}

/// Takes the offer of the other end of a connection to share memory.
pub(super) async fn answer(
    fabric: &Arc<QuicFabric>,
    peer: &Arc<Peer>,
    connection: &Connection,
    name: [u8; NAME_BYTES],
) {
    if !fabric.settings.shares_memory || !begin(fabric, peer) {
        return;
    }
    let outcome = match key(connection) {
        Ok(key) => shared::answer(&name, &key).await,
        Err(error) => Err(error.into()),
    };
    shares(fabric, peer, outcome);
}

/// Whether memory can be shared with a peer: from now on that is tried.
fn begin(fabric: &QuicFabric, peer: &Peer) -> bool {
    let has_place = fabric.neighbours.take_place();
    let may = has_place && peer.begin_near();
    if has_place && !may {
        fabric.neighbours.give_place_back();
    }
    may
}

fn shares(fabric: &Arc<QuicFabric>, peer: &Arc<Peer>, outcome: Result<(Pair, UnixStream), HandshakeError>) {
    match outcome {
        Ok((pair, stream)) => {
            if let Err(error) = fabric.share(peer, pair, stream) {
                // The other end uses the memory already.
                fabric.lost(peer, format!("memory that is shared with it cannot be used: {error}"));
            }
        }
        Err(error) => not_shared(fabric, peer, &error.to_string()),
    }
}

fn not_shared(fabric: &QuicFabric, peer: &Peer, why: &str) {
    peer.give_up_near();
    fabric.neighbours.give_place_back();
    tracing::info!("messages to and from {:?} go by QUIC: no memory is shared with it: {why}", peer.id);
}

fn key(connection: &Connection) -> std::io::Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    let exported = connection.export_keying_material(&mut key, LABEL, b"");
    exported.map_err(|_| std::io::Error::other("the connection has no keys"))?;
    Ok(key)
}

/// Passes on that the bell rings, as long as there is another end.
async fn hear(near: Arc<Near>, rung: UnixStream) {
    let mut rings = [0; 64];
    while rung.readable().await.is_ok() {
        match rung.try_read(&mut rings) {
            Ok(0) => return,
            Ok(_) => near.rest.call(),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// Looks after all neighbours while no PE does.
pub(super) async fn attend(fabric: Weak<QuicFabric>) {
    let Some(rest) = fabric.upgrade().map(|fabric| Arc::clone(&fabric.neighbours.rest)) else { return };
    loop {
        let Some(this) = fabric.upgrade() else { return };
        let neighbours = &this.neighbours;
        let has_told = neighbours.tell();
        if this.look_at_all() {
            drop(this);
            tokio::task::yield_now().await;
            continue;
        }
        let is_held = neighbours.iter().any(|one| one.near.is_held.load(Ordering::Relaxed));
        // A PE that has sent many may go on to do so: better to look again soon than to be called each time.
        if is_held || has_told || neighbours.looking.load(Ordering::SeqCst) > 0 {
            drop(this);
            let _ = timeout(LOOK, rest.call.notified()).await;
            continue;
        }
        neighbours.sleeps();
        // Who has put something in before it could see that has not rung.
        if neighbours.tell() | this.look_at_all() {
            neighbours.wakes();
            continue;
        }
        drop(this);
        rest.call.notified().await;
        if let Some(this) = fabric.upgrade() {
            this.neighbours.wakes();
        }
    }
}
