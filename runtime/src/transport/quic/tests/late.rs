//! Packets that are overtaken for so long that QUIC takes them for lost and sends again what they hold.

use super::line::{Lines, Path};
use super::narrow::in_virtual_time;
use super::*;
use tokio::time::sleep;

const MS: Duration = Duration::from_millis(1);

/// A connection of node 0 over a line, as both ends see it, and what keeps it.
async fn connected() -> (Lines, [Endpoint; 2], [quinn::Connection; 2]) {
    let lines = Lines::new(&[1e9; 2], Path { delay: 5 * MS, lost_per_mille: 0, queue_min_bytes: 1e6 });
    let authority = RunAuthority::new("test").unwrap();
    let identities = [0, 1].map(|n| authority.issue(NodeId(n)).unwrap());
    let endpoint = |n: usize| {
        let parts = lines.hosts[n].parts(&LinkSettings::default(), &identities[n]);
        let (host, runtime) = (Arc::clone(&lines.hosts[n]), Arc::new(TokioRuntime));
        let mut endpoint =
            Endpoint::new_with_abstract_socket(parts.endpoint, Some(parts.server), host, runtime).unwrap();
        endpoint.set_default_client_config(parts.client);
        endpoint
    };
    let endpoints = [endpoint(0), endpoint(1)];
    let dialled = endpoints[0]
        .connect(lines.hosts[1].local_addr().unwrap(), &identities[0].name_of(NodeId(1)))
        .unwrap();
    let accepted = async { endpoints[1].accept().await.unwrap().await };
    let (dialled, accepted) = tokio::join!(dialled, accepted);
    (lines, endpoints, [dialled.unwrap(), accepted.unwrap()])
}

/// In a run over hosts this ended a node: quinn counted the first byte twice, and took more for read than had come.
#[test]
fn what_was_sent_twice_before_anybody_read_it_is_read_once() {
    let word: Vec<u8> = (1..=33).collect();
    in_virtual_time(async {
        let (lines, _endpoints, [from, to]) = connected().await;
        // Until then QUIC finds out how long datagrams may be.
        sleep(1000 * MS).await;
        lines.hosts[0].hold_next(300 * MS);
        let mut stream = from.open_uni().await.unwrap();
        stream.write_all(&word).await.unwrap();
        stream.finish().unwrap();
        sleep(5 * MS).await;
        let mut another = from.open_uni().await.unwrap();
        another.write_all(b"overtakes").await.unwrap();
        sleep(600 * MS).await;
        assert_eq!(from.stats().path.lost_packets, 1, "QUIC took the packet for lost");
        assert_eq!(to.stats().frame_rx.stream, 3, "it came all the same, and what it held came again");
        let mut stream = to.accept_uni().await.unwrap();
        let mut first = [0];
        stream.read_exact(&mut first).await.unwrap();
        let rest = accept::read_rest(&mut stream, word.len() - 1).await.unwrap();
        assert_eq!([&first[..], &rest.expect("it is not more")].concat(), word);
    });
}

#[test]
fn who_says_more_than_there_is_to_say_is_not_read_to_the_end() {
    in_virtual_time(async {
        let (_lines, _endpoints, [from, to]) = connected().await;
        let mut stream = from.open_uni().await.unwrap();
        stream.write_all(&[7; 100_000]).await.unwrap();
        let mut stream = to.accept_uni().await.unwrap();
        assert_eq!(accept::read_rest(&mut stream, 99_999).await.unwrap(), None);
    });
}
