//! What a user says of a product, and whether it makes sense.

use super::tile::Scheme;
use crate::kernels::gemm::Kernel;
use crate::matrix::{AnyMatrix, Dtype, npy::NpyReader};
use chares::RunError;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Most blocks along a side of the grid.
const Q_MAX: u32 = 512;
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
    /// Write the product as .npy
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Side of generated square matrices
    #[arg(long, default_value_t = 1024)]
    pub n: usize,
    /// Rows of a generated left factor, if not N
    #[arg(long)]
    pub rows: Option<usize>,
    /// Columns of the left factor and rows of the right one, if not N
    #[arg(long)]
    pub inner: Option<usize>,
    /// Seed of generated matrices
    #[arg(long, default_value_t = 1, conflicts_with = "a")]
    pub seed: u64,
    /// Type of generated numbers; of files, their own
    #[arg(long, value_enum)]
    pub dtype: Option<NumberType>,
    /// Blocks along each side of the grid (cannon, fox-hey-otto)
    #[arg(long, default_value_t = 8)]
    pub q: u32,
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

/// Type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
pub enum NumberType {
    /// 32 bits
    F32,
    /// 64 bits
    F64,
}

impl Matmul {
    /// Type of the numbers: as asked for, or f64. Of files, after [`completed`](Self::completed).
    #[must_use]
    pub fn dtype_or_default(&self) -> Dtype {
        match self.dtype {
            Some(NumberType::F32) => Dtype::F32,
            Some(NumberType::F64) | None => Dtype::F64,
        }
    }

    /// The same with the type and the sides that the files have: nodes, which measure with the kernel for
    /// them, do not see the files. f32 if all files are; MatrixMarket files are f64, and keep their sides to
    /// themselves until they are read.
    #[must_use]
    pub fn completed(mut self) -> Self {
        let (Some(a), Some(b)) = (&self.a, &self.b) else { return self };
        let file = |path: &Path| NpyReader::open(path).ok().filter(|_| is_npy(path));
        let (a, b) = (file(a), file(b));
        let is_single = |file: &Option<NpyReader>| file.as_ref().is_some_and(|f| f.dtype() == Dtype::F32);
        let of_files = if is_single(&a) && is_single(&b) { NumberType::F32 } else { NumberType::F64 };
        self.dtype.get_or_insert(of_files);
        if let (Some(a), Some(b)) = (a, b) {
            (self.rows, self.inner, self.n) = (Some(a.rows()), Some(a.cols()), b.cols());
        }
        self
    }

    /// What the kernel depends on.
    #[must_use]
    pub fn kernel_key(&self) -> String {
        format!("{:?} {} blocks of {}", self.dtype_or_default(), self.kernel(), self.typical_side())
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
        (self.rows.unwrap_or(self.n), self.inner.unwrap_or(self.n), self.n)
    }

    /// About how long the sides of blocks are that chares multiply.
    #[must_use]
    pub fn typical_side(&self) -> usize {
        match self.algorithm {
            Algorithm::Cannon | Algorithm::FoxHeyOtto => self.n / self.q.max(1) as usize,
            Algorithm::Conventional | Algorithm::Fox => self.n / 4,
        }
    }
}

/// Checks arguments before any node is started.
pub(super) fn check(matmul: &Matmul) -> Result<(), RunError> {
    let wrong = |sentence: String| Err(RunError::Input(sentence));
    if matmul.q == 0 || matmul.q > Q_MAX {
        return wrong(format!("--q {}: give 1 to {Q_MAX} blocks", matmul.q));
    }
    if matmul.grain == Some(0) {
        return wrong("--grain 0: give at least 1 row".into());
    }
    let (m, k, n) = matmul.sides();
    if matmul.a.is_none() && [m, k, n].iter().any(|&side| side == 0 || side > SIDE_MAX) {
        return wrong(format!("a {m} x {k} times {k} x {n} product: sides must be 1 to {SIDE_MAX}"));
    }
    for path in [&matmul.a, &matmul.b].into_iter().flatten() {
        check_readable(path)?;
    }
    let Some(out) = &matmul.out else { return Ok(()) };
    let folder = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() {
        Ok(())
    } else {
        Err(RunError::Output(format!("--out {out:?}: there is no folder {folder:?}")))
    }
}

fn check_readable(path: &Path) -> Result<(), RunError> {
    if is_npy(path) {
        let opened = NpyReader::open(path);
        return opened.map(|_| ()).map_err(|e| RunError::Input(e.to_string()));
    }
    let opened = std::fs::File::open(path);
    opened.map(|_| ()).map_err(|e| RunError::Input(format!("{path:?} cannot be read: {e}")))
}

fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy"))
}

/// Reads a matrix by its file's ending.
pub(super) fn read(path: &Path) -> Result<AnyMatrix, RunError> {
    if is_npy(path) {
        return crate::matrix::npy::read(path).map_err(|e| RunError::Input(e.to_string()));
    }
    // What the text says may need more memory than the text: a coordinate file of few entries can be huge.
    let limit = 64 << 30;
    crate::matrix::market::read(path, limit).map(AnyMatrix::F64).map_err(|e| RunError::Input(e.to_string()))
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
        std::fs::write(path("b.mtx"), "%%MatrixMarket matrix array real general\n1 1\n1\n").unwrap();
        assert_eq!(completed("b.mtx", &[]).dtype_or_default(), Dtype::F64);
    }

    #[test]
    fn speeds_are_kept_for_all_products_of_one_kernel() {
        let key = |words: &[&str]| of(words).completed().kernel_key();
        assert_eq!(key(&["--n", "512"]), key(&["--n", "512", "--out", "c.npy", "--verify", "--seed", "5"]));
        let others = [["--n", "768"], ["--dtype", "f32"], ["--q", "3"], ["--kernel", "plain"]];
        assert!(others.iter().all(|words| key(words) != key(&[])), "{:?}", others.map(|words| key(&words)));
        assert_ne!(key(&["--deterministic"]), key(&[]));
    }
}
