//! What the runtime keeps beside each chare.

use crate::pup::pack;
use loadbalance::balance::Mobility;
use runtime::envelope::{CollectionId, ElementIndex, Packed};
use runtime::ids::PeId;
use runtime::pe::ending::Remains;
use runtime::pe::moving::Mover;
use runtime::schema::{Earlier, shape_of};
use serde::{Deserialize, Serialize, Serializer};

/// What the runtime keeps beside each chare; moves with it. In a record it stands before the state, as [`InRecord`]. Of small
/// chares there may be millions: what few of them have is elsewhere.
#[derive(Debug, Deserialize)]
#[serde(from = "Read")]
pub(crate) struct Site {
    pub(crate) collection: CollectionId,
    pub(crate) index: ElementIndex,
    /// The PE where it was made.
    pub(crate) home: PeId,
    /// How its messages are numbered, once it has moved.
    pub(crate) mover: Option<Box<Mover>>,
    /// Number of its next reduction over the whole array.
    pub(crate) sequence: u32,
    /// It ends with the entry method that runs.
    pub(crate) is_leaving: bool,
    rare: Option<Box<Rare>>,
}

/// What few chares have.
#[derive(Debug, Default)]
struct Rare {
    /// Number of its next reduction over each section.
    sections: Vec<(u64, u32)>,
    /// Where it may go.
    mobility: Mobility,
}

impl Rare {
    /// Nothing if it says nothing.
    fn new(sections: Vec<(u64, u32)>, mobility: Mobility) -> Option<Box<Self>> {
        let says_nothing = sections.is_empty() && mobility == Mobility::Anywhere;
        (!says_nothing).then(|| Box::new(Self { sections, mobility }))
    }
}

/// A [`Site`] as it stands in records: read as its own, written by references.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Site")]
struct InRecord<M, S, W> {
    collection: CollectionId,
    index: ElementIndex,
    home: PeId,
    mover: M,
    sequence: u32,
    sections: S,
    is_leaving: bool,
    mobility: W,
}

type Read = InRecord<Option<Box<Mover>>, Vec<(u64, u32)>, Mobility>;

impl From<Read> for Site {
    fn from(record: Read) -> Self {
        let InRecord { collection, index, home, mover, sequence, sections, is_leaving, mobility } = record;
        let rare = Rare::new(sections, mobility);
        Self { collection, index, home, mover, sequence, is_leaving, rare }
    }
}

impl Serialize for Site {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { collection, index, home, ref mover, sequence, is_leaving, ref rare } = *self;
        let sections = rare.as_ref().map_or(&[][..], |rare| &rare.sections);
        let mobility = self.mobility();
        InRecord { collection, index, home, mover, sequence, sections, is_leaving, mobility }
            .serialize(serializer)
    }
}

/// The same before chares could say where they may go: older checkpoints have it so.
#[derive(Serialize, Deserialize)]
struct EarlierSite {
    collection: CollectionId,
    index: ElementIndex,
    home: PeId,
    mover: Option<Box<Mover>>,
    sequence: u32,
    sections: Vec<(u64, u32)>,
    is_leaving: bool,
}

impl Site {
    /// Of a chare that is made.
    pub(crate) fn new(collection: CollectionId, index: ElementIndex, home: PeId) -> Self {
        Self { collection, index, home, mover: None, sequence: 0, is_leaving: false, rare: None }
    }

    /// Where it may go.
    pub(crate) fn mobility(&self) -> &Mobility {
        self.rare.as_ref().map_or(&Mobility::Anywhere, |rare| &rare.mobility)
    }

    pub(crate) fn set_mobility(&mut self, mobility: Mobility) {
        if mobility != *self.mobility() {
            self.rare.get_or_insert_default().mobility = mobility;
        }
    }

    /// The number of its next reduction over a section, which is counted.
    pub(crate) fn next_in_section(&mut self, section: u64) -> u32 {
        let sections = &mut self.rare.get_or_insert_default().sections;
        let at = sections.iter().position(|(id, _)| *id == section).unwrap_or_else(|| {
            sections.push((section, 0));
            sections.len() - 1
        });
        let (_, next) = &mut sections[at];
        *next += 1;
        *next - 1
    }

    /// The same with what remains of a chare that was destroyed at its place.
    pub(crate) fn after(self, Remains { sequence, sections, mover }: Remains) -> Self {
        let rare = Rare::new(sections, self.mobility().clone());
        Self { sequence, mover, rare, ..self }
    }

    /// What remains of a chare that has been destroyed.
    pub(crate) fn remains(self) -> Remains {
        let Self { sequence, mover, rare, .. } = self;
        let sections = rare.map_or_else(Vec::new, |rare| rare.sections);
        Remains { sequence, sections, mover }
    }

    /// How records of earlier versions are taken in.
    pub(crate) const EARLIER: Earlier = Earlier { shape: shape_of::<EarlierSite>, renew };

    /// Where a chare may go, by its record.
    pub(crate) fn mobility_of(record: &Packed) -> Mobility {
        postcard::take_from_bytes::<Read>(&record.body).map(|(site, _)| site.mobility).unwrap_or_default()
    }
}

fn renew(record: &Packed) -> Result<Packed, String> {
    let (earlier, state) =
        postcard::take_from_bytes::<EarlierSite>(&record.body).map_err(|error| error.to_string())?;
    let EarlierSite { collection, index, home, mover, sequence, sections, is_leaving } = earlier;
    let rare = Rare::new(sections, Mobility::Anywhere);
    let site = Site { collection, index, home, mover, sequence, is_leaving, rare };
    let body = [&pack(&site).body[..], state].concat();
    Ok(Packed { body: body.into(), attachments: record.attachments.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bulk;
    use crate::pup::unpack;

    #[test]
    fn a_record_of_an_earlier_version_is_one_of_a_chare_that_goes_anywhere() {
        let (collection, index) = (CollectionId::singles(3), ElementIndex([1, 2, 300]));
        let mover = Some(Box::new(Mover::new(runtime::ids::ElementId { collection, index }, PeId(5))));
        let (sequence, sections) = (700, vec![(1 << 40, 2)]);
        let earlier =
            EarlierSite { collection, index, home: PeId(5), mover, sequence, sections, is_leaving: false };
        let state = (7u64, Bulk::from_slice(&[0.5; 1000]), "state".to_string());
        let renewed = renew(&pack(&(earlier, &state))).unwrap();
        let (mut site, same): (Site, (u64, Bulk<f64>, String)) = unpack(&renewed).unwrap();
        assert_eq!((site.collection, site.index, site.home), (collection, index, PeId(5)));
        assert_eq!((site.sequence, site.mover.is_some()), (700, true));
        assert_eq!([1 << 40, 7, 1 << 40].map(|section| site.next_in_section(section)), [2, 0, 3]);
        assert_eq!((same.0, &same.1[..], &same.2[..]), (7, &[0.5; 1000][..], "state"));
        assert_eq!(Site::mobility_of(&renewed), Mobility::Anywhere);
        site.set_mobility(Mobility::one_of([9, 4, 9]));
        let record = pack(&(&site, &state));
        assert_eq!(Site::mobility_of(&record), Mobility::OneOf([4, 9].into()));
        let (mut same, _): (Site, (u64, Bulk<f64>, String)) = unpack(&record).unwrap();
        assert_eq!(same.mobility(), site.mobility());
        assert_eq!(same.next_in_section(1 << 40), 4);
        assert_eq!(same.remains().sections, [(1 << 40, 5), (7, 1)]);
    }

    #[test]
    fn what_is_no_record_is_refused() {
        assert!(renew(&Packed::default()).is_err());
    }
}
