//! Embedded-atom potentials: E = sum F(rho_i) + sum over pairs phi(r), rho_i the sum of the neighbours' densities.
//!
//! Read from the file formats of the field (setfl, funcfl, Finnis-Sinclair setfl) or built in; whatever the source,
//! the kernel sees the same tables. Units: A, eV.

pub mod analytic;
mod funcfl;
mod setfl;
pub mod spline;
#[cfg(test)]
mod tests;
mod text;

use spline::Cubic;
use std::fs;
use std::path::{Path, PathBuf};

/// Why there is no potential.
#[derive(Debug, thiserror::Error)]
pub enum PotentialError {
    /// The file cannot be read.
    #[error("cannot read the potential file {}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file does not hold what its format asks for.
    #[error("{}, line {line}: {message}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Line, from 1; 0 before the first.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// An element that the file does not have.
    #[error("the potential file {} has no element {element}; it has {present}", file.display())]
    NoSuchElement {
        /// The file.
        file: PathBuf,
        /// The element asked for.
        element: String,
        /// Those that the file has.
        present: String,
    },
    /// A built-in potential for an element that has none.
    #[error("there are no built-in {model} parameters for {element}; there are for {present}")]
    NotBuiltIn {
        /// The model.
        model: &'static str,
        /// The element asked for.
        element: String,
        /// Those that there are.
        present: String,
    },
    /// A request that no source can answer.
    #[error("{0}")]
    Unusable(String),
}

/// File formats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// `eam.alloy`: several elements, one density each.
    Setfl,
    /// `eam.fs`: several elements, one density per ordered pair.
    FinnisSinclair,
    /// `eam`: one element per file.
    Funcfl,
}

impl Format {
    /// The format that a file's name tells: `*.eam.alloy` and `*.setfl`, `*.eam.fs`, `*.eam` and `*.funcfl`.
    pub fn of_name(file: &Path) -> Option<Self> {
        let name = file.file_name()?.to_str()?.to_ascii_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        if ends(&[".alloy", ".setfl"]) {
            return Some(Self::Setfl);
        }
        if ends(&[".fs"]) {
            return Some(Self::FinnisSinclair);
        }
        ends(&[".eam", ".funcfl"]).then_some(Self::Funcfl)
    }
}

/// Tabulated functions before they become splines. Tables of pairs are indexed by target * elements + source.
#[derive(Debug)]
struct Tables {
    names: Vec<String>,
    masses: Vec<f64>,
    cutoff: f64,
    d_r: f64,
    d_rho: f64,
    rho_max: f64,
    embedding: Vec<Vec<f64>>,
    density: Vec<Vec<f64>>,
    pair: Vec<Vec<f64>>,
}

/// The cubics of one interval of the distance, in one cache line.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[repr(align(64))]
pub struct Interval {
    /// Density of the source at the target.
    pub density: Cubic,
    /// r phi(r).
    pub pair: Cubic,
}

/// Energy of one atom in the density of its neighbours.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
enum Embedding {
    /// Tabulated; beyond `rho_max` a straight line.
    Table { per_rho: f64, rho_max: f64, cubics: Vec<Cubic> },
    /// -strength sqrt(rho).
    Root { strength: f64 },
}

/// A potential for a number of species, which are numbered in the order of its names.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Potential {
    names: Vec<String>,
    masses: Vec<f64>,
    cutoff: f64,
    per_r: f64,
    embedding: Vec<Embedding>,
    pairs: Vec<Vec<Interval>>,
}

impl Potential {
    /// The elements `names` from `files`: one file, or with [`Format::Funcfl`] one file per element.
    ///
    /// # Errors
    /// The file cannot be read, is malformed (the line is named), or lacks an element.
    pub fn read(files: &[PathBuf], format: Format, names: &[String]) -> Result<Self, PotentialError> {
        if names.is_empty() || names.len() > usize::from(u8::MAX) {
            return Err(PotentialError::Unusable(format!(
                "a potential takes 1 to 255 species, not {}",
                names.len()
            )));
        }
        let texts = files.iter().map(|file| read_text(file)).collect::<Result<Vec<_>, _>>()?;
        files.iter().zip(&texts).try_for_each(|(file, text)| in_metal_units(file, text))?;
        let tables = match (format, &texts[..]) {
            (Format::Funcfl, _) => {
                if files.len() != names.len() {
                    return Err(PotentialError::Unusable(format!(
                        "funcfl holds one element per file: {} elements need {0} files, not {}",
                        names.len(),
                        files.len()
                    )));
                }
                let texts = files.iter().zip(&texts).zip(names);
                let read = texts.map(|((file, text), name)| funcfl::read(file, text, name));
                funcfl::mix(&read.collect::<Result<Vec<_>, _>>()?, names)
            }
            (Format::Setfl, [text]) => setfl::read(&files[0], text, setfl::Kind::Alloy, names)?,
            (Format::FinnisSinclair, [text]) => {
                setfl::read(&files[0], text, setfl::Kind::FinnisSinclair, names)?
            }
            _ => {
                return Err(PotentialError::Unusable(format!(
                    "this format has all elements in one file; {} files are given",
                    files.len()
                )));
            }
        };
        Ok(Self::from_tables(&tables))
    }

    fn from_tables(tables: &Tables) -> Self {
        let embedding = |values: &Vec<f64>| Embedding::Table {
            per_rho: 1.0 / tables.d_rho,
            rho_max: tables.rho_max,
            cubics: spline::cubics(values),
        };
        let interval = |(density, pair)| Interval { density, pair };
        let pairs = |(density, pair): (&Vec<f64>, &Vec<f64>)| {
            spline::cubics(density).into_iter().zip(spline::cubics(pair)).map(interval).collect()
        };
        Self {
            names: tables.names.clone(),
            masses: tables.masses.clone(),
            cutoff: tables.cutoff,
            per_r: 1.0 / tables.d_r,
            embedding: tables.embedding.iter().map(embedding).collect(),
            pairs: tables.density.iter().zip(&tables.pair).map(pairs).collect(),
        }
    }

    /// One species by itself.
    #[must_use]
    pub fn only(&self, species: u8) -> Self {
        let index = usize::from(species);
        Self {
            names: vec![self.names[index].clone()],
            masses: vec![self.masses[index]],
            cutoff: self.cutoff,
            per_r: self.per_r,
            embedding: vec![self.embedding[index].clone()],
            pairs: vec![self.intervals(species, species).to_vec()],
        }
    }

    /// Names of the species.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Atomic masses, in u.
    pub fn masses(&self) -> &[f64] {
        &self.masses
    }

    /// Number of species.
    pub fn species(&self) -> usize {
        self.names.len()
    }

    /// Distance in A from which on atoms do not feel each other.
    pub fn cutoff(&self) -> f64 {
        self.cutoff
    }

    /// Bytes of memory that the tables take.
    pub fn bytes(&self) -> u64 {
        let of = |embedding: &Embedding| match embedding {
            Embedding::Table { cubics, .. } => cubics.len() * size_of::<Cubic>(),
            Embedding::Root { .. } => 0,
        };
        let pairs = self.pairs.iter().map(|intervals| intervals.len() * size_of::<Interval>());
        (pairs.sum::<usize>() + self.embedding.iter().map(of).sum::<usize>()) as u64
    }

    /// Intervals of the distance per A.
    #[inline(always)]
    pub fn per_r(&self) -> f64 {
        self.per_r
    }

    /// The intervals of what `target` feels of `source`.
    #[inline(always)]
    pub fn intervals(&self, target: u8, source: u8) -> &[Interval] {
        &self.pairs[usize::from(target) * self.embedding.len() + usize::from(source)]
    }

    /// F(rho) and F'(rho) of a species, eV. Beyond the end of a table the energy goes on in a straight line.
    pub fn embed(&self, species: u8, rho: f64) -> (f64, f64) {
        match &self.embedding[usize::from(species)] {
            Embedding::Root { .. } if rho == 0.0 => (0.0, 0.0),
            Embedding::Root { strength } => {
                let root = rho.sqrt();
                (-strength * root, -0.5 * strength / root)
            }
            Embedding::Table { per_rho, rho_max, cubics } => {
                let (m, p) = spline::locate(rho * per_rho, cubics.len());
                let slope = spline::slope(&cubics[m], p) * per_rho;
                let beyond = if rho > *rho_max { slope * (rho - rho_max) } else { 0.0 };
                // A density that is no number must not end as a number.
                (spline::value(&cubics[m], p) + beyond + 0.0 * rho, slope + 0.0 * rho)
            }
        }
    }

    /// Density of `source` at `target` and phi at a distance, for tables and tests; 0 from the cutoff on.
    pub fn pair(&self, target: u8, source: u8, r: f64) -> (f64, f64) {
        if r >= self.cutoff {
            return (0.0, 0.0);
        }
        let intervals = self.intervals(target, source);
        let (m, p) = spline::locate(r * self.per_r, intervals.len());
        (spline::value(&intervals[m].density, p), spline::value(&intervals[m].pair, p) / r)
    }
}

fn read_text(file: &Path) -> Result<String, PotentialError> {
    let bytes = fs::read(file).map_err(|source| PotentialError::Unreadable { file: file.into(), source })?;
    // Comments of old files are in any encoding; numbers are plain.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Refuses a file whose first line says, as in LAMMPS' own files, that its units are others than A and eV.
fn in_metal_units(file: &Path, text: &str) -> Result<(), PotentialError> {
    let said = text.lines().next().and_then(|line| line.split_once("UNITS:"));
    match said.and_then(|(_, after)| after.split_whitespace().next()) {
        None | Some("metal") => Ok(()),
        Some(other) => {
            let message = format!("the units are {other}; only metal, which is A and eV, is read");
            Err(PotentialError::Malformed { file: file.into(), line: 1, message })
        }
    }
}
