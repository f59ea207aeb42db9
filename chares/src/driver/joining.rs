//! A node joins while the run goes on: its PEs come behind those that there are, and balancers give them chares.

use super::checkpoint::SHARED_MAX;
use super::{Driver, to_measure};
use crate::program::RunError;
use runtime::config::NodeConfig;
use runtime::envelope::PeOrder;
use runtime::failure::{Failure, Kind};
use runtime::ids::PeId;
use runtime::monitor::requests::{Answer, Asked};
use runtime::monitor::wire::NodeInfo;
use runtime::node::Recruit;
use runtime::proto::membership::{NAME_BYTES_MAX, PES_MAX};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How nodes may join a run.
pub struct Joining {
    /// What their speed is measured with, if that of the others was: number and arguments of the kernel.
    pub kernel: Option<(u16, Vec<u8>)>,
    /// For how long.
    pub budget: Duration,
    /// The fastest speed of the nodes file, where speeds are those of that file: theirs are relative to it.
    pub declared_unit: Option<f64>,
    /// Told of each that has joined.
    pub tell: Box<dyn Fn(&Joined) + Send>,
}

impl fmt::Debug for Joining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joining").field("kernel", &self.kernel).finish_non_exhaustive()
    }
}

/// A node that somebody wants to join, and whose process starts.
#[derive(Debug)]
pub(super) struct Coming {
    /// By whom.
    pub(super) asked: Asked,
    /// Since when.
    pub(super) began: Instant,
    /// The speed of its PEs, if the nodes file says it.
    pub(super) speed: Option<f64>,
}

/// A node that has joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    /// What it is, with its PEs and the speeds of these relative to the fastest PE of the run.
    pub info: NodeInfo,
    /// Speeds of all PEs at the nodes that they came with, relative to the fastest.
    pub speeds: Vec<f64>,
    /// From when it was asked for until its process had been started and reached.
    pub started: Duration,
    /// How long all PEs of the run stood still.
    pub paused: Duration,
}

impl fmt::Display for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { info: NodeInfo { name, pe_count, pe_speeds, .. }, started, paused, .. } = self;
        let pes = if *pe_count == 1 { "PE" } else { "PEs" };
        let (speed, started_s, paused_s) =
            (pe_speeds.iter().sum::<f64>(), started.as_secs_f64(), paused.as_secs_f64());
        write!(
            f,
            "{name} has joined with {pe_count} {pes}, speed {speed:.2}: its process was there after {started_s:.3} s, and the \
             run stood still for {paused_s:.3} s"
        )
    }
}

impl Driver {
    /// Lets nodes join from now on.
    pub fn let_nodes_join(&mut self, joining: Joining) {
        // Who joins later is given what nodes share.
        self.pe.node().variables().keep_bytes();
        self.nodes.joining = Some(joining);
    }

    /// Has the process of one more node started, unless it cannot join; when that began, and the speed that it is said to have.
    pub(super) fn recruit(&mut self, config: NodeConfig) -> Result<(Instant, Option<f64>), Failure> {
        self.may_join(&config).map_err(|why| Failure::new(Kind::Usage, why))?;
        let (began, speed) = (Instant::now(), config.speed);
        self.nodes.recruited = None;
        if !self.pe.node().recruit(config) {
            return Err(Failure::new(Kind::Unavailable, "nodes join runs of several processes only"));
        }
        Ok((began, speed))
    }

    /// Has a node join whose process was started from then on, if it has come; what became of it.
    pub(super) fn admit(
        &mut self,
        recruited: Result<Box<Recruit>, Failure>,
        began: Instant,
        speed: Option<f64>,
    ) -> Result<Answer, RunError> {
        let recruit = match recruited {
            Ok(recruit) => *recruit,
            Err(failure) => {
                // It may have come, and been lost before the driver waited again.
                self.pe.node().dismiss();
                return Ok(Err(failure.into()));
            }
        };
        let _span = tracing::info_span!("add", name = recruit.info.name).entered();
        let (node, started) = (Arc::clone(self.pe.node()), began.elapsed());
        let (id, mut info) = (recruit.node, recruit.info.clone());
        let stopped = Instant::now();
        self.pause_all()?;
        if self.flush()?.is_none() {
            let why = "messages were on their way for too long; try again";
            return self.dismiss(Failure::new(Kind::Unavailable, why));
        }
        self.wait_until(|main| main.pe.node().pause_quiescence().then_some(()))?;
        // It may have been lost meanwhile, and nothing has been given to it.
        if let Some(Err(failure)) = self.nodes.recruited.take() {
            node.resume_quiescence();
            return self.dismiss(failure);
        }
        node.admit(recruit);
        self.nodes.has_joined(id, info.name.clone());
        // Whoever has answered knows of it, and it has come into being; then it has taken in what nodes share.
        self.snapshots()?;
        if self.flush_within(SHARED_MAX)?.is_none() {
            return Err(RunError::Failed(format!("what nodes share did not arrive at {}", info.name)));
        }
        node.resume_quiescence();
        self.resume_all_but(info.pes());
        let paused = stopped.elapsed();
        let rates = self.rates_of(info.pes(), speed)?;
        self.nodes.own_rates.join(id, &rates);
        node.set_speeds(self.nodes.own_rates.placed(node.topology()));
        let speeds = self.nodes.own_rates.relative();
        info.pe_speeds = speeds.get(info.pes()).map(<[f64]>::to_vec).unwrap_or_default();
        let joined = Joined { info, speeds, started, paused };
        tracing::info!("{joined}");
        self.timeline.remark(&joined.to_string());
        if let Some(joining) = &self.nodes.joining {
            (joining.tell)(&joined);
        }
        Ok(Ok(joined.to_string().into()))
    }

    /// Sends away who was to join; all PEs go on without it.
    fn dismiss(&mut self, why: Failure) -> Result<Answer, RunError> {
        self.pe.node().dismiss();
        self.order_all_paused(PeOrder::Resume);
        Ok(Err(why.into()))
    }

    /// Whether such a node can join, or why not.
    fn may_join(&self, config: &NodeConfig) -> Result<(), String> {
        let NodeConfig { name, pes, cpu_share, speed, .. } = config;
        if self.nodes.joining.is_none() {
            return Err("nothing would go to a node that joins, as nobody balances this run: start it with `--balance auto`"
                .into());
        }
        if self.nodes.is_there(name, self.pe.node().topology()) {
            return Err(format!("this run has a node {name:?} already; give the new one another `name`"));
        }
        let is_share = |share: &f64| *share > 0.0 && *share <= 1.0;
        let is_speed = |speed: &f64| speed.is_finite() && *speed > 0.0;
        let can_be = !name.is_empty()
            && name.len() <= NAME_BYTES_MAX
            && pes.is_none_or(|pes| (1..=PES_MAX).contains(&pes));
        if can_be && cpu_share.as_ref().is_none_or(is_share) && speed.as_ref().is_none_or(is_speed) {
            return Ok(());
        }
        Err(format!(
            "node {name:?} has a name, PEs, a speed or a share of the CPU that no nodes file permits"
        ))
    }

    /// All PEs go on but these, which have not stood still.
    fn resume_all_but(&mut self, new: Range<usize>) {
        let others = (0..self.all_pes()).filter(|pe| !new.contains(&(*pe as usize)));
        others.for_each(|pe| self.order_paused(PeId(pe), PeOrder::Resume));
    }

    /// The rates of new PEs, in the unit of the others': measured while these work, if theirs were; otherwise what the nodes
    /// file says if theirs are of it, or as fast as the fastest.
    fn rates_of(&mut self, new: Range<usize>, speed: Option<f64>) -> Result<Vec<f64>, RunError> {
        let Some(joining) = &self.nodes.joining else { return Ok(vec![1.0; new.len()]) };
        let (budget, unit) = (joining.budget, joining.declared_unit);
        match joining.kernel.clone().filter(|_| self.nodes.own_rates.are_measured) {
            Some(kernel) => {
                let measured = self.measure_each(&new, kernel, budget)?;
                let since = Instant::now();
                self.timeline.joined.extend(measured.iter().map(|rate| (since, *rate)));
                Ok(measured)
            }
            None => Ok(vec![unit.map_or(1.0, |unit| speed.unwrap_or(1.0) / unit); new.len()]),
        }
    }

    /// Units of work per second of these PEs, with a kernel.
    fn measure_each(
        &mut self,
        pes: &Range<usize>,
        (kernel, arguments): (u16, Vec<u8>),
        budget: Duration,
    ) -> Result<Vec<f64>, RunError> {
        let number = |pe: usize| u32::try_from(pe).unwrap_or(u32::MAX);
        let pes = number(pes.start)..number(pes.end);
        self.speeds_of(pes.clone(), PeOrder::PrepareKernel { kernel }, &arguments)?;
        let rates = self.speeds_of(pes.clone(), to_measure(budget), &[])?;
        self.order_each(pes, PeOrder::DropKernel, &[]);
        Ok(rates)
    }
}
