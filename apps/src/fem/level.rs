//! What a subdomain has of each mesh: the finest one and, for multigrid, coarser and coarser ones of the same box.

use super::assemble::{Elements, Fixed, System, assemble, largest_eigenvalue};
use super::lattice::{Cut, Lattice, Nodes, hull};
use super::operator::Operator;
use super::problem::{Domain, Preconditioner, Problem, Source};
use super::rows::Rows;
use super::steps::Polynomial;
use super::submesh::{Numbers, Submesh};
use super::transfer::{Line, Transfer, along, needed, transposed};
use chares::Bulk;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The meshes of a problem, from the finest on.
#[must_use]
pub fn lattices(problem: &Problem) -> Vec<Lattice> {
    let Domain::Lattice(finest) = problem.domain else { return Vec::new() };
    let mut all = vec![finest];
    if problem.solver.preconditioner != Preconditioner::Multigrid {
        return all;
    }
    let is_small = |lattice: &Lattice| lattice.nodes() * problem.each() <= problem.solver.coarsest;
    while let Some(last) = all.last().filter(|last| !is_small(last))
        && let Some(coarser) = last.coarser()
    {
        all.push(coarser);
    }
    all
}

/// The mesh that multigrid solves at one place; without multigrid there is none.
#[must_use]
pub fn coarsest_lattice(problem: &Problem) -> Option<Lattice> {
    let is_cycle = problem.solver.preconditioner == Preconditioner::Multigrid;
    if is_cycle { lattices(problem).pop() } else { None }
}

/// Who has copies of which own numbers, and whose copies are here.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Halo {
    /// Whose nodes, and where they are here.
    pub sources: Vec<(u32, Range<usize>)>,
    /// Who has copies, and of which own nodes.
    pub wanted: Vec<(u32, Bulk<u32>)>,
}

/// What a subdomain has of one mesh.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Level {
    /// Own nodes.
    pub own: usize,
    /// Numbers of all nodes that are here in the whole mesh, own ones first.
    pub ids: Bulk<u64>,
    /// Exchanges.
    pub halo: Halo,
    /// The matrix; none where the mesh is solved at one place.
    pub rows: Operator,
    /// One over the diagonal; 0 for what is fixed.
    pub inverse: Bulk<f64>,
    /// The own unknowns that are fixed.
    pub is_fixed: Bulk<u32>,
    /// To the next coarser mesh.
    pub down: Transfer,
    /// From it.
    pub up: Transfer,
    /// The smoother.
    pub polynomial: Polynomial,
}

/// All that a subdomain has of a problem.
#[derive(Debug, Default)]
pub struct Levels {
    /// From the finest on.
    pub levels: Vec<Level>,
    /// The finest mesh, if it is no box.
    pub mesh: Option<Submesh>,
    /// The right-hand side.
    pub load: Bulk<f64>,
    /// Fixed values.
    pub fixed: Bulk<f64>,
}

impl Levels {
    /// Of a mesh that is no box; `more` is a load beside what the problem says, or empty.
    #[must_use]
    pub fn of_mesh(problem: &Problem, mesh: Submesh, more: &[f64]) -> Self {
        let System { rows, load, fixed, is_fixed } = assemble(&mesh, problem, more);
        let level = Level::new(&mesh, rows, is_fixed);
        Self { levels: vec![level], mesh: Some(mesh), load, fixed }
    }

    /// The finest mesh of a box, as far as a subdomain has it. It is not kept, as it is soon made anew.
    #[must_use]
    pub fn mesh_of_lattice(problem: &Problem, part: u32) -> Option<Submesh> {
        Boxes::of(problem, part).map(|boxes| boxes.mesh(0, part))
    }

    /// Of a box.
    #[must_use]
    pub fn of_lattice(problem: &Problem, part: u32) -> Self {
        let Some(boxes) = Boxes::of(problem, part) else { return Self::default() };
        let Boxes { cut, lattices, lines, turned, helds } = &boxes;
        let mut all = Self::default();
        let mut numbers: Vec<Numbers> = Vec::new();
        for (at, (lattice, held)) in lattices.iter().zip(helds).enumerate() {
            let mesh = boxes.mesh(at, part);
            numbers.push(Numbers::new(held, mesh.ids.iter().map(|&id| lattice.place(id))));
            let is_finest = at == 0;
            if !is_finest && at + 1 == lattices.len() {
                let fixed = Fixed::of(&mesh, problem);
                all.levels.push(Level::new(&mesh, Rows::default(), fixed.own(mesh.own * problem.each())));
                continue;
            }
            // On coarser meshes only residuals are loads.
            let source = if is_finest { problem.source } else { Source::Even([0.0; 3]) };
            let of_level = Problem { domain: Domain::Lattice(*lattice), source, ..problem.clone() };
            let System { rows, load, fixed, is_fixed } = assemble(&mesh, &of_level, &[]);
            let mut level = Level::new(&mesh, rows, is_fixed);
            level.polynomial = polynomial(&of_level, &mesh);
            all.levels.push(level);
            if is_finest {
                (all.load, all.fixed) = (load, fixed);
            }
        }
        for at in 0..lines.len() {
            let own = |lattice: &Lattice| cut.coarse_part(part, lattice.nodes_along());
            all.levels[at].up = Transfer::new(&lines[at], &own(&lattices[at]), &numbers[at + 1]);
            all.levels[at].down = Transfer::new(&turned[at], &own(&lattices[at + 1]), &numbers[at]);
        }
        all
    }
}

/// A box, the coarser meshes of it, and what a subdomain has of each.
struct Boxes {
    cut: Cut,
    lattices: Vec<Lattice>,
    /// From each mesh to the next coarser one, and the other way round.
    lines: Vec<[Line; 3]>,
    turned: Vec<[Line; 3]>,
    helds: Vec<Nodes>,
}

impl Boxes {
    fn of(problem: &Problem, part: u32) -> Option<Self> {
        let (finest, cut) = problem.lattice()?;
        let lattices = lattices(problem);
        debug_assert_eq!(finest, lattices[0]);
        let lines: Vec<[Line; 3]> = lattices.windows(2).map(|two| along(&two[0], &two[1])).collect();
        let turned: Vec<[Line; 3]> = (lines.iter().zip(&lattices[1..]))
            .map(|(lines, coarse)| std::array::from_fn(|k| transposed(&lines[k], coarse.nodes_along()[k])))
            .collect();
        let helds = helds(&lattices, (&lines, &turned), &cut, part);
        Some(Self { cut, lattices, lines, turned, helds })
    }

    /// A mesh, 0 for the finest.
    fn mesh(&self, at: usize, part: u32) -> Submesh {
        Submesh::of_lattice(&self.lattices[at], &self.cut, part, &self.helds[at])
    }
}

/// The nodes of each mesh that a subdomain has: own ones, those of their elements, and those that count for what is taken to
/// and from the meshes beside it.
fn helds(
    lattices: &[Lattice],
    (lines, turned): (&[[Line; 3]], &[[Line; 3]]),
    cut: &Cut,
    part: u32,
) -> Vec<Nodes> {
    let owns: Vec<Nodes> = lattices.iter().map(|of| cut.coarse_part(part, of.nodes_along())).collect();
    let is_empty = |nodes: &Nodes| nodes.iter().any(Range::is_empty);
    let of_level = |at: usize| {
        let own = &owns[at];
        let mut held = own.clone();
        if !is_empty(own) {
            held = hull(&held, &lattices[at].nodes_of(&lattices[at].elements_of(own)));
        }
        if at > 0 && !is_empty(&owns[at - 1]) {
            held = hull(&held, &needed(&lines[at - 1], &owns[at - 1]));
        }
        if at + 1 < lattices.len() && !is_empty(&owns[at + 1]) {
            held = hull(&held, &needed(&turned[at], &owns[at + 1]));
        }
        held
    };
    (0..lattices.len()).map(of_level).collect()
}

impl Level {
    fn new(mesh: &Submesh, rows: Rows, is_fixed: Bulk<u32>) -> Self {
        let mut inverse: Vec<f64> = rows.diagonal().into_iter().map(|a| 1.0 / a).collect();
        if !inverse.is_empty() {
            is_fixed.iter().for_each(|&at| inverse[at as usize] = 0.0);
        }
        Self {
            own: mesh.own,
            ids: mesh.ids.clone(),
            halo: Halo { sources: mesh.sources.clone(), wanted: Vec::new() },
            rows: rows.into(),
            inverse: inverse.into(),
            is_fixed,
            ..Self::default()
        }
    }

    /// Bytes that it takes, without vectors.
    #[must_use]
    pub fn bytes(&self) -> usize {
        8 * (self.ids.len() + self.inverse.len()) + self.rows.bytes() + self.down.bytes() + self.up.bytes()
    }

    /// Which own nodes of others it has copies of: whose, and their numbers in the whole mesh.
    pub fn wants(&self) -> impl Iterator<Item = (u32, Bulk<u64>)> + '_ {
        self.halo.sources.iter().map(|(from, place)| (*from, Bulk::from_slice(&self.ids[place.clone()])))
    }

    /// Takes up that another has copies of own nodes with these numbers in the whole mesh; `false` if one is not own.
    pub fn want(&mut self, by: u32, ids: &[u64]) -> bool {
        let own = &self.ids[..self.own];
        let places: Option<Vec<u32>> =
            ids.iter().map(|id| own.binary_search(id).ok().map(|at| at as u32)).collect();
        let Some(places) = places else { return false };
        self.halo.wanted.push((by, places.into()));
        self.halo.wanted.sort_by_key(|(by, _)| *by);
        true
    }
}

fn polynomial(problem: &Problem, mesh: &Submesh) -> Polynomial {
    let Some(element) = mesh.each_kind().next() else { return Polynomial::new(1.0, 0.1) };
    let mut elements = Elements::new(problem);
    elements.compute(mesh, element);
    let largest = largest_eigenvalue(&elements.matrix, element.0.len() * problem.each());
    Polynomial::new(largest, largest / SMOOTHED)
}

/// How far below the largest eigenvalue the smoother still counts: what lies deeper is left to coarser meshes.
const SMOOTHED: f64 = 6.0;
