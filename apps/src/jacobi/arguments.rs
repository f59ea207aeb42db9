//! What a user says of a system to iterate on, and whether it makes sense.

use super::generated::{Generated, Kind};
use crate::matrix::{Dtype, market};
use crate::system::SystemArguments;
use chares::RunError;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Most blocks of rows for each PE.
const BLOCKS_PER_PE_MAX: u32 = 1024;
/// Iterations of a run with files, for a guess of how long it takes.
const ITERATIONS_GUESS: f64 = 100.0;

/// Arguments of `run jacobi`.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct Jacobi {
    /// The system
    #[command(flatten)]
    pub system: SystemArguments,
    /// Kind of a generated matrix
    #[arg(long, value_enum, default_value = "dense", conflicts_with = "a")]
    pub generate: Kind,
    /// Diagonal of a generated matrix, relative to the other magnitudes of a row: up to 1 it need not converge
    #[arg(long, value_name = "FACTOR", default_value_t = 1.1, conflicts_with = "a")]
    pub dominance: f64,
    /// Stop when no unknown changes by more than this part of the first change, which is the largest of B over the
    /// diagonal, of each right-hand side by itself; 1e-10 if absent, 1e-5 with f32
    #[arg(long)]
    pub tolerance: Option<f64>,
    /// Iterations after which it ends without convergence
    #[arg(long, default_value_t = 10_000)]
    pub max_iterations: u32,
    /// Blocks of rows for each PE on average, each of which can move; chosen if absent
    #[arg(long)]
    pub blocks_per_pe: Option<u32>,
    /// Check the solution by an independent computation; a wrong one gives a non-zero exit code
    #[arg(long)]
    pub verify: bool,
    /// Entries of a sparse matrix in a file.
    #[arg(skip)]
    pub listed: Option<u64>,
}

impl Jacobi {
    /// The largest change of an unknown in the last iteration, relative to the first of its right-hand side.
    #[must_use]
    pub fn tolerance(&self) -> f64 {
        self.tolerance.unwrap_or(match self.system.dtype_or_default() {
            Dtype::F32 => 1e-5,
            Dtype::F64 => 1e-10,
        })
    }

    /// The same with what files say settled: nodes, which measure with the kernel for them, do not see the files.
    #[must_use]
    pub fn completed(mut self) -> Self {
        self.system = self.system.completed();
        self.listed = self.system.a.as_deref().and_then(|a| entries_of(a).ok().flatten());
        self
    }

    /// The matrix, if it is generated.
    #[must_use]
    pub fn generated(&self) -> Option<Generated> {
        let SystemArguments { n, seed, .. } = self.system;
        let of = Generated { kind: self.generate, n, dominance: self.dominance, seed };
        self.system.a.is_none().then_some(of)
    }

    /// Whether the rows of the matrix are dense.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.generated().map_or(self.listed.is_none(), |generated| generated.is_dense())
    }

    /// Entries of the matrix, about; of a dense one all its numbers.
    #[must_use]
    pub fn entries(&self) -> u64 {
        let n = self.system.n as u64;
        self.generated().map_or_else(|| self.listed.unwrap_or(n.saturating_mul(n)), |of| of.entries())
    }

    /// What an iteration takes, floating-point operations.
    #[must_use]
    pub fn work_of_iteration(&self) -> f64 {
        2.0 * self.entries() as f64 * self.system.rhs as f64
    }

    /// Whether it follows from the system how often it iterates at most.
    #[must_use]
    pub(super) fn promises_convergence(&self) -> bool {
        self.generated().is_some_and(|of| of.dominance > 1.0)
    }

    /// About how much work it will be.
    #[must_use]
    pub fn work(&self) -> f64 {
        let guess = match self.generated() {
            Some(of) if of.dominance > 1.0 => self.tolerance().min(0.5).ln() / -of.dominance.ln(),
            Some(_) => f64::INFINITY,
            None => ITERATIONS_GUESS,
        };
        guess.clamp(1.0, f64::from(self.max_iterations)) * self.work_of_iteration()
    }

    /// What the kernel's speed depends on.
    #[must_use]
    pub fn kernel_key(&self) -> String {
        let dtype = self.system.dtype_or_default();
        let rhs = if self.system.rhs == 1 { "one right-hand side" } else { "many right-hand sides" };
        if self.is_dense() {
            // Shorter rows stay in the caches.
            let class = if self.system.n < 4096 { "small" } else { "large" };
            return format!("{dtype} dense, {class}, {rhs}");
        }
        let each = self.entries() / (self.system.n as u64).max(1);
        format!("{dtype} sparse, {} entries in a row, {rhs}", each.next_power_of_two())
    }
}

/// Entries that a file lists, if it is one that lists entries.
fn entries_of(path: &Path) -> Result<Option<u64>, market::MarketReadError> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mtx")) {
        market::entry_count(path)
    } else {
        Ok(None)
    }
}

/// Checks arguments before any node is started.
pub(super) fn check(jacobi: &Jacobi) -> Result<(), RunError> {
    let wrong = |sentence: String| Err(RunError::Input(sentence));
    jacobi.system.check()?;
    if !(jacobi.tolerance() > 0.0 && jacobi.tolerance() < 1.0) {
        return wrong(format!(
            "--tolerance {}: give a number between 0 and 1, a part of the first change",
            jacobi.tolerance()
        ));
    }
    if jacobi.max_iterations == 0 {
        return wrong("--max-iterations 0: give at least 1".into());
    }
    if !(jacobi.dominance.is_finite() && jacobi.dominance > 0.0) {
        return wrong(format!("--dominance {}: give a positive number", jacobi.dominance));
    }
    if let Some(blocks) = jacobi.blocks_per_pe.filter(|blocks| !(1..=BLOCKS_PER_PE_MAX).contains(blocks)) {
        return wrong(format!("--blocks-per-pe {blocks}: give 1 to {BLOCKS_PER_PE_MAX}"));
    }
    let Some(path) = &jacobi.system.a else { return Ok(()) };
    let listed = entries_of(path).map_err(|e| RunError::Input(e.to_string()))?;
    let n = jacobi.clone().completed().system.n as u64;
    match listed {
        Some(entries) if entries < n => wrong(format!(
            "{path:?} has {n} rows and only {entries} entries: some row has none, and Jacobi's method divides by the \
             diagonal"
        )),
        _ => Ok(()),
    }
}
