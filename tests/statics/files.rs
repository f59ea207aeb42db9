//! What is written, as others read it: extended XYZ by its grammar, dumps by LAMMPS.

use crate::{MIXES, nodes, run, xyz};
use std::path::Path;
use std::process::Command;

/// Copper of Mishin et al., from Debian's `lammps-data`.
const MISHIN: &str = "/usr/share/lammps/potentials/Cu_mishin1.eam.alloy";

fn read(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A vacancy, then a box without pressure.
const STEPS: &str = r#"
[crystal]
a = 3.7
size = [4, 4, 3]

[relaxation]
max_force = 1e-5
block = 40

[[step]]
name = "vacancy"
disturb = [{ vacancy = { ids = [30] } }, { shake = { by = 0.05 } }]

[[step]]
name = "box"
box = ["xy", "z"]

[output]
xyz = "end.xyz"
dump = "end.dump"
trace = "end.csv"
each_step = true
"#;

#[test]
fn atoms_after_each_step_are_in_files_that_others_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let has_potential = Path::new(MISHIN).exists();
    let potential =
        if has_potential { format!("[potential]\nfiles = [\"{MISHIN}\"]\n") } else { String::new() };
    harness::write(folder, "steps.toml", &format!("{potential}{STEPS}"));
    nodes(folder, MIXES[0], "");
    let words = ["run", "statics", "steps.toml", "--speed", "file", "--report", "run.json"];
    let done = run(folder, &words);
    assert_eq!(done.code, 0, "{done:?}");
    let report: serde_json::Value = serde_json::from_str(&read(folder, "run.json")).unwrap();
    let steps = report["facts"]["steps"].as_array().unwrap();
    for (step, name) in ["end.1", "end.2"].into_iter().enumerate() {
        let text = read(folder, &format!("{name}.xyz"));
        let frame = xyz::parse(&text).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        assert_eq!((frame.pbc, frame.columns["species"].len()), ([true; 3], 191));
        let energy: f64 = frame.reals("energy").iter().flatten().sum();
        assert!((energy - steps[step]["energy_ev"].as_f64().unwrap()).abs() < 1e-9, "{name}: {energy}");
        let edges = [0, 4, 8].map(|edge| frame.lattice[edge]);
        assert_eq!(step == 0, edges == [4.0 * 3.7, 4.0 * 3.7, 3.0 * 3.7], "{edges:?}");
        for at in frame.reals("pos") {
            assert!(at.iter().zip(edges).all(|(x, edge)| (0.0..edge).contains(x)), "{at:?} in {edges:?}");
        }
        if has_potential {
            agrees_with_lammps(folder, &format!("{name}.dump"), step + 1, 191, energy);
        }
    }
    assert_eq!(read(folder, "end.2.xyz"), read(folder, "end.xyz"));
    assert_eq!(read(folder, "end.2.dump"), read(folder, "end.dump"));
    // A line for each evaluation of both steps, those of all boxes in one row.
    let trace = read(folder, "end.csv");
    let rows: Vec<Vec<f64>> =
        trace.lines().skip(1).map(|line| line.split(',').map(|x| x.parse().unwrap()).collect()).collect();
    for (step, found) in steps.iter().enumerate() {
        let counts: Vec<f64> =
            rows.iter().filter(|row| row[0] == step as f64 + 1.0).map(|row| row[1]).collect();
        assert!(counts.windows(2).all(|pair| pair[1] == pair[0] + 1.0) && counts[0] == 1.0, "{counts:?}");
        assert_eq!(Some(counts.len() as u64), found["evaluations"].as_u64());
    }
}

/// LAMMPS reads the dump with its box, and finds the same energy and atoms.
fn agrees_with_lammps(folder: &Path, dump: &str, step: usize, atoms: usize, energy: f64) {
    let script = format!(
        "units metal\natom_style atomic\natom_modify map array\nboundary p p p\nregion all block 0 1 0 1 0 1\n\
         create_box 1 all\nmass 1 63.5\npair_style eam/alloy\npair_coeff * * {MISHIN} Cu\n\
         read_dump {dump} {step} x y z box yes add keep\nrun 0\nvariable atoms equal count(all)\n\
         print \"FOUND $(v_atoms) $(pe:%.12g)\"\n"
    );
    harness::write(folder, "read.in", &script);
    let run = Command::new("lmp").args(["-in", "read.in", "-log", "none"]).current_dir(folder).output();
    let Ok(run) = run else {
        eprintln!("skipped: there is no lmp (apt-get install lammps)");
        return;
    };
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    let found: Vec<&str> = said
        .lines()
        .find_map(|line| line.strip_prefix("FOUND "))
        .unwrap_or_else(|| panic!("{said}"))
        .split(' ')
        .collect();
    assert_eq!(found[0].parse::<f64>().unwrap(), atoms as f64, "{said}");
    assert!((found[1].parse::<f64>().unwrap() - energy).abs() < 1e-7, "{said}: {energy}");
}
