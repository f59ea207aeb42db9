//! Messages of a scatter for elements of the same other node: written one behind the other, and there in one frame.

use crate::codec::{Refusal, ScatterPart, WorkToNode};
use crate::envelope::{CollectionId, ElementIndex, Packed, Payload};
use crate::ids::PeId;
use crate::mark::Mark;
use crate::payload::Unsent;
use bytes::Bytes;

/// From this length on a message goes by itself: to share a frame saves it little.
const ALONE_BYTES: usize = 1024;
/// A frame leaves as soon as it has so many bytes or messages, so that receivers work while the next messages are
/// written: 1,000 messages in one frame took half as long again as one by one. All messages in it are short, and so
/// keep their order with those that are sent directly.
const FULL_BYTES: usize = 2048;
const FULL_PARTS: usize = 32;
/// A node refuses frames with more messages, so that the cost of one frame is bounded.
pub(crate) const PARTS_MAX: usize = 1024;

/// Messages for one node that have been written and have not been sent yet.
#[derive(Debug, Default)]
pub(crate) struct Bundle {
    parts: Vec<ScatterPart>,
    body: Vec<u8>,
}

impl Bundle {
    /// Writes a message for the element at `index` on `pe` behind the others.
    ///
    /// # Errors
    /// The payload, if the message has to be sent by itself because it is long or has bulk data beside it. The bundle
    /// is as it was.
    pub(crate) fn add(
        &mut self,
        pe: PeId,
        index: ElementIndex,
        message: &mut dyn Unsent,
    ) -> Result<(), Payload> {
        let start = self.body.len();
        let attachments = message.write(&mut self.body).ok_or_else(|| message.payload(false))?;
        let len = self.body.len() - start;
        if attachments.is_empty() && len < ALONE_BYTES {
            self.parts.push(ScatterPart { pe, index, len_bytes: len as u32 });
            return Ok(());
        }
        let body = Bytes::copy_from_slice(&self.body[start..]);
        self.body.truncate(start);
        Err(Payload::packed(Packed { body, attachments }))
    }

    /// Whether the bundle is full and has to be sent before more is written.
    pub(crate) fn is_full(&self) -> bool {
        self.body.len() >= FULL_BYTES || self.parts.len() >= FULL_PARTS
    }

    /// Whether nothing has been written.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the header and the body of the frame, whose first message has the mark, and leaves an empty bundle.
    pub(crate) fn take(&mut self, collection: CollectionId, entry: u16, mark: Mark) -> (WorkToNode, Vec<u8>) {
        let Self { parts, body } = std::mem::take(self);
        let Mark { from, number } = mark;
        (WorkToNode::Scatter { collection, entry, from, number, parts }, body)
    }
}

/// The messages of a frame, those for each PE together and in their order.
///
/// # Errors
/// If the lengths of the messages do not add up to the length of the body.
pub(crate) fn open(parts: Vec<ScatterPart>, packed: &Packed) -> Result<Vec<(ScatterPart, Bytes)>, Refusal> {
    let whole: u64 = parts.iter().map(|part| u64::from(part.len_bytes)).sum();
    if whole != packed.body.len() as u64 || !packed.attachments.is_empty() {
        let bytes = packed.len_bytes();
        return Err(Refusal::Impossible(format!("a scatter of {whole} bytes that has {bytes}")));
    }
    let mut rest = packed.body.clone();
    let own = |part: ScatterPart| (part, rest.split_to(part.len_bytes as usize));
    let mut messages: Vec<_> = parts.into_iter().map(own).collect();
    messages.sort_by_key(|(part, _)| part.pe);
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::payload::Outgoing;
    use crate::proto::sim::Random;
    use proptest::prelude::*;

    /// A body and bulk data.
    struct Message(Vec<u8>, Vec<Buffer>);

    impl Outgoing for Message {
        fn payload(self, _: bool) -> Payload {
            Payload::packed(Packed { body: self.0.into(), attachments: self.1 })
        }

        fn write(self, out: &mut Vec<u8>) -> Result<Vec<Buffer>, Self> {
            out.extend_from_slice(&self.0);
            Ok(self.1)
        }
    }

    fn index(number: usize) -> ElementIndex {
        ElementIndex([number as u32, 0, 7])
    }

    fn bytes(number: usize, len: usize) -> Vec<u8> {
        (0..len).map(|at| (at + number) as u8).collect()
    }

    /// What a bundle holds.
    fn sent(bundle: &mut Bundle) -> (Vec<ScatterPart>, Packed) {
        let (WorkToNode::Scatter { parts, .. }, body) = bundle.take(CollectionId(1 << 63), 3, Mark::NONE)
        else {
            unreachable!()
        };
        (parts, Packed { body: body.into(), attachments: Vec::new() })
    }

    proptest! {
        #[test]
        fn every_message_comes_out_once_as_it_went_in(
            messages in prop::collection::vec((0u32..4, 0usize..1500, any::<bool>()), 0..60),
        ) {
            let (mut bundle, mut got, mut alone) = (Bundle::default(), Vec::new(), 0);
            for (number, &(pe, len, has_bulk)) in messages.iter().enumerate() {
                let bulk = if has_bulk && number % 5 == 0 { vec![Buffer::zeroed(9)] } else { Vec::new() };
                let goes_alone = len >= ALONE_BYTES || !bulk.is_empty();
                match bundle.add(PeId(pe), index(number), &mut Some(Message(bytes(number, len), bulk.clone()))) {
                    Ok(()) => prop_assert!(!goes_alone),
                    Err(Payload::Packed(packed)) => {
                        prop_assert!(goes_alone);
                        prop_assert_eq!(&packed.body[..], &bytes(number, len)[..]);
                        prop_assert_eq!(&packed.attachments, &bulk);
                        alone += 1;
                    }
                    Err(Payload::Value(_)) => prop_assert!(false, "it was moved"),
                }
                if bundle.is_full() || number + 1 == messages.len() {
                    let (parts, packed) = sent(&mut bundle);
                    prop_assert!(bundle.is_empty() && packed.body.len() < FULL_BYTES + ALONE_BYTES);
                    let opened = open(parts, &packed).unwrap();
                    prop_assert!(opened.is_sorted_by_key(|(part, _)| (part.pe, part.index)));
                    got.extend(opened);
                }
            }
            prop_assert_eq!(got.len() + alone, messages.len());
            for (part, body) in got {
                let number = part.index.0[0] as usize;
                prop_assert_eq!((part.pe, body.len()), (PeId(messages[number].0), messages[number].1));
                prop_assert_eq!(&body[..], &bytes(number, body.len())[..]);
            }
        }
    }

    #[test]
    fn a_frame_of_empty_messages_is_full_some_day() {
        let mut bundle = Bundle::default();
        for number in 0..FULL_PARTS {
            assert!(!bundle.is_full());
            assert!(bundle.add(PeId(0), index(number), &mut Some(Message(Vec::new(), Vec::new()))).is_ok());
        }
        assert!(bundle.is_full());
    }

    #[test]
    fn messages_that_do_not_make_up_the_body_are_refused() {
        let mut random = Random::new(5);
        for _ in 0..1000 {
            let mut bundle = Bundle::default();
            for number in 0..20 {
                let len = usize::from(random.node(90).0);
                assert!(
                    bundle
                        .add(PeId(0), index(number), &mut Some(Message(bytes(number, len), Vec::new())))
                        .is_ok()
                );
            }
            let (mut parts, mut packed) = sent(&mut bundle);
            assert!(open(parts.clone(), &packed).is_ok());
            match random.below(4) {
                0 => packed.attachments.push(Buffer::zeroed(0)),
                1 => parts[3].len_bytes = u32::MAX,
                2 => parts[19].len_bytes += 1,
                _ => packed.body = [&packed.body[..], &[0]].concat().into(),
            }
            assert!(open(parts, &packed).is_err());
        }
    }
}
