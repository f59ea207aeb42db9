//! What a run shows while it goes on: where electrons are, and how fast they are where. Regions are asked between their steps,
//! so some may be a step further than others, and a few particles on their way to another region; after the last step all are
//! there. Only who looks asks, and nothing that is computed depends on it.

use super::picture;
use super::problem::Problem;
use super::region::Region;
use chares::{Array, Axis, Bulk, Callback, Ctx, Driver, Entry, Map, RunError};
use serde::{Deserialize, Serialize};

/// Most columns and rows of the map of the density, and those of places and velocities.
const DENSITY: [usize; 2] = [64, 32];
const PHASE_SPACE: [usize; 2] = [96, 48];
/// How fast the fastest electrons are that are shown: standard deviations of their velocities, and drifts.
const THERMAL: f64 = 5.0;
const DRIFT: f64 = 2.0;
/// Colours of the map of places and velocities go like this power of the count, so that a few electrons are seen.
const POWER: f64 = 0.4;

/// Count particles for maps.
#[derive(Clone, Serialize, Deserialize)]
pub struct Look {
    density: [u32; 2],
    phase_space: [u32; 2],
    /// The highest velocity along x, in cells per step; the lowest is its opposite. Faster particles are not counted.
    top: f64,
    to: Callback<Seen>,
}

/// What a region has seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Seen {
    density: Columns,
    phase_space: Columns,
}

/// Counts of some columns of a map.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Columns {
    first: u32,
    /// Column by column, each from its lowest row.
    counts: Bulk<i64>,
}

impl Columns {
    /// Those from the first that is not empty to the last: a region has particles in a few.
    fn of(counts: &[i64], rows: usize) -> Self {
        let is_there = |column: &[i64]| column.iter().any(|count| *count != 0);
        let mut there =
            counts.chunks_exact(rows).enumerate().filter(|(_, column)| is_there(column)).map(|(at, _)| at);
        let Some(first) = there.next() else { return Self::default() };
        let last = there.next_back().unwrap_or(first);
        let counts = Bulk::from_slice(&counts[first * rows..(last + 1) * rows]);
        Self { first: first as u32, counts }
    }

    /// Adds them to those of all.
    fn add_to(&self, all: &mut [i64], rows: usize) {
        let sums = all.iter_mut().skip(self.first as usize * rows);
        sums.zip(self.counts.iter()).for_each(|(sum, count)| *sum += count);
    }
}

impl Entry<Look> for Region {
    fn receive(&mut self, look: Look, ctx: &mut Ctx<'_, Self>) {
        let cells = self.setup.problem.read(ctx).cells.map(|cells| cells as f64);
        let bin = |part: f64, bins: u32| ((part * f64::from(bins)) as usize).min(bins as usize - 1);
        let sums = |[columns, rows]: [u32; 2]| vec![0; columns as usize * rows as usize];
        let (mut density, mut phase_space) = (sums(look.density), sums(look.phase_space));
        for [x, y, u, _] in self.particles.each() {
            let (along_x, along_y) = (x / cells[0], y / cells[1]);
            let [columns, rows] = look.density;
            density[bin(along_x, columns) * rows as usize + bin(along_y, rows)] += 1;
            let [columns, rows] = look.phase_space;
            if u.abs() < look.top {
                let row = bin((u / look.top + 1.0) / 2.0, rows);
                phase_space[bin(along_x, columns) * rows as usize + row] += 1;
            }
        }
        let seen = Seen {
            density: Columns::of(&density, look.density[1] as usize),
            phase_space: Columns::of(&phase_space, look.phase_space[1] as usize),
        };
        look.to.send(ctx, seen);
    }
}

/// Asks all regions and adds up what they have seen: the density relative to its mean, and places and velocities along x.
///
/// # Errors
/// If the run fails meanwhile.
pub(super) fn maps(
    main: &mut Driver,
    problem: &Problem,
    regions: &Array<Region>,
) -> Result<Vec<Map>, RunError> {
    let shown = [0, 1].map(|axis| problem.cells[axis].min(DENSITY[axis]));
    let top = top(problem);
    let [dx, _] = problem.cell();
    let (to, told) = main.pending();
    let bins = |bins: [usize; 2]| bins.map(|bins| bins as u32);
    let look = Look { density: bins(shown), phase_space: bins(PHASE_SPACE), top: top * problem.dt / dx, to };
    regions.broadcast(main, look);
    let mut density = vec![0; shown[0] * shown[1]];
    let mut phase_space = vec![0; PHASE_SPACE[0] * PHASE_SPACE[1]];
    for _ in 0..problem.regions() {
        let seen: Seen = told.wait(main)?;
        seen.density.add_to(&mut density, shown[1]);
        seen.phase_space.add_to(&mut phase_space, PHASE_SPACE[1]);
    }
    let place = |name: &str, axis: usize| Axis::new(name, 0.0, problem.length[axis]);
    let mean = problem.particles() as f64 / density.len() as f64;
    let density: Vec<f64> = picture::transposed(&density, shown).map(|count| count as f64 / mean).collect();
    let counts: Vec<f64> = picture::transposed(&phase_space, PHASE_SPACE).map(|count| count as f64).collect();
    Ok(vec![
        Map::new("density, relative to the mean", [place("x", 0), place("y", 1)], shown[0], &density),
        Map::new(
            "particles by x and v_x",
            [place("x", 0), Axis::new("v_x", -top, top)],
            PHASE_SPACE[0],
            &counts,
        )
        .by_power(POWER),
    ])
}

/// The highest velocity that is shown.
fn top(problem: &Problem) -> f64 {
    let of = problem.species.iter().map(|kind| DRIFT * kind.drift.abs() + THERMAL * kind.thermal);
    of.fold(0.0, f64::max).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_columns_those_with_particles_are_sent_and_added_where_they_belong() {
        let counts = [0, 0, 0, 3, 0, 0, 1, 0, 0, 0];
        let sent = Columns::of(&counts, 2);
        assert_eq!((sent.first, sent.counts.len()), (1, 6));
        let mut all = vec![1; 10];
        sent.add_to(&mut all, 2);
        assert_eq!(all, [1, 1, 1, 4, 1, 1, 2, 1, 1, 1]);
        Columns { first: 4, ..sent }.add_to(&mut all, 2);
        assert_eq!(all[8..], [1, 4], "what does not fit is nowhere");
        assert_eq!(Columns::of(&[0; 8], 2), Columns::default());
    }
}
