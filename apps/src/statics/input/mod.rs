//! The input file of a relaxation: every key is known here, and what is missing has a default.
//!
//! Command-line options are the common cases of the same thing; they go over the file ([`super::arguments`]).

mod problem;
#[cfg(test)]
mod tests;

use super::aberration::Aberration;
use super::crystal::Side;
use super::crystal::lattice::Kind;
use super::relax::Method;
use crate::text_file::{exactly, exactly_if_any, parse_toml, read_text};
pub use problem::InputError;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// What is relaxed, and how.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Input {
    /// `[crystal]`.
    pub crystal: CrystalInput,
    /// `[boundary]`.
    pub boundary: Boundary,
    /// `[potential]`.
    pub potential: PotentialInput,
    /// `[relaxation]`.
    pub relaxation: RelaxationInput,
    /// `[[step]]`: one after the other. Without any, the crystal relaxes as it is.
    pub step: Vec<StepInput>,
    /// `[output]`.
    pub output: Output,
}

/// A lattice, a custom cell or a file of atoms.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CrystalInput {
    /// Atoms from LAMMPS data or extended XYZ, in place of all else here.
    pub file: Option<PathBuf>,
    /// Lattice, fcc if not given.
    pub lattice: Option<Kind>,
    /// Lattice constant in A; that without pressure if not given.
    pub a: Option<f64>,
    /// c/a, for hcp.
    pub c_over_a: Option<f64>,
    /// A custom cell: its edges in A.
    #[serde(deserialize_with = "exactly_if_any")]
    pub edges: Option<[f64; 3]>,
    /// And its atoms.
    pub sites: Vec<SiteInput>,
    /// Directions that run along x, y, z.
    pub orient: Option<Orient>,
    /// Cells along x, y, z: of the oriented cell.
    #[serde(deserialize_with = "exactly_if_any")]
    pub size: Option<[usize; 3]>,
}

/// An atom of a custom cell.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteInput {
    /// Fractions of the edges.
    #[serde(deserialize_with = "exactly")]
    pub at: [f64; 3],
    /// Element; the first of the potential if not given.
    pub element: Option<String>,
}

/// Miller triads.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Orient {
    /// Along x.
    #[serde(deserialize_with = "exactly")]
    pub x: [i32; 3],
    /// Along y.
    #[serde(deserialize_with = "exactly")]
    pub y: [i32; 3],
    /// Along z.
    #[serde(deserialize_with = "exactly")]
    pub z: [i32; 3],
}

/// Both ends of each axis; periodic if not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Boundary {
    /// Along x.
    pub x: Option<End>,
    /// Along y.
    pub y: Option<End>,
    /// Along z.
    pub z: Option<End>,
}

/// Both ends of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum End {
    /// It goes on for ever.
    Periodic,
    /// Two surfaces.
    Free,
    /// Shells of atoms that are held.
    Shells {
        /// Thickness of the buffer, in A.
        buffer: f64,
        /// Thickness of the fixed shell outside it, in A.
        fixed: f64,
    },
}

impl End {
    fn side(self) -> Side {
        match self {
            Self::Periodic => Side::Periodic,
            Self::Free => Side::FREE,
            Self::Shells { buffer, fixed } => Side::Shells { buffer, fixed },
        }
    }
}

/// Potential.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PotentialInput {
    /// One file, or with funcfl one per element; built-in parameters if there is none.
    pub files: Vec<PathBuf>,
    /// Elements, in the order of the lattice's species; Cu if none is given.
    pub elements: Vec<String>,
}

/// Relaxation of every step that says nothing else.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RelaxationInput {
    /// Way to the minimum.
    pub method: Option<Method>,
    /// Largest component of a force, in eV/A.
    pub max_force: Option<f64>,
    /// Two-norm of all forces, in eV/A.
    pub force_norm: Option<f64>,
    /// Change of the energy in an iteration, over the energy.
    pub energy: Option<f64>,
    /// Cap on lines.
    pub iterations: Option<u64>,
    /// Cap on evaluations.
    pub evaluations: Option<u64>,
    /// Largest change of a coordinate in a step, in A.
    pub max_step: Option<f64>,
    /// How far lists reach beyond the cutoff, in A.
    pub skin: Option<f64>,
    /// About how many atoms a block has.
    pub block: Option<usize>,
    /// Axes of the box that are stretched until there is no pressure along them; those in one word by one factor.
    #[serde(rename = "box")]
    pub axes: Vec<String>,
    /// Largest pressure that may be left along them, in GPa.
    pub max_pressure: Option<f64>,
}

/// A step: changes, then a relaxation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StepInput {
    /// For people; its number if not given.
    pub name: Option<String>,
    /// Changes, in this order.
    pub disturb: Vec<Aberration>,
    /// How often the step is taken; once if not given.
    pub repeat: Option<u32>,
    /// `false`: only energy and forces are computed.
    pub relax: Option<bool>,
    /// As in `[relaxation]`.
    pub max_force: Option<f64>,
    /// As in `[relaxation]`.
    pub iterations: Option<u64>,
    /// As in `[relaxation]`.
    pub evaluations: Option<u64>,
    /// As in `[relaxation]`; empty to hold the box in this step.
    #[serde(rename = "box")]
    pub axes: Option<Vec<String>>,
}

/// Files that are written at the end; none if not given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Output {
    /// Extended XYZ.
    pub xyz: Option<PathBuf>,
    /// LAMMPS dump.
    pub dump: Option<PathBuf>,
    /// Atoms after each step too, in files named by its number: `end.2.xyz`.
    pub each_step: bool,
    /// Energy and largest force of each evaluation, as CSV.
    pub trace: Option<PathBuf>,
}

impl Input {
    /// Reads a file. Paths in it start from its folder.
    ///
    /// # Errors
    /// It cannot be read, or the first key or value that is wrong, with its line.
    pub fn read(file: &Path) -> Result<Self, InputError> {
        Self::parse(file, &read_text(file)?)
    }

    /// The same of a file with this text.
    fn parse(file: &Path, text: &str) -> Result<Self, InputError> {
        let hint = "; is this an input file in TOML? A file of atoms is named in one, as `file` in [crystal]";
        let mut input: Self = parse_toml(file, text, hint)?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let Self { crystal, potential, output, .. } = &mut input;
        let outputs = [&mut output.xyz, &mut output.dump, &mut output.trace];
        let paths = outputs.into_iter().flatten().chain(&mut crystal.file).chain(&mut potential.files);
        paths.for_each(|path| *path = folder.join(&*path));
        Ok(input)
    }
}
