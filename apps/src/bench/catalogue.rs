//! All operations that are measured: their keys, units, where they run, and which of them is a part of which.

use super::player::Throw;
use std::fmt;

/// Elements of the array inside a process that broadcasts, fan-outs and reductions go over.
pub(super) const CROWD: u32 = 10_000;
/// Chares of the other node that a fan-out goes to.
pub(super) const FAR_CROWD: u32 = 1_000;
/// As often as a stretch needs.
const MANY: u64 = 1 << 40;
/// A flood is no longer, so that what waits stays far below what may wait.
const FLOOD_BYTES: u64 = 512 << 20;
/// A stream is no longer.
const STREAM: u64 = 1 << 19;
/// So many chares are made at once at most.
const MADE: u64 = 1 << 15;
/// Sizes of messages between nodes.
const SIZES: [(usize, &str); 9] = [
    (8, "8 B"),
    (64, "64 B"),
    (1 << 10, "1 KiB"),
    (4 << 10, "4 KiB"),
    (16 << 10, "16 KiB"),
    (64 << 10, "64 KiB"),
    (1 << 20, "1 MiB"),
    (4 << 20, "4 MiB"),
    (16 << 20, "16 MiB"),
];
/// Sizes of bulk data that are sent all one way.
const FLOODS: &[(usize, &str)] = SIZES.split_at(5).1;
/// Sizes of bulk data that many messages have.
const SHORT: [(usize, &str); 4] = [(72, "72 B"), (256, "256 B"), (1 << 10, "1 KiB"), (4 << 10, "4 KiB")];

/// What an operation is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Bytes of memory.
    Bytes,
    /// Parts of what it is without, in percent.
    Percent,
    /// 10^9 bytes in a second.
    GBs,
    /// 10^6 messages in a second.
    MillionPerS,
    /// 10^9 floating-point operations in a second.
    GFlops,
    /// Percent of the machine's peak.
    OfPeak,
}

impl Unit {
    /// As it stands in tables and files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "µs",
            Self::Ms => "ms",
            Self::Bytes => "B",
            Self::Percent => "%",
            Self::GBs => "GB/s",
            Self::MillionPerS => "million/s",
            Self::GFlops => "GFLOP/s",
            Self::OfPeak => "% of peak",
        }
    }

    /// Whether more is better.
    pub(super) fn is_gain(self) -> bool {
        matches!(self, Self::GBs | Self::MillionPerS | Self::GFlops | Self::OfPeak)
    }

    /// The nanoseconds that so much takes, by a figure in this unit; `None` where the unit is not one of time or speed.
    pub(super) fn ns(self, figure: f64, amount: f64) -> Option<f64> {
        match self {
            Self::Ns => Some(figure * amount),
            Self::Us => Some(figure * amount * 1e3),
            Self::Ms => Some(figure * amount * 1e6),
            Self::GBs | Self::GFlops => Some(amount / figure),
            Self::MillionPerS => Some(amount / figure * 1e3),
            Self::Bytes | Self::Percent | Self::OfPeak => None,
        }
    }

    /// Makes a figure of a stretch of so many nanoseconds in which so much was done.
    pub(super) fn of_stretch(self, ns: f64, amount: f64) -> f64 {
        match self {
            Self::Us => ns / amount / 1e3,
            Self::Ms => ns / amount / 1e6,
            Self::GBs | Self::GFlops => amount / ns,
            Self::MillionPerS => amount / ns * 1e3,
            Self::Ns | Self::Bytes | Self::Percent | Self::OfPeak => ns / amount,
        }
    }
}

/// Where operations are measured; each is one or more runs of this program, but for the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// One node of which nothing is said, as a user gets it: it has a PE on every core.
    Default,
    /// Two nodes that share all cores.
    AllCores,
    /// The same, but no memory is shared: all goes by QUIC.
    AllCoresQuic,
    /// One node with one PE.
    OnePe,
    /// One node with two PEs.
    TwoPes,
    /// Two nodes with one PE each.
    TwoNodes,
    /// So many nodes with one PE each.
    Nodes(u32),
    /// Runs of eight nodes that do nothing.
    Start,
    /// Eight nodes, new ones for each figure.
    Memory,
    /// One node with a PE on every core, and a load window in a terminal of its own.
    Monitor,
    /// One node with a PE on every core, which measures what it does, or does not.
    Measuring,
    /// One core of this machine, without chares.
    Core,
}

impl Arrangement {
    /// In the order in which they are measured.
    pub(super) const ALL: [Self; 14] = [
        Self::Default,
        Self::AllCores,
        Self::AllCoresQuic,
        Self::OnePe,
        Self::TwoPes,
        Self::TwoNodes,
        Self::Nodes(2),
        Self::Nodes(4),
        Self::Nodes(8),
        Self::Start,
        Self::Memory,
        Self::Monitor,
        Self::Measuring,
        Self::Core,
    ];

    /// How many PEs each node has on a machine with so many cores; none where no PEs are measured.
    pub(super) fn pes(self, cores: u32) -> Vec<u32> {
        match self {
            Self::Default | Self::Monitor | Self::Measuring => vec![cores],
            Self::AllCores | Self::AllCoresQuic => vec![cores.div_ceil(2), (cores / 2).max(1)],
            Self::OnePe => vec![1],
            Self::TwoPes => vec![2],
            Self::TwoNodes => vec![1; 2],
            Self::Nodes(count) => vec![1; count as usize],
            Self::Start | Self::Memory => vec![1; MANY_NODES],
            Self::Core => Vec::new(),
        }
    }

    /// What the threads of all PEs, and of the network of each node, have of that many cores.
    pub(super) fn room(self, cores: u32) -> Option<Room> {
        let pes = self.pes(cores);
        let (nodes, pes) = (u32::try_from(pes.len()).unwrap_or(u32::MAX), pes.iter().sum::<u32>());
        match pes {
            0 => None,
            _ if pes + nodes <= cores => Some(Room::Spare),
            _ if pes <= cores => Some(Room::All),
            _ => Some(Room::Over),
        }
    }
}

/// Nodes of a start and of what memory is measured on.
const MANY_NODES: usize = 8;

/// Whether cores are left beside those of the PEs, which decides what messages cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Each node's network has a core of its own.
    Spare,
    /// There is at most one PE for each core, and not a core for each network beside them.
    All,
    /// There are more PEs than cores.
    Over,
}

impl Room {
    /// As it stands in tables and files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Spare => "spare cores",
            Self::All => "all cores",
            Self::Over => "oversubscribed",
        }
    }
}

impl fmt::Display for Arrangement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("one node, nothing said"),
            Self::AllCores => f.write_str("two nodes, all cores"),
            Self::AllCoresQuic => f.write_str("the same by QUIC"),
            Self::OnePe => f.write_str("one PE"),
            Self::TwoPes => f.write_str("two PEs of one node"),
            Self::TwoNodes => f.write_str("two nodes, point to point"),
            Self::Nodes(count) => write!(f, "{count} nodes, one PE each"),
            Self::Start => f.write_str("start of 8 local nodes"),
            Self::Memory => f.write_str("memory, 8 nodes"),
            Self::Monitor => f.write_str("all cores, with a window"),
            Self::Measuring => f.write_str("all cores, measuring itself or not"),
            Self::Core => f.write_str("one core"),
        }
    }
}

/// Two players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pair {
    /// Single chares on the first and the last PE.
    Chares,
    /// Array elements there.
    Elements,
}

/// What the chares of a run do for an operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// A pair plays; so many throws for one of the count.
    Throws(Pair, Throw, u64),
    /// Pairs of neighbours play on all PEs at once.
    Neighbours,
    /// A broadcast to all elements of the crowd, and a reduction.
    Broadcast,
    /// The same with a message to each.
    FanOut,
    /// The same with a scatter.
    Scatter,
    /// A broadcast to one element on each PE, and a reduction.
    BroadcastToPes,
    /// Finds the PEs of elements of the crowd.
    LookUps,
    /// Makes array elements.
    MakeElements,
    /// Makes single chares.
    MakeChares,
    /// The driver asks whether all is quiet.
    Quiescence,
    /// Nothing that chares are told: the set-up measures it by itself.
    Arrangement,
}

/// Something to measure.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// Short and stable.
    pub(super) key: String,
    /// What it is, for people.
    pub(super) name: String,
    pub(super) unit: Unit,
    pub(super) setup: Arrangement,
    pub(super) task: Task,
    /// How much is done in one of the count: operations, or bytes.
    pub(super) each: u64,
    /// Largest count that memory allows.
    pub(super) cap: u64,
    /// What may turn out to take most of its time.
    pub(super) part: Option<PartOf>,
}

/// Another operation that an operation contains.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PartOf {
    /// Key of the other one.
    pub(super) key: String,
    /// How much of it one operation contains: so many of them, bytes, or floating-point operations.
    pub(super) amount: f64,
    /// What that is, half a sentence.
    pub(super) what: &'static str,
}

impl Operation {
    fn new(setup: Arrangement, key: &str, name: &str, unit: Unit, task: Task) -> Self {
        Self { key: key.into(), name: name.into(), unit, setup, task, each: 1, cap: MANY, part: None }
    }

    fn contains(mut self, amount: f64, key: String, what: &'static str) -> Self {
        self.part = Some(PartOf { key, amount, what });
        self
    }

    fn each(mut self, each: u64) -> Self {
        self.each = each;
        self
    }

    fn cap(mut self, cap: u64) -> Self {
        self.cap = cap;
        self
    }
}

/// All operations, those of each set-up together.
pub(super) fn all() -> Vec<Operation> {
    let mut all: Vec<Operation> = by_default().into();
    all.extend(between_all_cores(Arrangement::AllCores, "all"));
    all.extend(between_all_cores(Arrangement::AllCoresQuic, "quic"));
    all.extend(in_process());
    all.extend(between_pes());
    all.extend(between_nodes());
    all.extend([2, 4, 8].into_iter().flat_map(collectives));
    all.extend(whole_runs());
    all.extend([("f64", "64-bit"), ("f32", "32-bit")].into_iter().flat_map(kernels));
    all
}

/// What a user meets who says nothing about cores; the same is measured again below where cores are left.
fn by_default() -> [Operation; 2] {
    let of = |key, name, unit, task| Operation::new(Arrangement::Default, key, name, unit, task);
    let throws = Task::Throws(Pair::Elements, Throw::Back(64), 1);
    [
        of("all/pes/64B", "64 B to an array element of the last PE, one way", Unit::Ns, throws),
        of(
            "all/broadcast",
            "broadcast to one chare on each PE, and a reduction",
            Unit::Us,
            Task::BroadcastToPes,
        ),
    ]
}

/// The same between two nodes; `prefix` begins the keys.
fn between_all_cores(setup: Arrangement, prefix: &str) -> Vec<Operation> {
    let two = |key, name, unit, task| Operation::new(setup, &format!("{prefix}/{key}"), name, unit, task);
    let throws = |throw, count| Task::Throws(Pair::Elements, throw, count);
    let (key, long) = ("flood/1MiB", 1 << 20);
    vec![
        two(
            "round-trip/8B",
            "8 B to an element of another node and back",
            Unit::Us,
            throws(Throw::Back(8), 2),
        ),
        two(
            "round-trip/1MiB",
            "1 MiB to an element of another node and back",
            Unit::Us,
            throws(Throw::Back(long), 2),
        )
        .contains(2.0 * long as f64, format!("{prefix}/{key}"), "the bandwidth one way"),
        two(
            key,
            "bulk data of 1 MiB to an element of another node, all one way",
            Unit::GBs,
            throws(Throw::Flood(long), 1),
        )
        .each(long as u64)
        .cap(FLOOD_BYTES / long as u64),
        two(
            "rate/64B",
            "64 B to an element of another node, all one way",
            Unit::MillionPerS,
            throws(Throw::Stream, 1),
        )
        .cap(STREAM),
    ]
}

fn in_process() -> Vec<Operation> {
    use Task::{Broadcast, FanOut, MakeChares, MakeElements};
    let of = |key, name, task| Operation::new(Arrangement::OnePe, key, name, Unit::Ns, task);
    let hop = |pair, bytes| Task::Throws(pair, Throw::Back(bytes), 1);
    vec![
        of("pe/chare/64B", "64 B to a single chare of the same PE, one way", hop(Pair::Chares, 64)),
        of("pe/element/64B", "64 B to an array element of the same PE, one way", hop(Pair::Elements, 64)),
        of("pe/bulk/64KiB", "64 KiB of bulk data, one way", hop(Pair::Elements, 64 << 10)),
        of("pe/bulk/16MiB", "16 MiB of bulk data, one way", hop(Pair::Elements, 16 << 20)),
        of("pe/fan-out", "a message to each of 10,000 elements and a reduction, an element", FanOut)
            .each(u64::from(CROWD)),
        of("pe/broadcast", "broadcast to 10,000 elements and a reduction, an element", Broadcast)
            .each(u64::from(CROWD)),
        of("pe/create/element", "creation of an array, an element", MakeElements).cap(MADE),
        of("pe/create/chare", "creation of a single chare", MakeChares).cap(MADE),
    ]
}

fn between_pes() -> Vec<Operation> {
    let of = |key, name, task| Operation::new(Arrangement::TwoPes, key, name, Unit::Ns, task);
    let hop = |pair, bytes| Task::Throws(pair, Throw::Back(bytes), 1);
    vec![
        of("pes/chare/64B", "64 B to a single chare of another PE, one way", hop(Pair::Chares, 64)),
        of("pes/element/64B", "64 B to an array element of another PE, one way", hop(Pair::Elements, 64)),
        of("pes/look-up", "look-up of the PE where an element of an array of 10,000 lives", Task::LookUps),
        of(
            "pes/stream/64B",
            "64 B to an array element of another PE, one of many",
            Task::Throws(Pair::Elements, Throw::Stream, 1),
        )
        .cap(STREAM),
        of(
            "pes/neighbours/64B",
            "64 B to an element of the same PE, on both PEs at once, one way",
            Task::Neighbours,
        )
        .contains(1.0, "pe/element/64B".into(), "the same on one PE alone"),
        of("pes/bulk/64KiB", "64 KiB of bulk data to another PE, one way", hop(Pair::Elements, 64 << 10)),
        of("pes/bulk/16MiB", "16 MiB of bulk data to another PE, one way", hop(Pair::Elements, 16 << 20)),
    ]
}

fn between_nodes() -> Vec<Operation> {
    let of = |key: &str, name: &str, unit, task| Operation::new(Arrangement::TwoNodes, key, name, unit, task);
    let flood_key = |size| format!("link/flood/{}", joined(size));
    let trips = SIZES.map(|(bytes, size)| {
        let task = Task::Throws(Pair::Elements, Throw::Back(bytes), 2);
        let name = format!("{size} to an element of another node and back");
        let trip = of(&format!("link/round-trip/{}", joined(size)), &name, Unit::Us, task);
        if FLOODS.contains(&(bytes, size)) {
            trip.contains(2.0 * bytes as f64, flood_key(size), "the bandwidth one way")
        } else {
            trip
        }
    });
    let floods = FLOODS.iter().map(|&(bytes, size)| {
        let name = format!("bulk data of {size} to an element of another node, all one way");
        let task = Task::Throws(Pair::Elements, Throw::Flood(bytes), 1);
        of(&flood_key(size), &name, Unit::GBs, task).each(bytes as u64).cap(FLOOD_BYTES / bytes as u64)
    });
    let rate = of(
        "link/rate/64B",
        "64 B to an element of another node, all one way",
        Unit::MillionPerS,
        Task::Throws(Pair::Elements, Throw::Stream, 1),
    );
    let fan_out = of(
        "link/fan-out",
        "a message to each of 1,000 chares of another node and a reduction, a chare",
        Unit::Ns,
        Task::FanOut,
    );
    let scatter = of(
        "link/scatter",
        "a scatter to 1,000 chares of another node and a reduction, a chare",
        Unit::Ns,
        Task::Scatter,
    );
    let rates = SHORT.map(|(bytes, size)| {
        let name = format!("bulk data of {size} to an element of another node, all one way");
        let task = Task::Throws(Pair::Elements, Throw::Flood(bytes), 1);
        of(&format!("link/rate/{}", joined(size)), &name, Unit::MillionPerS, task).cap(STREAM)
    });
    let crowd = [fan_out, scatter].map(|operation| operation.each(u64::from(FAR_CROWD)));
    trips.into_iter().chain(floods).chain([rate.cap(STREAM)]).chain(rates).chain(crowd).collect()
}

/// A size as it stands in keys.
fn joined(size: &str) -> String {
    size.replace(' ', "")
}

fn collectives(nodes: u32) -> [Operation; 2] {
    let of = |key, name: &str, task| {
        Operation::new(Arrangement::Nodes(nodes), &format!("nodes/{nodes}/{key}"), name, Unit::Us, task)
    };
    let broadcast = format!("broadcast to one chare on each of {nodes} nodes, and a reduction");
    let quiescence = format!("detection that {nodes} nodes are quiet");
    [of("broadcast", &broadcast, Task::BroadcastToPes), of("quiescence", &quiescence, Task::Quiescence)]
}

fn whole_runs() -> Vec<Operation> {
    let of = |setup, key, name, unit| Operation::new(setup, key, name, unit, Task::Arrangement);
    let ready = "start/8/ready";
    vec![
        of(Arrangement::Start, ready, "from the command to the driver's first line, 8 local nodes", Unit::Ms),
        of(Arrangement::Start, "start/8/run", "a whole run that does nothing, 8 local nodes", Unit::Ms)
            .contains(1.0, ready.into(), "the start"),
        of(
            Arrangement::Memory,
            "memory/chare",
            "memory of an idle single chare with a state of 8 B",
            Unit::Bytes,
        ),
        of(
            Arrangement::Memory,
            "memory/connection",
            "memory of a node for a connection that has carried a few small messages",
            Unit::Bytes,
        ),
        of(
            Arrangement::Monitor,
            "monitor/run",
            "time of a fine-grained run with a load window, of that without",
            Unit::Percent,
        ),
        of(
            Arrangement::Monitor,
            "monitor/window",
            "processor time of a load window, its start included, of one core",
            Unit::Percent,
        ),
        of(
            Arrangement::Measuring,
            "monitor/measuring",
            "processor time of a fine-grained run as it is by default, of that with --no-measuring",
            Unit::Percent,
        ),
    ]
}

fn kernels((dtype, bits): (&str, &str)) -> [Operation; 3] {
    let key = |what| format!("kernel/{dtype}/{what}");
    let of =
        |what, name: &str, unit| Operation::new(Arrangement::Core, &key(what), name, unit, Task::Arrangement);
    [
        of("peak", &format!("fused multiply-adds in registers, {bits}"), Unit::GFlops),
        of("gemm", &format!("block product with side 1024, {bits}"), Unit::GFlops).contains(
            1.0,
            key("peak"),
            "the units for vectors",
        ),
        of("gemm-of-peak", &format!("block product, of the peak right before it, {bits}"), Unit::OfPeak),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_are_unique_and_every_setup_has_operations() {
        let all = all();
        let keys: BTreeSet<&str> = all.iter().map(|operation| operation.key.as_str()).collect();
        assert_eq!(keys.len(), all.len());
        for setup in Arrangement::ALL {
            assert!(all.iter().any(|operation| operation.setup == setup), "{setup}");
        }
    }

    #[test]
    fn parts_are_operations_that_are_measured_before_or_together() {
        let all = all();
        let place = |setup| Arrangement::ALL.iter().position(|other| *other == setup);
        let parts: Vec<_> = all.iter().filter_map(|o| Some((o, o.part.as_ref()?))).collect();
        assert!(parts.len() > 5);
        for (operation, part) in parts {
            let other = all.iter().find(|other| other.key == part.key).unwrap();
            assert!(place(other.setup) <= place(operation.setup), "{operation:?}");
            assert!(other.unit.ns(1.0, part.amount).is_some() && operation.unit.ns(1.0, 1.0).is_some());
        }
    }

    #[test]
    fn what_is_measured_first_has_all_cores_and_no_more() {
        for cores in [1, 2, 3, 16] {
            assert_eq!(Arrangement::ALL[0].room(cores), Some(Room::All));
            let pes = Arrangement::AllCores.pes(cores);
            assert!(pes.len() == 2 && pes.iter().sum::<u32>() == cores.max(2), "{pes:?}");
        }
        let rooms = [1, 2, 3, 4].map(|cores| Arrangement::TwoNodes.room(cores));
        assert_eq!(rooms, [Room::Over, Room::All, Room::All, Room::Spare].map(Some));
        assert_eq!(Arrangement::Core.room(4), None);
    }

    #[test]
    fn figures_follow_from_stretches() {
        let figure = |unit: Unit| unit.of_stretch(2e6, 1000.0);
        assert_eq!((figure(Unit::Ns), figure(Unit::Us), figure(Unit::Ms)), (2000.0, 2.0, 0.002));
        // A thousand bytes or messages in two milliseconds.
        assert_eq!((figure(Unit::GBs), figure(Unit::MillionPerS)), (0.0005, 0.5));
        for unit in [Unit::Ns, Unit::Us, Unit::Ms, Unit::GBs, Unit::MillionPerS, Unit::GFlops] {
            assert_eq!(unit.ns(figure(unit), 1000.0), Some(2e6), "{unit:?}");
        }
        assert_eq!(Unit::Bytes.ns(1.0, 1.0), None);
    }
}
