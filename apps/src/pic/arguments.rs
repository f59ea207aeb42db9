//! What a user says of a plasma, and whether it makes sense.

use super::choices::{Grid, SchemeChoice, Setup};
use super::input::Input;
use super::problem::{Problem, REACH, Scheme, Species};
use crate::output::{check_option, read, written};
use chares::RunError;
use clap::Args;
use command::NamedFile;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;
use std::path::PathBuf;

/// Most particles; they are counted with 32 bits where they are.
const PARTICLES_MAX: u64 = 1 << 32;
/// Cells along an axis, and of a grid.
const CELLS: std::ops::RangeInclusive<usize> = 4..=16_384;
const GRID_MAX: usize = 1 << 24;
/// Most steps.
const STEPS_MAX: u32 = 10_000_000;
/// Most chares of a PE.
const REGIONS_MAX: usize = 4096;

/// Arguments of `run pic`. Those that an input file can say too go over it; nothing has a default here, so that what is given
/// is known.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pic {
    /// Input file; every option here that is given goes over what it says
    #[arg(value_name = "INPUT.toml")]
    pub input: Option<PathBuf>,
    /// The beginning [default: beam]
    #[arg(long, value_enum)]
    pub setup: Option<Setup>,
    /// Particles, which stand for all electrons [default: 200000]
    #[arg(long, value_name = "N")]
    pub particles: Option<u64>,
    /// Cells of the grid along x and y [default: 128x32]
    #[arg(long, value_name = "NXxNY", value_parser = cells)]
    pub cells: Option<[usize; 2]>,
    /// Lengths of the box along x and y; along y as many cells of a square if only x is given [default: along x so that the
    /// watched wave is nearly the one that grows fastest, or for `landau` 4 pi]
    #[arg(long, value_name = "LX,LY", value_delimiter = ',')]
    pub length: Option<Vec<f64>>,
    /// Steps [default: 600; 200 for `landau`]
    #[arg(long, value_name = "N")]
    pub steps: Option<u32>,
    /// Time of a step, in the reciprocal of the plasma frequency [default: 0.1]
    #[arg(long, value_name = "T")]
    pub dt: Option<f64>,
    /// The beam's part of all electrons, and its velocity [default: 0.02,1; 0.5,1 for `two-streams`]
    #[arg(long, value_name = "F,V", value_parser = pair)]
    pub beam: Option<[f64; 2]>,
    /// Thermal velocity: the standard deviation along each axis [default: 0; 1 for `landau`]
    #[arg(long, value_name = "V")]
    pub thermal: Option<f64>,
    /// Waves along x of the perturbation; this wave is watched [default: 1]
    #[arg(long, value_name = "N")]
    pub mode: Option<u32>,
    /// Amplitude of the density's perturbation, relative to the density [default: 0.0001; 0.02 for `landau`]
    #[arg(long, value_name = "A")]
    pub perturbation: Option<f64>,
    /// Seed of places and velocities [default: 1]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Whether particles go where they are in the box or stay where they were made [default: auto]
    #[arg(long, value_enum)]
    pub scheme: Option<SchemeChoice>,
    /// Whether one PE solves for the field, or all do together [default: replicated]
    #[arg(long, value_enum)]
    pub grid: Option<Grid>,
    /// Chares of each PE [default: up to 4]
    #[arg(long, value_name = "N")]
    pub regions: Option<usize>,
    /// Write energies of each step as CSV
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Write the particles: .npy, a row of place and velocity (x, y, vx, vy) for each
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write how many particles have which x and velocity along x: .png, .svg or .npy
    #[arg(long, value_name = "FILE")]
    pub phase_space: Option<PathBuf>,
    /// Write the density of electrons at the points of the grid: .png, .svg or .npy
    #[arg(long, value_name = "FILE")]
    pub density: Option<PathBuf>,
    /// Check charge and energy, and compare with a serial computation, bit for bit; a wrong result gives a non-zero exit code
    #[arg(long)]
    pub verify: bool,
}

fn wrong<T>(sentence: String) -> Result<T, RunError> {
    Err(RunError::Input(sentence))
}

impl Pic {
    /// The same with what the input file says, once it makes sense.
    ///
    /// # Errors
    /// What does not.
    pub fn completed(mut self) -> Result<Self, RunError> {
        if let Some(file) = &self.input {
            let input = Input::read(file).map_err(|error| RunError::Input(error.to_string()))?;
            self.take(input);
        }
        self.problem()?;
        let outputs = [
            ("--trace", &self.trace, &[][..]),
            ("--out", &self.out, &["npy"]),
            ("--phase-space", &self.phase_space, &["png", "svg", "npy"]),
            ("--density", &self.density, &["png", "svg", "npy"]),
        ];
        for (option, path, endings) in outputs {
            let Some(path) = path else { continue };
            let is_known = endings.iter().any(|ending| path.extension().is_some_and(|end| end == *ending));
            if !endings.is_empty() && !is_known {
                let known = endings.join(", .");
                return wrong(format!("{option} {}: give a name that ends in .{known}", path.display()));
            }
            check_option(option, path)?;
        }
        Ok(self)
    }

    /// Takes from a file what options leave open.
    fn take(&mut self, Input { plasma, bounds, run, output }: Input) {
        fill(&mut self.setup, plasma.setup);
        fill(&mut self.particles, plasma.particles);
        fill(&mut self.beam, plasma.beam.map(|beam| [beam.fraction, beam.velocity]));
        fill(&mut self.thermal, plasma.thermal);
        fill(&mut self.mode, plasma.mode);
        fill(&mut self.perturbation, plasma.perturbation);
        fill(&mut self.seed, plasma.seed);
        fill(&mut self.cells, bounds.cells);
        fill(&mut self.length, bounds.length.map(Vec::from));
        fill(&mut self.steps, run.steps);
        fill(&mut self.dt, run.dt);
        fill(&mut self.scheme, run.scheme);
        fill(&mut self.grid, run.grid);
        fill(&mut self.regions, run.regions);
        fill(&mut self.trace, output.trace);
        fill(&mut self.out, output.out);
        fill(&mut self.phase_space, output.phase_space);
        fill(&mut self.density, output.density);
    }

    /// How it begins.
    #[must_use]
    pub fn begins(&self) -> Setup {
        self.setup.unwrap_or_default()
    }

    /// The plasma, as yet without a division among chares.
    ///
    /// # Errors
    /// What does not make sense.
    pub fn problem(&self) -> Result<Problem, RunError> {
        let setup = self.begins();
        let particles = self.particles.unwrap_or(200_000);
        if !(16..=PARTICLES_MAX).contains(&particles) {
            return wrong(format!("--particles {particles}: give 16 to {PARTICLES_MAX}"));
        }
        let cells = self.cells.unwrap_or([128, 32]);
        if cells.iter().any(|cells| !CELLS.contains(cells)) || cells[0] * cells[1] > GRID_MAX {
            return wrong(format!(
                "--cells {}x{}: give {} to {} along each axis, and at most {GRID_MAX} in all",
                cells[0],
                cells[1],
                CELLS.start(),
                CELLS.end()
            ));
        }
        let steps = self.steps.unwrap_or(if setup == Setup::Landau { 200 } else { 600 });
        if !(1..=STEPS_MAX).contains(&steps) {
            return wrong(format!("--steps {steps}: give 1 to {STEPS_MAX}"));
        }
        let dt = self.dt.unwrap_or(0.1);
        if !(dt > 0.0 && dt < 2.0) {
            return wrong(format!(
                "--dt {dt}: give more than 0 and less than 2, where steps become unstable"
            ));
        }
        let mode = self.mode.unwrap_or(1);
        if mode < 1 || mode as usize * 4 > cells[0] {
            return wrong(format!(
                "--mode {mode}: give 1 to a quarter of the cells along x, {}",
                cells[0] / 4
            ));
        }
        let perturbation = self.perturbation.unwrap_or(if setup == Setup::Landau { 0.02 } else { 1e-4 });
        if !(0.0..=0.9).contains(&perturbation) {
            return wrong(format!("--perturbation {perturbation}: give 0 to 0.9"));
        }
        let species = self.species(particles)?;
        let length = self.length(cells, &species, mode)?;
        let seed = self.seed.unwrap_or(1);
        let scheme = self.scheme()?;
        let problem = Problem {
            cells,
            length,
            dt,
            steps,
            species,
            mode,
            perturbation,
            seed,
            scheme,
            bounds: vec![0, 0],
        };
        check_reach(&problem)?;
        check_energy(&problem)?;
        Ok(problem)
    }

    /// Who has what, as yet `Fixed` where that is to be chosen.
    fn scheme(&self) -> Result<Scheme, RunError> {
        if self.regions.is_some_and(|regions| !(1..=REGIONS_MAX).contains(&regions)) {
            return wrong(format!("--regions: give 1 to {REGIONS_MAX} chares for each PE"));
        }
        if self.grid == Some(Grid::Distributed) && self.scheme == Some(SchemeChoice::Fixed) {
            return wrong(
                "--grid distributed: its particles go where they are in the box, so --scheme fixed cannot be"
                    .into(),
            );
        }
        Ok(match (self.grid.unwrap_or_default(), self.scheme.unwrap_or_default()) {
            (Grid::Distributed, _) => Scheme::Distributed,
            (Grid::Replicated, SchemeChoice::Regions) => Scheme::Regions,
            (Grid::Replicated, SchemeChoice::Fixed | SchemeChoice::Auto) => Scheme::Fixed,
        })
    }

    /// Whether the scheme is to be chosen.
    #[must_use]
    pub fn is_auto(&self) -> bool {
        self.grid.unwrap_or_default() == Grid::Replicated
            && self.scheme.unwrap_or_default() == SchemeChoice::Auto
    }

    fn species(&self, particles: u64) -> Result<Vec<Species>, RunError> {
        let setup = self.begins();
        let thermal = self.thermal.unwrap_or(if setup == Setup::Landau { 1.0 } else { 0.0 });
        if !(thermal >= 0.0 && thermal.is_finite()) {
            return wrong(format!("--thermal {thermal}: give a velocity of at least 0"));
        }
        if setup == Setup::Landau {
            if self.beam.is_some() {
                return wrong("--beam: a plasma that begins as `landau` has none".into());
            }
            if thermal == 0.0 {
                return wrong(
                    "--thermal 0: cold electrons do not damp a wave, so `landau` needs more".into(),
                );
            }
            return Ok(vec![Species { particles, drift: 0.0, thermal }]);
        }
        let [fraction, velocity] = self.beam.unwrap_or([if setup == Setup::Beam { 0.02 } else { 0.5 }, 1.0]);
        let beam = (fraction * particles as f64).round() as u64;
        if !(fraction > 0.0 && fraction < 1.0) || beam == 0 || beam == particles {
            return wrong(format!(
                "--beam {fraction},{velocity}: give a part between 0 and 1 that is at least one particle"
            ));
        }
        if !velocity.is_finite() || velocity == 0.0 {
            return wrong(format!("--beam {fraction},{velocity}: give a velocity other than 0"));
        }
        let rest = if setup == Setup::Beam { 0.0 } else { -velocity };
        Ok(vec![
            Species { particles: particles - beam, drift: rest, thermal },
            Species { particles: beam, drift: velocity, thermal },
        ])
    }

    fn length(&self, cells: [usize; 2], species: &[Species], mode: u32) -> Result<[f64; 2], RunError> {
        let velocity = species.last().map_or(1.0, |kind| kind.drift.abs());
        // At the fastest growth a wave passes a beam's electrons about once in a plasma oscillation.
        let wave = match self.begins() {
            Setup::Beam => TAU * velocity,
            Setup::TwoStreams => TAU * velocity / 0.375f64.sqrt(),
            Setup::Landau => 2.0 * TAU * species[0].thermal,
        };
        let [nx, ny] = cells.map(|cells| cells as f64);
        let length = match self.length.as_deref() {
            None | Some([]) => [wave * f64::from(mode), wave * f64::from(mode) * ny / nx],
            Some([x]) => [*x, x * ny / nx],
            Some([x, y]) => [*x, *y],
            Some(more) => return wrong(format!("--length: give one or two lengths, not {}", more.len())),
        };
        if length.iter().any(|side| !(*side > 0.0 && side.is_finite())) {
            return wrong(format!("--length {},{}: give lengths of more than 0", length[0], length[1]));
        }
        Ok(length)
    }

    /// What a PE's speed depends on.
    #[must_use]
    pub fn kernel_key(&self) -> String {
        self.problem()
            .map_or_else(|_| String::new(), |problem| format!("{:?} {}", problem.cells, problem.particles()))
    }

    /// What all steps take, in steps of a particle; 0 if the arguments make no sense.
    #[must_use]
    pub fn work(&self) -> f64 {
        self.problem().map_or(0.0, |problem| problem.work_of_step() * f64::from(problem.steps))
    }

    /// The files that are read and written.
    #[must_use]
    pub fn files(&self) -> Vec<NamedFile> {
        let outputs = [
            ("--trace", &self.trace),
            ("--out", &self.out),
            ("--phase-space", &self.phase_space),
            ("--density", &self.density),
        ];
        read([("the input file", &self.input)]).chain(written(outputs)).collect()
    }
}

/// Checks that no particle goes further in its first steps than it may.
fn check_reach(problem: &Problem) -> Result<(), RunError> {
    let fastest = |kind: &Species| (kind.drift.abs() + 4.0 * kind.thermal) * problem.dt;
    let side = problem.cell().into_iter().fold(f64::INFINITY, f64::min);
    let cells = problem.species.iter().map(fastest).fold(0.0, f64::max) / side;
    if cells.is_nan() || cells >= REACH as f64 {
        return wrong(format!(
            "particles would go through {cells:.1} cells in a step, and may through {REACH}: take a smaller --dt, fewer \
                 --cells or a larger --length"
        ));
    }
    Ok(())
}

/// The kinetic energy of an electron in units of its fixed point, at least: a thirtieth of it is lost to rounding then, at random.
const ENERGY_UNITS_MIN: f64 = 16.0;

/// Checks that steps are not so short that the energy of those electrons that have most of it is lost in fixed point.
fn check_energy(problem: &Problem) -> Result<(), RunError> {
    let side = problem.cell().into_iter().fold(0.0, f64::max);
    let square = |kind: &Species| kind.drift.powi(2) + 2.0 * kind.thermal.powi(2);
    let whole = |kind: &&Species| kind.particles as f64 * square(kind);
    let Some(most) = problem.species.iter().max_by(|a, b| whole(a).total_cmp(&whole(b))) else {
        return Ok(());
    };
    let units = square(most) * (problem.dt / side).powi(2) * problem.energy_scale();
    if units < ENERGY_UNITS_MIN {
        return wrong(format!(
            "--dt {}: electrons go so little of a cell in a step that their energy is lost in fixed point; give at least {:.1e}, \
             more --cells or a smaller --length",
            problem.dt,
            1.05 * problem.dt * (ENERGY_UNITS_MIN / units).sqrt()
        ));
    }
    Ok(())
}

/// What a file says counts where no option does.
fn fill<T>(option: &mut Option<T>, of_file: Option<T>) {
    if option.is_none() {
        *option = of_file;
    }
}

/// A grid such as 128x32.
fn cells(text: &str) -> Result<[usize; 2], String> {
    let sides = text.split_once(['x', ',']).and_then(|(x, y)| Some([x.parse().ok()?, y.parse().ok()?]));
    sides.ok_or_else(|| "give cells along x and y, such as 128x32".into())
}

/// Two numbers such as 0.02,1.
fn pair(text: &str) -> Result<[f64; 2], String> {
    let pair = text.split_once(',').and_then(|(one, other)| Some([one.parse().ok()?, other.parse().ok()?]));
    pair.ok_or_else(|| "give two numbers, such as 0.02,1".into())
}
