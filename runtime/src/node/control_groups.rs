//! Where the control groups are that this process is in.

use std::path::{Path, PathBuf};

/// One hierarchy of control groups.
pub(super) struct Hierarchy {
    /// The controller that is mounted there; none for the hierarchy that all of version 2 share.
    controller: Option<&'static str>,
    root: &'static str,
}

impl Hierarchy {
    /// That of version 2.
    pub(super) const UNIFIED: Self = Self { controller: None, root: "/sys/fs/cgroup" };

    /// That of a controller of version 1, mounted at `root`.
    pub(super) const fn of(controller: &'static str, root: &'static str) -> Self {
        Self { controller: Some(controller), root }
    }

    /// The folders of the groups that a process is in, by the text of its `/proc/self/cgroup`, the inmost first; none if it is
    /// not in this hierarchy.
    pub(super) fn groups(&self, own: &str) -> Vec<PathBuf> {
        let Some(path) = self.path(own) else { return Vec::new() };
        let inmost = Path::new(self.root).join(path.trim_start_matches('/'));
        inmost.ancestors().take_while(|group| group.starts_with(self.root)).map(Path::to_path_buf).collect()
    }

    /// The path of the inmost group, below the root.
    fn path<'a>(&self, own: &'a str) -> Option<&'a str> {
        own.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let is_named = match self.controller {
                None => controllers.is_empty(),
                Some(controller) => controllers.split(',').any(|word| word == controller),
            };
            is_named.then_some(path)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_from_the_inmost_to_the_root() {
        let own = "4:memory,hugetlb:/jobs/a\n1:cpu,cpuacct:/b\n0::/user.slice\n";
        let groups = |hierarchy: Hierarchy| {
            hierarchy.groups(own).iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        let memory = groups(Hierarchy::of("memory", "/m"));
        assert_eq!(memory, ["/m/jobs/a", "/m/jobs", "/m"]);
        assert_eq!(groups(Hierarchy::of("cpu", "/c")), ["/c/b", "/c"]);
        assert_eq!(groups(Hierarchy::UNIFIED), ["/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"]);
        assert!(groups(Hierarchy::of("blkio", "/x")).is_empty());
        let (new, old) = (Hierarchy::UNIFIED, Hierarchy::of("memory", "/m"));
        let mixed = "9:name=systemd:/init\n4:cpu,memory:/a:b c\n3:cpuset:/\n0::/d\n";
        assert_eq!((new.path(mixed), old.path(mixed)), (Some("/d"), Some("/a:b c")));
        assert_eq!((new.path("0::/\n"), old.path("0::/\n")), (Some("/"), None));
        assert_eq!((new.path("4:memory:/x\n"), old.path("")), (None, None));
    }
}
