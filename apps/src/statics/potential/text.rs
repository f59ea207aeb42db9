//! A text file of numbers, word by word, each with its line: what all formats of potential files are made of.

use super::PotentialError;
use crate::text_file::split_comment;
use std::path::Path;

/// Above every mass, spacing and cutoff.
const LARGEST: f64 = 1e9;

/// Words of a text, with the file and the line that an error names.
pub(super) struct Words<'a> {
    file: &'a Path,
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    words: std::str::SplitWhitespace<'a>,
    line: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(file: &'a Path, text: &'a str) -> Self {
        Self { file, lines: text.lines().enumerate(), words: "".split_whitespace(), line: 0 }
    }

    /// The rest of the file from its next line on; what is left of this line is skipped.
    pub(super) fn next_line(&mut self, what: &str) -> Result<&'a str, PotentialError> {
        let Some((number, line)) = self.lines.next() else {
            return Err(self.malformed(format!("the file ends where {what} should stand")));
        };
        self.line = number + 1;
        self.words = "".split_whitespace();
        Ok(line)
    }

    /// The next line that is not empty, to be read word by word; what is left of this one is skipped, and so is what
    /// follows a `#`.
    pub(super) fn open_line(&mut self, what: &str) -> Result<(), PotentialError> {
        loop {
            let line = self.next_line(what)?;
            let (body, _) = split_comment(line);
            if !body.trim().is_empty() {
                self.words = body.split_whitespace();
                return Ok(());
            }
        }
    }

    /// The next word of the line that is open.
    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, PotentialError> {
        match self.words.next() {
            Some(word) => Ok(word),
            None => Err(self.malformed(format!("the line ends where {what} should stand"))),
        }
    }

    /// The same, if there is one.
    pub(super) fn word_of_line(&mut self) -> Option<&'a str> {
        self.words.next()
    }

    /// A finite number; Fortran's exponent `D` counts as `E`.
    pub(super) fn number(&mut self, what: &str) -> Result<f64, PotentialError> {
        let word = self.word(what)?;
        let value = word.parse().or_else(|_| word.replace(['D', 'd'], "e").parse::<f64>());
        match value {
            Ok(value) if value.is_finite() => Ok(value),
            _ => Err(self.malformed(format!("`{word}` is no finite number, but {what} should stand here"))),
        }
    }

    /// A number above 0, and below what any potential has, so that sizes of tables stay numbers.
    pub(super) fn positive(&mut self, what: &str) -> Result<f64, PotentialError> {
        let value = self.number(what)?;
        if value > 0.0 && value < LARGEST {
            return Ok(value);
        }
        Err(self.malformed(format!("{what} is {value}, but it has to be positive and below {LARGEST:e}")))
    }

    /// A whole number in `range`.
    pub(super) fn count(
        &mut self,
        what: &str,
        range: std::ops::RangeInclusive<usize>,
    ) -> Result<usize, PotentialError> {
        let word = self.word(what)?;
        match word.parse() {
            Ok(count) if range.contains(&count) => Ok(count),
            _ => Err(self.malformed(format!(
                "{what} is `{word}`, but it has to be a whole number from {} to {}",
                range.start(),
                range.end()
            ))),
        }
    }

    /// A table of `count` numbers, which begins on a line of its own and may go on over any number of lines. Memory grows
    /// with what the file holds, not with what it promises.
    pub(super) fn numbers(&mut self, count: usize, what: &str) -> Result<Vec<f64>, PotentialError> {
        let mut values = Vec::new();
        self.words = "".split_whitespace();
        while values.len() < count {
            let of_table = format!("{what} (value {} of {count})", values.len() + 1);
            if self.words.clone().next().is_none() {
                self.open_line(&of_table)?;
            }
            values.push(self.number(&of_table)?);
        }
        match self.word_of_line() {
            None => Ok(values),
            Some(word) => Err(self.malformed(format!(
                "`{word}` follows the {count} values of {what}, but each table ends with its line; are Nrho and Nr right?"
            ))),
        }
    }

    /// The end of the file, before which words may stand, but no more numbers.
    pub(super) fn end(mut self) -> Result<(), PotentialError> {
        while let Some((number, line)) = self.lines.next() {
            if line.split_whitespace().next().is_some_and(|word| word.parse::<f64>().is_ok()) {
                self.line = number + 1;
                return Err(self.malformed("numbers follow the last table; are Nrho and Nr right?".into()));
            }
        }
        Ok(())
    }

    pub(super) fn malformed(&self, message: String) -> PotentialError {
        PotentialError::Malformed { file: self.file.into(), line: self.line, message }
    }
}
