//! What is to be run, and where.

use crate::config::ClusterConfig;
use crate::launch::LaunchOptions;
use crate::monitor::Detail;
use crate::object::ProgramTable;
use loadbalance::balance::Choice;
use std::sync::Arc;
use std::time::Duration;

/// What is to be run, and where.
#[derive(Debug)]
pub struct JobPlan {
    /// Chare types and kernels.
    pub program: Arc<ProgramTable>,
    /// The application's name.
    pub app: String,
    /// What the run is called, where runs are watched; if absent, the application and some digits. No other run of the
    /// user on this machine may be called so.
    pub name: Option<String>,
    /// The command line, for people.
    pub arguments: Vec<String>,
    /// The application's arguments, for its kernel.
    pub kernel_arguments: Vec<u8>,
    /// The nodes.
    pub config: ClusterConfig,
    /// How to start them.
    pub launch: LaunchOptions,
    /// Pack every message (for tests).
    pub always_pup: bool,
    /// Who balances, and how the user wrote that; nobody does without.
    pub balance: Option<(Choice, String)>,
    /// Whether what chares cost and who talks to whom is to be known in any case, to be saved.
    pub keeps_loads: bool,
    /// How much PEs find out about what they do.
    pub detail: Detail,
    /// The seed from which chares move at random moments (for tests).
    pub wander: Option<u64>,
    /// Counts of PEs of the nodes, launcher first, with which the run began that goes on; empty for a new one.
    pub begun: Vec<u32>,
    /// The run is ended after so long, counted from the start of its nodes.
    pub timeout: Option<Duration>,
}

impl JobPlan {
    /// Whether somebody wants to know what chares cost.
    pub(super) fn wants_loads(&self) -> bool {
        self.keeps_loads || self.balance.is_some()
    }
}
