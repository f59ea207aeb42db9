//! Eliminations inside one process: both ways, both types of numbers, on any mix of PEs.

use super::arguments::Algorithm;
use super::division::divide;
use super::drive::solved;
use super::{Factors, Gauss, add_to};
use crate::matrix::{Matrix, Real, generate};
use crate::system::{Coefficients, LinearSystem, Residual, SystemArguments, residual};
use chares::{InProcess, Program, RunError};
use command::CommandLine;
use proptest::prelude::*;

const ALGORITHMS: [Algorithm; 2] = [Algorithm::Columns, Algorithm::Blocked];

fn gauss(algorithm: Algorithm, block: usize) -> Gauss {
    let system = SystemArguments { a: None, b: None, out: None, n: 1, rhs: 1, seed: 1, dtype: None };
    Gauss { system, algorithm, block: Some(block), parts_per_pe: Some(3), verify: false }
}

fn system<T: Real>(a: Matrix<T>, rhs: usize) -> LinearSystem<T> {
    let n = a.rows();
    LinearSystem { n, rhs, a: Coefficients::Dense(a), b: generate::matrix(77, n, rhs).unwrap() }
}

fn random<T: Real>(n: usize, rhs: usize, seed: u64) -> LinearSystem<T> {
    system(generate::matrix(seed, n, n).unwrap(), rhs)
}

fn solve<T: Real>(
    mix: &InProcess,
    gauss: &mut Gauss,
    system: &LinearSystem<T>,
) -> Result<(Matrix<T>, Factors), RunError> {
    (gauss.system.n, gauss.system.rhs) = (system.n, system.rhs);
    add_to(CommandLine::new(Program::new("gauss", "0"))).into_program().run_in_process(mix, |main| {
        let owners = divide(gauss, main.machines())?.owners;
        solved(main, gauss, system, owners)
    })
}

fn assert_solved<T: Real>(mix: &InProcess, gauss: &mut Gauss, system: &LinearSystem<T>) -> Matrix<T> {
    let (x, _) = solve(mix, gauss, system).unwrap();
    let found = residual(system, &x);
    let is_right = found.overall < Residual::ACCEPTED && found.by_row < Residual::ACCEPTED;
    assert!(is_right, "{:?} of {} on {mix:?}: {found:?}", gauss.algorithm, system.n);
    x
}

fn mixes() -> Vec<InProcess> {
    let unlike = InProcess::new(&[1, 2]).speeds(&[1.0, 0.3, 0.55]);
    vec![InProcess::new(&[1]), unlike.clone(), InProcess::new(&[1, 1, 2]).always_pup(), unlike.always_pup()]
}

#[test]
fn systems_are_solved_on_any_mix_in_both_ways() {
    for (algorithm, mix) in
        ALGORITHMS.into_iter().flat_map(|algorithm| mixes().into_iter().map(move |m| (algorithm, m)))
    {
        for (n, rhs, block) in [(1, 1, 1), (2, 3, 1), (7, 1, 3), (50, 2, 8), (130, 9, 4), (65, 70, 64)] {
            let mut gauss = gauss(algorithm, block);
            assert_solved(&mix, &mut gauss, &random::<f64>(n, rhs, 5));
            assert_solved(&mix, &mut gauss, &random::<f32>(n, rhs, 6));
        }
    }
}

/// Parts that move, and how the system is dealt out, make no difference to the last bit.
#[test]
fn every_mix_gives_the_same_bits() {
    let system = random::<f64>(90, 3, 8);
    for algorithm in ALGORITHMS {
        let first = assert_solved(&InProcess::new(&[1]), &mut gauss(algorithm, 8), &system);
        let others = mixes().into_iter().chain([3, 4].map(|seed| InProcess::new(&[2, 1]).wander(seed)));
        for mix in others {
            assert!(
                assert_solved(&mix, &mut gauss(algorithm, 8), &system) == first,
                "{algorithm:?}, {mix:?}"
            );
        }
    }
}

#[test]
fn systems_by_seed_are_those_of_their_numbers() {
    let generated = crate::system::Generated { seed: 9, diagonal: 0.0 };
    let (n, rhs) = (90, 3);
    let b = Matrix::from_vec(n, rhs, generated.block_b::<f64>(0..n, 0..rhs).to_vec()).unwrap();
    let a = Matrix::from_vec(n, n, generated.block_a::<f64>(0..n, 0..n).to_vec()).unwrap();
    let given = LinearSystem { n, rhs, a: Coefficients::Dense(a), b: b.clone() };
    let made = LinearSystem { n, rhs, a: Coefficients::Generated(generated), b };
    for algorithm in ALGORITHMS {
        let mix = InProcess::new(&[2, 1]);
        let mut gauss = gauss(algorithm, 16);
        assert!(assert_solved(&mix, &mut gauss, &given) == assert_solved(&mix, &mut gauss, &made));
    }
}

fn matrix(n: usize, element: impl Fn(usize, usize) -> f64) -> Matrix<f64> {
    Matrix::from_vec(n, n, (0..n * n).map(|at| element(at / n, at % n)).collect()).unwrap()
}

#[test]
fn hard_systems_are_solved() {
    let sample = |i: usize, j: usize| generate::element(3, i, j);
    let hilbert = matrix(8, |i, j| 1.0 / (i + j + 1) as f64);
    let zero_pivots = matrix(40, |i, j| if i == j { 0.0 } else { sample(i, j) });
    let permuted = matrix(30, |i, j| if (i + 7) % 30 == j { -2.0 } else { 0.0 });
    let indefinite = matrix(60, |i, j| sample(i.min(j), i.max(j)));
    let graded_rows = matrix(61, |i, j| sample(i, j) * 10f64.powi(5 * i as i32 - 150));
    let graded_columns = matrix(61, |i, j| sample(i, j) * 10f64.powi(5 * j as i32 - 150));
    let tiny = matrix(20, |i, j| sample(i, j) * 1e-300);
    // The power of two that makes them ordinary is itself no number.
    let subnormal = matrix(20, |i, j| sample(i, j) * 1e-310);
    for a in [hilbert, zero_pivots, permuted, indefinite, graded_rows, graded_columns, tiny, subnormal] {
        let n = a.rows();
        // Right-hand sides in the units of the rows, so that the unknowns are neither huge nor tiny.
        let b: Vec<f64> = (0..n).map(|i| a.row_slice(i..i + 1).iter().sum()).collect();
        let b = Matrix::from_vec(n, 1, b).unwrap();
        let system = LinearSystem { n, rhs: 1, a: Coefficients::Dense(a), b };
        for algorithm in ALGORITHMS {
            assert_solved(&InProcess::new(&[2, 1]), &mut gauss(algorithm, 8), &system);
        }
    }
}

/// Its factors by either way.
fn assert_factors(a: &Matrix<f64>, growth: f64, log10_determinant: f64, is_negative: bool) {
    let system = system(a.clone(), 2);
    for (algorithm, mix) in
        ALGORITHMS.into_iter().flat_map(|one| mixes().into_iter().map(move |mix| (one, mix)))
    {
        let (_, found) = solve(&mix, &mut gauss(algorithm, 8), &system).unwrap();
        let far = (found.log10_determinant - log10_determinant).abs();
        let is_right = found.is_negative == is_negative && far <= 1e-12 * log10_determinant.abs().max(1.0);
        assert!(
            is_right && (found.growth() / growth - 1.0).abs() < 1e-12,
            "{algorithm:?} on {mix:?}: {found:?}"
        );
    }
}

#[test]
fn growth_and_determinants_are_those_of_known_matrices() {
    let two = 2f64.log10();
    // Wilkinson's, which grows most.
    let worst = |i: usize, j: usize| if i == j || j == 29 { 1.0 } else { -f64::from(u8::from(i > j)) };
    assert_factors(&matrix(30, worst), 2f64.powi(29), 29.0 * two, false);
    // The largest of U lies far above the diagonal.
    let corner = |i: usize, j: usize| if i == j { 1.0 } else { 1.9 * f64::from(u8::from((i, j) == (0, 29))) };
    assert_factors(&matrix(30, corner), 1.0, 0.0, false);
    // Exchanges only: a cycle of 30 is 29 of them.
    assert_factors(&matrix(30, |i, j| if (i + 7) % 30 == j { 2.0 } else { 0.0 }), 1.0, 30.0 * two, true);
    assert_factors(&matrix(31, |i, j| if (i + 7) % 31 == j { -2.0 } else { 0.0 }), 1.0, 31.0 * two, true);
    assert_factors(&matrix(31, |i, j| if (i + 7) % 31 == j { 2.0 } else { 0.0 }), 1.0, 31.0 * two, false);
    // Far beyond the range of numbers, and scaled by rows before: 2^(40 + 41 + ... + 79) (1 + 40 / 2).
    let rows = matrix(40, |i, j| 2f64.powi(i as i32 + 40) * if i == j { 1.5 } else { 0.5 });
    assert_factors(&rows, 1.0, 2380.0 * two + 21f64.log10(), false);
}

#[test]
fn what_has_no_solution_is_refused_with_its_column() {
    let sample = |i: usize, j: usize| generate::element(4, i, j);
    let cases = [
        (matrix(1, |_, _| 0.0), "row 0, "),
        (matrix(20, |i, j| if i == 13 { 0.0 } else { sample(i, j) }), "row 13, "),
        (matrix(20, |i, j| if j == 11 { 0.0 } else { sample(i, j) }), "column 11, "),
        (matrix(20, |i, j| sample(i, if j == 17 { 4 } else { j })), "column 17, "),
        (
            matrix(20, |i, j| 1e200 * (sample(i, 0) * sample(50, j) + sample(i, 1) * sample(51, j))),
            "column 2, ",
        ),
        (matrix(200, |i, j| (0..199).map(|k| sample(i, k) * sample(k + 300, j)).sum()), "column 199, "),
        // Hilbert's with more digits than numbers have.
        (matrix(20, |i, j| 1.0 / (i + j + 1) as f64), "column 1"),
    ];
    for (a, words) in cases {
        let system = system(a, 2);
        for algorithm in ALGORITHMS {
            for mix in [InProcess::new(&[1]), InProcess::new(&[2, 1])] {
                let error = solve(&mix, &mut gauss(algorithm, 8), &system).unwrap_err();
                assert!(matches!(error, RunError::Input(_)) && error.to_string().contains(words), "{error}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn both_ways_find_the_same(
        n in 1usize..80, rhs in 1usize..6, block in 1usize..40, seed in 0u64..1000,
        speeds in prop::collection::vec(0.05f64..1.0, 4),
    ) {
        let system = random::<f64>(n, rhs, seed);
        let mix = InProcess::new(&[1, 2, 1]).speeds(&speeds);
        let [one, other] = ALGORITHMS.map(|algorithm| assert_solved(&mix, &mut gauss(algorithm, block), &system));
        // As far apart as the condition allows is a matter of the residuals, which have been looked at.
        let most = one.values().iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let far = one.values().iter().zip(other.values()).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max);
        prop_assert!(far <= 1e-6 * most, "{far} of {most}");
    }
}

#[test]
fn what_speeds_are_measured_with_stays_as_large_as_it_was() {
    for (n, rows) in
        [(1, 1), (200, 200), (1024, 1024), (3000, 2048), (9000, 8192), (18_000, 12_288), (100_000, 16_384)]
    {
        assert_eq!(super::kernel_rows(n), rows, "{n}");
    }
    let (rows, columns) = (300, 40);
    let panel = super::blocked::Factored::<f32>::example(rows, 16);
    assert!(panel.pivots.iter().zip(0..).all(|(&pivot, row)| (row..300).contains(&pivot)), "{panel:?}");
    assert!(panel.pivots.windows(2).all(|two| two[0].abs_diff(two[1]) > 9), "far apart: {:?}", panel.pivots);
    let mut values: Vec<f32> = generate::matrix(3, columns, rows).unwrap().values().to_vec();
    let before = values.clone();
    let mut beside = Vec::new();
    (0..1000).for_each(|_| super::blocked::take_up(&panel, (rows, 0), &mut values, &mut beside));
    assert!(values != before && values.iter().all(|value| value.abs() < 2.0));
    let mut kernel = super::kernel(&gauss(Algorithm::Blocked, 16));
    assert!(kernel() > 0.0);
}
