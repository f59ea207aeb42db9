//! Work of unknown amount: every input is done once, whatever moves, leaves or goes on meanwhile.

use crate::{failure, on_every_mix};
use chares::prelude::*;
use std::cell::Cell;
use std::collections::BTreeSet;

/// How many steps the sequence of Collatz takes to come down to 1.
#[task]
fn collatz(from: u64) -> u32 {
    match from {
        1 => 0,
        even if even.is_multiple_of(2) => 1 + collatz(even / 2),
        odd => 1 + collatz(3 * odd + 1),
    }
}

/// The parts of a range, if it is too long to be dealt with as a whole.
#[task]
fn split((from, to): (u32, u32)) -> Result<u64, [(u32, u32); 2]> {
    let middle = from.midpoint(to);
    if to - from > 7 { Err([(from, middle), (middle, to)]) } else { Ok((from..to).map(u64::from).sum()) }
}

#[task]
fn divide(a: u32, b: u32) -> u32 {
    a / b
}

#[test]
fn outputs_come_in_the_order_of_the_inputs_or_as_they_come() {
    on_every_mix(
        || Program::new("tasks", "1"),
        |main| {
            let expected: Vec<u32> = (1..40).map(*collatz).collect();
            let ordered: Vec<u32> = main.tasks(1..40, collatz).collect::<Result<_, _>>()?;
            assert_eq!(ordered, expected);
            let came: Vec<(u64, u32)> =
                main.tasks(1..40, collatz).under_way(3).as_they_come().collect::<Result<_, _>>()?;
            assert!(came.iter().all(|&(number, steps)| steps == expected[number as usize]));
            assert_eq!(came.iter().map(|(number, _)| number).collect::<BTreeSet<_>>().len(), 39);
            assert_eq!(main.tasks([], collatz).count(), 0);
            Ok(())
        },
    );
}

#[test]
fn work_that_turns_out_to_consist_of_more_is_added_on_the_way() {
    on_every_mix(
        || Program::new("tasks", "1"),
        |main| {
            let (mut sum, mut count) = (0, 0);
            let mut tasks = main.tasks([(0, 100)], split).as_they_come();
            while let Some(output) = tasks.next() {
                count += 1;
                match output?.1 {
                    Ok(part) => sum += part,
                    Err(halves) => halves.into_iter().for_each(|half| tasks.add(half)),
                }
            }
            assert_eq!((sum, count), ((0..100).sum(), 31), "16 leaves of a binary tree");
            Ok(())
        },
    );
}

#[test]
fn no_more_inputs_are_taken_than_may_be_under_way() {
    for under_way in [1, 2, 5] {
        let program = Program::new("tasks", "1");
        let run = program.run_in_process(&InProcess::new(&[2, 1]), |main| {
            let taken = Cell::new(0);
            let inputs = (1..=30).inspect(|_| taken.set(taken.get() + 1));
            let mut given = 0;
            for output in main.tasks(inputs, collatz).under_way(under_way).as_they_come() {
                output?;
                given += 1;
                assert!(taken.get() < given + under_way + 1, "{} of {under_way} after {given}", taken.get());
            }
            assert_eq!((taken.get(), given), (30, 30));
            Ok(())
        });
        run.unwrap();
    }
}

#[test]
fn a_task_that_panics_ends_the_run_named() {
    let why = failure(Program::new("tasks", "1"), |main| {
        let mut outputs = main.tasks([(4, 2), (1, 0), (6, 3)], divide);
        assert_eq!(outputs.next().unwrap()?, 2);
        let failed = outputs.next().unwrap().unwrap_err();
        assert!(outputs.next().is_none(), "after an error there are no more");
        Err(failed)
    });
    assert!(why.contains("Doer<divide>") && why.contains("attempt to divide by zero"), "{why}");
}
