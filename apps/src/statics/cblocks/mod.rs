//! The blocks of a crystal as an array of chares, spread over nodes of unequal speed.
//!
//! The block, not the node, is the unit of everything: its size and the order of its sums follow from the crystal alone,
//! and what blocks measure is joined in the order of their numbers. So energies, forces and the whole way down are the
//! same bits on any mix of machines, and those of the [serial](super::serial) mode. The price is that a pair of atoms of
//! two blocks is computed by both.
//!
//! ```text
//!   driver ── Begin ──► every block                     once
//!   extents of all ◄──► every block (one reduction)     where lists are built anew
//!   block ── Ghosts ──► blocks that feel it             there, instead of Places
//!   block ── Places ──► nodes with blocks that feel it  each evaluation: 24 bytes per free atom, no ids
//!   block ── Slopes ──► nodes with blocks that feel it  each evaluation: 8 bytes per free or buffer atom, no ids
//!   sums of all     ──► every block (one reduction)     each evaluation
//! ```
//!
//! An atom at an edge or a corner is felt by several blocks. It goes once to each node, and every block there picks its
//! ghosts out of the one message. While ghosts are on their way, a block computes the pairs that need none.
//!
//! Every block runs the machine of the relaxation itself, on the same sums: so an evaluation takes one reduction and one
//! broadcast, and no driver in between. An atom stays in its block for ever; whom a block feels is found anew from where
//! the atoms are whenever lists are built.
//!
//! [`element`] is the chare, [`halo`] says who sends what to whom, [`distribution`] on which PE a block lives, [`memory`]
//! what that takes, [`account`] what came of it.

pub mod account;
pub mod distribution;
pub mod element;
pub mod halo;
pub mod memory;
#[cfg(test)]
mod tests;
