//! What was measured; the fields are the keys of the JSON, explained in `schema.md`.

use super::fit::Fit;
use crate::statistics::Summary;
use chares::RunError;
use serde::Serialize;
use serde_json::Value;

/// All of it.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    pub(super) schema: &'static str,
    pub(super) version: &'static str,
    pub(super) commit: &'static str,
    pub(super) started_unix_ms: u64,
    pub(super) command_line: Vec<String>,
    pub(super) repeats: u64,
    pub(super) warm_up_s: f64,
    pub(super) nodes: Vec<Node>,
    pub(super) links: Vec<Link>,
    pub(super) collectives: Vec<Collective>,
}

/// A node that took part.
#[derive(Debug, Serialize)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) host: String,
    pub(super) pes: u32,
}

/// What lies between the two ends of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// Nothing: a PE with itself.
    OnePe,
    /// Memory: two PEs of a node.
    TwoPes,
    /// A network: two nodes.
    TwoNodes,
}

/// Messages between two PEs.
#[derive(Debug, Serialize)]
pub(super) struct Link {
    pub(super) kind: Kind,
    pub(super) from: String,
    pub(super) to: String,
    #[serde(flatten)]
    pub(super) fit: Fit,
    pub(super) stream_bytes_per_s: Option<f64>,
    pub(super) trips_per_sample: u64,
    pub(super) sizes: Vec<LinkSize>,
}

/// Messages of one length between two PEs.
#[derive(Debug, Serialize)]
pub(super) struct LinkSize {
    pub(super) bytes: u64,
    pub(super) latency_s: Summary,
    pub(super) stream: Stream,
}

/// Messages one after the other in one direction.
#[derive(Debug, Serialize)]
pub(super) struct Stream {
    pub(super) messages: u64,
    pub(super) messages_per_s: Summary,
    pub(super) bytes_per_s: f64,
}

/// Collective operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Operation {
    Scatter,
    Gather,
    AllToAllBroadcast,
}

impl Operation {
    pub(super) const ALL: [Self; 3] = [Self::Scatter, Self::Gather, Self::AllToAllBroadcast];

    /// For people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Scatter => "scatter",
            Self::Gather => "gather",
            Self::AllToAllBroadcast => "all-to-all broadcast",
        }
    }
}

/// An operation over all PEs that take part, and over one alone.
#[derive(Debug, Serialize)]
pub(super) struct Collective {
    pub(super) operation: Operation,
    pub(super) pes: usize,
    pub(super) sizes: Vec<CollectiveSize>,
}

/// An operation with messages of one length.
#[derive(Debug, Serialize)]
pub(super) struct CollectiveSize {
    pub(super) bytes: u64,
    pub(super) all_s: Summary,
    pub(super) one_pe_s: Summary,
}

impl Results {
    /// What a run is planned with, of each link: its ends, kind, latency and bandwidth.
    pub(super) fn figures(&self) -> Result<Value, RunError> {
        let mut links = serde_json::to_value(&self.links).map_err(|e| RunError::Failed(e.to_string()))?;
        for link in links.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            link.retain(|key, _| key != "sizes" && key != "trips_per_sample");
        }
        Ok(links)
    }
}
