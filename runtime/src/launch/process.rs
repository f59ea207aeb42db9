//! Node processes as the launcher sees them.

use super::bootstrap::Ready;
use super::{hash_of, own_hash, ssh};
use crate::config::{LaunchMethod, NodeConfig};
use crate::ids::NodeId;
use crate::monitor::wire::OutputLine;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// The longest line that is passed on whole.
const LINE_MAX_BYTES: usize = 64 << 10;
/// How often a start is tried when sshd is busy.
const TRIES: u32 = 4;

/// How nodes are started.
#[derive(Clone, Debug)]
pub struct LaunchOptions {
    /// The ssh program and its first arguments.
    pub ssh: Vec<String>,
    /// How long one node may take to answer.
    pub start_deadline: Duration,
    /// How many are started at once.
    pub parallel: usize,
    /// Executables for other architectures, e.g. `aarch64-linux`.
    pub binaries: BTreeMap<String, PathBuf>,
}

impl Default for LaunchOptions {
    fn default() -> Self {
        Self {
            ssh: vec!["ssh".into()],
            start_deadline: Duration::from_secs(30),
            parallel: 8,
            binaries: BTreeMap::new(),
        }
    }
}

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
    /// What happened, with the command and the last line it said.
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

/// A node process that has answered.
#[derive(Debug)]
pub struct LaunchedNode {
    /// Its number.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// What it said of itself.
    pub ready: Ready,
    child: Child,
    lifeline: Option<ChildStdin>,
    is_ssh: bool,
    last_error: LastLine,
}

/// The last line of a process's standard error.
type LastLine = Arc<Mutex<String>>;

impl LaunchedNode {
    /// Waits until the process ends by itself. May be called again after being dropped half-way.
    pub async fn exited(&mut self) -> ExitReason {
        let status = self.child.wait().await;
        let last = self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ExitReason(match status {
            Ok(status) => explain(status, self.is_ssh, &last),
            Err(error) => format!("cannot be watched: {error}"),
        })
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
            let _ = self.child.kill().await;
        }
    }
}

fn explain(status: ExitStatus, is_ssh: bool, last: &str) -> String {
    let said = if last.is_empty() { String::new() } else { format!(": {last}") };
    match (status.code(), status.signal()) {
        (_, Some(signal)) => format!("was killed by signal {signal}{said}"),
        (Some(255), _) if is_ssh => format!("lost its ssh connection{said}"),
        (Some(code), _) if is_ssh && code > 128 => format!("was killed by signal {}{said}", code - 128),
        (code, _) => format!("ended with exit code {}{said}", code.unwrap_or(-1)),
    }
}

/// Starts all nodes, several at a time, and waits for their answers. `blob` is what each is told first.
/// If one fails the others are ended.
///
/// # Errors
/// Which node failed where, and how to mend it.
pub async fn launch_all(
    nodes: &[(NodeId, NodeConfig)],
    blob: impl Fn(NodeId) -> Vec<u8>,
    output: UnboundedSender<OutputLine>,
    options: &LaunchOptions,
) -> Result<Vec<LaunchedNode>, LaunchError> {
    let slots = Arc::new(Semaphore::new(options.parallel.max(1)));
    let starting: Vec<_> = nodes
        .iter()
        .map(|(id, config)| {
            let (id, config, blob) = (*id, config.clone(), blob(*id));
            let (output, options, slots) = (output.clone(), options.clone(), Arc::clone(&slots));
            tokio::spawn(async move {
                let _slot = slots.acquire().await;
                launch(id, &config, &blob, &output, &options).await
            })
        })
        .collect();
    let (mut started, mut failed) = (Vec::new(), None);
    for attempt in starting {
        match attempt.await {
            Ok(Ok(node)) => started.push(node),
            Ok(Err(error)) => failed = failed.or(Some(error)),
            Err(error) => tracing::error!("a start was lost: {error}"),
        }
    }
    match failed {
        None => Ok(started),
        Some(error) => {
            let ending: Vec<_> = started.into_iter().map(|n| tokio::spawn(n.end(Duration::ZERO))).collect();
            for end in ending {
                let _ = end.await;
            }
            Err(error)
        }
    }
}

async fn launch(
    id: NodeId,
    config: &NodeConfig,
    blob: &[u8],
    output: &UnboundedSender<OutputLine>,
    options: &LaunchOptions,
) -> Result<LaunchedNode, LaunchError> {
    let fail = |phase, reason: String, mend: String| LaunchError {
        name: config.name.clone(),
        host: config.host.clone(),
        phase,
        reason,
        mend,
    };
    let slow = || {
        let seconds = options.start_deadline.as_secs();
        let mend = format!("see what `ssh {} true` does, and how long it takes", config.host);
        fail("start", format!("no answer for {seconds} s"), mend)
    };
    let mut pause = Duration::from_millis(300);
    for attempt in 1.. {
        let once = launch_once(id, config, blob, output, options);
        let outcome = tokio::time::timeout(options.start_deadline, once).await.map_err(|_| slow())?;
        match outcome {
            Ok(node) => return Ok(node),
            Err(error)
                if attempt < TRIES
                    && config.launch == LaunchMethod::Ssh
                    && ssh::is_transient(&error.reason) =>
            {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            Err(error) => return Err(error),
        }
    }
    Err(slow())
}

async fn launch_once(
    id: NodeId,
    config: &NodeConfig,
    blob: &[u8],
    output: &UnboundedSender<OutputLine>,
    options: &LaunchOptions,
) -> Result<LaunchedNode, LaunchError> {
    let is_ssh = config.launch == LaunchMethod::Ssh;
    let fail = |phase, reason: String, mend: String| LaunchError {
        name: config.name.clone(),
        host: config.host.clone(),
        phase,
        reason,
        mend,
    };
    let mut command = if is_ssh {
        let path = stage(config, options).await?;
        ssh::command(config, options, &ssh::start_script(config, &path, "__node"))
    } else {
        local_command(config)
            .map_err(|e| fail("start", e.to_string(), "check `binary` and `workdir`".into()))?
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // The terminal's ctrl-C is for the launcher alone, which then ends the nodes in order.
    command.process_group(0);
    let mut child = command.spawn().map_err(|e| fail("start", e.to_string(), mend_spawn(is_ssh)))?;
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(fail("start", "its pipes are missing".into(), mend_spawn(is_ssh)));
    };
    let last_error = LastLine::default();
    let errors = pass_on(stderr, id, true, output.clone(), Some(Arc::clone(&last_error)), None);
    let errors = tokio::spawn(errors);
    let (answer, answered) = oneshot::channel();
    tokio::spawn(pass_on(stdout, id, false, output.clone(), None, Some(answer)));
    let length = u32::try_from(blob.len()).unwrap_or(u32::MAX).to_le_bytes();
    // A process that ended already says so below.
    let _ = stdin.write_all(&[&length[..], blob].concat()).await;
    let _ = stdin.flush().await;
    if let Ok(ready) = answered.await {
        let name = config.name.clone();
        return Ok(LaunchedNode { node: id, name, ready, child, lifeline: Some(stdin), is_ssh, last_error });
    }
    let _ = tokio::time::timeout(Duration::from_secs(1), errors).await;
    let status = tokio::time::timeout(Duration::from_secs(2), child.wait()).await;
    let last = last_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let how = match status {
        Ok(Ok(status)) => explain(status, is_ssh, &last),
        _ => format!("closed its output without an answer: {last}"),
    };
    if is_ssh {
        let (phase, mend) = ssh::mend(config, &last);
        return Err(fail(phase, format!("`{}` {how}", ssh::spelled(config, options)), mend));
    }
    Err(fail("ready", format!("it {how}"), "run the same command in its `workdir` by hand".into()))
}

fn mend_spawn(is_ssh: bool) -> String {
    if is_ssh {
        "install an ssh client".into()
    } else {
        "check `binary` and `workdir` in the nodes file".into()
    }
}

fn local_command(config: &NodeConfig) -> io::Result<Command> {
    let exe = match &config.binary {
        Some(path) => path.clone(),
        None => std::env::current_exe()?,
    };
    let mut command = Command::new(exe);
    command.arg("__node").envs(&config.env);
    if let Some(workdir) = &config.workdir {
        command.current_dir(workdir);
    }
    Ok(command)
}

/// Sees to it that the executable is on the node's host; its path there, for a shell.
pub(super) async fn stage(config: &NodeConfig, options: &LaunchOptions) -> Result<String, LaunchError> {
    if let Some(path) = &config.binary {
        return Ok(ssh::quoted(&path.display().to_string()));
    }
    let fail = |reason: String, mend: &str| LaunchError {
        name: config.name.clone(),
        host: config.host.clone(),
        phase: "stage",
        reason,
        mend: mend.into(),
    };
    let exe = std::env::current_exe().map_err(|e| fail(e.to_string(), "start the program by its path"))?;
    let program = exe.file_name().map_or_else(|| "program".into(), |n| n.to_string_lossy().into_owned());
    let probe = run(config, options, &ssh::probe_script(&program, own_hash()), Vec::new()).await?;
    let arch = probe.lines().find_map(|line| line.strip_prefix("metachare-arch ")).unwrap_or_default();
    let here = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let (hash, file) = if arch == here {
        if probe.lines().any(|line| line == "metachare-staged") {
            return Ok(ssh::staged_path(&program, own_hash()));
        }
        (own_hash().to_string(), exe)
    } else {
        let file = options.binaries.get(arch).cloned().ok_or_else(|| {
            let reason = format!("its architecture is {arch:?}, this executable is for {here}");
            fail(reason, "build the program for it and name the file under [binaries] in the nodes file")
        })?;
        (read_hash(&file).map_err(|e| fail(format!("{file:?}: {e}"), "correct [binaries]"))?, file)
    };
    let bytes = tokio::fs::read(&file).await.map_err(|e| fail(format!("{file:?}: {e}"), "build it again"))?;
    run(config, options, &ssh::stage_script(&program, &hash), bytes).await?;
    Ok(ssh::staged_path(&program, &hash))
}

fn read_hash(file: &Path) -> io::Result<String> {
    Ok(hash_of(&std::fs::read(file)?))
}

/// Runs a script on the node's host with `input`; its output.
pub(super) async fn run(
    config: &NodeConfig,
    options: &LaunchOptions,
    script: &str,
    input: Vec<u8>,
) -> Result<String, LaunchError> {
    let fail = |phase, reason: String, mend: String| LaunchError {
        name: config.name.clone(),
        host: config.host.clone(),
        phase,
        reason: format!("`{}` {reason}", ssh::spelled(config, options)),
        mend,
    };
    let mut command = ssh::command(config, options, script);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command.process_group(0);
    let mut child = command.spawn().map_err(|e| fail("connect", e.to_string(), mend_spawn(true)))?;
    let stdin = child.stdin.take();
    let feed = tokio::spawn(async move {
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(&input).await;
        }
    });
    let done =
        child.wait_with_output().await.map_err(|e| fail("connect", e.to_string(), mend_spawn(true)))?;
    feed.abort();
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&done.stderr);
    let last = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let (phase, mend) = ssh::mend(config, &stderr);
    Err(fail(phase, explain(done.status, true, last), mend))
}

/// Passes on the lines of a node's output. Lines before the answer are a shell's noise, not the program's.
async fn pass_on(
    from: impl AsyncRead + Unpin,
    node: NodeId,
    is_error: bool,
    output: UnboundedSender<OutputLine>,
    last: Option<LastLine>,
    mut answer: Option<oneshot::Sender<Ready>>,
) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut from).take(LINE_MAX_BYTES as u64).read_until(b'\n', &mut line).await;
        if !matches!(read, Ok(count) if count > 0) {
            return;
        }
        let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_string();
        if let Some(last) = &last
            && !text.trim().is_empty()
        {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = text.clone();
        }
        if let Some(waiting) = answer.take() {
            match Ready::from_line(&text) {
                Some(ready) => drop(waiting.send(ready)),
                None => answer = Some(waiting),
            }
            continue;
        }
        let _ = output.send(OutputLine { node: node.0, is_error, text });
    }
}
