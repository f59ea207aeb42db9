//! The distributed grid: regions solve for the field together. Each has the charge of its columns, to which its neighbour adds
//! that of the particles in its last cells; transforms them along y; gets its part of the rows of the spectrum from all, and
//! sends what it makes of them back (P. C. Liewer and V. K. Decyk, "A general concurrent algorithm for plasma
//! particle-in-cell simulation codes", Journal of Computational Physics 85, 1989).
//!
//! The operations are those of the solver at one place on the same numbers, so the bits are the same.

use super::field::{Solver, Wave};
use super::problem::Problem;
use super::region::Region;
use super::spectrum::{Bands, Guard, Lines, Spectrum, columns, numbers, rows_of, waves};
use chares::{Ctx, Cx as _, Entry, Part};

impl Entry<Guard> for Region {
    fn receive(&mut self, guard: Guard, ctx: &mut Ctx<'_, Self>) {
        self.spectrum.guards.hold(guard.step, guard);
        if self.spectrum.is_waiting {
            self.transform_columns(ctx);
        }
    }
}

impl Entry<Part<Lines>> for Region {
    fn receive(&mut self, part: Part<Lines>, ctx: &mut Ctx<'_, Self>) {
        self.spectrum.lines.hold(part);
        while let Some(lines) = self.spectrum.lines.take(ctx) {
            self.solve_rows(&lines, ctx);
        }
    }
}

impl Entry<Part<Bands>> for Region {
    fn receive(&mut self, part: Part<Bands>, ctx: &mut Ctx<'_, Self>) {
        self.spectrum.bands.hold(part);
        while let Some(bands) = self.spectrum.bands.take(ctx) {
            let Some(potential) = self.transform_back(&bands, ctx) else {
                return ctx.fail("a region got rows of another field than the one that is solved for");
            };
            self.take_step(&potential, ctx);
        }
    }
}

impl Region {
    /// Gives the neighbour its part of this charge, of the region's columns and the one behind them.
    pub(super) fn begin_spectrum(
        &mut self,
        problem: &Problem,
        mut charge: Vec<i64>,
        ctx: &mut Ctx<'_, Self>,
    ) {
        if self.step == problem.steps {
            return;
        }
        let guard = charge.split_off(charge.len() - problem.cells[1]);
        self.spectrum.charge = charge.into();
        self.spectrum.is_waiting = true;
        let next = ctx.array().at((ctx.index() + 1) % problem.regions() as u32);
        next.send(ctx, Guard { step: self.step, charge: guard.into() });
        self.transform_columns(ctx);
    }

    fn transform_columns(&mut self, ctx: &mut Ctx<'_, Self>) {
        let Some(guards) = self.spectrum.guards.take(&self.step, 1) else { return };
        let (problem, _) = self.known(ctx);
        let Spectrum { charge, is_waiting, lines, solver, .. } = &mut self.spectrum;
        *is_waiting = false;
        for guard in guards {
            charge.as_mut_slice().iter_mut().zip(guard.charge.iter()).for_each(|(sum, of)| *sum += of);
        }
        let solver = solver.get_or_insert_with(|| Solver::new(&problem));
        let width = charge.len() / problem.cells[1];
        let mut spectrum = vec![Wave::default(); solver.rows() * width];
        for (column, charge) in charge.chunks_exact(problem.cells[1]).enumerate() {
            solver.column_there(charge, |row, wave| spectrum[row * width + column] = wave);
        }
        lines.send(ctx, |region| {
            let rows = rows_of(&problem, region);
            let part = &spectrum[rows.start * width..rows.end * width];
            Lines(numbers(part.iter().copied()).collect::<Vec<_>>().into())
        });
    }

    /// From the columns of all in this region's rows to the potential in these.
    fn solve_rows(&mut self, lines: &[Lines], ctx: &mut Ctx<'_, Self>) {
        let (problem, _) = self.known(ctx);
        let (rows, nx) = (rows_of(&problem, ctx.index()), problem.cells[0]);
        let Spectrum { bands, account, solver, .. } = &mut self.spectrum;
        let solver = solver.get_or_insert_with(|| Solver::new(&problem));
        let mut spectrum = vec![Wave::default(); rows.len() * nx];
        for (region, Lines(part)) in (0..).zip(lines) {
            let range = problem.strip(region).range();
            let of_rows = part.chunks_exact(2 * range.len());
            for (row, part) in spectrum.chunks_exact_mut(nx).zip(of_rows) {
                row[range.clone()].iter_mut().zip(waves(part)).for_each(|(to, wave)| *to = wave);
            }
        }
        for (number, row) in rows.zip(spectrum.chunks_exact_mut(nx)) {
            account.add_row(solver.row(number, row));
        }
        bands.send(ctx, |region| {
            let mut part = Vec::new();
            for row in spectrum.chunks_exact(nx) {
                part.extend(numbers(columns(&problem, region).map(|column| row[column])));
            }
            Bands(part.into())
        });
    }

    /// The potential in the region's columns and those around them; nothing if there are more rows or fewer.
    fn transform_back(&mut self, bands: &[Bands], ctx: &mut Ctx<'_, Self>) -> Option<Vec<f64>> {
        let (problem, _) = self.known(ctx);
        let width = columns(&problem, ctx.index()).count();
        let solver = self.spectrum.solver.get_or_insert_with(|| Solver::new(&problem));
        let spectrum: Vec<Wave> = bands.iter().flat_map(|Bands(part)| waves(part)).collect();
        if spectrum.len() != solver.rows() * width {
            return None;
        }
        let mut potential = Vec::with_capacity(width * problem.cells[1]);
        for column in 0..width {
            solver.column_back(|row| spectrum[row * width + column], &mut potential);
        }
        Some(potential)
    }
}
