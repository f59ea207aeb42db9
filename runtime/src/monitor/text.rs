//! Makes text from other machines safe to show: escape sequences and control characters could otherwise repaint or
//! reprogram the user's terminal.

/// `raw` without escape sequences and control characters (tabs become spaces), at most `limit` characters.
pub(crate) fn clean(raw: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    // A hostile line could be nothing but escapes, so what is looked at is limited too.
    let mut chars = raw.chars().take(limit.saturating_mul(8));
    while let Some(c) = chars.next() {
        if length >= limit {
            break;
        }
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\t' => {
                out.push_str("  ");
                length += 2;
            }
            // Marks that turn the direction of writing can make a line look like another.
            c if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {}
            c => {
                out.push(c);
                length += 1;
            }
        }
    }
    out
}

fn skip_escape(chars: &mut impl Iterator<Item = char>) {
    match chars.next() {
        Some('[') => while chars.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {},
        Some(']') => while chars.next().is_some_and(|c| c != '\u{7}' && c != '\u{1b}') {},
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        assert_eq!(clean("\u{1b}[31mred\u{1b}[0m\tand \u{1b}]0;title\u{7}plain\u{8}", 100), "red  and plain");
        assert_eq!(clean("abcdef", 3), "abc");
        assert_eq!(clean(&"\u{1b}[".repeat(1000), 10), "");
    }
}
