//! Who sends what to whom: worked out by every block for itself from the extents of all.
//!
//! Both ends of a message ask the same question ([`images_felt`]) of the same numbers, so that what one sends the other
//! expects, without a word about it and without ids in the messages. G. Pulla, Virginia Tech, 1999, section 4.4.2, has
//! every node work out the tables of all nodes instead.

use crate::statics::block::{Block, Bounds, Class};
use crate::statics::neighbours::{Extent, images_felt};
use chares::Bulk;
use serde::{Deserialize, Serialize};

/// A block that feels this one, and what it gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Audience {
    /// Its number.
    pub block: u32,
    /// Own atoms that it feels, image by image.
    atoms: Vec<u32>,
    /// How many of them for each image.
    runs: Vec<u32>,
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
    /// Ghosts that move, and those with a slope.
    moving: u32,
    computed: u32,
}

/// What a block tells one that feels it when lists are built anew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Features {
    /// Atoms of each image.
    runs: Vec<u32>,
    /// Species and class of each.
    kinds: Vec<(u8, Class)>,
    /// Places, not shifted.
    places: Bulk<f64>,
}

/// Those who feel block `me`, by number, each with the atoms that it gets.
pub fn audiences(
    block: &Block,
    me: usize,
    extents: &[Option<Extent>],
    bounds: &Bounds,
    reach: f64,
) -> Vec<Audience> {
    let mut audiences = Vec::new();
    for (number, images) in met(me, extents, |other, own| images_felt(other, own, bounds, reach)) {
        let Some(target) = &extents[number] else { continue };
        let (mut atoms, mut runs) = (Vec::new(), Vec::new());
        for image in images {
            let felt = block.felt_in(target, bounds.shift(image), reach);
            runs.push(felt.len() as u32);
            atoms.extend(felt);
        }
        atoms.shrink_to_fit();
        let count = |wanted: fn(Class) -> bool| {
            atoms.iter().filter(|&&i| wanted(block.classes[i as usize])).count() as u32
        };
        let (moving, computed) = (count(moves), count(is_computed));
        audiences.push(Audience { block: number as u32, atoms, runs, moving, computed });
    }
    audiences
}

/// Those whom block `me` feels, by number.
pub fn sources(me: usize, extents: &[Option<Extent>], bounds: &Bounds, reach: f64) -> Vec<Source> {
    let source = |(number, images): (usize, Vec<[i32; 3]>)| Source {
        block: number as u32,
        shifts: images.into_iter().map(|image| bounds.shift(image)).collect(),
        starts: Vec::new(),
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
    /// Number of atoms that it gets, each image counted.
    pub fn atoms(&self) -> usize {
        self.atoms.len()
    }

    /// Bytes of memory held.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + (self.atoms.capacity() + self.runs.capacity()) * size_of::<u32>()
    }

    /// What it is told when lists are built anew.
    pub fn features(&self, block: &Block) -> Features {
        let kind = |&i: &u32| (block.species[i as usize], block.classes[i as usize]);
        let mut places = Bulk::zeros(3 * self.atoms.len());
        for (to, &i) in places.as_mut_slice().chunks_exact_mut(3).zip(&self.atoms) {
            to.copy_from_slice(&block.at[i as usize]);
        }
        Features { runs: self.runs.clone(), kinds: self.atoms.iter().map(kind).collect(), places }
    }

    /// Places of those of its atoms that move; none if there are none.
    pub fn places(&self, block: &Block) -> Option<Bulk<f64>> {
        let mut places = Bulk::zeros(3 * self.moving as usize);
        for (to, i) in places.as_mut_slice().chunks_exact_mut(3).zip(self.those(block, self.moving, moves)) {
            to.copy_from_slice(&block.at[i]);
        }
        (!places.is_empty()).then_some(places)
    }

    /// Slopes of those of its atoms that have one; none if there are none.
    pub fn slopes(&self, block: &Block) -> Option<Bulk<f64>> {
        let mut slopes = Bulk::zeros(self.computed as usize);
        for (to, i) in slopes.as_mut_slice().iter_mut().zip(self.those(block, self.computed, is_computed)) {
            *to = block.slope[i];
        }
        (!slopes.is_empty()).then_some(slopes)
    }

    /// Its `count` atoms of these classes. Mostly all are, and nothing has to be looked up.
    fn those<'a>(
        &'a self,
        block: &'a Block,
        count: u32,
        wanted: fn(Class) -> bool,
    ) -> impl Iterator<Item = usize> + 'a {
        let all = count as usize == self.atoms.len();
        self.atoms.iter().map(|&i| i as usize).filter(move |&i| all || wanted(block.classes[i]))
    }
}

fn moves(class: Class) -> bool {
    class == Class::Free
}

fn is_computed(class: Class) -> bool {
    matches!(class, Class::Free | Class::Buffer)
}

/// Takes what all sources told, in their order, as the ghosts of a block; false if one told what does not fit.
pub fn take_features(block: &mut Block, sources: &mut [Source], told: &[Features]) -> bool {
    let fits = |(source, told): (&Source, &Features)| {
        let atoms: usize = told.runs.iter().map(|&run| run as usize).sum();
        source.shifts.len() == told.runs.len()
            && atoms == told.kinds.len()
            && told.places.len() == 3 * told.kinds.len()
    };
    if sources.len() != told.len() || !sources.iter().zip(told).all(fits) {
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
        let count =
            |wanted: fn(Class) -> bool| told.kinds.iter().filter(|kind| wanted(kind.1)).count() as u32;
        (source.moving, source.computed) = (count(moves), count(is_computed));
        source.put_places(block, &told.places, |_| true);
        // Fixed atoms have no slope, and nobody sends one.
        block.ghost_slopes()[source.range()].fill(0.0);
    }
    true
}

impl Source {
    /// Number of its atoms among the ghosts, each image counted.
    pub fn atoms(&self) -> usize {
        self.range().len()
    }

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
            + self.starts.capacity() * size_of::<u32>()
    }

    /// Takes the places that it sent; false if there are not as many as atoms that move.
    pub fn take_places(&self, block: &mut Block, places: &[f64]) -> bool {
        let fits = places.len() == 3 * self.moving as usize;
        if fits {
            self.put_places(block, places, moves);
        }
        fits
    }

    /// Takes the slopes that it sent; false if there are not as many as atoms that have one.
    pub fn take_slopes(&self, block: &mut Block, slopes: &[f64]) -> bool {
        let fits = slopes.len() == self.computed as usize;
        let own = block.own();
        let mut slopes = slopes.iter();
        for ghost in self.range() {
            if fits
                && is_computed(block.classes[own + ghost])
                && let Some(&slope) = slopes.next()
            {
                block.slope[own + ghost] = slope;
            }
        }
        fits
    }

    fn range(&self) -> std::ops::Range<usize> {
        let [Some(first), Some(end)] = [self.starts.first(), self.starts.last()] else { return 0..0 };
        *first as usize..*end as usize
    }

    fn put_places(&self, block: &mut Block, places: &[f64], wanted: impl Fn(Class) -> bool) {
        let own = block.own();
        let all = self.moving as usize == self.atoms();
        let mut places = places.chunks_exact(3);
        for (shift, run) in self.shifts.iter().zip(self.starts.windows(2)) {
            for ghost in own + run[0] as usize..own + run[1] as usize {
                if (all || wanted(block.classes[ghost]))
                    && let Some(at) = places.next()
                {
                    block.at[ghost] = std::array::from_fn(|k| at[k] + shift[k]);
                }
            }
        }
    }
}
