//! Chares that may not go everywhere: whoever moves them keeps to it.

use chares::prelude::*;
use chares::{Gather, Mobility, On};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Where it may be, and where it has been.
#[chare]
struct Rooted {
    pes: Vec<u32>,
    seen: u32,
}

impl Rooted {
    fn look(&mut self, ctx: &Ctx<'_, Self>) {
        let pe = ctx.pe_id();
        assert!(self.pes.is_empty() || self.pes.contains(&pe), "on PE {pe} of {:?}", self.pes);
        self.seen += 1;
    }
}

#[chare(reduces(Gather<(u32, u32)>))]
impl Rooted {
    /// Of three that follow each other, one goes anywhere, one is pinned, and one may go to the next PE as well.
    fn new(ctx: &mut Ctx<'_, Self>) -> Self {
        let (here, pe_count) = (ctx.pe_id(), ctx.pe_count());
        let (mobility, pes) = match ctx.index() % 3 {
            0 => (Mobility::Anywhere, Vec::new()),
            1 => (Mobility::Pinned, vec![here]),
            _ => (Mobility::one_of([here, (here + 1) % pe_count]), vec![here, (here + 1) % pe_count]),
        };
        ctx.set_mobility(mobility);
        Self { pes, seen: 0 }
    }

    /// Works a little, so that there is a load.
    #[entry]
    fn visit(&mut self, us: u64, ctx: &mut Ctx<'_, Self>) {
        self.look(ctx);
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_micros(us) {
            std::hint::spin_loop();
        }
    }

    #[entry]
    fn tell(&mut self, to: Callback<Gather<(u32, u32)>>, ctx: &mut Ctx<'_, Self>) {
        self.look(ctx);
        let told = (ctx.pe_id(), self.seen);
        ctx.contribute_ordered(Gather(vec![told]), to);
    }

    #[entry]
    fn go(&mut self, pe: u32, ctx: &mut Ctx<'_, Self>) {
        self.look(ctx);
        ctx.migrate_to(pe);
    }

    /// It may go anywhere from now on.
    #[entry]
    fn free(&mut self, ctx: &mut Ctx<'_, Self>) {
        assert_ne!(ctx.mobility(), &Mobility::Anywhere);
        ctx.set_mobility(Mobility::Anywhere);
        self.pes.clear();
    }

    #[entry]
    fn restrict(&mut self, pe: u32, ctx: &mut Ctx<'_, Self>) {
        ctx.set_mobility(Mobility::one_of([pe]));
    }
}

fn program() -> Program {
    Program::new("rooted", "1").chare::<Rooted>()
}

fn places(main: &mut Driver, rooted: &Array<Rooted>) -> Result<Vec<(u32, u32)>, RunError> {
    let (to, places) = main.pending();
    rooted.tell(main, to);
    Ok(places.wait(main)?.0)
}

#[test]
fn tests_that_make_chares_wander_restarts_that_place_them_anew_and_nodes_that_leave_keep_to_it() {
    crate::on_every_mix(program, |main| {
        let rooted = main.array::<Rooted>(12, ());
        for round in 0..3 {
            rooted.visit(main, 1);
            (0..12).for_each(|at| rooted.at(at).visit(main, 1));
            let told = places(main, &rooted)?;
            assert!(told.iter().all(|(_, seen)| *seen == 3 * (round + 1)), "{told:?}");
        }
        main.quiescence()
    });
}

#[test]
fn balancers_keep_to_it() {
    for (balancer, pes) in [("rotate", &[1, 1, 1][..]), ("diffusion", &[3]), ("greedy", &[2, 1])] {
        let mix = InProcess::new(pes).balance(balancer);
        let been = program().run_in_process(&mix, |main| {
            let rooted = main.array_placed::<Rooted>(12, (), Placement::on_pes([0; 12]));
            let mut been = vec![BTreeSet::new(); 12];
            let deadline = Instant::now() + Duration::from_secs(60);
            loop {
                rooted.visit(main, 500);
                let told = places(main, &rooted)?;
                been.iter_mut().zip(told).for_each(|(been, (pe, _))| {
                    been.insert(pe);
                });
                let has_moved = |kind: usize| (kind..12).step_by(3).any(|at| been[at].len() > 1);
                if has_moved(0) && has_moved(2) || Instant::now() > deadline {
                    return Ok(been);
                }
            }
        });
        let been = been.unwrap();
        let of = |kind: usize| (kind..12).step_by(3).map(|at| been[at].len()).max();
        assert!(of(0) > Some(1) && of(2) == Some(2), "{balancer}: those that may move did: {been:?}");
        assert_eq!(of(1), Some(1), "{balancer}: {been:?}");
    }
}

#[test]
fn a_program_that_moves_what_may_not_go_there_is_told() {
    let failure = |drive: fn(&mut Driver, &Array<Rooted>)| {
        crate::failure(program(), |main| {
            let rooted = main.array_placed::<Rooted>(3, (), Placement::on_pes([1; 3]));
            drive(main, &rooted);
            main.quiescence()
        })
    };
    let own = failure(|main, rooted| rooted.at(1).go(main, 2));
    let sentence = "Rooted [1] asked to move to PE 2, where its mobility does not let it: say another mobility before, or stay";
    assert_eq!(own, sentence);
    let of_others = failure(|main, rooted| main.migrate(&rooted.at(2), 0));
    let sentence = "Rooted [2] was to move to PE 0, where its mobility does not let it: ask for no such move, or say another \
                    mobility before";
    assert_eq!(of_others, sentence);
    let nowhere = failure(|main, rooted| rooted.at(0).restrict(main, 3));
    assert_eq!(nowhere, "Rooted [0] is to be on PE 3, which does not exist: there are PEs 0 to 2");
}

#[test]
fn what_is_permitted_is_done_and_the_last_word_counts() {
    crate::on_mixes_where_nothing_moves(program, |main| {
        let (pes, rooted) = (main.pe_count(), main.array_placed::<Rooted>(3, (), Placement::on_pes([0; 3])));
        rooted.at(0).go(main, pes - 1);
        rooted.at(1).go(main, 0);
        rooted.at(2).go(main, 1 % pes);
        main.quiescence()?;
        let told = places(main, &rooted)?.into_iter().map(|(pe, _)| pe).collect::<Vec<_>>();
        assert_eq!(told, [pes - 1, 0, 1 % pes]);
        // It travels with the chare.
        rooted.at(2).free(main);
        rooted.at(2).go(main, pes - 1);
        rooted.at(1).free(main);
        main.migrate(&rooted.at(1), 1 % pes);
        main.quiescence()?;
        let told = places(main, &rooted)?.into_iter().map(|(pe, _)| pe).collect::<Vec<_>>();
        assert_eq!(told, [pes - 1, 1 % pes, pes - 1]);
        Ok(())
    });
}

/// A single chare that stays where it was made.
#[chare]
struct Hermit {
    at: u32,
}

#[chare(index = ())]
impl Hermit {
    fn new(ctx: &mut Ctx<'_, Self>) -> Self {
        ctx.set_mobility(Mobility::Pinned);
        Self { at: ctx.pe_id() }
    }

    #[entry]
    fn say(&mut self, to: Callback<Gather<u32>>, ctx: &mut Ctx<'_, Self>) {
        assert_eq!(ctx.pe_id(), self.at);
        to.send(ctx, Gather(vec![self.at]));
    }
}

#[test]
fn a_single_chare_stays_where_it_was_made() {
    crate::on_every_mix(
        || Program::new("hermits", "1").chare::<Hermit>(),
        |main| {
            let last = main.pe_count() - 1;
            let hermit = main.chare::<Hermit>((), On::Pe(last));
            for _ in 0..10 {
                let (to, place) = main.pending();
                hermit.say(main, to);
                assert_eq!(place.wait(main)?.0, [last]);
            }
            Ok(())
        },
    );
}
