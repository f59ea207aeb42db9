//! Text files that a user gives, and what is wrong with one: in which line.

use crate::matrix::TextError;
use std::path::Path;

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Sentence(String);

/// Why a file is not usable.
pub type FileError = TextError<Sentence>;

/// All of a file.
///
/// # Errors
/// It cannot be read.
pub fn read_text(file: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(file).map_err(|source| TextError::Io { path: file.into(), source })
}

/// The same of a file whose comments may be in any encoding: what is no UTF-8 in it is replaced, and a mark at its begin
/// that says which encoding it is in is left out.
///
/// # Errors
/// It cannot be read.
pub fn read_lossy(file: &Path) -> Result<String, FileError> {
    let bytes = std::fs::read(file).map_err(|source| TextError::Io { path: file.into(), source })?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

/// A line without its comment, and the comment after the `#`, before which there has to be a blank: `1#5` is a word, and no
/// number.
pub fn split_comment(line: &str) -> (&str, &str) {
    let begins = |at: &usize| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
    let at = line.match_indices('#').map(|(at, _)| at).find(begins);
    at.map_or((line, ""), |at| (&line[..at], &line[at + 1..]))
}

/// A line, from 1, is not what it has to be.
pub fn wrong_line(file: &Path, line: usize, sentence: String) -> FileError {
    TextError::Line { path: file.into(), line: line as u64, source: Sentence(sentence) }
}
