//! Closing the connection between two nodes that have had nothing to say to each other for long, so that no node
//! holds one with each other: by agreement, and without a frame lost, overtaken, or a death suspected.
//!
//! Each end counts the frames that it has taken for the other since the run began, before they can leave, and those
//! that it has delivered. One that has seen neither number move for a while *asks to leave* a connection: it says both
//! numbers, and puts nothing more on its way until it is answered. The other compares them with its own. If what one
//! has sent is what the other has delivered, in both directions, it closes the connection; else it says *stay*, and all
//! goes on as before. Whoever has something to send later dials anew.
//!
//! Nothing is lost: let the one that asks have sent `s`, and the other have delivered as many when it closes. Whatever
//! is on its way to it was among the `s`, as nothing follows them; so nothing is. What the other sent is what the one
//! had delivered when it asked, so nothing is on its way back either. Nothing is overtaken, because until the answer
//! the one sends nowhere, and both have delivered everything before there can be another connection.
//!
//! The answer may be lost with the connection. Who has asked takes any end of it for the answer: if it was not, the
//! other end has not agreed, finds the connection broken, and says so.

use super::ProtocolError;
use std::time::Duration;

/// Frames of a link since the run began, over all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames that were accepted for the other end; each is counted before it can be sent.
    pub sent: u64,
    /// Frames from the other end that were delivered here.
    pub received: u64,
}

/// What the two ends say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartingWord {
    /// Asks whether this connection may be closed, with the counts of the end that asks.
    Leave(Tally),
    /// Answers that the connection is still needed.
    Stay,
}

/// What is to be done about a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Close the connection: nothing is on its way over it.
    Close,
    /// Send this word to the other end.
    Say(PartingWord),
    /// The connection stays: go on sending.
    Resume,
}

/// One end of a link. Connections go by numbers that the caller gives them.
#[derive(Debug, Default)]
pub struct Parting {
    seen: Tally,
    /// When the counts last changed, or the other end last wanted to stay.
    since: Duration,
    asked: Option<usize>,
}

impl Parting {
    /// Looks at the clock and the numbers, and asks to leave `connection` if they have not changed for `idle`; `None` as
    /// long as there is none, or it is in use.
    pub fn look(
        &mut self,
        now: Duration,
        idle: Duration,
        ours: Tally,
        connection: Option<usize>,
    ) -> Option<PartingWord> {
        if self.seen != ours {
            (self.seen, self.since) = (ours, now);
        }
        let is_idle = self.asked.is_none() && now.saturating_sub(self.since) >= idle;
        self.asked = Some(connection.filter(|_| is_idle)?);
        Some(PartingWord::Leave(ours))
    }

    /// Whether an answer is awaited, so that nothing may be sent.
    #[must_use]
    pub fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Takes a word that came over `connection`. `ours` are the numbers now; without them this end wants to stay,
    /// whatever they are.
    ///
    /// # Errors
    /// If it is an answer that nobody has asked for.
    pub fn handle(
        &mut self,
        now: Duration,
        connection: usize,
        word: PartingWord,
        ours: Option<Tally>,
    ) -> Result<Reply, ProtocolError> {
        match word {
            PartingWord::Leave(theirs) => {
                let mirrored = Tally { sent: theirs.received, received: theirs.sent };
                if ours != Some(mirrored) {
                    return Ok(Reply::Say(PartingWord::Stay));
                }
                self.ended(connection);
                Ok(Reply::Close)
            }
            PartingWord::Stay if self.ended(connection) => {
                self.since = now;
                Ok(Reply::Resume)
            }
            PartingWord::Stay => Err(ProtocolError("it wants to stay where nobody asked to leave".into())),
        }
    }

    /// `connection` has ended, however that was: whether this end had asked for it.
    pub fn ended(&mut self, connection: usize) -> bool {
        let is_answer = self.asked == Some(connection);
        if is_answer {
            self.asked = None;
        }
        is_answer
    }
}

impl PartingWord {
    /// As it travels: a kind, and for `Leave` two numbers, little-endian.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Leave(tally) => {
                [&[1][..], &tally.sent.to_le_bytes(), &tally.received.to_le_bytes()].concat()
            }
            Self::Stay => vec![2],
        }
    }

    /// The word in these bytes.
    ///
    /// # Errors
    /// If the bytes are no word of this protocol.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProtocolError> {
        let number = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        match (bytes, number(1), number(9)) {
            ([1, ..], Some(sent), Some(received)) if bytes.len() == Self::BYTES_MAX => {
                Ok(Self::Leave(Tally { sent, received }))
            }
            ([2], ..) => Ok(Self::Stay),
            _ => Err(ProtocolError("it said something about leaving that is not understood".into())),
        }
    }

    /// The longest word.
    pub const BYTES_MAX: usize = 17;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IDLE: Duration = Duration::from_secs(60);

    fn tally(sent: u64, received: u64) -> Tally {
        Tally { sent, received }
    }

    #[test]
    fn an_end_asks_once_its_numbers_have_rested() {
        let (mut end, second) = (Parting::default(), Duration::from_secs(1));
        assert_eq!(end.look(second, IDLE, tally(1, 0), Some(7)), None);
        assert_eq!(end.look(60 * second, IDLE, tally(1, 1), Some(7)), None);
        assert_eq!(end.look(119 * second, IDLE, tally(1, 1), Some(7)), None);
        assert_eq!(end.look(120 * second, IDLE, tally(1, 1), None), None, "in use, or there is none");
        let leave = PartingWord::Leave(tally(1, 1));
        assert_eq!(end.look(120 * second, IDLE, tally(1, 1), Some(7)), Some(leave));
        assert!(end.is_asking());
        assert_eq!(end.look(121 * second, IDLE, tally(1, 1), Some(8)), None, "one at a time");
        assert_eq!(end.handle(130 * second, 7, PartingWord::Stay, None), Ok(Reply::Resume));
        assert_eq!(end.look(189 * second, IDLE, tally(1, 1), Some(7)), None, "not again at once");
        assert!(end.handle(130 * second, 7, PartingWord::Stay, None).is_err(), "an answer to nothing");
    }

    #[test]
    fn only_mirrored_numbers_close() {
        let mut end = Parting::default();
        let mut reply = |ours| end.handle(IDLE, 1, PartingWord::Leave(tally(5, 3)), ours).unwrap();
        assert_eq!(reply(Some(tally(3, 5))), Reply::Close);
        for other in [None, Some(tally(5, 3)), Some(tally(3, 4)), Some(tally(4, 5))] {
            assert_eq!(reply(other), Reply::Say(PartingWord::Stay), "{other:?}");
        }
        assert!(!end.ended(1), "it has not asked");
    }

    proptest! {
        #[test]
        fn words_survive_their_bytes_and_noise_is_none(sent: u64, received: u64, noise: Vec<u8>) {
            for word in [PartingWord::Leave(tally(sent, received)), PartingWord::Stay] {
                prop_assert_eq!(PartingWord::from_bytes(&word.to_bytes()), Ok(word));
            }
            if let Ok(word) = PartingWord::from_bytes(&noise) {
                prop_assert_eq!(word.to_bytes(), noise);
            }
        }
    }
}
