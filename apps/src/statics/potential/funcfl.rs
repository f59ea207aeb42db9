//! funcfl: one element per file, with an effective charge Z(r) instead of the pair energy (the universal functions
//! of Foiles, Baskes and Daw). Several files are brought onto one grid and mixed by the rule of LAMMPS
//! (`PairEAM::file2array`): the widest spacing and range of all, third-order Lagrange interpolation of each file's
//! own values, and r phi_ij(r) = 27.2 0.529 Z_i(r) Z_j(r) in eV A, with exactly these rounded constants.

use super::text::Words;
use super::{PotentialError, Tables};
use std::path::Path;

const MOST: usize = 10_000_000;

/// One file as it stands.
#[derive(Debug)]
pub(super) struct Funcfl {
    mass: f64,
    d_rho: f64,
    d_r: f64,
    cutoff: f64,
    embedding: Vec<f64>,
    charge: Vec<f64>,
    density: Vec<f64>,
}

/// Symbols of the metals that such files are for, by atomic number from 11 on.
#[rustfmt::skip]
const SYMBOLS: [&str; 73] = [
    "Na", "Mg", "Al", "Si", "P", "S", "Cl", "Ar", "K", "Ca", "Sc", "Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn",
    "Ga", "Ge", "As", "Se", "Br", "Kr", "Rb", "Sr", "Y", "Zr", "Nb", "Mo", "Tc", "Ru", "Rh", "Pd", "Ag", "Cd", "In", "Sn",
    "Sb", "Te", "I", "Xe", "Cs", "Ba", "La", "Ce", "Pr", "Nd", "Pm", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb",
    "Lu", "Hf", "Ta", "W", "Re", "Os", "Ir", "Pt", "Au", "Hg", "Tl", "Pb", "Bi",
];

/// Reads a file, which has to be for the element `name` if that is a known metal and the file says what it is for.
pub(super) fn read(file: &Path, text: &str, name: &str) -> Result<Funcfl, PotentialError> {
    let mut words = Words::new(file, text);
    words.next_line("a comment")?;
    words.open_line("the atomic number and mass")?;
    let number = words.count("the atomic number", 0..=200)?;
    let present = number.checked_sub(11).and_then(|place| SYMBOLS.get(place));
    if let Some(present) = present.filter(|present| **present != name && SYMBOLS.contains(&name)) {
        return Err(PotentialError::NoSuchElement {
            file: file.into(),
            element: name.into(),
            present: (*present).into(),
        });
    }
    let mass = words.positive("the atomic mass")?;
    words.open_line("the grid: Nrho drho Nr dr cutoff")?;
    let densities = words.count("Nrho", 6..=MOST)?;
    let d_rho = words.positive("drho")?;
    let distances = words.count("Nr", 6..=MOST)?;
    let d_r = words.positive("dr")?;
    let cutoff = words.positive("the cutoff")?;
    let embedding = words.numbers(densities, "F(rho)")?;
    let charge = words.numbers(distances, "Z(r)")?;
    let density = words.numbers(distances, "rho(r)")?;
    words.end()?;
    Ok(Funcfl { mass, d_rho, d_r, cutoff, embedding, charge, density })
}

/// The tables of several files together; file k holds the element `names[k]`.
pub(super) fn mix(files: &[Funcfl], names: &[String]) -> Tables {
    let widest = |of: fn(&Funcfl) -> f64| files.iter().map(of).fold(0.0, f64::max);
    let (d_r, d_rho) = (widest(|f| f.d_r), widest(|f| f.d_rho));
    let r_max = widest(|f| (f.density.len() - 1) as f64 * f.d_r);
    let rho_max = widest(|f| (f.embedding.len() - 1) as f64 * f.d_rho);
    // As in LAMMPS, the last point of the longest table falls away.
    let (distances, densities) = ((r_max / d_r + 0.5) as usize, (rho_max / d_rho + 0.5) as usize);
    let on_distances = |f: &Funcfl, values: &[f64]| resample(values, f.d_r, d_r, distances);
    let charges: Vec<_> = files.iter().map(|f| on_distances(f, &f.charge)).collect();
    let mut tables = Tables {
        names: names.to_vec(),
        masses: files.iter().map(|f| f.mass).collect(),
        cutoff: widest(|f| f.cutoff),
        d_r,
        d_rho,
        rho_max,
        embedding: files.iter().map(|f| resample(&f.embedding, f.d_rho, d_rho, densities)).collect(),
        density: Vec::new(),
        pair: Vec::new(),
    };
    for target in &charges {
        for (source, file) in charges.iter().zip(files) {
            tables.density.push(on_distances(file, &file.density));
            tables.pair.push(target.iter().zip(source).map(|(zi, zj)| 27.2 * 0.529 * zi * zj).collect());
        }
    }
    tables
}

/// `count` values at spacing `to` of the third-order Lagrange interpolation of `values` at spacing `from`.
fn resample(values: &[f64], from: f64, to: f64, count: usize) -> Vec<f64> {
    let sixth = 1.0 / 6.0;
    let at = |m: usize| {
        // Counted from 1, as in the original.
        let place = m as f64 * to / from + 1.0;
        let k = (place as usize).min(values.len() - 2).max(2);
        let p = (place - k as f64).min(2.0);
        let c1 = -sixth * p * (p - 1.0) * (p - 2.0);
        let c2 = 0.5 * (p * p - 1.0) * (p - 2.0);
        let c3 = -0.5 * p * (p + 1.0) * (p - 2.0);
        let c4 = sixth * p * (p * p - 1.0);
        c1 * values[k - 2] + c2 * values[k - 1] + c3 * values[k] + c4 * values[k + 1]
    };
    (0..count).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_grid_keeps_the_values_and_a_finer_one_meets_a_cubic() {
        let f = |x: f64| 1.0 + x * (2.0 + x * (-0.5 + 0.25 * x));
        let values: Vec<f64> = (0..20).map(|m| f(m as f64 * 0.5)).collect();
        for (m, value) in resample(&values, 0.5, 0.5, 20).iter().enumerate() {
            assert!((value - values[m]).abs() <= 1e-13 * values[m].abs());
        }
        for (m, value) in resample(&values, 0.5, 0.7, 13).iter().enumerate() {
            let exact = f(m as f64 * 0.7);
            assert!((value - exact).abs() < 1e-11 * exact.abs().max(1.0), "{m}");
        }
    }
}
