//! Tests of what products need, and of shares that follow memory.

use super::*;
use crate::memory::plan;
use proptest::prelude::*;

const ALGORITHMS: [Algorithm; 4] =
    [Algorithm::Conventional, Algorithm::Cannon, Algorithm::Fox, Algorithm::FoxHeyOtto];
const MIB: u64 = 1 << 20;

fn product(algorithm: Algorithm, sides: (usize, usize, usize)) -> Product {
    let (is_given, is_verified, is_written) = (false, false, false);
    Product { sides, dtype: Dtype::F64, algorithm, q: 8, grain: None, is_given, is_verified, is_written }
}

/// Nodes of two PEs each on hosts of their own, with so many MiB.
fn hosts(mib: &[u64]) -> (NodeShape, Vec<NodeShape>) {
    let shape = |name: String, pes, mib: u64| NodeShape {
        host: format!("host of {name}"),
        name,
        pes,
        memory_limit_bytes: None,
        memory_bytes: 10 * MIB,
        host_memory_bytes: Some(mib * MIB),
    };
    let nodes = (0u32..).zip(mib).map(|(at, &mib)| shape(format!("n{at}"), 2 * at..2 * at + 2, mib));
    (shape("launcher".into(), 0..0, 4096), nodes.collect())
}

fn refusal(product: &Product, (launcher, nodes): &(NodeShape, Vec<NodeShape>)) -> String {
    let speeds = vec![1.0; 2 * nodes.len()];
    plan(product, launcher, nodes, &speeds).unwrap_err().to_string()
}

#[test]
fn a_single_node_holds_factors_and_product_once() {
    let (_, nodes) = hosts(&[1000]);
    for algorithm in ALGORITHMS {
        let needs = product(algorithm, (640, 1280, 960)).of_nodes(&nodes, &[1.0, 0.5]).unwrap();
        let once = 8 * (640 * 1280 + 1280 * 960 + 640 * 960);
        // Fox's rows travel even there.
        assert!((once..once + once / 2).contains(&needs[0]), "{algorithm:?}: {needs:?} of {once}");
    }
}

#[test]
fn what_has_room_is_divided_by_speed_alone() {
    let (launcher, nodes) = hosts(&[1000, 1000]);
    let speeds = [1.0, 1.0, 0.3, 0.2];
    for algorithm in ALGORITHMS {
        let plan = plan(&product(algorithm, (1000, 1000, 1000)), &launcher, &nodes, &speeds).unwrap();
        assert_eq!(plan.speeds, speeds);
        assert!(plan.needs[0] > plan.needs[1] && plan.needs[1] > 0, "{algorithm:?}: {:?}", plan.needs);
    }
}

#[test]
fn a_small_node_gets_the_share_that_fits_and_the_others_take_over() {
    // 2000 x 2000 in f64 is 31 MiB; half of the product would be 50 MiB and more, where 40 MiB are left.
    for algorithm in ALGORITHMS {
        for is_limit in [true, false] {
            let (launcher, mut nodes) = hosts(&[1000, 68]);
            if is_limit {
                nodes[1].host_memory_bytes = None;
                nodes[1].memory_limit_bytes = Some(78 * MIB);
            }
            let product = product(algorithm, (2000, 2000, 2000));
            let half = product.of_nodes(&nodes, &[1.0; 4]).unwrap();
            assert!(half[1] > 40 * MIB, "{algorithm:?}: {half:?}");
            let plan = plan(&product, &launcher, &nodes, &[1.0; 4]).unwrap();
            assert!((25 * MIB..=40 * MIB).contains(&plan.needs[1]), "{algorithm:?}: {:?}", plan.needs);
            assert!(plan.needs[0] > half[0] && plan.speeds[3] < 1.0, "{algorithm:?}: {plan:?}");
        }
    }
}

#[test]
fn nodes_of_a_host_and_the_launcher_share_its_memory() {
    let (mut launcher, mut nodes) = hosts(&[300, 300]);
    let mut big = product(Algorithm::Cannon, (2000, 2000, 2000));
    plan(&big, &launcher, &nodes, &[1.0; 4]).unwrap();
    let all = std::iter::once(&mut launcher).chain(&mut nodes);
    all.for_each(|node| (node.host, node.host_memory_bytes) = ("here".into(), Some(200 * MIB)));
    plan(&big, &launcher, &nodes, &[1.0; 4]).unwrap();
    (big.is_given, big.is_written) = (true, true);
    let sentence = refusal(&big, &(launcher, nodes));
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
    let mut nodes = hosts(&[8000, 8000]);
    nodes.1[1].memory_limit_bytes = Some(50 * MIB);
    let sentence = refusal(&product(Algorithm::Conventional, (2000, 4000, 2000)), &nodes);
    assert!(sentence.contains("on node \"n1\", which may take 50 MiB: "), "{sentence}");
    assert!(sentence.ends_with("or raise its `memory` in the nodes file"), "{sentence}");
}

#[test]
fn foxs_columns_may_move_as_far_as_there_is_memory() {
    let product = product(Algorithm::Fox, (2000, 2000, 2000));
    let spare = |(launcher, nodes): &(NodeShape, Vec<NodeShape>)| {
        let plan = plan(&product, launcher, nodes, &[1.0; 4]).unwrap();
        (product.spare_columns(launcher, nodes, &plan.speeds).unwrap(), plan.needs)
    };
    // A node that its share fills takes nothing, nor gives much at once.
    let (columns, _) = spare(&hosts(&[1000, 68]));
    assert!(columns[0] == 2000 && columns[2] < 10 && columns[2] == columns[3], "{columns:?}");
    // Elsewhere everything that could be taken fits: a column of B and one of C, 32 kB, for either PE.
    let roomy = hosts(&[1000, 90]);
    let (columns, needs) = spare(&roomy);
    let free = 74 * MIB - needs[1];
    assert!(columns[2] > 50 && 2 * columns[2] * 32_000 <= free / 2, "{columns:?}: {free}");
    // What nodes of one host could take, they cannot all take.
    let mut shared = hosts(&[400, 400]);
    shared.1.iter_mut().for_each(|node| node.host = "one".into());
    let (columns, needs) = spare(&shared);
    assert!(columns.iter().sum::<u64>() * 32_000 <= 368 * MIB - needs.iter().sum::<u64>(), "{columns:?}");
    let (launcher, mut nodes) = hosts(&[1, 1]);
    nodes.iter_mut().for_each(|node| node.host_memory_bytes = None);
    assert_eq!(product.spare_columns(&launcher, &nodes, &[1.0; 4]).unwrap(), [2000; 4]);
}

#[test]
fn sides_that_no_machine_has_do_not_overflow() {
    let most = isize::MAX as usize;
    for algorithm in ALGORITHMS {
        let mut product = product(algorithm, (most, most, most));
        (product.is_verified, product.grain) = (true, Some(most));
        let sentence = refusal(&product, &hosts(&[8000, 16000]));
        assert!(sentence.contains("which may take"), "{sentence}");
    }
    assert!(plan(&product(Algorithm::Fox, (0, 0, 0)), &hosts(&[]).0, &hosts(&[90]).1, &[1.0; 2]).is_ok());
}

proptest! {
    #[test]
    fn a_plan_fits_and_keeps_all_places_of_the_product(
        sides in (1usize..3000, 1usize..3000, 1usize..3000),
        mib in prop::collection::vec(30u64..200, 1..6),
        algorithm in prop::sample::select(ALGORITHMS.to_vec()),
        speed in 0.05f64..1.0,
    ) {
        let (launcher, nodes) = hosts(&mib);
        let speeds: Vec<f64> = (0..2 * nodes.len()).map(|pe| if pe % 3 == 0 { speed } else { 1.0 }).collect();
        let product = product(algorithm, sides);
        if let Ok(plan) = plan(&product, &launcher, &nodes, &speeds) {
            prop_assert!(plan.speeds.iter().all(|speed| *speed > 0.0 && *speed <= 1.0));
            prop_assert_eq!(&product.of_nodes(&nodes, &plan.speeds).unwrap(), &plan.needs);
            for (need, mib) in plan.needs.iter().zip(&mib) {
                prop_assert!(need + 16 * MIB <= mib * MIB, "{:?} in {:?}", plan.needs, mib);
            }
            let (m, k, n) = sides;
            let all = 8 * (m * k + k * n + m * n) as u64;
            prop_assert!(plan.needs.iter().sum::<u64>() >= all, "{:?} of {}", plan.needs, all);
        }
    }
}
