//! Closing connections that have long been idle, as [`parting`](crate::proto::parting) has it.
//!
//! Only between nodes that can both dial again: a launcher, which nobody dials, keeps its links for the whole run, and
//! by them each node's life is watched, whether or not it has others.

use super::lane::Lane;
use super::peer::{Links, Peer};
use super::{IDLE, QuicFabric};
use crate::proto::parting::{PartingWord, Reply, Tally};
use quinn::Connection;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Shortest and longest time between two looks at all links.
const LOOK_MIN: Duration = Duration::from_millis(1);
const LOOK_MAX: Duration = Duration::from_secs(5);

/// Looks after all links of a fabric as long as there is one.
pub(super) async fn close_idle(fabric: Weak<QuicFabric>, idle: Duration) {
    let mut look = tokio::time::interval((idle / 4).clamp(LOOK_MIN, LOOK_MAX));
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let Some(fabric) = fabric.upgrade() else { return };
        if fabric.is_closing.load(Ordering::SeqCst) {
            return;
        }
        let peers: Vec<Arc<Peer>> = fabric.peers.iter().map(|peer| Arc::clone(&peer)).collect();
        for peer in peers.iter().filter(|peer| !peer.is_lost() && fabric.may_part_from(peer)) {
            if let Some((connection, word)) = peer.ask_to_leave(fabric.now(), idle) {
                tokio::spawn(say(connection, word));
            }
        }
    }
}

impl QuicFabric {
    /// What `peer` says about closing `connection`. Not at a time when a frame is half delivered: what is counted as
    /// received has been handed over.
    pub(super) fn take_parting(
        &self,
        peer: &Peer,
        connection: &Connection,
        bytes: &[u8],
    ) -> Result<(), String> {
        let word = PartingWord::from_bytes(bytes).map_err(|e| format!("{:?}: {e}", peer.id))?;
        let reply = peer.take_parting(self.now(), connection, word, self.may_part_from(peer));
        match reply.map_err(|e| format!("{:?}: {e}", peer.id))? {
            Reply::Close => connection.close(IDLE, b"idle"),
            Reply::Say(word) => drop(self.runtime.spawn(say(connection.clone(), word))),
            Reply::Resume => {}
        }
        Ok(())
    }

    /// Whether the connection could be opened again by either end, and says nothing about memory that they share.
    fn may_part_from(&self, peer: &Peer) -> bool {
        let settings = &self.settings;
        let may_dial = settings.is_dialled && self.address(peer.id).is_some();
        may_dial && settings.close_idle_after.is_some() && !peer.is_near()
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

/// Says a word on a stream of its own. If that fails, the connection has ended, which is noticed elsewhere.
async fn say(connection: Connection, word: PartingWord) {
    let Ok(mut stream) = connection.open_uni().await else { return };
    let _ = stream.write_all(&[&[super::PARTING][..], &word.to_bytes()].concat()).await;
    let _ = stream.finish();
}

impl Peer {
    /// Asks to leave the oldest connection, if the link has been idle for long.
    fn ask_to_leave(&self, now: Duration, idle: Duration) -> Option<(Connection, PartingWord)> {
        let is_free = self.queued_bytes.load(Ordering::Relaxed) == 0;
        let ours = self.tally();
        let mut links = self.lock();
        let connection = links.connections.first().filter(|_| is_free).cloned();
        let number = connection.as_ref().map(Connection::stable_id);
        let word = links.parting.look(now, idle, ours, number)?;
        self.doubt();
        Some((connection?, word))
    }

    fn take_parting(
        &self,
        now: Duration,
        connection: &Connection,
        word: PartingWord,
        may_part: bool,
    ) -> Result<Reply, crate::proto::ProtocolError> {
        let ours = may_part.then(|| self.tally());
        let mut links = self.lock();
        let number = connection.stable_id();
        if !links.has(number) {
            // The word came with the end of the connection, or after it.
            return Ok(Reply::Resume);
        }
        let reply = links.parting.handle(now, number, word, ours)?;
        if reply == Reply::Close {
            self.part_from(&mut links, number);
        }
        drop(links);
        self.changed.notify_waiters();
        Ok(reply)
    }

    /// Says whether both ends agreed to close `connection`, which has ended. They may have agreed if this end had
    /// asked for it.
    pub(super) fn has_agreed_to_end(&self, connection: &Connection) -> bool {
        let mut links = self.lock();
        let number = connection.stable_id();
        let is_agreed = links.parting.ended(number) || !links.has(number);
        if is_agreed {
            self.part_from(&mut links, number);
            drop(links);
            self.changed.notify_waiters();
        }
        is_agreed
    }

    fn part_from(&self, links: &mut Links, number: usize) {
        links.connections.retain(|known| known.stable_id() != number);
        self.doubt();
        self.lanes.iter().for_each(Lane::part);
    }

    /// Frames so far. Those sent are counted before they can be on their way.
    fn tally(&self) -> Tally {
        Tally { sent: self.sent.frames(), received: self.received.frames() }
    }
}
