//! How often a system that is made by seed iterates: a small one of the same kind is solved for it, in one thread. The dominance of
//! the diagonal only promises how often at most; most of the first change is gone sooner, as it is of no common sign.

use super::generated::Generated;
use crate::matrix::{Csr, generate, generated};
use crate::remembered::Remembered;

/// Unknowns of the small system, by whether its rows are dense: some hundredths of a second.
const DENSE_SIDE: usize = 500;
const SPARSE_SIDE: usize = 20_000;

/// About how often the system of this matrix iterates until the largest change is at most `tolerance` times the first one, and at
/// most `most` times, for one right-hand side.
#[must_use]
pub(super) fn iterations(of: &Generated, tolerance: f64, most: f64) -> f64 {
    static LAST: Remembered<(Generated, [u64; 2]), f64> = Remembered::nothing();
    let side = if of.is_dense() { DENSE_SIDE } else { SPARSE_SIDE };
    let small = Generated { n: of.n.min(side), ..*of };
    LAST.answer(&(small, [tolerance, most].map(f64::to_bits)), || iterate(&small, tolerance, most))
}

fn iterate(of: &Generated, tolerance: f64, most: f64) -> f64 {
    let (rows, b) = (rows(of), generated::<f64>(generate::seed_of_b(of.seed), 0..of.n, 0..1));
    let on_diagonal = |i: usize| rows.row(i).find(|(col, _)| *col as usize == i).map_or(1.0, |(_, a)| a);
    let diagonal: Vec<f64> = (0..of.n).map(on_diagonal).collect();
    let (mut x, mut first, mut times) = (vec![0.0; of.n], 0.0, 0.0);
    while times < most {
        let product = |i: usize| rows.row(i).map(|(col, a)| a * x[col as usize]).sum::<f64>();
        let step: Vec<f64> = (0..of.n).map(|i| (b[i] - product(i)) / diagonal[i]).collect();
        let change = step.iter().fold(0.0_f64, |most, step| most.max(step.abs()));
        x.iter_mut().zip(&step).for_each(|(x, step)| *x += step);
        times += 1.0;
        if times == 1.0 {
            first = change;
        }
        if change <= tolerance * first {
            break;
        }
    }
    times.min(most)
}

fn rows(of: &Generated) -> Csr<f64> {
    if !of.is_dense() {
        return of.sparse_rows(0..of.n);
    }
    let (mut made, mut row) = (Csr::with_columns(of.n), vec![0.0; of.n]);
    for i in 0..of.n {
        of.fill_row(i, &mut row);
        made.push_row(&(0..).zip(row.iter().copied()).collect::<Vec<_>>());
    }
    made
}

#[cfg(test)]
mod tests {
    use super::super::generated::Kind;
    use super::*;

    fn of(kind: Kind, n: usize, dominance: f64) -> Generated {
        Generated { kind, n, dominance, seed: 1 }
    }

    /// What runs of such systems took: `metachare run jacobi --generate KIND --n N`.
    #[test]
    fn it_iterates_as_often_as_runs_do() {
        assert_eq!(iterations(&of(Kind::Laplace2d, 1000, 1.1), 1e-10, 1000.0), 199.0);
        assert_eq!(iterations(&of(Kind::Random, 10_000, 1.1), 1e-10, 1000.0), 178.0);
        for (kind, n, made) in [
            (Kind::Dense, 12_000, 189.0),
            (Kind::Laplace2d, 1_000_000, 219.0),
            (Kind::Random, 1_000_000, 158.0),
        ] {
            let found = iterations(&of(kind, n, 1.1), 1e-10, 1000.0);
            assert!((found / made - 1.0).abs() < 0.2, "{kind:?}: {found}, not {made}");
        }
    }

    #[test]
    fn no_more_than_may_be_and_one_at_least() {
        assert_eq!(iterations(&of(Kind::Dense, 100, 1.001), 1e-10, 7.5), 7.5);
        assert_eq!(iterations(&of(Kind::Dense, 1, 2.0), 0.5, 9.0), 2.0);
    }
}
