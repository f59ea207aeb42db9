//! A checkpoint is kept on a thread of its own: the run goes on as soon as all PEs have packed what they have, the driver, too.

use super::variables::{Made, saved_variables};
use crate::checkpoint::Keeper;
use crate::timeline::Kept;
use runtime::codec::Order;
use runtime::digest::Digested;
use runtime::envelope::Packed;
use runtime::ids::{NodeId, PeId};
use runtime::node::Node;
use runtime::saved::{RecordHeader, RecordOf, ToKeep};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A checkpoint that has begun and is not complete.
pub(super) struct Keeping {
    /// Its number in this run.
    pub(super) number: u32,
    /// Whether PEs that see the folder may write to it themselves.
    pub(super) may_write: bool,
    /// Nothing when all has been said.
    parts: Option<Sender<Part>>,
    thread: Option<JoinHandle<Option<Done>>>,
    /// Records of nodes that have come, and how many there will be, as soon as that is known.
    come: u64,
    wanted: Option<u64>,
    /// The run has ended before it was whole.
    is_over: Arc<AtomicBool>,
}

/// What is to be kept of it.
enum Part {
    /// What the launcher has.
    Shared(RecordHeader, Packed),
    OfNode(NodeId, ToKeep, Packed),
    /// What a PE has written itself is there for good.
    Wrote(PeId),
    /// All PEs have packed all they have.
    Packed(Box<AllPacked>),
    /// Why it cannot be taken.
    Failed(String),
}

/// What makes a checkpoint whole, beside the records that are on their way.
pub(super) struct AllPacked {
    /// The driver's own part.
    pub(super) driver: Packed,
    /// How many records PEs have packed.
    pub(super) records: u64,
    /// How long they stood still.
    pub(super) paused: Duration,
    /// The variables that there are.
    pub(super) variables: BTreeMap<u64, Made>,
}

/// What has come of it.
pub(super) struct Done {
    pub(super) keeper: Box<dyn Keeper>,
    /// What is kept, or why nothing is; nothing if the run ended first.
    pub(super) kept: Option<Result<Kept, String>>,
    /// Bytes that have been kept for each node, and it has not been told yet.
    pub(super) kept_bytes: BTreeMap<NodeId, u64>,
}

impl Keeping {
    /// Begins to keep one. A node is told whenever so many bytes of it have been kept; the driver, when all of it is.
    ///
    /// # Errors
    /// If there is no thread for it: the keeper, and why.
    pub(super) fn begin(
        (number, may_write): (u32, bool),
        began: Instant,
        keeper: Box<dyn Keeper>,
        (node, told_from): (&Arc<Node>, u64),
    ) -> Result<Self, (Box<dyn Keeper>, String)> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (parts, said) = channel();
        let (give, given) = channel::<Keep>();
        let thread = std::thread::Builder::new().name("keeper".into());
        let thread = match thread.spawn(move || Some(given.recv().ok()?.all(&said))) {
            Ok(thread) => thread,
            Err(error) => return Err((keeper, format!("there is no thread for it: {error}"))),
        };
        let keep = Keep {
            keeper,
            node: Arc::clone(node),
            began,
            told_from,
            records: 0,
            kept_bytes: BTreeMap::new(),
            variables: BTreeSet::new(),
            writers: Writers::default(),
            failed: None,
            is_over: Arc::clone(&is_over),
        };
        let keeping = Self {
            number,
            may_write,
            parts: Some(parts),
            thread: Some(thread),
            come: 0,
            wanted: None,
            is_over,
        };
        give.send(keep).map(|()| keeping).map_err(|unsent| (unsent.0.keeper, "its thread has ended".into()))
    }

    pub(super) fn keep_shared(&self, header: RecordHeader, packed: Packed) {
        self.say(Part::Shared(header, packed));
    }

    pub(super) fn keep_of_node(&mut self, from: NodeId, record: ToKeep, packed: Packed) {
        self.come += 1;
        self.say(Part::OfNode(from, record, packed));
    }

    /// It is complete as soon as so many records have been kept.
    pub(super) fn all_packed(&mut self, all: AllPacked) {
        self.wanted = Some(all.records);
        self.say(Part::Packed(Box::new(all)));
    }

    /// What a PE has written itself is there for good, or why it is not.
    pub(super) fn has_written(&self, pe: PeId, wrote: Result<(), String>) {
        match wrote {
            Ok(()) => self.say(Part::Wrote(pe)),
            Err(why) => self.fail(format!("PE {} could not write to the folder: {why}", pe.0)),
        }
    }

    pub(super) fn fail(&self, why: String) {
        self.say(Part::Failed(why));
    }

    fn say(&self, part: Part) {
        // The thread hears everything until it has told the driver that it is done.
        if let Some(parts) = &self.parts {
            drop(parts.send(part));
        }
    }

    /// What has come of it, as soon as that is known; nothing if its thread panicked.
    pub(super) fn done(mut self) -> Option<Done> {
        self.end()
    }

    fn end(&mut self) -> Option<Done> {
        self.parts = None;
        self.thread.take()?.join().ok()?
    }
}

impl Drop for Keeping {
    /// What is whole is still kept, though the run has failed; whether all is there that PEs wrote, its thread knows.
    fn drop(&mut self) {
        let is_whole = self.wanted.is_some_and(|wanted| self.come >= wanted);
        self.is_over.store(!is_whole, Ordering::Relaxed);
        self.end();
    }
}

/// The thread that does it.
struct Keep {
    keeper: Box<dyn Keeper>,
    node: Arc<Node>,
    began: Instant,
    told_from: u64,
    /// How many records of nodes have been kept.
    records: u64,
    kept_bytes: BTreeMap<NodeId, u64>,
    /// The variables and accumulators that have records in it.
    variables: BTreeSet<u64>,
    writers: Writers,
    failed: Option<String>,
    is_over: Arc<AtomicBool>,
}

/// Tells the driver when the thread is done, also if it panics.
struct Telling(Arc<Node>);

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.tell_kept();
    }
}

impl Keep {
    fn all(mut self, parts: &Receiver<Part>) -> Done {
        let _telling = Telling(Arc::clone(&self.node));
        let mut all = None;
        for part in parts {
            if self.is_over.load(Ordering::Relaxed) {
                break;
            }
            match part {
                Part::Shared(header, packed) => {
                    let digested = Digested::all(&packed);
                    self.keep(header, packed, digested);
                }
                Part::OfNode(from, record, packed) => self.keep_of_node(from, record, packed),
                Part::Wrote(pe) => drop(self.writers.done.insert(pe)),
                Part::Packed(packed) => all = Some(packed),
                Part::Failed(why) => {
                    self.failed.get_or_insert(why);
                    break;
                }
            }
            if all.as_ref().is_some_and(|all| self.has_all(all) || self.failed.is_some()) {
                break;
            }
        }
        let kept = self.complete(all);
        if let Some(Err(why)) = &kept {
            self.keeper.discard(why);
        }
        Done { keeper: self.keeper, kept, kept_bytes: self.kept_bytes }
    }

    fn has_all(&self, all: &AllPacked) -> bool {
        self.records >= all.records && self.writers.are_done()
    }

    fn complete(&mut self, all: Option<Box<AllPacked>>) -> Option<Result<Kept, String>> {
        if let Some(why) = self.failed.take() {
            return Some(Err(why));
        }
        let all = all.filter(|all| self.has_all(all))?;
        let AllPacked { driver, paused, variables, .. } = *all;
        let made = self.variables.iter().filter_map(|id| Some((*id, *variables.get(id)?)));
        let variables = saved_variables(self.node.program(), made);
        let kept = self.keeper.commit(driver, variables);
        Some(kept.map(|kept| Kept { paused, took: self.began.elapsed(), ..kept }))
    }

    fn keep_of_node(&mut self, from: NodeId, record: ToKeep, packed: Packed) {
        let len_bytes = packed.len_bytes() as u64;
        self.writers.hear_of(&record);
        let (header, packed) = record.sent.open(packed);
        self.records += 1;
        self.keep(header, packed, record.digested);
        count_kept(&mut self.kept_bytes, (from, len_bytes), self.told_from, &self.node);
    }

    /// Hands a record to whoever keeps it, unless one could not be kept.
    fn keep(&mut self, header: RecordHeader, packed: Packed, digested: Vec<Digested>) {
        if self.failed.is_some() {
            return;
        }
        let chare_type = match &header.of {
            RecordOf::Chare(element) => self.node.chare_type_of(element.collection),
            RecordOf::Sum(id) | RecordOf::Variable { id, .. } => {
                self.variables.insert(*id);
                None
            }
            _ => None,
        };
        let name = chare_type.map_or("", |known| known.name.as_str());
        self.failed = self.keeper.put(header, name, packed, digested).err();
    }
}

/// The PEs that write what they have themselves.
#[derive(Default)]
struct Writers {
    /// Of which a record says so.
    are: BTreeSet<PeId>,
    /// All of whose bytes are there for good.
    done: BTreeSet<PeId>,
}

impl Writers {
    fn hear_of(&mut self, record: &ToKeep) {
        if record.is_written() {
            self.are.insert(record.sent.header.pe);
        }
    }

    fn are_done(&self) -> bool {
        self.are.is_subset(&self.done)
    }
}

/// So much more has been kept of a node, which is told whenever it is enough.
pub(super) fn count_kept(
    kept_bytes: &mut BTreeMap<NodeId, u64>,
    (from, len_bytes): (NodeId, u64),
    told_from: u64,
    node: &Node,
) {
    let kept = kept_bytes.entry(from).or_default();
    *kept += len_bytes;
    if *kept >= told_from {
        node.order(from, Order::Kept(std::mem::take(kept)), Packed::default());
    }
}
