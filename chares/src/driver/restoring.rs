//! How a run goes on from a checkpoint when its driver has been run again by its log: PEs are given what was saved of them.
//!
//! What nodes share the launcher gives to all. What is of a PE the PE reads itself, where its node sees the checkpoint that the
//! launcher has; the launcher reads and sends the rest.

use super::Driver;
use super::checkpoint::{Replay, SHARED_MAX};
use super::own_rates::OwnRates;
use super::variables::Variables;
use crate::checkpoint::{Placed, Placing, Restored, SavedRun};
use crate::program::RunError;
use crate::pup;
use runtime::balancing::Placeable;
use runtime::codec::Refusal;
use runtime::envelope::{Packed, PeOrder};
use runtime::ids::PeId;
use runtime::loads::KnownLoads;
use runtime::node::{INIT_OVER, Node};
use runtime::saved::{RecordHeader, RecordOf};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// After so many bytes of records a PE has to say that it has taken them, before it is sent more.
const PORTION_BYTES: usize = 64 << 20;

fn foreign(why: Refusal) -> RunError {
    RunError::Input(format!("the checkpoint is not of this program: {why}"))
}

fn known_loads(packed: &Packed) -> Result<KnownLoads, RunError> {
    let known: KnownLoads = pup::unpack(packed)?;
    if known.can_be() { Ok(known) } else { Err(foreign(Refusal::Impossible("loads that cannot be".into()))) }
}

/// A chare of a record, if it may move.
fn placeable(node: &Node, header: &RecordHeader, packed: &Packed) -> Option<Placeable> {
    let RecordOf::Chare(element) = header.of else { return None };
    if node.collection(element.collection).is_some_and(|known| known.is_fixed) {
        return None;
    }
    let chare_type = node.chare_type_of(element.collection);
    let mobility = chare_type.map(|known| (known.mobility)(packed)).unwrap_or_default();
    Some(Placeable { element, pe: header.pe, mobility })
}

impl Driver {
    /// All that was done before the checkpoint has been done again: gives all nodes what was saved, and goes on.
    pub(super) fn go_live(&mut self) -> Result<(), RunError> {
        let Some(replay) = self.history.replay.take() else { return Ok(()) };
        let Replay { saved, run, variables, placing, tell, pe, .. } = *replay;
        if (self.pe.serial(), self.next_slot) != (saved.serial, saved.next_slot) {
            return Err(RunError::Input(format!(
                "the driver does not do what it did before the checkpoint: it has made {} collections, sections and \
                 variables and {} places for results, and then it had {} and {}",
                self.pe.serial(),
                self.next_slot,
                saved.serial,
                saved.next_slot
            )));
        }
        self.pe = pe;
        self.history.has_gone_on = true;
        let began = Instant::now();
        self.pause_all()?;
        let known = self.share_all(&*run, &variables)?;
        let chares = self.restore_all(&*run, placing.is_some())?;
        let restored = Restored { took: began.elapsed(), ..run.restored() };
        tell(&restored);
        self.outcome().restored = Some(restored);
        drop(run);
        self.pe.restore(&saved.pe)?;
        let node = Arc::clone(self.pe.node());
        // Whoever is made or moved from now on goes by the machines of now.
        self.nodes.own_rates = match &placing {
            Some(Placing { rates: Some(rates), .. }) => OwnRates::new(rates, true, node.topology()),
            Some(placing) => OwnRates::new(&placing.speeds, false, node.topology()),
            None => {
                // They may be other machines than those with which the run began, whose rates alone are known.
                let fastest = self.machines.rates().into_iter().reduce(f64::max).filter(|rate| *rate > 0.0);
                let rate_of = |speed: &f64| speed * fastest.unwrap_or(1.0);
                let rates: Vec<f64> = saved.speeds.iter().map(rate_of).collect();
                OwnRates::new(&rates, self.machines.is_measured, node.topology())
            }
        };
        node.set_speeds(self.nodes.own_rates.placed(node.topology()));
        self.slots = saved.slots.into_iter().map(|(slot, waiting)| (slot, waiting.into())).collect();
        if !saved.is_init {
            node.set_init_over(true);
            self.wait_for_variable(INIT_OVER)?;
        }
        if let Some((name, total, before)) = saved.counted {
            node.count_progress(name.clone(), total, before);
            self.history.counted = Some((name, total, before));
        }
        let now = self.snapshots()?;
        self.outcome().gone_on(now);
        if let Some(Placing { mapping, speeds, tell, .. }) = placing {
            let placed = Placed::new(node.topology(), &speeds, &known, chares, mapping);
            let placed =
                placed.map_err(|why| RunError::Input(format!("chares cannot be placed anew: {why}")))?;
            tell(&placed);
            placed.order(&node);
        }
        self.order_all_paused(PeOrder::Resume);
        Ok(())
    }

    /// Gives all nodes what they share; what is known of the loads of chares.
    fn share_all(&mut self, run: &dyn SavedRun, variables: &Variables) -> Result<KnownLoads, RunError> {
        let mut known = KnownLoads::default();
        for record in run.shared() {
            let (header, packed) = variables.take_in(record?)?;
            match header.of {
                RecordOf::Sum(id) => self.history.sums.entry(id).or_default().push(packed),
                RecordOf::Loads => known = known_loads(&packed)?,
                _ => self.pe.node().share_again(&header, &packed).map_err(foreign)?,
            }
        }
        // Chares need their collections' descriptions.
        match self.flush_within(SHARED_MAX)? {
            Some(_) => Ok(known),
            None => Err(RunError::Failed(format!(
                "what nodes share has not arrived everywhere: nothing came for {} s",
                SHARED_MAX.as_secs()
            ))),
        }
    }

    /// Has all PEs take in what was saved of them; the chares that may move, if they `are_wanted`.
    fn restore_all(&mut self, run: &dyn SavedRun, are_wanted: bool) -> Result<Vec<Placeable>, RunError> {
        let (node, mut chares) = (Arc::clone(self.pe.node()), Vec::new());
        let counts = run.counts();
        if let Some(pe) = counts.keys().find(|pe| pe.0 >= self.all_pes()) {
            return Err(foreign(Refusal::Unknown(format!("{pe:?}"))));
        }
        let place = run.place().map(|place| pup::pack(&place));
        // That they stand still has been heard; what they say next is how much they have read.
        self.history.checkpoint.paused.clear();
        for pe in place.iter().flat_map(|_| counts.keys()) {
            node.order_pe(*pe, PeOrder::ReadSaved, place.clone().unwrap_or_default());
        }
        let mut left = counts.clone();
        while let Some((first, _)) = left.first_key_value() {
            let (pe, read) = match place {
                Some(_) => self.next_that_has_read(run, &left)?,
                None => (*first, 0),
            };
            left.remove(&pe);
            let count = counts.get(&pe).copied().unwrap_or_default();
            if read > count {
                let sentence = format!("{pe:?} says that it has read {read} records, and {count} were saved");
                return Err(RunError::Failed(sentence));
            }
            if are_wanted && read > 0 {
                for head in run.heads_of_pe(pe, read) {
                    let (header, packed) = head?;
                    chares.extend(placeable(&node, &header, &packed));
                }
            }
            if read < count {
                let given = self.give_rest(run, pe, read)?;
                chares.extend(given.into_iter().filter(|_| are_wanted));
            }
        }
        for pe in (0..self.all_pes()).map(PeId) {
            self.wait_for_restored(pe, counts.get(&pe).copied().unwrap_or_default())?;
        }
        Ok(chares)
    }

    /// Waits for one of these PEs to have read what it finds of itself; how many records that is.
    fn next_that_has_read(
        &mut self,
        run: &dyn SavedRun,
        left: &BTreeMap<PeId, u64>,
    ) -> Result<(PeId, u64), RunError> {
        let (pe, read) = self.wait_until(|main| {
            let underway = &mut main.history.checkpoint;
            run.nodes_have_read(
                underway.read_bytes.values().fold(0, |sum, bytes| sum.saturating_add(*bytes)),
            );
            let pe = *underway.paused.keys().find(|pe| left.contains_key(pe))?;
            Some((pe, underway.paused.remove(&pe)?))
        })?;
        Ok((pe, read.map_err(|why| not_taken_in(pe, &why))?))
    }

    /// Sends a PE its records after the first so many, which it has; the chares that may move.
    fn give_rest(&mut self, run: &dyn SavedRun, pe: PeId, read: u64) -> Result<Vec<Placeable>, RunError> {
        let (node, mut chares) = (Arc::clone(self.pe.node()), Vec::new());
        let (mut count, mut bytes) = (read, 0);
        for record in run.of_pe(pe, read) {
            let (header, packed) = record?;
            chares.extend(placeable(&node, &header, &packed));
            count += 1;
            bytes += packed.len_bytes();
            node.give_back(header, packed).map_err(foreign)?;
            if bytes > PORTION_BYTES {
                self.wait_for_restored(pe, count)?;
                bytes = 0;
            }
        }
        Ok(chares)
    }

    pub(super) fn wait_for_restored(&mut self, pe: PeId, records: u64) -> Result<(), RunError> {
        if self.history.checkpoint.paused.get(&pe).is_some_and(Result::is_ok) {
            self.history.checkpoint.paused.remove(&pe);
        }
        self.order_paused(pe, PeOrder::Restore { records });
        match self.wait_until(|main| main.history.checkpoint.paused.get(&pe).cloned())? {
            Ok(_) => Ok(()),
            Err(why) => Err(not_taken_in(pe, &why)),
        }
    }
}

fn not_taken_in(pe: PeId, why: &str) -> RunError {
    RunError::Input(format!("{pe:?} cannot take in what was saved of it: {why}"))
}
