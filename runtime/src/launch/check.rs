//! Going through all nodes before a run: is each usable, and if not, what mends it? Each is started just as for
//! a run, only with another command, and then all ask each other for an echo, so that a check finds what a run would
//! find.

mod pairs;

pub use pairs::Pair;

use super::bootstrap::Ready;
use super::echo::{self, Found, Order, Question};
use super::identity::{clock_s, own_hash};
use super::options::LaunchOptions;
use super::process::{self, LaunchError, LaunchedNode, Starting};
use super::{reach, stage};
use crate::architecture::Architecture;
use crate::codec::WIRE_VERSION;
use crate::config::{ClusterConfig, LaunchMethod, NodeConfig, Transport};
use crate::ids::NodeId;
use crate::monitor::wire::OutputLine;
use crate::transport::Ports;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

/// How long nodes may take to ask each other, beyond what that lasts.
const SLACK: Duration = Duration::from_secs(5);
/// How long a node may take to answer what it measured.
const ANSWERS: Duration = Duration::from_secs(2);
/// Of very many nodes not all pairs are measured: no round begins later.
const ALL: Duration = Duration::from_secs(15);
/// How many of the nodes that are not reached are named.
const NAMED_MAX: usize = 4;

/// All nodes, checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Each, in the order of the nodes file.
    pub nodes: Vec<CheckResult>,
    /// The ways between those that reach each other.
    pub pairs: Vec<Pair>,
    /// The ports that the nodes file allows, if it names any.
    pub ports: Option<HeardPorts>,
}

/// Ports on which nodes may listen, and those on which they are heard.
#[derive(Clone, Debug, Serialize)]
pub struct HeardPorts {
    /// All that the nodes file allows.
    pub range: String,
    /// The port of each node that can be used, by its name.
    pub heard_on: BTreeMap<String, u16>,
}

/// One node, checked.
#[derive(Clone, Debug)]
pub struct CheckResult {
    /// Its name.
    pub name: String,
    /// Its host.
    pub host: String,
    /// A few facts, or what is wrong.
    pub outcome: Result<Facts, Problem>,
    /// What a run would put up with, but is hardly meant.
    pub warnings: Vec<Problem>,
}

/// What a run would find at a node.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// How it is started.
    pub launch: LaunchMethod,
    /// Cores that it may use.
    pub cores: u32,
    /// Memory of its host; 0 if the system does not tell.
    pub memory_bytes: u64,
    /// CPU model as the system names it.
    pub cpu_model: String,
    /// Clock of the fastest of those cores, MHz; none where the system does not tell.
    pub clock_mhz: Option<u32>,
    /// Architecture, e.g. `x86_64`.
    pub arch: String,
    /// How far its clock is ahead of this machine's, seconds.
    pub clock_offset_s: i64,
    /// Where it listened for the check; a run takes another port unless `ports` of the nodes file names a single one.
    pub address: SocketAddr,
    /// The shortest round trip of a datagram from the launcher, seconds.
    pub launcher_round_trip_s: f64,
    /// The shortest round trips of datagrams to the other nodes, by their names, seconds.
    pub round_trips_s: BTreeMap<String, f64>,
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut cores, memory_gib) = (count_of_cores(self.cores), self.memory_bytes >> 30);
        if let Some(mhz) = self.clock_mhz {
            cores += &format!(" at {:.2} GHz", f64::from(mhz) / 1e3);
        }
        if self.launch == LaunchMethod::Local {
            write!(f, "local, {cores}, {memory_gib} GiB, ")?;
        } else {
            let (offset_s, ip) = (self.clock_offset_s, self.address.ip());
            write!(f, "{cores}, {memory_gib} GiB, clock {offset_s:+} s, UDP {ip}, ")?;
        }
        let ms = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
        write!(f, "{} from here", ms(self.launcher_round_trip_s))?;
        match self.round_trips_s.iter().max_by(|a, b| a.1.total_cmp(b.1)) {
            Some((name, seconds)) => write!(f, ", at most {} to another ({name})", ms(*seconds)),
            None => Ok(()),
        }
    }
}

impl HeardPorts {
    fn new(range: Ports, nodes: &[CheckResult]) -> Self {
        let heard =
            |node: &CheckResult| Some((node.name.clone(), node.outcome.as_ref().ok()?.address.port()));
        Self { range: range.to_string(), heard_on: nodes.iter().filter_map(heard).collect() }
    }
}

/// What is wrong with a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What is wrong.
    pub reason: String,
    /// What to do about it, in one line.
    pub mend: String,
}

impl Problem {
    fn new(reason: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { reason: reason.into(), mend: mend.into() }
    }
}

impl From<LaunchError> for Problem {
    fn from(error: LaunchError) -> Self {
        Self::new(format!("{}: {}", error.phase, error.reason), error.mend)
    }
}

/// A node that has answered, and what is heard of it after that.
struct Probe {
    /// Its place in the nodes file.
    at: usize,
    started: LaunchedNode,
    /// Its clock against this machine's.
    clock_offset_s: i128,
    found: Option<Found>,
    /// Round trips from the launcher to it, and from it to all probes, in order; `None` where nothing comes back.
    round_trips: Vec<Option<Duration>>,
    /// Bytes in a second that come to it from others, by their places among the probes; none where nothing came.
    carried: BTreeMap<usize, Option<f64>>,
    /// It was told to measure something and did not answer.
    is_silent: bool,
}

impl Probe {
    fn new(at: usize, started: LaunchedNode) -> Self {
        let clock_offset_s = i128::from(started.ready.clock_s) - i128::from(clock_s());
        let (carried, is_silent) = (BTreeMap::new(), false);
        Self { at, started, clock_offset_s, found: None, round_trips: Vec::new(), carried, is_silent }
    }

    fn ready(&self) -> &Ready {
        &self.started.ready
    }

    /// The round trip to the probe at a place among all.
    fn way_to(&self, other: usize) -> Option<Duration> {
        self.round_trips.get(other + 1).copied().flatten()
    }
}

/// Checks all nodes side by side, for a program with this fingerprint. No node may be silent for longer than the
/// start deadline. Dropped half-way it ends what it has started.
pub(crate) async fn check_nodes(config: &ClusterConfig, fingerprint: u64, options: LaunchOptions) -> Checked {
    let nodes = &config.nodes[..];
    let (output, mut lines) = unbounded_channel();
    let needs_ssh = nodes.iter().any(|node| node.launch == LaunchMethod::Ssh);
    let limit = options.start_deadline;
    let starting = Starting::new(options, output, needs_ssh);
    let token = format!("metachare-{:x}", token());
    let (mut probes, mut failed) = start(config, &token, &starting).await;
    hear_found(&mut probes, &mut lines, limit).await;
    ask_each_other(&mut probes, &mut lines, &token).await;
    measure_ways(config, &mut probes, &mut lines).await;
    let pairs = pairs_of(config, &probes);
    let mut result = |(at, node): (usize, &NodeConfig)| {
        let lost = || Problem::new("its check was lost", "try again");
        let probe = probes.iter().find(|probe| probe.at == at);
        let probe = probe.ok_or_else(|| failed.remove(&at).unwrap_or_else(lost));
        let usable = probe.and_then(|probe| usable(node, probe, fingerprint).map(|()| probe));
        // If the program or the host cannot be used at all, there is nothing more to warn of.
        let warnings = usable.as_ref().map_or(Vec::new(), |probe| {
            let of_host = warnings(nodes, &probes, probe, &starting);
            of_host.into_iter().chain(lost_trains(config, &probes, probe)).collect()
        });
        let outcome =
            usable.and_then(|probe| connected(config, &probes, probe).map(|()| facts(nodes, &probes, probe)));
        CheckResult { name: node.name.clone(), host: node.host.clone(), outcome, warnings }
    };
    let nodes: Vec<CheckResult> = nodes.iter().enumerate().map(&mut result).collect();
    let mut ending: JoinSet<()> = probes.into_iter().map(|probe| probe.started.end(Duration::ZERO)).collect();
    while ending.join_next().await.is_some() {}
    let ports = config.network.ports.map(|ports| HeardPorts::new(ports, &nodes));
    Checked { nodes, pairs, ports }
}

/// Starts the probes in the order in which a run starts nodes; those that failed, by their places.
async fn start(
    config: &ClusterConfig,
    token: &str,
    starting: &Starting,
) -> (Vec<Probe>, BTreeMap<usize, Problem>) {
    let (mut probes, mut failed): (Vec<Probe>, _) = (Vec::new(), BTreeMap::new());
    for method in [LaunchMethod::Ssh, LaunchMethod::Local] {
        let is_local = method == LaunchMethod::Local;
        let ip = is_local.then(|| reach::local_listen_ip(probes.iter().map(|p| p.ready().addr.ip())));
        let mut attempts = JoinSet::new();
        for (at, node) in config.nodes.iter().cloned().enumerate().filter(|(_, node)| node.launch == method) {
            let (listen, writes) = (node.address.or(ip), node.workdir.is_some());
            let words = Question { token: token.into(), listen, ports: config.network.ports, writes };
            let words = words.to_line().unwrap_or_default();
            let starting = starting.clone();
            attempts.spawn(async move {
                (at, process::launch(number(at), &node, "__check", words.as_bytes(), &starting).await)
            });
        }
        while let Some(attempt) = attempts.join_next().await {
            match attempt {
                Ok((at, Ok(started))) => probes.push(Probe::new(at, started)),
                Ok((at, Err(error))) => drop(failed.insert(at, error.into())),
                Err(error) => tracing::error!("a check was lost: {error}"),
            }
        }
    }
    probes.sort_by_key(|probe| probe.at);
    (probes, failed)
}

/// The number of the node at a place of the nodes file.
fn number(at: usize) -> NodeId {
    NodeId(u16::try_from(at + 1).unwrap_or(u16::MAX))
}

async fn hear_found(probes: &mut [Probe], lines: &mut UnboundedReceiver<OutputLine>, limit: Duration) {
    let mut heard = hear(lines, probes.len(), limit, Found::from_line).await;
    for probe in probes {
        probe.found = heard.remove(&number(probe.at).0);
    }
}

/// All that have answered, and the launcher, ask all others for an echo at the same time.
async fn ask_each_other(probes: &mut [Probe], lines: &mut UnboundedReceiver<OutputLine>, token: &str) {
    let addresses: Vec<SocketAddr> = probes.iter().map(|probe| probe.ready().addr).collect();
    let words = echo::others_to_line(&addresses).unwrap_or_default();
    let mut asked = 0;
    for probe in probes.iter_mut().filter(|probe| probe.found.is_some()) {
        asked += usize::from(probe.started.tell(words.as_bytes()).await.is_ok());
    }
    let (from, token) = (reach::dialling_ip(addresses.iter().map(SocketAddr::ip)), echo::datagram(token));
    let to = addresses.clone();
    let mine = tokio::task::spawn_blocking(move || echo::reached(from, &to, &token));
    let (mine, mut heard) = tokio::join!(mine, hear(lines, asked, SLACK, echo::reached_from_line));
    let mine = mine.unwrap_or_default();
    for (at, probe) in probes.iter_mut().enumerate() {
        let from_here = mine.get(at).copied().flatten();
        let mut to_others = heard.remove(&number(probe.at).0).unwrap_or_default();
        to_others.resize(addresses.len(), None);
        probe.round_trips = std::iter::once(from_here).chain(to_others).collect();
    }
}

/// Has all who reach each other over the network measure what comes from the other.
async fn measure_ways(
    config: &ClusterConfig,
    probes: &mut [Probe],
    lines: &mut UnboundedReceiver<OutputLine>,
) {
    let begun = Instant::now();
    for round in pairs::rounds(probes.len()) {
        let back: Vec<_> = round.iter().map(|&(a, b)| (b, a)).collect();
        for asked in [round, back] {
            if begun.elapsed() > ALL {
                return;
            }
            let mut asking = Vec::new();
            for (to, from) in asked {
                let way = probes[to]
                    .way_to(from)
                    .filter(|_| !probes[to].is_silent && !shares_memory(config, probes, to, from));
                let Some(way) = way else { continue };
                let order = Order { from: probes[from].ready().addr, way };
                let Ok(words) = order.to_line() else { continue };
                if probes[to].started.tell(words.as_bytes()).await.is_ok() {
                    asking.push((to, from));
                }
            }
            let mut heard = hear(lines, asking.len(), ANSWERS, echo::carried_from_line).await;
            for (to, from) in asking {
                match heard.remove(&number(probes[to].at).0) {
                    Some(rate) => drop(probes[to].carried.insert(from, rate)),
                    None => probes[to].is_silent = true,
                }
            }
        }
    }
}

fn shares_memory(config: &ClusterConfig, probes: &[Probe], one: usize, other: usize) -> bool {
    let node = |place: usize| &config.nodes[probes[place].at];
    config.network.transport == Transport::Auto && is_same_host(node(one), node(other))
}

/// What was found, pair by pair in the order of the nodes file, of those that reach each other.
fn pairs_of(config: &ClusterConfig, probes: &[Probe]) -> Vec<Pair> {
    let pairs = (0..probes.len()).flat_map(|one| (one + 1..probes.len()).map(move |other| (one, other)));
    let pair = |(one, other): (usize, usize)| {
        let way = probes[one].way_to(other)?.min(probes[other].way_to(one)?);
        let to = |to: usize, from: usize| probes[to].carried.get(&from).copied().flatten();
        Some(Pair {
            nodes: [one, other].map(|place| config.nodes[probes[place].at].name.clone()),
            round_trip_s: way.as_secs_f64(),
            bytes_per_s: [to(one, other), to(other, one)],
            is_one_host: shares_memory(config, probes, one, other),
        })
    };
    pairs.filter_map(pair).collect()
}

/// What there is to warn of: single datagrams come through, but no train of them.
fn lost_trains(config: &ClusterConfig, probes: &[Probe], probe: &Probe) -> Vec<Problem> {
    let lost = probe.carried.iter().filter(|(_, rate)| rate.is_none());
    let names: Vec<String> =
        lost.map(|(from, _)| format!("{:?}", config.nodes[probes[*from].at].name)).collect();
    let reason = format!("single datagrams from {} come here, but not many at once", names.join(", "));
    let mend = "look for what drops them on the way; `run netbench` shows what messages get";
    if names.is_empty() { Vec::new() } else { vec![Problem::new(reason, mend)] }
}

/// One line of so many nodes that `wanted` makes something of, by their numbers.
async fn hear<T>(
    lines: &mut UnboundedReceiver<OutputLine>,
    count: usize,
    limit: Duration,
    wanted: impl Fn(&str) -> Option<T>,
) -> BTreeMap<u16, T> {
    let mut heard = BTreeMap::new();
    let listen = async {
        while heard.len() < count {
            let Some(line) = lines.recv().await else { return };
            if let Some(found) = wanted(&line.text) {
                heard.insert(line.node, found);
            }
        }
    };
    // Nodes that stay silent are missing from the answers, and are reported as missing.
    let _ = tokio::time::timeout(limit, listen).await;
    heard
}

/// Whether a run could use the program and the host.
fn usable(node: &NodeConfig, probe: &Probe, fingerprint: u64) -> Result<(), Problem> {
    let same = "put the same build there, or leave `binary` out";
    let ready = probe.ready();
    if ready.version != WIRE_VERSION {
        let reason = format!("its `binary` speaks version {}, this program {WIRE_VERSION}", ready.version);
        return Err(Problem::new(reason, same));
    }
    let Some(found) = &probe.found else {
        return Err(Problem::new("its `binary` does not answer as this program does", same));
    };
    if ready.program != fingerprint {
        return Err(Problem::new("its `binary` has other chares or entry methods than this program", same));
    }
    if let (Some(reason), Some(folder)) = (&found.unwritable, &node.workdir) {
        let reason = format!("its folder {} cannot be written: {reason}", folder.display());
        return Err(Problem::new(reason, "set `workdir` to a folder that its user may write"));
    }
    if let Some(limit) =
        node.memory_bytes.filter(|limit| ready.memory_bytes > 0 && *limit > ready.memory_bytes)
    {
        let (limit, all) = (limit >> 20, ready.memory_bytes >> 20);
        let reason = format!("its limit `memory` is {limit} MiB, but the host has {all} MiB");
        return Err(Problem::new(reason, format!("set `memory` to less than \"{all}MiB\"")));
    }
    Ok(())
}

/// Whether datagrams go both ways between the node, the launcher and all others.
fn connected(config: &ClusterConfig, probes: &[Probe], probe: &Probe) -> Result<(), Problem> {
    let ports = config.network.ports.map_or(String::new(), |ports| format!(" (ports {ports})"));
    let mend = format!(
        "open UDP{ports} between the hosts in the firewall, or set `address` to one that the others reach"
    );
    let ip = probe.ready().addr.ip();
    let (from_here, to_others) =
        probe.round_trips.split_first().map_or((None, &[][..]), |(here, all)| (*here, all));
    if from_here.is_none() {
        return Err(Problem::new(format!("datagrams from here to {ip} do not come back"), mend));
    }
    let others = probes.iter().zip(to_others).filter(|(other, time)| time.is_none() && other.at != probe.at);
    let name = |other: &Probe| format!("{:?} ({})", config.nodes[other.at].name, other.ready().addr.ip());
    let mut names: Vec<String> = others.map(|(other, _)| name(other)).collect();
    if names.is_empty() {
        return Ok(());
    }
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let reason = format!("datagrams from it ({ip}) to {}{more} do not come back", names.join(", "));
    Err(Problem::new(reason, mend))
}

fn facts(nodes: &[NodeConfig], probes: &[Probe], probe: &Probe) -> Facts {
    let ready = probe.ready();
    let (from_here, to_others) = probe.round_trips.split_first().map_or((None, &[][..]), |(a, b)| (*a, b));
    let others = probes.iter().zip(to_others).filter(|(other, _)| other.at != probe.at);
    let named = |(other, time): (&Probe, &Option<Duration>)| {
        Some((nodes[other.at].name.clone(), time.as_ref()?.as_secs_f64()))
    };
    Facts {
        launch: nodes[probe.at].launch,
        cores: ready.cores,
        memory_bytes: ready.memory_bytes,
        cpu_model: ready.cpu_model.clone(),
        clock_mhz: Some(ready.clock_mhz).filter(|mhz| *mhz > 0),
        arch: ready.architecture.arch.clone(),
        clock_offset_s: i64::try_from(probe.clock_offset_s).unwrap_or_default(),
        address: ready.addr,
        launcher_round_trip_s: from_here.unwrap_or_default().as_secs_f64(),
        round_trips_s: others.filter_map(named).collect(),
    }
}

fn count_of_cores(cores: u32) -> String {
    if cores == 1 { "1 core".into() } else { format!("{cores} cores") }
}

fn is_same_host(one: &NodeConfig, other: &NodeConfig) -> bool {
    match (one.launch, other.launch) {
        (LaunchMethod::Ssh, LaunchMethod::Ssh) => one.host == other.host,
        (mine, others) => mine == others,
    }
}

fn warnings(nodes: &[NodeConfig], probes: &[Probe], probe: &Probe, starting: &Starting) -> Vec<Problem> {
    let (node, ready, mut all) = (&nodes[probe.at], probe.ready(), Vec::new());
    let there = || probes.iter().filter(|other| is_same_host(node, &nodes[other.at]));
    let pes: u64 = there().map(|p| u64::from(nodes[p.at].pes.unwrap_or(p.ready().cores))).sum();
    let cores = ready.cores;
    if pes > u64::from(cores) {
        let (whose, mend) = match node.pes {
            Some(pes) if pes > cores => {
                (format!("`pes` asks for {pes}"), format!("set pes = {cores} at most"))
            }
            _ => (format!("its nodes have {pes} PEs"), format!("let `pes` of its nodes add up to {cores}")),
        };
        all.push(Problem::new(format!("the host has {}, but {whose}", count_of_cores(cores)), mend));
    }
    let memory: u64 = there().filter_map(|p| nodes[p.at].memory_bytes).fold(0, u64::saturating_add);
    if there().count() > 1 && ready.memory_bytes > 0 && memory > ready.memory_bytes {
        let (sum, has) = (memory >> 20, ready.memory_bytes >> 20);
        let reason =
            format!("the host has {has} MiB, but the limits `memory` of its nodes add up to {sum} MiB");
        all.push(Problem::new(reason, "lower `memory` of its nodes"));
    }
    let build = expected_hash(&ready.architecture, starting);
    let differs = |found: &Found| build.is_some_and(|hash| hash != found.hash);
    if node.binary.is_some() && probe.found.as_ref().is_some_and(differs) {
        let mend = "put the same build there, or leave `binary` out";
        all.push(Problem::new("its `binary` is another build of this program", mend));
    }
    all
}

/// The hash of the build for an architecture, if there is one here.
fn expected_hash<'a>(of: &Architecture, starting: &'a Starting) -> Option<&'a str> {
    if *of == Architecture::here() {
        return Some(own_hash());
    }
    let name = stage::name_of(of);
    starting.builds.iter().find(|build| build.arch == name).map(|build| build.hash.as_str())
}

/// A number that nobody can guess.
fn token() -> u128 {
    use ring::rand::SecureRandom as _;
    let mut bytes = [0; 16];
    // Without randomness the token is only weaker; the echo lives as long as the check.
    let _ = ring::rand::SystemRandom::new().fill(&mut bytes);
    u128::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(clock_mhz: Option<u32>) -> Facts {
        Facts {
            launch: LaunchMethod::Local,
            cores: 2,
            memory_bytes: 0,
            cpu_model: String::new(),
            clock_mhz,
            arch: String::new(),
            clock_offset_s: 0,
            address: "127.0.0.1:40001".parse().unwrap(),
            launcher_round_trip_s: 0.0,
            round_trips_s: BTreeMap::new(),
        }
    }

    #[test]
    fn a_clock_is_told_where_it_is_known() {
        assert!(facts(None).to_string().starts_with("local, 2 cores, "));
        assert!(facts(Some(2500)).to_string().starts_with("local, 2 cores at 2.50 GHz, "));
    }

    #[test]
    fn ports_are_told_of_the_nodes_that_can_be_used() {
        let node = |name: &str, outcome| {
            let (name, host) = (name.into(), "h".into());
            CheckResult { name, host, outcome, warnings: Vec::new() }
        };
        let nodes = [node("a", Ok(facts(None))), node("b", Err(Problem::new("it is gone", "wake it")))];
        let heard = HeardPorts::new("40000-40009".parse().unwrap(), &nodes);
        assert_eq!(heard.range, "40000-40009");
        assert_eq!(heard.heard_on, BTreeMap::from([("a".into(), 40001)]));
    }

    #[test]
    fn one_core_is_no_plural() {
        assert_eq!([1, 2].map(count_of_cores), ["1 core", "2 cores"]);
    }
}
