//! From lines to a matrix.

use super::banner::{Banner, Field, Symmetry, size_line};
use super::wrong::MarketLineError;
use crate::matrix::dense::Matrix;
use crate::matrix::lines::{self, LineError, Lines, shortened, whole};
use crate::matrix::sparse::{Csr, SIDE_MAX, Triplet};
use std::io::BufRead;

use MarketLineError as Bad;

/// What went wrong, and in which line.
pub(super) type Wrong = lines::Wrong<MarketLineError>;

/// Lines that begin with it say nothing.
const COMMENT: &[char] = &['%'];

/// Reads no further than to the sides, rows and columns; `file_bytes` bounds what the file can announce.
pub(super) fn sides(source: impl BufRead, file_bytes: u64) -> Result<[u64; 2], Wrong> {
    let mut lines = Lines::new(source);
    Ok(head(&mut lines, file_bytes, None)?.1)
}

/// Reads no further than to the size line: entries of a coordinate file, with those that symmetry adds.
pub(super) fn entry_count(source: impl BufRead, file_bytes: u64) -> Result<Option<u64>, Wrong> {
    let mut lines = Lines::new(source);
    let (banner, _, count) = head(&mut lines, file_bytes, None)?;
    Ok(banner.coordinate.then(|| banner.symmetry.entries(count)))
}

/// Reads no further than to the size line: whether all numbers are promised to be whole.
pub(super) fn is_whole(source: impl BufRead, file_bytes: u64) -> Result<bool, Wrong> {
    let mut lines = Lines::new(source);
    Ok(head(&mut lines, file_bytes, None)?.0.field != Field::Real)
}

/// Reads a whole coordinate file; `file_bytes` bounds what it can announce, `max_bytes` what is allocated.
pub(super) fn sparse(source: impl BufRead, file_bytes: u64, max_bytes: u64) -> Result<Csr<f64>, Wrong> {
    let mut lines = Lines::new(source);
    let (banner, [rows, cols], count) = head(&mut lines, file_bytes, None)?;
    if !banner.coordinate {
        return Err(Wrong::Line(1, Bad::NotSparse));
    }
    let entries = banner.symmetry.entries(count);
    // While it is read an entry takes 16 bytes and 12 more later, a row 8 bytes twice.
    let bytes = entries.saturating_mul(28).saturating_add(rows.saturating_mul(16));
    let too_big = Bad::SparseTooBig { rows, cols, entries, max_bytes };
    if bytes > max_bytes || rows.max(cols) > SIDE_MAX {
        return Err(lines.wrong(too_big));
    }
    let (row_count, col_count) = (usize::try_from(rows), usize::try_from(cols));
    let (Ok(row_count), Ok(col_count)) = (row_count, col_count) else { return Err(lines.wrong(too_big)) };
    // Grows with what really comes.
    let mut triplets: Vec<Triplet<f64>> = Vec::new();
    each_entry(&mut lines, &banner, [rows, cols], count, |place, value, _| {
        let index = |from_one: u64| u32::try_from(from_one - 1).expect("sides are checked to be 32 bits");
        let keep = |(row, col), value| triplets.push((index(row), index(col), value));
        banner.symmetry.both(place, value, keep)
    })?;
    let matrix = Csr::from_triplets(row_count, col_count, &triplets);
    if matrix.is_finite() {
        Ok(matrix)
    } else {
        Err(lines.wrong(Bad::NotFinite { word: "a sum of duplicates".into() }))
    }
}

/// The banner, the sides and how many lines of entries follow; `max_bytes` limits a dense matrix, where one is made.
fn head(
    lines: &mut Lines<impl BufRead>,
    file_bytes: u64,
    max_bytes: Option<u64>,
) -> Result<(Banner, [u64; 2], u64), Wrong> {
    let banner = match lines.next()? {
        Some((_, text)) => Banner::parse(text),
        None => Err(Bad::Banner),
    };
    let banner = banner.map_err(|bad| Wrong::Line(1, bad))?;
    let Some((_, text)) = lines.next_data(COMMENT)? else {
        let expected = if banner.coordinate { "rows, columns and entries" } else { "rows and columns" };
        return Err(lines.wrong(LineError::Words { expected, got: 0 }));
    };
    let (sides, count) = size_line(text, &banner, file_bytes, max_bytes).map_err(|bad| lines.wrong(bad))?;
    Ok((banner, sides, count))
}

/// Reads a whole file; `file_bytes` bounds what it can announce, `max_bytes` what is allocated.
pub(super) fn matrix(source: impl BufRead, file_bytes: u64, max_bytes: u64) -> Result<Matrix<f64>, Wrong> {
    let mut lines = Lines::new(source);
    let (banner, sides, count) = head(&mut lines, file_bytes, Some(max_bytes))?;
    let [rows, cols] = sides;
    let too_big = Bad::TooBig { rows, cols, max_bytes };
    let dense = usize::try_from(rows).ok().zip(usize::try_from(cols).ok());
    let dense = dense.and_then(|(rows, cols)| Matrix::zeros(rows, cols).ok());
    let mut matrix = dense.ok_or_else(|| lines.wrong(too_big))?;
    each_entry(&mut lines, &banner, sides, count, |place, value, _| {
        banner.symmetry.store(&mut matrix, place, value)
    })?;
    Ok(matrix)
}

/// An entry of a matrix as a file has it, or as its symmetry adds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarketEntry {
    /// Its row, from 1.
    pub row: u64,
    /// Its column, from 1.
    pub col: u64,
    /// The number.
    pub value: f64,
    /// Whether the file promises whole numbers.
    pub is_whole: bool,
    /// Whether the file names the places of its entries: what it does not name is not there.
    pub is_sparse: bool,
    /// The line, from 1.
    pub line: u64,
}

/// Gives all entries of a file in its order, and behind each the one that symmetry adds; keeps none of them.
pub(super) fn entries(
    source: impl BufRead,
    file_bytes: u64,
    mut take: impl FnMut(MarketEntry),
) -> Result<(), Wrong> {
    let mut lines = Lines::new(source);
    let (banner, sides, count) = head(&mut lines, file_bytes, None)?;
    let (is_whole, is_sparse) = (banner.field != Field::Real, banner.coordinate);
    each_entry(&mut lines, &banner, sides, count, |place, value, line| {
        let mut take = |(row, col), value| take(MarketEntry { row, col, value, is_whole, is_sparse, line });
        banner.symmetry.both(place, value, &mut take)
    })
}

/// Reads the entries behind the head, in the file's order: the place of each, its number and its line.
fn each_entry(
    lines: &mut Lines<impl BufRead>,
    banner: &Banner,
    sides: [u64; 2],
    count: u64,
    mut take: impl FnMut((u64, u64), f64, u64) -> Result<(), Bad>,
) -> Result<(), Wrong> {
    let mut cursor = (1 + u64::from(banner.symmetry == Symmetry::Skew), 1);
    for got in 0..count {
        let Some((line, text)) = lines.next_data(COMMENT)? else {
            return Err(lines.wrong(Bad::Count { expected: count, got }));
        };
        let entry = if banner.coordinate {
            coordinate_entry(banner, text, sides)
        } else {
            number(text, 0, banner.field, "one number").map(|value| {
                let here = cursor;
                cursor = banner.symmetry.below(here, sides[0]);
                (here, value)
            })
        };
        let taken = entry.and_then(|(place, value)| take(place, value, line));
        taken.map_err(|bad| Wrong::Line(line, bad))?;
    }
    match lines.next_data::<Bad>(COMMENT)? {
        Some(_) => Err(lines.wrong(Bad::Count { expected: count, got: count + 1 })),
        None => Ok(()),
    }
}

fn coordinate_entry(banner: &Banner, text: &str, [rows, cols]: [u64; 2]) -> Result<((u64, u64), f64), Bad> {
    let expected = if banner.field == Field::Pattern { "row and column" } else { "row, column and number" };
    let mut words = text.split_ascii_whitespace();
    let mut index = || {
        let missing = LineError::Words { expected, got: text.split_ascii_whitespace().count() };
        words.next().ok_or(missing).and_then(|word| whole(word, "a row or column, counted from 1"))
    };
    let (row, col) = (index()?, index()?);
    if row == 0 || col == 0 || row > rows || col > cols {
        return Err(Bad::OutOfRange { row, col, rows, cols });
    }
    Ok(((row, col), number(text, 2, banner.field, expected)?))
}

/// The last word of an entry, after `before` others, as a number; 1 where a pattern only names places.
fn number(text: &str, before: usize, field: Field, expected: &'static str) -> Result<f64, Bad> {
    let mut words = text.split_ascii_whitespace().skip(before);
    let wrong = || LineError::Words { expected, got: text.split_ascii_whitespace().count() };
    let value = match field {
        Field::Pattern => 1.0,
        Field::Real | Field::Integer => real(words.next().ok_or_else(wrong)?, field)?,
    };
    if words.next().is_none() { Ok(value) } else { Err(wrong().into()) }
}

fn real(word: &str, field: Field) -> Result<f64, Bad> {
    let wrong = |expected| LineError::number(word, expected);
    if field == Field::Integer {
        let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
        whole(digits, "a whole number").map_err(|_| wrong("a whole number below 2^64"))?;
    }
    let value: f64 = word.parse().map_err(|_| wrong("a number"))?;
    if value.is_finite() { Ok(value) } else { Err(Bad::NotFinite { word: shortened(word) }) }
}
