//! Neighbour lists against all pairs, and which blocks feel which.

use super::*;
use crate::statics::block::{Bounds, Class};
use crate::statics::crystal::Atom;
use crate::statics::neighbours::{Extent, influence};
use crate::statics::potential::analytic::{self, Model};
use proptest::prelude::*;

/// Energy from all pairs and all images, without lists and blocks.
fn by_all_pairs(potential: &Potential, atoms: &[Atom], bounds: &Bounds) -> f64 {
    let cutoff = potential.cutoff();
    let span = |k: usize| {
        let reach = (cutoff + 40.0) / bounds.lengths[k];
        if bounds.periodic[k] { reach.ceil() as i32 } else { 0 }
    };
    let mut energy = 0.0;
    for one in atoms.iter().filter(|atom| matches!(atom.class, Class::Free | Class::Buffer)) {
        let (mut density, mut pairs) = (0.0, 0.0);
        for (other, x, y, z) in with_images(atoms, [span(0), span(1), span(2)]) {
            let shift = bounds.shift([x, y, z]);
            let apart: f64 = (0..3).map(|k| (one.at[k] - other.at[k] - shift[k]).powi(2)).sum::<f64>().sqrt();
            if other.class == Class::Removed || (other.id == one.id && [x, y, z] == [0; 3]) || apart >= cutoff
            {
                continue;
            }
            let (rho, phi) = potential.pair(one.species, other.species, apart);
            density += rho;
            let alone = one.class == Class::Free && other.class == Class::Fixed;
            pairs += if alone { phi } else { 0.5 * phi };
        }
        energy += pairs + potential.embed(one.species, density).0;
    }
    energy
}

/// Every atom with every image in a range.
fn with_images(atoms: &[Atom], span: [i32; 3]) -> impl Iterator<Item = (&Atom, i32, i32, i32)> {
    atoms.iter().flat_map(move |atom| {
        (-span[2]..=span[2]).flat_map(move |z| {
            (-span[1]..=span[1]).flat_map(move |y| (-span[0]..=span[0]).map(move |x| (atom, x, y, z)))
        })
    })
}

fn class(number: u8) -> Class {
    [Class::Free, Class::Free, Class::Buffer, Class::Fixed, Class::Removed][usize::from(number)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Any atoms of any classes in any box, also thin and tilted ones, cut into any blocks.
    #[test]
    fn lists_and_blocks_find_every_pair_once(
        places in prop::collection::vec((prop::array::uniform3(0.0..1.0), 0..5u8), 2..60),
        lengths in prop::array::uniform3(2.5..25.0),
        tilt in prop::array::uniform3(-2.0..2.0),
        periodic in prop::array::uniform3(any::<bool>()),
        blocks in 1..5usize,
    ) {
        let potential = analytic::built_in(Model::FinnisSinclair, "W").unwrap();
        let bounds = Bounds { lengths, tilt, periodic };
        let atoms: Vec<Atom> = places.iter().enumerate().map(|(id, (at, number))| Atom {
            id: id as u64,
            at: std::array::from_fn(|k| at[k] * lengths[k]),
            species: 0,
            class: class(*number),
        }).collect();
        let of = |n: usize| atoms.iter().copied().filter(move |atom| atom.id as usize % blocks == n);
        let system_blocks = (0..blocks).map(|n| Block::new(of(n))).collect();
        let mut system = System::new(potential.clone(), bounds, system_blocks, 0.3);
        let found = system.evaluate(false).energy;
        let expected = by_all_pairs(&potential, &atoms, &bounds);
        let scale = expected.abs().max(1.0);
        prop_assert!((found - expected).abs() < 1e-9 * scale, "{found} instead of {expected}");
    }

    /// What one block feels of another, the other feels of it, with the image turned round.
    #[test]
    fn influence_is_mutual(
        corners in prop::collection::vec((prop::array::uniform3(0.0..20.0), prop::array::uniform3(0.0..9.0)), 1..6),
        lengths in prop::array::uniform3(5.0..30.0),
        periodic in prop::array::uniform3(any::<bool>()),
    ) {
        let bounds = Bounds { lengths, tilt: [0.0; 3], periodic };
        let extents: Vec<_> = corners.iter().map(|(low, size)| {
            Some(Extent { low: *low, high: std::array::from_fn(|k| low[k] + size[k]) })
        }).collect();
        for me in 0..extents.len() {
            for (other, image) in influence(&extents, me, &bounds, 6.0) {
                let back = (me, image.map(|x| -x));
                prop_assert!(influence(&extents, other, &bounds, 6.0).contains(&back));
            }
        }
    }
}

/// 54 neighbours within 5.507 A in copper, whatever the number of layers: the rest are images.
#[test]
fn a_thin_crystal_has_all_its_neighbours() {
    let Some(potential) = mishin() else { return };
    for thickness in [1, 2, 4] {
        let crystal = crystal(Kind::Fcc, 3.615, [5, 5, thickness], PERIODIC);
        let partition = Partition::with_blocks(&crystal, [1, 1, 1]).unwrap();
        let block = Block::new(partition.atoms(&crystal, 0));
        let system = System::new(potential.clone(), crystal.bounds(), vec![block], 0.0);
        let block = &system.blocks()[0];
        // Pairs of own atoms are listed once, those with images at both ends.
        let (pairs, own) = (block.pairs(), block.own());
        let images = pairs - block.pairs_of_own();
        assert_eq!(2 * block.pairs_of_own() + images, 54 * own, "{thickness} layers");
    }
}

/// Blocks with more than 65,536 atoms, ghosts included, have wider indices; that changes nothing but the rounding of sums
/// over blocks.
#[test]
fn large_blocks_have_the_forces_of_small_ones() {
    let potential = analytic::built_in(Model::SuttonChen, "Ag").unwrap();
    let crystal = crystal(Kind::Fcc, 4.09, [22, 22, 22], PERIODIC);
    let mut large = system(&potential, &crystal, [1, 1, 1]);
    let mut small = system(&potential, &crystal, [2, 2, 2]);
    let atoms = |system: &System| system.blocks().iter().map(|b| b.own() + b.ghosts()).max().unwrap();
    assert!(atoms(&large) > 1 << 16 && atoms(&small) <= 1 << 16, "{} {}", atoms(&large), atoms(&small));
    shake(&mut large, 0.1);
    shake(&mut small, 0.1);
    let (one, other) = (large.evaluate(false).energy, small.evaluate(false).energy);
    assert!((one / other - 1.0).abs() < 1e-13, "{one} {other}");
    for (one, other) in forces(&large).iter().zip(forces(&small)) {
        assert!((0..3).all(|k| (one[k] - other[k]).abs() < 1e-12));
    }
}

#[test]
fn an_atom_belongs_to_the_block_that_generates_it() {
    let crystal = crystal(Kind::Fcc, 3.6, [7, 5, 3], PERIODIC);
    for blocks in [[1, 1, 1], [7, 5, 3], [2, 3, 2], [3, 1, 1]] {
        let partition = Partition::with_blocks(&crystal, blocks).unwrap();
        let mut seen = 0;
        for block in 0..partition.len() {
            for atom in partition.atoms(&crystal, block) {
                assert_eq!(partition.block_of(crystal.cell_at(atom.at)), block);
                seen += 1;
            }
        }
        assert_eq!(seen, crystal.atoms());
    }
    let partition = Partition::of(&crystal, 50);
    assert!((6..=9).contains(&partition.len()), "{:?}", partition.grid());
}
