//! The method of generalised minimal residuals, for matrices that are not symmetric: preconditioned from the right, begun anew
//! when its basis is full (Y. Saad, M. H. Schultz, SIAM Journal on Scientific and Statistical Computing 7, 1986). A new vector is
//! made orthogonal to all others twice, each time with one sum over all subdomains (L. Giraud, J. Langou, M. Rozložník,
//! J. van den Eshof, Numerische Mathematik 101, 2005).

use super::course::{Course, Why};
use super::operator::Operator;
use serde::{Deserialize, Serialize};

/// Vectors of a basis, at most.
pub const BASIS: usize = 40;

/// What is summed up next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// The residual at the begin.
    #[default]
    Begin,
    /// A new vector times all others.
    First,
    /// The same once more, and the vector's length.
    Second,
    /// The residual after a correction.
    Update,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// B is preconditioned, and what comes of it multiplied.
    Multiply,
    /// There is another sum.
    Sum,
    /// It has ended.
    End,
}

/// The state of a subdomain.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Gmres {
    /// What is summed up next.
    pub phase: Phase,
    basis: Vec<Vec<f64>>,
    product: Vec<f64>,
    /// The residual when the basis was begun.
    residual: Vec<f64>,
    /// Columns of the triangular factor, and of the one that is made.
    columns: Vec<Vec<f64>>,
    column: Vec<f64>,
    rotations: Vec<[f64; 2]>,
    rest: Vec<f64>,
}

impl Gmres {
    /// For a right-hand side.
    #[must_use]
    pub fn new(load: &[f64]) -> Self {
        Self { product: vec![0.0; load.len()], residual: load.to_vec(), ..Self::default() }
    }

    /// Bytes that it takes when its basis is full.
    #[must_use]
    pub fn bytes(&self) -> usize {
        8 * self.residual.len() * (BASIS + 2)
    }

    /// The own part of what is summed up; `x` is what the preconditioner made of B.
    pub fn sums(&mut self, rows: &Operator, b: &mut [f64], x: &[f64], solution: &mut [f64]) -> Vec<f64> {
        match self.phase {
            Phase::Begin => vec![dot(b, b)],
            Phase::First => {
                rows.multiply(x, &mut self.product);
                self.basis.iter().map(|v| dot(v, &self.product)).collect()
            }
            Phase::Second => {
                let length = dot(&self.product, &self.product);
                self.basis.iter().map(|v| dot(v, &self.product)).chain([length]).collect()
            }
            Phase::Update => {
                solution.iter_mut().zip(x).for_each(|(solution, x)| *solution += x);
                rows.subtract(x, &mut self.residual);
                b.copy_from_slice(&self.residual);
                vec![dot(b, b)]
            }
        }
    }

    /// Goes on with the sums of all: what comes next, with B for it.
    pub fn take(
        &mut self,
        sums: &[f64],
        b: &mut [f64],
        course: &mut Course,
        (tolerance, most): (f64, u32),
    ) -> Next {
        match self.phase {
            Phase::Begin | Phase::Update => {
                let square = sums.first().copied().unwrap_or(f64::NAN);
                if self.phase == Phase::Begin {
                    course.begun = square;
                }
                course.now = square;
                course.why = if !square.is_finite() {
                    Some(Why::Broken)
                } else if square <= tolerance * tolerance * course.begun {
                    Some(Why::Converged)
                } else if course.iterations >= most {
                    Some(Why::Exhausted)
                } else {
                    None
                };
                if course.why.is_some() {
                    return Next::End;
                }
                let length = square.sqrt();
                b.iter_mut().for_each(|b| *b /= length);
                (self.basis, self.rest) = (vec![b.to_vec()], vec![length]);
                self.columns.clear();
                self.rotations.clear();
                self.phase = Phase::First;
                Next::Multiply
            }
            Phase::First => {
                self.column = sums.to_vec();
                self.remove(sums);
                self.phase = Phase::Second;
                Next::Sum
            }
            Phase::Second => {
                let (again, length) = sums.split_at(self.basis.len().min(sums.len()));
                self.column.iter_mut().zip(again).for_each(|(sum, again)| *sum += again);
                self.remove(again);
                let square =
                    length.first().copied().unwrap_or(f64::NAN) - again.iter().map(|h| h * h).sum::<f64>();
                let length = if square.is_nan() { square } else { square.max(0.0).sqrt() };
                course.iterations += 1;
                let left = self.rotate(length);
                course.now = left * left;
                let is_small = left <= tolerance * course.begun.sqrt();
                let is_over =
                    is_small || length == 0.0 || course.iterations >= most || self.columns.len() == BASIS;
                if is_over || !left.is_finite() {
                    self.correction(b);
                    self.phase = Phase::Update;
                } else {
                    b.iter_mut().zip(&self.product).for_each(|(b, w)| *b = w / length);
                    self.basis.push(b.to_vec());
                    self.phase = Phase::First;
                }
                Next::Multiply
            }
        }
    }

    /// Takes the parts along the basis from the new vector.
    fn remove(&mut self, parts: &[f64]) {
        for (v, part) in self.basis.iter().zip(parts) {
            self.product.iter_mut().zip(v).for_each(|(w, v)| *w -= part * v);
        }
    }

    /// Takes the new column up; what is left of the residual.
    fn rotate(&mut self, length: f64) -> f64 {
        let mut column = std::mem::take(&mut self.column);
        for (at, [cos, sin]) in self.rotations.iter().enumerate() {
            let (upper, lower) = (column[at], column[at + 1]);
            (column[at], column[at + 1]) = (cos * upper + sin * lower, cos * lower - sin * upper);
        }
        let last = column.len() - 1;
        let radius = column[last].hypot(length);
        let [cos, sin] = if radius > 0.0 { [column[last] / radius, length / radius] } else { [1.0, 0.0] };
        column[last] = radius;
        let rest = self.rest[last];
        self.rest[last] = cos * rest;
        self.rest.push(-sin * rest);
        self.rotations.push([cos, sin]);
        self.columns.push(column);
        (sin * rest).abs()
    }

    /// The combination of the basis with the smallest residual, into B.
    fn correction(&mut self, b: &mut [f64]) {
        let count = self.columns.len();
        let mut parts = self.rest[..count].to_vec();
        for at in (0..count).rev() {
            parts[at] /= self.columns[at][at];
            let part = parts[at];
            parts[..at].iter_mut().zip(&self.columns[at]).for_each(|(other, r)| *other -= r * part);
        }
        b.fill(0.0);
        for (v, part) in self.basis.iter().zip(&parts) {
            b.iter_mut().zip(v).for_each(|(b, v)| *b += part * v);
        }
    }
}

/// A sum of products, in lanes that the compiler takes for vectors.
fn dot(x: &[f64], y: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (x, y) = (x.as_chunks::<8>(), y.as_chunks::<8>());
    for (x, y) in x.0.iter().zip(y.0) {
        (0..8).for_each(|at| lanes[at] += x[at] * y[at]);
    }
    x.1.iter().zip(y.1).enumerate().for_each(|(at, (x, y))| lanes[at] += x * y);
    lanes.iter().sum()
}
