//! Who talks to whom: the messages between chares, as far as each of them goes to one chare. What is for many at once goes
//! along trees, and costs much the same wherever its receivers are.
//!
//! Looking at a message takes longer than delivering it, so that where there are many few are looked at, and each of these
//! stands for those before it that were not.

use super::Pe;
use crate::envelope::Outgoing;
use crate::ids::ElementId;
use crate::loads::{Amount, Traffic};
use rustc_hash::FxHashMap;

/// Between two times that a PE says what its chares did, at least 50 ms, so many looks are taken before there are half as
/// many from then on.
const LOOKS: u32 = 2048;
/// Making so many bytes of a message, to count them, takes as long as a look.
const LOOK_BYTES: usize = 64;
/// On average at least one of so many messages is looked at.
const GAP_MAX: u32 = 1 << 16;
/// So many receivers of each chare are known one by one, those that get most messages; the others are counted together.
pub(crate) const RECEIVERS_MAX: usize = 32;

/// What a PE has counted of its chares' messages since it said it last.
#[derive(Debug)]
pub(crate) struct Counting {
    is_on: bool,
    /// How many more messages are not looked at, and for how many the next one stands that is, itself included.
    unseen: u32,
    stands_for: u32,
    /// One of so many is looked at, on average.
    gap: u32,
    looks_left: u32,
    random: u32,
    receivers: Receivers,
}

impl Counting {
    pub(super) fn new(is_on: bool) -> Self {
        let unseen = if is_on { 0 } else { u32::MAX };
        Self {
            is_on,
            unseen,
            stands_for: 1,
            gap: 1,
            looks_left: LOOKS,
            random: 1,
            receivers: Receivers::default(),
        }
    }

    /// A chare sends a message; whether it is to be looked at.
    #[inline(always)]
    pub(super) fn is_next(&mut self) -> bool {
        let (left, is_next) = self.unseen.overflowing_sub(1);
        self.unseen = left;
        is_next
    }

    /// It has been looked at: who sent it, if that was a chare, who gets it, and its bytes, of which so many had to be made.
    fn counts(&mut self, from: Option<ElementId>, to: ElementId, bytes: usize, made_bytes: usize) {
        let stands_for = u64::from(self.stands_for);
        if let Some(from) = from {
            let bytes = (bytes as u64).saturating_mul(stands_for);
            self.receivers.add(from, to, Amount { messages: stands_for, bytes });
        }
        let effort = u32::try_from(1 + made_bytes / LOOK_BYTES).unwrap_or(u32::MAX);
        self.looks_left = self.looks_left.saturating_sub(effort);
        if self.looks_left == 0 {
            (self.gap, self.looks_left) = ((self.gap * 2).min(GAP_MAX), LOOKS);
        }
        // The generator of W. Press et al., "Numerical Recipes": its upper half is random enough. With the same gap again and
        // again, the same few messages would be seen of many that are sent in turn.
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.unseen = (self.random >> 16) % (2 * self.gap - 1);
        self.stands_for = self.unseen + 1;
    }

    /// Gives away what has been counted.
    pub(super) fn say(&mut self, to: &mut Receivers) {
        to.add_all(std::mem::take(&mut self.receivers));
        // Chares that fall silent shall not go unseen for as many messages as before.
        if self.is_on && self.looks_left > LOOKS / 2 {
            self.gap = (self.gap / 2).max(1);
            let unseen = self.unseen.min(2 * self.gap);
            self.stands_for -= self.unseen - unseen;
            self.unseen = unseen;
        }
        self.looks_left = LOOKS;
    }
}

/// What chares sent to others.
#[derive(Debug, Default)]
pub(crate) struct Receivers {
    of: FxHashMap<ElementId, FxHashMap<ElementId, Amount>>,
    others: Amount,
}

impl Receivers {
    fn add(&mut self, from: ElementId, to: ElementId, amount: Amount) {
        let of_one = self.of.entry(from).or_default();
        *of_one.entry(to).or_default() += amount;
        if of_one.len() >= 2 * RECEIVERS_MAX {
            self.others += keep_most(of_one);
        }
    }

    fn add_all(&mut self, others: Self) {
        self.others += others.others;
        for (from, of_one) in others.of {
            of_one.into_iter().for_each(|(to, amount)| self.add(from, to, amount));
        }
    }

    /// Takes all of it: what each sent to those that it sent most, in order, and what was sent to others.
    pub(super) fn take(&mut self) -> (Vec<Traffic>, Amount) {
        let mut others = std::mem::take(&mut self.others);
        let mut all = Vec::new();
        for (from, mut of_one) in self.of.drain() {
            others += keep_most(&mut of_one);
            all.extend(of_one.into_iter().map(|(to, amount)| Traffic { from, to, amount }));
        }
        all.sort_unstable_by_key(|one| (one.from, one.to));
        (all, others)
    }
}

/// Forgets all but those that get most; what the others got.
fn keep_most(of_one: &mut FxHashMap<ElementId, Amount>) -> Amount {
    let mut others = Amount::default();
    if of_one.len() > RECEIVERS_MAX {
        let mut all: Vec<(ElementId, Amount)> = of_one.drain().collect();
        all.sort_unstable_by_key(|(to, amount)| (std::cmp::Reverse(amount.messages), *to));
        all.drain(RECEIVERS_MAX..).for_each(|(_, amount)| others += amount);
        of_one.extend(all);
    }
    others
}

impl Pe {
    /// Looks at a message that the chare which runs sends to another.
    #[cold]
    #[inline(never)]
    pub(super) fn look_at(&mut self, to: ElementId, message: &impl Outgoing) {
        if self.traffic.is_on {
            self.count_message(to, message.packed_bytes());
        }
    }

    fn count_message(&mut self, to: ElementId, (body, attachments): (usize, usize)) {
        let sender = self.doing.collection().zip(self.running);
        let from = sender.map(|(collection, index)| ElementId { collection, index });
        self.traffic.counts(from, to, body + attachments, body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CollectionId, ElementIndex, PeId};
    use std::collections::BTreeMap;

    fn element(row: u32, col: u32) -> ElementId {
        ElementId { collection: CollectionId::made_by(PeId(0), 1), index: ElementIndex([row, col, 0]) }
    }

    fn send(counting: &mut Counting, from: ElementId, to: ElementId, bytes: usize) {
        if counting.is_next() {
            counting.counts(Some(from), to, bytes, bytes);
        }
    }

    /// What all elements of a grid send in one step: to each neighbour, upwards more than sideways.
    fn stencil(side: u32) -> Vec<(ElementId, ElementId, usize)> {
        let mut sent = Vec::new();
        for row in 0..side {
            for col in 0..side {
                let at = |row, col| (row < side && col < side).then(|| element(row, col));
                let ends = [
                    (at(row.wrapping_sub(1), col), 24),
                    (at(row + 1, col), 16),
                    (at(row, col.wrapping_sub(1)), 8),
                    (at(row, col + 1), 8),
                ];
                sent.extend(ends.into_iter().filter_map(|(to, bytes)| Some((element(row, col), to?, bytes))));
            }
        }
        sent
    }

    #[test]
    fn where_few_messages_are_sent_all_are_counted() {
        let (mut counting, mut told) = (Counting::new(true), Receivers::default());
        let (step, mut truth) = (stencil(16), BTreeMap::new());
        for _ in 0..3 {
            for &(from, to, bytes) in &step {
                *truth.entry((from, to)).or_insert(Amount::default()) +=
                    Amount { messages: 1, bytes: bytes as u64 };
                send(&mut counting, from, to, bytes);
            }
            counting.say(&mut told);
        }
        let (found, others) = told.take();
        let found: BTreeMap<_, _> = found.into_iter().map(|one| ((one.from, one.to), one.amount)).collect();
        assert_eq!((found.len(), &found, others), (960, &truth, Amount::default()));
        assert!(told.take().0.is_empty());
    }

    #[test]
    fn where_many_are_sent_few_are_looked_at_and_stand_for_all() {
        let (mut counting, mut told) = (Counting::new(true), Receivers::default());
        let (mut looks, mut sent) = (0, 0);
        for _ in 0..10 {
            for number in 0..1_000_000u32 {
                // One of ten messages goes to the second.
                let to = element(0, u32::from(number % 10 == 3));
                sent += 1;
                if counting.is_next() {
                    looks += 1;
                    counting.counts(Some(element(1, 0)), to, 100, 100);
                }
            }
            counting.say(&mut told);
        }
        assert!(looks < sent / 100, "{looks} looks at {sent} messages");
        let (found, _) = told.take();
        let [first, second] = found[..] else { panic!("{found:?}") };
        let all = first.amount.messages + second.amount.messages;
        assert!(
            all.abs_diff(sent) < u64::from(2 * GAP_MAX) && first.amount.bytes == 100 * first.amount.messages
        );
        let part = second.amount.messages as f64 / all as f64;
        assert!((0.09..0.11).contains(&part), "{part}");
        // They fall silent, and soon each message counts again.
        (0..20).for_each(|_| counting.say(&mut told));
        (0..3).for_each(|_| send(&mut counting, element(1, 0), element(0, 5), 1));
        counting.say(&mut told);
        assert!(told.take().0.iter().any(|one| one.to == element(0, 5)));
    }

    #[test]
    fn of_many_receivers_those_that_get_most_are_known_and_no_message_is_lost() {
        let (mut counting, mut told) = (Counting::new(true), Receivers::default());
        let count = 8 * RECEIVERS_MAX as u32;
        for to in 0..count {
            (0..if to % 16 == 5 { 5 } else { 1 })
                .for_each(|_| send(&mut counting, element(0, 0), element(1, to), 10));
        }
        counting.say(&mut told);
        let (found, others) = told.take();
        assert_eq!(found.len(), RECEIVERS_MAX);
        assert!(
            (0..count).filter(|to| to % 16 == 5).all(|to| found.iter().any(|one| one.to == element(1, to)))
        );
        let known: u64 = found.iter().map(|one| one.amount.messages).sum();
        assert_eq!(known + others.messages, u64::from(count + count / 16 * 4));
        assert_eq!(others.bytes, 10 * others.messages);
    }

    #[test]
    fn where_nobody_wants_to_know_nothing_is_looked_at() {
        let mut counting = Counting::new(false);
        (0..100_000).for_each(|_| assert!(!counting.is_next()));
    }
}
