//! The element loop: what each element adds to the rows of its nodes.

use super::kind::Kind;
use super::problem::{Problem, Source};
use super::rows::Rows;
use super::shape::{NODES_MAX, Placed, Sample};
use super::submesh::Submesh;
use chares::Bulk;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The equations of the own nodes. What is fixed is left out: its row has nothing beside the diagonal, its column nothing at
/// all, and its right-hand side is 0; the solution is what these equations give and the fixed values.
#[derive(Debug, Serialize, Deserialize)]
pub struct System {
    /// The matrix.
    pub rows: Rows,
    /// The right-hand side.
    pub load: Bulk<f64>,
    /// Fixed values of the own unknowns; 0 where nothing is fixed.
    pub fixed: Bulk<f64>,
    /// The own unknowns that are fixed.
    pub is_fixed: Bulk<u32>,
}

/// What is fixed of each unknown of a subdomain, own ones and others.
#[derive(Debug)]
pub struct Fixed {
    /// Whether it is.
    pub is: Vec<bool>,
    /// Its value; 0 if not.
    pub values: Vec<f64>,
}

impl Fixed {
    /// By the groups that nodes are in.
    #[must_use]
    pub fn of(mesh: &Submesh, problem: &Problem) -> Self {
        let each = problem.each();
        let of_node = |node| problem.fixed(mesh.groups[node], mesh.point(node));
        let all = (0..mesh.nodes()).flat_map(|node| of_node(node).into_iter().take(each));
        let (is, values) = all.map(|fixed| (fixed.is_some(), fixed.unwrap_or(0.0))).unzip();
        Self { is, values }
    }

    /// The own unknowns that are fixed.
    #[must_use]
    pub fn own(&self, unknowns: usize) -> Bulk<u32> {
        (0..).zip(&self.is[..unknowns]).filter(|(_, is)| **is).map(|(at, _)| at).collect::<Vec<u32>>().into()
    }
}

/// Computes matrices of elements.
pub struct Elements<'a> {
    problem: &'a Problem,
    each: usize,
    samples: Vec<Sample>,
    places: Vec<[f64; 3]>,
    /// The matrix of the last element: rows and columns by node and unknown.
    pub matrix: Vec<f64>,
    /// The kind of that element.
    kind: Kind,
    /// Matrices of kinds that are known.
    known: BTreeMap<Kind, Vec<f64>>,
}

impl<'a> Elements<'a> {
    /// For a problem.
    #[must_use]
    pub fn new(problem: &'a Problem) -> Self {
        let (shape, each) = (problem.shape(), problem.each());
        let size = shape.nodes() * each;
        Self {
            problem,
            each,
            samples: shape.samples(shape.samples_along()),
            places: Vec::new(),
            matrix: vec![0.0; size * size],
            kind: Kind(0),
            known: BTreeMap::new(),
        }
    }

    /// Computes the matrix of an element, unless that of its kind is known.
    pub fn compute(&mut self, mesh: &Submesh, (nodes, kind): (&[u32], Kind)) {
        mesh.corners_of(nodes, kind, &mut self.places);
        let last = std::mem::replace(&mut self.kind, kind);
        if let Some(known) = self.known.get(&kind) {
            if last != kind {
                self.matrix.copy_from_slice(known);
            }
            return;
        }
        self.matrix.fill(0.0);
        for sample in &self.samples {
            let placed = mesh.shape.place(&sample.functions, &self.places);
            let weight = sample.weight * placed.volume;
            add_sample(
                self.problem,
                &placed,
                (weight, &sample.functions.values),
                &mut self.matrix,
                (nodes.len(), self.each),
            );
        }
        kind.collect_matrix(&mut self.matrix, self.each);
        if mesh.is_uniform || kind != Kind(0) {
            self.known.insert(kind, self.matrix.clone());
        }
    }

    /// Adds what is put into the element that was computed last to the load of its nodes.
    pub fn add_source(&self, mesh: &Submesh, nodes: &[u32], load: &mut [f64]) {
        if self.problem.source == Source::Even([0.0; 3]) {
            return;
        }
        let (each, mut sums) = (self.each, [0.0; 3 * NODES_MAX]);
        for sample in &self.samples {
            let (point, volume) = mesh.shape.place_point(&sample.functions, &self.places);
            let source = self.problem.source_at(point);
            for at in 0..nodes.len() {
                let weight = sample.weight * volume * sample.functions.values[at];
                (0..each).for_each(|c| sums[at * each + c] += weight * source[c]);
            }
        }
        self.add(mesh, nodes, &mut sums, load);
    }

    /// Adds to the load what swells the element that was computed last: an even stress of so much by what its nodes have of
    /// it, `swells`.
    pub fn add_swelling(
        &self,
        mesh: &Submesh,
        (nodes, stress): (&[u32], f64),
        swells: &[f64],
        load: &mut [f64],
    ) {
        let (each, mut sums) = (self.each, [0.0; 3 * NODES_MAX]);
        let mut at_corners = [0.0; NODES_MAX];
        at_corners.iter_mut().zip(nodes).for_each(|(to, node)| *to = swells[*node as usize]);
        self.kind.spread(&mut at_corners, 1);
        for sample in &self.samples {
            let placed = mesh.shape.place(&sample.functions, &self.places);
            let values = &sample.functions.values[..nodes.len()];
            let swells: f64 = values.iter().zip(&at_corners).map(|(f, at)| f * at).sum();
            let weight = sample.weight * placed.volume * stress * swells;
            for (at, slopes) in placed.slopes[..nodes.len()].iter().enumerate() {
                (0..each).for_each(|c| sums[at * each + c] += weight * slopes[c]);
            }
        }
        self.add(mesh, nodes, &mut sums, load);
    }

    /// Adds loads of an element's corners to those of its own nodes.
    fn add(&self, mesh: &Submesh, nodes: &[u32], sums: &mut [f64], load: &mut [f64]) {
        let each = self.each;
        self.kind.collect(sums, each);
        for (sums, &node) in sums.chunks_exact(each).zip(nodes) {
            if (node as usize) < mesh.own {
                load[node as usize * each..][..each]
                    .iter_mut()
                    .zip(sums)
                    .for_each(|(load, sum)| *load += sum);
            }
        }
    }
}

/// Adds what a point to integrate at adds to the matrix of an element.
fn add_sample(
    problem: &Problem,
    placed: &Placed,
    (weight, values): (f64, &[f64]),
    matrix: &mut [f64],
    (nodes, each): (usize, usize),
) {
    use super::problem::Physics::{Elasticity, Poisson};
    let (size, dim) = (nodes * each, problem.dim());
    for i in 0..nodes {
        for j in 0..nodes {
            let (a, b) = (&placed.slopes[i], &placed.slopes[j]);
            let dot: f64 = (0..dim).map(|k| a[k] * b[k]).sum();
            match problem.physics {
                Poisson { conductivity, wind, rate } => {
                    let carried: f64 = (0..dim).map(|k| wind[k] * b[k]).sum();
                    matrix[i * size + j] +=
                        weight * (conductivity * dot + values[i] * (carried + rate * values[j]));
                }
                Elasticity { lambda, mu } => {
                    for c in 0..each {
                        for d in 0..each {
                            let same = if c == d { mu * dot } else { 0.0 };
                            matrix[(i * each + c) * size + j * each + d] +=
                                weight * (lambda * a[c] * b[d] + mu * a[d] * b[c] + same);
                        }
                    }
                }
            }
        }
    }
}

/// Computes the equations of a subdomain's own nodes. `more` is a load of these beside what the problem says, or empty.
#[must_use]
pub fn assemble(mesh: &Submesh, problem: &Problem, more: &[f64]) -> System {
    let each = problem.each();
    let fixed = Fixed::of(mesh, problem);
    let mut rows = Rows::of_elements(each, mesh.own, mesh.each_element());
    let mut load = vec![0.0; mesh.own * each];
    load[..more.len()].copy_from_slice(more);
    let mut elements = Elements::new(problem);
    let mut sums = Sums {
        each,
        starts: &rows.starts,
        columns: &rows.columns,
        values: rows.values.as_mut_slice(),
        load: &mut load,
    };
    for (nodes, kind) in mesh.each_kind() {
        elements.compute(mesh, (nodes, kind));
        elements.add_source(mesh, nodes, sums.load);
        sums.add(nodes, &elements.matrix, &fixed);
    }
    add_loads(mesh, problem, &mut load);
    let is_fixed = fixed.own(load.len());
    is_fixed.iter().for_each(|&at| load[at as usize] = 0.0);
    let values = fixed.values[..load.len()].to_vec();
    System { rows, load: load.into(), fixed: values.into(), is_fixed }
}

/// Rows and loads that elements are added to. What is shared is looked up once, and not for each element.
struct Sums<'a> {
    each: usize,
    starts: &'a [u32],
    columns: &'a [u32],
    values: &'a mut [f64],
    load: &'a mut [f64],
}

impl Sums<'_> {
    /// Adds the matrix of an element to the rows of its own nodes, and what is fixed to the right-hand side.
    fn add(&mut self, nodes: &[u32], matrix: &[f64], fixed: &Fixed) {
        let Self { each, starts, columns, values, load } = self;
        let (each, own, size) = (*each, starts.len() - 1, nodes.len() * *each);
        for (i, &row) in nodes.iter().enumerate().filter(|(_, node)| (**node as usize) < own) {
            let from = starts[row as usize] as usize;
            let of_row = &columns[from..starts[row as usize + 1] as usize];
            for (j, &column) in nodes.iter().enumerate() {
                let Ok(at) = of_row.binary_search(&column) else { continue };
                let block = &mut values[(from + at) * each * each..][..each * each];
                for c in 0..each {
                    let unknown = row as usize * each + c;
                    for d in 0..each {
                        let other = column as usize * each + d;
                        let value = matrix[(i * each + c) * size + j * each + d];
                        if unknown == other || !(fixed.is[unknown] || fixed.is[other]) {
                            block[c * each + d] += value;
                        } else if !fixed.is[unknown] {
                            load[unknown] -= value * fixed.values[other];
                        }
                    }
                }
            }
        }
    }
}

/// Adds what flows in, or pulls, at the boundary.
pub fn add_loads(mesh: &Submesh, problem: &Problem, load: &mut [f64]) {
    let (each, face) = (problem.each(), mesh.shape.face());
    let samples = face.samples(mesh.shape.samples_along());
    let mut places = Vec::new();
    for (nodes, group) in mesh.each_face() {
        mesh.points_of(nodes, &mut places);
        for sample in &samples {
            let (point, area, normal) = face.place_face(&sample.functions, &places);
            // Sides of a box come in twos: the low end of an axis, which is even, and the high one. In a mesh that was read
            // nothing depends on where faces look.
            let sign = if group % 2 == 0 { -1.0 } else { 1.0 };
            let outward = normal.map(|x| sign * x.abs());
            let Some(by_area) = problem.load(group, point, outward) else { break };
            for (at, &node) in nodes.iter().enumerate().filter(|(_, node)| (**node as usize) < mesh.own) {
                let weight = sample.weight * area * sample.functions.values[at];
                (0..each).for_each(|c| load[node as usize * each + c] += weight * by_area[c]);
            }
        }
    }
}

/// The largest eigenvalue of D^-1 A that any mesh of such elements can have: that of one element. The matrix of the element
/// was computed before (A. J. Wathen, "Realistic eigenvalue bounds for the Galerkin mass matrix", IMA Journal of Numerical
/// Analysis 7, 1987). By powers, which come from below: 5 % are added.
#[must_use]
pub fn largest_eigenvalue(matrix: &[f64], size: usize) -> f64 {
    let mut x: Vec<f64> = (0..size).map(|i| 1.0 + 0.37 * ((i * 7 + 3) % 11) as f64).collect();
    let mut largest: f64 = 0.0;
    for _ in 0..60 {
        let row = |i: usize| -> f64 {
            let sum: f64 = matrix[i * size..(i + 1) * size].iter().zip(&x).map(|(a, x)| a * x).sum();
            sum / matrix[i * size + i]
        };
        let next: Vec<f64> = (0..size).map(row).collect();
        largest = next.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        x = next.into_iter().map(|value| value / largest).collect();
    }
    1.05 * largest
}
