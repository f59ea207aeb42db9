//! Relaxed defects against LAMMPS.

use super::*;
use crate::statics::block::Class;
use crate::statics::relax::{Limits, Method};

fn remove(system: &mut System, id: u64) {
    for block in system.blocks_mut() {
        if let Ok(place) = block.ids.binary_search(&id) {
            block.classes[place] = Class::Removed;
        }
    }
    system.rebuild();
}

#[test]
fn a_vacancy_relaxes_to_the_energy_of_lammps() {
    let Some(potential) = mishin() else { return };
    let crystal = crystal(Kind::Fcc, 3.61492506588808, [6, 6, 6], PERIODIC);
    for method in [Method::Cg, Method::Fire, Method::Lbfgs] {
        let mut system = system(&potential, &crystal, [2, 1, 1]);
        let whole = system.evaluate(false).energy;
        remove(&mut system, 0);
        let limits = Limits { max_force: 1e-6, ..Limits::default() };
        let relaxed = system.relax(method, limits, |_, _, _| ());
        let formation = relaxed.energy - 863.0 / 864.0 * whole;
        eprintln!("{method:?}: {formation} {relaxed:?}");
        assert!((formation - 1.272616).abs() < 1e-6, "{method:?}: {formation} {relaxed:?}");
    }
}

#[test]
fn disorder_relaxes_to_the_crystal() {
    let Some(potential) = mishin() else { return };
    let crystal = crystal(Kind::Fcc, 3.615, [4, 4, 4], PERIODIC);
    for method in [Method::Cg, Method::Fire, Method::Lbfgs] {
        let mut system = system(&potential, &crystal, [2, 2, 1]);
        shake(&mut system, 0.1);
        let relaxed = system.relax(method, Limits::default(), |_, _, _| ());
        eprintln!("{method:?}: {relaxed:?} rebuilds {}", system.rebuilds());
        assert!((relaxed.energy + 906.29588748468).abs() < 1e-9, "{method:?} {relaxed:?}");
    }
}
