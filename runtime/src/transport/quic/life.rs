//! Signs of life on a line that is full.
//!
//! QUIC asks a silent peer once whether it lives; when that is lost it asks again, after times that double. On a line that
//! is full for a few seconds nearly all of these questions fall into the first of them. Those from here follow at
//! the same pace as long as nothing is heard, pass before all else that waits to be sent on the connection, and do not wait
//! until there is room for them in its congestion window.

use super::bottleneck::Urgent;
use crate::ids::NodeId;
use bytes::Bytes;
use quinn::Connection;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// A silence of this length is logged. It is about a quarter of the silence that is taken for death.
const LONG: Duration = Duration::from_secs(1);

/// Asks until the connection is over, from the time on when the answer to QUIC's own question, which comes after
/// `period`, is late.
pub(super) async fn ask(peer: NodeId, connection: Connection, period: Duration) {
    let mut look = interval(period / 2);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut packets, mut heard_at) = (0, Instant::now());
    while connection.close_reason().is_none() {
        look.tick().await;
        let (now, silence) = (connection.stats().udp_rx.datagrams, heard_at.elapsed());
        if now != packets {
            (packets, heard_at) = (now, Instant::now());
        } else if silence > period {
            // While all that is under way is lost the window stays full, and QUIC's own probes follow ever later.
            if let Some(urgent) = Urgent::of(&connection) {
                urgent.pass();
            }
            if connection.send_datagram(Bytes::new()).is_err() {
                return;
            }
        }
        if silence >= LONG {
            tracing::info!("nothing was heard from {peer:?} for {:.2} s", silence.as_secs_f64());
        }
    }
}
