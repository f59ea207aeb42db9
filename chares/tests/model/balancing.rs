//! Balancers move chares while a program runs, and what it computes stays the same.

use chares::{
    Array, Callback, Chare, Ctx, Cx, Driver, Entry, Gather, InProcess, Placement, Program, RunError,
};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Works, and says where.
#[derive(Serialize, Deserialize)]
struct Toiler {
    rounds: u32,
}

/// Work for so many microseconds and say where.
#[derive(Clone, Serialize, Deserialize)]
struct Work(u64, Callback<Gather<(u32, u32)>>);

chares::entries!(Toiler: Work; reduces Gather<(u32, u32)> as "Places");

impl Chare for Toiler {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self { rounds: 0 }
    }
}

impl Entry<Work> for Toiler {
    fn receive(&mut self, Work(us, to): Work, ctx: &mut Ctx<'_, Self>) {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_micros(us) {
            std::hint::spin_loop();
        }
        self.rounds += 1;
        let (pe, rounds) = (ctx.pe_id(), self.rounds);
        ctx.contribute(Gather(vec![(pe, rounds)]), to);
    }
}

fn program() -> Program {
    Program::new("balancing", "1").chare::<Toiler>()
}

/// Has all work in rounds until `is_done` says so of the PEs where they are, or the time is over; where they were last.
fn rounds(
    main: &mut Driver,
    workers: &Array<Toiler>,
    is_done: impl Fn(&[u32]) -> bool,
) -> Result<Vec<u32>, RunError> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut round = 0;
    loop {
        round += 1;
        let (to, places) = main.pending();
        workers.broadcast(main, Work(500, to));
        let Gather(places) = places.wait(main)?;
        assert!(places.iter().all(|(_, rounds)| *rounds == round), "each has worked once in each round");
        let places: Vec<u32> = places.iter().map(|(pe, _)| *pe).collect();
        if is_done(&places) || Instant::now() > deadline {
            return Ok(places);
        }
    }
}

fn counts(places: &[u32]) -> [usize; 2] {
    [0, 1].map(|pe| places.iter().filter(|place| **place == pe).count())
}

#[test]
fn a_pe_that_has_all_the_work_gives_half_of_it_away() {
    for (choice, pes) in [("auto", &[1, 1][..]), ("greedy", &[2]), ("refine", &[1, 1]), ("diffusion", &[2])] {
        let mix = InProcess::new(pes).balance(choice);
        let places = program().run_in_process(&mix, |main| {
            let workers = main.array_placed::<Toiler>(8, (), Placement::on_pes([0; 8]));
            rounds(main, &workers, |places| counts(places).iter().all(|count| *count >= 3))
        });
        let counts = counts(&places.unwrap());
        assert!(counts.iter().all(|count| *count >= 3), "{choice}: {counts:?}");
    }
}

#[test]
fn a_group_stays_where_it_is() {
    let mix = InProcess::new(&[1, 1]).balance("rotate");
    let outcome = program().run_in_process(&mix, |main| {
        let group = main.group::<Toiler>(());
        let workers = main.array_placed::<Toiler>(4, (), Placement::on_pes([0; 4]));
        rounds(main, &workers, |places| places.contains(&1))?;
        rounds(main, group.as_array(), |_| true)
    });
    let mut places = outcome.unwrap();
    places.sort_unstable();
    assert_eq!(places, [0, 1]);
}
