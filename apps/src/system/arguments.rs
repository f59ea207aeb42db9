//! What a user says of a linear system, and whether it makes sense.

use crate::matrix::{Dtype, Heading, ReadError};
use crate::output::{check_option, read, written};
use chares::RunError;
use clap::Args;
use command::NamedFile;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Largest side of a matrix, and most right-hand sides.
const SIDE_MAX: usize = 1 << 24;

/// Arguments of every application that solves A X = B; flattened into its own.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct SystemArguments {
    /// Coefficients, n x n: .npy or MatrixMarket (.mtx)
    #[arg(long, value_name = "FILE", requires = "b")]
    pub a: Option<PathBuf>,
    /// Right-hand sides, one in each column: .npy or MatrixMarket (.mtx)
    #[arg(long, value_name = "FILE", requires = "a")]
    pub b: Option<PathBuf>,
    /// Write the solution, one column for each right-hand side: .npy, or MatrixMarket (.mtx)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Unknowns of a generated system
    #[arg(long, default_value_t = 1024, conflicts_with = "a")]
    pub n: usize,
    /// Right-hand sides of a generated system
    #[arg(long, default_value_t = 1, conflicts_with = "a")]
    pub rhs: usize,
    /// Seed of a generated system
    #[arg(long, default_value_t = 1, conflicts_with = "a")]
    pub seed: u64,
    /// Type of generated numbers; of files, their own
    #[arg(long, value_enum)]
    pub dtype: Option<Dtype>,
}

impl SystemArguments {
    /// Type of the numbers: as asked for, or f64. Of files, after [`completed`](Self::completed).
    #[must_use]
    pub fn dtype_or_default(&self) -> Dtype {
        self.dtype.unwrap_or(Dtype::F64)
    }

    /// How many right-hand sides there are, for people.
    pub(crate) fn right_hand_sides(&self) -> String {
        if self.rhs == 1 { "one right-hand side".into() } else { format!("{} right-hand sides", self.rhs) }
    }

    /// The same with type and sizes settled, which files have the last word on: nodes, which measure with the kernel
    /// for them, do not see the files. f32 if both files are, f64 by default.
    #[must_use]
    pub fn completed(mut self) -> Self {
        let mut settled = Dtype::F64;
        if let Some([a, b]) = Heading::of_both(self.a.as_deref(), self.b.as_deref()) {
            settled = a.dtype.joined(b.dtype);
            (self.n, self.rhs) = (a.rows, b.cols);
        }
        self.dtype.get_or_insert(settled);
        self
    }

    /// The files that are read and written.
    #[must_use]
    pub fn files(&self) -> Vec<NamedFile> {
        read([("--a", &self.a), ("--b", &self.b)]).chain(written([("--out", &self.out)])).collect()
    }

    /// Options that say nothing beside the others.
    #[must_use]
    pub fn unused(&self) -> Vec<(&'static str, String)> {
        let why = "right-hand sides from a file go with coefficients from one, which --a names";
        self.a.is_none().then(|| ("b", why.into())).into_iter().collect()
    }

    /// Checks the arguments before any node is started.
    ///
    /// # Errors
    /// Which of them, or which file, makes no sense, and how to mend it.
    pub fn check(&self) -> Result<(), RunError> {
        match (&self.a, &self.b) {
            (Some(a), Some(b)) => {
                let refused = |e: ReadError| RunError::Input(e.to_string());
                let (left, right) = (Heading::of(a).map_err(refused)?, Heading::of(b).map_err(refused)?);
                check_sides(a, (left.rows, left.cols), b, (right.rows, right.cols))?;
            }
            _ => {
                for (option, count) in [("--n", self.n), ("--rhs", self.rhs)] {
                    if !(1..=SIDE_MAX).contains(&count) {
                        return Err(RunError::Input(format!("{option} {count}: give 1 to {SIDE_MAX}")));
                    }
                }
            }
        }
        self.out.as_ref().map_or(Ok(()), |out| check_option("--out", out))
    }

    /// Whether files make a system of this size still, which the work was divided for before they were read.
    ///
    /// # Errors
    /// That they do not.
    pub(crate) fn check_unchanged(&self, n: usize, rhs: usize) -> Result<(), RunError> {
        if (n, rhs) == (self.n, self.rhs) {
            return Ok(());
        }
        let [a, b] = [&self.a, &self.b].map(|path| path.as_deref().unwrap_or(Path::new("")));
        Err(RunError::Input(format!(
            "{a:?} and {b:?} are of other sizes than when the run began: start it again"
        )))
    }
}

/// Whether matrices of these rows and columns, from these files, make a system.
pub(crate) fn check_sides(
    a: &Path,
    (rows, cols): (usize, usize),
    b: &Path,
    (right, columns): (usize, usize),
) -> Result<(), RunError> {
    let wrong = |sentence: String| Err(RunError::Input(sentence));
    if rows != cols {
        return wrong(format!("{a:?} is {rows} x {cols}: the coefficients of a system must be square"));
    }
    if right != rows {
        return wrong(format!(
            "{a:?} is {rows} x {cols} and {b:?} is {right} x {columns}: both must have as many rows"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Matrix, npy};
    use clap::{Command, FromArgMatches as _};

    fn of(words: &[&str]) -> Result<SystemArguments, clap::Error> {
        let command = SystemArguments::augment_args(Command::new("system"));
        let matches = command.try_get_matches_from([&["system"], words].concat())?;
        SystemArguments::from_arg_matches(&matches)
    }

    #[test]
    fn files_say_the_type_and_the_sizes() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        npy::write(path("a.npy"), &Matrix::<f32>::zeros(7, 7).unwrap()).unwrap();
        npy::write(path("b.npy"), &Matrix::<f32>::zeros(7, 3).unwrap()).unwrap();
        npy::write(path("wide.npy"), &Matrix::<f64>::zeros(7, 1).unwrap()).unwrap();
        npy::write(path("short.npy"), &Matrix::<f64>::zeros(6, 1).unwrap()).unwrap();
        let given = |a: &str, b: &str| {
            of(&["--a", &path(a), "--b", &path(b)]).map(SystemArguments::completed).unwrap()
        };
        let single = given("a.npy", "b.npy");
        assert_eq!((single.dtype_or_default(), single.n, single.rhs), (Dtype::F32, 7, 3));
        single.check().unwrap();
        single.check_unchanged(7, 3).unwrap();
        let sentence = single.check_unchanged(8, 3).unwrap_err().to_string();
        assert!(sentence.contains("of other sizes than when the run began: start it again"), "{sentence}");
        assert_eq!(given("a.npy", "wide.npy").dtype_or_default(), Dtype::F64);
        let sentence = given("a.npy", "short.npy").check().unwrap_err().to_string();
        assert!(sentence.contains("short.npy\" is 6 x 1: both must have as many rows"), "{sentence}");
        let sentence = given("b.npy", "b.npy").check().unwrap_err().to_string();
        assert!(sentence.contains("is 7 x 3: the coefficients of a system must be square"), "{sentence}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(of(&["--a", "a.npy"]).is_err() && of(&["--a", "a.npy", "--b", "b.npy", "--n", "5"]).is_err());
        for words in [["--n", "0"], ["--rhs", "0"], ["--n", "99999999"]] {
            let sentence = of(&words).unwrap().check().unwrap_err().to_string();
            assert!(sentence.starts_with(&words.join(" ")), "{sentence}");
        }
    }
}
