//! What a user says of a relaxation on the command line, and whether it makes sense.

use super::aberration::Aberration;
use super::crystal::lattice::Kind;
use super::input::{End, Input, InputError, StepInput};
use super::problem::Problem;
use super::relax::Method;
use super::study::Study;
use crate::output::{read, written};
use chares::RunError;
use clap::{Args, ValueEnum};
use command::NamedFile;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::path::PathBuf;

/// Arguments of `run statics`. Those that an input file can say too go over it; nothing has a default here, so that what
/// is given is known.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
pub struct Statics {
    /// Input file; every option here that is given goes over what it says
    #[arg(value_name = "INPUT.toml")]
    pub input: Option<PathBuf>,
    /// Compute properties of the material in place of a relaxation, on the launcher without nodes
    #[arg(long, value_enum)]
    pub study: Option<Study>,
    /// Who holds the atoms
    #[arg(long, value_enum, default_value = "cblocks")]
    pub mode: Mode,
    /// Potential: *.eam.alloy, *.setfl, *.eam.fs, or one *.eam per element; built-in parameters if absent
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub potential: Vec<PathBuf>,
    /// Elements, in the order of the lattice's species [default: Cu]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub element: Vec<String>,
    /// Lattice [default: fcc]
    #[arg(long, value_enum)]
    pub lattice: Option<Kind>,
    /// Lattice constant in A; the one without pressure if absent
    #[arg(long)]
    pub a: Option<f64>,
    /// Cells along x, y and z, or one number for all [default: 10]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub size: Vec<usize>,
    /// Axes that end, e.g. xy, in surfaces or in shells of --buffer and --fixed atoms; the others go round
    #[arg(long, value_name = "AXES")]
    pub ends: Option<String>,
    /// Thickness in A of the shell of buffer atoms at each of these ends
    #[arg(long, requires = "ends")]
    pub buffer: Option<f64>,
    /// Thickness in A of the shell of fixed atoms at each of these ends, outside the buffer
    #[arg(long, requires = "ends")]
    pub fixed: Option<f64>,
    /// Ids of atoms that are taken out, before the first step
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub vacancy: Vec<u64>,
    /// Begin with every free atom up to so many A beside its place, by a rule that depends on its id only
    #[arg(long)]
    pub shake: Option<f64>,
    /// The way to the minimum [default: cg]
    #[arg(long, value_enum)]
    pub method: Option<Method>,
    /// End when the largest component of a force is at most this, in eV/A [default: 1e-8]
    #[arg(long)]
    pub max_force: Option<f64>,
    /// End after so many lines [default: 10000]
    #[arg(long)]
    pub iterations: Option<u64>,
    /// End after so many evaluations of energy and forces [default: 50000]
    #[arg(long)]
    pub evaluations: Option<u64>,
    /// How far in A the lists reach beyond the cutoff [default: 0.5]
    #[arg(long)]
    pub skin: Option<f64>,
    /// About how many atoms a block has. Results with the same number are the same bits on any nodes [default: 4096]
    #[arg(long)]
    pub block: Option<usize>,
    /// Stretch these periodic axes of the box until there is no pressure along them: each of x,y,z by itself, xyz all by
    /// one factor, or xy,z
    #[arg(long = "box", value_name = "AXES", value_delimiter = ',')]
    pub axes: Vec<String>,
    /// Largest pressure in GPa that may be left along them [default: 1e-4]
    #[arg(long)]
    pub max_pressure: Option<f64>,
    /// Write the atoms as extended XYZ, with energy, density, force, displacement, centro-symmetry and structure
    #[arg(long, value_name = "FILE")]
    pub xyz: Option<PathBuf>,
    /// The same as a LAMMPS dump
    #[arg(long, value_name = "FILE")]
    pub dump: Option<PathBuf>,
    /// Write the atoms after each step too, in files named by its number: end.2.xyz
    #[arg(long)]
    pub each_step: bool,
    /// Write energy and largest force of every evaluation as CSV
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// What the launcher read for the nodes.
    #[arg(skip)]
    pub known: Known,
}

/// Who holds the atoms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Blocks of the crystal, spread over the nodes by speed
    #[default]
    #[value(name = "cblocks")]
    CBlocks,
    /// All atoms on every PE, each of which computes a part
    Replicated,
    /// All atoms in the launcher's one thread, without nodes
    Serial,
}

/// What the launcher read, once: the input, and what is relaxed, with all that stands in files. Only the latter travels to
/// the nodes, for the kernel, without lists of atoms; and nothing is in reports.
#[derive(Clone, Debug, Default)]
pub struct Known {
    input: Option<Box<Input>>,
    problem: Option<Box<Problem>>,
}

impl Serialize for Known {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_none()
        } else {
            self.problem.as_deref().map(Problem::without_list).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Known {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(|problem| Self { input: None, problem })
    }
}

fn wrong(error: InputError) -> RunError {
    RunError::Input(error.to_string())
}

fn option(name: &str, message: &str) -> RunError {
    RunError::Input(format!("--{name}: {message}"))
}

impl Statics {
    /// The same with what files say, for the driver, and for nodes, which do not have them.
    ///
    /// # Errors
    /// What does not make sense.
    pub fn completed(mut self) -> Result<Self, RunError> {
        let input = self.merged()?;
        if self.study.is_some() {
            // What a file says of its output is of the runs that it is also for.
            let options = [("--xyz", &self.xyz), ("--dump", &self.dump), ("--trace", &self.trace)];
            if let Some((name, _)) = options.iter().find(|(_, path)| path.is_some()) {
                return Err(RunError::Input(format!(
                    "{name}: a study computes properties of the material and writes no atoms; leave it out"
                )));
            }
        } else {
            let outputs = [&input.output.xyz, &input.output.dump, &input.output.trace];
            outputs.into_iter().flatten().try_for_each(|path| crate::output::check_writable(path))?;
            self.known.problem = Some(Box::new(input.problem().map_err(wrong)?));
        }
        self.known.input = Some(Box::new(input));
        Ok(self)
    }

    /// Options that say nothing beside the others.
    #[must_use]
    pub fn unused(&self) -> Vec<(&'static str, String)> {
        let Ok(input) = self.input() else { return Vec::new() };
        let changes = ["ends", "vacancy", "shake", "block", "skin"];
        let of_relaxations = ["axes", "max_pressure", "mode"];
        let (names, why) = match self.study {
            Some(Study::Pressure) => {
                (&of_relaxations[..], "this study stretches nothing and relaxes nothing")
            }
            Some(_) => {
                let has_size = !matches!(self.study, Some(Study::Lattice | Study::Elastic));
                let all = changes.into_iter().chain(of_relaxations).chain((!has_size).then_some("size"));
                let why = "a study makes the crystals that it needs by itself";
                return all.map(|name| (name, why.into())).collect();
            }
            None if !input.stretches() => {
                (&["max_pressure"][..], "no axis of the box is stretched, which --box says")
            }
            None => (&[][..], ""),
        };
        names.iter().map(|name| (*name, why.into())).collect()
    }

    /// The files that are read and written, those that the input file names among them.
    #[must_use]
    pub fn files(&self) -> Vec<NamedFile> {
        let Some(input) = self.known.input.as_deref() else { return Vec::new() };
        let potentials = input.potential.files.iter().map(|file| NamedFile::read("--potential", file));
        let named = [("the input file", &self.input), ("the crystal's file", &input.crystal.file)];
        let output = &input.output;
        let outputs = [("--xyz", &output.xyz), ("--dump", &output.dump), ("--trace", &output.trace)];
        read(named).chain(potentials).chain(written(outputs)).collect()
    }

    /// Whether the launcher does all by itself.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.study.is_some() || self.mode == Mode::Serial
    }

    /// The input with all options over it.
    ///
    /// # Errors
    /// What does not make sense.
    pub fn input(&self) -> Result<Input, RunError> {
        self.known.input.as_deref().map_or_else(|| self.merged(), |known| Ok(known.clone()))
    }

    /// The crystal and how it is relaxed.
    ///
    /// # Errors
    /// What does not make sense.
    pub fn problem(&self) -> Result<Problem, RunError> {
        match &self.known.problem {
            Some(known) => Ok((**known).clone()),
            None => self.input()?.problem().map_err(wrong),
        }
    }

    /// The input file, or an empty one, with all options that are given over it. `--vacancy` and `--shake` come before
    /// all else of the first step.
    ///
    /// # Errors
    /// The file, or an option that says nothing.
    pub fn merged(&self) -> Result<Input, RunError> {
        let mut input = match &self.input {
            Some(file) => Input::read(file).map_err(wrong)?,
            None => Input::default(),
        };
        replace(&mut input.crystal.lattice, &self.lattice);
        replace(&mut input.crystal.a, &self.a);
        let size = match self.size[..] {
            [] => None,
            [n] => Some([n; 3]),
            [x, y, z] => Some([x, y, z]),
            _ => return Err(option("size", "give one number of cells, or three")),
        };
        replace(&mut input.crystal.size, &size);
        if !self.potential.is_empty() {
            input.potential.files.clone_from(&self.potential);
        }
        if !self.element.is_empty() {
            input.potential.elements.clone_from(&self.element);
        }
        self.merge_ends(&mut input)?;
        let relaxation = &mut input.relaxation;
        replace(&mut relaxation.method, &self.method);
        replace(&mut relaxation.max_force, &self.max_force);
        replace(&mut relaxation.iterations, &self.iterations);
        replace(&mut relaxation.evaluations, &self.evaluations);
        replace(&mut relaxation.skin, &self.skin);
        replace(&mut relaxation.block, &self.block);
        replace(&mut relaxation.max_pressure, &self.max_pressure);
        if !self.axes.is_empty() {
            relaxation.axes.clone_from(&self.axes);
        }
        replace(&mut input.output.xyz, &self.xyz);
        replace(&mut input.output.dump, &self.dump);
        replace(&mut input.output.trace, &self.trace);
        input.output.each_step |= self.each_step;
        if input.output.each_step && input.output.xyz.is_none() && input.output.dump.is_none() {
            return Err(option("each-step", "name the files too, with --xyz or --dump"));
        }
        self.merge_first(&mut input);
        Ok(input)
    }

    fn merge_ends(&self, input: &mut Input) -> Result<(), RunError> {
        let Some(ends) = &self.ends else { return Ok(()) };
        if let Some(other) = ends.chars().find(|axis| !"xyz".contains(*axis)) {
            return Err(option("ends", &format!("{other:?} is no axis; give some of xyz")));
        }
        let (buffer, fixed) = (self.buffer.unwrap_or(0.0), self.fixed.unwrap_or(0.0));
        let end = |axis| if ends.contains(axis) { End::Shells { buffer, fixed } } else { End::Periodic };
        let boundary = &mut input.boundary;
        (boundary.x, boundary.y, boundary.z) = (Some(end('x')), Some(end('y')), Some(end('z')));
        Ok(())
    }

    fn merge_first(&self, input: &mut Input) {
        let mut first = Vec::new();
        if !self.vacancy.is_empty() {
            first.push(Aberration::Vacancy { ids: self.vacancy.clone() });
        }
        first.extend(self.shake.map(|by| Aberration::Shake { by }));
        if first.is_empty() {
            return;
        }
        if input.step.is_empty() {
            input.step.push(StepInput::default());
        }
        input.step[0].disturb.splice(..0, first);
    }

    /// What the kernel's speed depends on.
    #[must_use]
    pub fn kernel_key(&self) -> String {
        let Some(problem) = &self.known.problem else { return format!("{self:?}") };
        let (potential, reach) = (&problem.potential, problem.reach());
        let atoms = problem.crystal.atoms() as f64 / problem.crystal.bounds().volume();
        let block = problem.crystal.atoms() as usize / problem.partition.len();
        format!("{:?} {} {reach} {atoms:.6} {block}", potential.names(), potential.bytes())
    }

    /// Atoms times evaluations, about; 0 if the arguments make no sense.
    #[must_use]
    pub fn work(&self) -> f64 {
        let evaluations =
            |problem: &Problem| -> u64 { problem.steps.iter().map(|step| step.limits.expected()).sum() };
        let work = |problem: &Problem| problem.crystal.atoms() as f64 * evaluations(problem) as f64;
        // Arguments that come from a report have not been completed.
        match &self.known.problem {
            Some(problem) => work(problem),
            None => self.problem().as_ref().map_or(0.0, work),
        }
    }
}

/// An option that is given takes the place of what a file says.
fn replace<T: Clone>(of_file: &mut Option<T>, given: &Option<T>) {
    if given.is_some() {
        of_file.clone_from(given);
    }
}
