//! Signs of life: who is silent for too long is lost.
//!
//! Each end of a connection says at a steady pace that it lives, in small datagrams of its own beside QUIC's. QUIC's are
//! filled up with data where data waits; on a line whose queue is full such long ones are lost, one after the other, while
//! a short one still finds room. And QUIC asks ever more rarely the longer it hears nothing.
//!
//! A sign is marked with a key that only the two ends of its connection know, and with a number that grows, so nobody can
//! make one or use one again.

use super::QuicFabric;
use super::peer::Peer;
use crate::ids::NodeId;
use crate::transport::mark::MarkKey;
use quinn::Connection;
use quinn::udp::RecvMeta;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// First byte of a sign. QUIC sets one of the two highest bits in each of its datagrams.
const SIGN: u8 = 0x01;
const NOT_QUIC_MAX: u8 = 0x3f;
/// What a sign says: that it is one, of which connection, who sends it, and its number.
const SAID_BYTES: usize = 1 + NAME_BYTES + 2 + 8;
const NAME_BYTES: usize = 8;
const MARK_BYTES: usize = 16;
const KEY_BYTES: usize = 32;
pub(super) const SIGN_BYTES: usize = SAID_BYTES + MARK_BYTES;
/// Label under which TLS derives name and key from a connection's secrets.
const LABEL: &[u8] = b"metachare signs of life";

/// A silence of this length is logged. It is about a quarter of the silence that is taken for death.
const LONG: Duration = Duration::from_secs(1);
/// A look that comes later than so many periods after the last says that this process itself was held up, and what has come
/// meanwhile may not have been read yet.
const LATE: u32 = 4;

/// What both ends of a connection call it.
type Name = [u8; NAME_BYTES];
pub(super) type Sign = [u8; SIGN_BYTES];

/// The connections of a node as far as their signs are concerned.
#[derive(Debug, Default)]
pub(super) struct Signs(Mutex<FxHashMap<Name, Known>>);

#[derive(Debug)]
struct Known {
    key: MarkKey<MARK_BYTES>,
    peer: NodeId,
    /// Number of the last sign that was heard.
    last: u64,
    heard: u64,
}

impl Signs {
    /// Keeps apart what is QUIC's of what has come and takes the rest, which is at the end of a batch or all of it.
    pub(super) fn take_from(&self, bytes: &mut [u8], about: &mut RecvMeta) {
        let stride = about.stride.max(1);
        while let Some(at) = about.len.checked_sub(1).map(|last| last / stride * stride) {
            let datagram = &bytes[at..about.len];
            if datagram[0] > NOT_QUIC_MAX {
                return;
            }
            self.hear(datagram);
            about.len = at;
        }
    }

    /// Takes a datagram for a sign if it is one.
    fn hear(&self, datagram: &[u8]) {
        let Some((said, mark)) = datagram.split_at_checked(SAID_BYTES) else { return };
        let Some(name) = said.get(1..).and_then(|said| said.first_chunk()) else { return };
        let mut all = self.lock();
        let Some(known) = all.get_mut(name) else { return };
        let number = said.last_chunk().map_or(0, |number| u64::from_be_bytes(*number));
        let is_right = said[0] == SIGN && said[1 + NAME_BYTES..][..2] == known.peer.0.to_be_bytes();
        if is_right && number > known.last && known.key.is_mark(said, mark) {
            (known.last, known.heard) = (number, known.heard + 1);
        }
    }

    /// How many signs were heard over a connection.
    fn heard(&self, name: &Name) -> u64 {
        self.lock().get(name).map_or(0, |known| known.heard)
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<Name, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one end needs to say that it lives; what it hears is forgotten when this is dropped.
pub(super) struct Voice {
    signs: Arc<Signs>,
    name: Name,
    key: MarkKey<MARK_BYTES>,
    me: NodeId,
    said: u64,
}

impl Voice {
    /// Of a connection of `me` to `peer`; `None` if it has ended.
    fn of(signs: &Arc<Signs>, connection: &Connection, me: NodeId, peer: NodeId) -> Option<Self> {
        let (name, key) = derived(connection)?;
        Some(Self::new(signs, name, &key, me, peer))
    }

    fn new(signs: &Arc<Signs>, name: Name, key: &[u8], me: NodeId, peer: NodeId) -> Self {
        let key = MarkKey::new(key);
        signs.lock().insert(name, Known { key: key.clone(), peer, last: 0, heard: 0 });
        Self { signs: Arc::clone(signs), name, key, me, said: 0 }
    }

    /// The next sign.
    fn next(&mut self) -> Sign {
        self.said += 1;
        let mut sign = [0; SIGN_BYTES];
        let said: Vec<u8> =
            [&[SIGN][..], &self.name, &self.me.0.to_be_bytes(), &self.said.to_be_bytes()].concat();
        sign[..SAID_BYTES].copy_from_slice(&said);
        sign[SAID_BYTES..].copy_from_slice(&self.key.mark(&said));
        sign
    }

    fn heard(&self) -> u64 {
        self.signs.heard(&self.name)
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        self.signs.lock().remove(&self.name);
    }
}

/// How long nothing was heard, in time that this process itself was awake.
#[derive(Debug)]
struct Silence {
    period: Duration,
    heard: u64,
    looked: Instant,
    length: Duration,
}

impl Silence {
    fn new(now: Instant, period: Duration) -> Self {
        Self { period, heard: 0, looked: now, length: Duration::ZERO }
    }

    /// The silence at `now`, when so much was heard since the beginning.
    fn look(&mut self, now: Instant, heard: u64) -> Duration {
        let passed = now.saturating_duration_since(self.looked).min(LATE * self.period);
        self.length = if heard == self.heard { self.length + passed } else { Duration::ZERO };
        (self.heard, self.looked) = (heard, now);
        self.length
    }
}

/// Says that this end of a connection lives until it is over, and ends it when nothing was heard from the other for too
/// long.
pub(super) async fn watch(fabric: Arc<QuicFabric>, peer: Arc<Peer>, connection: Connection) {
    let (period, limit) = (fabric.settings.keep_alive, fabric.settings.idle_timeout);
    let Some(mut voice) = Voice::of(&fabric.signs, &connection, fabric.me, peer.id) else { return };
    let mut look = interval(period);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut silence = Silence::new(Instant::now(), period);
    while connection.close_reason().is_none() {
        look.tick().await;
        fabric.socket.send_sign(connection.remote_address(), &voice.next());
        let silent = silence.look(Instant::now(), voice.heard() + frames_of(&connection));
        if silent >= limit {
            // If both ends agreed to close, this end may notice no more than silence.
            if !peer.has_agreed_to_end(&connection) {
                fabric.lost(&peer, format!("nothing was heard from it for {} s", limit.as_secs_f64()));
            }
            return connection.close(super::IDLE, b"silent");
        }
        if silent >= LONG {
            tracing::info!("nothing was heard from {:?} for {:.2} s", peer.id, silent.as_secs_f64());
        }
    }
}

/// What both ends of a connection call it, and a key that nobody else has; `None` if it has ended.
fn derived(connection: &Connection) -> Option<(Name, [u8; KEY_BYTES])> {
    let mut secret = [0; NAME_BYTES + KEY_BYTES];
    connection.export_keying_material(&mut secret, LABEL, b"").ok()?;
    Some((*secret.first_chunk()?, *secret.last_chunk()?))
}

/// Frames of packets that the other end has sealed and that are no copies: what QUIC heard from it.
fn frames_of(connection: &Connection) -> u64 {
    let frames = connection.stats().frame_rx;
    frames.acks + frames.stream + frames.ping
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::proto::sim::Random;

    const MS: Duration = Duration::from_millis(1);
    const NAME: Name = *b"the name";

    /// What was heard from the other end of a connection, by signs and by QUIC.
    pub(in super::super) fn heard(fabric: &QuicFabric, connection: &Connection) -> u64 {
        let (name, _) = derived(connection).unwrap();
        fabric.signs.heard(&name) + frames_of(connection)
    }

    /// Two ends of a connection between nodes 1 and 2.
    fn ends(key: &[u8]) -> [Voice; 2] {
        [(1, 2), (2, 1)].map(|(me, peer)| Voice::new(&Arc::default(), NAME, key, NodeId(me), NodeId(peer)))
    }

    fn batch(datagrams: &[&[u8]]) -> (Vec<u8>, RecvMeta) {
        let bytes = datagrams.concat();
        let (len, stride) = (bytes.len(), datagrams[0].len());
        (bytes, RecvMeta { addr: ([127, 0, 0, 1], 1).into(), len, stride, ecn: None, dst_ip: None })
    }

    #[test]
    fn signs_are_heard_once_and_by_the_other_end_only() {
        let [mut one, mut two] = ends(b"key");
        let (first, second) = (one.next(), one.next());
        for (sign, heard) in [(second, 1), (second, 1), (first, 1), (one.next(), 2), (two.next(), 2)] {
            two.signs.hear(&sign);
            assert_eq!(two.heard(), heard);
        }
        let [mut stranger, _] = ends(b"another key");
        one.signs.hear(&stranger.next());
        two.signs.hear(&stranger.next());
        assert_eq!((one.heard(), two.heard()), (0, 2));
        let signs = Arc::clone(&two.signs);
        drop(two);
        signs.hear(&one.next());
        assert_eq!(signs.heard(&NAME), 0, "the connection is over");
    }

    #[test]
    fn what_is_quics_stays_and_the_rest_is_taken() {
        let [mut one, two] = ends(b"key");
        let (quic, short) = ([0x40; 1200], [0xc0; SIGN_BYTES]);
        let signs = [one.next(), one.next(), one.next(), one.next()];
        for (datagrams, left, heard) in [
            (vec![&quic[..], &quic, &signs[0]], 2400, 1),
            // Of several together the last is the newest.
            (vec![&signs[1][..], &signs[2]], 0, 2),
            (vec![&quic[..], &quic], 2400, 2),
            (vec![&short[..], &signs[3]], SIGN_BYTES, 3),
        ] {
            let (mut bytes, mut about) = batch(&datagrams);
            two.signs.take_from(&mut bytes, &mut about);
            assert_eq!((about.len, two.heard()), (left, heard));
        }
    }

    #[test]
    fn datagrams_of_any_content_are_no_signs() {
        let [mut one, two] = ends(b"key");
        let mut random = Random::new(14);
        for _ in 0..10_000 {
            let sound = one.next();
            let datagram = random.mutated(&sound);
            let before = two.heard();
            two.signs.hear(&datagram);
            assert_eq!(two.heard() - before, u64::from(datagram == sound), "{datagram:?}");
        }
        assert!(two.heard() > 100, "{}: those that were not touched", two.heard());
    }

    #[test]
    fn silence_is_the_time_awake_in_which_nothing_came() {
        let start = Instant::now();
        let mut silence = Silence::new(start, 100 * MS);
        assert_eq!(silence.look(start + 100 * MS, 1), Duration::ZERO);
        assert_eq!(silence.look(start + 200 * MS, 1), 100 * MS);
        assert_eq!(silence.look(start + 500 * MS, 1), 400 * MS, "late, as on a busy host");
        assert_eq!(silence.look(start + 9000 * MS, 1), 800 * MS, "this process was frozen");
        assert_eq!(silence.look(start + 9100 * MS, 2), Duration::ZERO);
    }
}
