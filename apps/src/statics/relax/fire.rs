//! FIRE: dynamics that are steered downhill, and stopped whenever they go up (E. Bitzek, P. Koskinen, F. Gahler,
//! M. Moseler, P. Gumbsch, Phys. Rev. Lett. 97 (2006) 170201, with the constants given there; all masses are 1).

use super::{Choice, Measured, Turn};

const FIRST_STEP: f64 = 0.05;
const LONGEST_STEP: f64 = 0.5;
const FIRST_MIX: f64 = 0.1;

#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Fire {
    max_step: f64,
    /// Time step.
    dt: f64,
    /// How much of the velocity is turned into the direction of the force.
    mix: f64,
    /// Steps downhill since the last stop.
    downhill: u32,
}

impl Fire {
    pub(super) fn new(max_step: f64) -> Self {
        Self { max_step, dt: FIRST_STEP, mix: FIRST_MIX, downhill: 0 }
    }

    /// The direction is the velocity, so that f d is the power.
    pub(super) fn next(&mut self, measured: &Measured) -> Choice {
        if measured.ff == 0.0 {
            return Choice::Stuck;
        }
        let (mut force, mut direction) = (0.0, 0.0);
        if measured.fd > 0.0 {
            self.downhill += 1;
            force = self.mix * (measured.dd / measured.ff).sqrt();
            direction = 1.0 - self.mix;
            if self.downhill > 5 {
                self.dt = (1.1 * self.dt).min(LONGEST_STEP);
                self.mix *= 0.99;
            }
        } else if measured.dd > 0.0 {
            self.downhill = 0;
            self.dt *= 0.5;
            self.mix = FIRST_MIX;
        }
        force += self.dt;
        let max_d = force * measured.max_f + direction * measured.max_d;
        let step = self.dt.min(self.max_step / max_d);
        Choice::Turn { turn: Turn { force, direction, ..Turn::default() }, step, max_d, away: 0.0 }
    }
}
