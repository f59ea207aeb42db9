//! Where the nodes of a run listen, and from where the launcher dials them: on the one address that the others
//! need, never on all.
//!
//! A node that ssh has started listens where ssh arrived: the name in the nodes file may be an alias that only
//! ssh knows, and what it stands for is known for sure when the connection is there. So the nodes of other hosts
//! are started first. Those of this machine then listen on the address that packets to the others leave from.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// First words of the sentences of a node that cannot listen, which end with `; ` and what mends it.
pub(super) const NO_ADDRESS: &str = "no address to listen on";
pub(super) const CANNOT_LISTEN: &str = "cannot listen on";

/// A node cannot know where others reach it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{NO_ADDRESS}: ssh says that it arrived at {arrived:?} (SSH_CONNECTION); set `address` of this \
     node in the nodes file"
)]
pub struct NoAddress {
    /// The address in the variable's value, empty if there is none.
    arrived: String,
}

/// The address for a node to listen on: the one that its launcher wants, or that ssh arrived at.
///
/// # Errors
/// If ssh did not tell.
pub fn listen_ip(wanted: Option<IpAddr>) -> Result<IpAddr, NoAddress> {
    match wanted {
        Some(ip) => Ok(ip),
        None => arrived_at(&std::env::var("SSH_CONNECTION").unwrap_or_default()),
    }
}

/// The server's address in a value of `SSH_CONNECTION`: "client port server port".
pub(super) fn arrived_at(connection: &str) -> Result<IpAddr, NoAddress> {
    let server = connection.split_whitespace().nth(2).unwrap_or_default();
    let ip = server.parse().map(|ip: IpAddr| ip.to_canonical()).ok().filter(|ip| !ip.is_unspecified());
    ip.ok_or_else(|| NoAddress { arrived: server.into() })
}

/// The address of this machine that packets to `remote` leave from.
///
/// # Errors
/// If there is no route to it.
pub fn source_ip(remote: IpAddr) -> io::Result<IpAddr> {
    let socket = UdpSocket::bind(SocketAddr::new(unspecified(remote.is_ipv6()), 0))?;
    // Connecting a UDP socket only looks up the route; nothing is sent.
    socket.connect(SocketAddr::new(remote, 9))?;
    Ok(socket.local_addr()?.ip())
}

/// The sentence for a node that cannot listen: where all ports that it may use are taken, the error says so itself.
pub fn cannot_listen(ip: IpAddr, error: &(dyn std::error::Error + 'static)) -> String {
    let cause =
        |error: &(dyn std::error::Error + 'static)| error.downcast_ref::<io::Error>().map(io::Error::kind);
    let kind = cause(error).or_else(|| error.source().and_then(cause));
    let mend = if kind == Some(io::ErrorKind::AddrInUse) {
        ""
    } else {
        "; set `address` of this node in the nodes file"
    };
    format!("{CANNOT_LISTEN} {ip}: {error}{mend}")
}

/// Where nodes of this machine listen, when those of other hosts are at `remotes`: one address, so the first
/// that can be meant for other hosts; loopback if there are no other hosts.
pub(crate) fn local_listen_ip(remotes: impl IntoIterator<Item = IpAddr>) -> IpAddr {
    let sources: Vec<IpAddr> = remotes.into_iter().filter_map(|remote| source_ip(remote).ok()).collect();
    let outward = sources.iter().find(|ip| !ip.is_loopback());
    outward.or(sources.first()).copied().unwrap_or(Ipv4Addr::LOCALHOST.into())
}

/// Where the launcher dials from to reach nodes at `remotes`: the address that all packets leave from if it is
/// one, otherwise any.
pub(crate) fn dialling_ip(remotes: impl IntoIterator<Item = IpAddr>) -> IpAddr {
    let sources: BTreeSet<IpAddr> = remotes.into_iter().filter_map(|remote| source_ip(remote).ok()).collect();
    match sources.first() {
        Some(only) if sources.len() == 1 => *only,
        // A socket for IPv6 also reaches IPv4.
        _ => unspecified(sources.iter().any(IpAddr::is_ipv6)),
    }
}

fn unspecified(is_ipv6: bool) -> IpAddr {
    if is_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_node_listens_where_ssh_arrived() {
        assert_eq!(arrived_at("10.0.0.1 4242 10.0.0.5 22"), Ok(ip("10.0.0.5")));
        assert_eq!(arrived_at("fd00::1 4242 fd00::5 22"), Ok(ip("fd00::5")));
        assert_eq!(arrived_at("::ffff:10.0.0.1 4242 ::ffff:10.0.0.5 22"), Ok(ip("10.0.0.5")));
        assert_eq!(listen_ip(Some(ip("10.0.0.7"))), Ok(ip("10.0.0.7")));
    }

    #[test]
    fn no_node_listens_on_all_addresses_for_want_of_one() {
        for said in
            ["", "10.0.0.1", "10.0.0.1 4242 host 22", "a b fe80::1%eth0 22", "a b 0.0.0.0 22", "a b :: 22"]
        {
            let error = arrived_at(said).unwrap_err().to_string();
            assert!(error.contains("set `address` of this node"), "{said:?}: {error}");
        }
    }

    #[test]
    fn nodes_here_listen_where_packets_to_the_others_leave_from() {
        assert_eq!(local_listen_ip([]), ip("127.0.0.1"));
        assert_eq!(local_listen_ip([ip("127.0.0.9")]), ip("127.0.0.1"));
    }

    #[test]
    fn the_launcher_takes_one_address_unless_nodes_are_reached_from_several() {
        assert_eq!(dialling_ip([ip("127.0.0.1"), ip("127.0.0.9")]), ip("127.0.0.1"));
        if source_ip(ip("::1")).is_ok() {
            assert_eq!(dialling_ip([ip("127.0.0.1"), ip("::1")]), ip("::"));
        }
    }
}
