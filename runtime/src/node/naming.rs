//! What messages are called in sentences for people: by chare type, entry method and element.

use super::Node;
use crate::codec::{Control, Header, Spread};
use crate::envelope::{CollectionId, ElementIndex, Target};
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
            Target::Element { collection, index, entry } => (Some(*collection), Some(*index), *entry),
            Target::All { collection, entry } | Target::Section { collection, entry, .. } => {
                (Some(*collection), None, *entry)
            }
            Target::Create(collection) => (Some(*collection), None, CONSTRUCTOR),
            Target::Insert { collection, index } => (Some(*collection), Some(*index), CONSTRUCTOR),
            Target::Partial(header) => (Some(header.collection), None, REDUCTION),
            Target::Relay(_) | Target::Measure { .. } | Target::Slot(_) | Target::NameHeld | Target::Stop => {
                (None, None, 0)
            }
        };
        Self { collection, index, entry }
    }
}

impl Node {
    /// The chare type, entry method and element that a message is for, as far as they are known here.
    pub(crate) fn describe(&self, brief: &Brief) -> String {
        let Some(id) = brief.collection else { return "a message".into() };
        let chare_type = id.as_singles().or_else(|| self.collection(id).map(|c| c.chare_type));
        let Some(chare_type) = chare_type else { return "a message".into() };
        let name = self.program.entry_name(chare_type, brief.entry);
        match brief.index {
            None => name,
            Some(ElementIndex([pe, ..])) if id.as_singles().is_some() => {
                format!("{name} of a single chare that {:?} made", PeId(pe))
            }
            Some(index) => format!("{name} of element {}", self.program.index_name(chare_type, index)),
        }
    }

    /// What a frame with that header carries.
    pub(super) fn name_of(&self, header: &Header) -> String {
        let entry_method =
            |collection, entry| self.describe(&Brief { collection: Some(collection), index: None, entry });
        let message = match header {
            Header::ToPe { target: Target::Slot(_), .. } => return "a result for the driver".into(),
            Header::ToPe { target, .. } | Header::Spread { what: Spread::Envelope { target, .. }, .. } => {
                self.describe(&Brief::of(target))
            }
            Header::Multicast { collection, entry, .. } | Header::Scatter { collection, entry, .. } => {
                entry_method(*collection, *entry)
            }
            Header::Spread { what: Spread::Collection(made), .. } => {
                self.program.entry_name(made.chare_type, CONSTRUCTOR)
            }
            Header::Spread { what: Spread::Variable { .. }, .. } => return "the value of a variable".into(),
            Header::Control(Control::Collected(_)) => return "the sum of an accumulator".into(),
            Header::Spread { what: Spread::InitOver(_), .. } | Header::Control(_) => {
                return "a word of the runtime".into();
            }
        };
        if message == "a message" { message } else { format!("the message for {message}") }
    }
}
