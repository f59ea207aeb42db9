//! Extended XYZ, as published (github.com/libAtoms/extxyz): a count; keys with values, of which `Lattice`, `Origin`, `pbc`
//! and `Properties` are heard; a line for each atom. One frame.

use super::{LARGEST_ID, List, MOST, RIGHT_ANGLES, Wrong, box_of, number, whole};
use std::collections::BTreeMap;

/// The keys that say something here.
const HEARD: [&str; 4] = ["Lattice", "Origin", "pbc", "Properties"];

/// All atoms of a file.
pub(super) fn read(text: &str, elements: &[String]) -> Result<List, Wrong> {
    let mut lines = text.lines().zip(1..);
    let first = lines.next().map(|(line, _)| line.trim());
    let count = whole(first, 1, "the number of atoms", 1..=MOST as u64)? as usize;
    let keys = keys(lines.next().map_or("", |(line, _)| line)).map_err(|sentence| Wrong(2, sentence))?;
    let value = |key: &str| keys.get(key).map(String::as_str);
    let Some(lattice) = value("Lattice") else {
        return Err(Wrong(2, "no Lattice=\"...\": only extended XYZ says how large the box is".into()));
    };
    let mut list = List::default();
    list.atoms.lengths = lengths(lattice)?;
    list.atoms.periodic = value("pbc").map(periodic).transpose()?;
    let low = value("Origin").map_or(Ok([0.0; 3]), |origin| numbers(origin, "Origin"))?;
    let columns = Columns::of(value("Properties"))?;
    for index in 0..count {
        let Some((row, line)) = lines.next() else {
            return Err(Wrong(index + 2, format!("the file ends after {index} of {count} atoms")));
        };
        let (id, at, species) = columns.atom(row, line, elements)?;
        let at = std::array::from_fn(|k| at[k] - low[k]);
        list.push(line, id.unwrap_or(index as u64 + 1), at, species);
    }
    match lines.find(|(rest, _)| !rest.trim().is_empty()) {
        None => Ok(list),
        Some((_, line)) => Err(Wrong(
            line,
            format!("the file goes on after its {count} atoms; one frame is read, not several"),
        )),
    }
}

/// The keys that are heard and their values, without quotes.
fn keys(comment: &str) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    let mut rest = comment.trim();
    while !rest.is_empty() {
        let (key, after) = word(rest)?;
        let Some(value) = after.trim_start().strip_prefix('=') else {
            // A word by itself, as in a comment for people.
            rest = after.trim_start();
            continue;
        };
        let (value, after) = word(value.trim_start())?;
        rest = after.trim_start();
        let Some(heard) = HEARD.iter().find(|heard| heard.eq_ignore_ascii_case(&key)) else { continue };
        if key != *heard {
            return Err(format!("`{key}` is written {heard} in extended XYZ"));
        }
        if value.trim().is_empty() {
            return Err(format!("{key} has no value"));
        }
        if found.insert(key.clone(), value).is_some() {
            return Err(format!("{key} is there twice"));
        }
    }
    Ok(found)
}

/// A key or a value, and what follows it: bare, or in quotes, braces or brackets.
fn word(text: &str) -> Result<(String, &str), String> {
    let open = || Err(format!("what begins with {} has no end", text.chars().take(20).collect::<String>()));
    match text.chars().next() {
        Some('"') => {
            let (mut value, mut chars) = (String::new(), text.char_indices().skip(1));
            while let Some((at, c)) = chars.next() {
                match c {
                    '"' => return Ok((value, &text[at + 1..])),
                    '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
                    c => value.push(c),
                }
            }
            open()
        }
        Some('{') => text.split_once('}').map_or_else(open, |(value, after)| Ok((value[1..].into(), after))),
        Some('[') => {
            let mut depth = 0_usize;
            for (at, c) in text.char_indices() {
                match c {
                    '[' => depth += 1,
                    ']' => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    return Ok((text[..=at].into(), &text[at + 1..]));
                }
            }
            open()
        }
        _ => {
            let end = text.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(text.len());
            // A `=` without a key before it.
            let end = if end == 0 { text.chars().next().map_or(0, char::len_utf8) } else { end };
            Ok((text[..end].into(), &text[end..]))
        }
    }
}

/// The members of a list, old style or new.
fn members(list: &str) -> impl Iterator<Item = &str> {
    list.split(|c: char| c.is_whitespace() || ",[]".contains(c)).filter(|word| !word.is_empty())
}

/// So many numbers.
fn numbers<const N: usize>(list: &str, key: &str) -> Result<[f64; N], Wrong> {
    let found: Vec<f64> = members(list).map(|word| real(Some(word), 2, key)).collect::<Result<_, _>>()?;
    let count = found.len();
    found.try_into().map_err(|_| Wrong(2, format!("{key}=\"{list}\" has {count} numbers and not {N}")))
}

/// A number, in which `d` is an exponent too.
fn real(word: Option<&str>, line: usize, what: &str) -> Result<f64, Wrong> {
    let exponent = word.map(|word| word.replace(['d', 'D'], "e"));
    number(exponent.as_deref(), line, what).map_err(|wrong| match word {
        Some(word) => Wrong(line, format!("`{word}` is no finite number for {what}")),
        None => wrong,
    })
}

fn lengths(lattice: &str) -> Result<[f64; 3], Wrong> {
    let edges: [f64; 9] = numbers(lattice, "Lattice")?;
    if [1, 2, 3, 5, 6, 7].iter().any(|&k| edges[k].abs() > 1e-9) {
        return Err(Wrong(2, format!("Lattice=\"{lattice}\" is a tilted box: {RIGHT_ANGLES}")));
    }
    box_of([edges[0], edges[4], edges[8]], 2)
}

fn periodic(pbc: &str) -> Result<[bool; 3], Wrong> {
    let member = |word: &str| match word {
        "T" | "true" | "True" | "TRUE" | "1" => Some(true),
        "F" | "false" | "False" | "FALSE" | "0" => Some(false),
        _ => None,
    };
    let found: Option<Vec<bool>> = members(pbc).map(member).collect();
    let found = found.and_then(|found| found.try_into().ok());
    found.ok_or_else(|| {
        Wrong(2, format!("pbc=\"{pbc}\": T or F for each of x, y and z is needed, as in \"T T F\""))
    })
}

/// Where in a row what stands.
struct Columns {
    /// Columns of a row; more may follow where no Properties say how many there are.
    count: usize,
    is_exact: bool,
    species: usize,
    place: usize,
    id: Option<usize>,
}

impl Columns {
    fn of(properties: Option<&str>) -> Result<Self, Wrong> {
        let Some(properties) = properties else {
            return Ok(Self { count: 4, is_exact: false, species: 0, place: 1, id: None });
        };
        let wrong = |sentence: &str| Wrong(2, format!("Properties={properties}: {sentence}"));
        let words: Vec<&str> = properties.split(':').collect();
        let (mut column, mut heard) = (0, BTreeMap::new());
        for property in words.chunks(3) {
            let &[name, kind @ ("S" | "I" | "R" | "L"), count] = property else {
                return Err(wrong("each takes name:kind:count, the kind one of S, I, R, L"));
            };
            let count = whole(Some(count), 2, "a count of columns", 1..=1000)? as usize;
            if ["species", "pos", "id"].contains(&name) && heard.insert(name, (kind, count, column)).is_some()
            {
                return Err(wrong(&format!("{name} is there twice")));
            }
            column += count;
        }
        let (Some(&("S", 1, species)), Some(&("R", 3, place))) = (heard.get("species"), heard.get("pos"))
        else {
            return Err(wrong("species:S:1 and pos:R:3 are needed"));
        };
        let id = match heard.get("id") {
            None => None,
            Some(&("I", 1, id)) => Some(id),
            Some(_) => return Err(wrong("the numbers of atoms are id:I:1")),
        };
        Ok(Self { count: column, is_exact: true, species, place, id })
    }

    /// Number, place and species of the atom of a row.
    fn atom(
        &self,
        row: &str,
        line: usize,
        elements: &[String],
    ) -> Result<(Option<u64>, [f64; 3], usize), Wrong> {
        let words: Vec<&str> = row.split_whitespace().collect();
        if words.len() < self.count || self.is_exact && words.len() > self.count {
            let (got, count) = (words.len(), self.count);
            return Err(Wrong(line, format!("{got} columns, and Properties promise {count}")));
        }
        let name = words[self.species];
        let Some(species) = elements.iter().position(|element| element == name) else {
            let known = elements.join(", ");
            let sentence = format!("`{name}` is none of the elements {known}; name all with --element");
            return Err(Wrong(line, sentence));
        };
        let mut at = [0.0; 3];
        for (k, x) in at.iter_mut().enumerate() {
            *x = real(words.get(self.place + k).copied(), line, "a coordinate")?;
        }
        let id = self.id.map(|id| whole(words.get(id).copied(), line, "the id of an atom", 0..=LARGEST_ID));
        Ok((id.transpose()?, at, species))
    }
}
