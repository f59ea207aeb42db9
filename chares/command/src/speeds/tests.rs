//! A cache of any content is used only where it is sound, and never in the way.

use super::*;
use runtime::proto::sim::Random;

const NOW: u64 = 1_800_000_000;

fn kernel() -> AppKernel {
    AppKernel { number: Some(0), arguments: b"n=100".to_vec(), key: "f64".into(), work: 0.0 }
}

fn info() -> RunInfo {
    let node = |name: &str, first_pe, pe_count| NodeInfo {
        name: name.into(),
        host: "here".into(),
        first_pe,
        pe_count,
        ..NodeInfo::default()
    };
    RunInfo { nodes: vec![node("a", 0, 2), node("b", 2, 1)], ..RunInfo::default() }
}

fn cache_of(query: &SpeedQuery<'_>, change: impl Fn(&mut Kept)) -> Cache {
    let mut cache = Cache::default();
    for (node, rates) in query.info.nodes.iter().zip([vec![3.0, 4.0], vec![5.0]]) {
        let mut kept = Kept { rates, unix_s: NOW - 60 };
        change(&mut kept);
        cache.speeds.insert(key(query, node), kept);
    }
    cache
}

#[test]
fn only_complete_recent_and_possible_rates_are_recalled() {
    let (info, config, kernel) = (info(), ClusterConfig::embedded(3), kernel());
    let query = SpeedQuery::new(&info, &config, &kernel);
    let recalled = |change: fn(&mut Kept)| recall_from(&cache_of(&query, change), &query, NOW);
    assert_eq!(recalled(|_| {}), Some(vec![3.0, 4.0, 5.0]));
    assert_eq!(recalled(|kept| kept.rates.push(1.0)), None);
    assert_eq!(recalled(|kept| kept.rates.clear()), None);
    assert_eq!(recalled(|kept| kept.rates[0] = f64::NAN), None);
    assert_eq!(recalled(|kept| kept.rates[0] = -1.0), None);
    assert_eq!(recalled(|kept| kept.rates[0] = 0.0), None);
    assert_eq!(recalled(|kept| kept.unix_s = NOW - KEPT.as_secs() - 1), None);
    assert_eq!(recalled(|kept| kept.unix_s = NOW + 1), None, "it is of the future");
    assert_eq!(recall_from(&Cache::default(), &query, NOW), None);
}

#[test]
fn files_of_any_content_are_read_or_refused_with_a_reason() {
    let (info, config, kernel) = (info(), ClusterConfig::embedded(3), kernel());
    let query = SpeedQuery::new(&info, &config, &kernel);
    let good = serde_json::to_vec_pretty(&cache_of(&query, |_| {})).unwrap();
    let (mut random, mut recalled) = (Random::new(41), 0);
    for number in 0..10_000 {
        let bytes = if number % 8 == 0 { random.bytes(400) } else { random.mutated(&good) };
        match parse(&bytes[..]) {
            Ok(cache) => {
                if let Some(rates) = recall_from(&cache, &query, NOW) {
                    recalled += 1;
                    assert!(rates.len() == 3 && rates.iter().all(|rate| rate.is_finite() && *rate > 0.0));
                }
            }
            Err(reason) => assert!(!reason.is_empty()),
        }
    }
    assert!(recalled > 500, "{recalled} recalled");
}

#[test]
fn a_file_is_read_and_what_is_no_file_of_ours_is_refused() {
    let (info, config, kernel) = (info(), ClusterConfig::embedded(3), kernel());
    let query = SpeedQuery::new(&info, &config, &kernel);
    let good = serde_json::to_vec_pretty(&cache_of(&query, |_| {})).unwrap();
    let folder = tempfile::tempdir().unwrap();
    assert!(read(folder.path()).is_err(), "a folder");
    assert!(read(&folder.path().join("none")).unwrap().speeds.is_empty(), "no file is an empty cache");
    let path = folder.path().join("long");
    std::fs::write(&path, vec![b' '; usize::try_from(CACHE_MAX_BYTES).unwrap() + 1]).unwrap();
    assert!(read(&path).unwrap_err().contains("more than"));
    std::fs::write(&path, &good).unwrap();
    assert_eq!(recall_from(&read(&path).unwrap(), &query, NOW), Some(vec![3.0, 4.0, 5.0]));
    let deep = format!("{{\"other\":{}", "[".repeat(100_000));
    assert!(parse(deep.as_bytes()).is_err(), "deep nesting must not use up the stack");
}

#[test]
fn long_runs_are_measured_longer_but_not_for_ever() {
    for nothing in [0.0, 1.0, 35.0, f64::NAN] {
        assert_eq!(longer_budget(nothing), None, "{nothing}");
    }
    assert_eq!(longer_budget(60.0), Some(Duration::from_secs(3)));
    for long in [1e9, f64::INFINITY] {
        assert_eq!(longer_budget(long), Some(BUDGET_MAX));
    }
}
