//! Matrices by seed: any node can make any block without asking another one.
//!
//! Element (i, j) is a pure function of (seed, i, j): a hash built from the finaliser of splitmix64
//! (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014), first over seed and
//! row, then over column. Its upper 53 bits, taken as a multiple of 2^-52, give a number in [-1, 1). As `f32`
//! the element is that number rounded to the nearest, so a few in a hundred million become exactly 1.

use super::dense::{Matrix, ShapeError};
use super::element::Element;
use std::ops::Range;

/// 2^64 divided by the golden ratio: steps of this size spread well.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The seed of the second matrix of a problem, B, where `seed` is that of the first: so far off that it is not the A of
/// one of the seeds that somebody tries one after the other.
#[must_use]
pub fn seed_of_b(seed: u64) -> u64 {
    seed.wrapping_add(GOLDEN >> 32)
}

/// Bits that depend on every bit of `x`: the finaliser of splitmix64.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// One stream of bits per (seed, stream), one word per place in it.
pub(crate) fn hash(seed: u64, stream: u64, place: u64) -> u64 {
    mix(stream_key(seed, stream).wrapping_add(place.wrapping_add(1).wrapping_mul(GOLDEN)))
}

/// Mixes the seed before the stream is added, so that (seed, stream + 1) is not (seed + something, stream).
fn stream_key(seed: u64, stream: u64) -> u64 {
    mix(mix(seed).wrapping_add(stream.wrapping_add(1).wrapping_mul(GOLDEN)))
}

fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 52) as f64) - 1.0
}

/// Element (i, j) of the matrix with this seed: in [-1, 1).
#[must_use]
pub fn element(seed: u64, i: usize, j: usize) -> f64 {
    unit(hash(seed, i as u64, j as u64))
}

/// A row-major block of the matrix with this seed.
///
/// # Panics
/// If the block does not fit into memory; ask for a [`matrix`] where that is a user's choice.
#[must_use]
pub fn block<T: Element>(seed: u64, rows: Range<usize>, cols: Range<usize>) -> Vec<T> {
    let mut values = vec![T::zeroed(); rows.len() * cols.len()];
    fill(seed, rows, cols, &mut values);
    values
}

/// The upper left `rows` x `cols` elements of the endless matrix with this seed.
///
/// # Errors
/// [`ShapeError::TooBig`] if memory for them cannot be had.
pub fn matrix<T: Element>(seed: u64, rows: usize, cols: usize) -> Result<Matrix<T>, ShapeError> {
    let mut matrix = Matrix::zeros(rows, cols)?;
    fill(seed, 0..rows, 0..cols, matrix.values_mut());
    Ok(matrix)
}

/// Writes a row-major block of the matrix with this seed into `values`, which has its length.
pub fn fill<T: Element>(seed: u64, rows: Range<usize>, cols: Range<usize>, values: &mut [T]) {
    if cols.is_empty() {
        return;
    }
    for (i, row) in rows.zip(values.chunks_exact_mut(cols.len())) {
        let key = stream_key(seed, i as u64);
        let mut place = key.wrapping_add((cols.start as u64).wrapping_mul(GOLDEN));
        for value in row {
            place = place.wrapping_add(GOLDEN);
            *value = T::from_f64(unit(mix(place)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_block_is_the_same_wherever_it_is_made() {
        let whole = matrix::<f64>(42, 13, 17).unwrap();
        assert_eq!(block::<f64>(42, 3..11, 5..17), whole.block(3..11, 5..17));
        assert_eq!(whole.values()[2 * 17 + 9], element(42, 2, 9));
        assert!(block::<f64>(42, 3..11, 5..5).is_empty());
    }

    #[test]
    fn f32_is_the_rounded_f64() {
        let wide = matrix::<f64>(7, 20, 20).unwrap();
        assert_eq!(matrix::<f32>(7, 20, 20).unwrap(), wide.convert().unwrap());
    }

    /// The numbers are part of the interface: reports of different versions must be comparable.
    #[test]
    fn the_numbers_do_not_change_between_versions() {
        let first = [element(0, 0, 0), element(1, 0, 0), element(1, 2, 3)];
        assert_eq!(first.map(f64::to_bits), GOLDEN_BITS, "{first:?}");
        assert_eq!([seed_of_b(1), seed_of_b(u64::MAX)], [0x9e37_79ba, 0x9e37_79b8]);
    }

    #[test]
    fn numbers_fill_the_interval_evenly_and_differ_by_seed_row_and_column() {
        let n = 200;
        let values = matrix::<f64>(3, n, n).unwrap().into_vec();
        assert!(values.iter().all(|x| (-1.0..1.0).contains(x)));
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64;
        // Standard deviations of these means: 0.003 and 0.0015.
        assert!(mean.abs() < 0.015 && (square - 1.0 / 3.0).abs() < 0.0075, "{mean} {square}");
        let seen: HashSet<u64> =
            (0..4).flat_map(|seed| block::<f64>(seed, 0..50, 0..50)).map(f64::to_bits).collect();
        assert_eq!(seen.len(), 4 * 50 * 50);
    }

    const GOLDEN_BITS: [u64; 3] = [4599164155489324220, 13822986874862002152, 4603471070667738554];
}
