//! `checkpoint push` and `checkpoint pull`: copies of checkpoints in other folders, here or on other hosts, and in object stores.

use super::{chosen, folder, s3};
use crate::options::{launch_options, nodes_file, seconds, this_host};
use crate::{complain_of, say, terminal};
use clap::{Arg, ArgMatches, Command, value_parser};
use indicatif::ProgressBar;
use runtime::checkpoint::{
    Copied, CopyError, Ends, Store, answer as answer_other_end, copy, pull_from_objects, push_to_objects,
};
use runtime::config::{ClusterConfig, NodeConfig};
use runtime::failure::{Failure, Kind};
use runtime::launch::answer_in;
use runtime::size::Size;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

/// The argument of the process that is started at the other end.
pub(crate) const OTHER_END: &str = "__checkpoint";

/// Where a copy is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// A folder of this machine.
    Here(PathBuf),
    /// A folder of a host.
    There(String, PathBuf),
    /// An object store.
    Objects(s3::Address),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if s3::Address::is_meant(text) {
            return text.parse().map(Self::Objects);
        }
        // As for scp, a colon after a slash is of the name.
        let (host, dir) = match text.split_once(':') {
            Some((host, dir)) if !host.contains('/') => (Some(host), dir),
            _ => (None, text),
        };
        if dir.is_empty() || host == Some("") {
            return Err(format!("`{text}` names no folder: write DIR, HOST:DIR or s3://BUCKET/PREFIX"));
        }
        Ok(host.map_or_else(|| Self::Here(dir.into()), |host| Self::There(host.into(), dir.into())))
    }
}

pub(super) fn commands(generation: &Arg) -> [Command; 2] {
    let place = |help: &'static str| {
        let arg = Arg::new("place").value_name("[HOST:]DIR|s3://BUCKET/PREFIX").required(true);
        arg.value_parser(value_parser!(Place)).help(help)
    };
    let nodes = Arg::new("nodes").long("nodes").value_name("FILE").value_parser(value_parser!(PathBuf));
    let nodes = nodes.help("The nodes file in which HOST may be the name of a node [default: the usual one]");
    let patience = Arg::new("start-timeout").long("start-timeout").value_name("SECONDS");
    let patience = patience.default_value("30").value_parser(seconds).allow_negative_numbers(true);
    let patience = patience.help("Give up when the host is silent for so many seconds at the start");
    let with_options = |command: Command| command.args([generation.clone(), nodes.clone(), patience.clone()]);
    [
        with_options(
            Command::new("push")
                .about("Copy a checkpoint to another folder; what is there already is not sent again")
                .arg(folder("dir", "DIR", "The folder of checkpoints"))
                .arg(place("The folder for the copy, maybe on another host, or an object store")),
        ),
        with_options(
            Command::new("pull")
                .about("Copy a checkpoint from another folder; what is here already is not sent again")
                .arg(place("The folder of checkpoints, maybe on another host, or an object store"))
                .arg(folder("dir", "DIR", "The folder for the copy")),
        ),
    ]
}

/// What a command line says.
struct Asked<'a> {
    dir: &'a Path,
    place: &'a Place,
    generation: Option<u32>,
}

impl<'a> Asked<'a> {
    fn of(matches: &'a ArgMatches) -> Result<Self, Failure> {
        let missing = || Failure::new(Kind::Usage, "say which folders");
        let dir = matches.get_one::<PathBuf>("dir").ok_or_else(missing)?;
        let place = matches.get_one("place").ok_or_else(missing)?;
        Ok(Self { dir, place, generation: matches.get_one("generation").copied() })
    }
}

pub(super) fn push(matches: &ArgMatches) -> Result<u8, Failure> {
    let Asked { dir, place, generation } = Asked::of(matches)?;
    let saved = chosen(&Store::open(dir)?, generation)?;
    let mut bar = Bar::default();
    let copied = match place {
        Place::Here(to) => copy(&saved, to, |done, all| bar.tell(done, all))?,
        Place::Objects(address) => {
            push_to_objects(&saved, &mut address.open()?, |done, all| bar.tell(done, all))?
        }
        Place::There(host, to) => {
            let to = to.clone();
            converse(host, matches, move |ends| {
                runtime::checkpoint::push(&saved, to, ends, |done, all| bar.tell(done, all))
            })?
        }
    };
    told(&copied)
}

pub(super) fn pull(matches: &ArgMatches) -> Result<u8, Failure> {
    let Asked { dir, place, generation } = Asked::of(matches)?;
    let mut bar = Bar::default();
    let copied = match place {
        Place::Here(from) => {
            let saved = chosen(&Store::open(from)?, generation)?;
            copy(&saved, dir, |done, all| bar.tell(done, all))?
        }
        Place::Objects(address) => {
            let pulled =
                pull_from_objects(&mut address.open()?, generation, dir, |done, all| bar.tell(done, all));
            pulled.map_err(|error| address.named(error.into()))?
        }
        Place::There(host, from) => {
            let (from, to) = (from.clone(), dir.to_path_buf());
            converse(host, matches, move |ends| {
                runtime::checkpoint::pull((from, generation), &to, ends, |done, all| bar.tell(done, all))
            })?
        }
    };
    told(&copied)
}

fn told(copied: &Copied) -> Result<u8, Failure> {
    let Copied { generation, chunks, bytes, sent_chunks, sent_bytes } = *copied;
    let [all, sent] = [bytes, sent_bytes].map(Size);
    say(&format!(
        "generation {generation} is there and whole: {all} in {chunks} chunks, of which {sent_chunks} ({sent}) were sent\n"
    ))?;
    Ok(0)
}

/// Has this program started on that host, and speaks with it.
fn converse(
    host: &str,
    matches: &ArgMatches,
    speak: impl FnOnce(&mut Ends<'_>) -> Result<Copied, CopyError> + Send + 'static,
) -> Result<Copied, Failure> {
    let config = nodes_file(matches.get_one::<PathBuf>("nodes").map(PathBuf::as_path))?;
    let node = node(&config, host)?;
    let patience = matches.get_one("start-timeout").copied().unwrap_or(Duration::from_secs(30));
    let launch = launch_options(&config, patience)?;
    let spoken =
        runtime::job::converse(&node, OTHER_END, launch, |from, to| speak(&mut Ends::new(from, to)))?;
    spoken.done.map_err(|error| {
        let end = match (&error, spoken.end) {
            (CopyError::Lost(_), Some(end)) => format!(" (the process there {end})"),
            _ => String::new(),
        };
        let Failure { kind, sentence } = error.into();
        Failure::new(kind, format!("{host}: {sentence}{end}"))
    })
}

/// The node of that name, or the host as ssh knows it.
fn node(config: &ClusterConfig, host: &str) -> Result<NodeConfig, Failure> {
    if let Some(node) = config.nodes.iter().find(|node| node.name == host).filter(|_| !config.is_built_in()) {
        return Ok(node.clone());
    }
    let hosts = ClusterConfig::of_hosts(&[host.into()], &this_host());
    let nodes = hosts.map_err(|error| Failure::new(Kind::Usage, error))?.nodes;
    nodes.into_iter().next().ok_or_else(|| Failure::new(Kind::Usage, format!("{host} is no host")))
}

/// How far it is, on the terminal.
#[derive(Default)]
struct Bar(Option<ProgressBar>);

impl Bar {
    fn tell(&mut self, done: u64, all: u64) {
        self.0.get_or_insert_with(|| terminal::bar_of_bytes("copied", all, true)).set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// What the process does that is started at the other end.
pub(crate) fn answer() -> ExitCode {
    let answered = answer_in(|from, to| answer_other_end(&mut Ends::new(from, to)));
    let failure = match answered {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(error)) => Failure::from(error),
        Err(error) => Failure::new(Kind::Output, format!("nobody listens: {error}")),
    };
    complain_of(&failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_before_the_first_slash_ends_a_host() {
        assert_eq!("saved".parse(), Ok(Place::Here("saved".into())));
        assert_eq!("./a:b".parse(), Ok(Place::Here("./a:b".into())));
        assert_eq!("ann@site:runs/a:b".parse(), Ok(Place::There("ann@site".into(), "runs/a:b".into())));
        assert_eq!("s3://runs/a".parse(), "s3://runs/a".parse().map(Place::Objects));
        for text in ["", ":dir", "host:"] {
            assert!(
                text.parse::<Place>().unwrap_err().ends_with("write DIR, HOST:DIR or s3://BUCKET/PREFIX"),
                "{text}"
            );
        }
    }
}
