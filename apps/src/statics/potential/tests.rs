//! Malformed files are told with their line.

use super::*;
use crate::statics::tests::faults;
use crate::text_file::split_comment;
use proptest::prelude::*;

/// Two elements, five values each.
const SETFL: &str = "one\ntwo\nthree\n2 A B\n5 0.5 5 0.25 1.2\n\
    1 10.0 3.0 fcc\n0 1 2 3 4\n5 4 3 2\n1\n2 20.0 3.1 bcc\n0 2 4 6 8\n9 7 5 3 1\n1 2 3 4 5\n2 3 4 5 6\n3 4 5 6 7\n";

fn read_as(text: &str, format: Format, names: &[&str]) -> Result<Potential, PotentialError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    Potential::read(&[file.path().into()], format, &names)
}

fn line_of(text: &str, format: Format) -> (usize, String) {
    match read_as(text, format, &["A"]).unwrap_err() {
        PotentialError::Malformed { line, message, .. } => (line, message),
        other => panic!("{other}"),
    }
}

#[test]
fn elements_are_taken_in_the_order_asked_for() {
    let there = read_as(SETFL, Format::Setfl, &["A", "B"]).unwrap();
    let back = read_as(SETFL, Format::Setfl, &["B", "A"]).unwrap();
    assert_eq!(back.masses(), [20.0, 10.0]);
    assert_eq!(there.pair(0, 1, 0.6), back.pair(1, 0, 0.6));
    assert_eq!(there.pair(0, 0, 0.6), back.pair(1, 1, 0.6));
    assert_eq!(there.embed(1, 0.7), back.embed(0, 0.7));
    // At a value of the table: rho of B at 0.5 is 5, r phi of A and B is 4.
    assert_eq!(there.pair(0, 1, 0.5), (5.0, 8.0));
    assert_eq!(there.pair(0, 1, 1.2), (0.0, 0.0));
}

#[test]
fn beyond_the_largest_density_the_energy_goes_on_straight() {
    let potential = read_as(SETFL, Format::Setfl, &["A"]).unwrap();
    let (energy, slope) = potential.embed(0, 2.0);
    let (far, same) = potential.embed(0, 5.0);
    assert_eq!(slope, same);
    assert!((far - energy - 3.0 * slope).abs() < 1e-12);
    assert!(potential.embed(0, f64::NAN).0.is_nan());
}

#[test]
fn atoms_repel_however_near_they_are() {
    let copper = analytic::built_in(analytic::Model::SuttonChen, "Cu").unwrap();
    let energy = |r: f64| {
        let (density, pair) = copper.pair(0, 0, r);
        pair + 2.0 * copper.embed(0, density).0
    };
    let energies = [1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.6, 1.0, 1.5].map(energy);
    assert!(energies.windows(2).all(|pair| pair[0] > pair[1]), "{energies:?}");
    assert!(energies[0].is_finite());
}

#[test]
fn malformed_files_are_told_with_their_line() {
    assert_eq!(line_of("", Format::Setfl).0, 0);
    let (line, message) = line_of(&SETFL.replace("5 4 3 2", "5 4 x 2"), Format::Setfl);
    assert_eq!(line, 8);
    assert!(
        message.contains("`x`") && message.contains("rho(r) of A") && message.contains("value 3 of 5"),
        "{message}"
    );
    let (line, message) = line_of(&SETFL.replace("3 4 5 6 7", "3 4"), Format::Setfl);
    assert_eq!(line, 15);
    assert!(message.contains("ends"), "{message}");
    assert_eq!(line_of(&SETFL.replace("5 0.5 5", "5 -0.5 5"), Format::Setfl).0, 5);
    assert_eq!(line_of(&SETFL.replace("2 A B", "3 A B"), Format::Setfl).0, 4);
    assert_eq!(line_of(&SETFL.replace("2 A B", "many A B"), Format::Setfl).0, 4);
    assert_eq!(line_of("c\n1 10 3 fcc\n5 0.1 6 0.1 1\n", Format::Funcfl).0, 3);
    // A promise of much takes no memory.
    assert_eq!(line_of("c\n1 10 3 fcc\n9999999 0.1 9999999 0.1 1\n1 2 3\n", Format::Funcfl).0, 4);
}

#[test]
fn what_a_source_does_not_have_is_told() {
    let error = read_as(SETFL, Format::Setfl, &["C"]).unwrap_err().to_string();
    assert!(error.contains("no element C") && error.contains("A, B"), "{error}");
    let error = read_as(SETFL, Format::Funcfl, &["A", "B"]).unwrap_err().to_string();
    assert!(error.contains("2 elements need 2 files"), "{error}");
    // A file of one element says which by its atomic number.
    let of_copper = "c\n29 63.5 3.6 fcc\n6 0.1 6 0.1 0.5\n".to_owned() + &"1 2 3 4 5 6\n".repeat(3);
    let error = read_as(&of_copper, Format::Funcfl, &["Ni"]).unwrap_err().to_string();
    assert!(error.contains("no element Ni; it has Cu"), "{error}");
    assert!(read_as(&of_copper, Format::Funcfl, &["Cu"]).is_ok());
    let error = analytic::built_in(analytic::Model::SuttonChen, "Fe").unwrap_err().to_string();
    assert!(error.contains("no built-in Sutton-Chen parameters for Fe") && error.contains("Cu"), "{error}");
    assert!(matches!(
        Potential::read(&["/nowhere.eam".into()], Format::Funcfl, &["A".into()]),
        Err(PotentialError::Unreadable { .. })
    ));
}

#[test]
fn names_tell_formats() {
    let of = |name: &str| Format::of_name(Path::new(name));
    assert_eq!(of("Cu_mishin1.eam.alloy"), Some(Format::Setfl));
    assert_eq!(of("Fe_mm.eam.fs"), Some(Format::FinnisSinclair));
    assert_eq!(of("Cu_u3.eam"), Some(Format::Funcfl));
    assert_eq!(of("Cu.table"), None);
}

/// Files with the exponents of Fortran.
#[test]
fn a_d_is_an_exponent() {
    let potential = read_as(&SETFL.replace("0.25", "2.5D-1"), Format::Setfl, &["A"]).unwrap();
    assert_eq!(potential.per_r(), 4.0);
}

/// What LAMMPS reads otherwise, or not at all.
#[test]
fn a_table_that_is_longer_or_shorter_than_promised_is_refused() {
    for (old, new, line, sentence) in [
        // One value too few would shift all that follow.
        ("5 0.5 5 0.25", "5 0.5 4 0.25", 5, "Nr is `4`"),
        ("5 0.5 5 0.25", "6 0.5 5 0.25", 8, "`4` follows the 6 values of F(rho) of A"),
        ("0 1 2 3 4\n", "0 1 2 3 4 9\n", 7, "`9` follows the 5 values of F(rho) of A"),
        ("3 4 5 6 7\n", "3 4 5 6 7\n8\n", 16, "numbers follow the last table"),
        ("5 0.5 5 0.25 1.2", "5 0.5 5 0.25", 5, "the line ends where the cutoff should stand"),
        ("5 0.5 5", "5 1e308 5", 5, "positive and below 1e9"),
        ("2 A B", "2 A B C", 4, "2 elements are promised, and `C` is one more"),
        ("2 A B", "2 A A", 4, "A is named twice"),
        ("one\n", "DATE: 2020-01-01 UNITS: real CONTRIBUTOR: x\n", 1, "the units are real; only metal"),
    ] {
        let (found, message) = line_of(&SETFL.replacen(old, new, 1), Format::Setfl);
        assert!(found == line && message.contains(sentence), "{new}: line {found}: {message}");
    }
    let funcfl = "c\n1 10 3 fcc\n6 0.1 6 0.1 0.5\n".to_owned() + &"1 2 3 4 5 6\n".repeat(3);
    assert!(read_as(&funcfl, Format::Funcfl, &["A"]).is_ok());
    let (line, message) = line_of(&(funcfl + "1 2\n"), Format::Funcfl);
    assert!(line == 7 && message.contains("numbers follow the last table"), "{message}");
}

/// Lines of elements with less or more than others write, comments, blank lines.
#[test]
fn what_lammps_reads_is_read() {
    let expected = read_as(SETFL, Format::Setfl, &["A", "B"]).unwrap();
    for (old, new) in [
        ("1 10.0 3.0 fcc", "1 10.0 3.0"),
        ("1 10.0 3.0 fcc", "1 10.0"),
        ("1 10.0 3.0 fcc", "1 10.0 3.0 fcc and more"),
        ("0.25 1.2", "0.25 1.2 # Nrho drho Nr dr cutoff"),
        ("0.25 1.2", "0.25 1.2 12.5"),
        ("2 A B", "2 A B # elements"),
        ("2 20.0", "\n\n2 20.0"),
        ("3 4 5 6 7\n", "3 4 5 6 7\n\n# the end\nof all\n"),
        ("one\n", "DATE: 2020-01-01 UNITS: metal\n"),
        ("1 2 3 4 5\n", "1\t2\r\n3 4\n5\n"),
    ] {
        let found = read_as(&SETFL.replacen(old, new, 1), Format::Setfl, &["A", "B"]).unwrap();
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{new}");
    }
}

/// What a file holds: elements, points of the density and of the distance, values a line, and all its numbers.
#[derive(Clone, Debug)]
struct Held {
    elements: usize,
    points: [usize; 2],
    per_line: usize,
    values: Vec<f64>,
}

fn held(elements: std::ops::Range<usize>) -> impl Strategy<Value = Held> {
    let value = prop_oneof![-1e3..1e3_f64, Just(0.0), Just(-1e-300)];
    let values = prop::collection::vec(value, 16);
    (elements, [6..9_usize, 6..9], 1..10_usize, values)
        .prop_map(|(elements, points, per_line, values)| Held { elements, points, per_line, values })
}

impl Held {
    /// The next of its tables, and its lines.
    fn table(&self, length: usize, number: &mut usize, text: &mut String) -> Vec<f64> {
        *number += 1;
        let from = *number;
        let table: Vec<f64> = (0..length).map(|n| self.values[(n * n + from) % 16] + from as f64).collect();
        for line in table.chunks(self.per_line) {
            *text += &line.iter().map(|value| format!("{value:e} ")).collect::<String>();
            *text += "\n";
        }
        table
    }

    fn names(&self) -> Vec<String> {
        (0..self.elements).map(|n| format!("E{n}")).collect()
    }

    fn grid(&self) -> String {
        let [densities, distances] = self.points;
        format!("{densities} 0.5 {distances} 0.25 1.5\n")
    }

    /// As setfl: the text, and the embedding functions, densities and pairs in the order of the file.
    fn setfl(&self, kind: setfl::Kind) -> (String, [Vec<Vec<f64>>; 3]) {
        let [densities, distances] = self.points;
        let mut text = format!("a\n\nc\n{} {}\n{}", self.elements, self.names().join("  "), self.grid());
        let (mut number, mut held) = (0, [const { Vec::new() }; 3]);
        for _ in 0..self.elements {
            text += "29 63.5 3.6 fcc\n";
            held[0].push(self.table(densities, &mut number, &mut text));
            for _ in 0..if kind == setfl::Kind::Alloy { 1 } else { self.elements } {
                held[1].push(self.table(distances, &mut number, &mut text));
            }
        }
        for _ in 0..self.elements * (self.elements + 1) / 2 {
            held[2].push(self.table(distances, &mut number, &mut text));
        }
        (text, held)
    }

    fn funcfl(&self) -> (String, [Vec<f64>; 3]) {
        let [densities, distances] = self.points;
        let mut text = format!("c\n29 63.5 3.6 fcc\n{}", self.grid());
        let mut number = 0;
        let tables =
            [densities, distances, distances].map(|length| self.table(length, &mut number, &mut text));
        (text, tables)
    }
}

const FILE: &str = "a file";

/// Tables that stand in the text, one number after the other, as splines that give numbers.
fn assert_stand_in(text: &str, tables: &Tables) {
    let numbers: Vec<u64> = text
        .lines()
        .flat_map(|line| split_comment(line).0.split_whitespace())
        .filter_map(|word| word.replace(['D', 'd'], "e").parse().ok())
        .map(f64::to_bits)
        .collect();
    for table in tables.embedding.iter().chain(&tables.density).chain(&tables.pair) {
        let table: Vec<u64> = table.iter().map(|value| value.to_bits()).collect();
        assert!(numbers.windows(table.len()).any(|window| window == table), "{table:?} is not in\n{text}");
    }
    assert_evaluates(tables);
}

fn assert_evaluates(tables: &Tables) {
    let potential = Potential::from_tables(tables);
    let count = potential.species();
    assert_eq!((potential.embedding.len(), potential.pairs.len()), (count, count * count));
    for rho in [0.0, 0.7, 1e9, f64::NAN] {
        potential.embed(0, rho);
    }
    for r in [1e-9, 0.3, 1.4, 1e9] {
        potential.pair(count as u8 - 1, 0, r);
    }
}

fn assert_told(error: &PotentialError, text: &str) {
    if let PotentialError::Malformed { line, message, .. } = error {
        assert!(*line <= text.lines().count() && message.lines().count() == 1, "{error}");
    }
}

proptest! {
    #![proptest_config(faults::ten_thousand())]

    #[test]
    fn setfl_come_back_as_they_were_written(held in held(1..4), is_alloy: bool) {
        let kind = if is_alloy { setfl::Kind::Alloy } else { setfl::Kind::FinnisSinclair };
        let (text, [embedding, density, pair]) = held.setfl(kind);
        let found = setfl::read(Path::new(FILE), &text, kind, &held.names()).unwrap();
        let count = held.elements;
        prop_assert_eq!(&found.embedding, &embedding);
        for (target, source) in (0..count).flat_map(|target| (0..count).map(move |source| (target, source))) {
            let (low, high) = (target.min(source), target.max(source));
            let of_source = if is_alloy { source } else { source * count + target };
            prop_assert_eq!(&found.density[target * count + source], &density[of_source]);
            prop_assert_eq!(&found.pair[target * count + source], &pair[high * (high + 1) / 2 + low]);
        }
        prop_assert_eq!((found.cutoff, found.d_r, found.d_rho, &found.masses), (1.5, 0.25, 0.5, &vec![63.5; count]));
    }

    #[test]
    fn funcfl_come_back_as_they_were_written(held in held(1..2)) {
        let (text, [embedding, charge, density]) = held.funcfl();
        let found = funcfl::read(Path::new(FILE), &text, "Cu").unwrap();
        let told = format!("{found:?}");
        for (name, table) in [("embedding", embedding), ("charge", charge), ("density", density)] {
            prop_assert!(told.contains(&format!("{name}: {table:?}")), "{}", told);
        }
    }

    #[test]
    fn setfl_with_faults_are_refused_or_read_as_what_they_say(
        held in held(1..4), is_alloy: bool, faults in faults::faults(),
    ) {
        let kind = if is_alloy { setfl::Kind::Alloy } else { setfl::Kind::FinnisSinclair };
        let text = faults::with(&held.setfl(kind).0, &faults);
        match setfl::read(Path::new(FILE), &text, kind, &held.names()[..1]) {
            Ok(tables) => assert_stand_in(&text, &tables),
            Err(error) => assert_told(&error, &text),
        }
    }

    #[test]
    fn funcfl_with_faults_are_refused_or_mixed(one in held(1..2), other in held(1..2), faults in faults::faults()) {
        let text = faults::with(&one.funcfl().0, &faults);
        match funcfl::read(Path::new(FILE), &text, "Cu") {
            Ok(found) => {
                let other = funcfl::read(Path::new(FILE), &other.funcfl().0, "Cu").unwrap();
                assert_evaluates(&funcfl::mix(&[found, other], &["Cu", "Ni"].map(str::to_owned)));
            }
            Err(error) => assert_told(&error, &text),
        }
    }
}
