//! Counts, ids and errors of crystals.

use super::lattice::{Kind, Lattice};
use super::oriented::AS_IT_IS;
use super::*;

fn fcc() -> Lattice {
    Lattice::named(Kind::Fcc, 3.615, None).unwrap()
}

const PERIODIC: [Side; 3] = [Side::Periodic; 3];

#[test]
fn a_part_holds_the_atoms_that_the_whole_holds_there() {
    let crystal = Crystal::new(&fcc(), &[[1, 1, -2], [1, 1, 1], [1, -1, 0]], [5, 4, 3], PERIODIC).unwrap();
    let whole: Vec<_> = crystal.part([0..5, 0..4, 0..3]).collect();
    assert_eq!(whole.len() as u64, crystal.atoms());
    assert!(whole.iter().enumerate().all(|(n, atom)| atom.id == n as u64));
    for atom in crystal.part([2..4, 1..2, 0..3]) {
        assert_eq!(atom, whole[atom.id as usize]);
    }
}

/// Turned cells repeat after the shortest translations: a/2 [1 -1 0], a [1 1 1], a/2 [1 1 -2].
#[test]
fn turned_cells_are_as_small_as_they_can_be() {
    let cell = oriented::orient(&fcc(), &[[1, 1, -2], [1, 1, 1], [1, -1, 0]]).unwrap();
    let a = 3.615;
    for (edge, expected) in
        cell.edges.iter().zip([a * 1.5_f64.sqrt(), a * 3.0_f64.sqrt(), a * 0.5_f64.sqrt()])
    {
        assert!((edge - expected).abs() < 1e-12, "{edge} instead of {expected}");
    }
    assert_eq!(cell.sites.len(), 6);
    let b2 = Lattice::named(Kind::B2, 3.0, None).unwrap();
    assert_eq!(oriented::orient(&b2, &[[1, 1, 1], [1, -1, 0], [1, 1, -2]]).unwrap().sites.len(), 12);
    let bcc = Lattice::named(Kind::Bcc, 3.0, None).unwrap();
    assert_eq!(oriented::orient(&bcc, &[[1, 1, 1], [1, -1, 0], [1, 1, -2]]).unwrap().sites.len(), 6);
}

#[test]
fn every_lattice_has_its_neighbours() {
    let nearest = |kind, a: f64, distance: f64| {
        let lattice = Lattice::named(kind, a, None).unwrap();
        let crystal = Crystal::new(&lattice, &AS_IT_IS, [5, 5, 5], PERIODIC).unwrap();
        let atoms: Vec<_> = crystal.part([0..5, 0..5, 0..5]).collect();
        let middle = atoms.iter().find(|atom| atom.id / lattice.sites().len() as u64 == 62).unwrap();
        let apart = |atom: &&Atom| (0..3).map(|k| (atom.at[k] - middle.at[k]).powi(2)).sum::<f64>().sqrt();
        atoms.iter().filter(|atom| (apart(atom) - distance).abs() < 1e-9).count()
    };
    assert_eq!(nearest(Kind::Fcc, 4.0, 4.0 / 2_f64.sqrt()), 12);
    assert_eq!(nearest(Kind::Bcc, 4.0, 2.0 * 3_f64.sqrt()), 8);
    assert_eq!(nearest(Kind::Hcp, 3.0, 3.0), 12);
    assert_eq!(nearest(Kind::Diamond, 4.0, 3_f64.sqrt()), 4);
    assert_eq!(nearest(Kind::B2, 3.0, 1.5 * 3_f64.sqrt()), 8);
    assert_eq!(nearest(Kind::L12, 4.0, 4.0 / 2_f64.sqrt()), 12);
}

/// The geometry of the 1999 program: 24 x 24 x 1 cells with shells of two cells.
#[test]
fn shells_have_the_atoms_that_they_should() {
    let shells = Side::Shells { buffer: 2.0 * 3.615, fixed: 2.0 * 3.615 };
    let crystal = Crystal::new(&fcc(), &AS_IT_IS, [24, 24, 1], [shells, shells, Side::Periodic]).unwrap();
    let count = |class| crystal.part([0..24, 0..24, 0..1]).filter(|atom| atom.class == class).count();
    assert_eq!([Class::Free, Class::Buffer, Class::Fixed].map(count), [1024, 576, 704]);
    assert!(crystal.thin_shells(5.507).is_empty());
    assert_eq!(crystal.thin_shells(7.5).len(), 4);
}

#[test]
fn what_is_no_crystal_is_told() {
    let make = |triads: Triads| Crystal::new(&fcc(), &triads, [1; 3], PERIODIC).unwrap_err();
    assert!(matches!(make([[1, 0, 0], [0, 1, 0], [0, 0, -1]]), CrystalError::LeftHanded(_)));
    assert!(matches!(make([[1, 0, 0], [1, 1, 0], [0, 0, 1]]), CrystalError::NotOrthogonal { .. }));
    assert!(matches!(make([[0, 0, 0], [1, 1, 0], [0, 0, 1]]), CrystalError::Triad(_)));
    assert_eq!(Lattice::named(Kind::Fcc, 3.6, Some(1.6)).unwrap_err(), CrystalError::NoRatio);
    assert!(matches!(Lattice::named(Kind::Fcc, -1.0, None), Err(CrystalError::Edges(_))));
    let thick = Side::Shells { buffer: 10.0, fixed: 10.0 };
    let error = Crystal::new(&fcc(), &AS_IT_IS, [4; 3], [thick; 3]).unwrap_err();
    assert!(matches!(error, CrystalError::Shells { axis: 'x', .. }));
    assert!(matches!(Crystal::new(&fcc(), &AS_IT_IS, [0, 1, 1], PERIODIC), Err(CrystalError::Cells(_))));
}
