//! Tests of what products need, and of shares that follow memory.

use super::*;
use crate::matrix::Dtype;
use chares::loadbalance::machines::{Machine, Memory};
use clap::{Args as _, Command, FromArgMatches as _};
use proptest::prelude::*;

const ALGORITHMS: [Algorithm; 4] =
    [Algorithm::Conventional, Algorithm::Cannon, Algorithm::Fox, Algorithm::FoxHeyOtto];
const MIB: u64 = 1 << 20;

fn product(algorithm: Algorithm, (m, k, n): (usize, usize, usize)) -> Matmul {
    let plain = Matmul::augment_args(Command::new("matmul")).get_matches_from(["matmul", "--q", "8"]);
    let plain = Matmul::from_arg_matches(&plain).unwrap();
    Matmul { algorithm, rows: Some(m), inner: Some(k), n: Some(n), dtype: Some(Dtype::F64), ..plain }
}

/// What a node of two PEs takes besides its blocks.
fn reserve_mib() -> u64 {
    crate::division::reserve(2) / MIB
}

/// Nodes of two PEs each on hosts of their own, with so many MiB.
fn hosts(mib: &[u64]) -> Machines {
    let machine = |name: String, pes, mib: u64| Machine {
        host: format!("host of {name}"),
        name,
        rates: vec![1.0; pes],
        memory: Memory { limit_bytes: None, taken_bytes: 10 * MIB, host_bytes: Some(mib * MIB) },
    };
    let nodes = (0..).zip(mib).map(|(at, &mib)| machine(format!("n{at}"), 2, mib)).collect();
    Machines { nodes, launcher: machine("launcher".into(), 0, 4096), ..Machines::default() }
}

fn refusal(product: &Matmul, machines: &Machines) -> String {
    divide(product, machines).unwrap_err().to_string()
}

#[test]
fn a_single_node_holds_factors_and_product_once() {
    for algorithm in ALGORITHMS {
        let needs = product(algorithm, (640, 1280, 960)).by(&hosts(&[1000]), &[1.0, 0.5]).unwrap().memory;
        let once = 8 * (640 * 1280 + 1280 * 960 + 640 * 960);
        assert!((once..once + once / 2).contains(&needs[0]), "{algorithm:?}: {needs:?} of {once}");
    }
}

#[test]
fn foxs_groups_have_many_rows_where_they_do_not_travel() {
    let grain = |machines: &Machines, side: usize| {
        let Owners::Panels(panels) =
            divide(&product(Algorithm::Fox, (side, side, side)), machines).unwrap().owners
        else {
            panic!("Fox's product is divided by panels")
        };
        panels.grain
    };
    assert_eq!([200, 2000, 4800].map(|side| grain(&hosts(&[1000]), side)), [32, 250, 500]);
    assert_eq!([200, 2000, 4800].map(|side| grain(&hosts(&[1000, 1000]), side)), [32, 42, 100]);
}

#[test]
fn what_has_room_is_divided_by_speed_alone() {
    let mut machines = hosts(&[1000, 1000]);
    machines.nodes[1].rates = vec![0.3, 0.2];
    for algorithm in ALGORITHMS {
        let Division { weights, memory, .. } =
            divide(&product(algorithm, (1000, 1000, 1000)), &machines).unwrap();
        assert_eq!(weights, [1.0, 1.0, 0.3, 0.2]);
        assert!(memory[0] > memory[1] && memory[1] > 0, "{algorithm:?}: {memory:?}");
    }
}

#[test]
fn a_small_node_gets_the_share_that_fits_and_the_others_take_over() {
    // 2000 x 2000 in f64 is 31 MiB; half of the product would be 50 MiB and more, where 40 MiB are left.
    for algorithm in ALGORITHMS {
        for is_limit in [true, false] {
            let mut machines = hosts(&[1000, reserve_mib() + 40]);
            if is_limit {
                let memory = &mut machines.nodes[1].memory;
                (memory.limit_bytes, memory.host_bytes) = (Some((10 + reserve_mib() + 40) * MIB), None);
            }
            let product = product(algorithm, (2000, 2000, 2000));
            let half = product.by(&machines, &[1.0; 4]).unwrap().memory;
            assert!(half[1] > 40 * MIB, "{algorithm:?}: {half:?}");
            let Division { weights, memory, .. } = divide(&product, &machines).unwrap();
            assert!((25 * MIB..=40 * MIB).contains(&memory[1]), "{algorithm:?}: {memory:?}");
            assert!(memory[0] > half[0] && weights[3] < 1.0, "{algorithm:?}: {memory:?} {weights:?}");
        }
    }
}

#[test]
fn nodes_of_a_host_and_the_launcher_share_its_memory() {
    let mut machines = hosts(&[300, 300]);
    let mut big = product(Algorithm::Cannon, (2000, 2000, 2000));
    divide(&big, &machines).unwrap();
    let all = std::iter::once(&mut machines.launcher).chain(&mut machines.nodes);
    all.for_each(|node| (node.host, node.memory.host_bytes) = ("here".into(), Some(200 * MIB)));
    divide(&big, &machines).unwrap();
    (big.a, big.out) = (Some("a.npy".into()), Some("c.npy".into()));
    let sentence = refusal(&big, &machines);
    assert!(sentence.contains("on host \"here\" (with \"n0\", \"n1\" and the launcher)"), "{sentence}");
    assert!(sentence.contains("which may take 200 MiB: take smaller"), "{sentence}");
}

#[test]
fn what_does_not_fit_is_refused_with_the_place_the_need_and_the_mend() {
    for algorithm in ALGORITHMS {
        let sentence =
            refusal(&product(algorithm, (1_000_000, 1_000_000, 1_000_000)), &hosts(&[8000, 16000]));
        let first = "a 1000000 x 1000000 times 1000000 x 1000000 product in f64 needs ";
        assert!(sentence.starts_with(first) && sentence.contains("TiB"), "{sentence}");
        assert!(sentence.contains("on host \"host of n0\" (with \"n0\")"), "{sentence}");
        assert!(
            sentence.ends_with("7.8 GiB: take smaller matrices, `--dtype f32` or more hosts"),
            "{sentence}"
        );
    }
    // All of B goes to every node: shifting rows helps nobody.
    let mut machines = hosts(&[8000, 8000]);
    machines.nodes[1].memory.limit_bytes = Some(50 * MIB);
    let sentence = refusal(&product(Algorithm::Conventional, (2000, 4000, 2000)), &machines);
    assert!(sentence.contains("on node \"n1\", which may take 50 MiB: "), "{sentence}");
    assert!(sentence.ends_with("or raise its `memory` in the nodes file"), "{sentence}");
}

#[test]
fn foxs_columns_may_move_as_far_as_there_is_memory() {
    let product = product(Algorithm::Fox, (2000, 2000, 2000));
    let spare = |machines: &Machines| {
        let Division { owners, memory, .. } = divide(&product, machines).unwrap();
        let Owners::Panels(panels) = owners else { panic!("{owners:?}") };
        (panels.room, memory)
    };
    // A node that its share fills takes nothing, nor gives much at once.
    let (columns, _) = spare(&hosts(&[1000, reserve_mib() + 40]));
    assert!(columns[0] == 2000 && columns[2] < 10 && columns[2] == columns[3], "{columns:?}");
    // Elsewhere everything that could be taken fits: a column of B and one of C, 32 kB, for either PE.
    let (columns, needs) = spare(&hosts(&[1000, reserve_mib() + 62]));
    let free = 62 * MIB - needs[1];
    assert!(columns[2] > 50 && 2 * columns[2] * 32_000 <= free / 2, "{columns:?}: {free}");
    // What nodes of one host could take, they cannot all take.
    let mut shared = hosts(&[400, 400]);
    shared.nodes.iter_mut().for_each(|node| node.host = "one".into());
    let (columns, needs) = spare(&shared);
    let free = (400 - 2 * reserve_mib()) * MIB - needs.iter().sum::<u64>();
    assert!(columns.iter().sum::<u64>() * 32_000 <= free, "{columns:?}: {free}");
    let mut roomy = hosts(&[1, 1]);
    roomy.nodes.iter_mut().for_each(|node| node.memory.host_bytes = None);
    assert_eq!(spare(&roomy).0, [2000; 4]);
}

#[test]
fn sides_that_no_machine_has_do_not_overflow() {
    let most = isize::MAX as usize;
    for algorithm in ALGORITHMS {
        let mut product = product(algorithm, (most, most, most));
        (product.verify, product.grain) = (true, Some(most));
        let sentence = refusal(&product, &hosts(&[8000, 16000]));
        assert!(sentence.contains("which may take"), "{sentence}");
    }
    divide(&product(Algorithm::Fox, (0, 0, 0)), &hosts(&[90])).unwrap();
}

proptest! {
    #[test]
    fn a_plan_fits_and_keeps_all_places_of_the_product(
        sides in (1usize..3000, 1usize..3000, 1usize..3000),
        mib in prop::collection::vec(30u64..200, 1..6),
        algorithm in prop::sample::select(ALGORITHMS.to_vec()),
        speed in 0.05f64..1.0,
    ) {
        let mut machines = hosts(&mib);
        machines.nodes.iter_mut().for_each(|node| node.rates[0] = speed);
        let product = product(algorithm, sides);
        if let Ok(Division { weights, memory, .. }) = divide(&product, &machines) {
            prop_assert!(weights.iter().all(|weight| *weight > 0.0 && *weight <= 1.0));
            prop_assert_eq!(&product.by(&machines, &weights).unwrap().memory, &memory);
            for (need, mib) in memory.iter().zip(&mib) {
                prop_assert!(need + 16 * MIB <= mib * MIB, "{:?} in {:?}", memory, mib);
            }
            let (m, k, n) = sides;
            let all = 8 * (m * k + k * n + m * n) as u64;
            prop_assert!(memory.iter().sum::<u64>() >= all, "{:?} of {}", memory, all);
        }
    }
}
