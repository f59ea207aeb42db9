//! What goes wrong ends the run with a sentence that says what and where.

use chares::{
    Bulk, Callback, Chare, Ctx, Cx, Driver, Element, Entry, InProcess, On, Placement, Program, RunError, Sum,
};
use serde::{Deserialize, Serialize};

/// Fails in the way it is told to.
#[derive(Serialize, Deserialize)]
struct Victim;

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
enum How {
    Panic,
    Fail,
    Destroy,
}
/// Do it, if you are that element.
#[derive(Clone, Serialize, Deserialize)]
struct Do(How, [u32; 2]);
#[derive(Clone, Serialize, Deserialize)]
struct Give(Callback<Sum<u32>>);
/// Contribute, with a receiver that is not the same for all.
#[derive(Clone, Serialize, Deserialize)]
struct GiveAway;

/// More than may go to another node.
#[derive(Clone, Serialize, Deserialize)]
struct Load(String, Vec<Bulk<u8>>);

chares::entries!(Victim: Do, Give, GiveAway, Load, Sum<u32> as "Result"; reduces Sum<u32> as "Sum");

impl Chare for Victim {
    type Index = [u32; 2];
    /// Which element's constructor panics.
    type Init = Option<[u32; 2]>;
    fn new(bad: Self::Init, ctx: &mut Ctx<'_, Self>) -> Self {
        assert!(bad != Some(ctx.index()), "it was not to be made");
        Self
    }
}
impl Entry<Do> for Victim {
    fn receive(&mut self, Do(how, index): Do, ctx: &mut Ctx<'_, Self>) {
        if index != ctx.index() {
            return;
        }
        match how {
            How::Panic => panic!("the cells ran out"),
            How::Fail => ctx.fail("the plate is too hot"),
            How::Destroy => ctx.destroy(),
        }
    }
}
impl Entry<Give> for Victim {
    fn receive(&mut self, Give(to): Give, ctx: &mut Ctx<'_, Self>) {
        ctx.contribute(Sum(1), to);
    }
}
impl Entry<GiveAway> for Victim {
    fn receive(&mut self, _: GiveAway, ctx: &mut Ctx<'_, Self>) {
        let own = Callback::element(&ctx.this());
        ctx.contribute(Sum(1), if ctx.index() == [0, 0] { own } else { Callback::ignore() });
    }
}
impl Entry<Load> for Victim {
    fn receive(&mut self, _: Load, _: &mut Ctx<'_, Self>) {}
}
chares::entries!(Solo: Do);
impl Entry<Sum<u32>> for Victim {
    fn receive(&mut self, _: Sum<u32>, _: &mut Ctx<'_, Self>) {}
}

/// A single chare.
#[derive(Serialize, Deserialize)]
struct Solo;
impl Chare for Solo {
    type Index = ();
    type Init = ();
    fn new((): (), _: &mut Ctx<'_, Self>) -> Self {
        Self
    }
}
impl Entry<Do> for Solo {
    fn receive(&mut self, Do(how, _): Do, ctx: &mut Ctx<'_, Self>) {
        match how {
            How::Destroy => ctx.destroy(),
            _ => panic!("alone"),
        }
    }
}

fn program() -> Program {
    Program::new("failing", "1").chare::<Victim>().chare::<Solo>()
}

/// The sentence, which must be the same whether messages are moved or packed.
fn fails(drive: fn(&mut Driver) -> Result<(), RunError>) -> String {
    let mix = InProcess::new(&[2, 1]);
    let moved = program().run_in_process(&mix, drive).unwrap_err();
    let packed = program().run_in_process(&mix.always_pup(), drive).unwrap_err();
    assert_eq!(moved.to_string(), packed.to_string());
    assert_eq!((moved.exit_code(), packed.exit_code()), (70, 70));
    moved.to_string()
}

fn victims(main: &mut Driver) -> chares::Array<Victim> {
    main.array_placed([2, 3], None, Placement::on_pes([0, 1, 2, 0, 1, 2]))
}

#[test]
fn a_message_that_is_too_long_for_a_link_is_named_with_the_limit() {
    let too_long = fails(|main| {
        victims(main).at([1, 2]).send(main, Load("x".repeat(65 << 20), Vec::new()));
        main.quiescence()
    });
    assert_eq!(
        too_long,
        "the message for Victim: Load of element [1, 2] cannot be sent from node 0 to node 2: it has 65 MiB beside its \
         buffers, over the limit of 64 MiB; put numbers into bulk arrays, or send it in parts"
    );
    let too_many = fails(|main| {
        victims(main).broadcast(main, Load(String::new(), vec![Bulk::zeros(0); 65_536]));
        main.quiescence()
    });
    assert_eq!(
        too_many,
        "the message for Victim: Load cannot be sent from node 0 to node 1: it has 65536 buffers, over the limit of 65535; send \
         it in parts"
    );
}

#[test]
fn a_panic_names_type_entry_method_element_and_pe() {
    let expected = "Victim: Do of element [1, 2] on PE 2 of failing failed: panicked: the cells ran out";
    let sent = fails(|main| {
        victims(main).at([1, 2]).send(main, Do(How::Panic, [1, 2]));
        main.quiescence()
    });
    assert_eq!(sent, expected);
    let broadcast = fails(|main| {
        victims(main).broadcast(main, Do(How::Panic, [1, 2]));
        main.quiescence()
    });
    assert_eq!(broadcast, expected);
    let multicast = fails(|main| {
        let victims = victims(main);
        victims.section(main, [[0, 2], [1, 2], [1, 0]]).send(main, Do(How::Panic, [1, 2]));
        main.quiescence()
    });
    assert_eq!(multicast, expected);
    let constructor = fails(|main| {
        main.array_placed::<Victim>([2, 3], Some([1, 1]), Placement::Cyclic);
        main.quiescence()
    });
    assert!(
        constructor
            .starts_with("Victim: (constructor) of element [1, 1] on PE 1 of failing failed: panicked"),
        "{constructor}"
    );
    let single = fails(|main| {
        let solo: Element<Solo> = main.chare((), On::Pe(2));
        solo.send(main, Do(How::Panic, [0, 0]));
        main.quiescence()
    });
    assert_eq!(
        single,
        "Solo: Do of a single chare that driver made on PE 2 of failing failed: panicked: alone"
    );
}

#[test]
fn a_chare_or_the_driver_can_end_the_run_with_a_sentence() {
    let by_chare = fails(|main| {
        victims(main).at([0, 1]).send(main, Do(How::Fail, [0, 1]));
        main.quiescence()
    });
    assert_eq!(by_chare, "the plate is too hot");
    let by_driver = fails(|main| {
        main.fail("enough");
        main.quiescence()
    });
    assert_eq!(by_driver, "enough");
    let every_wait = fails(|main| {
        victims(main).at([0, 1]).send(main, Do(How::Fail, [0, 1]));
        let (_callback, never) = main.pending::<u32>();
        never.wait(main).unwrap_err();
        main.init_over().unwrap_err();
        main.quiescence()
    });
    assert_eq!(every_wait, "the plate is too hot");
}

#[test]
fn the_drivers_own_error_is_passed_on() {
    let run = |error: fn() -> RunError| {
        program().run_in_process(&InProcess::new(&[1, 1]), |main| {
            victims(main).broadcast(main, Do(How::Fail, [7, 7]));
            Err::<(), _>(error())
        })
    };
    let wrong = run(|| RunError::Wrong("off by one".into())).unwrap_err();
    assert_eq!((wrong.to_string(), wrong.exit_code()), ("off by one".to_string(), 1));
    let app = run(|| {
        let parsed = "x".parse::<u32>().map_err(|e| RunError::App(Box::new(e)));
        parsed.unwrap_err()
    });
    assert_eq!(app.unwrap_err().exit_code(), 1);
}

#[test]
fn an_element_is_made_once() {
    let inserted = fails(|main| {
        let victims = main.array_deferred::<Victim>([2, 3], Placement::Cyclic);
        main.insert(&victims, [1, 0], None);
        main.insert(&victims, [1, 0], None);
        main.quiescence()
    });
    assert_eq!(inserted, "element [1, 0] of an array of Victim was made twice");
    let there_already = fails(|main| {
        let victims = victims(main);
        main.insert(&victims, [0, 2], None);
        main.quiescence()
    });
    assert_eq!(there_already, "element [0, 2] of an array of Victim was made twice");
}

#[test]
fn a_message_for_an_element_that_nobody_makes_is_named() {
    let at_quiescence = fails(|main| {
        let victims = main.array_deferred::<Victim>([2, 3], Placement::Cyclic);
        main.insert(&victims, [0, 0], None);
        victims.at([0, 2]).send(main, Do(How::Fail, [9, 9]));
        main.quiescence()
    });
    assert_eq!(
        at_quiescence,
        "Victim: Do of element [0, 2] waits on PE 2 for an element that nobody has made"
    );
    let in_a_wait = fails(|main| {
        let victims = main.array_deferred::<Victim>([1, 3], Placement::Cyclic);
        main.insert(&victims, [0, 0], None);
        main.insert(&victims, [0, 2], None);
        let (to, sum) = main.pending();
        victims.broadcast(main, Give(to));
        sum.wait(main).map(drop)
    });
    assert_eq!(in_a_wait, "Victim: Give waits on PE 1 for elements that nobody has made");
}

#[test]
fn what_is_made_after_all_is_not_complained_of() {
    for always_pup in [false, true] {
        let mix = InProcess { always_pup, ..InProcess::new(&[1, 2]) };
        let sum = program().run_in_process(&mix, |main| {
            let victims = main.array_deferred::<Victim>([2, 3], Placement::Cyclic);
            let (to, sum) = main.pending();
            victims.broadcast(main, Give(to));
            for n in 0..6 {
                main.insert(&victims, [n / 3, n % 3], None);
            }
            main.quiescence()?;
            sum.wait(main)
        });
        assert_eq!(sum.unwrap(), Sum(6));
    }
}

#[test]
fn a_wait_for_what_nothing_can_give_ends() {
    let nothing = fails(|main| {
        victims(main);
        let (_callback, never) = main.pending::<u32>();
        never.wait(main).map(drop)
    });
    assert!(nothing.contains("nothing is left anywhere that could give it"), "{nothing}");
    let incomplete = fails(|main| {
        let (to, sum) = main.pending();
        victims(main).at([0, 0]).send(main, Give(to)); // and no other element contributes
        sum.wait(main).map(drop)
    });
    assert!(incomplete.contains("nothing is left anywhere that could give it"), "{incomplete}");
}

#[test]
fn other_mistakes_are_named_too() {
    let outside = fails(|main| {
        victims(main).at([2, 0]).send(main, Do(How::Fail, [2, 0]));
        main.quiescence()
    });
    assert_eq!(outside, "driver sent to element [2, 0] of an array of Victim of shape [2, 3]");
    let receivers = fails(|main| {
        victims(main).broadcast(main, GiveAway);
        main.quiescence()
    });
    assert!(receivers.contains("for different receivers"), "{receivers}");
    let unlisted = crate::failure(Program::new("empty", "1"), |main| {
        victims(main);
        main.quiescence()
    });
    assert!(unlisted.contains("the program does not list it: add `.chare::<Victim>()`"), "{unlisted}");
}

#[test]
fn what_comes_for_a_destroyed_chare_is_dropped_and_its_place_is_used_again() {
    for always_pup in [false, true] {
        let mix = InProcess { always_pup, ..InProcess::new(&[1, 1]) };
        let run = program().run_in_process(&mix, |main| {
            let mut gone: Vec<Element<Solo>> = Vec::new();
            for n in 0..200 {
                let solo: Element<Solo> = main.chare((), On::Pe(n % 2));
                solo.send(main, Do(How::Destroy, [0, 0]));
                solo.send(main, Do(How::Panic, [0, 0])); // never runs
                gone.push(solo);
            }
            main.quiescence()?;
            gone.iter().for_each(|solo| solo.send(main, Do(How::Panic, [0, 0])));
            main.quiescence()
        });
        run.unwrap();
    }
}
