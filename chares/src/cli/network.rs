//! What is known of the network when a run is planned: the figures that `netbench` has measured, or careful defaults.

use super::{BAD_INPUT, Ended, NO_INPUT};
use loadbalance::cost::{Link, Machine, Machines};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The longest file that is read.
const BYTES_MAX: u64 = 64 << 20;
/// Between two PEs of a process.
const INSIDE_A_NODE: Link = Link { latency_s: 1e-6, bytes_per_s: 5e9 };
/// Between two nodes of one host.
const INSIDE_A_HOST: Link = Link { latency_s: 20e-6, bytes_per_s: 2e9 };
/// Between hosts: a LAN of 1 Gbit/s.
const BETWEEN_HOSTS: Link = Link { latency_s: 150e-6, bytes_per_s: 0.11e9 };
/// Slower or faster than any network: the file is wrong.
const LATENCY_MAX_S: f64 = 3600.0;

/// Links by the names of their nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    file: Option<String>,
    links: BTreeMap<(String, String), Link>,
}

/// A link as `netbench` writes it; what else it says of it is not needed here.
#[derive(Deserialize)]
struct Measured {
    kind: String,
    from: String,
    to: String,
    latency_s: f64,
    bytes_per_s: Option<f64>,
}

impl Network {
    /// The figures in a file that `netbench --json`, or a run of it with `--report`, has written; without one defaults.
    pub(crate) fn load(path: Option<&Path>) -> Result<Self, Ended> {
        let Some(path) = path else { return Ok(Self::default()) };
        let name = path.display().to_string();
        let mut text = Vec::new();
        File::open(path)
            .and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut text))
            .map_err(|e| Ended::new(NO_INPUT, format!("the network's figures {name} cannot be read: {e}")))?;
        Self::parse(&text, &name)
    }

    pub(crate) fn parse(text: &[u8], name: &str) -> Result<Self, Ended> {
        let refused = |why: String| {
            Ended::new(
                BAD_INPUT,
                format!("{name} has no figures of a network: {why}; `netbench --json` writes them"),
            )
        };
        if text.len() as u64 > BYTES_MAX {
            return Err(refused(format!("it is longer than {BYTES_MAX} bytes")));
        }
        let value: Value = serde_json::from_slice(text).map_err(|e| refused(e.to_string()))?;
        let links = value.get("links").or_else(|| value.pointer("/facts/links"));
        let links = links.ok_or_else(|| refused("it lists no links".into()))?;
        let links: Vec<Measured> =
            serde_json::from_value(links.clone()).map_err(|e| refused(e.to_string()))?;
        let mut network = Self { file: Some(name.into()), links: BTreeMap::new() };
        // A PE with itself takes no way at all.
        for measured in links.into_iter().filter(|link| link.kind != "one-pe") {
            let Measured { from, to, latency_s, .. } = measured;
            let bytes_per_s = measured.bytes_per_s.unwrap_or(INSIDE_A_NODE.bytes_per_s);
            if !(0.0..LATENCY_MAX_S).contains(&latency_s) || bytes_per_s <= 0.0 {
                let link = format!("from {from} to {to}");
                return Err(refused(format!("{latency_s} s and {bytes_per_s} B/s {link} cannot be")));
            }
            network.links.insert((from, to), Link { latency_s, bytes_per_s });
        }
        Ok(network)
    }

    /// These nodes with what lies between them.
    pub(crate) fn join(&self, nodes: Vec<Machine>) -> Machines {
        let pairs = nodes.iter().flat_map(|from| nodes.iter().map(move |to| (from, to)));
        let links = pairs.map(|(from, to)| self.link(from, to)).collect();
        Machines { nodes, links }
    }

    /// Where the figures come from, for people.
    pub(crate) fn source(&self) -> String {
        let default = format!(
            "{:.0} µs and {:.2} GB/s between hosts, {:.0} µs and {:.0} GB/s inside one",
            BETWEEN_HOSTS.latency_s * 1e6,
            BETWEEN_HOSTS.bytes_per_s / 1e9,
            INSIDE_A_HOST.latency_s * 1e6,
            INSIDE_A_HOST.bytes_per_s / 1e9,
        );
        match &self.file {
            Some(file) => format!("the network as measured in {file}; {default} where it says nothing"),
            None => format!("a network of {default}, which nobody has measured: --network FILE"),
        }
    }

    /// As measured in this direction, or in the other.
    fn link(&self, from: &Machine, to: &Machine) -> Link {
        let measured = |a: &Machine, b: &Machine| self.links.get(&(a.name.clone(), b.name.clone())).copied();
        let default = if from.name == to.name {
            INSIDE_A_NODE
        } else if from.host == to.host {
            INSIDE_A_HOST
        } else {
            BETWEEN_HOSTS
        };
        measured(from, to).or_else(|| measured(to, from)).unwrap_or(default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{ "schema": "metachare-netbench/1", "links": [
        { "kind": "one-pe", "from": "a", "to": "a", "latency_s": 5e-8, "bytes_per_s": null, "fit_error": 0.1 },
        { "kind": "two-pes", "from": "a", "to": "a", "latency_s": 2e-7, "bytes_per_s": null, "fit_error": 0.1 },
        { "kind": "two-nodes", "from": "a", "to": "b", "latency_s": 2e-5, "bytes_per_s": 1e9, "fit_error": 0.1 }
    ] }"#;

    fn machine(name: &str, host: &str) -> Machine {
        Machine { name: name.into(), host: host.into(), rates: vec![1.0] }
    }

    #[test]
    fn links_are_as_measured_in_either_direction_and_defaults_elsewhere() {
        let network = Network::parse(FILE.as_bytes(), "net.json").unwrap_or_else(|e| panic!("{e:?}"));
        let nodes = vec![machine("a", "x"), machine("b", "x"), machine("c", "y")];
        let links = network.join(nodes).links;
        let measured = Link { latency_s: 2e-5, bytes_per_s: 1e9 };
        assert_eq!((links[1], links[3]), (measured, measured), "a to b and back");
        assert_eq!(links[0], Link { latency_s: 2e-7, bytes_per_s: INSIDE_A_NODE.bytes_per_s });
        assert_eq!((links[4], links[2], links[7]), (INSIDE_A_NODE, BETWEEN_HOSTS, BETWEEN_HOSTS));
        assert!(network.source().contains("net.json"));
    }

    #[test]
    fn the_report_of_a_run_has_them_too() {
        let report = format!("{{ \"facts\": {FILE} }}");
        let network = Network::parse(report.as_bytes(), "run.json").unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(network.links.len(), 2);
    }

    #[test]
    fn what_has_no_figures_is_refused_with_a_sentence() {
        for (text, why) in [
            ("", "EOF"),
            ("{}", "lists no links"),
            (r#"{"links": 3}"#, "invalid type"),
            (r#"{"links": [{"kind": "two-nodes"}]}"#, "missing field"),
            (&FILE.replace("2e-5", "-1"), "cannot be"),
            (&FILE.replace("1e9", "0"), "cannot be"),
        ] {
            let Err(ended) = Network::parse(text.as_bytes(), "net.json") else { panic!("{text} was taken") };
            assert_eq!(ended.code, 65);
            let sentence = ended.sentence;
            assert!(sentence.starts_with("net.json has no figures") && sentence.contains(why), "{sentence}");
        }
    }
}
