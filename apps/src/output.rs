//! Results that commands write: words to standard output, JSON and other text to files that are whole or not there.

use chares::RunError;
use command::{NamedFile, Replacement};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// Writes to standard output; whoever closed it does not want it.
///
/// # Errors
/// If it cannot be written for another reason.
pub fn say(text: &str) -> Result<(), RunError> {
    command::terminal::print(text)
        .map_err(|error| RunError::Output(format!("standard output cannot be written: {error}")))
}

/// Checks, before a long measurement, that a file could be written.
///
/// # Errors
/// If not.
pub fn check_writable(path: &Path) -> Result<(), RunError> {
    command::can_be_written(path).map_err(|e| unwritable(path, &e))
}

/// Writes a file of JSON for people and programs; an old one is replaced when the new one is whole.
///
/// # Errors
/// If it cannot be written.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RunError> {
    let text = serde_json::to_string_pretty(value).map_err(|e| RunError::Failed(e.to_string()))? + "\n";
    write(path, &text)
}

/// Writes a file of text; an old one is replaced when the new one is whole.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), RunError> {
    fill(path, |out| out.write_all(text.as_bytes()))
}

/// Writes a file piece by piece; an old one is replaced when the new one is whole.
///
/// # Errors
/// If it cannot be written.
pub fn fill(path: &Path, fill: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> Result<(), RunError> {
    Replacement::write(path, fill).map_err(|e| unwritable(path, &e))
}

/// Checks, before a long computation, that the file that an option names could be written.
///
/// # Errors
/// If not, with the option.
pub fn check_option(option: &str, path: &Path) -> Result<(), RunError> {
    command::can_be_written(path).map_err(|e| {
        RunError::Output(format!("{option} {}: it cannot be written there: {e}", path.display()))
    })
}

/// Those of the files with their options that are named, as what is read.
pub(crate) fn read<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a Option<PathBuf>)>,
) -> impl Iterator<Item = NamedFile> {
    files.into_iter().filter_map(|(option, path)| Some(NamedFile::read(option, path.as_ref()?)))
}

/// Those of the files with their options that are named, as what is written.
pub(crate) fn written<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a Option<PathBuf>)>,
) -> impl Iterator<Item = NamedFile> {
    files.into_iter().filter_map(|(option, path)| Some(NamedFile::written(option, path.as_ref()?)))
}

fn unwritable(path: &Path, error: &io::Error) -> RunError {
    RunError::Output(format!("the results {} cannot be written: {error}", path.display()))
}
