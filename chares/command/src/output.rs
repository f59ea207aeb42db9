//! Files that a command leaves: whole ones beside the old first, so that there is an old one or a whole new one.
use crate::named_file::{NamedFile, check_distinct};
use crate::replacement::{Replacement, can_be_written};
use runtime::config::ClusterConfig;
use runtime::failure::{Failure, Kind};
use runtime::ownership::place_of;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// Refuses files of which one would be written over another.
pub(crate) fn check_files(files: &[NamedFile]) -> Result<(), Failure> {
    check_distinct(files).map_err(|sentence| Failure::new(Kind::Usage, sentence))
}

/// The file that says which nodes there are.
pub(crate) fn nodes_file(config: &ClusterConfig) -> NamedFile {
    NamedFile::read("the nodes file", Path::new(&config.source))
}

/// Refuses a place where `write` would fail; `what` is what goes there, e.g. `report`.
pub(crate) fn check(what: &str, path: &Path) -> Result<(), Failure> {
    let could = if is_stream(path) { open_stream(path).map(drop) } else { can_be_written(path) };
    could.map_err(|e| unwritable(what, path, &e))
}

/// Writes a whole file, or to a stream.
pub(crate) fn write(what: &str, path: &Path, contents: impl AsRef<[u8]>) -> Result<(), Failure> {
    let written = if is_stream(path) {
        open_stream(path).and_then(|mut stream| stream.write_all(contents.as_ref()))
    } else {
        Replacement::write(path, |out| out.write_all(contents.as_ref()))
    };
    written.map_err(|e| unwritable(what, path, &e))
}

/// What is to be said about a file that cannot be written.
pub(crate) fn unwritable(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(Kind::Output, format!("the {what} {} cannot be written: {error}", path.display()))
}

/// Whether it is something like /dev/stdout, which nothing can be put in the place of.
pub(crate) fn is_stream(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|old| !old.is_file() && !old.is_dir())
}

fn open_stream(path: &Path) -> io::Result<File> {
    // Not by a link that another user may have put there.
    place_of(path)?;
    File::options().append(true).open(path)
}

/// A new file in the place of an old one, which may have other names and is not written to; what is no file, such as
/// /dev/null, stays.
pub(crate) fn fresh_file(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path).is_ok_and(|old| !old.is_file()) {
        return File::options().write(true).open(path);
    }
    let path = place_of(path)?;
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}
