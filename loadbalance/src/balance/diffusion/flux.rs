//! The flux solver: how much work should flow over each link so that neighbours end together, within what can flow.
//!
//! P. Shivadasan, "Dynamic Load Balancing in CP2K" (MSc thesis, EPCC, Edinburgh 2014), `balance_global_list`, with speeds
//! as weights: in each round each link in turn levels out its two ends, as far as its limits permit. Links that have no end
//! in common may do so at the same time without changing a bit of the result; see [`super::Topology`] for colours and
//! [`super::cell`] for PEs that do it by messages.
//!
//! Invariant: the sum of loads stays, each flux stays within its limits, and the longest time never rises.

/// A link between two PEs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// The PE with the lower number.
    pub low: u32,
    /// The other.
    pub high: u32,
    /// What the higher PE can give, as a negative number: the flux is never below.
    pub least: f64,
    /// What the lower PE can give: the flux is never above.
    pub most: f64,
    /// Work that goes from the lower to the higher PE.
    pub flux: f64,
}

/// The work that makes two PEs end together, from the one to the other.
#[must_use]
pub fn difference((load, speed): (f64, f64), (other_load, other_speed): (f64, f64)) -> f64 {
    (load * other_speed - other_load * speed) / (speed + other_speed)
}

impl Link {
    /// Without limits, and nothing flows yet.
    #[must_use]
    pub const fn free(low: u32, high: u32) -> Self {
        Self { low, high, least: f64::NEG_INFINITY, most: f64::INFINITY, flux: 0.0 }
    }

    /// The work that goes over the link now if its ends have these loads and speeds; it is added to the flux.
    pub fn level_out(&mut self, low: (f64, f64), high: (f64, f64)) -> f64 {
        let work = difference(low, high).max(self.least - self.flux).min(self.most - self.flux);
        // A sum of floats could miss the limit by a bit.
        self.flux = (self.flux + work).max(self.least).min(self.most);
        work
    }
}

/// How much a round has still changed: the largest of all links.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shift {
    /// In work.
    pub work: f64,
    /// In seconds, as the mean of both ends.
    pub seconds: f64,
}

impl Shift {
    /// Of a link that moved so much work between PEs of these speeds.
    #[must_use]
    pub fn of(work: f64, speed: f64, other: f64) -> Self {
        let work = work.abs();
        Self { work, seconds: work * (1.0 / speed + 1.0 / other) / 2.0 }
    }

    /// The larger of both.
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        Self { work: self.work.max(other.work), seconds: self.seconds.max(other.seconds) }
    }
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Until {
    /// Changes of less than this part of the mean time are none.
    pub tolerance: f64,
    /// Rounds at most.
    pub rounds: u32,
    /// Changes are looked at after every so many rounds: on many PEs a look costs more than a round.
    pub check_every: u32,
}

impl Default for Until {
    fn default() -> Self {
        Self { tolerance: 0.001, rounds: 100, check_every: 4 }
    }
}

/// How solving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Rounds that were made.
    pub rounds: u32,
    /// How often changes were looked at.
    pub checks: u32,
    /// Why there were no more.
    pub by: End,
}

/// Why solving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// There were no changes any more.
    Converged,
    /// The rounds were used up.
    Rounds,
    /// The longest time rose, which a sound order of links cannot do: all is as it was before.
    Diverged,
}

/// Loads of PEs and the links between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Flux {
    /// Work of each PE.
    pub loads: Vec<f64>,
    /// Speed of each PE.
    pub speeds: Vec<f64>,
    /// In the order in which they are levelled out.
    pub links: Vec<Link>,
}

impl Flux {
    /// Solves within `until`.
    pub fn solve(&mut self, until: Until) -> Ended {
        self.run(until, Self::round)
    }

    /// Solves with rounds of some kind. If one makes the longest time rise, everything is put back.
    pub fn run(&mut self, until: Until, mut round: impl FnMut(&mut Self) -> Shift) -> Ended {
        let before = self.clone();
        let mean = self.loads.iter().sum::<f64>() / self.speeds.iter().sum::<f64>();
        let (mut checks, mut longest) = (0, self.longest());
        for rounds in 1..=until.rounds {
            let shift = round(self);
            let now = self.longest();
            if now.is_nan() || now > longest * (1.0 + ROUNDING) {
                *self = before;
                return Ended { rounds, checks, by: End::Diverged };
            }
            longest = now;
            if rounds % until.check_every == 0 || rounds == until.rounds {
                checks += 1;
                if shift.seconds < until.tolerance * mean {
                    return Ended { rounds, checks, by: End::Converged };
                }
            }
        }
        Ended { rounds: until.rounds, checks, by: End::Rounds }
    }

    /// Each link once, in order.
    pub fn round(&mut self) -> Shift {
        let (loads, speeds) = (&mut self.loads, &self.speeds);
        let level_out = |largest: Shift, link: &mut Link| {
            let (low, high) = (link.low as usize, link.high as usize);
            let work = link.level_out((loads[low], speeds[low]), (loads[high], speeds[high]));
            loads[low] -= work;
            loads[high] += work;
            largest.max(Shift::of(work, speeds[low], speeds[high]))
        };
        self.links.iter_mut().fold(Shift::default(), level_out)
    }

    /// The longest time of a PE.
    #[must_use]
    pub fn longest(&self) -> f64 {
        self.loads.iter().zip(&self.speeds).map(|(load, speed)| load / speed).fold(0.0, f64::max)
    }
}

/// Levelling out is exact but for so large a part.
const ROUNDING: f64 = 1e-9;
