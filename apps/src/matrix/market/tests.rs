//! Tests of reading and writing MatrixMarket files.

use super::*;
use crate::matrix::{LineError, generate};
use std::fs;

const LIMIT: u64 = 1 << 20;

fn parse(text: &[u8]) -> Result<Matrix<f64>, (u64, MarketLineError)> {
    parse::matrix(text, text.len() as u64, LIMIT).map_err(|wrong| match wrong {
        parse::Wrong::Line(line, bad) => (line, bad),
        parse::Wrong::Io(error) => panic!("a slice cannot fail: {error}"),
    })
}

fn rows(text: &str) -> Vec<Vec<f64>> {
    let matrix = parse(text.as_bytes()).unwrap();
    matrix.values().chunks(matrix.cols()).map(<[f64]>::to_vec).collect()
}

#[test]
fn array_is_read_column_by_column() {
    let text = "%%MatrixMarket matrix array real general\n% a comment\n\n2 3\n1\n2.5\n-3e0\n\n+4\n5\n.5\n";
    assert_eq!(rows(text), [[1.0, -3.0, 5.0], [2.5, 4.0, 0.5]]);
    assert_eq!(rows(&text.replace('\n', "\r\n")), rows(text));
}

#[test]
fn array_symmetries_fill_the_upper_triangle() {
    let symmetric = "%%matrixmarket MATRIX Array Integer Symmetric\n3 3\n1\n2\n3\n4\n5\n6\n";
    assert_eq!(rows(symmetric), [[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]]);
    let skew = "%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n";
    assert_eq!(rows(skew), [[0.0, -1.0, -2.0], [1.0, 0.0, -3.0], [2.0, 3.0, 0.0]]);
    assert_eq!(rows("%%MatrixMarket matrix array real skew-symmetric\n1 1\n"), [[0.0]]);
}

#[test]
fn coordinates_are_placed_and_duplicates_added() {
    let general =
        "%%MatrixMarket matrix coordinate real general\n2 3 4\n1 1 1.5\n2 3 -2\n1 1 2\n  1\t2   7 \n";
    assert_eq!(rows(general), [[3.5, 7.0, 0.0], [0.0, 0.0, -2.0]]);
    let symmetric =
        "%%MatrixMarket matrix coordinate integer symmetric\n2 2 4\n1 1 1\n2 1 3\n%\n2 2 4\n2 1 1\n";
    assert_eq!(rows(symmetric), [[1.0, 4.0], [4.0, 4.0]]);
    let skew = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n";
    assert_eq!(rows(skew), [[0.0, -3.0], [3.0, 0.0]]);
    let pattern = "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2";
    assert_eq!(rows(pattern), [[0.0, 1.0], [0.0, 0.0]]);
    assert_eq!(rows("%%MatrixMarket matrix coordinate real general\n1 2 0\n"), [[0.0, 0.0]]);
}

#[test]
fn wrong_files_are_refused_with_the_line_and_the_reason() {
    let cases = [
        ("", 1, "expected '%%MatrixMarket matrix"),
        ("1 1\n1\n", 1, "expected '%%MatrixMarket matrix"),
        ("%%MatrixMarket matrix array real\n", 1, "expected '%%MatrixMarket matrix"),
        ("%%MatrixMarket vector array real general\n", 1, "'vector' cannot be read"),
        (
            "%%MatrixMarket matrix array complex general\n",
            1,
            "'complex' cannot be read: matrices are real here",
        ),
        ("%%MatrixMarket matrix array real hermitian\n", 1, "'hermitian' cannot be read: matrices are real"),
        ("%%MatrixMarket matrix array pattern general\n", 1, "an array file must hold numbers"),
        ("%%MatrixMarket matrix array real general\n%\n", 2, "expected rows and columns, got 0 words"),
        ("%%MatrixMarket matrix array real general\n2 2 4\n", 2, "expected rows and columns, got 3 words"),
        ("%%MatrixMarket matrix array real general\n2 -2\n", 2, "'-2' is not a number of rows"),
        ("%%MatrixMarket matrix array real general\n0 2\n", 2, "the matrix is empty: 0 x 2"),
        ("%%MatrixMarket matrix array real symmetric\n2 3\n", 2, "a symmetric matrix cannot be 2 x 3"),
        (
            "%%MatrixMarket matrix array real general\n2 1\n1\n",
            3,
            "2 entries are announced, but the file has 1",
        ),
        ("%%MatrixMarket matrix array real general\n1 1\n1\n%\n2\n", 5, "but the file has at least 2"),
        ("%%MatrixMarket matrix array real general\n1 1\n1 2\n", 3, "expected one number, got 2 words"),
        ("%%MatrixMarket matrix array real general\n1 1\nx\n", 3, "'x' is not a number"),
        ("%%MatrixMarket matrix array real general\n1 1\nnan\n", 3, "'nan' is not a finite 64-bit number"),
        ("%%MatrixMarket matrix array real general\n1 1\n1e999\n", 3, "'1e999' is not a finite"),
        ("%%MatrixMarket matrix array integer general\n1 1\n1.5\n", 3, "'1.5' is not a whole number"),
        ("%%MatrixMarket matrix array real general\n300 300\n1\n", 2, "more than 51 bytes can hold"),
        (
            "%%MatrixMarket matrix array real general\n1000 1000\n1\n",
            2,
            "bigger than the limit of 1048576 bytes",
        ),
        (
            "%%MatrixMarket matrix coordinate real general\n4294967296 4294967296 0\n",
            2,
            "bigger than the limit",
        ),
        (
            "%%MatrixMarket matrix coordinate real general\n99999999999999999999 1 0\n",
            2,
            "'99999999999999999999' is 2^64 or more",
        ),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n", 3, "(3, 1) is outside the 2 x 2"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n0 1 1\n", 3, "(0, 1) is outside the 2 x 2"),
        (
            "%%MatrixMarket matrix coordinate real general\n2 2 1\n1\n",
            3,
            "expected row, column and number, got 1 word",
        ),
        ("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n", 3, "only the lower triangle"),
        ("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n", 3, "without the diagonal"),
        (
            "%%MatrixMarket matrix coordinate real general\n1 1 2\n1 1 1e308\n1 1 1e308\n",
            4,
            "'inf' is not a finite",
        ),
    ];
    for (text, line, expected) in cases {
        let (at, bad) = parse(text.as_bytes()).unwrap_err();
        let message = bad.to_string();
        assert!(message.contains(expected), "{message:?} has no {expected:?}");
        assert_eq!(at, line, "{text:?}: {message}");
    }
    let (line, bad) = parse(b"%%MatrixMarket matrix array real general\n1 1\n\xff\n").unwrap_err();
    assert_eq!((line, bad.to_string()), (3, "'\u{fffd}' is not a number".into()));
    assert_eq!(parse(&[b'%'; 70_000]).unwrap_err(), (1, LineError::TooLong.into()));
}

#[test]
fn words_and_entries_are_counted_right() {
    let cases = [
        ("coordinate real", "2 2 1\n1 1 1 1", "expected row, column and number, got 4 words"),
        ("coordinate real", "2 2 1\n1 1", "expected row, column and number, got 2 words"),
        ("coordinate pattern", "2 2 1\n1 1 1", "expected row and column, got 3 words"),
        ("array real", "1 1\n1\n2", "1 entry is announced, but the file has at least 2"),
    ];
    for (kind, rest, expected) in cases {
        let (_, bad) =
            parse(format!("%%MatrixMarket matrix {kind} general\n{rest}\n").as_bytes()).unwrap_err();
        assert_eq!(bad.to_string(), expected);
    }
}

#[test]
fn comments_may_be_in_any_encoding() {
    let read = parse(b"%%MatrixMarket matrix array real general\n% J\xe4cobi\n1 1\n5\n").unwrap();
    assert_eq!(read.values(), [5.0]);
}

#[test]
fn the_message_names_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.mtx");
    fs::write(&path, "%%MatrixMarket matrix array real general\n1 1\nx\n").unwrap();
    let message = read(&path, LIMIT).unwrap_err().to_string();
    assert_eq!(message, format!("{}:3: 'x' is not a number", path.display()));
    assert!(read(dir.path().join("none.mtx"), LIMIT).unwrap_err().to_string().contains("none.mtx"));
}

#[test]
fn what_is_written_is_read_back_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.mtx");
    let mut wide = generate::matrix::<f64>(4, 5, 3).unwrap();
    wide.values_mut()[..3].copy_from_slice(&[1e300, -5e-324, 0.1]);
    write(&path, &wide).unwrap();
    assert_eq!(read(&path, LIMIT).unwrap(), wide);
    let narrow = generate::matrix::<f32>(4, 3, 5).unwrap();
    write(&path, &narrow).unwrap();
    assert_eq!(read(&path, LIMIT).unwrap().convert::<f32>().unwrap(), narrow);
    wide.values_mut()[4] = f64::NAN;
    let message = write(&path, &wide).unwrap_err().to_string();
    assert!(message.contains("element (2, 2), counted from 1, is NaN"), "{message}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn ten_thousand_mutated_files_are_read_or_refused() {
    let sources = [
        "%%MatrixMarket matrix array real general\n% c\n2 3\n1\n2.5\n-3e0\n4\n5\n.5\n",
        "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 1 1.5\n2 3 -2\n1 1 2\n",
        "%%MatrixMarket matrix coordinate integer symmetric\n2 2 3\n1 1 1\n2 1 3\n2 2 4\n",
        "%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n",
        "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n",
    ];
    let alphabet = b"%0123456789 \n-+.eE\x00\xffinfgMx";
    let (mut read_well, mut refused) = (0, 0);
    for step in 0..10_000 {
        let random = |place: usize, below: usize| {
            usize::try_from(generate::hash(12, step, place as u64) % below as u64).unwrap()
        };
        let mut bytes = sources[random(0, sources.len())].as_bytes().to_vec();
        for change in 0..1 + random(1, 4) {
            if bytes.len() < 2 {
                break;
            }
            // Behind the banner three times of four: changed words of the banner all end the same way.
            let from = if random(100 + change, 4) == 0 { 0 } else { bytes.len().min(40) };
            let at = (from + random(10 + change, bytes.len())).min(bytes.len() - 1);
            let byte = alphabet[random(20 + change, alphabet.len())];
            match random(30 + change, 5) {
                0 => bytes.insert(at, byte),
                1 => drop(bytes.remove(at)),
                2 => bytes.truncate(at),
                _ => bytes[at] = byte,
            }
        }
        match parse(&bytes) {
            Ok(matrix) => {
                if bytes.windows(10).any(|word| word.eq_ignore_ascii_case(b"coordinate")) {
                    let sparse = parse::sparse(bytes.as_slice(), bytes.len() as u64, 100 * LIMIT).unwrap();
                    let mut dense = Matrix::zeros(sparse.rows(), sparse.cols()).unwrap();
                    for (row, (col, value)) in
                        (0..sparse.rows()).flat_map(|i| sparse.row(i).map(move |e| (i, e)))
                    {
                        dense.set_block(row..row + 1, col as usize..col as usize + 1, &[value]);
                    }
                    assert_eq!(dense, matrix);
                }
                assert!(matrix.values().iter().all(|x| x.is_finite()));
                assert!(matrix.values().len() * 8 <= LIMIT as usize);
                read_well += 1;
            }
            Err((line, bad)) => {
                let lines = bytes.iter().filter(|&&b| b == b'\n').count() as u64 + 1;
                assert!((1..=lines).contains(&line), "line {line} of {lines}: {bad}");
                refused += 1;
            }
        }
    }
    assert!(read_well > 100 && refused > 1000, "{read_well} read, {refused} refused");
}

fn sparse(text: &str) -> Result<Csr<f64>, parse::Wrong> {
    parse::sparse(text.as_bytes(), text.len() as u64, 1 << 20)
}

/// The line and the words of what is wrong.
fn sparse_wrong(text: &str) -> (u64, String) {
    match sparse(text) {
        Err(parse::Wrong::Line(line, bad)) => (line, bad.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_sparse_matrix_is_the_dense_one_of_the_same_file() {
    let files = [
        "%%MatrixMarket matrix coordinate real general\n3 4 4\n3 1 2.5\n1 4 -1\n% note\n\n3 1 0.5\n2 2 1e3\n",
        "%%MatrixMarket matrix coordinate integer symmetric\n3 3 4\n1 1 2\n2 1 -1\n3 3 5\n3 2 4\n",
        "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 1.5\n3 2 4\n",
        "%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 3\n2 1\n",
        "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 0\n",
    ];
    for text in files {
        let dense = parse::matrix(text.as_bytes(), text.len() as u64, 1 << 20).unwrap();
        let sparse = sparse(text).unwrap();
        assert_eq!((sparse.rows(), sparse.cols()), dense.shape());
        let mut back = Matrix::zeros(dense.rows(), dense.cols()).unwrap();
        for i in 0..sparse.rows() {
            sparse.row(i).for_each(|(j, value)| back.values_mut()[i * dense.cols() + j as usize] = value);
        }
        assert_eq!(back, dense, "{text}");
    }
}

#[test]
fn what_is_wrong_in_a_sparse_file_is_named_by_its_line() {
    let general = "%%MatrixMarket matrix coordinate real general\n";
    let with = |rest: &str| sparse_wrong(&format!("{general}{rest}"));
    assert_eq!(with("3 3 2\n1 1 1\n4 1 1\n"), (4, "position (4, 1) is outside the 3 x 3 matrix".into()));
    assert_eq!(with("3 3 2\n1 1 1\n0 1 1\n").0, 4);
    assert_eq!(with("3 3 2\n1 1 1\n2 2 x\n"), (4, "'x' is not a number".into()));
    assert_eq!(with("3 3 2\n1 1 1\n2 2 inf\n").0, 4);
    assert_eq!(with("3 3 2\n1 1 1\n2 2\n").0, 4);
    assert_eq!(with("3 3 2\n1 1 1\n").1, "2 entries are announced, but the file has 1");
    assert_eq!(with("3 3 1\n1 1 1\n2 2 1\n").0, 4);
    assert_eq!(with("3 3 99\n1 1 1\n").0, 2);
    assert!(with("3 3 2\n1 1 1e308\n1 1 1e308\n").1.contains("a sum of duplicates"));
    let symmetric = "%%MatrixMarket matrix coordinate real symmetric\n3 3 1\n1 2 1\n";
    assert_eq!(sparse_wrong(symmetric).0, 3);
    let dense = "%%MatrixMarket matrix array real general\n1 1\n5\n";
    assert_eq!(sparse_wrong(dense).0, 1);
    assert!(sparse_wrong(dense).1.contains("where a sparse one ('coordinate') is needed"));
}

/// Sides cost memory as well: a short file cannot ask for much.
#[test]
fn a_sparse_file_gets_memory_for_what_it_has() {
    let wide = "%%MatrixMarket matrix coordinate real general\n100000000 100000000 1\n1 1 1\n";
    let (line, said) = sparse_wrong(wide);
    assert!(line == 2 && said.contains("bigger than the limit of 1048576 bytes"), "{said}");
    // A dense one would have more bytes than can be counted.
    for side in ["4294967295", "4294967296", "18446744073709551615"] {
        let (line, said) = sparse_wrong(&wide.replace("100000000", side));
        assert!(
            line == 2 && said.starts_with(&format!("a sparse {side} x {side} matrix of 1 entries")),
            "{said}"
        );
    }
    // No dense matrix of these sides would fit.
    let text = "%%MatrixMarket matrix coordinate real general\n50000 50000 1\n50000 50000 7\n";
    let made = sparse(text).unwrap();
    assert_eq!((made.entries(), made.row(49_999).next()), (1, Some((49_999, 7.0))));
}

#[test]
fn entries_are_counted_from_the_beginning_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let of = |text: &str| {
        let path = folder.path().join("a.mtx");
        std::fs::write(&path, text).unwrap();
        super::entry_count(&path).unwrap()
    };
    assert_eq!(of("%%MatrixMarket matrix coordinate real general\n9 9 2\n1 1 1\n2 2 2\n"), Some(2));
    assert_eq!(of("%%MatrixMarket matrix coordinate real symmetric\n9 9 2\n1 1 1\n2 2 2\n"), Some(4));
    assert_eq!(of("%%MatrixMarket matrix array real general\n1 2\n5\n6\n"), None);
}
