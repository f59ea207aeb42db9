//! Other nodes know no closures of this process.
use chares::prelude::*;

fn drive(main: &mut Driver) -> Result<u64, RunError> {
    main.tasks(1..9, |n: u64| n * n).sum() //~ is not a task
}

fn main() {}
