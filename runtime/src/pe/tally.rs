//! What a PE counts by kind: what its entry methods cost, by chare type and entry method, how many chares of each type live
//! on it, and what it sent to each node. Written by the PE alone, without a lock for what is counted often, and read by
//! others at any time.

use crate::ids::{ElementIndex, NodeId};
use crate::monitor::profile::{ChareCount, EntryTime, SentTo, SlowestCall};
use crate::object::{CONSTRUCTOR, ProgramTable, REDUCTION};
use crate::proto::snapshot::Colour;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// For so many nodes that join a run later there is room where messages are counted by receiver.
pub(crate) const LATER_NODES: u16 = 32;

/// The counters of one PE.
#[derive(Debug, Default)]
pub struct Tally {
    /// For each chare type the place of its first entry method in `entries`.
    first: Vec<usize>,
    entries: Box<[Entry]>,
    chares: Box<[AtomicU64]>,
    sent: Box<[Sent]>,
}

#[derive(Debug, Default)]
struct Entry {
    calls: AtomicU64,
    ns: AtomicU64,
    slowest_ns: AtomicU64,
    /// Changed as often as there is a slower call, which is seldom.
    slowest: Mutex<Slowest>,
}

/// The longest call, and when it ended.
#[derive(Clone, Copy, Debug, Default)]
struct Slowest {
    ns: u64,
    at_ns: u64,
    element: Option<ElementIndex>,
}

#[derive(Debug, Default)]
struct Sent {
    /// By their colour.
    messages: [AtomicU64; 2],
    bytes: AtomicU64,
}

/// Calls of an entry method of which one was timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timed {
    /// How long that one took.
    pub took_ns: u64,
    /// For how many it stands, itself included.
    pub stands_for: u32,
}

impl Timed {
    /// How long all of them took.
    #[must_use]
    pub fn all_ns(self) -> u64 {
        self.took_ns * u64::from(self.stands_for)
    }
}

impl Tally {
    /// Counts what is sent to so many nodes, and nothing else.
    pub(crate) fn of_sent(node_count: u16) -> Self {
        let places = node_count.saturating_add(LATER_NODES);
        Self { sent: (0..places).map(|_| Sent::default()).collect(), ..Self::default() }
    }

    /// Counts nothing yet, of a program that runs on so many nodes.
    pub(crate) fn new(program: &ProgramTable, node_count: u16) -> Self {
        let first = program.first_entries();
        let count = program.entry_names().len();
        Self {
            entries: (0..count).map(|_| Entry::default()).collect(),
            chares: first.iter().map(|_| AtomicU64::new(0)).collect(),
            first,
            ..Self::of_sent(node_count)
        }
    }

    /// So many calls of an entry method have ended at this time; the one that was timed was of `element`, if it was for one.
    pub(super) fn ran(
        &self,
        (chare_type, entry): (u16, u16),
        timed: Timed,
        (calls, element): (u64, Option<ElementIndex>),
        at_ns: u64,
    ) {
        let Some(counted) = self.place(chare_type, entry).and_then(|place| self.entries.get(place)) else {
            return;
        };
        bump(&counted.calls, calls);
        bump(&counted.ns, timed.all_ns());
        if timed.took_ns > counted.slowest_ns.load(Ordering::Relaxed) {
            counted.slowest_ns.store(timed.took_ns, Ordering::Relaxed);
            *counted.slowest.lock().unwrap_or_else(PoisonError::into_inner) =
                Slowest { ns: timed.took_ns, at_ns, element };
        }
    }

    /// So many chares of each type live on the PE now.
    pub(super) fn holds(&self, chares: impl Iterator<Item = (u16, usize)>) {
        let mut counts = vec![0; self.chares.len()];
        for (chare_type, count) in chares {
            if let Some(sum) = counts.get_mut(usize::from(chare_type)) {
                *sum += count as u64;
            }
        }
        self.chares.iter().zip(counts).for_each(|(counter, count)| counter.store(count, Ordering::Relaxed));
    }

    /// A message of so many bytes left for a node.
    #[inline]
    pub(super) fn sent(&self, to: NodeId, colour: Colour, bytes: u64) {
        // Of those that join when there is no more room, the last place counts all.
        if let Some(sent) = self.sent.get(usize::from(to.0)).or(self.sent.last()) {
            bump(&sent.messages[colour as usize], 1);
            bump(&sent.bytes, bytes);
        }
    }

    /// What left for each node.
    pub(crate) fn sent_to(&self) -> impl Iterator<Item = SentTo> {
        (0..).zip(&self.sent).map(|(node, sent)| SentTo {
            node,
            messages: sent.messages.iter().map(|of| of.load(Ordering::Relaxed)).sum(),
            bytes: sent.bytes.load(Ordering::Relaxed),
        })
    }

    /// Messages of a colour that left.
    pub(crate) fn sent_of(&self, colour: Colour) -> u64 {
        self.sent.iter().map(|sent| sent.messages[colour as usize].load(Ordering::SeqCst)).sum()
    }

    /// What has been run on the PE of this number.
    pub(crate) fn entries(&self, pe: u32, program: &ProgramTable) -> Vec<EntryTime> {
        let types = (0..).zip(self.first.windows(2).map(|pair| pair[0]..pair[1]));
        let last = self.first.last().map(|first| (self.first.len() as u16 - 1, *first..self.entries.len()));
        let places =
            types.chain(last).flat_map(|(chare_type, places)| places.map(move |at| (chare_type, at)));
        let ran = places.filter_map(|(chare_type, place)| {
            let counted = &self.entries[place];
            let calls = counted.calls.load(Ordering::Relaxed);
            let slowest = *counted.slowest.lock().unwrap_or_else(PoisonError::into_inner);
            (calls > 0).then(|| EntryTime {
                name: u16::try_from(place).unwrap_or(u16::MAX),
                calls,
                ns: counted.ns.load(Ordering::Relaxed),
                slowest: SlowestCall {
                    ns: slowest.ns,
                    at_ns: slowest.at_ns,
                    pe,
                    element: slowest
                        .element
                        .map_or_else(String::new, |element| program.index_name(chare_type, element)),
                },
            })
        });
        ran.collect()
    }

    /// How many chares of each type live on the PE of this number.
    pub(crate) fn chares(&self, pe: u32) -> impl Iterator<Item = ChareCount> {
        let count = move |(chare_type, chares): (u16, &AtomicU64)| ChareCount {
            pe,
            chare_type,
            chares: chares.load(Ordering::Relaxed),
        };
        (0..).zip(&self.chares).map(count).filter(|count| count.chares > 0)
    }

    /// Place of the name of an entry method among those of the program.
    pub(super) fn name(&self, chare_type: u16, entry: u16) -> Option<u16> {
        self.place(chare_type, entry).and_then(|place| u16::try_from(place).ok())
    }

    fn place(&self, chare_type: u16, entry: u16) -> Option<usize> {
        let first = *self.first.get(usize::from(chare_type))?;
        let end = self.first.get(usize::from(chare_type) + 1).copied().unwrap_or(self.entries.len());
        match entry {
            CONSTRUCTOR => Some(end - 2),
            REDUCTION => Some(end - 1),
            entry => Some(first + usize::from(entry)).filter(|place| *place < end - 2),
        }
    }
}

#[inline]
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::super::account::Account;
    use super::*;
    use crate::monitor::profile::UNDER_WAY;
    use crate::monitor::wire::PeState;
    use crate::object::ChareType;

    fn chare_type(name: &str, entries: &[&str]) -> ChareType {
        ChareType {
            dimensions: 2,
            ..ChareType::of_test(name, entries, |_| unreachable!("nothing is stored"))
        }
    }

    fn program() -> ProgramTable {
        let chare_types = vec![chare_type("Block", &["Shift", "Done"]), chare_type("Cell", &[])];
        ProgramTable { chare_types, ..ProgramTable::default() }
    }

    #[test]
    fn each_entry_method_is_counted_under_its_name() {
        let program = program();
        let names = program.entry_names();
        let tally = Tally::new(&program, 2);
        let timed = |took_ns, stands_for| Timed { took_ns, stands_for };
        let element = ElementIndex([3, 1, 0]);
        tally.ran((0, 1), timed(50, 4), (4, Some(element)), 1000);
        tally.ran((0, 1), timed(40, 1), (1, None), 2000);
        tally.ran((0, CONSTRUCTOR), timed(7, 1), (10, None), 10);
        tally.ran((1, REDUCTION), timed(8, 1), (1, None), 20);
        // What nobody has is not counted under another's name.
        tally.ran((0, 2), timed(9, 1), (1, None), 20);
        tally.ran((5, 0), timed(9, 1), (1, None), 20);
        let told = tally.entries(6, &program);
        let told: Vec<_> = told
            .iter()
            .map(|one| (names[usize::from(one.name)].as_str(), one.calls, one.ns, one.slowest.clone()))
            .collect();
        let slowest = |ns, at_ns, element: &str| SlowestCall { ns, at_ns, pe: 6, element: element.into() };
        assert_eq!(
            told,
            [
                ("Block: Done", 5, 240, slowest(50, 1000, "[3, 1]")),
                ("Block: (constructor)", 10, 7, slowest(7, 10, "")),
                ("Cell: (reduction)", 1, 8, slowest(8, 20, ""))
            ]
        );
    }

    #[test]
    fn a_long_call_is_told_of_while_it_is_under_way() {
        let program = program();
        let account = Account::new(Tally::new(&program, 2));
        let told = |now_ms: u64| {
            let call = account.under_way(6, now_ms * 1_000_000);
            call.map(|call| {
                (program.entry_names()[usize::from(call.name)].clone(), call.calls, call.ns, call.slowest)
            })
        };
        account.switch(PeState::Compute, 1_000_000);
        assert_eq!(told(500), None, "nothing has run");
        account.begins(0, 1);
        assert_eq!(told(10), None, "others may be as long together");
        let slowest = SlowestCall { ns: 450_000_000, at_ns: 451_000_000, pe: 6, element: UNDER_WAY.into() };
        assert_eq!(told(451), Some(("Block: Done".into(), 1, 450_000_000, slowest)));
        account.switch(PeState::Overhead, 451_000_000);
        assert_eq!(told(900), None, "it has ended");
    }

    #[test]
    fn chares_are_those_of_now_and_what_was_sent_is_known_by_node() {
        let tally = Tally::new(&program(), 3);
        tally.holds([(1, 4), (0, 2), (1, 1)].into_iter());
        tally.holds([(1, 4), (1, 2)].into_iter());
        assert_eq!(tally.chares(9).collect::<Vec<_>>(), [ChareCount { pe: 9, chare_type: 1, chares: 6 }]);
        tally.sent(NodeId(2), Colour::White, 10);
        tally.sent(NodeId(2), Colour::Red, 5);
        assert_eq!((tally.sent_of(Colour::White), tally.sent_of(Colour::Red)), (1, 1));
        // One that has joined later, and one for which there was no more room.
        tally.sent(NodeId(7), Colour::White, 5);
        tally.sent(NodeId(7000), Colour::White, 6);
        let sent =
            tally.sent_to().filter(|one| one.messages > 0).map(|one| (one.node, one.messages, one.bytes));
        assert_eq!(sent.collect::<Vec<_>>(), [(2, 2, 15), (7, 1, 5), (LATER_NODES + 2, 1, 6)]);
    }
}
