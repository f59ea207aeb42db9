//! Watching a run from outside: counters in, events out; and asking something of it.

mod balancing_cost;
mod clock;
pub mod collectives;
pub mod critical_path;
mod detail;
pub mod gaps;
pub mod heavy;
pub mod hosts;
pub mod hub;
pub mod map;
mod pace;
mod past;
pub mod profile;
pub mod recording;
pub mod requests;
pub mod samples;
pub mod socket;
pub mod text;
pub mod ways;
pub mod wire;

pub use balancing_cost::BalancingCost;
pub use detail::Detail;
