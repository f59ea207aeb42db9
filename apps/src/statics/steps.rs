//! All steps of a problem, one after the other, whoever holds the blocks: boxes until there is no pressure, files after
//! each step, and in the window how far it is.

use super::block::Bounds;
use super::course::{Leg, Watch};
use super::pressure::{GPA, Search};
use super::problem::{Problem, Step};
use super::progress::Forecast;
use super::relax::{Spent, Stop};
use super::result::Piece;
use super::written::Written;
use chares::{Cx as _, Driver, RunError};
use std::time::{Duration, Instant};

/// Who holds the blocks.
pub(super) trait Holder {
    /// Takes a step, or another box of it. `tell` hears of every evaluation; that of the last has what ended it.
    ///
    /// # Errors
    /// What ends a run.
    fn relax(
        &mut self,
        main: &mut Driver,
        leg: Leg,
        tell: &mut dyn FnMut(&mut Driver, Watch),
    ) -> Result<(), RunError>;

    /// The atoms of all blocks.
    ///
    /// # Errors
    /// What ends a run.
    fn pieces(&mut self, main: &mut Driver) -> Result<Vec<Piece>, RunError>;
}

/// What a step came to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StepResult {
    /// The last that was told of it.
    pub last: Watch,
    /// What ended it.
    pub stop: Stop,
    /// The box.
    pub bounds: Bounds,
    /// Pressure in GPa (xx, yy, zz, yz, xz, xy), if the box was to have none.
    pub pressure: Option<[f64; 6]>,
}

/// How far the steps are.
#[derive(Default, Debug, PartialEq)]
pub(super) struct Taken {
    /// All steps that have ended.
    pub steps: Vec<StepResult>,
    /// All that was told, with the number of the step, from 0.
    pub watched: Vec<(usize, Watch)>,
}

/// Takes all steps; writes atoms after each, if asked, and how energy and forces went, also of steps that fail.
///
/// # Errors
/// A place or an energy that is no number, no box without pressure, a file that cannot be written, or what ends a run.
pub(super) fn take_all(
    main: &mut Driver,
    problem: &Problem,
    written: &Written<'_>,
    holder: &mut impl Holder,
) -> Result<Taken, RunError> {
    let mut taken = Taken::default();
    let result = take(main, problem, written, holder, &mut taken);
    let traced = written.trace(&taken.watched);
    result.and(traced).map(|()| taken)
}

impl Taken {
    /// Evaluations of all steps.
    pub(super) fn evaluations(&self) -> u64 {
        self.steps.iter().map(|step| step.last.evaluations).sum()
    }
}

/// Writes the atoms after the last step, if asked.
///
/// # Errors
/// A file that cannot be written, or what ends a run.
pub(super) fn write_end(
    main: &mut Driver,
    written: &Written<'_>,
    taken: &Taken,
    holder: &mut impl Holder,
) -> Result<(), RunError> {
    match taken.steps.last() {
        Some(last) if written.wants_atoms() => written.atoms(&holder.pieces(main)?, &last.bounds, None),
        _ => Ok(()),
    }
}

fn take(
    main: &mut Driver,
    problem: &Problem,
    written: &Written<'_>,
    holder: &mut impl Holder,
    taken: &mut Taken,
) -> Result<(), RunError> {
    let mut bounds = problem.crystal.bounds();
    for (number, step) in problem.steps.iter().enumerate() {
        let ended = take_step(main, problem, number, &mut bounds, holder, &mut taken.watched);
        let ended = ended.map_err(|error| match error {
            RunError::Wrong(sentence) => RunError::Wrong(format!("step {}: {sentence}", step.name)),
            other => other,
        })?;
        taken.steps.push(ended);
        if written.wants_each_step() {
            written.atoms(&holder.pieces(main)?, &bounds, Some(number))?;
        }
    }
    Ok(())
}

/// A step: one box, or box after box until there is no pressure.
fn take_step(
    main: &mut Driver,
    problem: &Problem,
    number: usize,
    bounds: &mut Bounds,
    holder: &mut impl Holder,
    watched: &mut Vec<(usize, Watch)>,
) -> Result<StepResult, RunError> {
    let step = &problem.steps[number];
    let mut display = Display::new(step, Turn(number, problem.steps.len()));
    let mut search = Search::new(&step.groups, step.max_pressure);
    let mut leg = Leg::of_step(number);
    loop {
        let mut last = None;
        holder.relax(main, leg, &mut |main, watch| {
            display.show(main, &watch);
            last = Some(watch.clone());
            watched.push((number, watch));
        })?;
        let Some((last, stop)) = last.and_then(|last| last.stop.map(|stop| (last, stop))) else {
            return Err(RunError::Failed("the relaxation has not ended".into()));
        };
        if let Stop::NotFinite(id) = stop {
            return Err(RunError::Wrong(not_finite(problem, id)));
        }
        let found = last.virial.map(|virial| virial / bounds.volume());
        let pressure = step.stretches().then(|| found.map(|pressure| pressure * GPA));
        let factors = match step.stretches() && stop.is_minimum() {
            true => search.next(&found).map_err(|none| RunError::Wrong(none.to_string()))?,
            false => None,
        };
        let Some(factors) = factors else { return Ok(StepResult { last, stop, bounds: *bounds, pressure }) };
        bounds.scale(factors);
        display.begin_box(step);
        let spent = Spent { iterations: last.iterations, evaluations: last.evaluations };
        leg = Leg { stretch: Some(factors), spent, ..leg };
    }
}

/// What to do about an atom whose place or force is no number.
fn not_finite(problem: &Problem, id: Option<u64>) -> String {
    let Some(id) = id else { return Stop::NotFinite(None).to_string() };
    format!(
        "the place or the force of atom {} is no finite number; is another atom at its place, or are atoms so near to each \
         other that the potential has no value there?",
        problem.crystal.name_of(id)
    )
}

/// Time between two lines in the window.
const REFRESH: Duration = Duration::from_millis(100);

/// A step, from 0, and how many there are.
struct Turn(usize, usize);

/// Shows in the window how far a relaxation is.
struct Display {
    turn: Turn,
    /// How many boxes came before.
    boxes: u32,
    forecast: Forecast,
    shown: Option<Instant>,
}

impl Display {
    fn new(step: &Step, turn: Turn) -> Self {
        let forecast = Forecast::new(step.limits.max_force);
        Self { turn, boxes: 0, forecast, shown: None }
    }

    fn begin_box(&mut self, step: &Step) {
        self.boxes += 1;
        self.forecast = Forecast::new(step.limits.max_force);
    }

    fn show(&mut self, main: &mut Driver, watch: &Watch) {
        self.forecast.watch(watch.max_force);
        if self.shown.is_some_and(|shown| shown.elapsed() < REFRESH) {
            return;
        }
        self.shown = Some(Instant::now());
        let of_box = if self.boxes > 0 { format!("box {}, ", self.boxes + 1) } else { String::new() };
        let of_step = match self.turn {
            Turn(_, 1) => String::new(),
            Turn(step, of) => format!("step {} of {of}, ", step + 1),
        };
        let expected = self.forecast.left().map(|left| watch.evaluations + left);
        let detail = format!("{:.3} eV, {:.1e} eV/A", watch.energy, watch.max_force);
        main.forecast(&format!("{of_step}{of_box}evaluation"), watch.evaluations, expected, &detail);
    }
}
