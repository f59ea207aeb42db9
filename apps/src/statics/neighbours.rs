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

/// Neighbours of each own atom within a reach: indices of two bytes each where the block has few enough atoms, ghosts
/// included, as blocks of the usual size have. Lists are most of what a crystal takes, and every evaluation reads them twice.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub enum List {
    /// Of at most 2^16 atoms.
    Short(Rows<u16>),
    /// Of more.
    Long(Rows<u32>),
}

impl Default for List {
    fn default() -> Self {
        Self::Short(Rows::default())
    }
}

/// An index of an atom of the block.
pub trait Index: Copy + Into<u32> + TryFrom<u32> + Default {}
impl Index for u16 {}
impl Index for u32 {}

/// Neighbours of each own atom, in three parts.
#[derive(Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct Rows<I> {
    /// Where the three parts of each row begin; and the end of the last.
    starts: Vec<u32>,
    neighbours: Vec<I>,
}

/// A row of the list: indices of atoms of the block.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a, I> {
    /// Own atoms that move or are buffer, with a larger index: the pair stands here only.
    pub own: &'a [I],
    /// Ghosts that move or are buffer.
    pub ghosts: &'a [I],
    /// Fixed atoms, own or ghosts.
    pub fixed: &'a [I],
}

/// Which pairs of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// Of own atoms that move or are buffer.
    Inside,
    /// With ghosts and fixed atoms.
    Across,
}

impl<I> Row<'_, I> {
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
    /// Number of entries of all rows.
    pub fn entries(&self) -> usize {
        self.entries_by_part().iter().sum()
    }

    /// Entries of all rows in each of the three parts.
    pub fn entries_by_part(&self) -> [usize; 3] {
        let (Self::Short(Rows { starts, .. }) | Self::Long(Rows { starts, .. })) = self;
        let length = |row: &[u32], part: usize| (row[part + 1] - row[part]) as usize;
        // The end of a row is the beginning of the next.
        let rows = || starts.windows(4).step_by(3);
        std::array::from_fn(|part| rows().map(|row| length(row, part)).sum())
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Short(rows) => rows.bytes(),
            Self::Long(rows) => rows.bytes(),
        }
    }

    /// Bytes of an index in a block of so many atoms, ghosts included.
    pub fn bytes_per_pair(atoms: usize) -> usize {
        if atoms <= 1 << 16 { size_of::<u16>() } else { size_of::<u32>() }
    }

    /// Lists anew. `at` and `classes` hold the `own` atoms, then the ghosts; there are less than 2^30.
    pub(super) fn build(&mut self, own: usize, at: &[[f64; 3]], classes: &[Class], reach: f64) {
        assert!(at.len() < GHOST as usize, "a block of 2^30 atoms");
        let is_short = Self::bytes_per_pair(at.len()) == size_of::<u16>();
        match self {
            Self::Long(_) if is_short => *self = Self::Short(Rows::default()),
            Self::Short(_) if !is_short => *self = Self::Long(Rows::default()),
            _ => {}
        }
        match self {
            Self::Short(rows) => rows.build(own, at, classes, reach),
            Self::Long(rows) => rows.build(own, at, classes, reach),
        }
    }
}

impl<I: Index> Rows<I> {
    /// Row of own atom `i`.
    #[inline(always)]
    pub fn row(&self, i: usize) -> Row<'_, I> {
        let [a, b, c, d] = [0, 1, 2, 3].map(|part| self.starts[3 * i + part] as usize);
        Row { own: &self.neighbours[a..b], ghosts: &self.neighbours[b..c], fixed: &self.neighbours[c..d] }
    }

    fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<u32>() + self.neighbours.capacity() * size_of::<I>()
    }

    /// `I` holds every index of `at`.
    fn build(&mut self, own: usize, at: &[[f64; 3]], classes: &[Class], reach: f64) {
        self.starts.clear();
        self.neighbours.clear();
        self.starts.push(0);
        let part = |j: usize| match classes[j] {
            Class::Fixed => FIXED,
            _ if j < own => 0,
            _ => GHOST,
        };
        let bins = Bins::new(at, classes, reach, |j| part(j) | j as u32);
        let mut room = Vec::new();
        for i in 0..own {
            // Of own atoms that are computed only those with a larger index: what is in another part is larger than all.
            let row = match classes[i] {
                Class::Free | Class::Buffer => bins.near(at[i], i as u32 + 1, &mut room),
                Class::Fixed | Class::Removed => &mut [],
            };
            row.sort_unstable();
            let first = self.neighbours.len();
            for part in [GHOST, FIXED] {
                self.starts.push((first + row.partition_point(|&entry| entry < part)) as u32);
            }
            let index = |entry: &u32| I::try_from(entry & (GHOST - 1)).unwrap_or_default();
            self.neighbours.extend(row.iter().map(index));
            assert!(u32::try_from(self.neighbours.len()).is_ok(), "a block of 2^32 pairs");
            self.starts.push(self.neighbours.len() as u32);
        }
        fit(&mut self.starts);
        fit(&mut self.neighbours);
    }
}

/// Gives back what a vector has room for in vain, if that is more than a sixteenth.
pub(super) fn fit<T>(vector: &mut Vec<T>) {
    if vector.capacity() > vector.len() + vector.len() / 16 {
        vector.shrink_to_fit();
    }
}

/// Atoms sorted into cubes, for the time of building a list.
pub(super) struct Bins {
    low: [f64; 3],
    per_length: f64,
    counts: [usize; 3],
    /// First atom of each bin in `atoms`, and the end.
    starts: Vec<u32>,
    /// Places and names, bin by bin.
    atoms: Vec<([f64; 3], u32)>,
    reach: f64,
    /// Rows of bins along x that come within the reach of a bin: how far off along z and y, and how many bins to either
    /// side.
    rows: Vec<(isize, isize, usize)>,
}

/// Bins to either side within the reach. With more of them there is less in vain in each row, but more rows.
const FINE: f64 = 2.5;

impl Bins {
    /// For neighbours within `reach`; `name` says what atoms are called, by their index.
    pub(super) fn new(at: &[[f64; 3]], classes: &[Class], reach: f64, name: impl Fn(usize) -> u32) -> Self {
        let there = |i: &usize| classes[*i] != Class::Removed && at[*i].iter().all(|x| x.is_finite());
        let extent = Extent::around((0..at.len()).filter(there).map(|i| at[i]));
        let Extent { low, high } = extent.unwrap_or(Extent { low: [0.0; 3], high: [0.0; 3] });
        // Few atoms far apart must not make many empty bins.
        let most = 4.0 * at.len() as f64 + 64.0;
        let mut side = reach / FINE;
        let bins = |side: f64| std::array::from_fn(|k| ((high[k] - low[k]) / side).floor() + 1.0);
        while bins(side).iter().product::<f64>() > most {
            side *= 1.25;
        }
        let counts: [usize; 3] = bins(side).map(|count: f64| count as usize);
        let (starts, atoms, rows) = (Vec::new(), Vec::new(), rows(reach / side));
        let mut bins = Self { low, per_length: 1.0 / side, counts, starts, atoms, reach, rows };
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
            bins.atoms[*slot as usize] = (at[i], name(i));
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

    /// Names from `from` on of all atoms within the reach of one of these atoms, itself included; in no order. They stand
    /// in `room`, which is better used again.
    pub(super) fn near<'a>(&self, at: [f64; 3], from: u32, room: &'a mut Vec<u32>) -> &'a mut [u32] {
        let [x, y, z] = self.place(at);
        let mut count = 0;
        for &(dz, dy, half) in &self.rows {
            let (z, y) = (z.wrapping_add_signed(dz), y.wrapping_add_signed(dy));
            if z >= self.counts[2] || y >= self.counts[1] {
                continue;
            }
            let row = self.number([0, y, z]);
            let first = self.starts[row + x.saturating_sub(half)] as usize;
            let end = self.starts[row + (x + half + 1).min(self.counts[0])] as usize;
            let run = &self.atoms[first..end];
            if room.len() < count + run.len() {
                room.resize(count + run.len(), 0);
            }
            for (other, name) in run {
                let [dx, dy, dz] = [at[0] - other[0], at[1] - other[1], at[2] - other[2]];
                // Written in any case: a branch would be mispredicted for every third atom.
                room[count] = *name;
                let is_near = dx * dx + dy * dy + dz * dz <= self.reach * self.reach;
                count += usize::from(is_near & (*name >= from));
            }
        }
        &mut room[..count]
    }
}

/// Rows of bins that come within `reach` bins of a bin.
fn rows(reach: f64) -> Vec<(isize, isize, usize)> {
    // Rounding may have put an atom beside its bin.
    let reach = reach + 1e-6;
    let span = reach.ceil() as isize;
    // Of two bins so many apart, the nearest corners are one less.
    let apart = |bins: isize| (bins.abs() - 1).max(0) as f64;
    let across = (-span..=span).flat_map(|z| (-span..=span).map(move |y| (z, y)));
    let row = |(z, y): (isize, isize)| {
        let left = reach * reach - apart(z).powi(2) - apart(y).powi(2);
        (left > 0.0).then(|| (z, y, left.sqrt().ceil() as usize))
    };
    across.filter_map(row).collect()
}
