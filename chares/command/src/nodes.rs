//! `nodes`: list and check the nodes.

use super::options::{NodesChoice, NodesOptions, shortened};
use super::rate::rate;
use super::{copies, request, say, speed};
use crate::command_line::CommandLine;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use runtime::failure::{Failure, Kind};
use runtime::launch::{CheckResult, Checked, HeardPorts, Pair, Problem};
use runtime::monitor::requests::Request;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Instant;

/// Of the JSON of a check.
const CHECK_SCHEMA: &str = "metachare-check/1";
/// Pairs of nodes that are shown: all of eight nodes.
const PAIRS_SHOWN: usize = 28;

pub(crate) fn command(program: &CommandLine) -> Command {
    let list =
        NodesChoice::augment_args(Command::new("list").about("Show which nodes would be used, and how"));
    let check = NodesOptions::augment_args(
        Command::new("check").about("Go through all nodes and say what is wrong and how to mend it"),
    );
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON");
    Command::new("nodes")
        .about("List, check and measure the nodes, and have some leave a run or join it")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(list.arg(json.clone()))
        .subcommand(check.arg(json))
        .subcommand(speed::command(program))
        .subcommand(
            Command::new("drain")
                .about("Have a node leave a run, which goes on without it: its chares go to the other nodes")
                .arg(
                    Arg::new("run")
                        .value_name("RUN")
                        .required(true)
                        .help("The run's name; `watch --list` lists them"),
                )
                .arg(Arg::new("node").value_name("NODE").required(true).help("The node's name")),
        )
        .subcommand(NodesChoice::augment_args(
            Command::new("add")
                .about("Have nodes join a run that balances its load: chares go there")
                .arg(
                    Arg::new("run")
                        .value_name("RUN")
                        .required(true)
                        .help("The run's name; `watch --list` lists them"),
                )
                .arg(
                    Arg::new("node")
                        .value_name("NODE")
                        .action(ArgAction::Append)
                        .help("Names in the nodes file; not needed with --hosts or --hostfile"),
                ),
        ))
}

pub(crate) fn nodes(program: CommandLine, matches: &ArgMatches, started: Instant) -> Result<u8, Failure> {
    let options = |matches: &ArgMatches| {
        NodesOptions::from_arg_matches(matches).map_err(|e| Failure::new(Kind::Usage, e))
    };
    match matches.subcommand() {
        Some(("list", matches)) => {
            let choice = NodesChoice::from_arg_matches(matches).map_err(|e| Failure::new(Kind::Usage, e))?;
            let config = choice.load()?;
            if matches.get_flag("json") {
                let text =
                    serde_json::to_string_pretty(&config).map_err(|e| Failure::new(Kind::Failed, e))?;
                say(&(text + "\n"))?;
            } else {
                say(&config.table())?;
            }
            Ok(0)
        }
        Some(("check", matches)) => check(&program, &options(matches)?, matches.get_flag("json")),
        Some(("speed", matches)) => speed::speed(program, matches, started),
        Some(("drain", matches)) => drain(matches),
        Some(("add", matches)) => add(matches),
        _ => Err(Failure::new(Kind::Usage, "say `list`, `check`, `speed`, `drain` or `add`")),
    }
}

fn drain(matches: &ArgMatches) -> Result<u8, Failure> {
    let word = |name| matches.get_one::<String>(name).cloned().unwrap_or_default();
    ask(&word("run"), &Request::Drain { node: word("node") }).map(|()| 0)
}

fn add(matches: &ArgMatches) -> Result<u8, Failure> {
    let choice = NodesChoice::from_arg_matches(matches).map_err(|e| Failure::new(Kind::Usage, e))?;
    let run = matches.get_one::<String>("run").cloned().unwrap_or_default();
    let wanted: Vec<&String> = matches.get_many("node").into_iter().flatten().collect();
    if wanted.is_empty() && !choice.names_hosts() {
        let sentence =
            "say which nodes of the nodes file are to join, or name hosts with --hosts or --hostfile";
        return Err(Failure::new(Kind::Usage, sentence));
    }
    let config = choice.load()?;
    let known = || config.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(", ");
    let mut nodes = Vec::new();
    for name in wanted {
        let node = config.nodes.iter().find(|node| node.name == *name).ok_or_else(|| {
            Failure::new(
                Kind::Usage,
                format!("{} has no node {name:?}; there are {}", config.source, known()),
            )
        })?;
        nodes.push(node.clone());
    }
    if nodes.is_empty() {
        nodes = config.nodes;
    }
    nodes.into_iter().try_for_each(|node| ask(&run, &Request::Add { node: Box::new(node) }))?;
    Ok(0)
}

/// Asks a run for something, and says what became of it.
fn ask(run: &str, request: &Request) -> Result<(), Failure> {
    say(&(request::ask(run, request)?.sentence + "\n"))
}

fn check(program: &CommandLine, options: &NodesOptions, is_json: bool) -> Result<u8, Failure> {
    let config = options.load()?;
    options.say_which(&config);
    let mut launch = options.launch(&config)?;
    let checked = copies::shown(!is_json, |copies| {
        launch.copies = copies;
        runtime::job::check_nodes(program.program.table(), &config, launch)
    });
    let checked = checked.map_err(Failure::from)?;
    say(&if is_json { as_json(&checked)? } else { as_text(&checked) })?;
    let failed = checked.nodes.iter().filter(|node| node.outcome.is_err()).count();
    if failed == 0 {
        return Ok(0);
    }
    Err(Failure::new(Kind::Unavailable, format!("{failed} of {} nodes cannot be used", checked.nodes.len())))
}

fn as_json(checked: &Checked) -> Result<String, Failure> {
    let node = |node: &CheckResult| {
        let (facts, problem) = (node.outcome.as_ref().ok(), node.outcome.as_ref().err());
        json!({
            "name": node.name, "host": node.host, "is_usable": problem.is_none(), "facts": facts, "problem": problem,
            "warnings": node.warnings,
        })
    };
    let nodes: Vec<Value> = checked.nodes.iter().map(node).collect();
    let all = json!({"schema": CHECK_SCHEMA, "nodes": nodes, "pairs": checked.pairs, "ports": checked.ports});
    let text = serde_json::to_string_pretty(&all).map_err(|e| Failure::new(Kind::Failed, e))?;
    Ok(text + "\n")
}

/// What was found of each node, and of the ways between them.
fn as_text(checked: &Checked) -> String {
    let mut text = String::new();
    for result in &checked.nodes {
        let _ = match &result.outcome {
            Ok(facts) => writeln!(text, "{:<12} ok    {facts}", result.name),
            Err(problem) => {
                let (name, reason, mend) = (&result.name, &problem.reason, &problem.mend);
                writeln!(text, "{name:<12} FAIL  {reason}\n{:18} mend: {mend}", "")
            }
        };
        for Problem { reason, mend } in &result.warnings {
            let _ = writeln!(text, "{:12} warn  {reason}\n{:18} mend: {mend}", "", "");
        }
    }
    let is_all = checked.nodes.iter().all(|node| node.outcome.is_ok());
    text + &checked.ports.as_ref().map_or(String::new(), |ports| heard(ports, is_all)) + &ways(&checked.pairs)
}

/// What came of the ports that the nodes file allows; nothing if no node is heard, which is said of each.
fn heard(ports: &HeardPorts, is_all: bool) -> String {
    let on: BTreeSet<u16> = ports.heard_on.values().copied().collect();
    if on.is_empty() {
        return String::new();
    }
    let on: Vec<String> = on.iter().map(u16::to_string).collect();
    let on = shortened(&on.iter().map(String::as_str).collect::<Vec<_>>());
    let verdict = if is_all { " can be used" } else { "" };
    format!("\nports {}{verdict}: nodes are heard on {on}, the first that are free\n", ports.range)
}

/// A line for each pair of nodes, the slowest first where there are many.
fn ways(pairs: &[Pair]) -> String {
    let slower = |one: &&Pair, other: &&Pair| {
        let least = |pair: &Pair| pair.bytes_per_s.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let by_bytes = least(one).total_cmp(&least(other));
        by_bytes.then(other.round_trip_s.total_cmp(&one.round_trip_s))
    };
    let mut shown: Vec<&Pair> = pairs.iter().collect();
    if shown.len() > PAIRS_SHOWN {
        shown.sort_by(slower);
        shown.truncate(PAIRS_SHOWN);
    }
    if shown.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{:<26} {:>10} {:>10} {:>10}\n", "between", "round trip", "->", "<-");
    for pair in &shown {
        let [one, other] = &pair.nodes;
        let [back, forth] = pair.bytes_per_s.map(|rate_of| match rate_of {
            Some(bytes) => rate(bytes, "B"),
            None if pair.is_one_host => "memory".into(),
            None => "?".into(),
        });
        let trip = format!("{:.2} ms", 1e3 * pair.round_trip_s);
        let _ = writeln!(text, "{:<26} {trip:>10} {forth:>10} {back:>10}", format!("{one} - {other}"));
    }
    match pairs.len() - shown.len() {
        0 => text,
        more => text + &format!("and {more} more that carry as much or more; --json has them all\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(number: usize, bytes_per_s: [Option<f64>; 2], is_one_host: bool) -> Pair {
        let nodes = [format!("n{number}"), "o".to_string()];
        Pair { nodes, round_trip_s: 2.5e-4, bytes_per_s, is_one_host }
    }

    #[test]
    fn each_pair_has_a_line_with_its_latency_and_bandwidth() {
        let pairs =
            [pair(1, [Some(1.2e6), Some(4.1e8)], false), pair(2, [None; 2], true), pair(3, [None; 2], false)];
        let lines: Vec<String> =
            ways(&pairs).lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let expected = [
            "",
            "between round trip -> <-",
            "n1 - o 0.25 ms 410 MB/s 1.20 MB/s",
            "n2 - o 0.25 ms memory memory",
            "n3 - o 0.25 ms ? ?",
        ];
        assert_eq!(lines, expected);
        assert_eq!(ways(&[]), "");
    }

    #[test]
    fn of_many_pairs_the_slowest_are_shown() {
        let pairs: Vec<Pair> =
            (1..=PAIRS_SHOWN + 5).map(|n| pair(n, [Some(n as f64 * 1e6); 2], false)).collect();
        let said = ways(&pairs.into_iter().rev().collect::<Vec<_>>());
        assert!(said.lines().nth(2).is_some_and(|line| line.starts_with("n1 - o ")), "{said}");
        assert!(said.ends_with("and 5 more that carry as much or more; --json has them all\n"), "{said}");
    }

    #[test]
    fn ports_of_the_nodes_file_are_told_with_those_that_are_heard() {
        let all = [("a", 40001), ("b", 40000), ("c", 40000)].map(|(name, port)| (name.to_string(), port));
        let ports = HeardPorts { range: "40000-40009".into(), heard_on: all.into() };
        let said =
            "\nports 40000-40009 can be used: nodes are heard on 40000, 40001, the first that are free\n";
        assert_eq!(heard(&ports, true), said);
        assert_eq!(heard(&ports, false), said.replace(" can be used", ""));
        let silent = HeardPorts { heard_on: [].into(), ..ports };
        assert_eq!(heard(&silent, false), "");
    }

    #[test]
    fn json_has_fields_for_what_is_there_and_what_is_wrong() {
        let problem = Problem { reason: "it is gone".into(), mend: "wake it".into() };
        let node =
            CheckResult { name: "a".into(), host: "h".into(), outcome: Err(problem), warnings: Vec::new() };
        let ports = HeardPorts { range: "7-9".into(), heard_on: [("b".to_string(), 7)].into() };
        let pairs = vec![pair(1, [Some(5e8), None], false)];
        let checked = Checked { nodes: vec![node], pairs, ports: Some(ports) };
        let read: Value = serde_json::from_str(&as_json(&checked).unwrap()).unwrap();
        let node = &read["nodes"][0];
        assert_eq!((&node["is_usable"], &node["facts"]), (&false.into(), &Value::Null));
        assert_eq!(
            (&node["problem"]["reason"], &node["problem"]["mend"]),
            (&"it is gone".into(), &"wake it".into())
        );
        assert_eq!(
            (&read["pairs"][0]["bytes_per_s"], &read["pairs"][0]["nodes"]),
            (&json!([5e8, null]), &json!(["n1", "o"]))
        );
        assert_eq!(read["ports"], json!({"range": "7-9", "heard_on": {"b": 7}}));
    }
}
