//! What other users of this machine may have put in the place of a file. Nobody but root and the user can choose what
//! the user's programs read, run and replace.

use nix::errno::Errno;
use nix::fcntl::{OFlag, readlinkat};
use nix::unistd::geteuid;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

/// Links that are followed one after the other; the kernel's limit.
const LINKS_MAX: usize = 40;

/// Whether what has these properties belongs to the user of this process or to root.
#[must_use]
pub fn is_own(data: &Metadata) -> bool {
    data.uid() == geteuid().as_raw() || data.uid() == 0
}

/// Whether other users may put files into a folder with these properties.
#[must_use]
pub fn others_may_write(folder: &Metadata) -> bool {
    !is_own(folder) || folder.mode() & 0o022 != 0
}

/// The path, without any links, of a file that is to be written and need not be there yet. In folders that others may
/// write, links of other users are not followed: they would choose which of the user's files is replaced.
///
/// # Errors
/// If such a link is on the way, or the links have no end.
pub fn place_of(target: &Path) -> io::Result<PathBuf> {
    let (mut place, mut links) = (PathBuf::from("/"), 0);
    let mut rest = parts(&std::path::absolute(target)?);
    while let Some(part) = rest.pop_front() {
        let next = place.join(&part);
        if part == ".." {
            place.pop();
            continue;
        }
        // A link is looked at and read as one thing, so that nobody exchanges it in between.
        let flags = (OFlag::O_PATH | OFlag::O_NOFOLLOW).bits();
        let there = OpenOptions::new().read(true).custom_flags(flags).open(&next);
        let there = there.and_then(|file| Ok((file.metadata()?, file)));
        // What is not there, or cannot be looked at, is no link that could be followed.
        let Some((data, link)) = there.ok().filter(|(data, _)| data.is_symlink()) else {
            place = next;
            continue;
        };
        links += 1;
        if links > LINKS_MAX {
            return Err(Errno::ELOOP.into());
        }
        if !is_own(&data) && others_may_write(&fs::metadata(&place)?) {
            let sentence =
                format!("{} is another user's link in a folder that others may write", next.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, sentence));
        }
        let to = PathBuf::from(target_of(&link)?);
        if to.is_absolute() {
            place = "/".into();
        }
        parts(&to).into_iter().rev().for_each(|part| rest.push_front(part));
    }
    Ok(place)
}

fn target_of(link: &File) -> io::Result<OsString> {
    Ok(readlinkat(link, "")?)
}

/// The names in a path, and the steps back.
fn parts(path: &Path) -> VecDeque<OsString> {
    let is_step = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().filter(is_step).map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn links_are_followed_to_what_need_not_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/file"), "").unwrap();
        symlink("a/b", at("relative")).unwrap();
        symlink(at("a/file"), at("absolute")).unwrap();
        symlink("../relative/new", at("a/dangling")).unwrap();
        symlink("circle", at("circle")).unwrap();
        for (name, place) in [
            ("new", "new"),
            ("absolute", "a/file"),
            ("relative/c", "a/b/c"),
            ("relative/../file", "a/file"),
            ("a/./dangling", "a/b/new"),
            ("no/folder", "no/folder"),
        ] {
            assert_eq!(place_of(&at(name)).unwrap(), at(place), "{name}");
        }
        assert_eq!(place_of(&at("circle")).unwrap_err().raw_os_error(), Some(Errno::ELOOP as i32));
        assert!(place_of(Path::new("")).is_err());
    }

    #[test]
    fn a_folder_is_the_users_alone_if_nobody_else_may_write_it() {
        let folder = tempfile::tempdir().unwrap();
        for (mode, others) in [(0o700, false), (0o755, false), (0o775, true), (0o777, true), (0o1777, true)] {
            set_mode(folder.path(), mode);
            let data = fs::metadata(folder.path()).unwrap();
            assert_eq!(others_may_write(&data), others, "{mode:o}");
        }
    }

    /// Needs root, which can make another user's link; `tests/users` of the workspace insists on it in CI.
    #[test]
    fn a_link_of_another_user_is_followed_only_where_nobody_else_could_have_put_it() {
        if !geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let shared = folder.path().join("shared");
        fs::create_dir_all(shared.join("real")).unwrap();
        for (name, to) in [("file", "real/file"), ("folder", "real")] {
            symlink(to, shared.join(name)).unwrap();
            lchown(shared.join(name), Some(61_234), None).unwrap();
        }
        for name in ["file", "folder/file"] {
            let place = || place_of(&shared.join(name));
            set_mode(&shared, 0o755);
            assert!(place().unwrap().ends_with("shared/real/file"));
            for mode in [0o777, 0o1777] {
                set_mode(&shared, mode);
                let said = place().unwrap_err().to_string();
                assert!(said.ends_with("another user's link in a folder that others may write"), "{said}");
            }
        }
    }
}
