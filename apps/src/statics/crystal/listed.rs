//! Atoms from a list, sorted into boxes, so that each block finds its own.

use super::read::Atoms;
use std::ops::Range;

/// Atoms by box; inside a box in the order of their numbers. The place in this order is the id.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Listed {
    /// Id of the first atom of each box, and the end.
    starts: Vec<u64>,
    at: Vec<[f64; 3]>,
    species: Vec<u8>,
    names: Vec<u64>,
}

impl Listed {
    /// Sorts atoms; those beyond a periodic end go round.
    pub(super) fn sort(atoms: &Atoms, lengths: [f64; 3], boxes: [usize; 3], periodic: [bool; 3]) -> Self {
        let wrapped = |at: [f64; 3]| -> [f64; 3] {
            std::array::from_fn(|k| if periodic[k] { at[k].rem_euclid(lengths[k]) } else { at[k] })
        };
        let number = |at: [f64; 3]| {
            let place: [usize; 3] = std::array::from_fn(|k| {
                ((at[k] / lengths[k] * boxes[k] as f64).max(0.0) as usize).min(boxes[k] - 1)
            });
            (place[2] * boxes[1] + place[1]) * boxes[0] + place[0]
        };
        let mut order: Vec<(usize, u64, usize)> = (0..atoms.ids.len())
            .map(|index| (number(wrapped(atoms.at[index])), atoms.ids[index], index))
            .collect();
        order.sort_unstable();
        let mut starts = vec![0; boxes.iter().product::<usize>() + 1];
        order.iter().for_each(|(number, ..)| starts[number + 1] += 1);
        for number in 1..starts.len() {
            starts[number] += starts[number - 1];
        }
        Self {
            starts,
            at: order.iter().map(|&(.., index)| wrapped(atoms.at[index])).collect(),
            species: order.iter().map(|&(.., index)| atoms.species[index]).collect(),
            names: order.iter().map(|&(_, name, _)| name).collect(),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.at.len() as u64
    }

    pub(super) fn ids_in(&self, number: u64) -> Range<u64> {
        let number = number as usize;
        self.starts[number]..self.starts[number + 1]
    }

    pub(super) fn atom(&self, id: u64) -> ([f64; 3], u8) {
        (self.at[id as usize], self.species[id as usize])
    }

    pub(super) fn name_of(&self, id: u64) -> u64 {
        self.names.get(id as usize).copied().unwrap_or_else(|| id - self.len() + self.first_free_name())
    }

    pub(super) fn id_of(&self, name: u64) -> Option<u64> {
        self.names.iter().position(|&known| known == name).map(|id| id as u64)
    }

    pub(super) fn first_name(&self) -> u64 {
        self.names.iter().min().copied().unwrap_or(0)
    }

    pub(super) fn first_free_name(&self) -> u64 {
        self.names.iter().max().map_or(0, |name| name + 1)
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.starts.len() * 8 + self.at.len() * (24 + 1 + 8)) as u64
    }
}
