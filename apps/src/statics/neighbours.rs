//! Neighbour lists by linked cells, and which blocks feel which.
//!
//! A block lists each pair of its own atoms once, at the smaller index, and every pair of an own atom and a ghost at the
//! own atom: the other block computes the pair again. Rows are sorted, so that sums run over neighbours in one order
//! whatever the places at which the list was built.

use super::block::{Bounds, Class};

/// A box around atoms.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Extent {
    /// Smallest coordinates.
    pub low: [f64; 3],
    /// Largest coordinates.
    pub high: [f64; 3],
}

impl Extent {
    /// The smallest box around places; none for none.
    pub fn around(places: impl IntoIterator<Item = [f64; 3]>) -> Option<Self> {
        places.into_iter().fold(None, |extent, at| {
            let Some(Self { low, high }) = extent else { return Some(Self { low: at, high: at }) };
            Some(Self {
                low: std::array::from_fn(|k| low[k].min(at[k])),
                high: std::array::from_fn(|k| high[k].max(at[k])),
            })
        })
    }

    /// Squared distance of a place from the box, 0 inside.
    pub fn distance_squared(&self, at: [f64; 3]) -> f64 {
        (0..3).map(|k| (self.low[k] - at[k]).max(at[k] - self.high[k]).max(0.0)).map(|d| d * d).sum()
    }
}

/// Blocks and images whose atoms can come within `reach` of block `me`, in the order in which their atoms become its
/// ghosts: by block, then image. Any number of images is found, so that crystals thinner than `reach` are right, and
/// an atom feels its own images; the block itself without shift is left out. `extents` are those of all blocks.
pub fn influence(
    extents: &[Option<Extent>],
    me: usize,
    bounds: &Bounds,
    reach: f64,
) -> Vec<(usize, [i32; 3])> {
    let Some(target) = extents[me] else { return Vec::new() };
    let mut felt = Vec::new();
    for (other, extent) in extents.iter().enumerate() {
        let Some(source) = extent else { continue };
        let images = images_felt(&target, source, bounds, reach).into_iter();
        felt.extend(images.map(|image| (other, image)).filter(|felt| *felt != (me, [0; 3])));
    }
    felt
}

/// Images of `source` of which something can come within `reach` of `target`, in the order in which their atoms become
/// ghosts there.
pub fn images_felt(target: &Extent, source: &Extent, bounds: &Bounds, reach: f64) -> Vec<[i32; 3]> {
    let mut felt = Vec::new();
    // Along an axis, with the shift that the images along later axes bring.
    let images = |k: usize, tilt: f64| {
        if !bounds.periodic[k] {
            return 0..=0;
        }
        let first = (target.low[k] - reach - source.high[k] - tilt) / bounds.lengths[k];
        let last = (target.high[k] + reach - source.low[k] - tilt) / bounds.lengths[k];
        first.ceil() as i32..=last.floor() as i32
    };
    for z in images(2, 0.0) {
        for y in images(1, bounds.shift([0, 0, z])[1]) {
            for x in images(0, bounds.shift([0, y, z])[0]) {
                let shift = bounds.shift([x, y, z]);
                let apart = |k: usize| {
                    let low = source.low[k] + shift[k] - target.high[k];
                    low.max(target.low[k] - source.high[k] - shift[k]).max(0.0)
                };
                let distance: f64 = (0..3).map(apart).map(|d| d * d).sum();
                if distance <= reach * reach {
                    felt.push([x, y, z]);
                }
            }
        }
    }
    felt
}

/// Neighbours of each own atom within a reach, in three parts.
#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct List {
    /// Where the three parts of each row begin; and the end of the last.
    starts: Vec<u32>,
    neighbours: Vec<u32>,
}

/// A row of the list: indices of atoms of the block.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Own atoms that move or are buffer, with a larger index: the pair stands here only.
    pub own: &'a [u32],
    /// Ghosts that move or are buffer.
    pub ghosts: &'a [u32],
    /// Fixed atoms, own or ghosts.
    pub fixed: &'a [u32],
}

/// Which pairs of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// Of own atoms that move or are buffer.
    Inside,
    /// With ghosts and fixed atoms.
    Across,
}

impl Row<'_> {
    /// The row with one kind of pairs only.
    #[inline(always)]
    pub fn half(self, half: Half) -> Self {
        match half {
            Half::Inside => Self { ghosts: &[], fixed: &[], ..self },
            Half::Across => Self { own: &[], ..self },
        }
    }
}

/// Bits of an index that say which part a neighbour belongs to, while a row is sorted.
const GHOST: u32 = 1 << 30;
const FIXED: u32 = 2 << 30;

impl List {
    /// Row of own atom `i`.
    #[inline(always)]
    pub fn row(&self, i: usize) -> Row<'_> {
        let [a, b, c, d] = [0, 1, 2, 3].map(|part| self.starts[3 * i + part] as usize);
        Row { own: &self.neighbours[a..b], ghosts: &self.neighbours[b..c], fixed: &self.neighbours[c..d] }
    }

    /// Number of entries of all rows.
    pub fn entries(&self) -> usize {
        self.neighbours.len()
    }

    /// Entries of all rows in each of the three parts.
    pub fn entries_by_part(&self) -> [usize; 3] {
        let length = |row: &[u32], part: usize| (row[part + 1] - row[part]) as usize;
        // The end of a row is the beginning of the next.
        let rows = || self.starts.windows(4).step_by(3);
        std::array::from_fn(|part| rows().map(|row| length(row, part)).sum())
    }

    pub(super) fn bytes(&self) -> usize {
        (self.starts.capacity() + self.neighbours.capacity()) * size_of::<u32>()
    }

    /// Lists anew. `at` and `classes` hold the `own` atoms, then the ghosts; there are less than 2^30.
    pub(super) fn build(&mut self, own: usize, at: &[[f64; 3]], classes: &[Class], reach: f64) {
        assert!(at.len() < GHOST as usize, "a block of 2^30 atoms");
        self.starts.clear();
        self.neighbours.clear();
        self.starts.push(0);
        let bins = Bins::new(at, classes, reach / 2.0);
        let mut row: Vec<u32> = Vec::new();
        for i in 0..own {
            row.clear();
            if matches!(classes[i], Class::Free | Class::Buffer) {
                bins.near(at[i], reach, |j| {
                    let part = match (classes[j as usize], (j as usize) < own) {
                        (Class::Fixed, _) => FIXED,
                        (_, false) => GHOST,
                        (_, true) if (j as usize) <= i => return,
                        (_, true) => 0,
                    };
                    row.push(part | j);
                });
            }
            row.sort_unstable();
            let first = self.neighbours.len();
            for part in [GHOST, FIXED] {
                self.starts.push((first + row.partition_point(|&entry| entry < part)) as u32);
            }
            self.neighbours.extend(row.iter().map(|entry| entry & (GHOST - 1)));
            assert!(u32::try_from(self.neighbours.len()).is_ok(), "a block of 2^32 pairs");
            self.starts.push(self.neighbours.len() as u32);
        }
        self.starts.shrink_to_fit();
        if self.neighbours.capacity() > self.neighbours.len() / 16 * 17 {
            self.neighbours.shrink_to_fit();
        }
    }
}

/// Atoms sorted into cubes, for the time of building a list.
pub(super) struct Bins {
    low: [f64; 3],
    per_length: f64,
    counts: [usize; 3],
    /// First atom of each bin in `atoms`, and the end.
    starts: Vec<u32>,
    /// Places and indices, bin by bin, indices ascending inside.
    atoms: Vec<([f64; 3], u32)>,
}

impl Bins {
    pub(super) fn new(at: &[[f64; 3]], classes: &[Class], side: f64) -> Self {
        let there = |i: &usize| classes[*i] != Class::Removed && at[*i].iter().all(|x| x.is_finite());
        let extent = Extent::around((0..at.len()).filter(there).map(|i| at[i]));
        let Extent { low, high } = extent.unwrap_or(Extent { low: [0.0; 3], high: [0.0; 3] });
        // Few atoms far apart must not make many empty bins.
        let most = 4.0 * at.len() as f64 + 64.0;
        let mut side = side;
        let bins = |side: f64| std::array::from_fn(|k| ((high[k] - low[k]) / side).floor() + 1.0);
        while bins(side).iter().product::<f64>() > most {
            side *= 1.25;
        }
        let counts: [usize; 3] = bins(side).map(|count: f64| count as usize);
        let mut bins = Self { low, per_length: 1.0 / side, counts, starts: Vec::new(), atoms: Vec::new() };
        let mut starts = vec![0u32; counts.iter().product::<usize>() + 1];
        for i in (0..at.len()).filter(there) {
            starts[bins.number(bins.place(at[i])) + 1] += 1;
        }
        for bin in 1..starts.len() {
            starts[bin] += starts[bin - 1];
        }
        let mut next = starts.clone();
        bins.atoms = vec![([0.0; 3], 0); starts[starts.len() - 1] as usize];
        for i in (0..at.len()).filter(there) {
            let slot = &mut next[bins.number(bins.place(at[i]))];
            bins.atoms[*slot as usize] = (at[i], i as u32);
            *slot += 1;
        }
        bins.starts = starts;
        bins
    }

    fn place(&self, at: [f64; 3]) -> [usize; 3] {
        std::array::from_fn(|k| (((at[k] - self.low[k]) * self.per_length) as usize).min(self.counts[k] - 1))
    }

    fn number(&self, [x, y, z]: [usize; 3]) -> usize {
        (z * self.counts[1] + y) * self.counts[0] + x
    }

    /// All atoms within `reach` of a place, the atom there included.
    pub(super) fn near(&self, at: [f64; 3], reach: f64, mut found: impl FnMut(u32)) {
        let low = self.place(at.map(|x| x - reach));
        let high = self.place(at.map(|x| x + reach));
        for z in low[2]..=high[2] {
            for y in low[1]..=high[1] {
                let first = self.starts[self.number([low[0], y, z])] as usize;
                let end = self.starts[self.number([high[0], y, z]) + 1] as usize;
                for (other, index) in &self.atoms[first..end] {
                    let [dx, dy, dz] = [at[0] - other[0], at[1] - other[1], at[2] - other[2]];
                    if dx * dx + dy * dy + dz * dz <= reach * reach {
                        found(*index);
                    }
                }
            }
        }
    }
}
