//! What a run takes, reckoned beforehand.

use super::arguments::{Algorithm, Apsp};
use super::drive::Job;
use super::floyd;
use crate::division::{self, Division};
use chares::RunError;
use chares::loadbalance::cost::Phase;
use chares::loadbalance::machines::Machines;

/// What is reckoned with, for people.
pub(super) const MODEL: &str = "sources dealt out while it runs, so that all end together (dijkstra); or sums of the \
                                blocks that each PE holds, while blocks of the pivot's row and column travel \
                                (floyd-warshall)";
/// The pivot's block, then one of its row or column, before any other: messages that follow one another in a round.
const ROUNDS_OF_PIVOT: f64 = 2.0;

/// The search as a phase of work and bytes.
///
/// # Errors
/// If blocks cannot be divided by these speeds.
pub(super) fn cost(apsp: &Apsp, machines: &Machines, known: Option<f64>) -> Result<Vec<Phase>, RunError> {
    let work = known.unwrap_or_else(|| apsp.work());
    match apsp.algorithm {
        Algorithm::Dijkstra => Ok(vec![Phase {
            times: 1.0,
            work: machines.divided_by_speed(work),
            rounds: 1.0,
            ..Phase::default()
        }]),
        Algorithm::FloydWarshall => blocks(apsp, machines, work),
    }
}

fn blocks(apsp: &Apsp, machines: &Machines, work: f64) -> Result<Vec<Phase>, RunError> {
    let job = Job { vertices: apsp.recipe().vertices, sources: 0..0, kind: apsp.likely_type() };
    let plan = floyd::plan(apsp, &job, 0)?;
    let Division { shares, bytes, .. } = division::divide(&plan, machines, machines.speeds())?;
    let work = shares.into_iter().map(|share| share * work).collect();
    let rounds = f64::from(plan.blocks.0) * ROUNDS_OF_PIVOT;
    Ok(vec![Phase { times: 1.0, work, bytes, rounds, is_overlapped: true, ..Phase::default() }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::loadbalance::machines::{Bytes, Link};
    use clap::{Args as _, Command, FromArgMatches as _};

    fn apsp(words: &[&str]) -> Apsp {
        let matches = Apsp::augment_args(Command::new("apsp")).get_matches_from([&["apsp"], words].concat());
        Apsp::from_arg_matches(&matches).unwrap()
    }

    const LINK: Link = Link { latency_s: 2e-5, bytes_per_s: 2e9 };

    #[test]
    fn sources_take_what_speeds_permit_and_blocks_travel_between_nodes_only() {
        let (one, two) = (
            Machines::on_one_host(&[&[4.0, 4.0]], LINK),
            Machines::on_one_host(&[&[4.0, 4.0], &[2.0]], LINK),
        );
        let dijkstra = apsp(&["--n", "1000"]);
        let seconds = two.reckon(&cost(&dijkstra, &two, None).unwrap()).seconds;
        assert!((seconds - 100.0).abs() < 0.01, "{seconds}");
        let floyd = apsp(&["--algorithm", "floyd-warshall", "--n", "1024"]);
        let phases = cost(&floyd, &two, None).unwrap();
        let all: f64 = phases[0].work.iter().sum();
        assert!((all / floyd.work() - 1.0).abs() < 1e-9);
        let [sent, received]: [f64; 2] =
            [|b: &Bytes| b.sent, |b: &Bytes| b.received].map(|of| phases[0].bytes.iter().map(of).sum());
        // At least the matrix once each way of a cut: 1024 x 1024 numbers of 4 bytes.
        assert!((sent - received).abs() < 1.0 && sent >= 4.0 * 1024.0 * 1024.0, "{sent} {received}");
        let alone = cost(&floyd, &one, None).unwrap();
        assert!(alone[0].bytes.iter().all(|bytes| bytes.sent == 0.0), "{alone:?}");
    }
}
