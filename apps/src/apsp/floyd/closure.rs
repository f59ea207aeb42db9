//! All paths inside one block of vertices.
//!
//! In tiles, as the array of blocks is: what is done to single numbers in turn is little then, and the rest is products
//! of tiles.

use crate::apsp::distance::Distance;
use crate::kernels::min_plus::{min_plus, min_plus_with_last};

/// Side of a tile.
const TILE: usize = 32;

/// The numbers of a tile, and the last vertex before each.
type Tile<D> = (Vec<D>, Vec<i32>);

/// The block becomes the lengths of the shortest paths inside it, and `last` the last vertex before each end. The
/// diagonal holds 0, or less where a loop is negative; what is less than `tolerance` below 0 is taken for rounding.
///
/// # Errors
/// A vertex, counted in the block, that is on a negative cycle; the block is then no more than half done.
pub fn close<D: Distance>(
    side: usize,
    block: &mut [D],
    mut last: Option<&mut [i32]>,
    tolerance: f64,
) -> Result<(), usize> {
    let groups = side.div_ceil(TILE);
    let group = |at: usize| at * TILE..((at + 1) * TILE).min(side);
    let mut tiles: Vec<Tile<D>> = Vec::with_capacity(groups * groups);
    for (i, j) in (0..groups).flat_map(|i| (0..groups).map(move |j| (i, j))) {
        let rows = || group(i).map(|row| row * side).map(|row| row + group(j).start..row + group(j).end);
        let numbers = rows().flat_map(|row| block[row].iter().copied()).collect();
        let last = last
            .as_ref()
            .map_or_else(Vec::new, |last| rows().flat_map(|row| last[row].iter().copied()).collect());
        tiles.push((numbers, last));
    }
    let with_last = last.is_some();
    for k in 0..groups {
        round(&mut tiles, (k, groups), |at| group(at).len(), (with_last, tolerance))
            .map_err(|at| group(k).start + at)?;
    }
    for (i, j) in (0..groups).flat_map(|i| (0..groups).map(move |j| (i, j))) {
        let (numbers, before) = &tiles[i * groups + j];
        let width = group(j).len();
        for (at, row) in group(i).enumerate() {
            let place = row * side + group(j).start..row * side + group(j).end;
            block[place.clone()].copy_from_slice(&numbers[at * width..(at + 1) * width]);
            if let Some(last) = &mut last {
                last[place].copy_from_slice(&before[at * width..(at + 1) * width]);
            }
        }
    }
    Ok(())
}

/// Takes up the paths by way of the tile `k`.
fn round<D: Distance>(
    tiles: &mut [Tile<D>],
    (k, groups): (usize, usize),
    length: impl Fn(usize) -> usize,
    (with_last, tolerance): (bool, f64),
) -> Result<(), usize> {
    let inner = length(k);
    let product = |a: &[D], b: &Tile<D>, c: &mut Tile<D>, cols: usize| {
        if with_last {
            min_plus_with_last([inner, cols], a, (&b.0, &b.1), (&mut c.0, &mut c.1));
        } else {
            min_plus(inner, cols, a, &b.0, &mut c.0);
        }
    };
    plain(inner, &mut tiles[k * groups + k], (with_last, tolerance))?;
    let closed = tiles[k * groups + k].clone();
    for other in (0..groups).filter(|&other| other != k) {
        let row = &mut tiles[k * groups + other];
        product(&closed.0, &row.clone(), row, length(other));
        let column = &mut tiles[other * groups + k];
        product(&column.0.clone(), &closed, column, inner);
    }
    for i in (0..groups).filter(|&i| i != k) {
        let a = tiles[i * groups + k].0.clone();
        for j in (0..groups).filter(|&j| j != k) {
            let b = std::mem::take(&mut tiles[k * groups + j]);
            product(&a, &b, &mut tiles[i * groups + j], length(j));
            tiles[k * groups + j] = b;
        }
    }
    Ok(())
}

/// The algorithm of 1962, one vertex after the other.
fn plain<D: Distance>(
    side: usize,
    (numbers, last): &mut Tile<D>,
    (with_last, tolerance): (bool, f64),
) -> Result<(), usize> {
    for k in 0..side {
        let own = &mut numbers[k * side + k];
        if *own < D::ZERO {
            // Before anything is added to it: by way of a negative cycle numbers double from vertex to vertex.
            if own.to_f64() < -tolerance {
                return Err(k);
            }
            *own = D::ZERO;
        }
        let pivot = numbers[k * side..(k + 1) * side].to_vec();
        let pivot_last = if with_last { last[k * side..(k + 1) * side].to_vec() } else { Vec::new() };
        for i in (0..side).filter(|&i| i != k) {
            let here = numbers[i * side + k];
            for (j, &there) in pivot.iter().enumerate() {
                let sum = here.plus(there);
                if sum < numbers[i * side + j] {
                    numbers[i * side + j] = sum;
                    if with_last {
                        last[i * side + j] = pivot_last[j];
                    }
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::generate::hash;
    use proptest::prelude::*;

    fn naive(side: usize, block: &[i32]) -> Vec<i32> {
        let mut block = block.to_vec();
        for k in 0..side {
            for at in 0..block.len() {
                let (i, j) = (at / side, at % side);
                block[at] = block[at].min(block[i * side + k] + block[k * side + j]);
            }
        }
        block
    }

    /// Arcs with weights from `least` on, some missing.
    fn random(side: usize, seed: u64, least: i32) -> Vec<i32> {
        let mut block: Vec<i32> = (0..side * side)
            .map(|at| {
                let bits = hash(seed, 0, at as u64);
                if bits.is_multiple_of(3) { i32::FAR } else { least + ((bits >> 8) % 50) as i32 }
            })
            .collect();
        (0..side).for_each(|at| block[at * side + at] = 0);
        block
    }

    proptest! {
        #[test]
        fn tiles_find_what_single_vertices_find(side in 1usize..100, seed: u64) {
            let block = random(side, seed, 0);
            let mut closed = block.clone();
            prop_assert_eq!(close(side, &mut closed, None, 0.0), Ok(()));
            let expected = naive(side, &block);
            prop_assert!(closed.iter().zip(&expected).all(|(c, e)| c == e || c.is_far() && e.is_far()));
            let mut last: Vec<i32> = (0..side * side).map(|at| (at / side) as i32).collect();
            let mut again = block.clone();
            prop_assert_eq!(close(side, &mut again, Some(&mut last), 0.0), Ok(()));
            prop_assert_eq!(&again, &closed);
            for (at, &before) in last.iter().enumerate().filter(|(at, _)| at / side != at % side && !closed[*at].is_far()) {
                let (i, j, before) = (at / side, at % side, before as usize);
                prop_assert_eq!(closed[i * side + before] + block[before * side + j], closed[at]);
            }
        }
    }

    #[test]
    fn what_rounding_makes_of_a_cycle_is_0() {
        let block = [0.0, 4.0, -4.0 - 1e-12, 0.0];
        let mut closed = block;
        assert_eq!(close(2, &mut closed, None, 1e-11), Ok(()));
        assert_eq!(closed[1..], block[1..], "the way from vertex 1 to itself is no shorter than none");
        assert_eq!(close(2, &mut block.clone(), None, 1e-13), Err(1));
    }

    #[test]
    fn a_negative_cycle_is_named_by_one_of_its_vertices() {
        for side in [2, 5, 33, 90] {
            let mut block = vec![i32::FAR; side * side];
            (0..side).for_each(|at| block[at * side + at] = 0);
            let (a, b) = (0, side - 1);
            (block[a * side + b], block[b * side + a]) = (4, -5);
            let at = close(side, &mut block.clone(), None, 0.0).unwrap_err();
            assert!(at == a || at == b, "{side}: {at}");
            block[b * side + a] = -4;
            assert_eq!(close(side, &mut block, None, 0.0), Ok(()));
        }
    }
}
