//! Who talked to whom, as far as the run knew when it was saved.

use super::Answer;
use super::text::plain;
use super::values::named;
use chares::pup;
use runtime::checkpoint::{Kind as RecordKind, Saved};
use runtime::failure::{Failure, Kind};
use runtime::ids::ElementId;
use runtime::loads::{Amount, KnownLoads};
use runtime::saved::RecordOf;
use runtime::size::Size;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Those that said most to each other come first.
pub(super) fn told(saved: &Saved) -> Result<Answer, Failure> {
    let types = saved.types_of_collections()?;
    let mut pairs = known(saved)?;
    pairs.sort_by_key(|(one, other, amount)| (std::cmp::Reverse(amount.messages), *one, *other));
    let mut text = format!("{:>12}  {:>10}  between\n", "messages", "bytes");
    for (one, other, Amount { messages, bytes }) in &pairs {
        let [one, other] = [one, other].map(|of| name(of, &types));
        let _ = writeln!(text, "{messages:>12}  {:>10}  {one} and {other}", Size(*bytes).to_string());
    }
    let _ = writeln!(text, "{} pairs", pairs.len());
    let pairs = pairs.iter().map(|(one, other, Amount { messages, bytes })| {
        let [one, other] = [one, other].map(|of| identity(of, &types));
        json!({ "one": one, "other": other, "messages": messages, "bytes": bytes })
    });
    let json = json!({ "generation": saved.generation(), "pairs": pairs.collect::<Vec<_>>() });
    Ok(Answer { text, json, failure: None })
}

fn known(saved: &Saved) -> Result<Vec<(ElementId, ElementId, Amount)>, Failure> {
    let mut pairs = Vec::new();
    for record in saved.records_of_kind(RecordKind::Node) {
        let record = record?;
        if record.header().is_some_and(|header| header.of == RecordOf::Loads) {
            let known: KnownLoads = pup::unpack(&record.packed).map_err(|error| {
                Failure::new(Kind::Input, format!("the loads of the checkpoint: {error}"))
            })?;
            pairs.extend(known.edges);
        }
    }
    Ok(pairs)
}

fn type_of<'a>(of: &ElementId, types: &'a BTreeMap<u64, String>) -> &'a str {
    types.get(&of.collection.0).map_or("?", String::as_str)
}

fn name(of: &ElementId, types: &BTreeMap<u64, String>) -> String {
    plain(&named(type_of(of, types), of.collection.0, of.index.0))
}

fn identity(of: &ElementId, types: &BTreeMap<u64, String>) -> Value {
    json!({ "type": type_of(of, types), "collection": of.collection.0, "index": of.index.0 })
}
