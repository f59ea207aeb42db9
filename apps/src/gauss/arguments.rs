//! What a user says of an elimination, and whether it makes sense.

use crate::system::SystemArguments;
use chares::RunError;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// Columns of a block, if the user does not say how many.
const WIDTH: usize = 128;
/// The same for systems of so many unknowns that factoring twice as wide a panel is still done ahead of its turn, and that
/// there are blocks enough to deal out. Every number of the matrix is read and written once for each panel: with half as
/// many, an elimination of 6,144 unknowns on two cores took 4 (f32) to 13 % (f64) less.
const WIDTH_OF_BIG: usize = 256;
const BIG: usize = 24 * WIDTH_OF_BIG;
/// Parts of what a PE holds, if the user does not say how many: with four, each with so few columns to work on at once, an
/// elimination of 4,096 unknowns on two cores took up to 6 % longer.
const PARTS_PER_PE: usize = 2;
/// Most of them.
const PARTS_PER_PE_MAX: u32 = 1024;
/// Most columns of a block.
const WIDTH_MAX: usize = 4096;

/// Arguments of `run gauss`.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct Gauss {
    /// The system
    #[command(flatten)]
    pub system: SystemArguments,
    /// How the elimination is spread over the nodes
    #[arg(long, value_enum, default_value = "blocked")]
    pub algorithm: Algorithm,
    /// Columns of a block (blocked); chosen if absent
    #[arg(long)]
    pub block: Option<usize>,
    /// Parts into which what a PE holds is dealt out, each of which can move [default: 2]
    #[arg(long)]
    pub parts_per_pe: Option<u32>,
    /// Check the solution also row by row; a wrong one gives a non-zero exit code
    #[arg(long)]
    pub verify: bool,
}

/// How the elimination is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// As in the 1995 report: rows by speed, a pivot row broadcast for each column
    Columns,
    /// Blocks of columns by speed, panels broadcast ahead of the work
    Blocked,
}

impl Gauss {
    /// Columns of a block.
    #[must_use]
    pub fn width(&self) -> usize {
        let chosen = if self.system.n < BIG { WIDTH } else { WIDTH_OF_BIG };
        self.block.unwrap_or(chosen).min(self.system.n).max(1)
    }

    /// Parts of what a PE holds.
    #[must_use]
    pub fn parts_per_pe(&self) -> usize {
        self.parts_per_pe.map_or(PARTS_PER_PE, |parts| parts as usize)
    }

    /// Floating-point operations of elimination and back substitution.
    #[must_use]
    pub fn work(&self) -> f64 {
        let (n, rhs) = (self.system.n as f64, self.system.rhs as f64);
        2.0 / 3.0 * n * n * n + 2.0 * n * n * rhs
    }

    /// The same with the sizes and the type of files.
    #[must_use]
    pub fn completed(mut self) -> Self {
        self.system = self.system.completed();
        self
    }

    /// What the kernel's speed depends on: speeds measured for one system hold for all others of this key.
    #[must_use]
    pub fn kernel_key(&self) -> String {
        let dtype = self.system.dtype_or_default();
        match self.algorithm {
            Algorithm::Columns => format!("{dtype} columns"),
            Algorithm::Blocked => {
                let class = match self.system.n {
                    0..256 => "tiny".to_string(),
                    256..1024 => "small".to_string(),
                    n => format!("{} rows", super::kernel_rows(n)),
                };
                format!("{dtype} blocked, {class}, blocks of {}", self.width())
            }
        }
    }
}

/// Checks arguments before any node is started.
pub(super) fn check(gauss: &Gauss) -> Result<(), RunError> {
    if let Some(width) = gauss.block.filter(|width| !(1..=WIDTH_MAX).contains(width)) {
        return Err(RunError::Input(format!("--block {width}: give 1 to {WIDTH_MAX} columns")));
    }
    if gauss.block.is_some() && gauss.algorithm == Algorithm::Columns {
        return Err(RunError::Input("--block: columns has no blocks; take --algorithm blocked".into()));
    }
    if let Some(parts) = gauss.parts_per_pe.filter(|parts| !(1..=PARTS_PER_PE_MAX).contains(parts)) {
        return Err(RunError::Input(format!("--parts-per-pe {parts}: give 1 to {PARTS_PER_PE_MAX}")));
    }
    gauss.system.check()
}
