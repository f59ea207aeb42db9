//! Start-up: the launcher tells every node the table of the run, and every node says that it joined or how
//! its program differs. Work begins when all have joined.
//!
//! One round trip for each node, over the launcher's link with it: a table has to reach every node anyway,
//! and nodes must not connect with each other before they have it. Any failure ends the start with an error
//! that names the node.

use super::ProtocolError;
use super::snapshot::Colour;
use crate::ids::NodeId;
use crate::topology::Topology;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// The most nodes and PEs that a run may have.
pub const NODES_MAX: usize = 4096;
/// See [`NODES_MAX`].
pub const PES_MAX: u32 = 65_536;
/// How often a node tells the launcher what it counts, where there are few.
const COUNTERS_EVERY: Duration = Duration::from_millis(100);
/// Of more nodes than this each does so more rarely.
const COUNTERS_OF: u16 = 100;
/// How many missing nodes an error names.
const NAMED_MAX: usize = 8;
/// The longest name or address in a table of nodes, bytes.
pub const NAME_BYTES_MAX: usize = 255;

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
    /// Counts of PEs of the nodes with which the run began, if these are others than now; else empty.
    pub begun: Vec<u32>,
    /// How many PEs, in their order, are on which node, for a node that joins later; else empty: in the order of nodes.
    pub stretches: Vec<(NodeId, u32)>,
    /// Whether the run initialises, or does its work already.
    pub is_init: bool,
    /// The colour of all that are there, of whom none is in a snapshot.
    pub colour: Colour,
}

impl ClusterTable {
    /// Of a run that begins with these nodes.
    #[must_use]
    pub fn new(run_id: &str, nodes: Vec<NodeEntry>) -> Self {
        Self {
            run_id: run_id.into(),
            nodes,
            begun: Vec::new(),
            stretches: Vec::new(),
            is_init: true,
            colour: Colour::default(),
        }
    }

    /// The PEs of the nodes, once the whole table has been checked.
    ///
    /// # Errors
    /// If other nodes than the launcher have no PEs at all, there are too many, the launcher has any, or names are missing,
    /// too long or used twice.
    pub fn topology(&self) -> Result<Topology, String> {
        let wrong = |what: String| Err(format!("the table of nodes {what}"));
        let counts: Vec<u32> = self.nodes.iter().map(|n| n.pe_count).collect();
        let total = counts.iter().try_fold(0u32, |sum, &n| sum.checked_add(n)).unwrap_or(u32::MAX);
        if counts.len() > NODES_MAX || total > PES_MAX {
            let limits = format!("at most {NODES_MAX} and {PES_MAX}");
            return wrong(format!("has {} nodes with {total} PEs, but a run has {limits}", counts.len()));
        }
        // A launcher may be alone.
        if counts.first() != Some(&0) || (total == 0 && counts.len() > 1) {
            return wrong("has no PEs, or some on the launcher".into());
        }
        let texts = self.nodes.iter().flat_map(|n| [&n.name, &n.address]).chain([&self.run_id]);
        if let Some(long) = texts.into_iter().find(|text| text.len() > NAME_BYTES_MAX) {
            return wrong(format!("holds a name of {} bytes: {:?}", long.len(), cut(long)));
        }
        let mut names = BTreeSet::new();
        // A node that has no PEs any more may have the name of one that has come since.
        let is_there = |n: &&NodeEntry| n.pe_count > 0 || n.address.is_empty();
        let mut there = self.nodes.iter().filter(is_there);
        match there.find(|n| n.name.is_empty() || !names.insert(&n.name)) {
            Some(node) => wrong(format!("has a name that is empty or not the only one: {:?}", node.name)),
            None if self.begun.is_empty() => self.topology_now(&counts),
            None => {
                let begun = self.begun.iter().try_fold(0u32, |sum, &n| sum.checked_add(n));
                let is_less = begun.is_some_and(|begun| begun <= total && begun > 0);
                if !is_less || self.begun.first() != Some(&0) || self.begun.len() > NODES_MAX {
                    return wrong(format!("has {total} PEs, but the run that goes on began with others"));
                }
                Ok(self.topology_now(&counts)?.gone_on_from(&self.begun))
            }
        }
    }

    /// Where PEs are, if each node has as many as is said of it.
    fn topology_now(&self, counts: &[u32]) -> Result<Topology, String> {
        if self.stretches.is_empty() {
            return Ok(Topology::new(counts));
        }
        let wrong = || Err("the table of nodes has PEs on other nodes than it says".to_string());
        let mut found = vec![0u64; counts.len()];
        for (node, count) in &self.stretches {
            let Some(found) = found.get_mut(node.as_usize()) else { return wrong() };
            *found += u64::from(*count);
        }
        if !found.iter().zip(counts).all(|(found, said)| *found == u64::from(*said)) {
            return wrong();
        }
        // There are no more nodes than were counted above.
        Ok(Topology::of_stretches(&self.stretches, u16::try_from(counts.len()).unwrap_or(u16::MAX)))
    }
}

impl NodeEntry {
    /// Whether it can be a node's that joins a run of so many nodes and PEs, under that number, if its address is one.
    #[must_use]
    pub fn can_join(&self, node: NodeId, node_count: u16, pe_count: u32) -> bool {
        let is_next = node.0 >= node_count && node.as_usize() < NODES_MAX;
        let is_named = !self.name.is_empty() && self.name.len().max(self.address.len()) <= NAME_BYTES_MAX;
        let has_pes = self.pe_count > 0 && self.pe_count.saturating_add(pe_count) <= PES_MAX;
        is_next && is_named && has_pes
    }
}

/// How often a node of a run of so many, launcher included, tells the launcher what it counts: ten times a second, but all
/// together no more than a thousand times, which a launcher and a host full of nodes can bear beside their work.
#[must_use]
pub fn counters_every(node_count: u16) -> Duration {
    COUNTERS_EVERY * u32::from(node_count.saturating_sub(1).div_ceil(COUNTERS_OF).max(1))
}

/// What launcher and nodes must have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Version of all that nodes say to each other.
    pub wire_version: u16,
    /// Lines of the program's table.
    pub lines: Vec<String>,
}

/// What the launcher says to a node at the start: this is the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// Version of all that the launcher says and understands.
    pub wire_version: u16,
    /// [`fingerprint`] of the launcher's program.
    pub fingerprint: u64,
    /// All nodes.
    pub table: ClusterTable,
}

/// What a node answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JoinAnswer {
    /// It is ready to work.
    Joined,
    /// The program there is another one, which is this.
    Differs(Build),
}

/// A fingerprint of a program's lines: equal programs have equal ones (64-bit FNV-1a, fixed for all builds).
#[must_use]
pub fn fingerprint(lines: &[String]) -> u64 {
    let bytes = lines.iter().flat_map(|line| line.bytes().chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The launcher's side: who has not joined yet.
#[derive(Debug)]
pub struct Joining {
    names: Vec<String>,
    missing: BTreeSet<NodeId>,
    build: Build,
    deadline: Duration,
    limit: Duration,
}

/// Why a run does not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// A node runs another program.
    #[error(
        "node {name:?} runs another build of the program: here {here:?}, there {there:?}; remove its `binary` \
         setting or put the same build there"
    )]
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
    /// A node's link or process was gone before all had joined.
    #[error("node {name:?} was lost during the start: {reason}")]
    Lost {
        /// The node.
        name: String,
        /// What is known.
        reason: String,
    },
    /// Somebody does not keep to the protocol.
    #[error("the start went wrong: {0}")]
    Protocol(#[from] ProtocolError),
}

impl Joining {
    /// Waits until `now + limit` for all nodes of `table` but the launcher.
    #[must_use]
    pub fn new(table: &ClusterTable, build: Build, now: Duration, limit: Duration) -> Self {
        let names: Vec<String> = table.nodes.iter().map(|n| n.name.clone()).collect();
        let missing = (1..names.len()).filter_map(|n| u16::try_from(n).ok().map(NodeId)).collect();
        Self { names, missing, build, deadline: now + limit, limit }
    }

    /// The greeting that every node but the launcher must get.
    #[must_use]
    pub fn welcome(&self, table: ClusterTable) -> Welcome {
        let Build { wire_version, lines } = &self.build;
        Welcome { wire_version: *wire_version, fingerprint: fingerprint(lines), table }
    }

    /// Takes a node's answer; true when all have joined. A repeated answer changes nothing.
    ///
    /// # Errors
    /// If the node runs another program, or is not in the table.
    pub fn handle(&mut self, from: NodeId, answer: JoinAnswer) -> Result<bool, JoinError> {
        let name = match self.names.get(from.as_usize()) {
            Some(name) if from != NodeId::LAUNCHER => name,
            _ => return Err(ProtocolError(format!("{from:?} cannot join this run")).into()),
        };
        match answer {
            JoinAnswer::Joined => {
                self.missing.remove(&from);
                Ok(self.missing.is_empty())
            }
            JoinAnswer::Differs(build) => {
                let (here, there) = first_difference(&self.build, &build);
                Err(JoinError::OtherBuild { name: name.clone(), here, there })
            }
        }
    }

    /// The link to `node`, or its process, is gone.
    ///
    /// # Errors
    /// Always while somebody has not joined: the run cannot start without `node`.
    pub fn lost(&self, node: NodeId, reason: &str) -> Result<(), JoinError> {
        match self.names.get(node.as_usize()) {
            Some(name) if !self.missing.is_empty() => {
                Err(JoinError::Lost { name: name.clone(), reason: reason.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// The nodes that have not joined yet.
    pub fn missing(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.missing.iter().copied()
    }

    /// Looks at the clock.
    ///
    /// # Errors
    /// When the time is over: who is missing.
    pub fn check(&self, now: Duration) -> Result<(), JoinError> {
        if now < self.deadline || self.missing.is_empty() {
            return Ok(());
        }
        let mut names: Vec<String> = self
            .missing
            .iter()
            .take(NAMED_MAX)
            .map(|n| format!("node {:?}", self.names[n.as_usize()]))
            .collect();
        if self.missing.len() > NAMED_MAX {
            names.push(format!("and {} more", self.missing.len() - NAMED_MAX));
        }
        Err(JoinError::Silent { names: names.join(", "), seconds: self.limit.as_secs() })
    }

    /// When [`check`](Self::check) should be called; `None` when all have joined.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        (!self.missing.is_empty()).then_some(self.deadline)
    }
}

/// A node's side: it waits for the launcher's welcome and answers it.
#[derive(Debug)]
pub struct Member {
    me: NodeId,
    node_count: u16,
    build: Build,
    table: Option<ClusterTable>,
}

impl Member {
    /// Node `me` of `node_count`, launcher included, of that build.
    #[must_use]
    pub fn new(me: NodeId, node_count: u16, build: Build) -> Self {
        Self { me, node_count, build, table: None }
    }

    /// Takes the welcome and gives the answer for the launcher. After `Joined` the table is there; after
    /// `Differs` this node should end, as the launcher will name the difference.
    ///
    /// # Errors
    /// If it does not come from the launcher, the table is impossible, is not of as many nodes as this node
    /// was told before, or this node has joined already.
    pub fn handle(&mut self, from: NodeId, welcome: Welcome) -> Result<JoinAnswer, ProtocolError> {
        let Welcome { wire_version, fingerprint, table } = welcome;
        if from != NodeId::LAUNCHER {
            return Err(ProtocolError(format!("{from:?} speaks as if it were the launcher")));
        }
        if self.table.is_some() {
            return Err(ProtocolError(format!("{:?} was welcomed a second time", self.me)));
        }
        let answer = answer(wire_version, fingerprint, &self.build);
        if answer == JoinAnswer::Joined {
            let count = table.topology().map_err(ProtocolError)?.node_count();
            if count != self.node_count || self.me == NodeId::LAUNCHER || self.me.0 >= count {
                return Err(ProtocolError(format!(
                    "the table of {count} nodes does not fit what {:?} was told before",
                    self.me
                )));
            }
            self.table = Some(table);
        }
        Ok(answer)
    }

    /// What it holds, bytes.
    #[cfg(test)]
    pub(super) fn state_bytes(&self) -> usize {
        let nodes = self.table.iter().flat_map(|table| &table.nodes);
        let entry = |n: &NodeEntry| size_of::<NodeEntry>() + n.name.len() + n.address.len();
        size_of::<Self>() + nodes.map(entry).sum::<usize>()
    }

    /// The table of the run, once joined.
    #[must_use]
    pub fn table(&self) -> Option<&ClusterTable> {
        self.table.as_ref()
    }
}

/// A node's answer to a welcome.
fn answer(wire_version: u16, theirs: u64, own: &Build) -> JoinAnswer {
    if wire_version == own.wire_version && theirs == fingerprint(&own.lines) {
        JoinAnswer::Joined
    } else {
        JoinAnswer::Differs(own.clone())
    }
}

/// The first line in which two programs differ, here and there; lines are cut to a readable length.
fn first_difference(here: &Build, there: &Build) -> (String, String) {
    let version = |build: &Build| format!("wire version {}", build.wire_version);
    let (lines_here, lines_there) = (&here.lines, &there.lines);
    let line = |all: &[String], at: usize| all.get(at).map_or("nothing more".into(), |line| cut(line));
    match (0..lines_here.len().max(lines_there.len())).find(|&at| lines_here.get(at) != lines_there.get(at)) {
        Some(at) => (line(lines_here, at), line(lines_there, at)),
        None => (version(here), version(there)),
    }
}

/// The beginning of a text that somebody else wrote.
fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PeId;
    use crate::proto::sim::Random;

    const SECOND: Duration = Duration::from_secs(1);

    fn member(id: u16, node_count: u16, texts: &[&str]) -> Member {
        Member::new(NodeId(id), node_count, build(texts))
    }

    fn table(pes: &[u32]) -> ClusterTable {
        let entry = |(i, &pe_count): (usize, &u32)| NodeEntry {
            name: format!("n{i}"),
            address: String::new(),
            pe_count,
        };
        ClusterTable::new("r", pes.iter().enumerate().map(entry).collect())
    }

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    fn build(texts: &[&str]) -> Build {
        Build { wire_version: 3, lines: lines(texts) }
    }

    fn joining(pes: &[u32], texts: &[&str]) -> Joining {
        Joining::new(&table(pes), build(texts), Duration::ZERO, 10 * SECOND)
    }

    #[test]
    fn all_join_or_the_silent_are_named() {
        let mut joining = Joining::new(&table(&[0, 1, 2]), build(&["a"]), SECOND, 10 * SECOND);
        let yes = answer(3, fingerprint(&lines(&["a"])), &build(&["a"]));
        assert_eq!(joining.handle(NodeId(1), yes.clone()), Ok(false));
        assert_eq!(joining.handle(NodeId(1), yes.clone()), Ok(false), "joining twice is joining once");
        assert_eq!(joining.check(10 * SECOND), Ok(()));
        assert_eq!(joining.timeout(), Some(11 * SECOND));
        let late = joining.check(11 * SECOND).unwrap_err();
        assert_eq!(late.to_string(), "node \"n2\" said nothing for 10 s after the start");
        assert_eq!(joining.handle(NodeId(2), yes), Ok(true));
        assert_eq!((joining.check(99 * SECOND), joining.timeout()), (Ok(()), None));
        assert_eq!(joining.lost(NodeId(2), "its link broke"), Ok(()));
    }

    #[test]
    fn of_many_missing_nodes_some_are_named_and_the_rest_counted() {
        let mut pes = vec![1; 21];
        pes[0] = 0;
        let late = joining(&pes, &[]).check(10 * SECOND).unwrap_err().to_string();
        assert!(
            late.starts_with("node \"n1\", ") && late.contains("\"n8\", and 12 more said nothing"),
            "{late}"
        );
    }

    #[test]
    fn another_build_is_named_with_the_first_line_that_differs() {
        let here = ["p 1", "Block: Tick"];
        let refused = |mut member: Member| {
            let mut joining = joining(&[0, 1], &here);
            let no = member.handle(NodeId::LAUNCHER, joining.welcome(table(&[0, 1]))).unwrap();
            assert!(member.table().is_none());
            joining.handle(NodeId(1), no).unwrap_err().to_string()
        };
        let error = refused(member(1, 2, &["p 1", "Block: Tick Tock", "Other: X"]));
        assert!(error.contains("here \"Block: Tick\", there \"Block: Tick Tock\""), "{error}");
        let error = refused(member(1, 2, &["p 1"]));
        assert!(error.contains("here \"Block: Tick\", there \"nothing more\""), "{error}");
        let error = refused(member(1, 2, &["p 1", &"é".repeat(5000)]));
        assert!(error.chars().count() < 500, "a long line is cut");
        let old = JoinAnswer::Differs(Build { wire_version: 0, lines: lines(&here) });
        let error = joining(&[0, 1], &here).handle(NodeId(1), old).unwrap_err();
        assert!(error.to_string().contains("there \"wire version 0\""), "{error}");
    }

    #[test]
    fn a_welcome_of_another_wire_version_is_not_joined() {
        let welcome = Welcome { wire_version: 77, fingerprint: fingerprint(&[]), table: table(&[0, 1]) };
        let answer = member(1, 2, &[]).handle(NodeId::LAUNCHER, welcome).unwrap();
        assert_eq!(answer, JoinAnswer::Differs(build(&[])));
    }

    #[test]
    fn a_node_lost_before_all_have_joined_ends_the_start() {
        let mut joining = joining(&[0, 1, 1], &[]);
        joining.handle(NodeId(1), JoinAnswer::Joined).unwrap();
        let error = joining.lost(NodeId(1), "its process ended with code 9").unwrap_err().to_string();
        assert_eq!(error, "node \"n1\" was lost during the start: its process ended with code 9");
        assert_eq!(joining.missing().collect::<Vec<_>>(), [NodeId(2)]);
    }

    #[test]
    fn a_member_joins_one_table_of_its_launcher_only() {
        let welcome = |pes: &[u32]| joining(pes, &["a"]).welcome(table(pes));
        let mut one = member(1, 2, &["a"]);
        assert!(one.handle(NodeId(2), welcome(&[0, 1])).is_err(), "not from the launcher");
        assert!(one.handle(NodeId::LAUNCHER, welcome(&[0, u32::MAX])).is_err(), "impossible");
        assert!(one.handle(NodeId::LAUNCHER, welcome(&[0, 1, 1])).is_err(), "of more nodes than said before");
        assert!(member(2, 2, &["a"]).handle(NodeId::LAUNCHER, welcome(&[0, 1])).is_err(), "not in the table");
        assert_eq!(one.table(), None);
        assert_eq!(one.handle(NodeId::LAUNCHER, welcome(&[0, 1])), Ok(JoinAnswer::Joined));
        assert_eq!(one.table(), Some(&table(&[0, 1])));
        let again = one.handle(NodeId::LAUNCHER, welcome(&[0, 1])).unwrap_err();
        assert_eq!(again.0, "node 1 was welcomed a second time");
    }

    #[test]
    fn counters_of_all_nodes_are_at_most_a_thousand_a_second() {
        assert_eq!(counters_every(2), COUNTERS_EVERY);
        assert_eq!(counters_every(101), COUNTERS_EVERY);
        for count in [102, 129, 513, 1024, 4096, u16::MAX] {
            let each = counters_every(count);
            assert!(u32::from(count - 1) <= each.as_millis() as u32, "{count} nodes, every {each:?}");
            assert!(each <= 2 * Duration::from_millis(count.into()), "{count} nodes, every {each:?}");
        }
    }

    #[test]
    fn impossible_tables_are_refused() {
        assert!(table(&[0, 2, 1]).topology().is_ok());
        assert!(table(&[1, 2]).topology().is_err());
        assert!(table(&[0]).topology().is_ok(), "the launcher alone");
        assert!(table(&[0, 0]).topology().is_err());
        assert!(table(&[]).topology().is_err());
        assert!(table(&[0, u32::MAX, 5]).topology().is_err());
        assert!(table(&[0, PES_MAX]).topology().is_ok());
        assert!(table(&[0, PES_MAX, 1]).topology().is_err());
        let mut many = vec![1; NODES_MAX + 1];
        many[0] = 0;
        assert!(table(&many).topology().is_err());
        assert!(table(&many[..NODES_MAX]).topology().is_ok());
        let mut twice = table(&[0, 1, 1]);
        twice.nodes[2].name = "n1".into();
        assert!(twice.topology().unwrap_err().contains("\"n1\""));
        twice.nodes[2].name = "x".repeat(NAME_BYTES_MAX + 1);
        assert!(twice.topology().unwrap_err().contains("256 bytes"));
    }

    /// Node 1 has left, and one of its name joins where its PE went to node 2.
    fn table_of_one_that_joins() -> ClusterTable {
        let mut late = table(&[0, 0, 2, 1]);
        late.nodes.iter_mut().skip(1).for_each(|node| node.address = "127.0.0.1:4000".into());
        late.nodes[3].name = "n1".into();
        (late.begun, late.stretches) = (vec![0, 1, 1], vec![(NodeId(2), 2), (NodeId(3), 1)]);
        late
    }

    #[test]
    fn who_joins_later_is_told_where_pes_are_now() {
        let begun = Topology::new(&[0, 1, 1]);
        let now = begun.rearranged(&[(PeId(0), NodeId(2))]).joined_by(NodeId(3), 1);
        let told = table_of_one_that_joins().topology().unwrap();
        assert_eq!(
            (told.begun(), told.stretches(), told.pe_counts()),
            (&begun, now.stretches(), now.pe_counts())
        );
        let wrong: [fn(&mut ClusterTable); 5] = [
            |late| late.stretches[0].1 = 1,
            |late| late.stretches[1].0 = NodeId(4),
            |late| late.stretches[1] = (NodeId(3), u32::MAX),
            |late| late.stretches.push((NodeId(0), 1)),
            |late| late.nodes[2].name = "n1".into(),
        ];
        for change in wrong {
            let mut late = table_of_one_that_joins();
            change(&mut late);
            assert!(late.topology().is_err(), "{late:?}");
        }
    }

    #[test]
    fn equal_programs_have_equal_fingerprints_on_every_build() {
        assert_eq!(fingerprint(&[]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint(&lines(&["a"])), fingerprint(&lines(&["a"])));
        assert_ne!(fingerprint(&lines(&["ab", "c"])), fingerprint(&lines(&["a", "bc"])));
    }

    /// A message with up to two bytes changed, if it can be decoded again.
    fn mutated<T: Serialize + serde::de::DeserializeOwned>(random: &mut Random, message: &T) -> Option<T> {
        let mut bytes = postcard::to_stdvec(message).unwrap();
        for _ in 0..random.below(3) {
            let at = usize::try_from(random.below(bytes.len() as u64)).unwrap();
            bytes[at] = random.bits().to_le_bytes()[0];
        }
        postcard::from_bytes(&bytes).ok()
    }

    #[test]
    fn mutated_messages_neither_panic_nor_make_an_impossible_table() {
        let mut random = Random::new(5);
        let here = ["p 1", "Block: Tick"];
        let welcomes = [table(&[0, 2, 1, 1]), table_of_one_that_joins()];
        let welcomes = welcomes.map(|table| joining(&[0, 2, 1], &here).welcome(table));
        let answers = [JoinAnswer::Joined, JoinAnswer::Differs(build(&here))];
        let (mut decoded, mut joined) = (0, 0);
        for number in 0..5000 {
            let from = random.node(4);
            if let Some(answer) = mutated(&mut random, &answers[number % 2]) {
                decoded += 1;
                let _refused = joining(&[0, 2, 1], &here).handle(from, answer);
            }
            let Some(welcome) = mutated(&mut random, &welcomes[number % 2]) else { continue };
            decoded += 1;
            let mut one = member(3, 4, &here);
            let _refused = one.handle(from, welcome);
            if let Some(table) = one.table() {
                joined += 1;
                assert!(table.topology().unwrap().node_count() > 1);
            }
        }
        assert!(decoded > 1000 && joined > 100, "{decoded} decoded, {joined} joined");
    }
}
