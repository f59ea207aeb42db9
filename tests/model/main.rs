//! The programming model over several processes: the same on any mix, and failures that say what and where.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod causes;

use harness::{Done, local_nodes, start};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_model-under-test");

/// Runs a case on nodes with so many PEs.
fn run(pes: &[u32], case: &str, options: &[&str]) -> Done {
    run_app(pes, &["model", "--case", case], options)
}

/// Runs an application of the program.
fn run_app(pes: &[u32], app: &[&str], options: &[&str]) -> Done {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), pes);
    let mut command = Command::new(PROGRAM);
    command.arg("run").args(app).args(["--nodes", "nodes.toml", "--quiet", "--speed", "equal"]).args(options);
    command.current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path()).env_remove("METACHARE_NODES");
    start(&mut command).done()
}

/// They see themselves whether each got everything once and in order.
#[test]
fn elements_move_in_every_step_over_links_of_both_kinds() {
    for transport in ["quic", "auto"] {
        let done = run_app(&[1, 2, 1], &["nomads", "--steps", "300"], &["--transport", transport]);
        assert!(done.code == 0 && done.stdout.starts_with("2400 moves, "), "{transport}: {done:?}");
    }
}

#[test]
fn everything_is_the_same_on_any_mix_moved_or_packed() {
    let outputs: Vec<String> =
        [(&[1][..], &[][..]), (&[3], &["--always-pup"]), (&[2, 1], &[]), (&[1; 5], &[])]
            .into_iter()
            .map(|(pes, options)| {
                let done = run(pes, "all", options);
                assert_eq!(done.code, 0, "{pes:?}: {done:?}");
                done.stdout
            })
            .collect();
    assert!(outputs.iter().all(|output| *output == outputs[0]), "{outputs:#?}");
    let lines: Vec<&str> = outputs[0].lines().collect();
    let is_in = |line: &str| assert!(lines.contains(&line), "{line} is not in {lines:#?}");
    let sum = (0..24u32).map(|n| number([n / 6, n % 6])).reduce(|a, b| a + b).unwrap();
    let of_section = [[0, 1], [0, 5], [1, 2], [2, 2], [3, 0], [3, 5]].map(number);
    is_in(&format!("ordered sum: {:x}", sum.to_bits()));
    is_in(&format!("section's sum: {:x}", of_section.into_iter().reduce(|a, b| a + b).unwrap().to_bits()));
    is_in(&format!("heard: {:?}", heard()));
    is_in(&format!("forks: Some(Sum({})), best: Some(Min(695))", 24 << 5));
    is_in(&format!("shared: {}", 24 * (5 + 12 + 1)));
    is_in("leaves: Sum(128)");
    let (all, some): (Vec<u32>, _) = ((0..24).collect(), [5, 8, 18, 23]);
    let collected = |of: &dyn Fn(&[u32], u32) -> Vec<u32>| {
        let of_each =
            |to| [of(&all, to), if some.contains(&to) { of(&some, to) } else { Vec::new() }].concat();
        format!("collected: {:?}", all.iter().map(|&to| of_each(to)).collect::<Vec<_>>())
    };
    is_in(&collected(&|members, _| digest(members)));
    is_in(&collected(&|members, to| members.iter().map(|from| 1000 * from + to).collect()));
    let fillings = [0, 60, 500, 4000, 5000, 50_000];
    let of_cell = |n| fillings.map(|filling| filling + 10 * (n / 6) + n % 6);
    is_in(&format!("scattered: {:?}", (0..24u32).map(of_cell).collect::<Vec<_>>()));
    is_in("wardens in the wrong place: 0");
    let mut by_priority = vec![Vec::new(); 24];
    by_priority[1] = vec![2, 5, 1, 4, 0, 3, 6];
    is_in(&format!("heard: {by_priority:?}"));
}

/// Links hold little of a message at a time: who is busy while it comes needs room for it, and for little more.
#[test]
fn a_long_message_to_a_busy_pe_takes_little_more_memory_than_it_is_long() {
    for transport in ["quic", "auto"] {
        let done = run_app(&[1, 1], &["long"], &["--transport", transport]);
        assert_eq!(done.code, 0, "{transport}: {done:?}");
        let taken = done.stdout.split(' ').next().and_then(|bytes| bytes.parse::<u64>().ok());
        let most = (100 + 16) << 20;
        assert!(taken.is_some_and(|bytes| (100 << 20..=most).contains(&bytes)), "{transport}: {done:?}");
    }
}

/// Each with what a program computes that knows nothing of chares.
#[test]
fn examples_give_what_they_should_on_any_mix() {
    let cells = (0..12).flat_map(|line| [f64::from(line); 50]).collect::<Vec<f64>>();
    let heat = (0..200).fold(cells, |old, _| {
        let around = |at: usize| old[at - 1] + old[at + 1] + (old[(at + 50) % 600] + old[(at + 550) % 600]);
        let is_end = |at: usize| at.is_multiple_of(50) || at % 50 == 49;
        (0..600)
            .map(|at| if is_end(at) { old[at] } else { old[at] + 0.2 * (around(at) - 4.0 * old[at]) })
            .collect()
    });
    let lines = heat.chunks(50).map(|line| line.iter().sum::<f64>()).reduce(|all, line| all + line).unwrap();
    let mut bins = [0; 10];
    (0..12_000).for_each(|n: usize| bins[n * n % 9973 * 10 / 9973] += 1);
    for (name, expected) in [
        ("heat", format!("heat after 200 steps: {lines}")),
        ("primes", "primes below 100000: 9592".into()),
        ("histogram", format!("{bins:?}")),
        ("queens", "ways to place 10 queens: 724".into()),
    ] {
        for (pes, options) in
            [(&[1][..], &[][..]), (&[2, 1], &["--always-pup"]), (&[1; 3], &["--wander", "7"])]
        {
            let done = run_app(pes, &[name], options);
            assert!(
                done.code == 0 && done.stdout.lines().any(|line| line == expected),
                "{expected}: {done:?}"
            );
        }
    }
}

/// As in the program.
fn number([i, j]: [u32; 2]) -> f64 {
    1.0 / f64::from(1 + 7 * i + 3 * j) + f64::from(i) * 1e9
}

/// As in the program, of the numbers of these cells.
fn digest(cells: &[u32]) -> Vec<u32> {
    let bits = cells.iter().map(|n| number([n / 6, n % 6]).to_bits());
    let digest = bits.fold(0, |digest: u64, bits| digest.wrapping_mul(31) ^ bits);
    vec![(digest >> 32) as u32, (digest & 0xffff_ffff) as u32]
}

/// What the cells of the program hear, in order.
fn heard() -> Vec<Vec<u32>> {
    let notes = |count: u32, j| (0..count).filter(|n| n % 6 == j).collect::<Vec<u32>>();
    let of = |[i, j]: [u32; 2]| match [i, j] {
        [1, 1] => vec![0, 0, 1, 1, 2, 2, 3, 3, 4, 4],
        [2, j] => notes(12, j),
        [3, j] => [notes(40, j), (40..80).filter(|n| n % 6 == j).collect()].concat(),
        _ => Vec::new(),
    };
    (0..24).map(|n| of([n / 6, n % 6])).collect()
}

#[test]
fn shares_by_a_speed_that_nobody_measured_are_told() {
    let folder = tempfile::tempdir().unwrap();
    local_nodes(folder.path(), &[1, 1]);
    let table = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stencil2d"));
        command.args(["run", "--nodes", "nodes.toml", "--cells", "16", "--steps", "2"]).args(options);
        command.current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path()).env_remove("METACHARE_NODES");
        let done = start(&mut command).done();
        assert_eq!(done.code, 0, "{done:?}");
        done.stdout
    };
    let told = "this program has no kernel to measure speeds with: shares are equal";
    assert!(table(&[]).contains(told));
    assert!(!table(&["--speed", "equal"]).contains(told));
}

#[test]
fn failures_name_node_chare_type_element_and_entry_method() {
    let on_b = "node \"b\": Cell";
    let panicked =
        format!("{on_b}: Break of element [2, 3] on PE 1 of model failed: panicked: the cells ran out");
    for case in ["panic", "panic-in-broadcast", "panic-in-section"] {
        let done = run(&[1, 1], case, &[]);
        assert!(done.code == 70 && done.last_error().ends_with(&panicked), "{case}: {panicked}: {done:?}");
    }
    let cases = [
        (
            "constructor",
            70,
            format!("{on_b}: (constructor) of element [2, 3] on PE 1 of model failed: panicked"),
        ),
        ("fail", 70, "node \"b\": the plate is too hot".into()),
        (
            "never-made",
            70,
            format!("{on_b}: Step of element [2, 3] waits on PE 1 for an element that nobody"),
        ),
        ("made-twice", 70, "node \"b\": element [2, 3] of an array of Cell was made twice".into()),
        ("driver-error", 65, "the plate has no cells".into()),
        ("driver-wrong", 1, "the sum is off by one".into()),
        ("waits-for-nothing", 70, "the driver waits for a result, but nothing is left anywhere".into()),
    ];
    for (case, code, sentence) in cases {
        let done = run(&[1, 1], case, &[]);
        assert!(
            done.code == code && done.last_error().contains(&sentence),
            "{case}: {code}, {sentence}: {done:?}"
        );
    }
}

#[test]
fn a_driver_is_told_which_node_was_lost() {
    let done = run(&[1, 1, 1], "lost-node", &[]);
    let sentence = "node \"c\" was killed by signal 9";
    assert!(done.code == 69 && done.last_error().contains(sentence), "{done:?}");
    assert!(done.stdout.starts_with(&format!("the driver was told of c: {sentence}")), "{done:?}");
}
