//! Moments that a program calls good ones for a checkpoint, or for a move.

use crate::checkpoints::{Snapshot, run_and_keep};
use chares::prelude::*;
use chares::{Gather, InProcess, Program};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Counts how often it has been told to.
#[derive(Serialize, Deserialize)]
struct Stepper(u64);
#[derive(Serialize, Deserialize)]
struct Step(Callback<Sum<u64>>);
chares::entries!(Stepper: Step; reduces Sum<u64>);
impl Chare for Stepper {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self(0)
    }
}
impl Entry<Step> for Stepper {
    fn receive(&mut self, Step(to): Step, ctx: &mut Ctx<'_, Self>) {
        self.0 += 1;
        if ctx.index() == 0 && self.0.is_multiple_of(4) {
            ctx.checkpoint_point();
        }
        ctx.contribute(Sum(self.0), to);
    }
}

const STEPPERS: u32 = 5;

fn program() -> Program {
    Program::new("stepping", "1").chare::<Stepper>()
}

fn step(main: &mut Driver, steppers: &Array<Stepper>) -> Result<u64, RunError> {
    let (to, sum) = main.pending();
    steppers.broadcast(main, Step(to));
    Ok(sum.wait(main)?.0 / u64::from(STEPPERS))
}

/// What the driver gives, and the checkpoints that were taken at good moments alone.
fn run<R>(drive: impl Fn(&mut Driver) -> Result<R, RunError>) -> (R, Vec<Snapshot>) {
    run_and_keep(program(), &InProcess::new(&[2, 1]), |is_good_moment| is_good_moment, drive)
}

fn go_on<R>(from: &Snapshot, drive: impl Fn(&mut Driver) -> Result<R, RunError>) -> R {
    let again = program().run_in_process(&InProcess::new(&[1, 1, 1]).begun(&[0, 2, 1]), |main| {
        main.go_on_from(from.go_on())?;
        drive(main)
    });
    again.unwrap()
}

#[test]
fn a_driver_is_saved_where_it_says_so_and_goes_on_from_there() {
    let drive = |main: &mut Driver| {
        let steppers = main.array::<Stepper>(STEPPERS, ());
        let mut counted = 0;
        for at in 0..3 {
            counted = step(main, &steppers)?;
            if at == 1 {
                main.checkpoint_point()?;
            }
        }
        Ok(counted)
    };
    let (counted, taken) = run(drive);
    assert_eq!((counted, taken.len()), (3, 1));
    assert_eq!(go_on(&taken[0], drive), 3, "no step is done twice, and none is left out");
}

#[test]
fn a_chare_has_the_run_saved_soon_after_it_said_so() {
    let drive = |main: &mut Driver| {
        let steppers = main.array::<Stepper>(STEPPERS, ());
        // More steps than a hint needs to reach the launcher.
        (0..400).try_fold(0, |_, _| step(main, &steppers))
    };
    let (counted, taken) = run(drive);
    assert_eq!(counted, 400);
    assert!(!taken.is_empty(), "the fourth step was said to be a good moment");
    assert_eq!(go_on(taken.last().unwrap(), drive), 400);
}

#[test]
fn where_nobody_keeps_checkpoints_nothing_comes_of_it() {
    let counted = program().run_in_process(&InProcess::new(&[1]), |main| {
        let steppers = main.array::<Stepper>(STEPPERS, ());
        main.checkpoint_point()?;
        (0..8).try_fold(0, |_, _| step(main, &steppers))
    });
    assert_eq!(counted.unwrap(), 8);
}

/// What is remembered as a whole is done again as a whole, or not at all.
#[test]
fn no_checkpoint_is_taken_in_the_midst_of_what_is_done_once() {
    let drive = |main: &mut Driver| {
        let steppers = main.array::<Stepper>(STEPPERS, ());
        let (to, sum) = main.pending();
        let one = |main: &mut Driver| -> Result<u64, RunError> {
            steppers.broadcast(main, Step(to));
            Ok(sum.wait(main)?.0 / u64::from(STEPPERS))
        };
        let twice = main.once("two steps", |main| {
            one(main)?;
            main.checkpoint_point()?;
            one(main)
        })?;
        main.checkpoint_point()?;
        Ok((twice, step(main, &steppers)?))
    };
    let (steps, taken) = run_and_keep(program(), &InProcess::new(&[2, 1]), |_| true, drive);
    assert_eq!(steps, (2, 3));
    assert!(!taken.is_empty());
    for from in taken {
        assert_eq!(go_on(&from, drive), (2, 3));
    }
}

/// Notes where it is in each round, and says every fourth time that it may move now.
#[derive(Serialize, Deserialize)]
struct Commuter {
    places: Vec<u32>,
}
#[derive(Clone, Serialize, Deserialize)]
struct Round(Callback<Gather<Vec<u32>>>);
chares::entries!(Commuter: Round; reduces Gather<Vec<u32>> as "Places");
impl Chare for Commuter {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self { places: Vec::new() }
    }
}
impl Entry<Round> for Commuter {
    fn receive(&mut self, Round(to): Round, ctx: &mut Ctx<'_, Self>) {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_micros(200) {
            std::hint::spin_loop();
        }
        self.places.push(ctx.pe_id());
        if self.places.len().is_multiple_of(4) {
            ctx.migration_point();
        }
        ctx.contribute(Gather(vec![self.places.clone()]), to);
    }
}

#[test]
fn a_balancer_waits_for_the_moment_that_a_chare_calls_a_good_one() {
    let mix = InProcess::new(&[1, 1]).balance("rotate");
    let places = Program::new("commuting", "1").chare::<Commuter>().run_in_process(&mix, |main| {
        let commuters = main.array::<Commuter>(4, ());
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let (to, places) = main.pending();
            commuters.broadcast(main, Round(to));
            let Gather(places) = places.wait(main)?;
            let have_moved = places.iter().all(|of| of.windows(2).any(|pair| pair[0] != pair[1]));
            if have_moved || Instant::now() > deadline {
                return Ok(places);
            }
        }
    });
    for of in places.unwrap() {
        let moved: Vec<usize> = (1..of.len()).filter(|round| of[round - 1] != of[*round]).collect();
        assert!(!moved.is_empty() && moved.iter().all(|round| round.is_multiple_of(4)), "{moved:?}");
    }
}
