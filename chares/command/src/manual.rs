//! `help`: the pages of the manual. Those about the command line are here; a program adds those of its applications
//! with [`CommandLine::page`](crate::CommandLine::page).
//!
//! A page is Markdown that can be read as it stands. Its first line is its title. A word that names both a page and a
//! command, such as `compare`, shows the options of the command and then the page.

use super::{said, say};
use crate::command_line::CommandLine;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command};
use runtime::failure::{Failure, Kind};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;

/// A page with the names by which it is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    name: &'static str,
    /// A second name, for what a user may look for as well.
    alias: Option<&'static str>,
    text: &'static str,
}

impl Page {
    pub(crate) const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, alias: None, text }
    }

    const fn or(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.alias)
    }

    /// What the list of pages says of it beside its name: its first line, `# Name: title`, without what is before the
    /// colon.
    fn title(&self) -> &'static str {
        let heading = self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim();
        heading.split_once(": ").map_or(heading, |(_, title)| title)
    }
}

/// The pages about what every program on chares has.
const PAGES: [Page; 12] = [
    Page::new("nodes", include_str!("manual/nodes.md")),
    Page::new("speed", include_str!("manual/speed.md")),
    Page::new("balance", include_str!("manual/balance.md")),
    Page::new("network", include_str!("manual/network.md")),
    Page::new("compare", include_str!("manual/compare.md")),
    Page::new(PLAN, include_str!("manual/plan.md")),
    Page::new("watch", include_str!("manual/watch.md")).or("window"),
    Page::new("record", include_str!("manual/record.md")).or("replay"),
    Page::new("checkpoint", include_str!("manual/checkpoint.md")),
    Page::new("log", include_str!("manual/log.md")),
    Page::new("report", include_str!("report/schema.md")),
    Page::new("exit-codes", include_str!("manual/exit-codes.md")),
];
/// Only programs that have a cost model have this command and its page.
const PLAN: &str = "plan";

/// Names with more changes than this are not taken for a slip of the keyboard.
const SLIPS_MAX: usize = 3;

/// The command.
pub(crate) fn command(program: &CommandLine) -> Command {
    let topic = Arg::new("topic").value_name("TOPIC").action(ArgAction::Append).num_args(0..);
    let topic = topic.value_parser(Topics(topics(program))).hide_possible_values(true);
    Command::new("help")
        .about("Show a page of the manual, or the options of a command")
        .arg(topic.help("A page or an application, or the words of a command, such as `nodes check`"))
}

/// Any words, of which shells offer these.
#[derive(Clone)]
struct Topics(Vec<&'static str>);

impl TypedValueParser for Topics {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

/// The names of all pages.
pub(crate) fn topics(program: &CommandLine) -> Vec<&'static str> {
    pages(program).flat_map(|page| [Some(page.name), page.alias]).flatten().collect()
}

/// The list of all pages, for the end of the program's own help.
pub(crate) fn list(program: &CommandLine) -> String {
    let mut list = format!("Pages of the manual, shown by `{} help NAME`:\n", program.name);
    for page in pages(program) {
        let _ = writeln!(list, "  {:<16} {}", page.names().collect::<Vec<_>>().join(", "), page.title());
    }
    list
}

/// Prints what there is about the words that were given; the exit code.
pub(crate) fn help(program: &CommandLine, matches: &ArgMatches) -> Result<u8, Failure> {
    let words: Vec<&str> = matches.get_many("topic").into_iter().flatten().map(String::as_str).collect();
    let page = match words[..] {
        [word] => pages(program).find(|page| page.names().any(|name| name == word)),
        _ => None,
    };
    let is_command = is_command(&super::command(program), &words);
    if is_command {
        // As if `--help` had followed the command, the name that this program was called by included.
        let called = std::env::args_os().next().unwrap_or_else(|| program.name.into());
        let words = words.iter().map(OsString::from);
        let line = std::iter::once(called).chain(words).chain(["--help".into()]);
        if let Err(help) = super::command(program).try_get_matches_from(line) {
            said(help.print())?;
        }
    }
    match page {
        Some(page) if is_command => say(&format!("\n{}", page.text))?,
        Some(page) => say(&format!("{}{}", page.text, options_of(program, words[0])))?,
        None if is_command => {}
        None => return Err(Failure::new(Kind::Usage, unknown(program, &words))),
    }
    Ok(0)
}

fn pages(program: &CommandLine) -> impl Iterator<Item = Page> {
    let has_models = program.apps.iter().any(|app| app.cost.is_some());
    let own = program.pages.iter().copied();
    own.chain(PAGES.into_iter().filter(move |page| has_models || page.name != PLAN))
}

/// Whether these words, one after the other, name a command.
fn is_command(whole: &Command, words: &[&str]) -> bool {
    words.iter().try_fold(whole, |command, word| command.find_subcommand(word)).is_some()
}

/// Where the options of an application are explained, at the end of its page.
fn options_of(program: &CommandLine, name: &str) -> String {
    let has_options = program.apps.iter().any(|app| app.name == name && !app.command.is_hide_set());
    if has_options {
        format!("\nAll options: `{} run {name} --help`.\n", program.name)
    } else {
        String::new()
    }
}

/// The sentence about words that mean nothing here, with the names that are nearest to them.
fn unknown(program: &CommandLine, words: &[&str]) -> String {
    let asked = words.join(" ");
    let whole = super::command(program);
    // Of several words all but the last may be right; then the last one is to be mended.
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (*last, before));
    let parent = before.iter().try_fold(&whole, |command, word| command.find_subcommand(word));
    let names =
        parent.into_iter().flat_map(Command::get_subcommands).filter(|command| !command.is_hide_set());
    let mut names: Vec<&str> = names.map(Command::get_name).collect();
    if before.is_empty() {
        names.extend(topics(program));
    }
    let before: String = before.iter().map(|word| format!("{word} ")).collect();
    let near: Vec<String> = nearest(last, names).iter().map(|name| format!("`{before}{name}`")).collect();
    let hint = if near.is_empty() { String::new() } else { format!("did you mean {}? ", near.join(" or ")) };
    format!("there is no page or command {asked:?}; {hint}`{} help` lists them", program.name)
}

/// At most three of the names that could have been meant, the nearest first.
fn nearest<'a>(word: &str, names: Vec<&'a str>) -> Vec<&'a str> {
    let distance = |name: &str| {
        let begins = word.len() > 1 && (name.starts_with(word) || word.starts_with(name));
        if begins { 0 } else { strsim::damerau_levenshtein(word, name) }
    };
    let is_near = |name: &&str| distance(name) <= SLIPS_MAX.min(word.chars().count() / 2);
    let mut near: Vec<&str> = names.into_iter().filter(is_near).collect();
    near.sort_by_key(|name| (distance(name), *name));
    near.dedup();
    near.truncate(3);
    near
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command as whole;
    use chares::{Program, RunError};

    fn program() -> CommandLine {
        let page = "# Squares: how large they are\n\nText.\n";
        CommandLine::new(Program::new("squares", "1.0"))
            .command(Command::new("bench"), |_| Ok::<(), RunError>(()))
            .page("area", page)
    }

    #[test]
    fn pages_have_titles_and_names_of_their_own() {
        let all: Vec<Page> = pages(&program()).chain(PAGES).collect();
        assert!(all.iter().all(|page| page.text.starts_with("# ") && page.title().len() > 10), "{all:?}");
        let mut names: Vec<&str> = PAGES.iter().flat_map(Page::names).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        let list = list(&program());
        assert!(list.contains("\n  area             how large they are\n"), "{list}");
        assert!(!list.contains("plan"), "no application has a cost model: {list}");
    }

    #[test]
    fn words_of_commands_are_followed_to_their_end() {
        let whole = whole(&program());
        for (words, is) in [
            (&["nodes", "check"][..], true),
            (&["nodes"], true),
            (&["bench"], true),
            (&[], true),
            (&["nodes", "chek"], false),
            (&["area"], false),
        ] {
            assert_eq!(is_command(&whole, words), is, "{words:?}");
        }
    }

    #[test]
    fn what_is_unknown_is_named_with_what_is_near() {
        let program = program();
        for (words, sentence) in [
            (
                &["exit-code"][..],
                "no page or command \"exit-code\"; did you mean `exit-codes`? `squares help` lists them",
            ),
            (&["compar"], "did you mean `compare`?"),
            (&["recrod"], "did you mean `record` or `report`?"),
            (&["nodes", "chek"], "\"nodes chek\"; did you mean `nodes check`?"),
            (&["zebra"], "there is no page or command \"zebra\"; `squares help` lists them"),
            (&["x"], "\"x\"; `squares help`"),
        ] {
            let said = unknown(&program, words);
            assert!(said.contains(sentence), "{said}");
        }
    }
}
