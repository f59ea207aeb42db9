//! What a checkpoint has for a run that goes on: the launcher reads what nodes do not read themselves, one record after the
//! other.

use crate::terminal;
use chares::checkpoint::{GoOn, Restored, SavedRun};
use indicatif::ProgressBar;
use runtime::checkpoint::TakenIn;
use runtime::failure::{Failure, Kind};
use runtime::ids::PeId;
use runtime::saved::{SavedPlace, SavedRecords};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

/// As many records are read ahead of who sends them.
const AHEAD: usize = 16;

/// What is said of how far all is.
#[derive(Debug)]
struct Far {
    /// Bytes of what nodes share, and of what was read here of PEs.
    shared: AtomicU64,
    sent: AtomicU64,
    /// Bytes that nodes say they have read.
    read: AtomicU64,
    bar: ProgressBar,
}

impl Far {
    fn add(&self, to: &AtomicU64, bytes: u64) {
        to.fetch_add(bytes, Ordering::Relaxed);
        self.show();
    }

    fn show(&self) {
        let parts = [&self.shared, &self.sent, &self.read].map(|part| part.load(Ordering::Relaxed));
        self.bar.set_position(parts.iter().fold(0, |sum, part| sum.saturating_add(*part)));
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A checkpoint in a folder.
struct InFolder {
    taken_in: Arc<TakenIn>,
    far: Arc<Far>,
}

impl SavedRun for InFolder {
    fn place(&self) -> Option<SavedPlace> {
        self.taken_in.saved().place()
    }

    fn shared(&self) -> SavedRecords<'_> {
        Box::new(self.taken_in.shared(|bytes| self.far.add(&self.far.shared, bytes)))
    }

    fn counts(&self) -> BTreeMap<PeId, u64> {
        self.taken_in.counts()
    }

    fn of_pe(&self, pe: PeId, first: u64) -> SavedRecords<'_> {
        let (found, records) = sync_channel(AHEAD);
        let (taken_in, far) = (Arc::clone(&self.taken_in), Arc::clone(&self.far));
        std::thread::spawn(move || {
            let count = |bytes| far.add(&far.sent, bytes);
            // Who goes on may have failed.
            let _ = taken_in.of_pe(pe, first, count).try_for_each(|record| found.send(record));
        });
        Box::new(records.into_iter())
    }

    fn heads_of_pe(&self, pe: PeId, count: u64) -> SavedRecords<'_> {
        Box::new(self.taken_in.heads_of_pe(pe, count))
    }

    fn nodes_have_read(&self, bytes: u64) {
        self.far.read.store(bytes, Ordering::Relaxed);
        self.far.show();
    }

    fn restored(&self) -> Restored {
        let bytes = self.taken_in.bytes_of_pes();
        // What nodes say of it is only shown on the way.
        let sent = self.far.sent.load(Ordering::Relaxed);
        Restored { bytes, read_by_nodes: bytes.saturating_sub(sent), ..Restored::default() }
    }
}

/// What a run goes on from. How far that is may be shown.
pub(crate) fn go_on(taken_in: TakenIn, is_shown: bool) -> Result<GoOn, Failure> {
    let driver = taken_in.driver().map_err(Failure::from)?;
    let driver = driver.ok_or_else(|| Failure::new(Kind::Input, "the checkpoint holds no driver's log"))?;
    let variables = taken_in.saved().variables().to_vec();
    let bar = terminal::bar_of_bytes("restoring", taken_in.saved().bytes(), is_shown);
    let [shared, sent, read] = [0; 3].map(AtomicU64::new);
    let run = InFolder { taken_in: Arc::new(taken_in), far: Arc::new(Far { shared, sent, read, bar }) };
    Ok(GoOn { driver, run: Box::new(run), variables, placing: None, tell: Box::new(|_| {}) })
}
