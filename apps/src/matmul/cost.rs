//! What a product takes, reckoned beforehand.

use super::arguments::{Algorithm, Matmul};
use super::division::{Owners, divide};
use super::side::settled;
use super::{conventional, panel};
use crate::division::{DivisionError, Work as _};
use chares::RunError;
use chares::loadbalance::cost::Phase;
use chares::loadbalance::machines::{Bytes, Machines};
use chares::loadbalance::overhead;

/// Bringing B into the order of the kernel takes as long as products with so many rows: measured with chares of 188 to
/// 406 rows of products of n = 12,000 and 13,000, f32, which took 2 to 13 % longer than with 750 (4 PEs and fewer).
const PACKING_ROWS: f64 = 25.0;
/// With so many rows it takes 5 % of the time of their products.
pub(super) const ROWS_MIN: usize = 20 * PACKING_ROWS as usize;
/// What is reckoned with before a run, for people.
pub(super) const COST: &str = "operations by speed, as the grid, columns or rows permit; blocks travel while others are \
                               multiplied; the bytes that each node sends and receives cost its PEs time";

/// The product as a phase of work and bytes, divided as a run on these machines would.
///
/// # Errors
/// If it cannot be divided by their speeds at all.
pub(super) fn cost(matmul: &Matmul, machines: &Machines, _: Option<f64>) -> Result<Vec<Phase>, RunError> {
    let measured_rows = matmul.typical_block()[0];
    let matmul = &settled(matmul, machines).map_err(DivisionError::from)?;
    let (shares, division) = match matmul.algorithm {
        // Rows are lent and columns move while it runs, until all end together.
        Algorithm::Conventional | Algorithm::Fox => {
            let weights = overhead::balanced(&machines.speeds(), |weights| matmul.seconds(machines, weights));
            let weights = weights.map_err(DivisionError::from)?;
            let total: f64 = weights.iter().sum();
            let division = matmul.by(machines, &weights).map_err(DivisionError::from)?;
            (weights.iter().map(|weight| weight / total).collect(), division)
        }
        Algorithm::Cannon | Algorithm::FoxHeyOtto => {
            let division = divide(matmul, machines)?;
            (division.shares.clone(), division)
        }
    };
    let work = matmul.work() * slowness(matmul, shares.len(), measured_rows);
    let work = shares.into_iter().map(|share: f64| share * work).collect();
    // A broadcast goes out when the one before has been taken up; blocks on a grid need a step's time in advance.
    let rounds = match division.owners {
        Owners::Rows(_) => 1.0,
        Owners::Tiles(q, _) => f64::from(q),
        Owners::Panels(_) => groups(matmul),
    };
    let bytes = division.bytes;
    let all = Phase { times: 1.0, work, bytes, rounds, is_overlapped: true, ..Phase::default() };
    if matmul.algorithm == Algorithm::Fox {
        return Ok(first_group_and_rest(matmul, all));
    }
    Ok(vec![all])
}

/// How much longer a product by rows takes on so many PEs than its speed says, which is measured with so many rows: the fewer
/// are multiplied at once, the more often B is packed for the kernel.
fn slowness(matmul: &Matmul, pes: usize, measured_rows: usize) -> f64 {
    let rows = matmul.sides().0;
    let usual = match matmul.algorithm {
        Algorithm::Conventional => conventional::default_grain(rows, pes),
        Algorithm::Fox => panel::default_grain(rows),
        Algorithm::Cannon | Algorithm::FoxHeyOtto => return 1.0,
    };
    let of_row = |rows: usize| 1.0 + PACKING_ROWS / rows.max(1) as f64;
    of_row(matmul.grain.unwrap_or(usual).min(rows)) / of_row(measured_rows)
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
    let group = matmul.number_bytes() * m as f64 * k as f64 / groups;
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

#[cfg(test)]
mod tests {
    use super::*;
    use chares::loadbalance::machines::Link;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        matmul: Matmul,
    }

    const RATES: [f64; 3] = [200e9, 110e9, 50e9];

    const LINK: Link = Link { latency_s: 1e-4, bytes_per_s: 1e9 };

    fn three(hosts: [&str; 3]) -> Machines {
        let mut three = Machines::on_one_host(&[&RATES[..1], &RATES[1..2], &RATES[2..]], LINK);
        three.nodes.iter_mut().zip(hosts).for_each(|(node, host)| node.host = host.into());
        three
    }

    fn share_of_slowest(algorithm: &str, n: &str, machines: &Machines) -> f64 {
        let matmul = Line::parse_from(["x", "--algorithm", algorithm, "--n", n, "--q", "32"]).matmul;
        let seconds_of = |weights: &[f64]| matmul.seconds(machines, weights);
        let weights = overhead::balanced(&machines.speeds(), seconds_of).unwrap();
        let longest = |weights: &[f64]| seconds_of(weights).unwrap().into_iter().fold(0.0, f64::max);
        assert!(longest(&weights) <= longest(&machines.speeds()));
        weights[2] / weights.iter().sum::<f64>()
    }

    #[test]
    fn a_slow_node_gets_less_than_its_speed_says_and_the_less_the_smaller_the_product() {
        let by_speed = RATES[2] / RATES.iter().sum::<f64>();
        let apart = three(["a", "b", "c"]);
        for algorithm in ["cannon", "fox-hey-otto", "fox"] {
            let (small, big) =
                (share_of_slowest(algorithm, "4000", &apart), share_of_slowest(algorithm, "30000", &apart));
            assert!(small < big && big < by_speed, "{algorithm}: {small} {big} {by_speed}");
            let inside = share_of_slowest(algorithm, "4000", &three(["a"; 3]));
            assert!(inside < by_speed, "{algorithm}: {inside} {by_speed}");
        }
    }

    #[test]
    fn what_is_planned_is_all_of_the_work_by_speed_and_the_bytes_of_the_division() {
        let three = three(["a", "b", "c"]);
        let one = Machines::on_one_host(&[&RATES], LINK);
        for algorithm in ["conventional", "cannon", "fox-hey-otto", "fox"] {
            let matmul = Line::parse_from(["x", "--algorithm", algorithm, "--n", "8000"]).matmul;
            let phases = cost(&matmul, &three, None).unwrap();
            let all: f64 = phases.iter().flat_map(|phase| &phase.work).sum();
            // Chares of 167 rows are slower than those of 500 by which speeds are measured.
            let slow = (1.0 + 25.0 / 167.0) / (1.0 + 25.0 / 500.0);
            let expected = if algorithm == "conventional" { slow } else { 1.0 };
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
    fn inside_a_node_more_rows_are_multiplied_at_once_than_when_speeds_are_measured() {
        let inside = Machines::on_one_host(&[&[1e9, 1e9]], LINK);
        let apart = Machines::on_one_host(&[&[1e9], &[1e9]], LINK);
        // Rows inside a node, on two, and when speeds are measured.
        for (algorithm, rows) in [("conventional", [500.0, 64.0, 128.0]), ("fox", [256.0, 43.0, 43.0])] {
            let matmul = Line::parse_from(["x", "--algorithm", algorithm, "--n", "2048"]).matmul;
            let slow = rows.map(|rows| 1.0 + 25.0 / rows);
            for (machines, expected) in [(&inside, slow[0] / slow[2]), (&apart, slow[1] / slow[2])] {
                let phases = cost(&matmul, machines, None).unwrap();
                let work = phases.iter().flat_map(|phase| &phase.work).sum::<f64>() / matmul.work();
                assert!((work - expected).abs() < 1e-9, "{algorithm}: {work} and not {expected}");
            }
        }
    }

    #[test]
    fn one_node_ships_nothing() {
        let matmul = Line::parse_from(["x", "--n", "1000"]).matmul;
        let alone = Machines::on_one_host(&[&[1e9, 1e9]], LINK);
        assert_eq!(matmul.seconds(&alone, &[1.0, 1.0]).unwrap(), [1.0, 1.0]);
    }
}
