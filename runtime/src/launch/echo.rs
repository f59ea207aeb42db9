//! The other end of `nodes check`: what the program says of itself and its host, a tiny UDP echo, and which of the
//! other nodes' echoes answer. Is the path between two hosts open for datagrams as long as QUIC's?

use super::bootstrap::{Ready, announce_ready, from_line, to_line};
use super::identity::own_hash;
use super::reach::listen_ip;
use crate::object::ProgramTable;
use crate::proto::membership::fingerprint;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write as _};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

/// First words of the line that says what was found.
const FOUND: &str = "metachare-found 1 ";
/// First words of the line that says which of the other nodes answered.
const REACHED: &str = "metachare-reached 1 ";
/// The datagrams with which QUIC begins; a path that swallows them is none.
const DATAGRAM_BYTES: usize = 1200;
/// How often, and each time for how long, others are asked.
const ROUNDS: u32 = 8;
const ROUND: Duration = Duration::from_millis(250);

/// What a checked node is told first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Question {
    /// What its echo answers to.
    pub(super) token: String,
    /// Where it is to listen; where ssh arrived, if absent.
    pub(super) listen: Option<IpAddr>,
    /// Whether it is to write in its folder.
    pub(super) writes: bool,
}

/// What a checked node has found where it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Found {
    /// SHA-256 of its executable.
    pub(super) hash: String,
    /// Fingerprint of its chare types and entry methods.
    pub(super) fingerprint: u64,
    /// Why its folder cannot be written, if it cannot.
    pub(super) unwritable: Option<String>,
}

impl Found {
    pub(super) fn from_line(line: &str) -> Option<Self> {
        from_line(FOUND, line)
    }
}

/// Which of the addresses that a node was told have answered it, from its line.
pub(super) fn reached_from_line(line: &str) -> Option<Vec<bool>> {
    from_line(REACHED, line)
}

/// The words in which a node is told the addresses of the others.
pub(super) fn others_to_line(others: &[SocketAddr]) -> io::Result<String> {
    to_line("", &others)
}

impl Question {
    pub(super) fn to_line(&self) -> io::Result<String> {
        to_line("", self)
    }
}

/// The hidden command `__check`: answers like a node, says what it finds, echoes its token, asks the other nodes
/// when it has been told where they are, and ends with its standard input.
pub fn answer_check(program: &ProgramTable) {
    let mut input = io::stdin().lock();
    let Some(question) = next::<Question>(&mut input) else {
        return eprintln!("the launcher said too little; this command is only for launchers");
    };
    if let Err(sentence) = answer(program, &question, &mut input) {
        eprintln!("{sentence}");
    }
}

fn answer(program: &ProgramTable, question: &Question, input: &mut impl BufRead) -> Result<(), String> {
    let ip = listen_ip(question.listen).map_err(|e| e.to_string())?;
    let socket = UdpSocket::bind((ip, 0))
        .map_err(|e| format!("cannot listen on {ip}: {e}; set `address` of this node in the nodes file"))?;
    let unsaid = |e: io::Error| format!("cannot answer the launcher: {e}");
    let address = socket.local_addr().map_err(unsaid)?;
    let token = datagram(&question.token);
    let reply = token.clone();
    std::thread::Builder::new().name("echo".into()).spawn(move || echo(&socket, &reply)).map_err(unsaid)?;
    announce_ready(&Ready::here(address)).map_err(unsaid)?;
    let unwritable = if question.writes { unwritable().err().map(|e| e.to_string()) } else { None };
    let found = Found { hash: own_hash().into(), fingerprint: fingerprint(&program.lines()), unwritable };
    say(&to_line(FOUND, &found).map_err(unsaid)?).map_err(unsaid)?;
    if let Some(others) = next::<Vec<SocketAddr>>(input) {
        say(&to_line(REACHED, &reached(ip, &others, &token)).map_err(unsaid)?).map_err(unsaid)?;
    }
    // The echo answers the others until the launcher has heard all.
    let _ = io::copy(input, &mut io::sink());
    Ok(())
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush())
}

fn next<T: serde::de::DeserializeOwned>(input: &mut impl BufRead) -> Option<T> {
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    from_line("", &line)
}

/// Writes into the current folder, and takes it away again.
fn unwritable() -> io::Result<()> {
    let file = format!(".metachare-check-{}", std::process::id());
    std::fs::OpenOptions::new().write(true).create_new(true).open(&file)?.write_all(b"?")?;
    std::fs::remove_file(file)
}

/// The datagram with a token.
pub(super) fn datagram(token: &str) -> Vec<u8> {
    let mut bytes = token.as_bytes().to_vec();
    bytes.resize(DATAGRAM_BYTES.max(bytes.len()), 0);
    bytes
}

/// Sends back what holds exactly the token; nobody else gets an answer.
fn echo(socket: &UdpSocket, token: &[u8]) {
    let mut bytes = [0; DATAGRAM_BYTES + 1];
    loop {
        // An error is the answer of some other host to what was sent back.
        let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
        if &bytes[..length] == token {
            let _ = socket.send_to(token, from);
        }
    }
}

/// Which echoes send the token back to `from`. Blocks for two seconds at most.
pub(super) fn reached(from: IpAddr, others: &[SocketAddr], token: &[u8]) -> Vec<bool> {
    let mut open = vec![false; others.len()];
    let Ok(socket) = UdpSocket::bind((from, 0)) else { return open };
    // A socket for IPv6 gives the addresses of IPv4 another form.
    let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let own = |address: SocketAddr| match (from, address.ip()) {
        (IpAddr::V6(_), IpAddr::V4(ip)) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        _ => address,
    };
    let number: BTreeMap<SocketAddr, usize> = others.iter().map(|a| plain(*a)).zip(0..).collect();
    let mut bytes = [0; DATAGRAM_BYTES + 1];
    for _ in 0..ROUNDS {
        for (address, _) in others.iter().zip(&open).filter(|(_, is_open)| !**is_open) {
            let _ = socket.send_to(token, own(*address));
        }
        let until = std::time::Instant::now() + ROUND;
        while open.contains(&false) {
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() || socket.set_read_timeout(Some(left)).is_err() {
                break;
            }
            let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
            if let (true, Some(&at)) = (&bytes[..length] == token, number.get(&plain(from))) {
                open[at] = true;
            }
        }
        if !open.contains(&false) {
            break;
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo_of(token: &str) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (address, token) = (socket.local_addr().unwrap(), datagram(token));
        std::thread::spawn(move || echo(&socket, &token));
        address
    }

    #[test]
    fn only_echoes_of_the_same_check_count_as_reached() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let others = [echo_of("this"), echo_of("another"), silent.local_addr().unwrap(), echo_of("this")];
        let open = reached("127.0.0.1".parse().unwrap(), &others, &datagram("this"));
        assert_eq!(open, [true, false, false, true]);
    }

    #[test]
    fn a_socket_for_both_families_reaches_either() {
        let open = reached("::".parse().unwrap(), &[echo_of("this")], &datagram("this"));
        let has_ipv6 = UdpSocket::bind("[::]:0").is_ok();
        assert_eq!(open, [has_ipv6]);
    }

    #[test]
    fn what_is_found_survives_its_line() {
        let found = Found { hash: "ab".into(), fingerprint: u64::MAX, unwritable: Some("no".into()) };
        assert_eq!(Found::from_line(&to_line(FOUND, &found).unwrap()), Some(found));
        assert_eq!(
            reached_from_line(&to_line(REACHED, &vec![true, false]).unwrap()),
            Some(vec![true, false])
        );
        for noise in ["", "Welcome", FOUND, REACHED] {
            assert_eq!((Found::from_line(noise), reached_from_line(noise)), (None, None), "{noise:?}");
        }
    }
}
