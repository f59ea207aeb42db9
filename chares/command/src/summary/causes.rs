//! What a run lost time to: what its report says of its PEs, in sentences, the dearest first.

use super::stops::{Crowd, STOPS, slowdown, stopped};
use super::{list, name_of, shares};
use runtime::monitor::critical_path::UNDER_WAY;
use serde_json::Value;

/// What is lost is said if it is at least this part of the time of all PEs.
pub(super) const LEAST: f64 = 0.03;
/// From this part of the critical path on, what PEs have to do one after the other is what others waited for.
const IN_TURN: f64 = 0.5;

/// Something that kept PEs from computing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cause {
    /// Part of the time of all PEs that it took, 0 to 1.
    pub(super) part: f64,
    pub(super) sentence: String,
}

/// A PE of the report.
pub(super) struct Pe {
    number: u64,
    pub(super) node: String,
    /// Seconds in which it was idle, and in which it was not.
    idle: f64,
    busy: f64,
    /// Seconds of what is not idle for each of [`STOPS`].
    pub(super) stopped: [f64; 3],
    has_worked: bool,
}

impl Pe {
    /// All its seconds.
    pub(super) fn time(&self) -> f64 {
        self.idle + self.busy
    }

    /// Those on its core.
    pub(super) fn on_core(&self) -> f64 {
        self.busy - self.stopped.iter().sum::<f64>()
    }
}

/// What PEs lost time to in the timed part of a run, or all of it where no part was timed.
pub(super) fn causes(report: &Value) -> Vec<Cause> {
    let pes = pes(report);
    let all: f64 = pes.iter().map(Pe::time).sum();
    if !(all > 0.0 && all.is_finite()) {
        return Vec::new();
    }
    let crowds = Crowd::all(report, &pes);
    let mut causes = stopped(report, &crowds, all);
    causes.extend(runtime_itself(report, all));
    causes.extend(idle(report, &pes, &crowds, all));
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
fn idle(report: &Value, pes: &[Pe], crowds: &[Crowd<'_>], all: f64) -> Vec<Cause> {
    let (workers, unused): (Vec<&Pe>, Vec<&Pe>) = pes.iter().partition(|pe| pe.has_worked);
    let mut causes = Vec::new();
    causes.extend(without_work(report, &unused, pes.len(), all).filter(|_| !workers.is_empty()));
    let Some(busiest) = workers.iter().max_by(|one, other| one.busy.total_cmp(&other.busy)) else {
        return causes;
    };
    // Until the busiest one was done the others could only wait, but no longer than they were idle.
    let others = || workers.iter().filter(|pe| pe.number != busiest.number);
    let for_it: f64 = others().map(|pe| (busiest.busy - pe.busy).min(pe.idle).max(0.0)).sum();
    if others().next().is_some() {
        let mean = others().map(|pe| pe.busy).sum::<f64>() / others().count() as f64;
        causes.push(Cause { part: for_it / all, sentence: of_busiest(report, pes, busiest, mean) });
    }
    let mut rest = workers.iter().map(|pe| pe.idle).sum::<f64>() - for_it;
    for crowd in crowds {
        let for_cores = rest * crowd.waited();
        rest -= for_cores;
        causes.push(crowd.cause(report, all, for_cores));
    }
    causes.push(Cause { part: rest / all, sentence: waited_for(report) });
    causes
}

/// PEs that had nothing to do at all.
fn without_work(report: &Value, unused: &[&Pe], count: usize, all: f64) -> Option<Cause> {
    let chares: u64 = list(&report["nodes"]).iter().filter_map(|node| node["chares"].as_u64()).sum();
    let sentence = format!(
        "{} of {count} PEs had nothing to compute: there were {chares} chares; {}",
        unused.len(),
        mend(report).unwrap_or_else(|| "smaller blocks make more".into())
    );
    let part = unused.iter().map(|pe| pe.idle).sum::<f64>() / all;
    (!unused.is_empty()).then_some(Cause { part, sentence })
}

/// Why others, who were busy for `mean` seconds, waited for the busiest PE.
fn of_busiest(report: &Value, pes: &[Pe], busiest: &Pe, mean: f64) -> String {
    let busy: Vec<(&str, f64)> = pes.iter().map(|pe| (pe.node.as_str(), pe.busy)).collect();
    let is_plain = stop(busiest).is_none() && longest_call(report, busiest).is_none();
    let of_shares = if is_plain { shares::wrong(report, &busy) } else { None };
    of_shares.unwrap_or_else(|| {
        format!(
            "others waited for PE {} of {}, which was busy for {:.2} s, they for {mean:.2} s on average{}",
            busiest.number,
            busiest.node,
            busiest.busy,
            why_busy(report, busiest)
        )
    })
}

/// What PEs waited for while no other had more to do, as far as the critical path of a recording tells it.
fn waited_for(report: &Value) -> String {
    let [on_way, driver, in_turn] =
        ["under_way", "driver", "in_turn"].map(|kind| seconds(&report["waits"][kind]));
    let path = |part: f64| format!("{:.0}% of the critical path", 100.0 * part);
    let said = report["waits"]["said"].as_str().filter(|_| on_way >= UNDER_WAY && on_way >= driver);
    if let Some(said) = said {
        format!("PEs waited for messages on their way: {}", runtime::monitor::text::clean_line(said, 160))
    } else if driver >= UNDER_WAY {
        format!(
            "PEs waited for the driver, which is {}: what it does, chares could do meanwhile",
            path(driver)
        )
    } else if in_turn >= IN_TURN {
        format!(
            "PEs waited for each other, because steps follow one another: what one PE after the other did is {}",
            path(in_turn)
        )
    } else {
        "PEs waited for messages while no other had more to do: for the driver, the network, or because steps follow one \
         another"
            .into()
    }
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
        said.extend(slowdown(report, std::slice::from_ref(&pe.node)).map(|slowdown| format!("; {slowdown}")));
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
    let call = [name, element].join(" ");
    (took > pe.busy / 2.0).then(|| format!("one call of {} took {took:.2} s of it", call.trim_end()))
}

/// A number that is none, or negative, is 0.
pub(super) fn seconds(value: &Value) -> f64 {
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
                "pes": numbers.map(pe),
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
        report["entries"][0]["slowest_element"] = json!("");
        assert!(first(&report).1.contains("; one call of Row: Pivot took 7.50 s"), "of several elements");
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
        assert!(said.contains("--speed measured measures it anew"), "{said}");
        (report["speeds_taken"], report["speed_source"]) = (json!(0.6), json!("measured"));
        let (_, said) = first(&report);
        let begins = "shares by the speeds that this run has measured did not hold: old had 20% of the work";
        assert!(
            said.starts_with(begins) && said.contains("; others had 60% of the cores then, or"),
            "{said}"
        );
        assert!(
            !said.contains("--speed") && said.contains("--balance auto"),
            "it has been measured anew: {said}"
        );
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
        let said = "a message between old and others is on its way for 10 ms, between the rest for 0.20 ms";
        report["waits"] = json!({"under_way": 0.8, "said": said, "driver": 0.1});
        assert_eq!(first(&report).1, format!("PEs waited for messages on their way: {said}"));
        report["waits"]["under_way"] = json!(0.1);
        assert!(first(&report).1.contains("no other had more to do"), "{report}");
    }

    #[test]
    fn a_driver_that_all_wait_for_is_told_from_steps_that_follow_one_another() {
        let waits = [1.0, 0.0, 0.0, 0.0, 9.0];
        let mut report = run([waits; 4]);
        report["waits"] =
            json!({"under_way": 0.01, "said": "a message is quick", "driver": 0.82, "in_turn": 0.1});
        let (part, said) = first(&report);
        let begins = "PEs waited for the driver, which is 82% of the critical path";
        assert!(part == 90.0 && said.starts_with(begins) && !said.contains("follow one another"), "{said}");
        report["waits"] =
            json!({"under_way": 0.01, "said": "a message is quick", "driver": 0.0, "in_turn": 0.95});
        let (_, said) = first(&report);
        assert!(said.contains("steps follow one another") && !said.contains("driver"), "{said}");
        report["waits"]["in_turn"] = json!(0.3);
        assert!(first(&report).1.contains("for the driver, the network, or because"), "nobody knows");
    }

    #[test]
    fn more_pes_than_cores_are_one_cause_however_many_nodes_they_are_on() {
        // Each of 24 nodes lost too little for a line of its own.
        let node = |number: u64| {
            let (name, core_wait) = (format!("n{number}"), if number == 7 { 5.0 } else { 3.4 });
            let pe = json!({"pe": number, "compute_s": 0.6, "core_wait_s": core_wait, "idle_s": 9.4 - core_wait, "chares": 9});
            json!({"name": name, "compute_s": 0.6, "core_wait_s": core_wait, "idle_s": 9.4 - core_wait, "chares": 9, "pes": [pe]})
        };
        let nodes: Vec<Value> = (0..24).map(node).collect();
        let names: Vec<Value> = nodes.iter().map(|node| node["name"].clone()).collect();
        let hosts = json!([{"name": "here", "cores": 2, "nodes": names}]);
        let mut report = json!({"nodes": nodes, "hosts": hosts});
        let (part, said) = first(&report);
        let begins = "24 PEs share the 2 cores of here: for 35% of their time they waited for their cores, and others for them";
        assert!(part > 50.0 && said.starts_with(begins), "{part} {said}");
        assert_eq!(
            causes(&report).iter().filter(|cause| cause.sentence.contains("cores")).count(),
            1,
            "{report}"
        );
        // They would have had them, if others had not.
        report["nodes"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .for_each(|node| node["pes"][0]["compute_s"] = json!(0.01));
        assert!(
            first(&report).1.starts_with("24 PEs share the 2 cores of here, which other programs used too"),
            "{report}"
        );
        // There may be as many cores, or nobody knows.
        for hosts in [json!([{"name": "here", "cores": 24, "nodes": names}]), Value::Null] {
            report["hosts"] = hosts;
            let begins = "35% of their time the PEs of n0, n1, n2 and 21 more waited for their cores";
            assert!(
                causes(&report).iter().any(|cause| cause.sentence.starts_with(begins)),
                "{:?}",
                causes(&report)
            );
        }
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
