//! Counts primes: nobody says who does what, or how long a part takes; the next goes to whoever is done with one.
use chares::prelude::*;

#[task]
fn primes_between(from: u64, to: u64) -> u64 {
    let has_divisor = |n: u64| (2..).take_while(|d| d * d <= n).any(|d| n.is_multiple_of(d));
    (from.max(2)..to).filter(|n| !has_divisor(*n)).count() as u64
}

pub fn drive(main: &mut Driver) -> Result<(), RunError> {
    let parts = (0..100).map(|part| (part * 1000, (part + 1) * 1000));
    let count: u64 = main.tasks(parts, primes_between).sum::<Result<_, _>>()?;
    println!("primes below 100000: {count}");
    Ok(())
}

fn main() -> Result<(), RunError> {
    Program::new("primes", "1.0").run_in_process(&InProcess::new(&[2, 1]), drive)
}
