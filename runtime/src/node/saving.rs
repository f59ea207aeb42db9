//! What nodes share of a run that is saved, and how it comes back.

use super::Node;
use super::arrivals::impossible;
use super::held::Held;
use super::memory;
use crate::codec::{Refusal, WorkToLauncher, WorkToNode};
use crate::collection::Collection;
use crate::envelope::{Envelope, Packed, Payload, Target};
use crate::frame::FramingError;
use crate::ids::{NodeId, PeId};
use crate::priority::Priority;
use crate::saved::{
    FindSaved, FoundWriting, RecordHeader, RecordOf, SavedHere, SavedPlace, Sent, ToKeep, WritingPlace,
};
use std::sync::Arc;

/// Such a part of the memory that a host has left may be packed for a checkpoint by its nodes together, and such a part of what
/// its limit leaves a node by that one.
const HOST_PART: u64 = 4;
const LIMIT_PART: u64 = 2;

impl Node {
    /// All that the nodes share, on the launcher, which hears of everything: collections, then variables. What has been
    /// added to accumulators lies on the nodes.
    #[must_use]
    pub fn shared_records(&self) -> Vec<(RecordHeader, Packed)> {
        let record = |of| RecordHeader { pe: PeId::DRIVER, of };
        let collections = self.catalogue.all().into_iter().map(|known| {
            let body = postcard::to_stdvec(&*known).unwrap_or_default();
            (record(RecordOf::Collection), Packed { body: body.into(), attachments: Vec::new() })
        });
        let variables = self
            .variables
            .bytes()
            .into_iter()
            .map(|(id, kind, origin, packed)| (record(RecordOf::Variable { id, kind, origin }), packed));
        collections.chain(variables).collect()
    }

    /// Sends a record to a node: that of its PE, or any where it is of no PE.
    pub(crate) fn hand_over(&self, to: NodeId, sent: Sent, packed: Packed) {
        self.send_frame((to, None), &WorkToNode::Record(sent), packed);
    }

    /// Sends something to the launcher, to be saved.
    pub(crate) fn save(&self, record: ToKeep, packed: Packed) {
        self.send_frame((NodeId::LAUNCHER, None), &WorkToLauncher::Record(record), packed);
    }

    /// What is packed here to be saved, and not kept yet.
    pub(crate) fn held(&self) -> &Held {
        &self.held
    }

    /// How much may be packed here before PEs stand still until some of it has been kept, bytes. What is packed shares its arrays
    /// with the chares, and takes memory only as far as these go on to write to them: with a part of what is left, all of it may.
    pub(crate) fn packed_bytes_max(&self) -> u64 {
        let is_node = |id: &&NodeId| **id != NodeId::LAUNCHER;
        let sharers = self.fabric().map_or(0, |fabric| fabric.sharers().iter().filter(is_node).count());
        let of_host = memory::available_bytes() / HOST_PART / (1 + sharers as u64);
        self.memory_room_bytes().map_or(of_host, |room| of_host.min(room / LIMIT_PART))
    }

    /// Gives what nodes share to all of them, the launcher included; only there.
    ///
    /// # Errors
    /// If it is nothing of this run.
    pub fn share_again(&self, header: &RecordHeader, packed: &Packed) -> Result<(), Refusal> {
        let (sent, on_its_way) = Sent::new(header.clone(), packed.clone()).map_err(too_long)?;
        for node in self.topology().compute_nodes() {
            self.hand_over(*node, sent.clone(), on_its_way.clone());
        }
        self.take_record(header.clone(), packed.clone())
    }

    /// Gives a record to the PE that it is of; only on the launcher.
    ///
    /// # Errors
    /// If no message may be so long.
    pub fn give_back(&self, header: RecordHeader, packed: Packed) -> Result<(), Refusal> {
        self.give(self.topology().node_of(header.pe), header, packed)
    }

    /// Gives a record to a node; only on the launcher.
    pub(super) fn give(&self, to: NodeId, header: RecordHeader, packed: Packed) -> Result<(), Refusal> {
        let (sent, packed) = Sent::new(header, packed).map_err(too_long)?;
        self.hand_over(to, sent, packed);
        Ok(())
    }

    /// Has its PEs look for checkpoints themselves; once.
    pub fn find_saved_by(&self, finder: impl FindSaved + 'static) {
        if self.finder.set(Box::new(finder)).is_err() {
            tracing::error!("a node looks for checkpoints twice");
        }
    }

    /// A checkpoint, if it is here and the same; why it is not.
    pub(crate) fn find_saved(&self, place: &SavedPlace) -> Result<Arc<dyn SavedHere>, String> {
        self.finder.get().map_or(Err("nobody looks for it here".into()), |finder| finder.find(place))
    }

    /// The file of the checkpoint that is being written, if it is here and the same; why it is not.
    pub(crate) fn find_writing(&self, place: &WritingPlace) -> Result<FoundWriting, String> {
        self.finder.get().map_or(Err("nobody looks for it here".into()), |finder| finder.find_writing(place))
    }

    /// Takes in what was saved.
    pub(super) fn take_record(&self, header: RecordHeader, payload: Packed) -> Result<(), Refusal> {
        match header.of {
            RecordOf::Collection => {
                let unreadable =
                    |error| Refusal::Impossible(format!("a collection that does not decode: {error}"));
                let collection: Collection = postcard::from_bytes(&payload.body).map_err(unreadable)?;
                self.checks().check_collection(&collection)?;
                self.catalogue.add(None, collection);
            }
            RecordOf::Variable { id, kind, origin } => {
                self.variables.arrive(None, (id, kind, origin), payload, None);
            }
            RecordOf::Chare(_) | RecordOf::Pe | RecordOf::Late { .. } if header.pe != PeId::DRIVER => {
                let (pe, len_bytes) = (header.pe, payload.len_bytes() as u64);
                let target = Target::Record(Box::new(header));
                let envelope = Envelope::new(target, Priority::ORDINARY, Payload::Packed(Arc::new(payload)));
                self.pes.push_arrived(pe, None, envelope, len_bytes);
            }
            RecordOf::Sum(_)
            | RecordOf::Chare(_)
            | RecordOf::Pe
            | RecordOf::Late { .. }
            | RecordOf::Loads => {
                return impossible("a record of nobody here");
            }
        }
        Ok(())
    }
}

fn too_long(error: FramingError) -> Refusal {
    Refusal::Impossible(format!("too long: {error}"))
}
