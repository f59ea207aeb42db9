//! Scatter, all-gather, all-reduce and all-to-all, over arrays, sections and groups.

use chares::{
    Array, Bulk, Callback, Chare, Ctx, Cx, Driver, Entry, Exchange, Gather, Group, InProcess, Max, NodeGroup,
    Part, Placement, Program, RunError, Section, Sum,
};
use serde::{Deserialize, Serialize};

/// Round, sender, receiver, and a filling by which some are bulk messages.
type Swapped = (u32, u32, u32, Bulk<u8>);

#[derive(Default, Serialize, Deserialize)]
struct Voice {
    heard: Vec<u32>,
    swaps: Exchange<Swapped>,
    swapped: u32,
}

/// A number for you alone.
#[derive(Serialize, Deserialize)]
struct Own(u32);
/// A number for you alone, and two fillings that begin with it.
#[derive(Serialize, Deserialize)]
struct Parcel(u32, Vec<u8>, Bulk<u16>);
/// Give your index, and a bulk array of it, to all: of the array, or of the section.
#[derive(Serialize, Deserialize)]
struct Share(Option<Section<Voice>>);
/// Find the sum of all members' indices together.
#[derive(Serialize, Deserialize)]
struct Total(Section<Voice>);
/// Exchange with all, of the array or of the section, so many times.
#[derive(Serialize, Deserialize)]
struct Swap(Option<Section<Voice>>, u32);
/// What have you heard?
#[derive(Serialize, Deserialize)]
struct Tell(Callback<Gather<Vec<u32>>>);
/// Make an array, scatter over it before anybody else can know it, and have it tell what it has heard.
#[derive(Serialize, Deserialize)]
struct Found(Callback<Gather<Vec<u32>>>);
/// Give this to a callback that is for a section's own results.
#[derive(Serialize, Deserialize)]
struct Misuse(Callback<Sum<u32>>, Option<Section<Voice>>);

chares::entries!(Voice: Own, Parcel, Share, Gather<(u32, Bulk<u32>)> as "Shared", Total, Sum<u32> as "Sum", Swap,
    Part<Swapped> as "Part", Tell, Found, Misuse;
    reduces Gather<(u32, Bulk<u32>)> as "Shared", Sum<u32> as "Sum", Gather<Vec<u32>> as "Heard");

impl Chare for Voice {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self::default()
    }
}
impl Entry<Own> for Voice {
    fn receive(&mut self, Own(number): Own, _: &mut Ctx<'_, Self>) {
        self.heard.push(number);
    }
}
impl Entry<Parcel> for Voice {
    fn receive(&mut self, Parcel(number, list, bulk): Parcel, ctx: &mut Ctx<'_, Self>) {
        let lengths = lengths_of(number, ctx.index());
        let (filled, numbers) = filling(number, lengths);
        assert!(list == filled && bulk == numbers && bulk.as_ptr().addr() % 16 == 0);
        self.heard.push(number);
    }
}
impl Entry<Share> for Voice {
    fn receive(&mut self, Share(section): Share, ctx: &mut Ctx<'_, Self>) {
        let value = (ctx.index(), Bulk::from_slice(&[ctx.index(); 5]));
        match section {
            Some(section) => ctx.all_gather_in(&section, value),
            None => ctx.all_gather(value),
        }
    }
}
impl Entry<Gather<(u32, Bulk<u32>)>> for Voice {
    fn receive(&mut self, Gather(all): Gather<(u32, Bulk<u32>)>, _: &mut Ctx<'_, Self>) {
        assert!(all.iter().all(|(index, bulk)| bulk[..] == [*index; 5]));
        self.heard.extend(all.iter().map(|(index, _)| index));
    }
}
impl Entry<Total> for Voice {
    fn receive(&mut self, Total(section): Total, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute_in(&section, Sum(ctx.index()), Callback::multicast(&section));
    }
}
impl Entry<Sum<u32>> for Voice {
    fn receive(&mut self, Sum(sum): Sum<u32>, _: &mut Ctx<'_, Self>) {
        self.heard.push(sum);
    }
}
impl Entry<Swap> for Voice {
    fn receive(&mut self, Swap(section, rounds): Swap, ctx: &mut Ctx<'_, Self>) {
        for round in 0..rounds {
            // Bulk messages, which small ones of later rounds overtake.
            let filling = Bulk::zeros(if round % 2 == 0 { 20_000 } else { 0 });
            let me = ctx.index();
            let part = |to| (round, me, to, filling.clone());
            match &section {
                Some(section) => self.swaps.send_in(ctx, section, part),
                None => self.swaps.send(ctx, part),
            }
        }
    }
}
impl Entry<Part<Swapped>> for Voice {
    fn receive(&mut self, part: Part<Swapped>, ctx: &mut Ctx<'_, Self>) {
        self.swaps.hold(part);
        while let Some(parts) = self.swaps.take(ctx) {
            for (round, from, to, _) in parts {
                assert_eq!((round, to), (self.swapped, ctx.index()));
                self.heard.push(from);
            }
            self.swapped += 1;
        }
    }
}
impl Entry<Tell> for Voice {
    fn receive(&mut self, Tell(to): Tell, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute_ordered(Gather(vec![std::mem::take(&mut self.heard)]), to);
    }
}
impl Entry<Found> for Voice {
    fn receive(&mut self, Found(to): Found, ctx: &mut Ctx<'_, Self>) {
        let made: Array<Self> = ctx.array_placed(30, (), Placement::Cyclic);
        made.scatter(ctx, |index| Own(100 + index));
        made.scatter(ctx, |index| Own(200 + index));
        made.scatter(ctx, |_| Tell(to));
    }
}
impl Entry<Misuse> for Voice {
    fn receive(&mut self, Misuse(to, section): Misuse, ctx: &mut Ctx<'_, Self>) {
        match section {
            Some(section) => ctx.contribute_in(&section, Sum(1), to),
            None => to.send(ctx, Sum(1)),
        }
    }
}

/// A cell of a plane, which knows where it is.
#[derive(Serialize, Deserialize)]
struct Cell(Vec<[u32; 2]>);
/// Your index.
#[derive(Serialize, Deserialize)]
struct Place([u32; 2]);
/// How often have you heard anything else than your index?
#[derive(Serialize, Deserialize)]
struct Judge(usize, Callback<Max<u32>>);
chares::entries!(Cell: Place, Judge; reduces Max<u32> as "Wrong");
impl Chare for Cell {
    type Index = [u32; 2];
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self(Vec::new())
    }
}
impl Entry<Place> for Cell {
    fn receive(&mut self, Place(at): Place, _: &mut Ctx<'_, Self>) {
        self.0.push(at);
    }
}
impl Entry<Judge> for Cell {
    fn receive(&mut self, Judge(times, to): Judge, ctx: &mut Ctx<'_, Self>) {
        let is_right = self.0 == vec![ctx.index(); times];
        ctx.contribute(Max(u32::from(!is_right)), to);
    }
}

/// One on every PE, and one on every node.
#[derive(Serialize, Deserialize)]
struct Office;
/// Where you should be, and whether that counts nodes.
#[derive(Serialize, Deserialize)]
struct Stay(u32, bool, Callback<Sum<u32>>);
chares::entries!(Office: Stay; reduces Sum<u32> as "Wrong");
impl Chare for Office {
    type Index = u32;
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self
    }
}
impl Entry<Stay> for Office {
    fn receive(&mut self, Stay(at, counts_nodes, to): Stay, ctx: &mut Ctx<'_, Self>) {
        let here = if counts_nodes { ctx.node_id() } else { ctx.pe_id() };
        ctx.contribute(Sum(u32::from(here != at)), to);
    }
}

fn program() -> Program {
    Program::new("collectives", "1").chare::<Voice>().chare::<Cell>().chare::<Office>()
}

/// On the usual mixes, and on more nodes than one level of a tree holds.
fn on_small_and_large(drive: impl Fn(&mut Driver) -> Result<(), RunError>) {
    crate::on_every_mix(program, &drive);
    let pes: Vec<u32> = (0..12).map(|n| 1 + u32::from(n % 5 == 0)).collect();
    program().run_in_process(&InProcess::new(&pes), &drive).unwrap();
}

fn heard(main: &mut Driver, voices: &Array<Voice>) -> Result<Vec<Vec<u32>>, RunError> {
    main.quiescence()?;
    let (to, heard) = main.pending();
    voices.broadcast(main, Tell(to));
    Ok(heard.wait(main)?.0)
}

#[test]
fn scatter_gives_every_element_its_own_in_the_order_sent() {
    on_small_and_large(|main| {
        for placement in [Placement::Block, Placement::Cyclic] {
            let voices: Array<Voice> = main.array_placed(50, (), placement);
            for round in 0..4 {
                voices.scatter(main, |index| Own(100 * round + index));
            }
            let thirds = voices.section(main, (0..50).step_by(3));
            thirds.scatter(main, |index| Own(1000 + index));
            for (index, heard) in (0..).zip(heard(main, &voices)?) {
                let own = (0..4).map(|round| 100 * round + index);
                let third = (index % 3 == 0).then_some(1000 + index);
                assert!(own.chain(third).eq(heard.iter().copied()), "element {index}: {heard:?}");
            }
        }
        Ok(())
    });
}

/// Bytes in the list and numbers in the array of a parcel: none, few, and as many as lie around each limit below 16 KiB.
fn lengths_of(number: u32, index: u32) -> [usize; 2] {
    let few = (number as usize * 37 + index as usize * 11) % 23;
    let long = [0, 64, 1000, 2040, 4080, 8180];
    let at = |by: u32| long[((number * by + index) % 6) as usize] + few;
    [at(5), at(1) / 3]
}

fn filling(number: u32, [list, bulk]: [usize; 2]) -> (Vec<u8>, Bulk<u16>) {
    let from = number as usize;
    let numbers: Vec<u16> = (from..from + bulk).map(|n| n as u16).collect();
    ((from..from + list).map(|n| n as u8).collect(), numbers.into())
}

#[test]
fn scattered_messages_of_any_length_keep_their_order_with_those_sent_directly() {
    on_small_and_large(|main| {
        let voices: Array<Voice> = main.array_placed(40, (), Placement::Cyclic);
        for round in 0..12 {
            voices.scatter(main, |index| {
                let (list, bulk) = filling(round, lengths_of(round, index));
                Parcel(round, list, bulk)
            });
            (0..40).for_each(|index| voices.at(index).send(main, Own(100 + round)));
        }
        let expected: Vec<u32> = (0..12).flat_map(|round| [round, 100 + round]).collect();
        assert!(heard(main, &voices)?.iter().all(|heard| *heard == expected));
        Ok(())
    });
}

#[test]
fn scatter_follows_indices_of_more_dimensions_also_where_elements_are_made_later() {
    crate::on_every_mix(program, |main| {
        let ready: Array<Cell> = main.array_placed([3, 5], (), Placement::Cyclic);
        let late: Array<Cell> = main.array_deferred([4, 2], Placement::Block);
        for cells in [&ready, &late] {
            (0..2).for_each(|_| cells.scatter(main, Place));
        }
        (0..8).for_each(|n| main.insert(&late, [n / 2, n % 2], ()));
        for cells in [&ready, &late] {
            let (to, wrong) = main.pending();
            main.quiescence()?;
            cells.broadcast(main, Judge(2, to));
            assert_eq!(wrong.wait(main)?.0, 0);
        }
        Ok(())
    });
}

#[test]
fn scatter_over_an_array_that_was_just_made_waits_for_it() {
    on_small_and_large(|main| {
        let count = main.pe_count();
        let voices: Array<Voice> = main.array(count, ());
        let (to, heard) = main.pending();
        voices.at(count - 1).send(main, Found(to));
        let expected = (0..30).map(|index| vec![100 + index, 200 + index]);
        assert!(expected.eq(heard.wait(main)?.0));
        Ok(())
    });
}

#[test]
fn scatter_over_groups_goes_by_pes_and_nodes() {
    on_small_and_large(|main| {
        let (group, nodes): (Group<Office>, NodeGroup<Office>) = (main.group(()), main.node_group(()));
        let (to, wrong) = main.pending();
        group.scatter(main, |pe| Stay(pe, false, to));
        assert_eq!(wrong.wait(main)?.0, 0);
        nodes.scatter(main, |node| Stay(node, true, to));
        assert_eq!(wrong.wait(main)?.0, 0);
        Ok(())
    });
}

#[test]
fn all_gather_brings_every_value_to_everybody_in_index_order() {
    on_small_and_large(|main| {
        let voices: Array<Voice> = main.array_placed(40, (), Placement::Cyclic);
        (0..3).for_each(|_| voices.scatter(main, |_| Share(None)));
        let all = (0..40).collect::<Vec<u32>>().repeat(3);
        assert!(heard(main, &voices)?.iter().all(|heard| *heard == all));
        for step in [1, 7, 39, 40] {
            let members: Vec<u32> = (0..40).step_by(step).collect();
            let section = voices.section(main, members.iter().copied());
            (0..2).for_each(|_| section.send(main, Share(Some(section.clone()))));
            let all = members.repeat(2);
            for (index, heard) in (0..).zip(heard(main, &voices)?) {
                let expected: &[u32] = if members.contains(&index) { &all } else { &[] };
                assert_eq!(heard, expected, "element {index}, every {step}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_reduction_over_a_section_can_tell_all_its_members() {
    on_small_and_large(|main| {
        let voices: Array<Voice> = main.array_placed(33, (), Placement::Cyclic);
        let (low, even) = (voices.section(main, 0..9), voices.section(main, (0..33).step_by(2)));
        for _ in 0..3 {
            low.send(main, Total(low.clone()));
        }
        even.send(main, Total(even.clone()));
        for (index, mut heard) in (0..).zip(heard(main, &voices)?) {
            heard.sort_unstable();
            let of_low = std::iter::repeat_n(36, if index < 9 { 3 } else { 0 });
            let of_even = (index % 2 == 0).then_some(272);
            assert!(of_low.chain(of_even).eq(heard.iter().copied()), "element {index}: {heard:?}");
        }
        Ok(())
    });
}

#[test]
fn all_to_all_rounds_are_complete_and_in_order_however_early_parts_come() {
    on_small_and_large(|main| {
        let voices: Array<Voice> = main.array_placed(15, (), Placement::Cyclic);
        voices.broadcast(main, Swap(None, 3));
        let all = (0..15).collect::<Vec<u32>>().repeat(3);
        assert!(heard(main, &voices)?.iter().all(|heard| *heard == all));
        let others: Array<Voice> = main.array(20, ());
        let members = [1, 2, 3, 5, 8, 13, 19];
        let section = others.section(main, members);
        section.send(main, Swap(Some(section.clone()), 2));
        for (index, heard) in (0..).zip(heard(main, &others)?) {
            let expected = if members.contains(&index) { members.repeat(2) } else { Vec::new() };
            assert_eq!(heard, expected, "element {index}");
        }
        Ok(())
    });
}

#[test]
fn misused_collectives_end_the_run_with_a_sentence() {
    let fails = |drive: fn(&mut Driver, Array<Voice>) -> Result<(), RunError>| {
        crate::failure(program(), move |main| {
            let voices = main.array::<Voice>(4, ());
            drive(main, voices)?;
            main.quiescence()
        })
    };
    let only_those = "did not come from a reduction over that section: only those know its members";
    let direct = fails(|main, voices| {
        let section = voices.section(main, [1, 2]);
        voices.at(3).send(main, Misuse(Callback::multicast(&section), None));
        Ok(())
    });
    assert!(direct.contains(only_those), "{direct}");
    let of_another = fails(|main, voices| {
        let (section, other) = (voices.section(main, [1, 2]), voices.section(main, [0, 3]));
        other.send(main, Misuse(Callback::multicast(&section), Some(other.clone())));
        Ok(())
    });
    let says_so =
        [only_those, "for the members of another section"].iter().any(|part| of_another.contains(part));
    assert!(says_so, "{of_another}");
    let stranger = fails(|main, voices| {
        let section = voices.section(main, [1, 2]);
        voices.at(3).send(main, Swap(Some(section), 1));
        Ok(())
    });
    assert!(
        stranger.contains("element [3] of Voice takes part in a section that it is not in"),
        "{stranger}"
    );
    let mixed = fails(|main, voices| {
        let section = voices.section(main, [0, 1]);
        voices.at(0).send(main, Swap(Some(section), 1));
        voices.at(2).send(main, Swap(None, 1));
        Ok(())
    });
    assert!(mixed.contains("takes part in an exchange over") && mixed.contains("Part of element"), "{mixed}");
}

/// How many elements there are is a matter of each node alone: between nodes a broadcast and a reduction take as many messages
/// for a few of them as for many.
#[test]
fn messages_between_nodes_do_not_grow_with_the_number_of_elements() {
    const ROUNDS: u32 = 40;
    let drive = |main: &mut Driver| {
        let mut sent = |elements: u32| -> Result<u64, RunError> {
            let voices = main.array_placed::<Voice>(elements, (), Placement::Cyclic);
            main.quiescence()?;
            let count = |main: &mut Driver| -> Result<u64, RunError> {
                Ok(main.snapshots()?.iter().map(|node| node.sent_messages).sum())
            };
            let before = count(main)?;
            for _ in 0..ROUNDS {
                let (to, told) = main.pending();
                voices.broadcast(main, Tell(to));
                assert_eq!(told.wait(main)?.0.len(), elements as usize);
            }
            Ok(count(main)? - before)
        };
        let (few, many) = (sent(16)?, sent(256)?);
        assert!(few >= u64::from(ROUNDS), "{few}");
        assert!(many <= few + few / 4, "{few} messages for 16 elements, {many} for 256");
        Ok(())
    };
    program().run_in_process(&InProcess::new(&[2, 2, 2, 2]), drive).unwrap();
}
