//! Lines, areas, dots and words at places in pixels, counted from the upper left corner.

/// A picture, in the order in which its parts are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// What it shows, for those who do not see it.
    pub title: String,
    /// In pixels.
    pub width: f64,
    /// In pixels.
    pub height: f64,
    /// What is in it.
    pub shapes: Vec<Shape>,
}

/// A part of a picture; places and lengths are in pixels.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A line through some points.
    Line {
        /// At least two.
        points: Vec<(f64, f64)>,
        /// Its colour.
        color: Color,
        /// How thick it is.
        width: f64,
        /// Whether it has gaps.
        is_dashed: bool,
    },
    /// A filled polygon.
    Area {
        /// Its corners, at least three.
        points: Vec<(f64, f64)>,
        /// Its colour.
        color: Color,
    },
    /// A filled circle.
    Dot {
        /// Its middle.
        at: (f64, f64),
        /// Half of its width.
        radius: f64,
        /// Its colour.
        color: Color,
    },
    /// A line of words in dark grey.
    Text {
        /// Where it is anchored, on its base line.
        at: (f64, f64),
        /// What it says.
        text: String,
        /// Which part of it is at that place.
        anchor: Anchor,
        /// Height of the letters.
        size: f64,
        /// Whether it is read from bottom to top.
        is_upwards: bool,
    },
}

/// Which part of a text is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(pub [u8; 3]);

pub(super) const INK: Color = Color([0x33, 0x33, 0x33]);
pub(super) const GREY: Color = Color([0x88, 0x88, 0x88]);
pub(super) const LIGHT: Color = Color([0xdd, 0xdd, 0xdd]);

impl Drawing {
    /// The picture as an SVG document; the same picture gives the same text.
    #[must_use]
    pub fn svg(&self) -> String {
        super::svg::written(self)
    }

    /// The picture as a PNG file, with two pixels for one along each axis.
    ///
    /// # Errors
    /// If the encoder fails, which it has no reason to.
    pub fn png(&self) -> std::io::Result<Vec<u8>> {
        super::png::written(self).map_err(std::io::Error::other)
    }

    pub(super) fn line(&mut self, ends: [(f64, f64); 2], color: Color, width: f64) {
        self.shapes.push(Shape::Line { points: ends.to_vec(), color, width, is_dashed: false });
    }

    pub(super) fn text(&mut self, at: (f64, f64), text: String, anchor: Anchor) {
        self.shapes.push(Shape::Text { at, text, anchor, size: 12.0, is_upwards: false });
    }
}
