//! Files that a relaxation leaves: atoms as extended XYZ and as a LAMMPS dump, and the way down as CSV.
//!
//! Atoms stand in the order of their numbers, and every number has all its digits, so that files are the same bytes on
//! any nodes. The launcher holds all atoms while it writes, about 100 bytes for each.

use super::block::Bounds;
use super::course::Watch;
use super::crystal::Side;
use super::input::Output;
use super::problem::Problem;
use super::result::Piece;
use crate::output::fill;
use chares::RunError;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What is to be written, of what.
pub(super) struct Written<'a> {
    pub(super) output: Output,
    pub(super) problem: &'a Problem,
}

const STRUCTURES: [&str; 4] = ["other", "fcc", "hcp", "bcc"];

/// Where an atom stands in the pieces.
#[derive(Clone, Copy)]
struct Row<'a> {
    name: u64,
    id: u64,
    element: &'a str,
    species: u8,
    class: u8,
    structure: u8,
    /// As in [`Piece`].
    values: &'a [f64],
}

/// When atoms are written, and their box then.
struct Frame<'a> {
    bounds: &'a Bounds,
    step: usize,
}

impl<'a> Written<'a> {
    /// Nothing is written.
    #[cfg(test)]
    pub(super) fn nothing(problem: &'a Problem) -> Self {
        Self { output: Output::default(), problem }
    }

    /// Whether atoms are to be written.
    pub(super) fn wants_atoms(&self) -> bool {
        self.output.xyz.is_some() || self.output.dump.is_some()
    }

    /// Whether atoms are to be written after each step.
    pub(super) fn wants_each_step(&self) -> bool {
        self.wants_atoms() && self.output.each_step
    }

    /// Writes the atoms of all blocks, which are in a box that is `bounds` now, after a step (from 0), or at the end.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(super) fn atoms(
        &self,
        pieces: &[Piece],
        bounds: &Bounds,
        step: Option<usize>,
    ) -> Result<(), RunError> {
        let steps = self.problem.steps.len();
        let path = |path: &Path| step.map_or_else(|| path.into(), |step| by_step(path, step + 1, steps));
        let frame = Frame { bounds, step: step.map_or(steps, |step| step + 1) };
        let rows = self.rows(pieces);
        if let Some(xyz) = &self.output.xyz {
            fill(&path(xyz), |out| self.xyz(&rows, &frame, out))?;
        }
        self.output
            .dump
            .as_ref()
            .map_or(Ok(()), |dump| fill(&path(dump), |out| self.dump(&rows, &frame, out)))
    }

    /// Writes a line for each evaluation.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn trace(&self, watched: &[(usize, Watch)]) -> Result<(), RunError> {
        let Some(path) = &self.output.trace else { return Ok(()) };
        fill(path, |out| {
            writeln!(out, "step,evaluation,iteration,energy_ev,max_force_ev_per_a")?;
            for (step, Watch { evaluations, iterations, energy, max_force, .. }) in watched {
                writeln!(out, "{},{evaluations},{iterations},{energy},{max_force}", step + 1)?;
            }
            Ok(())
        })
    }

    fn rows<'r>(&'r self, pieces: &'r [Piece]) -> Vec<Row<'r>> {
        let names = self.problem.potential.names();
        let mut rows = Vec::with_capacity(pieces.iter().map(|piece| piece.ids.len()).sum());
        for piece in pieces {
            for (n, values) in piece.values.chunks_exact(Piece::VALUES).enumerate() {
                let (id, species) = (piece.ids[n], piece.species[n]);
                rows.push(Row {
                    name: self.problem.crystal.name_of(id),
                    id,
                    element: &names[usize::from(species)],
                    species,
                    class: piece.classes[n],
                    structure: piece.structures[n],
                    values,
                });
            }
        }
        rows.sort_unstable_by_key(|row| row.name);
        rows
    }

    /// Where the atom is, inside the box along periodic axes, and how far from its undisturbed place, which is stretched
    /// with the box.
    fn place(&self, row: &Row<'_>, bounds: &Bounds) -> ([f64; 3], [f64; 3]) {
        let (lengths, sides) = (bounds.lengths, self.problem.crystal.sides());
        let wrap = |k: usize| match sides[k] {
            Side::Periodic => {
                let x = row.values[k].rem_euclid(lengths[k]);
                if x < lengths[k] { x } else { 0.0 }
            }
            Side::Shells { .. } => row.values[k],
        };
        let (from, stretch) = (self.problem.undisturbed(row.id), self.problem.stretch(bounds));
        (std::array::from_fn(wrap), std::array::from_fn(|k| row.values[k] - from[k] * stretch[k]))
    }

    fn xyz(&self, rows: &[Row<'_>], frame: &Frame<'_>, out: &mut dyn Write) -> std::io::Result<()> {
        let [x, y, z] = frame.bounds.lengths;
        let pbc = self.problem.crystal.sides().map(|side| if side == Side::Periodic { 'T' } else { 'F' });
        writeln!(out, "{}", rows.len())?;
        writeln!(
            out,
            "Lattice=\"{x} 0 0 0 {y} 0 0 0 {z}\" Origin=\"0 0 0\" pbc=\"{} {} {}\" Properties=species:S:1:pos:R:3:id:I:1:\
             class:I:1:forces:R:3:energy:R:1:density:R:1:displacement:R:3:centrosymmetry:R:1:structure:S:1:\
             structure_type:I:1",
            pbc[0], pbc[1], pbc[2]
        )?;
        for row in rows {
            let ([x, y, z], [dx, dy, dz]) = self.place(row, frame.bounds);
            let [fx, fy, fz, energy, density, symmetry] = last(row.values);
            let structure = STRUCTURES[usize::from(row.structure).min(3)];
            writeln!(
                out,
                "{} {x} {y} {z} {} {} {fx} {fy} {fz} {energy} {density} {dx} {dy} {dz} {symmetry} {structure} {}",
                row.element, row.name, row.class, row.structure
            )?;
        }
        Ok(())
    }

    fn dump(&self, rows: &[Row<'_>], frame: &Frame<'_>, out: &mut dyn Write) -> std::io::Result<()> {
        let sides = self.problem.crystal.sides();
        let ends = sides.map(|side| if side == Side::Periodic { "pp" } else { "ff" });
        write!(out, "ITEM: TIMESTEP\n{}\nITEM: NUMBER OF ATOMS\n{}\n", frame.step, rows.len())?;
        writeln!(out, "ITEM: BOX BOUNDS {} {} {}", ends[0], ends[1], ends[2])?;
        for length in frame.bounds.lengths {
            writeln!(out, "0 {length}")?;
        }
        writeln!(
            out,
            "ITEM: ATOMS id type element x y z fx fy fz c_energy c_density d_x d_y d_z c_centrosymmetry c_structure \
             class"
        )?;
        // LAMMPS counts from 1.
        let shift = u64::from(self.problem.crystal.first_name() == 0);
        for row in rows {
            let ([x, y, z], [dx, dy, dz]) = self.place(row, frame.bounds);
            let [fx, fy, fz, energy, density, symmetry] = last(row.values);
            writeln!(
                out,
                "{} {} {} {x} {y} {z} {fx} {fy} {fz} {energy} {density} {dx} {dy} {dz} {symmetry} {} {}",
                row.name + shift,
                row.species + 1,
                row.element,
                row.structure,
                row.class
            )?;
        }
        Ok(())
    }
}

/// The name of a file after a step (from 1): `end.xyz` after the second of ten is `end.02.xyz`.
fn by_step(path: &Path, step: usize, steps: usize) -> PathBuf {
    let number = format!("{step:0width$}", width = steps.to_string().len());
    let end = path.extension().map_or_else(|| number.clone(), |end| format!("{number}.{}", end.display()));
    path.with_extension(end)
}

/// Force, energy, density and centro-symmetry.
fn last(values: &[f64]) -> [f64; 6] {
    std::array::from_fn(|k| values[3 + k])
}
