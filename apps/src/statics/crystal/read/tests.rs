//! Files of atoms as their formats' manuals have them, and with faults.

use super::*;
use crate::statics::tests::faults;
use proptest::prelude::*;

fn elements() -> Vec<String> {
    ["Cu", "Ni"].map(str::to_owned).into()
}

fn of_data(text: &str) -> Result<Atoms, Wrong> {
    data::read(text, &elements()).and_then(List::checked)
}

fn of_xyz(text: &str) -> Result<Atoms, Wrong> {
    xyz::read(text, &elements()).and_then(List::checked)
}

fn assert_refused(read: fn(&str) -> Result<Atoms, Wrong>, text: &str, line: usize, sentence: &str) {
    let Wrong(found, said) = read(text).unwrap_err();
    assert!(found == line && said.contains(sentence), "{text}\nline {found}: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

const HEADER: &str = "two atoms\n\n2 atoms\n2 atom types\n0 5 xlo xhi\n-1 9 ylo yhi\n0 7 zlo zhi\n\n";

fn data(more: &str) -> String {
    format!("{HEADER}{more}")
}

/// The two atoms of all data files here.
fn two() -> Atoms {
    Atoms {
        lengths: [5.0, 10.0, 7.0],
        periodic: None,
        ids: vec![7, 3],
        at: vec![[1.0, 3.0, 3.0], [4.0, 1.5, 6.0]],
        species: vec![1, 0],
    }
}

#[test]
fn rows_of_an_atom_style_are_read_as_what_they_are() {
    for (style, one, other) in [
        ("", "7 2 1 2 3", "3 1 4 0.5 6"),
        ("# atomic", "7 2 1 2 3 0 0 0", "3 1 4 0.5 6 -1 2 0"),
        ("# charge", "7 2 -1.5 1 2 3", "3 1 2 4 0.5 6 0 0 1"),
        ("# molecular", "7 9 2 1 2 3", "3 0 1 4 0.5 6"),
        ("# bond", "7 9 2 1 2 3", "3 0 1 4 0.5 6"),
        ("# full", "7 9 2 0.5 1 2 3", "3 0 1 -1 4 0.5 6 0 0 0"),
        ("# sphere", "7 2 1.0 8.9 1 2 3", "3 1 0 63.5 4 0.5 6"),
        ("# dipole and more", "7 2 0 1 2 3 0 0 1", "3 1 0 4 0.5 6 0 1 0 0 0 0"),
    ] {
        let text = data(&format!("Atoms {style}\n\n{one}\n{other} # the other\n"));
        assert_eq!(of_data(&text).unwrap(), two(), "{style}");
    }
}

#[test]
fn rows_of_another_style_than_atomic_are_not_taken_for_atomic() {
    for (row, words) in [("7 2 -1.5 1 2 3", 6), ("7 1 2 -1.5 1 2 3", 7), ("7 2 0 1 2 3 0 0 1", 9)] {
        let text = data(&format!("Atoms\n\n{row}\n{row}\n"));
        let sentence =
            format!("{words} words, but an atom of style atomic has 5, or 8 with image flags; name another");
        assert_refused(of_data, &text, 11, &sentence);
    }
    for style in ["hybrid charge", "ellipsoid", "tdpd", "wibble"] {
        let sentence = format!("atom_style {} is not read", style.split(' ').next().unwrap());
        assert_refused(of_data, &data(&format!("Atoms # {style}\n\n7 2 1 2 3\n")), 9, &sentence);
    }
    assert_refused(
        of_data,
        &data("Atoms # full\n\n7 2 1 2 3\n3 1 4 0.5 6\n"),
        11,
        "style full has 7, or 10 with",
    );
    assert_refused(
        of_data,
        &data("Atoms\n\n7 2 1 2 3 0 0.5 0\n"),
        11,
        "`0.5` is no whole number for an image flag",
    );
}

/// Each file is a valid one by the manual of `read_data`.
#[test]
fn data_are_read_as_the_manual_has_them() {
    let atoms = "Atoms # atomic\n\n7 2 1 2 3\n3 1 4 .5 6.\n";
    let turned =
        "9 atoms\n0.0E+00 7e0 zlo zhi # z\n 2 atom types\n-1 +9. ylo yhi\n\n2\tatoms # both\n0 5 xlo xhi\n\n";
    for text in [
        data(atoms),
        data(atoms).replace('\n', "\r\n"),
        data(&format!("  {}", atoms.replace("Atoms # atomic\n\n", "Atoms\nid type x y z\n"))),
        format!("{turned}{atoms}"),
        data(&format!("Masses\n\n1 63.5 # Cu\n2 58.7\n\n{atoms}\nVelocities\n\n7 0 0 0\n3 1 2 3\n")),
        data(&format!("Pair Coeffs # eam\n\n1 Cu\n2 Ni\n\n{atoms}\nPairIJ Coeffs\n\n1 1 x\n")),
        data(atoms)
            .replace("2 atom types", "2 atom types\n0 bonds\n0 angles\n3 bond types\n2 extra bond per atom"),
        data(atoms).replace("2 atom types", "2 atom types\n0 0 0 xy xz yz\n0 ellipsoids\n0 bodies"),
    ] {
        assert_eq!(of_data(&text).unwrap(), two(), "{text}");
    }
    // Periodic axes go round, however often.
    let far = of_data(&data("Atoms\n\n7 2 501 2 -697\n3 1 4 0.5 6\n")).unwrap();
    assert_eq!(far.at[0], [501.0, 3.0, -697.0]);
}

#[test]
fn data_that_are_not_understood_are_refused() {
    let atoms = "Atoms\n\n7 2 1 2 3\n3 1 4 0.5 6\n";
    let sections = [
        ("\nAngles\n\n1 1 1 2 3\n", 14, "angles are nothing that an embedded-atom potential knows of"),
        ("\nBonds\n\n1 1 1 2\n", 14, "bonds are nothing"),
        ("\nEllipsoids\n\n1 1 1 1 1 0 0 0\n", 14, "ellipsoids are nothing"),
        ("\nAtom Type Labels\n\n1 Cu\n", 14, "type labels are not read"),
        ("\nWibbles\n\n1 2\n", 14, "`Wibbles` begins no section of LAMMPS data"),
        ("\nAtoms\n\n1 1 1 1 1\n", 14, "there are Atoms already"),
        ("9 1 1 1 1\n", 13, "promises 2 atoms, and 3 are there"),
    ];
    for (more, line, sentence) in sections {
        assert_refused(of_data, &data(&format!("{atoms}{more}")), line, sentence);
    }
    for (old, new, line, sentence) in [
        ("2 atoms\n", "2 atoms\n5 bonds\n", 4, "bonds are nothing"),
        ("2 atoms\n", "2 atoms\n1 triangles\n", 4, "triangles are nothing"),
        ("2 atoms\n", "2 atoms\n1 wibbles\n", 4, "`1 wibbles` is no line of a header of LAMMPS data"),
        ("2 atoms\n", "2 atoms\n5 0 0 avec\n", 4, "a general triclinic box"),
        ("2 atom types", "1 atom types", 11, "type 2, but the header promises 1 atom types"),
        (
            "Atoms\n\n",
            "Atoms\n",
            11,
            "promises 2 atoms, and 1 are there (the line after `Atoms` does not count)",
        ),
        ("7 2 1", "7 2.0 1", 11, "`2.0` is no whole number"),
        ("7 2 1", "-7 2 1", 11, "`-7` is no whole number"),
        ("7 2 1", "9223372036854775808 2 1", 11, "is no whole number"),
        ("7 2 1", "7 2 1e300", 11, "far outside its box along x"),
        ("7 2 1 2 3", "7 2 1 2 3#.5", 11, "`3#.5` is no finite number"),
        ("7 2 1", "7 2 1D0", 11, "`1D0` is no finite number"),
    ] {
        assert_refused(of_data, &data(atoms).replace(old, new), line, sentence);
    }
}

const ROWS: &str = "Cu 1 2 3\nNi 4 5 6\n";

fn xyz(keys: &str, rows: &str) -> String {
    format!("2\n{keys}\n{rows}")
}

const LATTICE: &str = "Lattice=\"5 0 0 0 10 0 0 0 7\"";
const PROPERTIES: &str = "Properties=species:S:1:pos:R:3";

#[test]
fn every_form_of_pbc_says_which_axes_go_round() {
    for (form, periodic) in [
        ("", None),
        ("pbc=\"T T F\"", Some([true, true, false])),
        ("pbc=\"true False FALSE\"", Some([true, false, false])),
        ("pbc=\"1 0 1\"", Some([true, false, true])),
        ("pbc=[T, F, F]", Some([true, false, false])),
        ("pbc={F T F}", Some([false, true, false])),
        ("pbc = [F,F,F]", Some([false; 3])),
        ("\"pbc\"=\"T T T\"", Some([true; 3])),
        ("note=\"say \\\"pbc=F\\\" now\" is_done pbc=\"T T F\"", Some([true, true, false])),
    ] {
        let text = xyz(&format!("{LATTICE} {PROPERTIES} {form}"), ROWS);
        assert_eq!(of_xyz(&text).unwrap().periodic, periodic, "{form}");
    }
    for form in
        ["pbc=\"yes yes yes\"", "pbc=\".true. .true. .true.\"", "pbc=\"T T\"", "pbc=\"T T T T\"", "pbc=T"]
    {
        assert_refused(
            of_xyz,
            &xyz(&format!("{LATTICE} {form}"), ROWS),
            2,
            ": T or F for each of x, y and z is needed",
        );
    }
    for (form, sentence) in [
        ("PBC=\"T T T\"", "`PBC` is written pbc in extended XYZ"),
        ("pbc=\"T T T\" pbc=\"F F F\"", "pbc is there twice"),
        ("pbc=", "pbc has no value"),
        ("pbc=\"T T T", "what begins with \"T T T has no end"),
        ("Origin=\"1 2\"", "Origin=\"1 2\" has 2 numbers and not 3"),
    ] {
        assert_refused(of_xyz, &xyz(&format!("{LATTICE} {form}"), ROWS), 2, sentence);
    }
}

#[test]
fn every_form_of_the_box_and_of_numbers_is_read() {
    let plain = of_xyz(&xyz(&format!("{LATTICE} {PROPERTIES}"), ROWS)).unwrap();
    assert_eq!(
        (plain.lengths, &plain.ids[..], plain.at[1]),
        ([5.0, 10.0, 7.0], &[1, 2][..], [4.0, 5.0, 6.0])
    );
    for (keys, rows) in [
        ("Lattice=[[5, 0, 0], [0, 10, 0], [0, 0, 7]]", ROWS),
        ("Lattice={5 0 0 0 10 0 0 0 7}", ROWS),
        ("Lattice = \"5 0 0 0 1d1 0 0 0 7\"", "Cu 1 2 3\nNi 4.0D0 +5. .6e1\n"),
        (LATTICE, "Cu 1 2 3 and more\nNi 4 5 6\n  \n\n"),
        (&format!("{LATTICE} Origin=\"1 1 1\""), "Cu 2 3 4\nNi 5 6 7\n"),
        (&format!("{LATTICE} Properties=pos:R:3:move:L:2:species:S:1"), "1 2 3 T F Cu\n4 5 6 T T Ni\n"),
    ] {
        assert_eq!(of_xyz(&xyz(keys, rows)).unwrap(), plain, "{keys}");
    }
}

#[test]
fn numbers_of_atoms_are_kept() {
    let keys = format!("{LATTICE} {PROPERTIES}:id:I:1");
    let found = of_xyz(&xyz(&keys, "Cu 1 2 3 100\nNi 4 5 6 0\n")).unwrap();
    assert_eq!((&found.ids[..], &found.species[..]), (&[100, 0][..], &[0, 1][..]));
    assert_refused(of_xyz, &xyz(&keys, "Cu 1 2 3 5\nNi 4 5 6 5\n"), 4, "there is an atom 5 already");
    assert_refused(of_xyz, &xyz(&keys, "Cu 1 2 3 -5\nNi 4 5 6 5\n"), 3, "`-5` is no whole number");
    let keys = keys.replace("id:I:1", "id:R:1");
    assert_refused(of_xyz, &xyz(&keys, "Cu 1 2 3 5\nNi 4 5 6 6\n"), 2, "the numbers of atoms are id:I:1");
}

#[test]
fn frames_that_are_not_what_they_promise_are_refused() {
    let keys = format!("{LATTICE} {PROPERTIES}");
    for (rows, line, sentence) in [
        ("Cu 1 2 3\nNi 4 5 6\nNi 1 1 1\n", 5, "the file goes on after its 2 atoms; one frame is read"),
        ("Cu 1 2 3\n\nNi 4 5 6\n", 4, "0 columns, and Properties promise 4"),
        ("Cu 1 2 3 4\nNi 4 5 6\n", 3, "5 columns, and Properties promise 4"),
        ("Cu 1 2\nNi 4 5 6\n", 3, "3 columns, and Properties promise 4"),
    ] {
        assert_refused(of_xyz, &xyz(&keys, rows), line, sentence);
    }
    for (properties, sentence) in [
        ("species:S:1:pos:R:3:pos:R:3", "pos is there twice"),
        ("species:S:1:pos:R:3:x:Q:1", "the kind one of S, I, R, L"),
        ("species:S:1:pos:R", "each takes name:kind:count"),
        ("species:S:2:pos:R:3", "species:S:1 and pos:R:3 are needed"),
        ("Z:I:1:pos:R:3", "species:S:1 and pos:R:3 are needed"),
    ] {
        assert_refused(of_xyz, &xyz(&format!("{LATTICE} Properties={properties}"), ROWS), 2, sentence);
    }
}

/// A comment in another encoding, and a mark at the begin, are no reason to refuse a file.
#[test]
fn encodings_of_comments_do_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        read(&path, &elements()).unwrap()
    };
    let text = data("Atoms\n\n7 2 1 2 3\n3 1 4 0.5 6\n");
    assert_eq!(write("latin.data", &[b"Kr\xfcmel ", text.as_bytes()].concat()), two());
    let text = xyz(LATTICE, ROWS);
    assert_eq!(write("mark.xyz", &["\u{feff}".as_bytes(), text.as_bytes()].concat()).ids, [1, 2]);
}

/// Number, type and place of some atoms, no two numbers alike.
fn atoms() -> impl Strategy<Value = Vec<(u64, usize, [f64; 3])>> {
    let atom = (0..1000_u64, 1..3_usize, prop::array::uniform3(-20.0..20.0_f64));
    prop::collection::btree_map(0..1000_u64, atom, 1..6)
        .prop_map(|atoms| atoms.into_iter().map(|(id, (_, species, at))| (id, species, at)).collect())
}

fn expected(atoms: &[(u64, usize, [f64; 3])], low: [f64; 3], lengths: [f64; 3]) -> Atoms {
    Atoms {
        lengths,
        periodic: None,
        ids: atoms.iter().map(|atom| atom.0).collect(),
        at: atoms.iter().map(|atom| std::array::from_fn(|k| atom.2[k] - low[k])).collect(),
        species: atoms.iter().map(|atom| atom.1 as u8 - 1).collect(),
    }
}

fn data_of(atoms: &[(u64, usize, [f64; 3])], [style, flags]: [usize; 2], low: [f64; 3]) -> String {
    let (name, before, after) =
        [("", "", ""), ("# atomic", "", ""), ("# charge", "", "0.5 "), ("# full", "3 ", "-1e-3 ")][style];
    let side = |(low, axis): (f64, &str)| format!("{low} 25 {axis}lo {axis}hi\n");
    let sides: String = low.into_iter().zip(["x", "y", "z"]).map(side).collect();
    let count = atoms.len();
    let mut text = format!("t\n{count} atoms\n2 atom types\n{sides}\nMasses\n\n1 1\n2 2\n\nAtoms {name}\n\n");
    for (id, species, [x, y, z]) in atoms {
        text += &format!("{id} {before}{species} {after}{x} {y:e} {z}{}\n", ["", " 0 -1 2"][flags]);
    }
    text
}

fn xyz_of(atoms: &[(u64, usize, [f64; 3])], with_ids: bool) -> String {
    let column = if with_ids { "id:I:1:" } else { "" };
    let mut text = format!(
        "{}\nLattice=\"25 0 0 0 25 0 0 0 25\" energy=-1.5 Properties={column}species:S:1:x:L:1:pos:R:3 pbc=\"T F T\"\n",
        atoms.len()
    );
    for (id, species, [x, y, z]) in atoms {
        let id = if with_ids { format!("{id} ") } else { String::new() };
        text += &format!("{id}{} T {x} {y} {z:e}\n", ["Cu", "Ni"][species - 1]);
    }
    text
}

/// Every atom stands, number after number, in the line that it is said to be from.
fn assert_stands_in(text: &str, list: &List, low: [f64; 3]) {
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in list.atoms.at.iter().zip(&list.lines) {
        let words =
            lines[line - 1].split_whitespace().map(|word| word.replace(['D', 'd'], "e").parse::<f64>());
        let words: Vec<f64> = words.map(|word| word.unwrap_or(f64::NAN)).collect();
        let is_there = |three: &[f64]| (0..3).all(|k| three[k] - low[k] == at[k]);
        assert!(words.windows(3).any(is_there), "{at:?} from line {line} of\n{text}");
    }
    let Atoms { ids, species, .. } = &list.atoms;
    assert!(
        list.atoms.at.len() == ids.len() && ids.len() == species.len() && species.iter().all(|&one| one < 2)
    );
}

/// What the last line before the atoms that ends so has before these words.
fn of_header<const N: usize>(text: &str, words: &str) -> [f64; N] {
    let is_header = |line: &&str| !["Atoms", "Masses"].iter().any(|name| line.trim_start().starts_with(name));
    let header = text.lines().skip(1).take_while(is_header);
    let words_of =
        |line: &str| line.split('#').next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let found = header.map(words_of).filter(|line| line.ends_with(&format!(" {words}"))).last().unwrap();
    let numbers = found.strip_suffix(words).unwrap().split_whitespace().map(|word| word.parse().unwrap());
    numbers.collect::<Vec<f64>>().try_into().unwrap()
}

proptest! {
    #![proptest_config(faults::ten_thousand())]

    #[test]
    fn data_come_back_as_they_were_written(
        atoms in atoms(), form in [0..4_usize, 0..2], low in prop::array::uniform3(-9.0..9.0_f64),
    ) {
        let found = of_data(&data_of(&atoms, form, low)).unwrap();
        prop_assert_eq!(found, expected(&atoms, low, low.map(|low| 25.0 - low)));
    }

    #[test]
    fn xyz_come_back_as_they_were_written(atoms in atoms(), with_ids: bool) {
        let mut atoms = atoms;
        if !with_ids {
            atoms.iter_mut().zip(1..).for_each(|(atom, id)| atom.0 = id);
        }
        let periodic = Some([true, false, true]);
        let expected = Atoms { periodic, ..expected(&atoms, [0.0; 3], [25.0; 3]) };
        prop_assert_eq!(of_xyz(&xyz_of(&atoms, with_ids)).unwrap(), expected);
    }

    #[test]
    fn data_with_faults_are_refused_or_read_as_what_they_say(
        atoms in atoms(), form in [0..4_usize, 0..2], faults in faults::faults(),
    ) {
        let text = faults::with(&data_of(&atoms, form, [-1.0, 0.0, 2.0]), &faults);
        match data::read(&text, &elements()) {
            Ok(list) => {
                let low = ["x", "y", "z"].map(|axis| of_header::<2>(&text, &format!("{axis}lo {axis}hi"))[0]);
                assert_stands_in(&text, &list, low);
                prop_assert_eq!(of_header::<1>(&text, "atoms"), [list.lines.len() as f64]);
            }
            Err(Wrong(line, sentence)) => {
                prop_assert!(line <= text.lines().count().max(1) && !sentence.is_empty(), "{line}: {sentence}");
            }
        }
    }

    #[test]
    fn xyz_with_faults_are_refused_or_read_as_what_they_say(
        atoms in atoms(), with_ids: bool, faults in faults::faults(),
    ) {
        let text = faults::with(&xyz_of(&atoms, with_ids), &faults);
        match xyz::read(&text, &elements()) {
            Ok(list) => {
                let low = text.contains("Origin");
                prop_assert!(!low, "no fault makes an origin");
                assert_stands_in(&text, &list, [0.0; 3]);
                let mut lines = text.lines();
                prop_assert_eq!(lines.next().unwrap().trim().parse::<usize>().unwrap(), list.lines.len());
                prop_assert_eq!(lines.skip(1).filter(|line| !line.trim().is_empty()).count(), list.lines.len());
            }
            Err(Wrong(line, sentence)) => {
                prop_assert!(line <= text.lines().count().max(2) && !sentence.is_empty(), "{line}: {sentence}");
            }
        }
    }
}
