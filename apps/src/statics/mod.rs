//! Molecular statics: crystals with defects, relaxed to their smallest energy with embedded-atom potentials.
//!
//! The physics is here in plain functions and data without chares: [`crystal`] generates atoms, [`partition`] cuts them
//! into blocks, [`block`] holds a block with the ghosts that it feels, [`potential`] what atoms do to each other,
//! [`relax`] finds the minimum. The modes differ only in who holds the blocks; [`serial`] holds all, and shows in one page
//! what every holder does:
//!
//! 1. A block's atoms: [`partition::Partition::atoms`], nobody else's. Defects are changes of its own atoms
//!    ([`aberration`]), at the begin of each step.
//! 2. Lists, at the start and when an order says `rebuild`: all blocks learn all extents ([`block::Block::extent`]); a block
//!    feels the blocks and images of [`neighbours::influence`], in that order. Who is felt tells which atoms
//!    ([`block::Block::felt_in`], kept for later) with species and class ([`block::Block::set_ghosts`]) and place
//!    ([`block::Block::ghost_places`]); then [`block::Block::rebuild`].
//! 3. Evaluation: places of the ghosts, [`block::Block::densities`], slopes of the ghosts
//!    ([`block::Block::ghost_slopes`]), [`block::Block::forces`]. Without ids: runs of ghosts stand in the order of 2.
//! 4. Relaxation: [`relax::Relaxation`] in one place gives an order to all blocks ([`relax::vectors::Vectors::obey`]), and
//!    is told what all measured ([`relax::vectors::Vectors::measure`]), joined in the order of the blocks' numbers.
#![doc = include_str!("README.md")]

pub mod aberration;
pub mod arguments;
pub mod block;
pub mod cblocks;
mod cost;
pub mod course;
pub mod crystal;
mod drive;
mod eam;
pub mod input;
pub mod neighbours;
pub mod partition;
pub mod potential;
pub mod pressure;
pub mod problem;
pub mod progress;
pub mod relax;
pub mod replicated;
pub mod result;
pub mod serial;
mod steps;
pub mod structure;
pub mod studies;
pub mod study;
#[cfg(test)]
mod tests;
mod written;

use arguments::Statics;
use chares::KernelCall;
use command::{App, CommandLine};
use crystal::Side;
use problem::Problem;
use relax::Order;
use relax::vectors::Vectors;

/// Blocks along each axis by which a PE's speed is measured: they do not fit into its caches.
const KERNEL_BLOCKS: usize = 3;

/// Adds the application and its chare types to a program.
#[must_use]
pub fn add_to(program: CommandLine) -> CommandLine {
    program.chare::<cblocks::element::CBlock>().chare::<replicated::Replica>().app(
        App::new("statics", "Relax a crystal with defects to its smallest energy", drive::drive)
            .kernel(kernel)
            .kernel_key(Statics::kernel_key)
            .kernel_unit(|_| "atoms")
            .work(Statics::work)
            .cost(cost::MODEL, cost::cost)
            .complete(Statics::completed)
            .files(Statics::files)
            .unused(Statics::unused)
            .alone(Statics::is_alone),
    )
}

/// What evaluations of blocks such as a run has take, with the step and the sums that belong to each; units are atoms
/// whose density and force are computed. Forces follow half a round after densities, so that a block has left the caches
/// in between, as in a run.
fn kernel(statics: &Statics) -> KernelCall {
    if statics.study.is_some() {
        return Box::new(|| 1.0);
    }
    let Ok(problem) = statics.problem() else { return Box::new(|| 1.0) };
    let potential = problem.potential.clone();
    let mut blocks: Vec<_> =
        kernel_blocks(problem).into_iter().map(|block| (Vectors::new(&block), block)).collect();
    let mut next = 0;
    let order = Order::Go { turn: None, step: 0.0, rebuild: false };
    Box::new(move || {
        let count = blocks.len().max(1);
        next = (next + 1) % count;
        if let Some((vectors, block)) = blocks.get_mut(next) {
            vectors.obey(block, &order);
            block.densities(&potential);
        }
        let Some((vectors, block)) = blocks.get_mut((next + count / 2) % count) else { return 1.0 };
        let total = block.forces(&potential, false);
        std::hint::black_box(vectors.measure(block, &total, false));
        block.own() as f64
    })
}

/// Some blocks of the size of a problem's, inside a crystal.
fn kernel_blocks(problem: Problem) -> Vec<block::Block> {
    let cells = problem.partition.cells(0).map(|cells| cells.len());
    let blocks = problem.partition.grid().map(|n| n.min(KERNEL_BLOCKS));
    let size = std::array::from_fn(|k| cells[k] * blocks[k]);
    let part = problem.crystal.resized(size, [Side::Periodic; 3]);
    let Some(partition) = partition::Partition::with_blocks(&part, blocks) else { return Vec::new() };
    let mut system = Problem { crystal: part, partition, ..problem }.serial();
    system.evaluate(false);
    system.into_blocks()
}
