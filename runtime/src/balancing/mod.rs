//! Balancing a run while it goes on: nodes say what their chares cost, a balancer says which should move, and the PEs where
//! these are send them off.
//!
//! ```text
//!   PEs time entry methods ─► nodes, some times a second ─► Census ─► View ─► balancer ─► moves ─► PEs
//! ```
//!
//! It happens on a thread of the launcher, so that nothing waits for a decision. What was ordered is not waited for either:
//! the next views show where chares are.

mod census;
mod graph;
mod heavy;
mod placing;

pub use census::{Census, Looks};
pub use placing::{Placeable, Placed};

use self::heavy::Heavy;
use crate::envelope::{Packed, PeOrder};
use crate::ids::{ElementId, NodeId, PeId};
use crate::loads::NodeLoads;
use crate::monitor::BalancingCost;
use crate::monitor::heavy::Heaviest;
use crate::monitor::wire::Balanced;
use crate::node::{BalancingEvent, Node};
use loadbalance::balance::auto::{Answer, Auto, Look, Record, Sample};
use loadbalance::balance::{Balancer, Choice, Decision, Move, ViewError};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// How often it is looked whether the run has ended.
const LOOK: Duration = Duration::from_millis(100);
/// A balancer that is no `auto` decides no more often than this, seconds.
const EVERY_S: f64 = 1.0;
/// Bytes per second between nodes until more have been seen to come: those of a gigabit line.
const BYTES_PER_S: f64 = 1e8;
/// Seconds that a chare is away besides those of its bytes: a few messages.
const AWAY_S: f64 = 1e-3;
/// So many decisions are told; of more, the latest.
const TOLD_MAX: usize = 256;

/// What there is to tell those who watch.
#[derive(Debug)]
pub enum News {
    /// The latest decisions: there is a new one, or it is known what the last one brought.
    Decisions(Vec<Balanced>),
    /// What balancing has cost so far.
    Cost(BalancingCost),
    /// The heaviest chares of a node.
    Heaviest(Heaviest),
}

/// Balances the run of `node`, which is the launcher, until it ends. `left_s` says how many seconds are left, if that is known;
/// `tell` hears what is new.
///
/// # Errors
/// If the system refuses a thread.
pub fn start(
    node: Arc<Node>,
    choice: Choice,
    heard: Receiver<BalancingEvent>,
    left_s: impl Fn() -> Option<f64> + Send + 'static,
    tell: impl Fn(News) + Send + 'static,
) -> std::io::Result<()> {
    let mut balancing = Balancing::new(node, choice);
    let run = move || {
        // How many decisions were told, and what was known of the last one's outcome.
        let mut told = (0, None);
        while !balancing.node.has_ended() {
            match heard.recv_timeout(LOOK) {
                Ok(BalancingEvent::Told { from, loads, bytes }) => {
                    balancing.cost.message(bytes);
                    if let Some(heaviest) = balancing.heaviest(from, &loads) {
                        tell(News::Heaviest(heaviest));
                    }
                    balancing.take(from, loads, &left_s);
                    tell(News::Cost(balancing.cost));
                }
                Ok(BalancingEvent::Asked(known)) => drop(known.send(balancing.census.known())),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let records = balancing.by.records();
            let latest = (records.len(), records.last().and_then(|last| last.after));
            if latest != told {
                let last = &records[records.len().saturating_sub(TOLD_MAX)..];
                tell(News::Decisions(last.iter().map(balanced).collect()));
                told = latest;
            }
        }
    };
    std::thread::Builder::new().name("balancing".into()).spawn(run).map(drop)
}

struct Balancing {
    node: Arc<Node>,
    census: Census,
    heavy: Heavy,
    by: By,
    looks: Looks,
    cost: BalancingCost,
}

/// Who decides.
enum By {
    Always { choice: Box<dyn Balancer>, last_s: f64, records: Vec<Record> },
    Auto(Box<Auto>),
}

impl Balancing {
    fn new(node: Arc<Node>, choice: Choice) -> Self {
        let looks = Looks { at_edges: choice.uses_edges(), at_places: choice.uses_places() };
        let by = match choice {
            Choice::Always(choice) => By::Always { choice, last_s: 0.0, records: Vec::new() },
            Choice::Auto(settings) => By::Auto(Box::new(Auto::new(settings))),
        };
        Self {
            heavy: Heavy::default(),
            census: Census::new(node.topology()),
            node,
            by,
            looks,
            cost: BalancingCost::default(),
        }
    }

    /// What there is to tell of the node's heaviest chares, if it is time for that.
    fn heaviest(&mut self, from: NodeId, loads: &NodeLoads) -> Option<Heaviest> {
        let catalogue = self.node.catalogue();
        self.heavy.take(from, loads, |ElementId { collection, index }| {
            let chare_type = catalogue.chare_type_of(collection)?;
            Some((chare_type, catalogue.program().index_name(chare_type, index)))
        })
    }

    fn take(&mut self, from: NodeId, loads: NodeLoads, left_s: impl Fn() -> Option<f64>) {
        self.census.look_at(self.node.topology());
        self.census.take(from, loads);
        if !self.census.is_complete() {
            return;
        }
        let begin = self.node.now();
        self.look(left_s());
        self.cost.looked(self.node.now().saturating_sub(begin));
    }

    /// Decides whether to move anything, now that all nodes have said what there is.
    fn look(&mut self, left_s: Option<f64>) {
        let view = self.census.view(&self.node.cpu_rates(), self.looks);
        let now_s = self.node.now().as_secs_f64();
        let sample = Sample {
            now_s,
            view: &view,
            gone: self.census.gone(),
            span_s: self.census.span_s(),
            left_s,
            left_work: self.census.left_work(),
            bytes_per_s: self.census.bytes_per_s().max(BYTES_PER_S),
            away_s: AWAY_S,
            decide_s: 0.0,
        };
        let decided = self.by.decide(&sample);
        for pe in self.by.pes_to_probe() {
            self.node.order_pe(PeId(pe), PeOrder::Probe, Packed::default());
        }
        match decided {
            Ok(Some(decision)) => {
                let by = self.by.records().last().map_or("", |record| record.by);
                tracing::info!("{by} moves {} chares", decision.moves.len());
                self.order(&decision);
            }
            Ok(None) => {}
            // The nodes' words were checked, so that it is no node's fault.
            Err(error) => tracing::error!("the loads of chares make no sense: {error}"),
        }
    }

    /// Has PEs send away what is to move.
    fn order(&mut self, decision: &Decision) {
        let found =
            |step: &Move| self.census.chare(step.chare).map(|(chare, from)| (chare, from, PeId(step.to)));
        let sent = placing::order(&self.node, decision.moves.iter().filter_map(found));
        sent.into_iter().for_each(|bytes| self.cost.message(bytes));
    }
}

fn balanced(record: &Record) -> Balanced {
    Balanced {
        at_s: record.at_s,
        by: record.by.into(),
        moves: record.moves,
        bytes: record.bytes,
        before: record.before,
        expected: record.expected,
        after: record.after,
    }
}

impl By {
    /// All decisions so far, with what came of them.
    fn records(&self) -> &[Record] {
        match self {
            Self::Always { records, .. } => records,
            Self::Auto(auto) => auto.records(),
        }
    }

    /// PEs that are to compute for nothing, so that it is seen how fast they are.
    fn pes_to_probe(&mut self) -> Vec<u32> {
        match self {
            Self::Auto(auto) => auto.pes_to_probe(),
            Self::Always { .. } => Vec::new(),
        }
    }

    fn decide(&mut self, sample: &Sample<'_>) -> Result<Option<Decision>, ViewError> {
        let (view, now_s) = (sample.view, sample.now_s);
        match self {
            Self::Auto(auto) => match auto.observe(sample)? {
                Answer::Move(decision, _) => Ok(Some(decision)),
                Answer::Wait(why) => {
                    let Look { imbalance, noise, pes, weighed } = auto.look();
                    tracing::debug!(imbalance, noise, "nothing moves: {why}");
                    if let Some(weighed) = weighed {
                        tracing::debug!(?weighed, "what would move");
                    }
                    tracing::trace!("speed, its error, work and its error of each PE: {pes:.3?}");
                    Ok(None)
                }
            },
            Self::Always { choice, last_s, records } => {
                let imbalance = view.check()?.times.imbalance();
                if let Some(last) = records.last_mut().filter(|last| last.after.is_none()) {
                    last.settle(imbalance, 1.0 - imbalance / last.before);
                }
                if now_s - *last_s < EVERY_S || view.chares.iter().all(|chare| chare.load <= 0.0) {
                    return Ok(None);
                }
                *last_s = now_s;
                let decision = choice.decide(view)?;
                if decision.moves.is_empty() {
                    return Ok(None);
                }
                let gain = 1.0 - decision.after / decision.before;
                records.push(Record::new(now_s, choice.name(), &decision, gain, 0.0));
                Ok(Some(decision))
            }
        }
    }
}
