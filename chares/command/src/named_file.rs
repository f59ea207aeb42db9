//! Files that somebody names on the command line: none that is written may be another one too, because only the last
//! would be left.

use std::fs;
use std::path::{Path, PathBuf};

/// A file that a command reads or writes, and how the user speaks of it.
#[derive(Clone, Debug)]
pub struct NamedFile {
    name: String,
    path: PathBuf,
    is_written: bool,
}

impl NamedFile {
    /// A file that is read; `name` is its option, such as `--a`, or what else it is called.
    #[must_use]
    pub fn read(name: &str, path: &Path) -> Self {
        Self { name: name.into(), path: path.into(), is_written: false }
    }

    /// A file that is written.
    #[must_use]
    pub fn written(name: &str, path: &Path) -> Self {
        Self { name: name.into(), path: path.into(), is_written: true }
    }

    /// Whether both are the same file, and one of them would be lost by that.
    fn clashes_with(&self, other: &Self) -> bool {
        (self.is_written || other.is_written) && identity(&self.path) == identity(&other.path)
    }
}

/// Refuses files of which one would be written over another one; what can be written to twice, such as /dev/stdout,
/// may be named twice.
///
/// # Errors
/// Both names, the file, and how to mend it.
pub(crate) fn check_distinct(files: &[NamedFile]) -> Result<(), String> {
    let is_stream = |file: &&NamedFile| fs::metadata(&file.path).is_ok_and(|old| !old.is_file());
    let files: Vec<&NamedFile> = files.iter().filter(|file| !is_stream(file)).collect();
    for (at, file) in files.iter().enumerate() {
        if let Some(other) = files[..at].iter().find(|other| file.clashes_with(other)) {
            let (one, two, path) = (&other.name, &file.name, file.path.display());
            return Err(format!("{one} and {two} are both {path}: give each a file of its own"));
        }
    }
    Ok(())
}

/// The same for all names of a file, which need not be there yet.
fn identity(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.into());
        path.file_name().map_or_else(|| path.into(), |name| folder.join(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_no_other_file_by_whatever_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a.npy"), "").unwrap();
        std::os::unix::fs::symlink(at("a.npy"), at("link")).unwrap();
        fs::create_dir(at("sub")).unwrap();
        let said = |files: &[NamedFile]| check_distinct(files).unwrap_err();
        let [read, written] = [NamedFile::read, NamedFile::written];
        for other in ["a.npy", "link", "sub/../a.npy"] {
            let sentence = said(&[read("--a", &at("a.npy")), written("--report", &at(other))]);
            let path = at(other);
            let expected =
                format!("--a and --report are both {}: give each a file of its own", path.display());
            assert_eq!(sentence, expected);
        }
        let sentence = said(&[written("--out", &at("new")), written("--report", &at("sub/../new"))]);
        assert!(sentence.starts_with("--out and --report are both "), "{sentence}");
        check_distinct(&[read("--a", &at("a.npy")), read("--b", &at("a.npy"))]).unwrap();
        check_distinct(&[written("--out", &at("sub/new")), written("--report", &at("new"))]).unwrap();
        let null = Path::new("/dev/null");
        check_distinct(&[written("--json", null), written("--report", null)]).unwrap();
    }
}
