//! Which ports a node may listen on, where a firewall lets only some through.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::str::FromStr;

/// Ports from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    first: u16,
    last: u16,
}

impl Ports {
    /// Whether there is one at all, and none is 0, which stands for any.
    #[must_use]
    pub fn is_sound(self) -> bool {
        0 < self.first && self.first <= self.last
    }

    /// A socket on the first of them that is free, or on any port where nothing is said.
    ///
    /// # Errors
    /// If none is free, or the address is not of this host.
    pub fn bind(ports: Option<Self>, ip: IpAddr) -> io::Result<UdpSocket> {
        let Some(Self { first, last }) = ports else { return UdpSocket::bind((ip, 0)) };
        let mut tries = (first..=last).map(|port| UdpSocket::bind((ip, port)));
        let is_taken = |tried: &io::Result<UdpSocket>| {
            tried.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
        };
        let none = || {
            let sentence =
                format!("all of the ports {first}-{last} are taken; widen `ports` in the nodes file");
            Err(io::Error::new(io::ErrorKind::AddrInUse, sentence))
        };
        tries.find(|tried| !is_taken(tried)).unwrap_or_else(none)
    }
}

impl FromStr for Ports {
    type Err = ();

    /// `40000-40100`, or one port.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse().map_err(|_| ());
        let ports = Self { first: port(first)?, last: port(last)? };
        if ports.is_sound() { Ok(ports) } else { Err(()) }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn ports_are_two_numbers_or_one() {
        let shown = |text: &str| text.parse().map(|ports: Ports| ports.to_string());
        assert_eq!(shown("40000-40100").as_deref(), Ok("40000-40100"));
        assert_eq!(shown("40000").as_deref(), Ok("40000-40000"));
        for text in ["", "-", "0", "0-9", "9-8", "1-65536", "a-b", "1-2-3"] {
            assert_eq!(shown(text), Err(()), "{text}");
        }
    }

    #[test]
    fn the_first_free_port_is_taken_and_none_outside() {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let any = Ports::bind(None, here).unwrap();
        let taken = any.local_addr().unwrap().port();
        let Some(next) = taken.checked_add(1) else { return };
        let two = Ports { first: taken, last: next };
        // Somebody else may have the next one.
        if let Ok(socket) = Ports::bind(Some(two), here) {
            assert_eq!(socket.local_addr().unwrap().port(), next);
        }
        let refused = Ports::bind(Some(Ports { first: taken, last: taken }), here).unwrap_err().to_string();
        assert_eq!(
            refused,
            format!("all of the ports {taken}-{taken} are taken; widen `ports` in the nodes file")
        );
    }
}
