//! A block that goes from step to step: what it does between what it hears of others. It sends nothing and waits for nothing
//! itself, so that chares and a test in one thread do the same.
//!
//! A step begins with levels for all blocks. Each block takes its values to the new mesh as integrals with the functions of that,
//! which keeps the sum of all exactly, whether elements become larger or smaller; parts of nodes that are others' go to
//! those, together with whose numbers are wanted ([`Rim`]). Then all solve for the new values, and for the displacements.

use super::assemble::Elements;
use super::check::{Measured, measure, measure_error};
use super::forest::Forest;
use super::level::Levels;
use super::machine::Machine;
use super::patch::{error_squared, integrals, resampled, restricted};
use super::problem::Problem;
use super::submesh::Submesh;
use super::swelling::Swelling;
use chares::{Bulk, Reduce};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// What a block tells a neighbour when a step begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rim {
    /// The step.
    pub step: u32,
    /// Who.
    pub from: u32,
    /// Nodes of the neighbour that there will be copies of.
    pub wants: Bulk<u64>,
    /// Nodes of the neighbour that touch this block.
    pub ids: Bulk<u64>,
    /// What is added to their loads.
    pub loads: Bulk<f64>,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The error by the estimate, squared.
    pub error: f64,
    /// The values, squared and integrated.
    pub square: f64,
    /// What all of the volume holds.
    pub content: f64,
    /// What was put in during the step.
    pub put: f64,
    /// Iterations for the values and for the displacements.
    pub iterations: [u32; 2],
    /// How good the values are.
    pub diffusion: Measured,
    /// How good the displacements are.
    pub body: Measured,
    /// Elements.
    pub elements: usize,
}

impl Reduce for Verdict {
    /// Sums, but of the iterations, of which all have made the same.
    fn combine(&mut self, other: Self) {
        self.error += other.error;
        self.square += other.square;
        self.content += other.content;
        self.put += other.put;
        self.diffusion.combine(other.diffusion);
        self.body.combine(other.body);
        self.elements += other.elements;
    }
}

/// A block that goes from step to step.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Marching {
    number: u32,
    /// The step, from 0.
    pub step: u32,
    /// Levels of all blocks.
    pub levels: Vec<u8>,
    /// Values at the nodes of the block, and its level then.
    values: Vec<f64>,
    level: u8,
    /// Which elements of the mesh are those of the block.
    mine: Range<usize>,
    /// The mesh of a step that has begun, and the load that comes from before.
    begun: Option<(Submesh, Vec<f64>)>,
    /// Whether values are known and displacements are solved for.
    pub has_values: bool,
    /// The load of what is solved for, beside what the problem says.
    more: Vec<f64>,
    verdict: Verdict,
}

impl Marching {
    /// A block at the beginning.
    #[must_use]
    pub fn new(swelling: &Swelling, number: u32) -> Self {
        let level = swelling.levels[number as usize];
        Self { number, values: swelling.beginning(number, level), level, ..Self::default() }
    }

    /// Begins a step with these levels: what goes to whom.
    pub fn open(&mut self, swelling: &Swelling, levels: Vec<u8>) -> Vec<(u32, Rim)> {
        let forest = &swelling.forest;
        let (mesh, mine) = forest.submesh(self.number, &levels);
        let part = forest.part(self.number, &levels);
        let loads = self.loads(swelling, part.level);
        let (along, fine) = (forest.along(part.level), forest.fine());
        let mut more = vec![0.0; mesh.own];
        let mut to: BTreeMap<u32, (Vec<u64>, Vec<f64>)> = BTreeMap::new();
        let mut add = |at: [usize; 2], load: f64| {
            let id = fine.id(forest.node(part.place, part.level, at));
            if let Ok(at) = mesh.ids[..mesh.own].binary_search(&id) {
                return more[at] += load;
            }
            let is_of = |source: &&(u32, Range<usize>)| mesh.ids[source.1.clone()].binary_search(&id).is_ok();
            if let Some((owner, _)) = mesh.sources.iter().find(is_of) {
                let (ids, loads) = to.entry(*owner).or_default();
                ids.push(id);
                loads.push(load);
            }
        };
        for (number, load) in loads.into_iter().enumerate() {
            let at = [number % (along + 1), number / (along + 1)];
            match Forest::hangs(along, part.larger, at) {
                None => add(at, load),
                Some(axis) => {
                    let ends = [at[axis] - 1, at[axis] + 1];
                    ends.iter().for_each(|&end| {
                        add(std::array::from_fn(|k| if k == axis { end } else { at[k] }), load / 2.0)
                    });
                }
            }
        }
        let rim = |(other, _): (u32, _)| {
            let source = mesh.sources.iter().find(|(owner, _)| *owner == other);
            let wants =
                source.map_or(Bulk::default(), |(_, place)| Bulk::from_slice(&mesh.ids[place.clone()]));
            let (ids, loads) = to.remove(&other).unwrap_or_default();
            (other, Rim { step: self.step, from: self.number, wants, ids: ids.into(), loads: loads.into() })
        };
        let rims = forest.around(self.number).into_iter().map(rim).collect();
        (self.levels, self.mine, self.begun) = (levels, mine, Some((mesh, more)));
        rims
    }

    /// Whether it has begun a step and waits for its neighbours.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.begun.is_some()
    }

    /// Integrals of the values with the functions of a level, over the length of a step.
    fn loads(&self, swelling: &Swelling, level: u8) -> Vec<f64> {
        let along = |level| swelling.forest.along(level);
        let finer = self.level.max(level);
        let values = resampled(&self.values, along(self.level), along(finer));
        let factor = swelling.capacity / swelling.dt() * swelling.area(finer);
        restricted(&integrals(&values, along(finer), factor), along(finer), along(level))
    }

    /// Goes on when all neighbours have been heard of: who solves for the values; nothing if they sent what is not here.
    pub fn diffuse(&mut self, swelling: &Swelling, body: &Problem, mut rims: Vec<Rim>) -> Option<Machine> {
        let (mesh, mut more) = self.begun.take()?;
        rims.sort_by_key(|rim| rim.from);
        for rim in &rims {
            for (id, load) in rim.ids.iter().zip(rim.loads.iter()) {
                more[mesh.ids[..mesh.own].binary_search(id).ok()?] += load;
            }
        }
        let problem = swelling.diffusion(body, self.step);
        let mut levels = Levels::of_mesh(&problem, mesh, &more);
        let all = |loads: &[f64]| loads.iter().sum::<f64>();
        self.verdict =
            Verdict { put: (all(&levels.load) - all(&more)) * swelling.dt(), ..Verdict::default() };
        self.more = more;
        let finest = levels.levels.first_mut()?;
        for rim in rims.iter().filter(|rim| !rim.wants.is_empty()) {
            finest.want(rim.from, &rim.wants).then_some(())?;
        }
        Some(Machine::of(&problem, levels))
    }

    /// Goes on when the values are known: who solves for the displacements.
    pub fn strain(&mut self, swelling: &Swelling, body: &Problem, mut of_values: Machine) -> Option<Machine> {
        let mesh = of_values.mesh.take()?;
        let values = of_values.solution();
        let problem = swelling.diffusion(body, self.step);
        self.verdict.diffusion = self.measured(swelling, (&mesh, &problem), values);
        self.verdict.iterations[0] = of_values.course.iterations;
        self.level = self.levels[self.number as usize];
        self.values = self.at_nodes(&mesh, values, swelling.forest.along(self.level));
        let (along, area) = (swelling.forest.along(self.level), swelling.area(self.level));
        let loads = integrals(&self.values, along, area);
        self.verdict.error = error_squared(&self.values, along, area);
        self.verdict.square = loads.iter().zip(&self.values).map(|(load, value)| load * value).sum();
        self.verdict.content = swelling.capacity * loads.iter().sum::<f64>();
        self.verdict.elements = along * along;
        let (problem, stress) = (swelling.body(body, self.step), swelling.stress(body));
        let mut more = vec![0.0; mesh.own * problem.each()];
        let mut elements = Elements::new(&problem);
        for (nodes, kind) in mesh.each_kind() {
            elements.compute(&mesh, (nodes, kind));
            elements.add_swelling(&mesh, (nodes, stress), values, &mut more);
        }
        let mut levels = Levels::of_mesh(&problem, mesh, &more);
        self.more = more;
        // It is the same mesh.
        let (finest, before) = (levels.levels.first_mut()?, of_values.levels.first_mut()?);
        finest.halo.wanted = std::mem::take(&mut before.halo.wanted);
        self.has_values = true;
        Some(Machine::of(&problem, levels))
    }

    /// Ends a step: what came of it, and the displacements at the nodes of the block.
    pub fn close(&mut self, swelling: &Swelling, body: &Problem, machine: &Machine) -> (Verdict, Block) {
        let Some(mesh) = &machine.mesh else { return Default::default() };
        let (problem, along) = (swelling.body(body, self.step), swelling.forest.along(self.level));
        self.verdict.body = self.measured(swelling, (mesh, &problem), machine.solution());
        self.verdict.iterations[1] = machine.course.iterations;
        let block = Block {
            step: self.step,
            number: self.number,
            level: self.level,
            values: Bulk::from_slice(&self.values),
            displacements: self.at_nodes(mesh, machine.solution(), along).into(),
        };
        self.has_values = false;
        self.step += 1;
        (self.verdict, block)
    }

    fn measured(
        &self,
        swelling: &Swelling,
        (mesh, problem): (&Submesh, &Problem),
        solution: &[f64],
    ) -> Measured {
        if swelling.is_checked {
            return measure(mesh, problem, solution, &self.more);
        }
        let mut measured = Measured::default();
        measure_error(mesh, problem, solution, &mut measured);
        measured
    }

    /// A solution at all nodes of the block, also those that hang.
    fn at_nodes(&self, mesh: &Submesh, solution: &[f64], along: usize) -> Vec<f64> {
        let each = solution.len() / mesh.nodes().max(1);
        let mut all = vec![0.0; (along + 1) * (along + 1) * each];
        let mine = mesh.each_kind().skip(self.mine.start).take(self.mine.len());
        for (number, (nodes, kind)) in mine.enumerate() {
            let numbers = nodes.iter().flat_map(|&node| &solution[node as usize * each..][..each]);
            let mut numbers: Vec<f64> = numbers.copied().collect();
            kind.spread(&mut numbers, each);
            for (corner, numbers) in numbers.chunks_exact(each).enumerate() {
                let (x, y) = (number % along + corner % 2, number / along + corner / 2);
                all[(y * (along + 1) + x) * each..][..each].copy_from_slice(numbers);
            }
        }
        all
    }

    /// Bytes that it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        8 * (self.values.len() + self.more.len()) + self.levels.len()
    }
}

/// What a block is like after a step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Block {
    /// The step, from 0.
    pub step: u32,
    /// Its number.
    pub number: u32,
    /// Its level.
    pub level: u8,
    /// Values at its nodes, x running fastest.
    pub values: Bulk<f64>,
    /// Displacements there.
    pub displacements: Bulk<f64>,
}
