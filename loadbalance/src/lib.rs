//! Balancing and partitioning: speeds and loads in, a division of the work out.
//!
//! ```text
//!    measured speeds ──┐                       ┌── data_partition ─► how many rows each part gets
//!    memory limits ────┼──► this crate (pure) ─┼── placement ──────► which part owns element i
//!                      │                       ├── cyclic ─────────► the same, balanced however many are left
//!    grid of blocks ───┤                       ├── grid ───────────► blocks to parts, what crosses the wire
//!    seconds predicted ┤                       ├── overhead ───────► shares that leave time for messages
//!    units done so far ┤                       ├── lending ────────► who hands work to whom near the end
//!    parts that ask ───┤                       ├── self_scheduling ► the next batch of who has done one
//!    rates of late ────┤                       ├── rebalance ──────► who hands how much to whom, midway
//!    seconds, rates ───┤                       ├── efficiency ─────► the figures of the report
//!    phases, links ────┘                       └── cost ───────────► seconds that a run will take
//! ```
//!
//! The crate knows no process, clock, socket or chare, and none may come in: everything here can be tried on
//! paper, tested in microseconds, and used by the runtime, by programs and by a report alike. Plans that move
//! chares while they live will stand beside these modules and take the same kind of input.
//!
//! A *part* is whatever receives work: a node, a PE, a group of PEs. A *speed* is a positive number relative
//! to any reference that the parts share; only ratios count. The same input gives the same division on every
//! machine, because shares are computed in integers: each node can work it out for itself.
//!
//! # Example
//!
//! 1,000 rows over three unlike nodes, the slowest of which has memory for 100 rows only:
//!
//! ```
//! use loadbalance::{Part, PartitionOptions, data_partition, efficiency, placement};
//!
//! let parts = [Part::new(1.0), Part::new(0.55), Part::new(0.25).with_max_items(100)];
//! let rows = data_partition(1000, &parts, &PartitionOptions::default())?;
//! assert_eq!(rows, [0..581, 581..900, 900..1000]);
//!
//! // Who holds row 600?
//! let bounds = placement::weighted_bounds(1000, &[1.0, 0.55, 0.25])?;
//! assert_eq!(placement::owner(&bounds, 600), Some(1));
//!
//! // The three are worth 1.8 of the fastest.
//! assert!((efficiency::equivalents(&[1.0, 0.55, 0.25]) - 1.8).abs() < 1e-12);
//! # Ok::<(), loadbalance::PartitionError>(())
//! ```

#![deny(clippy::disallowed_methods)]

pub mod cost;
pub mod cyclic;
pub mod efficiency;
pub mod grid;
pub mod lending;
pub mod machines;
pub mod overhead;
pub mod partition;
pub mod placement;
pub mod rebalance;
pub mod self_scheduling;

pub use partition::{Part, PartitionError, PartitionOptions, data_partition};
