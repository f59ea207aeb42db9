//! Atoms from files: LAMMPS data (`data.rs`) and extended XYZ (`xyz.rs`). Nothing in them is trusted: counts are compared
//! with what is there, what is not understood is refused, and an error names the line.

mod data;
#[cfg(test)]
mod tests;
mod xyz;

use crate::text_file::{FileError, read_lossy, wrong_line};
use std::path::Path;

/// Atoms of a file, with the low corner of their box in the origin.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Atoms {
    /// Lengths of the box in A.
    pub lengths: [f64; 3],
    /// Which axes are periodic, if the file says so.
    pub periodic: Option<[bool; 3]>,
    /// Numbers of the atoms: those of the file, or where it has none the places in its list from 1; no two alike.
    pub ids: Vec<u64>,
    /// Places in A.
    pub at: Vec<[f64; 3]>,
    /// Numbers of the species in the potential.
    pub species: Vec<u8>,
}

/// Most atoms of a file.
const MOST: usize = 1 << 30;

/// Largest number of an atom: that of LAMMPS.
const LARGEST_ID: u64 = i64::MAX as u64;

/// How many lengths of its box an atom may be away from it; it is a wrong number rather than an atom that went round.
const FARTHEST: f64 = 1e6;

/// Reads atoms, in the format that the name ends with: `.xyz` or `.extxyz`, else LAMMPS data. `elements` are those of the
/// potential in their order; LAMMPS' type 1 is the first.
///
/// # Errors
/// The file cannot be read, or the first line that is wrong.
pub fn read(file: &Path, elements: &[String]) -> Result<Atoms, FileError> {
    let text = read_lossy(file)?;
    let is_xyz = file.extension().is_some_and(|end| end == "xyz" || end == "extxyz");
    let read = if is_xyz { xyz::read(&text, elements) } else { data::read(&text, elements) };
    read.and_then(List::checked).map_err(|Wrong(line, message)| wrong_line(file, line, message))
}

/// A line, from 1, and what is wrong with it.
#[derive(Debug)]
struct Wrong(usize, String);

/// Atoms, and the line that each stands in.
#[derive(Debug, Default)]
struct List {
    atoms: Atoms,
    lines: Vec<usize>,
}

impl List {
    fn push(&mut self, line: usize, id: u64, at: [f64; 3], species: usize) {
        self.atoms.ids.push(id);
        self.atoms.at.push(at);
        self.atoms.species.push(species as u8);
        self.lines.push(line);
    }

    /// The atoms, if no two have one number, and all are somewhere near their box.
    fn checked(self) -> Result<Atoms, Wrong> {
        let Self { atoms, lines } = self;
        let mut order: Vec<(u64, usize)> = atoms.ids.iter().copied().zip(0..).collect();
        order.sort_unstable();
        if let Some(twice) = order.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Wrong(lines[twice[1].1], format!("there is an atom {} already", twice[0].0)));
        }
        for (index, at) in atoms.at.iter().enumerate() {
            if let Some(axis) = (0..3).find(|&k| at[k].abs() > FARTHEST * atoms.lengths[k]) {
                let axis = ['x', 'y', 'z'][axis];
                return Err(Wrong(lines[index], format!("the atom is far outside its box along {axis}")));
            }
        }
        Ok(atoms)
    }
}

fn number(word: Option<&str>, line: usize, what: &str) -> Result<f64, Wrong> {
    let word = word.ok_or_else(|| Wrong(line, format!("{what} is missing")))?;
    let value = word.parse::<f64>().ok().filter(|value| value.is_finite());
    value.ok_or_else(|| Wrong(line, format!("`{word}` is no finite number for {what}")))
}

fn whole(
    word: Option<&str>,
    line: usize,
    what: &str,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, Wrong> {
    let word = word.ok_or_else(|| Wrong(line, format!("{what} is missing")))?;
    word.parse::<u64>().ok().filter(|value| range.contains(value)).ok_or_else(|| {
        let (from, to) = (range.start(), range.end());
        Wrong(line, format!("`{word}` is no whole number from {from} to {to} for {what}"))
    })
}

/// How a box that is not along the axes can be mended.
const RIGHT_ANGLES: &str = "only boxes along x, y and z are read; take a cell with right angles that repeats as well (for \
                            lattices `orient` in [crystal] makes one), or end these axes with free surfaces";

fn box_of(lengths: [f64; 3], line: usize) -> Result<[f64; 3], Wrong> {
    if lengths.iter().all(|length| *length > 0.0 && *length < 1e9) {
        return Ok(lengths);
    }
    Err(Wrong(line, format!("a box of {lengths:?} A; lengths have to be positive")))
}
