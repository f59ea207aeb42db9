//! Lattices: an orthogonal conventional cell with its atoms.

use super::CrystalError;

/// An atom of a cell: its place in fractions of the cell's edges, from 0 inclusive to 1 exclusive, and its species.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Site {
    /// Fractions of the three edges.
    pub at: [f64; 3],
    /// Number of the species in the potential.
    pub species: u8,
}

/// A conventional cell with right angles.
#[derive(Clone, PartialEq, Debug)]
pub struct Lattice {
    edges: [f64; 3],
    sites: Vec<Site>,
}

/// Lattices that have a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[value(rename_all = "lower")]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Face-centred cubic.
    Fcc,
    /// Body-centred cubic.
    Bcc,
    /// Hexagonal close-packed, in its rectangular cell a, a sqrt 3, c of four atoms.
    Hcp,
    /// Diamond.
    Diamond,
    /// CsCl structure: species 0 at the corner, 1 in the centre.
    B2,
    /// Cu3Au structure: species 1 at the corner, 0 on the faces (Ni3Al: Ni is species 0).
    #[value(name = "l1_2")]
    #[serde(rename = "l1_2")]
    L12,
}

const FCC: [[f64; 3]; 4] = [[0.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]];

impl Lattice {
    /// A named lattice with the lattice constant `a` in A, and for hcp c/a, the ideal sqrt(8/3) if not given.
    ///
    /// # Errors
    /// A length that is not positive and finite.
    pub fn named(kind: Kind, a: f64, c_over_a: Option<f64>) -> Result<Self, CrystalError> {
        let of_one = |at: &[[f64; 3]]| at.iter().map(|&at| Site { at, species: 0 }).collect::<Vec<_>>();
        let (edges, sites) = match kind {
            Kind::Fcc => ([a; 3], of_one(&FCC)),
            Kind::Bcc => ([a; 3], of_one(&[[0.0; 3], [0.5; 3]])),
            Kind::Diamond => {
                let second = FCC.map(|at| at.map(|x| x + 0.25));
                ([a; 3], of_one(&[FCC, second].concat()))
            }
            Kind::Hcp => {
                let c = a * c_over_a.unwrap_or((8.0_f64 / 3.0).sqrt());
                let at = [[0.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, 5.0 / 6.0, 0.5], [0.0, 1.0 / 3.0, 0.5]];
                ([a, a * 3.0_f64.sqrt(), c], of_one(&at))
            }
            Kind::B2 => ([a; 3], vec![Site { at: [0.0; 3], species: 0 }, Site { at: [0.5; 3], species: 1 }]),
            Kind::L12 => {
                let site = |(k, &at): (usize, &[f64; 3])| Site { at, species: u8::from(k == 0) };
                ([a; 3], FCC.iter().enumerate().map(site).collect())
            }
        };
        if c_over_a.is_some() && kind != Kind::Hcp {
            return Err(CrystalError::NoRatio);
        }
        Self::custom(edges, sites)
    }

    /// A cell with these edges in A and these atoms.
    ///
    /// # Errors
    /// Edges that are not positive, no atom, an atom outside the cell, or two at one place.
    pub fn custom(edges: [f64; 3], sites: Vec<Site>) -> Result<Self, CrystalError> {
        if !edges.iter().all(|edge| edge.is_finite() && *edge > 0.0) {
            return Err(CrystalError::Edges(edges));
        }
        if sites.is_empty() {
            return Err(CrystalError::NoSites);
        }
        for (index, site) in sites.iter().enumerate() {
            if !site.at.iter().all(|x| (0.0..1.0).contains(x)) {
                return Err(CrystalError::SiteOutside { index, at: site.at });
            }
            let same = |other: &Site| (0..3).all(|k| apart(site.at[k], other.at[k]) < 1e-6);
            if let Some(other) = sites[..index].iter().position(same) {
                return Err(CrystalError::SameSite { one: other, other: index });
            }
        }
        Ok(Self { edges, sites })
    }

    /// Lengths of the edges, in A.
    pub fn edges(&self) -> [f64; 3] {
        self.edges
    }

    /// Atoms of the cell.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Whether shifting all atoms by these fractions of the cell gives the same lattice.
    pub(super) fn repeats_after(&self, shift: [f64; 3]) -> bool {
        self.sites.iter().all(|site| {
            self.sites.iter().any(|other| {
                let near = |k: usize| apart(site.at[k] + shift[k], other.at[k]) < 1e-6;
                other.species == site.species && (0..3).all(near)
            })
        })
    }
}

/// Distance of two fractions, where whole numbers do not count.
fn apart(x: f64, y: f64) -> f64 {
    let d = x - y;
    (d - d.round()).abs()
}
