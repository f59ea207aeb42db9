//! Where chares are made, and how elements are numbered.

use chares::{
    Array, Callback, Chare, Ctx, Cx, Driver, Element, Entry, Gather, InProcess, Index, On, Placement,
    Program, RunError,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// Tells where it is; with indices of any kind.
#[derive(Serialize, Deserialize)]
struct Place<I> {
    index: PhantomData<I>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Tell(Callback<Gather<Spot>>);
/// PE, node and index, with unused dimensions 0.
type Spot = (u32, u32, [u32; 3]);
#[derive(Clone, Serialize, Deserialize)]
struct TellOne(Callback<Spot>);
/// Make a single chare that tells, on such a place.
#[derive(Clone, Serialize, Deserialize)]
struct MakeHere(Callback<Spot>);

chares::entries!(impl<I: Numbered> Place<I>: Tell, TellOne, MakeHere; reduces Gather<Spot> as "Spots");

trait Numbered: Index + Serialize + DeserializeOwned {}
impl<I: Index + Serialize + DeserializeOwned> Numbered for I {}

impl<I: Numbered> Chare for Place<I> {
    type Index = I;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self { index: PhantomData }
    }
}

fn spot<I: Numbered>(ctx: &Ctx<'_, Place<I>>) -> Spot {
    (ctx.pe_id(), ctx.node_id(), ctx.index().to_element().0)
}

impl<I: Numbered> Entry<Tell> for Place<I> {
    fn receive(&mut self, Tell(to): Tell, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute_ordered(Gather(vec![spot(ctx)]), to);
    }
}
impl<I: Numbered> Entry<TellOne> for Place<I> {
    fn receive(&mut self, TellOne(to): TellOne, ctx: &mut Ctx<'_, Self>) {
        to.send(ctx, spot(ctx));
    }
}
impl<I: Numbered> Entry<MakeHere> for Place<I> {
    fn receive(&mut self, MakeHere(to): MakeHere, ctx: &mut Ctx<'_, Self>) {
        let made: Element<Place<()>> = ctx.chare((), On::Here);
        made.send(ctx, TellOne(to));
    }
}

fn program() -> Program {
    let program = Program::new("places", "1").chare::<Place<u32>>().chare::<Place<[u32; 2]>>();
    program.chare::<Place<[u32; 3]>>().chare::<Place<()>>()
}

fn spots<I: Numbered>(main: &mut Driver, places: &Array<Place<I>>) -> Result<Vec<Spot>, RunError> {
    let (to, spots) = main.pending();
    places.broadcast(main, Tell(to));
    Ok(spots.wait(main)?.0)
}

/// Three PEs on two nodes, the first twice as fast as the others.
fn unequal(drive: impl Fn(&mut Driver) -> Result<(), RunError>) {
    for always_pup in [false, true] {
        let mix = InProcess { always_pup, ..InProcess::new(&[2, 1]).speeds(&[1.0, 0.5, 0.5]) };
        program().run_in_process(&mix, &drive).unwrap();
    }
}

#[test]
fn elements_are_made_where_the_placement_says() {
    let cases = [
        (Placement::Block, [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]),
        (Placement::Cyclic, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]),
        (Placement::BySpeed, [0, 0, 0, 0, 0, 1, 1, 1, 2, 2]),
        (Placement::Bounds(vec![0, 0, 7, 10]), [1, 1, 1, 1, 1, 1, 1, 2, 2, 2]),
        (Placement::on_pes([2, 0, 2, 1, 1, 0, 2, 2, 0, 1]), [2, 0, 2, 1, 1, 0, 2, 2, 0, 1]),
    ];
    unequal(|main| {
        for (placement, expected) in &cases {
            let line = main.array_placed::<Place<u32>>(10, (), placement.clone());
            let found: Vec<u32> = spots(main, &line)?.into_iter().map(|(pe, ..)| pe).collect();
            assert_eq!(found, expected, "{placement:?}");
        }
        Ok(())
    });
}

#[test]
fn arrays_have_one_two_or_three_dimensions_counted_row_by_row() {
    unequal(|main| {
        let nodes = [0, 0, 1];
        let expect = |all: Vec<Spot>, indices: Vec<[u32; 3]>| {
            let expected: Vec<Spot> =
                (0..).zip(indices).map(|(n, index)| (n % 3, nodes[n as usize % 3], index)).collect();
            assert_eq!(all, expected);
        };
        let line = main.array_placed::<Place<u32>>(5, (), Placement::Cyclic);
        assert_eq!(line.shape(), [5, 1, 1]);
        expect(spots(main, &line)?, (0..5).map(|i| [i, 0, 0]).collect());
        let plane = main.array_placed::<Place<[u32; 2]>>([3, 2], (), Placement::Cyclic);
        assert_eq!(plane.shape(), [3, 2, 1]);
        expect(spots(main, &plane)?, (0..6).map(|n| [n / 2, n % 2, 0]).collect());
        let space = main.array_placed::<Place<[u32; 3]>>([2, 3, 2], (), Placement::Cyclic);
        assert_eq!(space.shape(), [2, 3, 2]);
        expect(spots(main, &space)?, (0..12).map(|n| [n / 6, n / 2 % 3, n % 2]).collect());
        let (to, one) = main.pending();
        space.at([1, 2, 0]).send(main, TellOne(to));
        assert_eq!(one.wait(main)?, (1, 0, [1, 2, 0]));
        Ok(())
    });
}

#[test]
fn a_group_has_one_element_on_every_pe_and_a_node_group_one_on_every_node() {
    unequal(|main| {
        let group = main.group::<Place<u32>>(());
        assert_eq!(spots(main, group.as_array())?, [(0, 0, [0; 3]), (1, 0, [1, 0, 0]), (2, 1, [2, 0, 0])]);
        let nodes = main.node_group::<Place<u32>>(());
        assert_eq!(main.node_count(), 2);
        assert_eq!(spots(main, nodes.as_array())?, [(0, 0, [0; 3]), (2, 1, [1, 0, 0])]);
        let (to, spot) = main.pending();
        group.on(1).send(main, TellOne(to));
        nodes.on(1).send(main, TellOne(to));
        let mut both = [spot.wait(main)?, spot.wait(main)?];
        both.sort_unstable();
        assert_eq!(both, [(1, 0, [1, 0, 0]), (2, 1, [1, 0, 0])]);
        let (to, all) = main.pending();
        nodes.broadcast(main, Tell(to));
        assert_eq!(all.wait(main)?.0.len(), 2);
        group.broadcast(main, Tell(to));
        assert_eq!(all.wait(main)?.0.len(), 3);
        let nodes_of_pes: Vec<u32> = (0..3).map(|pe| main.node_of_pe(pe)).collect();
        assert_eq!(nodes_of_pes, [0, 0, 1]);
        Ok(())
    });
}

#[test]
fn single_chares_are_made_here_there_or_as_speeds_earn() {
    unequal(|main| {
        let (to, spot) = main.pending();
        let made_on = |main: &mut Driver, on| {
            let lone: Element<Place<()>> = main.chare((), on);
            lone.send(main, TellOne(to));
            spot.wait(main).map(|(pe, ..)| pe)
        };
        for pe in [2, 0, 1] {
            assert_eq!(made_on(main, On::Pe(pe))?, pe);
        }
        let dealt: Vec<u32> = (0..8).map(|_| made_on(main, On::BySpeed)).collect::<Result<_, _>>()?;
        assert_eq!(dealt, [0, 1, 2, 0, 0, 1, 2, 0]);
        // The driver holds no chares, so that its "here" is by speed too.
        let dealt: Vec<u32> = (0..4).map(|_| made_on(main, On::Here)).collect::<Result<_, _>>()?;
        assert_eq!(dealt, [0, 1, 2, 0]);
        let group = main.group::<Place<u32>>(());
        for pe in 0..3 {
            group.on(pe).send(main, MakeHere(to));
            assert_eq!(spot.wait(main)?.0, pe);
        }
        Ok(())
    });
}

#[test]
fn impossible_places_are_refused_with_a_sentence() {
    let fails = |make: fn(&mut Driver)| {
        crate::failure(program(), |main| {
            make(main);
            main.quiescence()
        })
    };
    let made = fails(|main| {
        let _: Element<Place<()>> = main.chare((), On::Pe(3));
    });
    assert!(made.contains("Place<()> was to be made on PE 3, which does not exist"), "{made}");
    let placed = |placement| {
        crate::failure(program(), move |main| {
            main.array_placed::<Place<u32>>(10, (), Placement::clone(&placement));
            main.quiescence()
        })
    };
    for placement in [
        Placement::Bounds(vec![0, 4, 3, 10]),
        Placement::Bounds(vec![0, 10]),
        Placement::on_pes([0; 9]),
        Placement::on_pes([3; 10]),
    ] {
        let sentence = placed(placement);
        assert!(
            sentence.contains("array of Place<u32> cannot be made: the placement does not give"),
            "{sentence}"
        );
    }
    let empty = fails(|main| {
        main.array::<Place<[u32; 2]>>([4, 0], ());
    });
    assert!(empty.contains("array of Place<[u32; 2]> cannot be made"), "{empty}");
}
