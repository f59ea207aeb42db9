//! A lattice turned so that three directions of it run along x, y and z: the smallest box that repeats.

use super::CrystalError;
use super::lattice::{Lattice, Site};

/// Miller triads [u v w], in edges of the conventional cell, that run along x, y and z.
pub type Triads = [[i32; 3]; 3];

/// The cell's own directions.
pub const AS_IT_IS: Triads = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];

/// Most that a Miller index may be; the box of a larger one would hold millions of atoms.
const LARGEST_INDEX: i32 = 50;

/// A box along x, y, z that repeats, with its atoms.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Oriented {
    /// Lengths in A.
    pub edges: [f64; 3],
    /// Atoms in fractions of the edges, in an order that depends on the lattice and the triads only.
    pub sites: Vec<Site>,
}

/// Turns `lattice`. Each edge is the shortest translation of the lattice along its triad: for fcc, [1 -1 0] gives
/// a/2 [1 -1 0].
///
/// # Errors
/// Triads that are 0, not orthogonal, left-handed or with indices beyond 50.
pub fn orient(lattice: &Lattice, triads: &Triads) -> Result<Oriented, CrystalError> {
    check(lattice, triads)?;
    let steps = triads.map(|triad| shortest(lattice, triad));
    let length = |step: [f64; 3]| dot(lattice, step, step).sqrt();
    let edges = steps.map(length);
    let volume: f64 = edges.iter().product();
    let cell: f64 = lattice.edges().iter().product();
    let expected = (volume / cell * lattice.sites().len() as f64).round() as usize;
    // The corners of the box tell which conventional cells can reach into it.
    let reach = |k: usize| {
        let ends = steps.map(|step| step[k]);
        let low: f64 = ends.iter().filter(|x| **x < 0.0).sum();
        let high: f64 = ends.iter().filter(|x| **x > 0.0).sum();
        (low - 1.0).floor() as i64..=high.ceil() as i64
    };
    let mut sites = Vec::with_capacity(expected);
    for z in reach(2) {
        for y in reach(1) {
            for x in reach(0) {
                for site in lattice.sites() {
                    let at = [x as f64 + site.at[0], y as f64 + site.at[1], z as f64 + site.at[2]];
                    let fraction = |step: [f64; 3]| dot(lattice, at, step) / dot(lattice, step, step);
                    let at = steps.map(fraction).map(tidy);
                    if at.iter().all(|x| (0.0..1.0).contains(x)) {
                        sites.push(Site { at, species: site.species });
                    }
                }
            }
        }
    }
    if sites.len() != expected {
        return Err(CrystalError::Incomplete { found: sites.len(), expected });
    }
    Ok(Oriented { edges, sites })
}

/// Fractions within rounding of a multiple of 1/24 are that multiple.
fn tidy(x: f64) -> f64 {
    let near = (x * 24.0).round() / 24.0;
    if (x - near).abs() < 1e-9 { near } else { x }
}

fn check(lattice: &Lattice, triads: &Triads) -> Result<(), CrystalError> {
    for triad in triads {
        if *triad == [0; 3] || triad.iter().any(|index| index.abs() > LARGEST_INDEX) {
            return Err(CrystalError::Triad(*triad));
        }
    }
    let [x, y, z] = triads.map(|triad| triad.map(f64::from));
    for (one, other) in [(0, 1), (1, 2), (2, 0)] {
        let (a, b) = ([x, y, z][one], [x, y, z][other]);
        let cosine = dot(lattice, a, b) / (dot(lattice, a, a) * dot(lattice, b, b)).sqrt();
        if cosine.abs() > 1e-9 {
            return Err(CrystalError::NotOrthogonal { one: triads[one], other: triads[other] });
        }
    }
    let volume = x[0] * (y[1] * z[2] - y[2] * z[1]) - x[1] * (y[0] * z[2] - y[2] * z[0])
        + x[2] * (y[0] * z[1] - y[1] * z[0]);
    if volume < 0.0 { Err(CrystalError::LeftHanded(*triads)) } else { Ok(()) }
}

/// The shortest translation of the lattice along a triad.
fn shortest(lattice: &Lattice, triad: [i32; 3]) -> [f64; 3] {
    let greatest = triad.iter().fold(0, |a, b| divisor(a, b.abs()));
    let whole = triad.map(|index| f64::from(index / greatest));
    // Centred cells repeat after a half, a third or less of a whole translation.
    let parts = [6.0, 4.0, 3.0, 2.0].into_iter().map(|part| whole.map(|x| x / part));
    parts.into_iter().find(|step| lattice.repeats_after(*step)).unwrap_or(whole)
}

fn divisor(a: i32, b: i32) -> i32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Scalar product in A^2 of two vectors given in edges of the cell.
fn dot(lattice: &Lattice, a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|k| a[k] * b[k] * lattice.edges()[k] * lattice.edges()[k]).sum()
}
