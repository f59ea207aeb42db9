//! Files that a relaxation leaves: atoms as extended XYZ and as a LAMMPS dump, and the way down as CSV.
//!
//! Atoms stand in the order of their numbers, and every number has all its digits, so that files are the same bytes on
//! any nodes. The launcher holds all atoms while it writes, about 100 bytes for each.

use super::course::Watch;
use super::crystal::Side;
use super::input::Output;
use super::problem::Problem;
use super::result::Piece;
use crate::output::fill;
use chares::RunError;
use std::io::Write;

/// What is to be written, of what.
pub(super) struct Written {
    pub(super) output: Output,
    pub(super) problem: Problem,
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

impl Written {
    /// Nothing is written.
    #[cfg(test)]
    pub(super) fn nothing(problem: &Problem) -> Self {
        Self { output: Output::default(), problem: problem.clone() }
    }

    /// Whether atoms are to be written.
    pub(super) fn wants_atoms(&self) -> bool {
        self.output.xyz.is_some() || self.output.dump.is_some()
    }

    /// Writes the atoms of all blocks.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(super) fn atoms(&self, pieces: Vec<Piece>) -> Result<(), RunError> {
        let rows = self.rows(&pieces);
        if let Some(path) = &self.output.xyz {
            fill(path, |out| self.xyz(&rows, out))?;
        }
        self.output.dump.as_ref().map_or(Ok(()), |path| fill(path, |out| self.dump(&rows, out)))
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

    fn rows<'a>(&'a self, pieces: &'a [Piece]) -> Vec<Row<'a>> {
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

    /// Where the atom is, inside the box along periodic axes, and how far from its undisturbed place.
    fn place(&self, row: &Row<'_>) -> ([f64; 3], [f64; 3]) {
        let crystal = &self.problem.crystal;
        let (lengths, sides) = (crystal.lengths(), crystal.sides());
        let wrap = |k: usize| match sides[k] {
            Side::Periodic => {
                let x = row.values[k].rem_euclid(lengths[k]);
                if x < lengths[k] { x } else { 0.0 }
            }
            Side::Shells { .. } => row.values[k],
        };
        let from = self.problem.undisturbed(row.id);
        (std::array::from_fn(wrap), std::array::from_fn(|k| row.values[k] - from[k]))
    }

    fn xyz(&self, rows: &[Row<'_>], out: &mut dyn Write) -> std::io::Result<()> {
        let crystal = &self.problem.crystal;
        let [x, y, z] = crystal.lengths();
        let pbc = crystal.sides().map(|side| if side == Side::Periodic { 'T' } else { 'F' });
        writeln!(out, "{}", rows.len())?;
        writeln!(
            out,
            "Lattice=\"{x} 0 0 0 {y} 0 0 0 {z}\" Origin=\"0 0 0\" pbc=\"{} {} {}\" Properties=species:S:1:pos:R:3:id:I:1:\
             class:I:1:forces:R:3:energy:R:1:density:R:1:displacement:R:3:centrosymmetry:R:1:structure:S:1:\
             structure_type:I:1",
            pbc[0], pbc[1], pbc[2]
        )?;
        for row in rows {
            let ([x, y, z], [dx, dy, dz]) = self.place(row);
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

    fn dump(&self, rows: &[Row<'_>], out: &mut dyn Write) -> std::io::Result<()> {
        let crystal = &self.problem.crystal;
        let ends = crystal.sides().map(|side| if side == Side::Periodic { "pp" } else { "ff" });
        write!(out, "ITEM: TIMESTEP\n0\nITEM: NUMBER OF ATOMS\n{}\n", rows.len())?;
        writeln!(out, "ITEM: BOX BOUNDS {} {} {}", ends[0], ends[1], ends[2])?;
        for length in crystal.lengths() {
            writeln!(out, "0 {length}")?;
        }
        writeln!(
            out,
            "ITEM: ATOMS id type element x y z fx fy fz c_energy c_density d_x d_y d_z c_centrosymmetry c_structure \
             class"
        )?;
        for row in rows {
            let ([x, y, z], [dx, dy, dz]) = self.place(row);
            let [fx, fy, fz, energy, density, symmetry] = last(row.values);
            writeln!(
                out,
                "{} {} {} {x} {y} {z} {fx} {fy} {fz} {energy} {density} {dx} {dy} {dz} {symmetry} {} {}",
                row.name,
                row.species + 1,
                row.element,
                row.structure,
                row.class
            )?;
        }
        Ok(())
    }
}

/// Force, energy, density and centro-symmetry.
fn last(values: &[f64]) -> [f64; 6] {
    std::array::from_fn(|k| values[3 + k])
}
