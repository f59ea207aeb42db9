//! A recording as a picture: the three bars of each PE (the metacomputer report of 1995, "load window") - computation
//! over time by state, cumulative idle time, entries processed - over a time axis with the phases of the run.

use super::series::{NodeSeries, PeSeries, Series};
use crate::plot::{Anchor, Color, Drawing, Shape, Span};

const WIDTH: f64 = 1200.0;
const HEAD: f64 = 84.0;
const NODE: f64 = 26.0;
const ROW: f64 = 40.0;
/// Height of the bars.
const BAR: f64 = 30.0;
const FOOT: f64 = 56.0;
/// Where the bars begin and end, from left to right.
const STRIP: (f64, f64) = (70.0, 750.0);
const IDLE: (f64, f64) = (780.0, 900.0);
const ENTRIES: (f64, f64) = (990.0, 1110.0);
/// Columns of the computation bar.
const COLUMNS: usize = 340;

const COMPUTE: Color = Color([0x2e, 0x8b, 0x57]);
const RUNTIME: Color = Color([0xa0, 0x3c, 0x8c]);
const INIT: Color = Color([0x4a, 0x7f, 0xd0]);
const NO_CORE: Color = Color([0xc0, 0x39, 0x2b]);
const THROTTLED: Color = Color([0xe6, 0x7e, 0x22]);
const IDLING: Color = Color([0xf2, 0xdf, 0xa8]);
const COUNT: Color = Color([0x2a, 0x93, 0xa8]);
const EMPTY: Color = Color([0xee, 0xee, 0xee]);

/// The picture.
pub(crate) fn drawing(series: &Series<'_>) -> Drawing {
    let rows: usize = series.nodes.iter().map(|node| node.pes.len()).sum();
    let height = HEAD + NODE * (series.nodes.len() as f64 + 1.0) + ROW * rows as f64 + FOOT;
    let title = format!("{} {}", series.run.app, series.run.run_id);
    let mut drawing = Drawing { title, width: WIDTH, height, shapes: Vec::new() };
    draw_head(series, &mut drawing);
    let most = series.nodes.iter().flat_map(|node| &node.pes).map(entries).max().unwrap_or(0);
    let mut top = HEAD;
    draw_phases(series, top, &mut drawing);
    top += NODE;
    for node in &series.nodes {
        draw_node(series, node, top + 17.0, &mut drawing);
        top += NODE;
        for pe in &node.pes {
            draw_pe(series, pe, most, top, &mut drawing);
            top += ROW;
        }
    }
    draw_axis(series, top, &mut drawing);
    drawing
}

fn draw_head(series: &Series<'_>, drawing: &mut Drawing) {
    let pes: usize = series.nodes.iter().map(|node| node.pes.len()).sum();
    let end = match series.ended {
        Some((0, summary)) => summary.to_string(),
        Some((code, summary)) => format!("failed with code {code}: {summary}"),
        None => "the recording breaks off".into(),
    };
    let what = format!("{}: {pes} PEs on {} nodes, {end}", drawing.title, series.nodes.len());
    words(drawing, (16.0, 26.0), &what, Anchor::Start, 16.0);
    let mut left = STRIP.0;
    let legend = [
        (COMPUTE, "computing"),
        (RUNTIME, "runtime"),
        (INIT, "initialising"),
        (NO_CORE, "no core"),
        (THROTTLED, "throttled"),
        (IDLING, "idle"),
    ];
    for (color, name) in legend {
        bar(drawing, (left, left + 14.0), 44.0, 14.0, color);
        words(drawing, (left + 20.0, 56.0), name, Anchor::Start, 12.0);
        left += 110.0;
    }
    let title = HEAD - 10.0;
    words(drawing, (16.0, title), "PE", Anchor::Start, 12.0);
    words(drawing, (STRIP.0, title), "computation over time", Anchor::Start, 12.0);
    words(drawing, (IDLE.0, title), "idle, of its life", Anchor::Start, 12.0);
    words(drawing, (ENTRIES.0, title), "entry methods run", Anchor::Start, 12.0);
}

/// A row with the phases of the application, named where there is room.
fn draw_phases(series: &Series<'_>, top: f64, drawing: &mut Drawing) {
    let shades = [Color([0xc8, 0xd6, 0xe5]), Color([0xdd, 0xe6, 0xee])];
    for (phase, shade) in series.phases.iter().zip(shades.into_iter().cycle()) {
        let (from, to) = (place(series, phase.from), place(series, phase.to));
        bar(drawing, (from, to), top + 2.0, 18.0, shade);
        let room = ((to - from - 8.0) / 7.0).max(0.0) as usize;
        let name = phase.newest().name.as_str();
        if name.chars().count() <= room {
            words(drawing, (from + 4.0, top + 15.0), name, Anchor::Start, 12.0);
        }
    }
}

fn draw_node(series: &Series<'_>, node: &NodeSeries<'_>, base: f64, drawing: &mut Drawing) {
    let host = if node.host.is_empty() { String::new() } else { format!(" on {}", node.host) };
    let lost = series.lost.iter().find(|(_, lost, _)| *lost == node.node);
    let lost =
        lost.map_or(String::new(), |(at, _, reason)| format!(", lost at {:.1} s: {reason}", seconds(*at)));
    words(drawing, (16.0, base), &format!("{}{host}{lost}", node.name), Anchor::Start, 13.0);
}

fn draw_pe(series: &Series<'_>, pe: &PeSeries<'_>, most: u64, top: f64, drawing: &mut Drawing) {
    let middle = top + BAR / 2.0 + 4.0;
    words(drawing, (40.0, middle), &pe.pe.to_string(), Anchor::End, 12.0);
    let columns = columns(series, pe);
    // The highest first: each covers the lower part of the one before.
    let known = |shares: &[f64; 6]| if shares.iter().sum::<f64>() > 0.0 { 1.0 } else { 0.0 };
    draw_area(&columns, known, top, IDLING, drawing);
    for (count, color) in [(5, THROTTLED), (4, NO_CORE), (3, INIT), (2, RUNTIME), (1, COMPUTE)] {
        draw_area(&columns, |shares| shares[..count].iter().sum(), top, color, drawing);
    }
    let Some(last) = pe.spans.last() else { return };
    let life = super::series::Times::of(last.last);
    let idle = life.shares()[5];
    part(drawing, IDLE, idle, top, IDLING);
    let text = format!("{:.0} %, {:.1} s", 100.0 * idle, life.idle as f64 / 1e9);
    words(drawing, (IDLE.1 + 6.0, middle), &text, Anchor::Start, 12.0);
    let share = if most == 0 { 0.0 } else { entries(pe) as f64 / most as f64 };
    part(drawing, ENTRIES, share, top, COUNT);
    words(drawing, (ENTRIES.1 + 6.0, middle), &entries(pe).to_string(), Anchor::Start, 12.0);
}

/// A step line over the columns, filled down to its foot.
fn draw_area(
    columns: &[[f64; 6]],
    level: impl Fn(&[f64; 6]) -> f64,
    top: f64,
    color: Color,
    drawing: &mut Drawing,
) {
    let width = (STRIP.1 - STRIP.0) / columns.len() as f64;
    let foot = top + BAR;
    let mut points = vec![(STRIP.0, foot)];
    let mut height = foot;
    for (number, shares) in columns.iter().enumerate() {
        let next = foot - level(shares).clamp(0.0, 1.0) * BAR;
        if next != height {
            let x = STRIP.0 + number as f64 * width;
            points.extend([(x, height), (x, next)]);
            height = next;
        }
    }
    points.extend([(STRIP.1, height), (STRIP.1, foot)]);
    if points.len() > 3 {
        drawing.shapes.push(Shape::Area { points, color });
    }
}

fn draw_axis(series: &Series<'_>, top: f64, drawing: &mut Drawing) {
    for (at, label) in Span::up_to(seconds(series.end_ns), STRIP).ticks() {
        let points = vec![(at, top), (at, top + 6.0)];
        drawing.shapes.push(Shape::Line { points, color: COUNT, width: 1.0, is_dashed: false });
        words(drawing, (at, top + 20.0), &label, Anchor::Middle, 12.0);
    }
    words(drawing, ((STRIP.0 + STRIP.1) / 2.0, top + 42.0), "seconds since the start", Anchor::Middle, 12.0);
}

/// The states of a PE in each column of the computation bar, as parts of what it did then.
fn columns(series: &Series<'_>, pe: &PeSeries<'_>) -> Vec<[f64; 6]> {
    let column = series.end_ns as f64 / COLUMNS as f64;
    let mut sums = vec![[0.0; 6]; COLUMNS];
    for span in &pe.spans {
        let length = (span.to - span.from) as f64;
        if length <= 0.0 {
            continue;
        }
        let shares = span.spent.shares();
        let (from, to) = (span.from as f64 / column, span.to as f64 / column);
        let first = from.max(0.0) as usize;
        let covered = sums.iter_mut().enumerate().take(to.ceil().max(0.0) as usize).skip(first);
        for (number, sum) in covered {
            // What of the span lies in this column.
            let part = to.min(number as f64 + 1.0) - from.max(number as f64);
            sum.iter_mut().zip(shares).for_each(|(sum, share)| *sum += part * share);
        }
    }
    for sum in &mut sums {
        let total: f64 = sum.iter().sum();
        if total > 0.0 {
            *sum = sum.map(|part| part / total);
        }
    }
    sums
}

fn entries(pe: &PeSeries<'_>) -> u64 {
    pe.spans.last().map_or(0, |span| span.last.entries)
}

/// A bar that is filled to a share.
fn part(drawing: &mut Drawing, (left, right): (f64, f64), share: f64, top: f64, color: Color) {
    bar(drawing, (left, right), top, BAR, EMPTY);
    bar(drawing, (left, left + (right - left) * share.clamp(0.0, 1.0)), top, BAR, color);
}

fn bar(drawing: &mut Drawing, (left, right): (f64, f64), top: f64, height: f64, color: Color) {
    let points = vec![(left, top), (right, top), (right, top + height), (left, top + height)];
    drawing.shapes.push(Shape::Area { points, color });
}

fn words(drawing: &mut Drawing, at: (f64, f64), text: &str, anchor: Anchor, size: f64) {
    drawing.shapes.push(Shape::Text { at, text: text.into(), anchor, size, is_upwards: false });
}

fn place(series: &Series<'_>, at: i64) -> f64 {
    STRIP.0 + (at as f64 / series.end_ns as f64).clamp(0.0, 1.0) * (STRIP.1 - STRIP.0)
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
