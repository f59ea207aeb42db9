//! Solutions that are known, by which a computed one is measured: the source and what holds at the boundary follow from them
//! (the method of manufactured solutions; P. J. Roache, "Verification and Validation in Computational Science and
//! Engineering", 1998).

use super::problem::Physics;
use super::spot::Spot;
use serde::{Deserialize, Serialize};

/// A known solution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Exact {
    /// Products of sines.
    Sines {
        /// Of the longest side of the box: however large that is, elements are as fine beside the waves.
        length: f64,
    },
    /// Linear functions, which elements of any kind can be.
    Linear,
    /// A spot that goes on as it is, in two dimensions: its highest value is 1.
    Spot {
        /// Where it is.
        spot: Spot,
        /// What a volume holds of it by its value.
        capacity: f64,
    },
    /// Displacements of a plane that such a spot swells.
    Swollen {
        /// Where it is.
        spot: Spot,
        /// The divergence of the displacements by the value of the spot.
        divergence: f64,
    },
}

/// How fast component c oscillates along axis k in a box of length 1, and where it begins.
const SPEEDS: [[f64; 3]; 3] = [[2.5, 1.7, 1.3], [1.9, 2.3, 1.1], [1.2, 1.6, 2.1]];
const BEGINS: [[f64; 3]; 3] = [[0.4, 0.9, 0.6], [1.1, 0.2, 0.8], [0.3, 0.7, 0.5]];
/// Derivatives of the linear functions.
const GRADIENTS: [[f64; 3]; 3] = [[0.7, -0.4, 0.2], [0.3, 0.5, -0.6], [-0.1, 0.8, 0.9]];

/// Sine and cosine by which component c oscillates along axis k: `[c][k]`. They take longer to compute than all else of a
/// derivative, and all derivatives have the same.
type Waves = [[(f64, f64); 3]; 3];

impl Exact {
    /// Its value, of so many components.
    #[must_use]
    pub fn value(self, each: usize, dim: usize, point: [f64; 3]) -> [f64; 3] {
        match self {
            Self::Spot { spot, .. } => [spot.value(point), 0.0, 0.0],
            Self::Swollen { spot, divergence } => spot.away(point).map(|x| divergence * x),
            _ => {
                let waves = self.waves(each, dim, point);
                let of = |c| self.component(c, dim, (point, &waves), [0; 3]);
                std::array::from_fn(|c| if c < each { of(c) } else { 0.0 })
            }
        }
    }

    /// Its derivatives: `[c][k]` is that of component c along axis k.
    #[must_use]
    pub fn slopes(self, dim: usize, point: [f64; 3]) -> [[f64; 3]; 3] {
        match self {
            Self::Spot { spot, .. } => return [spot.slope(point), [0.0; 3], [0.0; 3]],
            Self::Swollen { spot, divergence } => {
                return spot.slopes_away(point).map(|row| row.map(|x| divergence * x));
            }
            _ => {}
        }
        let waves = self.waves(dim, dim, point);
        let along =
            |c: usize, k: usize| if k < dim { self.component(c, dim, (point, &waves), unit(k)) } else { 0.0 };
        std::array::from_fn(|c| if c < dim { std::array::from_fn(|k| along(c, k)) } else { [0.0; 3] })
    }

    /// The source that it solves the equation with.
    #[must_use]
    pub fn source(self, physics: &Physics, dim: usize, point: [f64; 3]) -> [f64; 3] {
        match (self, *physics) {
            (Self::Spot { spot, capacity }, Physics::Poisson { conductivity, .. }) => {
                return [spot.source(point, capacity, conductivity), 0.0, 0.0];
            }
            // What swells holds the balance.
            (Self::Spot { .. } | Self::Swollen { .. }, _) => return [0.0; 3],
            _ => {}
        }
        let waves = self.waves(physics.each(dim), dim, point);
        let second = |c: usize, k: usize, l: usize| {
            let [mut times, with] = [unit(k), unit(l)];
            times.iter_mut().zip(with).for_each(|(times, with)| *times += with);
            self.component(c, dim, (point, &waves), times)
        };
        let laplacian = |c: usize| (0..dim).map(|k| second(c, k, k)).sum::<f64>();
        match *physics {
            Physics::Poisson { conductivity, wind, rate } => {
                // Most have no wind and no rate, and a product with 0 takes as long as any other.
                let along = |(k, w): (usize, &f64)| match *w {
                    0.0 => 0.0,
                    w => w * self.component(0, dim, (point, &waves), unit(k)),
                };
                let carried: f64 = wind[..dim].iter().enumerate().map(along).sum();
                let used =
                    if rate == 0.0 { 0.0 } else { rate * self.component(0, dim, (point, &waves), [0; 3]) };
                [carried + used - conductivity * laplacian(0), 0.0, 0.0]
            }
            Physics::Elasticity { lambda, mu } => std::array::from_fn(|i| {
                let of_divergence: f64 = (0..dim).map(|j| second(j, i, j)).sum();
                if i < dim { -mu * laplacian(i) - (lambda + mu) * of_divergence } else { 0.0 }
            }),
        }
    }

    /// The waves of the first components at a point.
    fn waves(self, components: usize, dim: usize, point: [f64; 3]) -> Waves {
        let mut waves = Waves::default();
        let Self::Sines { length } = self else { return waves };
        for (c, waves) in waves.iter_mut().enumerate().take(components) {
            for (k, wave) in waves.iter_mut().enumerate().take(dim) {
                *wave = (SPEEDS[c][k] / length * point[k] + BEGINS[c][k]).sin_cos();
            }
        }
        waves
    }

    /// A derivative of component c: so many times along each axis.
    fn component(self, c: usize, dim: usize, (point, waves): ([f64; 3], &Waves), times: [u32; 3]) -> f64 {
        match self {
            Self::Sines { length } => {
                let factor = |k: usize| {
                    let (speed, (sine, cosine)) = (SPEEDS[c][k] / length, waves[c][k]);
                    match times[k] {
                        0 => sine,
                        1 => speed * cosine,
                        _ => -speed * speed * sine,
                    }
                };
                (0..dim).map(factor).product()
            }
            Self::Linear => match times.iter().sum::<u32>() {
                0 => (0..dim).map(|k| GRADIENTS[c][k] * point[k]).sum::<f64>() + 0.25,
                1 => (0..dim).map(|k| GRADIENTS[c][k] * f64::from(times[k])).sum(),
                _ => 0.0,
            },
            // These have their own derivatives.
            Self::Spot { .. } | Self::Swollen { .. } => 0.0,
        }
    }
}

fn unit(axis: usize) -> [u32; 3] {
    std::array::from_fn(|k| u32::from(k == axis))
}
