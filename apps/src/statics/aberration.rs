//! Defects, as changes that each block makes to its own atoms.
//!
//! A change is a pure function of an atom (id, species, place in the undisturbed crystal) and of numbers that everybody
//! knows, so that a block needs no word from others, and time and memory are those of its atoms. Fields are those of
//! linear elasticity (J. P. Hirth and J. Lothe, Theory of Dislocations, 2nd ed., 1982, sections 3-2 and 3-4; for the
//! crack M. L. Williams, J. Appl. Mech. 24 (1957) 109, plane strain), and move atoms of all classes: those that are held
//! are the boundary condition. They are taken at the undisturbed places, and added to where the atoms are: repeated steps
//! add up.

use super::block::{Block, Class};
use super::crystal::{Atom, Side};
use super::problem::Problem;
use crate::text_file::exactly;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// An axis of the box.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// First.
    X,
    /// Second.
    Y,
    /// Third.
    Z,
}

impl Axis {
    /// Itself, and the two others so that they are right-handed with it: (u, v, line) for x is (y, z, x).
    fn frame(self) -> [usize; 3] {
        match self {
            Self::X => [1, 2, 0],
            Self::Y => [2, 0, 1],
            Self::Z => [0, 1, 2],
        }
    }
}

/// A change of the crystal. Lines run along an axis; `through` gives where, in A along the two other axes (u, v): (y, z)
/// for x, (z, x) for y, (x, y) for z.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Aberration {
    /// Atoms are taken out.
    Vacancy {
        /// Their numbers.
        ids: Vec<u64>,
    },
    /// An atom is put in; its number is the first that is free.
    Interstitial {
        /// Where, in A.
        #[serde(deserialize_with = "exactly")]
        at: [f64; 3],
        /// Its element.
        element: String,
    },
    /// An atom becomes one of another element.
    Antisite {
        /// Its number.
        id: u64,
        /// What it becomes.
        element: String,
    },
    /// All atoms beyond a plane are shifted as one: a stacking fault or an antiphase boundary.
    Fault {
        /// Across which axis.
        axis: Axis,
        /// Where the plane is, in A.
        at: f64,
        /// How far atoms beyond it go, in A.
        #[serde(deserialize_with = "exactly")]
        shift: [f64; 3],
    },
    /// A layer is taken out; its two faces become surfaces if it is thicker than the cutoff.
    Surface {
        /// Across which axis.
        axis: Axis,
        /// Where the layer begins, in A.
        from: f64,
        /// Where it ends.
        to: f64,
    },
    /// A screw dislocation: w = b theta / 2 pi along the line.
    Screw {
        /// Along which axis.
        line: Axis,
        /// Where, in A along u and v.
        #[serde(deserialize_with = "exactly")]
        through: [f64; 2],
        /// Burgers vector along the line, in A.
        burgers: f64,
    },
    /// An edge dislocation with its Burgers vector along u.
    Edge {
        /// Along which axis.
        line: Axis,
        /// Where, in A along u and v.
        #[serde(deserialize_with = "exactly")]
        through: [f64; 2],
        /// Burgers vector along u, in A.
        burgers: f64,
        /// Poisson's ratio.
        poisson: f64,
    },
    /// A crack along the half plane u < 0, opened along v (mode I, plane strain).
    Crack {
        /// Along which axis its front runs.
        line: Axis,
        /// The tip, in A along u and v.
        #[serde(deserialize_with = "exactly")]
        through: [f64; 2],
        /// Stress intensity, in MPa m^0.5.
        intensity: f64,
        /// Shear modulus, in GPa.
        shear: f64,
        /// Poisson's ratio.
        poisson: f64,
    },
    /// Free atoms go up to so many A beside their places, by a rule that depends on their ids only.
    Shake {
        /// Most along each axis, in A.
        by: f64,
    },
}

impl Aberration {
    /// What an input file calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Vacancy { .. } => "vacancy",
            Self::Interstitial { .. } => "interstitial",
            Self::Antisite { .. } => "antisite",
            Self::Fault { .. } => "fault",
            Self::Surface { .. } => "surface",
            Self::Screw { .. } => "screw",
            Self::Edge { .. } => "edge",
            Self::Crack { .. } => "crack",
            Self::Shake { .. } => "shake",
        }
    }

    /// Whether it makes sense for a crystal and the elements of a potential.
    ///
    /// # Errors
    /// A sentence that says what does not.
    pub fn check(&self, problem: &Problem) -> Result<(), String> {
        let (crystal, names) = (&problem.crystal, problem.potential.names());
        let known = |id: u64| {
            let sentence = || format!("there is no atom {id}; ids run from {}", crystal.names());
            problem.id_of(id).map(|_| ()).ok_or_else(sentence)
        };
        let has = |element: &String| {
            let sentence =
                || format!("element {element} is none of those of the potential: {}", names.join(", "));
            names.contains(element).then_some(()).ok_or_else(sentence)
        };
        let finite = |numbers: &[f64]| {
            let sentence = || "numbers have to be finite".to_owned();
            numbers.iter().all(|x| x.is_finite()).then_some(()).ok_or_else(sentence)
        };
        let open = |line: Axis| {
            let [u, v, _] = line.frame();
            let closed = [u, v].into_iter().find(|&k| crystal.sides()[k] == Side::Periodic);
            closed.map_or(Ok(()), |k| {
                let axis = ['x', 'y', 'z'][k];
                Err(format!(
                    "this field does not repeat, so that axis {axis} cannot be periodic; give it shells in [boundary], or \
                     --ends"
                ))
            })
        };
        let ratio = |poisson: f64| {
            let sentence = || format!("Poisson's ratio {poisson} is not between -1 and 0.5");
            (-1.0..=0.5).contains(&poisson).then_some(()).ok_or_else(sentence)
        };
        match self {
            Self::Vacancy { ids } => ids.iter().try_for_each(|&id| known(id)),
            Self::Antisite { id, element } => known(*id).and_then(|()| has(element)),
            Self::Interstitial { at, element } => {
                finite(at)?;
                has(element)?;
                let outside = |k: &usize| !(0.0..=crystal.lengths()[*k]).contains(&at[*k]);
                (0..3).find(outside).map_or(Ok(()), |k| Err(format!("{} A is outside the crystal", at[k])))
            }
            Self::Fault { at, shift, .. } => finite(&[*at]).and_then(|()| finite(shift)),
            Self::Surface { from, to, .. } if from < to => finite(&[*from, *to]),
            Self::Surface { from, to, .. } => Err(format!("a layer from {from} to {to} A has no thickness")),
            Self::Screw { line, through, burgers } => {
                open(*line)?;
                finite(&[through[0], through[1], *burgers])
            }
            Self::Edge { line, through, burgers, poisson } => {
                open(*line)?;
                ratio(*poisson)?;
                finite(&[through[0], through[1], *burgers])
            }
            Self::Crack { line, through, intensity, shear, poisson } => {
                open(*line)?;
                ratio(*poisson)?;
                finite(&[through[0], through[1], *intensity])?;
                let sentence = || format!("shear modulus {shear} GPa has to be positive");
                (shear.is_finite() && *shear > 0.0).then_some(()).ok_or_else(sentence)
            }
            Self::Shake { by } if (0.0..=10.0).contains(by) => Ok(()),
            Self::Shake { by } => Err(format!("{by} A is not between 0 and 10")),
        }
    }

    /// Whether this takes out the layer that a place is in.
    pub fn takes_layer_at(&self, at: [f64; 3]) -> bool {
        matches!(self, Self::Surface { axis, from, to } if (*from..*to).contains(&at[axis.frame()[2]]))
    }

    /// How far an atom goes that is at `at` in the undisturbed crystal, if this is a field.
    pub fn displacement(&self, at: [f64; 3]) -> Option<[f64; 3]> {
        let (line, [u, v, w]) = match self {
            Self::Fault { axis, at: plane, shift } => {
                return (at[axis.frame()[2]] > *plane).then_some(*shift);
            }
            Self::Screw { line, through, burgers } => (line, screw(beside(*line, at, *through), *burgers)),
            Self::Edge { line, through, burgers, poisson } => {
                (line, edge(beside(*line, at, *through), *burgers, *poisson))
            }
            Self::Crack { line, through, intensity, shear, poisson } => {
                // MPa m^0.5 over GPa is 1e-3 m^0.5 = 100 A^0.5.
                (line, crack(beside(*line, at, *through), 100.0 * intensity / shear, *poisson))
            }
            _ => return None,
        };
        let mut by = [0.0; 3];
        for (k, x) in line.frame().into_iter().zip([u, v, w]) {
            by[k] = x;
        }
        Some(by)
    }

    /// Makes the change to a block's own atoms; lists have to be built anew. `number` is that of the block, `stretch` how
    /// much longer the box is than it was, and `next` the id of the next atom that is put in, anywhere.
    pub fn apply(
        &self,
        problem: &Problem,
        number: usize,
        block: &mut Block,
        stretch: [f64; 3],
        next: &mut u64,
    ) {
        let species = |element: &String| {
            problem.potential.names().iter().position(|name| name == element).map(|species| species as u8)
        };
        match self {
            Self::Vacancy { ids } => {
                let found = ids.iter().filter_map(|&name| place_of(problem, block, name)).collect::<Vec<_>>();
                found.into_iter().for_each(|own| block.classes[own] = Class::Removed);
            }
            Self::Antisite { id, element } => {
                if let (Some(own), Some(species)) = (place_of(problem, block, *id), species(element)) {
                    block.species[own] = species;
                }
            }
            Self::Interstitial { at, element } => {
                let id = *next;
                *next += 1;
                let home = problem.partition.block_of(problem.crystal.cell_at(*at));
                if let (true, Some(species)) = (home == number, species(element)) {
                    let class = problem.crystal.class(*at);
                    let at = std::array::from_fn(|k| at[k] * stretch[k]);
                    block.insert(Atom { id, at, species, class });
                }
            }
            Self::Surface { .. } => {
                for own in 0..block.own() {
                    if self.takes_layer_at(problem.undisturbed(block.ids[own])) {
                        block.classes[own] = Class::Removed;
                    }
                }
            }
            Self::Shake { by } => {
                for own in
                    (0..block.own()).filter(|&own| block.classes[own] == Class::Free).collect::<Vec<_>>()
                {
                    let i = (block.ids[own] + 1) as f64;
                    let phases = [i + 0.3, 1.7 * i + 0.9, 2.3 * i + 1.7];
                    add(&mut block.at[own], phases.map(|phase| by * phase.sin()));
                }
            }
            Self::Fault { .. } | Self::Screw { .. } | Self::Edge { .. } | Self::Crack { .. } => {
                for own in 0..block.own() {
                    if let Some(by) = self.displacement(problem.undisturbed(block.ids[own])) {
                        add(&mut block.at[own], by);
                    }
                }
            }
        }
    }
}

/// The own atom of a block that people know by a number.
fn place_of(problem: &Problem, block: &Block, name: u64) -> Option<usize> {
    block.ids.binary_search(&problem.id_of(name)?).ok()
}

fn add(at: &mut [f64; 3], by: [f64; 3]) {
    at.iter_mut().zip(by).for_each(|(x, by)| *x += by);
}

/// A place relative to a line: along u and v.
fn beside(line: Axis, at: [f64; 3], through: [f64; 2]) -> [f64; 2] {
    let [u, v, _] = line.frame();
    [at[u] - through[0], at[v] - through[1]]
}

fn screw([x, y]: [f64; 2], burgers: f64) -> [f64; 3] {
    [0.0, 0.0, burgers * y.atan2(x) / (2.0 * PI)]
}

fn edge([x, y]: [f64; 2], burgers: f64, poisson: f64) -> [f64; 3] {
    let (r2, rest) = (x * x + y * y, 1.0 - poisson);
    let u = y.atan2(x) + x * y / (2.0 * rest * r2);
    let v = (1.0 - 2.0 * poisson) / (4.0 * rest) * r2.ln() + (x * x - y * y) / (4.0 * rest * r2);
    [burgers / (2.0 * PI) * u, -burgers / (2.0 * PI) * v, 0.0]
}

/// `ratio` is K / mu in A^0.5.
fn crack([x, y]: [f64; 2], ratio: f64, poisson: f64) -> [f64; 3] {
    let (half, kappa) = (y.atan2(x) / 2.0, 3.0 - 4.0 * poisson);
    let scale = ratio / 2.0 * (x.hypot(y) / (2.0 * PI)).sqrt();
    let (sin, cos) = half.sin_cos();
    [scale * cos * (kappa - 1.0 + 2.0 * sin * sin), scale * sin * (kappa + 1.0 - 2.0 * cos * cos), 0.0]
}
