//! What a user says of a product, and whether it makes sense.

use super::tile::Scheme;
use super::{conventional, panel, side};
use crate::kernels::gemm::Kernel;
use crate::matrix::{Dtype, Heading, ReadError};
use crate::output::{check_option, read, written};
use chares::RunError;
use clap::{Args, ValueEnum};
use command::NamedFile;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Most blocks along a side of the grid.
const Q_MAX: u32 = 512;
/// Side of generated matrices.
const SIDE: usize = 1024;
/// Largest side of a matrix.
const SIDE_MAX: usize = 1 << 24;

/// Arguments of `run matmul`.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct Matmul {
    /// How the product is spread over the nodes
    #[arg(long, value_enum, default_value = "cannon")]
    pub algorithm: Algorithm,
    /// Left factor: .npy or MatrixMarket (.mtx)
    #[arg(long, value_name = "FILE", requires = "b")]
    pub a: Option<PathBuf>,
    /// Right factor: .npy or MatrixMarket (.mtx)
    #[arg(long, value_name = "FILE", requires = "a")]
    pub b: Option<PathBuf>,
    /// Write the product: .npy, or MatrixMarket (.mtx)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Side of generated matrices [default: 1024]
    #[arg(long, conflicts_with = "a")]
    pub n: Option<usize>,
    /// Choose N so that the product takes about so many seconds on the cores of this machine
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with_all = ["a", "n"])]
    #[serde(skip)]
    pub seconds: Option<f64>,
    /// Rows of the generated left factor, if not N
    #[arg(long, conflicts_with = "a")]
    pub rows: Option<usize>,
    /// Columns of the generated left factor and rows of the right one, if not N
    #[arg(long, conflicts_with = "a")]
    pub inner: Option<usize>,
    /// Seed of generated matrices
    #[arg(long, default_value_t = 1, conflicts_with = "a")]
    pub seed: u64,
    /// Type of generated numbers; of files, their own
    #[arg(long, value_enum)]
    pub dtype: Option<Dtype>,
    /// Blocks along each side of the grid (cannon, fox-hey-otto); chosen if absent
    #[arg(long)]
    pub q: Option<u32>,
    /// Rows per chare (conventional) or per broadcast (fox); chosen if absent
    #[arg(long)]
    pub grain: Option<usize>,
    /// How blocks are multiplied
    #[arg(long, value_enum, default_value = "fast")]
    pub kernel: Kernel,
    /// Check the result by an independent computation; a wrong one gives a non-zero exit code
    #[arg(long)]
    pub verify: bool,
    /// The same bits on any mix of machines (a slower kernel)
    #[arg(long)]
    pub deterministic: bool,
}

/// How the product is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// B on every node, rows of A by grain
    Conventional,
    /// q x q blocks that shift
    Cannon,
    /// As in the 1995 report: columns by speed, rows broadcast on request
    Fox,
    /// q x q blocks, one broadcast along each grid row per step
    FoxHeyOtto,
}

impl Matmul {
    /// Type of the numbers: as asked for, or f64. Of files, after [`completed`](Self::completed).
    #[must_use]
    pub fn dtype_or_default(&self) -> Dtype {
        self.dtype.unwrap_or(Dtype::F64)
    }

    /// The same with the type and the sides settled, which files have the last word on: nodes, which measure
    /// with the kernel for them, do not see the files. f32 if all files are, f64 by default.
    #[must_use]
    pub fn completed(mut self) -> Self {
        let mut settled = Dtype::F64;
        if let Some([a, b]) = Heading::of_both(self.a.as_deref(), self.b.as_deref()) {
            settled = a.dtype.joined(b.dtype);
            (self.rows, self.inner, self.n) = (Some(a.rows), Some(a.cols), Some(b.cols));
        }
        self.dtype.get_or_insert(settled);
        if let (None, Some(seconds)) = (self.n, self.seconds) {
            self.n = Some(super::side_for(&self, seconds));
        }
        self
    }

    /// Options that say nothing beside the others.
    #[must_use]
    pub fn unused(&self) -> Vec<(&'static str, String)> {
        let mut unused = Vec::new();
        if matches!(self.algorithm, Algorithm::Cannon | Algorithm::FoxHeyOtto) {
            unused.push(("grain", "only the algorithms conventional and fox have a grain".into()));
        }
        if self.deterministic {
            unused.push(("kernel", "--deterministic has its own".into()));
        }
        if self.a.is_none() {
            unused.push((
                "b",
                "a right factor from a file goes with a left one from a file, which --a names".into(),
            ));
        }
        unused
    }

    /// What the kernel's speed depends on: speeds measured with one product hold for all others of this key.
    #[must_use]
    pub fn kernel_key(&self) -> String {
        // Above a side of 128 the kernels' speed hardly changes.
        let class = self.typical_block().map(|side| match side {
            0..32 => "tiny",
            32..128 => "small",
            128.. => "full",
        });
        format!("{} {}, blocks {}", self.dtype_or_default(), self.kernel(), class.join(" x "))
    }

    /// The kernel that blocks are multiplied with.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        if self.deterministic { Kernel::Deterministic } else { self.kernel }
    }

    /// How tiles move, for the algorithms on a grid.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        if self.algorithm == Algorithm::FoxHeyOtto { Scheme::FoxHeyOtto } else { Scheme::Cannon }
    }

    /// Rows, inner side and columns of a generated product.
    #[must_use]
    pub fn sides(&self) -> (usize, usize, usize) {
        let n = self.n.unwrap_or(SIDE);
        (self.rows.unwrap_or(n), self.inner.unwrap_or(n), n)
    }

    /// Blocks along each side of the grid; about, before it is chosen for the nodes.
    #[must_use]
    pub fn side(&self) -> u32 {
        self.q.unwrap_or(side::USUAL)
    }

    /// Floating-point operations of the product.
    #[must_use]
    pub fn work(&self) -> f64 {
        let (m, k, n) = self.sides();
        2.0 * m as f64 * k as f64 * n as f64
    }

    /// The files that are read and written.
    #[must_use]
    pub fn files(&self) -> Vec<NamedFile> {
        read([("--a", &self.a), ("--b", &self.b)]).chain(written([("--out", &self.out)])).collect()
    }

    /// About the sides of the products of blocks that chares compute: rows, inner side, columns.
    #[must_use]
    pub fn typical_block(&self) -> [usize; 3] {
        let (m, k, n) = self.sides();
        let q = self.side().max(1) as usize;
        match self.algorithm {
            Algorithm::Cannon | Algorithm::FoxHeyOtto => [m / q, k / q, n / q],
            Algorithm::Conventional => [self.grain.unwrap_or(conventional::default_grain(m, 1)).min(m), k, n],
            Algorithm::Fox => {
                [self.grain.unwrap_or(panel::default_grain(m)).min(m), k, panel::typical_columns(n)]
            }
        }
    }
}

/// A time for `--seconds`.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|s| (0.001..=86_400.0).contains(s));
    seconds.ok_or_else(|| "give a number from 0.001 to 86400".into())
}

/// Checks arguments before any node is started.
pub(super) fn check(matmul: &Matmul) -> Result<(), RunError> {
    let wrong = |sentence: String| Err(RunError::Input(sentence));
    if let Some(q) = matmul.q.filter(|q| !(1..=Q_MAX).contains(q)) {
        return wrong(format!("--q {q}: give 1 to {Q_MAX} blocks"));
    }
    if matmul.grain == Some(0) {
        return wrong("--grain 0: give at least 1 row".into());
    }
    let (m, k, n) = matmul.sides();
    if matmul.a.is_none() && [m, k, n].iter().any(|&side| side == 0 || side > SIDE_MAX) {
        return wrong(format!("a {m} x {k} times {k} x {n} product: sides must be 1 to {SIDE_MAX}"));
    }
    if let (Some(a), Some(b)) = (&matmul.a, &matmul.b) {
        let refused = |e: ReadError| RunError::Input(e.to_string());
        let (left, right) = (Heading::of(a).map_err(refused)?, Heading::of(b).map_err(refused)?);
        check_sides(a, (left.rows, left.cols), b, (right.rows, right.cols))?;
    }
    matmul.out.as_ref().map_or(Ok(()), |out| check_option("--out", out))
}

/// Whether factors of these rows and columns, from these files, can be multiplied.
pub(super) fn check_sides(
    a: &Path,
    (m, k): (usize, usize),
    b: &Path,
    (rows, n): (usize, usize),
) -> Result<(), RunError> {
    if k == rows {
        return Ok(());
    }
    let sentence = format!("{a:?} is {m} x {k} and {b:?} is {rows} x {n}: columns of A must be rows of B");
    Err(RunError::Input(sentence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Matrix, npy};
    use clap::{Command, FromArgMatches as _};

    fn of(words: &[&str]) -> Matmul {
        let matches =
            Matmul::augment_args(Command::new("matmul")).get_matches_from([&["matmul"], words].concat());
        Matmul::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn nodes_are_told_type_and_sides_of_the_launchers_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        npy::write(path("a.npy"), &Matrix::<f32>::zeros(30, 7).unwrap()).unwrap();
        npy::write(path("b.npy"), &Matrix::<f32>::zeros(7, 50).unwrap()).unwrap();
        npy::write(path("wide.npy"), &Matrix::<f64>::zeros(7, 50).unwrap()).unwrap();
        let completed = |b: &str, more: &[&str]| {
            of(&[&["--a", &path("a.npy"), "--b", &path(b)], more].concat()).completed()
        };
        let single = completed("b.npy", &[]);
        assert_eq!((single.dtype_or_default(), single.sides()), (Dtype::F32, (30, 7, 50)));
        assert_eq!(completed("wide.npy", &[]).dtype_or_default(), Dtype::F64);
        assert_eq!(completed("wide.npy", &["--dtype", "f32"]).dtype_or_default(), Dtype::F32);
        assert_ne!(single.kernel_key(), completed("wide.npy", &[]).kernel_key());
        let text = "%%MatrixMarket matrix coordinate real general\n7 9 1\n1 1 1\n";
        std::fs::write(path("b.mtx"), text).unwrap();
        let mixed = completed("b.mtx", &[]);
        assert_eq!((mixed.dtype_or_default(), mixed.sides()), (Dtype::F64, (30, 7, 9)));
        check(&mixed).unwrap();
        std::fs::write(path("b.mtx"), text.replace("7 9", "8 9")).unwrap();
        let sentence = check(&mixed).unwrap_err().to_string();
        assert!(sentence.contains("b.mtx\" is 8 x 9: columns of A must be rows of B"), "{sentence}");
    }

    #[test]
    fn speeds_are_kept_for_all_products_of_one_kernel() {
        let key = |words: &[&str]| of(words).completed().kernel_key();
        let like: [&[&str]; 4] = [
            &["--n", "8000"],
            &["--q", "3"],
            &["--seed", "5", "--verify"],
            &["--out", "c.npy", "--dtype", "f64"],
        ];
        assert!(like.iter().all(|words| key(words) == key(&[])), "{:?}", like.map(key));
        let others: [&[&str]; 5] = [
            &["--n", "200"],
            &["--inner", "800"],
            &["--dtype", "f32"],
            &["--kernel", "plain"],
            &["--deterministic"],
        ];
        assert!(others.iter().all(|words| key(words) != key(&[])), "{:?}", others.map(key));
    }
}
