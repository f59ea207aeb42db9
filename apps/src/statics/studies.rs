//! Ready-made studies of a material: lattice, elastic constants, vacancy, surfaces, stacking fault.

use super::block::Class;
use super::crystal::lattice::{Kind, Lattice};
use super::crystal::oriented::{AS_IT_IS, Triads};
use super::crystal::{Crystal, CrystalError, Side};
use super::potential::Potential;
use super::pressure::{GPA, PressureError, pressures, relax_box};
use super::relax::{Limits, Method, Stop};
use super::serial::System;
use serde::{Deserialize, Serialize};

/// mJ/m^2 in an eV/A^2.
pub const MILLIJOULE: f64 = 16_021.766_34;

/// Why a study has no result.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum StudyError {
    /// The crystal cannot be made.
    #[error(transparent)]
    Crystal(#[from] CrystalError),
    /// No lattice without pressure.
    #[error(transparent)]
    Pressure(#[from] PressureError),
    /// No minimum of the energy.
    #[error("no lattice constant has the smallest energy; give one to begin with")]
    NoMinimum,
    /// A relaxation that ends without a minimum.
    #[error("the atoms do not relax: {0}")]
    NotRelaxed(Stop),
    /// A study that the lattice has no place for.
    #[error("{study} is for {lattices} lattices")]
    NotFor {
        /// The study.
        study: &'static str,
        /// Lattices that it is for.
        lattices: &'static str,
    },
    /// A lattice with more species than the potential.
    #[error("this lattice has {needed} species, and the potential {present}")]
    Species {
        /// Of the lattice.
        needed: usize,
        /// Of the potential.
        present: usize,
    },
}

/// A lattice at rest.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct AtRest {
    /// Lattice constant, in A.
    pub a: f64,
    /// c/a of the conventional cell.
    pub c_over_a: f64,
    /// Energy per atom, in eV.
    pub energy: f64,
}

/// Elastic constants of a cubic crystal, in GPa.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Elastic {
    /// C11.
    pub c11: f64,
    /// C12.
    pub c12: f64,
    /// C44.
    pub c44: f64,
}

/// An energy before and after the atoms relax.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Relaxing {
    /// With every atom on its lattice place.
    pub unrelaxed: f64,
    /// At the minimum.
    pub relaxed: f64,
}

/// The stablest lattice of one element by itself.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pure {
    /// The lattice.
    pub kind: Kind,
    /// Energy per atom, in eV.
    pub energy: f64,
}

/// A potential and a lattice for it.
#[derive(Clone, Debug)]
pub struct Material {
    potential: Potential,
    kind: Kind,
    method: Method,
    limits: Limits,
}

const PERIODIC: [Side; 3] = [Side::Periodic; 3];

/// How far an atom is moved to see whether it comes back, in A.
const SHAKE: f64 = 0.05;

/// Species of a lattice.
fn species_of(kind: Kind) -> usize {
    if matches!(kind, Kind::B2 | Kind::L12) { 2 } else { 1 }
}

impl Material {
    /// # Errors
    /// The lattice has more species than the potential.
    pub fn new(potential: Potential, kind: Kind, method: Method, limits: Limits) -> Result<Self, StudyError> {
        let (needed, present) = (species_of(kind), potential.species());
        if needed > present {
            return Err(StudyError::Species { needed, present });
        }
        Ok(Self { potential, kind, method, limits })
    }

    /// The lattice without pressure, found from near `a`, or from the lattice constant with the smallest energy.
    ///
    /// # Errors
    /// There is none.
    pub fn at_rest(&self, a: Option<f64>) -> Result<AtRest, StudyError> {
        let a = match a {
            Some(a) => a,
            None => self.coarse()?,
        };
        let lattice = Lattice::named(self.kind, a, None)?;
        let mut system = self.system(&lattice, &AS_IT_IS, [2; 3], PERIODIC)?;
        let groups = if self.kind == Kind::Hcp { vec![vec![0, 1], vec![2]] } else { vec![vec![0, 1, 2]] };
        let relaxed = relax_box(&mut system, &groups, self.method, self.limits, 1e-9)?;
        let lengths = system.bounds().lengths;
        let atoms = 8.0 * lattice.sites().len() as f64;
        Ok(AtRest { a: lengths[0] / 2.0, c_over_a: lengths[2] / lengths[0], energy: relaxed.energy / atoms })
    }

    /// The lattice constant at the deepest minimum of the energy, among those whose atoms are at least 2 A and at most 0.9
    /// cutoffs apart: many potentials have no wall below.
    fn coarse(&self) -> Result<f64, StudyError> {
        let nearest = match self.kind {
            Kind::Fcc | Kind::L12 => 0.5_f64.sqrt(),
            Kind::Bcc | Kind::B2 => 0.75_f64.sqrt(),
            Kind::Hcp => 1.0,
            Kind::Diamond => 3.0_f64.sqrt() / 4.0,
        };
        let (shortest, longest) = (2.0, 0.9 * self.potential.cutoff());
        let mut energies = Vec::new();
        for step in 0..=100 {
            let a = (shortest + 0.01 * f64::from(step) * (longest - shortest)) / nearest;
            let lattice = Lattice::named(self.kind, a, None)?;
            let energy = self.system(&lattice, &AS_IT_IS, [1; 3], PERIODIC)?.evaluate(false).energy;
            energies.push((energy, a));
        }
        let minima = energies.windows(3).filter(|e| e[1].0 < e[0].0 && e[1].0 <= e[2].0).map(|e| e[1]);
        minima.min_by(|e, f| e.0.total_cmp(&f.0)).map(|(_, a)| a).ok_or(StudyError::NoMinimum)
    }

    /// Elastic constants from the pressures at strains of 1e-4 to either side.
    ///
    /// # Errors
    /// The lattice is not cubic.
    pub fn elastic(&self, rest: &AtRest) -> Result<Elastic, StudyError> {
        if self.kind == Kind::Hcp {
            return Err(StudyError::NotFor { study: "the study of elastic constants", lattices: "cubic" });
        }
        let along = |strain: f64, system: &mut System| system.scale([1.0 + strain, 1.0, 1.0]);
        let [c11, c12, ..] = self.stiffness(rest, along)?;
        let [.., c44] = self.stiffness(rest, |strain, system| system.shear(strain))?;
        Ok(Elastic { c11, c12, c44 })
    }

    /// How the pressures fall with a strain, in GPa.
    fn stiffness(&self, rest: &AtRest, deform: impl Fn(f64, &mut System)) -> Result<[f64; 6], StudyError> {
        let strain = 1e-4;
        let pressure = |strain: f64| -> Result<[f64; 6], StudyError> {
            let mut system = self.system(&self.lattice(rest)?, &AS_IT_IS, [2; 3], PERIODIC)?;
            deform(strain, &mut system);
            let (pressures, relaxed) = pressures(&mut system, self.method, self.limits);
            if relaxed.stop.is_minimum() { Ok(pressures) } else { Err(StudyError::NotRelaxed(relaxed.stop)) }
        };
        let (plus, minus) = (pressure(strain)?, pressure(-strain)?);
        Ok(std::array::from_fn(|k| (minus[k] - plus[k]) / (2.0 * strain) * GPA))
    }

    /// The elements of the lattice, in the order of its species.
    pub fn elements(&self) -> &[String] {
        &self.potential.names()[..species_of(self.kind)]
    }

    /// What part of the atoms of the lattice is of a species.
    ///
    /// # Errors
    /// The lattice cannot be made.
    pub fn share(&self, rest: &AtRest, species: u8) -> Result<f64, StudyError> {
        let lattice = self.lattice(rest)?;
        let of_species = lattice.sites().iter().filter(|site| site.species == species).count();
        Ok(of_species as f64 / lattice.sites().len() as f64)
    }

    /// Energy in eV per atom by which a shaken crystal comes to rest below the lattice: hardly anything, if the lattice is
    /// stable.
    ///
    /// # Errors
    /// The crystal cannot be made.
    pub fn falls_by(&self, rest: &AtRest) -> Result<f64, StudyError> {
        let mut system = self.system(&self.lattice(rest)?, &AS_IT_IS, [4; 3], PERIODIC)?;
        let (mut atoms, whole) = (0.0, system.evaluate(false).energy);
        for block in system.blocks_mut() {
            for own in 0..block.own() {
                let i = (block.ids[own] + 1) as f64;
                let by = [i + 0.3, 1.7 * i + 0.9, 2.3 * i + 1.7].map(|phase| SHAKE * phase.sin());
                block.at[own].iter_mut().zip(by).for_each(|(x, by)| *x += by);
                atoms += 1.0;
            }
        }
        system.rebuild();
        let limits = Limits { max_force: 1e-3, evaluations: 1000, ..self.limits };
        let relaxed = system.relax(self.method, limits, |_, _, _| ());
        Ok((whole - relaxed.energy) / atoms)
    }

    /// The stablest lattice of one of the elements by itself, among fcc, bcc, hcp and diamond.
    ///
    /// # Errors
    /// It has none.
    pub fn pure(&self, species: u8) -> Result<Pure, StudyError> {
        let potential = self.potential.only(species);
        let at_rest = |kind| -> Result<Pure, StudyError> {
            let material = Self::new(potential.clone(), kind, self.method, self.limits)?;
            Ok(Pure { kind, energy: material.at_rest(None)?.energy })
        };
        let found = [Kind::Fcc, Kind::Bcc, Kind::Hcp, Kind::Diamond].map(at_rest);
        let found = found.into_iter().filter_map(Result::ok);
        found.min_by(|one, other| one.energy.total_cmp(&other.energy)).ok_or(StudyError::NoMinimum)
    }

    /// Formation energy in eV of a vacancy where an atom of a species was, in a periodic crystal of so many conventional
    /// cells: E(N-1) - E(N) + `energy`, which is the energy that the atom has elsewhere.
    ///
    /// # Errors
    /// The atoms do not relax.
    pub fn vacancy(
        &self,
        rest: &AtRest,
        cells: [usize; 3],
        (species, energy): (u8, f64),
    ) -> Result<Relaxing, StudyError> {
        let mut system = self.system(&self.lattice(rest)?, &AS_IT_IS, cells, PERIODIC)?;
        let reference = system.evaluate(false).energy - energy;
        let block = &mut system.blocks_mut()[0];
        if let Some(removed) = (0..block.own()).find(|&own| block.species[own] == species) {
            block.classes[removed] = Class::Removed;
        }
        system.rebuild();
        let unrelaxed = system.evaluate(false).energy - reference;
        Ok(Relaxing { unrelaxed, relaxed: self.relax(&mut system)? - reference })
    }

    /// Energy in mJ/m^2 of the free surface across `z`, one of (100), (110) and (111), of a slab of so many cells turned
    /// that way; 3 by 3, and 50 A thick, if not given.
    ///
    /// # Errors
    /// The lattice is not cubic, or the atoms do not relax.
    pub fn surface(
        &self,
        rest: &AtRest,
        face: Face,
        cells: Option<[usize; 3]>,
    ) -> Result<Relaxing, StudyError> {
        if self.kind == Kind::Hcp {
            return Err(StudyError::NotFor { study: "the study of surfaces", lattices: "cubic" });
        }
        let mut system = self.slab(rest, face.triads(), cells, ([3, 3], 50.0))?;
        let atoms: usize = system.blocks().iter().map(super::block::Block::own).sum();
        let lengths = system.bounds().lengths;
        let gamma = |energy: f64| {
            (energy - atoms as f64 * rest.energy) / (2.0 * lengths[0] * lengths[1]) * MILLIJOULE
        };
        let unrelaxed = gamma(system.evaluate(false).energy);
        Ok(Relaxing { unrelaxed, relaxed: gamma(self.relax(&mut system)?) })
    }

    /// Energy in mJ/m^2 of the intrinsic stacking fault of fcc: the upper half of a (111) slab of so many cells turned that
    /// way (4 by 6, and 75 A thick, if not given), shifted by a/6 [1 1 -2].
    ///
    /// # Errors
    /// The lattice is not fcc, or the atoms do not relax.
    pub fn fault(&self, rest: &AtRest, cells: Option<[usize; 3]>) -> Result<Relaxing, StudyError> {
        if self.kind != Kind::Fcc {
            return Err(StudyError::NotFor { study: "the study of the stacking fault", lattices: "fcc" });
        }
        let mut system = self.slab(rest, Face::F111.triads(), cells, ([4, 6], 75.0))?;
        let reference = self.relax(&mut system)?;
        let lengths = system.bounds().lengths;
        let gamma = |energy: f64| (energy - reference) / (lengths[0] * lengths[1]) * MILLIJOULE;
        // Halfway between two planes.
        let spacing = rest.a / 3.0_f64.sqrt();
        let middle = ((lengths[2] / spacing / 2.0).floor() - 0.5) * spacing;
        let shift = rest.a / 6.0_f64.sqrt();
        for at in system.blocks_mut().iter_mut().flat_map(|block| &mut block.at) {
            if at[2] > middle {
                at[1] += shift;
            }
        }
        system.rebuild();
        let unrelaxed = gamma(system.evaluate(false).energy);
        Ok(Relaxing { unrelaxed, relaxed: gamma(self.relax(&mut system)?) })
    }

    fn lattice(&self, rest: &AtRest) -> Result<Lattice, StudyError> {
        let ratio = (self.kind == Kind::Hcp).then_some(rest.c_over_a);
        Ok(Lattice::named(self.kind, rest.a, ratio)?)
    }

    /// A slab of so many cells with free surfaces across z; as wide, and at least as many A thick, as is usual if not given.
    fn slab(
        &self,
        rest: &AtRest,
        triads: Triads,
        cells: Option<[usize; 3]>,
        ([wide, deep], thickness): ([usize; 2], f64),
    ) -> Result<System, StudyError> {
        let lattice = self.lattice(rest)?;
        let cell = super::crystal::oriented::orient(&lattice, &triads)?;
        let cells = cells.unwrap_or([wide, deep, (thickness / cell.edges[2]).ceil() as usize]);
        self.system(&lattice, &triads, cells, [Side::Periodic, Side::Periodic, Side::FREE])
    }

    fn system(
        &self,
        lattice: &Lattice,
        triads: &Triads,
        cells: [usize; 3],
        sides: [Side; 3],
    ) -> Result<System, StudyError> {
        let crystal = Crystal::new(lattice, triads, cells, sides)?;
        Ok(System::of_crystal(self.potential.clone(), &crystal, 0.5))
    }

    fn relax(&self, system: &mut System) -> Result<f64, StudyError> {
        let relaxed = system.relax(self.method, self.limits, |_, _, _| ());
        if relaxed.stop.is_minimum() { Ok(relaxed.energy) } else { Err(StudyError::NotRelaxed(relaxed.stop)) }
    }
}

/// Low-index faces of cubic crystals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Face {
    /// (100).
    F100,
    /// (110).
    F110,
    /// (111).
    F111,
}

impl Face {
    /// Directions with the face across z.
    pub fn triads(self) -> Triads {
        match self {
            Self::F100 => AS_IT_IS,
            Self::F110 => [[0, 0, 1], [1, -1, 0], [1, 1, 0]],
            Self::F111 => [[1, -1, 0], [1, 1, -2], [1, 1, 1]],
        }
    }
}
