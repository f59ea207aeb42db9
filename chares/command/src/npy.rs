//! What stands before the numbers of a `.npy` file of numpy: a Python dictionary literal, read by a small parser of its own.
//!
//! Source: NEP 1 of numpy, "A simple file format for NumPy arrays", with versions 2.0 and 3.0.

/// What every such file begins with; two bytes of version follow.
pub const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// Magic and version.
pub const PREFIX_BYTES: usize = 8;
/// A header is filled up to a multiple of this, so that the numbers can be mapped aligned.
const ALIGNMENT: usize = 64;
/// Characters of a word that a sentence shows.
const SHOWN: usize = 40;

/// What the header says about the numbers that follow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Their type, as numpy writes it: `<f8`.
    pub descr: &'a str,
    /// The first index runs fastest, and not the last.
    pub fortran_order: bool,
    /// How many there are along each dimension.
    pub shape: Vec<usize>,
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
    /// Each entry has several fields.
    #[error("it holds records of several fields")]
    Record,
}

impl<'a> Header<'a> {
    /// Reads the dictionary, without prefix and length.
    ///
    /// # Errors
    /// If it is none, or not all of it is there once.
    pub fn parse(text: &'a [u8]) -> Result<Self, HeaderError> {
        let mut parser = Parser { text, at: 0 };
        let (mut descr, mut order, mut shape) = (None, None, None);
        parser.expect(b'{', "'{'")?;
        while !parser.accept(b'}') {
            match parser.string()? {
                "descr" => fill(&mut descr, "descr", parser.descr()?)?,
                "fortran_order" => fill(&mut order, "fortran_order", parser.boolean()?)?,
                "shape" => fill(&mut shape, "shape", parser.shape()?)?,
                other => return Err(HeaderError::UnknownKey(other.chars().take(SHOWN).collect())),
            }
            if !parser.accept(b',') {
                parser.expect(b'}', "',' or '}'")?;
                break;
            }
        }
        parser.end()?;
        Ok(Self {
            descr: descr.ok_or(HeaderError::MissingKey("descr"))?,
            fortran_order: order.ok_or(HeaderError::MissingKey("fortran_order"))?,
            shape: shape.ok_or(HeaderError::MissingKey("shape"))?,
        })
    }

    /// The bytes before the numbers, as version 1.0 and as numpy itself writes them; `None` if they have thousands of
    /// dimensions.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        let Self { descr, fortran_order, shape } = self;
        let fortran = if *fortran_order { "True" } else { "False" };
        let sides: Vec<String> = shape.iter().map(ToString::to_string).collect();
        // (3) is a number and not a tuple to Python.
        let comma = if sides.len() == 1 { "," } else { "" };
        let sides = sides.join(", ");
        let mut text =
            format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({sides}{comma}), }}");
        // Numpy leaves room for the side that grows to do so to 21 digits when a file is appended to.
        if let Some(first) = if *fortran_order { shape.last() } else { shape.first() } {
            text.extend(std::iter::repeat_n(' ', 21 - first.to_string().len()));
        }
        let before = PREFIX_BYTES + size_of::<u16>();
        let padding = ALIGNMENT - (before + text.len() + 1) % ALIGNMENT;
        text.extend(std::iter::repeat_n(' ', padding));
        text.push('\n');
        let length = u16::try_from(text.len()).ok()?;
        Some([MAGIC.as_slice(), &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat())
    }
}

fn fill<V>(place: &mut Option<V>, key: &'static str, value: V) -> Result<(), HeaderError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(HeaderError::DuplicateKey(key)),
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
            Some(b'[') => Err(HeaderError::Record),
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

    /// A tuple of sides.
    fn shape(&mut self) -> Result<Vec<usize>, HeaderError> {
        self.expect(b'(', "'('")?;
        let mut sides = Vec::new();
        while !self.accept(b')') {
            sides.push(self.integer()?);
            // (3) is a number and not a tuple to Python, so one side needs its comma.
            if !self.accept(b',') {
                if sides.len() == 1 {
                    return self.wrong("','");
                }
                self.expect(b')', "',' or ')'")?;
                break;
            }
        }
        Ok(sides)
    }
}
