//! Lines of a text file that is not trusted, with their numbers.

use std::io::{self, BufRead, Read as _};

/// Longest line: formats allow some 1,000 bytes, and other writers' long comments shall not fail for that.
pub(crate) const LINE_BYTES_MAX: u64 = 64 * 1024;

/// Why a line could not be read.
#[derive(Debug)]
pub(crate) enum LineError {
    /// The operating system refused.
    Io(io::Error),
    /// It is longer than [`LINE_BYTES_MAX`].
    TooLong,
    /// It is not UTF-8.
    NotText,
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

    /// The next line without the spaces around it; none at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, LineError> {
        self.line.clear();
        let mut limited = (&mut self.source).take(LINE_BYTES_MAX);
        let len = limited.read_until(b'\n', &mut self.line).map_err(LineError::Io)?;
        if len == 0 {
            return Ok(None);
        }
        self.number += 1;
        if len as u64 == LINE_BYTES_MAX && self.line.last() != Some(&b'\n') {
            return Err(LineError::TooLong);
        }
        self.last().map(Some)
    }

    /// The same line once more.
    pub(crate) fn last(&self) -> Result<&str, LineError> {
        std::str::from_utf8(&self.line).map(str::trim).map_err(|_| LineError::NotText)
    }
}
