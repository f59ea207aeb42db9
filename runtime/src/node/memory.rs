//! How much memory this process has taken, and how much the host would still give it.

use super::control_groups::Hierarchy;
use nix::unistd::{SysconfVar, sysconf};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// How control groups of one version tell about memory.
struct Groups {
    hierarchy: Hierarchy,
    /// The files with the most that a group may take, and with what it has taken, both with all groups in it.
    most: &'static str,
    taken: &'static str,
    /// The word in `memory.stat` for files that were read and can be forgotten.
    files: &'static str,
}

const VERSIONS: [Groups; 2] = [
    Groups {
        hierarchy: Hierarchy::UNIFIED,
        most: "memory.max",
        taken: "memory.current",
        files: "inactive_file",
    },
    Groups {
        hierarchy: Hierarchy::of("memory", "/sys/fs/cgroup/memory"),
        most: "memory.limit_in_bytes",
        taken: "memory.usage_in_bytes",
        files: "total_inactive_file",
    },
];

/// How long an answer about the host is believed.
const FRESH_NS: u64 = 5_000_000_000;

/// Memory that this process has taken for itself; 0 where the system does not tell. Pages of files, its own code
/// among them, do not count: the system takes them back when others need room.
pub(super) fn taken_bytes() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").ok().and_then(|text| own_pages(&text));
    let page_bytes =
        sysconf(SysconfVar::PAGE_SIZE).ok().flatten().and_then(|bytes| u64::try_from(bytes).ok());
    pages.unwrap_or(0).saturating_mul(page_bytes.unwrap_or(0))
}

/// Resident pages less those of files, by `statm`'s columns: size, resident, of files, ...
fn own_pages(statm: &str) -> Option<u64> {
    let mut columns = statm.split_whitespace().skip(1).map(|column| column.parse::<u64>().ok());
    let (resident, of_files) = (columns.next()??, columns.next()??);
    Some(resident.saturating_sub(of_files))
}

/// Memory that the host can still give. It is read seldom, because snapshots are many and the answer is spread over
/// half a dozen files.
#[derive(Debug, Default)]
pub(super) struct HostMemory {
    bytes: AtomicU64,
    fresh_until_ns: AtomicU64,
}

impl HostMemory {
    /// See [`available_bytes`]; as it was at most some seconds before `now_ns`.
    pub(super) fn available_bytes(&self, now_ns: u64) -> u64 {
        if now_ns >= self.fresh_until_ns.load(Ordering::Relaxed) {
            self.fresh_until_ns.store(now_ns.saturating_add(FRESH_NS), Ordering::Relaxed);
            self.bytes.store(available_bytes(), Ordering::Relaxed);
        }
        self.bytes.load(Ordering::Relaxed)
    }
}

/// What processes of this host can still take without swapping, within the limits of the control groups that
/// this one is in; 0 where the system does not tell.
pub(super) fn available_bytes() -> u64 {
    let host = fs::read_to_string("/proc/meminfo").ok().and_then(|text| figure(&text, "MemAvailable:"));
    let of_host = host.unwrap_or(0) << 10;
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    VERSIONS.iter().filter_map(|version| version.left(&own)).fold(of_host, u64::min)
}

impl Groups {
    /// What the groups of this version that a process is in, by the text of its `/proc/self/cgroup`, may still take;
    /// `None` without a limit.
    fn left(&self, own: &str) -> Option<u64> {
        self.hierarchy.groups(own).iter().filter_map(|group| self.left_in(group)).min()
    }

    /// What a group may still take; `None` without a limit. Files that it has read and could forget do not count.
    fn left_in(&self, group: &Path) -> Option<u64> {
        let number = |file: &str| fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
        let (most, taken) = (number(self.most)?, number(self.taken)?);
        let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        Some(most.saturating_sub(taken.saturating_sub(figure(&stat, self.files).unwrap_or(0))))
    }
}

/// The number after a word at the beginning of a line.
pub(super) fn figure(text: &str, word: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| if words.next() == Some(word) { words.next()?.parse().ok() } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_taken_less_than_its_host_has() {
        let whole = fs::read_to_string("/proc/meminfo").ok().and_then(|text| figure(&text, "MemTotal:"));
        let whole = whole.unwrap() << 10;
        assert!((1..whole).contains(&taken_bytes()), "{} of {whole}", taken_bytes());
        assert!((1..=whole).contains(&available_bytes()), "{} of {whole}", available_bytes());
    }

    #[test]
    fn pages_of_files_are_not_taken() {
        assert_eq!(own_pages("9000 700 300 12 0 400 0\n"), Some(400));
        assert_eq!(own_pages("9000 700\n"), None);
        assert_eq!(own_pages(""), None);
    }

    #[test]
    fn a_group_of_the_first_version_leaves_what_it_may_take_and_has_not() {
        let group = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| fs::write(group.path().join(name), text).unwrap();
        let left = || VERSIONS[1].left_in(group.path());
        assert_eq!(left(), None);
        file("memory.usage_in_bytes", "700\n");
        file("memory.limit_in_bytes", "9223372036854771712\n");
        assert!(left().is_some_and(|bytes| bytes > 1 << 60), "no limit is a large one");
        file("memory.limit_in_bytes", "1000\n");
        file("memory.stat", "inactive_file 1\ntotal_inactive_file 150\n");
        assert_eq!(left(), Some(450));
    }

    #[test]
    fn a_control_group_leaves_what_it_may_take_and_has_not() {
        let group = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| fs::write(group.path().join(name), text).unwrap();
        let left = || VERSIONS[0].left_in(group.path());
        assert_eq!(left(), None);
        file("memory.current", "700\n");
        file("memory.max", "max\n");
        assert_eq!(left(), None);
        file("memory.max", "1000\n");
        assert_eq!(left(), Some(300));
        file("memory.stat", "anon 500\ninactive_file 150\nactive_file 9\n");
        assert_eq!(left(), Some(450));
        file("memory.max", "400\n");
        assert_eq!(left(), Some(0));
    }
}
