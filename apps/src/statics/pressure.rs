//! A box relaxed to zero pressure.

use super::relax::{Limits, Method};
use super::serial::{Relaxed, System};

/// Pressure tensor in eV/A^3 (xx, yy, zz, yz, xz, xy; positive: the box wants to grow), after the atoms have relaxed in
/// the box.
pub fn pressures(system: &mut System, method: Method, limits: Limits) -> ([f64; 6], Relaxed) {
    let relaxed = system.relax(method, limits, |_, _, _| ());
    let volume = system.bounds().volume();
    (system.evaluate(true).virial.map(|virial| virial / volume), relaxed)
}

/// Axes of the box that are stretched together, by one factor.
pub type Together = Vec<usize>;

/// Why a box has no place without pressure.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum PressureError {
    /// The atoms did not relax.
    #[error("the atoms do not relax in the box: {0}")]
    NotRelaxed(super::relax::Stop),
    /// Newton's method does not come to an end.
    #[error("no box without pressure was found; {0} GPa are left")]
    NotFound(f64),
}

/// GPa in an eV/A^3.
pub const GPA: f64 = 160.217_663_4;

/// Stretches the box until the pressure along the `groups` of axes is below `tolerance`, in GPa, relaxing the atoms in
/// every box. Newton's method: the stiffness is taken from a stretch of each group by 1e-5, and again when it was far.
///
/// # Errors
/// The atoms do not relax, or thirty boxes do not suffice.
pub fn relax_box(
    system: &mut System,
    groups: &[Together],
    method: Method,
    limits: Limits,
    tolerance: f64,
) -> Result<Relaxed, PressureError> {
    let mut found = measure(system, groups, method, limits)?;
    for _ in 0..30 {
        let worst = found.0.iter().fold(0.0_f64, |worst, p| worst.max(p.abs()));
        if worst * GPA <= tolerance {
            return Ok(found.1);
        }
        let small = 1e-5;
        let mut stiffness = Vec::new();
        for group in groups {
            system.scale(factors(group, 1.0 + small));
            let (stretched, _) = measure(system, groups, method, limits)?;
            system.scale(factors(group, 1.0 / (1.0 + small)));
            stiffness.push(found.0.iter().zip(&stretched).map(|(p, q)| (p - q) / small).collect::<Vec<_>>());
        }
        // Far from the minimum the stiffness may have any sign; the box then gives way to the pressure a little.
        let strain = solve(&stiffness, &found.0)
            .filter(|strain| found.0.iter().zip(strain).map(|(p, e)| p * e).sum::<f64>() > 0.0)
            .unwrap_or_else(|| found.0.iter().map(|p| 0.02 * p.signum()).collect());
        for (group, strain) in groups.iter().zip(strain) {
            system.scale(factors(group, 1.0 + strain.clamp(-0.03, 0.03)));
        }
        found = measure(system, groups, method, limits)?;
    }
    let worst = found.0.iter().fold(0.0_f64, |worst, p| worst.max(p.abs()));
    Err(PressureError::NotFound(worst * GPA))
}

fn measure(
    system: &mut System,
    groups: &[Together],
    method: Method,
    limits: Limits,
) -> Result<(Vec<f64>, Relaxed), PressureError> {
    let (pressure, relaxed) = pressures(system, method, limits);
    if !relaxed.stop.is_minimum() {
        return Err(PressureError::NotRelaxed(relaxed.stop));
    }
    Ok((groups.iter().map(|group| group.iter().map(|&axis| pressure[axis]).sum()).collect(), relaxed))
}

fn factors(group: &[usize], factor: f64) -> [f64; 3] {
    std::array::from_fn(|axis| if group.contains(&axis) { factor } else { 1.0 })
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
