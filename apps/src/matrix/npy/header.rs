//! The header of a `.npy` file: a Python dictionary literal, read by a small parser of its own.
//!
//! Source: NEP 1 of numpy, "A simple file format for NumPy arrays", with versions 2.0 and 3.0.

use crate::matrix::element::Dtype;
use crate::matrix::lines::shortened;

/// What every `.npy` file begins with; two bytes of version follow.
pub(super) const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// Magic and version.
pub(super) const PREFIX_BYTES: usize = 8;
/// The writer fills its header up to a multiple of this, so that the numbers can be mapped aligned.
const ALIGNMENT: usize = 64;

/// What the header says about the numbers that follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) dtype: Dtype,
    pub(super) big_endian: bool,
    pub(super) fortran_order: bool,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

/// Why a header's text cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The text is not such a dictionary.
    #[error("expected {expected} at byte {at} of the header's text")]
    Syntax {
        /// What belongs there.
        expected: &'static str,
        /// Position in the text, from 0.
        at: usize,
    },
    /// A key that no version of the format has.
    #[error("unknown key '{0}'")]
    UnknownKey(String),
    /// A key is there twice.
    #[error("key '{0}' is there twice")]
    DuplicateKey(&'static str),
    /// A key is not there.
    #[error("key '{0}' is missing")]
    MissingKey(&'static str),
    /// Whole numbers.
    #[error("it holds integers ('{0}'): convert it with .astype('float64') before saving")]
    Integers(String),
    /// Another type than 32- and 64-bit floating point.
    #[error(
        "its numbers are '{0}', and only '<f4', '<f8', '>f4' and '>f8' can be read: convert it before saving"
    )]
    UnsupportedType(String),
    /// Neither a matrix nor a vector.
    #[error("it has {0} dimensions: only 2 (a matrix) and 1 (taken as a column) can be read")]
    Dimensions(usize),
    /// A side is 0.
    #[error("it is empty: its shape is {rows} x {cols}")]
    Empty {
        /// Rows it claims.
        rows: usize,
        /// Columns it claims.
        cols: usize,
    },
    /// Rows x columns x size is no number of bytes that a machine could have.
    #[error("its shape, {rows} x {cols}, is impossibly big")]
    TooBig {
        /// Rows it claims.
        rows: usize,
        /// Columns it claims.
        cols: usize,
    },
}

impl Header {
    /// Reads the dictionary, without prefix and length.
    pub(super) fn parse(text: &[u8]) -> Result<Self, HeaderError> {
        let mut parser = Parser { text, at: 0 };
        let (mut descr, mut order, mut shape) = (None, None, None);
        parser.expect(b'{', "'{'")?;
        while !parser.accept(b'}') {
            match parser.string()? {
                "descr" => fill(&mut descr, "descr", parser.descr()?)?,
                "fortran_order" => fill(&mut order, "fortran_order", parser.boolean()?)?,
                "shape" => fill(&mut shape, "shape", parser.shape()?)?,
                other => return Err(HeaderError::UnknownKey(shortened(other))),
            }
            if !parser.accept(b',') {
                parser.expect(b'}', "',' or '}'")?;
                break;
            }
        }
        parser.end()?;
        let (dtype, big_endian) = number_type(descr.ok_or(HeaderError::MissingKey("descr"))?)?;
        let fortran_order = order.ok_or(HeaderError::MissingKey("fortran_order"))?;
        let (rows, cols) = shape.ok_or(HeaderError::MissingKey("shape"))??;
        let header = Self { dtype, big_endian, fortran_order, rows, cols };
        if rows == 0 || cols == 0 {
            return Err(HeaderError::Empty { rows, cols });
        }
        match header.data_bytes() {
            Some(_) => Ok(header),
            None => Err(HeaderError::TooBig { rows, cols }),
        }
    }

    /// Bytes of all numbers; none if they cannot be counted.
    pub(super) fn data_bytes(&self) -> Option<u64> {
        data_bytes(self.rows, self.cols, self.dtype.size_bytes())
    }
}

/// The bytes before numbers of the type `descr`, as version 1.0 and as numpy itself writes them.
pub(super) fn encode(descr: &str, fortran_order: bool, rows: usize, cols: usize) -> Vec<u8> {
    let fortran = if fortran_order { "True" } else { "False" };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({rows}, {cols}), }}");
    // Numpy leaves room for the first side to grow to 21 digits when a file is appended to.
    let first = if fortran_order { cols } else { rows };
    text.extend(std::iter::repeat_n(' ', 21 - first.to_string().len()));
    let before = PREFIX_BYTES + size_of::<u16>();
    let padding = ALIGNMENT - (before + text.len() + 1) % ALIGNMENT;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let len = u16::try_from(text.len()).expect("two numbers of 20 digits and fixed words are below 64 KiB");
    [MAGIC.as_slice(), &[1, 0], &len.to_le_bytes(), text.as_bytes()].concat()
}

/// Bytes of so many numbers of `size` bytes each; none if they cannot be counted.
pub(super) fn data_bytes(rows: usize, cols: usize, size: usize) -> Option<u64> {
    let bytes = rows.checked_mul(cols)?.checked_mul(size)?;
    // Offsets in files are signed 64-bit numbers to the operating system.
    i64::try_from(bytes).ok().and_then(|bytes| u64::try_from(bytes).ok())
}

fn fill<V>(place: &mut Option<V>, key: &'static str, value: V) -> Result<(), HeaderError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(HeaderError::DuplicateKey(key)),
    }
}

fn number_type(descr: &str) -> Result<(Dtype, bool), HeaderError> {
    match descr {
        "<f4" => Ok((Dtype::F32, false)),
        "<f8" => Ok((Dtype::F64, false)),
        // Without an order, and with `=`, the numbers are in that of the machine.
        "f4" | "=f4" => Ok((Dtype::F32, cfg!(target_endian = "big"))),
        "f8" | "=f8" => Ok((Dtype::F64, cfg!(target_endian = "big"))),
        ">f4" => Ok((Dtype::F32, true)),
        ">f8" => Ok((Dtype::F64, true)),
        _ if matches!(descr.trim_start_matches(['<', '>', '|', '=']).as_bytes(), [b'i' | b'u', ..]) => {
            Err(HeaderError::Integers(shortened(descr)))
        }
        _ => Err(HeaderError::UnsupportedType(shortened(descr))),
    }
}

/// Reads the few Python literals that a header is made of.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn wrong<V>(&self, expected: &'static str) -> Result<V, HeaderError> {
        Err(HeaderError::Syntax { expected, at: self.at })
    }

    fn accept(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), HeaderError> {
        if self.accept(byte) { Ok(()) } else { self.wrong(expected) }
    }

    fn end(&mut self) -> Result<(), HeaderError> {
        if self.peek().is_none() { Ok(()) } else { self.wrong("only spaces") }
    }

    fn string_literal(&mut self) -> Result<&'a str, HeaderError> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else { return self.wrong("a string") };
        let rest = &self.text[self.at + 1..];
        let Some(len) = rest.iter().position(|&b| b == quote) else { return self.wrong("a closed string") };
        let Ok(text) = std::str::from_utf8(&rest[..len]) else { return self.wrong("a string in UTF-8") };
        self.at += len + 2;
        Ok(text)
    }

    /// A key and the colon behind it.
    fn string(&mut self) -> Result<&'a str, HeaderError> {
        let key = self.string_literal()?;
        self.expect(b':', "':'")?;
        Ok(key)
    }

    fn descr(&mut self) -> Result<&'a str, HeaderError> {
        match self.peek() {
            Some(b'[') => Err(HeaderError::UnsupportedType("a record of several fields".into())),
            _ => self.string_literal(),
        }
    }

    fn boolean(&mut self) -> Result<bool, HeaderError> {
        self.peek();
        for (word, value) in [(b"True".as_slice(), true), (b"False".as_slice(), false)] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        self.wrong("True or False")
    }

    fn integer(&mut self) -> Result<usize, HeaderError> {
        self.peek();
        let start = self.at;
        let mut value = Some(0usize);
        while let Some(digit) = self.text.get(self.at).filter(|b| b.is_ascii_digit()) {
            value = value.and_then(|v| v.checked_mul(10)?.checked_add(usize::from(digit - b'0')));
            self.at += 1;
        }
        if self.at == start {
            return self.wrong("a whole number");
        }
        // To Python 2 a number that begins with 0 was octal, and to Python 3 it is none.
        if self.text[start] == b'0' && self.at > start + 1 {
            self.at = start;
            return self.wrong("a whole number without zeros before it");
        }
        // Python 2 wrote long numbers with an L.
        self.at += usize::from(self.text.get(self.at) == Some(&b'L'));
        value.ok_or(HeaderError::Syntax { expected: "a number below 2^64", at: start })
    }

    /// A tuple of sides. The inner error is for a well-formed one that is no matrix: a wrong type goes first.
    fn shape(&mut self) -> Result<Result<(usize, usize), HeaderError>, HeaderError> {
        self.expect(b'(', "'('")?;
        let (mut sides, mut count) = ([1; 2], 0);
        while !self.accept(b')') {
            let side = self.integer()?;
            if let Some(place) = sides.get_mut(count) {
                *place = side;
            }
            count += 1;
            // (3) is a number and not a tuple to Python, so one side needs its comma.
            if !self.accept(b',') {
                if count == 1 {
                    return self.wrong("','");
                }
                self.expect(b')', "',' or ')'")?;
                break;
            }
        }
        Ok(if matches!(count, 1 | 2) {
            Ok((sides[0], sides[1]))
        } else {
            Err(HeaderError::Dimensions(count))
        })
    }
}
