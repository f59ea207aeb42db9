//! The events of a run in a file: [`Recorder`] writes them as they come, [`Recording`] reads them back.
//!
//! A file is a header ([`MAGIC`], then [`RECORDING_VERSION`] and [`MONITOR_VERSION`] as little-endian `u16`) and
//! records: length and checksum of what follows as little-endian `u32`, then time and event as postcard. A file whose
//! writer was killed is good up to its last whole record.

use super::map::{MAPS_MAX, Map};
use super::wire::{
    CLOCKED_VERSION, MONITOR_VERSION, MonitorEvent, NodeSnapshot, OLDEST_RECORDED_VERSION, OutputLine, Phase,
};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::time::Duration;

/// The first bytes of every recording; not text, and changed by what changes the ends of lines.
pub const MAGIC: [u8; 8] = *b"\x93mcrec\r\n";
/// Version of the header and of records.
pub const RECORDING_VERSION: u16 = 1;

/// Every time so much has been written, the time between two kept snapshots of a node doubles: a file grows with the
/// logarithm of the run's length. Counters are never reset, so what is left out costs resolution only.
const SPAN_BYTES: u64 = 32 << 20;
/// Time between two snapshots of a node.
const PERIOD: Duration = Duration::from_millis(100);
/// The period doubles no more often: by then it is over an hour.
const DOUBLINGS_MAX: u64 = 16;
/// Single entry methods, messages and reductions are kept, or left out, of all nodes for so long.
const SAMPLED: Duration = Duration::from_secs(2);
/// Of what the program shows so much less is kept than of snapshots.
const MAPS_EVERY: u32 = 10;
/// Lines of output beyond this are counted, not kept.
const LINES_MAX_BYTES: u64 = 64 << 20;
/// The longest record that can be, bytes.
const RECORD_MAX_BYTES: u32 = (16 << 20) + 16;
/// No run lasts longer: ten years.
const TIME_MAX: Duration = Duration::from_secs(315_360_000);

/// An event and when the launcher learned of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Time since the run began to be watched, see [`Hub::now`](super::hub::Hub::now).
    pub at: Duration,
    /// What happened.
    pub event: MonitorEvent,
}

/// Writes a recording. The first events are kept as they come, ten snapshots per node and second (about 100 bytes per
/// PE and snapshot); of a long run ever fewer, so that 1 GB is never reached.
#[derive(Debug)]
pub struct Recorder<W: Write> {
    out: W,
    written: u64,
    lines: u64,
    left_out: u64,
    snapshots: BTreeMap<u16, Thinned<NodeSnapshot>>,
    phase: Thinned<Phase>,
    maps: BTreeMap<String, Thinned<Map>>,
}

/// The last of its kind, if it has not been written, and when the last one was.
#[derive(Debug)]
struct Thinned<T> {
    written: Option<Duration>,
    waiting: Option<T>,
}

impl<T> Default for Thinned<T> {
    fn default() -> Self {
        Self { written: None, waiting: None }
    }
}

impl<T> Thinned<T> {
    /// The value if it is to be written now; otherwise it waits in the place of the one before.
    fn take(&mut self, at: Duration, gap: Duration, is_urgent: bool, value: T) -> Option<T> {
        if is_urgent || self.written.is_none_or(|before| at >= before + gap) {
            (self.written, self.waiting) = (Some(at), None);
            return Some(value);
        }
        self.waiting = Some(value);
        None
    }
}

impl<W: Write> Recorder<W> {
    /// Begins a recording; `out` should be buffered.
    ///
    /// # Errors
    /// If `out` takes no more.
    pub fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        out.write_all(&RECORDING_VERSION.to_le_bytes())?;
        out.write_all(&MONITOR_VERSION.to_le_bytes())?;
        Ok(Self {
            out,
            written: 0,
            lines: 0,
            left_out: 0,
            snapshots: BTreeMap::new(),
            phase: Thinned::default(),
            maps: BTreeMap::new(),
        })
    }

    /// Keeps an event that the launcher learned of at that time.
    ///
    /// # Errors
    /// If `out` takes no more; the recording is then good up to the event before.
    pub fn take(&mut self, at: Duration, event: &MonitorEvent) -> io::Result<()> {
        let doublings = (self.written / SPAN_BYTES).min(DOUBLINGS_MAX);
        let gap = PERIOD * (1 << doublings);
        match event {
            MonitorEvent::Snapshot(snapshot) => {
                let gap = if doublings == 0 { Duration::ZERO } else { gap };
                let thinned = self.snapshots.entry(snapshot.node).or_default();
                let mut snapshot = snapshot.clone();
                // A profile that is left out with its snapshot would be missed for long.
                let waiting = thinned.waiting.as_mut().and_then(|waiting| waiting.profile.take());
                snapshot.profile = snapshot.profile.or(waiting);
                if let Some(snapshot) = thinned.take(at, gap, false, snapshot) {
                    self.write(at, MonitorEvent::Snapshot(snapshot))?;
                }
                Ok(())
            }
            // Of all nodes the same times are kept, so that what follows from what can be seen in these.
            MonitorEvent::Samples(_) | MonitorEvent::Collectives(_)
                if !(at.as_nanos() / SAMPLED.as_nanos()).is_multiple_of(1 << doublings) =>
            {
                Ok(())
            }
            MonitorEvent::Phase(phase) => {
                // Where a phase begins and that it was completed matters more than every step.
                let is_urgent = phase.done == 0 || phase.done == phase.total;
                match self.phase.take(at, gap, is_urgent, phase.clone()) {
                    Some(phase) => self.write(at, MonitorEvent::Phase(phase)),
                    None => Ok(()),
                }
            }
            MonitorEvent::Map(map) => {
                if self.maps.len() >= MAPS_MAX && !self.maps.contains_key(map.title()) {
                    return Ok(());
                }
                let thinned = self.maps.entry(map.title().to_owned()).or_default();
                match thinned.take(at, gap * MAPS_EVERY, false, map.clone()) {
                    Some(map) => self.write(at, MonitorEvent::Map(map)),
                    None => Ok(()),
                }
            }
            MonitorEvent::Output(line) if self.lines + length(line) > LINES_MAX_BYTES => {
                self.left_out += 1;
                Ok(())
            }
            MonitorEvent::Output(line) => {
                self.lines += length(line);
                self.write(at, event.clone())
            }
            MonitorEvent::NodeLost { node, .. } => {
                if let Some(snapshot) = self.snapshots.get_mut(node).and_then(|last| last.waiting.take()) {
                    self.write(at, MonitorEvent::Snapshot(snapshot))?;
                }
                self.write(at, event.clone())
            }
            MonitorEvent::Ended { .. } => {
                self.write_waiting(at)?;
                self.write(at, event.clone())?;
                self.flush()
            }
            _ => self.write(at, event.clone()),
        }
    }

    /// Hands on what was written; what a killed process has flushed is in the file.
    ///
    /// # Errors
    /// If `out` takes no more.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes what was held back, so that the end is exact.
    fn write_waiting(&mut self, at: Duration) -> io::Result<()> {
        for snapshot in std::mem::take(&mut self.snapshots).into_values().filter_map(|last| last.waiting) {
            self.write(at, MonitorEvent::Snapshot(snapshot))?;
        }
        if let Some(phase) = self.phase.waiting.take() {
            self.write(at, MonitorEvent::Phase(phase))?;
        }
        for map in std::mem::take(&mut self.maps).into_values().filter_map(|last| last.waiting) {
            self.write(at, MonitorEvent::Map(map))?;
        }
        match std::mem::take(&mut self.left_out) {
            0 => Ok(()),
            count => self.write(at, MonitorEvent::Dropped(count)),
        }
    }

    fn write(&mut self, at: Duration, event: MonitorEvent) -> io::Result<()> {
        let bytes = postcard::to_stdvec(&(nanos(at), event)).map_err(io::Error::other)?;
        let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= RECORD_MAX_BYTES);
        let length = length.ok_or_else(|| io::Error::other("an event is longer than any can be"))?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&checksum(&bytes).to_le_bytes())?;
        self.out.write_all(&bytes)?;
        self.written += 8 + u64::from(length);
        Ok(())
    }
}

/// What a file of recorded events holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Events by time; the first is a [`MonitorEvent::Run`].
    pub events: Vec<Recorded>,
    /// Why the recording is not whole: it ends before its run did, or the file is cut off or damaged.
    pub broken: Option<Broken>,
}

/// Where a recording breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The run was still going on: its launcher was killed.
    #[error("the recording ends before the run did: its launcher was killed, or it still goes on")]
    Unended,
    /// The file ends within a record.
    #[error("the file is cut off at byte {0}; what came before is shown")]
    Cut(u64),
    /// A record is not what was written.
    #[error("the file is damaged at byte {0}; what came before is shown")]
    Damaged(u64),
}

/// Why a file cannot be replayed at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file is empty.
    #[error("it is empty")]
    Empty,
    /// The file is no recording.
    #[error("it is not a recording; make one with `run … --record FILE`")]
    Other,
    /// The recording was written by another version.
    #[error(
        "it was made by another version of this program (recording {recording}, monitor {monitor}; this one reads \
         {RECORDING_VERSION} and {OLDEST_RECORDED_VERSION} to {MONITOR_VERSION}); replay it with that one"
    )]
    Version {
        /// Its version of the file's format.
        recording: u16,
        /// Its version of the events.
        monitor: u16,
    },
    /// The file ends before its first event does.
    #[error("its run was killed before anything was recorded")]
    NoEvents,
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
}

impl Recording {
    /// Reads a whole recording. A file that was cut off or damaged gives what is good before that place. Takes memory
    /// in proportion to what has come, whatever lengths are announced.
    ///
    /// # Errors
    /// If it is no recording, of another version, without any event, or cannot be read.
    pub fn read(from: &mut impl Read) -> Result<Self, RecordingError> {
        let version = read_header(from)?;
        let mut recording = Self::default();
        let mut place = 12;
        let mut now = Duration::ZERO;
        loop {
            let (at, event, length) = match read_record(from, version)? {
                Next::Record(at, event, length) => (at, event, length),
                Next::End => break,
                Next::Cut => {
                    recording.broken = Some(Broken::Cut(place));
                    break;
                }
                Next::Damaged => {
                    recording.broken = Some(Broken::Damaged(place));
                    break;
                }
            };
            place += length;
            // Times only go on, whatever a file says.
            now = now.max(at);
            let is_last = matches!(event, MonitorEvent::Ended { .. });
            recording.events.push(Recorded { at: now, event });
            if is_last {
                return Ok(recording);
            }
        }
        match recording.events.first() {
            Some(Recorded { event: MonitorEvent::Run(_), .. }) => {}
            Some(_) => return Err(RecordingError::Other),
            None => return Err(RecordingError::NoEvents),
        }
        recording.broken = recording.broken.or(Some(Broken::Unended));
        Ok(recording)
    }

    /// Time of the last event.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.events.last().map_or(Duration::ZERO, |last| last.at)
    }
}

#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
enum Next {
    Record(Duration, MonitorEvent, u64),
    End,
    Cut,
    Damaged,
}

/// The version of the events that follow.
fn read_header(from: &mut impl Read) -> Result<u16, RecordingError> {
    let header = up_to(from, 12)?;
    let [magic @ .., r0, r1, m0, m1] = header.as_slice() else {
        return Err(if header.is_empty() { RecordingError::Empty } else { RecordingError::Other });
    };
    if *magic != MAGIC {
        return Err(RecordingError::Other);
    }
    let (recording, monitor) = (u16::from_le_bytes([*r0, *r1]), u16::from_le_bytes([*m0, *m1]));
    let is_known = (OLDEST_RECORDED_VERSION..=MONITOR_VERSION).contains(&monitor);
    if recording != RECORDING_VERSION || !is_known {
        return Err(RecordingError::Version { recording, monitor });
    }
    Ok(monitor)
}

fn read_record(from: &mut impl Read, version: u16) -> io::Result<Next> {
    let head = up_to(from, 8)?;
    let (length, sum) = match *head.as_slice() {
        [] => return Ok(Next::End),
        [a, b, c, d, e, f, g, h] => (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])),
        _ => return Ok(Next::Cut),
    };
    if length > RECORD_MAX_BYTES {
        return Ok(Next::Damaged);
    }
    let mut bytes = up_to(from, u64::from(length))?;
    if bytes.len() < length as usize {
        return Ok(Next::Cut);
    }
    if checksum(&bytes) != sum {
        return Ok(Next::Damaged);
    }
    if version < CLOCKED_VERSION {
        // A snapshot ends with the clock of the cores, which was not told then.
        bytes.push(0);
    }
    Ok(match postcard::from_bytes::<(u64, MonitorEvent)>(&bytes) {
        Ok((at, event)) if Duration::from_nanos(at) <= TIME_MAX => {
            Next::Record(Duration::from_nanos(at), event, 8 + u64::from(length))
        }
        _ => Next::Damaged,
    })
}

/// The next `count` bytes, or fewer where the file ends.
fn up_to(from: &mut impl Read, count: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// FNV-1a, 32 bits (Fowler, Noll, Vo): finds what a disk or a transfer changed, not what somebody forged.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum: u32, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

fn length(line: &OutputLine) -> u64 {
    line.text.len() as u64
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
