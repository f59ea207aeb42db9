//! The driver: makes the ring, waits for its sums and its end, and compares them with a serial computation.

use super::arguments::{Imbalance, Loads};
use super::division::divide;
use super::problem::Problem;
use super::serial::{Expected, add, expected};
use super::walker::{Added, Ended, Go, Walker, WalkerInit};
use crate::matrix::npy::{NpyWriteError, NpyWriter};
use chares::loadbalance::balance::patterns::Task;
use chares::{Array, Cx, Driver, Gather, Placement, RunError};

/// Runs the ring as the command line asks.
pub(super) fn drive(main: &mut Driver, imbalance: Imbalance) -> Result<(), RunError> {
    let division = divide(&imbalance, main.machines())?;
    division.state(main);
    main.phase("making the chares", 0, 0);
    let problem = Problem::of(&imbalance);
    let (added, sums) = main.pending();
    let (ended, ends) = main.pending();
    let setup = WalkerInit { problem: problem.clone(), added, ended };
    main.parts(u64::from(problem.chares), "chares", |good| Some(format!("--chares {good}")));
    let placement = Placement::Bounds(division.owners);
    let ring: Array<Walker> = main.array_placed(problem.chares, setup, placement);
    main.init_over()?;
    main.expect_progress("stepping", imbalance.chare_steps())?;
    ring.broadcast(main, Go);
    let steps = (0..problem.steps).filter(|step| problem.adds_before(*step));
    let sums = steps.map(|_| sums.wait(main)).collect::<Result<Vec<Added>, _>>()?;
    let Gather(ends) = ends.wait(main)?;
    main.timed_over()?;
    state(main, &imbalance, &ends);
    if let Some(path) = &imbalance.out {
        let unwritten = |error: NpyWriteError| RunError::Output(error.to_string());
        let numbers: Vec<i64> = ends.iter().map(|end| end.number.cast_signed()).collect();
        let mut file = NpyWriter::create(path, numbers.len(), 1).map_err(unwritten)?;
        file.write_rows(0, &numbers).map_err(unwritten)?;
        file.finish().map_err(unwritten)?;
    }
    if imbalance.verify { verify(main, &problem, &sums, &ends) } else { Ok(()) }
}

/// States work and result in the report.
fn state(main: &mut Driver, imbalance: &Imbalance, ends: &[Ended]) {
    let units: u64 = ends.iter().map(|end| end.units).sum();
    let result = ends.iter().fold(0, |sum, end| add(sum, end.number));
    let outcome = main.outcome();
    outcome.work(units as f64);
    outcome.fact("pattern", serde_json::to_value(imbalance.pattern).unwrap_or_default());
    outcome.fact("chares", imbalance.chares);
    outcome.fact("steps", imbalance.steps);
    outcome.fact("units_of_chare_and_step", imbalance.work);
    outcome.fact("state_bytes", imbalance.state);
    outcome.fact("result", format!("{result:016x}"));
    if imbalance.pattern == Loads::Slots {
        let problem = Problem::of(imbalance);
        let of = |task| (0..imbalance.chares).filter(|chare| problem.task(*chare) == Some(task)).count();
        outcome.fact("anywhere", of(Task::Replicated));
        outcome.fact("near", of(Task::Local));
        outcome.fact("pinned", of(Task::Split));
    }
    let step_s = outcome.all_timed().map(|timed| timed.as_secs_f64() / f64::from(imbalance.steps));
    outcome.fact("step_s", step_s);
    outcome.remark(&format!(
        "{} chares, {} steps{}; the sum of all their numbers at the end is {result:016x}",
        imbalance.chares,
        imbalance.steps,
        step_s.map_or_else(String::new, |step_s| format!(" of {:.3} ms each", 1e3 * step_s))
    ));
}

fn verify(main: &mut Driver, problem: &Problem, sums: &[Added], ends: &[Ended]) -> Result<(), RunError> {
    main.phase("verifying", 0, 0);
    main.outcome().collected();
    let wrong = first_wrong(&expected(problem), sums, ends);
    main.outcome().verified_by(wrong.is_none(), "every bit as computed serially".into());
    wrong.map_or(Ok(()), |sentence| Err(RunError::Wrong(sentence)))
}

/// What is wrong with a result, if anything is.
fn first_wrong(expected: &Expected, sums: &[Added], ends: &[Ended]) -> Option<String> {
    let differs = |(at, (one, other)): (usize, (u64, &u64))| (one != *other).then_some(at);
    let of_sums = sums.iter().map(|added| added.sum).zip(&expected.sums).enumerate().find_map(differs);
    if let Some(at) = of_sums {
        return Some(format!("the sum before step {} is wrong", sums[at].step));
    }
    let of_ends = ends.iter().map(|end| end.number).zip(&expected.ends).enumerate().find_map(differs);
    if let Some(chare) = of_ends {
        return Some(format!("the number that chare {chare} ends with is wrong"));
    }
    let is_complete = (sums.len(), ends.len()) == (expected.sums.len(), expected.ends.len());
    (!is_complete).then(|| format!("{} of {} chares have ended", ends.len(), expected.ends.len()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use super::*;

    #[test]
    fn whatever_is_wrong_is_named() {
        let problem =
            Problem::of(&of(&["--chares", "3", "--steps", "7", "--work", "9", "--reduce-every", "3"]));
        let expected = expected(&problem);
        let sums: Vec<Added> =
            [3, 6].into_iter().zip(&expected.sums).map(|(step, &sum)| Added { step, sum }).collect();
        let ends: Vec<Ended> = expected.ends.iter().map(|&number| Ended { number, units: 1 }).collect();
        assert_eq!((sums.len(), first_wrong(&expected, &sums, &ends)), (2, None));
        let said = |sums: &[Added], ends: &[Ended]| first_wrong(&expected, sums, ends).unwrap();
        let (mut others, mut late) = (ends.clone(), sums.clone());
        others[2].number ^= 1;
        late[1].sum ^= 1;
        assert_eq!(said(&sums, &others), "the number that chare 2 ends with is wrong");
        assert_eq!(said(&late, &ends), "the sum before step 6 is wrong");
        assert_eq!(said(&sums, &ends[..2]), "2 of 3 chares have ended");
    }
}
