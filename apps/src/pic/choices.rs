//! What there is to choose from.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How a plasma begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Setup {
    /// A beam through electrons at rest
    #[default]
    Beam,
    /// Two streams against each other
    TwoStreams,
    /// Warm electrons, in which a wave is damped
    Landau,
}

/// Who decides on the scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum SchemeChoice {
    /// What costs less by what is measured at the start
    #[default]
    Auto,
    /// Particles go to the chare of the region where they are
    #[value(alias = "1")]
    Regions,
    /// Particles stay, and charges of the whole grid are added up
    #[value(alias = "2")]
    Fixed,
}

/// Who has the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Grid {
    /// One chare adds up the charge of all and solves for the field
    #[default]
    Replicated,
    /// Each region has its part; particles and guard columns go to neighbours, and the transforms are divided
    Distributed,
}
