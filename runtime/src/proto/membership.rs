//! Start-up: the launcher tells every node the table of the run, and every node says that it joined or how
//! its program differs. Work begins when all have joined.

use crate::codec::WIRE_VERSION;
use crate::ids::NodeId;
use crate::topology::Topology;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// The most nodes and PEs that a run may have.
pub const NODES_MAX: usize = 4096;
/// See [`NODES_MAX`].
pub const PES_MAX: u32 = 65_536;

/// A node as all others know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeEntry {
    /// Name from the nodes file.
    pub name: String,
    /// Where its QUIC endpoint listens, as text (`address:port`); empty if it is never dialled.
    pub address: String,
    /// Count of its PEs.
    pub pe_count: u32,
}

/// All nodes of a run, launcher first; a node's id is its place here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterTable {
    /// Unique name of the run.
    pub run_id: String,
    /// The nodes.
    pub nodes: Vec<NodeEntry>,
}

impl ClusterTable {
    /// The PEs of the nodes.
    ///
    /// # Errors
    /// If there are none or too many, or the launcher has any.
    pub fn topology(&self) -> Result<Topology, String> {
        let counts: Vec<u32> = self.nodes.iter().map(|n| n.pe_count).collect();
        let total = counts.iter().try_fold(0u32, |sum, &n| sum.checked_add(n)).unwrap_or(u32::MAX);
        if counts.len() > NODES_MAX || total > PES_MAX {
            return Err(format!("{} nodes with {total} PEs are more than a run may have", counts.len()));
        }
        if total == 0 || counts.first() != Some(&0) {
            return Err("the table of nodes has no PEs, or some on the launcher".into());
        }
        Ok(Topology::new(&counts))
    }
}

/// What launcher and nodes say to each other at the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MembershipMessage {
    /// Launcher to node: this is the run.
    Welcome {
        /// [`WIRE_VERSION`] of the launcher.
        wire_version: u16,
        /// [`fingerprint`] of the launcher's program.
        fingerprint: u64,
        /// All nodes.
        table: ClusterTable,
    },
    /// Node to launcher: ready to work.
    Joined,
    /// Node to launcher: the program here is another one; these are its lines.
    Differs {
        /// [`WIRE_VERSION`] of the node.
        wire_version: u16,
        /// Lines of its program table.
        lines: Vec<String>,
    },
}

/// A fingerprint of a program's lines: equal programs have equal ones (64-bit FNV-1a, fixed for all builds).
#[must_use]
pub fn fingerprint(lines: &[String]) -> u64 {
    let bytes = lines.iter().flat_map(|line| line.bytes().chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A node's answer to a welcome.
#[must_use]
pub fn answer(wire_version: u16, theirs: u64, lines: &[String]) -> MembershipMessage {
    if wire_version == WIRE_VERSION && theirs == fingerprint(lines) {
        MembershipMessage::Joined
    } else {
        MembershipMessage::Differs { wire_version: WIRE_VERSION, lines: lines.to_vec() }
    }
}

/// The launcher's side: who has not joined yet.
#[derive(Debug)]
pub struct Joining {
    names: Vec<String>,
    missing: BTreeSet<NodeId>,
    lines: Vec<String>,
    deadline: Duration,
    limit: Duration,
}

/// Why a run does not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// A node runs another program.
    #[error("node {name:?} runs another build of the program: here {here:?}, there {there:?}; remove its `binary` setting or put the same build there")]
    OtherBuild {
        /// The node.
        name: String,
        /// First line that differs, here.
        here: String,
        /// The same line there.
        there: String,
    },
    /// Nodes did not answer in time.
    #[error("{names} said nothing for {seconds} s after the start")]
    Silent {
        /// The nodes.
        names: String,
        /// The limit.
        seconds: u64,
    },
}

impl Joining {
    /// Waits until `now + limit` for all nodes of `table` but the launcher.
    #[must_use]
    pub fn new(table: &ClusterTable, lines: Vec<String>, now: Duration, limit: Duration) -> Self {
        let names: Vec<String> = table.nodes.iter().map(|n| n.name.clone()).collect();
        let missing = (1..names.len()).filter_map(|n| u16::try_from(n).ok().map(NodeId)).collect();
        Self { names, missing, lines, deadline: now + limit, limit }
    }

    /// Takes a node's answer; true when all have joined.
    ///
    /// # Errors
    /// If the node runs another program.
    pub fn handle(&mut self, from: NodeId, message: MembershipMessage) -> Result<bool, JoinError> {
        match message {
            MembershipMessage::Joined => {
                self.missing.remove(&from);
            }
            MembershipMessage::Differs { wire_version, lines } => {
                let name = self.names.get(from.as_usize()).cloned().unwrap_or_default();
                let wire = |version: u16| format!("wire version {version}");
                let end = || "nothing more".to_string();
                let longest = lines.len().max(self.lines.len());
                let line = |all: &[String], at: usize| all.get(at).cloned().unwrap_or_else(end);
                let differing = (0..longest).find(|&at| self.lines.get(at) != lines.get(at));
                let (here, there) = match differing {
                    Some(at) => (line(&self.lines, at), line(&lines, at)),
                    None => (wire(WIRE_VERSION), wire(wire_version)),
                };
                return Err(JoinError::OtherBuild { name, here, there });
            }
            MembershipMessage::Welcome { .. } => {}
        }
        Ok(self.missing.is_empty())
    }

    /// Looks at the clock.
    ///
    /// # Errors
    /// When the time is over: who is missing.
    pub fn check(&self, now: Duration) -> Result<(), JoinError> {
        if now < self.deadline || self.missing.is_empty() {
            return Ok(());
        }
        let names: Vec<String> =
            self.missing.iter().map(|n| format!("node {:?}", self.names[n.as_usize()])).collect();
        Err(JoinError::Silent { names: names.join(", "), seconds: self.limit.as_secs() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(pes: &[u32]) -> ClusterTable {
        let entry = |(i, &pe_count): (usize, &u32)| NodeEntry {
            name: format!("n{i}"),
            address: String::new(),
            pe_count,
        };
        ClusterTable { run_id: "r".into(), nodes: pes.iter().enumerate().map(entry).collect() }
    }

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn all_join_or_the_silent_are_named() {
        let second = Duration::from_secs(1);
        let mut joining = Joining::new(&table(&[0, 1, 2]), lines(&["a"]), second, 10 * second);
        let yes = answer(WIRE_VERSION, fingerprint(&lines(&["a"])), &lines(&["a"]));
        assert_eq!(joining.handle(NodeId(1), yes.clone()), Ok(false));
        assert_eq!(joining.check(10 * second), Ok(()));
        let late = joining.check(11 * second).unwrap_err();
        assert_eq!(late.to_string(), "node \"n2\" said nothing for 10 s after the start");
        assert_eq!(joining.handle(NodeId(2), yes), Ok(true));
        assert_eq!(joining.check(99 * second), Ok(()));
    }

    #[test]
    fn another_build_is_named_with_the_first_line_that_differs() {
        let here = lines(&["p 1", "Block: Tick"]);
        let there = lines(&["p 1", "Block: Tick Tock", "Other: X"]);
        let mut joining = Joining::new(&table(&[0, 1]), here.clone(), Duration::ZERO, Duration::ZERO);
        let no = answer(WIRE_VERSION, fingerprint(&here), &there);
        let error = joining.handle(NodeId(1), no).unwrap_err().to_string();
        assert!(error.contains("\"Block: Tick\"") && error.contains("\"Block: Tick Tock\""), "{error}");
        let old = MembershipMessage::Differs { wire_version: 0, lines: here };
        assert!(joining.handle(NodeId(1), old).unwrap_err().to_string().contains("wire version 0"));
    }

    #[test]
    fn impossible_tables_are_refused() {
        assert!(table(&[0, 2, 1]).topology().is_ok());
        assert!(table(&[1, 2]).topology().is_err());
        assert!(table(&[0]).topology().is_err());
        assert!(table(&[0, u32::MAX, 5]).topology().is_err());
    }
}
