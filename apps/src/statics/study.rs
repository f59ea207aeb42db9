//! Studies on the command line: properties of a material, computed in the launcher's one thread, as a table and as facts
//! of the report.

use super::course::Leg;
use super::crystal::lattice::Kind;
use super::input::Input;
use super::pressure::GPA;
use super::problem::Problem;
use super::studies::{AtRest, Face, Material, StudyError};
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
type Row = (&'static str, String, f64, &'static str);

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
    let rows = if study == Study::Pressure {
        pressure(&input.problem().map_err(|error| wrong(&error))?)
    } else {
        let material = Material::new(potential, input.kind(), input.method(), limits);
        let rows = material.and_then(|material| rows(&material, study, input));
        rows.map_err(|error| wrong(&error))?
    };
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

fn rows(material: &Material, study: Study, input: &Input) -> Result<Vec<Row>, StudyError> {
    let rest = material.at_rest(input.crystal.a)?;
    let cells = input.crystal.size;
    let mut rows = at_rest(&rest, input.kind());
    match study {
        Study::Lattice | Study::Pressure => {}
        Study::Elastic => {
            let found = material.elastic(&rest)?;
            rows.push(("c11_gpa", "C11".into(), found.c11, "GPa"));
            rows.push(("c12_gpa", "C12".into(), found.c12, "GPa"));
            rows.push(("c44_gpa", "C44".into(), found.c44, "GPa"));
        }
        Study::Vacancy => {
            let cells @ [x, y, z] = cells.unwrap_or(VACANCY_CELLS);
            let found = material.vacancy(&rest, cells)?;
            let name = |what: &str| format!("vacancy in {x} x {y} x {z} cells, {what}");
            rows.push(("vacancy_unrelaxed_ev", name("unrelaxed"), found.unrelaxed, "eV"));
            rows.push(("vacancy_ev", name("relaxed"), found.relaxed, "eV"));
        }
        Study::Surface => {
            for (face, name, unrelaxed, relaxed) in [
                (Face::F111, "(111)", "surface_111_unrelaxed_mj_per_m2", "surface_111_mj_per_m2"),
                (Face::F100, "(100)", "surface_100_unrelaxed_mj_per_m2", "surface_100_mj_per_m2"),
                (Face::F110, "(110)", "surface_110_unrelaxed_mj_per_m2", "surface_110_mj_per_m2"),
            ] {
                let found = material.surface(&rest, face, cells)?;
                rows.push((unrelaxed, format!("surface {name}, unrelaxed"), found.unrelaxed, "mJ/m^2"));
                rows.push((relaxed, format!("surface {name}, relaxed"), found.relaxed, "mJ/m^2"));
            }
        }
        Study::Fault => {
            let found = material.fault(&rest, cells)?;
            let name = |what: &str| format!("intrinsic stacking fault, {what}");
            rows.push(("fault_unrelaxed_mj_per_m2", name("unrelaxed"), found.unrelaxed, "mJ/m^2"));
            rows.push(("fault_mj_per_m2", name("relaxed"), found.relaxed, "mJ/m^2"));
        }
    }
    Ok(rows)
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
    rows.map(|(key, name, value, unit)| (key, name.to_owned(), value, unit)).into()
}

fn at_rest(rest: &AtRest, kind: Kind) -> Vec<Row> {
    let mut rows: Vec<Row> = vec![
        ("a", "lattice constant".into(), rest.a, "A"),
        ("cohesive_energy_ev", "cohesive energy per atom".into(), rest.energy, "eV"),
    ];
    if kind == Kind::Hcp {
        rows.insert(1, ("c_over_a", "c/a".into(), rest.c_over_a, ""));
    }
    rows
}
