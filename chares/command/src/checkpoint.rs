//! `checkpoint`: what a folder of checkpoints holds, whether it is whole, and how two of its generations differ; values in
//! it by name, and who talked to whom.

mod convert;
mod folder;
mod merge;
mod npy;
mod pairs;
mod push_pull;
mod s3;
mod save_now;
mod text;
mod values;

use super::report::unix_ms;
use super::{say, terminal};
use crate::command_line::CommandLine;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use runtime::checkpoint::{
    Listed, ReadError, Record, Records, Saved, Store, Understood, Verified, list_objects,
};
use runtime::failure::{Failure, Kind};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use values::Which;

pub(crate) use folder::{folder, folder_parser};
pub(crate) use push_pull::{OTHER_END, answer};

pub(crate) fn command() -> Command {
    let dir = folder("dir", "DIR", "The folder of checkpoints");
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON");
    let one = |name: &'static str, about: &'static str| {
        Command::new(name).about(about).arg(dir.clone()).arg(json.clone())
    };
    let generation = Arg::new("generation").long("generation").value_name("N");
    let generation = generation.value_parser(value_parser!(u32));
    let newest = generation.clone().help("Which one [default: the newest]");
    let of_value = |name: &'static str, about: &'static str| {
        let value = value_named("value").required(true).help("Which value, such as `Block[3].rows.left`");
        Command::new(name).about(about).arg(dir.clone()).arg(value).arg(newest.clone())
    };
    let number = |name: &'static str, help: &'static str| {
        Arg::new(name).value_name(name).required(true).value_parser(value_parser!(u32)).help(help)
    };
    save_now::arguments(Command::new("checkpoint"))
        .about("Save a run that is under way, or look into a folder of checkpoints")
        .arg_required_else_help(true)
        .subcommand(one("ls", "List the checkpoints of a folder, or of an object store").mut_arg(
            "dir",
            |dir| {
                let dir = dir.value_parser(value_parser!(PathBuf)).value_name("DIR|s3://BUCKET/PREFIX");
                dir.help("The folder of checkpoints, or an object store")
            },
        ))
        .subcommand(looks(one("show", "Show what a checkpoint holds, and who wrote it").arg(newest.clone())))
        .subcommand(
            of_value("extract", "Write one value into a file: numbers into an .npy file, others as JSON")
                .arg(
                    Arg::new("to")
                        .long("to")
                        .value_name("FILE")
                        .required(true)
                        .value_parser(value_parser!(PathBuf))
                        .help("The file"),
                ),
        )
        .subcommand(
            of_value("set", "Write another checkpoint in which one value is changed").arg(
                Arg::new("from")
                    .long("from")
                    .value_name("FILE|VALUE")
                    .required(true)
                    .allow_hyphen_values(true)
                    .help("The new value: an .npy or .json file, or as JSON"),
            ),
        )
        .subcommand(merge::command())
        .subcommand(convert::command(&newest))
        .subcommands(push_pull::commands(&newest))
        .subcommand(
            one("verify", "Read whole checkpoints and compare all checksums")
                .arg(generation.help("Which one [default: all]")),
        )
        .subcommand(
            one("diff", "Say which records differ between two checkpoints")
                .arg(number("A", "The earlier one"))
                .arg(number("B", "The later one")),
        )
}

/// The command that shows a checkpoint, with what else it can show of it.
fn looks(show: Command) -> Command {
    let values = value_named("values").long("values").num_args(0..=1);
    let pairs = Arg::new("pairs").long("pairs").action(ArgAction::SetTrue).conflicts_with("values");
    show.arg(values.help("Show values instead, a line for each record: all, or these"))
        .arg(pairs.help("Show who talks to whom instead: messages and bytes between each two chares"))
}

fn value_named(id: &'static str) -> Arg {
    Arg::new(id).value_name("TYPE[INDEX].PATH").value_parser(value_parser!(Which))
}

pub(crate) fn checkpoint(program: &CommandLine, matches: &ArgMatches) -> Result<u8, Failure> {
    let (name, matches) = match matches.subcommand() {
        Some(("push", matches)) => return push_pull::push(matches),
        Some(("merge", matches)) => return merge::merge(matches),
        Some(("convert", matches)) => return convert::convert(program, matches),
        Some(("pull", matches)) => return push_pull::pull(matches),
        Some((name, matches)) => (name, matches),
        None => return save_now::save(matches),
    };
    let dir = matches.get_one::<PathBuf>("dir").map_or(Path::new(""), PathBuf::as_path);
    let number = |name: &str| matches.get_one::<u32>(name).copied();
    let is_json = matches.try_get_one::<bool>("json").ok().flatten() == Some(&true);
    if name == "ls" {
        return told(listed(dir, unix_ms())?, is_json);
    }
    let store = Store::open(dir)?;
    let value = matches.try_get_one::<Which>(if name == "show" { "values" } else { "value" }).ok().flatten();
    let text = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let answer = match name {
        "show" if matches.contains_id("values") => {
            return values::print(&chosen(&store, number("generation"))?, value, is_json).map(|()| 0);
        }
        "extract" | "set" => {
            let saved = chosen(&store, number("generation"))?;
            let value = value.ok_or_else(|| Failure::new(Kind::Usage, "say which value"))?;
            if name == "extract" {
                let to = matches.get_one::<PathBuf>("to").map_or(Path::new(""), PathBuf::as_path);
                values::extract(&saved, value, to)?;
            } else {
                let number = values::set(dir, &saved, value, text("from"))?;
                say(&format!("generation {number} has it changed\n"))?;
            }
            return Ok(0);
        }
        "show" if matches.get_flag("pairs") => pairs::told(&chosen(&store, number("generation"))?)?,
        "show" => shown(program, &store, number("generation"), unix_ms())?,
        "verify" => verified(dir, &store, number("generation"))?,
        _ => compared(&store, [number("A"), number("B")].map(Option::unwrap_or_default))?,
    };
    told(answer, is_json)
}

fn told(answer: Answer, is_json: bool) -> Result<u8, Failure> {
    if is_json {
        let text = serde_json::to_string_pretty(&answer.json).map_err(|e| Failure::new(Kind::Failed, e))?;
        say(&(text + "\n"))?;
    } else {
        say(&answer.text)?;
    }
    answer.failure.map_or(Ok(0), Err)
}

/// What a command has found.
struct Answer {
    text: String,
    json: Value,
    /// Why the command ends with an error although it has found something.
    failure: Option<Failure>,
}

fn listed(dir: &Path, now_ms: u64) -> Result<Answer, Failure> {
    let address = dir.to_str().filter(|text| s3::Address::is_meant(text));
    let generations = address.map_or_else(|| listed_here(dir), listed_there)?;
    let json = generations.iter().map(|(number, found)| match found {
        Ok(overview) => json!(overview),
        Err(damage) => json!({ "generation": number, "damage": damage }),
    });
    let json = json!({ "folder": dir, "generations": json.collect::<Vec<_>>() });
    Ok(Answer { text: text::list(&generations, now_ms), json, failure: None })
}

fn listed_here(dir: &Path) -> Result<Vec<Listed>, Failure> {
    let store = Store::open(dir)?;
    let generations = store.generations()?;
    if generations.is_empty() {
        store.latest()?;
    }
    let found = generations.into_iter().map(|generation| {
        let saved = generation.saved.map(|saved| saved.overview());
        (generation.number, saved.map_err(|error| error.to_string()))
    });
    Ok(found.collect())
}

/// As an object store has them.
fn listed_there(address: &str) -> Result<Vec<Listed>, Failure> {
    let address: s3::Address =
        address.parse().map_err(|sentence: String| Failure::new(Kind::Usage, sentence))?;
    list_objects(&mut address.open()?).map_err(|failure| address.named(failure))
}

fn chosen(store: &Store, number: Option<u32>) -> Result<Saved, ReadError> {
    number.map_or_else(|| store.latest(), |number| store.generation(number))
}

fn shown(program: &CommandLine, store: &Store, number: Option<u32>, now_ms: u64) -> Result<Answer, Failure> {
    let saved = chosen(store, number)?;
    let foreign = foreign(program, &saved);
    let mut json = json!(saved.overview());
    json["types"] = json!(saved.types());
    json["variables"] = json!(saved.variables());
    json["foreign"] = json!(foreign);
    Ok(Answer { text: text::show(&saved, now_ms, foreign.as_deref()), json, failure: None })
}

/// Why this program cannot go on from a checkpoint, if it cannot.
fn foreign(program: &CommandLine, saved: &Saved) -> Option<String> {
    let of = &saved.about().program;
    if of != program.name {
        return Some(format!("it is of {of}, and this is {}", program.name));
    }
    let understood = Understood::new(saved, program.program.table());
    understood.and_then(|_| saved.fits(usize::BITS)).err().map(|why| why.to_string())
}

fn verified(dir: &Path, store: &Store, number: Option<u32>) -> Result<Answer, Failure> {
    let found: Vec<(u32, Result<Verified, ReadError>)> = match number {
        Some(number) => vec![(number, store.generation(number).and_then(|saved| read_whole(&saved)))],
        None => {
            let generations = store.generations()?.into_iter();
            generations.map(|one| (one.number, one.saved.and_then(|saved| read_whole(&saved)))).collect()
        }
    };
    if found.is_empty() {
        store.latest()?;
    }
    if let Some(at) = found.iter().position(|(_, found)| found.as_ref().is_err_and(is_no_damage)) {
        return Err(found.into_iter().nth(at).and_then(|(_, found)| found.err()).map_or_else(
            || Failure::new(Kind::Failed, "what could not be read is not known"),
            Failure::from,
        ));
    }
    let damages = |found: &Result<Verified, ReadError>| match found {
        Ok(verified) => verified.damages.iter().map(ToString::to_string).collect(),
        Err(ReadError::Damaged { damage, .. }) => vec![damage.to_string()],
        Err(error) => vec![error.to_string()],
    };
    let json = found.iter().map(|(number, found)| {
        let verified = found.as_ref().ok();
        json!({
            "generation": number,
            "whole_records": verified.map_or(0, |verified| verified.whole),
            "read_bytes": verified.map_or(0, |verified| verified.read_bytes),
            "damages": damages(found),
        })
    });
    let json = json!({ "folder": dir, "generations": json.collect::<Vec<_>>() });
    let mut text = String::new();
    for (number, found) in &found {
        text += &text::verification(*number, found.as_ref().ok(), &damages(found));
    }
    let [whole, damaged] = [true, false].map(|is_whole| {
        let alike = found.iter().filter(|(_, found)| damages(found).is_empty() == is_whole);
        alike.map(|(number, _)| *number).collect::<Vec<_>>()
    });
    let failure = (!damaged.is_empty())
        .then(|| Failure::new(Kind::Input, text::damaged(dir, &damaged, whole.last().copied())));
    Ok(Answer { text, json, failure })
}

/// Whether something else than damage is in the way.
fn is_no_damage(error: &ReadError) -> bool {
    !matches!(error, ReadError::Damaged { .. })
}

/// Reads all of a checkpoint, and shows how far that is if anybody looks.
fn read_whole(saved: &Saved) -> Result<Verified, ReadError> {
    let bar = terminal::bar_of_bytes(
        &format!("generation {}", saved.generation()),
        saved.overview().stored_bytes,
        true,
    );
    let verified = saved.verify(|read_bytes| bar.set_position(read_bytes));
    bar.finish_and_clear();
    verified
}

/// All or most records of a checkpoint, while a bar shows how far that is if anybody looks.
fn followed<'a>(
    done: &str,
    saved: &Saved,
    records: Records<'a>,
) -> impl Iterator<Item = Result<Record, ReadError>> + use<'a> {
    let bar = terminal::bar_of_bytes(done, saved.overview().bytes, true);
    records.inspect(move |record| {
        record.iter().for_each(|record| bar.inc(record.packed.len_bytes() as u64));
    })
}

fn compared(store: &Store, numbers: [u32; 2]) -> Result<Answer, Failure> {
    let [earlier, later] = numbers.map(|number| store.generation(number));
    let (earlier, later) = (earlier?, later?);
    let differences = earlier.differences(&later)?;
    let json = differences.iter().map(|difference| {
        let identity = &difference.identity;
        json!({
            "change": text::change(difference.change),
            "kind": identity.kind.to_string(),
            "type": identity.type_name,
            "collection": identity.collection,
            "index": identity.index,
            "pe": identity.pe,
        })
    });
    let json = json!({ "a": numbers[0], "b": numbers[1], "differences": json.collect::<Vec<_>>() });
    Ok(Answer { text: text::comparison(&differences, [&earlier, &later]), json, failure: None })
}

#[cfg(test)]
mod tests;
