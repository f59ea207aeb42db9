//! Links through shared memory: what those over QUIC do, they do too. Every wait has a deadline.

use super::*;
use crate::transport::tests::sharing;

#[test]
fn bulk_does_not_hold_up_what_is_small() {
    let ends = sharing(2, &LinkSettings::default());
    ends[0].fabric.send(NodeId(1), Class::Large, bulk(256 << 20)).unwrap();
    ends[0].fabric.send(NodeId(1), Class::Small, small(1)).unwrap();
    assert_eq!(ends[1].frame().1, Class::Small);
    assert_eq!(ends[1].frame().1, Class::Large);
    assert_eq!(ends[0].fabric.stats(NodeId(1)).queued_bytes, 0);
}

#[test]
fn a_backlog_holds_the_sender_back_and_lets_go() {
    let ends = sharing(2, &LinkSettings { backlog_limit_bytes: 10, ..LinkSettings::default() });
    ends[1].backlog.store(11, Ordering::SeqCst);
    ends[0].fabric.send(NodeId(1), Class::Small, small(2)).unwrap();
    ends[0].fabric.send(NodeId(1), Class::Control, small(3)).unwrap();
    assert_eq!(ends[1].frame().1, Class::Control);
    assert!(ends[1].is_quiet(Duration::from_millis(200)));
    ends[1].backlog.store(0, Ordering::SeqCst);
    assert_eq!(number(&ends[1].frame().2), 2);
}

#[test]
fn producing_faster_than_the_other_takes_is_refused() {
    let settings =
        LinkSettings { send_limit_bytes: 4 << 20, backlog_limit_bytes: 10, ..LinkSettings::default() };
    let ends = sharing(2, &settings);
    ends[1].backlog.store(11, Ordering::SeqCst);
    let send = |_: &u64| ends[0].fabric.send(NodeId(1), Class::Large, bulk(256 << 10)).is_err();
    assert!((0..100).any(|n| send(&n)), "what does not fit into memory waits, up to the limit");
    ends[1].backlog.store(0, Ordering::SeqCst);
    until("what waited is on its way", || ends[0].fabric.stats(NodeId(1)).queued_bytes == 0);
    assert!(!send(&0));
}

#[test]
fn a_peer_that_vanishes_is_reported_once_and_one_that_closes_is_not() {
    let settings = LinkSettings { idle_timeout: Duration::from_millis(600), ..LinkSettings::default() };
    let settings = LinkSettings { keep_alive: Duration::from_millis(100), ..settings };
    let mut ends = sharing(3, &settings);
    let [close, fabric] = [2, 0].map(|at| Arc::clone(&ends[at].fabric));
    ends[2].runtime.spawn(async move { close.close(Duration::from_secs(1)).await });
    until("the memory of who closed is given back", || !fabric.stats(NodeId(2)).is_shared);
    drop(ends.remove(1));
    let reason = ends[0].lost(NodeId(1));
    assert!(reason.contains("nothing was heard"), "{reason}");
    assert!(ends[0].is_quiet(Duration::from_millis(900)));
    assert!(!ends[0].fabric.stats(NodeId(1)).is_shared);
}

#[test]
fn who_closes_has_sent_everything() {
    for _ in 0..5 {
        let ends = sharing(2, &LinkSettings::default());
        for n in 0..2_000 {
            ends[0].fabric.send(NodeId(1), Class::Small, small(n)).unwrap();
        }
        ends[0].fabric.send(NodeId(1), Class::Large, bulk(20 << 20)).unwrap();
        let fabric = Arc::clone(&ends[0].fabric);
        ends[0].runtime.spawn(async move { fabric.close(LIMIT).await });
        let heard: Vec<Class> = (0..2_001).map(|_| ends[1].frame().1).collect();
        assert_eq!(heard.iter().filter(|class| **class == Class::Large).count(), 1);
    }
}

#[test]
fn only_who_wants_to_shares_and_all_others_talk_by_quic() {
    let authority = RunAuthority::new("test").unwrap();
    let ends: Vec<End> = [true, true, false]
        .into_iter()
        .zip(0..)
        .map(|(shares_memory, n)| {
            let settings = LinkSettings { shares_memory, ..LinkSettings::default() };
            End::new(&authority.issue(NodeId(n)).unwrap(), n, settings)
        })
        .collect();
    let addresses: Vec<_> = ends.iter().map(|e| Some(e.fabric.local_addr())).collect();
    ends.iter().for_each(|e| e.fabric.set_addresses(addresses.clone()));
    for (from, to) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
        ends[from].fabric.send(NodeId(to), Class::Small, small(7)).unwrap();
        assert_eq!(number(&ends[usize::from(to)].frame().2), 7);
    }
    until("two share", || ends[0].fabric.sharers() == [NodeId(1)] && ends[1].fabric.sharers() == [NodeId(0)]);
    ends[2].fabric.send(NodeId(0), Class::Small, small(8)).unwrap();
    ends[0].frame();
    assert_eq!(ends[2].fabric.sharers(), []);
}

#[test]
fn a_connection_whose_ends_share_memory_is_not_closed_as_idle() {
    let idle = Duration::from_millis(40);
    let ends = sharing(2, &LinkSettings { close_idle_after: Some(idle), ..LinkSettings::default() });
    assert!(ends[0].is_quiet(10 * idle));
    assert_eq!(ends[0].fabric.stats(NodeId(1)).connections, 1);
    ends[0].fabric.send(NodeId(1), Class::Small, small(1)).unwrap();
    assert_eq!(number(&ends[1].frame().2), 1);
}

/// Threads that look while others send, and all of them sleep now and then: nothing is lost, and nothing waits forever.
#[test]
fn whoever_looks_or_sleeps_everything_comes_in_order() {
    const EACH: u64 = 40_000;
    let ends = sharing(2, &LinkSettings::default());
    let is_over = Arc::new(AtomicBool::new(false));
    let looking: Vec<_> = (0..4u64)
        .map(|n| {
            let (fabric, is_over) = (Arc::clone(&ends[n as usize % 2].fabric), Arc::clone(&is_over));
            std::thread::spawn(move || {
                let mut random = Random::new(n);
                while !is_over.load(Ordering::Relaxed) {
                    fabric.begin_looking();
                    (0..random.below(300)).for_each(|_| {
                        fabric.look();
                    });
                    fabric.end_looking(random.below(2) == 0);
                    (0..random.below(30)).for_each(|_| std::thread::yield_now());
                }
            })
        })
        .collect();
    let sending: Vec<_> = [(0usize, 1u16), (1, 0)]
        .map(|(from, to)| {
            let fabric = Arc::clone(&ends[from].fabric);
            std::thread::spawn(move || {
                let mut random = Random::new(u64::from(to));
                for n in 0..EACH {
                    fabric.send(NodeId(to), Class::Small, small(n)).unwrap();
                    if random.below(200) == 0 {
                        fabric.send(NodeId(to), Class::Large, bulk(random.below(300_000) as usize)).unwrap();
                        (0..random.below(2_000)).for_each(|_| std::hint::spin_loop());
                    }
                }
                fabric.send(NodeId(to), Class::Control, small(EACH)).unwrap();
            })
        })
        .into();
    for end in &ends {
        let mut next = 0;
        while next < EACH {
            let (_, class, frame) = end.frame();
            if class == Class::Small {
                assert_eq!(number(&frame), next);
                next += 1;
            }
        }
    }
    sending.into_iter().for_each(|thread| thread.join().unwrap());
    is_over.store(true, Ordering::Relaxed);
    looking.into_iter().for_each(|thread| thread.join().unwrap());
}

/// An honest peer's memory that somebody damages: the link is lost with a sentence, and nothing worse.
#[test]
fn damaged_memory_ends_the_link_with_a_sentence() {
    for seed in 0..12 {
        let ends = sharing(2, &LinkSettings::default());
        let mut random = Random::new(seed);
        let near = Arc::clone(ends[0].fabric.peer(NodeId(1)).near.get().unwrap());
        for n in 0.. {
            ends[0].fabric.send(NodeId(1), Class::Small, small(n)).unwrap();
            ends[0].fabric.send(NodeId(1), Class::Large, bulk(1 + random.below(3_000_000) as usize)).unwrap();
            near.damage_memory(&mut random);
            let lost = ends[0].fabric.peer(NodeId(1)).is_lost() || ends[1].fabric.peer(NodeId(0)).is_lost();
            if lost {
                break;
            }
            assert!(n < 10_000, "seed {seed}: whatever is written there, nobody minds");
        }
        let sentences = [(0, 1), (1, 0)].map(|(at, other): (usize, u16)| {
            loop {
                match ends[at].next() {
                    crate::transport::tests::Event::Lost(peer, reason) => {
                        assert_eq!(peer, NodeId(other));
                        break reason;
                    }
                    crate::transport::tests::Event::Frame(..) => {}
                }
            }
        });
        let is_said =
            |s: &String| s.contains("is damaged") || s.contains("too long") || s.contains("messages where");
        assert!(sentences.iter().any(is_said), "seed {seed}: {sentences:?}");
    }
}
