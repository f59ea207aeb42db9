//! A block of atoms: its own, and copies of those near enough to be felt, the ghosts.
//!
//! The block is the unit of everything: whoever holds it, with whatever neighbours on whatever machine, computes the
//! same bits, because own atoms and ghosts stand in an order that depends on the crystal alone (own atoms by id; ghosts
//! by block, image and place there). One evaluation takes two exchanges: positions of the ghosts before
//! [`Block::densities`], slopes F'(rho) of the ghosts before [`Block::forces`].

use super::eam;
use super::neighbours::{Extent, Half, List, fit};
use super::potential::Potential;

/// What is done with an atom. The order is that from the inside of a crystal to its outside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
pub enum Class {
    /// Moves.
    Free,
    /// Has a density and an energy, and stays where it is.
    Buffer,
    /// Is felt by others, and stays where it is; without density and energy of its own.
    Fixed,
    /// Is there no longer: nobody feels it. Its id and place remain.
    Removed,
}

/// The box of the periodic images, with its low corner in the origin. Its edges are (lx, 0, 0), (xy, ly, 0) and
/// (xz, yz, lz).
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Bounds {
    /// Lengths in A.
    pub lengths: [f64; 3],
    /// xy, xz and yz in A.
    pub tilt: [f64; 3],
    /// Along which axes the crystal repeats.
    pub periodic: [bool; 3],
}

impl Bounds {
    /// How far an image is from the original, in A.
    pub fn shift(&self, image: [i32; 3]) -> [f64; 3] {
        let [x, y, z] = image.map(f64::from);
        let ([lx, ly, lz], [xy, xz, yz]) = (self.lengths, self.tilt);
        [x * lx + y * xy + z * xz, y * ly + z * yz, z * lz]
    }

    /// Volume in A^3.
    pub fn volume(&self) -> f64 {
        self.lengths.iter().product()
    }

    /// Stretches the box by a factor per axis.
    pub fn scale(&mut self, factors: [f64; 3]) {
        let tilted = [factors[0], factors[0], factors[1]];
        let lengths = self.lengths.iter_mut().chain(&mut self.tilt);
        lengths.zip(factors.into_iter().chain(tilted)).for_each(|(length, factor)| *length *= factor);
    }
}

/// Own atoms of a block and their ghosts.
#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct Block {
    /// Ids of the own atoms, ascending.
    pub ids: Vec<u64>,
    /// Species, own atoms first, then ghosts.
    pub species: Vec<u8>,
    /// Classes, own atoms first, then ghosts.
    pub classes: Vec<Class>,
    /// Places in A, own atoms first, then ghosts (shifted to their image).
    pub at: Vec<[f64; 3]>,
    /// Densities of the own atoms; 0 where none is computed.
    pub density: Vec<f64>,
    /// F'(rho) in eV, own atoms first, then ghosts; 0 for fixed atoms.
    pub slope: Vec<f64>,
    /// Force in eV/A, and energy in eV, of the own atoms.
    pub force: Vec<[f64; 4]>,
    list: List,
    /// Virial of the pairs inside, until that of the others is added.
    inside: [f64; 6],
}

/// What a block's evaluation sums up to.
#[derive(Clone, Copy, Default, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Total {
    /// Energy of the free and buffer atoms, in eV.
    pub energy: f64,
    /// Virial, sum of x_a f_b over pairs in eV: xx, yy, zz, yz, xz, xy. Stress times volume, with the sign turned.
    pub virial: [f64; 6],
}

impl std::ops::AddAssign for Total {
    fn add_assign(&mut self, other: Self) {
        self.energy += other.energy;
        for (sum, part) in self.virial.iter_mut().zip(other.virial) {
            *sum += part;
        }
    }
}

impl Block {
    /// A block of these atoms, which come with ascending ids.
    pub fn new(atoms: impl IntoIterator<Item = super::crystal::Atom>) -> Self {
        let mut block = Self::default();
        for atom in atoms {
            block.ids.push(atom.id);
            block.species.push(atom.species);
            block.classes.push(atom.class);
            block.at.push(atom.at);
        }
        fit(&mut block.ids);
        let own = block.ids.len();
        block.density = vec![0.0; own];
        block.slope = vec![0.0; own];
        block.force = vec![[0.0; 4]; own];
        block
    }

    /// Adds an own atom, whose id is larger than all others. Ghosts are gone until they are set anew.
    pub fn insert(&mut self, atom: super::crystal::Atom) {
        self.set_ghosts([]);
        self.ids.push(atom.id);
        self.species.push(atom.species);
        self.classes.push(atom.class);
        self.at.push(atom.at);
        self.density.push(0.0);
        self.slope.push(0.0);
        self.force.push([0.0; 4]);
    }

    /// Stretches all places by a factor per axis; lists have to be built anew.
    pub fn scale(&mut self, factors: [f64; 3]) {
        for at in &mut self.at {
            at.iter_mut().zip(factors).for_each(|(x, factor)| *x *= factor);
        }
    }

    /// Number of own atoms, removed ones included.
    pub fn own(&self) -> usize {
        self.ids.len()
    }

    /// Number of ghosts.
    pub fn ghosts(&self) -> usize {
        self.at.len() - self.ids.len()
    }

    /// Pairs of the neighbour list, within the cutoff and the skin.
    pub fn pairs(&self) -> usize {
        self.list.entries()
    }

    /// Pairs of the neighbour list both of whose atoms are own ones that have a density; they are computed once, all
    /// others at both ends.
    pub fn pairs_of_own(&self) -> usize {
        self.list.entries_by_part()[0]
    }

    /// The same apart: with own atoms, with ghosts, with fixed atoms.
    pub fn pairs_by_part(&self) -> [usize; 3] {
        self.list.entries_by_part()
    }

    /// The smallest box around the own atoms that are there; none for an empty block.
    pub fn extent(&self) -> Option<Extent> {
        let there = (0..self.own()).filter(|&i| self.classes[i] != Class::Removed);
        Extent::around(there.map(|i| self.at[i]))
    }

    /// Own atoms that, `shift` away from where they are, come within `reach` of a box: those that a block in that box
    /// has as ghosts. Indices of own atoms, ascending.
    pub fn felt_in(&self, target: &Extent, shift: [f64; 3], reach: f64) -> Vec<u32> {
        let near = |i: &usize| {
            let at = std::array::from_fn(|k| self.at[*i][k] + shift[k]);
            self.classes[*i] != Class::Removed && target.distance_squared(at) <= reach * reach
        };
        (0..self.own()).filter(near).map(|i| i as u32).collect()
    }

    /// Takes the species and classes of new ghosts, in their order, in place of the old ones; their places are not set.
    pub fn set_ghosts(&mut self, ghosts: impl IntoIterator<Item = (u8, Class)>) {
        let own = self.own();
        self.species.truncate(own);
        self.classes.truncate(own);
        for (species, class) in ghosts {
            self.species.push(species);
            self.classes.push(class);
        }
        fit(&mut self.species);
        fit(&mut self.classes);
        let all = self.species.len();
        // Exact: most blocks have more ghosts than own atoms, and room for twice as many would be half of what they hold.
        self.at.reserve_exact(all.saturating_sub(self.at.len()));
        self.at.resize(all, [f64::NAN; 3]);
        self.slope.reserve_exact(all.saturating_sub(self.slope.len()));
        self.slope.resize(all, f64::NAN);
    }

    /// Places of the ghosts, to be set before [`Self::rebuild`] and before each [`Self::densities`].
    pub fn ghost_places(&mut self) -> &mut [[f64; 3]] {
        let own = self.own();
        &mut self.at[own..]
    }

    /// Slopes of the ghosts, to be set before each [`Self::forces`].
    pub fn ghost_slopes(&mut self) -> &mut [f64] {
        let own = self.own();
        &mut self.slope[own..]
    }

    /// Lists all pairs within `reach`, which is the cutoff and the skin. Good until an atom has moved by half the skin.
    pub fn rebuild(&mut self, reach: f64) {
        self.list.build(self.own(), &self.at, &self.classes, reach);
    }

    /// First half of an evaluation: densities, embedding energies and slopes of the own atoms.
    pub fn densities(&mut self, potential: &Potential) {
        self.densities_inside(potential);
        self.densities_across(potential);
    }

    /// What of the densities needs no ghosts; to be followed by [`Self::densities_across`].
    pub fn densities_inside(&mut self, potential: &Potential) {
        self.density.fill(0.0);
        self.add_densities(potential, Half::Inside);
    }

    /// The rest of [`Self::densities`].
    pub fn densities_across(&mut self, potential: &Potential) {
        self.add_densities(potential, Half::Across);
        for i in 0..self.own() {
            let (energy, slope) = match self.classes[i] {
                Class::Free | Class::Buffer => potential.embed(self.species[i], self.density[i]),
                Class::Fixed | Class::Removed => (0.0, 0.0),
            };
            self.force[i] = [0.0, 0.0, 0.0, energy];
            self.slope[i] = slope;
        }
    }

    fn add_densities(&mut self, potential: &Potential, half: Half) {
        let Self { list, classes, species, at, density, .. } = self;
        let scene = eam::Scene { potential, half, classes: &classes[..density.len()], species, at };
        eam::densities(&scene, list, density);
    }

    /// Second half: forces and energies of the own atoms, and the totals of the block, summed in the order of the ids.
    /// Only free atoms keep a force. The virial is computed on request only.
    pub fn forces(&mut self, potential: &Potential, with_virial: bool) -> Total {
        self.forces_inside(potential, with_virial);
        self.forces_across(potential, with_virial)
    }

    /// What of the forces needs no slopes of ghosts; to be followed by [`Self::forces_across`].
    pub fn forces_inside(&mut self, potential: &Potential, with_virial: bool) {
        self.inside = self.add_forces(potential, Half::Inside, with_virial);
    }

    /// The rest of [`Self::forces`].
    pub fn forces_across(&mut self, potential: &Potential, with_virial: bool) -> Total {
        let mut virial = self.add_forces(potential, Half::Across, with_virial);
        virial.iter_mut().zip(self.inside).for_each(|(sum, inside)| *sum += inside);
        let mut energy = 0.0;
        for (force, class) in self.force.iter_mut().zip(&self.classes) {
            energy += force[3];
            if *class != Class::Free {
                *force = [0.0, 0.0, 0.0, force[3]];
            }
        }
        Total { energy, virial }
    }

    fn add_forces(&mut self, potential: &Potential, half: Half, with_virial: bool) -> [f64; 6] {
        let Self { list, classes, species, at, slope, force, .. } = self;
        let scene = eam::Scene { potential, half, classes: &classes[..force.len()], species, at };
        eam::forces(&scene, list, slope, force, with_virial)
    }

    /// The first own atom whose place or force is no finite number, by id.
    pub fn not_finite(&self) -> Option<u64> {
        let bad = |i: &usize| !(self.at[*i].iter().chain(&self.force[*i]).all(|x| x.is_finite()));
        (0..self.own()).find(bad).map(|i| self.ids[i])
    }

    /// Bytes of memory that the block holds.
    pub fn bytes(&self) -> usize {
        fn of<T>(vector: &Vec<T>) -> usize {
            vector.capacity() * size_of::<T>()
        }
        of(&self.ids)
            + of(&self.species)
            + of(&self.classes)
            + of(&self.at)
            + of(&self.density)
            + of(&self.slope)
            + of(&self.force)
            + self.list.bytes()
    }
}
