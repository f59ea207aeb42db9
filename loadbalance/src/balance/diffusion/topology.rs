//! Which PEs are neighbours: each works out its own from the number of PEs, so that nobody holds a list of all.

use std::ops::Range;

/// A way to join PEs by links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A grid of at most three dimensions whose ends are joined; a ring is one of one dimension.
    Torus(Vec<u32>),
    /// PEs whose numbers differ in one binary digit.
    Hypercube,
    /// PEs whose numbers are 1, a or a² apart, counted in a circle, where a is the cube root of their number, rounded up:
    /// at most six neighbours and a short way to all, for any number of PEs.
    Circulant,
}

/// A link as one of its ends sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbour {
    /// Links of one colour have no PE in common, so that all of them can be levelled out at once.
    pub colour: u32,
    /// The other end.
    pub pe: u32,
}

impl Topology {
    /// A torus with as many places as there are PEs, as it is written: `4x4x4`.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        match text {
            "circulant" => Some(Self::Circulant),
            "hypercube" => Some(Self::Hypercube),
            _ => {
                let side = |side: &str| side.parse().ok().filter(|side| *side > 0);
                let sides: Option<Vec<u32>> = text.split('x').map(side).collect();
                sides.filter(|sides| sides.len() <= 3).map(Self::Torus)
            }
        }
    }

    /// Whether so many PEs can be joined so.
    #[must_use]
    pub fn fits(&self, pe_count: u32) -> bool {
        match self {
            Self::Torus(sides) => {
                sides.iter().try_fold(1u32, |places, side| places.checked_mul(*side)) == Some(pe_count)
            }
            Self::Hypercube | Self::Circulant => true,
        }
    }

    /// The neighbours of a PE, each once, by colour and number; a topology that does not [fit](Self::fits) has none that
    /// make sense.
    #[must_use]
    pub fn neighbours(&self, pe: u32, pe_count: u32) -> Vec<Neighbour> {
        let mut found = match self {
            Self::Torus(sides) => torus(sides, pe),
            Self::Hypercube => (0..pe_count.next_power_of_two().trailing_zeros())
                .map(|digit| Neighbour { colour: digit, pe: pe ^ (1 << digit) })
                .filter(|other| other.pe < pe_count)
                .collect(),
            Self::Circulant => circulant(pe, pe_count),
        };
        // Where an axis is two wide, or distances coincide, a PE is met twice: its first link counts.
        found.sort_by_key(|other| (other.pe, other.colour));
        found.dedup_by_key(|other| other.pe);
        found.retain(|other| other.pe != pe);
        found.sort_unstable();
        found
    }

    /// All links, each once with its lower PE first, by colour if they are to be `coloured`, else by their PEs.
    #[must_use]
    pub fn links(&self, pe_count: u32, coloured: bool) -> Vec<(u32, u32)> {
        let of_pe = |pe: u32| {
            let higher = move |other: &Neighbour| other.pe > pe;
            let link = move |other: Neighbour| (other.colour, pe, other.pe);
            self.neighbours(pe, pe_count).into_iter().filter(higher).map(link)
        };
        let mut links: Vec<(u32, u32, u32)> = (0..pe_count).flat_map(of_pe).collect();
        links.sort_unstable_by_key(|link| if coloured { *link } else { (0, link.1, link.2) });
        links.into_iter().map(|(_, low, high)| (low, high)).collect()
    }
}

/// On each axis links take two colours in turn, and a third joins the ends if their number is odd.
fn torus(sides: &[u32], pe: u32) -> Vec<Neighbour> {
    let mut stride = sides.iter().fold(1u32, |places, side| places.saturating_mul(*side));
    let mut found = Vec::new();
    for (axis, side) in (0..).zip(sides) {
        stride /= side;
        let (at, side) = (pe / stride % side, *side);
        let colour = |low: u32| COLOURS * axis + if low + 1 == side && side % 2 == 1 { 2 } else { low % 2 };
        let with = |place: u32| pe - at * stride + place * stride;
        let before = if at == 0 { side - 1 } else { at - 1 };
        found.push(Neighbour { colour: colour(at), pe: with((at + 1) % side) });
        found.push(Neighbour { colour: colour(before), pe: with(before) });
    }
    found
}

/// Of each distance links take two colours in turn, and a third goes over the end of the circle.
fn circulant(pe: u32, pe_count: u32) -> Vec<Neighbour> {
    let colour = |axis: u32, low: u32, distance: u32| {
        let is_over_the_end = u64::from(low) + u64::from(distance) >= u64::from(pe_count);
        COLOURS * axis + if is_over_the_end { 2 } else { low / distance % 2 }
    };
    let mut found = Vec::new();
    for (axis, distance) in (0..).zip(distances(pe_count)) {
        let after = ((u64::from(pe) + u64::from(distance)) % u64::from(pe_count)) as u32;
        let before = if pe >= distance { pe - distance } else { pe_count - (distance - pe) };
        found.push(Neighbour { colour: colour(axis, pe, distance), pe: after });
        found.push(Neighbour { colour: colour(axis, before, distance), pe: before });
    }
    found
}

/// Distances of at most half the circle, each once.
fn distances(pe_count: u32) -> Vec<u32> {
    let root = CUBE_ROOTS.clone().find(|root| root * root * root >= u64::from(pe_count)).unwrap_or(1);
    let mut distances: Vec<u32> = [1, root, root * root]
        .into_iter()
        .map(|distance| (distance % u64::from(pe_count)) as u32)
        .map(|distance| distance.min(pe_count - distance))
        .filter(|distance| *distance > 0)
        .collect();
    distances.sort_unstable();
    distances.dedup();
    distances
}

/// Colours of an axis.
const COLOURS: u32 = 3;
/// The largest cube root of 32 bits, and all below.
const CUBE_ROOTS: Range<u64> = 1..1626;
