//! A spot that moves over a body: where something is put in, and a known solution. Displacements of a plane that such a spot
//! swells follow from a potential (J. N. Goodier, Philosophical Magazine 23, 1937): its Laplacian is the swelling.

use serde::{Deserialize, Serialize};

/// A spot at its place: of value exp(-r^2 / radius^2) at a distance r.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spot {
    /// Its middle.
    pub at: [f64; 3],
    /// How fast it moves.
    pub velocity: [f64; 3],
    /// Its radius.
    pub radius: f64,
    /// What all of it puts in by time, and by depth in two dimensions.
    pub strength: f64,
}

impl Spot {
    /// The same after a time.
    #[must_use]
    pub fn after(self, time: f64) -> Self {
        Self { at: std::array::from_fn(|k| self.at[k] + time * self.velocity[k]), ..self }
    }

    /// How far a point is from the middle, and the square of that in radii.
    fn offset(&self, point: [f64; 3]) -> ([f64; 3], f64) {
        let away: [f64; 3] = std::array::from_fn(|k| point[k] - self.at[k]);
        (away, away.iter().map(|x| x * x).sum::<f64>() / (self.radius * self.radius))
    }

    /// Its value at a point.
    #[must_use]
    pub fn value(&self, point: [f64; 3]) -> f64 {
        (-self.offset(point).1).exp()
    }

    /// What it puts in at a point, by time and volume, in two dimensions.
    #[must_use]
    pub fn density(&self, point: [f64; 3]) -> f64 {
        self.strength * self.value(point) / (std::f64::consts::PI * self.radius * self.radius)
    }

    /// Derivatives of its value.
    #[must_use]
    pub fn slope(&self, point: [f64; 3]) -> [f64; 3] {
        let factor = -2.0 * self.value(point) / (self.radius * self.radius);
        self.offset(point).0.map(|x| factor * x)
    }

    /// What must be put in for it to go on as it is, in two dimensions.
    #[must_use]
    pub fn source(&self, point: [f64; 3], capacity: f64, conductivity: f64) -> f64 {
        let (away, square) = self.offset(point);
        let (value, squared) = (self.value(point), self.radius * self.radius);
        let ahead: f64 = away.iter().zip(self.velocity).map(|(x, v)| x * v).sum();
        value * (capacity * 2.0 * ahead - conductivity * (4.0 * square - 4.0)) / squared
    }

    /// Displacements of a plane whose divergence is its value.
    #[must_use]
    pub fn away(&self, point: [f64; 3]) -> [f64; 3] {
        let (away, square) = self.offset(point);
        away.map(|x| x * mean(square) / 2.0)
    }

    /// Derivatives of these: `[c][k]` is that of component c along axis k.
    #[must_use]
    pub fn slopes_away(&self, point: [f64; 3]) -> [[f64; 3]; 3] {
        let (away, square) = self.offset(point);
        let (mean, value) = (mean(square), self.value(point));
        // The mean over a disc of radius r changes by 2 (value - mean) / r along r.
        let turned = if square > 0.0 { (value - mean) / (square * self.radius * self.radius) } else { 0.0 };
        std::array::from_fn(|c| {
            std::array::from_fn(|k| {
                let even = if c == k && c < 2 { mean / 2.0 } else { 0.0 };
                even + turned * away[c] * away[k]
            })
        })
    }
}

/// The mean of a spot's value over the disc around its middle that reaches as far as a point; `square` is the distance over
/// the radius, squared.
fn mean(square: f64) -> f64 {
    if square > 0.0 { -(-square).exp_m1() / square } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_are_those_of_the_values() {
        let spot = Spot { at: [0.3, 0.6, 0.0], velocity: [0.4, -0.2, 0.0], radius: 0.2, strength: 1.0 };
        let (point, step) = ([0.41, 0.52, 0.0], 1e-5);
        let moved = |k: usize, by: f64| std::array::from_fn(|l| point[l] + if l == k { by } else { 0.0 });
        let mut laplacian = 0.0;
        for k in 0..2 {
            let (high, low) = (moved(k, step), moved(k, -step));
            let slope = (spot.value(high) - spot.value(low)) / (2.0 * step);
            assert!((slope - spot.slope(point)[k]).abs() < 1e-8);
            laplacian += (spot.slope(high)[k] - spot.slope(low)[k]) / (2.0 * step);
            for c in 0..2 {
                let slope = (spot.away(high)[c] - spot.away(low)[c]) / (2.0 * step);
                assert!((slope - spot.slopes_away(point)[c][k]).abs() < 1e-8);
            }
        }
        let divergence: f64 = (0..2).map(|k| spot.slopes_away(point)[k][k]).sum();
        assert!((divergence - spot.value(point)).abs() < 1e-12);
        let by_time = (spot.after(step).value(point) - spot.after(-step).value(point)) / (2.0 * step);
        assert!((spot.source(point, 3.0, 0.7) - (3.0 * by_time - 0.7 * laplacian)).abs() < 1e-6);
    }
}
