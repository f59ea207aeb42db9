//! What `auto` answers to a measurement.

use crate::balance::decision::Decision;
use std::fmt;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Nothing, for this reason.
    Wait(Why),
    /// These moves; the balancer that found them is named.
    Move(Decision, &'static str),
}

/// Why nothing moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// No chare has done anything.
    NoWork,
    /// There are too few measurements to know what noise is.
    TooFew,
    /// Moves that were decided have not all been made.
    Moving,
    /// The imbalance is not more than noise makes.
    Even,
    /// There is an imbalance, and no balancer has an answer.
    NoBetter,
    /// The imbalance was not there in the last measurement.
    Unconfirmed,
    /// Moves would cost more than has been lost, or than can still be gained.
    NotWorth,
}

impl fmt::Display for Why {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NoWork => "no chare has done anything",
            Self::TooFew => "there are too few measurements yet",
            Self::Moving => "chares are still on their way",
            Self::Even => "the imbalance is not more than noise makes",
            Self::NoBetter => "no balancer knows a better placement",
            Self::Unconfirmed => "the imbalance has been measured only once",
            Self::NotWorth => "moving would cost more than it brings",
        })
    }
}
