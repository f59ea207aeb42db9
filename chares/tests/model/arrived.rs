//! What chares make anew where they arrive.

use crate::checkpoints::run_and_keep;
use chares::Gather;
use chares::prelude::*;

/// Has a table of what its state says, and notes where it was made.
#[chare]
struct Table {
    factor: u32,
    #[rebuild(Vec::new)]
    multiples: Vec<u32>,
    #[rebuild(nowhere)]
    made_on: u32,
    arrivals: u32,
    heard: u32,
}

fn nowhere() -> u32 {
    u32::MAX
}

impl Table {
    fn make(&mut self, ctx: &Ctx<'_, Self>) {
        self.multiples = (0..10).map(|n| n * self.factor).collect();
        self.made_on = ctx.pe_id();
    }

    fn look(&self, ctx: &Ctx<'_, Self>) {
        let factor = 7 + ctx.index();
        assert!(self.multiples.iter().copied().eq((0..10).map(|n| n * factor)), "{:?}", self.multiples);
        assert_eq!(self.made_on, ctx.pe_id());
    }
}

#[chare]
impl Table {
    fn new(ctx: &mut Ctx<'_, Self>, factor: u32) -> Self {
        let factor = factor + ctx.index();
        let mut table = Self { factor, multiples: Vec::new(), made_on: 0, arrivals: 0, heard: 0 };
        table.make(ctx);
        table
    }

    /// It may send, too.
    #[arrived]
    fn make_anew(&mut self, ctx: &mut Ctx<'_, Self>) {
        assert!(self.multiples.is_empty() && self.made_on == u32::MAX);
        self.make(ctx);
        self.arrivals += 1;
        if ctx.index() == 1 {
            ctx.array().at(0).hear(ctx);
        }
    }

    #[entry]
    fn hear(&mut self, ctx: &mut Ctx<'_, Self>) {
        self.look(ctx);
        self.heard += 1;
    }

    #[entry]
    fn go(&mut self, ctx: &mut Ctx<'_, Self>, pe: u32) {
        self.look(ctx);
        ctx.migrate_to(pe);
    }

    #[reduce(ordered)]
    fn told(&self, ctx: &mut Ctx<'_, Self>) -> Gather<(u32, u32)> {
        self.look(ctx);
        Gather(vec![(self.arrivals, self.heard)])
    }
}

fn program() -> Program {
    Program::new("tables", "1").chare::<Table>()
}

#[test]
fn what_does_not_travel_is_made_anew_after_each_move_restart_and_unpacking() {
    crate::on_every_mix(program, |main| {
        let (tables, pes) = (main.array::<Table>(6, 7), main.pe_count());
        for round in 0..3 {
            tables.hear(main);
            (0..6).for_each(|at| tables.at(at).go(main, (at + round) % pes));
            tables.told().ask(main)?;
        }
        main.quiescence()
    });
}

#[test]
fn a_move_calls_it_once_and_what_it_sends_comes() {
    let told = program().run_in_process(&InProcess::new(&[2, 1]), |main| {
        let tables = main.array_placed::<Table>(3, 7, Placement::on_pes([0, 0, 2]));
        for to in [1, 2, 0] {
            tables.at(1).go(main, to);
            tables.at(2).go(main, 2);
            main.quiescence()?;
        }
        Ok(tables.told().ask(main)?.0)
    });
    assert_eq!(told.unwrap(), [(0, 3), (3, 0), (0, 0)]);
}

#[test]
fn under_always_pup_it_is_called_before_each_entry_method() {
    let told = program().run_in_process(&InProcess::new(&[1, 1]).always_pup(), |main| {
        let tables = main.array::<Table>(1, 7);
        tables.hear(main);
        tables.at(0).hear(main);
        main.quiescence()?;
        Ok(tables.told().ask(main)?.0)
    });
    assert_eq!(told.unwrap(), [(3, 2)]);
}

#[test]
fn where_a_run_goes_on_from_a_checkpoint_it_is_called_once() {
    let drive = |main: &mut Driver| {
        let tables = main.array::<Table>(3, 7);
        main.quiescence()?;
        // Everything is made here, and nobody has asked yet.
        main.checkpoint_point()?;
        tables.hear(main);
        main.quiescence()?;
        Ok(tables.told().ask(main)?.0)
    };
    let (first, taken) =
        run_and_keep(program(), &InProcess::new(&[2, 1]), |is_good_moment| is_good_moment, drive);
    assert_eq!(first, [(0, 1); 3]);
    let [snapshot] = &taken[..] else { panic!("{} checkpoints", taken.len()) };
    let again = program().run_in_process(&InProcess::new(&[3]).begun(&[0, 2, 1]), |main| {
        main.go_on_from(snapshot.go_on())?;
        drive(main)
    });
    // What element 1 sends where it arrives is one more for element 0.
    assert_eq!(again.unwrap(), [(1, 2), (1, 1), (1, 1)]);
}
