//! LAMMPS data, as `read_data` in its manual describes it: a title, a header of `value keyword` lines, and sections, each
//! a line with its name, a line that is skipped, and rows.

use super::{LARGEST_ID, List, MOST, RIGHT_ANGLES, Wrong, box_of, number, whole};
use crate::text_file::split_comment;

/// Which words of a row of `Atoms` hold what in an atom style.
struct Style {
    names: &'static [&'static str],
    /// Words between the id and the type.
    before_type: usize,
    /// Words between the type and x.
    before_place: usize,
    /// Words after z.
    after: usize,
}

const fn style(names: &'static [&'static str], [before_type, before_place, after]: [usize; 3]) -> Style {
    Style { names, before_type, before_place, after }
}

/// The styles that are read, [`ATOMIC`] first. Charges, molecules and the like mean nothing to an embedded-atom potential.
const STYLES: [Style; 6] = [
    style(&["atomic"], [0, 0, 0]),
    style(&["charge"], [0, 1, 0]),
    style(&["molecular", "bond", "angle"], [1, 0, 0]),
    style(&["full"], [1, 1, 0]),
    style(&["sphere"], [0, 2, 0]),
    style(&["dipole"], [0, 1, 3]),
];

/// The style of a section `Atoms` that names none.
const ATOMIC: &Style = &STYLES[0];

impl Style {
    /// The style that the comment after `Atoms` names.
    fn of(comment: &str, line: usize) -> Result<&'static Self, Wrong> {
        let Some(name) = comment.split_whitespace().next() else { return Ok(ATOMIC) };
        STYLES.iter().find(|style| style.names.contains(&name)).ok_or_else(|| {
            let known: Vec<&str> = STYLES.iter().flat_map(|style| style.names).copied().collect();
            let known = known.join(", ");
            Wrong(line, format!("atom_style {name} is not read; write the atoms in one of {known}"))
        })
    }

    /// Words of a row without image flags.
    fn words(&self) -> usize {
        5 + self.before_type + self.before_place + self.after
    }

    fn take(
        &self,
        row: &str,
        line: usize,
        low: [f64; 3],
        types: &Types<'_>,
        list: &mut List,
    ) -> Result<(), Wrong> {
        let words: Vec<&str> = row.split_whitespace().collect();
        let (few, name) = (self.words(), self.names[0]);
        if words.len() != few && words.len() != few + 3 {
            let hint =
                if std::ptr::eq(self, ATOMIC) { "; name another style as in `Atoms # charge`" } else { "" };
            let many = few + 3;
            let got = words.len();
            let sentence = format!(
                "{got} words, but an atom of style {name} has {few}, or {many} with image flags{hint}"
            );
            return Err(Wrong(line, sentence));
        }
        let place = 2 + self.before_type + self.before_place;
        let id = whole(Some(words[0]), line, "the id of an atom", 0..=LARGEST_ID)?;
        let species = types.species(words[1 + self.before_type], line)?;
        let mut at = [0.0; 3];
        for (k, x) in at.iter_mut().enumerate() {
            *x = number(Some(words[place + k]), line, "a coordinate")? - low[k];
        }
        if let Some(flag) = words[few..].iter().find(|flag| flag.parse::<i64>().is_err()) {
            return Err(Wrong(line, format!("`{flag}` is no whole number for an image flag")));
        }
        list.push(line, id, at, species);
        Ok(())
    }
}

/// What types of atoms there are.
struct Types<'a> {
    elements: &'a [String],
    /// How many the header promises, if it says.
    promised: Option<u64>,
}

impl Types<'_> {
    /// The number of the species of a type.
    fn species(&self, word: &str, line: usize) -> Result<usize, Wrong> {
        let found = whole(Some(word), line, "the type of an atom", 1..=u64::MAX)?;
        if let Some(promised) = self.promised.filter(|promised| found > *promised) {
            return Err(Wrong(line, format!("type {found}, but the header promises {promised} atom types")));
        }
        if found > self.elements.len() as u64 {
            let known = self.elements.join(", ");
            let sentence = format!("type {found} has no element: there are {known}; name all with --element");
            return Err(Wrong(line, sentence));
        }
        Ok(found as usize - 1)
    }
}

/// What the header says.
#[derive(Default)]
struct Header {
    atoms: Option<usize>,
    types: Option<u64>,
    sides: [Option<[f64; 2]>; 3],
}

/// What a count in the header may be of that must not be there: an embedded-atom potential does not know of it.
const UNKNOWN_TO_METALS: [&str; 8] =
    ["bonds", "angles", "dihedrals", "impropers", "ellipsoids", "lines", "triangles", "bodies"];

impl Header {
    /// Takes in a line before the first section; false if it is none of the header's.
    fn take(&mut self, line: usize, text: &str) -> Result<bool, Wrong> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            [count, "atoms"] => {
                self.atoms = Some(whole(Some(count), line, "the number of atoms", 1..=MOST as u64)? as usize);
            }
            [count, "atom", "types"] => {
                self.types = Some(whole(Some(count), line, "the number of atom types", 1..=MOST as u64)?);
            }
            [low, high, from @ ("xlo" | "ylo" | "zlo"), to @ ("xhi" | "yhi" | "zhi")]
                if from[..1] == to[..1] =>
            {
                let sides = [number(Some(low), line, "a side")?, number(Some(high), line, "a side")?];
                self.sides[usize::from(from.as_bytes()[0] - b'x')] = Some(sides);
            }
            [xy, xz, yz, "xy", "xz", "yz"] => {
                for tilt in [xy, xz, yz] {
                    if number(Some(tilt), line, "a tilt")? != 0.0 {
                        return Err(Wrong(line, format!("a tilted box: {RIGHT_ANGLES}")));
                    }
                }
            }
            [_, _, _, "avec" | "bvec" | "cvec"] | [_, _, _, "abc", "origin"] => {
                return Err(Wrong(line, format!("a general triclinic box: {RIGHT_ANGLES}")));
            }
            [count, what] if UNKNOWN_TO_METALS.contains(&what) => {
                if whole(Some(count), line, &format!("the number of {what}"), 0..=u64::MAX)? > 0 {
                    return Err(Wrong(line, not_of_metals(what)));
                }
            }
            [_, "bond" | "angle" | "dihedral" | "improper", "types"] | [_, "extra", _, "per", "atom"] => {}
            _ => return Ok(false),
        }
        Ok(true)
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

fn not_of_metals(what: &str) -> String {
    format!("{what} are nothing that an embedded-atom potential knows of; take them out of the file")
}

/// A section of the body.
#[derive(Clone, Copy)]
enum Section {
    Atoms(&'static Style, [f64; 3]),
    /// What has no effect on a relaxation.
    Skipped,
}

impl Section {
    /// The section that a line begins, if it begins one.
    fn begin(name: &str, comment: &str, line: usize, header: &Header) -> Result<Option<Self>, Wrong> {
        let words: Vec<&str> = name.split_whitespace().collect();
        let wrong = |sentence| Err(Wrong(line, sentence));
        match words[..] {
            ["Atoms"] => {
                let (low, _) = header.corner_and_lengths(line)?;
                Ok(Some(Self::Atoms(Style::of(comment, line)?, low)))
            }
            ["Velocities" | "Masses"] | [.., "Coeffs"] => Ok(Some(Self::Skipped)),
            [what] if UNKNOWN_TO_METALS.contains(&what.to_ascii_lowercase().as_str()) => {
                wrong(not_of_metals(&what.to_ascii_lowercase()))
            }
            [.., "Type", "Labels"] => {
                wrong("type labels are not read; give types as numbers, without labels".into())
            }
            [first, ..] if first.starts_with(|c: char| c.is_alphabetic()) => {
                wrong(format!("`{}` begins no section of LAMMPS data", name.trim()))
            }
            _ => Ok(None),
        }
    }
}

/// All atoms of a file.
pub(super) fn read(text: &str, elements: &[String]) -> Result<List, Wrong> {
    let (mut header, mut section, mut list) = (Header::default(), None, List::default());
    let mut lines = text.lines().zip(1..).skip(1);
    let mut last = 1;
    while let Some((full, line)) = lines.next() {
        last = line;
        let (body, comment) = split_comment(full);
        if body.trim().is_empty() || section.is_none() && header.take(line, body)? {
            continue;
        }
        if let Some(begun) = Section::begin(body, comment, line, &header)? {
            if let Section::Atoms(..) = begun {
                if !list.lines.is_empty() {
                    return Err(Wrong(line, "there are Atoms already".into()));
                }
                (_, list.atoms.lengths) = header.corner_and_lengths(line)?;
            }
            section = Some(begun);
            // Whatever it says, as LAMMPS does.
            lines.next();
            continue;
        }
        match section {
            None => {
                return Err(Wrong(line, format!("`{}` is no line of a header of LAMMPS data", body.trim())));
            }
            Some(Section::Atoms(style, low)) => {
                style.take(body, line, low, &Types { elements, promised: header.types }, &mut list)?;
            }
            Some(Section::Skipped) => {}
        }
    }
    match header.atoms {
        Some(count) if count == list.lines.len() => Ok(list),
        Some(count) => {
            let there = list.lines.len();
            let sentence = format!(
                "the header promises {count} atoms, and {there} are there (the line after `Atoms` does not count)"
            );
            Err(Wrong(last, sentence))
        }
        None => Err(Wrong(
            last,
            "no line `N atoms`: is this a LAMMPS data file? (extended XYZ ends with .xyz)".into(),
        )),
    }
}
