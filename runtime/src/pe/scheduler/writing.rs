//! A PE that sees the folder of the checkpoint writes its chunks there itself, instead of sending them to the launcher: those go
//! from each node to the disk by one way less, and not all through one process.

use super::to_disk::{Batch, ToDisk};
use crate::digest::{Digested, Digests, WrittenChunk, chunk_of};
use crate::envelope::Packed;
use crate::ids::PeId;
use crate::node::Node;
use crate::saved::{RecordOf, Save, Sent, ToKeep};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// What is less goes to the launcher, for which no file need be opened and waited for.
const LEAST_BYTES: u64 = 256 << 10;

/// A record with its checksums.
pub(super) struct Ready {
    sent: Sent,
    packed: Packed,
    /// How many bytes it had before values were left out that the launcher has.
    packed_bytes: usize,
    digested: Vec<Digested>,
    /// Of each value, which chunks the PE can write, because the launcher does not have them.
    new: Vec<Vec<u32>>,
    /// How long these are before they are compressed.
    pub(super) new_bytes: u64,
}

impl Ready {
    /// Without the values that the launcher has from the last checkpoint, if it still has that.
    pub(super) fn new(
        sent: Sent,
        mut packed: Packed,
        digests: &mut Digests,
        (last, has_last): (&Digests, bool),
    ) -> Self {
        let packed_bytes = packed.len_bytes();
        let (digested, mut new) = sent.digest(&mut packed, digests, last, has_last);
        if !matches!(sent.header.of, RecordOf::Chare(_) | RecordOf::Pe) {
            // What has been added to accumulators is of the node.
            new.clear();
        }
        let length = |value: &Digested, chunk: &u32| {
            let Range { start, end } = chunk_of(value.len_bytes, *chunk);
            end - start
        };
        let of_value =
            |(value, new): (&Digested, &Vec<u32>)| new.iter().map(|chunk| length(value, chunk)).sum::<u64>();
        let new_bytes = digested.iter().zip(&new).map(of_value).sum();
        Self { sent, packed, packed_bytes, digested, new, new_bytes }
    }

    /// Which value of what travels one of the record is: a long body has become an attachment.
    fn value(&self, at: usize) -> usize {
        at + usize::from(self.sent.is_long)
    }
}

/// A record of which chunks are being written.
struct UnderWay {
    record: Ready,
    /// How many chunks of it are not in the file yet.
    left: usize,
    /// Those that are, of each value.
    written: Vec<Vec<WrittenChunk>>,
}

/// What one PE writes and sends for one checkpoint.
pub(super) struct Writing<'a> {
    node: &'a Arc<Node>,
    pe: PeId,
    save: Save,
    /// All is sent: it does not see the folder or cannot write to it, in this run, or may not, for this checkpoint.
    is_blind: bool,
    sends: bool,
    disk: Option<ToDisk>,
    /// What is to be written next, and memory for what comes after that.
    filling: Batch,
    spare: Batch,
    /// Records that have not been sent, and the number of the first.
    under_way: VecDeque<UnderWay>,
    first: u64,
}

impl<'a> Writing<'a> {
    pub(super) fn new(node: &'a Arc<Node>, pe: PeId, save: Save, is_blind: bool) -> Self {
        Self {
            node,
            pe,
            save,
            is_blind,
            sends: is_blind || !save.may_write,
            disk: None,
            filling: Batch::default(),
            spare: Batch::default(),
            under_way: VecDeque::new(),
            first: 0,
        }
    }

    /// Writes what the launcher does not have of these records, and sends the rest. The last of it may wait until the PE
    /// [settles](Self::settle).
    pub(super) fn put(&mut self, records: Vec<Ready>) {
        let bytes: u64 = records.iter().map(|record| record.new_bytes).sum();
        if bytes < LEAST_BYTES || !self.sees() {
            self.settle();
            return records.into_iter().for_each(|record| self.send(record));
        }
        for record in records {
            if self.sends {
                self.send(record);
            } else {
                self.add(record);
            }
        }
    }

    fn add(&mut self, mut record: Ready) {
        let number = self.first + self.under_way.len() as u64;
        let new = std::mem::take(&mut record.new);
        let left = new.iter().map(Vec::len).sum();
        let written = if left > 0 { vec![Vec::new(); new.len()] } else { Vec::new() };
        self.under_way.push_back(UnderWay { record, left, written });
        let chunks = (0..).zip(new).flat_map(|(value, new)| new.into_iter().map(move |chunk| (value, chunk)));
        for (value, chunk) in chunks {
            let (Some(last), Some(disk)) = (self.under_way.back(), &mut self.disk) else { return };
            let bytes = last.record.packed.value(last.record.value(value));
            self.filling.add(number, (value, chunk), bytes, &mut *disk.stored);
            if self.filling.is_full() {
                self.turn();
            }
        }
        self.send_whole();
    }

    /// Whether the PE sees the folder; it looks once.
    fn sees(&mut self) -> bool {
        if self.disk.is_none() && !self.sends {
            self.node.ask_for_extent(self.pe, self.save.checkpoint, 0);
            let found = self.node.extent(self.pe).map(|extent| self.node.find_writing(&extent.place));
            match found {
                Some(Ok(found)) => {
                    self.disk = ToDisk::begin(self.node, (self.pe, self.save.checkpoint), found);
                }
                Some(Err(why)) => self.goes_blind(&why),
                None => {}
            }
            self.sends = self.disk.is_none();
        }
        !self.sends
    }

    fn goes_blind(&mut self, why: &str) {
        tracing::info!("{:?} sends what is to be saved: {why}", self.pe);
        self.is_blind = true;
    }

    /// Waits until what is being written is, and has what has been filled written.
    fn turn(&mut self) {
        self.wait();
        let spare = std::mem::take(&mut self.spare);
        if let Some(disk) = self.disk.as_mut().filter(|_| !self.sends && !self.filling.chunks.is_empty()) {
            disk.write(std::mem::replace(&mut self.filling, spare));
        }
    }

    /// Waits until what is being written is.
    fn wait(&mut self) {
        let Some((batch, written)) = self.disk.as_mut().and_then(ToDisk::written) else { return };
        match written {
            Ok(offset) => {
                for (number, value, chunk) in &batch.chunks {
                    if let Some(record) = self.under_way.get_mut((number - self.first) as usize) {
                        record.left -= 1;
                        record.written[*value].push(WrittenChunk { offset: offset + chunk.offset, ..*chunk });
                    }
                }
                self.send_whole();
            }
            Err(why) => {
                why.iter().for_each(|why| self.goes_blind(why));
                self.give_up();
            }
        }
        self.spare = batch.emptied();
    }

    /// All that there is has been written, and is sent.
    pub(super) fn settle(&mut self) {
        self.turn();
        self.wait();
    }

    /// From now on all is sent, beginning with what is under way.
    fn give_up(&mut self) {
        self.sends = true;
        self.filling = Batch::default();
        for UnderWay { record, .. } in std::mem::take(&mut self.under_way) {
            self.first += 1;
            self.send(record);
        }
    }

    /// Sends the records whose chunks are all written, up to the first of which one is not.
    fn send_whole(&mut self) {
        while let Some(UnderWay { mut record, written, .. }) =
            self.under_way.pop_front_if(|first| first.left == 0)
        {
            self.first += 1;
            for (at, written) in written.into_iter().enumerate() {
                let value = &mut record.digested[at];
                if !value.chunks.is_empty() && !value.is_left_out {
                    (value.is_left_out, value.written) = (true, written);
                    record.packed.leave_out(record.value(at));
                }
            }
            self.send(record);
        }
    }

    fn send(&self, record: Ready) {
        let Ready { sent, packed, packed_bytes, digested, .. } = record;
        let sent_bytes = packed.len_bytes();
        self.node.held().left_out((packed_bytes - sent_bytes) as u64);
        self.node.held().send(sent_bytes as u64, self.save.sent_bytes_max);
        self.node.save(ToKeep { checkpoint: self.save.checkpoint, sent, digested }, packed);
    }

    /// All records have been put; the launcher is told when what was written outlasts a crash. Whether the PE has turned out not to see
    /// the folder.
    pub(super) fn end(mut self) -> bool {
        self.settle();
        self.is_blind || self.disk.is_some_and(|disk| !disk.end())
    }
}

#[cfg(test)]
mod tests;
