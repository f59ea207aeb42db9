//! One chare goes to a PE that all have left, to see whether it has become fast again. Nothing else would show that.

use crate::balance::view::{Checked, Times};
use crate::balance::{Balancer, Wanted};

/// The chare, and where it goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    chare: usize,
    to: u32,
}

impl Trial {
    /// The lightest that may go there of those on the PE that ends last, if that has another one. `None` if there is none.
    pub(super) fn to(to: u32, view: &Checked<'_>, times: &Times) -> Option<Self> {
        let ends = |pe: &usize| times.work[*pe] / times.speed[*pe];
        let last = (0..times.work.len()).max_by(|one, other| ends(one).total_cmp(&ends(other)))?;
        let held =
            || (0..).zip(&view.chares).filter(|(_, chare)| chare.pe as usize == last && chare.load > 0.0);
        let may_go = held().filter(|(number, _)| view.may_live(*number, to));
        let (chare, _) = may_go.min_by(|(_, one), (_, other)| one.load.total_cmp(&other.load))?;
        (held().count() > 1 && last != to as usize).then_some(Self { chare: chare as usize, to })
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
