//! Products of files against sums written down here, in the plainest way.

use super::{ALGORITHMS, nodes_of_speed, report, run};
use std::fmt::Write as _;
use std::path::Path;

/// Nodes as (PEs, speed), one to seven.
const MIXES: [&[(u32, f64)]; 4] = [
    &[(1, 1.0)],
    &[(2, 1.0), (1, 0.3)],
    &[(1, 0.25), (2, 1.0), (1, 0.55)],
    &[(1, 1.0), (1, 0.55), (2, 0.25), (1, 0.8), (1, 0.37), (2, 0.1), (1, 0.63)],
];

/// Sides (m, k, n): divisible and not, a row, a column, a sum of one, smaller than q, primes.
const SHAPES: [[usize; 3]; 9] = [
    [48, 48, 48],
    [37, 51, 5],
    [1, 40, 30],
    [30, 40, 1],
    [20, 1, 25],
    [1, 1, 1],
    [3, 4, 2],
    [31, 37, 41],
    [5, 64, 90],
];

/// How a factor is filed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// As numpy saves: size of a number, byte order, and whether column by column.
    Npy { wide: bool, big_endian: bool, by_column: bool },
    /// MatrixMarket, all numbers.
    Array,
    /// MatrixMarket, positions and numbers.
    Coordinate,
}

/// A matrix as this test knows it: rows, columns, numbers row by row, all exact in f32.
struct Known {
    rows: usize,
    cols: usize,
    values: Vec<f64>,
}

impl Known {
    /// Numbers between -1 and 1 from a generator that nothing else here uses; zeros where `is_sparse`.
    fn new(rows: usize, cols: usize, seed: u64, is_sparse: bool) -> Self {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> 40
        };
        let values = (0..rows * cols).map(|_| {
            let value = next() as f64 / f64::from(1 << 23) - 1.0;
            if is_sparse && next().is_multiple_of(2) { 0.0 } else { value }
        });
        Self { rows, cols, values: values.collect() }
    }

    fn at(&self, row: usize, col: usize) -> f64 {
        self.values[row * self.cols + col]
    }

    /// Writes the file; its name.
    fn save(&self, folder: &Path, name: &str, form: Form) -> String {
        let places = |by_column: bool| {
            let (outer, inner) = if by_column { (self.cols, self.rows) } else { (self.rows, self.cols) };
            (0..outer).flat_map(move |o| (0..inner).map(move |i| if by_column { (i, o) } else { (o, i) }))
        };
        let (bytes, ending) = match form {
            Form::Npy { wide, big_endian, by_column } => {
                let numbers = places(by_column).flat_map(|(i, j)| number(self.at(i, j), wide, big_endian));
                let order = if by_column { "True" } else { "False" };
                let (endian, size) = (if big_endian { '>' } else { '<' }, if wide { 8 } else { 4 });
                let shape = format!("({}, {})", self.rows, self.cols);
                let words =
                    format!("{{'descr': '{endian}f{size}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
                let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
                bytes.extend(u16::try_from(words.len()).unwrap().to_le_bytes());
                bytes.extend(words.bytes().chain(numbers));
                (bytes, "npy")
            }
            Form::Array => {
                let head = format!("%%MatrixMarket matrix array real general\n{} {}\n", self.rows, self.cols);
                let lines = places(true).map(|(i, j)| format!("{:e}\n", self.at(i, j)));
                ((head + &lines.collect::<String>()).into_bytes(), "mtx")
            }
            Form::Coordinate => {
                let count = self.values.iter().filter(|v| **v != 0.0).count();
                let sizes = format!("{} {} {count}", self.rows, self.cols);
                let mut text =
                    format!("%%MatrixMarket matrix coordinate real general\n% a comment\n{sizes}\n");
                for (i, j) in places(false).filter(|&(i, j)| self.at(i, j) != 0.0) {
                    writeln!(text, "{} {} {:e}", i + 1, j + 1, self.at(i, j)).unwrap();
                }
                (text.into_bytes(), "mtx")
            }
        };
        let file = format!("{name}.{ending}");
        std::fs::write(folder.join(&file), bytes).unwrap();
        file
    }
}

fn number(value: f64, wide: bool, big_endian: bool) -> Vec<u8> {
    let mut bytes = if wide { value.to_le_bytes().to_vec() } else { (value as f32).to_le_bytes().to_vec() };
    if big_endian {
        bytes.reverse();
    }
    bytes
}

/// Whether the file holds the product of the two within the tolerance of its numbers, relative to what the
/// products of each sum add up to without their signs.
fn check(file: &Path, a: &Known, b: &Known, wide: bool) -> Result<(), String> {
    let bytes = std::fs::read(file).map_err(|e| e.to_string())?;
    let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let (header, body) = bytes[10..].split_at(length);
    let header = String::from_utf8_lossy(header);
    let size = if wide { 8 } else { 4 };
    let due = [format!("'<f{size}'"), "'fortran_order': False".into(), format!("({}, {})", a.rows, b.cols)];
    if !due.iter().all(|word| header.contains(word)) || body.len() != a.rows * b.cols * size {
        return Err(format!("{} bytes after {header}, {due:?} is due", body.len()));
    }
    let tolerance = if wide { 1e-12 } else { 1e-5 };
    for (at, bytes) in body.chunks(size).enumerate() {
        let (i, j) = (at / b.cols, at % b.cols);
        let (mut sum, mut weight) = (0.0, 0.0);
        for l in 0..a.cols {
            sum += a.at(i, l) * b.at(l, j);
            weight += (a.at(i, l) * b.at(l, j)).abs();
        }
        let found = match wide {
            true => f64::from_le_bytes(bytes.try_into().unwrap()),
            false => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
        };
        let is_near = (found - sum).abs() <= tolerance * weight;
        if !is_near {
            return Err(format!("element ({i}, {j}) is {found:e}, {sum:e} is due"));
        }
    }
    Ok(())
}

/// What is multiplied how, and whether the result is right.
struct Case<'a> {
    algorithm: &'a str,
    mix: &'a [(u32, f64)],
    q: u32,
    shape: [usize; 3],
    forms: [Form; 2],
}

impl Case<'_> {
    /// The bytes of the product, after they have been found right.
    fn product(&self, words: &[&str]) -> Vec<u8> {
        self.product_and_report(words).0
    }

    fn product_and_report(&self, words: &[&str]) -> (Vec<u8>, serde_json::Value) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        nodes_of_speed(path, self.mix);
        let [m, k, n] = self.shape;
        let sparse = |form| form == Form::Coordinate;
        let a = Known::new(m, k, 1 + m as u64, sparse(self.forms[0]));
        let b = Known::new(k, n, 2 + n as u64, sparse(self.forms[1]));
        let (a_file, b_file) = (a.save(path, "a", self.forms[0]), b.save(path, "b", self.forms[1]));
        let q = self.q.to_string();
        let how = ["run", "matmul", "--algorithm", self.algorithm, "--q", &q, "--speed", "file", "--quiet"];
        let files = ["--a", &a_file, "--b", &b_file, "--out", "c.npy", "--report", "run.json"];
        let done = run(path, &[&how[..], &files[..], words].concat());
        let Self { algorithm, mix, q, forms, .. } = self;
        let what = format!("{algorithm} of {m} x {k} x {n} on {mix:?} with q {q}, {forms:?}");
        assert_eq!(done.code, 0, "{what}: {done:?}");
        let wide = !self.forms.iter().all(|form| matches!(form, Form::Npy { wide: false, .. }));
        let file = path.join("c.npy");
        check(&file, &a, &b, wide).unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
        let report = std::fs::read(path.join("run.json")).unwrap();
        (std::fs::read(file).unwrap(), serde_json::from_slice(&report).unwrap())
    }
}

/// All forms of a file, in turn.
fn form(turn: usize) -> Form {
    match turn % 10 {
        8 => Form::Array,
        9 => Form::Coordinate,
        bits => Form::Npy { wide: bits & 1 == 0, big_endian: bits & 2 != 0, by_column: bits & 4 != 0 },
    }
}

fn products_are_right(algorithm: &str) {
    for (turn, shape) in SHAPES.into_iter().enumerate() {
        // Strides without a common divisor with the lengths, so that all kinds meet.
        let (mix, q) = (MIXES[turn % MIXES.len()], [5, 1, 9, 2, 7, 3, 8, 4, 6][turn]);
        let (a, b) = (form(3 * turn), form(7 * turn + 1));
        Case { algorithm, mix, q, shape, forms: [a, b] }.product(&[]);
        let wide = turn.is_multiple_of(2);
        let single = Form::Npy { wide, big_endian: false, by_column: false };
        let mix = MIXES[(turn + 2) % MIXES.len()];
        Case { algorithm, mix, q, shape, forms: [single; 2] }.product(&[]);
    }
}

#[test]
fn conventional_products_of_files_are_right() {
    products_are_right("conventional");
}

#[test]
fn cannon_products_of_files_are_right() {
    products_are_right("cannon");
}

#[test]
fn fox_products_of_files_are_right() {
    products_are_right("fox");
}

#[test]
fn fox_hey_otto_products_of_files_are_right() {
    products_are_right("fox-hey-otto");
}

#[test]
fn deterministic_products_are_right_and_the_same_bits_on_every_mix() {
    for (algorithm, wide) in ALGORITHMS.into_iter().flat_map(|a| [(a, true), (a, false)]) {
        let forms = [Form::Npy { wide, big_endian: false, by_column: false }; 2];
        let products = MIXES.map(|mix| {
            Case { algorithm, mix, q: 4, shape: [31, 37, 41], forms }.product(&["--deterministic"])
        });
        assert!(products.iter().all(|product| *product == products[0]), "{algorithm}, {wide}");
    }
}

/// All nodes are alike, and the nodes file says that they are not.
#[test]
fn foxs_columns_move_to_those_who_are_faster_than_was_said_and_the_bits_stay() {
    let mixes: [&[(u32, f64)]; 4] =
        [&[(1, 1.0)], &[(1, 1.0), (1, 0.1)], &[(2, 0.1), (1, 1.0)], &[(1, 0.08), (1, 0.8), (1, 0.05)]];
    for (wide, mixes) in [(true, &mixes[..]), (false, &mixes[..2])] {
        let forms = [Form::Npy { wide, big_endian: false, by_column: !wide }; 2];
        let mut products = mixes.iter().map(|mix| {
            let case = Case { algorithm: "fox", mix, q: 4, shape: [4003, 401, 613], forms };
            let (product, report) = case.product_and_report(&["--deterministic", "--verify"]);
            let moved = report["facts"]["moved_columns"].as_u64().unwrap();
            assert_eq!(moved > 0, mix.len() > 1, "{mix:?}: {report}");
            assert_eq!(report["verified"], true);
            product
        });
        let alone = products.next().unwrap();
        assert!(products.all(|product| product == alone), "{wide}");
    }
    // Generated, and by the fast kernel.
    let folder = tempfile::tempdir().unwrap();
    nodes_of_speed(folder.path(), mixes[1]);
    let sides = ["--rows", "3007", "--inner", "2801", "--n", "2603", "--dtype", "f32"];
    let words = [&["--algorithm", "fox", "--speed", "file", "--verify"], &sides[..]].concat();
    let report = report(folder.path(), &words);
    assert!(report["facts"]["moved_columns"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["verified"], true);
}

#[test]
fn the_check_finds_a_wrong_element() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (Known::new(4, 5, 1, false), Known::new(5, 3, 2, false));
    let mut c = Known::new(4, 3, 3, false);
    for at in 0..12 {
        c.values[at] = (0..5).map(|l| a.at(at / 3, l) * b.at(l, at % 3)).sum();
    }
    let save = |c: &Known| {
        let file = c.save(folder.path(), "c", Form::Npy { wide: true, big_endian: false, by_column: false });
        check(&folder.path().join(file), &a, &b, true)
    };
    save(&c).unwrap();
    c.values[7] += 1e-10;
    assert!(save(&c).unwrap_err().contains("element (2, 1)"));
}
