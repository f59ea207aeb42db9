//! Inputs: what a file says, options over it, and what is refused.

use super::*;
use crate::statics::arguments::Statics;
use crate::statics::problem::Problem;
use crate::statics::tests::faults;
use proptest::prelude::*;
use std::io::Write as _;

fn file(text: &str, ending: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(ending).tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn problem(text: &str) -> Result<Problem, String> {
    let file = file(text, ".toml");
    let input = Input::read(file.path()).and_then(|input| input.problem());
    input.map_err(|error| error.to_string())
}

/// All that a file can say.
const WHOLE: &str = r#"
[crystal]
lattice = "fcc"
a = 3.6
orient = { x = [1, 1, -2], y = [1, 1, 1], z = [1, -1, 0] }
size = [6, 5, 2]

[boundary]
x = "free"
y = { shells = { buffer = 2.0, fixed = 2.5 } }
z = "periodic"

[potential]
elements = ["Cu"]

[relaxation]
method = "lbfgs"
max_force = 1e-5
skin = 0.4
block = 100
box = ["z"]

[[step]]
name = "whole"
relax = false

[[step]]
disturb = [
  { vacancy = { ids = [3, 5] } },
  { interstitial = { at = [1.0, 2.0, 3.0], element = "Cu" } },
  { screw = { line = "z", through = [10.0, 12.0], burgers = 2.5 } },
]
repeat = 2
iterations = 7

[output]
xyz = "end.xyz"
"#;

#[test]
fn a_file_says_all_that_is_relaxed() {
    let problem = problem(WHOLE).unwrap();
    assert_eq!(problem.crystal.cells(), [6, 5, 2]);
    assert_eq!(problem.crystal.sides()[0], Side::FREE);
    assert_eq!(problem.crystal.sides()[1], Side::Shells { buffer: 2.0, fixed: 2.5 });
    assert_eq!((problem.method, problem.skin), (Method::Lbfgs, 0.4));
    let names: Vec<&str> = problem.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["whole", "2 (1 of 2)", "2 (2 of 2)"]);
    assert_eq!(problem.steps[0].limits.evaluations, 1);
    assert_eq!((problem.steps[2].limits.iterations, problem.steps[2].limits.max_force), (7, 1e-5));
    assert_eq!([&problem.steps[0].groups, &problem.steps[1].groups], [&vec![], &vec![vec![2]]]);
    // Two are taken out once, one is put in by each turn.
    assert_eq!(problem.atoms(), problem.crystal.atoms());
}

#[test]
fn options_go_over_the_file() {
    let file = file(WHOLE, ".toml");
    let statics = Statics {
        input: Some(file.path().into()),
        size: vec![4],
        max_force: Some(1e-3),
        vacancy: vec![9],
        ..Statics::default()
    };
    let input = statics.merged().unwrap();
    assert_eq!(input.crystal.size, Some([4; 3]));
    assert_eq!((input.relaxation.max_force, input.relaxation.skin), (Some(1e-3), Some(0.4)));
    assert_eq!(input.step[0].disturb, [Aberration::Vacancy { ids: vec![9] }]);
    assert_eq!(input.step.len(), 2);
    assert_eq!(input.output.xyz, Some(file.path().parent().unwrap().join("end.xyz")));
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line_or_key() {
    for (text, sentence) in [
        ("[crystal]\nlatice = \"fcc\"\n", ":2: unknown field `latice`"),
        ("[crystal]\na = \"x\"\n", ":2: invalid type: string \"x\""),
        ("[crystal]\nsize = [3, 3, 3, 9]\n", ":2: invalid length 4, expected an array of length 3"),
        (
            "[[step]]\ndisturb = [{ interstitial = { at = [1, 2, 3, 4], element = \"Cu\" } }]\n",
            ":2: invalid length 4, expected an array of length 3",
        ),
        ("[boundary]\nx = \"shells\"\n", ":2: this takes values: { name = { … } }"),
        ("[[step]]\ndisturb = { shake = { by = 0.1 } }\n", ":2: a list is needed: [{ … }, { … }]"),
        ("[crystal]\na = 0.1\n", "crystal: each atom has about "),
        ("[crystal]\na = 3600.0\n", "crystal: each atom has no others within "),
        (
            "[crystal]\na = 3.6\n[[step]]\ndisturb = [{ vacancy = { ids = [4000] } }]\n",
            "step 1: vacancy: there is no atom 4000",
        ),
        ("[boundary]\nx = \"open\"\n", ":2: unknown variant `open`"),
        ("[boundary]\nx = { shells = { buffer = 1.0 } }\n", ":2: missing field `fixed`"),
        ("[[step]]\n\n[[step]]\nrelaxx = true\n", ":4: unknown field `relaxx`"),
        ("[[step]]\ndisturb = [{ vacancy = { id = [1] } }]\n", ":2: unexpected keys in table: id"),
        ("[[step]]\ndisturb = [{ dent = { id = [1] } }]\n", ":2: unknown variant `dent`"),
        ("[crystal\n", ":1: "),
        ("[crystal]\na = -1.0\n", "[crystal] and [boundary]: the cell has edges"),
        ("[crystal]\na = 3.6\nsize = [0, 1, 1]\n", "each axis takes 1 to 1000000"),
        ("[relaxation]\nmax_step = 0.0\n", "relaxation.max_step: 0"),
        ("[relaxation]\nmax_force = -1.0\n", "relaxation.max_force: -1; give 0 or more"),
        ("[crystal]\na = 3.6\nfile = \"x\"\n", "crystal.file: a file of atoms takes no lattice"),
        ("[crystal]\nfile = \"no-such-file.xyz\"\n", "no-such-file.xyz: No such file"),
        (
            "[crystal]\na = 3.6\n[relaxation]\nbox = [\"xw\"]\n",
            "relaxation.box: 'w' is no axis; give some of x, y, z",
        ),
        (
            "[crystal]\na = 3.6\n[relaxation]\nbox = [\"x\", \"yx\"]\n",
            "relaxation.box: axis x is there twice",
        ),
        (
            "[crystal]\na = 3.6\n[boundary]\ny = \"free\"\n[[step]]\nbox = [\"y\"]\n",
            "step 1: box: axis y ends; only periodic axes can be stretched",
        ),
        (
            "[crystal]\na = 3.6\n[relaxation]\nmax_pressure = -1.0\n",
            "relaxation.max_pressure: -1; give 0 or more",
        ),
        ("[potential]\nfiles = [\"a.txt\"]\n", "its name has to end with"),
        ("[crystal]\na = 3.6\n[[step]]\nrepeat = 0\n", "step 1: repeat: 0; give 1 or more"),
        (
            "[crystal]\na = 3.6\n[[step]]\ndisturb = [{ antisite = { id = 1, element = \"Al\" } }]\n",
            "element Al is none",
        ),
        (
            "[crystal]\na = 3.6\n[[step]]\ndisturb = [{ screw = { line = \"z\", through = [0.0, 0.0], burgers = 2.5 } }]\n",
            "axis x cannot be periodic",
        ),
        (
            "[crystal]\na = 3.6\n[[step]]\ndisturb = [{ surface = { axis = \"z\", from = 3.0, to = 1.0 } }]\n",
            "has no thickness",
        ),
    ] {
        let found = problem(text).map(|_| ()).unwrap_err();
        assert!(found.contains(sentence), "{text}: {found}");
        assert_eq!(found.lines().count(), 1, "{found}");
    }
}

const DATA: &str = "title\n\n3 atoms\n1 atom types\n-1.0 9.0 xlo xhi\n0 10 ylo yhi\n0 10 zlo zhi\n\nMasses\n\n1 63.5\n\n\
                    Atoms # atomic\n\n7 1 0.0 1.0 2.0\n3 1 5.0 5.0 5.0 0 0 0\n9 1 8.5 9.0 9.5\n";

const XYZ: &str = "2\nLattice=\"10 0 0 0 11.0 0 0 0 12\" Properties=id:I:1:species:S:1:pos:R:3 pbc=\"T F T\"\n1 Cu 1 2 \
                   3\n2 Cu 4.5 5 6\n";

#[test]
fn crystals_come_from_files() {
    let data = file(DATA, ".data");
    let toml = |path: &Path| {
        format!("[crystal]\nfile = {path:?}\n[[step]]\ndisturb = [{{ vacancy = {{ ids = [3] }} }}]\n")
    };
    let found = problem(&toml(data.path())).unwrap();
    assert_eq!((found.crystal.atoms(), found.atoms(), found.crystal.lengths()), (3, 2, [10.0; 3]));
    let id = found.crystal.id_of(7).unwrap();
    assert_eq!((found.crystal.atom(id).at, found.crystal.name_of(id)), ([1.0, 1.0, 2.0], 7));
    let xyz = file(XYZ, ".xyz");
    let found = problem(&format!("[crystal]\nfile = {:?}\n", xyz.path())).unwrap();
    assert_eq!(found.crystal.sides(), [Side::Periodic, Side::FREE, Side::Periodic]);
    assert_eq!(found.crystal.atom(found.crystal.id_of(2).unwrap()).at, [4.5, 5.0, 6.0]);
}

#[test]
fn files_of_atoms_are_not_trusted() {
    for (text, ending, sentence) in [
        (DATA.replace("3 atoms", "4 atoms"), ".data", ":17: the header promises 4 atoms, and 3 are there"),
        (
            DATA.replace("3 atoms", "9999999999999999 atoms"),
            ".data",
            ":3: `9999999999999999` is no whole number",
        ),
        (DATA.replace("9 1 8.5", "7 1 8.5"), ".data", ":17: there is an atom 7 already"),
        (
            DATA.replace("9 1 8.5", "9 2 8.5").replace("1 atom types", "2 atom types"),
            ".data",
            ":17: type 2 has no element: there are Cu; name all with --element",
        ),
        (DATA.replace("9.5\n", "nan\n"), ".data", ":17: `nan` is no finite number for a coordinate"),
        (DATA.replace("9.5\n", "\n"), ".data", ":17: 4 words, but an atom of style atomic has 5"),
        (DATA.replace("8.5", "85e9"), ".data", ":17: the atom is far outside its box along x"),
        (
            DATA.replace("0 10 zlo zhi", "0 10 zlo zhi\n1 0 0 xy xz yz"),
            ".data",
            ":8: a tilted box: only boxes along x, y and z are read; take a cell",
        ),
        (DATA.replace("# atomic", "# hybrid"), ".data", ":13: atom_style hybrid is not read"),
        (DATA.replace("0 10 ylo yhi", ""), ".data", "does not say xlo xhi"),
        (DATA.replace("0 10 ylo yhi", "10 0 ylo yhi"), ".data", "lengths have to be positive"),
        (String::new(), ".data", "is this a LAMMPS data file?"),
        (XYZ.replacen('2', "3", 1), ".xyz", ":4: the file ends after 2 of 3 atoms"),
        (XYZ.replacen('2', "-2", 1), ".xyz", ":1: `-2` is no whole number"),
        (XYZ.replace("Lattice", "Latice"), ".xyz", ":2: no Lattice="),
        (
            XYZ.replace("0 0 0 11.0", "0 0 11.0"),
            ".xyz",
            ":2: Lattice=\"10 0 0 11.0 0 0 0 12\" has 8 numbers and not 9",
        ),
        (
            XYZ.replace("0 0 0 11.0", "0 0 1 11.0"),
            ".xyz",
            "is a tilted box: only boxes along x, y and z are read",
        ),
        (XYZ.replace("pos:R:3", "pos:R:2"), ".xyz", "pos:R:3 are needed"),
        (XYZ.replace("2 Cu", "2 Au"), ".xyz", ":4: `Au` is none of the elements Cu"),
    ] {
        let file = file(&text, ending);
        let found = problem(&format!("[crystal]\nfile = {:?}\n", file.path())).map(|_| ()).unwrap_err();
        assert!(found.contains(sentence), "{sentence}: {found}");
    }
}

#[test]
fn lattices_have_one_name_in_files_and_on_the_command_line() {
    use clap::ValueEnum as _;
    for kind in crate::statics::crystal::lattice::Kind::value_variants() {
        let name = kind.to_possible_value().unwrap();
        let input: Input = toml::from_str(&format!("[crystal]\nlattice = \"{}\"", name.get_name())).unwrap();
        assert_eq!(input.kind(), *kind);
    }
}

/// Every node would hold the list once more, to measure its speed.
#[test]
fn listed_atoms_do_not_travel_with_the_arguments() {
    let mut text = String::from("x\n\n1000 atoms\n0 22 xlo xhi\n0 22 ylo yhi\n0 22 zlo zhi\n\nAtoms\n\n");
    for n in 0..1000 {
        text += &format!("{} 1 {} {} {}\n", n + 1, n % 10 * 2, n / 10 % 10 * 2, n / 100 * 2);
    }
    let atoms = file(&text, ".data");
    let problem = problem(&format!("[crystal]\nfile = {:?}", atoms.path())).unwrap();
    let sample = problem.without_list();
    assert!(problem.crystal.bytes() > 33_000 && sample.crystal.bytes() == 0);
    assert!((sample.crystal.atoms() as f64 / 1000.0 - 1.0).abs() < 0.1, "{}", sample.crystal.atoms());
    assert_eq!(sample.crystal.bounds(), problem.crystal.bounds());
}

/// A vacancy is where the file's number says, whatever order the atoms stand in.
#[test]
fn numbers_of_a_file_name_its_atoms() {
    let rows = "Cu 1 2 3 7\nCu 4.5 5 6 100\n";
    let keys = "Lattice=\"10 0 0 0 11 0 0 0 12\" Properties=species:S:1:pos:R:3:id:I:1";
    let atoms = file(&format!("2\n{keys}\n{rows}"), ".xyz");
    let step = "[[step]]\ndisturb = [{ vacancy = { ids = [100] } }]\n";
    let found = problem(&format!("[crystal]\nfile = {:?}\n{step}", atoms.path())).unwrap();
    let id = found.crystal.id_of(100).unwrap();
    assert_eq!((found.crystal.atom(id).at, found.atoms()), ([4.5, 5.0, 6.0], 1));
}

/// Along a periodic axis an atom goes round; beyond a surface it is lost.
#[test]
fn an_atom_far_beyond_a_surface_is_refused_by_its_number() {
    let far = file(&DATA.replace("8.5 9.0 9.5", "85 9.0 9.5"), ".data");
    let crystal = format!("[crystal]\nfile = {:?}\n", far.path());
    let found = problem(&crystal).unwrap();
    assert_eq!(found.crystal.atom(found.crystal.id_of(9).unwrap()).at, [6.0, 9.0, 9.5]);
    let refused = problem(&format!("{crystal}[boundary]\nx = \"free\"\n")).map(|_| ()).unwrap_err();
    assert!(
        refused.contains("axis x ends, and atom 9 is farther than its length outside the box"),
        "{refused}"
    );
}

/// A step that only measures looks for no minimum.
#[test]
fn a_step_that_does_not_relax_has_no_tolerance_to_miss() {
    let found = problem(WHOLE).unwrap();
    let steps = found.steps.iter().map(|step| (step.limits.has_tolerance(), step.limits.evaluations));
    assert_eq!(steps.collect::<Vec<_>>(), [(false, 1), (true, 50_000), (true, 50_000)]);
}

proptest! {
    #![proptest_config(faults::ten_thousand())]

    #[test]
    fn inputs_come_back_as_they_were_written(
        a in 1e-3..1e3_f64, size in [1..99_usize, 1..99, 1..99], ids in prop::collection::vec(0..i64::MAX as u64, 0..4),
        max_force in prop::option::of(0.0..1.0_f64), repeat in 0..9_u32, is_free: bool, relax: bool,
    ) {
        let force = max_force.map_or_else(String::new, |force| format!("max_force = {force:e}\n"));
        let end = if is_free { "\"free\"" } else { "{ shells = { buffer = 1.5, fixed = 2 } }" };
        let text = format!(
            "[crystal]\na = {a:?}\nsize = {size:?} # cells\n[boundary]\ny = {end}\n[relaxation]\n{force}[[step]]\n\
             repeat = {repeat}\nrelax = {relax}\ndisturb = [{{ vacancy = {{ ids = {ids:?} }} }}]\n"
        );
        let found = Input::parse(Path::new("in.toml"), &text).unwrap();
        let end = if is_free { End::Free } else { End::Shells { buffer: 1.5, fixed: 2.0 } };
        let step = StepInput {
            disturb: vec![Aberration::Vacancy { ids }],
            repeat: Some(repeat),
            relax: Some(relax),
            ..StepInput::default()
        };
        let expected = Input {
            crystal: CrystalInput { a: Some(a), size: Some(size), ..CrystalInput::default() },
            boundary: Boundary { y: Some(end), ..Boundary::default() },
            relaxation: RelaxationInput { max_force, ..RelaxationInput::default() },
            step: vec![step],
            ..Input::default()
        };
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn inputs_with_faults_are_refused_in_a_sentence_or_make_a_crystal(faults in faults::faults()) {
        let text = faults::with(WHOLE, &faults);
        let made = Input::parse(Path::new("in.toml"), &text).and_then(|input| {
            // A lattice constant that has to be found takes longer than all else, and files are others' tests.
            let is_quick = input.crystal.a.is_some() && input.potential.files.is_empty();
            if is_quick { input.problem().map(Some) } else { Ok(None) }
        });
        match made {
            Ok(None) => {}
            Ok(Some(problem)) => prop_assert!(problem.atoms() > 0 && !problem.steps.is_empty()),
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }
}
