//! Node processes as the launcher sees them: started here or over ssh, answering, ended.

use super::bootstrap::Ready;
use super::child::{Errors, Group, Lines, Tail, pass_on};
use super::copy::{self, NotCopied, Told};
use super::diagnose::{self, Diagnosis, Step};
use super::options::LaunchOptions;
use super::reach;
use super::ssh;
use super::stage::{self, Build};
use crate::config::{LaunchMethod, NodeConfig};
use crate::ids::NodeId;
use crate::monitor::wire::OutputLine;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{JoinHandle, JoinSet};
use tracing::Instrument as _;

/// How often a start is tried when sshd is busy.
const TRIES: u32 = 4;
/// Bytes of a node's first words that it has to take before it counts as silent.
const WORDS_BYTES: usize = 64 << 10;

/// Why a node was not started.
#[derive(Clone, Debug, thiserror::Error)]
#[error("node {name:?} on {host} was not started ({phase}): {reason}; mend: {mend}")]
pub struct LaunchError {
    /// The node.
    pub name: String,
    /// Its host.
    pub host: String,
    /// How far it came.
    pub phase: &'static str,
    /// What happened, with the last line it said.
    pub reason: String,
    /// What to do about it.
    pub mend: String,
}

/// How a node process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitReason(String);

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ExitReason {
    pub(super) fn of(reason: String) -> Self {
        Self(reason)
    }
}

/// A node process that has answered. Dropping it kills it.
#[derive(Debug)]
pub struct LaunchedNode {
    /// Its number.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// What it said of itself.
    pub ready: Ready,
    child: Group,
    lifeline: Option<ChildStdin>,
    is_ssh: bool,
    tail: Tail,
}

impl LaunchedNode {
    /// Waits until the process ends by itself. May be called again after being dropped half-way.
    pub async fn exited(&mut self) -> ExitReason {
        ExitReason(match self.child.wait().await {
            Ok(status) => diagnose::of_end(status, self.is_ssh, &self.tail.text()),
            Err(error) => format!("cannot be watched: {error}"),
        })
    }

    /// Says more to the process.
    pub(super) async fn tell(&mut self, words: &[u8]) -> io::Result<()> {
        match &mut self.lifeline {
            Some(stdin) => {
                stdin.write_all(words).await?;
                stdin.flush().await
            }
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Lets go of the process: it ends by itself when it notices.
    pub fn release(&mut self) {
        self.lifeline = None;
    }

    /// Waits for the process to end by itself, lets go of it after `grace`, and kills it soon after.
    pub async fn end(mut self, grace: Duration) {
        if tokio::time::timeout(grace, self.child.wait()).await.is_ok() {
            return;
        }
        self.release();
        if tokio::time::timeout(Duration::from_millis(400), self.child.wait()).await.is_err() {
            self.child.kill();
            // It cannot refuse; only a broken kernel makes us wait.
            let _ = tokio::time::timeout(Duration::from_millis(400), self.child.wait()).await;
        }
    }
}

/// What is the same for all nodes that are started or checked together.
#[derive(Clone, Debug)]
pub(super) struct Starting {
    pub(super) options: Arc<LaunchOptions>,
    pub(super) builds: Arc<Vec<Build>>,
    output: UnboundedSender<OutputLine>,
    slots: Arc<Semaphore>,
}

impl Starting {
    pub(super) fn new(options: LaunchOptions, output: UnboundedSender<OutputLine>, needs_ssh: bool) -> Self {
        let builds = if needs_ssh { stage::builds(&options) } else { Vec::new() };
        let slots = Arc::new(Semaphore::new(options.parallel.max(1)));
        Self { options: Arc::new(options), builds: Arc::new(builds), output, slots }
    }
}

/// Starts all nodes, several at a time, and waits for their answers: first those of other hosts, then those of
/// this machine. If one fails the others are ended. `first_words` is what each is told first, given the address of
/// this machine for it to listen on if it runs here.
///
/// # Errors
/// Which node failed where, and how to mend it.
pub async fn launch_all(
    nodes: &[(NodeId, NodeConfig)],
    mut first_words: impl FnMut(NodeId, Option<IpAddr>) -> Option<Vec<u8>>,
    output: UnboundedSender<OutputLine>,
    options: LaunchOptions,
) -> Result<Vec<LaunchedNode>, LaunchError> {
    let needs_ssh = nodes.iter().any(|(_, node)| node.launch == LaunchMethod::Ssh);
    let starting = Starting::new(options, output, needs_ssh);
    let mut started: Vec<LaunchedNode> = Vec::new();
    for method in [LaunchMethod::Ssh, LaunchMethod::Local] {
        let is_local = method == LaunchMethod::Local;
        let ip = is_local.then(|| reach::local_listen_ip(started.iter().map(|n| n.ready.addr.ip())));
        let mut attempts = JoinSet::new();
        for (id, config) in nodes.iter().filter(|(_, config)| config.launch == method) {
            let blob = first_words(*id, ip).unwrap_or_default();
            let length = u32::try_from(blob.len()).unwrap_or(u32::MAX).to_le_bytes();
            let words = [&length[..], &blob].concat();
            let (id, config, starting) = (*id, config.clone(), starting.clone());
            let span = tracing::info_span!("launch", node = config.name, host = config.host);
            let attempt = async move { launch(id, &config, "__node", &words, &starting).await };
            attempts.spawn(attempt.instrument(span));
        }
        started = gather(attempts, started).await?;
    }
    started.sort_by_key(|node| node.node);
    Ok(started)
}

/// Waits for all attempts, and ends what has `started` if one fails.
async fn gather(
    mut attempts: JoinSet<Result<LaunchedNode, LaunchError>>,
    mut started: Vec<LaunchedNode>,
) -> Result<Vec<LaunchedNode>, LaunchError> {
    while let Some(attempt) = attempts.join_next().await {
        match attempt {
            Ok(Ok(node)) => started.push(node),
            Ok(Err(error)) => {
                // Nobody waits for the others: dropping their tasks kills what they have started.
                attempts.shutdown().await;
                let mut ending: JoinSet<()> =
                    started.into_iter().map(|node| node.end(Duration::ZERO)).collect();
                while ending.join_next().await.is_some() {}
                return Err(error);
            }
            Err(error) => tracing::error!("a start was lost: {error}"),
        }
    }
    Ok(started)
}

/// Starts the program with `argument` where the node lives, tells it `words` and waits for its answer; tries
/// again where sshd was only busy.
pub(super) async fn launch(
    id: NodeId,
    config: &NodeConfig,
    argument: &str,
    words: &[u8],
    starting: &Starting,
) -> Result<LaunchedNode, LaunchError> {
    let _slot = starting.slots.acquire().await;
    let mut pause = Duration::from_millis(300);
    let mut tries = 1;
    loop {
        let began = std::time::Instant::now();
        let failed = match launch_once(id, config, argument, words, starting).await {
            Ok(node) => {
                tracing::info!("node {:?} has answered after {:?}", config.name, began.elapsed());
                return Ok(node);
            }
            Err(failed) => failed,
        };
        let may_retry = tries < TRIES && config.launch == LaunchMethod::Ssh && failed.0 == Step::Connect;
        if !may_retry || !diagnose::is_transient(&failed.1.reason) {
            return Err(launch_error(config, failed));
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
        tries += 1;
    }
}

/// How far a start came, and why not farther.
pub(super) type Failed = (Step, Diagnosis);

/// What is said about it.
pub(super) fn launch_error(config: &NodeConfig, (step, Diagnosis { reason, mend }): Failed) -> LaunchError {
    let (name, host) = (config.name.clone(), config.host.clone());
    LaunchError { name, host, phase: step.name(), reason, mend }
}

async fn launch_once(
    id: NodeId,
    config: &NodeConfig,
    argument: &str,
    words: &[u8],
    starting: &Starting,
) -> Result<LaunchedNode, Failed> {
    let mut talk = Talk::open(id, config, argument, starting).await?;
    let is_ssh = config.launch == LaunchMethod::Ssh;
    // Of a long list of words a slow line takes some at a time; who takes none for so long does not listen.
    for some in words.chunks(WORDS_BYTES) {
        if within(starting, talk.stdin.write_all(some)).await.is_none() {
            return Err(talk.silent(Step::Start));
        }
    }
    // A process that ended already says so below.
    let _ = talk.stdin.flush().await;
    let ready = talk.until(Step::Start, Ready::from_line).await?;
    tokio::spawn(pass_on(talk.lines, id, starting.output.clone()));
    let (name, lifeline) = (config.name.clone(), Some(talk.stdin));
    Ok(LaunchedNode { node: id, name, ready, child: talk.child, lifeline, is_ssh, tail: talk.tail })
}

/// A process that has been started and not answered.
pub(super) struct Talk<'a> {
    config: &'a NodeConfig,
    starting: &'a Starting,
    pub(super) child: Group,
    pub(super) stdin: ChildStdin,
    pub(super) lines: Lines<ChildStdout>,
    pub(super) tail: Tail,
    pub(super) errors: JoinHandle<()>,
}

impl<'a> Talk<'a> {
    /// Starts the program with `argument` where the node lives, copied there first if need be.
    pub(super) async fn open(
        id: NodeId,
        config: &'a NodeConfig,
        argument: &str,
        starting: &'a Starting,
    ) -> Result<Self, Failed> {
        let mut talk = Self::begin(id, config, argument, starting)?;
        if config.launch == LaunchMethod::Ssh {
            talk.until(Step::Connect, |line| (line == ssh::SHELL).then_some(())).await?;
            let _ = talk.stdin.write_all(ssh::environment(config).as_bytes()).await;
            let _ = talk.stdin.flush().await;
            if config.binary.is_none() {
                talk.stage().await?;
            }
        }
        Ok(talk)
    }

    fn begin(
        id: NodeId,
        config: &'a NodeConfig,
        argument: &str,
        starting: &'a Starting,
    ) -> Result<Self, Failed> {
        let is_ssh = config.launch == LaunchMethod::Ssh;
        let no_start = |error: io::Error| (Step::Start, diagnose::of_spawn(config, &error));
        let mut command = if is_ssh {
            let script = ssh::script(config, &starting.builds, &stage::program_name(), argument);
            ssh::command(config, &starting.options, &script)
        } else {
            local_command(config, argument).map_err(no_start)?
        };
        let (child, pipes) = Group::spawn(&mut command).map_err(no_start)?;
        let tail = Tail::default();
        let noise_until = is_ssh.then_some(ssh::SHELL);
        let errors = Errors {
            node: id,
            name: config.name.clone(),
            output: starting.output.clone(),
            log: starting.options.log.clone(),
            tail: tail.clone(),
            noise_until,
        };
        let errors = tokio::spawn(errors.pass_on(Lines::new(pipes.stderr)));
        let (stdin, lines) = (pipes.stdin, Lines::new(pipes.stdout));
        Ok(Self { config, starting, child, stdin, lines, tail, errors })
    }

    /// Reads lines until `wanted` makes something of one; the others are noise.
    pub(super) async fn until<T>(
        &mut self,
        step: Step,
        wanted: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Failed> {
        let lines = &mut self.lines;
        let find = async {
            while let Some(line) = lines.next().await {
                if let Some(found) = wanted(&line) {
                    return Some(found);
                }
                tracing::info!("before the start: {line}");
            }
            None
        };
        match within(self.starting, find).await {
            Some(Some(found)) => Ok(found),
            Some(None) => Err(self.ended(step).await),
            None => Err(self.silent(step)),
        }
    }

    /// Sees to it that the executable is on the host.
    async fn stage(&mut self) -> Result<(), Failed> {
        enum Said {
            There,
            Wants(String, bool),
            Foreign(String),
        }
        let said = self
            .until(Step::Stage, |line| {
                let wants = line.strip_prefix(ssh::WANTS).and_then(|words| words.split_once(' '));
                let wants = wants.map(|(arch, how)| Said::Wants(arch.into(), how == ssh::PACKED));
                let foreign = line.strip_prefix(ssh::FOREIGN).map(|arch| Said::Foreign(arch.into()));
                wants.or(foreign).or_else(|| (line == ssh::STAGED).then_some(Said::There))
            })
            .await?;
        match said {
            Said::There => Ok(()),
            Said::Foreign(arch) => {
                let is_named = self.starting.options.binaries.contains_key(&arch);
                Err((Step::Stage, diagnose::of_architecture(&arch, &stage::here(), is_named)))
            }
            Said::Wants(arch, can_unpack) => self.copy(&arch, can_unpack).await,
        }
    }

    /// Copies the executable there.
    async fn copy(&mut self, arch: &str, can_unpack: bool) -> Result<(), Failed> {
        let build = self.starting.builds.iter().find(|build| build.arch == arch);
        let Some(build) = build else {
            return Err((Step::Stage, diagnose::of_architecture(arch, &stage::here(), false)));
        };
        let parcel = build.parcel(can_unpack).await.map_err(|e| {
            let reason = format!("{:?} cannot be read: {e}", build.file);
            (Step::Stage, Diagnosis { reason, mend: "build it again".into() })
        })?;
        let (options, node) = (&self.starting.options, self.config.name.as_str());
        let told = Told { node, total_bytes: build.bytes, by: options.copies.as_ref() };
        let limit = options.start_deadline;
        match copy::copy(&parcel, &mut self.stdin, &mut self.lines, limit, told).await {
            Ok(()) => Ok(()),
            Err(NotCopied::Ended) => Err(self.ended(Step::Stage).await),
            Err(NotCopied::Stalled) => Err(self.silent(Step::Stage)),
        }
    }

    /// The process has ended or wants to hear nothing more: why?
    async fn ended(&mut self, step: Step) -> Failed {
        let status = tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await;
        let _ = tokio::time::timeout(Duration::from_secs(1), &mut self.errors).await;
        let status = status.ok().and_then(Result::ok);
        (step, diagnose::of_exit(self.config, step, status, &self.tail.text()))
    }

    fn silent(&self, step: Step) -> Failed {
        let seconds = self.starting.options.start_deadline.as_secs();
        (step, diagnose::of_silence(self.config, step, seconds))
    }
}

/// What comes of `future`, unless it takes longer than a node may be silent.
async fn within<T>(starting: &Starting, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(starting.options.start_deadline, future).await.ok()
}

fn local_command(config: &NodeConfig, argument: &str) -> io::Result<Command> {
    let exe = match &config.binary {
        Some(path) => path.clone(),
        None => std::env::current_exe()?,
    };
    let mut command = Command::new(exe);
    command.arg(argument).envs(&config.env);
    if let Some(workdir) = &config.workdir {
        command.current_dir(workdir);
    }
    Ok(command)
}
