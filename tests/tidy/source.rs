//! Reading Rust for rules on code: its tokens without comments and literals, and which paths occur. Not more than that
//! is needed, so no syntax tree is built.

use proc_macro2::{Delimiter, LineColumn, Spacing, TokenStream, TokenTree};
use std::str::FromStr as _;

/// A name, `::`, a bracket, or one character of punctuation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// From 1.
    pub(crate) line: usize,
}

/// The tokens of a text, brackets among them, without comments and literals. Documentation is an attribute.
///
/// # Panics
/// If it is no Rust.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let stream = TokenStream::from_str(text).unwrap_or_else(|e| panic!("{e}:\n{text}"));
    let mut found = Vec::new();
    flatten(stream, &mut found);
    found
}

fn flatten(stream: TokenStream, found: &mut Vec<Token>) {
    let token = |text: &str, at: LineColumn| Token { text: text.into(), line: at.line };
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let at = tree.span().start();
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                found.push(token(open, at));
                flatten(group.stream(), found);
                found.push(token(close, group.span_close().end()));
            }
            TokenTree::Ident(name) => found.push(token(&name.to_string(), at)),
            TokenTree::Punct(colon) if colon.as_char() == ':' && colon.spacing() == Spacing::Joint => {
                let is_pair = trees.next_if(|next| next.to_string() == ":").is_some();
                found.push(token(if is_pair { "::" } else { ":" }, at));
            }
            TokenTree::Punct(character) => found.push(token(&character.as_char().to_string(), at)),
            TokenTree::Literal(_) => {}
        }
    }
}

/// What an item begins with that only tests are built with.
const FOR_TESTS: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

/// Whether `words` are the first tokens.
pub(crate) fn begin_with(tokens: &[Token], words: &[&str]) -> bool {
    tokens.len() >= words.len() && tokens.iter().zip(words).all(|(token, word)| token.text == *word)
}

/// The tokens without the items that only tests are built with, and how many lines these items have.
pub(crate) fn without_tests(tokens: &[Token]) -> (Vec<Token>, usize) {
    let (mut kept, mut lines, mut at) = (Vec::new(), 0, 0);
    while let Some(token) = tokens.get(at) {
        if begin_with(&tokens[at..], &FOR_TESTS) {
            let item = &tokens[at..at + item_length(&tokens[at..])];
            lines += item.last().map_or(0, |last| last.line + 1 - token.line);
            at += item.len();
        } else {
            kept.push(token.clone());
            at += 1;
        }
    }
    (kept, lines)
}

/// Up to the semicolon or the closing brace that ends the item.
fn item_length(tokens: &[Token]) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(token.text.as_str(), ";" | "}") {
            return at + 1;
        }
    }
    tokens.len()
}

/// A path such as `std::net::UdpSocket`, as it stands in the code or as a `use` spells it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path<'a> {
    pub(crate) segments: Vec<&'a str>,
    pub(crate) line: usize,
}

/// All paths of two or more names among the tokens, and all that is imported, groups resolved.
pub(crate) fn paths(tokens: &[Token]) -> Vec<Path<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].text == "use" {
            at += 1;
            imports(tokens, &mut at, &[], &mut found);
            continue;
        }
        let mut segments = Vec::new();
        let line = tokens[at].line;
        while tokens.get(at).is_some_and(|token| is_name(&token.text)) {
            segments.push(tokens[at].text.as_str());
            at += 1;
            let continues = tokens.get(at).is_some_and(|token| token.text == "::")
                && tokens.get(at + 1).is_some_and(|token| is_name(&token.text));
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
fn imports<'a>(tokens: &'a [Token], at: &mut usize, prefix: &[&'a str], found: &mut Vec<Path<'a>>) {
    let mut segments = prefix.to_vec();
    while let Some(token) = tokens.get(*at) {
        *at += 1;
        match token.text.as_str() {
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
            other => {
                *at -= usize::from(matches!(other, "," | "}" | ";"));
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

    fn words(tokens: &[Token]) -> Vec<&str> {
        tokens.iter().map(|token| token.text.as_str()).collect()
    }

    fn found(code: &str) -> Vec<String> {
        paths(&tokens(code)).iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn comments_and_literals_are_left_out() {
        let text = "a // x\nb /* y /* z */ y */ c \"q\\\"q\" d 'e' '\\'' f r#\"x \" y\"# g br\"z\" 1.5 h";
        assert_eq!(words(&tokens(text)), ["a", "b", "c", "d", "f", "g", "h"]);
    }

    #[test]
    fn lines_are_counted_and_pairs_of_colons_are_one() {
        let found = tokens("/* one\ntwo */\n\"three\nfour\" five::<'a> {\n}");
        assert_eq!(words(&found), ["five", "::", "<", "'", "a", ">", "{", "}"]);
        assert_eq!((found[0].line, found[6].line, found[7].line), (4, 4, 5));
    }

    #[test]
    fn test_items_are_removed() {
        let code =
            "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { if c {\n} } }\nfn d() {}\n#[cfg(test)]\nmod e;\nf";
        let (kept, lines) = without_tests(&tokens(code));
        assert_eq!((words(&kept).concat().as_str(), lines), ("fna(){}fnd(){}f", 5));
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
    fn paths_in_code_are_found_in_macros_too() {
        assert_eq!(found("let x = std::net::lookup::<u8>(y::Z, w);"), ["std::net::lookup", "y::Z"]);
        assert_eq!(found("assert!(std::time::f(), \"a::b\");"), ["std::time::f"]);
    }
}
