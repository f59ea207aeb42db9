//! Who sends what to whom: worked out by every block for itself from the extents of all.
//!
//! Both ends of a message ask the same question ([`images_felt`]) of the same numbers, so that what one sends the other
//! expects, without a word about it and without ids in the messages. G. Pulla, Virginia Tech, 1999, section 4.4.2, has
//! every node work out the tables of all nodes instead. All blocks of a node are sent the same; which of it are its
//! ghosts a block is told once, when lists are built anew.

use crate::statics::block::{Block, Bounds, Class};
use crate::statics::neighbours::{Extent, images_felt};
use chares::Bulk;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The blocks of one node that feel this one, and what goes there: an atom goes once, however many of them feel it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Audience {
    /// The node, as the caller numbers nodes.
    pub node: u32,
    /// Numbers of these blocks, ascending.
    pub blocks: Vec<u32>,
    /// Own atoms that any of them feels: those that move, then the others that have a slope, then the rest.
    atoms: Vec<u32>,
    /// How many move, and how many have a slope.
    moving: u32,
    computed: u32,
}

/// A block that this one feels, and where its atoms are among the ghosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Its number.
    pub block: u32,
    /// Shift in A of each image.
    shifts: Vec<[f64; 3]>,
    /// First ghost of each image, and the end of the last; empty until the atoms are known.
    starts: Vec<u32>,
    /// Where each of these ghosts stands in what the block sends.
    picks: Vec<u32>,
    /// How many places and how many slopes it sends.
    moving: u32,
    computed: u32,
}

/// What a block tells one that feels it when lists are built anew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Features {
    /// Atoms of each image.
    runs: Vec<u32>,
    /// Where each stands in what goes to the node of the receiver at each evaluation.
    picks: Vec<u32>,
    /// Species and class of each.
    kinds: Vec<(u8, Class)>,
    /// Places, not shifted.
    places: Bulk<f64>,
    /// How many places and how many slopes go there.
    moving: u32,
    computed: u32,
}

/// Own atoms that a block feels, image by image.
type Felt = (u32, Vec<Vec<u32>>);

/// Those who feel block `me`, node by node, with what each block of [`Audience::blocks`] is to be told. `node_of` gives
/// the node of a block.
pub fn audiences(
    block: &Block,
    me: usize,
    extents: &[Option<Extent>],
    (bounds, reach): (&Bounds, f64),
    mut node_of: impl FnMut(u32) -> u32,
) -> Vec<(Audience, Vec<Features>)> {
    let mut by_node: BTreeMap<u32, Vec<Felt>> = BTreeMap::new();
    for (number, images) in met(me, extents, |other, own| images_felt(other, own, bounds, reach)) {
        let Some(target) = &extents[number] else { continue };
        let felt = |image| block.felt_in(target, bounds.shift(image), reach);
        let felt = (number as u32, images.into_iter().map(felt).collect());
        by_node.entry(node_of(number as u32)).or_default().push(felt);
    }
    by_node.into_iter().map(|(node, felt)| audience(block, node, &felt)).collect()
}

fn audience(block: &Block, node: u32, felt: &[Felt]) -> (Audience, Vec<Features>) {
    let class = |i: u32| block.classes[i as usize];
    let mut atoms: Vec<u32> = felt.iter().flat_map(|(_, runs)| runs.iter().flatten().copied()).collect();
    // Classes are in this order.
    atoms.sort_unstable_by_key(|&i| (class(i), i));
    atoms.dedup();
    atoms.shrink_to_fit();
    let count = |wanted: fn(Class) -> bool| atoms.partition_point(|&i| wanted(class(i))) as u32;
    let (moving, computed) = (count(moves), count(is_computed));
    let mut ranks = vec![0; block.own()];
    for (rank, &i) in (0..).zip(&atoms) {
        ranks[i as usize] = rank;
    }
    let features = |(_, runs): &Felt| {
        let atoms = || runs.iter().flatten().map(|&i| i as usize);
        Features {
            runs: runs.iter().map(|run| run.len() as u32).collect(),
            picks: atoms().map(|i| ranks[i]).collect(),
            kinds: atoms().map(|i| (block.species[i], block.classes[i])).collect(),
            places: atoms().flat_map(|i| block.at[i]).collect::<Vec<_>>().into(),
            moving,
            computed,
        }
    };
    let told = felt.iter().map(features).collect();
    let blocks = felt.iter().map(|(number, _)| *number).collect();
    (Audience { node, blocks, atoms, moving, computed }, told)
}

/// Those whom block `me` feels, by number.
pub fn sources(me: usize, extents: &[Option<Extent>], bounds: &Bounds, reach: f64) -> Vec<Source> {
    let source = |(number, images): (usize, Vec<[i32; 3]>)| Source {
        block: number as u32,
        shifts: images.into_iter().map(|image| bounds.shift(image)).collect(),
        starts: Vec::new(),
        picks: Vec::new(),
        moving: 0,
        computed: 0,
    };
    met(me, extents, |other, own| images_felt(own, other, bounds, reach)).map(source).collect()
}

/// Blocks for which `images` of the other's extent and that of `me` finds some; of a block itself all but where it is.
fn met<'a>(
    me: usize,
    extents: &'a [Option<Extent>],
    images: impl Fn(&Extent, &Extent) -> Vec<[i32; 3]> + 'a,
) -> impl Iterator<Item = (usize, Vec<[i32; 3]>)> + 'a {
    let own = extents[me];
    extents.iter().enumerate().filter_map(move |(number, other)| {
        let (Some(own), Some(other)) = (&own, other) else { return None };
        let mut images = images(other, own);
        images.retain(|image| number != me || *image != [0; 3]);
        (!images.is_empty()).then_some((number, images))
    })
}

impl Audience {
    /// Number of atoms that go there.
    pub fn atoms(&self) -> usize {
        self.atoms.len()
    }

    /// Bytes of memory held.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + (self.atoms.capacity() + self.blocks.capacity()) * size_of::<u32>()
    }

    /// Places of those of its atoms that move; none if there are none.
    pub fn places(&self, block: &Block) -> Option<Bulk<f64>> {
        let mut places = Bulk::reused(3 * self.moving as usize);
        for (to, &i) in places.as_mut_slice().chunks_exact_mut(3).zip(&self.atoms) {
            to.copy_from_slice(&block.at[i as usize]);
        }
        (!places.is_empty()).then_some(places)
    }

    /// Slopes of those of its atoms that have one; none if there are none.
    pub fn slopes(&self, block: &Block) -> Option<Bulk<f64>> {
        let mut slopes = Bulk::reused(self.computed as usize);
        for (to, &i) in slopes.as_mut_slice().iter_mut().zip(&self.atoms) {
            *to = block.slope[i as usize];
        }
        (!slopes.is_empty()).then_some(slopes)
    }
}

fn moves(class: Class) -> bool {
    class == Class::Free
}

fn is_computed(class: Class) -> bool {
    matches!(class, Class::Free | Class::Buffer)
}

/// Takes what all sources told, in their order, as the ghosts of a block; false if one told what does not fit.
pub fn take_features(block: &mut Block, sources: &mut [Source], told: Vec<Features>) -> bool {
    let fits = |(source, told): (&Source, &Features)| {
        let atoms: usize = told.runs.iter().map(|&run| run as usize).sum();
        let stands = |(&pick, kind): (&u32, &(u8, Class))| {
            (pick < told.moving, pick < told.computed) == (moves(kind.1), is_computed(kind.1))
        };
        source.shifts.len() == told.runs.len()
            && [told.kinds.len(), told.picks.len()] == [atoms; 2]
            && told.places.len() == 3 * atoms
            && told.picks.iter().zip(&told.kinds).all(stands)
    };
    if sources.len() != told.len() || !sources.iter().zip(&told).all(fits) {
        return false;
    }
    block.set_ghosts(told.iter().flat_map(|told| told.kinds.iter().copied()));
    let mut next = 0;
    for (source, told) in sources.iter_mut().zip(told) {
        source.starts = vec![next];
        for run in &told.runs {
            next += run;
            source.starts.push(next);
        }
        (source.moving, source.computed) = (told.moving, told.computed);
        source.picks = told.picks;
        source.put_places(block, &told.places, 0..);
        // Fixed atoms have no slope, and nobody sends one.
        block.ghost_slopes()[source.range()].fill(0.0);
    }
    true
}

impl Source {
    /// Whether it sends places at each evaluation.
    pub fn sends_places(&self) -> bool {
        self.moving > 0
    }

    /// Whether it sends slopes at each evaluation.
    pub fn sends_slopes(&self) -> bool {
        self.computed > 0
    }

    /// Bytes of memory held.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.shifts.capacity() * size_of::<[f64; 3]>()
            + (self.starts.capacity() + self.picks.capacity()) * size_of::<u32>()
    }

    /// Takes the places that it sent; false if there are not as many as it said.
    pub fn take_places(&self, block: &mut Block, places: &[f64]) -> bool {
        let fits = places.len() == 3 * self.moving as usize;
        if fits {
            self.put_places(block, places, self.picks.iter().map(|&pick| pick as usize));
        }
        fits
    }

    /// Takes the slopes that it sent; false if there are not as many as it said.
    pub fn take_slopes(&self, block: &mut Block, slopes: &[f64]) -> bool {
        let fits = slopes.len() == self.computed as usize;
        if fits {
            for (to, &pick) in block.ghost_slopes()[self.range()].iter_mut().zip(&self.picks) {
                // Atoms without a slope stand behind those that have one.
                *to = slopes.get(pick as usize).copied().unwrap_or(*to);
            }
        }
        fits
    }

    fn range(&self) -> std::ops::Range<usize> {
        let [Some(first), Some(end)] = [self.starts.first(), self.starts.last()] else { return 0..0 };
        *first as usize..*end as usize
    }

    /// Puts its atoms where `places` has them, each at its pick; those that are not there stay.
    fn put_places(&self, block: &mut Block, places: &[f64], mut picks: impl Iterator<Item = usize>) {
        let (places, _) = places.as_chunks::<3>();
        for (shift, run) in self.shifts.iter().zip(self.starts.windows(2)) {
            let ghosts = &mut block.ghost_places()[run[0] as usize..run[1] as usize];
            for (to, pick) in ghosts.iter_mut().zip(&mut picks) {
                if let Some(at) = places.get(pick) {
                    *to = std::array::from_fn(|k| at[k] + shift[k]);
                }
            }
        }
    }
}
