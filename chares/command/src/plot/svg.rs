//! Pictures as SVG.

use super::drawing::{Anchor, Color, Drawing, INK, Shape};
use std::fmt::Write as _;

/// The document.
pub(super) fn written(drawing: &Drawing) -> String {
    let Drawing { title, width, height, shapes } = drawing;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" font-family=\"sans-serif\">\n<title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        escaped(title)
    );
    shapes.iter().for_each(|shape| append(shape, &mut svg));
    svg + "</svg>\n"
}

fn append(shape: &Shape, svg: &mut String) {
    // Writing to a string cannot fail.
    let _ = match shape {
        Shape::Line { points, color, width, is_dashed } => {
            let dashes = if *is_dashed { " stroke-dasharray=\"6 4\"" } else { "" };
            writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"{dashes}/>",
                listed(points),
                hex(*color)
            )
        }
        Shape::Area { points, color } => {
            writeln!(svg, "<polygon points=\"{}\" fill=\"{}\"/>", listed(points), hex(*color))
        }
        Shape::Dot { at: (x, y), radius, color } => {
            writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{}\"/>", hex(*color))
        }
        Shape::Text { at: (x, y), text, anchor, size, is_upwards } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let turn =
                if *is_upwards { format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"") } else { String::new() };
            writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\" fill=\"{}\"{turn}>{}</text>",
                hex(INK),
                escaped(text)
            )
        }
    };
}

fn listed(points: &[(f64, f64)]) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    points.join(" ")
}

fn hex(Color([red, green, blue]): Color) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Names come from users' files; what an XML document may not hold at all is left out.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '"' => escaped += "&quot;",
            letter if letter.is_control() => {}
            letter => escaped.push(letter),
        }
    }
    escaped
}
