//! Mapping: where chares go when a run goes on elsewhere, by what they cost then and how fast PEs are now.

use super::communication::Communication;
use super::earliest::Earliest;
use super::greedy::soonest;
use super::partition::Partition;
use super::view::{Chare, Checked, Mobility, Times, View, ViewError};
use super::weighted::Weighted;
use super::{Balancer, Decision, Wanted};
use std::str::FromStr;
use thiserror::Error;

/// How chares are placed anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// They stay on their PEs.
    Keep,
    /// Neighbours in the list to each PE.
    Block,
    /// One after the other to the PE that ends it soonest: in turn, a fast PE more often.
    Cyclic,
    /// Those that talk to each other to the same PE.
    Comm,
}

/// All mappings, by the names that users write.
const MAPPINGS: [(&str, Mapping); 4] = [
    ("keep", Mapping::Keep),
    ("block", Mapping::Block),
    ("cyclic", Mapping::Cyclic),
    ("comm", Mapping::Comm),
];

/// A mapping has no such name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no mapping \"{0}\": choose keep, block, cyclic or comm")]
pub struct MappingError(String);

impl FromStr for Mapping {
    type Err = MappingError;

    fn from_str(text: &str) -> Result<Self, MappingError> {
        let named = MAPPINGS.iter().find(|(name, _)| *name == text);
        named.map(|(_, mapping)| *mapping).ok_or_else(|| MappingError(text.into()))
    }
}

impl std::fmt::Display for Mapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = MAPPINGS.iter().find(|(_, mapping)| mapping == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

impl Mapping {
    /// The moves that bring chares to where they belong.
    ///
    /// # Errors
    /// If the view makes no sense.
    pub fn decide(self, view: &View) -> Result<Decision, ViewError> {
        let checked = view.check()?;
        let wanted = match self {
            Self::Keep => return Ok(Decision::stay(&checked)),
            Self::Block => Weighted.wanted(&checked),
            Self::Cyclic => in_turn(&checked),
            Self::Comm => {
                let first = Box::new(Partition);
                Communication { first, tolerance: 0.0, ..Communication::default() }.wanted(&checked)
            }
        };
        // Where chares are now says nothing of how long the run would take here.
        Ok(Decision::carry_out(&checked, &wanted, true))
    }
}

/// Each chare to the PE that ends soonest with it, of equals the first.
fn in_turn(view: &Checked<'_>) -> Wanted {
    let (mut owners, is_pinned) = (view.owners(), |chare: &Chare| chare.mobility == Mobility::Pinned);
    let mut times = Times::without_chares(view);
    for chare in view.chares.iter().filter(|chare| is_pinned(chare)) {
        times.work[chare.pe as usize] += chare.load;
    }
    let mut earliest = Earliest::new(&times, 0..times.work.len() as u32);
    for (told, owner) in view.chares.iter().zip(&mut owners).filter(|(chare, _)| !is_pinned(chare)) {
        let best = match &told.mobility {
            Mobility::OneOf(set) => soonest(&times, set.iter().copied(), told.load),
            _ => earliest.for_load(&times, told.load),
        };
        *owner = best.unwrap_or(told.pe);
        times.work[*owner as usize] += told.load;
    }
    owners.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Part;
    use crate::balance::Edge;
    use crate::balance::decision::cut_bytes;
    use crate::balance::random::Random;
    use crate::balance::tests::grid;

    const ALL: [Mapping; 3] = [Mapping::Block, Mapping::Cyclic, Mapping::Comm];

    fn counts(mapping: Mapping, view: &View) -> Vec<usize> {
        let owners = mapping.decide(view).unwrap().owners(view);
        (0..view.pes.len() as u32).map(|pe| owners.iter().filter(|owner| **owner == pe).count()).collect()
    }

    #[test]
    fn chares_are_shared_out_by_the_speeds_of_now() {
        for (count, speeds, expected) in [
            (144, &[1.0, 1.0, 2.0, 0.5][..], &[32, 32, 64, 16][..]),
            (64, &[3.0, 1.5, 1.0, 1.0, 0.5], &[28, 14, 9, 9, 4]),
        ] {
            // They were on as many PEs that were all alike.
            let pes = speeds.len() as u32;
            let view = View::new(&Part::each(speeds), (0..count).map(|chare| (chare * pes / count, 1.0)));
            let mut ring = view.clone();
            ring.edges =
                (0..count).map(|one| Edge { one, other: (one + 1) % count, bytes: 8, messages: 1 }).collect();
            for mapping in ALL {
                assert_eq!(counts(mapping, &view), expected, "{mapping}");
                assert_eq!(counts(mapping, &ring), expected, "{mapping} of a ring");
            }
        }
    }

    #[test]
    fn on_other_counts_of_pes_none_has_more_than_one_chare_more_than_another() {
        for (count, pes) in [(128, 8), (128, 12), (144, 20), (144, 28), (128, 32)] {
            let view = View::new(&Part::each(&vec![1.0; pes]), (0..count).map(|chare| (chare % 4, 1.0)));
            for mapping in ALL {
                let counts = counts(mapping, &view);
                let (least, most) = (counts.iter().min(), counts.iter().max());
                assert!(most.unwrap() - least.unwrap() <= 1, "{mapping}: {counts:?}");
            }
        }
    }

    #[test]
    fn what_talks_to_each_other_comes_together() {
        let mut random = Random::new(1);
        let places: Vec<u32> = (0..256).map(|_| random.below(16) as u32).collect();
        let view = grid(16, 16, |chare| places[chare as usize]);
        let cut = |mapping: Mapping| {
            let decision = mapping.decide(&view).unwrap();
            assert_eq!(decision.after, 1.0, "{mapping}");
            cut_bytes(&view, &decision.owners(&view))
        };
        assert!(cut_bytes(&view, &places) > 400);
        assert_eq!([Mapping::Block, Mapping::Cyclic].map(cut), [240, 240]);
        let comm = cut(Mapping::Comm);
        assert!(comm <= 120, "{comm} of 480 cross, and of squares it would be 96");
    }

    #[test]
    fn what_stays_where_it_is_draws_others_there() {
        // Each of two that are pinned has three others that talk to it, on the other PE.
        let mut view =
            View::new(&Part::each(&[1.0; 2]), (0..8).map(|chare| (u32::from(chare != 0 && chare < 5), 1.0)));
        (view.chares[0].mobility, view.chares[1].mobility) = (Mobility::Pinned, Mobility::Pinned);
        view.edges = (2..8).map(|one| Edge { one, other: one % 2, bytes: 100, messages: 1 }).collect();
        let decision = Mapping::Comm.decide(&view).unwrap();
        assert_eq!(decision.owners(&view), [0, 1, 0, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn mappings_have_names() {
        for (name, mapping) in MAPPINGS {
            assert_eq!((name.parse(), mapping.to_string()), (Ok(mapping), name.to_string()));
        }
        let wrong = "row".parse::<Mapping>().unwrap_err().to_string();
        assert_eq!(wrong, "there is no mapping \"row\": choose keep, block, cyclic or comm");
    }
}
