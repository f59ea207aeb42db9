//! What an elimination takes, reckoned beforehand.

use super::arguments::{Algorithm, Gauss};
use super::plan::Plan;
use chares::RunError;
use chares::loadbalance::cost::{Bytes, Machines, Phase};
use chares::loadbalance::cyclic;

/// What is reckoned with, for people.
pub(super) const MODEL: &str = "blocks of columns by speed take up panels while the next ones are factored and sent, and \
                                the last panels follow one another (blocked); or for each column a pivot to agree on, \
                                its row to send, and rows by speed to take it from (columns)";
/// So much longer an operation takes in a panel than in a product of blocks: a panel is factored column by column.
const PANEL_SLOWNESS: f64 = 4.0;
/// To agree on a pivot and to send its row.
const ROUNDS_OF_COLUMN: f64 = 2.0;

/// The elimination as phases of work and bytes.
///
/// # Errors
/// If the system cannot be divided by these speeds.
pub(super) fn cost(gauss: &Gauss, machines: &Machines, _: Option<f64>) -> Result<Vec<Phase>, RunError> {
    match gauss.algorithm {
        Algorithm::Columns => Ok(columns(gauss, machines)),
        Algorithm::Blocked => blocked(gauss, machines),
    }
}

fn number_bytes(gauss: &Gauss) -> f64 {
    gauss.system.dtype_or_default().size_bytes() as f64
}

/// Bytes where one message goes from anywhere to all other nodes.
fn broadcast(machines: &Machines, bytes: f64) -> Vec<Bytes> {
    let count = machines.nodes.len() as f64;
    // Its owner sends to all others, and each of `count` nodes is as often the owner.
    let each = bytes * (count - 1.0) / count;
    vec![Bytes { sent: each, received: each }; machines.nodes.len()]
}

/// Every column alike, with rows that are half as long as the longest.
fn columns(gauss: &Gauss, machines: &Machines) -> Vec<Phase> {
    let (n, rhs) = (gauss.system.n as f64, gauss.system.rhs as f64);
    let bytes = broadcast(machines, number_bytes(gauss) * (n / 2.0 + rhs));
    let work = machines.divided_by_speed(gauss.work() / n);
    let forth = Phase { times: n, work, bytes, rounds: ROUNDS_OF_COLUMN, is_overlapped: false };
    let back = Phase {
        times: n,
        bytes: broadcast(machines, number_bytes(gauss) * rhs),
        rounds: 1.0,
        ..Phase::default()
    };
    vec![forth, back]
}

fn blocked(gauss: &Gauss, machines: &Machines) -> Result<Vec<Phase>, RunError> {
    let (n, rhs, width) = (gauss.system.n, gauss.system.rhs, gauss.width());
    let [panels, right_blocks] = Plan::counts(n, rhs, width);
    let rates = machines.rates();
    let owners = cyclic::weighted_cyclic(panels + right_blocks, &rates)
        .map_err(|e| RunError::Failed(format!("the work cannot be divided by speed: {e}")))?;
    let columns_of = |block: usize| {
        let (first, end) = if block < panels { (block, n) } else { (block - panels, rhs) };
        (end - first * width).min(width) as f64
    };
    let total: f64 = rates.iter().sum();
    let mut bulk =
        Phase { times: 1.0, work: vec![0.0; rates.len()], is_overlapped: true, ..Phase::default() };
    let mut bulk_bytes = 0.0;
    let mut phases = Vec::new();
    for panel in 0..panels {
        let rows = (n - panel * width) as f64;
        let owner = owners[panel] as usize;
        let factoring = columns_of(panel).powi(2) * (rows - columns_of(panel) / 3.0);
        let bytes = number_bytes(gauss) * rows * columns_of(panel);
        let mut work = vec![0.0; rates.len()];
        for block in panel + 1..panels + right_blocks {
            let below = rows - columns_of(panel) / 2.0;
            work[owners[block] as usize] += 2.0 * below * columns_of(panel) * columns_of(block);
        }
        let mut alone = vec![0.0; rates.len()];
        alone[owner] = factoring * PANEL_SLOWNESS;
        let chain = Phase {
            times: 1.0,
            work: alone,
            bytes: broadcast(machines, bytes),
            rounds: 1.0,
            is_overlapped: false,
        };
        let update_s = work.iter().sum::<f64>() / total;
        if machines.reckon(std::slice::from_ref(&chain)).seconds > update_s {
            // There is no longer enough to do meanwhile.
            phases.extend([Phase { work, times: 1.0, ..Phase::default() }, chain]);
            continue;
        }
        work[owner] += factoring * PANEL_SLOWNESS;
        bulk.work.iter_mut().zip(work).for_each(|(sum, work)| *sum += work);
        bulk_bytes += bytes;
    }
    bulk.bytes = broadcast(machines, bulk_bytes);
    // The way back goes through all owners, one after the other.
    let back = Phase { times: panels as f64, rounds: 1.0, ..Phase::default() };
    phases.extend([bulk, back]);
    Ok(phases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::loadbalance::cost::Link;
    use clap::{Args as _, Command, FromArgMatches as _};

    fn gauss(words: &[&str]) -> Gauss {
        let command = Gauss::augment_args(Command::new("gauss"));
        Gauss::from_arg_matches(&command.get_matches_from([&["gauss"], words].concat())).unwrap()
    }

    const LINK: Link = Link { latency_s: 2e-5, bytes_per_s: 2e9 };

    #[test]
    fn big_systems_are_mostly_work_and_columns_mostly_messages() {
        let two = Machines::on_one_host(&[&[50e9, 50e9], &[25e9]], LINK);
        let seconds = |words: &[&str]| {
            let gauss = gauss(words);
            (two.reckon(&cost(&gauss, &two, None).unwrap()).seconds, gauss.work() / 125e9)
        };
        let (big, ideal) = seconds(&["--n", "20000"]);
        assert!((1.0..1.25).contains(&(big / ideal)), "{big} {ideal}");
        let (small, ideal) = seconds(&["--n", "500"]);
        assert!(small / ideal > 1.5, "{small} {ideal}");
        let (columns, _) = seconds(&["--n", "500", "--algorithm", "columns"]);
        assert!(columns > 1500.0 * two.latency_s(), "{columns}");
    }
}
