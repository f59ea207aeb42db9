//! What messages are called in sentences for people: by chare type, entry method and element.

use super::catalogue::Catalogue;
use crate::codec::{
    Announcement, ControlToLauncher, ControlToNode, Header, Spread, WorkToLauncher, WorkToNode,
};
use crate::envelope::{CollectionId, ElementIndex, Target, ToPe};
use crate::ids::PeId;
use crate::object::{CONSTRUCTOR, REDUCTION};

/// What is kept of a target to name it if its entry method fails.
pub(crate) struct Brief {
    pub(crate) collection: Option<CollectionId>,
    pub(crate) index: Option<ElementIndex>,
    pub(crate) entry: u16,
}

impl Brief {
    pub(crate) fn of(target: &Target) -> Self {
        let (collection, index, entry) = match target {
            Target::Message(message) => return Self::of_message(message),
            Target::All { collection, entry, .. } => (Some(*collection), None, *entry),
            Target::Section(section) => (Some(section.collection), None, section.entry),
            Target::Create(collection) => (Some(*collection), None, CONSTRUCTOR),
            Target::Replace { collection, index } => (Some(*collection), Some(*index), CONSTRUCTOR),
            Target::Copy { collection, index, entry } => (Some(*collection), Some(*index), *entry),
            Target::Depart { .. } | Target::Order(_) | Target::Record(_) | Target::Stop => (None, None, 0),
        };
        Self { collection, index, entry }
    }

    fn of_message(message: &ToPe) -> Self {
        let (collection, index, entry) = match message {
            ToPe::Element { collection, index, entry, .. } => (Some(*collection), Some(*index), *entry),
            ToPe::Insert { collection, index } => (Some(*collection), Some(*index), CONSTRUCTOR),
            ToPe::Partial(header) => (Some(header.collection), None, REDUCTION),
            ToPe::Contributors(said) => (Some(said.collection), None, REDUCTION),
            ToPe::Relay(_) | ToPe::Moving(_) => (None, None, 0),
        };
        Self { collection, index, entry }
    }
}

impl Catalogue {
    /// The chare type, entry method and element that a message is for, as far as they are known here.
    pub(crate) fn describe(&self, brief: &Brief) -> String {
        let Some(id) = brief.collection else { return "a message".into() };
        let Some(chare_type) = self.chare_type_of(id) else { return "a message".into() };
        let name = self.program().entry_name(chare_type, brief.entry);
        match brief.index {
            None => name,
            Some(ElementIndex([pe, ..])) if id.as_singles().is_some() => {
                format!("{name} of a single chare that {:?} made", PeId(pe))
            }
            Some(index) => format!("{name} of element {}", self.program().index_name(chare_type, index)),
        }
    }

    fn message_for(&self, brief: &Brief) -> String {
        let message = self.describe(brief);
        if message == "a message" { message } else { format!("the message for {message}") }
    }
}

/// A header that says what its frame carries.
pub(crate) trait Named: Header {
    /// The frame's content, as it is called where these chare types and collections are known.
    fn name_by(&self, known: &Catalogue) -> String;
}

impl Named for WorkToNode {
    fn name_by(&self, known: &Catalogue) -> String {
        match self {
            Self::ToPe { message, .. } => known.message_for(&Brief::of_message(message)),
            Self::Multicast { collection, entry, .. }
            | Self::Scatter { collection, entry, .. }
            | Self::Spread { what: Spread::Broadcast { collection, entry, .. }, .. } => {
                known.message_for(&Brief { collection: Some(*collection), index: None, entry: *entry })
            }
            Self::Spread { what: Spread::Announcement(announcement), .. } => announcement.name_by(known),
            Self::Record(_) => "what was saved".into(),
        }
    }
}

impl Named for WorkToLauncher {
    fn name_by(&self, known: &Catalogue) -> String {
        match self {
            Self::Result(_) => "a result for the driver".into(),
            Self::Loads => "the loads of chares".into(),
            Self::Record(_) => "what is to be saved".into(),
            Self::Announcement(announcement) => announcement.name_by(known),
        }
    }
}

impl Announcement {
    fn name_by(&self, known: &Catalogue) -> String {
        match self {
            Self::Collection(made) => {
                format!("the message for {}", known.program().entry_name(made.chare_type, CONSTRUCTOR))
            }
            Self::Variable { .. } => "the value of a variable".into(),
        }
    }
}

impl Named for ControlToNode {
    fn name_by(&self, _: &Catalogue) -> String {
        "a word of the runtime".into()
    }
}

impl Named for ControlToLauncher {
    fn name_by(&self, _: &Catalogue) -> String {
        match self {
            Self::Collected(_) => "the sum of an accumulator".into(),
            _ => "a word of the runtime".into(),
        }
    }
}
