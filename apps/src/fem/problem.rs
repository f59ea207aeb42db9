//! What is to be solved: the equation, its sources, and what holds at the boundary.

use super::exact::Exact;
use super::lattice::{Cut, Lattice};
use super::shape::Shape;
use super::spot::Spot;
use super::swelling::Swelling;
use serde::{Deserialize, Serialize};

/// The equation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Physics {
    /// Poisson's: -div(k grad u) + w . grad u + r u = f.
    Poisson {
        /// k.
        conductivity: f64,
        /// w, a wind that carries u along.
        wind: [f64; 3],
        /// r, what is used up by volume: of a time step what a volume holds, over the length of the step.
        rate: f64,
    },
    /// Linear elasticity, in two dimensions plane strain: -div(lambda div(u) I + 2 mu eps(u)) = f.
    Elasticity {
        /// The first constant of Lamé.
        lambda: f64,
        /// The second one, the shear modulus.
        mu: f64,
    },
}

impl Physics {
    /// Elasticity by Young's modulus and Poisson's ratio.
    #[must_use]
    pub fn elastic(young: f64, ratio: f64) -> Self {
        let mu = young / (2.0 * (1.0 + ratio));
        Self::Elasticity { lambda: young * ratio / ((1.0 + ratio) * (1.0 - 2.0 * ratio)), mu }
    }

    /// Whether its matrix is symmetric.
    #[must_use]
    pub fn is_symmetric(&self) -> bool {
        !matches!(self, Self::Poisson { wind, .. } if *wind != [0.0; 3])
    }

    /// Unknowns of a node.
    #[must_use]
    pub fn each(&self, dim: usize) -> usize {
        if matches!(self, Self::Poisson { .. }) { 1 } else { dim }
    }

    /// What flows or pulls through an area that faces `normal`, where u has these derivatives: `slopes[c][k]` is that of
    /// component c along axis k.
    #[must_use]
    pub fn through(&self, slopes: &[[f64; 3]; 3], normal: [f64; 3]) -> [f64; 3] {
        match *self {
            Self::Poisson { conductivity, .. } => {
                [conductivity * (0..3).map(|k| slopes[0][k] * normal[k]).sum::<f64>(), 0.0, 0.0]
            }
            Self::Elasticity { .. } => {
                let stress = self.stress(slopes);
                stress.map(|row| (0..3).map(|k| row[k] * normal[k]).sum())
            }
        }
    }

    /// The stress where displacements have these derivatives.
    #[must_use]
    pub fn stress(&self, slopes: &[[f64; 3]; 3]) -> [[f64; 3]; 3] {
        let Self::Elasticity { lambda, mu } = *self else { return [[0.0; 3]; 3] };
        let trace: f64 = (0..3).map(|k| slopes[k][k]).sum();
        let entry = |i: usize, j: usize| {
            mu * (slopes[i][j] + slopes[j][i]) + if i == j { lambda * trace } else { 0.0 }
        };
        std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)))
    }
}

/// What is put in everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Source {
    /// The same everywhere, for each unknown of a node.
    Even([f64; 3]),
    /// That of the known solution.
    Exact,
    /// A spot at its place.
    Spot(Spot),
}

/// What holds on a group of the boundary.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Condition {
    /// Values of some unknowns.
    Fixed([Option<f64>; 3]),
    /// The values of the known solution.
    FixedExact,
    /// What flows in, or pulls, by area.
    Load([f64; 3]),
    /// The load of the known solution.
    LoadExact,
}

/// A condition and where it holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Boundary {
    /// The group, by its number.
    pub group: u32,
    /// What holds there.
    pub condition: Condition,
}

/// Where it is solved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Domain {
    /// In a box, which every subdomain makes its part of.
    Lattice(Lattice),
    /// In a mesh that is no lattice: from a file, or of blocks whose elements are made smaller and larger.
    Read {
        /// Of its elements.
        shape: Shape,
        /// Nodes; in blocks about as many as elements, at most.
        nodes: usize,
        /// Elements.
        elements: usize,
    },
}

/// How the iteration is helped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Preconditioner {
    /// Multigrid on coarser and coarser meshes of the same box: as many iterations on any mesh
    Multigrid,
    /// Incomplete factors of each subdomain, ILU(0)
    Ilu,
    /// The diagonal
    Jacobi,
    /// Nothing
    None,
}

/// The iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Conjugate gradients, for all without wind
    Cg,
    /// Generalised minimal residuals
    Gmres,
}

/// How it is solved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Solver {
    /// The iteration.
    pub method: Method,
    /// The residual in the end, relative to that of the begin.
    pub tolerance: f64,
    /// Iterations at most.
    pub max_iterations: u32,
    /// How it is helped.
    pub preconditioner: Preconditioner,
    /// Unknowns of the mesh that multigrid solves at one place, at most.
    pub coarsest: usize,
}

/// A problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// The equation.
    pub physics: Physics,
    /// Where.
    pub domain: Domain,
    /// What is put in.
    pub source: Source,
    /// What holds at the boundary; of several for a node the last.
    pub boundaries: Vec<Boundary>,
    /// The solution, if it is known.
    pub exact: Option<Exact>,
    /// Subdomains.
    pub parts: u32,
    /// How it is solved.
    pub solver: Solver,
    /// What swells the body in the course of time, if something does.
    pub swelling: Option<Swelling>,
}

impl Problem {
    /// The elements.
    #[must_use]
    pub fn shape(&self) -> Shape {
        match &self.domain {
            Domain::Lattice(lattice) => lattice.shape,
            Domain::Read { shape, .. } => *shape,
        }
    }

    /// Dimensions.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.shape().dim
    }

    /// Unknowns of a node.
    #[must_use]
    pub fn each(&self) -> usize {
        self.physics.each(self.dim())
    }

    /// Nodes; in blocks about as many as elements, at most.
    #[must_use]
    pub fn nodes(&self) -> usize {
        match &self.domain {
            Domain::Lattice(lattice) => lattice.nodes(),
            Domain::Read { nodes, .. } => *nodes,
        }
    }

    /// Elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        match &self.domain {
            Domain::Lattice(lattice) => lattice.elements.iter().map(|&n| n.max(1)).product(),
            Domain::Read { elements, .. } => *elements,
        }
    }

    /// Unknowns.
    #[must_use]
    pub fn unknowns(&self) -> usize {
        self.nodes() * self.each()
    }

    /// The box and its cut, if it is one.
    #[must_use]
    pub fn lattice(&self) -> Option<(Lattice, Cut)> {
        let Domain::Lattice(lattice) = &self.domain else { return None };
        Some((*lattice, Cut { nodes: lattice.nodes_along(), parts: self.parts }))
    }

    /// What is put in at a point.
    #[must_use]
    pub fn source_at(&self, point: [f64; 3]) -> [f64; 3] {
        match (&self.source, &self.exact) {
            (Source::Exact, Some(exact)) => exact.source(&self.physics, self.dim(), point),
            (Source::Exact, None) => [0.0; 3],
            (Source::Even(source), _) => *source,
            (Source::Spot(spot), _) => [spot.density(point), 0.0, 0.0],
        }
    }

    /// What is fixed of a node that is in these groups.
    #[must_use]
    pub fn fixed(&self, groups: u32, point: [f64; 3]) -> [Option<f64>; 3] {
        let mut fixed = [None; 3];
        for boundary in self.boundaries.iter().filter(|boundary| groups & (1 << boundary.group) != 0) {
            match (boundary.condition, &self.exact) {
                (Condition::Fixed(values), _) => {
                    fixed.iter_mut().zip(values).for_each(|(to, value)| *to = value.or(*to));
                }
                (Condition::FixedExact, Some(exact)) => {
                    fixed = exact.value(self.each(), self.dim(), point).map(Some)
                }
                _ => {}
            }
        }
        fixed
    }

    /// The load of a group at a point that faces `normal`, if there is one.
    #[must_use]
    pub fn load(&self, group: u32, point: [f64; 3], normal: [f64; 3]) -> Option<[f64; 3]> {
        let mut load = None;
        for boundary in self.boundaries.iter().filter(|boundary| boundary.group == group) {
            match (boundary.condition, &self.exact) {
                (Condition::Load(by_area), _) => load = Some(by_area),
                (Condition::LoadExact, Some(exact)) => {
                    load = Some(self.physics.through(&exact.slopes(self.dim(), point), normal));
                }
                _ => {}
            }
        }
        load
    }
}
