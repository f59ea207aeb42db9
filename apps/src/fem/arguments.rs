//! What a user says of a problem, and whether it makes sense.

use super::input::{Announced, Input, InputError, Kind, Said};
use super::msh;
use super::problem::{Domain, Method, Physics, Preconditioner, Problem, Solver, Source};
use super::swelling_input::Times;
use crate::output::{check_option, read, written};
use chares::RunError;
use clap::Args;
use command::NamedFile;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Nodes of a subdomain, about, unless asked otherwise: few enough that there are several for each PE.
pub(super) const NODES_EACH: usize = 1 << 14;
/// A smaller mesh is cut into so many anyhow, as long as they have so many nodes.
const PARTS_LEAST: usize = 16;
const NODES_LEAST: usize = 256;
/// Most subdomains.
const PARTS_MAX: usize = 4096;

/// Arguments of `run fem`. Those that an input file can say too go over it.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
pub struct Fem {
    /// Input file: the equation, the mesh, what holds at the boundary. Without one a problem whose solution is known
    #[arg(value_name = "INPUT.toml")]
    pub input: Option<PathBuf>,
    /// The equation [default: poisson]
    #[arg(long, value_enum)]
    pub physics: Option<Kind>,
    /// A mesh of Gmsh, ASCII, version 4.1, in place of a box
    #[arg(long, value_name = "FILE.msh")]
    pub mesh: Option<PathBuf>,
    /// Dimensions of a box, 2 or 3 [default: 2]
    #[arg(long)]
    pub dim: Option<usize>,
    /// Elements along x, y and z of a box, or one number for all [default: 64]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub elements: Vec<usize>,
    /// Length of a box along x, y and z, or one number for all [default: 1]
    #[arg(long, value_name = "LENGTH", value_delimiter = ',')]
    pub size: Vec<f64>,
    /// Degree of the elements' functions: 1 (Q1) or 2 (Q2) [default: 1]
    #[arg(long)]
    pub order: Option<usize>,
    /// The iteration [default: cg, with wind gmres]
    #[arg(long, value_enum)]
    pub method: Option<Method>,
    /// What helps the iteration [default: multigrid in boxes, ilu in meshes from files and with wind]
    #[arg(long, value_enum)]
    pub preconditioner: Option<Preconditioner>,
    /// Stop when the residual is this part of what it was
    #[arg(long, default_value_t = 1e-8)]
    pub tolerance: f64,
    /// Iterations after which it ends without convergence
    #[arg(long, default_value_t = 10_000)]
    pub max_iterations: u32,
    /// Subdomains, each of which can move; chosen by the size of the mesh if absent
    #[arg(long, value_name = "N")]
    pub subdomains: Option<usize>,
    /// Unknowns of the mesh that multigrid solves at one place, at most
    #[arg(long, value_name = "N", default_value_t = 2500)]
    pub coarsest: usize,
    /// Write mesh and solution for ParaView
    #[arg(long, value_name = "FILE.vtu")]
    pub vtu: Option<PathBuf>,
    /// Write the solution, a row for each node
    #[arg(long, value_name = "FILE.npy")]
    pub out: Option<PathBuf>,
    /// Check the solution element by element; a wrong one gives a non-zero exit code
    #[arg(long)]
    pub verify: bool,
    /// Of bodies that swell.
    #[command(flatten)]
    #[serde(default)]
    pub times: Times,
    /// What the launcher read, for nodes that do not have the files.
    #[arg(skip)]
    pub known: Known,
}

/// What the launcher read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Known {
    input: Option<Input>,
    mesh: Option<Announced>,
}

fn wrong(error: InputError) -> RunError {
    RunError::Input(error.to_string())
}

/// Most subdomains of so many nodes.
pub(super) fn most_parts(nodes: usize) -> usize {
    (nodes / 8).clamp(1, PARTS_MAX)
}

impl Fem {
    /// The same with what files say.
    ///
    /// # Errors
    /// What makes no sense.
    pub fn completed(mut self) -> Result<Self, RunError> {
        let input = self.merged()?;
        if let Some(file) = &input.mesh.file {
            let mesh = msh::read(file).map_err(|e| RunError::Input(e.to_string()))?;
            self.known.mesh = Some(mesh.announced());
        }
        self.known.input = Some(input);
        let problem = self.problem()?;
        problem.swelling.map_or(Ok(()), |swelling| swelling.check_most()).map_err(wrong)?;
        let outputs = [("--vtu", &self.vtu), ("--out", &self.out)];
        for (option, path) in outputs {
            path.as_ref().map_or(Ok(()), |path| check_option(option, path))?;
        }
        Ok(self)
    }

    /// The input file, or an empty one, with all options that are given over it.
    fn merged(&self) -> Result<Input, RunError> {
        let mut input = match &self.input {
            Some(file) => Input::read(file).map_err(wrong)?,
            None => Input::default(),
        };
        input.physics = self.physics.or(input.physics);
        input.mesh.file = self.mesh.clone().or(input.mesh.file);
        input.mesh.order = self.order.or(input.mesh.order);
        if !self.elements.is_empty() {
            input.mesh.elements.clone_from(&self.elements);
        }
        if !self.size.is_empty() {
            input.mesh.size.clone_from(&self.size);
        }
        Ok(input)
    }

    /// The file of the mesh, if there is one.
    #[must_use]
    pub fn mesh_file(&self) -> Option<PathBuf> {
        self.known.input.as_ref().and_then(|input| input.mesh.file.clone())
    }

    /// What is to be solved.
    ///
    /// # Errors
    /// What makes no sense.
    pub fn problem(&self) -> Result<Problem, RunError> {
        let says = |sentence: String| Err(RunError::Input(sentence));
        let merged;
        let input = match &self.known.input {
            Some(input) => input,
            None => {
                merged = self.merged()?;
                &merged
            }
        };
        if input.physics == Some(Kind::Swelling) {
            return self.swelling(input);
        }
        if let Some(option) = self.times.given().next() {
            return says(format!("{option} is of use with --physics swelling only"));
        }
        let said = input.said(self.dim, self.known.mesh.as_ref()).map_err(wrong)?;
        let Said { physics, domain, source, boundaries, exact } = said;
        let solver = self.solver(&physics, matches!(domain, Domain::Read { .. }))?;
        let mut problem =
            Problem { physics, domain, source, boundaries, exact, parts: 1, solver, swelling: None };
        problem.parts = self.parts(problem.nodes())?;
        Ok(problem)
    }

    /// A body that swells.
    fn swelling(&self, input: &Input) -> Result<Problem, RunError> {
        if self.subdomains.is_some() || self.dim.is_some_and(|dim| dim != 2) {
            let option =
                if self.subdomains.is_some() { "--subdomains: give --block" } else { "--dim: leave it out" };
            return Err(RunError::Input(format!("with --physics swelling there is no {option}")));
        }
        let (physics, boundaries, mut swelling) = input.swelling(&self.times).map_err(wrong)?;
        swelling.is_checked = self.verify;
        let every = self.times.vtu_every.filter(|_| self.vtu.is_some()).unwrap_or(swelling.steps);
        if every == 0 {
            return Err(RunError::Input("--vtu-every 0: give at least 1".into()));
        }
        swelling.every = (self.vtu.is_some() || self.out.is_some()).then_some(every);
        Ok(Problem {
            solver: self.solver(&physics, true)?,
            physics,
            domain: Domain::Read {
                shape: swelling.forest.lattice.shape,
                nodes: swelling.most,
                elements: swelling.most,
            },
            source: Source::Even([0.0; 3]),
            boundaries,
            exact: None,
            parts: swelling.forest.blocks(),
            swelling: Some(swelling),
        })
    }

    fn solver(&self, physics: &Physics, is_read: bool) -> Result<Solver, RunError> {
        let says = |sentence: String| Err(RunError::Input(sentence));
        let (method, preconditioner) = self.methods(physics, is_read)?;
        if !(self.tolerance > 0.0 && self.tolerance < 1.0) {
            return says(format!("--tolerance {}: give a number between 0 and 1", self.tolerance));
        }
        if self.max_iterations == 0 {
            return says("--max-iterations 0: give at least 1".into());
        }
        if !(1..=1 << 20).contains(&self.coarsest) {
            return says(format!("--coarsest {}: give 1 to {}", self.coarsest, 1 << 20));
        }
        Ok(Solver {
            method,
            tolerance: self.tolerance,
            max_iterations: self.max_iterations,
            preconditioner,
            coarsest: self.coarsest,
        })
    }

    /// The iteration and what helps it.
    fn methods(&self, physics: &Physics, is_read: bool) -> Result<(Method, Preconditioner), RunError> {
        let says = |sentence: &str| Err(RunError::Input(sentence.into()));
        let is_symmetric = physics.is_symmetric();
        let usual = if is_read || !is_symmetric { Preconditioner::Ilu } else { Preconditioner::Multigrid };
        let preconditioner = self.preconditioner.unwrap_or(usual);
        let method = self.method.unwrap_or(if is_symmetric { Method::Cg } else { Method::Gmres });
        let is_cycle = preconditioner == Preconditioner::Multigrid;
        if is_read && is_cycle {
            return says("--preconditioner multigrid needs a box, whose mesh can be made coarser: take ilu");
        }
        if !is_symmetric && (is_cycle || method == Method::Cg) {
            let option = if is_cycle { "--preconditioner multigrid" } else { "--method cg" };
            let other = if is_cycle { "ilu" } else { "gmres" };
            return says(&format!(
                "{option} needs a matrix that is symmetric, and wind makes one that is not: take {other}"
            ));
        }
        Ok((method, preconditioner))
    }

    fn parts(&self, nodes: usize) -> Result<u32, RunError> {
        let most = most_parts(nodes);
        let chosen = (nodes / NODES_EACH).max(PARTS_LEAST.min(nodes / NODES_LEAST)).clamp(1, 512);
        let parts = self.subdomains.unwrap_or(chosen);
        if !(1..=most).contains(&parts) {
            return Err(RunError::Input(format!("--subdomains {parts}: give 1 to {most} for {nodes} nodes")));
        }
        Ok(parts as u32)
    }

    /// The files that are read and written.
    #[must_use]
    pub fn files(&self) -> Vec<NamedFile> {
        let mesh = self.mesh_file();
        let input = read([("the input file", &self.input), ("the mesh", &mesh)]);
        input.chain(written([("--vtu", &self.vtu), ("--out", &self.out)])).collect()
    }

    /// Options that say nothing beside the others.
    #[must_use]
    pub fn unused(&self) -> Vec<(&'static str, String)> {
        match self.problem() {
            Ok(problem) if problem.solver.preconditioner != Preconditioner::Multigrid => {
                let name = format!("{:?}", problem.solver.preconditioner).to_lowercase();
                vec![(
                    "coarsest",
                    format!("only multigrid has a coarsest mesh, and the preconditioner is {name}"),
                )]
            }
            _ => Vec::new(),
        }
    }

    /// What the kernel's speed depends on.
    #[must_use]
    pub fn kernel_key(&self) -> String {
        let Ok(problem) = self.problem() else { return String::new() };
        let size = if problem.unknowns() < 1 << 18 { "small" } else { "large" };
        let Solver { method, preconditioner, .. } = problem.solver;
        format!("{:?} {} {method:?} {preconditioner:?} {size}", problem.shape(), problem.each())
    }

    /// About how much work it will be, floating-point operations.
    #[must_use]
    pub fn work(&self) -> f64 {
        self.problem().map_or(0.0, |problem| problem.iterations_guess() * problem.work_of_iteration())
    }
}
