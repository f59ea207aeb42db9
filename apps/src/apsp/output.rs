//! What becomes of the results: files of distances and predecessors, a table of statistics, figures for the report.

use super::dijkstra::Summary;
use super::distance::Distance;
use crate::matrix::npy::{NpyWriteError, NpyWriter};
use chares::{Replacement, RunError, Timeline};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

fn unwritten(error: NpyWriteError) -> RunError {
    RunError::Output(error.to_string())
}

/// The files that were asked for.
pub(super) struct Files<D: Distance> {
    distances: Option<NpyWriter<D>>,
    predecessors: Option<NpyWriter<i32>>,
}

/// What files are asked for.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) distances: Option<&'a PathBuf>,
    pub(super) predecessors: Option<&'a PathBuf>,
}

impl<D: Distance> Files<D> {
    /// Of so many rows and columns.
    pub(super) fn create(asked: Asked<'_>, rows: usize, cols: usize) -> Result<Self, RunError> {
        let distances = asked.distances.map(|path| NpyWriter::create(path, rows, cols));
        let predecessors = asked.predecessors.map(|path| NpyWriter::create(path, rows, cols));
        Ok(Self {
            distances: distances.transpose().map_err(unwritten)?,
            predecessors: predecessors.transpose().map_err(unwritten)?,
        })
    }

    /// Writes what has come of a block.
    pub(super) fn put(
        &mut self,
        (rows, cols): (Range<usize>, Range<usize>),
        distances: Option<&[D]>,
        predecessors: Option<&[i32]>,
    ) -> Result<(), RunError> {
        if let (Some(file), Some(numbers)) = (&mut self.distances, distances) {
            file.write_block(rows.clone(), cols.clone(), numbers).map_err(unwritten)?;
        }
        if let (Some(file), Some(numbers)) = (&mut self.predecessors, predecessors) {
            file.write_block(rows, cols, numbers).map_err(unwritten)?;
        }
        Ok(())
    }

    /// Completes the files.
    pub(super) fn finish(self) -> Result<(), RunError> {
        self.distances.map_or(Ok(()), NpyWriter::finish).map_err(unwritten)?;
        self.predecessors.map_or(Ok(()), NpyWriter::finish).map_err(unwritten)
    }
}

/// States eccentricities, diameter and closeness in the report, for these sources of a graph.
pub(super) fn state(outcome: &mut Timeline, summaries: &[Summary], vertices: usize) {
    let sources = summaries.len();
    let pairs: u64 = summaries.iter().map(|summary| summary.reached).sum();
    let unreachable = sources as u64 * vertices as u64 - pairs;
    let eccentricities = || summaries.iter().map(|summary| summary.eccentricity);
    let (diameter, radius) =
        (eccentricities().fold(f64::MIN, f64::max), eccentricities().fold(f64::MAX, f64::min));
    let others = pairs.saturating_sub(sources as u64);
    let mean = summaries.iter().map(|summary| summary.total).sum::<f64>() / others.max(1) as f64;
    outcome.fact("diameter", diameter);
    outcome.fact("radius", radius);
    outcome.fact("mean_distance", mean);
    outcome.fact("unreachable_pairs", unreachable);
    outcome.remark(&format!(
        "diameter {}, radius {}, mean distance {}{}",
        plain(diameter),
        plain(radius),
        if (1e-3..1e15).contains(&mean.abs()) { format!("{mean:.6}") } else { plain(mean) },
        match unreachable {
            0 => String::new(),
            _ => format!(", of pairs with a path; {unreachable} have none"),
        }
    ));
}

/// Writes a table with a line for each source: its eccentricity, how many vertices it reaches, its closeness.
pub(super) fn write_statistics(
    path: &Path,
    (first, name): (u32, &dyn Fn(u32) -> u64),
    summaries: &[Summary],
    vertices: usize,
) -> Result<(), RunError> {
    let lines = |out: &mut dyn Write| {
        writeln!(out, "vertex,eccentricity,reached,closeness")?;
        (first..).zip(summaries).try_for_each(|(vertex, summary)| {
            let Summary { eccentricity, reached, .. } = summary;
            let closeness = plain(summary.closeness(vertices as u64));
            writeln!(out, "{},{},{reached},{closeness}", name(vertex), plain(*eccentricity))
        })
    };
    Replacement::write(path, lines)
        .map_err(|e| RunError::Output(format!("cannot write {}: {e}", path.display())))
}

/// All digits that tell a number from its neighbours, but no long rows of zeros.
fn plain(number: f64) -> String {
    match number.abs() {
        0.0 | 1e-5..1e17 => number.to_string(),
        _ => format!("{number:e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn numbers_of_any_size_are_short() {
        let numbers = [0.0, 3.0, -0.25, 1e16, 1e300, 5e-324, 0.00001].map(plain);
        assert_eq!(numbers, ["0", "3", "-0.25", "10000000000000000", "1e300", "5e-324", "0.00001"]);
    }
}
