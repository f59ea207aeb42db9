//! Where a user's own files are, by the XDG base directory specification.

use std::path::PathBuf;

/// This program's folder in the one that `variable` names, or that stands below the user's home; `None` for a user without a
/// home.
pub(crate) fn of_user(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute(variable).or_else(|| Some(absolute("HOME")?.join(below_home)))?;
    Some(folder.join("metachare"))
}
