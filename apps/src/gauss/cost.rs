//! What an elimination takes, reckoned beforehand.

use super::arguments::{Algorithm, Gauss};
use super::blocked::COLUMNS_AT_ONCE;
use super::division::divide;
use crate::division::Division;
use chares::RunError;
use chares::loadbalance::cost::Phase;
use chares::loadbalance::machines::{Bytes, Machines};
use std::sync::Arc;

/// What is reckoned with, for people.
pub(super) const MODEL: &str = "blocks of columns by speed take up panels while the next ones are factored and sent; the \
                                last panels, each sent, handed on, taken up by the next block and that one factored, \
                                follow one another (blocked); or for each column a pivot to agree on, \
                                its row to send, and rows by speed to take it from (columns)";
/// So much longer an operation takes in a panel than where columns take one up: measured on one core with panels of 4,000
/// to 16,000 rows and 128 or 256 columns, f32 and f64, it takes 1.4 to 2.1 times as long as in a product of blocks, and
/// taking up 1.1 times as long.
const PANEL_SLOWNESS: f64 = 1.6;
/// To agree on a pivot and to send its row.
const ROUNDS_OF_COLUMN: f64 = 2.0;

/// The elimination as phases of work and bytes.
///
/// # Errors
/// If the system cannot be divided by these speeds.
pub(super) fn cost(gauss: &Gauss, machines: &Machines, _: Option<f64>) -> Result<Vec<Phase>, RunError> {
    let division = divide(gauss, machines)?;
    Ok(match gauss.algorithm {
        Algorithm::Columns => columns(gauss, machines, &division.bytes).to_vec(),
        Algorithm::Blocked => blocked(gauss, machines, division),
    })
}

/// Every column alike.
fn columns(gauss: &Gauss, machines: &Machines, bytes: &[Bytes]) -> [Phase; 2] {
    let (n, rhs) = (gauss.system.n as f64, gauss.system.rhs as f64);
    let bytes = bytes.iter().map(|all| Bytes { sent: all.sent / n, received: all.received / n }).collect();
    let work = machines.divided_by_speed(gauss.work() / n);
    let forth = Phase { times: n, work, bytes, rounds: ROUNDS_OF_COLUMN, ..Phase::default() };
    let back = Phase { times: n, bytes: gauss.broadcast(machines, rhs), rounds: 1.0, ..Phase::default() };
    [forth, back]
}

/// Panels are hidden behind what is left to take them up, until that takes less time than one panel after the other.
fn blocked(gauss: &Gauss, machines: &Machines, division: Division<Arc<Vec<u32>>>) -> Vec<Phase> {
    let (n, width, rates) = (gauss.system.n, gauss.width(), machines.rates());
    let plan = gauss.plan(division.owners, None);
    let (panels, owners) = (plan.panels() as usize, &plan.owners);
    let columns_of = |block: usize| plan.columns_of(block as u32).len() as f64;
    let mut left = vec![0.0; rates.len()];
    owners.iter().enumerate().for_each(|(block, &pe)| left[pe as usize] += columns_of(block));
    let total: f64 = rates.iter().sum();
    let empty = Phase { times: 1.0, work: vec![0.0; rates.len()], is_overlapped: true, ..Phase::default() };
    let (mut phases, mut numbers) = ([empty.clone(), empty], [0.0; 2]);
    for panel in 0..panels {
        let (owner, columns) = (owners[panel] as usize, columns_of(panel));
        left[owner] -= columns;
        let next = owners.get(panel + 1).map_or(owner, |next| *next as usize);
        let rows = (n - panel * width) as f64;
        // To let one more column take the panel up.
        let of_column = 2.0 * (rows - columns / 2.0) * columns;
        let factoring = columns * columns * (rows - columns / 3.0) * PANEL_SLOWNESS;
        let all_left: f64 = left.iter().sum();
        // Who makes the next panel is in the middle of something.
        let before = (all_left.min(COLUMNS_AT_ONCE as f64) / 2.0) + columns_of(panel + 1);
        let [hop_s, onward_s] = on_the_way(machines, [owner, next], gauss.number_bytes() * rows * columns);
        let making_s = factoring / rates[next] + of_column * before / rates[next];
        let chain_s = hop_s + making_s.max(onward_s);
        let at = usize::from(chain_s > of_column * all_left / total);
        phases[at].work.iter_mut().zip(&left).for_each(|(work, columns)| *work += of_column * columns);
        phases[at].work[owner] += factoring;
        phases[at].chain_s += chain_s;
        numbers[at] += rows * columns;
    }
    for (phase, numbers_of) in phases.iter_mut().zip(numbers) {
        let part = numbers_of / numbers.iter().sum::<f64>();
        let part_of = |all: &Bytes| Bytes { sent: all.sent * part, received: all.received * part };
        phase.bytes = division.bytes.iter().map(part_of).collect();
    }
    // The way back goes through all owners, one after the other.
    let back = Phase { times: panels as f64, rounds: 1.0, ..Phase::default() };
    phases.into_iter().chain([back]).collect()
}

/// How long a panel is on its way from one PE to another, and how long that one's connection is then busy with handing
/// it on, so that the next panel has to wait.
fn on_the_way(machines: &Machines, ends: [usize; 2], bytes: f64) -> [f64; 2] {
    let (rates, pes) = (machines.rates(), machines.pes());
    let fastest = rates.iter().copied().fold(0.0, f64::max);
    let [from, to] = ends.map(|pe| pes.iter().position(|pes| pes.contains(&(pe as u32))).unwrap_or(0));
    if from == to {
        return [0.0; 2];
    }
    let link = machines.links[from * pes.len() + to];
    let [sent, received] = [machines.byte_time(from).sent, machines.byte_time(to).received];
    let at_ends = sent * fastest / rates[ends[0]] + received * fastest / rates[ends[1]];
    let onward_s = if pes.len() > 2 { bytes / link.bytes_per_s } else { 0.0 };
    [link.latency_s + bytes * (1.0 / link.bytes_per_s + at_ends), onward_s]
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::loadbalance::machines::Link;
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
