//! How often a system that is made by seed iterates: a small one of the same kind is solved for it, in one thread. The dominance of
//! the diagonal only promises how often at most; most of the first change is gone sooner, as it is of no common sign.

use super::generated::Generated;
use super::step::{Known, Step};
use super::watch::{Watch, Why};
use crate::kernels::dot;
use crate::matrix::{Csr, generate, generated};
use crate::remembered::Remembered;

/// Unknowns of the small system, by whether its rows are dense, and iterations that are made with it at most: together some
/// tenths of a second.
const DENSE_SIDE: usize = 500;
const SPARSE_SIDE: usize = 20_000;
const ITERATIONS_TRIED: u32 = 500;

/// About how often the system of this matrix iterates until the largest change is at most `tolerance` times the first one, for
/// one right-hand side; infinite if changes do not shrink.
#[must_use]
pub(super) fn iterations(of: &Generated, tolerance: f64) -> f64 {
    static LAST: Remembered<(Generated, f64), f64> = Remembered::nothing();
    let side = if of.is_dense() { DENSE_SIDE } else { SPARSE_SIDE };
    let small = Generated { n: of.n.min(side), ..*of };
    LAST.answer(&(small, tolerance), || iterate(&small, tolerance))
}

/// What is not reached within the iterations that are tried is reckoned from how changes shrank in the last of them.
fn iterate(of: &Generated, tolerance: f64) -> f64 {
    let (rows, b) = (rows(of), generated::<f64>(generate::seed_of_b(of.seed), 0..of.n, 0..1));
    let (cols, values) = rows.row_slices(0..of.n);
    let on_diagonal = |i: usize| rows.row(i).find(|(col, _)| *col as usize == i).map_or(1.0, |(_, a)| a);
    let diagonal: Vec<f64> = (0..of.n).map(on_diagonal).collect();
    let [mut x, mut new, mut sums] = [(); 3].map(|()| vec![0.0; of.n]);
    let mut watch = Watch::new(tolerance, u32::MAX);
    for _ in 0..ITERATIONS_TRIED {
        dot::sparse(rows.starts(), cols, values, &x, &mut sums);
        let mut step = Step::default();
        step.take(&Known { b: &b, sums: &sums, diagonal: &diagonal }, &x, &mut new);
        std::mem::swap(&mut x, &mut new);
        if let Some(end) = watch.observe(&[step.change()]) {
            return if end.why == Why::Converged { end.iteration.into() } else { f64::INFINITY };
        }
    }
    watch.forecast().0.map_or(f64::INFINITY, |expected| expected as f64)
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
        assert_eq!(iterations(&of(Kind::Laplace2d, 1000, 1.1), 1e-10), 199.0);
        assert_eq!(iterations(&of(Kind::Random, 10_000, 1.1), 1e-10), 178.0);
        for (kind, n, made) in [
            (Kind::Dense, 12_000, 189.0),
            (Kind::Laplace2d, 1_000_000, 219.0),
            (Kind::Random, 1_000_000, 158.0),
        ] {
            let found = iterations(&of(kind, n, 1.1), 1e-10);
            assert!((found / made - 1.0).abs() < 0.2, "{kind:?}: {found}, not {made}");
        }
    }

    #[test]
    fn what_converges_slowly_is_reckoned_from_a_part_of_it() {
        let found = iterations(&of(Kind::Dense, 100, 1.001), 1e-10);
        let promised = 1e-10_f64.ln() / -1.001_f64.ln();
        assert!((0.7..1.01).contains(&(found / promised)), "{found}, at most {promised}");
        assert_eq!(iterations(&of(Kind::Dense, 1, 2.0), 0.5), 2.0);
        assert_eq!(iterations(&of(Kind::Dense, 100, 0.5), 1e-10), f64::INFINITY);
    }
}
