//! Lattices, elastic constants, vacancies, surfaces and faults against LAMMPS.

use super::*;
use crate::statics::potential::analytic;
use crate::statics::relax::{Limits, Method};
use crate::statics::studies::{Face, Material};

fn material(potential: Potential, kind: Kind) -> Material {
    let limits = Limits { max_force: 1e-7, ..Limits::default() };
    Material::new(potential, kind, Method::Cg, limits).unwrap()
}

fn assert_near(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{what}: {found} instead of {expected}");
}

struct Expected {
    file: &'static str,
    names: &'static [&'static str],
    kind: Kind,
    a: f64,
    energy: f64,
    /// C11, C12, C44.
    elastic: Option<[f64; 3]>,
    /// Vacancy with 6^3 cells, unrelaxed and relaxed.
    vacancy: Option<[f64; 2]>,
    /// Relaxed, with 10^3 cells.
    large_vacancy: Option<f64>,
    /// (111), (100), (110).
    surfaces: Option<[f64; 3]>,
    /// Relaxed and unrelaxed.
    fault: Option<[f64; 2]>,
}

const fn only_lattice(
    file: &'static str,
    names: &'static [&'static str],
    kind: Kind,
    a: f64,
    energy: f64,
) -> Expected {
    let (elastic, vacancy, large_vacancy, surfaces, fault) = (None, None, None, None, None);
    Expected { file, names, kind, a, energy, elastic, vacancy, large_vacancy, surfaces, fault }
}

fn assert_material(expected: &Expected) {
    let Some(potential) = installed(&[expected.file], expected.names) else { return };
    let material = material(potential, expected.kind);
    let rest = material.at_rest(None).unwrap();
    let name = expected.file;
    assert_near(name, rest.a, expected.a, 2e-7 * expected.a);
    assert_near(name, rest.energy, expected.energy, 2e-8);
    if let Some([c11, c12, c44]) = expected.elastic {
        let elastic = material.elastic(&rest).unwrap();
        assert_near(name, elastic.c11, c11, 0.02);
        assert_near(name, elastic.c12, c12, 0.02);
        assert_near(name, elastic.c44, c44, 0.02);
    }
    if let Some([unrelaxed, relaxed]) = expected.vacancy {
        let vacancy = material.vacancy(&rest, [6; 3], (0, rest.energy)).unwrap();
        assert_near(name, vacancy.unrelaxed, unrelaxed, 2e-6);
        assert_near(name, vacancy.relaxed, relaxed, 2e-6);
    }
    if let Some(relaxed) = expected.large_vacancy {
        assert_near(name, material.vacancy(&rest, [10; 3], (0, rest.energy)).unwrap().relaxed, relaxed, 2e-6);
    }
    if let Some(surfaces) = expected.surfaces {
        for (face, expected) in [Face::F111, Face::F100, Face::F110].into_iter().zip(surfaces) {
            let surface = material.surface(&rest, face, None).unwrap();
            assert_near(name, surface.relaxed, expected, 1e-3 * expected);
        }
    }
    if let Some([relaxed, unrelaxed]) = expected.fault {
        let fault = material.fault(&rest, None).unwrap();
        assert_near(name, fault.relaxed, relaxed, 0.02);
        assert_near(name, fault.unrelaxed, unrelaxed, 0.06);
    }
}

#[test]
fn copper_of_mishin_is_that_of_lammps() {
    assert_material(&Expected {
        file: "Cu_mishin1.eam.alloy",
        names: &["Cu"],
        kind: Kind::Fcc,
        a: 3.614925066,
        energy: -3.540218330,
        elastic: Some([169.88, 122.59, 76.21]),
        vacancy: Some([1.309177455, 1.272616]),
        large_vacancy: Some(1.272326),
        surfaces: Some([1239.5, 1345.3, 1475.5]),
        fault: Some([44.38, 44.65]),
    });
}

#[test]
fn other_metals_are_those_of_lammps() {
    let fcc = Kind::Fcc;
    assert_material(&Expected {
        elastic: Some([167.27, 124.15, 76.45]),
        vacancy: Some([1.316539551, 1.283956]),
        large_vacancy: Some(1.283708),
        surfaces: Some([1180.7, 1287.8, 1412.2]),
        fault: Some([17.52, 17.85]),
        ..only_lattice("Cu_u3.eam", &["Cu"], fcc, 3.614999976, -3.540000002)
    });
    assert_material(&Expected {
        elastic: Some([233.27, 154.29, 127.64]),
        vacancy: Some([1.650356, 1.631346]),
        large_vacancy: Some(1.631279),
        surfaces: Some([1435.9, 1570.3, 1718.7]),
        fault: Some([14.37, 14.51]),
        ..only_lattice("Ni_u3.eam", &["Ni"], fcc, 3.519999922, -4.450000004)
    });
    assert_material(&Expected {
        elastic: Some([246.72, 147.48, 124.96]),
        vacancy: Some([1.692004, 1.592165]),
        large_vacancy: Some(1.592054),
        surfaces: Some([1929.1, 2060.0, 2351.7]),
        fault: Some([88.79, 125.1]),
        ..only_lattice("NiAlH_jea.eam.alloy", &["Ni"], fcc, 3.520000350, -4.450000013)
    });
    assert_material(&Expected {
        elastic: Some([114.02, 62.05, 31.62]),
        vacancy: Some([0.746775, 0.524916]),
        large_vacancy: Some(0.524655),
        surfaces: Some([1000.4, 1013.8, 1148.3]),
        fault: Some([98.87, 169.6]),
        ..only_lattice("NiAlH_jea.eam.alloy", &["Al"], fcc, 4.050000068, -3.359999997)
    });
    assert_material(&Expected {
        elastic: Some([106.33, 59.53, 30.67]),
        vacancy: Some([0.676919, 0.658621]),
        large_vacancy: Some(0.658381),
        surfaces: Some([427.8, 496.5, 581.4]),
        fault: Some([127.1, 129.2]),
        ..only_lattice("Al_mm.eam.fs", &["Al"], fcc, 4.045259793, -3.410656954)
    });
    assert_material(&Expected {
        elastic: Some([243.98, 145.25, 116.29]),
        vacancy: Some([1.836360, 1.712932]),
        large_vacancy: Some(1.712523),
        ..only_lattice("Fe_mm.eam.fs", &["Fe"], Kind::Bcc, 2.855324861, -4.122435102)
    });
}

/// Slabs that are thinner, thicker or wider than usual have the same energies.
#[test]
fn sizes_of_slabs_change_little() {
    let Some(potential) = mishin() else { return };
    let material = material(potential, Kind::Fcc);
    let rest = material.at_rest(Some(3.615)).unwrap();
    for cells in [[1, 1, 6], [2, 1, 24]] {
        let surface = material.surface(&rest, Face::F100, Some(cells)).unwrap();
        assert_near("(100)", surface.relaxed, 1345.3, 1.0);
    }
    let fault = material.fault(&rest, Some([1, 1, 8])).unwrap();
    assert_near("fault", fault.relaxed, 44.38, 0.05);
}

#[test]
fn lattices_of_metals_and_compounds_are_those_of_lammps() {
    for expected in [
        Expected {
            elastic: Some([111.38, 85.14, 45.93]),
            vacancy: Some([1.200071, 1.158235]),
            large_vacancy: Some(1.157991),
            surfaces: Some([908.2, 969.0, 1046.1]),
            ..only_lattice("Al_jnp.eam", &["Al"], Kind::Fcc, 3.987558507, -3.387638795)
        },
        Expected {
            elastic: Some([90.15, 70.73, 33.08]),
            ..only_lattice("AlCu.eam.alloy", &["Al"], Kind::Fcc, 4.049763526, -3.318317222)
        },
        only_lattice("Al_zhou.eam.alloy", &["Al"], Kind::Fcc, 4.081654901, -3.579998660),
        only_lattice("Cu_zhou.eam.alloy", &["Cu"], Kind::Fcc, 3.614813247, -3.539803536),
        only_lattice("Ag_u3.eam", &["Ag"], Kind::Fcc, 4.089999924, -2.850000002),
        only_lattice("Au_u3.eam", &["Au"], Kind::Fcc, 4.080000018, -3.930000000),
        only_lattice("CoAl.eam.alloy", &["Co", "Al"], Kind::B2, 2.866347009, -4.468625824),
        only_lattice("NiAlH_jea.eam.alloy", &["Ni", "Al"], Kind::B2, 2.862989364, -4.425359332),
        only_lattice("NiAlH_jea.eam.alloy", &["Ni", "Al"], Kind::L12, 3.567653228, -4.598345335),
    ] {
        assert_material(&expected);
    }
}

/// Finnis and Sinclair fitted lattice constant and cohesive energy (in eV, as they print it), so that both check the
/// parameters here; Sutton-Chen's sums are cut off here, which costs up to a few percent.
#[test]
fn built_in_metals_are_as_published() {
    for (element, energy) in
        [("V", 5.31), ("Nb", 7.57), ("Ta", 8.10), ("Cr", 4.10), ("Mo", 6.82), ("W", 8.90), ("Fe", 4.28)]
    {
        let (model, a) = analytic::model_of(element).unwrap();
        let rest = material(analytic::built_in(model, element).unwrap(), Kind::Bcc).at_rest(Some(a)).unwrap();
        eprintln!("{element} {rest:?}");
        assert_near(element, rest.a, a, 0.002 * a);
        assert_near(element, -rest.energy, energy, 0.005 * energy);
    }
    for (element, energy) in [
        ("Ni", 4.44),
        ("Cu", 3.49),
        ("Rh", 5.75),
        ("Pd", 3.89),
        ("Ag", 2.95),
        ("Ir", 6.94),
        ("Pt", 5.84),
        ("Au", 3.81),
        ("Pb", 2.03),
        ("Al", 3.39),
    ] {
        let (model, a) = analytic::model_of(element).unwrap();
        let rest = material(analytic::built_in(model, element).unwrap(), Kind::Fcc).at_rest(Some(a)).unwrap();
        eprintln!("{element} {rest:?}");
        assert_near(element, rest.a, a, 0.03 * a);
        assert_near(element, -rest.energy, energy, 0.06 * energy);
    }
}

/// Of A3B whose A and B are the same metal, either vacancy is that of the metal, and either element by itself is it.
#[test]
fn vacancies_of_a_compound_are_those_of_its_species() {
    let compound = material(twice_copper(), Kind::L12);
    let metal = material(twice_copper().only(0), Kind::Fcc);
    let (rest, of_metal) = (compound.at_rest(None).unwrap(), metal.at_rest(None).unwrap());
    assert_near("energy", rest.energy, of_metal.energy, 1e-9);
    let expected = metal.vacancy(&of_metal, [3; 3], (0, of_metal.energy)).unwrap();
    for species in [0, 1] {
        let found = compound.vacancy(&rest, [3; 3], (species, rest.energy)).unwrap();
        assert_near("unrelaxed", found.unrelaxed, expected.unrelaxed, 1e-6);
        assert_near("relaxed", found.relaxed, expected.relaxed, 1e-6);
        let pure = compound.pure(species).unwrap();
        assert!(pure.energy <= rest.energy + 1e-9, "{pure:?} and {rest:?}");
    }
    assert_eq!((compound.share(&rest, 0).unwrap(), compound.share(&rest, 1).unwrap()), (0.75, 0.25));
}

/// Copper stays in fcc, and leaves diamond.
#[test]
fn only_what_is_no_stable_lattice_falls() {
    let copper = analytic::built_in(analytic::Model::SuttonChen, "Cu").unwrap();
    for (kind, is_stable) in [(Kind::Fcc, true), (Kind::Hcp, true), (Kind::Diamond, false)] {
        let material = material(copper.clone(), kind);
        let falls_by = material.falls_by(&material.at_rest(None).unwrap()).unwrap();
        assert_eq!(falls_by < 1e-4, is_stable, "{kind:?}: {falls_by}");
    }
}
