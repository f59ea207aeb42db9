//! Pictures as PNG, for where SVG is not shown. Drawn without system fonts, so that they look alike everywhere.

use super::drawing::{Anchor, Color, Drawing, INK, Shape};
use embedded_graphics::Pixel;
use embedded_graphics::mono_font::MonoTextStyle;
use embedded_graphics::mono_font::iso_8859_1::FONT_10X20;
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::*;
use embedded_graphics::text::{Alignment, Text};
use std::convert::Infallible;

/// Pixels for each of the drawing's.
const SCALE: f64 = 2.0;
/// Lines are drawn with so many pixels in each direction for one, which makes their edges smooth.
const FINE: usize = 3;
/// No picture has longer sides, in pixels.
const SIDE_MAX: f64 = 8192.0;
/// Length of a dash, in the drawing's pixels, and of the gap behind it.
const DASH: f64 = 6.0;
const GAP: f64 = 4.0;

/// The file.
pub(super) fn written(drawing: &Drawing) -> Result<Vec<u8>, png::EncodingError> {
    let side = |length: f64| (length * SCALE).clamp(1.0, SIDE_MAX) as usize;
    let (width, height) = (side(drawing.width), side(drawing.height));
    let mut fine = Canvas::new(width * FINE, height * FINE);
    drawing.shapes.iter().for_each(|shape| draw_figure(shape, &mut fine));
    let mut canvas = fine.coarse();
    drawing.shapes.iter().for_each(|shape| draw_words(shape, &mut canvas));
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.add_text_chunk("Title".into(), latin(&drawing.title))?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(canvas.pixels.as_flattened())?;
    writer.finish()?;
    Ok(bytes)
}

/// Pixels, row by row.
struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 3]>,
}

impl Canvas {
    fn new(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![[255; 3]; width * height] }
    }

    /// A filled circle.
    fn draw_dot(&mut self, (x, y): (f64, f64), radius: f64, Color(color): Color) {
        let range = |middle: f64, limit: usize| {
            let bound = |at: f64| at.clamp(0.0, limit as f64) as usize;
            bound((middle - radius).floor())..bound((middle + radius).ceil() + 1.0)
        };
        for row in range(y, self.height) {
            for column in range(x, self.width) {
                if (column as f64 + 0.5 - x).hypot(row as f64 + 0.5 - y) <= radius {
                    self.pixels[row * self.width + column] = color;
                }
            }
        }
    }

    /// A filled polygon: in each row between the first edge that is crossed and the second, and so on.
    fn draw_area(&mut self, corners: &[(f64, f64)], Color(color): Color) {
        let bound = |at: f64, limit: usize| at.clamp(0.0, limit as f64) as usize;
        let ys = || corners.iter().map(|(_, y)| *y);
        let top = bound(ys().fold(f64::INFINITY, f64::min), self.height);
        let bottom = bound(ys().fold(0.0, f64::max).ceil(), self.height);
        for row in top..bottom {
            let y = row as f64 + 0.5;
            let edges = corners.iter().zip(corners.iter().cycle().skip(1));
            let crossed = edges.filter(|((_, y0), (_, y1))| (*y0 <= y) != (*y1 <= y));
            let mut xs: Vec<f64> =
                crossed.map(|((x0, y0), (x1, y1))| x0 + (y - y0) / (y1 - y0) * (x1 - x0)).collect();
            xs.sort_by(f64::total_cmp);
            for pair in xs.chunks_exact(2) {
                let (from, to) = (bound(pair[0].round(), self.width), bound(pair[1].round(), self.width));
                self.pixels[row * self.width + from..row * self.width + to].fill(color);
            }
        }
    }

    /// A line with round ends: a dot at each pixel's length.
    fn draw_line(&mut self, [(x0, y0), (x1, y1)]: [(f64, f64); 2], radius: f64, color: Color) {
        let steps = (x1 - x0).hypot(y1 - y0).ceil().clamp(1.0, 1e5) as u32;
        for step in 0..=steps {
            let part = f64::from(step) / f64::from(steps);
            self.draw_dot((x0 + part * (x1 - x0), y0 + part * (y1 - y0)), radius, color);
        }
    }

    /// The mean of each `FINE` x `FINE` pixels as one.
    fn coarse(&self) -> Self {
        let mut coarse = Self::new(self.width / FINE, self.height / FINE);
        for (at, pixel) in coarse.pixels.iter_mut().enumerate() {
            let (x, y) = (at % coarse.width * FINE, at / coarse.width * FINE);
            let rows = (y..y + FINE).map(|y| &self.pixels[y * self.width + x..][..FINE]);
            let sum = rows.flatten().fold([0u32; 3], |sum, fine| {
                [0, 1, 2].map(|channel| sum[channel] + u32::from(fine[channel]))
            });
            *pixel = sum.map(|sum| (sum / (FINE * FINE) as u32) as u8);
        }
        coarse
    }
}

impl OriginDimensions for Canvas {
    fn size(&self) -> Size {
        Size::new(self.width as u32, self.height as u32)
    }
}

impl DrawTarget for Canvas {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<Rgb888>>>(&mut self, pixels: I) -> Result<(), Infallible> {
        for Pixel(Point { x, y }, color) in pixels {
            let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { continue };
            if x < self.width && y < self.height {
                self.pixels[y * self.width + x] = [color.r(), color.g(), color.b()];
            }
        }
        Ok(())
    }
}

/// The same canvas turned by a quarter, for words that are read upwards.
struct Upwards<'a>(&'a mut Canvas);

impl OriginDimensions for Upwards<'_> {
    fn size(&self) -> Size {
        Size::new(self.0.height as u32, self.0.width as u32)
    }
}

impl DrawTarget for Upwards<'_> {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<Rgb888>>>(&mut self, pixels: I) -> Result<(), Infallible> {
        let turned = |Pixel(Point { x, y }, color): Pixel<Rgb888>| Pixel(Point::new(y, -x), color);
        self.0.draw_iter(pixels.into_iter().map(turned))
    }
}

fn draw_figure(shape: &Shape, canvas: &mut Canvas) {
    let scale = SCALE * FINE as f64;
    let fine = |(x, y): (f64, f64)| (x * scale, y * scale);
    match shape {
        Shape::Line { points, color, width, is_dashed } => {
            let pieces = if *is_dashed { dashes(points) } else { pieces(points).collect() };
            for [from, to] in pieces {
                canvas.draw_line([fine(from), fine(to)], width * scale / 2.0, *color);
            }
        }
        Shape::Area { points, color } => {
            canvas.draw_area(&points.iter().map(|&point| fine(point)).collect::<Vec<_>>(), *color);
        }
        Shape::Dot { at, radius, color } => canvas.draw_dot(fine(*at), radius * scale, *color),
        Shape::Text { .. } => {}
    }
}

fn draw_words(shape: &Shape, canvas: &mut Canvas) {
    let Shape::Text { at: (x, y), text, anchor, size, is_upwards } = shape else { return };
    let alignment = match anchor {
        Anchor::Start => Alignment::Left,
        Anchor::Middle => Alignment::Center,
        Anchor::End => Alignment::Right,
    };
    let Color([red, green, blue]) = INK;
    let style = MonoTextStyle::new(&FONT_10X20, Rgb888::new(red, green, blue));
    let (x, y) = ((x * SCALE) as i32, (y * SCALE) as i32);
    let text = latin(text);
    // There is one size of letters: large ones are drawn twice, which makes them bold.
    for shift in 0..if *size > 14.0 { 2 } else { 1 } {
        let Ok(_) = if *is_upwards {
            Text::with_alignment(&text, Point::new(-y, x + shift), style, alignment)
                .draw(&mut Upwards(canvas))
        } else {
            Text::with_alignment(&text, Point::new(x + shift, y), style, alignment).draw(canvas)
        };
    }
}

/// The text with what the font has no letter for as question marks.
fn latin(text: &str) -> String {
    let is_known = |letter: char| matches!(letter, ' '..='~' | '\u{a0}'..='\u{ff}');
    text.chars().map(|letter| if is_known(letter) { letter } else { '?' }).collect()
}

fn pieces(points: &[(f64, f64)]) -> impl Iterator<Item = [(f64, f64); 2]> {
    points.windows(2).map(|pair| [pair[0], pair[1]])
}

/// The dashes of a line through these points; each piece begins with one.
fn dashes(points: &[(f64, f64)]) -> Vec<[(f64, f64); 2]> {
    let mut dashes = Vec::new();
    for [(x0, y0), (x1, y1)] in pieces(points) {
        let length = (x1 - x0).hypot(y1 - y0);
        let at = |along: f64| {
            let part = (along / length).min(1.0);
            (x0 + part * (x1 - x0), y0 + part * (y1 - y0))
        };
        let starts = (0u32..).map(|dash| f64::from(dash) * (DASH + GAP)).take_while(|start| *start < length);
        dashes.extend(starts.map(|start| [at(start), at(start + DASH)]));
    }
    dashes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Chart, Scale, Series};

    fn decoded(chart: &Chart) -> (u32, u32, Vec<u8>) {
        let bytes = written(&chart.drawing()).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        (info.width, info.height, pixels)
    }

    fn chart(series: Vec<Series>) -> Chart {
        Chart {
            title: "µ and 快".into(),
            x: Axis::new("x", Scale::Linear),
            y: Axis::new("y", Scale::Linear),
            series,
        }
    }

    #[test]
    fn a_picture_has_its_size_its_lines_its_dots_and_its_words() {
        let (width, height, empty) = decoded(&chart(Vec::new()));
        assert_eq!((width, height), (1800, 1080));
        let series = Series::measured("m", vec![(0.0, 0.0), (4.0, 4.0)]);
        let (.., measured) = decoded(&chart(vec![series]));
        let count = |pixels: &[u8], color: [u8; 3]| pixels.chunks(3).filter(|pixel| *pixel == color).count();
        let blue = [0x00, 0x72, 0xb2];
        assert_eq!(count(&empty, blue), 0);
        let line = count(&measured, blue);
        assert!((2000..8000).contains(&line), "a line of 1,500 pixels, 3 or 4 thick: {line}");
        assert!(count(&empty, [0x33; 3]) > 1000, "axes and words");
    }

    #[test]
    fn an_area_has_its_pixels_and_ends_at_the_edges_of_the_picture() {
        let mut canvas = Canvas::new(20, 10);
        let color = Color([1, 2, 3]);
        canvas.draw_area(&[(2.0, 2.0), (12.0, 2.0), (12.0, 8.0), (2.0, 8.0)], color);
        let count = |canvas: &Canvas| canvas.pixels.iter().filter(|pixel| **pixel == color.0).count();
        assert_eq!(count(&canvas), 60);
        canvas.draw_area(&[(-50.0, -50.0), (50.0, -50.0), (50.0, 50.0), (-50.0, 50.0)], color);
        assert_eq!(count(&canvas), 200);
        let mut triangle = Canvas::new(20, 10);
        triangle.draw_area(&[(0.0, 0.0), (20.0, 0.0), (0.0, 10.0)], color);
        assert_eq!(count(&triangle), 100);
    }

    #[test]
    fn dashes_cover_three_fifths_of_a_line_and_stay_on_it() {
        let dashes = dashes(&[(0.0, 0.0), (60.0, 80.0)]);
        assert_eq!((dashes.len(), dashes[0][0]), (10, (0.0, 0.0)));
        let (x, y) = dashes[9][1];
        assert!((x - 57.6).abs() < 1e-9 && (y - 76.8).abs() < 1e-9, "{x} {y}");
        assert!(self::dashes(&[(1.0, 1.0), (1.0, 1.0)]).is_empty());
    }
}
