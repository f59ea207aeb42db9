//! What the runtime keeps beside each chare.

use crate::pup::pack;
use loadbalance::balance::Mobility;
use runtime::envelope::{CollectionId, ElementIndex, Packed};
use runtime::ids::PeId;
use runtime::pe::ending::Remains;
use runtime::pe::moving::Mover;
use runtime::schema::{Earlier, shape_of};
use serde::{Deserialize, Serialize};

/// What the runtime keeps beside each chare; moves with it. In a record it stands before the state.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Site {
    pub(crate) collection: CollectionId,
    pub(crate) index: ElementIndex,
    /// The PE where it was made.
    pub(crate) home: PeId,
    /// How its messages are numbered, once it has moved.
    pub(crate) mover: Option<Box<Mover>>,
    /// Number of its next reduction over the whole array.
    pub(crate) sequence: u32,
    /// Number of its next reduction over each section.
    pub(crate) sections: Vec<(u64, u32)>,
    /// It ends with the entry method that runs.
    pub(crate) is_leaving: bool,
    /// Where it may go.
    pub(crate) mobility: Mobility,
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
        Self {
            collection,
            index,
            home,
            mover: None,
            sequence: 0,
            sections: Vec::new(),
            is_leaving: false,
            mobility: Mobility::Anywhere,
        }
    }

    /// The same with what remains of a chare that was destroyed at its place.
    pub(crate) fn after(self, Remains { sequence, sections, mover }: Remains) -> Self {
        Self { sequence, sections, mover, ..self }
    }

    /// What remains of a chare that has been destroyed.
    pub(crate) fn remains(self) -> Remains {
        let Self { sequence, sections, mover, .. } = self;
        Remains { sequence, sections, mover }
    }

    /// How records of earlier versions are taken in.
    pub(crate) const EARLIER: Earlier = Earlier { shape: shape_of::<EarlierSite>, renew };

    /// Where a chare may go, by its record.
    pub(crate) fn mobility_of(record: &Packed) -> Mobility {
        postcard::take_from_bytes::<Self>(&record.body).map(|(site, _)| site.mobility).unwrap_or_default()
    }
}

fn renew(record: &Packed) -> Result<Packed, String> {
    let (earlier, state) =
        postcard::take_from_bytes::<EarlierSite>(&record.body).map_err(|error| error.to_string())?;
    let EarlierSite { collection, index, home, mover, sequence, sections, is_leaving } = earlier;
    let mobility = Mobility::Anywhere;
    let site = Site { collection, index, home, mover, sequence, sections, is_leaving, mobility };
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
        let (site, same): (Site, (u64, Bulk<f64>, String)) = unpack(&renewed).unwrap();
        assert_eq!((site.collection, site.index, site.home), (collection, index, PeId(5)));
        assert_eq!(
            (site.sequence, site.sections.clone(), site.mover.is_some()),
            (700, vec![(1 << 40, 2)], true)
        );
        assert_eq!((same.0, &same.1[..], &same.2[..]), (7, &[0.5; 1000][..], "state"));
        assert_eq!(Site::mobility_of(&renewed), Mobility::Anywhere);
        let pinned = Site { mobility: Mobility::one_of([9, 4, 9]), ..site };
        assert_eq!(Site::mobility_of(&pack(&(pinned, &state))), Mobility::OneOf([4, 9].into()));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        assert!(renew(&Packed::default()).is_err());
    }
}
