//! Kinds of elements in meshes whose elements differ in size by powers of two. Where a large element meets two small ones, the
//! node between those hangs: what a function is there is the mean of what it is at the ends of the large one's side. In
//! place of such a corner the small element has the far end, and functions and loads go from one to the other here
//! (C. Burstedde, L. C. Wilcox, O. Ghattas, SIAM Journal on Scientific Computing 33, 2011, section on numbering nodes).

/// Which corners of a quadrilateral hang, and its size. The number 0 is that of any element of which nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind(pub u32);

/// Bits of the corners: two for each.
const CORNERS: u32 = 8;

impl Kind {
    /// Of an element of a level.
    #[must_use]
    pub fn of_level(level: u8) -> Self {
        Self((u32::from(level) + 1) << CORNERS)
    }

    /// The same with a corner that hangs on a side along an axis, 0 or 1.
    #[must_use]
    pub fn hanging(self, corner: usize, axis: usize) -> Self {
        Self(self.0 | (axis as u32 + 1) << (2 * corner))
    }

    /// Corners that hang, and the corner that is the near end of the same side, which never hangs.
    pub fn each(self) -> impl Iterator<Item = (usize, usize)> {
        let along = move |corner: usize| (self.0 >> (2 * corner) & 3) as usize;
        (0..4).filter(move |&corner| along(corner) != 0).map(move |corner| (corner, corner ^ along(corner)))
    }

    /// Takes numbers of an element's nodes, so many each, to its corners.
    pub fn spread(self, numbers: &mut [f64], each: usize) {
        for (corner, near) in self.each() {
            for k in 0..each {
                numbers[corner * each + k] = (numbers[corner * each + k] + numbers[near * each + k]) / 2.0;
            }
        }
    }

    /// Takes loads of an element's corners to its nodes.
    pub fn collect(self, loads: &mut [f64], each: usize) {
        for (corner, near) in self.each() {
            for k in 0..each {
                loads[corner * each + k] /= 2.0;
                loads[near * each + k] += loads[corner * each + k];
            }
        }
    }

    /// Takes a matrix of an element's corners to its nodes.
    pub fn collect_matrix(self, matrix: &mut [f64], each: usize) {
        let size = 4 * each;
        if self.each().next().is_some() {
            matrix.chunks_exact_mut(size).for_each(|row| self.collect(row, each));
            self.collect(matrix, each * size);
        }
    }
}
