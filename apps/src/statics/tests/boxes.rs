//! Boxes without pressure, and what the pressure is.

use super::*;
use crate::statics::crystal::lattice::Site;
use crate::statics::potential::analytic::{self, Model};
use crate::statics::pressure::relax_box;
use crate::statics::relax::{Limits, Method};

const LIMITS: Limits = Limits {
    max_force: 1e-7,
    force_norm: 0.0,
    energy: 0.0,
    iterations: 10_000,
    evaluations: 50_000,
    max_step: 0.1,
};

/// The virial is how the energy falls with the box and all places in it, whatever atoms are held, and however thin the
/// shells are.
#[test]
fn the_virial_is_the_slope_of_the_energy_with_any_shells() {
    let potential = analytic::built_in(Model::SuttonChen, "Cu").unwrap();
    for (buffer, fixed) in [(7.6, 7.6), (2.0, 4.0), (0.0, 3.0), (0.0, 0.0)] {
        let shells = Side::Shells { buffer, fixed };
        let crystal = crystal(Kind::Fcc, 3.58, [9, 9, 1], [shells, shells, Side::Periodic]);
        let mut system = system(&potential, &crystal, [2, 1, 1]);
        shake(&mut system, 0.05);
        let virial = system.evaluate(true).virial[2];
        let h = 1e-5;
        let mut energy = |factor: f64| {
            system.scale([1.0, 1.0, factor]);
            system.evaluate(false).energy
        };
        let up = energy(1.0 + h);
        let down = energy((1.0 - h) / (1.0 + h));
        let slope = (down - up) / (2.0 * h);
        assert!((virial - slope).abs() < 1e-6 * virial.abs(), "{buffer} {fixed}: {virial} and not {slope}");
    }
}

#[test]
fn a_wrong_lattice_constant_ends_at_that_of_lammps() {
    let Some(potential) = mishin() else { return };
    for (a, groups) in [(3.5, vec![vec![0, 1, 2]]), (3.75, vec![vec![0], vec![1], vec![2]])] {
        let crystal = crystal(Kind::Fcc, a, [3, 3, 4], PERIODIC);
        let mut system = system(&potential, &crystal, [1, 1, 2]);
        shake(&mut system, 0.05);
        relax_box(&mut system, &groups, Method::Cg, LIMITS, 1e-4).unwrap();
        let lengths = system.bounds().lengths;
        let found = [lengths[0] / 3.0, lengths[1] / 3.0, lengths[2] / 4.0];
        assert!(found.iter().all(|a| (a - 3.614925066).abs() < 1e-5), "{found:?}");
    }
}

/// A tetragonal cell becomes cubic where all axes are free; where two are held apart, the third shrinks by Poisson.
#[test]
fn each_axis_goes_its_own_way() {
    let Some(potential) = mishin() else { return };
    let a = 3.614925066;
    let site = |at| Site { at, species: 0 };
    let sites = [[0.0; 3], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]].map(site).to_vec();
    let of = |edges: [f64; 3]| {
        let lattice = Lattice::custom(edges, sites.clone()).unwrap();
        let crystal = Crystal::new(&lattice, &AS_IT_IS, [3, 3, 3], PERIODIC).unwrap();
        system(&potential, &crystal, [1, 2, 1])
    };
    let mut cubic = of([3.5, 3.7, 3.62]);
    relax_box(&mut cubic, &[vec![0], vec![1], vec![2]], Method::Cg, LIMITS, 1e-4).unwrap();
    let found = cubic.bounds().lengths.map(|length| length / 3.0);
    assert!(found.iter().all(|edge| (edge - a).abs() < 1e-5), "{found:?}");
    let mut strained = of([1.01 * a, 1.01 * a, a]);
    relax_box(&mut strained, &[vec![2]], Method::Cg, LIMITS, 1e-4).unwrap();
    let [x, y, z] = strained.bounds().lengths.map(|length| length / 3.0 / a - 1.0);
    // -2 C12 / C11 of the strain, and a little for what is not linear.
    assert!((x - 0.01).abs() < 1e-12 && (y - 0.01).abs() < 1e-12, "{x} {y}");
    assert!((z + 0.01 * 2.0 * 122.59 / 169.88).abs() < 5e-4, "{z}");
}
