//! What a user says of a relaxation on the command line, and whether it makes sense.

use super::crystal::lattice::{Kind, Lattice};
use super::crystal::oriented::AS_IT_IS;
use super::crystal::{Crystal, Side};
use super::partition::{ATOMS_PER_BLOCK, Partition};
use super::potential::{Format, Potential, analytic};
use super::problem::Problem;
use super::relax::{Limits, Method};
use super::studies::Material;
use chares::RunError;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::Display;
use std::path::PathBuf;

/// Arguments of `run statics`.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct Statics {
    /// Who holds the atoms
    #[arg(long, value_enum, default_value = "cblocks")]
    pub mode: Mode,
    /// Potential: *.eam.alloy, *.setfl, *.eam.fs, or one *.eam per element; built-in parameters if absent
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub potential: Vec<PathBuf>,
    /// Elements, in the order of the lattice's species
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "Cu")]
    pub element: Vec<String>,
    /// Lattice
    #[arg(long, value_enum, default_value = "fcc")]
    pub lattice: Kind,
    /// Lattice constant in A; the one without pressure if absent
    #[arg(long)]
    pub a: Option<f64>,
    /// Cells along x, y and z, or one number for all
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "10")]
    pub size: Vec<usize>,
    /// Axes that end in shells of buffer and fixed atoms, e.g. xy; the others go round
    #[arg(long, value_name = "AXES", default_value = "")]
    pub ends: String,
    /// Thickness in A of the shell of buffer atoms at each end
    #[arg(long, default_value_t = 0.0)]
    pub buffer: f64,
    /// Thickness in A of the shell of fixed atoms at each end, outside the buffer
    #[arg(long, default_value_t = 0.0)]
    pub fixed: f64,
    /// Ids of atoms that are taken out
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub vacancy: Vec<u64>,
    /// Begin with every free atom up to so many A beside its place, by a rule that depends on its id only
    #[arg(long, default_value_t = 0.0)]
    pub shake: f64,
    /// The way to the minimum
    #[arg(long, value_enum, default_value = "cg")]
    pub method: Method,
    /// End when the largest component of a force is at most this, in eV/A
    #[arg(long, default_value_t = 1e-8)]
    pub max_force: f64,
    /// End after so many lines
    #[arg(long, default_value_t = Limits::default().iterations)]
    pub iterations: u64,
    /// End after so many evaluations of energy and forces
    #[arg(long, default_value_t = Limits::default().evaluations)]
    pub evaluations: u64,
    /// How far in A the lists reach beyond the cutoff
    #[arg(long, default_value_t = 0.5)]
    pub skin: f64,
    /// About how many atoms a block has. Results with the same number are the same bits on any nodes
    #[arg(long, default_value_t = ATOMS_PER_BLOCK)]
    pub block: usize,
    /// What the launcher read for the nodes.
    #[arg(skip)]
    pub known: Known,
}

/// Who holds the atoms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Blocks of the crystal, spread over the nodes by speed
    #[value(name = "cblocks")]
    CBlocks,
    /// All atoms on every PE, each of which computes a part
    Replicated,
    /// All atoms in the launcher's one thread
    Serial,
}

/// Potential and lattice constant, found on the launcher. Travels to the nodes, and is left out of reports.
#[derive(Clone, Debug, Default)]
pub struct Known(Option<(Potential, f64)>);

impl Serialize for Known {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_none()
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Known {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self)
    }
}

fn wrong(reason: impl Display) -> RunError {
    RunError::Input(reason.to_string())
}

/// Checks arguments before any node is started.
pub(super) fn check(statics: &Statics) -> Result<(), RunError> {
    statics.clone().completed().problem().map(|_| ())
}

impl Statics {
    /// The same with what files and studies say, for nodes, which do not have them; as it was if they say nothing.
    #[must_use]
    pub fn completed(mut self) -> Self {
        if self.known.0.is_none() {
            self.known = Known(self.read().ok());
        }
        self
    }

    fn read(&self) -> Result<(Potential, f64), RunError> {
        let potential = self.read_potential()?;
        let a = match self.a {
            Some(a) => a,
            None => {
                let material = Material::new(potential.clone(), self.lattice, Method::Cg, Limits::default());
                material.and_then(|material| material.at_rest(None)).map_err(wrong)?.a
            }
        };
        Ok((potential, a))
    }

    fn read_potential(&self) -> Result<Potential, RunError> {
        let Some(first) = self.potential.first() else {
            let [element] = &self.element[..] else {
                return Err(wrong("built-in potentials are for one --element; give a --potential for more"));
            };
            let (model, _) = analytic::model_of(element).unwrap_or((analytic::Model::SuttonChen, 0.0));
            return analytic::built_in(model, element).map_err(wrong);
        };
        let Some(format) = Format::of_name(first) else {
            return Err(wrong(format!(
                "--potential {}: its name has to end with .eam.alloy, .setfl, .eam.fs, .eam or .funcfl",
                first.display()
            )));
        };
        Potential::read(&self.potential, format, &self.element).map_err(wrong)
    }

    /// The crystal and how it is relaxed.
    ///
    /// # Errors
    /// What does not make sense.
    pub fn problem(&self) -> Result<Problem, RunError> {
        let (potential, a) = match &self.known.0 {
            Some(known) => known.clone(),
            None => self.read()?,
        };
        let lattice = Lattice::named(self.lattice, a, None).map_err(wrong)?;
        let cells = match self.size[..] {
            [n] => [n; 3],
            [x, y, z] => [x, y, z],
            _ => return Err(wrong(format!("--size {:?}: give one number of cells, or three", self.size))),
        };
        let crystal = Crystal::new(&lattice, &AS_IT_IS, cells, self.sides()?).map_err(wrong)?;
        let species = lattice.sites().iter().map(|site| usize::from(site.species) + 1).max().unwrap_or(1);
        if species > potential.species() {
            return Err(wrong(format!("this lattice has {species} species, name as many --element")));
        }
        let positive = |name: &str, value: f64| {
            let fits = value.is_finite() && (0.0..=10.0).contains(&value);
            if fits { Ok(value) } else { Err(wrong(format!("--{name} {value}: give 0 to 10 A"))) }
        };
        let limits = Limits {
            max_force: self.max_force,
            iterations: self.iterations,
            evaluations: self.evaluations,
            ..Limits::default()
        };
        if let Some(id) = self.vacancy.iter().find(|&&id| id >= crystal.atoms()) {
            return Err(wrong(format!("--vacancy {id}: ids run from 0 to {}", crystal.atoms() - 1)));
        }
        let mut removed = self.vacancy.clone();
        removed.sort_unstable();
        Ok(Problem {
            partition: Partition::of(&crystal, self.block),
            potential,
            crystal,
            skin: positive("skin", self.skin)?,
            method: self.method,
            limits,
            removed,
            shake: positive("shake", self.shake)?,
        })
    }

    fn sides(&self) -> Result<[Side; 3], RunError> {
        if let Some(other) = self.ends.chars().find(|axis| !"xyz".contains(*axis)) {
            return Err(wrong(format!("--ends {}: {other:?} is no axis; give some of xyz", self.ends)));
        }
        let shells = Side::Shells { buffer: self.buffer, fixed: self.fixed };
        Ok(['x', 'y', 'z'].map(|axis| if self.ends.contains(axis) { shells } else { Side::Periodic }))
    }

    /// What the kernel's speed depends on.
    #[must_use]
    pub fn kernel_key(&self) -> String {
        let names: Vec<String> = self.potential.iter().map(|file| file.display().to_string()).collect();
        format!("{:?} {:?} {:?} {:?} {} {}", self.lattice, self.element, names, self.a, self.skin, self.block)
    }

    /// Atoms times evaluations, about.
    #[must_use]
    pub fn work(&self) -> f64 {
        let evaluations = self.evaluations.min(50) as f64;
        self.problem().map_or(0.0, |problem| problem.crystal.atoms() as f64 * evaluations)
    }
}
