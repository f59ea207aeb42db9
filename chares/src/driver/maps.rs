//! What a program shows of itself while it runs, and only while somebody looks.

use super::Driver;
use crate::program::RunError;
use runtime::monitor::map::Map;
use std::time::{Duration, Instant};

/// Places for results that are waited for while maps are made have numbers from here on, so that a driver that is run again
/// without making them gives all others the numbers of then.
const FIRST_SLOT: u64 = 1 << 62;
/// Maps are not made more often.
const PERIOD: Duration = Duration::from_millis(100);
/// Between the begins of two there is so many times the time that it takes to make one.
const SPARED: u32 = 10;

/// Who sees maps: whether there is anybody now, and what is told them.
struct Viewers {
    are_there: Box<dyn Fn() -> bool + Send>,
    see: Box<dyn Fn(Map) + Send>,
}

/// What was shown, and to whom.
#[derive(Default)]
pub(super) struct Shown {
    viewers: Option<Viewers>,
    /// Not before this moment.
    due: Option<Instant>,
    /// The last place for a result that was made for maps.
    last_slot: u64,
    /// Whether maps are being made now, and which was the last place for a result before that.
    before: Option<u64>,
}

impl Shown {
    /// Whether a result for this place comes from what was asked for maps that have been made.
    pub(super) fn is_over(&self, slot: u64) -> bool {
        slot > FIRST_SLOT && self.before.is_none_or(|before| slot <= before)
    }
}

impl Driver {
    /// What is [shown](Self::show) goes to `see`, as long as `are_there` says that somebody looks: for whoever starts runs.
    pub fn on_maps(
        &mut self,
        are_there: impl Fn() -> bool + Send + 'static,
        see: impl Fn(Map) + Send + 'static,
    ) {
        self.shown.viewers = Some(Viewers { are_there: Box::new(are_there), see: Box::new(see) });
    }

    /// Shows what `maps` makes, in the window and in recordings, each map in the place of the one before it with that title.
    /// It is called only if somebody sees maps now, at most ten times a second and for at most about a tenth of the time; so
    /// a driver may say this as often as it likes, such as after each step.
    ///
    /// `maps` may ask chares and has to wait for all their answers. What chares compute must not depend on whether they are
    /// asked: an answer is [sent](crate::Callback::send) to the driver, and not contributed to a reduction where they
    /// contribute to others of their own accord, whose order would differ. Nothing of it is in checkpoints.
    ///
    /// # Errors
    /// Those of `maps`; if it makes collections, sections or variables; or if the run fails meanwhile.
    ///
    /// # Examples
    ///
    /// ```
    /// use chares::prelude::*;
    /// use chares::{Axis, Map};
    ///
    /// #[chare]
    /// struct Rod {
    ///     heat: f64,
    /// }
    ///
    /// #[chare]
    /// impl Rod {
    ///     fn new(ctx: &mut Ctx<Self>, _: ()) -> Self {
    ///         Self { heat: f64::from(ctx.index()) }
    ///     }
    ///
    ///     #[entry]
    ///     fn heat(&self) -> f64 {
    ///         self.heat
    ///     }
    /// }
    ///
    /// fn drive(main: &mut Driver) -> Result<u32, RunError> {
    ///     let rods = main.array::<Rod>(4, ());
    ///     let mut shown = 0;
    ///     for _ in 0..3 {
    ///         main.show(|main| {
    ///             shown += 1;
    ///             let asked = (0..4).map(|rod| rods.at(rod).heat().ask(main));
    ///             let heats = asked.collect::<Result<Vec<f64>, RunError>>()?;
    ///             let axes = [Axis::new("x", 0.0, 4.0), Axis::new("y", 0.0, 1.0)];
    ///             Ok(vec![Map::new("heat", axes, 4, &heats)])
    ///         })?;
    ///     }
    ///     Ok(shown)
    /// }
    ///
    /// let program = Program::new("rods", "1");
    /// assert_eq!(program.run_in_process(&InProcess::new(&[2]), drive)?, 0, "nobody looks");
    /// # Ok::<(), RunError>(())
    /// ```
    pub fn show(
        &mut self,
        maps: impl FnOnce(&mut Self) -> Result<Vec<Map>, RunError>,
    ) -> Result<(), RunError> {
        if self.shown.due.is_some_and(|due| Instant::now() < due) {
            return Ok(());
        }
        self.show_last(maps)
    }

    /// The same for what is to be seen though something was shown only just before: how it is at the end.
    ///
    /// # Errors
    /// As of [`show`](Self::show).
    pub fn show_last(
        &mut self,
        maps: impl FnOnce(&mut Self) -> Result<Vec<Map>, RunError>,
    ) -> Result<(), RunError> {
        // What is done again was seen then.
        let is_seen = self.shown.viewers.as_ref().is_some_and(|viewers| (viewers.are_there)());
        if self.history.replay.is_some() || !is_seen {
            return Ok(());
        }
        let (began, serial) = (Instant::now(), self.pe.serial());
        let made = self.making_maps(maps)?;
        if self.pe.serial() != serial {
            let sentence =
                "what makes maps to be shown may only ask: it has made collections, sections or variables";
            return Err(RunError::Failed(sentence.into()));
        }
        self.shown.due = Some(began + PERIOD.max(began.elapsed() * SPARED));
        if let Some(viewers) = &self.shown.viewers {
            made.into_iter().for_each(|map| (viewers.see)(map));
        }
        Ok(())
    }

    /// Does what leaves no trace in what the driver has done.
    fn making_maps<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, RunError>) -> Result<T, RunError> {
        let first = self.shown.last_slot.max(FIRST_SLOT);
        let next_slot = std::mem::replace(&mut self.next_slot, first);
        self.shown.before = Some(first);
        // Inside two waits no checkpoint is taken, whose messages would be answers that nobody waits for later.
        let result = self.inside(|main| main.inside(work));
        self.shown.before = None;
        self.shown.last_slot = std::mem::replace(&mut self.next_slot, next_slot);
        self.slots.retain(|slot, _| *slot <= FIRST_SLOT);
        result
    }
}
