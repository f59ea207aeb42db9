//! What a run takes, reckoned beforehand.

use super::arguments::{Algorithm, Apsp};
use chares::RunError;
use chares::loadbalance::cost::{Bytes, Machines, Phase};
use chares::loadbalance::grid;

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
    let vertices = apsp.recipe().vertices;
    let side = apsp.block_side(vertices);
    let groups = u32::try_from(vertices.div_ceil(side)).unwrap_or(u32::MAX);
    let owners = grid::rectangles(groups, groups, &machines.speeds_by_node())
        .map_err(|e| RunError::Failed(format!("the blocks cannot be divided by speed: {e}")))?;
    let count = owners.len() as f64;
    let mut shares = vec![0.0; machines.rates().len()];
    owners.iter().for_each(|&pe| shares[pe as usize] += work / count);
    let block_bytes = (side * side * apsp.likely_type().size_bytes()) as f64;
    // Each round the blocks of the pivot's row go to all nodes of their columns, and the other way round.
    let pes = machines.pes();
    let node_at = |at: usize| pes.iter().position(|pes| pes.contains(&owners[at])).unwrap_or(0);
    let nodes: Vec<usize> = (0..owners.len()).map(node_at).collect();
    let traffic = grid::traffic(&nodes, groups as usize, groups as usize, machines.nodes.len());
    let bytes = traffic.iter().map(|t| Bytes {
        sent: block_bytes * (t.a_out + t.b_out) as f64,
        received: block_bytes * (t.a_in + t.b_in) as f64,
    });
    let rounds = f64::from(groups) * ROUNDS_OF_PIVOT;
    let bytes = bytes.collect();
    Ok(vec![Phase { times: 1.0, work: shares, bytes, rounds, is_overlapped: true, ..Phase::default() }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::loadbalance::cost::Link;
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
