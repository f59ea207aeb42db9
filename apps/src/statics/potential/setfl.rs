//! Potential files with several elements on one grid: setfl (`eam.alloy`) and its Finnis-Sinclair kind (`eam.fs`).
//!
//! Three lines of comment; the number of elements and their names; points and spacing of the density and of the
//! distance, and the cutoff; for each element a line with atomic number, mass, lattice constant and lattice, its
//! embedding function, and its density (for `eam.fs` one density at each element); then r phi(r) for each pair of
//! elements. Each table begins on a line of its own and may be broken into lines anywhere. Described with `pair_style eam`
//! of LAMMPS.

use super::text::Words;
use super::{PotentialError, Tables};
use std::path::Path;

/// Most values that a table may promise, far above every file in use.
const MOST: usize = 10_000_000;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// One density per element.
    Alloy,
    /// One density per ordered pair of elements.
    FinnisSinclair,
}

/// The tables of the `wanted` elements, in that order.
pub(super) fn read(file: &Path, text: &str, kind: Kind, wanted: &[String]) -> Result<Tables, PotentialError> {
    let mut words = Words::new(file, text);
    for _ in 0..3 {
        words.next_line("a comment (there are three)")?;
    }
    words.open_line("the number of elements")?;
    let elements = words.count("the number of elements", 1..=118)?;
    let mut names = Vec::new();
    for _ in 0..elements {
        let missing = words.malformed(format!("{elements} elements are promised, and {} named", names.len()));
        let name = words.word_of_line().ok_or(missing)?.to_owned();
        if names.contains(&name) {
            return Err(words.malformed(format!("{name} is named twice")));
        }
        names.push(name);
    }
    if let Some(more) = words.word_of_line() {
        return Err(words.malformed(format!("{elements} elements are promised, and `{more}` is one more")));
    }
    let chosen = choose(file, wanted, &names)?;
    words.open_line("the grid: Nrho drho Nr dr cutoff")?;
    let densities = words.count("Nrho", 5..=MOST)?;
    let d_rho = words.positive("drho")?;
    let distances = words.count("Nr", 5..=MOST)?;
    let d_r = words.positive("dr")?;
    let cutoff = words.positive("the cutoff")?;
    let mut all = All::default();
    for (index, name) in names.iter().enumerate() {
        // Lattice constant and lattice, which may follow, are nobody's business here.
        words.open_line(&format!("atomic number and mass of {name}"))?;
        words.count("the atomic number", 0..=200)?;
        all.masses.push(words.positive("the atomic mass")?);
        all.embedding.push(words.numbers(densities, &format!("F(rho) of {name}"))?);
        let targets: Vec<String> = match kind {
            Kind::Alloy => vec![String::new()],
            Kind::FinnisSinclair => names.iter().map(|target| format!(" at {target}")).collect(),
        };
        for target in targets {
            let values = words.numbers(distances, &format!("rho(r) of {name}{target}"))?;
            // What nobody asked for is not kept.
            all.density.push(if chosen.contains(&index) { values } else { Vec::new() });
        }
    }
    for i in 0..elements {
        for j in 0..=i {
            let values = words.numbers(distances, &format!("r phi(r) of {} and {}", names[i], names[j]))?;
            all.pair.push(if chosen.contains(&i) && chosen.contains(&j) { values } else { Vec::new() });
        }
    }
    words.end()?;
    Ok(all.select(kind, elements, &chosen, wanted, Grid { d_rho, densities, d_r, cutoff }))
}

/// Places of the wanted elements among those of the file.
fn choose(file: &Path, wanted: &[String], names: &[String]) -> Result<Vec<usize>, PotentialError> {
    let place = |element: &String| {
        names.iter().position(|name| name == element).ok_or_else(|| PotentialError::NoSuchElement {
            file: file.into(),
            element: element.clone(),
            present: names.join(", "),
        })
    };
    wanted.iter().map(place).collect()
}

struct Grid {
    d_rho: f64,
    densities: usize,
    d_r: f64,
    cutoff: f64,
}

/// Every table of the file.
#[derive(Default)]
struct All {
    masses: Vec<f64>,
    embedding: Vec<Vec<f64>>,
    density: Vec<Vec<f64>>,
    pair: Vec<Vec<f64>>,
}

impl All {
    fn select(&self, kind: Kind, elements: usize, chosen: &[usize], names: &[String], grid: Grid) -> Tables {
        let mut tables = Tables {
            names: names.to_vec(),
            masses: chosen.iter().map(|&i| self.masses[i]).collect(),
            cutoff: grid.cutoff,
            d_r: grid.d_r,
            d_rho: grid.d_rho,
            rho_max: (grid.densities - 1) as f64 * grid.d_rho,
            embedding: chosen.iter().map(|&i| self.embedding[i].clone()).collect(),
            density: Vec::new(),
            pair: Vec::new(),
        };
        for &target in chosen {
            for &source in chosen {
                let density = match kind {
                    Kind::Alloy => source,
                    Kind::FinnisSinclair => source * elements + target,
                };
                tables.density.push(self.density[density].clone());
                let (low, high) = (target.min(source), target.max(source));
                tables.pair.push(self.pair[high * (high + 1) / 2 + low].clone());
            }
        }
        tables
    }
}
