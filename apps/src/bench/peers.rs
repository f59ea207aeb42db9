//! Figures of other systems for the same operations: recorded ones that are built in, and freshly measured ones from
//! a file of the same form.

use super::catalogue::{Operation, Unit};
use chares::RunError;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the form.
const SCHEMA: u64 = 1;
/// Medians on four virtual cores of the Zen 4 class at 3.4 GHz, Debian 12, loopback, November 2026. Where a range was recorded,
/// its middle stands for it, and half a round trip for one way. Charm++ and Open MPI do not encrypt; quinn (current-
/// thread tokio that never sleeps) and quinn-proto (driven by one spinning thread) do, with datagrams of 65,000 B.
/// Kernels are in parts of the peak of that machine.
const RECORDED: &str = include_str!("recorded.json");

/// Figures in a file.
#[derive(Deserialize)]
struct File {
    schema: u64,
    /// Model of the processor that they were measured on, if the file says it.
    cpu: Option<String>,
    peers: Vec<Figure>,
}

/// What a system reached in an operation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Figure {
    /// Which system, with its version.
    peer: String,
    /// Key of the operation.
    operation: String,
    value: f64,
    unit: String,
    source: Source,
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Source {
    /// Measured just now, on this machine.
    Measured,
    /// Measured at another time or on another machine: good to know, but no comparison.
    Recorded,
}

/// All figures that are known.
#[derive(Debug)]
pub(super) struct Peers(Vec<Figure>);

/// A peer in an operation that was measured.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Compared {
    pub(super) peer: String,
    /// In the operation's unit.
    pub(super) value: f64,
    pub(super) source: Source,
    /// Ours in its, only of what was measured just now.
    pub(super) ratio: Option<f64>,
    pub(super) is_better: Option<bool>,
}

impl Peers {
    /// Those that are built in, unless `is_elsewhere` says that they mean nothing, and those of a file. What a file has
    /// from a processor that is not `cpu` is taken as recorded.
    ///
    /// # Errors
    /// A sentence, if the file cannot be read or does not hold such figures for `operations`.
    pub(super) fn load(
        path: Option<&Path>,
        is_elsewhere: bool,
        operations: &[Operation],
        cpu: &str,
    ) -> Result<Self, RunError> {
        let mut all =
            if is_elsewhere { Vec::new() } else { parse(RECORDED, operations, cpu).map_err(built_in)? };
        if let Some(path) = path {
            let wrong = |why: String| RunError::Input(format!("the peers file {}: {why}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
            let fresh = parse(&text, operations, cpu).map_err(wrong)?;
            let is_fresh = |old: &Figure| {
                fresh.iter().any(|new| (&new.peer, &new.operation) == (&old.peer, &old.operation))
            };
            all.retain(|old| !is_fresh(old));
            all.extend(fresh);
        }
        Ok(Self(all))
    }

    /// What all peers reached in an operation, measured ones first and the best of each first, and how `median` stands
    /// against those that were measured.
    pub(super) fn compare(&self, operation: &Operation, median: f64) -> Vec<Compared> {
        let of_it = self.0.iter().filter(|figure| figure.operation == operation.key);
        let compared = |figure: &Figure| {
            let value = figure.value * factor(&figure.unit, operation.unit)?;
            let ratio = (figure.source == Source::Measured).then_some(median / value);
            let is_better =
                ratio.map(|ratio| if operation.unit.is_gain() { ratio >= 1.0 } else { ratio <= 1.0 });
            Some(Compared { peer: figure.peer.clone(), value, source: figure.source, ratio, is_better })
        };
        let mut all: Vec<Compared> = of_it.filter_map(compared).collect();
        let place = |c: &Compared| (c.source, if operation.unit.is_gain() { -c.value } else { c.value });
        all.sort_by(|a, b| place(a).0.cmp(&place(b).0).then(place(a).1.total_cmp(&place(b).1)));
        all
    }
}

fn built_in(why: String) -> RunError {
    RunError::Failed(format!("the recorded figures of peers: {why}"))
}

fn parse(text: &str, operations: &[Operation], this_cpu: &str) -> Result<Vec<Figure>, String> {
    let File { schema, cpu, mut peers } = serde_json::from_str(text).map_err(|e| e.to_string())?;
    if schema != SCHEMA {
        return Err(format!("its schema is {schema}, and this program reads {SCHEMA}"));
    }
    for Figure { peer, operation: key, value, unit, .. } in &peers {
        let Some(operation) = operations.iter().find(|operation| operation.key == *key) else {
            return Err(format!("there is no operation {key:?} ({peer}); `bench --list` shows them"));
        };
        if factor(unit, operation.unit).is_none() {
            return Err(format!("{key} ({peer}) is in {unit:?}, not in {}", operation.unit.name()));
        }
        if !value.is_finite() || *value <= 0.0 {
            return Err(format!("{key} ({peer}) is {value}, not a positive number"));
        }
    }
    if cpu.is_some_and(|cpu| cpu != this_cpu) {
        peers.iter_mut().for_each(|figure| figure.source = Source::Recorded);
    }
    Ok(peers)
}

/// By what a figure in one unit is multiplied to be in another; `None` if they are of different kinds.
fn factor(from: &str, to: Unit) -> Option<f64> {
    let ns = |unit: &str| match unit {
        "ns" => Some(1.0),
        "µs" | "us" => Some(1e3),
        "ms" => Some(1e6),
        _ => None,
    };
    if from == to.name() { Some(1.0) } else { Some(ns(from)? / ns(to.name())?) }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue;
    use super::*;

    fn text(operation: &str, value: &str, unit: &str) -> String {
        format!(
            r#"{{ "schema": 1, "peers": [ {{ "peer": "P 1", "operation": "{operation}", "value": {value},
                "unit": "{unit}", "source": "measured", "note": "anything" }} ] }}"#
        )
    }

    #[test]
    fn what_is_built_in_can_be_read() {
        let load = |is_elsewhere| Peers::load(None, is_elsewhere, &catalogue::all(), "CPU").unwrap();
        let peers = load(false);
        assert!(peers.0.len() > 20 && peers.0.iter().all(|figure| figure.source == Source::Recorded));
        assert!(load(true).0.is_empty());
    }

    #[test]
    fn what_means_nothing_is_refused_with_a_sentence() {
        let all = catalogue::all();
        for (text, part) in [
            (text("pe/nothing", "1", "ns"), "there is no operation \"pe/nothing\""),
            (text("pe/chare/64B", "0", "ns"), "not a positive number"),
            (text("pe/chare/64B", "1", "GB/s"), "is in \"GB/s\", not in ns"),
            (r#"{ "schema": 2, "peers": [] }"#.into(), "its schema is 2"),
            ("[".into(), "line 1"),
        ] {
            let sentence = parse(&text, &all, "CPU").unwrap_err();
            assert!(sentence.contains(part), "{sentence}");
        }
    }

    /// A fresh figure of a peer that is also built in, on a processor of the model that `head` names.
    fn compared(head: &str) -> Vec<Compared> {
        let all = catalogue::all();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("peers.json");
        let fresh = text("link/round-trip/8B", "20000", "ns").replace("P 1", "Charm++ 8.0.1 netlrts");
        std::fs::write(&path, fresh.replacen('{', head, 1)).unwrap();
        let peers = Peers::load(Some(&path), false, &all, "CPU").unwrap();
        let operation = all.iter().find(|operation| operation.key == "link/round-trip/8B").unwrap();
        peers.compare(operation, 10.0)
    }

    #[test]
    fn a_fresh_figure_stands_before_others_and_replaces_that_of_the_same_peer() {
        for head in ["{", r#"{ "cpu": "CPU", "#] {
            let compared = compared(head);
            assert_eq!(compared.iter().filter(|c| c.peer == "Charm++ 8.0.1 netlrts").count(), 1);
            assert!(compared.len() > 1);
            let first = &compared[0];
            assert_eq!((first.value, first.ratio, first.source), (20.0, Some(0.5), Source::Measured));
            assert_eq!(first.is_better, Some(true));
        }
    }

    #[test]
    fn nobody_is_better_or_worse_than_a_figure_of_another_day_or_machine() {
        let compared = compared(r#"{ "cpu": "another", "#);
        assert!(compared.len() > 1 && compared.iter().any(|c| c.value == 20.0));
        for compared in compared {
            assert_eq!((compared.source, compared.ratio, compared.is_better), (Source::Recorded, None, None));
        }
    }
}
