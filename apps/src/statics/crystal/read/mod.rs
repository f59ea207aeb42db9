//! Atoms from files: LAMMPS data (`atom_style atomic`) and extended XYZ. Nothing in them is trusted: counts are compared
//! with what is there, and an error names the line.

use crate::statics::file::{FileError, read_text, wrong_line};
use std::path::Path;

/// Atoms of a file, with the low corner of their box in the origin.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Atoms {
    /// Lengths of the box in A.
    pub lengths: [f64; 3],
    /// Which axes are periodic, if the file says so.
    pub periodic: Option<[bool; 3]>,
    /// Numbers of the atoms: those of LAMMPS, or the places in the list from 1; no two alike.
    pub ids: Vec<u64>,
    /// Places in A.
    pub at: Vec<[f64; 3]>,
    /// Numbers of the species in the potential.
    pub species: Vec<u8>,
}

/// Most atoms of a file.
const MOST: usize = 1 << 30;

/// Reads atoms, in the format that the name ends with: `.xyz` or `.extxyz`, else LAMMPS data. `elements` are those of the
/// potential in their order; LAMMPS' type 1 is the first.
///
/// # Errors
/// The file cannot be read, or the first line that is wrong.
pub fn read(file: &Path, elements: &[String]) -> Result<Atoms, FileError> {
    let text = read_text(file)?;
    let is_xyz = file.extension().is_some_and(|end| end == "xyz" || end == "extxyz");
    let read = if is_xyz { xyz(&text, elements) } else { data(&text, elements) };
    let atoms = read.and_then(|(atoms, lines)| distinct(atoms, &lines));
    atoms.map_err(|Wrong(line, message)| wrong_line(file, line, message))
}

/// A line, and what is wrong with it.
struct Wrong(usize, String);

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

/// No two atoms have one number, and all are in the box up to one length beside it.
fn distinct(atoms: Atoms, lines: &[usize]) -> Result<Atoms, Wrong> {
    let mut order: Vec<(u64, usize)> = atoms.ids.iter().copied().zip(0..).collect();
    order.sort_unstable();
    if let Some(twice) = order.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(Wrong(lines[twice[1].1], format!("there is an atom {} already", twice[0].0)));
    }
    for (index, at) in atoms.at.iter().enumerate() {
        let far = (0..3).find(|&k| at[k] < -atoms.lengths[k] || at[k] > 2.0 * atoms.lengths[k]);
        if let Some(axis) = far {
            let sentence = format!("the atom is far outside its box along {}", ['x', 'y', 'z'][axis]);
            return Err(Wrong(lines[index], sentence));
        }
    }
    Ok(atoms)
}

/// Extended XYZ: a count; `Lattice="..." Properties=... pbc="..."`; a line per atom.
fn xyz(text: &str, elements: &[String]) -> Result<(Atoms, Vec<usize>), Wrong> {
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let first = lines.next().map(|(_, line)| line.trim());
    let count = whole(first, 1, "the number of atoms", 1..=MOST as u64)? as usize;
    let comment = lines.next().map_or("", |(_, line)| line);
    let Some(lattice) = value_of(comment, "Lattice") else {
        return Err(Wrong(2, "no Lattice=\"...\": only extended XYZ says how large the box is".into()));
    };
    let edges = lattice.split_whitespace().map(|word| number(Some(word), 2, "Lattice"));
    let edges: Vec<f64> = edges.collect::<Result<_, _>>()?;
    if edges.len() != 9 {
        return Err(Wrong(2, format!("Lattice=\"{lattice}\" has {} numbers and not nine", edges.len())));
    }
    if [1, 2, 3, 5, 6, 7].iter().any(|&k| edges[k].abs() > 1e-9) {
        return Err(Wrong(2, format!("Lattice=\"{lattice}\" is a tilted box: {RIGHT_ANGLES}")));
    }
    let lengths = box_of([edges[0], edges[4], edges[8]], 2)?;
    let origin: Vec<f64> = match value_of(comment, "Origin") {
        Some(origin) => {
            origin.split_whitespace().map(|w| number(Some(w), 2, "Origin")).collect::<Result<_, _>>()?
        }
        None => vec![0.0; 3],
    };
    let (species_at, place_at) = columns(value_of(comment, "Properties").unwrap_or("species:S:1:pos:R:3"))?;
    let pbc = value_of(comment, "pbc")
        .map(|pbc| pbc.split_whitespace().map(|w| w.starts_with(['T', 't', '1'])).collect());
    let mut atoms = Atoms { lengths, ..Atoms::default() };
    atoms.periodic = pbc.and_then(|pbc: Vec<bool>| pbc.try_into().ok());
    let mut numbers = Vec::new();
    for index in 0..count {
        let Some((line, words)) = lines.next() else {
            return Err(Wrong(index + 2, format!("the file ends after {index} of {count} atoms")));
        };
        let words: Vec<&str> = words.split_whitespace().collect();
        let name = words.get(species_at).copied();
        let name = name.ok_or_else(|| Wrong(line, "the element of an atom is missing".into()))?;
        let Some(species) = elements.iter().position(|element| element == name) else {
            let known = elements.join(", ");
            let sentence = format!("`{name}` is none of the elements {known}; name all with --element");
            return Err(Wrong(line, sentence));
        };
        let mut at = [0.0; 3];
        for (k, x) in at.iter_mut().enumerate() {
            let low = origin.get(k).copied().unwrap_or(0.0);
            *x = number(words.get(place_at + k).copied(), line, "a coordinate")? - low;
        }
        atoms.push(index as u64 + 1, at, species);
        numbers.push(line);
    }
    Ok((atoms, numbers))
}

/// What stands after `key=` in the second line of extended XYZ, without quotes.
fn value_of<'a>(comment: &'a str, key: &str) -> Option<&'a str> {
    let starts = comment.match_indices(key).map(|(at, _)| at);
    let whole_word = |at: &usize| *at == 0 || comment.as_bytes()[at - 1].is_ascii_whitespace();
    starts.filter(whole_word).find_map(|at| {
        let value = comment[at + key.len()..].strip_prefix('=')?;
        match value.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next(),
            None => value.split_whitespace().next(),
        }
    })
}

/// The columns of the species and of the first coordinate.
fn columns(properties: &str) -> Result<(usize, usize), Wrong> {
    let words: Vec<&str> = properties.split(':').collect();
    let (mut column, mut species, mut place) = (0, None, None);
    for property in words.chunks(3) {
        let [name, kind, count] = property else {
            return Err(Wrong(2, format!("Properties={properties}: each takes name:kind:count")));
        };
        let count = whole(Some(count), 2, "a count of columns", 1..=1000)? as usize;
        match (*name, *kind) {
            ("species", "S") => species = Some(column),
            ("pos", "R") if count == 3 => place = Some(column),
            _ => {}
        }
        column += count;
    }
    let missing = || Wrong(2, format!("Properties={properties}: species:S:1 and pos:R:3 are needed"));
    Ok((species.ok_or_else(missing)?, place.ok_or_else(missing)?))
}

fn box_of(lengths: [f64; 3], line: usize) -> Result<[f64; 3], Wrong> {
    if lengths.iter().all(|length| *length > 0.0 && *length < 1e9) {
        return Ok(lengths);
    }
    Err(Wrong(line, format!("a box of {lengths:?} A; lengths have to be positive")))
}

impl Atoms {
    fn push(&mut self, id: u64, at: [f64; 3], species: usize) {
        self.ids.push(id);
        self.at.push(at);
        self.species.push(species as u8);
    }
}

/// What the header of a LAMMPS data file says.
#[derive(Default)]
struct Header {
    atoms: Option<usize>,
    sides: [Option<[f64; 2]>; 3],
}

impl Header {
    /// Takes in a line before the first section.
    fn take(&mut self, line: usize, text: &str) -> Result<(), Wrong> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            [count, "atoms"] => {
                self.atoms = Some(whole(Some(count), line, "the number of atoms", 1..=MOST as u64)? as usize);
            }
            [low, high, from, to] if from.ends_with("lo") && to.ends_with("hi") => {
                let axis = ["xlo", "ylo", "zlo"].iter().position(|name| *name == from);
                let axis = axis.ok_or_else(|| Wrong(line, format!("`{from}` is no side of a box")))?;
                let sides = [number(Some(low), line, "a side")?, number(Some(high), line, "a side")?];
                self.sides[axis] = Some(sides);
            }
            [xy, xz, yz, "xy", "xz", "yz"] => {
                for tilt in [xy, xz, yz] {
                    if number(Some(tilt), line, "a tilt")? != 0.0 {
                        return Err(Wrong(line, format!("a tilted box: {RIGHT_ANGLES}")));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn corner_and_lengths(&self, line: usize) -> Result<([f64; 3], [f64; 3]), Wrong> {
        let [Some(x), Some(y), Some(z)] = self.sides else {
            return Err(Wrong(
                line,
                "the file does not say xlo xhi, ylo yhi and zlo zhi before its atoms".into(),
            ));
        };
        let sides = [x, y, z];
        Ok((sides.map(|side| side[0]), box_of(sides.map(|side| side[1] - side[0]), line)?))
    }
}

/// Words with which a section begins. All but `Atoms` are skipped.
const SECTIONS: [&str; 6] = ["Atoms", "Velocities", "Masses", "Pair", "PairIJ", "Bonds"];

/// LAMMPS data: a title, a header, and the section `Atoms # atomic` of lines `id type x y z [ix iy iz]`.
fn data(text: &str, elements: &[String]) -> Result<(Atoms, Vec<usize>), Wrong> {
    let (mut header, mut section, mut atoms, mut numbers) =
        (Header::default(), None, Atoms::default(), Vec::new());
    let (mut low, mut line) = ([0.0; 3], 0);
    for (index, full) in text.lines().enumerate() {
        line = index + 1;
        let (body, comment) =
            full.split_once('#').map_or((full, ""), |(body, comment)| (body, comment.trim()));
        let mut words = body.split_whitespace();
        let Some(first) = words.next() else { continue };
        if line == 1 {
            continue;
        }
        if let Some(name) = SECTIONS.iter().find(|name| **name == first) {
            section = Some(*name);
            if *name == "Atoms" {
                if !["", "atomic"].contains(&comment) {
                    return Err(Wrong(line, format!("atom_style {comment}; only atomic is read")));
                }
                (low, atoms.lengths) = header.corner_and_lengths(line)?;
            }
            continue;
        }
        match section {
            None => header.take(line, body)?,
            Some("Atoms") => {
                let id = whole(Some(first), line, "the id of an atom", 0..=u64::MAX - 1)?;
                let species = whole(words.next(), line, "the type of an atom", 1..=u64::MAX)?;
                if species > elements.len() as u64 {
                    let known = elements.join(", ");
                    let sentence =
                        format!("type {species} has no element: there are {known}; name all with --element");
                    return Err(Wrong(line, sentence));
                }
                let mut at = [0.0; 3];
                for (x, low) in at.iter_mut().zip(low) {
                    *x = number(words.next(), line, "a coordinate")? - low;
                }
                atoms.push(id, at, species as usize - 1);
                numbers.push(line);
            }
            Some(_) => {}
        }
    }
    match header.atoms {
        Some(count) if count == atoms.ids.len() => Ok((atoms, numbers)),
        Some(count) => {
            Err(Wrong(line, format!("the header promises {count} atoms, and {} are there", atoms.ids.len())))
        }
        None => Err(Wrong(
            line.max(1),
            "no line `N atoms`: is this a LAMMPS data file? (extended XYZ ends with .xyz)".into(),
        )),
    }
}
