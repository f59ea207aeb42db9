//! Maps of numbers over a plane, as pictures and as files of numbers.

use crate::matrix::npy::{NpyWriteError, NpyWriter};
use crate::output;
use chares::RunError;
use command::plot::{Anchor, Color, Drawing, Shape};
use std::path::Path;

/// Of a picture, in pixels: the map, and what is around it for words.
const WIDTH: f64 = 768.0;
const HEIGHT: f64 = 384.0;
const MARGIN: f64 = 70.0;
/// Most fields along an axis that a picture shows; of more, those of a place count together.
const FIELDS: usize = 256;

/// Colours from the lowest to the highest value, between which others lie: dark to light, also for eyes that see no colours.
const COLORS: [[f64; 3]; 5] =
    [[68.0, 1.0, 84.0], [59.0, 82.0, 139.0], [33.0, 145.0, 140.0], [94.0, 201.0, 98.0], [253.0, 231.0, 37.0]];

/// Numbers over a plane.
#[derive(Clone, Debug)]
pub(super) struct Map {
    pub(super) title: String,
    pub(super) columns: usize,
    /// Row by row, from the lowest.
    pub(super) values: Vec<f64>,
    /// What is along each axis, and from where to where.
    pub(super) x: (String, [f64; 2]),
    pub(super) y: (String, [f64; 2]),
    /// Colours go like this power of the values: one below 1 shows what there is little of.
    pub(super) power: f64,
}

/// Values of a grid that stand column after column, row after row.
pub(super) fn transposed(values: &[i64], [columns, rows]: [usize; 2]) -> impl Iterator<Item = i64> {
    (0..rows).flat_map(move |row| (0..columns).map(move |column| values[column * rows + row]))
}

impl Map {
    /// Writes it in the format that the name ends in: .npy for numbers, .svg or .png for pictures.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn write(&self, path: &Path) -> Result<(), RunError> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("npy") => {
                let unwritten = |error: NpyWriteError| RunError::Output(error.to_string());
                let rows = self.values.len() / self.columns;
                let mut file = NpyWriter::create(path, rows, self.columns).map_err(unwritten)?;
                file.write_rows(0, &self.values).map_err(unwritten)?;
                file.finish().map_err(unwritten)
            }
            Some("svg") => output::write(path, &self.drawing().svg()),
            _ => {
                let failed = |error: std::io::Error| RunError::Failed(error.to_string());
                let bytes = self.drawing().png().map_err(failed)?;
                output::fill(path, |out| out.write_all(&bytes))
            }
        }
    }

    /// As areas of colour.
    fn drawing(&self) -> Drawing {
        let rows = self.values.len() / self.columns;
        let (columns, shown_rows) = (self.columns.min(FIELDS), rows.min(FIELDS));
        let part = |at: usize, shown: usize, all: usize| at * all / shown..(at + 1) * all / shown;
        let mean = |column: usize, row: usize| {
            let (across, up) = (part(column, columns, self.columns), part(row, shown_rows, rows));
            let count = (across.len() * up.len()) as f64;
            up.map(|row| self.values[row * self.columns..][across.clone()].iter().sum::<f64>()).sum::<f64>()
                / count
        };
        let fields: Vec<f64> = (0..shown_rows)
            .flat_map(|row| (0..columns).map(move |column| (column, row)))
            .map(|(c, r)| mean(c, r))
            .collect();
        let lowest = fields.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = fields.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut drawing = Drawing {
            title: self.title.clone(),
            width: WIDTH + 2.0 * MARGIN,
            height: HEIGHT + 2.0 * MARGIN,
            shapes: Vec::new(),
        };
        for (at, value) in fields.iter().enumerate() {
            let (column, row) = (at % columns, at / columns);
            let x = |column: usize| MARGIN + WIDTH * column as f64 / columns as f64;
            let y = |row: usize| MARGIN + HEIGHT * (1.0 - row as f64 / shown_rows as f64);
            let points = vec![
                (x(column), y(row)),
                (x(column + 1), y(row)),
                (x(column + 1), y(row + 1)),
                (x(column), y(row + 1)),
            ];
            let part = ((value - lowest) / (highest - lowest).max(f64::MIN_POSITIVE)).powf(self.power);
            drawing.shapes.push(Shape::Area { points, color: color(part) });
        }
        self.write_words(&mut drawing, lowest, highest);
        drawing
    }

    fn write_words(&self, drawing: &mut Drawing, lowest: f64, highest: f64) {
        let (right, bottom) = (MARGIN + WIDTH, MARGIN + HEIGHT);
        let ((along_x, [left_end, right_end]), (along_y, [lower, upper])) = (&self.x, &self.y);
        let number = |value: &f64| format!("{value:.4}");
        let words = [
            ((MARGIN, MARGIN / 2.0), format!("{} ({lowest:.4} to {highest:.4})", self.title), Anchor::Start),
            ((MARGIN, bottom + 20.0), number(left_end), Anchor::Start),
            ((right, bottom + 20.0), number(right_end), Anchor::End),
            ((MARGIN + WIDTH / 2.0, bottom + 20.0), along_x.clone(), Anchor::Middle),
            ((MARGIN - 6.0, bottom), number(lower), Anchor::End),
            ((MARGIN - 6.0, MARGIN + 12.0), number(upper), Anchor::End),
        ];
        for (at, text, anchor) in words {
            drawing.shapes.push(Shape::Text { at, text, anchor, size: 12.0, is_upwards: false });
        }
        drawing.shapes.push(Shape::Text {
            at: (MARGIN - 20.0, MARGIN + HEIGHT / 2.0),
            text: along_y.clone(),
            anchor: Anchor::Middle,
            size: 12.0,
            is_upwards: true,
        });
    }
}

/// The colour of a value, 0 for the lowest and 1 for the highest.
fn color(part: f64) -> Color {
    let at = part.clamp(0.0, 1.0) * (COLORS.len() - 1) as f64;
    let below = (at as usize).min(COLORS.len() - 2);
    let from = at - below as f64;
    let mixed = |channel: usize| (1.0 - from) * COLORS[below][channel] + from * COLORS[below + 1][channel];
    Color([0, 1, 2].map(|channel| mixed(channel).round() as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_have_the_colours_of_their_values_and_large_ones_are_made_smaller() {
        assert_eq!(
            (color(0.0), color(1.0), color(0.25)),
            (Color([68, 1, 84]), Color([253, 231, 37]), Color([59, 82, 139]))
        );
        let values: Vec<f64> = (0..1024 * 3).map(|at| (at / 1024) as f64).collect();
        let map = Map {
            title: "t".into(),
            columns: 1024,
            values,
            x: ("x".into(), [0.0, 1.0]),
            y: ("y".into(), [0.0, 1.0]),
            power: 1.0,
        };
        let drawing = map.drawing();
        let areas: Vec<Color> = drawing
            .shapes
            .iter()
            .filter_map(|shape| if let Shape::Area { color, .. } = shape { Some(*color) } else { None })
            .collect();
        assert_eq!((areas.len(), areas[0], areas[2 * 256]), (3 * 256, color(0.0), color(1.0)));
        assert_eq!(transposed(&[1, 2, 3, 4, 5, 6], [3, 2]).collect::<Vec<_>>(), [1, 3, 5, 2, 4, 6]);
    }
}
