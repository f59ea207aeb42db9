//! What a comparison needs of the report of a run, checked: a report may have come from anywhere.

use super::predict::PlannedWork;
use loadbalance::cost::Reckoned;
use runtime::failure::{Failure, Kind};
use runtime::monitor::text::clean_line;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

const SCHEMA: &str = "metachare-run/1";
/// The longest file that is taken for a report: one of 100,000 PEs has 50 MB.
const BYTES_MAX: u64 = 256 << 20;
/// Characters of a text in it that are kept.
const TEXT_MAX: usize = 4096;

/// A run that went well, and where it is told of.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Run {
    /// The file, or which run of this comparison it was.
    #[serde(skip)]
    pub(crate) source: String,
    /// Unique together with its start; empty where it was not made.
    #[serde(default)]
    run_id: String,
    #[serde(default)]
    started_unix_ms: u64,
    pub(crate) program: String,
    pub(crate) version: String,
    pub(crate) commit: String,
    pub(crate) executable: String,
    pub(crate) app: String,
    pub(crate) arguments: Value,
    exit_code: i64,
    error: Option<String>,
    verified: Option<bool>,
    timed_s: Option<f64>,
    /// Units of the kernel's work.
    pub(crate) work: Option<f64>,
    pub(crate) speed_source: Option<String>,
    pub(crate) nodes: Vec<Node>,
    /// What the application states.
    #[serde(default)]
    pub(super) facts: Value,
    /// Whether how long it is predicted to take rests on a guess.
    #[serde(skip)]
    pub(super) is_guess: bool,
}

/// What a node of the run was and did in its timed part.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) cpu: String,
    /// Relative to the fastest node of the run.
    pub(crate) speed: f64,
    /// Units of work per second, if measured.
    pub(crate) rate: Option<f64>,
    pub(crate) pes: Vec<Pe>,
}

/// Seconds of the timed part.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Pe {
    /// Relative to the fastest PE of the run.
    pub(crate) speed: f64,
    pub(crate) compute_s: f64,
    pub(crate) idle_s: f64,
    pub(crate) overhead_s: f64,
    /// In addition; reports of earlier versions have it among the others.
    #[serde(default)]
    pub(crate) core_wait_s: f64,
    #[serde(default)]
    pub(crate) quota_s: f64,
    #[serde(default)]
    pub(crate) throttled_s: f64,
}

impl Run {
    /// A run that was not made, as it is predicted to go.
    pub(super) fn predicted(
        source: &str,
        work: &PlannedWork<'_>,
        reckoned: &Reckoned,
        nodes: Vec<Node>,
    ) -> Self {
        Self {
            source: source.into(),
            run_id: String::new(),
            started_unix_ms: 0,
            program: work.program.name.into(),
            version: work.program.version.into(),
            commit: crate::COMMIT.into(),
            executable: String::new(),
            app: work.app.into(),
            arguments: work.arguments.clone(),
            exit_code: 0,
            error: None,
            verified: None,
            timed_s: Some(reckoned.seconds),
            work: work.work,
            speed_source: None,
            nodes,
            facts: Value::Null,
            is_guess: reckoned.is_guess,
        }
    }

    /// Each run once, whatever files tell of it, and what there is to say of the others.
    pub(super) fn once_each(all: Vec<Self>) -> (Vec<Self>, Vec<String>) {
        let (mut runs, mut remarks): (Vec<Self>, _) = (Vec::new(), Vec::new());
        for run in all {
            let id = (&run.run_id, run.started_unix_ms);
            let is_same =
                |known: &&Self| !run.run_id.is_empty() && (&known.run_id, known.started_unix_ms) == id;
            match runs.iter().find(is_same) {
                Some(known) => remarks.push(format!(
                    "{} and {} are reports of the same run, which counts once",
                    known.source, run.source
                )),
                None => runs.push(run),
            }
        }
        (runs, remarks)
    }

    /// Seconds of the timed part: above 0, as was checked.
    pub(crate) fn seconds(&self) -> f64 {
        self.timed_s.unwrap_or(f64::NAN)
    }

    /// The names of its nodes, whatever their order.
    pub(crate) fn mix(&self) -> BTreeSet<&str> {
        self.nodes.iter().map(|node| node.name.as_str()).collect()
    }

    /// Its arguments without those that change nothing of the timed work; those inside others as `system.n`.
    pub(crate) fn arguments_of_work(&self, aside: &[&str]) -> Map<String, Value> {
        let mut flat = Map::new();
        flatten("", &self.arguments, &mut flat);
        flat.retain(|name, _| !aside.contains(&name.as_str()));
        flat
    }

    /// Reads the report in a file.
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let unread = |e: std::io::Error| Failure::new(Kind::NoInput, format!("{name} cannot be read: {e}"));
        let mut bytes = Vec::new();
        File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes)).map_err(unread)?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(Failure::new(
                Kind::Input,
                format!("{name} has more than {BYTES_MAX} bytes: it is no report"),
            ));
        }
        Self::parse(&bytes, &name)
    }

    /// Understands a report; `source` names it in sentences.
    pub(crate) fn parse(bytes: &[u8], source: &str) -> Result<Self, Failure> {
        let refused = |why: String| Failure::new(Kind::Input, format!("{source} {why}"));
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|e| refused(format!("is not JSON ({e}); give files that `run --report` wrote")))?;
        let value = cleaned(value);
        match value.get("schema").and_then(Value::as_str) {
            Some(SCHEMA) => {}
            Some(other) => {
                let why = format!("is of the schema {other:?}, not {SCHEMA}; give reports of runs");
                return Err(refused(why));
            }
            None => {
                return Err(refused("is no report of a run; give files that `run --report` wrote".into()));
            }
        }
        let run: Self =
            serde_json::from_value(value).map_err(|e| refused(format!("is not a whole report: {e}")))?;
        let run = Self { source: source.into(), ..run };
        run.fault().map_or(Ok(()), |why| Err(refused(why)))?;
        Ok(run)
    }

    /// Why nothing can be learnt from it.
    fn fault(&self) -> Option<String> {
        if self.exit_code != 0 || self.error.is_some() {
            let why = self.error.as_deref().unwrap_or("it does not say why");
            return Some(format!("is of a run that failed: {why}"));
        }
        if self.verified == Some(false) {
            return Some("is of a run whose result is wrong".into());
        }
        if self.timed_s.is_none_or(|seconds| seconds <= 0.0) {
            return Some("has no timed part; the application does not say where it begins and ends".into());
        }
        if self.nodes.is_empty() || self.nodes.iter().any(|node| node.pes.is_empty()) {
            return Some("names no nodes, or one without PEs".into());
        }
        if self.mix().len() != self.nodes.len() {
            return Some("names a node twice".into());
        }
        // JSON has no infinite numbers, so below 0 is all that a number may be wrong by.
        let of_pes = self.nodes.iter().flat_map(|node| &node.pes);
        let times = of_pes.flat_map(|pe| {
            let others = [pe.core_wait_s, pe.quota_s, pe.throttled_s];
            [pe.speed, pe.compute_s, pe.idle_s, pe.overhead_s].into_iter().chain(others)
        });
        let of_nodes = self.nodes.iter().flat_map(|node| [node.speed, node.rate.unwrap_or(0.0)]);
        let is_negative = |number: f64| number < 0.0;
        if times.chain(of_nodes).chain(self.work).any(is_negative) {
            return Some("has a time, speed or amount of work below 0".into());
        }
        let has_speed = |node: &Node| node.speed > 0.0 && node.pes.iter().any(|pe| pe.speed > 0.0);
        if !self.nodes.iter().all(has_speed) {
            return Some("has a node without any speed".into());
        }
        None
    }
}

/// The same with texts of one line each, which can be shown anywhere.
fn cleaned(value: Value) -> Value {
    let text = |raw: &str| clean_line(raw, TEXT_MAX);
    match value {
        Value::String(raw) => Value::String(text(&raw)),
        Value::Array(values) => values.into_iter().map(cleaned).collect(),
        Value::Object(map) => map.into_iter().map(|(name, value)| (text(&name), cleaned(value))).collect(),
        other => other,
    }
}

fn flatten(path: &str, value: &Value, flat: &mut Map<String, Value>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(&format!("{path}{dot}{name}"), value, flat);
            }
        }
        _ => drop(flat.insert(path.into(), value.clone())),
    }
}
