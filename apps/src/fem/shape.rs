//! Shapes of finite elements: their nodes, the functions that belong to them, and points to integrate at.
//!
//! Quadrilaterals and hexahedra have their nodes in a lattice, x running fastest; triangles and tetrahedra have corners first
//! and then the middles of edges, in the order of Gmsh. References: O. C. Zienkiewicz, R. L. Taylor, "The Finite Element
//! Method", volume 1; products of Gauss rules for simplices after A. H. Stroud, "Approximate Calculation of Multiple
//! Integrals", 1971.

use serde::{Deserialize, Serialize};

/// Nodes of an element, at most.
pub const NODES_MAX: usize = 27;

/// Whether an element is a product of lines or a simplex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Family {
    /// Lines, quadrilaterals, hexahedra.
    Product,
    /// Lines, triangles, tetrahedra.
    Simplex,
}

/// A kind of element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// What it is.
    pub family: Family,
    /// Degree of its functions along a line, 1 or 2.
    pub order: usize,
    /// Dimensions, 0 to 3.
    pub dim: usize,
}

/// The functions of an element at a point of the reference element.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    /// Their values.
    pub values: [f64; NODES_MAX],
    /// Their derivatives along the axes of the reference element.
    pub slopes: [[f64; 3]; NODES_MAX],
}

/// A point to integrate at.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its weight: those of all points sum up to the volume of the reference element.
    pub weight: f64,
    /// The functions there.
    pub functions: Functions,
}

/// Ends of the edges of a triangle and of a tetrahedron, in the order of their middle nodes.
const EDGES: [[usize; 2]; 6] = [[0, 1], [1, 2], [2, 0], [3, 0], [2, 3], [1, 3]];

impl Shape {
    /// A line, quadrilateral or hexahedron.
    #[must_use]
    pub fn product(order: usize, dim: usize) -> Self {
        Self { family: Family::Product, order, dim }
    }

    /// A line, triangle or tetrahedron.
    #[must_use]
    pub fn simplex(order: usize, dim: usize) -> Self {
        Self { family: Family::Simplex, order, dim }
    }

    /// The shape of its faces; a line's are points.
    #[must_use]
    pub fn face(self) -> Self {
        Self { dim: self.dim.saturating_sub(1), ..self }
    }

    /// Nodes of an element.
    #[must_use]
    pub fn nodes(self) -> usize {
        match (self.family, self.order) {
            (Family::Product, order) => (order + 1).pow(self.dim as u32),
            (Family::Simplex, 1) => self.dim + 1,
            (Family::Simplex, _) => (self.dim + 1) * (self.dim + 2) / 2,
        }
    }

    /// Its functions at a point of the reference element, which reaches from 0 to 1 along each axis.
    #[must_use]
    pub fn at(self, point: [f64; 3]) -> Functions {
        let mut functions = Functions { values: [0.0; NODES_MAX], slopes: [[0.0; 3]; NODES_MAX] };
        match self.family {
            Family::Product => self.product_at(point, &mut functions),
            Family::Simplex => self.simplex_at(point, &mut functions),
        }
        functions
    }

    fn product_at(self, point: [f64; 3], functions: &mut Functions) {
        let lines = point.map(|x| line(self.order, x));
        let side = self.order + 1;
        for node in 0..self.nodes() {
            let along = [node % side, node / side % side, node / (side * side)];
            // Beyond its dimensions a function is 1.
            let value = |k: usize| if k < self.dim { lines[k][along[k]].0 } else { 1.0 };
            functions.values[node] = value(0) * value(1) * value(2);
            for axis in 0..self.dim {
                let others: f64 = (0..3).filter(|&k| k != axis).map(value).product();
                functions.slopes[node][axis] = lines[axis][along[axis]].1 * others;
            }
        }
    }

    fn simplex_at(self, point: [f64; 3], functions: &mut Functions) {
        let corners = self.dim + 1;
        let mut part = [0.0; 4];
        part[0] = 1.0 - point[..self.dim].iter().sum::<f64>();
        part[1..corners].copy_from_slice(&point[..self.dim]);
        let slope = |corner: usize, axis: usize| match corner {
            0 => -1.0,
            _ => f64::from(u8::from(corner == axis + 1)),
        };
        for (corner, &l) in part[..corners].iter().enumerate() {
            let (value, factor) =
                if self.order == 1 { (l, 1.0) } else { (l * (2.0 * l - 1.0), 4.0 * l - 1.0) };
            functions.values[corner] = value;
            (0..self.dim).for_each(|axis| functions.slopes[corner][axis] = factor * slope(corner, axis));
        }
        for node in corners..self.nodes() {
            let [a, b] = EDGES[node - corners];
            functions.values[node] = 4.0 * part[a] * part[b];
            for axis in 0..self.dim {
                functions.slopes[node][axis] = 4.0 * (slope(a, axis) * part[b] + part[a] * slope(b, axis));
            }
        }
    }

    /// Points to integrate at, with so many along each axis (1 to 4).
    #[must_use]
    pub fn samples(self, along: usize) -> Vec<Sample> {
        let gauss = gauss(along);
        let count = along.pow(self.dim as u32);
        let sample = |at: usize| {
            let of = [at % along, at / along % along, at / (along * along)].map(|at| gauss[at]);
            let (mut point, mut weight) = ([0.0; 3], 1.0);
            // Each axis of a simplex is as long as those before it have left over.
            let mut left = 1.0;
            for axis in 0..self.dim {
                let (x, w) = of[axis];
                match self.family {
                    Family::Product => (point[axis], weight) = (x, weight * w),
                    Family::Simplex => {
                        (point[axis], weight) = (x * left, weight * w * left);
                        left *= 1.0 - x;
                    }
                }
            }
            Sample { weight, functions: self.at(point) }
        };
        (0..count).map(sample).collect()
    }

    /// Points along each axis by which products of two functions' derivatives are integrated.
    #[must_use]
    pub fn samples_along(self) -> usize {
        self.order + 1
    }

    /// Nodes of each face, in the order of a face's own nodes.
    #[must_use]
    pub fn faces(self) -> Vec<Vec<usize>> {
        let side = self.order + 1;
        let on_side = |axis: usize, end: usize| -> Vec<usize> {
            let stride = side.pow(axis as u32);
            (0..self.nodes()).filter(|node| node / stride % side == end).collect()
        };
        let of_product = (0..self.dim).flat_map(|axis| [on_side(axis, 0), on_side(axis, self.order)]);
        of_product.collect()
    }
}

/// Functions of a line and their derivatives, node by node.
fn line(order: usize, x: f64) -> [(f64, f64); 3] {
    if order == 1 {
        return [(1.0 - x, -1.0), (x, 1.0), (0.0, 0.0)];
    }
    let half = x - 0.5;
    [
        (2.0 * half * (x - 1.0), 4.0 * x - 3.0),
        (4.0 * x * (1.0 - x), 4.0 - 8.0 * x),
        (2.0 * x * half, 4.0 * x - 1.0),
    ]
}

/// Points and weights of Gauss on 0 to 1.
fn gauss(count: usize) -> Vec<(f64, f64)> {
    let on_both_sides: Vec<(f64, f64)> = match count {
        0 | 1 => vec![(0.0, 2.0)],
        2 => vec![(-(1.0f64 / 3.0).sqrt(), 1.0), ((1.0f64 / 3.0).sqrt(), 1.0)],
        3 => vec![(-0.6f64.sqrt(), 5.0 / 9.0), (0.0, 8.0 / 9.0), (0.6f64.sqrt(), 5.0 / 9.0)],
        _ => {
            let root = (6.0f64 / 5.0).sqrt() * 2.0 / 7.0;
            let (near, far) = ((3.0 / 7.0 - root).sqrt(), (3.0 / 7.0 + root).sqrt());
            let (heavy, light) = ((18.0 + 30.0f64.sqrt()) / 36.0, (18.0 - 30.0f64.sqrt()) / 36.0);
            vec![(-far, light), (-near, heavy), (near, heavy), (far, light)]
        }
    };
    on_both_sides.into_iter().map(|(x, weight)| ((1.0 + x) / 2.0, weight / 2.0)).collect()
}

/// A point of an element where it is in space: what its functions are there.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// Where.
    pub point: [f64; 3],
    /// How much a unit of the reference element is there.
    pub volume: f64,
    /// Derivatives of the functions along x, y and z.
    pub slopes: [[f64; 3]; NODES_MAX],
}

impl Shape {
    /// Places a point of the reference element where an element with these nodes is.
    #[must_use]
    pub fn place(self, functions: &Functions, nodes: &[[f64; 3]]) -> Placed {
        let (point, jacobian) = self.jacobian(functions, nodes);
        let (inverse, volume) = inverse(&jacobian);
        let mut slopes = [[0.0; 3]; NODES_MAX];
        for (slopes, of) in slopes.iter_mut().zip(&functions.slopes[..nodes.len()]) {
            for k in 0..self.dim {
                slopes[k] = (0..self.dim).map(|axis| inverse[k][axis] * of[axis]).sum();
            }
        }
        Placed { point, volume, slopes }
    }

    /// Where a point of the reference element is in space, and how much a unit of it is there.
    #[must_use]
    pub fn place_point(self, functions: &Functions, nodes: &[[f64; 3]]) -> ([f64; 3], f64) {
        let (point, jacobian) = self.jacobian(functions, nodes);
        (point, inverse(&jacobian).1)
    }

    /// Where a point is, and what it moves by along each axis of the reference element.
    fn jacobian(self, functions: &Functions, nodes: &[[f64; 3]]) -> ([f64; 3], [[f64; 3]; 3]) {
        match self.dim {
            2 => jacobian::<2>(functions, nodes),
            3 => jacobian::<3>(functions, nodes),
            _ => jacobian::<1>(functions, nodes),
        }
    }

    /// A point of a face where it is in space, how much a unit of the reference face is there, and the direction that it
    /// faces, of length 1; which of the two follows from the order of its nodes.
    #[must_use]
    pub fn place_face(self, functions: &Functions, nodes: &[[f64; 3]]) -> ([f64; 3], f64, [f64; 3]) {
        let (mut point, mut along) = ([0.0; 3], [[0.0; 3]; 2]);
        for (node, x) in nodes.iter().enumerate() {
            for k in 0..3 {
                point[k] += functions.values[node] * x[k];
                (0..self.dim.min(2)).for_each(|axis| along[axis][k] += functions.slopes[node][axis] * x[k]);
            }
        }
        if self.dim < 2 {
            along[1] = [0.0, 0.0, 1.0];
        }
        let [a, b] = along;
        let cross = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
        let area = cross.iter().map(|x| x * x).sum::<f64>().sqrt();
        (point, area, cross.map(|x| x / area))
    }
}

/// The same for so many dimensions, so that the loops have a length that the compiler knows.
fn jacobian<const DIM: usize>(functions: &Functions, nodes: &[[f64; 3]]) -> ([f64; 3], [[f64; 3]; 3]) {
    let (mut point, mut jacobian) = ([0.0; 3], [[0.0; 3]; 3]);
    for ((x, value), slopes) in nodes.iter().zip(&functions.values).zip(&functions.slopes) {
        for k in 0..DIM {
            point[k] += value * x[k];
            (0..DIM).for_each(|axis| jacobian[axis][k] += slopes[axis] * x[k]);
        }
    }
    (DIM..3).for_each(|k| jacobian[k][k] = 1.0);
    (point, jacobian)
}

/// The inverse of a matrix, and its determinant.
fn inverse(m: &[[f64; 3]; 3]) -> ([[f64; 3]; 3], f64) {
    let minor = |i: usize, j: usize| {
        let (a, b, c, d) = ((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3);
        m[a][c] * m[b][d] - m[a][d] * m[b][c]
    };
    let determinant = (0..3).map(|j| m[0][j] * minor(0, j)).sum::<f64>();
    (std::array::from_fn(|i| std::array::from_fn(|j| minor(j, i) / determinant)), determinant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Shape> {
        let both = |order, dim| [Shape::product(order, dim), Shape::simplex(order, dim)];
        [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3)].into_iter().flat_map(move |(o, d)| both(o, d))
    }

    #[test]
    fn functions_sum_to_one_and_their_derivatives_are_those_of_their_values() {
        let point = [0.21, 0.34, 0.17];
        for shape in all() {
            let here = shape.at(point);
            let sum: f64 = here.values[..shape.nodes()].iter().sum();
            assert!((sum - 1.0).abs() < 1e-14, "{shape:?}");
            for axis in 0..shape.dim {
                let mut moved = point;
                moved[axis] += 1e-6;
                let there = shape.at(moved);
                for node in 0..shape.nodes() {
                    let slope = (there.values[node] - here.values[node]) / 1e-6;
                    assert!((slope - here.slopes[node][axis]).abs() < 1e-5, "{shape:?} {node} {axis}");
                }
            }
        }
    }

    /// The integral of x^a y^b z^c over a simplex is a! b! c! / (a + b + c + dim)!.
    #[test]
    fn powers_are_integrated_exactly() {
        let factorial = |n: usize| (1..=n).map(|i| i as f64).product::<f64>();
        for shape in all() {
            let linear = Shape { order: 1, ..shape };
            for along in 2..=4 {
                let degree = 2 * along - 1 - if shape.family == Family::Simplex { shape.dim - 1 } else { 0 };
                for power in 0..=degree {
                    // The coordinate along the last axis, of which a simplex has least left.
                    let node = match shape.family {
                        Family::Product => 1 << (shape.dim - 1),
                        Family::Simplex => shape.dim,
                    };
                    let x = |sample: &Sample| match shape.family {
                        Family::Product => (0..linear.nodes())
                            .filter(|i| i & node != 0)
                            .map(|i| sample.functions.values[i])
                            .sum(),
                        Family::Simplex => sample.functions.values[node],
                    };
                    let sum: f64 = linear
                        .samples(along)
                        .iter()
                        .map(|sample| sample.weight * f64::powi(x(sample), power as i32))
                        .sum();
                    let exact = match shape.family {
                        Family::Product => 1.0 / (power as f64 + 1.0),
                        Family::Simplex => factorial(power) / factorial(power + shape.dim),
                    };
                    assert!((sum - exact).abs() < 1e-14, "{shape:?} {along} {power}: {sum} {exact}");
                }
            }
        }
    }

    #[test]
    fn a_product_has_two_faces_along_each_axis() {
        assert_eq!(Shape::product(1, 2).faces(), [[0, 2], [1, 3], [0, 1], [2, 3]]);
        let faces = Shape::product(2, 3).faces();
        assert!(faces.len() == 6 && faces.iter().all(|face| face.len() == 9));
    }
}
