//! What the application's cost model says of mixes whose speeds are known.

use super::model::{Comparison, Model, grouped, median};
use super::saved::{Node, Pe, Run};
use crate::app::CostModel;
use crate::command_line::CommandLine;
use crate::network::Network;
use chares::RunError;
use loadbalance::cost::Reckoned;
use loadbalance::machines::{Machine, Machines};
use runtime::failure::Failure;
use serde_json::Value;

/// The work whose length is predicted.
pub(crate) struct PlannedWork<'a> {
    pub(crate) program: &'a CommandLine,
    pub(crate) app: &'a str,
    /// As in reports.
    pub(crate) arguments: &'a Value,
    /// How much it is, in units of the kernel.
    pub(crate) work: Option<f64>,
}

/// A cost model and the network that it reckons with.
pub(crate) struct Predictor<'a> {
    pub(crate) model: &'a CostModel,
    pub(crate) network: &'a Network,
}

impl Predictor<'_> {
    /// Adds predictions to a comparison of these runs, from the speeds that they have measured: none where they have
    /// not.
    pub(super) fn add_to(&self, comparison: &mut Comparison, runs: &[Run]) {
        let seconds: Vec<Option<Result<f64, RunError>>> = grouped(runs)
            .iter()
            .map(|group| {
                let machines = self.network.join(machines(group)?);
                let reckoned = self.reckon(&group[0].arguments, &machines, group[0].work);
                Some(reckoned.map(|reckoned| reckoned.seconds))
            })
            .collect();
        if let Some(error) = seconds.iter().flatten().find_map(|seconds| seconds.as_ref().err()) {
            comparison.warn(format!("there is no prediction: {error}"));
        } else if seconds.iter().any(Option::is_some) {
            let seconds = seconds.into_iter().map(|seconds| seconds.and_then(Result::ok));
            comparison.predict(self.described(), seconds);
        }
    }

    /// How long the application takes with these arguments on these machines.
    fn reckon(
        &self,
        arguments: &Value,
        machines: &Machines,
        known: Option<f64>,
    ) -> Result<Reckoned, RunError> {
        let reckoned = machines.reckon(&(self.model.phases)(arguments, machines, known)?);
        // No work at all, or rates that nobody can have.
        if !reckoned.seconds.is_finite() || reckoned.seconds <= 0.0 {
            return Err(RunError::Input("with these speeds the time is beyond reckoning".into()));
        }
        Ok(reckoned)
    }

    /// What predictions rest on.
    pub(super) fn described(&self) -> Model {
        Model { statement: self.model.statement.into(), network: self.network.source() }
    }

    /// The report of a run as it is predicted to be, on nodes of these CPUs.
    ///
    /// # Errors
    /// If the model has no answer for these arguments and machines.
    pub(crate) fn run(
        &self,
        name: &str,
        work: &PlannedWork<'_>,
        nodes: Vec<(Machine, String)>,
    ) -> Result<Run, Failure> {
        let (nodes, cpus): (Vec<Machine>, Vec<String>) = nodes.into_iter().unzip();
        let machines = self.network.join(nodes);
        let failed = |e: RunError| Failure::new(e.kind(), format!("{name}: {e}"));
        let reckoned = self.reckon(work.arguments, &machines, None).map_err(failed)?;
        let rates = machines.rates();
        let fastest = rates.iter().copied().fold(0.0, f64::max);
        let fastest_node =
            machines.nodes.iter().map(|node| node.rates.iter().sum::<f64>()).fold(0.0, f64::max);
        let mut busy = reckoned.pes.iter();
        let nodes = machines.nodes.iter().zip(cpus).map(|(node, cpu)| {
            let rate: f64 = node.rates.iter().sum();
            let pes = node.rates.iter().zip(busy.by_ref()).map(|(rate, busy)| Pe {
                speed: rate / fastest,
                compute_s: busy.work_s,
                idle_s: (reckoned.seconds - busy.work_s - busy.bytes_s).max(0.0),
                overhead_s: busy.bytes_s,
                core_wait_s: 0.0,
                quota_s: 0.0,
                throttled_s: 0.0,
            });
            Node {
                pes: pes.collect(),
                name: node.name.clone(),
                host: node.host.clone(),
                cpu,
                speed: rate / fastest_node,
                rate: Some(rate),
            }
        });
        Ok(Run::predicted(name, work, &reckoned, nodes.collect()))
    }
}

/// The nodes of a mix with the median of their rates; `None` if a rate was not measured.
fn machines(group: &[&Run]) -> Option<Vec<Machine>> {
    let machine = |(at, node): (usize, &Node)| {
        let rates = group.iter().filter_map(|run| run.nodes.get(at)?.rate);
        let rate = median(rates).filter(|rate| *rate > 0.0)?;
        let all: f64 = node.pes.iter().map(|pe| pe.speed).sum();
        let rates = node.pes.iter().map(|pe| rate * pe.speed / all).collect();
        Some(Machine { name: node.name.clone(), host: node.host.clone(), rates, ..Machine::default() })
    };
    group.first()?.nodes.iter().enumerate().map(machine).collect()
}
