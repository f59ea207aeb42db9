//! Whether a JSON file has the keys that its document lists, no less and no more.

use serde_json::Value;
use std::collections::BTreeSet;

/// Keys of the table in a schema's document.
#[must_use]
pub fn documented(schema: &str) -> BTreeSet<String> {
    let keys = schema.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    keys.map(|(key, _)| key.to_string()).collect()
}

/// Keys of all values in a file as such a table writes them, `nodes[].pes[].speed`; what is below one of `leaves` is said
/// in its line.
#[must_use]
pub fn keys(value: &Value, leaves: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    gather(value, "", leaves, &mut found);
    found
}

fn gather(value: &Value, path: &str, leaves: &[&str], found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) if !leaves.contains(&path) => {
            let dot = if path.is_empty() { "" } else { "." };
            map.iter().for_each(|(key, value)| gather(value, &format!("{path}{dot}{key}"), leaves, found));
        }
        Value::Array(list) if !leaves.contains(&path) => {
            list.iter().for_each(|value| gather(value, &format!("{path}[]"), leaves, found));
        }
        _ => {
            found.insert(path.to_string());
        }
    }
}
