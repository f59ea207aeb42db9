//! Built-in potentials with published parameters, so that a first run needs no file.
//!
//! * Sutton-Chen (A. P. Sutton, J. Chen, Phil. Mag. Lett. 61 (1990) 139, table 1), fcc metals:
//!   E = eps [ sum over pairs (a/r)^n - c sum sqrt(rho) ], rho = sum (a/r)^m. The published sums have no end; here a
//!   switching function takes both functions smoothly from 1.9 a to 0 at 2.1 a, so that energies come out a few
//!   percent smaller than the published ones.
//! * Finnis-Sinclair (M. W. Finnis, J. E. Sinclair, Phil. Mag. A 50 (1984) 45, with the erratum in 53 (1986) 161),
//!   bcc metals: phi = (r-c)^2 (c0 + c1 r + c2 r^2) inside c, rho = sum (r-d)^2 + beta (r-d)^3/d inside d,
//!   F = -A sqrt(rho).

use super::spline;
use super::{Embedding, Interval, Potential, PotentialError};

/// Points of the tables that the kernel reads; the energy of a pair is then right to about 1e-8 eV.
const POINTS: usize = 10_001;

/// Which of the two families.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// Long-ranged powers, fcc.
    SuttonChen,
    /// Short-ranged polynomials, bcc.
    FinnisSinclair,
}

/// Element, mass in u, lattice constant in A, n, m, eps in eV, c.
type SuttonChen = (&'static str, f64, f64, u32, u32, f64, f64);

#[rustfmt::skip]
const SUTTON_CHEN: [SuttonChen; 10] = [
    ("Ni",  58.693, 3.52,  9,  6, 1.5707e-2,  39.432),
    ("Cu",  63.546, 3.61,  9,  6, 1.2382e-2,  39.432),
    ("Rh", 102.906, 3.80, 12,  6, 4.9371e-3, 144.41),
    ("Pd", 106.42,  3.89, 12,  7, 4.1790e-3, 108.27),
    ("Ag", 107.868, 4.09, 12,  6, 2.5415e-3, 144.41),
    ("Ir", 192.217, 3.84, 14,  6, 2.4489e-3, 334.94),
    ("Pt", 195.084, 3.92, 10,  8, 1.9833e-2,  34.408),
    ("Au", 196.967, 4.08, 10,  8, 1.2793e-2,  34.408),
    ("Pb", 207.2,   4.95, 10,  7, 5.5765e-3,  45.778),
    ("Al",  26.982, 4.05,  7,  6, 3.3147e-2,  16.399),
];

/// Element, mass in u, lattice constant in A, d in A, A in eV, beta, c in A, [c0, c1, c2].
type FinnisSinclair = (&'static str, f64, f64, f64, f64, f64, f64, [f64; 3]);

#[rustfmt::skip]
const FINNIS_SINCLAIR: [FinnisSinclair; 7] = [
    ("V",   50.942, 3.0399, 3.692767, 2.010637, 0.0, 3.8,  [-0.8816318,   1.4907756, -0.3976370]),
    ("Nb",  92.906, 3.3008, 3.915354, 3.013789, 0.0, 4.2,  [-1.5640104,   2.0055779, -0.4663764]),
    ("Ta", 180.948, 3.3058, 4.076980, 2.591061, 0.0, 4.2,  [ 1.2157373,   0.0271471, -0.1217350]),
    ("Cr",  51.996, 2.8845, 3.915720, 1.453418, 1.8, 2.9,  [29.1429813, -23.3975027,  4.7578297]),
    ("Mo",  95.95,  3.1472, 4.114825, 1.887117, 0.0, 3.25, [43.4475218, -31.9332978,  6.0804249]),
    ("W",  183.84,  3.1652, 4.400224, 1.896373, 0.0, 3.25, [47.1346499, -33.7665655,  6.2541999]),
    ("Fe",  55.845, 2.8665, 3.569745, 1.828905, 1.8, 3.4,  [ 1.2371147,  -0.3592185, -0.0385607]),
];

/// The built-in potential for one element.
///
/// # Errors
/// The model has no parameters for the element; those that it has are named.
pub fn built_in(model: Model, element: &str) -> Result<Potential, PotentialError> {
    match model {
        Model::SuttonChen => SUTTON_CHEN
            .iter()
            .find(|row| row.0 == element)
            .map(sutton_chen)
            .ok_or_else(|| unknown("Sutton-Chen", element, SUTTON_CHEN.iter().map(|row| row.0))),
        Model::FinnisSinclair => FINNIS_SINCLAIR
            .iter()
            .find(|row| row.0 == element)
            .map(finnis_sinclair)
            .ok_or_else(|| unknown("Finnis-Sinclair", element, FINNIS_SINCLAIR.iter().map(|row| row.0))),
    }
}

/// The model that has parameters for an element, with the lattice constant in A that it was published with.
pub fn model_of(element: &str) -> Option<(Model, f64)> {
    let fcc = SUTTON_CHEN.iter().find(|row| row.0 == element).map(|row| (Model::SuttonChen, row.2));
    fcc.or_else(|| {
        FINNIS_SINCLAIR.iter().find(|row| row.0 == element).map(|row| (Model::FinnisSinclair, row.2))
    })
}

fn unknown(
    model: &'static str,
    element: &str,
    present: impl Iterator<Item = &'static str>,
) -> PotentialError {
    PotentialError::NotBuiltIn {
        model,
        element: element.into(),
        present: present.collect::<Vec<_>>().join(", "),
    }
}

fn sutton_chen(&(name, mass, a, n, m, eps, c): &SuttonChen) -> Potential {
    let (inner, cutoff) = (1.9 * a, 2.1 * a);
    let switch = |r: f64| {
        let x = ((r - inner) / (cutoff - inner)).clamp(0.0, 1.0);
        1.0 - x * x * x * (10.0 - x * (15.0 - 6.0 * x))
    };
    // Nearer than any atoms come, the functions go on with the slope that they have there: finite, and atoms that begin on top of
    // each other still repel.
    let nearest = 0.15 * a;
    let power = |r: f64, exponent: u32| {
        let slope = f64::from(exponent) / nearest;
        whole_power(a / r.max(nearest), exponent) * (1.0 + slope * (nearest - r).max(0.0))
    };
    let density = |r: f64| power(r, m) * switch(r);
    let pair = |r: f64| eps * power(r, n) * switch(r);
    tabulate(name, mass, cutoff, eps * c, density, pair)
}

/// The power by rounded products only, which has the same bits on any machine. That of the standard library does not: systems of
/// 32 bits compute it with more digits.
fn whole_power(mut base: f64, mut exponent: u32) -> f64 {
    let mut power = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    power
}

fn finnis_sinclair(&(name, mass, _, d, strength, beta, c, [c0, c1, c2]): &FinnisSinclair) -> Potential {
    let density = |r: f64| if r < d { (r - d).powi(2) + beta * (r - d).powi(3) / d } else { 0.0 };
    let pair = |r: f64| if r < c { (r - c).powi(2) * (c0 + r * (c1 + r * c2)) } else { 0.0 };
    tabulate(name, mass, c.max(d), strength, density, pair)
}

fn tabulate(
    name: &str,
    mass: f64,
    cutoff: f64,
    strength: f64,
    density: impl Fn(f64) -> f64,
    pair: impl Fn(f64) -> f64,
) -> Potential {
    let d_r = cutoff / (POINTS - 1) as f64;
    let table =
        |f: &dyn Fn(f64) -> f64| spline::cubics(&(0..POINTS).map(|m| f(m as f64 * d_r)).collect::<Vec<_>>());
    let (density, pair) = (table(&density), table(&|r| r * pair(r)));
    let intervals = density.into_iter().zip(pair).map(|(density, pair)| Interval { density, pair });
    Potential {
        names: vec![name.into()],
        masses: vec![mass],
        cutoff,
        per_r: 1.0 / d_r,
        embedding: vec![Embedding::Root { strength }],
        pairs: vec![intervals.collect()],
    }
}
