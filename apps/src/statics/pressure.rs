//! A box relaxed to zero pressure, as a machine that is told pressures and tells stretches.
//!
//! Newton's method. After the atoms have relaxed in a box, [`Search`] is told the pressure there and answers by what
//! factors the box and all places in it are stretched next. The stiffness is taken from a small stretch of each group of
//! axes, and corrected by every box after that (C. G. Broyden, Math. Comp. 19 (1965) 577). So the same machine runs for a
//! system in one thread and for blocks on many nodes, and takes the same boxes.

use super::relax::{Limits, Method, Stop};
use super::serial::{Relaxed, System};

/// Axes of the box that are stretched together, by one factor.
pub type Together = Vec<usize>;

/// Why a box has no place without pressure.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum PressureError {
    /// The atoms did not relax.
    #[error("the atoms do not relax in the box: {0}")]
    NotRelaxed(Stop),
    /// Newton's method does not come to an end.
    #[error("no box without pressure was found in {MOST} boxes; {0:.2e} GPa are left")]
    NotFound(f64),
}

/// GPa in an eV/A^3.
pub const GPA: f64 = 160.217_663_4;

/// Boxes that are tried, those for the stiffness included.
const MOST: u32 = 100;
/// Stretch from which the stiffness is taken.
const PROBE: f64 = 1e-4;
/// Largest stretch at a time.
const LONGEST: f64 = 0.03;
/// A box that has more than this part of the pressure of the last is far from what the stiffness says.
const SLOW: f64 = 0.25;

/// The machine.
#[derive(Debug)]
pub struct Search {
    groups: Vec<Together>,
    tolerance: f64,
    boxes: u32,
    /// Pressures of the groups in the last box that was no probe, and the stretches that led away from it.
    pressures: Vec<f64>,
    strain: Vec<f64>,
    /// How each group's stretch lowers the pressures; one for each group once all are probed.
    stiffness: Vec<Vec<f64>>,
}

impl Search {
    /// Until the pressure along each of the `groups` of axes is at most `tolerance`, in GPa.
    pub fn new(groups: &[Together], tolerance: f64) -> Self {
        Self {
            groups: groups.to_vec(),
            tolerance,
            boxes: 0,
            pressures: Vec::new(),
            strain: Vec::new(),
            stiffness: Vec::new(),
        }
    }

    /// By what factors the box is stretched next, after the atoms have relaxed at a pressure of `pressure` (xx, yy, zz, …
    /// in eV/A^3; positive: the box wants to grow). None: there is no pressure left.
    ///
    /// # Errors
    /// A hundred boxes do not suffice.
    pub fn next(&mut self, pressure: &[f64; 6]) -> Result<Option<[f64; 3]>, PressureError> {
        let found: Vec<f64> =
            self.groups.iter().map(|axes| axes.iter().map(|&k| pressure[k]).sum()).collect();
        let worst = |pressures: &[f64]| pressures.iter().fold(0.0_f64, |worst, p| worst.max(p.abs()));
        self.boxes += 1;
        let is_probe = !self.pressures.is_empty() && self.stiffness.len() < self.groups.len();
        if is_probe {
            let fall = self.pressures.iter().zip(&found).map(|(p, q)| (p - q) / PROBE);
            self.stiffness.push(fall.collect());
            let back = self.factors(self.stiffness.len() - 1, 1.0 / (1.0 + PROBE));
            return Ok(Some(times(back, self.away())));
        }
        if worst(&found) * GPA <= self.tolerance {
            return Ok(None);
        }
        if self.boxes >= MOST {
            return Err(PressureError::NotFound(worst(&found) * GPA));
        }
        if worst(&found) <= SLOW * worst(&self.pressures) {
            self.correct(&found);
        } else {
            self.stiffness.clear();
        }
        self.pressures = found;
        Ok(Some(self.away()))
    }

    /// From the box that is no probe: to the next probe, or to where the pressure should vanish.
    fn away(&mut self) -> [f64; 3] {
        let probed = self.stiffness.len();
        if probed < self.groups.len() {
            return self.factors(probed, 1.0 + PROBE);
        }
        // Far from the minimum the stiffness may have any sign; the box then gives way to the pressure a little.
        let downhill =
            |strain: &Vec<f64>| self.pressures.iter().zip(strain).map(|(p, e)| p * e).sum::<f64>() > 0.0;
        let strain = solve(&self.stiffness, &self.pressures).filter(downhill);
        let strain = strain.unwrap_or_else(|| self.pressures.iter().map(|p| 0.02 * p.signum()).collect());
        self.strain = strain.into_iter().map(|strain| strain.clamp(-LONGEST, LONGEST)).collect();
        let each = self.strain.iter().enumerate().map(|(group, strain)| self.factors(group, 1.0 + strain));
        each.fold([1.0; 3], times)
    }

    /// Corrects the stiffness by what the last stretch did.
    fn correct(&mut self, found: &[f64]) {
        let length: f64 = self.strain.iter().map(|strain| strain * strain).sum();
        for (row, (p, q)) in self.pressures.iter().zip(found).enumerate() {
            let told: f64 = self.stiffness.iter().zip(&self.strain).map(|(column, e)| column[row] * e).sum();
            let missed = p - q - told;
            for (column, strain) in self.stiffness.iter_mut().zip(&self.strain) {
                column[row] += missed * strain / length;
            }
        }
    }

    fn factors(&self, group: usize, factor: f64) -> [f64; 3] {
        std::array::from_fn(|axis| if self.groups[group].contains(&axis) { factor } else { 1.0 })
    }
}

fn times(one: [f64; 3], other: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|k| one[k] * other[k])
}

/// Pressure tensor in eV/A^3 (xx, yy, zz, yz, xz, xy; positive: the box wants to grow), after the atoms have relaxed in
/// the box.
pub fn pressures(system: &mut System, method: Method, limits: Limits) -> ([f64; 6], Relaxed) {
    let relaxed = system.relax(method, limits, |_, _, _| ());
    let volume = system.bounds().volume();
    (system.evaluate(true).virial.map(|virial| virial / volume), relaxed)
}

/// Stretches the box until the pressure along the `groups` of axes is below `tolerance`, in GPa, relaxing the atoms in
/// every box.
///
/// # Errors
/// The atoms do not relax, or a hundred boxes do not suffice.
pub fn relax_box(
    system: &mut System,
    groups: &[Together],
    method: Method,
    limits: Limits,
    tolerance: f64,
) -> Result<Relaxed, PressureError> {
    let mut search = Search::new(groups, tolerance);
    loop {
        let (pressure, relaxed) = pressures(system, method, limits);
        if !relaxed.stop.is_minimum() {
            return Err(PressureError::NotRelaxed(relaxed.stop));
        }
        match search.next(&pressure)? {
            None => return Ok(relaxed),
            Some(factors) => system.scale(factors),
        }
    }
}

/// x with sum over j of x_j columns_j = b, for up to three unknowns; none if there is no single one.
fn solve(columns: &[Vec<f64>], b: &[f64]) -> Option<Vec<f64>> {
    let n = b.len();
    let mut rows: Vec<Vec<f64>> =
        (0..n).map(|i| columns.iter().map(|column| column[i]).chain([b[i]]).collect()).collect();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| rows[i][k].abs().total_cmp(&rows[j][k].abs()))?;
        rows.swap(k, pivot);
        if rows[k][k].abs() < 1e-12 {
            return None;
        }
        let row = rows[k].clone();
        for other in rows.iter_mut().skip(k + 1) {
            let factor = other[k] / row[k];
            other.iter_mut().zip(&row).for_each(|(x, y)| *x -= factor * y);
        }
    }
    let mut x = vec![0.0; n];
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| rows[k][j] * x[j]).sum();
        x[k] = (rows[k][n] - known) / rows[k][k];
    }
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A box that wants to be 1.0, 1.1, 0.9 long, with pressures that depend on all edges and not evenly.
    fn pressure(lengths: [f64; 3]) -> [f64; 6] {
        let strain: [f64; 3] = std::array::from_fn(|k| (lengths[k] / [1.0, 1.1, 0.9][k]).ln());
        let trace: f64 = strain.iter().sum();
        let along = |k: usize| -(0.4 * strain[k] + 0.7 * trace) * (1.0 - 4.0 * trace);
        [along(0), along(1), along(2), 0.0, 0.0, 0.0]
    }

    #[test]
    fn a_box_is_found_from_afar_along_each_axis_and_along_some_together() {
        for (start, groups, expected) in [
            ([1.05, 1.0, 0.95], vec![vec![0], vec![1], vec![2]], [1.0, 1.1, 0.9]),
            ([1.02, 1.122, 0.918], vec![vec![0, 1, 2]], [1.0, 1.1, 0.9]),
            ([1.0, 1.1, 0.8], vec![vec![0, 1], vec![2]], [1.0, 1.1, 0.9]),
        ] {
            let (mut lengths, mut boxes) = (start, 0);
            let mut search = Search::new(&groups, 1e-9);
            while let Some(factors) = search.next(&pressure(lengths)).unwrap() {
                (lengths, boxes) = (times(lengths, factors), boxes + 1);
            }
            assert!((0..3).all(|k| (lengths[k] - expected[k]).abs() < 1e-9), "{lengths:?}");
            assert!(boxes < 25, "{boxes} boxes");
        }
    }

    #[test]
    fn an_axis_that_is_held_keeps_its_length() {
        let mut lengths = [1.03, 1.1, 0.9];
        let mut search = Search::new(&[vec![1], vec![2]], 1e-9);
        while let Some(factors) = search.next(&pressure(lengths)).unwrap() {
            lengths = times(lengths, factors);
        }
        assert_eq!(lengths[0].to_bits(), 1.03_f64.to_bits());
        let [x, y, z, ..] = pressure(lengths);
        assert!(x < -1e-3 && y.abs() < 1e-9 && z.abs() < 1e-9, "{x} {y} {z}");
    }

    #[test]
    fn a_box_that_wants_to_grow_for_ever_is_given_up() {
        let mut search = Search::new(&[vec![0, 1, 2]], 1e-9);
        let ended = (0..1000).find_map(|_| search.next(&[1.0; 6]).err());
        assert_eq!(ended, Some(PressureError::NotFound(3.0 * GPA)));
    }
}
