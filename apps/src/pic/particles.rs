//! Particles, and what is done with each in every step: the field moves them, and their charge goes to the grid.
//!
//! The charge of a particle is shared by the four points around it (cloud in cell) in whole numbers, whose sums are the same
//! in any order. So the field is the same bits whoever has the particles, and with it the way of each.

use super::problem::{Problem, REACH, Strip};
use chares::Bulk;
use pulp::{Arch, Simd, WithSimd};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Adding this to a number below 2^51 rounds it to a whole one, which is then in the lower bits.
const ROUNDS: f64 = 6_755_399_441_055_744.0;
/// Of a cell.
const CORNERS: usize = 4;

/// Particles, each by its number in all four vectors: places in cells, velocities in cells per step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Particles {
    #[serde(with = "Bulky")]
    x: Vec<f64>,
    #[serde(with = "Bulky")]
    y: Vec<f64>,
    #[serde(with = "Bulky")]
    u: Vec<f64>,
    #[serde(with = "Bulky")]
    v: Vec<f64>,
}

/// Numbers that travel as a bulk array.
struct Bulky;

impl Bulky {
    fn serialize<S: Serializer>(numbers: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        Bulk::from_slice(numbers).serialize(serializer)
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        Bulk::<f64>::deserialize(deserializer).map(|numbers| numbers.to_vec())
    }
}

/// What does not change from step to step, for loops over particles.
#[derive(Clone, Debug, PartialEq)]
pub struct Pushing {
    cells: [f64; 2],
    strip: Strip,
    /// Points of a column of the grid: one more than cells, so that neighbours need no wrapping.
    points: usize,
    bits: u32,
    energy: [f64; 2],
}

/// What came of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pushed {
    /// Rounded squares of the velocities in the middle of the step.
    pub kinetic: i64,
    /// A particle goes further in a step than it may, and what has become of it means nothing.
    pub is_wild: bool,
}

impl Pushing {
    /// For particles in these columns.
    #[must_use]
    pub fn new(problem: &Problem, strip: Strip) -> Self {
        let scale = problem.energy_scale();
        Self {
            cells: problem.cells.map(|cells| cells as f64),
            strip,
            points: problem.cells[1] + 1,
            bits: problem.bits(),
            energy: problem.energy_weights().map(|weight| weight * scale),
        }
    }

    /// Points of a field in these columns, with the one behind them, and a row behind the last.
    #[must_use]
    pub fn field(&self) -> usize {
        (self.strip.columns + 1) * self.points
    }

    /// Sums of charge in these columns: four for each cell, one for each of its corners, next to each other.
    #[must_use]
    pub fn sums(&self) -> usize {
        CORNERS * self.strip.columns * (self.points - 1)
    }

    /// The charge at each point of the columns and of the one behind them, column after column, of the sums of cells' corners.
    #[must_use]
    pub fn folded(&self, sums: &[i64]) -> Vec<i64> {
        let (columns, rows) = (self.strip.columns, self.points - 1);
        let mut charge = vec![0; (columns + 1) * rows];
        for (column, cells) in sums.chunks_exact(CORNERS * rows).enumerate() {
            let (left, right) = charge[column * rows..(column + 2) * rows].split_at_mut(rows);
            for (row, cell) in cells.chunks_exact(CORNERS).enumerate() {
                let above = if row + 1 == rows { 0 } else { row + 1 };
                left[row] += cell[0];
                left[above] += cell[1];
                right[row] += cell[2];
                right[above] += cell[3];
            }
        }
        charge
    }
}

/// The whole number next to one below 2^51.
#[inline(always)]
fn rounded(number: f64) -> u64 {
    (number + ROUNDS).to_bits().wrapping_sub(ROUNDS.to_bits())
}

/// The cell of a place along an axis, and how far from its beginning the place is, 0 to 1: a place where two cells meet may
/// count to either.
#[inline(always)]
pub(super) fn cell_of(place: f64) -> (usize, f64) {
    // Conversions that mind numbers too large or none take longer than all else here.
    let near = (place - 0.5) + ROUNDS;
    (near.to_bits().wrapping_sub(ROUNDS.to_bits()) as usize, place - (near - ROUNDS))
}

/// A place up to a box away as one inside it.
#[inline(always)]
pub(super) fn wrapped(place: f64, cells: f64) -> f64 {
    if (0.0..cells).contains(&place) { place } else { brought_back(place, cells) }
}

/// The same of one outside, which is rare: the others need not wait for what it would be.
#[cold]
#[inline(never)]
fn brought_back(place: f64, cells: f64) -> f64 {
    let place = if place < 0.0 { place + cells } else { place };
    if place >= cells { place - cells } else { place }
}

/// The charge of a particle that is `x`, `y` cells away from the first corner of a cell, to its corners.
#[inline(always)]
fn deposit(sums: &mut [[i64; CORNERS]], cell: usize, (x, y): (f64, f64), bits: u32) {
    let scale = (1u64 << bits) as f64;
    let (x, y) = (rounded(x * scale).cast_signed(), rounded(y * scale).cast_signed());
    let both = x * y;
    let (x, y) = (x << bits, y << bits);
    let parts = [(1 << (2 * bits)) - x - y + both, y - both, x - both, both];
    let Some(corners) = sums.get_mut(cell) else { return };
    corners.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
}

/// A step, compiled for each set of vector instructions; none of them fuses a product with a sum by itself.
struct Step<'a> {
    particles: &'a mut Particles,
    pushing: &'a Pushing,
    field: (&'a [f64], bool),
    grid: &'a mut [i64],
    leaving: &'a mut Vec<u32>,
}

impl WithSimd for Step<'_> {
    type Output = Pushed;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Pushed {
        self.particles.advance_all(self.pushing, self.field, self.grid, self.leaving)
    }
}

/// The charge of the whole grid, with what stands in the column behind the last where it belongs, in the first.
#[must_use]
pub fn around(mut charge: Vec<i64>, cells: usize) -> Vec<i64> {
    let behind = charge.split_off(charge.len() - cells);
    charge.iter_mut().zip(behind).for_each(|(sum, behind)| *sum += behind);
    charge
}

impl Particles {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.x.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.x.is_empty()
    }

    /// Adds one: its place and its velocity.
    pub fn push(&mut self, [x, y, u, v]: [f64; 4]) {
        self.x.push(x);
        self.y.push(y);
        self.u.push(u);
        self.v.push(v);
    }

    /// Each one's place and velocity.
    pub fn each(&self) -> impl Iterator<Item = [f64; 4]> {
        let places = self.x.iter().zip(&self.y);
        places.zip(self.u.iter().zip(&self.v)).map(|((&x, &y), (&u, &v))| [x, y, u, v])
    }

    /// Adds the charge of all from the `first` on to a grid of the columns that they are in.
    pub fn deposit(&self, first: usize, pushing: &Pushing, grid: &mut [i64]) {
        let Pushing { strip, points, bits, .. } = *pushing;
        let (grid, _) = grid.as_chunks_mut();
        for (x, y) in self.x[first..].iter().zip(&self.y[first..]) {
            let ((column, right), (row, up)) = (cell_of(*x), cell_of(*y));
            let cell = column.wrapping_sub(strip.first).wrapping_mul(points - 1).wrapping_add(row);
            deposit(grid, cell, (right, up), bits);
        }
    }

    /// A step of all, from the accelerations at the points around each, two numbers for a point. The first step takes
    /// velocities from the beginning to the middle of a step, and all others from middle to middle (leapfrog). Adds the charge
    /// of those that stay in the columns to `grid`, and the numbers of those that leave them to `leaving`.
    pub fn advance(
        &mut self,
        pushing: &Pushing,
        field: (&[f64], bool),
        grid: &mut [i64],
        leaving: &mut Vec<u32>,
    ) -> Pushed {
        Arch::new().dispatch(Step { particles: self, pushing, field, grid, leaving })
    }

    #[inline(always)]
    fn advance_all(
        &mut self,
        pushing: &Pushing,
        (field, is_first): (&[f64], bool),
        grid: &mut [i64],
        leaving: &mut Vec<u32>,
    ) -> Pushed {
        let Pushing { cells: [nx, ny], strip, points, bits, energy: [of_u, of_v] } = *pushing;
        let (until_middle, whole) = if is_first { (0.0, 0.5) } else { (0.5, 1.0) };
        let limit = (REACH as f64).min(nx).min(ny);
        let (grid, _) = grid.as_chunks_mut();
        // Two accelerations at a point.
        let (field, _) = field.as_chunks::<2>();
        let (mut kinetic, mut is_wild) = (0u64, false);
        let places = self.x.iter_mut().zip(self.y.iter_mut());
        let velocities = self.u.iter_mut().zip(self.v.iter_mut());
        for (number, ((x, y), (u, v))) in places.zip(velocities).enumerate() {
            let ((column, right), (row, up)) = (cell_of(*x), cell_of(*y));
            let at = column.wrapping_sub(strip.first).wrapping_mul(points).wrapping_add(row);
            let next = at.wrapping_add(points);
            let (Some([a, b]), Some([c, d])) =
                (field.get(at..at.wrapping_add(2)), field.get(next..next.wrapping_add(2)))
            else {
                is_wild = true;
                continue;
            };
            let (left, down) = (1.0 - right, 1.0 - up);
            // Both axes at two points: four numbers for an instruction.
            let (of_left, of_right) = (
                [left * down, left * down, left * up, left * up],
                [right * down, right * down, right * up, right * up],
            );
            let (near_left, near_right) = ([a[0], a[1], b[0], b[1]], [c[0], c[1], d[0], d[1]]);
            let pulls: [f64; 4] =
                std::array::from_fn(|at| of_left[at] * near_left[at] + of_right[at] * near_right[at]);
            let (pull_x, pull_y) = (pulls[0] + pulls[2], pulls[1] + pulls[3]);
            let (mid_u, mid_v) = (*u + until_middle * pull_x, *v + until_middle * pull_y);
            let squares = of_u * (mid_u * mid_u) + of_v * (mid_v * mid_v);
            kinetic = kinetic.wrapping_add(rounded(squares));
            let (new_u, new_v) = (*u + whole * pull_x, *v + whole * pull_y);
            (*u, *v) = (new_u, new_v);
            // No field is infinite, so neither is a number.
            if (new_u.abs() >= limit) | (new_v.abs() >= limit) {
                is_wild = true;
                continue;
            }
            let (new_x, new_y) = (wrapped(*x + new_u, nx), wrapped(*y + new_v, ny));
            (*x, *y) = (new_x, new_y);
            let ((column, right), (row, up)) = (cell_of(new_x), cell_of(new_y));
            let inside = column.wrapping_sub(strip.first);
            if inside < strip.columns {
                deposit(grid, inside * (points - 1) + row, (right, up), bits);
            } else {
                leaving.push(number as u32);
            }
        }
        Pushed { kinetic: kinetic.cast_signed(), is_wild }
    }

    /// Takes out those with these numbers, which ascend, and gives each to `to`; others take their numbers.
    pub fn take_out(&mut self, numbers: &[u32], mut to: impl FnMut([f64; 4])) {
        for &number in numbers.iter().rev() {
            let at = number as usize;
            to([
                self.x.swap_remove(at),
                self.y.swap_remove(at),
                self.u.swap_remove(at),
                self.v.swap_remove(at),
            ]);
        }
    }

    /// Puts those of a cell next to each other, so that they find their part of the grid in the nearest cache.
    pub fn sort(&mut self, pushing: &Pushing) {
        let Pushing { strip, points, .. } = *pushing;
        let cell = |x: f64, y: f64| {
            let (column, row) = (cell_of(x).0, cell_of(y).0);
            (column.saturating_sub(strip.first) * points + row).min(pushing.field())
        };
        let mut starts = vec![0u32; pushing.field() + 2];
        let cells: Vec<u32> = self.x.iter().zip(&self.y).map(|(&x, &y)| cell(x, y) as u32).collect();
        cells.iter().for_each(|&cell| starts[cell as usize + 1] += 1);
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let places: Vec<u32> = cells
            .iter()
            .map(|&cell| {
                let start = &mut starts[cell as usize];
                *start += 1;
                *start - 1
            })
            .collect();
        for column in [&mut self.x, &mut self.y, &mut self.u, &mut self.v] {
            let mut sorted = vec![0.0; column.len()];
            column.iter().zip(&places).for_each(|(value, &place)| sorted[place as usize] = *value);
            *column = sorted;
        }
    }

    /// A checksum to the last bit of all, whatever their order.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let of_one = |words: [f64; 4]| {
            let fold =
                |hash: u64, word: f64| (hash ^ word.to_bits()).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
            words.into_iter().fold(0xcbf2_9ce4_8422_2325, fold)
        };
        self.each().fold(0, |sum: u64, particle| sum.wrapping_add(of_one(particle)))
    }
}
