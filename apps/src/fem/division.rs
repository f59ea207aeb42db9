//! Who has which subdomains, what they hold, and how much work they are. Subdomains are numbered as bisection makes them, so
//! that a range of them is a part of the mesh with little surface: each PE gets one, by its speed.

use super::cholesky::Band;
use super::gmres::BASIS;
use super::level::coarsest_lattice;
use super::machine::DEGREE;
use super::problem::{Method, Preconditioner, Problem};
use super::shape::Family;
use super::swelling::Swelling;
use crate::division::{self, Division, DivisionError, Shortage, Work, shares_by, shares_of};
use chares::loadbalance::machines::{Bytes, Machines};
use chares::loadbalance::{Items, PartitionError, placement};

/// Iterations of multigrid, for a guess.
const CYCLES: f64 = 12.0;
/// Vectors of the finest mesh.
const VECTORS: usize = 12;
/// What a body that swells holds, by what its displacements alone take.
const SWELLING: f64 = 1.6;
/// Bytes of the number of a node in a subdomain.
const NUMBER_BYTES: f64 = size_of::<u32>() as f64;
/// Bytes of a node beside its numbers: its place, number, groups and elements.
const NODE_BYTES: usize = 80;
/// The same of a box, whose mesh is not kept: its number, and where a run of rows ends that are alike.
const BOX_NODE_BYTES: usize = 16;

impl Problem {
    /// Blocks in a row of the matrix, on average.
    #[must_use]
    pub fn blocks_of_row(&self) -> f64 {
        let shape = self.shape();
        match (shape.family, shape.order, shape.dim) {
            (Family::Product, order, dim) => [3.0f64, 4.0][order - 1].powi(dim as i32),
            (Family::Simplex, 1, 2) => 7.0,
            (Family::Simplex, 1, _) => 15.0,
            (Family::Simplex, _, 2) => 11.5,
            (Family::Simplex, _, _) => 28.0,
        }
    }

    /// Numbers of the matrix.
    #[must_use]
    pub fn entries(&self) -> f64 {
        self.nodes() as f64 * self.blocks_of_row() * (self.each() * self.each()) as f64
    }

    /// Bytes of the matrix's rows of a node.
    #[must_use]
    pub fn row_bytes(&self) -> f64 {
        self.blocks_of_row() * (8 * self.each() * self.each() + 4) as f64
    }

    /// Numbers of the matrices of all meshes.
    #[must_use]
    pub fn entries_of_all_meshes(&self) -> f64 {
        self.entries() * self.of_all_meshes()
    }

    /// All meshes relative to the finest.
    fn of_all_meshes(&self) -> f64 {
        match self.solver.preconditioner {
            Preconditioner::Multigrid => 1.0 / (1.0 - 0.5f64.powi(self.dim() as i32)),
            _ => 1.0,
        }
    }

    /// Vectors of a basis.
    fn basis(&self) -> usize {
        if self.solver.method == Method::Gmres { BASIS } else { 0 }
    }

    /// What an iteration takes, floating-point operations.
    #[must_use]
    pub fn work_of_iteration(&self) -> f64 {
        let products = match self.solver.preconditioner {
            Preconditioner::Multigrid => 1.0 + 2.0 * f64::from(DEGREE) * self.of_all_meshes(),
            Preconditioner::Ilu => 2.0,
            Preconditioner::Jacobi | Preconditioner::None => 1.0,
        };
        // Each vector of a basis, which is half full on average, is met four times.
        2.0 * self.entries() * products + (14.0 + 4.0 * self.basis() as f64) * self.unknowns() as f64
    }

    /// How many iterations there will be, about.
    #[must_use]
    pub fn iterations_guess(&self) -> f64 {
        let along = (self.nodes() as f64).powf(1.0 / self.dim() as f64);
        if let Some(swelling) = &self.swelling {
            return swelling.iterations_guess(self);
        }
        let guess = match self.solver.preconditioner {
            Preconditioner::Multigrid => CYCLES,
            Preconditioner::Ilu => along,
            Preconditioner::Jacobi | Preconditioner::None => 2.5 * along,
        };
        guess.clamp(1.0, f64::from(self.solver.max_iterations))
    }

    /// Bytes that a subdomain with so many nodes holds.
    #[must_use]
    pub fn bytes_of(&self, nodes: f64) -> f64 {
        let each = self.each();
        let factors = if self.solver.preconditioner == Preconditioner::Ilu { 2.0 } else { 1.0 };
        // Of a body that swells there is the matrix of its values, too, and blocks have copies of their neighbours' nodes.
        let nodes = if self.swelling.is_some() { SWELLING * nodes } else { nodes };
        let (rows, beside) = match self.lattice() {
            Some(_) => (factors - 1.0 + self.surface(), BOX_NODE_BYTES),
            None => (factors, NODE_BYTES),
        };
        let of_node = self.row_bytes() * rows + ((VECTORS + self.basis()) * 8 * each + beside) as f64;
        nodes * (of_node + self.transfer_bytes()) * self.of_all_meshes()
    }

    /// Bytes for each node of what takes numbers to the next coarser mesh and back: the numbers of the nodes of both.
    fn transfer_bytes(&self) -> f64 {
        match self.solver.preconditioner {
            Preconditioner::Multigrid => NUMBER_BYTES * (1.0 + 0.5f64.powi(self.dim() as i32)),
            _ => 0.0,
        }
    }

    /// The part of a subdomain's nodes that are at its surface, where rows are not all alike.
    fn surface(&self) -> f64 {
        let along = (self.nodes() as f64 / f64::from(self.parts)).powf(1.0 / self.dim() as f64);
        1.0 - (1.0 - 2.0 / along.max(2.0)).powi(self.dim() as i32)
    }

    /// Bytes that a PE needs for a moment: those of all rows of a subdomain of a box, twice, and of its mesh.
    fn bytes_for_a_moment(&self) -> f64 {
        let nodes = self.nodes() as f64 / f64::from(self.parts);
        self.lattice().map_or(0.0, |_| nodes * (2.0 * self.row_bytes() + NODE_BYTES as f64))
    }

    /// Bytes of the factor of the coarsest mesh.
    #[must_use]
    pub fn bytes_of_coarsest(&self) -> f64 {
        coarsest_lattice(self).map_or(0.0, |coarsest| Band::of(&coarsest, self.each()).bytes())
    }

    /// Where it is solved: which PE has which subdomains.
    ///
    /// # Errors
    /// Which node or host has too little memory, how much is needed there, and how to mend it.
    pub(super) fn divide(&self, machines: &Machines) -> Result<Division<Vec<u32>>, DivisionError> {
        division::divide(self, machines, machines.speeds())
    }

    /// Bytes that a node with this share exchanges in an iteration: of the nodes along its surface.
    fn exchanged(&self, share: f64) -> Bytes {
        let dim = self.dim() as f64;
        let is_alone = share >= 1.0;
        let surface =
            if is_alone { 0.0 } else { dim * (share * self.nodes() as f64).powf((dim - 1.0) / dim) };
        let times = match self.solver.preconditioner {
            Preconditioner::Multigrid => f64::from(2 * DEGREE + 3) * 2.0,
            _ => 1.0,
        };
        let bytes = surface * 8.0 * self.each() as f64 * times;
        Bytes { sent: bytes, received: bytes }
    }

    /// Exchanges and sums of an iteration that follow one another.
    #[must_use]
    pub fn rounds(&self) -> f64 {
        let levels = (self.unknowns() as f64 / self.solver.coarsest as f64).log2() / self.dim() as f64;
        match self.solver.preconditioner {
            Preconditioner::Multigrid => 5.0 + f64::from(2 * DEGREE + 2) * levels.max(0.0).ceil(),
            _ => 3.0,
        }
    }
}

impl Work for Problem {
    /// The PE of each subdomain.
    type Owners = Vec<u32>;

    fn by(&self, machines: &Machines, weights: &[f64]) -> Result<Division<Vec<u32>>, PartitionError> {
        let costs = self.swelling.as_ref().map_or(Vec::new(), Swelling::costs);
        let items =
            if costs.is_empty() { Items::alike(self.parts.into()) } else { Items::with_costs(&costs) };
        let bounds = placement::contiguous(&items, &machines.parts(weights))?;
        let owners = (0..).zip(bounds.windows(2)).flat_map(|(pe, ends)| (ends[0]..ends[1]).map(move |_| pe));
        let owners: Vec<u32> = owners.collect();
        let shares = match costs.is_empty() {
            true => shares_of(&bounds),
            false => shares_by(&owners, weights.len(), |block| costs[block]),
        };
        // Of a body that swells the work is not where the elements are.
        let by_elements = self.swelling.as_ref().map(|swelling| {
            let elements = swelling.elements();
            shares_by(&owners, weights.len(), |block| elements[block])
        });
        let held = by_elements.as_ref().unwrap_or(&shares);
        let pes = machines.pes();
        let of = |pes: &std::ops::Range<u32>| pes.clone().map(|pe| held[pe as usize]).sum::<f64>();
        let nodes = self.nodes() as f64;
        // The first subdomain has the coarsest mesh, too.
        let first = owners.first().copied().unwrap_or_default();
        let coarsest =
            |pes: &std::ops::Range<u32>| if pes.contains(&first) { self.bytes_of_coarsest() } else { 0.0 };
        let memory = |pes: std::ops::Range<u32>| {
            let for_a_moment = pes.len() as f64 * self.bytes_for_a_moment();
            (self.bytes_of(of(&pes) * nodes) + for_a_moment + coarsest(&pes)) as u64
        };
        Ok(Division {
            owners,
            weights: weights.to_vec(),
            bytes: pes.iter().map(|pes| self.exchanged(of(pes))).collect(),
            memory: pes.iter().cloned().map(memory).collect(),
            shares,
        })
    }

    fn what(&self) -> String {
        let unit = if self.swelling.is_some() { "elements" } else { "nodes" };
        format!("a mesh of {} {unit} with {} unknowns", self.nodes(), self.unknowns())
    }

    fn of_launcher(&self, _: bool) -> u64 {
        if let Some(swelling) = &self.swelling {
            // All values of a step, and what is written of them.
            return if swelling.every.is_some() { self.nodes() as u64 * 4 * NODE_BYTES as u64 } else { 0 };
        }
        let is_read = self.lattice().is_none();
        // A mesh that is read is here as a whole, and then in parts.
        if is_read { 3 * (self.nodes() as u64 * NODE_BYTES as u64) } else { 0 }
    }

    fn advice(&self, place: Shortage) -> &'static str {
        match place {
            _ if self.bytes_of_coarsest() > self.bytes_of(self.nodes() as f64) => {
                "nearly all of it is for the coarsest mesh: give a smaller --coarsest"
            }
            Shortage::Node => "take fewer elements or more nodes, or raise its `memory` in the nodes file",
            Shortage::Host | Shortage::LaunchersHost => "take fewer elements or more hosts",
        }
    }
}
