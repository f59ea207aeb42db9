//! What a message is made of, piece by piece: `cargo bench -p metachare-runtime --bench pieces`. Whole paths, where
//! these pieces wait for each other and for caches, are what `metachare bench` measures.

use bytes::{BufMut as _, Bytes, BytesMut};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use runtime::codec::{WorkToNode, decode, encode};
use runtime::collection::{Collection, Placement};
use runtime::envelope::{CollectionId, ElementIndex, Envelope, Packed, Payload, ToPe};
use runtime::frame::{Frame, FrameLimits};
use runtime::ids::{NodeId, PeId};
use runtime::monitor::wire::PeState;
use runtime::node::{Node, NodeSettings};
use runtime::object::ProgramTable;
use runtime::pe::account::Account;
use runtime::pe::queue::Queue;
use runtime::pe::timekeeper::Timekeeper;
use runtime::priority::Priority;
use runtime::proto::reduction::{Partial, PartialValue, Reductions};
use runtime::proto::tree;
use runtime::topology::Topology;
use runtime::transport::framing::Decoder;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

const MESSAGE_BYTES: usize = 64;
/// Messages that wait, or that come in one piece.
const BATCH: usize = 256;
/// Of a stream in one datagram.
const DATAGRAM_BYTES: usize = 6_400;

fn target() -> ToPe {
    ToPe::Element {
        collection: CollectionId::made_by(PeId(3), 5),
        index: ElementIndex([70_000, 0, 0]),
        entry: 2,
        from: PeId(3),
        number: 0,
    }
}

fn header() -> WorkToNode {
    WorkToNode::to_pe(PeId(3), Priority::ORDINARY, target())
}

fn payload() -> Packed {
    Packed { body: vec![7; MESSAGE_BYTES].into(), attachments: Vec::new() }
}

fn envelope(priority: i32) -> Envelope {
    Envelope::new(target(), priority, Payload::Value(Box::new([7u64; MESSAGE_BYTES / 8])))
}

/// A PE's queue with other messages in it.
fn queue(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("queue of 256");
    for (name, priorities) in
        [("ordinary", [0; BATCH]), ("by priority", std::array::from_fn(|at| at as i32 % 7 - 3))]
    {
        let mut queue = Queue::default();
        priorities.iter().for_each(|&priority| queue.push(envelope(priority)));
        group.bench_function(name, |bench| {
            bench.iter(|| {
                let next = queue.pop().expect("it never gets empty");
                queue.push(black_box(next));
            });
        });
    }
    group.finish();
}

/// A small message on its way to another node.
/// Where an element of a large array is: its PE, and its place among those of that PE.
fn look_up(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("look-up of an element");
    let (pes, shape) = (64, [1000, 1000, 1]);
    let bounds = (0..=u64::from(pes)).map(|pe| pe * 1_000_000 / u64::from(pes)).collect();
    for (name, placement) in
        [("in blocks", Placement::Bounds(bounds)), ("cyclic", Placement::Cyclic { pe_count: pes })]
    {
        let made = Collection::new(CollectionId::made_by(PeId(3), 5), 0, shape, placement, false, pes);
        let (array, index) = (made.expect("it is sound"), ElementIndex([523, 77, 0]));
        let home = array.pe_of(index).expect("it has this element");
        group.bench_function(format!("{name}: its PE"), |bench| bench.iter(|| array.pe_of(black_box(index))));
        group.bench_function(format!("{name}: its place there"), |bench| {
            bench.iter(|| array.position_on(home, black_box(index)));
        });
    }
    group.finish();
}

fn packing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frame of 64 B");
    let (header, payload) = (header(), payload());
    group.bench_function("encode", |bench| bench.iter(|| encode(black_box(&header), payload.clone())));
    let frame = encode(&header, payload);
    group.bench_function("decode", |bench| bench.iter(|| decode::<WorkToNode>(black_box(frame.clone()))));
    group.finish();
}

/// Frames out of what a stream brings in one piece.
fn framing(criterion: &mut Criterion) {
    let Frame { body, .. } = encode(&header(), payload());
    let mut stream = BytesMut::new();
    for _ in 0..BATCH {
        stream.put_u32_le(u32::try_from(body.len()).expect("a short body"));
        stream.put_u16_le(0);
        stream.put_slice(&body);
    }
    let stream: Bytes = stream.freeze();
    let mut group = criterion.benchmark_group("stream");
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("256 frames of 64 B", |bench| {
        let mut decoder = Decoder::new(FrameLimits::default());
        bench.iter(|| {
            let mut count = 0;
            let taken = decoder.take(stream.clone(), |frame| count += black_box(frame).len_bytes());
            taken.expect("frames within the limits");
            count
        });
    });
    for len in [64 << 10, 1 << 20] {
        let mut stream = BytesMut::new();
        stream.put_u32_le(0);
        stream.put_u16_le(1);
        stream.put_u64_le(len as u64);
        stream.put_bytes(7, len);
        let stream = stream.freeze();
        let chunks: Vec<Bytes> = (0..stream.len())
            .step_by(DATAGRAM_BYTES)
            .map(|at| stream.slice(at..stream.len().min(at + DATAGRAM_BYTES)))
            .collect();
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(format!("a buffer of {} KiB", len >> 10), |bench| {
            let mut decoder = Decoder::new(FrameLimits::default());
            bench.iter(|| {
                let mut got = None;
                for chunk in &chunks {
                    decoder.take(chunk.clone(), |frame| got = Some(frame)).expect("within the limits");
                }
                black_box(got)
            });
        });
    }
    group.finish();
}

/// A sum over the elements of one place.
fn reduction(criterion: &mut Criterion) {
    const ELEMENTS: u64 = 1000;
    let mut group = criterion.benchmark_group("reduction");
    group.throughput(Throughput::Elements(ELEMENTS));
    group.bench_function("sum of 1000", |bench| {
        let part = |value| Partial { count: 1, terms: 1, value: PartialValue::Combined(value) };
        bench.iter_batched_ref(
            Reductions::default,
            |place| {
                let mut sum = None;
                for at in 0..ELEMENTS {
                    let add = &mut |a: &mut u64, b: u64| *a += b;
                    sum = place.contribute(9, 0, ELEMENTS, part(at), add).expect("each contributes once");
                }
                sum
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

/// Neighbours in the tree over 1,024 nodes.
fn trees(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tree over 1024");
    group.bench_function("children", |bench| {
        bench.iter(|| tree::children(black_box(17), black_box(100), 1024).map(u64::from).sum::<u64>());
    });
    group.bench_function("parent", |bench| bench.iter(|| tree::parent(black_box(17), black_box(100), 1024)));
    group.finish();
}

/// The part of the monitor that is always on: the times of each entry method, and counters ten times a second.
fn accounting(criterion: &mut Criterion) {
    let table = Arc::new(ProgramTable::default());
    let node = Node::new(NodeId(1), Topology::new(&[0, 4]), table, NodeSettings::default());
    let (account, mut timekeeper) = (Account::default(), Timekeeper::default());
    let mut group = criterion.benchmark_group("accounting");
    group.bench_function("an entry method", |bench| {
        bench.iter(|| {
            timekeeper.entry_begins(&account, PeState::Compute, || node.now_ns());
            account.begins(1, 1);
            account.ran(1);
            timekeeper.entry_ends(&account, || node.now_ns());
        });
    });
    group.bench_function("counters of 4 PEs", |bench| bench.iter(|| node.snapshot()));
    group.finish();
}

fn short() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1))
}

criterion_group! {
    name = pieces;
    config = short();
    targets = queue, look_up, packing, framing, reduction, trees, accounting
}
criterion_main!(pieces);
