//! A PE that sees the folder of the checkpoint writes its chunks there itself, instead of sending them to the launcher: those go
//! from each node to the disk by one way less, and not all through one process.

use super::to_disk::{Batch, ToDisk};
use crate::digest::{CHUNK_BYTES, Digested, WrittenChunk};
use crate::envelope::Packed;
use crate::ids::PeId;
use crate::node::Node;
use crate::saved::{RecordOf, Save, Sent, StoreChunks, ToKeep};
use std::collections::VecDeque;
use std::sync::Arc;

/// What is less goes to the launcher, for which no file need be opened and waited for.
const LEAST_BYTES: usize = 256 << 10;

/// A record with its checksums.
pub(super) struct Ready {
    pub(super) sent: Sent,
    pub(super) packed: Packed,
    /// How many bytes it had before values were left out that the launcher has.
    pub(super) packed_bytes: usize,
    pub(super) digested: Vec<Digested>,
    /// Of each value, which chunks the launcher does not have.
    pub(super) new: Vec<Vec<u32>>,
}

impl Ready {
    /// How many bytes this PE can write of it, before they are compressed.
    pub(super) fn new_bytes(&self) -> usize {
        // What has been added to accumulators is of the node.
        if !matches!(self.sent.header.of, RecordOf::Chare(_) | RecordOf::Pe) {
            return 0;
        }
        let of_value = |(value, new): (&Digested, &Vec<u32>)| -> usize {
            let length =
                |chunk: &u32| (value.len_bytes as usize).saturating_sub(*chunk as usize * CHUNK_BYTES);
            new.iter().map(|chunk| length(chunk).min(CHUNK_BYTES)).sum()
        };
        self.digested.iter().zip(&self.new).map(of_value).sum()
    }

    fn value(&self, at: usize) -> &[u8] {
        match (self.sent.is_long, at) {
            (false, 0) => &self.packed.body,
            (false, _) => self.packed.attachments[at - 1].bytes(),
            (true, _) => self.packed.attachments[at].bytes(),
        }
    }

    fn leave_out(&mut self, at: usize) {
        match (self.sent.is_long, at) {
            (false, 0) => self.packed.body = Default::default(),
            (false, _) => self.packed.attachments[at - 1] = Default::default(),
            (true, _) => self.packed.attachments[at] = Default::default(),
        }
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
    stored: Option<Box<dyn StoreChunks>>,
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
            stored: None,
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
        let bytes: usize = records.iter().map(Ready::new_bytes).sum();
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
        let is_direct = record.new_bytes() > 0;
        let new = std::mem::take(&mut record.new);
        let left = if is_direct { new.iter().map(Vec::len).sum() } else { 0 };
        let written = if is_direct { vec![Vec::new(); new.len()] } else { Vec::new() };
        self.under_way.push_back(UnderWay { record, left, written });
        let chunks = (0..).zip(new).flat_map(|(value, new)| new.into_iter().map(move |chunk| (value, chunk)));
        for (value, chunk) in chunks.take(left) {
            let (Some(last), Some(stored)) = (self.under_way.back(), &mut self.stored) else { return };
            self.filling.add(number, (value, chunk), last.record.value(value), &mut **stored);
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
                Some(Ok((stored, file))) => {
                    self.stored = Some(stored);
                    self.disk = ToDisk::begin(self.node, (self.pe, self.save.checkpoint), file);
                }
                Some(Err(why)) => self.is_blind(&why),
                None => {}
            }
            self.sends = self.disk.is_none();
        }
        !self.sends
    }

    fn is_blind(&mut self, why: &str) {
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
                why.iter().for_each(|why| self.is_blind(why));
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
                    record.leave_out(at);
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
