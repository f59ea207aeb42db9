//! Checkpoints of a run in a folder: written when they are due, and read by who goes on.

use super::note;
use super::report::unix_ms;
use chares::checkpoint::{GoOn, Keeper, Kept};
use runtime::checkpoint::{About, Kind as RecordKind, Machine, Record, Saved, Store, Writer};
use runtime::codec::VariableKind;
use runtime::envelope::Packed;
use runtime::failure::{Failure, Kind};
use runtime::ids::{CollectionId, ElementId, ElementIndex, PeId};
use runtime::monitor::hub::Hub;
use runtime::monitor::wire::{MonitorEvent, OutputLine, RunInfo, SavedAt};
use runtime::saved::{RecordHeader, RecordOf};
use runtime::size::Size;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// Names of what nodes share, as the types of their records.
const COLLECTION: &str = "collection";
const VARIABLE: &str = "variable";
const SUM: &str = "sum";
const LOADS: &str = "loads";
/// As many records are read ahead of who takes them in.
const AHEAD: usize = 16;
/// Before a run is ended by its time limit a checkpoint gets this part of the limit, and so many times as long as the last
/// one took.
const LAST_PART: u32 = 20;
const LAST_TIMES: u32 = 3;

/// Writes the checkpoints of a run.
pub(crate) struct StoreKeeper {
    store: Store,
    about: About,
    hub: Arc<Hub>,
    is_quiet: bool,
    every: Duration,
    last: Instant,
    took: Duration,
    /// When the run is ended at the latest.
    end: Option<Instant>,
    /// Somebody wants one now.
    wanted: Arc<AtomicBool>,
    under_way: Option<(Writer, Instant)>,
}

/// When checkpoints are taken, and whether the user is told of each.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) every: Duration,
    /// The time limit of the run.
    pub(crate) limit: Option<Duration>,
    pub(crate) is_quiet: bool,
}

impl StoreKeeper {
    pub(crate) fn new(
        store: Store,
        schedule: &Schedule,
        (hub, version, arguments): (&Arc<Hub>, &str, Vec<String>),
    ) -> Result<Self, Failure> {
        let info = hub.info();
        let wanted = runtime::job::hear_checkpoint_orders()
            .map_err(|e| Failure::new(Kind::Unavailable, format!("signals cannot be heard: {e}")))?;
        Ok(Self {
            store,
            about: about(&info, version, arguments),
            hub: Arc::clone(hub),
            is_quiet: schedule.is_quiet,
            every: schedule.every,
            last: Instant::now(),
            took: Duration::ZERO,
            end: schedule.limit.and_then(|limit| Instant::now().checked_add(limit - limit / LAST_PART)),
            wanted,
            under_way: None,
        })
    }

    fn tell(&self, text: String, is_error: bool) {
        if is_error || !self.is_quiet {
            self.hub.publish(MonitorEvent::Output(OutputLine { node: 0, is_error, text }));
        }
    }
}

fn about(info: &RunInfo, version: &str, arguments: Vec<String>) -> About {
    About {
        program: info.program.clone(),
        version: version.into(),
        arguments,
        pes: info.nodes.iter().map(|node| node.pe_count).sum(),
        nodes: info.nodes.iter().map(|node| Machine::this(&node.name, node.pe_count)).collect(),
        ..About::default()
    }
}

impl Keeper for StoreKeeper {
    fn is_due(&mut self) -> bool {
        let is_wanted = self.wanted.swap(false, Ordering::Relaxed);
        let is_late = self.end.is_some_and(|end| Instant::now() + self.took * LAST_TIMES >= end);
        if is_late {
            self.end = None;
        }
        is_wanted || is_late || self.last.elapsed() >= self.every
    }

    fn begin(&mut self) -> Result<(), String> {
        let began = Instant::now();
        self.last = began;
        let about = About { taken_ms: unix_ms(), progress: self.hub.progress(), ..self.about.clone() };
        self.under_way = Some((self.store.begin(about).map_err(|e| e.to_string())?, began));
        Ok(())
    }

    fn put(&mut self, header: RecordHeader, type_name: &str, packed: Packed) -> Result<(), String> {
        let Some((writer, _)) = &mut self.under_way else { return Ok(()) };
        writer.put(&record(header, type_name, packed)).map_err(|e| e.to_string())
    }

    fn commit(&mut self, driver: Packed) -> Result<Kept, String> {
        let Some((mut writer, began)) = self.under_way.take() else { return Ok(Kept::default()) };
        let log = Record {
            kind: RecordKind::Driver,
            pe: 0,
            type_name: "driver".into(),
            collection: 0,
            index: [0; 3],
            packed: driver,
        };
        let written = writer.put(&log).and_then(|()| writer.commit()).map_err(|e| e.to_string())?;
        self.took = began.elapsed();
        let (bytes, fresh, seconds) = (Size(written.bytes), Size(written.new_bytes), self.took.as_secs_f64());
        let number = written.generation;
        self.tell(
            format!("checkpoint {number}: {bytes}, of which {fresh} are new, in {seconds:.2} s"),
            false,
        );
        let at_s = self.hub.now().as_secs_f64();
        self.hub.describe(|info| info.saved = Some(SavedAt { number, at_s, bytes: written.bytes }));
        Ok(Kept { number, bytes: written.bytes, new_bytes: written.new_bytes, ..Kept::default() })
    }

    fn discard(&mut self, why: &str) {
        self.under_way = None;
        self.tell(format!("no checkpoint was taken, and the run goes on: {why}"), true);
    }
}

fn record(RecordHeader { pe, of }: RecordHeader, type_name: &str, packed: Packed) -> Record {
    let shared = |name: &str, collection, index| (RecordKind::Node, 0, name.to_string(), collection, index);
    let (kind, pe, type_name, collection, index) = match of {
        RecordOf::Chare(ElementId { collection, index }) => {
            (RecordKind::Chare, pe.0, type_name.into(), collection.0, index.0)
        }
        RecordOf::Pe => (RecordKind::Pe, pe.0, "PE".into(), 0, [0; 3]),
        RecordOf::Sum(id) => shared(SUM, id, [0; 3]),
        RecordOf::Loads => shared(LOADS, 0, [0; 3]),
        RecordOf::Collection => shared(COLLECTION, 0, [0; 3]),
        RecordOf::Variable { id, kind, origin } => {
            shared(VARIABLE, id, [u32::from(kind == VariableKind::Monotonic), origin.0, 0])
        }
    };
    Record { kind, pe, type_name, collection, index, packed }
}

/// What [`record`] was made of; `None` of the driver's.
fn header(record: &Record) -> Option<RecordHeader> {
    let element =
        ElementId { collection: CollectionId(record.collection), index: ElementIndex(record.index) };
    let (pe, of) = match (record.kind, record.type_name.as_str()) {
        (RecordKind::Chare, _) => (PeId(record.pe), RecordOf::Chare(element)),
        (RecordKind::Pe, _) => (PeId(record.pe), RecordOf::Pe),
        (RecordKind::Node, SUM) => (PeId::DRIVER, RecordOf::Sum(record.collection)),
        (RecordKind::Node, COLLECTION) => (PeId::DRIVER, RecordOf::Collection),
        (RecordKind::Node, LOADS) => (PeId::DRIVER, RecordOf::Loads),
        (RecordKind::Node, VARIABLE) => {
            let [monotonic, origin, _] = record.index;
            let kind = if monotonic == 1 { VariableKind::Monotonic } else { VariableKind::Once };
            (PeId::DRIVER, RecordOf::Variable { id: record.collection, kind, origin: PeId(origin) })
        }
        _ => return None,
    };
    Some(RecordHeader { pe, of })
}

/// What a checkpoint has for a run that goes on.
pub(crate) fn go_on(saved: Arc<Saved>) -> Result<GoOn, Failure> {
    let log = saved.records_of_kind(RecordKind::Driver).next();
    let log = log.ok_or_else(|| Failure::new(Kind::Input, "the checkpoint holds no driver's log"))?;
    let driver = log.map_err(Failure::from)?.packed;
    let (found, records) = sync_channel(AHEAD);
    let pes = saved.about().pes;
    std::thread::spawn(move || {
        let shared = saved.records_of_kind(RecordKind::Node);
        let of_pes = (0..pes).flat_map(|pe| {
            saved
                .records_where(move |kind, of| of == pe && matches!(kind, RecordKind::Chare | RecordKind::Pe))
        });
        for record in shared.chain(of_pes) {
            let record = record.map_err(Failure::from).and_then(|record| {
                let header = header(&record);
                let header = header.ok_or_else(|| {
                    Failure::new(
                        Kind::Input,
                        format!("the checkpoint has a record of kind {} that is none", record.kind),
                    )
                })?;
                Ok((header, record.packed))
            });
            // Who goes on may have failed.
            if found.send(record).is_err() {
                return;
            }
        }
    });
    Ok(GoOn { driver, records: Box::new(records.into_iter()), placing: None })
}

/// Says how to go on with a run that has failed, if it was saved.
pub(crate) fn say_what_is_left(dir: &Path, program: &str) {
    if let Ok(saved) = Store::open(dir).and_then(|store| store.latest()) {
        let (number, dir) = (saved.generation(), dir.display());
        note(&format!("the run was saved: `{program} restart {dir}` goes on from checkpoint {number}"));
    }
}
