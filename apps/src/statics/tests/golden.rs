//! Against LAMMPS, to the last digits: 256 atoms in disorder.

use super::*;

/// Energy and every force of the 4 x 4 x 4 fcc crystal with displacements of 0.1 A. `reference` has id x y z fx fy fz e.
fn assert_golden(potential: &Potential, energy: f64, reference: &str, blocks: [usize; 3]) {
    let crystal = crystal(Kind::Fcc, 3.615, [4, 4, 4], PERIODIC);
    let mut system = system(potential, &crystal, blocks);
    shake(&mut system, 0.1);
    let total = system.evaluate(false);
    assert!((total.energy / energy - 1.0).abs() < 1e-12, "{} instead of {energy}", total.energy);
    let found = forces(&system);
    let mut worst = 0.0_f64;
    for line in reference.lines() {
        let values: Vec<f64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let force = found[values[0] as usize - 1];
        for k in 0..3 {
            worst = worst.max((force[k] - values[4 + k]).abs());
        }
    }
    assert!(worst < 1e-12, "a force is off by {worst} eV/A");
}

#[test]
fn setfl_gives_the_energy_and_forces_of_lammps() {
    let Some(potential) = mishin() else { return };
    for blocks in [[1, 1, 1], [2, 1, 1], [4, 4, 4], [1, 3, 2]] {
        assert_golden(&potential, -892.70238710692, include_str!("../golden/cu_mishin1.forces"), blocks);
    }
}

#[test]
fn funcfl_gives_the_energy_and_forces_of_lammps() {
    let Some(potential) = installed(&["Cu_u3.eam"], &["Cu"]) else { return };
    for blocks in [[1, 1, 1], [2, 2, 2]] {
        assert_golden(&potential, -893.38761683743, include_str!("../golden/cu_u3.forces"), blocks);
    }
}

/// Densities of the first atoms, and the number of pairs within the cutoff.
#[test]
fn densities_are_those_of_the_reference() {
    let Some(potential) = mishin() else { return };
    let crystal = crystal(Kind::Fcc, 3.615, [4, 4, 4], PERIODIC);
    let mut system = system(&potential, &crystal, [1, 1, 1]);
    shake(&mut system, 0.1);
    system.evaluate(false);
    let density = &system.blocks()[0].density;
    for (found, expected) in density.iter().zip([0.997148337065, 0.987675174976, 1.00722440265]) {
        assert!((found - expected).abs() < 1e-11, "{found} instead of {expected}");
    }
    assert!((density.iter().sum::<f64>() - 257.641279956).abs() < 1e-8);
}
