//! What a driver has waited for: remembered, and given again when it is run again.
//!
//! A checkpoint says what each outcome was made of, by types that are each told once. So a driver that waits for something that is
//! made of other things now is refused by the path of the field, rather than given bytes that mean something else.

use super::Driver;
use super::variables::Made;
use crate::Message;
use crate::checkpoint::{Outcome, OutcomeTypes, changed, made_of_others};
use crate::program::RunError;
use crate::pup;
use runtime::ids::PeId;
use runtime::pe::Pe;
use runtime::schema::{difference, shape_of};
use std::any::TypeId;
use std::collections::{HashMap, HashSet};

/// What the driver has waited for so far, in order.
#[derive(Default)]
pub(super) struct Outcomes {
    pub(super) all: Vec<Outcome>,
    /// The number of the type of each.
    of: Vec<u32>,
    types: Vec<Made>,
    numbers: HashMap<TypeId, u32>,
}

/// What it is called that the home of a chare is remembered.
const HOME: &str = "where a chare has its home";

/// Which types have been compared: the number of that in the checkpoint, and that of now.
pub(super) type Compared = HashSet<(u32, TypeId)>;

impl Outcomes {
    fn push<T: Message>(&mut self, outcome: Outcome) {
        let types = &mut self.types;
        let number = *self.numbers.entry(TypeId::of::<T>()).or_insert_with(|| {
            types.push(Made::of::<T>());
            types.len() as u32 - 1
        });
        self.of.push(number);
        self.all.push(outcome);
    }

    /// What they are made of.
    pub(super) fn types(&self) -> OutcomeTypes {
        let types = self.types.iter().map(|made| ((made.name)(), (made.shape)()));
        OutcomeTypes { types: types.collect(), of: self.of.clone() }
    }
}

impl Driver {
    /// Does something, unless it was done before the checkpoint from which the run goes on; its outcome, with a name that is made
    /// where it is needed.
    pub(super) fn remember<T: Message>(
        &mut self,
        what: impl FnOnce() -> String,
        work: impl FnOnce(&mut Self) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        // Of what is remembered as a whole, no part may be: a run that goes on does all of it again, or nothing.
        if self.history.is_inside() {
            return self.inside(work);
        }
        self.understand_variables()?;
        if let Some(replay) = &mut self.history.replay {
            if let Some(outcome) = replay.left.pop_front() {
                let what = what();
                if outcome.what != what {
                    return Err(self.differs(&outcome.what, &what));
                }
                let result = self.given_again(&what, &outcome)?;
                self.history.outcomes.push::<T>(outcome);
                return Ok(result);
            }
            self.inside(Self::go_live)?;
        }
        let result = self.inside(work)?;
        if self.history.is_kept() {
            let outcome = Outcome { what: what(), result: pup::pack(&result) };
            self.history.outcomes.push::<T>(outcome);
        }
        Ok(result)
    }

    /// Where a chare that the driver makes has its home: a driver that is run again names it so again, though speeds may be others by
    /// then. Checkpoints of before this was remembered do not say it.
    pub(super) fn remembered_home(&mut self, choose: impl FnOnce(&mut Pe) -> PeId) -> PeId {
        let chosen = choose(&mut self.pe);
        if self.history.is_inside() {
            return chosen;
        }
        let Some(replay) = &mut self.history.replay else {
            if self.history.is_kept() {
                let outcome = Outcome { what: HOME.into(), result: pup::pack(&chosen.0) };
                self.history.outcomes.push::<u32>(outcome);
            }
            return chosen;
        };
        let Some(outcome) = replay.left.pop_front_if(|next| next.what == HOME) else { return chosen };
        let home = pup::unpack(&outcome.result).map_or(chosen, PeId);
        self.history.outcomes.push::<u32>(outcome);
        home
    }

    /// The next outcome of then, if it is made of what it would be made of now.
    fn given_again<T: Message>(&mut self, what: &str, outcome: &Outcome) -> Result<T, RunError> {
        let number = self.history.outcomes.all.len();
        if let Some(replay) = &mut self.history.replay
            && let Some((of, name, shape)) = replay.saved.types.of(number)
            && replay.compared.insert((of, TypeId::of::<T>()))
            && let Some(change) = difference(shape, &shape_of::<T>())
        {
            return Err(RunError::Input(changed(what, name, &change)));
        }
        let of_other_things = |_| RunError::Input(made_of_others(what, "it was made of other things then"));
        pup::unpack(&outcome.result).map_err(of_other_things)
    }

    fn differs(&self, then: &str, now: &str) -> RunError {
        let number = self.history.outcomes.all.len() + 1;
        RunError::Input(format!(
            "the driver does not do what it did before the checkpoint: as number {number} it waited for {then} then, and for \
             {now} now; take what may differ from run to run from `Driver::once`"
        ))
    }
}
