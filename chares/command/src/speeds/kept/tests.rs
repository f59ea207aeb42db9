//! A cache of any content is used only where it is sound, and never in the way.

use super::*;
use crate::app::AppKernel;
use runtime::config::ClusterConfig;
use runtime::monitor::wire::RunInfo;
use runtime::proto::sim::Random;

const NOW: u64 = 1_800_000_000;

fn kernel() -> AppKernel {
    AppKernel { number: Some(0), arguments: b"n=100".to_vec(), key: "f64".into(), unit: "FLOP", work: 0.0 }
}

fn info() -> RunInfo {
    let node = |name: &str, first_pe, pe_count| NodeInfo {
        name: name.into(),
        host: "here".into(),
        first_pe,
        pe_count,
        node: u16::try_from(first_pe).unwrap() + 1,
        ..NodeInfo::default()
    };
    RunInfo { nodes: vec![node("a", 0, 2), node("b", 2, 1)], ..RunInfo::default() }
}

fn cache_of(query: &SpeedQuery<'_>, change: impl Fn(&mut Kept)) -> Cache {
    let mut cache = Cache::default();
    for (node, rates) in query.info.nodes.iter().zip([vec![3.0, 4.0], vec![5.0]]) {
        let mut kept = Kept { rates, measured_ms: 100, unix_s: NOW - 60 };
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
    let all = Earlier {
        rates: vec![3.0, 4.0, 5.0],
        measured: Duration::from_millis(100),
        age: Duration::from_secs(60),
    };
    assert_eq!(recalled(|_| {}), Some(all));
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
                if let Some(Earlier { rates, .. }) = recall_from(&cache, &query, NOW) {
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
    std::fs::write(&path, vec![b' '; usize::try_from(MAX_BYTES).unwrap() + 1]).unwrap();
    assert!(read(&path).unwrap_err().contains("more than"));
    std::fs::write(&path, &good).unwrap();
    let recalled = |path: &Path| recall_from(&read(path).unwrap(), &query, NOW).map(|all| all.rates);
    assert_eq!(recalled(&path), Some(vec![3.0, 4.0, 5.0]));
    let deep = format!("{{\"other\":{}", "[".repeat(100_000));
    assert!(parse(deep.as_bytes()).is_err(), "deep nesting must not use up the stack");
}

#[test]
fn what_others_may_write_is_neither_read_nor_written_to_and_what_is_written_is_the_users_alone() {
    let (info, config, kernel) = (info(), ClusterConfig::embedded(3), kernel());
    let query = SpeedQuery::new(&info, &config, &kernel);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metachare/speeds.json");
    let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (cache, own) = (cache_of(&query, |_| {}), path.parent().unwrap());
    write(&path, &cache).unwrap();
    assert_eq!((mode(own), mode(&path)), (0o700, 0o600));
    assert!(read(&path).unwrap().speeds.len() == 2);
    set(&path, 0o622);
    assert!(read(&path).unwrap_err().contains("another user"));
    write(&path, &cache).unwrap();
    assert_eq!((mode(&path), read(&path).unwrap().speeds.len()), (0o600, 2), "it is written anew");
    set(own, 0o777);
    assert!(read(&path).unwrap_err().contains("another user"));
    assert!(write(&path, &cache).unwrap_err().to_string().contains("another user"));
}

#[test]
fn speeds_are_those_of_the_cores_that_may_be_used_and_of_the_nodes_beside() {
    let (config, kernel) = (ClusterConfig::embedded(3), kernel());
    let key_of_b = |change: fn(&mut RunInfo)| {
        let mut info = info();
        change(&mut info);
        let query = SpeedQuery::new(&info, &config, &kernel);
        key(&query, info.nodes.iter().find(|node| node.name == "b").unwrap())
    };
    let usual = key_of_b(|_| {});
    assert_eq!(usual, key_of_b(|info| info.run_id = "another".into()));
    let others: [fn(&mut RunInfo); 5] = [
        |info| drop(info.nodes.remove(0)),
        |info| info.nodes[0].pe_count = 3,
        |info| info.nodes[1].cores = 1,
        |info| info.nodes[1].allowed_cores = "0,2".into(),
        |info| info.nodes[1].cpu = "another".into(),
    ];
    for other in others {
        assert_ne!(usual, key_of_b(other));
    }
    assert_eq!(
        usual,
        key_of_b(|info| (info.nodes[0].pe_count, info.nodes[0].cores) = (2, 7)),
        "another's cores"
    );
}
