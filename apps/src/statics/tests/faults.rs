//! Texts with faults, as editors, disks and strangers make them, for parsers that trust nobody.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Ten thousand inputs, the same ones in every run.
pub(in crate::statics) fn ten_thousand() -> ProptestConfig {
    ProptestConfig {
        cases: 10_000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(14),
        ..ProptestConfig::default()
    }
}

/// Words that parsers stumble over.
#[rustfmt::skip]
const WORDS: [&str; 30] = [
    "", "0", "-1", "1", "2", "7", "0.5", "-0.0", "1e5", "1e308", "1e-320", "1D2", "nan", "-inf", "9007199254740993",
    "9223372036854775808", "18446744073709551616", "x", "Cu", "T", "atoms", "Atoms", "xlo", "\"", "{", "[[", "=", "#",
    "\u{e9}\u{20ac}", "\0",
];

/// One fault; places are taken modulo what is there.
#[derive(Clone, Copy, Debug)]
pub(in crate::statics) enum Fault {
    /// The text ends here.
    Cut(usize),
    /// Some bytes are gone.
    Gone(usize, usize),
    /// A word has become another.
    Word(usize, usize),
    /// A word more.
    More(usize, usize),
    /// A line is there again, further down.
    Again(usize, usize),
    /// A line is gone.
    Line(usize),
    /// A byte has become another.
    Byte(usize, u8),
}

/// Some faults; sometimes none.
pub(in crate::statics) fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let place = || 0..10_000_usize;
    let fault = prop_oneof![
        1 => place().prop_map(Fault::Cut),
        1 => (place(), 1..9_usize).prop_map(|(at, length)| Fault::Gone(at, length)),
        6 => (place(), 0..WORDS.len()).prop_map(|(at, word)| Fault::Word(at, word)),
        2 => (place(), 0..WORDS.len()).prop_map(|(at, word)| Fault::More(at, word)),
        1 => (place(), place()).prop_map(|(from, to)| Fault::Again(from, to)),
        1 => place().prop_map(Fault::Line),
        1 => (place(), any::<u8>()).prop_map(|(at, byte)| Fault::Byte(at, byte)),
    ];
    prop::collection::vec(fault, 0..4)
}

/// A text with faults, as a file of it is read.
pub(in crate::statics) fn with(text: &str, faults: &[Fault]) -> String {
    faults.iter().fold(text.to_owned(), |text, fault| one(&text, *fault))
}

fn one(text: &str, fault: Fault) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let (length, count) = (bytes.len().max(1), text.lines().count().max(1));
    match fault {
        Fault::Cut(at) => bytes.truncate(at % length),
        Fault::Gone(at, many) => {
            let from = (at % length).min(bytes.len());
            bytes.drain(from..(from + many).min(bytes.len()));
        }
        Fault::Byte(at, byte) => bytes.iter_mut().skip(at % length).take(1).for_each(|old| *old = byte),
        Fault::Word(at, word) => return replaced(text, at, |_| WORDS[word].to_owned()),
        Fault::More(at, word) => return replaced(text, at, |old| format!("{old} {}", WORDS[word])),
        Fault::Again(from, to) => {
            let mut lines: Vec<&str> = text.lines().collect();
            let line = lines.get(from % count).copied().unwrap_or_default();
            lines.insert((to % count).min(lines.len()), line);
            return lines.join("\n") + "\n";
        }
        Fault::Line(at) => {
            let rest = text.lines().enumerate().filter(|(line, _)| *line != at % count);
            return rest.map(|(_, line)| format!("{line}\n")).collect();
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The text with one of its words, of which blanks, colons and quotes are the ends, made into another.
fn replaced(text: &str, at: usize, by: impl Fn(&str) -> String) -> String {
    let ends = |c: char| c.is_whitespace() || ":\",".contains(c);
    let words: Vec<&str> = text.split(ends).filter(|word| !word.is_empty()).collect();
    let Some(word) = words.get(at % words.len().max(1)) else { return text.to_owned() };
    let from = word.as_ptr() as usize - text.as_ptr() as usize;
    format!("{}{}{}", &text[..from], by(word), &text[from + word.len()..])
}
