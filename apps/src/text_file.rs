//! Text files that a user gives, and what is wrong with one: in which line.

use crate::matrix::TextError;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;
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

/// What a file with this text says in TOML. `hint` is added to what is wrong where the file is not called one of TOML; it may be
/// empty.
///
/// # Errors
/// The first key or value that is wrong, with its line.
pub fn parse_toml<T: DeserializeOwned>(file: &Path, text: &str, hint: &str) -> Result<T, FileError> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        let is_toml = file.extension().is_some_and(|end| end == "toml");
        wrong_line(file, line, plain(error.message()) + if is_toml { "" } else { hint })
    })
}

/// For fields that are a list of so many: of a longer one what is too much would be left out without a word.
///
/// # Errors
/// The list has fewer or more.
pub fn exactly<'de, D, T, const N: usize>(from: D) -> Result<[T; N], D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    from.deserialize_tuple(N, Exactly(PhantomData))
}

/// The same for fields that may be left out.
///
/// # Errors
/// The list has fewer or more.
pub fn exactly_if_any<'de, D, T, const N: usize>(from: D) -> Result<Option<[T; N]>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Whole<T, N>>::deserialize(from)?.map(|Whole(list)| list))
}

struct Whole<T, const N: usize>([T; N]);

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Whole<T, N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        exactly(from).map(Self)
    }
}

struct Exactly<T, const N: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Exactly<T, N> {
    type Value = [T; N];

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an array of length {N}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<[T; N], A::Error> {
        let mut all = Vec::with_capacity(N);
        while all.len() < N
            && let Some(one) = list.next_element()?
        {
            all.push(one);
        }
        let mut count = all.len();
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        all.try_into().ok().filter(|_| count == N).ok_or_else(|| A::Error::invalid_length(count, &self))
    }
}

/// In the words of TOML what the parser says in those of Rust.
fn plain(message: &str) -> String {
    let words = [
        ("\n", "; "),
        ("invalid type: unit variant, expected struct variant", "this takes values: { name = { … } }"),
        ("invalid type: map, expected a sequence", "a list is needed: [{ … }, { … }]"),
        ("expected a sequence", "expected a list"),
        ("invalid type: map", "invalid type: table"),
        ("expected struct", "expected the table of"),
    ];
    words.into_iter().fold(message.to_owned(), |said, (rust, plain)| said.replace(rust, plain))
}
