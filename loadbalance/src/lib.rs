//! Balancing and partitioning: speeds and loads in, a division of the work out.
//!
//! ```text
//!                           plan: what every planner takes and gives
//!    speeds of parts ────┐                     ┌── placement ──► bounds of neighbouring items
//!    items, their costs ─┴─► one planner of ───┼── cyclic ─────► owners, balanced however many items are left
//!                                              └── grid ───────► owners such that little crosses the wire
//!
//!    rates, memory, links of the machines ───────── machines ───► speeds, seconds, weights
//!    seconds predicted ──────────────────────────── overhead ───► weights that leave time for messages
//!    phases ─────────────────────────────────────── cost ───────► seconds that a run will take
//!    seconds, rates ─────────────────────────────── efficiency ─► the figures of the report
//! ```
//!
//! The crate knows no process, clock, socket or chare, and none may come in: everything here can be tried on
//! paper, tested in microseconds, and used by the runtime, by programs and by a report alike. A planner that serves one
//! application only lives with it.
//!
//! Planners place work before it begins; balancers ([`balance`]) move chares while they live.
//!
//! A *part* is whatever receives work: a node, a PE, a group of PEs. A *speed* is a positive number relative
//! to any reference that the parts share; only ratios count. The same input gives the same division on every
//! machine, because shares are computed in integers: each node can work it out for itself.
//!
//! # Example
//!
//! 1,000 rows over three unlike nodes:
//!
//! ```
//! use loadbalance::{Items, Part, efficiency, placement};
//!
//! let speeds = [1.0, 0.55, 0.25];
//! let bounds = placement::contiguous(&Items::alike(1000), &Part::each(&speeds))?;
//! assert_eq!(bounds, [0, 556, 861, 1000]);
//!
//! // Who holds row 600?
//! assert_eq!(placement::owner(&bounds, 600), Some(1));
//!
//! // The three are worth 1.8 of the fastest.
//! assert!((efficiency::equivalents(&speeds) - 1.8).abs() < 1e-12);
//! # Ok::<(), loadbalance::PartitionError>(())
//! ```

#![deny(clippy::disallowed_methods)]

pub mod balance;
pub mod cost;
pub mod cyclic;
pub mod efficiency;
pub mod grid;
pub mod machines;
pub mod overhead;
pub mod placement;
pub mod plan;

pub use plan::{Items, Part, PartitionError};
