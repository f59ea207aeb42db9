//! Headers of frames to and from bytes. What comes out of bytes is well-formed and no more: the node checks it
//! against the run before anything acts on it.

use crate::collection::Collection;
use crate::envelope::{CollectionId, ElementIndex, Packed, Target};
use crate::frame::Frame;
use crate::ids::{NodeId, PeId};
use crate::monitor::wire::{NodeSnapshot, Phase};
use crate::proto::ProtocolError;
use crate::proto::membership::MembershipMessage;
use crate::proto::quiescence::QuiescenceMessage;
use crate::scatter::ScatterPart;
use bytes::Buf as _;
use serde::{Deserialize, Serialize};

/// Version of everything that nodes say to each other; nodes of different versions refuse each other.
pub const WIRE_VERSION: u16 = 6;

/// First part of every frame's body; the rest of the body and the attachments are the payload.
#[derive(Debug, Serialize, Deserialize)]
pub enum Header {
    /// For one PE of the receiving node.
    ToPe {
        /// The receiving PE.
        pe: PeId,
        /// Priority of the envelope.
        priority: i32,
        /// What the PE is to do.
        target: Target,
    },
    /// For every node that has PEs; passed on along the tree that begins at `root`.
    Spread {
        /// Where the tree begins.
        root: NodeId,
        /// What each node does with it.
        what: Spread,
    },
    /// For some elements of a collection; whoever gets it passes on what is for other nodes.
    Multicast {
        /// The collection.
        collection: CollectionId,
        /// Number of the entry method to run.
        entry: u16,
        /// Priority of the envelope.
        priority: i32,
        /// The elements, by the PE where they live.
        members: Vec<(PeId, Vec<ElementIndex>)>,
    },
    /// For elements of the receiving node, to each a part of the payload's body.
    Scatter {
        /// Their collection.
        collection: CollectionId,
        /// Number of the entry method to run.
        entry: u16,
        /// Who gets which part, in the order of the parts.
        parts: Vec<ScatterPart>,
    },
    /// Between the nodes themselves.
    Control(Control),
}

/// What reaches all nodes along a tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Spread {
    /// An envelope for each PE.
    Envelope {
        /// Priority of the envelopes.
        priority: i32,
        /// What each PE is to do.
        target: Target,
    },
    /// A new collection; the payload is its elements' constructor argument.
    Collection(Collection),
    /// The value of a variable; `acknowledge` is told when it is in place.
    Variable {
        /// The variable.
        id: u64,
        /// How it changes.
        kind: VariableKind,
        /// Where it came from.
        origin: PeId,
        /// Node that waits until all have it.
        acknowledge: Option<NodeId>,
    },
    /// The program has said that initialisation is over (true), or that it begins again (false).
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
    /// From the launcher to a node: send a snapshot of the counters, marked with this number.
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
    /// To the launcher: what this node has added to an accumulator. The payload is empty if nothing was added.
    Collected(u64),
    /// To the launcher: what the application is doing.
    Phase(Phase),
    /// To all: the run is over, end.
    End,
}

/// Why a frame is refused. That ends the run with a sentence that names the sender.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The header is not one.
    #[error("its header does not decode: {0}")]
    Header(postcard::Error),
    /// It names something that this run does not have.
    #[error("it names {0}, which this run does not have")]
    Unknown(String),
    /// Nobody may say that, or not this node, or not now.
    #[error("it is {0}")]
    Impossible(String),
    /// It does not fit what was said before.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

/// Puts what a frame's body begins with into `out`.
pub(crate) fn append_header(header: &Header, out: &mut Vec<u8>) {
    let written = postcard::to_extend(header, std::mem::take(out));
    *out = written.expect("headers hold nothing that postcard refuses");
}

/// Header and payload as one frame.
#[must_use]
pub fn encode(header: &Header, payload: Packed) -> Frame {
    let mut body = Vec::with_capacity(64 + payload.body.len());
    append_header(header, &mut body);
    body.extend_from_slice(&payload.body);
    Frame { body: body.into(), attachments: payload.attachments }
}

/// A frame taken apart; ids and indices are not checked yet. It takes no more memory than a small multiple of
/// the body, whatever lengths that announces.
///
/// # Errors
/// If the body does not begin with a header.
pub fn decode(frame: Frame) -> Result<(Header, Packed), Refusal> {
    let Frame { mut body, attachments } = frame;
    let (header, rest) = postcard::take_from_bytes::<Header>(&body).map_err(Refusal::Header)?;
    let start = body.len() - rest.len();
    body.advance(start);
    Ok((header, Packed { body, attachments }))
}
