//! A PE in a [snapshot](crate::proto::snapshot): between two messages it packs all it has and goes on. What was sent before its
//! sender was cut, and comes later, is saved beside that.

use super::Scheduler;
use super::pausing::{Saved, check_saved, open, saved};
use super::saver::Saver;
use crate::codec::ControlToLauncher;
use crate::envelope::{CallbackTarget, Envelope, Packed, Payload, Target, ToPe};
use crate::monitor::wire::PeState;
use crate::object::PupError;
use crate::pe::saving::{read, written};
use crate::priority::Priority;
use crate::proto::snapshot::{Colour, Turn};
use crate::saved::{RecordHeader, RecordOf, Sent};

/// How messages are saved that came late; another version is refused, and programs that know no such records take them for a PE
/// of a later version.
const VERSION: u16 = 3;

/// What a PE has to do with a snapshot.
#[derive(Default)]
pub(super) struct Snapshot {
    /// The colour of what comes out of the inbox now.
    pub(super) arriving: Colour,
    /// What was sent after its sender was cut, and came before this PE is.
    aside: Vec<Envelope>,
    /// What is open since it was cut.
    open: Option<Open>,
}

/// A snapshot of which more may come.
struct Open {
    saver: Saver,
    late: Vec<Saved>,
    /// How many messages more those have become that came late.
    split: u64,
}

impl Scheduler {
    /// Packs all there is of the PE, and goes on in the other colour. What no message can carry ends the run.
    pub(super) fn cut(&mut self) {
        let Some(mut waiting) = self.take_waiting() else { return };
        self.switch(PeState::Overhead);
        let began_ns = self.pe.node.now_ns();
        let (save, sums) = self.pe.node.one_is_cut();
        waiting.arrived = self.pe.cut().into_iter().map(relay).collect();
        let packed = self.pack_for(&mut waiting, sums, save);
        self.pe.queue.put_back(waiting.queue);
        // What is ordered is not counted among the messages of the run.
        self.pe.account().goes_on(1);
        let took_ns = self.pe.node.now_ns().saturating_sub(began_ns);
        let cut = match packed {
            Ok((records, saver)) => {
                self.snapshot.open = Some(Open { saver, late: Vec::new(), split: 0 });
                Ok((records, took_ns))
            }
            Err(error) => Err(error.to_string()),
        };
        self.pe.node.tell_launcher(ControlToLauncher::HasCut(self.pe.id, cut));
        for envelope in std::mem::take(&mut self.snapshot.aside) {
            self.take_one(envelope);
        }
    }

    /// Takes what has arrived in the other colour than the PE's, or from nobody.
    #[cold]
    pub(super) fn take_of_other_colour(&mut self, envelope: Envelope) {
        match self.turn_of(&envelope.target) {
            Turn::Now => self.take_one(envelope),
            Turn::Aside => self.snapshot.aside.push(envelope),
            Turn::Late => self.take_late(envelope),
        }
    }

    /// What is to be done with what arrives now.
    fn turn_of(&self, target: &Target) -> Turn {
        match target {
            // Nobody who is ever cut says such things.
            Target::Order(_) | Target::Record(_) | Target::Stop => Turn::Now,
            _ => self.pe.side().turn(self.snapshot.arriving),
        }
    }

    /// Whether what arrives now has to wait until the PE has been cut.
    pub(super) fn is_to_be_set_aside(&self, target: &Target) -> bool {
        self.turn_of(target) == Turn::Aside
    }

    /// Keeps an envelope until the PE has been cut.
    pub(super) fn set_aside(&mut self, envelope: Envelope) {
        self.snapshot.aside.push(envelope);
    }

    /// Saves what was on its way when the PE was cut, and takes it.
    fn take_late(&mut self, envelope: Envelope) {
        let late = self
            .pe
            .pack_envelope(envelope)
            .and_then(|made| Ok((made.iter().map(saved).collect::<Result<Vec<_>, _>>()?, made)));
        let (saved, made) = match late {
            Ok(late) => late,
            Err(error) => return self.pe.fail(error.to_string()),
        };
        let split = made.len().saturating_sub(1) as u64;
        self.pe.account().goes_on(split);
        if let Some(open) = &mut self.snapshot.open {
            open.late.extend(saved);
            open.split += split;
        }
        made.into_iter().for_each(|envelope| self.take_one(envelope));
    }

    /// Nothing more comes late: sends what did. The launcher is told in any case, because it waits for that.
    pub(super) fn close(&mut self) {
        self.pe.close();
        self.pe.account().goes_on(1);
        let sent = self.snapshot.open.take().map_or(Ok(0), |open| self.send_late(open));
        self.pe.node.tell_launcher(ControlToLauncher::Closed(self.pe.id, sent));
    }

    /// How many records it was.
    fn send_late(&self, Open { saver, late, split }: Open) -> Result<u64, String> {
        if late.is_empty() {
            return Ok(0);
        }
        let body = written(&(VERSION, split, late)).map_err(|error| error.to_string())?;
        let header = RecordHeader { pe: self.pe.id, of: RecordOf::Late { by: self.pe.id } };
        let packed = Packed { body: body.into(), attachments: Vec::new() };
        let (sent, packed) = Sent::new(header, packed).map_err(|error| error.to_string())?;
        Ok(saver.send(sent, packed))
    }
}

/// Messages that were on their way from or to the driver when it was cut, as a PE takes them in: whom the payload is for.
#[must_use]
pub fn late_relays(relays: Vec<(CallbackTarget, Packed)>) -> Packed {
    let late = relays.into_iter().map(|one| saved(&relay(one))).collect::<Result<Vec<_>, _>>();
    let body = late.and_then(|late| written(&(VERSION, 0u64, late)));
    let body = body.expect("callbacks and bytes can be written");
    Packed { body: body.into(), attachments: Vec::new() }
}

/// Has a PE pass something on.
fn relay((callback, payload): (CallbackTarget, Packed)) -> Envelope {
    Envelope::new(ToPe::Relay(Box::new(callback)), Priority::ORDINARY, Payload::packed(payload))
}

/// What was saved of messages that came late, and how many more they have become.
pub(super) fn read_late(bytes: &[u8]) -> Result<(Vec<Envelope>, u64), PupError> {
    let wrong = |why: String| PupError::new("what was on its way", why);
    let (version, _) = postcard::take_from_bytes::<u16>(bytes).map_err(|error| wrong(error.to_string()))?;
    if version != VERSION {
        return Err(wrong(format!("it is of version {version}, and this program knows {VERSION}")));
    }
    let (_, split, late): (u16, u64, Vec<Saved>) = read(bytes)?;
    check_saved(&late)?;
    Ok((open(late), split))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::PeOrder;

    #[test]
    fn what_came_late_is_read_as_it_was_and_nothing_else_is() {
        let payload = Packed { body: vec![1, 2, 3].into(), attachments: Vec::new() };
        let written_late = late_relays(vec![(CallbackTarget::Slot(7), payload.clone())]);
        let (late, split) = read_late(&written_late.body).unwrap();
        assert_eq!((late.len(), split), (1, 0));
        assert_eq!(late[0].target, ToPe::Relay(Box::new(CallbackTarget::Slot(7))).into());
        assert!(matches!(&late[0].payload, Payload::Packed(packed) if **packed == payload));
        let with = |version: u16, target: Target| {
            let message: Saved = (target, Priority::ORDINARY, Payload::packed(payload.clone()));
            written(&(version, 0u64, vec![message])).unwrap()
        };
        let relay = || ToPe::Relay(Box::new(CallbackTarget::Ignore)).into();
        assert!(read_late(&with(VERSION, relay())).is_ok());
        for wrong in [
            with(VERSION - 1, relay()),
            with(VERSION + 1, relay()),
            with(VERSION, Target::Stop),
            with(VERSION, Target::Order(PeOrder::Cut)),
            Vec::new(),
        ] {
            assert!(read_late(&wrong).is_err());
        }
    }
}
