//! A node leaves while the run goes on: its PEs go to the others.

use super::joining::Coming;
use super::own_rates::OwnRates;
use super::{Driver, Joining};
use crate::program::RunError;
use runtime::codec::Order;
use runtime::envelope::{Packed, PeOrder};
use runtime::failure::{Failure, Kind};
use runtime::ids::{NodeId, PeId};
use runtime::monitor::requests::Answer;
use runtime::monitor::wire::NodeSnapshot;
use runtime::node::Recruit;
use runtime::proto::snapshot::Carried;
use runtime::topology::Topology;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to wait for the end of the process of a node that has left.
const ENDING_MAX: Duration = Duration::from_secs(10);

/// A function that is told of a node that has left.
type OnLeft = Box<dyn Fn(&Drained) + Send>;

/// The nodes of a run, those that have left among them.
pub(super) struct Nodes {
    names: BTreeMap<NodeId, String>,
    /// The last counters of those that have left.
    left: Vec<NodeSnapshot>,
    /// What is missing of each colour in what the others have sent and received.
    pub(super) left_carried: [Carried; 2],
    /// Those whose processes have ended.
    ended: BTreeSet<NodeId>,
    on_left: Option<OnLeft>,
    /// What PEs do at the nodes that they came with.
    pub(super) own_rates: OwnRates,
    /// How a node may join, if one may.
    pub(super) joining: Option<Joining>,
    /// Who is to join as soon as its process has come.
    pub(super) coming: Option<Coming>,
    /// The process that was wanted for one more node, or why there is none.
    pub(super) recruited: Option<Result<Box<Recruit>, Failure>>,
    /// Whether any has joined.
    pub(super) has_grown: bool,
}

impl Nodes {
    pub(super) fn of(topology: &Topology) -> Self {
        let names = topology.compute_nodes().iter().map(|node| (*node, format!("node {}", node.0)));
        Self {
            names: names.collect(),
            left: Vec::new(),
            left_carried: [Carried::default(); 2],
            ended: BTreeSet::new(),
            on_left: None,
            own_rates: OwnRates::new(&[], false, topology),
            joining: None,
            coming: None,
            recruited: None,
            has_grown: false,
        }
    }

    /// The node that is there and is called so.
    pub(super) fn is_there(&self, name: &str, topology: &Topology) -> bool {
        name == "launcher" || topology.compute_nodes().iter().any(|node| self.name(*node) == name)
    }

    /// Who was to join, if its process has come, or will not.
    pub(super) fn who_has_come(&mut self) -> Option<(Coming, Result<Box<Recruit>, Failure>)> {
        self.coming.as_ref()?;
        let recruited = self.recruited.take()?;
        Some((self.coming.take()?, recruited))
    }

    /// A node has joined under that name.
    pub(super) fn has_joined(&mut self, node: NodeId, name: String) {
        self.names.insert(node, name);
        self.has_grown = true;
    }

    /// Those that have left.
    pub(super) fn left(&self) -> impl Iterator<Item = NodeSnapshot> {
        self.left.iter().cloned()
    }

    /// The process of a node that has left has ended.
    pub(super) fn ended(&mut self, node: NodeId) {
        self.ended.insert(node);
    }

    fn name(&self, node: NodeId) -> &str {
        self.names.get(&node).map_or("?", String::as_str)
    }

    /// The node that is called so and may leave, or why there is none.
    fn that_may_leave(&self, name: &str, topology: &Topology) -> Result<NodeId, String> {
        let there = topology.compute_nodes();
        let names = there.iter().map(|node| self.name(*node)).collect::<Vec<_>>().join(", ");
        // One that has left may be called as one that has come since, and is before it.
        let known = self.names.iter().rev().find(|(_, known)| *known == name).map(|(node, _)| *node);
        match known {
            None if name == "launcher" => Err(format!(
                "the launcher stays until the run ends: its driver is there, and no PEs; the nodes are {names}"
            )),
            None => Err(format!("no node of this run is called {name:?}; there are {names}")),
            Some(node) if !there.contains(&node) => Err(format!("{name} has left; there are {names}")),
            Some(_) if there.len() == 1 => {
                Err(format!("{name} is the last node of this run: no other could go on with its work"))
            }
            Some(node) => Ok(node),
        }
    }
}

/// A node that has left.
#[derive(Clone, Debug, PartialEq)]
pub struct Drained {
    /// Its number.
    pub node: u16,
    /// Its name.
    pub name: String,
    /// How many of its PEs went to which nodes.
    pub went: Vec<(String, usize)>,
    /// How many chares were on them.
    pub chares: u64,
    /// Bytes that it sent for that.
    pub bytes: u64,
    /// How long all PEs of the run stood still.
    pub paused: Duration,
    /// Its counters when its PEs were gone.
    pub last: NodeSnapshot,
}

impl Drained {
    /// Where its PEs went, in words.
    #[must_use]
    pub fn whereto(&self) -> String {
        let went: Vec<String> = self.went.iter().map(|(to, pes)| format!("{pes} to {to}")).collect();
        format!("its PEs went on ({})", went.join(", "))
    }
}

impl fmt::Display for Drained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, chares, bytes, paused, .. } = self;
        let (mib, s) = (*bytes as f64 / f64::from(1 << 20), paused.as_secs_f64());
        write!(
            f,
            "{name} has left: {} with {chares} chares, {mib:.1} MiB; the run stood still for {s:.3} s",
            self.whereto()
        )
    }
}

impl Driver {
    /// What the nodes are called, by their numbers.
    pub fn name_nodes(&mut self, names: impl Iterator<Item = (u16, String)>) {
        self.nodes.names = names.map(|(node, name)| (NodeId(node), name)).collect();
    }

    /// `tell` hears of each node that has left.
    pub fn on_left(&mut self, tell: impl Fn(&Drained) + Send + 'static) {
        self.nodes.on_left = Some(Box::new(tell));
    }

    /// Whether nodes have left or joined since the run began or went on from a checkpoint.
    #[must_use]
    pub fn has_other_nodes(&self) -> bool {
        !self.nodes.left.is_empty() || self.nodes.has_grown
    }

    /// Has a node leave; what became of it.
    pub(super) fn drain(&mut self, name: &str) -> Result<Answer, RunError> {
        let node = Arc::clone(self.pe.node());
        let leaving = match self.nodes.that_may_leave(name, node.topology()) {
            Ok(leaving) => leaving,
            Err(why) => return Ok(Err(Failure::new(Kind::Usage, why).into())),
        };
        let _span = tracing::info_span!("drain", name).entered();
        let began = Instant::now();
        self.pause_all()?;
        self.history.is_moving = true;
        let left = self.hand_over(leaving)?;
        self.history.is_moving = false;
        self.order_all_paused(PeOrder::Resume);
        let drained = match left {
            Ok(drained) => Drained { paused: began.elapsed(), ..drained },
            Err(why) => return Ok(Err(Failure::new(Kind::Unavailable, why).into())),
        };
        tracing::info!("{drained}");
        if self.machines.is_measured {
            self.timeline.left.push((Instant::now(), self.nodes.own_rates.of_node(leaving)));
        }
        self.timeline.remark(&drained.to_string());
        if let Some(tell) = &self.nodes.on_left {
            tell(&drained);
        }
        if !node.release(leaving) {
            return Ok(Ok(drained.to_string().into()));
        }
        let told = Instant::now();
        let has_ended = self.wait_until(|main| {
            let has_ended = main.nodes.ended.contains(&leaving);
            (has_ended || told.elapsed() > ENDING_MAX).then_some(has_ended)
        })?;
        let end = if has_ended {
            "its process has ended"
        } else {
            "its process has been told to end, and has not yet"
        };
        Ok(Ok(format!("{drained}; {end}").into()))
    }

    /// Has all PEs of a node, which stand still as all do, go on at other nodes. Until any has gone the reason why that cannot
    /// be costs nothing; later it ends the run.
    fn hand_over(&mut self, leaving: NodeId) -> Result<Result<Drained, String>, RunError> {
        if self.flush()?.is_none() {
            return Ok(Err("messages were on their way for too long; try again".into()));
        }
        self.wait_until(|main| main.pe.node().pause_quiescence().then_some(()))?;
        let node = Arc::clone(self.pe.node());
        let before = self.snapshot_of(leaving)?;
        let Some(moves) = node.topology().without(leaving, &node.speeds()) else {
            node.resume_quiescence();
            return Ok(Err(format!("{} is the last node of this run", self.nodes.name(leaving))));
        };
        let pes: Vec<PeId> = moves.iter().map(|(pe, _)| *pe).collect();
        self.history.checkpoint.paused.clear();
        node.arrange(&moves);
        // Whoever has answered knows who is where.
        self.snapshots()?;
        self.said_by(&pes)?;
        let mut chares = 0;
        // One after the other, so that no more waits for the network than one has.
        for (pe, to) in &moves {
            node.order(leaving, Order::ToPe(*pe, PeOrder::HandOver { to: *to }), Packed::default());
            for records in self.said_by(&[*pe])? {
                self.wait_for_restored(*pe, records)?;
                // All but the PE's own.
                chares += records.saturating_sub(1);
            }
        }
        let last = self.snapshot_of(leaving)?;
        self.nodes.left.push(last.clone());
        // Nobody is there any more who would have to be told what was kept.
        self.history.kept_bytes.remove(&leaving);
        // What was added to accumulators there is on its way here.
        if self.flush()?.is_none() {
            return Err(RunError::Failed(format!(
                "something that {} sent did not arrive",
                self.nodes.name(leaving)
            )));
        }
        self.note_who_has_left()?;
        node.resume_quiescence();
        let mut went: BTreeMap<NodeId, usize> = BTreeMap::new();
        moves.iter().for_each(|(_, to)| *went.entry(*to).or_default() += 1);
        let name = |node: NodeId| self.nodes.name(node).to_string();
        Ok(Ok(Drained {
            node: leaving.0,
            name: name(leaving),
            went: went.into_iter().map(|(node, pes)| (name(node), pes)).collect(),
            chares,
            bytes: last.sent_bytes.saturating_sub(before.sent_bytes),
            paused: Duration::ZERO,
            last,
        }))
    }

    /// Waits until each of these PEs has said that it has done what it was told; what they said.
    fn said_by(&mut self, pes: &[PeId]) -> Result<Vec<u64>, RunError> {
        let said = self.wait_until(|main| {
            let paused = &mut main.history.checkpoint.paused;
            let all = pes.iter().all(|pe| paused.contains_key(pe));
            all.then(|| pes.iter().filter_map(|pe| Some((*pe, paused.remove(pe)?))).collect::<Vec<_>>())
        })?;
        let failed = |pe: PeId, why: String| RunError::Failed(format!("{pe:?} cannot leave its node: {why}"));
        said.into_iter().map(|(pe, said)| said.map_err(|why| failed(pe, why))).collect()
    }

    /// Counters of one node, now.
    fn snapshot_of(&mut self, node: NodeId) -> Result<NodeSnapshot, RunError> {
        self.next_mark += 1;
        let mark = self.next_mark;
        self.pe.node().ask(node, mark);
        self.wait_until(|main| main.answers.remove(&mark).and_then(|mut answers| answers.remove(&node.0)))
    }
}
