//! A subdomain that iterates: takes steps until it needs something of others. It sends nothing and waits for nothing itself, so
//! that chares and a test in one thread do the same.

use super::check::{Measured, measure};
use super::course::{Course, Why};
use super::gmres::{Gmres, Next};
use super::ilu::Ilu;
use super::level::{Level, Levels};
use super::operator::Operator;
use super::problem::{Method, Preconditioner, Problem, Solver};
use super::steps::{Step, Vector, iteration};
use super::submesh::Submesh;
use chares::Bulk;
use serde::{Deserialize, Serialize};

/// Parts of the polynomial that smooths.
pub const DEGREE: u32 = 2;

/// Sums over all subdomains; of conjugate gradients residual times correction, correction times A times correction, and the
/// residual squared.
pub type Sums = Vec<f64>;

/// What a subdomain needs before it can go on.
#[derive(Debug)]
pub enum Need {
    /// Nothing: a step was taken.
    Nothing,
    /// Others get these numbers: who, and which.
    Tell(Vec<(u32, Bulk<f64>)>),
    /// Numbers of so many others.
    Halo(usize),
    /// The sums of all.
    Sums(Sums),
    /// The solution of the coarsest mesh, of which these are the own right-hand sides.
    Coarse(Bulk<f64>),
    /// It has ended.
    Over,
}

/// The vectors of a level: B, X, R and D.
type Vectors = [Vec<f64>; 4];

/// A subdomain that iterates.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    each: usize,
    /// From the finest on.
    pub levels: Vec<Level>,
    /// The finest mesh, if it is no box.
    pub mesh: Option<Submesh>,
    vectors: Vec<Vectors>,
    fixed: Bulk<f64>,
    solution: Vec<f64>,
    /// The direction, A times it, and A times the correction.
    direction: [Vec<f64>; 3],
    factors: Option<Ilu>,
    /// In place of conjugate gradients.
    gmres: Option<Gmres>,
    steps: Vec<Step>,
    next: usize,
    tolerance: f64,
    max_iterations: u32,
    /// How far it is.
    pub course: Course,
}

impl Machine {
    /// A subdomain of a box, or of a mesh that was read.
    #[must_use]
    pub fn new(problem: &Problem, part: u32, read: Option<Submesh>) -> Self {
        Self::of(
            problem,
            match read {
                Some(mesh) => Levels::of_mesh(problem, mesh, &[]),
                None => Levels::of_lattice(problem, part),
            },
        )
    }

    /// A subdomain of these equations.
    #[must_use]
    pub fn of(problem: &Problem, Levels { levels, mesh, load, fixed }: Levels) -> Self {
        let each = problem.each();
        let is_cycle = problem.solver.preconditioner == Preconditioner::Multigrid;
        let mut vectors: Vec<Vectors> = levels.iter().map(|level| level.vectors(each, is_cycle)).collect();
        let count = load.len();
        if let Some(finest) = vectors.first_mut() {
            finest[Vector::B as usize] = vec![0.0; count];
        }
        let factors = (problem.solver.preconditioner == Preconditioner::Ilu)
            .then(|| levels.first().map(|finest| Ilu::of(&finest.rows.rows())))
            .flatten();
        let mut machine = Self {
            each,
            steps: Vec::new(),
            levels,
            mesh,
            vectors,
            fixed,
            solution: vec![0.0; count],
            direction: [vec![0.0; count], vec![0.0; count], vec![0.0; count]],
            gmres: None,
            factors,
            next: 0,
            tolerance: problem.solver.tolerance,
            max_iterations: problem.solver.max_iterations,
            course: Course::default(),
        };
        machine.begin(&problem.solver, &load);
        machine
    }

    /// Begins anew, with this right-hand side of the own unknowns and where nothing is known of the solution.
    pub fn begin(&mut self, solver: &Solver, load: &[f64]) {
        if let Some(finest) = self.vectors.first_mut() {
            finest[Vector::B as usize].copy_from_slice(load);
        }
        self.solution.fill(0.0);
        self.direction.iter_mut().for_each(|direction| direction.fill(0.0));
        let is_gmres = solver.method == Method::Gmres;
        self.gmres = is_gmres.then(|| Gmres::new(load));
        self.steps = iteration(solver.preconditioner, self.levels.len(), DEGREE);
        // The first sum of minimal residuals is that of the residual alone.
        self.next = if is_gmres { self.steps.len() - 1 } else { 0 };
        self.course = Course::default();
    }

    /// From how many others it needs numbers before it can take a step; `None` if it needs none.
    #[must_use]
    pub fn awaited(&self) -> Option<usize> {
        let Some(Step::Await(level, _)) = self.steps.get(self.next) else { return None };
        Some(self.levels[*level].halo.sources.len())
    }

    /// Takes a step, or says what it needs first. What is needed is given by [`Self::take`], [`Self::take_sums`] or
    /// [`Self::take_coarse`].
    pub fn step(&mut self) -> Need {
        if let Some(count) = self.awaited() {
            return Need::Halo(count);
        }
        let Some(&step) = self.steps.get(self.next) else { return Need::Over };
        match step {
            Step::Tell(level, vector) => {
                self.next += 1;
                return Need::Tell(self.told(level, vector));
            }
            Step::Coarse(level) => {
                return Need::Coarse(Bulk::from_slice(&self.vectors[level][Vector::B as usize]));
            }
            Step::Sum => return Need::Sums(self.sums()),
            _ => self.compute(step),
        }
        self.next += 1;
        Need::Nothing
    }

    fn told(&self, level: usize, vector: Vector) -> Vec<(u32, Bulk<f64>)> {
        let (each, numbers) = (self.each, &self.vectors[level][vector as usize]);
        let picked = |nodes: &[u32]| {
            let mut picked = Bulk::zeros(nodes.len() * each);
            for (to, &node) in picked.as_mut_slice().chunks_exact_mut(each).zip(nodes) {
                to.copy_from_slice(&numbers[node as usize * each..][..each]);
            }
            picked
        };
        self.levels[level].halo.wanted.iter().map(|(to, nodes)| (*to, picked(nodes))).collect()
    }

    /// Takes up numbers of another; `false` if it awaits none, or others.
    pub fn take(&mut self, from: u32, numbers: &[f64]) -> bool {
        let Some(Step::Await(level, vector)) = self.steps.get(self.next) else { return false };
        let sources = &self.levels[*level].halo.sources;
        let Ok(at) = sources.binary_search_by_key(&from, |(from, _)| *from) else { return false };
        let place = &sources[at].1;
        let to = &mut self.vectors[*level][*vector as usize][place.start * self.each..place.end * self.each];
        if to.len() != numbers.len() {
            return false;
        }
        to.copy_from_slice(numbers);
        true
    }

    /// Goes on: all numbers of others have been taken up.
    pub fn have_taken(&mut self) {
        self.next += 1;
    }

    fn compute(&mut self, step: Step) {
        match step {
            Step::Copy => {
                let [b, x, ..] = &mut self.vectors[0];
                x[..b.len()].copy_from_slice(b);
            }
            Step::Scale => {
                let [b, x, ..] = &mut self.vectors[0];
                let scaled = b.iter().zip(self.levels[0].inverse.iter());
                x.iter_mut().zip(scaled).for_each(|(x, (b, inverse))| *x = b * inverse);
            }
            Step::Factors => {
                let [b, x, ..] = &mut self.vectors[0];
                let count = b.len();
                if let Some(factors) = &self.factors {
                    factors.solve(b, &mut x[..count]);
                }
            }
            Step::Smooth(level) => self.levels[level].smooth(&mut self.vectors[level]),
            Step::SmoothOn(level, part) => self.levels[level].smooth_on(part, &mut self.vectors[level]),
            Step::Settle(level) => {
                let [_, _, r, d] = &mut self.vectors[level];
                self.levels[level].rows.subtract(d, r);
            }
            Step::Restrict(level) => {
                let (fine, coarse) = self.vectors.split_at_mut(level + 1);
                let b = &mut coarse[0][Vector::B as usize];
                self.levels[level].down.apply(self.each, &fine[level][Vector::R as usize], b, false);
                self.levels[level + 1].is_fixed.iter().for_each(|&at| b[at as usize] = 0.0);
            }
            Step::Prolong(level) => {
                let (fine, coarse) = self.vectors.split_at_mut(level + 1);
                let own = self.levels[level].own * self.each;
                let x = &mut fine[level][Vector::X as usize];
                self.levels[level].up.apply(self.each, &coarse[0][Vector::X as usize], &mut x[..own], true);
                self.levels[level].is_fixed.iter().for_each(|&at| x[at as usize] = 0.0);
            }
            Step::SmoothAgain(level) => self.levels[level].smooth_again(&mut self.vectors[level]),
            Step::Tell(..) | Step::Await(..) | Step::Coarse(_) | Step::Sum => {}
        }
    }

    fn sums(&mut self) -> Sums {
        if let Some(gmres) = &mut self.gmres {
            let [b, x, ..] = &mut self.vectors[0];
            return gmres.sums(&self.levels[0].rows, b, x, &mut self.solution);
        }
        let [b, x, ..] = &self.vectors[0];
        let w = &mut self.direction[2];
        self.levels[0].rows.multiply(x, w);
        added(b, x, w)
    }

    /// Goes on with the sums of all.
    pub fn take_sums(&mut self, sums: &[f64]) {
        if let Some(gmres) = &mut self.gmres {
            let b = &mut self.vectors[0][Vector::B as usize];
            match gmres.take(sums, b, &mut self.course, (self.tolerance, self.max_iterations)) {
                Next::Multiply => self.next = 0,
                Next::Sum => {}
                Next::End => self.conclude(),
            }
            return;
        }
        let [product, energy, square] = *sums else { return };
        let course = &mut self.course;
        if course.iterations == 0 {
            course.begun = square;
        }
        course.now = square;
        let is_first = course.iterations == 0;
        let beta = if is_first { 0.0 } else { product / course.last[0] };
        let length = product / (energy - if is_first { 0.0 } else { beta * product / course.last[1] });
        course.why = if !square.is_finite() {
            Some(Why::Broken)
        } else if course.now <= self.tolerance * self.tolerance * course.begun {
            Some(Why::Converged)
        } else if !length.is_finite() || length <= 0.0 || product <= 0.0 {
            Some(Why::Broken)
        } else if course.iterations >= self.max_iterations {
            Some(Why::Exhausted)
        } else {
            None
        };
        if course.why.is_some() {
            return self.conclude();
        }
        course.iterations += 1;
        course.last = [product, length];
        let [b, x, ..] = &mut self.vectors[0];
        let [p, s, w] = &mut self.direction;
        let directions = p.iter_mut().zip(s.iter_mut()).zip(w.iter().zip(x.iter()));
        let results = self.solution.iter_mut().zip(b.iter_mut());
        for (((p, s), (w, x)), (solution, b)) in directions.zip(results) {
            *p = x + beta * *p;
            *s = w + beta * *s;
            *solution += length * *p;
            *b -= length * *s;
        }
        self.next = 0;
    }

    /// Sees to it that X becomes the solution, with what is fixed, and that others get the numbers that they have copies of.
    fn conclude(&mut self) {
        let own = self.solution.iter().zip(self.fixed.iter()).map(|(x, fixed)| x + fixed);
        self.vectors[0][Vector::X as usize].iter_mut().zip(own).for_each(|(x, solution)| *x = solution);
        self.steps = vec![Step::Tell(0, Vector::X), Step::Await(0, Vector::X)];
        self.next = 0;
    }

    /// Goes on with the solution of the coarsest mesh, node by node.
    pub fn take_coarse(&mut self, solution: &[f64]) {
        let Some(Step::Coarse(level)) = self.steps.get(self.next) else { return };
        let each = self.each;
        let x = &mut self.vectors[*level][Vector::X as usize];
        for (x, &id) in x.chunks_exact_mut(each).zip(self.levels[*level].ids.iter()) {
            x.copy_from_slice(&solution[id as usize * each..][..each]);
        }
        self.next += 1;
    }

    /// The solution when it is over: own unknowns and then those of others.
    #[must_use]
    pub fn solution(&self) -> &[f64] {
        self.vectors.first().map_or(&[], |finest| &finest[Vector::X as usize])
    }

    /// How good the solution is, when it is over.
    #[must_use]
    pub fn measured(&self, problem: &Problem, part: u32) -> Measured {
        let made = if self.mesh.is_none() { Levels::mesh_of_lattice(problem, part) } else { None };
        let mesh = self.mesh.as_ref().or(made.as_ref());
        mesh.map(|mesh| measure(mesh, problem, self.solution(), &[])).unwrap_or_default()
    }

    /// Unknowns of a node.
    #[must_use]
    pub fn each(&self) -> usize {
        self.each
    }

    /// Keeps each row of its matrices by itself, as if none were alike.
    pub fn keep_all_rows(&mut self) {
        self.levels.iter_mut().for_each(|level| level.rows = Operator::Rows(level.rows.rows()));
    }

    /// Bytes that it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let of_vectors = self.vectors.iter().flatten().chain(&self.direction).map(Vec::len).sum::<usize>();
        let mesh = self.mesh.as_ref().map_or(0, Submesh::bytes);
        let factors =
            self.factors.as_ref().map_or(0, Ilu::bytes) + self.gmres.as_ref().map_or(0, Gmres::bytes);
        8 * (of_vectors + 2 * self.solution.len())
            + mesh
            + factors
            + self.levels.iter().map(Level::bytes).sum::<usize>()
    }

    /// The right-hand side, before the first iteration.
    #[must_use]
    pub fn load(&self) -> Option<&[f64]> {
        self.vectors.first().map(|finest| &finest[Vector::B as usize][..])
    }

    /// The largest number of the right-hand side; infinite if some are none.
    #[must_use]
    pub fn largest_load(&self) -> f64 {
        let load = self.load().unwrap_or_default();
        load.iter().map(|b| if b.is_finite() { b.abs() } else { f64::INFINITY }).fold(0.0, f64::max)
    }

    /// Numbers of the matrices of all levels.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.levels.iter().map(|level| level.rows.entries()).sum()
    }
}

impl Level {
    fn vectors(&self, each: usize, is_cycle: bool) -> Vectors {
        let (own, all) = (self.own * each, self.ids.len() * each);
        let of_cycle = if is_cycle && !self.rows.is_empty() { all } else { 0 };
        [vec![0.0; own], vec![0.0; all], vec![0.0; of_cycle], vec![0.0; of_cycle]]
    }

    /// The first change, where X is 0.
    fn smooth(&self, [b, x, r, d]: &mut Vectors) {
        let first = self.polynomial.first();
        let changes = d.iter_mut().zip(x.iter_mut()).zip(r.iter_mut());
        for ((b, inverse), ((d, x), r)) in b.iter().zip(self.inverse.iter()).zip(changes) {
            *r = *b;
            *d = first * inverse * b;
            *x = *d;
        }
    }

    /// Another change.
    fn smooth_on(&self, part: u32, [_, x, r, d]: &mut Vectors) {
        self.rows.subtract(d, r);
        let (of_last, of_rest) = self.polynomial.next(part);
        let changes = d.iter_mut().zip(x.iter_mut()).zip(r.iter());
        for (inverse, ((d, x), r)) in self.inverse.iter().zip(changes) {
            *d = of_last * *d + of_rest * inverse * r;
            *x += *d;
        }
    }

    /// The first change, where X is not 0.
    fn smooth_again(&self, [b, x, r, d]: &mut Vectors) {
        r[..b.len()].copy_from_slice(b);
        self.rows.subtract(x, r);
        let first = self.polynomial.first();
        let changes = d.iter_mut().zip(x.iter_mut()).zip(r.iter());
        for (inverse, ((d, x), r)) in self.inverse.iter().zip(changes) {
            *d = first * inverse * r;
            *x += *d;
        }
    }
}

/// Sums of a subdomain, in lanes that the compiler takes for vectors.
fn added(b: &[f64], x: &[f64], w: &[f64]) -> Vec<f64> {
    let mut lanes = [[0.0; 8]; 3];
    let (b, x, w) = (b.as_chunks::<8>(), x[..b.len()].as_chunks::<8>(), w.as_chunks::<8>());
    for ((b, x), w) in b.0.iter().zip(x.0).zip(w.0) {
        for at in 0..8 {
            lanes[0][at] += b[at] * x[at];
            lanes[1][at] += w[at] * x[at];
            lanes[2][at] += b[at] * b[at];
        }
    }
    for (at, ((b, x), w)) in b.1.iter().zip(x.1).zip(w.1).enumerate() {
        lanes[0][at] += b * x;
        lanes[1][at] += w * x;
        lanes[2][at] += b * b;
    }
    lanes.iter().map(|lanes| lanes.iter().sum()).collect()
}
