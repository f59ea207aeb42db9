//! All-to-all exchanges: every element has a part for every other.

use crate::chare::{Entry, Listed, Message};
use crate::ctx::Ctx;
use crate::ctx::private::HasPe as _;
use crate::proxy::Section;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One element's side of all-to-all exchanges over its array or a section: it sends every element, itself included, a
/// part of its own, and gets one from each. Part of a chare's state, so it moves with it.
///
/// Exchanges follow each other in rounds, counted by each element for itself: all take part in the same ones in the same
/// order. Nobody waits; parts of later rounds that come early are held. Each part is a message of its own, so a round
/// over n elements is n² messages, of which those from one PE to the same other node leave together. All parts that
/// one element gets take memory there until it takes them. A lost node ends the run, as for any message.
///
/// A chare type with several exchanges under way at the same time gives them different types of parts.
///
/// # Examples
/// Rows of a distributed matrix become columns:
///
/// ```
/// use chares::prelude::*;
/// use chares::{Barrier, Exchange, Part};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Row {
///     numbers: Vec<f64>,
///     exchange: Exchange<f64>,
///     done: Option<Callback<Barrier>>,
/// }
/// #[derive(Serialize, Deserialize)]
/// struct Transpose(Callback<Barrier>);
///
/// chares::entries!(Row: Transpose, Part<f64> as "Number"; reduces Barrier);
/// # impl Chare for Row {
/// #     type Index = u32;
/// #     type Init = u32;
/// #     fn new(n: u32, ctx: &mut Ctx<'_, Self>) -> Self {
/// #         let numbers = (0..n).map(|j| f64::from(10 * ctx.index() + j)).collect();
/// #         Self { numbers, exchange: Exchange::default(), done: None }
/// #     }
/// # }
///
/// impl Entry<Transpose> for Row {
///     fn receive(&mut self, Transpose(done): Transpose, ctx: &mut Ctx<'_, Self>) {
///         self.done = Some(done);
///         let Self { numbers, exchange, .. } = self;
///         exchange.send(ctx, |to| numbers[to as usize]);
///     }
/// }
/// impl Entry<Part<f64>> for Row {
///     fn receive(&mut self, part: Part<f64>, ctx: &mut Ctx<'_, Self>) {
///         self.exchange.hold(part);
///         while let Some(column) = self.exchange.take(ctx) {
///             assert_eq!(column[2], f64::from(20 + ctx.index()));
///             self.numbers = column;
///             ctx.contribute(Barrier, self.done.take().unwrap());
///         }
///     }
/// }
///
/// let program = Program::new("transpose", "1").chare::<Row>();
/// let mix = chares::InProcess::new(&[2, 1]);
/// let run = program.run_in_process(&mix, |main| {
///     let rows: Array<Row> = main.array(5, 5);
///     let (done, all) = main.pending();
///     rows.broadcast(main, Transpose(done));
///     all.wait(main).map(drop)
/// });
/// run.unwrap();
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Exchange<T> {
    sent: u32,
    taken: u32,
    /// Parts that have come, by round and then by the sender's position.
    rounds: BTreeMap<u32, Held<T>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Held<T> {
    of: u64,
    parts: BTreeMap<u64, T>,
}

/// The message by which one element sends another its part in an [`Exchange`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part<T> {
    round: u32,
    from: u64,
    of: u64,
    value: T,
}

impl<T> Default for Exchange<T> {
    fn default() -> Self {
        Self { sent: 0, taken: 0, rounds: BTreeMap::new() }
    }
}

impl<T: Message> Exchange<T> {
    /// Sends every element of this chare's array what `part_for` makes for it, in index order: this element's part of the
    /// next round.
    pub fn send<C: Entry<Part<T>>>(&mut self, ctx: &mut Ctx<'_, C>, mut part_for: impl FnMut(C::Index) -> T) {
        let array = ctx.array();
        let (from, of) = (array.position(ctx.index()), array.len());
        let round = self.next_round(ctx);
        array.scatter(ctx, |index| Part { round, from, of, value: part_for(index) });
    }

    /// The same over the members of a section. Who is not one ends the run with a sentence.
    pub fn send_in<C: Entry<Part<T>>>(
        &mut self,
        ctx: &mut Ctx<'_, C>,
        section: &Section<C>,
        mut part_for: impl FnMut(C::Index) -> T,
    ) {
        let Some(from) = section.position(ctx) else { return };
        let (round, of) = (self.next_round(ctx), section.len() as u64);
        section.scatter(ctx, |index| Part { round, from, of, value: part_for(index) });
    }

    /// Keeps a part that has come.
    ///
    /// # Panics
    /// If an element sends twice in a round, or over other elements than another: not all take part in the same
    /// exchanges in the same order. In an entry method that ends the run, named.
    pub fn hold(&mut self, part: Part<T>) {
        let Part { round, from, of, value } = part;
        let held = self.rounds.entry(round).or_insert_with(|| Held { of, parts: BTreeMap::new() });
        let is_new = held.parts.insert(from, value).is_none();
        assert!(
            is_new && held.of == of && round >= self.taken,
            "element {from} of {of} takes part in an exchange over {} elements out of turn",
            held.of
        );
    }

    /// The parts of the next round, in index order of their senders, once all have come.
    pub fn take<C: Entry<Part<T>>>(&mut self, ctx: &mut Ctx<'_, C>) -> Option<Vec<T>> {
        let round = self.taken;
        let parts = self.next()?;
        let collection = ctx.array().id();
        ctx.pe().has_exchanged(collection, <C as Listed<Part<T>>>::INDEX, round);
        Some(parts)
    }

    fn next(&mut self) -> Option<Vec<T>> {
        let held = self.rounds.get(&self.taken)?;
        if (held.parts.len() as u64) < held.of {
            return None;
        }
        let held = self.rounds.remove(&self.taken)?;
        self.taken += 1;
        Some(held.parts.into_values().collect())
    }

    fn next_round<C: Entry<Part<T>>>(&mut self, ctx: &mut Ctx<'_, C>) -> u32 {
        let round = self.sent;
        self.sent += 1;
        let collection = ctx.array().id();
        ctx.pe().exchanges(collection, <C as Listed<Part<T>>>::INDEX, round);
        round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(round: u32, from: u64, value: u32) -> Part<u32> {
        Part { round, from, of: 3, value }
    }

    #[test]
    fn rounds_come_in_their_order_and_parts_in_that_of_their_senders() {
        let mut exchange = Exchange::default();
        for (round, from) in [(1, 2), (0, 1), (1, 0), (1, 1), (0, 2)] {
            exchange.hold(part(round, from, 10 * round + from as u32));
            assert!(exchange.next().is_none());
        }
        exchange.hold(part(0, 0, 0));
        assert_eq!(exchange.next(), Some(vec![0, 1, 2]));
        assert_eq!(exchange.next(), Some(vec![10, 11, 12]));
        assert_eq!(exchange.next(), None);
    }

    #[test]
    #[should_panic(expected = "element 1 of 3 takes part in an exchange over 3 elements out of turn")]
    fn who_sends_twice_is_found() {
        let mut exchange = Exchange::default();
        exchange.hold(part(0, 1, 1));
        exchange.hold(part(0, 1, 2));
    }
}
