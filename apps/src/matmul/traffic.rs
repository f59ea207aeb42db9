//! Shares of a product that leave the nodes time for the blocks that come and go.
//!
//! A node without a spare core pays for its messages with the time of its PEs, and a slow one pays more for each
//! byte. By speed alone its share would be too big: see [`chares::loadbalance::overhead`]. And as speeds are measured
//! for a moment only, a slow node, for which all others would have to wait, gets somewhat less. The same reckoning says
//! beforehand how long a product takes.

use super::arguments::{Algorithm, Matmul};
use super::drive::{shares_of, speeds_by_node, unplaceable};
use super::{conventional, panel, side};
use crate::wire::Wire;
use chares::loadbalance::cost::{Bytes, Machines, Phase};
use chares::loadbalance::{PartitionError, grid, overhead, placement};
use chares::{Cx, Driver, RunError};

/// Makes the shares such that all nodes end together, as far as that can be told beforehand. Without measured speeds
/// they stay in proportion to the speeds that are given.
///
/// # Errors
/// If the work cannot be divided by the speeds at all.
pub(super) fn plan(main: &mut Driver, matmul: &Matmul) -> Result<(), RunError> {
    let (rates, speeds) = (main.rates(), main.speeds());
    if rates.len() != speeds.len() {
        return Ok(());
    }
    let wire = Wire::of(main.nodes());
    let weights = weights(matmul, &wire, &rates, &speeds).map_err(unplaceable)?;
    if weights != speeds {
        main.plan_with(weights);
    }
    Ok(())
}

/// By what the product is divided.
fn weights(matmul: &Matmul, wire: &Wire, rates: &[f64], speeds: &[f64]) -> Result<Vec<f64>, PartitionError> {
    overhead::balanced(speeds, |weights| {
        let seconds = seconds(matmul, wire, rates, weights)?;
        Ok(wire.with_allowance(seconds, weights))
    })
}

/// Bringing B into the order of the kernel takes as long as products with so many rows: measured with chares of 188 to
/// 406 rows of products of n = 12,000 and 13,000, f32, which took 2 to 13 % longer than with 750 (4 PEs and fewer).
const PACKING_ROWS: f64 = 25.0;
/// What is reckoned with before a run, for people.
pub(super) const COST: &str = "operations by speed, as the grid, columns or rows permit; blocks travel while others are \
                               multiplied; the bytes that each node sends and receives cost its PEs time";

/// The product as a phase of work and bytes, divided as a run on these machines would.
///
/// # Errors
/// If it cannot be divided by their speeds at all.
pub(super) fn cost(matmul: &Matmul, machines: &Machines, _: Option<f64>) -> Result<Vec<Phase>, RunError> {
    let mut matmul = matmul.clone();
    let by_node = machines.speeds_by_node();
    side::settle_for(&by_node, &mut matmul).map_err(unplaceable)?;
    let (rates, speeds) = (machines.rates(), by_node.concat());
    let wire = Wire::planned(machines);
    let (work, bytes): (Vec<f64>, _) = match matmul.algorithm {
        // Rows are lent and columns move while it runs, until all end together.
        Algorithm::Conventional | Algorithm::Fox => {
            let even = |weights: &[f64]| seconds(&matmul, &wire, &rates, weights);
            let weights = overhead::balanced(&speeds, even).map_err(unplaceable)?;
            let total: f64 = weights.iter().sum();
            let (_, bytes) = division(&matmul, &wire, &weights).map_err(unplaceable)?;
            (weights.iter().map(|weight| weight / total).collect(), bytes)
        }
        Algorithm::Cannon | Algorithm::FoxHeyOtto => {
            let weights = weights(&matmul, &wire, &rates, &speeds).map_err(unplaceable)?;
            division(&matmul, &wire, &weights).map_err(unplaceable)?
        }
    };
    let work = work.into_iter().map(|share| share * matmul.work() * slowness(&matmul, rates.len())).collect();
    // A broadcast goes out when the one before has been taken up; blocks on a grid need a step's time in advance.
    let rounds = match matmul.algorithm {
        Algorithm::Conventional => 1.0,
        Algorithm::Cannon | Algorithm::FoxHeyOtto => f64::from(matmul.side()),
        Algorithm::Fox => groups(&matmul),
    };
    let all = Phase { times: 1.0, work, bytes, rounds, is_overlapped: true, ..Phase::default() };
    if matmul.algorithm == Algorithm::Fox {
        return Ok(first_group_and_rest(&matmul, all));
    }
    Ok(vec![all])
}

/// How much longer a conventional product of so many PEs takes than its speed says, which is measured with the rows that
/// the chares of one PE would have: the fewer rows a chare has, the more often B is packed for the kernel.
fn slowness(matmul: &Matmul, pes: usize) -> f64 {
    if matmul.algorithm != Algorithm::Conventional {
        return 1.0;
    }
    let rows = matmul.sides().0;
    let own = matmul.grain.unwrap_or_else(|| conventional::default_grain(rows, pes)).min(rows).max(1);
    1.0 + PACKING_ROWS * (1.0 / own as f64 - 1.0 / matmul.typical_block()[0].max(1) as f64).max(0.0)
}

/// How many groups of rows Fox's product broadcasts.
fn groups(matmul: &Matmul) -> f64 {
    let rows = matmul.sides().0;
    rows.div_ceil(matmul.grain.unwrap_or_else(|| panel::default_grain(rows))).max(1) as f64
}

/// While each PE multiplies the first group that it has, all links carry the first groups of their nodes.
fn first_group_and_rest(matmul: &Matmul, all: Phase) -> Vec<Phase> {
    let (groups, (m, k, _)) = (groups(matmul), matmul.sides());
    let others = all.bytes.len().saturating_sub(1);
    let group = number_bytes(matmul) * m as f64 * k as f64 / groups;
    let first = Bytes { sent: group * others as f64, received: group * others.min(panel::AHEAD) as f64 };
    let split = |b: &Bytes| {
        let first = Bytes { sent: first.sent.min(b.sent), received: first.received.min(b.received) };
        (first, Bytes { sent: b.sent - first.sent, received: b.received - first.received })
    };
    let (first_bytes, rest_bytes) = all.bytes.iter().map(split).unzip();
    let part = |part: f64, bytes| Phase {
        work: all.work.iter().map(|work| work * part).collect(),
        bytes,
        rounds: all.rounds * part,
        ..all.clone()
    };
    vec![part(1.0 / groups, first_bytes), part(1.0 - 1.0 / groups, rest_bytes)]
}

/// How long each PE will take if the work is divided by these weights.
fn seconds(matmul: &Matmul, wire: &Wire, rates: &[f64], weights: &[f64]) -> Result<Vec<f64>, PartitionError> {
    let (shares, bytes) = division(matmul, wire, weights)?;
    let work: Vec<f64> = shares.into_iter().map(|share| share * matmul.work()).collect();
    Ok(wire.seconds(&work, &bytes, rates))
}

/// The share of each PE, and the bytes that each node receives and sends.
fn division(matmul: &Matmul, wire: &Wire, weights: &[f64]) -> Result<(Vec<f64>, Vec<Bytes>), PartitionError> {
    match matmul.algorithm {
        Algorithm::Cannon | Algorithm::FoxHeyOtto => tiles(matmul, wire, weights),
        Algorithm::Fox => panels(matmul, wire, weights),
        Algorithm::Conventional => {
            Ok((strips(matmul.sides().0, weights)?, vec![Bytes::default(); wire.nodes.len()]))
        }
    }
}

fn number_bytes(matmul: &Matmul) -> f64 {
    matmul.dtype_or_default().size_bytes() as f64
}

/// The share of each PE, and the bytes that each node receives and sends, of a product in tiles.
fn tiles(matmul: &Matmul, wire: &Wire, weights: &[f64]) -> Result<(Vec<f64>, Vec<Bytes>), PartitionError> {
    let q = matmul.side();
    let owners = grid::rectangles(q, q, &speeds_by_node(&wire.nodes, weights))?;
    let mut shares = vec![0.0; weights.len()];
    owners.iter().for_each(|&pe| shares[pe as usize] += 1.0 / owners.len() as f64);
    let node_of = |pe: u32| wire.nodes.iter().position(|pes| pes.contains(&pe)).unwrap_or(0);
    let nodes: Vec<usize> = owners.iter().map(|&pe| node_of(pe)).collect();
    let (m, k, n) = matmul.sides();
    let blocks = f64::from(q) * f64::from(q);
    let (a_bytes, b_bytes) = ((m * k) as f64 / blocks, (k * n) as f64 / blocks);
    let traffic = grid::traffic(&nodes, q as usize, q as usize, wire.nodes.len());
    let bytes = traffic.iter().map(|t| {
        let bytes = |a, b| number_bytes(matmul) * (a as f64 * a_bytes + b as f64 * b_bytes);
        Bytes { sent: bytes(t.a_out, t.b_out), received: bytes(t.a_in, t.b_in) }
    });
    Ok((shares, bytes.collect()))
}

/// The same for panels: each node gets all of A but its own part, and sends its own part to all others.
fn panels(matmul: &Matmul, wire: &Wire, weights: &[f64]) -> Result<(Vec<f64>, Vec<Bytes>), PartitionError> {
    let (m, k, n) = matmul.sides();
    let shares = strips(n, weights)?;
    let others = wire.nodes.len().saturating_sub(1) as f64;
    let all = number_bytes(matmul) * m as f64 * k as f64;
    let bytes = wire.nodes.iter().map(|pes| {
        let own: f64 = pes.clone().map(|pe| shares[pe as usize]).sum();
        Bytes { sent: all * own * others, received: all * (1.0 - own) }
    });
    Ok((shares.clone(), bytes.collect()))
}

/// The share of each PE of so many rows or columns.
fn strips(count: usize, weights: &[f64]) -> Result<Vec<f64>, PartitionError> {
    Ok(shares_of(&placement::weighted_bounds(count as u64, weights)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::NodeShape;
    use chares::loadbalance::cost::{INSIDE_A_HOST, Link};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        matmul: Matmul,
    }

    const RATES: [f64; 3] = [200e9, 110e9, 50e9];

    fn wire(hosts: [&str; 3]) -> Wire {
        let shape = |(pe, host): (u32, &str)| NodeShape {
            host: host.into(),
            pes: pe..pe + 1,
            ..NodeShape::default()
        };
        Wire::of(&(0..).zip(hosts).map(shape).collect::<Vec<_>>())
    }

    fn share_of_slowest(algorithm: &str, n: &str, wire: &Wire) -> f64 {
        let matmul = Line::parse_from(["x", "--algorithm", algorithm, "--n", n, "--q", "32"]).matmul;
        let speeds = RATES.map(|rate| rate / RATES[0]);
        let seconds_of = |weights: &[f64]| seconds(&matmul, wire, &RATES, weights);
        let weights = overhead::balanced(&speeds, seconds_of).unwrap();
        let longest = |weights: &[f64]| seconds_of(weights).unwrap().into_iter().fold(0.0, f64::max);
        assert!(longest(&weights) <= longest(&speeds));
        weights[2] / weights.iter().sum::<f64>()
    }

    #[test]
    fn a_slow_node_gets_less_than_its_speed_says_and_the_less_the_smaller_the_product() {
        let by_speed = RATES[2] / RATES.iter().sum::<f64>();
        let apart = wire(["a", "b", "c"]);
        for algorithm in ["cannon", "fox-hey-otto", "fox"] {
            let (small, big) =
                (share_of_slowest(algorithm, "4000", &apart), share_of_slowest(algorithm, "30000", &apart));
            assert!(small < big && big < by_speed, "{algorithm}: {small} {big} {by_speed}");
            let inside = share_of_slowest(algorithm, "4000", &wire(["a"; 3]));
            assert!(inside < by_speed, "{algorithm}: {inside} {by_speed}");
        }
    }

    #[test]
    fn what_speeds_may_be_wrong_by_is_taken_from_small_shares_only() {
        let (apart, work) =
            (wire(["a", "b", "c"]), |weights: &[f64]| weights.iter().map(|w| w / 2.0).collect());
        let alike = apart.with_allowance(work(&[0.3; 3]), &[0.3; 3]);
        assert!(alike.iter().all(|seconds| (seconds - alike[0]).abs() < 1e-12), "{alike:?}");
        let unlike = apart.with_allowance(work(&[4.0, 2.0, 1.0]), &[4.0, 2.0, 1.0]);
        assert!(
            unlike[0] < 2.0 && 1.0 < unlike[1] && unlike[1] < 2.0 * unlike[2] && unlike[2] < 0.54,
            "{unlike:?}"
        );
        let two = Wire { nodes: vec![0..2, 2..3], costs: vec![INSIDE_A_HOST; 2] };
        assert_eq!(two.with_allowance(vec![1.0; 3], &[1.0, 1.0, 2.0]), [1.0; 3], "halves of the work");
    }

    #[test]
    fn what_is_planned_is_all_of_the_work_by_speed_and_the_bytes_of_the_division() {
        let link = Link { latency_s: 1e-4, bytes_per_s: 1e9 };
        let mut three = Machines::on_one_host(&[&RATES[..1], &RATES[1..2], &RATES[2..]], link);
        three.nodes.iter_mut().for_each(|node| node.host = node.name.clone());
        let one = Machines::on_one_host(&[&RATES], link);
        for algorithm in ["conventional", "cannon", "fox-hey-otto", "fox"] {
            let matmul = Line::parse_from(["x", "--algorithm", algorithm, "--n", "8000"]).matmul;
            let phases = cost(&matmul, &three, None).unwrap();
            let all: f64 = phases.iter().flat_map(|phase| &phase.work).sum();
            // Chares of 167 rows are slower than those of 500 by which speeds are measured.
            let expected = if algorithm == "conventional" { 1.0 + 25.0 / 167.0 - 25.0 / 500.0 } else { 1.0 };
            assert!((all / matmul.work() / expected - 1.0).abs() < 1e-9, "{algorithm}: {phases:?}");
            let falls = |phase: &Phase| phase.work.windows(2).all(|pair| pair[0] > pair[1]);
            assert!(phases.iter().all(falls), "{algorithm}: {phases:?}");
            let bytes = || phases.iter().flat_map(|phase| &phase.bytes);
            let [sent, received]: [f64; 2] =
                [|b: &Bytes| b.sent, |b: &Bytes| b.received].map(|of| bytes().map(of).sum());
            assert!((sent - received).abs() <= 1e-9 * sent, "{algorithm}: {phases:?}");
            assert_eq!(sent > 0.0, algorithm != "conventional", "{algorithm}: {phases:?}");
            // The fastest alone takes 5.12 s; three take at least 200/360 of that, and fox's broadcasts the PEs of the
            // three 1.48 s, besides the time until first groups have come.
            let seconds = three.reckon(&phases).seconds;
            assert!((2.84..4.6).contains(&seconds), "{algorithm}: {seconds}");
            let alone = cost(&matmul, &one, None).unwrap();
            let mut of_alone = alone.iter().flat_map(|phase| &phase.bytes);
            assert!(of_alone.all(|bytes| *bytes == Bytes::default()), "{algorithm}: {alone:?}");
        }
    }

    #[test]
    fn one_node_ships_nothing() {
        let matmul = Line::parse_from(["x", "--n", "1000"]).matmul;
        let alone = Wire::of(&[NodeShape { pes: 0..2, ..NodeShape::default() }]);
        let seconds = seconds(&matmul, &alone, &[1e9, 1e9], &[1.0, 1.0]).unwrap();
        assert_eq!(seconds, [1.0, 1.0]);
    }
}
