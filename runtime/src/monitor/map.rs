//! Numbers over a plane as a program shows them while it runs: a few thousand cells of 256 steps each, small enough to be sent
//! ten times a second to whoever watches.

use serde::{Deserialize, Serialize};

/// The most cells along an axis, columns and rows.
pub const CELLS_MAX: [usize; 2] = [128, 64];
/// The most maps of a run that are kept; each has a title of its own.
pub const MAPS_MAX: usize = 8;
/// The longest title or name of an axis, bytes.
const WORDS_MAX: usize = 80;

/// Numbers over a plane. Whatever comes from outside is checked when it is decoded: all that is said here holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Map {
    title: String,
    axes: [Axis; 2],
    low: f64,
    high: f64,
    columns: u16,
    cells: Vec<u8>,
}

/// What is along an edge of a map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// In the program's words, e.g. `x`; at most 80 bytes.
    pub name: String,
    /// Where the first cell begins, in the program's units; finite.
    pub low: f64,
    /// Where the last cell ends; finite.
    pub high: f64,
}

impl Axis {
    /// An axis from one place to another. A name that is too long is cut; what is no number becomes 0.
    #[must_use]
    pub fn new(name: &str, low: f64, high: f64) -> Self {
        Self { name: cut(name), low: finite(low), high: finite(high) }
    }

    fn is_sound(&self) -> bool {
        self.name.len() <= WORDS_MAX && self.low.is_finite() && self.high.is_finite()
    }
}

impl Map {
    /// A map of values that stand row by row from the lowest, `columns` in each; a last row that is not whole is left out.
    /// Where there are more than 128 columns or 64 rows each cell has the mean of some. What is no number counts as the least.
    #[must_use]
    pub fn new(title: &str, [x, y]: [Axis; 2], columns: usize, values: &[f64]) -> Self {
        let columns = columns.clamp(1, values.len().max(1));
        let rows = (values.len() / columns).max(1);
        let value = |row: usize, column: usize| values.get(row * columns + column).copied();
        let part = |at: usize, shown: usize, all: usize| at * all / shown..(at + 1) * all / shown;
        let [shown_columns, shown_rows] = [columns.min(CELLS_MAX[0]), rows.min(CELLS_MAX[1])];
        let mean = |row: usize, column: usize| {
            let (up, across) = (part(row, shown_rows, rows), part(column, shown_columns, columns));
            let count = (up.len() * across.len()) as f64;
            let all = up.flat_map(|row| across.clone().map(move |column| (row, column)));
            all.filter_map(|(row, column)| value(row, column)).map(|value| value / count).sum::<f64>()
        };
        let places = (0..shown_rows).flat_map(|row| (0..shown_columns).map(move |column| (row, column)));
        let means: Vec<f64> = places.map(|(row, column)| mean(row, column)).collect();
        let numbers = || means.iter().copied().filter(|mean| mean.is_finite());
        let (low, high) = (numbers().reduce(f64::min), numbers().reduce(f64::max));
        let (low, high) = (low.unwrap_or_default(), high.unwrap_or_default());
        // Half of each, so that no difference of two numbers is too large for one.
        let range = high / 2.0 - low / 2.0;
        let step = |mean: &f64| {
            let part = (mean / 2.0 - low / 2.0) / range;
            if part.is_finite() { (255.0 * part.clamp(0.0, 1.0)).round() as u8 } else { 0 }
        };
        let cells = means.iter().map(step).collect();
        Self { title: cut(title), axes: [x, y], low, high, columns: shown_columns as u16, cells }
    }

    /// The same with steps that go like this power of the part that a value is of the way from the least to the greatest: one
    /// below 1 shows what there is little of. The least and the greatest value stay.
    #[must_use]
    pub fn by_power(mut self, power: f64) -> Self {
        for cell in &mut self.cells {
            *cell = (255.0 * (f64::from(*cell) / 255.0).powf(power).clamp(0.0, 1.0)).round() as u8;
        }
        self
    }

    /// What it shows, in the program's words; at most 80 bytes. A map takes the place of the one before it with that title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What is along its lower edge, from the left.
    #[must_use]
    pub fn x(&self) -> &Axis {
        &self.axes[0]
    }

    /// What is along its left edge, from the bottom.
    #[must_use]
    pub fn y(&self) -> &Axis {
        &self.axes[1]
    }

    /// The least value, and the greatest; finite.
    #[must_use]
    pub fn range(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// How many columns it has, 1 to 128.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns.into()
    }

    /// How many rows it has, 1 to 64.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.cells.len() / self.columns()
    }

    /// The step of a cell, 0 for the least value and 255 for the greatest; rows are counted from the bottom. 0 where there is
    /// none.
    #[must_use]
    pub fn cell(&self, column: usize, row: usize) -> u8 {
        let is_inside = column < self.columns();
        self.cells.get(row * self.columns() + column).copied().filter(|_| is_inside).unwrap_or_default()
    }
}

/// Puts a map in the place of the one with its title; a new one behind the others, as far as there is room.
pub fn replace(maps: &mut Vec<Map>, map: Map) {
    match maps.iter().position(|before| before.title == map.title) {
        Some(place) => maps[place] = map,
        None if maps.len() < MAPS_MAX => maps.push(map),
        None => {}
    }
}

fn cut(words: &str) -> String {
    words[..words.floor_char_boundary(WORDS_MAX)].to_owned()
}

fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

/// A map as it is sent.
#[derive(Deserialize)]
struct Unchecked {
    title: String,
    axes: [Axis; 2],
    low: f64,
    high: f64,
    columns: u16,
    cells: Vec<u8>,
}

/// Why something is no map.
#[derive(Debug, thiserror::Error)]
#[error("a map that cannot be")]
struct Impossible;

impl TryFrom<Unchecked> for Map {
    type Error = Impossible;

    fn try_from(sent: Unchecked) -> Result<Self, Impossible> {
        let Unchecked { title, axes, low, high, columns, cells } = sent;
        let (across, count) = (usize::from(columns), cells.len());
        let is_whole = (1..=CELLS_MAX[0]).contains(&across)
            && count.is_multiple_of(across)
            && (1..=CELLS_MAX[1]).contains(&(count / across));
        let is_ranged = low.is_finite() && high.is_finite() && low <= high;
        let is_sound = title.len() <= WORDS_MAX && axes.iter().all(Axis::is_sound);
        if !(is_whole && is_ranged && is_sound) {
            return Err(Impossible);
        }
        Ok(Self { title, axes, low, high, columns, cells })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn axes() -> [Axis; 2] {
        [Axis::new("x", 0.0, 1.0), Axis::new("v", -2.0, 2.0)]
    }

    #[test]
    fn cells_go_from_the_least_to_the_greatest_value() {
        let map = Map::new("t", axes(), 2, &[-1.0, 0.0, 1.0, f64::NAN, 7.0]);
        assert_eq!((map.columns(), map.rows(), map.range()), (2, 2, [-1.0, 1.0]));
        let cells = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2)].map(|(c, r)| map.cell(c, r));
        assert_eq!(cells, [0, 128, 255, 0, 0, 0], "a row that is not whole is left out");
        assert_eq!(map.by_power(0.5).cell(1, 0), 181);
        let flat = Map::new("t", axes(), 3, &[4.0; 3]);
        assert_eq!((flat.range(), flat.cell(1, 0)), ([4.0, 4.0], 0));
        let none = Map::new("t", axes(), 0, &[]);
        assert_eq!((none.columns(), none.rows(), none.range()), (1, 1, [0.0, 0.0]));
    }

    #[test]
    fn large_maps_are_made_smaller_by_means() {
        let values: Vec<f64> = (0..256 * 128).map(|at| (at % 256) as f64).collect();
        let map = Map::new(&"ä".repeat(50), axes(), 256, &values);
        assert_eq!((map.columns(), map.rows(), map.range()), (128, 64, [0.5, 254.5]));
        assert_eq!((map.cell(0, 63), map.cell(127, 0), map.title().chars().count()), (0, 255, 40));
    }

    #[test]
    fn a_map_takes_the_place_of_the_one_before() {
        let map = |title: &str, value| Map::new(title, axes(), 1, &[value]);
        let mut maps = Vec::new();
        (0..20).for_each(|number| replace(&mut maps, map(&number.to_string(), 1.0)));
        replace(&mut maps, map("3", 5.0));
        assert_eq!((maps.len(), maps[3].range(), maps[2].range()), (MAPS_MAX, [5.0; 2], [1.0; 2]));
    }

    #[test]
    fn maps_that_cannot_be_are_refused() {
        let good = Map::new("t", axes(), 2, &[0.0, 1.0]);
        type Change = fn(&mut Map);
        let changes: [Change; 9] = [
            |map| map.columns = 0,
            |map| map.columns = 3,
            |map| map.cells.clear(),
            |map| (map.columns, map.cells) = (129, vec![0; 129]),
            |map| map.cells = vec![0; 2 * 65],
            |map| map.low = f64::NAN,
            |map| map.high = -1.0,
            |map| map.title = "a".repeat(81),
            |map| map.axes[1].high = f64::INFINITY,
        ];
        let read = |map: &Map| postcard::from_bytes::<Map>(&postcard::to_stdvec(map).unwrap());
        assert_eq!(read(&good).unwrap(), good);
        for (number, change) in changes.iter().enumerate() {
            let mut bad = good.clone();
            change(&mut bad);
            assert!(read(&bad).is_err(), "{number}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_shown_can_be_read(
            (title, name) in (any::<String>(), any::<String>()),
            ends in any::<[f64; 2]>(),
            columns in 0..300usize,
            values in proptest::collection::vec(any::<f64>(), 0..2000),
            power in 0.0..4.0f64,
        ) {
            let axis = Axis::new(&name, ends[0], ends[1]);
            let map = Map::new(&title, [axis.clone(), axis], columns, &values).by_power(power);
            let read: Map = postcard::from_bytes(&postcard::to_stdvec(&map).unwrap()).unwrap();
            prop_assert_eq!(&read, &map);
            prop_assert!(map.columns() <= CELLS_MAX[0] && map.rows() <= CELLS_MAX[1]);
        }

        #[test]
        fn any_bytes_are_a_sound_map_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(map) = postcard::from_bytes::<Map>(&bytes) {
                prop_assert!(map.columns() * map.rows() == map.cells.len() && map.low <= map.high);
            }
        }
    }
}
