//! A tiny UDP echo for `nodes check`: is the path between two hosts open for datagrams?

use super::bootstrap::listen_ip;
use std::io::{BufRead as _, Write as _};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// How long an echo waits for its datagrams.
const PATIENCE: Duration = Duration::from_secs(5);

/// The hidden command `__udp-echo`: reads a token from standard input, prints the address that it listens
/// on, and for five seconds sends back whatever holds exactly that token.
pub fn udp_echo() {
    let mut token = String::new();
    if std::io::stdin().lock().read_line(&mut token).is_err() {
        return;
    }
    let token = token.trim().as_bytes();
    let Ok(socket) = UdpSocket::bind((listen_ip(None, false), 0)) else { return };
    let Ok(address) = socket.local_addr() else { return };
    let mut out = std::io::stdout().lock();
    if writeln!(out, "metachare-echo {address}").and_then(|()| out.flush()).is_err() {
        return;
    }
    let until = Instant::now() + PATIENCE;
    let mut bytes = [0; 256];
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        if socket.set_read_timeout(Some(left)).is_err() {
            return;
        }
        let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
        if !token.is_empty() && &bytes[..length] == token {
            let _ = socket.send_to(token, from);
        }
    }
}

/// The address in the line that an echo prints.
pub(super) fn address_in(line: &str) -> Option<SocketAddr> {
    line.trim().strip_prefix("metachare-echo ")?.parse().ok()
}

/// Sends the token to an echo a few times; whether it came back.
pub(super) async fn ask(address: SocketAddr, token: &str) -> bool {
    let any: SocketAddr = if address.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    let Ok(socket) = tokio::net::UdpSocket::bind(any).await else { return false };
    let mut bytes = [0; 256];
    for _ in 0..8 {
        let _ = socket.send_to(token.as_bytes(), address).await;
        let answer = tokio::time::timeout(Duration::from_millis(250), socket.recv_from(&mut bytes)).await;
        if let Ok(Ok((length, from))) = answer
            && from == address
            && &bytes[..length] == token.as_bytes()
        {
            return true;
        }
    }
    false
}
