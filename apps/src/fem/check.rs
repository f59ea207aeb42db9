//! How good a solution is: what the equations leave of it, computed element by element without the matrix, and how far it is
//! from one that is known.

use super::assemble::{Elements, Fixed, add_loads};
use super::problem::Problem;
use super::submesh::Submesh;
use chares::Reduce;
use serde::{Deserialize, Serialize};

/// Numbers of a subdomain or of all, each a sum of squares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What is left of the load by the solution.
    pub residual: f64,
    /// What is left of it by nothing but the fixed values.
    pub begun: f64,
    /// What the numbers are that were added up for the residual, which rounding goes by.
    pub rounded: f64,
    /// The distance from the known solution, in the mean over space.
    pub error: f64,
    /// The same of the function that has the known values at all nodes.
    pub interpolated: f64,
    /// The known solution itself.
    pub exact: f64,
}

impl Reduce for Measured {
    fn combine(&mut self, other: Self) {
        self.residual += other.residual;
        self.begun += other.begun;
        self.rounded += other.rounded;
        self.error += other.error;
        self.interpolated += other.interpolated;
        self.exact += other.exact;
    }
}

/// A residual that was converged to may be so many times the tolerance: the iteration's own differs from the true one.
const TOLERANCES: f64 = 4.0;
/// Roundings of a sum that are allowed.
const ROUNDINGS: f64 = 64.0;
/// The error may be so many times that of interpolation: in the energy norm no function is nearer.
const INTERPOLATIONS: f64 = 4.0;

impl Measured {
    /// The residual relative to that of nothing but the fixed values.
    #[must_use]
    pub fn relative_residual(&self) -> f64 {
        if self.residual == 0.0 { 0.0 } else { (self.residual / self.begun).sqrt() }
    }

    /// The distance from the known solution, relative to that.
    #[must_use]
    pub fn relative_error(&self) -> f64 {
        (self.error / self.exact).sqrt()
    }

    /// Whether the residual is what was asked for.
    #[must_use]
    pub fn solves(&self, tolerance: f64) -> bool {
        if ![self.residual, self.begun, self.rounded].iter().all(|sum| sum.is_finite()) {
            return false;
        }
        let allowed =
            TOLERANCES * tolerance * self.begun.sqrt() + ROUNDINGS * f64::EPSILON * self.rounded.sqrt();
        self.residual.sqrt() <= allowed
    }

    /// Whether the solution is as near to the known one as its elements can be.
    #[must_use]
    pub fn is_near(&self, tolerance: f64) -> bool {
        if ![self.error, self.exact, self.interpolated].iter().all(|sum| sum.is_finite()) {
            return false;
        }
        // What is left of the residual is an error, too: one of a few powers of ten more.
        let of_tolerance = 1e3 * tolerance * self.exact.sqrt();
        self.error.sqrt() <= INTERPOLATIONS * self.interpolated.sqrt() + of_tolerance
    }
}

/// Measures the solution of a subdomain, which comes with the numbers of others that it has copies of. `more` is a load beside
/// what the problem says, or empty.
#[must_use]
pub fn measure(mesh: &Submesh, problem: &Problem, solution: &[f64], more: &[f64]) -> Measured {
    let mut measured = Measured::default();
    measure_residual(mesh, problem, (solution, more), &mut measured);
    measure_error(mesh, problem, solution, &mut measured);
    measured
}

fn measure_residual(
    mesh: &Submesh,
    problem: &Problem,
    (solution, more): (&[f64], &[f64]),
    measured: &mut Measured,
) {
    let each = problem.each();
    let fixed = Fixed::of(mesh, problem);
    let count = mesh.own * each;
    let mut left = vec![0.0; count];
    left[..more.len()].copy_from_slice(more);
    let mut elements = Elements::new(problem);
    add_loads(mesh, problem, &mut left);
    let (mut of_fixed, mut sizes) = (vec![0.0; count], vec![0.0; count]);
    for (nodes, kind) in mesh.each_kind() {
        elements.compute(mesh, (nodes, kind));
        elements.add_source(mesh, nodes, &mut left);
        let size = nodes.len() * each;
        let unknown = |at: usize| nodes[at / each] as usize * each + at % each;
        for row in (0..size).filter(|&row| unknown(row) < count) {
            let (mut sum, mut known, mut magnitude) = (0.0, 0.0, 0.0);
            for (column, a) in elements.matrix[row * size..(row + 1) * size].iter().enumerate() {
                let term = a * solution[unknown(column)];
                sum += term;
                known += a * fixed.values[unknown(column)];
                magnitude += term.abs();
            }
            left[unknown(row)] -= sum;
            of_fixed[unknown(row)] += sum - known;
            sizes[unknown(row)] += magnitude;
        }
    }
    for at in (0..count).filter(|&at| !fixed.is[at]) {
        measured.residual += left[at] * left[at];
        measured.begun += (left[at] + of_fixed[at]).powi(2);
        measured.rounded += sizes[at] * sizes[at];
    }
}

/// Adds up how far a solution is from the one that is known, if one is, and that one itself.
pub fn measure_error(mesh: &Submesh, problem: &Problem, solution: &[f64], measured: &mut Measured) {
    let Some(exact) = problem.exact else { return };
    let (each, dim) = (problem.each(), problem.dim());
    let samples = mesh.shape.samples((mesh.shape.samples_along() + 1).min(4));
    let mut places = Vec::new();
    // Whoever owns its first node counts an element.
    for (nodes, kind) in mesh.each_kind().filter(|(nodes, _)| (nodes[0] as usize) < mesh.own) {
        mesh.corners_of(nodes, kind, &mut places);
        let mut numbers: Vec<f64> =
            nodes.iter().flat_map(|&node| &solution[node as usize * each..][..each]).copied().collect();
        kind.spread(&mut numbers, each);
        let at_nodes: Vec<[f64; 3]> = places.iter().map(|&point| exact.value(each, dim, point)).collect();
        for sample in &samples {
            let (point, volume) = mesh.shape.place_point(&sample.functions, &places);
            let (weight, value) = (sample.weight * volume, exact.value(each, dim, point));
            for c in 0..each {
                let functions =
                    || sample.functions.values.iter().zip(numbers.chunks_exact(each)).zip(&at_nodes);
                let found: f64 = functions().map(|((f, numbers), _)| f * numbers[c]).sum();
                let interpolated: f64 = functions().map(|((f, _), known)| f * known[c]).sum();
                measured.error += weight * (found - value[c]).powi(2);
                measured.interpolated += weight * (interpolated - value[c]).powi(2);
                measured.exact += weight * value[c] * value[c];
            }
        }
    }
}
