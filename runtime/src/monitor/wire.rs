//! What the load window is told: raw monotonic counters, never rates. Times are nanoseconds since the node's
//! start, sizes bytes. The viewer computes rates from two snapshots, so that a dropped one costs nothing.

use super::collectives::Collectives;
use super::heavy::Heaviest;
use super::map::Map;
use super::profile::Profile;
use super::samples::Samples;
use crate::architecture::Architecture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::time::Duration;

/// The longest event that a viewer accepts, bytes.
const EVENT_MAX_BYTES: u32 = 16 << 20;

/// Version of these types; a viewer refuses a run that speaks another one.
pub const MONITOR_VERSION: u16 = 20;
/// Since this version snapshots end with the clock of the cores.
pub(super) const CLOCKED_VERSION: u16 = 15;
/// Recordings from this version on can be read: what was added since is new kinds of events, and the end of snapshots.
pub const OLDEST_RECORDED_VERSION: u16 = 12;

/// One thing that happened in the watched run, in the order in which the launcher learned of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MonitorEvent {
    /// First event of every feed, and again whenever speeds or shares become known or change.
    Run(RunInfo),
    /// State of one node, about ten times a second.
    Snapshot(NodeSnapshot),
    /// The application named what it is doing, with its progress if it knows it.
    Phase(Phase),
    /// A line that the program or a node printed.
    Output(OutputLine),
    /// A node is gone; its last snapshot stays valid as history.
    NodeLost {
        /// Which node.
        node: u16,
        /// One sentence: why.
        reason: String,
    },
    /// This viewer was too slow and missed that many events since the last one it got.
    Dropped(u64),
    /// The launcher's clock beside those of the nodes.
    Clocks(ClockReading),
    /// The run is over; nothing follows.
    Ended {
        /// Exit code of the run.
        code: i32,
        /// How it ended, in a line.
        summary: String,
    },
    /// Single entry methods and messages of a node. Behind the others, so that what was recorded before there were any can be
    /// read.
    Samples(Samples),
    /// What follows happened so many nanoseconds after the run began to be watched, up to the next of these: a viewer that
    /// comes late is told the past, and at its end the time that it is now.
    At(u64),
    /// What the run came to, by lines: what the program says at its end, and the table.
    Result(String),
    /// Something that the program shows; in the place of what it has shown under that title.
    Map(Map),
    /// Something that whoever watches should know, such as an option that would have made the run faster.
    Remark(Remark),
    /// The chares of a node that keep its PEs busy, where that is measured.
    Heaviest(Heaviest),
    /// What checkpoints have cost so far, after each of them.
    Saving(SavingCost),
    /// Single reductions, as a node's PEs passed them on.
    Collectives(Collectives),
    /// The checkpoint that was due last was not taken: why. It is so until there is a [`Saving`](Self::Saving).
    NotSaved(String),
}

impl MonitorEvent {
    /// Says when that which follows happened, from when the run began to be watched.
    #[must_use]
    pub fn at(time: Duration) -> Self {
        Self::At(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Writes the event to a feed: its length and itself as postcard.
    ///
    /// # Errors
    /// If `feed` takes no more.
    pub fn write_to(&self, feed: &mut impl Write) -> io::Result<()> {
        write(feed, self)
    }

    /// Reads the next event of a feed. Takes memory only for what has come, whatever length is announced.
    ///
    /// # Errors
    /// If `feed` ends or fails, or what comes is not an event.
    pub fn read_from(feed: &mut impl Read) -> io::Result<Self> {
        read(feed, EVENT_MAX_BYTES)
    }
}

/// Writes something to a socket: its length and itself as postcard.
pub(super) fn write(socket: &mut impl Write, said: &impl Serialize) -> io::Result<()> {
    let bytes = postcard::to_stdvec(said).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    socket.write_all(&length.to_le_bytes())?;
    socket.write_all(&bytes)
}

/// Reads what was written so and is no longer than this. Takes memory only for what has come, whatever length is announced.
pub(super) fn read<T: DeserializeOwned>(socket: &mut impl Read, max_bytes: u32) -> io::Result<T> {
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > max_bytes {
        return Err(io::Error::other(format!("{length} bytes are longer than anything that comes here")));
    }
    let mut bytes = Vec::new();
    socket.take(u64::from(length)).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}

/// A sentence on the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Remark {
    /// Whether something could be done about it; otherwise it is only worth knowing.
    pub is_advice: bool,
    /// The sentence, without its end.
    pub text: String,
}

/// A decision to move chares, and what came of it. Imbalance is the longest time of a PE over the ideal one; 1 is perfect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Balanced {
    /// Seconds since the launcher's start.
    pub at_s: f64,
    /// The balancer.
    pub by: String,
    /// How many chares were to move.
    pub moves: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The imbalance before.
    pub before: f64,
    /// The imbalance as it was expected after.
    pub expected: f64,
    /// As it was found after; `None` until then.
    pub after: Option<f64>,
}

/// A time in which the PEs of a node, when they had something to do, got less of their cores than while their speed was
/// measured, or less than all where it was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slowdown {
    /// The node.
    pub node: u16,
    /// When it began, seconds since the start of the run.
    pub since_s: f64,
    /// When it ended; `None` if it goes on.
    pub until_s: Option<f64>,
    /// What it delivers in the last seconds, or delivered in the last ones, as a part of the measured speed.
    pub delivered: f64,
    /// Whether there is a measured speed; if not, it is a part of its cores.
    pub is_of_speed: bool,
    /// Whether a quota of CPU time of its control group is what stops it most.
    pub is_by_quota: bool,
}

impl Slowdown {
    /// One sentence without an end, of the node with this name.
    #[must_use]
    pub fn sentence(&self, name: &str) -> String {
        let Self { delivered, is_of_speed, is_by_quota, .. } = *self;
        let clock = |s: f64| format!("{:02}:{:02}", s as u64 / 60, s as u64 % 60);
        let since = clock(self.since_s);
        let of = if is_of_speed { "of its measured speed" } else { "of its cores" };
        let why = if is_by_quota { "a quota stops it" } else { "it waits for its cores" };
        match (self.until_s, is_of_speed) {
            (None, true) => format!("{name} delivers {delivered:.2} {of} since {since}: {why}"),
            (None, false) => format!("{name} gets {delivered:.2} {of} since {since}: {why}"),
            (Some(until), true) => {
                format!("{name} delivered {delivered:.2} {of} from {since} to {}", clock(until))
            }
            (Some(until), false) => {
                format!("{name} got {delivered:.2} {of} from {since} to {}", clock(until))
            }
        }
    }
}

/// What a run is and where it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// [`MONITOR_VERSION`] of the run.
    pub version: u16,
    /// Unique name of the run, e.g. `matmul-1a2b3c`.
    pub run_id: String,
    /// Program name, e.g. `metachare`.
    pub program: String,
    /// Application name, e.g. `matmul`.
    pub app: String,
    /// The command line, without secrets.
    pub arguments: Vec<String>,
    /// Start of the run, milliseconds since 1970 (UTC).
    pub started_unix_ms: u64,
    /// All nodes with PEs, ordered by id (ids start at 1; the launcher, 0, has no PEs and is not listed).
    pub nodes: Vec<NodeInfo>,
    /// Who balances, as the user wrote it; empty if nobody does.
    pub balance: String,
    /// The decisions to move chares, the latest ones if there were many.
    pub balanced: Vec<Balanced>,
    /// When nodes delivered less than the speed that was measured, the latest times if there were many.
    pub slowdowns: Vec<Slowdown>,
    /// The last checkpoint, if one was taken.
    pub saved: Option<SavedAt>,
    /// Names of the chare types of the program.
    pub chare_types: Vec<String>,
    /// `Type: Entry` of all that PEs may run.
    pub entry_names: Vec<String>,
}

/// A checkpoint that was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedAt {
    /// Its number in its folder.
    pub number: u32,
    /// When it was complete, seconds since the start of the run.
    pub at_s: f64,
    /// Bytes of all that it holds.
    pub bytes: u64,
}

/// For how long checkpoints have been taken. PEs stand still for a part of that only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SavingCost {
    /// Seconds from the beginning of the last one until it was complete.
    pub last_s: f64,
    /// Seconds for all of this run together.
    pub all_s: f64,
}

/// What does not change often about a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// Node id.
    pub node: u16,
    /// Name from the nodes file.
    pub name: String,
    /// Host from the nodes file.
    pub host: String,
    /// CPU model as the system names it.
    pub cpu: String,
    /// What kind of machine it is; only the launcher is told.
    #[serde(skip)]
    pub architecture: Architecture,
    /// Cores that its process may use at a time.
    pub cores: u32,
    /// Which cores those are among, as the system lists them, e.g. `0-3,8`.
    pub allowed_cores: String,
    /// Number of its first PE when the run began here.
    pub first_pe: u32,
    /// Count of its PEs then.
    pub pe_count: u32,
    /// Measured speed of each PE, relative to the fastest PE of the run (1.0); 0.0 until measured.
    pub pe_speeds: Vec<f64>,
    /// Part of the time that each PE was on its core while its speed was measured in this run, sleep for its own
    /// `cpu_share` not counted; empty if it was not measured.
    pub pe_parts: Vec<f64>,
    /// Part of their cores that its PEs may use, by the nodes file.
    pub cpu_share: f64,
    /// Share of the data that this node holds, 0 to 1; `None` until the application says.
    pub share: Option<f64>,
    /// What that is, for people, such as `24 blocks, 98k atoms`; empty unless the application says.
    pub holds: String,
    /// Memory limit from the nodes file, bytes.
    pub memory_limit_bytes: Option<u64>,
    /// When it joined, seconds since the start of the run, if it did while the run went on.
    pub joined_s: Option<f64>,
    /// When and how it left, if it did while the run went on.
    pub left: Option<LeftAt>,
}

/// A node that has left while the run went on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeftAt {
    /// When that was, seconds since the start of the run.
    pub at_s: f64,
    /// Where its PEs went, as a sentence.
    pub how: String,
}

impl NodeInfo {
    /// The numbers of its PEs, as places in what there is of all PEs.
    #[must_use]
    pub fn pes(&self) -> Range<usize> {
        let first = self.first_pe as usize;
        first..first + self.pe_count as usize
    }
}

/// Counters of a node at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeSnapshot {
    /// Node id.
    pub node: u16,
    /// Counts up by one per snapshot of this node.
    pub sequence: u64,
    /// Age of the node process when this was taken.
    pub uptime_ns: u64,
    /// Memory that the process has taken, without pages of files.
    pub memory_bytes: u64,
    /// Memory that the node's host could still give to processes; 0 where the system does not tell.
    pub host_memory_bytes: u64,
    /// Messages that left for other nodes.
    pub sent_messages: u64,
    /// Bytes of messages that left for other nodes.
    pub sent_bytes: u64,
    /// Messages that came from other nodes.
    pub received_messages: u64,
    /// Bytes of messages that came from other nodes.
    pub received_bytes: u64,
    /// Whether its idle threads stay awake a moment for the next message: as far as it knows, nobody else wants their
    /// cores.
    pub spins: bool,
    /// Nodes that it shares memory with, the launcher (0) among them; it talks to all others by QUIC.
    pub shares_memory_with: Vec<u16>,
    /// Processor time, of this process and of all.
    pub processors: Processors,
    /// Its PEs, in order.
    pub pes: Vec<PeSnapshot>,
    /// What its entry methods cost and whom it sends to; not in every snapshot.
    pub profile: Option<Profile>,
    /// Clock of the fastest of the cores that its process may use, MHz; 0 where the system does not tell.
    pub clock_mhz: u32,
}

impl NodeSnapshot {
    /// These counters, with what is not told each time as the node has told it before.
    #[must_use]
    pub fn after(mut self, before: Option<Self>) -> Self {
        self.profile = self.profile.or(before.and_then(|before| before.profile));
        self
    }
}

/// Processor time at one moment, which is not later than the snapshot that it is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processors {
    /// Age of the node process at that moment.
    pub uptime_ns: u64,
    /// Time that the cores which it may use were busy since the host started, for whomever; 0 where the system does not
    /// tell.
    pub busy_ns: u64,
    /// Processor time of the node process.
    pub own_ns: u64,
}

/// What a PE is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PeState {
    /// No message is waiting; it looks for the next one, or takes its turn at the network.
    #[default]
    Idle,
    /// Runs an entry method.
    Compute,
    /// Runs an entry method or constructor before the program said `init_over`.
    Init,
    /// The runtime itself: queues, packing, routing.
    Overhead,
    /// Sleeps because its own `cpu_share` is used up.
    Throttled,
    /// No message is waiting, and it sleeps until one comes.
    Asleep,
}

impl PeState {
    /// Whether no message is waiting.
    #[must_use]
    pub fn is_idle(self) -> bool {
        matches!(self, Self::Idle | Self::Asleep)
    }
}

/// Counters of a PE at one moment. The seven times add up to the time that it has been on the node: its uptime, unless it came
/// from another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeSnapshot {
    /// PE number.
    pub pe: u32,
    /// State at the moment of the snapshot.
    pub state: PeState,
    /// How long it has been in that state. Entry methods that are so short that not each is timed count as one.
    pub in_state_ns: u64,
    /// Time on its core in entry methods after `init_over`.
    pub compute_ns: u64,
    /// Time without work.
    pub idle_ns: u64,
    /// Time on its core in entry methods and constructors before `init_over`.
    pub init_ns: u64,
    /// Time on its core in the runtime itself.
    pub overhead_ns: u64,
    /// Time in which it had something to do and was not on a core: others ran there, its process was stopped, it waited for a
    /// disk, or a virtual machine had none. This and the next are 0 where the system does not tell.
    pub core_wait_ns: u64,
    /// The same, because a quota of CPU time of its control group was used up.
    pub quota_ns: u64,
    /// Time asleep because its own `cpu_share` was used up.
    pub throttled_ns: u64,
    /// Entry methods run since the start ("chares processed" in 1995); constructors and reductions do not count.
    pub entries: u64,
    /// Chares that live here now.
    pub chares: u64,
    /// Chares that have moved from here to other PEs since the start.
    pub migrations: u64,
    /// Chares that have come here from other PEs since the start.
    pub arrived: u64,
    /// Messages sent by its chares, to anywhere.
    pub sent_messages: u64,
    /// Bytes of those that left for other nodes; a broadcast counts for each node it leaves to from here.
    pub sent_bytes: u64,
    /// Messages waiting in its queue.
    pub queue_messages: u64,
    /// Bytes waiting in its queue (bulk data only; small messages count their header).
    pub queue_bytes: u64,
    /// Units of work that its chares said they have done; the driver says how many there are, see [`Phase`].
    pub progress: u64,
    /// Chare type and entry of the message that runs now or ran last, e.g. `Block: Shift`.
    pub entry: String,
}

/// Clocks of nodes, all read between two readings of the launcher's: so no two can be further apart than the time between
/// these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// When the launcher asked, nanoseconds since the run began to be watched.
    pub asked_ns: u64,
    /// When it had the last of their answers.
    pub answered_ns: u64,
    /// Node ids and the ages of their processes between these two times, nanoseconds.
    pub uptimes: Vec<(u16, u64)>,
}

/// What the application is doing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// In the application's words, e.g. `multiplying`.
    pub name: String,
    /// Units done, out of `total`.
    pub done: u64,
    /// All units; 0 when unknown.
    pub total: u64,
    /// Whether `total` is what is expected, and may change.
    pub is_forecast: bool,
    /// What there is to say besides, e.g. how large an error is; may be empty, and may change.
    pub detail: String,
}

impl Phase {
    /// Whether `next` is the same phase, as far or further on.
    #[must_use]
    pub fn goes_on(&self, next: &Self) -> bool {
        let is_same = self.total == next.total || (self.is_forecast && next.is_forecast);
        self.name == next.name && is_same && self.done <= next.done
    }
}

/// A line of output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutputLine {
    /// Node that printed it; 0 is the launcher.
    pub node: u16,
    /// From standard error; a warning, if the launcher says so itself.
    pub is_error: bool,
    /// The line, without its end.
    pub text: String,
}
