//! Who is answered at all: a node hears only those whom it dials, and those who knock as only nodes of the run can.
//!
//! A knock is what a dial begins with: the connection id that the first packet is sent to, which QUIC leaves to whoever
//! dials. It holds who dials, a number that grows with every dial, and a mark of both and of the one dialled, made with a
//! secret of the run. All else is dropped before QUIC sees it: strangers get no answer and take no place that a node might
//! need, and nobody is sent anything in their name. Whoever overhears a knock gains nothing, since each is good once and for
//! one address. What a dial brings after that is for TLS to judge.

use crate::ids::NodeId;
use crate::transport::mark::MarkKey;
use quinn_proto::ConnectionId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a knock: the longest connection id that there is.
const KNOCK_BYTES: usize = 20;
/// Length of the first part of a knock, which says who dials and the number of the dial.
const SAID_BYTES: usize = 2 + 6;
/// Length of the rest, the mark.
const MARK_BYTES: usize = KNOCK_BYTES - SAID_BYTES;
/// First byte of packets with a long header, which dials begin with.
const LONG_HEADER: u8 = 0x80;
/// Where a long header has the length of the connection id that it is sent to, behind a byte of flags and the version.
const LENGTH_AT: usize = 5;

/// What a node answers, and what it says to be answered.
pub(super) struct Door {
    key: MarkKey<MARK_BYTES>,
    me: NodeId,
    /// Whether others may dial this node.
    is_dialled: bool,
    dials: AtomicU64,
    known: Mutex<Known>,
    strangers: AtomicU64,
}

#[derive(Default)]
struct Known {
    addresses: FxHashSet<(IpAddr, u16)>,
    /// The greatest number in a knock of each node.
    last: FxHashMap<NodeId, u64>,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Door of {:?}", self.me)
    }
}

impl Door {
    /// The door of node `me` in a run with this secret.
    pub(super) fn new(secret: &[u8], me: NodeId, is_dialled: bool) -> Self {
        Self {
            key: MarkKey::new(secret),
            me,
            is_dialled,
            dials: AtomicU64::new(0),
            known: Mutex::default(),
            strangers: AtomicU64::new(0),
        }
    }

    /// The connection id with which the next dial to `to` begins.
    pub(super) fn knock(&self, to: NodeId) -> ConnectionId {
        let number = self.dials.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut knock = [0; KNOCK_BYTES];
        knock[..2].copy_from_slice(&self.me.0.to_be_bytes());
        knock[2..SAID_BYTES].copy_from_slice(&number[2..]);
        let mark = self.key.mark(&said_to(to, &knock[..SAID_BYTES]));
        knock[SAID_BYTES..].copy_from_slice(&mark);
        ConnectionId::new(&knock)
    }

    /// Lets in datagrams from this address from now on.
    pub(super) fn open_to(&self, address: SocketAddr) {
        self.lock().addresses.insert(plain(address));
    }

    /// Whether a datagram is to be heard.
    pub(super) fn admits(&self, from: SocketAddr, datagram: &[u8]) -> bool {
        let mut known = self.lock();
        let is_known = known.addresses.contains(&plain(from));
        if is_known {
            return true;
        }
        let knock = knock_in(datagram).and_then(|knock| self.read(knock));
        // The number grows with every dial, so a knock that was used before is not let in again.
        let fresh = knock.filter(|(node, number)| known.last.get(node).is_none_or(|last| last < number));
        match fresh {
            Some((node, number)) => {
                known.last.insert(node, number);
                known.addresses.insert(plain(from));
                true
            }
            None => {
                self.turn_away();
                false
            }
        }
    }

    /// Whether a dial that was heard began as one of the run's: somebody might pretend to have a known address.
    pub(super) fn is_knock(&self, id: &ConnectionId) -> bool {
        self.read(id).is_some()
    }

    /// Counts a stranger.
    pub(super) fn turn_away(&self) {
        self.strangers.fetch_add(1, Ordering::Relaxed);
    }

    /// Datagrams and dials that were turned away.
    pub(super) fn strangers(&self) -> u64 {
        self.strangers.load(Ordering::Relaxed)
    }

    /// Which node knocks and the number of its dial, or `None` if this is no knock for this node.
    fn read(&self, knock: &[u8]) -> Option<(NodeId, u64)> {
        if !self.is_dialled || knock.len() != KNOCK_BYTES {
            return None;
        }
        let (said, mark) = knock.split_at(SAID_BYTES);
        if !self.key.is_mark(&said_to(self.me, said), mark) {
            return None;
        }
        let number = said[2..].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        Some((NodeId(u16::from_be_bytes([said[0], said[1]])), number))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a mark is made of.
fn said_to(to: NodeId, said: &[u8]) -> Vec<u8> {
    [&to.0.to_be_bytes()[..], said].concat()
}

/// What may be the knock in a datagram.
fn knock_in(datagram: &[u8]) -> Option<&[u8]> {
    let is_long = datagram.first()? & LONG_HEADER != 0;
    let length = usize::from(*datagram.get(LENGTH_AT)?);
    let knock = datagram.get(LENGTH_AT + 1..LENGTH_AT + 1 + length);
    knock.filter(|_| is_long)
}

/// An address in one form: IPv4 addresses can also be written as IPv6 ones.
fn plain(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::sim::Random;

    fn door(n: u16) -> Door {
        Door::new(b"secret", NodeId(n), n > 0)
    }

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// The beginning of a dial.
    fn first(knock: &[u8]) -> Vec<u8> {
        let length = u8::try_from(knock.len()).unwrap();
        [&[0xc0, 0, 0, 0, 1, length][..], knock, &[7; 40]].concat()
    }

    #[test]
    fn a_knock_opens_for_its_address_and_no_other() {
        let (dials, door) = (door(3), door(1));
        let one = first(&dials.knock(NodeId(1)));
        assert!(!door.admits(at(1), b"a stranger"));
        assert!(door.admits(at(1), &one));
        assert!(door.admits(at(1), &one) && door.admits(at(1), b"what follows"), "it is known by now");
        assert!(!door.admits(at(2), &one), "somebody has overheard it");
        let (two, three) = (first(&dials.knock(NodeId(1))), first(&dials.knock(NodeId(1))));
        assert!(door.admits(at(4), &three), "its address may have changed");
        assert!(!door.admits(at(5), &two), "an older one cannot be told from one overheard");
        assert_eq!(door.strangers(), 3);
    }

    #[test]
    fn only_a_node_of_the_run_can_knock_and_only_at_the_door_it_means() {
        let door = door(1);
        for secret in [&b"another"[..], b""] {
            let knock = Door::new(secret, NodeId(3), true).knock(NodeId(1));
            assert!(!door.admits(at(1), &first(&knock)) && !door.is_knock(&knock));
        }
        let elsewhere = self::door(3).knock(NodeId(2));
        assert!(!door.admits(at(1), &first(&elsewhere)) && self::door(2).is_knock(&elsewhere));
    }

    #[test]
    fn who_is_never_dialled_hears_only_whom_it_dials() {
        let launcher = door(0);
        let knock = door(1).knock(NodeId(0));
        assert!(!launcher.admits(at(1), &first(&knock)) && !launcher.is_knock(&knock));
        launcher.open_to("[::ffff:127.0.0.1]:1".parse().unwrap());
        assert!(launcher.admits(at(1), b"an answer") && !launcher.admits(at(2), b"an answer"));
    }

    #[test]
    fn datagrams_of_any_content_do_not_open() {
        let (mut random, sound) = (Random::new(41), first(&door(3).knock(NodeId(1))));
        let mut opened = 0;
        for _ in 0..10_000 {
            let (door, datagram) = (door(1), random.mutated(&sound));
            let is_whole =
                datagram.len() > LENGTH_AT && datagram[LENGTH_AT..].starts_with(&sound[LENGTH_AT..26]);
            let admits = door.admits(at(1), &datagram);
            opened += u32::from(admits);
            assert!(is_whole || !admits, "{datagram:?}");
        }
        assert!(opened > 1000, "{opened} opened: those whose knock was not touched");
    }
}
