//! What a run lost time to: what its report says of its PEs, in sentences, the dearest first.

use super::{list, name_of, shares};
use runtime::monitor::critical_path::UNDER_WAY;
use serde_json::Value;

/// What is lost is said if it is at least this part of the time of all PEs.
const LEAST: f64 = 0.03;
/// What keeps PEs from their cores, as reports name it, and in words for those of a node, and for one.
const STOPS: [(&str, &str, &str); 3] = [
    ("core_wait", "waited for their cores: other programs, or more PEs than cores, used them", "had no core"),
    ("quota", "had to stop: the CPU quota of their control group was used up", "was stopped by a CPU quota"),
    ("throttled", "slept, because their cpu_share says so", "slept for its cpu_share"),
];

/// Something that kept PEs from computing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cause {
    /// Part of the time of all PEs that it took, 0 to 1.
    pub(super) part: f64,
    pub(super) sentence: String,
}

/// A PE of the report.
struct Pe {
    number: u64,
    node: String,
    /// Seconds in which it was idle, and in which it was not.
    idle: f64,
    busy: f64,
    /// Seconds of what is not idle for each of [`STOPS`].
    stopped: [f64; 3],
    has_worked: bool,
}

/// What PEs lost time to in the timed part of a run, or all of it where no part was timed.
pub(super) fn causes(report: &Value) -> Vec<Cause> {
    let pes = pes(report);
    let all: f64 = pes.iter().map(|pe| pe.idle + pe.busy).sum();
    if !(all > 0.0 && all.is_finite()) {
        return Vec::new();
    }
    let mut causes = stopped(report, all);
    causes.extend(runtime_itself(report, all));
    causes.extend(idle(report, &pes, all));
    causes.retain(|cause| cause.part >= LEAST);
    causes.sort_by(|one, other| other.part.total_cmp(&one.part));
    causes
}

fn pes(report: &Value) -> Vec<Pe> {
    let of_node = |node: &Value| {
        let name = name_of(&node["name"]);
        let pe = move |pe: &Value| {
            let of = |state: &str| seconds(&pe[format!("{state}_s")]);
            let stopped = STOPS.map(|(state, ..)| of(state));
            let busy = of("compute") + of("overhead") + stopped.iter().sum::<f64>();
            let count = |key: &str| pe[key].as_u64().unwrap_or(0);
            let has_worked = count("chares") > 0 || count("entries") > 0;
            Pe { number: count("pe"), node: name.clone(), idle: of("idle"), busy, stopped, has_worked }
        };
        list(&node["pes"]).iter().map(pe).collect::<Vec<_>>()
    };
    list(&report["nodes"]).iter().flat_map(of_node).collect()
}

/// Nodes whose PEs had something to do and did not get their cores.
fn stopped(report: &Value, all: f64) -> Vec<Cause> {
    let mut causes = Vec::new();
    for node in list(&report["nodes"]) {
        let own: f64 = ["compute", "overhead", "core_wait", "quota", "throttled", "idle"]
            .map(|state| seconds(&node[format!("{state}_s")]))
            .iter()
            .sum();
        let name = name_of(&node["name"]);
        let slowdown = slowdown(report, &name).map_or_else(String::new, |said| format!("; {said}"));
        for (state, why, _) in STOPS {
            let lost = seconds(&node[format!("{state}_s")]);
            let percent = 100.0 * lost / own.max(f64::MIN_POSITIVE);
            let sentence = format!("{percent:.0}% of its time the PEs of {name} {why}{slowdown}");
            causes.push(Cause { part: lost / all, sentence });
        }
    }
    causes
}

/// Queues, packing and routing: worth a word where they take more than a tenth.
fn runtime_itself(report: &Value, all: f64) -> Option<Cause> {
    let of_nodes = |key: &str| list(&report["nodes"]).iter().map(|node| seconds(&node[key])).sum::<f64>();
    let (lost, calls) = (of_nodes("overhead_s"), of_nodes("entries"));
    let computed_us = 1e6 * of_nodes("compute_s") / calls.max(1.0);
    let sentence = format!(
        "the runtime itself took it: {calls:.0} entry methods of {computed_us:.1} us on average, and what they sent; fewer and \
         longer ones cost less"
    );
    // Of the time in which nobody kept the PEs from their cores.
    let own = lost + of_nodes("compute_s") + of_nodes("idle_s");
    (lost > 0.1 * own).then(|| Cause { part: lost / all, sentence })
}

/// Time without a message: for want of work, because one PE had more than others, or else.
fn idle(report: &Value, pes: &[Pe], all: f64) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (workers, unused): (Vec<&Pe>, Vec<&Pe>) = pes.iter().partition(|pe| pe.has_worked);
    let chares: u64 = list(&report["nodes"]).iter().filter_map(|node| node["chares"].as_u64()).sum();
    if !unused.is_empty() && !workers.is_empty() {
        let part = unused.iter().map(|pe| pe.idle).sum::<f64>() / all;
        let sentence = format!(
            "{} of {} PEs had nothing to compute: there were {chares} chares; {}",
            unused.len(),
            pes.len(),
            mend(report).unwrap_or_else(|| "smaller blocks make more".into())
        );
        causes.push(Cause { part, sentence });
    }
    let Some(busiest) = workers.iter().max_by(|one, other| one.busy.total_cmp(&other.busy)) else {
        return causes;
    };
    // Until the busiest one was done the others could only wait, but no longer than they were idle.
    let for_it = |pe: &&&Pe| (busiest.busy - pe.busy).min(pe.idle).max(0.0);
    let lost: f64 = workers.iter().filter(|pe| pe.number != busiest.number).map(|pe| for_it(&pe)).sum();
    let others: Vec<f64> =
        workers.iter().filter(|pe| pe.number != busiest.number).map(|pe| pe.busy).collect();
    if !others.is_empty() {
        let mean = others.iter().sum::<f64>() / others.len() as f64;
        let busy: Vec<(&str, f64)> = pes.iter().map(|pe| (pe.node.as_str(), pe.busy)).collect();
        let is_plain = stop(busiest).is_none() && longest_call(report, busiest).is_none();
        let of_shares = if is_plain { shares::wrong(report, &busy) } else { None };
        let sentence = of_shares.unwrap_or_else(|| {
            format!(
                "others waited for PE {} of {}, which was busy for {:.2} s, they for {mean:.2} s on average{}",
                busiest.number,
                busiest.node,
                busiest.busy,
                why_busy(report, busiest)
            )
        });
        causes.push(Cause { part: lost / all, sentence });
    }
    let rest = workers.iter().map(|pe| pe.idle).sum::<f64>() - lost;
    let link = busiest_link(report).map_or_else(String::new, |link| format!("; {link}"));
    let sentence = match on_their_way(report) {
        Some(said) => format!("PEs waited for messages on their way: {said}{link}"),
        None => format!(
            "PEs waited for messages while no other had more to do: for the driver, the network, or because steps follow \
             one another{link}"
        ),
    };
    causes.push(Cause { part: rest / all, sentence });
    causes
}

/// What the program itself said would give all PEs something to do.
fn mend(report: &Value) -> Option<String> {
    let mut said = list(&report["remarks"]).iter().filter_map(Value::as_str);
    let (_, mend) = said.find(|said| said.starts_with("only "))?.split_once(" PEs; ")?;
    Some(runtime::monitor::text::clean_line(mend, 160))
}

/// What the busiest PE was busy with, as far as that is known, or what to do.
fn why_busy(report: &Value, pe: &Pe) -> String {
    let mut said = String::new();
    let stop = stop(pe);
    if let Some((why, lost)) = stop {
        said = format!("; for {lost:.2} s of that it {why}");
        said.extend(slowdown(report, &pe.node).map(|slowdown| format!("; {slowdown}")));
    }
    match (longest_call(report, pe), stop) {
        (Some(call), None) => said + "; " + &call + ": make it shorter",
        (Some(call), Some(_)) => said + "; " + &call,
        (None, None) => said + "; smaller blocks or --balance auto divide the work better",
        (None, Some(_)) => said,
    }
}

/// What kept a PE from its core for more than half of the time in which it had something to do, and for how long.
fn stop(pe: &Pe) -> Option<(&'static str, f64)> {
    let most = STOPS.iter().zip(pe.stopped).max_by(|one, other| one.1.total_cmp(&other.1));
    most.filter(|(_, lost)| *lost > pe.busy / 2.0).map(|((.., why), lost)| (*why, lost))
}

/// When the node delivered less than its speed for longest, without why.
fn slowdown(report: &Value, node: &str) -> Option<String> {
    let of_it = list(&report["slowdowns"]).iter().filter(|slow| name_of(&slow["node"]) == node);
    let length = |slow: &Value| slow["until_s"].as_f64().unwrap_or(f64::MAX) - seconds(&slow["since_s"]);
    let longest = of_it.max_by(|one, other| length(one).total_cmp(&length(other)))?;
    let sentence = runtime::monitor::text::clean_line(longest["sentence"].as_str()?, 160);
    Some(sentence.rsplit_once(": ").map_or(sentence.as_str(), |(said, _)| said).to_string())
}

/// How long messages were on their way between nodes, if that was what PEs waited for.
fn on_their_way(report: &Value) -> Option<String> {
    let under_way = &report["under_way"];
    let sentence = under_way["sentence"].as_str().filter(|_| seconds(&under_way["part"]) >= UNDER_WAY)?;
    Some(runtime::monitor::text::clean_line(sentence, 160))
}

/// A call that took more than half of what its PE did.
fn longest_call(report: &Value, pe: &Pe) -> Option<String> {
    let calls =
        list(&report["entries"]).iter().filter(|entry| entry["slowest_pe"].as_u64() == Some(pe.number));
    let longest = calls.max_by(|one, other| {
        let of = |entry: &Value| seconds(&entry["slowest_s"]);
        of(one).total_cmp(&of(other))
    })?;
    let took = seconds(&longest["slowest_s"]);
    let (name, element) = (name_of(&longest["name"]), name_of(&longest["slowest_element"]));
    (took > pe.busy / 2.0).then(|| format!("one call of {name} {element} took {took:.2} s of it"))
}

fn busiest_link(report: &Value) -> Option<String> {
    let timed = report["timed_s"].as_f64().filter(|timed| *timed > 0.0)?;
    let of_node = |node: &Value| {
        let from = name_of(&node["name"]);
        let link = move |to: &Value| (seconds(&to["bytes"]), format!("{from} -> {}", name_of(&to["node"])));
        list(&node["sent_to"]).iter().map(link).collect::<Vec<_>>()
    };
    let links = list(&report["nodes"]).iter().flat_map(of_node);
    let (bytes, link) = links.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(format!("the busiest link, {link}, carried {:.1} MB/s", bytes / timed / 1e6))
}

/// A number that is none, or negative, is 0.
fn seconds(value: &Value) -> f64 {
    value.as_f64().filter(|number| number.is_finite() && *number > 0.0).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A run of four PEs on two nodes; what each did, in seconds: computing, runtime, waiting for a core, throttled, idle.
    fn run(pes: [[f64; 5]; 4]) -> Value {
        let pe = |number: usize| {
            let [compute, overhead, core_wait, throttled, idle] = pes[number];
            let count = if compute > 0.0 { 10 } else { 0 };
            json!({
                "pe": number, "compute_s": compute, "overhead_s": overhead, "core_wait_s": core_wait, "quota_s": 0.0,
                "throttled_s": throttled, "idle_s": idle, "chares": count, "entries": 100 * count,
            })
        };
        let node = |name: &str, numbers: [usize; 2]| {
            let sum = |state: usize| numbers.iter().map(|pe| pes[*pe][state]).sum::<f64>();
            json!({
                "name": name, "compute_s": sum(0), "overhead_s": sum(1), "core_wait_s": sum(2), "quota_s": 0.0,
                "throttled_s": sum(3), "idle_s": sum(4), "chares": 20, "entries": 2000,
                "pes": numbers.map(pe), "sent_to": [{"node": "other", "messages": 9, "bytes": 200_000_000}],
            })
        };
        json!({"timed_s": 10.0, "nodes": [node("fast", [0, 1]), node("old", [2, 3])], "entries": []})
    }

    const BUSY: [f64; 5] = [9.8, 0.1, 0.0, 0.0, 0.1];

    /// The dearest cause of a run: percent of all time, and what is said.
    fn first(report: &Value) -> (f64, String) {
        let Some(cause) = causes(report).into_iter().next() else { return (0.0, String::new()) };
        ((100.0 * cause.part).round(), cause.sentence)
    }

    #[test]
    fn a_planted_cause_is_the_first_that_is_named() {
        assert_eq!(first(&run([BUSY; 4])), (0.0, String::new()), "nothing was lost");
        let taken = [4.0, 0.0, 5.9, 0.0, 0.1];
        let (part, said) = first(&run([BUSY, BUSY, taken, taken]));
        assert!(
            part == 30.0 && said.contains("59% of its time the PEs of old waited for their cores"),
            "{said}"
        );
        let asleep = [4.0, 0.0, 0.0, 5.9, 0.1];
        let (_, said) = first(&run([BUSY, BUSY, asleep, asleep]));
        assert!(said.contains("PEs of old slept") && said.contains("cpu_share"), "{said}");
        let (part, said) = first(&run([BUSY, BUSY, BUSY, [0.0, 0.0, 0.0, 0.0, 10.0]]));
        assert!(
            part == 25.0 && said.starts_with("1 of 4 PEs had nothing to compute: there were 40"),
            "{said}"
        );
        let waits = [4.0, 0.0, 0.0, 0.0, 6.0];
        let (part, said) = first(&run([waits, waits, waits, BUSY]));
        assert!(part == 44.0 && said.contains("waited for PE 3 of old, which was busy for 9.90 s"), "{said}");
        assert!(said.contains("--balance auto"), "{said}");
        let (part, said) = first(&run([waits; 4]));
        assert!(part == 60.0 && said.contains("no other had more to do"), "{said}");
        assert!(said.contains("-> other, carried 20.0 MB/s"), "{said}");
        let (part, said) = first(&run([[5.0, 4.9, 0.0, 0.0, 0.1]; 4]));
        assert!(part == 49.0 && said.contains("4000 entry methods of 5000.0 us"), "{said}");
        let crowded = causes(&run([[0.9, 0.9, 8.2, 0.0, 0.0]; 4]));
        let is_it = |cause: &Cause| cause.sentence.starts_with("the runtime itself");
        assert!(crowded.iter().any(is_it), "others that want the cores do not hide it: {crowded:?}");
    }

    #[test]
    fn one_long_call_is_named() {
        let waits = [4.0, 0.0, 0.0, 0.0, 6.0];
        let mut report = run([waits, waits, waits, BUSY]);
        report["entries"] = json!([
            {"name": "Row: Pivot", "slowest_pe": 3, "slowest_s": 7.5, "slowest_element": "[4]"},
            {"name": "Row: Other", "slowest_pe": 0, "slowest_s": 8.0, "slowest_element": "[1]"},
        ]);
        let (_, said) = first(&report);
        assert!(said.ends_with("; one call of Row: Pivot [4] took 7.50 s of it: make it shorter"), "{said}");
    }

    #[test]
    fn a_node_that_became_slow_is_named_with_when_and_not_its_blocks() {
        let (waits, taken) = ([1.0, 0.0, 0.0, 0.0, 9.0], [1.0, 0.0, 8.9, 0.0, 0.1]);
        let mut report = run([waits, waits, waits, taken]);
        let sentence = "old delivers 0.09 of its measured speed since 00:02: it waits for its cores";
        let of_other = "fast delivers 0.50 of its measured speed since 00:01: it waits for its cores";
        report["slowdowns"] = json!([
            {"node": "fast", "since_s": 1.0, "until_s": null, "sentence": of_other},
            {"node": "old", "since_s": 1.0, "until_s": 1.5, "sentence": "old delivered 0.5 long ago"},
            {"node": "old", "since_s": 2.0, "until_s": null, "sentence": sentence},
        ]);
        let (_, said) = first(&report);
        let begins = "others waited for PE 3 of old, which was busy for 9.90 s, they for 1.00 s on average; for 8.90 s of that \
                      it had no core";
        let ends = "; old delivers 0.09 of its measured speed since 00:02";
        assert!(said.starts_with(begins) && said.ends_with(ends), "{said}");
        let of_node = causes(&report).into_iter().find(|cause| cause.sentence.contains("PEs of old waited"));
        assert!(of_node.is_some_and(|cause| cause.sentence.ends_with(ends)), "{report}");
    }

    #[test]
    fn shares_that_are_not_what_nodes_deliver_are_named() {
        // The second node was measured while others had its cores: it got a fifth, and is done in a quarter of the time.
        let (busy, early) = ([9.9, 0.0, 0.0, 0.0, 0.1], [2.5, 0.0, 0.0, 0.0, 7.5]);
        let mut report = run([busy, busy, early, early]);
        let shares = |report: &mut Value, of: [f64; 2]| {
            report["nodes"][0]["share"] = json!(of[0]);
            report["nodes"][1]["share"] = json!(of[1]);
        };
        assert!(first(&report).1.starts_with("others waited for PE"), "nobody knows the shares");
        shares(&mut report, [0.8, 0.2]);
        let (part, said) = first(&report);
        let begins = "the shares are wrong: old had 20% of the work, and by the rate that it really delivered 50% would be \
                      right; its speed was measured otherwise, or";
        assert!(part == 37.0 && said.starts_with(begins), "{part} {said}");
        report["speeds_taken"] = json!(0.6);
        assert!(first(&report).1.contains("otherwise (others had 60% of the cores then)"), "{report}");
        report["speed_source"] = json!("equal");
        assert!(first(&report).1.contains("--speed auto"), "{report}");
        // Its share was right, until it became slow.
        report["slowdowns"] =
            json!([{"node": "old", "since_s": 2.0, "until_s": null, "sentence": "old is slow"}]);
        assert!(!first(&report).1.contains("the shares"), "{report}");
        // One PE has too much, not its node.
        let mut uneven = run([busy, early, early, early]);
        shares(&mut uneven, [0.8, 0.2]);
        assert!(first(&uneven).1.starts_with("others waited for PE 0 of fast"), "{uneven}");
        let mut even = run([busy; 4]);
        shares(&mut even, [0.8, 0.2]);
        assert_eq!(causes(&even), []);
    }

    #[test]
    fn what_the_program_advises_is_said_of_pes_without_work() {
        let mut report = run([BUSY, BUSY, BUSY, [0.0, 0.0, 0.0, 0.0, 10.0]]);
        report["remarks"] = json!(["9 iterations", "only 3 blocks for 4 PEs; try --block 800"]);
        assert!(first(&report).1.ends_with("there were 40 chares; try --block 800"), "{report}");
    }

    #[test]
    fn a_slow_link_is_named_if_messages_on_their_way_are_what_all_wait_for() {
        let waits = [1.0, 0.0, 0.0, 0.0, 9.0];
        let mut report = run([waits; 4]);
        let sentence =
            "a message between old and others is on its way for 10 ms, between the rest for 0.20 ms";
        report["under_way"] = json!({"part": 0.8, "sentence": sentence});
        let (_, said) = first(&report);
        assert!(
            said.starts_with(&format!("PEs waited for messages on their way: {sentence}; the busiest")),
            "{said}"
        );
        report["under_way"]["part"] = json!(0.1);
        assert!(first(&report).1.contains("no other had more to do"), "{report}");
    }

    #[test]
    fn what_is_no_report_has_no_causes() {
        for other in [json!(null), json!({"nodes": 7}), json!({"nodes": [{"pes": [{"idle_s": -1e300}]}]})] {
            assert_eq!(causes(&other), []);
        }
        let mut report = run([BUSY; 4]);
        report["nodes"][0]["pes"][0]["idle_s"] = json!(1e300);
        report["nodes"][0]["pes"][1]["idle_s"] = json!(1.7e308);
        report["nodes"][1]["pes"][1]["idle_s"] = json!(1.7e308);
        assert_eq!(causes(&report), [], "sums that are no numbers");
    }
}
