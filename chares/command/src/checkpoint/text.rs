//! What is said about checkpoints. Names in them come from files that anybody may have written.

use crate::report::utc;
use runtime::architecture::Architecture;
use runtime::checkpoint::{
    Change, Difference, Listed, Overview, Saved, SavedSchema, SavedVariable, Verified,
};
use runtime::monitor::text::clean_line;
use runtime::schema::Shape;
use runtime::size::Size;
use std::fmt::Write as _;
use std::path::Path;

/// The most characters that are shown of a name.
const NAME_MAX: usize = 200;

pub(super) fn list(generations: &[Listed], now_ms: u64) -> String {
    let mut text = format!(
        "{:>10}  {:<20}  {:>8}  {:>10}  {:>10}  {:>8}  progress\n",
        "generation", "taken", "age", "size", "new", "records"
    );
    for (number, found) in generations {
        let _ = match found {
            Ok(Overview { about, bytes, new_bytes, records, .. }) => {
                writeln!(
                    text,
                    "{number:>10}  {:<20}  {:>8}  {:>10}  {:>10}  {:>8}  {}",
                    utc(about.taken_ms / 1000),
                    age(about.taken_ms, now_ms),
                    Size(*bytes).to_string(),
                    Size(*new_bytes).to_string(),
                    records,
                    plain(&about.progress),
                )
            }
            Err(damage) => writeln!(text, "{number:>10}  {damage}"),
        };
    }
    text
}

pub(super) fn show(saved: &Saved, now_ms: u64, foreign: Option<&str>) -> String {
    let about = saved.about();
    let taken = utc(about.taken_ms / 1000);
    let arguments: Vec<String> = about.arguments.iter().map(|argument| plain(argument)).collect();
    let mut text =
        format!("generation {}, taken {taken}, {} ago\n", saved.generation(), age(about.taken_ms, now_ms));
    let _ = writeln!(text, "program     {} {}", plain(&about.program), plain(&about.version));
    let _ = writeln!(text, "arguments   {}", arguments.join(" "));
    let _ = writeln!(text, "progress    {}", plain(&about.progress));
    let Overview { bytes, stored_bytes, new_bytes, records, .. } = saved.overview();
    let [bytes, stored, new] = [bytes, stored_bytes, new_bytes].map(Size);
    let _ = writeln!(text, "size        {bytes} in {records} records");
    let _ = writeln!(text, "on disk     {stored}, of which {new} were new");
    let readable = foreign.map_or_else(|| "by this program".into(), |why| format!("no: {why}"));
    let _ = writeln!(text, "readable    {}", plain(&readable));
    for edited in &about.edited {
        let _ = writeln!(text, "edited      {}", plain(edited));
    }
    let _ = writeln!(text, "PEs         {}", about.pes);
    for node in &about.nodes {
        let Architecture { arch, os, endian, pointer_bits: bits } = &node.architecture;
        let [name, arch, os, endian] = [&node.name, arch, os, endian].map(|of| plain(of));
        let pes = node.pes;
        let _ = writeln!(text, "node        {name}: {arch} {os}, {endian}-endian, {bits} bits, PEs: {pes}");
    }
    let _ = writeln!(text, "\n{:>10}  {:>10}  {:<6}  type", "records", "size", "kind");
    for of in saved.types() {
        let (size, kind, name) = (Size(of.bytes).to_string(), plain(&of.kind), plain(&of.name));
        let made_of = match &of.schema {
            Some(SavedSchema { shape: Shape::Opaque, .. }) => ", opaque".into(),
            Some(SavedSchema { version, .. }) => format!(", version {version}"),
            None => String::new(),
        };
        let _ = writeln!(text, "{:>10}  {size:>10}  {kind:<6}  {name}{made_of}", of.records);
    }
    if !saved.variables().is_empty() {
        let _ = writeln!(text, "\n{:>22}  type", "variable or sum");
    }
    for SavedVariable { id, name, schema } in saved.variables() {
        let opaque = if schema.shape == Shape::Opaque { ", opaque" } else { "" };
        let _ = writeln!(text, "{id:>22}  {}, version {}{opaque}", plain(name), schema.version);
    }
    text
}

pub(super) fn verification(number: u32, verified: Option<&Verified>, damages: &[String]) -> String {
    let mut text = match verified {
        Some(Verified { whole, read_bytes, .. }) if damages.is_empty() => {
            return format!("generation {number} is whole: {whole} records, {} read\n", Size(*read_bytes));
        }
        Some(Verified { whole, .. }) => {
            format!("generation {number} is damaged; {whole} records are whole\n")
        }
        None => format!("generation {number} is damaged\n"),
    };
    damages.iter().for_each(|damage| text += &format!("  {}\n", plain(damage)));
    text
}

/// The sentence about generations that are damaged, with the newest that is whole.
pub(super) fn damaged(dir: &Path, damaged: &[u32], whole: Option<u32>) -> String {
    let numbers = damaged.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let (noun, verb) = if damaged.len() == 1 { ("generation", "is") } else { ("generations", "are") };
    let rest = whole.map_or_else(
        || "restore the folder from a copy".into(),
        |whole| format!("generation {whole} is whole, use that one"),
    );
    format!("{noun} {numbers} in {} {verb} damaged: {rest}", dir.display())
}

pub(super) fn comparison(differences: &[Difference], saved: [&Saved; 2]) -> String {
    let mut text = String::new();
    for Difference { identity, change: of } in differences {
        let from = if let Change::Moved { from } = of { format!(" (from PE {from})") } else { String::new() };
        let _ = writeln!(text, "{:<8} {}{from}", change(*of), plain(&identity.to_string()));
    }
    let [before, after] = saved.map(Saved::record_count);
    let _ = writeln!(text, "{} differ; {before} records before, {after} after", differences.len());
    text
}

pub(super) fn change(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Removed => "removed",
        Change::Changed => "changed",
        Change::Moved { .. } => "moved",
    }
}

/// How long ago that was, in the largest unit of which there is one.
fn age(then_ms: u64, now_ms: u64) -> String {
    let seconds = now_ms.saturating_sub(then_ms) / 1000;
    let units = [(86_400, "d"), (3600, "h"), (60, "min")];
    let unit = units.into_iter().find(|(length, _)| seconds >= *length);
    unit.map_or_else(|| format!("{seconds} s"), |(length, name)| format!("{} {name}", seconds / length))
}

pub(super) fn plain(text: &str) -> String {
    clean_line(text, NAME_MAX)
}
