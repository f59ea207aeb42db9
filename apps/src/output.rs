//! Results that commands write: words to standard output, JSON and other text to files that are whole or not there.

use chares::{Replacement, RunError};
use serde::Serialize;
use std::io::{self, Write as _};
use std::path::Path;

/// Writes to standard output; whoever closed it does not want it.
///
/// # Errors
/// If it cannot be written for another reason.
pub fn say(text: &str) -> Result<(), RunError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(RunError::Output(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Checks, before a long measurement, that a file could be written.
///
/// # Errors
/// If not.
pub fn check_writable(path: &Path) -> Result<(), RunError> {
    chares::can_be_written(path).map_err(|e| unwritable(path, &e))
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
    let written = Replacement::create(path).and_then(|new| {
        new.file().write_all(text.as_bytes())?;
        new.commit()
    });
    written.map_err(|e| unwritable(path, &e))
}

pub(crate) fn unwritable(path: &Path, error: &io::Error) -> RunError {
    RunError::Output(format!("the results {} cannot be written: {error}", path.display()))
}
