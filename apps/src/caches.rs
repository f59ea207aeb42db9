//! The caches of this machine: data by which speeds are measured must not stay in them where that of the work does not.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

const MIB: usize = 1 << 20;
/// What a cache is taken to hold where the system does not tell.
const USUAL: usize = 32 * MIB;

/// Bytes that do not stay in the caches of this machine: half as much again as the largest holds, and 24 to 64 MiB, so that
/// every PE of a node can have as many.
pub(crate) fn bytes_beyond() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| beyond(largest(Path::new("/sys/devices/system/cpu/cpu0/cache"))))
}

fn beyond(largest: Option<usize>) -> usize {
    let largest = largest.unwrap_or(USUAL);
    largest.saturating_add(largest / 2).clamp(24 * MIB, 64 * MIB)
}

/// Bytes of the largest cache in a folder that has one for each, as Linux lists them.
fn largest(caches: &Path) -> Option<usize> {
    let size = |cache: fs::DirEntry| parsed(&fs::read_to_string(cache.path().join("size")).ok()?);
    fs::read_dir(caches).ok()?.flatten().filter_map(size).max()
}

/// Bytes of a size such as `32768K`.
fn parsed(size: &str) -> Option<usize> {
    let size = size.trim();
    let (digits, unit) = [("K", 1 << 10), ("M", MIB), ("", 1)]
        .into_iter()
        .find_map(|(unit, bytes)| Some((size.strip_suffix(unit)?, bytes)))?;
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_cache_counts_and_noise_does_not() {
        let folder = tempfile::tempdir().unwrap();
        for (name, size) in
            [("index0", "48K\n"), ("index2", "1024K\n"), ("index3", "36M\n"), ("index4", "many\n")]
        {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("size"), size).unwrap();
        }
        fs::write(folder.path().join("uevent"), "").unwrap();
        assert_eq!(largest(folder.path()), Some(36 * MIB));
        assert_eq!(largest(&folder.path().join("nowhere")), None);
        assert_eq!(parsed("99999999999999999999M"), None);
        assert_eq!(parsed("18446744073709551615K"), None);
    }

    #[test]
    fn what_does_not_stay_in_caches_is_more_than_they_hold_and_never_too_much() {
        assert_eq!([None, Some(36 * MIB)].map(beyond), [48 * MIB, 54 * MIB]);
        assert_eq!([Some(0), Some(usize::MAX)].map(beyond), [24 * MIB, 64 * MIB]);
    }
}
