//! Line charts: series of points over linear or logarithmic axes, with a legend, as SVG and PNG.
//!
//! A [`Chart`] says what is shown. It becomes a [`Drawing`], a list of lines, dots and words at places in pixels, which
//! any format can be made of. Crates for charts write words into a PNG only with a font of the system's, or with one
//! that would have to be shipped.
//!
//! ```
//! use command::plot::{Axis, Chart, Scale, Series};
//!
//! let chart = Chart {
//!     title: "Speedup".into(),
//!     x: Axis::new("equivalents", Scale::Linear),
//!     y: Axis::new("speedup", Scale::Linear),
//!     series: vec![
//!         Series::ideal("ideal", vec![(0.0, 0.0), (4.0, 4.0)]),
//!         Series::measured("cannon", vec![(1.0, 1.0), (2.0, 1.9), (4.0, 3.7)]),
//!     ],
//! };
//! assert!(chart.to_svg().starts_with("<svg "));
//! ```

mod axis;
mod drawing;
mod png;
mod svg;

pub use axis::{Axis, Scale};
pub use drawing::{Anchor, Color, Drawing, Shape};

pub(crate) use axis::Span;
use drawing::{GREY, INK, LIGHT};
pub(crate) use svg::escaped;

/// A line chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// In the order of the legend.
    pub series: Vec<Series>,
}

/// Points that belong together, joined by a line in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// Those that an axis cannot show (not finite, or not positive on a logarithmic one) are left out.
    pub points: Vec<(f64, f64)>,
    /// What kind of points.
    pub style: Style,
}

/// How a series looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line in a colour of its own, with a dot for each point.
    Measured,
    /// A dashed line in a colour of its own, with a dot for each point: figures of another time or place, or
    /// predictions.
    Other,
    /// A thin grey line: what there is to compare with.
    Ideal,
}

impl Series {
    /// What was measured.
    #[must_use]
    pub fn measured(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, style: Style::Measured }
    }

    /// What was predicted, or measured at another time or place.
    #[must_use]
    pub fn other(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, style: Style::Other }
    }

    /// What would be ideal.
    #[must_use]
    pub fn ideal(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, style: Style::Ideal }
    }
}

const WIDTH: f64 = 900.0;
const HEIGHT_MIN: f64 = 540.0;
/// Around the field where the lines are; the legend is on its right.
const LEFT: f64 = 84.0;
const RIGHT: f64 = 250.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 66.0;
const LEGEND_ROW: f64 = 20.0;

/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito, 2008).
const COLORS: [Color; 7] = [
    Color([0x00, 0x72, 0xb2]),
    Color([0xd5, 0x5e, 0x00]),
    Color([0x00, 0x9e, 0x73]),
    Color([0xcc, 0x79, 0xa7]),
    Color([0xe6, 0x9f, 0x00]),
    Color([0x56, 0xb4, 0xe9]),
    Color([0x00, 0x00, 0x00]),
];

impl Chart {
    /// As an SVG document of about 900 x 540 pixels.
    #[must_use]
    pub fn to_svg(&self) -> String {
        svg::written(&self.drawing())
    }

    /// As a PNG file of about 1800 x 1080 pixels, for where SVG is not shown. Letters that Latin-1 does not have become
    /// question marks.
    ///
    /// # Errors
    /// If the encoder fails, which it has no reason to.
    pub fn to_png(&self) -> std::io::Result<Vec<u8>> {
        self.drawing().png()
    }

    /// As lines, dots and words.
    #[must_use]
    pub fn drawing(&self) -> Drawing {
        let height = HEIGHT_MIN.max(TOP + BOTTOM + LEGEND_ROW * self.series.len() as f64);
        let field = Field {
            x: Span::of(&self.x, self.coordinates(|(x, _)| x), (LEFT, WIDTH - RIGHT)),
            y: Span::of(&self.y, self.coordinates(|(_, y)| y), (height - BOTTOM, TOP)),
        };
        let mut drawing = Drawing { title: self.title.clone(), width: WIDTH, height, shapes: Vec::new() };
        field.draw_grid(self, &mut drawing);
        let mut colored = 0;
        for (row, series) in self.series.iter().enumerate() {
            let color = if series.style == Style::Ideal {
                GREY
            } else {
                colored += 1;
                COLORS[(colored - 1) % COLORS.len()]
            };
            field.draw_series(series, color, &mut drawing);
            draw_legend(series, color, TOP + LEGEND_ROW * (row as f64 + 0.5), &mut drawing);
        }
        drawing
    }

    fn coordinates(&self, of: impl Fn((f64, f64)) -> f64 + Copy) -> impl Iterator<Item = f64> {
        self.series.iter().flat_map(move |series| series.points.iter().map(move |&point| of(point)))
    }
}

/// Where the lines are.
struct Field {
    x: Span,
    y: Span,
}

impl Field {
    fn draw_grid(&self, chart: &Chart, drawing: &mut Drawing) {
        let ((left, right), (bottom, top)) = (self.x.pixels(), self.y.pixels());
        for (at, label) in self.x.ticks() {
            drawing.line([(at, bottom), (at, top)], LIGHT, 1.0);
            drawing.text((at, bottom + 20.0), label, Anchor::Middle);
        }
        for (at, label) in self.y.ticks() {
            drawing.line([(left, at), (right, at)], LIGHT, 1.0);
            drawing.text((left - 8.0, at + 4.0), label, Anchor::End);
        }
        drawing.line([(left, top), (left, bottom)], INK, 1.0);
        drawing.line([(left, bottom), (right, bottom)], INK, 1.0);
        drawing.shapes.push(Shape::Text {
            at: (left, TOP / 2.0 + 4.0),
            text: chart.title.clone(),
            anchor: Anchor::Start,
            size: 16.0,
            is_upwards: false,
        });
        drawing.text(((left + right) / 2.0, bottom + 46.0), chart.x.label.clone(), Anchor::Middle);
        drawing.shapes.push(Shape::Text {
            at: (20.0, (top + bottom) / 2.0),
            text: chart.y.label.clone(),
            anchor: Anchor::Middle,
            size: 12.0,
            is_upwards: true,
        });
    }

    fn draw_series(&self, series: &Series, color: Color, drawing: &mut Drawing) {
        let place = |&(x, y): &(f64, f64)| Some((self.x.place(x)?, self.y.place(y)?));
        let places: Vec<(f64, f64)> = series.points.iter().filter_map(place).collect();
        if places.len() > 1 {
            drawing.shapes.push(joined(places.clone(), series.style, color));
        }
        if series.style != Style::Ideal {
            drawing.shapes.extend(places.into_iter().map(|at| Shape::Dot { at, radius: 3.0, color }));
        }
    }
}

fn joined(points: Vec<(f64, f64)>, style: Style, color: Color) -> Shape {
    let width = if style == Style::Ideal { 1.0 } else { 1.75 };
    Shape::Line { points, color, width, is_dashed: style == Style::Other }
}

fn draw_legend(series: &Series, color: Color, y: f64, drawing: &mut Drawing) {
    let left = WIDTH - RIGHT + 20.0;
    drawing.shapes.push(joined(vec![(left, y), (left + 26.0, y)], series.style, color));
    if series.style != Style::Ideal {
        drawing.shapes.push(Shape::Dot { at: (left + 13.0, y), radius: 3.0, color });
    }
    drawing.text((left + 34.0, y + 4.0), series.name.clone(), Anchor::Start);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(scale: Scale, points: Vec<(f64, f64)>) -> Chart {
        Chart {
            title: "a < b & c".into(),
            x: Axis::new("x", scale),
            y: Axis::new("y", Scale::Linear),
            series: vec![
                Series::ideal("ideal", vec![(1.0, 0.0), (4.0, 8.0)]),
                Series::measured("one", points.clone()),
                Series::other("other", points),
            ],
        }
    }

    fn dots(drawing: &Drawing) -> Vec<(f64, f64)> {
        let dot = |shape: &Shape| match shape {
            Shape::Dot { at, .. } if at.0 < WIDTH - RIGHT + 1.0 => Some(*at),
            _ => None,
        };
        drawing.shapes.iter().filter_map(dot).collect()
    }

    #[test]
    fn points_lie_in_the_field_in_their_proportions() {
        let drawing = chart(Scale::Linear, vec![(1.0, 2.0), (2.0, 4.0), (4.0, 8.0)]).drawing();
        let dots = dots(&drawing);
        assert_eq!(dots.len(), 6, "two series of three");
        assert!(dots.iter().all(|(x, y)| (LEFT..=WIDTH - RIGHT).contains(x) && (TOP..).contains(y)));
        let [a, b, c] = [dots[0], dots[1], dots[2]];
        assert!(
            ((c.0 - b.0) / (b.0 - a.0) - 2.0).abs() < 1e-9 && ((b.1 - c.1) / (a.1 - b.1) - 2.0).abs() < 1e-9
        );
    }

    #[test]
    fn on_a_logarithmic_axis_equal_ratios_are_equally_long() {
        let drawing = chart(Scale::Log, vec![(1.0, 1.0), (10.0, 1.0), (100.0, 1.0)]).drawing();
        let dots = dots(&drawing);
        assert!(((dots[2].0 - dots[1].0) - (dots[1].0 - dots[0].0)).abs() < 1e-9, "{dots:?}");
    }

    #[test]
    fn what_cannot_be_shown_is_left_out_and_nothing_breaks() {
        let points = vec![(f64::NAN, 1.0), (0.0, 1.0), (-3.0, 1.0), (2.0, f64::INFINITY), (3.0, 1.0)];
        assert_eq!(dots(&chart(Scale::Log, points).drawing()).len(), 2, "one point of each series is left");
        for scale in [Scale::Linear, Scale::Log, Scale::Bytes] {
            let empty = Chart { series: Vec::new(), ..chart(scale, Vec::new()) };
            let svg = empty.to_svg();
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            let one = chart(scale, vec![(7.0, 7.0)]).to_svg();
            assert!(!one.contains("NaN") && !one.contains("inf"), "{one}");
        }
    }

    #[test]
    fn an_svg_has_every_name_escaped_and_every_series() {
        let svg = chart(Scale::Linear, vec![(1.0, 2.0), (4.0, 8.0)]).to_svg();
        for part in ["a &lt; b &amp; c", ">ideal</text>", ">one</text>", ">other</text>", "stroke-dasharray"]
        {
            assert!(svg.contains(part), "{part} is not in {svg}");
        }
        assert_eq!(svg.matches('<').count(), svg.matches('>').count());
    }

    #[test]
    fn a_long_legend_has_room() {
        let series = (0..60).map(|n| Series::measured(format!("series {n}"), vec![(1.0, 1.0)])).collect();
        let drawing = Chart { series, ..chart(Scale::Linear, Vec::new()) }.drawing();
        let lowest = drawing.shapes.iter().filter_map(|shape| match shape {
            Shape::Text { at, text, .. } if text.starts_with("series") => Some(at.1),
            _ => None,
        });
        assert!(lowest.fold(0.0, f64::max) < drawing.height);
    }
}
