//! The driver: distributes the factors by speed, starts the chares, collects and checks the product.

use super::arguments::{Algorithm, Matmul, check_sides};
use super::conventional::{self, Collect, LoadRows, Multiply, Rows};
use super::division::{Owners, Panels, divide};
use super::panel::{self, CollectPanel, GoPanel, LoadColumns, LoadGroup, Panel};
use super::problem::Problem;
use super::side::settled;
use super::tile::{self, CollectTile, Go, LoadTile, Make, Tile, TileMaker, first_blocks};
use crate::division::DivisionError;
use crate::matrix::{self, Dtype, Matrix, Piece, Real, ShapeError, generate, part};
use crate::verify;
use chares::{Array, Bulk, Callback, Cx, Driver, Group, Pending, Placement, RunError};
use std::path::Path;
use std::sync::Arc;

/// Runs a product as the command line asks.
pub(super) fn drive(main: &mut Driver, matmul: Matmul) -> Result<(), RunError> {
    let matmul = settled(&matmul, main.machines()).map_err(DivisionError::from)?;
    let division = divide(&matmul, main.machines())?;
    division.state(main);
    main.phase("reading the factors", 0, 0);
    match matmul.dtype_or_default() {
        Dtype::F32 => multiply::<f32>(main, &matmul, division.owners, factors(&matmul)?.as_ref()),
        Dtype::F64 => multiply::<f64>(main, &matmul, division.owners, factors(&matmul)?.as_ref()),
    }
}

/// A and B.
type Factors<T> = (Matrix<T>, Matrix<T>);

/// The factors, if they are not to be generated.
fn factors<T: Real>(matmul: &Matmul) -> Result<Option<Factors<T>>, RunError> {
    let (Some(a), Some(b)) = (&matmul.a, &matmul.b) else { return Ok(None) };
    let read = |path: &Path| matrix::read(path).map_err(|e| RunError::Input(e.to_string()));
    let (left, right): Factors<T> = (read(a)?, read(b)?);
    // The files may have changed since they were looked at.
    check_sides(a, left.shape(), b, right.shape())?;
    if (left.rows(), left.cols(), right.cols()) != matmul.sides() {
        let sentence = format!("{a:?} and {b:?} are of other sizes than when the run began: start it again");
        return Err(RunError::Input(sentence));
    }
    Ok(Some((left, right)))
}

/// Who has the result: asked for pieces until all have come.
enum Holders<T> {
    Rows(Array<Rows<T>>, usize),
    Tiles(Array<Tile<T>>, usize),
    Panels(Array<Panel<T>>, usize),
}

/// Multiplies as the arguments say, and checks and writes the product.
fn multiply<T: Real>(
    main: &mut Driver,
    matmul: &Matmul,
    owners: Owners,
    given: Option<&Factors<T>>,
) -> Result<(), RunError> {
    let problem = problem_of(matmul, given);
    state(main, matmul, &problem);
    let holders = match owners {
        Owners::Rows(rows) => conventional(main, matmul, &problem, &rows, given)?,
        Owners::Tiles(q, owners) => tiles(main, matmul, &problem, (q, owners), given)?,
        Owners::Panels(panels) => self::panels(main, &problem, panels, given)?,
    };
    main.timed_over()?;
    if !matmul.verify && matmul.out.is_none() {
        return Ok(());
    }
    let c = collect(main, &problem, &holders)?;
    finish(main, matmul, &problem, given, &c)
}

// One function for each way to multiply; each leaves the result with those who computed it.

fn conventional<T: Real>(
    main: &mut Driver,
    matmul: &Matmul,
    problem: &Problem,
    rows: &[u64],
    given: Option<&Factors<T>>,
) -> Result<Holders<T>, RunError> {
    let pes = main.pe_count() as usize;
    let grain = matmul.grain.unwrap_or_else(|| conventional::default_grain(problem.m, pes));
    let (bounds, owners) = conventional::pieces(rows, grain);
    let count = owners.len();
    let chares = u32::try_from(count).map_err(|_| RunError::Input("--grain is too small".into()))?;
    let stripes = conventional::stripe_count(problem.n);
    let stripe = |at| part(problem.n, stripes, at);
    let b: Vec<Bulk<T>> = match given {
        Some((_, b)) => (0..stripes).map(|at| b.block(0..problem.k, stripe(at)).into()).collect(),
        None => (0..stripes).map(|at| problem.block_b(0..problem.k, stripe(at))).collect(),
    };
    main.phase("distributing", 0, 0);
    let b = main.readonly(b)?;
    let bounds = Arc::new(bounds);
    let setup = conventional::RowsInit { problem: problem.clone(), bounds: Arc::clone(&bounds), b };
    let rows = main.array_placed::<Rows<T>>(chares, setup, Placement::on_pes(owners.clone()));
    if let Some((a, _)) = given {
        for (at, range) in (0..chares).zip(bounds.windows(2)) {
            let part = a.row_slice(range[0]..range[1]);
            rows.at(at).send(main, LoadRows(Bulk::from_slice(part)));
        }
    }
    main.init_over()?;
    let pieces = count * stripes as usize;
    main.expect_progress("multiplying", pieces as u64)?;
    let (to, told) = main.pending();
    rows.broadcast(main, Multiply(to));
    let done = conventional::follow(main, &rows, &owners, problem, (to, &told))?;
    main.outcome().fact("units_done", done);
    Ok(Holders::Rows(rows, pieces))
}

fn tiles<T: Real>(
    main: &mut Driver,
    matmul: &Matmul,
    problem: &Problem,
    (q, owners): (u32, Vec<u32>),
    given: Option<&Factors<T>>,
) -> Result<Holders<T>, RunError> {
    let scheme = matmul.scheme();
    main.outcome().fact("q", q);
    main.phase("distributing", 0, 0);
    let tiles: Array<Tile<T>> = main.array_deferred([q, q], Placement::on_pes(owners));
    let makers: Group<TileMaker<T>> = main.group(());
    // The makerss must know the array before they are asked which of its elements are theirs.
    main.quiescence()?;
    let setup = tile::TileInit { problem: problem.clone(), q, scheme };
    makers.broadcast(main, Make { tiles, setup });
    if let Some((a, b)) = given {
        for at in (0..q).flat_map(|i| (0..q).map(move |j| [i, j])) {
            let (ka, kb) = first_blocks(scheme, q, at);
            let (rows, cols) = (part(problem.m, q, at[0]), part(problem.n, q, at[1]));
            let a = a.block(rows, part(problem.k, q, ka)).into();
            let b = b.block(part(problem.k, q, kb), cols).into();
            tiles.at(at).send(main, LoadTile { a, b });
        }
    }
    main.init_over()?;
    let row = |i: u32| (0..q).map(move |j| [i, j]);
    let rows = match matmul.algorithm {
        Algorithm::FoxHeyOtto => (0..q).map(|i| tiles.section(main, row(i))).collect(),
        _ => Vec::new(),
    };
    main.expect_progress("multiplying", u64::from(q).pow(3))?;
    let (done, finished) = main.pending();
    tiles.broadcast(main, Go { done, rows });
    finished.wait(main)?;
    Ok(Holders::Tiles(tiles, (q * q) as usize))
}

fn panels<T: Real>(
    main: &mut Driver,
    problem: &Problem,
    Panels { columns, grain, groups, room }: Panels,
    given: Option<&Factors<T>>,
) -> Result<Holders<T>, RunError> {
    main.phase("distributing", 0, 0);
    let pes = main.pe_count();
    let per_pe = panel::panels_per_pe(problem.n, pes as usize);
    let room = room.iter().flat_map(|room| (0..per_pe).map(move |_| room / u64::from(per_pe))).collect();
    let (columns, groups) = (panel::cut(&columns, per_pe), panel::cut(&groups, per_pe));
    let setup = panel::PanelInit { problem: problem.clone(), grain, per_pe, columns, groups, room };
    let owners = Placement::on_pes((0..setup.panels()).map(|panel| panel / per_pe));
    let panels: Array<Panel<T>> = main.array_placed(setup.panels(), setup.clone(), owners);
    if let Some((a, b)) = given {
        for panel in 0..setup.panels() {
            let part = b.block(0..problem.k, setup.columns_of(panel));
            panels.at(panel).send(main, LoadColumns(part.into()));
        }
        for group in 0..setup.group_count() {
            let rows = Bulk::from_slice(a.row_slice(setup.rows_of(group)));
            panels.at(setup.owner(group)).send(main, LoadGroup { group, rows });
        }
    }
    main.init_over()?;
    main.expect_progress("multiplying", u64::from(setup.group_count()) * u64::from(setup.panels()))?;
    let (done, finished) = main.pending();
    panels.broadcast(main, GoPanel(done));
    let ended = finished.wait(main)?;
    main.outcome().fact("panels", setup.panels());
    main.outcome().fact("moved_columns", ended.moved_columns);
    Ok(Holders::Panels(panels, ended.pieces))
}

/// The product, of the pieces that its holders have.
fn collect<T: Real>(
    main: &mut Driver,
    problem: &Problem,
    holders: &Holders<T>,
) -> Result<Matrix<T>, RunError> {
    let too_big = |e: ShapeError| RunError::Failed(e.to_string());
    let mut c = Matrix::zeros(problem.m, problem.n).map_err(too_big)?;
    let (to, pieces): (Callback<Piece<T>>, Pending<_>) = main.pending();
    let count = match holders {
        Holders::Rows(rows, count) => {
            rows.broadcast(main, Collect(to));
            *count
        }
        Holders::Tiles(tiles, count) => {
            tiles.broadcast(main, CollectTile(to));
            *count
        }
        Holders::Panels(panels, count) => {
            panels.broadcast(main, CollectPanel(to));
            *count
        }
    };
    for done in 1..=count {
        let piece = pieces.wait(main)?;
        c.set_block(piece.rows, piece.cols, &piece.values);
        main.phase("collecting", done as u64, count as u64);
    }
    Ok(c)
}

fn problem_of<T: Real>(matmul: &Matmul, given: Option<&Factors<T>>) -> Problem {
    let kernel = matmul.kernel();
    match given {
        Some((a, b)) => Problem { m: a.rows(), k: a.cols(), n: b.cols(), kernel, seeds: None },
        None => {
            let (m, k, n) = matmul.sides();
            let seeds = Some((matmul.seed, generate::seed_of_b(matmul.seed)));
            Problem { m, k, n, kernel, seeds }
        }
    }
}

/// States the product in the report.
fn state(main: &mut Driver, matmul: &Matmul, problem: &Problem) {
    let outcome = main.outcome();
    outcome.work(matmul.work());
    outcome.fact("m", problem.m);
    outcome.fact("k", problem.k);
    outcome.fact("n", problem.n);
    outcome.fact("kernel", problem.kernel.to_string());
    outcome.fact("algorithm", serde_json::to_value(matmul.algorithm).unwrap_or_default());
}

/// Checks and writes the product.
fn finish<T: Real>(
    main: &mut Driver,
    matmul: &Matmul,
    problem: &Problem,
    given: Option<&Factors<T>>,
    c: &Matrix<T>,
) -> Result<(), RunError> {
    if let Some(out) = &matmul.out {
        main.phase("writing", 0, 0);
        matrix::write(out, c).map_err(|e| RunError::Output(e.to_string()))?;
    }
    if !matmul.verify {
        return Ok(());
    }
    main.phase("verifying", 0, 0);
    main.outcome().collected();
    let wrong_shape = |e: ShapeError| RunError::Failed(e.to_string());
    let verdict = match (given, problem.seeds) {
        (Some((a, b)), _) => verify::product(a, b, c, 7),
        (None, seeds) => {
            let (seed_a, seed_b) = seeds.unwrap_or_default();
            let a = generate::matrix(seed_a, problem.m, problem.k).map_err(wrong_shape)?;
            let b = generate::matrix(seed_b, problem.k, problem.n).map_err(wrong_shape)?;
            verify::product(&a, &b, c, 7)
        }
    };
    let verdict = verdict.map_err(wrong_shape)?;
    main.outcome().verified(verdict.holds(), verdict.max_error);
    main.outcome().fact("verified_by", serde_json::to_value(verdict.method).unwrap_or_default());
    let row = verdict.row;
    if verdict.holds() {
        if verdict.not_finite > 0 {
            main.outcome().remark(&format!(
                "{} of {} elements of the product are NaN or infinite, as the factors make them",
                verdict.not_finite,
                problem.m * problem.n
            ));
        }
        return Ok(());
    }
    if verdict.max_error.is_infinite() {
        return Err(RunError::Wrong(format!(
            "the product is wrong: row {row} is finite where the factors make it NaN or infinite, or the reverse"
        )));
    }
    Err(RunError::Wrong(format!(
        "the product is wrong: row {row} is off by {:.2e} relative, where {:.2e} is allowed",
        verdict.max_error, verdict.tolerance
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, Command, FromArgMatches as _};

    #[test]
    fn files_of_other_sizes_than_the_work_was_divided_for_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a.npy", "b.npy"].map(|name| folder.path().join(name));
        let write = |path: &Path, rows, cols| {
            matrix::npy::write(path, &Matrix::<f64>::zeros(rows, cols).unwrap()).unwrap();
        };
        write(&a, 3, 2);
        write(&b, 2, 4);
        let words = ["matmul", "--a", &a.display().to_string(), "--b", &b.display().to_string()];
        let matches = Matmul::augment_args(Command::new("matmul")).get_matches_from(words);
        let matmul = Matmul::from_arg_matches(&matches).unwrap().completed();
        assert!(factors::<f64>(&matmul).unwrap().is_some());
        write(&a, 5, 2);
        let sentence = factors::<f64>(&matmul).unwrap_err().to_string();
        assert!(sentence.contains("than when the run began: start it again"), "{sentence}");
    }
}
