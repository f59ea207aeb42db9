//! Which balancer, as a user writes it: `NAME` or `NAME:option=value,option`.

use super::auto::Settings;
use super::bisection::Bisection;
use super::communication::Communication;
use super::diffusion::Diffusion;
use super::exchange::Exchange;
use super::gossip::Gossip;
use super::greedy::{Greedy, GreedyRefine};
use super::hierarchical::Hierarchical;
use super::partition::Partition;
use super::refine::Refine;
use super::steady::Steady;
use super::weighted::Weighted;
use super::{Balancer, Rotate, Stay};
use std::str::FromStr;
use thiserror::Error;

/// A balancer that a user may choose.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// What it is called.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    build: fn(&mut Options<'_>) -> Result<Box<dyn Balancer>, ChoiceError>,
}

/// All balancers that are chosen by name; `auto`, which chooses among them, is not one.
pub const BALANCERS: [Named; 12] = [
    Named { name: "none", about: "chares stay where they are", build: |_| Ok(Box::new(Stay)) },
    Named {
        name: "weighted",
        about: "neighbours in the list to each PE, in proportion to its speed",
        build: |_| Ok(Box::new(Weighted)),
    },
    Named {
        name: "greedy",
        about: "the heaviest chare first to the PE that ends it soonest; moves most of them",
        build: |_| Ok(Box::new(Greedy)),
    },
    Named {
        name: "greedy-refine",
        about: "as greedy, but a chare stays where its PE ends in time with it",
        build: |options| Ok(Box::new(GreedyRefine { tolerance: options.tolerance()? })),
    },
    Named {
        name: "refine",
        about: "only PEs that end late give chares away, and few",
        build: |options| Ok(Box::new(Refine { tolerance: options.tolerance()? })),
    },
    Named {
        name: "exchange",
        about: "one chare at a time goes, or two change places, while the latest PE ends sooner; for few chares",
        build: |options| Ok(Box::new(Exchange { tolerance: options.tolerance()? })),
    },
    Named {
        name: "rotate",
        about: "each chare to the next PE, to try migration",
        build: |_| Ok(Box::new(Rotate)),
    },
    Named {
        name: "hierarchical",
        about: "between nodes first, then between the PEs of each",
        build: |options| Ok(Box::new(Hierarchical { tolerance: options.tolerance()? })),
    },
    Named {
        name: "diffusion",
        about: "neighbouring PEs level out their loads",
        build: |options| Ok(Box::new(Diffusion::from_options(options)?)),
    },
    Named {
        name: "gossip",
        about: "PEs with time to spare tell a few others",
        build: |options| Ok(Box::new(Gossip::from_options(options)?)),
    },
    Named {
        name: "bisection",
        about: "space is cut in two by weight, again and again; elements of arrays lie where their index says",
        build: |_| Ok(Box::new(Bisection)),
    },
    Named {
        name: "partition",
        about: "the graph of who talks to whom is cut in two by weight, again and again",
        build: |_| Ok(Box::new(Partition)),
    },
];

/// A balancer that is used whenever it is asked, or `auto`, which decides when and which.
#[derive(Debug)]
pub enum Choice {
    /// Balance at once with this one.
    Always(Box<dyn Balancer>),
    /// Balance when it pays.
    Auto(Settings),
}

impl Choice {
    /// Whether somebody has to count who talks to whom.
    #[must_use]
    pub fn uses_edges(&self) -> bool {
        match self {
            Self::Always(balancer) => balancer.uses_edges(),
            Self::Auto(settings) => settings.comm,
        }
    }

    /// Whether somebody has to say where chares lie.
    #[must_use]
    pub fn uses_places(&self) -> bool {
        matches!(self, Self::Always(balancer) if balancer.uses_places())
    }

    /// What is done otherwise than it was asked for, because there are so many PEs.
    #[must_use]
    pub fn doubt(&self, pes: u32) -> Option<String> {
        match self {
            Self::Always(balancer) => balancer.doubt(pes),
            Self::Auto(_) => None,
        }
    }
}

impl FromStr for Choice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        if name == AUTO {
            let mut options = Options::new(AUTO, rest)?;
            let settings = Settings::from_options(&mut options)?;
            return options.finish().map(|()| Self::Auto(settings));
        }
        let named = BALANCERS.iter().find(|named| named.name == name);
        let named = named.ok_or_else(|| ChoiceError::Unknown { name: name.into(), names: names() })?;
        let mut options = Options::new(named.name, rest)?;
        let mut balancer = (named.build)(&mut options)?;
        if !matches!(named.name, "none" | "rotate") {
            if options.flag("comm")? {
                balancer = Box::new(Communication { first: balancer, ..Communication::default() });
            }
            balancer = Box::new(Steady { first: balancer, gain: options.part("gain", GAIN)? });
        }
        options.finish().map(|()| Self::Always(balancer))
    }
}

const AUTO: &str = "auto";

/// The names of all choices, for a sentence.
#[must_use]
pub fn names() -> String {
    let mut names = String::from(AUTO);
    BALANCERS.iter().for_each(|named| {
        names.push_str(", ");
        names.push_str(named.name);
    });
    names
}

/// What a user wrote behind the name. Whoever takes an option names it so, and what nobody takes is a mistake.
#[derive(Debug)]
pub struct Options<'a> {
    balancer: &'static str,
    given: Vec<(&'a str, Option<&'a str>)>,
    known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    fn new(balancer: &'static str, text: &'a str) -> Result<Self, ChoiceError> {
        let split = |option: &'a str| match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        let given: Vec<_> = text.split(',').filter(|option| !option.is_empty()).map(split).collect();
        let is_twice = |at: &usize| given[..*at].iter().any(|(name, _)| *name == given[*at].0);
        match (0..given.len()).find(is_twice) {
            Some(at) => Err(ChoiceError::Twice { balancer, option: given[at].0.into() }),
            None => Ok(Self { balancer, given, known: Vec::new() }),
        }
    }

    /// The value of an option as `read` understands it, or the default where it is not given.
    pub(crate) fn value<T>(
        &mut self,
        option: &'static str,
        default: T,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ChoiceError> {
        self.known.push(option);
        let Some(at) = self.given.iter().position(|(name, _)| *name == option) else { return Ok(default) };
        let value = self.given.swap_remove(at).1.unwrap_or("");
        let bad = || ChoiceError::BadValue { balancer: self.balancer, option, value: value.into(), expected };
        read(value).ok_or_else(bad)
    }

    /// Whether an option without value is there.
    pub(crate) fn flag(&mut self, option: &'static str) -> Result<bool, ChoiceError> {
        self.value(option, false, "nothing, without a =", |value| value.is_empty().then_some(true))
    }

    /// A whole number of 1 and more.
    pub(crate) fn count(&mut self, option: &'static str, default: u32) -> Result<u32, ChoiceError> {
        let read = |value: &str| value.parse().ok().filter(|count| *count > 0);
        self.value(option, default, "a whole number of 1 and more", read)
    }

    /// A part, above 0 and up to 1.
    pub(crate) fn part(&mut self, option: &'static str, default: f64) -> Result<f64, ChoiceError> {
        let is_part = |part: &f64| *part > 0.0 && *part <= 1.0;
        let read = |value: &str| value.parse().ok().filter(is_part);
        self.value(option, default, "a number above 0 and up to 1", read)
    }

    fn tolerance(&mut self) -> Result<f64, ChoiceError> {
        self.part("tolerance", TOLERANCE)
    }

    fn finish(self) -> Result<(), ChoiceError> {
        match self.given.first() {
            None => Ok(()),
            Some((option, _)) if self.known.is_empty() => {
                Err(ChoiceError::NoOptions { balancer: self.balancer, option: (*option).into() })
            }
            Some((option, _)) => Err(ChoiceError::UnknownOption {
                balancer: self.balancer,
                option: (*option).into(),
                options: self.known.join(", "),
            }),
        }
    }
}

/// By which part a run has to end sooner for chares to move.
const GAIN: f64 = 0.02;
/// How much later than the ideal a PE may end before it counts as late.
pub(crate) const TOLERANCE: f64 = 0.02;

/// Why a choice was not understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// There is none of that name.
    #[error("there is no balancer \"{name}\": choose one of {names}")]
    Unknown {
        /// What was written.
        name: String,
        /// Those that there are.
        names: String,
    },
    /// It has no such option.
    #[error("the balancer {balancer} has no option \"{option}\": it has {options}")]
    UnknownOption {
        /// Which.
        balancer: &'static str,
        /// What was written.
        option: String,
        /// Those that it has.
        options: String,
    },
    /// It has no options at all.
    #[error("the balancer {balancer} has no options: leave out \":{option}\"")]
    NoOptions {
        /// Which.
        balancer: &'static str,
        /// What was written.
        option: String,
    },
    /// An option has a value that it cannot have.
    #[error("option \"{option}\" of the balancer {balancer} is \"{value}\": it must be {expected}")]
    BadValue {
        /// Which.
        balancer: &'static str,
        /// Which option.
        option: &'static str,
        /// What was written.
        value: String,
        /// What would do.
        expected: &'static str,
    },
    /// Two options of which each takes back what the other wants.
    #[error("options \"{one}\" and \"{other}\" of the balancer {balancer} exclude each other: leave one out")]
    Contrary {
        /// Which.
        balancer: &'static str,
        /// The first option.
        one: &'static str,
        /// The second.
        other: &'static str,
    },
    /// An option was given twice.
    #[error("option \"{option}\" of the balancer {balancer} is given twice: leave one out")]
    Twice {
        /// Which.
        balancer: &'static str,
        /// Which option.
        option: String,
    },
}
