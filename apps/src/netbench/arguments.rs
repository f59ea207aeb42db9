//! What a user asks for.

use crate::output::check_writable;
use chares::{RunError, Size};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The sizes of 1995, and then longer ones.
const SIZES: [u64; 12] =
    [1, 4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Longest message.
const BYTES_MAX: u64 = 1 << 30;

/// Arguments of `run netbench`.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(super) struct Netbench {
    /// Measure only between these nodes, each with each; may be given several times. If absent: all with all, of more
    /// than five nodes the first with each
    #[arg(long, value_name = "NODE,NODE…", value_parser = names)]
    pub(super) between: Vec<String>,
    /// Lengths of messages, such as 1,64,4KiB; if absent those of 1995 and longer ones, 1 to 4 MiB
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', value_parser = size)]
    pub(super) sizes: Vec<u64>,
    /// Most samples of each figure; fewer where they would take longer than half a second
    #[arg(long, default_value = "200", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(super) repeats: u64,
    /// Use each connection between nodes so long before it is measured, seconds
    #[arg(long, value_name = "SECONDS", default_value = "0.3", value_parser = seconds)]
    pub(super) warm_up: f64,
    /// Measure no collective operations
    #[arg(long)]
    pub(super) links_only: bool,
    /// Write all figures as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Write plots into this folder
    #[arg(long, value_name = "FOLDER")]
    pub(super) svg: Option<PathBuf>,
}

impl Netbench {
    /// The same with the sizes settled: ascending, each once.
    pub(super) fn completed(mut self) -> Self {
        if self.sizes.is_empty() {
            self.sizes = SIZES.to_vec();
        }
        self.sizes.sort_unstable();
        self.sizes.dedup();
        self
    }

    pub(super) fn warm_up(&self) -> Duration {
        Duration::from_secs_f64(self.warm_up)
    }
}

/// Looks at what can be known before nodes are started.
pub(super) fn check(arguments: &Netbench) -> Result<(), RunError> {
    if let Some(path) = &arguments.json {
        check_writable(path)?;
    }
    arguments.svg.as_deref().map_or(Ok(()), check_folder)
}

/// Makes the folder if it is not there, and tries whether something can be written into it.
fn check_folder(folder: &Path) -> Result<(), RunError> {
    std::fs::create_dir_all(folder).map_err(|error| {
        RunError::Output(format!("the folder {} for plots cannot be made: {error}", folder.display()))
    })?;
    check_writable(&folder.join("latency.svg"))
}

/// Names of nodes, at least two different ones.
fn names(text: &str) -> Result<String, String> {
    let names = split(text);
    let is_twice = |at: usize| names[..at].contains(&names[at]);
    if names.len() < 2 || names.contains(&"") || (0..names.len()).any(is_twice) {
        return Err("name at least two different nodes, with a comma between".into());
    }
    Ok(text.into())
}

/// The names that one `--between` gives.
pub(super) fn split(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).collect()
}

/// A count of bytes, with or without a unit.
fn size(text: &str) -> Result<u64, String> {
    let bytes = Size::parse(text).map(|size| size.0).filter(|bytes| (1..=BYTES_MAX).contains(bytes));
    bytes.ok_or_else(|| "give bytes from 1 to 1GiB, such as 64, 4KiB or 1MiB".into())
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.0..=60.0).contains(seconds));
    seconds.ok_or_else(|| "give seconds from 0 to 60".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_bounds() {
        assert_eq!(["1", "64", " 4KiB", "1 MiB", "7B"].map(size), [1, 64, 4096, 1 << 20, 7].map(Ok));
        for text in ["0", "-1", "2GiB", "", "KiB", "1.5", "99999999999999999999", "18446744073709551615KiB"] {
            assert!(size(text).unwrap_err().contains("from 1 to 1GiB"), "{text}");
        }
    }

    #[test]
    fn names_are_two_or_more() {
        assert!(names("a,b").is_ok() && names("a, b,c").is_ok());
        for text in ["a", "", "a,", "a,a", "a,b,a"] {
            assert!(names(text).is_err(), "{text}");
        }
    }
}
