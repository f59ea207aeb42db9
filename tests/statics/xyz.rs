//! Extended XYZ, read strictly as it is published (github.com/libAtoms/extxyz): whatever is not in the grammar is an error.

use std::collections::BTreeMap;

/// A frame: its keys, and the columns by name.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) lattice: [f64; 9],
    pub(crate) pbc: [bool; 3],
    pub(crate) columns: BTreeMap<String, Vec<Vec<String>>>,
}

impl Frame {
    /// Numbers of a column, row after row.
    pub(crate) fn reals(&self, name: &str) -> Vec<Vec<f64>> {
        let column = self.columns.get(name).unwrap_or_else(|| panic!("there is no column {name}"));
        column.iter().map(|row| row.iter().map(|word| word.parse().unwrap()).collect()).collect()
    }
}

/// The only frame of a text.
///
/// # Errors
/// What is not as it has to be.
pub(crate) fn parse(text: &str) -> Result<Frame, String> {
    let text = text.strip_suffix('\n').ok_or("the last line has no end")?;
    let mut lines = text.split('\n');
    let count: usize = lines.next().unwrap_or_default().parse().map_err(|e| format!("count: {e}"))?;
    let keys = pairs(lines.next().ok_or("no second line")?)?;
    let value = |key: &str| keys.get(key).ok_or(format!("no {key}"));
    let lattice: Vec<f64> = value("Lattice")?.split(' ').map(real).collect::<Result<_, _>>()?;
    let pbc: Vec<bool> = value("pbc")?.split(' ').map(logical).collect::<Result<_, _>>()?;
    let properties = properties(value("Properties")?)?;
    let width: usize = properties.iter().map(|(.., width)| width).sum();
    let mut columns: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    let rows: Vec<&str> = lines.collect();
    if rows.len() != count {
        return Err(format!("{count} atoms are promised and {} there", rows.len()));
    }
    for row in rows {
        let words: Vec<&str> = row.split_ascii_whitespace().collect();
        if words.len() != width {
            return Err(format!("{} columns and not {width}: {row}", words.len()));
        }
        let mut words = words.into_iter();
        for (name, kind, width) in &properties {
            let cell: Vec<String> = words.by_ref().take(*width).map(str::to_owned).collect();
            for word in &cell {
                match kind {
                    'R' => real(word).map(|_| ())?,
                    'I' => word.parse::<i64>().map(|_| ()).map_err(|e| format!("{word}: {e}"))?,
                    'L' => logical(word).map(|_| ())?,
                    _ => {}
                }
            }
            columns.entry(name.clone()).or_default().push(cell);
        }
    }
    let sized = |wrong| format!("{wrong:?} has another length");
    Ok(Frame {
        lattice: lattice.try_into().map_err(sized)?,
        pbc: pbc.try_into().map_err(|e| format!("{e:?}"))?,
        columns,
    })
}

/// `key=value` and `key="value"`, separated by single spaces; no key twice.
fn pairs(mut line: &str) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    while !line.is_empty() {
        let (key, rest) = line.split_once('=').ok_or(format!("no = in {line}"))?;
        let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let (value, rest) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or(format!("no end of {quoted}"))?,
            None => rest.split_at(rest.find(' ').unwrap_or(rest.len())),
        };
        if !is_bare || found.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(format!("the key {key:?}"));
        }
        line = match rest.strip_prefix(' ') {
            Some(more) => more,
            None if rest.is_empty() => rest,
            None => return Err(format!("{rest:?} after {key}")),
        };
    }
    Ok(found)
}

fn properties(text: &str) -> Result<Vec<(String, char, usize)>, String> {
    let words: Vec<&str> = text.split(':').collect();
    let of = |words: &[&str]| match words {
        [name, kind @ ("R" | "I" | "S" | "L"), width] => {
            let width = width.parse().ok().filter(|width| *width > 0).ok_or(format!("width {width}"))?;
            Ok(((*name).to_owned(), kind.chars().next().unwrap_or('S'), width))
        }
        other => Err(format!("the property {other:?}")),
    };
    words.chunks(3).map(of).collect()
}

/// A number in the grammar: no inf, no nan.
fn real(word: &str) -> Result<f64, String> {
    let is_plain = word.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c));
    word.parse().ok().filter(|_| is_plain).ok_or(format!("{word:?} is no number"))
}

fn logical(word: &str) -> Result<bool, String> {
    match word {
        "T" => Ok(true),
        "F" => Ok(false),
        _ => Err(format!("{word:?} is not T or F")),
    }
}
