//! Whole runs inside one process, and the physics of those of one thread.

use super::arguments::Pic;
use super::field::{Differences, Solver, Wave};
use super::figures::Figures;
use super::particles::{Pushing, around};
use super::problem::{Problem, Scheme, Strip};
use super::serial::Serial;
use super::{add_to, drive, theory};
use chares::{InProcess, Map, Program, RunError};
use clap::{Args as _, Command, FromArgMatches as _};
use command::CommandLine;
use std::f64::consts::TAU;
use std::path::Path;
use std::sync::{Arc, Mutex};

fn of(words: &[&str]) -> Pic {
    let command = Pic::augment_args(Command::new("pic"));
    Pic::from_arg_matches(&command.get_matches_from([&["pic"], words].concat())).unwrap()
}

fn problem(words: &[&str]) -> Problem {
    let mut problem = of(words).problem().unwrap();
    problem.bounds = vec![0, problem.particles()];
    problem
}

fn run(mix: &InProcess, words: &[&str]) -> Result<(), RunError> {
    let pic = of(words).completed()?;
    add_to(CommandLine::new(Program::new("test", "1")))
        .into_program()
        .run_in_process(mix, |main| drive::drive(main, pic))
}

/// What a run writes.
fn written(mix: &InProcess, folder: &Path, words: &[&str]) -> [Vec<u8>; 4] {
    let names =
        ["t.csv", "p.npy", "s.npy", "d.npy"].map(|name| folder.join(name).to_str().unwrap().to_string());
    let options = ["--trace", "--out", "--phase-space", "--density"];
    let files: Vec<&str> =
        options.into_iter().zip(&names).flat_map(|(option, name)| [option, name]).collect();
    run(mix, &[words, &["--verify"], &files].concat()).unwrap();
    names.map(|name| std::fs::read(name).unwrap())
}

/// Who looks sees all particles at the end, whoever has them, and changes nothing.
#[test]
fn what_is_shown_is_all_particles_and_changes_no_bit() {
    let words =
        ["--particles", "4000", "--cells", "24x6", "--steps", "40", "--thermal", "0.02", "--dt", "0.2"];
    let mut digests = Vec::new();
    for scheme in [["--scheme", "fixed"], ["--scheme", "regions"], ["--grid", "distributed"]] {
        for is_watched in [false, true] {
            let shown: Arc<Mutex<Vec<Map>>> = Arc::default();
            let seen = Arc::clone(&shown);
            let pic = of(&[&words[..], &scheme].concat()).completed().unwrap();
            let program = add_to(CommandLine::new(Program::new("test", "1"))).into_program();
            let digest = program.run_in_process(&InProcess::new(&[2, 1]).always_pup().wander(5), |main| {
                main.on_maps(move || is_watched, move |map| seen.lock().unwrap().push(map));
                drive::drive(main, pic)?;
                Ok(main.outcome().facts["digest"].clone())
            });
            digests.push(digest.unwrap());
            let maps = shown.lock().unwrap();
            let titles = ["density, relative to the mean", "particles by x and v_x"];
            assert!(maps.len().is_multiple_of(2) && (maps.len() >= 4) == is_watched, "{}", maps.len());
            let Some([density, phase_space]) = maps.last_chunk() else { continue };
            assert_eq!([density.title(), phase_space.title()], titles);
            assert_eq!((density.columns(), density.rows()), (24, 6));
            let [low, high] = density.range();
            let value = |cell: u8| low + (high - low) * f64::from(cell) / 255.0;
            let places = (0..6).flat_map(|row| (0..24).map(move |column| (column, row)));
            let mean = places.map(|(column, row)| value(density.cell(column, row))).sum::<f64>() / 144.0;
            assert!((mean - 1.0).abs() < 0.01 && high > low, "all are there: {mean}");
            assert_eq!((phase_space.columns(), phase_space.rows()), (96, 48));
            assert!(phase_space.y().high > 0.0 && phase_space.y().low == -phase_space.y().high);
        }
    }
    assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
}

/// Whoever has the particles and the grid, on whatever machines, and though chares move: the same bits.
#[test]
fn schemes_and_mixes_compute_what_one_thread_does() {
    let folder = tempfile::tempdir().unwrap();
    // The fastest go through some columns in a step.
    let works: [&[&str]; 3] = [
        &["--particles", "3000", "--cells", "24x6", "--steps", "30", "--thermal", "0.02", "--dt", "0.2"],
        &[
            "--setup",
            "landau",
            "--particles",
            "999",
            "--cells",
            "9x5",
            "--steps",
            "12",
            "--length",
            "3",
            "--dt",
            "0.3",
        ],
        &[
            "--setup",
            "two-streams",
            "--particles",
            "2000",
            "--cells",
            "12x8",
            "--steps",
            "26",
            "--length",
            "1,2",
        ],
    ];
    for words in works {
        let mut all = Vec::new();
        for scheme in [&["--scheme", "fixed"][..], &["--scheme", "regions"], &["--grid", "distributed"], &[]]
        {
            let mixes = [
                (InProcess::new(&[1]), "1"),
                (InProcess::new(&[2, 1]).always_pup(), "2"),
                (InProcess::new(&[1, 1, 2]).speeds(&[1.0, 0.3, 0.55, 0.05]).wander(3), "3"),
            ];
            for (mix, regions) in mixes {
                all.push(written(&mix, folder.path(), &[words, scheme, &["--regions", regions]].concat()));
            }
        }
        assert!(all.iter().all(|other| *other == all[0]), "{words:?}");
    }
}

/// The course of a plasma in one thread.
fn followed(words: &[&str]) -> (Problem, Vec<Figures>) {
    let problem = problem(words);
    let mut serial = Serial::new(&problem);
    let course = (0..problem.steps).map(|_| serial.step().unwrap()).collect();
    (problem, course)
}

fn modes(course: &[Figures]) -> Vec<f64> {
    course.iter().map(|figures| figures.mode).collect()
}

#[test]
fn a_beam_makes_waves_grow_as_theory_says_and_energy_stays() {
    for (beam, steps) in [("0.02,1", "600"), ("0.1,1", "500")] {
        let words = [
            "--particles",
            "4000",
            "--cells",
            "32x4",
            "--beam",
            beam,
            "--steps",
            steps,
            "--perturbation",
            "1e-5",
        ];
        let (problem, course) = followed(&words);
        let (rate, expected) =
            (theory::growth(&modes(&course), problem.dt).unwrap(), theory::expected(&problem).value());
        assert!((rate / expected - 1.0).abs() < 0.03, "{beam}: {rate} where theory has {expected}");
        let drift = |figures: &Figures| (figures.total() / course[0].total() - 1.0).abs();
        assert!(course[..200].iter().all(|figures| drift(figures) < 0.01), "{beam}");
        assert!(course.iter().all(|figures| figures.charge_error == 0.0), "{beam}");
        assert_eq!(drive::first_wrong(&problem, &course, 0, 0), None);
    }
}

#[test]
fn a_wave_in_warm_electrons_is_damped_as_landau_says() {
    let words = ["--setup", "landau", "--particles", "50000", "--cells", "64x4", "--steps", "125"];
    let (problem, course) = followed(&words);
    let rate = theory::damping(&modes(&course), problem.dt).unwrap();
    assert!((rate / -0.1533 - 1.0).abs() < 0.05, "{rate}");
    assert!((theory::expected(&problem).value() + 0.1533).abs() < 1e-4);
    assert!((course[0].kinetic - 1.0).abs() < 1e-3, "half for each axis: {}", course[0].kinetic);
}

/// The field of a charge by the sums that transforms stand for.
fn by_sums(problem: &Problem, charge: &[i64]) -> (Vec<f64>, f64) {
    let ([nx, ny], [dx, dy]) = (problem.cells, problem.cell());
    let mean = problem.charge() as f64 / problem.grid() as f64;
    let wave = |kx: usize, ky: usize, x: usize, y: usize| {
        Wave::cis(TAU * ((kx * x) as f64 / nx as f64 + (ky * y) as f64 / ny as f64))
    };
    let points = || (0..nx).flat_map(|x| (0..ny).map(move |y| (x, y)));
    let (mut field, mut energy) = (vec![[0.0; 2]; nx * ny], 0.0);
    for (kx, ky) in points().filter(|at| *at != (0, 0)) {
        let sum: Wave =
            points().map(|(x, y)| wave(kx, ky, x, y).conj() * (charge[x * ny + y] as f64 / mean)).sum();
        let density = sum / (nx * ny) as f64;
        let (of_x, of_y) = (TAU * kx as f64 / nx as f64, TAU * ky as f64 / ny as f64);
        let curvature = (2.0 * (of_x / 2.0).sin() / dx).powi(2) + (2.0 * (of_y / 2.0).sin() / dy).powi(2);
        energy += 0.5 * density.norm_sqr() / curvature;
        for (x, y) in points() {
            // -i times the density's wave.
            let potential = (density / curvature * wave(kx, ky, x, y)).im;
            let field = &mut field[x * ny + y];
            field[0] += potential * of_x.sin() * (problem.dt / dx).powi(2);
            field[1] += potential * of_y.sin() * (problem.dt / dy).powi(2);
        }
    }
    (field.as_flattened().to_vec(), energy)
}

#[test]
fn fields_and_their_energy_are_those_of_the_sums_that_transforms_stand_for() {
    for cells in ["8x6", "7x4", "5x9"] {
        let problem =
            problem(&["--particles", "500", "--cells", cells, "--length", "3,2", "--thermal", "0.1"]);
        let pushing = Pushing::new(&problem, problem.whole());
        let mut grid = vec![0; pushing.sums()];
        problem.numbered(0..500).deposit(0, &pushing, &mut grid);
        let charge = around(pushing.folded(&grid), problem.cells[1]);
        assert_eq!(charge.iter().sum::<i64>(), problem.charge());
        let (solved, (expected, energy)) = (Solver::new(&problem).solve(&charge), by_sums(&problem, &charge));
        let (ny, mut field) = (problem.cells[1], Vec::new());
        Differences::new(&problem).everywhere(&solved.potential, &mut field);
        for (column, expected) in expected.chunks_exact(2 * ny).enumerate() {
            let column = &field[2 * (ny + 1) * column..][..2 * (ny + 1)];
            let close = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-13;
            assert!(column.iter().zip(expected).all(close), "{cells}: {column:?} {expected:?}");
            assert_eq!(column[..2], column[2 * ny..], "the first point again");
        }
        assert!((solved.energy.row / energy - 1.0).abs() < 1e-12, "{cells}");
    }
}

#[test]
fn a_particle_shares_its_charge_among_the_corners_of_its_cell() {
    let problem = problem(&["--particles", "500", "--cells", "8x4"]);
    let whole = 1i64 << (2 * problem.bits());
    // In the last row and the last column, behind which are the first ones.
    let pushing = Pushing::new(&problem, Strip { first: 6, columns: 2 });
    let mut particles = super::particles::Particles::default();
    particles.push([7.25, 3.5, 0.0, 0.0]);
    let mut sums = vec![0; pushing.sums()];
    particles.deposit(0, &pushing, &mut sums);
    let charge = pushing.folded(&sums);
    let expected = [[0.0; 4], [0.375, 0.0, 0.0, 0.375], [0.125, 0.0, 0.0, 0.125]];
    assert_eq!(
        charge,
        expected.as_flattened().iter().map(|part| (part * whole as f64) as i64).collect::<Vec<_>>()
    );
    assert_eq!(
        around(charge, 4),
        [0.125, 0.0, 0.0, 0.125, 0.375, 0.0, 0.0, 0.375].map(|part| (part * whole as f64) as i64)
    );
}

#[test]
fn beginnings_are_the_same_however_they_are_divided() {
    let mut problem =
        problem(&["--particles", "5000", "--cells", "20x7", "--perturbation", "0.5", "--mode", "2"]);
    let whole = problem.numbered(0..5000);
    problem.scheme = Scheme::Regions;
    problem.bounds = vec![0, 1, 4, 13, 20];
    let digests = (0..4).map(|region| problem.inside(problem.strip(region)));
    let (count, digest) = digests
        .fold((0, 0u64), |(count, digest), part| (count + part.len(), digest.wrapping_add(part.digest())));
    assert_eq!((count, digest), (5000, whole.digest()));
    let parts = [0..1234, 1234..4000, 4000..5000].map(|numbers| problem.numbered(numbers).digest());
    assert_eq!(parts.into_iter().fold(0, u64::wrapping_add), whole.digest());
    let regions: Vec<u32> = [0, 1, 3, 4, 12, 13, 19].map(|column| problem.region_at(column)).to_vec();
    assert_eq!(regions, [0, 1, 1, 2, 2, 3, 3]);
}

#[test]
fn a_wrong_result_is_told() {
    let words = ["--particles", "400", "--cells", "8x4", "--steps", "6"];
    let (problem, course) = followed(&words);
    let mut serial = Serial::new(&problem);
    (0..6).for_each(|_| assert!(serial.step().is_some()));
    let digest = serial.particles.digest();
    let wrong = |course: &[Figures], digest: u64| super::drive::first_wrong(&problem, course, digest, 6);
    assert_eq!(wrong(&course, digest), None);
    assert!(wrong(&course, digest ^ 1).unwrap().contains("particles at the end differ"));
    let changed = |change: fn(&mut Figures)| {
        let mut course = course.clone();
        change(&mut course[4]);
        wrong(&course, digest).unwrap()
    };
    assert!(changed(|figures| figures.charge_error = 1e-11).starts_with("charge is lost before step 4"));
    assert!(changed(|figures| figures.kinetic *= 1.5).starts_with("the energy drifts by "));
    assert!(changed(|figures| figures.kinetic = f64::NAN).starts_with("the energy drifts by NaN"));
    assert_eq!(changed(|figures| figures.mode *= 1.0 + 1e-15), "step 4 differs from that of one thread");
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    let sentence = |words: &[&str]| of(words).completed().unwrap_err().to_string();
    assert_eq!(sentence(&["--particles", "3"]), "--particles 3: give 16 to 4294967296");
    assert!(sentence(&["--cells", "4x3"]).starts_with("--cells 4x3: give 4 to 16384 along each axis"));
    assert!(sentence(&["--dt", "2"]).contains("less than 2, where steps become unstable"));
    assert!(sentence(&["--mode", "33"]).contains("a quarter of the cells along x, 32"));
    assert!(sentence(&["--beam", "1,1"]).contains("give a part between 0 and 1"));
    assert!(sentence(&["--beam", "0.1,0"]).contains("give a velocity other than 0"));
    assert!(sentence(&["--setup", "landau", "--beam", "0.1,1"]).contains("has none"));
    assert!(sentence(&["--length", "0"]).starts_with("--length 0,0: give lengths"));
    assert_eq!(sentence(&["--length", "1,2,3"]), "--length: give one or two lengths, not 3");
    assert!(
        sentence(&["--length", "0.01"]).contains("cells in a step, and may through 8: take a smaller --dt")
    );
    let short = sentence(&["--dt", "1e-7"]);
    assert!(short.starts_with("--dt 0.0000001: electrons go so little of a cell in a step"), "{short}");
    let least = short.split("give at least ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    assert!(of(&["--dt", least]).problem().is_ok(), "{short}");
    assert!(sentence(&["--grid", "distributed", "--scheme", "fixed"]).contains("--scheme fixed cannot be"));
    assert!(sentence(&["--density", "d.gif"]).ends_with("give a name that ends in .png, .svg, .npy"));
    assert!(sentence(&["nowhere.toml"]).contains("nowhere.toml"));
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::fs::write(file.path(), "[box]\ncells = [16, 8, 4]\n").unwrap();
    let said = sentence(&[file.path().to_str().unwrap()]);
    assert!(said.ends_with(":2: invalid length 3, expected an array of length 2"), "{said}");
    // Some hundred times denser at the wave than elsewhere: the field throws particles out.
    let wild =
        &["--particles", "2000", "--cells", "64x4", "--perturbation", "0.9", "--length", "60", "--dt", "1.9"];
    let ends = run(&InProcess::new(&[1, 1]), &[wild, &["--scheme", "fixed"][..]].concat());
    assert!(ends.unwrap_err().to_string().contains("a particle goes further than 8 cells"));
}

#[test]
fn files_say_the_same_as_options_and_options_go_over_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.toml");
    let words = [file.to_str().unwrap(), "--steps", "7"];
    std::fs::write(
        &file,
        "[plasma]\nsetup = 'two-streams'\nparticles = 600\nbeam = { fraction = 0.4, velocity = 2.0 }\nthermal = 0.1\nmode = 2\n\
         perturbation = 0.01\nseed = 5\n[box]\ncells = [16, 8]\nlength = [9.0, 4.5]\n[run]\nsteps = 3\ndt = 0.05\n\
         scheme = 'regions'\nregions = 2\n[output]\ntrace = 't.csv'\n",
    )
    .unwrap();
    let said = of(&words).completed().unwrap();
    let options = "--setup two-streams --particles 600 --beam 0.4,2 --thermal 0.1 --mode 2 --perturbation 0.01 --seed 5 \
                   --cells 16x8 --length 9,4.5 --steps 7 --dt 0.05 --scheme 1 --regions 2";
    let options: Vec<&str> = options.split_whitespace().collect();
    assert_eq!(said.problem().unwrap(), of(&options).problem().unwrap());
    assert_eq!(
        (said.regions, said.scheme, said.trace),
        (Some(2), of(&options).scheme, Some(folder.path().join("t.csv")))
    );
    std::fs::write(&file, "[plasma]\nparticles = 600\n[run]\nstep = 3\n").unwrap();
    let refused = of(&words).completed().unwrap_err().to_string();
    assert!(refused.contains("two.toml:4: ") && refused.contains("unknown field `step`"), "{refused}");
}

/// Messages between nodes in a step in which regions do all together are many times those in which charges are added up.
#[test]
fn the_distributed_grid_takes_many_messages() {
    let messages = |words: &[&str], steps: &str| {
        let rest = ["--particles", "2000", "--cells", "64x8", "--regions", "1", "--steps", steps];
        let pic = of(&[words, &rest].concat()).completed().unwrap();
        let program = add_to(CommandLine::new(Program::new("test", "1"))).into_program();
        let nodes = program.run_in_process(&InProcess::new(&[1; 8]), |main| {
            drive::drive(main, pic)?;
            main.snapshots()
        });
        nodes.unwrap().iter().map(|node| node.sent_messages).sum::<u64>()
    };
    let of_step = |words: &[&str]| (messages(words, "22") - messages(words, "2")) / 20;
    let schemes = [&["--scheme", "fixed"][..], &["--scheme", "regions"], &["--grid", "distributed"]];
    let [fixed, regions, distributed] = schemes.map(of_step);
    assert!((10..40).contains(&fixed) && regions < 80, "{fixed} {regions} {distributed}");
    assert!(distributed >= 3 * fixed && distributed >= 2 * regions, "{fixed} {regions} {distributed}");
}

#[test]
fn fast_particles_go_through_several_regions() {
    let problem = |scheme| {
        let mut problem = problem(&["--cells", "64x8"]);
        problem.scheme = scheme;
        problem.bounds = (0..=16).map(|region| 4 * region).collect();
        problem
    };
    let (direct, hops) = (problem(Scheme::Regions), problem(Scheme::Distributed));
    assert_eq!((direct.hops(), direct.neighbours(0)), (1, vec![1, 2, 14, 15]));
    assert_eq!((hops.hops(), hops.neighbours(0)), (2, vec![1, 15]));
    assert_eq!((hops.towards(0, 2), hops.towards(1, 15), hops.towards(3, 3 + 8)), (1, 0, 4));
}
