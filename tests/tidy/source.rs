//! Just enough reading of Rust to check rules on code: what is comment, string or test, and which paths occur.
//!
//! Not a parser: it never fails, and on code that does not compile it may answer nonsense.

/// The code with comments, strings and characters blanked out. Lines stay where they are.
pub(crate) fn code_of(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let length = blank_length(&chars, at);
        if length == 0 {
            code.push(chars[at]);
            at += 1;
        } else {
            let end = (at + length).min(chars.len());
            code.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    code
}

/// The length of the comment or literal that starts here; 0 if none does.
fn blank_length(chars: &[char], at: usize) -> usize {
    let rest = &chars[at..];
    match rest {
        ['/', '/', ..] => rest.iter().take_while(|&&c| c != '\n').count(),
        ['/', '*', ..] => block_comment_length(rest),
        ['"', ..] => 1 + escaped_length(&rest[1..], '"'),
        ['\'', '\\', ..] => 1 + escaped_length(&rest[1..], '\''),
        ['\'', _, '\'', ..] => 3,
        ['r', ..] if starts_literal(chars, at) => raw_string_length(rest).unwrap_or(0),
        _ => 0,
    }
}

/// Whether an `r` here may begin a raw string: it is no part of a name, except for the `b` or `c` before it.
fn starts_literal(chars: &[char], at: usize) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    match &chars[..at] {
        [.., before, 'b' | 'c'] => !is_name(*before),
        [.., before] => !is_name(*before) || (at == 1 && matches!(before, 'b' | 'c')),
        [] => true,
    }
}

/// Block comments nest.
fn block_comment_length(chars: &[char]) -> usize {
    let (mut at, mut depth) = (0, 0usize);
    loop {
        match chars[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            [] => return at,
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
}

/// Up to and with the closing quote that no backslash precedes.
fn escaped_length(chars: &[char], quote: char) -> usize {
    let mut at = 0;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// `None` if this is a name, not a raw string.
fn raw_string_length(chars: &[char]) -> Option<usize> {
    let hashes = chars[1..].iter().take_while(|&&c| c == '#').count();
    if chars.get(1 + hashes) != Some(&'"') {
        return None;
    }
    let mut at = hashes + 2;
    while at < chars.len() {
        let closing = chars[at] == '"' && chars[at + 1..].iter().take(hashes).all(|&c| c == '#');
        at += 1;
        if closing {
            return Some(at + hashes);
        }
    }
    Some(at)
}

/// The code (from [`code_of`]) without the items that only tests are built with.
pub(crate) fn without_tests(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find("#[cfg(test)]") {
        kept.push_str(&rest[..start]);
        rest = &rest[start..];
        rest = &rest[item_length(rest)..];
    }
    kept.push_str(rest);
    kept
}

/// Up to the semicolon or the closing brace that ends the item.
fn item_length(code: &str) -> usize {
    let mut depth = 0usize;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(c, ';' | '}') {
            return at + 1;
        }
    }
    code.len()
}

/// A name, a number, `::`, or one character of punctuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// From 1.
    pub(crate) line: usize,
}

pub(crate) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    for (line, text) in (1..).zip(code.lines()) {
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let length = match name {
                0 if rest.starts_with("::") => 2,
                0 => rest.chars().next().map_or(1, char::len_utf8),
                name => name,
            };
            found.push(Token { text: &rest[..length], line });
            rest = rest[length..].trim_start();
        }
    }
    found
}

/// A path such as `std::net::UdpSocket`, as it stands in the code or as a `use` spells it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path<'a> {
    pub(crate) segments: Vec<&'a str>,
    pub(crate) line: usize,
}

/// All paths of two or more names in the code (from [`code_of`]), and all that it imports, groups resolved.
pub(crate) fn paths(code: &str) -> Vec<Path<'_>> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].text == "use" {
            at += 1;
            imports(&tokens, &mut at, &[], &mut found);
            continue;
        }
        let mut segments = Vec::new();
        let line = tokens[at].line;
        while tokens.get(at).is_some_and(|token| is_name(token.text)) {
            segments.push(tokens[at].text);
            at += 1;
            let continues = tokens.get(at).is_some_and(|token| token.text == "::")
                && tokens.get(at + 1).is_some_and(|token| is_name(token.text));
            if !continues {
                break;
            }
            at += 1;
        }
        match segments.len() {
            0 => at += 1,
            1 => {}
            _ => found.push(Path { segments, line }),
        }
    }
    found
}

/// Reads one tree of a `use` and leaves `at` behind it.
fn imports<'a>(tokens: &[Token<'a>], at: &mut usize, prefix: &[&'a str], found: &mut Vec<Path<'a>>) {
    let mut segments = prefix.to_vec();
    while let Some(token) = tokens.get(*at) {
        *at += 1;
        match token.text {
            "::" => {}
            "{" => {
                while tokens.get(*at).is_some_and(|token| token.text != "}") {
                    imports(tokens, at, &segments, found);
                    *at += usize::from(tokens.get(*at).is_some_and(|token| token.text == ","));
                }
                *at += 1;
                return;
            }
            "as" => *at += 1,
            name if name == "*" || is_name(name) => segments.push(name),
            // The comma, brace or semicolon after the tree belongs to the caller.
            _ => {
                *at -= usize::from(matches!(token.text, "," | "}" | ";"));
                found.push(Path { segments, line: token.line });
                return;
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &str) -> Vec<String> {
        paths(code).iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        let text = "a // x\nb /* y /* z */ y */ c \"q\\\"q\" d 'e' '\\'' f";
        let words: Vec<String> = code_of(text).split_whitespace().map(str::to_owned).collect();
        assert_eq!(words, ["a", "b", "c", "d", "f"]);
        assert_eq!(
            code_of("r#\"x \" y\"# a br\"z\" b").split_whitespace().collect::<Vec<_>>(),
            ["a", "b", "b"]
        );
    }

    #[test]
    fn lifetimes_and_raw_names_stay() {
        for code in ["fn f<'a>(x: &'a str, y: &'static str) {}", "let r#type = bar;", "for r in r#mod {}"] {
            assert_eq!(code_of(code), code);
        }
    }

    #[test]
    fn unfinished_literals_end_with_the_text() {
        for text in ["\"abc", "/* abc", "r##\"abc\"#", "'\\", "// abc", "\"abc\\"] {
            assert_eq!(code_of(text).trim(), "", "{text}");
        }
    }

    #[test]
    fn lines_keep_their_numbers() {
        let text = "/* one\ntwo */\n\"three\nfour\" five";
        assert_eq!(tokens(&code_of(text)), [Token { text: "five", line: 4 }]);
    }

    #[test]
    fn test_items_are_removed() {
        let code =
            "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { if c {} } }\nfn d() {}\n#[cfg(test)]\nmod e;\nf";
        let kept: String = without_tests(code).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(kept, "fn a() {} fn d() {} f");
    }

    #[test]
    fn imports_are_spelled_out() {
        assert_eq!(
            found("use std::{net::{IpAddr, self}, thread as t}; use ::a::*; use b;"),
            ["std::net::IpAddr", "std::net::self", "std::thread", "a::*", "b"]
        );
        assert_eq!(found("use a::{b, c,}; d::e()"), ["a::b", "a::c", "d::e"]);
    }

    #[test]
    fn paths_in_code_are_found() {
        assert_eq!(found("let x = std::net::lookup::<u8>(y::Z, w);"), ["std::net::lookup", "y::Z"]);
    }

    #[test]
    fn an_unfinished_import_ends_with_the_text() {
        for code in ["use", "use a::{", "use a::{b", "use a::{b,", "use a as", "use }"] {
            paths(code);
        }
    }
}
