//! What holds for any crystal: forces are the slope of the energy, blocks and thickness change nothing.

use super::*;
use crate::statics::block::Class;
use crate::statics::potential::analytic::{self, Model};
use crate::statics::relax::{Limits, Method};

/// The largest difference between forces and central differences of the energy, for every free atom of a few.
fn off_from_slope(system: &mut System, atoms: &[(usize, usize)]) -> f64 {
    system.evaluate(false);
    let h = 2e-5;
    let mut worst = 0.0_f64;
    for &(block, i) in atoms {
        let force = system.blocks()[block].force[i];
        for (k, force) in force.into_iter().enumerate().take(3) {
            let mut energy = |by: f64| {
                system.blocks_mut()[block].at[i][k] += by;
                system.evaluate(false).energy
            };
            let (up, down) = (energy(h), energy(-2.0 * h));
            energy(h);
            worst = worst.max((force + (up - down) / (2.0 * h)).abs());
        }
    }
    worst
}

fn free_atoms(system: &System, every: usize) -> Vec<(usize, usize)> {
    let of = |(n, block): (usize, &Block)| {
        let free = (0..block.own()).filter(|&i| block.classes[i] == Class::Free);
        free.map(|i| (n, i)).collect::<Vec<_>>()
    };
    system.blocks().iter().enumerate().flat_map(of).step_by(every).collect()
}

/// Also where shells are thinner than the cutoff, so that free atoms feel fixed ones.
#[test]
fn forces_are_the_slope_of_the_energy_at_every_class_boundary() {
    let potential = analytic::built_in(Model::SuttonChen, "Cu").unwrap();
    for (buffer, fixed) in [(7.6, 7.6), (2.0, 4.0), (0.0, 3.0), (3.0, 0.0), (0.0, 0.0)] {
        let shells = Side::Shells { buffer, fixed };
        let crystal = crystal(Kind::Fcc, 3.61, [9, 9, 1], [shells, shells, Side::Periodic]);
        let mut system = system(&potential, &crystal, [2, 1, 1]);
        shake(&mut system, 0.05);
        let atoms = free_atoms(&system, 7);
        assert!(!atoms.is_empty());
        let off = off_from_slope(&mut system, &atoms);
        assert!(off < 1e-7, "shells of {buffer} and {fixed} A: {off}");
    }
}

#[test]
fn forces_are_the_slope_of_the_energy_in_thin_cells_with_several_images() {
    let potential = analytic::built_in(Model::FinnisSinclair, "Fe").unwrap();
    for cells in [[1, 1, 1], [1, 2, 3], [2, 1, 1]] {
        let mut system = system(&potential, &crystal(Kind::Bcc, 2.8665, cells, PERIODIC), [1, 1, 1]);
        shake(&mut system, 0.05);
        let atoms = free_atoms(&system, 1);
        let off = off_from_slope(&mut system, &atoms);
        assert!(off < 1e-7, "{cells:?}: {off}");
    }
}

#[test]
fn forces_are_the_slope_of_the_energy_with_two_species() {
    for (files, names, kind) in [
        (["NiAlH_jea.eam.alloy"], ["Ni", "Al"], Kind::L12),
        (["NiAlH_jea.eam.fs"], ["Al", "Ni"], Kind::B2),
        (["AlFe_mm.eam.fs"], ["Al", "Fe"], Kind::B2),
    ] {
        let Some(potential) = installed(&files, &names) else { return };
        let a = if kind == Kind::B2 { 2.9 } else { 3.57 };
        let mut system = system(&potential, &crystal(kind, a, [3, 3, 2], PERIODIC), [2, 1, 2]);
        shake(&mut system, 0.05);
        let atoms = free_atoms(&system, 3);
        let off = off_from_slope(&mut system, &atoms);
        assert!(off < 1e-7, "{files:?}: {off}");
    }
}

/// Stretched by a factor and sheared by a strain: also with several images, two species and several blocks.
#[test]
fn the_virial_is_the_slope_of_the_energy_with_strain() {
    let copper = analytic::built_in(Model::SuttonChen, "Cu").unwrap();
    let mut systems = vec![
        system(&copper, &crystal(Kind::Fcc, 3.55, [4, 3, 1], PERIODIC), [2, 1, 1]),
        system(&copper, &crystal(Kind::Fcc, 3.7, [4, 4, 4], PERIODIC), [2, 2, 2]),
    ];
    for (file, names) in [("NiAlH_jea.eam.alloy", ["Ni", "Al"]), ("AlFe_mm.eam.fs", ["Fe", "Al"])] {
        let Some(potential) = installed(&[file], &names) else { continue };
        systems.push(system(&potential, &crystal(Kind::B2, 2.85, [4, 3, 3], PERIODIC), [2, 1, 1]));
    }
    for system in &mut systems {
        shake(system, 0.05);
        let virial = system.evaluate(true).virial;
        let h = 2e-6;
        let mut slope = |strain: &dyn Fn(&mut System, f64)| {
            let mut energy = |from: f64, to: f64| {
                strain(system, from);
                let energy = system.evaluate(false).energy;
                strain(system, to);
                energy
            };
            (energy(h, -h) - energy(-h, h)) / (2.0 * h)
        };
        for axis in 0..3 {
            let factors = |by: f64| std::array::from_fn(|k| if k == axis { by.exp() } else { 1.0 });
            let found = slope(&|system: &mut System, by: f64| system.scale(factors(by)));
            assert!((found + virial[axis]).abs() < 1e-6 * virial[0].abs().max(1.0), "{found} {virial:?}");
        }
        let found = slope(&|system: &mut System, by: f64| system.shear(by));
        assert!((found + virial[5]).abs() < 1e-6 * virial[0].abs().max(1.0), "{found} {virial:?}");
    }
}

#[test]
fn the_net_force_vanishes_and_blocks_change_the_rounding_only() {
    let potential = analytic::built_in(Model::SuttonChen, "Ag").unwrap();
    let crystal = crystal(Kind::Fcc, 4.09, [6, 5, 4], PERIODIC);
    let mut whole = system(&potential, &crystal, [1, 1, 1]);
    shake(&mut whole, 0.1);
    let energy = whole.evaluate(false).energy;
    for blocks in [[6, 1, 1], [2, 2, 2], [6, 5, 4]] {
        let mut cut = system(&potential, &crystal, blocks);
        shake(&mut cut, 0.1);
        assert!((cut.evaluate(false).energy / energy - 1.0).abs() < 1e-13);
        let mut net = [0.0; 3];
        for (one, other) in forces(&cut).iter().zip(forces(&whole)) {
            for k in 0..3 {
                assert!((one[k] - other[k]).abs() < 1e-12);
                net[k] += one[k];
            }
        }
        assert!(net.iter().all(|sum| sum.abs() < 1e-11), "{net:?}");
    }
}

/// Lists of other ages and skins hold other pairs, but the pairs within the cutoff stand in one order.
#[test]
fn bits_do_not_depend_on_the_age_of_the_lists() {
    let potential = analytic::built_in(Model::SuttonChen, "Cu").unwrap();
    let crystal = crystal(Kind::Fcc, 3.61, [8, 4, 4], PERIODIC);
    let mut aged = system(&potential, &crystal, [2, 1, 1]);
    for block in aged.blocks_mut() {
        for own in 0..block.own() {
            block.at[own][0] += 0.2 * (block.ids[own] as f64).sin();
        }
    }
    let old = aged.evaluate(true);
    let with_old = forces(&aged);
    aged.rebuild();
    assert_eq!(old, aged.evaluate(true));
    assert!(with_old == forces(&aged));
}

#[test]
fn a_thin_crystal_has_the_energy_of_a_thick_one() {
    let Some(potential) = mishin() else { return };
    for thickness in [1, 2, 4] {
        let crystal = crystal(Kind::Fcc, 3.615, [6, 6, thickness], PERIODIC);
        let energy = system(&potential, &crystal, [1, 1, 1]).evaluate(false).energy;
        let per_atom = energy / crystal.atoms() as f64;
        assert!((per_atom + 3.5402183104).abs() < 1e-9, "{thickness}: {per_atom}");
    }
}

/// The thesis's geometry, of one, two and six cells: energies of a perfect slab with shells, of one with a vacancy, and of
/// that after it has relaxed.
#[test]
fn a_slab_with_shells_has_the_energies_of_lammps() {
    let Some(potential) = mishin() else { return };
    let a = 3.61492506588808;
    for (nz, counts, expected) in [
        (1, [1024, 576, 704], [-5664.349328328, -5659.507900788, -5659.554756063]),
        (2, [2048, 1152, 1408], [-11328.698656656, -11323.849083271, -11323.886877023]),
        (6, [6144, 3456, 4224], [-33986.095969976, -33981.246574191, -33981.283517412]),
    ] {
        let shells = Side::Shells { buffer: 2.0 * a, fixed: 2.0 * a };
        let crystal = crystal(Kind::Fcc, a, [24, 24, nz], [shells, shells, Side::Periodic]);
        let mut system = system(&potential, &crystal, [3, 3, 1]);
        let classes = || system.blocks().iter().flat_map(|block| &block.classes[..block.own()]);
        let of = |class| classes().filter(|found| **found == class).count();
        assert_eq!([Class::Free, Class::Buffer, Class::Fixed].map(of), counts);
        let perfect = system.evaluate(false).energy;
        let gone = (12 * 24 + 12) * 4;
        let block = system.blocks_mut().iter_mut().find(|block| block.ids.contains(&gone)).unwrap();
        let place = block.ids.binary_search(&gone).unwrap();
        block.classes[place] = Class::Removed;
        system.rebuild();
        let with_vacancy = system.evaluate(false).energy;
        let limits = Limits { max_force: 1e-7, ..Limits::default() };
        let relaxed = system.relax(Method::Cg, limits, |_, _, _| ()).energy;
        for (found, expected) in [perfect, with_vacancy, relaxed].into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-7, "{nz} cells: {found} and not {expected}");
        }
    }
}
