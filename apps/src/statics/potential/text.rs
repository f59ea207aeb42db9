//! A text file of numbers, word by word, each with its line: what all formats of potential files are made of.

use super::PotentialError;
use std::path::Path;

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

    /// The next line, to be read word by word.
    pub(super) fn open_line(&mut self, what: &str) -> Result<(), PotentialError> {
        let line = self.next_line(what)?;
        self.words = line.split_whitespace();
        Ok(())
    }

    /// The next word, on whatever line it stands.
    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, PotentialError> {
        loop {
            if let Some(word) = self.words.next() {
                return Ok(word);
            }
            self.open_line(what)?;
        }
    }

    /// The next word of the line that is open, if there is one.
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

    pub(super) fn positive(&mut self, what: &str) -> Result<f64, PotentialError> {
        let value = self.number(what)?;
        if value > 0.0 {
            return Ok(value);
        }
        Err(self.malformed(format!("{what} is {value}, but it has to be positive")))
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

    /// `count` numbers. Memory grows with what the file holds, not with what it promises.
    pub(super) fn numbers(&mut self, count: usize, what: &str) -> Result<Vec<f64>, PotentialError> {
        let mut values = Vec::new();
        for index in 0..count {
            match self.number(what) {
                Ok(value) => values.push(value),
                Err(PotentialError::Malformed { file, line, message }) => {
                    let message = format!("{message} (value {} of {count})", index + 1);
                    return Err(PotentialError::Malformed { file, line, message });
                }
                Err(other) => return Err(other),
            }
        }
        Ok(values)
    }

    pub(super) fn malformed(&self, message: String) -> PotentialError {
        PotentialError::Malformed { file: self.file.into(), line: self.line, message }
    }
}
