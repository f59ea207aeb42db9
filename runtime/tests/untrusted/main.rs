//! Nothing that comes by a link is trusted: random and mutated frames against the codec and against nodes at
//! work, and each refusal by name. No input makes anything panic, hang or take a lot of memory.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod program;
mod refusals;
mod run;

use loadbalance::balance::Mobility;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use program::pack;
use run::{Run, Sent};
use runtime::codec::{
    Announcement, ControlToLauncher, ControlToNode, Header, Order, Refusal, Spread, WorkToLauncher,
    WorkToNode, decode, encode,
};
use runtime::envelope::{CallbackTarget, CollectionId, ElementIndex, Packed, PeOrder, ToPe};
use runtime::frame::{Class, Frame, Receiver as _};
use runtime::ids::{ElementId, NodeId, PeId};
use runtime::loads::{Amount, ChareLoad, NodeLoads, PeLoads, Traffic, Whereabouts};
use runtime::monitor::wire::{MonitorEvent, NodeInfo, NodeSnapshot, OutputLine, PeSnapshot, RunInfo};
use runtime::priority::{Bits, Priority};
use runtime::proto::sim::Random;
use std::sync::{Mutex, Once};

/// Frames thrown at each thing under test.
const INPUTS: u64 = 10_000;
/// How much memory this process may take above what it has at the start of a test.
const ROOM_BYTES: u64 = 256 << 20;

/// Where something panicked that must not.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// From here on a huge allocation aborts the test, and panics are written down, also those that a PE catches.
fn watch_over_memory_and_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let used = status.lines().find_map(|line| line.strip_prefix("VmData:")).unwrap();
        let used_kib: u64 = used.split_whitespace().next().unwrap().parse().unwrap();
        let (_, hard) = getrlimit(Resource::RLIMIT_DATA).unwrap();
        setrlimit(Resource::RLIMIT_DATA, (used_kib << 10) + ROOM_BYTES, hard).unwrap();
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.lock().unwrap_or_else(|e| e.into_inner()).push(info.to_string());
            usual(info);
        }));
    });
}

fn assert_no_panics() {
    // A copy: this panic too is written down, which waits for the original.
    let panics = PANICS.lock().unwrap_or_else(|e| e.into_inner()).clone();
    assert!(panics.is_empty(), "{panics:#?}");
}

/// Frames that a sound run sends, and some of the kinds that it had no reason for.
fn sound_frames() -> Vec<Sent> {
    let mut run = Run::new();
    run.listen();
    let made = run.begin(30);
    let slots = run.calm();
    assert_eq!(slots.len() as u64, made.slots, "{slots:?}");
    assert_eq!((slots[&1], slots[&3]), (20 * 3, 20 * 3), "a sum over all elements");
    run.nodes[1].publish();
    let mut frames = run.heard();
    run.end();
    // Most are words of the search for rest, all alike; a few suffice.
    let is_probe = |sent: &Sent| {
        let frame = || sent.frame.clone();
        matches!(decode(frame()), Ok((ControlToNode::Quiescence(_), _)))
            || matches!(decode(frame()), Ok((ControlToLauncher::Quiescence(_), _)))
    };
    let (probes, others): (Vec<Sent>, Vec<Sent>) = frames.drain(..).partition(is_probe);
    frames.extend(others.into_iter().chain(probes.into_iter().take(12)));
    let element = CallbackTarget::Element {
        collection: made.cells,
        index: ElementIndex([1, 1, 0]),
        entry: program::ADD,
        home: None,
    };
    rare(&mut frames, &ControlToLauncher::Fault("a sentence".into()));
    rare(&mut frames, &ControlToLauncher::LinkLost(NodeId(2), "why".into()));
    rare(&mut frames, &ControlToLauncher::Speed(PeId(1), 2.5, 4.0));
    rare(&mut frames, &ControlToNode::Order(Order::End));
    rare(&mut frames, &ControlToNode::Order(Order::ToPe(PeId(2), PeOrder::NameHeld)));
    rare(&mut frames, &ControlToNode::InitOver(false));
    let message = ToPe::Relay(Box::new(element));
    let priority = Priority::from((-3, Bits::new().followed_by(0x1234, 13)));
    rare(&mut frames, &WorkToNode::to_pe(PeId(2), priority, message));
    rare(&mut frames, &WorkToLauncher::Result(77));
    let moved = ElementId { collection: made.cells, index: ElementIndex([1, 1, 0]) };
    let order = ControlToNode::Order(Order::ToPe(PeId(1), PeOrder::Migrate));
    rare_with(&mut frames, &order, pack(&vec![(moved, PeId(2))]));
    let mobility = Mobility::one_of([0, 2]);
    let chare = ChareLoad {
        element: moved,
        cpu_ns: 5,
        bytes: 6,
        whereabouts: Whereabouts::Ended,
        mobility,
        remaining: Some(2.0),
    };
    let (wall_ns, cpu_part, fixed_ns, chares) = (7, Some(0.5), 8, vec![chare]);
    let other_traffic = Amount { messages: 3, bytes: 40 };
    let traffic = vec![Traffic { from: moved, to: moved, amount: other_traffic }];
    let loads = PeLoads {
        pe: PeId(0),
        wall_ns,
        cpu_part,
        probed: cpu_part,
        fixed_ns,
        chares,
        traffic,
        other_traffic,
    };
    rare_with(
        &mut frames,
        &WorkToLauncher::Loads,
        pack(&NodeLoads { bytes_per_s: 9.0, room_bytes: Some(7), pes: vec![loads] }),
    );
    frames
}

/// Adds a frame for each of three nodes, whether or not it is for such a one.
fn rare<H: Header>(frames: &mut Vec<Sent>, header: &H) {
    rare_with(frames, header, pack(&1u64));
}

fn rare_with<H: Header>(frames: &mut Vec<Sent>, header: &H, payload: Packed) {
    let (frame, class) = (encode(header, payload), H::class(8));
    let sent = |to| Sent { from: NodeId((to + 1) % 3), to: NodeId(to), class, frame: frame.clone() };
    frames.extend((0..3).map(sent));
}

/// A frame that is random, or made from a sound one.
fn hostile(random: &mut Random, sound: &[Sent]) -> Sent {
    let pick = usize::try_from(random.below(sound.len() as u64)).unwrap();
    let mut sent = sound[pick].clone();
    let body = if random.below(8) == 0 { random.bytes(200) } else { random.mutated(&sent.frame.body) };
    sent.frame = Frame { body: body.into(), attachments: sent.frame.attachments };
    if random.below(4) == 0 {
        sent.from = random.node(6);
    }
    if random.below(8) == 0 {
        sent.class = random.class();
    }
    if random.below(8) == 0 {
        sent.to = random.node(4);
    }
    sent
}

#[test]
fn frames_of_any_content_decode_or_are_refused() {
    watch_over_memory_and_panics();
    let (mut random, sound) = (Random::new(21), sound_frames());
    let mut decoded = [0; 4];
    for _ in 0..INPUTS {
        let frame = hostile(&mut random, &sound).frame;
        // Of the four kinds of receivers and streams a frame can be decoded for one at most.
        let kinds = [
            comes_out_as_it_went_in::<WorkToNode>(&frame),
            comes_out_as_it_went_in::<WorkToLauncher>(&frame),
            comes_out_as_it_went_in::<ControlToNode>(&frame),
            comes_out_as_it_went_in::<ControlToLauncher>(&frame),
        ];
        assert!(kinds.iter().filter(|is_one| **is_one).count() <= 1, "{frame:?}");
        decoded.iter_mut().zip(kinds).for_each(|(count, is_one)| *count += u64::from(is_one));
    }
    assert!(decoded.iter().all(|count| *count > INPUTS / 100), "{decoded:?} decoded");
    assert!(decoded.iter().sum::<u64>() > INPUTS / 10, "{decoded:?} decoded");
}

/// Whether a frame begins with such a header; then the header must be the same when it has been encoded again.
fn comes_out_as_it_went_in<H: Header>(frame: &Frame) -> bool {
    let Ok((header, payload)) = decode::<H>(frame.clone()) else { return false };
    assert!(frame.body.ends_with(&payload.body), "what is left over is the payload");
    let again = encode(&header, Packed::default());
    let (same, _) = decode::<H>(again).expect("what was decoded encodes");
    assert_eq!(format!("{header:?}"), format!("{same:?}"));
    true
}

/// Announced lengths are believed only as far as there are bytes.
#[test]
fn announced_lengths_cost_nothing() {
    watch_over_memory_and_panics();
    let header = ControlToNode::Order(Order::Speeds(Vec::new()));
    let mut body = encode(&header, Packed::default()).body.to_vec();
    let length_at = body.len() - 1;
    for length in
        [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0xff; 9], &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]]
    {
        body.truncate(length_at);
        body.extend_from_slice(length);
        let frame = Frame { body: body.clone().into(), attachments: Vec::new() };
        assert!(matches!(decode::<ControlToNode>(frame), Err(Refusal::Header(_))));
    }
}

/// Nodes with a program under way take hostile frames, in bursts; then their PEs must still end.
#[test]
fn nodes_at_work_survive_what_they_are_sent() {
    watch_over_memory_and_panics();
    const BURST: u64 = 100;
    let (mut random, sound) = (Random::new(22), sound_frames());
    let (mut failed, mut sentences) = (0, std::collections::BTreeSet::new());
    for _ in 0..INPUTS / BURST {
        let mut run = Run::new();
        run.begin(u32::MAX);
        for _ in 0..BURST {
            let Sent { from, to, class, frame } = hostile(&mut random, &sound);
            run.nodes[to.as_usize()].receive(from, class, frame);
        }
        let mut has_failed = false;
        while let Ok(event) = run.launcher.try_recv() {
            if let runtime::node::LauncherEvent::Fault(_, sentence) = event {
                has_failed = true;
                sentences.insert(sentence.split(':').next().unwrap_or_default().to_string());
            }
        }
        failed += u64::from(has_failed);
        run.end();
        assert_no_panics();
    }
    assert_eq!(failed, INPUTS / BURST, "each burst holds frames that must be refused");
    assert!(
        sentences.iter().any(|s| s.starts_with("node 3 sent node 1 a message that it refuses")),
        "{sentences:#?}"
    );
}

/// Messages whose target is right and whose content is not, for entry methods, constructors and reductions.
#[test]
fn payloads_of_any_content_end_as_errors() {
    watch_over_memory_and_panics();
    let (mut random, sound) = (Random::new(23), sound_frames());
    let work: Vec<&Sent> = sound.iter().filter(|sent| sent.class != Class::Control).collect();
    let mut run = Run::new();
    run.begin(0);
    for number in 0..INPUTS {
        let sent = work[usize::try_from(random.below(work.len() as u64)).unwrap()];
        // What is refused unread is left out: what is for another receiver, and a collection a second time.
        let (header, payload) = if sent.to == NodeId::LAUNCHER {
            match decode::<WorkToLauncher>(sent.frame.clone()) {
                Ok((
                    WorkToLauncher::Announcement(Announcement::Collection(_)) | WorkToLauncher::Loads,
                    _,
                ))
                | Err(_) => continue,
                Ok((header, payload)) => (encode(&header, Packed::default()), payload),
            }
        } else {
            match decode::<WorkToNode>(sent.frame.clone()) {
                Ok((WorkToNode::ToPe { pe, .. }, _)) if run.nodes[0].topology().node_of(pe) != sent.to => {
                    continue;
                }
                Ok((
                    WorkToNode::Spread { what: Spread::Announcement(Announcement::Collection(_)), .. },
                    _,
                ))
                | Err(_) => continue,
                Ok((header, payload)) => (encode(&header, Packed::default()), payload),
            }
        };
        let body = if number % 4 == 0 { random.bytes(64) } else { random.mutated(&payload.body) };
        let frame = Frame { body: [&header.body[..], &body].concat().into(), attachments: Vec::new() };
        run.nodes[sent.to.as_usize()].receive(sent.from, sent.class, frame);
    }
    let sentence = (0..INPUTS).find_map(|_| run.next_result().err()).expect("the first garbage ends the run");
    // What can be read may still name a receiver that cannot be.
    let is_known = ["failed: ", "went wrong", "would have sent a message to nobody"];
    assert!(is_known.iter().any(|words| sentence.contains(words)), "{sentence}");
    run.end();
    assert_no_panics();
}

/// What a viewer reads from a socket of which it knows only that it belongs to the same user.
#[test]
fn feeds_of_any_content_are_read_or_end() {
    watch_over_memory_and_panics();
    let sound = [
        MonitorEvent::Run(RunInfo {
            arguments: vec!["run".into(), "matmul".into()],
            nodes: vec![NodeInfo {
                name: "a".into(),
                pe_count: 2,
                pe_speeds: vec![1.0, 0.5],
                ..NodeInfo::default()
            }],
            ..RunInfo::default()
        }),
        MonitorEvent::Snapshot(NodeSnapshot {
            pes: vec![PeSnapshot::default(); 2],
            ..NodeSnapshot::default()
        }),
        MonitorEvent::Output(OutputLine { text: "a line".into(), ..OutputLine::default() }),
        MonitorEvent::Ended { code: 0, summary: "finished".into() },
    ];
    let mut whole = Vec::new();
    sound.iter().for_each(|event| event.write_to(&mut whole).unwrap());
    let (mut random, mut read) = (Random::new(25), 0);
    for number in 0..INPUTS {
        let feed = if number % 4 == 0 { random.bytes(100) } else { random.mutated(&whole) };
        let mut rest = &feed[..];
        while let Ok(event) = MonitorEvent::read_from(&mut rest) {
            read += 1;
            assert!(!format!("{event:?}").is_empty());
        }
    }
    assert!(read > INPUTS / 2, "{read} events read");
    // A length up to the limit is announced, and nothing comes.
    for _ in 0..100 {
        assert!(MonitorEvent::read_from(&mut &[0, 0, 0, 1, 7][..]).is_err());
        assert!(MonitorEvent::read_from(&mut &[0xff; 64][..]).is_err());
    }
}

#[test]
fn collection_ids_name_their_maker() {
    let mut random = Random::new(24);
    for _ in 0..INPUTS {
        let (creator, serial) = (PeId((random.bits() >> 32) as u32), (random.bits() >> 33) as u32);
        assert_eq!(CollectionId::made_by(creator, serial).creator(), Some(creator));
        assert_eq!(CollectionId(random.below(1 << 63)).creator(), None);
    }
}
