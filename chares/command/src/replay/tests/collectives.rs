//! Reductions, exchanges and broadcasts of a recording, in its trace and in its report.

use super::*;

/// Collectives as a trace has them: name, node or 0 for the run, nanoseconds, and what else is said of it.
fn collectives_of(recording: &Recording) -> Vec<(String, u64, i64, Value)> {
    let trace = trace_of(recording);
    let events = trace["traceEvents"].as_array().unwrap();
    let ends = |kind: &str| -> BTreeMap<u64, &Value> {
        let of_kind = events.iter().filter(|event| event["ph"] == kind);
        of_kind.map(|event| (event["id2"]["local"].as_str().unwrap().parse().unwrap(), event)).collect()
    };
    let (begins, ends) = (ends("b"), ends("e"));
    let slices = begins.iter().map(|(id, begin)| {
        let took = ns(ends[id], "ts") - ns(begin, "ts");
        let (name, node) = (begin["name"].as_str().unwrap(), begin["pid"].as_u64().unwrap() - 1_000_000);
        (name.to_string(), node, took, begin["args"].clone())
    });
    slices.collect()
}

/// As the clocks of both nodes are within a millisecond.
fn is_about(took: i64, ms: i64) -> bool {
    ((ms - 1) * 1_000_000..=(ms + 1) * 1_000_000).contains(&took)
}

#[test]
fn reductions_are_slices_of_the_run_and_of_each_pe() {
    let slices = collectives_of(&recording());
    let [whole, first, second] = &slices[..] else { panic!("{slices:?}") };
    assert!((&first.0[..], first.1, first.2) == ("reduction over Row, PE 0", 1, 10_000_000), "{first:?}");
    assert!((&second.0[..], second.1, second.2) == ("reduction over Row, PE 3", 2, 50_000_000), "{second:?}");
    assert!(whole.0 == "reduction over Row" && whole.1 == 0 && is_about(whole.2, 100), "{whole:?}");
    assert_eq!((&whole.3["number"], &whole.3["last_pe"]), (&5.into(), &3.into()));

    let waits = waits_of(&recording());
    let [rows] = &waits.collectives[..] else { panic!("one kind") };
    assert_eq!((&rows.what[..], rows.told), ("reduction over Row", 1));
    assert_eq!(rows.last, Some((3, "old & <slow>".into(), [1, 1])));
}

/// An exchange that PE 0 begins and PE 3 holds up, and a message of PE 0 that starts something on PEs 1, 2 and 3.
#[test]
fn exchanges_and_broadcasts_are_slices_too() {
    /// Node 1 began a fifth of a second before node 2.
    const OF_2: u64 = 2 * TENTH;
    let mut recording = recording();
    let is_sample =
        |event: &MonitorEvent| matches!(event, MonitorEvent::Samples(_) | MonitorEvent::Collectives(_));
    recording.events.retain(|recorded| !is_sample(&recorded.event));
    let mut put = |event| recording.events.push(Recorded { at: Duration::from_secs(5), event });
    let exchange = |pe, began_ns, took_ns| Gathered {
        pe,
        over: 77,
        chare_type: 1,
        stage: Stage::Exchange,
        began_ns,
        took_ns,
        ..Gathered::default()
    };
    let of = |node, gathered| MonitorEvent::Collectives(Collectives { node, gathered });
    put(of(1, vec![exchange(0, 21 * TENTH, 2 * TENTH)]));
    put(of(2, vec![exchange(3, 22 * TENTH - OF_2, TENTH / 2)]));
    let cause = Some(Cause { pe: 0, number: 9, bytes: 10 });
    let ran = |pe, began_ns| Ran { pe, name: 0, began_ns, took_ns: TENTH, idle_ns: 0, cause };
    let of = |node, ran, sent| MonitorEvent::Samples(Samples { node, ran, sent });
    let sent = Sent { pe: 0, number: 9, at_ns: 30 * TENTH };
    put(of(1, vec![ran(1, 31 * TENTH)], vec![sent]));
    put(of(2, vec![ran(2, 33 * TENTH - OF_2), ran(3, 32 * TENTH - OF_2)], Vec::new()));

    let slices = collectives_of(&recording);
    let wholes: Vec<_> = slices.iter().filter(|slice| slice.1 == 0).collect();
    let [exchange, broadcast] = wholes[..] else { panic!("{slices:?}") };
    assert!(exchange.0 == "exchange by Rows: Reduce" && is_about(exchange.2, 200), "{exchange:?}");
    assert_eq!(exchange.3["last_pe"], 3, "it sent last: {exchange:?}");
    assert!(broadcast.0 == "broadcast to Rows: Pivot" && is_about(broadcast.2, 300), "{broadcast:?}");
    assert_eq!((&broadcast.3["last_pe"], &broadcast.3["number"]), (&2.into(), &Value::Null));
    let parts: Vec<&str> = slices.iter().filter(|slice| slice.1 > 0).map(|slice| &slice.0[..]).collect();
    let pes = ["exchange by Rows: Reduce, PE 0", "exchange by Rows: Reduce, PE 3"];
    assert_eq!(parts[..2], pes);
    assert_eq!(parts[2..], [1, 2, 3].map(|pe| format!("broadcast to Rows: Pivot, PE {pe}")));

    let waits = waits_of(&recording);
    let told: Vec<_> =
        waits.collectives.iter().map(|one| (&one.what[..], one.told, one.last.clone())).collect();
    let last = |pe| Some((pe, "old & <slow>".to_string(), [1, 1]));
    assert_eq!(told, [("broadcast to Rows: Pivot", 1, last(2)), ("exchange by Rows: Reduce", 1, last(3))]);
}
