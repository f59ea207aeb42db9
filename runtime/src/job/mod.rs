//! A run from its start to its end: the launcher that starts nodes and watches over them, and the node
//! process that it starts.

mod bootstrap;
mod check;
mod cores;
mod join;
pub mod launcher;
mod limits;
mod near;
pub mod node_process;
mod order;
mod panics;
mod plan;
mod processes;
mod recruiting;
mod signals;
mod start_error;
mod starts;
mod supervise;

pub use check::{check_nodes, converse, kept_copies};
pub use launcher::{Interrupter, Job};
pub use limits::prepare_for_limits;
pub use node_process::node_process;
pub use plan::JobPlan;
pub use signals::{
    SaveOrder, SaveOrders, before_exit_at_once, hear_checkpoint_orders, hear_signals,
    refuse_checkpoint_orders,
};
pub use start_error::StartError;
