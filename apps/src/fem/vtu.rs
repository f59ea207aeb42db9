//! Files for ParaView: an unstructured grid of VTK in XML, its numbers behind the text as they are in memory (W. Schroeder and
//! others, "The VTK User's Guide", section on file formats).

use super::lattice::{Lattice, each};
use super::mesh::Mesh;
use super::problem::Problem;
use super::shape::{Family, Shape};
use crate::output;
use chares::RunError;
use std::io::{self, Write};
use std::path::Path;

/// Nodes and elements of a whole mesh.
#[derive(Debug)]
pub struct Whole {
    /// Of all elements.
    pub shape: Shape,
    /// Where nodes are.
    pub points: Vec<[f64; 3]>,
    /// Nodes of the elements, one after the other.
    pub elements: Vec<u32>,
}

/// Numbers of all nodes, or of all elements.
#[derive(Debug)]
pub struct Field<'a> {
    /// What they are.
    pub name: &'a str,
    /// How many each has; of two a third one is made, 0.
    pub width: usize,
    /// The numbers.
    pub values: &'a [f64],
}

impl Field<'_> {
    /// How many each has in the file.
    fn written(&self) -> usize {
        if self.width == 1 { 1 } else { 3 }
    }
}

impl From<Mesh> for Whole {
    fn from(mesh: Mesh) -> Self {
        Self { shape: mesh.shape, points: mesh.points, elements: mesh.elements }
    }
}

impl From<Lattice> for Whole {
    fn from(lattice: Lattice) -> Self {
        let (order, all) = (lattice.shape.order, lattice.nodes_along().map(|n| 0..n));
        let elements = each(&lattice.elements.map(|count| 0..count.max(1))).flat_map(|element| {
            let nodes = std::array::from_fn(|k| match lattice.elements[k] {
                0 => 0..1,
                _ => element[k] * order..(element[k] + 1) * order + 1,
            });
            each(&nodes).map(move |at| lattice.id(at) as u32)
        });
        let points = each(&all).map(|at| lattice.point(at)).collect();
        Self { shape: lattice.shape, elements: elements.collect(), points }
    }
}

/// Writes a solution, and for elasticity the stress of von Mises in the middle of each element.
///
/// # Errors
/// It cannot be written.
pub fn write_solution(
    path: &Path,
    problem: &Problem,
    whole: &Whole,
    solution: &[f64],
) -> Result<(), RunError> {
    let width = problem.each();
    let stress = if width > 1 { von_mises(problem, whole, solution) } else { Vec::new() };
    let name = if width == 1 { "u" } else { "displacement" };
    let cells = Field { name: "von_mises", width: 1, values: &stress };
    let cells = if width > 1 { &[cells][..] } else { &[] };
    write(path, whole, &[Field { name, width, values: solution }], cells)
}

/// Writes numbers of nodes and of elements.
///
/// # Errors
/// It cannot be written.
pub fn write(
    path: &Path,
    whole: &Whole,
    of_nodes: &[Field<'_>],
    of_cells: &[Field<'_>],
) -> Result<(), RunError> {
    let shape = whole.shape;
    let (kind, order) = cell(shape);
    let count = whole.elements.len() / shape.nodes();
    let mut text = String::from(
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"LittleEndian\" \
         header_type=\"UInt64\">\n<UnstructuredGrid>\n",
    );
    text += &format!("<Piece NumberOfPoints=\"{}\" NumberOfCells=\"{count}\">\n", whole.points.len());
    let mut offset = 0;
    let mut array = |kind: &str, name: &str, width: usize, bytes: usize| {
        let line = format!(
            "<DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{width}\" format=\"appended\" \
             offset=\"{offset}\"/>\n"
        );
        offset += 8 + bytes;
        line
    };
    let nodes = whole.points.len();
    for (section, fields, count) in [("PointData", of_nodes, nodes), ("CellData", of_cells, count)] {
        text += &format!("<{section}>\n");
        for field in fields {
            text += &array("Float64", field.name, field.written(), count * field.written() * 8);
        }
        text += &format!("</{section}>\n");
    }
    text += &format!("<Points>\n{}</Points>\n<Cells>\n", array("Float64", "points", 3, nodes * 24));
    text += &array("UInt32", "connectivity", 1, whole.elements.len() * 4);
    text += &array("UInt64", "offsets", 1, count * 8);
    text += &array("UInt8", "types", 1, count);
    text += "</Cells>\n</Piece>\n</UnstructuredGrid>\n<AppendedData encoding=\"raw\">\n_";
    output::fill(path, |out| {
        out.write_all(text.as_bytes())?;
        for field in of_nodes.iter().chain(of_cells) {
            let rows = field.values.chunks_exact(field.width);
            let padded =
                rows.flat_map(|row| (0..field.written()).map(|c| row.get(c).copied().unwrap_or(0.0)));
            let bytes = field.values.len() / field.width * field.written() * 8;
            numbers(out, bytes, padded.map(f64::to_le_bytes))?;
        }
        numbers(out, nodes * 24, whole.points.iter().flatten().map(|x| x.to_le_bytes()))?;
        let ordered =
            whole.elements.chunks_exact(shape.nodes()).flat_map(|nodes| order.iter().map(|&at| nodes[at]));
        numbers(out, whole.elements.len() * 4, ordered.map(u32::to_le_bytes))?;
        numbers(out, count * 8, (1..=count).map(|at| ((at * shape.nodes()) as u64).to_le_bytes()))?;
        numbers(out, count, (0..count).map(|_| [kind]))?;
        out.write_all(b"\n</AppendedData>\n</VTKFile>\n")
    })
}

fn numbers<const N: usize>(
    out: &mut dyn Write,
    bytes: usize,
    numbers: impl Iterator<Item = [u8; N]>,
) -> io::Result<()> {
    out.write_all(&(bytes as u64).to_le_bytes())?;
    let mut buffer = Vec::with_capacity(1 << 16);
    for number in numbers {
        buffer.extend_from_slice(&number);
        if buffer.len() + N > 1 << 16 {
            out.write_all(&buffer)?;
            buffer.clear();
        }
    }
    out.write_all(&buffer)
}

/// The number of a shape in VTK, and which of our nodes each of its nodes is.
fn cell(shape: Shape) -> (u8, Vec<usize>) {
    match (shape.family, shape.order, shape.dim) {
        (Family::Product, 1, 2) => (9, vec![0, 1, 3, 2]),
        (Family::Product, 1, _) => (12, vec![0, 1, 3, 2, 4, 5, 7, 6]),
        (Family::Product, _, 2) => (28, vec![0, 2, 8, 6, 1, 5, 7, 3, 4]),
        (Family::Product, ..) => {
            let corners = [0, 2, 8, 6, 18, 20, 26, 24];
            let edges = [1, 5, 7, 3, 19, 23, 25, 21, 9, 11, 17, 15];
            (29, [&corners[..], &edges, &[12, 14, 10, 16, 4, 22, 13]].concat())
        }
        (Family::Simplex, 1, 2) => (5, vec![0, 1, 2]),
        (Family::Simplex, 1, _) => (10, vec![0, 1, 2, 3]),
        (Family::Simplex, _, 2) => (22, vec![0, 1, 2, 3, 4, 5]),
        (Family::Simplex, ..) => (24, vec![0, 1, 2, 3, 4, 5, 6, 7, 9, 8]),
    }
}

/// The stress of von Mises in the middle of each element.
#[must_use]
pub fn von_mises(problem: &Problem, whole: &Whole, solution: &[f64]) -> Vec<f64> {
    let (shape, unknowns) = (problem.shape(), problem.each());
    let middle = shape.at(match shape.family {
        Family::Product => [0.5; 3],
        Family::Simplex => [1.0 / (shape.dim + 1) as f64; 3],
    });
    let of_element = |nodes: &[u32]| {
        let points: Vec<[f64; 3]> = nodes.iter().map(|&node| whole.points[node as usize]).collect();
        let placed = shape.place(&middle, &points);
        let mut slopes = [[0.0; 3]; 3];
        for (&node, slope) in nodes.iter().zip(&placed.slopes) {
            for c in 0..unknowns {
                let value = solution[node as usize * unknowns + c];
                slopes[c].iter_mut().zip(slope).for_each(|(sum, slope)| *sum += value * slope);
            }
        }
        let [[xx, xy, xz], [_, yy, yz], [_, _, zz]] = problem.physics.stress(&slopes);
        let sides = (xx - yy).powi(2) + (yy - zz).powi(2) + (zz - xx).powi(2);
        (sides / 2.0 + 3.0 * (xy * xy + yz * yz + xz * xz)).sqrt()
    };
    whole.elements.chunks_exact(shape.nodes()).map(of_element).collect()
}
