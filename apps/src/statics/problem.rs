//! What is relaxed, as every node knows it: each makes its own blocks from this, and nobody else's.

use super::aberration::Aberration;
use super::block::{Block, Bounds};
use super::course::Leg;
use super::crystal::Crystal;
use super::partition::Partition;
use super::potential::Potential;
use super::pressure::Together;
use super::relax::{Limits, Method, Order, Relaxation};
use super::serial::System;
use serde::{Deserialize, Serialize};

/// A crystal, cut into blocks, and the steps by which it is disturbed and relaxed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Problem {
    /// What atoms do to each other.
    pub potential: Potential,
    /// The undisturbed crystal.
    pub crystal: Crystal,
    /// Its blocks.
    pub partition: Partition,
    /// Width in A by which lists reach beyond the cutoff.
    pub skin: f64,
    /// The way down.
    pub method: Method,
    /// Neighbours that stand in pairs around an atom of the perfect crystal, for the centro-symmetry: 12, or 8 for bcc.
    pub opposite: usize,
    /// One after the other; at least one.
    pub steps: Vec<Step>,
}

/// Changes of the crystal, and how it relaxes after them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// For people.
    pub name: String,
    /// Changes, in this order.
    pub disturb: Vec<Aberration>,
    /// When the relaxation ends.
    pub limits: Limits,
    /// Axes of the box that are stretched until there is no pressure along them; none if the box stays as it is.
    pub groups: Vec<Together>,
    /// Largest pressure that may be left along them, in GPa.
    pub max_pressure: f64,
}

impl Step {
    /// A step that leaves the box as it is.
    pub fn new(name: &str, disturb: Vec<Aberration>, limits: Limits) -> Self {
        Self { name: name.into(), disturb, limits, groups: Vec::new(), max_pressure: 0.0 }
    }

    /// Whether the box is stretched, and so the virial is computed.
    pub fn stretches(&self) -> bool {
        !self.groups.is_empty()
    }
}

impl Problem {
    /// The same with a lattice as dense in place of listed atoms: what measures speeds need not hold them.
    #[must_use]
    pub fn without_list(&self) -> Self {
        let crystal = &self.crystal;
        Self { crystal: crystal.resized(crystal.cells(), crystal.sides()), ..self.clone() }
    }

    /// How far lists reach, in A.
    pub fn reach(&self) -> f64 {
        self.potential.cutoff() + self.skin
    }

    /// Neighbours within that reach that an atom inside the crystal has on average.
    pub fn neighbours(&self) -> f64 {
        let density = self.crystal.atoms() as f64 / self.crystal.bounds().volume();
        density * 4.0 / 3.0 * std::f64::consts::PI * self.reach().powi(3)
    }

    /// A block of the undisturbed crystal.
    pub fn block(&self, number: usize) -> Block {
        Block::new(self.partition.atoms(&self.crystal, number))
    }

    /// Makes a block in a box ready to relax: stretches both, or makes the changes of a step to the block. Lists have to be
    /// built anew.
    pub fn prepare(&self, leg: &Leg, number: usize, block: &mut Block, bounds: &mut Bounds) {
        match leg.stretch {
            None => self.disturb(leg.step as usize, number, block, bounds),
            Some(factors) => {
                bounds.scale(factors);
                block.scale(factors);
            }
        }
    }

    /// The same for all blocks in one thread.
    pub fn prepare_all(&self, leg: &Leg, system: &mut System) {
        let bounds = system.bounds();
        match leg.stretch {
            None => {
                for (number, block) in system.blocks_mut().iter_mut().enumerate() {
                    self.disturb(leg.step as usize, number, block, &bounds);
                }
            }
            Some(factors) => system.stretch(factors),
        }
    }

    /// Makes the changes of a step to a block in a box that is `bounds` now.
    fn disturb(&self, step: usize, number: usize, block: &mut Block, bounds: &Bounds) {
        let before = self.steps[..step].iter().flat_map(|step| &step.disturb);
        let mut next = self.crystal.atoms() + before.filter(|change| is_interstitial(change)).count() as u64;
        for change in &self.steps[step].disturb {
            change.apply(self, number, block, self.stretch(bounds), &mut next);
        }
    }

    /// How much longer a box is along each axis than the undisturbed crystal.
    pub fn stretch(&self, bounds: &Bounds) -> [f64; 3] {
        let lengths = self.crystal.lengths();
        std::array::from_fn(|k| bounds.lengths[k] / lengths[k])
    }

    /// Atoms that are there after all steps.
    pub fn atoms(&self) -> u64 {
        let changes = || self.steps.iter().flat_map(|step| &step.disturb);
        let in_layer = |id: u64| changes().any(|change| change.takes_layer_at(self.undisturbed(id)));
        let all = self.crystal.atoms() + self.inserted();
        let layers = changes().any(|change| matches!(change, Aberration::Surface { .. }));
        let gone = if layers { (0..all).filter(|&id| in_layer(id)).count() } else { 0 };
        let vacancies = changes().filter_map(|change| match change {
            Aberration::Vacancy { ids } => Some(ids),
            _ => None,
        });
        let mut vacancies: Vec<u64> = vacancies.flatten().filter_map(|&name| self.id_of(name)).collect();
        vacancies.sort_unstable();
        vacancies.dedup();
        all - gone as u64 - vacancies.into_iter().filter(|&id| !in_layer(id)).count() as u64
    }

    /// The id of the atom that people know by a number, be it of the crystal or put in.
    pub fn id_of(&self, name: u64) -> Option<u64> {
        let put_in = || name.checked_sub(self.crystal.first_free_name()).map(|n| self.crystal.atoms() + n);
        self.crystal.id_of(name).or_else(put_in).filter(|&id| id < self.crystal.atoms() + self.inserted())
    }

    /// How many atoms all steps put in.
    pub fn inserted(&self) -> u64 {
        self.interstitials().count() as u64
    }

    fn interstitials(&self) -> impl Iterator<Item = [f64; 3]> {
        self.steps.iter().flat_map(|step| &step.disturb).filter_map(|change| match change {
            Aberration::Interstitial { at, .. } => Some(*at),
            _ => None,
        })
    }

    /// Where an atom is before anything happens, in A: its lattice place, or where it is put in.
    pub fn undisturbed(&self, id: u64) -> [f64; 3] {
        match id.checked_sub(self.crystal.atoms()) {
            None => self.crystal.atom(id).at,
            Some(nth) => self.interstitials().nth(nth as usize).unwrap_or([f64::NAN; 3]),
        }
    }

    /// The machine of a relaxation.
    pub fn machine(&self, leg: &Leg) -> Relaxation {
        Relaxation::new(self.method, self.steps[leg.step as usize].limits, self.skin).after(leg.spent)
    }

    /// The machine of a relaxation, and its first order, by which lists are built.
    pub fn begin(&self, leg: &Leg) -> (Relaxation, Order) {
        let mut machine = self.machine(leg);
        let mut order = machine.start();
        if let Order::Go { rebuild, .. } = &mut order {
            *rebuild = true;
        }
        (machine, order)
    }

    /// All blocks in one thread.
    pub fn serial(&self) -> System {
        let blocks = (0..self.partition.len()).map(|number| self.block(number)).collect();
        System::new(self.potential.clone(), self.crystal.bounds(), blocks, self.skin)
    }
}

fn is_interstitial(change: &Aberration) -> bool {
    matches!(change, Aberration::Interstitial { .. })
}
