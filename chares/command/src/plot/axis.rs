//! From values to pixels: ranges that hold all points, and ticks at round numbers.

use chares::Size;

/// An axis of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it counts, with the unit.
    pub label: String,
    /// How.
    pub scale: Scale,
}

/// How values lie along an axis. Its range is that of the points, up to the next tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// In proportion, beginning at 0 unless something is below it.
    Linear,
    /// Equal ratios equally long; ticks at powers of ten.
    Log,
    /// Equal ratios equally long; ticks at powers of two with units of bytes.
    Bytes,
}

impl Axis {
    /// An axis.
    #[must_use]
    pub fn new(label: impl Into<String>, scale: Scale) -> Self {
        Self { label: label.into(), scale }
    }
}

/// About so many ticks an axis has.
const TICKS: f64 = 7.0;

/// An axis with its range, in values and in pixels.
pub(crate) struct Span {
    scale: Scale,
    /// On logarithmic axes, of the logarithms.
    range: (f64, f64),
    step: f64,
    pixels: (f64, f64),
}

impl Span {
    /// An axis for these values, from one pixel to another.
    pub(super) fn of(axis: &Axis, values: impl Iterator<Item = f64>, pixels: (f64, f64)) -> Self {
        let scale = axis.scale;
        let (mut low, mut high) = values
            .filter_map(|value| position(scale, value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)));
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if scale == Scale::Linear {
            low = low.min(0.0);
        }
        let mut step = match scale {
            Scale::Linear => round_step((high - low).max(f64::MIN_POSITIVE) / TICKS),
            // Powers of two: every second at least, so that labels have room.
            Scale::Bytes => (2.0 * ((high - low) / 2.0 / TICKS).ceil()).max(2.0),
            Scale::Log => ((high - low) / TICKS).ceil().max(1.0),
        };
        // Values that are equal up to rounding have no step of their own.
        if !step.is_normal() || low + step == low || high + step == high {
            step = high.abs().max(1.0);
        }
        (low, high) = ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step);
        if low == high {
            high += step;
        }
        Self { scale, range: (low, high), step, pixels }
    }

    /// A linear axis from 0 to `end`, which need not be at a tick.
    pub(crate) fn up_to(end: f64, pixels: (f64, f64)) -> Self {
        let end = if end.is_normal() && end > 0.0 { end } else { 1.0 };
        Self { scale: Scale::Linear, range: (0.0, end), step: round_step(end / TICKS), pixels }
    }

    /// Where it begins and ends.
    pub(super) fn pixels(&self) -> (f64, f64) {
        self.pixels
    }

    /// Where a value is; `None` if it cannot be shown.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        Some(self.pixel(position(self.scale, value)?))
    }

    fn pixel(&self, at: f64) -> f64 {
        let ((low, high), (first, last)) = (self.range, self.pixels);
        first + (at - low) / (high - low) * (last - first)
    }

    /// Where ticks are, and what they say.
    pub(crate) fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        let (low, high) = self.range;
        let count = ((high - low) / self.step + 1e-9).floor();
        let ats = (0u32..).map(f64::from).take_while(move |n| *n <= count).map(move |n| low + n * self.step);
        ats.map(|at| (self.pixel(at), self.label(at)))
    }

    fn label(&self, at: f64) -> String {
        match self.scale {
            Scale::Linear => {
                let decimals = (-self.step.log10() - 1e-9).ceil().clamp(0.0, 12.0) as usize;
                // Minus zero is nothing that anybody wants to read.
                let at = if at.abs() < self.step / 2.0 { 0.0 } else { at };
                if at.abs() < 1e7 { format!("{at:.decimals$}") } else { format!("{at:e}") }
            }
            Scale::Log => match at.round() {
                exponent @ -4.0..=4.0 => {
                    let decimals = (-exponent).max(0.0) as usize;
                    format!("{:.decimals$}", 10f64.powf(exponent))
                }
                exponent => format!("1e{exponent:.0}"),
            },
            Scale::Bytes => bytes(at.round()),
        }
    }
}

/// Where on an axis a value stands: itself or its logarithm.
fn position(scale: Scale, value: f64) -> Option<f64> {
    let at = match scale {
        Scale::Linear => value,
        Scale::Log => value.log10(),
        Scale::Bytes => value.log2(),
    };
    at.is_finite().then_some(at)
}

/// The next of 1, 2, 5, 10, 20, …
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let times = [1.0, 2.0, 5.0].into_iter().find(|times| times * power >= least * (1.0 - 1e-9));
    times.unwrap_or(10.0) * power
}

/// So many bytes as a power of two.
fn bytes(exponent: f64) -> String {
    format!("{:#}", Size(2f64.powf(exponent) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, values: &[f64]) -> Vec<String> {
        let axis = Axis::new("", scale);
        Span::of(&axis, values.iter().copied(), (0.0, 100.0)).ticks().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_hold_all_values() {
        assert_eq!(labels(Scale::Linear, &[1.0, 4.0]), ["0", "1", "2", "3", "4"]);
        assert_eq!(labels(Scale::Linear, &[0.1, 0.52]), ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6"]);
        assert_eq!(labels(Scale::Linear, &[-1.0, 1.0]), ["-1.0", "-0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(labels(Scale::Linear, &[]), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(Scale::Log, &[0.02, 3.0]), ["0.01", "0.1", "1", "10"]);
        assert_eq!(labels(Scale::Log, &[1e5, 2e6]), ["1e5", "1e6", "1e7"]);
        assert_eq!(
            labels(Scale::Bytes, &[1.0, 4_194_304.0]),
            ["1 B", "16 B", "256 B", "4 KiB", "64 KiB", "1 MiB", "16 MiB"]
        );
    }

    #[test]
    fn an_axis_of_a_given_length_has_no_tick_beyond_it() {
        let ticks: Vec<_> = Span::up_to(3.1, (10.0, 320.0)).ticks().collect();
        let labels = ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5", "3.0"];
        assert!(ticks.iter().map(|(_, label)| label).eq(labels));
        assert!((ticks[6].0 - 310.0).abs() < 1e-9);
    }

    #[test]
    fn any_values_have_few_ticks() {
        for scale in [Scale::Linear, Scale::Log, Scale::Bytes] {
            for values in [&[0.0, 1e-300][..], &[1e300, 1e301], &[5.0, 5.0 + 1e-15], &[-7.0], &[1e-9, 1e9]] {
                let count = labels(scale, values).len();
                assert!((2..=20).contains(&count), "{count} ticks for {values:?} on {scale:?}");
            }
        }
    }
}
