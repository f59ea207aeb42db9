//! Going through all nodes before a run: is each usable, and if not, what mends it?

use super::process::{self, LaunchError, LaunchOptions};
use super::{echo, hello_line, ssh};
use crate::config::{LaunchMethod, NodeConfig};
use serde::Serialize;
use std::io;
use std::process::Stdio;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

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

/// Facts about a host, printed by a shell there.
const FACTS: &str = "echo metachare-noise-ends; nproc; \
    awk '/^MemTotal/ {print $2}' /proc/meminfo; date +%s; df -Pk . | awk 'NR==2 {print $4}'";

/// Checks all nodes side by side. Blocks; each node takes at most the start deadline.
///
/// # Errors
/// If this machine has no resources for the checks.
pub fn check_nodes(nodes: &[NodeConfig], options: &LaunchOptions) -> io::Result<Vec<CheckResult>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let checks: Vec<_> = nodes
            .iter()
            .map(|node| {
                let (node, options) = (node.clone(), options.clone());
                tokio::spawn(async move {
                    let limit = options.start_deadline;
                    let late = || {
                        let reason = format!("no answer for {} s", limit.as_secs());
                        Err(Problem::new(reason, format!("see what `ssh {} true` does", node.host)))
                    };
                    let outcome = tokio::time::timeout(limit, check(&node, &options)).await;
                    CheckResult {
                        name: node.name.clone(),
                        host: node.host.clone(),
                        outcome: outcome.unwrap_or_else(|_| late()),
                    }
                })
            })
            .collect();
        let mut results = Vec::new();
        for check in checks {
            results.extend(check.await.ok());
        }
        Ok(results)
    })
}

async fn check(node: &NodeConfig, options: &LaunchOptions) -> Result<String, Problem> {
    if node.launch == LaunchMethod::Local {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        check_room(node, cores as u64, u64::MAX)?;
        return Ok(format!("local, {cores} cores"));
    }
    let out = process::run(node, options, FACTS, Vec::new()).await?;
    let (noise, facts) = out.split_once("metachare-noise-ends\n").unwrap_or(("", &out));
    if !noise.trim().is_empty() {
        tracing::info!("{} prints when a command logs in: {noise}", node.host);
    }
    let numbers: Vec<u64> = facts.lines().filter_map(|line| line.trim().parse().ok()).collect();
    let [cores, memory_kib, clock_s, disk_kib] = numbers[..] else {
        return Err(Problem::new(
            "its shell does not say cores, memory and time",
            "install coreutils and awk there",
        ));
    };
    check_room(node, cores, memory_kib << 10)?;
    if disk_kib < 200 << 10 {
        let reason = format!("only {} MiB of disk are free", disk_kib >> 10);
        return Err(Problem::new(reason, "free some, or set `workdir` and `binary`"));
    }
    let path = process::stage(node, options).await?;
    check_program(node, options, &path).await?;
    let reached = check_udp(node, options, &path).await?;
    let now_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let memory_gib = memory_kib >> 20;
    let offset = i128::from(clock_s) - i128::from(now_s);
    Ok(format!("{cores} cores, {memory_gib} GiB, clock {offset:+} s, UDP {reached}"))
}

fn check_room(node: &NodeConfig, cores: u64, memory_bytes: u64) -> Result<(), Problem> {
    if let Some(pes) = node.pes
        && u64::from(pes) > cores
    {
        let reason = format!("it has {cores} cores, but `pes` asks for {pes}");
        return Err(Problem::new(reason, format!("set pes = {cores}, or leave it out")));
    }
    if let Some(limit) = node.memory_bytes
        && limit > memory_bytes
    {
        let reason = format!("it has {} MiB of memory, less than its limit `memory`", memory_bytes >> 20);
        return Err(Problem::new(reason, "lower `memory`"));
    }
    Ok(())
}

async fn check_program(node: &NodeConfig, options: &LaunchOptions, path: &str) -> Result<(), Problem> {
    let out = process::run(node, options, &ssh::start_script(node, path, "__hello"), Vec::new()).await?;
    let there = out.lines().find(|line| line.starts_with("metachare-hello "));
    let version = |line: &str| line.split_whitespace().nth(1).map(ToString::to_string);
    match there {
        Some(there) if version(there) == version(&hello_line()) => Ok(()),
        Some(_) => Err(Problem::new(
            "its `binary` is another version",
            "put the same version there, or leave `binary` out",
        )),
        None => Err(Problem::new(
            format!("{path} there is not this program"),
            "correct `binary`, or leave it out",
        )),
    }
}

async fn check_udp(node: &NodeConfig, options: &LaunchOptions, path: &str) -> Result<String, Problem> {
    let token = format!("metachare-{:x}", ring_token());
    let mut command = ssh::command(node, options, &ssh::start_script(node, path, "__udp-echo"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let broken = |e: io::Error| Problem::new(e.to_string(), "try again");
    let mut child = command.spawn().map_err(broken)?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Problem::new("its pipes are missing", "try again"));
    };
    stdin.write_all(format!("{token}\n").as_bytes()).await.map_err(broken)?;
    let mut lines = BufReader::new(stdout).lines();
    let first = tokio::time::timeout(Duration::from_secs(5), lines.next_line()).await;
    let address = first.ok().and_then(Result::ok).flatten().and_then(|line| echo::address_in(&line));
    let Some(mut address) = address else {
        return Err(Problem::new("it cannot listen for UDP", "set `address` to an address of that host"));
    };
    if let Some(ip) = node.address {
        address.set_ip(ip);
    }
    let is_open = echo::ask(address, &token).await;
    let _ = child.kill().await;
    if is_open {
        return Ok(address.ip().to_string());
    }
    let reason = format!("datagrams to {} do not come back", address.ip());
    Err(Problem::new(
        reason,
        "open UDP between the hosts in the firewall, or set `address` to a reachable one",
    ))
}

/// A number that nobody can guess.
fn ring_token() -> u128 {
    use ring::rand::SecureRandom as _;
    let mut bytes = [0; 16];
    // Without randomness the token is only weaker; the echo lives five seconds.
    let _ = ring::rand::SystemRandom::new().fill(&mut bytes);
    u128::from_le_bytes(bytes)
}
