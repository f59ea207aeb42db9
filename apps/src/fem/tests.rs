//! Orders of convergence, iterations of multigrid, and the same bits everywhere: in one thread, and on nodes inside one process.

mod swelling;

use super::alone::{iterate, prepared};
use super::arguments::Fem;
use super::check::Measured;
use super::course::{Course, Why};
use super::exact::Exact;
use super::machine::Machine;
use super::mesh::Mesh;
use super::problem::{Boundary, Condition, Domain, Problem, Source};
use super::rehearsal::{first_step_of_chares, rehearse, rehearse_on};
use super::shape::Shape;
use super::subdomain::coarsest;
use super::{add_to, drive};
use crate::matrix::{Matrix, npy};
use chares::{InProcess, Program, Reduce as _, RunError};
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
    let mut machines = prepared(problem, || read.as_mut().and_then(Iterator::next)).unwrap();
    assert!(iterate(problem, &mut machines, coarsest(problem).as_ref()));
    ended(problem, &machines)
}

fn ended(problem: &Problem, machines: &[Machine]) -> Solved {
    let mut measured = Measured::default();
    let mut solution = vec![f64::NAN; problem.unknowns()];
    let each = problem.each();
    for (part, machine) in (0..).zip(machines) {
        measured.combine(machine.measured(problem, part));
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
        let errors =
            elements.map(|elements| error(&[words, &["--elements", elements, "--subdomains", "3"]].concat()));
        let order = (errors[0] / errors[1]).log2();
        let expected = if words[1] == "1" { 2.0 } else { 3.0 };
        assert!((expected - 0.25..expected + 0.5).contains(&order), "{words:?}: {order} by {errors:?}");
    }
}

#[test]
fn the_coarsest_mesh_takes_the_memory_that_is_stated() {
    for words in [
        "--elements 7,4",
        "--elements 5,3 --order 2 --physics elasticity",
        "--elements 4,3,2 --dim 3 --physics elasticity",
    ] {
        let problem = problem(&words.split(' ').collect::<Vec<_>>());
        let factor = coarsest(&problem).unwrap();
        assert_eq!(factor.bytes() as f64, problem.bytes_of_coarsest(), "{words}");
    }
    let large = problem(&["--elements", "100", "--dim", "3", "--coarsest", "1048576"]);
    assert!(large.bytes_of_coarsest() > 8e10);
    let quick = rehearse(&large).unwrap();
    assert!(quick.coarsest[0] > 1e12, "{quick:?}");
}

/// What cannot be computed with is refused, or the iteration breaks down; no sum that is none is taken for a solution.
#[test]
fn numbers_beyond_reckoning_are_no_solution() {
    let broken = Measured {
        residual: f64::INFINITY,
        begun: f64::INFINITY,
        rounded: f64::INFINITY,
        ..Measured::default()
    };
    assert!(!broken.solves(1e-8));
    let broken = Measured {
        error: f64::INFINITY,
        exact: f64::INFINITY,
        interpolated: f64::NAN,
        ..Measured::default()
    };
    assert!(!broken.is_near(1e-8));
    for preconditioner in ["multigrid", "ilu", "none"] {
        let mut problem =
            problem(&["--elements", "12", "--preconditioner", preconditioner, "--subdomains", "2"]);
        problem.source = Source::Even([1e200, 0.0, 0.0]);
        assert_eq!(solve(&problem, None).course.why, Some(Why::Broken), "{preconditioner}");
    }
}

/// By boxes with 10 to 30 times fewer nodes.
#[test]
fn a_small_problem_says_about_how_many_iterations_a_large_one_takes() {
    let cases: [(&[&str], usize); 8] = [
        (&["--elements", "200"], 2000),
        (&["--elements", "150,90", "--order", "2", "--physics", "elasticity"], 4000),
        (&["--elements", "36", "--dim", "3"], 4000),
        (&["--elements", "20", "--dim", "3", "--physics", "elasticity"], 1000),
        (&["--elements", "200", "--preconditioner", "jacobi"], 2000),
        (&["--elements", "200", "--preconditioner", "ilu"], 4000),
        (&["--elements", "400,40", "--method", "gmres", "--preconditioner", "ilu"], 2000),
        (&["--elements", "30", "--dim", "3", "--preconditioner", "none"], 2000),
    ];
    for (words, nodes) in cases {
        let problem = problem(words);
        let small = rehearse_on(&problem, nodes, 1e9).unwrap();
        let real = f64::from(solve(&problem, None).course.iterations);
        // Minimal residuals begin anew now and then, the more often the larger the mesh.
        let least = if words.contains(&"gmres") { 0.5 } else { 0.7 };
        assert!((least..1.4).contains(&(small.iterations / real)), "{words:?}: {small:?} for {real}");
        assert_eq!(small.steps, 1.0);
        let is_cycle = words.iter().all(|word| *word != "--preconditioner");
        assert_eq!(small.coarsest.map(|work| work > 0.0), [is_cycle; 2], "{words:?}: {small:?}");
    }
    let swelling = problem(&["--physics", "swelling", "--steps", "7"]);
    assert!(first_step_of_chares(&swelling).is_some_and(|seconds| seconds > 0.0));
    let swelling = rehearse(&swelling).unwrap();
    assert!(swelling.steps == 7.0 && swelling.iterations > 20.0, "{swelling:?}");
    // As large as it is, it is itself: one mesh that is solved at once.
    let small = rehearse(&problem(&["--elements", "30"])).unwrap();
    assert!(small.iterations <= 2.0, "{small:?}");
    let thin = rehearse(&problem(&["--elements", "1000000,1"])).unwrap();
    assert!(thin.elements > 0.0, "{thin:?}");
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

/// A problem that has the linear functions as its solution: fixed on some sides, loaded on the others.
fn patch(words: &[&str], loaded: &[u32]) -> Problem {
    let mut problem = problem(&[words, &["--tolerance", "1e-13"]].concat());
    problem.exact = Some(Exact::Linear);
    for boundary in problem.boundaries.iter_mut().filter(|boundary| loaded.contains(&boundary.group)) {
        boundary.condition = Condition::LoadExact;
    }
    problem
}

/// The patch test: displacements that are linear are found exactly, by whatever elements and preconditioner.
#[test]
fn linear_displacements_are_found_exactly() {
    let cases: [&[&str]; 7] = [
        &["--elements", "9,7", "--preconditioner", "jacobi"],
        &["--elements", "9,7", "--physics", "elasticity", "--preconditioner", "ilu", "--size", "2,0.5"],
        &["--elements", "5", "--order", "2", "--physics", "elasticity", "--preconditioner", "ilu"],
        &["--elements", "4", "--dim", "3", "--physics", "elasticity", "--coarsest", "90"],
        &["--elements", "3", "--dim", "3", "--order", "2", "--preconditioner", "none"],
        &["--elements", "12,5", "--physics", "elasticity", "--coarsest", "40"],
        &[
            "--elements",
            "2",
            "--dim",
            "3",
            "--order",
            "2",
            "--physics",
            "elasticity",
            "--preconditioner",
            "ilu",
        ],
    ];
    for words in cases {
        for loaded in [&[][..], &[1, 2], &[0, 3]] {
            let problem = patch(&[words, &["--subdomains", "5"]].concat(), loaded);
            let Solved { course, measured, .. } = solve(&problem, None);
            assert_eq!(course.why, Some(Why::Converged), "{words:?}: {course:?}");
            assert!(
                measured.relative_error() < 1e-10,
                "{words:?}, {loaded:?}: {}",
                measured.relative_error()
            );
        }
    }
}

/// A mesh of triangles or tetrahedra from the boxes of a lattice, its inner nodes moved a little.
fn simplices(order: usize, dim: usize, side: usize) -> Mesh {
    let count = side * order + 1;
    let number = |at: [usize; 3]| ((at[2] * count + at[1]) * count + at[0]) as u32;
    // Paths from the low corner of a cell to the high one, along the axes in each order.
    let paths: &[&[usize]] = match dim {
        2 => &[&[0, 1], &[1, 0]],
        _ => &[&[0, 1, 2], &[0, 2, 1], &[1, 0, 2], &[1, 2, 0], &[2, 0, 1], &[2, 1, 0]],
    };
    let of_dims = |n: usize| std::array::from_fn(|k| if k < dim { 0..n } else { 0..1 });
    let mut elements = Vec::new();
    for cell in super::lattice::each(&of_dims(side)) {
        for path in paths {
            let mut at = cell.map(|i| i * order);
            let mut corners = vec![at];
            for &axis in *path {
                at[axis] += order;
                corners.push(at);
            }
            elements.extend(corners.iter().map(|&corner| number(corner)));
            let edges = [[0, 1], [1, 2], [2, 0], [3, 0], [2, 3], [1, 3]];
            let middle =
                |[a, b]: [usize; 2]| number(std::array::from_fn(|k| (corners[a][k] + corners[b][k]) / 2));
            if order == 2 {
                elements.extend(edges[..[3, 6][dim - 2]].iter().map(|&edge| middle(edge)));
            }
        }
    }
    let point = |at: [usize; 3]| {
        // All of it is sheared, so that no element is a half of a square.
        let [x, y, z] = at.map(|i| i as f64 / (count - 1) as f64);
        [x + 0.3 * y, y + 0.2 * z, z]
    };
    let points = super::lattice::each(&of_dims(count)).map(point).collect();
    let shape = Shape::simplex(order, dim);
    let mut mesh = Mesh {
        shape,
        points,
        elements,
        faces: Vec::new(),
        face_groups: Vec::new(),
        groups: vec!["all".into()],
    };
    // All faces that one element alone has.
    let corners: Vec<Vec<usize>> = match (dim, order) {
        (2, 1) => vec![vec![0, 1], vec![1, 2], vec![2, 0]],
        (2, _) => vec![vec![0, 1, 3], vec![1, 2, 4], vec![2, 0, 5]],
        (_, 1) => vec![vec![0, 1, 2], vec![0, 1, 3], vec![1, 2, 3], vec![2, 0, 3]],
        _ => vec![
            vec![0, 1, 2, 4, 5, 6],
            vec![0, 1, 3, 4, 9, 7],
            vec![1, 2, 3, 5, 8, 9],
            vec![2, 0, 3, 6, 7, 8],
        ],
    };
    let mut seen: std::collections::BTreeMap<Vec<u32>, Vec<Vec<u32>>> = Default::default();
    for element in mesh.elements.chunks_exact(shape.nodes()) {
        for face in &corners {
            let nodes: Vec<u32> = face.iter().map(|&at| element[at]).collect();
            let mut sorted = nodes.clone();
            sorted.sort_unstable();
            seen.entry(sorted).or_default().push(nodes);
        }
    }
    for nodes in seen.into_values().filter(|of| of.len() == 1) {
        mesh.faces.extend(&nodes[0]);
        mesh.face_groups.push(0);
    }
    mesh.turn().unwrap();
    mesh
}

fn of_mesh(mesh: &Mesh, exact: Exact, words: &[&str], parts: u32) -> Problem {
    let words = [&["--preconditioner", "ilu", "--tolerance", "1e-12"], words].concat();
    let shape = mesh.shape;
    let (nodes, elements) = (mesh.points.len(), mesh.elements.len() / shape.nodes());
    let boundaries = vec![Boundary { group: 0, condition: Condition::FixedExact }];
    Problem {
        domain: Domain::Read { shape, nodes, elements },
        boundaries,
        exact: Some(exact),
        parts,
        ..problem(&words)
    }
}

#[test]
fn a_box_of_any_size_is_near_the_known_solution() {
    for size in ["0.01", "1", "100", "1000"] {
        let problem = problem(&["--elements", "16", "--size", size]);
        let Solved { measured, .. } = solve(&problem, None);
        assert!(measured.is_near(1e-8), "{size}: {measured:?}");
    }
}

#[test]
fn triangles_and_tetrahedra_converge_as_they_should_and_pass_the_patch_test() {
    for (order, dim, sides) in [(1, 2, [8, 16]), (2, 2, [4, 8]), (1, 3, [4, 8]), (2, 3, [2, 4])] {
        for words in [&[][..], &["--physics", "elasticity"]] {
            let mesh = simplices(order, dim, sides[0]);
            let physics: &[&str] = if dim == 3 { &["--dim", "3"] } else { &[] };
            let words = [words, physics].concat();
            let linear = solve(&of_mesh(&mesh, Exact::Linear, &words, 4), Some(&mesh));
            assert!(linear.measured.relative_error() < 1e-10, "{order} {dim}: {:?}", linear.measured);
            let errors = sides.map(|side| {
                let mesh = simplices(order, dim, side);
                let problem = of_mesh(&mesh, Exact::Sines { length: 1.0 }, &words, 3);
                let Solved { course, measured, .. } = solve(&problem, Some(&mesh));
                assert!(
                    course.why == Some(Why::Converged) && measured.solves(1e-12),
                    "{course:?}, {measured:?}"
                );
                measured.error.sqrt()
            });
            let (fall, expected) = ((errors[0] / errors[1]).log2(), order as f64 + 1.0);
            assert!(
                (expected - 0.35..expected + 0.5).contains(&fall),
                "{order} {dim} {words:?}: {fall}, {errors:?}"
            );
        }
    }
}

/// A wind makes the matrix one that is not symmetric: minimal residuals, also where their basis is begun anew.
#[test]
fn wind_is_no_hindrance() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wind.toml");
    std::fs::write(&file, "wind = [12.0, -7.0]\n").unwrap();
    let file = file.to_str().unwrap();
    for (preconditioner, most) in [("ilu", 40), ("jacobi", 200), ("none", 400)] {
        let words = [file, "--preconditioner", preconditioner, "--subdomains", "3"];
        let errors = ["10", "20"].map(|elements| error(&[&words[..], &["--elements", elements]].concat()));
        let fall = (errors[0] / errors[1]).log2();
        assert!((1.75..2.5).contains(&fall), "{preconditioner}: {errors:?}");
        let solved = solve(&problem(&[&words[..], &["--elements", "20"]].concat()), None);
        assert!(solved.course.iterations <= most, "{preconditioner}: {:?}", solved.course);
    }
    // Where both can be taken both come to the same.
    let of = |method| {
        let words =
            ["--elements", "12", "--physics", "elasticity", "--tolerance", "1e-12", "--method", method];
        solve(&problem(&[&words[..], &["--coarsest", "60"]].concat()), None).solution
    };
    let apart = of("cg").iter().zip(of("gmres")).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart < 1e-10, "{apart}");
    let refused = |words: &[&str]| sentence(&[&[file], words].concat());
    assert!(refused(&["--method", "cg"]).starts_with("--method cg needs a matrix that is symmetric"));
    assert!(
        refused(&["--preconditioner", "multigrid"]).starts_with("--preconditioner multigrid needs a matrix")
    );
}

/// However the mesh is cut the equations are the same, to the last bit; so is what simple iterations make of them, nearly.
#[test]
fn a_cut_does_not_change_the_solution() {
    let solved = |parts: &str| {
        let words = ["--elements", "11,6", "--order", "2", "--subdomains", parts, "--tolerance", "1e-12"];
        solve(&problem(&words), None).solution
    };
    let whole = solved("1");
    for parts in ["2", "7"] {
        let apart = solved(parts).iter().zip(&whole).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-11, "{parts}: {apart}");
    }
}

/// A rod that is pulled, held where it must be: the solution in closed form.
#[test]
fn a_rod_that_is_pulled_gets_longer_and_thinner() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rod.toml");
    let text = r#"
        physics = "elasticity"
        young = 200.0
        poisson_ratio = 0.25
        mesh = { size = [4, 1, 1], elements = [6, 2, 3] }
        boundary = [
            { on = "x-", fixed = [0, "free", "free"] },
            { on = "y-", fixed = ["free", 0, "free"] },
            { on = "z-", fixed = ["free", "free", 0] },
            { on = "x+", load = [5, 0, 0] },
        ]
    "#;
    std::fs::write(&file, text).unwrap();
    let words = [file.to_str().unwrap(), "--coarsest", "30", "--subdomains", "4", "--tolerance", "1e-13"];
    let problem = problem(&words);
    let (lattice, _) = problem.lattice().unwrap();
    let Solved { solution, course, .. } = solve(&problem, None);
    assert_eq!(course.why, Some(Why::Converged));
    for (id, node) in solution.chunks_exact(3).enumerate() {
        let [x, y, z] = lattice.point(lattice.place(id as u64));
        // Strain 5 / 200 along, a quarter of it across.
        let expected = [0.025 * x, -0.00625 * y, -0.00625 * z];
        assert!(node.iter().zip(expected).all(|(u, e)| (u - e).abs() < 1e-12), "{node:?} {expected:?}");
    }
}

/// The solution that a run on nodes inside one process writes.
fn run(mix: &InProcess, words: &[&str]) -> Result<Matrix<f64>, RunError> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("u.npy");
    let fem = of(&[words, &["--verify", "--out", out.to_str().unwrap()]].concat()).completed()?;
    let program = add_to(CommandLine::new(Program::new("test", "1"))).into_program();
    program.run_in_process(mix, |main| drive::drive(main, fem))?;
    Ok(npy::read(&out).unwrap())
}

#[test]
fn every_mix_gives_the_bits_of_one_thread() {
    let works: [&[&str]; 6] = [
        &["--elements", "9", "--subdomains", "5", "--method", "gmres", "--preconditioner", "jacobi"],
        &["--elements", "20,13", "--subdomains", "6", "--coarsest", "50"],
        &["--elements", "6", "--order", "2", "--subdomains", "7", "--preconditioner", "ilu"],
        &["--elements", "12", "--physics", "elasticity", "--subdomains", "5", "--preconditioner", "jacobi"],
        &[
            "--elements",
            "4",
            "--dim",
            "3",
            "--physics",
            "elasticity",
            "--subdomains",
            "4",
            "--coarsest",
            "81",
        ],
        &["--elements", "3", "--subdomains", "1"],
    ];
    for words in works {
        let expected = solve(&problem(words), None).solution;
        let mixes = [
            InProcess::new(&[1]),
            InProcess::new(&[2, 1]).always_pup(),
            InProcess::new(&[1, 1, 2]).speeds(&[1.0, 0.3, 0.55, 0.01]).wander(3),
        ];
        for mix in mixes {
            assert_eq!(run(&mix, words).unwrap().values(), expected, "{words:?}");
        }
    }
}

fn sentence(words: &[&str]) -> String {
    of(words).completed().unwrap_err().to_string()
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    assert_eq!(sentence(&["--order", "3"]), "order = 3: give 1 or 2");
    assert_eq!(sentence(&["--elements", "0"]), "elements = 0: give 1 to 1048576");
    assert_eq!(sentence(&["--elements", "4,4,4,4"]), "a box has 2 or 3 dimensions");
    assert_eq!(sentence(&["--elements", "4,4", "--size", "1,2,3"]), "elements: give one number, or 3");
    assert_eq!(
        sentence(&["--dim", "3", "--elements", "4,4"]),
        "a box of 3 dimensions (--dim) has 3 sides, and 2 are given"
    );
    assert_eq!(sentence(&["--size=-1"]), "size = -1: give a positive number");
    assert_eq!(sentence(&["--tolerance", "1"]), "--tolerance 1: give a number between 0 and 1");
    assert_eq!(
        sentence(&["--elements", "4", "--subdomains", "9"]),
        "--subdomains 9: give 1 to 3 for 25 nodes"
    );
    assert!(sentence(&["/nowhere/in.toml"]).starts_with("cannot read /nowhere/in.toml: "));
    assert!(sentence(&["--mesh", "/nowhere/a.msh"]).starts_with("cannot read /nowhere/a.msh: "));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in.toml");
    let told = |text: &str| {
        std::fs::write(&file, text).unwrap();
        sentence(&[file.to_str().unwrap()])
    };
    assert!(told("phisics = 1").ends_with(
        "in.toml:1: unknown field `phisics`, expected one of `physics`, `young`, \
        `poisson_ratio`, `conductivity`, `capacity`, `expansion`, `initial`, `spot`, `time`, `wind`, `source`, `mesh`, `boundary`"
    ));
    assert!(told("source = [1]\n").starts_with("nothing is fixed anywhere"));
    let on = |rest: &str| told(&format!("[[boundary]]\non = \"x-\"\n{rest}"));
    assert_eq!(on("fixed = [1, 2]"), "fixed of \"x-\": give 1 values, or \"free\"");
    assert_eq!(on("fixed = [\"loose\"]"), "fixed of \"x-\": give numbers up to 1e75, or \"free\"");
    assert_eq!(on(""), "[[boundary]] on \"x-\" says nothing: give `fixed` or `load`");
    assert_eq!(
        told("[[boundary]]\non = \"top\"\nfixed = [0]"),
        "on = \"top\": there is no such group; there are x-, x+, y-, y+"
    );
    assert_eq!(
        told("young = 1"),
        "young and poisson_ratio are of no use in Poisson's equation: take physics = \"elasticity\""
    );
    assert_eq!(
        told("physics = \"elasticity\"\npoisson_ratio = 0.5"),
        "poisson_ratio = 0.5: give a number above -1 and below 0.5"
    );
}

/// A body that is held at too few places may turn: that is said, and nothing is computed with it.
#[test]
fn a_body_that_is_not_held_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("loose.toml");
    let text = "physics = \"elasticity\"\n[mesh]\nelements = [4, 4]\n[[boundary]]\non = \"x-\"\nfixed = [0, \"free\"]\n\
                [[boundary]]\non = \"x+\"\nload = [0, 1]\n";
    std::fs::write(&file, text).unwrap();
    let refused = run(&InProcess::new(&[2]), &[file.to_str().unwrap()]).unwrap_err().to_string();
    assert!(refused.starts_with("the problem has no single solution"), "{refused}");
    let capped =
        run(&InProcess::new(&[2]), &["--preconditioner", "none", "--max-iterations", "3"]).unwrap_err();
    assert!(capped.to_string().starts_with("no convergence in 3 iterations"), "{capped}");
}
