//! Checking nodes as the user sees it: a signal ends the check and all that it has started.

use super::signals;
use super::start_error::{StartError, local};
use crate::config::NodeConfig;
use crate::failure::Failure;
use crate::launch::{self, CheckResult, LaunchOptions};
use crate::object::ProgramTable;
use crate::proto::membership::fingerprint;
use tokio::sync::mpsc::unbounded_channel;

/// Checks all nodes side by side for a run of `program`, and gives their results in the same order. Blocks; no node
/// may be silent for longer than the start deadline.
///
/// # Errors
/// If this machine has no resources for the checks, or the user ended them.
pub fn check_nodes(
    program: &ProgramTable,
    nodes: &[NodeConfig],
    options: LaunchOptions,
) -> Result<Vec<CheckResult>, StartError> {
    let (orders, mut inbox) = unbounded_channel();
    signals::send_to(orders).map_err(|e| local("signals cannot be heard", &e))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| local("the checks cannot start", &e))?;
    let fingerprint = fingerprint(&program.lines());
    runtime.block_on(async {
        tokio::select! {
            results = launch::check_nodes(nodes, fingerprint, options) => Ok(results),
            by = signals::interrupted(&mut inbox) => Err(StartError::Ended(Failure::interrupted(by))),
        }
    })
}
