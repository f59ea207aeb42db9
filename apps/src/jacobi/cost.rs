//! What a run takes, reckoned beforehand.

use super::arguments::Jacobi;
use super::division::divide;
use super::rehearsal;
use crate::division::Division;
use chares::RunError;
use chares::loadbalance::cost::Phase;
use chares::loadbalance::machines::Machines;

/// What is reckoned with, for people.
pub(super) const MODEL: &str = "iterations of rows by speed and an exchange of x, which a PE's own parts of x may hide; \
                                as many iterations as were made, or as a small system of the same kind takes, solved here";

/// The iterations, each a phase of work and an exchange.
///
/// # Errors
/// If the rows cannot be divided by these speeds.
pub(super) fn cost(jacobi: &Jacobi, machines: &Machines, known: Option<f64>) -> Result<Vec<Phase>, RunError> {
    let of_each = jacobi.work_of_iteration();
    let reckoned = known.unwrap_or_else(|| jacobi.work()) / of_each.max(1.0);
    let times = match jacobi.generated().filter(|_| known.is_none() && jacobi.promises_convergence()) {
        Some(of) => rehearsal::iterations(&of, jacobi.tolerance()).min(reckoned),
        None => reckoned,
    };
    let Division { shares, bytes, .. } = divide(jacobi, machines)?;
    let work: Vec<f64> = shares.iter().map(|share| share * of_each).collect();
    // While others' parts are under way, a PE computes with its own blocks': a share of its rows' columns.
    let exchange = Phase { times: 1.0, bytes: bytes.clone(), rounds: 1.0, ..Phase::default() };
    let exchange_s = machines.reckon(&[exchange]).seconds;
    let hidden_s = (shares.iter().zip(&work).zip(&machines.rates()))
        .map(|((share, work), rate)| share * work / rate)
        .fold(f64::INFINITY, f64::min);
    let is_overlapped = exchange_s <= hidden_s || !jacobi.is_dense();
    let is_guess = known.is_none() && !jacobi.promises_convergence();
    Ok(vec![Phase { times, work, bytes, rounds: 1.0, is_overlapped, is_guess, ..Phase::default() }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::loadbalance::machines::Link;
    use clap::{Args as _, Command, FromArgMatches as _};

    fn jacobi(words: &[&str]) -> Jacobi {
        let command = Jacobi::augment_args(Command::new("jacobi"));
        Jacobi::from_arg_matches(&command.get_matches_from([&["jacobi"], words].concat())).unwrap()
    }

    const LINK: Link = Link { latency_s: 2e-5, bytes_per_s: 2e9 };

    #[test]
    fn iterations_are_those_that_were_made_and_a_laplacian_exchanges_little() {
        let two = Machines::on_one_host(&[&[1e9, 1e9], &[1e9]], LINK);
        let dense = jacobi(&["--n", "3000"]);
        let phase = |jacobi: &Jacobi, known| cost(jacobi, &two, known).unwrap().remove(0);
        let made = phase(&dense, Some(7.0 * dense.work_of_iteration()));
        assert!((made.times - 7.0).abs() < 1e-9 && phase(&dense, None).times > 7.0);
        let files = jacobi(&["--a", "a.npy", "--b", "b.npy"]);
        assert!(!phase(&dense, None).is_guess && !made.is_guess && !files.promises_convergence());
        assert!((made.work.iter().sum::<f64>() / dense.work_of_iteration() - 1.0).abs() < 1e-9);
        assert_eq!((made.bytes[0].sent, made.bytes[1].received), (16_000.0, 16_000.0));
        let laplace = jacobi(&["--n", "1000000", "--generate", "laplace2d"]);
        let exchanged = phase(&laplace, None).bytes[1];
        assert!(exchanged.received <= 2.0 * 8.0 * 1000.0, "{exchanged:?}");
    }
}
