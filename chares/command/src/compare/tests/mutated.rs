//! Reports in which something was changed: a sentence, or a comparison without nonsense, and never a panic.

use super::{Comparison, Run, Value, json, two_mixes};
use runtime::failure::Kind;

/// Puts something else in the place of a value somewhere in a report, or takes it away.
fn mutate(value: &mut Value, below: &mut impl FnMut(usize) -> usize) {
    let inner: Vec<&mut Value> = match value {
        Value::Object(map) if below(12) == 0 => {
            let at = below(map.len().max(1));
            let key = map.keys().nth(at).cloned();
            return key.into_iter().for_each(|key| drop(map.remove(&key)));
        }
        Value::Object(map) => map.values_mut().collect(),
        Value::Array(list) if below(6) == 0 => return list.extend_from_within(..),
        Value::Array(list) => list.iter_mut().collect(),
        _ => Vec::new(),
    };
    let count = inner.len();
    if count > 0 {
        return inner.into_iter().nth(below(count)).into_iter().for_each(|value| mutate(value, below));
    }
    let numbers = [0.0, -0.0, -1.0, 1e-308, 5e-324, 1e308, 0.5, 3.0, 1e15, 1.7e308];
    let factor = numbers[below(numbers.len())];
    *value = match (value.as_f64(), below(32)) {
        (Some(number), 7..) => json!(number * factor),
        (None, 7..) => return,
        (_, 0) => Value::Null,
        (_, 1) => json!("a\u{1b}]0;b\u{7}|c\n\"d\","),
        (_, 2) => json!([]),
        (_, 3) => json!({"schema": "metachare-run/1"}),
        (_, 4) => json!(u64::MAX),
        (_, 5) => json!("x".repeat(5000)),
        (_, _) => json!(factor),
    };
}

#[test]
fn mutated_reports_give_a_sentence_or_a_comparison_without_nonsense() {
    let mut random = runtime::proto::sim::Random::new(1995);
    let mut below = |count: usize| (random.bits() % count as u64) as usize;
    let mut good = two_mixes();
    for (at, report) in good.iter_mut().enumerate() {
        (report["run_id"], report["started_unix_ms"]) = (json!(format!("matmul-{at}")), json!(at));
    }
    let (mut compared, mut refused) = (0, 0);
    for case in 0..10_000 {
        let mut reports = good.clone();
        for _ in 0..=below(2) {
            let at = below(reports.len());
            mutate(&mut reports[at], &mut below);
        }
        let mut files: Vec<Vec<u8>> = reports.iter().map(|report| report.to_string().into_bytes()).collect();
        if case % 4 == 0 {
            let (file, byte) = (below(files.len()), u8::try_from(below(256)).unwrap());
            let at = below(files[file].len());
            files[file][at] = byte;
        }
        let runs: Result<Vec<Run>, _> = files.iter().map(|file| Run::parse(file, "a.json")).collect();
        match runs.and_then(|runs| Comparison::of(&Run::once_each(runs).0, &["out"])) {
            Ok(comparison) => {
                compared += 1;
                let texts = [
                    comparison.text(),
                    comparison.markdown(),
                    comparison.csv(),
                    comparison.figure().to_svg(),
                ];
                for text in &texts {
                    assert!(!text.contains("NaN") && !text.contains('\u{1b}'), "case {case}: {text}");
                    assert!(text.len() < 1 << 20, "case {case}");
                }
                assert_eq!(texts[2].lines().count(), comparison.mixes.len() + 1, "case {case}: {}", texts[2]);
                assert!(serde_json::to_string(&comparison).is_ok(), "case {case}");
            }
            Err(ended) => {
                refused += 1;
                let is_one = !ended.sentence.is_empty() && !ended.sentence.contains('\n');
                assert!(ended.kind == Kind::Input && is_one, "case {case}: {ended:?}");
            }
        }
    }
    assert!(compared > 1000 && refused > 1000, "{compared} compared, {refused} refused");
}
