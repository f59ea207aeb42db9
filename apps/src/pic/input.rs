//! The input file of a run: every key is known here, and what is missing has a default.
//!
//! Options on the command line go over it.

use super::choices::{Grid, SchemeChoice, Setup};
use crate::text_file::{FileError, exactly_if_any, parse_toml, read_text};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Input {
    pub(super) plasma: Plasma,
    #[serde(rename = "box")]
    pub(super) bounds: Bounds,
    pub(super) run: Run,
    pub(super) output: Output,
}

/// What is in the box.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Plasma {
    pub(super) setup: Option<Setup>,
    pub(super) particles: Option<u64>,
    pub(super) beam: Option<Beam>,
    pub(super) thermal: Option<f64>,
    pub(super) mode: Option<u32>,
    pub(super) perturbation: Option<f64>,
    pub(super) seed: Option<u64>,
}

/// A beam.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Beam {
    pub(super) fraction: f64,
    pub(super) velocity: f64,
}

/// The box and its grid.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Bounds {
    #[serde(deserialize_with = "exactly_if_any")]
    pub(super) cells: Option<[usize; 2]>,
    #[serde(deserialize_with = "exactly_if_any")]
    pub(super) length: Option<[f64; 2]>,
}

/// How it is followed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Run {
    pub(super) steps: Option<u32>,
    pub(super) dt: Option<f64>,
    pub(super) scheme: Option<SchemeChoice>,
    pub(super) grid: Option<Grid>,
    pub(super) regions: Option<usize>,
}

/// Files.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Output {
    pub(super) trace: Option<PathBuf>,
    pub(super) out: Option<PathBuf>,
    pub(super) phase_space: Option<PathBuf>,
    pub(super) density: Option<PathBuf>,
}

impl Input {
    /// Reads a file. Paths in it start from its folder.
    ///
    /// # Errors
    /// It cannot be read, or the first key or value that is wrong, with its line.
    pub(super) fn read(file: &Path) -> Result<Self, FileError> {
        let mut input: Self = parse_toml(file, &read_text(file)?, "")?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let Output { trace, out, phase_space, density } = &mut input.output;
        for path in [trace, out, phase_space, density].into_iter().flatten() {
            *path = folder.join(&*path);
        }
        Ok(input)
    }
}
