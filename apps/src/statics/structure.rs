//! Where a crystal is disturbed: the centro-symmetry of each atom, and the structure that its neighbours form.
//!
//! Centro-symmetry is that of C. L. Kelchner, S. J. Plimpton and J. C. Hamilton, Phys. Rev. B 58 (1998) 11085. Structure
//! comes from common neighbours (J. D. Honeycutt and H. C. Andersen, J. Phys. Chem. 91 (1987) 4950; D. Faken and
//! H. Jonsson, Comput. Mater. Sci. 2 (1994) 279), where two neighbours are bonded within a distance that each atom takes
//! from those of its own nearest neighbours (A. Stukowski, Modelling Simul. Mater. Sci. Eng. 20 (2012) 045021), so that
//! no lattice constant is asked for.

use super::block::{Block, Class};
use super::neighbours::Bins;

/// What the neighbours of an atom form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Structure {
    /// None of these.
    Other,
    /// Face-centred cubic.
    Fcc,
    /// Hexagonal close-packed: a stacking fault in fcc.
    Hcp,
    /// Body-centred cubic.
    Bcc,
}

/// Nearest neighbours of which fcc and hcp, and bcc are told.
const CLOSE_PACKED: usize = 12;
const BODY_CENTRED: usize = 14;

/// Centro-symmetry in A^2 and structure of each own atom of a block whose ghosts are in their places; 0 and
/// [`Structure::Other`] for removed ones, and for those with too few neighbours within `reach` A. `opposite` is the
/// number of nearest neighbours that stand in pairs around an atom of the perfect crystal: 12 for fcc, 8 for bcc.
pub fn of_block(block: &Block, reach: f64, opposite: usize) -> Vec<(f64, Structure)> {
    let bins = Bins::new(&block.at, &block.classes, reach, |i| i as u32);
    let mut room = Vec::new();
    let of = |own: usize| {
        if block.classes[own] == Class::Removed {
            return (0.0, Structure::Other);
        }
        let at = block.at[own];
        let mut near: Vec<(f64, [f64; 3])> = Vec::new();
        for other in bins.near(at, 0, &mut room).iter().map(|&other| other as usize) {
            if other != own {
                let d: [f64; 3] = std::array::from_fn(|k| block.at[other][k] - at[k]);
                near.push((d.iter().map(|x| x * x).sum(), d));
            }
        }
        near.sort_unstable_by(|a, b| {
            a.0.total_cmp(&b.0).then(a.1.partial_cmp(&b.1).unwrap_or(std::cmp::Ordering::Equal))
        });
        let near: Vec<[f64; 3]> = near.into_iter().take(BODY_CENTRED).map(|(_, d)| d).collect();
        (centro_symmetry(&near, opposite), structure(&near))
    };
    (0..block.own()).map(of).collect()
}

fn squared(d: [f64; 3]) -> f64 {
    d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
}

/// The sum of the smallest |r_i + r_j|^2, half as many as there are neighbours.
fn centro_symmetry(near: &[[f64; 3]], opposite: usize) -> f64 {
    let Some(near) = near.get(..opposite) else { return 0.0 };
    let mut sums: Vec<f64> = Vec::with_capacity(opposite * (opposite - 1) / 2);
    for (i, a) in near.iter().enumerate() {
        sums.extend(near[..i].iter().map(|b| squared(std::array::from_fn(|k| a[k] + b[k]))));
    }
    sums.sort_unstable_by(f64::total_cmp);
    sums[..opposite / 2].iter().sum()
}

/// Neighbours come nearest first.
fn structure(near: &[[f64; 3]]) -> Structure {
    let middle = (1.0 + 2.0_f64.sqrt()) / 2.0;
    let mean = |near: &[[f64; 3]]| near.iter().map(|&d| squared(d).sqrt()).sum::<f64>() / near.len() as f64;
    if let Some(near) = near.get(..CLOSE_PACKED) {
        let kinds = signatures(near, middle * mean(near));
        let count = |kind| kinds.iter().filter(|&&found| found == Some(kind)).count();
        match (count(Signature::S421), count(Signature::S422)) {
            (12, 0) => return Structure::Fcc,
            (6, 6) => return Structure::Hcp,
            _ => {}
        }
    }
    if let Some(near) = near.get(..BODY_CENTRED) {
        let edge = (2.0 / 3.0_f64.sqrt() * mean(&near[..8]) + mean(&near[8..])) / 2.0;
        let kinds = signatures(near, middle * edge);
        let count = |kind| kinds.iter().filter(|&&found| found == Some(kind)).count();
        if (count(Signature::S666), count(Signature::S444)) == (8, 6) {
            return Structure::Bcc;
        }
    }
    Structure::Other
}

/// Common neighbours, bonds between them, bonds of the longest chain of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Signature {
    S421,
    S422,
    S444,
    S666,
}

fn signatures(near: &[[f64; 3]], bond: f64) -> Vec<Option<Signature>> {
    let is_bonded = |a: [f64; 3], b: [f64; 3]| squared(std::array::from_fn(|k| a[k] - b[k])) <= bond * bond;
    // Bit b of bonds[a]: a and b are bonded.
    let bonds: Vec<u16> = (0..near.len())
        .map(|a| {
            (0..near.len()).filter(|&b| b != a && is_bonded(near[a], near[b])).fold(0, |all, b| all | 1 << b)
        })
        .collect();
    bonds.iter().map(|&common| signature(&bonds, common)).collect()
}

/// `common`: bits of the neighbours that an atom and one of its neighbours share.
fn signature(bonds: &[u16], common: u16) -> Option<Signature> {
    let members = || (0..bonds.len()).filter(move |&a| common >> a & 1 == 1);
    let degrees: Vec<u32> = members().map(|a| (bonds[a] & common).count_ones()).collect();
    let count = degrees.iter().sum::<u32>() / 2;
    // With two bonds, they form one chain if they share an atom. With as many bonds as members, all of degree two, four
    // members are one ring; six are one ring unless they are two triangles.
    let all_two = degrees.iter().all(|&degree| degree == 2);
    match (degrees.len(), count) {
        (4, 2) if degrees.contains(&2) => Some(Signature::S422),
        (4, 2) => Some(Signature::S421),
        (4, 4) if all_two => Some(Signature::S444),
        (6, 6) if all_two && members().all(|a| members().all(|b| !is_triangle(bonds, common, a, b))) => {
            Some(Signature::S666)
        }
        _ => None,
    }
}

fn is_triangle(bonds: &[u16], common: u16, a: usize, b: usize) -> bool {
    bonds[a] >> b & 1 == 1 && bonds[a] & bonds[b] & common != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statics::crystal::lattice::{Kind, Lattice};
    use crate::statics::crystal::oriented::AS_IT_IS;
    use crate::statics::crystal::{Crystal, Side};
    use crate::statics::potential::analytic;
    use crate::statics::serial::System;

    fn found(kind: Kind, opposite: usize, change: impl Fn(&mut System)) -> Vec<(f64, Structure)> {
        let potential = analytic::built_in(analytic::Model::SuttonChen, "Cu").unwrap();
        let lattice = Lattice::named(kind, if kind == Kind::Bcc { 2.87 } else { 3.6 }, None).unwrap();
        let crystal = Crystal::new(&lattice, &AS_IT_IS, [4, 4, 4], [Side::Periodic; 3]).unwrap();
        let mut system = System::of_crystal(potential, &crystal, 0.5);
        change(&mut system);
        system.rebuild();
        system.blocks().iter().flat_map(|block| of_block(block, 6.0, opposite)).collect()
    }

    #[test]
    fn perfect_crystals_are_known() {
        for (kind, opposite, expected) in
            [(Kind::Fcc, 12, Structure::Fcc), (Kind::Bcc, 8, Structure::Bcc), (Kind::Hcp, 12, Structure::Hcp)]
        {
            let all = found(kind, opposite, |_| ());
            assert!(all.iter().all(|(_, structure)| *structure == expected), "{kind:?}");
            assert!(kind == Kind::Hcp || all.iter().all(|(symmetry, _)| *symmetry < 1e-20), "{kind:?}");
        }
        assert!(found(Kind::Diamond, 12, |_| ()).iter().all(|(_, structure)| *structure == Structure::Other));
    }

    #[test]
    fn only_the_neighbours_of_a_vacancy_are_others() {
        let all = found(Kind::Fcc, 12, |system| system.blocks_mut()[0].classes[0] = Class::Removed);
        let others = all.iter().filter(|(_, structure)| *structure == Structure::Other).count();
        assert_eq!(others, 13);
        // The next twelfth neighbour stands in for the missing one.
        assert_eq!(all.iter().filter(|(symmetry, _)| *symmetry > 1.0).count(), 12);
    }
}
