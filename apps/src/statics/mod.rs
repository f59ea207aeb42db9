//! Molecular statics: crystals with defects, relaxed to their smallest energy with embedded-atom potentials.
//!
//! The physics is here in plain functions and data without chares: [`crystal`] generates atoms, [`partition`] cuts them
//! into blocks, [`block`] holds a block with the ghosts that it feels, [`potential`] what atoms do to each other,
//! [`relax`] finds the minimum. The modes differ only in who holds the blocks; [`serial`] holds all, and shows in one page
//! what every holder does:
//!
//! 1. A block's atoms: [`partition::Partition::atoms`], nobody else's. Defects are changes of its own atoms.
//! 2. Lists, at the start and when an order says `rebuild`: all blocks learn all extents ([`block::Block::extent`]); a block
//!    feels the blocks and images of [`neighbours::influence`], in that order. Who is felt tells which atoms
//!    ([`block::Block::felt_in`], kept for later) with species and class ([`block::Block::set_ghosts`]) and place
//!    ([`block::Block::ghost_places`]); then [`block::Block::rebuild`].
//! 3. Evaluation: places of the ghosts, [`block::Block::densities`], slopes of the ghosts
//!    ([`block::Block::ghost_slopes`]), [`block::Block::forces`]. Without ids: runs of ghosts stand in the order of 2.
//! 4. Relaxation: [`relax::Relaxation`] in one place gives an order to all blocks ([`relax::vectors::Vectors::obey`]), and
//!    is told what all measured ([`relax::vectors::Vectors::measure`]), joined in the order of the blocks' numbers.

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
