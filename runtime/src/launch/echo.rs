//! The answer to `nodes check`: what the program says of its host, and a tiny UDP echo. Is the path between two
//! hosts open for datagrams?

use super::bootstrap::{Ready, announce_ready};
use super::reach::listen_ip;
use std::io::BufRead as _;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// How long an echo waits for its datagrams.
const PATIENCE: Duration = Duration::from_secs(5);

/// The hidden command `__check`: reads a token and perhaps an address to listen on from standard input, answers
/// like a node, and for five seconds sends back whatever holds exactly that token.
pub fn answer_check() {
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line).is_err() {
        return;
    }
    let mut words = line.split_whitespace();
    let token = words.next().unwrap_or_default().as_bytes();
    let wanted: Option<IpAddr> = words.next().and_then(|ip| ip.parse().ok());
    let ip = match listen_ip(wanted) {
        Ok(ip) => ip,
        Err(error) => return eprintln!("{error}"),
    };
    let socket = match UdpSocket::bind((ip, 0)) {
        Ok(socket) => socket,
        Err(error) => return eprintln!("cannot listen on {ip}: {error}"),
    };
    let Ok(address) = socket.local_addr() else { return };
    if announce_ready(&Ready::here(address)).is_err() {
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
