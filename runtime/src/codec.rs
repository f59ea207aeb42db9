//! Headers of frames to and from bytes. What comes in is checked here against the run; nothing is trusted.

use crate::collection::Collection;
use crate::envelope::{ElementIndex, Packed, Target};
use crate::frame::Frame;
use crate::ids::{NodeId, PeId};
use crate::monitor::wire::{NodeSnapshot, Phase};
use crate::object::ProgramTable;
use crate::proto::membership::MembershipMessage;
use crate::proto::quiescence::QuiescenceMessage;
use crate::topology::Topology;
use serde::{Deserialize, Serialize};

/// Version of everything that nodes say to each other; nodes of different versions refuse each other.
pub const WIRE_VERSION: u16 = 2;

/// First part of every frame's body; the rest of the body and the attachments are the payload.
#[derive(Debug, Serialize, Deserialize)]
pub enum Header {
    /// For one PE of the receiving node.
    ToPe {
        /// Which one.
        pe: PeId,
        /// The envelope's.
        priority: i32,
        /// The envelope's.
        target: Target,
    },
    /// For every node that has PEs; passed on along the tree that begins at `root`.
    Spread {
        /// Where the tree begins.
        root: NodeId,
        /// What each node does with it.
        what: Spread,
    },
    /// Between the nodes themselves.
    Control(Control),
}

/// What reaches all nodes along a tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Spread {
    /// An envelope for each PE.
    Envelope {
        /// The envelope's.
        priority: i32,
        /// The envelope's.
        target: Target,
    },
    /// A new collection; the payload is its elements' constructor argument.
    Collection(Collection),
    /// The value of a variable; `acknowledge` is told when it is in place.
    Variable {
        /// Which one.
        id: u64,
        /// How it changes.
        kind: VariableKind,
        /// Where it came from.
        origin: PeId,
        /// Node that waits until all have it.
        acknowledge: Option<NodeId>,
    },
    /// The program's initialisation is over (true) or begins again (false).
    InitOver(bool),
}

/// Kinds of variables that all nodes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VariableKind {
    /// Set once: readonly and write-once variables.
    Once,
    /// Improves over time; each origin's later value replaces its earlier one.
    Monotonic,
}

/// What nodes say to each other outside any PE's queue.
#[derive(Debug, Serialize, Deserialize)]
pub enum Control {
    /// Start-up.
    Membership(MembershipMessage),
    /// Quiescence detection.
    Quiescence(QuiescenceMessage),
    /// To the launcher: counters, ten times a second and when asked.
    Snapshot(Box<NodeSnapshot>),
    /// To a node: send a snapshot, marked with this number.
    Ask(u32),
    /// To the launcher: the snapshot asked for.
    Answer(u32, Box<NodeSnapshot>),
    /// To the launcher: the run cannot go on.
    Fault(String),
    /// To the launcher: the link to that node broke.
    LinkLost(NodeId, String),
    /// To the acknowledged node: a variable is in place here.
    VariableSet(u64),
    /// To the launcher: what a PE reached with the kernel, in units of work per second.
    Speed(PeId, f64),
    /// To all: relative speeds of all PEs, fastest 1.0.
    Speeds(Vec<f64>),
    /// To a node: send what has been added to an accumulator.
    Collect(u64),
    /// To the launcher: that; the payload holds it, if anything was added here.
    Collected(u64),
    /// To the launcher: what the application is doing.
    Phase(Phase),
    /// To all: the run is over, end.
    End,
}

/// Why a frame is refused; the link that brought it is closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The header is not one.
    #[error("the header of a message does not decode: {0}")]
    Header(postcard::Error),
    /// It names something that this run does not have.
    #[error("a message names {0}, which this run does not have")]
    Unknown(String),
}

/// Header and payload as one frame.
#[must_use]
pub fn encode(header: &Header, payload: Packed) -> Frame {
    let head = Vec::with_capacity(64 + payload.body.len());
    let mut body = postcard::to_extend(header, head).expect("headers hold nothing that postcard refuses");
    body.extend_from_slice(&payload.body);
    Frame { body: body.into(), attachments: payload.attachments }
}

/// A frame taken apart; ids and indices are not checked yet.
///
/// # Errors
/// If the body does not begin with a header.
pub fn decode(frame: Frame) -> Result<(Header, Packed), DecodeError> {
    let (header, rest) = postcard::take_from_bytes::<Header>(&frame.body).map_err(DecodeError::Header)?;
    let start = frame.body.len() - rest.len();
    Ok((header, Packed { body: frame.body.slice(start..), attachments: frame.attachments }))
}

/// Checks that a PE that came by a link is one of this run.
///
/// # Errors
/// If it is not.
pub fn check_pe(pe: PeId, topology: &Topology) -> Result<(), DecodeError> {
    let is_known = pe == PeId::DRIVER || pe.0 < topology.pe_count();
    if is_known { Ok(()) } else { Err(DecodeError::Unknown(format!("{pe:?}"))) }
}

/// Checks entry numbers and indices of a target that came by a link, as far as `collection_of` knows them.
///
/// # Errors
/// If an entry or index lies outside what its collection has.
pub fn check_target(
    target: &Target,
    program: &ProgramTable,
    collection_of: impl Fn(crate::envelope::CollectionId) -> Option<std::sync::Arc<Collection>>,
) -> Result<(), DecodeError> {
    let unknown = |what: String| Err(DecodeError::Unknown(what));
    let (id, entry, members): (_, _, &[ElementIndex]) = match target {
        Target::Element { collection, index, entry } => {
            (collection, Some(*entry), std::slice::from_ref(index))
        }
        Target::Insert { collection, index } => (collection, None, std::slice::from_ref(index)),
        Target::Section { collection, members, entry } => (collection, Some(*entry), members),
        Target::All { collection, entry } => (collection, Some(*entry), &[]),
        Target::Measure { kernel, .. } if usize::from(*kernel) >= program.kernels.len() => {
            return unknown(format!("kernel {kernel}"));
        }
        Target::Stop => return unknown("an end from outside".into()),
        _ => return Ok(()),
    };
    let (chare_type, shape) = match (id.as_singles(), collection_of(*id)) {
        (Some(chare_type), _) => (chare_type, None),
        (None, Some(collection)) => (collection.chare_type, Some(collection)),
        (None, None) => return Ok(()),
    };
    let Some(known) = program.chare_types.get(usize::from(chare_type)) else {
        return unknown(format!("chare type {chare_type}"));
    };
    if entry.is_some_and(|e| usize::from(e) >= known.entries.len()) {
        return unknown(format!("entry method {} of {}", entry.unwrap_or_default(), known.name));
    }
    match shape.and_then(|c| members.iter().find(|m| c.linear(**m).is_none()).copied()) {
        Some(index) => unknown(format!("element {index:?} of {}", known.name)),
        None => Ok(()),
    }
}
