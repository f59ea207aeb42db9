//! Tables of known figures, and a run inside one process.

use super::arguments::Netbench;
use super::fit::Fit;
use super::results::{Collective, CollectiveSize, Kind, Link, LinkSize, Node, Operation, Results, Stream};
use super::{measure, plots, station, table};
use crate::statistics::Summary;
use chares::{InProcess, Program, RunError};

fn summary(median: f64) -> Summary {
    let [p5, p95, p99, mean] = [0.9, 1.5, 2.0, 1.1].map(|part| part * median);
    Summary { samples: 100, mean, p5, p50: median, p95, p99 }
}

fn link(kind: Kind, [from, to]: [&str; 2], latency_s: f64, bytes_per_s: Option<f64>) -> Link {
    let size = |bytes: u64| {
        let time = latency_s + bytes_per_s.map_or(0.0, |rate| bytes as f64 / rate);
        let stream = Stream {
            messages: 9,
            messages_per_s: summary(4.0 / time),
            bytes_per_s: 4.0 * bytes as f64 / time,
        };
        LinkSize { bytes, latency_s: summary(time), stream }
    };
    let fit = Fit { latency_s, bytes_per_s, fit_error: 0.07 };
    let sizes = [1, 100, 1 << 10, 4 << 20].map(size).into();
    let stream_bytes_per_s = bytes_per_s.map(|rate| rate / 2.0);
    Link { kind, from: from.into(), to: to.into(), fit, stream_bytes_per_s, trips_per_sample: 1, sizes }
}

fn results() -> Results {
    let collective = |operation| {
        let size = |bytes| CollectiveSize { bytes, all_s: summary(30e-6), one_pe_s: summary(1e-6) };
        Collective { operation, pes: 3, sizes: [1, 64 << 10].map(size).into() }
    };
    Results {
        schema: "metachare-netbench/1",
        version: "1",
        commit: "unknown",
        started_unix_ms: 0,
        command_line: Vec::new(),
        repeats: 100,
        warm_up_s: 0.0,
        nodes: vec![Node { name: "fast".into(), host: "localhost".into(), pes: 2 }],
        links: vec![
            link(Kind::OnePe, ["fast", "fast"], 50e-9, None),
            link(Kind::TwoNodes, ["fast", "old"], 20e-6, Some(1e9)),
        ],
        collectives: Operation::ALL.map(collective).into(),
    }
}

#[test]
fn tables_have_the_reports_rows_and_its_figures_beside_them() {
    let printed = table::printed(&results());
    let expected = include_str!("tests/tables.txt");
    assert_eq!(printed, expected, "{printed}");
}

#[test]
fn what_is_planned_with_is_in_the_report() {
    let figures = results().figures().unwrap();
    let expected = serde_json::json!([
        { "kind": "one-pe", "from": "fast", "to": "fast", "latency_s": 50e-9, "bytes_per_s": null,
          "fit_error": 0.07, "stream_bytes_per_s": null },
        { "kind": "two-nodes", "from": "fast", "to": "old", "latency_s": 20e-6, "bytes_per_s": 1e9,
          "fit_error": 0.07, "stream_bytes_per_s": 5e8 },
    ]);
    assert_eq!(figures, expected);
}

#[test]
fn plots_show_every_link_and_1995() {
    let charts = plots::charts(&results());
    let names: Vec<&str> = charts.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["latency.svg", "bandwidth.svg", "rate.svg", "collectives.svg"]);
    let latency = charts[0].1.to_svg();
    for part in ["fast, one PE", "fast – old", "1995: Meiko–Sun", "length of a message", ">µs<"] {
        assert!(latency.contains(part), "{part} is not in {latency}");
    }
    let bandwidth = charts[1].1.to_svg();
    assert!(!bandwidth.contains("one PE") && bandwidth.contains("fast – old"), "{bandwidth}");
    assert!(charts[3].1.to_svg().contains("all-to-all broadcast, 3 PEs"));
}

fn measured(mix: &InProcess, arguments: Netbench) -> Result<Results, RunError> {
    let program = Program::new("netbench", "1").chare::<station::Station>();
    program.run_in_process(mix, |main| measure::measure(main, &arguments.completed()))
}

fn arguments(between: &[&str]) -> Netbench {
    let between = between.iter().map(|names| names.to_string()).collect();
    let sizes = vec![20_000, 1, 100, 1];
    Netbench { between, sizes, repeats: 3, warm_up: 0.0, links_only: false, json: None, svg: None }
}

#[test]
fn every_link_and_operation_is_measured_moved_or_packed() {
    for mix in [InProcess::new(&[2, 1, 1]), InProcess::new(&[1, 3]).always_pup(), InProcess::new(&[1])] {
        let results = measured(&mix, arguments(&[])).unwrap();
        let nodes = mix.pes.len();
        let of_kind = |kind| results.links.iter().filter(|link| link.kind == kind).count();
        let big = mix.pes.iter().filter(|pes| **pes > 1).count();
        let counts = [Kind::OnePe, Kind::TwoPes, Kind::TwoNodes].map(of_kind);
        assert_eq!(counts, [nodes, big, nodes * (nodes - 1) / 2]);
        for link in &results.links {
            assert!(link.fit.latency_s > 0.0 && link.fit.fit_error.is_finite(), "{link:?}");
            let sizes: Vec<u64> = link.sizes.iter().map(|size| size.bytes).collect();
            assert_eq!(sizes, [1, 100, 20_000]);
            for size in &link.sizes {
                assert!(size.latency_s.samples == 3 && size.latency_s.p5 > 0.0, "{link:?}");
                assert!(size.stream.bytes_per_s > 0.0, "{link:?}");
            }
        }
        assert_eq!(results.collectives.len(), 3);
        for collective in &results.collectives {
            assert_eq!(collective.pes, mix.pes.iter().sum::<u32>() as usize);
            assert_eq!(collective.sizes.len(), 3);
            assert!(collective.sizes.iter().all(|size| size.all_s.p5 > 0.0 && size.one_pe_s.samples == 3));
        }
    }
}

#[test]
fn only_what_is_asked_for_is_measured() {
    let links = Netbench { links_only: true, ..arguments(&[]) };
    let results = measured(&InProcess::new(&[1, 1]), links).unwrap();
    let [.., between] = results.links.as_slice() else { panic!("{results:?}") };
    let longest = between.sizes.last().map(|size| size.stream.bytes_per_s);
    assert_eq!((results.collectives.len(), results.links.len()), (0, 3));
    assert_eq!(between.stream_bytes_per_s, longest.filter(|_| between.fit.bytes_per_s.is_some()));
    assert!(
        results.links[0].stream_bytes_per_s.is_none() && !table::printed(&results).contains("Table 5.15")
    );
    assert_eq!(plots::charts(&results).len(), 4);
    let results = measured(&InProcess::new(&[1, 2, 1]), arguments(&["node 3,node 2"])).unwrap();
    let names: Vec<&str> = results.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["node 2", "node 3"]);
    assert_eq!(results.collectives[0].pes, 3);
    let refused = measured(&InProcess::new(&[1, 1]), arguments(&["node 1,node 7"])).unwrap_err();
    assert_eq!(refused.exit_code(), 65);
    let sentence = "--between names \"node 7\", but the nodes of this run are node 1, node 2";
    assert_eq!(refused.to_string(), sentence);
}
