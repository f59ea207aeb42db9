//! `cache`: the copies of this program that other hosts keep.

use super::options::NodesOptions;
use super::say;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches as _};
use runtime::failure::{Failure, Kind};
use runtime::launch::{IN_USE, KeptCopies, KeptCopy, Wanted};
use runtime::size::Size;
use std::fmt::Write as _;

pub(crate) fn command() -> Command {
    let of_nodes = |name: &'static str| NodesOptions::augment_args(Command::new(name));
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON");
    let all = Arg::new("all").long("all").action(ArgAction::SetTrue);
    let all = all.help("Also what a run has asked for within the last hour, and may be starting from");
    let list = of_nodes("ls").about("List the copies of programs that the nodes' hosts keep");
    let clean = of_nodes("clean").about("Remove copies that no run has asked for within the last hour");
    Command::new("cache")
        .about("List or remove the copies of programs that other hosts keep")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(list.arg(json.clone()))
        .subcommand(clean.arg(json).arg(all))
}

/// Asks the hosts and prints what they say; the exit code.
pub(crate) fn cache(matches: &ArgMatches) -> Result<u8, Failure> {
    let (name, matches) =
        matches.subcommand().ok_or_else(|| Failure::new(Kind::Usage, "say `ls` or `clean`"))?;
    let wanted = match name {
        "clean" if matches.get_flag("all") => Wanted::Remove { idle_s: 0 },
        "clean" => Wanted::Remove { idle_s: IN_USE.as_secs() },
        _ => Wanted::List,
    };
    let options = NodesOptions::from_arg_matches(matches).map_err(|e| Failure::new(Kind::Usage, e))?;
    let config = options.load()?;
    options.say_which(&config);
    let launch = options.launch(&config)?;
    let hosts = runtime::job::kept_copies(&config, wanted, &launch).map_err(Failure::from)?;
    if matches.get_flag("json") {
        let text = serde_json::to_string_pretty(&hosts).map_err(|e| Failure::new(Kind::Failed, e))?;
        say(&(text + "\n"))?;
    } else {
        say(&table(&hosts, wanted))?;
    }
    let silent = hosts.iter().filter(|host| host.outcome.is_err()).count();
    if silent == 0 {
        return Ok(0);
    }
    Err(Failure::new(Kind::Unavailable, format!("{silent} of {} hosts did not answer", hosts.len())))
}

fn table(hosts: &[KeptCopies], wanted: Wanted) -> String {
    if hosts.is_empty() {
        return "no node is on another host: nothing is copied\n".into();
    }
    let verb = if wanted == Wanted::List { "keeps" } else { "removed" };
    let mut text = String::new();
    for KeptCopies { name, outcome, .. } in hosts {
        // Writing to a string does not fail.
        let _ = match outcome {
            Err(reason) => writeln!(text, "{name:<12} FAIL  {reason}"),
            Ok(copies) => {
                let bytes = copies.iter().fold(0, |sum: u64, copy| sum.saturating_add(copy.bytes));
                let copy = if copies.len() == 1 { "copy" } else { "copies" };
                writeln!(text, "{name:<12} {verb} {} {copy}, {}", copies.len(), Size(bytes))
            }
        };
        for KeptCopy { program, hash, bytes, asked_s } in outcome.iter().flatten() {
            let (hash, ago) = (hash.get(..12).unwrap_or(hash), ago(*asked_s));
            let _ = writeln!(
                text,
                "{:12} {program:<16} {hash}  {:>9}  last asked for {ago}",
                "",
                Size(*bytes).to_string()
            );
        }
    }
    text
}

fn ago(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_keep_something_nothing_or_do_not_answer() {
        let copy =
            KeptCopy { program: "metachare".into(), hash: "ab".repeat(32), bytes: 4 << 20, asked_s: 7300 };
        let host = |name: &str, outcome| KeptCopies { name: name.into(), host: "h".into(), outcome };
        let hosts =
            [host("a", Ok(vec![copy])), host("b", Ok(vec![])), host("c", Err("`ssh c` failed: no".into()))];
        assert_eq!(
            table(&hosts, Wanted::List),
            "a            keeps 1 copy, 4 MiB\n             metachare        abababababab      4 MiB  last asked for 2 h \
             ago\nb            keeps 0 copies, 0 B\nc            FAIL  `ssh c` failed: no\n"
        );
        assert_eq!(table(&[], Wanted::List), "no node is on another host: nothing is copied\n");
        assert_eq!(
            [0, 119, 120, 7200, 200_000].map(ago),
            ["0 s ago", "119 s ago", "2 min ago", "2 h ago", "2 days ago"]
        );
    }
}
