//! Going through all nodes before a run: is each usable, and if not, what mends it? Each is started just as for
//! a run, only with another command, so that a check finds what a run would find.

use super::process::{self, LaunchError, LaunchOptions, Starting};
use super::{Ready, clock_s, echo};
use crate::codec::WIRE_VERSION;
use crate::config::{LaunchMethod, NodeConfig};
use crate::ids::NodeId;
use serde::Serialize;
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;

/// One node, checked.
#[derive(Clone, Debug, Serialize)]
pub struct CheckResult {
    /// Its name.
    pub name: String,
    /// Its host.
    pub host: String,
    /// A few facts, or what is wrong.
    pub outcome: Result<String, Problem>,
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

/// Checks all nodes, several at a time. No node may be silent for longer than the start deadline. Dropped
/// half-way it ends what it has started.
pub(crate) async fn check_nodes(nodes: &[NodeConfig], options: &LaunchOptions) -> Vec<CheckResult> {
    let (output, _unheard) = unbounded_channel();
    let needs_ssh = nodes.iter().any(|node| node.launch == LaunchMethod::Ssh);
    let starting = Starting::new(options, output, needs_ssh);
    let mut checks = JoinSet::new();
    for (at, node) in nodes.iter().cloned().enumerate() {
        let starting = starting.clone();
        checks.spawn(async move {
            let outcome = check(&node, &starting).await;
            (at, CheckResult { name: node.name, host: node.host, outcome })
        });
    }
    let mut results = checks.join_all().await;
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

async fn check(node: &NodeConfig, starting: &Starting) -> Result<String, Problem> {
    let is_local = node.launch == LaunchMethod::Local;
    let token = format!("metachare-{:x}", token());
    let listen = if is_local { Some(std::net::Ipv4Addr::LOCALHOST.into()) } else { node.address };
    let words = format!("{token} {}\n", listen.map_or_else(String::new, |ip| ip.to_string()));
    let started = process::launch(NodeId(1), node, "__check", words.as_bytes(), starting).await?;
    let ready = started.ready.clone();
    if ready.version != WIRE_VERSION {
        return Err(Problem::new(
            format!("its `binary` speaks version {}, this program {WIRE_VERSION}", ready.version),
            "put the same version there, or leave `binary` out",
        ));
    }
    check_room(node, &ready)?;
    let address = ready.addr;
    let is_open = echo::ask(address, &token).await;
    started.end(Duration::ZERO).await;
    if !is_open {
        return Err(Problem::new(
            format!("datagrams to {} do not come back", address.ip()),
            "open UDP between the hosts in the firewall, or set `address` to a reachable one",
        ));
    }
    let (cores, memory_gib) = (ready.cores, ready.memory_bytes >> 30);
    if is_local {
        return Ok(format!("local, {cores} cores, {memory_gib} GiB"));
    }
    let offset_s = i128::from(ready.clock_s) - i128::from(clock_s());
    Ok(format!("{cores} cores, {memory_gib} GiB, clock {offset_s:+} s, UDP {}", address.ip()))
}

fn check_room(node: &NodeConfig, ready: &Ready) -> Result<(), Problem> {
    if let Some(pes) = node.pes
        && pes > ready.cores
    {
        let reason = format!("it has {} cores, but `pes` asks for {pes}", ready.cores);
        return Err(Problem::new(reason, format!("set pes = {}, or leave it out", ready.cores)));
    }
    if let Some(limit) = node.memory_bytes
        && ready.memory_bytes > 0
        && limit > ready.memory_bytes
    {
        let reason =
            format!("it has {} MiB of memory, less than its limit `memory`", ready.memory_bytes >> 20);
        return Err(Problem::new(reason, "lower `memory`"));
    }
    Ok(())
}

/// A number that nobody can guess.
fn token() -> u128 {
    use ring::rand::SecureRandom as _;
    let mut bytes = [0; 16];
    // Without randomness the token is only weaker; the echo lives five seconds.
    let _ = ring::rand::SystemRandom::new().fill(&mut bytes);
    u128::from_le_bytes(bytes)
}
