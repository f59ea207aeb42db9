//! What the two ends of a copy say to each other: messages in postcard, each after its length.

use super::super::format::Place;
use super::error::CopyError;
use crate::failure::{Failure, Kind};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// The longest message: the places of twenty million chunks, which are a terabyte.
const MESSAGE_MAX_BYTES: u32 = 1 << 30;

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// The number of the generation.
    pub generation: u32,
    /// How many chunks it has.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many of them were sent: the others were there.
    pub sent_chunks: u64,
    /// Their bytes.
    pub sent_bytes: u64,
}

/// What is asked of a process that has been started for it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    Give { dir: PathBuf, generation: Option<u32> },
    Take { dir: PathBuf },
}

/// What a generation is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Offer {
    /// The bytes of its `MANIFEST.json`.
    pub(super) manifest: Bytes,
    /// The bytes of its `index`.
    pub(super) index: Bytes,
    /// All chunks that it needs, in the order of files and of places in them.
    pub(super) places: Vec<Place>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// The first words to a process that has been started for it.
    Ask(Ask),
    /// The giver's first words.
    Offer(Offer),
    /// The taker's answer: the numbers of the chunks that it does not have, rising.
    Wants(Vec<u32>),
    /// Each of them, in that order.
    Chunk(Bytes),
    /// The taker's last words: all of it is on disk, and committed.
    Done(Copied),
    /// The last words of either end.
    Failed { code: u8, sentence: String },
}

impl Message {
    /// What is wrong if this comes where something else should.
    pub(super) fn unexpected(self) -> CopyError {
        match self {
            Self::Failed { code, sentence } => CopyError::There(Failure::new(Kind::Other(code), sentence)),
            _ => CopyError::Nonsense("it says something else than was asked"),
        }
    }
}

/// One end's way of hearing the other and of speaking to it.
pub struct Ends<'a> {
    from: &'a mut (dyn Read + Send),
    to: &'a mut (dyn Write + Send),
}

impl fmt::Debug for Ends<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ends")
    }
}

impl<'a> Ends<'a> {
    /// Of what comes from the other end, and what goes there.
    pub fn new(from: &'a mut (dyn Read + Send), to: &'a mut (dyn Write + Send)) -> Self {
        Self { from, to }
    }

    pub(super) fn say(&mut self, message: &Message) -> Result<(), CopyError> {
        let body = postcard::to_stdvec(message).map_err(|error| CopyError::Lost(io::Error::other(error)))?;
        let length = u32::try_from(body.len()).ok().filter(|length| *length <= MESSAGE_MAX_BYTES);
        let length = length.ok_or(CopyError::Nonsense("a message would be too long"))?;
        let sent = self.to.write_all(&[&length.to_le_bytes()[..], &body].concat());
        sent.and_then(|()| self.to.flush()).map_err(|error| match error.kind() {
            // Who listens no more has said why.
            io::ErrorKind::BrokenPipe => match self.hear() {
                Ok(message @ Message::Failed { .. }) => message.unexpected(),
                _ => CopyError::Lost(error),
            },
            _ => CopyError::Lost(error),
        })
    }

    pub(super) fn hear(&mut self) -> Result<Message, CopyError> {
        let mut length = [0; 4];
        self.from.read_exact(&mut length).map_err(CopyError::Lost)?;
        let length = u32::from_le_bytes(length);
        if length > MESSAGE_MAX_BYTES {
            return Err(CopyError::Nonsense("it announces too long a message"));
        }
        // Takes memory only for what has come, whatever length is announced.
        let mut body = Vec::new();
        self.from.take(u64::from(length)).read_to_end(&mut body).map_err(CopyError::Lost)?;
        if body.len() < length as usize {
            return Err(CopyError::Lost(io::ErrorKind::UnexpectedEof.into()));
        }
        postcard::from_bytes(&body).map_err(|_| CopyError::Nonsense("a message cannot be read"))
    }

    /// Tells the other end why this one gives up, if it is not the other's doing.
    pub(super) fn explain(&mut self, error: &CopyError) {
        if matches!(error, CopyError::Lost(_) | CopyError::There(_)) {
            return;
        }
        let code = error.kind().exit_code();
        let _ = self.say(&Message::Failed { code, sentence: error.to_string() });
    }
}
