//! Moves that no balancer need look for: a trial, and moves that are taken back.

use crate::balance::view::{Checked, Times};
use crate::balance::{Balancer, Move, Wanted};

/// The chares of these moves that are still where they begin go where they lead.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    name: &'static str,
    moves: Vec<Move>,
}

impl Listed {
    /// One chare goes to a PE that all have left, to see whether it has become fast again: what it shows by computing for
    /// nothing is not all that counts, and may be misleading. It is the lightest that may go there of those on the PE that
    /// ends last, if that has another one. `None` if there is none.
    pub(super) fn trial(to: u32, view: &Checked<'_>, times: &Times) -> Option<Self> {
        let from = times.last()?;
        let held = || (0..).zip(&view.chares).filter(|(_, chare)| chare.pe == from && chare.load > 0.0);
        let may_go = held().filter(|(number, _)| view.may_live(*number, to));
        let (chare, _) = may_go.min_by(|(_, one), (_, other)| one.load.total_cmp(&other.load))?;
        (held().count() > 1 && from != to)
            .then_some(Self { name: TRIAL, moves: vec![Move { chare, from, to }] })
    }

    /// The chare of a trial goes back where it came from.
    pub(super) fn end_of_trial(step: Move) -> Self {
        Self { name: TRIAL, moves: vec![back(step)] }
    }

    /// Moves that made a run slower are taken back: loads and speeds do not say how chares wait for each other.
    pub(super) fn undo(moves: Vec<Move>) -> Self {
        Self { name: "undo", moves: moves.into_iter().map(back).collect() }
    }
}

const TRIAL: &str = "trial";

const fn back(step: Move) -> Move {
    Move { chare: step.chare, from: step.to, to: step.from }
}

impl Balancer for Listed {
    fn name(&self) -> &'static str {
        self.name
    }

    fn may_worsen(&self) -> bool {
        true
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        let mut owners = view.owners();
        for step in &self.moves {
            if let Some(owner) = owners.get_mut(step.chare as usize).filter(|owner| **owner == step.from) {
                *owner = step.to;
            }
        }
        owners.into()
    }
}
