//! Two runs put together, as the adaptive thesis does it: values are taken out of a checkpoint, changed or exchanged, and the run
//! goes on with them.

use super::metachare;
use harness::local_nodes;
use serde_json::Value;
use std::fs;
use std::path::Path;

const BLOCKS: usize = 3;
const N: u32 = 120;
/// By so much right-hand sides differ, in part: after more the method would be taken for one that runs away from its solution.
const MORE: f64 = 1e-4;

/// What an `.npy` file of 64-bit floats holds.
fn numbers(path: &Path) -> Vec<f64> {
    let bytes = fs::read(path).unwrap();
    let header = 10 + usize::from(bytes[8]) + 256 * usize::from(bytes[9]);
    bytes[header..].chunks_exact(8).map(|eight| f64::from_le_bytes(eight.try_into().unwrap())).collect()
}

/// Solves a system with so many right-hand sides; a folder with a single checkpoint, of a moment in the midst of the iterations, and
/// the solution. Nothing if there was no such checkpoint.
fn solved(folder: &Path, name: &str, (columns, b): (u32, f64)) -> Option<(String, Vec<f64>)> {
    let many = format!("{name}-{columns}");
    let file = |name: &str, columns: u32, value: &dyn Fn(u32, u32) -> f64| {
        let places = (0..columns).flat_map(|column| (0..N).map(move |row| (row, column)));
        let lines: String = places.map(|(row, column)| format!("{}\n", value(row, column))).collect();
        let text = format!("%%MatrixMarket matrix array real general\n{N} {columns}\n{lines}");
        fs::write(folder.join(name), text).unwrap();
    };
    // Each iteration takes three hundredths from what is wrong.
    file("a.mtx", N, &|row, column| if row == column { 1.031 } else { -1.0 / f64::from(N - 1) });
    file("b.mtx", columns, &|row, column| f64::from(column % 5 + 1) * (1.0 + b * f64::from(row % 7)));
    let run = "run jacobi --tolerance 3e-7 --a a.mtx --b b.mtx --blocks-per-pe 1 --out x.npy";
    let how =
        format!("--speed equal --quiet --checkpoint {many} --checkpoint-every 0.0005 --checkpoint-keep 99");
    metachare(folder, &format!("{run} {how}"));
    let list: Value =
        serde_json::from_str(&metachare(folder, &format!("checkpoint ls {many} --json"))).unwrap();
    let is_midway = |state: &Value| state["work"]["ended"].is_null() && state["work"]["share"].is_object();
    let number = list["generations"].as_array()?.iter().map(|one| &one["generation"]).find(|number| {
        let shown = format!("checkpoint show {many} --generation {number} --values --json");
        let shown = metachare(folder, &shown);
        let records = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        records.filter(|record| is_midway(&record["value"]["state"])).count() == BLOCKS
    })?;
    let one = format!("{many}-midway");
    metachare(folder, &format!("checkpoint convert {many} {one} --generation {number}"));
    Some((one, numbers(&folder.join("x.npy"))))
}

#[test]
fn a_run_goes_on_with_what_another_one_gave_and_with_what_was_changed_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    local_nodes(folder, &[2, 1]);
    // It lasts longer where the disk is slow.
    let both = [10, 100, 1000]
        .into_iter()
        .find_map(|many| Some((solved(folder, "a", (many, 0.0))?, solved(folder, "b", (many, MORE))?)));
    let ((a, of_a), (b, of_b)) = both.expect("checkpoints in the midst of the iterations");
    let is_near = |x: &[f64], y: &[f64]| {
        let largest = y.iter().fold(0.0f64, |most, value| most.max(value.abs()));
        x.len() == y.len() && x.iter().zip(y).all(|(x, y)| (x - y).abs() < MORE / 20.0 * largest)
    };
    assert!(!is_near(&of_a, &of_b), "two systems that differ in their right-hand sides alone");
    let gone_on = |name: &str| {
        metachare(folder, &format!("restart {name} --checkpoint again-{name} --speed equal --quiet"));
        numbers(&folder.join("x.npy"))
    };
    // Jacobi's method finds the solution from wherever it is: with the right-hand side of B that of B.
    let path = |block| format!("Solver<f64>[{block}].work.share.b");
    let taken: Vec<String> = (0..BLOCKS).map(|block| format!("--take {}", path(block))).collect();
    metachare(folder, &format!("checkpoint merge {a} {b} merged --prefer a {}", taken.join(" ")));
    assert!(is_near(&gone_on("merged"), &of_b));
    // And with a little more on the right a little more of the solution.
    for block in 0..BLOCKS {
        metachare(folder, &format!("checkpoint extract {a} {} --to b.npy", path(block)));
        let more: Vec<f64> =
            numbers(&folder.join("b.npy")).iter().map(|value| (1.0 + MORE) * value).collect();
        fs::write(folder.join("more.json"), serde_json::to_string(&more).unwrap()).unwrap();
        metachare(folder, &format!("checkpoint set {a} {} --from more.json", path(block)));
    }
    let more: Vec<f64> = of_a.iter().map(|value| (1.0 + MORE) * value).collect();
    assert!(is_near(&gone_on(&a), &more));
}
