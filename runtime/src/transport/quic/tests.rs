//! What only links over real sockets do. Every wait has a deadline.

use super::*;
use crate::frame::FrameLimits;
use crate::proto::sim::Random;
use crate::transport::tests::{End, LIMIT, bulk, ends, number, small, until};
use crate::transport::tls::RunAuthority;
use quinn::crypto::rustls::QuicClientConfig;
use std::time::Instant;

mod late;
mod line;
mod narrow;
mod near;

#[test]
fn bulk_does_not_hold_up_what_is_small() {
    let ends = ends(2, &LinkSettings::default());
    ends[0].fabric.send(NodeId(1), Class::Small, small(0)).unwrap();
    ends[1].frame();
    ends[0].fabric.send(NodeId(1), Class::Large, bulk(256 << 20)).unwrap();
    ends[0].fabric.send(NodeId(1), Class::Small, small(1)).unwrap();
    assert_eq!(ends[1].frame().1, Class::Small);
    assert_eq!(ends[1].frame().1, Class::Large);
}

#[test]
fn a_backlog_holds_the_sender_back_and_lets_go() {
    let ends = ends(2, &LinkSettings { backlog_limit_bytes: 10, ..LinkSettings::default() });
    // The backlog is there before anything is sent: a reader that already asks for more would take one chunk.
    ends[1].backlog.store(11, Ordering::SeqCst);
    ends[0].fabric.send(NodeId(1), Class::Small, small(2)).unwrap();
    ends[0].fabric.send(NodeId(1), Class::Control, small(3)).unwrap();
    assert_eq!(ends[1].frame().1, Class::Control);
    assert!(ends[1].is_quiet(Duration::from_millis(200)));
    ends[1].backlog.store(0, Ordering::SeqCst);
    assert_eq!(number(&ends[1].frame().2), 2);
}

#[test]
fn both_may_dial_at_once() {
    for _ in 0..10 {
        let ends = ends(2, &LinkSettings::default());
        ends[0].fabric.send(NodeId(1), Class::Small, small(1)).unwrap();
        ends[1].fabric.send(NodeId(0), Class::Small, small(2)).unwrap();
        assert_eq!(number(&ends[1].frame().2), 1);
        assert_eq!(number(&ends[0].frame().2), 2);
        for n in 3..50 {
            ends[0].fabric.send(NodeId(1), Class::Small, small(n)).unwrap();
            assert_eq!(number(&ends[1].frame().2), n);
        }
    }
}

#[test]
fn a_peer_that_vanishes_is_reported_once_and_one_that_closes_is_not() {
    let settings = LinkSettings { idle_timeout: Duration::from_millis(600), ..LinkSettings::default() };
    let settings = LinkSettings { keep_alive: Duration::from_millis(100), ..settings };
    let mut ends = ends(3, &settings);
    for to in [1, 2] {
        ends[0].fabric.send(NodeId(to), Class::Small, small(0)).unwrap();
        ends[usize::from(to)].frame();
    }
    // Dropping the runtime without closing is what a killed process looks like from outside.
    drop(ends.remove(1));
    let reason = ends[0].lost(NodeId(1));
    assert!(reason.contains("nothing was heard"), "{reason}");
    assert!(ends[0].is_quiet(Duration::from_millis(900)));
}

#[test]
fn strangers_get_nowhere_and_disturb_nothing() {
    let settings = LinkSettings { handshake_limit: Duration::from_millis(500), ..LinkSettings::default() };
    let ends = ends(2, &settings);
    let target = ends[1].fabric.local_addr();
    let garbage = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let foreign = RunAuthority::new("test").unwrap().issue(NodeId(0)).unwrap();
    let stranger = End::new(&foreign, 0, settings);
    stranger.fabric.set_addresses(vec![None, Some(target)]);
    stranger.fabric.send(NodeId(1), Class::Small, small(666)).unwrap();
    let started = Instant::now();
    for n in 0..2_000u64 {
        let noise: Vec<u8> = (0..(n % 1400)).map(|i| (n.wrapping_mul(31) ^ (i * 7)) as u8).collect();
        garbage.send_to(&noise, target).unwrap();
        if n % 20 == 0 {
            ends[0].fabric.send(NodeId(1), Class::Small, small(n)).unwrap();
            assert_eq!(number(&ends[1].frame().2), n, "only the run's own frames arrive");
        }
    }
    let reason = stranger.lost(NodeId(1));
    assert!(reason.contains("nobody answered"), "{reason}");
    assert!(started.elapsed() < LIMIT);
    until("all are counted", || ends[1].fabric.strangers() > 2_000);
}

#[test]
fn who_only_dials_gives_no_answer_to_anybody() {
    let authority = RunAuthority::new("test").unwrap();
    let end = |n: u16, is_dialled: bool| {
        let settings = LinkSettings {
            is_dialled,
            // A handshake without an answer lasts so long.
            idle_timeout: Duration::from_millis(500),
            keep_alive: Duration::from_millis(100),
            ..LinkSettings::default()
        };
        End::new(&authority.issue(NodeId(n)).unwrap(), n, settings)
    };
    let (dialler, member, friend) = (end(0, false), end(1, true), end(2, true));
    dialler.fabric.set_addresses(vec![None, Some(member.fabric.local_addr())]);
    dialler.fabric.send(NodeId(1), Class::Small, small(1)).unwrap();
    assert_eq!(number(&member.frame().2), 1);
    member.fabric.send(NodeId(0), Class::Small, small(2)).unwrap();
    assert_eq!(number(&dialler.frame().2), 2, "over the link that it has dialled");
    friend.fabric.set_addresses(vec![Some(dialler.fabric.local_addr())]);
    friend.fabric.send(NodeId(0), Class::Small, small(3)).unwrap();
    let reason = friend.lost(NodeId(0));
    assert!(reason.contains("nobody answered"), "{reason}");
}

#[test]
fn a_frame_over_the_limit_is_refused_at_home_and_abroad() {
    let over = || Frame { body: vec![0; 101].into(), attachments: vec![] };
    let frames = FrameLimits { body_bytes: 100, ..FrameLimits::default() };
    let strict = LinkSettings { frames, ..LinkSettings::default() };
    let home = ends(2, &strict);
    let refused = home[0].fabric.send(NodeId(1), Class::Small, over()).unwrap_err().to_string();
    assert!(refused.contains("101 B beside its buffers, over the limit of 100 B"), "{refused}");
    home[0].fabric.send(NodeId(1), Class::Small, small(1)).unwrap();
    assert_eq!(number(&home[1].frame().2), 1, "the link is as good as before");

    let authority = RunAuthority::new("test").unwrap();
    let issue = |n| authority.issue(NodeId(n)).unwrap();
    let (lax, strict) = (End::new(&issue(0), 0, LinkSettings::default()), End::new(&issue(1), 1, strict));
    lax.fabric.set_addresses(vec![None, Some(strict.fabric.local_addr())]);
    lax.fabric.send(NodeId(1), Class::Small, over()).unwrap();
    let reason = strict.lost(NodeId(0));
    assert!(reason.contains("node 0 sent a message that is too long: it has 101 B"), "{reason}");
    let reason = lax.lost(NodeId(1));
    assert!(reason.contains("it gave the link up: node 0 sent a message that is too long"), "{reason}");
}

#[test]
fn producing_faster_than_the_other_takes_is_refused() {
    let settings =
        LinkSettings { send_limit_bytes: 1 << 20, backlog_limit_bytes: 10, ..LinkSettings::default() };
    let ends = ends(2, &settings);
    let refused = ends[0].fabric.send(NodeId(1), Class::Large, bulk(2 << 20)).unwrap_err().to_string();
    assert!(refused.starts_with("2 MiB would wait for it then, over the limit of 1 MiB"), "{refused}");
    assert_eq!(ends[0].fabric.stats(NodeId(1)).queued_bytes, 0, "it is not kept");
    ends[1].backlog.store(11, Ordering::SeqCst);
    let send = |_: &u64| ends[0].fabric.send(NodeId(1), Class::Large, bulk(256 << 10)).is_err();
    assert!((0..1000).any(|n| send(&n)), "the other takes nothing");
    ends[0].fabric.send(NodeId(1), Class::Control, small(3)).unwrap();
    assert_eq!(number(&ends[1].frame().2), 3, "nodes can still say that to each other");
}

#[test]
fn what_is_held_back_waits_at_its_sender_and_arrives_later() {
    let ends = ends(2, &LinkSettings { backlog_limit_bytes: 10, ..LinkSettings::default() });
    ends[1].backlog.store(11, Ordering::SeqCst);
    let window = u64::from(LinkSettings::default().stream_window_bytes);
    (0..32).for_each(|_| ends[0].fabric.send(NodeId(1), Class::Large, bulk(1 << 20)).unwrap());
    until("the window is full", || {
        ends[0].fabric.stats(NodeId(1)).queued_bytes <= (32 << 20) - window + 4096
    });
    assert!(ends[1].is_quiet(Duration::from_millis(100)));
    assert!(ends[0].fabric.stats(NodeId(1)).queued_bytes > (27 << 20), "more than a window was taken");
    ends[1].backlog.store(0, Ordering::SeqCst);
    for _ in 0..32 {
        assert_eq!(ends[1].frame().2.len_bytes(), 1 << 20);
    }
    let (sent, received) = (ends[0].fabric.stats(NodeId(1)), ends[1].fabric.total_stats());
    assert_eq!((sent.frames_sent, sent.bytes_sent, sent.queued_bytes), (32, 32 << 20, 0));
    assert_eq!((received.frames_received, received.bytes_received), (32, 32 << 20));
}

#[test]
fn closing_sends_what_is_queued_and_is_no_loss_for_either_end() {
    let ends = ends(2, &LinkSettings::default());
    (0..5_000).for_each(|n| ends[0].fabric.send(NodeId(1), Class::Small, small(n)).unwrap());
    ends[0].fabric.send(NodeId(1), Class::Large, bulk(32 << 20)).unwrap();
    let fabric = &ends[0].fabric;
    fabric.runtime.block_on(fabric.close(LIMIT));
    fabric.send(NodeId(1), Class::Small, small(9)).unwrap();
    let mut next = 0;
    for _ in 0..5_001 {
        let (_, class, frame) = ends[1].frame();
        if class == Class::Small {
            assert_eq!(number(&frame), next);
            next += 1;
        }
    }
    ends[1].fabric.send(NodeId(0), Class::Small, small(1)).unwrap();
    assert!(ends[0].is_quiet(Duration::from_millis(200)));
    assert!(ends[1].is_quiet(Duration::from_millis(200)));
}

#[test]
fn a_node_is_heard_before_it_is_known_where_it_is_and_answered_on_its_own_connection() {
    let authority = RunAuthority::new("test").unwrap();
    let end = |n| End::new(&authority.issue(NodeId(n)).unwrap(), n, LinkSettings::default());
    let (hidden, open) = (end(2), end(1));
    open.fabric.send(NodeId(2), Class::Small, small(7)).unwrap();
    hidden.fabric.set_addresses(vec![None, Some(open.fabric.local_addr()), None]);
    hidden.fabric.send(NodeId(1), Class::Small, small(8)).unwrap();
    assert_eq!(number(&open.frame().2), 8);
    assert_eq!(number(&hidden.frame().2), 7);
}

/// Dials `to` at the address of `target` as whoever `identity` says, and says how it ends.
fn dial(identity: &NodeIdentity, me: u16, target: &End, to: u16) -> String {
    let stranger = End::new(identity, me, LinkSettings::default());
    let mut addresses = vec![None; usize::from(to)];
    addresses.push(Some(target.fabric.local_addr()));
    stranger.fabric.set_addresses(addresses);
    stranger.fabric.send(NodeId(to), Class::Control, small(666)).unwrap();
    stranger.lost(NodeId(to))
}

#[test]
fn only_nodes_of_the_run_are_let_in_and_only_under_their_own_name() {
    let day = Duration::from_secs(24 * 3600);
    let authority = RunAuthority::new("test").unwrap();
    let issue = |n| authority.issue(NodeId(n)).unwrap();
    let target = End::new(&issue(1), 1, LinkSettings::default());
    target.fabric.set_addresses(vec![None; 3]);
    let refused = |identity: &NodeIdentity, me, to| {
        let before = target.fabric.strangers();
        let reason = dial(identity, me, &target, to);
        until("it is counted", || target.fabric.strangers() > before);
        reason
    };
    let reason = refused(&RunAuthority::new("test").unwrap().issue(NodeId(0)).unwrap(), 0, 1);
    assert!(reason.contains("nobody answered"), "{reason}");
    let reason = refused(&issue(2), 2, 0);
    assert!(reason.contains("nobody answered"), "it is not the one that is meant: {reason}");
    let reason = refused(&authority.issue_for(NodeId(0), day..2 * day).unwrap(), 0, 1);
    assert!(reason.contains("certificate"), "{reason}");
    refused(&issue(3), 3, 1);
    assert!(target.is_quiet(Duration::from_millis(100)), "none of this is anything to the run");
    // And an expired certificate is no better in the node that is dialled.
    let expired =
        End::new(&authority.issue_for(NodeId(2), day..2 * day).unwrap(), 2, LinkSettings::default());
    let reason = dial(&issue(0), 0, &expired, 2);
    assert!(reason.contains("certificate"), "{reason}");
}

/// What dials with this certificate, and knocks at the door of node 1 as node 0 does.
fn knocking(identity: &NodeIdentity, client: QuicClientConfig) -> ClientConfig {
    let mut config = ClientConfig::new(Arc::new(client));
    let knock = Door::new(identity.secret(), NodeId(0), false).knock(NodeId(1));
    config.initial_dst_cid_provider(Arc::new(move || knock));
    config
}

/// How a dial to `target` ends with this certificate, for whoever is called so.
fn end_of_dial(identity: &NodeIdentity, client: QuicClientConfig, target: &End, name: &str) -> String {
    let config = knocking(identity, client);
    let end = target.fabric.runtime.block_on(async {
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        // A client believes to be through before the other end has asked for its certificate.
        match endpoint.connect_with(config, target.fabric.local_addr(), name).unwrap().await {
            Ok(connection) => connection.closed().await,
            Err(error) => error,
        }
    });
    end.to_string()
}

#[test]
fn who_knocks_still_needs_a_certificate_and_believes_nobody_without_the_right_one() {
    let authority = RunAuthority::new("test").unwrap();
    let identity = authority.issue(NodeId(0)).unwrap();
    let issued = || End::new(&authority.issue(NodeId(1)).unwrap(), 1, LinkSettings::default());
    let (target, another) = (issued(), issued());
    let end = end_of_dial(&identity, identity.anonymous_client(), &target, &identity.name_of(NodeId(1)));
    assert!(end.contains("certificate"), "{end}");
    assert_eq!(target.fabric.strangers(), 1);
    let (client, _) = identity.configs().unwrap();
    let end = end_of_dial(&identity, client, &another, &identity.name_of(NodeId(2)));
    assert!(end.contains("certificate"), "another node answers: {end}");
}

/// A first datagram for node 1, as whoever `identity` says sends it.
fn first_datagram(identity: &NodeIdentity, me: u16) -> Vec<u8> {
    let heard = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    heard.set_read_timeout(Some(LIMIT)).unwrap();
    let dialling = End::new(identity, me, LinkSettings::default());
    dialling.fabric.set_addresses(vec![None, Some(heard.local_addr().unwrap())]);
    dialling.fabric.send(NodeId(1), Class::Small, small(666)).unwrap();
    let mut first = vec![0; 2048];
    let length = heard.recv(&mut first).unwrap();
    first.truncate(length);
    first
}

#[test]
fn strangers_get_no_byte_from_nodes_or_launchers() {
    let authority = RunAuthority::new("test").unwrap();
    let issue = |n| authority.issue(NodeId(n)).unwrap();
    let settings = |is_dialled| LinkSettings { is_dialled, ..LinkSettings::default() };
    let (launcher, node) = (End::new(&issue(0), 0, settings(false)), End::new(&issue(1), 1, settings(true)));
    launcher.fabric.set_addresses(vec![None, Some(node.fabric.local_addr())]);
    launcher.fabric.send(NodeId(1), Class::Small, small(1)).unwrap();
    assert_eq!(number(&node.frame().2), 1);
    let foreign = RunAuthority::new("test").unwrap().issue(NodeId(2)).unwrap();
    let sound = first_datagram(&foreign, 2);
    // Of another version of QUIC; with what pretends to be a token; what looks like a packet of a connection.
    let mut version = sound.clone();
    version[1..5].copy_from_slice(&[0x0a; 4]);
    let mut token = sound.clone();
    let token_at = 6 + usize::from(token[5]) + 1 + usize::from(token[6 + usize::from(token[5])]);
    token[token_at] = 32;
    let mut later = sound.clone();
    later[0] = 0x40;
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for target in [&launcher, &node] {
        for datagram in [&sound, &version, &token, &later] {
            let before = target.fabric.strangers();
            socket.send_to(datagram, target.fabric.local_addr()).unwrap();
            until("it has arrived", || target.fabric.strangers() > before);
        }
    }
    // Longer than an answer would be held back.
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let answer = socket.recv(&mut [0; 2048]);
    assert!(answer.is_err(), "{answer:?} bytes came back");
}

#[test]
fn under_a_thousand_handshakes_of_strangers_nodes_join_and_talk() {
    let authority = RunAuthority::new("test").unwrap();
    let end = |n| End::new(&authority.issue(NodeId(n)).unwrap(), n, LinkSettings::default());
    let ends = [end(0), end(1)];
    // It knows nobody's address, as before the launcher's welcome.
    let at = Some(ends[1].fabric.local_addr());
    ends[0].fabric.set_addresses(vec![None, at]);
    let foreign = RunAuthority::new("test").unwrap().issue(NodeId(0)).unwrap();
    let target = ends[1].fabric.local_addr();
    let flood = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
            let mut config = ClientConfig::new(Arc::new(foreign.configs().unwrap().0));
            let hasty = LinkSettings { idle_timeout: Duration::from_millis(250), ..LinkSettings::default() };
            config.transport_config(hasty.transport(target.ip()));
            let name = foreign.name_of(NodeId(1));
            let dial = || endpoint.connect_with(config.clone(), target, &name).unwrap();
            let dialled: Vec<_> = (0..1_000).map(|_| tokio::spawn(dial())).collect();
            let mut let_in = 0;
            for attempt in dialled {
                let_in += u32::from(attempt.await.unwrap().is_ok());
            }
            let_in
        })
    });
    let mut n = 0;
    while !flood.is_finished() || n < 100 {
        ends[0].fabric.send(NodeId(1), Class::Small, small(n)).unwrap();
        assert_eq!(number(&ends[1].frame().2), n, "only the run's own frames arrive");
        n += 1;
        if n.is_multiple_of(10) && n <= 200 {
            let newcomer = u16::try_from(n).unwrap();
            let dialling = end(newcomer);
            dialling.fabric.set_addresses(vec![None, at]);
            dialling.fabric.send(NodeId(1), Class::Small, small(n)).unwrap();
            let (from, _, frame) = ends[1].frame();
            assert_eq!((from, number(&frame)), (NodeId(newcomer), n));
            dialling.fabric.runtime.block_on(dialling.fabric.close(LIMIT));
        }
    }
    assert_eq!(flood.join().unwrap(), 0);
    assert!(ends[0].is_quiet(Duration::from_millis(10)) && ends[1].is_quiet(Duration::from_millis(10)));
}

/// Sound first datagrams, again and again, and damaged ones: of a stranger, and of somebody who has overheard a node.
#[test]
fn first_datagrams_of_any_content_disturb_nothing() {
    let authority = RunAuthority::new("test").unwrap();
    let end = |n| End::new(&authority.issue(NodeId(n)).unwrap(), n, LinkSettings::default());
    let ends = [end(0), end(1)];
    let target = ends[1].fabric.local_addr();
    ends[0].fabric.set_addresses(vec![None, Some(target)]);
    let foreign = RunAuthority::new("test").unwrap();
    for authority in [&foreign, &authority] {
        let first = first_datagram(&authority.issue(NodeId(2)).unwrap(), 2);
        let (mut random, socket) = (Random::new(51), std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        for n in 0..10_000 {
            socket.send_to(&random.mutated(&first), target).unwrap();
            if n % 100 == 0 {
                ends[0].fabric.send(NodeId(1), Class::Small, small(n)).unwrap();
                assert_eq!(number(&ends[1].frame().2), n, "only the run's own frames arrive");
            }
        }
    }
}

#[test]
fn a_node_that_opens_a_stream_wrongly_is_named() {
    let authority = RunAuthority::new("test").unwrap();
    for (said, sentence) in [(&[9][..], "opened a stream of unknown class 9"), (&[], "and said nothing")] {
        let identity = authority.issue(NodeId(0)).unwrap();
        let target = End::new(&authority.issue(NodeId(1)).unwrap(), 1, LinkSettings::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
            let config = knocking(&identity, identity.configs().unwrap().0);
            let name = identity.name_of(NodeId(1));
            let connection =
                endpoint.connect_with(config, target.fabric.local_addr(), &name).unwrap().await.unwrap();
            let mut stream = connection.open_uni().await.unwrap();
            stream.write_all(said).await.unwrap();
            stream.finish().unwrap();
            connection.closed().await;
        });
        let reason = target.lost(NodeId(0));
        assert!(reason.contains("node 0") && reason.contains(sentence), "{reason}");
    }
}

#[test]
fn every_congestion_control_brings_everything() {
    for congestion in [Congestion::Auto, Congestion::Cubic, Congestion::Bbr] {
        let ends = ends(2, &LinkSettings { congestion, ..LinkSettings::default() });
        (0..8).for_each(|_| ends[0].fabric.send(NodeId(1), Class::Large, bulk(4 << 20)).unwrap());
        (0..8).for_each(|_| assert_eq!(ends[1].frame().2.len_bytes(), 4 << 20, "{congestion:?}"));
        ends[1].fabric.send(NodeId(0), Class::Small, small(5)).unwrap();
        assert_eq!(number(&ends[0].frame().2), 5);
    }
}

fn hasty() -> LinkSettings {
    LinkSettings { close_idle_after: Some(Duration::from_millis(4)), ..LinkSettings::default() }
}

fn connections(end: &End, peer: u16) -> u32 {
    end.fabric.stats(NodeId(peer)).connections
}

#[test]
fn an_idle_connection_is_closed_and_the_next_frame_opens_another() {
    let ends = ends(2, &hasty());
    for n in 0..10 {
        let (from, to) = if n % 3 == 0 { (1, 0) } else { (0, 1) };
        ends[from].fabric.send(NodeId(to), Class::Small, small(n)).unwrap();
        assert_eq!(number(&ends[usize::from(to)].frame().2), n);
        until("the connection is closed", || connections(&ends[0], 1) + connections(&ends[1], 0) == 0);
    }
    assert!(ends.iter().all(|end| end.is_quiet(Duration::from_millis(20))), "nobody is taken for lost");
}

/// Both ends send in bursts, with pauses about as long as connections live.
#[test]
fn nothing_is_lost_or_overtaken_while_connections_close_and_open() {
    let ends = ends(2, &hasty());
    let senders: Vec<_> = [(0, 1), (1, 0)]
        .map(|(me, to): (u16, u16)| {
            let fabric = Arc::clone(&ends[usize::from(me)].fabric);
            std::thread::spawn(move || {
                let mut random = Random::new(u64::from(me));
                for n in 0..3_000 {
                    let class = [Class::Control, Class::Small, Class::Large][usize::try_from(n % 3).unwrap()];
                    fabric.send(NodeId(to), class, small(n)).unwrap();
                    if random.below(8) == 0 {
                        std::thread::sleep(Duration::from_micros(random.below(12_000)));
                    }
                }
            })
        })
        .into();
    for end in &ends {
        let mut next = [0, 1, 2];
        for _ in 0..3_000 {
            let (_, class, frame) = end.frame();
            assert_eq!(number(&frame), next[class as usize], "{class:?}");
            next[class as usize] += 3;
        }
    }
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    until("all is closed", || connections(&ends[0], 1) + connections(&ends[1], 0) == 0);
    assert!(ends.iter().all(|end| end.is_quiet(Duration::from_millis(20))));
}

#[test]
fn who_cannot_be_dialled_again_keeps_its_connection() {
    let authority = RunAuthority::new("test").unwrap();
    let end = |n: u16, is_dialled| {
        End::new(&authority.issue(NodeId(n)).unwrap(), n, LinkSettings { is_dialled, ..hasty() })
    };
    let (launcher, node) = (end(0, false), end(1, true));
    launcher.fabric.set_addresses(vec![None, Some(node.fabric.local_addr())]);
    node.fabric.set_addresses(vec![None, Some(node.fabric.local_addr())]);
    launcher.fabric.send(NodeId(1), Class::Small, small(1)).unwrap();
    assert_eq!(number(&node.frame().2), 1);
    assert!(node.is_quiet(Duration::from_millis(100)));
    assert_eq!((connections(&launcher, 1), connections(&node, 0)), (1, 1));
    node.fabric.send(NodeId(0), Class::Small, small(2)).unwrap();
    assert_eq!(number(&launcher.frame().2), 2);
}

#[test]
fn a_node_that_dies_without_a_connection_is_missed_when_it_is_needed() {
    let settings = LinkSettings { idle_timeout: Duration::from_millis(600), ..hasty() };
    let mut ends = ends(2, &LinkSettings { keep_alive: Duration::from_millis(100), ..settings });
    ends[0].fabric.send(NodeId(1), Class::Small, small(1)).unwrap();
    ends[1].frame();
    until("the connection is closed", || connections(&ends[0], 1) + connections(&ends[1], 0) == 0);
    drop(ends.remove(1));
    assert!(ends[0].is_quiet(Duration::from_millis(900)));
    ends[0].fabric.send(NodeId(1), Class::Small, small(2)).unwrap();
    let reason = ends[0].lost(NodeId(1));
    assert!(reason.contains("nobody answered"), "{reason}");
}
