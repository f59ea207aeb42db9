//! How many bytes in a second the way between two hosts carries, as `nodes check` finds out in a fraction of a second: whoever
//! asks gets a train of datagrams and takes the time until the last has come. Trains become longer until one takes so long
//! that the clock says something, so that a narrow line is not filled for long.
//!
//! A request is as long as an echo's and holds the token of the check. A datagram of a train holds it too: nobody else can
//! ask for one, or take part in one.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Bytes of a datagram, as of those with which QUIC begins.
pub(super) const DATAGRAM_BYTES: usize = 1200;
/// Datagrams of the trains that are asked for, one after the other: 19 KB to 1.2 MB.
const TRAINS: [u16; 4] = [16, 64, 256, TRAIN_MAX];
/// Nobody is sent more of them at once.
const TRAIN_MAX: u16 = 1024;
/// A train that takes longer, beyond the way there and back, needs no longer one.
const LONG: Duration = Duration::from_millis(10);
/// How long is waited for a train, and for the next of its datagrams, beyond the way there and back.
const PATIENCE: Duration = Duration::from_millis(100);
const SILENCE: Duration = Duration::from_millis(30);
/// A way there and back that is longer is not waited for.
const WAY_MAX: Duration = Duration::from_millis(100);
/// Less than this is the clock's doing.
const LEAST: Duration = Duration::from_micros(20);
/// Begins the numbers behind the token, which have no zeros where an echo has some.
const MARK: [u8; 2] = *b"tr";

/// What stands behind the token of a datagram: which train, of how many datagrams, and in a train, which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    train: u16,
    count: u16,
    number: u16,
}

impl Numbers {
    /// A datagram with the token and these.
    fn datagram(self, token: &str) -> Vec<u8> {
        let mut bytes = token.as_bytes().to_vec();
        bytes.extend(MARK);
        [self.train, self.count, self.number].iter().for_each(|n| bytes.extend(n.to_le_bytes()));
        bytes.resize(DATAGRAM_BYTES, 0);
        bytes
    }

    /// Those of a datagram, if it has this token.
    fn of(datagram: &[u8], token: &str) -> Option<Self> {
        let rest = datagram.strip_prefix(token.as_bytes())?.strip_prefix(&MARK)?;
        let at =
            |place: usize| Some(u16::from_le_bytes(rest.get(2 * place..2 * place + 2)?.try_into().ok()?));
        (datagram.len() == DATAGRAM_BYTES).then_some(())?;
        Some(Self { train: at(0)?, count: at(1)?, number: at(2)? })
    }
}

/// Sends the train that a datagram asks for, if it does.
pub(super) fn serve(socket: &UdpSocket, request: &[u8], from: SocketAddr, token: &str) {
    let Some(asked) = Numbers::of(request, token).filter(|asked| asked.count <= TRAIN_MAX) else { return };
    let begun = Instant::now();
    for number in 0..asked.count {
        // A line that is full holds the sender up; nobody waits for the rest any more.
        if begun.elapsed() > PATIENCE {
            return;
        }
        let _ = socket.send_to(&Numbers { number, ..asked }.datagram(token), from);
    }
}

/// Bytes in a second that come from an echo to `from`, where a way there and back takes `way`; `None` if no train came. Blocks
/// for half a second at most.
///
/// # Errors
/// If there is no socket.
pub(super) fn carried(from: IpAddr, echo: SocketAddr, way: Duration, token: &str) -> io::Result<Option<f64>> {
    let socket = UdpSocket::bind((from, 0))?;
    socket.connect(echo)?;
    let way = way.min(WAY_MAX);
    let mut best: Option<f64> = None;
    for (train, count) in (0..).zip(TRAINS) {
        let Some((bytes, took)) = one_train(&socket, Numbers { train, count, number: 0 }, way, token)? else {
            break;
        };
        let took = took.saturating_sub(way).max(LEAST);
        let rate = bytes as f64 / took.as_secs_f64();
        // A train that this process was late for seems slower than it was, but none seems faster; a short one says little.
        best = if train < 2 { Some(rate) } else { Some(best.unwrap_or(0.0).max(rate)) };
        if took > LONG {
            break;
        }
    }
    Ok(best)
}

/// The bytes of a train, and how long after it was asked for its last datagram came; `None` if nothing came.
fn one_train(
    socket: &UdpSocket,
    asked: Numbers,
    way: Duration,
    token: &str,
) -> io::Result<Option<(usize, Duration)>> {
    let begun = Instant::now();
    socket.send(&asked.datagram(token))?;
    let (mut bytes, mut last) = (0, None);
    let mut datagram = [0; DATAGRAM_BYTES + 1];
    loop {
        let left = (2 * way + PATIENCE).saturating_sub(begun.elapsed());
        let silence = if last.is_some() { SILENCE } else { left };
        let wait = left.min(silence);
        if wait.is_zero() {
            break;
        }
        socket.set_read_timeout(Some(wait))?;
        let length = match socket.recv(&mut datagram) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                break;
            }
            Err(error) => return Err(error),
        };
        let Some(came) = Numbers::of(&datagram[..length], token) else { continue };
        if (came.train, came.count) != (asked.train, asked.count) {
            continue;
        }
        bytes += length;
        last = Some(begun.elapsed());
        if came.number + 1 >= asked.count {
            break;
        }
    }
    Ok(last.map(|took| (bytes, took)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "metachare-1";

    /// Serves trains, each datagram so much later than the one before.
    fn server(pause: Duration) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; DATAGRAM_BYTES + 1];
            loop {
                let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
                let Some(asked) = Numbers::of(&bytes[..length], TOKEN) else { continue };
                if pause.is_zero() {
                    serve(&socket, &bytes[..length], from, TOKEN);
                    continue;
                }
                let begun = Instant::now();
                for number in 0..asked.count {
                    while begun.elapsed() < pause * u32::from(number + 1) {
                        std::thread::yield_now();
                    }
                    let _ = socket.send_to(&Numbers { number, ..asked }.datagram(TOKEN), from);
                }
            }
        });
        address
    }

    fn carried_from(server: SocketAddr, token: &str) -> Option<f64> {
        carried("127.0.0.1".parse().unwrap(), server, Duration::ZERO, token).unwrap()
    }

    #[test]
    fn a_way_that_carries_less_is_seen_to() {
        // 1.2 MB/s at most, however busy this machine is.
        let narrow = carried_from(server(Duration::from_millis(1)), TOKEN).unwrap();
        assert!(narrow > 0.0 && narrow < 1.3e6, "{narrow}");
        let wide = carried_from(server(Duration::ZERO), TOKEN);
        assert!(wide.is_some_and(|rate| rate.is_finite() && rate > 0.0), "{wide:?}");
    }

    #[test]
    fn nobody_without_the_token_is_sent_anything() {
        assert_eq!(carried_from(server(Duration::ZERO), "metachare-2"), None);
    }

    #[test]
    fn no_more_is_sent_than_a_train_may_have() {
        let [sender, receiver] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let to = receiver.local_addr().unwrap();
        let request = |count| Numbers { train: 0, count, number: 0 }.datagram(TOKEN);
        receiver.set_nonblocking(true).unwrap();
        serve(&sender, &request(TRAIN_MAX + 1), to, TOKEN);
        assert!(receiver.recv(&mut [0; DATAGRAM_BYTES]).is_err());
        serve(&sender, &request(1), to, TOKEN);
        assert!(receiver.recv(&mut [0; DATAGRAM_BYTES]).is_ok());
    }

    #[test]
    fn numbers_are_those_of_a_whole_datagram_with_the_token() {
        let numbers = Numbers { train: 1, count: 258, number: 7 };
        let datagram = numbers.datagram(TOKEN);
        assert_eq!(Numbers::of(&datagram, TOKEN), Some(numbers));
        for other in [&datagram[..DATAGRAM_BYTES - 1], &datagram[1..], &[], &[0; DATAGRAM_BYTES]] {
            assert_eq!(Numbers::of(other, TOKEN), None);
        }
        assert_eq!(Numbers::of(&datagram, "metachare-10"), None);
    }
}
