//! Orders of convergence, iterations of multigrid, and the same bits everywhere: in one thread, and on nodes inside one process.

use super::arguments::Fem;
use super::check::{Measured, measure};
use super::exact::Exact;
use super::input::Kind;
use super::machine::{Course, Machine, Need, Why};
use super::mesh::Mesh;
use super::problem::{Boundary, Condition, Domain, Physics, Problem};
use super::shape::Shape;
use super::subdomain::{coarsest, joined};
use super::{add_to, drive};
use crate::matrix::{Matrix, npy};
use chares::{Bulk, InProcess, Program, Reduce as _, RunError};
use clap::{Args as _, Command, FromArgMatches as _};
use command::CommandLine;

pub(super) fn of(words: &[&str]) -> Fem {
    let command = Fem::augment_args(Command::new("fem"));
    Fem::from_arg_matches(&command.get_matches_from([&["fem"], words].concat())).unwrap()
}

fn problem(words: &[&str]) -> Problem {
    of(words).problem().unwrap()
}

/// All subdomains in one thread: how it ended, what is measured, and the solution node by node.
struct Solved {
    course: Course,
    measured: Measured,
    solution: Vec<f64>,
}

fn solve(problem: &Problem, mesh: Option<&Mesh>) -> Solved {
    let mut read = mesh.map(|mesh| mesh.submeshes(problem.parts).into_iter());
    let mut machines: Vec<Machine> =
        (0..problem.parts).map(|part| Machine::new(problem, part, read.as_mut().and_then(Iterator::next))).collect();
    for by in 0..machines.len() {
        for level in 0..machines[by].levels.len() {
            let wants: Vec<_> = machines[by].levels[level].wants().collect();
            for (from, ids) in wants {
                assert!(machines[from as usize].levels[level].want(by as u32, &ids));
            }
        }
    }
    let factor = coarsest(problem);
    let mut told: Vec<Vec<(u32, Bulk<f64>)>> = vec![Vec::new(); machines.len()];
    loop {
        let needs: Vec<Need> = machines.iter_mut().map(Machine::step).collect();
        let (mut sums, mut coarse) = (None, Vec::new());
        for (by, need) in needs.into_iter().enumerate() {
            match need {
                Need::Nothing => {}
                Need::Tell(parts) => parts.into_iter().for_each(|(to, numbers)| told[to as usize].push((by as u32, numbers))),
                Need::Halo(count) => {
                    let numbers = std::mem::take(&mut told[by]);
                    assert_eq!(numbers.len(), count);
                    assert!(numbers.iter().all(|(from, numbers)| machines[by].take(*from, numbers)));
                    machines[by].have_taken();
                }
                Need::Sums(part) => {
                    let all = sums.get_or_insert([0.0; 3]);
                    (0..3).for_each(|k| all[k] += part[k]);
                }
                Need::Coarse(part) => coarse.push(part),
                Need::Over => return ended(problem, &machines),
            }
        }
        if let Some(sums) = sums {
            machines.iter_mut().for_each(|machine| machine.take_sums(sums));
        }
        if !coarse.is_empty() {
            let (_, cut) = problem.lattice().unwrap();
            let mut solution = joined(problem, &cut, &coarse);
            factor.as_ref().unwrap().solve(solution.as_mut_slice());
            machines.iter_mut().for_each(|machine| machine.take_coarse(&solution));
        }
    }
}

fn ended(problem: &Problem, machines: &[Machine]) -> Solved {
    let mut measured = Measured::default();
    let mut solution = vec![f64::NAN; problem.unknowns()];
    let each = problem.each();
    for machine in machines {
        measured.combine(measure(machine.mesh.as_ref().unwrap(), problem, machine.solution()));
        for (&id, values) in machine.levels[0].ids.iter().zip(machine.solution().chunks_exact(each)) {
            solution[id as usize * each..][..each].copy_from_slice(values);
        }
    }
    Solved { course: machines[0].course, measured, solution }
}

fn error(words: &[&str]) -> f64 {
    let problem = problem(&[words, &["--tolerance", "1e-11"]].concat());
    let Solved { course, measured, .. } = solve(&problem, None);
    assert_eq!(course.why, Some(Why::Converged), "{words:?}: {course:?}");
    assert!(measured.solves(1e-11) && measured.is_near(1e-11), "{words:?}: {measured:?}");
    measured.error.sqrt()
}

/// The error goes with the mesh width squared for Q1, cubed for Q2.
#[test]
fn errors_fall_as_fast_as_the_elements_allow() {
    let cases: [(&[&str], [&str; 2]); 8] = [
        (&["--order", "1"], ["8", "16"]),
        (&["--order", "2"], ["4", "8"]),
        (&["--order", "1", "--physics", "elasticity"], ["8", "16"]),
        (&["--order", "2", "--physics", "elasticity"], ["4", "8"]),
        (&["--order", "1", "--dim", "3"], ["3", "6"]),
        (&["--order", "2", "--dim", "3"], ["2", "4"]),
        (&["--order", "1", "--dim", "3", "--physics", "elasticity"], ["3", "6"]),
        (&["--order", "2", "--dim", "3", "--physics", "elasticity"], ["2", "4"]),
    ];
    for (words, elements) in cases {
        let errors = elements.map(|elements| error(&[words, &["--elements", elements, "--subdomains", "3"]].concat()));
        let order = (errors[0] / errors[1]).log2();
        let expected = if words[1] == "1" { 2.0 } else { 3.0 };
        assert!((expected - 0.25..expected + 0.5).contains(&order), "{words:?}: {order} by {errors:?}");
    }
}

#[test]
fn multigrid_takes_as_many_iterations_on_any_mesh() {
    let cases: [(&[&str], [&str; 3], u32); 5] = [
        (&["--order", "1"], ["16", "32", "64"], 12),
        (&["--order", "1", "--size", "3,1"], ["17,5", "45,15", "93,29"], 16),
        (&["--order", "2"], ["8", "16", "32"], 14),
        (&["--order", "1", "--dim", "3"], ["4", "8", "12"], 12),
        (&["--order", "1", "--physics", "elasticity"], ["12", "24", "48"], 20),
    ];
    for (words, elements, most) in cases {
        let iterations = elements.map(|elements| {
            let more = ["--elements", elements, "--subdomains", "4", "--coarsest", "60"];
            let solved = solve(&problem(&[words, &more].concat()), None);
            assert_eq!(solved.course.why, Some(Why::Converged));
            solved.course.iterations
        });
        assert!(iterations[2] <= most && iterations[2] <= iterations[1] + 2, "{words:?}: {iterations:?}");
    }
}
