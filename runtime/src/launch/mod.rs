//! Starting node processes, on this machine and over the system's `ssh`, and the first words between them.

mod bootstrap;
mod carry;
mod check;
mod child;
mod conversation;
mod copy;
mod diagnose;
mod echo;
mod identity;
mod kept;
mod options;
mod process;
mod reach;
mod ssh;
mod stage;

pub use bootstrap::{BootstrapError, Ready, announce_ready, read_bootstrap, watch_lifeline, watch_start};
pub(crate) use check::check_nodes;
pub use check::{CheckResult, Checked, Facts, HeardPorts, Pair, Problem};
pub use child::LOG_MARK;
pub(crate) use conversation::converse;
pub use conversation::{Conversation, answer_in};
pub(crate) use diagnose::PANICKED_CODE;
pub use echo::answer_check;
pub use identity::{own_hash, own_stamp};
pub(crate) use kept::kept_copies;
pub use kept::{IN_USE, KeptCopies, KeptCopy, Wanted};
pub use options::{Copying, LaunchOptions, LogLine};
pub use process::{ExitReason, LaunchError, LaunchedNode, launch_all};
pub use reach::{NoAddress, cannot_listen, listen_ip, source_ip};
pub(crate) use reach::{dialling_ip, local_listen_ip};
