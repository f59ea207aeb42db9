//! Checkpoints of a run in a folder: written when they are due, and read by who goes on.

mod restoring;
mod writing;

use super::note;
use super::options::Every;
use super::report::unix_ms;
use chares::checkpoint::{Keeper, Kept, Protocol};
use runtime::checkpoint::{
    About, Kind as RecordKind, Machine, Record, SavedSchema, SavedVariable, Store, Written,
};
use runtime::digest::Digested;
use runtime::envelope::Packed;
use runtime::job::{SaveOrder, SaveOrders};
use runtime::monitor::hub::Hub;
use runtime::monitor::requests::{SavedIn, restart_command};
use runtime::monitor::wire::{MonitorEvent, NodeInfo, RunInfo, SavedAt, SavingCost};
use runtime::saved::{GiveExtents, RecordHeader};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use writing::Writing;

pub(crate) use restoring::go_on;

/// Before a run is ended by its time limit a checkpoint gets this part of the limit, and so many times as long as the last
/// one took; but at least so much of it as the driver needs to look and all PEs to stand still, if it is not half of it.
const LAST_PART: u32 = 20;
const LAST_LEAST: Duration = Duration::from_millis(500);
const LAST_TIMES: u32 = 3;
/// At a good moment, a checkpoint may come earlier by this part of the time or of the steps between two.
const EARLY_PART: u32 = 8;

/// Writes the checkpoints of a run.
pub(crate) struct StoreKeeper {
    store: Store,
    version: String,
    arguments: Vec<String>,
    hub: Arc<Hub>,
    is_quiet: bool,
    every: Every,
    protocol: Protocol,
    last: Instant,
    /// How much of the phase was done at the last one.
    last_done: u64,
    /// How long the last one took, and all of them.
    took: Duration,
    all_took: Duration,
    /// When the checkpoint before the time limit has to begin at the latest.
    end: Option<Instant>,
    /// Somebody may want one now.
    orders: Arc<SaveOrders>,
    /// The next one, or the one under way, is for whoever is about to end the run.
    is_before_end: bool,
    under_way: Option<(Writing, Instant)>,
    /// From what PEs get room that see the folder.
    extents: Option<Arc<dyn GiveExtents>>,
    /// What chares are made of, by the names of their types.
    schemas: Vec<(String, SavedSchema)>,
}

/// When checkpoints are taken, and whether the user is told of each.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) every: Every,
    pub(crate) protocol: Protocol,
    /// The time limit of the run, and when it is over.
    pub(crate) limit: Option<(Duration, Instant)>,
    pub(crate) is_quiet: bool,
}

impl StoreKeeper {
    /// For the folder and the orders of a run, which are awaited from now on.
    pub(crate) fn new(
        (store, orders): (Store, Arc<SaveOrders>),
        schedule: &Schedule,
        (hub, version, arguments): (&Arc<Hub>, &str, Vec<String>),
        schemas: Vec<(String, SavedSchema)>,
    ) -> Self {
        orders.are_awaited();
        Self {
            store,
            version: version.into(),
            arguments,
            hub: Arc::clone(hub),
            is_quiet: schedule.is_quiet,
            every: schedule.every,
            protocol: schedule.protocol,
            last: Instant::now(),
            last_done: 0,
            took: Duration::ZERO,
            all_took: Duration::ZERO,
            end: schedule.limit.map(|(limit, over)| last_chance(limit, over)),
            orders,
            is_before_end: false,
            under_way: None,
            extents: None,
            schemas,
        }
    }

    /// Nobody need wait any more who is about to end the run. One that had begun before he said so is not his.
    fn has_obeyed(&mut self) {
        if std::mem::take(&mut self.is_before_end) {
            self.orders.obeyed();
        }
    }
}

impl Drop for StoreKeeper {
    /// Nothing is saved any more: whoever waits for that need not.
    fn drop(&mut self) {
        self.orders.obeyed();
    }
}

/// When the checkpoint before the end of a time limit begins, unless earlier ones took long.
fn last_chance(limit: Duration, over: Instant) -> Instant {
    let margin = (limit / LAST_PART).max(LAST_LEAST).min(limit / 2);
    over.checked_sub(margin).unwrap_or(over)
}

/// Whether so many steps since the last checkpoint are as many as there are to be between two, or nearly at a good moment.
fn are_done(every: u64, since: u64, is_good_moment: bool) -> bool {
    let early = if is_good_moment { every / u64::from(EARLY_PART) } else { 0 };
    since >= every - early
}

/// The run as it is now: nodes join it and leave it. The PEs of those that have left are on others, with their numbers.
fn about(info: RunInfo) -> About {
    About {
        pes: info.nodes.iter().map(|node| node.pe_count).sum(),
        nodes: info.nodes.iter().filter(|node| node.left.is_none()).map(machine).collect(),
        program: info.program,
        ..About::default()
    }
}

fn machine(node: &NodeInfo) -> Machine {
    Machine { name: node.name.clone(), architecture: node.architecture.clone(), pes: node.pe_count }
}

impl Keeper for StoreKeeper {
    fn is_due(&mut self, is_good_moment: bool) -> Option<Protocol> {
        let order = self.orders.take();
        let is_late = self.end.is_some_and(|end| Instant::now() + self.took * LAST_TIMES >= end);
        if is_late {
            self.end = None;
        }
        let is_time = match self.every {
            Every::Time(every) if is_good_moment => self.last.elapsed() >= every - every / EARLY_PART,
            Every::Time(every) => self.last.elapsed() >= every,
            Every::Steps(every) => {
                let done = self.hub.done();
                // Another phase begins at 0.
                self.last_done = self.last_done.min(done);
                are_done(every, done - self.last_done, is_good_moment)
            }
        };
        self.is_before_end = order == Some(SaveOrder::BeforeEnd);
        if self.is_before_end || is_late {
            // Whoever is about to end the run has no use for what it does meanwhile, and all stand still sooner than all have been
            // saved.
            return Some(Protocol::Barrier);
        }
        (is_time || order.is_some()).then_some(self.protocol)
    }

    fn protocol(&self) -> Protocol {
        self.protocol
    }

    fn begin(&mut self) -> Result<bool, String> {
        let began = Instant::now();
        (self.last, self.last_done) = (began, self.hub.done());
        let about = About {
            version: self.version.clone(),
            arguments: self.arguments.clone(),
            taken_ms: unix_ms(),
            progress: self.hub.progress(),
            ..about(self.hub.info())
        };
        let mut writer = self.store.begin(about).map_err(|e| e.to_string())?;
        for (name, schema) in &self.schemas {
            writer.describe(RecordKind::Chare, name, schema.clone());
        }
        let has_last = writer.has_last();
        self.extents = writer.extents();
        self.under_way = Some((Writing::begin(writer)?, began));
        Ok(has_last)
    }

    fn extents(&self) -> Option<Arc<dyn GiveExtents>> {
        self.extents.clone()
    }

    fn put(
        &mut self,
        header: RecordHeader,
        type_name: &str,
        packed: Packed,
        digested: Vec<Digested>,
    ) -> Result<(), String> {
        let Some((writing, _)) = &mut self.under_way else { return Ok(()) };
        writing.put(Record::of_run(header, type_name, packed), digested);
        Ok(())
    }

    fn commit(&mut self, driver: Packed, variables: Vec<SavedVariable>) -> Result<Kept, String> {
        let Some((mut writing, began)) = self.under_way.take() else { return Ok(Kept::default()) };
        let log = Record {
            kind: RecordKind::Driver,
            pe: 0,
            type_name: "driver".into(),
            collection: 0,
            index: [0; 3],
            packed: driver,
        };
        let digested = Digested::all(&log.packed);
        writing.put(log, digested);
        let written = writing.commit(variables)?;
        self.took = began.elapsed();
        self.all_took += self.took;
        let Written { generation: number, bytes, new_bytes, by_nodes_bytes, .. } = written;
        let kept = Kept { number, bytes, new_bytes, by_nodes_bytes, took: self.took, ..Kept::default() };
        if !self.is_quiet {
            self.hub.note(kept.to_string());
        }
        let at_s = self.hub.now().as_secs_f64();
        self.hub.describe(|info| info.saved = Some(SavedAt { number, at_s, bytes }));
        let (last_s, all_s) = (self.took.as_secs_f64(), self.all_took.as_secs_f64());
        self.hub.publish(MonitorEvent::Saving(SavingCost { last_s, all_s }));
        self.has_obeyed();
        Ok(kept)
    }

    fn discard(&mut self, why: &str) {
        if let Some((writing, _)) = self.under_way.take() {
            writing.give_up();
        }
        self.hub.warn(format!("no checkpoint was taken, and the run goes on: {why}"));
        self.hub.publish(MonitorEvent::NotSaved(why.into()));
        self.has_obeyed();
    }

    fn place(&self) -> Option<SavedIn> {
        let (started_in, program) = (std::env::current_dir().ok()?, self.hub.info().program);
        Some(SavedIn { dir: std::path::absolute(self.store.dir()).ok()?, started_in, program })
    }
}

/// Says how to go on with a run that has failed, from what it has written or gone on from itself, or that nothing is left of it.
pub(crate) fn say_what_is_left(saved: Option<(PathBuf, u32)>, program: &str, has_begun: bool) {
    let Some((dir, number)) = saved else {
        if has_begun {
            note("no checkpoint had been taken: nothing is left of the run, and its command begins it anew");
        }
        return;
    };
    let there = Store::open(&dir).and_then(|store| store.latest());
    note(&match there {
        Ok(saved) if saved.generation() == number => {
            format!(
                "the run was saved: `{}` goes on from checkpoint {number}",
                restart_command(program, &dir)
            )
        }
        Ok(_) => format!(
            "the run was saved as checkpoint {number}, and that is not the last one in {} any more",
            dir.display()
        ),
        Err(why) => format!("the run was saved as checkpoint {number}, which cannot be read any more: {why}"),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_after_so_many_steps_comes_sooner_at_a_good_moment_only() {
        let of = |since, is_good| are_done(80, since, is_good);
        assert_eq!([79, 80, 200].map(|since| of(since, false)), [false, true, true]);
        assert_eq!([69, 70, 79].map(|since| of(since, true)), [false, true, true]);
        assert!(are_done(1, 1, false) && !are_done(1, 0, true), "each step at most");
    }

    #[test]
    fn the_last_checkpoint_begins_early_enough_before_a_time_limit() {
        let over = Instant::now() + Duration::from_secs(4000);
        let before_s =
            |limit_s: f64| (over - last_chance(Duration::from_secs_f64(limit_s), over)).as_secs_f64();
        let limits = [0.2, 2.0, 60.0, 3600.0];
        assert_eq!(limits.map(before_s), [0.1, 0.5, 3.0, 180.0]);
    }
}
