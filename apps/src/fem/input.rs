//! The input file: which equation, where, and what holds at the boundary.

use super::exact::Exact;
use super::lattice::Lattice;
use super::problem::{Boundary, Condition, Domain, Physics, Source};
use super::shape::Shape;
use super::swelling_input::{SpotInput, TimeInput};
use crate::text_file::{FileError, parse_toml, read_text};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Most conditions, and groups, of a problem: each group is a bit.
const GROUPS_MAX: usize = 32;
/// Most elements along an axis.
const ELEMENTS_MAX: usize = 1 << 20;

/// All that an input file can say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Input {
    /// The equation.
    pub physics: Option<Kind>,
    /// Young's modulus.
    pub young: Option<f64>,
    /// Poisson's ratio.
    pub poisson_ratio: Option<f64>,
    /// Conductivity.
    pub conductivity: Option<f64>,
    /// What a volume holds of what swells, by its value.
    pub capacity: Option<f64>,
    /// The strain of a free body by the value of what swells.
    pub expansion: Option<f64>,
    /// The value of what swells everywhere at the beginning.
    pub initial: Option<f64>,
    /// Where what swells is put in.
    pub spot: Option<SpotInput>,
    /// Steps in time of what swells.
    pub time: TimeInput,
    /// A wind that carries along what Poisson's equation is about.
    pub wind: Vec<f64>,
    /// What is put in everywhere, by volume.
    pub source: Vec<f64>,
    /// Where it is solved.
    pub mesh: MeshInput,
    /// What holds at the boundary.
    pub boundary: Vec<BoundaryInput>,
}

/// The equation, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Poisson's equation: heat, potentials
    Poisson,
    /// Linear elasticity; in two dimensions plane strain
    Elasticity,
    /// Something that diffuses in time and swells an elastic body, as heat does; elements are refined where it changes
    Swelling,
}

/// A box, or a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MeshInput {
    /// A mesh of Gmsh.
    pub file: Option<PathBuf>,
    /// How long a box is along each axis.
    pub size: Vec<f64>,
    /// Elements along each.
    pub elements: Vec<usize>,
    /// Degree of the elements' functions.
    pub order: Option<usize>,
}

/// What holds on a part of the boundary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundaryInput {
    /// A side of a box, x- to z+, or a physical group of a mesh, by name or number.
    pub on: String,
    /// Values for each unknown of a node, or "free".
    pub fixed: Option<Vec<Value>>,
    /// What flows in, or pulls, by area.
    pub load: Option<Vec<f64>>,
}

/// A value, or that there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A value.
    Number(f64),
    /// The word "free".
    Word(String),
}

/// A value as files have it, where a number is a number and a word a word.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Word(String),
}

// Messages to nodes say which of the two it is, for they cannot be asked what comes next.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match (self, to.is_human_readable()) {
            (Self::Number(number), true) => Written::Number(*number).serialize(to),
            (Self::Word(word), true) => Written::Word(word.clone()).serialize(to),
            (Self::Number(number), false) => Ok::<_, String>(*number).serialize(to),
            (Self::Word(word), false) => Err::<f64, _>(word).serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        if from.is_human_readable() {
            return Ok(match Written::deserialize(from)? {
                Written::Number(number) => Self::Number(number),
                Written::Word(word) => Self::Word(word),
            });
        }
        let value = Result::<f64, String>::deserialize(from)?;
        Ok(value.map_or_else(Self::Word, Self::Number))
    }
}

/// What of a mesh in a file is known before it is read as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Announced {
    /// Its elements.
    pub shape: Shape,
    /// Nodes.
    pub nodes: usize,
    /// Elements.
    pub count: usize,
    /// Names of the groups of its boundary.
    pub groups: Vec<String>,
}

/// What is wrong with an input.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// In a line of the file.
    #[error(transparent)]
    File(#[from] FileError),
    /// In what it says.
    #[error("{0}")]
    Says(String),
}

/// Where and what is solved, as an input says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// The equation.
    pub physics: Physics,
    /// Where.
    pub domain: Domain,
    /// What is put in.
    pub source: Source,
    /// What holds at the boundary.
    pub boundaries: Vec<Boundary>,
    /// The solution, if it is known.
    pub exact: Option<Exact>,
}

impl Input {
    /// Reads a file; the mesh that it names is looked for beside it.
    ///
    /// # Errors
    /// It cannot be read, or which line is wrong.
    pub fn read(file: &Path) -> Result<Self, InputError> {
        let mut input: Self = parse_toml(file, &read_text(file)?, "")?;
        let folder = file.parent().unwrap_or(Path::new(""));
        input.mesh.file.iter_mut().for_each(|path| *path = folder.join(&*path));
        Ok(input)
    }

    /// What it says, in `dim` dimensions if that does not follow from it.
    ///
    /// # Errors
    /// What makes no sense.
    pub fn said(&self, dim: Option<usize>, mesh: Option<&Announced>) -> Result<Said, InputError> {
        let domain = self.domain(dim, mesh)?;
        let dim = match &domain {
            Domain::Lattice(lattice) => lattice.shape.dim,
            Domain::Read { shape, .. } => shape.dim,
        };
        let physics = self.physics(dim)?;
        let each = physics.each(dim);
        let is_known = self.boundary.is_empty() && self.source.is_empty() && mesh.is_none();
        if is_known {
            let all = (0..2 * dim as u32).map(|group| Boundary { group, condition: Condition::FixedExact });
            let (boundaries, source) = (all.collect(), Source::Exact);
            let length = match &domain {
                Domain::Lattice(lattice) => lattice.lengths.iter().copied().fold(0.0, f64::max),
                Domain::Read { .. } => 1.0,
            };
            return Ok(Said { physics, domain, source, boundaries, exact: Some(Exact::Sines { length }) });
        }
        let source = Source::Even(triple(&self.source, each, "source")?);
        let groups: Vec<String> = match mesh {
            Some(mesh) => mesh.groups.clone(),
            None => ["x-", "x+", "y-", "y+", "z-", "z+"][..2 * dim].iter().map(|&name| name.into()).collect(),
        };
        let conditions = self.boundary.iter().map(|boundary| boundary.condition(&groups, each));
        let boundaries: Vec<Boundary> = conditions.collect::<Result<Vec<_>, _>>()?.concat();
        if !boundaries.iter().any(|boundary| matches!(boundary.condition, Condition::Fixed(_))) {
            return says(
                "nothing is fixed anywhere, so there is no single solution: give `fixed` in some [[boundary]]",
            );
        }
        Ok(Said { physics, domain, source, boundaries, exact: None })
    }

    fn physics(&self, dim: usize) -> Result<Physics, InputError> {
        let is_elastic = self.physics == Some(Kind::Elasticity);
        let of_swelling = [
            ("capacity", self.capacity.is_some()),
            ("expansion", self.expansion.is_some()),
            ("initial", self.initial.is_some()),
            ("spot", self.spot.is_some()),
            ("time", self.time != TimeInput::default()),
        ];
        if let Some((name, _)) = of_swelling.iter().find(|(_, is_given)| *is_given) {
            return says(&format!("{name} is of use with physics = \"swelling\" only"));
        }
        if is_elastic && (self.conductivity.is_some() || !self.wind.is_empty()) {
            return says("conductivity and wind are of no use in elasticity: take physics = \"poisson\"");
        }
        if !is_elastic && (self.young.is_some() || self.poisson_ratio.is_some()) {
            return says(
                "young and poisson_ratio are of no use in Poisson's equation: take physics = \"elasticity\"",
            );
        }
        if !is_elastic {
            let wind = triple(&self.wind, dim, "wind")?;
            return Ok(Physics::Poisson {
                conductivity: positive("conductivity", self.conductivity.unwrap_or(1.0))?,
                wind,
                rate: 0.0,
            });
        }
        self.elastic()
    }

    /// The body.
    pub(super) fn elastic(&self) -> Result<Physics, InputError> {
        let ratio = self.poisson_ratio.unwrap_or(0.3);
        if !(ratio > -1.0 && ratio < 0.5) {
            return says(&format!("poisson_ratio = {ratio}: give a number above -1 and below 0.5"));
        }
        Ok(Physics::elastic(positive("young", self.young.unwrap_or(1.0))?, ratio))
    }

    fn domain(&self, dim: Option<usize>, mesh: Option<&Announced>) -> Result<Domain, InputError> {
        let MeshInput { size, elements, order, .. } = &self.mesh;
        if let Some(mesh) = mesh {
            if !size.is_empty() || !elements.is_empty() || order.is_some() {
                return says("a mesh from a file has its size, elements and order: leave those out");
            }
            if let Some(dim) = dim.filter(|dim| *dim != mesh.shape.dim) {
                return says(&format!(
                    "the mesh of the file has {} dimensions, not {dim} (--dim)",
                    mesh.shape.dim
                ));
            }
            return Ok(Domain::Read { shape: mesh.shape, nodes: mesh.nodes, elements: mesh.count });
        }
        let given = Some(size.len().max(elements.len())).filter(|given| *given > 1);
        if let (Some(dim), Some(given)) = (dim, given)
            && dim != given
        {
            return says(&format!(
                "a box of {dim} dimensions (--dim) has {dim} sides, and {given} are given"
            ));
        }
        let dim = dim.or(given).unwrap_or(2);
        if !(2..=3).contains(&dim) {
            return says("a box has 2 or 3 dimensions");
        }
        let order = order.unwrap_or(1);
        if !(1..=2).contains(&order) {
            return says(&format!("order = {order}: give 1 or 2"));
        }
        let elements = spread(elements, dim, 64, "elements")?;
        if let Some(count) = elements.iter().find(|count| !(1..=ELEMENTS_MAX).contains(*count)) {
            return says(&format!("elements = {count}: give 1 to {ELEMENTS_MAX}"));
        }
        let lengths = spread(size, dim, 1.0, "size")?;
        for length in &lengths {
            positive("size", *length)?;
        }
        let filled = |k: usize| if k < dim { elements[k] } else { 0 };
        let lattice = Lattice {
            shape: Shape::product(order, dim),
            elements: std::array::from_fn(filled),
            lengths: std::array::from_fn(|k| if k < dim { lengths[k] } else { 0.0 }),
        };
        let along = |n: &usize| (*n as u64).checked_mul(order as u64)?.checked_add(1);
        let nodes = lattice.elements.iter().try_fold(1u64, |all, n| all.checked_mul(along(n)?));
        if nodes.is_none_or(|nodes| nodes > 1 << 40) {
            return says("the box has more than 2^40 nodes: give fewer elements");
        }
        Ok(Domain::Lattice(lattice))
    }
}

impl BoundaryInput {
    pub(super) fn condition(&self, groups: &[String], each: usize) -> Result<Vec<Boundary>, InputError> {
        let Some(group) = groups.iter().position(|name| *name == self.on) else {
            return says(&format!(
                "on = {:?}: there is no such group; there are {}",
                self.on,
                groups.join(", ")
            ));
        };
        if group >= GROUPS_MAX {
            return says(&format!("the mesh has more than {GROUPS_MAX} groups"));
        }
        let group = group as u32;
        let mut all = Vec::new();
        if let Some(values) = &self.fixed {
            let mut fixed = [None; 3];
            if values.len() != each {
                return says(&format!("fixed of {:?}: give {each} values, or \"free\"", self.on));
            }
            for (to, value) in fixed.iter_mut().zip(values) {
                *to = match value {
                    Value::Number(number) if is_usable(*number) => Some(*number),
                    Value::Word(word) if word == "free" => None,
                    _ => {
                        return says(&format!(
                            "fixed of {:?}: give numbers up to 1e75, or \"free\"",
                            self.on
                        ));
                    }
                };
            }
            all.push(Boundary { group, condition: Condition::Fixed(fixed) });
        }
        if let Some(load) = &self.load {
            all.push(Boundary { group, condition: Condition::Load(triple(load, each, "load")?) });
        }
        if all.is_empty() {
            return says(&format!("[[boundary]] on {:?} says nothing: give `fixed` or `load`", self.on));
        }
        Ok(all)
    }
}

pub(super) fn says<T>(sentence: &str) -> Result<T, InputError> {
    Err(InputError::Says(sentence.into()))
}

/// Numbers are 0 or between these, so that squares and products of them can be computed with.
const NUMBERS: RangeInclusive<f64> = 1e-75..=1e75;

/// Whether it can be computed with.
pub(super) fn is_usable(number: f64) -> bool {
    number == 0.0 || NUMBERS.contains(&number.abs())
}

pub(super) fn positive(name: &str, value: f64) -> Result<f64, InputError> {
    match value {
        value if NUMBERS.contains(&value) => Ok(value),
        value if value > 0.0 => says(&format!("{name} = {value:e}: give a number from 1e-75 to 1e75")),
        value => says(&format!("{name} = {value}: give a positive number")),
    }
}

/// As many numbers as a node has unknowns; none are zeros.
fn triple(given: &[f64], each: usize, name: &str) -> Result<[f64; 3], InputError> {
    if !given.is_empty() && given.len() != each || given.iter().any(|number| !is_usable(*number)) {
        let numbers = if each == 1 { "number" } else { "numbers" };
        return says(&format!("{name}: give {each} {numbers}, each 0 or from 1e-75 to 1e75 in size"));
    }
    Ok(std::array::from_fn(|k| given.get(k).copied().unwrap_or(0.0)))
}

/// One number for each axis.
pub(super) fn spread<T: Copy>(given: &[T], dim: usize, usual: T, name: &str) -> Result<Vec<T>, InputError> {
    match given.len() {
        0 => Ok(vec![usual; dim]),
        1 => Ok(vec![given[0]; dim]),
        count if count == dim => Ok(given.to_vec()),
        _ => says(&format!("{name}: give one number, or {dim}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::pup::{pack, unpack};

    /// Nodes that measure their speed for a problem get its input, and reports have it.
    #[test]
    fn what_a_file_says_goes_into_messages_and_reports() {
        let text = "boundary = [{ on = \"x-\", fixed = [1, \"free\", -0.5] }]\n";
        let input: Input = toml::from_str(text).unwrap();
        assert_eq!(unpack::<Input>(&pack(&input)).unwrap(), input);
        let report = serde_json::to_value(&input).unwrap();
        assert_eq!(report["boundary"][0]["fixed"], serde_json::json!([1.0, "free", -0.5]));
        assert_eq!(serde_json::from_value::<Input>(report).unwrap(), input);
    }
}
