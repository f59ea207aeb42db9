//! Bodies that swell: orders of convergence on meshes that change, nothing lost, and the same bits everywhere.

use super::{iterate, problem, run, sentence};
use crate::division::Division;
use crate::fem::adapt::{Judged, chosen, graded};
use crate::fem::alone::{Step, introduce, step};
use crate::fem::check::{Measured, measure};
use crate::fem::exact::Exact;
use crate::fem::follow::{allowed, lost};
use crate::fem::level::Levels;
use crate::fem::machine::Machine;
use crate::fem::marching::{Block, Marching, Verdict};
use crate::fem::problem::{Boundary, Condition, Physics, Problem, Source};
use crate::fem::swelling::Swelling;
use chares::loadbalance::machines::{Link, Machines};
use chares::{InProcess, Reduce as _};
use std::collections::BTreeMap;

/// All steps in one thread: what came of each, its levels, and the blocks at the end.
fn march(problem: &Problem) -> (Vec<Verdict>, Vec<Vec<u8>>, Vec<Block>) {
    let swelling = problem.swelling.as_ref().unwrap();
    let mut all: Vec<Marching> = (0..problem.parts).map(|number| Marching::new(swelling, number)).collect();
    let (mut levels, mut course, mut taken, mut blocks) =
        (swelling.levels.clone(), Vec::new(), Vec::new(), Vec::new());
    for number in 0..swelling.steps {
        let Step { closed, .. } = step(problem, swelling, &mut all, &levels).unwrap();
        let (verdicts, of_step): (Vec<Verdict>, Vec<Block>) = closed.into_iter().unzip();
        let errors: Vec<f64> = verdicts.iter().map(|verdict| verdict.error).collect();
        let verdict = verdicts.into_iter().reduce(|mut one, other| {
            one.combine(other);
            one
        });
        taken.push(levels.clone());
        course.extend(verdict);
        blocks = of_step;
        if number + 1 < swelling.steps {
            levels = swelling.chosen(number + 1, &levels, &errors, verdict.unwrap().square);
        }
    }
    (course, taken, blocks)
}

/// The known problem with these options, changed.
fn known(options: &str, change: impl Fn(&mut Swelling)) -> Problem {
    let words: Vec<&str> =
        ["--physics", "swelling", "--verify"].into_iter().chain(options.split(' ')).collect();
    let mut problem = problem(&words);
    let swelling = problem.swelling.as_mut().unwrap();
    change(swelling);
    swelling.levels = swelling.first_levels();
    problem
}

fn errors(verdict: &Verdict) -> [f64; 2] {
    [verdict.diffusion.relative_error(), verdict.body.relative_error()]
}

/// Values and displacements that are linear are found exactly in a mesh with nodes that hang on all sides.
#[test]
fn linear_functions_are_found_exactly_where_nodes_hang() {
    let forest = problem(&["--physics", "swelling", "--elements", "12,8", "--block", "2", "--levels", "2"]);
    let swelling = forest.swelling.clone().unwrap();
    let blocks = swelling.forest.blocks();
    let wanted: Vec<u8> = (0..blocks)
        .map(|block| [(3, 2), (20, 1)].into_iter().find(|of| of.0 == block).map_or(0, |of| of.1))
        .collect();
    let levels = graded(&swelling.forest, &wanted);
    assert!((0..=2).all(|level| levels.contains(&level)), "{levels:?}");
    let all = (0..4).map(|group| Boundary { group, condition: Condition::FixedExact });
    for physics in
        [Physics::Poisson { conductivity: 2.0, wind: [0.0; 3], rate: 3.0 }, Physics::elastic(1.0, 0.3)]
    {
        let mut linear = Problem {
            physics,
            boundaries: all.clone().collect(),
            source: Source::Exact,
            exact: Some(Exact::Linear),
            swelling: None,
            ..forest.clone()
        };
        linear.solver.tolerance = 1e-13;
        let levels_of = |block| Levels::of_mesh(&linear, swelling.forest.submesh(block, &levels).0, &[]);
        let mut machines: Vec<Machine> =
            (0..blocks).map(|block| Machine::of(&linear, levels_of(block))).collect();
        introduce(&mut machines).unwrap();
        assert!(iterate(&linear, &mut machines, None));
        let mut measured = Measured::default();
        for machine in &machines {
            measured.combine(measure(machine.mesh.as_ref().unwrap(), &linear, machine.solution(), &[]));
        }
        assert!(measured.relative_error() < 1e-11 && measured.solves(1e-13), "{physics:?}: {measured:?}");
    }
}

/// A spot that stays: no step makes an error, so what is left is that of the elements.
#[test]
fn errors_fall_with_the_square_of_the_elements_length() {
    let of = |levels: u8| {
        let options = format!("--elements 8 --levels {levels} --steps 2 --tolerance 1e-10");
        let still = known(&options, |swelling| {
            let spot = swelling.spot.as_mut().unwrap();
            (spot.velocity, spot.at, spot.radius) = ([0.0; 3], [0.5, 0.5, 0.0], 0.12);
            swelling.accuracy = 0.0;
        });
        let (course, all, _) = march(&still);
        assert!(all.iter().flatten().all(|level| *level == levels), "{all:?}");
        errors(&course[1])
    };
    let (coarse, fine) = (of(2), of(3));
    for k in 0..2 {
        let order = (coarse[k] / fine[k]).log2();
        assert!((1.85..2.3).contains(&order), "{k}: {order} by {coarse:?} and {fine:?}");
    }
}

#[test]
fn errors_fall_with_the_length_of_steps() {
    let of = |steps: u32| {
        let options = format!("--elements 16 --levels 2 --accuracy 2e-3 --duration 0.2 --steps {steps}");
        let (course, ..) = march(&known(&options, |_| {}));
        errors(course.last().unwrap())
    };
    let (long, short) = (of(3), of(6));
    for k in 0..2 {
        let order = (long[k] / short[k]).log2();
        assert!((0.75..1.3).contains(&order), "{k}: {order} by {long:?} and {short:?}");
    }
}

/// Elements that go along with the spot do what small ones everywhere would.
#[test]
fn few_elements_where_the_spot_is_are_as_good_as_many() {
    let of = |levels: u8, accuracy: f64| {
        let options = format!("--elements 16 --block 2 --levels {levels} --steps 8 --duration 0.3");
        march(&known(&options, |swelling| swelling.accuracy = accuracy))
    };
    let (few, levels, _) = of(2, 3e-3);
    let (many, all, _) = of(2, 0.0);
    let (coarse, ..) = of(0, 1e-3);
    assert!(all.iter().flatten().all(|level| *level == 2));
    let (last, whole) = (few.last().unwrap(), many.last().unwrap());
    assert!(3 * last.elements < whole.elements, "{} of {}", last.elements, whole.elements);
    for ((few, many), coarse) in
        errors(last).into_iter().zip(errors(whole)).zip(errors(coarse.last().unwrap()))
    {
        assert!(few < 1.1 * many && coarse > 1.3 * many, "{few} {many} {coarse}");
    }
    let changed = |is_more: bool| {
        let pairs = levels.windows(2).flat_map(|two| two[0].iter().zip(&two[1]));
        pairs.filter(|(before, after)| if is_more { after > before } else { after < before }).count()
    };
    assert!(changed(true) > 3 && changed(false) > 3, "{levels:?}");
}

const WELD: &str = r#"
    physics = "swelling"
    young = 2.0
    conductivity = 0.02
    capacity = 3.0
    expansion = 0.1
    initial = 0.5
    spot = { at = [0.2, 0.5], velocity = [0.6, 0.1], radius = 0.07, strength = 4.0 }
    time = { duration = 0.8, steps = 6 }
    mesh = { size = [1.0, 0.75], elements = [16, 12] }
    boundary = [{ on = "x-", fixed = ["free", 0, 0] }, { on = "y+", load = [0.3, 0, 0.2] }]
"#;

fn weld(text: &str, words: &[&str], then: impl Fn(&[&str])) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weld.toml");
    std::fs::write(&file, text).unwrap();
    then(&[&[file.to_str().unwrap()], words].concat());
}

/// Where elements become larger and smaller as the spot moves on nothing is lost, and what is put in is what was said.
#[test]
fn what_is_put_in_is_there() {
    weld(WELD, &["--levels", "2", "--accuracy", "3e-3", "--verify", "--tolerance", "1e-11"], |words| {
        let problem = problem(words);
        let (course, levels, _) = march(&problem);
        let swelling = problem.swelling.as_ref().unwrap();
        let lost = lost(swelling, &course).unwrap();
        assert!(lost < 1e-10 && lost <= allowed(&problem, &course), "{lost}");
        assert!(levels[0] != levels[5]);
        // 3 times 0.5 in an area of 0.75, 4 and 0.3 along a side of 1 for a time of 0.8; the spot stays inside but for
        // less than the accuracy.
        let expected = 1.5 * 0.75 + (4.0 + 0.3) * 0.8;
        let content = course.last().unwrap().content;
        assert!((content / expected - 1.0).abs() < 1e-4, "{content} {expected}");
        assert!(course.iter().all(|verdict| verdict.diffusion.solves(1e-11) && verdict.body.solves(1e-11)));
    });
    // With fewer elements than the accuracy wants there are as many as may be.
    weld(WELD, &["--levels", "3", "--accuracy", "1e-6", "--most-elements", "3000"], |words| {
        let (course, ..) = march(&problem(words));
        let last = course.last().unwrap();
        assert!(course.iter().all(|verdict| verdict.elements <= 3000) && last.elements > 1000);
        assert!((last.error / last.square).sqrt() > 1e-6);
    });
}

/// A body that may grow does so evenly: in plane strain by 1 + nu times what it would grow in space.
#[test]
fn a_free_body_grows_evenly() {
    let text = r#"
        physics = "swelling"
        poisson_ratio = 0.25
        expansion = 0.01
        initial = 2.0
        mesh = { size = [2, 1], elements = [8, 8] }
        boundary = [{ on = "x-", fixed = ["free", 0, "free"] }, { on = "y-", fixed = ["free", "free", 0] }]
    "#;
    weld(text, &["--steps", "1", "--tolerance", "1e-12"], |words| {
        let problem = problem(words);
        let (_, levels, blocks) = march(&problem);
        assert!(levels[0].iter().all(|level| *level == 0));
        for block in &blocks {
            let place = problem.swelling.as_ref().unwrap().forest.place(block.number);
            for (number, moved) in block.displacements.chunks_exact(2).enumerate() {
                let at = [number % 5 + 4 * place[0], number / 5 + 4 * place[1]];
                let expected = [at[0] as f64 / 4.0, at[1] as f64 / 8.0].map(|x| 0.01 * 2.0 * 1.25 * x);
                assert!(moved.iter().zip(expected).all(|(u, e)| (u - e).abs() < 1e-9), "{at:?} {moved:?}");
            }
        }
    });
}

#[test]
fn every_mix_gives_the_bits_of_one_thread_also_where_meshes_change() {
    weld(WELD, &["--levels", "2", "--steps", "3", "--elements", "8", "--accuracy", "5e-3"], |words| {
        let problem = problem(words);
        let (_, levels, blocks) = march(&problem);
        assert!(levels[0] != levels[2]);
        let swelling = problem.swelling.as_ref().unwrap();
        let mut expected = BTreeMap::new();
        for block in &blocks {
            let (along, place) = (swelling.forest.along(block.level), swelling.forest.place(block.number));
            for (number, moved) in block.displacements.chunks_exact(2).enumerate() {
                let node =
                    swelling.forest.node(place, block.level, [number % (along + 1), number / (along + 1)]);
                let [x, y, _] = swelling.forest.fine().point(node);
                let id = swelling.forest.fine().id(node);
                expected.insert(id, [x, y, block.values[number], moved[0], moved[1]]);
            }
        }
        let expected: Vec<f64> = expected.into_values().flatten().collect();
        let mixes = [
            InProcess::new(&[1]),
            InProcess::new(&[2, 1]).always_pup(),
            InProcess::new(&[1, 1, 2]).speeds(&[1.0, 0.3, 0.55, 0.01]).wander(3),
        ];
        for mix in mixes {
            assert_eq!(run(&mix, words).unwrap().values(), expected);
        }
    });
}

#[test]
fn files_are_written_in_the_course_of_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.vtu");
    let vtu = ["--vtu", path.to_str().unwrap(), "--vtu-every", "2"];
    weld(WELD, &[&["--levels", "1", "--steps", "5", "--elements", "8"][..], &vtu].concat(), |words| {
        run(&InProcess::new(&[1, 1]), words).unwrap();
    });
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a-00002.vtu", "a-00004.vtu", "a.vtu"]);
    let text = std::fs::read(&path).unwrap();
    let text = String::from_utf8_lossy(&text);
    assert!(
        ["Name=\"u\"", "\"displacement\"", "\"von_mises\"", "\"level\""]
            .iter()
            .all(|name| text.contains(name))
    );
}

#[test]
fn levels_follow_errors_and_stay_within_bounds() {
    let problem = problem(&["--physics", "swelling", "--elements", "32", "--levels", "4"]);
    let forest = problem.swelling.unwrap().forest;
    let blocks = forest.blocks() as usize;
    let (mut levels, floors) = (vec![0; blocks], vec![0; blocks]);
    let mut errors = vec![1e-12; blocks];
    errors[17] = 1.0;
    for _ in 0..6 {
        let judged =
            Judged { levels: &levels, errors: &errors, floors: &floors, allowed: 1e-9, most: 30_000 };
        let next = chosen(&forest, judged);
        // The error becomes less as it would.
        errors[17] *= 16f64.powi(i32::from(levels[17]) - i32::from(next[17]));
        levels = next;
        assert!(forest.elements(&levels) <= 30_000);
    }
    assert_eq!(levels[17], 4);
    for block in 0..forest.blocks() {
        let around = forest.around(block);
        assert!(
            around.iter().all(|(other, _)| levels[*other as usize].abs_diff(levels[block as usize]) <= 1)
        );
    }
    errors[17] = 1e-12;
    for _ in 0..4 {
        levels = chosen(
            &forest,
            Judged { levels: &levels, errors: &errors, floors: &floors, allowed: 1e-9, most: 30_000 },
        );
    }
    assert!(levels.iter().all(|level| *level == 0));
}

#[test]
fn what_makes_no_sense_of_a_body_that_swells_is_refused() {
    let told = |words: &[&str]| sentence(&[&["--physics", "swelling"], words].concat());
    assert_eq!(
        told(&["--elements", "10"]),
        "elements = 10: give a multiple of 4, the side of a block (--block)"
    );
    assert_eq!(told(&["--block", "1"]), "--block 1: give 2 to 1024");
    assert_eq!(told(&["--levels", "7"]), "--levels 7: give 0 to 6");
    assert_eq!(told(&["--steps", "0"]), "steps = 0: give 1 to 100000");
    assert_eq!(told(&["--duration", "0"]), "duration = 0: give a positive number");
    assert_eq!(told(&["--accuracy", "1"]), "--accuracy 1: give a number between 0 and 1");
    assert!(
        told(&["--most-elements", "1000"])
            .starts_with("--most-elements 1000: give 1024, those of the coarsest")
    );
    assert_eq!(
        told(&["--order", "2"]),
        "an order other than 1 cannot be had with physics = \"swelling\": leave it out"
    );
    assert_eq!(told(&["--dim", "3"]), "with --physics swelling there is no --dim: leave it out");
    assert_eq!(
        told(&["--subdomains", "3"]),
        "with --physics swelling there is no --subdomains: give --block"
    );
    assert!(told(&["--preconditioner", "multigrid"]).starts_with("--preconditioner multigrid needs a box"));
    assert_eq!(sentence(&["--levels", "2"]), "--levels is of use with --physics swelling only");
    let spot = "spot = { at = [0.5, 0.5], radius = 0.001, strength = 1 }\nboundary = [{ on = \"x-\", fixed = [0, 0, 0] }]\n";
    let with = |text: &str, expected: &str| {
        weld(text, &[], |words| assert!(sentence(words).contains(expected), "{}", sentence(words)));
    };
    with(
        &format!("physics = \"swelling\"\nmesh = {{ elements = [128] }}\n{spot}"),
        "near the spot elements are as long as",
    );
    with("physics = \"swelling\"\ninitial = 1\n", "the body is not held anywhere");
    with("physics = \"elasticity\"\ncapacity = 1\n", "capacity is of use with physics = \"swelling\" only");
}

/// Blocks with few elements take time, too: where these are hardly says how many blocks a PE can have.
#[test]
fn blocks_are_dealt_out_by_elements_and_exchanges_and_memory_by_elements() {
    let problem = problem(&["--physics", "swelling"]);
    let swelling = problem.swelling.as_ref().unwrap();
    let (elements, costs) = (swelling.elements(), swelling.costs());
    let beside = |block: usize| swelling.forest.around(block as u32).len() as u64;
    assert!((0..costs.len()).all(|block| (3..=8).contains(&beside(block))));
    let of_exchange: Vec<u64> =
        (0..costs.len()).map(|block| (costs[block] - elements[block]) / beside(block)).collect();
    assert!(of_exchange.iter().all(|cost| *cost == of_exchange[0] && *cost > 0), "{of_exchange:?}");
    let link = Link { latency_s: 2e-5, bytes_per_s: 2e9 };
    let machines = Machines::on_one_host(&[&[1.0], &[1.0]], link);
    let Division { owners, shares, memory, .. } = problem.divide(&machines).unwrap();
    let of = |pe: u32, sizes: &[u64]| -> u64 {
        let own = owners.iter().zip(sizes).filter(|(owner, _)| **owner == pe);
        own.map(|(_, size)| size).sum()
    };
    let all: u64 = costs.iter().sum();
    for pe in 0..2 {
        assert!((shares[pe as usize] - of(pe, &costs) as f64 / all as f64).abs() < 1e-12, "{shares:?}");
        assert!((0.45..0.55).contains(&shares[pe as usize]), "{shares:?}");
    }
    let held = [0, 1].map(|pe| of(pe, &elements) as f64);
    let stated = memory[0] as f64 / memory[1] as f64;
    assert!(held[0] > 1.5 * held[1], "{held:?}");
    assert!((stated / (held[0] / held[1]) - 1.0).abs() < 0.2, "{memory:?} for {held:?}");
}
