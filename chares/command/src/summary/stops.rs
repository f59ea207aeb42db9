//! What kept PEs from their cores though they had something to do: of nodes, or of hosts that have more PEs than cores.

use super::causes::{Cause, LEAST, Pe, seconds};
use super::{list, name_of};
use serde_json::Value;

/// As reports name it, and in words for those of a node, and for one.
pub(super) const STOPS: [(&str, &str, &str); 3] = [
    ("core_wait", "waited for their cores: other programs, or more PEs than cores, used them", "had no core"),
    ("quota", "had to stop: the CPU quota of their control group was used up", "was stopped by a CPU quota"),
    ("throttled", "slept, because their cpu_share says so", "slept for its cpu_share"),
];
/// So many names of a list are said.
const NAMES: usize = 3;
/// Where PEs used less than this part of the cores while one of them waited for one, others had these.
const OWN: f64 = 0.5;

/// A host with more PEs than cores.
pub(super) struct Crowd<'a> {
    host: String,
    cores: u64,
    nodes: Vec<String>,
    pes: Vec<&'a Pe>,
}

impl<'a> Crowd<'a> {
    /// Those of a report, as far as it says how many cores its hosts have.
    pub(super) fn all(report: &Value, pes: &'a [Pe]) -> Vec<Self> {
        let crowd = |host: &Value| {
            let nodes: Vec<String> = list(&host["nodes"]).iter().map(name_of).collect();
            let pes: Vec<&Pe> = pes.iter().filter(|pe| nodes.contains(&pe.node)).collect();
            let cores = host["cores"].as_u64().filter(|cores| *cores < pes.len() as u64)?;
            Some(Self { host: name_of(&host["name"]), cores, nodes, pes })
        };
        list(&report["hosts"]).iter().filter_map(crowd).collect()
    }

    /// The part of the time, 0 to 1, in which at least one of its PEs waited for a core: who waited for messages then may have
    /// waited for that one.
    pub(super) fn waited(&self) -> f64 {
        self.pes.iter().map(|pe| pe.stopped[0] / pe.time().max(f64::MIN_POSITIVE)).fold(0.0, f64::max)
    }

    /// That its PEs waited for their cores, and others meanwhile for these, for so many seconds.
    pub(super) fn cause(&self, report: &Value, all: f64, others: f64) -> Cause {
        let sum = |of: fn(&Pe) -> f64| self.pes.iter().map(|pe| of(pe)).sum::<f64>();
        let (time, lost, used) = (sum(Pe::time), sum(|pe| pe.stopped[0]), sum(Pe::on_core));
        let length = self.pes.iter().map(|pe| pe.time()).fold(0.0, f64::max);
        let has_others = used < OWN * self.cores as f64 * self.waited() * length;
        let slowdown = slowdown(report, &self.nodes).filter(|_| has_others);
        let slowdown = slowdown.map_or_else(String::new, |said| format!("; {said}"));
        let with = if has_others { ", which other programs used too" } else { "" };
        let sentence = format!(
            "{} PEs share {} of {}{with}: for {:.0}% of their time they waited for their cores, and others for them; fewer PEs \
             there wait less{slowdown}",
            self.pes.len(),
            if self.cores == 1 { "the one core".into() } else { format!("the {} cores", self.cores) },
            self.host,
            100.0 * lost / time.max(f64::MIN_POSITIVE),
        );
        Cause { part: (lost + others) / all, sentence }
    }
}

/// Nodes whose PEs had something to do and did not get their cores, but for those where they took them from each other.
pub(super) fn stopped(report: &Value, crowds: &[Crowd<'_>], all: f64) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (state, why, _) in STOPS {
        let is_crowded = |node: &&Value| {
            let name = name_of(&node["name"]);
            state == "core_wait" && crowds.iter().any(|crowd| crowd.nodes.contains(&name))
        };
        let lost = |node: &Value| seconds(&node[format!("{state}_s")]);
        let nodes = list(&report["nodes"]).iter().filter(|node| !is_crowded(node) && lost(node) > 0.0);
        let (much, little): (Vec<&Value>, Vec<&Value>) = nodes.partition(|node| lost(node) >= LEAST * all);
        // What is little of each may be much of all.
        for nodes in much.chunks(1).chain([little.as_slice()]).filter(|nodes| !nodes.is_empty()) {
            let names: Vec<String> = nodes.iter().map(|node| name_of(&node["name"])).collect();
            let sum = |of: &dyn Fn(&Value) -> f64| nodes.iter().map(|node| of(node)).sum::<f64>();
            let lost = sum(&lost);
            let percent = 100.0 * lost / sum(&time).max(f64::MIN_POSITIVE);
            let whose = if names.len() == 1 { "its" } else { "their" };
            let slowdown = slowdown(report, &names).map_or_else(String::new, |said| format!("; {said}"));
            let names = listed(&names);
            let sentence = format!("{percent:.0}% of {whose} time the PEs of {names} {why}{slowdown}");
            causes.push(Cause { part: lost / all, sentence });
        }
    }
    causes
}

/// Of all PEs of a node.
fn time(node: &Value) -> f64 {
    let states = ["compute", "overhead", "core_wait", "quota", "throttled", "idle"];
    states.map(|state| seconds(&node[format!("{state}_s")])).iter().sum()
}

/// When one of these nodes delivered less than its speed for longest, without why.
pub(super) fn slowdown(report: &Value, nodes: &[String]) -> Option<String> {
    let of_them = list(&report["slowdowns"]).iter().filter(|slow| nodes.contains(&name_of(&slow["node"])));
    let length = |slow: &Value| slow["until_s"].as_f64().unwrap_or(f64::MAX) - seconds(&slow["since_s"]);
    let longest = of_them.max_by(|one, other| length(one).total_cmp(&length(other)))?;
    let sentence = runtime::monitor::text::clean_line(longest["sentence"].as_str()?, 160);
    Some(sentence.rsplit_once(": ").map_or(sentence.as_str(), |(said, _)| said).to_string())
}

/// The first ones, and how many more there are.
fn listed(names: &[String]) -> String {
    match names {
        [one] => one.clone(),
        [most @ .., last] if names.len() <= NAMES => format!("{} and {last}", most.join(", ")),
        _ => format!(
            "{} and {} more",
            names[..NAMES.min(names.len())].join(", "),
            names.len().saturating_sub(NAMES)
        ),
    }
}
