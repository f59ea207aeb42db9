//! Makes text from other machines and from files of other people safe to show: escape sequences and control characters
//! could otherwise repaint or reprogram the user's terminal.

use std::borrow::Cow;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';

/// `raw` as one line without escape sequences and control characters (tabs become spaces), at most `limit` characters.
#[must_use]
pub fn clean_line(raw: &str, limit: usize) -> String {
    // A hostile line could be nothing but escapes, so what is looked at is limited too.
    let end = raw.char_indices().nth(limit.saturating_mul(8)).map_or(raw.len(), |(at, _)| at);
    let mut line = String::new();
    let mut length = 0;
    for c in shown(&raw[..end]).filter(|c| *c != '\n') {
        if length >= limit {
            break;
        }
        match c {
            '\t' => line.push_str("  "),
            c => line.push(c),
        }
        length += if c == '\t' { 2 } else { 1 };
    }
    line
}

/// `raw` without escape sequences and control characters; the ends of lines and tabs stay.
#[must_use]
pub fn clean_lines(raw: &str) -> Cow<'_, str> {
    if raw.contains(is_unsafe) { shown(raw).collect::<String>().into() } else { raw.into() }
}

/// The characters of a text that do nothing but appear, ends of lines and tabs among them.
fn shown(raw: &str) -> impl Iterator<Item = char> {
    let mut rest = raw;
    std::iter::from_fn(move || {
        loop {
            let c = rest.chars().next()?;
            rest = &rest[if c == ESCAPE { escape_length(rest) } else { c.len_utf8() }..];
            if !is_unsafe(c) {
                return Some(c);
            }
        }
    })
}

fn is_unsafe(c: char) -> bool {
    // Marks that turn the direction of writing can make a line look like another.
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Bytes of the escape sequence at the start of a text: one that does not end takes nothing with it that could be read.
fn escape_length(text: &str) -> usize {
    let body = &text[1..];
    let Some(kind) = body.chars().next().filter(|c| !c.is_control()) else { return 1 };
    let rest = &body[kind.len_utf8()..];
    let head = text.len() - rest.len();
    match kind {
        '[' => {
            let parameters = rest.find(|c| !(' '..='?').contains(&c)).unwrap_or(rest.len());
            let is_whole = rest[parameters..].starts_with(|c| ('@'..='~').contains(&c));
            head + parameters + usize::from(is_whole)
        }
        // A string, such as a title, up to a bell or ESC \.
        ']' | 'P' | 'X' | '^' | '_' => match rest.find([BELL, ESCAPE, '\n']) {
            Some(end) if rest[end..].starts_with(BELL) => head + end + 1,
            Some(end) if rest[end..].starts_with("\u{1b}\\") => head + end + 2,
            _ => head,
        },
        _ => head,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        let coloured = "\u{1b}[31mred\u{1b}[0m\tand \u{1b}]0;title\u{7}plain\u{8}";
        assert_eq!(clean_line(coloured, 100), "red  and plain");
        assert_eq!(clean_lines(coloured), "red\tand plain");
        assert_eq!(
            clean_lines("\u{1b}P1$r0m\u{1b}\\a\u{1b}]8;;http://x\u{1b}\\b\u{1b}cc\r\u{9b}d\u{202e}e"),
            "abcde"
        );
        assert_eq!(clean_line("abcdef", 3), "abc");
        assert_eq!(clean_line(&"\u{1b}[".repeat(1000), 10), "");
    }

    #[test]
    fn an_escape_sequence_without_end_hides_nothing() {
        assert_eq!(clean_lines("one\u{1b}]0;two\nthree"), "one0;two\nthree");
        assert_eq!(clean_lines("one\u{1b}[31\ntwo\u{1b}"), "one\ntwo");
        assert_eq!(clean_lines("one\u{1b}\u{1b}[1mtwo"), "onetwo");
    }

    proptest! {
        #[test]
        fn only_what_is_safe_comes_out_and_what_is_safe_stays(
            parts in proptest::collection::vec(prop_oneof![
                any::<String>(), Just("\u{1b}".into()), Just("\u{1b}[".into()), Just("\u{1b}]".into()), Just("ä\n".into()),
            ], 0..20),
        ) {
            let raw: String = parts.concat();
            let lines = clean_lines(&raw);
            prop_assert!(!lines.contains(is_unsafe), "{lines:?}");
            prop_assert_eq!(lines.matches('\n').count(), raw.matches('\n').count());
            prop_assert_eq!(clean_lines(&lines), lines.clone());
            let line = clean_line(&raw, 7);
            prop_assert!(!line.contains(is_unsafe) && !line.contains(['\n', '\t']) && line.chars().count() <= 8);
        }
    }
}
