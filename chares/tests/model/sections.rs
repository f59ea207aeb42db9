//! Sections: multicasts and reductions over some elements, along trees of nodes.

use chares::{
    Array, Callback, Chare, Ctx, Cx, Driver, Element, Entry, Gather, InProcess, Placement, Program, RunError,
    Section,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Member {
    heard: Vec<u32>,
}

/// Contribute your index to the section.
#[derive(Clone, Serialize, Deserialize)]
struct Meet(Section<Member>, Callback<Gather<u32>>);
/// Send the section a `Meet`, or hand this on to another element first.
#[derive(Clone, Serialize, Deserialize)]
struct Summon(Vec<Element<Member>>, Section<Member>, Callback<Gather<u32>>);
#[derive(Clone, Serialize, Deserialize)]
struct Hear(u32);
#[derive(Clone, Serialize, Deserialize)]
struct Heard(Callback<Gather<(u32, Vec<u32>)>>);
/// Contribute to the array's next reductions in this order.
#[derive(Clone, Serialize, Deserialize)]
struct Give(bool, Callback<Gather<u32>>, Callback<Gather<(u32, Vec<u32>)>>);

chares::entries!(Member: Meet, Summon, Hear, Heard, Give;
    reduces Gather<u32> as "Indices", Gather<(u32, Vec<u32>)> as "Heard");

impl Chare for Member {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self { heard: Vec::new() }
    }
}
impl Entry<Meet> for Member {
    fn receive(&mut self, Meet(section, to): Meet, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute_in(&section, Gather(vec![ctx.index()]), to);
    }
}
impl Entry<Summon> for Member {
    fn receive(&mut self, Summon(mut hops, section, to): Summon, ctx: &mut Ctx<'_, Self>) {
        match hops.pop() {
            Some(next) => next.send(ctx, Summon(hops, section, to)),
            None => section.send(ctx, Meet(section.clone(), to)),
        }
    }
}
impl Entry<Hear> for Member {
    fn receive(&mut self, Hear(n): Hear, _: &mut Ctx<'_, Self>) {
        self.heard.push(n);
    }
}
impl Entry<Heard> for Member {
    fn receive(&mut self, Heard(to): Heard, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute_ordered(Gather(vec![(ctx.index(), std::mem::take(&mut self.heard))]), to);
    }
}
impl Entry<Give> for Member {
    fn receive(&mut self, Give(is_first, one, other): Give, ctx: &mut Ctx<'_, Self>) {
        if is_first == (ctx.index() == 0) {
            ctx.contribute(Gather(vec![ctx.index()]), one);
        } else {
            ctx.contribute(Gather(vec![(ctx.index(), Vec::new())]), other);
        }
    }
}

fn program() -> Program {
    Program::new("sections", "1").chare::<Member>()
}

/// On the usual mixes, and on more nodes than one level of a tree holds.
fn on_small_and_large(drive: impl Fn(&mut Driver) -> Result<(), RunError>) {
    crate::on_every_mix(program, &drive);
    let pes: Vec<u32> = (0..30).map(|n| 1 + u32::from(n % 5 == 0)).collect();
    program().run_in_process(&InProcess::new(&pes), &drive).unwrap();
}

fn heard(main: &mut Driver, members: &Array<Member>) -> Result<Vec<(u32, Vec<u32>)>, RunError> {
    let (to, heard) = main.pending();
    members.broadcast(main, Heard(to));
    Ok(heard.wait(main)?.0)
}

#[test]
fn sections_of_any_size_meet_again_and_again_in_index_order() {
    on_small_and_large(|main| {
        let members = main.array_placed::<Member>(90, (), Placement::Cyclic);
        for step in [1, 2, 7, 31, 89, 90] {
            let expected: Vec<u32> = (0..90).step_by(step).collect();
            let section = members.section(main, expected.iter().rev().copied());
            assert_eq!((section.len(), section.is_empty()), (expected.len(), false));
            for _ in 0..3 {
                let (to, indices) = main.pending();
                section.send(main, Meet(section.clone(), to));
                assert_eq!(indices.wait(main)?.0, expected);
            }
        }
        Ok(())
    });
}

#[test]
fn multicasts_reach_the_members_only_once_each_and_in_order() {
    on_small_and_large(|main| {
        let members = main.array::<Member>(70, ());
        let thirds = members.section(main, (0..70).step_by(3));
        let none = members.section(main, []);
        assert!(none.is_empty());
        for n in 0..5 {
            thirds.send(main, Hear(n));
            none.send(main, Hear(100));
        }
        main.quiescence()?;
        for (index, heard) in heard(main, &members)? {
            let expected: &[u32] = if index % 3 == 0 { &[0, 1, 2, 3, 4] } else { &[] };
            assert_eq!(heard, expected, "element {index}");
        }
        Ok(())
    });
}

#[test]
fn sections_and_elements_are_sent_from_node_to_node_and_used_there() {
    on_small_and_large(|main| {
        let members = main.array::<Member>(40, ());
        let section = members.section(main, [3, 39, 17, 0, 25, 17]);
        let hops = (0..40).step_by(6).map(|index| members.at(index)).collect();
        let (to, indices) = main.pending();
        members.at(20).send(main, Summon(hops, section, to));
        assert_eq!(indices.wait(main)?.0, [0, 3, 17, 25, 39]);
        Ok(())
    });
}

#[test]
fn two_sections_with_common_members_do_not_mix() {
    on_small_and_large(|main| {
        let members = main.array_placed::<Member>(60, (), Placement::Cyclic);
        let (low, even) = (members.section(main, 0..40), members.section(main, (0..60).step_by(2)));
        let ((to_low, of_low), (to_even, of_even)) = (main.pending(), main.pending());
        for _ in 0..4 {
            low.send(main, Meet(low.clone(), to_low));
            even.send(main, Meet(even.clone(), to_even));
        }
        for _ in 0..4 {
            assert!(of_low.wait(main)?.0.into_iter().eq(0..40));
            assert!(of_even.wait(main)?.0.into_iter().eq((0..60).step_by(2)));
        }
        Ok(())
    });
}

#[test]
fn a_multicast_waits_for_elements_that_are_made_later() {
    crate::on_every_mix(program, |main| {
        let members = main.array_deferred::<Member>(12, Placement::Block);
        let section = members.section(main, [1, 5, 11]);
        let (to, indices) = main.pending();
        section.send(main, Meet(section.clone(), to));
        (0..12).for_each(|index| main.insert(&members, index, ()));
        assert_eq!(indices.wait(main)?.0, [1, 5, 11]);
        Ok(())
    });
}

#[test]
fn misused_sections_and_reductions_end_the_run_with_a_sentence() {
    let fails = |drive: fn(&mut Driver) -> Result<(), RunError>| crate::failure(program(), drive);
    let outside = fails(|main| {
        let members = main.array::<Member>(4, ());
        members.section(main, [1, 4]).send(main, Hear(1));
        main.quiescence()
    });
    assert!(outside.contains("section of Member has no element [4]"), "{outside}");
    let stranger = fails(|main| {
        let members = main.array::<Member>(4, ());
        let section = members.section(main, [1, 2]);
        members.at(3).send(main, Meet(section, Callback::ignore()));
        main.quiescence()
    });
    assert!(
        stranger.contains("element [3] of Member takes part in a section that it is not in"),
        "{stranger}"
    );
    let other_array = fails(|main| {
        let (members, others) = (main.array::<Member>(4, ()), main.array::<Member>(4, ()));
        let section = members.section(main, [1, 2]);
        others.at(1).send(main, Meet(section, Callback::ignore()));
        main.quiescence()
    });
    assert!(other_array.contains("element [1] of Member takes part in a section"), "{other_array}");
    let types = fails(|main| {
        let members = main.array::<Member>(4, ());
        members.broadcast(main, Give(true, Callback::ignore(), Callback::ignore()));
        main.quiescence()
    });
    assert!(types.contains("elements of Member") && types.contains("in the same order"), "{types}");
}
