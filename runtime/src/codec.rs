//! What nodes say to each other, to bytes and from them. There is a type for each kind of receiver and of stream, so
//! that what must not arrive somewhere cannot be decoded there. What comes out of bytes is well-formed and no more: the
//! node checks it against the run before anything acts on it.

use crate::collection::Collection;
use crate::envelope::{CollectionId, ElementIndex, Packed, PeOrder, ToPe};
use crate::frame::{Class, Frame, LARGE_BYTES};
use crate::ids::{NodeId, PeId};
use crate::mark::Mark;
use crate::monitor::collectives::Collectives;
use crate::monitor::samples::Samples;
use crate::monitor::wire::{NodeSnapshot, Phase};
use crate::priority::Priority;
use crate::proto::ProtocolError;
use crate::proto::membership::{JoinAnswer, NodeEntry, Welcome};
use crate::proto::quiescence::QuiescenceMessage;
use crate::proto::snapshot::{Carried, Colour};
use crate::saved::{Cut, Extent, Paused, Save, Sent, ToKeep};
pub use crate::variable::VariableKind;
use bytes::Buf as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// Version of everything that nodes say to each other; nodes of different versions refuse each other.
pub const WIRE_VERSION: u16 = 23;

/// What every frame's body begins with, behind one byte that says which of these it is and what colour it has; the rest of the
/// body and the attachments are the payload.
pub trait Header: Debug + Serialize + DeserializeOwned {
    /// Whether such frames are for the launcher, or for nodes with PEs.
    const IS_FOR_LAUNCHER: bool;
    /// Whether they travel on the stream that is always read.
    const IS_CONTROL: bool;
    /// The first byte of those without colour.
    const KIND: u8 = Self::IS_FOR_LAUNCHER as u8 | (Self::IS_CONTROL as u8) << 1;

    /// Class of such a frame with a payload of so many bytes.
    fn class(payload_bytes: usize) -> Class {
        match payload_bytes {
            _ if Self::IS_CONTROL => Class::Control,
            0..LARGE_BYTES => Class::Small,
            _ => Class::Large,
        }
    }
}

/// The bits of the first byte that say what a frame is; the others are its [colour](coloured), if it has one.
const KIND_BITS: u8 = 0b11;

/// What frames are, by their first byte.
const KINDS: [&str; 4] = [
    "work for a node with PEs",
    "work for the launcher",
    "control of a node with PEs",
    "control for the launcher",
];

macro_rules! headers {
    ($($header:ident, $is_for_launcher:literal, $is_control:literal;)*) => { $(
        impl Header for $header {
            const IS_FOR_LAUNCHER: bool = $is_for_launcher;
            const IS_CONTROL: bool = $is_control;
        }
    )* };
}
headers! {
    WorkToNode, false, false;
    WorkToLauncher, true, false;
    ControlToNode, false, true;
    ControlToLauncher, true, true;
}

/// To a node with PEs, on the streams that are held back when it is behind.
#[derive(Debug, Serialize, Deserialize)]
pub enum WorkToNode {
    /// For one PE of the receiving node.
    ToPe {
        /// The receiving PE.
        pe: PeId,
        /// Priority of the envelope.
        priority: Priority,
        /// Whether and how the message is followed.
        mark: Option<Mark>,
        /// What the PE is to do.
        message: ToPe,
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
        priority: Priority,
        /// Whether and how it is followed.
        mark: Mark,
        /// The elements, by the PE where they live.
        members: MembersByPe,
    },
    /// For elements of the receiving node, to each a part of the payload's body.
    Scatter {
        /// Their collection.
        collection: CollectionId,
        /// Number of the entry method to run.
        entry: u16,
        /// The PE that sent it.
        from: PeId,
        /// Which message of that PE the first part is, of those that are followed; 0 if it is not.
        number: u32,
        /// Who gets which part, in the order of the parts.
        parts: Vec<ScatterPart>,
    },
    /// The payload is what was saved of the receiving node or one of its PEs.
    Record(Sent),
}

impl WorkToNode {
    /// A message for a PE of the receiving node, with its mark beside it.
    #[must_use]
    pub fn to_pe(pe: PeId, priority: Priority, message: ToPe) -> Self {
        let mark = Some(message.mark()).filter(|mark| !mark.is_none());
        Self::ToPe { pe, priority, mark, message }
    }
}

/// Members of a section by the PE where they live, in order.
pub type MembersByPe = Vec<(PeId, Vec<ElementIndex>)>;

/// To the launcher, on the streams that are held back when it is behind.
#[derive(Debug, Serialize, Deserialize)]
pub enum WorkToLauncher {
    /// The payload is a result for which the driver waits under this number.
    Result(u64),
    /// What the driver may be handed, and so has to know.
    Announcement(Announcement),
    /// The payload is what the PEs of the sender say of their chares' loads.
    Loads,
    /// The payload is to be saved.
    Record(ToKeep),
}

/// What reaches all nodes that have PEs along a tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Spread {
    /// A message to every element of a collection.
    Broadcast {
        /// The collection.
        collection: CollectionId,
        /// Number of the entry method to run.
        entry: u16,
        /// Priority of the envelopes.
        priority: Priority,
        /// Whether and how it is followed.
        mark: Mark,
    },
    /// What all nodes have to know.
    Announcement(Announcement),
}

/// What every node knows of the run besides its own messages; the one where it begins tells the launcher too.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Announcement {
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
}

/// The receiver and the length of one message in a frame with several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScatterPart {
    /// The PE where the receiver lives.
    pub pe: PeId,
    /// Index of the receiving element.
    pub index: ElementIndex,
    /// Length of this message in bytes; messages lie in the body one behind the other, in the order of their headers.
    pub len_bytes: u32,
}

/// To a node with PEs, on the stream that is always read.
#[derive(Debug, Serialize, Deserialize)]
pub enum ControlToNode {
    /// What the launcher alone says.
    Order(Order),
    /// Initialisation is over (true), or begins again (false); passed on along the tree that begins at the first node.
    InitOver(bool),
    /// Quiescence detection.
    Quiescence(QuiescenceMessage),
    /// A variable that this node waits for is in place at the sender.
    VariableSet(u64),
}

/// What the launcher tells a node to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Join the run.
    Welcome(Box<Welcome>),
    /// Send a snapshot of the counters, marked with this number.
    Ask(u32),
    /// These are the relative speeds of all PEs, the fastest 1.0.
    Speeds(Vec<f64>),
    /// Send what has been added to an accumulator.
    Collect(u64),
    /// So many bytes of what it sent to be saved have been kept.
    Kept(u64),
    /// Room for one of its PEs in the file of the checkpoint that is being written, if there is any.
    Extent(PeId, Option<Box<Extent>>),
    /// Have all its PEs save what they have and go on in the other colour.
    Cut(Save),
    /// Say what it has carried of a colour, in the round of this number.
    Count(u32, Colour),
    /// Nothing that was sent before its sender was cut comes any more.
    Close,
    /// Have one of its PEs do something.
    ToPe(PeId, PeOrder),
    /// These PEs are on these nodes from now on. Sent while all PEs stand still, to all nodes that stay.
    Arrange(Vec<(PeId, NodeId)>),
    /// Another node is of the run from now on, under this number. Sent while all PEs stand still, to all nodes that were there.
    Admit(NodeId, NodeEntry),
    /// The run is over, or goes on without this node: end.
    End,
}

/// To the launcher, on the stream that is always read.
#[derive(Debug, Serialize, Deserialize)]
pub enum ControlToLauncher {
    /// The answer to its welcome.
    Joining(JoinAnswer),
    /// Quiescence detection.
    Quiescence(QuiescenceMessage),
    /// Counters, ten times a second.
    Snapshot(Box<NodeSnapshot>),
    /// What its PEs ran and sent, of which little is kept.
    Samples(Box<Samples>),
    /// Reductions that its PEs passed on, of which few are told of.
    Collectives(Box<Collectives>),
    /// The counters asked for.
    Answer(u32, Box<NodeSnapshot>),
    /// The run cannot go on.
    Fault(String),
    /// The link to that node broke.
    LinkLost(NodeId, String),
    /// A variable is in place at the sender.
    VariableSet(u64),
    /// What a PE reached with the kernel, in units of work per second, and per second that the system let it run.
    Speed(PeId, f64, f64),
    /// What the sender has added to an accumulator. The payload is empty if nothing was added.
    Collected(u64),
    /// What the application is doing.
    Phase(Phase),
    /// A PE that stands still has done what it was told.
    Paused(PeId, Paused),
    /// A PE has been cut.
    HasCut(PeId, Cut),
    /// What the sender has carried of a colour, in the round of this number.
    Counted(u32, Carried),
    /// A PE has been told that nothing of the old colour comes any more: so many records more were of what came late; or why
    /// these cannot be saved.
    Closed(PeId, Paused),
    /// A PE has read so many bytes of what was saved of it so far.
    Reading(PeId, u64),
    /// A PE that may see the folder of the checkpoint of that number wants room there: so many bytes, or to know where it is.
    WantsExtent {
        /// The PE.
        pe: PeId,
        /// The number of the checkpoint in this run.
        checkpoint: u32,
        /// How much.
        bytes: u64,
    },
    /// What a PE has written to that folder itself is there for good, for the checkpoint of that number; or why it is not.
    Wrote(PeId, u32, Result<(), String>),
    /// A chare says that now is a good moment for a checkpoint.
    GoodMoment,
}

/// Why a frame is refused. That ends the run with a sentence that names the sender.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The header is not one.
    #[error("its header does not decode: {0}")]
    Header(postcard::Error),
    /// It is for another kind of receiver, or came on the wrong stream.
    #[error("it is {}, where only {} comes", kind(*found), kind(*expected))]
    Misplaced {
        /// Its first byte.
        found: u8,
        /// The first byte of what may come here.
        expected: u8,
    },
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

fn kind(first: u8) -> &'static str {
    let is_known = first == coloured(first & KIND_BITS, colour_of(first));
    KINDS.get(usize::from(first & KIND_BITS)).filter(|_| is_known).copied().unwrap_or("nothing that is known")
}

/// The first byte of a frame that was sent by somebody of that colour, if by anybody.
fn coloured(kind: u8, colour: Option<Colour>) -> u8 {
    let colour = match colour {
        None => 0,
        Some(Colour::White) => 1,
        Some(Colour::Red) => 2,
    };
    kind | colour << KIND_BITS.count_ones()
}

/// The colour of a frame, by its first byte; nothing where that says none.
fn colour_of(first: u8) -> Option<Colour> {
    match first >> KIND_BITS.count_ones() {
        1 => Some(Colour::White),
        2 => Some(Colour::Red),
        _ => None,
    }
}

/// Puts what a frame's body begins with into `out`.
pub(crate) fn append_header<H: Header>(header: &H, colour: Option<Colour>, out: &mut Vec<u8>) {
    out.push(coloured(H::KIND, colour));
    let written = postcard::to_extend(header, std::mem::take(out));
    *out = written.expect("headers hold nothing that postcard refuses");
}

/// Header and payload as one frame without colour.
#[must_use]
pub fn encode(header: &impl Header, payload: Packed) -> Frame {
    encode_in(None, header, payload)
}

/// The same in the colour of who has sent it, if anybody has.
#[must_use]
pub fn encode_in(colour: Option<Colour>, header: &impl Header, payload: Packed) -> Frame {
    let mut body = Vec::with_capacity(64 + payload.body.len());
    append_header(header, colour, &mut body);
    body.extend_from_slice(&payload.body);
    Frame { body: body.into(), attachments: payload.attachments }
}

/// A frame taken apart; ids and indices are not checked yet. It takes no more memory than a small multiple of
/// the body, whatever lengths that announces.
///
/// # Errors
/// If the body does not begin with such a header.
pub fn decode<H: Header>(frame: Frame) -> Result<(H, Packed), Refusal> {
    decode_in(frame).map(|(_, header, payload)| (header, payload))
}

/// The same with the colour of the frame, if it has one. Control has none.
///
/// # Errors
/// As those of [`decode`].
pub fn decode_in<H: Header>(frame: Frame) -> Result<(Option<Colour>, H, Packed), Refusal> {
    let Frame { mut body, attachments } = frame;
    let (&found, rest) =
        body.split_first().ok_or(Refusal::Header(postcard::Error::DeserializeUnexpectedEnd))?;
    let colour = colour_of(found).filter(|_| !H::IS_CONTROL);
    if found != coloured(H::KIND, colour) {
        return Err(Refusal::Misplaced { found, expected: H::KIND });
    }
    let (header, rest) = postcard::take_from_bytes::<H>(rest).map_err(Refusal::Header)?;
    let start = body.len() - rest.len();
    body.advance(start);
    Ok((colour, header, Packed { body, attachments }))
}
