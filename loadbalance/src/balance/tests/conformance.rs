//! One suite for all balancers: whatever the view, these hold.

use super::*;
use crate::balance::random::Random;
use proptest::prelude::*;

/// A view of every kind from a seed.
fn any_view(seed: u64, pe_count: u32, chares: u32) -> View {
    let mut random = Random::new(seed);
    let speeds_differ = random.below(2) == 0;
    let mut node = 0;
    let mut view = View::default();
    for _ in 0..pe_count {
        node += random.below(2) as usize;
        let speed = if speeds_differ { 0.1 + random.part() } else { 0.5 };
        let mut pe = Pe::from(Part { node, speed });
        pe.background = if random.below(4) == 0 { random.part() * 3.0 } else { 0.0 };
        view.pes.push(pe);
    }
    let crowded = random.below(3) == 0;
    for _ in 0..chares {
        let pe = if crowded { 0 } else { random.below(u64::from(pe_count)) as u32 };
        let load = if random.below(5) == 0 { 0.0 } else { random.part() * random.part() * 2.0 };
        let mobility = match random.below(6) {
            0 => Mobility::Pinned,
            1 | 2 => {
                let count = random.below(4);
                Mobility::OneOf((0..count).map(|_| random.below(u64::from(pe_count)) as u32).collect())
            }
            _ => Mobility::Anywhere,
        };
        view.chares.push(Chare { pe, load, bytes: random.below(1000), mobility });
    }
    if chares > 0 && random.below(2) == 0 {
        for _ in 0..2 * chares {
            let [one, other] = [(); 2].map(|()| random.below(u64::from(chares)) as u32);
            view.edges.push(Edge { one, other, bytes: random.below(5000), messages: 1 });
        }
    }
    if random.below(2) == 0 {
        view.places = (0..chares).map(|_| [(); 3].map(|()| random.part())).collect();
    }
    if random.below(3) == 0 {
        let block = |random: &mut Random| (random.below(3) > 0).then(|| random.below(8) as u32);
        view.blocks = (0..chares).map(|_| block(&mut random)).collect();
    }
    view
}

fn with_limits(mut view: View, seed: u64) -> View {
    let mut random = Random::of(seed, 7);
    let all: u64 = view.chares.iter().map(|chare| chare.bytes).sum();
    view.limits.node_bytes = (random.below(2) == 0).then(|| random.below(all / 2 + 1));
    view.limits.flux = (random.below(2) == 0).then(|| random.part());
    view.limits.moves = (random.below(3) == 0).then(|| random.below(10));
    for pe in &mut view.pes {
        pe.memory_bytes = (random.below(2) == 0).then(|| random.below(all + 1));
    }
    view
}

fn check_all(view: &View) {
    for balancer in all() {
        let decision = balancer.decide(view).unwrap();
        check(view, &decision, balancer.may_worsen());
        assert_eq!(balancer.decide(&view.clone()).unwrap(), decision, "{} decides twice", balancer.name());
    }
}

proptest! {
    #[test]
    fn every_balancer_keeps_the_rules(seed: u64, pes in 1u32..20, chares in 0u32..80) {
        check_all(&any_view(seed, pes, chares));
    }

    #[test]
    fn every_balancer_keeps_within_limits(seed: u64, pes in 1u32..12, chares in 0u32..60) {
        check_all(&with_limits(any_view(seed, pes, chares), seed));
    }

    #[test]
    fn pes_that_leave_are_emptied(seed: u64, pes in 2u32..10, chares in 0u32..50) {
        let mut view = any_view(seed, pes, chares);
        let stays = (seed % u64::from(pes)) as usize;
        let mut random = Random::new(seed);
        for pe in (0..view.pes.len()).filter(|pe| *pe != stays) {
            view.pes[pe].is_leaving = random.below(2) == 0;
        }
        let limited = with_limits(view.clone(), seed);
        for balancer in all() {
            check(&limited, &balancer.decide(&limited).unwrap(), balancer.may_worsen());
        }
        let is_leaving = |pe: u32| view.pes[pe as usize].is_leaving;
        for balancer in all() {
            let decision = balancer.decide(&view).unwrap();
            check(&view, &decision, balancer.may_worsen());
            for (chare, pe) in view.chares.iter().zip(decision.owners(&view)) {
                let has_place = match &chare.mobility {
                    Mobility::Anywhere => true,
                    Mobility::OneOf(set) => set.iter().any(|pe| !is_leaving(*pe)),
                    Mobility::Pinned => false,
                };
                prop_assert!(!is_leaving(pe) || !has_place, "{}: {:?} stayed", balancer.name(), chare);
            }
        }
    }

    #[test]
    fn only_ratios_of_speeds_count(seed: u64, pes in 1u32..9, chares in 0u32..40) {
        let view = any_view(seed, pes, chares);
        let mut faster = view.clone();
        faster.pes.iter_mut().for_each(|pe| pe.part.speed *= 4.0);
        for balancer in all() {
            let (one, other) = (balancer.decide(&view).unwrap(), balancer.decide(&faster).unwrap());
            prop_assert_eq!(one.moves, other.moves, "{}", balancer.name());
        }
    }
}

#[test]
fn small_and_strange_views_do_no_harm() {
    let one_pe = View::new(&Part::each(&[2.0]), [(0, 1.0), (0, 0.0)]);
    let one_chare = View::new(&Part::each(&[1.0, 2.0, 0.5]), [(2, 3.0)]);
    let idle = View::new(&Part::each(&[1.0, 2.0]), (0..5).map(|_| (0, 0.0)));
    let tiny = View::new(&Part::each(&[1.0, 1.0]), (0..5).map(|_| (0, 5e-324)));
    let huge = View::new(&Part::each(&[1.0, 1.0]), (0..5).map(|_| (0, 1e307)));
    let slow = View::new(&Part::each(&[1e-300, 1.0]), (0..5).map(|_| (1, 1.0)));
    let nobody = View::new(&Part::each(&[1.0; 5]), []);
    for view in [one_pe, one_chare, idle, tiny, huge, slow, nobody] {
        check_all(&view);
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_all() {
    let good = View::new(&Part::each(&[1.0, 1.0]), [(0, 1.0), (1, 2.0)]);
    let with = |change: &dyn Fn(&mut View)| {
        let mut view = good.clone();
        change(&mut view);
        view
    };
    let cases: [(View, &str); 16] = [
        (View::default(), "there are no PEs to balance"),
        (with(&|view| view.pes[1].part.speed = 0.0), "PE 1 has speed 0"),
        (with(&|view| view.pes[1].part.speed = f64::NAN), "PE 1 has speed NaN"),
        (with(&|view| view.pes[0].background = -1.0), "PE 0 has background work -1"),
        (with(&|view| view.chares[1].load = f64::NAN), "chare 1 has load NaN"),
        (with(&|view| view.chares[1].load = -2.0), "chare 1 has load -2"),
        (with(&|view| view.chares[1].load = f64::INFINITY), "chare 1 has load inf"),
        (with(&|view| view.chares[0].pe = 2), "chare 0 is or may be on PE 2, but there are PEs 0 to 1 only"),
        (with(&|view| view.chares[0].mobility = Mobility::OneOf([0, 9].into())), "may be on PE 9"),
        (with(&|view| view.edges.push(Edge { one: 0, other: 2, bytes: 1, messages: 1 })), "chare 2, but"),
        (with(&|view| view.places = vec![[0.0; 3]]), "2 chares have 1 places"),
        (with(&|view| view.blocks = vec![None; 3]), "2 chares have 3 blocks"),
        (with(&|view| view.places = vec![[0.0; 3], [f64::NAN; 3]]), "chare 1 lies at a place"),
        (with(&|view| view.limits.flux = Some(1.5)), "a PE may give away 1.5"),
        (with(&|view| view.pes.iter_mut().for_each(|pe| pe.is_leaving = true)), "all 2 PEs are about to"),
        (with(&|view| view.chares.iter_mut().for_each(|chare| chare.load = 1e308)), "not finite"),
    ];
    for (view, says) in cases {
        for balancer in all() {
            let why = balancer.decide(&view).unwrap_err().to_string();
            assert!(why.contains(says), "{}: {why}", balancer.name());
        }
    }
}

#[test]
fn choices_are_read_and_mistakes_get_one_sentence() {
    for named in BALANCERS {
        assert_eq!(balancer(named.name).name(), named.name);
        assert!(!named.about.is_empty());
    }
    assert!(matches!("auto:errors=3,memory=64MiB".parse().unwrap(), Choice::Auto(_)));
    for (text, looks) in [
        ("auto", true),
        ("auto:comm", true),
        ("auto:no-comm", false),
        ("refine", false),
        ("refine:comm", true),
        ("partition", true),
        ("diffusion:no-new-destination", true),
    ] {
        assert_eq!(text.parse::<Choice>().unwrap().uses_edges(), looks, "{text}");
    }
    let doubt = |text: &str, pes| text.parse::<Choice>().unwrap().doubt(pes);
    let said = "topology=4x4x4 joins 64 PEs, and there are 6: they are joined by topology=circulant";
    for of in ["diffusion:topology=4x4x4", "diffusion:comm,topology=4x4x4"] {
        assert_eq!((doubt(of, 6).as_deref(), doubt(of, 64)), (Some(said), None));
    }
    assert!(doubt("diffusion:topology=4294967295x4294967295x4294967295", 6).is_some());
    assert!(["auto", "diffusion", "diffusion:topology=hypercube"].iter().all(|of| doubt(of, 6).is_none()));
    let why = |text: &str| text.parse::<Choice>().unwrap_err().to_string();
    assert_eq!(
        why("gredy"),
        "there is no balancer \"gredy\": choose one of auto, none, weighted, greedy, greedy-refine, refine, exchange, \
         rotate, hierarchical, diffusion, gossip, bisection, partition"
    );
    assert_eq!(why("none:x"), "the balancer none has no options: leave out \":x\"");
    assert_eq!(
        why("refine:tol=1"),
        "the balancer refine has no option \"tol\": it has tolerance, comm, gain"
    );
    assert_eq!(
        why("refine:tolerance=2"),
        "option \"tolerance\" of the balancer refine is \"2\": it must be a number above 0 and up to 1"
    );
    assert!(why("gossip:fan=0").ends_with("it must be a whole number of 1 and more"));
    assert!(why("greedy:comm=yes").ends_with("it must be nothing, without a ="));
    assert!(why("gossip:fan=1,fan=2").contains("\"fan\" of the balancer gossip is given twice"));
    assert!(
        why("auto:no-comm,comm").contains("\"comm\" and \"no-comm\" of the balancer auto exclude each other")
    );
    assert!(why("diffusion:topology=4y4").contains("a torus such as 8 or 4x4x4"));
    assert!(why("auto:memory=12MB").contains("bytes, such as 64MiB"));
}
