//! Lines of a text file that is not trusted, with their numbers, and what is wrong with them.

use std::borrow::Cow;
use std::io::{self, BufRead, Read as _};
use std::path::{Path, PathBuf};

/// Longest line: formats allow some 1,000 bytes, and other writers' long comments shall not fail for that.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// What some editors begin a file with, and nobody sees.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Why a text file could not be read; `L` is what can be wrong with a line of its format.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError<L: std::error::Error + 'static> {
    /// The operating system refused.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is wrong.
    #[error("{}:{line}: {source}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        source: L,
    },
}

/// What is wrong with a line, whatever the format.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// It does not have as many words as it needs.
    #[error("expected {expected}, got {got} word{}", if *.got == 1 { "" } else { "s" })]
    Words {
        /// What belongs there.
        expected: &'static str,
        /// Words in the line.
        got: usize,
    },
    /// A word is no number of the kind that belongs there.
    #[error("'{word}' is not {expected}")]
    Number {
        /// The word.
        word: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// A whole number that no word of any format here can be.
    #[error("'{word}' is 2^64 or more, and no such number is read")]
    TooLarge {
        /// The word.
        word: String,
    },
    /// It does not end.
    #[error("the line is longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
}

impl LineError {
    /// A word that is no number of the kind `expected`.
    pub(crate) fn number(word: &str, expected: &'static str) -> Self {
        Self::Number { word: shortened(word), expected }
    }
}

/// What went wrong in a file whose name is not known here, and in which line.
#[derive(Debug)]
pub(crate) enum Wrong<L> {
    Io(io::Error),
    Line(u64, L),
}

impl<L: std::error::Error> Wrong<L> {
    /// The same with the name of the file.
    pub(crate) fn of(self, path: &Path) -> TextError<L> {
        let path = path.to_owned();
        match self {
            Self::Io(source) => TextError::Io { path, source },
            Self::Line(line, source) => TextError::Line { path, line, source },
        }
    }
}

/// Lines, none longer than allowed.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    source: R,
    line: Vec<u8>,
    /// Of the line that was read last, from 1.
    pub(crate) number: u64,
}

impl<R: BufRead> Lines<R> {
    /// Those of a file, from its beginning.
    pub(crate) fn new(source: R) -> Self {
        Self { source, line: Vec::new(), number: 0 }
    }

    /// The next line without the spaces around it, and its number; none at the end of the file. Bytes that are no text
    /// are replaced by signs for such: comments may be in any encoding, and no number is made of such a sign.
    pub(crate) fn next<L: From<LineError>>(&mut self) -> Result<Option<(u64, &str)>, Wrong<L>> {
        self.line.clear();
        let mut limited = (&mut self.source).take(LINE_BYTES_MAX);
        let len = limited.read_until(b'\n', &mut self.line).map_err(Wrong::Io)?;
        if len == 0 {
            return Ok(None);
        }
        self.number += 1;
        if len as u64 == LINE_BYTES_MAX && self.line.last() != Some(&b'\n') {
            return Err(self.wrong(LineError::TooLong));
        }
        if let Cow::Owned(text) = String::from_utf8_lossy(&self.line) {
            self.line = text.into_bytes();
        }
        Ok(Some(self.last()))
    }

    /// The next line that is neither empty nor begins with one of `comments`.
    pub(crate) fn next_data<L: From<LineError>>(
        &mut self,
        comments: &[char],
    ) -> Result<Option<(u64, &str)>, Wrong<L>> {
        while self.next()?.is_some_and(|(_, text)| text.is_empty() || text.starts_with(comments)) {}
        // The line is looked at again because a borrow that a loop may give up cannot be returned (Polonius).
        Ok(if self.line.is_empty() { None } else { Some(self.last()) })
    }

    fn last(&self) -> (u64, &str) {
        let text = std::str::from_utf8(&self.line).unwrap_or_default();
        let is_first = self.number == 1;
        let text = text.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first).unwrap_or(text);
        (self.number, text.trim())
    }

    /// Something wrong with the line that was read last, or with the first of an empty file.
    pub(crate) fn wrong<L>(&self, bad: impl Into<L>) -> Wrong<L> {
        Wrong::Line(self.number.max(1), bad.into())
    }
}

/// A number of digits only.
pub(crate) fn whole(word: &str, expected: &'static str) -> Result<u64, LineError> {
    if !has_digits_only(word) {
        return Err(LineError::number(word, expected));
    }
    word.parse().map_err(|_| LineError::TooLarge { word: shortened(word) })
}

/// Whether a word is nothing but decimal digits.
pub(crate) fn has_digits_only(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
}

/// `1 arc is` or `2 arcs are`, for a sentence that goes on.
pub(crate) fn there_are(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one} is") } else { format!("{count} {many} are") }
}

/// As much of a word as a sentence can show; what would not be seen, or do something to a terminal, by its code.
pub(crate) fn shortened(word: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    word.chars().take(40).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lines, and the first that is wrong.
    fn read(text: &[u8]) -> (Vec<String>, Option<(u64, LineError)>) {
        let (mut lines, mut all) = (Lines::new(text), Vec::new());
        loop {
            match lines.next::<LineError>() {
                Ok(Some((number, text))) => {
                    all.push(text.into());
                    assert_eq!(number, all.len() as u64);
                }
                Ok(None) => return (all, None),
                Err(Wrong::Line(number, wrong)) => return (all, Some((number, wrong))),
                Err(Wrong::Io(error)) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn lines_end_as_on_any_system_and_a_byte_order_mark_is_no_word() {
        let expected = ["1 2", "", "3"].map(String::from).to_vec();
        for text in ["1 2\n\n3", "\u{feff}1 2 \r\n\t\r\n 3\r\n"] {
            assert_eq!(read(text.as_bytes()), (expected.clone(), None));
        }
        assert_eq!(read("1\n\u{feff}2".as_bytes()).0[1], "\u{feff}2", "only the first line");
    }

    #[test]
    fn what_is_no_text_is_no_number_and_what_does_not_end_is_refused_with_its_number() {
        assert_eq!(
            read(b"1\nc J\xe4cobi\n\xff2"),
            (["1", "c J\u{fffd}cobi", "\u{fffd}2"].map(String::from).to_vec(), None)
        );
        assert_eq!(whole("\u{fffd}2", "a count"), Err(LineError::number("\u{fffd}2", "a count")));
        let most = LINE_BYTES_MAX as usize;
        assert_eq!(read(&vec![b'1'; most]), (vec![], Some((1, LineError::TooLong))));
        let whole = [vec![b'1'; most - 1], vec![b'\n']].concat();
        assert_eq!(read(&whole).0[0].len(), most - 1);
    }

    #[test]
    fn only_digits_are_a_whole_number() {
        assert_eq!(whole("18446744073709551615", "a count"), Ok(u64::MAX));
        for word in ["", "-1", "+1", "1.0"] {
            assert_eq!(whole(word, "a count"), Err(LineError::number(word, "a count")));
        }
        let said = whole("18446744073709551616", "a count").unwrap_err().to_string();
        assert_eq!(said, "'18446744073709551616' is 2^64 or more, and no such number is read");
    }

    #[test]
    fn a_word_from_a_file_is_one_line_and_no_command_to_a_terminal() {
        assert_eq!(shortened("1\u{b}2\0\x1b[2Jä"), "1\\u{b}2\\u{0}\\u{1b}[2Jä");
        assert_eq!(shortened(&"x".repeat(99)).len(), 40);
    }

    #[test]
    fn sentences_know_one_from_many() {
        let said = |got| LineError::Words { expected: "a number", got }.to_string();
        let words = [0, 1, 2].map(said);
        assert_eq!(
            words,
            ["0 words", "1 word", "2 words"].map(|got| format!("expected a number, got {got}"))
        );
        assert_eq!([0, 1, 2].map(|n| there_are(n, "arc", "arcs")), ["0 arcs are", "1 arc is", "2 arcs are"]);
    }
}
