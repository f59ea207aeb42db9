//! `demo`: an application with defaults of its own, for a first look. Any of its options may be given to change it.

use super::options::RunOptions;
use crate::command_line::{CommandLine, Preset};
use clap::{Args as _, Command};

/// The command, if the program has one and lists its application.
pub(crate) fn command(program: &CommandLine) -> Option<Command> {
    let Preset { app, arguments } = program.demo?;
    let entry = program.apps.iter().find(|entry| entry.name == app)?;
    let name = if app == program.name { String::new() } else { format!(" {app}") };
    let about = format!("A first look: `{} run{name} {}`", program.name, arguments.join(" "));
    let about = about + ", with the load window if there is a terminal";
    let mut command = RunOptions::augment_args(entry.command.clone()).name("demo").about(about);
    let mut words = arguments.iter().chain(&["--watch-if-terminal"]);
    while let Some(word) = words.next() {
        let option = command.get_arguments().find(|arg| arg.get_long() == word.strip_prefix("--"));
        let Some(option) = option else { continue };
        let value = if option.get_action().takes_values() { words.next()? } else { &"true" };
        let id = option.get_id().to_string();
        command = command.mut_arg(id, |option| option.default_value(*value));
    }
    Some(command)
}
