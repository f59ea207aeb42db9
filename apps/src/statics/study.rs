//! Studies on the command line: properties of a material, computed in the launcher's one thread, as a table and as facts
//! of the report.

use super::course::Leg;
use super::crystal::lattice::Kind;
use super::input::Input;
use super::pressure::GPA;
use super::problem::Problem;
use super::studies::{AtRest, Face, Material, Relaxing, StudyError};
use chares::{Cx as _, Driver, RunError};
use serde::{Deserialize, Serialize};

/// A property of a material.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Study {
    /// Lattice constant and cohesive energy
    Lattice,
    /// Elastic constants of a cubic crystal
    Elastic,
    /// Formation energy of a vacancy, in --size cells [default: 6]
    Vacancy,
    /// Energies of the surfaces (111), (100) and (110) of a cubic crystal; slabs of --size X,Y,Z cells, Z across
    /// [default: 3, 3, 50 A]
    Surface,
    /// Energy of the intrinsic stacking fault of an fcc crystal, in a slab of --size X,Y,Z cells, Z across
    /// [default: 4, 6, 75 A]
    Fault,
    /// Energy and pressure of the crystal itself after the changes of its first step, before anything relaxes
    Pressure,
}

/// A row of the table: key in the report, name, value, unit.
type Row = (String, String, f64, &'static str);

/// Cells of the crystal with a vacancy, if no size is given.
const VACANCY_CELLS: [usize; 3] = [6; 3];

/// Largest force of a study, in eV/A, if none is given.
const MAX_FORCE: f64 = 1e-7;

pub(super) fn drive(main: &mut Driver, study: Study, input: &Input) -> Result<(), RunError> {
    let wrong = |error: &dyn std::fmt::Display| RunError::Input(error.to_string());
    let potential = input.potential().map_err(|error| wrong(&error))?;
    let mut limits = input.limits().map_err(|error| wrong(&error))?;
    limits.max_force = input.relaxation.max_force.unwrap_or(MAX_FORCE);
    let names = potential.names().join(", ");
    main.init_over()?;
    main.phase(&format!("study of {study:?}").to_lowercase(), 0, 0);
    let mut remarks = Vec::new();
    let rows = if study == Study::Pressure {
        pressure(&input.problem().map_err(|error| wrong(&error))?)
    } else {
        let material = Material::new(potential, input.kind(), input.method(), limits);
        let rows = material.and_then(|material| rows(&material, study, input, &mut remarks));
        rows.map_err(|error| wrong(&error))?
    };
    remarks.iter().for_each(|remark| main.outcome().remark(remark));
    main.timed_over()?;
    let kind = format!("{:?}", input.kind()).to_lowercase();
    let mut table = format!("{names}, {kind}\n");
    let wide = rows.iter().map(|(_, name, ..)| name.len()).max().unwrap_or(0);
    for (key, name, value, unit) in &rows {
        main.outcome().fact(key, *value);
        table += &format!("  {name:wide$}  {value:>14.6} {unit}\n");
    }
    main.outcome().fact("study", format!("{study:?}").to_lowercase());
    main.outcome().print(&table);
    Ok(())
}

fn rows(
    material: &Material,
    study: Study,
    input: &Input,
    remarks: &mut Vec<String>,
) -> Result<Vec<Row>, StudyError> {
    let rest = material.at_rest(input.crystal.a)?;
    let cells = input.crystal.size;
    let mut rows = at_rest(&rest, input.kind());
    remarks.extend(unstable(&rest, material.falls_by(&rest)?));
    let sources = sources(material, &rest, &mut rows, remarks)?;
    match study {
        Study::Lattice | Study::Pressure => {}
        Study::Elastic => {
            let found = material.elastic(&rest)?;
            rows.push(("c11_gpa".into(), "C11".into(), found.c11, "GPa"));
            rows.push(("c12_gpa".into(), "C12".into(), found.c12, "GPa"));
            rows.push(("c44_gpa".into(), "C44".into(), found.c44, "GPa"));
            if found.c44 <= 0.0 || found.c11 <= found.c12 || found.c11 + 2.0 * found.c12 <= 0.0 {
                remarks.push(
                    "the crystal yields to a strain: C44, C11 - C12 and C11 + 2 C12 have to be positive"
                        .into(),
                );
            }
        }
        Study::Vacancy => {
            let cells = cells.unwrap_or(VACANCY_CELLS);
            for source in &sources {
                vacancy(
                    &material.vacancy(&rest, cells, (source.species, source.energy))?,
                    source,
                    cells,
                    &mut rows,
                );
            }
        }
        Study::Surface => {
            for (face, index) in [(Face::F111, "111"), (Face::F100, "100"), (Face::F110, "110")] {
                let found = material.surface(&rest, face, cells)?;
                let key = format!("surface_{index}");
                relaxing((&key, "mj_per_m2"), &format!("surface ({index})"), &found, "mJ/m^2", &mut rows);
            }
        }
        Study::Fault => {
            let found = material.fault(&rest, cells)?;
            relaxing(("fault", "mj_per_m2"), "intrinsic stacking fault", &found, "mJ/m^2", &mut rows);
        }
    }
    remarks.extend(negative(study, &rows));
    Ok(rows)
}

/// The rows of an energy before and after the atoms relax.
fn relaxing(
    (key, unit_key): (&str, &str),
    name: &str,
    found: &Relaxing,
    unit: &'static str,
    rows: &mut Vec<Row>,
) {
    rows.push((format!("{key}_unrelaxed_{unit_key}"), format!("{name}, unrelaxed"), found.unrelaxed, unit));
    rows.push((format!("{key}_{unit_key}"), format!("{name}, relaxed"), found.relaxed, unit));
}

fn vacancy(found: &Relaxing, source: &Source, [x, y, z]: [usize; 3], rows: &mut Vec<Row>) {
    let cells = format!("in {x} x {y} x {z} cells");
    match &source.element {
        None => relaxing(("vacancy", "ev"), &format!("vacancy {cells}"), found, "eV", rows),
        Some(element) => {
            let name = format!("vacancy of {element} {cells}");
            relaxing((&format!("vacancy_{element}"), "ev"), &name, found, "eV", rows);
        }
    }
}

/// Where the atom of a vacancy goes.
struct Source {
    species: u8,
    /// Its element, in a compound.
    element: Option<String>,
    /// The energy that it has there, in eV.
    energy: f64,
}

/// An atom that is taken out of a metal goes back into it; one of a compound into its element by itself, of which the rows
/// tell lattice and energy.
fn sources(
    material: &Material,
    rest: &AtRest,
    rows: &mut Vec<Row>,
    remarks: &mut Vec<String>,
) -> Result<Vec<Source>, StudyError> {
    let elements = material.elements();
    if elements.len() == 1 {
        return Ok(vec![Source { species: 0, element: None, energy: rest.energy }]);
    }
    let mut sources = Vec::new();
    let mut apart = rest.energy;
    for (element, species) in elements.iter().zip(0..) {
        let pure = material.pure(species)?;
        let kind = format!("{:?}", pure.kind).to_lowercase();
        let name = format!("cohesive energy of {element} by itself, {kind}");
        rows.push((format!("cohesive_energy_{element}_ev"), name, pure.energy, "eV"));
        apart -= material.share(rest, species)? * pure.energy;
        sources.push(Source { species, element: Some(element.clone()), energy: pure.energy });
    }
    rows.push(("formation_energy_ev".into(), "formation energy per atom, from these".into(), apart, "eV"));
    if apart > 0.0 {
        remarks.push(format!(
            "the elements by themselves have {apart:.4} eV per atom less: the compound is not stable"
        ));
    }
    Ok(sources)
}

/// Energy in eV per atom from which on a fall is none of rounding, or of a tolerance.
const A_FALL: f64 = 1e-3;

/// What there is to say of a lattice that is no good to begin with.
fn unstable(rest: &AtRest, falls_by: f64) -> Option<String> {
    if rest.energy >= 0.0 {
        return Some("the cohesive energy is not negative: nothing holds these atoms together".into());
    }
    (falls_by > A_FALL).then(|| {
        format!(
            "this lattice is not stable with this potential: shaken by 0.05 A, its atoms come to rest {falls_by:.4} eV per \
             atom lower; energies of its defects mean little"
        )
    })
}

/// What there is to say of a defect that costs nothing.
fn negative(study: Study, rows: &[Row]) -> Option<String> {
    let defects = ["vacancy_", "surface_", "fault_"];
    let of_defect = |row: &&Row| row.2 < 0.0 && defects.iter().any(|defect| row.0.starts_with(defect));
    let (_, name, ..) = rows.iter().find(of_defect)?;
    let why = if study == Study::Fault {
        "hcp has less energy than fcc"
    } else {
        "the perfect crystal is not stable"
    };
    Some(format!("{name}: a negative energy says that {why} with this potential"))
}

/// Pressures are positive where the box wants to grow. Along an axis that ends, the box is as long as the crystal was made.
fn pressure(problem: &Problem) -> Vec<Row> {
    let mut system = problem.serial();
    problem.prepare_all(&Leg::of_step(0), &mut system);
    system.rebuild();
    let total = system.evaluate(true);
    let [xx, yy, zz, yz, xz, xy] = total.virial.map(|virial| virial / system.bounds().volume() * GPA);
    let rows = [
        ("energy_ev", "energy", total.energy, "eV"),
        ("pressure_gpa", "pressure", (xx + yy + zz) / 3.0, "GPa"),
        ("pressure_xx_gpa", "  xx", xx, "GPa"),
        ("pressure_yy_gpa", "  yy", yy, "GPa"),
        ("pressure_zz_gpa", "  zz", zz, "GPa"),
        ("pressure_yz_gpa", "  yz", yz, "GPa"),
        ("pressure_xz_gpa", "  xz", xz, "GPa"),
        ("pressure_xy_gpa", "  xy", xy, "GPa"),
    ];
    rows.map(|(key, name, value, unit)| (key.to_owned(), name.to_owned(), value, unit)).into()
}

fn at_rest(rest: &AtRest, kind: Kind) -> Vec<Row> {
    let mut rows: Vec<Row> = vec![
        ("a".into(), "lattice constant".into(), rest.a, "A"),
        ("cohesive_energy_ev".into(), "cohesive energy per atom".into(), rest.energy, "eV"),
    ];
    if kind == Kind::Hcp {
        rows.insert(1, ("c_over_a".into(), "c/a".into(), rest.c_over_a, ""));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statics::relax::{Limits, Method};
    use crate::statics::tests::twice_copper;

    #[test]
    fn a_study_of_a_compound_says_which_atom_is_taken_out_and_where_it_goes() {
        let material = Material::new(twice_copper(), Kind::L12, Method::Cg, Limits::default()).unwrap();
        let mut input = Input::default();
        (input.crystal.size, input.crystal.lattice) = (Some([2; 3]), Some(Kind::L12));
        let mut remarks = Vec::new();
        let rows = rows(&material, Study::Vacancy, &input, &mut remarks).unwrap();
        let keys: Vec<&str> = rows.iter().map(|row| row.0.as_str()).collect();
        assert_eq!(
            keys,
            [
                "a",
                "cohesive_energy_ev",
                "cohesive_energy_A_ev",
                "cohesive_energy_B_ev",
                "formation_energy_ev",
                "vacancy_A_unrelaxed_ev",
                "vacancy_A_ev",
                "vacancy_B_unrelaxed_ev",
                "vacancy_B_ev"
            ]
        );
        assert!(rows[5].1.starts_with("vacancy of A in 2 x 2 x 2 cells"), "{}", rows[5].1);
        // A and B are the same metal, whose fcc and hcp are hardly apart.
        assert!((0.0..0.01).contains(&rows[4].2) && (rows[6].2 - rows[8].2).abs() < 1e-6, "{rows:?}");
    }

    #[test]
    fn what_costs_nothing_is_remarked() {
        let row = |key: &str, value| (key.to_owned(), format!("the {key}"), value, "eV");
        let rows = [row("cohesive_energy_ev", -3.0), row("vacancy_ev", -1436.0)];
        let said = negative(Study::Vacancy, &rows).unwrap();
        assert!(
            said.starts_with("the vacancy_ev: a negative energy says that the perfect crystal"),
            "{said}"
        );
        assert_eq!(negative(Study::Vacancy, &rows[..1]), None);
        let rest = AtRest { a: 3.0, c_over_a: 1.0, energy: 0.1 };
        assert!(unstable(&rest, 0.0).unwrap().contains("nothing holds"));
        assert_eq!(unstable(&AtRest { energy: -1.0, ..rest }, 1e-5), None);
    }
}
