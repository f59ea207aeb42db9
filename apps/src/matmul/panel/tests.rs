//! Products inside one process, where the columns are not divided as the PEs are fast.

use super::*;
use crate::kernels::gemm::{Kernel, gemm};
use crate::matrix::Matrix;
use chares::{Array, Driver, InProcess, Pending, Placement, Program, RunError};

const COUNTS: [&[u32]; 3] = [&[3], &[1, 2], &[1, 1, 1]];

fn problem([m, k, n]: [usize; 3], kernel: Kernel) -> Problem {
    Problem { m, k, n, kernel, seeds: Some((5, 6)) }
}

/// The first PE has nearly all columns, the second a few, the third none.
fn setup(problem: Problem, room: u64) -> PanelInit {
    let (n, grain) = (problem.n as u64, problem.m.div_ceil(45));
    let count = problem.m.div_ceil(grain) as u64;
    let groups = vec![0, count / 4, count / 2, count];
    PanelInit { problem, grain, per_pe: 1, columns: vec![0, n - n / 9, n, n], groups, room: vec![room; 3] }
}

/// The same with some panels for each PE.
fn with_panels(setup: PanelInit, per_pe: u32) -> PanelInit {
    let room = setup.room.iter().flat_map(|room| vec![room / u64::from(per_pe); per_pe as usize]).collect();
    let (columns, groups) = (cut(&setup.columns, per_pe), cut(&setup.groups, per_pe));
    PanelInit { per_pe, columns, groups, room, ..setup }
}

macro_rules! product_of {
    ($real:ty, $product:ident) => {
        fn $product(main: &mut Driver, setup: &PanelInit) -> Result<(Matrix<$real>, u64), RunError> {
            let owners = Placement::on_pes((0..setup.panels()).map(|panel| panel / setup.per_pe));
            let panels: Array<Panel<$real>> = main.array_placed(setup.panels(), setup.clone(), owners);
            main.quiescence()?;
            let (done, finished) = main.pending();
            panels.broadcast(main, GoPanel(done));
            let PanelTotals { pieces, moved_columns } = finished.wait(main)?;
            let (to, collected): (_, Pending<Piece<$real>>) = main.pending();
            panels.broadcast(main, CollectPanel(to));
            let mut c = Matrix::zeros(setup.problem.m, setup.problem.n).unwrap();
            let mut area = 0;
            for _ in 0..pieces {
                let piece = collected.wait(main)?;
                area += piece.values.len();
                c.set_block(piece.rows, piece.cols, &piece.values);
            }
            // All, and nothing twice.
            assert_eq!(area, setup.problem.m * setup.problem.n);
            Ok((c, moved_columns))
        }
    };
}
product_of!(f32, product_32);
product_of!(f64, product_64);

fn expected<T: Real>(problem: &Problem) -> Vec<T> {
    let (m, k, n) = (problem.m, problem.k, problem.n);
    let mut c = vec![T::zeroed(); m * n];
    gemm(problem.kernel, m, k, n, &problem.block_a(0..m, 0..k), &problem.block_b(0..k, 0..n), &mut c);
    c
}

fn program() -> Program {
    Program::new("panels", "0").chare::<Panel<f32>>().chare::<Panel<f64>>()
}

#[test]
fn columns_move_and_the_bits_stay() {
    let problem = problem([611, 403, 307], Kernel::Plain);
    let (right_64, right_32) = (expected::<f64>(&problem), expected::<f32>(&problem));
    for (turn, pes) in COUNTS.into_iter().enumerate() {
        let setup = with_panels(setup(problem.clone(), 307), [1, 3, 2][turn]);
        let mixes = [InProcess::new(pes), InProcess::new(pes).always_pup(), InProcess::new(pes).wander(7)];
        for mix in mixes {
            let moved = if turn.is_multiple_of(2) {
                let (c, moved) = program().run_in_process(&mix, |main| product_64(main, &setup)).unwrap();
                assert!(c.values() == right_64, "{mix:?}");
                moved
            } else {
                let (c, moved) = program().run_in_process(&mix, |main| product_32(main, &setup)).unwrap();
                assert!(c.values() == right_32, "{mix:?}");
                moved
            };
            assert!(moved > 0, "{mix:?}");
        }
    }
}

#[test]
fn the_fast_kernel_is_as_near_with_other_columns() {
    let problem = problem([2412, 2011, 1503], Kernel::Fast);
    let setup = setup(problem.clone(), 1503);
    // Whether columns move depends on how evenly other programs leave the cores: of so many runs one does it.
    let run =
        |_| program().run_in_process(&InProcess::new(COUNTS[1]), |main| product_64(main, &setup)).unwrap();
    let (c, moved) = (0..20).map(run).find(|(_, moved)| *moved > 0).expect("columns move");
    let far = c.values().iter().zip(expected::<f64>(&problem)).map(|(one, other)| (one - other).abs());
    let most = far.fold(0.0, f64::max);
    // Sums of so many products of numbers below 1.
    assert!(most < 2011.0 * 2011.0 * f64::EPSILON, "{moved} moved, {most}");
}

#[test]
fn without_memory_for_others_nothing_moves() {
    let setup = setup(problem([300, 211, 97], Kernel::Plain), 0);
    let mix = InProcess::new(COUNTS[2]);
    let (c, moved) = program().run_in_process(&mix, |main| product_64(main, &setup)).unwrap();
    assert!(c.values() == expected::<f64>(&setup.problem) && moved == 0, "{moved}");
}

#[test]
fn a_pe_with_a_part_of_its_core_is_as_slow_as_its_part() {
    let mut panel = Panel::<f64>::made(setup(problem([90, 20, 30], Kernel::Plain), 0), 0);
    let rows = panel.setup.rows_of(0);
    let of_group = |plan| RowsOfA { group: 0, plan, rows: panel.setup.problem.block_a(rows.clone(), 0..20) };
    let rows = of_group(0);
    // Every product takes a nanosecond.
    let Finished { seconds, area, .. } = panel.multiply(&rows, 0, 1e-9);
    assert!(seconds >= 1.0 && area > 0, "{seconds} {area}");
}

#[test]
fn the_share_of_a_pe_is_cut_into_like_panels() {
    assert_eq!(cut(&[0, 8, 8, 15], 2), [0, 4, 8, 8, 8, 11, 15]);
    assert_eq!(cut(&[0, 5], 1), [0, 5]);
    assert_eq!([panels_per_pe(28_000, 3), panels_per_pe(4096, 4), panels_per_pe(100, 4)], [8, 4, 1]);
}
