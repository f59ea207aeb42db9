//! Frames on a stream of bytes.
//!
//! A frame is the length of its body (4 bytes), the count of its attachments (2), the length of each (8),
//! then the body and the attachments; all numbers little-endian.
//!
//! A sender writes a small message once, behind its header, and copies it into what leaves next. With what
//! [`arrivals`](crate::node) do on the other side, 6 to 8 million messages of 64 bytes go from node to node in a
//! second, where it was 3 before (`metachare bench --only link/rate`).

use crate::buffer::Buffer;
use crate::frame::{Frame, FrameLimits, FramingError};
use bytes::{Buf, Bytes, BytesMut};

const FIXED: usize = 6;

/// Puts what goes before a frame's body into `out`.
pub(super) fn put_prefix(frame: &Frame, out: &mut BytesMut) {
    let length = u32::try_from(frame.body.len()).unwrap_or(u32::MAX);
    let count = u16::try_from(frame.attachments.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    for attachment in &frame.attachments {
        out.extend_from_slice(&(attachment.len() as u64).to_le_bytes());
    }
}

/// What goes before the body of a frame without attachments.
pub(super) fn body_prefix(body: &[u8]) -> [u8; FIXED] {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let mut prefix = [0; FIXED];
    prefix[..4].copy_from_slice(&length.to_le_bytes());
    prefix
}

/// Makes frames of the chunks of a stream. Attachments go straight into their final buffer.
#[derive(Debug, Default)]
pub struct Decoder {
    limits: FrameLimits,
    prefix: BytesMut,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    body_len: usize,
    body: BytesMut,
    whole_body: Option<Bytes>,
    /// Lengths of all attachments.
    sizes: Vec<usize>,
    /// Those that have arrived, and the one that is being filled: what is only announced takes no memory.
    attachments: Vec<Buffer>,
    /// Count of those that have arrived, and how far the next is filled.
    full: usize,
    filled: usize,
}

impl Decoder {
    /// A decoder at the beginning of a stream.
    #[must_use]
    pub fn new(limits: FrameLimits) -> Self {
        Self { limits, prefix: BytesMut::new(), open: None }
    }

    /// Takes the next bytes of the stream and hands every frame that they complete to `deliver`.
    ///
    /// # Errors
    /// If a frame announces more than the limits allow; the stream is then of no further use.
    pub fn take(&mut self, mut chunk: Bytes, mut deliver: impl FnMut(Frame)) -> Result<(), FramingError> {
        loop {
            if self.open.is_none() && !self.open_next(&mut chunk)? {
                return Ok(());
            }
            let Some(open) = &mut self.open else { return Ok(()) };
            if !open.fill(&mut chunk) {
                return Ok(());
            }
            if let Some(open) = self.open.take() {
                let body = open.whole_body.unwrap_or_else(|| open.body.freeze());
                deliver(Frame { body, attachments: open.attachments });
            }
        }
    }

    /// Where the next bytes belong if they are of an attachment: they may be put there, and [`filled`](Self::filled) told.
    pub(super) fn space(&mut self) -> Option<&mut [u8]> {
        let open = self.open.as_mut()?;
        let filled = open.filled;
        open.attachments.get_mut(open.full).map(|buffer| &mut buffer.bytes_mut()[filled..])
    }

    /// So many bytes, as have come next, were put into the [`space`](Self::space).
    ///
    /// # Errors
    /// As those of [`take`](Self::take).
    pub(super) fn filled(&mut self, count: usize, deliver: impl FnMut(Frame)) -> Result<(), FramingError> {
        if let Some(open) = &mut self.open {
            open.filled += count;
        }
        self.take(Bytes::new(), deliver)
    }

    /// How many bytes are missing from the body of the frame that has begun.
    pub(super) fn missing_body(&self) -> usize {
        self.open.as_ref().map_or(0, |open| match open.whole_body {
            Some(_) => 0,
            None => open.body_len - open.body.len(),
        })
    }

    /// Reads a prefix; false if the chunk ends before it does.
    fn open_next(&mut self, chunk: &mut Bytes) -> Result<bool, FramingError> {
        if self.prefix.is_empty()
            && let Some(mut fixed) = chunk.get(..FIXED)
            && let (body_len, 0) = (fixed.get_u32_le(), fixed.get_u16_le())
        {
            // By far the most: read where it is.
            self.limits.check(u64::from(body_len), std::iter::empty())?;
            chunk.advance(FIXED);
            self.open = Some(Open::new(body_len, Vec::new()));
            return Ok(true);
        }
        if !self.gather(chunk, FIXED) {
            return Ok(false);
        }
        let mut fixed = &self.prefix[..FIXED];
        let (body_len, count) = (fixed.get_u32_le(), fixed.get_u16_le());
        // First without lengths: until these two are found sound, none is waited for.
        self.limits.check(u64::from(body_len), std::iter::repeat_n(0, usize::from(count)))?;
        if !self.gather(chunk, FIXED + 8 * usize::from(count)) {
            return Ok(false);
        }
        let mut lengths = &self.prefix[FIXED..];
        let lengths: Vec<u64> = (0..count).map(|_| lengths.get_u64_le()).collect();
        self.limits.check(u64::from(body_len), lengths.iter().copied())?;
        let size = |&bytes| {
            let limit = usize::MAX as u64;
            usize::try_from(bytes).map_err(|_| FramingError::Frame { bytes, limit })
        };
        let sizes = lengths.iter().map(size).collect::<Result<Vec<usize>, _>>()?;
        self.prefix.clear();
        self.open = Some(Open::new(body_len, sizes));
        Ok(true)
    }

    /// Moves bytes into the prefix until it holds `length`; false if the chunk ends before.
    fn gather(&mut self, chunk: &mut Bytes, length: usize) -> bool {
        let missing = length.saturating_sub(self.prefix.len()).min(chunk.len());
        self.prefix.extend_from_slice(&chunk.split_to(missing));
        self.prefix.len() >= length
    }
}

impl Open {
    fn new(body_len: u32, sizes: Vec<usize>) -> Self {
        Self {
            body_len: body_len as usize,
            body: BytesMut::new(),
            whole_body: None,
            sizes,
            attachments: Vec::new(),
            full: 0,
            filled: 0,
        }
    }

    /// Fills body and attachments; true when all are full.
    fn fill(&mut self, chunk: &mut Bytes) -> bool {
        if self.whole_body.is_none() && self.body.len() < self.body_len {
            if self.body.is_empty() && chunk.len() >= self.body_len {
                self.whole_body = Some(chunk.split_to(self.body_len));
            } else {
                let missing = (self.body_len - self.body.len()).min(chunk.len());
                self.body.extend_from_slice(&chunk.split_to(missing));
                if self.body.len() < self.body_len {
                    return false;
                }
            }
        }
        while let Some(&size) = self.sizes.get(self.full) {
            if self.attachments.len() == self.full {
                self.attachments.push(Buffer::for_arrival(size));
            }
            let buffer = &mut self.attachments[self.full];
            let missing = (buffer.len() - self.filled).min(chunk.len());
            buffer.bytes_mut()[self.filled..self.filled + missing].copy_from_slice(&chunk.split_to(missing));
            self.filled += missing;
            if self.filled < buffer.len() {
                return false;
            }
            (self.full, self.filled) = (self.full + 1, 0);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes_of(frames: &[Frame]) -> Bytes {
        let mut out = BytesMut::new();
        for frame in frames {
            put_prefix(frame, &mut out);
            out.extend_from_slice(&frame.body);
            frame.attachments.iter().for_each(|a| out.extend_from_slice(a.bytes()));
        }
        out.freeze()
    }

    fn frame() -> impl Strategy<Value = Frame> {
        let attachments = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..90), 0..4);
        (prop::collection::vec(any::<u8>(), 0..50), attachments).prop_map(|(body, attachments)| Frame {
            body: body.into(),
            attachments: attachments.iter().map(|a| Buffer::from_slice(a)).collect(),
        })
    }

    proptest! {
        #[test]
        fn frames_survive_any_cutting(frames in prop::collection::vec(frame(), 0..8), cut in 1usize..40) {
            let mut stream = bytes_of(&frames);
            let (mut decoder, mut got) = (Decoder::default(), Vec::new());
            while !stream.is_empty() {
                let chunk = stream.split_to(cut.min(stream.len()));
                decoder.take(chunk, |frame| got.push(frame)).unwrap();
            }
            prop_assert_eq!(got, frames);
        }

        #[test]
        fn garbage_neither_panics_nor_allocates_without_limit(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..20),
        ) {
            let limits = FrameLimits { body_bytes: 1000, frame_bytes: 5000, attachments: 3 };
            let mut decoder = Decoder::new(limits);
            for chunk in chunks {
                if decoder.take(chunk.into(), |frame| assert!(frame.len_bytes() <= 5000)).is_err() {
                    break;
                }
            }
        }
    }

    #[test]
    fn damaged_streams_give_whole_frames_or_an_error() {
        let limits = FrameLimits { body_bytes: 1000, frame_bytes: 5000, attachments: 3 };
        let numbers: Vec<u8> = (0..200).collect();
        let frames = [0usize, 1, 150].map(|n| Frame {
            body: numbers[..n].to_vec().into(),
            attachments: vec![Buffer::from_slice(&numbers[n..]), Buffer::zeroed(n)],
        });
        let sound = bytes_of(&frames);
        let mut state = 7u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        let mut refused = 0;
        for _ in 0..10_000 {
            let mut bytes = sound.to_vec();
            for _ in 0..=random(4) {
                let at = random(bytes.len());
                bytes[at] = u8::try_from(random(256)).unwrap();
            }
            bytes.truncate(1 + random(bytes.len()));
            let (mut decoder, mut rest) = (Decoder::new(limits), Bytes::from(bytes));
            while !rest.is_empty() {
                let chunk = rest.split_to(1 + random(rest.len()));
                if decoder.take(chunk, |frame| assert!(limits.check_frame(&frame).is_ok())).is_err() {
                    refused += 1;
                    break;
                }
            }
        }
        assert!((100..9_900).contains(&refused), "the damage is neither always nor never found: {refused}");
    }

    #[test]
    fn announced_buffers_take_no_memory_before_their_bytes_come() {
        let mut prefix = vec![0, 0, 0, 0, 0xff, 0xff];
        (0..u16::MAX).for_each(|_| prefix.extend_from_slice(&60_000u64.to_le_bytes()));
        let mut decoder = Decoder::default();
        decoder.take(prefix.into(), |_| {}).unwrap();
        decoder.take(vec![1; 60_001].into(), |_| {}).unwrap();
        let open = decoder.open.expect("the frame is not complete");
        assert_eq!((open.attachments.len(), open.filled), (2, 1));
    }

    #[test]
    fn what_is_over_a_limit_is_refused_before_it_is_stored() {
        let limits = FrameLimits { body_bytes: 10, frame_bytes: 20, attachments: 1 };
        let refused =
            |frame: &Frame| Decoder::new(limits).take(bytes_of(std::slice::from_ref(frame)), |_| {}).is_err();
        let frame = |body: usize, attachments: &[usize]| Frame {
            body: vec![0; body].into(),
            attachments: attachments.iter().map(|&n| Buffer::zeroed(n)).collect(),
        };
        assert!(!refused(&frame(10, &[10])));
        assert!(refused(&frame(11, &[])));
        assert!(refused(&frame(10, &[11])));
        assert!(refused(&frame(1, &[1, 1])));
        let mut huge = vec![0, 0, 0, 0, 1, 0];
        huge.extend([0xff; 8]);
        assert!(Decoder::default().take(huge.into(), |_| {}).is_err());
    }
}
