//! What a user says of a body that swells in the course of time.

use super::forest::{Forest, LEVELS_MAX};
use super::input::{Input, InputError, is_usable, positive, says, spread};
use super::lattice::Lattice;
use super::problem::{Boundary, Condition, Physics};
use super::shape::Shape;
use super::spot::Spot;
use super::swelling::Swelling;
use crate::text_file::exactly;
use clap::Args;
use serde::{Deserialize, Serialize};

/// Most blocks.
const BLOCKS_MAX: usize = 4096;
/// Most elements that may be allowed.
const ELEMENTS_MAX: usize = 1 << 30;

/// Options of bodies that swell.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// With swelling: steps in time [default: 40]
    #[arg(long)]
    pub steps: Option<u32>,
    /// With swelling: how long all steps are [default: 0.5]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<f64>,
    /// With swelling: how often elements may be halved [default: 3]
    #[arg(long, value_name = "N")]
    pub levels: Option<u8>,
    /// With swelling: elements along a side of a block, which can move and has elements of one size, before any is halved
    /// [default: 4]
    #[arg(long, value_name = "N")]
    pub block: Option<usize>,
    /// With swelling: elements are halved until the error by estimate is this part of what swells [default: 0.003]
    #[arg(long, value_name = "PART")]
    pub accuracy: Option<f64>,
    /// With swelling: elements at any time, at most [default: 20000]
    #[arg(long, value_name = "N")]
    pub most_elements: Option<usize>,
    /// With swelling: write a file for ParaView after every N steps, too; their names have the step's number
    #[arg(long, value_name = "N", requires = "vtu")]
    pub vtu_every: Option<u32>,
}

/// Where something is put in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpotInput {
    /// The middle of the spot at the beginning.
    #[serde(deserialize_with = "exactly")]
    pub at: [f64; 2],
    /// How fast it moves.
    #[serde(default, deserialize_with = "exactly")]
    pub velocity: [f64; 2],
    /// Its radius.
    pub radius: f64,
    /// What is put in by time and depth.
    pub strength: f64,
}

/// The course of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeInput {
    /// Steps.
    pub steps: Option<u32>,
    /// How long all are.
    pub duration: Option<f64>,
}

impl Times {
    /// The options that were given.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("--steps", self.steps.is_some()),
            ("--duration", self.duration.is_some()),
            ("--levels", self.levels.is_some()),
            ("--block", self.block.is_some()),
            ("--accuracy", self.accuracy.is_some()),
            ("--most-elements", self.most_elements.is_some()),
            ("--vtu-every", self.vtu_every.is_some()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option)
    }
}

fn finite(name: &str, value: f64) -> Result<f64, InputError> {
    if is_usable(value) {
        Ok(value)
    } else {
        says(&format!("{name} = {value:e}: give 0, or a number from 1e-75 to 1e75 in size"))
    }
}

impl Input {
    /// The body that swells: its equation and what holds it, and what swells it.
    ///
    /// # Errors
    /// What makes no sense.
    pub fn swelling(&self, times: &Times) -> Result<(Physics, Vec<Boundary>, Swelling), InputError> {
        let unused = [
            ("wind", !self.wind.is_empty()),
            ("source", !self.source.is_empty()),
            ("a mesh from a file", self.mesh.file.is_some()),
            ("an order other than 1", self.mesh.order.is_some_and(|order| order != 1)),
        ];
        if let Some((what, _)) = unused.iter().find(|(_, is_given)| *is_given) {
            return says(&format!("{what} cannot be had with physics = \"swelling\": leave it out"));
        }
        let forest = self.forest(times)?;
        let steps = times.steps.or(self.time.steps).unwrap_or(40);
        if !(1..=100_000).contains(&steps) {
            return says(&format!("steps = {steps}: give 1 to 100000"));
        }
        let accuracy = times.accuracy.unwrap_or(3e-3);
        if !(accuracy > 0.0 && accuracy < 1.0) {
            return says(&format!("--accuracy {accuracy}: give a number between 0 and 1"));
        }
        let most = times.most_elements.unwrap_or(20_000);
        let least = forest.elements(&vec![0; forest.blocks() as usize]);
        if !(least..=ELEMENTS_MAX).contains(&most) {
            return says(&format!(
                "--most-elements {most}: give {least}, those of the coarsest mesh, to {ELEMENTS_MAX}"
            ));
        }
        let is_known = self.boundary.is_empty() && self.spot.is_none() && self.initial.is_none();
        let (diffusing, holding) = self.conditions(is_known)?;
        let mut swelling = Swelling {
            conductivity: positive(
                "conductivity",
                self.conductivity.unwrap_or(if is_known { 0.01 } else { 1.0 }),
            )?,
            capacity: positive("capacity", self.capacity.unwrap_or(1.0))?,
            expansion: finite("expansion", self.expansion.unwrap_or(1.0))?,
            initial: finite("initial", self.initial.unwrap_or(0.0))?,
            spot: self.spot_said(is_known, &forest.lattice)?,
            is_known,
            boundaries: diffusing,
            steps,
            duration: positive("duration", times.duration.or(self.time.duration).unwrap_or(0.5))?,
            forest,
            most,
            accuracy,
            every: None,
            is_checked: false,
            levels: Vec::new(),
        };
        swelling.levels = swelling.first_levels();
        Ok((self.elastic()?, holding, swelling))
    }

    fn forest(&self, times: &Times) -> Result<Forest, InputError> {
        let side = times.block.unwrap_or(4);
        if !(2..=1 << 10).contains(&side) {
            return says(&format!("--block {side}: give 2 to 1024"));
        }
        let finest = times.levels.unwrap_or(3);
        if finest > LEVELS_MAX {
            return says(&format!("--levels {finest}: give 0 to {LEVELS_MAX}"));
        }
        if self.mesh.elements.len().max(self.mesh.size.len()) > 2 {
            return says(
                "physics = \"swelling\" has 2 dimensions: give two numbers of elements, and two lengths",
            );
        }
        let elements = spread(&self.mesh.elements, 2, 32, "elements")?;
        if let Some(count) =
            elements.iter().find(|count| **count == 0 || **count % side != 0 || **count > 1 << 16)
        {
            return says(&format!(
                "elements = {count}: give a multiple of {side}, the side of a block (--block)"
            ));
        }
        let blocks = (elements[0] / side) * (elements[1] / side);
        if blocks > BLOCKS_MAX {
            return says(&format!(
                "there would be {blocks} blocks, and {BLOCKS_MAX} may be: take a larger --block"
            ));
        }
        let lengths = spread(&self.mesh.size, 2, 1.0, "size")?;
        for length in &lengths {
            positive("size", *length)?;
        }
        let lattice = Lattice {
            shape: Shape::product(1, 2),
            elements: [elements[0], elements[1], 0],
            lengths: [lengths[0], lengths[1], 0.0],
        };
        Ok(Forest { lattice, side, finest })
    }

    fn spot_said(&self, is_known: bool, lattice: &Lattice) -> Result<Option<Spot>, InputError> {
        let [x, y, _] = lattice.lengths;
        if is_known {
            let radius = 0.08 * x.min(y);
            return Ok(Some(Spot {
                at: [0.3 * x, 0.3 * y, 0.0],
                velocity: [0.4 * x, 0.4 * y, 0.0],
                radius,
                strength: 1.0,
            }));
        }
        let Some(SpotInput { at, velocity, radius, strength }) = &self.spot else { return Ok(None) };
        for value in at.iter().chain(velocity) {
            finite("spot", *value)?;
        }
        let in_space = |[x, y]: [f64; 2]| [x, y, 0.0];
        Ok(Some(Spot {
            at: in_space(*at),
            velocity: in_space(*velocity),
            radius: positive("radius of the spot", *radius)?,
            strength: finite("strength of the spot", *strength)?,
        }))
    }

    /// What holds at the boundary for what swells, and for the displacements.
    fn conditions(&self, is_known: bool) -> Result<(Vec<Boundary>, Vec<Boundary>), InputError> {
        if is_known {
            let held = (0..4).map(|group| Boundary { group, condition: Condition::FixedExact });
            return Ok((Vec::new(), held.collect()));
        }
        let groups = ["x-", "x+", "y-", "y+"].map(String::from);
        let (mut diffusing, mut holding) = (Vec::new(), Vec::new());
        for boundary in &self.boundary {
            for Boundary { group, condition } in boundary.condition(&groups, 3)? {
                let (first, rest) = match condition {
                    Condition::Fixed([value, x, y]) => {
                        (Condition::Fixed([value, None, None]), Condition::Fixed([x, y, None]))
                    }
                    Condition::Load([value, x, y]) => {
                        (Condition::Load([value, 0.0, 0.0]), Condition::Load([x, y, 0.0]))
                    }
                    other => (other, other),
                };
                let says_something = |condition: &Condition| match condition {
                    Condition::Fixed(values) => values.iter().any(Option::is_some),
                    Condition::Load(load) => *load != [0.0; 3],
                    _ => true,
                };
                diffusing.extend(says_something(&first).then_some(Boundary { group, condition: first }));
                holding.extend(says_something(&rest).then_some(Boundary { group, condition: rest }));
            }
        }
        if !holding.iter().any(|boundary| matches!(boundary.condition, Condition::Fixed(_))) {
            return says(
                "the body is not held anywhere: give displacements, the second and third number of `fixed`, in some \
                 [[boundary]]",
            );
        }
        Ok((diffusing, holding))
    }
}
