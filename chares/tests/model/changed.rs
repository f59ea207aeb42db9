//! Shared variables whose types change from one version of a program to the next.

use crate::checkpoints::{InMemory, Snapshot};
use chares::prelude::*;
use chares::{Better, InProcess, Program, Reduce, WriteOnce};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

/// What a run reads of its variables in the end: of a readonly and a write-once one, an accumulator and a monotonic one.
type Read = [f64; 4];

/// A program whose variables have fields of these types.
macro_rules! of_types {
    ($module:ident, $rates:ty, $seed:ty, $added:ty, $best:ty) => {
        mod $module {
            use super::*;

            #[derive(Serialize, Deserialize)]
            pub(super) struct Rates {
                pub(super) name: String,
                pub(super) step: $rates,
            }
            #[derive(Serialize, Deserialize)]
            pub(super) struct Seed(pub(super) Option<$seed>);
            #[derive(Serialize, Deserialize)]
            pub(super) struct Added {
                pub(super) count: $added,
            }
            #[derive(Clone, Serialize, Deserialize)]
            pub(super) struct Best {
                pub(super) cost: $best,
            }
            impl Reduce for Added {
                fn combine(&mut self, other: Self) {
                    self.count += other.count;
                }
            }
            impl Better for Best {
                fn better_than(&self, other: &Self) -> bool {
                    self.cost < other.cost
                }
            }

            pub(super) fn drive(main: &mut Driver) -> Result<Read, RunError> {
                let rates = main.readonly(Rates { name: "slow".into(), step: 0.5 })?;
                let added = main.accumulator::<Added>();
                let best = main.monotonic::<Best>();
                let (ready, is_ready) = main.pending();
                main.write_once(Seed(Some(6)), ready);
                let seed: WriteOnce<Seed> = is_ready.wait(main)?;
                added.add(main, Added { count: 3 });
                best.propose(main, Best { cost: 7 });
                for _ in 0..4 {
                    main.quiescence()?;
                }
                let seed = seed.read(main).map_or(0.0, |seed| seed.0.unwrap_or_default() as f64);
                let best = best.best(main).map_or(0.0, |best| best.cost as f64);
                let added = main.collect(&added)?.map_or(0.0, |added| added.count as f64);
                Ok([rates.read(main).step as f64, seed, added, best])
            }
        }
    };
}
of_types!(before, f32, u16, u32, u64);
of_types!(rates, f64, u16, u32, u64);
of_types!(seed, f32, i16, u32, u64);
of_types!(added, f32, u16, u64, u64);
of_types!(best, f32, u16, u32, i64);

const READ: Read = [0.5, 6.0, 3.0, 7.0];

fn program() -> Program {
    Program::new("variables", "1")
}

type Drive = fn(&mut Driver) -> Result<Read, RunError>;

/// The last checkpoint of a run.
fn snapshot(program: Program, drive: Drive) -> Snapshot {
    let (keeper, taken) = InMemory::new(1);
    let keeper = Mutex::new(Some(keeper));
    let read = program.run_in_process(&InProcess::new(&[2, 1]), |main| {
        if let Some(keeper) = keeper.lock().unwrap().take() {
            main.keep_checkpoints(Box::new(keeper));
        }
        drive(main)
    });
    assert_eq!(read.unwrap(), READ);
    taken.lock().unwrap().pop().expect("a run that waits has checkpoints")
}

fn go_on(snapshot: &Snapshot, program: Program, drive: Drive) -> Result<Read, String> {
    let read = program.run_in_process(&InProcess::new(&[1, 2]).begun(&[0, 2, 1]), |main| {
        main.go_on_from(snapshot.go_on())?;
        drive(main)
    });
    read.map_err(|error| error.to_string())
}

#[test]
fn a_variable_of_another_type_is_refused_by_the_path_of_its_field() {
    let snapshot = snapshot(program(), before::drive);
    assert_eq!(go_on(&snapshot, program(), before::drive), Ok(READ));
    for (drive, field, name) in [
        (rates::drive as Drive, "Rates.step was f32 and is f64 now", "Rates"),
        (seed::drive, "Seed was u16 and is i16 now", "Seed"),
        (added::drive, "Added.count was u32 and is u64 now", "Added"),
        (best::drive, "Best.cost was u64 and is i64 now", "Best"),
    ] {
        let sentence = format!(
            "the checkpoint is not of this program: {field}: go on with the program that wrote it, or list a migration from \
             version 1 of {name}"
        );
        assert_eq!(go_on(&snapshot, program(), drive), Err(sentence));
    }
    let mut unknown = snapshot;
    unknown.variables.clear();
    assert_eq!(go_on(&unknown, program(), before::drive), Ok(READ), "older checkpoints do not say it");
}

#[test]
fn what_the_driver_has_waited_for_and_is_made_of_other_things_now_is_refused() {
    let old = snapshot(program(), |main| {
        main.once("the weather", |_| Ok(300_u64))?;
        main.quiescence()?;
        Ok(READ)
    });
    let now: Drive = |main| {
        main.once("the weather", |_| Ok("fair".to_string()))?;
        main.quiescence()?;
        Ok(READ)
    };
    assert_eq!(
        go_on(&old, program(), now).unwrap_err(),
        "the checkpoint is of another version of this program: the driver has waited for the weather, and it was u64 and is text \
         now; go on with the program that wrote it"
    );
}

#[test]
fn variables_are_migrated() {
    let old = snapshot(program(), before::drive);
    let doubled = |old: before::Rates| match old.step {
        step if step > 1.0 => Err(format!("{} is too fast", old.name)),
        step => Ok(rates::Rates { name: old.name, step: f64::from(step) * 2.0 }),
    };
    let migrated = || program().migrate_variable(1, doubled);
    assert_eq!(go_on(&old, migrated(), rates::drive), Ok([1.0, 6.0, 3.0, 7.0]));
    let wider = |old: before::Added| Ok::<_, String>(added::Added { count: 10 * u64::from(old.count) });
    assert_eq!(go_on(&old, program().migrate_variable(1, wider), added::drive), Ok([0.5, 6.0, 30.0, 7.0]));
    let signed = |old: before::Best| Ok::<_, String>(best::Best { cost: 5 - old.cost as i64 });
    assert_eq!(go_on(&old, program().migrate_variable(1, signed), best::drive), Ok([0.5, 6.0, 3.0, -2.0]));

    let never = |_: before::Rates| Err::<rates::Rates, _>("it is gone".to_string());
    let failed = go_on(&old, program().migrate_variable(1, never), rates::drive).unwrap_err();
    assert!(
        failed.starts_with("Rates of variable ") && failed.ends_with(" cannot be migrated: it is gone"),
        "{failed}"
    );
    let from_another = |_: best::Best| Err::<rates::Rates, _>(String::new());
    let refused = go_on(&old, program().migrate_variable(1, from_another), rates::drive).unwrap_err();
    assert!(
        refused.contains("in its migration from version 1: that is not from what was saved"),
        "{refused}"
    );

    // What such a program saves is of the next version.
    let new = snapshot(migrated(), before::drive);
    assert_eq!(
        new.variables.iter().map(|of| of.schema.version).max(),
        Some(1),
        "no variable is of the new type"
    );
    let kept: fn(before::Rates) -> Result<before::Rates, String> = Ok;
    let new = snapshot(program().migrate_variable(1, kept), before::drive);
    let refused = go_on(&new, program(), before::drive).unwrap_err();
    assert!(refused.contains("Rates was of version 2 and is of 1 now: "), "{refused}");
}

/// What the driver waits for, of other things from one version to the next.
macro_rules! waits_for {
    ($module:ident, $count:ty, $rate:ty) => {
        mod $module {
            use super::*;

            #[derive(Serialize, Deserialize)]
            pub(super) struct Looked {
                count: $count,
                rates: Vec<$rate>,
            }

            pub(super) fn drive(main: &mut Driver) -> Result<Read, RunError> {
                let first = main.once("a look", |_| Ok(Looked { count: 1, rates: vec![0.5] }))?;
                main.quiescence()?;
                let second = main.once("a look", |_| Ok(Looked { count: 2, rates: Vec::new() }))?;
                for _ in 0..3 {
                    main.quiescence()?;
                }
                let rates = first.rates.len() + second.rates.len();
                Ok([first.count as f64, second.count as f64, rates as f64, READ[3]])
            }
        }
    };
}
waits_for!(looked, u32, f64);
waits_for!(looked_wide, u64, f64);
waits_for!(looked_short, u32, f32);

/// The bytes of a count are the same in both: only what the checkpoint says of them tells that they are others.
#[test]
fn what_the_driver_has_waited_for_is_refused_by_the_path_of_its_field_too() {
    let (keeper, taken) = InMemory::new(1);
    let keeper = Mutex::new(Some(keeper));
    let read = program().run_in_process(&InProcess::new(&[2, 1]), |main| {
        if let Some(keeper) = keeper.lock().unwrap().take() {
            main.keep_checkpoints(Box::new(keeper));
        }
        looked::drive(main)
    });
    assert_eq!(read.unwrap(), [1.0, 2.0, 1.0, 7.0]);
    let snapshot = taken.lock().unwrap().pop().expect("a run that waits has checkpoints");
    assert_eq!(go_on(&snapshot, program(), looked::drive), Ok([1.0, 2.0, 1.0, 7.0]));
    for (drive, change) in [
        (looked_wide::drive as Drive, "Looked.count was u32 and is u64 now"),
        (looked_short::drive, "Looked.rates[] was f64 and is f32 now"),
    ] {
        let sentence = format!(
            "the checkpoint is of another version of this program: the driver has waited for a look, and {change}; go on with the \
             program that wrote it"
        );
        assert_eq!(go_on(&snapshot, program(), drive), Err(sentence));
    }
}
