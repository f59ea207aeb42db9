//! What is known of the network when a run is planned: what is measured now, or was before, or figures of other networks.

use super::compare::{Starts, report_in};
use super::options::NodesOptions;
use crate::command_line::CommandLine;
use loadbalance::machines::{Link, Machine, Machines};
use runtime::failure::{Failure, Kind};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The longest file that is read.
const BYTES_MAX: u64 = 64 << 20;
/// Between two PEs of a process: as `netbench` measured it where each PE has a core and threads sleep at once. Arrays are
/// not copied, so that the rate is hardly ever met.
const INSIDE_A_NODE: Link = Link { latency_s: 20e-6, bytes_per_s: 5e9 };
/// Between two nodes of one host: as it measured it between the built-in nodes, four PEs on four cores.
const INSIDE_A_HOST: Link = Link { latency_s: 60e-6, bytes_per_s: 3.2e9 };
/// Between hosts: as it measured it over a LAN of 1 Gbit/s whose packets take 0.2 ms.
const BETWEEN_HOSTS: Link = Link { latency_s: 290e-6, bytes_per_s: 0.118e9 };
/// Slower or faster than any network: the file is wrong.
const LATENCY_MAX_S: f64 = 3600.0;

/// Links by the names of their nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    /// For people; `None` where nothing was measured.
    source: Option<String>,
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
    /// Absent in files of before.
    stream_bytes_per_s: Option<f64>,
}

impl Network {
    /// The figures in a file that `netbench --json`, or a run of it with `--report`, has written.
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let mut text = Vec::new();
        File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut text)).map_err(|e| {
            Failure::new(Kind::NoInput, format!("the network's figures {name} cannot be read: {e}"))
        })?;
        Self::parse(&text, &name)
    }

    /// The report of a run that measures the network between nodes now, by the application that the program has for this;
    /// `None` without one, or of a single node.
    ///
    /// # Errors
    /// Of that run.
    pub(crate) fn measure(
        program: &CommandLine,
        nodes: &[String],
        options: &NodesOptions,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let Some(preset) = program.network.filter(|_| nodes.len() > 1) else { return Ok(None) };
        let mut of_run = options.as_words();
        of_run.extend(["--quiet", "--report", "/dev/stdout"].map(ToString::to_string));
        let words = preset.arguments.iter().map(ToString::to_string).collect();
        let command = vec!["run".into(), preset.app.into()];
        let name = format!("the network between {}", nodes.join(", "));
        let done = Starts { command, options: of_run, words }.run(nodes, &name)?;
        let missing = || Failure::new(Kind::Failed, format!("{name}: the run has written no report"));
        report_in(&done.stdout).map(<[u8]>::to_vec).ok_or_else(missing).map(Some)
    }

    /// The figures in the report of such a run.
    pub(crate) fn of_report(report: Option<Vec<u8>>) -> Result<Self, Failure> {
        let Some(report) = report else { return Ok(Self::default()) };
        Ok(Self { source: Some("measured at the start".into()), ..Self::parse(&report, "the report")? })
    }

    pub(crate) fn parse(text: &[u8], name: &str) -> Result<Self, Failure> {
        let refused = |why: String| refused(name, &why);
        if text.len() as u64 > BYTES_MAX {
            return Err(refused(format!("it is longer than {BYTES_MAX} bytes")));
        }
        let value: Value = serde_json::from_slice(text).map_err(|e| refused(e.to_string()))?;
        let links = value.get("links").or_else(|| value.pointer("/facts/links"));
        Self::of_links(links.unwrap_or(&Value::Null), name)
    }

    /// The figures in a list of links; `name` says where it is from.
    pub(crate) fn of_links(links: &Value, name: &str) -> Result<Self, Failure> {
        let refused = |why: String| refused(name, &why);
        if links.is_null() {
            return Err(refused("it lists no links".into()));
        }
        let links: Vec<Measured> =
            serde_json::from_value(links.clone()).map_err(|e| refused(e.to_string()))?;
        let mut network = Self { source: Some(format!("as measured in {name}")), links: BTreeMap::new() };
        // A PE with itself takes no way at all.
        for measured in links.into_iter().filter(|link| link.kind != "one-pe") {
            let Measured { from, to, latency_s, .. } = measured;
            // A single message may be faster than many, where a limiter lets bursts pass.
            let bytes_per_s = measured.stream_bytes_per_s.or(measured.bytes_per_s);
            let bytes_per_s = bytes_per_s.unwrap_or(INSIDE_A_NODE.bytes_per_s);
            if !(0.0..LATENCY_MAX_S).contains(&latency_s) || bytes_per_s <= 0.0 {
                let link = format!("from {from} to {to}");
                return Err(refused(format!("{latency_s} s and {bytes_per_s} B/s {link} cannot be")));
            }
            network.links.insert((from, to), Link { latency_s, bytes_per_s });
        }
        Ok(network)
    }

    /// These nodes, whose rates were measured, with what lies between them.
    pub(crate) fn join(&self, nodes: Vec<Machine>) -> Machines {
        let pairs = nodes.iter().flat_map(|from| nodes.iter().map(move |to| (from, to)));
        let links = pairs.map(|(from, to)| self.link(from, to)).collect();
        Machines { nodes, links, is_measured: true, ..Machines::default() }
    }

    /// Where the figures come from, for people.
    pub(crate) fn source(&self) -> String {
        let between = self.links.iter().filter(|((from, to), _)| from != to).map(|(_, link)| *link);
        match (&self.source, between.reduce(slower)) {
            (Some(source), Some(link)) => format!("the network {source}, {} or better", said(link)),
            (Some(source), None) => format!("the network {source}"),
            (None, _) => format!(
                "a network that nobody has measured, {} between hosts and {} inside one: --network FILE",
                said(BETWEEN_HOSTS),
                said(INSIDE_A_HOST)
            ),
        }
    }

    /// As measured in this direction, or in the other; between hosts else no better than what either end has elsewhere.
    fn link(&self, from: &Machine, to: &Machine) -> Link {
        let measured = |a: &Machine, b: &Machine| self.links.get(&(a.name.clone(), b.name.clone())).copied();
        let elsewhere = || {
            let touches =
                |(a, b): &(String, String)| [&from.name, &to.name].iter().any(|end| [a, b].contains(end));
            let links = self.links.iter().filter(|(ends, _)| ends.0 != ends.1 && touches(ends));
            links.map(|(_, link)| *link).reduce(slower).filter(|_| from.host != to.host)
        };
        let default = if from.name == to.name {
            INSIDE_A_NODE
        } else if from.host == to.host {
            INSIDE_A_HOST
        } else {
            BETWEEN_HOSTS
        };
        measured(from, to).or_else(|| measured(to, from)).or_else(elsewhere).unwrap_or(default)
    }
}

fn refused(name: &str, why: &str) -> Failure {
    let sentence = format!("{name} has no figures of a network: {why}; `netbench --json` writes them");
    Failure::new(Kind::Input, sentence)
}

/// The worse of both.
fn slower(a: Link, b: Link) -> Link {
    Link { latency_s: a.latency_s.max(b.latency_s), bytes_per_s: a.bytes_per_s.min(b.bytes_per_s) }
}

/// For people.
fn said(link: Link) -> String {
    format!("{:.0} µs and {:.3} GB/s", link.latency_s * 1e6, link.bytes_per_s / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{ "schema": "metachare-netbench/1", "links": [
        { "kind": "one-pe", "from": "a", "to": "a", "latency_s": 5e-8, "bytes_per_s": null, "fit_error": 0.1 },
        { "kind": "two-pes", "from": "a", "to": "a", "latency_s": 2e-7, "bytes_per_s": null, "fit_error": 0.1 },
        { "kind": "two-nodes", "from": "a", "to": "b", "latency_s": 2e-5, "bytes_per_s": 1e9, "fit_error": 0.1 },
        { "kind": "two-nodes", "from": "a", "to": "d", "latency_s": 3e-4, "bytes_per_s": 2e8, "fit_error": 0.1,
          "stream_bytes_per_s": 1e8 }
    ] }"#;

    fn machine(name: &str, host: &str) -> Machine {
        Machine { name: name.into(), host: host.into(), rates: vec![1.0], ..Machine::default() }
    }

    #[test]
    fn links_are_as_measured_in_either_direction_and_defaults_elsewhere() {
        let network = Network::parse(FILE.as_bytes(), "net.json").unwrap_or_else(|e| panic!("{e:?}"));
        let nodes = vec![machine("a", "x"), machine("b", "x"), machine("c", "y")];
        let links = network.join(nodes).links;
        let measured = Link { latency_s: 2e-5, bytes_per_s: 1e9 };
        assert_eq!((links[1], links[3]), (measured, measured), "a to b and back");
        assert_eq!(links[0], Link { latency_s: 2e-7, bytes_per_s: INSIDE_A_NODE.bytes_per_s });
        assert_eq!((links[4], links[2].bytes_per_s), (INSIDE_A_NODE, 1e8));
        let words = "the network as measured in net.json, 300 µs and 0.100 GB/s or better";
        assert_eq!(network.source(), words);
        let nobody = Network::default();
        assert_eq!(nobody.link(&machine("a", "x"), &machine("c", "y")), BETWEEN_HOSTS);
        assert_eq!(nobody.link(&machine("a", "x"), &machine("b", "x")), INSIDE_A_HOST);
        assert!(nobody.source().contains("nobody has measured, 290 µs and 0.118 GB/s between hosts"));
    }

    #[test]
    fn what_goes_through_for_long_counts_and_what_was_not_measured_is_as_slow_as_its_ends() {
        let network = Network::parse(FILE.as_bytes(), "net.json").unwrap_or_else(|e| panic!("{e:?}"));
        let slow = Link { latency_s: 3e-4, bytes_per_s: 1e8 };
        let [a, b, d] = [machine("a", "x"), machine("b", "y"), machine("d", "z")];
        assert_eq!((network.link(&a, &d), network.link(&b, &d)), (slow, slow));
        assert_eq!(network.link(&a, &b).bytes_per_s, 1e9);
        assert_eq!(network.link(&machine("e", "u"), &machine("f", "v")), BETWEEN_HOSTS);
    }

    #[test]
    fn the_report_of_a_run_has_them_too() {
        let report = format!("{{ \"facts\": {FILE} }}");
        let network = Network::parse(report.as_bytes(), "run.json").unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(network.links.len(), 3);
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
            assert_eq!(ended.kind, Kind::Input);
            let sentence = ended.sentence;
            assert!(sentence.starts_with("net.json has no figures") && sentence.contains(why), "{sentence}");
        }
    }
}
