//! How finely a product on a grid is cut, where the user does not say.
//!
//! Big blocks are better for the kernel and for the network; small ones let shares follow unlike speeds, and let every
//! PE have some to choose from while others travel.
//!
//! Blocks with a side of 1,024 were measured to be 3 to 7 % faster than blocks of 512, but only a few PEs of like
//! speed can share so few of them. `--deterministic` always takes 8 x 8 blocks, because the bits of the result follow
//! from the grid.

use super::arguments::{Algorithm, Matmul};
use super::{conventional, panel};
use chares::loadbalance::machines::Machines;
use chares::loadbalance::{Items, Part, PartitionError, grid};

/// Blocks along a side that suit most products; and all with `--deterministic`, whose bits follow from this count.
pub(super) const USUAL: u32 = 8;
/// The least; with four like PEs four blocks of C for each.
const FEWEST: u32 = 4;
/// Blocks of C for each PE, on the average, at least.
const BLOCKS_PER_PE: usize = 4;
/// Both where all PEs are of one node: no block has to travel while others are multiplied. Products with n = 2048 on two
/// PEs are up to 11 % faster with 2 x 2 blocks than with 4 x 4.
const FEWEST_INSIDE: u32 = 2;
const BLOCKS_PER_PE_INSIDE: usize = 2;
/// Smaller blocks take longer to hand about than to multiply.
const BLOCK_SIDE_MIN: usize = 128;
/// Bigger ones are no better for the kernel, and all of the first ones must have come before the second step.
const BLOCK_SIDE_MAX: usize = 1024;
/// What whole blocks may cost, of the time of the work: about what blocks of half the side cost.
const LOSS_MAX: f64 = 0.05;
/// PEs are alike down to this part of the fastest speed. Shares of unlike ones are made finer than speeds say.
const ALIKE: f64 = 0.9;

/// The same product with the side of its grid, if it has one, and its grain where there is only one node: chosen for
/// these machines if they are not given.
///
/// # Errors
/// If the work cannot be divided by the speeds at all.
pub(super) fn settled(matmul: &Matmul, machines: &Machines) -> Result<Matmul, PartitionError> {
    let mut matmul = matmul.clone();
    let is_on_grid = matches!(matmul.algorithm, Algorithm::Cannon | Algorithm::FoxHeyOtto);
    if is_on_grid && matmul.q.is_none() && !matmul.deterministic {
        let (m, k, n) = matmul.sides();
        matmul.q = Some(chosen(m.min(k).min(n), &machines.parts(&machines.speeds()))?);
    }
    if machines.nodes.len() == 1 && matmul.grain.is_none() {
        let (rows, _, _) = matmul.sides();
        matmul.grain = match matmul.algorithm {
            Algorithm::Conventional => Some(conventional::grain_inside(rows, machines.rates().len().max(1))),
            Algorithm::Fox => Some(panel::grain_inside(rows)),
            Algorithm::Cannon | Algorithm::FoxHeyOtto => None,
        };
    }
    Ok(matmul)
}

/// For a product whose shortest side is `length`.
fn chosen(length: usize, pes: &[Part]) -> Result<u32, PartitionError> {
    let is_inside = pes.windows(2).all(|pair| pair[0].node == pair[1].node);
    let (fewest, per_pe) =
        if is_inside { (FEWEST_INSIDE, BLOCKS_PER_PE_INSIDE) } else { (FEWEST, BLOCKS_PER_PE) };
    let wanted = per_pe * pes.len();
    let fastest = pes.iter().map(|pe| pe.speed).fold(0.0, f64::max);
    let is_mixed = pes.iter().any(|pe| pe.speed < ALIKE * fastest);
    let mut q = fewest;
    let is_too_coarse = |q: u32| wanted > (q * q) as usize || length.div_ceil(q as usize) > BLOCK_SIDE_MAX;
    while q < USUAL && (is_mixed || is_too_coarse(q) || loss(q, pes)? > LOSS_MAX) {
        q *= 2;
    }
    while wanted > (q * q) as usize && length / (2 * q as usize) >= BLOCK_SIDE_MIN {
        q *= 2;
    }
    Ok(q)
}

/// How much of the time is lost because shares are whole blocks.
fn loss(q: u32, pes: &[Part]) -> Result<f64, PartitionError> {
    let mut blocks = vec![0.0; pes.len()];
    let owners = grid::rectangles(&Items::grid(q.into(), q.into()), pes)?;
    owners.into_iter().for_each(|pe| blocks[pe as usize] += 1.0);
    let longest = blocks.iter().zip(pes).map(|(blocks, pe)| blocks / pe.speed).fold(0.0, f64::max);
    Ok(1.0 - f64::from(q * q) / pes.iter().map(|pe| pe.speed).sum::<f64>() / longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(length: usize, nodes: &[&[f64]]) -> u32 {
        chosen(length, &Part::of_nodes(nodes)).unwrap()
    }

    #[test]
    fn few_like_pes_get_big_blocks_and_unlike_ones_small_ones() {
        assert_eq!(side(4096, &[&[1.0; 4]]), 4);
        assert_eq!(
            [side(2048, &[&[1.0; 2]]), side(2048, &[&[1.0], &[1.0]])],
            [2, 4],
            "none travels inside a node"
        );
        assert_eq!(side(4096, &[&[1.0], &[0.98], &[0.99], &[1.0]]), 4, "speeds are measured");
        assert_eq!(side(8192, &[&[1.0; 4]]), 8, "blocks of 2,048 are bigger than need be");
        assert_eq!(side(4096, &[&[1.0], &[0.55], &[0.25]]), 8);
        assert_eq!(side(4096, &[&[1.0; 2], &[1.0]]), 8, "a third of 16 blocks");
        assert_eq!(side(4096, &[&[1.0; 2], &[1.0; 3]]), 8, "16 blocks are not enough for five");
    }

    #[test]
    fn many_pes_get_blocks_enough_unless_these_would_be_tiny() {
        let many = Part::of_nodes(&vec![[1.0; 8]; 8]);
        assert_eq!(chosen(8192, &many), Ok(16));
        assert_eq!(chosen(1024, &many), Ok(8));
    }
}
