//! Ordered reductions of more values than one message holds.

use chares::{
    Array, Bulk, Callback, Chare, Ctx, Cx, Driver, Entry, Gather, InProcess, Pending, Placement, Program,
    Reduce,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Row;

/// Give this many bulk values to an ordered reduction.
#[derive(Clone, Serialize, Deserialize)]
struct Give(u32, Callback<Gather<Bulk<u32>>>);
/// Give a 1 to an ordered sum.
#[derive(Clone, Serialize, Deserialize)]
struct Count(Callback<Total>);
/// A sum in a buffer of its own.
#[derive(Serialize, Deserialize)]
struct Total(Bulk<u64>);

chares::entries!(Row: Give, Count; reduces Gather<Bulk<u32>> as "Rows", Total);

impl Reduce for Total {
    fn combine(&mut self, other: Self) {
        self.0.as_mut_slice()[0] += other.0[0];
    }
}
impl Chare for Row {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self
    }
}
impl Entry<Give> for Row {
    fn receive(&mut self, Give(values, to): Give, ctx: &mut Ctx<'_, Self>) {
        let value = Bulk::from_slice(&[ctx.index(), values]);
        ctx.contribute_ordered(Gather(vec![value; values as usize]), to);
    }
}
impl Entry<Count> for Row {
    fn receive(&mut self, Count(to): Count, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute_ordered(Total(Bulk::from_slice(&[1])), to);
    }
}

fn program() -> Program {
    Program::new("reductions", "1").chare::<Row>()
}

fn give(main: &mut Driver, rows: u32, values: u32) -> Pending<Gather<Bulk<u32>>> {
    let all: Array<Row> = main.array_placed(rows, (), Placement::Cyclic);
    let (to, given) = main.pending();
    all.broadcast(main, Give(values, to));
    given
}

#[test]
fn thousands_of_bulk_values_come_together_in_index_order() {
    crate::on_every_mix(program, |main| {
        let rows = give(main, 5000, 2).wait(main)?.0;
        assert_eq!(rows.len(), 10_000);
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(row[0] as usize, at / 2, "value {at}");
        }
        Ok(())
    });
}

/// What comes from the other node has more buffers than a frame can say.
#[test]
fn the_values_of_one_node_travel_in_as_many_messages_as_they_need() {
    let run = program().run_in_process(&InProcess::new(&[1, 1]), |main| {
        let all: Array<Row> = main.array(140_000, ());
        let (to, total) = main.pending();
        all.broadcast(main, Count(to));
        assert_eq!(total.wait(main)?.0[0], 140_000);
        Ok(())
    });
    run.unwrap();
}

/// Neither the link nor who would have got it is to blame.
#[test]
fn a_value_with_more_buffers_than_a_message_holds_is_blamed_on_its_sender() {
    let sentence = crate::failure(program(), |main| give(main, 3, 70_000).wait(main).map(drop));
    let expected = "the message for Row: (reduction) cannot be sent from node 2 to node 1: it has 70000 buffers, over \
                    the limit of 65535; send it in parts";
    assert_eq!(sentence, expected);
}
