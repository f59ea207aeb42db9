//! One picture in place of the window, as text or as SVG, and how the window looks.

use super::options::ColorChoice;
use super::{output, say};
use crate::named_file::NamedFile;
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use runtime::failure::Failure;
use std::path::PathBuf;
use tui::{Screen, Still, WindowOptions};

/// Columns and lines of a picture, if nothing else is said.
const SIZE: (u16, u16) = (100, 30);
const LARGEST: u16 = 500;

/// The options of `watch` and `replay`.
pub(crate) fn options() -> [Arg; 5] {
    let once = Arg::new("once").long("once").action(ArgAction::SetTrue);
    let picture = Arg::new("picture").long("picture").value_name("FILE").conflicts_with("once");
    let size = Arg::new("size").long("size").value_name("COLUMNSxLINES").value_parser(size);
    let screen = Arg::new("screen").long("screen").value_name("SCREEN");
    let color = Arg::new("color").long("color").value_name("WHEN").default_value("auto");
    [
        once.help("Print the window once, as text"),
        picture
            .value_parser(value_parser!(PathBuf))
            .help("Write one picture of the window as SVG, and show no window"),
        size.help(format!("Size of --once and --picture [default: {}x{}]", SIZE.0, SIZE.1)),
        screen.value_parser(Screen::ALL.map(Screen::name)).help("The screen that is shown first"),
        color.value_parser(value_parser!(ColorChoice)).help("When to use colours, and how many"),
    ]
}

/// How the window looks, and with which screen it begins.
pub(crate) fn window_options(matches: &ArgMatches) -> WindowOptions {
    let wanted = matches.get_one::<String>("screen");
    let screen = Screen::ALL.into_iter().find(|screen| wanted.is_some_and(|name| name == screen.name()));
    let options = WindowOptions::from_env();
    let color = matches.get_one::<ColorChoice>("color").copied().unwrap_or(ColorChoice::Auto);
    WindowOptions { screen: screen.unwrap_or_default(), colors: color.of(options.colors), ..options }
}

/// Whether a picture is asked for.
pub(crate) fn is_wanted(matches: &ArgMatches) -> bool {
    matches.get_flag("once") || matches.contains_id("picture")
}

/// The file that a picture is written to, if one is.
pub(crate) fn file(matches: &ArgMatches) -> Option<NamedFile> {
    Some(NamedFile::written("--picture", matches.get_one::<PathBuf>("picture")?))
}

/// Writes or prints the picture that is asked for.
pub(crate) fn show(still: Still, matches: &ArgMatches) -> Result<(), Failure> {
    let (width, height) = matches.get_one("size").copied().unwrap_or(SIZE);
    match matches.get_one::<PathBuf>("picture") {
        Some(path) => output::write("picture", path, still.svg(width, height)),
        None => say(&still.text(width, height)),
    }
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let sides = text.split_once(['x', 'X', '×']);
    let side = |side: &str| side.trim().parse().ok().filter(|side| (1..=LARGEST).contains(side));
    let size = sides.and_then(|(width, height)| Some((side(width)?, side(height)?)));
    size.ok_or_else(|| format!("give columns and lines, each from 1 to {LARGEST}, such as 100x30"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_two_numbers() {
        assert_eq!(size("120x40"), Ok((120, 40)));
        assert_eq!(size(" 1 X 500 "), Ok((1, 500)));
        for wrong in ["", "80", "80x", "x24", "0x24", "80x501", "80x24x2", "-1x5", "a×b"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
