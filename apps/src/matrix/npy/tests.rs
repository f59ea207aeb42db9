//! Tests of reading and writing `.npy` files, with bytes as numpy writes them.

use super::*;
use crate::matrix::{Dtype, Matrix, generate};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

/// `np.save(f, np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]]))` of numpy 2, byte for byte.
fn numpy_2x3() -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00v\x00".to_vec();
    bytes.extend(b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }");
    bytes.resize(127, b' ');
    bytes.push(b'\n');
    bytes.extend([1.0f64, 2.0, 3.0, 4.0, 5.0, 6.5].iter().flat_map(|x| x.to_le_bytes()));
    bytes
}

fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = [b"\x93NUMPY".as_slice(), &[version, 0]].concat();
    match version {
        1 => bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes()),
        _ => bytes.extend(u32::try_from(header.len()).unwrap().to_le_bytes()),
    }
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("m.npy")
    }

    fn read(&self, bytes: &[u8]) -> Result<Matrix<f64>, NpyReadError> {
        // Some file systems wait for the disk when a file is overwritten, and not when it is new.
        let _ = fs::remove_file(self.path());
        fs::write(self.path(), bytes).unwrap();
        read(self.path())
    }

    fn error(&self, bytes: &[u8]) -> String {
        let message = self.read(bytes).unwrap_err().to_string();
        assert!(message.contains("m.npy"), "{message}");
        let source = std::error::Error::source(&self.read(bytes).unwrap_err()).map(ToString::to_string);
        assert!(source.is_none_or(|source| message.contains(&source)), "{message}");
        message
    }
}

fn matrix(rows: usize, cols: usize, values: &[f64]) -> Matrix<f64> {
    Matrix::from_vec(rows, cols, values.to_vec()).unwrap()
}

#[test]
fn reads_and_writes_exactly_the_bytes_of_numpy() {
    let scratch = Scratch::new();
    let expected = matrix(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.5]);
    assert_eq!(scratch.read(&numpy_2x3()).unwrap(), expected);
    fs::remove_file(scratch.path()).unwrap();
    write(scratch.path(), &expected).unwrap();
    assert_eq!(fs::read(scratch.path()).unwrap(), numpy_2x3());
}

#[test]
fn every_version_byte_order_type_and_order_is_read() {
    let scratch = Scratch::new();
    let values = [1.5f64, -2.0, 3.0, 4.0, 5.0, 6.0];
    let columns = [1.5f64, 4.0, -2.0, 5.0, 3.0, 6.0];
    for version in [1, 2, 3] {
        for (fortran, order) in [("False", values), ("True", columns)] {
            let header = |descr: &str| {
                format!("{{\"shape\": (2, 3),\"fortran_order\":{fortran} , 'descr':'{descr}'}}\n")
            };
            let check = |descr: &str, dtype: Dtype, data: Vec<u8>| {
                assert_eq!(
                    scratch.read(&file(version, &header(descr), &data)).unwrap(),
                    matrix(2, 3, &values)
                );
                let reader = NpyReader::open(scratch.path()).unwrap();
                assert_eq!(reader.dtype(), dtype);
                assert_eq!(reader.read_all::<f32>().unwrap(), matrix(2, 3, &values).convert().unwrap());
            };
            check("<f8", Dtype::F64, order.iter().flat_map(|x| x.to_le_bytes()).collect());
            check(">f8", Dtype::F64, order.iter().flat_map(|x| x.to_be_bytes()).collect());
            check("<f4", Dtype::F32, order.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect());
            check(">f4", Dtype::F32, order.iter().flat_map(|&x| (x as f32).to_be_bytes()).collect());
            for native in ["f8", "=f8"] {
                check(native, Dtype::F64, order.iter().flat_map(|x| x.to_ne_bytes()).collect());
            }
            check("=f4", Dtype::F32, order.iter().flat_map(|&x| (x as f32).to_ne_bytes()).collect());
        }
    }
}

#[test]
fn a_vector_is_a_column_and_a_long_of_python_2_is_a_number() {
    let scratch = Scratch::new();
    let vector = file(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n", &[0; 16]);
    assert_eq!(scratch.read(&vector).unwrap().shape(), (2, 1));
    let long = file(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1L, 2L), }\n", &[0; 16]);
    assert_eq!(scratch.read(&long).unwrap().shape(), (1, 2));
}

#[test]
fn what_is_no_matrix_of_floating_point_is_refused_in_a_sentence() {
    let scratch = Scratch::new();
    let header = |descr: &str, shape: &str| {
        file(1, &format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"), &[0; 64])
    };
    let cases = [
        (header("'<i8'", "(2, 4)"), "it holds integers ('<i8'): convert it with .astype('float64')"),
        (header("'|u1'", "(8, 8)"), "integers ('|u1')"),
        (header("'<c16'", "(2, 2)"), "only '<f4', '<f8'"),
        (header("[('a', '<f8')]", "(2, 4)"), "a record of several fields"),
        (header("'<f8'", "(2, 2, 2)"), "it has 3 dimensions"),
        (header("'<f8'", "()"), "it has 0 dimensions"),
        (header("'<f8'", "(0, 3)"), "it is empty: its shape is 0 x 3"),
        (header("'<f8'", "(8)"), "expected ','"),
        (header("'<f8'", "(-1, 3)"), "expected a whole number"),
        (header("'<f8'", "(02, 4)"), "expected a whole number without zeros before it"),
        (header("'<f8'", "(99999999999999999999, 1)"), "a number below 2^64"),
        (header("'<f8'", "(4294967296, 4294967296)"), "impossibly big"),
        (header("'<f8'", "(2, 5)"), "has 133 bytes, but its header (2 x 5 of f64) needs exactly 149"),
        (header("'<f8'", "(2, 3)"), "has 133 bytes, but its header (2 x 3 of f64) needs exactly 117"),
        (file(1, "{'descr': '<f8', 'shape': (1, 1)}", &[]), "key 'fortran_order' is missing"),
        (file(1, "{'shape': (1, 1), 'shape': (1, 1)}", &[]), "key 'shape' is there twice"),
        (file(1, "{'form': (1, 1)}", &[]), "unknown key 'form'"),
        (file(1, "{'shape': (1, 1)", &[]), "expected ',' or '}'"),
        (file(1, "{'shape': (1, 1)} x", &[]), "expected only spaces"),
        (b"PK\x03\x04 an .npz file".to_vec(), "is not a .npy file"),
        (b"\x93NUM".to_vec(), "is not a .npy file"),
        (b"\x93NUMPY\x04\x00\x00\x00\x00\x00".to_vec(), "version 4.0"),
        (b"\x93NUMPY\x01\x00\x76\x00{".to_vec(), "claims 118 bytes, but 1 are left"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec(), "claims 4294967295 bytes"),
    ];
    for (bytes, expected) in cases {
        let message = scratch.error(&bytes);
        assert!(message.contains(expected), "{message:?} has no {expected:?}");
    }
    assert!(read::<f64>("/does/not/exist.npy").unwrap_err().to_string().contains("/does/not/exist.npy"));
}

#[test]
fn every_truncation_of_a_file_is_refused() {
    let (scratch, whole) = (Scratch::new(), numpy_2x3());
    for len in 0..whole.len() {
        scratch.error(&whole[..len]);
    }
    scratch.error(&[whole, vec![0]].concat());
}

/// Splitmix64 of the generator, as a source of mutations with a fixed seed.
fn random(step: usize, place: usize, below: usize) -> usize {
    usize::try_from(generate::hash(11, step as u64, place as u64) % below as u64).unwrap()
}

#[test]
fn ten_thousand_mutated_files_are_read_or_refused() {
    let scratch = Scratch::new();
    let alphabet = b"{}()'\",:<>fiu0123456789 L\n\x00\xff\x93TrueFalse";
    let (mut read_well, mut refused) = (0, 0);
    for step in 0..10_000 {
        let mut bytes = numpy_2x3();
        for change in 0..1 + random(step, 0, 4) {
            // Half of the changes belong into the header's 70 bytes, where there is something to break.
            let within = if random(step, 100 + change, 2) == 0 { bytes.len() } else { bytes.len().min(70) };
            if within == 0 {
                break;
            }
            let at = random(step, 10 + change, within);
            let byte = alphabet[random(step, 20 + change, alphabet.len())];
            match random(step, 30 + change, 5) {
                0 => bytes.insert(at, byte),
                1 => drop(bytes.remove(at)),
                2 => bytes.truncate(at),
                _ => bytes[at] = byte,
            }
        }
        match scratch.read(&bytes) {
            Ok(matrix) => {
                let (rows, cols) = matrix.shape();
                let dtype = NpyReader::open(scratch.path()).unwrap().dtype();
                assert!(rows * cols * dtype.size_bytes() <= bytes.len());
                read_well += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(read_well > 100 && refused > 1000, "{read_well} read, {refused} refused");
}

#[test]
fn blocks_written_in_any_order_make_the_file() {
    let scratch = Scratch::new();
    let whole = generate::matrix::<f32>(5, 7, 9).unwrap();
    let mut writer = NpyWriter::<f32>::create(scratch.path(), 7, 9).unwrap();
    writer.write_block(3..7, 4..9, &whole.block(3..7, 4..9)).unwrap();
    writer.write_block(3..7, 0..4, &whole.block(3..7, 0..4)).unwrap();
    writer.write_rows(0, whole.row_slice(0..3)).unwrap();
    assert!(!scratch.path().exists(), "the name is taken only when the file is complete");
    writer.finish().unwrap();
    assert_eq!(read::<f32>(scratch.path()).unwrap(), whole);
    assert_eq!(names(scratch.0.path()), ["m.npy"]);
}

#[test]
fn an_unfinished_file_leaves_the_old_one_and_no_rest() {
    let scratch = Scratch::new();
    fs::write(scratch.path(), "old").unwrap();
    let mut writer = NpyWriter::<f64>::create(scratch.path(), 2, 2).unwrap();
    writer.write_rows(0, &[1.0, 2.0]).unwrap();
    let message = writer.finish().unwrap_err().to_string();
    assert!(message.contains("2 of 4 numbers"), "{message}");
    drop(NpyWriter::<f64>::create(scratch.path(), 2, 2).unwrap());
    assert_eq!(fs::read(scratch.path()).unwrap(), b"old");
    assert_eq!(names(scratch.0.path()), ["m.npy"]);
}

#[test]
fn what_cannot_be_a_file_is_refused_before_any_work() {
    let scratch = Scratch::new();
    assert!(matches!(NpyWriter::<f64>::create(scratch.path(), 0, 2), Err(NpyWriteError::Shape { .. })));
    assert!(matches!(
        NpyWriter::<f64>::create(scratch.path(), usize::MAX, 2),
        Err(NpyWriteError::Shape { .. })
    ));
    assert!(matches!(NpyWriter::<f64>::create("/dev/null", 1, 1), Err(NpyWriteError::Io { .. })));
    assert!(matches!(NpyWriter::<f64>::create(scratch.0.path(), 1, 1), Err(NpyWriteError::Io { .. })));
    assert!(matches!(NpyWriter::<f64>::create("/no/such/dir/m.npy", 1, 1), Err(NpyWriteError::Io { .. })));
}

#[test]
fn rows_of_a_file_bigger_than_a_chunk_are_the_rows_of_the_matrix() {
    let scratch = Scratch::new();
    let whole = generate::matrix::<f64>(9, 300, 257).unwrap();
    write(scratch.path(), &whole).unwrap();
    let reader = NpyReader::open(scratch.path()).unwrap();
    assert_eq!((reader.rows(), reader.cols(), reader.dtype()), (300, 257, Dtype::F64));
    assert_eq!(reader.read_rows::<f64>(10..290).unwrap(), whole.row_slice(10..290));
    let narrow: Vec<f32> = reader.read_rows(299..300).unwrap();
    assert_eq!(narrow, whole.convert::<f32>().unwrap().row_slice(299..300));
    assert!(reader.read_rows::<f64>(300..300).unwrap().is_empty());
}

fn names(dir: &Path) -> Vec<String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_written_is_read_back(rows in 1usize..30, cols in 1usize..30, seed: u64) {
        let scratch = Scratch::new();
        let wide = generate::matrix::<f64>(seed, rows, cols).unwrap();
        write(scratch.path(), &wide).unwrap();
        prop_assert_eq!(read::<f64>(scratch.path()).unwrap(), wide);
        let narrow = generate::matrix::<f32>(seed, rows, cols).unwrap();
        write(scratch.path(), &narrow).unwrap();
        prop_assert_eq!(read::<f32>(scratch.path()).unwrap(), narrow);
    }
}
