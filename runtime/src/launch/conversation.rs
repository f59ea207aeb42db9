//! The program on another host, not as a node: it is spoken with over its standard input and output.

use super::diagnose::{self, Step};
use super::options::LaunchOptions;
use super::process::{ExitReason, LaunchError, Starting, Talk, launch_error};
use crate::config::{LaunchMethod, NodeConfig};
use crate::ids::NodeId;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd as _;
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;

/// The line with which the other end begins; what comes before it is noise.
const BEGINS: &str = "metachare-conversation 1";
/// How long the other end may take to end when nobody listens to it any more.
const ENDS: Duration = Duration::from_secs(5);

/// What came of a conversation.
#[derive(Debug)]
pub struct Conversation<T> {
    /// What who spoke from here says.
    pub done: T,
    /// How the process at the other end ended, where it did.
    pub end: Option<ExitReason>,
}

/// Starts the program with `argument` where the node lives, as nodes are started, and has `speak` speak with it: it is given
/// what comes from there, and the way there. If this is dropped half-way the process is killed, and `speak` hears the end.
///
/// # Errors
/// If the program cannot be started there, as for a node.
pub(crate) async fn converse<T: Send + 'static>(
    node: &NodeConfig,
    argument: &str,
    options: LaunchOptions,
    speak: impl FnOnce(&mut (dyn Read + Send), &mut (dyn Write + Send)) -> T + Send + 'static,
) -> Result<Conversation<T>, LaunchError> {
    let is_ssh = node.launch == LaunchMethod::Ssh;
    // What the other end writes on its standard error is only remembered, to explain its end.
    let (output, _) = unbounded_channel();
    let starting = Starting::new(options, output, is_ssh);
    let opened = Talk::open(NodeId::LAUNCHER, node, argument, &starting).await;
    let mut talk = opened.map_err(|failed| launch_error(node, failed))?;
    let begun = talk.until(Step::Start, |line| (line == BEGINS).then_some(())).await;
    begun.map_err(|failed| launch_error(node, failed))?;
    let Talk { mut child, stdin, lines, tail, errors, .. } = talk;
    let (rest, stdout) = lines.into_rest();
    let pipes = stdout.into_owned_fd().and_then(|from| Ok((from, stdin.into_owned_fd()?)));
    let (from, to) =
        pipes.map_err(|error| launch_error(node, (Step::Start, diagnose::of_spawn(node, &error))))?;
    let spoken =
        tokio::task::spawn_blocking(move || speak(&mut rest.chain(File::from(from)), &mut File::from(to)));
    let done = match spoken.await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    };
    let status = tokio::time::timeout(ENDS, child.wait()).await.ok().and_then(Result::ok);
    let _ = tokio::time::timeout(ENDS, errors).await;
    let end = status.map(|status| ExitReason::of(diagnose::of_end(status, is_ssh, &tail.text())));
    Ok(Conversation { done, end })
}

/// The other end: says that it begins, and gives `answer` what comes and the way back.
///
/// # Errors
/// If standard input or output is closed.
pub fn answer_in<T>(
    answer: impl FnOnce(&mut (dyn Read + Send), &mut (dyn Write + Send)) -> T,
) -> io::Result<T> {
    let mut from = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut to = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    to.write_all(format!("{BEGINS}\n").as_bytes())?;
    Ok(answer(&mut from, &mut to))
}
