//! What a link may bring that has to do with chares that move: checked as all that it brings.

use super::arrivals::{Checked, Checks, check_entry, impossible, unknown};
use crate::collection::ELEMENTS_MAX;
use crate::envelope::{CollectionId, Contributors, ElementId, ElementIndex};
use crate::ids::{NodeId, PeId};
use crate::moving::{Audience, Heading, Moving, Record, What};
use crate::object::ChareType;
use crate::proto::contributors::Change;
use crate::proto::location::{Load, Parcel, Sender};

impl Checks<'_> {
    /// Checks what is said to `pe`.
    pub(super) fn check_moving(&self, pe: PeId, moving: &Moving) -> Checked {
        match moving {
            Moving::Parcel(parcel) => self.check_parcel(pe, parcel),
            Moving::Parcels(parcels) => parcels.iter().try_for_each(|parcel| self.check_parcel(pe, parcel)),
            Moving::Tell { element, at, .. } => {
                self.check_element(*element)?;
                self.check_place(*at)
            }
            Moving::Introduce { element, home, chare } => {
                self.check_home(*element, *home)?;
                self.check_home(*chare, pe)
            }
            Moving::Arrive(record) => self.check_record(record),
            Moving::Remains(record) if record.element.collection.as_singles().is_some() => {
                impossible("what is left of a single chare")
            }
            Moving::Remains(record) => {
                self.check_home(record.element, pe)?;
                self.check_record(record)
            }
            Moving::Spoken { chare, audience, .. } => {
                self.check_home(*chare, pe)?;
                self.check_audience(audience)
            }
            Moving::Contribution(header, members) => {
                if header.count != 1 {
                    return impossible(format!("one element's contribution for {}", header.count));
                }
                let members = members.iter().map(|&index| ElementId { collection: header.collection, index });
                for member in members {
                    self.check_element(member)?;
                }
                self.check_partial_content(header)
            }
            Moving::Gone { chare, .. } | Moving::Forget { chare, .. }
                if chare.collection.as_singles().is_none() =>
            {
                impossible("an element of an array that is forgotten")
            }
            Moving::Gone { chare, .. } => self.check_home(*chare, pe),
            Moving::Forget { chare, .. } => self.check_element(*chare).map(|_| ()),
            Moving::Ask { pe } => self.check_place(*pe),
            Moving::MayAsk => Ok(()),
        }
    }

    fn check_parcel(&self, pe: PeId, parcel: &Parcel<ElementId, Heading>) -> Checked {
        let chare_type = self.check_element(parcel.key)?;
        if !self.is_pe(parcel.origin) {
            return unknown(format!("{:?}", parcel.origin));
        }
        match parcel.stamp {
            Some((sender, _)) => self.check_sender_of(sender)?,
            None if parcel.epoch > 0 => {
                return impossible("a message without a number for an element that has moved");
            }
            None => self.check_home(parcel.key, pe)?,
        }
        match &parcel.load {
            Load::Message(heading) => self.check_heading(chare_type, heading),
            Load::Begin(sender, _) => self.check_sender_of(*sender),
        }
    }

    fn check_record(&self, record: &Record) -> Checked {
        let chare_type = self.check_element(record.element)?;
        self.check_home(record.element, record.home)?;
        if self.kind_of(record.element.collection)?.1.is_some_and(|known| known.is_fixed) {
            return impossible("an element of a group that has moved");
        }
        if record.luggage.epoch == 0 {
            return impossible("an element that has not moved");
        }
        for sender in record.luggage.senders() {
            self.check_sender_of(sender)?;
        }
        let headings = record.mailbox.iter().chain(record.luggage.messages());
        headings.map(|(heading, _)| heading).try_for_each(|heading| self.check_heading(chare_type, heading))
    }

    /// Checks what is said to `pe` of how many elements take part in reductions. It comes from a PE of the same node, or of
    /// one that is next to it in the tree that reductions climb.
    pub(super) fn check_contributors(&self, from: NodeId, pe: PeId, said: &Contributors) -> Checked {
        let (_, known) = self.array(said.collection)?;
        match &said.change {
            Change::Fewer { count, .. } => {
                self.check_below(from, pe)?;
                let most = known.map_or(ELEMENTS_MAX, |known| known.len());
                if *count == 0 || *count > most {
                    return impossible(format!("{count} elements of {most} that were destroyed"));
                }
                Ok(())
            }
            Change::Joins { index, via, .. } => {
                self.check_below(from, pe)?;
                self.check_via((said.collection, *index), via)
            }
            Change::Joined { index, via, .. } => {
                if via.last().map(|(last, _)| last) != Some(&pe) {
                    return impossible(format!("an answer that goes another way than by {pe:?}"));
                }
                self.check_via((said.collection, *index), via)
            }
        }
    }

    /// Checks the places, from its home on, that have been told of an element.
    fn check_via(&self, (collection, index): (CollectionId, ElementIndex), via: &[(PeId, u32)]) -> Checked {
        let Some(&(home, _)) = via.first() else { return impossible("an element that comes from nowhere") };
        if via.len() > self.topology.node_count() as usize + 1 {
            return impossible("news of an element that go in a circle");
        }
        via.iter().try_for_each(|(place, _)| self.check_place(*place))?;
        self.check_home(ElementId { collection, index }, home)
    }

    fn check_audience(&self, audience: &Audience) -> Checked {
        let (chare_type, known) = self.array(audience.collection)?;
        check_entry(chare_type, Some(audience.entry))?;
        let mut members = audience.members.iter().flatten();
        match known.and_then(|known| members.find(|member| known.linear(**member).is_none())) {
            Some(outside) => unknown(format!("element {outside:?}")),
            None => Ok(()),
        }
    }

    fn check_heading(&self, chare_type: Option<&ChareType>, heading: &Heading) -> Checked {
        match heading.what {
            What::Run(entry) | What::Copy(entry) => check_entry(chare_type, Some(entry)),
            What::Migrate(to) => self.check_place(to),
            What::Replace => impossible("an element that is to be made where another is at home"),
        }
    }

    fn check_sender_of(&self, sender: Sender<ElementId>) -> Checked {
        match sender {
            Sender::Pe(pe) if self.is_pe(pe) => Ok(()),
            Sender::Pe(pe) => unknown(format!("{pe:?}")),
            Sender::Chare(chare) => self.check_element(chare).map(|_| ()),
        }
    }

    /// Checks that it is a PE with chares.
    fn check_place(&self, pe: PeId) -> Checked {
        if pe != PeId::DRIVER && self.is_pe(pe) { Ok(()) } else { unknown(format!("{pe:?}")) }
    }

    /// Checks that there may be such an element; its type, as far as that is known here.
    fn check_element(&self, ElementId { collection, index }: ElementId) -> Checked<Option<&ChareType>> {
        let (chare_type, known) = self.kind_of(collection)?;
        let may_be = match known {
            Some(known) => known.linear(index).is_some(),
            None => collection.as_singles().is_none() || self.is_pe(PeId(index.0[0])),
        };
        if may_be { Ok(chare_type) } else { unknown(format!("element {index:?} of {collection:?}")) }
    }

    /// Checks that an element is at home there.
    fn check_home(&self, element: ElementId, home: PeId) -> Checked {
        self.check_element(element)?;
        self.check_place(home)?;
        let ElementId { collection, index } = element;
        match self.kind_of(collection)?.1.and_then(|known| known.pe_of(index)) {
            Some(found) if found != home => impossible(format!("element {index:?} at home on {home:?}")),
            _ => Ok(()),
        }
    }
}
