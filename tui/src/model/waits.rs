//! What PEs waited for, by what ended their waiting: of which chare type and entry method the messages were that came then, and
//! who sent them. Known of the calls that nodes tell of.

use std::collections::BTreeMap;

use runtime::monitor::critical_path::{Call, DRIVER};

use super::Model;

/// This part of the waiting that is known of has to end alike for that to be named.
const MOST: f64 = 0.5;

/// How long PEs waited, by PE and by what ended it: place of the entry method's name, and the sender if it is known.
#[derive(Default)]
pub(crate) struct Waits(BTreeMap<u32, BTreeMap<(u16, Option<u32>), i64>>);

/// What most of the waiting ended with.
pub(crate) struct Owed {
    name: u16,
    /// Who sent most of it.
    sender: Option<u32>,
}

impl Waits {
    pub(crate) fn of_calls<'a>(calls: impl Iterator<Item = &'a Call>) -> Self {
        let mut waits = Self::default();
        for call in calls.filter(|call| call.waited > 0) {
            let ended_by = (call.name, call.cause.map(|cause| cause.pe));
            let sum = waits.0.entry(call.pe).or_default().entry(ended_by).or_default();
            *sum = sum.saturating_add(call.waited);
        }
        waits
    }

    /// What these PEs waited for most, if that was most of it.
    pub(crate) fn of(&self, pes: impl Iterator<Item = u32>) -> Option<Owed> {
        let known: Vec<_> = pes.filter_map(|pe| self.0.get(&pe)).flatten().collect();
        let name = most(known.iter().map(|((name, _), ns)| (*name, **ns)))?;
        let senders = known.iter().filter(|((of, _), _)| *of == name);
        Some(Owed { name, sender: most(senders.map(|((_, sender), ns)| (*sender, **ns))).flatten() })
    }
}

/// What has most of the sum.
fn most<T: Ord + Copy>(parts: impl Iterator<Item = (T, i64)>) -> Option<T> {
    let mut sums: BTreeMap<T, i64> = BTreeMap::new();
    for (what, ns) in parts {
        let sum = sums.entry(what).or_default();
        *sum = sum.saturating_add(ns);
    }
    let all: f64 = sums.values().map(|ns| *ns as f64).sum();
    let (what, largest) = sums.into_iter().max_by_key(|(_, ns)| *ns)?;
    (largest as f64 > MOST * all).then_some(what)
}

impl Owed {
    /// The entry method or reduction in words.
    pub(crate) fn what(&self, model: &Model) -> String {
        let name = model.run.entry_names.get(usize::from(self.name)).map_or("messages", String::as_str);
        match name.strip_suffix(": (reduction)") {
            Some(chare_type) => format!("a reduction of {chare_type}"),
            None => name.to_owned(),
        }
    }

    /// The number of the PE that sent most of it, and its name.
    pub(crate) fn sender(&self, model: &Model) -> Option<(u32, String)> {
        let sender = self.sender?;
        if sender == DRIVER {
            return Some((sender, "the driver".into()));
        }
        let node = model.pe(sender).map(|(node, _)| format!(" ({})", node.name()));
        Some((sender, format!("PE {sender}{}", node.unwrap_or_default())))
    }
}
