//! What a user says of the work, and whether it makes sense.

use super::{CALL_UNITS, kernel_call};
use crate::output::{check_option, written};
use crate::trial;
use chares::loadbalance::balance::patterns::Pattern;
use chares::{RunError, Size};
use clap::{Args, ValueEnum};
use command::NamedFile;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How long a run takes if nobody says how much work it is.
const SECONDS: f64 = 10.0;
/// Most steps of all chares together, so that plans and checks take seconds and not hours.
const STEPS_MAX: u64 = 1 << 30;
/// Most units of work of a chare in a step.
const WORK_MAX: u64 = 1 << 40;
/// Longest state of a chare.
const STATE_MAX: u64 = 1 << 32;

/// Arguments of `run imbalance`.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct Imbalance {
    /// How the loads of the chares differ, and how they change
    #[arg(long, value_enum, default_value = "wave")]
    pub pattern: Loads,
    /// Chares; each PE begins with as many as its speed earns
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub chares: u32,
    /// Steps of each chare
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub steps: u32,
    /// Work of a chare in a step, in the mean over all: products and sums modulo a prime, one after the other
    #[arg(long, value_name = "UNITS")]
    pub work: Option<u64>,
    /// Choose the work so that the run would take about so many seconds on the cores of this machine, if all of them
    /// were always busy [default: 10]
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with = "work")]
    #[serde(skip)]
    pub seconds: Option<f64>,
    /// State of each chare, which travels with it, such as 16KiB
    #[arg(long, value_name = "BYTES", value_parser = state, default_value = "16KiB")]
    pub state: u64,
    /// All chares add something up after so many steps each
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub reduce_every: u32,
    /// No chare goes on before it has been told the sum
    #[arg(long)]
    pub barrier: bool,
    /// Seed of the loads and of the numbers that chares begin with
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the number that each chare ends with: .npy, whole numbers of 64 bits
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Compare with a serial computation, bit for bit; a wrong result gives a non-zero exit code
    #[arg(long)]
    pub verify: bool,
}

/// How loads differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Loads {
    /// From 0 for the first chare to twice the mean for the last
    Linear,
    /// A tenth of the chares has ten times as much as the rest
    HotSpot,
    /// A hill over a quarter of the chares moves along them, once around in 400 steps
    Wave,
    /// Each goes its own way, by up to a twentieth a step
    Walk,
    /// Those in the middle have most, and most may go to the PEs next to their own only, as tasks of CP2K
    Slots,
    /// All have the same: what it costs to have many chares
    Even,
}

impl From<Loads> for Pattern {
    fn from(loads: Loads) -> Self {
        match loads {
            Loads::Linear => Self::Linear,
            Loads::HotSpot => Self::HotSpot,
            Loads::Wave => Self::Wave,
            Loads::Walk => Self::Walk,
            Loads::Slots => Self::Slots,
            Loads::Even => Self::Even,
        }
    }
}

impl Imbalance {
    /// The same with the work settled.
    #[must_use]
    pub fn completed(mut self) -> Self {
        if self.work.is_none() {
            let rate = trial::rate(|| kernel_call(CALL_UNITS));
            let units = rate * self.seconds.unwrap_or(SECONDS) / self.chare_steps() as f64;
            self.work = Some((units as u64).clamp(1, WORK_MAX));
        }
        self
    }

    /// Steps of all chares together.
    #[must_use]
    pub fn chare_steps(&self) -> u64 {
        u64::from(self.chares) * u64::from(self.steps)
    }

    /// Units of work, about: the mean load of a pattern is about 1.
    #[must_use]
    pub fn work(&self) -> f64 {
        self.work.unwrap_or(1) as f64 * self.chare_steps() as f64
    }

    /// The files that are written.
    #[must_use]
    pub fn files(&self) -> Vec<NamedFile> {
        written([("--out", &self.out)]).collect()
    }
}

/// Checks arguments before any node is started.
pub(super) fn check(imbalance: &Imbalance) -> Result<(), RunError> {
    let Imbalance { chares, steps, work, reduce_every, out, .. } = imbalance;
    let wrong = |sentence: String| Err(RunError::Input(sentence));
    if let Some((option, _)) =
        [("chares", *chares), ("steps", *steps), ("reduce-every", *reduce_every)].iter().find(|of| of.1 == 0)
    {
        return wrong(format!("--{option} 0: give at least 1"));
    }
    if imbalance.chare_steps() > STEPS_MAX {
        return wrong(format!("{chares} chares of {steps} steps: give at most {STEPS_MAX} steps in all"));
    }
    if let Some(work) = work.filter(|work| !(1..=WORK_MAX).contains(work)) {
        return wrong(format!("--work {work}: give 1 to {WORK_MAX} units"));
    }
    out.as_ref().map_or(Ok(()), |out| check_option("--out", out))
}

/// A time for `--seconds`.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|s| (0.001..=86_400.0).contains(s));
    seconds.ok_or_else(|| "give a number from 0.001 to 86400".into())
}

/// A length for `--state`.
fn state(text: &str) -> Result<u64, String> {
    let bytes = Size::parse(text).map(|size| size.0).filter(|bytes| *bytes <= STATE_MAX);
    bytes.ok_or_else(|| "give bytes up to 4GiB, such as 64, 16KiB or 1MiB".into())
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused_with_what_would() {
        let sentence = |words: &[&str]| check(&of(words)).unwrap_err().to_string();
        assert_eq!(sentence(&["--chares", "0"]), "--chares 0: give at least 1");
        assert_eq!(sentence(&["--reduce-every", "0"]), "--reduce-every 0: give at least 1");
        assert!(sentence(&["--work", "0"]).contains("give 1 to 1099511627776 units"));
        assert!(
            sentence(&["--chares", "1000000", "--steps", "1000000"]).contains("at most 1073741824 steps")
        );
        assert!(state("5GiB").is_err() && state("x").is_err() && seconds("0").is_err());
        assert_eq!(state("1.5 KiB"), Ok(1536));
    }

    #[test]
    fn the_work_follows_from_the_time_unless_it_is_said() {
        let work = |words: &[&str]| of(words).completed().work.unwrap();
        assert_eq!(work(&["--work", "12"]), 12);
        // Even if other programs take nine tenths of the machine during one of the trials.
        assert!(work(&["--seconds", "1000"]) > 10 * work(&["--seconds", "1"]));
        assert_eq!(work(&["--seconds", "0.001", "--chares", "1000000", "--steps", "1000"]), 1);
    }
}
