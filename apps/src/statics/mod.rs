//! Molecular statics: crystals with defects, relaxed to their smallest energy with embedded-atom potentials.
//!
//! The physics is here in plain functions and data without chares: [`crystal`] generates atoms, [`partition`] cuts them
//! into blocks, [`block`] holds a block with the ghosts that it feels, [`potential`] what atoms do to each other. The
//! modes differ only in who holds the blocks.

pub mod block;
pub mod crystal;
mod eam;
pub mod neighbours;
pub mod partition;
pub mod potential;
pub mod pressure;
pub mod relax;
pub mod serial;
pub mod studies;
#[cfg(test)]
mod tests;
