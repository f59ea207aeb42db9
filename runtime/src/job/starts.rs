//! How the processes of nodes are started: at the start of the run, and one by one while it goes on.

use super::bootstrap::Bootstrap;
use super::plan::JobPlan;
use super::start_error::{StartError, local};
use crate::config::{ClusterConfig, LaunchMethod, NodeConfig};
use crate::ids::NodeId;
use crate::launch::{self, LaunchOptions, LaunchedNode};
use crate::monitor::Detail;
use crate::monitor::wire::{NodeInfo, OutputLine};
use crate::topology::Topology;
use crate::transport::tls::RunAuthority;
use std::collections::HashMap;
use std::future::Future;
use std::net::IpAddr;
use tokio::sync::mpsc::UnboundedSender;

/// The nodes of a run that are started, with what is the same for all of them.
pub(super) struct Starts {
    authority: RunAuthority,
    config: ClusterConfig,
    launch: LaunchOptions,
    output: UnboundedSender<OutputLine>,
    always_pup: bool,
    balances: bool,
    counts_traffic: bool,
    detail: Detail,
    wander: Option<u64>,
    kernel_arguments: Vec<u8>,
}

impl Starts {
    /// Those of a plan; whatever they print goes to `output`.
    pub(super) fn new(plan: &JobPlan, authority: RunAuthority, output: UnboundedSender<OutputLine>) -> Self {
        let uses_edges = plan.balance.as_ref().is_some_and(|(choice, _)| choice.uses_edges());
        Self {
            authority,
            config: plan.config.clone(),
            launch: plan.launch.clone(),
            output,
            always_pup: plan.always_pup,
            balances: plan.wants_loads(),
            counts_traffic: plan.keeps_loads || uses_edges,
            detail: plan.detail,
            wander: plan.wander,
            kernel_arguments: plan.kernel_arguments.clone(),
        }
    }

    /// Those of a run without nodes.
    #[cfg(test)]
    pub(super) fn of_nobody(authority: RunAuthority) -> Self {
        Self {
            authority,
            config: ClusterConfig {
                nodes: Vec::new(),
                binaries: std::collections::BTreeMap::new(),
                network: crate::config::NetworkConfig::default(),
                source: String::new(),
                pe_parts: std::collections::BTreeMap::new(),
            },
            launch: LaunchOptions::default(),
            output: tokio::sync::mpsc::unbounded_channel().0,
            always_pup: false,
            balances: false,
            counts_traffic: false,
            detail: Detail::default(),
            wander: None,
            kernel_arguments: Vec::new(),
        }
    }

    /// Who certifies the nodes of the run.
    pub(super) fn authority(&self) -> &RunAuthority {
        &self.authority
    }

    /// The nodes, in the order of their numbers, from 1.
    pub(super) fn nodes(&self) -> &[NodeConfig] {
        &self.config.nodes
    }

    /// One more node, beside those that have these PEs now.
    pub(super) fn add(&mut self, node: NodeConfig, topology: &Topology) {
        for (id, there) in (1u16..).map(NodeId).zip(&mut self.config.nodes) {
            there.pes = u32::try_from(topology.pes(id).len()).ok();
        }
        self.config.nodes.push(node);
    }

    /// The last one is none.
    pub(super) fn take_back(&mut self) {
        self.config.nodes.pop();
    }

    /// Starts all nodes from that number on. Where one runs on this machine and is not told otherwise it listens at
    /// `local_ip`, or at the address that packets to those of other hosts leave from.
    pub(super) fn launch_from(
        &self,
        first: u16,
        local_ip: Option<IpAddr>,
    ) -> Result<impl Future<Output = Result<Vec<LaunchedNode>, StartError>> + Send + use<>, StartError> {
        let node_count = u16::try_from(self.config.nodes.len() + 1)
            .map_err(|_| StartError::Local("too many nodes".into()))?;
        let shares = shared_hosts(&self.config);
        let numbered =
            (1u16..).map(NodeId).zip(self.config.nodes.iter().cloned()).skip(usize::from(first) - 1);
        let numbered: Vec<(NodeId, NodeConfig)> = numbered.collect();
        let mut bootstraps = HashMap::new();
        for (id, config) in &numbered {
            let share = &shares[id.as_usize() - 1];
            bootstraps.insert(*id, self.bootstrap(*id, node_count, config, share)?);
        }
        let (output, launch) = (self.output.clone(), self.launch.clone());
        Ok(async move {
            let first_words = |id: NodeId, ip: Option<IpAddr>| {
                let mut bootstrap = bootstraps.remove(&id)?;
                bootstrap.listen = bootstrap.listen.or(ip.map(|ip| local_ip.unwrap_or(ip)));
                postcard::to_stdvec(&bootstrap).ok()
            };
            Ok(launch::launch_all(&numbered, first_words, output, launch).await?)
        })
    }

    fn bootstrap(
        &self,
        id: NodeId,
        node_count: u16,
        config: &NodeConfig,
        share: &HostShare,
    ) -> Result<Bootstrap, StartError> {
        Ok(Bootstrap {
            node: id,
            node_count,
            identity: self.authority.issue(id).map_err(|e| local("no certificate", &e))?,
            listen: config.address,
            first_core: share.first_core,
            nodes_before: share.nodes_before,
            threads_on_host: share.threads_on_host,
            used_cores_on_host: share.used_cores,
            cpu_share: config.cpu_share.unwrap_or(1.0),
            memory_bytes: config.memory_bytes,
            network: self.config.network.clone(),
            always_pup: self.always_pup,
            balances: self.balances,
            counts_traffic: self.counts_traffic,
            detail: self.detail,
            wander: self.wander,
            kernel_arguments: self.kernel_arguments.clone(),
        })
    }
}

/// What viewers are told of a node that has been started, whose first PE has that number.
pub(super) fn info_of(config: &NodeConfig, started: &LaunchedNode, first_pe: u32) -> NodeInfo {
    let pe_count = pes_of(config, started);
    NodeInfo {
        node: started.node.0,
        name: config.name.clone(),
        host: config.host.clone(),
        cpu: started.ready.cpu_model.clone(),
        architecture: started.ready.architecture.clone(),
        cores: started.ready.cores,
        allowed_cores: started.ready.allowed_cores.clone(),
        first_pe,
        pe_count,
        pe_speeds: vec![0.0; pe_count as usize],
        cpu_share: config.cpu_share.unwrap_or(1.0),
        memory_limit_bytes: config.memory_bytes,
        ..NodeInfo::default()
    }
}

/// How many PEs a node has.
pub(super) fn pes_of(config: &NodeConfig, started: &LaunchedNode) -> u32 {
    config.pes.unwrap_or(started.ready.cores).max(1)
}

/// What a node has of its host; see [`Bootstrap`].
struct HostShare {
    /// None if its host has too few cores for all PEs.
    first_core: Option<u32>,
    nodes_before: u32,
    threads_on_host: u32,
    used_cores: f64,
}

fn shared_hosts(config: &ClusterConfig) -> Vec<HostShare> {
    let cores = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    let host_of = |n: &NodeConfig| match n.launch {
        LaunchMethod::Local => String::new(),
        LaunchMethod::Ssh => n.host.clone(),
    };
    // PEs, nodes and used cores of each host.
    let mut used: HashMap<String, (u32, u32, f64)> = HashMap::new();
    let mut before = Vec::new();
    for node in &config.nodes {
        let (pes, nodes, used_cores) = used.entry(host_of(node)).or_default();
        before.push((*pes, *nodes));
        let all = if node.launch == LaunchMethod::Local { cores } else { 0 };
        let own = node.pes.unwrap_or(all);
        *pes = pes.saturating_add(own);
        // One that has left has no network thread there any more.
        *nodes += u32::from(node.pes != Some(0));
        *used_cores += f64::from(own) * node.cpu_share.unwrap_or(1.0);
    }
    let share = |(node, (first, nodes_before)): (&NodeConfig, (u32, u32))| {
        let (pes, nodes, used_cores) = used[&host_of(node)];
        let fits = node.launch == LaunchMethod::Ssh || pes <= cores;
        let first_core = fits.then_some(first);
        HostShare { first_core, nodes_before, threads_on_host: pes.saturating_add(nodes), used_cores }
    };
    config.nodes.iter().zip(before).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_used_by_the_pes_of_one_host_and_by_each_as_much_as_it_may() {
        let node = |name, more| format!("[[node]]\nname = {name:?}\n{more}\n");
        let nodes = [("a", "pes = 2"), ("b", "pes = 1\ncpu_share = 0.5"), ("c", "pes = 3\nhost = \"shark\"")];
        let text: String = nodes.iter().map(|(name, more)| node(name, more)).collect();
        let config = ClusterConfig::parse(&text, "test").unwrap();
        let used: Vec<f64> = shared_hosts(&config).iter().map(|share| share.used_cores).collect();
        assert_eq!(used, [2.5, 2.5, 3.0]);
    }

    #[test]
    fn cores_are_shared_with_the_pes_that_are_on_the_host_when_a_node_joins() {
        let authority = RunAuthority::new("test-5").unwrap();
        let mut starts = Starts::of_nobody(authority);
        starts.config.nodes = vec![NodeConfig::local("a", 1), NodeConfig::local("b", 2)];
        // What was on b has gone to a.
        let begun = Topology::new(&[0, 1, 2]);
        let now = begun.rearranged(&begun.without(NodeId(2), &[1.0; 3]).unwrap());
        starts.add(NodeConfig::local("b", 2), &now);
        let shares = shared_hosts(&starts.config);
        let last = shares.last().unwrap();
        assert_eq!((last.used_cores, last.threads_on_host, last.nodes_before), (5.0, 7, 1));
    }
}
