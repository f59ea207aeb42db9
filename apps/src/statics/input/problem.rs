//! From the input to the problem: what is missing gets its default, and what makes no sense is refused.

use super::{End, Input, StepInput};
use crate::statics::crystal::lattice::{Kind, Lattice, Site};
use crate::statics::crystal::oriented::AS_IT_IS;
use crate::statics::crystal::read;
use crate::statics::crystal::{Crystal, CrystalError, Side};
use crate::statics::partition::{ATOMS_PER_BLOCK, Partition};
use crate::statics::potential::{Format, Potential, PotentialError, analytic};
use crate::statics::pressure::Together;
use crate::statics::problem::{Problem, Step};
use crate::statics::relax::{Limits, Method};
use crate::statics::studies::{Material, StudyError};
use crate::text_file::FileError;

/// Why an input is not usable.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file, or one of atoms.
    #[error(transparent)]
    File(#[from] FileError),
    /// A value that does not fit, by its key.
    #[error("{key}: {message}")]
    Value {
        /// Path of the key in the file, and the option that says the same.
        key: String,
        /// What is wrong.
        message: String,
    },
    /// No such crystal.
    #[error("[crystal] and [boundary]: {0}")]
    Crystal(#[from] CrystalError),
    /// A potential.
    #[error("[potential]: {0}")]
    Potential(#[from] PotentialError),
    /// No lattice constant.
    #[error("crystal.a is not given and cannot be found: {0}")]
    AtRest(#[from] StudyError),
}

fn value(key: &str, message: impl Into<String>) -> InputError {
    InputError::Value { key: key.into(), message: message.into() }
}

/// Most neighbours of an atom on average: a hundred times those in any metal.
const MOST_NEIGHBOURS: f64 = 20_000.0;

/// Most steps, repeats counted.
const MOST_STEPS: usize = 10_000;

impl Input {
    /// The potential.
    ///
    /// # Errors
    /// It cannot be read, or is for other elements.
    pub fn potential(&self) -> Result<Potential, InputError> {
        let elements = self.elements();
        let Some(first) = self.potential.files.first() else {
            let [element] = &elements[..] else {
                let message = "built-in parameters are for one element; give files, or --potential";
                return Err(value("potential.elements", message));
            };
            let (model, _) = analytic::model_of(element).unwrap_or((analytic::Model::SuttonChen, 0.0));
            return Ok(analytic::built_in(model, element)?);
        };
        let Some(format) = Format::of_name(first) else {
            let message = "its name has to end with .eam.alloy, .setfl, .eam.fs, .eam or .funcfl";
            return Err(value("potential.files", format!("{}: {message}", first.display())));
        };
        Ok(Potential::read(&self.potential.files, format, &elements)?)
    }

    fn elements(&self) -> Vec<String> {
        let given = self.potential.elements.clone();
        if given.is_empty() { vec!["Cu".into()] } else { given }
    }

    /// The lattice that is named, fcc if none is.
    pub fn kind(&self) -> Kind {
        self.crystal.lattice.unwrap_or(Kind::Fcc)
    }

    /// The way to the minimum.
    pub fn method(&self) -> Method {
        self.relaxation.method.unwrap_or(Method::Cg)
    }

    /// Whether any step stretches the box.
    pub fn stretches(&self) -> bool {
        let of_steps = self.step.iter().filter_map(|step| step.axes.as_ref());
        !self.relaxation.axes.is_empty() || of_steps.into_iter().any(|axes| !axes.is_empty())
    }

    /// When a relaxation ends.
    ///
    /// # Errors
    /// Limits that are negative or no numbers.
    pub fn limits(&self) -> Result<Limits, InputError> {
        let (given, usual) = (&self.relaxation, Limits::default());
        let limit =
            |key: &str, given: Option<f64>, usual: f64| tolerance(&format!("relaxation.{key}"), given, usual);
        let max_step = limit("max_step", given.max_step, usual.max_step)?;
        if max_step <= 0.0 || max_step > 1.0 {
            return Err(value(
                "relaxation.max_step",
                format!("{max_step} A; give more than 0 and at most 1"),
            ));
        }
        Ok(Limits {
            max_force: limit("max_force", given.max_force, usual.max_force)?,
            force_norm: limit("force_norm", given.force_norm, usual.force_norm)?,
            energy: limit("energy", given.energy, usual.energy)?,
            iterations: given.iterations.unwrap_or(usual.iterations),
            evaluations: given.evaluations.unwrap_or(usual.evaluations).max(1),
            max_step,
        })
    }

    /// The crystal, its potential and its steps. What has to be found for a lattice constant that is not given takes a
    /// second or two.
    ///
    /// # Errors
    /// The first thing that makes no sense.
    pub fn problem(&self) -> Result<Problem, InputError> {
        let potential = self.potential()?;
        let crystal = self.crystal(&potential)?;
        let skin = self.relaxation.skin.unwrap_or(0.5);
        if !(0.0..=10.0).contains(&skin) {
            return Err(value("relaxation.skin", format!("{skin}; give 0 to 10 A")));
        }
        let block = self.relaxation.block.unwrap_or(ATOMS_PER_BLOCK);
        let partition = Partition::of(&crystal, block.max(1));
        let named = self.crystal.file.is_none() && self.crystal.edges.is_none();
        let opposite = if named && matches!(self.kind(), Kind::Bcc | Kind::B2) { 8 } else { 12 };
        let (method, steps) = (self.method(), self.steps(&crystal)?);
        let problem = Problem { potential, crystal, partition, skin, method, opposite, steps };
        let neighbours = problem.neighbours();
        let is_empty = named && neighbours < 1.0;
        if is_empty || neighbours > MOST_NEIGHBOURS {
            let message = format!(
                "each atom has {} others within {} A, where it feels them; are all lengths in A?",
                if is_empty { "no".into() } else { format!("about {neighbours:.0}") },
                problem.reach()
            );
            return Err(value("crystal", message));
        }
        for step in &problem.steps {
            for change in &step.disturb {
                let wrong = |message| value(&format!("step {}: {}", step.name, change.name()), message);
                change.check(&problem).map_err(wrong)?;
            }
        }
        Ok(problem)
    }

    fn sides(&self, file_says: Option<[bool; 3]>) -> [Side; 3] {
        let given = [self.boundary.x, self.boundary.y, self.boundary.z];
        std::array::from_fn(|k| {
            let periodic = file_says.is_none_or(|periodic| periodic[k]);
            given[k].unwrap_or(if periodic { End::Periodic } else { End::Free }).side()
        })
    }

    fn crystal(&self, potential: &Potential) -> Result<Crystal, InputError> {
        let given = &self.crystal;
        let names = potential.names();
        if let Some(file) = &given.file {
            let else_given = given.lattice.is_some() || given.a.is_some() || given.size.is_some();
            if else_given || given.orient.is_some() || given.edges.is_some() || !given.sites.is_empty() {
                let message = "a file of atoms takes no lattice, a, edges, sites, orient or size beside it";
                return Err(value("crystal.file", message));
            }
            let atoms = read::read(file, names)?;
            return Ok(Crystal::listed(atoms.lengths, &atoms, self.sides(atoms.periodic))?);
        }
        let lattice = self.lattice(potential)?;
        let species = lattice.sites().iter().map(|site| usize::from(site.species) + 1).max().unwrap_or(1);
        if species > potential.species() {
            let message =
                format!("this lattice has {species} species; name as many, or give them with --element");
            return Err(value("potential.elements", message));
        }
        let triads = given.orient.map_or(AS_IT_IS, |orient| [orient.x, orient.y, orient.z]);
        let size = given.size.unwrap_or([10; 3]);
        Ok(Crystal::new(&lattice, &triads, size, self.sides(None))?)
    }

    fn lattice(&self, potential: &Potential) -> Result<Lattice, InputError> {
        let given = &self.crystal;
        if let Some(edges) = given.edges {
            if given.lattice.is_some() || given.a.is_some() || given.c_over_a.is_some() {
                return Err(value(
                    "crystal.edges",
                    "a custom cell takes no lattice, a or c_over_a beside it",
                ));
            }
            let site = |(n, site): (usize, &super::SiteInput)| {
                let name = site.element.as_ref().unwrap_or(&potential.names()[0]);
                let species = potential.names().iter().position(|known| known == name);
                let missing =
                    || value(&format!("crystal.sites[{n}]"), format!("{name} is not in the potential"));
                Ok(Site { at: site.at, species: species.ok_or_else(missing)? as u8 })
            };
            let sites: Result<Vec<Site>, InputError> = given.sites.iter().enumerate().map(site).collect();
            return Ok(Lattice::custom(edges, sites?)?);
        }
        if !given.sites.is_empty() {
            return Err(value("crystal.sites", "a custom cell needs edges too"));
        }
        let kind = self.kind();
        if let Some(a) = given.a {
            return Ok(Lattice::named(kind, a, given.c_over_a)?);
        }
        let rest = Material::new(potential.clone(), kind, Method::Cg, Limits::default())?.at_rest(None)?;
        let ratio = (kind == Kind::Hcp).then_some(given.c_over_a.unwrap_or(rest.c_over_a));
        Ok(Lattice::named(kind, rest.a, ratio)?)
    }

    fn steps(&self, crystal: &Crystal) -> Result<Vec<Step>, InputError> {
        let (limits, groups) = (self.limits()?, groups("relaxation.box", &self.relaxation.axes, crystal)?);
        let max_pressure = tolerance("relaxation.max_pressure", self.relaxation.max_pressure, MAX_PRESSURE)?;
        let mut steps = Vec::new();
        for (n, given) in self.step.iter().enumerate() {
            let repeat = given.repeat.unwrap_or(1) as usize;
            if repeat == 0 || steps.len() + repeat > MOST_STEPS {
                let message = format!("{repeat}; give 1 or more, and at most {MOST_STEPS} steps in all");
                return Err(value(&format!("step {}: repeat", n + 1), message));
            }
            let name = given.name.clone().unwrap_or_else(|| (n + 1).to_string());
            let limits = given.limits(limits, &name)?;
            let groups = match &given.axes {
                _ if given.relax == Some(false) => Vec::new(),
                Some(axes) => self::groups(&format!("step {name}: box"), axes, crystal)?,
                None => groups.clone(),
            };
            for turn in 1..=repeat {
                let name = if repeat > 1 { format!("{name} ({turn} of {repeat})") } else { name.clone() };
                let (disturb, groups) = (given.disturb.clone(), groups.clone());
                steps.push(Step { name, disturb, limits, groups, max_pressure });
            }
        }
        if steps.is_empty() {
            steps.push(Step { name: "1".into(), disturb: Vec::new(), limits, groups, max_pressure });
        }
        Ok(steps)
    }
}

/// Largest pressure that is left in a box, in GPa: a few 1e-7 of a metal's length.
const MAX_PRESSURE: f64 = 1e-4;

/// Axes that are stretched together, from words such as `xy`.
fn groups(key: &str, words: &[String], crystal: &Crystal) -> Result<Vec<Together>, InputError> {
    let mut seen = [false; 3];
    let mut axis = |name: char| {
        let found = ['x', 'y', 'z'].into_iter().position(|known| known == name);
        let axis = found.ok_or_else(|| value(key, format!("{name:?} is no axis; give some of x, y, z")))?;
        if std::mem::replace(&mut seen[axis], true) {
            return Err(value(key, format!("axis {name} is there twice")));
        }
        if crystal.sides()[axis] != Side::Periodic {
            return Err(value(key, format!("axis {name} ends; only periodic axes can be stretched")));
        }
        Ok(axis)
    };
    words.iter().filter(|word| !word.is_empty()).map(|word| word.chars().map(&mut axis).collect()).collect()
}

impl StepInput {
    fn limits(&self, usual: Limits, name: &str) -> Result<Limits, InputError> {
        let limits = Limits {
            max_force: tolerance(&format!("step {name}: max_force"), self.max_force, usual.max_force)?,
            iterations: self.iterations.unwrap_or(usual.iterations),
            evaluations: self.evaluations.unwrap_or(usual.evaluations).max(1),
            ..usual
        };
        let is_relaxed = self.relax != Some(false);
        Ok(if is_relaxed { limits } else { Limits { evaluations: 1, ..limits }.without_tolerances() })
    }
}

/// A number that is 0 or more.
fn tolerance(key: &str, given: Option<f64>, usual: f64) -> Result<f64, InputError> {
    let found = given.unwrap_or(usual);
    if found.is_finite() && found >= 0.0 {
        return Ok(found);
    }
    Err(value(key, format!("{found}; give 0 or more")))
}
