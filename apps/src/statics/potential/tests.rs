//! Malformed files are told with their line.

use super::*;

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
