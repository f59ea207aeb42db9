//! One chare goes to a PE that all have left, to see whether it has become fast again: what it shows by computing for
//! nothing is not all that counts, and may be misleading.

use crate::balance::view::{Checked, Times};
use crate::balance::{Balancer, Move, Wanted};

/// The chare, and where it goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    chare: usize,
    to: u32,
}

impl Trial {
    /// The lightest that may go there of those on the PE that ends last, if that has another one. `None` if there is none.
    pub(super) fn to(to: u32, view: &Checked<'_>, times: &Times) -> Option<Self> {
        let last = times.last()?;
        let held = || (0..).zip(&view.chares).filter(|(_, chare)| chare.pe == last && chare.load > 0.0);
        let may_go = held().filter(|(number, _)| view.may_live(*number, to));
        let (chare, _) = may_go.min_by(|(_, one), (_, other)| one.load.total_cmp(&other.load))?;
        (held().count() > 1 && last != to).then_some(Self { chare: chare as usize, to })
    }

    /// The chare of a trial goes back where it came from.
    pub(super) const fn back(step: &Move) -> Self {
        Self { chare: step.chare as usize, to: step.from }
    }
}

impl Balancer for Trial {
    fn name(&self) -> &'static str {
        "trial"
    }

    fn may_worsen(&self) -> bool {
        true
    }

    fn wanted(&self, view: &Checked<'_>) -> Wanted {
        let mut owners = view.owners();
        if let Some(owner) = owners.get_mut(self.chare) {
            *owner = self.to;
        }
        owners.into()
    }
}
