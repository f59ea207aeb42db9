//! `completions` and `man`: what shells and `man` are told about the command line.

use super::command_line::CommandLine;
use super::manual;
use super::output::fresh_file;
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use clap_mangen::Man;
use runtime::failure::{Failure, Kind};
use std::io::Write as _;
use std::path::{Path, PathBuf};

pub(crate) fn commands() -> [Command; 2] {
    let shell = Arg::new("shell").value_name("SHELL").required(true).value_parser(value_parser!(Shell));
    let to = Arg::new("to").long("to").value_name("DIR").value_parser(value_parser!(PathBuf));
    [
        Command::new("completions")
            .about("Print what makes a shell complete this command line")
            .arg(shell.help("Whose; its output goes where that shell looks for completions")),
        Command::new("man")
            .about("Print the page for `man`: `man -l FILE` shows it")
            .arg(to.help("Write it and one page for each command into this folder instead")),
    ]
}

/// Prints the completions of a shell; the exit code.
pub(crate) fn completions(program: &CommandLine, matches: &ArgMatches) -> Result<u8, Failure> {
    let shell: Shell = *matches.get_one("shell").ok_or_else(|| Failure::new(Kind::Usage, "name a shell"))?;
    super::say(&completions_of(program, shell))?;
    Ok(0)
}

fn completions_of(program: &CommandLine, shell: Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut super::command(program), program.name, &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    if shell != Shell::Fish {
        return text;
    }
    // For fish the generator leaves out the values of arguments that stand without an option.
    let (name, topics) = (program.name, manual::topics(program).join(" "));
    text + &format!("complete -c {name} -n \"__fish_seen_subcommand_from help\" -f -a \"{topics}\"\n")
}

/// Prints the page, or writes all of them; the exit code.
pub(crate) fn man(program: &CommandLine, matches: &ArgMatches) -> Result<u8, Failure> {
    let mut whole = super::command(program);
    whole.build();
    match matches.get_one::<PathBuf>("to") {
        None => super::say(&String::from_utf8_lossy(&page(&whole)))?,
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|e| unwritable(folder, &e))?;
            write_all(&whole, folder)?;
        }
    }
    Ok(0)
}

fn page(command: &Command) -> Vec<u8> {
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = Man::new(command.clone()).render(&mut text);
    text
}

/// The page of a command and those of all in it, as `metachare-run-matmul.1`.
fn write_all(command: &Command, folder: &Path) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_string();
    let path = folder.join(format!("{name}.1"));
    let written = fresh_file(&path).and_then(|mut file| file.write_all(&page(command)));
    written.map_err(|e| unwritable(&path, &e))?;
    command.get_subcommands().filter(|one| !one.is_hide_set()).try_for_each(|one| write_all(one, folder))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    super::output::unwritable("page", path, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::Program;

    fn program() -> CommandLine {
        CommandLine::new(Program::new("squares", "1.0"))
    }

    #[test]
    fn all_shells_are_told_of_all_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let text = completions_of(&program(), shell);
            // After `help` there are pages, such as `exit-codes`.
            let offers = match shell {
                Shell::Bash => text.contains("opts=\"-h --help nodes speed "),
                _ => text.lines().any(|line| line.contains("exit-codes")),
            };
            assert!(offers, "{shell}");
            for word in ["compare", "replay", "completions", "built-in-nodes", "hostfile"] {
                assert!(text.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn each_command_has_a_page_that_tells_its_options() {
        let folder = tempfile::tempdir().unwrap();
        let mut whole = crate::command(&program());
        whole.build();
        write_all(&whole, folder.path()).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(read("squares.1").contains("squares\\-compare(1)"), "{}", read("squares.1"));
        assert!(read("squares-nodes-check.1").contains("\\-\\-start\\-timeout"));
        write_all(&whole, folder.path()).unwrap();
        let file = folder.path().join("squares.1");
        let failure = write_all(&whole, &file).unwrap_err();
        assert_eq!(failure.kind, Kind::Output);
    }
}
