//! Asking nodes where there is no run, as the user sees it: a signal ends that and all that it has started.

use super::signals;
use super::start_error::{StartError, local};
use crate::config::{ClusterConfig, NodeConfig};
use crate::failure::{Failure, Kind};
use crate::launch::{self, Checked, Conversation, KeptCopies, LaunchOptions, Wanted};
use crate::object::ProgramTable;
use crate::proto::membership::fingerprint;
use std::io::{Read, Write};
use tokio::sync::mpsc::unbounded_channel;

/// Checks all nodes of `config` side by side for a run of `program`, and gives their results in the same order. Blocks; no node
/// may be silent for longer than the start deadline.
///
/// # Errors
/// If this machine has no resources for the checks, or the user ended them.
pub fn check_nodes(
    program: &ProgramTable,
    config: &ClusterConfig,
    options: LaunchOptions,
) -> Result<Checked, StartError> {
    let fingerprint = fingerprint(&program.lines());
    until_interrupted(launch::check_nodes(config, fingerprint, options))
}

/// The copies of executables that the hosts of nodes keep, or what was taken away of them. Blocks for as long as the start
/// deadline at most.
///
/// # Errors
/// If this machine has no resources to ask, or the user ended it.
pub fn kept_copies(
    config: &ClusterConfig,
    wanted: Wanted,
    options: &LaunchOptions,
) -> Result<Vec<KeptCopies>, StartError> {
    until_interrupted(launch::kept_copies(&config.nodes, wanted, options))
}

/// Starts the program with `argument` where the node lives, and has `speak` speak with it over its standard output and input.
/// Blocks until both are done.
///
/// # Errors
/// If this machine has no resources for that, the user ended it, or the program cannot be started there.
pub fn converse<T: Send + 'static>(
    node: &NodeConfig,
    argument: &str,
    options: LaunchOptions,
    speak: impl FnOnce(&mut (dyn Read + Send), &mut (dyn Write + Send)) -> T + Send + 'static,
) -> Result<Conversation<T>, Failure> {
    let spoken = until_interrupted(launch::converse(node, argument, options, speak))?;
    spoken.map_err(|error| Failure::new(Kind::Unavailable, error))
}

fn until_interrupted<T>(work: impl Future<Output = T>) -> Result<T, StartError> {
    let (orders, mut inbox) = unbounded_channel();
    signals::send_to(orders).map_err(|e| local("signals cannot be heard", &e))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| local("nodes cannot be asked", &e))?;
    runtime.block_on(async {
        tokio::select! {
            done = work => Ok(done),
            failure = signals::ended(&mut inbox) => Err(StartError::Ended(failure)),
        }
    })
}
