//! Data that all nodes share: readonly, write-once, accumulator and monotonic variables.

use chares::{
    Accumulator, Barrier, Bulk, Callback, Chare, Ctx, Cx, Entry, Gather, Min, Monotonic, Program, Readonly,
    Sum, WriteOnce,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One on every PE.
#[derive(Serialize, Deserialize)]
struct Desk {
    announced: Callback<WriteOnce<String>>,
}

type Table = (String, Bulk<f64>);
/// Node, address of the value, address of its numbers.
type Seen = (u32, u64, u64);
#[derive(Clone, Serialize, Deserialize)]
struct Look(Readonly<Table>, Callback<Gather<Seen>>);
#[derive(Clone, Serialize, Deserialize)]
struct Numbers(Bulk<f64>, Callback<Gather<Seen>>);
#[derive(Clone, Serialize, Deserialize)]
struct Announce(String, Callback<WriteOnce<String>>);
#[derive(Clone, Serialize, Deserialize)]
struct Read(WriteOnce<String>, Callback<Gather<Option<String>>>);
#[derive(Clone, Serialize, Deserialize)]
struct Propose(Monotonic<Min<u32>>, Callback<Barrier>);
#[derive(Clone, Serialize, Deserialize)]
struct Best(Monotonic<Min<u32>>, Callback<Gather<u32>>);
#[derive(Clone, Serialize, Deserialize)]
struct Add(Accumulator<Gather<u32>>, Accumulator<Sum<f64>>);

chares::entries!(Desk: Look, Numbers, Announce, WriteOnce<String> as "Ready", Read, Propose, Best, Add;
    reduces Gather<Seen> as "Seen", Gather<Option<String>> as "Texts", Barrier, Gather<u32> as "Values");

impl Chare for Desk {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self { announced: Callback::ignore() }
    }
}

fn address<T: ?Sized>(value: &T) -> u64 {
    std::ptr::from_ref(value).cast::<u8>().addr() as u64
}

impl Entry<Look> for Desk {
    fn receive(&mut self, Look(table, to): Look, ctx: &mut Ctx<'_, Self>) {
        let table: Arc<Table> = table.read(ctx);
        assert!(table.0 == "squares" && table.1[30] == 900.0);
        ctx.contribute(Gather(vec![(ctx.node_id(), address(&*table), address(&table.1[..]))]), to);
    }
}
impl Entry<Numbers> for Desk {
    fn receive(&mut self, Numbers(numbers, to): Numbers, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(Gather(vec![(ctx.node_id(), 0, address(&numbers[..]))]), to);
    }
}
impl Entry<Announce> for Desk {
    fn receive(&mut self, Announce(text, announced): Announce, ctx: &mut Ctx<'_, Self>) {
        self.announced = announced;
        let ready = Callback::element(&ctx.this());
        ctx.write_once(text, ready);
    }
}
impl Entry<WriteOnce<String>> for Desk {
    fn receive(&mut self, value: WriteOnce<String>, ctx: &mut Ctx<'_, Self>) {
        self.announced.send(ctx, value);
    }
}
impl Entry<Read> for Desk {
    fn receive(&mut self, Read(value, to): Read, ctx: &mut Ctx<'_, Self>) {
        let text = value.read(ctx).map(|text| text.to_string());
        ctx.contribute(Gather(vec![text]), to);
    }
}
impl Entry<Propose> for Desk {
    fn receive(&mut self, Propose(best, done): Propose, ctx: &mut Ctx<'_, Self>) {
        for n in [7, 3, 9] {
            let value = 1000 - 10 * ctx.index() + n;
            best.propose(ctx, Min(value));
            assert!(best.best(ctx).expect("one was proposed here").0 <= value);
        }
        ctx.contribute(Barrier, done);
    }
}
impl Entry<Best> for Desk {
    fn receive(&mut self, Best(best, to): Best, ctx: &mut Ctx<'_, Self>) {
        let known = best.best(ctx).map_or(u32::MAX, |best| best.0);
        ctx.contribute(Gather(vec![known]), to);
    }
}
impl Entry<Add> for Desk {
    fn receive(&mut self, Add(list, sum): Add, ctx: &mut Ctx<'_, Self>) {
        let index = ctx.index();
        list.add(ctx, Gather(vec![index]));
        sum.add(ctx, Sum(0.5));
        list.add(ctx, Gather(vec![index + 100]));
    }
}

fn program() -> Program {
    Program::new("variables", "1").chare::<Desk>()
}

/// Addresses that were seen on each node must all be the same there.
fn one_for_each_node(seen: Vec<Seen>, address: impl Fn(&Seen) -> u64) {
    let mut of_node = BTreeMap::new();
    for one in seen {
        assert_eq!(*of_node.entry(one.0).or_insert(address(&one)), address(&one), "node {}", one.0);
    }
}

#[test]
fn readonly_data_is_shared_by_the_pes_of_a_node_without_copies() {
    crate::on_every_mix(program, |main| {
        let squares: Vec<f64> = (0..100).map(|n| f64::from(n * n)).collect();
        let table = main.readonly(("squares".to_string(), Bulk::from(squares)))?;
        let desks = main.group::<Desk>(());
        let (to, seen) = main.pending();
        desks.broadcast(main, Look(table, to));
        let seen = seen.wait(main)?.0;
        assert_eq!(seen.len(), main.pe_count() as usize);
        one_for_each_node(seen.clone(), |one| one.1);
        one_for_each_node(seen, |one| one.2);
        Ok(())
    });
}

#[test]
fn the_bulk_data_of_a_broadcast_is_shared_by_all_receivers_of_a_node() {
    crate::on_every_mix(program, |main| {
        let desks = main.group::<Desk>(());
        let (to, seen) = main.pending();
        desks.broadcast(main, Numbers(Bulk::zeros(10_000), to));
        one_for_each_node(seen.wait(main)?.0, |one| one.2);
        Ok(())
    });
}

#[test]
fn a_write_once_value_is_everywhere_when_its_callback_is_called() {
    crate::on_every_mix(program, |main| {
        let desks = main.group::<Desk>(());
        let texts: Vec<String> = (0..main.pe_count()).map(|pe| format!("from {pe}").repeat(9)).collect();
        let (announced, values) = main.pending();
        for (pe, text) in (0..).zip(&texts) {
            desks.on(pe).send(main, Announce(text.clone(), announced));
        }
        let mut found = Vec::new();
        for _ in &texts {
            let value = values.wait(main)?;
            assert!(value.read(main).is_some(), "the launcher has it too");
            let (to, read) = main.pending();
            desks.broadcast(main, Read(value, to));
            let read = read.wait(main)?.0;
            assert!(read.iter().all(|text| text.is_some() && *text == read[0]), "{read:?}");
            found.extend(read[0].clone());
        }
        found.sort_unstable();
        assert_eq!(found, texts);
        Ok(())
    });
}

#[test]
fn the_driver_writes_once_too_and_is_called_back() {
    crate::on_every_mix(program, |main| {
        let (ready, value) = main.pending();
        let handle = main.write_once("once".to_string(), ready);
        let value = value.wait(main)?;
        assert_eq!(*value.read(main).expect("it is in place"), "once");
        assert_eq!(*handle.read(main).expect("it is the same"), "once");
        Ok(())
    });
}

#[test]
fn a_monotonic_variable_is_in_the_end_the_best_everywhere() {
    crate::on_every_mix(program, |main| {
        let (desks, best) = (main.group::<Desk>(()), main.monotonic::<Min<u32>>());
        assert!(best.best(main).is_none());
        let (done, proposed) = main.pending();
        desks.broadcast(main, Propose(best, done));
        proposed.wait(main)?;
        let expected = 1003 - 10 * (main.pe_count() - 1);
        // There is no bound on the time it takes, so ask until all know.
        loop {
            let (to, known) = main.pending();
            desks.broadcast(main, Best(best, to));
            let known = known.wait(main)?.0;
            assert!(known.iter().all(|known| *known >= expected));
            if known.iter().all(|known| *known == expected) {
                break;
            }
        }
        best.propose(main, Min(1));
        assert_eq!(best.best(main).map(|best| best.0), Some(1));
        Ok(())
    });
}

#[test]
fn accumulators_hold_each_addition_once() {
    crate::on_every_mix(program, |main| {
        let desks = main.group::<Desk>(());
        let (list, sum) = (main.accumulator::<Gather<u32>>(), main.accumulator::<Sum<f64>>());
        for _ in 0..2 {
            desks.broadcast(main, Add(list, sum));
            list.add(main, Gather(vec![7777]));
            main.quiescence()?;
            let mut all = main.collect(&list)?.expect("something was added").0;
            all.sort_unstable();
            let count = main.pe_count();
            let expected: Vec<u32> = (0..count).chain(100..100 + count).chain([7777]).collect();
            assert_eq!(all, expected);
            assert_eq!(main.collect(&sum)?, Some(Sum(0.5 * f64::from(count))));
            assert_eq!(main.collect(&sum)?, None);
        }
        Ok(())
    });
}
