//! Moves that made a run slower are taken back: loads and speeds do not say how chares wait for each other.

use crate::balance::view::Checked;
use crate::balance::{Balancer, Move, Wanted};

/// Chares that are still where these moves brought them go back where they came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo<'a>(pub(super) &'a [Move]);

impl Balancer for Undo<'_> {
    fn name(&self) -> &'static str {
        "undo"
    }

    fn may_worsen(&self) -> bool {
        true
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        let mut owners = view.owners();
        for step in self.0 {
            if let Some(owner) = owners.get_mut(step.chare as usize).filter(|owner| **owner == step.to) {
                *owner = step.from;
            }
        }
        owners.into()
    }
}
