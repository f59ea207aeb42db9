//! What is relaxed, as every node knows it: each makes its own blocks from this, and nobody else's.

use super::aberration::Aberration;
use super::block::Block;
use super::crystal::Crystal;
use super::partition::Partition;
use super::potential::Potential;
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

    /// A block of the undisturbed crystal.
    pub fn block(&self, number: usize) -> Block {
        Block::new(self.partition.atoms(&self.crystal, number))
    }

    /// Makes the changes of a step to a block; its lists have to be built anew.
    pub fn disturb(&self, step: usize, number: usize, block: &mut Block) {
        let before = self.steps[..step].iter().flat_map(|step| &step.disturb);
        let mut next = self.crystal.atoms() + before.filter(|change| is_interstitial(change)).count() as u64;
        for change in &self.steps[step].disturb {
            change.apply(self, number, block, &mut next);
        }
    }

    /// The same for all blocks in one thread.
    pub fn disturb_all(&self, step: usize, system: &mut System) {
        for (number, block) in system.blocks_mut().iter_mut().enumerate() {
            self.disturb(step, number, block);
        }
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

    /// The machine of a step, and its first order, by which lists are built.
    pub fn begin(&self, step: usize) -> (Relaxation, Order) {
        let mut machine = Relaxation::new(self.method, self.steps[step].limits, self.skin);
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
