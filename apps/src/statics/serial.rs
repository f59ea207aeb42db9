//! All blocks in one thread: the reference that every other mode has to equal bit by bit.

use super::block::{Block, Bounds, Total};
use super::crystal::Crystal;
use super::neighbours::{Extent, influence};
use super::partition::{ATOMS_PER_BLOCK, Partition};
use super::potential::Potential;
use super::relax::vectors::Vectors;
use super::relax::{Limits, Measured, Method, Order, Relaxation, Stop};
use std::ops::Range;

/// Where a run of ghosts comes from.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Run {
    block: usize,
    shift: [f64; 3],
    atoms: Vec<u32>,
}

/// Atoms in blocks, in a box, with a potential.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct System {
    potential: Potential,
    bounds: Bounds,
    skin: f64,
    blocks: Vec<Block>,
    /// Blocks that are computed here; of others only atoms and slopes are known.
    mine: Range<usize>,
    runs: Vec<Vec<Run>>,
    evaluations: usize,
    rebuilds: usize,
}

/// How a relaxation ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Relaxed {
    /// What ended it.
    pub stop: Stop,
    /// Energy in eV.
    pub energy: f64,
    /// Largest component of a force, in eV/A.
    pub max_force: f64,
    /// Lines searched.
    pub iterations: u64,
    /// Evaluations of energy and forces.
    pub evaluations: u64,
    /// Bytes of memory that the atoms took.
    pub bytes: usize,
}

impl System {
    /// A system of these blocks, with lists that reach `skin` A beyond the cutoff.
    pub fn new(potential: Potential, bounds: Bounds, blocks: Vec<Block>, skin: f64) -> Self {
        let mut system = Self::shared(potential, bounds, blocks, skin, 0..usize::MAX);
        system.rebuild();
        system
    }

    /// The same without lists yet, of which only the blocks `mine` are computed: others, who compute the rest, tell
    /// places and slopes of theirs.
    pub fn shared(
        potential: Potential,
        bounds: Bounds,
        blocks: Vec<Block>,
        skin: f64,
        mine: Range<usize>,
    ) -> Self {
        let mine = mine.start.min(blocks.len())..mine.end.min(blocks.len());
        let runs = vec![Vec::new(); blocks.len()];
        Self { potential, bounds, skin, blocks, mine, runs, evaluations: 0, rebuilds: 0 }
    }

    /// A system of a perfect crystal.
    pub fn of_crystal(potential: Potential, crystal: &Crystal, skin: f64) -> Self {
        let partition = Partition::of(crystal, ATOMS_PER_BLOCK);
        let blocks = (0..partition.len()).map(|block| Block::new(partition.atoms(crystal, block)));
        Self::new(potential, crystal.bounds(), blocks.collect(), skin)
    }

    /// The blocks.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The blocks, to be changed; [`Self::rebuild`] has to follow when atoms were moved far, removed or changed.
    pub fn blocks_mut(&mut self) -> &mut [Block] {
        &mut self.blocks
    }

    /// The blocks alone.
    #[must_use]
    pub fn into_blocks(self) -> Vec<Block> {
        self.blocks
    }

    /// The potential.
    pub fn potential(&self) -> &Potential {
        &self.potential
    }

    /// The box.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Width of the skin, in A.
    pub fn skin(&self) -> f64 {
        self.skin
    }

    /// Evaluations so far.
    pub fn evaluations(&self) -> usize {
        self.evaluations
    }

    /// Lists built so far.
    pub fn rebuilds(&self) -> usize {
        self.rebuilds
    }

    /// Stretches the box and all places in it by a factor per axis.
    pub fn scale(&mut self, factors: [f64; 3]) {
        self.stretch(factors);
        self.rebuild();
    }

    /// The same; [`Self::rebuild`] has to follow.
    pub fn stretch(&mut self, factors: [f64; 3]) {
        self.bounds.scale(factors);
        self.blocks.iter_mut().for_each(|block| block.scale(factors));
    }

    /// Shears the box and all places in it: x grows by `strain` y.
    pub fn shear(&mut self, strain: f64) {
        let [_, ly, _] = self.bounds.lengths;
        self.bounds.tilt[0] += strain * ly;
        self.bounds.tilt[1] += strain * self.bounds.tilt[2];
        for at in self.blocks.iter_mut().flat_map(|block| &mut block.at) {
            at[0] += strain * at[1];
        }
        self.rebuild();
    }

    /// Finds ghosts and neighbours anew.
    pub fn rebuild(&mut self) {
        self.rebuilds += 1;
        let reach = self.potential.cutoff() + self.skin;
        let extents: Vec<Option<Extent>> = self.blocks.iter().map(Block::extent).collect();
        for me in self.mine.clone() {
            let mut runs = Vec::new();
            for (other, image) in influence(&extents, me, &self.bounds, reach) {
                let Some(target) = &extents[me] else { continue };
                let shift = self.bounds.shift(image);
                let atoms = self.blocks[other].felt_in(target, shift, reach);
                runs.push(Run { block: other, shift, atoms });
            }
            let ghosts: Vec<_> = runs.iter().flat_map(|run| self.features(run)).collect();
            self.blocks[me].set_ghosts(ghosts);
            self.runs[me] = runs;
        }
        self.send_places();
        for block in &mut self.blocks[self.mine.clone()] {
            block.rebuild(reach);
        }
    }

    fn features(&self, run: &Run) -> impl Iterator<Item = (u8, super::block::Class)> + '_ {
        let block = &self.blocks[run.block];
        run.atoms.clone().into_iter().map(|i| (block.species[i as usize], block.classes[i as usize]))
    }

    fn send_places(&mut self) {
        for (me, runs) in self.runs.iter().enumerate() {
            let mut block = std::mem::take(&mut self.blocks[me]);
            let mut ghost = block.own();
            for run in runs {
                for &i in &run.atoms {
                    // An atom may feel images of its own block.
                    let places = if run.block == me { &block.at } else { &self.blocks[run.block].at };
                    let at = places[i as usize];
                    block.at[ghost] = std::array::from_fn(|k| at[k] + run.shift[k]);
                    ghost += 1;
                }
            }
            self.blocks[me] = block;
        }
    }

    fn send_slopes(&mut self) {
        for (me, runs) in self.runs.iter().enumerate() {
            let mut block = std::mem::take(&mut self.blocks[me]);
            let mut ghost = block.own();
            for run in runs {
                for &i in &run.atoms {
                    let slopes = if run.block == me { &block.slope } else { &self.blocks[run.block].slope };
                    block.slope[ghost] = slopes[i as usize];
                    ghost += 1;
                }
            }
            self.blocks[me] = block;
        }
    }

    /// Energy, forces and, if asked, virial at the places of now, with the lists of the last rebuild.
    pub fn evaluate(&mut self, with_virial: bool) -> Total {
        self.densities();
        self.send_slopes();
        let mut total = Total::default();
        for block in &mut self.blocks {
            total += block.forces(&self.potential, with_virial);
        }
        total
    }

    /// First half of an evaluation: places of ghosts, then densities and slopes of the blocks that are computed here.
    pub fn densities(&mut self) {
        self.evaluations += 1;
        self.send_places();
        for block in &mut self.blocks[self.mine.clone()] {
            block.densities(&self.potential);
        }
    }

    /// Second half: slopes of ghosts, then forces, and what each of these blocks measures.
    pub fn measure(&mut self, vectors: &[Vectors], with_history: bool, with_virial: bool) -> Vec<Measured> {
        self.send_slopes();
        let potential = &self.potential;
        let measure = |(block, vectors): (&mut Block, &Vectors)| {
            let total = block.forces(potential, with_virial);
            vectors.measure(block, &total, with_history)
        };
        self.blocks[self.mine.clone()].iter_mut().zip(vectors).map(measure).collect()
    }

    /// The blocks that are computed here, to be moved.
    pub fn mine(&mut self) -> &mut [Block] {
        &mut self.blocks[self.mine.clone()]
    }

    /// Relaxes all free atoms. `watch` is called after each evaluation, with the machine, what
    /// was measured and what is done next.
    pub fn relax(
        &mut self,
        method: Method,
        limits: Limits,
        watch: impl FnMut(&Relaxation, &Measured, &Order),
    ) -> Relaxed {
        self.follow(Relaxation::new(method, limits, self.skin), false, watch)
    }

    /// The same with a machine that has not begun, and with the virial if asked.
    pub fn follow(
        &mut self,
        mut machine: Relaxation,
        with_virial: bool,
        mut watch: impl FnMut(&Relaxation, &Measured, &Order),
    ) -> Relaxed {
        self.rebuild();
        let mut vectors: Vec<Vectors> = self.blocks.iter().map(Vectors::new).collect();
        let mut order = machine.start();
        loop {
            let Order::Go { rebuild, .. } = &order else {
                unreachable!("a machine that has stopped is not asked")
            };
            for (block, vectors) in self.blocks.iter_mut().zip(&mut vectors) {
                vectors.obey(block, &order);
            }
            if *rebuild {
                self.rebuild();
                self.blocks.iter().zip(&mut vectors).for_each(|(block, vectors)| vectors.built(block));
            }
            self.densities();
            let measured = Measured::all(&self.measure(&vectors, machine.needs_history(), with_virial));
            order = machine.next(&measured);
            watch(&machine, &measured, &order);
            if let Order::Stop(stop) = order {
                let vectors: usize = vectors.iter().map(Vectors::bytes).sum();
                return Relaxed {
                    stop,
                    energy: measured.energy,
                    max_force: measured.max_f,
                    iterations: machine.iterations(),
                    evaluations: machine.evaluations(),
                    bytes: self.bytes() + vectors,
                };
            }
        }
    }

    /// Bytes of memory that the atoms take.
    pub fn bytes(&self) -> usize {
        let run = |run: &Run| run.atoms.capacity() * size_of::<u32>() + size_of::<Run>();
        let runs: usize = self.runs.iter().flatten().map(run).sum();
        runs + self.blocks.iter().map(Block::bytes).sum::<usize>()
    }
}
