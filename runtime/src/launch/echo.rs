//! The other end of `nodes check`: what the program says of itself and its host, a tiny UDP echo, and which of the
//! other nodes' echoes answer. Is the path between two hosts open for datagrams as long as QUIC's?

use super::bootstrap::{Ready, announce_ready, from_line, to_line, watch_start};
use super::carry::{self, DATAGRAM_BYTES};
use super::identity::own_hash;
use super::reach::{cannot_listen, listen_ip};
use crate::failure::Kind;
use crate::object::ProgramTable;
use crate::proto::membership::fingerprint;
use crate::transport::Ports;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write as _};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// First words of the line that says what was found.
const FOUND: &str = "metachare-found 1 ";
/// First words of the line that says which of the other nodes answered.
const REACHED: &str = "metachare-reached 2 ";
/// First words of the line that says what came from another node.
const CARRIED: &str = "metachare-carried 1 ";
/// How often others are asked until they answer, how often those that do, and how long each time.
const ROUNDS: u32 = 8;
const MEASURED_ROUNDS: u32 = 3;
const ROUND: Duration = Duration::from_millis(250);
/// No check lasts so long, whatever is copied to other hosts first.
const LIMIT: Duration = Duration::from_secs(3600);

/// What a checked node is told first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Question {
    /// What its echo answers to.
    pub(super) token: String,
    /// Where it is to listen; where ssh arrived, if absent.
    pub(super) listen: Option<IpAddr>,
    /// On which ports.
    pub(super) ports: Option<Ports>,
    /// Whether it is to write in its folder.
    pub(super) writes: bool,
}

/// What a checked node has found where it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Found {
    /// SHA-256 of its executable.
    pub(super) hash: String,
    /// Why its folder cannot be written, if it cannot.
    pub(super) unwritable: Option<String>,
}

impl Found {
    pub(super) fn from_line(line: &str) -> Option<Self> {
        from_line(FOUND, line)
    }
}

/// How long the shortest round trip to each of the addresses took that a node was told, from its line; `None` to those that
/// have not answered.
pub(super) fn reached_from_line(line: &str) -> Option<Vec<Option<Duration>>> {
    from_line(REACHED, line)
}

/// What a checked node is told to measure: what comes to it from one of the others.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// The other's echo.
    pub(super) from: SocketAddr,
    /// The round trip of a datagram to it.
    pub(super) way: Duration,
}

impl Order {
    pub(super) fn to_line(&self) -> io::Result<String> {
        to_line("", self)
    }
}

/// Bytes in a second that came to a node, from its line; none where no train of datagrams did.
pub(super) fn carried_from_line(line: &str) -> Option<Option<f64>> {
    let carried: Option<f64> = from_line(CARRIED, line)?;
    // What a node says may be anything.
    Some(carried.filter(|rate| rate.is_finite() && *rate > 0.0))
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
    // A line that is cut says nothing of it, so what nobody has ended by then ends itself.
    let left = || {
        eprintln!("nobody has ended this check in {} minutes; it ends itself", LIMIT.as_secs() / 60);
        std::process::exit(i32::from(Kind::Unavailable.exit_code()));
    };
    let Ok(_watched) = watch_start(LIMIT, left) else {
        return eprintln!("no thread to watch over the check");
    };
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
    let socket = Ports::bind(question.ports, ip).map_err(|e| cannot_listen(ip, &e))?;
    let unsaid = |e: io::Error| format!("cannot answer the launcher: {e}");
    let address = socket.local_addr().map_err(unsaid)?;
    let token = datagram(&question.token);
    let secret = question.token.clone();
    std::thread::Builder::new().name("echo".into()).spawn(move || echo(&socket, &secret)).map_err(unsaid)?;
    announce_ready(&Ready::here(address, fingerprint(&program.lines()))).map_err(unsaid)?;
    let unwritable = if question.writes { unwritable().err().map(|e| e.to_string()) } else { None };
    let found = Found { hash: own_hash().into(), unwritable };
    say(&to_line(FOUND, &found).map_err(unsaid)?).map_err(unsaid)?;
    if let Some(others) = next::<Vec<SocketAddr>>(input) {
        say(&to_line(REACHED, &reached(ip, &others, &token)).map_err(unsaid)?).map_err(unsaid)?;
    }
    while let Some(order) = next::<Order>(input) {
        let carried = carry::carried(ip, order.from, order.way, &question.token).ok().flatten();
        say(&to_line(CARRIED, &carried).map_err(unsaid)?).map_err(unsaid)?;
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

/// Sends back what holds exactly the token, and the trains that are asked for with it; nobody else gets an answer.
fn echo(socket: &UdpSocket, token: &str) {
    let echoed = datagram(token);
    let mut bytes = [0; DATAGRAM_BYTES + 1];
    loop {
        // An error is the answer of some other host to what was sent back.
        let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
        if bytes[..length] == echoed[..] {
            let _ = socket.send_to(&echoed, from);
        } else {
            carry::serve(socket, &bytes[..length], from, token);
        }
    }
}

/// How long the shortest round trip to each echo took that sends the token back to `from`; `None` for the others. Blocks
/// for two seconds at most.
pub(super) fn reached(from: IpAddr, others: &[SocketAddr], token: &[u8]) -> Vec<Option<Duration>> {
    let mut shortest = vec![None; others.len()];
    let Ok(socket) = UdpSocket::bind((from, 0)) else { return shortest };
    // A socket for IPv6 gives the addresses of IPv4 another form.
    let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let own = |address: SocketAddr| match (from, address.ip()) {
        (IpAddr::V6(_), IpAddr::V4(ip)) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        _ => address,
    };
    let number: BTreeMap<SocketAddr, usize> = others.iter().map(|a| plain(*a)).zip(0..).collect();
    let mut bytes = [0; DATAGRAM_BYTES + 1];
    for round in 0..ROUNDS {
        let mut asked: Vec<Option<Instant>> = vec![None; others.len()];
        for (at, address) in others.iter().enumerate() {
            if shortest[at].is_none() || round < MEASURED_ROUNDS {
                asked[at] = Some(Instant::now());
                let _ = socket.send_to(token, own(*address));
            }
        }
        let until = Instant::now() + ROUND;
        while asked.iter().any(Option::is_some) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || socket.set_read_timeout(Some(left)).is_err() {
                break;
            }
            let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
            let Some(&at) = number.get(&plain(from)).filter(|_| &bytes[..length] == token) else { continue };
            let Some(sent) = asked[at].take() else { continue };
            shortest[at] =
                Some(shortest[at].map_or(sent.elapsed(), |known: Duration| known.min(sent.elapsed())));
        }
        if round + 1 >= MEASURED_ROUNDS && shortest.iter().all(Option::is_some) {
            break;
        }
    }
    shortest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo_of(token: &str) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (address, token) = (socket.local_addr().unwrap(), token.to_string());
        std::thread::spawn(move || echo(&socket, &token));
        address
    }

    #[test]
    fn only_echoes_of_the_same_check_count_as_reached() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let others = [echo_of("this"), echo_of("another"), silent.local_addr().unwrap(), echo_of("this")];
        let times = reached("127.0.0.1".parse().unwrap(), &others, &datagram("this"));
        assert_eq!(times.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, false, true]);
        assert!(times.iter().flatten().all(|time| !time.is_zero() && *time <= ROUND), "{times:?}");
    }

    #[test]
    fn a_socket_for_both_families_reaches_either() {
        let times = reached("::".parse().unwrap(), &[echo_of("this")], &datagram("this"));
        let has_ipv6 = UdpSocket::bind("[::]:0").is_ok();
        assert_eq!(times[0].is_some(), has_ipv6);
    }

    #[test]
    fn what_is_found_survives_its_line() {
        let found = Found { hash: "ab".into(), unwritable: Some("no".into()) };
        assert_eq!(Found::from_line(&to_line(FOUND, &found).unwrap()), Some(found));
        let times = vec![Some(Duration::from_micros(7)), None];
        assert_eq!(reached_from_line(&to_line(REACHED, &times).unwrap()), Some(times));
        for noise in ["", "Welcome", FOUND, REACHED, CARRIED] {
            assert_eq!((Found::from_line(noise), reached_from_line(noise)), (None, None), "{noise:?}");
            assert_eq!(carried_from_line(noise), None, "{noise:?}");
        }
        for (told, carried) in [(Some(2e9), Some(2e9)), (None, None), (Some(-1.0), None), (Some(0.0), None)] {
            assert_eq!(carried_from_line(&to_line(CARRIED, &told).unwrap()), Some(carried));
        }
    }
}
