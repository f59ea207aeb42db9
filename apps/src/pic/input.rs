//! The input file of a run: every key is known here, and what is missing has a default.
//!
//! Options on the command line go over it.

use super::arguments::{Grid, Pic, SchemeChoice, Setup};
use crate::statics::file::{FileError, read_text, wrong_line};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Input {
    plasma: Plasma,
    #[serde(rename = "box")]
    bounds: Bounds,
    run: Run,
    output: Output,
}

/// What is in the box.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Plasma {
    setup: Option<Setup>,
    particles: Option<u64>,
    beam: Option<Beam>,
    thermal: Option<f64>,
    mode: Option<u32>,
    perturbation: Option<f64>,
    seed: Option<u64>,
}

/// A beam.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Beam {
    fraction: f64,
    velocity: f64,
}

/// The box and its grid.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Bounds {
    cells: Option<[usize; 2]>,
    length: Option<[f64; 2]>,
}

/// How it is followed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Run {
    steps: Option<u32>,
    dt: Option<f64>,
    scheme: Option<SchemeChoice>,
    grid: Option<Grid>,
    regions: Option<usize>,
}

/// Files.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Output {
    trace: Option<PathBuf>,
    out: Option<PathBuf>,
    phase_space: Option<PathBuf>,
    density: Option<PathBuf>,
}

impl Input {
    /// Reads a file. Paths in it start from its folder.
    ///
    /// # Errors
    /// It cannot be read, or the first key or value that is wrong, with its line.
    pub fn read(file: &Path) -> Result<Self, FileError> {
        let text = read_text(file)?;
        let mut input: Self = toml::from_str(&text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            wrong_line(file, line, error.message().replace('\n', "; "))
        })?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let Output { trace, out, phase_space, density } = &mut input.output;
        for path in [trace, out, phase_space, density].into_iter().flatten() {
            *path = folder.join(&*path);
        }
        Ok(input)
    }

    /// Fills in what options leave open.
    pub fn fill(self, pic: &mut Pic) {
        let Self { plasma, bounds, run, output } = self;
        fill(&mut pic.setup, plasma.setup);
        fill(&mut pic.particles, plasma.particles);
        fill(&mut pic.beam, plasma.beam.map(|beam| [beam.fraction, beam.velocity]));
        fill(&mut pic.thermal, plasma.thermal);
        fill(&mut pic.mode, plasma.mode);
        fill(&mut pic.perturbation, plasma.perturbation);
        fill(&mut pic.seed, plasma.seed);
        fill(&mut pic.cells, bounds.cells);
        fill(&mut pic.length, bounds.length.map(Vec::from));
        fill(&mut pic.steps, run.steps);
        fill(&mut pic.dt, run.dt);
        fill(&mut pic.scheme, run.scheme);
        fill(&mut pic.grid, run.grid);
        fill(&mut pic.regions, run.regions);
        fill(&mut pic.trace, output.trace);
        fill(&mut pic.out, output.out);
        fill(&mut pic.phase_space, output.phase_space);
        fill(&mut pic.density, output.density);
    }
}

/// What a file says counts where no option does.
fn fill<T>(option: &mut Option<T>, of_file: Option<T>) {
    if option.is_none() {
        *option = of_file;
    }
}
