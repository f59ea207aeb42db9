//! Shares of an elimination that leave the nodes time for the panels that come and go: a slow node gets as many of them as
//! a fast one (see [`chares::loadbalance::overhead`]).

use super::arguments::{Algorithm, Gauss};
use crate::wire::Wire;
use chares::loadbalance::cost::Bytes;
use chares::loadbalance::overhead;
use chares::{Cx, Driver};
use std::convert::Infallible;

/// Makes the shares such that all nodes end together, as far as that can be told beforehand. Without measured speeds they
/// stay in proportion to the speeds that are given.
pub(super) fn plan(main: &mut Driver, gauss: &Gauss) {
    let (rates, speeds) = (main.rates(), main.speeds());
    if rates.len() != speeds.len() || gauss.algorithm != Algorithm::Blocked {
        return;
    }
    let weights = weights(gauss, &Wire::of(main.nodes()), &rates, &speeds);
    if weights != speeds {
        main.plan_with(weights);
    }
}

/// By what the columns are dealt out.
pub(super) fn weights(gauss: &Gauss, wire: &Wire, rates: &[f64], speeds: &[f64]) -> Vec<f64> {
    let Ok(weights) = overhead::balanced(speeds, |weights| {
        let total: f64 = weights.iter().sum();
        let work: Vec<f64> = weights.iter().map(|weight| weight / total * gauss.work()).collect();
        let seconds = wire.seconds(&work, &bytes(gauss, wire, weights), rates);
        Ok::<_, Infallible>(wire.with_allowance(seconds, weights))
    });
    weights
}

/// What each node receives and sends: all panels but its own come to it, and of all nodes that a panel comes to, all but
/// the last hand it on; the owners of the next panels come first, so that fast nodes hand on more.
pub(super) fn bytes(gauss: &Gauss, wire: &Wire, weights: &[f64]) -> Vec<Bytes> {
    let n = gauss.system.n as f64;
    let panels = n * n / 2.0 * gauss.system.dtype_or_default().size_bytes() as f64;
    let total: f64 = weights.iter().sum();
    let own = |pes: &std::ops::Range<u32>| {
        weights[pes.start as usize..pes.end as usize].iter().sum::<f64>() / total
    };
    // How likely it is the last: the likelier the less it owns.
    let seldom: f64 = wire.nodes.iter().map(|pes| 1.0 / own(pes)).sum();
    let is_alone = wire.nodes.len() < 2;
    let of_node = |pes| {
        let sends = if is_alone { 0.0 } else { 1.0 - 1.0 / own(pes) / seldom };
        Bytes { sent: panels * sends, received: panels * (1.0 - own(pes)) }
    };
    wire.nodes.iter().map(of_node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chares::NodeShape;
    use clap::{Args as _, Command, FromArgMatches as _};

    const RATES: [f64; 4] = [200e9, 180e9, 110e9, 110e9];

    fn shares(n: &str, hosts: [&str; 4]) -> Vec<f64> {
        let command = Gauss::augment_args(Command::new("gauss"));
        let words = ["gauss", "--n", n, "--dtype", "f32"];
        let gauss = Gauss::from_arg_matches(&command.get_matches_from(words)).unwrap();
        let shape = |(pe, host): (u32, &str)| NodeShape {
            host: host.into(),
            pes: pe..pe + 1,
            ..NodeShape::default()
        };
        let wire = Wire::of(&(0..).zip(hosts).map(shape).collect::<Vec<_>>());
        let weights = weights(&gauss, &wire, &RATES, &RATES.map(|rate| rate / RATES[0]));
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / total).collect()
    }

    #[test]
    fn slow_nodes_get_less_than_their_speed_says_and_the_less_the_smaller_the_system() {
        let by_speed = RATES[3] / RATES.iter().sum::<f64>();
        let [small, big] = ["8000", "60000"].map(|n| shares(n, ["a", "b", "c", "d"])[3]);
        assert!(small < big && big < by_speed, "{small} {big} {by_speed}");
        assert!(shares("8000", ["a"; 4])[3] > small);
    }

    #[test]
    fn bytes_that_are_sent_are_received() {
        let command = Gauss::augment_args(Command::new("gauss"));
        let gauss = Gauss::from_arg_matches(&command.get_matches_from(["gauss", "--n", "1000"])).unwrap();
        for count in 1..6u32 {
            let nodes: Vec<_> =
                (0..count).map(|pe| NodeShape { pes: pe..pe + 1, ..NodeShape::default() }).collect();
            let weights: Vec<f64> = (0..count).map(|pe| 1.0 / f64::from(pe + 1)).collect();
            let bytes = bytes(&gauss, &Wire::of(&nodes), &weights);
            let (sent, received) = bytes.iter().fold((0.0, 0.0), |(s, r), b| (s + b.sent, r + b.received));
            assert!((sent - received).abs() <= 1e-9 * sent, "{bytes:?}");
        }
    }
}
